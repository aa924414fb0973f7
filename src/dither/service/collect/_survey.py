"""What a survey asks, signed by the owner: its channel, and the key that its tokens are signed by.

A device trusts the owner's public key, which comes with the program that it runs. So whoever stands
between, the collector itself included, can neither lower the noise nor give one device a key of its
own, by which its reports would be known again. A report names the configuration's digest, and what
was made under another is refused.
"""

from __future__ import annotations

import hashlib
import json
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from pathlib import Path
from typing import Any

from cryptography.hazmat.primitives import serialization as form
from cryptography.hazmat.primitives.asymmetric import rsa

from dither import _checks as check
from dither._files import written
from dither.errors import ArgumentError
from dither.ledger import OwnerKey, PublicKey
from dither.local._registry import canonical
from dither.local._reports.records import Carrier, carrier_from_dict

__all__ = ["MOST_REPORTS", "PURPOSE", "SurveyConfiguration", "new_survey", "read_token_key"]

PURPOSE = "survey configuration"
"""What the owner signs it as."""

VERSION = 1
BITS = 2048
MOST_REPORTS = 1_000
LARGEST = 1 << 26
"""Bytes of a file that is read."""

EXPONENT = 65537


@dataclass(frozen=True)
class SurveyConfiguration:
    """A survey as the owner signed it.

    Parameters
    ----------
    name : str
    carrier : Channel or Structure
    token_key : RSAPublicKey
        What tokens of this survey are signed by, and of no other.
    reports : int
        The most reports that one token pays for.
    text : str
        Its canonical JSON.
    signer : PublicKey
    signature : str
    """

    name: str
    carrier: Carrier
    token_key: rsa.RSAPublicKey
    reports: int
    text: str
    signer: PublicKey
    signature: str

    @cached_property
    def digest(self) -> bytes:
        """SHA-256 of its canonical JSON: what a report names."""
        return hashlib.sha256(self.text.encode()).digest()

    @property
    def epsilon(self) -> Fraction:
        """What the reports of one token lose together, of any two values."""
        return self.carrier.epsilon * self.reports

    def to_dict(self) -> dict[str, str]:
        """As it is served; the configuration itself as its canonical text."""
        return {
            "configuration": self.text,
            "digest": self.digest.hex(),
            "signer": self.signer.text,
            "signature": self.signature,
        }

    def save(self, path: str | Path) -> Path:
        """Write it to a file of JSON.

        Raises
        ------
        ArgumentError
            It cannot be written.
        """
        target = Path(path)
        written(target, (json.dumps(self.to_dict(), indent=2) + "\n").encode())
        return target

    @classmethod
    def from_dict(cls, found: Any, signer: PublicKey) -> SurveyConfiguration:
        """The configuration that was served or saved, if this owner signed it.

        Raises
        ------
        ArgumentError
            It was changed, is signed by somebody else, or is none.
        """
        try:
            text, signature = found["configuration"], found["signature"]
            if not isinstance(text, str) or not signer.signed(PURPOSE, text, signature):
                raise ArgumentError("the survey's configuration is not signed by its owner")
            body = json.loads(text)
            if canonical(body).decode() != text or body["version"] != VERSION:
                raise ArgumentError("the survey's configuration is of a version not known here")
            key = body["token_key"]
            numbers = rsa.RSAPublicNumbers(int(key["e"]), int(key["n"], 16))
            if numbers.e != EXPONENT or not 2048 <= numbers.n.bit_length() <= 4096:
                raise ArgumentError("the survey's token key must have 2048 to 4096 bits")
            carrier = carrier_from_dict(body["channel"])
            reports = check.whole("reports", body["reports"], 1, MOST_REPORTS)
            return cls(
                body["name"], carrier, numbers.public_key(), reports, text, signer, signature
            )
        except ArgumentError:
            raise
        except (KeyError, TypeError, ValueError, RecursionError, AttributeError):
            raise ArgumentError(
                "the survey's configuration lacks a field, or has another form"
            ) from None

    @classmethod
    def read(cls, path: str | Path, signer: PublicKey) -> SurveyConfiguration:
        """The configuration in a file, if this owner signed it.

        Raises
        ------
        ArgumentError
            There is none, or it is none of this owner.
        """
        place = Path(path)
        try:
            if place.stat().st_size > LARGEST:
                raise ArgumentError(f"no survey's configuration is as large as {place.name!r}")
            found = json.loads(place.read_text(encoding="utf-8"))
        except ArgumentError:
            raise
        except (OSError, ValueError, RecursionError):
            raise ArgumentError(f"no survey's configuration at {str(place)!r}") from None
        return cls.from_dict(found, signer)


def new_survey(
    name: str, channel: Carrier, key: OwnerKey, folder: str | Path, *, reports: int = 1
) -> SurveyConfiguration:
    """Make a survey: a key for its tokens, and its configuration, which the owner's key signs.

    Parameters
    ----------
    name : str
        As in ``[collect.NAME]``: letters, digits, ``-`` and ``_``.
    channel : Channel or Structure
        What devices report by.
    key : OwnerKey
        Signs the configuration. The collector needs its public half alone.
    folder : path
        Where ``NAME.config.json`` goes, and ``NAME.token.pem``, which is for the collector's eyes.
    reports : int
        The most reports that one token pays for, from 1: a device that sends several values a day
        sends them together.

    Returns
    -------
    SurveyConfiguration

    Raises
    ------
    ArgumentError
        A parameter is out of range, the channel's reports have no fixed size, or a file of that
        name is there already or cannot be written.

    Examples
    --------
    >>> from tempfile import mkdtemp
    >>> from dither import local
    >>> from dither.ledger import OwnerKey
    >>> survey = new_survey("flu", local.GRR(["yes", "no"], epsilon=1), OwnerKey.make(), mkdtemp())
    >>> survey.carrier.kind, survey.epsilon, len(survey.digest)
    ('grr', Fraction(1, 1), 32)
    """
    check_name(name)
    place = Path(folder)
    config, tokens = place / f"{name}.config.json", place / f"{name}.token.pem"
    for file in (config, tokens):
        if file.exists():
            raise ArgumentError(f"{str(file)!r} is there already; move it away first")
    number = check.whole("reports", reports, 1, MOST_REPORTS)
    _ = channel.report_bytes
    secret = rsa.generate_private_key(EXPONENT, BITS)
    numbers = secret.public_key().public_numbers()
    body = {
        "version": VERSION,
        "name": name,
        "channel": channel.to_dict(),
        "reports": number,
        "token_key": {"e": numbers.e, "n": f"{numbers.n:x}"},
    }
    text = canonical(body).decode()
    made = SurveyConfiguration.from_dict(
        {"configuration": text, "signature": key.sign(PURPOSE, text)}, key.public
    )
    pem = secret.private_bytes(form.Encoding.PEM, form.PrivateFormat.PKCS8, form.NoEncryption())
    # Files that appear under their name are readable by their owner alone.
    written(tokens, pem)
    made.save(config)
    return made


def read_token_key(path: str | Path, survey: SurveyConfiguration) -> rsa.RSAPrivateKey:
    """The secret half of a survey's token key.

    Raises
    ------
    ArgumentError
        There is none in the file, or it is that of another survey.
    """
    try:
        found = form.load_pem_private_key(Path(path).read_bytes(), None)
    except (OSError, ValueError, TypeError):
        raise ArgumentError(f"no token key at {str(path)!r}") from None
    if (
        not isinstance(found, rsa.RSAPrivateKey)
        or found.public_key().public_numbers() != survey.token_key.public_numbers()
    ):
        raise ArgumentError(f"the token key is not that of the configuration of {survey.name}")
    return found


def check_name(name: Any) -> str:
    """A name that may stand in an address.

    Raises
    ------
    ArgumentError
        It may not.
    """
    plain = isinstance(name, str) and name.isascii() and name.replace("-", "a").replace("_", "a")
    if not plain or not plain.isalnum() or len(name) > 64:
        raise ArgumentError(
            "a survey's name must be 1 to 64 letters, digits, '-' and '_', as in [collect.NAME]"
        )
    return str(name)
