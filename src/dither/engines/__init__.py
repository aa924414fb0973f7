"""Engines run the exact part of a plan and hand over integers; ``dither.query`` adds the noise.

- here: what every engine offers, and which engines a policy can name.
- ``sql_engine``: what engines that are asked in SQL do alike.
- ``writer``: a job as SQL, in the dialect of any of them.
- ``deadline``: the end of a statement that takes too long.
- ``files``: the files of one table, where it is more than one.
- ``identity``: what is one for all names of the same rows, from one session to the next.
- ``several``: the engines of a policy whose tables lie in more than one.
- ``duckdb``: the embedded engine, what it reads, and how it is locked in.
- ``postgres``: a PostgreSQL server, in which the exact part runs.
- ``spark``: a cluster, or what runs on this machine without one.

A new engine supplies a ``writer.Dialect``, a ``sql_engine.SQLEngine``, and the ``Backend`` by which
policies name it.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Collection, Hashable, Mapping, Sequence
from dataclasses import dataclass, field
from importlib import import_module
from typing import Any, Self

from dither.engines.files import Named, sample_names
from dither.errors import PolicyError, UnsupportedError, nearest
from dither.plan.answers import ExactAnswer
from dither.plan.job import Job
from dither.plan.schema import ColumnFacts, Kind, Schema, Value

__all__ = ["Backend", "Engine", "Format", "Lost", "TableSource", "backend", "register"]

FAILED = (
    "the engine could not compute the answer; what was charged stays charged. "
    "Ask the data owner to check the source, and [engine] memory, temp and timeout"
)
"""What an engine says of any failure, whatever it was."""


@dataclass(frozen=True, slots=True)
class Lost:
    """How much of a column is lost as it is read: exact, for the owner of the data alone.

    Parameters
    ----------
    column : str
    file : str, optional
        Of which file, where a table has several that the engine can tell apart.
    said : int
        Values that are there: not NULL, and no text that stands for it.
    unread : int
        Those of them that cannot be read as the column's kind.
    unlisted : int
        Those that can, and match no key: not one of the declared values, or in none of the bins.
    """

    column: str
    file: str | None
    said: int
    unread: int
    unlisted: int


class Engine(ABC):
    """Runs the exact part of a plan.

    Only ``dither.query`` may call ``run``, and the owner's report, ``dither.policy._owner_report``.
    """

    @abstractmethod
    def describe(self, table: str) -> Mapping[str, Kind | None]:
        """The columns of a table and their kinds, from its schema and never from its values.

        ``None``: a type that dither does not read.
        """

    def lists(self, table: str) -> Mapping[str, Kind]:
        """The columns of a table that hold lists, and the kinds of their elements."""
        return {}

    def zoned(self, table: str) -> frozenset[str]:
        """The columns of a table that hold moments with a time zone."""
        return frozenset()

    def labels(self, table: str) -> Mapping[str, tuple[str, ...]]:
        """The columns of a table whose type lists its own values (an enumeration), and these."""
        return {}

    @abstractmethod
    def complete(self, table: str) -> bool:
        """Whether every row of the table is read, whatever it holds.

        Where it is not, the number of rows read is not the number of rows there are.
        """

    @abstractmethod
    def unread(self, table: str) -> Mapping[str, str]:
        """Why columns of a table cannot be read, and what would help."""

    def nobody(self, table: str) -> str:
        """Which people's rows are nobody's for how the source is read, and what would help.

        By public facts alone; empty where that makes nobody of anyone.
        """
        return ""

    def places(self, table: str) -> frozenset[Hashable]:
        """What is one for all names of the same rows, where the engine can tell.

        Two tables that share a place share rows.
        """
        return frozenset()

    def sources(self, table: str) -> Mapping[str, str]:
        """What a ledger knows the rows of a table by (``engines.identity``), from public facts.

        Empty where the engine cannot tell.
        """
        return {}

    def check_together(self, tables: Collection[str]) -> None:
        """Refuse a question that reads tables which no one engine holds together.

        Raises
        ------
        UnsupportedError
            Naming a table on either side.
        """
        return

    @abstractmethod
    def public_rows(
        self, table: str, columns: Sequence[ColumnFacts]
    ) -> list[tuple[Value | None, ...]]:
        """Every row of some columns of a *public* table, in no order.

        Read as declared, just as a query reads them.

        Raises
        ------
        PolicyError
            Where the table has no such column, or it cannot be read as its kind.
        """

    def public_values(self, table: str, facts: ColumnFacts) -> tuple[Value | None, ...]:
        """Every value of a column of a *public* table, one for each row, in no order."""
        return tuple(value for (value,) in self.public_rows(table, [facts]))

    def lost(self, table: str, columns: Sequence[ColumnFacts]) -> list[Lost]:
        """How much of each column is lost as it is read, by file where that can be told.

        Exact figures of the data, without noise: for its owner alone.
        """
        raise UnsupportedError("what cannot be read is not counted on this engine")

    def left_out(self, table: str) -> Mapping[str, tuple[int, int]]:
        """By file of lines: how many are not read, and how many there are. For the owner alone."""
        return {}

    @abstractmethod
    def check(self, schema: Schema) -> None:
        """Hold the sources against the schema, reading no value of a private table.

        Raises
        ------
        PolicyError
            Where a column cannot be read as declared, or what is declared unique is not.
        """

    @abstractmethod
    def prepare(self, job: Job, schema: Schema) -> None:
        """Refuse a job that could not run, from public facts alone: before anything is charged.

        Raises
        ------
        DitherError
            As ``run`` would before it touches data.
        """

    @abstractmethod
    def run(self, job: Job, schema: Schema, key: bytes) -> ExactAnswer:
        """The exact answer to a job, with contributions bounded by a hash keyed with ``key``.

        Raises
        ------
        EngineError
            Always with the same message, whatever went wrong.
        """

    @abstractmethod
    def close(self) -> None:
        """Give back memory and files."""

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: Any) -> None:
        self.close()


# --- which engines there are ------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Format:
    """One of the forms that an engine's tables can have.

    Parameters
    ----------
    endings : tuple of str
        Names of sources that end so have this form, unless the policy declares another. The empty
        text is the end of every name.
    is_file : bool
        A source is the path of a file, which must be there.
    holds_tables : bool
        A source holds several tables, and the policy's ``table`` says which; else the table's own
        name does.
    delimited : bool
        The policy may name the character between fields.
    many : bool
        A source may be several files: a list of paths, a pattern or a folder (``engines.files``).
    pointed : bool
        It prints numbers of its own with a point, beside texts: the policy cannot say otherwise.
    secret : bool
        A source may hold a password, so it may be named as ``env:NAME``; the engine is handed a
        ``dither._environment.Secret``.
    fault : callable, optional
        From the text of a source in a policy to why it cannot stand there, without a word of it;
        ``None`` where it can.
    """

    endings: tuple[str, ...] = ()
    is_file: bool = True
    holds_tables: bool = False
    delimited: bool = False
    many: bool = False
    pointed: bool = False
    secret: bool = False
    fault: Callable[[str], str | None] | None = None


@dataclass(frozen=True, slots=True)
class TableSource:
    """Where the rows of one table are.

    Parameters
    ----------
    source : Path, str, Secret or object
        As the format has it; whatever the caller handed over where ``format`` is ``None``.
    format : str, optional
    table : str, optional
        Which table of the source, where it holds several.
    delimiter : str, optional
    unit : str, optional
        The column that says who is protected.
    columns : mapping of str to Kind or None
        The columns that the policy names, and the kinds that it declares of them.
    block : str, optional
        The column that says in which block a row is.
    """

    source: Any
    format: str | None = None
    table: str | None = None
    delimiter: str | None = None
    unit: str | None = None
    columns: Mapping[str, Kind | None] = field(default_factory=dict)
    block: str | None = None


@dataclass(frozen=True, slots=True)
class Backend:
    """An engine that policies can name: as ``[engine] name``, or ``source = { NAME = … }``.

    Its package is imported where a policy names it, so it must not import what may be missing.

    Parameters
    ----------
    name : str
    formats : mapping of str to Format
    open : callable
        From the engine's tables and the other fields of ``[engine]`` (``memory``, ``threads``,
        ``temp`` and ``timeout``, ``None`` where left out; ``options`` that are given; ``progress``,
        a function that may be called with the share done of a job, or ``None``; and ``owner``,
        whether the owner of the data asks, who may be told files apart) to an engine.
        Raises ``PolicyError`` where it cannot be.
    options : mapping of str to callable
        Fields of ``[engine]`` that are this engine's own: from the field's full name and its value
        to what ``open`` is handed. Raises ``PolicyError`` for a value that it does not take.
    is_frame : callable
        Whether an object in memory is a table of this engine; others are of ``[engine] name``.
    is_connection : callable
        Whether an object is a connection that ``open`` can use, as the field ``given``.
    differences : callable
        For the owner of the data alone: what sets files of a table apart from most of them.
    """

    name: str
    open: Callable[[Mapping[str, TableSource], Mapping[str, Any]], Engine]
    formats: Mapping[str, Format] = field(default_factory=dict)
    options: Mapping[str, Callable[[str, Any], Any]] = field(default_factory=dict)
    is_frame: Callable[[Any], bool] = lambda _: False
    is_connection: Callable[[Any], bool] = lambda _: False
    differences: Callable[[TableSource], Sequence[str]] = lambda _: ()

    def format_of(self, source: Named, declared: str | None, where: str) -> str:
        """The format of a source: as declared, else by its ending.

        Raises
        ------
        PolicyError
            Where there is none of that name or ending; ``where`` is what messages call the table.
        """
        if declared is not None:
            if declared not in self.formats:
                options = sorted(self.formats)
                raise PolicyError(
                    f"{where}.format has no option {declared!r}" + nearest(declared, options)
                )
            return declared
        try:
            return format_by_ending(source, self.formats)
        except PolicyError as error:
            raise PolicyError(f"{where}.source: {error}") from None


def format_by_ending(source: Named, formats: Mapping[str, Format]) -> str:
    """The format that a source's names end in; of a folder, that its files do.

    Raises
    ------
    PolicyError
        Where they end in none, or in two.
    """
    # What no file is named by is not looked for among the files.
    files = any(known.is_file for known in formats.values())
    found = dict.fromkeys(
        name
        for file in (sample_names(source) if files else [str(source)])
        for name, known in formats.items()
        if file.lower().endswith(known.endings or ("\x00",))
    )
    if "" in {ending for known in formats.values() for ending in known.endings}:
        # Of a format that any name may have, the first that fits is meant.
        found = dict.fromkeys(list(found)[:1])
    if not found:
        offered = " or ".join(sorted(formats))
        raise PolicyError(f"unknown ending; declare format = {offered}")
    if len(found) > 1:
        raise PolicyError(f"files of two formats ({' and '.join(found)}) cannot be one table")
    return next(iter(found))


_HOMES = {
    "duckdb": "dither.engines.duckdb",
    "postgres": "dither.engines.postgres",
    "spark": "dither.engines.spark",
}
"""By name, the package whose ``BACKEND`` is registered when it is first asked for."""

_REGISTERED: dict[str, Backend] = {}


def register(found: Backend) -> None:
    """Let policies name an engine; one of the same name is replaced."""
    _REGISTERED[found.name] = found


def engine_names() -> tuple[str, ...]:
    """The engines that a policy can name."""
    return tuple(sorted({*_HOMES, *_REGISTERED}))


def engine_of_frame(frame: Any, default: str) -> str:
    """The engine that an object in memory is a table of."""
    return next((n for n in engine_names() if backend(n).is_frame(frame)), default)


def backend(name: str) -> Backend:
    """The engine that a policy names.

    Raises
    ------
    PolicyError
        Where there is none of that name; the nearest is offered.

    Examples
    --------
    >>> sorted(backend("duckdb").formats)
    ['arrow', 'csv', 'duckdb', 'jsonl', 'parquet', 'sqlite']
    """
    if name not in _REGISTERED and name in _HOMES:
        register(import_module(_HOMES[name]).BACKEND)
    if name not in _REGISTERED:
        raise PolicyError(f"engine.name has no option {name!r}" + nearest(name, engine_names()))
    return _REGISTERED[name]
