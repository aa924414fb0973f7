"""Spark for tests: one small session, on two threads and a gigabyte, gone with its process.

Tests that need it are marked, and `tests/conftest.py` has one process run them all where there are
several, so that one Java runs. Most of its time would go into compiling what is run once, so it
compiles quickly and not well, takes classes of Spark as they are, and collects garbage on one
thread.

Where pyspark or Java is missing, tests that need it are skipped, and say so.
"""

from __future__ import annotations

import atexit
import importlib.util
import os
import shutil
import signal
import tempfile
from functools import cache
from pathlib import Path
from typing import Any

import pytest

__all__ = ["ABSENT", "JAVA_OPTIONS", "needs_spark", "skip_without_spark", "spark_session"]

ABSENT = "Spark is not installed"

_HOME = os.environ.get("JAVA_HOME")
_JAVA = (Path(_HOME) / "bin" / "java").exists() if _HOME else shutil.which("java") is not None

_MISSING = importlib.util.find_spec("pyspark") is None or not _JAVA
_REASON = f"{ABSENT}: pyspark 4 and Java 17 are needed"

JAVA_OPTIONS = (
    "-Xss8m -XX:TieredStopAtLevel=1 -XX:+UseSerialGC "
    "-XX:+UnlockDiagnosticVMOptions -XX:-BytecodeVerificationRemote"
)
"""Of every Java that tests start."""

needs_spark = (pytest.mark.spark, pytest.mark.skipif(_MISSING, reason=_REASON))
"""Marks of a test that runs Spark."""


def skip_without_spark() -> None:
    """Leave out what runs Spark, such as a page; start it small where there is one."""
    if _MISSING:
        pytest.skip(_REASON)
    spark_session()


@cache
def spark_session() -> Any:
    """The user's session of all tests."""
    from pyspark.sql import SparkSession

    folder = tempfile.mkdtemp(prefix="dither-spark-")
    settings = {
        "spark.driver.memory": "1g",
        "spark.driver.extraJavaOptions": f"{JAVA_OPTIONS} -Dderby.system.home={folder}",
        "spark.driver.host": "127.0.0.1",
        "spark.driver.bindAddress": "127.0.0.1",
        "spark.ui.enabled": "false",
        "spark.ui.showConsoleProgress": "false",
        "spark.log.level": "OFF",
        "spark.sql.shuffle.partitions": "2",
        "spark.sql.warehouse.dir": f"{folder}/warehouse",
        "spark.local.dir": folder,
    }
    builder = SparkSession.builder.master("local[2]").appName("tests of dither")
    for name, value in settings.items():
        builder = builder.config(name, value)
    before = signal.getsignal(signal.SIGINT)
    session = builder.getOrCreate()
    # Tests of Ctrl-C, which have nothing to do with Spark, may come after it.
    signal.signal(signal.SIGINT, before)

    def stop() -> None:
        session.stop()
        shutil.rmtree(folder, ignore_errors=True)

    atexit.register(stop)
    return session
