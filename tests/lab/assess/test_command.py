"""``dither assess``: files in, a page, data or text out, and an exit code."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from click.testing import CliRunner

from dither.cli import main
from lab.assess.conftest import Drawn


@pytest.fixture
def files(tmp_path: Path, drawn: Drawn, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A table, a fresh release and a control."""
    monkeypatch.chdir(tmp_path)
    for name in ("table", "held", "fresh"):
        drawn(40).write_csv(f"{name}.csv")
    drawn(40).write_parquet("fresh.parquet")
    return tmp_path


def _run(*arguments: str) -> tuple[int, str]:
    found = CliRunner().invoke(main, ["assess", *arguments])
    return found.exit_code, found.output


def test_it_writes_what_it_says(files: Path) -> None:
    """A page, as JSON on the screen, from CSV and Parquet; an existing file is kept."""
    common = ("table.csv", "fresh.parquet", "--control", "held.csv", "--secret", "ill")
    code, said = _run(*common, "--json", "--out", "page.html")
    assert code == 0, said
    body = json.loads(said[: said.rindex("}") + 1])
    assert [c["name"] for c in body["criteria"]] == ["singling out", "linkability", "inference"]
    assert (files / "page.html").read_text(encoding="utf-8").startswith("<!doctype html>")
    assert _run(*common, "--out", "page.html")[0] == 2
    assert _run(*common, "--out", "page.pdf")[0] == 2


def test_its_exit_code_is_a_gate(files: Path) -> None:
    """1 beyond the claim, 3 where nothing can be said."""
    code, said = _run("table.csv", "table.csv", "--control", "held.csv", "--epsilon", "0.1")
    assert (code, "BEYOND THE CLAIM" in said.upper()) == (1, True)
    code, said = _run("table.csv", "fresh.csv")
    assert (code, "Nothing can be said" in said) == (3, True)


@pytest.mark.parametrize(
    ("given", "message"),
    [
        (["--key", "owner.pub"], "--key goes with --certificate"),
        (["--delta", "0.1"], "--delta goes with --epsilon"),
        (["--certificate", "table.csv"], "needs --ledger or --key"),
        (["--groups", "ill=none.csv"], "there is no such file"),
        (["--unit", "nobody"], "unit has an unknown column"),
    ],
)
def test_bad_options_are_refused(files: Path, given: list[str], message: str) -> None:
    """By name, before anything is attacked."""
    code, said = _run("table.csv", "fresh.csv", *given)
    assert code in (2, 4)
    assert message in " ".join(said.split())
