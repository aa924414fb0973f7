"""Every engine on every plan of the list: the same exact integers as the reference."""

from __future__ import annotations

from contextlib import suppress
from fractions import Fraction

import pytest

from conformance.engines import by_group, expected
from conformance.plans import PLANS, job, rows, schema
from dither.errors import BoundsError, UnsupportedError
from dither.plan import expressions as ex
from dither.plan.job import Job, Leaves, Measurement, Rows, Total, Values, read_by
from dither.plan.lowering.lower import lower
from dither.plan.relations import Filter, KeyFilter, PublicJoin, Relation, Scan, UnitJoin
from dither.sql import parse_query

KEY = b"sixteen bytes..."


@pytest.mark.parametrize("plan", PLANS)
def test_every_engine_runs_every_plan(engine, plan):
    """One right answer, whatever the engine."""
    found = by_group(engine.run(job(plan), schema(plan), rows(), KEY))
    assert found == expected(job(plan), schema(plan), engine.holds(rows()))
    assert found


def test_a_list_that_holds_null_is_not_known_to_leave_anyone_out(engine):
    """``NOT IN`` of it is true of nobody; of its keys that are not NULL it is true of some."""
    known = schema("not among public keys")
    text = "SELECT COUNT(*) AS n FROM visits WHERE h NOT IN (SELECT code FROM doctors)"
    for condition, some in (("", False), (" WHERE code IS NOT NULL", True)):
        asked = lower(parse_query(text.replace("doctors)", f"doctors{condition})"), known), known)
        found = by_group(engine.run(asked.job, known, rows(), KEY))
        assert found == expected(asked.job, known, rows())
        assert bool(found) is some


def test_a_text_that_is_too_long_is_no_key(engine):
    """What leaves the engine for each key is public: a thousand code points, and else NULL."""
    known = schema("units that count once")
    text = (
        "SELECT w, REPLACE(w, 'b', 'bb') AS v, COUNT(*) AS n, COUNT(DISTINCT h) AS d, "
        "MEDIAN(i) AS m FROM visits GROUP BY GROUPING SETS ((w, v), (w))"
    )
    asked = lower(parse_query(text, known), known).job
    words = ["é" * 1000, "😀" * 1001, "b" * 500, "b" * 501, "a" * 60_000, None]
    made = [
        dict.fromkeys(known.table("visits").columns) | {"u": i, "w": w, "h": 1, "i": 5}
        for i, w in enumerate(words)
    ]
    tables = rows() | {"visits": made}
    found = by_group(engine.run(asked, known, tables, KEY))
    assert found == expected(asked, known, tables)
    assert {key[0] for key in found} == {words[0], words[2], words[3], None}


CENTRED = [(0, 110, 55), (0, 2**61, 1), (-(2**62), 2**62, 2**62)]
"""Bounds and centres; engines of 64 bits alone refuse those beyond the first."""


@pytest.mark.parametrize("most", [1, 3, 1000])
def test_null_counts_as_the_centre(engine, most):
    """A NULL adds nothing and counts as a row, wherever the centre lies within the bounds."""
    unit, known, found = ex.Column("visits", "u"), schema("units that count once"), 0
    for lattice in CENTRED:
        total = Total(ex.Column("visits", "i"), Fraction(1), *lattice, null_as_centre=True)
        asked = Job(Scan("visits", "visits"), unit, (), (Rows(), total), 1, most)
        with suppress(*((BoundsError, UnsupportedError) if lattice != CENTRED[0] else ())):
            answer = by_group(engine.run(asked, known, rows(), KEY))
            assert answer == expected(asked, known, rows())
            found += 1
    assert found >= 1


def expressions(plan: str) -> list[ex.Expression]:
    """Every expression of a plan's job."""
    found = [key.expression for key in job(plan).keys]
    read = read_by(job(plan).measurements)
    found += [m.operand for m in read if isinstance(m, Values | Total | Leaves)]
    relation: Relation = job(plan).relation
    while isinstance(relation, Filter | KeyFilter | PublicJoin | UnitJoin):
        if isinstance(relation, Filter):
            found.append(relation.predicate)
        relation = relation.left if isinstance(relation, UnitJoin) else relation.source
    return [node for top in found for node in ex.walk(top)]


def test_the_list_holds_every_node_and_measurement():
    """What a plan may hold, some plan of the list holds."""
    held = {type(node).__name__ for plan in PLANS for node in expressions(plan)}
    held |= {type(m).__name__ for plan in PLANS for m in job(plan).measurements}
    held |= {type(job(plan).relation).__name__ for plan in PLANS}
    nodes = {*ex.Expression.__subclasses__(), *ex.Function.__subclasses__()}
    # Not those that other tests make.
    nodes = {kind for kind in nodes if kind.__module__ == ex.__name__}
    called = {
        node.function for plan in PLANS for node in expressions(plan) if isinstance(node, ex.Call)
    }
    assert called == set(ex.FUNCTIONS)
    known = {*nodes, *Measurement.__subclasses__(), PublicJoin, Filter, KeyFilter}
    # Functions of one operand have a root, of which there are no nodes; the sides of ends that are
    # yet to be found become a histogram like any other before an engine sees them.
    assert {kind.__name__ for kind in known} - {"Function", "Sides"} <= held
