"""Synthetic tables: models of protected tables that may be handed out, and rows of them.

``session.table("adult").synthesize(epsilon=1.0, delta=1e-9)`` makes a `SyntheticModel`.

- ``model``: the distribution that noisy tables say most of (``_junction``, ``_graph``), which
  tables to measure for it (``_plans``: MST, AIM, each column by itself), and what is handed out.
- ``marginals``: tables of least error (``_planner``), what they cost (``_residual_law``), and rows
  near them where columns are too many for a model of all.
- ``hierarchy``: counts of nested places that add up. ``ranges``: those of one ordered column.
- ``tables``: how each of these is asked of a session's table.
- ``_spending``: a budget that an adaptive mechanism spends; what it costs is proved there.
- ``_workload``, ``_rules``: which tables are to be right, and what is public of them.
- ``_frames``, ``_rows``, ``_values``: rows, as whole numbers and in the policy's own values.

`compare` (`dither.lab.compare`) holds a synthetic table against the real one, without noise;
``_compared`` and ``tables._comparison`` measure that distance with noise, at a charge.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING

from dither.synth._loaded import load as load
from dither.synth.linked._model import LinkedModel as LinkedModel
from dither.synth.model._plans import SynthProgress as SynthProgress
from dither.synth.model._result import SyntheticModel as SyntheticModel
from dither.synth.model._several import CombinedEstimates as CombinedEstimates
from dither.synth.model._several import combined as combined

if TYPE_CHECKING:
    from dither.lab.compare import TableComparison as TableComparison
    from dither.lab.compare import compare as compare

__all__ = ["SyntheticModel", "combined", "compare", "load"]


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
