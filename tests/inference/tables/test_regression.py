"""Linear regression on protected tables: the people's slopes, honest intervals, one charge."""

from __future__ import annotations

import math
from fractions import Fraction as F

import numpy as np
import polars as pl
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import dither as dt
from dither.errors import BudgetError, DitherError
from dither.inference.regression._linear_models import LinearErrors
from dither.inference.tables._regression import MomentNoise, TableModel
from dither.inference.tables._sums import drawn
from dither.mechanisms import DiscreteGaussian, DiscreteLaplace
from dither.query.tables._statistics import SumNoise
from inference.protected import session_over

COLUMNS = {
    "cost": {"bounds": [0, 100], "step": 0.01},
    "age": {"bounds": [20, 90], "nullable": False},
    "region": {"values": ["west", "north", "south"]},
    "wide": {},
    "binned": {"bounds": [0, 10], "bins": [0, 5, 10]},
    "same": {"values": [3]},
}


def visits(n: int = 2500, people: int = 600, seed: int = 0) -> pl.DataFrame:
    """Visits whose cost depends on age and region."""
    rng = np.random.default_rng(seed)
    age, region = rng.uniform(20, 90, n), rng.integers(0, 3, n)
    return pl.DataFrame(
        {
            "pid": rng.integers(0, people, n),
            "cost": 20 + 0.4 * age + 6.0 * (region == 1) + rng.normal(0, 8, n),
            "age": age,
            "region": np.array(["west", "north", "south"])[region],
            "smokes": rng.random(n) < 0.3,
            "wide": rng.normal(0, 1, n),
            "binned": rng.uniform(0, 10, n),
            "same": np.full(n, 3),
        }
    )


def opened(folder, frame=None, **given):
    """A session over these visits, or over the usual ones."""
    return session_over(visits() if frame is None else frame, folder, columns=COLUMNS, **given)


def spent(session):
    """What the account has spent."""
    return session.balance()[0].spent.epsilon


def squares(frame: pl.DataFrame, columns: list[pl.Expr], *, unit: bool) -> np.ndarray:
    """Least squares of cost on these columns, of rows or of the averages of people."""
    cost = pl.col("cost").clip(0, 100).alias("answer")
    found = frame.select("pid", cost, *(c.alias(f"z{j}") for j, c in enumerate(columns)))
    if unit:
        found = found.group_by("pid").agg(pl.all().mean())
    z = found.select(pl.exclude("pid", "answer").cast(pl.Float64)).to_numpy()
    design = np.column_stack([np.ones(len(z)), z])
    return np.linalg.lstsq(design, found["answer"].to_numpy(), rcond=None)[0]


AGE, NORTH, SOUTH = pl.col("age"), pl.col("region") == "north", pl.col("region") == "south"
FORMULAS = {
    "cost ~ age": [AGE],
    "cost ~ age + C(region)": [AGE, NORTH, SOUTH],
    "cost ~ region + I(age**2 - 3*age) + smokes": [
        NORTH,
        SOUTH,
        AGE**2 - 3 * AGE,
        pl.col("smokes"),
    ],
    "cost ~ age:C(region) + abs(binned)": [
        AGE * (pl.col("region") == "west"),
        AGE * NORTH,
        AGE * SOUTH,
        pl.col("binned").abs(),
    ],
}


@pytest.mark.parametrize("unit", [False, True])
def test_slopes_are_those_of_the_people(tmp_path, unit):
    """With next to no noise they are least squares: of rows, or of the averages of people."""
    frame = visits()
    for number, (formula, columns) in enumerate(FORMULAS.items()):
        folder = tmp_path / str(number)
        folder.mkdir()
        with opened(folder, frame, unit=unit) as session:
            found = session.table("visits").infer(epsilon=500_000).regression(formula).release()
        truth = squares(frame, columns, unit=unit)
        off = np.abs(found.estimate - truth) / found.simulated(draws=100).se
        # Without noise to speak of, what is left is a small part of what sampling leaves.
        assert off.max() < 0.05, formula


def test_undeclared_levels_are_left_out(tmp_path):
    """So that none of their rows is taken for the reference level's, which comes first."""
    other = visits(500, 100, 1).with_columns(
        pl.lit("east").alias("region"), pl.lit(99.0).alias("cost")
    )
    frame = visits()
    with opened(tmp_path, pl.concat([frame, other])) as session:
        asked = session.table("visits").infer(epsilon=500_000)
        found = asked.regression("cost ~ C(region)").release()
    assert found.names == ("Intercept", "C(region)[T.north]", "C(region)[T.south]")
    assert found.rows == frame.height
    assert found.estimate == pytest.approx(squares(frame, [NORTH, SOUTH], unit=False), abs=0.05)
    expected = found.predict({"region": ["north"]}).estimate[0]
    assert expected == pytest.approx(found.estimate[0] + found.estimate[1], abs=1e-4)


@pytest.mark.parametrize("unit", [False, True])
@pytest.mark.parametrize("neighbours", ["add_remove", "replace_one"])
@pytest.mark.parametrize("delta", [None, "1e-6"])
def test_a_regression_is_one_charge(tmp_path, unit, neighbours, delta):
    """Explained and previewed for nothing; one charge; intervals and predictions are free."""
    with opened(tmp_path, unit=unit, neighbours=neighbours) as session:
        asked = session.table("visits").infer("0.5", delta)
        question = asked.regression("cost ~ age + C(region)")
        assert "SELECT" in question.sql
        assert str(question.explain())
        found = question.preview(sizes=(100, 10**6))
        assert "half-width of age" in str(found)
        assert found.enough == (False, True)
        assert found.widths[1] < found.widths[0]
        assert spent(session) == 0
        found = question.release(token="once")
        assert spent(session) == F(1, 2) == found.loss.charge.epsilon
        assert "The noise makes" in found.summary()
        lower, upper = found.interval(0.9).T
        assert np.all((lower <= found.estimate) & (found.estimate <= upper))
        assert np.all((found.pvalue > 0) & (found.pvalue <= 1))
        assert found.predict({"age": [40.0], "region": ["west"]}).estimate.shape == (1,)
        assert dt.verify(found.certificate, session.ledger).ok
        again = question.release(token="once")
        assert again.params == found.params
        assert spent(session) == F(1, 2)


REFUSED = {
    "cost ~ nothing": "unknown column 'nothing'",
    "nothing ~ age": "unknown column 'nothing'",
    "cost ~ wide": "needs bounds",
    "wide ~ age": "needs bounds",
    "cost ~ C(wide)": "no declared levels",
    "cost ~ C(binned)": "no declared levels",
    "cost ~ C(same)": "single level",
    "cost ~ same": "one value only",
    "region ~ age": "not a number",
    "cost ~ center(age)": "looks at the data",
    "cost ~ scale(age)": "looks at the data",
    "cost ~ bs(age, 3)": "looks at the data",
    "cost ~ log(age)": "cannot be summed exactly",
    "cost ~ C(region, Sum)": "alone",
    "cost ~ age + region*region:C(binned)": "no declared levels",
    "cost ~ age - 1": "intercept",
    "cost ~ 1": "columns of regressors",
    "cost": "response",
    "cost ~ age +": "cannot be read",
    "cost ~ age) FROM visits --": "cannot be read",
    "cost ~ I(age + region)": "region",
    "cost ~ " + " + ".join(f"I(age**{k})" for k in range(1, 17)) + " + C(region)*binned*smokes": (
        "columns of regressors"
    ),
}


@pytest.mark.parametrize("unit", [False, True])
def test_what_cannot_be_fitted_is_refused(tmp_path, unit):
    """By name, before anything is spent."""
    with opened(tmp_path, unit=unit) as session:
        asked = session.table("visits").infer(epsilon=1)
        for formula, said in REFUSED.items():
            with pytest.raises(DitherError) as refused:
                asked.regression(formula)
            assert said in str(refused.value), formula
        with pytest.raises(DitherError, match="must be a text"):
            asked.regression(3)
        assert spent(session) == 0


def test_a_budget_that_is_gone_is_not_overdrawn(tmp_path):
    """Nothing is spent."""
    with opened(tmp_path, epsilon=1) as session:
        with pytest.raises(BudgetError, match="fits with"):
            session.table("visits").infer(epsilon=2).regression("cost ~ age").release()
        assert spent(session) == 0


def of(**values):
    """A table in which these columns hold the same value in every row."""
    return visits(40, 9).with_columns(**{k: pl.lit(v) for k, v in values.items()})


HOSTILE = {
    "no row": visits(4).clear(),
    "one row": visits(1, 1),
    "NaN": of(cost=math.nan, age=math.nan),
    "infinity": of(cost=math.inf, age=-math.inf),
    "huge": of(cost=1e308, age=-1e308),
    "constant": of(age=50.0),
    "NULL": of(cost=None).with_columns(pl.col("cost").cast(pl.Float64)),
    "one person": of(pid=1),
    "elsewhere": of(region="east"),
}


@pytest.mark.parametrize("data", HOSTILE)
@pytest.mark.parametrize("unit", [False, True])
def test_hostile_data_raise_nothing(tmp_path, data, unit):
    """The question is answered, at its price, whatever the rows hold."""
    with opened(tmp_path, HOSTILE[data], unit=unit) as session:
        found = session.table("visits").infer(1).regression("cost ~ age + C(region)").release()
        assert found.simulated(draws=200).summary()
        assert spent(session) == 1


# --- the model --------------------------------------------------------------------------------


def names_of(size: int) -> list[str]:
    """Names of the sums of so many regressors."""
    return list(sums_of(np.zeros((1, size)), np.zeros(1)))


def laws_of(size: int, scale: float, *, public: bool = False) -> dict[str, SumNoise]:
    """Noise of different deviations, Laplace and Gaussian."""
    found = {}
    for k, name in enumerate(names_of(size)):
        wide = F(repr(scale)) * (1 + k % 3) * 10**6
        noise = DiscreteGaussian(wide**2) if k % 2 else DiscreteLaplace(wide)
        found[name] = SumNoise(noise, 1e-6)
    return found | ({"n": SumNoise(None, 1.0)} if public else {})


def sums_of(z: np.ndarray, t: np.ndarray) -> dict[str, float]:
    """The sums of rows."""
    n, size = z.shape
    found = {"n": float(n), "t": t.sum(), "tt": (t**2 - 0.5).sum()}
    for i in range(size):
        found |= {f"z{i}": z[:, i].sum(), f"z{i}t": (z[:, i] * t).sum()}
        found |= {f"z{j}z{i}": (z[:, j] * z[:, i]).sum() for j in range(i)}
        found[f"z{i}z{i}"] = (z[:, i] ** 2 - 0.5).sum()
    return found


def noisy(sums, laws, rng):
    """What leaves."""
    return {name: value + float(drawn(laws[name], rng, 1)[0]) for name, value in sums.items()}


@pytest.mark.parametrize("public", [False, True])
def test_the_noise_of_an_equation_has_the_stated_covariance(public):
    """That of v - M·β, the noise of n in its three places included."""
    laws = laws_of(2, 3.0, public=public)
    model = TableModel(sums_of(np.zeros((9, 2)), np.zeros(9)), laws, 2)
    slopes = np.array([1.5, -0.7, 0.4])
    noise = MomentNoise(laws, 2).draw(np.random.default_rng(1), 60_000)
    left = noise.cross - np.einsum("bij,j->bi", noise.gram, slopes)
    stated = np.stack([model._of_noise(line, slopes) for line in np.eye(3)])
    assert np.cov(left.T) == pytest.approx(stated, rel=0.05, abs=0.02 * stated.max())


@pytest.mark.parametrize("scale", [3.0, 12.0])
def test_intervals_cover_the_slopes(scale):
    """Of 150 at 95 %: within four deviations; the intervals of least squares are far below."""
    rng, laws = np.random.default_rng(4), laws_of(2, scale)
    truth, held, naive = np.array([0.2, 0.35, -0.15]), np.zeros(3), np.zeros(3)
    for _ in range(150):
        z = np.column_stack([rng.uniform(-1, 1, 900), np.where(rng.random(900) < 0.3, 1.0, -1.0)])
        t = truth[0] + z @ truth[1:] + rng.uniform(-0.25, 0.25, 900)
        model = TableModel(noisy(sums_of(z, t), laws, rng), laws, 2)
        ways = np.eye(3)
        simulated = model.pivots(np.random.default_rng(1), 300, ways)
        errors = LinearErrors(model, ways, np.ones(3), np.zeros(3), simulated)
        lower, upper = errors.interval(0.95).T
        held += (lower <= truth) & (truth <= upper)
        naive += np.abs(errors.estimate - truth) <= 1.96 * errors.se_sampling
    assert np.all(held / 150 >= 0.88)
    assert held.mean() / 150 <= 0.995
    assert naive.mean() / 150 < 0.8


@settings(max_examples=40, deadline=None, derandomize=True)
@given(st.lists(st.floats(-1e15, 1e15), min_size=10, max_size=10), st.booleans())
def test_hostile_sums_raise_nothing(values, public):
    """Whatever noise made of them, sums become estimates with intervals."""
    names = names_of(2)
    model = TableModel(dict(zip(names, values, strict=True)), laws_of(2, 5.0, public=public), 2)
    simulated = model.pivots(np.random.default_rng(1), 100, np.eye(3))
    errors = LinearErrors(model, np.eye(3), np.ones(3), np.zeros(3), simulated)
    lower, upper = errors.interval(0.95).T
    assert np.all(lower <= upper)
    assert np.all(np.isfinite(errors.estimate))


def test_terms_are_named_as_the_model_reads_them(tmp_path):
    """One sum a moment, and none besides."""
    with opened(tmp_path) as session:
        question = session.table("visits").infer(1).regression("cost ~ age + C(region)")
        assert set(question._laws) == set(names_of(3))


def test_the_functional_mechanism_has_noise_of_one_scale(tmp_path):
    """For each coefficient of the sum of squared residuals; it spends epsilon, and no delta."""
    with opened(tmp_path) as session:
        asked = session.table("visits").infer(epsilon=2, delta=1e-5)
        question = asked.regression("cost ~ age + C(region)", method="functional")
        scales = {}
        for name in ("n", "tt", *(f"z{i}z{i}" for i in range(3))):
            scales[name] = question._laws[name].deviation
        for name in ("t", "z0", "z1", "z0t", "z0z1", "z1z2"):
            scales[name] = 2 * question._laws[name].deviation
        assert np.ptp(list(scales.values())) < 0.01 * max(scales.values())
        found = question.release()
        assert "functional mechanism" in found.summary()
        assert not found.loss.charge.delta
        assert spent(session) == 2
        assert session.balance()[0].spent.delta == 0
        assert np.isfinite(found.estimate).all()
        ends = found.simulated(draws=200).interval()
        assert (ends[:, 0] <= found.estimate).all()
        assert (found.estimate <= ends[:, 1]).all()


def test_the_functional_mechanism_is_least_squares_without_noise(tmp_path):
    """At an epsilon at which noise and ridge are next to nothing."""
    frame = visits()
    with opened(tmp_path, frame) as session:
        asked = session.table("visits").infer(epsilon=500_000)
        found = asked.regression("cost ~ age + C(region)", method="functional").release()
    np.testing.assert_allclose(
        found.estimate, squares(frame, [AGE, NORTH, SOUTH], unit=False), rtol=0.02
    )


def test_ways_are_compared_before_anything_is_spent(tmp_path):
    """What each reaches with so many people, and what it costs; nothing is charged."""
    with opened(tmp_path) as session:
        asked = session.table("visits").infer(epsilon=1, delta=1e-5)
        ways = {
            "moments": asked.regression("cost ~ age"),
            "functional": asked.regression("cost ~ age", method="functional"),
            "mean": asked.mean("cost"),
        }
        found = asked.compare(ways, people=3000)
        frame = found.frame
        assert frame["way"].to_list() == list(ways)
        assert frame["delta"].to_list()[1] == 0
        for name, preview in found.previews.items():
            assert preview.sizes == (3000,)
            assert ways[name].preview([3000]).reaches == preview.reaches
        assert "half-width of age" in found.summary()
        assert "3,000 people" in str(found)
        assert spent(session) == 0
        for wrong in ({}, [ways["mean"]], {"a": "mean"}, {1: ways["mean"]}):
            with pytest.raises(DitherError, match="ways must be"):
                asked.compare(wrong)


@pytest.mark.parametrize("formula", ["cost ~ log(age)", "cost ~ exp(age)", "sqrt(cost) ~ age"])
def test_functions_that_cannot_be_summed_exactly_are_refused(tmp_path, formula):
    """By name, with what works, before anything is spent."""
    with opened(tmp_path) as session:
        with pytest.raises(DitherError, match="cannot be summed exactly"):
            session.table("visits").infer(epsilon=1).regression(formula)
        assert spent(session) == 0
