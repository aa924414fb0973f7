"""A description in one charge: its sensitivity, its loss, what it says, and what it refuses."""

from __future__ import annotations

import html
import itertools
from fractions import Fraction as F
from pathlib import Path

import numpy as np
import polars as pl
import pytest

import dither as dt
from dither import inference
from dither.errors import ArgumentError, BoundsError, DitherError, QueryError
from dither.inference.engine._inputs import Bounds, target
from dither.inference.paper._release import (
    OF_POWERS,
    DescriptionRelease,
    ExactDescription,
    exact_description,
    power_sums,
)
from dither.service.publish._forms import made_of
from inference.protected import session_over

ENDS = Bounds(F(-1), F(1))


def described(*rows: tuple[int, float, int]) -> ExactDescription:
    """Rows of a group, a number and a category."""
    group, number, category = (np.array(part) for part in zip(*rows, strict=True))
    return exact_description(group, 2, [(number.astype(float), ENDS, 4)], [(category, 2)])


@pytest.mark.parametrize("gaussian", [False, True])
@pytest.mark.parametrize("neighbours", ["replace", "add-remove"])
def test_no_row_moves_the_vector_further_than_is_claimed(neighbours: str, gaussian: bool) -> None:
    """Every row of a grid, added to a table, or in the place of every other; in both norms."""
    asked = target(1, F(1, 1000), neighbours)
    design = DescriptionRelease(2, (4,), (2,), asked, gaussian=gaussian)
    grid = list(itertools.product((-1, 0, 1), (-9.0, -0.3, 0.55, 1.0, np.nan), (-1, 0, 1)))
    base = (1, 0.2, 0)
    none = design.statistic(described(base))
    alone = [
        [a - b for a, b in zip(design.statistic(described(base, row)), none, strict=True)]
        for row in grid
    ]
    pairs = (
        alone
        if neighbours == "add-remove"
        else [
            [a - b for a, b in zip(one, other, strict=True)]
            for one, other in itertools.combinations(alone, 2)
        ]
    )
    l1 = max(sum(abs(v) for v in moved) for moved in pairs)
    l2 = max(sum(v * v for v in moved) for moved in pairs)
    assert l1 <= design.l1
    assert l2 <= design.l2_squared
    # The claim is used by rows at the bounds, so nothing is thrown away.
    assert l1 == design.l1 or gaussian
    assert l2 >= F(99, 100) * design.l2_squared or not gaussian
    assert design.loss.charge.epsilon <= 1


def test_powers_are_exact_and_come_back() -> None:
    """Sums of whole points to the fourth power, as fractions; and the basis inverted."""
    points = np.array([-(2**20), 2**20, 12345, -7, 0])
    exact = [sum(F(int(p), 2**20) ** k for p in points) for k in range(5)]
    assert list(power_sums(points, 2**20)) == exact
    design = DescriptionRelease(1, (4,), (), target(1, 0, "replace"), sized=False)
    held = ExactDescription([5], [[tuple(exact)]], [np.array([[1, 0, 0, 4]])], [])
    values = np.array([float(v) for v in design.statistic(held)])
    assert OF_POWERS @ values[:5] == pytest.approx([float(e) for e in exact])


def people(n: int, seed: int = 0) -> dict[str, object]:
    """Two arms, a number and a category, some of them missing."""
    rng = np.random.default_rng(seed)
    arm = rng.integers(0, 2, n)
    age = rng.normal(50 + 5 * arm, 10)
    age[::50] = np.nan
    sex = rng.choice(["f", "m"], n, p=[0.3, 0.7])
    return {"arm": np.array(["placebo", "drug"])[arm].tolist(), "age": age, "sex": sex.tolist()}


ASKED = {
    "by": "arm",
    "bounds": {"age": (0, 100)},
    "levels": {"arm": ["placebo", "drug"], "sex": ["f", "m"]},
}


def test_with_next_to_no_noise_it_is_the_sample() -> None:
    """Means, deviations, quartiles, shares and differences, in arms and in all."""
    frame = people(3000)
    found = inference.describe(frame, epsilon=10**6, **ASKED)
    arm, age = np.array(frame["arm"]), np.asarray(frame["age"])
    parts = {"placebo": age[arm == "placebo"], "drug": age[arm == "drug"], "overall": age}
    for group, values in parts.items():
        known = values[~np.isnan(values)]
        for measure, truth, off in (
            ("mean", known.mean(), 1e-3),
            ("sd", known.std(ddof=1), 1e-2),
            ("q25", np.quantile(known, 0.25), 0.5),
            ("median", np.median(known), 0.5),
            ("q75", np.quantile(known, 0.75), 0.5),
        ):
            at, low, high = found.number("age", measure, group=group)
            assert at == pytest.approx(truth, abs=off)
            assert low < truth < high
        women = float(
            np.mean(
                np.array(frame["sex"])[arm == group if group != "overall" else slice(None)] == "f"
            )
        )
        assert found.number("sex", "share", level="f", group=group)[0] == pytest.approx(
            women, abs=1e-3
        )
        assert found.number("n", "n", group=group)[0] == pytest.approx(len(values), abs=0.1)
    one, other = (p[~np.isnan(p)] for p in (parts["placebo"], parts["drug"]))
    standard = (other.mean() - one.mean()) / np.sqrt((one.var(ddof=1) + other.var(ddof=1)) / 2)
    at, low, high = found.number("age", "difference")
    assert at == pytest.approx(standard, abs=2e-3)
    assert low < 0.5 < high


def test_simultaneous_intervals_hold_the_others() -> None:
    """Each is as wide as at a confidence that is divided among all."""
    found = inference.describe(people(500), epsilon=1, bins=16, **ASKED)
    one, all_of = found.intervals(0.95), found.intervals(0.95, simultaneous=True)
    assert (all_of["lower"] <= one["lower"]).all()
    assert (all_of["upper"] >= one["upper"]).all()
    assert one.height == len(found.numbers)


def test_it_is_shown_as_a_table_everywhere() -> None:
    """In a terminal, in notebooks, as LaTeX and HTML; hostile names are text in each."""
    evil = "<b>\\input{x}$&_\n%"
    frame = {"arm": ["a"] * 60, evil: [1.0] * 60}
    found = inference.describe(
        frame, by="arm", bounds={evil: (0, 2)}, levels={"arm": ["a", "</table>"]}, epsilon=1, bins=4
    )
    assert "mean" in found.summary()
    assert "Cost: ε = 1" in found.summary()
    for shown in (found._repr_html_(), found.to_html()):
        assert "<b>\\" not in shown
        assert "</table>" in html.unescape(shown.replace("</table>", "", 1))
    latex = found.to_latex(label="tab:1", caption=evil)
    assert "\\input" not in latex
    assert latex.count("\\\\\n") == latex.count(" & ") // 4
    with pytest.raises(ArgumentError, match="label"):
        found.to_latex(label="}\\input{x}")
    with pytest.raises(ArgumentError, match="caption"):
        found.to_html(caption=3)  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("changed", "why"),
    [
        ({"by": ["arm"]}, "by must be the name"),
        ({"by": "region"}, "levels must name the groups"),
        ({"bounds": {"age": (1, 0)}}, "bounds"),
        ({"bounds": {"weight": (0, 1)}}, "no column 'weight'"),
        ({"bounds": {"age": (0, 1), "sex": (0, 1)}}, "both bounds and levels"),
        ({"levels": {"arm": ["placebo"]}}, "levels"),
        ({"bounds": None, "levels": {"arm": ["placebo", "drug"]}}, "at least one column"),
        ({"bins": 1}, "bins"),
        ({"bounds": [1]}, "mapping"),
        ({"epsilon": 0}, "epsilon"),
        ({"neighbours": "none"}, "neighbours"),
    ],
)
def test_bad_input_is_refused_by_name(changed: dict[str, object], why: str) -> None:
    """Before a row is looked at."""
    with pytest.raises(ArgumentError, match=why):
        inference.describe(people(20), **({"epsilon": 1} | ASKED | changed))  # type: ignore[arg-type]
    with pytest.raises(ArgumentError, match="frame must"):
        inference.describe([1, 2], epsilon=1, bounds={"x": (0, 1)})
    with pytest.raises(ArgumentError, match="one length"):
        inference.describe({"x": [1.0], "y": [1, 2]}, epsilon=1, bounds={"x": (0, 1), "y": (0, 1)})


@pytest.mark.parametrize("neighbours", ["replace", "add-remove"])
def test_hostile_rows_raise_nothing(neighbours: str) -> None:
    """No rows, one, and NaN, infinities and values of every type."""
    for x, g in (([], []), ([3.0], ["a"]), ([np.nan, np.inf, -np.inf, 1e308], ["a", None, 7, [1]])):
        found = inference.describe(
            {"x": x, "g": g},
            by="g",
            bounds={"x": (0, 1)},
            levels={"g": ["a", "b"]},
            epsilon=0.1,
            neighbours=neighbours,
            bins=4,
        )
        assert "nan" not in found.summary().lower()


# --- on protected tables ----------------------------------------------------------------------

COLUMNS = {
    "age": {"type": "integer", "bounds": [0, 100], "bins": [0, 40, 101]},
    "cost": {"bounds": [0, 80], "step": 0.5},
    "real": {"bounds": [-1, 3]},
    "arm": {"values": ["a", "b"]},
    "ill": {"values": [0, 1]},
    "day": {},
}


def visits(n: int = 600) -> pl.DataFrame:
    """People with up to three rows."""
    rng = np.random.default_rng(1)
    return pl.DataFrame(
        {
            "pid": np.arange(n) // 3,
            "age": rng.integers(0, 101, n),
            "cost": np.round(2 * rng.gamma(2, 10, n)) / 2,
            "real": rng.normal(1, 1, n),
            "arm": rng.choice(["a", "b", "other"], n, p=[0.5, 0.4, 0.1]),
            "ill": rng.integers(0, 2, n),
            "day": ["x"] * n,
        }
    )


def test_a_table_is_described_as_its_rows_are(tmp_path: Path) -> None:
    """With next to no noise: a row is a person; one charge; its certificate is of the answer."""
    frame = visits()
    with session_over(frame, tmp_path, columns=COLUMNS) as session:
        asked = session.table("visits").infer(epsilon=10**5).describe("arm")
        assert "moments" in str(asked.explain())
        assert "half-width" in str(asked.preview([100]))
        found = asked.release()
        charges = [e for e in session.ledger.entries() if e.kind == "charge"]
        assert len(charges) == 1
        assert "answer is the one" in str(
            dt.verify(found.certificate, ledger=session.ledger, answer=found)
        )
        kept = frame.filter(pl.col("arm").is_in(["a", "b"]))
        for group, part in (("a", kept.filter(arm="a")), ("overall", kept)):
            for name, off in (("age", 1e-2), ("cost", 1e-2), ("real", 2e-3)):
                values = part[name].cast(pl.Float64).clip(*COLUMNS[name]["bounds"])
                at, *_ = found.number(name, "mean", group=group)
                assert at == pytest.approx(values.mean(), abs=off)
                at, *_ = found.number(name, "sd", group=group)
                assert at == pytest.approx(values.std(), abs=0.1)
            at, *_ = found.number("ill", "share", level="1", group=group)
            assert at == pytest.approx(part["ill"].mean(), abs=1e-3)
        assert found.number("age", "median")[0] == pytest.approx(kept["age"].median(), abs=1)
        assert "day" not in {one.column for one in found.numbers}
        shown = made_of(found).tables[""]
        assert shown.height == len(found.numbers)
        assert shown.columns[-3:] == ["estimate", "estimate_low", "estimate_high"]
    alone = inference.describe(people(20), epsilon=1, bins=4, **ASKED)
    with pytest.raises(ArgumentError, match="is of a frame"):
        made_of(alone)


@pytest.mark.parametrize("name", ["age", "cost", "real"])
def test_a_cell_stands_for_its_middle_exactly(name: str, tmp_path: Path) -> None:
    """Cut off towards the middle of the bounds, every mean would be a cell too near to it."""
    with session_over(visits(), tmp_path, columns=COLUMNS) as session:
        asked = session.table("visits").infer(epsilon=1).describe(columns=[name])
        (attribute,) = asked._numbers
        low, high = attribute.bounds
        for place in {0, 1, attribute.inner // 3, attribute.inner - 1}:
            counts = np.zeros(attribute.inner, dtype=np.int64)
            counts[place] = 3
            centre = sum(attribute.edges[place : place + 2]) / 2
            t = min(max((2 * centre - low - high) / (high - low), -1), 1)
            assert asked._powers(attribute, counts) == tuple(3 * t**power for power in range(5))


def test_of_a_person_with_several_rows_one_counts(tmp_path: Path) -> None:
    """So n is people; and the charge is that which was asked for."""
    with session_over(visits(), tmp_path, columns=COLUMNS, unit=True) as session:
        found = (
            session.table("visits").infer(epsilon=1000).describe(columns=["cost", "ill"]).release()
        )
        assert found.number("n", "n")[0] == pytest.approx(200, abs=1)
        assert found.loss.charge.epsilon <= 1000
        assert any("counts once" in told for told in found.assumptions)
        assert found.people


@pytest.mark.parametrize(
    ("asked", "error"),
    [
        (lambda rows: rows.describe("cost"), QueryError),
        (lambda rows: rows.describe("nowhere"), DitherError),
        (lambda rows: rows.describe(columns=["day"]), BoundsError),
        (lambda rows: rows.describe(columns="age"), ArgumentError),
        (lambda rows: rows.describe("arm", bins=1), ArgumentError),
        (lambda rows: rows.describe(3), ArgumentError),
        (lambda rows: rows.describe("arm", ["arm"]), BoundsError),
    ],
)
def test_tables_refuse_by_name_and_free_of_charge(tmp_path: Path, asked, error) -> None:
    """Nothing is spent on what cannot be described."""
    with session_over(visits(30), tmp_path, columns=COLUMNS) as session:
        with pytest.raises(error):
            asked(session.table("visits").infer(epsilon=1))
        assert session.balance()[0].spent.epsilon == 0
