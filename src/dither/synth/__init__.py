"""Synthetic tables: the distribution that noisy marginals say most of, and rows of it.

- ``_junction``: which attributes are kept together, and what that costs in memory.
- ``_graph``: the distribution.
- ``_rows``: rows, whose marginals are its own but for rounding.
- ``_planner``, ``_residual_law``, ``_residuals``: marginals of least error, and what they cost.
- ``_marginals``, ``_asked_marginals``: what a release of them holds, and how it is asked for.
- ``_nonnegative``, ``_pair_rows``, ``_local_tables``: tables without negative counts, and rows
  near them, where columns are too many for a model of all.

And counts of ordered or nested things that agree with one another:

- ``_spine``, ``_consistent``, ``_whole``: levels of places, estimates that add up, whole numbers.
- ``_divided``: a budget divided over several tables, and what they lose together.
- ``_hierarchy``, ``_hierarchy_counts``, ``_hierarchy_preview``: noise of levels, and counts.
- ``_range_tree``: the ranges of one ordered column.
- ``_asked_hierarchy``, ``_asked_ranges``: how they are asked for.

`compare` (`dither.lab.compare`) holds a synthetic table against the real one, without noise;
``_compared`` and ``_asked_compared`` measure that distance with noise, at a charge.
"""

from __future__ import annotations

from dither.lab.compare import TableComparison as TableComparison
from dither.lab.compare import compare

__all__ = ["compare"]
