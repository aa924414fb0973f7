"""Rows are known by where they lie, and not by what a table is called."""

from __future__ import annotations

import os
from pathlib import Path

import polars as pl
import pytest

from dither.engines.identity import FRAME, of_files, of_frame, same_rows

ROWS = pl.DataFrame({"age": [30, 41]})


@pytest.fixture
def file(tmp_path: Path) -> Path:
    """One file in a folder of its own."""
    (tmp_path / "data").mkdir()
    path = tmp_path / "data" / "visits.parquet"
    ROWS.write_parquet(path)
    return path


def one(found: dict[str, str]) -> tuple[str, str]:
    """The only source."""
    ((text, mark),) = found.items()
    return text, mark


def test_a_file_has_one_text_for_all_its_names(file: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """By a link, by another link of the file itself, from here and from elsewhere."""
    known = one(of_files(file))
    assert known[0].startswith("file:///")
    link, hard = file.with_name("link.parquet"), file.with_name("hard.parquet")
    link.symlink_to(file)
    os.link(file, hard)
    monkeypatch.chdir(file.parent)
    for named in (link, hard, Path("visits.parquet"), file.parent / ".." / "data" / file.name):
        assert same_rows(one(of_files(named)), known) is True
    ROWS.write_parquet(other := file.with_name("other.parquet"))
    assert same_rows(one(of_files(other)), known) is False


def test_a_pattern_shares_rows_with_what_it_finds(file: Path) -> None:
    """Folders, patterns and lists share rows where they have a file in common, and only there."""
    folder = file.parent
    (folder / "day=1").mkdir()
    ROWS.write_parquet(deep := folder / "day=1" / "part.parquet")
    known = one(of_files(file))
    for named, shares in (
        (folder, True),
        (folder / "*.parquet", True),
        (folder / "**" / "*.parquet", True),
        (folder / "v*", True),
        (folder / "w*.parquet", False),
        (folder / "day=1", False),
    ):
        found = one(of_files(named))
        assert found[0].startswith("files:///")
        assert same_rows(found, known) is same_rows(known, found) is shares
    assert same_rows(one(of_files(folder / "day=*" / "*")), one(of_files(deep.parent))) is True
    assert same_rows(one(of_files(folder / "*.parquet")), one(of_files(deep.parent))) is False
    assert set(of_files([file, deep])) == {*of_files(file), *of_files(deep)}


def test_names_of_files_that_are_found_are_not_kept(tmp_path: Path) -> None:
    """They may tell of people: a source holds the pattern as it was named, and nothing else."""
    for name in ("anna", "bob"):
        ROWS.write_parquet(tmp_path / f"{name}.parquet")
    before = of_files(tmp_path / "*.parquet"), of_files(tmp_path)
    (tmp_path / "bob.parquet").unlink()
    assert before == (of_files(tmp_path / "*.parquet"), of_files(tmp_path))


def test_what_was_moved_may_be_the_same(file: Path, tmp_path: Path) -> None:
    """A file with the number of one that is not there any more: renamed, or new in its place."""
    known, folder = one(of_files(file)), one(of_files(file.parent))
    moved = file.rename(file.with_name("moved.parquet"))
    assert same_rows(one(of_files(moved)), known) is None
    ROWS.write_parquet(file)
    assert same_rows(one(of_files(moved)), known) is None
    assert same_rows(one(of_files(file)), known) is True
    other = file.parent.rename(tmp_path / "elsewhere")
    assert same_rows(one(of_files(other)), folder) is None


def test_tables_of_one_database_are_told_apart(file: Path) -> None:
    """Two tables of a file share no row; one table does, by whatever name its file is called."""
    link = file.with_name("link.duckdb")
    link.symlink_to(file)
    known = one(of_files(file, "main.visits"))
    assert same_rows(known, one(of_files(link, "main.visits"))) is True
    assert same_rows(known, one(of_files(link, "main.labs"))) is False


def test_a_frame_is_known_as_long_as_it_is_one_object() -> None:
    """Of frames that are two objects, and of a frame and a file, nothing can be said."""
    frame = ROWS.clone()
    known = one(of_frame(frame))
    assert known[0] == FRAME
    assert same_rows(known, one(of_frame(frame))) is True
    assert same_rows(known, one(of_frame(ROWS))) is None
    assert same_rows(known, ("file:///data/visits.parquet", "1:7")) is None
    assert same_rows(one(of_frame(object.__new__(object))), (FRAME, "")) is None


def test_relations_are_known_by_number_and_by_name() -> None:
    """Renamed, made anew, or a part of one that was asked: the same rows; else others."""
    known = ("postgres:7/16384/public.visits", "16402")
    for other, shares in (
        (("postgres:7/16384/public.visits", "16999"), True),
        (("postgres:7/16384/public.renamed", "16402"), True),
        (("postgres:7/16384/public.part", "16500<16402"), True),
        (("postgres:7/16384/public.labs", "16500"), False),
        (("postgres:8/16384/public.renamed", "16402"), False),
        (("spark:visits", ""), False),
        (("file:///public.visits", "16402"), False),
    ):
        assert same_rows(known, other) is same_rows(other, known) is shares
