"""Edge lists of every kind are read alike, and nothing in them is refused."""

from __future__ import annotations

import math
from typing import Any, ClassVar

import networkx
import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest

from dither import graph
from dither.accounting import BudgetFilter
from dither.errors import ArgumentError, BudgetError, PromiseError
from dither.graph import Graph
from dither.graph._labels import key_of
from dither.ledger import Ledger
from dither.privacy import Neighbours, Promise

PAIRS = [("a", "b"), ("b", "c"), ("b", "a")]
COLUMNS = {"from": ["a", "b", "b"], "to": ["b", "c", "a"]}


class Hostile:
    """Raises whatever is asked of it."""

    __hash__: ClassVar[Any] = None

    def __getattribute__(self, name: str) -> Any:
        raise RuntimeError("secret")

    def __eq__(self, other: object) -> bool:
        raise RuntimeError("secret")

    def __repr__(self) -> str:
        raise RuntimeError("secret")


class Text(str):
    """A text that is not itself."""

    __slots__ = ()

    def __eq__(self, other: object) -> bool:
        raise RuntimeError("secret")

    __hash__ = str.__hash__

    def encode(self, *args: Any) -> bytes:
        raise RuntimeError("secret")


@pytest.mark.parametrize(
    "edges",
    [
        PAIRS,
        iter(PAIRS),
        np.array(PAIRS),
        np.array(PAIRS, dtype=object),
        pl.DataFrame(COLUMNS),
        pd.DataFrame(COLUMNS),
        pa.table(COLUMNS),
        networkx.Graph(PAIRS),
        networkx.MultiDiGraph(PAIRS),
        [["a", "b"], {"b", "c"}],
    ],
    ids=lambda e: type(e).__name__,
)
def test_every_kind_is_read_alike(edges: Any) -> None:
    """Directions and repetitions make no other edge."""
    found = Graph(edges, nodes=["a", "b", "c", "d"])
    assert found.edges.tolist() == [[0, 1], [1, 2]]
    assert found.degrees.tolist() == [1, 2, 1, 0]
    assert [row.tolist() for row in found.adjacency] == [[1], [0, 2], [1], []]


def test_hostile_rows_count_for_nothing() -> None:
    """What is no pair of labels ties nobody; equal numbers are one label."""
    odd: list[Any] = [
        (1, 1), (1, 1.0), (1, True), (1, None), (1, math.nan), (math.inf, 2), "12", b"12", (1,), (),
        (1, 2, 3), 7, None, Hostile(), (1, Hostile()), (1, [2]), (1, "2"), (1, 99), iter(int, 1),
    ]  # fmt: skip
    found = Graph([*odd, (np.int64(1), 2.0), (Text("x"), 2), ("\ud800", 1)], nodes=[1, 2, "x"])
    assert found.edges.tolist() == [[0, 1], [1, 2]]
    private = Graph([*odd, (np.int64(1), 2.0)])
    # Text "2" and 99 are labels, and there is no list that lacks them.
    assert private.size == 4
    assert private.nodes is None


def test_keys_tell_labels_apart() -> None:
    """Texts, bytes and numbers never meet; numbers do wherever they are equal."""
    same = [1, 1.0, True, np.int8(1), np.float32(1), np.True_]
    assert len({key_of(label) for label in same}) == 1
    others = ["1", b"1", 1.5, -1, 10**400, "n1", "t1", "", b"", 0]
    assert len({key_of(label) for label in [1, *others]}) == 1 + len(others)
    assert key_of(2**70) == key_of(float(2**70))
    assert {key_of(label) for label in (None, [], {}, math.nan, -math.inf, 1j, Hostile())} == {None}


def test_tensors_are_read_as_arrays() -> None:
    """Its rows are tensors again, whose numbers are no labels: by themselves they tie nobody."""
    torch = pytest.importorskip("torch", reason="torch is not installed")
    ties = torch.tensor([[0, 1], [1, 2]])
    assert Graph(ties, nodes=3).edges.tolist() == [[0, 1], [1, 2]]
    with pytest.raises(ArgumentError, match="edges must have two columns"):
        Graph(torch.tensor([[0, 1, 0], [1, 2, 2]]), nodes=3)


def test_a_graph_of_codes_is_simple_and_keeps_its_account(tmp_path: Any) -> None:
    """An edge that counted twice would move a count by two, and one without an account is free."""
    like = Graph(PAIRS, nodes=3)
    made = Graph.of_codes([(1, 0), (0, 1), (2, 2), (0, 3), (-1, 1), (1, 2)], like)
    assert made.edges.tolist() == [[0, 1], [1, 2]]
    with Ledger.open(tmp_path / "ties.ledger") as ledger:
        ledger.open_accounts({"ties": BudgetFilter(1, 0)}, Promise("edge", Neighbours.EDGE))
        charged = like.charged_to(ledger, "ties")
        graph.count_edges(Graph.of_codes([(0, 1)], charged), epsilon=1)
        assert ledger.balance("ties").spent.epsilon == 1


def test_what_persons_send_names_whom_it_protects() -> None:
    """An edge, also where no graph has a word for it."""
    sent = graph.LocalTies(3, 1).degree_sum([1, 0, 2])
    assert "protects one edge between two nodes, added or removed, locally" in str(sent)


def test_the_public_list_alone_is_shown() -> None:
    """A graph's text is the same for all edges."""
    assert repr(Graph(PAIRS, nodes=3)) == repr(Graph([], nodes=3))
    assert repr(Graph(PAIRS)) == repr(Graph([]))
    assert "friendship" in repr(Graph([], nodes=2, edge="friendship"))


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        ({"edges": "abc"}, "edges must be pairs"),
        ({"edges": 7}, "edges must be pairs"),
        ({"edges": {"a": "b"}}, "edges must be pairs"),
        ({"edges": np.ones((2, 3))}, "edges must have two columns"),
        ({"edges": pl.DataFrame({"a": [1]})}, "edges must have two columns"),
        ({"nodes": ["a", "a"]}, "nodes must be distinct"),
        ({"nodes": [1, 1.0]}, "nodes must be distinct"),
        ({"nodes": ["a", None]}, "nodes must be labels"),
        ({"nodes": "abc"}, "nodes must be a list"),
        ({"nodes": -1}, "nodes must be labels, or a number"),
        ({"nodes": True}, "nodes must be a list"),
        ({"nodes": np.datetime64("2020")}, "nodes must be a list"),
        ({"edge": ""}, "unit must be"),
        ({"node": 3}, "unit must be"),
    ],
)
def test_bad_arguments_are_named(arguments: dict[str, Any], words: str) -> None:
    """And show no label."""
    with pytest.raises(ArgumentError, match=words):
        Graph(**{"edges": [], **arguments})


@pytest.mark.parametrize(
    ("call", "words"),
    [
        (lambda g: graph.count_edges([], epsilon=1), "graph must be a Graph"),
        (lambda g: graph.count_edges(g, epsilon=0), "epsilon"),
        (lambda g: graph.count_edges(g, epsilon=1, neighbours="replace"), "'edge' or 'node'"),
        (lambda g: graph.count_edges(g, epsilon=1, neighbours="node"), "degree must be given"),
        (lambda g: graph.count_edges(g, epsilon=1, degree=3), "degree goes with"),
        (lambda g: graph.count_edges(Graph([]), epsilon=1), "nodes must be a public list"),
        (lambda g: graph.count_triangles(Graph([]), epsilon=1), "nodes must be a public list"),
        (lambda g: graph.count_triangles(g, epsilon=1, method="x"), "unknown method"),
        (lambda g: graph.count_triangles(g, epsilon=1, delta=0.1), "delta must be 0 but for"),
        (lambda g: graph.count_triangles(g, epsilon=1, method="smooth"), "delta must be above 0"),
        (lambda g: graph.count_stars(g, 1, epsilon=1), "k must be"),
        (lambda g: graph.degrees(g, epsilon=1, neighbours="node", degree=0), "degree must be"),
        (lambda g: graph.degrees(g, epsilon=1, neighbours="node", degree=10**9), "degree must be"),
        (lambda g: graph.LocalTies(3, 1).triangles(None), "reports must be one for each"),
        (lambda g: graph.LocalTies(2, 1).triangles([[], [[1], [1, 2]]]), "reports must hold a bit"),
        (lambda g: graph.LocalTies(2, 1).triangles([[], [None]]), "reports must hold a bit"),
        (lambda g: graph.LocalTies(3, 1).triangle_variance([]), "graph must be a Graph"),
        (lambda g: graph.LocalTies(4, 1).triangle_variance(g), "as many nodes as there are people"),
        (lambda g: graph.block_model(g, epsilon=1, groups=["a"]), "groups must give each node"),
        (lambda g: graph.block_model(g, epsilon=1, groups={0: "a"}), "groups must give each node"),
        (lambda g: graph.block_model(g, epsilon=1, share=1), "share"),
        (lambda g: graph.neighbour_sums(g, [[1]], epsilon=1, delta=0.1), "features must have"),
        (lambda g: graph.neighbour_sums(g, [[1], [1, 2], [1]], epsilon=1, delta=0.1), "features"),
        (lambda g: graph.neighbour_sums(g, 3, epsilon=1, delta=0.1), "features must be a table"),
        (lambda g: graph.neighbour_sums(g, [[1]] * 3, epsilon=1, delta=0), "delta"),
        (lambda g: graph.local_count(g, "squares", epsilon=1), "unknown what"),
        (lambda g: graph.local_count(g, "stars", epsilon=1), "degree must be given"),
        (lambda g: graph.LocalTies(3, 1e-9), "epsilon is too small"),
        (lambda g: graph.LocalTies(3, 1).report(3, []), "person must be"),
        (lambda g: graph.LocalTies(3, 1).triangles([[]]), "reports must be one for each"),
        (lambda g: graph.projection_bias(g, [0]), "degrees must be"),
        (lambda g: g.charged_to("x", "y"), "ledger must be"),
        (lambda g: graph.count_triangles(g, epsilon=1).interval(), "at must be a public Graph"),
    ],
)
def test_bad_arguments_of_releases_are_named(call: Any, words: str) -> None:
    """Before anything is charged or drawn."""
    with pytest.raises(ArgumentError, match=words):
        call(Graph([(0, 1)], nodes=3))


def test_releases_are_charged_first(tmp_path: Any) -> None:
    """Each charges what its loss says; what the account cannot bear, or protects, is not drawn."""
    promise = Promise("tie", Neighbours.EDGE)
    with Ledger.open(tmp_path / "ties.ledger") as ledger:
        ledger.open_accounts({"ties": BudgetFilter(10, 0.01)}, promise)
        ties = Graph([(0, 1), (1, 2)], nodes=4, edge="tie", node="one").charged_to(ledger, "ties")
        ledger.open_accounts({"people": BudgetFilter(10, 0)}, Promise("one", Neighbours.NODE))
        other = ties.charged_to(ledger, "people")
        made = [
            graph.count_edges(ties, epsilon=0.5),
            graph.count_triangles(ties, epsilon=0.5),
            graph.count_stars(ties, 2, epsilon=0.5, delta=0.001, method="smooth"),
            graph.degrees(ties, epsilon=0.5),
            graph.block_model(ties, epsilon=0.5),
            graph.neighbour_sums(ties, np.eye(4), epsilon=0.5, delta=0.001),
            graph.local_count(ties, "triangles", epsilon=0.5),
            graph.local_count(ties, "two-round triangles", epsilon=0.5, degree=3),
        ]
        spent = ledger.balance("ties").spent
        assert {one.loss.promise for one in made} == {promise}
        assert spent.epsilon == len(made) * 0.5 == sum(one.loss for one in made).charge.epsilon
        for refused, error in (
            (lambda: graph.count_edges(ties, epsilon=1, neighbours="node", degree=2), PromiseError),
            (lambda: graph.count_edges(ties, epsilon=7), BudgetError),
            (
                lambda: graph.count_edges(other, epsilon=1, neighbours="node", degree=2),
                PromiseError,
            ),
        ):
            with pytest.raises(error):
                refused()
        assert ledger.balance("ties").spent == spent
        # Another graph may have another promise.
        third = ties.charged_to(ledger, "people", name="third")
        graph.count_edges(third, epsilon=1, neighbours="node", degree=2)
        assert ledger.balance("people").spent.epsilon == 1


@pytest.mark.parametrize("n", [0, 1, 2])
def test_graphs_of_hardly_any_node(n: int) -> None:
    """Nothing to count is a count of 0, and everything can still be asked."""
    none = Graph([], nodes=n)
    for method, delta in (("ladder", 0), ("smooth", 0.01), ("worst", 0)):
        asked = {"epsilon": 90, "method": method, "delta": delta}
        assert graph.count_triangles(none, **asked).value == 0
        assert graph.count_stars(none, 2, **asked).value == 0
    assert graph.degrees(none, epsilon=1).histogram.sum() == n
    assert (
        graph.count_edges(none, epsilon=1, neighbours="node", degree=1).loss.promise.unit == "node"
    )
    rng = np.random.default_rng(1)
    assert graph.block_model(none, epsilon=1).sample(rng).height <= max(0, n - 1)
    assert graph.neighbour_sums(none, np.ones((n, 1)), epsilon=1, delta=0.1).features.shape == (
        n,
        1,
    )
    if n:
        assert graph.local_count(none, "triangles", epsilon=1).value is not None
