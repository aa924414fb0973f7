"""A DuckDB connection that reads its sources and nothing else, and cannot be talked out of it.

Its optimizer may not look at statistics. A file's statistics are about all of its rows, so an
answer that rests on them lets one row decide what becomes of another. And they are not always true
of every row: Polars and Arrow leave NaN out of a Parquet file's smallest and largest value, from
which DuckDB would conclude that no value is NaN, or skip a row group that holds one. So what the
optimizer may do is a list, and whatever is not on it, in any version, is off. Filters then stay
above the scan of a source, which reads every row.

The list costs nothing that was found: on grouped sums over two million rows no other optimizer, nor
all of them together, made the engine's query faster than the spread between runs. What did was to
write less (``engines.writer.rows``): a list of values that nobody asks for is still looked up.
"""

from __future__ import annotations

import contextlib
import os
import threading
from collections.abc import Sequence
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING

from dither.engines.duckdb.dialect import SHORT_SUM
from dither.errors import ArgumentError

if TYPE_CHECKING:
    from duckdb import DuckDBPyConnection

__all__ = ["MOST_THREADS", "lock", "open_unlocked", "second", "shut", "shut_meanwhile"]

MOST_THREADS = 1024
"""Each is one of the machine's; billions are never made, and the call never returns."""

SETTINGS = {
    "autoinstall_known_extensions": "false",
    "autoload_known_extensions": "false",
    "allow_community_extensions": "false",
    "allow_persistent_secrets": "false",
    "python_enable_replacements": "false",
    # Expressions are total without it; it is a second line of defence.
    "error_on_division_by_zero": "false",
    # Nothing here depends on an order of rows.
    "preserve_insertion_order": "false",
    # Two threads that read ahead keep a cold disk busy. More hold parts of files in memory that
    # nobody is at yet, and gain nothing.
    "async_threads": "2",
}

OPTIMIZERS = frozenset(
    {
        # Reads only the columns that are needed.
        "unused_columns",
        # These look at the shape of a plan alone.
        *("column_lifetime", "common_aggregate", "common_subexpressions", "expression_rewriter"),
        *("cte_inlining", "in_clause", "materialized_cte", "unnest_rewriter"),
        # Looks at sizes, and decides which side of a join is kept in memory.
        "build_side_probe_side",
    }
)
"""What DuckDB's optimizer may do; none of it concludes anything from the values of a column."""


def open_unlocked(
    memory_limit: str | None, threads: int | None, temp_directory: str
) -> DuckDBPyConnection:
    """A connection to an empty database in memory, in UTC, before its sources are attached.

    Raises
    ------
    ArgumentError
        For a memory limit or a number of threads that DuckDB does not take.
    """
    import duckdb

    off = ",".join(sorted(_known()[0] - OPTIMIZERS))
    settings = dict(SETTINGS, temp_directory=temp_directory, disabled_optimizers=off)
    if memory_limit is not None:
        settings["memory_limit"] = memory_limit
    if threads is not None:
        if not 1 <= threads <= MOST_THREADS:
            raise ArgumentError(f"threads must be from 1 to {MOST_THREADS}, got {threads}")
        settings["threads"] = str(threads)
    try:
        connection = duckdb.connect(":memory:", config=settings)  # type: ignore[arg-type]
    except duckdb.Error:
        raise ArgumentError(
            "memory_limit must be a size such as '2GB', and temp_directory a folder"
        ) from None
    if not _has_short_sum():
        connection.execute(f"CREATE MACRO {SHORT_SUM}(x) AS SUM(x)")
    _set_own(connection)
    return connection


def second(connection: DuckDBPyConnection) -> DuckDBPyConnection:
    """Another connection to the same database, before it is locked, with tables of its own."""
    found = connection.cursor()
    _set_own(found)
    return found


def _set_own(connection: DuckDBPyConnection) -> None:
    """The settings that each connection has for itself."""
    import duckdb

    connection.execute("SET TimeZone = 'UTC'")
    # Progress is measured for anyone who asks for it, and never printed. In a notebook without
    # ipywidgets DuckDB refuses both settings, in either direction: there it measures nothing, and
    # prints nothing.
    with contextlib.suppress(duckdb.InvalidInputException):
        connection.execute("SET enable_progress_bar_print = false")
        connection.execute("SET enable_progress_bar = true")


@cache
def _known() -> tuple[frozenset[str], bool]:
    """What this DuckDB's optimizer can do, and whether others may ask for the sum that it keeps for
    itself. A connection takes much longer to make than to ask, so one is asked for both."""
    import duckdb

    with duckdb.connect() as connection:
        found = connection.execute("FROM duckdb_optimizers()").fetchall()
        try:
            summed = connection.execute(f"SELECT {SHORT_SUM}(40 + 2)").fetchall() == [(42,)]
        except duckdb.Error:
            summed = False
    return frozenset(name for (name,) in found), summed


def _has_short_sum() -> bool:
    return _known()[1]


def lock(connection: DuckDBPyConnection, files: Sequence[Path]) -> None:
    """Lock it: only the named files and spilled temporary ones, and no setting changes."""
    listed = ", ".join("'" + str(f).replace("'", "''") + "'" for f in files)
    connection.execute(
        f"SET allowed_paths = [{listed}]; SET enable_external_access = false; "
        "SET lock_configuration = true"
    )


Connections = Sequence["DuckDBPyConnection | None"]


def shut(connections: Connections) -> None:
    """Close connections that are of no use any more, whatever state they are in."""
    for connection in connections:
        if connection is not None:
            with contextlib.suppress(Exception):
                connection.close()


_shutting: list[threading.Thread] = []


def shut_meanwhile(connections: Connections) -> None:
    """As ``shut``, in a thread of which there is one at a time.

    The interpreter waits for it when it ends, and so does a fork, in whose child it would be gone.
    """
    wait_until_shut()
    thread = threading.Thread(target=shut, args=(connections,), name="dither-duckdb-close")
    try:
        thread.start()
    except RuntimeError:
        # The interpreter is ending, and begins no more threads.
        shut(connections)
    else:
        _shutting.append(thread)


def wait_until_shut() -> None:
    """Return once the connections that were to be closed meanwhile are closed."""
    with contextlib.suppress(IndexError):
        while True:
            _shutting.pop().join()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(before=wait_until_shut)
