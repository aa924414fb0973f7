"""Models that a protected table's rows teach as cells: what all such questions have in common.

Of each unit at most ``max_rows`` rows count, chosen by a keyed hash of the unit's own rows, each as
its cells of the columns that the formula names (`dither.query.tables._counts`). What leaves of them
are sums over rows, each with noise, one after the other; which sum is asked for may depend on what
left before. At the same earlier answers a unit of m rows moves each of them by m times what a row
moves it, at most, in every norm: its rows are added, removed or replaced one by one.
`dither.learn._noise` has what follows of that for the noise.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from dither._display import Node
from dither._format import count_text, number_text
from dither.learn.tables._columns import (
    PredictedColumn,
    asked_columns,
    known_by,
    read_formula,
    stored_value,
)
from dither.learn.tables._model import LearnedModel
from dither.learn.tables._preview import ModelPreview, tried
from dither.query.tables._counts import ExactTables, TablesQuestion
from dither.query.tables._question import CellQuestion
from dither.session._request import AnsweredRequest, sizes_of

if TYPE_CHECKING:
    from dither.query._builder import TableQuery

__all__ = ["RowsQuestion", "Told"]

Floats = npt.NDArray[np.float64]
Integers = npt.NDArray[np.int64]
Told = Callable[[int], None]


class RowsQuestion(CellQuestion[LearnedModel]):
    """A model that may be explained and previewed, and released at its price.

    Parameters
    ----------
    rows : TableQuery
    epsilon, delta : number
    formula : str
    max_rows : int, optional
    """

    kind: str

    _gives = (LearnedModel,)

    def __init__(
        self, rows: TableQuery, epsilon: Any, delta: Any, formula: str, max_rows: int | None
    ) -> None:
        target, names = read_formula(formula)
        domain = asked_columns(rows, target, names)
        self.target = PredictedColumn.of(domain.attributes[-1])
        self.formula = " ".join(formula.split())
        question = TablesQuestion(rows, domain, max_rows=max_rows)
        super().__init__(question, question.budget(epsilon, delta))

    # --- what each kind says ----------------------------------------------------------------------

    @abstractmethod
    def _measured(self) -> tuple[tuple[str, str], ...]:
        """What is measured with which noise, in words."""

    @abstractmethod
    def _said(self) -> tuple[dict[str, str], list[dict[str, Any]]]:
        """Parameters that are hashed with the question, and what the certificate says of noise."""

    @abstractmethod
    def _fit(self, places: Integers, counts: Integers, tell: Told) -> dict[str, Any]:
        """The one step that sees rows: what is released, as plain data.

        Parameters
        ----------
        places : array of int, shape (n, columns + 1)
            Cells that occur, those of the target last.
        counts : array of int, shape (n,)
        tell : callable
        """

    @abstractmethod
    def _predicted(self, cells: Sequence[Integers], kept: Integers, answers: Integers) -> Floats:
        """For a preview: `dither.learn.tables._preview.Predicted`."""

    @staticmethod
    @abstractmethod
    def _model(content: Mapping[str, Any]) -> Any:
        """The estimator that a release left, from plain data; what is not one raises."""

    # --- before it is paid for --------------------------------------------------------------------

    @property
    def _about(self) -> str:
        return self.formula

    def _nodes(self) -> tuple[Node, ...]:
        target = self.target
        wanted = (
            f"a number from {number_text(target.bounds[0])} to {number_text(target.bounds[1])}"
            if target.bounds
            else f"one of {count_text(len(target.classes or ()), 'class', 'classes')}"
        )
        return (
            Node("predicts", ((target.name, wanted),)),
            Node("measured", self._measured()),
            self._costs(),
            self._noted(),
        )

    def preview(self, sizes: Sequence[int] = (1_000, 10_000, 100_000)) -> ModelPreview:
        """What noise alone does to predictions, for tables of some sizes.

        Parameters
        ----------
        sizes : sequence of int
            Public guesses of the number of rows.

        Returns
        -------
        ModelPreview
            Two runs on rows that are made up. How far predictions lie off, as a root mean square,
            where the columns say nothing of the target and there is nothing to find but noise; and
            how much is seen of a clear step.
        """
        numbers = sizes_of(sizes)
        inner = [attribute.inner for attribute in self.domain.attributes[:-1]]
        found = [tried(self._predicted, inner, n) for n in numbers]
        return ModelPreview(
            self.formula,
            *self._cost,
            tuple(numbers),
            tuple(off for off, _ in found),
            tuple(seen for _, seen in found),
            self.target.bounds,
        )

    def _notes(self) -> list[str]:
        found = self._question.notes()
        found.append(f"rows whose {self.target.name} is missing or not declared do not count")
        return found + known_by(self.domain.attributes[:-1])

    # --- the release ------------------------------------------------------------------------------

    def release(
        self,
        *,
        token: str | None = None,
        reuse: bool | None = None,
        progress: Told | None = None,
    ) -> LearnedModel:
        """Charge the ledger, train, and give the model.

        Parameters
        ----------
        token : str, optional
            Names the request. Asked again with it, the stored model comes back, and nothing is
            charged.
        reuse : bool, optional
            Whether the newest of `published` will do, free of charge; what the policy says in
            ``[releases]`` where left out.
        progress : callable, optional
            Told after each round, or tree, how many are done.

        Raises
        ------
        BudgetError
            Where an account cannot bear it; nothing is spent.
        EngineError
            Where anything fails after the charge. The charge stays.
        """
        return self._released(token, progress, reuse=reuse)

    def _asked(self) -> dict[str, Any]:
        return {"what": self._noun} | self._said()[0]

    def _measurements(self) -> list[dict[str, Any]]:
        return self._said()[1]

    def _read(self, answered: AnsweredRequest) -> LearnedModel:
        replayed = answered.replayed is not None
        return LearnedModel(answered.content, self._model, replayed=replayed)

    def _measure(self, exact: ExactTables, tell: Told) -> dict[str, Any]:
        rows, target = exact.rows(), self.target
        return {
            "kind": self.kind,
            "table": self._question.table,
            "formula": self.formula,
            "target": {
                "name": target.name,
                "classes": target.classes and [stored_value(v) for v in target.classes],
                "bounds": target.bounds and list(target.bounds),
            },
            "notes": self._notes(),
        } | self._fit(rows.places, rows.counts, tell)
