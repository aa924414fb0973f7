"""A budget for each block of time, and what its blocks have spent."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from fractions import Fraction
from functools import lru_cache
from typing import TYPE_CHECKING, Any, Union

from dither._format import loss_text, remaining
from dither.blocks._calendar import Calendar
from dither.blocks._sets import BlockSet, Range, name_of
from dither.errors import ArgumentError
from dither.ledger._entries import UNIT
from dither.ledger._states import (
    NO_SPENDING,
    NOTHING,
    BlockState,
    Units,
    added,
    charge_of,
    grain,
    share,
    units_of,
)
from dither.privacy._charge import Charge
from dither.privacy.accounts._budget import BudgetFilter, Remaining

if TYPE_CHECKING:
    from dither.ledger.quotas._caps import QuestionQuota, ReservedQuota, UnlockedQuota

__all__ = [
    "BlockBudget",
    "BlockSpending",
    "Budget",
    "Limits",
    "least",
    "limits",
    "said_left",
    "within",
]

_LISTED = 4
"""So many stretches of blocks are listed in a message."""


@dataclass(frozen=True, slots=True)
class BlockBudget:
    """A promise for each block, such as each month, and one for all of them together.

    Parameters
    ----------
    calendar : Calendar
        Which block a row is in.
    each : BudgetFilter
        What every block may spend: every charge that reads it counts in full.
    lifetime : BudgetFilter, optional
        What all charges together may spend, whatever blocks they read.

    Raises
    ------
    ArgumentError
        A parameter is of another kind, or ``lifetime`` is below ``each``.

    Notes
    -----
    *Claim.* Let each charge be the loss of a mechanism for all rows of one unit in the blocks that
    it reads, whose law depends on no other row. Then all releases together are
    (m·epsilon, m·delta)-DP for a unit that has rows in m blocks, epsilon and delta those of
    ``each``; and never worse than ``lifetime``.

    *Proof.* Attribute each charge to one block of the unit that it reads; those that read none have
    the same law on both tables. The view is then a concurrent composition of m interactive
    mechanisms, each (epsilon, delta)-DP by its own filter, since a block's filter saw at least the
    charges that are attributed to it [1]_. The lifetime's filter saw every charge.

    It is linear in m, and not as for groups, because each mechanism is stated for all rows of a
    unit in all blocks that it reads at once [2]_.

    References
    ----------
    .. [1] Vadhan and Zhang, "Concurrent composition theorems for differential privacy", STOC 2023.
    .. [2] Lécuyer et al., "Privacy accounting and quality control in the Sage differentially
       private ML platform", SOSP 2019.

    Examples
    --------
    >>> each, lifetime = BudgetFilter(Fraction(1, 2)), BudgetFilter(Fraction(4))
    >>> BlockBudget(Calendar(every="month"), each, lifetime).describe()
    'ε 0.5 a month, at most 0.5·m for someone in m months, 4 in all'
    """

    calendar: Calendar
    each: BudgetFilter
    lifetime: BudgetFilter | None = None

    def __post_init__(self) -> None:
        if not isinstance(self.calendar, Calendar):
            raise ArgumentError("calendar must be a Calendar, such as Calendar(every='month')")
        if not isinstance(self.each, BudgetFilter):
            raise ArgumentError("each must be a BudgetFilter, such as BudgetFilter(0.5)")
        whole = self.lifetime
        if whole is None:
            return
        if not isinstance(whole, BudgetFilter):
            raise ArgumentError("lifetime must be a BudgetFilter, or left out")
        if whole.epsilon < self.each.epsilon or whole.delta < self.each.delta:
            raise ArgumentError(
                "lifetime must be at least what each block may spend, or no block could spend it"
            )

    @property
    def noun(self) -> str:
        """What one block is called: ``"month"``, or ``"block"``."""
        return self.calendar.every or "block"

    def describe(self) -> str:
        """What is promised, in one line."""
        noun, each, whole = self.noun, self.each, self.lifetime
        epsilon = loss_text(each.epsilon)
        if each.delta:
            text = f"ε {epsilon} and δ {loss_text(each.delta)} a {noun}"
            text += f", at most m times that for someone in m {noun}s"
        else:
            text = f"ε {epsilon} a {noun}, at most {epsilon}·m for someone in m {noun}s"
        if whole is None:
            return text
        if whole.delta:
            return f"{text}, ε {loss_text(whole.epsilon)} and δ {loss_text(whole.delta)} in all"
        return f"{text}, {loss_text(whole.epsilon)} in all"

    def remaining(self, total: Charge) -> Remaining:
        """What may be charged to a block that has spent nothing, after ``total`` in all."""
        fresh = self.each.remaining(Charge())
        return fresh if self.lifetime is None else least(fresh, self.lifetime.remaining(total))

    def to_dict(self) -> dict[str, Any]:
        """The budget as exact text, for a ledger or a certificate."""
        return {
            "blocks": self.calendar.to_dict(),
            "each": self.each.to_dict(),
            "lifetime": None if self.lifetime is None else self.lifetime.to_dict(),
        }

    @classmethod
    def from_dict(cls, stored: Mapping[str, Any]) -> BlockBudget:
        """Read back what `to_dict` wrote.

        Raises
        ------
        ArgumentError
            It is something else.
        """
        try:
            whole = stored["lifetime"]
            return cls(
                Calendar.from_dict(stored["blocks"]),
                BudgetFilter.from_dict(stored["each"]),
                None if whole is None else BudgetFilter.from_dict(whole),
            )
        except (KeyError, TypeError) as error:
            raise ArgumentError(
                "a stored budget of blocks must hold 'blocks', 'each' and 'lifetime'"
            ) from error


Budget = Union[BudgetFilter, BlockBudget, "QuestionQuota", "UnlockedQuota", "ReservedQuota"]
"""What an account may have; the latter, and a `WindowQuota`, are of quotas alone."""


Limits = tuple[int, int, int, int]
"""Caps in whole numbers of ``UNIT``: epsilon, its delta, rho, its delta."""


@lru_cache(maxsize=1024)
def limits(caps: BudgetFilter) -> Limits:
    """Caps rounded down to whole numbers of ``UNIT``: such an amount fits iff it is not above.

    An amount is n units, and n·UNIT <= cap iff n <= cap/UNIT iff n <= floor(cap/UNIT).
    """
    rho = caps.rho
    return (
        int(caps.epsilon // UNIT),
        int(caps.basic_delta // UNIT),
        -1 if rho is None else int(rho // UNIT),
        int(caps.rho_delta // UNIT),
    )


def within(caps: Limits, total: Units) -> bool:
    """`BudgetFilter.admits` on whole numbers of ``UNIT``, which is quick."""
    cap, delta, rho, rho_delta = caps
    return (total[0] is not None and total[0] <= cap and total[1] <= delta) or (
        total[2] is not None and total[2] <= rho and total[3] <= rho_delta
    )


def _part(left: Remaining, steps: int) -> Remaining:
    """What fits for each of so many steps."""
    names = ("epsilon", "delta", "rho", "rho_delta")
    amounts = (getattr(left, name) for name in names)
    return Remaining(*(None if held is None else held / steps for held in amounts))


def least(*left: Remaining) -> Remaining:
    """What fits beside each: rule by rule the least, and none where one has closed it."""

    def common(name: str) -> Fraction | None:
        amounts = [getattr(one, name) for one in left]
        return None if None in amounts else min(amounts)

    return Remaining(common("epsilon"), common("delta"), common("rho"), common("rho_delta"))


def said_left(left: Remaining) -> str:
    """What one block has left, in a few words: ``epsilon 0.1``."""
    parts = [
        f"{name} {remaining(amount, 6)}"
        for name, amount in (("epsilon", left.epsilon), ("rho", left.rho))
        if amount is not None
    ]
    return " or ".join(parts) or "nothing"


@dataclass(frozen=True, slots=True)
class BlockSpending:
    """What the blocks of an account have spent, and have left.

    Parameters
    ----------
    budget : BlockBudget
    state : BlockState
    total : Charge
        What was charged in all.
    reserved : BlockState
        What open reservations keep of each block, which ``state`` counts as spent.
    """

    budget: BlockBudget
    state: BlockState
    total: Charge
    reserved: BlockState = NO_SPENDING

    def of(self, block: int | str) -> Charge:
        """What one block has spent, by its number or its name."""
        return charge_of(self.state.of(block), self.total.promise)

    def stretches(self) -> list[tuple[Range, Charge]]:
        """Blocks that have spent something, stretch by stretch, with what each has spent."""
        found = ((held, charge_of(units)) for held, units in self.state.stretches())
        return [(held, charge) for held, charge in found if not charge.free]

    def named(self) -> dict[str, Charge]:
        """The same of blocks that go by a name."""
        return {name: self.of(name) for name in self.state.named}

    def admits(self, charge: Charge, blocks: BlockSet) -> bool:
        """Whether every block of a set, and the lifetime, can bear a charge."""
        charge = charge.rounded_up(grain(blocks))
        _, totals = self.state.plus(blocks, units_of(charge))
        whole = self.budget.lifetime
        each = limits(self.budget.each)
        return all(within(each, total) for total in totals) and (
            whole is None or whole.admits(self.total + charge)
        )

    def remaining(self, blocks: BlockSet) -> Remaining:
        """What every block of a set, and the lifetime, can still bear; of each where they are read
        in parallel."""
        spent = {units for _, units in self.state.within(blocks)} | {NOTHING}
        left = [self.budget.each.remaining(charge_of(units)) for units in spent]
        whole = self.budget.lifetime
        if whole is not None:
            left.append(_part(whole.remaining(self.total), blocks.steps))
        return least(*left)

    def refusal(self, charge: Charge, blocks: BlockSet) -> str:
        """Which blocks cannot bear a charge, and what would fit."""
        charge = charge.rounded_up(grain(blocks))
        budget, units = self.budget, share(units_of(charge), blocks)
        each = limits(budget.each)
        short: list[tuple[Range | str, Units]] = []
        for held, spent in self.state.within(blocks):
            if not within(each, added(spent, units)):
                short.append((held, spent))
        said = list(self._said(short))
        if len(said) > _LISTED:
            said[_LISTED:] = [f"{len(said) - _LISTED} more stretches have too little"]
        whole = budget.lifetime
        if whole is not None and not whole.admits(self.total + charge):
            said.append(f"all blocks together have {said_left(whole.remaining(self.total))} left")
        fits = self.remaining(blocks).describe()
        each_of = "each block" if blocks.parallel else "all blocks"
        short_of = f"{'; '.join(said)}. " if said else ""
        return f"{short_of}What fits in {each_of} that it reads: {fits}"

    def _said(self, short: list[tuple[Range | str, Units]]) -> Iterator[str]:
        calendar = self.budget.calendar
        for held, spent in short:
            left = said_left(self.budget.each.remaining(charge_of(spent)))
            if isinstance(held, str):
                yield f"{name_of(held)} has {left} left"
            else:
                one = held[0] is not None and held[0] == held[1]
                where = calendar.describe(BlockSet((held,)))
                yield f"{where} {'has' if one else 'have'} {left} left"

    def to_dict(self) -> dict[str, Any]:
        """As plain data, amounts as exact text."""

        def amounts(charge: Charge) -> dict[str, str | None]:
            names = ("epsilon", "delta", "rho", "rho_delta")
            values = {name: getattr(charge, name) for name in names}
            return {name: None if held is None else str(held) for name, held in values.items()}

        calendar = self.budget.calendar
        return {
            "stretches": [
                {
                    "blocks": calendar.describe(BlockSet((held,))),
                    "range": list(held),
                    "spent": amounts(charge),
                }
                for held, charge in self.stretches()
            ],
            "named": {name: amounts(charge) for name, charge in self.named().items()},
        }
