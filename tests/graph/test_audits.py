"""The house's auditor cannot refute what is claimed of graphs, and sees what is planted."""

from __future__ import annotations

from itertools import islice

import pytest

from dither import graph
from dither.graph import Graph
from dither.graph._ladder import Ladder
from dither.graph._statistics import Triangles
from dither.lab.audit import Outcome, audit

SUBJECTS = [subject for made in graph.AUDITED for subject in made.audit_subjects()]


@pytest.mark.parametrize("subject", SUBJECTS, ids=lambda s: s.name)
def test_each_stands_the_audit(subject) -> None:
    """Some thousand outputs of each of two neighbours."""
    claim = {"epsilon": subject.epsilon, "delta": subject.delta, "samples": 2_000}
    found = audit(subject.mechanism, subject.d0, subject.d1, **claim)
    assert found.verdict is not Outcome.VIOLATED


def test_a_ladder_of_half_the_widths_is_refuted() -> None:
    """Steps that one edge leaps over tell whether it is there."""
    ends = [(0, j) for j in range(2, 8)] + [(1, j) for j in range(2, 8)]
    shape, ladder = Triangles(), Ladder.for_loss(1, most=56)
    graphs = [Graph([*ends, *more], nodes=8) for more in ([], [(0, 1)])]
    known = [(shape.count(g), [w // 3 for w in islice(shape.local(g), 9)]) for g in graphs]
    found = audit(lambda more: ladder.release(*known[more]), 0, 1, epsilon=1, samples=2_000)
    assert found.verdict is Outcome.VIOLATED
