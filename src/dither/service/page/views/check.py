"""Does it hold: a certificate, or a published table, that somebody hands in."""

from __future__ import annotations

import base64
import binascii
import re
from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from dither.errors import ArgumentError, CertificateError, DitherError, LedgerError
from dither.service._endpoints import ANALYST, AUDITOR, OWNER, Asked, Endpoint, Field, roles
from dither.service.page._reading import UnreadableError, table_in
from dither.service.page._shown import PageView
from dither.service.page.views.budget import question_of
from dither.service.web._service import parsed
from dither.session._verify import verify

if TYPE_CHECKING:
    import polars as pl

__all__ = ["VIEWS"]

READERS = roles(ANALYST, OWNER, AUDITOR)

MOST_FILES = 3

KINDS = ("json", "csv", "parquet")

ENTRY = re.compile(r"agrees with entry (\d+) of the ledger")
"""As `verify` says it."""

MOST_ASKED = 10
"""Questions that are named; a table may follow from many."""


def check(asked: Asked) -> PageView:
    """Where files are dropped, or chosen."""
    # As base64 three bytes become four characters, and names and brackets stand around them.
    most = max(asked.desk.settings.body * 3 // 4 - 4096, 0)
    return PageView("check/check.html", {"most": most, "files": MOST_FILES})


def checked(asked: Asked) -> PageView:
    """The verdict on what was handed in; nothing of it is kept."""
    try:
        found = _verdict(asked)
    except UnreadableError:
        found = _said("unreadable", "")
    except CertificateError as error:
        found = _said("fails", str(error))
    except LedgerError as error:
        found = _said("unknown", str(error))
    # What cannot be read has no names that were looked at.
    names = [one["name"] for one in asked.body["files"]]
    asked_for = _asked(asked, found.values["lines"])
    return replace(found, values={**found.values, "files": names, "asked": asked_for})


def _asked(asked: Asked, lines: Sequence[str]) -> list[str]:
    """The questions of the entries that were found to agree, as whoever charged noted them."""
    book = asked.desk.session.ledger
    entries = dict.fromkeys(int(one) for line in lines for one in ENTRY.findall(line))
    return [question_of(book.entry(one)) for one in list(entries)[:MOST_ASKED]]


NAMELESS = (
    "the table names no certificate, so nothing can be said of it: hand it in together with the "
    "certificate that was downloaded beside it"
)


def _said(
    verdict: str, text: str, lines: tuple[str, ...] = (), what: str = "certificate"
) -> PageView:
    return PageView(
        "check/_verdict.html", {"verdict": verdict, "text": text, "lines": lines, "what": what}
    )


def _verdict(asked: Asked) -> PageView:
    from dither.service.publish._checking import verify_against_ledger, verify_table

    bodies, tables, beside = _files(asked.body["files"])
    book = asked.desk.session.ledger
    if len(bodies) > 1 or len(tables) > 1 or not (bodies or tables):
        raise ArgumentError(
            "give one certificate, or one published table, or one of each that belong together"
        )
    if not tables:
        body = bodies[0]
        inside = body.get("certificate")
        if isinstance(inside, dict) and "format" not in body:
            # A release as it was saved: its values and its certificate in one file.
            return _said("holds", "", (str(verify(inside, book, answer=body)),), "release")
        return _said("holds", "", (str(verify(body, book)),))
    name, table = tables[0]
    if not bodies and "certificate" not in table.columns:
        return _said("unknown", NAMELESS)
    if beside is not None:
        rows = _of_name(beside, table)
        return _said("holds", "", tuple(verify_table(table, rows, name, ledger=book)), "table")
    if bodies and "certificate" not in table.columns:
        body = bodies[0]
        inside = body.get("certificate")
        certificate = inside if isinstance(inside, dict) and "format" not in body else body
        return _said("holds", "", (str(verify(certificate, book, answer=table)),), "release")
    return _said("holds", "", tuple(verify_against_ledger(table, book)), "table")


def _of_name(records: pl.DataFrame, table: pl.DataFrame) -> pl.DataFrame:
    """The rows of the table of certificates that are of the published table."""
    import polars as pl

    if "certificate" not in table.columns:
        raise CertificateError("the table names no certificate")
    used = table["certificate"].unique().to_list()
    names = records.filter(pl.col("id").is_in(used))["name"].unique().to_list()
    # A running count's total has parts, which have its name.
    return records.filter(pl.col("name").is_in(names))


def _files(
    given: list[Any],
) -> tuple[list[dict[str, Any]], list[tuple[str, pl.DataFrame]], pl.DataFrame | None]:
    """What was handed in, by what it is: certificates, tables, and the table of certificates."""
    from dither.service.publish._target import CERTIFICATES

    bodies: list[dict[str, Any]] = []
    tables: list[tuple[str, Any]] = []
    beside = None
    for one in given:
        if not isinstance(one, dict) or not {"name", "data"} >= one.keys() >= {"name", "data"}:
            raise ArgumentError("files must each have name and data, and nothing else")
        name, data = one["name"], one["data"]
        if not isinstance(name, str) or not isinstance(data, str) or len(name) > 300:
            raise ArgumentError("files must have texts as name and data")
        stem, _, kind = name.rpartition(".")
        if kind.lower() not in KINDS:
            raise ArgumentError("files must be .json, .csv or .parquet")
        try:
            raw = base64.b64decode(data, validate=True)
        except (binascii.Error, ValueError):
            raise ArgumentError("data must be base64") from None
        if kind.lower() == "json":
            try:
                body = parsed(raw)
            except DitherError:
                raise UnreadableError from None
            if not isinstance(body, dict):
                raise UnreadableError
            bodies.append(body)
            continue
        table = table_in(raw, kind.lower())
        if {"id", "name", "certificate", "form", "answer"} <= set(table.columns):
            beside = table
        else:
            tables.append((stem or CERTIFICATES, table))
    return bodies, tables, beside


VIEWS = [
    Endpoint("GET", "/check", READERS, check, "Where a certificate or a table is handed in."),
    Endpoint(
        "POST",
        "/check",
        READERS,
        checked,
        "Whether what was handed in holds.",
        {"files": Field("list", "each with name, and data in base64", True, MOST_FILES)},
    ),
]
