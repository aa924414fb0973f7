"""Patterns of text, as the matchers of engines take them.

An engine whose matcher goes back and tries again, as Java's does, can be made to run for ever by a
text that somebody chose. ``one_pass`` gives such an engine a pattern that it cannot go back in, or
only by a constant number of steps: any pattern of LIKE, and regular expressions that are the like
of one or have few ways to match. Any other runs only where the matcher is linear, as RE2 is.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from math import inf, prod

from dither.errors import QueryError
from dither.plan.functions._signature import Option, Signature, condition, quoted
from dither.plan.functions.patterns import (
    EVERY,
    GAP,
    Edge,
    Either,
    Letter,
    Pattern,
    Piece,
    Ranges,
    Repeat,
    Sequence_,
    of_like,
    of_regexp,
)

__all__ = ["LIKE", "REGEXP", "in_python", "one_pass", "pieces", "spelled", "ways"]

MOST_WAYS = 10_000
"""Ways to match that a matcher may try from one place: a constant times the text in all."""


def ways(pattern: Pattern) -> float:
    """How many ways to match a matcher can try from one place; infinity where a text has a say.

    Examples
    --------
    >>> ways(of_regexp("[a-c]{1,3}x")), ways(of_regexp("(?:a|b){2}")), ways(of_regexp("a+"))
    (3.0, 4.0, inf)
    """
    match pattern:
        case Letter() | Edge():
            return 1.0
        case Sequence_(parts=parts):
            return prod(map(ways, parts))
        case Either(parts=parts):
            return float(sum(map(ways, parts)))
        case Repeat(part=part, least=least, most=most):
            if most is None:
                return inf
            one = ways(part)
            # Beyond the limit it no longer matters by how much.
            return one**least if least == most and one == 1 else _sum_of_powers(one, least, most)


def _sum_of_powers(one: float, least: int, most: int) -> float:
    total = 0.0
    for times in range(least, most + 1):
        total += inf if one > 1 and times > 40 else one**times
    return total


def one_pass(pattern: Pattern) -> str | None:
    """A pattern for a matcher that goes back, as Java's: it takes time in proportion to the text.

    Every run of letters after a gap stands in a group that is not entered again (``(?>``), with the
    gap before it, which takes as little as it can. A matcher tries each place of the text once for
    each run. ``None`` where there is no such form.
    """
    found = pieces(pattern)
    syntax = {"start": r"\A", "end": r"\z", "point": r"\x{{{:x}}}", "every": r"[\s\S]"}
    if found is None:
        return spelled(pattern, **syntax) if ways(pattern) <= MOST_WAYS else None
    starts, runs, ends = found
    if not starts:
        runs = [(), *runs]
    texts = [spelled(Sequence_(tuple(map(Letter, run))), **syntax) for run in runs]
    last = r"\z" if ends else ""
    if len(texts) == 1:
        return rf"\A{texts[0]}{last}"
    inner = "".join(rf"(?>[\s\S]*?{text})" for text in texts[1:-1])
    return rf"\A{texts[0]}{inner}(?>[\s\S]*?{texts[-1]}{last})"


def pieces(pattern: Pattern) -> tuple[bool, list[Piece], bool] | None:
    """A pattern as runs of classes with gaps of any text between them, where it is no more.

    Also whether it begins at the beginning of the text, and ends at its end. Since runs have a
    fixed length, each is best taken where it is found first: what follows has most left. Only the
    last one, where it is tied to the end, is taken there.

    Examples
    --------
    >>> pieces(of_regexp("a+")), pieces(of_regexp("^[0-1]{2}"))
    (None, (True, [(((48, 49),), ((48, 49),))], False))
    """
    parts = pattern.parts if isinstance(pattern, Sequence_) else (pattern,)
    starts = bool(parts) and parts[0] == Edge(end=False)
    ends = len(parts) > starts and parts[-1] == Edge(end=True)
    found: list[list[Ranges]] = [[]]
    for part in parts[starts : len(parts) - ends]:
        if part == GAP:
            found.append([])
            continue
        fixed = isinstance(part, Repeat) and part.least == part.most
        one, times = (part.part, part.least) if isinstance(part, Repeat) and fixed else (part, 1)
        if not isinstance(one, Letter):
            return None
        found[-1] += [one.ranges] * times
    return starts, [tuple(run) for run in found], ends


def spelled(pattern: Pattern, *, start: str, end: str, point: str, every: str) -> str:
    """A pattern as text for an engine, in groups that capture nothing.

    Parameters
    ----------
    pattern : Pattern
    start, end : str
        The beginning and the end of the text.
    point : str
        A format for a code point that is not a letter or digit of ASCII, of its number.
    every : str
        Any code point.
    """

    def one(code: int) -> str:
        character = chr(code)
        plain = character.isascii() and character.isalnum()
        return character if plain else point.format(code)

    def letter(ranges: Ranges) -> str:
        if ranges == EVERY:
            return every
        if len(ranges) == 1 and ranges[0][0] == ranges[0][1]:
            return one(ranges[0][0])
        listed = (one(a) if a == b else f"{one(a)}-{one(b)}" for a, b in ranges)
        return f"[{''.join(listed)}]"

    def times(least: int, most: int | None) -> str:
        common = {(0, None): "*", (1, None): "+", (0, 1): "?"}
        upper = "" if most is None else str(most)
        return common.get((least, most)) or f"{{{least},{upper}}}"

    def text(node: Pattern) -> str:
        match node:
            case Letter(ranges=ranges):
                return letter(ranges)
            case Edge(end=last):
                return end if last else start
            case Repeat(part=part, least=least, most=most):
                inner = text(part)
                return (
                    f"{inner if isinstance(part, Letter) else f'(?:{inner})'}{times(least, most)}"
                )
            case Sequence_(parts=parts):
                return "".join(
                    f"(?:{text(p)})" if isinstance(p, Either) else text(p) for p in parts
                )
            case Either(parts=parts):
                return "|".join(map(text, parts))

    return text(pattern)


def in_python(pattern: Pattern) -> re.Pattern[str]:
    """A pattern for Python, which tries again too: for the short texts of declarations."""
    shown = spelled(pattern, start=r"\A", end=r"\Z", point="\\U{:08x}", every=r"[\s\S]")
    return re.compile(shown)


def _like(value: str, pattern: str) -> bool:
    return in_python(of_like(pattern)).search(value) is not None


def _regexp(value: str, pattern: str) -> bool:
    return in_python(of_regexp(pattern)).search(value) is not None


def _like_words(operands: Sequence[str], pattern: str) -> str:
    escape = " ESCAPE '\\'" if "\\" in pattern else ""
    return f"{operands[0]} LIKE {quoted(pattern)}{escape}"


def _regexp_words(operands: Sequence[str], pattern: str) -> str:
    return f"REGEXP_MATCHES({operands[0]}, {quoted(pattern)})"


def _pattern_check(read: Callable[[str], Pattern]) -> Callable[[str, tuple[Option, ...]], None]:
    def check(name: str, options: tuple[Option, ...]) -> None:
        if len(options) != 1 or not isinstance(options[0], str):
            raise QueryError(f"{name.upper()} takes its pattern as a constant text")
        read(options[0])

    return check


LIKE = Signature(
    "like", ("text",), condition, _like, _like_words, _pattern_check(of_like), test=True
)
REGEXP = Signature(
    "regular expression", ("text",), condition, _regexp, _regexp_words, _pattern_check(of_regexp)
)
