"""Does a certificate hold: against its ledger, the owner's key, and the answer it was issued for.

The key alone needs no ledger: whoever has the owner's public key checks a release that was handed
to them. The ledger alone says that what the certificate claims was charged.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from dither import _checks as check
from dither._notebook import Shown
from dither.blocks._sets import BlockSet
from dither.errors import ArgumentError, CertificateError, LedgerError
from dither.ledger import Ledger
from dither.ledger._place import LedgerSchema, read_place
from dither.ledger._signing import OwnerKey, PublicKey
from dither.ledger.quotas._reserved import without_reservations
from dither.policy.dummies import NOTICE
from dither.privacy import Charge
from dither.session._answer import answer_hash, check_answer, read_answer
from dither.session._certificate import FORMAT, Certificate, RequestData, digest_of
from dither.session._signer import CERTIFICATE, public_key, signed_text
from dither.session.dummies._marked import DUMMY

__all__ = ["Verified", "content_of", "verify"]

FORMATS = (2, FORMAT)


@dataclass(frozen=True, slots=True)
class Verified(Shown):
    """What ``verify`` found to agree; ``str()`` says it in a line."""

    entry: int
    text: str
    ok: bool = True

    def __str__(self) -> str:
        return self.text

    def __repr__(self) -> str:
        return self.text


def verify(
    certificate: str | Path | Mapping[str, Any] | Certificate,
    ledger: str | Path | LedgerSchema | Mapping[str, str] | Ledger | None = None,
    *,
    key: str | Path | PublicKey | OwnerKey | None = None,
    answer: Any = None,
) -> Verified:
    """Hold a certificate against the ledger that it names, the owner's key, and an answer.

    Parameters
    ----------
    certificate : path, mapping or Certificate
    ledger : path, mapping or Ledger, optional
        Where the ledger is, as for ``Ledger.open``, or the ledger of a session. May be left out
        where there is a key.
    key : path, text or PublicKey, optional
        The owner's public key, or the file of it. Then the certificate must be signed by it.
    answer : path, frame, mapping, or what a release gave, optional
        The answer that the certificate must be of: a table as CSV, Parquet or JSON, or a frame,
        else the file that it was saved to.

    Returns
    -------
    Verified
        Its ``text`` says what was checked.

    Raises
    ------
    CertificateError
        Where the certificate or the answer was changed, the certificate is signed by nobody or by
        another key, or its ledger, entry, accounts or loss do not agree, or the ledger's own chain
        does not hold; names the first disagreement.
    KeyFileError
        The key cannot be read.
    ArgumentError
        Neither a ledger nor a key is given, or the answer cannot be read.

    Notes
    -----
    The ledger keeps each answer with its certificate, under its chain of hashes. So a certificate
    that was changed in any field does not agree, even if its digest was made anew. A signature
    covers all fields, the words included, and with them the hash of the answer.

    A signature says that the owner's process issued the certificate. It does not say that the
    process was honest: whoever holds the owner's key can sign anything.
    """
    if ledger is None and key is None:
        raise ArgumentError(
            "give the ledger, the owner's public key (key=), or both: without either nobody "
            "vouches for a certificate"
        )
    body = content_of(certificate)
    if body.get("format") not in FORMATS or isinstance(body["format"], bool):
        raise CertificateError("the certificate's format is not one that this version reads")
    owner = None if key is None else public_key(key)
    place = None
    if ledger is not None:
        place = read_place(ledger.place if isinstance(ledger, Ledger) else ledger)
    held = None if answer is None else read_answer(answer)
    said = []
    try:
        if body.get("digest") != digest_of(body):
            raise CertificateError(
                "the certificate was changed: its digest does not match its content"
            )
        if owner is not None:
            said.append(_signed(body, owner))
        stored = None
        if place is not None:
            text, stored = _agreement(body, place)
            said.append(text)
        if DUMMY in body:
            said.insert(0, f"it is of {NOTICE}")
        if answer is not None:
            said.append(_answered(body, stored, held))
        number = int(body["ledger"]["entry"])
    except (KeyError, TypeError, ValueError, AttributeError):
        raise CertificateError(
            "the certificate lacks a field that every certificate has, or has it in another form"
        ) from None
    return Verified(number, "; ".join(said))


def _signed(body: Mapping[str, Any], key: PublicKey) -> str:
    if body["format"] == 2:
        raise CertificateError(
            "the certificate is of format 2, which nobody signs: check it against its ledger"
        )
    if "signature" not in body:
        raise CertificateError(
            "the certificate is signed by nobody: check it against its ledger, or let the owner "
            "release with their key ([owner] key in the policy)"
        )
    signer = body.get("signer")
    if signer != key.text:
        raise CertificateError(f"the certificate is signed by another key than {key.fingerprint}")
    if not key.signed(CERTIFICATE, signed_text(body), body["signature"]):
        raise CertificateError("the certificate was changed: the owner's signature is not of it")
    if RequestData.in_certificate(body).digest != body["request"]:
        raise CertificateError("the certificate's question is not the one that was charged")
    return f"the certificate is signed by the owner's key {key.fingerprint}"


def _answered(body: Mapping[str, Any], stored: Mapping[str, Any] | None, answer: Any) -> str:
    if body["format"] != 2:
        check_answer(body["answer"], answer)
    elif stored is None:
        raise CertificateError(
            "the certificate is of format 2, which has no hash of the answer: check it against "
            "its ledger, which has the answer itself"
        )
    else:
        check_answer(answer_hash(stored), answer)
    return "the answer is the one that it was issued for"


def _agreement(
    body: Mapping[str, Any], ledger: Path | LedgerSchema
) -> tuple[str, Mapping[str, Any]]:
    """What agrees, and the answer that the ledger has."""
    named = body["ledger"]
    with Ledger.open(ledger, create=False) as book:
        chain = book.verify()
        if not chain.ok:
            raise CertificateError(f"the ledger does not hold: {chain.describe()}")
        if book.id != named["id"]:
            raise CertificateError("the certificate names another ledger")
        try:
            entry = book.entry(named["entry"])
        except LedgerError:
            raise CertificateError("the ledger has no such entry") from None
        for fact in body.get("learned", ()):
            if book.entry(fact["entry"]).hash != fact["hash"]:
                raise CertificateError("what the release rests on was not learned in this ledger")
        stored = next((e.answer for e in book.entries() if e.answers == entry.number), None)
    if entry.hash != named["hash"]:
        raise CertificateError("the ledger's entry is not the one that the certificate names")
    if without_reservations(entry.accounts) != set(named["accounts"]):
        raise CertificateError("the ledger charged other accounts than the certificate says")
    if _blocks(body) != entry.blocks:
        raise CertificateError("the ledger charged other blocks than the certificate says")
    if entry.request != body["request"]:
        raise CertificateError("the ledger's entry is of another request")
    if RequestData.in_certificate(body).digest != body["request"]:
        raise CertificateError("the certificate's question is not the one that was charged")
    if entry.promise is None or entry.promise.to_dict() != body["promise"]:
        raise CertificateError("the ledger's entry promises something else than the certificate")
    loss = Charge(**{k: _fraction(v) for k, v in body["loss"].items()})
    if entry.charge is None or not _covers(entry.charge, loss):
        raise CertificateError("the ledger charged less than the certificate's loss")
    if stored is None:
        raise CertificateError(
            "the ledger holds no answer for the entry, so nothing says what was released under it"
        )
    try:
        content = json.loads(stored)
        issued = content["certificate"]
    except ValueError:
        raise CertificateError("the ledger's answer to the entry is not a release") from None
    for name in {**issued, **body}:
        if body.get(name) != issued.get(name):
            raise CertificateError(
                f"the certificate's {name!r} is not what was issued with the answer"
            )
    if body["format"] != 2 and answer_hash(content) != body["answer"]:
        raise CertificateError("the ledger's answer is not the one that the certificate is of")
    text = (
        f"the certificate agrees with entry {entry.number} of the ledger; "
        f"{chain.entries} entries, chain whole"
    )
    return text, content


def _blocks(body: Mapping[str, Any]) -> BlockSet | None:
    held = body.get("blocks")
    return None if held is None else BlockSet.from_dict(held)


def _fraction(text: str | None) -> Any:
    return None if text is None else check.exact("loss", text)


def _covers(charged: Charge, loss: Charge) -> bool:
    pairs = (
        (charged.epsilon, loss.epsilon),
        (charged.delta, loss.delta),
        (charged.rho, loss.rho),
        (charged.rho_delta, loss.rho_delta),
    )
    return all(c is None or (n is not None and c >= n) for c, n in pairs)


def content_of(certificate: str | Path | Mapping[str, Any] | Certificate) -> dict[str, Any]:
    """A certificate as plain data; of the JSON of a release, the one that it holds.

    Raises
    ------
    CertificateError
        There is none, or it is none.
    """
    if isinstance(certificate, Certificate):
        return certificate.to_dict()
    if isinstance(certificate, Mapping):
        return dict(certificate)
    path = Path(certificate)
    if not path.is_file():
        raise CertificateError(f"no certificate at {str(certificate)!r}")
    try:
        body = json.loads(path.read_text(encoding="utf-8"))
    except (ValueError, RecursionError):
        raise CertificateError("the certificate is not valid JSON") from None
    if not isinstance(body, dict):
        raise CertificateError("the certificate is not a JSON object")
    inside = body.get("certificate")
    return inside if isinstance(inside, dict) and "format" not in body else body
