"""The command ``dither audit``: a user's function, all mechanisms, planted bugs, refusals."""

import re
import subprocess
import sys

import pytest
from click.testing import CliRunner

from dither._subjects import Subject
from dither.cli import audit_command, main
from dither.examples import planted
from dither.lab import audit as auditing

pytestmark = pytest.mark.extras

MINE = """
from dither.numeric import SimulatedWords
from dither.noise import discrete_laplace
from fractions import Fraction

WORDS = SimulatedWords(1)
ROWS = [1, 2, 3]

def count(rows, size):
    return len(rows) + discrete_laplace(Fraction(1), size, words=WORDS)

def careless(rows):
    return len(rows) + int(discrete_laplace(Fraction(1, 3), 1, words=WORDS)[0])

def broken(rows):
    raise KeyError("Ann")

def total(rows, size):
    return 10 * len(rows) + discrete_laplace(Fraction(50), size, words=WORDS)

def between(outputs):
    return outputs.clip(0, 100)

def response(value, size):
    told = WORDS.words(size) % 10 < 8
    return [value if one else (value + 1) % 4 for one in told]

def itself(outputs, value):
    return [1.0 * (one == value) for one in outputs]
"""


@pytest.fixture
def run(tmp_path, monkeypatch):
    """Run ``dither audit`` in a folder that holds the user's module."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / "audited_by_test.py").write_text(MINE)
    return lambda *arguments: CliRunner().invoke(main, ["audit", *arguments])


def test_own_function(run, tmp_path):
    """A true claim leaves with 0 and a false one with 1; data are JSON or a name."""
    right = run(
        "audited_by_test:count", "--d0", "[1, 2]", "--d1", "audited_by_test:ROWS",
        "--samples", "5000", "--confidence", "0.999999", "--plot", "audit.png",
    )  # fmt: skip
    assert right.exit_code == 0, right.output
    assert "NOT REFUTED: claimed ε = 1" in right.output
    assert (tmp_path / "audit.png").stat().st_size > 5_000
    wrong = run(
        "audited_by_test.py:careless", "--d0", "[]", "--d1", "[1]", "--samples", "2000",
    )  # fmt: skip
    assert wrong.exit_code == 1
    assert "VIOLATED" in wrong.output


def test_scores_and_distances(run):
    """Ten people apart, by what the user looks at: a fifth too much is seen, and the truth not."""
    line = (
        "audited_by_test:total", "--d0", "[]", "--d1", "[1, 2, 3, 4, 5, 6, 7, 8, 9, 10]",
        "--distance", "10", "--score", "audited_by_test:between", "--samples", "10000",
    )  # fmt: skip
    wrong = run(*line, "--epsilon", "1/6")
    assert wrong.exit_code == 1, wrong.output
    assert "the given score" in wrong.output
    assert "10 neighbours apart" in wrong.output
    assert run(*line, "--epsilon", "1/5", "--confidence", "0.999999").exit_code == 0
    assert run(*line[:-4], "--score", "audited_by_test:ROWS").exit_code == 2


@pytest.mark.heavy("test_a_violation_among_all_is_told")
def test_planted_bugs_in_a_table(run, monkeypatch):
    """Every planted bug is a line, all are caught, and that is a success."""
    bugs = planted.planted_bugs
    words = planted.SimulatedWords(3)
    monkeypatch.setattr(planted, "planted_bugs", lambda: bugs(words))
    result = run("--planted", "--samples", "30000")
    assert result.exit_code == 0, result.output
    assert "9 of 9 violated" in result.output
    assert "violated, reuse" in result.output
    missed = run("--planted", "--samples", "250")
    assert missed.exit_code == 1


@pytest.mark.heavy("each is audited with its mechanism; the command has the tests below")
def test_every_mechanism(run):
    """A short audit of all: none is accused. At this confidence it errs once in 150,000 runs."""
    result = run("--all", "--samples", "600", "--confidence", "0.9999999")
    # A key near the threshold is shown once in 190 calls: among so few, perhaps never.
    idle = re.findall(r"^(.*) inconclusive +[\d.]+$", result.output, re.M)
    assert all(line.startswith("key threshold") for line in idle), result.output
    assert result.exit_code == (3 if idle else 0), result.output
    assert re.search(r"^0 of [4-9]\d violated|^0 of 1\d\d violated", result.output, re.M)
    assert "quantile tree" in result.output
    assert "Not refuted is not verified" in result.output


def test_a_violation_among_all_is_told(run, monkeypatch):
    """One mechanism that breaks its claim makes the exit code 1."""
    bug = planted.planted_bugs(planted.SimulatedWords(4))[0]
    monkeypatch.setattr(audit_command, "_subjects", lambda planted: iter([bug]))
    result = run("--all", "--samples", "5000")
    assert result.exit_code == 1
    assert "1 of 1 violated" in result.output


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        ((), "one of them"),
        (("--all", "--planted"), "one of them"),
        (("--all", "--d0", "1"), "goes with MODULE:FUNCTION"),
        (("--all", "--distance", "2"), "--distance goes with MODULE:FUNCTION"),
        (("--planted", "--epsilon", "3"), "--epsilon goes with MODULE:FUNCTION"),
        (("--all", "--delta", "0", "--mu", "1"), "--delta, --mu go with MODULE:FUNCTION"),
        (("audited_by_test:count", "--mu", "1", "--epsilon", "1"), "not with --mu"),
        (("audited_by_test:count", "--plot", "x.foo"), "--plot must end in"),
        (("--all", "--samples", "0"), "is not in the range x>=1"),
        (("--all", "--time-limit", "-1"), "is not in the range x>=0"),
        (("audited_by_test:count",), "give both --d0 and --d1"),
        (("audited_by_test:cuont", "--d0", "1", "--d1", "2"), "did you mean 'count'"),
        (("audited_by_test:ROWS", "--d0", "1", "--d1", "2"), "is not a function"),
        (("nowhere:count", "--d0", "1", "--d1", "2"), "no module nowhere"),
        (("count", "--d0", "1", "--d1", "2"), "must be MODULE:NAME"),
        (("audited_by_test:count", "--d0", "[1", "--d1", "2"), "--d0 must be JSON"),
        (("audited_by_test:count", "--d0", "1", "--d1", "2", "--epsilon", "-1"), "at least 0"),
    ],
)
def test_wrong_lines(run, arguments, words):
    """A wrong line says what is wrong and leaves with 2."""
    result = run(*arguments)
    assert result.exit_code == 2
    assert words in result.output


def test_refusals_hold_no_data(run):
    """Too few samples is a refusal; a mechanism that always fails says its type alone."""
    few = run("audited_by_test:count", "--d0", "[]", "--d1", "[1]", "--samples", "100")
    assert few.exit_code == 4
    assert "100 samples are too few for any verdict" in few.output
    assert run("--all", "--samples", "3").exit_code == 4
    failed = run("audited_by_test:broken", "--d0", "[]", "--d1", "[1]", "--samples", "1000")
    assert failed.exit_code == 3
    assert "INCONCLUSIVE" in failed.output
    assert "KeyError" in failed.output
    assert "Ann" not in failed.output


def test_equal_data_are_not_green(run):
    """One dataset twice leaves with a code of its own, alone and among all."""
    same = run("audited_by_test:count", "--d0", "[1, 2, 3]", "--d1", "audited_by_test:ROWS")
    assert same.exit_code == 3
    assert "d0 and d1 are the same" in same.output


def test_a_catalogue_that_fails_is_not_green(run, monkeypatch):
    """A mechanism of which every call fails is counted, and the exit code is not 0."""

    def broken(data):
        raise RuntimeError

    subject = Subject("broken", broken, 0, 1)
    monkeypatch.setattr(audit_command, "_subjects", lambda planted: iter([subject]))
    result = run("--all", "--samples", "1000")
    assert result.exit_code == 3
    assert "1 inconclusive" in result.output


def test_stopping_keeps_the_table(run, monkeypatch):
    """Ctrl-C prints what was found, and leaves with 1."""
    audit = auditing.audit
    turns = iter(range(9))

    def twice(*arguments, **options):
        if next(turns) == 2:
            raise KeyboardInterrupt
        return audit(*arguments, **options)

    monkeypatch.setattr(auditing, "audit", twice)
    result = run("--all", "--samples", "500", "--confidence", "0.9999999")
    assert result.exit_code == 1
    assert "0 of 2 violated" in result.output
    assert "Stopped early" in result.output


ENDING = """
import sys, random

def on_ann(rows):
    if len(rows) == 2:
        sys.exit(0)
    return random.random()

def always(rows):
    sys.exit(0)

def sampler(rows, size):
    sys.exit(0)
"""


@pytest.mark.parametrize(("name", "code"), [("on_ann", 1), ("always", 3), ("sampler", 4)])
def test_the_data_do_not_choose_the_exit_code(run, tmp_path, name, code):
    """A mechanism that leaves with 0 does not make the gate green."""
    (tmp_path / "ending_by_test.py").write_text(ENDING)
    result = run(
        f"ending_by_test:{name}", "--d0", "[1, 2]", "--d1", "[1, 2, 3]", "--samples", "500"
    )
    assert result.exit_code == code
    assert result.output


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("import sys\nsys.exit(0)", "ends the program when it is imported"),
        ("def __getattr__(name):\n    raise SystemExit(0)", "unexpected SystemExit"),
        ("class E(BaseException): pass\nraise E('Ann')", "unexpected E"),
    ],
)
def test_modules_that_end_the_program(run, tmp_path, monkeypatch, text, words):
    """A script that exits when it is imported is refused, and so is what ends otherwise."""
    (tmp_path / "script_by_test.py").write_text(text)
    monkeypatch.delitem(sys.modules, "script_by_test", raising=False)
    result = run("script_by_test:count", "--d0", "[1]", "--d1", "[2]")
    assert result.exit_code in (2, 4, 9)
    assert words in result.output
    assert "Ann" not in result.output


ENDS = """
import os, random, signal, sys

def quits(rows):
    return os._exit(0) if len(rows) > 2 else random.random()

def execs(rows):
    return os.execv(sys.executable, [sys.executable, "-c", ""])

def kills(rows):
    os.kill(os.getpid(), signal.SIGKILL)

calls = 0

def interrupted(rows):
    global calls
    calls += 1
    if calls == 20_000:  # once, and after some were drawn of both: else nothing is judged
        os.kill(os.getppid(), signal.SIGINT)
    return random.random() < 0.3
"""


def as_process(folder, name):
    """Run ``dither audit`` on one of ``ENDS`` in a process of its own."""
    (folder / "ends.py").write_text(ENDS)
    asked = (sys.executable, "-m", "dither.cli", "audit", f"ends.py:{name}")
    options = ("--d0", "[1, 2]", "--d1", "[1, 2, 3]", "--samples", "400000")
    return subprocess.run(
        [*asked, *options], cwd=folder, capture_output=True, text=True, timeout=120, check=False
    )


@pytest.mark.parametrize(
    ("name", "how"),
    [
        ("quits", "with exit code 0"),
        ("execs", "with exit code 0"),
        ("kills", "by signal SIGKILL"),
    ],
)
def test_a_function_that_ends_its_process_is_no_success(tmp_path, name, how):
    """The exit code is never the function's, and what happened is said."""
    found = as_process(tmp_path, name)
    assert (found.returncode, found.stdout) == (3, "")
    assert f"ends.py:{name} ended the process {how}" in found.stderr


@pytest.mark.usefixtures("hears_interrupts")
def test_an_interrupt_reaches_the_function(tmp_path):
    """What was drawn is judged, though it is drawn in a process of its own."""
    found = as_process(tmp_path, "interrupted")
    assert found.returncode == 0, found.stderr
    assert "sampling was stopped before 400,000" in " ".join(found.stdout.lower().split())


def test_a_channel_over_all_of_its_inputs(run):
    """A false claim leaves with 1; two datasets go with no inputs, and a weak claim is refused."""
    common = ("audited_by_test:response", "--inputs", "[0, 1, 2, 3]", "--samples", "6000")
    for more in ((), ("--score", "audited_by_test:itself")):
        wrong = run(*common, *more)
        assert wrong.exit_code == 1, wrong.output
        assert "VIOLATED: claimed ε = 1, of any two inputs" in wrong.output
    assert run(*common, "--d0", "1").exit_code == 2
    few = run(*common, "--epsilon", "8.5")
    assert few.exit_code == 4
    assert "too few for any verdict" in few.output
