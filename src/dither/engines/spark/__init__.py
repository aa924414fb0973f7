"""Spark: tables of a cluster, or of this machine's processors, asked where they are.

- ``dialect``: its SQL.
- ``sessions``: the session that questions run in, apart from everybody else's.
- ``plans``: which tables, views and frames are read, by their analysed plans.
- ``sources``: how each becomes a view of that session, and how a change is noticed.
- ``engine``: runs jobs, and reports progress.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Mapping
from typing import Any

from dither.engines import Backend, Engine, Format, TableSource
from dither.engines.deadline import TIMEOUT
from dither.errors import PolicyError

__all__ = ["BACKEND"]

FORMATS = {
    "parquet": Format((".parquet",), is_file=False),
    "orc": Format((".orc",), is_file=False),
    "table": Format(("",), is_file=False),
}


def _open(tables: Mapping[str, TableSource], options: Mapping[str, Any]) -> Engine:
    # Spark is imported where a policy names it, and nowhere else.
    from dither.engines.spark.engine import SparkEngine

    return SparkEngine(
        tables,
        options.get("given"),
        master=options.get("spark"),
        memory_limit=options.get("memory"),
        threads=options.get("threads"),
        temp_directory=options.get("temp"),
        timeout=options.get("timeout") or TIMEOUT,
        progress=options.get("progress"),
    )


def _master(where: str, value: Any) -> str:
    if not isinstance(value, str) or not value.startswith(MASTERS):
        raise PolicyError(
            f"{where} must say where Spark runs: 'local[*]', 'local[4]', 'spark://host:7077', "
            "'yarn', 'k8s://…', or 'sc://host:15002' for Spark Connect; a session is given to "
            "dt.open(engines={'spark': session}) instead"
        )
    return value


MASTERS = ("local", "spark://", "yarn", "k8s://", "sc://")


PLACES = ("pyspark.sql", "pyspark.sql.connect.dataframe", "pyspark.sql.connect.session")


def _is(name: str) -> Callable[[Any], bool]:
    """Whether an object is of pyspark's class of that name, be it of Spark Connect.

    Nothing is imported for it: an object has the module of its class loaded.
    """

    def test(given: Any) -> bool:
        found = (getattr(sys.modules.get(place), name, None) for place in PLACES)
        return isinstance(given, tuple(kind for kind in found if isinstance(kind, type)))

    return test


BACKEND = Backend(
    "spark",
    _open,
    FORMATS,
    {"spark": _master},
    is_frame=_is("DataFrame"),
    is_connection=_is("SparkSession"),
)
