"""A job as SQL, in the dialect of any engine.

- ``dialect``: what engines spell otherwise; ``forms``: what all spell alike.
- ``expressions``, ``sizes``: the expressions of a plan.
- ``rows``: what is read; scans, filters and joins; ``within``: queries in the FROM.
- ``grouped``, ``sums``: each unit's contribution bounded, and added by group.
"""

from dither.engines.writer.dialect import Dialect, Seeds
from dither.engines.writer.rows import Stored

__all__ = ["Dialect", "Seeds", "Stored"]
