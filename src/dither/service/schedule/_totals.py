"""The total of a running count: the sum of numbers that were released, each once."""

from __future__ import annotations

import json
import math
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from dither.errors import LedgerError
from dither.query._running import total_width
from dither.service.schedule._asking import asked, earlier, stored, token_of
from dither.service.schedule._periods import TreeNode, halves, parts_of
from dither.service.schedule._settings import DeclaredSchedule

if TYPE_CHECKING:
    import polars as pl

    from dither.session._session import Session

__all__ = ["total_of"]

Content = Mapping[str, Any]


def total_of(
    session: Session, schedule: DeclaredSchedule, number: int
) -> tuple[pl.DataFrame, list[Content]]:
    """The total of the first blocks, with its interval, and the releases that it is the sum of.

    Parameters
    ----------
    session : Session
    schedule : DeclaredSchedule
        A running count.
    number : int
        So many blocks.

    Raises
    ------
    LedgerError
        A part was not released, or under another question, price or limits.
    """
    import polars as pl

    found = [part for node in parts_of(number) for part in _parts(session, schedule, node)]
    value = sum(int(content["columns"][0]["values"][0]) for _, content in found)
    question = asked(session, schedule, found[-1][0]).question
    half = total_width(question, schedule.each, len(found), schedule.confidence)
    name = str(found[-1][1]["outputs"][0])
    frame = pl.DataFrame(
        {
            name: [value],
            f"{name}_low": [math.floor(value - half)],
            f"{name}_high": [math.ceil(value + half)],
        },
        schema=dict.fromkeys((name, f"{name}_low", f"{name}_high"), pl.Int64),
    )
    return frame, [content for _, content in found]


def _parts(
    session: Session, schedule: DeclaredSchedule, node: TreeNode
) -> list[tuple[TreeNode, Content]]:
    """A dyadic number; where it was never released, its halves."""
    entry = earlier(session, token_of(schedule, node))
    content = None if entry is None else stored(session, entry)
    if content is not None:
        _check_same(session, schedule, node, content)
        return [(node, content)]
    smaller = halves(node)
    if not smaller:
        raise LedgerError(
            f"schedule.{schedule.name}: {schedule.periods.label(node.low)} was not released, so "
            "that this total is not known"
        )
    return [part for half in smaller for part in _parts(session, schedule, half)]


def _check_same(
    session: Session, schedule: DeclaredSchedule, node: TreeNode, content: Content
) -> None:
    request = asked(session, schedule, node).request
    body = content["certificate"]
    new = {
        "question": request.question,
        "requested": {n: request.requested[n] for n in ("epsilon", "delta")},
        "measurements": list(request.record().measurements),
    }
    old = {
        "question": body["question"],
        "requested": {n: body["requested"][n] for n in ("epsilon", "delta")},
        "measurements": body["measurements"],
    }
    if json.loads(json.dumps(new)) != old:
        raise LedgerError(
            f"schedule.{schedule.name} was changed since it began: its question, price, horizon or "
            "limits are others, and numbers before and after do not add up; give the new one "
            "another name"
        )
