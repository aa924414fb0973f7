"""Counting: once each, on the disk when it is said so, on both stores."""

from __future__ import annotations

import stat
import threading
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from dither import local
from dither.errors import ArgumentError, LedgerError, UnknownNameError
from dither.local._structures.parts import PartCounts
from dither.local.wire import aggregate_file, pack
from dither.service.collect import Collector, publish_due, read_collect
from dither.service.collect import _intake as intake
from dither.service.collect._intake import BusyCollector, CountedPosts, shuffled
from dither.service.collect._numbers import counts_from, numbers_of
from service.collect.conftest import CHANNEL, Made, Surveyed, surveyed


def test_reports_are_counted_once(survey: Surveyed, collector: Made, state: Any) -> None:
    """A token is spent by one report, whenever it comes again, in one post or in two."""
    found = collector(state)
    posts = survey.posts(0, 1, 1, 2)
    assert found.take("flu", posts).result() == CountedPosts(4, 0)
    assert found.take("flu", posts).result() == CountedPosts(0, 4)
    again, new = posts[0], survey.posts(0)[0]
    assert found.take("flu", [again, new, new]).result() == CountedPosts(1, 2)
    counts = found.counts("flu")
    assert (counts.counts.tolist(), counts.n) == ([2, 2, 1], 5)


def test_counts_outlive_a_collector(survey: Surveyed, collector: Made, state: Any) -> None:
    """Another process has the same state: its counts, and its tokens."""
    first, second = collector(state), collector(state)
    posts = survey.posts(0, 2)
    first.take("flu", posts).result()
    assert second.take("flu", posts).result() == CountedPosts(0, 2)
    assert second.take("flu", survey.posts(2)).result().counted == 1
    first.close()
    second.close()
    assert collector(state).counts("flu").counts.tolist() == [1, 0, 2]


def test_two_at_once_count_each_token_once(survey: Surveyed, collector: Made, state: Any) -> None:
    """Two collectors of one state are sent the same posts side by side."""
    posts = survey.posts(*[i % 3 for i in range(60)])
    collectors = [collector(state), collector(state)]
    answers: list[CountedPosts] = []

    def send(to: Collector, some: Any) -> None:
        found = [to.take("flu", [post]) for post in some]
        answers.extend(one.result() for one in found)

    threads = [
        threading.Thread(target=send, args=(to, posts[:: 1 - 2 * i]))
        for i, to in enumerate(collectors)
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert sum(one.counted for one in answers) == sum(one.spent for one in answers) == 60
    assert collectors[0].counts("flu").counts.tolist() == [20, 20, 20]


def test_counts_merge_across_collectors(survey: Surveyed, collector: Made, tmp_path: Path) -> None:
    """Two collectors with a state each: their counts add up as those of the local room."""
    first, second = collector(), collector(str(tmp_path / "other.db"))
    first.take("flu", survey.posts(0, 1)).result()
    second.take("flu", survey.posts(1)).result()
    merged = first.counts("flu") + second.counts("flu")
    assert merged.counts.tolist() == [1, 2, 0]


def test_impossible_reports_spend_their_token(survey: Surveyed, collector: Made) -> None:
    """They are counted as rejected, as the local room does."""
    found = collector()
    found.take("flu", survey.posts(0, 200)).result()
    assert (found.counts("flu").n, found.counts("flu").rejected) == (1, 1)


def test_a_structure_is_counted(tmp_path: Path) -> None:
    """Reports of several channels keep their parts."""
    channel = local.Attributes({"smokes": 2, "region": 4}, epsilon=1)
    made = surveyed(tmp_path, "people", channel)
    section = {"people": {"configuration": "people.config.json"}}
    found = Collector(read_collect(section, tmp_path, made.owner.public))
    record = bytes([1, 0]) + pack(channel.parts["region"], [3])
    (prefix, signature), other = made.token(), made.token()
    posts = [(prefix, signature, record), (*other, bytes([9, 0, 0]))]
    assert found.take("people", posts).result().counted == 2
    counts = found.counts("people")
    assert isinstance(counts, PartCounts)
    assert counts.parts["region"].counts.tolist() == [0, 0, 0, 1]
    assert counts.rejected == 1
    found.close()


@pytest.mark.parametrize(
    "carrier",
    [
        local.OUE(9, epsilon=1),
        local.PM(local.Interval(0, 1, steps=4), epsilon=1),
        local.Attributes({"a": 2, "b": 3}, epsilon=1),
        local.Personal([local.GRR(3, epsilon=1), local.GRR(3, epsilon=2)]),
    ],
    ids=lambda c: c.kind,
)
def test_numbers_are_counts(carrier: Any) -> None:
    """A row and back, and rows of two halves add up to that of the whole."""
    size = carrier.report_bytes
    records = bytes(i * 37 % 251 for i in range(40 * size))
    whole = numbers_of(carrier, records)
    halves = numbers_of(carrier, records[: 20 * size]) + numbers_of(carrier, records[20 * size :])
    assert np.array_equal(whole, halves)
    assert counts_from(carrier, whole).n + counts_from(carrier, whole).rejected == 40
    with pytest.raises(ArgumentError, match="not of the survey"):
        counts_from(carrier, whole[:-1])


def test_reports_wait_to_be_shuffled(
    survey: Surveyed, collector: Made, state: Any, tmp_path: Path
) -> None:
    """Nothing leaves before there are enough; then all do, in another order, and are counted."""
    found = collector(state, flu={"shuffle": 30, "batches": str(tmp_path / "out")})
    values = [i % 3 for i in range(29)]
    posts = survey.posts(*values)
    found.take("flu", posts).result()
    assert found.counts("flu").n == 0
    assert publish_due(found) == []
    assert found.take("flu", posts).result() == CountedPosts(0, 29)
    found.take("flu", survey.posts(0)).result()
    assert found.counts("flu").n == 30
    (written,) = publish_due(found)
    counts, missing = aggregate_file(written, CHANNEL)
    assert (counts.counts.tolist(), missing) == ([11, 10, 9], 0)
    order = written.read_bytes()[-30:]
    assert order != bytes([*values, 0])
    assert publish_due(found) == []
    found.take("flu", survey.posts(*[1] * 30)).result()
    (second,) = publish_due(found)
    assert second != written
    assert "2026" not in written.name


def test_every_order_is_as_likely() -> None:
    """Three records leave in each of six orders: chi square of 3,000 draws, false alarm 1e-4."""
    seen: dict[tuple[bytes, ...], int] = {}
    for _ in range(3000):
        order = tuple(shuffled([b"a", b"b", b"c"]))
        seen[order] = seen.get(order, 0) + 1
    assert len(seen) == 6
    assert sum((n - 500) ** 2 / 500 for n in seen.values()) < 25.75


def test_a_commit_that_fails_acknowledges_nothing(
    survey: Surveyed, collector: Made, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Neither is anything counted, nor a token spent: sent again, it is counted."""
    found = collector()
    posts = survey.posts(1)

    def broken(*_: Any) -> None:
        raise OSError("no space")

    with monkeypatch.context() as patched:
        patched.setattr(found.store, "add", broken)
        with pytest.raises(OSError, match="no space"):
            found.take("flu", posts).result()
    assert found.take("flu", posts).result() == CountedPosts(1, 0)


def test_whoever_gives_up_harms_nobody(
    survey: Surveyed, collector: Made, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A request that is cancelled before its commit is not counted; those beside it are."""
    found = collector()
    with found.store.writing():
        first = found.take("flu", survey.posts(0))
        while not first.running():
            pass
        posts = survey.posts(1)
        given_up, other = found.take("flu", posts), found.take("flu", survey.posts(2))
        assert given_up.cancel()
    assert first.result().counted == other.result().counted == 1
    assert found.take("flu", posts).result() == CountedPosts(1, 0)
    assert found.counts("flu").counts.tolist() == [1, 1, 1]


def test_one_that_cannot_be_counted_harms_no_other(
    survey: Surveyed, collector: Made, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Of a commit that fails, each is tried by itself."""
    found = collector()
    counted = intake.numbers_of

    def fails_for_two(carrier: Any, records: bytes) -> Any:
        if 2 in records:
            raise RuntimeError("two")
        return counted(carrier, records)

    monkeypatch.setattr(intake, "numbers_of", fails_for_two)
    with found.store.writing():
        answers = [found.take("flu", survey.posts(value)) for value in (0, 2, 1)]
    with pytest.raises(RuntimeError, match="two"):
        answers[1].result()
    assert answers[0].result().counted == answers[2].result().counted == 1
    monkeypatch.undo()
    assert found.counts("flu").counts.tolist() == [1, 1, 0]


def test_too_many_are_told_to_come_again(
    survey: Surveyed, collector: Made, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Beyond what a commit takes nothing is queued, and nothing counted."""
    found = collector()
    monkeypatch.setattr(intake, "MOST_WAITING", 1)
    with pytest.raises(BusyCollector):
        found.take("flu", survey.posts(0, 1))
    assert found.counts("flu").n == 0


def test_a_closed_collector_takes_nothing(survey: Surveyed, collector: Made) -> None:
    """What it took before is on the disk."""
    found = collector()
    done = found.take("flu", survey.posts(0))
    found.close()
    assert done.result().counted == 1
    with pytest.raises(ArgumentError, match="closed"):
        found.take("flu", survey.posts(0))
    with pytest.raises(UnknownNameError, match="did you mean 'flu'"):
        found.counts("flo")


def test_the_state_is_private(survey: Surveyed, collector: Made, tmp_path: Path) -> None:
    """Files are for their owner alone; no column has an address or a time."""
    found = collector()
    found.take("flu", survey.posts(0)).result()
    files = list(tmp_path.glob("collect.db*"))
    assert len(files) > 1
    assert {stat.S_IMODE(file.stat().st_mode) for file in files} == {0o600}
    with found.store.reading() as connection:
        rows = connection.exec_driver_sql("SELECT sql FROM sqlite_master").all()
    columns = " ".join(str(row[0]) for row in rows)
    assert "address" not in columns
    assert "time" not in columns


def test_a_state_that_cannot_be_used(survey: Surveyed, collector: Made, tmp_path: Path) -> None:
    """A folder that is missing, and a state of a newer version, are named."""
    with pytest.raises(LedgerError, match="no folder"):
        collector(str(tmp_path / "nowhere" / "collect.db"))
    found = collector()
    with found.store.writing() as connection:
        connection.exec_driver_sql("UPDATE collect_version SET version = 9")
    with pytest.raises(LedgerError, match="collector's state is of version 9"):
        collector()
