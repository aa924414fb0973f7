"""Checks of arguments that many doors share."""

from __future__ import annotations

from collections.abc import Collection
from typing import TYPE_CHECKING, Any

from dither.errors import ArgumentError, nearest

if TYPE_CHECKING:
    from dither.local._aggregate import Aggregate
    from dither.local._channel import Channel


_MOST_PEOPLE = 1 << 62


def one_of(value: Any, options: Collection[str], name: str) -> str:
    """One of a few names, or an error that tells the nearest."""
    if isinstance(value, str) and value in options:
        return value
    if isinstance(value, str):
        raise ArgumentError(f"unknown {name} {value[:20]!r}{nearest(value[:40], options)}")
    raise ArgumentError(f"{name} must be one of {', '.join(map(repr, options))}")


def checked_flag(value: Any, name: str) -> bool:
    """True or False."""
    if value is True or value is False:
        return value
    raise ArgumentError(f"{name} must be True or False")


def checked_number(value: Any, name: str, low: int = 1, high: int = _MOST_PEOPLE) -> int:
    """A whole number in a range; numpy's are taken, booleans are not."""
    import numpy as np

    whole = isinstance(value, int | np.integer) and not isinstance(value, bool)
    if whole and low <= int(value) <= high:
        return int(value)
    most = "" if high == _MOST_PEOPLE else f" and at most {high:,}"
    raise ArgumentError(f"{name} must be a whole number of at least {low}{most}")


def checked_channel(channel: Any) -> Channel:
    """A channel, and not its class or its name."""
    from dither.local._channel import Channel

    if isinstance(channel, Channel):
        return channel
    raise ArgumentError("channel must be a Channel, such as local.GRR(5, epsilon=1)")


def checked_aggregate(aggregate: Any) -> Aggregate:
    """Counts of one channel."""
    from dither.local._aggregate import Aggregate

    if isinstance(aggregate, Aggregate):
        return aggregate
    raise ArgumentError("aggregate must be an Aggregate, as channel.aggregate gives it")
