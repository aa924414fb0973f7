"""Tokens for devices: so many a day, over all surveys, and none that can be known again.

A device asks with a key of its own, and signs what it asks. What it is given is counted for the
day, by what the tokens may lose together: each pays for so many reports of a survey, each of which
loses the survey's epsilon. What is signed is blinded, so that nobody can tell of a token that comes
with a report to whom it was given.

The device stands in the table under a name made with the collector's secret for this day alone, and
is forgotten with the day.
"""

from __future__ import annotations

import datetime as dt
import hashlib
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

from cryptography.exceptions import InvalidSignature
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PublicKey
from sqlalchemy import delete, func, insert, select

from dither.errors import ArgumentError
from dither.service.collect._blind import blind_sign
from dither.service.collect._bodies import decoded
from dither.service.collect._settings import CollectSettings
from dither.service.collect._store import ISSUED, CollectorStore

__all__ = ["TokenIssuer", "TokenRefused", "TokenRequest", "asked_text"]

MOST_TOKENS = 64
"""That are asked for at once."""


class TokenRefused(Exception):
    """No token is given; the message says why."""


@dataclass(frozen=True)
class TokenRequest:
    """What a device asks for.

    Parameters
    ----------
    device : bytes
        Its public key, of Ed25519.
    day : str
        In UTC, as ``2024-01-31``.
    blinded : sequence of bytes
    signature : bytes
        Of `asked_text`.
    """

    device: bytes
    day: str
    blinded: Sequence[bytes]
    signature: bytes

    @classmethod
    def read(cls, found: Any) -> TokenRequest:
        """Out of JSON.

        Raises
        ------
        ArgumentError
            It has another form.
        """
        try:
            device, blinded = decoded(found["device"]), found["blinded"]
            if not isinstance(blinded, list) or not 1 <= len(blinded) <= MOST_TOKENS:
                raise ArgumentError(f"blinded must list 1 to {MOST_TOKENS} blinded tokens")
            day = found["day"]
            if not isinstance(day, str) or len(device) != 32:
                raise ArgumentError("device must be a key of 32 bytes, and day a text")
            return cls(device, day, [decoded(one) for one in blinded], decoded(found["signature"]))
        except (KeyError, TypeError):
            raise ArgumentError(
                'the body must be {"device", "day", "blinded", "signature"}'
            ) from None


def asked_text(digest: bytes, day: str, blinded: Sequence[bytes]) -> bytes:
    """What a device signs when it asks."""
    hashed = hashlib.sha256(b"".join(blinded)).hexdigest()
    return f"dither tokens 1\n{digest.hex()}\n{day}\n{len(blinded)}\n{hashed}".encode()


class TokenIssuer:
    """Gives tokens of the surveys whose key the collector has.

    Parameters
    ----------
    settings : CollectSettings
    store : CollectorStore
    today : callable
        The day in UTC.
    """

    def __init__(
        self,
        settings: CollectSettings,
        store: CollectorStore,
        today: Callable[[], dt.date] = lambda: dt.datetime.now(dt.UTC).date(),
    ) -> None:
        self._settings, self._store, self._today = settings, store, today

    def issue(self, name: str, asked: TokenRequest) -> list[bytes]:
        """Sign what a device asks for, once it is counted; on the disk when this returns.

        The same request gives the same again, and counts once.

        Raises
        ------
        TokenRefused
            The device has had all that it may have today, or is not known; or the request is of
            another day, or not signed.
        ArgumentError
            What is to be signed is no blinded token.
        """
        survey = self._settings.surveys[name]
        if survey.token_key is None:
            raise TokenRefused("tokens of this survey are given elsewhere")
        digest, today = survey.configuration.digest, self._today().isoformat()
        text = asked_text(digest, asked.day, asked.blinded)
        try:
            Ed25519PublicKey.from_public_bytes(asked.device).verify(asked.signature, text)
        except (InvalidSignature, ValueError):
            raise TokenRefused("the request is not signed by the device's key") from None
        if asked.day != today:
            raise TokenRefused(f"the request is of another day; it is {today} in UTC")
        known = self._settings.devices
        if known is not None and asked.device not in known:
            raise TokenRefused("the device's key is not one that tokens are given to")
        n = survey.token_key.public_key().public_numbers().n
        for one in asked.blinded:
            if len(one) * 8 != survey.token_key.key_size or int.from_bytes(one, "big") >= n:
                raise ArgumentError("a blinded token must be a number below the survey's modulus")
        self._count(name, today, asked, hashlib.sha256(text).digest())
        return [blind_sign(survey.token_key, one) for one in asked.blinded]

    def _count(self, name: str, today: str, asked: TokenRequest, request: bytes) -> None:
        survey = self._settings.surveys[name]
        digest = survey.configuration.digest
        device = hashlib.blake2b(
            today.encode() + asked.device, key=self._store.secret, digest_size=32
        ).digest()
        cost = survey.configuration.epsilon * len(asked.blinded)
        with self._store.writing() as connection:
            newest = connection.execute(select(func.max(ISSUED.c.day))).scalar_one()
            if newest is not None and newest > today:
                # A clock that is set back opens no day again.
                raise TokenRefused(
                    f"tokens were given for {newest} already, so none are for {today}; see the "
                    "collector's clock"
                )
            connection.execute(delete(ISSUED).where(ISSUED.c.day < today))
            held = connection.execute(
                select(ISSUED.c.request, ISSUED.c.survey, ISSUED.c.tokens, ISSUED.c.epsilon).where(
                    ISSUED.c.day == today, ISSUED.c.device == device
                )
            ).all()
            if any(bytes(row.request) == request for row in held):
                return
            mine = sum(row.tokens for row in held if bytes(row.survey) == digest)
            if mine + len(asked.blinded) > survey.daily:
                raise TokenRefused(
                    f"a device has at most {survey.daily} tokens of this survey a day"
                )
            spent = sum((Fraction(row.epsilon) for row in held), Fraction(0))
            most = self._settings.daily_epsilon
            if most is not None and spent + cost > most:
                raise TokenRefused(
                    f"the tokens that a device has a day may lose epsilon {float(most):g} together"
                )
            connection.execute(
                insert(ISSUED).values(
                    day=today,
                    device=device,
                    request=request,
                    survey=digest,
                    tokens=len(asked.blinded),
                    epsilon=str(cost),
                )
            )
