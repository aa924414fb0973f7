"""What a policy's file says of its service: the section ``[service]``."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from fractions import Fraction
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from dither._environment import PREFIX
from dither.errors import PolicyError
from dither.ledger._place import LedgerSchema
from dither.policy._fields import Reader
from dither.policy._policy import Policy
from dither.service.access._roles import Role

__all__ = ["OpenIdProvider", "ServiceSettings", "read_settings"]

NAME = re.compile(r"[a-z0-9][a-z0-9_-]{0,39}")

TIMEOUTS = {Role.OWNER: 3600, Role.ANALYST: 600}
"""Seconds that a question of each role may run."""

MOST_SECONDS = 7 * 24 * 3600


@dataclass(frozen=True, slots=True)
class OpenIdProvider:
    """An OpenID Connect provider, and the roles of its groups: ``[service.oidc]``.

    Parameters
    ----------
    issuer : str
        Its address, as its tokens say it.
    client_id : str
    client_secret : str
        As ``env:NAME``.
    groups_claim : str
        The claim of the identity token that lists groups.
    roles : mapping of str to Role
        By group.
    address : str
        Of this service, as browsers see it: where the provider sends them back to.
    scope : str
        What the provider is asked for: ``openid``, and what it wants to hear to tell groups.
    """

    issuer: str
    client_id: str
    client_secret: str
    groups_claim: str
    roles: Mapping[str, Role]
    address: str
    scope: str = "openid"


@dataclass(frozen=True, slots=True)
class ServiceSettings:
    """The section.

    Parameters
    ----------
    name : str
        What stands in addresses for this policy.
    database : Path or LedgerSchema
        Where people, keys and jobs are kept.
    approve_above : Fraction, optional
        A question that costs more epsilon waits for an owner.
    timeouts : mapping of Role to int
        Seconds that a question may run; then it is ended, and stays charged.
    memory : int, optional
        Bytes that a process which runs questions may take.
    workers : int
        How many questions run at a time.
    public : bool
        Whether anybody may see released answers without a key.
    rate : int
        Requests of one person in a minute.
    body : int
        Bytes of a request's body.
    oidc : OpenIdProvider, optional
    """

    name: str
    database: Path | LedgerSchema
    approve_above: Fraction | None = None
    timeouts: Mapping[Role, int] = field(default_factory=lambda: dict(TIMEOUTS))
    memory: int | None = None
    workers: int = 2
    public: bool = False
    rate: int = 600
    body: int = 2**20
    oidc: OpenIdProvider | None = None


def read_settings(policy: Policy, name: str = "") -> ServiceSettings:
    """Read the section of a policy.

    Parameters
    ----------
    policy : Policy
    name : str
        That of its file, for a policy that says none.

    Raises
    ------
    PolicyError
        A field is wrong.
    """
    part = Reader(policy.around.get("service", {}), "service")
    given = part.text("name") or name or "policy"
    if not NAME.fullmatch(given):
        raise PolicyError(
            "service.name must be of small letters, digits, - and _, at most 40, since it stands "
            "in addresses"
        )
    timeouts = dict(TIMEOUTS)
    limits = Reader(part.section("timeout"), "service.timeout")
    for role in timeouts:
        timeouts[role] = limits.whole(role.value, MOST_SECONDS) or timeouts[role]
    limits.finish()
    above = Reader(part.section("approve_above"), "service.approve_above")
    limit = above.number("epsilon")
    above.finish()
    if limit is not None and limit < 0:
        raise PolicyError("service.approve_above.epsilon must be at least 0")
    found = ServiceSettings(
        name=given,
        database=_database(policy, part),
        approve_above=limit,
        timeouts=timeouts,
        memory=part.whole("memory", 2**50),
        workers=part.whole("workers", 64) or 2,
        public=part.flag("public", False),
        rate=part.whole("rate", 10**6) or 600,
        body=part.whole("body", 2**26) or 2**20,
        oidc=_oidc(part.section("oidc")),
    )
    part.finish()
    return found


def _database(policy: Policy, part: Reader) -> Path | LedgerSchema:
    """A file beside the ledger, or a schema beside its own.

    It is not the ledger's own, which may be shown to anybody: this one holds who has a key, and
    what was asked and refused.
    """
    named = part.text("database")
    if isinstance(policy.ledger, LedgerSchema):
        if named is not None:
            raise PolicyError(
                "service.database is for ledgers that are files: that of a ledger on a server is "
                "the schema beside it"
            )
        return policy.ledger.beside("_service")
    if named is not None:
        return policy.folder / Path(named).expanduser()
    return policy.ledger.with_name(policy.ledger.name + ".service")


def _oidc(body: Mapping[str, Any]) -> OpenIdProvider | None:
    if not body:
        return None
    part = Reader(body, "service.oidc")
    secret = part.required_text("client_secret")
    if not secret.startswith(PREFIX):
        raise PolicyError(
            "service.oidc.client_secret must name a variable of the environment, as 'env:NAME'"
        )
    roles = {}
    for group, role in part.section("roles", required=True).items():
        if role not in {one.value for one in Role if one is not Role.PUBLIC}:
            raise PolicyError("service.oidc.roles must map groups to owner, analyst or auditor")
        roles[group] = Role(role)
    scope = part.text("scope") or "openid"
    if "openid" not in scope.split():
        raise PolicyError("service.oidc.scope must have openid among its words")
    found = OpenIdProvider(
        _place(part, "issuer"),
        part.required_text("client_id"),
        secret,
        part.text("groups_claim") or "groups",
        roles,
        _place(part, "address").rstrip("/"),
        scope,
    )
    part.finish()
    return found


def _place(part: Reader, name: str) -> str:
    """An address that nobody on the way can speak for."""
    found = part.required_text(name)
    try:
        parts = urlsplit(found)
        host, _ = parts.hostname, parts.port
    except ValueError:
        host = None
    near = host in ("localhost", "127.0.0.1", "::1")
    whole = found.isascii() and found.isprintable() and not set(found) & set(" ?#@\\")
    if not host or not whole or parts.scheme not in ({"https", "http"} if near else {"https"}):
        raise PolicyError(
            f"service.oidc.{name} must be an address that begins with https://, without a query "
            "(or http:// where it is on this machine)"
        )
    return found
