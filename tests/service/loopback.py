"""A policy that is served on loopback, in a thread of the tests."""

from __future__ import annotations

import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import polars as pl
import uvicorn

import dither
from dither.service._desk import Desk
from dither.service.access._roles import Role
from dither.service.client._remote import RemoteSession
from dither.service.web._app import application
from dither.service.web._serve import Listening, _listening

POLICY = """
[budget]
epsilon = 100000
delta = 1e-6
ledger = "visits.ledger"

[service]
name = "visits"
approve_above = { epsilon = 1000 }

[quotas.analysts.ann]
epsilon = 50000
[quotas.analysts.bob]
epsilon = 40000
[quotas.analysts.eve]
epsilon = 5

[tables.regions]
source = "regions.csv"
public = true
unique = ["region"]
[tables.regions.columns]
region = { type = "text" }

[tables.visits]
source = "visits.parquet"
unit = "patient"
max_rows = 3
max_groups = 2
[tables.visits.columns]
age = { bounds = [0, 110] }
cost = { bounds = [0, 100] }
group = { values = ["control", "treated"] }
"""


def write(folder: Path, rows: int = 600, policy: str = POLICY) -> Path:
    """A policy with its tables."""
    pl.DataFrame(
        {
            "patient": list(range(rows)),
            "age": [20 + i % 70 for i in range(rows)],
            "cost": [float(i % 100) for i in range(rows)],
            "group": ["control", "treated"] * (rows // 2),
            "region": ["north", "east", "south"] * (rows // 3),
        }
    ).write_parquet(folder / "visits.parquet")
    (folder / "regions.csv").write_text("region\nnorth\neast\nsouth\n")
    (folder / "dither.toml").write_text(policy)
    return folder / "dither.toml"


@dataclass
class OnLoopback:
    """A service that runs, and keys to it."""

    desk: Desk
    port: int
    keys: dict[str, str]

    @property
    def address(self) -> str:
        return f"http://127.0.0.1:{self.port}/{self.desk.name}"

    def connect(self, who: str = "ann", **named: object) -> RemoteSession:
        return dither.connect(self.address, key=self.keys[who], **named)  # type: ignore[arg-type]


PEOPLE = {
    "olive": Role.OWNER,
    "ann": Role.ANALYST,
    "bob": Role.ANALYST,
    "eve": Role.ANALYST,
    "audrey": Role.AUDITOR,
}


@contextmanager
def serving(policy: Path) -> Iterator[OnLoopback]:
    """Serve a policy until the block ends."""
    desk = Desk(policy)
    keys = {}
    for name, role in PEOPLE.items():
        desk.people.add(name, role)
        keys[name] = desk.people.new_key(name).key
    listening = _listening(Listening(port=0))
    config = uvicorn.Config(
        application([desk], workers=1), log_config=None, lifespan="on", ws="none"
    )
    server = uvicorn.Server(config)
    thread = threading.Thread(target=server.run, kwargs={"sockets": [listening]}, daemon=True)
    thread.start()
    try:
        until = time.monotonic() + 30
        while not server.started and time.monotonic() < until:
            time.sleep(0.01)
        assert server.started
        yield OnLoopback(desk, listening.getsockname()[1], keys)
    finally:
        server.should_exit = True
        thread.join(40)
