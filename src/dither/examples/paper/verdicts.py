"""A claim of the paper with its verdict, and what verdicts there are."""

from __future__ import annotations

from dataclasses import dataclass

__all__ = ["AS_PRINTED", "HOLDS", "NOT", "ONLY_HERE", "UNDECIDED", "PaperClaim"]

HOLDS, ONLY_HERE, NOT = "holds", "holds on this data only", "does not hold"
AS_PRINTED, UNDECIDED = "true as printed", "undecided"


@dataclass(frozen=True, slots=True)
class PaperClaim:
    """One claim of the paper.

    Parameters
    ----------
    where : str
        In the paper.
    text : str
    verdict : {"holds", "true as printed", "holds on this data only", "does not hold", "undecided"}
        A theorem is true as printed where its statement is proved and says less than it seems. What
        rests on simulated surveys is undecided where their number leaves it open; a verdict of
        theirs is wrong with probability 5 % at most.
    evidence : str
        The figures behind the verdict.
    """

    where: str
    text: str
    verdict: str
    evidence: str
