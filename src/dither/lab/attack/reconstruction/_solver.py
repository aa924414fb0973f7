"""The constraint model of a table: everybody's attributes as unknowns, solved by OR-tools' CP-SAT.

Person i has an integer per attribute. People have no names, so they are put in order: with the
attributes as digits of one number, person i's is at most person i+1's. Each database up to order is
then one assignment, and enumerating assignments counts databases.

A literal says whether a person is in a set of values; a group's member is the conjunction of its
conditions. Counts are sums of members, totals are sums of values that members carry.

*Medians.* An odd group of k has its median in [a, b] iff at least (k+1)/2 members are at most b and
as many are at least a. An even group is split into k/2 lower and k/2 upper members by the distinct
keys N·value + i; the greatest lower key and the least upper one hold the two middle values.
Every helping unknown is determined by the people, so no database is found twice.
"""

from __future__ import annotations

import itertools
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor, wait
from dataclasses import dataclass
from typing import Any

from dither.errors import ArgumentError
from dither.lab._simulation import library
from dither.lab.attack.reconstruction._statistics import (
    Condition,
    Person,
    PublishedRow,
    Rule,
    Statistics,
)

__all__ = ["Progress", "SolverResult", "search"]

Progress = Callable[[int, float], bool | None]
"""Called with the databases found and the seconds gone by; False stops the search."""

LARGEST = 200_000
"""People times rows and rules."""

_PULSE = 0.5
"""Seconds between two looks at a search that goes on."""


@dataclass(frozen=True, slots=True)
class SolverResult:
    """What a search found, in as many seconds: databases, each a sorted tuple of people."""

    found: tuple[tuple[Person, ...], ...]
    complete: bool
    """Whether there are no others."""
    stopped: str
    """Why it stopped early: "limit", "time", "stopped" or ""."""
    seconds: float


def search(
    statistics: Statistics, limit: int, seconds: float, progress: Progress | None = None
) -> SolverResult:
    """Enumerate the databases that agree with all statistics, up to a limit.

    Raises
    ------
    ArgumentError
        The model would be too large; says its size and what to relax.
    MissingLibraryError
        OR-tools is not installed.
    """
    cp_model = library("ortools.sat.python.cp_model", "table reconstruction")
    start = time.perf_counter()
    _check_size(statistics)
    model = _Model(cp_model, statistics)
    solver = cp_model.CpSolver()
    solver.parameters.enumerate_all_solutions = True
    solver.parameters.num_workers = 1
    solver.parameters.max_time_in_seconds = seconds
    found: dict[tuple[Person, ...], None] = {}
    reason = ""

    class Collect(cp_model.CpSolverSolutionCallback):  # type: ignore[misc, name-defined]
        def on_solution_callback(self) -> None:
            nonlocal reason
            table = tuple(sorted(tuple(self.value(x) for x in p) for p in model.people))
            found[table] = None
            if len(found) >= limit:
                reason = "limit"
                self.stop_search()

    # OR-tools' own handler of Ctrl-C waits for a lock, which the search may hold: for ever, then.
    solver.parameters.catch_sigint_signal = False
    with ThreadPoolExecutor(max_workers=1) as aside:
        solving = aside.submit(solver.solve, model.model, Collect())
        try:
            while not wait([solving], timeout=_PULSE).done:
                if progress and progress(len(found), time.perf_counter() - start) is False:
                    reason = "stopped"
                    break
        except KeyboardInterrupt:
            reason = reason or "stopped"
        finally:
            while not solving.done():
                solver.stop_search()  # heard once the search has begun
                wait([solving], timeout=_PULSE)
    status = solving.result()
    spent = time.perf_counter() - start
    complete = status in (cp_model.OPTIMAL, cp_model.INFEASIBLE) and not reason
    if status == cp_model.MODEL_INVALID:
        raise ArgumentError("numbers in the statistics are too large for an integer program")
    if not complete and not reason:
        reason = "time"
    return SolverResult(tuple(sorted(found)), complete, reason, spent)


def _check_size(statistics: Statistics) -> None:
    size = statistics.people * max(1, len(statistics.names))
    if size > LARGEST:
        raise ArgumentError(
            f"the search is too large: {statistics.people:,} people and {len(statistics.names):,} "
            f"rows and rules make {size:,} memberships, of at most {LARGEST:,}; reconstruct a "
            "smaller area, or leave out rows with Statistics.without()"
        )
    if statistics.cells * (statistics.people + 1) >= 2**62:
        raise ArgumentError(
            f"the search is too large: there are {statistics.cells:,} kinds of people; narrow the "
            "bounds of attributes, or leave out attributes that no statistic uses"
        )


class _Model:
    def __init__(self, cp_model: Any, statistics: Statistics) -> None:
        self.domain = cp_model.Domain
        self.model = model = cp_model.CpModel()
        self.statistics = statistics
        self.people = [
            [model.new_int_var(a.low, a.high, "") for a in statistics.attributes]
            for _ in range(statistics.people)
        ]
        self.literals: dict[tuple[int, Condition], Any] = {}
        self.groups: dict[tuple[Condition, ...], list[Any]] = {}
        keys = []
        for person in self.people:
            key = 0
            # Lists come first, so that numbers are sorted within a kind.
            for x, a in sorted(
                zip(person, statistics.attributes, strict=True), key=lambda both: not both[1].labels
            ):
                key = key * a.size + (x - a.low)
            keys.append(key)
        for first, second in itertools.pairwise(keys):
            model.add(first <= second)
        for row in statistics.rows:
            self._row(row)
        for rule in statistics.rules:
            self._rule(rule)

    def _row(self, row: PublishedRow) -> None:
        members = self._members(row.where)
        self.model.add_linear_constraint(sum(members), *row.count)
        for at, low, high in row.total:
            carried = [self._carried(i, at, x) for i, x in enumerate(members)]
            self._between(sum(carried), low, high)
        for at, low, high in row.doubled:
            if row.count[0] % 2:
                self._odd_median(members, at, (row.count[0] + 1) // 2, -(-low // 2), high // 2)
            else:
                self._even_median(members, at, row.count[0] // 2, low, high)

    def _rule(self, rule: Rule) -> None:
        for i in range(len(self.people)):
            when = [self._literal(i, c) for c in rule.when]
            for c in rule.then:
                self.model.add_bool_or([*(~x for x in when), self._literal(i, c)])

    def _literal(self, i: int, condition: Condition) -> Any:
        """Whether person i's attribute has one of the values."""
        known = self.literals.get((i, condition))
        if known is None:
            known = self.model.new_bool_var("")
            x, a = self.people[i][condition.attribute], condition.attribute
            inside = self.domain.from_values(sorted(condition.values))
            spread = self.statistics.attributes[a]
            outside = inside.complement().intersection_with(self.domain(spread.low, spread.high))
            self.model.add_linear_expression_in_domain(x, inside).only_enforce_if(known)
            self.model.add_linear_expression_in_domain(x, outside).only_enforce_if(~known)
            self.literals[i, condition] = known
        return known

    def _members(self, where: tuple[Condition, ...]) -> list[Any]:
        if where not in self.groups:
            self.groups[where] = [
                self._all([self._literal(i, c) for c in where]) for i in range(len(self.people))
            ]
        return self.groups[where]

    def _all(self, literals: list[Any]) -> Any:
        """A literal for all of them."""
        if len(literals) == 1:
            return literals[0]
        both = self.model.new_bool_var("")
        self.model.add_bool_and(literals).only_enforce_if(both)
        self.model.add_bool_or([both, *(~x for x in literals)])
        return both

    def _carried(self, i: int, at: int, member: Any) -> Any:
        """A person's value if a member, else 0."""
        x, a = self.people[i][at], self.statistics.attributes[at]
        value = self.model.new_int_var(min(0, a.low), max(0, a.high), "")
        self.model.add(value == x).only_enforce_if(member)
        self.model.add(value == 0).only_enforce_if(~member)
        return value

    def _between(self, expression: Any, low: int, high: int) -> None:
        if low > high:
            self.model.add_bool_or([])
        else:
            self.model.add_linear_constraint(expression, low, high)

    def _odd_median(self, members: list[Any], at: int, half: int, low: int, high: int) -> None:
        a = self.statistics.attributes[at]
        for values in (range(a.low, high + 1), range(max(low, a.low), a.high + 1)):
            side = Condition(at, frozenset(v for v in values if a.low <= v <= a.high))
            within = [self._all([x, self._literal(i, side)]) for i, x in enumerate(members)]
            self.model.add(sum(within) >= half)
        if low > high:
            self.model.add_bool_or([])

    def _even_median(self, members: list[Any], at: int, half: int, low: int, high: int) -> None:
        n, a, model = len(self.people), self.statistics.attributes[at], self.model
        ends = (n * a.low, n * a.high + n - 1)
        greatest, least = (model.new_int_var(*ends, "") for _ in range(2))
        middle = [model.new_int_var(a.low, a.high, "") for _ in range(2)]
        lower, upper = ([model.new_bool_var("") for _ in members] for _ in range(2))
        for i, member in enumerate(members):
            key = self.people[i][at] * n + i
            model.add(lower[i] + upper[i] == member)
            model.add(key <= greatest).only_enforce_if(lower[i])
            model.add(key >= least).only_enforce_if(upper[i])
        model.add(sum(lower) == half)
        model.add(sum(upper) == half)
        model.add(greatest < least)
        for bound, chosen, value in ((greatest, lower, middle[0]), (least, upper, middle[1])):
            hit = [model.new_bool_var("") for _ in members]
            for i, (h, x) in enumerate(zip(hit, chosen, strict=True)):
                model.add_implication(h, x)
                model.add(self.people[i][at] * n + i == bound).only_enforce_if(h)
            model.add_exactly_one(hit)
            model.add(value * n <= bound)
            model.add(bound < value * n + n)
        self._between(middle[0] + middle[1], low, high)
