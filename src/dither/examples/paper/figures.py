"""What a figure of the paper shows, as numbers: curves over epsilon, in panels."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol

import numpy as np
import numpy.typing as npt

from dither._format import count_text
from dither.errors import MissingLibraryError

if TYPE_CHECKING:
    from matplotlib.figure import Figure

__all__ = [
    "EPSILONS",
    "PaperCurve",
    "PaperFigure",
    "PaperPanel",
    "Plotted",
    "drawn",
    "exponent",
    "figure_text",
    "runs_text",
    "simulated",
]

EPSILONS = (*(f"0.{i}" for i in range(1, 10)), "1")
"""The paper's: 0.1 to 1 in steps of 0.1, as exact decimals."""

Array = npt.NDArray[np.float64]
Drawn = tuple[bytes, dict[str, int]]


def exponent(values: Any) -> Array:
    """log10, as the paper's axes have it."""
    return np.asarray(np.log10(np.asarray(values, dtype=np.float64)))


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class PaperCurve:
    """One line of a panel.

    Parameters
    ----------
    label : str
    values : array of float, shape (10,)
        At `EPSILONS`; log10 of an error, or a share.
    how : {"exact", "simulated", "printed", "baseline"}
        By formula, by drawing reports, by the paper's own formula, or what needs no reports.
    errors : array of float, shape (10,), optional
        Of simulated values: one standard error over the runs; none where there is one run.
    draws : array of float, shape (10, runs), optional
        Of simulated means: the error of each run, with its sign.
    """

    label: str
    values: Array
    how: str = "exact"
    errors: Array | None = None
    draws: Array | None = None

    def __repr__(self) -> str:
        return f"<curve {self.label!r}, {self.how}>"


def simulated(label: str, runs: Any, draws: Array | None = None) -> PaperCurve:
    """A curve of log10 mean squared errors, from each run's, shape (10, runs)."""
    squares = np.asarray(runs, dtype=np.float64)
    means = squares.mean(axis=1)
    if squares.shape[1] < 2:
        return PaperCurve(label, exponent(means), "simulated", None, draws)
    errors = squares.std(axis=1, ddof=1) / np.sqrt(squares.shape[1])
    # On a scale of log10, a small error is one in proportion.
    return PaperCurve(label, exponent(means), "simulated", errors / means / np.log(10), draws)


def runs_text(runs: int) -> str:
    """How simulated marks were made."""
    return f"mean of {runs} surveys, bars one standard error" if runs > 1 else "one survey"


@dataclass(frozen=True, slots=True, repr=False)
class PaperPanel:
    """One set of axes."""

    title: str
    ylabel: str
    curves: tuple[PaperCurve, ...]

    def __repr__(self) -> str:
        labels = dict.fromkeys(curve.label for curve in self.curves)
        return f"<panel {self.title!r}: {'; '.join(labels)}>"

    def __getitem__(self, label: str) -> Array:
        """The values of the curve of that label, the first of its kind."""
        return next(curve.values for curve in self.curves if curve.label == label)

    def of(self, label: str, how: str) -> Array:
        """The values of the curve of that label and kind."""
        return next(c.values for c in self.curves if (c.label, c.how) == (label, how))

    def drawn(self, label: str) -> Array:
        """Each run's error with its sign, of the simulated curve of that label."""
        return next(c.draws for c in self.curves if c.label == label and c.draws is not None)


@dataclass(frozen=True, slots=True, repr=False)
class PaperFigure:
    """A figure of the paper.

    Parameters
    ----------
    number : int
        Its number there.
    title : str
    panels : tuple of PaperPanel
    note : str
        What this version puts right or adds.
    """

    number: int
    title: str
    panels: tuple[PaperPanel, ...]
    note: str

    def plot(self, path: str | Path | None = None) -> Figure:
        """Draw the figure; write it where a path is given (.png, .svg or .pdf)."""
        from dither.plots._paper import draw

        return draw(self, [float(e) for e in EPSILONS], path)

    def __repr__(self) -> str:
        return figure_text(self.number, self.title, len(self.panels))

    def _repr_png_(self) -> Drawn | None:
        return drawn(self)


class Plotted(Protocol):
    """What can be drawn."""

    def plot(self) -> Figure:
        """Draw it."""
        ...


def figure_text(number: int, title: str, panels: int) -> str:
    """A figure in a line.

    Examples
    --------
    >>> figure_text(7, "Error of an estimated mean", 6)
    '<figure 7: Error of an estimated mean; 6 panels>'
    """
    return f"<figure {number}: {title}; {count_text(panels, 'panel')}>"


def drawn(figure: Plotted) -> Drawn | None:
    """The picture that a notebook shows by itself; none where Matplotlib is not installed."""
    try:
        picture: Any = figure.plot()
    except MissingLibraryError:
        return None
    shown: Drawn = picture._repr_png_()
    return shown
