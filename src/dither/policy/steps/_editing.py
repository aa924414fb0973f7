"""One value of a TOML text, changed, with every comment and every other line as it was.

The text is the owner's, and stays theirs: an answer changes the lines that it is about. What it
changed is read again and held against what should have changed, so that where the text is written
in a way that is not foreseen here, it is refused and not broken.
"""

from __future__ import annotations

import datetime as dt
import re
import tomllib
from collections.abc import Mapping, Sequence
from copy import deepcopy
from dataclasses import dataclass
from decimal import Decimal
from typing import Any

from dither.errors import PolicyError

__all__ = ["TomlStatement", "TomlText", "toml_key", "toml_text", "toml_value"]

Path = tuple[str, ...]

BARE = re.compile(r"[A-Za-z0-9_-]+")

BY_HAND = "this text is written so that it cannot be changed here: change it by hand"


@dataclass(frozen=True, slots=True)
class TomlStatement:
    """A header, or a key with its value.

    Parameters
    ----------
    path : tuple of str
        Of what it says, from the top.
    line : int
        Where it begins, from 1.
    span : (int, int)
        Of its lines, the last line's end included.
    value : (int, int) or None
        Of its value; None of a header.
    """

    path: Path
    line: int
    span: tuple[int, int]
    value: tuple[int, int] | None


def toml_key(name: str) -> str:
    """A name as TOML writes it.

    >>> toml_key("cost"), toml_key('a "b"')
    ('cost', '"a \\\\"b\\\\""')
    """
    return name if BARE.fullmatch(name) else toml_text(name)


def toml_value(value: Any) -> str:
    """A value as TOML writes it.

    >>> toml_value({"bounds": [0, Decimal("2.5")], "nullable": False})
    '{ bounds = [0, 2.5], nullable = false }'
    """
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, int):
        return str(value)
    if isinstance(value, Decimal | float):
        return str(value).replace("E", "e")
    if isinstance(value, dt.datetime):
        return value.isoformat()
    if isinstance(value, dt.date):
        return value.isoformat()
    if isinstance(value, Mapping):
        inner = ", ".join(f"{toml_key(k)} = {toml_value(v)}" for k, v in value.items())
        return f"{{ {inner} }}" if inner else "{}"
    if isinstance(value, Sequence) and not isinstance(value, str):
        return f"[{', '.join(map(toml_value, value))}]"
    return toml_text(str(value))


def toml_text(text: str) -> str:
    """A text as TOML writes it."""
    shown = text.encode("utf-8", "replace").decode("utf-8")
    return '"' + "".join(map(_escaped, shown)) + '"'


def _escaped(character: str) -> str:
    if character in '"\\':
        return "\\" + character
    code = ord(character)
    return f"\\u{code:04x}" if code < 0x20 or 0x7F <= code < 0xA0 else character


class TomlText:
    """A text of TOML whose values can be changed one by one.

    Parameters
    ----------
    text : str

    Raises
    ------
    tomllib.TOMLDecodeError
        It is none.

    Examples
    --------
    >>> held = TomlText("[budget]  # of all\\nepsilon = 1  # once\\n")
    >>> print(held.with_value(("budget", "epsilon"), 2).with_value(("budget", "delta"), 0).text)
    [budget]  # of all
    epsilon = 2  # once
    delta = 0
    <BLANKLINE>
    """

    def __init__(self, text: str) -> None:
        self.text = text.replace("\r\n", "\n")
        try:
            self.document: dict[str, Any] = tomllib.loads(self.text, parse_float=Decimal)
        except RecursionError:
            raise PolicyError("the text nests too deep") from None
        self.statements = _statements(self.text)

    def __repr__(self) -> str:
        return self.text

    def get(self, path: Path) -> Any:
        """The value at a path; None where there is none."""
        found: Any = self.document
        for part in path:
            if not isinstance(found, Mapping) or part not in found:
                return None
            found = found[part]
        return found

    def line_of(self, path: Path) -> int | None:
        """The line of what is said at a path, or else around it."""
        for length in range(len(path), 0, -1):
            for one in self.statements:
                if one.path == path[:length]:
                    return one.line
        return None

    def with_value(self, path: Path, value: Any) -> TomlText:
        """The text in which the value at a path is another; left out where it is None.

        Raises
        ------
        PolicyError
            The text is written in a way that is not foreseen: nothing is changed.
        """
        wanted = _changed(self.document, path, value)
        if wanted == self.document:
            return self
        text = self._edited(path, value)
        try:
            found = TomlText(text)
        except tomllib.TOMLDecodeError:
            raise PolicyError(BY_HAND) from None
        if _without_empty(found.document) != _without_empty(wanted):
            raise PolicyError(BY_HAND)
        return found

    def with_section(self, text: str) -> TomlText:
        """The text with a section of its own at the end."""
        return TomlText(f"{self.text.rstrip()}\n\n{text.strip()}\n".lstrip("\n"))

    def without_section(self, path: Path) -> TomlText:
        """The text without what is said at a path and below it."""
        spans = [one.span for one in self.statements if one.path[: len(path)] == path]
        text = self.text
        for start, end in reversed(spans):
            text = text[:start] + text[end:]
        found = TomlText(re.sub(r"\n{3,}", "\n\n", text))
        if _without_empty(found.document) != _without_empty(_changed(self.document, path, None)):
            raise PolicyError(BY_HAND)
        return found

    def _edited(self, path: Path, value: Any) -> str:
        text = self.text
        for one in self.statements:
            if one.value is None:
                continue
            if one.path == path:
                if value is None:
                    return text[: one.span[0]] + text[one.span[1] :]
                return text[: one.value[0]] + toml_value(value) + text[one.value[1] :]
            if one.path == path[: len(one.path)]:
                # A table in one line: it is written anew.
                whole = _changed(self.document, path, value)
                inner: Any = whole
                for part in one.path:
                    inner = inner.get(part, {})
                return text[: one.value[0]] + toml_value(inner) + text[one.value[1] :]
        if value is None:
            raise PolicyError(BY_HAND)
        return self._added(path, value)

    def _added(self, path: Path, value: Any) -> str:
        text, (*above, name) = self.text, path
        heads = {one.path: one for one in self.statements if one.value is None}
        begun = any(head[: len(above)] == tuple(above) for head in heads)
        if not begun and len(above) > 1 and tuple(above[:-1]) in heads:
            # A column, an analyst: a table in one line, under the header that there is.
            return self._added(tuple(above), {name: value})
        line = f"{toml_key(name)} = {toml_value(value)}\n"
        if not above:
            return line + text
        head = heads.get(tuple(above))
        if head is None:
            shown = ".".join(map(toml_key, above))
            return f"{text.rstrip()}\n\n[{shown}]\n{line}".lstrip("\n")
        at = head.span[1]
        for one in self.statements:
            if one.span[0] < at:
                continue
            if one.value is None:
                break
            at = one.span[1]
        before = text[:at]
        return f"{before}{'' if before.endswith(chr(10)) else chr(10)}{line}{text[at:]}"


def _changed(document: Mapping[str, Any], path: Path, value: Any) -> dict[str, Any]:
    found = deepcopy(dict(document))
    inner: Any = found
    for part in path[:-1]:
        if not isinstance(inner, dict):
            raise PolicyError(BY_HAND)
        if part not in inner:
            if value is None:
                return found
            inner[part] = {}
        inner = inner[part]
    if not isinstance(inner, dict):
        raise PolicyError(BY_HAND)
    if value is None:
        inner.pop(path[-1], None)
    else:
        inner[path[-1]] = value
    return found


def _without_empty(document: Any) -> Any:
    """What is said, without sections in which nothing is: of a column ``{}`` says nothing."""
    if not isinstance(document, Mapping):
        return document
    inner = {name: _without_empty(value) for name, value in document.items()}
    return {name: value for name, value in inner.items() if value != {}}


# --- reading where each statement stands ----------------------------------------------------------


def _statements(text: str) -> list[TomlStatement]:
    """The statements of a text that tomllib has read, so that nothing in it is malformed."""
    found: list[TomlStatement] = []
    at, line = 0, 1
    section: Path = ()
    while at < len(text):
        end = _line_end(text, at)
        start = at + len(text[at:end]) - len(text[at:end].lstrip(" \t\n"))
        if start >= end or text[start] == "#":
            line += text.count("\n", at, end)
            at = end
            continue
        if text[start] == "[":
            many = text.startswith("[[", start)
            section, _ = _keys(text, start + 1 + many)
            found.append(TomlStatement(section, line, (at, end), None))
        else:
            keys, after = _keys(text, start)
            begin = after + 1
            while text[begin] in " \t":
                begin += 1
            stop = _value_end(text, begin)
            end = _line_end(text, stop)
            found.append(TomlStatement((*section, *keys), line, (at, end), (begin, stop)))
        line += text.count("\n", at, end)
        at = end
    return found


def _line_end(text: str, at: int) -> int:
    found = text.find("\n", at)
    return len(text) if found < 0 else found + 1


def _keys(text: str, at: int) -> tuple[Path, int]:
    """The parts of a dotted key, and where what ends it stands: ``=`` or ``]``."""
    parts: list[str] = []
    while True:
        while text[at] in " \t.":
            at += 1
        if text[at] in "=]":
            return tuple(parts), at
        if text[at] in "\"'":
            end = _string_end(text, at)
            parts.append(tomllib.loads(f"x = {text[at:end]}")["x"])
            at = end
        else:
            bare = BARE.match(text, at)
            assert bare is not None, "tomllib has read it"
            parts.append(bare.group())
            at = bare.end()


def _string_end(text: str, at: int) -> int:
    mark = text[at]
    if text.startswith(mark * 3, at):
        end = at + 3
        while not text.startswith(mark * 3, end):
            end += 2 if mark == '"' and text[end] == "\\" else 1
        end += 3
        while text.startswith(mark, end):  # quotes that end within the closing ones
            end += 1
        return end
    end = at + 1
    while text[end] != mark:
        end += 2 if mark == '"' and text[end] == "\\" else 1
    return end + 1


def _value_end(text: str, at: int) -> int:
    """Where a value ends, without the blanks and the comment behind it."""
    depth, end = 0, at
    while at < len(text):
        character = text[at]
        if character in "\"'":
            at = end = _string_end(text, at)
            continue
        if character == "#":
            if depth == 0:
                return end
            at = _line_end(text, at)
            continue
        if character == "\n" and depth == 0:
            return end
        depth += (character in "[{") - (character in "]}")
        at += 1
        if character not in " \t\n\r":
            end = at
    return end
