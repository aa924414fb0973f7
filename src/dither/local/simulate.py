"""What a survey would give, before anyone is asked: exact in distribution, for planning only."""

from __future__ import annotations

from typing import Any

import numpy as np

from dither.errors import ArgumentError
from dither.local.aggregate import Aggregate
from dither.local.arguments import checked_channel
from dither.local.channel import Channel

__all__ = ["simulate"]


def simulate(channel: Channel, histogram: Any, rng: np.random.Generator) -> Aggregate:
    """Draw the aggregate that a population would give.

    It has the law that privatising every person's value and counting the reports has, and protects
    nobody: the generator is seeded.

    Parameters
    ----------
    channel : Channel
    histogram : array of int, shape (k,)
        How many people hold each value of the channel's domain.
    rng : numpy.random.Generator

    Returns
    -------
    Aggregate
        Of as many reports as the histogram holds people.

    Raises
    ------
    ArgumentError
        The histogram has another shape, is not of whole numbers, or is negative.

    Examples
    --------
    >>> from dither import local
    >>> drawn = simulate(local.GRR(2, epsilon=1), [900, 100], np.random.default_rng(1))
    >>> drawn.n, int(drawn.counts.sum())
    (1000, 1000)
    """
    checked_channel(channel)
    try:
        counts = np.asarray(histogram)
    except ValueError:
        raise ArgumentError("histogram must be a row of whole numbers") from None
    if counts.shape != (len(channel.domain),):
        raise ArgumentError("histogram must have one count for each value of the channel's domain")
    if counts.dtype.kind not in "iu" or (counts.size and int(counts.min()) < 0):
        raise ArgumentError("histogram must hold whole numbers of at least 0")
    if not isinstance(rng, np.random.Generator):
        raise ArgumentError("rng must be a numpy.random.Generator, such as default_rng(1)")
    drawn = channel.simulate(counts.astype(np.int64), rng)
    return Aggregate(channel, drawn, int(counts.sum()))
