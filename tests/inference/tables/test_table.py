"""Inference on protected tables: the same sums as a query, one charge, honest about many rows."""

from __future__ import annotations

import copy
import math
import pickle
from fractions import Fraction as F

import numpy as np
import polars as pl
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import dither as dt
from dither.errors import ArgumentError, BudgetError, DitherError, QueryError
from dither.inference.tables import _sums as model
from dither.mechanisms import DiscreteGaussian, DiscreteLaplace
from dither.query.tables._statistics import SumNoise
from inference.protected import session_over

COLUMNS = {
    "cost": {"bounds": [0, 100], "step": 0.01, "unit": "EUR"},
    "age": {"bounds": [0, 110], "nullable": False, "bins": [0, 40, 110]},
    "region": {"values": ["north", "south", "west"]},
    "wide": {},
    "same": {"values": [3]},
    "yes": {"values": [0, 1]},
}


def visits(n: int = 3000, people: int = 700, seed: int = 0) -> pl.DataFrame:
    """Visits of people who differ, and whose own visits are alike."""
    rng = np.random.default_rng(seed)
    pid = rng.integers(0, people, n)
    level = rng.normal(40, 15, people)
    return pl.DataFrame(
        {
            "pid": pid,
            "cost": level[pid] + rng.normal(0, 8, n),
            "age": rng.integers(0, 110, n),
            "region": rng.choice(["north", "south", "west"], n),
            "smokes": rng.random(n) < 0.3,
            "wide": rng.normal(0, 1, n),
            "same": np.full(n, 3),
            "yes": rng.integers(0, 2, n),
        }
    )


def opened(folder, frame=None, **given):
    """A session over these visits, or over the usual ones."""
    given = {"columns": COLUMNS} | given
    return session_over(visits() if frame is None else frame, folder, **given)


@pytest.fixture
def rows(tmp_path):
    """Each row is a person."""
    with opened(tmp_path) as session:
        yield session


@pytest.fixture
def people(tmp_path):
    """A column says whose a row is."""
    with opened(tmp_path, unit=True) as session:
        yield session


def entries(session) -> int:
    """Charges and answers in the ledger."""
    return len(list(session.ledger.entries()))


def spent(session):
    """What the account has spent."""
    return session.balance()[0].spent.epsilon


QUESTIONS = {
    "mean": lambda asked: asked.mean("cost"),
    "proportion": lambda asked: asked.proportion("smokes"),
    "condition": lambda asked: asked.proportion("cost > 50"),
    "zeros and ones": lambda asked: asked.proportion("yes"),
    "difference": lambda asked: asked.difference("cost", by="smokes"),
    "two of three": lambda asked: asked.difference("cost", "region", levels=("west", "north")),
    "by bins": lambda asked: asked.difference("cost", by="age"),
    "independence": lambda asked: asked.test_independence("region", "smokes"),
    "fit": lambda asked: asked.goodness_of_fit("region", {"north": 1, "south": 1, "west": 1}),
    "median": lambda asked: asked.median("cost"),
    "quantile": lambda asked: asked.quantile("age", 0.9, null=100),
    "quantiles": lambda asked: asked.quantiles("cost", bins=100),
}

QUESTIONS_TOO = QUESTIONS | {
    "normal": lambda asked: asked.mean("cost", shape="normal"),
    "one way": lambda asked: asked.f_oneway("cost", by="region"),
    "weighted": lambda asked: asked.weighted_mean("cost", "age"),
    "weighted share": lambda asked: asked.weighted_proportion("smokes", "age"),
    "weighted total": lambda asked: asked.weighted_total("cost", "age"),
    "linear": lambda asked: asked.regression("cost ~ age"),
    "logistic": lambda asked: asked.logistic_regression("smokes ~ age"),
    "table 1": lambda asked: asked.describe(["cost", "region"]),
}


def twins_of(found):
    """The same released result, copied and out of a pickle."""
    return [pickle.loads(pickle.dumps(found)), copy.deepcopy(found)]


@pytest.mark.parametrize("unit", [False, True])
@pytest.mark.parametrize("name", QUESTIONS_TOO)
def test_every_result_can_be_copied_and_pickled(tmp_path, name, unit):
    """With its certificate, and the same errors."""
    with opened(tmp_path, unit=unit) as session:
        asked = session.table("visits").infer(epsilon=1000, delta="1e-6")
        try:
            question = QUESTIONS_TOO[name](asked)
        except ArgumentError:
            pytest.skip("it is for rows that are people")
        found = question.release()
        for twin in [*twins_of(found), *twins_of(found)]:
            assert twin.summary() == found.summary()
            assert twin.certificate == found.certificate
        previewed = question.preview()
        assert all(str(twin) == str(previewed) for twin in twins_of(previewed))


# --- what is estimated ------------------------------------------------------------------------


def near(found, truth, within=0.02):
    """With next to no noise, the estimate is that of the people themselves."""
    assert found.estimate == pytest.approx(truth, abs=within)


def test_of_rows_the_estimate_is_theirs(rows):
    """Means, shares and differences, of the rows that filters leave."""
    frame = visits()
    asked = rows.table("visits").filter("age >= 18").infer(epsilon=10_000)
    kept = frame.filter(pl.col("age") >= 18)
    near(asked.mean("cost", shape="any").release(), kept["cost"].clip(0, 100).mean())
    near(asked.mean("cost").release(), kept["cost"].mean(), 0.3)
    near(asked.proportion("smokes").release(), kept["smokes"].mean())
    near(asked.proportion("cost > 50").release(), (kept["cost"] > 50).mean())
    near(asked.proportion("yes").release(), kept["yes"].mean())
    means = {key: part["cost"].clip(0, 100).mean() for (key,), part in kept.group_by("region")}
    found = asked.difference("cost", "region", levels=("west", "north"), shape="any").release()
    near(found, means["north"] - means["west"])


def test_of_people_the_estimate_is_of_their_own_averages(people):
    """However many rows each has: the mean of means, with the error of independent people."""
    asked = people.table("visits").infer(epsilon=10_000)
    own = visits().group_by("pid").agg(pl.col("cost").clip(0, 100).mean(), pl.col("smokes").mean())
    found = asked.mean("cost").release()
    near(found, own["cost"].mean())
    assert found.rows == own.height
    # The rows of one person are alike: as if they were independent, the error would be half that.
    assert found.se == pytest.approx(own["cost"].std() / math.sqrt(own.height), rel=0.1)
    assert found.se > 1.6 * visits()["cost"].std() / math.sqrt(visits().height)
    near(asked.proportion("smokes").release(), own["smokes"].mean())


def test_quantiles_are_those_of_rows_and_of_people(tmp_path):
    """Of people, each row of a person counts as much as any other of theirs, however many."""
    frame = visits()
    for unit in (False, True):
        (folder := tmp_path / str(unit)).mkdir()
        with opened(folder, unit=unit) as session:
            asked = session.table("visits").filter("region <> 'west'").infer(epsilon=10_000)
            kept = frame.filter(pl.col("region") != "west")
            weight = 1 / kept.select(pl.len().over("pid"))["len"] if unit else np.ones(kept.height)
            for x, within in (("cost", 0.3), ("age", 1)):
                found = asked.quantiles(x, [0.25, 0.5, 0.9]).release()
                order = kept[x].clip(0, 110).arg_sort()
                below = np.cumsum(np.asarray(weight)[order])
                at = np.searchsorted(below / below[-1], [0.25, 0.5, 0.9])
                truth = kept[x].clip(0, 100 if x == "cost" else 110).to_numpy()[order][at]
                np.testing.assert_allclose(found.estimate, truth, atol=within)
                assert found.rows == (kept["pid"].n_unique() if unit else kept.height)


def test_quantiles_of_whole_numbers_are_whole(rows):
    """And so are the ends of their intervals, which lie within the bounds."""
    found = rows.table("visits").infer(epsilon="0.05").quantile("age", 0.99).release()
    lower, upper = found.interval()
    assert {lower % 1, upper % 1, found.estimate % 1} == {0.0}
    assert "." not in found.summary().splitlines()[0].partition(": ")[2]
    assert 0 <= lower <= upper <= 110


def test_a_person_is_in_one_group(people):
    """So that groups are independent: together they have as many as there are people."""
    found = people.table("visits").infer(epsilon=10_000).difference("cost", by="smokes").release()
    assert found.rows == visits()["pid"].n_unique()


def test_joins_are_respected(tmp_path):
    """A question over two tables is one over the people of both."""
    made = {
        "budget": {"epsilon": 10**6, "ledger": str(tmp_path / "l")},
        "tables": {
            "visits": {"columns": COLUMNS},
            "coast": {"public": True, "unique": ["region"]},
        },
    }
    coast = pl.DataFrame({"region": ["north", "south", "west"], "sea": [True, False, True]})
    with dt.open(made, sources={"visits": visits(), "coast": coast}) as session:
        asked = session.table("visits").join("coast", on="region").infer(epsilon=10_000)
        near(asked.proportion("sea").release(), (visits()["region"] != "south").mean())


@pytest.mark.parametrize("what", QUESTIONS)
@pytest.mark.parametrize("unit", [False, True])
@pytest.mark.parametrize("neighbours", ["add_remove", "replace_one"])
def test_every_question_is_one_charge(tmp_path, what, unit, neighbours):
    """Explained and previewed for nothing; then one entry, of all that was allowed, and no more."""
    with opened(tmp_path, unit=unit, neighbours=neighbours) as session:
        question = QUESTIONS[what](session.table("visits").infer(epsilon="0.5"))
        assert "SELECT" in question.sql
        assert "who was sampled" in " ".join(str(question.explain()).split())
        assert str(question.preview())
        assert spent(session) == 0
        found = question.release()
        assert spent(session) == F(1, 2) == found.loss.charge.epsilon
        before = entries(session)
        assert found.summary()
        if hasattr(found, "interval"):
            lower, upper = np.asarray(found.interval(0.9)).T
            assert np.all((lower <= found.estimate) & (found.estimate <= upper))
            assert not np.any(found.se_sampling > found.se)
        assert np.all((found.pvalue > 0) & (found.pvalue <= 1))
        assert entries(session) == before
        assert found.certificate.content["loss"]["epsilon"] == "1/2"
        assert dt.verify(found.certificate, session.ledger).ok


def test_a_summary_says_who_is_counted(people, tmp_path):
    """People where they may have several rows; and n is not said to be public where it is not."""
    found = people.table("visits").infer(epsilon=9).median("cost").release()
    assert "people (measured with noise)" in found.summary()
    (tmp_path / "r").mkdir()
    with opened(tmp_path / "r", neighbours="replace_one") as session:
        for ask in (lambda a: a.mean("cost"), lambda a: a.median("cost")):
            found = ask(session.table("visits").filter("age > 9").infer(epsilon=9)).release()
            assert "rows (measured with noise)" in found.summary()


@pytest.mark.parametrize("unit", [False, True])
@pytest.mark.parametrize("ends", [(-(2**62), 2**62), (0, 2**40), (-1e300, 1e300), (0, 1e-200)])
def test_bounds_may_be_as_wide_or_as_narrow_as_any(tmp_path, ends, unit):
    """What is squared is scaled before, so that no number of the question leaves the engine's."""
    low, high = ends
    share = np.random.default_rng(4).random(600)
    x = [low + F(s) * (F(high) - F(low)) for s in share.tolist()]
    whole = isinstance(low, int) and high > 1
    values = [int(v) for v in x] if whole else [float(v) for v in x]
    frame = pl.DataFrame({"pid": np.arange(600) // 2, "x": values})
    kind = "integer" if whole else "real"
    columns = {"x": {"bounds": [repr(low), repr(high)], "type": kind}}
    with opened(tmp_path, frame, unit=unit, columns=columns) as session:
        asked = session.table("visits").infer(epsilon=1000)
        found = asked.mean("x", shape="any").release()
        span = float(high) / 2 - float(low) / 2
        assert abs(found.estimate - float(sum(map(F, values)) / 600)) < 0.01 * span
        assert 0.01 * span < found.se < 0.05 * span
        assert abs(asked.median("x").release().estimate - np.median(values)) < 0.1 * span


def test_a_public_n_costs_nothing(tmp_path):
    """Where rows are replaced and none is missing, all of epsilon is for the numbers."""
    frame = visits().with_columns(pl.lit(1.0).alias("x"))
    columns = {"x": {"bounds": [0, 2], "nullable": False}}
    with opened(tmp_path, frame, neighbours="replace_one", columns=columns) as session:
        found = session.table("visits").infer(epsilon=1).mean("x", shape="any").release()
        assert found.rows == frame.height
        assert spent(session) == 1


def test_the_same_token_is_replayed(people):
    """And gives the same numbers, free of charge; another question under it is refused."""
    asked = people.table("visits").infer(epsilon=1)
    first = asked.mean("cost").release(token="monday")
    again = asked.mean("cost").release(token="monday")
    assert again.estimate == first.estimate
    assert again.interval() == first.interval()
    assert spent(people) == 1
    plain = people.sql(asked.mean("cost").sql.partition(" /*")[0].replace("AVG", ""))
    with pytest.raises(DitherError):
        plain.release(1, token="monday")


def test_of_rows_the_question_is_ordinary_sql(rows):
    """What is released can be asked by hand, and is the same question."""
    question = rows.table("visits").infer(epsilon=1).mean("cost")
    assert rows.sql(question.sql).sql == question.sql


def test_results_are_asked_of_a_release_alone(rows):
    """A question has no estimate, and says how it would get one."""
    question = rows.table("visits").infer(epsilon=1).mean("cost")
    for name in ("estimate", "interval", "pvalue", "summary"):
        with pytest.raises(AttributeError, match=r"call \.release\(\)"):
            getattr(question, name)
    with pytest.raises(AttributeError, match="no attribute 'nothing'"):
        _ = question.nothing


# --- previews ---------------------------------------------------------------------------------


def test_a_preview_says_when_there_are_too_few(rows):
    """And with how many, or with which epsilon, it would do; nothing is read or spent."""
    found = rows.table("visits").infer(epsilon="0.01").mean("cost").preview(sizes=(50, 10**6))
    assert found.enough == (False, True)
    assert "50 people are too few" in str(found)
    assert "would do, or epsilon" in str(found)
    assert found.frame["reaches"][0] > found.frame["reaches"][1]
    better = rows.table("visits").infer(epsilon=F("0.01") * 10**6).mean("cost").preview(sizes=(50,))
    assert better.enough == (True,)
    for sizes in ((), (0,), (True,), (1.5,)):
        with pytest.raises(ArgumentError, match="sizes"):
            rows.table("visits").infer(epsilon=1).mean("cost").preview(sizes=sizes)


def test_a_preview_of_a_test_says_what_it_would_see(rows):
    """Smaller effects with more people; none at all with a handful."""
    question = rows.table("visits").infer(epsilon="0.1").test_independence("region", "smokes")
    found = question.preview(sizes=(20, 400, 100_000))
    assert found.widths[0] == math.inf
    assert found.widths[2] < found.widths[1] < 1
    assert found.enough == (False, False, True)


# --- what is refused --------------------------------------------------------------------------

REFUSED = {
    "no bounds": (lambda a: a.mean("wide"), "needs bounds"),
    "one value": (lambda a: a.mean("same"), "one value only"),
    "no number": (lambda a: a.mean("region"), "not a number"),
    "no column": (lambda a: a.mean("nothing"), "unknown column 'nothing'"),
    "no condition": (lambda a: a.proportion("region"), "neither true nor false"),
    "a number": (lambda a: a.proportion("cost"), "neither true nor false"),
    "no levels": (lambda a: a.difference("cost", by="wide"), "wide"),
    "three levels": (lambda a: a.difference("cost", by="region"), "3 levels"),
    "unknown level": (lambda a: a.difference("cost", "region", levels=("north", "x")), "declared"),
    "one level": (lambda a: a.difference("cost", "region", levels=("west", "west")), "different"),
    "bins by name": (lambda a: a.difference("cost", "age", levels=("[0, 40)", 3)), "levels"),
    "no table": (lambda a: a.test_independence("wide", "smokes"), "wide"),
    "one cell": (lambda a: a.goodness_of_fit("same"), "same"),
    "no chances": (lambda a: a.goodness_of_fit("region", {"north": 1}), "each level"),
    "no chance": (
        lambda a: a.goodness_of_fit("region", {"north": 0, "south": 1, "west": 1}),
        "probabilities",
    ),
    "few draws": (lambda a: a.test_independence("region", "smokes", draws=9), "draws"),
    "null": (lambda a: a.proportion("smokes", null=2), "null"),
    "shape": (lambda a: a.mean("cost", shape="round"), "shape"),
    "no quantile": (lambda a: a.quantile("cost", 1), "between 0 and 1"),
    "no quantiles": (lambda a: a.quantiles("cost", []), "between 0 and 1"),
    "quantile of no number": (lambda a: a.median("region"), "not a number"),
    "quantile without bounds": (lambda a: a.median("wide"), "needs bounds"),
    "one bin": (lambda a: a.median("cost", bins=1), "bins"),
    "injection": (lambda a: a.mean("cost) FROM visits --"), "cannot be read"),
}


@pytest.mark.parametrize("what", REFUSED)
@pytest.mark.parametrize("unit", [False, True])
def test_what_cannot_be_asked_is_refused(tmp_path, what, unit):
    """By name, before anything is spent, and without a value of the data."""
    ask, said = REFUSED[what]
    with opened(tmp_path, unit=unit) as session:
        with pytest.raises(DitherError, match=said):
            ask(session.table("visits").infer(epsilon=1))
        assert spent(session) == 0


@pytest.mark.parametrize("epsilon", [0, -1, math.nan, math.inf, True, None, "much"])
def test_no_epsilon_no_question(rows, epsilon):
    """Refused where it is given."""
    with pytest.raises(ArgumentError, match="epsilon"):
        rows.table("visits").infer(epsilon=epsilon)


def test_a_grouped_table_is_not_asked(rows):
    """Groups are told apart by the question itself."""
    with pytest.raises(QueryError, match="before group_by"):
        rows.table("visits").group_by("region").infer(epsilon=1)


def test_clamped_averages_are_not_clamped_normal_values(people):
    """What clamping takes from people's averages cannot be given back."""
    with pytest.raises(ArgumentError, match="shape must be 'any'"):
        people.table("visits").infer(epsilon=1).mean("cost", shape="normal")


def test_rows_of_unknown_people_are_refused(tmp_path):
    """A person may have several rows and none says whose it is: no interval would be honest."""
    units = {"units": {"patient": {"rows": {"visits": 4}}}}
    made = {
        "budget": {"epsilon": 1, "ledger": str(tmp_path / "l")},
        "tables": {"visits": {"columns": COLUMNS}},
        **units,
    }
    session = dt.open(made, sources={"visits": visits()})
    with session, pytest.raises(QueryError, match="name the column"):
        session.table("visits").infer(epsilon=1)


def test_a_budget_that_is_gone_is_not_overdrawn(tmp_path):
    """Nothing is spent, and the message says what would fit."""
    with opened(tmp_path, epsilon=1) as session:
        with pytest.raises(BudgetError, match="fits with"):
            session.table("visits").infer(epsilon=2).mean("cost").release()
        assert spent(session) == 0


# --- hostile data and hostile noise ------------------------------------------------------------

EMPTY = visits(4).clear()
NAN, INF = float("nan"), float("inf")


def of(**values):
    """A table in which these columns hold the same value in every row."""
    return visits(40, 9).with_columns(**{k: pl.lit(v) for k, v in values.items()})


HOSTILE = {
    "no row": EMPTY,
    "one row": visits(1, 1),
    "NaN": of(cost=NAN),
    "infinity": of(cost=INF),
    "minus infinity": of(cost=-INF),
    "above": of(cost=1e308),
    "at the bound": of(cost=100.0),
    "constant": of(cost=50.0),
    "NULL": of(cost=None).with_columns(pl.col("cost").cast(pl.Float64)),
    "nobody": of(pid=None).with_columns(pl.col("pid").cast(pl.Int64)),
    "one person": of(pid=1),
    "elsewhere": of(region="east"),
    "one group": of(smokes=True, region="north"),
    "no answer": of(smokes=None).with_columns(pl.col("smokes").cast(pl.Boolean)),
    "ages": of(age=-(2**62)),
}


@pytest.mark.parametrize("data", HOSTILE)
@pytest.mark.parametrize("unit", [False, True])
def test_hostile_data_raise_nothing(tmp_path, data, unit):
    """Every question is answered, at its price, whatever the rows hold."""
    with opened(tmp_path, HOSTILE[data], unit=unit) as session:
        asked = ("mean", "proportion", "difference", "fit", "median", "quantile")
        for number, what in enumerate(asked, start=1):
            found = QUESTIONS[what](session.table("visits").infer(epsilon=1)).release()
            assert found.summary()
            assert 0 <= found.pvalue <= 1
            assert spent(session) == number


numbers = st.floats(-1e15, 1e15) | st.sampled_from([0.0, 1.0, -1.0, 0.5, 1e-300, 499.0, 501.0])


def law(noise, step):
    """The noise of a sum."""
    return SumNoise(noise, step)


LAPLACE = law(DiscreteLaplace(F(10**6)), 1e-6)
FAMILIES = {
    "Laplace": dict.fromkeys(("total", "square", "below", "above"), LAPLACE),
    "both": {"total": LAPLACE, "square": law(DiscreteGaussian(F(10**12)), 1e-6)},
}


@settings(max_examples=40, deadline=None, derandomize=True)
@given(st.lists(numbers, min_size=5, max_size=5), st.sampled_from(list(FAMILIES)), st.booleans())
def test_hostile_sums_raise_nothing(sums, family, public):
    """Whatever noise made of them, sums become an estimate with an interval."""
    laws = FAMILIES[family] | {"n": law(None if public else DiscreteLaplace(F(9)), 1.0)}
    names = ("total", "square", "below", "above", "n")
    seen = dict(zip(names, sums, strict=True))
    shape = "normal" if "below" in laws else "any"
    group = model.GroupMean(seen, laws, (F(0), F(9)), shape)
    errors = group.errors(np.random.default_rng(1), 200)
    lower, upper = errors.interval(0.95)[0]
    assert 0 - 100 <= lower <= upper <= 100
    assert math.isfinite(group.at)


@settings(max_examples=40, deadline=None, derandomize=True)
@given(st.lists(st.floats(-1e12, 1e12), min_size=6, max_size=6))
def test_hostile_tables_raise_nothing(cells):
    """Neither do noisy tables, of any sign."""
    noise = law(DiscreteLaplace(F(5)), 1.0)
    table = np.round(np.array(cells)).reshape(2, 3)
    for chances, shape in ((None, (2, 3)), (np.full(6, 1 / 6), (6,))):
        _, pvalue, _ = model.table_test(table.reshape(shape), noise, chances, 100)
        assert 0 < pvalue <= 1


@settings(max_examples=25, deadline=None, derandomize=True)
@given(st.integers(-(10**9), 10**9), st.integers(-(10**9), 10**9))
def test_hostile_counts_raise_nothing(yes, no):
    """Neither do counts of yes and no."""
    noise = law(DiscreteLaplace(F(5)), 1.0)
    start, errors = model.measured_share(noise, float(yes), float(no))
    lower, upper = errors(np.random.default_rng(1), 200).interval(0.95)[0]
    assert 0 <= lower <= upper <= 1
    known = model.known_share(noise, float(yes), 100)
    lower, upper = known.interval(0.95)[0]
    assert 0 <= lower <= start.share <= 1 or lower <= upper <= 1


# --- coverage and size ------------------------------------------------------------------------


def laws_of(epsilon: str) -> dict[str, SumNoise]:
    """The noise that a mean of people has."""
    shares = {"total": (1, "0.55"), "square": (F(1, 2), "0.15")}
    found = {
        name: law(DiscreteLaplace(F(10**6) * moved / (F(epsilon) * F(share))), 1e-6)
        for name, (moved, share) in shares.items()
    }
    return found | {"n": law(DiscreteLaplace(1 / (F(epsilon) * F("0.3"))), 1.0)}


def test_intervals_cover_people_whose_rows_are_alike():
    """Of 300 at 95 %: within four deviations; as if rows were independent, it is far below."""
    rng, laws = np.random.default_rng(8), laws_of("1")
    held = naive = 0
    for _ in range(300):
        rows = 1 + rng.poisson(3, 400)
        who = np.repeat(np.arange(400), rows)
        level = rng.beta(2, 4, 400) * 2 - 1
        t = np.clip(level[who] + rng.normal(0, 0.2, who.size), -1, 1)
        own = np.bincount(who, t) / rows
        sums = {"n": 400.0, "total": own.sum(), "square": (own**2 - 0.5).sum()}
        sums = {k: v + float(model.drawn(laws[k], rng, 1)[0]) for k, v in sums.items()}
        group = model.GroupMean(sums, laws, (F(-1), F(1)), "any")
        lower, upper = group.errors(np.random.default_rng(1), 1000).interval(0.95)[0]
        held += lower <= TRUTH <= upper
        naive += abs(own.mean() - TRUTH) <= 1.96 * t.std() / math.sqrt(t.size)
    assert 0.90 <= held / 300 <= 0.99
    assert naive / 300 < 0.85


def _truth() -> float:
    rng = np.random.default_rng(9)
    level = rng.beta(2, 4, 10**6) * 2 - 1
    return float(np.clip(level + rng.normal(0, 0.2, 10**6), -1, 1).mean())


TRUTH = _truth()


@pytest.mark.parametrize("noise", [DiscreteLaplace(F(4)), DiscreteGaussian(F(30))])
def test_a_test_of_a_noisy_table_keeps_its_level(noise):
    """Of 400 tables without any dependence at most 8.5 % are rejected at 5 %."""
    rng, wide = np.random.default_rng(3), law(noise, 1.0)
    chances = np.outer([0.3, 0.7], [0.2, 0.3, 0.5])
    rejected = 0
    for table in model.tables_drawn(wide, chances, 300, 400, rng):
        rejected += model.table_test(table, wide, None, 199)[1] <= 0.05
    assert 4 <= rejected <= 34


@pytest.mark.parametrize("noise", [DiscreteLaplace(F(7, 2)), DiscreteGaussian(F(5))])
def test_simulated_noise_has_the_law_of_the_noise(noise):
    """Variance and tails, as the mechanism states them."""
    drawn = model.drawn(law(noise, 1.0), np.random.default_rng(1), 40_000)
    assert drawn.var() == pytest.approx(noise.variance, rel=0.06)
    for k in (1, 3, 5):
        assert np.mean(drawn >= k) == pytest.approx(noise.survival(k), abs=0.01)
