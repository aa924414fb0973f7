"""Noise in tests: the same in every run, and the system's where a test asks for that."""

from __future__ import annotations

import os
import random
import secrets
from types import SimpleNamespace

import numpy as np
import pytest

from dither.mechanisms import DiscreteLaplace
from dither.noise import discrete_laplace_one
from dither.numeric import secure_words
from repeatable import FRESH, pytest_fixture_setup, repeatable


def drawn() -> list[object]:
    """Of everything that a release may draw from."""
    noise = DiscreteLaplace(scale=10**6)
    return [
        secure_words().words(3).tolist(),
        noise.draw(4).tolist(),
        [discrete_laplace_one(10**6) for _ in range(3)],
        secrets.token_hex(8),
        os.urandom(5),
        random.random(),
        np.random.default_rng().random(),
    ]


def test_one_name_is_one_stream() -> None:
    """The same draws again under the same name, others under another, and others as they go on."""
    found = []
    for name in ("a", "b", "a"):
        with repeatable(name):
            found.append([*drawn(), *drawn()])
    assert found[0] == found[2]
    assert all(x != y for x, y in zip(found[0], found[1], strict=True))
    assert all(x != y for x, y in zip(found[0][:7], found[0][7:], strict=True))


@pytest.mark.fresh
def test_the_system_is_back_afterwards() -> None:
    """What a test that asks for it draws is not what it drew under a name."""
    with repeatable("a"):
        before = drawn()
    assert all(x != y for x, y in zip(before, drawn(), strict=True))


def forked() -> bytes:
    """Words of a forked child."""
    reading, writing = os.pipe()
    child = os.fork()
    if child == 0:
        os.write(writing, secure_words().words(2).tobytes())
        os._exit(0)
    os.close(writing)
    found = os.read(reading, 100)
    os.close(reading)
    os.waitpid(child, 0)
    return found


@pytest.mark.skipif(not hasattr(os, "fork"), reason="needs fork")
def test_each_forked_child_has_a_stream_of_its_own() -> None:
    """It serves none that its parent serves, nor another child; and the same ones again."""
    found = []
    for _ in range(2):
        with repeatable("a"):
            found.append((forked(), forked(), secure_words().words(2).tobytes()))
    assert found[0] == found[1]
    assert len(set(found[0])) == 3


@pytest.mark.skipif(FRESH, reason="everything is drawn from the system")
def test_a_shared_fixture_that_is_made_twice_draws_other_words() -> None:
    """Else two ledgers had one name, and each would lack what the other was charged."""
    fixture = SimpleNamespace(scope="module", argname="of_this_test")
    request = SimpleNamespace(node=SimpleNamespace(nodeid="here"), param_index=0)
    found = []
    for _ in range(2):
        making = pytest_fixture_setup(fixture, request)  # type: ignore[arg-type]
        next(making)
        found.append(secure_words().words(2).tobytes())
        with pytest.raises(StopIteration):
            next(making)
    with repeatable("here of_this_test 0"):
        assert secure_words().words(2).tobytes() == found[0]
    assert found[0] != found[1]


@pytest.mark.skipif(FRESH, reason="everything is drawn from the system")
def test_this_test_is_repeatable() -> None:
    """The hook is there: these are the words of this name, in every run."""
    assert secure_words().words(1).tolist() == [WORD]


WORD = 7282473884051308335
