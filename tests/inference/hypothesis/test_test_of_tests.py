"""The test of tests: blocks, levels, and functions that do their worst."""

from __future__ import annotations

import logging
import sys
import warnings
from typing import Any

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
from scipy import stats

from dither import inference
from dither.errors import ArgumentError
from dither.inference.engine._inputs import target
from dither.inference.hypothesis._test_of_tests import RejectionsRelease
from dither.lab.audit import Outcome, audit

BOTH = ("replace", "add-remove")


def _t(block: Any) -> Any:
    return stats.ttest_1samp(block, 0)


def test_a_row_is_in_one_block() -> None:
    """Whatever is dealt, each row is asked about once, and blocks differ by at most a row."""
    for neighbours in BOTH:
        design = RejectionsRelease(4, 0.5, target(1, 0, neighbours))
        seen: list[list[int]] = []
        design.statistic(np.arange(22), lambda block, seen=seen: seen.append(list(block)))
        assert sorted(row for block in seen for row in block) == list(range(22))
        if neighbours == "replace":
            assert {len(block) for block in seen} == {5, 6}


def test_one_row_changes_the_count_by_at_most_one() -> None:
    """A row that alone decides its block, over many deals."""
    design = RejectionsRelease(3, 0.5, target(1, 0, "replace"))
    rows = [1.0] * 9
    assert {design.statistic(rows, min) for _ in range(20)} == {0}
    assert {design.statistic([0.0, *rows[1:]], min) for _ in range(20)} == {1}


def test_a_deal_that_looks_at_rows_is_caught() -> None:
    """The classic mistake: blocks of neighbouring values, all of which one row shifts."""
    noise = RejectionsRelease(4, 0.5, target(1, 0, "replace")).noise

    def wrong(rows: Any, size: int) -> Any:
        blocks = np.sort(rows).reshape(4, 2)
        return sum(float(b[1]) - float(b[0]) > 0.5 for b in blocks) + noise.release((0,) * size)

    first = np.array([0.0, 0, 1, 1, 2, 2, 3, 3])
    second = np.array([0.0, 1, 1, 2, 2, 3, 3, 9])
    assert audit(wrong, first, second, 1, samples=20_000).verdict is Outcome.VIOLATED


@pytest.mark.heavy("test_one_row_changes_the_count_by_at_most_one")
def test_level_and_power() -> None:
    """The level is that of the wrapped test; an effect is seen."""
    rng = np.random.default_rng(1)
    wrong = [
        inference.test_of_tests(_t, rng.normal(0, 1, 120), epsilon=1).pvalue for _ in range(250)
    ]
    assert 3 <= np.sum(np.array(wrong) <= 0.05) <= 26
    assert stats.kstest(wrong, "uniform").pvalue > 1e-4
    right = [
        inference.test_of_tests(_t, rng.normal(0.6, 1, 200), epsilon=1).rejects() for _ in range(30)
    ]
    assert sum(right) >= 24


def test_rows_come_in_any_form() -> None:
    """Arrays, lists and frames: a block is of the same kind."""
    x = np.random.default_rng(2).normal(1, 1, 300)
    for rows in (x, x.tolist(), x[:, None]):
        found = inference.test_of_tests(
            lambda block: stats.ttest_1samp(np.ravel(block), 0), rows, epsilon=1
        )
        assert found.rejects()
    for frame in (pd.DataFrame({"x": x}), pl.DataFrame({"x": x}), pa.table({"x": x})):
        found = inference.test_of_tests(
            lambda block: stats.ttest_1samp(np.asarray(block["x"]), 0).pvalue, frame, epsilon=1
        )
        assert found.rejects()


def _exits(block: Any) -> float:
    sys.exit(3)


def _raises(block: Any) -> float:
    raise MemoryError(str(block))


def _talks(block: Any) -> float:
    print("secret", block)
    print("secret", block, file=sys.stderr)
    warnings.warn(f"secret {block}", stacklevel=1)
    logging.getLogger("secret").critical("secret")
    return float("nan")


class _Odd:
    @property
    def pvalue(self) -> float:
        """A property that fails."""
        raise ValueError("secret")


@pytest.mark.parametrize(
    "test",
    [
        _exits,
        _raises,
        _talks,
        lambda block: None,
        lambda block: "0.001",
        lambda block: -1.0,
        lambda block: 7,
        lambda block: 1j,
        lambda block: block,
        lambda block: _Odd(),
    ],
)
@pytest.mark.parametrize("neighbours", BOTH)
def test_hostile_functions_show_nothing(
    test: Any, neighbours: Any, capfd: Any, caplog: Any, recwarn: Any
) -> None:
    """Failures, exits and nonsense are no rejections; nothing is printed, warned or logged."""
    rows = ["x", None, 3, float("nan")] * 5
    found = inference.test_of_tests(test, rows, epsilon=50, blocks=5, neighbours=neighbours)
    assert abs(found.statistic) < 1.5
    assert found.loss.charge.epsilon == 50
    assert capfd.readouterr() == ("", "")
    assert not caplog.records
    assert not recwarn.list


def test_a_function_cannot_change_the_rows() -> None:
    """A block is a copy."""
    x = np.ones(40)

    def writes(block: Any) -> float:
        block[:] = 9.0
        return 0.5

    inference.test_of_tests(writes, x, epsilon=1)
    assert (x == 1).all()


def test_bad_arguments_are_named() -> None:
    """What is wrong is named; blocks that are too few are told of."""
    for given, named in (
        ({"blocks": 0}, "blocks"),
        ({"level": 1}, "level"),
        ({"neighbours": "add-remove"}, "blocks"),
        ({"epsilon": -1}, "epsilon"),
    ):
        asked: Any = {"epsilon": 1} | given
        with pytest.raises(ArgumentError, match=named):
            inference.test_of_tests(_t, [1, 2], **asked)
    with pytest.raises(ArgumentError, match="test"):
        inference.test_of_tests(3, [1], epsilon=1)  # type: ignore[arg-type]
    with pytest.raises(ArgumentError, match="rows"):
        inference.test_of_tests(_t, 3, epsilon=1)
    assert "too few" in inference.test_of_tests(_t, [1.0] * 9, epsilon=0.1, blocks=2).notes[0]
