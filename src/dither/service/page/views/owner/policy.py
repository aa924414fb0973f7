"""The policy: six steps, the text beside them, and how it is saved."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from dither.errors import ArgumentError, DitherError
from dither.policy.steps import STEPS, TomlText, answered
from dither.service._endpoints import OWNER, Asked, Endpoint, Field, roles
from dither.service.page._shown import PageView, language
from dither.service.page.views.owner._steps import step_shown
from dither.service.page.views.owner._wrong import (
    WrongAnswer,
    is_asked,
    kept,
    listed_wrong,
    names_of,
    taken,
    wrong_of,
)
from dither.service.policies import PolicyDraft, before, save, text_of, undo
from dither.service.policies._draft import MOST_TEXT
from dither.service.policies._saving import mark_of

__all__ = ["VIEWS"]

ONLY = roles(OWNER)


def _shown(
    asked: Asked,
    text: str,
    *,
    whole: bool = False,
    wrong: Sequence[WrongAnswer] | None = None,
    **told: Any,
) -> PageView:
    """The work on a text: the step, what was found, and what can be done with it."""
    desk, say = asked.desk, language(asked.http)
    served = text_of(desk)
    draft = PolicyDraft(desk, text, before(desk))
    step = asked.body.get("step", STEPS[0])
    wrong = kept(draft, asked.body.get("wrong", "")) if wrong is None else wrong
    values = {
        "toml": draft.text,
        "base_mark": asked.body.get("base") or mark_of(served),
        "changed": draft.text != served.replace("\r\n", "\n"),
        "undoable": before(desk) is not None,
        "findings": draft.findings,
        "errors": len(draft.errors),
        "file": desk.path.name,
        "refusal": None,
        "refused_at": "",
        "given": {name: asked.body.get(name, "") for name in GIVEN},
        "saved": False,
        "rewritten": True,
        "pressed": "",
        **listed_wrong(wrong, say),
        **step_shown(desk, draft, step if step in STEPS else STEPS[0], say),
        **told,
    }
    status = 400 if values["refusal"] else 200
    return PageView("policy/policy.html" if whole else "policy/_work.html", values, status)


EMPTY = {"source": "", "name": "", "amount": ""}

GIVEN = tuple(EMPTY)
"""Fields that are no answers by themselves: what they hold is shown again where it was refused."""


def show(asked: Asked) -> PageView:
    """The policy that is served, at a step."""
    return _shown(asked, text_of(asked.desk), whole=True)


def check(asked: Asked) -> PageView:
    """What is found in a text that was written by hand, or its next step."""
    return _shown(asked, asked.body.get("toml", ""), rewritten=False)


def answer(asked: Asked) -> PageView:
    """An answer to one question, written into the text; what is none is kept beside it."""
    text = asked.body.get("toml", "")
    draft = PolicyDraft(asked.desk, text, before(asked.desk))
    try:
        held = _readable(draft)
        key, named = asked.body["key"], tuple(names_of(asked.body.get("named", "[]")))
        if not is_asked(draft, key, named):
            raise ArgumentError("there is no such question")
        given, waiting = asked.body.get("value", ""), kept(draft, asked.body.get("wrong", ""))
        waiting = [one for one in waiting if (one.key, one.named) != (key, named)]
        try:
            held = taken(draft, held, key, given, *named)
        except DitherError:
            waiting.append(wrong_of(draft, key, named, given))
            return _shown(asked, text, wrong=waiting, rewritten=False)
    except DitherError as error:
        return _shown(asked, text, refusal=str(error), rewritten=False)
    left = []
    for one in waiting:  # what this answer makes one, such as bounds of a column that is a number
        try:
            held = taken(draft, held, one.key, one.value, *one.named)
        except DitherError:
            left.append(one)
    now = PolicyDraft(asked.desk, held.text, before(asked.desk))
    return _shown(asked, held.text, wrong=[wrong_of(now, o.key, o.named, o.value) for o in left])


def _readable(draft: PolicyDraft) -> TomlText:
    if draft.held is None:
        raise ArgumentError("mend the text first: it cannot be read")
    return draft.held


def quota(asked: Asked) -> PageView:
    """A quota of somebody who is named here."""
    text = asked.body.get("toml", "")
    draft = PolicyDraft(asked.desk, text, before(asked.desk))
    name, amount = asked.body.get("name", "").strip(), asked.body.get("amount", "")
    try:
        held = _readable(draft)
        if not name or not amount:
            raise ArgumentError("say who it is, and how much they may ask for")
        return _shown(asked, answered(held, "quota", amount, name).text, given=EMPTY)
    except DitherError as error:
        at = "quota-amount" if name else "quota-name"
        return _shown(asked, text, refusal=str(error), refused_at=at, rewritten=False)


def add_table(asked: Asked) -> PageView:
    """One more table, of a file in the policy's folder."""
    text = asked.body.get("toml", "")
    try:
        found = PolicyDraft(asked.desk, text).with_source(asked.body.get("source", ""))
    except DitherError as error:
        return _shown(asked, text, refusal=str(error), refused_at="source", rewritten=False)
    return _shown(asked, found, given=EMPTY)


def drop_table(asked: Asked) -> PageView:
    """Take a table out of the text."""
    text = asked.body.get("toml", "")
    try:
        (name, *_) = names_of(asked.body.get("named", "[]")) or [""]
        found = PolicyDraft(asked.desk, text).without_table(name)
    except DitherError as error:
        return _shown(asked, text, refusal=str(error), rewritten=False)
    return _shown(asked, found)


def keep(asked: Asked) -> PageView:
    """Save the text, and serve it; or change nothing."""
    text = asked.body.get("toml", "")
    try:
        draft = PolicyDraft(asked.desk, text, before(asked.desk))
        if any(one.text for one in kept(draft, asked.body.get("wrong", ""))):
            raise ArgumentError("mend the answers that are marked first, or take them back")
        save(asked.desk, text, asked.body.get("base", ""), asked.who.name)
    except DitherError as error:
        return _shown(asked, text, refusal=str(error), rewritten=False)
    served = text_of(asked.desk)
    return _shown(asked, served, saved=True, base_mark=mark_of(served))


def go_back(asked: Asked) -> PageView:
    """Serve what was served before the last change."""
    text = asked.body.get("toml", "")
    try:
        undo(asked.desk, asked.body.get("base", ""), asked.who.name)
    except DitherError as error:
        return _shown(asked, text, refusal=str(error), rewritten=False)
    served = text_of(asked.desk)
    return _shown(asked, served, saved=True, base_mark=mark_of(served))


STEP = {"step": Field("text", "a step", most=20)}
TEXT = STEP | {
    "toml": Field("text", "the text of a policy", most=MOST_TEXT),
    "base": Field("text", "what the change began with", most=64),
    "wrong": Field("text", "answers that were none, as JSON", most=200_000),
}
NAMED = {"named": Field("text", "a list of names, as JSON", most=10_000)}

VIEWS = [
    Endpoint("GET", "/policy", ONLY, show, "The policy, at a step.", STEP),
    Endpoint("POST", "/policy/check", ONLY, check, "What is found in a text.", TEXT),
    Endpoint(
        "POST",
        "/policy/answer",
        ONLY,
        answer,
        "An answer to one question.",
        TEXT
        | NAMED
        | {
            "key": Field("text", "of the question", True, 40),
            "value": Field("text", "the answer", most=100_000),
        },
    ),
    Endpoint(
        "POST",
        "/policy/quota",
        ONLY,
        quota,
        "A quota of somebody.",
        TEXT
        | {
            "name": Field("text", "whose it is", most=2000),
            "amount": Field("text", "epsilon", most=60),
        },
    ),
    Endpoint(
        "POST",
        "/policy/table",
        ONLY,
        add_table,
        "One more table, of a file in the policy's folder.",
        TEXT | {"source": Field("text", "the file's path from there", most=1000)},
    ),
    Endpoint("POST", "/policy/drop", ONLY, drop_table, "Take a table out.", TEXT | NAMED),
    Endpoint("POST", "/policy/save", ONLY, keep, "Save and serve a text.", TEXT),
    Endpoint("POST", "/policy/undo", ONLY, go_back, "Serve what was before.", TEXT),
]
