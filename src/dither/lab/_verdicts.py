"""What may be said after an audit or an attack, and in which words."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from enum import StrEnum

from dither._format import wrapped

__all__ = ["Outcome", "paragraph", "some_names"]


class Outcome(StrEnum):
    """What may be said; nothing that fails to break a promise shows that it is kept.

    Attributes
    ----------
    VIOLATED
        What was seen is beyond what the claim allows. It rests on an exact tail, corrected for all
        that was tried.
    UNPROVEN
        An interval that is shown lies above what the claim allows, and no tail proves it yet.
    CONSISTENT
        The attack works, here or on the bare truth; it fails on a stranger's release; and no
        interval lies above what the claim allows.
    NOT_REFUTED
        No event of an audit contradicts the claim.
    INCONCLUSIVE
        Nothing was tested that could have refuted the claim: every call failed or no difference
        was seen, or the attack is weak or has no control.

    Examples
    --------
    >>> Outcome.CONSISTENT.sentence
    'Consistent is not safe: another attack may do better, none beyond what is allowed.'
    """

    sentence: str

    def __new__(cls, text: str, sentence: str) -> Outcome:
        member = str.__new__(cls, text)
        member._value_ = text
        member.sentence = sentence
        return member

    VIOLATED = "violated", "What was seen is beyond what the claim allows."
    UNPROVEN = (
        "above the bound, unproven",
        "What was seen is above what the claim allows and may be luck: more runs decide.",
    )
    CONSISTENT = (
        "consistent",
        "Consistent is not safe: another attack may do better, none beyond what is allowed.",
    )
    NOT_REFUTED = (
        "not refuted",
        "Not refuted is not verified: other datasets, other events or more samples may tell more.",
    )
    INCONCLUSIVE = (
        "inconclusive",
        "Nothing was tested that could have refuted the claim.",
    )


def paragraph(lines: Iterable[str]) -> str:
    """Lines for people, each wrapped."""
    return "\n".join(part for line in lines if line for part in wrapped(line))


def some_names(names: Sequence[str], most: int = 8) -> str:
    """Names with commas, and of a long list the first of them and how many more there are.

    Examples
    --------
    >>> some_names(["age", "sex", "zip"], most=2)
    'age, sex and 1 more'
    """
    shown = ", ".join(names[:most])
    return shown if len(names) <= most else f"{shown} and {len(names) - most:,} more"
