"""How audits and attacks leave: green only where a promise was held against something."""

from __future__ import annotations

import sys
from collections.abc import Iterable
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from dither.lab.attack import Verdict

__all__ = ["INCONCLUSIVE", "VIOLATED", "leave_by"]

VIOLATED, INCONCLUSIVE = 1, 3
"""Exit codes; 2 is a wrong command line."""


def leave_by(verdicts: Iterable[Verdict]) -> None:
    """Leave with 1 where a promise is broken, with 3 where one could not be judged."""
    from dither.lab.attack import Outcome

    found = list(verdicts)
    if any(v.outcome is Outcome.VIOLATED for v in found):
        sys.exit(VIOLATED)
    if any(v.bounded and v.outcome is not Outcome.CONSISTENT for v in found):
        sys.exit(INCONCLUSIVE)
