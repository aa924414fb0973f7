"""The names of criteria and attackers, and what each does, for people."""

from __future__ import annotations

from collections.abc import Sequence

__all__ = [
    "CRITERIA",
    "INFERRING",
    "LINKING",
    "QUESTIONS",
    "SHARES",
    "SINGLING",
    "attacker_words",
    "listed",
]

SINGLING, LINKING, INFERRING = "singling out", "linkability", "inference"
CRITERIA = (SINGLING, LINKING, INFERRING)

QUESTIONS = {
    SINGLING: "Can somebody tell that a row, or the whole release, is of one person?",
    LINKING: "Can somebody join two records of one person through the release?",
    INFERRING: "Can somebody learn a value of a person that they did not know?",
}

SHARES = {0.1: "top tenth", 0.5: "top half"}
"""Of an attacker who scores: to how many of all people it says yes."""

_WORDS = {
    (SINGLING, "exact"): (
        "exact linkage",
        "Says yes where exactly one released row fits all that is known of a person.",
    ),
    (SINGLING, "weighted"): (
        "weighted linkage",
        "Scores released rows by what they share with a person, rare values most, and looks by how "
        "much the best row leads.",
    ),
    (SINGLING, "inexact"): (
        "inexact linkage",
        "As weighted linkage, with numbers that are nearly right.",
    ),
    (SINGLING, "nearest"): (
        "nearest record",
        "Looks how near the nearest released row lies, by Gower's distance.",
    ),
    (SINGLING, "crowd"): (
        "nearest record in a crowd",
        "Looks how near the nearest released row lies, against how near other people lie.",
    ),
    (SINGLING, "shadow"): (
        "shadow-trained attack",
        "Learned on imitations of the release, of which it knows who was in, what gives people "
        "away.",
    ),
    (SINGLING, "tracing"): (
        "tracing on published shares",
        "Adds up how a person has pulled the release's shares of values, and of pairs of values, "
        "to themselves.",
    ),
    (LINKING, "exact"): (
        "exact linkage",
        "Says yes where exactly one row fits each half of a person's columns, and it is the same.",
    ),
    (LINKING, "weighted"): (
        "weighted linkage",
        "Says yes where both halves of a person's columns lead to the same best row, rare values "
        "weighing most.",
    ),
    (LINKING, "inexact"): (
        "inexact linkage",
        "As weighted linkage, with numbers that are nearly right.",
    ),
    (LINKING, "nearest"): (
        "nearest record",
        "Says yes where both halves of a person's columns have the same nearest row, by Gower's "
        "distance.",
    ),
    (INFERRING, "nearest"): (
        "nearest record",
        "Says what the row has that is nearest in all other columns.",
    ),
    (INFERRING, "model"): (
        "model",
        "Says what a model of boosted trees says that was trained on the release.",
    ),
    (INFERRING, "homogeneity"): (
        "homogeneity",
        "Says the one value that all released rows have that are like the person in all other "
        "columns.",
    ),
    (INFERRING, "similarity"): (
        "similarity",
        "Says the group, or the narrow range, into which the values of all such rows fall.",
    ),
    (INFERRING, "differencing"): (
        "differencing of two versions",
        "Says the one value that changed from the earlier version to this one among such rows.",
    ),
}


def attacker_words(criterion: str, attacker: str, share: float | None) -> tuple[str, str]:
    """The name of an attacker, and a sentence on what it does."""
    name, about = _WORDS[criterion, attacker]
    if share is None:
        return name, about
    return f"{name} ({SHARES[share]})", about


def listed(names: Sequence[str]) -> str:
    """Names with commas, and "and" before the last."""
    return names[0] if len(names) == 1 else f"{', '.join(names[:-1])} and {names[-1]}"
