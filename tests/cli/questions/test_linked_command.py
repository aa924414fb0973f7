"""``dither synth-linked``: tables whose keys join, in files that appear whole, for one charge."""

from __future__ import annotations

import gzip
import json
import shutil

import polars as pl
import pytest

import dither as dt
from dither.cli import main
from dither.cli.questions import linked_command, synth_command
from dither.errors import ArgumentError
from dither.ledger import Ledger

POLICY = """\
[budget]
epsilon = 4
delta = 1e-6
release_delta = 1e-7
ledger = "visits.ledger"

[units.person.columns]
persons = "person"
visits = "person"

[tables.persons]
source = "persons.csv"
max_groups = 1
max_rows = 1
max_join_rows = 1

[tables.persons.columns]
sex = { values = ["f", "m"], nullable = false }

[tables.visits]
source = "visits.csv"
max_groups = 1
max_rows = 2
max_join_rows = 3

[tables.visits.columns]
day = { type = "integer", bounds = [0, 30], nullable = false }
left = { type = "integer", bounds = [0, 40], nullable = false }
"""

BELOW = """\
[visits]
most = 3
order = "day"
gaps = [0, 7, 14]
rules = ["left >= day"]
"""

CHILD = 'visits = {most = 3, order = "day", gaps = [0, 7, 14]}'
LINE = ("synth-linked", "persons", "--epsilon", "1", "--cells", "4")


@pytest.fixture(scope="module")
def made(tmp_path_factory):
    """A folder with persons, and their visits, in files of CSV."""
    folder = tmp_path_factory.mktemp("linked")
    persons = [(f"p{i}", "fm"[i % 2]) for i in range(300)]
    visits = [(f"p{i}", d, d + 2) for i in range(300) for d in range(i % 7, 22, 10) if i % 3]
    columns = ["person", "sex"], ["person", "day", "left"]
    for name, rows, names in zip(("persons", "visits"), (persons, visits), columns, strict=True):
        pl.DataFrame(rows, names, orient="row").write_csv(folder / f"{name}.csv")
    (folder / "dither.toml").write_text(POLICY)
    (folder / "tables.toml").write_text(BELOW)
    return folder


@pytest.fixture
def folder(made, tmp_path, monkeypatch):
    """The current folder: a copy of it, and no ledger yet."""
    shutil.copytree(made, tmp_path, dirs_exist_ok=True)
    monkeypatch.chdir(tmp_path)
    return tmp_path


def spent(folder):
    """What the ledger says was charged."""
    if not (folder / "visits.ledger").exists():
        return []
    with Ledger.open(folder / "visits.ledger") as book:
        return [entry.charge.epsilon for entry in book.entries() if entry.charge is not None]


def test_tables_are_written_and_charged_once(run, folder):
    """A file a table whose keys join and whose rules hold, a model for more, a certificate."""
    files = ("--out", "made", "--model", "m.model", "--certificate", "m.json")
    found = run(*LINE, "--below", "tables.toml", "--units", "90", "--seed", "3", *files)
    assert found.exit_code == 0, found.output
    assert "linked synthetic model of persons, visits" in found.output
    assert spent(folder) == [1]
    persons, visits = (pl.read_csv(folder / "made" / f"{n}.csv") for n in ("persons", "visits"))
    assert persons.height == 90
    assert visits.join(persons, on="person").height == visits.height > 0
    assert (visits["left"] >= visits["day"]).all()
    assert run("verify", "m.json", "--ledger", "visits.ledger").exit_code == 0
    more = ("--units", "90", "--seed", "3", "--out", "more", "--form", "parquet")
    again = run("synth-linked", "--from", "m.model", *more)
    assert again.exit_code == 0, again.output
    assert pl.read_parquet(folder / "more" / "visits.parquet").write_csv() == visits.write_csv()
    assert spent(folder) == [1]
    other = run("synth", "--from", "m.model", "--out", "rows.csv")
    assert "dither synth-linked --from" in other.output


def test_a_line_says_what_a_file_does(run, folder):
    """The plan is the same, and nothing is spent for it."""
    (folder / "tables.toml").write_text(f"{CHILD}\n")
    ways = ("--below", "tables.toml"), ("--child", CHILD)
    texts = [run(*LINE, *way, "--explain").output for way in ways]
    assert texts[0] == texts[1]
    assert "level visits" in texts[0]
    assert "of 50 units" in run(*LINE, *ways[1], "--preview", "--sizes", "50").output
    assert spent(folder) == []


OUT = ("--out", "made")


@pytest.mark.parametrize(
    ("line", "says"),
    [
        ((*LINE, *OUT), "--below FILE or --child"),
        ((*LINE, "--child", CHILD), "give --out FOLDER"),
        (("synth-linked", "persons", "--child", CHILD, *OUT), "--epsilon is missing"),
        (("synth-linked", "--child", CHILD, "--epsilon", "1", *OUT), "name the TABLE"),
        ((*LINE, "--child", "visits", *OUT), "--child: write a table"),
        ((*LINE, "--child", "most = 3", *OUT), "--child: write a table"),
        ((*LINE, "--child", CHILD, "--below", "tables.toml", *OUT), "visits is named twice"),
        ((*LINE, "--below", "nothing.toml", *OUT), "--below nothing.toml: cannot be read"),
        ((*LINE, "--below", "persons.csv", *OUT), "--below persons.csv: not TOML"),
        ((*LINE, "--child", "visits = {}", *OUT), "most is missing"),
        ((*LINE, "--child", "visist = {most = 3}", *OUT), "visist"),
        ((*LINE, "--child", "visits = {most = 3, ordre = 'day'}", *OUT), "no field 'ordre'"),
        ((*LINE, "--child", CHILD, "--out", "nowhere/made"), "there is no folder 'nowhere'"),
        ((*LINE, "--child", CHILD, "--out", "persons.csv"), "is a file"),
        # The tables themselves lie there.
        ((*LINE, "--child", CHILD, "--out", "."), "'persons.csv' is there already"),
        ((*LINE, "--child", CHILD, *OUT, "--model", "made"), "--out must not be what"),
        ((*LINE, "--child", CHILD, *OUT, "--model", "made/m"), "no folder 'made'"),
        ((*LINE, "--child", CHILD, *OUT, "--form", "xlsx"), "xlsx"),
        ((*LINE, "--child", CHILD, "--explain", *OUT), "goes with a release"),
        ((*LINE, "--child", CHILD, "--model", "m", "--seed", "1"), "--seed goes with --out"),
        ((*LINE, "--child", CHILD, "--model", "m", "--certificate", "m"), "different files"),
        (("synth-linked", "--from", "m", "--cells", "3", *OUT), "without --from"),
        (("synth-linked", "--from", "m", *OUT), "no model at"),
    ],
)
def test_refusals_cost_nothing(run, folder, line, says):
    """By the option that is wrong, before the charge; and no file is touched."""
    before = {path.name: path.read_bytes() for path in folder.iterdir()}
    found = run(*line)
    assert found.exit_code != 0
    assert says in " ".join(found.output.split())
    assert spent(folder) == []
    after = {p.name: p.read_bytes() for p in folder.iterdir() if not p.name.startswith("visits.le")}
    assert after == before


def test_a_model_names_no_file_elsewhere(run, folder):
    """A model that somebody sent may call its tables what it likes; and one table is no linked."""
    done = run(*LINE, "--child", CHILD, "--model", "m.model")
    assert done.exit_code == 0, done.output
    assert run(*LINE, "--child", CHILD, "--model", "n.model", "--reuse").exit_code == 0
    assert spent(folder) == [1]
    body = json.loads(gzip.decompress((folder / "m.model").read_bytes()))
    for name in ("../out", "/tmp/out", ".hidden", "", "a\nb"):
        body["model"]["levels"][1]["table"] = name
        (folder / "sent.model").write_bytes(gzip.compress(json.dumps(body).encode()))
        found = run("synth-linked", "--from", "sent.model", *OUT)
        assert found.exit_code == 2, name
        assert "a name that no file may have" in found.output
        assert not (folder / "made").exists()
    with dt.open("dither.toml") as session:
        one = session.table("persons").synthesize("0.5", columns=["sex"], method="independent")
        one.save("one.model")
    found = run("synth-linked", "--from", "one.model", *OUT)
    assert "is for `dither synth --from`" in found.output


def test_two_options_do_not_write_one_file(run, folder):
    """Where the folder is there already, a model could be put under a table's name."""
    (folder / "made").mkdir()
    found = run(*LINE, "--child", CHILD, *OUT, "--model", "made/visits.csv")
    assert "another option writes 'made/visits.csv'" in found.output
    assert spent(folder) == []


@pytest.mark.parametrize("command", ["synth", "synth-linked"])
def test_a_disk_that_fails_after_the_charge_is_said_as_that(run, folder, monkeypatch, command):
    """Code 4 says that nothing was spent, so it is not the code of this."""

    def full(target, body):
        raise ArgumentError(f"{str(target)!r} cannot be written")

    for module in (linked_command, synth_command):
        monkeypatch.setattr(module, "written", full)
    of_one = ("synth", "persons", "--epsilon", "1", "--method", "independent", "--columns", "sex")
    line = (*LINE, "--child", CHILD, *OUT) if command != "synth" else (*of_one, "--out", "o.csv")
    found = run(*line)
    assert found.exit_code == 9
    assert "stays charged" in found.output
    assert spent(folder) == [1]


def test_it_stands_beside_the_command_of_one_table(run, folder):
    """In the list of commands."""
    names = list(main.commands)
    assert names.index("synth-linked") == names.index("synth") + 1
