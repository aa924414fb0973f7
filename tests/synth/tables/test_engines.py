"""Tables asked of PostgreSQL and of Spark: the same whole numbers as of DuckDB."""

from __future__ import annotations

import datetime as day

import numpy as np
import polars as pl
import pytest

import dither as dt
from spark_session import needs_spark, spark_session

DAY = day.date(2024, 2, 27)
N = 600
RNG = np.random.default_rng(13)
COUNTY = RNG.integers(0, 6, N)
AGE = RNG.integers(-3, 104, N)
PEOPLE = pl.DataFrame(
    {
        "who": np.arange(N) // 2,
        "county": ["abcdef"[c] if i % 50 else None for i, c in enumerate(COUNTY)],
        "sex": ["f" if s else "m" for s in RNG.integers(0, 2, N)],
        "age": AGE,
        "cost": np.where(RNG.random(N) < 0.05, np.nan, AGE * 0.25),
        "ill": [None if i % 40 == 7 else bool(i % 3) for i in range(N)],
        "on": [DAY + day.timedelta(days=int(a) % 5) for a in AGE],
    }
)
PLACES = pl.DataFrame({"state": ["n"] * 3 + ["s"] * 3, "county": list("abcdef")})
COLUMNS = {
    "county": {"values": list("abcde")},
    "sex": {"values": ["f", "m"], "nullable": False},
    "age": {"bounds": [0, 99]},
    "cost": {"bins": [0, 5, 10, 30]},
    "ill": {},
    "on": {"bounds": [DAY, DAY + day.timedelta(days=4)]},
}
# At this budget noise is 0 but once in 10^90 draws, so what comes out is what was counted.
EPSILON = 10**5
TABLES = [["county", "sex", "ill"], ["cost", "on"], ["age"], ["county", "on"]]


def released(session, *, methods=("aim", "mst", "independent"), deltas=(0, "1e-6")) -> dict:
    """All that is asked of tables, in whole numbers."""
    people, found = session.table("people"), {}
    marginals = people.marginals(TABLES, epsilon=EPSILON).release()
    for names in TABLES:
        frame = marginals.frame(names).with_columns(pl.col("count").round().cast(pl.Int64))
        found["x".join(names)] = frame.drop("count_lower", "count_upper").rows()
    places = people.hierarchy(["state", "county"], ["sex", "ill"], epsilon=EPSILON).release()
    found["places"] = places.frame("county").select("state", "county", "sex", "ill", "count").rows()
    for delta in deltas:
        ages = people.ranges("age", epsilon=EPSILON, delta=delta).release()
        found[f"ages {delta}"] = [round(n) for n in ages.frame["estimate"]]
    for method in methods:
        model = people.synthesize(EPSILON, "1e-6", method=method, cells=4)
        tables = zip(model.measured, model._found.measured, strict=True)
        singles = {names: m.values.tolist() for names, m in tables if len(names) == 1}
        found[method] = sorted(singles.items())
    return found


def policy(folder, source=None, places=None, **engine):
    """A policy of two rows a person."""
    table = {"unit": "who", "max_groups": 1, "max_rows": 2, "columns": COLUMNS}
    public = {"public": True, "unique": ["county"]}
    return {
        "budget": {"epsilon": 10**8, "delta": "1e-4", "ledger": str(folder / "people.ledger")},
        "engine": engine,
        "tables": {
            "people": table | ({"source": source} if source else {}),
            "places": public | ({"source": places} if places else {}),
        },
    }


@pytest.fixture(scope="module")
def of_duckdb(tmp_path_factory):
    """What DuckDB counts."""
    made = policy(tmp_path_factory.mktemp("duckdb"))
    with dt.open(made, sources={"people": PEOPLE, "places": PLACES}) as session:
        found = released(session)
    ages = np.bincount(AGE.clip(0, 99), minlength=100).tolist()
    assert found["ages 0"] == found["ages 1e-6"] == ages
    return found


def test_tables_of_postgresql_are_those_of_duckdb(postgres, monkeypatch, tmp_path, of_duckdb):
    """Marginals, hierarchies, ranges and syntheses, of a server's own tables."""
    postgres.execute(
        "CREATE TABLE people (who bigint, county text, sex text, age integer, "
        'cost double precision, ill boolean, "on" date)',
        "CREATE TABLE places (state text, county text)",
    )
    with postgres.server.connect(postgres.name, "owner") as owner, owner.cursor() as cursor:
        for name, frame in (("people", PEOPLE), ("places", PLACES)):
            with cursor.copy(f"COPY {name} FROM STDIN") as copy:
                for row in frame.iter_rows():
                    copy.write_row(row)
    monkeypatch.setenv("TEST_DSN", postgres.reader)
    sources = [{"postgres": "env:TEST_DSN", "table": f"public.{t}"} for t in ("people", "places")]
    with dt.open(policy(tmp_path, *sources)) as session:
        assert released(session) == of_duckdb


@pytest.mark.parametrize("form", [pytest.param("parquet", marks=needs_spark)])
def test_tables_of_spark_are_those_of_duckdb(tmp_path, of_duckdb, form):
    """Marginals, hierarchies, ranges and syntheses, of files."""
    sources = []
    for name, frame in (("people", PEOPLE), ("places", PLACES)):
        path = tmp_path / f"{name}.{form}"
        frame.write_parquet(path)
        sources.append({"spark": str(path)})
    with dt.open(policy(tmp_path, *sources), engines={"spark": spark_session()}) as session:
        # Spark takes seconds for each table, so not every method is worth trying.
        found = released(session, methods=["independent"], deltas=[0])
    assert len(found) == len(TABLES) + 3
    assert found == {name: of_duckdb[name] for name in found}
