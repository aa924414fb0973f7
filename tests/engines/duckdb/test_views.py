"""Views of a DuckDB database: read where each row comes from one row, else refused."""

from __future__ import annotations

from fractions import Fraction

import duckdb
import pytest

import dither as dt
from dither.engines.duckdb import DuckDBEngine, FileSource
from dither.errors import PolicyError
from dither.plan.expressions import Column
from dither.plan.job import GroupKey, Job, Rows, Total
from dither.plan.relations import Scan
from dither.plan.schema import ColumnFacts, Kind, Schema, Table

KEY = b"0123456789abcdef"
BASE = (
    "CREATE TABLE t AS SELECT * FROM (VALUES (1, 'a', 1.5::DOUBLE, DATE '2020-01-01', true), "
    "(2, 'b', NULL, DATE '2021-01-01', false), (3, NULL, 7.0, NULL, NULL)) AS v(n, w, x, d, b)"
)


def database(folder, *statements: str):
    """A database with the table ``t`` and what is made after it."""
    path = folder / "s.duckdb"
    path.unlink(missing_ok=True)
    with duckdb.connect(str(path)) as made:
        for statement in (BASE, *statements):
            made.execute(statement)
    return path


def sizes(path, view: str) -> tuple[int, bool, dict]:
    """How many rows a view has, whether all are read, and the sums of ``n``."""
    schema = Schema(
        {"v": Table("v", {"n": ColumnFacts("n", Kind.INTEGER, Fraction(0), Fraction(9))})}
    )
    job = Job(Scan("v", "v"), None, (), (Rows(), Total(Column("v", "n"), Fraction(1), 0, 9)), 1, 1)
    with DuckDBEngine({"v": FileSource(path, "duckdb", view)}) as engine:
        engine.check(schema)
        engine.prepare(job, schema)
        found = engine.run(job, schema, KEY)
        count = int(found.values[0][0]), int(found.values[1][0])
        return *count, engine.complete("v")


@pytest.mark.parametrize(
    ("definition", "expected"),
    [
        ("SELECT * FROM t", (3, 6, True)),
        ("SELECT n, w AS name FROM t", (3, 6, True)),
        ("SELECT * EXCLUDE (w) FROM main.t AS base", (3, 6, True)),
        ("SELECT n FROM t WHERE n > 1 AND (w = 'b' OR w IS NULL)", (2, 5, False)),
        ("SELECT n FROM t WHERE d BETWEEN DATE '2020-06-01' AND DATE '2022-01-01'", (1, 2, False)),
        ("SELECT n FROM t WHERE NOT b OR x >= 1.25", (3, 6, False)),
        ("SELECT n FROM t WHERE w IN ('a', 'z')", (1, 1, False)),
        ("SELECT CASE WHEN b THEN n ELSE 0 END AS n FROM t", (3, 1, True)),
        ("SELECT COALESCE(TRY_CAST(w AS INTEGER), n) AS n FROM t", (3, 6, True)),
        ("SELECT CAST(1 AS INTEGER) AS k, n FROM t", None),
    ],
)
def test_a_view_that_takes_each_row_by_itself_is_read(tmp_path, definition, expected):
    """Plain columns and total conditions; with a condition, the number of rows is not public."""
    path = database(tmp_path, f"CREATE VIEW v AS {definition}")
    if expected is None:
        with pytest.raises(PolicyError, match="fails on values that do not fit"):
            sizes(path, "v")
    else:
        assert sizes(path, "v") == expected


def test_views_of_views_and_their_names(tmp_path):
    """Each step is shown anew; a list of names renames, and filters below are remembered."""
    path = database(
        tmp_path,
        "CREATE SCHEMA other",
        "CREATE VIEW below (m, name) AS SELECT n, w FROM t WHERE n < 3",
        "CREATE VIEW other.above AS SELECT name, m AS n FROM main.below",
        "CREATE VIEW limited AS SELECT * FROM t LIMIT 2",
        "CREATE VIEW hidden AS SELECT * FROM limited",
    )
    assert sizes(path, "other.above") == (2, 3, False)
    with pytest.raises(PolicyError, match="the view 'limited' cannot be protected: it has LIMIT"):
        sizes(path, "hidden")


@pytest.mark.parametrize(
    ("definition", "reason"),
    [
        ("SELECT * FROM t LIMIT 2", "LIMIT"),
        ("SELECT * FROM t LIMIT 50 PERCENT", "LIMIT"),
        ("SELECT * FROM t ORDER BY n OFFSET 1", "ORDER BY|OFFSET"),
        ("SELECT * FROM t ORDER BY w::INTEGER", "ORDER BY"),
        ("SELECT DISTINCT w FROM t", "DISTINCT"),
        ("SELECT DISTINCT ON (w) * FROM t", "DISTINCT"),
        ("SELECT w, count(*) AS n FROM t GROUP BY w", "GROUP BY"),
        ("SELECT count(*) AS n FROM t", "computes"),
        ("SELECT n, row_number() OVER () AS r FROM t", "computes"),
        ("SELECT n, sum(n) OVER (PARTITION BY w) AS r FROM t", "computes"),
        ("SELECT n FROM t QUALIFY row_number() OVER (ORDER BY n) < 3", "QUALIFY"),
        ("SELECT * FROM t USING SAMPLE 1", "sample"),
        ("SELECT * FROM t TABLESAMPLE 50%", "sample"),
        ("SELECT * FROM t, t AS o", "a join"),
        ("SELECT t.* FROM t JOIN t AS o USING (n)", "one table of its own database"),
        ("SELECT n FROM t UNION ALL SELECT n FROM t", "not one plain SELECT"),
        ("WITH c AS (SELECT * FROM t) SELECT * FROM c", "WITH"),
        ("SELECT n FROM (SELECT n FROM t LIMIT 1)", "one table of its own database"),
        ("SELECT CAST(w AS INTEGER) AS n FROM t", "fails on values"),
        ("SELECT n FROM t WHERE d > TIMESTAMP '2020-01-01 00:00:00'", "of different types"),
        ("SELECT n + 2147483647 AS n FROM t", "computes"),
        ("SELECT 1 / n AS n FROM t", "computes"),
        ("SELECT unnest([n, n]) AS n FROM t", "computes"),
        ("SELECT (SELECT max(n) FROM t) AS n FROM t", "computes"),
        ("SELECT n FROM t WHERE n IN (SELECT max(n) FROM t)", "condition|computes"),
        ("SELECT n FROM t WHERE random() < 0.5", "computes"),
        ("SELECT n, nextval('q') AS r FROM t", "computes"),
        ("SELECT error(w) AS n FROM t", "computes"),
        ("SELECT n FROM range(3) AS r(n)", "one table of its own database"),
        ("SELECT n FROM t AS a(n)", "other names"),
        ("SELECT COLUMNS('n|x') FROM t", "computes"),
        ("SELECT * REPLACE (1 / n AS n) FROM t", "REPLACE"),
        ("SELECT COALESCE(x, n) AS n FROM t", "mixes types"),
        ("VALUES (1), (2)", "one table of its own database"),
    ],
)
def test_other_views_are_refused(tmp_path, definition, reason):
    """Whatever makes one row depend on others, or can fail on a value; said by name, with a fix."""
    path = database(tmp_path, "CREATE SEQUENCE q", f"CREATE VIEW v AS {definition}")
    with pytest.raises(PolicyError, match=reason) as caught:
        sizes(path, "v")
    assert "name the table itself as the source" in str(caught.value)


def test_a_view_over_files_is_refused_when_opened(tmp_path):
    """Nothing is charged for a source that the locked engine could never read."""
    duckdb.sql("SELECT 1 AS n").write_parquet(str(tmp_path / "n.parquet"))
    (tmp_path / "n.csv").write_text("n\n1\n")
    views = [
        f"CREATE VIEW p AS SELECT * FROM '{tmp_path}/n.parquet'",
        f"CREATE VIEW c AS SELECT * FROM read_csv('{tmp_path}/n.csv')",
    ]
    path = database(tmp_path, *views)
    for view in "pc":
        policy = {
            "budget": {"epsilon": 1, "ledger": str(tmp_path / "l")},
            "tables": {"n": {"source": str(path), "table": view}},
        }
        with pytest.raises(PolicyError, match=r"a join, a file or a function, say"):
            dt.open(policy)
    assert not (tmp_path / "l").exists()


def test_the_size_of_a_filtered_view_is_not_given_away(tmp_path):
    """Under replace-one a whole table's size is public, and that of a view with WHERE is not."""
    path = database(
        tmp_path,
        "CREATE VIEW part AS SELECT * FROM t WHERE n > 1",
        "CREATE VIEW whole AS SELECT n FROM t",
    )
    seen = {}
    for view in ("part", "whole"):
        policy = {
            "budget": {"epsilon": 100, "ledger": str(tmp_path / view), "neighbours": "replace_one"},
            "tables": {"people": {"source": str(path), "table": view}},
        }
        with dt.open(policy) as session:
            question = session.sql("SELECT COUNT(*) AS n FROM people")
            answers = {question.release("0.05").frame["n"][0] for _ in range(12)}
            seen[view] = answers, session.balance()[0].spent.epsilon
    # Twelve draws of a scale of 20 are alike with probability below 1e-15.
    assert len(seen["part"][0]) > 1
    assert seen["part"][1] == Fraction(12, 20)
    assert seen["whole"] == ({3}, 0)


def test_collations_and_generated_columns_of_a_table(tmp_path):
    """Texts are compared as they are stored; what a table computes may fail, and is not a unit."""
    path = database(
        tmp_path,
        "CREATE TABLE c (n INTEGER, w VARCHAR COLLATE NOCASE, m INTEGER AS (n + 1))",
        "INSERT INTO c (n, w) VALUES (1, 'a'), (2, 'A'), (3, 'a')",
        "CREATE VIEW v AS SELECT n, w, m FROM c",
    )
    facts = {
        "n": ColumnFacts("n", Kind.INTEGER),
        "w": ColumnFacts("w", Kind.TEXT),
        "m": ColumnFacts("m", Kind.INTEGER),
    }
    key = GroupKey("w", Column("t", "w"), Kind.TEXT, None)
    for name in ("c", "v"):
        schema = Schema({"t": Table("t", facts)})
        with DuckDBEngine({"t": FileSource(path, "duckdb", name)}) as engine:
            found = engine.run(Job(Scan("t", "t"), None, (key,), (Rows(),), 1, 1), schema, KEY)
            assert dict(zip(found.keys, found.values[0].tolist(), strict=True)) == {
                ("a",): 2,
                ("A",): 1,
            }
            bad = Schema({"t": Table("t", facts, unit="m", max_groups=1, max_rows=1)})
            with pytest.raises(PolicyError, match="not read as it is stored"):
                engine.check(bad)
