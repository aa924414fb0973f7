"""A simulated city's trips: errors of what `dither.places` releases, beside what is done today.

Run with ``python -m benchmarks.records.places``; a minute. Figures are errors, the same in every
run but for the noise. Peers: a Laplace count of every trip that a person makes, priced for the
person (without a bound on trips); counts below ten left out, as agencies do; a chain over cells
without its ends; an even grid; planar Laplace without its remap.
"""

from __future__ import annotations

import warnings

import numpy as np

from dither import places
from dither.mechanisms import DiscreteLaplace

SIDE, PEOPLE, DAYS = 8, 20_000, 5


def city(people: int, seed: int = 1) -> tuple[places.Paths, dict[str, np.ndarray]]:
    """Commuters: homes about three centres, work about one; each day there and back."""
    rng = np.random.default_rng(seed)
    centres = np.array([[1.5, 1.5], [6.0, 2.0], [3.0, 6.5]])
    home = centres[rng.choice(3, people, p=[0.5, 0.3, 0.2])] + rng.normal(0, 0.9, (people, 2))
    work = np.array([4.5, 4.0]) + rng.normal(0, 1.1, (people, 2))
    home, work = (np.clip(p, 0.01, SIDE - 0.01) for p in (home, work))
    steps = 12
    share = np.linspace(0, 1, steps)[:, None]
    columns: dict[str, list[np.ndarray]] = {"unit": [], "time": [], "x": [], "y": []}
    for day in range(DAYS):
        goes = rng.random(people) < 0.8
        who = np.flatnonzero(goes)
        for start, (a, b) in ((8, (home, work)), (17, (work, home))):
            # First across, then up, as streets are.
            across = a[who, 0] + np.minimum(2 * share, 1) * (b[who, 0] - a[who, 0])
            up = a[who, 1] + np.maximum(2 * share - 1, 0) * (b[who, 1] - a[who, 1])
            begins = day * 86_400 + start * 3600 + rng.normal(0, 2400, who.size)
            columns["unit"].append(np.tile(who, steps))
            columns["time"].append((begins + 1800 * share).ravel())
            columns["x"].append(across.ravel())
            columns["y"].append(up.ravel())
    found = {name: np.concatenate(parts) for name, parts in columns.items()}
    return places.Paths(found["unit"], found["time"], found["x"], found["y"]), found


def off(released: np.ndarray, exact: np.ndarray) -> str:
    """Mean absolute error of a cell, and of the hundred busiest, in per cent of what they hold."""
    top = np.argsort(-exact, axis=None)[:100]
    apart = np.abs(released - exact).ravel()
    return f"{apart.mean():8.2f} {100 * apart[top].sum() / exact.ravel()[top].sum():9.1f} %"


def trips(paths: places.Paths, grid: places.PlaceGrid) -> None:
    """Origins and destinations at a person's epsilon of 1."""
    print(f"\ntrips from cell to cell, {grid.cells**2:,} counts, one person: epsilon = 1")
    print(f"{'':38}{'mean |error|':>13}{'busiest 100':>12}")
    hardly = {"epsilon": 10**6, "gap": 3600}
    people = places.origin_destination(paths, grid, max_trips=2 * DAYS, **hardly).counts
    every = places.origin_destination(
        paths, grid, max_trips=2 * DAYS, per_cell=2 * DAYS, **hardly
    ).counts
    for most in (1, 2, 4):
        got = places.origin_destination(paths, grid, max_trips=most, epsilon=1, gap=3600).counts
        print(f"{f'people, at most {most} of their trips':38}{off(got, people):>25}")
    got = places.origin_destination(
        paths, grid, max_trips=2, epsilon=1, delta=1e-8, gap=3600
    ).counts
    print(f"{'people, at most 2, delta = 1e-8':38}{off(got, people):>25}")
    noise = DiscreteLaplace.for_loss(1, l1=2 * DAYS).draw(every.shape)
    print(f"{'all trips, without a bound (ten each)':38}{off(every + noise, every):>25}")
    dropped = np.where(every < 10, 0, every)
    print(f"{'counts below 10 left out: no promise':38}{off(dropped, every):>25}")


def squares(paths: places.Paths, columns: dict[str, np.ndarray]) -> None:
    """Rectangles from a quadtree and from even grids, a visit a person."""
    rng = np.random.default_rng(2)
    ends = np.sort(rng.uniform(0, SIDE, (200, 2, 2)), axis=2)
    kept = np.unique(columns["unit"], return_index=True)[1]
    one = places.Paths(
        columns["unit"][kept], columns["time"][kept], columns["x"][kept], columns["y"][kept]
    )
    x, y = columns["x"][kept], columns["y"][kept]
    exact = np.array([((x >= a) & (x < b) & (y >= c) & (y < d)).sum() for (a, b), (c, d) in ends])

    def error(found: np.ndarray) -> float:
        return float((np.abs(found - exact) / np.maximum(exact, 0.001 * x.size)).mean())

    print("\nrectangles, mean relative error:        epsilon = 0.1        1")
    for least, depth in ((0, 8), (0, 6), (2, 6), (3, 6), (3, 5)):
        name = f"quadtree, depths {least} to {depth}"
        row = []
        for epsilon in (0.1, 1):
            tree = places.quadtree(
                one, bounds=((0, SIDE),) * 2, max_depth=depth, min_depth=least, epsilon=epsilon
            )
            row.append(error(np.array([tree.count(*a, *b) for a, b in ends])))
        print(f"{name:38}{row[0]:>14.3f} {row[1]:8.3f}")
    for side in (16, 64, 128):
        grid, row = places.PlaceGrid(side, side, SIDE / side), []
        edges = np.arange(side + 1) * SIDE / side
        for epsilon in (0.1, 1):
            got = places.visits(one, grid, max_visits=1, epsilon=epsilon, by_hour=False).counts
            cells = got.reshape(side, side)
            found = []
            for (a, b), (c, d) in ends:
                wide = np.clip(np.minimum(b, edges[1:]) - np.maximum(a, edges[:-1]), 0, None)
                high = np.clip(np.minimum(d, edges[1:]) - np.maximum(c, edges[:-1]), 0, None)
                found.append(high @ cells @ wide * (side / SIDE) ** 2)
            row.append(error(np.array(found)))
        print(f"{f'even grid of {side} × {side}':38}{row[0]:>14.3f} {row[1]:8.3f}")


def models(paths: places.Paths, grid: places.PlaceGrid) -> None:
    """Drawn paths held against real ones, beside a chain that forgets where it goes."""
    rng = np.random.default_rng(3)
    print("\ndrawn paths, total variation from the real ones:   ends  lengths   visits")
    for epsilon, delta in ((0.5, 0), (1, 0), (1, 1e-8), (3, 0), (10**4, 0)):
        model = places.path_model(
            paths, grid, max_length=12, max_trips=1, gap=3600, epsilon=epsilon, delta=delta
        )
        drawn = model.sample(PEOPLE, rng)
        e = places.compare_paths(paths, drawn, grid, max_length=12, gap=3600)
        name = f"model, epsilon = {epsilon:g}, delta = {delta:g}"
        print(f"{name:48}{e.ends:8.3f} {e.lengths:8.3f} {e.visits:8.3f}")
        if (epsilon, delta) not in ((1, 0), (10**4, 0)):
            continue
        # As DPT and PrivTrace without what they know of ends: starts, then the chain alone.
        begin, free = model.ends.sum(axis=1), []
        sizes = rng.choice(len(model.lengths), PEOPLE, p=model.lengths) + 1
        for start, size in zip(rng.choice(grid.cells, PEOPLE, p=begin), sizes, strict=True):
            path = [int(start)]
            for _ in range(size - 1):
                path.append(int(rng.choice(grid.cells, p=model.steps[path[-1]])))
            free.append(np.array(path))
        e = places.compare_paths(paths, free, grid, max_length=12, gap=3600)
        name = f"chain without its ends, epsilon = {epsilon:g}"
        print(f"{name:48}{e.ends:8.3f} {e.lengths:8.3f} {e.visits:8.3f}")


def reports(columns: dict[str, np.ndarray]) -> None:
    """Planar Laplace on a grid, its remap, and homes that are reported again and again."""
    grid = places.PlaceGrid(24, 24, "0.333", unit="km")
    home = np.unique(columns["unit"], return_index=True)[1]
    codes = grid.nearest(columns["x"][home], columns["y"][home])
    prior = np.bincount(codes, minlength=grid.cells) + 1.0
    rng = np.random.default_rng(4)
    print("\nplaces sent by devices: kilometres from the sender, and homes found, in per cent")
    print("epsilon a km   2/epsilon   sent   remapped    k = 1      5     30    100")
    for epsilon in (0.5, 1, 2, 4):
        channel = places.planar_laplace(grid, epsilon)
        found = places.remap(channel, prior)
        hits = [
            100 * places.repeated_places(channel, k, rng=rng, prior=prior, runs=2000).found
            for k in (1, 5, 30, 100)
        ]
        shown = " ".join(f"{h:6.1f}" for h in hits)
        print(
            f"{epsilon:>12} {2 / epsilon:11.2f} {found.before:6.2f} {found.after:10.2f}   {shown}"
        )


def main() -> None:
    """All tables."""
    warnings.simplefilter("ignore")
    paths, columns = city(PEOPLE)
    grid = places.PlaceGrid(SIDE, SIDE, 1, unit="km")
    print(f"{PEOPLE:,} people, {DAYS} days, {columns['unit'].size:,} rows")
    trips(paths, grid)
    squares(paths, columns)
    models(paths, grid)
    reports(columns)


if __name__ == "__main__":
    main()
