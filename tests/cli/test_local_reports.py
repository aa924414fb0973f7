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
    assert "400 reports of grr" in found.output
    assert "epsilon = 8 between any two values" in found.output
    assert run("privatize", made, "-", "--out", two, data="no\nno\n").exit_code == 0
    found = run("aggregate", made, one, two, "--out", counts)
    assert "402 reports counted, 0 dropped, 0 missing" in found.output
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
