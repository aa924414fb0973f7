"""The choice of a channel: least error within limits, by the channels' own variances."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from dither.errors import ArgumentError
from dither.local import GRR, Domain, best


@pytest.mark.parametrize(
    ("k", "epsilon", "kind"),
    [
        (2, 1, "grr"),
        (4, 1, "grr"),
        (10_000, 1, "olh"),
        (100, 6, "grr"),
        (100_000, "0.1", "hadamard"),
    ],
)
def test_known_choices(k: int, epsilon: Any, kind: str) -> None:
    """Few values or a large epsilon: GRR; many values: OLH, or Hadamard where it errs no more."""
    assert best(k, epsilon, 100_000).channel.kind == kind


@pytest.mark.parametrize("error", ["mean", "worst"])
@pytest.mark.parametrize("k", [3, 40, 500])
def test_nothing_better_is_passed_over(k: int, error: str) -> None:
    """The choice is within 5 % of every candidate that keeps to the limits, and keeps to them."""
    for epsilon in ("0.2", 1, 3):
        for limits in ({}, {"bytes": 5}, {"seconds": 0.005}):
            choice = best(k, epsilon, 50_000, error=error, **limits)
            fit = [c for c in choice.candidates if not c.excluded]
            mine = next(c for c in fit if c.channel is choice.channel)
            assert getattr(mine, error) <= 1.05 * min(getattr(c, error) for c in fit)
            assert mine.report_bytes <= limits.get("bytes", 10**9)
            assert mine.server_seconds <= limits.get("seconds", 1e9)
            assert choice.reason.startswith(f"{type(mine.channel).__name__}: ")
            assert str(choice).count("\n") == len(choice.candidates) + 2


def test_errors_are_those_of_the_channels() -> None:
    """The worst error is over all populations: no random one exceeds it, and one reaches it."""
    choice = best(6, 1, 1000)
    rng = np.random.default_rng(1)
    for c in choice.candidates:
        if c.channel.kind == "flh":
            continue
        populations = [*rng.dirichlet(np.full(6, 0.3), 200), *np.eye(6)]
        found = [np.sqrt(c.channel.variance(f, 1000).max()) for f in populations]
        assert max(found) == pytest.approx(c.worst, rel=1e-6)
        stated = np.sqrt(c.channel.variance(np.full(6, 1 / 6), 1000).mean())
        assert stated == pytest.approx(c.mean, rel=1e-6)


def test_the_channel_is_for_the_domain_given() -> None:
    """A domain of names gives a channel of those names."""
    domain = Domain(["no", "yes"])
    assert best(domain, 1, 100).channel == GRR(domain, 1)
    assert best(domain, 1, 100).guarantee.delta == 0


def test_refusals() -> None:
    """Limits that nothing keeps, and arguments out of range, are told by name."""
    for match, call in (
        ("no channel keeps", lambda: best(10**5, 1, 100, bytes=1)),
        ("n must", lambda: best(10, 1, 0)),
        ("bytes", lambda: best(10, 1, 10, bytes=0)),
        ("seconds", lambda: best(10, 1, 10, seconds=-1)),
        ("unknown error", lambda: best(10, 1, 10, error="least")),
        ("epsilon", lambda: best(10, 0, 10)),
    ):
        with pytest.raises(ArgumentError, match=match):
            call()
