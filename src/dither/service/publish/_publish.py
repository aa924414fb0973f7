"""Publishing: what was released becomes tables, with intervals and the certificate's id."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from dither._notebook import Shown
from dither.errors import ArgumentError, LedgerError, PolicyError
from dither.ledger import Ledger
from dither.policy._policy import Policy, read_policy
from dither.policy._publishing import EVERYBODY
from dither.service.publish._forms import MadeTable, form_of, made_of
from dither.service.publish._rows import (
    Given,
    certificate_row,
    records,
    rows_of,
    whole_table,
)
from dither.service.publish._settings import opened_target, read_publish
from dither.service.publish._target import PublishedTable, PublishTarget, check_name
from dither.session._signer import read_key

if TYPE_CHECKING:
    import polars as pl

    from dither.ledger import OwnerKey

__all__ = [
    "Publication",
    "check_audience",
    "publish",
    "publish_content",
    "publish_entry",
    "publish_total",
]


@dataclass(frozen=True, slots=True)
class Publication(Shown):
    """What was published.

    Parameters
    ----------
    tables : tuple of str
        Their names.
    certificate : str
        The certificate's id, its digest.
    new : bool
        Whether anything was written: rows that a history has already are not added again.
    """

    tables: tuple[str, ...]
    certificate: str
    new: bool

    def __str__(self) -> str:
        said = "published" if self.new else "published before"
        return f"{said}: {', '.join(self.tables)}; certificate {self.certificate[:16]}"


def publish(
    release: Any,
    name: str,
    to: Any,
    *,
    history: bool = False,
    rows: int | None = None,
    beside: Mapping[str, Given] | None = None,
) -> Publication:
    """Write what was released as tables that other programs read.

    Parameters
    ----------
    release : what a release gave
        Of a policy's table: it has a certificate.
    name : str
        Of the table: a letter and at most 47 more of ``a`` to ``z``, ``0`` to ``9`` and ``_``. Of
        several tables each has its number after it, levels of a hierarchy also their name.
    to : path, mapping or DeclaredPublish
        A file whose name ends in ``.duckdb``, a folder of Parquet files, or
        ``{"postgres": "env:NAME", "schema": "released"}``.
    history : bool
        Add the rows to those of that name, unless those of this certificate are there; else they
        take their place.
    rows : int, optional
        Of synthetic data: how many rows to draw.
    beside : mapping, optional
        Columns that stand before all others, with one value in each row, such as the day.

    Returns
    -------
    Publication

    Raises
    ------
    ArgumentError
        It is nothing that can be published, a name is no name, the place cannot be written, or has
        a table of that name that was not published. What was there is as it was.

    Notes
    -----
    *Guarantee.* Post-processing of what was released: nothing is read but the release. It is then
    for whoever may read the place.

    Examples
    --------
    >>> import polars as pl
    >>> from tempfile import mkdtemp
    >>> import dither as dt
    >>> place = mkdtemp()
    >>> policy = {"budget": {"epsilon": 1, "ledger": f"{place}/x.ledger"}, "tables": {"visits": {}}}
    >>> with dt.open(policy, sources={"visits": pl.DataFrame({"age": [41, 27]})}) as session:
    ...     found = session.sql("SELECT COUNT(*) AS n FROM visits").release(1)
    >>> publish(found, "visits", f"{place}/released").tables
    ('visits',)
    >>> pl.read_parquet(f"{place}/released/visits.parquet").columns
    ['line', 'n', 'n_low', 'n_high', 'certificate']
    """
    target = opened_target(to)
    made = made_of(release, rows)
    certificate = getattr(release, "certificate", None)
    if certificate is None:
        raise ArgumentError(
            "release: it has no certificate, so nothing says what it promises: release it of a "
            "policy's table"
        )
    return _written(made, certificate.to_dict(), name, target, history, beside or {})


def publish_content(
    content: Mapping[str, Any],
    name: str,
    to: Any,
    *,
    history: bool = False,
    rows: int | None = None,
    beside: Mapping[str, Given] | None = None,
) -> Publication:
    """As `publish`, of an answer as the ledger keeps it."""
    return publish(form_of(name, content), name, to, history=history, rows=rows, beside=beside)


def publish_entry(
    policy: str | Path | Mapping[str, Any],
    entry: int,
    name: str,
    *,
    to: Any = None,
    history: bool | None = None,
    rows: int | None = None,
    key: OwnerKey | str | Path | None = None,
) -> Publication:
    """Publish an answer that the policy's ledger has.

    Parameters
    ----------
    policy : path or mapping
        As of ``dither.open``.
    entry : int
        The number of the charge.
    name, rows
        As of `publish`.
    to, history : optional
        In place of what the section ``[publish]`` says.
    key : OwnerKey, path, or ``"env:NAME"``, optional
        The owner's secret key, in place of ``[owner] key``. Needed where the policy has
        ``[owner] public``: then only the owner publishes.

    Returns
    -------
    Publication

    Raises
    ------
    PolicyError
        The policy is wrong, says nowhere that answers are for everybody, or has an owner whose key
        is not given.
    LedgerError
        The ledger has no such entry, no answer of it, or one that was asked under another policy.
    ArgumentError
        As of `publish`.

    Notes
    -----
    Whoever can read the place reads the answer, and so the owner must have said so: with
    ``[publish] audience = "everybody"``, or ``[releases] audience = "everybody"`` in the policy
    under which it was asked. Nothing is charged, and no data are read.
    """
    read = read_policy(policy)
    declared = read_publish(read.around.get("publish", {}), read.folder)
    check_audience(read, declared is not None and declared.everybody)
    _check_owner(read, key)
    if to is None:
        if declared is None:
            raise PolicyError("the policy has no [publish]: say to where, or add publish.to")
        to = declared.to
    if history is None:
        history = declared is not None and declared.history
    content = _stored(read, entry, own=declared is None or not declared.everybody)
    return publish_content(content, name, to, history=history, rows=rows)


def check_audience(policy: Policy, everybody: bool) -> None:
    """See that the owner said that answers are for everybody.

    Raises
    ------
    PolicyError
        They did not.
    """
    if not everybody and policy.releases.audience != EVERYBODY:
        raise PolicyError(
            "the policy's answers are for whoever asked for them: nothing is published unless the "
            'owner writes [publish] audience = "everybody", or [releases] audience = "everybody"'
        )


def _check_owner(policy: Policy, key: Any) -> None:
    """Where a policy names its owner, they alone publish."""
    owner = policy.owner
    if owner.public is None:
        return
    given = owner.key if key is None else key
    if given is None:
        raise PolicyError(
            "the policy names its owner, who alone publishes: give their secret key (key=, or "
            "[owner] key)"
        )
    found = read_key(given, owner.password if key is None else None, "key")
    if found.public != owner.public:
        raise PolicyError("key: it is not that of the policy's [owner] public")


def _stored(policy: Policy, entry: int, own: bool) -> dict[str, Any]:
    if not isinstance(entry, int) or isinstance(entry, bool) or entry < 0:
        raise ArgumentError("entry must be the number of a charge in the ledger")
    with Ledger.open(policy.ledger, create=False) as ledger:
        charge = ledger.entry(entry)
        if charge.kind != "charge" or charge.request is None:
            raise LedgerError(f"entry {entry} is not a charge, so it has no answer")
        if own and charge.note.get("policy") != policy.digest:
            raise LedgerError(
                f"entry {entry} was asked under another policy, whose answers may be for others: "
                'say [publish] audience = "everybody" to publish it'
            )
        found = ledger.answer(entry)
    if found is None:
        raise LedgerError(f"the ledger has no answer to entry {entry}")
    content: dict[str, Any] = json.loads(found[1])
    if "certificate" not in content:
        raise LedgerError(f"the answer to entry {entry} has no certificate")
    return content


def _written(
    made: MadeTable,
    certificate: Mapping[str, Any],
    name: str,
    target: PublishTarget,
    history: bool,
    beside: Mapping[str, Given],
) -> Publication:
    check_name(name)
    if not isinstance(history, bool):
        raise ArgumentError("history must be True or False")
    identity = str(certificate["digest"])
    tables, rows = [], []
    for suffix, frame in made.tables.items():
        whole = whole_table(frame, identity, beside)
        tables.append(PublishedTable(check_name(name + suffix, longest=63), whole))
        form = {**made.form, "table": suffix, "beside": list(beside)}
        rows.append(certificate_row(certificate, name + suffix, form, made.answer))
    new = target.write(tables, records(rows), history=history)
    return Publication(tuple(table.name for table in tables), identity, new)


def publish_total(
    frame: pl.DataFrame,
    parts: Sequence[Mapping[str, Any]],
    name: str,
    to: Any,
    beside: Mapping[str, Given],
) -> Publication:
    """Add a running count's total to those before it.

    Parameters
    ----------
    frame : polars.DataFrame
        One row: the total with its interval.
    parts : sequence of mapping
        The releases that it is the sum of, as the ledger keeps them, the newest last: its
        certificate stands beside the total.
    name, to, beside
        As of `publish`.
    """
    target = opened_target(to)
    certificates = [part["certificate"] for part in parts]
    identity = str(certificates[-1]["digest"])
    form = {
        "kind": "running",
        "table": "",
        "beside": list(beside),
        "value": frame.columns[0],
        "parts": [str(one["digest"]) for one in certificates],
    }
    rows = [certificate_row(certificates[-1], name, form, rows_of(parts[-1]))]
    for part, certificate in zip(parts[:-1], certificates[:-1], strict=True):
        rows.append(certificate_row(certificate, name, {"kind": "part"}, rows_of(part)))
    table = PublishedTable(check_name(name), whole_table(frame, identity, beside))
    new = target.write([table], records(rows), history=True)
    return Publication((name,), identity, new)
