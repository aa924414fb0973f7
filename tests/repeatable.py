"""Every test draws the same noise in every run, so that none fails by chance.

While a test runs, what its process takes from the system comes from a stream that is seeded by
the test's name: secure words, ``os.urandom``, tokens of `secrets`, unseeded generators of numpy
and `random`. A fixture that outlives its test has a stream of its own, so that no order of the
tests changes it, and so has each child that is forked. The code that is tested is the same; only
its words are repeatable.

Programs that a test starts draw from the system. So do tests that are marked ``fresh``, which are
about those words themselves, and all tests where DITHER_FRESH is set: that is how chances of
failing are measured, and how `.ci/run` tells bad luck from a fault.
"""

from __future__ import annotations

import hashlib
import os
import random
from collections import Counter
from collections.abc import Generator, Iterator
from contextlib import contextmanager
from typing import Any

import pytest

from dither.numeric import SecureWords, SimulatedWords

FRESH = "DITHER_FRESH" in os.environ
"""Whether everything is drawn from the system."""


class _Stream:
    """Words that a name seeds; after a fork the child's are those of another name."""

    def __init__(self, name: str) -> None:
        self.name, self.forks, self.key = name, 0, object()
        seed = hashlib.blake2b(name.encode(), digest_size=8).digest()
        self.source = SimulatedWords(int.from_bytes(seed))

    def words(self, n: int) -> Any:
        return self.source.words(n)

    def urandom(self, n: int) -> bytes:
        return bytes(self.words(-(-n // 8)).tobytes()[:n])


_open: list[_Stream] = []
_made: Counter[str] = Counter()
"""How often each shared fixture was made in this process."""


@contextmanager
def repeatable(name: str) -> Iterator[None]:
    """What this process takes from the system is a stream that the name seeds."""
    stream = _Stream(name)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(SecureWords, "words", lambda self, n: stream.words(n))
        # A new key each second would empty stocks of drawn values when the machine is slow.
        patch.setattr(SecureWords, "epoch", lambda self: stream.key)
        patch.setattr(os, "urandom", stream.urandom)
        patch.setattr(random, "_urandom", stream.urandom)
        before = random.getstate()
        random.seed(name)
        _open.append(stream)
        try:
            yield
        finally:
            _open.remove(stream)
            random.setstate(before)


def _before_fork() -> None:
    for stream in _open:
        stream.forks += 1


def _after_fork_in_child() -> None:
    for stream in _open:
        vars(stream).update(vars(_Stream(f"{stream.name} fork {stream.forks}")))


if hasattr(os, "register_at_fork"):
    os.register_at_fork(before=_before_fork, after_in_child=_after_fork_in_child)


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
    name = f"{request.node.nodeid} {fixturedef.argname} {request.param_index}"
    # Where tests of others run in between, it is made twice: two ledgers must not be one.
    again = _made[name]
    _made[name] += 1
    with repeatable(f"{name} again {again}" if again else name):
        return (yield)
