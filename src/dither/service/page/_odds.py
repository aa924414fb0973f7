"""What an epsilon means in odds, as tables and a picture: all numbers are the library's."""

from __future__ import annotations

import math
from fractions import Fraction
from typing import Any

from dither._format import loss_text, percent
from dither.errors import ArgumentError
from dither.ledger._block_budget import BlockBudget
from dither.privacy import Charge, Neighbours, Promise, approximate
from dither.privacy.accounts._budget import BudgetFilter
from dither.service.page._svg import Scale

__all__ = ["curves", "most_of_a_hundred", "promised", "steps"]

EPSILONS = (
    *(0.01, 0.02, 0.03, 0.05, 0.07, 0.1, 0.15, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 0.9, 1.0),
    *(1.2, 1.5, 2.0, 2.5, 3.0, 4.0, 5.0, 6.0, 7.0, 8.0, 10.0),
)

PRIORS = (Fraction(1, 1000), Fraction(1, 100), Fraction(1, 10), Fraction(1, 2))

FIRST = EPSILONS.index(1.0)

ACROSS = Scale(EPSILONS[0], EPSILONS[-1], 48, 560, log=True)

UP = Scale(0, 1, 220, 16)

BEYOND = 100
"""An epsilon from which on a guess may always be right, as far as anybody could tell."""


def steps() -> list[dict[str, Any]]:
    """For each epsilon of the slider: by prior what an attacker may reach, and where it lies."""
    from dither.lab.attack._verdict import most_certain

    found = []
    for epsilon in EPSILONS:
        reached = [most_certain(epsilon, float(prior)) for prior in PRIORS]
        found.append(
            {
                "epsilon": f"{epsilon:g}",
                "factor": loss_text(math.exp(epsilon), 3),
                "x": ACROSS(epsilon),
                "reached": [
                    {"text": percent(one, turn=math.ceil), "y": UP(one)} for one in reached
                ],
            }
        )
    return found


def curves() -> dict[str, Any]:
    """The picture: how sure an attacker may be, against epsilon, from each prior."""
    from dither.lab.attack._verdict import most_certain

    lines = [
        " ".join(f"{ACROSS(e)},{UP(most_certain(e, float(prior)))}" for e in EPSILONS)
        for prior in PRIORS
    ]
    return {
        "lines": lines,
        "priors": [percent(prior) for prior in PRIORS],
        "across": [(ACROSS(e), f"{e:g}") for e in (0.01, 0.1, 1.0, 10.0)],
        "up": [
            (UP(one), percent(Fraction(one).limit_denominator(4)))
            for one in (0, 0.25, 0.5, 0.75, 1)
        ],
    }


def most_of_a_hundred(charge: Charge) -> int:
    """How often anybody is right at most, of a hundred, who guesses which of two tables it is.

    Blind guessing is right in 50. Rounded up.

    >>> most_of_a_hundred(Charge.approximate(Fraction(1), Fraction(1, 10**6)))
    74
    """
    from dither.lab.attack._verdict import most_right

    epsilon, delta = charge.epsilon, charge.delta
    if epsilon is None or epsilon >= BEYOND or delta >= 1:
        return 100
    return min(100, math.ceil(100 * most_right(approximate(epsilon, delta))))


def promised(promise: Promise, budget: BudgetFilter | BlockBudget) -> dict[str, Any]:
    """What a policy promises somebody, in whole numbers of a hundred guesses.

    Returns
    -------
    dict
        ``rows``: for so many blocks (None for all that there is), how often a guess is right at
        most whether they are there (None where that is public), and which of two answers is theirs.
    """
    kept: list[tuple[int | None, Charge]] = []
    if isinstance(budget, BlockBudget):
        each = Charge.approximate(budget.each.epsilon, budget.each.delta)
        whole = budget.lifetime
        kept += [(blocks, blocks * each) for blocks in (1, 3, 12)]
        if whole is not None:
            # Never worse than the lifetime, in however many blocks somebody is.
            kept = [
                (n, one)
                for n, one in kept
                if one.epsilon is not None and one.epsilon <= whole.epsilon
            ]
            kept.append((None, Charge.approximate(whole.epsilon, whole.delta)))
    else:
        kept.append((None, Charge.approximate(budget.epsilon, budget.delta)))
    return {
        "unit": promise.unit,
        "every": budget.calendar.every or "block" if isinstance(budget, BlockBudget) else None,
        "endless": kept[-1][0] is not None,
        "rows": [{"blocks": n, **_chances(charge, promise)} for n, charge in kept],
    }


def _chances(charge: Charge, promise: Promise) -> dict[str, Any]:
    there = most_of_a_hundred(charge)
    if promise.neighbours is Neighbours.REPLACE:
        return {"there": None, "answer": there}
    try:
        swapped = charge.promising(promise).to_replace() if there < 100 else None
    except (ArgumentError, OverflowError):
        swapped = None
    return {"there": there, "answer": 100 if swapped is None else most_of_a_hundred(swapped)}
