"""What a question would protect, cost and be worth: all that is told before it is asked."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from fractions import Fraction
from typing import Any

from anyio import to_thread

from dither._depth import deep
from dither._format import half_width, level
from dither.errors import DitherError
from dither.service._endpoints import Asked
from dither.service.page.asked._bodies import body_of, size_of
from dither.service.page.asked._curve import ErrorCurves, drawn
from dither.service.page.asked._faults import places_of
from dither.service.routes.asking import worked_out
from dither.service.work._costs import costs_of
from dither.service.work._drafts import is_short, request_for
from dither.session._request import Request

__all__ = ["costs", "priced", "whole"]

CURVES = ErrorCurves()

LONGEST = 20_000
"""Characters of a preview that are shown."""


async def priced(asked: Asked) -> dict[str, Any]:
    """What ``_price.html`` shows; where the question is refused, why, and at which place of it."""
    given = asked.body
    empty = "sql" not in given and "calls" not in given
    nothing: dict[str, Any] = {"empty": empty, "fault": None, "marks": []}
    if empty:
        return nothing
    try:
        body = body_of(given)
        if is_short(body):
            return nothing | await to_thread.run_sync(_drawn, asked, body)
        found = await whole(asked, body)
        return nothing | found | UNDRAWN | {"told": found["preview"]}
    except DitherError as error:
        said = str(error)
        return nothing | {"fault": said, "marks": places_of(said, given.get("sql", ""))}


async def costs(asked: Asked, body: Mapping[str, Any]) -> dict[str, Any]:
    """Whom a question protects, what it costs, what is left, and how many more there can be.

    Raises
    ------
    DitherError
        It cannot be asked, or takes too much to work out.
    """
    found = await worked_out("costs", replace(asked, body=body))
    return await to_thread.run_sync(_here, asked, found)


async def whole(asked: Asked, body: Mapping[str, Any]) -> dict[str, Any]:
    """The same, with its preview and its explanation: the question is made once for all of it.

    Raises
    ------
    DitherError
        As of `costs`.
    """
    found = await worked_out("whole", replace(asked, body=body))
    told = {"preview": found["preview"][:LONGEST], "explained": found["explained"]}
    return await to_thread.run_sync(_here, asked, {**found, **told})


def _here(asked: Asked, found: Mapping[str, Any]) -> dict[str, Any]:
    """Costs, and what the owner said of such questions."""
    desk = asked.desk
    return {
        **found,
        "waits": desk.waits(asked.who, found["price"]),
        "limit": desk.settings.approve_above,
        "paused": [one for one in desk.jobs.paused() if one in found["tables"]],
    }


def _drawn(asked: Asked, body: Mapping[str, Any]) -> dict[str, Any]:
    """Costs of a short question in SQL, with the curve of its error."""
    question, session = asked.desk.question(asked.who, body)
    with deep():
        request = request_for(question, session, body)
        found = costs_of(request)
    return _here(asked, found) | _worth(asked, question, request, body)


UNDRAWN: dict[str, Any] = {"picture": None, "widths": [], "told": None, "more": False, "size": None}


def _worth(
    asked: Asked, question: Any, request: Request, body: Mapping[str, Any]
) -> dict[str, Any]:
    """How far off its answers would be."""
    from dither.query._explain import protected
    from dither.query._release import _unit

    confidence = body.get("confidence") or "0.95"
    if not hasattr(question, "_asked_at"):
        with deep():
            text = str(question.preview())[:LONGEST]
        return UNDRAWN | {"told": text}
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
