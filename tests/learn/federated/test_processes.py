"""A SuperLink and three SuperNodes on loopback: the same rounds through Flower's own processes.

Some ten processes start, so that it is run where it is asked for: FLOWER_PROCESSES=1.
"""

from __future__ import annotations

import json
import os
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

pytest.importorskip("flwr", reason="flwr is not installed")

pytestmark = pytest.mark.skipif(
    "FLOWER_PROCESSES" not in os.environ,
    reason="starts ten processes of Flower's for a minute or more: set FLOWER_PROCESSES=1",
)

LIMIT = 400
"""Seconds for all of it."""

PROJECT = """
[build-system]
requires = ["hatchling"]
build-backend = "hatchling.build"

[project]
name = "fedapp"
version = "1.0.0"
description = "Three clients"
license = { file = "LICENSE" }
dependencies = ["flwr>=1.41"]

[tool.flwr.app]
publisher = "nobody"
fab-format-version = 1
flwr-version-target = "1.41.0"

[tool.flwr.app.components]
serverapp = "fedapp.apps:server"
clientapp = "fedapp.apps:client"

[tool.flwr.app.config]
"""

APPS = """
import json, os
import numpy as np
from dither.learn import federated

noise = federated.DistributedNoise("skellam", survivors=3, most=3, units=4000)
plan = federated.FedAvg(
    5, clients=3, rate=1, rounds=1, noise_multiplier=0.01, distributed=noise
)

def update(parameters, context):
    return np.eye(5)[int(context.node_config["partition-id"])] / 2

def seen(done, parameters):
    with open(os.environ["FEDERATED_OUT"], "w") as file:
        json.dump([done, parameters.tolist()], file)

server = federated.server_app(plan, np.zeros(5), seen=seen, timeout=200)
client = federated.client_app(plan, update)
"""


def _port() -> int:
    with socket.socket() as found:
        found.bind(("127.0.0.1", 0))
        return int(found.getsockname()[1])


def _until(done: Callable[[], bool], end: float, what: str) -> None:
    while not done():
        assert time.monotonic() < end, f"{what} took too long"
        time.sleep(0.5)


def test_three_clients_on_loopback(tmp_path: Path) -> None:
    """One round through SecAgg+: the mean of three updates, with hardly any noise."""
    end, app, home = time.monotonic() + LIMIT, tmp_path / "app", tmp_path / "home"
    (app / "fedapp").mkdir(parents=True)
    home.mkdir()
    (app / "pyproject.toml").write_text(PROJECT)
    (app / "LICENSE").write_text("none\n")
    (app / "fedapp" / "__init__.py").write_text("")
    (app / "fedapp" / "apps.py").write_text(APPS)
    link, out = f"127.0.0.1:{(port := _port())}", tmp_path / "out.json"
    (home / "config.toml").write_text(
        f'[superlink]\ndefault = "loop"\n[superlink.loop]\naddress = "{link}"\ninsecure = true\n'
    )
    programs = Path(sys.executable).parent
    environment = os.environ | {
        "FLWR_HOME": str(home),
        "FLWR_TELEMETRY_ENABLED": "0",
        "FLWR_DISABLE_UPDATE_CHECK": "1",
        "FEDERATED_OUT": str(out),
        "PATH": f"{programs}{os.pathsep}{os.environ['PATH']}",
    }
    started: list[subprocess.Popen[bytes]] = []

    def start(name: str, *given: str) -> Path:
        log = tmp_path / f"{name}-{len(started)}.log"
        with log.open("wb") as to:
            made = subprocess.Popen(
                [str(programs / name), "--insecure", "--host", "127.0.0.1", *given],
                stdout=to,
                stderr=to,
                env=environment,
                start_new_session=True,
            )
        started.append(made)
        return log

    try:
        log = start(
            "flower-superlink", "--port", str(port), "--disable-runtime-dependency-installation"
        )
        _until(lambda: "Uvicorn running" in log.read_text(), end, "the SuperLink")
        for i in range(3):
            node = ("--superlink", link, "--port", str(_port()), "--node-config")
            start("flower-supernode", *node, f"partition-id={i}")
        _until(lambda: log.read_text().count("Activated node") >= 3, end, "three SuperNodes")
        subprocess.run(
            [str(programs / "flwr"), "run", str(app), "loop"],
            env=environment,
            check=True,
            capture_output=True,
            timeout=max(1.0, end - time.monotonic()),
        )
        _until(lambda: out.exists() and out.stat().st_size > 0, end, "the round")
    finally:
        # Each has a session of its own, with all that it started.
        for one in reversed(started):
            for sent in (signal.SIGTERM, signal.SIGKILL):
                try:
                    os.killpg(one.pid, sent)
                    one.wait(20)
                    break
                except ProcessLookupError:
                    break
                except subprocess.TimeoutExpired:
                    continue
    done, parameters = json.loads(out.read_text())
    assert done == 1
    assert np.allclose(parameters, [1 / 6] * 3 + [0, 0], atol=0.03)
