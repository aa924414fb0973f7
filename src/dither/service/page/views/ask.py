"""Asking: what is public, a question, what it would cost, and a clear stop before it is asked."""

from __future__ import annotations

import json
import secrets
from dataclasses import replace
from typing import Any

from anyio import to_thread
from starlette.responses import Response

from dither.errors import DitherError
from dither.service._endpoints import ANALYST, OWNER, Asked, Endpoint, Field, roles
from dither.service.page._shown import PageView
from dither.service.page.asked import _public
from dither.service.page.asked._bodies import DRAFT, SIZES, body_of, token_of
from dither.service.page.asked._priced import costs, priced
from dither.service.page.asked._python import decimal, expression
from dither.service.page.views.answers import seen, sql_of
from dither.service.routes import asking
from dither.service.work._jobs import ReleaseJob, State

__all__ = ["VIEWS"]

ASKERS = roles(ANALYST, OWNER)

LOOKED = 1000
"""Jobs among which an earlier answer to the same question is looked for."""


def ask(asked: Asked) -> PageView:
    """The place where questions are written."""
    session = asked.desk.session
    listed = _public.tables(session)
    budget = session.policy.budget
    return PageView(
        "ask/ask.html",
        {
            "tables": listed,
            "known": {
                "tables": _public.completed(listed),
                "functions": _public.functions(),
                "private": [one for one in listed if one["private"]],
            },
            "sizes": SIZES,
            "purposes": list(session.policy.quotas.purposes),
            "deltas": budget.delta > 0,
            "usual_delta": f"{float(session.policy.release_delta):.2g}",
            "draft": secrets.token_hex(16),
            **_begun(asked, listed),
        },
    )


def _begun(asked: Asked, listed: list[dict[str, Any]]) -> dict[str, Any]:
    """What stands in the form at first: a simple question, or one that was asked before."""
    values: dict[str, Any] = {
        "sql": _first(listed),
        "calls": None,
        "calls_text": None,
        "epsilon": "0.5",
        "delta": "",
        "confidence": "0.95",
        "purpose": "",
    }
    if "from" not in asked.body:
        return values
    job, mine = seen(asked, asked.body["from"])
    requested_before = job.draft.requested
    for name in ("epsilon", "delta", "confidence"):
        values[name] = decimal(requested_before.get(name)) or values[name]
    if not mine:
        return values | {"sql": sql_of(job, mine) or values["sql"]}
    values["purpose"] = job.purpose or ""
    match job.draft.ask:
        case [["sql", [str(text)], named]] if not any(named.values()):
            return values | {"sql": text}
    told = f"session{expression(job.draft.ask)}"
    return values | {"sql": None, "calls": json.dumps(job.draft.ask), "calls_text": told}


def _first(listed: list[dict[str, Any]]) -> str:
    """A question that most policies can be asked: how many, by the first column that has groups."""
    table = next((one for one in listed if one["private"]), None)
    if table is None:
        return ""
    key = next((c["sql"] for c in table["columns"] if c["groups"]), None)
    if key is None:
        return f"SELECT COUNT(*) AS n\nFROM {table['sql']}"
    return f"SELECT {key}, COUNT(*) AS n\nFROM {table['sql']}\nGROUP BY {key}"


async def price(asked: Asked) -> PageView:
    """What a question would protect, cost and be worth, as it is written."""
    return PageView("ask/_price.html", await priced(asked))


async def stop(asked: Asked) -> PageView:
    """What is spent if one goes on: nothing is spent here."""
    try:
        body = body_of(asked.body)
        found = await costs(asked, body)
    except DitherError as error:
        return PageView("ask/_release.html", {"fault": str(error)})
    digest = found["digest"]
    earlier = await to_thread.run_sync(_earlier, asked, digest)
    sent = {name: asked.body[name] for name in DRAFT if name in asked.body}
    written = body["sql"] if "sql" in body else f"session{expression(body['ask'])}"
    token = token_of(asked.body.get("draft", secrets.token_hex(16)), digest)
    values = found | {"earlier": earlier[:3], "sent": sent, "token": token, "fault": None}
    values |= {"written": written, "said": body.get("purpose")}
    return PageView("ask/_release.html", values)


def _earlier(asked: Asked, digest: str) -> list[ReleaseJob]:
    """Answers to the same request that somebody may see."""
    shown = asked.desk.shown(asked.who)
    done = asked.desk.jobs.listed(state=State.DONE, last=LOOKED)
    return [one for one in done if one.draft.digest == digest and shown(one)]


async def release(asked: Asked) -> Response:
    """Ask for the release that the stop showed, and lead to its answer."""
    named = {name: asked.body[name] for name in ("token", "digest")}
    job = await asking.release(replace(asked, body=body_of(asked.body) | named))
    return Response("", 200, {"hx-redirect": f"/p/{asked.desk.name}/answers/{job['id']}"})


VIEWS = [
    Endpoint(
        "GET",
        "/ask",
        ASKERS,
        ask,
        "Where questions are written.",
        {"from": Field("text", "a question that was asked, to be changed", most=100)},
        lenient=True,
    ),
    Endpoint("POST", "/ask/price", ASKERS, price, "What a draft would cost.", DRAFT),
    Endpoint("POST", "/ask/stop", ASKERS, stop, "What is spent if one goes on.", DRAFT),
    Endpoint(
        "POST",
        "/ask/release",
        ASKERS,
        release,
        "Ask for a release.",
        {
            **DRAFT,
            "token": Field("text", "names the request: asked again, it is charged once", True, 200),
            "digest": Field("text", "of the request, as it was shown", True, 128),
        },
    ),
]
