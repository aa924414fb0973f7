"""What learning says is lost: the share that cannot be read, and that limits cut."""

from __future__ import annotations

import json
from dataclasses import replace
from fractions import Fraction as F

import numpy as np
import polars as pl
import pytest

import dither as dt
from dither.engines.duckdb import DuckDBEngine
from dither.mechanisms import DiscreteLaplace
from dither.plan import expressions as ex
from dither.plan.job import Sides
from dither.plan.lowering.lower import lower
from dither.plan.lowering.sensitivity import sensitivity
from dither.plan.schema import ColumnFacts, Kind, Schema, Table
from dither.query.learning._histogram_ends import outside_of, share_beyond
from dither.query.learning._learning import learning_query

SURE = F(10) ** 6


def opened(tmp_path, frame, columns=None, **table):
    spending = {"epsilon": 10**9, "ledger": str(tmp_path / "l.ledger")}
    given = {"budget": spending, "tables": {"t": {"columns": columns or {}, **table}}}
    return dt.open(given, sources={"t": frame})


@pytest.mark.parametrize("unit", [False, True])
def test_bounds_come_with_the_share_that_cannot_be_read(tmp_path, unit):
    """Known exactly where noise is none; NULL is no value; it costs what bounds cost."""
    texts = ["10"] * 60 + ["1,234.50"] * 30 + ["NA"] * 10 + [None] * 50
    frame = pl.DataFrame({"x": texts, "u": list(range(150))})
    limits = {"unit": "u", "max_groups": 1, "max_rows": 1} if unit else {}
    with opened(tmp_path, frame, {"x": {"type": "real"}}, **limits) as session:
        found = session.learn("t", "x", epsilon=SURE)
        assert found.unreadable == 0.4
        assert 0.4 <= found.unreadable_at_most < 0.41
        assert (found.lower, found.upper) == (7, 10)
        assert found.outside == 0
        said = " ".join(found.summary().split())
        assert "of what is there cannot be read as real (about 40.0 %), and is in no answer" in said
        assert found.certificate.to_dict()["loss"]["epsilon"] == str(SURE)
        again = json.loads(json.dumps(dict(found.content)))
        assert again["unreadable"]["expected"] == 0.4


def test_where_nothing_can_be_read_there_are_no_bounds_and_the_reason(tmp_path):
    """All of it is unreadable, which is said in place of bounds."""
    frame = pl.DataFrame({"x": ["1.234,5"] * 40})
    with opened(tmp_path, frame, {"x": {"type": "real"}}) as session:
        found = session.learn("t", "x", epsilon=SURE)
    assert found.lower is None
    assert found.unreadable == 1.0
    assert "100 % of what is there cannot be read as real" in " ".join(str(found).split())


def test_one_unit_moves_the_four_cells_by_what_is_claimed():
    """Every unit of a table, read or not, is left out in turn; the claim is met and not passed."""
    rng = np.random.default_rng(2)
    texts = ["1", "50", "900", "x", "1,5", None]
    rows = [(u, texts[rng.integers(6)]) for u in range(12) for _ in range(rng.integers(1, 5))]
    facts = {"u": ColumnFacts("u", Kind.INTEGER), "x": ColumnFacts("x", Kind.REAL)}
    schema = Schema({"t": Table("t", facts, unit="u")})
    plan = lower(learning_query(schema, "t", "bounds", "x"), schema)
    sides = next(m for m in plan.job.measurements if isinstance(m, Sides))
    assert sides.unreadable == ex.Column("t", "x")
    assert sides.bins == 4
    cut = sides.between(F(10), F(100))
    job = replace(plan.job, measurements=(cut,))
    claimed = sensitivity(
        sides, max_groups=1, max_rows=plan.job.max_rows, replace_one=False, one_group=True
    )

    def cells(kept):
        frame = pl.DataFrame(kept, schema={"u": pl.Int64, "x": pl.String}, orient="row")
        with DuckDBEngine({"t": frame}, threads=1) as engine:
            found = engine.run(job, schema, b"0123456789abcdef").values[0].dense()
        return np.asarray(found).reshape(-1)

    whole = cells(rows)
    assert len(whole) == 4
    assert (whole > 0).all()
    moved = [abs(whole - cells([r for r in rows if r[0] != u])) for u in range(12)]
    assert max(m.sum() for m in moved) == claimed.l1
    assert max((m**2).sum() for m in moved) == claimed.l2_squared


def test_the_share_holds_over_several_parts_inside():
    """In 95 % of 400 draws; more than 42 misses have probability below 1e-5."""
    rng, noise = np.random.default_rng(4), DiscreteLaplace(F(30))
    exact, false = np.array([200, 3000, 100, 90]), 0
    p = 1 - np.exp(-1 / 30)
    for _ in range(400):
        told = exact + rng.geometric(p, 4) - rng.geometric(p, 4)
        share = outside_of(told[3:], told[:3], noise, 0.95)
        false += share.most < 90 / 3390
        assert 0 <= share.expected <= share.most <= 1
    assert false <= 42


def test_answers_say_what_learned_limits_cut(tmp_path):
    """The shares of the release that learned them, in the answer and the explanation; where the
    question has limits of its own, nothing."""
    sizes = [1] * 90 + [4] * 10
    frame = pl.DataFrame({"u": [u for u, n in enumerate(sizes) for _ in range(n)]})
    with opened(tmp_path, frame, unit="u", max_groups=1, max_rows="learned") as session:
        learned = session.learn("t", epsilon=SURE)
        limit = learned.max_rows
        assert limit == 4
        question = session.sql("SELECT COUNT(*) AS n FROM t")
        for text in (question.release(SURE).summary(), str(question.explain())):
            said = " ".join(text.replace("│", " ").split())
            assert "what learned limits cut, by ledger entry 2" in said
            assert "about 0 % of the units" in said
        own = question.release(SURE, max_rows=2).summary()
        assert "learned limits" not in own


def test_rows_beyond_a_limit_are_told_from_the_noisy_sizes():
    """A tenth of the units has 4 rows, and a limit of 1: 30 of 130 rows are cut."""
    noise = DiscreteLaplace(F(1, 100))
    counts, sizes = np.array([90, 0, 0, 10, 0]), [F(1), F(2), F(3), F(4), F(99)]
    assert share_beyond(counts, sizes, F(1), noise) == pytest.approx(30 / 130)
    assert share_beyond(counts, sizes, F(4), noise) == 0
    assert share_beyond(np.zeros(5, dtype=np.int64), sizes, F(1), noise) is None


def test_older_facts_say_what_they_know():
    """An answer that was stored before says nothing of rows, and is read."""
    from types import SimpleNamespace

    from dither.policy._facts import Fact

    content = {"rows": {"upper": "3", "expected": 0.068, "most": 0.089}, "by": []}
    fact = Fact("limits", "t", None, content, SimpleNamespace(number=8))
    (told,) = fact.cut(rows=3, groups=1)
    assert told == (
        "what learned limits cut, by ledger entry 8: about 6.8 % of the units (at most 8.9 %) have "
        "more than 3 rows; grouped otherwise it may be more"
    )
    assert fact.cut(rows=4) == []
