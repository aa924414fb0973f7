"""What an attacker would try: nothing reaches past the tables of the policy."""

from __future__ import annotations

import pytest

from dither.errors import DitherError, QueryError
from dither.plan import expressions as ex
from dither.plan.relations import Filter, Scan
from dither.sql import Names, parse_expression, parse_query
from sql.sql_tables import SCHEMA

STATEMENTS = [
    "COPY visits TO 'out.csv'",
    "COPY (SELECT * FROM visits) TO 'out.csv'",
    "ATTACH 'other.duckdb'",
    "DETACH visits",
    "PRAGMA database_list",
    "INSTALL httpfs",
    "LOAD httpfs",
    "SET enable_external_access = true",
    "RESET ALL",
    "EXPORT DATABASE 'x'",
    "IMPORT DATABASE 'x'",
    "CALL pragma_version()",
    "EXPLAIN SELECT * FROM visits",
    "SUMMARIZE visits",
    "DESCRIBE visits",
    "SHOW TABLES",
    "CREATE TABLE t AS SELECT * FROM visits",
    "CREATE MACRO f() AS 1",
    "CREATE SECRET s (TYPE s3)",
    "DROP TABLE visits",
    "ALTER TABLE visits ADD COLUMN x INT",
    "INSERT INTO visits VALUES (1)",
    "UPDATE visits SET age = 1",
    "DELETE FROM visits",
    "TRUNCATE visits",
    "MERGE INTO visits USING cities ON 1 = 1 WHEN MATCHED THEN DELETE",
    "BEGIN",
    "COMMIT",
    "VACUUM",
    "CHECKPOINT",
    "USE other",
    "PREPARE p AS SELECT 1",
    "EXECUTE p",
    "PIVOT visits ON region USING SUM(cost)",
    "UNPIVOT visits ON age",
    "TABLE visits",
    "VALUES (1)",
]

SOURCES = [
    "'file.parquet'",
    '"file.parquet"',
    "'https://example.org/x.csv'",
    "read_csv('x.csv')",
    "read_parquet('*.parquet')",
    "read_text('/etc/passwd')",
    "read_blob('x')",
    "glob('*')",
    "parquet_scan('x')",
    "sqlite_scan('x', 'y')",
    "query('SELECT 1')",
    "query_table('visits')",
    "duckdb_settings()",
    "duckdb_tables",
    "pragma_table_info('visits')",
    "information_schema.tables",
    "pg_catalog.pg_tables",
    "sqlite_master",
    "main.visits",
    "memory.main.visits",
    "range(10)",
    "generate_series(1, 10)",
    "unnest([1, 2])",
    "(VALUES (1)) AS t(x)",
    "(FROM 'people.csv')",
    "(SELECT 1)",
    "visits, people",
    "visits v, visits w",
    "visits JOIN visits w ON TRUE",
    "visits JOIN visits w USING (region)",
    "visits AS v TABLESAMPLE 1 ROWS",
    "visits AT (VERSION => 1)",
    "visits@x",
    "$1",
    "?",
]

PREDICATES = [
    "1 = 1; DROP TABLE visits",
    "1 = 1); DROP TABLE visits; --",
    "1 = 1 UNION SELECT pid FROM visits",
    "1 = 1) UNION SELECT pid FROM visits --",
    "age = (SELECT MAX(age) FROM visits)",
    "EXISTS (SELECT 1 FROM people)",
    "pid IN (SELECT pid FROM people)",
    "getenv('HOME') = 'x'",
    "current_setting('threads') = '1'",
    "error('x') IS NULL",
    "random() < 0.5",
    "uuid() = 'x'",
    "nextval('s') = 1",
    "age / 0 = 1 AND error('found') = 'x'",
    "rowid = 0",
    "ctid = 0",
    "list_transform([age], x -> x)[1] = 1",
    "visits IS NULL",
    "COLUMNS(*) IS NULL",
    "age = $1",
    "age = ?",
    "age = getvariable('x')",
    "row_number() OVER () = 1",
    "LAG(age) OVER (ORDER BY pid) = 1",
    "struct_pack(a := age) IS NULL",
    "age BETWEEN 1 AND 2 COLLATE nocase",
]


@pytest.mark.parametrize("text", STATEMENTS)
def test_other_statements_are_refused(text: str) -> None:
    """Alone, behind a query and before one."""
    for whole in (
        text,
        f"SELECT COUNT(*) FROM visits; {text}",
        f"{text}; SELECT 1",
        f"/**/ {text}",
    ):
        with pytest.raises(QueryError):
            parse_query(whole, SCHEMA)


@pytest.mark.parametrize("source", SOURCES)
def test_other_sources_are_refused(source: str) -> None:
    """Files, functions, system tables, subqueries, and products of tables."""
    with pytest.raises(QueryError):
        parse_query(f"SELECT COUNT(*) FROM {source}", SCHEMA)
    with pytest.raises(QueryError):
        parse_query(f"SELECT COUNT(*) FROM visits JOIN {source} ON TRUE", SCHEMA)


@pytest.mark.parametrize("predicate", PREDICATES)
def test_other_predicates_are_refused(predicate: str) -> None:
    """In WHERE, and in an expression of the Python builder."""
    with pytest.raises(DitherError):
        parse_query(f"SELECT COUNT(*) FROM visits WHERE {predicate}", SCHEMA)
    with pytest.raises(DitherError):
        parse_expression(predicate, Names(Scan("visits", "visits"), SCHEMA))


@pytest.mark.parametrize(
    "text",
    ["'; DROP TABLE visits; --", "' OR 1 = 1 --", "\\' OR 1 = 1 --", "/* */", '"', "a\nb", "\x00"],
)
def test_text_stays_text(text: str) -> None:
    """A constant with quotes or comments in it is that constant and nothing else."""
    quoted = text.replace("'", "''")
    query = parse_query(f"SELECT COUNT(*) FROM visits WHERE \"group\" = '{quoted}'", SCHEMA)
    wanted = ex.Compare("=", ex.Column("visits", "group"), ex.Literal(text))
    assert query.relation == Filter(Scan("visits", "visits"), wanted)


def test_comments_say_nothing() -> None:
    """A comment is dropped, a hint too."""
    plain = parse_query("SELECT COUNT(*) FROM visits", SCHEMA)
    noted = "SELECT /*+ NO_CLAMP */ COUNT(*) /* ; DROP */ FROM visits -- WHERE age = 1"
    assert parse_query(noted, SCHEMA) == plain
