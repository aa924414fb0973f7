"""What a table can be read from on Spark, and how it becomes a view of the engine's session.

A table or view of a catalog, the path of Parquet or ORC files, or a frame. Each carries its schema.
Text (CSV, JSON) does not: to find its types Spark would read its values, and a malformed row fails
or goes missing; it is written to Parquet first.

The files below a source are listed when it is opened, with their sizes and times, and all queries
of one release read that list. It is compared before each charge and after each release: what a
release computes in several queries is computed from the same rows. Tables that keep snapshots of
themselves (Delta, Iceberg) are compared by their columns.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, replace
from typing import Any
from urllib.parse import unquote, urlsplit

from dither.engines import TableSource
from dither.engines.identity import of_files
from dither.engines.spark.dialect import SPARK
from dither.engines.spark.parted import Part, parts_of, read_parted
from dither.engines.spark.plans import Read, read_plan
from dither.engines.spark.sessions import Sessions, is_remote
from dither.engines.writer.rows import Stored
from dither.errors import PolicyError
from dither.plan.text import unwritable

__all__ = ["Attached", "attach", "layout", "quoted"]

CHAR = "__CHAR_VARCHAR_TYPE_STRING"
"""Under which Spark keeps that a text is a CHAR."""

TWICE = (
    "two of its columns have one name but for upper and lower case, and Spark takes them for one; "
    "write it anew with names that differ otherwise"
)

NO_SETTING = (
    "Spark's readers put the value of a setting in the place of ${...} in a name, and would read "
    "another column, or none; rename it"
)

PROVIDERS = {"parquet", "orc", "delta", "iceberg"}
LISTED_TABLES = {"MANAGED", "EXTERNAL"}


@dataclass(frozen=True, slots=True)
class Attached:
    """A source that was opened.

    Parameters
    ----------
    stored : Stored
    listing : object
        The files below it, to see whether they are still the same.
    roots : tuple of str
        Where these lie.
    places : frozenset of str
        What is one for all names of the same rows.
    name : str, optional
        The table's name, where it has columns that may change.
    parts : frozenset, optional
        The files below, where their folders are named by the column of blocks.
    form : str
        What these are.
    """

    stored: Stored
    listing: Any
    roots: tuple[str, ...]
    places: frozenset[str]
    name: str | None = None
    parts: frozenset[Part] | None = None
    form: str = "parquet"

    @property
    def sources(self) -> dict[str, str]:
        """What a ledger knows the rows by."""
        found: dict[str, str] = {}
        for place in sorted(self.places):
            scheme, path = urlsplit(place).scheme, unquote(urlsplit(place).path)
            if scheme in ("", "file") and "/" in path:
                found |= of_files(path)
            else:
                found[f"spark:{place}"] = ""
        return found


def quoted(name: str) -> str:
    """A name as a quoted SQL identifier."""
    return "`" + name.replace("`", "``") + "`"


def attach(sessions: Sessions, number: int, name: str, table: TableSource) -> Attached:
    """Make the rows of a source a view of the engine's own session.

    Raises
    ------
    PolicyError
        Where it is not there, or is not what can be protected.
    """
    where = f"tables.{name}.source"
    view = f"dither_source_{number}"
    frame, found, catalog, key = _frame(sessions, table, where)
    shown = f"{where}" if not isinstance(table.source, str) else f"{where} {table.source!r}"
    if found is None:
        plan = frame._jdf.queryExecution().analyzed()
        found = read_plan(plan, frame.sparkSession._jvm, shown)
        computed = _computed(plan, found)
        jvm, own = sessions.own._jvm, sessions.own
        moved = jvm.org.apache.spark.sql.classic.Dataset.ofRows(own._jsparkSession, plan)
        moved.createOrReplaceTempView(view)
    else:
        computed = frozenset()
        frame.createOrReplaceTempView(view)
    fields = list(frame.schema.fields)
    stored = _stored(view, fields, computed, shown)
    if key is not None:
        parts = parts_of(sessions.own, found.roots)
        stored = replace(stored, parted_by=key)
        attached = Attached(
            stored, None, found.roots, frozenset(found.places), catalog, parts, _form(table)
        )
        return _with_twin(sessions.own, attached, f"dither_empty_{number}")
    listing = _listing(sessions.own, found.roots)
    attached = Attached(stored, listing, found.roots, frozenset(found.places), catalog)
    return _with_twin(sessions.own, attached, f"dither_empty_{number}")


def _frame(
    sessions: Sessions, table: TableSource, where: str
) -> tuple[Any, Read | None, str | None, str | None]:
    """The frame of a source; what it reads, where its plan is not to be asked; its table's name;
    the column of blocks, where its folders are named by that.
    """
    source = table.source
    if not isinstance(source, str):
        if is_remote(source):
            raise PolicyError(
                f"{where}: a frame of Spark Connect does not show how it was made; name its table "
                "or its files instead"
            )
        if source.sparkSession.sparkContext.applicationId != _application(sessions):
            raise PolicyError(f"{where}: the frame belongs to another Spark than the session")
        return source, None, None, None
    try:
        if table.format != "table" or "/" in source:
            frame, key = _of_files(sessions.own, source, _form(table), where, table.block)
            remote = Read((source,), {source}) if is_remote(sessions.own) else None
            return frame, remote, None, key
        if is_remote(sessions.own):
            return *_listed_table(sessions, source, where), source, None
        return sessions.users.table(source), None, source, None
    except PolicyError:
        raise
    except Exception as error:
        if _is_twice(error):
            raise PolicyError(f"{where}: {TWICE}") from None
        raise PolicyError(
            f"{where}: Spark finds no table or readable file {source!r}; see that its name is "
            "whole, that it may be read, and that files of one table have columns of one type"
        ) from None


def _is_twice(error: Exception) -> bool:
    """Whether Spark refuses a source since it has a column twice."""
    condition = getattr(error, "getCondition", lambda: None)
    return condition() == "COLUMN_ALREADY_EXISTS"


def _application(sessions: Sessions) -> str | None:
    return None if is_remote(sessions.own) else str(sessions.own.sparkContext.applicationId)


def _form(table: TableSource) -> str:
    return "orc" if table.format == "orc" else "parquet"


def _of_files(
    session: Any, path: str, form: str, where: str, block: str | None
) -> tuple[Any, str | None]:
    if not path.startswith("/") and "://" not in path and not re.match(r"\w+:/", path):
        raise PolicyError(
            f"{where}: {path!r} must be the whole path, such as /data/visits.parquet or "
            "s3a://bucket/visits: where Spark runs, the policy's folder is not known"
        )
    parted = None if block is None else read_parted(session, path, form, block)
    if parted is not None:
        return parted, block
    # Footers are read, and files whose columns do not fit together are refused.
    return session.read.format(form).option("mergeSchema", "true").load(path), None


def _listed_table(sessions: Sessions, name: str, where: str) -> tuple[Any, Read]:
    """A table by what its catalog says of it, where a plan cannot be seen."""
    own, users = sessions.own, sessions.users
    own.catalog.setCurrentCatalog(users.catalog.currentCatalog())
    own.catalog.setCurrentDatabase(users.catalog.currentDatabase())
    parts = ".".join(quoted(part) for part in name.split("."))
    rows = own.sql(f"DESCRIBE TABLE EXTENDED {parts}").collect()
    about = {row[0]: row[1] for row in rows}
    if about.get("Type") not in LISTED_TABLES or about.get("Provider", "").lower() not in PROVIDERS:
        raise PolicyError(
            f"{where}: {name!r} is not a table of Parquet, ORC, Delta or Iceberg; over Spark "
            "Connect a view does not show how it was made, so name the table itself"
        )
    location = about.get("Location")
    snapshots = about["Provider"].lower() in ("delta", "iceberg")
    roots = () if snapshots or not location else (location,)
    return own.table(name), Read(roots, {location or name})


def _computed(plan: Any, found: Read) -> frozenset[str]:
    output = plan.output()
    attributes = [output.apply(i) for i in range(output.size())]
    return frozenset(a.name() for a in attributes if int(a.exprId().id()) in found.computed)


def _stored(view: str, fields: list[Any], computed: frozenset[str], shown: str) -> Stored:
    types: dict[str, str | None] = {}
    unread: dict[str, str] = {}
    names = [f.name for f in fields]
    counted = [n.casefold() for n in names]
    for position, one in enumerate(fields, start=1):
        fault = unwritable(one.name)
        if fault is not None:
            raise PolicyError(f"{shown}: the name of its column {position} {fault}")
        kind = one.metadata.get(CHAR) or one.dataType.simpleString()
        types[one.name] = kind
        if counted.count(one.name.casefold()) > 1:
            raise PolicyError(f"{shown}: {TWICE}")
        if "${" in one.name:
            types[one.name] = None
            unread[one.name] = NO_SETTING
    layout_ = tuple((f.name, f.dataType.simpleString()) for f in fields)
    return Stored(view, types, unread, computed, layout=layout_)


def _with_twin(session: Any, attached: Attached, view: str) -> Attached:
    """Make an empty table with the same columns."""
    columns = [
        f"CAST(NULL AS {_written(kind)}) AS {quoted(name)}"
        for name, kind in attached.stored.types.items()
        if kind is not None and (SPARK.kind_of_type(kind) or SPARK.element_of(kind)) is not None
    ]
    made = session.sql(f"SELECT {', '.join(columns) or 'TRUE AS none'} WHERE FALSE")
    made.createOrReplaceTempView(view)
    return replace(attached, stored=replace(attached.stored, empty=view))


def _written(kind: str) -> str:
    return "STRING" if kind.startswith(("char(", "varchar(")) else kind


def layout(sessions: Sessions, attached: Attached) -> tuple[Any, Any]:
    """The columns and files that a source has now."""
    columns = attached.stored.layout
    if attached.name is not None:
        sessions.users.catalog.refreshTable(attached.name)
        found = sessions.users.table(attached.name).schema.fields
        columns = tuple((f.name, f.dataType.simpleString()) for f in found)
    return columns, _listing(sessions.own, attached.roots)


def _listing(session: Any, roots: tuple[str, ...]) -> Any:
    """The files below, with their sizes and times."""
    if not roots:
        return ()
    if is_remote(session):
        reader = session.read.format("binaryFile").option("recursiveFileLookup", "true")
        asked = reader.load(list(roots)).selectExpr(
            "count(*)", "sum(length)", "bit_xor(xxhash64(path, length, modificationTime))"
        )
        return tuple(asked.collect()[0])
    reader = session.read.format("binaryFile").option("recursiveFileLookup", "true")
    relation = reader.load(list(roots))._jdf.queryExecution().analyzed().relation()
    return tuple(sorted(relation.location().allFiles().mkString("\n").splitlines()))
