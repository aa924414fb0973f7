"""Data that attacks share: the survey, and its 10-anonymous release."""

from __future__ import annotations

from typing import Any

import polars as pl
import pytest

from dither.examples import survey as example


@pytest.fixture(scope="session")
def survey() -> pl.DataFrame:
    """The survey of 6,366 women, with whether each had an affair."""
    pytest.importorskip("statsmodels.datasets")
    return example.women()


@pytest.fixture(scope="session")
def ten(survey: pl.DataFrame) -> Any:
    """The survey made 10-anonymous."""
    return example.anonymous(survey)
