"""The attack of the demo: two counts that differ in one woman, exact and released."""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import polars as pl

    from dither import Release, Session

__all__ = ["TwoCounts", "attack", "best_odds"]

KNOWN = ("age", "yrs_married", "children", "religious", "educ", "occupation", "occupation_husb")


@dataclass(frozen=True, slots=True)
class TwoCounts:
    """What the attacker asks, and what he gets for it.

    Parameters
    ----------
    her : str
        A condition that only she meets, made of what a neighbour knows.
    questions : tuple of str
        The two counts.
    exact : tuple of int
        The true counts; their difference is her secret.
    released : tuple of (int, int)
        The released counts and the half-widths of their intervals.
    epsilon, delta : Fraction
        What both released answers lose together, by basic composition.
    """

    her: str
    questions: tuple[str, str]
    exact: tuple[int, int]
    released: tuple[tuple[int, float], tuple[int, float]]
    epsilon: Fraction
    delta: Fraction

    @property
    def difference(self) -> tuple[int, float]:
        """The released difference, and the half-width of its interval."""
        (all_of_them, first), (without, second) = self.released
        return all_of_them - without, math.hypot(first, second)


def attack(session: Session, rows: pl.DataFrame, epsilon: Fraction) -> TwoCounts:
    """Ask both counts exactly, then both again through the session at ``epsilon`` each."""
    import polars as pl

    her = _only_one(rows)
    condition = " AND ".join(f"{name} = {value:g}" for name, value in her.items())
    questions = (
        "SELECT COUNT(*) AS n FROM affairs WHERE affairs > 0",
        f"SELECT COUNT(*) AS n FROM affairs WHERE affairs > 0 AND NOT ({condition})",
    )
    hers = pl.all_horizontal(pl.col(name) == value for name, value in her.items())
    guilty = pl.col("affairs") > 0
    exact = (rows.filter(guilty).height, rows.filter(guilty & ~hers).height)
    answers = [session.sql(question).release(epsilon) for question in questions]
    first, second = map(_answer, answers)
    losses = [answer.certificate.to_dict()["loss"] for answer in answers]
    lost, delta = (sum(Fraction(loss[name]) for loss in losses) for name in ("epsilon", "delta"))
    return TwoCounts(condition, questions, exact, (first, second), Fraction(lost), Fraction(delta))


def best_odds(epsilon: Fraction, delta: Fraction = Fraction(0)) -> float:
    """How often anyone can tell two equally likely neighbours apart, at the very best.

    Notes
    -----
    For an (epsilon, delta)-DP answer and a fair coin between two neighbouring tables, no rule
    guesses the coin right with more than probability (e^epsilon + delta) / (e^epsilon + 1).

    References
    ----------
    Kairouz, Oh and Viswanath, "The composition theorem for differential privacy", ICML 2015.

    Examples
    --------
    >>> round(best_odds(Fraction(1, 5)), 3)
    0.55
    """
    grown = math.exp(epsilon)
    return (grown + float(delta)) / (grown + 1)


def _only_one(rows: pl.DataFrame) -> dict[str, float]:
    """The first woman who is alone with her public traits, and has a secret."""
    import polars as pl

    alone = rows.filter(pl.struct(KNOWN).is_unique() & (pl.col("affairs") > 0))
    return {name: alone[name][0] for name in KNOWN}


def _answer(release: Release) -> tuple[int, float]:
    value, lower, upper = release.frame.row(0)
    return value, (upper - lower) / 2
