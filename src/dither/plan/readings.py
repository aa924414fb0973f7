"""How the texts of a source are written: what is NULL, how numbers and dates look.

A column that is stored as text is read as its kind in two steps. The first, here, rewrites a text
into the one form of its kind that every engine reads alike, or into NULL; the second is the
engine's own reading of that form. ``TextReading.plain`` is what the first step means, and
``engines.writer.readings`` writes it as SQL, with the same patterns.

In a pattern every repetition has an end, so that a text which it matches has one too: each engine's
matcher takes a time in proportion to the text, whatever it holds, and none can be made to fail.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from functools import lru_cache

from dither.plan.schema import Kind

__all__ = [
    "BLANKS",
    "DIRECTIVES",
    "MINUS",
    "SEPARATORS",
    "Shape",
    "TextReading",
    "directives",
    "month_numbers",
    "padded",
]

BLANKS = " \t\r\n\v\f\u00a0\u2009\u202f\ufeff"
"""What is taken away from both ends of a text: white space, and a byte order mark."""

MINUS = "\u2212"
"""The sign that typesetters write for a minus."""

SEPARATORS = {
    **{c: c for c in ",._"},
    " ": " \u00a0\u2009\u202f",
    "'": "'\u2019",
}
"""What may separate thousands, and all the characters that each stands for."""

DIGITS = 100
"""Of a number, on either side of its point."""

MOST_BLANKS = 20
"""Between a number and its sign."""

MONTHS = (
    *("january", "february", "march", "april", "may", "june", "july", "august"),
    *("september", "october", "november", "december"),
)

DIRECTIVES = {
    "d": "0?[1-9]|[12][0-9]|3[01]",
    "m": "0?[1-9]|1[0-2]",
    "Y": "[0-9]{4}",
    "y": "[0-9]{2}",
    "b": "|".join(name[:3] for name in MONTHS),
    "B": "|".join(MONTHS),
    "H": "[01]?[0-9]|2[0-3]",
    "M": "[0-5]?[0-9]",
    "S": "[0-5]?[0-9]",
}
"""What may stand after a % in a format of dates, and what each matches."""

_TWO = {"d": "0[1-9]|[12][0-9]|3[01]", "m": "0[1-9]|1[0-2]", "H": "[01][0-9]|2[0-3]"}
_TWO |= dict.fromkeys("MS", "[0-5][0-9]")
"""Those of variable width, where another digit stands beside them."""


@dataclass(frozen=True, slots=True)
class Shape:
    """A pattern of a whole text, and what is made of its groups.

    Parameters
    ----------
    pattern : str
        In the syntax that RE2, PostgreSQL, Java and Python share, without anchors.
    made : tuple of str or int
        Texts, and numbers of groups; a group that took no part is empty.
    """

    pattern: str
    made: tuple[str | int, ...]

    def of(self, text: str) -> str | None:
        """What is made of a text; ``None`` where the pattern does not match all of it."""
        found = re.fullmatch(self.pattern, text)
        if found is None:
            return None
        return "".join(m if isinstance(m, str) else found.group(m) or "" for m in self.made)


@dataclass(frozen=True, slots=True)
class TextReading:
    """What a policy says of how values are written.

    Parameters
    ----------
    null_values : tuple of str
        Texts that stand for NULL: as they are in the unit and in text that is not trimmed, else
        without what is trimmed.
    thousands : str, optional
        A key of ``SEPARATORS`` that may stand between three digits and three digits of a number.
    decimal : str, optional
        ``"."`` or ``","``.
    date_format : str, optional
        Of dates and times, with the ``DIRECTIVES``.
    trim : str, optional
        Characters that are taken away from both ends, beside white space; of a number also behind
        its sign. ``None``: nothing is trimmed of text.
    parentheses : bool
        A number in parentheses is negative.
    """

    null_values: tuple[str, ...] = ()
    thousands: str | None = None
    decimal: str | None = None
    date_format: str | None = None
    trim: str | None = None
    parentheses: bool = False

    @property
    def of_numbers(self) -> bool:
        """Whether it says how numbers are written."""
        return bool(self.thousands or self.decimal or self.trim or self.parentheses)

    @property
    def separators(self) -> str:
        """Every character that may separate thousands."""
        return SEPARATORS[self.thousands] if self.thousands else ""

    @property
    def point(self) -> str:
        """What stands before the decimals."""
        return self.decimal or "."

    def ends(self, kind: Kind) -> str | None:
        """What is taken away from both ends of a value of a kind; ``None``: nothing is."""
        if self.trim is None and kind is Kind.TEXT:
            return None
        return BLANKS + (self.trim or "")

    def shapes(self, kind: Kind) -> tuple[Shape, ...]:
        """The forms that a trimmed value of a kind may have, if the engines' own are not meant.

        Of numbers what they give still holds its separators, its own point and its own minus. Of
        dates there is a second step, ``padded``; before it names of months become their numbers.
        """
        if kind.numeric and self.of_numbers:
            return _of_numbers(self, whole=kind is Kind.INTEGER)
        if kind.temporal and self.date_format is not None:
            return _of_dates(self.date_format, timed=kind is Kind.TIMESTAMP)
        return ()

    @property
    def names_months(self) -> bool:
        """Whether months stand in dates by their names, in any case."""
        return re.search("%[bB]", (self.date_format or "").replace("%%", "")) is not None

    def plain(self, text: str, kind: Kind) -> str | None:
        """A text in the form of its kind that all engines read alike, or ``None`` for NULL.

        Where nothing is said of the kind, the text as it is.

        Examples
        --------
        >>> euro = TextReading(thousands=".", decimal=",", trim="€")
        >>> euro.plain("-€ 1.234,50", Kind.REAL), euro.plain("1.23", Kind.REAL)
        ('-1234.50', None)
        >>> TextReading(date_format="%d/%m/%Y").plain("1/3/2024", Kind.DATE)
        '2024-03-01'
        """
        ends = self.ends(kind)
        bare = text if ends is None else text.strip(ends)
        if bare in self.null_values:
            return None
        shapes = self.shapes(kind)
        if not shapes:
            return text if kind is not Kind.TEXT and self.trim is None else bare
        if kind.numeric:
            found = next(filter(None, (shape.of(bare) for shape in shapes)), None)
            if found is None:
                return None
            for separator in self.separators:
                found = found.replace(separator, "")
            return found.replace(self.point, ".").replace(MINUS, "-")
        bare = bare.lower() if self.names_months else bare
        found = next(filter(None, (shape.of(bare) for shape in shapes)), None)
        if found is None:
            return None
        for old, new in month_numbers() if self.names_months else ():
            found = found.replace(old, new)
        return padded(timed=kind is Kind.TIMESTAMP).of(found)

    def holds(self, text: str, kind: Kind) -> bool:
        """Whether a text says anything: it is none that stands for NULL, and of other kinds than
        text not blank."""
        ends = self.ends(kind)
        bare = text if ends is None else text.strip(ends)
        return bare not in self.null_values and (kind is Kind.TEXT or bare != "")


def month_numbers() -> list[tuple[str, str]]:
    """The names of months and their numbers, whole names before what they begin with."""
    numbers = [(name, str(i)) for i, name in enumerate(MONTHS, start=1)]
    return numbers + [(name[:3], number) for name, number in numbers]


def padded(*, timed: bool) -> Shape:
    """Dates whose fields have a 0 too many, where they have two digits already, without it."""
    two = "0?([0-9]{2})"
    if not timed:
        return Shape(f"([0-9]{{4}})-{two}-{two}", (1, "-", 2, "-", 3))
    made = (1, "-", 2, "-", 3, " ", 4, ":", 5, ":", 6)
    return Shape(f"([0-9]{{4}})-{two}-{two} {two}:{two}:{two}", made)


def _one_of(letters: str) -> str:
    """A class of characters, none of which means anything in one."""
    return f"[{letters}]"


@lru_cache(maxsize=256)
def _of_numbers(reading: TextReading, *, whole: bool) -> tuple[Shape, ...]:
    blank = f"{_one_of(BLANKS + (reading.trim or ''))}{{0,{MOST_BLANKS}}}"
    point = _one_of(reading.point)
    digits = f"[0-9]{{1,{DIGITS}}}"
    if reading.thousands:
        three = f"(?:{_one_of(reading.separators)}[0-9]{{3}})"
        digits = f"(?:[0-9]{{1,3}}{three}{{1,13}}|{digits})"
    more = f"[0-9]{{0,{DIGITS}}}"
    exponent = "(?:[eE][+-]?[0-9]{1,2})?"
    if whole:
        body = f"({digits})(?:{point}0{{0,{DIGITS}}})?"
    else:
        body = f"((?:{digits}(?:{point}{more})?|{point}[0-9]{{1,{DIGITS}}}){exponent})"
    signed = Shape(f"(?:[+]|([-{MINUS}]))?{blank}{body}", (1, 2))
    inner = Shape(f"[(]{blank}{body}{blank}[)]", ("-", 1))
    return (signed, inner) if reading.parentheses else (signed,)


def directives(written: str) -> list[tuple[str, bool]]:
    """The pieces of a format of dates: each a directive's letter, or a text between them.

    Examples
    --------
    >>> directives("%d/%m")
    [('d', True), ('/', False), ('m', True)]
    """
    found: list[tuple[str, bool]] = []
    for part in re.findall(r"%.|%$|[^%]", written, re.DOTALL):
        if part == "%%" or part[0] != "%":
            found.append((part[-1], False))
        else:
            found.append((part[1:], True))
    return found


_RECENT, _OLD = "[0-5][0-9]|6[0-8]", "69|[7-9][0-9]"
"""Years of two digits from 2000 on, and those before, as POSIX has them."""


@lru_cache(maxsize=256)
def _of_dates(written: str, *, timed: bool) -> tuple[Shape, ...]:
    pieces = directives(written)
    letters = [piece for piece, is_directive in pieces if is_directive]
    short = "y" in letters
    return tuple(
        _of_date(pieces, letters, year, century, timed=timed)
        for year, century in (((_RECENT, "20"), (_OLD, "19")) if short else (("", ""),))
    )


def _of_date(
    pieces: list[tuple[str, bool]], letters: list[str], year: str, century: str, *, timed: bool
) -> Shape:
    named = bool({"b", "B"} & {*letters})
    pattern = ""
    for i, (piece, is_directive) in enumerate(pieces):
        if not is_directive:
            pattern += _literal(piece.lower() if named else piece)
            continue
        beside = [pieces[j] for j in (i - 1, i + 1) if 0 <= j < len(pieces)]
        tight = any(p not in "bB" if inner else p.isdigit() for p, inner in beside)
        own = year if piece == "y" else _TWO.get(piece) if tight else None
        pattern += f"({own or DIRECTIVES[piece]})"
    place = {letter: i for i, letter in enumerate(letters, start=1)}
    month, day = next(place[x] for x in "mbB" if x in place), place["d"]
    made: list[str | int] = [century, place["Y" if "Y" in place else "y"], "-0", month, "-0", day]
    if timed:
        for before, letter in ((" 0", "H"), (":0", "M"), (":0", "S")):
            made += [before, place.get(letter, "0")]
    return Shape(pattern, tuple(made))


def _literal(text: str) -> str:
    return text if text.isalnum() or text == " " else f"[{text}]"
