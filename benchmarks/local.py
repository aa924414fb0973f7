"""Local reports: seconds on the device and the server beside two peers, and 10^8 reports counted.

Run with ``python -m benchmarks.local``. The peers answer one person at a time in Python, so some of
their figures are measured on fewer people and multiplied up: the table says which and by how much.
Then files of 10^7 and 10^8 generated reports are counted from numpy, from chunks and by DuckDB,
each in a process of its own, whose peak memory is shown.
"""

from __future__ import annotations

import hashlib
import json
import platform
import resource
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np

from dither import local

N = 1_000_000
CHUNK = 1 << 22
SIZES = (10**7, 10**8)
SCALE = {"grr": (100, local.GRR), "hadamard": (10**6, local.Hadamard)}
WAYS = ("numpy", "chunks", "duckdb")
REACH = {"GRR, domain 100": 10, "OUE, domain 100": 10, "OLH, domain 10,000": 100}

Work = Callable[[], Any]
Timing = tuple[float, int]
"""Seconds, and for how many people."""


def timed(work: Work) -> tuple[float, Any]:
    """Seconds that the work takes, the least of up to five runs in two seconds, and its result."""
    taken: list[float] = []
    while not taken or (len(taken) < 5 and sum(taken) < 2):
        start = time.perf_counter()
        found = work()
        taken.append(time.perf_counter() - start)
    return min(taken), found


def ours(channel: Any, values: Any) -> tuple[Timing, Timing]:
    """Client and server of this package, on everyone."""
    channel.privatize(values[:1000])
    client, reports = timed(lambda: channel.privatize(values))
    server, _ = timed(lambda: channel.aggregate(reports).estimate())
    return (client, values.size), (server, values.size)


def pure_ldp(name: str, k: int, values: Any, clients: int, servers: int) -> tuple[Timing, Timing]:
    """pure-ldp, person by person as its interface asks."""
    from pure_ldp.frequency_oracles.direct_encoding import DEClient, DEServer
    from pure_ldp.frequency_oracles.local_hashing import LHClient, LHServer
    from pure_ldp.frequency_oracles.unary_encoding import UEClient, UEServer

    makers = {
        "GRR": (DEClient, DEServer, {}),
        "OUE": (UEClient, UEServer, {"use_oue": True}),
        "OLH": (LHClient, LHServer, {"use_olh": True}),
    }
    make_client, make_server, more = makers[name]
    client = make_client(1.0, k, index_mapper=lambda x: x, **more)
    server = make_server(1.0, k, index_mapper=lambda x: x, **more)
    told = [int(v) for v in values[:clients]]
    taken, reports = timed(lambda: [client.privatise(v) for v in told])

    def count() -> Any:
        server.reset()
        for report in reports[:servers]:
            server.aggregate(report)
        return server.estimate_all(range(k), suppress_warnings=True)

    return (taken, clients), (timed(count)[0], servers)


def multi_freq(name: str, k: int, values: Any, clients: int, servers: int) -> tuple[Timing, Timing]:
    """multi-freq-ldpy, person by person as its interface asks; compiled before it is timed."""
    from multi_freq_ldpy.pure_frequency_oracles.GRR import GRR_Aggregator_MI, GRR_Client
    from multi_freq_ldpy.pure_frequency_oracles.LH import LH_Aggregator_MI, LH_Client
    from multi_freq_ldpy.pure_frequency_oracles.UE import UE_Aggregator_MI, UE_Client

    tell: Callable[[int], Any] = {
        "GRR": lambda v: GRR_Client(v, k, 1.0),
        "OUE": lambda v: UE_Client(v, k, 1.0, True),
        "OLH": lambda v: LH_Client(v, k, 1.0, True),
    }[name]
    read: Callable[[Any], Any] = {
        "GRR": lambda r: GRR_Aggregator_MI(r, k, 1.0),
        "OUE": lambda r: UE_Aggregator_MI(r, 1.0, True),
        "OLH": lambda r: LH_Aggregator_MI(r, k, 1.0, True),
    }[name]
    told = [int(v) for v in values[:clients]]
    read([tell(v) for v in told[:3]])
    taken, reports = timed(lambda: [tell(v) for v in told])
    return (taken, clients), (timed(lambda: read(reports[:servers]))[0], servers)


def peers() -> bool:
    """Print client and server seconds for 10^6 people at epsilon 1, and the ratios."""
    print(f"{N:,} people, epsilon 1, seconds: client / server")
    print("A figure marked x f was measured on N/f people and multiplied by f.\n")
    rng = np.random.default_rng(1)
    reached = True
    missing = 0
    for label, (name, k, make, few) in {
        "GRR, domain 100": ("GRR", 100, local.GRR, (200_000, 200_000)),
        "OUE, domain 100": ("OUE", 100, local.OUE, (20_000, 20_000)),
        "OLH, domain 10,000": ("OLH", 10_000, local.OLH, (50_000, 100)),
    }.items():
        values = rng.integers(0, k, N)
        mine = ours(make(k, epsilon=1), values)
        print(f"{label}\n  dither            {shown(mine[0])}  /{shown(mine[1])}")
        for peer, side in (("pure-ldp", pure_ldp), ("multi-freq-ldpy", multi_freq)):
            try:
                theirs = side(name, k, values, *few)
            except Exception as error:  # a peer that does not run here is said so, and left out
                missing += 1
                print(f"  {peer:<18}not measured: {type(error).__name__}: {str(error)[:120]}")
                continue
            ratios = [whole(t) / whole(m) for t, m in zip(theirs, mine, strict=True)]
            print(
                f"  {peer:<18}{shown(theirs[0])}  /{shown(theirs[1])}"
                f"   {ratios[0]:,.0f} / {ratios[1]:,.0f} times ours"
            )
            reached &= min(ratios) >= 10 and ratios[1] >= REACH[label]
    values = rng.integers(0, 10_000, N)
    mine = ours(local.Hadamard(10_000, epsilon=1), values)
    print(f"Hadamard, domain 10,000\n  dither            {shown(mine[0])}  /{shown(mine[1])}")
    return reached and not missing


def whole(timing: Timing) -> float:
    """Seconds for all N people."""
    return timing[0] * N / timing[1]


def shown(timing: Timing) -> str:
    """Seconds for N people, and by how much they were multiplied."""
    factor = N / timing[1]
    return f"{whole(timing):>10,.3f}" + (f" x {factor:,.0f}" if factor > 1 else "")


def chunks(kind: str, n: int) -> Iterator[Any]:
    """Generated reports of skewed values; the same for every way of counting."""
    from dither.numeric import SimulatedWords

    k, make = SCALE[kind]
    channel, words, rng = make(k, epsilon=1), SimulatedWords(1), np.random.default_rng(2)
    for start in range(0, n, CHUNK):
        codes = (k * rng.random(min(CHUNK, n - start)) ** 3).astype(np.int64)
        yield channel.draw(codes, words)


def write(kind: str, n: int, folder: Path) -> None:
    """Write the reports as Parquet, and as an array of numpy, chunk by chunk."""
    import pyarrow.parquet as pq

    channel = SCALE[kind][1](SCALE[kind][0], epsilon=1)
    array = np.lib.format.open_memmap(folder / "r.npy", "w+", np.uint32, (n,))
    writer, start = None, 0
    for reports in chunks(kind, n):
        array[start : start + reports.size] = reports
        start += reports.size
        table = local.reports_table(channel, reports)
        writer = writer or pq.ParquetWriter(folder / "r.parquet", table.schema)
        writer.write_table(table)
    if writer:
        writer.close()
    array.flush()


def count(kind: str, way: str, folder: Path) -> dict[str, Any]:
    """Count the reports in one way: seconds, peak memory, and the counts' digest."""
    channel = SCALE[kind][1](SCALE[kind][0], epsilon=1)
    start, worked = time.perf_counter(), time.process_time()
    if way == "duckdb":
        found = local.aggregate_table(channel, folder / "r.parquet", memory="1GB", threads=2)
    elif way == "numpy":
        found = channel.aggregate(np.load(folder / "r.npy"))
    else:
        import pyarrow.parquet as pq

        batches = pq.ParquetFile(folder / "r.parquet").iter_batches(CHUNK)
        found = local.aggregate_stream(channel, (b["report"].to_numpy() for b in batches)).aggregate
    estimate = found.estimate()
    seconds, worked = time.perf_counter() - start, time.process_time() - worked
    digest = hashlib.sha256(found.counts.tobytes() + estimate.shares.tobytes()).hexdigest()[:16]
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    return {
        "n": found.n,
        "seconds": seconds,
        "cpu": worked,
        "megabytes": peak / (2**20 if sys.platform == "darwin" else 2**10),
        "digest": digest,
    }


def scale() -> bool:
    """Print seconds and memory of every way on both sizes; whether all agree within 2 GB."""
    print("\nreports      channel   way          s  cpu s per 10^7      MB  counts and estimate")
    agree = True
    for kind in SCALE:
        for n in SIZES:
            with tempfile.TemporaryDirectory() as folder:
                alone("write", kind, str(n), folder)
                rows = {way: json.loads(alone("count", kind, way, folder)) for way in WAYS}
            for way, row in rows.items():
                print(
                    f"{row['n']:<13,}{kind:<10}{way:<7}{row['seconds']:>7.2f}"
                    f"{row['cpu'] * 1e7 / n:>16.3f}{row['megabytes']:>8,.0f}  {row['digest']}"
                )
                agree &= row["n"] == n and row["megabytes"] < 2000
            agree &= len({row["digest"] for row in rows.values()}) == 1
    print("all ways agree to the bit, each under 2 GB" if agree else "NOT alike, or over 2 GB")
    return agree


def alone(*arguments: str) -> str:
    """Run one step in a process of its own, and return what it prints."""
    command = [sys.executable, "-m", "benchmarks.local", *arguments]
    return subprocess.run(command, check=True, capture_output=True, text=True).stdout


def main(arguments: list[str]) -> int:
    """Run everything, or one step for ourselves."""
    if arguments[:1] == ["write"]:
        write(arguments[1], int(arguments[2]), Path(arguments[3]))
        return 0
    if arguments[:1] == ["count"]:
        print(json.dumps(count(arguments[1], arguments[2], Path(arguments[3]))))
        return 0
    if arguments[:1] == ["peers"]:
        return 0 if peers() else 1
    print(f"{platform.machine()}, Python {platform.python_version()}, numpy {np.__version__}\n")
    # In a process of its own: a child is told its parent's peak memory as its own.
    command = [sys.executable, "-m", "benchmarks.local", "peers"]
    reached = subprocess.run(command, check=False).returncode == 0
    print(
        "the ratios aimed at are reached" if reached else "a ratio is NOT reached, or not measured"
    )
    return 0 if scale() and reached else 1


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
