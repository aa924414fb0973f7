"""Statistics from a short TOML document; the shipped example is ``census.toml`` beside this file.

::

    title = "A fictional census block"
    people = 7                        # or a row without where that has a count

    [attributes]
    age = [0, 125]                    # whole numbers from to
    sex = ["female", "male"]          # a list of values

    [rounding]                        # steps that were rounded to; without, values are exact
    mean = 0.1
    median = 0.5
    how = "nearest"                   # or half-up, half-even, down, up

    [suppression]
    mark = "(D)"
    fewer_than = 3                    # zero included

    [[rules]]
    name = "note"
    when = { status = "married" }
    then = { age = { at_least = 15 } }

    [[statistics]]
    name = "2B"
    where = { sex = "male" }
    count = 3                         # or a mark, or [least, most]
    median = { age = 30 }             # or a mark
    mean = { age = 44 }               # or a mark
    sum = { age = [100, 160] }        # a number or [least, most]

Conditions compare a number by ``at_least``, ``at_most``, ``above``, ``below``, or take a value or a
list of values. Numbers are read as the decimals that they are written as.
"""

from __future__ import annotations

import math
import tomllib
from collections.abc import Callable, Iterator, Mapping
from decimal import Decimal
from fractions import Fraction
from importlib import resources
from pathlib import Path
from typing import Any

from dither._checks import exact, whole
from dither.errors import ArgumentError, nearest
from dither.lab.attack.reconstruction._statistics import (
    Condition,
    IntegerAttribute,
    PublishedRow,
    Rule,
    Statistics,
)

__all__ = ["census", "read_statistics"]

_HALF = Fraction(1, 2)


def census(*, note: bool = False) -> Statistics:
    """The fictional census block of Garfinkel, Abowd and Martindale (2018), table 1.

    Parameters
    ----------
    note : bool
        Whether to add the note that was printed below it: married persons are 15 or over.

    Examples
    --------
    >>> census().people, len(census().rows), census(note=True).rules[0].about
    (7, 14, 'married persons are 15 or over')
    """
    text = (
        resources.files("dither.lab.attack.reconstruction")
        .joinpath("census.toml")
        .read_text(encoding="utf-8")
    )
    found = read_statistics(text)
    return found if note else found.without("note")


def read_statistics(source: str | Path | Mapping[str, Any] | Statistics) -> Statistics:
    """Read a document as the head of this module shows it.

    Parameters
    ----------
    source : str, Path or mapping
        A path, the text itself (with line ends in it), or what TOML would give.

    Raises
    ------
    ArgumentError
        Naming the part that cannot be read, and what was expected.

    Examples
    --------
    >>> table = read_statistics('''
    ... attributes = { age = [0, 125] }
    ... statistics = [{ name = "2B", count = 3, median = { age = 30 }, mean = { age = 44 } }]
    ... ''')
    >>> table.people, table.space
    (3, 341376)
    """
    if isinstance(source, Statistics):
        return source
    if not isinstance(source, Mapping):
        source = _parsed(source)
    return _DocumentReader(source).statistics()


def _parsed(source: str | Path) -> Mapping[str, Any]:
    text = source if isinstance(source, str) and "\n" in source else None
    try:
        if text is None:
            text = Path(source).read_text(encoding="utf-8")
        return tomllib.loads(text, parse_float=Decimal)
    except (OSError, UnicodeDecodeError) as error:
        raise ArgumentError(
            "statistics must be a readable file, the text of one, or a mapping: "
            + (getattr(error, "strerror", None) or "it is not text")
        ) from error
    except tomllib.TOMLDecodeError as error:
        raise ArgumentError(f"statistics must be TOML: {error}") from error


class _DocumentReader:
    def __init__(self, body: Mapping[str, Any]) -> None:
        _known(body, "statistics", _TOP)
        self.body = body
        self.attributes = tuple(_attribute(k, v) for k, v in _part(body, "attributes").items())
        if not self.attributes:
            raise ArgumentError("attributes must name at least one, such as age = [0, 125]")
        self.places = {a.name: i for i, a in enumerate(self.attributes)}
        rounding = _part(body, "rounding")
        _known(rounding, "rounding", ("mean", "median", "how"))
        how = rounding.get("how", "nearest")
        if how not in _HOW:
            raise ArgumentError(f"rounding.how: unknown {how!r}{nearest(str(how), _HOW)}")
        self.how = _HOW[how]
        self.steps = {
            k: None if k not in rounding else exact(f"rounding.{k}", rounding[k])
            for k in ("mean", "median")
        }
        if any(s is not None and s <= 0 for s in self.steps.values()):
            raise ArgumentError("rounding steps must be above 0, such as mean = 0.1")
        suppression = _part(body, "suppression")
        _known(suppression, "suppression", ("mark", "fewer_than"))
        self.mark = suppression.get("mark")
        self.threshold = whole("suppression.fewer_than", suppression.get("fewer_than", 1), 1)

    def statistics(self) -> Statistics:
        listed = self.body.get("statistics", [])
        if not isinstance(listed, list) or not all(isinstance(r, Mapping) for r in listed):
            raise ArgumentError("statistics must be a list of tables: [[statistics]]")
        people = self.body.get("people")
        if people is None:
            totals = [
                r["count"] for r in listed if not r.get("where") and _is_whole(r.get("count"))
            ]
            if not totals:
                raise ArgumentError(
                    "people must be given, or a statistic without where that has a count"
                )
            people = totals[0]
        size = whole("people", people, 1)
        rows = tuple(self._row(r, f"statistics[{i}]", size) for i, r in enumerate(listed))
        rules = tuple(
            self._rule(r, f"rules[{i}]") for i, r in enumerate(self.body.get("rules", []))
        )
        names = [*(r.name for r in rows), *(r.name for r in rules)]
        twice = next((n for n in names if names.count(n) > 1), None)
        if twice is not None:
            raise ArgumentError(f"two statistics or rules are called {twice!r}; names must differ")
        title = str(self.body.get("title", "published statistics"))
        return Statistics(title, size, self.attributes, rows, rules)

    def _row(self, body: Mapping[str, Any], at: str, people: int) -> PublishedRow:
        _known(body, at, _ROW)
        name = str(body.get("name", at))
        where = self._where(body.get("where", {}), f"{name}: where")
        count = (0, people) if where else (people, people)
        suppressed = False
        if "count" in body:
            given = body["count"]
            if self._marked(given):
                count, suppressed = (0, min(people, self.threshold - 1)), True
            elif isinstance(given, list):
                low, high = _pair(given, f"{name}: count")
                count = (max(0, math.ceil(low)), min(people, math.floor(high)))
            else:
                count = (whole(f"{name}: count", given, 0),) * 2
        doubled = tuple(self._rounded(body, name, count, "median", 2))
        total = (*self._rounded(body, name, count, "mean", count[0]), *self._sums(body, name))
        return PublishedRow(
            name, str(body.get("about", "")), where, count, doubled, total, suppressed
        )

    def _rounded(
        self, body: Mapping[str, Any], name: str, count: tuple[int, int], what: str, times: int
    ) -> Iterator[tuple[int, int, int]]:
        """Medians or means, as the whole numbers that so many times their value can stand for."""
        for place, value, at in self._numbers(body, name, what):
            if count[0] != count[1] or count[0] < 1:
                raise ArgumentError(
                    f"{at} needs a count of at least 1 in the same row; else give a sum"
                )
            yield (place, *_wholes(exact(at, value), self.steps[what], self.how, times))

    def _sums(self, body: Mapping[str, Any], name: str) -> Iterator[tuple[int, int, int]]:
        for place, value, at in self._numbers(body, name, "sum"):
            low, high = _pair(value if isinstance(value, list) else [value] * 2, at)
            yield (place, math.ceil(low), math.floor(high))

    def _numbers(
        self, body: Mapping[str, Any], name: str, what: str
    ) -> Iterator[tuple[int, Any, str]]:
        """What was published of numbers and not withheld: the attribute, the value, and where."""
        part, at = body.get(what, {}), f"{name}: {what}"
        for attribute, value in () if self._marked(part) else _part(body, what).items():
            if not self._marked(value):
                place = self._place(attribute, at)
                if self.attributes[place].labels:
                    raise ArgumentError(f"{at}: {attribute} is not a number")
                yield place, value, at

    def _rule(self, body: Any, at: str) -> Rule:
        if not isinstance(body, Mapping):
            raise ArgumentError("rules must be a list of tables: [[rules]]")
        _known(body, at, ("name", "about", "when", "then"))
        name = str(body.get("name", at))
        then = self._where(body.get("then", {}), f"{name}: then")
        if not then:
            raise ArgumentError(f"{name}: then must say what holds, such as {{ age = {{...}} }}")
        about = str(body.get("about", ""))
        return Rule(name, about, self._where(body.get("when", {}), f"{name}: when"), then)

    def _where(self, body: Any, at: str) -> tuple[Condition, ...]:
        if not isinstance(body, Mapping):
            raise ArgumentError(f"{at} must be a table such as {{ sex = 'male' }}")
        return tuple(self._condition(name, value, at) for name, value in body.items())

    def _condition(self, name: str, value: Any, at: str) -> Condition:
        place = self._place(name, at)
        attribute = self.attributes[place]
        every = range(attribute.low, attribute.high + 1)
        if isinstance(value, Mapping):
            if attribute.labels:
                raise ArgumentError(f"{at}: {name} has a list of values, which have no order")
            _known(value, f"{at}: {name}", _TESTS)
            tests = [(_TESTS[k], exact(f"{at}: {name}.{k}", v)) for k, v in value.items()]
            return Condition(place, frozenset(v for v in every if all(t(v, x) for t, x in tests)))
        wanted = value if isinstance(value, list) else [value]
        if attribute.labels:
            for label in wanted:
                if label not in attribute.labels:
                    hint = nearest(str(label), attribute.labels)
                    raise ArgumentError(f"{at}: {name} has no value {label!r}{hint}")
            return Condition(place, frozenset(attribute.labels.index(x) for x in wanted))
        return Condition(place, frozenset(whole(f"{at}: {name}", x, every[0]) for x in wanted))

    def _place(self, name: str, at: str) -> int:
        if name not in self.places:
            raise ArgumentError(f"{at}: unknown attribute {name!r}{nearest(name, self.places)}")
        return self.places[name]

    def _marked(self, value: Any) -> bool:
        return self.mark is not None and value == self.mark


_TOP = ("title", "people", "attributes", "rounding", "suppression", "rules", "statistics")
_ROW = ("name", "about", "where", "count", "median", "mean", "sum")
_TESTS: dict[str, Callable[[int, Fraction], bool]] = {
    "at_least": lambda v, x: v >= x,
    "at_most": lambda v, x: v <= x,
    "above": lambda v, x: v > x,
    "below": lambda v, x: v < x,
}
_HOW: dict[str, Callable[[Fraction], tuple[Fraction, bool, Fraction, bool]]] = {
    # From a whole number of steps: the least and most that round to it, and if they do themselves.
    "nearest": lambda k: (k - _HALF, True, k + _HALF, True),
    "half-up": lambda k: (k - _HALF, True, k + _HALF, False),
    "half-even": lambda k: (k - _HALF, k % 2 == 0, k + _HALF, k % 2 == 0),
    "down": lambda k: (k, True, k + 1, False),
    "up": lambda k: (k - 1, False, k, True),
}


def _wholes(value: Fraction, step: Fraction | None, how: Any, times: int) -> tuple[int, int]:
    """The whole numbers w such that w/times is published as the value."""
    if step is None:
        return math.ceil(value * times), math.floor(value * times)
    low, low_in, high, high_in = how(value / step)
    least, most = low * step * times, high * step * times
    first = math.ceil(least) if low_in else math.floor(least) + 1
    last = math.floor(most) if high_in else math.ceil(most) - 1
    return first, last


def _attribute(name: str, body: Any) -> IntegerAttribute:
    if isinstance(body, list) and len(body) == 2 and all(map(_is_whole, body)):
        if body[0] > body[1]:
            raise ArgumentError(f"attributes.{name}: the first bound is above the second")
        return IntegerAttribute(name, int(body[0]), int(body[1]))
    if isinstance(body, list) and body and all(isinstance(x, str) for x in body):
        if len(set(body)) < len(body):
            raise ArgumentError(f"attributes.{name}: a value is listed twice")
        return IntegerAttribute(name, 0, len(body) - 1, tuple(body))
    raise ArgumentError(
        f"attributes.{name} must be two whole numbers, [0, 125], or a list of texts, "
        "['female', 'male']"
    )


def _known(body: Mapping[str, Any], at: str, known: Any) -> None:
    for name in body:
        if name not in known:
            raise ArgumentError(f"{at}: unknown {name!r}{nearest(str(name), known)}")


def _part(body: Mapping[str, Any], name: str) -> Mapping[str, Any]:
    part = body.get(name, {})
    if not isinstance(part, Mapping):
        raise ArgumentError(f"{name} must be a table such as {{ age = 30 }}")
    return part


def _is_whole(value: Any) -> bool:
    return isinstance(value, int) and not isinstance(value, bool)


def _pair(value: list[Any], at: str) -> tuple[Fraction, Fraction]:
    if len(value) != 2:
        raise ArgumentError(f"{at} must be a number or [least, most]")
    return exact(at, value[0]), exact(at, value[1])
