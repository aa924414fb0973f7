"""A survey that devices answer: reports by period, estimates, and what one report gives away."""

from __future__ import annotations

import json
import math
from collections.abc import Mapping, Sequence
from operator import itemgetter
from typing import TYPE_CHECKING, Any

from sqlalchemy import func, select

from dither._format import display_text, loss_text, percent
from dither.errors import DitherError
from dither.service._endpoints import ANALYST, OWNER, Asked, Endpoint, roles
from dither.service.access._roles import Role
from dither.service.page._shown import PageView
from dither.service.page._svg import Scale

if TYPE_CHECKING:
    from dither.service.collect import Collector
    from dither.service.collect._settings import SurveySettings

__all__ = ["VIEWS"]

READERS = roles(OWNER, ANALYST)

PERIODS = 31

VALUES = 30
"""Shares that are shown: the largest."""


def collect(asked: Asked) -> PageView:
    """Every survey: to the owner as it stands, to others as it was published."""
    collector = asked.hall.collector_of(asked.desk)
    owner = asked.who.role is Role.OWNER
    surveys = []
    if collector is not None:
        for name, survey in sorted(collector.settings.surveys.items()):
            if owner:
                surveys.append(_whole(collector, name, survey))
            elif survey.public:
                surveys.append(_published(collector, name, survey))
    return PageView("collect/collect.html", {"surveys": surveys, "owner": owner})


def _whole(collector: Collector, name: str, survey: SurveySettings) -> dict[str, Any]:
    """A survey from its collector's own state: counts alone, no report and nobody's address."""
    from dither.service.collect._store import PUBLISHED, WAITING

    counts = collector.counts(name)
    digest = survey.configuration.digest
    with collector.store.reading() as connection:
        rows = connection.execute(
            select(PUBLISHED.c.period, PUBLISHED.c.estimate)
            .where(PUBLISHED.c.survey == digest)
            .order_by(PUBLISHED.c.period)
        ).all()
        waiting = connection.execute(
            select(func.count()).select_from(WAITING).where(WAITING.c.survey == digest)
        ).scalar_one()
    known = [(str(period), json.loads(bytes(body))) for period, body in rows]
    before, periods = 0, []
    for period, made in known:
        periods.append({"when": period, "reports": made["reports"] - before})
        before = made["reports"]
    if periods or (survey.every is not None and counts.n):
        periods.append({"when": None, "reports": counts.n - before})
    estimates: list[dict[str, Any]] = []
    failed = ""
    if counts.n:
        try:
            frame = counts.estimate(survey.postprocess).frame
            estimates = json.loads(frame.write_json())
        except DitherError as error:
            failed = str(error)
    return {
        "reports": counts.n,
        "rejected": counts.rejected,
        "waiting": int(waiting),
        "shuffle": survey.shuffle,
        "every": survey.every,
        "periods": _bars(periods[-PERIODS:]),
        "failed": failed,
        "through": None,
        **_common(name, survey, estimates),
    }


def _published(collector: Collector, name: str, survey: SurveySettings) -> dict[str, Any]:
    """A survey as anybody may see it: what was published last."""
    from dither.service.collect._publishing import newest

    found: Mapping[str, Any] = newest(collector, name) or {}
    return {
        "reports": found.get("reports", 0),
        "rejected": found.get("rejected", 0),
        "waiting": 0,
        "shuffle": None,
        "every": survey.every,
        "periods": None,
        "failed": "",
        "through": found.get("period"),
        **_common(name, survey, list(found.get("estimates", []))),
    }


def _common(name: str, survey: SurveySettings, estimates: list[dict[str, Any]]) -> dict[str, Any]:
    from dither.lab.attack._verdict import most_certain

    made = survey.configuration
    one = float(made.carrier.epsilon)
    guarantee = getattr(made.carrier, "guarantee", None)
    graded = guarantee is not None and getattr(guarantee, "graded", False)
    return {
        "name": name,
        "kind": made.carrier.kind,
        "epsilon": loss_text(made.carrier.epsilon),
        "token": loss_text(made.epsilon),
        "each": made.reports,
        "daily": survey.daily,
        # Of a device that sends all that it may in a day.
        "day": loss_text(made.epsilon * survey.daily),
        "factor": loss_text(math.exp(min(one, 700.0)), 3),
        "odds": [
            {
                "prior": percent(prior),
                "one": percent(most_certain(one, prior), turn=math.ceil),
                "token": percent(most_certain(float(made.epsilon), prior), turn=math.ceil),
                "day": percent(
                    most_certain(float(made.epsilon * survey.daily), prior), turn=math.ceil
                ),
            }
            for prior in (0.01, 0.1, 0.5)
        ],
        "graded": guarantee.summary() if guarantee is not None and graded else "",
        "digest": made.digest.hex(),
        "signer": made.signer.fingerprint,
        "estimates": _shares(estimates),
    }


def _shares(given: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
    """Shares with their intervals, the largest first; of other estimates the numbers alone."""
    if not given or not {"value", "share"} <= given[0].keys():
        columns = list(given[0]) if given else []
        rows = [[row.get(name) for name in columns] for row in given[:VALUES]]
        return {"columns": columns, "rows": rows, "shares": [], "more": len(given) - len(rows)}
    found: list[dict[str, Any]] = []
    for row in given:
        inside = [min(max(row.get(n) or 0.0, 0.0), 1.0) for n in ("share", "lower", "upper")]
        named = [str(row["attribute"])] if "attribute" in row else []
        found.append(
            {
                "value": ": ".join([*named, display_text(row["value"])]),
                "share": percent(inside[0]),
                "low": None if row.get("lower") is None else percent(inside[1], turn=math.floor),
                "high": None if row.get("upper") is None else percent(inside[2], turn=math.ceil),
                "x": [_ACROSS(one) for one in inside],
                "order": -inside[0],
            }
        )
    found.sort(key=itemgetter("order"))
    shown = found[:VALUES]
    return {"columns": [], "rows": [], "shares": shown, "more": len(found) - len(shown)}


_ACROSS = Scale(0, 1, 4, 196)


def _bars(periods: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """With the height of each one's bar."""
    most = max((one["reports"] for one in periods), default=0) or 1
    up = Scale(0, most, 0, 120)
    return [one | {"height": up(one["reports"])} for one in periods]


VIEWS = [Endpoint("GET", "/collect", READERS, collect, "Surveys that devices answer.")]
