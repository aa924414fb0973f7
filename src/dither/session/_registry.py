"""An entry for the public registry of deployments, from what is public of releases.

The fields are those of the registry's own schema (*Differential Privacy Deployments Registry*, its
records of 2026), which goes back to Nanayakkara, Ghazi and Vadhan, "Practitioners' perspectives on
a differential privacy deployment registry" (arXiv:2509.13509). What dither cannot know, such as
what a release is meant for, is null, and listed to be filled in.
"""

from __future__ import annotations

import json
import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from pathlib import Path
from typing import Any, TypeAlias

from dither._files import written
from dither._format import loss_text
from dither._notebook import Shown
from dither.errors import ArgumentError, CertificateError, nearest
from dither.ledger import Ledger
from dither.ledger._place import LedgerSchema, read_place
from dither.policy._policy import Policy, read_policy
from dither.privacy import Promise
from dither.privacy.accounts._budget import BudgetFilter
from dither.session._certificate import TEXT, Certificate, digest_of
from dither.session._verify import content_of, verify

__all__ = ["RegistryEntry", "registry_entry"]


@dataclass(frozen=True)
class RegistryEntry(Shown):
    """An entry, and what is left to be filled in.

    Parameters
    ----------
    content : mapping
        The record, as plain data. Its JSON is YAML as well.
    missing : tuple of str
        Fields that are null, such as ``"basic.intended_use"``.
    """

    content: Mapping[str, Any]
    missing: tuple[str, ...]

    def to_json(self) -> str:
        """The record as JSON, which is YAML too."""
        return json.dumps(self.content, indent=2, ensure_ascii=False)

    def save(self, path: str | Path) -> Path:
        """Write it to a file; all of it or nothing."""
        target = Path(path)
        written(target, (self.to_json() + "\n").encode("utf-8"))
        return target

    def __str__(self) -> str:
        left = "nothing" if not self.missing else ", ".join(self.missing)
        return f"{self.to_json()}\nto be filled in: {left}"

    def __repr__(self) -> str:
        return str(self)


Given: TypeAlias = str | Path | Mapping[str, Any] | Certificate


def registry_entry(
    certificates: Given | Sequence[Given],
    *,
    policy: str | Path | Mapping[str, Any] | None = None,
    ledger: str | Path | LedgerSchema | Mapping[str, str] | Ledger | None = None,
    fields: Mapping[str, Any] | None = None,
) -> RegistryEntry:
    """Describe releases in the form of the public registry of deployments.

    Parameters
    ----------
    certificates : path, mapping, Certificate, or several
        Of the releases that the entry is about; all protect the same units.
    policy : path or mapping, optional
        The policy that they were released under: its declared facts and caps.
    ledger : path, mapping or Ledger, optional
        Where they were charged; each certificate is verified against it. It dates the releases, and
        says what the account has spent.
    fields : mapping of str to value, optional
        What dither cannot know, or says otherwise: ``{"basic.intended_use": "..."}``.

    Returns
    -------
    RegistryEntry
        Of certificates, the policy and the ledger's totals alone, all of which may be published:
        nothing in it is read from data.

    Raises
    ------
    CertificateError
        A certificate was changed, does not agree with the ledger, or is of another policy.
    ArgumentError
        The certificates protect different units, or a field is none.

    Examples
    --------
    >>> import polars as pl
    >>> from tempfile import mkdtemp
    >>> import dither as dt
    >>> policy = {
    ...     "budget": {"epsilon": 1, "ledger": mkdtemp() + "/visits.ledger"},
    ...     "tables": {"visits": {"source": "visits.parquet"}},
    ... }
    >>> with dt.open(policy, sources={"visits": pl.DataFrame({"age": [41, 27]})}) as session:
    ...     found = session.sql("SELECT COUNT(*) AS n FROM visits").release(0.5)
    >>> entry = registry_entry(found.certificate, policy=policy)
    >>> entry.content["deployment"]["privacy_loss"]["privacy_parameters"]
    {'epsilon': 0.5, 'delta': 0.0, 'rho': 0.125}
    >>> "basic.intended_use" in entry.missing
    True
    """
    several = certificates if isinstance(certificates, list | tuple) else [certificates]
    bodies = [_checked(one) for one in several]
    if not bodies:
        raise ArgumentError("certificates must hold at least one")
    promises = {json.dumps(body["promise"], sort_keys=True) for body in bodies}
    if len(promises) > 1:
        raise ArgumentError(
            "the certificates protect different units, whose losses are not added: make an entry "
            "for each of them"
        )
    read = None if policy is None else read_policy(policy)
    for body in bodies:
        if read is not None and body["policy"] != read.digest:
            raise CertificateError("a certificate is of another policy than the one that is given")
    known = _Known(bodies, read, None if ledger is None else _told(bodies, ledger))
    deployment = known.deployment()
    given = dict(fields or {})
    slug = given.pop("url_slug", None)
    for name, value in given.items():
        _put(deployment, str(name), value)
    missing = tuple(_missing(deployment))
    content = {
        "url_slug": slug,
        "status": "Draft",
        "tier": _tier(missing),
        "deployment": deployment,
    }
    return RegistryEntry(content, missing if slug else ("url_slug", *missing))


def _checked(given: Any) -> dict[str, Any]:
    body = content_of(given)
    try:
        if body["digest"] != digest_of(body):
            raise CertificateError(
                "the certificate was changed: its digest does not match its content"
            )
        Promise.from_dict(body["promise"])
        for name in ("policy", "tables", "loss", "measurements", "ledger"):
            body[name]
        _loss(body)
    except (AttributeError, KeyError, TypeError, ValueError):
        raise CertificateError(
            "the certificate lacks a field that every certificate has, or has it in another form"
        ) from None
    return body


@dataclass(frozen=True)
class _Ledger:
    """What a ledger tells of releases and their account."""

    first: str
    charges: int
    account: str
    spent: str
    left: str


def _told(bodies: Sequence[Mapping[str, Any]], ledger: Any) -> _Ledger:
    place = read_place(ledger.place if isinstance(ledger, Ledger) else ledger)
    for body in bodies:
        verify(body, place)
    account = str(bodies[0]["ledger"]["accounts"][0])
    with Ledger.open(place, create=False) as book:
        times = [book.entry(body["ledger"]["entry"]).time for body in bodies]
        balance = book.balance(account)
        charges = sum(entry.kind == "charge" for entry in book.entries(account))
    left = balance.remaining.describe()
    return _Ledger(min(times).date().isoformat(), charges, account, balance._spent, left)


@dataclass(frozen=True)
class _Known:
    bodies: Sequence[Mapping[str, Any]]
    policy: Policy | None
    ledger: _Ledger | None

    def deployment(self) -> dict[str, Any]:
        """The record, with null where nothing is known."""
        pure = all(not _loss(body)["delta"] for body in self.bodies)
        return {
            "basic": {
                "name": None,
                "data_curators": None,
                "intended_use": None,
                "data_product_type": self._product(),
                "data_product_region": None,
                "description": "\n".join(dict.fromkeys(map(_described, self.bodies))),
                "publication_date": None if self.ledger is None else self.ledger.first,
                "data_product_sector": None,
            },
            "dp_variant": {
                "variant_name": "Pure DP" if pure else "Approximate DP",
                "data_domain": self._domain(),
                "unprotected_quantities": self._unprotected(),
            },
            "privacy_loss": {
                "privacy_unit": self._promise.unit,
                "privacy_unit_details": self._unit(),
                "privacy_parameters": self._parameters(),
                "privacy_parameters_details": self._details(),
            },
            "deployment_model": {
                "model_name": "Central",
                "model_name_details": "The curator holds the data, and adds the noise.",
                "actors": (
                    "The curator holds the data and runs dither on it, and is trusted. Analysts "
                    "and readers see what is released, and are not trusted: the promise holds "
                    "against all of them together, whatever else they know."
                ),
                "release_type": self._releases(),
                "release_type_details": (
                    "All releases about these units are added up in accounts, by stretches of "
                    "time where the policy says so. A release that would go over a cap is "
                    "refused, and no cap is refilled."
                ),
                "data_source_type": None,
                "data_source_type_details": None,
                "access_type": "Interactive" if self._analysts else None,
                "access_type_details": self._access(),
            },
            "accounting": {
                "post_processing": (
                    "Estimates and intervals follow from noisy measurements. So do the order of "
                    "groups, groups that are left out by released values, and replays."
                ),
                "composition": (
                    "Exact fractions, rounded up, in a ledger: basic composition, or zCDP "
                    "converted at the account's delta, whichever leaves more. Both hold where "
                    "each question depends on earlier answers."
                ),
            },
            "implementation": {
                "preprocessing_and_hyperparameter_tuning": self._learned(),
                "mechanisms": self._mechanisms(),
                "justification": None,
            },
            "administrative": {
                "sources": None,
                "registry_authors": None,
                "notes": self._notes(),
            },
        }

    @property
    def _promise(self) -> Promise:
        return Promise.from_dict(self.bodies[0]["promise"])

    @property
    def _analysts(self) -> bool:
        return self.policy is not None and bool(self.policy.quotas.known)

    def _product(self) -> str:
        kinds = {_kind(body["question"]) for body in self.bodies}
        return kinds.pop() if len(kinds) == 1 else "Summary statistics"

    def _domain(self) -> str:
        if self.policy is None:
            tables = sorted({name for body in self.bodies for name in body["tables"]})
            return f"All tables with the schemas of {', '.join(tables)}."
        read = {name for body in self.bodies for name in body["tables"]}
        lines = []
        for name in sorted(read & self.policy.tables.keys()):
            columns = ", ".join(sorted(self.policy.tables[name].columns)) or "none"
            lines.append(f"- {name}: columns of which facts are declared: {columns}")
        return "All tables with the schemas of these:\n" + "\n".join(lines)

    def _unprotected(self) -> str:
        public = [] if self.policy is None else self.policy.tables.values()
        names = ", ".join(sorted(table.name for table in public if not table.private))
        beside = f" Tables that are public: {names}." if names else ""
        size = (
            "" if self._promise.neighbours.value == "add-remove" else " So is the number of rows."
        )
        return (
            "What the policy declares is public: names and types of columns, bounds, declared "
            f"values, limits.{size}{beside}"
        )

    def _unit(self) -> str:
        limits = [
            f"groups of one unit {body['max_groups']}, rows in each {body['max_rows']}"
            for body in self.bodies
        ]
        each = "; ".join(dict.fromkeys(limits))
        tables = sorted({f"{n}: {by}" for body in self.bodies for n, by in body["tables"].items()})
        return (
            f"Neighbouring datasets differ by {self._promise.describe()}. Whose a row is: "
            f"{'; '.join(tables)}. Limits that the noise is computed from: {each}."
        )

    def _parameters(self) -> dict[str, float]:
        found = {}
        losses = [_loss(body) for body in self.bodies]
        for name in ("epsilon", "delta", "rho"):
            amounts = [loss[name] for loss in losses]
            if name == "rho" and any(loss["rho_delta"] for loss in losses):
                continue
            known = [amount for amount in amounts if amount is not None]
            if len(known) == len(amounts):
                found[name] = _above(sum(known, Fraction(0)))
        return found

    def _details(self) -> str:
        lines = [
            "The parameters are those of all releases here, by basic composition (rho: zCDP).",
            *(f"- {_described(body)}: {_amounts(_loss(body))}" for body in self.bodies),
        ]
        if self.policy is not None:
            lines.append(f"The cap of the account: {self._caps}.")
        if self.ledger is not None:
            lines.append(
                f"By now the account {self.ledger.account!r} has spent {self.ledger.spent}, and "
                f"has left {self.ledger.left}."
            )
        return "\n".join(lines)

    @property
    def _caps(self) -> str:
        policy = self.policy
        assert policy is not None
        each = _cap(policy.budget)
        if not policy.per_block:
            return each
        lifetime = (
            "" if policy.lifetime is None else f", and {_cap(policy.lifetime)} of all together"
        )
        return f"{each} of each stretch of time in which a unit has rows{lifetime}"

    def _releases(self) -> str | None:
        if len(self.bodies) > 1 or (self.ledger is not None and self.ledger.charges > 1):
            return "Many releases"
        return None if self.ledger is None else "One release"

    def _access(self) -> str | None:
        if not self._analysts:
            return None
        return (
            "Analysts have quotas of one budget. Nothing rests on their not talking to each other."
        )

    def _learned(self) -> str | None:
        facts = {
            json.dumps(fact, sort_keys=True): fact
            for body in self.bodies
            for fact in body.get("learned", ())
        }
        if not facts:
            return None
        lines = [
            f"- {fact['kind']} of {fact.get('column', fact['table'])}: ledger entry "
            f"{fact['entry']}, epsilon {fact['epsilon']}, delta {fact['delta']}"
            for fact in facts.values()
        ]
        return "Learned from the data, charged to the same account:\n" + "\n".join(lines)

    def _mechanisms(self) -> str:
        measured = [one for body in self.bodies for one in body["measurements"]]
        # What is public is measured without noise, by no mechanism.
        used = dict.fromkeys(_mechanism(o) for o in measured if o.get("mechanism") != "none")
        versions = dict.fromkeys(
            f"dither {body.get('dither')}, commit {body.get('code', {}).get('commit', 'unknown')}"
            for body in self.bodies
        )
        return "\n".join(
            [
                *(f"- {line}" for line in used),
                f"- Implemented by {'; '.join(versions)}.",
                "- Measurements are integers, and so is the noise, which is sampled exactly: no "
                "floating-point number carries privacy.",
                "- A release is charged, durably, before a row is read. Nothing is refunded.",
                "- The time that a question takes is not protected.",
            ]
        )

    def _notes(self) -> str:
        return "\n".join(
            f"- certificate {body['digest']}, entry {body['ledger']['entry']} of ledger "
            f"{body['ledger']['id']}"
            + (f", signed by {body['signer']}" if "signer" in body else "")
            for body in self.bodies
        )


def _cap(budget: BudgetFilter) -> str:
    return _amounts({"epsilon": budget.epsilon, "delta": budget.delta})


def _loss(body: Mapping[str, Any]) -> dict[str, Fraction | None]:
    return {k: None if v is None else Fraction(v) for k, v in body["loss"].items()}


def _above(amount: Fraction) -> float:
    """The nearest float that claims no less."""
    found = float(amount)
    return found if Fraction(found) >= amount else math.nextafter(found, math.inf)


def _amounts(loss: Mapping[str, Fraction | None]) -> str:
    names = ("epsilon", "delta", "rho")
    shown = [f"{name} {loss_text(loss[name])}" for name in names if loss.get(name) is not None]
    return ", ".join(shown)


def _described(body: Mapping[str, Any]) -> str:
    """The question in words."""
    told = " ".join(str((body.get(TEXT) or {}).get("sql", "")).split())
    return told or f"a release about {', '.join(sorted(body['tables']))}"


def _kind(question: Any) -> str:
    """The registry's word for what is released."""
    asked = question.get("asked") if isinstance(question, Mapping) else None
    what = asked.get("what") if isinstance(asked, Mapping) else None
    if what == "synthetic data":
        return "Synthetic data"
    known = (None, "marginals", "ranges", "hierarchy", "distances")
    return "Summary statistics" if what in known else "Machine learning model"


def _mechanism(measured: Mapping[str, Any]) -> str:
    parameters = [
        f"{name} {measured[name]}"
        for name in ("scale", "sigma2", "threshold", "epsilon", "rho")
        if isinstance(measured.get(name), str)
    ]
    return " ".join([str(measured.get("mechanism", "unnamed")), *parameters])


def _paths(value: Any, within: str) -> Iterator[str]:
    for name, part in value.items():
        path = f"{within}.{name}" if within else str(name)
        if isinstance(part, Mapping) and name != "privacy_parameters":
            yield from _paths(part, path)
        else:
            yield path


def _at(deployment: Mapping[str, Any], path: str) -> Any:
    section, _, name = path.partition(".")
    return deployment[section][name]


def _missing(deployment: Mapping[str, Any]) -> Iterator[str]:
    yield from (path for path in _paths(deployment, "") if _at(deployment, path) is None)


def _put(deployment: dict[str, Any], path: str, value: Any) -> None:
    known = [*_paths(deployment, ""), "url_slug"]
    if path not in known:
        raise ArgumentError(f"fields: the registry has no field {path!r}" + nearest(path, known))
    section, _, name = path.partition(".")
    deployment[section][name] = value


def _tier(missing: Sequence[str]) -> int:
    """How complete a record is, as the registry counts it."""
    if any(path.startswith("basic.") for path in missing):
        return 1
    return 2 if missing else 3
