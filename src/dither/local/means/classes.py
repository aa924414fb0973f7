"""The class matrix of SDPM, exactly: the worst hockey-stick delta of each pair of classes."""

from __future__ import annotations

from fractions import Fraction

from dither.local.chances import exp_bounds
from dither.local.finite import log_ratio
from dither.local.guarantee import ClassPair, Guarantee
from dither.local.means.sdpm import GradedLaw
from dither.numeric import directed

__all__ = ["class_matrix"]


def class_matrix(law: GradedLaw, epsilon: Fraction) -> Guarantee:
    """What SDPM's law promises between two high values, two low ones, and one of each.

    Off the low positions every chance lies in [q, p], and p/q <= e^epsilon, so nothing is lost
    there. On them a low point i has p' at its own and 0 elsewhere, and a high point x has h_x::

        low against low     p'
        high against low    sum of h_x over the low positions, less min(h_x(i), e·p')
        low against high    p' - e·h_x(i), where that is above 0

    each at its worst over x and i.
    """
    e, _ = exp_bounds(epsilon)
    alone = law.first == law.last
    window, truth = law.window, law.truth
    highs = [x for x in range(window.steps + 1) if not law.first <= x <= law.last]
    sums, leasts, mosts, everywhere = zip(*(_on_lows(law, x) for x in highs), strict=True)
    least = min(leasts)
    to_low = max(total - min(h, e * truth) for total, h in zip(sums, leasts, strict=True))
    to_high = max(Fraction(0), truth - e * least)
    top, bottom = max(p for p, _ in everywhere), min(q for _, q in everywhere)
    # Where one point alone is low, no report excludes it.
    excluded = Fraction(0) if not alone else truth
    high_low = max(log_ratio(max(mosts), excluded), log_ratio(top, window.q))
    low_high = max(log_ratio(truth, least), log_ratio(window.q, bottom))
    pairs = {
        ("high", "high"): ClassPair(0.0, log_ratio(top, bottom) if len(highs) > 1 else 0.0),
        ("high", "low"): ClassPair(directed.float_up(to_low), high_low),
        ("low", "high"): ClassPair(directed.float_up(to_high), low_high),
        ("low", "low"): ClassPair(
            0.0 if alone else directed.float_up(truth), 0.0 if alone else float("inf")
        ),
    }
    return Guarantee(epsilon, ("high", "low"), pairs)


def _on_lows(
    law: GradedLaw, x: int
) -> tuple[Fraction, Fraction, Fraction, tuple[Fraction, Fraction]]:
    """The sum, least and most of a high point's chances on the low positions, and its range.

    Its row is q, an edge, p over W - 1 positions, an edge, and q: five flat stretches.
    """
    window, lows = law.window, law.lows
    begin, part = divmod(x * (window.outputs - window.width), window.steps)
    cuts = [0, begin, begin + 1, begin + window.width]
    cuts += [begin + window.width + 1] if part else []
    total, on, anywhere = Fraction(0), [], []
    for start, stop in zip(cuts, [*cuts[1:], window.outputs], strict=True):
        if stop <= start:
            continue
        chance = window.exact(x, start)
        anywhere.append(chance)
        shared = min(stop, lows.stop) - max(start, lows.start)
        if shared > 0:
            total += shared * chance
            on.append(chance)
    return total, min(on), max(on), (max(anywhere), min(anywhere))
