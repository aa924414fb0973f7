"""The picture of an answer: each value a point, its interval a line, one group below another."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from dither._format import display_text, number_text
from dither.service.page._svg import Scale, ticks

if TYPE_CHECKING:
    from dither.query._release import Release

__all__ = ["WhiskerPanel", "panels"]

MOST_GROUPS = 30

MOST_PANELS = 6

WIDTH, ROW, LEFT = 400, 24, 130


@dataclass(frozen=True, slots=True)
class WhiskerPanel:
    """One output of an answer, in pixels.

    Parameters
    ----------
    name : str
    unit : str or None
    height : int
    ticks : list of (float, str)
    rows : list of dict
        Each group's ``label``, ``y``, ``at``, ``low``, ``high``, and the ``told`` of it in words;
        ends that lie outside are cut.
    left : int
        Groups that are not shown.
    """

    name: str
    unit: str | None
    width: int
    height: int
    ticks: list[tuple[float, str]]
    rows: list[dict[str, Any]]
    left: int


def panels(release: Release) -> list[WhiskerPanel]:
    """A panel for each output that is a number.

    Examples
    --------
    >>> from dither.query._release import Release
    >>> made = panels(Release({
    ...     "columns": [{"name": n, "kind": "integer", "values": [v]}
    ...                 for n, v in (("n", 5), ("n_lower", 3), ("n_upper", 7))],
    ...     "keys": [], "outputs": ["n"], "units": {}}))
    >>> made[0].rows[0]["low"] < made[0].rows[0]["at"] < made[0].rows[0]["high"]
    True
    """
    frame, keys = release._drawn()
    labels = [
        " · ".join(display_text(value, 24) for value in row)
        for row in frame.select(keys).iter_rows()
    ] or ["" for _ in range(frame.height)]
    found = []
    for name in release._numbers[:MOST_PANELS]:
        columns = [frame[f"{name}{end}"].to_list() for end in ("", "_lower", "_upper")]
        rows = [
            (label, *values)
            for label, *values in zip(labels, *columns, strict=True)
            if values[0] is not None and math.isfinite(values[0])
        ]
        if rows:
            found.append(_panel(name, release.units.get(name), rows))
    return found


def _panel(name: str, unit: str | None, rows: list[tuple[Any, ...]]) -> WhiskerPanel:
    shown = rows[:MOST_GROUPS]
    finite = [v for _, *values in shown for v in values if v is not None and math.isfinite(v)]
    low, high = min(0, *finite), max(0, *finite)
    if not _near_zero(finite):
        low, high = min(finite), max(finite)
    room = (high - low) * 0.04 or abs(high) * 0.1 or 1.0
    low, high = (low - room if low else 0.0), high + room
    scale = Scale(low, high, LEFT, WIDTH - 12)
    drawn = []
    for at, (label, value, lower, upper) in enumerate(shown):
        ends = [
            v if v is not None and math.isfinite(v) else (low, high)[i]
            for i, v in enumerate((lower, upper))
        ]
        inside = min(max(value, ends[0]), ends[1])
        drawn.append(
            {
                "label": label if len(label) <= 18 else label[:17] + "…",
                "y": ROW * at + ROW // 2 + 4,
                "at": scale(inside),
                "low": scale(max(ends[0], low)),
                "high": scale(min(ends[1], high)),
                "told": f"{label or name}: {number_text(inside)}, "
                f"{number_text(ends[0])} – {number_text(ends[1])}",
            }
        )
    marks = [one + _first(low, high) for one in ticks(high - _first(low, high), 4)]
    return WhiskerPanel(
        name,
        unit,
        WIDTH,
        ROW * len(shown) + 30,
        [(scale(one), number_text(one)) for one in marks if low <= one <= high],
        drawn,
        len(rows) - len(shown),
    )


def _near_zero(values: list[float]) -> bool:
    """Whether a scale from zero wastes little room."""
    low, high = min(values), max(values)
    return low <= 0 <= high or min(abs(low), abs(high)) < 2 * (high - low)


def _first(low: float, high: float) -> float:
    """A round number at or above ``low`` for the ticks to begin with."""
    if low <= 0 <= high and low == 0:
        return 0.0
    step = ticks(high - low, 4)[1] if len(ticks(high - low, 4)) > 1 else 1.0
    return float(f"{math.ceil(low / step) * step:.6g}")
