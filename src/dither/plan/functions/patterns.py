"""Patterns of text: LIKE, and regular expressions, each read as a small tree.

A pattern is a public constant that is read here, so that it means the same on every engine and no
engine's grammar has a say: a code point, a class of them, ``.``, groups, ``|``, the repetitions
``* + ? {m,n}``, ``^`` and ``$``. What regular expressions are not, such as references back and
looking ahead, is refused by name.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache

from dither.errors import QueryError, UnsupportedError
from dither.plan.functions._signature import quoted

__all__ = [
    "EVERY",
    "GAP",
    "Edge",
    "Either",
    "Letter",
    "Pattern",
    "Piece",
    "Ranges",
    "Repeat",
    "Sequence_",
    "of_like",
    "of_regexp",
]

LAST = 0x10FFFF
LONGEST_PATTERN = 1_000
MOST_REPEATS = 1_000
"""Of an atom; and of all atoms of a pattern, once repetitions are written out."""

Ranges = tuple[tuple[int, int], ...]
"""Code points from and to, sorted and apart."""

EVERY: Ranges = ((0, LAST),)


@dataclass(frozen=True, slots=True)
class Letter:
    """One code point out of some ranges."""

    ranges: Ranges


@dataclass(frozen=True, slots=True)
class Edge:
    """The beginning of the text, or its end."""

    end: bool


@dataclass(frozen=True, slots=True)
class Repeat:
    """A part so many times in a row; ``most`` is ``None`` for any number."""

    part: Pattern
    least: int
    most: int | None


@dataclass(frozen=True, slots=True)
class Sequence_:
    """Parts one after the other."""

    parts: tuple[Pattern, ...]


@dataclass(frozen=True, slots=True)
class Either:
    """One of some parts."""

    parts: tuple[Pattern, ...]


Pattern = Letter | Edge | Repeat | Sequence_ | Either

Piece = tuple[Ranges, ...]
"""A run of classes, one for each code point of what it finds."""

GAP = Repeat(Letter(EVERY), 0, None)


def _ranges(points: Sequence[tuple[int, int]]) -> Ranges:
    found: list[tuple[int, int]] = []
    for low, high in sorted(points):
        if found and low <= found[-1][1] + 1:
            found[-1] = found[-1][0], max(found[-1][1], high)
        else:
            found.append((low, high))
    return tuple(found)


def _others(ranges: Ranges) -> Ranges:
    edges = [-1, *(edge for pair in ranges for edge in pair), LAST + 1]
    gaps = zip(edges[::2], edges[1::2], strict=True)
    return tuple((low + 1, high - 1) for low, high in gaps if low + 1 < high)


def _letter(character: str) -> Letter:
    return Letter(((ord(character), ord(character)),))


# --- LIKE ---------------------------------------------------------------------------------------


@lru_cache(maxsize=256)
def of_like(pattern: str) -> Pattern:
    """A pattern of LIKE: ``%`` is any text, ``_`` one code point, and a backslash takes the next
    one for itself.

    Raises
    ------
    QueryError
        Where nothing follows a backslash, or the pattern is too long.
    """
    if len(pattern) > LONGEST_PATTERN:
        raise QueryError(f"a pattern is longer than {LONGEST_PATTERN:,} characters; shorten it")
    parts: list[Pattern] = [Edge(end=False)]
    rest = iter(pattern)
    for character in rest:
        if character == "%":
            if parts[-1] != GAP:
                parts.append(GAP)
        elif character == "_":
            parts.append(Letter(EVERY))
        else:
            if character == "\\":
                character = next(rest, "")
                if not character:
                    raise QueryError("a pattern of LIKE ends with the character that escapes")
            parts.append(_letter(character))
    return Sequence_((*parts, Edge(end=True)))


# --- regular expressions ------------------------------------------------------------------------

_DIGIT: Ranges = ((48, 57),)
_WORD: Ranges = ((48, 57), (65, 90), (95, 95), (97, 122))
_SPACE: Ranges = ((9, 10), (12, 13), (32, 32))
_CLASSES = {
    "d": _DIGIT,
    "w": _WORD,
    "s": _SPACE,
    "D": _others(_DIGIT),
    "W": _others(_WORD),
    "S": _others(_SPACE),
}
_CONTROLS = {"t": "\t", "n": "\n", "r": "\r", "f": "\f", "v": "\v"}
_LINE = _others(((10, 10),))
"""``.`` is every code point but the end of a line, as in DuckDB."""


@lru_cache(maxsize=256)
def of_regexp(pattern: str) -> Pattern:
    """A regular expression.

    Raises
    ------
    QueryError
        Where it is not one, or is too long.
    UnsupportedError
        For what regular expressions are not, and for words and flags that engines disagree on.
    """
    if len(pattern) > LONGEST_PATTERN:
        raise QueryError(f"a pattern is longer than {LONGEST_PATTERN:,} characters; shorten it")
    reader = _PatternReader(pattern)
    found = reader.either()
    if reader.at < len(pattern):
        raise reader.fault("')' closes nothing")
    if _size(found) > MOST_REPEATS:
        raise QueryError(f"a regular expression repeats more than {MOST_REPEATS:,} parts")
    return found


def _size(node: Pattern) -> int:
    match node:
        case Repeat(part=part, least=least, most=most):
            return _size(part) * max(least, most or 0, 1)
        case Sequence_(parts=parts) | Either(parts=parts):
            return sum(map(_size, parts)) + 1
    return 1


class _PatternReader:
    """Reads a regular expression from left to right."""

    def __init__(self, pattern: str) -> None:
        self.pattern = pattern
        self.at = 0
        self.depth = 0

    def fault(self, why: str) -> QueryError:
        return QueryError(f"the regular expression {quoted(self.pattern[:60])}: {why}")

    def refused(self, what: str, instead: str = "") -> UnsupportedError:
        shown = quoted(self.pattern[:60])
        advice = f"; {instead}" if instead else ""
        return UnsupportedError(f"the regular expression {shown}: {what} is not offered{advice}")

    def next(self, known: str = "") -> str:
        """The next character, taken; where it is one of the known ones, if some are given."""
        found = self.pattern[self.at : self.at + 1]
        if found and (not known or found in known):
            self.at += 1
            return found
        return ""

    def either(self) -> Pattern:
        parts = [self.sequence()]
        while self.next("|"):
            parts.append(self.sequence())
        return parts[0] if len(parts) == 1 else Either(tuple(parts))

    def sequence(self) -> Pattern:
        parts: list[Pattern] = []
        while self.at < len(self.pattern) and self.pattern[self.at] not in "|)":
            parts.append(self.repeated(self.atom()))
        return parts[0] if len(parts) == 1 else Sequence_(tuple(parts))

    def atom(self) -> Pattern:
        found = self.next()
        match found:
            case ".":
                return Letter(_LINE)
            case "^" | "$":
                return Edge(end=found == "$")
            case "[":
                return Letter(self.listed())
            case "(":
                return self.group()
            case "\\":
                return Letter(self.escaped())
            case "*" | "+" | "?" | "{":
                raise self.fault(f"{found!r} repeats nothing")
        return _letter(found)

    def group(self) -> Pattern:
        if self.next("?") and not self.next(":"):
            raise self.refused(
                "a group that begins with (? and no colon",
                "of small letters write LOWER(x), or ILIKE",
            )
        self.depth += 1
        if self.depth > 20:
            raise self.fault("groups are nested too deeply")
        found = self.either()
        if not self.next(")"):
            raise self.fault("a '(' is not closed")
        self.depth -= 1
        return found

    def repeated(self, atom: Pattern) -> Pattern:
        sign = self.next("*+?{")
        if not sign:
            return atom
        if isinstance(atom, Edge):
            raise self.fault("an edge of the text is repeated")
        least, most = {"*": (0, None), "+": (1, None), "?": (0, 1)}.get(sign) or self.times()
        # That fewer are tried first changes where a match ends, and not whether there is one.
        self.next("?")
        if self.next("*+?{"):
            raise self.refused("a repetition of a repetition; put it into parentheses, which")
        return Repeat(atom, least, most)

    def times(self) -> tuple[int, int | None]:
        found = re.compile(r"([0-9]{1,4})(?:(,)([0-9]{1,4})?)?\}").match(self.pattern, self.at)
        if not found:
            raise self.fault("write {m}, {m,} or {m,n}; a brace of the text itself as \\{")
        self.at = found.end()
        least = int(found[1])
        most = int(found[3]) if found[3] else None if found[2] else least
        if max(least, most or 0) > MOST_REPEATS or (most is not None and most < least):
            raise self.fault(f"a part is repeated up to {MOST_REPEATS:,} times, the fewer first")
        return least, most

    def escaped(self) -> Ranges:
        found = self.next()
        if found in _CLASSES:
            return _CLASSES[found]
        if found in _CONTROLS:
            found = _CONTROLS[found]
        elif not found or (found.isascii() and found.isalnum()):
            raise self.refused(
                f"the escape \\{found}", "write the characters it means, as [A-Za-z0-9]"
            )
        return ((ord(found), ord(found)),)

    def listed(self) -> Ranges:
        negated = bool(self.next("^"))
        found: list[tuple[int, int]] = []
        while True:
            first = self.next()
            if not first:
                raise self.fault("a '[' is not closed")
            if first == "]" and found:
                break
            if first == "[" or (first == "]" and not found):
                raise self.fault("write \\[ and \\] for brackets of a class")
            low = self.escaped() if first == "\\" else ((ord(first), ord(first)),)
            follows = self.pattern[self.at : self.at + 2]
            if len(follows) == 2 and follows[0] == "-" and follows[1] != "]":
                self.at += 1
                last = self.next()
                high = self.escaped() if last == "\\" else ((ord(last), ord(last)),)
                if len(low) > 1 or len(high) > 1 or low[0][0] > high[0][0]:
                    raise self.fault("a range of a class goes from a character to a later one")
                found.append((low[0][0], high[0][1]))
            else:
                found += low
        ranges = _ranges(found)
        return _others(ranges) if negated else ranges
