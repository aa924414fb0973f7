"""How far one unit may count in one question: ``OPTIONS (max_groups_contributed = 5)``.

It stands at the end of a query, or behind ``SELECT WITH DIFFERENTIAL_PRIVACY``, as in BigQuery. It
is taken out of the tokens before they are parsed, since no grammar of SQL has it.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from sqlglot import Token, TokenType

from dither.errors import QueryError, UnsupportedError, nearest
from dither.plan.aggregates import Query
from dither.plan.relations import base
from dither.plan.schema import Schema

__all__ = [
    "BY_BLOCK",
    "CONSISTENT",
    "GROUPS",
    "MARKS",
    "ROWS",
    "Options",
    "limited",
    "without_options",
]

GROUPS, ROWS = "max_groups_contributed", "max_rows_contributed"
CONSISTENT = "consistent"
BY_BLOCK = "by_block"
UNIT = "privacy_unit_column"

MARKS = frozenset({"OPTIONS", "DIFFERENTIAL_PRIVACY"})
"""Words without one of which a query has no options."""

Options = dict[str, Token]
"""What was written behind each name."""

_USAGE = f"write OPTIONS ({GROUPS} = 5, {ROWS} = 20)"
_PRICE = ("epsilon", "delta")


def without_options(tokens: Sequence[Token]) -> tuple[list[Token], Options]:
    """The tokens of a query, and the options that stood among them.

    Raises
    ------
    QueryError
        Where an option is unknown, given twice or has no value.
    """
    words = [token.text.upper() for token in tokens]
    left, found = list(tokens), Options()
    if words[:3] == ["SELECT", "WITH", "DIFFERENTIAL_PRIVACY"]:
        end = 3
        if words[3:5] == ["OPTIONS", "("]:
            end = _closed(tokens, 4)
            found = _options(tokens[5 : end - 1])
        left = [tokens[0], *tokens[end:]]
    start = _last(left)
    if start is not None:
        for name, value in _options(left[start + 2 : -1]).items():
            if name in found:
                raise QueryError(f"OPTIONS: {name} is given twice; give it once")
            found[name] = value
        left = left[:start]
    return left, found


def _closed(tokens: Sequence[Token], start: int) -> int:
    """The place after the bracket that closes the one at ``start``."""
    depth = 0
    for i in range(start, len(tokens)):
        depth += (tokens[i].token_type is TokenType.L_PAREN) - (
            tokens[i].token_type is TokenType.R_PAREN
        )
        if not depth:
            return i + 1
    raise QueryError(f"OPTIONS: the bracket is not closed; {_USAGE}")


def _last(tokens: Sequence[Token]) -> int | None:
    """Where a query's last words begin, if these are ``OPTIONS (name = ...)``."""
    for i in range(len(tokens) - 4, 0, -1):
        opened = tokens[i + 1].token_type is TokenType.L_PAREN
        if opened and tokens[i].text.upper() == "OPTIONS" and _ends_there(tokens, i + 1):
            named = tokens[i + 3].token_type is TokenType.EQ
            return i if named else None
    return None


def _ends_there(tokens: Sequence[Token], start: int) -> bool:
    return tokens[-1].token_type is TokenType.R_PAREN and not any(
        t.token_type is TokenType.R_PAREN for t in tokens[start:-1]
    )


def _options(tokens: Sequence[Token]) -> Options:
    found = Options()
    for i in range(0, len(tokens), 4):
        part = tokens[i : i + 4]
        written = len(part) > 2 and part[1].token_type is TokenType.EQ
        if not written or (len(part) > 3 and part[3].token_type is not TokenType.COMMA):
            raise QueryError(f"OPTIONS: {_USAGE}")
        name = part[0].text.lower()
        if name in _PRICE:
            raise UnsupportedError(
                f"OPTIONS: {name} is not written into a question, so that it can be explained and "
                f"previewed at several prices; give it to release({name}=...) or --{name}"
            )
        known = (GROUPS, ROWS, CONSISTENT, BY_BLOCK)
        if name not in (*known, UNIT):
            raise QueryError(f"OPTIONS: unknown option {name!r}" + nearest(name, known))
        if name in found:
            raise QueryError(f"OPTIONS: {name} is given twice; give it once")
        found[name] = part[2]
    return found


def limited(query: Query, options: Options, schema: Schema) -> Query:
    """The query within the limits that its options say.

    Raises
    ------
    QueryError
        Where a limit is not a whole number of at least 1, or the unit is not the policy's.
    """
    unit = options.get(UNIT)
    known = schema.table(base(query.relation).table).unit
    if unit is not None and unit.text != known:
        raise QueryError(
            f"OPTIONS: {UNIT}: the policy says who is protected"
            + ("; leave it out" if known is None else f": {known}")
        )
    limits = {name: _whole(name, options[name]) for name in (GROUPS, ROWS) if name in options}
    agree = CONSISTENT in options and _truth(CONSISTENT, options[CONSISTENT])
    return replace(
        query,
        max_groups=limits.get(GROUPS),
        max_rows=limits.get(ROWS),
        consistent=agree,
        by_block=BY_BLOCK not in options or _truth(BY_BLOCK, options[BY_BLOCK]),
    )


def _truth(name: str, token: Token) -> bool:
    word = token.text.upper()
    if word not in ("TRUE", "FALSE"):
        raise QueryError(f"OPTIONS: {name} is TRUE or FALSE")
    return word == "TRUE"


def _whole(name: str, token: Token) -> int:
    number = token.token_type is TokenType.NUMBER and token.text.isdecimal()
    if not number or len(token.text) > 12 or int(token.text) < 1:
        raise QueryError(f"OPTIONS: {name} must be a whole number of at least 1")
    return int(token.text)
