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
    """Its line, escaped."""
    for balance in session.balance():
        assert balance._repr_html_() == f"<pre>{html.escape(str(balance))}</pre>"


@pytest.mark.parametrize("sizes", [(100,), (100, 1000)])
def test_a_preview_shows_a_table(session, sizes):
    """Half-widths in a notebook as on a terminal."""
    preview = session.sql("SELECT COUNT(*) AS n FROM visits").preview(0.5, sizes=sizes)
    page = preview._repr_html_()
    assert page.count("<tr>") == 1 + len(sizes)
    assert "ε = 0.5" in page
