"""What is offered over HTTP: each endpoint says who may call it, what it takes and what it gives.

The routing table, the check of bodies, the rules of access and the OpenAPI document are made of
these alone, so that none of them can be of another opinion. One without a rule cannot be made.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from dither.errors import ArgumentError
from dither.service.access._roles import Role

if TYPE_CHECKING:
    from starlette.requests import Request

    from dither.service._desk import Desk
    from dither.service._hall import Hall
    from dither.service.access._people import Identity

__all__ = ["Asked", "Endpoint", "Field", "NotFoundError", "TooManyError", "read_body"]

OWNER, ANALYST, AUDITOR, PUBLIC = Role.OWNER, Role.ANALYST, Role.AUDITOR, Role.PUBLIC


class NotFoundError(ArgumentError):
    """There is no such thing for whoever asks, be it there for others or not."""


class TooManyError(ArgumentError):
    """Somebody has as much going on as one person may."""


@dataclass(frozen=True, slots=True)
class Field:
    """One field of a body.

    Parameters
    ----------
    kind : str
        ``"text"``, ``"number"`` (or a text that is one), ``"whole"``, ``"flag"``, ``"list"`` or
        ``"object"``.
    about : str
        What it is.
    required : bool
    most : int
        Characters of a text, elements of a list, or the largest whole number.
    """

    kind: str
    about: str
    required: bool = False
    most: int = 1000

    def schema(self) -> dict[str, Any]:
        """As OpenAPI says it."""
        found: dict[str, Any] = {"description": self.about}
        match self.kind:
            case "text":
                return found | {"type": "string", "maxLength": self.most}
            case "number":
                return found | {"type": ["number", "string"]}
            case "whole":
                return found | {"type": "integer", "maximum": self.most}
            case "flag":
                return found | {"type": "boolean"}
            case "list":
                return found | {"type": "array", "items": {}, "maxItems": self.most}
        return found | {"type": "object"}

    def check(self, name: str, value: Any) -> Any:
        """The value, if it is of this kind.

        Raises
        ------
        ArgumentError
            Which quotes nothing of it.
        """
        whole = isinstance(value, int) and not isinstance(value, bool)
        match self.kind:
            case "text":
                if not isinstance(value, str) or not value.strip() or len(value) > self.most:
                    raise ArgumentError(f"{name} must be a text of 1 to {self.most:,} characters")
            case "number":
                if not (whole or isinstance(value, float)) and not (
                    isinstance(value, str) and _NUMBER.fullmatch(value)
                ):
                    raise ArgumentError(f"{name} must be a number, such as 0.5")
                return str(value)
            case "whole":
                if not whole or not 0 <= value <= self.most:
                    raise ArgumentError(f"{name} must be a whole number from 0 to {self.most:,}")
            case "flag":
                if not isinstance(value, bool):
                    raise ArgumentError(f"{name} must be true or false")
            case "list":
                if not isinstance(value, list) or len(value) > self.most:
                    raise ArgumentError(f"{name} must be a list of at most {self.most:,} elements")
            case _:
                if not isinstance(value, dict):
                    raise ArgumentError(f"{name} must be an object")
        return value


_NUMBER = re.compile(r"[0-9]{1,40}(/[0-9]{1,40}|(\.[0-9]{0,40})?([eE][+-]?[0-9]{1,3})?)?")


@dataclass(frozen=True, slots=True)
class Asked:
    """A request that was let in.

    Parameters
    ----------
    hall : Hall
        The whole service.
    desk : Desk
        Of the policy that is named.
    who : Identity
    body : mapping
        As `read_body` gives it; of the query where there is no body.
    path : mapping of str to str
        The parts of the address that are named.
    http : Request
    """

    hall: Hall
    desk: Desk
    who: Identity
    body: Mapping[str, Any]
    path: Mapping[str, str]
    http: Request


@dataclass(frozen=True, slots=True)
class Endpoint:
    """One thing that can be called.

    Parameters
    ----------
    method : str
    path : str
        Below the policy's own, such as ``"/jobs/{id}"``.
    roles : frozenset of Role
        Who may call it; not empty.
    does : callable
        From `Asked` to plain data, or a response. It runs in a thread.
    about : str
        What it does, in a line.
    takes : mapping of str to Field
    status : int
        Of its answer.
    gives : mapping, optional
        The schema of its answer.
    lenient : bool
        What else stands in its query is left aside, and not refused: others made the address.
    open : bool
        Somebody without a key may call it although the policy shows nothing to the public.

    Raises
    ------
    ValueError
        Nobody may call it.
    """

    method: str
    path: str
    roles: frozenset[Role]
    does: Callable[[Asked], Any]
    about: str
    takes: Mapping[str, Field] = field(default_factory=dict)
    status: int = 200
    gives: Mapping[str, Any] = field(default_factory=lambda: {"type": "object"})
    lenient: bool = False
    open: bool = False

    def __post_init__(self) -> None:
        if not self.roles:
            raise ValueError(f"{self.method} {self.path}: say who may call it")

    @property
    def changes(self) -> bool:
        """Whether it may change anything, so that a browser must prove whose page asks."""
        return self.method != "GET"


def read_body(takes: Mapping[str, Field], given: Any) -> dict[str, Any]:
    """The fields of a body, each seen to be what it should be.

    Raises
    ------
    ArgumentError
        One is unknown, missing or of another kind; nothing of what was sent is quoted.
    """
    if not isinstance(given, dict):
        raise ArgumentError("the body must be a JSON object")
    if not given.keys() <= takes.keys():
        known = ", ".join(sorted(takes)) or "none"
        raise ArgumentError(f"the body has a field that is not known here; known: {known}")
    found = {}
    for name, part in takes.items():
        value = given.get(name)
        if value is None:
            if part.required:
                raise ArgumentError(f"{name} is missing")
            continue
        found[name] = part.check(name, value)
    return found


def roles(*given: Role) -> frozenset[Role]:
    """A set of roles."""
    return frozenset(given)


def every(endpoints: Sequence[Sequence[Endpoint]]) -> list[Endpoint]:
    """All of several lists, none of which stands twice.

    Raises
    ------
    ValueError
        Two are called alike.
    """
    found = [one for some in endpoints for one in some]
    if len({(one.method, one.path) for one in found}) < len(found):
        raise ValueError("two endpoints are called alike")
    return found
