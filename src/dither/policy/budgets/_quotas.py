"""``[quotas]``: what some may ask, beside what the data set promises.

A quota promises nothing. So nothing here can weaken what is promised, whatever it says: every
charge is borne by the account of the data set as well.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from fractions import Fraction
from typing import Any

from dither._format import loss_text
from dither.blocks._calendar import EVERY, Calendar
from dither.errors import ArgumentError, PolicyError, nearest
from dither.ledger._block_budget import Budget
from dither.ledger.quotas._caps import (
    EVERYBODY,
    MOST_PARTS,
    QuestionQuota,
    UnlockedQuota,
    WindowQuota,
)
from dither.policy._fields import LARGEST_EPSILON, Reader
from dither.privacy.accounts._budget import BudgetFilter

__all__ = ["NO_QUOTAS", "Quotas", "read_budget", "read_quotas"]

KINDS = {"analysts": "analyst", "groups": "group", "purposes": "purpose"}
"""By section: how the names of its accounts begin."""

_RULES = ("question", "unlock", *EVERY)
"""What stands behind the @ of an account's name that holds for each of them."""


@dataclass(frozen=True, slots=True)
class Quotas:
    """The quotas of a policy.

    Parameters
    ----------
    caps : mapping of str to budget
        By account, without its unit: ``analyst:ana``, ``group:cardiology@week``.
    analysts, groups, purposes : mapping of str to collection
        By name: the accounts without their unit; of a group beside them its members.
    members : mapping of str to tuple of str
        By group: who belongs to it.
    everybody : tuple of str
        Accounts of all who ask.
    """

    caps: Mapping[str, Budget] = field(default_factory=dict)
    analysts: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    groups: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    purposes: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    members: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    everybody: tuple[str, ...] = ()

    @property
    def known(self) -> list[str]:
        """Who may ask, where the policy says so: who has a quota, or is in a group that has one."""
        named = [*self.analysts, *(name for group in self.members.values() for name in group)]
        return list(dict.fromkeys(named))

    def asked_by(self, analyst: str | None, purpose: str | None) -> dict[str, Budget]:
        """The accounts beside the data set's that bear what somebody asks, for a purpose.

        Raises
        ------
        ArgumentError
            One of them is missing that the policy limits, or is given that it does not.
        PolicyError
            One of them has no quota.
        """
        names = list(self.everybody)
        if _named("analyst", analyst, self.known):
            assert analyst is not None
            names += self.analysts.get(analyst, ())
            for group, members in self.members.items():
                if analyst in members:
                    names += self.groups[group]
        if _named("purpose", purpose, list(self.purposes)):
            assert purpose is not None
            names += self.purposes[purpose]
        return {name: self.caps[name] for name in names}


NO_QUOTAS = Quotas()


def _named(kind: str, given: str | None, known: list[str]) -> bool:
    if not known:
        if given is None:
            return False
        raise ArgumentError(
            f"{kind}: the policy caps no {kind}s; add [quotas.{kind}s.{given}] to it, or leave it "
            "out"
        )
    if given is None:
        raise ArgumentError(
            f"{kind} must be given: the policy caps each {kind}; one of "
            + ", ".join(map(repr, known))
        )
    if given not in known:
        raise PolicyError(f"unknown {kind} {given!r}" + nearest(given, known))
    return True


def read_quotas(
    top: Reader, budget: BudgetFilter, *, per_block: bool, lifetime: BudgetFilter | None
) -> Quotas:
    """Read ``[quotas]``, and ``[analysts]``, which is short for ``[quotas.analysts]``.

    Parameters
    ----------
    top : Reader
        The policy.
    budget : BudgetFilter
        What the data set promises, or each of its blocks.
    per_block : bool
    lifetime : BudgetFilter, optional

    Raises
    ------
    PolicyError
        Naming the field.
    """
    part = Reader(top.section("quotas"), "quotas")
    first_come = part.flag("first_come", False)
    short = top.section("analysts")
    long = part.section("analysts")
    if short and long:
        raise PolicyError("[analysts] is short for [quotas.analysts]: write one of the two")
    held = _Held(budget, per_block, lifetime)
    analysts = held.section("analysts", "analysts" if short else "quotas.analysts", short or long)
    groups = held.section("groups", "quotas.groups", part.section("groups"))
    purposes = held.section("purposes", "quotas.purposes", part.section("purposes"))
    everybody = held.rules(part, EVERYBODY, budget)
    if part.take("unlock") is not None:
        everybody.append(held.unlock(Reader(part.section("unlock"), "quotas.unlock")))
    part.finish()
    for group, members in held.members.items():
        unknown = [name for name in members if analysts and name not in analysts]
        if unknown:
            raise PolicyError(
                f"quotas.groups.{group}.members: no analyst {unknown[0]!r} in the policy"
                + nearest(unknown[0], list(analysts))
                + "; give them a quota, or leave them out"
            )
    if not first_come:
        held.add_up()
    return Quotas(held.caps, analysts, groups, purposes, held.members, tuple(everybody))


class _Held:
    """What has been read so far."""

    def __init__(
        self, budget: BudgetFilter, per_block: bool, lifetime: BudgetFilter | None
    ) -> None:
        self._budget = budget
        self._per_block = per_block
        self._lifetime = lifetime
        self.caps: dict[str, Budget] = {}
        self.members: dict[str, tuple[str, ...]] = {}
        self._sums: dict[str, dict[str, BudgetFilter]] = {}

    def section(self, kind: str, where: str, body: Mapping[str, Any]) -> dict[str, tuple[str, ...]]:
        """One section of quotas by name: the accounts of each."""
        found: dict[str, tuple[str, ...]] = {}
        for name, fields in body.items():
            part = Reader(fields, f"{where}.{name}")
            _check_name(part.where, name, KINDS[kind])
            account = f"{KINDS[kind]}:{name}"
            if kind == "groups":
                self.members[name] = _members(part)
            cap = read_budget(part, self._budget, shared=True)
            if cap.epsilon > self._budget.epsilon or cap.delta > self._budget.delta:
                raise PolicyError(
                    f"{part.where}: the cap is above the whole budget; lower it, or raise [budget]"
                )
            self.caps[account] = cap
            self._sums.setdefault(where, {})[name] = cap
            found[name] = (account, *self.rules(part, account, cap))
            part.finish()
        return found

    def rules(self, part: Reader, account: str, whole: BudgetFilter) -> list[str]:
        """What a question, and what a window of time, may cost: the accounts."""
        found = []
        if part.take("most") is not None:
            reader = Reader(part.section("most"), part.name("most"))
            found.append(f"{account}@question")
            self.caps[found[-1]] = QuestionQuota(_within(reader, whole))
            reader.finish()
        if part.take("rate") is not None:
            reader = Reader(part.section("rate"), part.name("rate"))
            every = _every(reader)
            # A rate holds over all blocks together, and these may have more than one of them has.
            most = self._lifetime if self._per_block else whole
            cap = read_budget(reader, whole) if most is None else _within(reader, most)
            found.append(f"{account}@{every}")
            self.caps[found[-1]] = WindowQuota(Calendar(every=every), cap)
            reader.finish()
        return found

    def unlock(self, part: Reader) -> str:
        """How the whole budget is unlocked: the account."""
        if self._per_block:
            raise PolicyError(
                'quotas.unlock is for a budget of all time: with budget.per = "block" each new '
                "block brings a budget of its own; write a rate instead, "
                'quotas.rate = { every = "week", epsilon = ... }'
            )
        every = _every(part)
        parts = part.whole("parts", MOST_PARTS)
        if parts is None:
            raise PolicyError("quotas.unlock.parts is missing: into how many parts the cap is cut")
        part.finish()
        name = f"{EVERYBODY}@unlock"
        self.caps[name] = UnlockedQuota(self._budget, every, parts)
        return name

    def add_up(self) -> None:
        """Refuse quotas that together are above the cap: one could leave nothing to another."""
        for where, caps in self._sums.items():
            for name in ("epsilon", "delta"):
                total = sum((getattr(cap, name) for cap in caps.values()), Fraction(0))
                whole = getattr(self._budget, name)
                if total > whole:
                    raise PolicyError(
                        f"{where}: {name} adds up to {loss_text(total)}, above budget.{name} = "
                        f"{loss_text(whole)}, so that some could leave nothing to others; lower "
                        "them, or write first_come = true under [quotas]"
                    )


def _members(part: Reader) -> tuple[str, ...]:
    members = part.names("members")
    if not members:
        raise PolicyError(
            f"{part.name('members')} must name at least one analyst: a quota for nobody limits "
            "nobody"
        )
    for name in members:
        _check_name(part.name("members"), name, "analyst")
    return members


def _check_name(where: str, name: str, kind: str) -> None:
    if not name.strip():
        raise PolicyError(f"{where}: the name of {_a(kind)} must not be empty")
    if ":" in name:
        raise PolicyError(f"{where}: the name of {_a(kind)} must not hold a colon")
    if name.rpartition("@")[1] and name.rpartition("@")[2] in _RULES:
        raise PolicyError(
            f"{where}: the name of {_a(kind)} must not end in @{name.rpartition('@')[2]}, which "
            "names the quota of such a window"
        )


def _a(kind: str) -> str:
    return f"an {kind}" if kind == "analyst" else f"a {kind}"


def _every(part: Reader) -> str:
    every = part.text("every")
    if every is None:
        raise PolicyError(f"{part.name('every')} is missing: one of {', '.join(EVERY)}")
    if every not in EVERY:
        raise PolicyError(f"{part.name('every')} has no option {every!r}" + nearest(every, EVERY))
    return every


def _within(part: Reader, whole: BudgetFilter) -> BudgetFilter:
    """A cap that cannot be above another, since it would limit nothing."""
    found = read_budget(part, whole)
    if found.epsilon > whole.epsilon or found.delta > whole.delta:
        raise PolicyError(
            f"{part.where}: above {loss_text(whole.epsilon)}, which may be spent in all, so that "
            "it would limit nothing; lower it, or leave it out"
        )
    return found


def read_budget(part: Reader, whole: BudgetFilter | None, *, shared: bool = False) -> BudgetFilter:
    """Caps, ``epsilon`` and ``delta``.

    Parameters
    ----------
    part : Reader
    whole : BudgetFilter, optional
        What has the delta where it is left out.
    shared : bool
        Left out, delta is such a share of the whole's as epsilon is.
    """
    epsilon = part.number("epsilon")
    delta = part.number("delta")
    if epsilon is None:
        raise PolicyError(f"{part.where}.epsilon is missing: without a cap nothing is protected")
    if not 0 < epsilon <= LARGEST_EPSILON:
        raise PolicyError(f"{part.where}.epsilon must be above 0, and at most {LARGEST_EPSILON:,}")
    if delta is None:
        delta = Fraction(0) if whole is None else whole.delta
        if whole is not None and shared:
            delta *= min(epsilon / whole.epsilon, Fraction(1))
    if not 0 <= delta < 1:
        raise PolicyError(f"{part.where}.delta must lie in [0, 1), far below one over the people")
    return BudgetFilter(epsilon, delta)
