"""Places and paths: sensitivities by enumeration, exact chances, and data that never raise."""

from __future__ import annotations

import itertools
import math
from datetime import UTC, date, datetime
from fractions import Fraction
from typing import Any

import numpy as np
import polars as pl
import pytest

from dither import audit, places
from dither._subjects import declared
from dither.accounting import BudgetFilter
from dither.errors import ArgumentError, BudgetError, PromiseError
from dither.lab.audit import Outcome
from dither.ledger import Ledger
from dither.numeric import exp_lower
from dither.numeric._directed import sqrt_lower
from dither.places._counts import PlaceDesign
from dither.places._model import PathDesign, _short
from dither.places._paths import kept_rows
from dither.places._quadtree import QuadtreeDesign, _consistent
from dither.privacy import Neighbours, Promise

BOTH = [Neighbours.ADD_REMOVE, Neighbours.REPLACE]
ONE = Fraction(1)


def _farthest(vectors: list[Any], neighbours: Neighbours) -> tuple[int, int]:
    """The largest l1 and l2² between a unit's vectors, or from one to none."""
    zero = np.zeros_like(vectors[0])
    pairs = (
        itertools.product(vectors, vectors)
        if neighbours is Neighbours.REPLACE
        else ((v, zero) for v in vectors)
    )
    moved = [np.abs(a - b) for a, b in pairs]
    return max(int(m.sum()) for m in moved), max(int((m**2).sum()) for m in moved)


@pytest.mark.parametrize("neighbours", BOTH)
@pytest.mark.parametrize(("most", "each"), [(1, 1), (3, 1), (3, 2), (4, 4)])
def test_counts_are_moved_as_far_as_is_claimed(most, each, neighbours):
    """All units of up to five rows in six cells: the claim is reached, and never exceeded."""
    design = PlaceDesign(6, most, each, ONE, Fraction(0), neighbours)
    seen = [np.zeros(6, dtype=np.int64)]
    seen += [
        design.exact(np.zeros(5, dtype=np.int64), np.array(keys))
        for keys in itertools.combinations_with_replacement(range(6), 5)
    ]
    distinct = [np.array(v) for v in {tuple(v) for v in seen}]
    assert max(int(v.max()) for v in distinct) <= each
    known = design.sensitivity
    l1, square = _farthest(distinct, neighbours)
    assert (l1, square) == (known.l1, known.l2_squared)


def test_kept_rows_hang_on_the_unit_alone():
    """Each pair of a unit's four rows is kept as often, whoever else is there."""
    for others in (0, 7):
        unit = np.concatenate([np.zeros(4, dtype=np.int64), np.arange(1, 1 + others)])
        key = np.arange(unit.size)
        found: dict[Any, int] = {}
        for _ in range(600):
            kept = tuple(sorted(r for r in kept_rows(unit, key, 2, 1).tolist() if r < 4))
            found[kept] = found.get(kept, 0) + 1
        assert len(found) == 6
        # 5 deviations of a binomial of 600 and 1/6: a false alarm in a million.
        assert max(abs(n - 100) for n in found.values()) < 5 * math.sqrt(600 * 5 / 36)


@pytest.mark.parametrize("neighbours", BOTH)
def test_paths_are_moved_no_farther_than_is_claimed(neighbours):
    """All trips of up to five cells of three: as far as the claim says, and no farther."""
    design = PathDesign(3, 3, 1, ONE, Fraction(0), neighbours)
    vectors = [
        design.exact(np.zeros(n, dtype=np.int64), np.array(cells))
        for n in range(1, 6)
        for cells in itertools.product(range(3), repeat=n)
    ]
    distinct = [np.array(v) for v in {tuple(v) for v in vectors}]
    known = design.moved(design.weights)
    l1, square = _farthest(distinct, neighbours)
    assert square <= known.l2_squared
    assert l1 <= known.l1
    if neighbours is Neighbours.ADD_REMOVE:
        assert (l1, square) == (known.l1, known.l2_squared)


def test_a_unit_of_several_trips_moves_as_many_times_as_far():
    """Two equal trips move what leaves by twice as much: the claim of two is reached."""
    design = PathDesign(3, 3, 2, ONE, Fraction(0), Neighbours.ADD_REMOVE)
    moved = design.exact(np.array([0, 0, 0, 1, 1, 1]), np.array([0, 1, 2, 0, 1, 2]))
    known = design.moved(design.weights)
    assert (moved.sum(), (moved**2).sum()) == (known.l1, known.l2_squared)


@pytest.mark.parametrize("length", range(1, 40))
def test_thinned_trips_keep_their_ends(length):
    """At most so many cells stay, the first and the last among them."""
    _, cells = _short(np.zeros(length, dtype=np.int64), np.arange(length), 5)
    assert len(cells) == min(length, 5)
    assert (cells[0], cells[-1]) == (0, length - 1)


def test_quadtrees_keep_their_promise_for_every_answer():
    """Exact probabilities of all trees of depth 1 over a range of counts, of neighbours."""
    design = QuadtreeDesign(0, 1, 1, ONE, Fraction(0), Neighbours.ADD_REMOVE, split=1.5)
    scale, base = design.chosen.mechanism.scale, np.array([[2, 0], [1, 0]])
    worst = Fraction(0)
    for row, column in itertools.product(range(2), repeat=2):
        more = base.copy()
        more[row, column] += 1
        for root in range(-4, 9):
            lost = Fraction(abs(root - 4) - abs(root - 3)) / scale
            # The root decides alone whether quarters are asked, with either table.
            quarters = range(-4, 9) if root > design.threshold else [None]
            for seen in quarters:
                here = base[row, column]
                own = 0 if seen is None else abs(seen - here - 1) - abs(seen - here)
                worst = max(worst, abs(lost + Fraction(int(own)) / scale))
    assert worst == ONE == design.chosen.loss().charge.epsilon


@pytest.mark.parametrize("neighbours", BOTH)
@pytest.mark.parametrize("first", [0, 2])
def test_trees_are_moved_as_far_as_is_claimed(first, neighbours):
    """Of every level of a whole tree of depth 2, a unit of two rows moves as much as is claimed."""
    design = QuadtreeDesign(first, 2, 2, ONE, Fraction(0), neighbours, split=-100)
    vectors = []
    for a, b in itertools.product(range(16), repeat=2):
        leaves = np.bincount([a, b], minlength=16).reshape(4, 4)
        parts = [leaves, leaves.reshape(2, 2, 2, 2).sum(axis=(1, 3)), leaves.sum(keepdims=True)]
        vectors.append(np.concatenate([part.ravel() for part in parts[: 3 - first]]))
    l1, square = _farthest(vectors, neighbours)
    known = design.sensitivity
    assert l1 <= known.l1
    assert square <= known.l2_squared
    if neighbours is Neighbours.ADD_REMOVE or first:
        assert (l1, square) == (known.l1, known.l2_squared)


def test_only_squares_that_noisy_counts_split_are_counted():
    """The next level is asked for the quarters of squares above the threshold, and no others."""
    design = QuadtreeDesign(0, 3, 1, Fraction(1000), Fraction(0), Neighbours.ADD_REMOVE, split=5)
    leaves = np.zeros((8, 8), dtype=np.int64)
    leaves[0, 0], leaves[7, 7] = 50, 3
    found = design.release(leaves)
    assert [codes.size for codes, _ in found] == [1, 4, 4, 4]
    assert [int(noisy.sum()) for _, noisy in found] == [53, 53, 50, 50]
    assert found[3][0].tolist() == [0, 1, 8, 9]


@pytest.mark.parametrize("first", [0, 1])
def test_estimates_of_a_tree_are_those_of_least_squares(first):
    """The two passes against a dense solution of a tree that is not complete; variances too."""
    rng = np.random.default_rng(3)
    design = QuadtreeDesign(first, 3, 1, ONE, Fraction(0), Neighbours.ADD_REMOVE, split=10)
    leaves = np.zeros((8, 8), dtype=np.int64)
    leaves[:3, :3], leaves[6:, 2:5] = rng.integers(20, 40, (3, 3)), 9
    released = design.release(leaves)
    estimates, variances = _consistent(released, 2.0, first)
    squares = [(first + at, int(c)) for at, (codes, _) in enumerate(released) for c in codes]

    def inside(level: int, code: int, other: tuple[int, int]) -> bool:
        row, column = divmod(other[1], 1 << other[0])
        back = other[0] - level
        return back >= 0 and ((row >> back) << level) + (column >> back) == code

    smallest = [s for s in squares if sum(inside(*s, o) for o in squares) == 1]
    design_matrix = np.array([[float(inside(*s, leaf)) for leaf in smallest] for s in squares])
    noisy = np.concatenate([n for _, n in released])
    solved = np.linalg.lstsq(design_matrix, noisy, rcond=None)[0]
    spread = 2.0 * design_matrix @ np.linalg.inv(design_matrix.T @ design_matrix) @ design_matrix.T
    assert np.allclose(np.concatenate(estimates), design_matrix @ solved)
    assert np.allclose(np.concatenate(variances), np.diag(spread))


def test_pictures_are_drawn(tmp_path):
    """A tree as squares, cells of a grid and pairs of them, saved where it is asked for."""
    pytest.importorskip("matplotlib")
    paths = places.Paths([1, 2], [0, 0], [0.1, 0.9], [0.1, 0.9])
    tree = places.quadtree(paths, bounds=((0, 1), (0, 1)), max_depth=2, epsilon=1)
    axes = tree.plot(tmp_path / "tree.png").axes[0]
    assert (tmp_path / "tree.png").stat().st_size > 1000
    assert len(axes.collections[0].get_paths()) == len(tree.frame())
    grid = places.PlaceGrid(2, 3, cell=1)
    seen = places.visits(paths, grid, max_visits=1, epsilon=1)
    shown = np.asarray(seen.plot(tmp_path / "seen.png").axes[0].images[0].get_array())
    assert shown == pytest.approx(np.sqrt(seen.counts.clip(0).sum(axis=1)).reshape(2, 3))
    trips = places.origin_destination(paths, grid, max_trips=1, epsilon=1)
    assert np.asarray(trips.plot().axes[0].images[0].get_array()).shape == (6, 6)


def _walks(people: int, seed: int = 1) -> tuple[places.Paths, places.PlaceGrid]:
    """Trips along a row of a grid and then along a column, as commuters make them."""
    rng = np.random.default_rng(seed)
    start, end = rng.integers(0, 4, (2, people)), rng.integers(0, 4, (2, people))
    unit, time, x, y = [], [], [], []
    for p in range(people):
        a, b = start[:, p], end[:, p]
        cells = [(c, a[1]) for c in range(a[0], b[0], 1 if b[0] > a[0] else -1)]
        cells += [(b[0], c) for c in range(a[1], b[1], 1 if b[1] > a[1] else -1)]
        cells.append((b[0], b[1]))
        unit += [p] * len(cells)
        time += range(len(cells))
        x += [c[0] + 0.5 for c in cells]
        y += [c[1] + 0.5 for c in cells]
    return places.Paths(unit, time, x, y), places.PlaceGrid(4, 4, cell=1, unit="km")


def test_drawn_paths_have_the_ends_and_lengths_that_left():
    """The model's law has exactly its ends; with little noise paths are near the real ones."""
    paths, grid = _walks(1500)
    model = places.path_model(paths, grid, max_length=8, epsilon=50)
    assert np.allclose(model._law.sum(axis=0), model.ends)
    drawn = model.sample(4000, np.random.default_rng(2))
    errors = places.compare_paths(paths, drawn, grid, max_length=8)
    assert errors.ends < 0.15
    assert errors.lengths < 0.05
    assert errors.visits < 0.05
    assert all(path.min() >= 0 and path.max() < 16 for path in drawn)
    # A model of nothing draws paths all the same.
    empty = places.path_model(places.Paths([], [], [], []), grid, max_length=2, epsilon=1)
    assert len(empty.sample(5, np.random.default_rng(1))) == 5


def test_counts_are_what_they_say():
    """At hardly any noise, trips and visits are those of a table counted by hand."""
    grid = places.PlaceGrid(1, 2, cell=1)
    paths = places.Paths.of(
        {
            "who": ["a", "a", "a", "b", "b", None, "c"],
            "when": [0, 3600, 90_000, 7200, 7300, 0, 0],
            "x": [0.5, 1.5, 0.5, 1.5, 0.1, 0.5, 9.0],
            "y": [0.5] * 7,
        },
        unit="who",
        time="when",
        x="x",
        y="y",
    )
    asked: dict[str, Any] = {"epsilon": 1000}
    trips = places.origin_destination(paths, grid, max_trips=2, gap=5000, **asked)
    assert trips.counts.tolist() == [[1, 1], [1, 0]]
    seen = places.visits(paths, grid, max_visits=3, **asked)
    assert {(c, h): int(n) for (c, h), n in np.ndenumerate(seen.counts) if n} == {
        (0, 0): 1,
        (0, 1): 1,
        (0, 2): 1,
        (1, 1): 1,
        (1, 2): 1,
    }
    plain = places.visits(paths, grid, max_visits=9, per_cell=9, by_hour=False, **asked)
    assert plain.counts.tolist() == [3, 2]
    frame = trips.frame()
    assert frame.columns == ["origin", "destination", "count", "lower", "upper"]
    assert "Cost: ε = 1,000" in trips.summary()


def test_moments_of_any_kind_are_read():
    """Seconds, numpy's and Python's moments, and those of a frame say the same."""
    kinds: list[Any] = [
        [3600, 0],
        np.array(["1970-01-01T01:00", "1970-01-01"], dtype="datetime64[m]"),
        [datetime(1970, 1, 1, 1, tzinfo=UTC), datetime(1970, 1, 1)],
        pl.Series([datetime(1970, 1, 1, 1), datetime(1970, 1, 1)]),
    ]
    for kind in kinds:
        _, time, cells = places.Paths([1, 1], kind, [1.5, 0.5], [0.5, 0.5]).located(
            places.PlaceGrid(1, 2, cell=1)
        )
        assert (time.tolist(), cells.tolist()) == ([0.0, 3600.0], [0, 1])


class Moment(datetime):
    """A moment of somebody's own."""

    @property
    def tzinfo(self):
        """Anything may come out of it."""
        raise RuntimeError("secret")


def test_days_are_moments_and_texts_are_none():
    """What is no moment is missing; a column that says it holds texts is refused."""
    grid = places.PlaceGrid(1, 1, cell=1)
    read = places.Paths(
        [1] * 4, [date(1970, 1, 2), "1970-01-02", Moment(1970, 1, 1), None], *[[0.5] * 4] * 2
    )
    assert read.located(grid)[1].tolist() == [86_400.0]
    texts = [pl.Series(["a"]), pl.Series([None], dtype=pl.String), np.array(["1970-01-01"])]
    for column in texts:
        with pytest.raises(ArgumentError, match="time must hold seconds or moments, and is a colu"):
            places.Paths([1], column, [0.5], [0.5])
        with pytest.raises(ArgumentError, match="y must hold numbers, and is a column of texts"):
            places.Paths([1], [0], [0.5], column)


def test_refusals_say_nothing_of_how_long_a_value_is():
    """A type's name may have the width of the longest value in it."""
    with pytest.raises(ArgumentError, match=r"x must hold numbers; its type is void$"):
        places.Paths([1], [0], np.array([b"secret"], dtype="V6"), [0.5])


def test_units_that_differ_in_a_last_nul_are_two():
    """A text that NumPy would cut is another person."""
    paths = places.Paths(pl.Series(["a", "a\0"]), [0, 0], [0.5, 0.5], [0.5, 0.5])
    assert len(set(paths.points[0].tolist())) == 2


HOSTILE: list[tuple[Any, Any, Any, Any]] = [
    ([], [], [], []),
    ([1], [0], [0.5], [0.5]),
    ([1, 1, 1], [math.nan, math.inf, -math.inf], [0.5] * 3, [0.5] * 3),
    ([1, 2, 3], [0, 1e308, -1e308], [math.nan, math.inf, 1e308], [0.5, -math.inf, -1e308]),
    (
        [None, math.nan, [1], {}, "a\0\u2028", "a"],
        [0] * 6,
        ["x", None, 0.5, 0.5, 0.5, 1],
        [0.5] * 6,
    ),
    ([1] * 200_000, np.zeros(200_000), np.tile([0.5, 1.5], 100_000), np.full(200_000, 0.5)),
    (["same"] * 3, [0, 0, 0], [0.5, 0.5, 0.5], [0.5, 0.5, 0.5]),
]


@pytest.mark.parametrize("rows", HOSTILE, ids=range(len(HOSTILE)))
def test_no_data_raise(rows):
    """NaN, infinities, no rows, one point, one path of very many, units that cannot be told."""
    paths, grid = places.Paths(*rows), places.PlaceGrid(2, 2, cell=1)
    assert "0.5" not in repr(paths)
    assert places.visits(paths, grid, max_visits=2, epsilon=1).counts.shape == (4, 24)
    assert places.origin_destination(paths, grid, max_trips=1, epsilon=1, gap=1).counts.size == 16
    bounds = ((0, 2), (0, 2))
    assert len(places.quadtree(paths, bounds=bounds, max_depth=2, epsilon=1).frame()) >= 1
    model = places.path_model(paths, grid, max_length=3, epsilon=1)
    assert len(model.sample(3, np.random.default_rng(0))) == 3
    assert grid.nearest(*rows[2:]).size == len(rows[0])


UNIT = ((0, 1), (0, 1))
REFUSED: list[tuple[str, Any]] = [
    ("max_visits", lambda p, g: places.visits(p, g, max_visits=0, epsilon=1)),
    ("epsilon", lambda p, g: places.visits(p, g, max_visits=1, epsilon=-1)),
    ("delta", lambda p, g: places.visits(p, g, max_visits=1, epsilon=1, delta=1)),
    ("paths", lambda p, g: places.visits([1], g, max_visits=1, epsilon=1)),
    ("grid", lambda p, g: places.visits(p, 5, max_visits=1, epsilon=1)),
    ("unit", lambda p, g: places.visits(p, g, max_visits=1, epsilon=1, unit="")),
    ("per_cell", lambda p, g: places.visits(p, g, max_visits=1, epsilon=1, per_cell=0)),
    ("neighbours", lambda p, g: places.visits(p, g, max_visits=1, epsilon=1, neighbours="x")),
    ("max_trips", lambda p, g: places.origin_destination(p, g, max_trips="x", epsilon=1)),
    ("gap", lambda p, g: places.origin_destination(p, g, max_trips=1, epsilon=1, gap=0)),
    (
        "grid",
        lambda p, g: places.origin_destination(
            p, places.PlaceGrid(90, 90, 1), max_trips=1, epsilon=1
        ),
    ),
    ("bounds", lambda p, g: places.quadtree(p, bounds=(0, 1), max_depth=2, epsilon=1)),
    ("bounds", lambda p, g: places.quadtree(p, bounds=((1, 0), (0, 1)), max_depth=2, epsilon=1)),
    (
        "max_depth",
        lambda p, g: places.quadtree(p, bounds=((0, 1), (0, 1)), max_depth=11, epsilon=1),
    ),
    (
        "min_depth",
        lambda p, g: places.quadtree(p, bounds=UNIT, max_depth=2, min_depth=3, epsilon=1),
    ),
    ("max_length", lambda p, g: places.path_model(p, g, max_length=1, epsilon=1)),
    ("grid", lambda p, g: places.path_model(p, places.PlaceGrid(1, 1, 1), max_length=2, epsilon=1)),
    ("cell", lambda p, g: places.PlaceGrid(2, 2, 0)),
    ("rows", lambda p, g: places.PlaceGrid(0, 2, 1)),
    ("time", lambda p, g: places.Paths([1], [0, 1], [1], [1])),
    ("x must hold", lambda p, g: places.Paths([1], [0], np.array(["a"]), [1])),
    ("unit, time", lambda p, g: places.Paths.of({"a": [1]}, unit="a", time="t", x="x", y="y")),
    ("channel", lambda p, g: places.remap(g, [1])),
    ("prior", lambda p, g: places.remap(places.planar_laplace(g, 1), [1, 2])),
    ("prior", lambda p, g: places.remap(places.planar_laplace(g, 1), [0, 0, 0, 0])),
    ("prior", lambda p, g: places.remap(places.planar_laplace(g, 1), [10**400, 0, 0, 0])),
    ("prior", lambda p, g: places.remap(places.planar_laplace(g, 1), [1, math.nan, 0, 0])),
    ("rng", lambda p, g: places.repeated_places(places.planar_laplace(g, 1), 2, rng=None)),
    ("drawn", lambda p, g: places.compare_paths(p, [[4]], g, max_length=2)),
    ("drawn", lambda p, g: places.compare_paths(p, 5, g, max_length=2)),
    ("drawn", lambda p, g: places.compare_paths(p, [["a"]], g, max_length=2)),
    ("drawn", lambda p, g: places.compare_paths(p, [[0.5]], g, max_length=2)),
    ("codes", lambda p, g: g.centres([4])),
    ("codes", lambda p, g: g.centres([[0], [1, 2]])),
    (
        "reports",
        lambda p, g: places.remap(places.planar_laplace(g, 1), [1] * 4).apply([[1], [2, 3]]),
    ),
    (
        "y0",
        lambda p, g: places.quadtree(p, bounds=UNIT, max_depth=1, epsilon=1).count(0, 1, "a", 1),
    ),
]


@pytest.mark.parametrize(("name", "call"), REFUSED)
def test_bad_arguments_are_named(name, call):
    """The argument is named before any row is read."""
    with pytest.raises(ArgumentError, match=name):
        call(places.Paths([1], [0], [0.5], [0.5]), places.PlaceGrid(2, 2, cell=1))


def test_planar_noise_keeps_its_promise_for_all_pairs():
    """Exact chances of all reports of all pairs of cells, against exp(epsilon·d) rounded down."""
    grid = places.PlaceGrid(3, 4, cell="0.5", unit="km")
    channel = places.planar_laplace(grid, epsilon="1.5")
    law = [[channel.exact(x, y) for y in range(12)] for x in range(12)]
    assert all(sum(row) == 1 for row in law)
    tightest = 0.0
    for a, b in itertools.permutations(range(12), 2):
        square = (Fraction(b // 4 - a // 4) ** 2 + Fraction(b % 4 - a % 4) ** 2) / 4
        least = exp_lower(Fraction(3, 2) * sqrt_lower(square))
        for p, q in zip(law[a], law[b], strict=True):
            assert p <= least * q
            tightest = max(tightest, float(p / q / least))
    # Between neighbours the promise is used nearly whole.
    assert tightest > 0.99


def test_no_remap_is_better():
    """Of all cells that a report could be moved to, the table names one of least distance."""
    grid = places.PlaceGrid(2, 3, cell=1)
    channel, prior = places.planar_laplace(grid, 1), np.array([5, 1, 0, 2, 0, 9.0])
    found = places.remap(channel, prior)
    joint = (prior / prior.sum())[:, None] * channel.matrix
    away = grid.distances()
    best = sum(min(joint[:, y] @ away[:, z] for z in range(6)) for y in range(6))
    assert found.after == pytest.approx(best)
    assert found.after < found.before == pytest.approx(float((joint * away).sum()))
    assert found.apply([0, 5]).tolist() == found.table[[0, 5]].tolist()
    with pytest.raises(ArgumentError, match="reports"):
        found.apply([6])


def test_the_attack_on_repeated_places_is_the_best_one():
    """Of one report its success is the sum of the largest joint chances; of many it grows to 1."""
    channel = places.planar_laplace(places.PlaceGrid(3, 3, cell=1), 1)
    prior = np.arange(1.0, 10) / 45
    exact = float((prior[:, None] * channel.matrix).max(axis=0).sum())
    rng = np.random.default_rng(5)
    one = places.repeated_places(channel, 1, rng=rng, prior=prior, runs=4000)
    # Four deviations of 4,000 attacks: a false alarm in 15,000.
    assert abs(one.found - exact) < 4 * math.sqrt(exact * (1 - exact) / 4000)
    many = places.repeated_places(channel, 60, rng=rng, prior=prior, runs=400)
    assert many.found > 0.98
    assert (many.epsilon, many.by_prior) == (60, pytest.approx(0.2))


def test_releases_are_charged_before_anything_is_read(tmp_path, monkeypatch):
    """Each what its loss says; what the account does not bear, or protects, reads nothing."""
    grid, plain = places.PlaceGrid(2, 2, cell=1), places.Paths([1], [0], [0.5], [0.5])
    with Ledger.open(tmp_path / "city.ledger") as ledger:
        ledger.open_accounts({"riders": BudgetFilter(3, 0.01)}, Promise("rider"))
        paths = plain.charged_to(ledger, "riders")
        assert repr(paths) == repr(plain)
        asked: dict[str, Any] = {"epsilon": "1/2", "unit": "rider"}
        made = [
            places.visits(paths, grid, max_visits=1, **asked),
            places.origin_destination(paths, grid, max_trips=1, gap=60, **asked),
            places.quadtree(paths, bounds=UNIT, max_depth=1, split=3, **asked),
            places.path_model(paths, grid, max_length=2, delta="1/1000", **asked),
        ]
        spent = ledger.balance("riders").spent
        assert spent.epsilon == 2 == sum(one.loss for one in made).charge.epsilon
        monkeypatch.setattr(places.Paths, "located", None)
        for refused, error in (({"epsilon": 2}, BudgetError), ({"unit": "person"}, PromiseError)):
            with pytest.raises(error):
                places.visits(paths, grid, max_visits=1, **(asked | refused))
            with pytest.raises(error):
                places.origin_destination(paths, grid, max_trips=1, **(asked | refused))
        with pytest.raises(PromiseError):
            places.quadtree(paths, bounds=UNIT, max_depth=1, neighbours="replace", **asked)
        assert ledger.balance("riders").spent == spent
        for ledgers, account, name in ((5, "a", "b"), (ledger, "", "b"), (ledger, "a", None)):
            with pytest.raises(ArgumentError, match=r"ledger must be|account must|name must"):
                plain.charged_to(ledgers, account, name=name)


def _audited(subject: Any, samples: int) -> None:
    asked = {"epsilon": subject.epsilon, "delta": subject.delta, "samples": samples}
    found = audit(subject.mechanism, subject.d0, subject.d1, **asked)
    assert found.verdict is not Outcome.VIOLATED


@pytest.mark.parametrize("made", [PlaceDesign, PathDesign, QuadtreeDesign])
def test_each_release_stands_an_audit(made):
    """The house's auditor finds no more than is claimed."""
    for subject in made.audit_subjects():
        _audited(subject, 20_000)


@pytest.mark.slow
def test_quadtrees_stand_an_audit():
    """As they are released, one by one; their exact chances are held above."""
    design = QuadtreeDesign(0, 1, 1, ONE, Fraction(0), Neighbours.ADD_REMOVE, split=0.5)

    def run(leaves: Any) -> tuple[int, ...]:
        return tuple(np.concatenate([noisy for _, noisy in design.release(leaves)]).tolist())

    here = np.array([[3, 0], [0, 0]])
    more = here + np.array([[1, 0], [0, 0]])
    assert audit(run, here, more, epsilon=1, samples=6000).verdict is not Outcome.VIOLATED


def test_all_are_audited():
    """By ``dither audit --all``, which reads these."""
    names = [subject.name for subject in declared(places)]
    assert names == ["counts of places", "quadtree", "paths"]


def test_an_audit_finds_half_the_noise():
    """With the sensitivity of one visit where two count, the auditor says so."""
    design = PlaceDesign(2, 1, 1, ONE, Fraction(0), Neighbours.ADD_REMOVE)
    noise = design.chosen.mechanism

    def run(moved: int, size: int) -> Any:
        return (moved + noise.draw((size, 2))).sum(axis=1)

    assert audit(run, 0, 3, epsilon=1, samples=20_000).verdict is Outcome.VIOLATED
