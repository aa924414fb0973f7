"""Every engine on random plans over hostile rows.

Where nothing is chosen by hash, the exact integers are the reference's, and so one engine's are
another's. Where groups are chosen, what a unit contributes is bounded, and its own affair.
"""

from __future__ import annotations

from collections import Counter

import numpy as np
from hypothesis import given, reject, settings
from hypothesis import strategies as st

from conformance.engines import by_group, expected
from conformance.plans import WIDE
from dither.errors import UnsupportedError
from dither.plan.answers import Histogram
from dither.plan.job import Leaves, Rows, Total, Units, Values
from engines.hostile import SCHEMA, jobs, tables

KEY = b"sixteen bytes..."


def exact(engine, job, schema, rows):
    """The answer; a pattern that an engine refuses by name, before it reads, is no example."""
    try:
        return engine.run(job, schema, rows, KEY)
    except UnsupportedError as error:
        if "regular expression" not in str(error):
            raise
        reject()


def test_every_engine_agrees_with_the_reference(engine):
    """Where nothing has to be chosen by hash, every integer is the reference's."""

    @settings(max_examples=engine.examples(60), deadline=None)
    @given(rows=tables(), job=jobs(most=1000))
    def check(rows, job):
        found = exact(engine, job, WIDE, rows)
        assert by_group(found) == expected(job, WIDE, engine.holds(rows))

    check()


def run(engine, rows, job):
    """The answer over the hostile tables, as a mapping of group and place to integers."""
    return flat(exact(engine, job, SCHEMA, rows))


def flat(found) -> Counter:
    """An answer with one integer for each group, measurement and leaf."""
    cells: Counter = Counter()
    for place, values in found.values.items():
        array = values.dense() if isinstance(values, Histogram) else values
        for key, value in zip(found.keys, array, strict=True):
            for leaf, number in enumerate(np.atleast_1d(value).tolist()):
                cells[key, place, leaf] = int(number)
    return Counter({cell: number for cell, number in cells.items() if number})


def total(answers) -> Counter:
    """Cell by cell, the sum."""
    summed: Counter = Counter()
    for answer in answers:
        for cell, number in answer.items():
            summed[cell] += number
    return Counter({cell: number for cell, number in summed.items() if number})


def test_a_unit_contributes_what_it_would_alone(engine):
    """With a unit and without, the answers differ by that unit's own: nobody else's change."""

    @settings(max_examples=engine.examples(40), deadline=None)
    @given(rows=tables(units=2, rows=20), job=jobs(units=True), unit=st.integers(0, 2))
    def check(rows, job, unit):
        def some(keep):
            return {**rows, **{n: [r for r in rows[n] if keep(r["u"])] for n in ("visits", "labs")}}

        alone, others = (
            run(engine, some(lambda u: u == unit), job),
            run(engine, some(lambda u: u != unit), job),
        )
        assert total([alone, others]) == run(engine, rows, job)

    check()


def test_one_unit_stays_within_its_bounds(engine):
    """A single unit shows in at most ``max_groups`` groups, by at most what is said of each."""

    @settings(max_examples=engine.examples(25), deadline=None)
    @given(rows=tables(units=0, rows=20), job=jobs(units=True))
    def check(rows, job):
        for table in ("visits", "labs"):
            for row in rows[table]:
                row["u"] = 7
        found = run(engine, rows, job)
        assert len({key for key, _, _ in found}) <= job.max_groups
        for place, measurement in enumerate(job.measurements):
            cells = Counter()
            for (key, where, _), number in found.items():
                if where == place:
                    cells[key] += abs(number)
            most = {
                Rows: job.max_rows,
                Values: job.max_rows,
                Units: 1,
            }.get(type(measurement))
            if isinstance(measurement, Leaves):
                most = job.max_rows * measurement.parts
            elif most is None:
                assert isinstance(measurement, Total)
                most = measurement.magnitude * job.max_rows
            assert all(number <= most for number in cells.values())

    check()


def test_the_order_of_rows_does_not_matter(engine):
    """A table is a bag of rows."""

    @settings(max_examples=engine.examples(15), deadline=None)
    @given(rows=tables(units=3, rows=20), job=jobs(units=True))
    def check(rows, job):
        assert run(engine, {n: r[::-1] for n, r in rows.items()}, job) == run(engine, rows, job)

    check()
