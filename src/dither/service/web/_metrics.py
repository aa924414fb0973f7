"""What operators may see: counts of requests and of jobs, and nothing of what was asked.

No time of a question is among it, nor a table's or a person's name: how long a question ran may
tell of the data. What is left, the names of policies and how much is asked of them, is nobody's
business who is not of the house: programs on the same machine may read it, and others where the
owner says so.
"""

from __future__ import annotations

from enum import Enum
from ipaddress import ip_address
from typing import TYPE_CHECKING

from prometheus_client import (
    CollectorRegistry,
    Counter,
    Gauge,
    disable_created_metrics,
    generate_latest,
)

from dither.service.work._jobs import State

if TYPE_CHECKING:
    from dither.service._endpoints import Endpoint
    from dither.service._hall import Hall

__all__ = ["Metering", "Metrics"]


class Metering(Enum):
    """Who may read the counts."""

    NOBODY = "nobody"
    """Behind a proxy everybody may seem to be on the same machine."""
    NEAR = "near"
    """Programs on the same machine."""
    ALL = "all"

    def allows(self, host: str) -> bool:
        """Whether whoever calls from this address may."""
        if self is not Metering.NEAR:
            return self is Metering.ALL
        try:
            return ip_address(host).is_loopback
        except ValueError:
            return False


class Metrics:
    """The counts of one service.

    Parameters
    ----------
    hall : Hall
    """

    def __init__(self, hall: Hall) -> None:
        # Beside each count it would say when the first one was.
        disable_created_metrics()  # type: ignore[no-untyped-call]
        self._hall, self._registry = hall, CollectorRegistry()
        self._requests = Counter(
            "dither_requests",
            "Requests by endpoint and status.",
            ["method", "path", "status"],
            registry=self._registry,
        )
        self._jobs = Gauge("dither_jobs", "Questions by state.", ["state"], registry=self._registry)
        self._ready = Gauge("dither_ready", "Whether questions run.", registry=self._registry)

    def answered(self, endpoint: Endpoint, status: int, label: str = "") -> None:
        """Count an answer."""
        self._requests.labels(endpoint.method, label + endpoint.path, str(status)).inc()

    def text(self) -> bytes:
        """All of it, as Prometheus reads it."""
        self._ready.set(self._hall.ready)
        # Of all policies together: their names are nobody's business.
        found: dict[str, int] = {}
        for desk in self._hall.desks.values():
            for state, number in desk.jobs.counted().items():
                found[state] = found.get(state, 0) + number
        for one in State:
            self._jobs.labels(one.value).set(found.get(one.value, 0))
        return generate_latest(self._registry)
