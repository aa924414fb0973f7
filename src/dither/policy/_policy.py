"""The policy: the data owner's one document, read and checked.

``read_policy`` turns TOML (or a dictionary of the same shape) into a ``Policy``. Nothing here opens
a source: which columns a table really has, and of which kind, is joined in by ``schema_of``. It is
long because what one table of the document says is held against what others say, in one reading.
"""

from __future__ import annotations

import tomllib
from collections.abc import Collection, Mapping
from dataclasses import dataclass
from dataclasses import field as made_by
from decimal import Decimal
from fractions import Fraction
from pathlib import Path
from types import MappingProxyType
from typing import Any

from dither._files import looked_at
from dither.blocks._calendar import Calendar
from dither.errors import ArgumentError, PolicyError, nearest
from dither.ledger._block_budget import BlockBudget
from dither.ledger._place import LedgerSchema, read_place
from dither.plan.schema import MOST_UNNESTED, ColumnFacts, Kind, Schema, Table
from dither.plan.text import unwritable
from dither.policy._canonical import AROUND, policy_digest
from dither.policy._fields import (
    LEARNED,
    DeclaredColumn,
    Reader,
    read_column,
    resolve,
)
from dither.policy._places import (
    DeclaredSource,
    as_path,
    check_sources,
    read_engine,
    read_source,
)
from dither.policy._publishing import (
    DeclaredOwner,
    DeclaredReleases,
    read_owner,
    read_releases,
)
from dither.policy._readings import of_unit, read_reading, reading_of
from dither.policy._units import (
    MOST_UNITS,
    DeclaredUnit,
    TableUnit,
    check_units,
    read_units,
    unit_of,
)
from dither.policy.budgets._blocks import (
    DeclaredBlock,
    block_of,
    calendars_of,
    read_block,
    units_in_blocks,
)
from dither.policy.budgets._quotas import Quotas, read_budget, read_quotas
from dither.privacy import Neighbours, Promise
from dither.privacy.accounts._budget import BudgetFilter

__all__ = ["DeclaredTable", "Policy", "read_policy", "schema_of"]

LIMITS = (
    *("max_groups", "max_rows", "max_join_rows", "max_unnest_rows"),
    *("max_groups_cap", "max_rows_cap"),
)
MOST = {"max_unnest_rows": 1_000_000}
"""Limits that a policy may not set as it likes, since a question's time follows from them."""

NEIGHBOURS = ("add_remove", "replace_one")


@dataclass(frozen=True, slots=True)
class DeclaredTable:
    """What a policy says of one table; see ``docs/policy.md`` for every field."""

    name: str
    source: DeclaredSource
    private: bool
    unit: str | None
    max_groups: int
    max_rows: int
    max_join_rows: int | None
    max_unnest_rows: int
    max_groups_cap: int | None
    max_rows_cap: int | None
    unique: tuple[str | tuple[str, ...], ...]
    columns: Mapping[str, DeclaredColumn]
    reading: Mapping[str, Any] = made_by(default_factory=dict)
    """What is said of how all values are written."""
    units_at_least: int | None = None
    learned: tuple[str, ...] = ()
    """The limits, ``max_groups`` and ``max_rows``, that the ledger's newest answer stands for."""
    block: DeclaredBlock | None = None
    """In which block each row is."""
    rules: tuple[str | Mapping[str, Any], ...] = ()
    """What every row keeps, as everybody may know: synthetic rows are made to (`dither.synth`)."""


@dataclass(frozen=True, slots=True)
class Policy:
    """A whole policy.

    Parameters
    ----------
    budget : BudgetFilter
        What all releases together may cost.
    release_delta : Fraction
        The delta that one release may use unless it says otherwise.
    quotas : Quotas
        What single analysts, groups and purposes may cost, and a question or a window of time.
    ledger : Path or LedgerSchema
    replace_one : bool
        Neighbours replace a unit, instead of adding or removing one.
    tables : mapping of str to DeclaredTable
    units : mapping of str to TableUnit
        By private table: whom it holds.
    engine : mapping
        The ``name`` of the engine of sources that name none, and what engines are opened with.
    owner : DeclaredOwner
        The owner's key, and the checkpoint that the ledger must hold.
    releases : DeclaredReleases
        Who may see an answer.
    folder : Path
        What relative paths start from.
    digest : str
        SHA-256 of the policy's content, but for ``owner`` and ``around``: nothing of these changes
        an answer.
    per_block : bool
        ``budget`` is one of each block of a unit's rows.
    lifetime : BudgetFilter, optional
        What all blocks together may cost, where the budget is of each.
    calendars : mapping of str to Calendar
        By unit whose rows lie in blocks: how they are cut.
    around : mapping of str to mapping
        The sections ``[service]``, ``[collect]``, ``[publish]`` and ``[schedule]`` as they are
        written: `dither.service` reads them.
    """

    budget: BudgetFilter
    release_delta: Fraction
    quotas: Quotas
    ledger: Path | LedgerSchema
    replace_one: bool
    tables: Mapping[str, DeclaredTable]
    units: Mapping[str, TableUnit]
    engine: Mapping[str, Any]
    owner: DeclaredOwner
    releases: DeclaredReleases
    folder: Path
    digest: str
    per_block: bool = False
    lifetime: BudgetFilter | None = None
    calendars: Mapping[str, Calendar] = made_by(default_factory=dict)
    around: Mapping[str, Mapping[str, Any]] = made_by(default_factory=dict)

    @property
    def block_budgets(self) -> Mapping[str, BlockBudget]:
        """By unit whose rows lie in blocks: the budget of each block, and of all."""
        return {
            unit: BlockBudget(calendar, self.budget, self.lifetime)
            for unit, calendar in self.calendars.items()
        }

    def promise(self, unit: str) -> Promise:
        """What an account of this unit is bound to."""
        return Promise(unit, Neighbours.REPLACE if self.replace_one else Neighbours.ADD_REMOVE)

    @property
    def loose(self) -> list[str]:
        """Why delta is too large to promise anything, by what the policy itself says; mostly empty.

        With delta of one over the number of people, publishing all of one person at random is
        within the promise.
        """
        told = []
        least: dict[str, int] = {}
        for unit in self.units.values():
            if unit.at_least is not None:
                least[unit.name] = max(unit.at_least, least.get(unit.name, 0))
        for name, number in least.items():
            if self.budget.delta * number >= 1:
                told.append(
                    f"budget.delta = {float(self.budget.delta):g} is not below one over "
                    f"the {number:,} units ({name}) that there are at least: it would allow to "
                    f"publish some of them whole. Choose {1 / (100 * number):.1g} or less"
                )
        return told

    @property
    def learns(self) -> bool:
        """Whether something that it would declare is learned from the data instead."""
        tables = self.tables.values()
        return any(t.learned or any(c.learned for c in t.columns.values()) for t in tables)


@dataclass(frozen=True, slots=True)
class PolicyText:
    """A policy's file as it was read once, whatever stands there by now.

    Parameters
    ----------
    path : Path
        Of the file; relative paths start from its folder.
    text : str
    """

    path: Path
    text: str

    @classmethod
    def read(cls, path: Path) -> PolicyText:
        """Read a file.

        Raises
        ------
        PolicyError
            There is none, or it cannot be read.
        """
        with looked_at(path, PolicyError):
            folder, file = path.is_dir(), path.is_file()
        if folder:
            raise PolicyError(f"{str(path)!r} is a folder; name the policy in it")
        if not file:
            raise PolicyError(
                f"no policy at {str(path)!r}; draft one with: dither init SOURCE --out {path.name}"
            )
        try:
            return cls(path.resolve(), path.read_text(encoding="utf-8-sig"))
        except UnicodeDecodeError:
            raise PolicyError(f"{path.name} is not valid TOML: it is not UTF-8") from None
        except OSError:
            raise PolicyError(f"{path.name} cannot be read: see that you may read it") from None

    def document(self) -> dict[str, Any]:
        """What it says.

        Raises
        ------
        PolicyError
            It is no TOML.
        """
        name = self.path.name
        try:
            return tomllib.loads(self.text, parse_float=Decimal)
        except tomllib.TOMLDecodeError as error:
            raise PolicyError(f"{name} is not valid TOML: {error}") from None
        except (ValueError, RecursionError):
            raise PolicyError(
                f"{name} cannot be read: a number in it is too long, or lists nest too deep"
            ) from None


def read_policy(
    policy: str | Path | PolicyText | Mapping[str, Any], *, within: Path | None = None
) -> Policy:
    """Read and check a policy.

    Parameters
    ----------
    policy : path, PolicyText or mapping
        A TOML file, or what was read of one; or a dictionary of the same shape.
    within : Path, optional
        Where paths of a dictionary start; the current folder where it is left out.

    Raises
    ------
    PolicyError
        Where the policy is missing, malformed, contradictory or incomplete; names the field.
    """
    if isinstance(policy, Mapping):
        document, folder = _native(policy), within or Path.cwd()
    elif isinstance(policy, str | Path | PolicyText):
        if not isinstance(policy, PolicyText):
            policy = PolicyText.read(as_path(policy, "the policy's name"))
        document, folder = policy.document(), policy.path.parent
    else:
        raise ArgumentError("policy must be the path of a TOML file, or a dictionary of its shape")
    _check_texts(document)
    top = Reader(document, "the policy")
    units = read_units(top.section("units"))
    engine = read_engine(Reader(top.section("engine"), "engine"), folder)
    tables = {
        name: _table(name, Reader(body, f"tables.{name}"), units, engine["name"])
        for name, body in top.section("tables", required=True).items()
    }
    if not any(t.private for t in tables.values()):
        raise PolicyError("the policy has no private table: there is nothing to protect")
    spending = Reader(top.section("budget", required=True), "budget")
    budget = read_budget(spending, None)
    release_delta = spending.number("release_delta", budget.delta / 16)
    if not 0 <= release_delta <= budget.delta:
        raise PolicyError("budget.release_delta must lie in [0, delta]")
    neighbours = spending.choice("neighbours", NEIGHBOURS, "add_remove")
    ledger = _ledger(spending, folder)
    owner = read_owner(Reader(top.section("owner"), "owner"), spending, folder)
    releases = read_releases(Reader(top.section("releases"), "releases"))
    per_block, lifetime = _per_block(spending, budget)
    spending.finish()
    check_units(units, tables, replace_one=neighbours == "replace_one")
    held = {
        name: unit_of(name, t.unit, units, t.units_at_least)
        for name, t in tables.items()
        if t.private
    }
    held = units_in_blocks(tables, held, per_block=per_block)
    check_sources(tables, held, folder)
    quotas = read_quotas(top, budget, per_block=per_block, lifetime=lifetime)
    around = {name: top.section(name) for name in AROUND}
    top.finish()
    return Policy(
        budget=budget,
        release_delta=release_delta,
        quotas=quotas,
        ledger=ledger,
        replace_one=neighbours == "replace_one",
        tables=tables,
        units=held,
        engine=engine,
        owner=owner,
        releases=releases,
        folder=folder,
        digest=policy_digest(document),
        per_block=per_block,
        lifetime=lifetime,
        calendars=calendars_of(tables, held),
        around={name: section for name, section in around.items() if section},
    )


def schema_of(
    policy: Policy,
    found: Mapping[str, Mapping[str, Kind | None]],
    incomplete: Collection[str] = (),
    unread: Mapping[str, Mapping[str, str]] = MappingProxyType({}),
    lists: Mapping[str, Mapping[str, Kind]] = MappingProxyType({}),
    zoned: Mapping[str, Collection[str]] = MappingProxyType({}),
) -> Schema:
    """Join what the policy declares with the columns that the sources have.

    Parameters
    ----------
    policy : Policy
    found : mapping
        By table: the columns of its source and their kinds, ``None`` where the type is not read.
    incomplete : collection of str
        Tables of which some rows may not be read.
    unread : mapping
        By table: columns that are not read, and why.
    lists : mapping
        By table: columns that hold lists, and the kinds of their elements.
    zoned : mapping
        By table: columns that hold moments with a time zone.

    Raises
    ------
    PolicyError
        Where a declared column is not in the source, or its kind cannot be what is declared.
    """
    tables, calendars = {}, policy.calendars
    for name, declared in policy.tables.items():
        kinds, elements = found[name], lists.get(name, {})
        reasons = unread.get(name, {})
        keys = [(key,) if isinstance(key, str) else key for key in declared.unique]
        for field, names in (("unit", (declared.unit,)), *(("unique", key) for key in keys)):
            for column in names:
                if column is not None:
                    _check_column(column, kinds, f"tables.{name}.{field}", reasons)
        columns: dict[str, ColumnFacts] = {
            column: _undeclared(column, kind, declared)
            for column, kind in kinds.items()
            if kind is not None and column not in declared.columns
        }
        unnested = {column: ColumnFacts(column, kind) for column, kind in elements.items()}
        for column, facts in declared.columns.items():
            where = f"tables.{name}.columns.{column}"
            of, into = (elements, unnested) if column in elements else (kinds, columns)
            if facts.max_items is not None and column not in elements:
                raise PolicyError(f"{where}.max_items is for columns that hold lists")
            into[column] = resolve_in(declared, facts, of, where, reasons)
        in_blocks = declared.private and policy.units[name].name in calendars
        tables[name] = Table(
            name=name,
            columns=columns,
            private=declared.private,
            unit=declared.unit,
            max_groups=declared.max_groups,
            max_rows=declared.max_rows,
            unique=frozenset(declared.unique),
            max_join_rows=declared.max_join_rows,
            max_unnest_rows=declared.max_unnest_rows,
            max_groups_cap=declared.max_groups_cap,
            max_rows_cap=declared.max_rows_cap,
            unread={column: why for column, why in reasons.items() if column not in columns},
            lists=unnested,
            complete=name not in incomplete,
            unit_name=policy.units[name].name if declared.private else None,
            unit_rows=policy.units[name].rows if declared.private else 1,
            block=block_of(declared, columns, kinds, zoned.get(name, ())),
            one_block=in_blocks and declared.block is None,
        )
    told = {unit: found.describe() for unit, found in policy.block_budgets.items()}
    return Schema(tables, policy.replace_one, promised=told)


def resolve_in(
    table: DeclaredTable,
    declared: DeclaredColumn,
    found: Mapping[str, Kind | None],
    where: str,
    unread: Mapping[str, str] = MappingProxyType({}),
) -> ColumnFacts:
    """As ``resolve``, of a column of a table: what the table says of all values holds there too."""
    reading = table.reading
    if declared.name == table.unit:
        reading, _ = of_unit(reading, declared.reading, where)
    return resolve(declared, found, where, unread, reading)


def _undeclared(column: str, kind: Kind, table: DeclaredTable) -> ColumnFacts:
    """A column of which the policy says nothing but what its table does."""
    reading = table.reading
    if column == table.unit:
        reading, _ = of_unit(reading, {}, column)
    said = reading_of(reading, {}, kind, f"tables.{table.name}") if kind is Kind.TEXT else None
    return ColumnFacts(column, kind, reading=said)


def _check_column(
    column: str, kinds: Mapping[str, Kind | None], where: str, unread: Mapping[str, str]
) -> None:
    if column not in kinds:
        known = [name for name in kinds if name not in unread]
        raise PolicyError(f"{where}: the source has no column {column!r}" + nearest(column, known))
    if column in unread:
        raise PolicyError(f"{where}: {column!r} is not read: {unread[column]}")


def _check_texts(value: Any, within: str = "") -> None:
    """Refuse texts that the ledger, the engine or a release could not write.

    ``within``: a field whose texts are not shown, since a password could stand in one by mistake.
    """
    if isinstance(value, Mapping):
        for name, inner in value.items():
            _check_texts(name)
            hidden = name in ("source", "ledger") and isinstance(inner, Mapping)
            _check_texts(inner, name if hidden else within)
    elif isinstance(value, list):
        for inner in value:
            _check_texts(inner, within)
    elif isinstance(value, str):
        fault = unwritable(value)
        if fault is not None:
            shown = f"text in {within}" if within else f"text {value[:40]!r}"
            raise PolicyError(f"the policy's {shown} {fault}")


def _native(value: Any) -> Any:
    """A dictionary with what TOML could have said: numbers and arrays of numpy, ranges, tuples."""
    if isinstance(value, Mapping):
        return {name: _native(inner) for name, inner in value.items()}
    if isinstance(value, list | tuple | range):
        return [_native(inner) for inner in value]
    if type(value).__module__ == "numpy" and hasattr(value, "tolist"):
        return _native(value.tolist())
    return value


def _ledger(spending: Reader, folder: Path) -> Path | LedgerSchema:
    given = spending.take("ledger")
    if not isinstance(given, Mapping):
        given = spending.required_text("ledger")
    try:
        place = read_place(given, spending.name("ledger"))
    except ArgumentError as error:
        raise PolicyError(str(error)) from None
    return folder / place if isinstance(place, Path) else place


def _per_block(spending: Reader, budget: BudgetFilter) -> tuple[bool, BudgetFilter | None]:
    """Whether the budget is one of each block, and what all of them together may cost."""
    per = spending.text("per")
    if per not in (None, "block"):
        raise PolicyError(f"budget.per has no option {per!r}" + nearest(per or "", ["block"]))
    body = spending.section("lifetime")
    if not body:
        return per is not None, None
    if per is None:
        raise PolicyError(
            'budget.lifetime is for budgets of each block (per = "block"): without blocks epsilon '
            "is for all time already; leave it out"
        )
    part = Reader(body, "budget.lifetime")
    lifetime = read_budget(part, budget)
    part.finish()
    for field in ("epsilon", "delta"):
        if getattr(lifetime, field) < getattr(budget, field):
            raise PolicyError(
                f"budget.lifetime.{field} is below budget.{field}, so that no block could ever "
                "spend what it has; raise the one, or lower the other"
            )
    return True, lifetime


def _rules(body: Reader) -> tuple[str | Mapping[str, Any], ...]:
    """Rules of rows in their form; what they name is looked at where rows are made."""
    found = body.take("rules")
    if found is None:
        return ()
    for rule in found if isinstance(found, list | tuple) and found else [None]:
        mapping = isinstance(rule, Mapping) and set(rule) in (
            {"if", "then", "map"},
            {"columns", "allowed"},
        )
        if not (isinstance(rule, str) or mapping):
            raise PolicyError(
                f'{body.name("rules")} must be comparisons, as "end >= start", or tables, as '
                '{ if = "zip", then = "state", map = { "02139" = "MA" } } and '
                '{ columns = ["sex", "ward"], allowed = [["f", 1], ["m", 2]] }'
            )
    return tuple(found)


def _table(
    name: str, body: Reader, units: Mapping[str, DeclaredUnit], engine: str
) -> DeclaredTable:
    public = body.flag("public", False)
    unit = body.text("unit")
    for declared_unit in units.values():
        column = declared_unit.columns.get(name)
        if column is not None and unit not in (None, column):
            raise PolicyError(
                f"units.{declared_unit.name}.columns.{name} and {body.name('unit')} name two "
                "columns; leave one of the fields out"
            )
        unit = unit if column is None or public else column
    learned = tuple(f for f in ("max_groups", "max_rows") if body.take(f) == LEARNED)
    caps = {
        field: 1 if field in learned else body.whole(field, MOST.get(field, 2**31))
        for field in LIMITS
    }
    unique = body.keys("unique")
    columns = {
        column: read_column(column, Reader(fields, f"{body.where}.columns.{column}"))
        for column, fields in body.section("columns").items()
    }
    declared = DeclaredTable(
        name=name,
        source=read_source(body, engine),
        private=not public,
        unit=unit,
        max_groups=caps["max_groups"] or 1,
        max_rows=caps["max_rows"] or 1,
        max_join_rows=caps["max_join_rows"],
        max_unnest_rows=caps["max_unnest_rows"] or MOST_UNNESTED,
        max_groups_cap=caps["max_groups_cap"],
        max_rows_cap=caps["max_rows_cap"],
        unique=unique,
        columns=columns,
        reading=read_reading(body),
        units_at_least=body.whole("units_at_least", MOST_UNITS),
        learned=learned,
        block=read_block(body),
        rules=_rules(body),
    )
    body.finish()
    given = [field for field, value in caps.items() if value is not None]
    counted = "units_at_least" if declared.units_at_least is not None else None
    for field in ("unit" if unit else None, counted, *given):
        if public and field:
            raise PolicyError(
                f"{body.where}.{field} contradicts public = true: a public table protects nobody"
            )
    if not public and unique:
        raise PolicyError(f"{body.where}.unique is for public tables")
    if unit is None and given:
        raise PolicyError(
            f"{body.where}.{given[0]} has no meaning where a row is a person; declare unit = "
            f"the column that says who is protected, or leave {given[0]} out"
        )
    for field in ("max_groups", "max_rows"):
        if unit is not None and caps[field] is None:
            raise PolicyError(
                f"{body.where}.{field} is missing: with unit = {unit!r} one person may have many "
                f"rows, so say how many {'groups' if field == 'max_groups' else 'rows per group'} "
                f"count"
            )
        cap = caps[f"{field}_cap"]
        if unit is not None and cap is not None and cap < (caps[field] or 1):
            raise PolicyError(
                f"{body.where}.{field}_cap is below {field}, which every question may use; raise it"
            )
    return declared
