"""What a unit contributes: bounded, and decided by its own rows and the key alone."""

from __future__ import annotations

from dataclasses import replace
from fractions import Fraction

import duckdb
import polars as pl
import pytest

from dither.engines.duckdb import DuckDBEngine
from dither.engines.duckdb import connection as connections
from dither.engines.duckdb.connection import open_unlocked
from dither.engines.duckdb.dialect import DUCKDB, DuckDBDialect
from dither.engines.writer import Seeds
from dither.engines.writer.forms import identifier
from dither.plan.expressions import Column
from dither.plan.job import GroupKey, Job, Leaves, Rows, Total, Units
from dither.plan.relations import Scan
from dither.plan.schema import ColumnFacts, Kind, Schema, Table

KEY = b"another sixteen."
SEEDS = Seeds(1, 2)


TABLE = Table(
    "t",
    {
        "u": ColumnFacts("u", Kind.INTEGER),
        "g": ColumnFacts("g", Kind.INTEGER),
        "x": ColumnFacts("x", Kind.INTEGER, Fraction(0), Fraction(100)),
    },
    unit="u",
)
SMALL = Schema({"t": TABLE})


def small_job(measurements, groups: int, rows: int, values=None) -> Job:
    """A job on the small table, grouped by ``g``."""
    keys = (GroupKey("g", Column("t", "g"), Kind.INTEGER, values),)
    return Job(Scan("t", "t"), Column("t", "u"), keys, tuple(measurements), groups, rows)


def test_a_million_rows_of_one_user_count_as_few():
    """One user's million rows contribute max_rows; everybody else's are untouched."""
    rows = 1_000_000
    many = pl.DataFrame(
        {"u": [1] * rows + [2, 3], "g": [0] * (rows + 2), "x": [100] * rows + [7, 8]}
    )
    leaves = Leaves(Column("t", "x"), Fraction(1), 0, 100, 10, 11)
    wanted = (Rows(), Units(), Total(Column("t", "x"), Fraction(1), 0, 100), leaves)
    with DuckDBEngine({"t": many}) as engine:
        found = engine.run(small_job(wanted, 1, 5), SMALL, KEY)
    assert [found.values[i].tolist() for i in range(3)] == [[7], [3], [515]]
    assert found.values[3].tolist() == [[2, 0, 0, 0, 0, 0, 0, 0, 0, 0, 5]]


def test_leaves_count_every_row_of_a_unit_alike():
    """Seven rows of which three may count, in parts: nothing is drawn, and nothing is lost.

    Each leaf has its rows' share, 3/7 of its rows times the parts, but for one part up or down.
    """
    table = pl.DataFrame({"u": [1] * 7 + [2], "g": 0, "x": [0, 0, 0, 1, 2, 2, 3, 3]})
    leaves = Leaves(Column("t", "x"), Fraction(1), 0, 3, 1, 4, parts=1024)
    with DuckDBEngine({"t": table}) as engine:
        runs = [
            engine.run(small_job([leaves], 1, 3), SMALL, key).values[0].tolist()
            for key in (KEY, KEY[::-1])
        ]
    assert runs[0] == runs[1] == [[1316, 439, 878, 439 + 1024]]
    assert sum(runs[0][0]) == (3 + 1) * 1024


def test_a_unit_with_more_rows_than_parts_keeps_its_weight():
    """A hundred rows in a hundred leaves, counted as one row of eight parts: eight parts arrive."""
    table = pl.DataFrame({"u": [1] * 100, "g": 0, "x": list(range(100))})
    leaves = Leaves(Column("t", "x"), Fraction(1), 0, 100, 1, 101, parts=8)
    coarse = Leaves(Column("t", "x"), Fraction(1), 0, 100, 25, 5, parts=8)
    with DuckDBEngine({"t": table}) as engine:
        found = engine.run(small_job([leaves, coarse], 1, 1), SMALL, KEY)
    fine = found.values[0].dense()[0]
    assert fine.sum() == 8
    assert fine[:100].reshape(4, 25).sum(axis=1).tolist() == found.values[1].dense()[0, :4].tolist()


@pytest.mark.parametrize("sign", [1, -1])
def test_a_sum_is_scaled_down_towards_zero(sign):
    """Seven rows of which three may count: s * 3 / 7, cut towards zero on either side."""
    frame_ = pl.DataFrame({"u": [1] * 7, "g": [0] * 7, "x": [100] * 6 + [99]})
    centre = 0 if sign > 0 else 200
    wanted = Total(Column("t", "x"), Fraction(1), 0, 100, centre)
    with DuckDBEngine({"t": frame_}) as engine:
        found = engine.run(small_job([wanted], 1, 3), SMALL, KEY)
    s = 699 - 7 * centre
    assert found.values[0].tolist() == [int(Fraction(s * 3, 7))]


def test_large_sums_of_many_rows_are_scaled_down_exactly():
    """Quotient and rest by the number of rows, each in 64 bits, are the whole's quotient.

    Each unit's rows come to about the most that is proved to fit, on either side of 0.
    """
    most, size, parts = 3, 2**22 - 1, 2
    values = {u: [size if i % 5 else u for i in range(u)] for u in range(1, 60)}
    table = pl.DataFrame(
        {
            "u": [u for u, xs in values.items() for _ in xs],
            "g": [0] * sum(map(len, values.values())),
            "x": [x for xs in values.values() for x in xs],
        }
    )
    facts = ColumnFacts("x", Kind.INTEGER, Fraction(0), Fraction(size))
    schema = Schema({"t": Table("t", {**TABLE.columns, "x": facts}, unit="u")})
    for centre in (0, size, size // 2):
        wanted = Total(Column("t", "x"), Fraction(1), 0, size, centre, parts=parts)
        with DuckDBEngine({"t": table}) as engine:
            assert " // GREATEST" in engine._written(small_job([wanted], 1, most), schema, SEEDS)[1]
            found = engine.run(small_job([wanted], 1, most), schema, KEY)
        shares = [
            int(sum(x - centre for x in xs) * Fraction(parts * min(most, len(xs)), len(xs)))
            for xs in values.values()
        ]
        assert found.values[0].tolist() == [sum(shares)]


def test_sums_have_64_bits_where_these_are_proved_to_hold_them(tmp_path):
    """The engine's sum without a test is asked for where no table can overflow it."""
    held, wide = (DUCKDB.summed_of_size(identifier("x"), size) for size in (2**23 - 1, 2**23))
    assert DUCKDB.sql(held) == 'CAST(SUM_NO_OVERFLOW("x") AS BIGINT)'
    assert DUCKDB.sql(wide) == 'SUM("x")'
    assert (2**23 - 1) * DUCKDB.most_rows < 2**63 <= 2**23 * DUCKDB.most_rows
    for kind in ("INTEGER", "BIGINT", "HUGEINT"):
        with open_unlocked(None, 1, str(tmp_path)) as connection:
            rows = f"(SELECT CAST(x AS {kind}) AS x FROM (VALUES (NULL), (8388607), (-5)) AS t(x))"
            found = connection.execute(f"SELECT {DUCKDB.sql(held)} FROM {rows}").fetchall()
            none = connection.execute(f"SELECT {DUCKDB.sql(held)} FROM {rows} WHERE x > 2^23")
            assert (found, none.fetchall()) == ([(8388602,)], [(None,)])
            with pytest.raises(duckdb.BinderException):
                connection.execute(f"SELECT {DUCKDB.sql(held)} FROM (SELECT 1e0 AS x)")


def test_an_engine_that_keeps_its_sum_to_itself_gives_the_same(monkeypatch):
    """Where DuckDB would refuse its own function, the one that it offers stands for it."""
    table = pl.DataFrame({"u": [1, 1, 2], "g": [0, 0, 0], "x": [100, 50, 7]})
    job = small_job([Total(Column("t", "x"), Fraction(1), 0, 100)], 1, 1)
    monkeypatch.setattr(connections, "_has_short_sum", lambda: False)
    with DuckDBEngine({"t": table}) as engine:
        ((made,),) = engine._execute(
            "SELECT count(*) FROM duckdb_functions() "
            "WHERE function_type = 'macro' AND function_name ILIKE 'sum_no_overflow'"
        )
        assert made == 1
        engine.prepare(job, SMALL)
        assert engine.run(job, SMALL, KEY).values[0].tolist() == [75 + 7]
    monkeypatch.undo()
    assert connections._has_short_sum()


def test_groups_are_chosen_evenly_and_afresh_for_each_key():
    """Every group is kept about equally often, and another key keeps others.

    2,000 users with four groups of which one is kept: each group's count has mean 500 and
    standard deviation 19.4; six of them are left on either side (false alarm below 1e-8).
    """
    users = 2000
    table = pl.DataFrame(
        {"u": [u for u in range(users) for _ in range(4)], "g": [0, 1, 2, 3] * users, "x": 1}
    )
    with DuckDBEngine({"t": table}) as engine:
        for values in (None, (0, 1, 2, 3)):
            job = small_job([Units()], 1, 1, values)
            first = engine.run(job, SMALL, KEY)
            again = engine.run(job, SMALL, KEY)
            other = engine.run(job, SMALL, KEY[::-1])
            counts = [
                dict(zip(f.keys, f.values[0].tolist(), strict=True)) for f in (first, again, other)
            ]
            assert counts[0] == counts[1] != counts[2]
            for found in (counts[0], counts[2]):
                assert sum(found.values()) == users
                assert all(abs(n - 500) < 117 for n in found.values())


def test_rows_with_another_key_are_gone_before_bounding():
    """A user with many rows outside the public keys loses none of those inside."""
    table = pl.DataFrame({"u": [1] * 21, "g": list(range(21)), "x": [1] * 21})
    with DuckDBEngine({"t": table}) as engine:
        found = engine.run(small_job([Units()], 1, 1, (20, 99)), SMALL, KEY)
    assert (list(found.keys), found.values[0].tolist()) == ([(20,)], [1])


def _sum_beyond_64_bits():
    """That of 50 values near 2^62, of a unit each."""
    facts = ColumnFacts("x", Kind.INTEGER, Fraction(0), Fraction(2**62))
    schema = Schema({"t": Table("t", {**TABLE.columns, "x": facts}, unit="u")})
    table = pl.DataFrame({"u": list(range(50)), "g": [0] * 50, "x": [2**62 - i for i in range(50)]})
    wanted = Total(Column("t", "x"), Fraction(1), 0, 2**62)
    with DuckDBEngine({"t": table}) as engine:
        return engine.run(small_job([wanted], 1, 1), schema, KEY).values[0]


def test_sums_beyond_64_bits_are_exact():
    """Values near 2^62 sum without loss, as Python integers."""
    found = _sum_beyond_64_bits()
    assert found.tolist() == [50 * 2**62 - 1225]
    assert found.dtype == object


def test_a_sum_that_64_bits_are_wrongly_said_to_hold_is_seen(monkeypatch):
    """The sum that tests for nothing would wrap: what is written of it must be proved."""
    monkeypatch.setattr(DuckDBDialect, "sums_in_64_bits", lambda self, size: True)
    assert _sum_beyond_64_bits().tolist() != [50 * 2**62 - 1225]


@pytest.mark.parametrize("unit", [True, False])
def test_stretches_are_the_sums_of_their_leaves(unit):
    """A histogram that a finer one contains is not asked for, and is what it would have been."""
    rows = range(400)
    table = pl.DataFrame({"u": [i % 7 for i in rows], "g": 0, "x": [i * i % 101 for i in rows]})
    fine = Leaves(Column("t", "x"), Fraction(1), 0, 100, 1, 101, parts=64, within=8)
    with DuckDBEngine({"t": table}) as engine:
        jobs_ = [
            replace(small_job(wanted, 1, 3), unit=Column("t", "u") if unit else None)
            for wanted in ([fine.above, fine], [fine.above])
        ]
        together, alone = (engine.run(job, SMALL, KEY).values[0] for job in jobs_)
    assert together.tolist() == alone.tolist()
    assert together.dense().sum() == (7 * 3 if unit else 400) * 64
