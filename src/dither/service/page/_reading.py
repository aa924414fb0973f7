"""Reads a table that a visitor hands in, in a process of its own: it may be anything.

The bytes come in on the standard input, and the table goes out as an Arrow stream. The process has
little memory and little time, so that a file which unpacks to more than there is, or which breaks
what reads it, ends here and nothing else with it. It imports nothing of the service.
"""

from __future__ import annotations

import io
import os
import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import polars as pl

__all__ = ["UnreadableError", "table_in"]

MOST_ROWS = 100_000

MOST_COLUMNS = 200

MEMORY = 2**31
"""Bytes of addresses; the libraries alone take half of them."""

SECONDS = 20


class UnreadableError(Exception):
    """The bytes are no table that can be read here."""


def table_in(data: bytes, kind: str) -> pl.DataFrame:
    """The table that a file holds.

    Parameters
    ----------
    data : bytes
    kind : str
        ``"csv"`` or ``"parquet"``.

    Raises
    ------
    UnreadableError
        It holds none, or one that is too large; nothing of it is quoted.
    """
    import polars as pl

    environment = {**os.environ, "POLARS_MAX_THREADS": "1", "OMP_NUM_THREADS": "1"}
    try:
        ended = subprocess.run(
            [sys.executable, "-P", str(Path(__file__)), kind],
            input=data,
            capture_output=True,
            timeout=SECONDS,
            env=environment,
            check=False,
        )
    except (OSError, subprocess.TimeoutExpired):
        raise UnreadableError from None
    if ended.returncode:
        raise UnreadableError
    return pl.read_ipc_stream(io.BytesIO(ended.stdout))


def _main(kind: str) -> int:
    import resource

    resource.setrlimit(resource.RLIMIT_AS, (MEMORY, MEMORY))
    resource.setrlimit(resource.RLIMIT_CPU, (SECONDS, SECONDS))
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    import polars as pl

    data = io.BytesIO(sys.stdin.buffer.read())
    if kind == "csv":
        found = pl.read_csv(data, infer_schema_length=None, n_rows=MOST_ROWS + 1)
    else:
        lazy = pl.scan_parquet(data, hive_partitioning=False)
        if lazy.select(pl.len()).collect().item() > MOST_ROWS:
            return 3
        data.seek(0)
        found = pl.read_parquet(data, hive_partitioning=False)
    plain = (pl.String, pl.Boolean, pl.Date)
    kinds = found.dtypes
    fine = all(one in plain or one.is_numeric() or isinstance(one, pl.Datetime) for one in kinds)
    if found.height > MOST_ROWS or not 0 < found.width <= MOST_COLUMNS or not fine:
        return 3
    if found.estimated_size() > MEMORY // 16:
        return 3
    found.write_ipc_stream(sys.stdout.buffer)
    return 0


if __name__ == "__main__":
    try:
        code = _main(sys.argv[1])
    except BaseException:
        # What broke it is told to nobody: its words may quote the file.
        code = 3
    sys.stdout.flush()
    os._exit(code)
