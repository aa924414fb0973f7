"""Synthetic tables: the distribution that noisy marginals say most of, and rows of it.

- ``_junction``: which attributes are kept together, and what that costs in memory.
- ``_graph``: the distribution.
- ``_rows``: rows, whose marginals are its own but for rounding.

What is here starts from numbers that were released already, and costs no privacy.
"""

from __future__ import annotations

__all__: list[str] = []
