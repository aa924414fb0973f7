"""The paper's claims, each with a verdict that is computed from the redone experiments."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from dither.local.finite import FiniteChannel
from dither.local.frequency.sdgrr import SDGRR
from dither.local.frequency.urr import URR
from dither.local.reproduce.figures import PaperFigure
from dither.local.reproduce.frequencies import histogram_of, variance_printed

__all__ = ["HOLDS", "NOT", "ONLY_HERE", "Claim", "claims", "meets_definition_3"]

Array = npt.NDArray[np.float64]

HOLDS, ONLY_HERE, NOT = "holds", "holds on this data only", "does not hold"


@dataclass(frozen=True, slots=True)
class Claim:
    """One claim of the paper.

    Parameters
    ----------
    where : str
        In the paper.
    text : str
    verdict : {"holds", "holds on this data only", "does not hold"}
    evidence : str
        The figures behind the verdict.
    """

    where: str
    text: str
    verdict: str
    evidence: str


def claims(figures: Sequence[PaperFigure]) -> list[Claim]:
    """Verdicts from the figures that are there; claims on means need figures 7 and 8."""
    known = {figure.number: figure for figure in figures}
    found = [
        *_definition(),
        *_theory(known[2], known[4]),
        *_frequencies(known[5], known[6]),
        *_adversary(known[9]),
    ]
    if 7 in known and 8 in known:
        found += _means(known[7], known[8])
    return found


def meets_definition_3(channel: FiniteChannel, high: range) -> bool:
    """Whether a channel meets definition 3 as printed, the low outputs being the low values."""
    e, matrix = float(np.exp(float(channel.epsilon))) * (1 + 1e-9), channel.matrix
    mask = np.zeros(matrix.shape[0], dtype=np.bool_)
    mask[list(high)] = True
    between_high = matrix[mask]
    low = matrix[np.ix_(~mask, ~mask)]
    onto_high = matrix[:, mask]
    alike = all(
        bool(np.all(rows[:, None] <= e * rows[None] + 1e-15)) for rows in (between_high, onto_high)
    )
    alone = np.count_nonzero(low - np.diag(np.diag(low))) == 0 and bool(np.all(np.diag(low) > 0))
    return alike and alone


def _definition() -> list[Claim]:
    both = [meets_definition_3(c(18, range(4), "0.5"), range(4)) for c in (SDGRR, URR)]
    promise = SDGRR(18, range(4), "0.5").guarantee
    return [
        Claim(
            "4.1, definition 3",
            "SDLDP protects low values from being shown outright, as ULDP does not",
            NOT if both[1] else HOLDS,
            "URR, which shows them, meets the definition as printed"
            if both[1]
            else "URR does not meet the definition",
        ),
        Claim(
            "4.1, theorem 1",
            "high values are protected as under LDP",
            NOT,
            f"between two high values δ = 0; a high against a low one δ = "
            f"{promise.pairs['high', 'low'].delta:.2f} at ε = 0.5, k = 18, h = 4",
        ),
    ]


def _theory(two: PaperFigure, four: PaperFigure) -> list[Claim]:
    panel, pm = two.panels[0], four.panels[0]
    label = "low values, 75 % low"
    gap = 10 ** (panel.of(label, "exact") - panel.of(label, "printed"))
    gain = 10 ** (panel["GRR"] - panel.of(label, "exact"))
    low = pm["PM, any value"] - pm.of("SDPM, low values", "exact")
    return [
        Claim(
            "4.2, theorem 2",
            "a low value's share has the variance of equation (12)",
            NOT,
            f"the exact variance is {gap[-1]:.0f} to {gap[0]:,.0f} times larger (ε = 1 to 0.1), "
            f"and {_gap_of_census():,.0f} times at ε = 0.1 for the census's EA",
        ),
        Claim(
            "4.2, figure 2",
            "low values are estimated better than by GRR, the more so the more are low",
            HOLDS if np.all(gain > 1) else NOT,
            f"variance {gain.min():.0f} to {gain.max():.0f} times smaller at 75 % low",
        ),
        Claim(
            "4.3, figure 4",
            "SDPM's variance on low values is below PM's",
            HOLDS if np.all(low > 0) else NOT,
            f"{10 ** low[0]:.2f} times smaller at ε = 0.1, {10 ** low[-1]:.2f} at ε = 1; "
            "but the report of a low x is biased, E = p'x",
        ),
    ]


def _gap_of_census() -> float:
    histogram = histogram_of("EA")
    n, h = int(histogram.sum()), 4
    shares = histogram / n
    exact = SDGRR(18, range(h), "0.1").variance(shares, n)[h:].mean()
    return float(exact / variance_printed(18, h, shares, 0.1, n).mean())


def _frequencies(five: PaperFigure, six: PaperFigure) -> list[Claim]:
    grr = [10 ** (p["GRR"] - p["SDGRR-25"]) for p in five.panels]
    urr = [10 ** (p["SDGRR-25"] - p["URR-25"]) for p in five.panels]
    mixed = [p["SDGRR-Personalised"] - p["SDGRR-25"] for p in five.panels]
    pooled = [
        p.of("SDGRR-Personalised", "simulated") - p.of("one pooled likelihood", "simulated")
        for p in five.panels
    ]
    steps = [
        np.diff([p[n] for n in ("SDGRR-25", "SDGRR-50", "SDGRR-75", "GRR")], axis=0)
        for p in six.panels
    ]
    between = all(np.all(g > 1) and np.all(u > 1) for g, u in zip(grr, urr, strict=True))
    return [
        Claim(
            "5.2.1, figure 5",
            "SDGRR's error lies between URR's and GRR's",
            HOLDS if between else NOT,
            "at every ε, on both attributes",
        ),
        Claim(
            "5.2.1, figure 5",
            "SDGRR-25 is about one order of magnitude below GRR",
            HOLDS if min(g.min() for g in grr) >= 8 else NOT,
            f"{_span(grr)} times, about k/h",
        ),
        Claim(
            "5.2.1, figure 5",
            "URR-25 is about one order of magnitude below SDGRR-25",
            HOLDS if min(u.min() for u in urr) >= 8 else NOT,
            f"{_span(urr)} times",
        ),
        Claim(
            "5.2.1, figure 5",
            "personalised SDGRR is about as good as SDGRR-25",
            HOLDS if max(np.abs(m).max() for m in mixed) < 0.35 else NOT,
            f"error {10 ** min(m.min() for m in mixed):.2f} to "
            f"{10 ** max(m.max() for m in mixed):.2f} times SDGRR-25's; one pooled likelihood is "
            f"{np.mean([q.mean() for q in pooled]):.1f} orders better still (means over ε)",
        ),
        Claim(
            "5.2.1, figure 6",
            "the more values are high, the larger the error, up to GRR's",
            HOLDS if all(np.all(s > 0) for s in steps) else NOT,
            "at every ε, on both attributes",
        ),
    ]


def _adversary(nine: PaperFigure) -> list[Claim]:
    values, classes = nine.panels[0::2], nine.panels[1::2]
    same = [np.abs(p["SDGRR-25"] - p["GRR"]).max() for p in values]
    more = [100 * (p["URR-25"] - p["SDGRR-25"]) for p in values]
    easier = values[1]["SDGRR-25"] - values[0]["SDGRR-25"]
    shown = [c["SDGRR-25"] - c["GRR"] for c in classes]
    worse = [c["SDGRR-25"] - c["URR-25"] for c in classes]
    return [
        Claim(
            "5.2.3, figure 9",
            "a high value is guessed from SDGRR as rarely as from GRR",
            HOLDS if max(same) < 1e-9 else NOT,
            "equal, by formula",
        ),
        Claim(
            "5.2.3, figure 9",
            "and about 30 points more rarely than from URR, at 25 % high",
            HOLDS if min(m.min() for m in more) > 15 else NOT,
            f"{_span(more, '.0f')} points",
        ),
        Claim(
            "5.2.3, figure 9",
            "MS is guessed more often than EA",
            HOLDS if np.all(easier > 0) else NOT,
            "7 values against 18, at every ε",
        ),
        Claim(
            "1 and 4.1",
            "SDLDP hides whether a value is a sensitive one, where ULDP shows it",
            NOT,
            f"to who knows the shares, SDGRR-25 tells the class better than GRR (area under the "
            f"ROC curve up to {max(s.max() for s in shown):+.2f}) and than URR-25 "
            f"({max(w.max() for w in worse):+.2f})"
            if max(w.max() for w in worse) > 0
            else f"to who knows the shares, SDGRR-25 tells the class better than GRR (area under "
            f"the ROC curve up to {max(s.max() for s in shown):+.2f})",
        ),
    ]


def _means(seven: PaperFigure, eight: PaperFigure) -> list[Claim]:
    here, off = seven.panels[:2], seven.panels[2:]
    gain = [p["PM"] - p["SDPM-50"] for p in here]
    off_gain = [p["PM"] - p["SDPM-50"] for p in off]
    constant = [p["PM"] - p["the constant middle"] for p in here]
    with_em = [p["PM + EM"] - p["SDPM-50"] for p in off]
    mixed = [np.mean(p["SDPM-Personalised"] - p["SDPM-50"]) for p in here]
    pooled = [np.mean(p["SDPM-Personalised"] - p["one pooled likelihood"]) for p in here]
    order = [[np.mean(p[n]) for n in ("SDPM-25", "SDPM-50", "SDPM-75")] for p in eight.panels]
    sorted_here = all(a < b < c for a, b, c in order[:2])
    sorted_off = all(a < b < c for a, b, c in order[2:])
    two_orders = min(g[0] for g in gain) > 1.5
    return [
        Claim(
            "5.2.2, figure 7",
            "SDPM-50 is two orders of magnitude below PM at ε = 0.1",
            NOT if not two_orders else HOLDS if min(g[0] for g in off_gain) > 1.5 else ONLY_HERE,
            f"{_each(gain)} orders; the constant middle, which asks nobody, {_each(constant)}; "
            f"off the centre {_each(off_gain)}",
        ),
        Claim(
            "5.2.2, figure 7",
            "SDPM is better than PM at every ε",
            HOLDS
            if min(g.min() for g in [*gain, *off_gain]) > 0
            else ONLY_HERE
            if min(np.mean(g) for g in gain) > 0
            else NOT,
            f"in the mean over ε {_mean(gain)} orders here, {_mean(off_gain)} off the centre; "
            f"against PM with the same EM, off the centre, {_mean(with_em)}",
        ),
        Claim(
            "5.2.2, figure 7",
            "personalised SDPM is about as good as SDPM-50",
            HOLDS if max(abs(m) for m in mixed) < 0.5 else NOT,
            f"{max(mixed, key=abs):+.1f} orders in the mean over ε; one pooled likelihood is "
            f"{np.mean(pooled):+.1f} orders better than weights",
        ),
        Claim(
            "5.2.2, figure 8",
            "the less is high, the smaller SDPM's error",
            HOLDS if sorted_here and sorted_off else ONLY_HERE if sorted_here else NOT,
            "means over ε of log10 error, SDPM-25/50/75: "
            + "; ".join(
                f"{panel.title.split(',')[0]}{'' if i < 2 else ' off'} "
                + "/".join(f"{v:.1f}" for v in values)
                for i, (panel, values) in enumerate(zip(eight.panels, order, strict=True))
            ),
        ),
    ]


def _span(values: list[Array], form: str = ".1f") -> str:
    low, high = min(v.min() for v in values), max(v.max() for v in values)
    return f"{low:{form}} to {high:{form}}"


def _each(values: list[Array]) -> str:
    return " and ".join(f"{v[0]:.1f}" for v in values)


def _mean(values: list[Array]) -> str:
    return " and ".join(f"{np.mean(v):.1f}" for v in values)
