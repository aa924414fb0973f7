"""Series: sensitivities by enumeration, budgets of streams in all their ways, hostile readings."""

from __future__ import annotations

import itertools
import math
from fractions import Fraction
from functools import partial
from typing import Any

import numpy as np
import polars as pl
import pytest

from dither import accounting, audit, series
from dither._subjects import declared
from dither.accounting import BudgetFilter
from dither.errors import ArgumentError, BudgetError, PromiseError
from dither.lab.audit import Outcome
from dither.ledger import Ledger
from dither.mechanisms import DiscreteLaplace
from dither.privacy import Neighbours
from dither.series._linear import SeriesDesign, fourier_matrix, haar_matrix
from dither.series._quantiles import QuantileDesign
from dither.series._readings import Readings, _roots_up, readings_of

ONE, NONE = Fraction(1), Fraction(0)
BOTH = [Neighbours.ADD_REMOVE, Neighbours.REPLACE]
ADDED = Neighbours.ADD_REMOVE
MATRICES = {
    "times": np.eye(4, dtype=np.int64),
    "windows": np.array([[1, 1, 0, 0], [0, 0, 1, 1]]),
    "haar": haar_matrix(4),
    "fourier": fourier_matrix(4, 3),
}


def _small(level: str, w: int | None, relation: Neighbours, **limits: Any) -> Readings:
    """Readings of -1 to 2 steps."""

    class Coarse(Readings):
        step = ONE

    found = {"total": None, "norm": None} | limits
    return Coarse(4, -ONE, Fraction(2), level, w, relation, **found)


def _changes(public: Readings) -> list[Any]:
    """All vectors by which neighbours may move the sum."""
    vectors = public.lattice(np.array(list(itertools.product([-1.0, 0, 1, 2], repeat=4))))
    vectors = np.unique(vectors, axis=0)
    if public.level == "user":
        if public.neighbours is ADDED:
            return list(vectors)
        return list(np.unique((vectors[:, None] - vectors).reshape(-1, 4), axis=0))
    size = 1 if public.level == "event" else public.w
    each = range(-1, 3) if public.neighbours is ADDED else range(-3, 4)
    found = []
    for begin in range(4 - size + 1):
        for values in itertools.product(each, repeat=size):
            change = np.zeros(4, dtype=np.int64)
            change[begin : begin + size] = values
            found.append(change)
    return found


CASES = [
    *(("event", None, {}), ("w-event", 2, {}), ("w-event", 3, {}), ("user", None, {})),
    *(("user", None, {"total": 3}), ("user", None, {"norm": 2})),
    ("user", None, {"total": 3, "norm": 2}),
]


@pytest.mark.parametrize("relation", BOTH)
@pytest.mark.parametrize("matrix", MATRICES.values(), ids=MATRICES)
@pytest.mark.parametrize(("level", "w", "limits"), CASES)
def test_no_neighbours_move_numbers_farther_than_is_claimed(matrix, level, w, limits, relation):
    """All changes of four readings of few steps, under every promise."""
    public = _small(level, w, relation, **limits)
    design = SeriesDesign(matrix, matrix / 1.0, public, ONE, NONE)
    known = design.sensitivity(public)
    moved = np.abs(np.array(_changes(public)) @ matrix.T)
    assert moved.sum(axis=1).max() <= known.l1
    assert (moved**2).sum(axis=1).max() <= known.l2_squared
    assert moved.max() <= known.linf
    if level == "event":
        assert (moved.sum(axis=1).max(), (moved**2).sum(axis=1).max()) == (
            known.l1,
            known.l2_squared,
        )


@pytest.mark.parametrize("relation", BOTH)
def test_sums_of_windows_are_priced_exactly(relation):
    """Where windows are sums and units bounded in all, the claim is reached."""
    public = _small("user", None, relation, total=3)
    for name in ("times", "windows"):
        design = SeriesDesign(MATRICES[name], MATRICES[name] / 1.0, public, ONE, NONE)
        moved = np.abs(np.array(_changes(public)) @ MATRICES[name].T)
        assert moved.sum(axis=1).max() == design.sensitivity(public).l1


def test_units_are_scaled_within_their_bounds():
    """In whole numbers, whatever they hold; those within bounds stay as they are."""
    rng = np.random.default_rng(1)
    values = rng.normal(0, 3, (200, 9)) * rng.choice([0.1, 1, 1e300], (200, 1))
    plain = readings_of(9, (-4, 5), "user", None, ADDED)
    bound = readings_of(9, (-4, 5), "user", None, ADDED, max_total=12, max_norm=6)
    free, held = plain.lattice(values), bound.lattice(values)
    assert np.abs(held).sum(axis=1).max() <= bound.total == math.floor(12 / bound.step)
    assert int((held**2).sum(axis=1).max()) <= bound.norm**2
    within = (np.abs(free).sum(axis=1) <= bound.total) & ((free**2).sum(axis=1) <= bound.norm**2)
    assert (held[within] == free[within]).all()
    squares = np.array([0, 1, 2, 4, 2**52 - 1, (2**26 - 1) ** 2, (2**26 - 1) ** 2 + 1])
    assert _roots_up(squares).tolist() == [0, 1, 2, 2, 2**26, 2**26 - 1, 2**26]


def test_sums_beyond_64_bits_are_exact_and_refuse_nobody():
    """A refusal would tell what readings add up to."""
    public = _small("user", None, ADDED)
    design = SeriesDesign(np.ones((1, 4), dtype=np.int64), np.ones((1, 4)), public, ONE, NONE)
    object.__setattr__(design, "matrix", np.full((1, 4), 1 << 60))
    use = np.ones((3, 4))
    exact = design.exact(use)
    assert exact.tolist() == [(1 << 60) * int(public.lattice(use).sum())]
    assert exact[0] > 1 << 63
    assert np.isfinite(design.release(use)).all()


@pytest.mark.parametrize("length", [1, 2, 5, 8, 13])
def test_series_are_read_back_from_their_numbers(length):
    """At hardly any noise, times and stretches are what they were; of all coefficients, too."""
    use = np.random.default_rng(length).uniform(0, 2, (50, length))
    exact = use.sum(axis=0)
    asked: dict[str, Any] = {"bounds": (0, 2), "epsilon": 10**6}
    for found in (
        series.window_sums(use, **asked),
        series.haar(use, **asked),
        series.fourier(use, coefficients=length, **asked),
    ):
        assert np.allclose(found.values, exact, atol=0.02)
        estimate, lower, upper = found.sum(0, (length + 1) // 2)
        assert estimate == pytest.approx(exact[: (length + 1) // 2].sum(), abs=0.02)
        assert upper - lower < 0.1
        assert found.frame().columns == ["time", "estimate", "lower", "upper"]


def test_pictures_are_drawn(tmp_path):
    """Sums with their band and quantiles with theirs, saved where it is asked for."""
    pytest.importorskip("matplotlib")
    found = series.window_sums(np.ones((3, 5)), bounds=(0, 1), epsilon=1)
    axes = found.plot(tmp_path / "sums.png").axes[0]
    assert (tmp_path / "sums.png").stat().st_size > 1000
    assert axes.lines[0].get_ydata().tolist() == found.values.tolist()
    middle = series.window_quantiles(np.ones((3, 5)), [0.1, 0.5], bounds=(0, 2), epsilon=1)
    lines = middle.plot().axes[0].lines
    assert [line.get_ydata().tolist() for line in lines] == middle.values.T.tolist()


def test_fourier_rows_are_nearly_orthonormal():
    """But for rounding to whole numbers, which is below a thousandth."""
    for length in (7, 8, 96):
        m = fourier_matrix(length, length) / (4096 * math.sqrt(length))
        assert np.abs(m @ m.T - np.eye(length)).max() < 1e-3


@pytest.mark.parametrize("kind", ["laplace", "gaussian"])
def test_intervals_hold_what_they_cover(kind):
    """Of 400 sums over a stretch at 95 %, no more than chance allows miss the truth."""
    asked: dict[str, Any] = {"bounds": (0, 1), "epsilon": 1, "max_total": 8}
    asked["delta"] = 0 if kind == "laplace" else 1e-6
    found = series.haar(np.ones((20, 8)), **asked)
    design, missed = found.design, 0
    for _ in range(400):
        noisy = design.release(np.ones((20, 8)))
        again = series.SeriesSums("", design, noisy, found.loss, "person")
        _, lower, upper = again.sum(1, 6)
        missed += not lower <= 100 <= upper
    # Expected 20 or fewer; 42 or more has a chance below 1e-5.
    assert missed < 42


def test_promises_are_kept_apart():
    """One noise, three prices, three units: an account charged for one refuses the others."""
    found = series.window_sums(
        np.ones((10, 24)), bounds=(0, 1), window=6, level="event", epsilon="0.1", unit="household"
    )
    prices = found.prices(w=6)
    assert [(k, v.charge.epsilon) for k, v in prices.items()] == [
        ("event", Fraction(1, 10)),
        ("w-event", Fraction(6, 10)),
        ("user", Fraction(24, 10)),
    ]
    assert found.loss == prices["event"]
    for one, other in itertools.permutations(prices.values(), 2):
        account = accounting.PureFilter(10).charge(one)
        assert account.admits(one)
        with pytest.raises(ArgumentError, match="cannot be added"):
            account.charge(other)
    # What windows share is cheaper than group privacy says: 8 waves of many readings.
    waves = series.fourier(
        np.ones((10, 64)), bounds=(0, 1), coefficients=8, level="event", epsilon="0.1", delta=1e-9
    ).prices(w=64)
    assert waves["user"].charge.rho < 64 * 64 * waves["event"].charge.rho
    bounded = series.window_sums(np.ones((2, 4)), bounds=(0, 1), max_total=2, epsilon=1)
    assert list(bounded.prices(w=2)) == ["user"]


@pytest.mark.parametrize("relation", BOTH)
@pytest.mark.parametrize(("level", "w"), [("event", None), ("w-event", 2), ("user", None)])
def test_no_neighbours_move_quantiles_farther_than_is_claimed(level, w, relation):
    """All pairs of a unit's three readings, in windows of two: bins of every level of the tree."""
    public = readings_of(3, (0, 1), level, w, relation)
    design = QuantileDesign(4, 2, public, ONE, NONE)
    tree, chosen = design.plan()
    vectors = list(itertools.product([0.1, 0.4, 0.9, math.nan], repeat=3))
    counts = [
        np.concatenate(tree.counts(design.leaves(np.array([v]))), axis=1).ravel() for v in vectors
    ]
    empty = np.zeros_like(counts[0])
    worst = 0
    for (a, one), (b, other) in itertools.product(zip(vectors, counts, strict=True), repeat=2):
        changed = [i for i in range(3) if a[i] is not b[i] and a[i] != b[i]]
        wide = (max(changed) - min(changed) + 1) if changed else 0
        if level == "user" and relation is ADDED:
            worst = max(worst, int(np.abs(one - empty).sum()))
        elif wide <= {"event": 1, "w-event": 2, "user": 3}[level]:
            worst = max(worst, int(np.abs(one - other).sum()))
    assert worst == chosen.sensitivity.l1


def test_quantiles_are_near_the_true_ones():
    """Medians of windows of known numbers, within the width of a bin and noise."""
    rng = np.random.default_rng(4)
    use = rng.uniform(0, 1, (3000, 4)) + np.array([0, 0, 2, 2])
    found = series.window_quantiles(
        use, [0.25, 0.5], bounds=(0, 4), window=2, bins=128, epsilon=2, delta=1e-6
    )
    exact = np.quantile(use.reshape(3000, 2, 2).mean(axis=2), [0.25, 0.5], axis=0).T
    assert np.abs(found.values - exact).max() < 0.1
    assert (found.lower <= found.upper).all()
    assert len(found.frame()) == 4


@pytest.mark.parametrize("method", ["absorption", "distribution", "uniform"])
@pytest.mark.parametrize("w", [1, 2, 3, 5])
def test_no_way_of_publishing_spends_more_than_w_times_may(method, w, monkeypatch):
    """Every pattern of publishing and being silent over seven times, in exact fractions."""
    for pattern in itertools.product([False, True], repeat=7):
        stream = series.WEventStream(1, w=w, epsilon=1, method=method)
        # Counts so far from the last ones that they are published, or the last ones again.
        for wanted in pattern:
            far = int(stream._published[0]) + (1 << 40 if wanted else 0)
            stream._noisy = lambda exact, share: exact  # type: ignore[method-assign]
            monkeypatch.setattr(DiscreteLaplace, "_draw", lambda self, n: np.zeros(n, dtype=int))
            stream.publish(np.array([far]))
        assert max(stream.windows()) <= 1
        assert max(stream.spent) <= stream.prices()["event"].charge.epsilon <= 1
        if method == "absorption" and w == 3 and pattern == (True,) * 7:
            # Asked each time; published at its own sixth each time.
            assert stream.spent == (Fraction(1, 3),) * 7


def test_absorbed_budgets_are_given_back_by_silence():
    """A publication that took three times' budget is followed by two silent times."""
    stream = series.WEventStream(1, w=4, epsilon=1000)
    for value in (0, 0, 10**6, 2 * 10**6, 3 * 10**6, 4 * 10**6):
        stream.publish([value])
    published = [one - stream._asks for one in stream.spent]
    assert published == [0, 0, 375, 0, 0, 125]


def test_streams_publish_what_changes():
    """Quiet counts are told once at a large share, with less noise than that of even shares."""
    rng, errors = np.random.default_rng(1), {}
    steps = np.repeat(rng.integers(0, 500, 6), 40)
    for method in ("absorption", "uniform"):
        stream = series.WEventStream(2, w=20, epsilon=1, method=method)
        told = np.array([stream.publish([n, 500 - n]) for n in steps])
        errors[method] = np.abs(told[:, 0] - steps).mean()
    assert errors["absorption"] < errors["uniform"]
    prices = stream.prices()
    assert prices["user"].charge.epsilon == 12
    assert prices["w-event"].charge.epsilon == 1
    assert prices["event"].charge.epsilon == Fraction(1, 20)
    assert "spent so far at most 1 " in str(stream).replace("\n", " ")


HOSTILE: list[Any] = [
    np.zeros((0, 6)),
    np.full((3, 6), math.nan),
    np.array([[math.inf, -math.inf, 1e308, -1e308, math.nan, 0.0]]),
    [[1, None, "x", 2, 3, 4], [5e-324] * 6],
    np.ma.masked_array(np.ones((2, 6)), mask=[[True] * 6] * 2),
    np.full((2, 6), 2**62),
    pl.DataFrame({f"t{i}": [1.0, None] for i in range(6)}),
]


@pytest.mark.parametrize("readings", HOSTILE, ids=range(len(HOSTILE)))
def test_no_readings_raise(readings):
    """No units, NaN, infinities, texts, what is masked, and numbers beyond all bounds."""
    asked: dict[str, Any] = {"bounds": (-1, 2), "epsilon": 1}
    for found in (
        series.window_sums(readings, window=4, max_total=3, **asked),
        series.haar(readings, max_norm=2, **asked),
        series.fourier(readings, coefficients=3, **asked),
    ):
        assert found.values.shape == (6,)
        assert np.isfinite(found.values).all()
    assert series.window_quantiles(readings, [0.5], window=3, **asked).values.shape == (2, 1)


USE = np.ones((3, 4))
STREAM = series.WEventStream(2, w=3, epsilon=1)
REFUSED: list[tuple[str, Any]] = [
    ("bounds", lambda: series.window_sums(USE, bounds=(1, 0), epsilon=1)),
    ("bounds", lambda: series.window_sums(USE, bounds=3, epsilon=1)),
    ("bounds", lambda: series.window_sums(USE, bounds=(0, 1e300), epsilon=1)),
    ("epsilon", lambda: series.window_sums(USE, bounds=(0, 1), epsilon=0)),
    ("window", lambda: series.window_sums(USE, bounds=(0, 1), epsilon=1, window=5)),
    ("max_total", lambda: series.haar(USE, bounds=(0, 1), epsilon=1, max_total=1, level="event")),
    ("max_norm", lambda: series.haar(USE, bounds=(0, 1), epsilon=1, max_norm=0)),
    ("max_norm", lambda: series.haar(USE, bounds=(0, 1), epsilon=1, max_norm=1e-9)),
    ("level", lambda: series.haar(USE, bounds=(0, 1), epsilon=1, level="day")),
    ("w must be given", lambda: series.haar(USE, bounds=(0, 1), epsilon=1, level="w-event")),
    ("w must be left out", lambda: series.haar(USE, bounds=(0, 1), epsilon=1, w=3)),
    ("coefficients", lambda: series.fourier(USE, bounds=(0, 1), epsilon=1, coefficients=5)),
    ("readings", lambda: series.window_sums([1, 2], bounds=(0, 1), epsilon=1)),
    ("readings", lambda: series.window_sums([[1], [1, 2]], bounds=(0, 1), epsilon=1)),
    ("readings", lambda: series.window_sums("abc", bounds=(0, 1), epsilon=1)),
    ("readings", lambda: series.window_sums(np.array([["a"]]), bounds=(0, 1), epsilon=1)),
    ("readings", lambda: series.haar(np.ones((1, 9000)), bounds=(0, 1), epsilon=1)),
    ("readings", lambda: series.haar(pl.DataFrame({"a": ["1", None]}), bounds=(0, 1), epsilon=1)),
    ("qs", lambda: series.window_quantiles(USE, [2], bounds=(0, 1), epsilon=1)),
    ("qs", lambda: series.window_quantiles(USE, 0.5, bounds=(0, 1), epsilon=1)),
    ("bins", lambda: series.window_quantiles(USE, [0.5], bounds=(0, 1), epsilon=1, bins=1)),
    ("counts", lambda: STREAM.publish([1])),
    ("counts", lambda: STREAM.publish([1.5, 2])),
    ("counts", lambda: STREAM.publish([[1], [2, 3]])),
    ("counts", lambda: STREAM.publish([None, 1])),
    ("counts", lambda: STREAM.publish(np.ma.masked_array([5, 1], mask=[True, False]))),
    ("method", lambda: series.WEventStream(2, w=3, epsilon=1, method="x")),
    ("w must", lambda: series.WEventStream(2, w=0, epsilon=1)),
    ("unit", lambda: series.promise("user", unit="")),
    ("neighbours", lambda: series.promise("user", neighbours=Neighbours.EDGE)),
    ("stop", lambda: series.haar(USE, bounds=(0, 1), epsilon=1).sum(0, 9)),
]


@pytest.mark.parametrize(("name", "call"), REFUSED)
def test_bad_arguments_are_named(name, call):
    """By name, at no cost."""
    with pytest.raises(ArgumentError, match=name):
        call()
    assert STREAM.times == 0


def test_hostile_counts_are_published():
    """Counts beyond 64 bits of sums are taken for the largest that is read."""
    stream = series.WEventStream(2, w=2, epsilon=1)
    far = ([2**62, -(2**62)], [0, 0], np.array([2**63, 0], dtype=np.uint64), [2**70, -1])
    for counts in far:
        assert stream.publish(counts).shape == (2,)


def test_releases_are_charged_before_anything_is_added_up(tmp_path, monkeypatch):
    """Each what its loss says; an account of homes refuses readings, and nothing is added up."""
    with Ledger.open(tmp_path / "meters.ledger") as ledger:
        homes = series.promise("user", unit="home")
        ledger.open_accounts({"homes": BudgetFilter(3, 0)}, homes)
        use = series.charged_to(USE, ledger, "homes")
        assert repr(use) == "<readings of units, protected>"
        asked: dict[str, Any] = {"bounds": (0, 1), "epsilon": "1/2", "unit": "home"}
        made = [
            series.window_sums(use, window=2, max_total=2, **asked),
            series.haar(use, **asked),
            series.fourier(use, coefficients=2, **asked),
            series.window_quantiles(use, [0.5], bins=4, **asked),
        ]
        spent = ledger.balance("homes").spent
        assert spent.epsilon == 2 == sum(one.loss for one in made).charge.epsilon
        assert {one.loss.promise for one in made} == {homes}
        monkeypatch.setattr(Readings, "lattice", lambda self, values: 1 / 0)
        for refused, error in (({"epsilon": 2}, BudgetError), ({"level": "event"}, PromiseError)):
            for release in (
                series.window_sums,
                series.haar,
                partial(series.fourier, coefficients=2),
                partial(series.window_quantiles, qs=[0.5]),
            ):
                with pytest.raises(error):
                    release(use, **(asked | refused))
        assert ledger.balance("homes").spent == spent
        with pytest.raises(ArgumentError, match="ledger must be"):
            series.charged_to(USE, "homes.ledger", "homes")


def _audited(subject: Any, samples: int) -> None:
    asked = {"epsilon": subject.epsilon, "delta": subject.delta, "samples": samples}
    found = audit(subject.mechanism, subject.d0, subject.d1, **asked)
    assert found.verdict is not Outcome.VIOLATED


@pytest.mark.parametrize("made", [SeriesDesign, QuantileDesign])
def test_sums_and_quantiles_stand_an_audit(made):
    """The house's auditor finds no more than is claimed."""
    for subject in made.audit_subjects():
        _audited(subject, 20_000)


@pytest.mark.slow
def test_streams_stand_an_audit():
    """Drawn one by one, over two times that are protected together; sums are held above."""

    def run(counts: tuple[int, ...]) -> tuple[int, ...]:
        stream = series.WEventStream(1, w=2, epsilon=1)
        return tuple(int(stream.publish([c])[0]) for c in counts)

    assert audit(run, (0, 0), (1, 1), epsilon=1, samples=4000).verdict is not Outcome.VIOLATED


def test_all_are_audited():
    """By ``dither audit --all``, which reads these."""
    names = {subject.name for subject in declared(series)}
    assert names == {"series", "window quantiles", "w-event stream"}
