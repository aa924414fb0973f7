"""Taking reports in: many posts in one commit, each counted once, or told that it was before.

One thread commits. Posts that come while it does wait for the next commit together, and the first
of them for some hundredths of a second, so that the disk is asked some tens of times a second
however many there are. A post is acknowledged once the
commit that it is in is on the disk. Where it fails, or the process dies before, nothing of it was
counted, and whoever sent it sends it again: its token tells the collector whether it was.

Commits order reports at random and forget it: counts are sums, and a survey with a shuffler lets
its reports wait in random places until there are enough, which then leave in a fresh random order.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Mapping
from concurrent.futures import Future
from dataclasses import dataclass
from typing import Any

import numpy as np

from dither.errors import ArgumentError
from dither.noise import permutation
from dither.service.collect._numbers import Counts, counts_from, numbers_of
from dither.service.collect._settings import SurveySettings
from dither.service.collect._store import CollectorStore

__all__ = ["BusyCollector", "CountedPosts", "GroupCommit", "PostedReports"]

LINGER = 0.02
"""Seconds that a post waits for others, unless there are `ENOUGH`: a commit has its price."""

ENOUGH = 4096
"""Reports that are worth a commit."""

MOST_WAITING = 200_000
"""Reports that may wait for a commit, before others are told to come again."""


class BusyCollector(Exception):
    """More reports wait than a commit takes; nothing was counted."""


@dataclass(frozen=True, slots=True)
class PostedReports:
    """What one token paid for.

    Parameters
    ----------
    token : bytes
        Its random half, by which it is known.
    records : bytes
    """

    token: bytes
    records: bytes


@dataclass(frozen=True, slots=True)
class CountedPosts:
    """What became of posts: how many were counted now, and how many tokens were spent before."""

    counted: int
    spent: int


@dataclass(slots=True)
class _Waiting:
    survey: str
    posts: list[PostedReports]
    done: Future[CountedPosts]


class GroupCommit:
    """Commits posts in a thread of its own.

    Parameters
    ----------
    store : CollectorStore
    surveys : mapping of str to SurveySettings
    """

    def __init__(self, store: CollectorStore, surveys: Mapping[str, SurveySettings]) -> None:
        self._store, self._surveys = store, surveys
        self._changed = threading.Condition()
        self._waiting: list[_Waiting] = []
        self._number = 0
        self._closed = False
        self._thread = threading.Thread(target=self._run, name="dither-collect", daemon=True)
        self._thread.start()

    def submit(self, survey: str, posts: list[PostedReports]) -> Future[CountedPosts]:
        """Posts whose tokens hold; what is returned is done once they are on the disk.

        Raises
        ------
        BusyCollector
            Too many wait.
        ArgumentError
            It is closed.
        """
        found: Future[CountedPosts] = Future()
        size = self._surveys[survey].configuration.carrier.report_bytes
        number = sum(len(post.records) // size for post in posts)
        with self._changed:
            if self._closed:
                raise ArgumentError("this collector is closed")
            if self._number + number > MOST_WAITING:
                raise BusyCollector
            self._number += number
            self._waiting.append(_Waiting(survey, posts, found))
            self._changed.notify()
        return found

    def close(self) -> None:
        """Commit what waits, and end."""
        with self._changed:
            self._closed = True
            self._changed.notify()
        self._thread.join()

    def _run(self) -> None:
        while True:
            with self._changed:
                while not self._waiting and not self._closed:
                    self._changed.wait()
                until = time.monotonic() + LINGER
                while not self._closed and self._number < ENOUGH:
                    left = until - time.monotonic()
                    if left <= 0:
                        break
                    self._changed.wait(left)
                waiting, self._waiting, self._number = self._waiting, [], 0
                if not waiting and self._closed:
                    return
            # Whoever gave up before this was not told anything, and is not counted; from here on
            # nobody can.
            self._settle([one for one in waiting if one.done.set_running_or_notify_cancel()])

    def _settle(self, group: list[_Waiting]) -> None:
        try:
            found = self._commit(group)
        except BaseException as error:
            if len(group) > 1:
                # What one of them does to a commit is not for the others to bear.
                for one in group:
                    self._settle([one])
                return
            for one in group:
                one.done.set_exception(error)
            return
        for one, answer in zip(group, found, strict=True):
            one.done.set_result(answer)

    def _commit(self, group: list[_Waiting]) -> list[CountedPosts]:
        answers: dict[int, CountedPosts] = {}
        with self._store.writing() as connection:
            for name in dict.fromkeys(one.survey for one in group):
                own = [(i, one) for i, one in enumerate(group) if one.survey == name]
                survey = self._surveys[name]
                digest = survey.configuration.digest
                tokens = [post.token for _, one in own for post in one.posts]
                # What is taken from this was counted: a token that comes twice is so once.
                new = self._store.unspent(connection, digest, tokens)
                taken: list[bytes] = []
                for i, one in own:
                    fresh = []
                    for post in one.posts:
                        if post.token in new:
                            new.remove(post.token)
                            fresh.append(post.records)
                    taken += fresh
                    size = survey.configuration.carrier.report_bytes
                    number = sum(map(len, fresh)) // size
                    answers[i] = CountedPosts(number, len(one.posts) - len(fresh))
                if taken:
                    self._take(connection, survey, b"".join(taken))
        return [answers[i] for i in range(len(group))]

    def _take(self, connection: Any, survey: SurveySettings, records: bytes) -> None:
        carrier, digest = survey.configuration.carrier, survey.configuration.digest
        if survey.shuffle is None:
            self._store.add(connection, digest, numbers_of(carrier, records))
            return
        size = carrier.report_bytes
        each = [records[at : at + size] for at in range(0, len(records), size)]
        if self._store.wait(connection, digest, each) >= survey.shuffle:
            left = shuffled(self._store.leave(connection, digest))
            self._store.add(connection, digest, numbers_of(carrier, b"".join(left)))
            if survey.batches is not None:
                self._store.next_batch(connection, digest, b"".join(left))

    def counts(self, survey: str) -> Counts:
        """All that was counted of a survey, by every process: as the local room merges counts.

        Reports that wait to be shuffled are not among them.
        """
        settings = self._surveys[survey]
        carrier = settings.configuration.carrier
        with self._store.reading() as connection:
            found = self._store.numbers(connection, settings.configuration.digest)
        return counts_from(carrier, numbers_of(carrier, b"") if found is None else found)


def shuffled(records: list[bytes]) -> list[bytes]:
    """Records in a random order, each order as likely as any other."""
    return [records[i] for i in np.asarray(permutation(len(records))).tolist()]
