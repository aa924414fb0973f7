"""Hierarchies: their cost by brute force, their estimates, and counts asked of tables."""

from __future__ import annotations

import itertools
from dataclasses import replace
from fractions import Fraction as F
from functools import partial

import numpy as np
import polars as pl
import pytest

import dither as dt
from dither.errors import (
    ArgumentError,
    BoundsError,
    BudgetError,
    EngineError,
    QueryError,
    UnknownNameError,
)
from dither.lab.audit import Outcome
from dither.mechanisms import DiscreteGaussian, DiscreteLaplace
from dither.privacy import Neighbours
from dither.query.tables._levels import public_levels
from dither.synth.hierarchy import _hierarchy
from dither.synth.hierarchy._hierarchy import HierarchyPlan, MeasuredLevels, plan_hierarchy
from dither.synth.hierarchy._spine import Spine
from dither.synth.tables import _hierarchy as _asked_hierarchy
from dither.synth.tables._hierarchy import HierarchyQuestion

ADDED, REPLACED = Neighbours.ADD_REMOVE, Neighbours.REPLACE
PLACES = pl.DataFrame(
    {
        "country": ["land"] * 6,
        "state": ["n", "n", "n", "s", "s", "s"],
        "county": ["a", "b", "c", "d", "e", "f"],
        "people": [4, 0, 3, 2, 5, 1],
        "in_state": [7, 7, 7, 8, 8, 8],
    }
)
LEVELS = ["country", "state", "county"]
PEOPLE = pl.DataFrame(
    {
        "county": [c for c, n in zip("abcdef", [4, 0, 3, 2, 5, 1], strict=True) for _ in range(n)]
        + ["zz", None],
        "sex": ["f", "m"] * 8 + ["f"],
        "age": [i * 7 % 90 for i in range(17)],
    }
)
SMALL = Spine.of(["state", "county"], [("n", "a"), ("n", "b"), ("s", "c")])


def policy(folder, **people) -> dict:
    """A policy over people and their places."""
    columns = {"sex": {"values": ["f", "m"]}, "age": {"bounds": [0, 89], "nullable": False}}
    return {
        "budget": {"epsilon": 10**6, "delta": "1e-5", "ledger": str(folder / "people.ledger")},
        "tables": {
            "people": {"columns": columns, **people},
            "places": {"public": True, "unique": ["county"]},
        },
    }


@pytest.fixture
def session(tmp_path):
    """A session over a few people."""
    sources = {"people": PEOPLE, "places": PLACES}
    with dt.open(policy(tmp_path), sources=sources) as opened:
        yield opened


def plan(**given) -> HierarchyPlan:
    """A plan for two cells on a small spine."""
    asked = {
        "epsilon": F(1),
        "delta": F(0),
        "l1": 1,
        "l2_squared": 1,
        "neighbours": ADDED,
        **given,
    }
    return plan_hierarchy(SMALL, asked.pop("cells", 2), **asked)


def neighbours(rows: int, replaced: bool):
    """Pairs of tiny tables that differ by one unit of at most ``rows`` rows, as changes of leaves.

    A change is what a unit adds, less what another one added where units are replaced.
    """
    units = [
        np.bincount(places, minlength=6).reshape(3, 2)
        for n in range(rows + 1)
        for places in itertools.combinations_with_replacement(range(6), n)
    ]
    others = units if replaced else [np.zeros((3, 2), dtype=np.int64)]
    changes = {(one - two).tobytes() for one in units for two in others}
    return [np.frombuffer(change, dtype=np.int64).reshape(3, 2) for change in sorted(changes)]


def released_tables(
    made: HierarchyPlan, leaves: np.ndarray, monkeypatch
) -> list[tuple[int, object, np.ndarray]]:
    """What is released, as tables with the draw and the noise that each of them really got.

    The noise is found by looking, and not by asking the plan: a table to which nothing was added
    has none.
    """
    tables = []
    for law in (DiscreteLaplace, DiscreteGaussian):
        monkeypatch.setattr(law, "_draw", lambda self, n: np.full(n, self_code(self)))
    codes: dict[int, object] = {}

    def self_code(noise):
        codes[len(codes) + 1] = noise
        return 10**6 * len(codes)

    measured = made.measure(leaves)
    for table in (*measured.cells, *(t for t in measured.totals if t is not None)):
        code = round(int(table.flat[0]) / 10**6)
        tables.append((code, codes.get(code), table - 10**6 * code))
    return tables


def lost(made: HierarchyPlan, rows: int, replaced: bool, monkeypatch) -> F | float:
    """The largest loss over all neighbours: epsilon of Laplace noise, rho of Gaussian."""
    nothing = released_tables(made, np.zeros((3, 2), dtype=np.int64), monkeypatch)
    draws = [code for code, _, _ in nothing if code]
    if len(set(draws)) < len(draws):
        # Of two tables with one noise the difference is exact.
        return float("inf")
    most: F | float = F(0)
    for change in neighbours(rows, replaced):
        total: F | float = F(0)
        for (_, noise, base), (_, _, moved) in zip(
            nothing, released_tables(made, change, monkeypatch), strict=True
        ):
            by = np.abs(moved - base)
            if not by.any():
                continue
            if noise is None:
                return float("inf")
            if isinstance(noise, DiscreteLaplace):
                total += int(by.sum()) / noise.scale
            else:
                total += int((by**2).sum()) / (2 * noise.sigma2)
        most = max(most, total)
    return most


CASES = [
    (rows, replaced, delta)
    for rows in (1, 2)
    for replaced in (False, True)
    for delta in (F(0), F(1, 10**6))
]


def of_case(rows: int, replaced: bool, delta: F, **given) -> HierarchyPlan:
    """A plan for units of so many rows."""
    factor = 2 if replaced else 1
    bounds = {"l1": factor * rows, "l2_squared": factor * rows**2}
    which = {"neighbours": REPLACED if replaced else ADDED, "delta": delta}
    return plan(**bounds, **which, **given)


@pytest.mark.parametrize(("rows", "replaced", "delta"), CASES)
def test_no_pair_of_neighbours_loses_more_than_is_charged(
    rows: int, replaced: bool, delta: F, monkeypatch
) -> None:
    """All units of at most so many rows on three places of two cells; one meets the charge."""
    made = of_case(rows, replaced, delta)
    charge = made.loss.charge
    assert charge.epsilon == 1
    found = lost(made, rows, replaced, monkeypatch)
    assert found == (charge.epsilon if made.laplace else charge.rho)
    if not made.laplace:
        assert F(made.loss.delta(1.0).upper) <= delta
        assert charge.delta == delta


def test_the_auditor_finds_no_more_than_is_charged_and_a_level_without_noise() -> None:
    """All noisy counts of two neighbours; and again where the wider level is released as it is."""
    here, there = np.zeros((3, 1), dtype=np.int64), np.zeros((3, 1), dtype=np.int64)
    there[1] = 1

    def released(leaves, size, exact=False):
        rows = []
        for _ in range(size):
            measured = made.measure(leaves)
            wide = SMALL.sums(leaves)[0] if exact else measured.cells[0]
            rows.append(np.concatenate([wide, measured.cells[1]]).ravel())
        return np.array(rows)

    made = plan(cells=1)
    sound = dt.audit(released, here, there, 1, samples=4_000, confidence=0.999)
    assert sound.verdict is not Outcome.VIOLATED
    mistaken = partial(released, exact=True)
    broken = dt.audit(mistaken, here, there, 1, samples=2_000, confidence=0.999, vectorised=True)
    assert broken.verdict is Outcome.VIOLATED


def a_level_without_noise(monkeypatch) -> None:
    """The noise of the widest level is forgotten."""
    true = HierarchyPlan.measure

    def measure(self, leaves):
        found = true(self, leaves)
        return MeasuredLevels([self.spine.sums(leaves)[0], *found.cells[1:]], found.totals)

    monkeypatch.setattr(HierarchyPlan, "measure", measure)


def totals_without_noise(monkeypatch) -> None:
    """How many each place has is given away exactly."""
    true = HierarchyPlan.measure

    def measure(self, leaves):
        found = true(self, leaves)
        exact = [level.sum(axis=1) for level in self.spine.sums(leaves)]
        return MeasuredLevels(
            found.cells, [t if t is None else e for t, e in zip(found.totals, exact, strict=True)]
        )

    monkeypatch.setattr(HierarchyPlan, "measure", measure)


def noise_that_serves_two_levels(monkeypatch) -> None:
    """The noise of the widest level's cells is used again in the others."""

    def measure(self, leaves):
        kept: list = []
        cells, totals = [], []
        for level, exact in zip(self.levels, self.spine.sums(leaves), strict=True):
            kept.append(kept[0] if kept else level.cells.draw((exact.size,)))
            cells.append(exact + np.resize(kept[-1], exact.shape))
            noise = level.total
            totals.append(None if noise is None else exact.sum(axis=1) + noise.draw(len(exact)))
        return MeasuredLevels(cells, totals)

    monkeypatch.setattr(HierarchyPlan, "measure", measure)


def a_budget_for_each_level(monkeypatch) -> None:
    """Every table gets noise as if the whole budget were its own."""
    true = _hierarchy.noises_of

    def noises_of(shares, family, *given):
        noises, loss = true(shares, family, *given)
        whole = [
            n.scale * s if family == "laplace" else n.sigma2 * s
            for n, s in zip(noises, shares, strict=True)
        ]
        return tuple(type(n)(x) for n, x in zip(noises, whole, strict=True)), loss

    monkeypatch.setattr(_hierarchy, "noises_of", noises_of)


def half_the_sensitivity(monkeypatch) -> None:
    """A replaced unit is taken to move a table by one."""
    true = _hierarchy.noises_of

    def noises_of(shares, family, epsilon, delta, bounds, which):
        return true(shares, family, epsilon, delta, (1, 1), which)

    monkeypatch.setattr(_hierarchy, "noises_of", noises_of)


@pytest.mark.parametrize(
    "mistake",
    [
        a_level_without_noise,
        totals_without_noise,
        noise_that_serves_two_levels,
        a_budget_for_each_level,
        half_the_sensitivity,
    ],
)
@pytest.mark.parametrize("delta", [F(0), F(1, 10**6)])
def test_planted_mistakes_lose_more_than_is_charged(mistake, delta: F, monkeypatch) -> None:
    """A level's noise forgotten, the budget not divided, a sensitivity too small: each is seen."""
    mistake(monkeypatch)
    made = of_case(2, True, delta)
    charge = made.loss.charge
    allowed = charge.epsilon if made.laplace else charge.rho
    assert lost(made, 2, True, monkeypatch) > allowed


@pytest.mark.parametrize("delta", [F(0), F(1, 10**6)])
@pytest.mark.parametrize("known", [None, "state"])
def test_estimates_are_the_best_of_all_that_was_measured(delta: F, known: str | None) -> None:
    """Values and exact variances of cells and of sums of cells, by dense least squares."""
    rng = np.random.default_rng(6)
    c, leaves = 4, rng.poisson(5, (3, 4))
    exact = SMALL.sums(leaves)
    public = {} if known is None else {known: exact[0].sum(axis=1)}
    made = plan(cells=c, delta=delta, known=public, division={"state": 1, "county": 2})
    measured, sums = made.measure(leaves), SMALL.sums(np.eye(3))
    rows, variances, values = [], [], []
    for i, level in enumerate(made.levels):
        n = SMALL.sizes[i]
        rows.append(np.kron(sums[i], np.eye(c)))
        variances += [level.cells.variance] * (n * c)
        values.append(measured.cells[i].ravel())
        for own, variance in (
            (measured.totals[i], level.total and level.total.variance),
            (made.known[i], 1e-7),
        ):
            if own is not None:
                rows.append(np.kron(sums[i], np.ones((1, c))))
                variances += [variance] * n
                values.append(own)
    a, w = np.vstack(rows), 1 / np.array(variances)
    covariance = np.linalg.inv(a.T @ (a * w[:, None]))
    best = covariance @ (a.T * w) @ np.concatenate(values)
    totals, cells = made.estimates(measured)
    np.testing.assert_allclose(best.reshape(3, c), cells[1], atol=1e-3)
    np.testing.assert_allclose(cells[1].sum(axis=1), totals[1])
    np.testing.assert_allclose(SMALL.summed(0, cells[1]), cells[0])
    for i, of in itertools.product(range(2), (1, 2, 4)):
        q = np.kron(sums[i], [1] * of + [0] * (c - of))
        wanted = np.einsum("ij,jk,ik->i", q, covariance, q)
        np.testing.assert_allclose(wanted, made.variances(i, of), atol=1e-4)


@pytest.mark.parametrize("delta", [F(0), F(1, 10**6)])
def test_intervals_of_estimates_hold_the_truth_as_often_as_they_say(delta: F) -> None:
    """90 % intervals of cells and places: 800 releases, false alarm below 1e-5."""
    leaves = np.array([[0, 5], [2, 0], [7, 1]])
    exact = SMALL.sums(leaves)
    made = plan(delta=delta, epsilon=F(1, 2))
    hits = np.zeros(4)
    for _ in range(800):
        totals, cells = made.estimates(made.measure(leaves))
        for i in range(2):
            hits[i] += abs(cells[i][0, 0] - exact[i][0, 0]) <= made.half_widths(i, 0.9)[0]
            hits[2 + i] += abs(totals[i][0] - exact[i][0].sum()) <= made.half_widths(i, 0.9, 2)[0]
    assert (hits / 800 > 0.9 - 0.053).all()
    assert (hits / 800 < 0.99).all()


def test_the_budget_is_divided_by_the_rule_that_was_asked_for() -> None:
    """Cube roots of the numbers of places, evenly, or as given; the sum of variances is least."""
    wide = Spine.of(["s", "c"], [(i // 64, i) for i in range(512)])

    def shares(**given):
        made = plan_hierarchy(
            wide, 3, epsilon=F(1), delta=F(0), l1=1, l2_squared=1, neighbours=ADDED, **given
        )
        return [level.share for level in made.levels]

    assert shares() == [F(1, 5), F(4, 5)]
    assert shares(division="levels") == [F(1, 2), F(1, 2)]
    assert shares(division={"c": 3, "s": 1}) == [F(1, 4), F(3, 4)]
    best = 8 * 25 + 512 * F(25, 16)
    for one in (F(1, 6), F(1, 4)):
        assert 8 / one**2 + 512 / (1 - one) ** 2 > best
    for division in ({"s": 1}, {"s": 1, "c": 0}, {"s": 1, "d": 1}, "cell"):
        with pytest.raises(ArgumentError):
            shares(division=division)


# --- asked of a table --------------------------------------------------------------------------


def test_counts_of_a_table_add_up_and_are_near_the_truth(session) -> None:
    """At an epsilon without noise every count is exact; what is in no place is left out."""
    asked = session.table("people").hierarchy(LEVELS, ["sex", "age"], epsilon=5 * 10**5, cells=3)
    assert (asked.levels, asked.by) == (tuple(LEVELS), ("sex", "age"))
    assert isinstance(asked, HierarchyQuestion)
    found = asked.release()
    by_state = found.frame("state", [])
    assert by_state["state"].to_list() == ["n", "s"]
    assert by_state["count"].to_list() == [7, 8]
    assert by_state["estimate"].round(9).to_list() == [7, 8]
    counties = found.frame("county", [])
    assert counties.columns[:3] == LEVELS
    assert counties["count"].to_list() == [4, 0, 3, 2, 5, 1]
    inside = PEOPLE.filter(pl.col("county").is_in(list("abcdef")))
    for row in found.frame("county", ["sex"]).iter_rows(named=True):
        same = (pl.col("county") == row["county"]) & pl.col("sex").eq_missing(row["sex"])
        assert row["count"] == inside.filter(same).height
    cells = found.frame("country")
    assert cells.shape == (9, 9)
    assert cells["sex"].to_list()[:7] == ["f"] * 3 + ["m"] * 3 + [None]
    assert cells["age"].to_list()[:3] == ["[0, 30)", "[30, 60)", "[60, 90]"]
    assert "not unbiased" in found.summary()


def test_sums_of_many_places_are_not_cut(tmp_path) -> None:
    """More people in a state than the smallest type holds that would hold those of a county."""
    people = pl.DataFrame({"county": ["a", "b"] * 30_000})
    made = policy(tmp_path)
    made["tables"]["people"]["columns"] = {}
    with dt.open(made, sources={"people": people, "places": PLACES}) as opened:
        found = opened.table("people").hierarchy(LEVELS, epsilon=10**5).release()
        assert found.frame("state", [])["count"].to_list() == [60_000, 0]


@pytest.mark.parametrize("delta", [0, "1e-6"])
def test_a_noisy_release_adds_up_and_replays(session, delta) -> None:
    """To the unit at each level; the same token gives the same counts, and is charged once."""
    people = session.table("people")
    asked = people.hierarchy(LEVELS, ["sex"], epsilon="0.1", delta=delta)
    found = asked.release(token="x")
    frames = [found.frame(level) for level in LEVELS]
    keys = [["country", "sex"], ["state", "sex"]]
    for above, below, key in zip(frames, frames[1:], keys, strict=False):
        summed = below.group_by(key, maintain_order=True).agg(pl.col("count").sum())
        joined = above.join(summed, on=key, nulls_equal=True)
        assert joined.height == above.height
        assert (joined["count"] == joined["count_right"]).all()
    for frame in frames:
        assert (frame["count"] >= 0).all()
        assert (frame["count_lower"] <= frame["count"]).all()
        assert (frame["count_upper"] >= frame["count"]).all()
    spent = session.balance()[0].spent
    again = people.hierarchy(LEVELS, ["sex"], epsilon="0.1", delta=delta).release(token="x")
    assert again.replayed is not None
    assert session.balance()[0].spent == spent
    assert all(
        a.equals(found.frame(n)) for a, n in zip(map(again.frame, LEVELS), LEVELS, strict=True)
    )
    assert dt.verify(found.certificate, session.ledger).ok


def test_public_numbers_are_exact_and_said_to_be_unprotected(session) -> None:
    """They come from the public table alone, and every output says what they are."""
    people = session.table("people")
    asked = people.hierarchy(LEVELS, ["sex"], epsilon="0.1", invariants={"state": "in_state"})
    found = asked.release()
    assert found.frame("state", [])["count"].to_list() == [7, 8]
    assert found.frame("country", [])["count_lower"].to_list() == [15]
    said = "places.in_state, which is public: it is taken as it is, without noise, and is not"
    for text in (str(asked.explain()), found.summary(), *[" ".join(found.notes)]):
        assert said in " ".join(text.replace("│", " ").split())
    (entry,) = [m for m in found.certificate.content["measurements"] if "protected" in m]
    assert entry["mechanism"] == "none"
    assert entry["protected"] is False
    assert entry["measures"]["level"] == "state"
    assert found.certificate.content["question"]["asked"]["invariants"] == {
        "state": "places.in_state"
    }
    # Where the public number is another one than the data's, it is the public one that is kept.
    other = people.hierarchy(LEVELS, epsilon=5 * 10**5, invariants={"county": "in_state"})
    assert other.release().frame("county", [])["count"].to_list() == [7, 7, 7, 8, 8, 8]


def test_places_and_numbers_do_not_depend_on_the_data(tmp_path) -> None:
    """Of an empty table and of one whose people live elsewhere, the same places come out."""
    empty = PEOPLE.clear()
    elsewhere = PEOPLE.with_columns(pl.lit("zz").alias("county"))
    frames = []
    for i, people in enumerate((PEOPLE, empty, elsewhere)):
        (tmp_path / str(i)).mkdir()
        sources = {"people": people, "places": PLACES}
        with dt.open(policy(tmp_path / str(i)), sources=sources) as opened:
            asked = opened.table("people").hierarchy(LEVELS, ["sex"], epsilon=1)
            frames.append((asked.release().frame("county"), str(asked.explain())))
    keys = ["country", "state", "county", "sex"]
    assert all(f.select(keys).equals(frames[0][0].select(keys)) for f, _ in frames)
    assert {text for _, text in frames} == {frames[0][1]}


def test_units_count_with_so_many_rows(tmp_path) -> None:
    """Of a unit no more rows count than its limit, and the noise is for as many."""
    people = pl.DataFrame({"who": [1] * 10 + [2], "county": ["a"] * 5 + ["b"] * 5 + ["d"]})
    made = policy(tmp_path, unit="who", max_groups=1, max_rows=3)
    made["tables"]["people"]["columns"] = {}
    with dt.open(made, sources={"people": people, "places": PLACES}) as opened:
        rows = opened.table("people")
        found = rows.hierarchy(LEVELS, epsilon=5 * 10**5).release()
        assert found.frame("state", [])["count"].to_list() == [3, 1]
        two = rows.hierarchy(LEVELS, epsilon=1, delta=0, max_rows=2)
        one = rows.hierarchy(LEVELS, epsilon=1, delta=0, max_rows=1)
        scales = [q._plan.levels[0].cells.scale for q in (one, two)]
        assert scales[1] == 2 * scales[0]
        assert "at most 3 rows" in " ".join(found.notes)


def test_rows_that_no_column_names_are_charged_as_a_group(tmp_path) -> None:
    """Where a unit may have three rows, noise is for one of them at a third of the epsilon."""
    made = policy(tmp_path)
    made["units"] = {"household": {"rows": {"people": 3}}}
    with dt.open(made, sources={"people": PEOPLE, "places": PLACES}) as opened:
        asked = opened.table("people").hierarchy(LEVELS, ["sex"], epsilon=1, delta=0)
        assert asked.loss.charge.epsilon == 1
        assert asked.loss.promise.unit == "household"
        drawn = [n for v in asked._plan.levels for n in (v.cells, v.total)]
        assert sum(1 / n.scale for n in drawn) == F(1, 3)


def test_previews_say_how_wide_intervals_will_be(session) -> None:
    """The half-widths of a preview are those of the release, and cost nothing."""
    asked = session.table("people").hierarchy(LEVELS, ["sex"], epsilon=1)
    spent = session.balance()[0].spent
    frame = asked.preview().frame
    assert session.balance()[0].spent == spent
    assert "a cell alone" in str(asked.preview())
    assert (frame["cell"] <= frame["cell_alone"] + 1e-9).all()
    found = asked.release().frame("county")
    assert float((found["upper"] - found["lower"]).max()) / 2 == pytest.approx(frame["cell"][2])
    with pytest.raises(AttributeError, match="nothing has been released"):
        _ = asked.frame


@pytest.mark.parametrize("epsilon", ["1e-6", "1e-3", 1])
def test_any_number_of_people_and_any_epsilon_have_an_answer(tmp_path, epsilon) -> None:
    """No people at all, or noise far above them, give counts that add up all the same."""
    sources = {"people": PEOPLE.clear(), "places": PLACES}
    with dt.open(policy(tmp_path), sources=sources) as opened:
        found = opened.table("people").hierarchy(LEVELS, ["sex"], epsilon=epsilon).release()
        assert found.frame("country")["count"].sum() == found.frame("county")["count"].sum()
        assert "place" in found.summary()


REFUSED = [
    ({"levels": ["state"]}, ArgumentError, "two at least"),
    ({"levels": "state"}, ArgumentError, "must be a list"),
    ({"levels": ["state", "state"]}, ArgumentError, "twice"),
    ({"levels": ["state", "town"]}, ArgumentError, "no public table has the columns state, town"),
    ({"levels": ["county", "state"]}, ArgumentError, "not nested"),
    (
        {"levels": ["in_state", "state", "county"], "by": ["state"]},
        ArgumentError,
        "a level already",
    ),
    ({"by": ["seks"]}, UnknownNameError, "sex"),
    ({"by": "sex"}, ArgumentError, "must be a list"),
    ({"by": ["sex", "sex"]}, ArgumentError, "twice"),
    ({"epsilon": 0}, ArgumentError, "epsilon"),
    ({"epsilon": "1e-20"}, BoundsError, "epsilon is too small"),
    ({"totals": 1}, ArgumentError, "totals"),
    ({"division": {"state": 1}}, ArgumentError, "country"),
    ({"places": "people"}, ArgumentError, "is private"),
    ({"places": "place"}, ArgumentError, "places"),
    ({"invariants": {"town": "people"}}, ArgumentError, "no level"),
    ({"invariants": {"county": "peopel"}}, ArgumentError, "people"),
    ({"invariants": {"county": "people.sex"}}, ArgumentError, "no public table"),
    ({"invariants": {"state": "people"}}, ArgumentError, "two numbers"),
    ({"invariants": {"county": "state"}}, ArgumentError, "whole numbers"),
    ({"invariants": ["state"]}, ArgumentError, "mapping"),
]


def test_places_that_are_taken_from_the_data_are_seen(tmp_path, monkeypatch) -> None:
    """Were only counties listed in which somebody lives, an empty one would be missing."""

    def listed(rows, levels, table):
        found = public_levels(rows, levels, table)
        held = set(PEOPLE["county"])
        return replace(found, rows=[row for row in found.rows if row[-1] in held])

    for i, mistake in enumerate((None, listed)):
        if mistake is not None:
            monkeypatch.setattr(_asked_hierarchy, "public_levels", mistake)
        (tmp_path / str(i)).mkdir()
        sources = {"people": PEOPLE, "places": PLACES}
        with dt.open(policy(tmp_path / str(i)), sources=sources) as opened:
            found = opened.table("people").hierarchy(LEVELS, epsilon=1).release()
        complete = found.frame("county", [])["county"].to_list() == PLACES["county"].to_list()
        assert complete is (mistake is None)


@pytest.mark.parametrize(("given", "kind", "words"), REFUSED)
def test_what_cannot_be_asked_is_refused_before_it_is_charged(session, given, kind, words) -> None:
    """With the argument's name and what would do; no account changes."""
    spent = session.balance()[0].spent
    asked = {"levels": LEVELS, "by": ["sex"], "epsilon": 1} | given
    with pytest.raises(kind, match=words):
        session.table("people").hierarchy(asked.pop("levels"), asked.pop("by"), **asked)
    assert session.balance()[0].spent == spent


@pytest.mark.parametrize(
    ("column", "values", "words"),
    [
        ("state", ["n", "n", "n", "n", "s", "s"], "contradict one another"),
        ("people", [4, 0, 3, 2, 5, -1], "at least 0"),
        ("people", [4, 0, 3, 2, 5, None], "at least 0"),
        ("county", ["a", "b", "c", "d", "e", None], "without a county"),
    ],
)
def test_public_tables_that_contradict_themselves_are_refused(
    tmp_path, column, values, words
) -> None:
    """Numbers that do not add up, are missing or below 0, and rows that name no place."""
    places = PLACES.with_columns(
        pl.Series(column, values), pl.Series("all", [15] * 6), pl.Series("odd", [7, 7, 7, 9, 8, 8])
    )
    if column == "state":
        places = places.with_columns(pl.Series("in_state", [7, 7, 7, 7, 8, 8]))
    sources = {"people": PEOPLE, "places": places}
    with dt.open(policy(tmp_path), sources=sources) as opened:
        public = {"state": "in_state", "county": "people"}
        with pytest.raises(ArgumentError, match=words):
            opened.table("people").hierarchy(LEVELS, epsilon=1, invariants=public)


def test_too_many_counts_are_refused(session, monkeypatch) -> None:
    """Before anything is counted."""
    monkeypatch.setattr(_hierarchy, "MOST_CELLS", 10)
    with pytest.raises(BoundsError, match="27 noisy counts"):
        session.table("people").hierarchy(LEVELS, ["sex"], epsilon=1)


def test_a_budget_that_is_spent_and_a_failure_say_no_more_than_that(session, monkeypatch) -> None:
    """A charge that no account bears spends nothing; what fails after it stays charged."""
    asked = session.table("people").hierarchy(LEVELS, ["sex"], epsilon=10**6)
    asked.release()
    with pytest.raises(BudgetError):
        session.table("people").hierarchy(LEVELS, ["sex"], epsilon=10).release()


def test_what_fails_after_the_charge_says_nothing(session, monkeypatch) -> None:
    """Whatever it was, the same words; and it stays charged."""
    asked = session.table("people").hierarchy(LEVELS, ["sex"], epsilon=1)

    def fail(self, measured):
        raise ZeroDivisionError("county a has 4 people")

    monkeypatch.setattr(HierarchyPlan, "counts", fail)
    spent = session.balance()[0].spent
    with pytest.raises(EngineError) as refused:
        asked.release()
    assert "county" not in str(refused.value)
    assert session.balance()[0].spent != spent


def test_a_unit_names_no_place(tmp_path) -> None:
    """Nor does a column of another kind than the public one."""
    made = policy(tmp_path, unit="county", max_groups=1, max_rows=1)
    sources = {"people": PEOPLE, "places": PLACES}
    with (
        dt.open(made, sources=sources) as opened,
        pytest.raises(QueryError, match="who is protected"),
    ):
        opened.table("people").hierarchy(LEVELS, epsilon=1)
    numbered = PLACES.with_columns(pl.Series("county", range(6)))
    sources = {"people": PEOPLE, "places": numbered}
    (tmp_path / "b").mkdir()
    with dt.open(policy(tmp_path / "b"), sources=sources) as opened:
        people = opened.table("people")
        with pytest.raises(BoundsError, match="integer in the public table"):
            people.hierarchy(LEVELS, epsilon=1)


def test_pictures_are_drawn(session, tmp_path) -> None:
    """Of a hierarchy with cells, and of one without."""
    people = session.table("people")
    for by in ([], ["sex"]):
        path = tmp_path / f"{len(by)}.png"
        people.hierarchy(LEVELS, by, epsilon=1).release().plot(path)
        assert path.stat().st_size > 10_000
