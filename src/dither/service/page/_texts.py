"""The words of the page, one file a language, and how each language writes numbers and dates."""

from __future__ import annotations

import re
import tomllib
from collections.abc import Iterator, Mapping
from datetime import UTC, datetime
from functools import cache
from pathlib import Path
from typing import Any

__all__ = ["LANGUAGES", "PageWords", "chosen", "words"]

FOLDER = Path(__file__).parent / "texts"

LANGUAGES = {"en": "English", "zh": "中文"}
"""By code: what a language calls itself."""

MONTHS = ["Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec"]

CHOICE = re.compile(r"\[(\w+): ([^|\]]*)\|([^\]]*)\]")


class PageWords:
    """The words of one language.

    Parameters
    ----------
    code : str
        One of `LANGUAGES`.
    """

    def __init__(self, code: str) -> None:
        self.code = code
        read = tomllib.loads((FOLDER / f"{code}.toml").read_text(encoding="utf-8"))
        self.known = dict(_flat(read))

    def __call__(self, key: str, /, **values: Any) -> str:
        """The words of a key, with values in their places.

        ``[n: row|rows]`` in them is the first where the value ``n`` is 1, else the second.

        Raises
        ------
        KeyError
            There are none: the page would show something that nobody wrote.
        """
        if not values:
            return self.known[key]

        def one_or_many(found: re.Match[str]) -> str:
            return found[2] if str(values[found[1]]) == "1" else found[3]

        return CHOICE.sub(one_or_many, self.known[key]).format(**values)

    def when(self, moment: datetime | str | float) -> str:
        """A date and hour, in UTC, as the language writes it."""
        if isinstance(moment, str):
            moment = datetime.fromisoformat(moment)
        elif isinstance(moment, int | float):
            moment = datetime.fromtimestamp(moment, UTC)
        at = moment.astimezone(UTC) if moment.tzinfo else moment.replace(tzinfo=UTC)
        hour = f"{at.hour:02}:{at.minute:02}"
        if self.code == "zh":
            return f"{at.year}年{at.month}月{at.day}日 {hour} UTC"
        return f"{at.day} {MONTHS[at.month - 1]} {at.year}, {hour} UTC"


def _flat(read: Mapping[str, Any], before: str = "") -> Iterator[tuple[str, str]]:
    for name, value in read.items():
        if isinstance(value, Mapping):
            yield from _flat(value, f"{before}{name}.")
        else:
            yield before + name, value


@cache
def words(code: str) -> PageWords:
    """The words of a language, read once."""
    return PageWords(code)


def chosen(cookie: str | None, accepted: str | None) -> str:
    """The language of somebody: what they chose here, else the first that their browser names.

    >>> chosen(None, "zh-CN,zh;q=0.9,en;q=0.8"), chosen("en", "zh"), chosen(None, "fr, en;q=0.5")
    ('zh', 'en', 'en')
    """
    if cookie in LANGUAGES:
        return cookie
    for part in (accepted or "")[:500].split(","):
        code = part.partition(";")[0].strip().lower().partition("-")[0]
        if code in LANGUAGES:
            return code
    return "en"
