"""A synthesis that is killed stays charged, and leaves nothing of itself."""

from __future__ import annotations

import os
import subprocess
import sys
from fractions import Fraction
from pathlib import Path

import pytest

import dither as dt
from crash.synth_worker import COST, opened
from dither.errors import LedgerError

pytestmark = pytest.mark.skipif(os.name != "posix", reason="needs POSIX processes")
WORKER = Path(__file__).with_name("synth_worker.py")


def spent(folder: Path) -> Fraction:
    """What the account has been charged, added up."""
    with opened(folder) as session:
        return session.balance()[0].spent.epsilon


def killed(folder: Path, token: str, after: int) -> bool:
    """Kill a synthesis after so many words of its progress; whether it was not done yet."""
    command = [sys.executable, str(WORKER), str(folder), token]
    with subprocess.Popen(command, stdout=subprocess.PIPE) as child:
        assert child.stdout is not None
        heard = child.stdout.read(after)
        child.kill()
        heard += child.stdout.read()
    assert heard.startswith(b".")
    return b"!" not in heard


@pytest.mark.parametrize("after", [1, 4])
def test_what_is_cut_off_is_charged_and_gives_nothing(tmp_path: Path, after: int) -> None:
    """The charge stands, there is no file, and its token has no answer to give again."""
    assert killed(tmp_path, "first", after)
    assert spent(tmp_path) == COST
    assert not list(tmp_path.glob("*.model*"))
    with opened(tmp_path) as session:
        people = session.table("people")
        with pytest.raises(LedgerError):
            people.synthesize(COST, "1e-6", token="first")
        again = people.synthesize(COST, "1e-6", token="second")
        assert not again.replayed
        again.save(tmp_path / "second.model")
    assert spent(tmp_path) == 2 * COST
    found = dt.synth.load(tmp_path / "second.model")
    assert found.sample(10, seed=1).equals(again.sample(10, seed=1))
