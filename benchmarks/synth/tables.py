"""What synthetic tables reach: error, time and memory, beside the peers that are installed.

Run with ``python -m benchmarks.synth.tables [ROW ...] [--data FOLDER] [--runs N]``; without a name
all rows run but ``peers``. FOLDER holds ``adult_binned``; rows that need it are left out without
it. ``peers`` needs ``SYNTH_PEERS``: a folder of environments, as `benchmarks.synth.peers` says.
Every run is a process of its own, so that its peak memory is its own. An error is the mean total
variation of all three-way tables between the real table and a sample of as many rows; "drawn again"
is that of as many real rows, drawn with replacement.
"""

from __future__ import annotations

import argparse
import json
import os
import resource
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from statistics import mean
from typing import Any

import numpy as np
import polars as pl

import dither as dt

Line = tuple[str, bool | None]
"""What is printed, and whether a goal is reached, or None."""
Row = Callable[["Options"], Iterator[Line]]

ROWS: dict[str, Row] = {}
DELTA = "1e-9"
PEERS = {
    "mbi-mst": "mbi",
    "dpmm-mst": "dpmm",
    "smartnoise-mst": "smartnoise-synth",
    "dpmm-aim": "dpmm",
    "smartnoise-aim": "smartnoise-synth",
}


@dataclass(frozen=True)
class Options:
    """What the command line says."""

    data: Path
    runs: int
    picture: Path


@dataclass(frozen=True)
class Coded:
    """A table of codes, and how many values each column has."""

    table: pl.DataFrame
    domain: dict[str, int]


def row(function: Row) -> Row:
    """List a function as a row."""
    ROWS[function.__name__.replace("_", "-")] = function
    return function


# --- tables ---------------------------------------------------------------------------------------


def adult(options: Options) -> Coded | None:
    """The census extract of 48,842 rows and 14 columns; None where it is not there."""
    folder = options.data / "adult_binned"
    if not folder.is_dir():
        return None
    domain = json.loads((folder / "adult-domain.json").read_text())
    return Coded(pl.read_csv(folder / "adult.csv").select(list(domain)), domain)


def affairs() -> Coded:
    """The survey of 6,366 women, 9 columns."""
    from statsmodels.datasets import fair

    return cut(pl.from_pandas(fair.load_pandas().data))


def visits() -> Coded:
    """The RAND health insurance experiment: 20,190 rows, 10 columns."""
    from statsmodels.datasets import randhie

    return cut(pl.from_pandas(randhie.load_pandas().data))


def cut(table: pl.DataFrame, most: int = 32) -> Coded:
    """Each column as codes: of its values, or of equal bins where there are many."""
    columns, domain = {}, {}
    for name in table.columns:
        values = table[name].to_numpy().astype(np.float64)
        distinct = np.unique(values)
        if len(distinct) <= most:
            columns[name] = np.searchsorted(distinct, values)
            domain[name] = len(distinct)
        else:
            edges = np.linspace(distinct[0], distinct[-1], most + 1)[1:-1]
            columns[name] = np.searchsorted(edges, values)
            domain[name] = most
    return Coded(pl.DataFrame(columns), domain)


def errors(real: Coded, made: pl.DataFrame, orders: tuple[int, ...] = (1, 2, 3)) -> list[float]:
    """Mean total variation by order, over all tables."""
    # Here, so that a side's process does not hold what it has no use for.
    from dither.lab._cells import CodedColumn
    from dither.lab.compare._distances import ComparedTables, distances

    both = tuple(
        CodedColumn(
            name,
            np.concatenate([t[name].to_numpy().astype(np.int64) for t in (real.table, made)]),
            size,
            None,
            (),
        )
        for name, size in real.domain.items()
    )
    tables = ComparedTables(both, real.table.height, made.height)
    rng = np.random.default_rng(0)
    return [float(np.mean([d.value for d in distances(tables, k, 10**6, rng)])) for k in orders]


# --- sides, each in a process of its own ----------------------------------------------------------


def ours(method: str, source: Path, shape: Path, epsilon: str, out: Path) -> dict[str, float]:
    """Open, synthesize, sample; seconds and megabytes."""
    public = json.loads(shape.read_text())
    domain, size = public["domain"], public["rows"]
    columns = {name: {"values": list(range(n)), "nullable": False} for name, n in domain.items()}
    with tempfile.TemporaryDirectory() as folder:
        policy = {
            "budget": {
                "epsilon": 100,
                "delta": "1e-6",
                "release_delta": DELTA,
                "ledger": f"{folder}/own.ledger",
            },
            "tables": {"people": {"columns": columns}},
        }
        with dt.open(policy, sources={"people": str(source)}) as session:
            rows = session.table("people")
            start, used = time.perf_counter(), time.process_time()
            model = rows.synthesize(epsilon=epsilon, delta=DELTA, method=method)
            fitted = time.perf_counter()
            made = model.sample(n=size, seed=1)
            seconds, held = time.perf_counter() - start, _peak()
            processor = time.process_time() - used
    made.write_parquet(out)
    shares = {"seconds": seconds, "fit": fitted - start, "processor": processor}
    return shares | {"megabytes": held}


def _peak() -> float:
    most = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    return most / (2**20 if sys.platform == "darwin" else 2**10)


def run_ours(method: str, real: Coded, epsilon: str) -> tuple[dict[str, float], pl.DataFrame]:
    """A side of ours in a fresh process, and what it made."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        real.table.write_parquet(folder / "real.parquet")
        public = {"domain": real.domain, "rows": real.table.height}
        (folder / "domain.json").write_text(json.dumps(public))
        asked = [method, folder / "real.parquet", folder / "domain.json", epsilon, folder / "made"]
        command = [sys.executable, "-m", "benchmarks.synth.tables", "--side", *map(str, asked)]
        done = subprocess.run(command, capture_output=True, text=True, check=False)
        if done.returncode:
            raise RuntimeError(done.stderr.strip().splitlines()[-1])
        return json.loads(done.stdout.splitlines()[-1]), pl.read_parquet(folder / "made")


def run_peer(side: str, real: Coded, epsilon: str) -> tuple[dict[str, float], pl.DataFrame]:
    """A peer in its environment, and what it made."""
    script = Path(__file__).with_name("peers.py")
    python = Path(os.environ["SYNTH_PEERS"]) / PEERS[side] / "bin" / "python"
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        real.table.write_csv(folder / "real.csv")
        (folder / "domain.json").write_text(json.dumps(real.domain))
        asked = [side, folder / "real.csv", folder / "domain.json", epsilon, DELTA, folder / "made"]
        command = [str(python), str(script), *map(str, asked)]
        done = subprocess.run(command, capture_output=True, text=True, check=False)
        if done.returncode:
            raise RuntimeError((done.stderr.strip().splitlines() or ["no message"])[-1][:200])
        return json.loads(done.stdout.splitlines()[-1]), pl.read_csv(folder / "made")


def several(
    side: str,
    real: Coded,
    epsilon: str,
    runs: int,
    *,
    seconds: float | None = None,
    megabytes: float | None = None,
    error: float | None = None,
    run: Callable[..., Any] = run_ours,
) -> Iterator[Line]:
    """Runs of one side as a line: means of seconds and errors, the most memory; beside goals."""
    try:
        found = [run(side, real, epsilon) for _ in range(runs)]
    except (RuntimeError, KeyError, OSError) as failed:
        yield f"{side:<15} ε {epsilon:>4}  not measured: {failed}", None
        return
    took = mean(one["seconds"] for one, _ in found)
    held = max(one["megabytes"] for one, _ in found)
    off = [errors(real, made) for _, made in found]
    one, two, three = (mean(x[k] for x in off) for k in range(3))
    goals = [(took, seconds), (held, megabytes), (three, error)]
    asked = [x <= goal for x, goal in goals if goal is not None]
    said = [
        f"{name} ≤ {goal:g}"
        for name, goal in (("s", seconds), ("MB", megabytes), ("error", error))
        if goal is not None
    ]
    line = (
        f"{side:<15} ε {epsilon:>4}  {took:7.2f} s {held:6.0f} MB  one-way {one:.4f}  "
        f"two-way {two:.4f}  three-way {three:.4f}"
    )
    yield line + (f"  ({', '.join(said)})" if said else ""), all(asked) if asked else None


def floor(real: Coded) -> Iterator[Line]:
    """The errors of as many real rows, drawn again."""
    rng = np.random.default_rng(1)
    again = real.table[rng.integers(0, real.table.height, real.table.height)]
    one, two, three = errors(real, again)
    shown = f"one-way {one:.4f}  two-way {two:.4f}  three-way {three:.4f}"
    yield f"{'drawn again':<15} {'':6}  {'':7}   {'':6}     {shown}", None


# --- rows -----------------------------------------------------------------------------------------


@row
def on_adult(options: Options) -> Iterator[Line]:
    """Adult, 48,842 rows of 14 columns, add/remove, delta 1e-9: all 364 three-way tables."""
    real = adult(options)
    if real is None:
        yield f"not measured: {options.data} holds no adult_binned", None
        return
    yield from floor(real)
    yield from several("independent", real, "1", options.runs)
    yield from several("mst", real, "1", options.runs, seconds=3, megabytes=250, error=0.115)
    yield from several("aim", real, "1", options.runs, seconds=10, error=0.090)
    yield from several("aim", real, "10", 1, error=0.068)
    yield from several("aim", real, "0.1", 1, error=0.215)


@row
def elsewhere(options: Options) -> Iterator[Line]:
    """Two more real tables, to be sure that nothing was tuned to one."""
    for name, real in (("affairs", affairs()), ("visits", visits())):
        yield f"{name}: {real.table.height:,} rows of {real.table.width} columns", None
        yield from floor(real)
        for method in ("independent", "mst", "aim"):
            yield from several(method, real, "1", options.runs)


@row
def counting(options: Options) -> Iterator[Line]:
    """Tables of counts through the engine beside plain group-bys: 10 and 5 million rows."""
    for rows in (5_000_000, 10_000_000):
        command = [sys.executable, "-m", "benchmarks.synth.tables", "--count", str(rows)]
        done = subprocess.run(command, capture_output=True, text=True, check=False)
        if done.returncode:
            yield f"not measured: {done.stderr.strip().splitlines()[-1]}", None
            continue
        found = json.loads(done.stdout.splitlines()[-1])
        ratio = found["engine"] / found["plain"]
        yield (
            (
                f"{rows:>11,} rows, {found['tables']} tables: {found['engine']:.2f} s, plain "
                f"{found['plain']:.2f} s, ratio {ratio:.2f} (≤ 2); {found['megabytes']:.0f} MB, "
                f"of which {found['grown']:.0f} MB are new"
            ),
            ratio <= 2,
        )


def count(rows: int) -> dict[str, float]:
    """Count all pairs of six columns, with the engine and with DuckDB alone; medians of three."""
    import duckdb

    from dither import privacy
    from dither.query.tables._counts import TablesQuestion
    from dither.query.tables._domain import domain_of

    sizes = {"a": 2, "b": 5, "c": 10, "d": 20, "e": 50, "f": 100}
    with tempfile.TemporaryDirectory() as folder:
        path = f"{folder}/rows.parquet"
        names = list(sizes)
        duck = duckdb.connect()
        drawn = ", ".join(f"(random() * {n})::INTEGER % {n} AS {c}" for c, n in sizes.items())
        duck.execute(f"COPY (SELECT {drawn} FROM range({rows})) TO '{path}' (FORMAT parquet)")
        pairs = [(i, j) for i in range(len(names)) for j in range(i + 1, len(names))]

        def plain() -> None:
            for i, j in pairs:
                a, b = names[i], names[j]
                duck.execute(
                    f"SELECT {a}, {b}, count(*) FROM '{path}' GROUP BY {a}, {b}"
                ).fetchall()

        policy = {
            "budget": {"epsilon": 10, "ledger": f"{folder}/own.ledger"},
            "tables": {
                "people": {
                    "columns": {
                        c: {"values": list(range(n)), "nullable": False} for c, n in sizes.items()
                    }
                }
            },
        }
        with dt.open(policy, sources={"people": path}) as session:
            asked = TablesQuestion(session.table("people"), domain_of(session.table("people")))
            times: dict[str, list[float]] = {"engine": [], "plain": []}

            def measured(counts: Any) -> dict[str, Any]:
                counts(pairs[:1])
                nonlocal before
                before = _peak()
                for _ in range(3):
                    start = time.perf_counter()
                    counts(pairs)
                    times["engine"].append(time.perf_counter() - start)
                return {}

            before = 0.0
            # Nothing is published, so nothing is lost; the ledger wants a charge all the same.
            asked.request(
                asked.budget(1),
                privacy.pure(1, neighbours=asked.neighbours),
                {"what": "benchmark"},
                measured,
                wanted=pairs,
            ).release()
            held = _peak()
        plain()
        for _ in range(3):
            start = time.perf_counter()
            plain()
            times["plain"].append(time.perf_counter() - start)
    return {
        "engine": sorted(times["engine"])[1],
        "plain": sorted(times["plain"])[1],
        "tables": len(pairs),
        "megabytes": held,
        "grown": held - before,
    }


@row
def extremes(options: Options) -> Iterator[Line]:
    """30 rows, and ten million: six columns that DuckDB draws, by the default method."""
    import duckdb

    sizes = {"a": 2, "b": 5, "c": 10, "d": 20, "e": 50, "f": 4}
    for rows in (30, 10_000_000):
        with tempfile.TemporaryDirectory() as name:
            folder = Path(name)
            drawn = ", ".join(
                f"least(floor(-ln(1 - random()) * {n} / 4)::INTEGER, {n - 1}) AS {c}"
                for c, n in sizes.items()
                if c != "f"
            )
            # The last column follows the second, in three of four rows.
            follows = "CASE WHEN random() < .75 THEN least(b, 3) ELSE 0 END AS f"
            duckdb.connect().execute(
                f"COPY (SELECT *, {follows} FROM (SELECT {drawn} FROM range({rows}))) "
                f"TO '{folder}/real.parquet' (FORMAT parquet)"
            )
            (folder / "domain.json").write_text(json.dumps({"domain": sizes, "rows": rows}))
            asked = ["auto", folder / "real.parquet", folder / "domain.json", "1", folder / "made"]
            command = [sys.executable, "-m", "benchmarks.synth.tables", "--side", *map(str, asked)]
            done = subprocess.run(command, capture_output=True, text=True, check=False)
            if done.returncode:
                yield f"{rows:>11,} rows: not measured: {done.stderr.strip()[-200:]}", False
                continue
            took = json.loads(done.stdout.splitlines()[-1])
            real = Coded(pl.read_parquet(folder / "real.parquet"), sizes)
            off = errors(real, pl.read_parquet(folder / "made"), (1, 2))
            yield (
                f"{rows:>11,} rows: {took['seconds']:6.1f} s, {took['processor']:6.1f} s of "
                f"processors, {took['megabytes']:.0f} MB; one-way {off[0]:.4f}, "
                f"two-way {off[1]:.4f}",
                None,
            )


@row
def growth(options: Options) -> Iterator[Line]:
    """Cost as columns and rows grow; drawn where --picture says."""
    found: dict[str, dict[str, list[tuple[int, float]]]] = {"columns": {}, "rows": {}}
    for along, steps in (("columns", (4, 8, 16, 32)), ("rows", (10_000, 100_000, 1_000_000))):
        for size in steps:
            many, tall = (size, 20_000) if along == "columns" else (8, size)
            real = chained(many, tall)
            for method in ("independent", "mst", "aim"):
                took, _ = run_ours(method, real, "1")
                found[along].setdefault(method, []).append((size, took["processor"]))
                said = f"{many:>3} columns, {tall:>9,} rows  {method:<12}"
                used = f"{took['seconds']:7.2f} s, {took['processor']:7.2f} s of processors"
                yield f"{said} {used} {took['megabytes']:6.0f} MB", None
    draw_growth(found, options.picture)
    yield f"picture: {options.picture}", None


def chained(columns: int, rows: int) -> Coded:
    """Columns of 8 values, each of which follows the one before in three of four rows."""
    rng = np.random.default_rng(columns)
    made = [rng.integers(0, 8, rows)]
    while len(made) < columns:
        made.append(np.where(rng.random(rows) < 0.75, made[-1], rng.integers(0, 8, rows)))
    table = pl.DataFrame({f"c{i:02}": one for i, one in enumerate(made)})
    return Coded(table, dict.fromkeys(table.columns, 8))


SECONDS = (0.2, 0.5, 1, 2, 5, 10, 20)


def draw_growth(found: dict[str, dict[str, list[tuple[int, float]]]], path: Path) -> None:
    """Processor seconds by columns and by rows, on logarithmic axes."""
    from dither.plots._canvas import MARKERS, WIDTH, apart, finish, new_figure, tidy

    figure = new_figure(WIDTH, 3.6)
    panels = figure.subplots(1, 2, sharey=True)
    for axes, (along, methods) in zip(panels, found.items(), strict=True):
        tidy(axes, values="y")
        for i, (method, points) in enumerate(methods.items()):
            x, y = zip(*points, strict=True)
            axes.plot(x, y, color=apart(i), marker=MARKERS[i], label=method)
        axes.set(xscale="log", yscale="log", xlabel=along)
        axes.set_xticks(x, [f"{n:,}" for n in x])
        axes.set_yticks(SECONDS, [f"{n:g}" for n in SECONDS])
        axes.minorticks_off()
    figure.axes[0].set_ylabel("processor seconds")
    figure.axes[0].legend(frameon=False, fontsize=9)
    foot = "Columns of 8 values: 20,000 rows on the left, 8 columns on the right. ε = 1."
    finish(figure, title="What a synthetic table costs", foot=foot, path=path)


@row
def peers(options: Options) -> Iterator[Line]:
    """The peers on Adult, in this run; minutes each."""
    real = adult(options)
    if real is None or "SYNTH_PEERS" not in os.environ:
        yield "not measured: it needs adult_binned and SYNTH_PEERS", None
        return
    for side in PEERS:
        yield from several(side, real, "1", 1, run=run_peer)


def main() -> int:
    """Run the rows that are named; 1 where a goal is missed."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.synth.tables", description=__doc__)
    parser.add_argument("rows", nargs="*", metavar="ROW", help=", ".join(ROWS))
    default = Path(__file__).resolve().parents[3] / "shared" / "data"
    parser.add_argument("--data", type=Path, default=default)
    parser.add_argument("--runs", type=int, default=3)
    parser.add_argument("--picture", type=Path, default=Path("synth-growth.png"))
    parser.add_argument("--side", nargs=5, help=argparse.SUPPRESS)
    parser.add_argument("--count", type=int, help=argparse.SUPPRESS)
    asked = parser.parse_args()
    if asked.count:
        print(json.dumps(count(asked.count)))
        return 0
    if asked.side:
        method, source, shape, epsilon, out = asked.side
        print(json.dumps(ours(method, Path(source), Path(shape), epsilon, Path(out))))
        return 0
    unknown = set(asked.rows) - set(ROWS)
    if unknown:
        parser.error(f"no row {', '.join(sorted(unknown))}: there are {', '.join(ROWS)}")
    options = Options(asked.data, asked.runs, asked.picture)
    missed = 0
    for name in asked.rows or [name for name in ROWS if name != "peers"]:
        start = time.perf_counter()
        print(f"\n{name}: {ROWS[name].__doc__}", flush=True)
        for line, good in ROWS[name](options):
            mark = "" if good is None else "  reached" if good else "  MISSED"
            print(f"  {line}{mark}", flush=True)
            missed += good is False
        print(f"  ({time.perf_counter() - start:.0f} s)")
    return 1 if missed else 0


if __name__ == "__main__":
    raise SystemExit(main())
