"""People of one distribution, and releases of them that give everything away, or nothing."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import polars as pl
import pytest

Drawn = Callable[[int], pl.DataFrame]


def people(rng: np.random.Generator, n: int) -> pl.DataFrame:
    """Rows with texts, numbers and a rare answer."""
    age = rng.integers(18, 90, n)
    pay = np.round(np.exp(rng.normal(8, 0.5, n)) * (1 + age / 200), 2)
    ill = np.where(rng.random(n) < 0.1 + age / 300, "yes", "no")
    return pl.DataFrame(
        {"age": age, "region": rng.choice(list("abcdefgh"), n), "pay": pay, "ill": ill}
    )


def noisy(table: pl.DataFrame, rng: np.random.Generator) -> pl.DataFrame:
    """A copy whose numbers have noise of 1 % of their spread."""
    return table.with_columns(
        pl.Series(c.name, c.to_numpy() + rng.normal(0, 0.01 * float(c.std()), len(c)))  # type: ignore[arg-type]
        for c in table
        if c.dtype.is_numeric()
    )


@pytest.fixture
def drawn() -> Drawn:
    """People of one distribution, different ones at each call."""
    rng = np.random.default_rng(11)
    return lambda n: people(rng, n)
