"""What a release promises, in full, and how to hold it against the ledger."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from fractions import Fraction
from functools import cached_property
from pathlib import Path
from typing import Any

from dither import __version__
from dither import _checks as check
from dither._format import WIDTH, cost_text, display_text
from dither._notebook import Shown, html_table
from dither.blocks._sets import BlockSet
from dither.errors import ArgumentError, CertificateError, LedgerError
from dither.ledger import Charged, Ledger
from dither.ledger._place import LedgerSchema, read_place
from dither.ledger.quotas._reserved import without_reservations
from dither.policy._canonical import hashed, request_digest
from dither.privacy import Charge

__all__ = [
    "Certificate",
    "MeasurementRecord",
    "RequestData",
    "Verified",
    "certificate_data",
    "certified",
    "charge_dict",
    "verify",
]

FORMAT = 2
"""The version of certificates.

1. Hashed the words of `explain`.
2. Hashes data alone (``docs/decisions/0010-hashed-data.md``), and states a promise.
"""

TEXT = "text"
"""The field that says the same in words, and is outside of the digest."""


@dataclass(frozen=True, slots=True)
class Certificate:
    """The certificate of a release: plan, unit, neighbours, mechanisms, loss and ledger entry.

    It holds no answer and nothing private, so it can be published beside the release.
    """

    content: Mapping[str, Any]

    def to_dict(self) -> dict[str, Any]:
        """The certificate as plain data."""
        copy: dict[str, Any] = json.loads(self.to_json())
        return copy

    def to_json(self) -> str:
        """The certificate as JSON."""
        return json.dumps(self.content, indent=2, ensure_ascii=False)

    def save(self, path: str | Path) -> Path:
        """Write it to a file."""
        target = Path(path)
        target.write_text(self.to_json() + "\n", encoding="utf-8")
        return target

    def __str__(self) -> str:
        return "\n".join(f"{name:<8}  {text}" for name, text in self._facts())

    def __repr__(self) -> str:
        return str(self)

    def _repr_html_(self) -> str:
        return html_table(["certificate", ""], self._facts(), left=2)

    def _facts(self) -> list[tuple[str, str]]:
        """What a reader looks for first; `to_json` has all."""
        content = self.content
        text, loss, promise = (content.get(k) or {} for k in (TEXT, "loss", "promise"))
        epsilon, delta = (loss.get(k) and Fraction(loss[k]) for k in ("epsilon", "delta"))
        question = " ".join(str(text.get("sql", "")).split())
        whom = f"one {promise.get('unit')}; neighbours {promise.get('neighbours')}"
        facts = [
            ("entry", f"{content['ledger']['entry']} of ledger {content['ledger']['id']}"),
            ("question", display_text(question, 2 * WIDTH)),
            ("protects", str(text.get("protects", whom))),
            ("cost", cost_text(epsilon, delta)),
            ("digest", str(content.get("digest", ""))),
        ]
        return [(name, value) for name, value in facts if value]


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


@dataclass(frozen=True)
class RequestData:
    """What a release was asked for, as data: the question, its parameters, whom it protects.

    ``digest`` is what the ledger keeps and what a token stands for: SHA-256 of its canonical form.
    """

    question: Any
    requested: Mapping[str, str]
    promise: Mapping[str, str]
    policy: str
    learned: Sequence[Mapping[str, Any]] = ()

    @classmethod
    def in_certificate(cls, body: Mapping[str, Any]) -> RequestData:
        """The request that a certificate is of."""
        learned = tuple(body.get("learned", ()))
        return cls(body["question"], body["requested"], body["promise"], body["policy"], learned)

    @cached_property
    def digest(self) -> str:
        """What the ledger keeps."""
        return request_digest(
            self.question,
            requested=self.requested,
            promise=self.promise,
            policy=self.policy,
            learned=self.learned,
        )


@dataclass(frozen=True, slots=True)
class MeasurementRecord:
    """What a certificate says of how it was measured.

    Parameters
    ----------
    measurements : sequence of mapping
        Each with its mechanism, as plain data without floats.
    text : mapping
        The same in words, outside of the digest: ``sql``, ``plan``, ``protects``, ``unaccounted``.
    rows : int
        How many rows of a table one unit is.
    max_groups, max_rows : int
        In how many groups one unit counts, and with how many rows in each.
    keys : mapping, optional
        The rule by which keys were discovered.
    beside : mapping
        What only some certificates say.
    """

    measurements: Sequence[Mapping[str, Any]]
    text: Mapping[str, Any]
    rows: int = 1
    max_groups: int = 1
    max_rows: int = 1
    keys: Mapping[str, Any] | None = None
    beside: Mapping[str, Any] = field(default_factory=dict)


def certificate_data(
    data: RequestData,
    record: MeasurementRecord,
    *,
    charge: Charge,
    tables: Mapping[str, str],
    accounts: Iterable[str],
    blocks: Mapping[str, Any] | None = None,
) -> dict[str, Any]:
    """All that a certificate says but for its ledger entry: ``certified`` adds that."""
    learned = {"learned": [dict(fact) for fact in data.learned]} if data.learned else {}
    read = {} if blocks is None else {"blocks": dict(blocks)}
    return {
        **learned,
        **read,
        **record.beside,
        "format": FORMAT,
        "dither": __version__,
        "question": data.question,
        "promise": dict(data.promise),
        "tables": dict(tables),
        "rows": record.rows,
        "max_groups": record.max_groups,
        "max_rows": record.max_rows,
        "requested": dict(data.requested),
        "loss": charge_dict(charge),
        "measurements": [dict(one) for one in record.measurements],
        "keys": None if record.keys is None else dict(record.keys),
        "policy": data.policy,
        "request": data.digest,
        "ledger": {"accounts": list(accounts)},
        TEXT: dict(record.text),
    }


def certified(data: Mapping[str, Any], charged: Charged) -> dict[str, Any]:
    """The certificate of a release that was charged, as plain data."""
    entry = {"id": charged.ledger, "entry": charged.entry, "hash": charged.hash}
    body = {**data, "ledger": data["ledger"] | entry}
    return {**body, "digest": _digest(body)}


def charge_dict(charge: Charge) -> dict[str, str | None]:
    """A charge as exact text."""
    return {
        name: None if value is None else str(value)
        for name, value in (
            ("epsilon", charge.epsilon),
            ("delta", charge.delta),
            ("rho", charge.rho),
            ("rho_delta", charge.rho_delta),
        )
    }


def verify(
    certificate: str | Path | Mapping[str, Any] | Certificate,
    ledger: str | Path | LedgerSchema | Mapping[str, str] | Ledger,
) -> Verified:
    """Hold a certificate against the ledger that it names.

    Parameters
    ----------
    certificate : path, mapping or Certificate
    ledger : path, mapping or Ledger
        Where the ledger is, as for ``Ledger.open``, or the ledger of a session.

    Returns
    -------
    Verified
        Its ``text`` says what was checked.

    Raises
    ------
    CertificateError
        Where the certificate was changed, or its ledger, entry, accounts or loss do not agree, or
        the ledger's own chain does not hold; names the first disagreement.

    Notes
    -----
    The ledger keeps each answer with its certificate, under its chain of hashes. So a certificate
    that was changed in any field does not agree, even if its digest was made anew.
    """
    body = _content(certificate)
    if body.get("format") != FORMAT:
        raise CertificateError("the certificate's format is not one that this version reads")
    claimed = body.get("digest")
    place = read_place(ledger.place if isinstance(ledger, Ledger) else ledger)
    try:
        if claimed != _digest(body):
            raise CertificateError(
                "the certificate was changed: its digest does not match its content"
            )
        return _agreement(body, place)
    except (KeyError, TypeError, AttributeError, ArgumentError, UnicodeEncodeError):
        raise CertificateError(
            "the certificate lacks a field that every certificate has, or has it in another form"
        ) from None


def _agreement(body: Mapping[str, Any], ledger: Path | LedgerSchema) -> Verified:
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
        issued = json.loads(stored)["certificate"]
    except ValueError:
        raise CertificateError("the ledger's answer to the entry is not a release") from None
    for name in {**issued, **body}:
        if body.get(name) != issued.get(name):
            raise CertificateError(
                f"the certificate's {name!r} is not what was issued with the answer"
            )
    return Verified(
        entry.number,
        f"the certificate agrees with entry {entry.number} of the ledger; "
        f"{chain.entries} entries, chain whole",
    )


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


def _content(certificate: str | Path | Mapping[str, Any] | Certificate) -> dict[str, Any]:
    if isinstance(certificate, Certificate):
        return certificate.to_dict()
    if isinstance(certificate, Mapping):
        return dict(certificate)
    path = Path(certificate)
    if not path.is_file():
        raise CertificateError(f"no certificate at {str(certificate)!r}")
    try:
        body = json.loads(path.read_text(encoding="utf-8"))
    except (ValueError, UnicodeDecodeError):
        raise CertificateError("the certificate is not valid JSON") from None
    if not isinstance(body, dict):
        raise CertificateError("the certificate is not a JSON object")
    return body


def _digest(body: Mapping[str, Any]) -> str:
    """SHA-256 of what the certificate says as data; its words may be said otherwise."""
    return hashed("certificate", {k: v for k, v in body.items() if k not in ("digest", TEXT)})
