"""The paper's claims on means, each judged by intervals over simulated surveys."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from dither._format import percent
from dither.examples.paper.figures import PaperFigure, PaperPanel
from dither.examples.paper.intervals import (
    LEVEL,
    Gap,
    all_above,
    all_within,
    some_below,
    some_outside,
)
from dither.examples.paper.verdicts import HOLDS, NOT, ONLY_HERE, UNDECIDED, PaperClaim

__all__ = ["claims_of_means"]

Array = npt.NDArray[np.float64]

ALIKE = 0.5
"""Orders of magnitude within which one error is about as good as another."""


def claims_of_means(seven: PaperFigure, eight: PaperFigure) -> list[PaperClaim]:
    """Each claim at every epsilon, on the paper's data and where these lie off the centre.

    Errors of PM are by formula; the others' are simulated, and judged by intervals over surveys.
    """
    here, moved, _ = arms = [_arm(seven, i) for i in range(3)]
    runs = here[0].drawn("SDPM-50").shape[1]
    gains = [[_below_pm(p, "SDPM-50") for p in arm] for arm in arms]
    gain, gain_moved, gain_stayed = ([g.estimates for g in arm] for arm in gains)
    first = [[_at(g, 0) for g in arm] for arm in gains[:2]]
    still_low = [p["PM"] - p["SDPM-25"] for p in _arm(eight, 2)]
    constant = [p["PM"] - p["the constant middle"] for p in here]
    with_em = [p["PM + EM"] - p["SDPM-50"] for p in moved]
    alike = [Gap(p.drawn("SDPM-Personalised"), p.drawn("SDPM-50")) for p in here]
    pooled = [
        Gap(p.drawn("SDPM-Personalised"), p.drawn("one pooled likelihood"), shared=True)
        for p in here
    ]
    orders = [[g for p in _arm(eight, i) for g in _in_order(p)] for i in range(3)]
    return [
        PaperClaim(
            "5.2.2, figure 7",
            "SDPM-50 is two orders of magnitude below PM at ε = 0.1",
            _judged(*first, line=1.5),
            f"{_each(gain)} orders {_ends(first[0])}; the constant middle, which asks nobody, "
            f"{_each(constant)}. Off the centre {_each(gain_moved)} {_ends(first[1])} where the "
            f"low range moved with the data, and {_each(gain_stayed)} where people left it; "
            f"SDPM-25, whose range still holds most of them, {_each(still_low)}{_surveys(runs)}",
        ),
        PaperClaim(
            "5.2.2, figure 7",
            "SDPM is better than PM at every ε",
            _judged(*gains[:2]),
            f"surely at {_surely(gains[0])} of 10 ε (weight and height); off the centre at "
            f"{_surely(gains[1])} with the low range moved, {_surely(gains[2])} with it left. "
            f"In the mean over ε {_mean(gain)}, {_mean(gain_moved)} and {_mean(gain_stayed)} "
            f"orders; against PM with the same EM, range moved, {_mean(with_em)}{_surveys(runs)}",
        ),
        PaperClaim(
            "5.2.2, figure 7",
            "personalised SDPM is about as good as SDPM-50",
            HOLDS if all_within(alike, ALIKE) else NOT if some_outside(alike, ALIKE) else UNDECIDED,
            f"{_mean([g.estimates for g in alike])} orders above it in the mean over ε, surely "
            f"within {ALIKE} at {_counts(_within(alike))} of 10 ε; one pooled likelihood is surely "
            f"better than weights at {_surely(pooled)} of 10{_surveys(runs)}",
        ),
        PaperClaim(
            "5.2.2, figure 8",
            "the less is high, the smaller SDPM's error",
            _judged(*orders[:2]),
            "steps of that order, from 25 to 50 and from 50 to 75 %: "
            + "; ".join(
                f"{sum(int((g.ends(LEVEL)[0] > 0).sum()) for g in arm)} of "
                f"{sum(g.comparisons for g in arm)} sure, "
                f"{sum(int((g.ends(LEVEL)[1] < 0).sum()) for g in arm)} surely the other way, "
                f"{where}"
                for arm, where in zip(
                    orders, ("here", "with the low range moved", "with it left"), strict=True
                )
            )
            + _surveys(runs),
        ),
    ]


def _below_pm(panel: PaperPanel, label: str) -> Gap:
    """How far an estimate's error lies below PM's, which is known."""
    return Gap(10 ** panel.of("PM", "exact"), panel.drawn(label))


def _in_order(panel: PaperPanel) -> list[Gap]:
    """How far the error grows from a quarter high to a half, and on to three quarters."""
    quarter, half, most = (panel.drawn(f"SDPM-{share}") for share in (25, 50, 75))
    return [Gap(half, quarter), Gap(most, half)]


def _at(gap: Gap, place: int) -> Gap:
    """One of its comparisons."""
    these = slice(place, place + 1)
    return Gap(gap.above[these], gap.below[these], gap.shared)


def _surveys(runs: int) -> str:
    """How sure what is said is; one survey decides nothing."""
    if runs < 2:
        return ". One survey decides nothing: --runs 10 or more"
    return f". {runs} surveys, each end at {percent(1 - LEVEL)}"


def _ends(gaps: list[Gap]) -> str:
    ends = [gap.ends(LEVEL) for gap in gaps]
    if not all(np.isfinite(low[0]) and np.isfinite(high[0]) for low, high in ends):
        return "(of one survey)"
    told = (f"{_orders(low[0])} to {_orders(high[0])}" for low, high in ends)
    return f"({' and '.join(told)})"


def _surely(gaps: list[Gap]) -> str:
    return _counts([gap.ends(LEVEL)[0] > 0 for gap in gaps])


def _within(gaps: list[Gap]) -> list[npt.NDArray[np.bool_]]:
    ends = [gap.ends(LEVEL) for gap in gaps]
    return [(low > -ALIKE) & (high < ALIKE) for low, high in ends]


def _counts(found: list[npt.NDArray[np.bool_]]) -> str:
    return " and ".join(str(int(at.sum())) for at in found)


def _arm(figure: PaperFigure, place: int) -> tuple[PaperPanel, ...]:
    """Weight and height: as in the paper, with the low range moved, and with it left."""
    return figure.panels[2 * place : 2 * place + 2]


def _judged(here: list[Gap], moved: list[Gap], *, line: float = 0.0) -> str:
    """By the paper's data, and by the same data off the centre with the low range moved along.

    People who leave the low range are another survey, and are reported, and not judged by. Each
    way to be wrong has probability 2.5 % at most, and no truth allows for more than two of them.
    """
    if some_below(here, line):
        return NOT
    if not all_above(here, line):
        return UNDECIDED
    if some_below(moved, line):
        return ONLY_HERE
    return HOLDS if all_above(moved, line) else UNDECIDED


def _each(values: list[Array]) -> str:
    return " and ".join(_orders(v[0]) for v in values)


def _mean(values: list[Array]) -> str:
    return " and ".join(_orders(np.mean(v)) for v in values)


def _orders(value: Any) -> str:
    """To a tenth; what is next to nothing has no sign."""
    return f"{round(float(value), 1) + 0.0:.1f}".replace("-", "\N{MINUS SIGN}")
