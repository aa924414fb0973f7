"""Durable accounts: what was spent, by whom, on what.

A ledger is one SQLite file, or a schema of a PostgreSQL database that many machines share. An
account has caps; a charge is checked and written in one transaction that is on the disk before an
engine may run; entries are only ever added, each bound to the one before by its hash; the same
request under the same token replays its stored answer.
"""

from dither.ledger._accounts import Balance as Balance
from dither.ledger._accounts import Charged as Charged
from dither.ledger._block_budget import BlockBudget as BlockBudget
from dither.ledger._block_budget import BlockSpending as BlockSpending
from dither.ledger._checkpoint import Checkpoint as Checkpoint
from dither.ledger._entries import UNIT as UNIT
from dither.ledger._entries import Entry as Entry
from dither.ledger._ledger import Ledger
from dither.ledger._owner import LedgerOwner as LedgerOwner
from dither.ledger._signing import OwnerKey as OwnerKey
from dither.ledger._signing import PublicKey as PublicKey
from dither.ledger.verification._verify import Verification as Verification

__all__ = ["Ledger"]
