"""What a schedule keeps beside the ledger: ids of reservations, written before they are made, and
up to where all is done.

The ledger has hashes of these ids alone, and whoever knows one may use the reservation. So they are
in a file of the owner's beside the ledger, or in a schema of their own beside that of the ledger,
which nobody who asks is granted. If all of it is lost, reservations lapse, and nothing is released
twice: that rests on the tokens in the ledger.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

from sqlalchemy import Column, Integer, MetaData, String, Table, delete, insert, select

from dither.ledger._place import LedgerSchema
from dither.service._database import Database, KeptTables

__all__ = ["ScheduleState"]

_metadata = MetaData()
_reservations = Table(
    "schedule_reservations",
    _metadata,
    Column("schedule", String(100), primary_key=True),
    Column("low", Integer, primary_key=True),
    Column("high", Integer, primary_key=True),
    Column("known", String(64), nullable=False),
)

_marks = Table(
    "schedule_marks",
    _metadata,
    Column("schedule", String(100), primary_key=True),
    Column("what", String(20), primary_key=True),
    Column("number", Integer, nullable=False),
)

_KEPT = KeptTables(
    _metadata,
    Table("schedule_version", _metadata, Column("version", Integer, nullable=False)),
    name="what schedules keep beside the ledger",
    policy_field="ledger.postgres",
    program="schedule",
    patience=30,
)

BESIDE = "_schedule"


class ScheduleState:
    """Ids of reservations, by schedule and stretch of time.

    Parameters
    ----------
    place : Path or LedgerSchema
        Where the ledger is.

    Raises
    ------
    LedgerError
        It cannot be opened.
    """

    def __init__(self, place: Path | LedgerSchema) -> None:
        if isinstance(place, LedgerSchema):
            beside: Path | LedgerSchema = place.beside(BESIDE)
        else:
            beside = place.with_name(f"{place.name}{BESIDE}")
        self._database = Database(beside, _KEPT)

    def known(self, schedule: str, low: int, high: int) -> str | None:
        """The id of a reservation that was made, or was about to be."""
        query = select(_reservations.c["known"]).where(*_at(schedule, low, high))
        with self._database.reading() as connection:
            found: str | None = connection.execute(query).scalar_one_or_none()
        return found

    def keep(
        self, schedule: str, low: int, high: int, known: str, instead_of: str | None = None
    ) -> str:
        """Write an id down; what stands there then, which is another's that was quicker.

        Parameters
        ----------
        schedule, low, high
            Of which stretch of time.
        known : str
        instead_of : str, optional
            One that has lapsed, as it stood there.
        """
        row = {"schedule": schedule, "low": low, "high": high, "known": known}
        at = _at(schedule, low, high)
        with self._database.writing() as connection:
            query = select(_reservations.c["known"]).where(*at)
            found: str | None = connection.execute(query).scalar_one_or_none()
            if found not in (None, instead_of):
                return found
            connection.execute(delete(_reservations).where(*at))
            connection.execute(insert(_reservations).values(**row))
        return known

    def forget(self, schedule: str, low: int, high: int) -> None:
        """Leave one out: it was used."""
        with self._database.writing() as connection:
            connection.execute(delete(_reservations).where(*_at(schedule, low, high)))

    def mark(self, schedule: str, what: str) -> int:
        """Up to which stretch of time all is done; 0 where nothing is known."""
        held = _marks.c
        query = select(held["number"]).where(held["schedule"] == schedule, held["what"] == what)
        with self._database.reading() as connection:
            found: int | None = connection.execute(query).scalar_one_or_none()
        return found or 0

    def set_mark(self, schedule: str, what: str, number: int) -> None:
        """Say so: it saves looking at what is done, and nothing rests on it."""
        held = _marks.c
        row = {"schedule": schedule, "what": what, "number": number}
        with self._database.writing() as connection:
            old = delete(_marks).where(held["schedule"] == schedule, held["what"] == what)
            connection.execute(old)
            connection.execute(insert(_marks).values(**row))

    def close(self) -> None:
        """Give connections back."""
        self._database.close()


def _at(schedule: str, low: int, high: int) -> list[Any]:
    held = _reservations.c
    return [held["schedule"] == schedule, held["low"] == low, held["high"] == high]
