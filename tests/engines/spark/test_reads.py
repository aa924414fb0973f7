"""Spark from a policy to a release, and what it refuses to read."""

from __future__ import annotations

import datetime as dt_
import subprocess
import sys

import polars as pl
import pytest

import dither as dt
from dither.engines import TableSource, backend
from dither.engines.writer.dialect import Seeds
from dither.errors import ArgumentError, DitherError, EngineError, PolicyError
from dither.plan.schema import ColumnFacts, Kind
from spark_session import JAVA_OPTIONS, needs_spark, spark_session

pytestmark = [*needs_spark]

ROWS = pl.DataFrame(
    {
        "u": [i // 2 for i in range(120)],
        "region": ["north" if i % 3 else "south" for i in range(120)],
        "age": [i % 90 for i in range(120)],
    }
)
ASKED = "SELECT region, COUNT(*) AS n, AVG(age) AS a FROM visits GROUP BY region"


@pytest.fixture
def session():
    """The user's session."""
    return spark_session()


@pytest.fixture
def rows(tmp_path):
    """A folder of Parquet files."""
    folder = tmp_path / "visits"
    folder.mkdir()
    ROWS[:70].write_parquet(folder / "a.parquet")
    ROWS[70:].write_parquet(folder / "b.parquet")
    return folder


@pytest.fixture
def table(session, rows):
    """A table of the catalog, and what was made of it goes with it."""
    session.sql("CREATE DATABASE IF NOT EXISTS clinic")
    session.sql("DROP TABLE IF EXISTS clinic.visits")
    session.read.parquet(str(rows)).write.saveAsTable("clinic.visits")
    yield "clinic.visits"
    session.sql("DROP DATABASE clinic CASCADE")


def policy(tmp_path, source=None, **engine):
    """A policy over the visits."""
    tmp_path.mkdir(exist_ok=True)
    visits = {
        "unit": "u",
        "max_groups": 2,
        "max_rows": 2,
        "columns": {"region": {"values": ["north", "south"]}, "age": {"bounds": [0, 100]}},
    }
    return {
        "budget": {"epsilon": 9000, "delta": "1e-6", "ledger": str(tmp_path / "visits.ledger")},
        "engine": engine,
        "tables": {"visits": visits | ({"source": {"spark": source}} if source else {})},
    }


def answer(session):
    """What the visits say, nearly without noise."""
    frame = session.sql(ASKED).release(epsilon=1000).frame.sort("region")
    return dict(zip(frame["region"], frame["n"], strict=True))


EXPECTED = {"north": 80, "south": 40}


def test_files_a_table_a_view_and_a_frame_are_read_alike(session, rows, table, tmp_path):
    """Whatever holds the rows, the same integers."""
    session.sql(f"CREATE VIEW clinic.kept AS SELECT u, region, age FROM {table} WHERE age >= 0")
    session.read.parquet(str(rows)).createOrReplaceTempView("mine")
    for number, source in enumerate((str(rows), table, "clinic.kept", "mine")):
        with dt.open(policy(tmp_path / str(number), source), engines={"spark": session}) as opened:
            assert answer(opened) == EXPECTED, source
    frame = session.read.parquet(str(rows)).select("u", "region", "age").where("age >= 0")
    with dt.open(policy(tmp_path / "frame"), sources={"visits": frame}) as opened:
        assert answer(opened) == EXPECTED


def test_a_given_session_keeps_its_settings_and_views(session, rows, tmp_path):
    """What is set for our queries is set for nobody else."""
    before = {r[0]: r[1] for r in session.sql("SET").collect()}
    views = [t.name for t in session.catalog.listTables()]
    with dt.open(policy(tmp_path, str(rows)), engines={"spark": session}) as opened:
        assert answer(opened) == EXPECTED
        assert {r[0]: r[1] for r in session.sql("SET").collect()} == before
    assert [t.name for t in session.catalog.listTables()] == views
    assert session.sql("SELECT 1").collect()


NOT_ROWWISE = {
    "SELECT * FROM {} LIMIT 5": "LIMIT",
    "SELECT DISTINCT * FROM {}": "DISTINCT",
    "SELECT u, region, COUNT(*) AS age FROM {} GROUP BY u, region": "aggregate",
    "SELECT * FROM {0} UNION ALL SELECT * FROM {0}": "union",
    "SELECT u, region, CAST(ROW_NUMBER() OVER (ORDER BY age) AS INT) AS age FROM {}": "window",
    "SELECT u, region, CAST(region AS BIGINT) AS age FROM {}": "not known .Cast",
    "SELECT u, region, age FROM {} WHERE rand() < 0.5": "Rand",
    "SELECT u, region, 7 DIV age AS age FROM {}": "may fail",
    "SELECT a.* FROM {0} a JOIN {0} b ON a.u = b.u": "a join",
    "SELECT * FROM {} TABLESAMPLE (50 PERCENT)": "sample",
    "SELECT u, region, explode(array(age, age)) AS age FROM {}": "EXPLODE",
}


@pytest.mark.parametrize("text", NOT_ROWWISE)
def test_a_view_that_does_not_take_each_row_by_itself_is_refused(session, table, tmp_path, text):
    """At open, naming the part in the way, whether it is a view of the catalog or a frame."""
    session.sql(f"CREATE OR REPLACE VIEW clinic.made AS {text.format(table)}")
    with pytest.raises(PolicyError, match=NOT_ROWWISE[text]):
        dt.open(policy(tmp_path, "clinic.made"), engines={"spark": session})
    with pytest.raises(PolicyError, match=NOT_ROWWISE[text]):
        dt.open(policy(tmp_path), sources={"visits": session.sql(text.format(table))})


@pytest.mark.filterwarnings("ignore:PySpark does not yet fully support pandas:FutureWarning")
def test_functions_in_python_and_rows_from_this_program_are_refused(session, table, tmp_path):
    """Neither can be seen to give the same again."""
    from pyspark.sql import functions as f

    twice = f.udf(lambda age: age * 2, "bigint")
    frame = session.table(table)
    for made in (
        frame.withColumn("age", twice("age")),
        session.createDataFrame([(1, "north", 2)], "u bigint, region string, age bigint"),
        frame.mapInPandas(lambda parts: parts, frame.schema),
    ):
        with pytest.raises(PolicyError, match="cannot be protected"):
            dt.open(policy(tmp_path), sources={"visits": made})


def test_text_files_are_refused(session, tmp_path):
    """To find types Spark would read values, and malformed rows would go missing."""
    ROWS.write_csv(tmp_path / "visits.csv")
    frame = session.read.schema("u bigint, region string, age bigint").csv(
        str(tmp_path / "visits.csv")
    )
    with pytest.raises(PolicyError, match=r"files of CSV.*write them to Parquet first"):
        dt.open(policy(tmp_path), sources={"visits": frame})


def test_a_computed_column_is_no_unit(session, table, tmp_path):
    """Two people could become one."""
    frame = session.table(table).selectExpr("coalesce(u, 0) AS u", "region", "age")
    with pytest.raises(PolicyError, match="not read as it is stored"):
        dt.open(policy(tmp_path), sources={"visits": frame})


@pytest.mark.parametrize("change", ["more", "other", "gone"])
def test_files_that_change_after_open_are_refused_before_the_charge(
    session, rows, tmp_path, change
):
    """Two queries of one release must read the same rows."""
    with dt.open(policy(tmp_path, str(rows)), engines={"spark": session}) as opened:
        question = opened.sql(ASKED)
        match change:
            case "more":
                ROWS.write_parquet(rows / "c.parquet")
            case "other":
                ROWS[:5].write_parquet(rows / "a.parquet")
            case "gone":
                (rows / "a.parquet").unlink()
        with pytest.raises(PolicyError, match=r"'visits'.*open it anew"):
            question.release(epsilon=1)
        assert "spent nothing" in str(opened)


def test_a_table_that_changes_after_open_is_refused_before_the_charge(session, table, tmp_path):
    """Another column could stand in a column's place."""
    with dt.open(policy(tmp_path, table), engines={"spark": session}) as opened:
        question = opened.sql(ASKED)
        session.sql(f"ALTER TABLE {table} ADD COLUMN note STRING")
        with pytest.raises(PolicyError, match="open it anew"):
            question.release(epsilon=1)
        session.sql(f"DROP TABLE {table}")
        with pytest.raises(PolicyError, match="open it anew"):
            question.release(epsilon=1)
        assert "spent nothing" in str(opened)


def test_types_are_read_as_their_kind(session, tmp_path):
    """Each stored type has its kind, or the reason why it has none."""
    session.sql("CREATE DATABASE IF NOT EXISTS clinic")
    session.sql(
        "CREATE TABLE clinic.types USING parquet AS SELECT CAST(1 AS TINYINT) a, "
        "CAST(1 AS DECIMAL(18, 0)) b, CAST(1 AS DECIMAL(38, 0)) c, CAST(1 AS DECIMAL(9, 2)) d, "
        "CAST(1 AS FLOAT) e, 'x' f, true g, DATE'2020-01-01' h, TIMESTAMP'2020-01-01 00:00:00' i, "
        "TIMESTAMP_NTZ'2020-01-01 00:00:00' j, map(1, 2) k, array(1) l, struct(1) m, x'00' n, "
        "parse_json('1') o, 'x' COLLATE UTF8_LCASE p"
    )
    try:
        made = backend("spark").open(
            {"t": TableSource("clinic.types", "table")}, {"given": session}
        )
        kinds = made.describe("t")
        known = {
            **{Kind.INTEGER: "abc", Kind.REAL: "de", Kind.TEXT: "fp", Kind.BOOLEAN: "g"},
            **{Kind.DATE: "h", Kind.TIMESTAMP: "ij"},
        }
        assert kinds == {n: k for k, names in known.items() for n in names} | dict.fromkeys("klmno")
        # An array is no value itself, but its elements may be unnested.
        assert set(made.unread("t")) == set("kmno")
        made.close()
        with pytest.raises(DitherError, match="closed"):
            made.describe("t")
    finally:
        session.sql("DROP DATABASE clinic CASCADE")


HOSTILE = (
    "SELECT CAST(i AS BIGINT) AS u, CASE i % 4 WHEN 0 THEN CAST(x'ff' AS STRING) WHEN 1 THEN "
    "'${spark.app.id}' WHEN 2 THEN NULL ELSE '7' END AS t, "
    "CASE i % 3 WHEN 0 THEN DOUBLE('NaN') WHEN 1 THEN DOUBLE('-inf') ELSE 9.3e18D END AS x, "
    "DATE_FROM_UNIX_DATE(CAST(CASE WHEN i % 2 = 0 THEN 2147483647 ELSE -2147483648 END AS INT)) d, "
    "CAST(CASE WHEN i % 2 = 0 THEN 99999999999999999999999999999999999999 ELSE 1 END AS "
    "DECIMAL(38, 0)) AS n, TIMESTAMP_MICROS(CASE WHEN i % 2 = 0 THEN 9223372036854775807 ELSE "
    "-9223372036854775808 END) AS s, CAST('a' AS STRING) COLLATE UTF8_LCASE AS c "
    "FROM (SELECT EXPLODE(SEQUENCE(0, 47)) AS i)"
)


def test_no_value_makes_a_query_fail(session, tmp_path):
    """Every column read as every kind that it may be declared as, over the worst values."""
    session.sql(HOSTILE).write.parquet(str(tmp_path / "hostile"))
    kinds = ["integer", "real", "text", "boolean", "date", "timestamp"]
    columns = {"t": kinds, "x": kinds[:4], "d": ["text", "date", "timestamp"], "n": kinds[:4]}
    columns |= {"s": ["text", "date", "timestamp"], "c": ["text"]}
    for kind in kinds:
        facts = {"type": kind} | ({"bounds": [0, 9]} if kind in ("integer", "real") else {})
        read = [column for column, readable in columns.items() if kind in readable]
        made = policy(tmp_path / kind, str(tmp_path / "hostile"))
        made["tables"]["visits"]["columns"] = dict.fromkeys(read, facts)
        asked = [f"COUNT({c}) AS {c}, COUNT(COALESCE({c}, {c})) AS also_{c}" for c in read]
        with dt.open(made, engines={"spark": session}) as opened:
            found = opened.sql(f"SELECT {', '.join(asked)} FROM visits").release(epsilon=5000).frame
        assert all(found[c][0] <= 48 for c in read), kind


def test_a_failure_after_the_charge_says_one_thing(session, rows, tmp_path, monkeypatch):
    """A lost executor, a cancelled job, a full disk: the same words, and what was charged stays."""
    from dither.engines.spark import engine as module

    with dt.open(policy(tmp_path, str(rows)), engines={"spark": session}) as opened:
        question = opened.sql(ASKED)
        asked = module.SparkEngine.run

        def broken(self, *arguments):
            (rows / "a.parquet").write_bytes(b"no longer Parquet")
            return asked(self, *arguments)

        monkeypatch.setattr(module.SparkEngine, "run", broken)
        with pytest.raises(EngineError, match="could not compute the answer; what was charged"):
            question.release(epsilon=1)
        assert "spent epsilon" in str(opened)


def test_a_statement_that_takes_too_long_is_ended(session, rows, tmp_path, monkeypatch):
    """Its jobs are cancelled after ``engine.timeout``, and what comes next runs."""
    made = policy(tmp_path, str(rows)) | {"engine": {"timeout": 9}}
    with dt.open(made, engines={"spark": session}) as opened:
        engine = opened._engine
        assert engine._timeout == 9
        monkeypatch.setattr(engine, "_timeout", 0.5)
        with pytest.raises(EngineError, match="could not compute the answer; what was charged"):
            engine._execute("SELECT SUM(a.id * b.id) FROM RANGE(10000000) a, RANGE(10000000) b")
        monkeypatch.undo()
        assert engine._execute("SELECT 1") == [(1,)]


KILLED = """
import os, signal, sys, time
from pathlib import Path
from pyspark.sql import SparkSession
from pyspark import SparkContext
import dither as dt
from dither.engines.spark.engine import SparkEngine
from dither.errors import EngineError, PolicyError

source, folder = sys.argv[1], sys.argv[2]
quiet = {"spark.ui.enabled": "false", "spark.log.level": "OFF", "spark.driver.memory": "512m",
         "spark.driver.host": "127.0.0.1", "spark.driver.bindAddress": "127.0.0.1",
         "spark.driver.extraJavaOptions": sys.argv[3]}
builder = SparkSession.builder.master("local[1]")
for name, value in quiet.items():
    builder = builder.config(name, value)
spark = builder.getOrCreate()
java = spark.sparkContext._jvm.java.lang.ProcessHandle.current().pid()
policy = {
    "budget": {"epsilon": 9, "delta": "1e-6", "ledger": folder + "/l"},
    "tables": {"visits": {"source": {"spark": source}, "unit": "u", "max_groups": 2,
                          "max_rows": 2, "columns": {"age": {"bounds": [0, 100]}}}},
}
asked = SparkEngine._execute

def killing(self, *arguments):
    os.kill(java, signal.SIGKILL)
    time.sleep(1)
    return asked(self, *arguments)

with dt.open(policy, engines={"spark": spark}) as session:
    question = session.sql("SELECT SUM(age) AS a FROM visits")
    SparkEngine._execute = killing
    try:
        question.release(epsilon=1)
    except EngineError as error:
        print(error, error.__cause__)
    SparkEngine._execute = asked
    try:
        question.release(epsilon=2)
    except PolicyError as error:
        print(error, error.__cause__)
    print("spent", session.balance()[0].spent.epsilon)
print("closed", flush=True)
os._exit(0)  # what pyspark does at exit waits for Java
"""


def test_spark_that_is_killed(rows, tmp_path):
    """During a release: paid for, and the one message. Before one: told so, and free."""
    made = subprocess.run(
        [sys.executable, "-c", KILLED, str(rows), str(tmp_path), JAVA_OPTIONS],
        capture_output=True,
        text=True,
        timeout=500,
        check=False,
    )
    lines = made.stdout.splitlines()
    assert "could not compute the answer; what was charged stays charged" in lines[0]
    assert "Spark no longer answers" in lines[1]
    assert [line.endswith("None") for line in lines[:2]] == [True, True]
    assert lines[2:] == ["spent 1", "closed"]


@pytest.mark.parametrize(
    ("source", "words"),
    [
        ("nowhere.at_all", "no table or readable file 'nowhere.at_all'"),
        ("visits/2024.parquet", "must be the whole path"),
        ("/no/such/folder", "no table or readable file"),
    ],
)
def test_a_source_that_is_not_there_is_refused(session, tmp_path, source, words):
    """At open, and with its name."""
    with pytest.raises(PolicyError, match=words):
        dt.open(policy(tmp_path, source), engines={"spark": session})


def test_files_whose_columns_do_not_fit_together_are_refused(session, rows, tmp_path):
    """At open, from their footers: not as a failure after a charge."""
    ROWS.with_columns(pl.col("age").cast(pl.String)).write_parquet(rows / "c.parquet")
    with pytest.raises(PolicyError, match="columns of one type"):
        dt.open(policy(tmp_path, str(rows)), engines={"spark": session})


def test_what_is_no_connection_is_refused(session, rows, tmp_path):
    """By name, before anything is opened."""
    with pytest.raises(ArgumentError, match="is not a connection"):
        dt.open(policy(tmp_path, str(rows)), engines={"spark": "local[2]"})
    with pytest.raises(ArgumentError, match="no engine 'sparc'; did you mean 'spark'"):
        dt.open(policy(tmp_path, str(rows)), engines={"sparc": session})
    with pytest.raises(ArgumentError, match="no table of the policy"):
        dt.open(policy(tmp_path), sources={"visits": ROWS}, engines={"spark": session})
    with pytest.raises(PolicyError, match=r"engine.spark must say where"):
        dt.open(policy(tmp_path, str(rows), spark="here"))
    with pytest.raises(PolicyError, match="already runs Spark"):
        dt.open(policy(tmp_path, str(rows), spark="local[7]"))


def test_progress_is_a_share_of_tasks(session, rows):
    """Reported while a query runs, between 0 and 1."""
    from dither.engines.spark import engine as module

    told: list[float] = []
    watch = module._watch(session, "a-tag", told.append)
    session.sparkContext.addJobTag("a-tag")
    try:
        session.range(1000).count()
        assert 0 < watch._share() <= 1  # of a stage that was not needed, nothing is done
    finally:
        session.sparkContext.removeJobTag("a-tag")
        watch.stop()
    with module.SparkEngine({"t": TableSource(str(rows), "parquet")}, session) as made:
        made._progress = told.append
        assert made.public_values("t", ColumnFacts("u", Kind.INTEGER))
    assert all(0 <= share <= 1 for share in told)


@pytest.mark.parametrize(
    ("code", "kind", "words"),
    [
        ("import os; os.environ.update(PATH='', JAVA_HOME='')", "PolicyError", "needs Java 17"),
        (
            "import sys; sys.modules['pyspark'] = None",
            "MissingLibraryError",
            "pip install 'dither[spark]'",
        ),
    ],
)
def test_what_is_missing_is_named_at_open(tmp_path, code, kind, words):
    """In a fresh process, which has started no Spark."""
    asked = (
        f"{code}\n"
        "from dither.engines import TableSource, backend\n"
        "try:\n    backend('spark').open({'t': TableSource('/t.parquet', 'parquet')}, {})\n"
        "except Exception as error:\n    print(type(error).__name__, error)\n"
    )
    found = subprocess.run(
        [sys.executable, "-c", asked], capture_output=True, text=True, check=True
    )
    assert found.stdout.startswith(kind)
    assert words in found.stdout


def test_char_and_old_dates(session, tmp_path):
    """A CHAR has no blanks at its end; dates of an old calendar are as they are stored."""
    session.sql("CREATE DATABASE IF NOT EXISTS clinic")
    session.sql("CREATE TABLE clinic.chars (u CHAR(9), d DATE) USING parquet")
    session.sql("INSERT INTO clinic.chars VALUES ('a', DATE'0001-01-01'), ('b', NULL)")
    try:
        made = backend("spark").open(
            {"t": TableSource("clinic.chars", "table")}, {"given": session}
        )
        assert set(made.public_values("t", ColumnFacts("u", Kind.TEXT))) == {"a", "b"}
        found = made.public_values("t", ColumnFacts("d", Kind.DATE))
        assert set(found) == {dt_.date(1, 1, 1), None}
        made.close()
    finally:
        session.sql("DROP DATABASE clinic CASCADE")


def test_another_key_is_no_other_program(tmp_path, session, rows):
    """Spark compiles a question once: the key of a run is not in what it compiles."""
    asked = policy(tmp_path, str(rows))
    asked["tables"]["visits"]["max_groups"] = 1
    counted = session._jvm.org.apache.spark.metrics.source.CodegenMetrics

    def compiled() -> int:
        return int(counted.METRIC_COMPILATION_TIME().getCount())

    with dt.open(asked, engines={"spark": session}) as opened:
        job, schema = opened.sql(ASKED)._plan.job, opened.schema
        assert "XXHASH64" in opened._opened.engine._written(job, schema, Seeds(1, 2))[1]
        keys = [bytes([i]) * 16 for i in range(4)]
        before = compiled()
        answers = [opened._opened.engine.run(job, schema, keys[0])]
        first = compiled()
        assert first > before
        answers += [opened._opened.engine.run(job, schema, key) for key in keys[1:]]
        assert compiled() == first
    # And yet it chooses: a unit's rows are of both regions, of which one counts.
    assert len({str(answer) for answer in answers}) > 1
