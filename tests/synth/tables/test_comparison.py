"""Distances of a synthetic table from a protected one, measured with noise."""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from datetime import date
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pytest

import dither as dt
from dither.errors import ArgumentError, BudgetError, UnknownNameError
from dither.query.tables._domain import domain_of
from dither.session._session import Session
from dither.synth._compared import apart, codes_of, counted

COLUMNS: dict[str, Any] = {
    "sex": {"values": ["f", "m"], "nullable": False},
    "ill": {"type": "boolean"},
    "age": {"bounds": [0, 100]},
    "born": {"bounds": ["2000-01-01", "2003-12-31"]},
    "cost": {"bins": [0, 10, 100, 1000]},
}


def people(rows: int, seed: int = 1) -> pl.DataFrame:
    """Rows of every kind of column."""
    rng = np.random.default_rng(seed)
    ill = rng.random(rows) < 0.3
    return pl.DataFrame(
        {
            "sex": rng.choice(["f", "m"], rows),
            "ill": ill,
            "age": rng.integers(0, 100, rows),
            "born": pl.Series(rng.integers(10957, 12417, rows)).cast(pl.Date),
            "cost": np.where(ill, 500.0, 5.0) + rng.random(rows),
        }
    )


def opened(folder: Path, table: pl.DataFrame, **more: Any) -> Session:
    """A session over one table."""
    budget = {"epsilon": 100, "delta": "1e-4", "release_delta": "1e-9"} | more.pop("budget", {})
    policy = {
        "budget": budget | {"ledger": str(folder / "own.ledger")},
        "tables": {"people": {"columns": COLUMNS} | more},
    }
    return dt.open(policy, sources={"people": table})


def spent(session: Session) -> Fraction:
    """Epsilon, by basic composition."""
    return session.balance()[0].spent.epsilon or Fraction(0)


@pytest.fixture
def session(tmp_path: Path) -> Iterator[Session]:
    """3,000 people."""
    with opened(tmp_path, people(3000)) as found:
        yield found


def test_intervals_hold_the_exact_distances(session: Session) -> None:
    """Those of `dt.synth.compare`, on the same cells, at a large epsilon nearly exactly.

    35 intervals at 99.99 %: none may miss, but in one of 300 runs; noise is fresh.
    """
    made = people(2000, 2).with_columns(ill=pl.Series([True, False] * 1000))
    asked = session.table("people").compare(made, 2, epsilon=20)
    found = asked.release().intervals(0.9999)
    domain = domain_of(session.table("people"))
    real, codes = (codes_of(domain, t) for t in (people(3000), made))
    for names, value, low, high in found.iter_rows():
        clique = domain.clique(names)
        a, b = counted(domain, real, clique), counted(domain, codes, clique)
        exact = apart(a, b) / (2 * 3000 * 2000)
        assert exact == pytest.approx(np.abs(a / 3000 - b / 2000).sum() / 2)
        assert low <= exact <= high
        assert high - low < 0.05
        assert abs(value - exact) < 0.025
    worst = found.sort("distance")["columns"].to_list()[-1]
    assert set(worst) == {"ill", "cost"}


def test_one_unit_moves_a_distance_by_no_more_than_stated() -> None:
    """By brute force, over all small tables: rows added, removed and replaced, in any cells.

    Two cells and an outside; up to two rows of a unit; every synthetic table of up to 3 rows.
    """
    most = {False: 0, True: 0}
    cells = 2
    for synthetic in itertools.product(range(4), repeat=cells):
        m = sum(synthetic)
        if not m:
            continue
        s = np.array(synthetic)
        for base in itertools.product(range(3), repeat=cells):
            for own in itertools.product(range(3), repeat=cells):
                k = sum(own)
                if not 0 < k <= 2:
                    continue
                one, two = np.array(base), np.array(base) + np.array(own)
                moved = abs(apart(two, s) - apart(one, s))
                assert moved <= 2 * m * k
                most[False] |= moved == 2 * m * k
                for other in itertools.product(range(3), repeat=cells):
                    # Fewer rows than k: the others are in no cell.
                    if sum(other) <= k:
                        swapped = np.array(base) + np.array(other)
                        moved = abs(apart(two, s) - apart(swapped, s))
                        assert moved <= 2 * m * k
                        most[True] |= moved == 2 * m * k
    assert all(most.values())  # the bound is reached, so half of it would be caught


def test_exact_whole_numbers_do_not_overflow() -> None:
    """Tables of so many rows that their product is beyond 64 bits."""
    a, b = np.array([2**40, 1]), np.array([1, 2**40])
    assert apart(a, b) == 2 * (2**40 - 1) * (2**40 + 1)


def test_it_costs_what_it_says(session: Session) -> None:
    """Explained and previewed for nothing; one charge; a token replays it free of charge."""
    made = people(500, 3)
    before = spent(session)
    asked = session.table("people").compare(made, [["sex"], ["ill", "age"]], epsilon="1/2")
    assert "2, each as one number" in str(asked.explain())
    assert asked.preview().half_width(10_000) < 0.01
    assert spent(session) == before
    one = asked.release(token="a")
    cost = spent(session) - before
    assert 0 < cost <= Fraction(1, 2)
    again = asked.release(token="a")
    assert again.frame.equals(one.frame)
    assert spent(session) - before == cost
    assert dt.verify(one.certificate, session.ledger).ok
    # Another synthetic table is another question.
    with pytest.raises(dt.errors.TokenError):
        session.table("people").compare(
            people(500, 4), [["sex"], ["ill", "age"]], epsilon="1/2"
        ).release(token="a")


def test_pure_noise_where_delta_is_0(tmp_path: Path) -> None:
    """Laplace, and a pure charge."""
    with opened(tmp_path, people(2000), budget={"delta": 0, "release_delta": 0}) as session:
        asked = session.table("people").compare(people(2000, 5), 1, epsilon=10)
        assert "discrete Laplace" in str(asked.explain())
        assert asked.loss.charge.delta == 0
        assert asked.release().mean()[2] < 0.1


def test_units_with_many_rows(tmp_path: Path) -> None:
    """Noise grows with the rows that one unit may have; the notes say what is left out."""
    table = people(3000).with_columns(who=pl.arange(3000) // 3)
    few, many = tmp_path / "few", tmp_path / "many"
    wide = []
    for folder, rows in ((few, 1), (many, 3)):
        folder.mkdir()
        with opened(folder, table, unit="who", max_groups=1, max_rows=rows) as session:
            asked = session.table("people").compare(people(500), 1, epsilon=1)
            wide.append(asked.preview().half_width(1000))
            assert f"at most {rows} rows count" in str(asked.explain())
            assert asked.release().summary()
    assert wide[1] == pytest.approx(min(1.0, 3 * wide[0]), rel=1e-6)


def test_an_empty_table_and_a_tiny_epsilon_say_nothing(tmp_path: Path) -> None:
    """The interval is all of [0, 1], but in one of a million runs; nothing fails."""
    with opened(tmp_path, people(5)[:0]) as session:
        found = session.table("people").compare(people(50), 1, epsilon="0.001").release()
        ends = found.intervals(1 - 1e-6).select("lower", "upper")
        assert ends.unique().rows() == [(0.0, 1.0)]
        assert "Measured with noise" in found.summary()


def test_values_find_their_cells(session: Session) -> None:
    """Of every kind: bins, whole numbers in bins, months, booleans, texts, and what is in none."""
    domain = domain_of(session.table("people"))
    made = pl.DataFrame(
        {
            "sex": ["m", "f", "m"],
            "ill": [None, True, False],
            "age": [0, 100, 250],
            "born": [date(2000, 1, 31), date(2003, 12, 31), None],
            "cost": [1000.0, 10.0, -1.0],
        }
    )
    codes = {domain.names[v]: c.tolist() for v, c in codes_of(domain, made).items()}
    for name, cells in codes.items():
        attribute = domain[name]
        for cell, value in zip(cells, made[name].to_list(), strict=True):
            if attribute.period is not None and value is not None:
                value = (
                    value.replace(month=(value.month - 1) // 3 * 3 + 1, day=1)
                    if attribute.period == "quarter"
                    else value.replace(day=1)
                )
            odd = value is None or (name, value) in {("age", 250), ("cost", -1.0)}
            assert cell == (attribute.inner if odd else attribute.place(value))


@pytest.mark.parametrize(
    ("made", "tables", "message"),
    [
        (people(9).drop("age"), 1, "synthetic has no column 'age'"),
        (people(9)[:0], 1, "synthetic is empty"),
        ([1], 1, "synthetic must be a Polars"),
        (people(9).with_columns(sex=pl.lit("x")), 1, "in none of its cells"),
        (people(9).with_columns(age=pl.lit("x")), 1, "'age' holds String"),
        (people(9).with_columns(sex=pl.lit(1)), 1, "'sex' holds Int32"),
        (people(9).with_columns(born=pl.lit("x")), 1, "'born' holds String"),
        (people(9), 4, "tables"),
        (people(9), 0, "tables"),
        (people(9), [], "tables must be a number"),
        (people(9), "age", "tables must be a number"),
        (people(9), [["age"], ["age"]], "a table twice"),
    ],
)
def test_bad_input_is_refused(session: Session, made: Any, tables: Any, message: str) -> None:
    """Before anything is charged."""
    before = spent(session)
    with pytest.raises(ArgumentError, match=message):
        session.table("people").compare(made, tables, epsilon=1)
    assert spent(session) == before


def test_unknown_columns_and_too_large_an_epsilon(session: Session) -> None:
    """Named, with the nearest; and the ledger refuses what it cannot bear."""
    with pytest.raises(UnknownNameError, match="agee"):
        session.table("people").compare(people(9), [["agee"]], epsilon=1)
    with pytest.raises(BudgetError):
        session.table("people").compare(people(9), 1, epsilon=1000).release()


def test_a_picture(session: Session, tmp_path: Path) -> None:
    """Of the largest distances."""
    found = session.table("people").compare(people(300, 8), 2, epsilon=5).release()
    found.plot(tmp_path / "apart.png")
    assert (tmp_path / "apart.png").stat().st_size > 10_000
