"""Questions by forms: inference, tables of counts, synthetic tables, and models."""

from __future__ import annotations

import json
import secrets
from collections.abc import Mapping
from typing import Any

from dither.errors import DitherError
from dither.plan.schema import Table
from dither.service._endpoints import ANALYST, OWNER, Asked, Endpoint, Field, roles
from dither.service.page._shown import PageView
from dither.service.page.asked._bodies import DRAFT
from dither.service.page.asked._priced import whole
from dither.service.page.forms import KINDS, form_of, kind_of
from dither.service.page.views.answers import seen
from dither.service.work._titles import plain

__all__ = ["VIEWS"]

ASKERS = roles(ANALYST, OWNER)

FIELDS = sorted(
    {
        "x", "y", "by", "bins", "cells", "censored", "columns", "condition", "division", "draws",
        "equal_var", "event", "events", "exposed", "family", "formula", "inside", "levels",
        "max_depth", "max_features", "max_rows", "measure", "method", "n_estimators", "null",
        "objective", "outcome", "per", "places", "probabilities", "probability", "reference",
        "rounds", "rules", "shape", "splits", "strata", "tables", "time", "totals", "weights",
        "workload",
    }
)  # fmt: skip
"""Every parameter that a form asks for; the tests hold it against the forms."""

PRICE = {
    "table": Field("text", "a private table", most=200),
    "where": Field("text", "a condition on its rows", most=2000),
    "epsilon": Field("number", "what it may cost"),
    "delta": Field("number", "what of delta it may cost"),
    "draft": DRAFT["draft"],
}


def _tables(asked: Asked) -> list[Table]:
    session = asked.desk.session_of(asked.who)
    return [one for one in session.schema.tables.values() if one.private]


def chooser(asked: Asked) -> PageView:
    """The kinds of question that have a form."""
    groups: dict[str, list[str]] = {}
    for kind in KINDS.values():
        groups.setdefault(kind.group, []).append(kind.name)
    return PageView("forms/kinds.html", {"groups": groups})


def form(asked: Asked) -> PageView:
    """The form of a kind, for a table; as it was filled in for a question that was asked."""
    kind, tables = kind_of(asked.path["kind"]), _tables(asked)
    filled: dict[str, str] = {}
    if "from" in asked.body:
        job, mine = seen(asked, asked.body["from"])
        of, filled = form_of(job.draft.ask) or (kind, {})
        # A condition may hold a comment, which is its writer's alone.
        if of is not kind or not (mine or plain(filled.get("where", ""))):
            filled = {}
    wanted = asked.body.get("table", filled.get("table"))
    table = next((one for one in tables if one.name == wanted), tables[0] if tables else None)
    return PageView(
        "forms/form.html",
        {
            "kind": kind,
            "tables": tables,
            "table": table,
            "draft": secrets.token_hex(16),
            "filled": filled,
            "filled_more": any(one.name in filled for one in kind.more),
        },
    )


async def draft(asked: Asked) -> PageView:
    """What the question that a form asks protects and costs, and how far off it will be."""
    kind = kind_of(asked.path["kind"])
    values: dict[str, Any] = {"refused": None, "ask": None}
    try:
        body = _body(kind.name, asked.body)
        values |= await whole(asked, body) | {"ask": json.dumps(body["ask"])}
    except DitherError as error:
        # Half of a form is no mistake: it says what is still missing, where the price will stand.
        values["refused"] = str(error)
    draft_of = asked.body.get("draft") or secrets.token_hex(16)
    body_of_form = dict(asked.body) | {"draft": draft_of}
    return PageView("forms/_draft.html", values | {"kind": kind, "body": body_of_form})


def _body(name: str, given: Mapping[str, Any]) -> dict[str, Any]:
    """The body by which a service is asked for what a form asks."""
    price = {n: given[n] for n in ("epsilon", "delta") if n in given}
    ask = kind_of(name).calls(given.get("table", ""), given.get("where"), price, given)
    return {"ask": ask}


VIEWS = [
    Endpoint("GET", "/ask/forms", ASKERS, chooser, "Kinds of question that have a form."),
    Endpoint(
        "GET",
        "/ask/forms/{kind}",
        ASKERS,
        form,
        "A form.",
        {
            "table": PRICE["table"],
            "from": Field("text", "a question that was asked, to be changed", most=100),
        },
        lenient=True,
    ),
    Endpoint(
        "POST",
        "/ask/forms/{kind}/draft",
        ASKERS,
        draft,
        "What the question of a form protects and costs.",
        PRICE | {name: Field("text", "as in Python", most=2000) for name in FIELDS},
    ),
]
