"""A machine restored from a snapshot: no two different questions get the same noise."""

from __future__ import annotations

import shutil
from itertools import repeat

import numpy as np
import pytest

import dither as dt
from dither.ledger import _chain as chain
from dither.ledger import _witness
from dither.numeric import _keystream as keystream
from query.query_data import policy, visits

pytestmark = pytest.mark.fresh

# Two questions with the same groups, the same sensitivity and so the same noise to draw.
ONE = "SELECT region, COUNT(*) AS n FROM visits GROUP BY region"
OTHER = "SELECT region, COUNT(*) AS n FROM visits WHERE smoker GROUP BY region"

# Limits that cut nobody, so that an answer less the truth is noise alone.
LOOSE = {"max_groups": 4, "max_rows": 50}


@pytest.fixture
def snapshot(monkeypatch):
    """Everything that the machine knows of the moment repeats itself, its randomness included."""
    monkeypatch.setattr(keystream.os, "urandom", lambda n: bytes(n))
    monkeypatch.setattr(keystream.time, "time_ns", lambda: 10**18)
    monkeypatch.setattr(keystream.time, "monotonic_ns", lambda: 10**12)
    monkeypatch.setattr(keystream, "_renewals", repeat(0))
    monkeypatch.setattr(chain, "dated", lambda _: "2026-11-22T09:00:00+00:00")


def noise_of(text, folder, ledger, frames):
    """What a release adds to the four true counts, asked on a copy of the ledger."""
    copy = folder / "again.ledger"
    shutil.copy(ledger, copy)
    # Nor does a machine that is restored remember what it saw in the ledger since.
    _witness._process.clear()
    made = policy(folder, budget={"ledger": str(copy)}, visits=LOOSE)
    where = "smoker" if text == OTHER else "pid IS NOT NULL"
    truth = visits().sql(f"SELECT region, COUNT(*) AS n FROM self WHERE {where} GROUP BY region")
    with dt.open(made, sources=frames) as session:
        found = session.sql(text).release("0.001", 0, token="t").frame
    joined = found.join(truth, on="region", suffix="_true").sort("region")
    copy.unlink()
    return (joined["n"] - joined["n_true"]).to_list()


@pytest.fixture
def begun(tmp_path, frames):
    """A ledger that was in use before the snapshot was made."""
    made = policy(tmp_path, visits=LOOSE)
    with dt.open(made, sources=frames) as session:
        session.sql(ONE).release("0.01")
    return tmp_path, tmp_path / "visits.ledger", frames


def test_the_same_question_repeats_its_noise_there(begun, snapshot):
    """The control: nothing is fresh, so the same question is answered alike."""
    assert noise_of(ONE, *begun) == noise_of(ONE, *begun)


def test_another_question_has_other_noise(begun, snapshot):
    """The hash of the entry differs with the question, and with it the key of the noise.

    Noise has a scale of thousands: four equal draws of independent noises are rarer than 1e-12.
    """
    assert noise_of(ONE, *begun) != noise_of(OTHER, *begun)


def test_without_the_entry_two_questions_would_share_their_noise(begun, snapshot, monkeypatch):
    """The bug that the test above must see: a key that does not know what is asked.

    Then the difference of two answers is exact, whatever their epsilon.
    """
    renew = keystream.SecureWords.renew
    monkeypatch.setattr(keystream.SecureWords, "renew", lambda self, *_: renew(self))
    assert np.array_equal(noise_of(ONE, *begun), noise_of(OTHER, *begun))
