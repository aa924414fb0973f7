"""Auditing: certified lower bounds of what a mechanism reveals, from its outputs alone.

An audit treats every mechanism as a black box, ours or another's. It can show that a claim is
false; it never shows that one is true.
"""

from dither.lab._verdicts import Outcome as Outcome
from dither.lab.audit._audit import audit
from dither.lab.audit._canaries import CanaryAudit as CanaryAudit
from dither.lab.audit._canaries import audit_canaries as audit_canaries
from dither.lab.audit._claims import Claim as Claim
from dither.lab.audit._claims import samples_needed
from dither.lab.audit._events import Event as Event
from dither.lab.audit._given import grid_score as grid_score
from dither.lab.audit._one_run import OneRunAudit as OneRunAudit
from dither.lab.audit._one_run import audit_one_run
from dither.lab.audit._one_run import chance_of_guesses as chance_of_guesses
from dither.lab.audit._one_run import guess_by_score as guess_by_score
from dither.lab.audit._result import Audit as Audit
from dither.lab.audit.channels._channels import ChannelAudit as ChannelAudit
from dither.lab.audit.channels._channels import audit_channel
from dither.lab.audit.channels._games import GuessEvent as GuessEvent

__all__ = [
    "audit",
    "audit_channel",
    "audit_one_run",
    "samples_needed",
]
