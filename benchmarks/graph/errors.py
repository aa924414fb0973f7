"""Errors of graph statistics at several epsilons, on graphs that networkx ships.

Run with ``python -m benchmarks.graph.errors``, about two minutes of a processor. Each figure is a
median over runs of the absolute error; "worst" is noise for the worst graph, of scale (n -
2)/epsilon for triangles and 2·C(n - 2, k - 1)/epsilon for stars. OpenDP 0.16, SmartNoise, Tumult
Analytics and diffprivlib ship nothing that counts in graphs.
"""

from __future__ import annotations

import argparse
from collections.abc import Callable
from functools import partial

import networkx
import numpy as np

from dither import graph
from dither.graph import Graph
from dither.graph._projection import projected
from dither.graph._statistics import CountedShape, Stars, Triangles
from dither.mechanisms import DiscreteLaplace

EPSILONS = (0.25, 0.5, 1, 2, 4)
GRAPHS: dict[str, Callable[[], networkx.Graph]] = {
    "karate club": networkx.karate_club_graph,
    "Florentine families": networkx.florentine_families_graph,
    "women of Davis": networkx.davis_southern_women_graph,
    "Les Misérables": networkx.les_miserables_graph,
}


def typical(truth: float, draw: Callable[[], float], runs: int) -> float:
    """The median error."""
    return float(np.median([abs(draw() - truth) for _ in range(runs)]))


def edges(ties: Graph, epsilon: float) -> float:
    """A noisy count."""
    return graph.count_edges(ties, epsilon=epsilon).value


def line(name: str, truth: float | str, errors: list[float]) -> None:
    """One row of the table."""
    shown = f"{truth:,}" if isinstance(truth, int) else truth
    print(f"  {name:44} {shown:>8} " + " ".join(f"{e:>9,.1f}" for e in errors))


def shape_rows(ties: Graph, shape: CountedShape, runs: int) -> None:
    """A count by the ladder, by smooth sensitivity, and for the worst graph."""
    truth = shape.count(ties)

    def released(epsilon: float, method: str) -> float:
        delta = 1e-6 if method == "smooth" else 0
        asked = {"epsilon": epsilon, "delta": delta, "method": method}
        if isinstance(shape, Stars):
            return graph.count_stars(ties, shape.k, **asked).value
        return graph.count_triangles(ties, **asked).value

    for method in ("ladder", "smooth", "worst"):
        errors = [typical(truth, lambda e=e, m=method: released(e, m), runs) for e in EPSILONS]
        line(f"{shape.name}, {method}", truth, errors)


def distances(ties: Graph, epsilon: float, runs: int, **asked: object) -> float:
    """Half the L1 distance of degree histograms: nodes that have another degree."""
    truth = np.bincount(ties.degrees, minlength=ties.size + 20).astype(float)
    found = []
    for _ in range(runs):
        own = graph.degrees(ties, epsilon=epsilon, **asked).histogram
        found.append(np.abs(np.pad(own, (0, len(truth) - len(own))) - truth).sum() / 2)
    return float(np.median(found))


def node_rows(ties: Graph, bound: int, runs: int) -> None:
    """What protects a node: counts of a projection, error and bias together."""
    m = len(ties.edges)
    kept = len(projected(ties, bound).edges)
    asked = {"neighbours": "node", "degree": bound}
    errors = [
        typical(m, lambda e=e: graph.count_edges(ties, epsilon=e, **asked).value, runs)
        for e in EPSILONS
    ]
    line(f"node: edges, at most {bound} a node ({kept} kept)", m, errors)
    errors = [distances(ties, e, runs, **asked) for e in EPSILONS]
    line(f"node: degrees, at most {bound} a node", "", errors)


def off(drawn: Callable[[], np.ndarray], ties: Graph, runs: int) -> float:
    """As `distances`, of histograms that somebody else would publish."""
    truth = np.bincount(ties.degrees, minlength=ties.size + 20).astype(float)
    found = []
    for _ in range(runs):
        own = drawn()
        found.append(np.abs(np.pad(own, (0, len(truth) - len(own))) - truth).sum() / 2)
    return float(np.median(found))


def degree_peers(ties: Graph, bounds: tuple[int, ...], runs: int) -> None:
    """Degree distributions as they were published before: without fits, and by cells.

    Of an edge two degrees move, and so four cells of a histogram by 1; of a node of a projection to
    D, D others and its own, and so 2·D + 2 cells (Day, Li and Lyu call it the histogram by
    projection). Hay and others publish sorted degrees, and fit them; here they are not.
    """
    n = ties.size
    exact = np.bincount(ties.degrees, minlength=n)
    ordered = np.sort(ties.degrees)

    def cells(counts: np.ndarray, l1: int, epsilon: float) -> np.ndarray:
        noisy = counts + DiscreteLaplace.for_loss(epsilon, l1=l1).draw(len(counts))
        return np.maximum(noisy, 0).astype(float)

    def unfitted(epsilon: float) -> np.ndarray:
        noisy = ordered + DiscreteLaplace.for_loss(epsilon, l1=2).draw(n)
        return np.bincount(noisy.clip(0, n - 1), minlength=n).astype(float)

    line("degrees, as here", "", [distances(ties, e, runs) for e in EPSILONS])
    row = [off(partial(unfitted, e), ties, runs) for e in EPSILONS]
    line("degrees, sorted and not fitted", "", row)
    row = [off(partial(cells, exact, 4, e), ties, runs) for e in EPSILONS]
    line("degrees, noise on each cell", "", row)
    for bound in bounds:
        asked = {"neighbours": "node", "degree": bound}
        row = [distances(ties, e, runs, **asked) for e in EPSILONS]
        line(f"node: degrees, at most {bound}, as here", "", row)
        kept = np.bincount(projected(ties, bound).degrees, minlength=bound + 1)
        row = [off(partial(cells, kept, 2 * bound + 2, e), ties, runs) for e in EPSILONS]
        line(f"node: degrees, at most {bound}, noise on each cell", "", row)


def local_rows(ties: Graph, runs: int) -> None:
    """What nobody collects: each person's own noise."""
    m, bound = len(ties.edges), int(ties.degrees.max())
    truth = Triangles().count(ties)
    for what, exact in (("edges", m), ("triangles", truth), ("two-round triangles", truth)):

        def drawn(e: float, what: str = what) -> float:
            return graph.local_count(ties, what, epsilon=e, degree=bound).value

        errors = [typical(exact, partial(drawn, e), runs) for e in EPSILONS]
        line(f"local: {what}", exact, errors)


def model_rows(ties: Graph, runs: int) -> None:
    """Graphs of a model: their edges, and nodes with another degree."""
    rng = np.random.default_rng(1)
    m = len(ties.edges)
    errors = [
        typical(m, lambda e=e: len(graph.block_model(ties, epsilon=e).graph(rng).edges), runs)
        for e in EPSILONS
    ]
    line("edges of graphs of a model", m, errors)


def main() -> None:
    """Print a table for each graph."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--runs", type=int, default=60)
    runs = parser.parse_args().runs
    for name, make in GRAPHS.items():
        given = make()
        ties = Graph(given, nodes=list(given.nodes))
        print(f"{name}: {ties.size} nodes; median errors, {runs} runs")
        print(f"  {'':44} {'truth':>8} " + " ".join(f"{'ε = ' + str(e):>9}" for e in EPSILONS))
        m = len(ties.edges)
        errors = [typical(m, partial(edges, ties, e), runs) for e in EPSILONS]
        line("edges", m, errors)
        for shape in (Triangles(), Stars(2), Stars(3)):
            shape_rows(ties, shape, runs)
        line("degrees: nodes with another", "", [distances(ties, e, runs) for e in EPSILONS])
        for bound in (4, 16):
            node_rows(ties, bound, runs)
        model_rows(ties, runs)
        local_rows(ties, runs)
    few = min(runs, 20)
    print(f"nodes whose degree is another, beside what was published before; medians of {few} runs")
    made = networkx.powerlaw_cluster_graph(2000, 5, 0.3, seed=1)
    for name, given, bounds in (
        ("karate club", networkx.karate_club_graph(), (4, 16)),
        ("simulated, 2,000 nodes, five ties each, hubs", made, (8, 32)),
    ):
        print(f"{name}:")
        degree_peers(Graph(given, nodes=given.number_of_nodes()), bounds, few)


if __name__ == "__main__":
    main()
