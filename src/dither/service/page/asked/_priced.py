"""What a question would protect, cost and be worth: all that is told before it is asked."""

from __future__ import annotations

from collections.abc import Mapping
from fractions import Fraction
from typing import Any

from dither._depth import deep
from dither._format import half_width, level, loss_text, remaining
from dither.errors import DitherError
from dither.ledger import Balance
from dither.query._explain import protected
from dither.query._release import _unit
from dither.service._endpoints import Asked
from dither.service.page.asked._bodies import body_of, size_of
from dither.service.page.asked._curve import ErrorCurves, drawn
from dither.service.page.asked._faults import places_of
from dither.service.work._drafts import price_data
from dither.session._pricing import MOST
from dither.session._request import Request, request_of

__all__ = ["account_key", "costs", "priced", "requested"]

CURVES = ErrorCurves()

LONGEST = 20_000
"""Characters of a preview that are shown."""


def requested(asked: Asked, body: Mapping[str, Any]) -> tuple[Any, Request]:
    """A question, and what its release would ask for.

    Raises
    ------
    DitherError
        It cannot be asked.
    """
    question, session = asked.desk.question(asked.who, body)
    with deep():
        request = request_of(
            question,
            session._opened,
            body.get("epsilon"),
            body.get("delta"),
            body.get("confidence") or 0.95,
        )
    return question, request


def priced(asked: Asked) -> dict[str, Any]:
    """What ``_price.html`` shows; where the question is refused, why, and at which place of it."""
    given = asked.body
    empty = "sql" not in given and "calls" not in given
    nothing: dict[str, Any] = {"empty": empty, "fault": None, "marks": []}
    if empty:
        return nothing
    try:
        body = body_of(given)
        question, request = requested(asked, body)
        found = costs(asked, request) | _worth(asked, question, request, body)
    except DitherError as error:
        told = str(error)
        return nothing | {"fault": told, "marks": places_of(told, given.get("sql", ""))}
    return nothing | found


def costs(asked: Asked, request: Request) -> dict[str, Any]:
    """Whom it protects, what it costs, what is left, and how many more like it there can be."""
    charge, price = request.price, price_data(request)
    balances = request.opened.balances([request.promise])
    affordable = request.affordable()
    return {
        "protects": price["protects"],
        "blocks": price.get("blocks"),
        "epsilon": None if charge.epsilon is None else loss_text(charge.epsilon),
        "rho": loss_text(charge.rho) if charge.epsilon is None and charge.rho is not None else None,
        "delta": loss_text(charge.delta) if charge.delta else None,
        "accounts": [_account(one, request) for one in balances],
        "times": f"{affordable.times:,}" if affordable.times < MOST else f"≥ {MOST:,}",
        "fits": affordable.times > 0,
        "instead": request.fits() if affordable.times == 0 else None,
        "tightest": account_key(affordable.tightest),
        "waits": asked.desk.waits(asked.who, price),
        "limit": asked.desk.settings.approve_above,
        "tables": list(request.tables),
        "paused": [one for one in asked.desk.jobs.paused() if one in request.tables],
        "digest": request.data.digest,
    }


def account_key(name: str) -> str:
    """The word for an account, by whose it is."""
    kind = name.partition(":")[0]
    return kind if kind in ("dataset", "analyst", "group", "purpose") else "other"


def _account(balance: Balance, request: Request) -> dict[str, Any]:
    """One account as it stands, and as it would stand."""
    left, after = balance.remaining, None
    if balance.admits(request.price, request.blocks):
        after = balance.after(request.price, request.blocks).remaining
    plain = left.epsilon is not None
    return {
        "kind": account_key(balance.name),
        "name": balance.name,
        "left": remaining(left.epsilon, 6) if plain else balance._left,
        "after": remaining(after.epsilon, 6)
        if plain and after is not None and after.epsilon is not None
        else None,
        "plain": plain,
    }


def _worth(
    asked: Asked, question: Any, request: Request, body: Mapping[str, Any]
) -> dict[str, Any]:
    """How far off its answers would be."""
    confidence = body.get("confidence") or "0.95"
    if not hasattr(question, "_asked_at"):
        with deep():
            text = str(question.preview())[:LONGEST]
        return {"picture": None, "widths": [], "told": text, "more": False, "size": None}
    size = size_of(asked.body)
    with deep():
        points, whole = CURVES.points(asked.who.name, question, request, confidence, size)
    chosen = Fraction(request.requested["epsilon"])
    plan = question._plan
    units = {output.name: _unit(output.aggregate, plan) for output in plan.query.outputs}
    return {
        "picture": drawn(points, chosen),
        "widths": [
            {"name": name, "half": half_width(width), "unit": units.get(name)}
            for name, width in points[chosen].items()
        ],
        "told": None,
        "more": not whole,
        "size": size,
        "level": level(float(Fraction(confidence))),
        "protects": "; neighbours ".join(protected(plan)),
    }
