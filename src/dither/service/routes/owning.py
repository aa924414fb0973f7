"""For the owner: people and keys, approvals, pauses, and the policy's file."""

from __future__ import annotations

from typing import Any

from dither.errors import ArgumentError
from dither.service._endpoints import AUDITOR, OWNER, Asked, Endpoint, Field, NotFoundError, roles
from dither.service.access._roles import Role
from dither.service.work._jobs import State

__all__ = ["ENDPOINTS"]

ONLY = roles(OWNER)


def people(asked: Asked) -> dict[str, Any]:
    """Everybody, and which keys they have."""
    return {"people": asked.desk.people.listed()}


def add(asked: Asked) -> dict[str, Any]:
    """Add somebody, or give them another role."""
    known = {role.value: role for role in Role}
    role = known.get(asked.body["role"])
    if role is None:
        raise ArgumentError("role must be owner, analyst or auditor")
    asked.desk.people.add(asked.body["name"], role, asked.who.name)
    return {"people": asked.desk.people.listed()}


def disable(asked: Asked) -> dict[str, Any]:
    """Take every key from somebody."""
    if asked.path["name"] == asked.who.name:
        raise ArgumentError("name: you cannot disable yourself; another owner can")
    asked.desk.people.disable(asked.path["name"], asked.who.name)
    return {"people": asked.desk.people.listed()}


def new_key(asked: Asked) -> dict[str, Any]:
    """Make a key, which is shown this once."""
    days = asked.body.get("days", 90)
    made = asked.desk.people.new_key(asked.path["name"], days or None, asked.who.name)
    return {"id": made.id, "person": made.person, "key": made.key, "expires": made.expires}


def revoke(asked: Asked) -> dict[str, Any]:
    """End a key."""
    asked.desk.people.revoke(asked.path["id"], asked.who.name)
    return {}


def approvals(asked: Asked) -> dict[str, Any]:
    """Questions that wait for a decision: what they cost, and whom they protect."""
    found = asked.desk.jobs.listed(state=State.WAITING, last=1000)
    return {"jobs": [job.to_dict() for job in found]}


def decide(asked: Asked) -> dict[str, Any]:
    """Approve a question, or decline it. What is approved is what runs, by its digest."""
    job = asked.desk.jobs.get(asked.path["id"])
    if job is None:
        raise NotFoundError("no question of this id waits")
    if asked.body["digest"] != job.draft.digest:
        raise ArgumentError("digest is of another question than the one that waits")
    found = asked.desk.jobs.decide(job.id, asked.body["approve"], asked.who.name)
    what = "approved" if asked.body["approve"] else "declined"
    asked.desk.people.note(asked.who.name, what, f"{job.id} {job.draft.digest}")
    asked.hall.announce()
    return found.to_dict()


def pause(asked: Asked) -> dict[str, Any]:
    """Let no question of a table begin, or let them begin again."""
    table = asked.body["table"]
    asked.desk.session.schema.table(table)
    if asked.body["paused"]:
        reason = asked.body.get("reason", "no reason is given")
        asked.desk.jobs.pause(table, asked.who.name, reason)
    else:
        asked.desk.jobs.go_on(table)
    asked.desk.people.note(asked.who.name, "paused" if asked.body["paused"] else "goes on", table)
    return {"paused": asked.desk.jobs.paused()}


def take_up(asked: Asked) -> dict[str, Any]:
    """Read the policy's file again: all of it is taken up, or nothing."""
    changed = asked.desk.take_up()
    asked.desk.people.note(asked.who.name, "policy read again", asked.desk.session.policy.digest)
    return {"changed": changed, "digest": asked.desk.session.policy.digest}


def log(asked: Asked) -> dict[str, Any]:
    """What was decided, newest first."""
    return {"log": asked.desk.people.log(asked.body.get("last", 200))}


NAME = Field("text", "a name", True, 100)

ENDPOINTS = [
    Endpoint("GET", "/people", ONLY, people, "Everybody, and their keys."),
    Endpoint(
        "POST",
        "/people",
        ONLY,
        add,
        "Add somebody.",
        {"name": NAME, "role": Field("text", "owner, analyst or auditor", True, 20)},
        status=201,
    ),
    Endpoint("DELETE", "/people/{name:path}", ONLY, disable, "Take every key from somebody."),
    Endpoint(
        "POST",
        "/people/{name:path}/keys",
        ONLY,
        new_key,
        "Make a key, shown this once.",
        {"days": Field("whole", "how long it lasts; 0 for ever, 90 where left out", most=36_500)},
        status=201,
    ),
    Endpoint("DELETE", "/keys/{id}", ONLY, revoke, "End a key."),
    Endpoint("GET", "/approvals", ONLY, approvals, "Questions that wait for a decision."),
    Endpoint(
        "POST",
        "/approvals/{id}",
        ONLY,
        decide,
        "Approve a question, or decline it.",
        {
            "approve": Field("flag", "whether it may run", True),
            "digest": Field("text", "of the request that is decided on", True, 128),
        },
    ),
    Endpoint(
        "POST",
        "/pauses",
        ONLY,
        pause,
        "Pause a table, or let it go on.",
        {
            "table": Field("text", "a table", True, 200),
            "paused": Field("flag", "whether it is paused", True),
            "reason": Field("text", "what whoever asks is told", most=500),
        },
    ),
    Endpoint("POST", "/policy/reload", ONLY, take_up, "Read the policy's file again."),
    Endpoint(
        "GET",
        "/log",
        roles(OWNER, AUDITOR),
        log,
        "What was decided.",
        {"last": Field("whole", "how many, 200 where left out", most=10_000)},
    ),
]
