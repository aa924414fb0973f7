"""Tables of counts: cells from public facts, one charge, and what is released of exact tables."""

from __future__ import annotations

import datetime as day
from fractions import Fraction as F

import numpy as np
import polars as pl
import pytest

import dither as dt
from dither import privacy
from dither.errors import ArgumentError, BoundsError, BudgetError, EngineError
from dither.query.tables._counts import TablesQuestion
from dither.query.tables._domain import Attribute, CellDomain, domain_of
from query.query_data import REGIONS, policy, rows_policy, visits

ALL = {
    "t": {"values": ["a", "b"]},
    "w": {"bounds": [0, 3]},
    "i": {"bounds": [0, 99]},
    "x": {"bounds": [0, 10], "nullable": False},
    "c": {"bins": [0, 5, 10]},
    "d": {"bounds": [day.date(2020, 3, 15), day.date(2021, 2, 1)]},
    "b": {"nullable": False},
}
ROWS = pl.DataFrame(
    {
        "t": ["a", "b", "zzz", None],
        "w": [-5, 1, 99, None],
        "i": [3, 4, 99, None],
        "x": [0.0, 9.99, 10.0, float("nan")],
        "c": [5.0, 10.0, -1.0, 4.9],
        "d": [day.date(2020, 3, 1), day.date(2020, 12, 31), day.date(2000, 1, 1), None],
        "b": [True, False, None, True],
    }
)


@pytest.fixture
def opened(tmp_path):
    """A session whose table has a column of every kind."""
    budget = {"epsilon": 10, "delta": "1e-5", "ledger": str(tmp_path / "all.ledger")}
    made = {"budget": budget, "tables": {"all": {"columns": ALL}}}
    with dt.open(made, sources={"all": ROWS}) as session:
        yield session


def exact(question: TablesQuestion, cliques, token=None):
    """What the oracle of a run gave."""
    seen: dict = {}

    def measure(counts):
        seen.update(counts(cliques))
        return {"found": 1}

    budget = question.budget(1, "1e-6")
    request = question.request(budget, privacy.zcdp("1/100"), {"what": "test"}, measure)
    return seen, request.release(token)


def test_every_value_has_one_place(opened):
    """Declared values, bins of bounds, periods of dates; the last cell holds what is missing."""
    rows = opened.table("all")
    domain = domain_of(rows, cells={"i": 10, "x": 4})
    assert domain.sizes == (3, 5, 11, 4, 3, 13, 2)
    assert domain["d"].period == "month"
    assert domain["i"].labels[:2] == ("[0, 10)", "[10, 20)")
    tables, _ = exact(TablesQuestion(rows, domain), [(v,) for v in range(7)])
    found = {domain.names[v]: np.flatnonzero(n).tolist() for (v,), n in tables.items()}
    assert found == {
        "t": [0, 1, 2],
        "w": [0, 1, 3, 4],  # moved to the nearest bound, as aggregates move it
        "i": [0, 9, 10],
        "x": [0, 3],
        "c": [0, 1, 2],
        "d": [0, 9, 12],
        "b": [0, 1],
    }
    assert tables[0,].tolist() == [1, 1, 2]
    assert tables[3,].sum() == 3  # NaN, which the policy says does not occur, is in no cell


def test_what_counts_in_the_cell_at_a_bound_is_named(opened):
    """Of every number with bounds, whatever is asked; of no column with listed values or bins."""
    rows = opened.table("all")
    for names, whose in [
        (["w"], "w's bounds"),
        (["t", "w", "i", "x", "c", "b"], "the bounds of w, i, x"),
    ]:
        notes = TablesQuestion(rows, domain_of(rows, names)).notes()
        assert f"what lies beyond {whose} counts in the cell at the nearer one" in notes
    others = TablesQuestion(rows, domain_of(rows, ["t", "c", "d", "b"])).notes()
    assert not any("beyond" in note for note in others)


def test_tables_have_the_shape_of_the_domain(opened):
    """In rising order, whatever the engine's own order; each call may ask for others."""
    rows = opened.table("all").filter("b")
    domain = domain_of(rows, ["t", "c", "b"])
    question = TablesQuestion(rows, domain)
    pairs = [(0, 1), (1, 2), (0, 1, 2), ()]
    tables, _ = exact(question, pairs)
    assert {c: t.shape for c, t in tables.items()} == {c: domain.shape(c) for c in pairs}
    assert tables[0, 1, 2].sum(axis=2).tolist() == tables[0, 1].tolist()
    assert int(tables[()]) == 2


def test_a_domain_is_stored_as_text(opened):
    """What is read back is equal, and holds no float."""
    domain = domain_of(opened.table("all"))
    assert CellDomain.from_list(domain.to_list()) == domain


def test_cells_are_named_by_people():
    """The cell of a value, and a refusal that shows some."""
    bins = Attribute("x", dt.plan.schema.Kind.REAL, edges=(F(0), F(1), F(2)), missing=False)
    assert [bins.place(v) for v in (0, 0.99, 1, 2)] == [0, 0, 1, 1]
    with pytest.raises(ArgumentError, match=r"in none of its cells, \[0, 1\)"):
        bins.place(7)


@pytest.mark.parametrize(
    ("columns", "cells", "says"),
    [
        (["cost", "nope"], 32, "nope"),
        ("cost", 32, "list of names"),
        (["pid"], 32, "who is protected"),
        (["cost", "cost"], 32, "twice"),
        (["cost"], 0, "cells"),
        (["cost"], {"age": 3}, "no column 'age'"),
        ([], 32, "list of names"),
    ],
)
def test_bad_columns_are_refused(session, columns, cells, says):
    """Each by the argument that is wrong."""
    with pytest.raises((ArgumentError, dt.errors.UnknownNameError), match=says):
        domain_of(session.table("visits"), columns, cells)


def test_a_column_without_a_public_domain_is_refused(session):
    """With what to declare; the data's own values are never read."""
    with pytest.raises(BoundsError, match=r'city: .* declare values = \["a", "b"\]'):
        domain_of(session.table("visits"))


def test_rows_of_a_unit_are_cut_alike_in_every_table(session):
    """At most max_rows each, and the same: tables of the same columns agree."""
    rows = session.table("visits")
    domain = domain_of(rows, ["region", "age", "cost"])
    tables, _ = exact(TablesQuestion(rows, domain, max_rows=2), [(0,), (0, 1), (1, 2), (1,)])
    whole = visits().group_by("pid").len()["len"].clip(0, 2).sum()
    assert {int(t.sum()) for t in tables.values()} == {whole}
    assert tables[0, 1].sum(axis=1).tolist() == tables[0,].tolist()
    assert tables[0, 1].sum(axis=0).tolist() == tables[1,].tolist()
    assert tables[1, 2].sum(axis=1).tolist() == tables[1,].tolist()
    assert TablesQuestion(rows, domain, max_rows=2).l1 == 2


def test_what_fails_after_the_charge_says_nothing(session):
    """One message, whatever it was; the charge stays."""
    rows = session.table("visits")
    question = TablesQuestion(rows, domain_of(rows, ["region"]))
    before = session.balance()[0].spent.rho

    def measure(counts):
        raise ValueError(str(counts([(0,)])))

    request = question.request(question.budget(1), privacy.zcdp("1/100"), {"what": "test"}, measure)
    with pytest.raises(EngineError) as caught:
        request.release()
    assert caught.value.__cause__ is None
    assert str(caught.value).startswith("the engine could not compute the answer")
    assert session.balance()[0].spent.rho == before + F(1, 100)


def test_the_charge_comes_first(session, monkeypatch):
    """No run of the engine before the ledger has the charge; none at all where it refuses."""
    rows = session.table("visits")
    question = TablesQuestion(rows, domain_of(rows, ["region"]))
    ran = []
    engine, run = session._engine, session._engine.run

    def watched(*given):
        ran.append(session.balance()[0].spent.rho)
        return run(*given)

    monkeypatch.setattr(engine, "run", watched)
    exact(question, [(0,)])
    assert ran == [F(1, 100)]
    dear = question.request(
        question.budget(1), privacy.zcdp(100), {"what": "test"}, lambda counts: counts([(0,)])
    )
    with pytest.raises(BudgetError):
        dear.release()
    assert len(ran) == 1


def test_a_token_is_answered_again_for_nothing(session):
    """The stored content comes back; another question under the token is refused."""
    rows = session.table("visits")
    question = TablesQuestion(rows, domain_of(rows, ["region"]))
    seen, first = exact(question, [(0,)], token="a")
    spent = session.balance()[0].spent
    again, second = exact(question, [(0,)], token="a")
    assert seen
    assert not again
    assert first.content == second.content
    assert first.replayed is None
    assert second.replayed is not None
    assert session.balance()[0].spent == spent
    other = TablesQuestion(rows, domain_of(rows, ["age"]))
    with pytest.raises(dt.errors.LedgerError):
        exact(other, [(0,)], token="a")


def test_the_certificate_agrees_with_the_ledger(session, tmp_path):
    """Like that of any release."""
    rows = session.table("visits")
    question = TablesQuestion(rows, domain_of(rows, ["region"]))
    _, found = exact(question, [(0,)])
    certificate = found.content["certificate"]
    assert dt.verify(certificate, session.ledger).ok
    assert certificate["question"]["columns"][0]["cells"]["values"] == REGIONS
    with pytest.raises(dt.errors.CertificateError):
        dt.verify(certificate | {"max_rows": 7}, session.ledger)


def test_units_of_so_many_rows_are_charged_for_a_group(tmp_path):
    """Where the policy counts the rows of a unit, a row may lose a part alone."""
    made = rows_policy(tmp_path) | {"units": {"person": {"rows": {"visits": 3}}}}
    with dt.open(
        made, sources={"visits": visits(), "regions": pl.DataFrame({"region": REGIONS})}
    ) as s:
        rows = s.table("visits")
        question = TablesQuestion(rows, domain_of(rows, ["region"]))
        budget = question.budget(F(3, 4), F(1, 10**6))
        assert budget.of_a_row[0] == F(1, 4)
        assert budget.of_a_row[1] < F(1, 3 * 10**6)
        assert question.promised(privacy.zcdp("1/100")).charge.rho == F(9, 100)
        assert question.l1 == 1


def test_replaced_units_move_a_table_twice(tmp_path):
    """One cell falls and another rises."""
    made = rows_policy(tmp_path, neighbours="replace_one")
    with dt.open(
        made, sources={"visits": visits(), "regions": pl.DataFrame({"region": REGIONS})}
    ) as s:
        rows = s.table("visits")
        question = TablesQuestion(rows, domain_of(rows, ["region"]))
        assert (question.l1, question.l2_squared) == (2, 2)
        assert question.public_size


def test_units_move_a_table_by_all_their_rows(tmp_path, session):
    """max_rows in L1, and its square."""
    rows = session.table("visits")
    question = TablesQuestion(rows, domain_of(rows, ["region"]))
    assert (question.l1, question.l2_squared, question.max_rows) == (5, 25, 5)
    assert "of each pid at most 5 rows count" in question.notes()[0]
    with dt.open(
        policy(
            tmp_path / "..",
            budget={"neighbours": "replace_one", "ledger": str(tmp_path / "r.ledger")},
        ),
        sources={"visits": visits(), "regions": pl.DataFrame({"region": REGIONS})},
    ) as s:
        rows = s.table("visits")
        question = TablesQuestion(rows, domain_of(rows, ["region"]))
        assert (question.l1, question.l2_squared) == (10, 50)
