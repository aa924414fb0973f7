"""What a release promises, in full: its certificate. `dither.session._verify` checks it."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from fractions import Fraction
from functools import cached_property
from pathlib import Path
from typing import Any

from dither import __version__
from dither._format import WIDTH, cost_text, display_text
from dither._notebook import html_table
from dither.ledger import Charged
from dither.policy._canonical import hashed, request_digest
from dither.policy.dummies import NOTICE
from dither.privacy import Charge
from dither.session._answer import check_answer, read_answer, save_answer
from dither.session._code import UNKNOWN, code_version
from dither.session._signer import Signer
from dither.session.dummies._marked import DUMMY

__all__ = [
    "Certificate",
    "MeasurementRecord",
    "RequestData",
    "certificate_data",
    "certified",
    "charge_dict",
    "digest_of",
]

FORMAT = 3
"""The version of certificates.

1. Hashed the words of `explain`.
2. Hashes data alone (``docs/decisions/0010-hashed-data.md``), and states a promise.
3. Has the hash of the answer, the versions of the data and of the code, and may be signed.
"""

TEXT = "text"
"""The field that says the same in words, and is outside of the digest."""

_AFTER = ("digest", TEXT, "signature")
"""Fields that the digest does not cover; a signature covers the first two."""


@dataclass(frozen=True, slots=True)
class Certificate:
    """The certificate of a release: plan, unit, neighbours, mechanisms, loss and ledger entry.

    It holds no answer and nothing private, so it can be published beside the release. Whoever
    guesses the answer can test the guess by its hash: it is for whom the answer is for.
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

    def save_answer(self, found: Any, path: str | Path) -> Path:
        """Write the answer that this is of to a file of JSON, as `dither.verify` reads it.

        Of a table that is the table with its intervals; of a model, of marginals, counts and
        distances the noisy numbers that all else follows from.

        Parameters
        ----------
        found : what the release gave
        path : path

        Raises
        ------
        CertificateError
            It is another answer.
        ArgumentError
            It is nothing that was released, or the file cannot be written.

        Examples
        --------
        >>> import polars as pl
        >>> from tempfile import mkdtemp
        >>> import dither as dt
        >>> place = mkdtemp()
        >>> policy = {
        ...     "budget": {"epsilon": 1, "ledger": f"{place}/visits.ledger"},
        ...     "tables": {"visits": {"source": "visits.parquet"}},
        ... }
        >>> with dt.open(policy, sources={"visits": pl.DataFrame({"age": [41, 27]})}) as session:
        ...     found = session.sql("SELECT COUNT(*) AS n FROM visits").release(1)
        >>> saved = found.certificate.save_answer(found, f"{place}/answer.json")
        >>> dt.verify(found.certificate, f"{place}/visits.ledger", answer=saved).ok
        True
        """
        if "answer" in self.content:
            check_answer(self.content["answer"], read_answer(found))
        return save_answer(found, path)

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
            ("dummy", str(content.get(DUMMY, ""))),
            ("entry", f"{content['ledger']['entry']} of ledger {content['ledger']['id']}"),
            ("question", display_text(question, 2 * WIDTH)),
            ("protects", str(text.get("protects", whom))),
            ("cost", cost_text(epsilon, delta)),
            ("digest", str(content.get("digest", ""))),
            ("signer", str(content.get("signer", ""))),
        ]
        return [(name, value) for name, value in facts if value]


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
    blocks: Mapping[str, Any] | None = None

    @classmethod
    def in_certificate(cls, body: Mapping[str, Any]) -> RequestData:
        """The request that a certificate is of."""
        learned = tuple(body.get("learned", ()))
        return cls(
            body["question"],
            body["requested"],
            body["promise"],
            body["policy"],
            learned,
            body.get("blocks"),
        )

    @cached_property
    def digest(self) -> str:
        """What the ledger keeps."""
        return request_digest(
            self.question,
            requested=self.requested,
            promise=self.promise,
            policy=self.policy,
            learned=self.learned,
            blocks=self.blocks,
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
    dummy: bool = False,
) -> dict[str, Any]:
    """All that a certificate says but for its ledger entry: ``certified`` adds that.

    ``dummy``: what it certifies is of dummy rows.
    """
    learned = {"learned": [dict(fact) for fact in data.learned]} if data.learned else {}
    read = {} if data.blocks is None else {"blocks": dict(data.blocks)}
    of_dummies = {DUMMY: NOTICE} if dummy else {}
    return {
        **of_dummies,
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


def certified(
    data: Mapping[str, Any],
    charged: Charged,
    answer: Mapping[str, Any] | None = None,
    versions: Mapping[str, str] | None = None,
    signer: Signer | None = None,
) -> dict[str, Any]:
    """The certificate of a release that was charged, as plain data.

    Parameters
    ----------
    data : mapping
        As `certificate_data` made it.
    charged : Charged
    answer : mapping, optional
        The hash of what was released; None of a rehearsal, in which nothing was.
    versions : mapping of str to str, optional
        By table: the version of its data.
    signer : Signer, optional
        The owner's key, where the session has it.
    """
    entry = {"id": charged.ledger, "entry": charged.entry, "hash": charged.hash}
    code = code_version(sources=signer is not None)
    body = {
        **data,
        "ledger": data["ledger"] | entry,
        "answer": None if answer is None else dict(answer),
        "data": dict.fromkeys(data["tables"], UNKNOWN) | dict(versions or {}),
        "code": code,
    }
    if signer is not None:
        body["signer"] = signer.key.public.text
    body["digest"] = digest_of(body)
    if signer is not None:
        body["signature"] = signer.signature(body)
    return body


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


def digest_of(body: Mapping[str, Any]) -> str:
    """SHA-256 of what the certificate says as data; its words may be said otherwise."""
    return hashed("certificate", {k: v for k, v in body.items() if k not in _AFTER})
