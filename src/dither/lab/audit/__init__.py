"""Auditing: certified lower bounds of what a mechanism reveals, from its outputs alone.

An audit treats every mechanism as a black box, ours or another's. It can show that a claim is
false; it never shows that one is true.
"""

from dither.lab._verdicts import Outcome
from dither.lab.audit._audit import audit
from dither.lab.audit._claims import Claim, samples_needed
from dither.lab.audit._events import Event
from dither.lab.audit._one_run import (
    OneRunAudit,
    audit_one_run,
    chance_of_guesses,
    guess_by_score,
)
from dither.lab.audit._result import Audit

__all__ = [
    "Audit",
    "Claim",
    "Event",
    "OneRunAudit",
    "Outcome",
    "audit",
    "audit_one_run",
    "chance_of_guesses",
    "guess_by_score",
    "samples_needed",
]
