"""What people are to a policy."""

from __future__ import annotations

from enum import Enum

__all__ = ["EVERYBODY", "Role"]


class Role(Enum):
    """What somebody may do with a policy; whoever has two roles has two names."""

    OWNER = "owner"
    """Decides: people, approvals, pauses. Asks, too."""
    ANALYST = "analyst"
    """Asks, within quotas."""
    AUDITOR = "auditor"
    """Reads the ledger and certificates, and never asks."""
    PUBLIC = "public"
    """Anybody, without a key: sees released answers, where the owner says so."""


EVERYBODY = frozenset(Role)
