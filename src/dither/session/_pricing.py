"""What questions cost together, which of them fit, and how many more like one: nothing is charged.

All of it follows from prices, which are public, and from what the ledger says was spent. What fits
now may not fit once somebody else has asked: to be sure of it, reserve it.
"""

from __future__ import annotations

import datetime as dt
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations
from typing import TYPE_CHECKING, Any

from dither._format import loss_text
from dither._search import least_integer
from dither.blocks._sets import BlockSet
from dither.errors import ArgumentError, nearest
from dither.ledger import Balance
from dither.ledger._states import grain
from dither.privacy import Charge, Promise

if TYPE_CHECKING:
    from dither.session._opened import OpenedPolicy

__all__ = [
    "Affordable",
    "Price",
    "PriceList",
    "affordable",
    "moment",
    "price_list",
    "reserved_of",
]

MOST = 10**9
"""So many times are looked at; what can be paid more often than that is not limited."""

_SEARCHED = 12
"""Of so many questions, every choice is looked at."""


@dataclass(frozen=True, slots=True)
class Price:
    """What one question costs.

    Parameters
    ----------
    charge : Charge
    promise : Promise
        Whom it protects: says which accounts bear it.
    blocks : BlockSet or None
        What it reads of rows that lie in blocks.
    """

    charge: Charge
    promise: Promise
    blocks: BlockSet | None = None


@dataclass(frozen=True, slots=True)
class PriceList:
    """What questions cost together, and which of them fit.

    Parameters
    ----------
    prices : tuple of Charge
        By question, in the order in which they were given.
    totals : mapping of str to Charge
        By unit: all of them together.
    fitting : tuple of int
        The places of those that fit one after the other, in the order in which to ask them.
    order : str
        ``"given"`` or ``"most"``, as was asked for.
    exact : bool
        Of ``"most"``: no larger number fits. Of more than 12 questions the cheapest are taken
        first, and more may fit.
    """

    prices: tuple[Charge, ...]
    totals: Mapping[str, Charge]
    fitting: tuple[int, ...]
    order: str
    exact: bool = True

    @property
    def all_fit(self) -> bool:
        """Whether every one of them does."""
        return len(self.fitting) == len(self.prices)

    def describe(self) -> str:
        """The same in one line."""
        said = "; ".join(f"{_amount(total)} of {unit}" for unit, total in self.totals.items())
        count = len(self.prices)
        if self.all_fit:
            which = "all fit" if count > 1 else "it fits"
        else:
            how = "in the given order"
            if self.order == "most":
                how = "the most there can be" if self.exact else "the cheapest first"
            places = ", ".join(str(place + 1) for place in self.fitting) or "none"
            one = len(self.fitting) == 1
            which = f"{len(self.fitting)} fit{'s' if one else ''} ({how}): {places}"
        return f"{count} question{'s'[: count != 1]}, together {said}; {which}"

    def __str__(self) -> str:
        return self.describe()


@dataclass(frozen=True, slots=True)
class Affordable:
    """How many more questions like one can be paid.

    Parameters
    ----------
    times : int
        So many, if nobody else asks.
    accounts : mapping of str to int
        By account, block budgets and quotas among them: how many each can bear as it stands now.
    tightest : str
        The account that can bear the fewest.
    """

    times: int
    accounts: Mapping[str, int]
    tightest: str

    def describe(self) -> str:
        """The same in one line."""
        many = f"{self.times:,}" if self.times < MOST else f"at least {MOST:,}"
        return f"{many} more like this, limited by {self.tightest}"

    def __int__(self) -> int:
        return self.times

    def __str__(self) -> str:
        return self.describe()


def affordable(price: Price, balances: Iterable[Balance]) -> Affordable:
    """How often every account can bear a price, by each of the rules of its filter.

    Totals grow with the number, and a filter that admits a total admits every smaller one: so the
    largest number that is admitted is found by halving, unless what is left of epsilon says it.
    """
    one = price.charge.rounded_up(grain(price.blocks))

    def times(balance: Balance) -> int:
        guessed = _likely(one, balance)
        bears = [
            bool(guessed) and balance.bears_each(one, guessed + i, price.blocks) for i in (0, 1)
        ]
        if bears == [True, False]:
            return guessed
        beyond = least_integer(
            lambda number: not balance.bears_each(one, number, price.blocks), 1, most=MOST
        )
        return MOST if beyond is None else beyond - 1

    found = {balance.name: times(balance) for balance in balances}
    tightest = min(found, key=lambda name: found[name])
    return Affordable(found[tightest], found, tightest)


def _likely(one: Charge, balance: Balance) -> int:
    """How often what is left would pay a charge, by the rule that is kinder; 0 where none says.

    How the rules go on from here is for `Balance.bears_each` to say.
    """
    left, found = balance.remaining, 0
    for rest, cost, spare, beside in (
        (left.epsilon, one.epsilon, left.delta, one.delta),
        (left.rho, one.rho, left.rho_delta, one.rho_delta),
    ):
        if rest is not None and cost:
            least = rest / cost
            if spare is not None and beside:
                least = min(least, spare / beside)
            found = max(found, int(least))
    return found if found < MOST else 0


def price_list(
    prices: Sequence[Price], balances: Callable[[Promise], Iterable[Balance]], order: str
) -> PriceList:
    """Which of some prices fit together.

    Parameters
    ----------
    prices : sequence of Price
    balances : callable
        From a promise to the accounts that bear its charges.
    order : str
        ``"given"``: one after the other, leaving out what does not fit beside those before it;
        ``"most"``: as many as there can be.

    Raises
    ------
    ArgumentError
        There are none, or the order is another word.
    """
    if not prices:
        raise ArgumentError("questions must hold at least one question")
    if order not in ("given", "most"):
        raise ArgumentError('order must be "given" or "most"')
    units = dict.fromkeys(price.promise for price in prices)
    held = {promise: list(balances(promise)) for promise in units}
    totals = {
        promise.unit: sum(
            (p.charge for p in prices if p.promise == promise), Charge(promise=promise)
        )
        for promise in units
    }
    charges = tuple(price.charge for price in prices)
    places = range(len(prices))
    if order == "given":
        return PriceList(charges, totals, _fitting(prices, places, held), order)
    by_share = sorted(places, key=lambda place: (_share(prices[place], held), place))
    best = _fitting(prices, by_share, held)
    exact = len(best) == len(prices) or len(prices) <= _SEARCHED
    if exact:
        for size in range(len(prices), len(best), -1):
            whole = (
                found
                for found in combinations(places, size)
                if len(_fitting(prices, found, held)) == size
            )
            found = next(whole, None)
            if found is not None:
                best = found
                break
    return PriceList(charges, totals, best, order, exact)


def _fitting(
    prices: Sequence[Price], places: Iterable[int], held: Mapping[Promise, list[Balance]]
) -> tuple[int, ...]:
    """Those that fit one after the other."""
    now = dict(held)
    found = []
    for place in places:
        price = prices[place]
        accounts = now[price.promise]
        if all(balance.admits(price.charge, price.blocks) for balance in accounts):
            now[price.promise] = [b.after(price.charge, price.blocks) for b in accounts]
            found.append(place)
    return tuple(found)


def _share(price: Price, held: Mapping[Promise, list[Balance]]) -> int:
    """How small a part of the tightest account it is: the negative of how often it fits."""
    return -affordable(price, held[price.promise]).times


def moment(name: str, given: dt.datetime | dt.date | str) -> dt.datetime:
    """A moment from what a caller says; in UTC where no zone is said, a day at its beginning.

    Raises
    ------
    ArgumentError
        It is none.
    """
    if isinstance(given, str):
        try:
            given = dt.datetime.fromisoformat(given)
        except ValueError:
            raise ArgumentError(
                f"{name} must be a moment, such as 2026-03-03 or 2026-03-03T12:00Z"
            ) from None
    if isinstance(given, dt.date) and not isinstance(given, dt.datetime):
        given = dt.datetime(given.year, given.month, given.day)
    if not isinstance(given, dt.datetime):
        raise ArgumentError(f"{name} must be a datetime, a date, or the text of one")
    return given if given.tzinfo is not None else given.replace(tzinfo=dt.UTC)


def reserved_of(
    opened: OpenedPolicy, unit: str | None, question: Any
) -> tuple[Promise, BlockSet | None]:
    """Of whose accounts, and of which blocks, something is reserved.

    Raises
    ------
    ArgumentError
        There are several units, and none is named; or the question is of another session.
    """
    if question is not None:
        if getattr(question, "_opened", None) is not opened or not hasattr(question, "_asked_at"):
            raise ArgumentError("question must be an SQL question of this session")
        request = question._asked_at(1, None)
        if unit not in (None, request.promise.unit):
            raise ArgumentError("unit must be the question's, or left out")
        return request.promise, request.blocks
    known = {promise.unit: promise for promise in opened.promises}
    if unit is None and len(known) > 1:
        raise ArgumentError(f"unit must be given: one of {', '.join(map(repr, known))}")
    if unit is not None and unit not in known:
        raise ArgumentError(f"unit: no {unit!r} in the policy" + nearest(unit, list(known)))
    promise = next(iter(known.values())) if unit is None else known[unit]
    calendar = opened.calendar(promise.unit)
    if calendar is None:
        return promise, None
    tables = [
        name
        for name, held in opened.policy.units.items()
        if held.name == promise.unit and opened.policy.tables[name].block is None
    ]
    blocks = calendar.begun(dt.datetime.now(dt.UTC).date())
    for name in tables:
        blocks |= BlockSet.of_table(name)
    return promise, blocks


def _amount(charge: Charge) -> str:
    parts = [] if charge.epsilon is None else [f"epsilon {loss_text(charge.epsilon)}"]
    if charge.epsilon is None and charge.rho is not None:
        parts = [f"rho {loss_text(charge.rho)}"]
    if charge.delta:
        parts.append(f"delta {loss_text(charge.delta)}")
    return ", ".join(parts) or "nothing finite"
