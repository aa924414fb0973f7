"""Both stores of ledgers, as for the tests of the ledger."""

from ledger.conftest import ledgers, place

__all__ = ["ledgers", "place"]
