"""The command that anonymises a file: release, measures, picture, refusals."""

from __future__ import annotations

import polars as pl
import pytest

from dither.lab.anonymize import measure

ZIPS = "02139;0213*;*\n02138;0213*;*\n90210;9021*;*\n90211;9021*;*\n"
PEOPLE = """age,zip,born,illness
31,02139,1990-01-02,flu
33,02138,1990-03-04,cold
35,02139,1990-05-06,flu
61,90210,1960-07-08,gout
63,90211,1960-09-10,flu
65,90210,1960-11-12,cold
"""
ASK = ("anonymize", "people.csv", "--quasi", "age,zip", "--k", "3")
TREES = ("--hierarchy", "age=5,10", "--hierarchy", "zip=zip.csv")


@pytest.fixture(autouse=True)
def people(folder) -> None:
    """A small file and a hierarchy."""
    (folder / "people.csv").write_text(PEOPLE)
    (folder / "zip.csv").write_text(ZIPS)


def test_a_release_is_written_and_summed_up(run, folder) -> None:
    """The file has k, and leading zeros survive; the summary ends in what is not protected."""
    found = run(*ASK, *TREES, "--sensitive", "illness", "--out", "out.csv", "--plot", "a.svg")
    assert found.exit_code == 0, found.output
    frame = pl.read_csv("out.csv")
    assert set(frame["zip"]) == {"0213*", "9021*"}
    assert measure(frame, ["age", "zip"]).k == 3
    assert "3-anonymity by full-domain generalisation" in found.output
    assert found.output.rpartition("\n\n")[2].count("Not protected: ") == 1
    assert (folder / "a.svg").stat().st_size > 1000


def test_boxes_dates_and_requirements(run) -> None:
    """Mondrian without hierarchies; rules for dates and prefixes; l and t."""
    found = run(*ASK, "--mondrian", "--out", "out.parquet")
    assert found.exit_code == 0, found.output
    assert measure(pl.read_parquet("out.parquet"), ["age", "zip"]).k >= 3
    rules = ("--hierarchy", "born=dates", "--hierarchy", "zip=prefix:4,1")
    quasi = ("anonymize", "people.csv", "--quasi", "born,zip", "--k", "2", *rules)
    asked = ("--sensitive", "illness", "--l", "2", "--t", "0.5", "--distance", "equal")
    found = run(*quasi, *asked)
    assert found.exit_code == 0, found.output
    assert "distinct 2-diversity, 0.5-closeness (equal distance)" in found.output


@pytest.mark.parametrize("mark", [",", ";", "\t"])
@pytest.mark.parametrize("start", ["", "\ufeff"])
def test_files_as_spreadsheets_write_them(run, folder, mark, start) -> None:
    """Whatever divides the columns, with a byte order mark or without, with quotes or without."""
    text = PEOPLE.replace(",", mark).replace("flu", f'"f{mark}lu"')
    (folder / "people.csv").write_text(start + text, encoding="utf-8")
    found = run(*ASK, *TREES, "--sensitive", "illness", "--out", "out.csv")
    assert found.exit_code == 0, found.output
    assert measure(pl.read_csv("out.csv"), ["age", "zip"]).k == 3


def test_spaces_after_commas(run, folder) -> None:
    """A file with spaces after its commas reads as one without; numbers and dates too."""
    (folder / "people.csv").write_text(PEOPLE.replace(",", ", ") + "\n\n")
    rules = ("--hierarchy", "born=dates", "--hierarchy", "age=5,10")
    asked = ("anonymize", "people.csv", "--quasi", "age,born", "--k", "3", *rules)
    found = run(*asked, "--sensitive", "illness", "--out", "out.csv")
    assert found.exit_code == 0, found.output
    assert "6 rows in 2 classes" in found.output
    assert pl.read_csv("out.csv").columns == ["age", "zip", "born", "illness"]
    assert set(pl.read_csv("out.csv")["illness"]) == {"flu", "cold", "gout"}


@pytest.mark.parametrize("last", ["1960-11-12", "not known"])
def test_dates_are_dates_if_all_are(run, folder, last) -> None:
    """One text among dates leaves the column as texts, which dates() refuses."""
    (folder / "people.csv").write_text(PEOPLE.replace("1960-11-12", last))
    found = run(
        "anonymize", "people.csv", "--quasi", "born", "--k", "3", "--hierarchy", "born=dates"
    )
    assert found.exit_code == (0 if last.startswith("1960") else 4)
    assert ("parse the texts first" in found.output) is (last == "not known")


def test_measuring_alone(run) -> None:
    """A table is measured as it stands."""
    found = run(*ASK[:4], "--measure", "--sensitive", "illness", "--distance", "equal")
    assert found.exit_code == 0, found.output
    assert "k = 1; rows alone in their class: 6" in found.output


@pytest.mark.parametrize(
    ("words", "message"),
    [
        ((*ASK, *TREES, "--out", "people.csv"), "write over it with --force"),
        ((*ASK, *TREES, "--out", "out.xlsx"), ".csv or .parquet"),
        ((*ASK, "--measure", "--out", "out.csv"), "--k, --out go with a release"),
        ((*ASK, *TREES, "--t", "0.1"), "needs --distance"),
        ((*ASK, "--hierarchy", "age"), "COLUMN=HOW"),
        ((*ASK, "--hierarchy", "age=no.csv"), "not a list of widths"),
        ((*ASK, "--hierarchy", "age=10,5"), "a whole multiple of the one before"),
        ((*ASK, "--hierarchy", "age=1/0"), "not a list of widths"),
        ((*ASK, "--hierarchy", "age=1e999999999"), "not a list of widths"),
        ((*ASK, "--hierarchy", "zip=prefix:a"), "whole numbers"),
        ((*ASK, "--hierarchy", "age=5,10"), "how may 'zip' become coarser? Say --hierarchy zip="),
        ((*ASK, *TREES, "--k", "7"), "has only 6 rows"),
        ((*ASK, *TREES, "--suppress", "x"), "suppress must be"),
        ((*ASK, "--mondrian", "--suppress", "0.1"), "--mondrian leaves out no row"),
        ((*ASK, *TREES, "--l", "2"), "name it with --sensitive"),
        (("anonymize", "no.csv", "--quasi", "a"), "there is no file"),
        (("anonymize", "people.csv", "--quasi", "aeg", "--measure"), "did you mean 'age'"),
    ],
)
def test_refusals(run, words, message) -> None:
    """Each mistake is named."""
    found = run(*words)
    assert found.exit_code != 0
    assert message in " ".join(found.output.split())
