"""A question in one line, as people who see it in a list know it again."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from dither.session._request import PricedQuestion, Request

__all__ = ["plain", "title_of"]

LONGEST = 10_000


def title_of(question: Any, request: Request, ask: Sequence[Any]) -> str:
    """What was asked: a question in SQL as SQL, any other in words.

    The sums that an inference is read from are SQL, too, which nobody wrote.

    Parameters
    ----------
    question : Question or PricedQuestion
    request : Request
        Of it.
    ask : list
        The calls that made it: says of which rows.
    """
    note = request.note()
    written = str(note.get("query", "a question"))
    if not isinstance(question, PricedQuestion) or "tops_up" in note:
        return written[:LONGEST]
    told = getattr(question, "title", None)
    if told is None and (formula := getattr(question, "formula", None)) is not None:
        told = f"{question._noun} {formula}"
    found = written if told is None else f"{told}, in {', '.join(request.tables)}"
    rows = [args[0] for name, args, _ in ask if name == "filter" and args]
    if rows and all(isinstance(one, str) and plain(one) for one in rows):
        found += f" where {' and '.join(rows)}"
    return (found[:1].upper() + found[1:])[:LONGEST]


def plain(condition: str) -> bool:
    """Whether a condition has no comment, which would be its writer's alone."""
    return not any(mark in condition for mark in ("--", "/*", "#"))
