"""Rules that every synthetic row keeps: exact, by any method, or refused by name."""

from __future__ import annotations

import datetime as day
from fractions import Fraction as F

import numpy as np
import polars as pl
import pytest

import dither as dt
from dither.errors import ArgumentError, PolicyError
from dither.plan.schema import Kind
from dither.query.tables._domain import Attribute, CellDomain
from dither.synth.constraints._lattice import RuleLattice
from dither.synth.constraints._linear import linear_rules
from dither.synth.constraints._row_rules import RowRules, row_rules

STATES = {"02139": "MA", "02140": "MA", "10001": "NY"}
FIRST = day.date(2024, 1, 1)
COLUMNS = {
    "came": {"bounds": ["2024-01-01", "2024-12-31"]},
    "gone": {"bounds": ["2024-01-01", "2024-12-31"]},
    "food": {"type": "real", "bounds": [0, 100], "step": "0.01", "nullable": False},
    "rent": {"type": "real", "bounds": [0, 200], "step": "0.01", "nullable": False},
    "total": {"type": "real", "bounds": [0, 300], "step": "0.01", "nullable": False},
    "zip": {"values": list(STATES), "nullable": False},
    "state": {"values": ["MA", "NY"], "nullable": False},
    "dose": {"type": "real", "values": [2.5, 6, 9], "nullable": False},
}
RULES = [
    "gone >= came",
    "total = food + rent",
    {"if": "zip", "then": "state", "map": STATES},
    {"columns": ["state", "dose"], "allowed": [["MA", 2.5], ["NY", 6], ["NY", 9]]},
]


def stays(rows=3000):
    """Simulated rows that keep the rules."""
    draw = np.random.default_rng(5)
    came = draw.integers(0, 366, rows)
    food, rent = (np.round(draw.random(rows) * most, 2) for most in (100, 200))
    where = draw.choice(list(STATES), rows)
    state = [STATES[z] for z in where]
    dose = np.where(np.array(state) == "MA", 2.5, draw.choice([6.0, 9.0], rows))
    gone = np.minimum(came + draw.integers(0, 20, rows), 365)
    return pl.DataFrame(
        {
            "came": [FIRST + day.timedelta(int(d)) for d in came],
            "gone": [FIRST + day.timedelta(int(d)) for d in gone],
            "food": food,
            "rent": rent,
            "total": np.round(food + rent, 2),
            "zip": where,
            "state": state,
            "dose": dose,
        }
    )


STAYS = stays()


def policy(folder, columns=COLUMNS, **table):
    budget = {"epsilon": 1000, "delta": "1e-5", "ledger": str(folder / "l.ledger")}
    return {"budget": budget, "tables": {"stays": {"columns": columns, **table}}}


@pytest.fixture
def rows(tmp_path):
    """A table on the way to a question."""
    with dt.open(policy(tmp_path), sources={"stays": STAYS}) as session:
        yield session.table("stays")


def broken(frame):
    """How many rows break each rule: of doubles sums are off by their last digit."""
    there = frame.drop_nulls(["came", "gone"])
    off = (frame["food"] + frame["rent"] - frame["total"]).abs() > 1e-9
    allowed = {("MA", 2.5), ("NY", 6.0), ("NY", 9.0)}
    return (
        there.filter(pl.col("gone") < pl.col("came")).height,
        int(off.sum()),
        sum(STATES[z] != s for z, s in frame.select("zip", "state").rows()),
        sum(row not in allowed for row in frame.select("state", "dose").rows()),
    )


@pytest.mark.parametrize(
    "method",
    ["independent", *(pytest.param(m, marks=pytest.mark.slow) for m in ("mst", "aim"))],
)
def test_every_row_keeps_every_rule(rows, method, tmp_path):
    """With much noise, of a model that was saved too; without rules most rows break one."""
    asked = {"method": method, "cells": 6, "workload": 2}
    model = rows.synthesize("1/5", "1e-6", rules=RULES, **asked)
    loaded = dt.synth.load(model.save(tmp_path / "m.model"))
    for found in (model, loaded):
        frame = found.sample(4000, seed=1)
        assert broken(frame) == (0, 0, 0, 0)
        assert frame.schema["dose"] == pl.Float64
    assert loaded.sample(50, seed=2).equals(model.sample(50, seed=2))
    assert "every row keeps what is taken as public: 'gone >= came'" in str(model)
    if method == "independent":
        assert min(broken(rows.synthesize(1, "1e-6", **asked).sample(4000, seed=1))) > 500


@pytest.mark.slow
def test_tables_stay_near_what_was_measured(rows):
    """Rules divide what was measured; they do not move it: single columns are as without them."""
    model = rows.synthesize(500, "1e-6", method="mst", cells=6, rules=RULES)
    frame = model.sample(3000, seed=1)
    found = dt.synth.compare(STAYS, frame, bins=model.edges).by_order
    # As many real rows drawn again are as far: 0.02 and 0.04 (measured: 0.002 and 0.02).
    means = dict(found.select("order", "mean").rows())
    assert means[1] < 0.01
    assert means[2] < 0.04


@pytest.mark.parametrize("n", [0, 1, 30])
def test_few_rows_keep_them_too(rows, n):
    """None, one and thirty."""
    model = rows.synthesize(5, "1e-6", method="independent", rules=RULES, cells=6)
    frame = model.sample(n, seed=1)
    assert frame.height == n
    assert broken(frame) == (0, 0, 0, 0)


def test_given_columns_are_kept_beside_rules(rows):
    """Given a value, all rows have it; given rows, each is filled so that it keeps the rules."""
    model = rows.synthesize(5, "1e-6", method="aim", workload=2, rules=RULES, cells=6)
    frame = model.sample(500, seed=1, given={"zip": "10001", "dose": 9})
    assert set(frame["state"]) == {"NY"}
    assert set(frame["dose"]) == {9.0}
    assert broken(frame) == (0, 0, 0, 0)
    held = frame.select("came", "food").head(40)
    filled = model.sample(given=held, seed=1)
    assert filled.select("came", "food").equals(held)
    assert broken(filled) == (0, 0, 0, 0)
    with pytest.raises(ArgumentError, match=r"given: a row that the model's public rules forbid"):
        model.sample(5, given={"zip": "10001", "state": "MA"})
    with pytest.raises(ArgumentError, match=r"given: food stands in a rule, .* multiples of 1/100"):
        model.sample(given=pl.DataFrame({"food": [0.001]}))
    late = pl.DataFrame({"food": [100.0], "total": [1.0]})
    with pytest.raises(ArgumentError, match="given: a row"):
        model.sample(given=late)


def test_rules_of_the_policy_hold_without_being_named(tmp_path):
    """Where their columns are asked for; and not of rows that are made of the table's otherwise."""
    with dt.open(policy(tmp_path, rules=RULES), sources={"stays": STAYS}) as session:
        asked = {"epsilon": 1, "delta": "1e-6", "method": "independent", "cells": 6}
        assert broken(session.table("stays").synthesize(**asked).sample(2000)) == (0, 0, 0, 0)
        some = (
            session.table("stays").filter("food < 50").synthesis(columns=["zip", "state"], **asked)
        )
        assert some.row_rules.names == ("zip -> state",)
        swapped = session.table("stays").select(came="gone", gone="came")
        assert swapped.synthesis(**asked).row_rules.names == ()


@pytest.mark.parametrize("bad", ["gone >= came", [], [3], [{"if": "zip"}], {"a": 1}])
def test_what_is_no_list_of_rules_is_no_policy(tmp_path, bad):
    """Their form is seen where the policy is opened."""
    with pytest.raises(PolicyError, match=r"tables\.stays\.rules must be comparisons"):
        dt.open(policy(tmp_path, rules=bad), sources={"stays": STAYS})


@pytest.mark.parametrize(
    ("given", "words"),
    [
        ("gone >= came", "rules must be a list"),
        ([3], "rules: write"),
        ([{"if": "zip", "map": {}}], "rules: write"),
        (["gone"], "it compares nothing"),
        (["gone > "], "a side of it is empty"),
        (["gone > came;"], "at ';'"),
        (["gone come > came"], "a sign is missing"),
        (["gone > 3"], "dates are compared with dates"),
        (["gone > 'soon'"], "'soon' is no date"),
        (["food > food"], "no column is left in it"),
        (["food > " + "0 + " * 400 + "1"], "at most 1,000 characters"),
        (["went > came"], "no column 'went'"),
        (["zip > 3"], "zip is neither a number nor a date"),
        ([{"if": "came", "then": "zip", "map": {"x": "y"}}], "came is cut into bins"),
        ([{"if": "zip", "then": "state", "map": {"0": "MA"}}], "'0' is in none of its cells"),
        ([{"if": "zip", "then": "zip", "map": {"10001": "10001"}}], "rules: write"),
        ([{"columns": ["zip", "dose"], "allowed": [["10001"]]}], "one value for each column"),
        (["gone < came", "came < gone"], "'gone < came' and 'came < gone' contradict"),
        (["gone - came > 366"], "'gone - came > 366' is true of no row"),
        (["food > 100.001"], "'food > 100.001' is true of no row"),
        (["total = food + rent", "rent > total"], "'total = food [+] rent' and 'rent > total'"),
        (["food > rent", "rent > total", "total > food"], "'food > rent' and .* contradict"),
        (
            [RULES[2], {"columns": ["zip", "state"], "allowed": [["10001", "MA"]]}],
            "zip -> state and allowed zip, state contradict",
        ),
        (["food < 1e300", "food > 1e-300"], "too large beside their step"),
    ],
)
def test_bad_rules_are_refused_by_name(rows, given, words):
    """Nothing is charged."""
    with pytest.raises(ArgumentError, match=words):
        rows.synthesis(1, "1e-6", rules=given, cells=6)


def test_rules_that_few_cells_can_keep_are_not_said_to_be_false():
    """Of a thousand values each hardly a row that is drawn has the sum; of bins every one has."""
    values = tuple(range(1000))
    listed = [Attribute(name, Kind.INTEGER, values=values, missing=False) for name in "abcdef"]
    rule = "a + b + c = d + e + f"
    with pytest.raises(
        ArgumentError, match=r"of 500 rows that were drawn none keeps .* fewer cells"
    ):
        row_rules([rule, "a <= b <= c"], CellDomain(tuple(listed)), 2**17)
    with pytest.raises(ArgumentError, match="contradict one another"):
        row_rules([rule, "d > a", "e > b", "f > c"], CellDomain(tuple(listed)), 2**17)
    binned = [whole(name, 0, 999, range(100, 1000, 100)) for name in "abcdef"]
    assert row_rules([rule, "a <= b <= c"], CellDomain(tuple(binned)), 2**17).names


def test_rules_beside_zeros_that_leave_nothing(rows):
    """The message names both."""
    with pytest.raises(ArgumentError, match="zeros and rules: they leave no row"):
        rows.synthesis(1, "1e-6", rules=RULES, zeros=[{"dose": [2.5, 6, 9]}], cells=6)


def whole(name, low, high, edges=()):
    """A column of whole numbers cut at these edges."""
    cut = tuple(F(e) for e in (low, *edges, high + 1))
    return Attribute(name, Kind.INTEGER, edges=cut, bounds=(F(low), F(high)), missing=False)


def test_cells_that_no_row_can_have_are_those_of_brute_force():
    """Order, sums and weights, by every row of a small domain."""
    columns = (whole("a", 0, 8, (3, 6)), whole("b", 0, 8, (2, 5)), whole("c", 0, 16, (4, 9)))
    domain = CellDomain(columns)
    every = np.array(list(np.ndindex(9, 9, 17)))
    cells = np.stack(
        [np.searchsorted([float(e) for e in a.edges], every[:, i], "right") - 1
         for i, a in enumerate(columns)], axis=1,
    )  # fmt: skip
    for texts, keeps in (
        (["a <= b", "b <= c"], (every[:, 0] <= every[:, 1]) & (every[:, 1] <= every[:, 2])),
        (["c = a + b"], every[:, 2] == every[:, 0] + every[:, 1]),
        (["2*a - b < 1", "c > 12"], (2 * every[:, 0] < 1 + every[:, 1]) & (every[:, 2] > 12)),
    ):
        linear = [one for text in texts for one in linear_rules(text, domain)]
        lattice = RuleLattice(dict(enumerate(columns)), linear)
        assert (lattice.kept(every, np.zeros(every.shape, bool)) == keeps).all()
        there = {tuple(c) for c in cells[keeps].tolist()}
        grid = np.array(list(np.ndindex(3, 3, 3)))
        assert {tuple(c) for c in grid[lattice.possible(grid)].tolist()} == there


def test_of_what_cells_allow_all_is_as_likely():
    """a <= b in one cell of 0 to 3: ten pairs, each with probability 1/10."""
    domain = CellDomain((whole("a", 0, 3), whole("b", 0, 3)))
    lattice = RuleLattice(dict(enumerate(domain.attributes)), linear_rules("a <= b", domain))
    low, high, null = lattice.ends(np.zeros((20_000, 2), np.int64))
    values, good = lattice.drawn(low, high, null, np.random.default_rng(1))
    assert good.all()
    counts = np.bincount(values[:, 0] * 4 + values[:, 1], minlength=16).reshape(4, 4)
    assert counts[np.tril_indices(4, -1)].sum() == 0
    # Ten cells of 2,000 ± 42: beyond 6 deviations once in 10^8 of right draws.
    assert np.abs(counts[np.triu_indices(4)] - 2000).max() < 260


def test_rows_that_most_draws_break_are_found():
    """A sum of five fine columns, and an order of ten: column by column, never by luck."""
    names = [f"x{i}" for i in range(10)]
    domain = CellDomain(tuple(whole(n, 0, 1000) for n in names))
    rules = row_rules([" <= ".join(names), "x9 - x0 <= 9"], domain, 2**17)
    values, good = rules.numbers(np.zeros((300, 10), np.int64), np.random.default_rng(1))
    assert good.all()
    drawn = values[0][1]
    assert (np.diff(drawn, axis=1) >= 0).all()
    assert (drawn[:, 9] - drawn[:, 0] <= 9).all()


def test_comparisons_with_null_are_kept():
    """As SQL's CHECK has it; a column that may be NULL is NULL in some rows."""
    a = Attribute("a", Kind.INTEGER, (1, 2), missing=True)
    domain = CellDomain((a, Attribute("b", Kind.INTEGER, (1, 2), missing=True)))
    rules = row_rules(["a < b"], domain, 2**17)
    (mask,) = rules.forbidden.values()
    assert mask.tolist() == [[True, False, False], [True, True, False], [False, False, False]]
    assert isinstance(RowRules.from_list(rules.to_list(), domain), RowRules)
