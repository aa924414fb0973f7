"""``dither init`` asks what the page asks, in the same words, and nothing where nobody answers."""

from __future__ import annotations

import tomllib
from datetime import date
from decimal import Decimal
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from dither.cli import main
from dither.policy._policy import read_policy
from dither.policy.steps import QUESTIONS, STEPS
from dither.policy.steps._questions import words

SECRET = "Quixotic-Zebra-77"

ANSWERS = {
    "days": ["integer", "0-30", "30, 0", "0, 30", "days", "false"],
    "ward": ["", "north, south", ""],
    "day": ["date", "2024-01-01, 2024-12-31", ""],
}


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder with a CSV file."""
    monkeypatch.chdir(tmp_path)
    lines = ["patient_id,days,ward,day", f"1,2,{SECRET},2024-01-01"]
    (tmp_path / "stays.csv").write_text("\n".join(lines) + "\n")
    return tmp_path


def run(*arguments: str, answers: list[str] | None = None) -> Result:
    """The command, with what somebody types."""
    typed = None if answers is None else "".join(f"{one}\n" for one in answers)
    return CliRunner().invoke(main, ["init", "stays.csv", *arguments], input=typed)


def test_six_steps_write_a_policy_that_opens(folder: Path) -> None:
    """Each question with its meaning and with what happens if it is left out."""
    typed = [one[0] for one in ANSWERS.values()]
    typed += ["40"]
    typed += [part for one in ANSWERS.values() for part in one[1:]]
    typed += ["many", "5", "", "2", "", "nothing", "day", "week", "6", "ann", "0.5", ""]
    found = run("--unit", "patient_id", "--ask", answers=typed)
    assert found.exit_code == 0, found.output
    text = (folder / "dither.toml").read_text()
    body = tomllib.loads(text, parse_float=Decimal)
    stays = body["tables"]["stays"]
    assert stays["columns"] == {
        "days": {"type": "integer", "bounds": [0, 30], "unit": "days", "nullable": False},
        "ward": {"values": ["north", "south"]},
        "day": {"type": "date", "bounds": [date(2024, 1, 1), date(2024, 12, 31)]},
    }
    assert read_policy("dither.toml").per_block
    assert (stays["max_rows"], stays["max_groups"], stays["units_at_least"]) == (5, 1, 40)
    assert stays["block"] == {"column": "day", "every": "week"}
    assert body["budget"]["epsilon"] == 2
    assert body["budget"]["per"] == "block"
    assert body["budget"]["lifetime"] == {"epsilon": 6}
    assert body["quotas"]["analysts"] == {"ann": {"epsilon": Decimal("0.5")}}
    said = " ".join(found.output.split())
    for step in STEPS:
        assert words()[f"step_{step}"]["title"] in said
    for key in QUESTIONS.keys() - {"source", "unit", "step"}:
        assert words()[key]["meaning"] in said, key
    assert "max_rows must be a whole number" in said
    assert "bounds must be numbers with commas between them, such as 0, 100" in said
    assert "bounds must be the lower value, then a higher one" in said
    assert "There is no such column" in said
    assert SECRET not in found.output + text


def test_the_end_of_the_input_leaves_the_rest_as_it_was(folder: Path) -> None:
    """The draft is written with what was answered until then."""
    found = run("--unit", "patient_id", "--ask", answers=["integer"])
    assert found.exit_code == 0, found.output
    columns = tomllib.loads((folder / "dither.toml").read_text())["tables"]["stays"]["columns"]
    assert columns == {"days": {"type": "integer"}, "ward": {}, "day": {}}


def test_nothing_is_asked_in_a_pipe(folder: Path) -> None:
    """Nor with --no-ask at a terminal: scripts get the draft that they always got."""
    first = run("--unit", "patient_id")
    plain = (folder / "dither.toml").read_text()
    assert (first.exit_code, "Tables" in first.output) == (0, False)
    run("--unit", "patient_id", "--no-ask", "--force")
    assert (folder / "dither.toml").read_text() == plain
    (folder / "people.csv").write_text("age\n1\n")
    asked = CliRunner().invoke(
        main, ["init", "people.csv", "--ask", "--out", "p.toml"], input="\nrow\n"
    )
    assert asked.exit_code == 0, asked.output
    assert words()["unit"]["left_out"] in " ".join(asked.output.split())
    assert tomllib.loads((folder / "p.toml").read_text())["units"]["person"]["rows"] == {
        "people": 1
    }
