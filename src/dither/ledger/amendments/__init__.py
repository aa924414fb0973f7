"""Amendments that are signed far from the ledger: the owner's key stays with the owner."""

from dither.ledger.amendments._signed import AmendmentBase as AmendmentBase
from dither.ledger.amendments._signed import SignedAmendment as SignedAmendment
from dither.ledger.amendments._signed import amend_by, base_of

__all__ = ["amend_by", "base_of"]
