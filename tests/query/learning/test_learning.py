"""Bounds, limits and keys that are learned: what is found, what is said of it, what it costs."""

from __future__ import annotations

import json
from fractions import Fraction as F

import numpy as np
import polars as pl
import pytest

import dither as dt
from dither.engines.duckdb import DuckDBEngine
from dither.errors import (
    ArgumentError,
    BoundsError,
    BudgetError,
    CertificateError,
    EngineError,
    PolicyError,
    QueryError,
    TokenError,
)
from dither.mechanisms import DiscreteGaussian, DiscreteLaplace
from dither.plan.lowering.magnitudes import GRIDS, SIZES
from dither.plan.schema import Kind
from dither.query.learning._histogram_ends import ends_of, limit_of, outside_of, threshold
from dither.query.learning._learned import LearnedBounds, LearnedKeys, LearnedLimits

SURE = 10**6
"""An epsilon at which noise is nothing."""


def opened(folder, frame, columns=None, *, budget=None, **table):
    """A session on one table ``t``."""
    spending = {"epsilon": 10**9, "delta": "1e-3", "ledger": str(folder / "learned.ledger")}
    policy = {
        "budget": spending | (budget or {}),
        "tables": {"t": {"columns": columns or {}, **table}},
    }
    return dt.open(policy, sources={"t": frame})


UNITS = {"unit": "u", "max_groups": 1, "max_rows": 1}

EDGES = {
    "everybody equal": ([100.0] * 50, (70, 100)),
    "two people": ([3.0, 20.0], (2, 20)),
    "all zero": ([0.0] * 50, (0, F("1e-9"))),
    "both zeros": ([0.0, -0.0] * 25, (0, F("1e-9"))),
    "negative only": ([-5.0, -1.0] * 25, (-5, F("-0.7"))),
    "both signs": ([-450.0, 0.25] * 25, (-500, F("0.3"))),
    "huge": ([1e14] * 50, (7 * 10**13, 10**14)),
    "tiny": ([2.5e-9] * 50, (2 * F("1e-9"), 3 * F("1e-9"))),
    "with NULL and NaN": ([None, float("nan"), 10.0] * 20, (7, 10)),
}


@pytest.mark.parametrize("case", EDGES)
def test_bounds_are_the_ends_of_the_cells_that_hold_the_values(tmp_path, case):
    """With next to no noise they hold every value, and the next cell holds none."""
    values, expected = EDGES[case]
    with opened(tmp_path, pl.DataFrame({"x": values}, schema={"x": pl.Float64})) as session:
        found = session.learn("t", "x", epsilon=SURE)
    assert isinstance(found, LearnedBounds)
    assert (found.lower, found.upper) == expected
    assert found.outside == 0
    # The sum of two steps is told to half a one, of some values.
    assert found.outside_at_most <= 0.5 / (0.49 + len(values) / 3)


WHOLE = {
    "everybody 1": ([1] * 20, (1, 2)),
    "everybody 0": ([0] * 20, (0, 1)),
    "a scale": ([1, 2, 3, 4, 5] * 5, (1, 5)),
    "ages": ([0, 110] * 20, (0, 150)),
    "one below zero": ([-1] * 9, (-1, 0)),
    "the last step": ([10**18] * 9, (700000000000000001, 10**18)),
}


@pytest.mark.parametrize("case", WHOLE)
def test_bounds_of_whole_numbers_are_whole(tmp_path, case):
    """And where one number is all there is, they are still two."""
    values, expected = WHOLE[case]
    with opened(tmp_path, pl.DataFrame({"x": values})) as session:
        found = session.learn("t", "x", epsilon=SURE)
    assert (found.lower, found.upper) == expected


@pytest.mark.parametrize(
    ("values", "share"),
    [([1e200, 5.0], 0.5), ([float("inf"), 5.0, 5.0, 5.0], 0.25), ([-(2.0**1000), 5.0], 0.5)],
)
def test_what_lies_beyond_the_grid_is_outside_of_any_bounds(tmp_path, values, share):
    """It widens nothing, infinities included, and is told."""
    with opened(tmp_path, pl.DataFrame({"x": values})) as session:
        found = session.learn("t", "x", epsilon=SURE)
    assert (found.lower, found.upper) == (3, 5)
    assert found.outside == pytest.approx(share, abs=0.01)
    assert found.outside_at_most >= share


NOTHING = {
    "no rows": ([], SURE),
    "all NULL": ([None] * 30, SURE),
    "all NaN": ([float("nan")] * 30, SURE),
    "all infinite": ([float("inf")] * 30, SURE),
    "a tiny epsilon": ([5.0] * 30, "1e-5"),
}


@pytest.mark.parametrize("case", NOTHING)
@pytest.mark.parametrize("units", [False, True])
def test_where_nothing_can_be_told_it_is_said_and_charged(tmp_path, case, units):
    """No bounds, no line for the policy, no fact; the account has paid.

    Noise is next to nothing in all but the last, where a cell passes with probability 0.001.
    """
    values, epsilon = NOTHING[case]
    frame = pl.DataFrame({"x": values}, schema={"x": pl.Float64}).with_row_index("u")
    table = UNITS if units else {}
    with opened(tmp_path, frame, {"x": {"bounds": "learned"}}, **table) as session:
        found = session.learn("t", "x", epsilon=epsilon)
        assert (found.lower, found.upper, found.outside) == (None, None, None)
        assert found.policy is None
        assert "nothing could be told from noise" in found.summary()
        assert session.balance()[0].spent.epsilon == F(epsilon)
        assert session.facts == ()
        with pytest.raises(BoundsError, match=r"session.learn\('t', 'x', epsilon=0.1\)"):
            session.sql("SELECT AVG(x) AS m FROM t")


# --- what is said of the error --------------------------------------------------------------------


def simulated(counts, noise, rng):
    """Noisy counts by the law of the noise, from a seeded generator: a simulation, no release."""
    if isinstance(noise, DiscreteGaussian):
        return counts + np.round(rng.normal(0, float(noise.sigma2) ** 0.5, counts.shape)).astype(
            np.int64
        )
    r = np.exp(-1 / float(noise.scale))
    draws = rng.geometric(1 - r, (2, *counts.shape)) - 1
    return counts + draws[0] - draws[1]


SHAPES = {
    "nobody": lambda rng, n: np.array([]),
    "everybody equal": lambda rng, n: np.full(n, 7.0),
    "normal": lambda rng, n: rng.normal(40, 15, n),
    "heavy tails": lambda rng, n: rng.standard_cauchy(n) * 100,
    "lognormal": lambda rng, n: rng.lognormal(3, 2, n),
}


@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.parametrize("n", [2, 300, 5000])
def test_the_share_outside_is_at_most_what_is_said(shape, n):
    """In 95 % of releases; and bounds reach beyond all data in few, and by one cell.

    400 runs: were a statement true with probability 0.95, it would fail more than 42 times with
    probability below 1e-5. Ends beyond the data have probability 0.1 or so, and more than 75 of 400
    one of 1e-6; further ones have 0.001, and more than 7 one of 1e-7.
    """
    rng = np.random.default_rng(11)
    grid, alpha = GRIDS[Kind.REAL], F(1, 20)
    first, second = DiscreteLaplace(F(40, 3)), DiscreteLaplace(F(40))
    edges = np.array([float(e) for e in grid.edges])
    values = SHAPES[shape](rng, n)
    exact = np.histogram(values, edges)[0]
    false, beyond, far = 0, 0, 0
    for _ in range(400):
        found = ends_of(simulated(exact, first, rng), first, alpha)
        if found is None:
            continue
        low, high = found
        inside = int(exact[low : high + 1].sum())
        sides = np.array([exact[:low].sum(), inside, exact[high + 1 :].sum()])
        told = simulated(sides, second, rng)
        share = outside_of(told[[0, 2]], int(told[1]), second, 0.95)
        truth = 1 - inside / max(exact.sum(), 1)
        false += truth > share.most
        assert 0 <= share.expected <= share.most <= 1
        seen = np.flatnonzero(exact)
        beyond += not seen.size or low < seen[0] or high > seen[-1]
        far += not seen.size or low < seen[0] - 3 or high > seen[-1] + 3
    assert false <= 42
    assert beyond <= 75
    assert far <= 7


def test_an_empty_histogram_seldom_has_ends():
    """Were the threshold that of one cell, one of 290 empty ones would pass it nearly always."""
    rng = np.random.default_rng(3)
    noise, empty = DiscreteLaplace(F(10)), np.zeros(292, dtype=np.int64)
    found = [ends_of(simulated(empty, noise, rng), noise, F(1, 20)) for _ in range(400)]
    # 0.001 a run: more than 7 of 400 with probability below 1e-7.
    assert sum(f is not None for f in found) <= 7
    careless = threshold(noise, 1, F(1, 20))
    passed = [(simulated(empty, noise, rng) >= careless).any() for _ in range(100)]
    assert sum(passed) > 90


def test_thresholds_keep_their_word_exactly():
    """The chance that one of so many empty cells passes, by the exact law of the noise."""
    for scale, cells in ((F(1, 3), 5), (F(10), 292), (F(500), 29)):
        noise = DiscreteLaplace(scale)
        t = threshold(noise, cells)
        assert cells * noise.upper_tail(t) <= F(1, 1000) < cells * noise.upper_tail(t - 1)


def test_a_limit_cuts_a_small_share_and_does_not_follow_the_noise_above():
    """Nine in ten units have 1 row and one has 2 to 5; beyond there is noise alone."""
    rng = np.random.default_rng(5)
    counts = np.zeros(len(SIZES), dtype=np.int64)
    counts[:5] = [9000, 400, 300, 200, 100]
    noise = DiscreteLaplace(F(20))
    found = [limit_of(simulated(counts, noise, rng), noise, F(1, 20)) for _ in range(50)]
    # 600 of 10,000 lie above 1, 300 above 2, and noise moves each by some 60.
    assert set(found) <= {1, 2}
    assert limit_of(np.zeros(5, dtype=np.int64), noise, F(1, 20)) is None


# --- limits and keys ------------------------------------------------------------------------------


@pytest.fixture
def visits():
    """100 units with 1 to 5 rows in 1 to 3 groups, each size as often as the others."""
    rows = [
        {"u": u, "g": "abc"[i % (1 + u % 3)], "x": float(i)}
        for u in range(100)
        for i in range(1 + u % 5)
    ]
    return pl.DataFrame(rows)


def test_limits_are_those_of_nearly_all_units(tmp_path, visits):
    """By group and without: the share of units that have more is told."""
    with opened(tmp_path, visits, **UNITS) as session:
        whole = session.learn("t", epsilon=SURE)
        by = session.learn("t", by=["g"], epsilon=SURE)
    assert isinstance(whole, LearnedLimits)
    assert (whole.max_rows, whole.max_groups, whole.cut) == (5, None, {"max_rows": 0.0})
    sizes = visits.group_by("u").agg(
        pl.col("g").n_unique().alias("groups"), pl.col("g").value_counts(sort=True).first()
    )
    assert by.max_groups == sizes["groups"].max()
    assert by.by == ["g"]
    assert by.policy == f"max_groups = {by.max_groups}\nmax_rows = {by.max_rows}"
    assert by.cut_at_most["max_groups"] < 0.01


def test_keys_are_those_that_enough_units_have(tmp_path):
    """A value of one person is not shown; what is learned is a list for the policy."""
    frame = pl.DataFrame({"u": range(201), "g": ["b"] * 100 + ['o"c'] * 100 + ["only mine"]})
    with opened(tmp_path, frame, {"g": {"values": "learned"}}, **UNITS) as session:
        found = session.learn("t", "g", kind="keys", epsilon=1, delta="1e-6")
        assert isinstance(found, LearnedKeys)
        assert found.values == ["b", 'o"c']
        assert found.policy == 'g = { values = ["b", "o\\"c"] }'
        question = session.sql("SELECT g, COUNT(*) AS n FROM t GROUP BY g")
        assert question.release(SURE, 0).frame["n"].to_list() == [100, 100]
        assert session.balance()[0].spent.delta == F("1e-6")


def test_days_are_learned_as_days(tmp_path):
    """What the ledger holds as text becomes dates again."""
    import datetime

    day = datetime.date(2024, 2, 29)
    frame = pl.DataFrame({"d": [day] * 200})
    with opened(tmp_path, frame, {"d": {"values": "learned"}}) as session:
        assert session.learn("t", "d", kind="keys", epsilon=1).values == [day]
        assert session.tables["t"].columns["d"].values == (day,)


# --- the road: charge, replay, crash, certificate -------------------------------------------------


@pytest.fixture
def costs():
    """Costs of 500 people."""
    return pl.DataFrame({"u": range(500), "cost": [float(1 + i % 90) for i in range(500)]})


LEARNED = {"cost": {"bounds": "learned"}}


def test_it_is_charged_once_and_replayed_free(tmp_path, costs):
    """In a later session too; and the same token for something else is refused."""
    with opened(tmp_path, costs, LEARNED, **UNITS) as session:
        first = session.learn("t", "cost", epsilon=2, token="monday")
        assert session.balance()[0].spent.epsilon == 2
    with opened(tmp_path, costs, LEARNED, **UNITS) as session:
        again = session.learn("t", "cost", epsilon=2, token="monday")
        assert again.replayed
        assert again.frame.equals(first.frame)
        assert (again.lower, again.upper) == (first.lower, first.upper)
        assert session.balance()[0].spent.epsilon == 2
        with pytest.raises(TokenError):
            session.learn("t", "cost", epsilon=3, token="monday")


@pytest.mark.parametrize("neighbours", ["add_remove", "replace_one"])
@pytest.mark.parametrize("unit", [True, False])
def test_both_steps_together_cost_what_was_asked(tmp_path, costs, unit, neighbours):
    """The exact scales of both noises, at the sensitivities that are claimed, add up to epsilon."""
    table = UNITS if unit else {}
    budget = {"neighbours": neighbours}
    with opened(tmp_path, costs, budget=budget, **table) as session:
        learned = [session.learn("t", "cost", epsilon="0.7")]
        if unit:
            learned.append(session.learn("t", by=["cost"], epsilon="0.7"))
        for found in learned:
            body = found.certificate.to_dict()
            parts = 2 ** (15 if "cost" in str(found.certificate.content["text"]["sql"]) else 0)
            shares = [F(m["l1"]) / F(m["scale"]) for m in body["measurements"]]
            assert sum(shares) == F("0.7") == F(body["loss"]["epsilon"])
            once = 2 if neighbours == "replace_one" else 1
            scale = parts if unit and found is learned[0] else 1
            assert {F(m["l1"]) for m in body["measurements"]} == {F(once * scale)}
        assert session.balance()[0].spent.epsilon == F("0.7") * len(learned)


def test_nothing_is_read_before_the_charge_and_two_steps_after(tmp_path, costs, monkeypatch):
    """The engine runs twice, each time with an account that has paid."""
    ran = []
    run = DuckDBEngine.run

    def watched(engine, job, schema, key):
        ran.append((session.balance()[0].spent.epsilon, len(job.measurements)))
        return run(engine, job, schema, key)

    monkeypatch.setattr(DuckDBEngine, "run", watched)
    with opened(tmp_path, costs, **UNITS) as session:
        session.learn("t", "cost", epsilon=1)
        assert ran == [(1, 1), (1, 1)]


def test_what_is_too_dear_is_refused_and_costs_nothing(tmp_path, costs):
    """With the epsilon that would fit."""
    with opened(tmp_path, costs, budget={"epsilon": 1}, **UNITS) as session:
        with pytest.raises(BudgetError, match="fits with epsilon = 1"):
            session.learn("t", "cost", epsilon=2)
        assert session.balance()[0].spent.epsilon == 0


@pytest.mark.parametrize("step", [1, 2])
def test_an_engine_that_fails_leaves_a_charge_and_no_fact(tmp_path, costs, monkeypatch, step):
    """At either step: one generic message, an entry without an answer, and later sessions open."""
    run, calls = DuckDBEngine.run, []

    def failing(engine, job, schema, key):
        calls.append(1)
        if len(calls) == step:
            raise RuntimeError("a value: 42")
        return run(engine, job, schema, key)

    with opened(tmp_path, costs, LEARNED, **UNITS) as session:
        with monkeypatch.context() as patch:
            patch.setattr(DuckDBEngine, "run", failing)
            with pytest.raises(EngineError) as caught:
                session.learn("t", "cost", epsilon=1, token="a")
        assert "42" not in str(caught.value)
        assert session.balance()[0].spent.epsilon == 1
        with pytest.raises(TokenError, match="never stored"):
            session.learn("t", "cost", epsilon=1, token="a")
    with opened(tmp_path, costs, LEARNED, **UNITS) as session:
        assert session.facts == ()


def test_the_certificate_agrees_with_the_ledger_and_names_what_it_rests_on(tmp_path, costs):
    """That of what is learned, and that of a question that uses it; a changed fact is found."""
    ledger = tmp_path / "learned.ledger"
    with opened(tmp_path, costs, LEARNED, **UNITS) as session:
        found = session.learn("t", "cost", epsilon=20)
        assert dt.verify(found.certificate, ledger).ok
        question = session.sql("SELECT AVG(cost) AS m FROM t")
        assert f"from ledger entry {found.certificate.content['ledger']['entry']}" in str(
            question.explain()
        )
        certificate = question.release(1).certificate
        assert dt.verify(certificate, ledger).ok
    body = certificate.to_dict()
    (fact,) = body["learned"]
    assert fact["bounds"] == [str(found.lower), str(found.upper)]
    assert (fact["epsilon"], fact["entry"]) == ("20", found.certificate.content["ledger"]["entry"])
    fact["bounds"][1] = "7"
    with pytest.raises(CertificateError):
        dt.verify(body, ledger)


def test_a_question_that_rests_on_other_bounds_is_another_request(tmp_path, costs):
    """Its token does not replay an answer that was clamped elsewhere; of other columns it does."""
    columns = LEARNED | {"u": {"type": "integer"}}
    with opened(tmp_path, costs, columns, **UNITS) as session:
        session.learn("t", "cost", epsilon=20)
        session.sql("SELECT AVG(cost) AS m FROM t").release(1, token="mean")
        session.sql("SELECT COUNT(*) AS n FROM t").release(1, token="count")
        session.learn("t", "cost", epsilon=20)
        assert session.sql("SELECT COUNT(*) AS n FROM t").release(1, token="count").replayed
        with pytest.raises(TokenError):
            session.sql("SELECT AVG(cost) AS m FROM t").release(1, token="mean")


# --- facts that a policy uses ---------------------------------------------------------------------


def test_a_policy_uses_the_newest_fact_in_this_session_and_later(tmp_path, costs):
    """Bounds of the column are there, told, and cost nothing more."""
    with opened(tmp_path, costs, LEARNED, **UNITS) as session:
        with pytest.raises(BoundsError, match=r"epsilon=0\.1"):
            session.sql("SELECT AVG(cost) AS m FROM t")
        first = session.learn("t", "cost", epsilon=20)
        assert session.tables["t"].columns["cost"].upper == first.upper >= 70
        session.sql("SELECT AVG(cost) AS m FROM t").release(1)
    with opened(tmp_path, costs.with_columns(pl.col("cost") * 100), LEARNED, **UNITS) as session:
        assert session.tables["t"].columns["cost"].upper == first.upper
        second = session.learn("t", "cost", epsilon=20)
        assert session.tables["t"].columns["cost"].upper == second.upper >= 7000
        ends = f"[{second.lower}, {second.upper}]"
        assert f"bounds of cost of t {ends}, from ledger entry" in repr(session)


def test_declared_bounds_are_not_replaced(tmp_path, costs):
    """What is learned beside them is shown, and used where the policy asks for it alone."""
    with opened(tmp_path, costs, {"cost": {"bounds": [0, 7]}}, **UNITS) as session:
        assert session.learn("t", "cost", epsilon=20).upper == 100
        assert session.tables["t"].columns["cost"].upper == 7
        assert session.facts == ()


@pytest.mark.parametrize("change", ["type", "unit", "neighbours"])
def test_a_changed_policy_does_not_use_a_fact_of_another(tmp_path, costs, change):
    """Another type, unit or neighbour relation: the bounds are to be learned again."""
    whole = costs.with_columns(pl.col("cost").cast(pl.Int64))
    with opened(tmp_path, whole, LEARNED, **UNITS) as session:
        session.learn("t", "cost", epsilon=20)
    columns, budget, table = dict(LEARNED), {}, dict(UNITS)
    if change == "type":
        columns = {"cost": {"bounds": "learned", "type": "real"}}
    else:
        # Accounts and tables are bound for good: another promise begins another ledger.
        source, target = tmp_path / "learned.ledger", tmp_path / "other.ledger"
        target.write_bytes(source.read_bytes())
        budget = {"neighbours": "replace_one"} if change == "neighbours" else {}
        table = {} if change == "unit" else dict(UNITS)
        with pytest.raises(dt.errors.LedgerError):
            opened(tmp_path, whole, columns, budget=budget, **table)
        return
    with opened(tmp_path, whole, columns, budget=budget, **table) as session:
        assert session.facts == ()
        assert session.tables["t"].columns["cost"].upper is None


def test_facts_of_another_promise_are_not_used():
    """Held by the promise of the entry, also where a ledger would let the table pass."""
    from types import SimpleNamespace

    from dither.policy._facts import Fact, learned_of
    from dither.privacy import Neighbours, Promise

    content = {"kind": "bounds", "table": "t", "column": "x", "type": "real", "lower": "0",
               "upper": "1"}  # fmt: skip
    column = SimpleNamespace(name="x", kind=Kind.REAL)
    schema = SimpleNamespace(table=lambda _: SimpleNamespace(columns={"x": column}))
    declared = SimpleNamespace(private=True, columns={"x": SimpleNamespace(learned="bounds")})
    policy = SimpleNamespace(
        tables={"t": declared}, units={"t": SimpleNamespace(name="p")}, promise=Promise
    )
    for promise, used in (
        (Promise("p"), True),
        (Promise("q"), False),
        (Promise("p", Neighbours.REPLACE), False),
    ):
        fact = Fact("bounds", "t", "x", content, SimpleNamespace(promise=promise, number=1))
        assert bool(learned_of(policy, [fact], schema)) is used


def test_limits_of_a_policy_are_learned(tmp_path, visits):
    """Until they are, every question is refused with the way out; then they bound it."""
    limits = {"unit": "u", "max_groups": "learned", "max_rows": "learned"}
    columns = {"g": {"values": ["a", "b", "c"]}}
    with opened(tmp_path, visits, columns, **limits) as session:
        with pytest.raises(BoundsError, match=r'session.learn\("t", by=\["..."\], epsilon=0.1\)'):
            session.sql("SELECT COUNT(*) AS n FROM t")
        session.learn("t", by=["g"], epsilon=SURE)
        table = session.tables["t"]
        release = session.sql("SELECT g, COUNT(*) AS n FROM t GROUP BY g").release(SURE, 0)
    counted = release.certificate.to_dict()
    assert (counted["max_groups"], counted["max_rows"]) == (table.max_groups, table.max_rows)
    assert release.frame["n"].sum() == pytest.approx(visits.height, abs=1)


def test_others_notes_are_no_facts(tmp_path, costs):
    """Whoever charges the same ledger may note what they like."""
    from dither import privacy
    from dither.accounting import BudgetFilter
    from dither.privacy import Promise

    with opened(tmp_path, costs, LEARNED, **UNITS) as session:
        loss = privacy.pure(1).promising(Promise("u of t"))
        caps = {"mine": BudgetFilter(F(9), F(0))}
        for i, answer in enumerate(("no JSON", "[]", json.dumps({"learned": {"kind": "bounds"}}))):
            entry = session.ledger.charge(
                caps, loss, token=f"t{i}", request="ab" * 32, note={"learn": "x"}
            ).entry
            session.ledger.store_answer(entry, answer)
        session.learn("t", "cost", epsilon=20)
        assert len(session.facts) == 1


# --- what is refused ------------------------------------------------------------------------------

REFUSED = {
    "text": (("t", "g"), {}, QueryError, "keys"),
    "no such column": (("t", "cots"), {}, QueryError, "did you mean 'cost'"),
    "no such table": (("tt", "cost"), {}, QueryError, "did you mean 't'"),
    "no such kind": (("t", "cost"), {"kind": "bound"}, ArgumentError, "bounds"),
    "limits of a column": (("t", "cost"), {"kind": "limits"}, ArgumentError, "column"),
    "bounds of nothing": (("t",), {"kind": "bounds"}, ArgumentError, "column"),
    "bounds by": (("t", "cost"), {"by": ["g"]}, ArgumentError, "by"),
    "by a text": (("t",), {"by": "g"}, ArgumentError, "list"),
    "keys of reals": (("t", "cost"), {"kind": "keys"}, QueryError, "too many"),
    "no epsilon": (("t", "cost"), {"epsilon": 0}, ArgumentError, "epsilon"),
    "a strange confidence": (("t", "cost"), {"confidence": 1}, ArgumentError, "confidence"),
}


@pytest.mark.parametrize("case", REFUSED)
def test_what_makes_no_sense_is_refused_and_costs_nothing(tmp_path, costs, case):
    """The argument is named, and the fix."""
    arguments, options, error, words = REFUSED[case]
    frame = costs.with_columns(g=pl.lit("a"))
    with opened(tmp_path, frame, **UNITS) as session:
        with pytest.raises(error, match=words):
            session.learn(*arguments, **{"epsilon": 1} | options)
        assert session.balance()[0].spent.epsilon == 0


def test_limits_need_a_unit_and_public_tables_nothing(tmp_path, costs):
    """Where a row is a person there is nothing to limit."""
    with opened(tmp_path, costs) as session, pytest.raises(QueryError, match="no column says"):
        session.learn("t", epsilon=1)


@pytest.mark.parametrize(
    ("column", "words"),
    [
        ({"bounds": "learned", "values": [1]}, "both bounds and values"),
        ({"bounds": "learned", "values": "learned"}, "both bounds and values"),
        ({"values": "learned"}, "use bounds"),
        ({"bounds": "learnt"}, "must be a list"),
    ],
)
def test_a_policy_that_contradicts_itself_is_refused(tmp_path, costs, column, words):
    """By the name of the field."""
    with pytest.raises(PolicyError, match=words):
        opened(tmp_path, costs, {"cost": column}, **UNITS)


def test_bounds_of_text_cannot_be_learned(tmp_path, costs):
    """A policy that says so is refused when it is opened."""
    frame = costs.with_columns(g=pl.lit("a"))
    with pytest.raises(PolicyError, match="of numbers"):
        opened(tmp_path, frame, {"g": {"bounds": "learned"}}, **UNITS)


def test_it_is_drawn_and_shown(tmp_path, costs):
    """As text, in a notebook and as a picture."""
    with opened(tmp_path, costs, **UNITS) as session:
        found = session.learn("t", "cost", epsilon=20)
        assert found.summary().startswith("bounds of cost: [")
        assert "<b>bounds of cost" in found._repr_html_()
        found.plot(str(tmp_path / "bounds.png"))
        limits = session.learn("t", by=["cost"], epsilon=20)
        limits.plot(str(tmp_path / "limits.png"))
    assert (tmp_path / "bounds.png").stat().st_size > 0


def test_a_refusal_names_bounds_that_were_learned_already(tmp_path):
    """Nobody is offered to pay twice: the policy has to say that it uses them."""
    frame = pl.DataFrame({"u": range(30), "x": [float(i) for i in range(30)], "y": [0.5] * 30})
    asked = "SELECT AVG({}) AS m FROM t"
    learned = 'write bounds = "learned" there to use those that were learned already, or write'
    with opened(tmp_path, frame, **UNITS) as session:
        with pytest.raises(BoundsError, match="learn them for epsilon") as before:
            session.sql(asked.format("x"))
        assert "already" not in str(before.value)
        session.learn("t", "x", epsilon=SURE)
        for made in (asked.format("x"), asked.format("2 * x")):
            with pytest.raises(BoundsError, match=learned):
                session.sql(made)
        with pytest.raises(BoundsError, match=learned):
            session.table("t").agg(m=dt.mean("x"))
        with pytest.raises(BoundsError, match="learn them for epsilon"):
            session.sql(asked.format("y"))
    # What was learned of another unit, or read as another kind, is no use here.
    with (
        opened(tmp_path, frame, {"x": {"type": "integer"}}, **UNITS) as session,
        pytest.raises(BoundsError, match="learn them for epsilon"),
    ):
        session.sql(asked.format("x"))
    with opened(tmp_path, frame, {"x": {"bounds": "learned"}}, **UNITS) as session:
        assert session.sql(asked.format("x")).explain(1)


def test_the_unit_is_nothing_to_learn_about(tmp_path):
    """Its values stand for people: whoever asks is told how these are counted."""
    frame = pl.DataFrame({"u": range(30), "x": [0.5] * 30})
    with opened(tmp_path, frame, **UNITS) as session:
        for kind in ("bounds", "keys"):
            with pytest.raises(QueryError, match=rf"{kind} of u: it says who .*COUNT\(DISTINCT u"):
                session.learn("t", "u", kind=kind, epsilon=1)
        for asked in ("AVG(u)", "SUM(u + 1)", "MEDIAN(u)", "MODE(u)"):
            with pytest.raises(BoundsError, match=r"who is protected.*COUNT\(DISTINCT u\)") as told:
                session.sql(f"SELECT {asked} AS x FROM t")
            assert "learn" not in str(told.value)
        assert session.balance()[0].spent.epsilon == 0
    text = frame.with_columns(pl.col("u").cast(pl.String))
    with (
        opened(tmp_path, text, **UNITS) as session,
        pytest.raises(BoundsError, match=r"COUNT\(DISTINCT u\)"),
    ):
        session.sql("SELECT MODE(u) AS x FROM t")
