"""What each engine takes for a job, beside the same bounding written by hand for that engine.

Run with ``python -m benchmarks.engines duckdb [--rows N] [--rounds N] [--only SIDE ...]``, or with
another engine of ``ENGINES``. All read one table of visits, by default of five million rows, and of
two million on Spark. Each side runs in a process of its own, all of them in turn in every round,
timed after one untimed run. Read the ratios, which are those of pairs in one round: they carry from
machine to machine. The peak memory is that of the side's process and of those that it started.

What is asked:

- ``plain``: ``COUNT(*)`` and ``AVG`` by region, as one would without privacy; ``opened`` where the
  time holds opening and closing an engine for it;
- ``by hand``: at most 5 rows in each of 3 regions of a user, chosen by a hash with a seed, exact
  integer sums, no noise;
- ``few groups by hand``, ``few groups``: the means of users none of whom has more than the policy
  lets count, 5 regions and 60 rows in each, from a Hive folder by month where files are read: by
  hand without a choice among regions, as one writes who knows that there is none to make, and ours;
- ``row-level``, ``user-level``: our engine's exact part of the same jobs, in an open engine;
- ``medians by hand``: the bounded histogram on a thousand bins of income by region;
- ``release``: all of it: the policy opened, a question read, charged, computed, noised and stored.
"""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks import side_by_side
from benchmarks.side_by_side import Comparison, Side

REGIONS = tuple(f"R{i:02d}" for i in range(20))
MOST_INCOME = 100_000
MAX_GROUPS, MAX_ROWS = 3, 5
ENOUGH = (5, 60)
"""Groups, and rows in each, of which the users of ``few_groups`` have fewer."""
PARTS = 1024
MOST_PARTS = MAX_ROWS * PARTS

PLAIN = "SELECT region, count(*), avg(income) FROM '{path}' GROUP BY region"

BY_HAND = f"""
WITH parts AS (
  SELECT user_id, region, count(*) AS n,
         sum(CAST(round(least(greatest(income, 0), {MOST_INCOME}) * 100) AS BIGINT)) AS s
  FROM '{{path}}' GROUP BY user_id, region
), ranked AS (
  SELECT *, row_number() OVER (PARTITION BY user_id ORDER BY {{order}}) AS place FROM parts
)
SELECT region, sum(least(n, {MAX_ROWS})),
       sum(CASE WHEN n <= {MAX_ROWS} THEN s ELSE s * {MAX_ROWS} // n END)
FROM ranked WHERE place <= {MAX_GROUPS} GROUP BY region
"""

ONE_TERM = "hash(user_id, region, 8191)"
TWO_TERMS = "hash(hash(8191, user_id, region)), region"


def visits(rows: int, folder: Path) -> Path:
    """The table, made once: users with uneven numbers of visits, most of them in one region."""
    path = folder / f"visits-{rows}.parquet"
    if path.exists():
        return path
    import pyarrow as pa
    import pyarrow.parquet as pq

    users = max(1, rows // 10)
    generator = np.random.default_rng(20)
    activity = generator.lognormal(0.0, 1.0, users).cumsum()
    home = generator.integers(0, len(REGIONS), users)
    part = path.with_suffix(".part")
    writer = None
    for start in range(0, rows, 1_000_000):
        size = min(1_000_000, rows - start)
        user = np.searchsorted(activity, generator.random(size) * activity[-1])
        away = generator.integers(0, len(REGIONS), size)
        region = np.where(generator.random(size) < 0.7, home[user], away)
        table = pa.table(
            {
                "user_id": user.astype(np.int64),
                "region": pa.array(np.array(REGIONS)[region]),
                "age": np.clip(generator.normal(42, 15, size), 0, 110).astype(np.int64),
                "income": np.round(generator.lognormal(10.3, 0.7, size), 2),
            }
        )
        writer = writer or pq.ParquetWriter(part, table.schema)
        writer.write_table(table)
    assert writer is not None
    writer.close()
    part.rename(path)
    return path


FEW_BY_HAND = f"""
SELECT region, sum(least(n, {ENOUGH[1]})),
       sum(CASE WHEN n <= {ENOUGH[1]} THEN s ELSE s * {ENOUGH[1]} // n END)
FROM (
  SELECT user_id, region, count(*) AS n,
         sum(CAST(round(least(greatest(income, 0), {MOST_INCOME}) * 100) AS BIGINT)) AS s
  FROM '{{path}}' GROUP BY user_id, region
) AS parts GROUP BY region
"""


def few_groups(path: Path) -> Path:
    """As many visits as the table has, in a folder by month, made once: of users with some ten
    each, in at most four regions."""
    folder = path.with_name(f"{path.stem}-few")
    if folder.exists():
        return folder
    import duckdb
    import pyarrow as pa
    import pyarrow.parquet as pq

    rows = pq.ParquetFile(path).metadata.num_rows
    users, generator = max(1, rows // 10), np.random.default_rng(21)
    activity = generator.lognormal(0.0, 0.2, users).cumsum()
    user = np.searchsorted(activity, generator.random(rows) * activity[-1])
    home = generator.integers(0, len(REGIONS), users)
    region = (home[user] + generator.integers(0, 4, rows)) % len(REGIONS)
    table = pa.table(
        {
            "user_id": user.astype(np.int64),
            "region": pa.array(np.array(REGIONS)[region]),
            "income": np.round(generator.lognormal(10.3, 0.7, rows), 2),
            "month": generator.integers(1, 13, rows),
        }
    )
    part = folder.with_suffix(".part")
    with duckdb.connect() as connection:
        connection.register("made", table)
        connection.execute(f"COPY made TO '{part}' (FORMAT parquet, PARTITION_BY (month))")
    part.rename(folder)
    return folder


def few_files(path: Path) -> str:
    """The files of ``few_groups``, as DuckDB takes a folder's."""
    return f"{few_groups(path)}/*/*.parquet"


def few_folder(path: Path) -> str:
    """The folder of ``few_groups``, as a policy names one."""
    return str(few_groups(path))


def query(text: str, *, opened: bool = True, table: Callable[[Path], Any] = str) -> Side:
    """A side that runs one DuckDB query, in an engine that is ``opened`` before or in the time."""

    def prepared(path: Path) -> Callable[[], object]:
        import duckdb

        asked = text.format(path=table(path))

        def alone() -> object:
            with duckdb.connect() as fresh:
                return fresh.execute(asked).fetchall()

        connection = duckdb.connect()
        return (lambda: connection.execute(asked).fetchall()) if opened else alone

    return prepared


MEDIANS_BY_HAND = f"""
WITH counted AS (
  SELECT user_id, region, least(greatest(income, 0), {MOST_INCOME}) // 100 AS leaf, count(*) AS c
  FROM '{{path}}' GROUP BY ALL
), ranked AS (
  SELECT *, dense_rank() OVER (PARTITION BY user_id ORDER BY {ONE_TERM}) AS place FROM counted
), weighed AS (
  SELECT *, sum(c) OVER (PARTITION BY user_id, region) AS total,
         sum(c) OVER (PARTITION BY user_id, region ORDER BY leaf) AS upto
  FROM ranked WHERE place <= {MAX_GROUPS}
)
SELECT region, leaf,
       sum(CASE WHEN total <= {MAX_ROWS} THEN c * {PARTS}
           ELSE upto * {MOST_PARTS} // total - (upto - c) * {MOST_PARTS} // total END)
FROM weighed GROUP BY ALL
"""

MEANS = "SELECT region, COUNT(*) AS n, AVG(income) AS income FROM visits GROUP BY region"
MEDIANS = "SELECT region, MEDIAN(income) AS income FROM visits GROUP BY region"


def policy(
    folder: str,
    source: Any,
    *,
    user_level: bool,
    engine: Mapping[str, Any] | None = None,
    limits: tuple[int, int] = (MAX_GROUPS, MAX_ROWS),
) -> dict[str, Any]:
    """A policy over the visits, with its ledger in the folder."""
    table = {
        "source": source,
        "columns": {
            "region": {"values": list(REGIONS), "nullable": False},
            "income": {"bounds": [0, MOST_INCOME], "step": 0.01, "nullable": False},
        },
    }
    if user_level:
        table |= {"unit": "user_id", "max_groups": limits[0], "max_rows": limits[1]}
    return {
        "budget": {"epsilon": 1000, "delta": 1e-6, "ledger": f"{folder}/bench.ledger"},
        "engine": dict(engine or {}),
        "tables": {"visits": table},
    }


def exact(
    user_level: bool,
    question: str = MEANS,
    *,
    source: Callable[[Path], Any] = str,
    engine: Mapping[str, Any] | None = None,
    limits: tuple[int, int] = (MAX_GROUPS, MAX_ROWS),
) -> Side:
    """A side that runs our engine alone, opened beforehand, on a question's job.

    Parameters
    ----------
    user_level : bool
        Whether a user is protected, or a row.
    question : str
        In SQL, of ``visits``.
    source : callable
        From the table's path to what the policy names.
    engine : mapping, optional
        The policy's ``[engine]``.
    limits : (int, int)
        ``max_groups`` and ``max_rows``.
    """

    def prepared(path: Path) -> Callable[[], object]:
        import secrets

        import dither as dt

        with tempfile.TemporaryDirectory() as folder:
            # The ledger may go: nothing is charged here.
            asked = policy(
                folder, source(path), user_level=user_level, engine=engine, limits=limits
            )
            session = dt.open(asked)
        job = session.sql(question)._plan.job
        opened: Any = session._opened.engine

        def work() -> object:
            return opened.run(job, session.schema, secrets.token_bytes(32))

        return served(work, opened._execute) if opened.dialect.name == "postgres" else work

    return prepared


def release(
    user_level: bool,
    question: str = MEANS,
    *,
    opened: bool,
    source: Callable[[Path], Any] = str,
    engine: Mapping[str, Any] | None = None,
) -> Side:
    """A side that asks and releases, in a session that is ``opened`` before or within the time."""

    def prepared(path: Path) -> Callable[[], object]:
        import dither as dt

        folder = tempfile.TemporaryDirectory()
        asked = policy(folder.name, source(path), user_level=user_level, engine=engine)
        session = dt.open(asked) if opened else None

        def work() -> object:
            assert folder
            if session is not None:
                return session.sql(question).release(epsilon=1)
            with dt.open(asked) as fresh:
                return fresh.sql(question).release(epsilon=1)

        return work

    return prepared


RELEASED = "+ 50 ms is held against this one: both open and close an engine in their time"
RELEASED_OPEN = "+ 50 ms in the strictest reading: here the plain query's engine is open before"


def duckdb() -> Comparison:
    """DuckDB in this process.

    A release with the opening of its session is held against two plain queries. One opens and
    closes an engine as the session does, so what is left over is what protection costs: the ledger,
    the certificate, a rehearsal before the charge, and exact sums in place of doubles. The other
    finds its engine open, and the difference to it has DuckDB's own start in it, which nobody can
    make shorter who opens an engine.
    """
    return Comparison(
        {
            "plain": query(PLAIN),
            "plain, opened": query(PLAIN, opened=False),
            "row-level": exact(user_level=False),
            "row-level release": release(user_level=False, opened=False),
            "by hand": query(BY_HAND.replace("{order}", ONE_TERM)),
            "by hand, two terms": query(BY_HAND.replace("{order}", TWO_TERMS)),
            "user-level": exact(user_level=True),
            "few groups by hand": query(FEW_BY_HAND, table=few_files),
            "few groups": exact(user_level=True, source=few_folder, limits=ENOUGH),
            "user-level in 1.5 GB": exact(user_level=True, engine={"memory": "1500MB"}),
            "medians by hand": query(MEDIANS_BY_HAND),
            "medians release": release(user_level=True, question=MEDIANS, opened=True),
        },
        (
            ("row-level", "plain", ""),
            ("row-level release", "plain, opened", RELEASED),
            ("row-level release", "plain", RELEASED_OPEN),
            ("user-level", "by hand", "within .5"),
            ("user-level", "by hand, two terms", ""),
            ("few groups", "few groups by hand", "within 1.2"),
            ("user-level in 1.5 GB", "user-level", "100 million rows within 25 s and 2 GB"),
            ("medians release", "medians by hand", "3 s"),
        ),
    )


def served(work: Callable[[], object], ask: Callable[[str], Any]) -> Callable[[], object]:
    """The work, with the processes of the server that does it, where they run on this machine."""
    ((backend,),) = ask("SELECT pg_backend_pid()")

    def processes() -> list[int]:
        try:
            fields = Path(f"/proc/{backend}/stat").read_text()
        except OSError:
            return []
        # Its parent starts and ends all the others, those that help with one query too.
        name, rest = fields.split(" (", 1)[1].rsplit(") ", 1)
        return [int(rest.split()[1])] if name.startswith("postgres") else []

    def done() -> object:
        return work()

    done.processes = processes  # type: ignore[attr-defined]
    return done


POSTGRES_BY_HAND = f"""
WITH parts AS (
  SELECT user_id, region, count(*) AS n,
         sum(CAST(round(least(greatest(income, 0), {MOST_INCOME}) * 100) AS bigint)) AS s
  FROM {{table}} GROUP BY user_id, region
), ranked AS (
  SELECT *, row_number() OVER (PARTITION BY user_id ORDER BY
         hashtextextended(region, hashint8extended(user_id, 8191))) AS place FROM parts
)
SELECT region, sum(least(n, {MAX_ROWS})),
       sum(CASE WHEN n <= {MAX_ROWS} THEN s ELSE div(s * {MAX_ROWS}, n) END)
FROM ranked WHERE place <= {MAX_GROUPS} GROUP BY region
"""


POSTGRES_FEW_BY_HAND = f"""
SELECT region, sum(least(n, {ENOUGH[1]})),
       sum(CASE WHEN n <= {ENOUGH[1]} THEN s ELSE div(s * {ENOUGH[1]}, n) END)
FROM (
  SELECT user_id, region, count(*) AS n,
         sum(CAST(round(least(greatest(income, 0), {MOST_INCOME}) * 100) AS bigint)) AS s
  FROM {{table}} GROUP BY user_id, region
) AS parts GROUP BY region
"""


def postgres_table(path: Path) -> str:
    """The name of the table of visits on the server, made and analysed once."""
    columns = "user_id bigint, region text, age bigint, income double precision"
    return _copied(path.stem, columns, [path])


def postgres_few(path: Path) -> str:
    """The name of the table of ``few_groups`` on the server."""
    folder = few_groups(path)
    files = sorted(folder.glob("*/*.parquet"))
    return _copied(folder.name, "user_id bigint, region text, income double precision", files)


def _copied(stem: str, columns: str, files: Sequence[Path]) -> str:
    """The name of a table on the server with the rows of files, made and analysed once."""
    import psycopg
    import pyarrow.parquet as pq

    name = stem.replace("-", "_")
    with psycopg.connect(os.environ["BENCH_DSN"], autocommit=True) as connection:
        if connection.execute("SELECT to_regclass(%s)", [name]).fetchone() != (None,):
            return name
        with connection.transaction(), connection.cursor() as cursor:
            cursor.execute(f"CREATE TABLE {name} ({columns})")
            with cursor.copy(f"COPY {name} FROM STDIN") as copy:
                for file in files:
                    for batch in pq.ParquetFile(file).iter_batches(100_000):
                        for row in zip(*(c.to_pylist() for c in batch.columns), strict=True):
                            copy.write_row(row)
        connection.execute(f"VACUUM ANALYZE {name}")
    return name


def postgres_query(
    text: str, *, jit: bool = True, table: Callable[[Path], str] = postgres_table
) -> Side:
    """A side that runs one query in the server."""

    def prepared(path: Path) -> Callable[[], object]:
        import psycopg

        asked = text.format(table=table(path))
        connection = psycopg.connect(os.environ["BENCH_DSN"], autocommit=True)
        connection.execute(f"SET jit = {'on' if jit else 'off'}")

        def ask(sql: str) -> list[tuple[Any, ...]]:
            return connection.execute(sql.encode()).fetchall()

        return served(lambda: ask(asked), ask)

    return prepared


def postgres() -> Comparison:
    """A server, at the connection string in ``BENCH_DSN``, of a role that may make a table."""

    def source(path: Path) -> Any:
        return {"postgres": "env:BENCH_DSN", "table": postgres_table(path)}

    def few(path: Path) -> Any:
        return {"postgres": "env:BENCH_DSN", "table": postgres_few(path)}

    plain = "SELECT region, count(*), avg(income) FROM {table} GROUP BY region"
    return Comparison(
        {
            "plain": postgres_query(plain),
            "row-level": exact(user_level=False, source=source),
            "by hand": postgres_query(POSTGRES_BY_HAND),
            "by hand, not compiled": postgres_query(POSTGRES_BY_HAND, jit=False),
            "user-level": exact(user_level=True, source=source),
            "few groups by hand": postgres_query(POSTGRES_FEW_BY_HAND, table=postgres_few),
            "few groups by hand, not compiled": postgres_query(
                POSTGRES_FEW_BY_HAND, jit=False, table=postgres_few
            ),
            "few groups": exact(user_level=True, source=few, limits=ENOUGH),
        },
        (
            ("row-level", "plain", ""),
            ("user-level", "by hand", "within 1.25"),
            ("user-level", "by hand, not compiled", ""),
            ("few groups", "few groups by hand", "within 1.2"),
            ("few groups", "few groups by hand, not compiled", ""),
        ),
    )


SPARK = {"spark": "local[2]", "memory": "2GB"}


def spark_query(text: str, table: Callable[[Path], Any] = str) -> Side:
    """A side that runs one query of Spark, on two threads and with two gigabytes."""

    def prepared(path: Path) -> Callable[[], object]:
        from dither.engines.spark.sessions import open_sessions

        # A session beside ours: the same Spark, with its own settings.
        session = open_sessions(None, SPARK["spark"], SPARK["memory"]).users
        return lambda: session.sql(text.format(path=table(path))).collect()

    return prepared


def spark_source(path: Path) -> dict[str, str]:
    """What a policy says of the table on Spark."""
    return {"spark": str(path.resolve())}


def spark_few(path: Path) -> dict[str, str]:
    """What a policy says of ``few_groups`` on Spark."""
    return {"spark": str(few_groups(path).resolve())}


def tumult(path: Path) -> Callable[[], object]:
    """Tumult Analytics on its own pyspark, two threads and two gigabytes too."""
    script = str(Path(__file__).with_name("tumult_side.py"))
    found = subprocess.Popen(
        [os.environ["TUMULT_PYTHON"], script, str(path), str(MOST_INCOME), ",".join(REGIONS)],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    )

    def work() -> str:
        assert found.stdin
        assert found.stdout
        print("again", file=found.stdin, flush=True)
        if found.stdout.readline() != "done\n":
            raise RuntimeError("Tumult Analytics failed")
        return "done"

    return work


def spark() -> Comparison:
    """Spark on two threads of this machine."""
    here = {"source": spark_source, "engine": SPARK}
    # DIV is of whole numbers alone; of what is not below 0 a cast cuts as // does.
    income = f"least(greatest(income, 0), {MOST_INCOME})"
    words = {f"{income} // 100": f"CAST({income} / 100 AS INT)"}
    words |= {"'{path}'": "parquet.`{path}`", " // ": " DIV ", "hash(": "xxhash64("}

    def spelled(text: str, table: Callable[[Path], Any] = str) -> Side:
        for word, ours in words.items():
            text = text.replace(word, ours)
        return spark_query(text, table)

    return Comparison(
        {
            "plain": spelled(PLAIN),
            "row-level": exact(user_level=False, **here),
            "by hand": spelled(BY_HAND.replace("{order}", ONE_TERM)),
            "user-level": exact(user_level=True, **here),
            "user-level release": release(user_level=True, opened=True, **here),
            "few groups by hand": spelled(FEW_BY_HAND, few_folder),
            "few groups": exact(user_level=True, source=spark_few, engine=SPARK, limits=ENOUGH),
            "medians by hand": spelled(MEDIANS_BY_HAND),
            "medians": exact(user_level=True, question=MEDIANS, **here),
            **({"Tumult Analytics": tumult} if "TUMULT_PYTHON" in os.environ else {}),
        },
        (
            ("row-level", "plain", ""),
            ("user-level", "by hand", "within 1.25"),
            ("user-level release", "by hand", ""),
            ("few groups", "few groups by hand", "within 1.2"),
            ("medians", "medians by hand", ""),
            ("Tumult Analytics", "user-level release", ""),
        ),
        # Each side starts a Java machine, which takes longer than most of what it is asked.
        rows=2_000_000,
        rounds=3,
        once=frozenset({"Tumult Analytics"}),
    )


ENGINES: Mapping[str, Callable[[], Comparison]] = {
    "duckdb": duckdb,
    "spark": spark,
    "postgres": postgres,
}
"""By the name that policies have for an engine, what is measured of it."""


def main(arguments: list[str]) -> None:
    """Measure one engine, the first argument; all of them where none is named."""
    named, rest = (arguments[:1], arguments[1:]) if arguments[:1] else (list(ENGINES), [])
    for name in named:
        if name not in ENGINES:
            raise SystemExit(f"name an engine: {' or '.join(ENGINES)}; then --help says what else")
        print(f"--- {name}")
        side_by_side.main(f"benchmarks.engines {name}", __doc__, ENGINES[name](), visits, rest)


if __name__ == "__main__":
    main(sys.argv[1:])
