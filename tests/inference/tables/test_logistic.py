"""Logistic regression on protected tables: what arrays give, of people who count once."""

from __future__ import annotations

from typing import Any

import numpy as np
import polars as pl
import pytest

from dither import inference
from dither.errors import ArgumentError, DitherError
from inference.protected import session_over

COLUMNS: dict[str, Any] = {
    "age": {"bounds": [20, 90], "nullable": False},
    "arm": {"values": ["placebo", "drug"], "nullable": False},
    "cost": {"bounds": [0, 10]},
}
FORMULA = "ill ~ age + C(arm)"


def patients(n: int = 4000) -> pl.DataFrame:
    """Log odds of (age - 60)/12, and 1/2 more with the drug."""
    rng = np.random.default_rng(1)
    age, arm = rng.uniform(20, 90, n), rng.choice(["placebo", "drug"], n)
    odds = (age - 60) / 12 + 0.5 * (arm == "drug")
    ill = rng.random(n) < 1 / (1 + np.exp(-odds))
    cost = rng.uniform(0, 10, n)
    return pl.DataFrame({"pid": np.arange(n), "age": age, "arm": arm, "ill": ill, "cost": cost})


@pytest.mark.parametrize("unit", [False, True])
def test_a_table_gives_what_arrays_give(unit: bool, tmp_path: Any) -> None:
    """With little noise, values known to 1/1,024 of their bounds; of a person one row counts."""
    frame = patients()
    rows = pl.concat([frame, frame]) if unit else frame
    with session_over(rows, tmp_path, columns=COLUMNS, unit=unit) as session:
        asked = session.table("visits").infer(epsilon=50, delta=1e-5)
        question = asked.logistic_regression(FORMULA)
        assert session.balance()[0].spent.epsilon == 0
        found = question.release(token="once")
        assert session.balance()[0].spent.epsilon == 50
        again = question.release(token="once")
        assert session.balance()[0].spent.epsilon == 50
    exact = inference.logistic_regression(
        FORMULA,
        frame,
        bounds={"age": (20, 90)},
        levels={"arm": ["placebo", "drug"]},
        epsilon=50,
        delta=1e-5,
    )
    assert found.names == exact.names
    np.testing.assert_allclose(found.estimate, exact.estimate, atol=3 * exact.se.max() / 4)
    np.testing.assert_allclose(found.se, exact.se, rtol=0.15)
    np.testing.assert_array_equal(again.estimate, found.estimate)
    np.testing.assert_array_equal(again.interval(), found.interval())
    assert found.people is unit
    assert found.certificate is not None
    assert ("one row of each pid counts" in found.assumptions) is unit
    assert found.valid["age"]
    low, high = found.predict({"age": [30, 80], "arm": ["placebo", "drug"]})
    assert low < 0.2 < 0.8 < high


def test_what_cannot_be_asked_is_refused_by_name(tmp_path: Any) -> None:
    """Before anything is charged."""
    with session_over(patients(50), tmp_path, columns=COLUMNS) as session:
        table = session.table("visits")
        for ask, told in (
            (lambda: table.infer(1, 0).logistic_regression(FORMULA), "delta must be above 0"),
            (lambda: table.infer(1, 1e-6).logistic_regression("cost ~ age"), "cannot be told"),
            (lambda: table.infer(1, 1e-6).logistic_regression("ill ~ ill"), "beside the response"),
            (lambda: table.infer(1, 1e-6).logistic_regression("ill ~ none"), "none"),
        ):
            with pytest.raises(DitherError, match=told):
                ask()
        question = table.infer(1, 1e-6).logistic_regression(FORMULA)
        with pytest.raises(ArgumentError):
            question.preview([0])
        assert "half-width of age" in str(question.preview([500]))
        assert session.balance()[0].spent.epsilon == 0
