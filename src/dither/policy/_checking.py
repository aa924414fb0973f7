"""Checking a policy against the names and types of its sources: free, and no row is read."""

from __future__ import annotations

import html
import unicodedata
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from pathlib import Path
from typing import TYPE_CHECKING, Any

from dither._format import wrapped
from dither._notebook import html_table
from dither.errors import DitherError, nearest
from dither.plan.schema import Kind, Table
from dither.policy._fields import DeclaredColumn
from dither.policy._identifying import person_keys
from dither.policy._places import check_sources
from dither.policy._policy import DeclaredTable, Policy, read_policy, resolve_in, schema_of
from dither.policy._sources import connect

if TYPE_CHECKING:
    import polars as pl

__all__ = ["Checked", "Finding", "check", "check_read"]

LOOSE = Fraction(1, 500)
"""A delta too large for any table worth protecting, where nobody says how many there are."""

LEVELS = ("error", "warning", "note")


@dataclass(frozen=True, slots=True)
class Finding:
    """One thing to look at.

    Parameters
    ----------
    level : str
        ``"error"``: the policy does not open. ``"warning"``: likely a mistake. ``"note"``: what a
        question will need, or will do.
    where : str
        The field of the policy.
    text : str
    """

    level: str
    where: str
    text: str


@dataclass(frozen=True)
class Checked:
    """What `check` found; ``str()`` is a table for a terminal."""

    findings: tuple[Finding, ...]
    columns: int

    @property
    def ok(self) -> bool:
        """Whether the policy can be opened, as far as names and types tell."""
        return not any(f.level == "error" for f in self.findings)

    @property
    def frame(self) -> pl.DataFrame:
        """A Polars frame of ``level``, ``where`` and ``text``."""
        import polars as pl

        names = ("level", "where", "text")
        return pl.DataFrame(
            {name: [getattr(f, name) for f in self.findings] for name in names},
            schema=dict.fromkeys(names, pl.String),
        )

    def to_dict(self) -> dict[str, Any]:
        """The findings as plain data."""
        found = [{"level": f.level, "where": f.where, "text": f.text} for f in self.findings]
        return {"ok": self.ok, "columns": self.columns, "findings": found}

    def summary(self) -> str:
        """The findings as text, errors first, and how many there are."""
        lines = []
        for level, where, text in self._rows():
            lines += [f"{level:<7}  {where}", *wrapped(text, " " * 9)]
        return "\n".join([*lines, self._counted()])

    def _rows(self) -> list[list[str]]:
        ranked = sorted(self.findings, key=lambda f: LEVELS.index(f.level))
        return [[f.level, f.where, f.text] for f in ranked]

    def _counted(self) -> str:
        numbers = [sum(f.level == level for f in self.findings) for level in LEVELS]
        said = ", ".join(
            f"{n} {level}{'' if n == 1 else 's'}" for n, level in zip(numbers, LEVELS, strict=True)
        )
        return f"{said}; {self.columns} columns; no row was read"

    def __repr__(self) -> str:
        return self.summary()

    def _repr_html_(self) -> str:
        shown = html_table(["", "where", "what"], self._rows(), left=3)
        return f"<div>{shown}<p>{html.escape(self._counted())}</p></div>"


def check(
    policy: str | Path | Mapping[str, Any],
    *,
    sources: Mapping[str, Any] | None = None,
    engines: Mapping[str, Any] | None = None,
) -> Checked:
    """Check a policy against the names and types of its sources, all of it at once.

    Parameters
    ----------
    policy, sources, engines
        As for `dither.open`.

    Returns
    -------
    Checked
        Does each column exist, and can it be read as declared; do declared values look like
        spellings of each other, and are they labels of the column's type where it lists its own
        (an enumeration of DuckDB or PostgreSQL); what will questions lack. Where the policy itself
        cannot be read, that is the one finding.

    Notes
    -----
    Reads names and types alone, and no row, of public tables either; opens no ledger and spends
    nothing. So it cannot tell whether a declared value occurs.

    Examples
    --------
    >>> import polars as pl
    >>> policy = {
    ...     "budget": {"epsilon": 1, "ledger": "visits.ledger"},
    ...     "tables": {"visits": {"columns": {"regoin": {"values": ["north", "North"]}}}},
    ... }
    >>> found = check(policy, sources={"visits": pl.DataFrame({"region": ["north"]})})
    >>> found.ok, [f.level for f in found.findings]
    (False, ['warning', 'error', 'note'])
    """
    try:
        read = read_policy(policy)
    except DitherError as error:
        return Checked((Finding("error", "the policy", str(error)),), 0)
    return check_read(read, dict(sources or {}), dict(engines or {}))


def check_read(read: Policy, given: Mapping[str, Any], connections: Mapping[str, Any]) -> Checked:
    """As `check`, of a policy that is read already."""
    found: list[Finding] = []
    for name in given:
        if name not in read.tables:
            text = f"no table {name!r}" + nearest(name, read.tables)
            found.append(Finding("error", "sources", text))
    try:
        check_sources(read.tables, read.units, read.folder, given)
    except DitherError as error:
        found.append(Finding("error", "tables", str(error)))
    found += [Finding("warning", "budget.delta", text) for text in read.loose]
    if read.budget.delta >= LOOSE and not any(u.at_least for u in read.units.values()):
        text = (
            "promises little: it should be far below one over the number of people; choose a "
            "smaller one, or say how many there are, as units_at_least"
        )
        found.append(Finding("warning", "budget.delta", text))
    columns = 0
    for name, declared in read.tables.items():
        alone = replace(read, tables={name: declared})
        mine = {name: given[name]} if name in given else {}
        for field, body in declared.columns.items():
            found += _spellings(f"tables.{name}.columns.{field}.values", body)
        try:
            number, more = _table(alone, declared, mine, connections)
        except DitherError as error:
            found.append(Finding("error", f"tables.{name}", str(error)))
            continue
        columns += number
        found += more
    return Checked(tuple(found), columns)


def _table(
    policy: Policy,
    declared: DeclaredTable,
    given: Mapping[str, Any],
    connections: Mapping[str, Any],
) -> tuple[int, list[Finding]]:
    """One table by itself, so that what is wrong with it hides nothing of others."""
    name, where = declared.name, f"tables.{declared.name}"
    # A connection that this table does not use is refused where it is given.
    engine = connect(policy, given, connections if len(connections) == 1 else {})
    try:
        kinds, unread, lists = engine.describe(name), engine.unread(name), engine.lists(name)
        labels = engine.labels(name)
        found: list[Finding] = []
        # Of lists the kinds are those of their elements, and so is what is declared.
        known = {**kinds, **lists}
        for column, body in declared.columns.items():
            place = f"{where}.columns.{column}"
            try:
                facts = resolve_in(declared, body, known, place, unread)
            except DitherError as error:
                found.append(Finding("error", place, str(error).removeprefix(f"{place}: ")))
                continue
            found += _needs(place, body, facts.kind, known[column], private=declared.private)
            found += _labelled(f"{place}.values", body, labels.get(column, ()))
        if declared.private and engine.nobody(name):
            found.append(Finding("warning", f"{where}.unit", engine.nobody(name)))
        if declared.private and declared.unit is None and not policy.units[name].declared:
            found += _unprotected(where, name, kinds)
        whole = [c for c in declared.columns if c in kinds and c not in unread]
        if not any(f.level == "error" for f in found):
            # Reading what is declared unique would read rows.
            plain = replace(declared, unique=())
            checked = replace(policy, tables={name: plain})
            zoned = {name: engine.zoned(name)}
            schema = schema_of(checked, {name: kinds}, (), {name: unread}, {name: lists}, zoned)
            engine.check(schema)
            found += _block(f"{where}.block", schema.table(name), kinds)
        other = [c for c in kinds if c not in whole and c not in unread and c != declared.unit]
        if other and declared.private:
            text = (
                f"not declared: {_listed(other)}; they can be counted and filtered by, not summed"
            )
            found.append(Finding("note", where, text))
        found += [Finding("note", f"{where}.{c}", f"not read: {why}") for c, why in unread.items()
                  if c not in declared.columns]  # fmt: skip
        return len(kinds), found
    finally:
        engine.close()


def _block(where: str, table: Table, kinds: Mapping[str, Kind | None]) -> Iterator[Finding]:
    """What lies in which block where nobody might expect it."""
    if table.block is None:
        return
    name, _ = table.block
    facts = table.column(name)
    if facts.nullable:
        yield Finding(
            "note",
            where,
            f"rows in which {name} is NULL are a block of their own, with a budget of its own; a "
            "question without a condition on it reads them, too",
        )
    if kinds.get(name) is not facts.kind:
        yield Finding(
            "note",
            where,
            f"{name} is read as {facts.kind.value}: rows in which it cannot be read so are NULL, "
            "and lie in that block",
        )


def _unprotected(where: str, table: str, kinds: Mapping[str, Kind | None]) -> Iterator[Finding]:
    """Columns that look like a person's key, where each row is protected by itself."""
    alike = person_keys(kinds)
    if alike:
        yield Finding(
            "warning",
            f"{where}.unit",
            f"not declared, so each row is protected by itself, and {_listed([*map(repr, alike)])} "
            f"may say whose a row is: write unit = {alike[0]!r}, or, where no person has more than "
            f"one row, [units.person] with rows = {{ {table} = 1 }}",
        )


def _needs(
    where: str, body: DeclaredColumn, kind: Kind, stored: Kind | None, *, private: bool
) -> Iterator[Finding]:
    """What questions will lack of a column, or do to it."""
    if stored is not None and kind is not stored:
        yield Finding(
            "note",
            where,
            f"stored as {stored.value}, read as {kind.value}: what cannot be read is NULL, and in "
            "no answer but of UNREADABLE",
        )
    if not private or body.values is not None:
        return
    name = body.name
    if body.learned:
        yield Finding("note", where, f"{body.learned} are learned, once somebody has paid for that")
    elif kind.numeric and body.bounds is None:
        yield Finding(
            "note",
            where,
            f'no bounds: sums and means need some, or CLAMP({name}, ...), or bounds = "learned"',
        )
    elif kind is Kind.TEXT:
        yield Finding("note", where, "no values: GROUP BY finds them, at a cost in delta")


def _labelled(where: str, body: DeclaredColumn, labels: Sequence[str]) -> Iterator[Finding]:
    """Declared values held against those that the column's type lists: no others can occur."""
    if not labels or body.values is None:
        return
    for value in body.values:
        if value not in labels:
            text = f"{value!r} is not among the labels of its type" + nearest(str(value), labels)
            yield Finding("warning", where, text)
    missing = [label for label in labels if label not in body.values]
    if missing:
        text = f"its type also has {_listed([*map(repr, missing)])}; rows of these are in no group"
        yield Finding("note", where, text)


def _spellings(where: str, body: DeclaredColumn) -> Iterator[Finding]:
    """Declared values that look like another spelling of each other."""
    texts = [v for v in body.values or () if isinstance(v, str)]
    for text in texts:
        if text != text.strip():
            yield Finding("warning", where, f"{text!r} begins or ends with a blank, which counts")
    alike: dict[str, list[str]] = {}
    for text in texts:
        alike.setdefault(_plain(text), []).append(text)
    for group in alike.values():
        if len(group) > 1:
            listed = " and ".join(map(repr, group))
            yield Finding(
                "warning",
                where,
                f"{listed} differ in case, blanks, accents or leading zeros alone, and are "
                "different values",
            )


def _plain(text: str) -> str:
    """A text without what people spell differently."""
    split = unicodedata.normalize("NFKD", text).casefold().split()
    bare = "".join(c for c in "".join(split) if not unicodedata.combining(c))
    return (bare.lstrip("0") or "0") if bare.isdigit() else bare


def _listed(names: Sequence[str]) -> str:
    shown = ", ".join(names[:8])
    return shown + (f" and {len(names) - 8} more" if len(names) > 8 else "")
