"""The words of the page: the same keys in each language, each of them shown somewhere."""

from __future__ import annotations

import re
from pathlib import Path
from string import Formatter

import pytest

pytest.importorskip("jinja2")

import dither.service.page as page
from dither.service.page._texts import LANGUAGES, words

ROOM = Path(page.__file__).parent


def places(text: str) -> set[str | None]:
    """The names of the values that stand in a text."""
    return {name for _, name, _, _ in Formatter().parse(text) if name is not None}


@pytest.mark.parametrize("code", LANGUAGES)
def test_languages_are_complete(code: str) -> None:
    """Each has every key, with the same values in its words, and none is empty."""
    english, other = words("en").known, words(code).known
    assert other.keys() == english.keys()
    for key, text in other.items():
        assert text.strip(), key
        assert places(text) == places(english[key]), key


def test_every_key_is_shown_and_every_shown_key_is_there() -> None:
    """Keys are written out, or begin as a key that is put together does."""
    sources = [*ROOM.rglob("*.html"), *ROOM.rglob("*.py"), *ROOM.rglob("page.js")]
    text = "\n".join(one.read_text(encoding="utf-8") for one in sources)
    known = words("en").known
    called = set(re.findall(r"""\bt\(\s*["']([a-z_0-9.]+)["']\s*[,)]""", text))
    assert called <= known.keys(), called - known.keys()
    begun = tuple(re.findall(r"""["']([a-z_0-9]+\.(?:[a-z_0-9]+[._])*)["']\s*(?:~|\+)""", text))
    begun += tuple(re.findall(r"""f["']([a-z_0-9]+\.(?:[a-z_0-9]+[._])*)\{""", text))
    written = set(re.findall(r"""["']([a-z_0-9]+(?:\.[a-z_0-9]+)+)["']""", text))
    unused = {key for key in known if key not in written and not key.startswith(begun or ("\0",))}
    assert not unused


def test_one_is_not_many() -> None:
    """Words agree with their number; in Chinese there is nothing to agree."""
    english = words("en")
    assert english("answers.more_rows", n=1) == "1 more row is in the files."
    assert english("answers.more_rows", n="1,234") == "1,234 more rows are in the files."
    assert english("ask.limits", rows=1, groups=1) == (
        "one person counts with 1 row in one group at most"
    )
    for key, text in english.known.items():
        said = english(key, **{name: 1 for name in places(text) if name})
        assert "|" not in said or "[" not in said, key
