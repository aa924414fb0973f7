"""Estimates on a schedule, and batches of shuffled reports on their way out.

Both are post-processing of reports that protect whoever sent them by themselves: publishing them
costs nothing, however often.
"""

from __future__ import annotations

import datetime as dt
import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from sqlalchemy import delete, insert, select, update

from dither._files import written
from dither.blocks._calendar import Calendar
from dither.errors import ArgumentError
from dither.local.wire import file_of
from dither.service.collect._collector import Collector
from dither.service.collect._numbers import counts_from
from dither.service.collect._settings import SurveySettings
from dither.service.collect._store import BATCHES, PUBLISHED

__all__ = ["newest", "publish_due"]


def publish_due(collector: Collector, now: dt.datetime | None = None) -> list[Path]:
    """Write what is due: estimates of surveys whose last period is over, and shuffled batches.

    Call it as often as is convenient, in as many processes as there are: each period's estimates
    are made once, and a batch's file is written whole or not at all.

    Parameters
    ----------
    collector : Collector
    now : datetime, optional
        In UTC.

    Returns
    -------
    list of Path
        The files that were written.

    Raises
    ------
    ArgumentError
        A folder cannot be written to; it is tried again at the next call.
    """
    found = []
    for name, survey in collector.settings.surveys.items():
        found += _batches(collector, name, survey)
        if survey.every is not None:
            found += _estimates(collector, name, survey, now or dt.datetime.now(dt.UTC))
    return found


def newest(collector: Collector, name: str) -> Mapping[str, Any] | None:
    """The newest estimates of a survey that were published, as data."""
    digest = collector.survey(name).configuration.digest
    with collector.store.reading() as connection:
        found = connection.execute(
            select(PUBLISHED.c.estimate)
            .where(PUBLISHED.c.survey == digest)
            .order_by(PUBLISHED.c.period.desc())
            .limit(1)
        ).scalar_one_or_none()
    return None if found is None else json.loads(bytes(found))


def _estimates(
    collector: Collector, name: str, survey: SurveySettings, now: dt.datetime
) -> list[Path]:
    calendar = Calendar(every=survey.every)
    this = calendar.block_of(now.astimezone(dt.UTC).date())
    assert isinstance(this, int)
    period = calendar.label(this - 1)
    configuration = survey.configuration
    with collector.store.writing() as connection:
        known = connection.execute(
            select(PUBLISHED.c.estimate).where(
                PUBLISHED.c.survey == configuration.digest, PUBLISHED.c.period == period
            )
        ).scalar_one_or_none()
        body = None if known is None else bytes(known)
        if body is None:
            numbers = collector.store.numbers(connection, configuration.digest)
            if numbers is None:
                return []
            counts = counts_from(configuration.carrier, numbers)
            if not counts.n:
                return []
            shown = counts.estimate(survey.postprocess).frame
            made = {
                "survey": name,
                "configuration": configuration.digest.hex(),
                "period": period,
                "reports": counts.n,
                "rejected": counts.rejected,
                "estimates": json.loads(shown.write_json()),
            }
            body = json.dumps(made, indent=2, ensure_ascii=False).encode()
            connection.execute(
                insert(PUBLISHED).values(survey=configuration.digest, period=period, estimate=body)
            )
    assert survey.estimates is not None
    target = survey.estimates / f"{name}-{period}.json"
    # A process that died between its commit and its file left the file to the next one.
    if target.exists():
        return []
    _folder(survey.estimates)
    written(target, body + b"\n")
    return [target]


def _batches(collector: Collector, name: str, survey: SurveySettings) -> list[Path]:
    if survey.batches is None:
        return []
    digest = survey.configuration.digest
    made = []
    with collector.store.writing() as connection:
        rows = connection.execute(
            select(BATCHES.c.number, BATCHES.c.records)
            .where(BATCHES.c.survey == digest)
            .order_by(BATCHES.c.number)
        ).all()
        for number, records in rows:
            if records is None or not bytes(records):
                continue
            _folder(survey.batches)
            target = survey.batches / f"{name}-{digest.hex()[:8]}-{number:06}.reports"
            # Written before it is forgotten: a process that dies here writes the same file again.
            written(target, file_of(survey.configuration.carrier, bytes(records)))
            made.append(target)
            mine = (BATCHES.c.survey == digest) & (BATCHES.c.number == number)
            # Of the last one its number stays: the next one follows it.
            last = number == rows[-1].number
            connection.execute(
                update(BATCHES).where(mine).values(records=b"")
                if last
                else delete(BATCHES).where(mine)
            )
    return made


def _folder(path: Path) -> None:
    try:
        path.mkdir(parents=True, exist_ok=True)
    except OSError:
        raise ArgumentError(f"{str(path)!r} is no folder that files can be written to") from None
