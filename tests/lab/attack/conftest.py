"""Data that attacks share: the survey, its hierarchies, and releases of it."""

from __future__ import annotations

from typing import Any

import polars as pl
import pytest
from hypothesis import settings

# No test measures time.
settings.register_profile("unhurried", deadline=None)
settings.load_profile("unhurried")

QUASI = ["age", "yrs_married", "children", "religious", "educ", "occupation"]
COVERS: dict[str, dict[Any, list[Any]]] = {
    "religious": {"little": [1, 2], "much": [3, 4]},
    "educ": {"school": [9, 12], "college": [14, 16], "degree": [17, 20]},
}


@pytest.fixture(scope="session")
def survey() -> pl.DataFrame:
    """The survey of 6,366 women, with whether each had an affair."""
    fair = pytest.importorskip("statsmodels.datasets").fair
    rows = pl.DataFrame({n: c.to_numpy() for n, c in fair.load_pandas().data.items()})
    had = pl.col("affairs") > 0
    return rows.with_columns(affair=pl.when(had).then(pl.lit("yes")).otherwise(pl.lit("no")))


@pytest.fixture(scope="session")
def ten(survey: pl.DataFrame) -> Any:
    """The survey made 10-anonymous."""
    from dither import anonymize as an

    trees = {
        name: an.hierarchy({v: [label] for label, under in labels.items() for v in under})
        for name, labels in COVERS.items()
    }
    hierarchies: dict[str, Any] = {
        "age": an.intervals([10, 20]),
        "yrs_married": an.intervals([5, 10, 20]),
        "children": an.intervals([2, 4]),
        "occupation": an.suppression(),
        **trees,
    }
    known = survey.select(*QUASI, "affair")
    return an.generalize(known, QUASI, hierarchies, k=10, suppress=0.05, sensitive="affair")
