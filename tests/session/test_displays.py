"""What a notebook or a prompt shows of sessions, previews and releases."""

import html

import pytest


def test_a_release_shows_its_summary(session):
    """One column for each answer, with its interval: not three raw ones."""
    release = session.sql("SELECT region, COUNT(*) AS n FROM visits GROUP BY region").release(0.5)
    page = release._repr_html_()
    assert page.count("<th") == 2
    assert "n_lower" not in page
    assert repr(release) == release.summary()
    for line in ("cost: ε = 0.5", "protects one", "at 95 %"):
        assert line in page


def test_the_limits_of_a_unit_stand_below_its_release(session):
    """Where a unit may have more than counts, every summary says how much counts."""
    sql = "SELECT COUNT(*) AS n FROM visits"
    release = session.sql(sql).release(0.5)
    text = " ".join(release.summary().split())
    body = release.certificate.to_dict()
    groups, rows = body["max_groups"], body["max_rows"]
    assert f"counts in at most {groups} group" in text
    assert f"with {rows} row" in text


def test_no_limits_are_told_where_a_row_is_a_person(people):
    """A row counts once, in one group: there is nothing to say."""
    release = people.sql("SELECT COUNT(*) AS n FROM visits").release(0.5)
    assert "counts in at most" not in release.summary()


def test_hostile_keys_are_escaped(tmp_path):
    """A discovered key is what somebody typed: in a page it is text."""
    import polars as pl

    import dither as dt

    policy = {
        "budget": {"epsilon": 10**4, "delta": "1e-3", "ledger": str(tmp_path / "x.ledger")},
        "tables": {"t": {"source": "t.parquet"}},
    }
    frame = pl.DataFrame({"k": ["<script>alert(1)</script>"] * 500})
    with dt.open(policy, sources={"t": frame}) as opened:
        page = opened.sql("SELECT k, COUNT(*) AS n FROM t GROUP BY k").release(1)._repr_html_()
        assert "<script>" not in page
        assert "&lt;script&gt;" in page


def test_a_session_shows_its_tables_and_what_is_left(session):
    """Tables with who is protected, accounts with what they may still spend."""
    before = repr(session)
    assert "table visits (protects" in before
    assert "spent nothing" in before or "nothing spent" in before
    session.sql("SELECT COUNT(*) AS n FROM visits").release(0.5)
    assert "spent epsilon 0.5" in repr(session)
    assert "<li>" in session._repr_html_()
    session.close()
    assert repr(session).startswith("closed session")


def test_a_balance_shows_in_a_notebook_what_it_says(session):
    """A row each: account, whom it protects, what was spent, what is left; on a terminal a line."""
    balances = session.balance()
    page = balances._repr_html_()
    assert page.count("<tr>") == 1 + len(balances)
    for balance in balances:
        for said in (balance.name, balance.promise.describe(), balance.remaining.describe()):
            assert html.escape(said) in page
            assert html.escape(said) in balance._repr_html_()
    assert repr(balances).splitlines() == [str(balance) for balance in balances]


def test_a_ledger_shows_its_accounts(session):
    """All that it holds, and after it was closed what it is."""
    assert session.ledger._repr_html_().count("<tr>") == 1
    session.sql("SELECT COUNT(*) AS n FROM visits").release(0.5)
    assert session.ledger._repr_html_().count("<tr>") == 1 + len(session.ledger.accounts()) > 1
    session.close()
    page = session.ledger._repr_html_()
    assert session.ledger.name in page
    assert "closed" in page


def test_a_certificate_shows_what_it_promises(session):
    """Question, whom it protects, cost, entry and digest, each in a row, and each in a line."""
    release = session.sql("SELECT COUNT(*) AS n FROM visits WHERE age < 40").release(0.5)
    certificate = release.certificate
    said = certificate.to_dict()
    page = certificate._repr_html_()
    for text in ("age &lt; 40", "ε = 0.5", said["digest"], said["text"]["protects"]):
        assert text in page
    assert "age < 40" in str(certificate)
    assert len(str(certificate).splitlines()) == 5 == page.count("<tr>") - 1


def test_rows_on_the_way_to_a_question_say_of_which_table(session):
    """And by what they are grouped, not what is inside."""
    rows = session.table("visits")
    assert repr(rows) == "<rows of visits>"
    assert repr(rows.group_by("region")) == "<rows of visits grouped by region>"


@pytest.mark.parametrize("sizes", [(100,), (100, 1000)])
def test_a_preview_shows_a_table(session, sizes):
    """Half-widths in a notebook as on a terminal."""
    preview = session.sql("SELECT COUNT(*) AS n FROM visits").preview(0.5, sizes=sizes)
    page = preview._repr_html_()
    assert page.count("<tr>") == 1 + len(sizes)
    assert "ε = 0.5" in page
