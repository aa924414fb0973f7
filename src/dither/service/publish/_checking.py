"""Whether a published table holds: against its certificates, and what these are checked against."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

from dither.errors import CertificateError
from dither.service.publish._forms import answered, from_content, made_of
from dither.service.publish._rows import OWN, whole_table
from dither.service.publish._settings import opened_target
from dither.service.publish._target import CERTIFICATES
from dither.session._verify import verify

if TYPE_CHECKING:
    import polars as pl

__all__ = ["verify_published"]


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
    certificate, form, answer = _kept(row)
    with _unchanged():
        kind, beside, suffix = form["kind"], form["beside"], form["table"]
    if part["line"].to_list() != list(range(1, part.height + 1)):
        raise CertificateError("lines of the table are missing, or there are more")
    own = part.drop([*OWN, *beside], strict=False)
    if kind == "table":
        with _unchanged():
            names = [(shown, name) for shown, name, _ in form["columns"]]
            if own.columns != [shown for shown, _ in names]:
                raise CertificateError("the table has other columns than were released")
            answer = own.rename(dict(names))
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
    if not _same(whole_table(made.tables[suffix], row["id"], {}).drop(*OWN), own):
        raise CertificateError("a value of the table is not one that follows from the answer")
    return f"{text}; the table follows from it"


def _kept(row: Mapping[str, Any]) -> tuple[dict[str, Any], Any, Any]:
    """What is kept beside a table: a certificate, how its answer is read, and the answer."""
    with _unchanged():
        certificate = json.loads(row["certificate"])
        form, answer = answered(row["form"], row["answer"])
    if not isinstance(certificate, dict) or certificate.get("digest") != row["id"]:
        raise CertificateError("a certificate's id is not that of its certificate")
    return certificate, form, answer


@contextmanager
def _unchanged() -> Iterator[None]:
    """What is kept beside a certificate is read as it was written, or was changed."""
    import polars.exceptions

    try:
        yield
    except (polars.exceptions.PolarsError, LookupError, TypeError, ValueError):
        raise CertificateError("what is kept beside the certificate was changed") from None


def _total(
    part: pl.DataFrame,
    form: Mapping[str, Any],
    known: Mapping[str, Mapping[str, Any]],
    ledger: Any,
    key: Any,
) -> str:
    """A running count's total is the sum of releases, each with its certificate."""
    with _unchanged():
        parts, value = [str(one) for one in form["parts"]], str(form["value"])
    if any(identity not in known for identity in parts):
        raise CertificateError("a part of the total has no certificate beside the table")
    if len(set(parts)) < len(parts):
        raise CertificateError("a part of the total is counted twice")
    found = 0
    for identity in parts:
        certificate, _, answer = _kept(known[identity])
        verify(certificate, ledger, key=key, answer=answer)
        with _unchanged():
            found += answer["rows"][0][value]
    with _unchanged():
        total = part[value].to_list()
    if total != [found]:
        raise CertificateError("a total of the table is not the sum of its parts")
    return f"a total is the sum of {len(parts)} releases, whose certificates hold"


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
