"""Tables of several files: lists, patterns and folders read as one, or refused when opened."""

from __future__ import annotations

import datetime
import os
import shutil
from pathlib import Path

import duckdb
import numpy as np
import polars as pl
import pyarrow as pa
import pyarrow.feather
import pyarrow.parquet as pq
import pytest

import dither as dt
from dither.engines.duckdb import DuckDBEngine, FileSource, sources
from dither.engines.duckdb.parquet import footers
from dither.engines.files import find_files
from dither.errors import ArgumentError, PolicyError
from dither.plan.expressions import Column
from dither.plan.job import Job, Rows, Total
from dither.plan.relations import Scan
from dither.plan.schema import ColumnFacts, Kind, Schema, Table
from engines.sources.test_sources import KEY, groups

COUNT = "SELECT COUNT(*) AS n FROM t"
YEAR = ColumnFacts("year", Kind.INTEGER)
WORD = ColumnFacts("w", Kind.TEXT)


def parquet(path: Path, **columns) -> Path:
    """A file of three rows."""
    path.parent.mkdir(parents=True, exist_ok=True)
    given = {"u": [1, 2, 3], "w": ["a", "b", "a"], **columns}
    pl.DataFrame(given).write_parquet(path)
    return path


def years(folder: Path, *named: str) -> Path:
    """A folder parted by year."""
    for number, name in enumerate(named or ("year=2023", "year=2024")):
        parquet(folder / "t" / name / f"part-{number}.parquet")
    return folder / "t"


def policy(folder: Path, source, **table) -> dict:
    """A policy over one table ``t``."""
    return {
        "budget": {"epsilon": 10**6, "ledger": str(folder / "files.ledger")},
        "tables": {"t": {"source": source, **table}},
    }


def test_a_list_a_pattern_and_a_folder_are_one_table(tmp_path):
    """However its files are named, each row is there once."""
    first, second = (parquet(tmp_path / "t" / f"{name}.parquet") for name in ("a", "b"))
    (tmp_path / "t" / "_SUCCESS").write_text("a writer's note")
    pattern, folder = tmp_path / "t" / "*.parquet", tmp_path / "t"
    for named in ([first, second], [pattern], pattern, folder, str(folder) + "/[ab].parquet"):
        assert groups(named, WORD) == {"a": 4, "b": 2}
    assert groups(first, WORD) == {"a": 2, "b": 1}


@pytest.mark.parametrize("form", ["csv", "jsonl", "arrow", "parquet"])
def test_every_format_is_read_in_parts(tmp_path, form):
    """Lines of CSV and JSON, and Arrow files too, under keys that are text until declared."""
    write = {
        "csv": lambda f, p: f.write_csv(p),
        "jsonl": lambda f, p: f.write_ndjson(p),
        "arrow": lambda f, p: f.write_ipc(p),
        "parquet": lambda f, p: f.write_parquet(p),
    }[form]
    for number, name in enumerate(("year=2023", "year=2024", "year=__HIVE_DEFAULT_PARTITION__")):
        path = tmp_path / "t" / name / f"{number}.{form}"
        path.parent.mkdir(parents=True)
        write(
            pl.DataFrame({"u": [number] * (number + 1), "w": ["ä", "b", None][: number + 1]}), path
        )
    columns = {"u": Kind.INTEGER, "w": Kind.TEXT, "year": None}
    source = FileSource(tmp_path / "t", form, columns=columns)
    assert groups(source, YEAR) == {2023: 1, 2024: 2, None: 3}
    assert groups(source, WORD) == {"ä": 3, "b": 2, None: 1}


def test_keys_of_folders_are_texts_as_they_are_written(tmp_path):
    """Bytes after %, texts that look like numbers, NULL or SQL: no value becomes another."""
    written = {
        "k=01": "01", "k=1": "1", "k=1.0": "1.0", "k=NULL": "NULL", "k=null": "null",
        "k=true": "true", "k=a%2Fb": "a/b", "k=100%25": "100%", "k=a=b": "a=b", "k=it's": "it's",
        'k="; DROP': '"; DROP', "k=%C3%A9": "é", "k= ": " ", "k=2024-01-01": "2024-01-01",
        "k=a+b": "a+b",
    }  # fmt: skip
    folder = years(tmp_path, *written)
    assert groups(folder, ColumnFacts("k", Kind.TEXT)) == dict.fromkeys(written.values(), 3)


def test_a_unit_of_text_beside_keys_is_read_through_arrow(tmp_path):
    """Where the engine's own reader is not safe, keys and rows still belong together."""
    for year, words in (("2023", ["a", "b", "c?"]), ("2024", ["a", "d", None])):
        path = tmp_path / "t" / f"year={year}" / "p.parquet"
        path.parent.mkdir(parents=True)
        moments = pa.array([1, 2**62, None], pa.timestamp("ms"))
        pq.write_table(pa.table({"u": words, "w": words, "at": moments}), path)
    source = FileSource(tmp_path / "t", "parquet", unit="u")
    assert groups(source, YEAR) == {2023: 3, 2024: 3}
    assert groups(source, ColumnFacts("u", Kind.TEXT)) == {"a": 2, "b": 1, "c?": 1, "d": 1, None: 1}
    late = datetime.datetime(1970, 1, 1, 0, 0, 0, 1000)
    assert groups(source, ColumnFacts("at", Kind.TIMESTAMP)) == {late: 2, None: 4}


def test_nan_that_statistics_leave_out_is_read(tmp_path):
    """A NaN in the second of two files is no number, whatever the files say of themselves."""
    for number, values in enumerate(([1.0, 2.0], [float("nan"), 3.0])):
        table = pa.table({"u": [1, 2], "x": pa.array(np.array(values))})
        pq.write_table(table, tmp_path / f"{number}.parquet")
    columns = {"x": ColumnFacts("x", Kind.REAL, 0, 10, 1)}
    job = Job(Scan("t", "t"), None, (), (Rows(), Total(Column("t", "x"), 1, 0, 10)), 1, 1)
    with DuckDBEngine({"t": tmp_path / "*.parquet"}) as engine:
        found = engine.run(job, Schema({"t": Table("t", columns)}), KEY)
    assert [found.values[i].tolist() for i in (0, 1)] == [[4], [6]]


def link(path: Path, to: Path) -> None:
    path.symlink_to(to, target_is_directory=to.is_dir())


def twice_by_link(folder: Path) -> object:
    link(folder / "t" / "latest.parquet", parquet(folder / "t" / "a.parquet"))
    return folder / "t"


def out_of_the_folder(folder: Path) -> object:
    parquet(folder / "t" / "a.parquet")
    link(folder / "t" / "b.parquet", parquet(folder / "elsewhere.parquet"))
    return str(folder / "t" / "*.parquet")


def to_another_folder(folder: Path) -> object:
    parquet(folder / "t" / "a.parquet")
    parquet(folder / "other" / "b.parquet")
    link(folder / "t" / "more", folder / "other")
    return folder / "t"


def another_type(folder: Path) -> object:
    parquet(folder / "t" / "a.parquet")
    parquet(folder / "t" / "b.parquet", u=["1", "2", "3"])
    return folder / "t"


def another_order(folder: Path) -> object:
    for name, head in (("a", "u,w\n1,x\n"), ("b", "w,u\nx,1\n")):
        (folder / f"{name}.csv").write_text(head)
    return [folder / "a.csv", folder / "b.csv"]


def two_compressions(folder: Path) -> object:
    (folder / "a.csv").write_text("u,w\n1,x\n")
    with pa.CompressedOutputStream(str(folder / "b.csv.zst"), "zstd") as out:
        out.write(b"u,w\n1,x\n")
    return [folder / "a.csv", folder / "b.csv.zst"]


def damaged_in_the_middle(folder: Path) -> object:
    for name in "abc":
        parquet(folder / "t" / f"{name}.parquet")
    (folder / "t" / "b.parquet").write_bytes(b"PAR1 secret PAR1")
    return folder / "t"


def stray(folder: Path) -> object:
    parquet(folder / "t" / "a.parquet")
    (folder / "t" / "b.csv").write_text("u\n1\n")
    return {"source": folder / "t", "format": "parquet"}


def hidden_arrow(folder: Path) -> object:
    path = folder / "a.arrow"
    pyarrow.feather.write_feather(pa.table({"w": ["abc", "def"]}), path, compression="uncompressed")
    raw = path.read_bytes()
    offsets = np.array([0, 3, 6], dtype=np.int32).tobytes()
    assert raw.count(offsets) == 1
    path.write_bytes(raw.replace(offsets, np.array([0, 3, 2**30], dtype=np.int32).tobytes()))
    return path


def as_sqlite(folder: Path, name: str) -> object:
    import sqlite3

    with sqlite3.connect(folder / name) as made:
        made.execute("CREATE TABLE t (u INTEGER)")
    made.close()
    return folder / name


REFUSED = {
    "an empty list": (lambda f: [], "must be the name of a file, or a list of some"),
    "a pattern of nothing": (lambda f: str(f / "*.parquet"), "names no file"),
    "an empty folder": (lambda f: (f / "t").mkdir() or f / "t", "unknown ending; declare format"),
    "a file that is not there": (lambda f: [str(f / "no.parquet")], "no file"),
    "a pattern of folders": (
        lambda f: {"source": years(f) / "year=*", "format": "parquet"},
        "folders and no file",
    ),
    "one file twice": (lambda f: [parquet(f / "a.parquet")] * 2, "names a file twice"),
    "one file by a link": (twice_by_link, "names a file twice"),
    "a link out of the folder": (out_of_the_folder, "link that leads out of"),
    "a link to a folder": (to_another_folder, "link to another folder"),
    "a broken link": (
        lambda f: link(f / "a.parquet", f / "gone") or str(f / "*.parquet"),
        "not a file, or a broken link",
    ),
    "files of two types": (another_type, "do not all have the same columns"),
    "columns in another order": (another_order, "do not all have the same columns"),
    "files compressed in two ways": (two_compressions, "compressed in one way"),
    "a damaged file in the middle": (damaged_in_the_middle, "cannot be read as parquet"),
    "files of two formats": (
        lambda f: [parquet(f / "a.parquet"), another_order(f)[0]],
        "files of two formats",
    ),
    "a file of another format": (stray, "files whose names do not end in .parquet; name a pattern"),
    "folders with and without keys": (
        lambda f: years(f, "year=2023", "plain"),
        "do not all have the same keys",
    ),
    "a key between plain folders": (
        lambda f: years(f, "year=2023/plain"),
        "named key=value, and some are not",
    ),
    "keys in two orders": (
        lambda f: years(f, "year=2023/m=1", "m=1/year=2023"),
        "do not all have the same keys",
    ),
    "a key twice": (lambda f: years(f, "year=2023/Year=2024"), "a key stands twice"),
    "a key without a name": (lambda f: years(f, "=2023"), "key=value is empty"),
    "a key without a value": (lambda f: years(f, "year="), "is not named key=value"),
    "a key that ends in %": (lambda f: years(f, "year=2%"), "is not named key=value"),
    "a key that is not UTF-8": (lambda f: years(f, "year=%FF"), "is not named key=value"),
    "a key with NUL": (lambda f: years(f, "year=%00"), "is not named key=value"),
    "two spellings of a key": (lambda f: years(f, "k=a b", "k=a%20b"), "written in two ways"),
    "a key that is a column": (lambda f: years(f, "W=1"), "is a column of its files too"),
    "a name with a star": (lambda f: [parquet(f / "a*.parquet")], "rename it"),
    "an Arrow file whose offsets lie": (hidden_arrow, "cannot be read as Arrow"),
    "lines of JSON that nobody declared": (
        lambda f: (f / "a.jsonl").write_text("{}") and f / "a.jsonl",
        "declare its columns",
    ),
    "SQLite": (lambda f: as_sqlite(f, "a.sqlite"), "nothing is downloaded here"),
    "SQLite by another name": (lambda f: as_sqlite(f, "a.db"), "nothing is downloaded here"),
}


@pytest.mark.parametrize("case", REFUSED)
def test_what_cannot_be_one_table_is_refused_when_opened(tmp_path, case):
    """A sentence that says why, and nothing of a value or of what folders are called."""
    make, words = REFUSED[case]
    given = make(tmp_path)
    table = given if isinstance(given, dict) else {"source": given}
    named = table["source"]
    table["source"] = [str(n) for n in named] if isinstance(named, list) else str(named)
    with pytest.raises(PolicyError) as caught:
        dt.open(policy(tmp_path, **table))
    assert words in str(caught.value)
    for value in ("2023", "secret", "k=a", "%20"):
        assert value not in str(caught.value)
    assert caught.value.__cause__ is None


CHANGES = {
    "a file appears": lambda f: parquet(f / "year=2025" / "new.parquet"),
    "a file is gone": lambda f: next(f.rglob("*.parquet")).unlink(),
    "a file has other columns": lambda f: parquet(next(f.rglob("*.parquet")), u=["x", "y", "z"]),
    "a file is damaged": lambda f: next(f.rglob("*.parquet")).write_bytes(b"PAR1 PAR1"),
    "a file becomes a link": lambda f: _becomes_link(next(f.rglob("*.parquet"))),
    "a folder is renamed": lambda f: (f / "year=2023").rename(f / "year=1999"),
    "all is gone": shutil.rmtree,
}


def _becomes_link(path: Path) -> None:
    path.unlink()
    path.symlink_to(parquet(path.parents[2] / "elsewhere.parquet"))


@pytest.mark.parametrize("change", CHANGES)
def test_what_changes_after_opening_is_refused_before_the_charge(tmp_path, change):
    """Files that come, go or turn: nothing is charged, and what was there before answers again."""
    folder = years(tmp_path)
    kept = tmp_path / "kept"
    shutil.copytree(folder, kept)
    with dt.open(policy(tmp_path, str(folder))) as session:
        CHANGES[change](folder)
        with pytest.raises(PolicyError, match="open it anew"):
            session.sql(COUNT).release(epsilon=1)
        assert session.balance()[0].spent.epsilon == 0
        if folder.exists():
            shutil.rmtree(folder)
        shutil.copytree(kept, folder)
        assert session.sql(COUNT).release(epsilon=10**5).frame["n"].to_list() == [6]


def test_rows_may_come_and_go(tmp_path):
    """A file that is written anew with the same columns is read as it is then."""
    folder = years(tmp_path)
    with dt.open(policy(tmp_path, str(folder))) as session:
        parquet(next(folder.rglob("*.parquet")), u=[1, 2, 3])
        assert session.sql(COUNT).release(epsilon=10**5).frame["n"].to_list() == [6]


def test_columns_are_looked_up_again_where_a_footer_changed(tmp_path, monkeypatch):
    """Footers that are what they were say that the columns are; any other is read by the engine."""
    folder, asked = years(tmp_path), []
    look = sources.layout
    with dt.open(policy(tmp_path, str(folder))) as session:
        monkeypatch.setattr(sources, "layout", lambda *a: asked.append(1) or look(*a))
        question = session.sql(COUNT)
        question.release(epsilon=1)
        assert not asked
        one = next(folder.rglob("*.parquet"))
        whole = one.read_bytes()
        parquet(one, u=[1, 2, 3, 4], w=["a"] * 4)
        question.release(epsilon=1)
        assert len(asked) == 3  # before the charge, and on either side of the run
        one.write_bytes(whole)
        question.release(epsilon=1)
        assert len(asked) == 3


@pytest.mark.parametrize("content", [b"", b"PAR1", b"\xff" * 8, b"\xff\xff\xff\xffPAR1"])
def test_a_footer_that_is_none_is_read_as_it_is(tmp_path, content):
    """Lengths that lie read no further than the file, and other bytes have other digests."""
    path = tmp_path / "odd.parquet"
    path.write_bytes(content)
    (found,) = footers([path])
    path.write_bytes(content + b"\0")
    assert footers([path]) != (found,)


def test_files_that_two_tables_share_have_one_unit(tmp_path):
    """A pattern and a file of it are the same rows, whatever they are called."""
    first = parquet(tmp_path / "t" / "a.parquet")
    parquet(tmp_path / "t" / "b.parquet")
    link(tmp_path / "linked.parquet", first)
    made = policy(tmp_path, str(tmp_path / "t" / "*.parquet"))
    made["tables"]["s"] = {
        "source": str(tmp_path / "linked.parquet"),
        **{"unit": "u", "max_groups": 1, "max_rows": 1},
    }
    with pytest.raises(PolicyError, match=r"read the same rows for two units"):
        dt.open(made)


def test_the_connection_reads_its_own_files_alone(tmp_path):
    """Of a folder, what was found in it when it was opened, and nothing beside."""
    folder = years(tmp_path)
    beside = parquet(tmp_path / "beside.parquet")
    with DuckDBEngine({"t": folder}) as engine:
        for path in (beside, folder / "year=2023", folder / "**" / "*.parquet"):
            with pytest.raises(duckdb.Error):
                engine._open().execute(f"SELECT * FROM read_parquet('{path}')")


def test_a_list_is_a_list_of_paths(tmp_path):
    """Ten thousand files are enough, and a list of numbers names none."""
    with pytest.raises(ArgumentError, match="must be a path, or a Polars"):
        DuckDBEngine({"t": [1, 2]})
    for number in range(3):
        parquet(tmp_path / f"{number}.parquet")
    assert len(find_files(tmp_path, (".parquet",)).paths) == 3
    with pytest.MonkeyPatch.context() as patched:
        patched.setattr("dither.engines.files.MOST_FILES", 2)
        with pytest.raises(PolicyError, match="more than 2 files"):
            find_files(tmp_path, (".parquet",))


@pytest.mark.skipif(os.name != "posix" or os.geteuid() == 0, reason="root may read everything")
def test_a_file_that_may_not_be_read_is_refused(tmp_path):
    """Which of them it is, is said by its place and not by its name."""
    folder = years(tmp_path)
    next(folder.rglob("*.parquet")).chmod(0)
    with pytest.raises(PolicyError, match="cannot be read; see who may read it"):
        dt.open(policy(tmp_path, str(folder)))


def test_a_policy_is_drafted_for_a_folder(tmp_path):
    """Keys of folders are columns, and text until their type is declared."""
    years(tmp_path)
    drafted = dt.draft_policy(str(tmp_path / "t"), unit="u")
    assert "year = {}" in drafted
    assert "Keys in the names of folders are text" in drafted
    (tmp_path / "lines.jsonl").write_text('{"u": 1}\n')
    drafted = dt.draft_policy(str(tmp_path / "*.jsonl"), table="lines")
    assert "no value is read" in drafted
    assert "[tables.lines]" in drafted
