"""Linear regression: what a row can do, what formulas may say, and how often intervals hold."""

from __future__ import annotations

import itertools
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import polars as pl
import pytest

from dither import inference
from dither.errors import ArgumentError
from dither.inference.engine._inputs import Bounds, Target, target
from dither.inference.engine._release import seen_at_best
from dither.inference.regression._formula import MISSING, read_design
from dither.inference.regression._linear_regression import squared_radius
from dither.inference.regression._moments import MomentsRelease, NoisyMoments
from dither.lab.audit import Outcome, audit
from dither.privacy import Neighbours

NONE: frozenset[tuple[int, int]] = frozenset()
KINDS = {
    "one number": (1, 1, 0, NONE),
    "two numbers": (2, 2, 0, NONE),
    "a factor of three levels": (2, 0, 1, frozenset({(0, 1)})),
    "a number and a factor": (3, 1, 1, frozenset({(1, 2)})),
}


def _rows(kind: str) -> np.ndarray[Any, Any]:
    """Every row of a coarse grid, the ends and the middle of each number, and a missing one."""
    line = [-1.0, -0.5, 0.0, 0.5, 1.0] if kind != "a number and a factor" else [-1.0, 0.0, 1.0]
    blocks = {
        "one number": [[(x,) for x in line]],
        "two numbers": [[(x,) for x in line]] * 2,
        "a factor of three levels": [[(0, 0), (1, 0), (0, 1), (-1, 0), (0, -1)]],
        "a number and a factor": [[(x,) for x in line], [(0, 0), (1, 0), (0, 1), (-1, 0)]],
    }[kind]
    rows = [sum(parts, ()) for parts in itertools.product(*blocks, [(x,) for x in line])]
    found = np.array([[int(v * Bounds.steps) for v in row] for row in rows])
    return np.concatenate([found, np.full((1, found.shape[1]), MISSING)])


@pytest.mark.parametrize("kind", list(KINDS))
@pytest.mark.parametrize("neighbours", Neighbours.of_tables())
@pytest.mark.parametrize("longest", [None, Fraction(3, 2)])
def test_no_row_moves_the_moments_further_than_proved(
    kind: str, neighbours: Neighbours, longest: Fraction | None
) -> None:
    """In both norms, whether rows have weights or not; and the L2 bound is nearly reached."""
    asked = Target(Fraction(1), Fraction(1, 10**6), neighbours)
    design = MomentsRelease(*KINDS[kind], asked, longest=longest)
    assert design.weighing == (longest is not None)
    none = np.array([float(v) for v in design.statistic(_rows(kind)[:0])])
    each = [design.statistic(row[None]) for row in _rows(kind)]
    added = np.array([[float(v) for v in row] for row in each]) - none
    gaps = added
    if neighbours is Neighbours.REPLACE:
        gaps = (added[:, None] - added[None]).reshape(-1, added.shape[1])
    l1, l2_squared = np.abs(gaps).sum(1).max(), (gaps**2).sum(1).max()
    # That no number of x_0 changes its sign is not used of rows with weights.
    tight = (0.7, 0.75) if longest is None else (0.35, 0.6)
    assert tight[0] * float(design.l1) < l1 <= float(design.l1) + 1e-9
    assert tight[1] * float(design.l2_squared) < l2_squared <= float(design.l2_squared) + 1e-9
    assert design.loss.charge.epsilon == 1
    assert float(design.loss.charge.delta or 0) <= 1e-6


def test_weights_need_less_noise_and_estimate_the_same() -> None:
    """Less noise for ten numbers, and least squares with weights where it is little."""
    asked = target(1, 1e-6, "replace")
    full, less = (MomentsRelease(10, 10, 0, NONE, asked, longest=q) for q in (None, Fraction(5)))
    assert less.noise.variance < full.noise.variance / 2.5
    rng = np.random.default_rng(3)
    x = rng.uniform(-1, 1, (4000, 4)) ** 3
    y = 0.1 + x @ [0.3, -0.2, 0.1, 0] + rng.normal(0, 0.1, 4000)
    names = ["a", "b", "c", "d"]
    frame: dict[str, Any] = {**dict(zip(names, x.T, strict=True)), "y": y}
    for radius in (None, "0.6"):
        found = inference.linear_regression(
            "y ~ a + b + c + d",
            frame,
            bounds=dict.fromkeys([*names, "y"], (-1, 1)),
            epsilon=10_000,
            delta=1e-6,
            radius=radius,
        )
        u = np.column_stack([np.ones(4000), x])
        q = float(squared_radius(4, None if radius is None else Fraction(3, 5), 1))
        root = np.sqrt(np.minimum(1, q / (u**2).sum(axis=1)))[:, None]
        wanted = np.linalg.lstsq(u * root, y * root[:, 0], rcond=None)[0]
        np.testing.assert_allclose(found.estimate, wanted, atol=1e-3)
        assert found.rows == 4000


@pytest.mark.heavy("test_the_functional_mechanisms_sensitivity_by_exhaustion")
def test_the_bound_of_many_terms_is_the_largest_of_random_pairs() -> None:
    """The maximum on the rectangle is what opposite, and other, rows come near to."""
    design = MomentsRelease(6, 6, 0, NONE, target(1, 1e-6, "replace"))
    rng, best = np.random.default_rng(3), 0.0
    for _ in range(3000):
        pair = rng.choice([-1, 1], (2, 7)) * Bounds.steps
        a, b = (np.array([float(v) for v in design.statistic(row[None])]) for row in pair)
        best = max(best, float(((a - b) ** 2).sum()))
    assert 0.85 * float(design.l2_squared) < best <= float(design.l2_squared) + 1e-9


@pytest.mark.parametrize("kind", list(KINDS))
@pytest.mark.parametrize("neighbours", Neighbours.of_tables())
def test_no_row_moves_the_functional_mechanism_further(kind: str, neighbours: Neighbours) -> None:
    """Than its Laplace noise is made for; and that is less than the paper's bound, halved."""
    shape, asked = KINDS[kind], Target(Fraction(1), Fraction(1, 10**6), neighbours)
    design = MomentsRelease(*shape, asked, functional=True)
    none = np.array([float(v) for v in design.statistic(_rows(kind)[:0])])
    added = np.array([[float(v) for v in design.statistic(r[None])] for r in _rows(kind)]) - none
    replaced = neighbours is Neighbours.REPLACE
    gaps = (added[:, None] - added[None]).reshape(-1, added.shape[1]) if replaced else added
    most = np.abs(gaps).sum(1).max()
    assert 0.7 * float(design.l1) < most <= float(design.l1) + 1e-9
    assert design.l1 < Fraction((2 + design.terms) ** 2, 1 if replaced else 2)
    assert float(design.noise.scale) >= float(design.l1)  # type: ignore[union-attr]
    assert design.loss.charge.epsilon == 1
    assert not design.loss.charge.delta


def test_the_functional_mechanism_releases_the_sum_of_squared_residuals() -> None:
    """Its numbers, twice, are the coefficients of that polynomial: they give it anywhere."""
    rng = np.random.default_rng(6)
    rows = rng.integers(-Bounds.steps, Bounds.steps, (40, 4))
    design = MomentsRelease(3, 3, 0, NONE, target(1, 0, "add-remove"), functional=True)
    half = np.array([float(v) for v in design.statistic(rows)])
    x, t = np.column_stack([np.ones(40), rows[:, :3] / Bounds.steps]), rows[:, 3] / Bounds.steps
    for _ in range(5):
        beta = rng.normal(size=4)
        b0, b = beta[0], beta[1:]
        pairs = [b[i] * b[j] for i, j in design.pairs]
        monomials = np.array([b0**2, *(b0 * b), *pairs, -b0, *-b, 1.0])
        value = 2 * (half @ monomials) + 40 / 2  # Σ t² is released about n/2
        assert value == pytest.approx(float(((t - x @ beta) ** 2).sum()), rel=1e-9)


def _halved_coefficients(rows: np.ndarray[Any, Any]) -> np.ndarray[Any, Any]:
    """Of (t - β₀ - z·β)², expanded: a number for each monomial, 1 in the place of t² being -1/2."""
    n, d = rows.shape
    line = np.column_stack([rows[:, -1:], -np.ones((n, 1)), -rows[:, :-1]])
    i, j = np.triu_indices(d + 1)
    found = line[:, i] * line[:, j] * np.where(i == j, 0.5, 1.0)
    found[:, 0] -= 0.25  # half of t² is released about half of n/2
    return np.asarray(found)


@pytest.mark.parametrize("numbers", [1, 2, 3])
@pytest.mark.parametrize("neighbours", Neighbours.of_tables())
def test_the_functional_mechanisms_sensitivity_by_exhaustion(
    numbers: int, neighbours: Neighbours
) -> None:
    """Coefficients of the polynomial, expanded apart, of every pair of extreme rows; and others."""
    rng = np.random.default_rng(numbers)
    grid = np.array(list(itertools.product([-1, 0, 1], repeat=numbers + 1)), dtype=float)
    rows = np.concatenate([grid, rng.uniform(-1, 1, (200, numbers + 1))])
    each = _halved_coefficients(rows)
    design = MomentsRelease(
        numbers, numbers, 0, NONE, Target(Fraction(1), Fraction(0), neighbours), functional=True
    )
    if neighbours is Neighbours.REPLACE:
        moved = np.abs(each[:, None] - each).sum(axis=2)
        assert moved.max() == moved[: len(grid), : len(grid)].max()
    else:
        moved = np.abs(each).sum(axis=1)
    # Where a row is added all but the square of t are at their ends at once.
    tight = 0.8 if neighbours is Neighbours.REPLACE else 1.0
    assert tight * float(design.l1) - 1e-9 <= moved.max() <= float(design.l1) + 1e-9
    assert design.loss.charge.epsilon == 1


def test_the_functional_mechanism_with_half_its_noise_is_caught() -> None:
    """The classic mistake: what one row adds, where a row is replaced."""
    design = MomentsRelease(1, 1, 0, NONE, target(1, 0, "replace"), functional=True)
    first, second = np.array([[1, -1]]) * Bounds.steps, np.array([[1, 1]]) * Bounds.steps

    class Wrong:
        noise = type(design.noise).for_loss(1, l1=design.l1 / 2, dimension=design.dimension)
        statistic = design.statistic

    found = audit(seen_at_best(Wrong, first, second), first, second, 1, samples=40_000)  # type: ignore[arg-type]
    assert found.verdict is Outcome.VIOLATED


@pytest.mark.heavy("test_no_row_moves_the_functional_mechanism_further")
def test_the_functional_mechanism_estimates_and_covers() -> None:
    """Least squares where noise is nothing, 0 where it is all; intervals hold; no delta goes."""
    rng = np.random.default_rng(9)

    def run(n: int, epsilon: float, neighbours: str = "replace") -> Any:
        x = rng.uniform(-1, 1, n)
        return inference.linear_regression(
            "y ~ x",
            {"y": 0.2 + 0.5 * x + rng.normal(0, 0.2, n), "x": x},
            bounds={"y": (-1, 1), "x": (-1, 1)},
            epsilon=epsilon,
            delta=1e-6,
            neighbours=neighbours,  # type: ignore[arg-type]
            method="functional",
        ).simulated(draws=300)

    exact = run(5000, 10_000)
    assert exact.estimate == pytest.approx([0.2, 0.5], abs=0.02)
    assert exact.rsquared == pytest.approx((1 / 12) / (1 / 12 + 0.04), abs=0.03)
    assert not exact.loss.charge.delta
    assert "functional mechanism" in exact.summary()
    drowned = [abs(run(30, 0.1).estimate[1]) for _ in range(20)]
    assert np.isfinite(drowned).all()
    assert np.median(drowned) < 0.5
    for neighbours in ("replace", "add-remove"):
        held = np.zeros(2)
        for _ in range(60):
            found = run(3000, 1, neighbours)
            ends = found.interval()
            held += (ends[:, 0] <= [0.2, 0.5]) & (ends[:, 1] >= [0.2, 0.5])
            assert (ends[:, 0] <= found.estimate).all()
            assert (found.estimate <= ends[:, 1]).all()
        assert (held >= 50).all()


def test_noise_for_one_product_instead_of_all_is_caught() -> None:
    """The classic mistake: each moment with the noise that it alone would need."""
    design = MomentsRelease(2, 2, 0, NONE, target(1, 0, "replace"))
    first, second = (np.array([[1, 1, t]]) * Bounds.steps for t in (-1, 1))

    class Wrong:
        noise = type(design.noise).for_loss(1, l1=2 * design.answer, dimension=design.dimension)
        statistic = design.statistic

    found = audit(seen_at_best(Wrong, first, second), first, second, 1, samples=40_000)  # type: ignore[arg-type]
    assert found.verdict is Outcome.VIOLATED


def _read(formula: str, **more: Any) -> Any:
    bounds = {"y": (0, 10), "x": (1, 5), "z": (-2, 2)}
    return read_design(formula, bounds, {"g": ["a", "b", "c"]}, **more)


def test_columns_are_those_of_statsmodels() -> None:
    """Names, values and coding agree with what formulaic makes of the same frame."""
    formulaic = pytest.importorskip("formulaic")
    rng = np.random.default_rng(1)
    frame = pd.DataFrame(
        {
            "y": rng.uniform(0, 10, 50),
            "x": rng.uniform(1, 5, 50),
            "z": rng.uniform(-2, 2, 50),
            "g": rng.choice(["a", "b", "c"], 50),
        }
    )
    for text in (
        "y ~ x + C(g)",
        "y ~ x * z + I(x**2) + np.log(x)",
        "y ~ C(g) * x",
        "y ~ x:C(g) + z",
        "y ~ g + exp(z) + I(1/x - z)",
    ):
        design = _read(text)
        theirs = formulaic.model_matrix(text.split("~")[1], frame)
        points = design.points(frame) / Bounds.steps
        ours = [
            points[:, j] * float(c.bounds.half) + (float(c.bounds.middle) if not c.where else 0)
            for j, c in enumerate(design.columns)
        ]
        assert set(design.names) == set(theirs.columns)
        for c, values in zip(design.columns, ours, strict=True):
            np.testing.assert_allclose(values, theirs[c.label], atol=1e-4)


@pytest.mark.parametrize(
    ("formula", "told"),
    [
        ("y ~ w", "bounds must declare 'w'"),
        ("y ~ C(h)", "levels must declare the values of 'h'"),
        ("y ~ center(x)", "looks at the data"),
        ("y ~ scale(x)", "looks at the data"),
        ("y ~ poly(x, 2)", "looks at the data"),
        ("y ~ bs(x, df=4)", "looks at the data"),
        ("y ~ np.log(z)", "above 0"),
        ("y ~ I(1/z)", "away from 0"),
        ("y ~ I(x**0.5)", "formula may not hold|whole number"),
        ("y ~ x.mean()", "formula may not hold"),
        ("y ~ __import__('os')", "formula may not hold"),
        ("y ~ x - 1", "intercept"),
        ("~ x", "one response"),
        ("y ~ ~ x", "cannot be read|one response"),
        ("y ~ (x", "cannot be read"),
        (3, "must be a text"),
    ],
)
def test_formulas_that_cannot_be_are_refused(formula: Any, told: str) -> None:
    """Whatever is not declared, looks at data, or cannot be read."""
    with pytest.raises(ArgumentError, match=told):
        _read(formula)


def test_arguments_that_cannot_be_are_refused() -> None:
    """Bounds, levels and frames are checked before any data are read."""
    frame = {"y": [1, 2], "x": [3, 4]}

    def run(**more: Any) -> Any:
        given = {"bounds": {"y": (0, 9), "x": (0, 9)}, "epsilon": 1, **more}
        return inference.linear_regression("y ~ x", given.pop("frame", frame), **given)

    for more, told in (
        ({"bounds": None}, "bounds must be a mapping"),
        ({"bounds": {"y": (0, 9), "x": (9, 0)}}, "lower below upper"),
        ({"bounds": {"y": (0, 9)}}, "must declare 'x'"),
        ({"levels": {"x": [1]}, "bounds": {"y": (0, 9)}}, "two different values"),
        ({"levels": {"x": [1, 2]}}, "has bounds and levels"),
        ({"frame": {"y": [1, 2]}}, "not a column of frame"),
        ({"frame": {"y": [1, 2], "x": [1]}}, "one length"),
        ({"frame": [1, 2]}, "frame must be"),
        ({"epsilon": 0}, "epsilon"),
        ({"method": "ridge"}, "method"),
        ({"method": "boosted"}, "delta must be above 0"),
        ({"radius": 0}, "radius"),
    ):
        with pytest.raises(ArgumentError, match=told):
            run(**more)


@pytest.mark.parametrize("method", ["moments", "boosted", "functional"])
@pytest.mark.parametrize("neighbours", ["replace", "add-remove"])
@pytest.mark.parametrize(
    "x",
    [
        [],
        [1.0],
        [None] * 50,
        [float("nan"), float("inf"), -float("inf")] * 20,
        [2.0] * 60,
        [1e300] * 60,
    ],
)
def test_no_data_raise_anything(x: list[Any], neighbours: Any, method: str) -> None:
    """Constant, missing, clamped, one row or none: an answer with a wide interval."""
    frame = {"y": [1.0] * len(x), "x": x, "z": x, "g": ["nowhere"] * len(x)}
    found = inference.linear_regression(
        "y ~ x + z + C(g)",
        frame,
        bounds={"y": (0, 9), "x": (0, 9), "z": (0, 9)},
        levels={"g": ["a", "b"]},
        epsilon=1,
        delta=1e-6,
        neighbours=neighbours,
        method=method,
    ).simulated(draws=200)
    ends = found.interval()
    assert (ends[:, 0] <= found.estimate).all()
    assert (found.estimate <= ends[:, 1]).all()
    assert ends[1:, 1].max() - ends[1:, 0].min() > 1
    assert np.isfinite(found.estimate).all()


@pytest.mark.parametrize("x", [0.5, 709.0, -709.0, 710.0, -710.0, 1e6])
def test_expressions_whose_parts_overflow_raise_nothing(x: float) -> None:
    """A logistic curve has ends though its exponential has none: no row decides if it fails."""
    read = read_design("y ~ I(1/(1 + exp(-x)))", {"x": (-(10**6), 10**6), "y": (0, 1)})
    frame = {"x": [0.0, x, float("inf")], "y": [0, 1, 1]}
    rows = read.rows(frame)
    assert rows[[0, 2], 0].tolist() == [0, Bounds.steps]
    assert abs(rows[1, 0] / Bounds.steps - np.tanh(x / 2)) < 1e-5
    found = inference.linear_regression(read.formula, frame, bounds=BOTH_ENDS, epsilon=1)
    assert np.isfinite(found.estimate).all()


BOTH_ENDS = {"x": (-(10**6), 10**6), "y": (0, 1)}


def test_frames_of_all_kinds_and_what_is_missing() -> None:
    """Rows that miss something are middles where rows are replaced, else they are not there."""
    table = {"y": [1.0, 2.0, None], "x": [0.0, 9.0, 4.0], "g": ["a", None, "b"]}
    design = read_design("y ~ x + C(g)", {"y": (0, 9), "x": (0, 9)}, {"g": ["a", "b"]})
    steps = Bounds.steps
    wanted = [[-steps, 0, -round(steps * 7 / 9)], [MISSING] * 3, [MISSING] * 3]
    for frame in (table, pl.DataFrame(table), pd.DataFrame(table)):
        assert design.rows(frame).tolist() == wanted
    kept, none = (MomentsRelease(2, 1, 1, NONE, target(1, 0, n)) for n in ("replace", "add-remove"))
    points = design.rows(table)
    assert none.statistic(points)[0] == none.count
    assert kept.statistic(points)[-1] == kept.second * (
        Fraction(wanted[0][2] ** 2, steps**2) - Fraction(3, 2)
    )


def test_without_noise_it_is_least_squares() -> None:
    """At an epsilon so large that noise is nothing, statsmodels' numbers."""
    smf = pytest.importorskip("statsmodels.formula.api")
    rng = np.random.default_rng(2)
    frame = pd.DataFrame({"x": rng.uniform(0, 4, 3000), "g": rng.choice(["a", "b"], 3000)})
    frame["y"] = 3 + 0.5 * frame.x - (frame.g == "b") + rng.normal(0, 0.4, 3000)
    theirs = smf.ols("y ~ x * C(g)", frame).fit()
    ours = inference.linear_regression(
        "y ~ x * C(g)",
        frame,
        bounds={"y": (0, 8), "x": (0, 4)},
        levels={"g": ["a", "b"]},
        epsilon=10_000,
        delta=1e-6,
    )
    for name, value in theirs.params.items():
        assert ours.params[name] == pytest.approx(value, abs=0.005)
        assert ours.bse[name] == pytest.approx(theirs.bse[name], rel=0.12)
        assert ours.conf_int()[name] == pytest.approx(theirs.conf_int().loc[name], abs=0.02)
    assert ours.rsquared == pytest.approx(theirs.rsquared, abs=0.01)
    assert ours.scale == pytest.approx(theirs.scale, rel=0.02)
    new = pd.DataFrame({"x": [0.5, 3.0], "g": ["a", "b"]})
    wanted = theirs.get_prediction(new).summary_frame()
    for further, label in ((False, "mean_ci"), (True, "obs_ci")):
        found = ours.predict(new, new=further)
        np.testing.assert_allclose(found.estimate, wanted["mean"], atol=0.01)
        ends = wanted[[f"{label}_lower", f"{label}_upper"]]
        np.testing.assert_allclose(found.interval(), ends, atol=0.03)


def _one(n: int, epsilon: float, neighbours: str, rng: np.random.Generator) -> Any:
    x, z = rng.normal(0, 0.5, (2, n))
    y = 0.1 + 0.4 * x - 0.2 * z + rng.normal(0, 0.2, n)
    return inference.linear_regression(
        "y ~ x + z",
        {"y": y, "x": x, "z": x * 0.5 + z},
        bounds={"y": (-2, 2), "x": (-2, 2), "z": (-2, 2)},
        epsilon=epsilon,
        delta=1e-6,
        neighbours=neighbours,  # type: ignore[arg-type]
    ).simulated(draws=300)


@pytest.mark.parametrize("neighbours", ["replace", "add-remove"])
def test_intervals_hold_as_often_as_they_say(neighbours: str) -> None:
    """Slopes whose noise is much, and little: 120 runs each; a true .95 fails once in 10⁴."""
    rng = np.random.default_rng(8)
    truth = np.array([0.1, 0.5, -0.2])
    for n, epsilon in ((2000, 1.0), (50_000, 3.0)):
        held = np.zeros(3)
        for _ in range(120):
            ends = _one(n, epsilon, neighbours, rng).interval()
            held += (ends[:, 0] <= truth) & (truth <= ends[:, 1])
        assert (held >= 104).all()


def test_pvalues_and_intervals_agree() -> None:
    """A value is rejected at .05 where the 95 % interval does not hold it."""
    found = _one(20_000, 1.0, "replace", np.random.default_rng(4))
    ends = found.interval()
    for j in range(3):
        for value, within in ((ends[j, 0], True), (ends[j, 1], False)):
            step = 0.02 * (ends[j, 1] - ends[j, 0])
            inside, outside = (value + step, value - step)[:: 1 if within else -1]
            assert found.test(inside)[j] > 0.05 - 1e-9
            assert found.test(outside)[j] < 0.05 + 1e-2


def test_simulated_noise_is_that_of_the_release() -> None:
    """Read back as moments, with the same deviations."""
    design = MomentsRelease(2, 2, 0, NONE, target(1, 1e-6, "add-remove"))
    noise = NoisyMoments(design, None)
    drawn = noise.draw(np.random.default_rng(1), 20_000)
    np.testing.assert_allclose(drawn.gram.var(axis=0), noise.of_gram, rtol=0.05)
    np.testing.assert_allclose(drawn.cross.var(axis=0), noise.of_cross, rtol=0.05)


def test_what_is_shown(tmp_path: Path) -> None:
    """The table has every coefficient; infinite intervals are drawn to the edges."""
    frame, bounds = {"y": [1.0] * 30, "x": [2.0] * 30}, {"y": (0, 9), "x": (0, 9)}
    # Noise alone looks like a slope in about one release of ten: its interval is then finite.
    released = (
        inference.linear_regression("y ~ x", frame, bounds=bounds, epsilon=0.1) for _ in range(30)
    )
    shown = (one.simulated(draws=200) for one in released)
    found = next(one for one in shown if np.isinf(one.interval()[1]).all())
    text = found.summary()
    assert "Intercept" in text
    assert "pulled towards 0" in text
    found.plot(tmp_path / "a.png")
    assert (tmp_path / "a.png").stat().st_size > 1000


def test_what_so_few_rows_cannot_tell_is_said() -> None:
    """As many rows as coefficients leave no residual: R² is not 0, it is not determined."""
    bounds = {"y": (0, 9), "x": (0, 9)}
    for n in (0, 1, 2):
        frame = {"y": [3.0] * n, "x": [4.0] * n}
        found = inference.linear_regression("y ~ x", frame, bounds=bounds, epsilon=1)
        assert np.isnan([found.rsquared, found.scale, found.residual_deviation]).all()
        assert "no more rows than coefficients" in " ".join(found.summary().split())
        new = found.predict({"x": [1.0]}, new=True).simulated(draws=200)
        assert new.interval().tolist() == [[-np.inf, np.inf]]
    frame = {"y": [3.0] * 3, "x": [4.0] * 3}
    found = inference.linear_regression("y ~ x", frame, bounds=bounds, epsilon=1)
    assert "R² " in found.summary()
    assert "not determined" not in found.summary()
