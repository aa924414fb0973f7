"""Which columns an analysis takes together, and what is said where they were never measured so."""

from __future__ import annotations

import re

import numpy as np
import polars as pl
import pytest

import dither as dt
from dither.errors import ArgumentError
from dither.synth import combined
from dither.synth.model._several import told
from dither.synth.model._together import apart, taken_together

DRAW = np.random.default_rng(3)
A = DRAW.integers(0, 3, 3000)
B = (A + DRAW.integers(0, 2, 3000)) % 3
ROWS = pl.DataFrame({"a": A, "b": B, "y": A + B + DRAW.integers(0, 2, 3000), "z": B % 2 == 0})
SIZES = {"a": 3, "b": 3, "y": 6}


def slopes(frame):
    """Means, a share, a correlation, and the slopes of y on a and b, which are 1."""
    a, b, y = (frame[name].to_numpy().astype(float) for name in "aby")
    x = np.column_stack([np.ones(len(y)), a, b])
    found = np.linalg.lstsq(x, y, rcond=None)[0]
    return {
        "mean": y.mean() - b.mean(),
        "share": frame["z"].mean(),
        "correlation": np.corrcoef(a, y)[0, 1],
        "slope": found[2],
        "constant": 5,
    }


def found(analysis, **deviations):
    """By name, as one word."""
    together = taken_together(analysis, ROWS, deviations, np.random.default_rng(1))
    return {name: "".join(sorted(columns)) for name, columns in together.items()}


def test_columns_that_matter_to_each_estimate_are_found():
    """A mean of each of two columns takes nothing together."""
    deviations = dict.fromkeys(slopes(ROWS), 0.02) | {"constant": 0.0}
    wanted = {"mean": "", "share": "", "correlation": "ay", "slope": "aby", "constant": ""}
    assert found(slopes, **deviations) == wanted


def test_an_estimate_of_chance_or_of_an_order_takes_all_together():
    """Nothing can be found out of it."""
    draw = np.random.default_rng(5)
    assert found(lambda _: {"x": draw.random()}, x=0.1) == {"x": "abyz"}
    assert found(lambda f: {"x": f["a"].head(10).mean()}, x=0.1) == {"x": "abyz"}
    assert found(lambda _: None, x=0.1) == {"x": "abyz"}


def test_a_failure_on_permuted_rows_is_a_use_of_the_column():
    """As of groups that are not there any more."""

    def careful(frame):
        same = (frame["z"] == (frame["b"] % 2 == 0)).all()
        return {"x": 1.0} if same else None

    assert found(careful, x=0.1) == {"x": "bz"}
    assert found(lambda f: {"x": 1.0 if careful(f) else np.nan}, x=0.1) == {"x": "bz"}


def test_last_digits_are_no_change():
    """Sums in another order differ by rounding, here far more than by doubles' own."""

    def rough(frame):
        return {"x": 1e-9 * float(frame["a"].head(50).sum())}

    assert found(rough, x=1.0) == {"x": ""}


def test_apart_has_pairs_or_all():
    """A table with more columns has those of fewer."""
    assert apart("ab", [("a", "b", "c")]) == ()
    assert apart("a", []) == ()
    assert apart("abc", [("a", "b"), ("c",)]) == (("a", "c"), ("b", "c"))
    assert apart("abc", [("a", "b"), ("b", "c"), ("a", "c", "d")]) == (("a", "b", "c"),)


def test_rare_values_that_were_counted_together_are_named():
    """Of an estimate of that column with another; not of one by itself, nor of one not covered."""
    plain = combined([{"x": 1.0, "mean": 1.0, "far": 1.0}, {"x": 2.0, "mean": 2.0, "far": 2.0}])
    together = {"x": {"a", "b"}, "mean": set(), "far": {"a", "y"}}
    result = told(plain, together, [("a", "b"), ("y",)], ["a", "z"])
    assert result.measured == (None, True, False)
    assert len(result.notes) == 2
    assert result.notes[1].startswith("x: covered but for rare values of a, which")


@pytest.fixture(scope="module")
def session(tmp_path_factory):
    """On these rows."""
    columns = {n: {"values": list(range(k)), "nullable": False} for n, k in SIZES.items()}
    folder = tmp_path_factory.mktemp("together")
    made = {
        "budget": {"epsilon": 100, "delta": "1e-4", "ledger": str(folder / "l.ledger")},
        "tables": {"rows": {"columns": columns | {"z": {"nullable": False}}}},
    }
    with dt.open(made, sources={"rows": ROWS}) as session:
        yield session


@pytest.mark.parametrize(
    ("workload", "state", "words"),
    [
        (["ay", "ab"], False, "slope: not covered, .* measured together: b with y; name"),
        (["ay", "ab", "by"], None, "slope: covered where .* a, b, y were measured two by two"),
        (["aby"], True, None),
    ],
)
def test_an_interval_that_rests_on_no_table_says_so(session, workload, state, words):
    """The slope of b is 1; without the table of b and y the model has it near 0.2."""
    asked = {"method": "workload", "workload": [list(one) for one in workload]}
    model = session.table("rows").synthesize(2, "1e-6", **asked)
    result = model.analyse(slopes, sets=3, seed=1)
    measured = dict(zip(result.names, result.measured, strict=True))
    assert measured == dict.fromkeys(measured, True) | {"slope": state}
    assert result.frame["measured"].to_list() == list(result.measured)
    slope = result.frame.row(by_predicate=pl.col("name") == "slope", named=True)
    # Noise moves it by some 0.03.
    assert (abs(slope["estimate"] - 1) < 0.3) == (state is not False)
    if words is None:
        assert result.notes == ()
    else:
        (note,) = result.notes
        assert re.search(words, note)
        assert note.split()[0] in result.summary()


def test_what_is_found_out_changes_no_number(session):
    """A seed's numbers are those that they were, whatever the analysis reads."""
    model = session.table("rows").synthesize(2, "1e-6", method="independent")
    one = model.analyse(slopes, sets=2, seed=1)
    two = model.analyse(
        lambda f: {k: v for k, v in slopes(f).items() if k != "slope"}, sets=2, seed=1
    )
    assert one.estimates[:3] == two.estimates[:3]
    draw = np.random.default_rng(2)
    model.analyse(slopes, sets=2, seed=draw)
    rest = draw.random()
    draw = np.random.default_rng(2)
    model.analyse(lambda f: f["a"].mean(), sets=2, seed=draw)
    assert draw.random() == rest


def test_a_model_of_noise_alone_is_not_analysed(session):
    """Its intervals would be narrow, and about nobody."""
    model = session.table("rows").synthesize("1/10000", "1e-9")
    assert model.uniform
    with pytest.raises(ArgumentError, match="no analysis of this model is about people"):
        model.analyse(slopes)
