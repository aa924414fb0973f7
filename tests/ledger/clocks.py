"""A clock of ledgers that tests set."""

from __future__ import annotations

from datetime import datetime

import pytest

from dither.ledger import _entries

__all__ = ["ledgers_clock"]


def ledgers_clock(patch: pytest.MonkeyPatch, first: datetime) -> list[datetime]:
    """What ledgers of this process take for now until the test ends: the last of what is returned.

    Parameters
    ----------
    patch : MonkeyPatch
    first : datetime
        What it says until more is appended.
    """
    said = [first]

    class Clock(datetime):
        @classmethod
        def now(cls, tz: object = None) -> datetime:
            return said[-1]

    patch.setattr(_entries, "datetime", Clock)
    return said
