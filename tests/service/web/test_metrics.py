"""The counts are for programs of the same machine, unless the owner says otherwise."""

from __future__ import annotations

import asyncio

import polars as pl
import pytest

pytest.importorskip("starlette")

import httpx

from dither.service._desk import Desk
from dither.service.web._app import application
from dither.service.web._metrics import Metering
from dither.service.web._serve import Listening


@pytest.fixture(scope="module")
def desk(tmp_path_factory: pytest.TempPathFactory) -> Desk:
    folder = tmp_path_factory.mktemp("metrics")
    pl.DataFrame({"p": [1, 2, 3]}).write_parquet(folder / "visits.parquet")
    (folder / "dither.toml").write_text(
        '[budget]\nepsilon = 1\nledger = "v.ledger"\n[tables.visits]\nsource = "visits.parquet"\n'
    )
    return Desk(folder / "dither.toml", "visits")


def got(desk: Desk, metrics: Metering, host: str) -> httpx.Response:
    app = application([desk], metrics=metrics)

    async def asked() -> httpx.Response:
        transport = httpx.ASGITransport(app, client=(host, 1))
        async with httpx.AsyncClient(transport=transport, base_url="http://here") as client:
            await client.get("/v1/visits/people/ann?key=swordfish")
            return await client.get("/metrics")

    return asyncio.run(asked())


@pytest.mark.parametrize(
    ("metrics", "host", "status"),
    [
        (Metering.NEAR, "127.0.0.1", 200),
        (Metering.NEAR, "::1", 200),
        (Metering.NEAR, "10.0.0.7", 404),
        (Metering.NEAR, "localhost.evil.example.org", 404),
        (Metering.NEAR, "", 404),
        (Metering.NOBODY, "127.0.0.1", 404),
        (Metering.ALL, "10.0.0.7", 200),
    ],
)
def test_who_may_read_them(desk: Desk, metrics: Metering, host: str, status: int) -> None:
    """Others are told that there is nothing."""
    assert got(desk, metrics, host).status_code == status


def test_what_is_in_them(desk: Desk) -> None:
    """Counts by endpoint and by state; no table, person, key, address or time of a question."""
    text = got(desk, Metering.NEAR, "127.0.0.1").text
    lines = [line for line in text.splitlines() if not line.startswith("#")]
    names = {line.partition("{")[0].partition(" ")[0] for line in lines}
    assert names <= {"dither_jobs", "dither_requests_total", "dither_ready"}
    for word in ("ann", "swordfish", "127.0.0.1"):
        assert word not in text


def test_behind_a_proxy_nobody_may() -> None:
    """All seem to be of this machine there."""
    assert Listening(behind_proxy=True).metrics is Metering.NOBODY
    assert Listening(behind_proxy=True, open_metrics=True).metrics is Metering.ALL
    assert Listening().metrics is Metering.NEAR
