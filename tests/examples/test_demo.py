"""The demo: the whole story, run once, and its parts."""

from __future__ import annotations

import json
import re
import warnings
from fractions import Fraction
from pathlib import Path

import polars as pl
import pytest
from click.testing import CliRunner, Result

import dither as dt
from dither.cli import main
from dither.errors import DitherError
from dither.examples.demo.attack import attack, best_odds
from dither.examples.demo.data import FACTS, MARK, fill, survey


@pytest.fixture(scope="module")
def told(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Result]:
    """The demo, run twice in one folder: the second run must not inherit the first one's ledger."""
    folder = tmp_path_factory.mktemp("demo") / "here"
    assert CliRunner().invoke(main, ["demo", "--dir", str(folder)]).exit_code == 0
    with warnings.catch_warnings():
        # One process sees two ledgers in one place, and says so.
        warnings.filterwarnings("ignore", ".*another ledger")
        return folder, CliRunner().invoke(main, ["demo", "--dir", str(folder)])


def test_the_whole_story_is_told(told: tuple[Path, Result]) -> None:
    """Every step is there, in order, and none fails."""
    _, found = told
    assert found.exit_code == 0, found.output
    heads = re.findall(r"(?m)^\d  ([A-Z].*)$", found.stdout)
    assert heads[:4] == [
        "The data",
        "What is public, and what may be spent",
        "Error bars before spending",
        "The answers, beside the truth",
    ]
    assert heads[-4:] == [
        "What was spent",
        "One question too many",
        "The attack that this stops",
        "Yours to try",
    ]
    assert "6,366" in found.stdout
    assert found.stderr == ""


def test_true_counts_are_whole_like_the_released_ones(told: tuple[Path, Result]) -> None:
    """However narrow the interval is beside which they stand."""
    assert re.search(r"(?m)^   2 poor +[\d,]+ ± \d+ +348 ", told[1].stdout), told[1].stdout


def test_the_refusal_says_what_would_fit(told: tuple[Path, Result]) -> None:
    """The budget is a wall, and the way round it is named."""
    text = " ".join(told[1].stdout.split())
    assert "Refused: account 'dataset:row of affairs' (one row of affairs, added or" in text
    assert "cannot bear this charge; nothing was spent." in text
    assert "The same query fits with epsilon = 0.7." in text


def test_the_attack_succeeds_on_exact_answers_alone(told: tuple[Path, Result]) -> None:
    """Her secret is the exact difference; the released one has a bound that is near a coin's."""
    text = " ".join(told[1].stdout.split())
    assert "her secret: 1, so she did" in text
    assert "right at most 55 times in 100" in text


def test_what_the_demo_leaves_behind_is_whole(told: tuple[Path, Result]) -> None:
    """Data, policy, answers, pictures, ledger and certificate are there and agree."""
    folder, _ = told
    assert pl.read_parquet(folder / "affairs.parquet").shape == (6366, 9)
    for name in ("marriages", "median", "ages", "preview"):
        assert (folder / f"{name}.png").read_bytes()[:4] == b"\x89PNG"
    assert pl.read_csv(folder / "marriages.csv").height == 5
    assert dt.verify(folder / "marriages.cert.json", folder / "demo.ledger").ok
    assert json.loads((folder / "marriages.cert.json").read_text())["ledger"]["entry"] == 2
    with dt.open(folder / "dither.toml") as session:
        (balance,) = session.balance()
        assert balance.spent.epsilon == Fraction("1.5")


def test_what_the_demo_suggests_can_be_typed(told: tuple[Path, Result]) -> None:
    """The commands at its end run as they are printed."""
    folder, found = told
    lines = found.stdout[found.stdout.index("Yours to try") :].replace("\\\n", " ").splitlines()
    typed = [line.split() for line in lines if line.strip().startswith("dither ")]
    assert len(typed) == 3
    asked = ["explain", "SELECT AVG(educ) AS educ FROM affairs", "--epsilon", "0.1"]
    again = CliRunner().invoke(main, [*asked, "--policy", str(folder / "dither.toml")])
    assert again.exit_code == 0, again.output


def test_another_folder_is_left_alone(tmp_path: Path) -> None:
    """A folder that holds something else is refused, and stays as it is."""
    (tmp_path / "demo.ledger").write_text("mine")
    found = CliRunner().invoke(main, ["demo", "--dir", str(tmp_path)])
    assert found.exit_code == 4
    assert "name an empty folder" in found.stderr
    assert [path.name for path in tmp_path.iterdir()] == ["demo.ledger"]


def test_the_filled_policy_covers_the_survey() -> None:
    """Every answer lies within the declared facts, so nothing is moved to a bound."""
    draft = "epsilon = 1\ndelta = 0\nledger = 'x'\n" + "".join(f"{name} = {{}}\n" for name in FACTS)
    text = fill(draft)
    assert text.startswith(MARK)
    rows = survey()
    assert set(rows.columns) == set(FACTS)
    import tomllib

    for name, facts in tomllib.loads(text).items():
        if name not in FACTS:
            continue
        ends = facts.get("bounds") or (min(facts["values"]), max(facts["values"]))
        assert ends[0] <= rows[name].min() <= rows[name].max() <= ends[1], name


def test_the_attack_needs_one_woman_with_a_secret(tmp_path: Path) -> None:
    """The condition fits her alone, and the two exact counts differ by her."""
    rows = survey()
    policy = {
        "budget": {"epsilon": 1, "ledger": str(tmp_path / "a.ledger")},
        "tables": {"affairs": {"columns": {"affairs": {"bounds": [0, 60]}}}},
    }
    with dt.open(policy, sources={"affairs": rows}) as session:
        found = attack(session, rows, Fraction(1, 10))
    assert rows.sql(f"SELECT * FROM self WHERE {found.her}").height == 1
    assert found.exact[0] - found.exact[1] == 1
    assert found.epsilon == Fraction(1, 5)
    assert found.difference[1] > 10


def test_the_best_odds_are_a_coin_at_no_cost_and_certain_at_any() -> None:
    """The bound rises from one half to one, and delta adds to it."""
    assert best_odds(Fraction(0)) == 0.5
    assert best_odds(Fraction(1)) < best_odds(Fraction(1), Fraction(1, 100)) < 1
    assert best_odds(Fraction(40)) == pytest.approx(1)


def test_without_the_survey_the_fix_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    """The extra is named, so that the fix can be pasted."""
    import sys

    monkeypatch.setitem(sys.modules, "statsmodels.datasets", None)
    with pytest.raises(DitherError, match=r"pip install 'dither\[demo\]'"):
        survey()
