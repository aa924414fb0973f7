"""The words of the page, one file a language, and how each language writes numbers and dates."""

from __future__ import annotations

import re
import tomllib
from collections.abc import Iterator, Mapping
from datetime import UTC, date, datetime
from functools import cache
from pathlib import Path
from typing import Any

from markupsafe import Markup

from dither.service.page._sayings import PageSayings

__all__ = ["LANGUAGES", "PageWords", "chosen", "words"]

FOLDER = Path(__file__).parent / "texts"

LANGUAGES = {"en": "English", "zh": "中文"}
"""By code: what a language calls itself."""

MONTHS = ["Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec"]

CHOICE = re.compile(r"\[(\w+): ([^|\]]*)\|([^\]]*)\]")


SHARE = re.compile(r"−?[<>]? ?[\d.,]+ %")


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
        # What the library says is English: other languages have its sentences in these tables.
        self.library = PageSayings(read.pop("library", {}), read.pop("library_labels", {}))
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

        shown = {name: self.shown(one) for name, one in values.items()}
        return CHOICE.sub(one_or_many, self.known[key]).format(**shown)

    def shown(self, value: Any) -> Any:
        """A value as the language writes it: Chinese has no space before a sign of percent."""
        if self.code == "zh" and isinstance(value, str) and SHARE.fullmatch(value):
            return value.replace(" ", "")
        return value

    def percent(self, share: float | None) -> str:
        """A share in hundredths.

        >>> words("en").percent(0.1234), words("zh").percent(-0.01), words("en").percent(None)
        ('12.3 %', '−1.0%', '–')
        """
        if share is None:
            return "–"
        text = f"{100 * share:.1f} %".replace("-", "−")
        return str(self.shown(text))

    def told(self, text: object) -> Markup:
        """What the library says, as HTML; what is not known in this language is marked."""
        return self.library.told(str(text))

    def plain(self, text: object) -> str:
        """The same where nothing can be marked."""
        return self.library.plain(str(text))

    def label(self, name: object) -> str:
        """The name of a fact, or the head of a column that the library names."""
        return self.library.label(str(name))

    def tree(self, node: Mapping[str, Any]) -> dict[str, Any]:
        """An explanation, its parts as they are shown."""
        return self.library.tree(node)

    def marks(self, found: list[dict[str, Any]]) -> list[dict[str, Any]]:
        """Marks of an editor, with their messages in this language."""
        return [one | {"message": self.plain(one["message"])} for one in found]

    def day(self, day: date) -> str:
        """A date, as the language writes it.

        >>> words("en").day(date(2026, 3, 1)), words("zh").day(date(2026, 3, 1))
        ('1 Mar 2026', '2026年3月1日')
        """
        if self.code == "zh":
            return f"{day.year}年{day.month}月{day.day}日"
        return f"{day.day} {MONTHS[day.month - 1]} {day.year}"

    def hour(self, moment: datetime) -> str:
        """The hour in which a ledger has an entry; earlier versions wrote the moment itself.

        >>> words("en").hour(datetime(2026, 3, 1, 13, tzinfo=UTC))
        '1 Mar 2026, 13:00–14:00 UTC'
        >>> words("zh").hour(datetime(2026, 3, 1, 13, 27, tzinfo=UTC))
        '2026年3月1日 13:27 UTC'
        """
        at = moment.astimezone(UTC)
        if at.minute or at.second or at.microsecond:
            return self.when(at)
        return self.when(at).replace(":00 UTC", f":00–{at.hour + 1:02}:00 UTC")

    def when(self, moment: datetime | str | float) -> str:
        """A date and hour, in UTC, as the language writes it."""
        if isinstance(moment, str):
            moment = datetime.fromisoformat(moment)
        elif isinstance(moment, int | float):
            moment = datetime.fromtimestamp(moment, UTC)
        at = moment.astimezone(UTC) if moment.tzinfo else moment.replace(tzinfo=UTC)
        between = " " if self.code == "zh" else ", "
        return f"{self.day(at)}{between}{at.hour:02}:{at.minute:02} UTC"


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
