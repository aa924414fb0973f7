"""The commands as processes: start-up, exit codes, and output in a pipe and on a terminal."""

from __future__ import annotations

import os
import pty
import re
import subprocess
import sys
from pathlib import Path

import pytest

DITHER = (sys.executable, "-m", "dither.cli")
COUNT = "SELECT region, COUNT(*) AS n FROM visits GROUP BY region"


def run(*arguments: str) -> subprocess.CompletedProcess[str]:
    """Run the command with its output in pipes."""
    return subprocess.run(
        [*DITHER, *arguments], capture_output=True, text=True, timeout=120, check=False
    )


@pytest.mark.heavy("each command is run by its own tests, in their process")
def test_each_command_ends_as_it_says(folder: Path) -> None:
    """One process a command, from the draft to the check of the certificate."""
    assert run("init", "visits.parquet", "--out", "draft.toml").returncode == 0
    assert run("explain", COUNT, "--analyst", "ana").returncode == 0
    assert run("preview", COUNT, "--analyst", "ana", "--epsilon", "0.1").returncode == 0
    asked = ("release", COUNT, "--analyst", "ana", "--epsilon", "0.5")
    found = run(*asked, "--certificate", "c.json")
    assert (found.returncode, found.stderr) == (0, "wrote c.json\n")
    assert "\x1b" not in found.stdout, "a pipe gets no colour"
    assert all(line == line.rstrip() for line in found.stdout.splitlines() if "─" not in line)
    refused = run(*asked)
    assert (refused.returncode, refused.stdout) == (5, "")
    assert refused.stderr.startswith("Error: ")
    assert run("verify", "c.json").returncode == 0
    assert run("ledger", "verify").returncode == 0
    assert run("releases").returncode == 2


def test_help_loads_nothing_heavy() -> None:
    """--help is instant, because it imports no engine, no frame and no picture."""
    code = (
        "import sys\nfrom dither.cli import main\n"
        "main(['release', '--help'], standalone_mode=False)\n"
        "heavy = {'duckdb', 'polars', 'pyarrow', 'sqlalchemy', 'sqlglot', 'mpmath', 'numpy',\n"
        "         'matplotlib', 'rich', 'pandas', 'statsmodels'} & set(sys.modules)\n"
        "sys.exit(', '.join(sorted(heavy)) or 0)"
    )
    found = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=60)
    assert found.returncode == 0, found.stderr


@pytest.mark.parametrize("command", ["explain", "release"])
def test_a_terminal_of_80_columns_is_kept(folder: Path, command: str) -> None:
    """On a terminal no line is wider than the window."""
    asked = [*DITHER, command, COUNT, "--analyst", "ana", "--epsilon", "0.1"]
    environment = {**os.environ, "COLUMNS": "80", "TERM": "xterm-256color", "NO_COLOR": "1"}
    leader, follower = pty.openpty()
    with subprocess.Popen(asked, stdout=follower, stderr=follower, env=environment) as process:
        os.close(follower)
        text = b""
        while True:
            try:
                read = os.read(leader, 65536)
            except OSError:
                break
            if not read:
                break
            text += read
    os.close(leader)
    assert process.returncode == 0, text
    plain = re.sub(r"\x1b\[[0-9;]*m", "", text.decode()).splitlines()
    assert len(plain) > 4
    assert max(map(len, plain)) <= 80
