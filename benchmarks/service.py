"""A service: a preview's round trip, a release beside the same one in Python, and many at once.

    python -m benchmarks.service [--rows N] [--clients N] [--many N] [--seconds S] [--previews N]

`dither serve` runs as a process of its own, with one policy over a table of so many rows, and all
calls go over loopback. Measured are: its start until it answers, and what it holds in memory while
nobody asks; previews of 20 clients, each of whom asks once a second; a release over HTTP beside the
same one of a local session; and 200 clients who ask for a minute what their quotas allow and do
not, after which the ledger is held against what they were told. Targets are those of one machine of
two processors with nothing else on it; the machine's load stands beside the figures.
"""

from __future__ import annotations

import argparse
import asyncio
import os
import signal
import statistics
import subprocess
import sys
import tempfile
import time
from collections import Counter
from contextlib import suppress
from fractions import Fraction
from pathlib import Path

import httpx
import numpy as np
import polars as pl

import dither as dt
from dither.ledger import Ledger
from dither.policy._policy import read_policy
from dither.service._database import Database
from dither.service._settings import read_settings
from dither.service._tables import SERVICE
from dither.service.access._people import People
from dither.service.access._roles import Role

PORT = 8797
ADDRESS = f"http://127.0.0.1:{PORT}"
SQL = "SELECT region, COUNT(*) AS n, AVG(cost) AS m FROM visits GROUP BY region"


def written(folder: Path, rows: int, budget: int) -> Path:
    """A policy over a table of so many rows, and one just like it with a ledger of its own."""
    rng = np.random.default_rng(1)
    pl.DataFrame(
        {
            "person": rng.integers(0, max(rows // 10, 1), rows),
            "cost": rng.uniform(0, 100, rows),
            "region": rng.choice(["north", "east", "south", "west"], rows),
        }
    ).write_parquet(folder / "visits.parquet")
    for name in ("visits", "local"):
        (folder / f"{name}.toml").write_text(
            f"""
[budget]
epsilon = {budget}
ledger = "{name}.ledger"
[service]
name = "visits"
rate = 1000000
[tables.visits]
source = "visits.parquet"
unit = "person"
max_rows = 5
max_groups = 3
[tables.visits.columns]
cost = {{ bounds = [0, 100] }}
region = {{ values = ["north", "east", "south", "west"] }}
"""
        )
    return folder / "visits.toml"


def resident(root: int) -> float:
    """Megabytes of a process and of those that it started, what they share counted once."""
    pids, found = [root], 0
    for pid in pids:
        with suppress(OSError):
            for thread in Path(f"/proc/{pid}/task").iterdir():
                pids += [int(child) for child in (thread / "children").read_text().split()]
            for line in Path(f"/proc/{pid}/smaps_rollup").read_text().splitlines():
                if line.startswith("Pss:"):
                    found += int(line.split()[1])
    return found / 1024


def used(pid: int) -> float:
    """The processors' seconds of a process so far."""
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def started(policy: Path) -> tuple[subprocess.Popen[bytes], float]:
    """A service, and the seconds until it answered."""
    # With its bytecode, as it is installed: the first of two starts writes it down.
    kept = {name: held for name, held in os.environ.items() if name != "PYTHONDONTWRITEBYTECODE"}
    begun = time.perf_counter()
    service = subprocess.Popen(
        [sys.executable, "-m", "dither.cli", "serve", str(policy), f"--port={PORT}"],
        stderr=subprocess.DEVNULL,
        env={**kept, "PYTHONPYCACHEPREFIX": str(policy.parent / "bytecode")},
    )
    with httpx.Client() as http:
        while True:
            with suppress(httpx.TransportError):
                if http.get(f"{ADDRESS}/health").status_code == 200:
                    return service, time.perf_counter() - begun
            if service.poll() is not None:
                raise SystemExit("the service does not start")
            time.sleep(0.02)


async def previews(keys: list[str], number: int) -> list[float]:
    """Seconds of each of so many previews, of as many clients at a time as there are keys."""
    times: list[float] = []

    async def one(key: str, turn: int) -> None:
        headers = {"authorization": f"Bearer {key}"}
        await asyncio.sleep(turn / len(keys))  # each once a second, and not all at one instant
        async with httpx.AsyncClient(headers=headers, timeout=60) as http:
            for i in range(number + 1):
                begun = time.perf_counter()
                body = {"sql": SQL, "epsilon": "0.5"}
                answer = await http.post(f"{ADDRESS}/v1/visits/preview", json=body)
                assert answer.status_code == 200, answer.text
                if i:
                    times.append(time.perf_counter() - begun)
                await asyncio.sleep(1)  # people think

    await asyncio.gather(*(one(key, turn) for turn, key in enumerate(keys)))
    return times


async def many(keys: list[str], seconds: float) -> tuple[Counter[str], set[int], float]:
    """What so many clients were answered, the entries that they were told of, and the seconds after
    which all that they had asked for was answered, once they ask no more."""
    seen: Counter[str] = Counter()
    told: set[int] = set()
    asked: list[tuple[str, dict[str, str]]] = []
    until = time.monotonic() + seconds

    async def one(key: str, number: int) -> None:
        headers = {"authorization": f"Bearer {key}"}
        async with httpx.AsyncClient(headers=headers, timeout=120) as http:
            turn = 0
            while time.monotonic() < until:
                turn += 1
                await asyncio.sleep((number % 20) / 20)
                try:
                    if turn % 4 == 1:
                        body = {"sql": SQL, "epsilon": "0.5", "token": f"{turn}"}
                        answer = await http.post(f"{ADDRESS}/v1/visits/releases", json=body)
                        seen[f"release {answer.status_code}"] += 1
                        if answer.status_code == 202:
                            asked.append((answer.json()["id"], headers))
                        left = until - time.monotonic()
                        if answer.status_code == 202 and left > 1:
                            place = f"{ADDRESS}/v1/visits/jobs/{answer.json()['id']}"
                            wait = {"wait": int(min(left, 5))}
                            answer = await http.get(place, params=wait)
                            job = answer.json()
                            if job.get("entry") is not None:
                                told.add(job["entry"])
                    else:
                        body = {"sql": SQL, "epsilon": "0.5"}
                        answer = await http.post(f"{ADDRESS}/v1/visits/preview", json=body)
                        seen[f"preview {answer.status_code}"] += 1
                except httpx.TransportError as error:
                    seen[type(error).__name__] += 1

    async def ended(http: httpx.AsyncClient, job: str, headers: dict[str, str]) -> None:
        state = "queued"
        while state in ("queued", "running"):
            place = f"{ADDRESS}/v1/visits/jobs/{job}"
            found = (await http.get(place, params={"wait": 30}, headers=headers)).json()
            state = found["state"]
            if found.get("entry") is not None:
                told.add(found["entry"])
        kind = (found["failure"] or {}).get("kind", "")
        seen[f"release 202, {state} {kind}".rstrip()] += 1

    await asyncio.gather(*(one(key, i) for i, key in enumerate(keys)))
    begun = time.monotonic()
    async with httpx.AsyncClient(timeout=120) as http:
        for job, headers in asked:
            await ended(http, job, headers)
    return seen, told, time.monotonic() - begun


def releases(policy: Path, key: str, number: int) -> tuple[float, list[float], list[float]]:
    """Seconds of the first release over HTTP, of more, and of the same ones of a local session."""
    away, here = [], []
    with (
        dt.connect(f"{ADDRESS}/visits", key=key) as far,
        dt.open(policy.with_name("local.toml")) as near,
    ):
        near.sql(SQL).release("0.5")  # it reads once
        begun = time.perf_counter()
        far.sql(SQL).release("0.5")  # and so does the process that runs it, which starts
        first = time.perf_counter() - begun
        for _ in range(number):
            for session, times in ((far, away), (near, here)):
                question = session.sql(SQL)
                begun = time.perf_counter()
                question.release("0.5")
                times.append(time.perf_counter() - begun)
    return first, away, here


def held(policy: Path, told: set[int]) -> str:
    """What the ledger says of it all: without a delta, what was charged is a plain sum."""
    document = read_policy(policy)
    with Ledger.open(document.ledger) as ledger:
        entries = {one.number: one for one in ledger.entries(None, 10**6)}
        charges = [one for one in entries.values() if one.kind == "charge"]
        spent = sum(
            (Fraction(one.charge.epsilon or 0) for one in charges if one.charge), Fraction()
        )
        lost = len(told - entries.keys())
        over = max(spent - Fraction(document.budget.epsilon), Fraction(0))
        well = "holds" if ledger.verify().ok else "DOES NOT HOLD"
    charged = f"{len(charges)} charges of {spent} in all"
    return f"{charged}, lost {lost}, overspent {over}; the chain {well}"


def main() -> None:
    """Print all figures."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])  # type: ignore[union-attr]
    parser.add_argument("--rows", type=int, default=5_000_000)
    parser.add_argument("--clients", type=int, default=20)
    parser.add_argument("--many", type=int, default=200)
    parser.add_argument("--seconds", type=float, default=60)
    parser.add_argument("--previews", type=int, default=20)
    parser.add_argument("--releases", type=int, default=7)
    parser.add_argument("--budget", type=int, default=300)
    given = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        policy = written(Path(folder), given.rows, given.budget)
        database = Database(read_settings(read_policy(policy)).database, SERVICE)
        people, keys = People(database), []
        for i in range(max(given.clients, given.many)):
            people.add(f"person{i}", Role.ANALYST)
            keys.append(people.new_key(f"person{i}", 1).key)
        database.close()
        print(f"load of the machine before: {os.getloadavg()[0]:.1f}")
        service, _ = started(policy)
        service.send_signal(signal.SIGTERM)
        service.wait()
        service, seconds = started(policy)
        try:
            print(f"start                {seconds:8.2f} s       target 2")
            print(f"  of processors      {used(service.pid):8.2f} s")
            time.sleep(2)  # what most questions need is loaded
            print(f"idle                 {resident(service.pid):8.0f} MB      target 250")
            times = asyncio.run(previews(keys[: given.clients], given.previews))
            middle, late = statistics.median(times), sorted(times)[int(0.95 * len(times))]
            print(f"preview, {given.clients} clients  {1000 * middle:8.1f} ms      target 30")
            print(f"  one of twenty over {1000 * late:8.1f} ms")
            first, *both = releases(policy, keys[0], given.releases)
            away, here = map(statistics.median, both)
            print(f"first release        {1000 * first:8.0f} ms")
            print(f"release over HTTP    {1000 * away:8.0f} ms")
            print(f"  in Python          {1000 * here:8.0f} ms")
            print(f"  difference         {1000 * (away - here):8.0f} ms      target 60")
            print(f"after questions      {resident(service.pid):8.0f} MB")
            seen, told, after = asyncio.run(many(keys[: given.many], given.seconds))
            print(f"{given.many} clients for {given.seconds:.0f} s:")
            for what, number in sorted(seen.items()):
                print(f"  {what:32} {number:6}")
            print(f"  all are answered after {after:.0f} s more")
        finally:
            service.send_signal(signal.SIGTERM)
            service.wait()
        print(f"  {held(policy, told)}")
        print(f"load of the machine after: {os.getloadavg()[0]:.1f}")


if __name__ == "__main__":
    main()
