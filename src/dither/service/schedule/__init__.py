"""Questions that are released when their block closes, and running counts over blocks.

- ``_settings``: the sections ``[schedule.NAME]``.
- ``_periods``: stretches of time, and the stretches of twice that length that a running count adds.
- ``_state``: what must survive a restart beside the ledger: ids of reservations.
- ``_asking``: the question of one stretch of time, which reads that stretch alone.
- ``_ahead``: the price of an open block is reserved.
- ``_totals``: the total of a running count, of numbers that were released.
- ``_run``: what is due is released, once.
"""

from __future__ import annotations

from dither.service.schedule._run import ScheduledOutcome, Timetable, run_due
from dither.service.schedule._settings import DeclaredSchedule, read_schedules

__all__ = ["DeclaredSchedule", "ScheduledOutcome", "Timetable", "read_schedules", "run_due"]
