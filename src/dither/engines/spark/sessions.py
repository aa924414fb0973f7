"""The session that questions run in: Spark's own, apart from the user's settings and views.

Each engine has a session of its own beside the user's: the same cluster, tables and memory, but
settings that nobody else's change and that change nobody else's. What it sets is the meaning of
SQL (ANSI mode, UTC, what a type is called), and that no statistics of a file decide which rows are
read: writers leave NaN out of a column's largest value, and a filter that believes it skips rows.
"""

from __future__ import annotations

import contextlib
import logging
import os
import shutil
import threading
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from dither._extras import extra_library
from dither.errors import PolicyError

__all__ = ["Sessions", "is_remote", "open_sessions", "quietly"]

SETTINGS = {
    "spark.sql.ansi.enabled": "true",
    "spark.sql.session.timeZone": "UTC",
    "spark.sql.timestampType": "TIMESTAMP_LTZ",
    "spark.sql.adaptive.enabled": "true",
    # How text is read as SQL. ${...} in a constant would be replaced by a setting.
    "spark.sql.variable.substitute": "false",
    "spark.sql.parser.escapedStringLiterals": "false",
    "spark.sql.ansi.doubleQuotedIdentifiers": "false",
    "spark.sql.groupByOrdinal": "false",
    "spark.sql.groupByAliases": "false",
    "spark.sql.lateralColumnAlias.enableImplicitResolution": "false",
    # What SQL means where Spark has changed its mind.
    "spark.sql.decimalOperations.allowPrecisionLoss": "true",
    "spark.sql.legacy.timeParserPolicy": "CORRECTED",
    "spark.sql.readSideCharPadding": "true",
    # What a file's values are, and that none of them makes a query fail: dates of old files too.
    "spark.sql.parquet.datetimeRebaseModeInRead": "CORRECTED",
    "spark.sql.parquet.int96RebaseModeInRead": "CORRECTED",
    "spark.sql.parquet.inferTimestampNTZ.enabled": "true",
    # A folder's name is text; to see whether it looks like a number is to read values.
    "spark.sql.sources.partitionColumnTypeInference.enabled": "false",
    # A unit's parts lie apart before they are brought together to be ranked: few of them would be
    # left out by ranking those of each task first, which sorts all of them once more.
    "spark.sql.optimizer.windowGroupLimitThreshold": "-1",
    # Rows that cannot be read are missed, never left out.
    "spark.sql.files.ignoreCorruptFiles": "false",
    "spark.sql.files.ignoreMissingFiles": "false",
    # No statistics of values.
    "spark.sql.parquet.filterPushdown": "false",
    "spark.sql.orc.filterPushdown": "false",
    "spark.sql.parquet.aggregatePushdown": "false",
    "spark.sql.orc.aggregatePushdown": "false",
    "spark.sql.cbo.enabled": "false",
    "spark.databricks.delta.stats.skipping": "false",
}

STACK = "-Xss8m"
"""Of the driver's threads: Spark reads SQL by recursion, and questions may nest."""

OLDEST_JAVA = 17


@dataclass(slots=True)
class Sessions:
    """A user's session, and the one that belongs to an engine.

    Parameters
    ----------
    users : SparkSession
        Where names of tables and views are looked up.
    own : SparkSession
        Where questions run.
    started : bool
        Whether the context was started for us, and is stopped with the last engine.
    given : bool
        Whether the user's session was handed over, and stays open.
    """

    users: Any
    own: Any
    started: bool
    given: bool

    def close(self) -> None:
        """Stop what was started; a session that was given stays open."""
        if self.started:
            _release()
        elif is_remote(self.own):
            # Stopping it would also stop a server that the user's session started.
            for session in (self.own,) if self.given else (self.own, self.users):
                with contextlib.suppress(Exception):
                    session.client.release_session()
                    session.client.close()


def is_remote(session: Any) -> bool:
    """Whether a session, or a frame, is one of Spark Connect."""
    return ".connect." in type(session).__module__


def open_sessions(
    given: Any,
    master: str | None,
    memory: str | None = None,
    threads: int | None = None,
    temp: str | None = None,
) -> Sessions:
    """A session of our own beside the one that is given, or that a policy names.

    Raises
    ------
    ArgumentError, PolicyError
        Where pyspark or Java is missing, Spark cannot be reached, or a context runs elsewhere.
    """
    _check_installed()
    started = False
    if given is not None:
        users = given
    elif master is not None and master.startswith("sc://"):
        users = _remote(master)
    else:
        users, started = _local(master or f"local[{threads or '*'}]", memory, temp)
    try:
        own = users.newSession()
        for name, value in SETTINGS.items():
            own.conf.set(name, value)
    except Exception:
        if started:
            _release()
        raise PolicyError(
            "the Spark session that was given is stopped, or its server cannot be reached; make "
            "a new one"
        ) from None
    return Sessions(users, own, started, given is not None)


def _check_installed() -> None:
    pyspark = extra_library("pyspark", "spark", "the engine 'spark' needs")
    if not pyspark.__version__.startswith("4."):
        raise PolicyError(
            f"the engine 'spark' needs pyspark 4, and {pyspark.__version__} is installed: "
            "pip install 'dither[spark]'"
        )


def _remote(url: str) -> Any:
    from pyspark.sql import SparkSession

    try:
        return SparkSession.builder.remote(url).create()
    except ImportError:
        raise PolicyError(
            "engine.spark: Spark Connect needs more of pyspark: pip install 'pyspark[connect]'"
        ) from None
    except Exception:
        raise PolicyError(
            "engine.spark: no Spark Connect server answers there; see that it runs, and that its "
            "address and token are right"
        ) from None


_LOCK = threading.Lock()
_USERS = 0


def _local(master: str, memory: str | None, temp: str | None) -> tuple[Any, bool]:
    """The process's one context: what runs already on that master, or one that we start."""
    global _USERS
    from pyspark import SparkContext
    from pyspark.sql import SparkSession

    with _LOCK:
        running = SparkContext._active_spark_context
        if running is not None:
            if running.master != master:
                raise PolicyError(
                    f"engine.spark is {master!r}, and this process already runs Spark on "
                    f"{running.master!r}, of which there can be one: stop that, or give its "
                    "session to dt.open(engines={'spark': session})"
                )
            if _USERS:
                _USERS += 1
            return SparkSession(running), _USERS > 0
        _check_java()
        builder = SparkSession.builder.master(master).appName("dither")
        settings = {
            "spark.driver.extraJavaOptions": STACK,
            "spark.ui.showConsoleProgress": "false",
            "spark.log.level": "OFF",
            "spark.driver.memory": memory.lower().removesuffix("b") if memory else None,
            "spark.local.dir": temp,
        }
        if master.startswith("local"):
            # By default there are 200 tasks, which is many for one machine.
            settings["spark.sql.shuffle.partitions"] = "32"
            settings["spark.ui.enabled"] = "false"
            settings["spark.driver.bindAddress"] = settings["spark.driver.host"] = "127.0.0.1"
        for name, value in settings.items():
            if value is not None:
                builder = builder.config(name, value)
        try:
            session = builder.getOrCreate()
        except Exception:
            raise PolicyError(
                f"engine.spark: Spark cannot be started on {master!r}; see that the address is "
                f"right, that 'java -version' says {OLDEST_JAVA} or more, and that engine.memory "
                "is a size such as '2GB'"
            ) from None
        _USERS = 1
        return session, True


def _release() -> None:
    global _USERS
    from pyspark import SparkContext

    with _LOCK:
        _USERS -= 1
        running = SparkContext._active_spark_context
        if _USERS == 0 and running is not None:
            from pyspark.sql import SparkSession

            SparkSession(running).stop()


def _check_java() -> None:
    """A clear word before Spark prints its own."""
    home = os.environ.get("JAVA_HOME")
    if (Path(home) / "bin" / "java").exists() if home else shutil.which("java"):
        return
    raise PolicyError(
        f"the engine 'spark' needs Java {OLDEST_JAVA} or newer, and there is none: install one (on "
        "Debian: apt-get install openjdk-17-jre-headless), or set JAVA_HOME"
    )


@contextlib.contextmanager
def quietly() -> Iterator[None]:
    """Keep pyspark from logging the text of an error, in which a value could stand."""
    found = [logging.getLogger(f"{kind}QueryContextLogger") for kind in ("SQL", "DataFrame")]
    levels = [logger.level for logger in found]
    for logger in found:
        logger.setLevel(logging.CRITICAL + 1)
    try:
        yield
    finally:
        for logger, level in zip(found, levels, strict=True):
            logger.setLevel(level)
