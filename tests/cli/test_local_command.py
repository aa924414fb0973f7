"""``dither local``: the choice of a channel, files as people really write them, and refusals."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import polars as pl
import pytest

from dither.local import GRR, HCMS, Attributes, ItemSets, aggregate_file, best, write_reports


def test_the_choice_is_the_package_s(run) -> None:
    """Its reason in whole, a row for each candidate, and the chosen one marked."""
    found = run("local", "best", "100", "--epsilon", "1/2", "--people", "1000", "--bytes", "5")
    assert found.exit_code == 0, found.output
    choice = best(100, "1/2", 1000, bytes=5)
    assert choice.reason in " ".join(found.output.split())
    name = type(choice.channel).__name__
    marked = [line for line in found.output.splitlines() if line.startswith("* ")]
    assert [line.split()[1] for line in marked] == [name]
    assert found.output.count("over 5 bytes") == sum(
        c.excluded.startswith("over") for c in choice.candidates
    )
    assert max(map(len, found.output.splitlines())) <= 80


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (("1", "--epsilon", "1", "--people", "10"), "at least two values"),
        (("10", "--epsilon", "0", "--people", "10"), "epsilon must be above 0"),
        (("10", "--epsilon", "1", "--people", "0"), "--people"),
        (("1000", "--epsilon", "1", "--people", "10", "--bytes", "1"), "at least 2 bytes"),
    ],
)
def test_refusals(run, words, message) -> None:
    """Each mistake is named."""
    found = run("local", "best", *words)
    assert found.exit_code != 0
    assert message in " ".join(found.output.split())


ODD = "\u2028\u2029\x85\x0b\x0c\x1c\x1d\x1e"
"""What `str.splitlines` splits at besides the ends of lines."""


def described(carrier, name: str = "channel.json") -> str:
    """A file that describes the channel or structure."""
    Path(name).write_text(json.dumps(carrier.to_dict()))
    return name


def reports(run, carrier, text: str) -> int:
    """How many reports, of values given as this text, were written."""
    Path("values.txt").write_bytes(text.encode())
    found = run("local", "privatize", described(carrier), "values.txt", "--out", "x.reports")
    assert found.exit_code == 0, found.output
    return aggregate_file("x.reports", carrier)[0].n


@pytest.mark.parametrize("end", ["\n", "\r\n", "\r"])
@pytest.mark.parametrize("last", [True, False])
def test_one_line_is_one_person(run, end, last) -> None:
    """Whatever separators a value holds, and with or without the end of the last line."""
    values = [f"a{odd}b" for odd in ODD] + (["a\rb"] if end != "\r" else []) + ["c", "", "c"]
    lines = end.join(values) + (end if last else "")
    assert reports(run, GRR([*dict.fromkeys(values)], 1), lines) == len(values)
    assert reports(run, GRR(["c", ""], 1), f"\ufeffc{end}") == 1
    table = end.join(["smokes", *(f'"{value}"' for value in values)]) + (end if last else "")
    structure = Attributes({"smokes": [*dict.fromkeys(values)]}, 1)
    assert reports(run, structure, table) == reports(run, structure, "\ufeff" + table)
    assert aggregate_file("x.reports", structure)[0].n == len(values)
    if end == "\n":
        texts = [json.dumps([value], ensure_ascii=False) for value in values if "\r" not in value]
        sets = ItemSets([*dict.fromkeys(values)], 1, padding=1)
        found = [text for text in texts if not any(ord(c) < 32 for c in text)]
        assert reports(run, sets, end.join(found)) == len(found)


def test_an_empty_text_is_nobody(run) -> None:
    """No line, one empty line, two."""
    assert [reports(run, GRR(["", "a"], 1), text) for text in ("", "\n", "\n\n")] == [0, 1, 2]


def test_quoted_line_breaks_are_kept(run) -> None:
    """One row with breaks in a quoted field is one person with that very value."""
    values = ["a\nb", "a\r\nb", "a\rb", 'a"b']
    for value in values:
        quoted = value.replace('"', '""')
        structure = Attributes({"smokes": values}, 30)
        assert reports(run, structure, f'smokes\n"{quoted}"\n') == 1
        counted = aggregate_file("x.reports", structure)[0]
        assert counted["smokes"].counts.tolist() == [int(value == one) for one in values]


@pytest.mark.parametrize("row", ['"yes', 'yes\n"yes\nno', '"yes"no', "yes\rno\n", 'yes\n"no\n'])
def test_rows_that_are_not_csv_are_refused(run, row) -> None:
    """An open quote would swallow people; a bare CR would add some."""
    Path("values.csv").write_bytes(f"smokes\n{row}".encode())
    made = described(Attributes({"smokes": ["no", "yes", "yes\nno", "yesno", "no\n"]}, 1))
    found = run("local", "privatize", made, "values.csv", "--out", "x.reports")
    assert found.exit_code == 4
    assert "each quote is closed" in found.output
    assert not Path("x.reports").exists()


def test_a_byte_order_mark_is_no_part_of_a_description(run) -> None:
    """Editors put it before JSON, and before the first candidate."""
    made = Path(described(HCMS(["a", "b"], 30, hashes=64)))
    made.write_bytes(b"\xef\xbb\xbf" + made.read_bytes())
    Path("values.txt").write_text("c\n" * 500)
    Path("asked.txt").write_bytes(b"\xef\xbb\xbfc\n")
    for words in (
        ("privatize", "channel.json", "values.txt", "--out", "x.reports"),
        ("aggregate", "channel.json", "x.reports", "--out", "c.json"),
        ("estimate", "c.json", "--candidates", "asked.txt", "--out", "t.csv"),
    ):
        found = run("local", *words)
        assert found.exit_code == 0, found.output
    table = pl.read_csv("t.csv")
    assert table["value"].to_list() == ["c"]
    assert table["share"][0] > 0.5


SMOKES = Attributes({"smokes": ["no", "yes"]}, 1)


@pytest.mark.parametrize(
    ("carrier", "other"),
    [
        (GRR(3, 1), GRR(3, 2)),
        (GRR(3, 1), SMOKES),
        (SMOKES, GRR(3, 1)),
        (SMOKES, Attributes({"smokes": ["no", "yes"]}, 2)),
    ],
)
@pytest.mark.parametrize("ending", ["json", "reports"])
def test_files_of_another_channel_are_refused_by_name(run, carrier, other, ending) -> None:
    """Counts as well as reports, wherever they stand among the files."""
    for name, of in (("mine", carrier), ("theirs", other)):
        write_reports(f"{name}.reports", of, {} if of.kind == "attributes" else [])
        counted = aggregate_file(f"{name}.reports", of)[0]
        Path(f"{name}.json").write_text(json.dumps(counted.to_dict()))
    made, theirs = described(carrier), f"theirs.{ending}"
    for files in ([theirs], [f"mine.{ending}", theirs], [theirs, f"mine.{ending}"]):
        found = run("local", "aggregate", made, *files, "--out", "c.json")
        assert found.exit_code == 4, found.output
        assert f"{theirs}: " in found.output
        assert "mine" not in found.output
        assert not Path("c.json").exists()
    assert run("local", "aggregate", made, f"mine.{ending}", "--out", "c.json").exit_code == 0


def test_aggregate_names_the_file_that_is_broken(run) -> None:
    """Of several files, and the channel's."""
    made = described(GRR(3, 1))
    write_reports("a.reports", GRR(3, 1), [0, 1])
    Path("b.reports").write_bytes(Path("a.reports").read_bytes() + b"more")
    for name, text in (("c.json", "{"), ("d.json", "[]"), ("e.json", "\udcff")):
        Path(name).write_bytes(text.encode("utf-8", "surrogateescape"))
    for name in ("b.reports", "c.json", "d.json", "e.json"):
        found = run("local", "aggregate", made, "a.reports", name, "--out", "x.json")
        assert found.exit_code == 4
        assert f"{name}: " in found.output
        assert "a.reports" not in found.output
    assert "c.json: " in run("local", "aggregate", "c.json", "a.reports", "--out", "x.json").output
    assert "d.json: " in run("local", "estimate", "d.json").output


def test_targets_and_sources_are_checked_first(run) -> None:
    """A folder that does not exist, or a file that does not, ends before any work."""
    made, gone = described(GRR(3, 1)), "gone/x.json"
    write_reports("a.reports", GRR(3, 1), [0, 1])
    assert run("local", "aggregate", made, "a.reports", "--out", "c.json").exit_code == 0
    Path("values.txt").write_text("0\n")
    for words in (
        ("best", "10", "--epsilon", "1", "--people", "10", "--out", gone),
        ("privatize", made, "values.txt", "--out", gone),
        ("aggregate", made, "a.reports", "--out", gone),
        ("estimate", "c.json", "--out", gone),
    ):
        found = run("local", *words)
        assert found.exit_code == 2
        assert "--out: there is no folder 'gone'" in found.output
    assert "no folder" in run("local", "estimate", "c.json", "--plot", "gone/x.png").output
    for words in (
        ("privatize", gone, "values.txt", "--out", "x.reports"),
        ("aggregate", gone, "a.reports", "--out", "x.json"),
        ("aggregate", made, "a.reports", gone, "--out", "x.json"),
        ("estimate", gone),
        ("estimate", "c.json", "--candidates", gone),
        ("reproduce", "--data", gone),
    ):
        found = run("local", *words)
        assert found.exit_code == 2
        assert f"'{gone}' does not exist" in found.output


def test_a_reader_who_leaves_is_not_an_error(folder) -> None:
    """As `head` does: nothing on standard error, and nothing about charges."""
    write_reports("a.reports", GRR(3, 1), [0, 1])
    words = ("local", "aggregate", described(GRR(3, 1)), "a.reports", "--out", "c.json")
    with subprocess.Popen(
        [sys.executable, "-m", "dither.cli", *words],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
    ) as process:
        assert process.stdout is not None
        assert process.stderr is not None
        process.stdout.close()
        assert process.stderr.read() == b""
        assert process.wait(timeout=60) == 1
    assert Path("c.json").exists()
