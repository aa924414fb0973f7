"""What `compare` gives: figures, each with what chance alone or an unseen row would give."""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING

import polars as pl

from dither._format import Printable, count_text, percent, wrapped
from dither.lab.attack import Membership

if TYPE_CHECKING:
    from matplotlib.figure import Figure

    from dither.lab.attack._roc import Rate

__all__ = ["ALTERNATIVE", "UNPROTECTED", "Accuracy", "Nearness", "Pair", "TableComparison"]

UNPROTECTED = (
    "This reads the real table without noise and protects nobody: keep these figures as you keep "
    "the table."
)
ALTERNATIVE = (
    "For figures to hand out, measure the chosen tables once more, at a charge: "
    "session.table(...).compare(synthetic, tables, epsilon=...)."
)

_ORDERS = {1: "one", 2: "two", 3: "three"}


@dataclass(frozen=True, slots=True)
class Accuracy:
    """How often a classifier guesses a column of real rows that it has not seen.

    Attributes
    ----------
    target : str
    synthetic, real : Rate
        Trained on synthetic and on real rows, as many of each.
    blind : float
        The share of the commonest value: what a guess that looks at nothing reaches.
    tested : int
        Real rows that were guessed.
    """

    target: str
    synthetic: Rate
    real: Rate
    blind: float
    tested: int


@dataclass(frozen=True, slots=True)
class Nearness:
    """Distances of synthetic rows to the nearest real row, beside those of a control.

    Attributes
    ----------
    held_out : bool
        Whether there were rows that the synthetic ones were not made of. If so, the control is the
        distance of synthetic rows to the nearest of those; else that of real rows to the nearest
        other real row.
    synthetic, control : tuple of float
        The 5 %, 50 % and 95 % quantiles; 0 is a copy, 1 is other in everything.
    copies, control_copies : float
        Shares at distance 0.
    nearer : Rate or None
        The share of synthetic rows that are nearer to a row that they were made of than to one that
        they were not made of, of as many of both; ties count half. 1/2 where nothing was copied.
    """

    held_out: bool
    synthetic: tuple[float, float, float]
    control: tuple[float, float, float]
    copies: float
    control_copies: float
    nearer: Rate | None


@dataclass(frozen=True, slots=True, eq=False)
class Pair:
    """The table of two columns, of both tables: what a picture shows side by side."""

    columns: tuple[str, str]
    labels: tuple[tuple[str, ...], tuple[str, ...]]
    real: tuple[tuple[float, ...], ...] = field(repr=False)
    synthetic: tuple[tuple[float, ...], ...] = field(repr=False)


@dataclass(frozen=True, slots=True, eq=False)
class TableComparison(Printable):
    """The result of `compare`. It protects nobody.

    Attributes
    ----------
    rows, synthetic_rows : int
    tables : DataFrame
        A row for each table of counts: ``order``, ``columns``, ``cells``, ``distance`` (total
        variation) and ``chance`` (the mean of that of as many rows drawn from the real table).
    by_order : DataFrame
        For each order how many ``tables``, of how many ``possible`` ones, their ``mean`` distance,
        the mean ``chance``, the ``worst`` and ``which`` that is.
    area : Rate
        How often a classifier ranks a synthetic row above a real one, of rows that it has not seen:
        0.5 where they cannot be told apart, 1 where they always can.
    accuracy : Accuracy or None
        Where a target was named.
    nearness : Nearness
    membership : Membership or None
        The attack by the closest record; where rows were held out.
    worst_pair : Pair or None
    unprotected : str
        What this does not protect: anybody.
    """

    rows: int
    synthetic_rows: int
    tables: pl.DataFrame = field(repr=False)
    by_order: pl.DataFrame = field(repr=False)
    area: Rate
    accuracy: Accuracy | None
    nearness: Nearness
    membership: Membership | None = field(repr=False)
    worst_pair: Pair | None = field(repr=False)
    unprotected: str = UNPROTECTED

    @property
    def frame(self) -> pl.DataFrame:
        """The distances of all tables, worst first."""
        return self.tables.sort("order", pl.col("distance"), descending=[False, True])

    def summary(self) -> str:
        """Everything in a few lines."""
        lines = [
            self.unprotected,
            "",
            f"{count_text(self.rows, 'real row')}, "
            f"{count_text(self.synthetic_rows, 'synthetic one')}. Total variation of tables of "
            "counts:",
            "",
            f"{'':<9}{'tables':>8}{'mean':>9}{'chance':>9}{'worst':>9}  which",
        ]
        for order, tables, possible, mean, chance, worst, which in self.by_order.iter_rows():
            lines.append(
                f"{_ORDERS[order] + '-way':<9}{tables:>8,}{mean:>9.4f}{chance:>9.4f}{worst:>9.4f}"
                f"  {' × '.join(which)}"
            )
            if tables < possible:
                lines.append(f"{'':<9}of {possible:,}, drawn by the seed")
        told = [
            "",
            "Chance: the mean of as many rows drawn from the real table.",
            f"Told apart by a classifier: area {self.area}; 0.5 is not at all, 1 is always.",
        ]
        if self.accuracy is not None:
            a = self.accuracy
            told.append(
                f"{a.target}, guessed of {a.tested:,} real rows: {percent(a.synthetic.value)} "
                f"[{percent(a.synthetic.low)}, {percent(a.synthetic.high)}] after training on "
                f"synthetic rows, {percent(a.real.value)} on real ones; blindly "
                f"{percent(a.blind)}."
            )
        told.append(self._near())
        if self.membership is not None:
            attack = self.membership
            told.append(
                f"Membership by the closest record: area {attack.auc}; {attack.verdict.controls()} "
                f"{attack.verdict.reason}"
            )
        else:
            told.append(
                "No attack was played: give rows that the synthetic ones were not made of, as "
                "holdout=."
            )
        told += ["", ALTERNATIVE]
        folded = [part for line in told for part in (wrapped(line) or [""])]
        return "\n".join([*wrapped(lines[0]), *lines[1:], *folded])

    def _near(self) -> str:
        n = self.nearness
        what = "an unseen row" if n.held_out else "another real row"
        whose = "synthetic rows" if n.held_out else "real rows"
        said = (
            f"Nearest real row: {n.synthetic[1]:.4f} away in the middle, {percent(n.copies)} are "
            f"copies; {whose} to {what}: {n.control[1]:.4f}, {percent(n.control_copies)}."
        )
        if n.nearer is not None:
            said += (
                f" Nearer to a row they were made of: {percent(n.nearer.value)} "
                f"[{percent(n.nearer.low)}, {percent(n.nearer.high)}]; 50 % where none was copied."
            )
        return said

    def plot(self, path: str | Path | None = None) -> Figure:
        """Draw the distances by order, beside chance.

        Saved to ``path`` (.png, .svg or .pdf) where one is given.
        """
        from dither.plots.tables._synth import draw_orders

        return draw_orders({"synthetic": self}, path)

    def plot_pair(self, path: str | Path | None = None) -> Figure:
        """Draw the worst two-way table of both tables side by side.

        Saved to ``path`` (.png, .svg or .pdf) where one is given.

        Raises
        ------
        ArgumentError
            Where there is only one column.
        """
        from dither.plots.tables._synth import draw_pair

        return draw_pair(self, path)
