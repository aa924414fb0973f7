"""The commands, run in process: what they print, write, refuse and spend."""

from __future__ import annotations

import json
import tomllib
from collections.abc import Iterator
from fractions import Fraction
from pathlib import Path

import click
import polars as pl
import pytest

import dither as dt
from dither.cli import TRACE, main

BY_REGION = "SELECT region, COUNT(*) AS n, AVG(cost) AS cost FROM visits GROUP BY region"
COUNT = "SELECT COUNT(*) AS n FROM visits"
ANA = ("--analyst", "ana")


def spent() -> Fraction:
    """What the ledger has charged so far."""
    with dt.open("dither.toml", analyst="ana") as session:
        amount = session.balance()[0].spent.epsilon
        assert amount is not None
        return amount


def paths(command: click.Command, *path: str) -> Iterator[tuple[str, ...]]:
    """The words of every command, those of groups included."""
    yield path
    if isinstance(command, click.Group):
        for name, below in command.commands.items():
            yield from paths(below, *path, name)


@pytest.mark.parametrize("path", [*paths(main)], ids=" ".join)
def test_every_help_has_examples(run, path: tuple[str, ...]) -> None:
    """--help and -h end in lines that can be pasted, fit 80 columns and cut nothing off."""
    found = run(*path, "--help", terminal_width=80)
    assert found.exit_code == 0
    assert "Example" in found.output
    # `dither account EXPRESSION` is short for its subcommand.
    assert f"dither {' '.join(path)}".removesuffix(" compose").strip() in found.output
    assert run(*path, "-h", terminal_width=80).output == found.output
    assert max(map(len, found.output.splitlines())) <= 80
    assert "..." not in found.output.partition("Commands:")[2].partition("Example")[0]


def test_commands_come_in_the_order_of_use() -> None:
    """The first command of the list is the first that one needs."""
    names = main.list_commands(click.Context(main))
    assert names[:4] == ["init", "explain", "preview", "release"]


def test_version(run) -> None:
    """The version is the package's."""
    assert run("--version").output == f"dither {dt.__version__}\n"


def test_init_drafts_from_the_schema_alone(run, folder: Path) -> None:
    """The draft names every column, says what to fill in, holds no value, and opens."""
    found = run("init", "visits.parquet", "--out", "draft.toml", "--table", "stays")
    assert found.exit_code == 0, found.output
    text = (folder / "draft.toml").read_text()
    assert list(tomllib.loads(text)["tables"]["stays"]["columns"]) == ["region", "cost"]
    assert "north" not in text + found.output
    assert "no value was read" in found.output
    assert "region, cost" in found.output
    assert "--policy draft.toml" in found.output
    assert (
        run("explain", "SELECT COUNT(*) AS n FROM stays", "--policy", "draft.toml").exit_code == 0
    )


def test_init_takes_a_unit_and_says_what_it_asks_for(run, folder: Path) -> None:
    """With a unit, the limits of one person's share are to be filled in."""
    found = run("init", "visits.parquet", "--unit", "region", "--force")
    assert found.exit_code == 0, found.output
    assert (
        tomllib.loads((folder / "dither.toml").read_text())["tables"]["visits"]["unit"] == "region"
    )
    assert "max_groups and max_rows" in found.output
    assert run("init", "visits.parquet", "--unit", "regions", "--force").exit_code == 4


@pytest.fixture
def people(folder: Path) -> str:
    """A table with a column that looks like a person's key."""
    pl.DataFrame({"patient_id": [1, 1], "cost": [1.0, 2.0]}).write_parquet("people.parquet")
    return "people.parquet"


def test_init_refuses_to_protect_rows_in_silence(run, people: str) -> None:
    """In a pipe nobody can be asked: both ways are named, nothing is written, and both work."""
    found = run("init", people, "--out", "p.toml")
    assert found.exit_code == 2
    assert "--unit patient_id, or --by-row" in " ".join(found.stderr.split())
    assert not Path("p.toml").exists()
    assert run("init", people, "--out", "p.toml", "--unit", "patient_id").exit_code == 0
    assert run("init", people, "--out", "q.toml", "--by-row").exit_code == 0
    assert run("check", "--policy", "q.toml", "--strict").exit_code == 0
    assert run("init", people, "--unit", "cost", "--by-row", "--force").exit_code == 2


@pytest.mark.parametrize("answer", ["patient_id", "row"])
def test_init_asks_whose_a_row_is(run, people: str, monkeypatch, answer: str) -> None:
    """On a terminal, and drafts what is answered."""
    monkeypatch.setattr("dither.cli.policies.init_command._can_be_asked", lambda: True)
    found = run("init", people, "--out", "p.toml", input=f"nobody\n{answer}\n")
    assert found.exit_code == 0, found.output
    assert "may say whose a row is" in found.stderr
    body = tomllib.loads(Path("p.toml").read_text())
    assert ("units" in body) == (answer == "row")
    assert body["tables"]["people"].get("unit") == (None if answer == "row" else answer)


def test_check_is_strict_about_people(run, people: str) -> None:
    """A table with a person's key and no unit passes, and fails with --strict."""
    text = '[budget]\nepsilon = 1\nledger = "l"\n[tables.t]\nsource = "people.parquet"\n'
    Path("p.toml").write_text(text)
    assert run("check", "--policy", "p.toml").exit_code == 0
    found = run("check", "--policy", "p.toml", "--strict")
    assert found.exit_code == 1
    assert "'patient_id'" in found.output


def test_init_points_from_the_policy_to_its_source(run, folder: Path) -> None:
    """A policy in another folder finds its source, since paths start from the policy."""
    (folder / "policies").mkdir()
    assert run("init", "visits.parquet", "--out", "policies/p.toml").exit_code == 0
    assert run("explain", COUNT, "--policy", "policies/p.toml").exit_code == 0


def test_init_writes_over_nothing(run, folder: Path) -> None:
    """An existing policy stays, unless --force; a missing folder is named."""
    before = (folder / "dither.toml").read_text()
    found = run("init", "visits.parquet")
    assert found.exit_code == 2
    assert "--force" in found.stderr
    assert (folder / "dither.toml").read_text() == before
    assert "no folder 'nowhere'" in run("init", "visits.parquet", "--out", "nowhere/p.toml").stderr
    assert run("init", "nothing.parquet", "--out", "p.toml").exit_code == 4


def test_explain_prints_the_tree_and_spends_nothing(run) -> None:
    """The tree names who is protected; with epsilon, also the cost; JSON holds the same."""
    found = run("explain", BY_REGION, *ANA, "--epsilon", "0.5")
    assert found.exit_code == 0, found.output
    assert "protects one row of visits" in found.output
    assert "cost" in found.output
    tree = json.loads(run("explain", BY_REGION, *ANA, "--json").output)
    assert tree["title"].startswith("release of")
    assert spent() == 0
    assert run("explain", COUNT, *ANA, "--delta", "1e-7").exit_code == 2


def test_a_question_can_come_from_standard_input(run) -> None:
    """A lone dash reads the question; an empty one is refused."""
    assert (
        run("explain", "-", *ANA, input=BY_REGION).output == run("explain", BY_REGION, *ANA).output
    )
    assert run("explain", "-", *ANA, input=" \n").exit_code == 2


def test_preview_prints_half_widths(run, folder: Path) -> None:
    """One row for each size, one column for each output; JSON and a picture hold the same."""
    line = ("preview", BY_REGION, *ANA, "--epsilon", "0.25", "--sizes", "50,5000")
    found = run(*line, "--plot", "p.png")
    assert found.exit_code == 0, found.output
    assert "rows in a group" in found.stdout
    assert "5,000" in found.stdout
    assert (folder / "p.png").read_bytes()[:4] == b"\x89PNG"
    data = json.loads(run(*line, "--json").stdout)
    assert data["epsilon"] == "1/4"
    assert data["sizes"] == [50, 5000]
    assert data["half_widths"]["cost"][0] > data["half_widths"]["cost"][1] > 0
    assert spent() == 0


def test_the_budget_found_keeps_its_promise(run) -> None:
    """The epsilon that --half-width finds brings every output within what was asked."""
    wanted = ("--half-width", "n=10", "--half-width", "cost=2", "--size", "500")
    best = json.loads(run("preview", BY_REGION, *ANA, *wanted, "--json").stdout)["epsilon"]
    line = ("preview", BY_REGION, *ANA, "--epsilon", best, "--sizes", "500", "--json")
    widths = json.loads(run(*line).stdout)["half_widths"]
    assert widths["n"][0] <= 10
    assert widths["cost"][0] <= 2
    text = run("preview", BY_REGION, *ANA, *wanted).stdout
    assert f"epsilon = {best} brings n within ±10 and cost within ±2" in text
    assert "every output within ±9" in run("preview", COUNT, *ANA, "--half-width", "9").stdout


@pytest.mark.parametrize(
    "options",
    [
        (),
        ("--epsilon", "0.1", "--half-width", "1"),
        ("--half-width", "1", "--half-width", "2"),
        ("--half-width", "n=x"),
        ("--half-width", "0"),
        ("--epsilon", "0.1", "--size", "3"),
        ("--epsilon", "0.1", "--sizes", "0"),
        ("--epsilon", "0.1", "--sizes", "a,b"),
        ("--half-width", "1", "--plot", "p.png"),
    ],
)
def test_preview_refuses_options_that_do_not_go_together(run, options: tuple[str, ...]) -> None:
    """Each is a mistake on the command line, so the exit code is 2."""
    found = run("preview", COUNT, *ANA, *options)
    assert found.exit_code == 2
    assert found.stderr.startswith("Usage:")


def test_release_answers_charges_and_writes(run, folder: Path) -> None:
    """The table holds every group; the files hold the same answers; the charge is what was asked.

    The count is drawn with ε of at least 0.1, so being off by 300 has odds below 1e-12.
    """
    found = run(
        *("release", BY_REGION, *ANA, "--epsilon", "0.5"),
        *("--out", "a.csv", "--plot", "a.svg", "--certificate", "a.json"),
    )
    assert found.exit_code == 0, found.output
    for text in ("north", "south", "cost (EUR)", "ledger entry", "Protects one row of visits"):
        assert text in found.stdout
    frame = pl.read_csv(folder / "a.csv")
    assert frame.columns[:4] == ["region", "n", "n_lower", "n_upper"]
    assert all(abs(n - 150) < 300 for n in frame["n"])
    assert found.stderr.splitlines() == ["wrote a.csv", "wrote a.svg", "wrote a.json"]
    assert spent() == Fraction(1, 2)
    assert "agrees" in run("verify", "a.json").stdout


def test_the_same_token_replays_and_costs_nothing(run, folder: Path) -> None:
    """The answer comes back bit by bit, in every format, and the ledger stays as it was."""
    line = ("release", BY_REGION, *ANA, "--epsilon", "0.25", "--token", "monday")
    first = json.loads(run(*line, "--json", "--out", "a.parquet").stdout)
    again = json.loads(run(*line, "--json", "--out", "b.json").stdout)
    assert (first.pop("replayed"), again.pop("replayed")) == (False, True)
    assert first == again
    assert json.loads((folder / "b.json").read_text()) == first["rows"]
    assert pl.read_parquet(folder / "a.parquet").to_dicts() == first["rows"]
    assert "replayed: nothing is charged now" in run(*line).stdout
    assert spent() == Fraction(1, 4)


def test_what_the_budget_will_not_bear_is_refused(run) -> None:
    """The message says what remains and what would fit, and nothing is spent."""
    found = run("release", COUNT, *ANA, "--epsilon", "0.75")
    assert found.exit_code == 5
    assert found.stdout == ""
    assert "nothing was spent" in found.stderr
    assert "fits with epsilon = 0.5" in found.stderr
    assert "Traceback" not in found.output
    assert spent() == 0


@pytest.mark.parametrize(
    ("options", "said"),
    [
        (("--out", "a.xls"), "--out must end in .csv, .json, .parquet"),
        (("--plot", "a.bmp"), "--plot must end in"),
        (("--out", "no/a.csv"), "no folder 'no'"),
        (("--certificate", "no/a.json"), "no folder 'no'"),
        (("--out", "a.json", "--certificate", "a.json"), "different files"),
        (("--out", "."), "directory"),
    ],
)
def test_targets_are_checked_before_spending(run, options: tuple[str, ...], said: str) -> None:
    """An answer that could not be kept is never paid for."""
    found = run("release", COUNT, *ANA, "--epsilon", "0.1", *options)
    assert found.exit_code == 2
    assert said in found.stderr
    assert spent() == 0


def test_a_picture_without_matplotlib_is_refused_before_spending(
    run, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The extra is named."""
    monkeypatch.setattr("dither.cli._files.find_spec", lambda name: None)
    found = run("release", COUNT, *ANA, "--epsilon", "0.1", "--plot", "a.png")
    assert found.exit_code == 2
    assert "pip install 'dither[plots]'" in found.stderr
    assert spent() == 0


@pytest.mark.parametrize(
    ("line", "code", "said"),
    [
        (("release", COUNT, "--epsilon", "0"), 2, "must be above 0"),
        (("release", COUNT, "--epsilon", "nan"), 2, "give a number"),
        (("release", COUNT, "--epsilon", "1/0"), 2, "give a number"),
        (("release", COUNT, "--epsilon", "1", "--delta", "-1"), 2, "at least 0"),
        (("release", COUNT, "--epsilon", "1", "--confidence", "1"), 2, "--confidence"),
        (("release", COUNT), 2, "--epsilon"),
        (("release", COUNT, "--epsilon", "0.1"), 4, "analyst"),
        (("release", COUNT, "--epsilon", "0.1", "--analyst", "anna"), 4, "did you mean 'ana'"),
        (("explain", "SELECT COUNT(*) FROM visit", *ANA), 4, "did you mean 'visits'"),
        (("explain", "SELECT SUM(costs) FROM visits", *ANA), 4, "did you mean 'cost'"),
        (("explain", "SELECT cost FROM visits", *ANA), 4, "raw column"),
        (("explain", COUNT, "--policy", "no.toml"), 4, "dither init"),
        (("verify", "no.json"), 1, "no certificate"),
        (("verify", "no.json", "--policy", "no.toml"), 2, "--ledger"),
    ],
)
def test_errors_name_the_fix(run, line: tuple[str, ...], code: int, said: str) -> None:
    """One message on standard error, no trace; 2 for the command line, 4 for what it asks for."""
    found = run(*line)
    assert (found.exit_code, found.stdout) == (code, "")
    assert said in found.stderr
    assert "Traceback" not in found.stderr
    if code in (1, 4):
        assert found.stderr.startswith("Error: ")
        assert found.stderr.count("\n") == 1


def test_verify_finds_a_changed_certificate(run, folder: Path) -> None:
    """A certificate that claims a smaller loss does not agree."""
    assert run("release", COUNT, *ANA, "--epsilon", "0.5", "--certificate", "c.json").exit_code == 0
    body = json.loads((folder / "c.json").read_text())
    body["loss"]["epsilon"] = "1/4"
    (folder / "c.json").write_text(json.dumps(body))
    found = run("verify", "c.json", "--ledger", "visits.ledger")
    assert found.exit_code == 1
    assert "changed" in found.stderr


def test_unexpected_errors_never_show_their_text(run, monkeypatch: pytest.MonkeyPatch) -> None:
    """A foreign error may quote a value, so only its kind is told, unless the owner asks."""

    def fail(*_: object, **__: object) -> None:
        raise KeyError("Jane Doe, 42")

    monkeypatch.setattr("dither.session._session.read_policy", fail)
    monkeypatch.delenv(TRACE, raising=False)
    found = run("explain", COUNT)
    assert found.exit_code == 9
    assert "unexpected KeyError" in found.stderr
    assert "Jane" not in found.output
    monkeypatch.setenv(TRACE, "1")
    assert isinstance(run("explain", COUNT).exception, KeyError)


def test_notes_of_the_plan_are_printed(run, folder: Path) -> None:
    """What the plan leaves out is said with the answer."""
    text = (folder / "dither.toml").read_text()
    (folder / "dither.toml").write_text(text.replace('"south"], nullable = false', '"south"]'))
    found = run("release", BY_REGION, *ANA, "--epsilon", "0.1")
    assert found.exit_code == 0, found.output
    assert "Rows in which region is NULL" in " ".join(found.stdout.split())


def test_the_ledger_is_shown_from_the_policy(run) -> None:
    """What was spent can be read where it was spent."""
    run("release", COUNT, *ANA, "--epsilon", "0.5")
    found = run("ledger", "show")
    assert found.exit_code == 0
    assert "analyst:ana" in found.stdout
    assert "ε 0.5" in found.stdout


def test_weights_and_discovery_are_options_of_every_question(run) -> None:
    """They stand beside the SQL; a weight that is none is refused as a mistake of the caller."""
    found = run("explain", BY_REGION, *ANA, "--epsilon", "0.1", "--weight", "n=5", "--discover")
    assert found.exit_code == 0, found.output
    assert "discovered" in found.output
    plain = run("explain", BY_REGION, *ANA, "--epsilon", "0.1", "--discover")
    assert plain.output != found.output
    assert run("preview", BY_REGION, *ANA, "--epsilon", "0.1", "--weight", "n").exit_code == 2
    wrong = run("release", BY_REGION, *ANA, "--epsilon", "0.1", "--weight", "x=1")
    assert wrong.exit_code == 4
    assert "no output 'x'" in wrong.output
    assert spent() == 0
