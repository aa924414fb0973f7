"""Attacks and shares in words and figures, as the page and the text both have them."""

from __future__ import annotations

import math
from collections.abc import Callable

from dither._format import percent
from dither.lab.assess._judged import TriedAttack

__all__ = ["at_start", "attack_name", "difference_text", "of_hundred", "row_of"]


def of_hundred(share: float) -> str:
    """A share as people in a hundred.

    Examples
    --------
    >>> of_hundred(0.5), of_hundred(0.004), of_hundred(0.0), of_hundred(0.996), of_hundred(1.0)
    ('50 of 100', 'fewer than 1 of 100', 'none', 'more than 99 of 100', 'all')
    """
    if share <= 0:
        return "none"
    if share >= 1:
        return "all"
    whole = round(100 * share)
    if whole == 0:
        return "fewer than 1 of 100"
    return "more than 99 of 100" if whole == 100 else f"{whole} of 100"


def attack_name(one: TriedAttack) -> str:
    """An attack, with what it guesses."""
    return f"{one.secret}, by {one.attacker}" if one.secret else one.attacker


def at_start(one: TriedAttack) -> str:
    """An attack, at the start of a sentence."""
    if one.secret:
        return f"Guesses of {one.secret} by {one.attacker}"
    return one.attacker[0].upper() + one.attacker[1:]


def difference_text(one: TriedAttack) -> str:
    """The difference in points of a hundred, with its interval rounded outwards."""
    if one.more is None or one.low is None or one.high is None:
        return "–"
    low, high = _outwards(one.low, math.floor), _outwards(one.high, math.ceil)
    return f"{_signed(100 * one.more)} [{_signed(low)}, {_signed(high)}]"


def _outwards(share: float, turn: Callable[[float], int]) -> float:
    """An end of an interval in points, rounded outwards; what is not 0 stays so."""
    found = turn(1000 * share) / 10
    return found if found or not share else turn(1e6 * share) / 1e4


def _signed(points: float) -> str:
    shown = f"{points:+.1f}"
    if float(shown) == 0.0:
        shown = f"{points:+.1g}" if points else "0"
    return shown.replace("-", "−")


def row_of(one: TriedAttack) -> list[str]:
    """An attack as a line of a table."""
    shares = ["–" if s is None else percent(s) for s in (one.share, one.control)]
    return [attack_name(one), *shares, difference_text(one), str(one.said)]
