"""What each model leaves open, in one line."""

from __future__ import annotations

from collections.abc import Sequence

from dither.lab.anonymize.requirements import Requirement

__all__ = ["unprotected"]

ALWAYS = "a column left out of quasi, another release on the same people, or whoever knows more"


def unprotected(quasi: Sequence[str], requirements: Sequence[Requirement], diverse: bool) -> str:
    """One line on what a k-anonymous release does not protect.

    Parameters
    ----------
    quasi : sequence of str
    requirements : sequence of Requirement
        What holds besides k-anonymity.
    diverse : bool
        Whether every class was seen to have two values or more of each sensitive column.
    """
    if requirements:
        parts = list(dict.fromkeys(r.blind for r in requirements))
        return f"Not protected: {'; '.join(parts)}; and {ALWAYS}."
    if diverse:
        first = "values that are likely in a class, though no class has only one"
    else:
        first = "a sensitive value that all of a class share"
    return f"Not protected: {first}; and {ALWAYS}."
