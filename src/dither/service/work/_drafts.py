"""What is worked out of a draft before anything is spent: from public facts, and what is left.

It runs in the service for short questions in SQL, and in a process of its own for all others, of
which some would take minutes or fill the memory (`dither.service.work._thinking`).
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import Any

from dither._depth import deep
from dither.errors import ArgumentError
from dither.service._shared import reply
from dither.service.work._costs import costs_of, price_data
from dither.service.work._titles import title_of
from dither.session._recipe import QuestionRecipe
from dither.session._request import Request, request_of
from dither.session._session import Session

__all__ = ["DRAFTS", "answers_named", "asked_of", "is_short", "request_for", "request_made"]

SHORT = 1_500
"""Characters of a question in SQL that takes a tenth of a second or two at most."""

FEW_SIZES = 10
"""Sizes for which such a question is previewed."""

OF_SQL = frozenset({"sql", "within", "having", "order_by", "limit", "topping_up"})


def asked_of(body: Mapping[str, Any]) -> list[Any]:
    """How it is asked; SQL by itself is one call.

    Raises
    ------
    ArgumentError
        Neither or both are given.
    """
    sql, ask = body.get("sql"), body.get("ask")
    if (sql is None) == (ask is None):
        raise ArgumentError("give sql, a question in SQL, or ask, the calls that make one")
    return [["sql", [sql], {}]] if ask is None else list(ask)


def is_short(body: Mapping[str, Any]) -> bool:
    """Whether it is a short question in SQL, whatever it asks for."""
    calls = asked_of(body)
    names = []
    for one in calls:
        match one:
            case [str(name), list(), dict()]:
                names.append(name)
            case _:
                return True  # it is refused before anything is made of it
    if not names or names[0] not in Session._asks:
        return True
    of_sql = OF_SQL.issuperset(names)
    return of_sql and len(str(calls)) <= SHORT and len(body.get("sizes", ())) <= FEW_SIZES


def answers_named(asked: Any) -> Iterator[tuple[str, str]]:
    """The earlier answers that a draft names: request, and hash of the entry."""
    left = [asked]
    while left:
        one = left.pop()
        if isinstance(one, list):
            left += one
        elif isinstance(one, dict):
            if one.keys() == {"answer"}:
                match one["answer"]:
                    case [str(request), str(entry)]:
                        yield request, entry
            left += one.values()


def question_made(session: Session, body: Mapping[str, Any]) -> Any:
    """The question that a body asks.

    Raises
    ------
    DitherError
        It cannot be asked.
    """
    with deep():
        return QuestionRecipe.from_list(asked_of(body)).made(session)


def request_made(session: Session, body: Mapping[str, Any]) -> Request:
    """What a release of it would ask for.

    Raises
    ------
    DitherError
        It cannot be asked, or has no price.
    """
    question = question_made(session, body)
    with deep():
        return request_for(question, session, body)


def request_for(question: Any, session: Session, body: Mapping[str, Any]) -> Request:
    """What a release of a question that is made would ask for."""
    return request_of(
        question,
        session._opened,
        body.get("epsilon"),
        body.get("delta"),
        body.get("confidence") or 0.95,
    )


def explain(session: Session, body: Mapping[str, Any]) -> dict[str, Any]:
    """Who is protected, what is measured, and what it costs."""
    found = _explained(question_made(session, body), body)
    return {"text": str(found), "tree": found.to_dict()}


def _explained(question: Any, body: Mapping[str, Any]) -> Any:
    named = {n: body[n] for n in ("epsilon", "delta") if n in body}
    with deep():
        return question.explain(**named) if hasattr(question, "_asked_at") else question.explain()


def preview(session: Session, body: Mapping[str, Any]) -> dict[str, Any]:
    """How far off answers will be."""
    found = _previewed(question_made(session, body), body)
    return {"text": str(found), "rows": reply(found)}


def _previewed(question: Any, body: Mapping[str, Any]) -> Any:
    named: dict[str, Any] = {}
    if "sizes" in body:
        named["sizes"] = body["sizes"]
    if "confidence" in body:
        named["confidence"] = body["confidence"]
    with deep():
        if not hasattr(question, "_asked_at"):
            return question.preview(**named)
        if "epsilon" not in body:
            raise ArgumentError("epsilon is missing")
        return question.preview(body["epsilon"], body.get("delta"), **named)


def price(session: Session, body: Mapping[str, Any]) -> dict[str, Any]:
    """What a release would be charged, and how many more like it can be paid."""
    request = request_made(session, body)
    with deep():
        affordable = request.affordable()
        return {
            "price": price_data(request),
            "digest": request.data.digest,
            "affordable": str(affordable),
        }


def draft(session: Session, body: Mapping[str, Any]) -> dict[str, Any]:
    """What a job keeps of what is asked."""
    question = question_made(session, body)
    with deep():
        request = request_for(question, session, body)
        return {
            "title": title_of(question, request, asked_of(body)),
            "digest": request.data.digest,
            "tables": list(request.tables),
            "price": price_data(request),
            # What is said of a price beside a question that has one of its own is nothing of it.
            "priced": not hasattr(question, "_asked_at"),
        }


def costs(session: Session, body: Mapping[str, Any]) -> dict[str, Any]:
    """What it costs in words, and what would be left."""
    request = request_made(session, body)
    with deep():
        return costs_of(request)


def whole(session: Session, body: Mapping[str, Any]) -> dict[str, Any]:
    """All that somebody is told before they ask: costs, explanation and preview of one question."""
    question = question_made(session, body)
    with deep():
        found = costs_of(request_for(question, session, body))
        told = str(_previewed(question, body)), _explained(question, body).to_dict()
    return found | {"preview": told[0], "explained": told[1]}


DRAFTS: Mapping[str, Callable[[Session, Mapping[str, Any]], dict[str, Any]]] = {
    "explain": explain,
    "preview": preview,
    "price": price,
    "costs": costs,
    "draft": draft,
    "whole": whole,
}
"""By name: what can be worked out."""
