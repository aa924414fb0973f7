"""Engines run the exact part of a plan and hand over integers; only ``dither.query`` calls them.

- ``base``: what every engine offers.
- ``duckdb``: the embedded one; ``sources`` and ``frames`` are what it reads, ``sandbox`` how it is
  locked in.
- ``rows``, ``bounding``: a job as SQL.
"""

from dither.engines.base import Engine

__all__ = ["Engine"]
