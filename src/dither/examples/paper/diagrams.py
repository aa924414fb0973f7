"""Figures 1 and 3: what each value may be reported as, by the mechanisms' exact laws.

Figure 1 of the paper is a scheme of arrows. Here each arrow has its probability, of URR and of
SDGRR at one epsilon, and the missing ones are seen to be missing. Figure 3 is SDPM's law for four
inputs.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt

from dither.examples.paper.figures import Drawn, drawn, figure_text
from dither.examples.paper.formulas import pm_density, sdpm_truth
from dither.local._frequency.graded import SDGRR, URR

if TYPE_CHECKING:
    from matplotlib.figure import Figure

__all__ = ["PaperDensity", "PaperDiagram", "PaperLaw", "densities_figure", "framework_figure"]

Array = npt.NDArray[np.float64]


@dataclass(frozen=True, slots=True, eq=False)
class PaperLaw:
    """A channel on few values.

    Parameters
    ----------
    title : str
    names : tuple of str
        Of the values.
    high : int
        The first so many are highly sensitive.
    chances : array of float, shape (k, k)
        Of each report (column), given the value (row).
    """

    title: str
    names: tuple[str, ...]
    high: int
    chances: Array


@dataclass(frozen=True, slots=True, eq=False)
class PaperDensity:
    """The law of one report of a number.

    Parameters
    ----------
    title : str
    pieces : tuple of (float, float, float)
        From where to where, and the density there; without overlap, in order.
    point : (float, float) or None
        The value that is reported as it is, and how often.
    """

    title: str
    pieces: tuple[tuple[float, float, float], ...]
    point: tuple[float, float] | None

    @property
    def mass(self) -> float:
        """What all of it comes to: 1."""
        spread = sum((end - start) * height for start, end, height in self.pieces)
        return spread + (self.point[1] if self.point else 0.0)


@dataclass(frozen=True, slots=True, repr=False)
class PaperDiagram:
    """A figure of the paper that has no curves over epsilon.

    Parameters
    ----------
    number : int
        Its number there.
    title : str
    panels : tuple of PaperLaw, or of PaperDensity
    note : str
    """

    number: int
    title: str
    panels: tuple[PaperLaw, ...] | tuple[PaperDensity, ...]
    note: str

    def plot(self, path: str | Path | None = None) -> Figure:
        """Draw the figure; write it where a path is given (.png, .svg or .pdf)."""
        from dither.plots._paper_laws import draw_laws

        return draw_laws(self, path)

    def __repr__(self) -> str:
        return figure_text(self.number, self.title, len(self.panels))

    def _repr_png_(self) -> Drawn | None:
        return drawn(self)


def framework_figure(epsilon: str = "1") -> PaperDiagram:
    """Figure 1: ULDP, as URR, beside SDLDP, as SDGRR; two high values and three low ones."""
    names, h = ("HIV", "hepatitis", "cold", "fever", "cough"), 2
    made = (("ULDP, as URR", URR), ("SDLDP, as SDGRR", SDGRR))
    panels = tuple(
        PaperLaw(title, names, h, np.asarray(make(len(names), range(h), epsilon).matrix))
        for title, make in made
    )
    return PaperDiagram(
        1,
        "What a value may be reported as",
        panels,
        f"At ε = {epsilon}. Thicker is likelier. URR never reports a high value (orange) as a low "
        "one; SDGRR does. Neither reports a low value (blue) as another low one.",
    )


def densities_figure(epsilon: float = 1.0, low: tuple[float, float] = (0.2, 0.8)) -> PaperDiagram:
    """Figure 3: the law of SDPM's report of four numbers, two of them in the low range."""
    s = np.exp(epsilon / 2)
    reach = float((s + 1) / (s - 1))
    panels = tuple(_density(x, epsilon, low, reach) for x in (-0.5, 0.3, 0.6, 0.9))
    return PaperDiagram(
        3,
        "The law of one report by SDPM",
        panels,
        f"At ε = {epsilon:g}. Shaded: the low range [{low[0]:g}, {low[1]:g}], in which a low "
        "number is reported as itself or not at all. The stem is the chance of that, to the last "
        "digit: among real numbers it is then known for certain.",
    )


def _signed(x: float) -> str:
    return f"{x:g}".replace("-", "\N{MINUS SIGN}")


def _density(x: float, epsilon: float, low: tuple[float, float], reach: float) -> PaperDensity:
    inside = pm_density(epsilon)
    outside = inside * float(np.exp(-epsilon))
    if low[0] <= x <= low[1]:
        pieces = ((-reach, low[0], outside), (low[1], reach, outside))
        return PaperDensity(f"x = {x:g}, low", pieces, (x, sdpm_truth(epsilon, *low)))
    start = (reach + 1) / 2 * x - (reach - 1) / 2
    end = start + reach - 1
    found = ((-reach, start, outside), (start, end, inside), (end, reach, outside))
    return PaperDensity(f"x = {_signed(x)}, high", tuple(p for p in found if p[1] > p[0]), None)
