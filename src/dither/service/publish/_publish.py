"""Publishing: what was released becomes tables, with intervals and the certificate's id."""

from __future__ import annotations

import datetime as dt
import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from dither._notebook import Shown
from dither.errors import ArgumentError, CertificateError, LedgerError, PolicyError
from dither.ledger import Ledger
from dither.policy._policy import Policy, read_policy
from dither.policy._publishing import EVERYBODY
from dither.service.publish._forms import Made, answered, form_of, from_content, made_of
from dither.service.publish._settings import opened_target, read_publish
from dither.service.publish._target import CERTIFICATES, PublishedTable, Target, check_name
from dither.session._signer import read_key
from dither.session._verify import verify

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
    "verify_published",
]

OWN = ("line", "certificate")
"""Columns that each table has beside those of its release."""

Given = str | int | float | bool | dt.date | dt.datetime


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
        found = [a for e, a in ledger.answers_to(charge.request) if e.number == entry]
    if not found:
        raise LedgerError(f"the ledger has no answer to entry {entry}")
    content: dict[str, Any] = json.loads(found[0])
    if "certificate" not in content:
        raise LedgerError(f"the answer to entry {entry} has no certificate")
    return content


def _written(
    made: Made,
    certificate: Mapping[str, Any],
    name: str,
    target: Target,
    history: bool,
    beside: Mapping[str, Given],
) -> Publication:
    check_name(name)
    if not isinstance(history, bool):
        raise ArgumentError("history must be True or False")
    identity = str(certificate["digest"])
    tables, rows = [], []
    for suffix, frame in made.tables.items():
        whole = _whole(frame, identity, beside)
        tables.append(PublishedTable(check_name(name + suffix, longest=63), whole))
        form = {**made.form, "table": suffix, "beside": list(beside)}
        rows.append(_row(certificate, name + suffix, form, made.answer))
    new = target.write(tables, _records(rows), history=history)
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
    rows = [_row(certificates[-1], name, form, _rows_of(parts[-1]))]
    for part, certificate in zip(parts[:-1], certificates[:-1], strict=True):
        rows.append(_row(certificate, name, {"kind": "part"}, _rows_of(part)))
    table = PublishedTable(check_name(name), _whole(frame, identity, beside))
    new = target.write([table], _records(rows), history=True)
    return Publication((name,), identity, new)


def _rows_of(content: Mapping[str, Any]) -> dict[str, Any]:
    """A released table of one row, as `dither.verify` reads it."""
    return {"rows": [{c["name"]: c["values"][0] for c in content["columns"]}]}


def _row(
    certificate: Mapping[str, Any], name: str, form: Mapping[str, Any], answer: Any
) -> dict[str, Any]:
    """What stands in the table of certificates."""
    text = certificate.get("text") or {}
    return {
        "id": str(certificate["digest"]),
        "name": name,
        "published": dt.datetime.now(dt.UTC).date(),
        "question": str(text.get("sql", "")),
        "promise": _promised(certificate),
        "ledger": str(certificate["ledger"]["id"]),
        "entry": int(certificate["ledger"]["entry"]),
        "certificate": json.dumps(certificate, ensure_ascii=False),
        "form": json.dumps(dict(form)),
        "answer": None if answer is None else json.dumps(answer),
    }


def _records(rows: Sequence[Mapping[str, Any]]) -> pl.DataFrame:
    import polars as pl

    kinds = {"published": pl.Date, "entry": pl.Int64}
    schema = {name: kinds.get(name, pl.String) for name in rows[0]}
    return pl.DataFrame(list(rows), schema=schema)


def _promised(certificate: Mapping[str, Any]) -> str:
    """The promise in words."""
    text, loss = certificate.get("text") or {}, certificate["loss"]
    parts = [f"{n} {loss[n]}" for n in ("epsilon", "delta", "rho") if loss.get(n) not in (None, "0")]
    whom = text.get("protects") or f"one {certificate['promise'].get('unit')}"
    blocks = f"; {text['blocks']}" if text.get("blocks") else ""
    return f"{', '.join(parts) or 'public'}; protects {whom}{blocks}"


def _whole(frame: pl.DataFrame, identity: str, beside: Mapping[str, Given]) -> pl.DataFrame:
    """With its lines' numbers and its certificate's id, in types that each place has."""
    import polars as pl

    names = ["line", *beside, *frame.columns, "certificate"]
    folded = [one.casefold() for one in names]
    if len(set(folded)) < len(folded):
        twice = next(one for one in names if folded.count(one.casefold()) > 1)
        own = f"; {', '.join(OWN)} are the table's own" if twice.casefold() in OWN else ""
        raise ArgumentError(
            f"two columns would be called {twice[:40]!r}, where capitals make no difference{own}: "
            "give the question's output or key another name (AS)"
        )
    if any(not one or "\x00" in one for one in names):
        raise ArgumentError("a column without a name, or with NUL in it, cannot be published")
    for one in beside.values():
        if not isinstance(one, Given):
            raise ArgumentError("beside must hold texts, numbers, days and moments")
    return pl.DataFrame(
        [
            pl.Series("line", range(1, frame.height + 1), pl.Int64),
            *(_typed(pl.Series(n, [v] * frame.height)) for n, v in beside.items()),
            *map(_typed, frame.get_columns()),
            pl.Series("certificate", [identity] * frame.height, pl.String),
        ]
    )


def _typed(column: pl.Series) -> pl.Series:
    import polars as pl

    kind = column.dtype
    if kind in (pl.String, pl.Int64, pl.Float64, pl.Boolean, pl.Date):
        return column
    if isinstance(kind, pl.Datetime):
        utc = column if kind.time_zone is None else column.dt.convert_time_zone("UTC")
        return utc.dt.replace_time_zone(None).cast(pl.Datetime("us"))
    if kind.is_integer() and kind not in (pl.UInt64, pl.Int128):
        return column.cast(pl.Int64)
    if kind.is_numeric():
        return column.cast(pl.Float64)
    if kind == pl.Object:
        return pl.Series(column.name, [None if v is None else str(v) for v in column], pl.String)
    return column.cast(pl.String)


def verify_published(to: Any, name: str, *, ledger: Any = None, key: Any = None) -> list[str]:
    """Hold a published table against the certificates of its rows.

    Parameters
    ----------
    to, name
        As of `publish`; of several tables the name of one of them.
    ledger, key
        As of ``dither.verify``: what vouches for the certificates.

    Returns
    -------
    list of str
        What agrees, a line for each certificate.

    Raises
    ------
    CertificateError
        A certificate does not hold, a row is of none, or a value of the table is not the one that
        was released.
    ArgumentError
        There is no such table, or neither a ledger nor a key is given.

    Notes
    -----
    A table of a question is the answer that its certificate has the hash of. Other tables follow
    from an answer that is kept beside their certificate: marginals, comparisons, synthetic rows and
    coefficients are computed anew from it. Hierarchies, ranges, estimates and tests are read with
    public facts that are not kept there: the answer that they follow from is checked, and the lines
    say that the table was not computed anew.
    """
    import polars as pl

    target = opened_target(to)
    table, records = target.read(name), target.read(CERTIFICATES)
    records = records.filter(pl.col("name") == name)
    if "certificate" not in table.columns or "line" not in table.columns:
        raise CertificateError(f"the table {name!r} has no column of certificates")
    used = table["certificate"].unique(maintain_order=True).to_list()
    known = {row["id"]: row for row in records.to_dicts()}
    if any(one not in known for one in used):
        raise CertificateError("the table has rows of a certificate that is not among those beside")
    said = []
    for identity, row in known.items():
        part = table.filter(pl.col("certificate") == identity).sort("line")
        # Nobody's rows: what was replaced, or an answer that has none.
        if not part.height and (used or len(known) > 1):
            continue
        said.append(_checked(part, row, known, ledger, key))
    return said


def _checked(
    part: pl.DataFrame,
    row: Mapping[str, Any],
    known: Mapping[str, Mapping[str, Any]],
    ledger: Any,
    key: Any,
) -> str:
    try:
        certificate = json.loads(row["certificate"])
        form, answer = answered(row["form"], row["answer"])
        kind, beside, suffix = form["kind"], form["beside"], form["table"]
    except (KeyError, TypeError, ValueError):
        raise CertificateError("what is kept beside the certificate was changed") from None
    if not isinstance(certificate, dict) or certificate.get("digest") != row["id"]:
        raise CertificateError("a certificate's id is not that of its certificate")
    if part["line"].to_list() != list(range(1, part.height + 1)):
        raise CertificateError("lines of the table are missing, or there are more")
    own = part.drop([*OWN, *beside], strict=False)
    if kind == "table":
        try:
            names = [(shown, name) for shown, name, _ in form["columns"]]
            if own.columns != [shown for shown, _ in names]:
                raise CertificateError("the table has other columns than were released")
            answer = own.rename(dict(names))
        except (pl_error(), TypeError, ValueError):
            raise CertificateError("what is kept beside the certificate was changed") from None
        return str(verify(certificate, ledger, key=key, answer=answer))
    if kind == "running":
        return _total(part, form, known, ledger, key)
    text = str(verify(certificate, ledger, key=key, answer=answer))
    if answer is None:
        return f"{text}; the answer that the table follows from is not kept beside it"
    whole = {**answer, "certificate": certificate}
    what = "synthetic data" if kind == "synthetic" else None
    found = from_content(whole, what) if kind in _ANEW else None
    if found is None:
        return f"{text}; the table was not computed anew from it"
    made = made_of(found, form["rows"] if kind == "synthetic" else None)
    if not _same(_whole(made.tables[suffix], row["id"], {}).drop(*OWN), own):
        raise CertificateError("a value of the table is not one that follows from the answer")
    return f"{text}; the table follows from it"


def _total(
    part: pl.DataFrame,
    form: Mapping[str, Any],
    known: Mapping[str, Mapping[str, Any]],
    ledger: Any,
    key: Any,
) -> str:
    """A running count's total is the sum of releases, each with its certificate."""
    found = 0
    for identity in form["parts"]:
        if identity not in known:
            raise CertificateError("a part of the total has no certificate beside the table")
        certificate, answer = (json.loads(known[identity][n]) for n in ("certificate", "answer"))
        verify(certificate, ledger, key=key, answer=answer)
        found += answer["rows"][0][form["value"]]
    if part.height != 1 or part[form["value"]].to_list() != [found]:
        raise CertificateError("a total of the table is not the sum of its parts")
    return f"a total is the sum of {len(form['parts'])} releases, whose certificates hold"


_ANEW = ("marginals", "comparison", "synthetic", "model")


def _same(one: pl.DataFrame, other: pl.DataFrame) -> bool:
    """Cell by cell. Reals that are computed may differ in their last digits on other machines."""
    import polars as pl

    if one.columns != other.columns or one.height != other.height:
        return False
    for name in one.columns:
        a, b = one[name], other[name]
        if a.dtype != b.dtype:
            return False
        if a.dtype == pl.Float64:
            near = ((a - b).abs() <= 1e-9 * (1 + a.abs())) | (a == b)
            if not (near | (a.is_null() & b.is_null())).fill_null(value=False).all():
                return False
        elif not a.eq_missing(b).all():
            return False
    return True


def pl_error() -> type[Exception]:
    """What Polars raises."""
    import polars.exceptions

    found: type[Exception] = polars.exceptions.PolarsError
    return found
