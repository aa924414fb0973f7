"""Sums that are opened as sums alone: exact, and deaf to what is not a vector."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from dither import learn
from dither.errors import ArgumentError, RoundError

pytest.importorskip("tenseal", reason="tenseal is not installed")


@pytest.mark.parametrize(("size", "largest"), [(5, 100), (5000, 2**21), (3, 2**40)])
def test_sums_are_exact(size: int, largest: int) -> None:
    """Over one or two messages a vector, up to the largest counter; and beyond it they wrap."""
    generator = np.random.default_rng(size)
    holder = learn.secure_sum(size, largest=largest)
    server = holder.public.server()
    vectors = generator.integers(0, largest // 4 + 1, (4, size))
    assert all(server.add(holder.public.encrypt(v), i) for i, v in enumerate(vectors))
    assert np.array_equal(holder.open(server.total()), vectors.sum(axis=0))
    assert holder.public.modulus > largest
    again = holder.public.server()
    for vector in [*vectors, np.full(size, holder.public.modulus - 1)]:
        again.add(holder.public.encrypt(vector))
    assert np.array_equal(
        holder.open(again.total()), (vectors.sum(axis=0) - 1) % holder.public.modulus
    )


def test_there_is_one_sum() -> None:
    """After it no vector is taken, since the difference of two sums would be what came between."""
    holder = learn.secure_sum(2, largest=10)
    server = holder.public.server()
    assert all(server.add(holder.public.encrypt([i, 1])) for i in range(2))
    first = holder.open(server.total()).tolist()
    assert not server.add(holder.public.encrypt([5, 5]), "late")
    assert holder.open(server.total()).tolist() == first == [1, 2]
    assert (server.received, server.refused) == (2, 1)


def test_server_cannot_read() -> None:
    """What it has holds no secret key; the same counts look different each time."""
    holder = learn.secure_sum(4, largest=10)
    public = holder.public
    assert not public._context().is_private()
    one, other = public.encrypt([1, 2, 3, 4]), public.encrypt([1, 2, 3, 4])
    assert one != other
    from tenseal import bfv_vector_from

    with pytest.raises(ValueError, match="secret"):
        bfv_vector_from(public._context(), one[0]).decrypt()


def test_faults_stop_nobody() -> None:
    """Twice, nonsense, or of another size: left out and counted; too few: nothing is passed on."""
    holder = learn.secure_sum(4, largest=10, least=2)
    other = learn.secure_sum(3, largest=10)
    server = holder.public.server()
    good = holder.public.encrypt([1, 0, 2, 0])
    assert server.add(good, "a")
    bad: list[Any] = [
        good * 2,
        [b"nonsense"],
        None,
        other.public.encrypt([1, 1, 1]),
        [good[0][:99]],
    ]
    assert not server.add(good, "a")
    assert not any(server.add(message, "b") for message in bad)
    with pytest.raises(RoundError, match="fewer than 2"):
        server.total()
    assert server.add(good, "b")
    assert (server.received, server.refused) == (2, 6)
    assert holder.open(server.total()).tolist() == [2, 0, 4, 0]
    with pytest.raises(ArgumentError, match="total must be"):
        holder.open([b"nonsense"])


def test_arguments_refuse() -> None:
    """Of keys and counts."""
    with pytest.raises(ArgumentError, match="largest"):
        learn.secure_sum(3, largest=2**41)
    with pytest.raises(ArgumentError, match="size"):
        learn.secure_sum(0, largest=3)
    public = learn.secure_sum(2, largest=5).public
    for wrong in ([1], [1.0, 2.0], [-1, 0], [10**9, 0]):
        with pytest.raises(ArgumentError, match="counts must be"):
            public.encrypt(wrong)
