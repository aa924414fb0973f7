"""Answers that were none: kept as they were typed, beside what is wrong with them, until mended."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from dither.errors import ArgumentError, DitherError
from dither.plan.schema import Kind
from dither.policy.steps import QUESTIONS, TomlText, answered
from dither.policy.steps._questions import kinds_for, words
from dither.service.page._texts import PageWords
from dither.service.policies import PolicyDraft

__all__ = [
    "WrongAnswer",
    "is_asked",
    "kept",
    "listed_wrong",
    "names_of",
    "place_of",
    "taken",
    "wrong_of",
]

MOST = 200
"""Answers that one text waits for."""


@dataclass(frozen=True, slots=True)
class WrongAnswer:
    """What somebody typed that the policy does not take.

    Parameters
    ----------
    key : str
        Of the question.
    named : tuple of str
        The table and the column, or the analyst.
    value : str
        As it was typed.
    text : str
        In the words of the library; empty where it would be an answer by now.
    """

    key: str
    named: tuple[str, ...]
    value: str
    text: str

    @property
    def place(self) -> str:
        """The question and what it is about, as one text."""
        return place_of(self.key, self.named)


def place_of(key: str, named: Sequence[str]) -> str:
    """The same of a question that is asked now."""
    return json.dumps([key, *named])


def names_of(text: str) -> list[str]:
    """Names that are sent as JSON.

    Raises
    ------
    ArgumentError
        They are something else.
    """
    try:
        found = json.loads(text)
    except ValueError:
        found = None
    if not isinstance(found, list) or not all(isinstance(one, str) for one in found):
        raise ArgumentError("named must be a list of names")
    return found[:2]


def taken(draft: PolicyDraft, held: TomlText, key: str, value: str, *named: str) -> TomlText:
    """The policy with one answer in it.

    Raises
    ------
    DitherError
        It is no answer; says what would be.
    """
    return answered(held, key, value, *named, kind=_kind(draft, held, key, named))


def _kind(draft: PolicyDraft, held: TomlText, key: str, named: Sequence[str]) -> Kind | None:
    if QUESTIONS[key].of != "column" or len(named) != 2:
        return None
    return kinds_for(held, named[0], draft.stored.get(named[0], {})).get(named[1])


def kept(draft: PolicyDraft, text: str) -> list[WrongAnswer]:
    """What was typed before and stands in no policy yet, as far as it is asked for still.

    Parameters
    ----------
    draft : PolicyDraft
    text : str
        `listed_wrong`'s, as a form sends it.
    """
    try:
        found = json.loads(text or "[]")
    except ValueError:
        return []
    made = []
    for one in found[:MOST] if isinstance(found, list) else ():
        match one:
            case [str(key), str(value), *named] if all(isinstance(n, str) for n in named):
                made.append((key, tuple(named[:2]), value))
    return [wrong_of(draft, *one) for one in made if is_asked(draft, *one[:2])]


def is_asked(draft: PolicyDraft, key: str, named: tuple[str, ...]) -> bool:
    """Whether there is such a question of this text."""
    if draft.held is None or key not in QUESTIONS or key == "source":
        return False
    question = QUESTIONS[key]
    if len(named) != question.place.count("*"):
        return False
    if question.of not in ("table", "column"):
        return True
    if question.of == "table" or named[0] not in draft.tables:
        return named[0] in draft.tables
    declared = draft.held.get(("tables", named[0], "columns"))
    return named[1] in draft.stored.get(named[0], {}) or (
        isinstance(declared, Mapping) and named[1] in declared
    )


def wrong_of(draft: PolicyDraft, key: str, named: tuple[str, ...], value: str) -> WrongAnswer:
    """An answer with what is wrong with it now."""
    try:
        assert draft.held is not None
        taken(draft, draft.held, key, value, *named)
    except DitherError as error:
        return WrongAnswer(key, named, value, str(error))
    return WrongAnswer(key, named, value, "")


def listed_wrong(found: Sequence[WrongAnswer], say: PageWords) -> dict[str, Any]:
    """What the page shows of them, and sends along with whatever is answered next."""
    said = words(say.code)
    shown: list[Mapping[str, Any]] = []
    for at, one in enumerate(found):
        question = QUESTIONS[one.key]
        of = dict(zip(("table", "column"), one.named, strict=False))
        if question.of == "analyst":
            of = {"analyst": one.named[0]}
        rest = [other for i, other in enumerate(found) if i != at]
        shown.append(
            {
                "step": question.step,
                "step_title": said[f"step_{question.step}"]["title"],
                "label": said[one.key]["question"].format(**of),
                "text": one.text,
                "without": _sent(rest),
            }
        )
    return {
        "wrong": {one.place: one for one in found},
        "wrongs": [one for one in shown if one["text"]],
        "wrong_sent": _sent(found),
    }


def _sent(found: Sequence[WrongAnswer]) -> str:
    return json.dumps([[one.key, one.value, *one.named] for one in found], ensure_ascii=False)
