"""What every engine offers: the columns of a source, and the exact answer to a job."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping
from typing import Any, Self

from dither.plan.job import ExactAnswer, Job
from dither.plan.kinds import Kind, Value
from dither.plan.schema import ColumnFacts, Schema

__all__ = ["FAILED", "Engine"]

FAILED = (
    "the engine could not compute the answer; what was charged stays charged. "
    "Ask the data owner to check the source and the engine's memory limit"
)
"""What an engine says of any failure, whatever it was."""


class Engine(ABC):
    """Runs the exact part of a plan. Only ``dither.query`` may call ``run``."""

    @abstractmethod
    def describe(self, table: str) -> Mapping[str, Kind | None]:
        """The columns of a table and their kinds, from its schema and never from its values.

        ``None``: a type that dither does not read.
        """

    @abstractmethod
    def complete(self, table: str) -> bool:
        """Whether every row of the table is read, whatever it holds.

        Where it is not, the number of rows read is not the number of rows there are.
        """

    @abstractmethod
    def unread(self, table: str) -> Mapping[str, str]:
        """Why columns of a table cannot be read, where there is more to say than their type."""

    @abstractmethod
    def public_values(self, table: str, facts: ColumnFacts) -> tuple[Value | None, ...]:
        """Every value of a column of a *public* table, one for each row, in no order.

        Read as declared, just as a query reads it.
        """

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
