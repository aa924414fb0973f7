"""Engines run the exact part of a plan and hand over integers; only ``dither.query`` calls them.

- ``base``: what every engine offers.
- ``sql_engine``: what engines that are asked in SQL do alike.
- ``writer``: a job as SQL, in the dialect of any of them.
- ``duckdb``: the embedded engine, what it reads, and how it is locked in.

A new engine supplies a ``writer.Dialect`` and a ``sql_engine.SQLEngine``, and no more.
"""

from dither.engines.base import Engine

__all__ = ["Engine"]
