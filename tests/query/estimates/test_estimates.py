"""What cannot be true is not shown: no count below 0, no share above 1, nothing outside bounds."""

import math
import re
from fractions import Fraction as F

import numpy as np
import polars as pl
import pytest

import dither as dt
from dither.mechanisms import DiscreteLaplace
from dither.plan.lowering.recipes import Linear, MeanRecipe, RatioRecipe
from dither.query.estimates._values import Measured, estimate

NOISE = DiscreteLaplace(F(30))
HALF = NOISE.half_width(0.95)


def found(recipe, *values):
    """The estimate from noisy measurements as they are given here."""
    arrays = {i: np.array(v) for i, v in enumerate(values)}
    return estimate(recipe, Measured(arrays, dict.fromkeys(arrays, NOISE), {}), 0.95)


def test_a_count_below_zero_keeps_its_value_and_an_interval_of_what_is_possible():
    """The frame has the unbiased count; the interval is that of 0, as wide as noise is."""
    count = Linear(((0, F(1)),), F(0))
    seen = found(count, [-35, -500, 40, 400])
    assert seen.value.tolist() == [-35, -500, 40, 400]
    assert seen.lower.tolist() == [0, 0, 0, 400 - HALF]
    assert seen.upper.tolist() == [HALF, HALF, 40 + HALF, 400 + HALF]


def test_an_interval_is_not_narrower_where_noise_went_beyond_the_bounds():
    """A mean that noise took over its bound is told at the bound, as uncertain as it was."""
    mean = MeanRecipe(0, 1, F(1), F(0), F(-10), F(10))
    seen = found(mean, [0, 9900, 14000, -14000], [1000, 1000, 1000, 1000])
    assert seen.value.tolist()[2:] == [10, -10]
    wide = seen.upper[0] - seen.lower[0]
    for i in (2, 3):
        assert seen.upper[i] - seen.lower[i] > 0.4 * wide
    assert (seen.lower >= -10).all()
    assert (seen.upper <= 10).all()


@pytest.mark.parametrize("clip", [True, False])
def test_a_share_of_rows_lies_between_0_and_1(clip):
    """Noise takes a quotient of counts beyond either end; what is told stays inside."""
    one = Linear(((0, F(1)),), F(0))
    share = RatioRecipe(one, Linear(((1, F(1)),), F(0)), F(0), F(1))
    arrays = {0: np.array([130, -5, 50]), 1: np.array([100, 90, 100])}
    noises = dict.fromkeys(arrays, NOISE)
    seen = estimate(share, Measured(arrays, noises, {}), 0.95, clip=clip)
    outside = (seen.value < 0) | (seen.value > 1)
    assert outside.any() != clip
    if clip:
        assert (seen.lower >= 0).all()
        assert (seen.upper <= 1).all()
        assert (seen.lower < seen.upper).all()


def test_what_a_plan_knows_of_a_ratio(people):
    """Rows with a value are some of the rows; a sum over a count has no such end."""
    sql = "SELECT COUNT(cost) / COUNT(*) AS share, SUM(cost) / COUNT(cost) AS mean FROM visits"
    share, mean = people.sql(sql)._plan.recipes
    assert (share.lower, share.upper) == (0, 1)
    assert not isinstance(mean, RatioRecipe)


SHOWN = re.compile(r"^(-?[\d,.]+) (?:± ([\d,.]+)|\[(-?[\d,.]+), (-?[\d,.]+)\])$")
OUTPUTS = (
    "COUNT(*) AS n, COUNT(x) / COUNT(*) AS share, AVG(x) AS mean, VAR_SAMP(x) AS var, "
    "STDDEV_POP(x) AS sd, MEDIAN(x) AS middle, MAX(x) AS high, SUM(i) AS total, MEDIAN(i) AS mid"
)
RANGES = {
    "n": (0, math.inf),
    "share": (0, 1),
    "mean": (-5, 5),
    "var": (0, math.inf),
    "sd": (0, 5),
    "middle": (-5, 5),
    "high": (-5, 5),
    "total": (0, math.inf),
    "mid": (0, 10**6),
}
TABLES = {
    "empty": pl.DataFrame(schema={"x": pl.Float64, "i": pl.Int64}),
    "two rows": pl.DataFrame({"x": [5.0, None], "i": [0, 10**6]}),
    "all equal": pl.DataFrame({"x": [5.0] * 200, "i": [10**6] * 200}),
    "all null": pl.DataFrame(
        {"x": [None] * 5, "i": [None] * 5}, schema={"x": pl.Float64, "i": pl.Int64}
    ),
    "beyond bounds": pl.DataFrame(
        {"x": [math.inf, -math.inf, math.nan, 1e300], "i": [-1, 2**62, 7, 8]}
    ),
}


@pytest.mark.parametrize("table", TABLES)
@pytest.mark.parametrize(("epsilon", "delta"), [(0.01, 0), (8, "1e-20"), (1000, 0)])
def test_every_number_that_is_shown_is_possible(tmp_path, table, epsilon, delta):
    """Tiny, constant and empty tables, much noise and next to none: nothing absurd on any line."""
    policy = {
        "budget": {"epsilon": 10**6, "delta": "1e-9", "ledger": str(tmp_path / "x.ledger")},
        "tables": {
            "t": {
                "source": "t.parquet",
                "columns": {
                    "x": {"type": "real", "bounds": [-5, 5], "step": 0.01},
                    "i": {"type": "integer", "bounds": [0, 10**6]},
                },
            }
        },
    }
    with dt.open(policy, sources={"t": TABLES[table]}) as session:
        release = session.sql(f"SELECT {OUTPUTS} FROM t").release(epsilon, delta)
    text = release.summary()
    assert "nan" not in text.lower()
    assert "inf" not in text.lower().replace("information", "")
    row = release.frame.row(0, named=True)
    heads, (cells,) = release.shown()
    for name, cell in zip(heads, cells, strict=True):
        low, high = RANGES[name]
        if cell == "unknown" or "∞" in cell:
            continue
        at, half, bottom, top = (
            None if g is None else float(g.replace(",", "")) for g in SHOWN.match(cell).groups()
        )
        assert low <= at <= high
        if half is None:
            assert low <= bottom <= at <= top <= high
        else:
            assert half > 0 or row[f"{name}_lower"] == row[f"{name}_upper"]
        assert low <= row[f"{name}_lower"] <= row[f"{name}_upper"] <= high


def test_the_loss_is_told_alike_in_every_place(tmp_path):
    """A third of a unit is 0.3334 in the summary, the explanation and the picture."""
    pytest.importorskip("matplotlib")
    policy = {
        "budget": {"epsilon": 1, "ledger": str(tmp_path / "x.ledger")},
        "tables": {"t": {"source": "t.parquet"}},
    }
    with dt.open(policy, sources={"t": pl.DataFrame({"x": [1, 2, 3]})}) as session:
        question = session.sql("SELECT COUNT(*) AS n FROM t")
        release = question.release(F(1, 3))
        assert "ε = 0.3334" in release.summary()
        assert "ε = 0.3334" in str(question.explain(F(1, 3)))
        assert "ε = 0.3334" in str(question.preview(F(1, 3)))
        assert "ε = 0.3334" in release.plot()._supxlabel.get_text()
        assert "spent epsilon 0.3334" in repr(session)
        (balance,) = session.balance()
        assert "Fraction" not in repr(balance)
        assert "0.3333" not in repr(balance)[: repr(balance).index("left")]
        assert "left epsilon 0.666666 " in repr(balance)


def test_no_half_width_on_a_screen_reaches_beyond_what_is_possible(tmp_path):
    """Rounded up, it might; and of a share a preview promises no more than half."""
    columns = {"x": {"bounds": [15, 60]}, "g": {"values": ["a", "b"]}}
    made = {
        "budget": {"epsilon": 1000, "delta": "1e-3", "ledger": str(tmp_path / "l")},
        "tables": {"t": {"columns": columns}},
    }
    frame = pl.DataFrame({"x": [20.0, 30.0, 40.0] * 9, "g": ["a", "a", "b"] * 9})
    outputs = "AVG(x) AS m, COUNT(x) / COUNT(*) AS r"
    with dt.open(made, sources={"t": frame}) as session:
        question = session.sql(f"SELECT g, {outputs} FROM t GROUP BY g")
        widths = question.preview(0.01).widths
        assert max(widths["r"]) == 0.5
        for _ in range(4):
            _, rows = question.release(0.01).shown()
            for row in rows:
                for text, (low, high) in zip(row[1:], ((15, 60), (0, 1)), strict=True):
                    value, sign, half = text.partition(" ± ")
                    if sign:
                        assert float(value) - float(half) >= low
                        assert float(value) + float(half) <= high
