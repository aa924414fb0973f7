"""What ``dither audit --all`` reads of synthesis: all that adds noise, whole as it is released."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from fractions import Fraction
from typing import Any

import numpy as np
import numpy.typing as npt

from dither._subjects import Subject
from dither.accounting import rho_of_epsilon
from dither.synth._spending import ZCDPBudget
from dither.synth.hierarchy._hierarchy import HierarchyPlan
from dither.synth.marginals._planner import plan
from dither.synth.marginals._residuals import measured
from dither.synth.model._junction import Clique
from dither.synth.model._plans import MethodRun, measured_by
from dither.synth.ranges._plan import RangePlan

__all__ = ["AUDITED", "AuditedLinks", "AuditedMarginals"]

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


class AuditedLinks:
    """Linked tables: two levels of one unit, each measured by its part of the budget."""

    @classmethod
    def audit_subjects(cls) -> Iterator[Subject]:
        """What an audit calls: a unit with all the rows that it may have, and nobody."""
        delta, most = Fraction(1, 100), 3
        rho = rho_of_epsilon(Fraction(1), delta)

        def run(units: int) -> list[int]:
            found: list[int] = []
            for rows in (1, most):
                # All rows of the unit lie in one cell, which moves a table by all that is claimed.
                def counts(cliques: Sequence[Clique], held: int = units * rows) -> Any:
                    made = {c: np.zeros([2] * len(c), dtype=np.int64) for c in cliques}
                    for c, table in made.items():
                        table[(0,) * len(c)] = held
                    return made

                spending = ZCDPBudget(counts, rho / 2, rows, rows**2)
                made = measured_by("independent", (2,), spending, workload={}, max_cells=64)
                found += [int(n) for m in made.measured for n in m.values.ravel()]
            return found

        yield Subject("linked tables", run, 0, 1, delta=delta)


AUDITED = (MethodRun, AuditedMarginals, AuditedLinks, HierarchyPlan, RangePlan)
