"""A policy that somebody writes: what is wrong with it, where, and what its tables have."""

from __future__ import annotations

import re
import time
import tomllib
import warnings
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from decimal import Decimal
from functools import cached_property, lru_cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

from dither._files import file_stamp
from dither.errors import DitherError, PolicyError
from dither.plan.schema import Kind
from dither.policy._checking import Finding, check_read
from dither.policy._drafting import draft_table
from dither.policy._identifying import person_keys
from dither.policy._policy import Policy, read_policy
from dither.policy._sources import connect
from dither.policy.steps import TomlText
from dither.policy.steps._editing import toml_value
from dither.service.policies._places import check_places_of, inside
from dither.session._opened import accounts_of

if TYPE_CHECKING:
    from dither.service._desk import Desk

__all__ = ["DraftFinding", "PolicyDraft"]

MOST_TEXT = 400_000

AT = re.compile(r"\(at line (\d+), column \d+\)|at line (\d+)")


@dataclass(frozen=True, slots=True)
class DraftFinding:
    """One thing that was found, and the line that it is about.

    Parameters
    ----------
    level : str
        ``"error"``: it cannot be saved. ``"warning"`` and ``"note"``: as of `dither check`.
    text : str
        In the words of the library.
    line : int, optional
    where : str
        The field.
    """

    level: str
    text: str
    line: int | None = None
    where: str = ""


class PolicyDraft:
    """The text of a policy, held against the one that is served.

    Parameters
    ----------
    desk : Desk
    text : str
    also : str, optional
        A text that was served before, whose places are known, too.

    Notes
    -----
    Nothing that the draft names is opened before it is seen that it may name it, and of what is
    opened names and types alone are read.
    """

    def __init__(self, desk: Desk, text: str, also: str | None = None) -> None:
        self.desk, self.text = desk, text.replace("\r\n", "\n")
        self.folder = desk.path.parent
        self.held: TomlText | None = None
        self.policy: Policy | None = None
        self.refused: list[DraftFinding] = []
        self.allowed = False
        try:
            self.held = TomlText(self.text)
        except tomllib.TOMLDecodeError as error:
            self._refuse(f"this is not valid TOML: {error}", _line(str(error), self.text))
            return
        except (ValueError, DitherError):
            self._refuse("a number in it is too long, or lists nest too deep", None)
            return
        try:
            served = desk.path.read_text(encoding="utf-8-sig")
            known = [tomllib.loads(one) for one in (served, also) if one is not None]
            check_places_of(tomllib.loads(self.text), known, self.folder)
            self.allowed = True
            self.policy = read_policy(self.held.document, within=self.folder)
        except (OSError, ValueError):
            self._refuse("the policy's file cannot be read: mend it at the server", None)
        except DitherError as error:
            self._refuse(str(error), self.place_of(str(error)))

    def __repr__(self) -> str:
        return self.text

    def _refuse(self, text: str, line: int | None) -> None:
        self.refused.append(DraftFinding("error", text, line))

    # --- what its tables have ---------------------------------------------------------------------

    @property
    def tables(self) -> list[str]:
        """The private tables, in their order."""
        found = None if self.held is None else self.held.get(("tables",))
        if not isinstance(found, Mapping):
            return []
        return [n for n, b in found.items() if isinstance(b, Mapping) and not b.get("public")]

    @cached_property
    def stored(self) -> Mapping[str, Mapping[str, Kind | None]]:
        """By table: its columns and their kinds; empty where its source cannot be read."""
        return {name: self._stored(name) for name in self.tables} if self.allowed else {}

    def _stored(self, table: str) -> Mapping[str, Kind | None]:
        assert self.held is not None
        body = self.held.get(("tables", table))
        fields = ("source", "format", "table", "delimiter", "columns")
        kept = {field: body[field] for field in fields if field in body}
        kept["columns"] = {name: {} for name in kept.get("columns") or ()}
        engine = toml_value(self.held.document.get("engine", {}))
        stamp = _stamp(self.folder, [body.get("source")])
        return _columns(self.folder, engine, table, toml_value(kept), stamp)

    @property
    def state(self) -> tuple[Any, ...]:
        """What the findings follow from, but for the ledger: the text, and its sources as they are.

        It can be hashed.
        """
        tables = (self.held.get(("tables",)) if self.held is not None else None) or {}
        sources = [body.get("source") for body in tables.values() if isinstance(body, Mapping)]
        return self.folder, self.text, _stamp(self.folder, sources)

    # --- what is wrong ----------------------------------------------------------------------------

    @cached_property
    def findings(self) -> list[DraftFinding]:
        """Everything that is wrong or is to be thought of, errors first."""
        if self.policy is None:
            return self.refused
        found = [
            DraftFinding(one.level, one.text, self.line_of(one.where), one.where)
            for one in _checked(*self.state)
        ]
        whose = self._whose()
        asked = {one.where for one in whose}
        found = [one for one in found if one.where not in asked]
        found += [*self._of_the_ledger(), *whose]
        order = ("error", "warning", "note")
        return sorted(dict.fromkeys(found), key=lambda one: order.index(one.level))

    @property
    def errors(self) -> list[DraftFinding]:
        """What keeps it from being saved."""
        return [one for one in self.findings if one.level == "error"]

    def _of_the_ledger(self) -> list[DraftFinding]:
        """What was promised already, which no file changes."""
        assert self.policy is not None
        found = []
        units = self.policy.units.items()
        for promise, accounts in accounts_of(self.policy).items():
            held = {table: unit.by for table, unit in units if unit.name == promise.unit}
            try:
                with warnings.catch_warnings():
                    warnings.simplefilter("ignore")
                    self.desk.session.ledger.check(promise, accounts=accounts, tables=held)
            except DitherError as error:
                line = self.line_of("budget.epsilon")
                found.append(DraftFinding("error", str(error), line, "ledger"))
        return found

    def _whose(self) -> list[DraftFinding]:
        """A table that is new, whose rows would be protected one by one in silence."""
        assert self.policy is not None
        found = []
        for name, table in self.policy.tables.items():
            known = name in self.desk.session.policy.tables
            unit = self.policy.units.get(name)
            if known or unit is None or table.unit is not None or unit.declared:
                continue
            alike = person_keys(self.stored.get(name, {}))
            if alike:
                where = f"tables.{name}.unit"
                text = (
                    f"{where}: say whose a row is. {' and '.join(map(repr, alike))} may say it; "
                    "where each row is another person, say so"
                )
                found.append(DraftFinding("error", text, self.line_of(where), where))
        return found

    def line_of(self, where: str) -> int | None:
        """The line of a field by the name that messages call it."""
        if self.held is None:
            return None
        best, line = -1, None
        for one in self.held.statements:
            said = ".".join(one.path)
            if (where == said or where.startswith(f"{said}.")) and len(said) > best:
                best, line = len(said), one.line
        return line

    def place_of(self, message: str) -> int | None:
        """The line that a message of the library is about, by the field that it names."""
        if self.held is None:
            return None
        unknown = re.search(r"^(.*) has an unknown field '(.*)'(?:;|$)", message)
        if unknown:
            section = "" if unknown[1] == "the policy" else f"{unknown[1]}."
            return self.line_of(f"{section}{unknown[2].partition(chr(39))[0]}")
        best, line = 0, None
        for one in self.held.statements:
            said = ".".join(one.path)
            after = message[len(said) : len(said) + 1]
            if message.startswith(said) and after in (".", " ", ":") and len(said) > best:
                best, line = len(said), one.line
        return line

    # --- a new table ------------------------------------------------------------------------------

    def with_source(self, source: str) -> str:
        """The text with a table of a file of the folder, every column of which is listed.

        Raises
        ------
        PolicyError
            There is no such file, or its schema cannot be read; or the text must be mended first.
        """
        if self.held is None:
            raise PolicyError("mend the text first: a table is added at its end")
        path = inside(self.folder, source)
        tables = self.held.get(("tables",)) or {}
        name, section = draft_table(path, source)
        number, given = 2, name
        while given in tables:
            given, number = f"{name}_{number}", number + 1
        if given != name:
            section = draft_table(path, source, given)[1]
        return self.held.with_section(section).text

    def without_table(self, table: str) -> str:
        """The text without a table and what is said of it.

        Raises
        ------
        PolicyError
            The text must be mended first.
        """
        if self.held is None:
            raise PolicyError("mend the text first")
        return self.held.without_section(("tables", table)).text


# --- what is remembered while the files are as they were, since a text is checked at each change --


def _stamp(folder: Path, sources: Sequence[Any]) -> tuple[Any, ...]:
    """What tells a file from what it was; of what is no file, half a minute."""
    found: list[Any] = []
    for source in sources:
        try:
            found.append(file_stamp(folder / source))
        except (OSError, TypeError, ValueError):
            found.append(time.monotonic() // 30)
    return tuple(found)


@lru_cache(maxsize=128)
def _columns(
    folder: Path, engine: str, table: str, body: str, stamp: tuple[Any, ...]
) -> Mapping[str, Kind | None]:
    """The columns of a table; empty where its source cannot be read."""
    kept = tomllib.loads(f"x = {body}", parse_float=Decimal)["x"]
    # What else is wrong with the policy hides no columns, and one that is not there no others.
    declared: list[Mapping[str, Any]] = [kept["columns"], {}]
    for columns in declared:
        alone: dict[str, Any] = {
            "budget": {"epsilon": 1, "ledger": "unopened"},
            "engine": tomllib.loads(f"x = {engine}")["x"],
            "tables": {table: {**kept, "columns": columns}},
        }
        try:
            opened = connect(read_policy(alone, within=folder), {}, {})
            try:
                return {**opened.lists(table), **opened.describe(table)}
            finally:
                opened.close()
        except DitherError:
            continue
    return {}


@lru_cache(maxsize=32)
def _checked(folder: Path, text: str, stamp: tuple[Any, ...]) -> tuple[Finding, ...]:
    """What `dither check` finds in a text."""
    read = read_policy(tomllib.loads(text, parse_float=Decimal), within=folder)
    return check_read(read, {}, {}).findings


def _line(message: str, text: str) -> int | None:
    found = AT.search(message)
    if found:
        return int(found[1] or found[2])
    return text.count("\n") + 1 if "end of document" in message else None
