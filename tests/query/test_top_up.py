"""An answer topped up: as exact as one at the whole rho, for the difference, or refused."""

from __future__ import annotations

import os
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pytest

import dither as dt
from dither.errors import ArgumentError, BudgetError, QueryError
from dither.ledger import OwnerKey

KEYS = [f"k{i:02}" for i in range(24)]
TEXT = "SELECT region, COUNT(*) AS n, SUM(age) AS t FROM visits GROUP BY region"


def people() -> pl.DataFrame:
    """Rows of people who may count in many groups, so that Gaussian noise is chosen."""
    return pl.DataFrame({"pid": list(range(300)) * 2, "region": KEYS * 25, "age": [30, 40] * 300})


def policy(folder: Path, **changes: Any) -> dict[str, Any]:
    """A policy under which counts by region have Gaussian noise."""
    columns = {"region": {"values": KEYS, "nullable": False}, "age": {"bounds": [0, 100]}}
    table = {"unit": "pid", "max_groups": 24, "max_rows": 2, "columns": columns}
    budget = {"epsilon": 4, "delta": "1e-6", "ledger": str(folder / "v.ledger")}
    return {"budget": budget, "tables": {"visits": table}} | changes


@pytest.fixture
def opened(tmp_path: Path) -> Any:
    """A session over them."""
    with dt.open(policy(tmp_path), sources={"visits": people()}) as session:
        yield session


def rho_of(release: dt.Release) -> Fraction:
    """What its certificate says that it cost."""
    return Fraction(release.certificate.content["loss"]["rho"])


def variances(release: dt.Release) -> list[Fraction]:
    """Of the measurements of a release."""
    return [Fraction(m["sigma2"]) for m in release.certificate.content["measurements"]]


def test_the_mean_is_as_exact_as_one_answer_at_the_whole_rho(opened: Any) -> None:
    """Exactly: precisions add up to those of to_rho, and the difference is charged."""
    question = opened.sql(TEXT)
    first = question.release("0.5")
    before = opened.balance()[0].spent
    rho = rho_of(first)
    made = question.top_up(first, to_rho=4 * rho, same_data=True)
    assert opened.balance()[0].spent.rho - before.rho < 3 * rho + Fraction(1, 10**17)
    assert rho_of(made) == 3 * rho
    for one, two in zip(variances(first), variances(made), strict=True):
        # sigma^2 = l2^2 / (2 rho), so that precisions are in the proportion of the rhos.
        assert 1 / one + 1 / two == 4 / one
    for name in ("n", "t"):
        # Below 0 an interval is cut, and wider than its noise.
        wide, less = (
            float((some[f"{name}_upper"] - some[name]).max())
            for some in (r.frame.filter(pl.col(name) > 0) for r in (first, made))
        )
        # Half the deviation; the first is rounded outwards to whole numbers.
        assert less == pytest.approx(wide / 2, rel=0.01)
    tops_up = made.certificate.content["tops_up"]
    assert tops_up["entry"] == first.certificate.content["ledger"]["entry"]
    assert Fraction(tops_up["to_rho"]) == 4 * rho
    assert dt.verify(made.certificate, opened.ledger, answer=made).ok
    assert "by inverse variances" in made.notes[-1]


def test_it_is_the_weighted_mean_of_both_answers(opened: Any, monkeypatch: Any) -> None:
    """Of each group, by the weights of the exact variances."""
    question = opened.sql(TEXT)
    first = question.release("0.5")
    seen: list[Any] = []
    real = type(question)._data

    def watched(*given: Any) -> Any:
        seen.append(real(*given))
        return {**seen[-1]}

    monkeypatch.setattr(type(question), "_data", watched)
    made = question.top_up(first, to_rho=rho_of(first) * Fraction(7, 2), same_data=True)
    (fresh,) = (one for one in seen if one["columns"][0]["values"])
    second = dt.Release({**fresh, "certificate": made.certificate.content})
    one, two = variances(first)[0], variances(made)[0]
    weight = float(two / (one + two))
    assert weight == pytest.approx(1 / 3.5)
    for name in ("n", "t"):
        mean = weight * first.frame[name].to_numpy() + (1 - weight) * second.frame[name].to_numpy()
        assert np.allclose(made.frame[name].to_numpy(), mean)
    assert made.frame["region"].to_list() == KEYS


def test_an_epsilon_stands_for_its_rho_and_a_token_replays(opened: Any) -> None:
    """At the delta of the first answer; the second is charged once."""
    question = opened.sql(TEXT)
    first = question.release("0.5")
    made = question.top_up(first, epsilon=1, same_data=True, token="more")
    before = opened.balance()[0].spent
    again = question.top_up(first, epsilon=1, same_data=True, token="more")
    assert again.frame.equals(made.frame)
    assert opened.balance()[0].spent == before
    assert Fraction(made.certificate.content["tops_up"]["to_rho"]) > 3 * rho_of(first)
    # Less than another answer at epsilon 1 would have cost.
    assert rho_of(made) < rho_of(question.release(1))


def test_what_cannot_be_topped_up_is_refused_by_name(opened: Any, tmp_path: Path) -> None:
    """Nothing is charged: other noise, other outputs, other questions, lower targets."""
    question = opened.sql(TEXT)
    first = question.release("0.5")
    laplace = opened.sql("SELECT COUNT(*) AS n FROM visits")
    one = laplace.release("0.1")
    mean = opened.sql(TEXT.replace("SUM(age)", "AVG(age)"))
    two = mean.release("0.1")
    sorted_ = question.order_by("n")
    three = sorted_.release("0.1")
    found = opened.sql(TEXT, discover=True)
    four = found.release("0.1")
    topped = question.top_up(first, to_rho=2 * rho_of(first), same_data=True)
    before = opened.balance()[0].spent
    refused: list[tuple[Any, Any, dict[str, Any], type[Exception], str]] = [
        (laplace, one, {"to_rho": 1}, QueryError, "Gaussian noise"),
        (mean, two, {"to_rho": 1}, QueryError, "t: only counts and sums"),
        (sorted_, three, {"to_rho": 1}, QueryError, "ORDER BY"),
        (found, four, {"to_rho": 1}, QueryError, "keys that are discovered"),
        (question, first, {"to_rho": rho_of(first)}, ArgumentError, "to_rho must be above"),
        (question, first, {}, ArgumentError, "give to_rho, or epsilon"),
        (question, first, {"to_rho": 1, "epsilon": 1}, ArgumentError, "give to_rho, or epsilon"),
        (question, first, {"to_rho": -1}, ArgumentError, "to_rho must be above 0"),
        (question, first, {"to_rho": "x"}, ArgumentError, "to_rho"),
        (question, topped, {"to_rho": 1}, ArgumentError, "topped up already"),
        (question, one, {"to_rho": 1}, ArgumentError, "to this very question"),
        (question, 3, {"to_rho": 1}, ArgumentError, "release must be what"),
        (question, first, {"to_rho": 50}, BudgetError, "Top up to less"),
    ]
    for asked, release, target, kind, words in refused:
        with pytest.raises(kind, match=words):
            asked.top_up(release, same_data=True, **target)
    # An answer that somebody else made up is none of this ledger.
    forged = dt.Release(
        {
            **first._content,
            "certificate": first.certificate.content
            | {"ledger": first.certificate.content["ledger"] | {"hash": "0" * 64}},
        }
    )
    with pytest.raises(ArgumentError, match="an answer of this ledger"):
        question.top_up(forged, to_rho=1, same_data=True)
    with pytest.raises(ArgumentError, match=r"nothing says whether table 'visits' is as it was"):
        question.top_up(first, to_rho=2 * rho_of(first))
    assert opened.balance()[0].spent == before


def test_data_that_moved_are_another_question(tmp_path: Path) -> None:
    """As the versions in signed certificates say; no word of the asker's goes before them."""
    key = OwnerKey.make()
    file = tmp_path / "visits.parquet"
    people().write_parquet(file)
    with dt.open(policy(tmp_path), sources={"visits": file}, key=key) as session:
        question = session.sql(TEXT)
        first = question.release("0.5")
        rho = rho_of(first)
        made = question.top_up(first, to_rho=2 * rho)
        assert dt.verify(made.certificate, key=key, answer=made).ok
        os.utime(file, ns=(1, 1))
        for same in (False, True):
            with pytest.raises(ArgumentError, match="'visits' changed since"):
                question.top_up(first, to_rho=3 * rho, same_data=same)


def test_blocks_say_why_nobody_knows_their_version(tmp_path: Path) -> None:
    """A version of the table would tell of other blocks; who knows better says so."""
    made = policy(tmp_path)
    days = [f"2024-0{1 + i % 3}-05" for i in range(600)]
    made["tables"]["visits"]["block"] = {"column": "day", "every": "month"}
    made["tables"]["visits"]["columns"]["day"] = {"type": "date"}
    made["budget"]["per"] = "block"
    frame = people().with_columns(day=pl.Series(days).str.to_date())
    frame.write_parquet(tmp_path / "visits.parquet")
    sources, key = {"visits": tmp_path / "visits.parquet"}, OwnerKey.make()
    with dt.open(made, sources=sources, key=key) as session:
        question = session.sql(
            TEXT.replace(" GROUP", " WHERE MONTH(day) = 2 AND YEAR(day) = 2024 GROUP")
        )
        first = question.release("0.5")
        with pytest.raises(ArgumentError) as told:
            question.top_up(first, to_rho=2 * rho_of(first))
        for said in (
            "the rows of table 'visits' that this question reads are as they were",
            "It reads 2024-02, and a certificate of some blocks holds no version",
            "say same_data=True",
        ):
            assert said in str(told.value)
        made_better = question.top_up(first, to_rho=2 * rho_of(first), same_data=True)
        assert rho_of(made_better) == rho_of(first)


def test_a_unit_of_several_rows_is_charged_as_a_group(tmp_path: Path) -> None:
    """What rows lose is charged for all that one unit may have."""
    made = policy(tmp_path)
    made["tables"]["visits"] = {
        "columns": made["tables"]["visits"]["columns"],
    }
    made["units"] = {"person": {"rows": {"visits": 3}}}
    text = ", ".join(f"SUM(age * {i}) AS t{i}" for i in range(1, 40))
    with dt.open(made, sources={"visits": people()}) as session:
        question = session.sql(f"SELECT {text} FROM visits")
        first = question.release(1)
        rho = rho_of(first)
        topped = question.top_up(first, to_rho=2 * rho, same_data=True)
        assert rho_of(topped) == rho
        assert variances(topped) == variances(first)
