"""Learning one fact of a table: its question is planned, released and read."""

from __future__ import annotations

import datetime as dt
from collections.abc import Callable, Sequence
from fractions import Fraction
from typing import TYPE_CHECKING, Any

from dither import _checks as check
from dither.errors import ArgumentError
from dither.plan.lowering.lower import lower
from dither.plan.schema import Schema
from dither.query.learning._learned import LearnedBounds, LearnedKeys, LearnedLimits, learned
from dither.query.learning._learning import KINDS, FactQuestion, learning_query
from dither.session._opened import OpenedPolicy
from dither.session._recipe import QuestionRecipe

if TYPE_CHECKING:
    from dither.query._builder import TableQuery

__all__ = ["asked_fact", "learn"]


def asked_fact(
    rows: Callable[[], TableQuery],
    declared: Schema,
    opened: OpenedPolicy,
    table: str,
    column: str | None,
    *,
    kind: str | None,
    by: Sequence[str],
    origin: dt.date | None,
) -> FactQuestion:
    """See `Session.fact`; ``rows`` gives those of the table, and ``declared`` is without facts."""
    wanted = kind or ("limits" if column is None else "bounds")
    check.choice("kind", wanted, KINDS)
    if isinstance(by, str):
        raise ArgumentError(f"by must be a list of columns, such as [{by!r}]")
    keys = rows().group_by(*by).keys if by else ()
    grouped = [key.expression for key in keys]
    query = learning_query(declared, table, wanted, column, grouped, origin)
    found = FactQuestion(lower(query, declared), opened, wanted, column, by)
    named = {"kind": kind, "by": list(by), "origin": origin}
    found._recipe = QuestionRecipe(()).then("fact", (table, column), named)
    return found


def learn(
    asked: FactQuestion, epsilon: Any, delta: Any, confidence: float, token: str | None
) -> LearnedBounds | LearnedLimits | LearnedKeys:
    """See `Session.learn`."""
    share = Fraction(0) if delta is None and asked.kind != "keys" else delta
    return learned(asked.release(epsilon, share, confidence=confidence, token=token))
