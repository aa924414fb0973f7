"""MinID-LDP: values with budgets of their own, by unary encoding with chances to match (IDUE)."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Any, ClassVar

from dither import _checks
from dither._format import count_text, loss_text
from dither.errors import ArgumentError
from dither.local._audited import AuditCase
from dither.local._channel import Channel, DomainLike
from dither.local._coins import ONE, exp_bounds, threshold
from dither.local._domain import Domain, bind, collection
from dither.local._frequency.unary import UnaryChannel, check_telling
from dither.local._guarantee import ClassPair, Guarantee
from dither.local._limits import checked_epsilon
from dither.numeric import _directed as directed

MODELS = ("best", "opt1", "opt2")
_MARGIN = 2.0**-40
"""The part by which what was found in doubles is moved to the safe side: exponents of up to 40 and
their exponentials err by less than 2**-46. It promises nothing, as chances are verified exactly."""
_LEAST = 2.0**-60
"""A log-odds at which coins, in 2**-64ths, can hardly be told from fair ones."""
_SEARCH = 200
_MOST_CLASSES = 256
_GOLDEN = (math.sqrt(5) - 1) / 2


@dataclass(frozen=True, init=False)
class MinIDLDP(UnaryChannel):
    """Unary encoding whose protection of two values is the smaller of their budgets.

    Parameters
    ----------
    domain : Domain, int or list
        The k values that people may hold.
    epsilons : mapping or sequence
        The budget of each value: by value, or in the domain's order; from 2**-32 to 40, at most
        256 different ones.
    model : str
        opt1, opt2, or best (whichever has the least variance in the worst case).
    thresholds : two sequences of int, optional
        a and b of each class in units of 2**-64, by growing budget, as `settings` gives them:
        they are the channel, which is verified, so that every party has the same one.

    Raises
    ------
    ArgumentError
        `domain` is not a domain, `epsilons` does not name every value once with a number in
        range, `model` is unknown, or `thresholds` break the promise.

    Notes
    -----
    Law. Independent bits: that of value i is 1 with probability a_i if i is held, else b_i < a_i.

    Guarantee. Between any two values i and j of one person the report's law changes by a factor of
    at most e^min(epsilon_i, epsilon_j): that is a_i(1 - b_j)/(b_i(1 - a_j)), for the report with
    bit i and not bit j, and is verified of the rationals drawn, pair by pair, whenever a channel is
    made. A value whose budget is large is protected less, but never shows that the value is not one
    with a small budget.

    Error. That of unary encoding with each value's own chances: unbiased.

    References
    ----------
    Gu, Li, Xiong and Cao, "Providing input-discriminative protection for local differential
    privacy", ICDE 2020 (definition 2, IDUE, opt1 and opt2).

    Examples
    --------
    >>> channel = MinIDLDP(["HIV", "flu", "cold"], {"HIV": 1, "flu": 3, "cold": 3})
    >>> print(channel.guarantee)
    epsilon of a value of the row against one of the column
                             epsilon 1 (1 value)  epsilon 3 (2 values)
    epsilon 1 (1 value)                        –                     1
    epsilon 3 (2 values)                       1                  1.12
    """

    kind: ClassVar[str] = "min-id-ldp"
    audit_cases: ClassVar[tuple[AuditCase, ...]] = (
        AuditCase({"domain": 4, "epsilons": [1, 1, 3, 3]}, epsilon=1),
    )

    epsilon: Fraction
    """The largest budget that two values share: the weakest protection of any pair."""
    epsilons: tuple[Fraction, ...]
    """Of each value."""
    model: str
    held: tuple[int, ...]
    """a of each value, out of 2**64."""
    other: tuple[int, ...]
    """b of each value, out of 2**64."""

    def __init__(
        self,
        domain: DomainLike,
        epsilons: Mapping[Any, Any] | Sequence[Any],
        *,
        model: str = "best",
        thresholds: Sequence[Sequence[Any]] | None = None,
    ) -> None:
        _checks.choice("model", model, MODELS)
        found = Domain(domain)
        budgets = _budgets(found, epsilons)
        classes, sizes = _classes(budgets)
        if thresholds is None:
            model, chosen = _solved(classes, sizes, model)
        else:
            chosen = _read(thresholds, len(classes))
        _verify(classes, sizes, chosen)
        place = {epsilon: i for i, epsilon in enumerate(classes)}
        pairs = [e for i, e in enumerate(classes) if sizes[i] > 1 or i + 1 < len(classes)]
        held, other = (tuple(ts[place[e]] for e in budgets) for ts in chosen)
        bind(self, domain=found, epsilon=pairs[-1], epsilons=budgets, model=model)
        bind(self, held=held, other=other)
        check_telling(self)

    def settings(self) -> dict[str, Any]:
        """Domain, budgets, the model, and the thresholds by class as decimal texts."""
        classes, _ = _classes(self.epsilons)
        first = [self.epsilons.index(e) for e in classes]
        return {
            "domain": self.domain.to_dict(),
            "epsilons": [str(e) for e in self.epsilons],
            "model": self.model,
            "thresholds": [[str(ts[i]) for i in first] for ts in (self.held, self.other)],
        }

    @classmethod
    def from_settings(cls, settings: dict[str, Any]) -> Channel:
        """The channel that `settings` describes: its thresholds are verified and never sought."""
        given = dict(settings)
        if given.get("thresholds") is None:
            raise ArgumentError("the settings of channel 'min-id-ldp' must hold its thresholds")
        return cls(Domain.from_dict(given.pop("domain")), **given)

    @property
    def ones(self) -> tuple[tuple[int, ...], tuple[int, ...]]:
        """a and b of each value."""
        return self.held, self.other

    @property
    def guarantee(self) -> Guarantee:
        """The matrix of classes: the pure epsilon of each pair, from the rationals drawn."""
        classes, sizes = _classes(self.epsilons)
        first = [self.epsilons.index(e) for e in classes]
        chances = [self.held[i] for i in first], [self.other[i] for i in first]
        names = [
            f"epsilon {loss_text(e, 6)} ({count_text(m, 'value')})"
            for e, m in zip(classes, sizes, strict=True)
        ]
        pairs = {}
        for i, row in enumerate(names):
            for j, column in enumerate(names):
                alone = i == j and sizes[i] == 1
                ratio = 0.0 if alone else _epsilon(chances, i, j)
                pairs[row, column] = ClassPair(0.0, ratio)
        return Guarantee(self.epsilon, tuple(names), pairs)


def _budgets(domain: Domain, epsilons: Any) -> tuple[Fraction, ...]:
    if isinstance(epsilons, Mapping):
        domain.subset(epsilons, "epsilons")
        missing = sum(value not in epsilons for value in domain.values)
        if missing:
            raise ArgumentError(f"epsilons must name every value; {missing} have none")
        epsilons = [epsilons[value] for value in domain.values]
    if not collection(epsilons) or not hasattr(epsilons, "__len__"):
        raise ArgumentError("epsilons must be a mapping from values, or one number for each")
    if len(epsilons) != len(domain):
        raise ArgumentError("epsilons must have one number for each value of the domain")
    return tuple(checked_epsilon(e, "epsilons") for e in epsilons)


def _classes(budgets: tuple[Fraction, ...]) -> tuple[list[Fraction], list[int]]:
    """The different budgets, growing, and how many values have each."""
    sizes = Counter(budgets)
    classes = sorted(sizes)
    if len(classes) > _MOST_CLASSES:
        raise ArgumentError(f"epsilons must hold at most {_MOST_CLASSES} different budgets")
    return classes, [sizes[e] for e in classes]


def _solved(
    classes: list[Fraction], sizes: list[int], model: str
) -> tuple[str, tuple[list[int], list[int]]]:
    """The chosen family and its thresholds, rounded so that every promise has a margin.

    Values of one budget share a and b; m of them form a class. Two families minimise the sum of
    rare values' variances:

    - opt1, a = e^t/(e^t + 1) and b = 1 - a, with t_i + t_j <= min(eps_i, eps_j);
    - opt2, a = 1/2, with b_j + e^min(eps_i, eps_j)·b_i >= 1.

    Both reduce to one dimension. In opt1 let T be the largest t, of class s: every other class has
    t_i <= min(T, eps_min(i,s) - T, and eps_i/2 where m_i > 1), and all of these at once are
    feasible, as any two then sum to at most eps_min(i,s) - T + T. In opt2 let B be the least b, of
    class s: with r = eps_min(i,s) every other has b_i >= max(B, (1 - B)e^-r, 1 - e^r·B, and 1/(1 +
    e^eps_i) where m_i > 1), and again all at once are feasible. Each problem is convex in T or B;
    the best s is found by search.
    """
    epsilons = [float(e) for e in classes]
    logs, first = _opt1(epsilons, sizes)
    rare, second = _opt2(epsilons, sizes)
    if not math.isfinite(min(first, second)):
        raise ArgumentError("epsilons must be larger: coins cannot be distinguished from fair ones")
    # In the worst case everybody holds one value: that adds nothing to opt1, and 1 to opt2.
    if model == "opt1" or (model == "best" and first <= second + 1):
        held = []
        for t in logs:
            e, _ = exp_bounds(Fraction(t) * (1 - Fraction(_MARGIN)))
            held.append(threshold(e / (e + 1)))
        return "opt1", (held, [ONE - a for a in held])
    other = [math.ceil(Fraction(b) * (1 + Fraction(_MARGIN)) * ONE) for b in rare]
    return "opt2", ([ONE // 2] * len(other), other)


def _opt1(epsilons: list[float], sizes: list[int]) -> tuple[list[float], float]:
    def logs(s: int, top: float) -> list[float]:
        return [
            top if i == s else min(top, epsilons[min(i, s)] - top, *_half(e, sizes[i]))
            for i, e in enumerate(epsilons)
        ]

    def cost(found: list[float]) -> float:
        if min(found) <= _LEAST:
            return math.inf
        terms = (m / (4 * math.sinh(t / 2) ** 2) for m, t in zip(sizes, found, strict=True))
        return sum(terms)

    best: tuple[list[float], float] = ([], math.inf)
    for s, e in enumerate(epsilons):
        # A class alone in its budget may go up to what any smaller budget leaves.
        limit = e / 2 if sizes[s] > 1 else e
        best = _least(lambda top, s=s: logs(s, top), cost, 0.0, limit, best)  # type: ignore[misc]
    return best


def _opt2(epsilons: list[float], sizes: list[int]) -> tuple[list[float], float]:
    def rare(s: int, least: float) -> list[float]:
        found = []
        for i, e in enumerate(epsilons):
            r = math.exp(epsilons[min(i, s)])
            own = 1 / (1 + math.exp(e)) if sizes[i] > 1 else 0.0
            bounds = (least, own) if i == s else (least, (1 - least) / r, 1 - r * least, own)
            found.append(max(bounds))
        return found

    def cost(found: list[float]) -> float:
        if max(found) >= 0.5 or min(found) <= 0:
            return math.inf
        return sum(m * b * (1 - b) / (0.5 - b) ** 2 for m, b in zip(sizes, found, strict=True))

    best: tuple[list[float], float] = ([], math.inf)
    for s in range(len(epsilons)):
        best = _least(lambda b, s=s: rare(s, b), cost, 0.0, 0.5, best)  # type: ignore[misc]
    return best


def _half(e: float, size: int) -> tuple[float, ...]:
    return (e / 2,) if size > 1 else ()


def _least(
    make: Callable[[float], list[float]],
    cost: Callable[[list[float]], float],
    low: float,
    high: float,
    best: tuple[list[float], float],
) -> tuple[list[float], float]:
    """Golden-section search for the least cost between low and high, if below the best so far."""
    low, high = _finite(lambda x: cost(make(x)), low, high)
    for _ in range(_SEARCH):
        a, b = high - _GOLDEN * (high - low), low + _GOLDEN * (high - low)
        low, high = (low, b) if cost(make(a)) <= cost(make(b)) else (a, high)
    found = make((low + high) / 2)
    return (found, cost(found)) if cost(found) < best[1] else best


def _finite(cost: Callable[[float], float], low: float, high: float) -> tuple[float, float]:
    """Narrow to around a finite cost, if a grid meets one: infinite costs have no slope."""
    steps = [low + (high - low) * i / 512 for i in range(513)]
    costs = [cost(x) for x in steps]
    at = min(range(len(costs)), key=costs.__getitem__)
    return steps[max(0, at - 1)], steps[min(512, at + 1)]


def _read(thresholds: Any, count: int) -> tuple[list[int], list[int]]:
    try:
        held, other = ([int(t) for t in ts] for ts in thresholds)
    except (TypeError, ValueError):
        raise ArgumentError("thresholds must be two lists of whole numbers") from None
    if len(held) != count or len(other) != count:
        raise ArgumentError("thresholds must have one number for each different budget")
    if not all(0 < b < a < ONE for a, b in zip(held, other, strict=True)):
        raise ArgumentError("thresholds must have 0 < b < a < 2**64 for every budget")
    return held, other


def _verify(classes: list[Fraction], sizes: list[int], chosen: tuple[list[int], list[int]]) -> None:
    """Refuse chances that break any pair's promise, by exact comparison."""
    held, other = chosen
    limits = [exp_bounds(e)[0] for e in classes]
    for i in range(len(classes)):
        for j in range(len(classes)):
            if i == j and sizes[i] == 1:
                continue
            limit = limits[min(i, j)]
            if held[i] * (ONE - other[j]) > limit * (other[i] * (ONE - held[j])):
                raise ArgumentError(
                    "thresholds must keep two values within the smaller of their epsilons"
                )


def _epsilon(chosen: tuple[list[int], list[int]], i: int, j: int) -> float:
    held, other = chosen
    ratio = Fraction(held[i] * (ONE - other[j]), other[i] * (ONE - held[j]))
    return directed.float_up(directed.log_upper(ratio))
