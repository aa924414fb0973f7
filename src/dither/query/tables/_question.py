"""What questions that are answered from counts of cells have in common, before and at a release."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Iterable, Mapping, Sequence
from fractions import Fraction
from functools import partial
from typing import Any, TypeVar

from dither._display import Explanation, Node
from dither._format import cost_text
from dither.privacy import Loss
from dither.query.tables._counts import Budget, ExactTables, TablesQuestion
from dither.query.tables._domain import CellDomain, Clique
from dither.session._request import PricedQuestion, Progress, Request

__all__ = ["CellQuestion"]

Released = TypeVar("Released")


class CellQuestion(PricedQuestion[Released]):
    """A question that is answered from counts of cells, or from the cells of rows.

    Parameters
    ----------
    question : TablesQuestion
        Its rows, their cells, and whom the policy protects.
    budget : Budget
        What a release may cost.
    """

    def __init__(self, question: TablesQuestion, budget: Budget) -> None:
        self._question, self.budget = question, budget

    # --- what each kind says ----------------------------------------------------------------------

    @property
    @abstractmethod
    def _loss(self) -> Loss:
        """Of all that leaves, as the mechanism sees rows or units."""

    @property
    def _title(self) -> str:
        """The heading of its explanation."""
        return f"{self._noun} {self._about}"

    def _facts(self) -> Sequence[tuple[str, str]]:
        """What stands below that heading."""
        return ()

    def _nodes(self) -> Iterable[Node]:
        """What is explained beside who is protected, what is read and how it is cut into cells."""
        return ()

    def _notes(self) -> Sequence[str]:
        """What a reader should know."""
        return self._question.notes()

    @abstractmethod
    def _asked(self) -> Mapping[str, Any]:
        """What is asked for, as plain data without floats: it is hashed with the question."""

    @abstractmethod
    def _measurements(self) -> Sequence[Mapping[str, Any]]:
        """What the certificate says of the mechanisms, as plain data."""

    @abstractmethod
    def _measure(self, exact: ExactTables, tell: Progress) -> Mapping[str, Any]:
        """The one step that sees exact counts: what is released, as plain data."""

    def _wanted(self) -> Iterable[Clique] | None:
        """Some tables that will be counted, to be tried before the charge; None lists rows."""
        return None

    # --- what follows -----------------------------------------------------------------------------

    @property
    def domain(self) -> CellDomain:
        """The columns and their cells, from public facts."""
        return self._question.domain

    @property
    def loss(self) -> Loss:
        """What a release would lose, with its promise."""
        return self._question.promised(self._loss)

    def explain(self) -> Explanation:
        """Who is protected, what is read, what is measured with which noise, and what it costs."""
        children = (*self._question.nodes(), *self._nodes())
        return Explanation(Node(self._title, tuple(self._facts()), children=children))

    @property
    def _cost(self) -> tuple[Fraction, Fraction]:
        """Epsilon and delta, as charged at most: noise of Laplace's law spends no delta."""
        delta = self.budget.delta if self._loss.charge.delta else Fraction(0)
        return self.budget.epsilon, delta

    def _costs(self, *more: tuple[str, str]) -> Node:
        """What is charged, for an explanation, and what there is to say of it."""
        facts = (("epsilon, delta", cost_text(*self._cost)), *more)
        return Node("cost, charged before a row is read", facts)

    def _noted(self) -> Node:
        """The notes, for an explanation."""
        return Node("notes", tuple(("", note) for note in self._notes()))

    def _request(self, tell: Progress) -> Request:
        wanted = self._wanted()
        return self._question.request(
            self.budget,
            self._loss,
            self._asked(),
            partial(self._measure, tell=tell),
            wanted=wanted or (),
            listed=wanted is None,
            measurements=self._measurements(),
        )
