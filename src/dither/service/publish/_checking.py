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

    from dither.ledger import Ledger

__all__ = ["verify_against_ledger", "verify_published", "verify_table"]


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
    return verify_table(table, records.filter(pl.col("name") == name), name, ledger=ledger, key=key)


def verify_table(
    table: pl.DataFrame, records: pl.DataFrame, name: str, *, ledger: Any = None, key: Any = None
) -> list[str]:
    """The same of a table that lies elsewhere, and the rows of certificates that are of it.

    Raises
    ------
    CertificateError
        As `verify_published`.
    """
    import polars as pl

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
    what = _DRAWN.get(kind)
    found = from_content(whole, what) if kind in _ANEW else None
    if found is None:
        return f"{text}; the table was not computed anew from it"
    made = made_of(found, form["rows"] if kind in _DRAWN else None)
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


MOST_CERTIFICATES = 50
"""Of one table, where the ledger is searched for them: the whole ledger is checked for each."""

AT_ONCE = 500


def verify_against_ledger(table: pl.DataFrame, book: Ledger) -> list[str]:
    """Hold a published table by itself against the answers that the ledger keeps.

    What its certificates say stands in the ledger, too: the id of each is looked for there.

    Parameters
    ----------
    table : polars.DataFrame
        As it was published, or read back from CSV.
    book : Ledger

    Returns
    -------
    list of str
        What agrees, a line for each certificate.

    Raises
    ------
    CertificateError
        The ledger has no such certificate, or a value is not the one that was released.
    """
    import polars as pl

    if "certificate" not in table.columns or "line" not in table.columns:
        raise CertificateError(
            "the table names no certificate: published tables have the columns line and certificate"
        )
    used = table["certificate"].unique(maintain_order=True).to_list()
    if not used or any(not isinstance(one, str) or not one for one in used):
        raise CertificateError("the table has rows without a certificate, or no rows")
    if len(used) > MOST_CERTIFICATES:
        raise CertificateError(
            f"the table has more than {MOST_CERTIFICATES} certificates: check it where it lies, "
            "with verify_published"
        )
    known = _in_ledger(set(used), book)
    said = []
    for identity in used:
        content = known.get(identity)
        if content is None:
            raise CertificateError("the ledger has no certificate of an id that the table names")
        text = str(verify(content["certificate"], book))
        part = table.filter(pl.col("certificate") == identity).sort("line")
        said.append(f"{text}; {_follows(part, content)}")
    return said


def _in_ledger(wanted: set[str], book: Ledger) -> dict[str, Any]:
    """The answers whose certificates have these ids."""
    found: dict[str, Any] = {}
    before = None
    while len(found) < len(wanted):
        part = book.entries(limit=AT_ONCE, kind="answer", before=before)
        for entry in part:
            text = entry.answer or ""
            for identity in wanted - found.keys():
                if identity in text and (content := _certified(text, identity)) is not None:
                    found[identity] = content
        if len(part) < AT_ONCE:
            break
        before = part[0].number
    return found


def _certified(text: str, identity: str) -> Any:
    try:
        content = json.loads(text)
        return content if content["certificate"]["digest"] == identity else None
    except (KeyError, TypeError, ValueError):
        return None


def _follows(part: pl.DataFrame, content: Mapping[str, Any]) -> str:
    """Whether the rows are those that follow from an answer of the ledger."""
    import polars as pl

    if part["line"].cast(pl.Int64, strict=False).to_list() != list(range(1, part.height + 1)):
        raise CertificateError("lines of the table are missing, or there are more")
    asked = content["certificate"].get("question")
    asked = asked.get("asked") if isinstance(asked, Mapping) else None
    what = asked.get("what") if isinstance(asked, Mapping) else None
    found = None if what in _DRAWN.values() else from_content(content, what)
    if found is None:
        return "the table was not computed anew from the ledger's answer"
    own = part.drop(*OWN)
    for made in made_of(found).tables.values():
        frame = whole_table(made, "", {}).drop(*OWN)
        if not set(frame.columns) <= set(own.columns):
            continue
        # CSV knows no types, and tells an empty text from NULL in no way that programs agree on.
        given = own.select(frame.columns).cast(dict(frame.schema), strict=False)  # type: ignore[arg-type]
        if not _same(_nulled(frame), _nulled(given)):
            raise CertificateError("a value of the table is not the one that was released")
        more = sorted(set(own.columns) - set(frame.columns))
        beside = f"; not checked: what else stands beside it ({len(more)} columns)" if more else ""
        return f"the table is what was released{beside}"
    raise CertificateError("the table has other columns than were released")


def _nulled(frame: pl.DataFrame) -> pl.DataFrame:
    import polars as pl
    import polars.selectors as cs

    return frame.with_columns(cs.string().replace("", None).cast(pl.String))


_DRAWN = {"synthetic": "synthetic data", "linked": "linked synthetic data"}
_ANEW = ("marginals", "comparison", "model", *_DRAWN)


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
