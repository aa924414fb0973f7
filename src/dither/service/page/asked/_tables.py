"""Answers that are no table by themselves, as tables that people read: each value by its interval.

What a program gets as `NAME`, `NAME_low` and `NAME_high` (`dither.service.publish`) stands here in
one place, under words of the page.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from decimal import Decimal
from typing import TYPE_CHECKING, Any

from dither._format import display_text, number_text, percent

if TYPE_CHECKING:
    import polars as pl

    from dither.inference.engine._result import PrivateEstimate, PrivateTest

__all__ = ["ends_of", "read_tables", "remarks_of"]

MOST_ROWS = 500
"""Rows that a page shows; files have all."""

MOST_SYNTHETIC = 20
"""Rows of a preview: one cannot tell more from them than what they look like."""

COUNTED = {
    "marginals": ("count",),
    "hierarchy": ("count", "estimate"),
    "ranges": ("estimate", "below"),
    "comparison": ("distance",),
    "model": ("coefficient",),
}
"""By kind of answer: its last columns, each with two that hold the ends of its interval."""

FIRST = {"model": ("term",), "comparison": ("columns",)}
"""Names of first columns that are the library's own, and no column's."""


def ends_of(text: str) -> dict[str, str]:
    """A value and the ends of its interval, of a text that says both.

    Examples
    --------
    >>> ends_of("49.5 ± 1.8"), ends_of("89.1 [86.9, 91.1]")
    ({'text': '49.5', 'ends': '47.7 – 51.3'}, {'text': '89.1', 'ends': '86.9 – 91.1'})
    """
    if " ± " in text:
        shown, half = text.split(" ± ")
        found = [_moved(shown, half, sign) for sign in (-1, 1)]
        return {"text": _signed(shown), "ends": " – ".join(map(_signed, found))}
    shown, _, ends = text.partition(" [")
    found = ends.rstrip("]").split(", ")
    return {"text": _signed(shown), "ends": " – ".join(map(_signed, found))}


def _signed(text: str) -> str:
    """With the sign that is as wide as a digit."""
    return f"−{text[1:]}" if text.startswith("-") else text


def _moved(value: str, half: str, sign: int) -> str:
    """An end of an interval whose middle and half-width are texts of as many decimals."""
    found = Decimal(value.replace(",", "")) + sign * Decimal(half.replace(",", ""))
    return f"{found:,f}"


def read_tables(result: Any) -> list[dict[str, Any]]:
    """The tables of an answer.

    Returns
    -------
    list of dict
        ``name``, ``heads`` (each its ``name``, or the ``word`` that the page has for it, and
        whether it is a ``number`` or has ``ends``), ``rows`` of cells, and how many ``more`` there
        are.
    """
    from dither.inference.engine._result import PrivateEstimate, PrivateTest

    if isinstance(result, PrivateEstimate):
        return [_estimates(result)]
    if isinstance(result, PrivateTest):
        return [_test(result)]
    from dither.service.publish._forms import made_of

    made = made_of(result)
    kind = made.form["kind"]
    names = _names(result, kind, len(made.tables))
    if kind == "synthetic":
        (frame,) = made.tables.values()
        return [_framed("", frame.drop("synthetic"), (), (), MOST_SYNTHETIC)]
    return [
        _framed(name, frame, FIRST.get(kind, ()), COUNTED.get(kind, ()), MOST_ROWS)
        for name, frame in zip(names, made.tables.values(), strict=True)
    ]


def _names(result: Any, kind: str, number: int) -> list[str]:
    if kind == "marginals" and number > 1:
        return [" × ".join(names) for names in result.frames]
    if kind == "hierarchy":
        return list(result.levels)
    return [""] * number


def _estimates(found: PrivateEstimate) -> dict[str, Any]:
    import numpy as np

    from dither.inference.engine._result import interval_shown, p_text

    errors = found.errors
    ends = errors.interval(0.95)
    draws = None if errors.exact else found.draws
    pvalues = np.reshape(found.pvalue, -1)
    rows = []
    for j, name in enumerate(found.names or ("",)):
        parts = (errors.se[j], errors.se_sampling[j], errors.se_privacy[j])
        rows.append(
            [
                *([] if found.names is None else [{"text": name}]),
                ends_of(interval_shown(found.values[j], *ends[j])),
                *({"text": _number(float(one))} for one in parts),
                {"text": p_text(float(pvalues[j]), draws).removeprefix("= ")},
            ]
        )
    words = ("standard_error", "of_sampling", "of_noise", "pvalue")
    # One number alone is what the question says above it.
    heads: list[dict[str, Any]] = [] if found.names is None else [{"word": "quantity"}]
    heads.append({"word": "estimate", "ends": True})
    heads += [{"word": word, "number": True} for word in words]
    return _table("", heads, rows[:MOST_ROWS], max(len(rows) - MOST_ROWS, 0))


def _test(found: PrivateTest) -> dict[str, Any]:
    from dither.inference.engine._result import p_text

    draws = None if found.simulated is None else found.simulated.size
    row = [
        {"text": found.null},
        {"text": number_text(found.statistic)},
        {"text": p_text(found.pvalue, draws).removeprefix("= ")},
        {"text": percent(found.noise_share, 0)},
    ]
    words = ("statistic", "pvalue", "noise_share")
    heads: list[dict[str, Any]] = [{"word": "hypothesis"}]
    return _table("", heads + [{"word": word, "number": True} for word in words], [row], 0)


def _framed(
    name: str, frame: pl.DataFrame, first: Sequence[str], counted: Sequence[str], most: int
) -> dict[str, Any]:
    """A frame whose last columns are values, each followed by two ends."""
    from dither.inference.engine._result import interval_shown

    keys = frame.width - 3 * len(counted)
    heads: list[dict[str, Any]] = []
    for at, column in enumerate(frame.columns[:keys]):
        word = {"word": column} if column in first else {"name": column}
        heads.append(word | {"number": frame.to_series(at).dtype.is_numeric()})
    heads += [{"word": word, "ends": True} for word in counted]
    rows = []
    for values in frame.head(most).iter_rows():
        counts = [map(float, values[at : at + 3]) for at in range(keys, frame.width, 3)]
        row = [{"text": _cell(value)} for value in values[:keys]]
        rows.append(row + [ends_of(interval_shown(*count)) for count in counts])
    return _table(name, heads, rows, max(frame.height - most, 0))


def _table(name: str, heads: Any, rows: Any, more: int) -> dict[str, Any]:
    plain = {"word": "", "name": "", "number": False, "ends": False}
    return {"name": name, "heads": [plain | one for one in heads], "rows": rows, "more": more}


def _number(value: float) -> str:
    return "–" if math.isnan(value) else _signed(number_text(value, 3))


def _cell(value: Any) -> str:
    if isinstance(value, float):
        return _signed(f"{value:,.6g}")
    if isinstance(value, int) and not isinstance(value, bool):
        return _signed(f"{value:,}")
    return display_text(value)


def remarks_of(result: Any) -> list[str]:
    """What an inference's numbers rest on, and what speaks against them; of others nothing."""
    from dither.inference.engine._result import PrivateEstimate, PrivateTest

    if not isinstance(result, PrivateEstimate | PrivateTest):
        return []
    found = [f"Assumes: {'; '.join(result.assumptions)}."] if result.assumptions else []
    if isinstance(result, PrivateEstimate):
        told = [line for line in result._lines() if "noise makes" in line]
        found = [f"{result._counted(result.rows)}.", *told, *found]
    return [*found, *(f"Note: {one}" for one in result.notes)]
