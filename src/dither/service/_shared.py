"""What a service and its clients tell each other, written on one side and read on the other."""

from __future__ import annotations

import math
from collections.abc import Collection, Mapping
from datetime import UTC, datetime
from fractions import Fraction
from typing import Any

from dither.errors import PolicyError
from dither.ledger import Entry
from dither.plan.schema import Kind, Schema
from dither.policy._facts import Fact
from dither.policy._policy import Policy, PolicyText, read_policy, schema_of
from dither.privacy import Charge
from dither.service._balances import balance_to_dict as balance_data
from dither.session._recipe import from_plain, to_plain
from dither.session._session import Session

__all__ = [
    "balance_data",
    "fact_data",
    "fact_from",
    "policy_from",
    "public_document",
    "reply",
    "schema_data",
    "schema_from",
]

HIDDEN = ("owner", "engine", "quotas", "analysts")
"""Sections of a policy that are nobody's business: places of keys and servers, and who else asks.
"""


def public_document(text: PolicyText, leave_out: Collection[str]) -> Any:
    """What a policy declares, without places, keys and people."""
    document = text.document()
    kept = {name: part for name, part in document.items() if name not in (*HIDDEN, *leave_out)}
    budget = {k: v for k, v in kept["budget"].items() if k not in ("ledger", "checkpoint")}
    tables = {
        name: {k: v for k, v in table.items() if k != "source"}
        for name, table in kept["tables"].items()
    }
    return to_plain(kept | {"budget": budget, "tables": tables})


def policy_from(document: Any, digest: str) -> Policy:
    """The policy of what `public_document` wrote, under the digest that it has whole."""
    from dataclasses import replace

    found = from_plain(document)
    if not isinstance(found, Mapping) or "budget" not in found:
        raise PolicyError("the service does not say its policy: see that both have one version")
    budget = {**found["budget"], "ledger": "elsewhere.ledger"}
    return replace(read_policy({**found, "budget": budget}), digest=digest)


def schema_data(session: Session) -> dict[str, Any]:
    """What sources say of their columns: names and kinds, and no value."""
    engine, tables = session._engine, session.policy.tables
    return {
        "found": {
            name: {c: None if k is None else k.value for c, k in engine.describe(name).items()}
            for name in tables
        },
        "incomplete": [name for name in tables if not engine.complete(name)],
        "unread": {name: dict(engine.unread(name)) for name in tables},
        "lists": {name: {c: k.value for c, k in engine.lists(name).items()} for name in tables},
        "zoned": {name: sorted(engine.zoned(name)) for name in tables},
        "labels": {
            name: {c: list(held) for c, held in engine.labels(name).items()} for name in tables
        },
    }


def schema_from(policy: Policy, data: Mapping[str, Any]) -> Schema:
    """The schema of what `schema_data` wrote."""
    found = {
        name: {c: None if k is None else Kind(k) for c, k in columns.items()}
        for name, columns in data["found"].items()
    }
    lists = {
        name: {c: Kind(k) for c, k in columns.items()} for name, columns in data["lists"].items()
    }
    zoned = {name: frozenset(columns) for name, columns in data["zoned"].items()}
    return schema_of(policy, found, data["incomplete"], data["unread"], lists, zoned)


def fact_data(fact: Fact) -> dict[str, Any]:
    """What was learned, with the entry that it comes from."""
    charge = fact.entry.charge
    assert charge is not None
    return {
        "kind": fact.kind,
        "table": fact.table,
        "column": fact.column,
        "content": dict(fact.content),
        "entry": fact.entry.number,
        "hash": fact.entry.hash,
        "time": fact.entry.time.isoformat(),
        "epsilon": str(charge.epsilon),
        "delta": str(charge.delta),
    }


def fact_from(data: Mapping[str, Any]) -> Fact:
    """Read back what `fact_data` wrote."""
    charge = Charge(Fraction(data["epsilon"]), Fraction(data["delta"]))
    entry = Entry(
        data["entry"],
        datetime.fromisoformat(data["time"]).astimezone(UTC),
        "charge",
        (),
        None,
        charge,
        {},
        *(None, None, None, None, None),
        data["hash"],
    )
    return Fact(data["kind"], data["table"], data["column"], data["content"], entry)


def reply(found: Any) -> list[dict[str, Any]]:
    """The rows of a result that has a frame, as JSON can say them; none of others."""
    frame = getattr(found, "frame", None)
    if frame is None or not hasattr(frame, "to_dicts"):
        return []
    return [{name: _cell(value) for name, value in row.items()} for row in frame.to_dicts()]


def _cell(value: Any) -> Any:
    if isinstance(value, float) and not math.isfinite(value):
        return None
    if value is None or isinstance(value, bool | int | float | str):
        return value
    if isinstance(value, list | tuple):
        return [_cell(one) for one in value]
    if isinstance(value, Mapping):
        return {str(name): _cell(one) for name, one in value.items()}
    return str(value)
