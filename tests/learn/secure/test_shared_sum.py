"""Sums in shares: exact, opened by as many servers as agreed, and told by no fewer."""

from __future__ import annotations

import itertools
from typing import Any

import numpy as np
import pytest
from scipy import stats

from dither import learn
from dither.errors import ArgumentError, RoundError
from dither.learn.secure._shared_sum import SharedSum, ShareServer

shamirs = pytest.importorskip("shamirs", reason="shamirs is not installed")


def added(plan: SharedSum, vectors: Any) -> list[ShareServer]:
    """Servers that have the shares of all of them."""
    servers = [plan.server(i + 1) for i in range(plan.servers)]
    for client, vector in enumerate(vectors):
        for server, share in zip(servers, plan.split(vector), strict=True):
            assert server.add(share, f"client {client}")
    return servers


@pytest.mark.parametrize(
    ("size", "largest", "servers", "needed"),
    [(5, 1, 2, 2), (300, 255, 3, 2), (7, 256, 4, 4), (3, 2**40, 5, 3), (1, 3, 32, 17)],
)
def test_any_that_are_needed_open_the_sum(
    size: int, largest: int, servers: int, needed: int
) -> None:
    """Up to the largest counter, exactly; beyond it sums wrap."""
    generator = np.random.default_rng(size)
    plan = learn.shared_sum(size, largest=largest, servers=servers, needed=needed, least=1)
    vectors = generator.integers(0, largest // 4 + 1, (4, size))
    exact = vectors.sum(axis=0)
    totals = [server.total() for server in added(plan, vectors)]
    for some in itertools.islice(itertools.combinations(totals, needed), 40):
        assert np.array_equal(plan.open(some), exact % plan.modulus)
    assert np.array_equal(plan.open(totals), exact % plan.modulus)
    assert plan.modulus > max(largest, servers)
    with pytest.raises(RoundError, match="are needed"):
        plan.open(totals[: needed - 1])
    most = np.full(size, plan.modulus - 1)
    totals = [server.total() for server in added(plan, [*vectors, most])]
    assert np.array_equal(plan.open(totals), (exact - 1) % plan.modulus)


@pytest.mark.parametrize("needed", [2, 3])
def test_fewer_servers_learn_nothing(needed: int) -> None:
    """What needed - 1 see together is uniform, whatever is counted (fails 1 time in 1e9)."""
    plan = learn.shared_sum(20_000, largest=4, servers=3, needed=needed, least=1)
    p = plan.modulus
    for count in (0, 3):
        shares = plan.split(np.full(plan.size, count))
        values = [plan._read(share) for share in shares]
        for some in itertools.combinations(values, needed - 1):
            seen = sum(v * p**i for i, v in enumerate(some) if v is not None)
            cells = np.bincount(np.asarray(seen), minlength=p ** (needed - 1))
            assert stats.chisquare(cells).pvalue > 1e-10
        # Those that are needed tell all: the test can fail.
        first = values[:needed]
        seen = sum(v * p**i for i, v in enumerate(first) if v is not None)
        assert stats.chisquare(np.bincount(np.asarray(seen), minlength=p**needed)).pvalue < 1e-10


def test_a_total_is_given_once() -> None:
    """And of no other clients later; a share that comes then is left out."""
    plan = learn.shared_sum(2, largest=10, servers=2)
    servers = added(plan, [[1, 0], [2, 1], [3, 3]])
    one = servers[0]
    made = one.total({"client 0", "client 1"})
    assert made == one.total() == one.total(["client 1", "client 0"])
    with pytest.raises(RoundError, match="a second would tell"):
        one.total({"client 1", "client 2"})
    assert not one.add(plan.split([1, 1])[0], "late")
    assert (one.refused, "late" in one.clients) == (1, False)
    assert plan.open([made, servers[1].total(["client 0", "client 1"])]).tolist() == [3, 1]


@pytest.mark.parametrize("servers", [2, 3, 4, 5])
def test_no_two_sums_are_opened_of_servers_that_give_one_total(servers: int) -> None:
    """Whomever they are asked for, however few are needed: else two tell what a few sent."""
    for needed in range(2, servers + 1):
        try:
            plan = learn.shared_sum(1, largest=10, servers=servers, needed=needed)
        except ArgumentError:
            assert 2 * needed <= servers
            continue
        sets = [("client 0", "client 1"), ("client 0", "client 1", "client 2")]
        for asked in itertools.product((0, 1), repeat=servers):
            made = added(plan, [[1], [2], [4]])
            totals = [server.total(sets[i]) for server, i in zip(made, asked, strict=True)]
            opened = 0
            for i in (0, 1):
                some = [t for t, of in zip(totals, asked, strict=True) if of == i]
                opened += len(some) >= needed and plan.open(some).tolist() == [(3, 7)[i]]
            assert opened <= 1


def test_servers_must_add_the_same_clients() -> None:
    """Where one reached only some, the sum would be nonsense: it is refused, and can be mended."""
    plan = learn.shared_sum(1, largest=10, servers=2)
    one, other = added(plan, [[1], [2]])
    late = plan.split([4])
    assert one.add(late[0], "late")
    with pytest.raises(RoundError, match="no share of 1"):
        other.total(["client 0", "late"])
    both = one.clients & other.clients
    assert plan.open([one.total(both), other.total(both)]).tolist() == [3]
    one, other = added(plan, [[1], [2]])
    one.add(late[0], "late")
    with pytest.raises(RoundError, match="different clients"):
        plan.open([one.total(), other.total()])


def test_a_wrong_total_is_seen_where_more_are_given() -> None:
    """Of three, where two would do."""
    plan = learn.shared_sum(2, largest=10, servers=3, needed=2)
    totals = [server.total() for server in added(plan, [[1, 2], [3, 4]])]
    assert plan.open(totals).tolist() == [4, 6]
    for i in range(3):
        wrong = [bytearray(total) for total in totals]
        wrong[i][-1] = (wrong[i][-1] + 1) % plan.modulus
        with pytest.raises(RoundError, match="contradict"):
            plan.open([bytes(total) for total in wrong])


def test_faults_stop_nobody() -> None:
    """Twice, nonsense, out of range or of another size: left out and counted."""
    plan = learn.shared_sum(4, largest=300, servers=2)
    server = plan.server(1)
    good = plan.split([1, 0, 2, 0])[0]
    assert server.add(good, "a")
    bad: list[Any] = [good[:-1], good * 2, None, "text", b"\xff" * len(good), list(good)]
    assert not any(server.add(message, "b") for message in bad)
    assert not server.add(good, "a")
    assert not server.add(good, 7)  # type: ignore[arg-type]
    assert server.refused == len(bad) + 2
    with pytest.raises(RoundError, match="fewer than 2"):
        server.total()
    assert server.add(good, "\ud800")
    wrong: list[Any] = [b"", b"nonsense", None, good]
    for total in wrong:
        with pytest.raises(ArgumentError, match="totals must be"):
            plan.open([server.total(), total])


def test_arguments_refuse() -> None:
    """Of plans and counts."""
    refused: list[tuple[dict[str, Any], str]] = [
        ({"size": 0}, "size"),
        ({"largest": 2**41}, "largest"),
        ({"servers": 1}, "servers"),
        ({"servers": 33}, "servers"),
        ({"needed": 1}, "needed"),
        ({"servers": 4, "needed": 2}, "more than half"),
        ({"needed": 4}, "needed"),
        ({"least": 0}, "least"),
    ]
    for changed, name in refused:
        with pytest.raises(ArgumentError, match=name):
            learn.shared_sum(**{"size": 3, "largest": 5, **changed})
    plan = learn.shared_sum(2, largest=5)
    counts: list[Any] = [[1], [1.0, 2.0], [-1, 0], [10**9, 0]]
    for wrong in counts:
        with pytest.raises(ArgumentError, match="counts must be"):
            plan.split(wrong)
    with pytest.raises(ArgumentError, match="number"):
        plan.server(4)
