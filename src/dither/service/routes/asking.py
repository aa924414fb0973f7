"""For whoever asks: what is public, what a question protects and costs, and asking it."""

from __future__ import annotations

from typing import Any

from anyio import to_thread
from starlette.responses import Response

from dither.errors import ArgumentError
from dither.plan.schema import Kind
from dither.policy._policy import PolicyText
from dither.service._endpoints import ANALYST, AUDITOR, OWNER, Asked, Endpoint, Field, roles
from dither.service._shared import balance_data, fact_data, schema_data
from dither.service.access._roles import Role
from dither.service.routes.jobs import as_table
from dither.service.work._drafts import SHORT, is_short

__all__ = ["ENDPOINTS", "QUESTION"]

ASKERS = roles(ANALYST, OWNER)
READERS = roles(ANALYST, OWNER, AUDITOR)

WORDS = {
    "sql": Field("text", "a question in SQL", most=100_000),
    "ask": Field("list", "the calls that make a question, in place of sql", most=64),
    "purpose": Field(
        "text", "what it is asked for, where the policy has quotas of purposes", most=200
    ),
}
PRICE = {
    "epsilon": Field("number", "what it may cost; of SQL and of facts"),
    "delta": Field("number", "what of delta it may cost; the policy's where left out"),
    "confidence": Field("number", "of the intervals, 0.95 where left out"),
}
QUESTION = WORDS | PRICE


def policy(asked: Asked) -> dict[str, Any]:
    """What is public of the policy."""
    session = asked.desk.session_of(asked.who) if asked.who.role in ASKERS else asked.desk.session
    return {
        "name": asked.desk.name,
        "digest": session.policy.digest,
        "policy": asked.desk.document,
        "schema": schema_data(session),
        "facts": [fact_data(fact) for fact in session.facts],
        "analyst": session.analyst,
        "role": asked.who.role.value,
    }


async def worked_out(what: str, asked: Asked) -> dict[str, Any]:
    """A draft's explanation, preview, price, or what a job keeps of it.

    Short questions in SQL are worked out here, all others where they hold up nobody.
    """
    desk, who, body = asked.desk, asked.who, asked.body
    if is_short(body):
        return await to_thread.run_sync(desk.worked_out, what, who, body)

    def checked() -> tuple[PolicyText, str]:
        desk.session_of(who, body.get("purpose"))
        desk.check_answers(who, body)
        return desk.served()

    text, digest = await to_thread.run_sync(checked)
    owner = who.role is Role.OWNER
    return await asked.hall.thinkers.think(what, text, digest, (desk.name, who.name), owner, body)


async def explain(asked: Asked) -> dict[str, Any]:
    """Who is protected, what is measured, and what it costs."""
    return await worked_out("explain", asked)


async def preview(asked: Asked) -> dict[str, Any]:
    """How far off answers will be."""
    return await worked_out("preview", asked)


async def price(asked: Asked) -> dict[str, Any]:
    """What a release would be charged, and how many more like it can be paid."""
    found = await worked_out("price", asked)
    return found | {"waits": asked.desk.waits(asked.who, found["price"])}


def balance(asked: Asked) -> dict[str, Any]:
    """What the accounts that bear what is asked here have spent, and have left."""
    session = asked.desk.session_of(asked.who, asked.body.get("purpose"))
    return {"balances": [balance_data(one) for one in session.balance()]}


def public_rows(asked: Asked) -> dict[str, Any]:
    """The rows of a public table, of some of its columns; of one column each value once."""
    session = asked.desk.session
    table = session.schema.table(asked.body["table"])
    if table.private:
        raise ArgumentError("table is private: its rows are shown to nobody")
    names = asked.body["columns"]
    if not names or not all(isinstance(name, str) for name in names):
        raise ArgumentError("columns must be names of columns")
    facts = [table.column(name) for name in names]
    if any(one.kind not in (Kind.TEXT, Kind.INTEGER, Kind.DATE) for one in facts):
        raise ArgumentError("columns must hold texts, whole numbers or dates")
    rows: Any = session._engine.public_rows(table.name, facts)
    if len(facts) == 1:
        rows = dict.fromkeys(rows)
    return {"rows": [[_plain(value) for value in row] for row in rows]}


def _plain(value: Any) -> Any:
    return value if value is None or isinstance(value, str | int) else value.isoformat()


def dummy(asked: Asked) -> Response:
    """Rows that nobody has, made of public facts, to write programs with."""
    session = asked.desk.session_of(asked.who)
    found = session.dummy(asked.body["table"], asked.body.get("rows", 1000))
    response = as_table(found.frame, asked.body.get("form", "arrow"))
    response.headers["x-dither-dummy"] = "no row is real"
    return response


async def release(asked: Asked) -> dict[str, Any]:
    """Ask for a release: charged first, then run; its job says how it goes."""
    found = await worked_out("draft", asked)
    job = await to_thread.run_sync(asked.desk.take, asked.who, asked.body, found)
    asked.hall.announce()
    return job.to_dict()


async def published(asked: Asked) -> dict[str, Any]:
    """Earlier answers to the same request, free of charge."""
    digest = asked.body.get("digest")
    if digest is None:
        digest = (await worked_out("draft", asked))["digest"]
    return {"answers": await to_thread.run_sync(asked.desk.published, asked.who, digest)}


def reserve(asked: Asked) -> dict[str, Any]:
    """Keep budget until an hour."""
    session, question = asked.desk.session_of(asked.who, asked.body.get("purpose")), None
    if "sql" in asked.body or "ask" in asked.body:
        if not is_short(asked.body):
            raise ArgumentError(
                f"a reservation is made for a question in SQL of at most {SHORT:,} characters"
            )
        question, session = asked.desk.question(asked.who, asked.body)
    found = session.reserve(
        asked.body["epsilon"],
        until=asked.body["until"],
        delta=asked.body.get("delta", 0),
        unit=asked.body.get("unit"),
        question=question,
    )
    return {"id": found.id, "text": str(found)}


ENDPOINTS = [
    Endpoint("GET", "/policy", READERS, policy, "What is public of the policy."),
    Endpoint("POST", "/explain", ASKERS, explain, "Who is protected, and how.", QUESTION),
    Endpoint(
        "POST",
        "/preview",
        ASKERS,
        preview,
        "How far off answers will be, before anything is spent.",
        QUESTION | {"sizes": Field("list", "public numbers of rows in a group", most=100)},
    ),
    Endpoint("POST", "/price", ASKERS, price, "What a release would cost.", QUESTION),
    Endpoint(
        "GET",
        "/balance",
        ASKERS,
        balance,
        "What is spent, and what is left.",
        {"purpose": WORDS["purpose"]},
    ),
    Endpoint(
        "POST",
        "/public-values",
        ASKERS,
        public_rows,
        "The rows of a public table, of some of its columns.",
        {
            "table": Field("text", "a public table", True, 200),
            "columns": Field("list", "names of columns of it", True, 64),
        },
    ),
    Endpoint(
        "GET",
        "/dummy",
        ASKERS,
        dummy,
        "Rows that nobody has, made of public facts.",
        {
            "table": Field("text", "a table", True, 200),
            "rows": Field("whole", "how many, 1,000 where left out", most=100_000),
            "form": Field("text", "arrow, parquet or csv", most=10),
        },
    ),
    Endpoint(
        "POST",
        "/releases",
        ASKERS,
        release,
        "Ask for a release.",
        QUESTION
        | {
            "token": Field("text", "names the request: asked again, it is charged once", most=200),
            "reuse": Field("flag", "whether an earlier answer to the same request will do"),
            "reservation": Field("text", "what the holder of a reservation knows", most=200),
            "digest": Field("text", "of the request, as whoever asks understands it", most=128),
        },
        status=202,
    ),
    Endpoint(
        "POST",
        "/published",
        ASKERS,
        published,
        "Earlier answers to the same request.",
        QUESTION | {"digest": Field("text", "of the request", most=128)},
    ),
    Endpoint(
        "POST",
        "/reservations",
        ASKERS,
        reserve,
        "Keep budget for whoever has the answer's id.",
        WORDS
        | {
            "epsilon": Field("number", "what is kept", True),
            "delta": Field("number", "what is kept of delta"),
            "until": Field("text", "a date and hour, in UTC", True, 40),
            "unit": Field("text", "of whose accounts", most=200),
        },
        status=201,
    ),
]
