"""People, their keys, pauses of tables, and what was decided."""

from __future__ import annotations

import time
from typing import Any

from dither.errors import ArgumentError, DitherError
from dither.service._endpoints import OWNER, Asked, Endpoint, Field, roles
from dither.service.access._people import NewKey
from dither.service.access._roles import Role
from dither.service.page._shown import PageView
from dither.service.routes import owning

__all__ = ["VIEWS"]

ONLY = roles(OWNER)

ROLES = ("analyst", "auditor", "owner")

LAST = 200


def _shown(asked: Asked, *, whole: bool = False, **told: Any) -> PageView:
    desk, now = asked.desk, time.time()
    people = [_person(one, now, asked.who.name) for one in desk.people.listed()]
    policy = desk.session.policy
    paused = desk.jobs.paused()
    values = {
        "people": people,
        "alone": all(one["role"] == "owner" for one in people if not one["disabled"]),
        "roles": ROLES,
        "known": policy.quotas.known,
        "log": desk.people.log(LAST),
        "tables": [{"name": n, "reason": paused.get(n)} for n in policy.tables],
        "last": LAST,
        "refusal": None,
        "made": None,
        "done": None,
        "about": "",
        "role_before": "",
        "address": f"{asked.http.base_url}{asked.desk.name}",
        "lacks_quota": _lacks_quota(asked, told.get("made")),
        **told,
        "filled": {"name": "", "role": "analyst", "days": 90} | told.get("filled", {}),
    }
    template = "people/people.html" if whole else "people/_people.html"
    return PageView(template, values, 400 if values["refusal"] else 200)


def _lacks_quota(asked: Asked, made: NewKey | None) -> bool:
    """Whether somebody who has a new key cannot ask yet."""
    known = asked.desk.session.policy.quotas.known
    if made is None or not known or made.person in known:
        return False
    return asked.desk.role_of(made.person) is Role.ANALYST


def _person(row: dict[str, Any], now: float, me: str) -> dict[str, Any]:
    keys = [
        {**one, "expired": one["expires"] is not None and one["expires"] <= now}
        for one in row["keys"]
    ]
    live = [one for one in keys if not one["revoked"] and not one["expired"]]
    return {**row, "keys": live, "gone": len(keys) - len(live), "me": row["name"] == me}


def show(asked: Asked) -> PageView:
    """Everybody."""
    return _shown(asked, whole=True)


def _days(asked: Asked) -> int | None:
    days: int = asked.body.get("days", 90)
    return days or None


def add(asked: Asked) -> PageView:
    """Add somebody, or give them another role, and make a key."""
    name = asked.body.get("name", "").strip()
    try:
        role = {one: Role(one) for one in ROLES}.get(asked.body.get("role", ""))
        if role is None:
            raise ArgumentError("role must be owner, analyst or auditor")
        if name == asked.who.name:
            raise ArgumentError("name: you cannot change your own role; another owner can")
        asked.desk.people.add(name, role, asked.who.name)
        made = asked.desk.people.new_key(name, _days(asked), asked.who.name)
    except DitherError as error:
        return _shown(asked, refusal=str(error), filled=dict(asked.body))
    return _shown(asked, made=made)


def new_key(asked: Asked) -> PageView:
    """Another key of somebody."""
    name = asked.body.get("name", "")
    try:
        listed = {one["name"]: one for one in asked.desk.people.listed()}
        if name in listed and listed[name]["disabled"]:
            raise ArgumentError(
                "name: they are disabled, and no key of theirs opens; add them again"
            )
        made: NewKey = asked.desk.people.new_key(name, _days(asked), asked.who.name)
    except DitherError as error:
        return _shown(asked, refusal=str(error))
    return _shown(asked, made=made)


def revoke(asked: Asked) -> PageView:
    """End a key."""
    try:
        asked.desk.people.revoke(asked.body.get("id", ""), asked.who.name)
    except DitherError as error:
        return _shown(asked, refusal=str(error))
    return _shown(asked, done="revoked", about=asked.body.get("id", ""))


def disable(asked: Asked) -> PageView:
    """Take every key from somebody."""
    name = asked.body.get("name", "")
    try:
        if name == asked.who.name:
            raise ArgumentError("name: you cannot disable yourself; another owner can")
        role = asked.desk.people.role(name)
        asked.desk.people.disable(name, asked.who.name)
    except DitherError as error:
        return _shown(asked, refusal=str(error))
    was = "" if role is None else role.value
    return _shown(asked, done="disabled", about=name, role_before=was)


def pause(asked: Asked) -> PageView:
    """Pause a table, or let it go on."""
    try:
        owning.pause(asked)
    except DitherError as error:
        return _shown(asked, refusal=str(error))
    done = "paused" if asked.body["paused"] else "goes_on"
    return _shown(asked, done=done, about=asked.body["table"])


NAME = {"name": Field("text", "a name", most=2000)}
DAYS = {"days": Field("whole", "how long it lasts; 0 for ever", most=36_500)}

VIEWS = [
    Endpoint("GET", "/people", ONLY, show, "Everybody, their keys, and what was decided."),
    Endpoint(
        "POST",
        "/people",
        ONLY,
        add,
        "Add somebody, and make a key.",
        NAME | DAYS | {"role": Field("text", "a role", most=20)},
    ),
    Endpoint("POST", "/people/key", ONLY, new_key, "Another key of somebody.", NAME | DAYS),
    Endpoint(
        "POST",
        "/people/revoke",
        ONLY,
        revoke,
        "End a key.",
        {"id": Field("text", "its id", most=64)},
    ),
    Endpoint("POST", "/people/disable", ONLY, disable, "Take every key from somebody.", NAME),
    Endpoint(
        "POST",
        "/people/pause",
        ONLY,
        pause,
        "Pause a table, or let it go on.",
        {
            "table": Field("text", "a table", True, 200),
            "paused": Field("flag", "whether it is paused", True),
            "reason": Field("text", "what whoever asks is told", most=500),
        },
    ),
]
