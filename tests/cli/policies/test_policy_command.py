"""The sheet for participants: a policy's own numbers, in words that people read."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from dither.cli import main

POLICY = """
[tables.visits]
source = "nothing-is-read.parquet"
unit = "person"
max_groups = 2
max_rows = 3
block = {{ column = "day", every = "month" }}

[budget]
epsilon = {epsilon}
per = "block"
lifetime = {{ epsilon = 4 }}
ledger = "none.ledger"
"""


@pytest.fixture
def policy(tmp_path: Path) -> Path:
    """Half an epsilon a month."""
    path = tmp_path / "clinic.toml"
    path.write_text(POLICY.format(epsilon=0.5), encoding="utf-8")
    return path


def sheet(*arguments: object) -> Result:
    """What the command does."""
    return CliRunner().invoke(main, ["policy", "sheet", *map(str, arguments)])


def syllables(word: str) -> int:
    """About as many as are spoken."""
    groups = len(re.findall(r"[aeiouy]+", word.lower()))
    return max(1, groups - (word.lower().endswith("e") and not word.lower().endswith("le")))


def reading_ease(text: str) -> float:
    """Flesch's measure: 60 and more is plain English."""
    sentences = [s for s in re.split(r"[.!?:\n]+", text) if s.strip()]
    found = re.findall(r"[A-Za-z]+", text)
    spoken = sum(map(syllables, found))
    return 206.835 - 1.015 * len(found) / len(sentences) - 84.6 * spoken / len(found)


def test_the_sheet_says_the_policys_own_numbers(policy: Path) -> None:
    """63 of 100 for half an epsilon, and as for twice that which of two answers it was."""
    found = sheet(policy)
    assert found.exit_code == 0, found.output
    assert "From 1 of your months: " in found.output
    assert "in the data at all at most 63 times" in found.output
    assert "which of two answers you gave at most 74 times" in found.output
    assert "clinic" in found.output
    assert list(policy.parent.iterdir()) == [policy]


def test_english_is_plain_and_chinese_sentences_are_short(policy: Path) -> None:
    """As plain as a newspaper; no sentence of more than forty characters."""
    assert reading_ease(re.sub(r"[\d_#*-]+", "", sheet(policy).output)) >= 65
    chinese = sheet(policy, "--language", "zh").output
    assert "您的回答会怎样" in chinese
    assert max(len(one) for one in re.split(r"[。！？：；\n]", chinese)) <= 45


@pytest.mark.parametrize("language", ["en", "zh"])
def test_it_promises_no_more_than_the_limits(policy: Path, language: str) -> None:
    """Where the limits are weak, too: no certainty, averages, and who reads the data."""
    policy.write_text(
        POLICY.format(epsilon=20).replace("epsilon = 4", "epsilon = 40"), encoding="utf-8"
    )
    said = sheet(policy, "--language", language).output
    never = {"en": "nobody can tell", "zh": "谁也无法从这些数字看出"}
    assert never[language] not in said
    for held in {
        "en": ("nobody can be sure", "These are averages", "can read them"),
        "zh": ("谁也不能肯定", "平均次数", "保管数据的人能看到数据"),
    }[language]:
        assert held in said


def test_names_stay_text(policy: Path) -> None:
    """Whatever a policy, or who hands it out, is called."""
    hostile = "<script>*x*</script>"
    printed = sheet(policy, "--name", hostile).output
    assert r"\<script\>\*x\*\</script\>" in printed
    out = policy.with_suffix(".html")
    assert sheet(policy, "--name", hostile, "--out", out).exit_code == 0
    page = out.read_text(encoding="utf-8")
    assert "<script" not in page
    assert "&lt;script&gt;*x*" in page
    assert page.count("<ul>") == page.count("</ul>") == 2


def test_what_cannot_be_is_refused(policy: Path) -> None:
    """By name, with nothing written."""
    assert "--out" in sheet(policy, "--out", policy.with_suffix(".pdf")).output
    assert sheet(policy, "--language", "fr").exit_code == 2
    assert "budget" in sheet(_without_budget(policy)).output
    assert not policy.with_suffix(".pdf").exists()


def _without_budget(policy: Path) -> Path:
    bad = policy.with_name("bad.toml")
    bad.write_text(policy.read_text(encoding="utf-8").partition("[budget]")[0], encoding="utf-8")
    return bad


def test_it_needs_no_service(policy: Path) -> None:
    """The words stand in the page's room, whose web needs an extra."""
    script = (
        "import sys\n"
        "for name in ('starlette', 'jinja2', 'uvicorn', 'httpx'): sys.modules[name] = None\n"
        f"from dither.cli import main\nmain(['policy', 'sheet', {str(policy)!r}])"
    )
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    assert "63 times" in done.stdout
