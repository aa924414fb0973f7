"""Synthetic tables: models of protected tables that may be handed out, and rows of them.

``session.table("adult").synthesize(epsilon=1.0, delta=1e-9)`` makes a `SyntheticModel`.

- ``_junction``, ``_graph``, ``_rows``: the distribution that noisy tables say most of; its rows.
- ``_spending``: a budget that an adaptive mechanism spends; what it costs is proved there.
- ``_plans``, ``_workload``: which tables to measure, by MST, AIM, or each column by itself; which
  ones are to be right.
- ``_rules``: combinations that cannot be, and counts that are public.
- ``_inside``: where numbers lie inside their bins, by a private tree of finer ones.
- ``_model``, ``_values``, ``_result``, ``_stored``: the model of what was measured, over the
  policy's own values, and how it is kept.
- ``_asked``: the question, as ``query`` loads it.
- ``_planner``, ``_residual_law``, ``_residuals``: marginals of least error, and what they cost.
- ``_marginals``, ``_asked_marginals``: what a release of them holds, and how it is asked for.
- ``_nonnegative``, ``_pair_rows``, ``_local_tables``: tables without negative counts, and rows
  near them, where columns are too many for a model of all.

And counts of ordered or nested things that agree with one another:

- ``_spine``, ``_consistent``, ``_whole``: levels of places, estimates that add up, whole numbers.
- ``_divided``: a budget divided over several tables, and what they lose together.
- ``_hierarchy``, ``_hierarchy_counts``, ``_hierarchy_preview``: noise of levels, and counts.
- ``_range_tree``, ``_range_plan``, ``_range_counts``: the ranges of one ordered column.
- ``_asked_hierarchy``, ``_asked_ranges``: how they are asked for.

`compare` (`dither.lab.compare`) holds a synthetic table against the real one, without noise;
``_compared`` and ``_asked_compared`` measure that distance with noise, at a charge.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING

from dither.synth._plans import SynthProgress as SynthProgress
from dither.synth._result import SyntheticModel as SyntheticModel
from dither.synth._result import load as load

if TYPE_CHECKING:
    from dither.lab.compare import TableComparison as TableComparison
    from dither.lab.compare import compare as compare

__all__ = ["SyntheticModel", "compare", "load"]


_LATER = {
    "AUDITED": ("dither.synth._audited", "AUDITED"),
    "TableComparison": ("dither.lab.compare", "TableComparison"),
    "compare": ("dither.lab.compare", "compare"),
}
"""What stands on the lab, or on SciPy, of which a synthesis needs neither."""


def __getattr__(name: str) -> object:
    if name not in _LATER:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    home, inside = _LATER[name]
    found = getattr(import_module(home), inside)
    globals()[name] = found
    return found
