"""The commands on rows, counts and members."""

from __future__ import annotations

import re
from pathlib import Path

import polars as pl
import pytest
from click.testing import CliRunner

from dither.cli import main

pytest.importorskip("statsmodels")


def run(*words: str, code: int = 0) -> str:
    """What the command prints."""
    done = CliRunner().invoke(main, ["attack", *words])
    assert done.exit_code == code, done.output
    return done.output


@pytest.fixture
def files(tmp_path: Path) -> tuple[str, str]:
    """A release of coarse ages and a public table, as CSV."""
    release, public = tmp_path / "release.csv", tmp_path / "public.csv"
    ages = [31, 38, 44, 47, 52]
    pl.DataFrame(
        {
            "age": ["[30, 40)"] * 2 + ["[40, 50)"] * 2 + ["[50, 60)"],
            "ill": ["yes", "yes", "no", "yes", "no"],
        }
    ).write_csv(release)
    pl.DataFrame({"name": list("abcde"), "age": ages}).write_csv(public)
    return str(release), str(public)


def test_linkage_of_files(files: tuple[str, str], tmp_path: Path) -> None:
    """People are looked up, the attack is scored, classes are read, a picture is drawn."""
    release, public = files
    picture = tmp_path / "found.png"
    told = run("linkage", release, public, "--keys", "age", "--same-order", "--plot", str(picture))
    assert "exactly one row 1; it is the right one for 1" in " ".join(told.split())
    assert picture.is_file()
    told = run("linkage", release, "--keys", "age", "--sensitive", "ill", "--value", "yes")
    assert ": 3 of 5 people" in " ".join(told.split())
    assert "The prior is 60.0 %" in told


def test_linkage_of_the_survey() -> None:
    """Without files: the survey, raw and 10-anonymous."""
    told = run("linkage")
    for figure in ("61.9 %", "1,097", "2,260", "245"):
        assert figure in told


@pytest.mark.parametrize(
    "words",
    [
        ["linkage", "--keys", "age"],
        ["linkage", "RELEASE"],
        ["linkage", "RELEASE", "--keys", "age"],
        ["linkage", "RELEASE", "--keys", "aeg", "--sensitive", "ill"],
        ["linkage", "RELEASE", "--keys", "age", "--sensitive", "ill", "--value", "perhaps"],
        ["differencing", "--target", "id = 1"],
        ["differencing", "--plot", "picture.txt"],
        ["membership", "--mu", "0"],
        ["tour", "--out", "page.txt"],
    ],
)
def test_what_does_not_fit_is_refused(words: list[str], files: tuple[str, str]) -> None:
    """With a message, and no trace."""
    asked = [files[0] if word == "RELEASE" else word for word in words]
    done = CliRunner().invoke(main, ["attack", *asked])
    assert done.exit_code in (2, 4)
    assert "Error" in done.output


def test_differencing_of_the_survey(tmp_path: Path) -> None:
    """A few targets, exactly and at one ε; an honest release is not accused."""
    picture = tmp_path / "found.png"
    told = run("differencing", "--targets", "10", "--epsilon", "2", "--plot", str(picture))
    assert re.search(r"exact counts +100 %", told)
    assert re.search(r"counts at ε = 2 each .* 88.1 %", told)
    assert picture.is_file()


def test_differencing_of_a_policy(tmp_path: Path) -> None:
    """The policy's own ledger is charged for two answers, and one bounds the guess."""
    people = pl.DataFrame({"id": range(50), "ill": [i % 2 for i in range(50)]})
    people.write_parquet(tmp_path / "people.parquet")
    policy = tmp_path / "dither.toml"
    policy.write_text(
        f"""
[budget]
epsilon = 10
ledger = "{tmp_path / "people.ledger"}"

[tables.people]
source = "{tmp_path / "people.parquet"}"

[tables.people.columns]
id = {{ bounds = [0, 100] }}
ill = {{ bounds = [0, 1] }}
"""
    )
    asked = ["--policy", str(policy), "--target", "id = 7", "--secret", "ill = 1"]
    told = run("differencing", *asked, "--epsilon", "3")
    assert "95.3 %" in told
    assert "Charged: ε = 6" in told


def test_membership_of_a_sum() -> None:
    """One private sum, held against its curve; accused wrongly once in a million runs."""
    told = run("membership", "--mu", "1", "--confidence", "0.999999")
    assert re.search(r" 0\.761 .* 9\.3 % +consistent", told)


def test_synthetic_rows_of_files(tmp_path: Path) -> None:
    """The closest record: members of a copied table are found, with controls and a picture."""
    paths = [str(tmp_path / f"{name}.csv") for name in ("made", "real", "other")]
    table = pl.DataFrame({"age": range(200), "sex": ["f", "m"] * 100})
    for path, rows in zip(paths, (table[::2], table[::2], table[1::2]), strict=True):
        rows.write_csv(path)
    picture = tmp_path / "roc.png"
    told = run("synthetic", *paths, "--plot", str(picture))
    assert "closest record against made.csv" in told
    assert "area under the ROC curve   1.0000" in told
    assert picture.is_file()
    run("synthetic", paths[0], code=2)


@pytest.mark.heavy("test_synthetic_rows_of_files")
def test_synthetic_rows_of_the_survey(tmp_path: Path) -> None:
    """Copies and exact pairs give her away; private rows keep what they claim."""
    picture = tmp_path / "roc.png"
    asked = ("--records", "60", "--plays", "100", "--plot", str(picture))
    told = run("synthetic", *asked)
    copies, exact, private = (
        next(line for line in told.splitlines() if line.lstrip().startswith(name))
        for name in ("rows drawn", "exact pairs", "private")
    )
    assert float(copies.split()[3]) > 0.9
    assert float(exact.split()[2]) > 0.9
    assert "consistent" in private
    assert picture.is_file()


def test_membership_of_a_model(tmp_path: Path) -> None:
    """A small tree remembers."""
    pytest.importorskip("sklearn")
    picture = tmp_path / "roc.png"
    asked = ["--model", "tree", "--records", "300", "--shadows", "8", "--plot", str(picture)]
    assert "tree" in run("membership", *asked)
    assert picture.is_file()


@pytest.mark.parametrize(
    "way", [["--mondrian"], ["--hierarchy", "job=JOBS", "--hierarchy", "age=10"]]
)
def test_anonymising_and_linkage_are_one_pipe(way: list[str], tmp_path: Path) -> None:
    """What one writes to standard output the other reads, labels and codes included; the rows are
    in another order, which only the secret file undoes."""
    people, jobs, secret = (tmp_path / name for name in ("people.csv", "jobs.csv", "rows.csv"))
    names = ["nurse", "surgeon", "clerk", "cashier"]
    lines = [f"{20 + i % 30},{names[i % 4]},0{1000 + i}" for i in range(120)]
    people.write_text("age,job,zip\n" + "\n".join(lines) + "\n")
    jobs.write_text("nurse;care\nsurgeon;care\nclerk;office\ncashier;office\n")
    given = [text.replace("JOBS", str(jobs)) for text in way]
    command = ["anonymize", str(people), "--quasi", "age,job", "--k", "4", *given]
    made = CliRunner().invoke(main, [*command, "--out", "-", "--rows", str(secret)])
    assert made.exit_code == 0, made.output
    rows = made.stdout.splitlines()
    assert rows[0] == "age,job,zip"
    zips = [row.rsplit(",", 1)[1] for row in rows[1:]]
    assert sorted(zips) == [line.rsplit(",", 1)[1] for line in lines]
    assert zips != sorted(zips)
    told = CliRunner().invoke(
        main,
        ["attack", "linkage", "-", str(people), "--keys", "age,job", "--truth", str(secret)]
        + (["--covers", f"job={jobs}"] if "job" in str(way) else []),
        input=made.stdout,
    )
    assert told.exit_code == 0, told.output
    assert "Some row fits 120, exactly one row 0" in told.output
    assert "Guessed right" in told.output


@pytest.mark.parametrize(
    ("more", "said"),
    [
        (["--covers", "age=nowhere.csv"], "no such file"),
        (["--truth", "nowhere.csv"], "no file"),
        (["--truth", "RELEASE"], "dither anonymize --rows wrote"),
        (["--same-order", "--truth", "RELEASE"], "leave out --same-order"),
    ],
)
def test_what_cannot_be_read_is_named(files: tuple[str, str], more: list[str], said: str) -> None:
    """A wrong file is refused in one line."""
    release, public = files
    given = [text.replace("RELEASE", release) for text in more]
    assert said in run("linkage", release, public, "--keys", "age", *given, code=2)


def test_a_claim_of_files_is_judged_and_decides_the_exit_code(tmp_path: Path) -> None:
    """A copy breaks an epsilon of 1; nothing shows that it breaks 20; a claim is one."""
    paths = [str(tmp_path / f"{name}.csv") for name in ("made", "real", "other")]
    table = pl.DataFrame({"age": range(200), "sex": ["f", "m"] * 100})
    table = table.sample(fraction=1, shuffle=True, seed=1)
    for path, rows in zip(paths, (table[::2], table[::2], table[1::2]), strict=True):
        rows.write_csv(path)
    told = run("synthetic", *paths, "--epsilon", "1", "--delta", "1e-6", code=1)
    assert "VIOLATED" in told
    assert "promises nothing" not in told
    assert "CONSISTENT" in run("synthetic", *paths, "--epsilon", "20")
    for words in (["--epsilon", "1", "--epsilon", "2"], ["--delta", "1e-6"], ["--records", "60"]):
        assert "Error" in run("synthetic", *paths, *words, code=2)
    assert "--delta goes with files" in run("synthetic", "--delta", "1e-6", code=2)
