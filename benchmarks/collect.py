"""The collector: reports a second on two cores, and how exactly they are counted after SIGKILL.

    python -m benchmarks.collect [--tokens N] [--per-token K] [--posts B] [--workers W]
        [--clients C] [--kills N] [--postgres]

A collector of W processes with one state is started on loopback, and C clients post to it: B tokens
in a request, each with K reports. Tokens are signed before the clock starts, by the survey's own
key: a device would have each by a request of its own, some milliseconds of the issuer's time.
While they are posted, all processes of the collector are killed at random instants and started
again, and clients send again what was not acknowledged. In the end every report that was made must
be counted once, and none twice. Beside the clock's time stands the processors': the clients run on
the same machine.
"""

from __future__ import annotations

import argparse
import asyncio
import os
import random
import secrets
import signal
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import Mapping, Sequence
from concurrent.futures import ProcessPoolExecutor
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from cryptography.hazmat.primitives import hashes
from cryptography.hazmat.primitives.asymmetric import padding

from dither import local
from dither.ledger import OwnerKey, PublicKey
from dither.service.collect import Collector, app, new_survey, read_collect
from dither.service.collect._bodies import BINARY, write_body
from dither.service.collect._survey import SurveyConfiguration, read_token_key

CHANNEL = local.GRR(["flu", "cold", "fever", "cough", "none"], epsilon=1)
PSS = padding.PSS(padding.MGF1(hashes.SHA384()), 48)
NAME = "flu"


@dataclass(frozen=True, slots=True)
class Load:
    """What is sent: bodies, how many posts each has, and how often each report is among them."""

    bodies: Sequence[bytes]
    posts: Sequence[int]
    counts: Sequence[int]
    per_token: int


@dataclass(slots=True)
class Sent:
    """What became of it."""

    seconds: float = 0.0
    used: float = 0.0
    kills: int = 0
    again: int = 0
    counted: int = 0
    spent: int = 0


def settings_of(folder: Path, owner: str, state: Any) -> Any:
    """The collector's settings."""
    body = {"configuration": f"{NAME}.config.json", "tokens": f"{NAME}.token.pem"}
    section: Mapping[str, Any] = {"state": state, "rate": 10**6, NAME: body}
    return read_collect(section, folder, PublicKey(owner))


def serve(folder: Path, owner: str, state: Any, port: int, workers: int) -> None:
    """Serve from this process and its children, until they are killed."""
    import uvicorn

    listening = socket.socket()
    listening.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    listening.bind(("127.0.0.1", port))
    listening.listen(1024)
    for _ in range(workers - 1):
        if os.fork() == 0:
            break
    collector = Collector(settings_of(folder, owner, state))
    config = uvicorn.Config(app(collector), ws="none", access_log=False, log_level="error")
    uvicorn.Server(config).run(sockets=[listening])


class Served:
    """A collector in processes of its own, all of which can be killed at once."""

    def __init__(self, folder: Path, owner: str, state: str, workers: int) -> None:
        with socket.socket() as found:
            found.bind(("127.0.0.1", 0))
            self.port = found.getsockname()[1]
        self._command = [
            *(sys.executable, "-m", "benchmarks.collect", "--serve", str(folder), owner, state),
            *(str(self.port), str(workers)),
        ]
        self._process: subprocess.Popen[bytes] | None = None

    def start(self) -> None:
        """Start it, and wait until it answers."""
        root = Path(__file__).parents[1]
        self._process = subprocess.Popen(self._command, start_new_session=True, cwd=root)
        for _ in range(600):
            if self._process.poll() is not None:
                raise RuntimeError("the collector did not start")
            with suppress(OSError), socket.create_connection(("127.0.0.1", self.port), 1) as one:
                one.sendall(f"GET /collect/{NAME}/config HTTP/1.1\r\nhost: x\r\n\r\n".encode())
                if one.recv(20).split()[1] == b"200":
                    return
            time.sleep(0.05)
        raise RuntimeError("the collector does not answer")

    def used(self) -> float:
        """The processors' seconds of all of its processes so far."""
        assert self._process is not None
        ticks = 0
        for place in Path("/proc").glob("[0-9]*/stat"):
            with suppress(OSError):
                fields = place.read_text().rpartition(")")[2].split()
                if int(fields[2]) == self._process.pid:
                    ticks += int(fields[11]) + int(fields[12])
        return ticks / os.sysconf("SC_CLK_TCK")

    def kill(self) -> None:
        """SIGKILL to all of its processes."""
        assert self._process is not None
        os.killpg(self._process.pid, signal.SIGKILL)
        self._process.wait()


def _signed(given: tuple[Path, str, int, int, int]) -> tuple[list[bytes], list[int], list[int]]:
    folder, owner, tokens, per_token, posts = given
    survey = SurveyConfiguration.read(folder / f"{NAME}.config.json", PublicKey(owner))
    key = read_token_key(folder / f"{NAME}.token.pem", survey)
    bodies, numbers, counts = [], [], [0] * len(CHANNEL.domain)
    for start in range(0, tokens, posts):
        made = []
        for _ in range(min(posts, tokens - start)):
            prefix = secrets.token_bytes(32)
            reports = [secrets.randbelow(len(counts)) for _ in range(per_token)]
            for report in reports:
                counts[report] += 1
            signature = key.sign(prefix + survey.digest, PSS, hashes.SHA384())
            made.append((prefix, signature, bytes(reports)))
        bodies.append(write_body(survey, made))
        numbers.append(len(made))
    return bodies, numbers, counts


def load_of(folder: Path, owner: str, tokens: int, per_token: int, posts: int) -> Load:
    """Tokens and reports, made on two cores."""
    shares = [(folder, owner, n, per_token, posts) for n in (tokens // 2, tokens - tokens // 2)]
    with ProcessPoolExecutor(2) as pool:
        made = list(pool.map(_signed, [share for share in shares if share[2]]))
    counts = [sum(column) for column in zip(*(found[2] for found in made), strict=True)]
    bodies = [body for found in made for body in found[0]]
    return Load(bodies, [n for found in made for n in found[1]], counts, per_token)


async def _post(
    served: Served, load: Load, waiting: list[int], sent: Sent, done: asyncio.Event
) -> None:
    """One client: posts until nothing is left, and sends again what was not acknowledged."""
    reader = writer = None
    while waiting and not done.is_set():
        at = waiting.pop()
        body = load.bodies[at]
        head = f"POST /collect/{NAME} HTTP/1.1\r\nhost: x\r\ncontent-type: {BINARY}\r\n"
        while True:
            try:
                if writer is None:
                    reader, writer = await asyncio.open_connection("127.0.0.1", served.port)
                assert reader is not None
                writer.write(f"{head}content-length: {len(body)}\r\n\r\n".encode() + body)
                answer = await reader.readuntil(b"\r\n\r\n")
                if answer.split()[1] != b"200":
                    raise OSError
                size = int(answer.lower().split(b"content-length: ")[1].split()[0])
                told = (await reader.readexactly(size)).decode()
                counted, spent = (int(part.split(":")[1].strip(" }")) for part in told.split(","))
                # What was spent is this client's own: it was counted before its answer was lost.
                assert counted // load.per_token + spent == load.posts[at]
                sent.counted, sent.spent = sent.counted + counted, sent.spent + spent
                break
            except (OSError, asyncio.IncompleteReadError, IndexError):
                if writer is not None:
                    writer.close()
                reader = writer = None
                sent.again += 1
                await asyncio.sleep(0.05)
    if writer is not None:
        writer.close()


async def _run(served: Served, load: Load, clients: int, kills: int) -> Sent:
    sent, done = Sent(), asyncio.Event()
    waiting = list(range(len(load.bodies)))
    start = time.perf_counter()
    before = served.used() + time.process_time()
    at_work = [
        asyncio.create_task(_post(served, load, waiting, sent, done)) for _ in range(clients)
    ]
    # Randomness decides when it is killed, and nothing else.
    for left in sorted((random.random() * len(load.bodies) for _ in range(kills)), reverse=True):
        while len(waiting) > left:
            await asyncio.sleep(0.001)
        await asyncio.sleep(random.uniform(0, 0.02))
        await asyncio.to_thread(served.kill)
        sent.kills += 1
        await asyncio.to_thread(served.start)
    await asyncio.gather(*at_work)
    sent.seconds = time.perf_counter() - start
    # What was used by processes that were killed is known to nobody.
    sent.used = 0.0 if kills else served.used() + time.process_time() - before
    return sent


def measure(
    folder: Path,
    state: str,
    *,
    tokens: int,
    per_token: int = 1,
    posts: int = 64,
    workers: int = 2,
    clients: int = 8,
    kills: int = 0,
) -> tuple[Sent, bool]:
    """Send a load; what became of it, and whether the counts are exact."""
    owner = OwnerKey.make()
    new_survey(NAME, CHANNEL, owner, folder, reports=per_token)
    load = load_of(folder, owner.public.text, tokens, per_token, posts)
    served = Served(folder, owner.public.text, state, workers)
    served.start()
    time.sleep(2)  # until all of its processes are up: their start is no part of a report's price
    try:
        sent = asyncio.run(_run(served, load, clients, kills))
    finally:
        served.kill()
    found = Collector(settings_of(folder, owner.public.text, state))
    counts = found.counts(NAME)
    found.close()
    exact = counts.counts.tolist() == list(load.counts) and counts.n == tokens * per_token  # type: ignore[union-attr]
    return sent, exact


def main() -> int:
    """Measure, and print."""
    if "--serve" in sys.argv:
        folder, owner, state, port, workers = sys.argv[2:]
        serve(Path(folder), owner, state, int(port), int(workers))
        return 0
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--tokens", type=int, default=20_000)
    parser.add_argument("--per-token", type=int, default=0, help="of one run; else 1 and 16")
    parser.add_argument("--posts", type=int, default=256, help="tokens in a request")
    parser.add_argument("--workers", type=int, default=2)
    parser.add_argument("--clients", type=int, default=8)
    parser.add_argument("--kills", type=int, default=3)
    parser.add_argument("--postgres", metavar="ENV", help="a variable with a connection string")
    given = parser.parse_args()
    wrong = 0
    for per_token in [given.per_token] if given.per_token else [1, 16]:
        for kills in (0, given.kills):
            with tempfile.TemporaryDirectory() as place:
                state = f"env:{given.postgres}" if given.postgres else f"{place}/collect.db"
                sent, exact = measure(
                    Path(place),
                    state,
                    tokens=given.tokens,
                    per_token=per_token,
                    posts=given.posts,
                    workers=given.workers,
                    clients=given.clients,
                    kills=kills,
                )
            reports = given.tokens * per_token
            cost = ""
            if sent.used:
                free = 2 * reports / sent.used
                each = 1e6 * sent.used / reports
                cost = f"; {each:.1f} us of processors a report: two free ones {free:,.0f}/s"
            print(
                f"{reports:,} reports, {per_token} a token, {given.posts} tokens a request: "
                f"{sent.seconds:.2f} s, {reports / sent.seconds:,.0f} reports/s"
                f"{cost}; {sent.kills} kills, {sent.again} sent again, "
                f"{sent.spent} answers lost after their commit; counts "
                f"{'exact' if exact else 'WRONG'}",
                flush=True,
            )
            wrong += not exact
    return wrong


if __name__ == "__main__":
    sys.exit(main())
