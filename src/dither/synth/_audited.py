"""What ``dither audit --all`` reads of synthesis: all that adds noise, whole as it is released."""

from __future__ import annotations

from collections.abc import Iterator
from fractions import Fraction

import numpy as np
import numpy.typing as npt

from dither._subjects import Subject
from dither.synth.hierarchy._hierarchy import HierarchyPlan
from dither.synth.marginals._planner import plan
from dither.synth.marginals._residuals import measured
from dither.synth.model._plans import MethodRun
from dither.synth.ranges._plan import RangePlan

__all__ = ["AUDITED", "AuditedMarginals"]

Integers = npt.NDArray[np.int64]


class AuditedMarginals:
    """A release of marginals, of tables as small as an audit needs."""

    @classmethod
    def audit_subjects(cls) -> Iterator[Subject]:
        """What an audit calls: neighbours that use the whole claim, or nearly."""
        delta = Fraction(1, 100)
        made = plan((2, 3), [(0, 1), (1,)], Fraction(1), delta)

        def run(cells: Integers) -> list[int]:
            held = {(0, 1): cells, (1,): cells.sum(axis=0)}
            found = measured(lambda wanted: {t: held[t] for t in wanted}, made)
            return [int(n) for one in found.values() for n in one.ravel()]

        here, there = np.zeros((2, 2, 3), dtype=np.int64)
        there[0, 1] = 1
        yield Subject("marginals", run, here, there, delta=delta)


AUDITED = (MethodRun, AuditedMarginals, HierarchyPlan, RangePlan)
