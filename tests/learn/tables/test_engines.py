"""A session's models are the same from every engine: of the same rows, without noise."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pytest

import dither as dt
from dither import noise
from dither.mechanisms import DiscreteGaussian, DiscreteLaplace, Exponential
from spark_session import needs_spark, spark_session

COLUMNS = {
    "age": {"bounds": [0, 110]},
    "cost": {"bounds": [0, 5000], "step": "0.01"},
    "region": {"values": ["north", "south", "east"]},
}
TREES = {"n_estimators": 2, "max_depth": 3}
MODELS: dict[str, Callable[[Any], Any]] = {
    "additive": lambda ask: ask.additive("readmitted ~ age + cost + region", rounds=2),
    "forest": lambda ask: ask.forest("cost ~ age + region + readmitted", **TREES),
    "naive_bayes": lambda ask: ask.naive_bayes("region ~ age + cost + readmitted"),
    "logistic": lambda ask: ask.logistic("readmitted ~ age + C(region)"),
    "linear": lambda ask: ask.linear("cost ~ age + C(region)"),
}


def visits(n: int = 200) -> pl.DataFrame:
    """Rows of people who have one or several; what is missing, odd or beyond its bounds too."""
    rng = np.random.default_rng(5)
    made = {
        "pid": rng.integers(0, n, n).tolist(),
        "age": rng.integers(-3, 120, n).tolist(),
        "cost": np.round(rng.normal(2500, 2000, n), 2).tolist(),
        "region": rng.choice(["north", "south", "east", "o'where"], n).tolist(),
        "readmitted": (rng.random(n) < 0.4).tolist(),
    }
    for k, name in enumerate(made):
        made[name][k], made[name][50 + k] = None, None
    return pl.DataFrame(made)


@pytest.fixture
def noiseless(monkeypatch: pytest.MonkeyPatch) -> Callable[[], None]:
    """No noise, and the same chance: called before each model."""
    zeros = lambda self, size: np.zeros(size, np.int64)  # noqa: E731
    for law in (DiscreteGaussian, DiscreteLaplace):
        monkeypatch.setattr(law, "_draw", zeros)
    best = lambda self, utilities: max(range(len(utilities)), key=utilities.__getitem__)  # noqa: E731
    monkeypatch.setattr(Exponential, "draw", best)

    def again() -> None:
        rng = np.random.default_rng(1)
        monkeypatch.setattr(noise, "below", lambda end, size: rng.integers(0, end, size))
        monkeypatch.setattr(noise, "permutation", rng.permutation)

    return again


def released(folder: Path, again: Callable[[], None], source: Any, **given: Any) -> Any:
    """By kind: what is released of the table, less where and when it was charged."""
    table = {"unit": "pid", "max_groups": 1, "max_rows": 8, "columns": COLUMNS}
    table |= {} if source is None else {"source": source}
    folder.mkdir()
    policy = {
        "budget": {"epsilon": 100, "delta": "1e-3", "ledger": str(folder / "l.ledger")},
        "tables": {"visits": table},
    }
    found = {}
    with dt.open(policy, **given) as session:
        for kind, question in MODELS.items():
            again()
            made = question(session.table("visits").learn(4, "1e-6")).release()._content
            found[kind] = {name: part for name, part in made.items() if name != "certificate"}
    return found


@pytest.fixture
def embedded(tmp_path: Path, noiseless: Callable[[], None]) -> Iterator[Any]:
    """What the embedded engine says."""
    found = released(tmp_path / "here", noiseless, None, sources={"visits": visits()})
    # Which rows of a unit are kept is an engine's own; here all are.
    assert visits()["pid"].drop_nulls().value_counts()["count"].max() <= 8
    assert [round(rows) > 10 for rows in found["naive_bayes"]["rows"]] == [True] * 3
    assert found["linear"] != found["logistic"]
    return found


def test_a_server_teaches_the_same_models(
    tmp_path: Path, postgres: Any, monkeypatch: pytest.MonkeyPatch, noiseless: Any, embedded: Any
) -> None:
    """PostgreSQL: each of the five, number by number."""
    postgres.execute(
        "CREATE TABLE visits (pid bigint, age bigint, cost double precision, region text, "
        "readmitted boolean)"
    )
    with postgres.server.connect(postgres.name, "owner") as connection:
        for row in visits().rows():
            connection.execute("INSERT INTO visits VALUES (%s, %s, %s, %s, %s)", row)
    monkeypatch.setenv("TEST_DSN", postgres.reader)
    source = {"postgres": "env:TEST_DSN", "table": "public.visits"}
    assert released(tmp_path / "server", noiseless, source) == embedded


@pytest.mark.parametrize("kind", [pytest.param("spark", marks=needs_spark)])
def test_a_cluster_teaches_the_same_models(
    tmp_path: Path, noiseless: Any, embedded: Any, kind: str
) -> None:
    """Spark: each of the five, number by number."""
    frame = spark_session().createDataFrame(visits().to_arrow())
    assert released(tmp_path / kind, noiseless, None, sources={"visits": frame}) == embedded
