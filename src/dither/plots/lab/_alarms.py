"""True alarms against false alarms, on logarithmic axes, with what a loss allows: audits and
membership inference."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from statistics import NormalDist
from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt

from dither._format import at_least, level
from dither.plots._canvas import COLOURS, INK, MUTED, WIDTH, finish, new_figure, percents, tidy

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

    from dither.lab.attack import Membership
    from dither.lab.audit import Audit, CanaryAudit, Claim

__all__ = ["draw_audit", "draw_canaries", "draw_membership"]

Floats = npt.NDArray[np.float64]

_LOWEST = 1e-3


def _squarish(height: float) -> tuple[Figure, Axes]:
    figure = new_figure(WIDTH * 0.72, height)
    return figure, figure.subplots()


def draw_audit(audit: Audit, path: str | Path | None = None) -> Figure:
    """Draw true alarms against false alarms, on logarithmic axes."""
    points = [(e.q_upper, e.p_lower) for e in audit.events if e.p_lower > e.q_upper]
    low = min([_LOWEST, *(q / 3 for q, _ in points)])
    bottom = min([low, *(p / 3 for _, p in points)])
    claimed = audit.claimed.apart(audit.distance)
    figure, axes = _squarish(5.0)
    rates = np.geomspace(low, 1.0, 400)
    allowed = _allowed(claimed, rates)
    axes.fill_between(rates, np.maximum(rates, bottom), allowed, color=COLOURS[0], alpha=0.12)
    axes.plot(rates, allowed, color=COLOURS[0], linewidth=2, label=f"allowed by {claimed}")
    axes.plot(rates, rates, color=MUTED, linewidth=1, linestyle=":", label="guessing blindly")
    if points:
        over = np.array([p > _allowed(claimed, np.array([q]))[0] for q, p in points])
        x, y = np.array(points).T
        for mask, colour, marker, label in (
            (over, COLOURS[5], "D", "certified, beyond the claim"),
            (~over, COLOURS[2], "o", "certified"),
        ):
            if mask.any():
                axes.plot(x[mask], y[mask], marker, color=colour, markersize=7, label=label)
    _rates(axes, low, bottom)
    axes.set_xlabel("false alarms, at most", color=INK)
    axes.set_ylabel("true alarms, at least", color=INK)
    axes.legend(frameon=False, fontsize=9, loc="lower right")
    bound = (
        f"μ ≥ {at_least(audit.mu)}"
        if audit.claimed.mu is not None
        else f"ε ≥ {at_least(audit.lower)}"
    )
    foot = (
        f"{bound} at {level(audit.confidence)} confidence, from {audit.samples:,} outputs of "
        "each dataset. "
        + (f"Noise is reused: {audit.reuse}." if audit.reuse else "")
        + (f"They are {audit.distance} neighbours apart." if audit.distance > 1 else "")
    )
    title = f"Audit: {audit.verdict.value}"
    return finish(figure, title=title, foot=foot.strip(), path=path)


def draw_membership(
    found: Sequence[Membership],
    path: str | Path | None = None,
    *,
    labels: Sequence[str] | None = None,
    title: str | None = None,
) -> Figure:
    """Draw true alarms against false alarms; the bound of each release in its colour, dashed.

    Parameters
    ----------
    found : sequence of Membership
    path : str or Path, optional
        Where to save it: .png, .svg or .pdf.
    labels : sequence of str, optional
        By default what each release is called.
    title : str, optional

    Returns
    -------
    matplotlib.figure.Figure
    """
    figure, axes = _squarish(5.0)
    rates = np.geomspace(_LOWEST, 1.0, 200)
    axes.plot(rates, rates, color=MUTED, linewidth=1, linestyle=":", label="guessing blindly")
    played = next((one for one in found if one.control is not None), None)
    if played is not None and played.control is not None:
        axes.plot(
            *np.array(played.control.curve()),
            color=MUTED,
            linewidth=1.2,
            linestyle="-.",
            label=f"control: {played.verdict.bare}",
        )
    said = labels or [one.verdict.release for one in found]
    for i, (one, label) in enumerate(zip(found, said, strict=True)):
        colour = COLOURS[i % len(COLOURS)]
        axes.plot(*one.roc.curve(), color=colour, linewidth=2, label=label)
        if one.allowed is not None:
            axes.plot(rates, one.allowed.tpr(rates), color=colour, linewidth=1.4, linestyle="--")
    if any(one.loss is not None for one in found):
        axes.plot(
            [], [], color=INK, linewidth=1.4, linestyle="--", label="the most its loss allows"
        )
    _rates(axes, _LOWEST, _LOWEST)
    axes.set_xlabel("others who are accused")
    axes.set_ylabel("members who are found")
    axes.legend(frameon=False, fontsize=9, loc="lower right")
    areas = "; ".join(f"{one.auc.value:.3f}" for one in found)
    foot = (
        f"Area under the curve{'s, in this order' * (len(found) > 1)}: {areas} (blindly 0.5). "
        f"Prior: one in two is a member."
    )
    return finish(figure, title=title or "Who was in the data?", foot=foot, path=path)


def draw_canaries(
    found: Sequence[CanaryAudit],
    path: str | Path | None = None,
    *,
    labels: Sequence[str] | None = None,
    title: str | None = None,
) -> Figure:
    """Draw what canaries certify against what was claimed: no point may lie above the line.

    Parameters
    ----------
    found : sequence of CanaryAudit
    path : str or Path, optional
        Where to save it: .png, .svg or .pdf.
    labels : sequence of str, optional
        What each training is called.
    title : str, optional

    Returns
    -------
    matplotlib.figure.Figure
    """
    figure, axes = _squarish(4.6)
    most = 1.12 * max(one.claimed for one in found)
    axes.plot([0, most], [0, most], color=INK, linewidth=1.4, linestyle="--", label="claimed")
    axes.plot(
        [0, most], [0, 0.6 * most], color=MUTED, linewidth=1, linestyle=":", label="60 % of it"
    )
    claimed = [one.claimed for one in found]
    within = [(one.claimed, one.within) for one in found if one.within is not None]
    if within:
        x, y = np.array(within).T
        axes.plot(x, y, "o", color=COLOURS[0], markersize=8, label="certified within the family")
    axes.plot(
        claimed, [one.lower for one in found], "D", color=COLOURS[1], markersize=6,
        label="certified without assumptions",
    )  # fmt: skip
    for one, label in zip(found, labels or [""] * len(found), strict=True):
        axes.annotate(
            label, (one.claimed, one.claimed), (-6, 4), textcoords="offset points", ha="right",
            size=9, color=INK,
        )  # fmt: skip
    axes.set(xlim=(0, most), ylim=(0, most))
    tidy(axes, values="y")
    axes.spines["left"].set_visible(True)
    axes.set_xlabel("ε that is claimed", color=INK)
    axes.set_ylabel("ε that canaries prove", color=INK)
    axes.legend(frameon=False, fontsize=9, loc="upper left")
    first = found[0]
    foot = (
        f"At δ = {first.delta:g}, each at {level(first.confidence)} confidence, from "
        f"{first.plays:,} plays of canaries."
    )
    return finish(figure, title=title or "Canaries in training", foot=foot, path=path)


def _rates(axes: Axes, low: float, bottom: float) -> None:
    """Both axes from a smallest rate to 1."""
    tidy(axes, values="y")
    axes.spines["left"].set_visible(True)
    axes.set(xscale="log", yscale="log", xlim=(low, 1.0), ylim=(bottom, 1.15))
    axes.tick_params(which="both", length=0, pad=6)
    percents(axes.xaxis, axes.yaxis)
    for axis in (axes.xaxis, axes.yaxis):
        axis.set_minor_formatter(lambda value, _: "")


def _allowed(claim: Claim, rates: Floats) -> Floats:
    """The most true alarms that the claim allows at each rate of false alarms."""
    if claim.mu is not None:
        normal = NormalDist()
        inner = np.clip(rates, 1e-12, 1 - 1e-12)
        return np.array([normal.cdf(normal.inv_cdf(float(r)) + claim.mu) for r in inner])
    factor = np.exp(min(claim.epsilon, 700.0))
    above = factor * rates + claim.delta
    below = 1.0 - (1.0 - claim.delta - rates) / factor
    return np.asarray(np.minimum(1.0, np.minimum(above, below)))
