"""Channels by their names on the wire: what a description says, its digest, and what it makes."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, TypeGuard

from dither.errors import ArgumentError, nearest
from dither.local._limits import described

if TYPE_CHECKING:
    from dither.local._channel import Channel
    from dither.local._numbers.numeric import NumericChannel
    from dither.local._oracles import FiniteChannel

KINDS: dict[str, type[Channel]] = {}
"""By its name on the wire, each kind of channel that has been defined."""


def checked_channel(channel: Any) -> Channel:
    """A channel, and not its class or its name."""
    kind = getattr(channel, "kind", None)
    made = KINDS.get(kind) if isinstance(kind, str) else None
    if made is not None and isinstance(channel, made):
        return channel
    raise ArgumentError("channel must be a Channel, such as local.GRR(5, epsilon=1)")


def has_matrix(channel: Channel) -> TypeGuard[FiniteChannel]:
    """Whether a channel's chances are a matrix."""
    return channel.finite


def about_numbers(channel: Channel) -> TypeGuard[NumericChannel]:
    """Whether a channel's values are numbers of an interval."""
    return channel.numeric


def canonical(found: dict[str, Any]) -> bytes:
    """The canonical JSON of a description: sorted keys, no spaces, ASCII only."""
    return json.dumps(
        found, sort_keys=True, separators=(",", ":"), ensure_ascii=True, allow_nan=False
    ).encode()


def digest_of(found: Any) -> str:
    """SHA-256 of the canonical JSON of a description, 64 hexadecimal digits."""
    return hashlib.sha256(canonical(found)).hexdigest()


def check_digest(described: Any, digest: Any, refusal: str) -> None:
    """Refuse a description that has another digest, before anything is made of what it says."""
    if not isinstance(digest, str) or digest_of(described) != digest:
        raise ArgumentError(refusal)


def channel_from_dict(found: dict[str, Any]) -> Channel:
    """The channel that `Channel.to_dict` wrote.

    Parameters
    ----------
    found : dict
        What `to_dict` gave, or JSON of it.

    Returns
    -------
    Channel
        Equal to the one that was written, with the same hash.

    Raises
    ------
    ArgumentError
        The kind is unknown, the version is newer, or a setting is missing or out of range.

    Examples
    --------
    >>> from dither import local
    >>> channel = local.GRR(["no", "yes"], epsilon="0.5")
    >>> local.channel_from_dict(channel.to_dict()) == channel
    True
    """
    if not isinstance(found, Mapping):
        raise ArgumentError("a channel must be described by a dictionary, as to_dict writes it")
    settings = dict(found)
    kind, version = settings.pop("channel", None), settings.pop("version", None)
    if not isinstance(kind, str) or kind not in KINDS:
        raise ArgumentError(f"unknown channel {str(kind)[:40]!r}{nearest(str(kind), KINDS)}")
    made = KINDS[kind]
    if type(version) is not int or version != made.version:
        raise ArgumentError(
            f"channel {kind!r} must be of version {made.version}, which this dither knows"
        )
    with described(f"the settings of channel {kind!r} are incomplete or unknown"):
        return made.from_settings(settings)
