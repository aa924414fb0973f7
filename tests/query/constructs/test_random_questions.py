"""Whatever is asked, an answer or an error of ours comes out, and an error costs nothing."""

from __future__ import annotations

import random
import re
from collections.abc import Iterator
from pathlib import Path

import polars as pl
import pytest

import dither as dt
from dither.errors import DitherError, EngineError

ROWS = pl.DataFrame(
    {
        "u": [f"p{i // 3}" for i in range(60)],
        "i": [(0, 1, -1, 2**63 - 1, -(2**63), None)[i % 6] for i in range(60)],
        "x": [(0.0, -0.0, float("nan"), float("inf"), 1e308, None, 2.5)[i % 7] for i in range(60)],
        "w": [("a", "B", "", "é", None)[i % 5] for i in range(60)],
        "b": [(True, False, None)[i % 3] for i in range(60)],
        "d": [None, *pl.date_range(pl.date(1999, 12, 1), pl.date(2000, 1, 28), eager=True)],
    }
)
POLICY = {
    "unit": "u",
    "max_groups": 2,
    "max_rows": 2,
    "columns": {
        "i": {"bounds": [-5, 5]},
        "x": {"bounds": [0, 10], "bins": [0, 5, 10]},
        "w": {"values": ["a", "B"]},
    },
}

ATOMS = {
    "number": ("i", "x", "t.i", "0", "7", "2.5", "-9223372036854775808"),
    "text": ("w", "'a'", "u", "''"),
    "date": ("d", "DATE '2000-01-01'"),
    "condition": ("b", "TRUE"),
    "odd": ("y", "NULL", "*", "1e39", "99999999999999999999", '"i"', "'2000-01-01'"),
}
SHAPES = {
    "number": ("{number} + {number}", "{number} / {number}", "{number} % {number}", "-{number}",
               "ABS({number})", "FLOOR({number})", "LEAST({number}, {number})", "YEAR({date})",
               "CLAMP({number}, -3, 9)", "CASE WHEN {condition} THEN {number} END",
               "COALESCE({number}, {number})", "EXTRACT(dow FROM {date})", "({number})",
               "NULLIF({number}, {number})", "BIN({number}, 0, 3, 9)"),
    "text": ("LOWER({text})", "LEFT({text}, 1)", "CASE WHEN {condition} THEN {text} END"),
    "date": ("DATE_TRUNC('month', {date})", "COALESCE({date}, {date})"),
    "condition": ("{number} = {number}", "{number} < {number}", "{text} IS NULL", "NOT {condition}",
                  "{date} <= {date}", "{number} BETWEEN {number} AND {number}",
                  "{number} IN (7, 3.5)", "{text} IN ('a', 'é')", "({condition} OR {condition})",
                  "{condition} AND {condition}"),
    "odd": ("{text} || {text}", "{date}::DATE", "{number} // {number}", "SQRT({number})"),
}  # fmt: skip
AGGREGATES = ("COUNT(*)", "COUNT({text})", "COUNT(DISTINCT u)", "SUM({bounded})", "AVG({bounded})",
              "MIN({bounded})", "MEDIAN({bounded})", "VARIANCE({bounded})", "STDDEV_POP({bounded})",
              "QUANTILE_CONT({bounded}, 0.9)", "SUM({bounded}) / COUNT(*)", "SUM({number})",
              "SUM({bounded}) / COUNT({date})", "SUM({number}) + 1")  # fmt: skip
PIECES = ("", ",", "(", ")", "GROUP BY", "ALL", "1", "HAVING", "'", "LIMIT -1", "DISTINCT", "--",
          "ORDER BY 9", "OVER ()", "AS", "FROM t", ";", "é", "\x00", "NULL")  # fmt: skip


def expression(draw: random.Random, kind: str, depth: int = 2) -> str:
    """A value of a row; one in forty of another kind, or of none."""
    if draw.random() < 1 / 40:
        kind = draw.choice(list(ATOMS))
    if depth == 0 or draw.random() < 0.4:
        return draw.choice(ATOMS[kind])
    return filled(draw, draw.choice(SHAPES[kind]), depth - 1)


def filled(draw: random.Random, shape: str, depth: int = 2) -> str:
    """A shape with an expression in each of its places."""

    def one(place: re.Match[str]) -> str:
        if place[1] == "bounded":
            return f"CLAMP({expression(draw, 'number', depth)}, -3, 9)"
        return expression(draw, place[1], depth)

    return re.sub(r"\{(\w+)\}", one, shape)


def statement(draw: random.Random) -> str:
    """A query; one in three has a piece cut out, or one put in."""
    kinds = draw.choices(("text", "date", "condition", "number"), k=draw.choice((0, 0, 1, 2)))
    keys = [expression(draw, kind, 1) for kind in kinds]
    asked = [filled(draw, draw.choice(AGGREGATES)) for _ in range(draw.choice((1, 1, 2)))]
    where = f" WHERE {expression(draw, 'condition')}" if draw.random() < 0.5 else ""
    by = [draw.choice((key, str(i + 1))) for i, key in enumerate(keys)]
    group = f" GROUP BY {', '.join(by)}" if by else draw.choice(("", "", " GROUP BY ALL"))
    order = draw.choice(("", "", " ORDER BY 1", " ORDER BY COUNT(*) DESC LIMIT 2", " LIMIT 0"))
    text = f"SELECT {', '.join([*keys, *asked])} FROM t{where}{group}{order}"
    if draw.random() < 1 / 3:
        start = draw.randrange(len(text))
        text = text[:start] + draw.choice(PIECES) + text[start + draw.randrange(8) :]
    return text


@pytest.fixture(scope="module")
def session(tmp_path_factory: pytest.TempPathFactory) -> Iterator[dt.Session]:
    """A budget that no number of releases uses up."""
    folder: Path = tmp_path_factory.mktemp("any")
    budget = {
        "epsilon": 10**6,
        "delta": "0.5",
        "release_delta": "1e-6",
        "ledger": str(folder / "l"),
    }
    made = {"budget": budget, "tables": {"t": POLICY}}
    with dt.open(made, sources={"t": ROWS}) as opened:
        yield opened


@pytest.mark.parametrize("part", range(3))
def test_any_statement_is_answered_or_refused_for_nothing(session: dt.Session, part: int) -> None:
    """A hundred statements each: only errors of the package, none after the charge."""
    draw = random.Random(f"statements {part}")
    answered = 0
    for _ in range(100):
        text = statement(draw)
        before = session.balance()[0].spent
        try:
            question = session.sql(text)
            str(question.explain())
            release = question.release(1)
        except EngineError as error:
            raise AssertionError(f"charged, and failed: {text}") from error
        except DitherError:
            assert session.balance()[0].spent == before, text
            continue
        except Exception as error:
            raise AssertionError(f"not an error of ours: {text}") from error
        answered += 1
        assert release.frame.width == len(release.keys) + 3 * len(release.outputs)
        assert release.summary()
    assert 10 <= answered <= 80
