"""Questions beyond all size, odd names, sources that changed: refused before any charge."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from fractions import Fraction
from pathlib import Path
from subprocess import PIPE

import duckdb
import polars as pl
import pytest

import dither as dt
from dither.errors import DitherError, PolicyError, QueryError, UnknownNameError

AGE = {"age": {"bounds": [0, 110]}}


@pytest.fixture
def people(tmp_path: Path) -> Path:
    """A thousand rows with an age."""
    path = tmp_path / "people.parquet"
    pl.DataFrame({"age": [20 + i % 70 for i in range(1000)], "s": ["a"] * 1000}).write_parquet(path)
    return path


def opened(source: Path, columns: dict[str, object] = AGE, **engine: object) -> dt.Session:
    """A session of one table."""
    return dt.open(
        {
            "budget": {"epsilon": 100, "ledger": str(source.with_suffix(".ledger"))},
            "engine": engine,
            "tables": {"people": {"source": str(source), "columns": columns}},
        }
    )


def around(before: str, inner: str, after: str, times: int = 1000) -> str:
    """A text within many pairs of others."""
    return before * times + inner + after * times


MEGABYTE = "x" * 10**6
WHERE = "SELECT COUNT(*) AS n FROM people WHERE "

BEYOND = {
    "a literal of a megabyte": f"{WHERE} s = '{MEGABYTE}'",
    "a comment of a megabyte": f"SELECT COUNT(*) AS n FROM people /* {MEGABYTE} */",
    "a name of a megabyte": f"SELECT COUNT(*) AS {MEGABYTE} FROM people",
    "a megabyte of conditions": WHERE + " OR ".join(["age = 1"] * 100_000),
    "a list of a megabyte": f"{WHERE} age IN (" + ",".join(map(str, range(140_000))) + ")",
    "many outputs": "SELECT "
    + ", ".join(f"COUNT(*) AS n{i}" for i in range(2000))
    + " FROM people",
    "brackets": f"SELECT SUM({around('(', 'age', ')')}) AS n FROM people",
    "NOT": f"{WHERE}{around('NOT ', 'age > 3', '')}",
    "minus": f"SELECT SUM({around('- ', 'age', '')}) AS n FROM people",
    "CASE": f"{WHERE}{around('CASE WHEN age > 3 THEN ', 'age', ' ELSE 0 END')} > 1",
    "functions": f"SELECT SUM({around('ABS(', 'age', ')')}) AS n FROM people",
    "casts": f"SELECT SUM({around('CAST(', 'age', ' AS INTEGER)')}) AS n FROM people",
    "AND in brackets": f"{WHERE}{around('(age > 1 AND ', 'age > 2', ')')}",
    "a long sum": f"SELECT SUM({' + '.join(['age'] * 1000)}) AS n FROM people",
    "queries in the FROM": f"SELECT COUNT(*) FROM {around('(SELECT age FROM ', 'people', ') t')}",
    "CTEs": "WITH t0 AS (SELECT age FROM people), "
    + ", ".join(f"t{i} AS (SELECT age FROM t{i - 1})" for i in range(1, 1000))
    + " SELECT COUNT(*) AS n FROM t999",
    "unions": f"SELECT COUNT(*) FROM ({' UNION ALL '.join(['SELECT age FROM people'] * 1000)}) t",
    "lists": f"{WHERE}age IN {around('[', '', ']')}",
    "released values": f"SELECT {around('ROUND(', 'AVG(age)', ')')} AS n FROM people",
    "an open quote": "SELECT " + '"' * 999 + " FROM people",
    "half a character": f"{WHERE} s = '\ud800'",
}


@pytest.mark.parametrize("text", BEYOND.values(), ids=BEYOND)
def test_questions_beyond_all_size(people: Path, text: str) -> None:
    """A short sentence that says what is too much; it quotes none of the text."""
    with opened(people) as session:
        with pytest.raises(QueryError) as told:
            session.sql(text)
        assert len(str(told.value)) < 400
        assert told.value.__cause__ is None


def test_filters_one_after_the_other(people: Path) -> None:
    """As many as anybody writes are read; thousands are refused where they are added."""
    with opened(people) as session:
        table = session.table("people")
        for number in range(40):
            table = table.filter(f"age > {number % 5}")
        assert table.agg(n=dt.count()).release(1).frame.height == 1
        with pytest.raises(QueryError, match="more than 40 filters and joins"):
            table.filter("age > 3")


NAMES = ['a"b', "a'; DROP TABLE people; --", "\U0001f600", "select", "a.b", "a\nb", " ", "ä" * 200]
NAMES += ["%s", "{x}", "$$", "a\\b", "?", ":x", "/* x", "--", "\u200b", "\u202eabc"]


@pytest.mark.parametrize("name", NAMES, ids=ascii)
def test_columns_of_any_name(tmp_path: Path, name: str) -> None:
    """Quotes, blanks, emoji and SQL inside: asked, released and shown."""
    source = tmp_path / "odd.parquet"
    pl.DataFrame({name: [1, 2, 3], "other": [1, 2, 3]}).write_parquet(source)
    quoted = '"' + name.replace('"', '""') + '"'
    with opened(source, {name: {"bounds": [0, 5]}}) as session:
        release = session.sql(f"SELECT SUM({quoted}) AS s FROM people").release(50)
        assert abs(release.frame["s"][0] - 6) < 3
        assert "s" in release.summary()


def removed(path: Path) -> None:
    """Another program removes the file."""
    path.unlink()


def emptied(path: Path) -> None:
    """Another program cuts it to nothing."""
    path.write_bytes(b"")


def cut(path: Path) -> None:
    """Another program is not done writing it."""
    path.write_bytes(path.read_bytes()[:500])


def other_columns(path: Path) -> None:
    """Another program writes other columns."""
    pl.DataFrame({"b": [1]}).write_parquet(path)


def other_types(path: Path) -> None:
    """Another program writes the column as another type."""
    pl.DataFrame({"age": ["x"], "s": ["y"]}).write_parquet(path)


def a_folder(path: Path) -> None:
    """Another program puts a folder there."""
    path.unlink()
    path.mkdir()


@pytest.mark.parametrize(
    "change",
    [removed, emptied, cut, other_columns, other_types, a_folder],
    ids=lambda f: f.__name__,
)
def test_a_file_that_changed_since_it_was_opened(
    people: Path, change: Callable[[Path], None]
) -> None:
    """It is found before the charge, and nothing is spent."""
    with opened(people) as session:
        question = session.sql("SELECT SUM(age) AS s FROM people")
        change(people)
        with pytest.raises(PolicyError, match="open it anew"):
            question.release(1)
        assert session.balance()[0].spent.epsilon == 0


def test_a_type_that_nobody_reads_is_named(tmp_path: Path) -> None:
    """The column is there, and the error says why it cannot be asked for."""
    source = tmp_path / "t.duckdb"
    with duckdb.connect(str(source)) as raw:
        raw.execute("CREATE TABLE people AS SELECT {'a': 1} AS x, interval 1 day AS y, 5 AS age")
    with opened(source) as session:
        for text in ("COUNT(x)", 'COUNT("x")', "COUNT(people.x)", "COUNT(X)", "COUNT(y)"):
            with pytest.raises(UnknownNameError, match="is not read: its type"):
                session.sql(f"SELECT {text} AS n FROM people")
        with pytest.raises(UnknownNameError, match="unknown column 'z'"):
            session.sql("SELECT COUNT(z) AS n FROM people")
        assert session.sql("SELECT SUM(age) AS s FROM people").release(50).frame.height == 1


def test_a_folder_for_spilled_data_must_be_there(people: Path, tmp_path: Path) -> None:
    """One that cannot be written is found at open, and not by a query that was paid for."""
    (tmp_path / "file").write_text("")
    for temp in (tmp_path / "no" / "such", tmp_path / "file", tmp_path / "file" / "below"):
        with pytest.raises(PolicyError, match=r"engine\.temp a folder that can be written to"):
            opened(people, temp=str(temp))
    with opened(people, temp=str(tmp_path / "new")) as session:
        assert session.sql("SELECT SUM(age) AS s FROM people").release(1).frame.height == 1


def test_spilled_data_that_find_no_room(tmp_path: Path) -> None:
    """The charge stays, and one generic sentence says so, without a word of the engine."""
    source = tmp_path / "big.parquet"
    texts = [f"text number {i}" for i in range(400_000)]
    pl.DataFrame({"pid": range(400_000), "t": texts}).write_parquet(source)
    policy = {
        "budget": {"epsilon": 1, "delta": "1e-6", "ledger": str(tmp_path / "l")},
        "engine": {"memory": "24MB", "threads": 1, "temp": str(tmp_path / "spill")},
        "tables": {
            "people": {"source": str(source), "unit": "pid", "max_groups": 1, "max_rows": 1}
        },
    }
    with dt.open(policy) as session:
        question = session.sql("SELECT t, COUNT(*) AS n FROM people GROUP BY t")
        # Spilling to a file where a folder should be fails as a full disk does.
        (tmp_path / "spill").write_text("")
        with pytest.raises(DitherError) as told:
            question.release("0.5", "1e-7")
        assert "what was charged stays charged" in str(told.value)
        assert str(tmp_path) not in str(told.value)
        assert [entry.kind for entry in session.ledger.entries()].count("charge") == 1


def test_a_disk_that_is_full_when_data_are_spilled(tmp_path: Path) -> None:
    """Files may grow to a megabyte and no further: paid for, and the one sentence; then it works.

    Linux answers a write beyond the limit with an error, as it does where a disk has no room.
    """
    resource = pytest.importorskip("resource")
    source = tmp_path / "big.parquet"
    texts = [f"text number {i}" for i in range(400_000)]
    pl.DataFrame({"pid": range(400_000), "t": texts}).write_parquet(source)
    policy = {
        "budget": {"epsilon": 9, "delta": "1e-6", "ledger": str(tmp_path / "l")},
        "engine": {"memory": "24MB", "threads": 1, "temp": str(tmp_path / "spill")},
        "tables": {
            "people": {"source": str(source), "unit": "pid", "max_groups": 1, "max_rows": 1}
        },
    }
    with dt.open(policy) as session:
        question = session.sql("SELECT t, COUNT(*) AS n FROM people GROUP BY t")
        before = resource.getrlimit(resource.RLIMIT_FSIZE)
        resource.setrlimit(resource.RLIMIT_FSIZE, (2**20, before[1]))
        try:
            with pytest.raises(DitherError, match="what was charged stays charged") as told:
                question.release("0.5", "1e-7")
        finally:
            resource.setrlimit(resource.RLIMIT_FSIZE, before)
        assert str(tmp_path) not in str(told.value)
        assert session.balance()[0].spent.epsilon == Fraction(1, 2)
        assert session.sql("SELECT COUNT(*) AS n FROM people").release(1).frame.height == 1


@pytest.fixture
def database(tmp_path: Path) -> Path:
    """A DuckDB file of a thousand rows with an age."""
    path = tmp_path / "people.duckdb"
    with duckdb.connect(str(path)) as raw:
        raw.execute("CREATE TABLE people AS SELECT 20 + i % 70 AS age FROM range(1000) t(i)")
    return path


def test_a_database_that_may_only_be_read(database: Path) -> None:
    """The file says so: it is only read in any case, and nothing is written beside it."""
    database.chmod(0o444)
    with opened(database) as session:
        assert session.sql("SELECT SUM(age) AS s FROM people").release(50).frame.height == 1
    assert not list(database.parent.glob("*.wal"))


WRITER = """
import duckdb, sys
try:
    held = duckdb.connect(sys.argv[1])
except duckdb.Error:
    print("refused", flush=True)
else:
    print("open", flush=True)
sys.stdin.read()
"""


@contextmanager
def writer(database: Path) -> Iterator[str]:
    """Another program opens the database for writing; whether it may."""
    command = [sys.executable, "-c", WRITER, str(database)]
    with subprocess.Popen(command, stdin=PIPE, stdout=PIPE, text=True) as program:
        assert program.stdin is not None
        assert program.stdout is not None
        yield program.stdout.readline().strip()
        program.stdin.close()


def test_a_database_that_another_program_writes(database: Path) -> None:
    """Refused at open with what to do; once it is open here, nobody else opens it to write."""
    with writer(database) as said:
        assert said == "open"
        with pytest.raises(PolicyError, match=r"cannot be opened as a DuckDB database; if another"):
            opened(database)
    with opened(database) as session, writer(database) as said:
        assert said == "refused"
        assert session.sql("SELECT SUM(age) AS s FROM people").release(1).frame.height == 1


def test_a_database_that_is_replaced_after_it_was_opened(database: Path) -> None:
    """What was opened is what is asked: the file of that name may be another by now."""
    other = database.with_name("other.duckdb")
    with duckdb.connect(str(other)) as raw:
        raw.execute("CREATE TABLE visits AS SELECT 'x' AS age")
    with opened(database) as session:
        other.replace(database)
        assert session.sql("SELECT COUNT(*) AS n FROM people").release(50).frame["n"][0] > 900
    with pytest.raises(DitherError):
        opened(database)


def test_arguments_of_another_kind_are_refused_by_name(people: Path) -> None:
    """Each by one of our errors, whatever Python would have said of it."""
    with opened(people) as session:
        rows = session.table("people")
        counted = rows.group_by(dt.bins("age", [0, 50, 110])).agg(n=dt.count())
        for call, words in {
            (lambda: session.table(5)): "must be a text; got int",  # type: ignore[arg-type]
            (lambda: session.table(["people"])): "must be a text; got list",  # type: ignore[arg-type]
            (lambda: rows.join(None, on="age")): "must be a text; got NoneType",  # type: ignore[arg-type]
            (lambda: rows.join("people", on=5)): "on must be a column",  # type: ignore[arg-type]
            (lambda: counted.order_by(None)): "must be a text; got NoneType",  # type: ignore[arg-type]
            (lambda: counted.order_by("")): "is empty",
            (lambda: rows.infer(epsilon=1).difference("age", "s = 'a'", levels=5)): "levels must",
        }.items():
            with pytest.raises(DitherError, match=words):
                call()


def test_a_comment_in_an_order_swallows_no_other_column(people: Path) -> None:
    """Nor does what ends a statement."""
    with opened(people) as session:
        key = dt.bins("age", [0, 50, 110])
        counted = session.table("people").group_by(key, "s = 'a'").agg(n=dt.count())
        wanted = counted.order_by("n DESC", "age")._plan.query.order
        assert len(wanted) == 2
        for first in ("n DESC -- most", "n DESC /* most */", "n DESC;"):
            assert counted.order_by(first, "age")._plan.query.order == wanted
