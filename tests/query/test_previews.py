"""Previews and budgets: what is promised before is what comes after."""

from __future__ import annotations

from fractions import Fraction

import numpy as np
import polars as pl
import pytest

import dither as dt
from dither.errors import ArgumentError, BoundsError, QueryError
from dither.query._preview import half_widths
from query.query_data import policy, rows_policy


def test_counts_and_sums_are_exactly_as_wide_as_previewed(session):
    """Their half-widths depend on no data."""
    question = session.sql(
        "SELECT region, COUNT(*) AS n, SUM(age) AS s FROM visits GROUP BY region"
    )
    promised = question.preview(2).widths
    frame = question.release(2).frame
    for name, half in (("n", promised["n"][0]), ("s", promised["s"][0])):
        widths = (frame[f"{name}_upper"] - frame[name]).to_list()
        # Of a sum of whole numbers the value is rounded, and the interval outwards.
        assert all(abs(w - half) <= 1.5 for w in widths)


def test_means_are_at_most_as_wide_as_previewed(tmp_path):
    """The preview takes the mean at the far end of its bounds, where its interval is widest.

    Groups of about 1000 rows, previewed at 900: the noise of the count (deviation below 3) cannot
    bring a group below that but with odds under 1e-100.
    """
    draw = np.random.default_rng(5)
    frame = pl.DataFrame({"g": ["a", "b", "c", "d"] * 1000, "x": draw.uniform(0, 100, 4000)})
    made = {
        "budget": {"epsilon": 9, "ledger": str(tmp_path / "l")},
        "tables": {
            "t": {
                "columns": {
                    "g": {"values": ["a", "b", "c", "d"], "nullable": False},
                    "x": {"bounds": [0, 100], "nullable": False},
                }
            }
        },
    }
    with dt.open(made, sources={"t": frame}) as opened:
        question = opened.sql(
            "SELECT g, AVG(x) AS m, MEDIAN(x) AS q, STDDEV(x) AS d FROM t GROUP BY g"
        )
        promised = question.preview(3, sizes=[900]).widths
        found = question.release(3).frame
    mean = ((found["m_upper"] - found["m_lower"]) / 2).to_numpy()
    assert (mean <= promised["m"][0]).all()
    assert (mean >= promised["m"][0] / 4).all()
    # Spread evenly over the bounds, as the preview takes them for quantiles and deviations.
    for name in ("q", "d"):
        half = ((found[f"{name}_upper"] - found[f"{name}_lower"]) / 2).to_numpy()
        assert (half <= 3 * promised[name][0]).all()
        assert (half >= promised[name][0] / 3).all()


@pytest.mark.parametrize(
    ("select", "wanted"),
    [
        ("COUNT(*) AS n", 20),
        ("AVG(cost) AS m, COUNT(*) AS n", {"m": 50}),
        ("AVG(cost) AS m, COUNT(*) AS n", {"m": 50, "n": 5}),
        ("SUM(age) AS s", 1000),
        ("MEDIAN(age) AS q", {"q": 2}),
    ],
)
def test_the_budget_for_a_width_is_the_least(session, select, wanted):
    """At the answer every width is reached; one grid step below, one is not."""
    question = session.sql(f"SELECT {select} FROM visits")
    best = question.budget_for(wanted, size=2000)
    asked = (
        wanted if isinstance(wanted, dict) else dict.fromkeys(question.preview(1).widths, wanted)
    )

    def reached(epsilon):
        found = half_widths(question._noise_plan(epsilon, None), [2000], 0.95)
        return all(found[name][0] <= width for name, width in asked.items())

    assert reached(best)
    digits = len(str(best.numerator * 1000 // best.denominator).lstrip("0"))
    below = best - Fraction(10) ** (digits - 6)
    assert not reached(below)


def test_a_width_out_of_reach_is_refused(session):
    """Below the rounding of a lattice no epsilon helps."""
    question = session.sql("SELECT MEDIAN(age) AS q FROM visits")
    with pytest.raises(ArgumentError, match="not reached with 10 rows"):
        question.budget_for("0.000001", size=10)


def test_the_preview_reads_nothing_and_costs_nothing(session, monkeypatch):
    """No engine, no charge."""
    monkeypatch.setattr(session._engine, "run", lambda *_: pytest.fail("the engine ran"))
    entries = len(session.ledger.entries())
    question = session.sql("SELECT region, AVG(cost) AS m FROM visits GROUP BY region")
    question.preview(1)
    question.explain(1)
    question.budget_for(10)
    assert len(session.ledger.entries()) == entries


def test_the_frame_of_a_preview(session):
    """Sizes, outputs, odds of being missed; also where an output is called so."""
    question = session.sql("SELECT city, COUNT(*) AS size, AVG(age) AS m FROM visits GROUP BY city")
    frame = question.preview(1, sizes=[10, 100]).frame
    assert frame.columns == ["size_2", "size", "m", "missed"]
    assert frame["size_2"].to_list() == [10, 100]
    assert frame["missed"][0] > frame["missed"][1]


def test_more_budget_is_never_wider(session):
    """Half-widths fall with epsilon and, for means, with the size of the group."""
    question = session.sql("SELECT COUNT(*) AS n, AVG(cost) AS m, MEDIAN(age) AS q FROM visits")
    narrow, wide = question.preview(2), question.preview(1)
    for name in ("n", "m", "q"):
        assert all(a <= b for a, b in zip(narrow.widths[name], wide.widths[name], strict=True))
        assert sorted(narrow.widths[name], reverse=True) == list(narrow.widths[name])


@pytest.mark.parametrize(
    ("use", "words"),
    [
        (lambda q: q.preview(0), "epsilon must be above 0"),
        (lambda q: q.preview(-1), "epsilon must be above 0"),
        (lambda q: q.preview(float("nan")), "epsilon must be finite"),
        (lambda q: q.preview(float("inf")), "epsilon must be finite"),
        (lambda q: q.preview("1e999999999"), "epsilon must have an exponent"),
        (lambda q: q.preview("many"), "epsilon must be a finite number"),
        (lambda q: q.preview(True), "epsilon must be a finite number"),
        (lambda q: q.preview(1, 1), r"delta must lie in \[0, 1\)"),
        (lambda q: q.preview(1, -0.5), r"delta must lie in \[0, 1\)"),
        (lambda q: q.preview(1, sizes=[]), "sizes: .* whole number of at least 1"),
        (lambda q: q.preview(1, sizes=[0]), "sizes: "),
        (lambda q: q.preview(1, sizes=[1.5]), "sizes: "),
        (lambda q: q.preview(1, confidence=1), "confidence must be a number strictly between"),
        (lambda q: q.preview(1, confidence="high"), "confidence must be a number"),
        (lambda q: q.release(1, confidence=0), "confidence must be a number"),
        (lambda q: q.release(0), "epsilon must be above 0"),
        (lambda q: q.budget_for(0), "half_width must be above 0"),
        (lambda q: q.budget_for({"m": 1}), "no output 'm' with a half-width; known: 'n'"),
        (lambda q: q.budget_for(1, size=0), "size: "),
        (lambda q: q.budget_for(1, confidence=2), "confidence"),
    ],
)
def test_arguments_are_checked(session, use, words):
    """By name, and nothing is spent."""
    question = session.sql("SELECT COUNT(*) AS n FROM visits")
    with pytest.raises(ArgumentError, match=words):
        use(question)
    assert session.balance()[0].spent.epsilon == 0


@pytest.mark.parametrize("epsilon", ["0.001", "1000", "1e6"])
def test_extreme_budgets_are_priced(session, epsilon):
    """No hang and no crash at either end."""
    question = session.sql(
        "SELECT region, COUNT(*) AS n, AVG(cost) AS m FROM visits GROUP BY region"
    )
    assert all(w >= 0 for w in question.preview(epsilon).widths["n"])


def test_noise_too_wide_to_draw_is_refused(session):
    """The samplers are proven up to a scale; beyond it nothing is charged."""
    question = session.sql("SELECT SUM(cost) AS s FROM visits")
    with pytest.raises(BoundsError, match=r"too wide to draw.*raise epsilon"):
        question.release("1e-12")
    assert session.balance()[0].spent.epsilon == 0


def test_quantiles_of_very_many_groups_are_refused(session):
    """Their trees would not fit into memory; the fix is named before anything is charged."""
    grouped = session.table("visits").group_by(c="FLOOR(cost / 2)", a="FLOOR(age / 2)")
    question = grouped.agg(q=dt.median("cost"))
    with pytest.raises(QueryError, match="group by fewer or coarser keys"):
        question.release(1)


def test_a_pure_budget_cannot_discover(tmp_path, frames):
    """The refusal comes before anything is spent and says what to do."""
    with dt.open(policy(tmp_path, budget={"delta": 0}), sources=frames) as pure:
        question = pure.sql("SELECT city, COUNT(*) AS n FROM visits GROUP BY city")
        for use in (question.preview, question.release, question.explain):
            with pytest.raises(ArgumentError, match=r"pure budget: declare them public.*a delta"):
                use(1)
        with pytest.raises(ArgumentError, match="the policy's budget is pure"):
            question.release(1, delta=1e-9)
        assert pure.balance()[0].spent.epsilon == 0


def test_replace_one_costs_about_twice(tmp_path, frames):
    """In a grouped count two units change two cells; alone under one key, one cell."""
    made = rows_policy(tmp_path, delta=0)
    with dt.open(made, sources=frames) as opened:
        text = "SELECT region, COUNT(*) AS n FROM visits GROUP BY region"
        single = opened.sql(text).preview(1).widths["n"][0]
    made = rows_policy(tmp_path, delta=0, neighbours="replace_one", ledger=str(tmp_path / "other"))
    with dt.open(made, sources=frames) as opened:
        double = opened.sql(text).preview(1).widths["n"][0]
        alone = (
            opened.sql("SELECT COUNT(*) AS n FROM visits WHERE age > 3").preview(1).widths["n"][0]
        )
    assert 1.8 * single <= double <= 2.2 * single + 1
    assert alone == single
