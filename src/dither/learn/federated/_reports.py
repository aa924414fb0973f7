"""Gradients as locally private reports: nobody is trusted, and shuffling hides who sent what.

Every client is asked once. In its round it takes the gradient of its own mean loss, cuts it to
[-clip, clip] coordinate by coordinate, chooses one coordinate at random, without looking at the
gradient, and sends that coordinate's number through a channel of `dither.local` that is private by
itself. Reports are shuffled: which client sent which is forgotten before anybody reads them.

Guarantee. For any two updates of one client, its report is epsilon-locally private: the coordinate
does not depend on them, and the number goes through the channel. The pair of coordinate and report
is itself an epsilon-private randomiser, the same for all, so the n reports of a round have the
central loss of n shuffled ones, of a client replaced (`dither.accounting.shuffle`). It is that of
any such randomiser, and not `Channel.shuffled`, which knows the channel's answers: a report hides
among those of its own coordinate alone. Rounds ask different clients,
chosen without looking at their rows, so that one client is in one round, and what all rounds lose
is what one loses.

The mean of a coordinate's reports estimates the mean of its numbers. Each has the channel's noise
whatever the dimension is, and only one report in ``dimension`` is about it: this is for small
models and very many clients.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from dither import _checks as check
from dither import accounting, privacy
from dither.errors import ArgumentError
from dither.learn.federated._encoding import Floats, Integers
from dither.noise import below, permutation
from dither.numeric import Words, secure_words
from dither.privacy import Loss, Neighbours

__all__ = ["ReportedFit", "train_on_reports"]


@dataclass(frozen=True, eq=False)
class ReportedFit:
    """What reports have trained.

    Parameters
    ----------
    parameters : array of float, shape (dimension,)
    reports : int
        In a round; each client sends one in all.
    local_epsilon : float
        Of one report, whoever sees it.
    shuffled : dither.accounting.Shuffled
        Of a round's reports whose order is forgotten.
    """

    parameters: Floats
    reports: int
    local_epsilon: float
    shuffled: accounting.Shuffled

    def loss(self, delta: float) -> Loss:
        """Of the whole run, for one client replaced, where reports were shuffled."""
        central = float(self.shuffled.epsilon(delta))
        return privacy.approximate(central, delta, neighbours=Neighbours.REPLACE)


def train_on_reports(
    gradients: Callable[[Floats, Integers], Any],
    channel: Any,
    *,
    clients: int,
    rounds: int,
    rate: float,
    start: Any,
    words: Words | None = None,
) -> ReportedFit:
    """Train by one locally private report of each client.

    Parameters
    ----------
    gradients : callable
        From parameters and clients to each client's gradient, shape (m, dimension).
    channel : dither.local channel of numbers
        Such as ``local.Duchi(local.Interval(-clip, clip), epsilon)``; its bounds are the clip.
    clients, rounds : int
        Each round asks clients // rounds of them, which are asked no more.
    rate : number
        Of a step.
    start : array of float, shape (dimension,)
    words : Words, optional
        Another source of randomness, for simulation only; the channel's is its own.

    Returns
    -------
    ReportedFit

    Raises
    ------
    ArgumentError
        An argument is out of range, or the channel is not one of numbers with bounds.
    """
    clients, rounds = check.count("clients", clients), check.count("rounds", rounds)
    step = check.number("rate", rate, above=0, below=1e100)
    at = np.array(start, np.float64)
    if at.ndim != 1 or not at.size or not np.isfinite(at).all():
        raise ArgumentError("start must be a row of finite numbers")
    reports = clients // rounds
    if reports < 1:
        raise ArgumentError("clients must be at least as many as rounds")
    low, high = _bounds(channel)
    source = words or secure_words()
    order = permutation(clients, words=source)
    for number in range(rounds):
        which = order[number * reports : (number + 1) * reports]
        found = np.asarray(gradients(at.copy(), which), np.float64)
        if found.shape != (reports, at.size):
            raise ArgumentError("gradients must be of shape (clients, dimension)")
        places = below(at.size, reports, words=source)
        values = found[np.arange(reports), places]
        values = np.clip(np.nan_to_num(values, nan=0.0, posinf=high, neginf=low), low, high)
        mean = np.zeros(at.size)
        for place in np.unique(places).tolist():
            sent = channel.privatize(values[places == place])
            mean[place] = float(channel.aggregate(sent).estimate().mean)
        at = at - step * np.clip(mean, low, high)
    epsilon = float(max(pair.ratio for pair in channel.guarantee.pairs.values()))
    return ReportedFit(at, reports, epsilon, accounting.shuffle(reports, epsilon))


def _bounds(channel: Any) -> tuple[float, float]:
    interval = getattr(channel, "interval", None)
    try:
        return float(interval.low), float(interval.high)  # type: ignore[union-attr]
    except AttributeError:
        raise ArgumentError(
            "channel must be one of numbers within an interval, such as local.Duchi"
        ) from None
