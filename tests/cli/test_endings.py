"""Each kind of end has an exit code of its own, and errors are JSON where JSON is asked for."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest
from click.shell_completion import BashComplete, FishComplete, ZshComplete

import dither.errors
from dither.cli import _endings, main
from dither.errors import DitherError

COUNT = "SELECT COUNT(*) AS n FROM visits"
ANA = ("--analyst", "ana")


def ask(epsilon: str, *more: str) -> tuple[str, ...]:
    """A release."""
    return ("release", COUNT, *ANA, "--epsilon", epsilon, *more)


def promised(folder: Path) -> tuple[str, ...]:
    """A ledger that protects others than the policy says."""
    text = (folder / "dither.toml").read_text()
    (folder / "other.toml").write_text(
        text.replace("[budget]", '[budget]\nneighbours = "replace_one"')
    )
    return ask("0.1", "--policy", "other.toml")


LINES = {
    "a wrong option": (("release", COUNT, "--epsilom", "1"), 2, "UsageError"),
    "no such command": (("relese", COUNT), 2, "UsageError"),
    "a typo in SQL": (("explain", "SELECT COUNT(*) FROM visit", *ANA), 4, "UnknownNameError"),
    "no such policy": (("explain", COUNT, "--policy", "no.toml"), 4, "PolicyError"),
    "a wrong analyst": (("explain", COUNT, "--analyst", "anna"), 4, "PolicyError"),
    "a wrong argument": (("explain", COUNT), 4, "ArgumentError"),
    "a budget that is spent": (ask("0.75"), 5, "BudgetError"),
    "no such ledger": (("ledger", "show", "no.ledger"), 7, "LedgerError"),
    "no such certificate": (("verify", "no.json"), 1, "CertificateError"),
}


@pytest.mark.parametrize("case", LINES)
def test_codes_tell_ends_apart(run, case: str) -> None:
    """With and without JSON: one code, one message, and nothing on standard output."""
    line, code, kind = LINES[case]
    plain = run(*line)
    assert (plain.exit_code, plain.stdout) == (code, "")
    assert plain.stderr.strip()
    shown = [run("--json", *line)]
    if case != "no such certificate":
        shown.append(run(*line, "--json"))
    for found in shown:
        assert (found.exit_code, found.stdout) == (code, "")
        body = json.loads(found.stderr.splitlines()[-1])["error"]
        assert body["code"] == code
        assert body["kind"] == kind
        assert body["message"].split()[:3] == plain.stderr.partition("Error: ")[2].split()[:3]


def test_other_promises_and_failures_have_codes(run, folder: Path, monkeypatch) -> None:
    """A promise of another kind, an engine that fails after the charge, and the unexpected."""
    assert run(*ask("0.1")).exit_code == 0
    assert run(*promised(folder), "--json").exit_code == 6

    def fails(*_: object, **__: object) -> None:
        raise KeyError("Jane Doe, 42")

    monkeypatch.setattr("dither.engines.duckdb.engine.DuckDBEngine.run", fails)
    found = run(*ask("0.1", "--json"))
    assert found.exit_code == 8
    assert "what was charged stays charged" in json.loads(found.stderr)["error"]["message"]
    monkeypatch.setattr("dither.session._session.read_policy", fails)
    monkeypatch.delenv("DITHER_TRACE", raising=False)
    found = run(*ask("0.1", "--json"))
    assert found.exit_code == 9
    assert json.loads(found.stderr)["error"]["kind"] == "KeyError"
    assert "Jane" not in found.stderr


def test_an_interrupt_has_its_code(run, monkeypatch) -> None:
    """Ctrl-C is no answer: not that of a check which does not hold."""

    def interrupted(*_: object, **__: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr("dither.session._session.read_policy", interrupted)
    found = run("explain", COUNT, "--json")
    assert found.exit_code == 130
    assert json.loads(found.stderr)["error"]["kind"] == "KeyboardInterrupt"


def test_a_ledger_that_lost_an_entry_is_told_by_its_code(run, folder: Path) -> None:
    """What is checked and does not hold is an answer (1); what cannot be used is none (7)."""
    assert run(*ask("0.1")).exit_code == 0
    (folder / "visits.ledger").write_bytes(b"nothing of the kind")
    assert run("ledger", "verify", "visits.ledger").exit_code == 1
    assert run("ledger", "show", "visits.ledger").exit_code == 7
    assert run(*ask("0.1")).exit_code == 7


def test_every_error_has_a_code() -> None:
    """None of dither's is taken for success, for a wrong command line or for the unexpected."""
    kinds = [k for k in vars(dither.errors).values() if isinstance(k, type)]
    codes = {
        kind.__name__: _endings.code_of(kind("x"))
        for kind in kinds
        if issubclass(kind, DitherError)
    }
    assert set(codes.values()) == {1, 4, 5, 6, 7, 8}
    documented = {
        line.split()[0] for line in str(_endings.__doc__).splitlines() if line[:1].isdigit()
    }
    assert {str(code) for code in codes.values()} | {"0", "2", "3", "9", "130"} == documented


def test_json_after_two_dashes_is_an_argument() -> None:
    """What follows ``--`` is no option."""
    assert _endings.wants_json(["release", "--json"])
    assert not _endings.wants_json(["release", "--", "--json"])


def test_warnings_are_sentences(run, monkeypatch) -> None:
    """On standard error, without the line of a program."""
    import warnings

    def warns(*_: object, **__: object) -> None:
        warnings.warn("the ledger is doubtful", stacklevel=1)

    warnings.simplefilter("default")
    monkeypatch.setattr("dither.session._session.check_sources", warns)
    found = run("explain", COUNT, *ANA)
    assert found.exit_code == 0
    assert "Warning: the ledger is doubtful\n" in found.stderr
    assert ".py" not in found.stderr


@pytest.mark.parametrize("shell", [BashComplete, ZshComplete, FishComplete])
def test_shells_complete_commands(shell: type) -> None:
    """Commands, those below them, and options, as the docs say."""
    completer = shell(main, {}, "dither", "_DITHER_COMPLETE")
    assert "_DITHER_COMPLETE" in completer.source()
    for before, begun, wanted in (
        ([], "rel", "release"),
        (["ledger"], "v", "verify"),
        (["release"], "--ana", "--analyst"),
    ):
        assert wanted in [item.value for item in completer.get_completions(before, begun)]


def test_bash_completes_what_the_docs_install(tmp_path: Path) -> None:
    """The script that the program prints, sourced by a real bash, with the words of a line."""
    if sys.platform == "win32":
        pytest.skip("there is no bash")
    program = tmp_path / "dither"
    program.write_text(f'#!/bin/sh\nexec {sys.executable} -m dither.cli "$@"\n')
    program.chmod(0o755)
    script = """
        eval "$(_DITHER_COMPLETE=bash_source dither)"
        COMP_WORDS=(dither rel); COMP_CWORD=1
        _dither_completion dither
        echo "${COMPREPLY[@]}"
    """
    path = f"{tmp_path}:/usr/bin:/bin"
    done = subprocess.run(
        ["bash", "-c", script], capture_output=True, text=True, timeout=60, env={"PATH": path}
    )
    assert done.stdout.split() == ["release"], done.stderr
