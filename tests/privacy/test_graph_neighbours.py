"""Edges and nodes of graphs are relations of their own, which losses and accounts keep apart."""

from __future__ import annotations

from fractions import Fraction as F

import pytest

from dither import inference, privacy
from dither.accounting import BudgetFilter
from dither.errors import ArgumentError, PromiseError
from dither.ledger import Ledger
from dither.privacy import Neighbours, Promise

EDGE = Promise("friendship", Neighbours.EDGE)
NODE = Promise("person", Neighbours.NODE)


def test_losses_of_edges_and_of_nodes_are_not_added() -> None:
    """In either order, nor to one of tables, and a charge no more than a loss."""
    edge = privacy.pure(1, neighbours="edge")
    node = privacy.pure(1, neighbours="node")
    for one, two in ((edge, node), (node, edge)):
        with pytest.raises(ArgumentError, match="to_edge converts one for nodes"):
            _ = one + two
        with pytest.raises(ArgumentError, match="cannot be added"):
            _ = one.charge + two.charge
        with pytest.raises(ArgumentError, match="'add-remove'"):
            _ = one + privacy.pure(1)


def test_converted_at_the_price_of_a_group() -> None:
    """A node is D edges where its degree is bounded, and an edge is a node out and in again."""
    edge = privacy.gaussian(10, neighbours="edge").promising(EDGE)
    node = edge.to_node("person", degree=4)
    assert node.promise == NODE
    assert node.charge.rho == 16 * edge.charge.rho
    back = privacy.approximate(F(1, 2), F(1, 10**6), neighbours="node").to_edge("friendship")
    assert back.promise == EDGE
    assert back.charge.epsilon == 1
    assert back.charge.delta >= F(1, 10**6) * 2
    assert (node + privacy.pure(1, neighbours="node").promising(NODE)).promise == NODE


@pytest.mark.parametrize(
    ("call", "words"),
    [
        (lambda: privacy.pure(1).to_node("person", 3), "to_node converts .* one edge"),
        (lambda: privacy.pure(1).to_edge("tie"), "to_edge converts .* a node"),
        (lambda: privacy.pure(1, neighbours="edge").to_node("person", 0), "degree"),
        (lambda: privacy.pure(1, neighbours="edge").to_replace(), "to_replace"),
        (lambda: privacy.pure(1, neighbours="edge").to_group("x", 2), "to_group"),
        (lambda: privacy.pure(1, neighbours="edge").poisson(0.5), "Poisson"),
        (lambda: privacy.gaussian(1).poisson(0.5, neighbours="edge"), "'add-remove' or 'replace'"),
        (lambda: privacy.pure(1, neighbours="node").without_replacement(1, 2), "not of a graph"),
        (lambda: privacy.pure(1, neighbours="edges"), "did you mean 'edge'"),
        (lambda: inference.mean([1.0], bounds=(0, 1), epsilon=1, neighbours="edge"), "neighbours"),
    ],
)
def test_what_holds_for_units_of_tables_is_refused(call, words) -> None:
    """What samples, replaces or reads rows says nothing of edges."""
    with pytest.raises(ArgumentError, match=words):
        call()


def test_an_account_of_edges_takes_no_loss_of_nodes(tmp_path) -> None:
    """It is bound to one relation; what is converted is taken."""
    edge = privacy.pure(F(1, 4), neighbours="edge").promising(EDGE)
    node = privacy.pure(F(1, 8), neighbours="node").promising(NODE)
    noted = {"request": "0" * 64, "note": {}}
    with Ledger.open(tmp_path / "graph.ledger") as ledger:
        ledger.open_accounts({"ties": BudgetFilter(1, 0)}, EDGE)
        ledger.charge(["ties"], edge, token="1", **noted)
        with pytest.raises(PromiseError, match=r"person .*to_edge, to_node"):
            ledger.charge(["ties"], node, token="2", **noted)
        ledger.charge(["ties"], node.to_edge("friendship"), token="3", **noted)
    with Ledger.open(tmp_path / "graph.ledger") as ledger:
        balance = ledger.balance("ties")
        assert balance.promise == EDGE
        assert balance.spent.epsilon == F(1, 2)
