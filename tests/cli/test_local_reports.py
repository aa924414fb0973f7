"""A survey from a terminal: a channel, reports, counts and an estimate, each in a file."""

from __future__ import annotations

import json
from pathlib import Path

import polars as pl
import pytest
from click.testing import CliRunner, Result

from dither import local
from dither.cli import main


def run(*arguments: object, data: str | None = None) -> Result:
    return CliRunner().invoke(main, ["local", *map(str, arguments)], input=data)


def described(folder: Path, channel: local.Channel) -> Path:
    path = folder / "channel.json"
    path.write_text(json.dumps(channel.to_dict()))
    return path


def test_a_survey(tmp_path: Path) -> None:
    """Values to reports to counts to shares, from two devices and through a pipe."""
    channel = local.GRR(["no", "yes", "santé"], epsilon=8)
    made, values = described(tmp_path, channel), tmp_path / "values.txt"
    values.write_text("yes\n" * 300 + "santé\n" * 100, encoding="utf-8")
    one, two, counts = (tmp_path / name for name in ("a.reports", "b.reports", "counts.json"))
    found = run("privatize", made, values, "--out", one)
    assert found.exit_code == 0, found.output
    assert "400 reports by grr" in found.output
    assert "epsilon = 8 between any two values" in found.output
    assert run("privatize", made, "-", "--out", two, data="no\nno\n").exit_code == 0
    found = run("aggregate", made, one, two, "--out", counts)
    assert "402 reports counted, 0 impossible and left out, 0 missing" in found.output
    again = run("aggregate", made, counts, two, "--out", tmp_path / "more.json")
    assert "404 reports counted" in again.output
    table = tmp_path / "shares.csv"
    found = run("estimate", counts, "--postprocess", "norm_sub", "--out", table)
    assert found.exit_code == 0, found.output
    assert "grr: 402 reports" in found.output
    shares = dict(pl.read_csv(table).select("value", "share").iter_rows())
    assert abs(shares["yes"] - 300 / 402) < 0.05


def test_numbers_and_types(tmp_path: Path) -> None:
    """Lines become what the domain holds; numbers are read exactly, and give a mean."""
    made = described(tmp_path, local.PM(local.Interval(0, 10), epsilon=4))
    reports, counts = tmp_path / "r.reports", tmp_path / "c.json"
    assert run("privatize", made, "-", "--out", reports, data="2.5\n" * 500).exit_code == 0
    assert run("aggregate", made, reports, "--out", counts).exit_code == 0
    found = run("estimate", counts)
    assert "pm: 500 reports" in found.output
    for domain, line in (([10, 20], "20"), ([False, True], "true"), (["1", 2], "1")):
        made = described(tmp_path, local.GRR(domain, epsilon=20))
        assert run("privatize", made, "-", "--out", reports, data=f"{line}\n" * 20).exit_code == 0
        counted = local.aggregate_file(reports)[0]
        assert counted.counts[domain.index(json.loads(line) if line != "1" else "1")] == 20


def test_what_is_refused(tmp_path: Path) -> None:
    """An unlisted value, another channel's file and no JSON: an error that shows no value."""
    made, out = described(tmp_path, local.GRR(["no", "yes"], epsilon=1)), tmp_path / "x.reports"
    found = run("privatize", made, "-", "--out", out, data="yes\nsecret\n")
    assert found.exit_code != 0
    assert "secret" not in found.output
    assert not out.exists()
    local.write_reports(out, local.GRR(3, 1), [0, 1])
    found = run("aggregate", made, out, "--out", tmp_path / "c.json")
    assert found.exit_code != 0
    assert not (tmp_path / "c.json").exists()
    gone = tmp_path / "gone.json"
    for arguments in (
        ("privatize", gone, "-", "--out", out),
        ("aggregate", made, gone.with_suffix(".reports"), "--out", tmp_path / "c.json"),
        ("aggregate", made, gone, "--out", tmp_path / "c.json"),
        ("estimate", gone),
    ):
        found = run(*arguments, data="yes\n")
        assert found.exit_code != 0
        assert not isinstance(found.exception, OSError)
    broken = tmp_path / "broken.json"
    for text in ("{", "[]", '{"channel": []}'):
        broken.write_text(text)
        for arguments in (
            ("privatize", broken, "-", "--out", out),
            ("aggregate", broken, out, "--out", tmp_path / "c.json"),
            ("estimate", broken),
        ):
            found = run(*arguments, data="yes\n")
            assert found.exit_code != 0
            assert not isinstance(found.exception, TypeError | KeyError)


@pytest.mark.parametrize("size", [4, 5000])
def test_the_best_channel_is_written(tmp_path: Path, size: int) -> None:
    """What is chosen goes to a file that the other commands read."""
    made, out = tmp_path / "channel.json", tmp_path / "r.reports"
    found = run("best", size, "--epsilon", 1, "--people", 10_000, "--out", made)
    assert found.exit_code == 0, found.output
    assert run("privatize", made, "-", "--out", out, data="0\n3\n").exit_code == 0
    assert local.aggregate_file(out)[0].n == 2


NAMES = {"smokes": ["no", "yes"], "region": 3}
ROWS = "region,age,smokes\n" + "2,40,yes\n1,30,no\n" * 200
KINDS = {
    "attributes": (local.Attributes(NAMES, 8), ROWS, "smokes: "),
    "fake-data": (local.FakeData(NAMES, 8), ROWS, "region: "),
    "marginals": (local.Marginals(NAMES, 2, 8), ROWS, "yes × 2"),
    "item-sets": (
        local.ItemSets(["bread", "milk", 7], 8, padding=2),
        '["bread"]\n["bread", 7]\n' * 200,
        "bread",
    ),
    "key-value": (
        local.KeyValue(["film", "book"], (0, 5), 8, padding=2),
        '{"film": 4}\n{"film": 5, "book": 1.5}\n' * 200,
        "film",
    ),
    "heavy-hitters": (local.HeavyHitters("abc", 3, 8, bits=8), "cab\nab\n" * 200, "cab"),
    "offer": (
        local.Personal([local.GRR(["no", "yes"], e) for e in (4, 8)]),
        "value,choice\nyes,0\nno,1\n" + "yes,1\n" * 398,
        "personal, by weights: 400 reports (1 + 399)",
    ),
    "classes": (
        local.Personal({n: local.PM(local.Interval(0, 10), e) for n, e in (("a", 4), ("b", 8))}),
        "choice,value\n" + "a,2.5\nb,7.5\n" * 200,
        "Choice b: 200 reports",
    ),
}


@pytest.mark.parametrize("kind", KINDS)
def test_a_survey_of_structures(kind: str, tmp_path: Path) -> None:
    """Rows, sets, pairs and choices: reports to counts to an estimate, a table and a picture."""
    structure, lines, told = KINDS[kind]
    made, values = described(tmp_path, structure), tmp_path / "values.txt"  # type: ignore[arg-type]
    values.write_text(lines)
    reports, counts = tmp_path / "r.reports", tmp_path / "c.json"
    found = run("privatize", made, values, "--out", reports)
    assert found.exit_code == 0, found.output
    assert "reports of 400 people by" in found.output
    more = tmp_path / "more.reports"
    empty = lines.splitlines()[0] + "\n" if "," in lines.splitlines()[0][:9] else ""
    assert run("privatize", made, "-", "--out", more, data=empty).exit_code == 0
    found = run("aggregate", made, reports, more, "--out", counts)
    assert found.exit_code == 0, found.output
    assert ", 0 impossible and left out, 0 missing" in found.output
    assert run("aggregate", made, counts, more, "--out", tmp_path / "d.json").exit_code == 0
    assert json.loads((tmp_path / "d.json").read_text()) == json.loads(counts.read_text())
    table, picture = tmp_path / "t.csv", tmp_path / "p.png"
    found = run("estimate", counts, "--out", table, "--plot", picture)
    assert found.exit_code == 0, found.output
    assert told in found.output
    assert pl.read_csv(table).height >= 1
    assert picture.stat().st_size > 5_000


def test_options_reach_the_estimate(tmp_path: Path) -> None:
    """A method, a number of texts and candidates are passed on; others are refused by name."""
    out, counts = tmp_path / "r.reports", tmp_path / "c.json"

    def counted(carrier: object, lines: str) -> None:
        made = described(tmp_path, carrier)  # type: ignore[arg-type]
        assert run("privatize", made, "-", "--out", out, data=lines).exit_code == 0
        assert run("aggregate", made, out, "--out", counts).exit_code == 0

    counted(local.GRR(["no", "yes"], 4), "yes\n" * 200)
    assert "Maximum likelihood" in run("estimate", counts, "--method", "likelihood").output
    found = run("estimate", counts, "--top", 3)
    assert found.exit_code != 0
    assert "k cannot be asked for of an estimate by grr" in found.output
    counted(local.HeavyHitters("abc", 2, 8, bits=8), "ab\nac\n" * 300)
    found = run("estimate", counts, "--top", 1)
    assert ("ab" in found.output) != ("ac  " in found.output)
    counted(local.HCMS(["a", "b"], 8, hashes=64), "c\n" * 500)
    asked = tmp_path / "asked.txt"
    asked.write_text("c\nd\n")
    found = run("estimate", counts, "--candidates", asked)
    assert found.exit_code == 0, found.output
    assert "hcms, of candidates: 500 reports" in found.output


@pytest.mark.parametrize(
    ("kind", "lines"),
    [
        ("attributes", "region,smokes\n1,secret\n"),
        ("attributes", "region,smokes\n1\n"),
        ("attributes", "region\n1\n"),
        ("attributes", "region,smokes,smokes\n1,yes,no\n"),
        ("item-sets", '["secret"]\n'),
        ("item-sets", '{"secret": 1}\n'),
        ("item-sets", "secret\n"),
        ("key-value", '{"film": "secret"}\n'),
        ("key-value", '["film"]\n'),
        ("offer", "choice,value\n2,yes\n"),
        ("offer", "choice,value\nsecret,yes\n"),
        ("classes", "choice,value\nsecret,2\n"),
        ("classes", "choice,value\na,secret\n"),
    ],
)
def test_bad_lines_are_refused(kind: str, lines: str, tmp_path: Path) -> None:
    """A line that is not what the structure asks for: no report, and no value is shown."""
    made, out = described(tmp_path, KINDS[kind][0]), tmp_path / "x.reports"  # type: ignore[arg-type]
    found = run("privatize", made, "-", "--out", out, data=lines)
    assert found.exit_code != 0
    assert isinstance(found.exception, SystemExit), found.exception
    assert "secret" not in found.output
    assert not out.exists()


def counted_once(folder: Path) -> tuple[Path, Path, Path]:
    """A channel, two reports of it, and their counts, each in a file."""
    made = described(folder, local.GRR(["no", "yes"], epsilon=1))
    reports, counts = folder / "r.reports", folder / "c.json"
    assert run("privatize", made, "-", "--out", reports, data="yes\nno\n").exit_code == 0
    assert run("aggregate", made, reports, "--out", counts).exit_code == 0
    return made, reports, counts


def test_a_file_counts_once(tmp_path: Path) -> None:
    """A file that is named twice, by whatever path, is refused: its people would count twice."""
    made, reports, counts = counted_once(tmp_path)
    link = tmp_path / "other.reports"
    link.hardlink_to(reports)
    for again in (reports, tmp_path / "." / "r.reports", link):
        found = run("aggregate", made, reports, again, "--out", tmp_path / "twice.json")
        assert found.exit_code == 2
        assert "would count twice" in found.output
        assert not (tmp_path / "twice.json").exists()
    assert run("aggregate", made, reports, counts, "--out", tmp_path / "d.json").exit_code == 0


def test_swapped_files_are_named(tmp_path: Path) -> None:
    """A channel where counts belong, or the other way round: the message says what it is."""
    made, reports, counts = counted_once(tmp_path)
    out = tmp_path / "x.json"
    for words, said in (
        (("aggregate", reports, made, "--out", out), "holds reports"),
        (("aggregate", counts, reports, "--out", out), "holds counts"),
        (("aggregate", made, made, "--out", out), "holds a channel"),
        (("estimate", made), "holds a channel"),
        (("estimate", reports), "holds reports"),
    ):
        found = run(*words)
        assert found.exit_code == 4
        assert said in found.output
        assert "wrong order" in found.output


def test_bad_pictures_and_candidates_are_refused_first(tmp_path: Path) -> None:
    """A picture's ending is checked before any work; candidates are some, and all different."""
    _, _, counts = counted_once(tmp_path)
    found = run("estimate", counts, "--plot", tmp_path / "x.foo")
    assert found.exit_code == 2
    assert "shares" not in found.output
    sketch = local.CMS(["a", "b"], 1)
    reports = sketch.aggregate(sketch.privatize(["a", "b"]))
    counts.write_text(json.dumps(reports.to_dict()))
    names = tmp_path / "names.txt"
    for text, said in (("", "at least one value"), ("a\nb\na\n", "a value twice")):
        names.write_text(text)
        found = run("estimate", counts, "--candidates", names)
        assert found.exit_code == 4
        assert said in found.output
