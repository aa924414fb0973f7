"""Spark as an engine whose rows can be exchanged, on the one session of the tests."""

from __future__ import annotations

from typing import Any

from dither.engines import TableSource
from dither.plan.answers import ExactAnswer
from dither.plan.job import Job
from dither.plan.schema import Schema
from engines.hostile import KEY, SCHEMA, frame
from spark_session import spark_session

FOLDED = "org.apache.spark.sql.catalyst.optimizer.ConvertToLocalRelation"
"""What would compute an answer over rows at hand in the optimizer, without a task."""


class SparkBench:
    """One engine whose frames are exchanged between runs.

    Parameters
    ----------
    tasks : bool
        Whether queries run in tasks, by compiled code, as over files. Otherwise much of one is
        computed by Spark's optimizer, by the same expressions interpreted, and sooner.
    """

    def __init__(self, schema: Schema = SCHEMA, *, tasks: bool = False) -> None:
        from dither.engines.spark.engine import SparkEngine

        self.schema = schema
        user = spark_session()
        empty = {
            name: TableSource(user.createDataFrame(frame(schema, name, []).to_arrow()))
            for name in schema.tables
        }
        self.engine = SparkEngine(empty, user)
        if tasks:
            self.engine._sessions.own.conf.set("spark.sql.optimizer.excludedRules", FOLDED)

    def put(self, rows: Any) -> None:
        """Have the engine's tables hold these rows."""
        own = self.engine._sessions.own
        for name, content in rows.items():
            made = own.createDataFrame(frame(self.schema, name, content).to_arrow())
            made.createOrReplaceTempView(self.engine._stored_tables()[name].view)

    def run(self, job: Job, schema: Schema, rows: Any, key: bytes = KEY) -> ExactAnswer:
        """The exact answer over these rows, after a trial over none, as a release has it."""
        self.put(rows)
        self.engine.prepare(job, schema)
        return self.engine.run(job, schema, key)

    def close(self) -> None:
        """Give the engine's views back; Spark itself stays."""
        self.engine.close()
