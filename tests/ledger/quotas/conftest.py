"""A ledger by a clock that tests set."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import datetime
from pathlib import Path

import pytest

from dither.ledger import Ledger
from dither.ledger._place import LedgerSchema


@pytest.fixture
def ledger(place: Path | LedgerSchema, clock: list[datetime]) -> Iterator[Ledger]:
    """One of no account."""
    with Ledger.open(place) as opened:
        yield opened
