"""Survival, rates and ratios over strata on protected tables: one charge, the same numbers."""

from __future__ import annotations

import copy
import pickle
from collections.abc import Callable
from typing import Any

import numpy as np
import polars as pl
import pytest

from dither import inference
from dither.errors import DitherError
from inference.protected import session_over

COLUMNS: dict[str, Any] = {
    "years": {"bounds": [0, 10], "nullable": False},
    "months": {"type": "integer", "bounds": [0, 120], "nullable": False},
    "died": {"nullable": False},
    "arm": {"values": ["placebo", "drug"], "nullable": False},
    "age": {"bounds": [20, 90], "bins": [20, 50, 90], "nullable": False},
    "falls": {"type": "integer", "bounds": [0, 5], "nullable": False},
    "ill": {"values": [0, 1], "nullable": False},
    "free": {},
    "low": {"bounds": [-1, 1]},
}
BANDS: dict[Any, float] = {"[20, 50)": 1, "[50, 90]": 3}


def cohort(n: int = 2000) -> pl.DataFrame:
    """People who die, fall or are lost."""
    rng = np.random.default_rng(1)
    drug, age = rng.random(n) < 0.5, rng.integers(20, 90, n)
    death, left = rng.exponential(np.where(drug, 6, 4)), np.minimum(rng.uniform(0, 15, n), 10)
    years = np.minimum(death, left)
    return pl.DataFrame(
        {
            "pid": np.arange(n),
            "years": years,
            "months": np.ceil(years * 12).astype(int),
            "died": death <= left,
            "arm": np.where(drug, "drug", "placebo"),
            "age": age,
            "falls": rng.poisson(0.1 * years * (1 + (age >= 50))),
            "ill": (rng.random(n) < 0.2 + 0.1 * drug).astype(int),
            "free": rng.normal(0, 1, n),
            "low": rng.normal(0, 1, n),
        }
    )


ASKED: dict[str, Callable[[Any], Any]] = {
    "kaplan_meier": lambda q: q.kaplan_meier("years", "died", "arm", bins=8),
    "kaplan_meier_end": lambda q: q.kaplan_meier("months", "died", bins=12, censored="end"),
    "logrank_test": lambda q: q.logrank_test("years", "died", "arm", bins=8, draws=200),
    "rate": lambda q: q.rate("falls", "years", "arm", per=100),
    "rate_of_condition": lambda q: q.rate("died", "years", family="negative-binomial"),
    "rate_ratio": lambda q: q.rate_ratio("falls", "years", "arm"),
    "standardised_rate": lambda q: q.standardised_rate("falls", "years", "age", BANDS),
    "standardised_ratio": lambda q: q.standardised_ratio(
        "falls", "years", "age", reference={"[20, 50)": 0.1, "[50, 90]": 0.2}
    ),
    "of_two": lambda q: q.standardised_ratio("falls", "years", "age", weights=BANDS, by="arm"),
    "mantel_haenszel": lambda q: q.mantel_haenszel("ill", "arm = 'drug'", "age"),
}
"""By name."""


def in_memory(name: str, frame: pl.DataFrame) -> Any:
    """The same of the arrays."""
    row = {c: frame[c].to_numpy() for c in frame.columns}
    sure: dict[str, Any] = {"epsilon": 10**5}
    arm: dict[str, Any] = {"by": row["arm"], "levels": ["placebo", "drug"]}
    band = np.where(row["age"] < 50, "[20, 50)", "[50, 90]")
    fall = row["falls"], row["years"]
    timed: dict[str, Any] = {"most_events": 5, "most_time": 10} | sure
    match name:
        case "kaplan_meier":
            ends: dict[str, Any] = {"bounds": (0, 10), "bins": 8}
            return inference.kaplan_meier(row["years"], row["died"], **arm, **ends, **sure)
        case "kaplan_meier_end":
            ends = {"bounds": (0, 120), "bins": 12, "censored": "end"}
            return inference.kaplan_meier(row["months"], row["died"], **ends, **sure)
        case "logrank_test":
            ends = {"bounds": (0, 10), "bins": 8}
            return inference.logrank_test(row["years"], row["died"], **arm, **ends, **sure)
        case "rate":
            return inference.rate(*fall, per=100, **arm, **timed)
        case "rate_of_condition":
            kept: dict[str, Any] = {"most_time": 10, "family": "negative-binomial"} | sure
            return inference.rate(row["died"], row["years"], **kept)
        case "rate_ratio":
            return inference.rate_ratio(*fall, **arm, **timed)
        case "standardised_rate":
            return inference.standardised_rate(*fall, band, weights=BANDS, **timed)
        case "standardised_ratio":
            rates: dict[Any, float] = {"[20, 50)": 0.1, "[50, 90]": 0.2}
            return inference.standardised_ratio(*fall, band, reference=rates, **timed)
        case "of_two":
            return inference.standardised_ratio(*fall, band, weights=BANDS, **arm, **timed)
    bands: dict[str, Any] = {"categories": list(BANDS)}
    return inference.mantel_haenszel(row["ill"], row["arm"] == "drug", band, **bands, **sure)


@pytest.mark.parametrize("name", ASKED)
def test_a_table_gives_what_arrays_give(name: str, tmp_path: Any) -> None:
    """With next to no noise the same numbers, with a certificate; and one charge for each."""
    frame = cohort()
    with session_over(frame, tmp_path, columns=COLUMNS) as session:
        found = ASKED[name](session.table("visits").infer(epsilon=10**5)).release()
        assert session.balance()[0].spent.epsilon == 10**5
    again = in_memory(name, frame)
    assert found.certificate is not None
    assert found.loss.charge.epsilon <= 10**5
    if name == "logrank_test":
        assert found.statistic == pytest.approx(again.statistic, rel=0.25)
        return
    np.testing.assert_allclose(found.estimate, again.estimate, rtol=2e-3)
    np.testing.assert_allclose(found.interval(0.9), again.interval(0.9), rtol=0.03, atol=1e-3)


@pytest.mark.parametrize("name", ["kaplan_meier", "of_two", "mantel_haenszel"])
def test_people_with_several_rows_count_once(name: str, tmp_path: Any) -> None:
    """Everybody's rows twice over, under a unit: as many people, at the noise of one row each."""
    frame = cohort(500)
    twice = pl.concat([frame, frame])
    with session_over(twice, tmp_path, columns=COLUMNS, unit=True) as session:
        found = ASKED[name](session.table("visits").infer(epsilon=10**5)).release()
    assert found.people
    once = in_memory(name, frame)
    np.testing.assert_allclose(found.estimate, once.estimate, rtol=5e-3)


@pytest.mark.parametrize(
    "ask",
    [
        lambda q: q.logrank_test("years", "died", "arm", bins=4, draws=100),
        lambda q: q.test_independence("ill", "arm", draws=100),
        lambda q: q.f_oneway("years", "arm", draws=100),
    ],
    ids=["log-rank", "independence", "variances"],
)
def test_a_release_that_is_read_again_has_the_same_pvalue(ask: Any, tmp_path: Any) -> None:
    """Else whoever asks again and again would wait for a small one; another's null is another."""
    with session_over(cohort(200), tmp_path, columns=COLUMNS) as session:
        question = ask(session.table("visits").infer(epsilon=1))
        found = [question.release(token=token) for token in ("first", "first", "second")]
    assert found[0].pvalue == found[1].pvalue
    assert str(found[0]) == str(found[1])
    assert found[0].statistic != found[2].statistic


UNKNOWN = {
    "rate": lambda q, of: q.rate(of, "years"),
    "rate_by": lambda q, of: q.rate(of, "years", "arm"),
    "rate_ratio": lambda q, of: q.rate_ratio(of, "years", "arm"),
    "standardised_rate": lambda q, of: q.standardised_rate(
        of, "years", "arm", {"placebo": 1, "drug": 1}
    ),
    "kaplan_meier": lambda q, of: q.kaplan_meier("years", of, "arm", bins=4),
    "mantel_haenszel": lambda q, of: q.mantel_haenszel(of, "years > 2", "arm"),
    "weighted_proportion": lambda q, of: q.weighted_proportion(of, "years"),
}


@pytest.mark.parametrize("of", ["ill", "NOT no", "word = 'ill'"])
@pytest.mark.parametrize("name", UNKNOWN)
def test_rows_of_unknown_events_have_no_time_either(name: str, of: str, tmp_path: Any) -> None:
    """Under a condition as under a number: they are left out, as arrays leave them out."""
    frame = cohort(600).with_columns(years=pl.lit(4.0))
    known = pl.int_range(pl.len()) % 3 > 0
    frame = frame.with_columns(ill=pl.when(known).then(pl.col("ill")))
    ill = pl.col("ill") == 1
    word = pl.when(ill).then(pl.lit("ill")).when(~ill).then(pl.lit("well"))
    frame = frame.with_columns(no=~ill, word=word)
    columns = COLUMNS | {"ill": {"values": [0, 1]}, "no": {}}
    columns |= {"word": {"values": ["ill", "well"]}}
    found = []
    for rows in (frame, frame.filter(known)):
        folder = tmp_path / str(rows.height)
        folder.mkdir()
        with session_over(rows, folder, columns=columns) as session:
            question = UNKNOWN[name](session.table("visits").infer(epsilon=10**6), of)
            found.append(question.release().estimate)
    np.testing.assert_allclose(*found, rtol=1e-2)


@pytest.mark.parametrize("neighbours", ["add_remove", "replace_one"])
def test_previews_say_what_is_reached_and_cost_nothing(neighbours: str, tmp_path: Any) -> None:
    """More people reach more; and nothing is charged, nor is it by an explanation."""
    with session_over(cohort(50), tmp_path, columns=COLUMNS, neighbours=neighbours) as session:
        asked = session.table("visits").infer(epsilon=1)
        for name in ("kaplan_meier", "logrank_test", "rate_ratio", "mantel_haenszel"):
            question = ASKED[name](asked)
            found = question.preview([300, 100_000])
            assert found.widths[0] > found.widths[1] > 0
            assert "ε = 1" in str(found)
            assert "add or remove" in str(question.explain()) or neighbours == "replace_one"
        assert session.balance()[0].spent.epsilon == 0


def test_what_cannot_be_asked_is_refused_by_name(tmp_path: Any) -> None:
    """Before anything is charged, with what would work."""
    with session_over(cohort(50), tmp_path, columns=COLUMNS) as session:
        q = session.table("visits").infer(epsilon=1)
        for ask, told in (
            (lambda: q.kaplan_meier("free", "died"), "needs bounds"),
            (lambda: q.kaplan_meier("arm", "died"), "is not a number"),
            (lambda: q.kaplan_meier("years", "age"), "neither true nor false"),
            (lambda: q.kaplan_meier("years", "died", "free"), "no declared"),
            (lambda: q.kaplan_meier("years", "died", "age"), "bins and no declared"),
            (lambda: q.kaplan_meier("years", "died", bins=1), "bins"),
            (lambda: q.logrank_test("years", "died", "arm", censored="late"), "censored"),
            (lambda: q.rate("low", "years"), "bounds from 0 on"),
            (lambda: q.rate("falls", "low"), "bounds from 0 on"),
            (lambda: q.rate("arm", "years"), "neither true nor false"),
            (lambda: q.rate_ratio("falls", "years", "arm", levels=("a", "b")), "not a declared"),
            (lambda: q.standardised_rate("falls", "years", "age", {"old": 1}), "each stratum"),
            (lambda: q.standardised_ratio("falls", "years", "age"), "one of the two"),
            (
                lambda: q.standardised_ratio("falls", "years", "age", weights=BANDS),
                "two groups",
            ),
            (lambda: q.mantel_haenszel("ill", "age", "arm"), "neither true nor false"),
            (lambda: q.mantel_haenszel("ill", "died", "free"), "no declared levels"),
        ):
            with pytest.raises(DitherError, match=told):
                ask()
        assert session.balance()[0].spent.epsilon == 0


def test_whatever_noise_made_of_the_sums_is_read(tmp_path: Any) -> None:
    """They are paid for: nothing raises, and no summary holds what is no number."""
    rng = np.random.default_rng(2)
    sums = [np.zeros(40), np.full(40, -1e12), np.full(40, 1e12), rng.normal(0, 1e6, 40)]
    with session_over(cohort(20), tmp_path, columns=COLUMNS) as session:
        q = session.table("visits").infer(epsilon=1)
        for name in ("kaplan_meier", "logrank_test", "rate_of_condition", "of_two"):
            question = ASKED[name](q)
            design, laws = question._design, question._laws
            for seen in (*sums, *(rng.permutation(x) for x in rng.normal(0, 99, (2, 40)))):
                known = design.expected(100)
                some = {key: np.resize(seen, old.size) for key, old in known.values.items()}
                found = design.read(type(known)(some), laws, question.loss)
                assert "nan" not in found.summary().lower()


def test_columns_may_be_named_as_sums_are_and_conditions_share_a_column(tmp_path: Any) -> None:
    """What is counted by never has the name of what is counted."""
    frame = cohort(400).rename({"arm": "y", "age": "n"})
    columns = {{"arm": "y", "age": "n"}.get(name, name): facts for name, facts in COLUMNS.items()}
    with session_over(frame, tmp_path, columns=columns) as session:
        q = session.table("visits").infer(epsilon=10**5)
        asked = (
            q.mantel_haenszel("months > 60", "months > 12", "n"),
            q.mantel_haenszel("ill", "y = 'drug'", "n"),
            q.rate("falls", "years", "y"),
            q.rate_ratio("falls", "years", "y", levels=("drug", "placebo")),
            q.standardised_rate("falls", "years", "n", BANDS, by="y"),
            q.f_oneway("years", "n"),
            q.difference("years", by="y"),
            q.test_independence("months > 60", "months > 12"),
            q.goodness_of_fit("n"),
        )
        for question in asked:
            assert question.explain()
        found = asked[2].release()
        again = inference.rate(
            frame["falls"], frame["years"], by=frame["y"], levels=["placebo", "drug"],
            most_events=5, most_time=10, epsilon=10**6,
        )  # fmt: skip
        np.testing.assert_allclose(found.estimate, again.estimate, rtol=1e-3)
        assert asked[0].release().estimate > 0


def test_all_that_has_a_preview_is_compared(tmp_path: Any) -> None:
    """What each would reach, before anything is spent."""
    with session_over(cohort(50), tmp_path, columns=COLUMNS) as session:
        q = session.table("visits").infer(epsilon=1, delta=1e-6)
        found = q.compare(
            {
                "curve": q.kaplan_meier("years", "died"),
                "log-rank": q.logrank_test("years", "died", "arm"),
                "rate": q.rate("falls", "years"),
                "odds": q.mantel_haenszel("ill", "died", "age"),
                "table 1": q.describe("arm"),
            }
        )
        assert (found.frame["reaches"] > 0).all()
        with pytest.raises(DitherError, match="preview it by itself"):
            q.compare({"slope": q.logistic_regression("ill ~ years")})
        assert session.balance()[0].spent.epsilon == 0


@pytest.mark.parametrize("name", ASKED)
def test_every_result_can_be_copied_and_pickled(name: str, tmp_path: Any) -> None:
    """With its certificate, and the same errors."""
    with session_over(cohort(300), tmp_path, columns=COLUMNS) as session:
        found = ASKED[name](session.table("visits").infer(epsilon=100)).release()
        for _ in range(2):
            for twin in (pickle.loads(pickle.dumps(found)), copy.deepcopy(found)):
                assert twin.summary() == found.summary()
                assert twin.certificate == found.certificate


ENDED: dict[str, Callable[[Any, str], Any]] = {
    "rate": lambda q, died: q.rate(died, "years"),
    "ratio": lambda q, died: q.rate_ratio(died, "years", "arm"),
    "mantel_haenszel": lambda q, died: q.mantel_haenszel(died, "arm = 'drug'", "age"),
    "of_number": lambda q, ill: q.mantel_haenszel("died", ill, "age"),
    "survival": lambda q, died: q.kaplan_meier("years", died, "arm", bins=8),
    "proportion": lambda q, died: q.proportion(died),
    "weighted": lambda q, died: q.weighted_proportion(died, "months"),
    "strata": lambda q, died: q.rate("falls", "years", died),
}
"""By name: a question of a condition."""


@pytest.mark.parametrize("unit", [False, True])
@pytest.mark.parametrize("name", ENDED)
def test_a_condition_may_end_as_sql_does(name: str, unit: bool, tmp_path: Any) -> None:
    """In a comment, or in what ends a statement: it is the same question, wherever it is put into
    a longer one. A column has its own name, which SQL would want in quotes."""
    frame = cohort(50).with_columns(pl.col("died").alias("has died"))
    columns = COLUMNS | {"has died": {"nullable": False}}
    whole = "ill" if name == "of_number" else "months > 60"
    if unit and name not in ("proportion", "weighted", "mantel_haenszel"):
        pytest.skip("the same way")
    with session_over(frame, tmp_path, columns=columns, unit=unit) as session:
        asked = session.table("visits").infer(epsilon=1)

        def plan(condition: str) -> Any:
            return ENDED[name](asked, condition)._question._plan.job

        wanted = plan(whole)
        for end in (" -- so", " /* so */", ";", " ; -- so", "\n", " -- so\n;\n"):
            assert plan(f"{whole}{end}") == wanted
        assert plan(f"/* so */ {whole}") == wanted
        if name != "of_number":
            assert plan("has died") == plan('"has died" -- so')
            assert plan("has died") == plan('"has died"')
