"""The caps of an account, as the ledger sees them: something that admits a total or does not."""

from __future__ import annotations

import json
from collections.abc import Mapping
from fractions import Fraction
from functools import lru_cache
from typing import Any, Protocol

from dither.privacy.charge import Charge

__all__ = ["Filter", "Remaining", "read_budget", "say_budget"]


class Remaining(Protocol):
    """What an account can still bear, by either rule; ``None`` where a rule is closed."""

    @property
    def epsilon(self) -> Fraction | None: ...
    @property
    def delta(self) -> Fraction | None: ...
    @property
    def rho(self) -> Fraction | None: ...
    @property
    def rho_delta(self) -> Fraction | None: ...

    def describe(self) -> str:
        """The same in words."""
        ...


class Filter(Protocol):
    """A privacy filter: `dither.accounting.filters.BudgetFilter` is one.

    ``admits`` must be monotone: what is admitted is admitted with any smaller total too.
    """

    def admits(self, total: Charge) -> bool:
        """Whether everything spent so far, with the new charge, stays within the caps."""
        ...

    def remaining(self, total: Charge) -> Remaining:
        """What fits beside what is spent."""
        ...

    def to_dict(self) -> Mapping[str, Any]:
        """The caps as JSON without floats, exact."""
        ...


@lru_cache(maxsize=1024)
def read_budget(text: str) -> Filter:
    """The filter of the caps that an entry holds as JSON."""
    from dither.accounting.filters import BudgetFilter

    budget: Filter = BudgetFilter.from_dict(json.loads(text))
    return budget


def say_budget(text: str) -> str:
    """Caps in a message: ``epsilon = 2, delta = 1/1000000``."""
    return ", ".join(f"{name} = {value}" for name, value in json.loads(text).items())
