"""Engines run the exact part of a plan and hand over integers; only ``dither.query`` calls them.

- ``base``: what every engine offers.
- ``writer``: a job as SQL.
- ``duckdb``: the embedded engine, what it reads, and how it is locked in.
"""

from dither.engines.base import Engine

__all__ = ["Engine"]
