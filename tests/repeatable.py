"""Every test draws the same noise in every run, so that none fails by chance.

While a test runs, what its process takes from the system comes from a stream that is seeded by
the test's name: secure words, ``os.urandom``, tokens of `secrets`, unseeded generators of numpy. A
fixture that outlives its test has a stream of its own, so that no order of the tests changes it.
The code that is tested is the same; only its words are repeatable.

Other processes draw from the system, forked children included. So do tests that are marked
``fresh``, which are about those words themselves, and all tests where DITHER_FRESH is set: that is
how chances of failing are measured, and how hypothesis looks at examples it has not seen.
"""

from __future__ import annotations

import hashlib
import os
import random
from collections.abc import Generator, Iterator
from contextlib import contextmanager
from typing import Any

import pytest

from dither.numeric import SecureWords, SimulatedWords

FRESH = "DITHER_FRESH" in os.environ
"""Whether everything is drawn from the system, and hypothesis makes new examples in each run."""

_words, _urandom = SecureWords.words, os.urandom


@contextmanager
def repeatable(name: str) -> Iterator[None]:
    """What this process takes from the system is a stream that the name seeds."""
    seed = hashlib.blake2b(name.encode(), digest_size=8).digest()
    source, home, epoch = SimulatedWords(int.from_bytes(seed)), os.getpid(), object()

    def words(self: SecureWords, n: int) -> Any:
        return source.words(n) if os.getpid() == home else _words(self, n)

    def urandom(n: int) -> bytes:
        if os.getpid() != home:
            return _urandom(n)
        return bytes(source.words(-(-n // 8)).tobytes()[:n])

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(SecureWords, "words", words)
        # A new key each second would empty stocks of drawn values when the machine is slow.
        patch.setattr(SecureWords, "epoch", lambda self: epoch)
        patch.setattr(os, "urandom", urandom)
        patch.setattr(random, "_urandom", urandom)
        yield


@pytest.hookimpl(wrapper=True)
def pytest_runtest_protocol(item: pytest.Item) -> Generator[None, object, object]:
    """A test, with the fixtures that are its own."""
    if FRESH or item.get_closest_marker("fresh"):
        return (yield)
    with repeatable(item.nodeid):
        return (yield)


@pytest.hookimpl(wrapper=True)
def pytest_fixture_setup(
    fixturedef: pytest.FixtureDef[Any], request: pytest.FixtureRequest
) -> Generator[None, object, object]:
    """A fixture that several tests share."""
    if FRESH or fixturedef.scope == "function":
        return (yield)
    with repeatable(f"{request.node.nodeid} {fixturedef.argname} {request.param_index}"):
        return (yield)
