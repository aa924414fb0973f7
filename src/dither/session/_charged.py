"""The engine as a session asks it: it reads no block that was not charged.

Who composes checks what it composes. A question says which blocks it reads, and is charged for
them; what it then asks of the engine is held against that charge here, job by job, whatever made
the job.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Any, cast

from dither.blocks._sets import BlockSet
from dither.engines import Engine
from dither.errors import EngineError
from dither.plan.answers import ExactAnswer
from dither.plan.facts.blocks import block_key, read_blocks
from dither.plan.job import Job
from dither.plan.schema import Schema

__all__ = ["UNCHARGED", "charged_blocks", "reads_within", "within_charge"]

UNCHARGED = "a question asked the engine for blocks that it was not charged for; please report it"

_CHARGED: ContextVar[BlockSet | None] = ContextVar("charged blocks", default=None)


def reads_within(job: Job, schema: Schema, blocks: BlockSet | None) -> bool:
    """Whether a job reads no block but these; one over tables without blocks reads none.

    What limits a unit in each block by itself must be charged so, and it is seen anew here that
    it does: a key says in which block each of its groups lies.
    """
    read = read_blocks(job.relation, schema)
    if job.block_key is not None and (
        blocks is None
        or not blocks.parallel
        or job.block_key != block_key(job.relation, schema, job.keys)
    ):
        return False
    return read is None or (blocks is not None and read <= blocks)


@contextmanager
def charged_blocks(blocks: BlockSet | None) -> Iterator[None]:
    """While a request runs: what it was charged for."""
    before = _CHARGED.set(blocks)
    try:
        yield
    finally:
        _CHARGED.reset(before)


class _WithinCharge:
    """An engine whose ``run`` reads charged blocks alone; in all else that engine itself."""

    def __init__(self, engine: Engine) -> None:
        self._engine = engine

    def __getattr__(self, name: str) -> Any:
        return getattr(self._engine, name)

    def run(self, job: Job, schema: Schema, key: bytes) -> ExactAnswer:
        """As `Engine.run`.

        Raises
        ------
        EngineError
            Where the job reads a block that was not charged: the engine is not asked.
        """
        if not reads_within(job, schema, _CHARGED.get()):
            raise EngineError(UNCHARGED)
        return self._engine.run(job, schema, key)


def within_charge(engine: Engine) -> Engine:
    """An engine that is held to what is charged."""
    return cast(Engine, _WithinCharge(engine))
