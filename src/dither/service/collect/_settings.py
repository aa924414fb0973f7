"""The sections ``[collect]`` and ``[collect.NAME]``: which surveys are taken in, and how."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from fractions import Fraction
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from cryptography.hazmat.primitives.asymmetric import rsa

from dither.errors import ArgumentError, PolicyError
from dither.ledger import PublicKey
from dither.ledger._place import LedgerSchema, read_place
from dither.policy._fields import Reader
from dither.service.collect._survey import (
    SurveyConfiguration,
    check_name,
    read_token_key,
)

__all__ = ["EVERY", "CollectSettings", "SurveySettings", "read_collect"]

EVERY = ("day", "week", "month", "quarter", "year")
BODY = 1 << 20
MOST_BODY = 1 << 26
PATIENCE = 10
RATE = 600
MOST = 10**6


@dataclass(frozen=True)
class SurveySettings:
    """One survey.

    Parameters
    ----------
    configuration : SurveyConfiguration
    token_key : RSAPrivateKey, optional
        Signs tokens; without it they are issued elsewhere.
    daily : int
        Tokens of this survey that a device may have a day.
    shuffle : int, optional
        Reports wait until there are so many, and leave in random order.
    batches : Path, optional
        The folder that shuffled batches are written to.
    every : str, optional
        How often estimates are published.
    estimates : Path, optional
        The folder that they are written to.
    postprocess : str
        Of estimates.
    public : bool
        Whether the newest is served.
    """

    configuration: SurveyConfiguration
    token_key: rsa.RSAPrivateKey | None = None
    daily: int = 1
    shuffle: int | None = None
    batches: Path | None = None
    every: str | None = None
    estimates: Path | None = None
    postprocess: str = "none"
    public: bool = False


@dataclass(frozen=True)
class CollectSettings:
    """All surveys of a collector.

    Parameters
    ----------
    state : Path or LedgerSchema
        Where counts and spent tokens are kept.
    surveys : mapping of str to SurveySettings
    daily_epsilon : Fraction, optional
        What all tokens that a device has a day may lose together, over all surveys.
    devices : frozenset of bytes, optional
        The keys that tokens are issued to; anybody's where left out.
    origins : tuple of str
        Web pages that may post, by scheme and host.
    body : int
        Bytes of a body, at most.
    patience : int
        Seconds in which a body must be there.
    rate : int
        Requests of one address a minute.
    """

    state: Path | LedgerSchema
    surveys: Mapping[str, SurveySettings]
    daily_epsilon: Fraction | None = None
    devices: frozenset[bytes] | None = None
    origins: tuple[str, ...] = field(default=())
    body: int = BODY
    patience: int = PATIENCE
    rate: int = RATE


def state_of(section: Mapping[str, Any], folder: Path) -> Path | LedgerSchema | None:
    """Where a policy's surveys are counted; None where it has none.

    Raises
    ------
    PolicyError
        The field is wrong.
    """
    if not section:
        return None
    place = section.get("state")
    try:
        state = read_place("collect.db" if place is None else place, "collect.state")
    except ArgumentError as error:
        raise PolicyError(str(error)) from None
    return state if isinstance(state, LedgerSchema) else folder / state


def read_collect(section: Mapping[str, Any], folder: Path, owner: PublicKey) -> CollectSettings:
    """Read ``[collect]`` and every ``[collect.NAME]``.

    Parameters
    ----------
    section : mapping
        As TOML has it.
    folder : Path
        What relative paths start from.
    owner : PublicKey
        Who must have signed every configuration; ``[owner] public`` of the policy.

    Raises
    ------
    PolicyError
        A field is missing, unknown or out of range; names it.
    """
    top = Reader(section, "collect")
    top.take("state")
    surveys = {name: body for name, body in section.items() if isinstance(body, Mapping)}
    surveys.pop("state", None)
    state = state_of(section, folder) or folder / "collect.db"
    daily = top.number("daily_epsilon")
    if daily is not None and daily <= 0:
        raise PolicyError("collect.daily_epsilon must be above 0")
    settings = {
        "daily_epsilon": daily,
        "devices": _devices(top, folder),
        "origins": tuple(_origin(top, one) for one in top.names("origins")),
        "body": top.whole("body", MOST_BODY) or BODY,
        "patience": top.whole("patience", 600) or PATIENCE,
        "rate": top.whole("rate", MOST) or RATE,
    }
    found = {}
    for name, body in surveys.items():
        top.take(name)
        found[name] = _survey(name, Reader(body, f"collect.{name}"), folder, owner)
    top.finish()
    if not found:
        raise PolicyError("collect has no survey: write [collect.NAME] with its configuration")
    for name, survey in found.items():
        epsilon = survey.configuration.epsilon
        if daily is not None and survey.token_key is not None and epsilon > daily:
            raise PolicyError(
                f"collect.daily_epsilon is below what one token of {name} may lose "
                f"({float(epsilon):g}): nobody could ever report"
            )
    return CollectSettings(state, found, **settings)  # type: ignore[arg-type]


def _survey(name: str, body: Reader, folder: Path, owner: PublicKey) -> SurveySettings:
    try:
        check_name(name)
        config = SurveyConfiguration.read(folder / body.required_text("configuration"), owner)
        if config.name != name:
            raise ArgumentError(f"it is of a survey of another name, {config.name!r}")
        tokens = body.text("tokens")
        key = None if tokens is None else read_token_key(folder / tokens, config)
    except ArgumentError as error:
        raise PolicyError(f"{body.where}: {error}") from None
    shuffle, batches = body.whole("shuffle", MOST), body.text("batches")
    every, estimates = body.take("every"), body.text("estimates")
    if batches is not None and shuffle is None:
        raise PolicyError(
            f"{body.name('batches')} needs shuffle: reports leave in batches of at least so many"
        )
    if (every is None) != (estimates is None):
        raise PolicyError(
            f"{body.where}: every and estimates go together: how often, and the folder to write to"
        )
    made = SurveySettings(
        config,
        key,
        daily=body.whole("daily", MOST) or 1,
        shuffle=shuffle,
        batches=None if batches is None else folder / batches,
        every=None if every is None else body.choice("every", EVERY, EVERY[0]),
        estimates=None if estimates is None else folder / estimates,
        postprocess=body.text("postprocess") or "none",
        public=body.flag("public", False),
    )
    body.finish()
    return made


def _devices(body: Reader, folder: Path) -> frozenset[bytes] | None:
    name = body.text("devices")
    if name is None:
        return None
    try:
        lines = (folder / name).read_text(encoding="ascii").split()
        found = frozenset(map(bytes.fromhex, lines))
    except (OSError, ValueError):
        raise PolicyError(
            f"{body.name('devices')} must be a file of devices' public keys, one a line, each of "
            "64 hexadecimal digits"
        ) from None
    if any(len(key) != 32 for key in found):
        raise PolicyError(f"{body.name('devices')}: a device's key has 64 hexadecimal digits")
    return found


def _origin(body: Reader, text: str) -> str:
    try:
        parts = urlsplit(text)
        plain = parts.scheme in ("https", "http") and bool(parts.hostname)
    except ValueError:
        plain = False
    if not plain or text != f"{parts.scheme}://{parts.netloc}" or "*" in text:
        raise PolicyError(
            f"{body.name('origins')} must be pages by scheme and host, such as "
            '"https://survey.example", each by itself'
        )
    return text
