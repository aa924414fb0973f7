"""What epsilon means, an attack to try, and what is told to whoever's answers are asked for."""

from __future__ import annotations

from fractions import Fraction

from dither import _checks as check
from dither.errors import ArgumentError
from dither.service._endpoints import ANALYST, AUDITOR, OWNER, Asked, Endpoint, Field, roles
from dither.service.access._roles import Role
from dither.service.page._odds import FIRST, curves, steps
from dither.service.page._participants import promises, sheet
from dither.service.page._shown import PageView, language
from dither.service.page._texts import LANGUAGES
from dither.service.page._trial import TrialTable, tables_for, tried

__all__ = ["VIEWS"]

PEOPLE = roles(ANALYST, OWNER, AUDITOR)

LEVELS = ("0.1", "0.5", "1", "3")
"""Of each count of the attack."""


def _tables(asked: Asked) -> list[TrialTable]:
    """Dummy people of the policy's tables, of public facts alone."""
    if asked.who.role is Role.AUDITOR:
        return tables_for(asked.desk.session)
    return tables_for(asked.desk.session_of(asked.who))


def learn(asked: Asked) -> PageView:
    """The slider, and the attack's form."""
    found = _tables(asked)
    wanted = asked.body.get("table")
    table = next((one for one in found if one.name == wanted), found[0] if found else None)
    return PageView(
        "learn/learn.html",
        {
            "steps": steps(),
            "first": FIRST,
            "curves": curves(),
            "policies": promises(asked.desk.session.policy),
            "tables": [one.name for one in found],
            "table": table,
            "levels": LEVELS,
        },
    )


def attack(asked: Asked) -> PageView:
    """Try it: nothing is spent, and nobody real is in it."""
    table = next((one for one in _tables(asked) if one.name == asked.body["table"]), None)
    if table is None:
        raise ArgumentError("table must be one of those that are listed")
    if not asked.body["secret"] < len(table.secrets):
        raise ArgumentError("secret must be one of those that are listed")
    epsilon = check.exact("epsilon", asked.body["epsilon"], least=Fraction(1, 100), most=10)
    secret = table.secrets[asked.body["secret"]]
    found = tried(table, secret, asked.body["target"], epsilon)
    return PageView(
        "learn/_tried.html",
        {
            **found,
            "secret": secret.text,
            "person": table.people[asked.body["target"]],
            "epsilon": asked.body["epsilon"],
            "name": table.name,
        },
    )


def participants(asked: Asked) -> PageView:
    """What is told to people whose answers are in the data, in either language."""
    wanted = asked.body.get("in")
    code = wanted if wanted in LANGUAGES else language(asked.http).code
    parts = sheet(asked.desk.session.policy, code, asked.desk.name)
    return PageView("learn/participants.html", {"code": code, "parts": parts})


VIEWS = [
    Endpoint(
        "GET",
        "/learn",
        PEOPLE,
        learn,
        "What epsilon means, and an attack to try.",
        {"table": Field("text", "whose dummy rows are attacked", most=200)},
    ),
    Endpoint(
        "POST",
        "/learn/attack",
        PEOPLE,
        attack,
        "The differencing attack, on dummy rows.",
        {
            "table": Field("text", "a table", True, 200),
            "target": Field("whole", "which of the people", True, 1000),
            "secret": Field("whole", "which of the conditions", True, 1000),
            "epsilon": Field("number", "of each private count", True),
        },
    ),
    Endpoint(
        "GET",
        "/learn/participants",
        PEOPLE,
        participants,
        "What happens to an answer, for whoever gave it.",
        {"in": Field("text", "en or zh", most=5)},
    ),
]
