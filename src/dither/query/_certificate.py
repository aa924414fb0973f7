"""What a release promises, in full, and how to hold it against the ledger."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from pathlib import Path
from typing import Any

from dither import __version__
from dither import _checks as check
from dither._format import WIDTH, cost_text, display_text
from dither._notebook import Shown, html_table
from dither.errors import ArgumentError, CertificateError, LedgerError
from dither.ledger import Charged, Ledger
from dither.ledger._place import LedgerSchema, read_place
from dither.policy._canonical import form, hashed, request_digest
from dither.policy._facts import Fact
from dither.privacy import Charge
from dither.query._explain import UNACCOUNTED, explain, protects
from dither.query._noise import NoisePlan

__all__ = ["Certificate", "Request", "Verified", "certificate_data", "certified", "verify"]

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
class Request:
    """What a release was asked for, as data: the question, its parameters, whom it protects.

    ``digest`` is what the ledger keeps and what a token stands for: SHA-256 of its canonical form.
    """

    question: Any
    requested: Mapping[str, str]
    promise: Mapping[str, str]
    policy: str
    learned: Sequence[Mapping[str, Any]] = ()

    @classmethod
    def of(
        cls,
        noise_plan: NoisePlan,
        confidence: float,
        policy: str,
        learned: Sequence[Mapping[str, Any]] = (),
    ) -> Request:
        """The request of a plan with its noise, and the learned facts that it rests on."""
        requested = {
            "epsilon": str(noise_plan.epsilon),
            "delta": str(noise_plan.delta),
            "confidence": str(check.exact("confidence", confidence)),
        }
        question, promise = form(noise_plan.plan.query), noise_plan.promise.to_dict()
        return cls(question, requested, promise, policy, tuple(learned))

    @classmethod
    def in_certificate(cls, body: Mapping[str, Any]) -> Request:
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


def certificate_data(
    noise_plan: NoisePlan,
    request: Request,
    *,
    sql: str,
    tables: Mapping[str, str],
    accounts: Iterable[str],
    facts: Sequence[Fact] = (),
) -> dict[str, Any]:
    """All that a certificate says but for its ledger entry: ``certified`` adds that."""
    plan = noise_plan.plan
    allocation = noise_plan.allocation
    keys = None if allocation is None else allocation.keys
    beside: dict[str, Any] = {}
    if request.learned:
        beside["learned"] = [dict(fact) for fact in request.learned]
    if plan.job.sets:
        beside["max_groups_of_each_set"] = plan.job.each
    return beside | {
        "format": FORMAT,
        "dither": __version__,
        "question": request.question,
        "promise": dict(request.promise),
        "tables": dict(tables),
        "rows": noise_plan.rows,
        "max_groups": plan.job.max_groups,
        "max_rows": plan.job.max_rows,
        "requested": dict(request.requested),
        "loss": charge_dict(noise_plan.charge),
        "measurements": _measurements(noise_plan),
        "keys": None if keys is None else keys.parameters(),
        "policy": request.policy,
        "request": request.digest,
        "ledger": {"accounts": list(accounts)},
        TEXT: {
            "sql": sql,
            "plan": explain(plan, noise_plan, [fact.text for fact in facts]).to_dict(),
            "protects": protects(plan),
            "unaccounted": UNACCOUNTED,
        },
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


def _measurements(noise_plan: NoisePlan) -> list[dict[str, Any]]:
    found = []
    plan = noise_plan.plan
    for i, (measurement, bound) in enumerate(
        zip(plan.job.measurements, plan.sensitivities, strict=True)
    ):
        entry: dict[str, Any] = {"measures": form(measurement)}
        levels = noise_plan.trees[i].levels if i in noise_plan.trees else 1
        entry |= {
            "l1": str(bound.l1 * levels),
            "l2_squared": str(bound.l2_squared * levels),
            "levels": levels,
        }
        noise = noise_plan.noises[i] or noise_plan.choices.get(i)
        if noise is None or noise_plan.allocation is None:
            entry |= {"mechanism": "none", "loss": charge_dict(Charge())}
        else:
            share = noise_plan.allocation[str(i)]
            entry |= {**noise.parameters(), "loss": charge_dict(share.charge)}
        found.append(entry)
    return found


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
    if set(entry.accounts) != set(named["accounts"]):
        raise CertificateError("the ledger charged other accounts than the certificate says")
    if entry.request != body["request"]:
        raise CertificateError("the ledger's entry is of another request")
    if Request.in_certificate(body).digest != body["request"]:
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
    for field in {**issued, **body}:
        if body.get(field) != issued.get(field):
            raise CertificateError(
                f"the certificate's {field!r} is not what was issued with the answer"
            )
    return Verified(
        entry.number,
        f"the certificate agrees with entry {entry.number} of the ledger; "
        f"{chain.entries} entries, chain whole",
    )


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
