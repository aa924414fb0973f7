"""Figures 4, 7 and 8: means by PM and SDPM, with the baselines that the paper lacks.

The paper scales heights and weights to [-1, 1] by their least and greatest value, which puts their
means next to 0, where the middle of the interval is a better answer than PM's. Each panel therefore
has PM with the same EM, Duchi's mechanism, the square wave and the constant middle, and two twins
on data that lie off the centre, in [-1, 0]: one where the low range moved with the data, and one
where it stayed, so that people left it. The first changes one thing, the second two.

EM stops as algorithm 1 prints it: at a gain of log-likelihood below e^epsilon/1000 in all. Read as
a gain per report, PM would stop after its first round, which is the constant middle once more, and
SDPM after a few.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from dither.errors import ArgumentError
from dither.examples.paper.figures import (
    EPSILONS,
    PaperCurve,
    PaperFigure,
    PaperPanel,
    exponent,
    runs_text,
    simulated,
)
from dither.examples.paper.formulas import (
    midpoint_error,
    paper_tolerance,
    pm_variance,
    sdpm_low_variance,
    sdpm_low_variance_printed,
)
from dither.examples.paper.frequencies import shared_out
from dither.examples.paper.kept import KeptSurveys, generator_of
from dither.local._numbers.duchi import Duchi
from dither.local._numbers.interval import Interval
from dither.local._numbers.sdpm import SDPM
from dither.local._numbers.window import PM, SW
from dither.local._personal import Personal
from dither.local._planning import simulate

__all__ = ["COLUMNS", "mean_figures", "read_survey", "scaled", "variance_figure"]

Array = npt.NDArray[np.float64]

COLUMNS = ("weight", "height")
SEVEN = (
    "PM",
    "PM + EM",
    "Duchi",
    "SW + EM",
    "SDPM-50",
    "SDPM-Personalised",
    "one pooled likelihood",
)
EIGHT = ("PM", "SDPM-25", "SDPM-50", "SDPM-75")
ESTIMATES = tuple(dict.fromkeys((*SEVEN, *EIGHT)))
STEPS = 128
LOW = {25: ("-0.75", "0.75"), 50: ("-0.5", "0.5"), 75: ("-0.25", "0.25")}
"""The low range that leaves this share of the interval high."""

MOVED = {25: ("-0.875", "-0.125"), 50: ("-0.75", "-0.25"), 75: ("-0.625", "-0.375")}
"""The same people low, of data in [-1, 0]."""

ARMS = {
    "as in the paper": (True, LOW),
    "off the centre, low range moved": (False, MOVED),
    "off the centre, low range as before": (False, LOW),
}
"""Whether the data are centred, and which range is low."""


def read_survey(path: str | Path) -> dict[str, Array]:
    """Heights and weights of the SOCR growth survey, as in the paper.

    Parameters
    ----------
    path : str or Path
        A CSV file with a header and the columns height and weight, in that order.

    Raises
    ------
    ArgumentError
        There is no such file, or it is not of two columns of numbers.
    """
    try:
        rows = np.loadtxt(path, delimiter=",", skiprows=1, ndmin=2)
    except OSError:
        raise ArgumentError(f"data: cannot read {Path(path).name}") from None
    except ValueError:
        raise ArgumentError("data must be a CSV file of numbers with a header") from None
    if rows.shape[1] != 2 or rows.shape[0] < 2 or not np.isfinite(rows).all():
        raise ArgumentError("data must have the two columns height and weight")
    return {"weight": rows[:, 1], "height": rows[:, 0]}


def scaled(values: Array, *, centred: bool = True) -> npt.NDArray[np.int64]:
    """A histogram over the interval's points, scaled to [-1, 1], or to [-1, 0] off the centre."""
    x = (values - values.min()) / (values.max() - values.min())
    places = np.round(x * (STEPS if centred else STEPS // 2)).astype(np.int64)
    return np.bincount(places, minlength=STEPS + 1)


def variance_figure() -> PaperFigure:
    """Figure 4: the largest variance of one report's value, low range [-0.5, 0.5]."""
    c, x = 0.5, np.linspace(0, 1, 201)
    low = x[x <= c]
    eps = [float(e) for e in EPSILONS]
    curves = (
        PaperCurve("PM, any value", exponent([pm_variance(x, e).max() for e in eps])),
        PaperCurve("SDPM, low values", exponent([sdpm_low_variance(low, e, c).max() for e in eps])),
        PaperCurve(
            "SDPM, low values", exponent([sdpm_low_variance_printed(e, c) for e in eps]), "printed"
        ),
    )
    return PaperFigure(
        4,
        "Largest variance of a report, by formula",
        (PaperPanel("low range [\N{MINUS SIGN}0.5, 0.5]", "log10 variance", curves),),
        "Dotted: theorem 4 as printed drops a term; a low value's report is also biased.",
    )


def mean_figures(
    survey: dict[str, Array],
    runs: int,
    rng: np.random.Generator,
    *,
    kept: KeptSurveys | None = None,
    told: Callable[[float], None] | None = None,
) -> list[PaperFigure]:
    """Figures 7 and 8 on both columns, as in the paper and off the centre; see `ARMS`.

    Parameters
    ----------
    survey : dict
        As of `read_survey`.
    runs : int
        Simulated surveys a point.
    rng : numpy.random.Generator
        One number is drawn from it, from which every survey has a generator of its own.
    kept : KeptSurveys, optional
        Surveys that were drawn before and are not drawn again; those drawn now are added.
    told : callable, optional
        Called with the share of surveys that is there, after each.
    """
    kept = KeptSurveys() if kept is None else kept
    seed, seven, eight = int(rng.integers(2**62)), [], []
    panels = [(where, name) for where in ARMS for name in COLUMNS]
    drawings = [
        _Drawing(scaled(survey[name], centred=ARMS[where][0]), ARMS[where][1], where, name, seed)
        for where, name in panels
    ]
    # Runs are outermost: what is kept when this is stopped is as many runs of everything.
    done, total = 0, runs * len(EPSILONS) * len(drawings)
    for run in range(runs):
        for drawing in drawings:
            for epsilon in EPSILONS:
                drawing.draw(epsilon, run, kept)
                done += 1
                if told is not None:
                    told(done / total)
    for (where, name), drawing in zip(panels, drawings, strict=True):
        found, constant = drawing.curves()
        exact = _by_formula(drawing.histogram)
        title, label = f"{name}, {where}", "log10 mean squared error"
        curves = (*exact, *(found[n] for n in SEVEN), constant)
        seven.append(PaperPanel(title, label, curves))
        eight.append(PaperPanel(title, label, (exact[0], *(found[n] for n in EIGHT), constant)))
    note = (
        f"by formula. Marks: simulated, {runs_text(runs)}. Dashed: answering the middle of the "
        "interval, without any report."
    )
    return [
        PaperFigure(7, "Error of an estimated mean", tuple(seven), f"PM and Duchi: {note}"),
        PaperFigure(
            8, "Error of an estimated mean, by how much is high", tuple(eight), f"PM: {note}"
        ),
    ]


def _by_formula(histogram: npt.NDArray[np.int64]) -> tuple[PaperCurve, PaperCurve]:
    """The errors of PM's and Duchi's means, which are their variances: both are unbiased."""
    n, interval = int(histogram.sum()), Interval(-1, 1, steps=STEPS)
    shares = histogram / n
    found = [
        exponent([make(interval, e).mean_variance(shares, n) for e in EPSILONS])
        for make in (PM, Duchi)
    ]
    return PaperCurve("PM", found[0]), PaperCurve("Duchi", found[1])


@dataclass(slots=True)
class _Drawing:
    """The simulated surveys of one panel, each estimate's errors by epsilon and run."""

    histogram: npt.NDArray[np.int64]
    low: dict[int, tuple[str, str]]
    where: str
    name: str
    seed: int
    errors: dict[str, dict[str, list[float]]] = field(default_factory=dict)

    @property
    def truth(self) -> float:
        points = Interval(-1, 1, steps=STEPS).points
        return float(self.histogram @ points) / int(self.histogram.sum())

    def draw(self, epsilon: str, run: int, kept: KeptSurveys) -> None:
        """One survey: from those kept, or drawn now and kept."""
        data = hashlib.sha256(self.histogram.astype("<i8").tobytes()).hexdigest()[:16]
        key = ("SDLDP means 1", self.seed, data, self.where, self.name, epsilon, run)
        found = kept.get(key, ESTIMATES)
        if found is None:
            found = self._drawn(epsilon, generator_of(key))
            kept.add(key, found)
        for name, error in found.items():
            self.errors.setdefault(name, {}).setdefault(epsilon, []).append(error)

    def _drawn(self, epsilon: str, rng: np.random.Generator) -> dict[str, float]:
        interval, n = Interval(-1, 1, steps=STEPS), int(self.histogram.sum())
        options = {"bins": STEPS, "tolerance": paper_tolerance(float(epsilon)) / n}
        graded = {share: SDPM(interval, ends, epsilon) for share, ends in self.low.items()}
        mixed = Personal({f"{share} % high": c for share, c in graded.items()})
        groups = np.array(list(shared_out(self.histogram).values()))
        found = _one_run(interval, epsilon, graded, mixed, self.histogram, groups, options, rng)
        return {name: value - self.truth for name, value in found.items()}

    def curves(self) -> tuple[dict[str, PaperCurve], PaperCurve]:
        """log10 mean squared errors by name, each at all epsilons; and the constant's."""
        found = {}
        for name, by_epsilon in self.errors.items():
            draws = np.array([by_epsilon[epsilon] for epsilon in EPSILONS])
            found[name] = simulated(name, draws**2, draws)
        constant = exponent([midpoint_error(self.truth)] * len(EPSILONS))
        return found, PaperCurve("the constant middle", constant, "baseline")


def _one_run(
    interval: Interval,
    epsilon: str,
    graded: dict[int, SDPM],
    mixed: Personal,
    histogram: npt.NDArray[np.int64],
    groups: npt.NDArray[np.int64],
    options: dict[str, Any],
    rng: np.random.Generator,
) -> dict[str, float]:
    """Every estimate of the mean, once."""
    reports = simulate(PM(interval, epsilon), histogram, rng)
    found = {
        "PM": float(reports.estimate().mean),
        "PM + EM": float(reports.estimate(method="likelihood", **options).mean),
    }
    found["Duchi"] = float(simulate(Duchi(interval, epsilon), histogram, rng).estimate().mean)
    # The square wave with its own way of reading: EM, smoothed after every round.
    waves = simulate(SW(interval, epsilon), histogram, rng)
    found["SW + EM"] = float(waves.estimate(method="likelihood", bins=STEPS).mean)
    for share, channel in graded.items():
        drawn = simulate(channel, histogram, rng)
        found[f"SDPM-{share}"] = float(drawn.estimate(method="likelihood", **options).mean)
    several = simulate(mixed, groups, rng)
    found["SDPM-Personalised"] = float(several.estimate(method="plugin", **options).mean)
    found["one pooled likelihood"] = float(several.estimate(method="likelihood", **options).mean)
    return found
