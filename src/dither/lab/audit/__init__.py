"""Auditing: certified lower bounds of what a mechanism reveals, from its outputs alone.

An audit treats every mechanism as a black box, ours or another's. It can show that a claim is
false; it never shows that one is true.
"""

from dither.lab.audit.audit import audit
from dither.lab.audit.budgets import samples_needed
from dither.lab.audit.claim import Claim
from dither.lab.audit.events import Event
from dither.lab.audit.one_run import (
    OneRunAudit,
    audit_one_run,
    chance_of_guesses,
    guess_by_score,
)
from dither.lab.audit.result import Audit, Verdict

__all__ = [
    "Audit",
    "Claim",
    "Event",
    "OneRunAudit",
    "Verdict",
    "audit",
    "audit_one_run",
    "chance_of_guesses",
    "guess_by_score",
    "samples_needed",
]
