"""The question of one stretch of time: what it reads is seen to be that stretch, and no more."""

from __future__ import annotations

import datetime as dt
import json
import re
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from dither.blocks._sets import BlockSet
from dither.errors import LedgerError, PolicyError, TokenError
from dither.plan.relations import base
from dither.query._running import summed
from dither.service.schedule._periods import TreeNode
from dither.service.schedule._settings import DeclaredSchedule
from dither.sql import Names, parse_where

if TYPE_CHECKING:
    from dither.ledger._entries import Entry
    from dither.query._question import Question
    from dither.session._request import Request
    from dither.session._session import Session

__all__ = ["AskedPeriod", "asked", "earlier", "released", "restricted", "stored", "token_of"]

_PLACES = re.compile(
    r"""'(?:[^']|'')*' | "(?:[^"]|"")*" | --[^\n]* | /\*.*?\*/ | :(first|next)\b""",
    re.DOTALL | re.VERBOSE,
)
"""What stands for a day, and before it what it would be no more than letters in."""


@dataclass(frozen=True, eq=False)
class AskedPeriod:
    """What is asked of a stretch of time.

    Parameters
    ----------
    question : Question
    request : Request
    """

    question: Question
    request: Request


def token_of(schedule: DeclaredSchedule, node: TreeNode) -> str:
    """The name that the ledger has for a release: one name, and one stretch of time, for good."""
    periods = schedule.periods
    low, high = periods.first(node.low), periods.first(node.high)
    until = "" if node.low == node.high else f" to {high.isoformat()}"
    return f"schedule {schedule.name} {schedule.every} {low.isoformat()}{until}"


def asked(session: Session, schedule: DeclaredSchedule, node: TreeNode) -> AskedPeriod:
    """The question of some stretches of time, at its price.

    Raises
    ------
    PolicyError
        Budgets are not of blocks that these stretches are made of, or what it would read is not
        these.
    QueryError
        As of ``session.sql``.
    """
    first, after = schedule.periods.first(node.low), schedule.periods.first(node.high + 1)
    question = restricted(session, schedule, first, after)
    opened = session._opened
    where = f"schedule.{schedule.name}"
    table = question._plan.table
    calendar = opened.calendar(table.unit_name or "")
    if calendar is None or calendar.every is None:
        raise PolicyError(
            f"{where}: what it reads has no budget for each stretch of time, so that none closes: "
            'write [budget] per = "block", and block = { column = "day", every = "day" } of the '
            "table"
        )
    low, high = calendar.block_of(first), calendar.block_of(after)
    whole = isinstance(low, int) and isinstance(high, int)
    if not whole or calendar.first(int(low)) != first or calendar.first(int(high)) != after:
        raise PolicyError(
            f"{where}.every: a {schedule.every} is not made of whole blocks, which are of one "
            f"{calendar.every} each"
        )
    wanted = BlockSet.of_range(int(low), int(high) - 1)
    read = question._plan.blocks
    if read is None or (read.ranges, read.named) != (wanted.ranges, wanted.named):
        said = "no block" if read is None else calendar.describe(read)
        raise PolicyError(
            f"{where}.sql reads {said}, and not {calendar.describe(wanted)} alone: restrict the "
            "rows of each private table by :first and :next, as in WHERE day >= :first AND day < "
            ":next"
        )
    if schedule.running:
        question = summed(question)
    delta = schedule.delta
    request = question._request(schedule.each, delta, schedule.confidence)
    return AskedPeriod(question, request)


def restricted(
    session: Session, schedule: DeclaredSchedule, first: dt.date, after: dt.date
) -> Question:
    """The schedule's question of the rows from one day on and before another; not seen to be so."""
    days = {"first": f"'{first.isoformat()}'", "next": f"'{after.isoformat()}'"}
    text = _PLACES.sub(lambda at: days.get(at[1], at[0]), schedule.sql)
    if text != schedule.sql:
        return session.sql(text)
    query = session.sql(text)._plan.query
    block = session.policy.tables[base(query.relation).table].block
    if block is None:
        raise PolicyError(
            f"schedule.{schedule.name}.sql: its table has no column of blocks, so that nothing "
            "says which rows are of a closed one"
        )
    column = '"' + block.column.replace('"', '""') + '"'
    condition = f"{column} >= '{first.isoformat()}' AND {column} < '{after.isoformat()}'"
    rows, _ = parse_where(condition, Names(query.relation, session.schema))
    return session._question(replace(query, relation=rows))


def earlier(session: Session, token: str) -> Entry | None:
    """The charge under a token of this session's asker; None where there is none."""
    for promise in session.promises:
        entry = session._opened.charged(promise, token)
        if entry is not None:
            return entry
    return None


def stored(session: Session, entry: Entry) -> dict[str, Any] | None:
    """What the ledger has as the answer of a charge; None where it has none."""
    found = session.ledger.answer(entry.number)
    content: dict[str, Any] | None = None if found is None else json.loads(found[1])
    return content


def released(session: Session, one: AskedPeriod, token: str) -> Mapping[str, Any] | None:
    """Release a question once, whatever happened before; what the ledger has as its answer.

    What was charged and never answered is run again, and not charged: nobody was told anything of
    the run that was cut off, and of two runs the ledger keeps the first answer alone. So nothing is
    handed over but what the ledger has.

    Raises
    ------
    TokenError
        It was charged, has no answer, and was another question then.
    BudgetError
        It does not fit; nothing is charged.
    EngineError
        It fails after the charge, which stays.
    """
    entry = earlier(session, token)
    if entry is not None:
        content = stored(session, entry)
        if content is not None:
            return content
        if entry.request != one.request.data.digest:
            raise TokenError(
                f"entry {entry.number} was charged and never answered, and the policy or the "
                "question is another since: it stays charged, and is given up"
            )
        one.request.resume(token)
    else:
        try:
            one.request.release(token)
        except TokenError:
            busy = True
        else:
            busy = False
        if busy:
            # No word of it is lost: whoever charged it may be at work, and the next look tells.
            raise LedgerError(
                "another process charged it at the same moment: it is looked at again"
            )
    entry = earlier(session, token)
    return None if entry is None else stored(session, entry)
