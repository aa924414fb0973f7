"""The places of the page, and which of them each role has."""

from __future__ import annotations

from dataclasses import dataclass

from dither.service._endpoints import ANALYST, AUDITOR, OWNER, PUBLIC, roles
from dither.service.access._people import Identity
from dither.service.access._roles import Role

__all__ = ["PLACES", "PagePlace", "first_of", "places"]


@dataclass(frozen=True, slots=True)
class PagePlace:
    """A place that people go to.

    Parameters
    ----------
    key : str
        Of its words, as ``nav.ask``, and its address below the policy's.
    roles : frozenset of Role
        Whose navigation has it.
    letter : str
        Typed after ``g``, it leads there.
    """

    key: str
    roles: frozenset[Role]
    letter: str


PLACES = (
    PagePlace("ask", roles(ANALYST, OWNER), "a"),
    PagePlace("answers", roles(ANALYST, OWNER, PUBLIC), "r"),
    PagePlace("budget", roles(ANALYST, OWNER, AUDITOR), "b"),
    PagePlace("ledger", roles(OWNER, AUDITOR), "l"),
    PagePlace("check", roles(ANALYST, OWNER, AUDITOR), "c"),
    PagePlace("policy", roles(OWNER), "p"),
    PagePlace("people", roles(OWNER), "m"),
    PagePlace("collect", roles(OWNER, ANALYST), "d"),
    PagePlace("attack", roles(OWNER), "t"),
    PagePlace("learn", roles(ANALYST, OWNER, AUDITOR), "e"),
)


def places(who: Identity, policy: str) -> list[dict[str, str]]:
    """What somebody's navigation lists."""
    return [
        {"key": one.key, "address": f"/p/{policy}/{one.key}", "letter": one.letter}
        for one in PLACES
        if who.role in one.roles
    ]


def first_of(who: Identity) -> str:
    """Where somebody arrives."""
    return next(one.key for one in PLACES if who.role in one.roles)
