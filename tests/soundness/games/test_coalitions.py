"""Two analysts who talk to each other: all ways that their game can go, with exact chances.

The ledger charges every round. Who asks next, and for how much, depends on every answer so far. All
that both were told stays within what the data set promises; what one was told does not stay within
that analyst's quota.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterator
from datetime import UTC, datetime, timedelta
from fractions import Fraction
from pathlib import Path

import pytest

from dither.accounting import BudgetFilter
from dither.errors import BudgetError, LedgerError
from dither.ledger import Ledger
from dither.ledger._block_budget import Budget
from dither.ledger.quotas._caps import QuestionQuota
from dither.privacy import Charge, Promise

PATIENT = Promise("patient")
Told = tuple[tuple[str, int, bool], ...]
"""Who asked, at what odds, and what the answer was."""


PRICE = {2: Fraction(7, 10), 3: Fraction(11, 10)}
"""By odds: an epsilon that is a little above their logarithm."""


def loud(told: Told) -> tuple[str, int]:
    """Ben asks; Ana asks the same, loudly, where he heard yes."""
    if not told or not told[-1][2]:
        return "ben", 2
    return "ana", 3


def signal(told: Told) -> tuple[str, int]:
    """Ben asks as loudly as he may; Ana asks or lets him ask, which tells what he heard."""
    if not told:
        return "ben", 3
    return ("ana" if told[0][2] else "ben"), 2


def kept(told: Told) -> tuple[str, int]:
    """Both in turn, who uses a reservation where the last answer was yes."""
    return ("ana", "ben")[len(told) % 2], 2


CAPS: dict[str, Budget] = {
    "dataset:patient": BudgetFilter(Fraction(2)),
    "analyst:ben:patient": BudgetFilter(Fraction(3, 2)),
    "analyst:ana:patient": BudgetFilter(Fraction(3, 2)),
    "everybody@question:patient": QuestionQuota(BudgetFilter(Fraction(11, 10))),
}


def ways(
    folder: Path, strategy: Callable[[Told], tuple[str, int]], reserves: bool
) -> Iterator[tuple[Told, Fraction, Fraction]]:
    """Every way of at most four rounds: its chance if the unit is there, and if it is not."""

    def play(told: Told) -> bool:
        """Whether the ledger lets a game go so far."""
        place = folder / f"{abs(hash(told))}-{len(told)}.ledger"
        with Ledger.open(place) as ledger:
            held = None
            if reserves:
                until = datetime.now(UTC) + timedelta(days=3)
                amount = Charge.pure(PRICE[2], PATIENT)
                names = ["dataset:patient", "analyst:ben:patient", "everybody@question:patient"]
                held = ledger.reserve({n: CAPS[n] for n in names}, amount, until=until)
            for number, (who, odds, _) in enumerate(told):
                names = ["dataset:patient", f"analyst:{who}:patient", "everybody@question:patient"]
                uses = held is not None and who == "ben" and number > 0 and told[number - 1][2]
                try:
                    ledger.charge(
                        {n: CAPS[n] for n in names},
                        Charge.pure(PRICE[odds], PATIENT),
                        token=str(number),
                        request="ab" * 32,
                        note={},
                        reservation=held.id if uses and held is not None else None,
                    )
                except (BudgetError, LedgerError):
                    return False
            assert ledger.verify().ok
        place.unlink()
        return True

    open_games: list[tuple[Told, Fraction, Fraction]] = [((), Fraction(1), Fraction(1))]
    while open_games:
        told, here, gone = open_games.pop()
        who, odds = strategy(told)
        if len(told) == 4 or not play((*told, (who, odds, True))):
            yield told, here, gone
            continue
        right = Fraction(odds, 1 + odds)
        yes, no = (*told, (who, odds, True)), (*told, (who, odds, False))
        open_games += [
            (yes, here * right, gone * (1 - right)),
            (no, here * (1 - right), gone * right),
        ]


@pytest.mark.parametrize(("strategy", "reserves"), [(loud, False), (signal, False), (kept, True)])
def test_all_together_keep_the_promise(
    tmp_path: Path, strategy: Callable[[Told], tuple[str, int]], reserves: bool
) -> None:
    """e^2 is above 7.389: no way is more likely by more, and no set of ways either."""
    found = list(ways(tmp_path, strategy, reserves))
    assert sum(here for _, here, _ in found) == sum(gone for _, _, gone in found) == 1
    ratio = Fraction(7389, 1000)
    for _, here, gone in found:
        assert here <= ratio * gone
        assert gone <= ratio * here
    assert max(len(told) for told, _, _ in found) >= 2


def test_one_alone_keeps_no_promise_of_a_quota(tmp_path: Path) -> None:
    """Ana pays for odds of 2 at most; that she asked at all has those of 3."""
    seen: dict[Told, list[Fraction]] = defaultdict(lambda: [Fraction(0), Fraction(0)])
    for told, here, gone in ways(tmp_path, signal, False):
        own = tuple(round_ for round_ in told if round_[0] == "ana")
        seen[own][0] += here
        seen[own][1] += gone
    spent = max(len(own) for own in seen)
    assert spent == 1
    assert max(max(here / gone, gone / here) for here, gone in seen.values()) > 2
