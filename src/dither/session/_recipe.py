"""How a question was asked, as plain data: the calls of a session that make it, in their order.

A service is sent this, and makes the same question of its own session. Nothing but what a class
names in ``_asks`` can be called, and nothing but numbers, texts, dates, and lists and mappings of
these are arguments: no code travels, and no object of the caller's.
"""

from __future__ import annotations

import datetime as dt
import json
import math
import re
import sys
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from decimal import Decimal
from fractions import Fraction
from typing import Any

from dither import _checks as check
from dither.errors import ArgumentError, DitherError, nearest
from dither.session._factories import factory

__all__ = ["QuestionRecipe", "RecipeCall", "from_plain", "to_plain"]

_HASH = re.compile("[0-9a-f]{64}")

MOST_CALLS = 64
"""Of one question. Forty filters and joins are the most that rows may have."""

MOST_NESTED = 24
"""Lists in lists, and rows joined to rows: each of eight linked tables takes two, and its rules
four."""


@dataclass(frozen=True, slots=True)
class RecipeCall:
    """One method's name, with its arguments."""

    name: str
    args: tuple[Any, ...] = ()
    named: tuple[tuple[str, Any], ...] = ()


@dataclass(frozen=True, slots=True)
class QuestionRecipe:
    """The calls that make a question; the first is of the session.

    Examples
    --------
    >>> first = RecipeCall("table", ("visits",))
    >>> asked = QuestionRecipe((first, RecipeCall("filter", ("age >= 40",))))
    >>> asked.to_list()
    [['table', ['visits'], {}], ['filter', ['age >= 40'], {}]]
    >>> QuestionRecipe.from_list(asked.to_list()) == asked
    True
    """

    calls: tuple[RecipeCall, ...]

    def then(self, name: str, args: Sequence[Any], named: Mapping[str, Any]) -> QuestionRecipe:
        """This, and one call more."""
        return QuestionRecipe((*self.calls, RecipeCall(name, tuple(args), tuple(named.items()))))

    def to_list(self) -> list[Any]:
        """As plain data that JSON can write.

        Raises
        ------
        ArgumentError
            An argument cannot be sent.
        """
        return [
            [call.name, to_plain(list(call.args)), {name: to_plain(v) for name, v in call.named}]
            for call in self.calls
        ]

    @classmethod
    def from_list(cls, data: Any, depth: int = 0) -> QuestionRecipe:
        """Read what `to_list` wrote, which may be anybody's.

        Raises
        ------
        ArgumentError
            It is something else.
        """
        if not isinstance(data, list) or not 1 <= len(data) <= MOST_CALLS:
            raise ArgumentError(f"ask must be a list of 1 to {MOST_CALLS} calls")
        calls = []
        for one in data:
            match one:
                case [str(name), list(args), dict(named)]:
                    read = tuple(from_plain(arg, depth) for arg in args)
                    given = tuple((n, from_plain(v, depth)) for n, v in named.items())
                    calls.append(RecipeCall(name, read, given))
                case _:
                    raise ArgumentError(
                        'ask must hold calls such as ["table", ["visits"], {}]: a name, a list of '
                        "arguments, and those that have names"
                    )
        return cls(tuple(calls))

    def made(self, session: Any) -> Any:
        """Make the question.

        Parameters
        ----------
        session : Session

        Raises
        ------
        DitherError
            As the calls themselves, or where one is not to be called.
        """
        found = session
        for call in self.calls:
            known = getattr(type(found), "_asks", ())
            if call.name not in known:
                what = type(found).__name__
                raise ArgumentError(
                    f"ask: {what} has no step of that name" + nearest(call.name, known)
                )
            args = [_of(session, arg) for arg in call.args]
            named = {name: _of(session, arg) for name, arg in call.named}
            try:
                found = getattr(found, call.name)(*args, **named)
            except DitherError:
                raise
            except TypeError as error:
                raise ArgumentError(f"ask: {_signature(error, call.name)}") from None
            except (ArithmeticError, AttributeError, LookupError, RecursionError, ValueError):
                # Methods look at numbers and texts, and not at all that others may send.
                raise ArgumentError(f"ask: {call.name} does not take such arguments") from None
        return found


def _signature(error: TypeError, name: str) -> str:
    # A wrong argument's name is its caller's; what a deeper fault says might not be.
    text = str(error)
    return text if f"{name}()" in text else f"{name} does not take such arguments"


@dataclass(frozen=True, slots=True)
class AnswerReference:
    """An answer that the ledger has: the request, and the hash of the charge's entry."""

    request: str
    entry: str

    def found(self, session: Any) -> Any:
        """The answer, as the ledger has it.

        Raises
        ------
        ArgumentError
            There is none that the session's asker may see.
        """
        opened = session._opened
        for promise in opened.promises:
            for entry, answer in opened.published(promise, self.request):
                if entry.hash == self.entry:
                    return factory("answer")(json.loads(answer))
        raise ArgumentError(
            "the ledger has no such answer that you may see: name one that you were given"
        )


def _of(session: Any, value: Any) -> Any:
    """An argument as methods take it: rows of the same session in place of how they are made."""
    if isinstance(value, QuestionRecipe):
        return value.made(session)
    if isinstance(value, AnswerReference):
        return value.found(session)
    if isinstance(value, list):
        return [_of(session, one) for one in value]
    return value


def _fraction(text: str) -> Fraction:
    # A short text with a large exponent is a number that fills the memory.
    return check.exact("number", text)


def _decimal(text: str) -> Decimal:
    found = Decimal(text)
    check.exact("number", found)
    return found


_TAGS: Mapping[str, Callable[[str], Any]] = {
    "number": _fraction,
    "decimal": _decimal,
    "date": dt.date.fromisoformat,
    "time": dt.datetime.fromisoformat,
}


def to_plain(value: Any) -> Any:
    """An argument as plain data that JSON can write.

    Raises
    ------
    ArgumentError
        It is of a kind that cannot be sent.
    """
    if value is None or isinstance(value, bool | str | int):
        return value
    if isinstance(value, float):
        if not math.isfinite(value):
            raise ArgumentError("a number that is not finite cannot be sent")
        return value
    if isinstance(value, Fraction):
        return {"number": str(value)}
    if isinstance(value, Decimal):
        return {"decimal": str(value)}
    if isinstance(value, dt.datetime):
        return {"time": value.isoformat()}
    if isinstance(value, dt.date):
        return {"date": value.isoformat()}
    if isinstance(value, tuple):
        return {"tuple": [to_plain(one) for one in value]}
    if isinstance(value, list | range):
        return [to_plain(one) for one in value]
    if isinstance(value, Mapping):
        return {"mapping": [[to_plain(k), to_plain(v)] for k, v in value.items()]}
    if isinstance(value, QuestionRecipe):
        return {"rows": value.to_list()}
    polars = sys.modules.get("polars")  # whoever has a frame has loaded it
    if polars is not None and isinstance(value, polars.DataFrame):
        from dither.session._frames import frame_to

        return {"frame": frame_to(value)}
    content = getattr(value, "_content", None)
    if isinstance(content, Mapping) and "certificate" in content:
        named = content["certificate"]
        return {"answer": [named["request"], named["ledger"]["hash"]]}
    if type(value).__module__ == "numpy" and hasattr(value, "tolist"):
        return to_plain(value.tolist())
    said = getattr(value, "said", None)
    if said:
        return {"aggregate": list(said)}
    edges = getattr(value, "edges", None)
    if edges is not None and isinstance(getattr(value, "operand", None), str):
        return {"bins": [value.operand, [str(edge) for edge in edges]]}
    raise ArgumentError(
        f"an argument of type {type(value).__name__} cannot be sent to a service: give numbers, "
        "texts, dates, or lists and mappings of these"
    )


def from_plain(value: Any, depth: int = 0) -> Any:
    """Read what `to_plain` wrote, which may be anybody's.

    Raises
    ------
    ArgumentError
        It is something else.
    """
    if depth > MOST_NESTED:
        raise ArgumentError("ask nests too deep")
    if isinstance(value, list):
        return [from_plain(one, depth + 1) for one in value]
    if not isinstance(value, dict):
        return value
    try:
        ((tag, held),) = value.items()
        return _tagged(tag, held, depth + 1)
    except ArgumentError:
        raise
    except (ArithmeticError, AttributeError, LookupError, TypeError, ValueError):
        raise ArgumentError(
            "ask holds an argument that cannot be read: write numbers, texts and lists as they "
            f"are, and others as an object with one of {', '.join(sorted(_KNOWN))}"
        ) from None


_KNOWN = (*_TAGS, "tuple", "mapping", "rows", "aggregate", "bins", "answer", "frame")


def _tagged(tag: str, held: Any, depth: int) -> Any:
    if tag in _TAGS:
        if not isinstance(held, str) or len(held) > 400:
            raise TypeError
        return _TAGS[tag](held)
    if tag == "tuple":
        return tuple(from_plain(held, depth))
    if tag == "mapping":
        return {_hashable(from_plain(k, depth)): from_plain(v, depth) for k, v in held}
    if tag == "rows":
        return QuestionRecipe.from_list(held, depth)
    if tag == "answer":
        request, entry = held
        if not (_HASH.fullmatch(request) and _HASH.fullmatch(entry)):
            raise ValueError
        return AnswerReference(request, entry)
    if tag == "frame":
        from dither.session._frames import frame_from

        return frame_from(held)
    if tag == "aggregate":
        return factory("aggregate")(held)
    if tag == "bins":
        operand, edges = held
        return factory("bins")(operand, edges)
    raise ValueError


def _hashable(key: Any) -> Any:
    hash(key)
    return key
