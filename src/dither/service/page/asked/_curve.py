"""How wide intervals would be at each epsilon: from public facts, and kept as one types.

What a question measures does not change with its price, so what was worked out for one price is
kept for the next keystroke. A question that takes long is drawn from few points at first; each
further request adds some.
"""

from __future__ import annotations

import math
import threading
import time
from collections import OrderedDict
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from fractions import Fraction
from typing import Any

from dither.errors import DitherError
from dither.service.page._svg import Scale
from dither.session._request import Request

__all__ = ["CurvePicture", "ErrorCurves", "drawn"]

EPSILONS = tuple(Fraction(one * 10**at, 100) for at in range(4) for one in (1, 2, 5))
"""Prices that are looked at beside the one that was chosen."""

ORDER = (6, 0, 11, 3, 9, 5, 8, 1, 10, 4, 7, 2)
"""In which order: coarse first."""

SECONDS = 0.02
"""Processor time that the points of one request may take, beside the one that was chosen."""

MOST_KEPT = 400

LINES = 6
"""Outputs that one picture shows."""

Widths = Mapping[str, float]


@dataclass(slots=True)
class KnownPoints:
    """What is known of one question's widths."""

    at: dict[Fraction, Widths] = field(default_factory=dict)


class ErrorCurves:
    """The widths that were worked out for whoever asks.

    Kept for each person by themselves: how long an answer takes tells nobody what others draft.
    """

    def __init__(self) -> None:
        self._kept: OrderedDict[tuple[str, ...], KnownPoints] = OrderedDict()
        self._lock = threading.Lock()

    def points(
        self, who: str, question: Any, request: Request, confidence: str, size: int
    ) -> tuple[dict[Fraction, Widths], bool]:
        """Half-widths by epsilon, and whether all points are known.

        Parameters
        ----------
        who : str
        question : Question
        request : Request
            At the price that was chosen, whose point is always among them.
        confidence : str
        size : int
            Rows in a group.

        Raises
        ------
        DitherError
            At the price that was chosen it cannot be asked.
        """
        chosen, delta = (Fraction(request.requested[name]) for name in ("epsilon", "delta"))
        alike = replace(request.data, requested={"delta": str(delta)}).digest
        known = self._known((who, alike, confidence, str(size)))

        def found(epsilon: Fraction) -> Widths:
            if epsilon not in known.at:
                seen = question.preview(epsilon, delta, sizes=(size,), confidence=confidence)
                known.at[epsilon] = {name: at[0] for name, at in seen.widths.items()}
            return known.at[epsilon]

        shown = {chosen: found(chosen)}
        until = time.thread_time() + SECONDS
        for place in ORDER:
            epsilon = EPSILONS[place]
            if epsilon not in known.at and len(shown) > 1 and time.thread_time() >= until:
                continue
            try:
                shown[epsilon] = found(epsilon)
            except DitherError:
                known.at[epsilon] = shown[epsilon] = {}  # noise too wide to draw
        return shown, all(one in shown for one in EPSILONS)

    def _known(self, key: tuple[str, ...]) -> KnownPoints:
        with self._lock:
            found = self._kept.setdefault(key, KnownPoints())
            self._kept.move_to_end(key)
            while len(self._kept) > MOST_KEPT:
                self._kept.popitem(last=False)
            if len(found.at) > 10 * len(EPSILONS):
                found.at.clear()  # somebody moved the slider for a long time
            return found


@dataclass(frozen=True, slots=True)
class CurvePicture:
    """The lines of a picture, in pixels.

    Parameters
    ----------
    lines : list of dict
        Each output's ``name``, ``path`` and the ``dot`` on it at the chosen price, if any.
    across, up : list of (float, str)
        Where ticks are, and what they say.
    mark : float or None
        Where the chosen price is.
    """

    width: int
    height: int
    lines: list[dict[str, Any]]
    across: list[tuple[float, str]]
    up: list[tuple[float, str]]
    mark: float | None
    box: tuple[float, float, float, float]


def drawn(points: Mapping[Fraction, Widths], chosen: Fraction) -> CurvePicture | None:
    """The picture of error against price, both by ratios; None where there is nothing to draw.

    Examples
    --------
    >>> found = drawn({Fraction(1): {"n": 6.0}, Fraction(10): {"n": 0.6}}, Fraction(1))
    >>> found.lines[0]["name"], found.lines[0]["dot"] is not None
    ('n', True)
    """
    names = list(dict.fromkeys(name for widths in points.values() for name in widths))[:LINES]
    seen = [w for widths in points.values() for n, w in widths.items() if n in names and _fit(w)]
    if not seen:
        return None
    width, height = 340, 190
    left, right, top, bottom = 46.0, width - 8.0, 8.0, height - 22.0
    low, high = _around(min(seen), max(seen))
    x = Scale(float(EPSILONS[0]), float(EPSILONS[-1]), left, right, log=True)
    y = Scale(low, high, bottom, top, log=True)
    inside = EPSILONS[0] <= chosen <= EPSILONS[-1]
    lines = []
    for name in names:
        at = [
            (x(float(epsilon)), y(widths[name]))
            for epsilon, widths in sorted(points.items())
            if EPSILONS[0] <= epsilon <= EPSILONS[-1] and name in widths and _fit(widths[name])
        ]
        own = points.get(chosen, {}).get(name)
        dot = (x(float(chosen)), y(own)) if inside and own is not None and _fit(own) else None
        path = " ".join(f"{'ML'[i > 0]}{px:g} {py:g}" for i, (px, py) in enumerate(at))
        lines.append({"name": name, "path": path, "dot": dot})
    across = [(x(one), f"{one:g}") for one in (0.01, 0.1, 1.0, 10.0)]
    return CurvePicture(
        width,
        height,
        lines,
        across,
        [(y(one), _short(one)) for one in _decades(low, high)],
        x(float(chosen)) if inside else None,
        (left, top, right, bottom),
    )


def _fit(width: float) -> bool:
    return math.isfinite(width) and width > 0


def _around(low: float, high: float) -> tuple[float, float]:
    """Ends beyond all values, so that even one value has room on both sides."""
    return low / 1.5, high * 1.5


def _decades(low: float, high: float) -> list[float]:
    """Round values between two, a handful."""
    first, last = math.floor(math.log10(low)), math.ceil(math.log10(high))
    every = max(1, math.ceil((last - first) / 7))
    steps: tuple[float, ...] = (1,) if last - first > 2 else (1, 2, 5)
    found = [m * 10.0**e for e in range(first, last + 1, every) for m in steps]
    return [float(f"{one:.3g}") for one in found if low <= one <= high]


def _short(value: float) -> str:
    for limit, sign in ((1e9, "G"), (1e6, "M"), (1e4, "k")):
        if value >= limit:
            return f"{value / {'G': 1e9, 'M': 1e6, 'k': 1e3}[sign]:g} {sign}"
    return f"{value:,g}" if value >= 0.001 else f"{value:.0e}"
