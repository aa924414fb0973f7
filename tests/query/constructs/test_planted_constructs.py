"""A plausible mistake in what each construct of SQL is read as, seen by an answer that is known.

Noise is hardly there, so that an answer is that of Polars, or it is not: each question agrees with
it, and no longer does with the mistake planted.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import Any

import polars as pl
import pytest
from sqlglot import exp

import dither as dt
from dither.plan import aggregates as ag
from dither.plan import expressions as ex
from dither.plan.lowering import expanded, measurements
from dither.sql import aggregates, select

LARGE = 10**5
ROWS = pl.DataFrame(
    {
        "a": [1.0, 2.0, 3.0, None, 5.0, 9.0] * 50,
        "b": [2.0, 4.0, 5.0, 8.0, None, 18.0] * 50,
        "t": [True, None, False, True, None, True] * 50,
        "z": [0.0] * 120 + [10.0] * 180,
    }
)
COLUMNS = {
    "a": {"bounds": [0, 10]},
    "b": {"bounds": [0, 20]},
    "z": {"bounds": [0, 10], "step": "0.5"},
}
BOTH = ROWS.filter(pl.col("a").is_not_null() & pl.col("b").is_not_null())
A, B = BOTH["a"].to_numpy(), BOTH["b"].to_numpy()
MOVED = float(((A - A.mean()) * (B - B.mean())).mean())


@dataclass(frozen=True)
class Planted:
    """A mistake: where it stands, what it is, and a question with its true answers."""

    module: Any
    name: str
    mistake: Any
    sql: str
    true: tuple[float, ...]


def _true_or_unknown(found: ag.AggregateFunction, condition: ex.Expression) -> ag.AggregateFunction:
    """FILTER that keeps rows of which nobody knows."""
    return expanded.filtered(found, ex.Or((condition, ex.IsNull(condition))))


def _known(node: exp.Expression, place: Any) -> ag.AggregateFunction:
    """COUNT_IF as COUNT: of false ones too."""
    return ag.CountValues(place.read(node.this))


def _unknown_as_false(node: ex.Expression, scope: Any) -> ex.Expression:
    """A truth value as a number that is never NULL."""
    if not isinstance(node, ex.Column) or node.name != "t":
        return node
    return ex.Case(((node, ex.Literal(1)),), ex.Literal(0))


def _unknown_as_true(node: ex.Expression, scope: Any) -> ex.Expression:
    """A truth value of which all that is not false counts."""
    if not isinstance(node, ex.Column) or node.name != "t":
        return node
    return ex.Case(((ex.Not(node), ex.Literal(0)),), ex.Literal(1))


def _other_end(found: ag.AggregateFunction) -> str:
    """The name of a quantile counted from above."""
    assert isinstance(found, ag.Quantile)
    return REAL_SUFFIX(replace(found, q=1 - found.q))


REAL_SUFFIX = select.suffix
REAL_PAIR = expanded._Pair
REAL_DISTINCT = measurements.Distinct
REAL_APPLIED = expanded.apply
COUNTED = "SELECT COUNT(*) FILTER (WHERE t) AS x, SUM(a) FILTER (WHERE NOT t) AS y FROM r"

PLANTED: dict[str, Planted] = {
    "FILTER": Planted(aggregates, "filtered", _true_or_unknown, COUNTED, (150.0, 150.0)),
    "COUNT_IF": Planted(
        aggregates,
        "_RULES",
        {**aggregates._RULES, exp.CountIf: _known},
        "SELECT COUNT_IF(t) AS x FROM r",
        (150.0,),
    ),
    "SUM of truth values": Planted(
        expanded, "_number", _unknown_as_true, "SELECT SUM(t) AS x FROM r", (150.0,)
    ),
    "AVG of truth values": Planted(
        expanded, "_number", _unknown_as_false, "SELECT AVG(t) AS x FROM r", (0.75,)
    ),
    "a list of quantiles": Planted(
        select, "suffix", _other_end, "SELECT QUANTILE_CONT(z, [0.2, 0.8]) FROM r", (0, 10)
    ),
    "QUANTILE_DISC": Planted(
        aggregates,
        "_label",
        lambda node: "quantile",
        # Found in steps of four, of which an interpolated one gives the middle.
        "SELECT QUANTILE_DISC(c, 0.5) - FLOOR(QUANTILE_DISC(c, 0.5)) AS x FROM s",
        (0,),
    ),
    "rows of a pair": Planted(
        expanded,
        "_where_known",
        lambda node, other, scope: node,
        "SELECT REGR_AVGX(b, a) AS x, REGR_COUNT(b, a) AS y FROM r",
        (float(A.mean()), len(A)),
    ),
    "COVAR_POP": Planted(
        REAL_PAIR,
        "_covariance",
        lambda self: ag.Mean(ex.Arithmetic("*", self.x, self.y)),
        "SELECT COVAR_POP(b, a) AS x FROM r",
        (MOVED,),
    ),
    "COVAR_SAMP": Planted(
        REAL_PAIR,
        "statistic",
        lambda self, word: self._covariance(),
        "SELECT COVAR_SAMP(b, a) AS x FROM r",
        (MOVED * len(A) / (len(A) - 1),),
    ),
    "CORR": Planted(
        REAL_PAIR,
        "_variance",
        lambda self, part: ag.Variance(self.x, sample=False),
        "SELECT CORR(b, a) AS x FROM r",
        (MOVED / math.sqrt(A.var() * B.var()),),
    ),
    "REGR_SLOPE": Planted(
        REAL_PAIR,
        "_variance",
        lambda self, part: ag.Variance(self.y, sample=False),
        "SELECT REGR_SLOPE(b, a) AS x, REGR_INTERCEPT(b, a) AS y FROM r",
        (MOVED / A.var(), B.mean() - MOVED / A.var() * A.mean()),
    ),
    "REGR_INTERCEPT": Planted(
        REAL_PAIR,
        "_slope",
        lambda self: REAL_APPLIED("/", self._covariance(), self._variance(self.y)),
        "SELECT REGR_INTERCEPT(b, a) AS x FROM r",
        (B.mean() - MOVED / A.var() * A.mean(),),
    ),
    # Of the rows in which one of the two is known.
    "REGR_COUNT": Planted(
        REAL_PAIR,
        "statistic",
        lambda self, word: ag.CountValues(ex.Column("r", "b")),
        "SELECT REGR_COUNT(b, a) AS x FROM r",
        (len(A),),
    ),
    "REGR_AVGX": Planted(
        REAL_PAIR,
        "statistic",
        lambda self, word: ag.Mean(self.y if word == "REGR_AVGX" else self.x),
        "SELECT REGR_AVGX(b, a) AS x, REGR_AVGY(b, a) AS y FROM r",
        (float(A.mean()), float(B.mean())),
    ),
    "COUNT(DISTINCT a, b)": Planted(
        measurements,
        "Distinct",
        lambda operand, others: REAL_DISTINCT(operand),
        # Rows in which one is NULL do not count, as they would of the first alone.
        "SELECT COUNT(DISTINCT z, a) AS x, COUNT(DISTINCT a, b) AS y FROM r",
        (10, 4),
    ),
    "REGR_R2": Planted(
        expanded,
        "apply",
        lambda op, *xs: xs[0] if op == "POWER" else REAL_APPLIED(op, *xs),
        "SELECT REGR_R2(b, a) AS x FROM r",
        (MOVED**2 / (A.var() * B.var()),),
    ),
}


@pytest.fixture(scope="module")
def session(tmp_path_factory):
    """Rows are people; one table has whole numbers within wide bounds."""
    folder = tmp_path_factory.mktemp("planted")
    whole = pl.DataFrame({"c": [1_000_003] * 500})
    declared = {
        "budget": {"epsilon": 10**9, "ledger": str(folder / "planted.ledger")},
        "tables": {
            "r": {"columns": COLUMNS},
            "s": {"columns": {"c": {"bounds": [0, 4_000_000]}}},
        },
    }
    with dt.open(declared, sources={"r": ROWS, "s": whole}) as opened:
        yield opened


def answers(session: dt.Session, sql: str) -> list[float]:
    """What a question gives, nearly without noise."""
    release = session.sql(sql).release(LARGE)
    return [release.frame[name][0] for name in sorted(release.outputs)]


@pytest.mark.parametrize("construct", PLANTED)
def test_a_mistake_in_a_construct_is_seen(session, monkeypatch, construct):
    """The answer is the true one, and with the mistake it is another, or none."""
    planted = PLANTED[construct]
    right = [pytest.approx(true, rel=1e-3, abs=1e-3) for true in planted.true]
    assert answers(session, planted.sql) == right
    monkeypatch.setattr(planted.module, planted.name, planted.mistake)
    assert answers(session, planted.sql) != right
