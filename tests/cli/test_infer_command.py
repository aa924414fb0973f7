"""``dither infer``: what it prints, writes, refuses and spends."""

from __future__ import annotations

import json
from fractions import Fraction
from pathlib import Path

import polars as pl
import pytest

import dither as dt

ANA = ("--analyst", "ana", "--epsilon", "0.2")


def spent() -> Fraction:
    """What the ledger has charged so far."""
    with dt.open("dither.toml", analyst="ana") as session:
        return session.balance()[0].spent.epsilon


def test_a_release_is_one_charge_with_its_files(run, folder: Path) -> None:
    """The summary on the screen, a picture, and a certificate that the ledger knows."""
    files = ("--plot", "a.png", "--certificate", "a.json")
    found = run("infer", "mean(cost)", *ANA, "--confidence", "0.9", *files)
    assert found.exit_code == 0, found.output
    assert "mean of cost" in found.output
    assert "At 90 %" in found.output
    assert spent() == Fraction(1, 5)
    assert (folder / "a.png").stat().st_size > 1000
    assert run("verify", "a.json").exit_code == 0


@pytest.mark.parametrize(
    "question",
    [
        "proportion(cost > 30)",
        "difference(cost, region)",
        "independence(region, cost > 30)",
        "fit(region)",
        "median(cost)",
        "quantile(cost, 0.9)",
        "proportion(region IN ('north', 'south'))",
    ],
)
def test_results_as_json(run, question: str) -> None:
    """Numbers, what they rest on, and the certificate; the same again under one token."""
    line = ("infer", question, *ANA, "--json", "--token", "monday")
    found = json.loads(run(*line).stdout)
    assert 0 <= found["pvalue"] <= 1
    assert found["certificate"]["loss"]["epsilon"] == "1/5"
    assert json.loads(run(*line).stdout) == found
    assert spent() == Fraction(1, 5)


@pytest.mark.parametrize(
    "question",
    [
        "kaplan_meier(cost, region = 'north', bins=4)",
        "kaplan_meier(cost, region = 'north', region, bins=4, censored=end)",
        "rate(cost, cost, per=100)",
        "rate(cost > 30, cost, region, family=negative-binomial)",
        "rate_ratio(cost, cost, region)",
        "standardised_rate(cost, cost, region, weights='north: 1, south: 2')",
        "standardised_ratio(cost, cost, region, reference='north: 0.5, south: 1')",
        "mantel_haenszel(cost > 30, cost > 10, region, measure=risk)",
        "weighted_mean(cost, cost)",
        "weighted_proportion(region = 'north', cost)",
        "weighted_total(cost, cost)",
        "describe(region)",
        "describe(region, cost)",
        "describe()",
        "logistic_regression(ill ~ cost)",
    ],
)
def test_what_a_cohort_study_asks(run, folder: Path, question: str) -> None:
    """By the names that they have in Python; numbers, or tables, of one charge each."""
    text = (folder / "dither.toml").read_text().replace("delta = 1e-6", "delta = 1e-5")
    (folder / "dither.toml").write_text(text + "ill = { nullable = false }\n")
    pl.read_parquet("visits.parquet").with_columns(ill=pl.col("cost") > 30).write_parquet(
        "visits.parquet"
    )
    line = ("infer", question, *ANA, "--token", "monday", "--delta", "1e-6")
    shown = run(*line, "--confidence", "0.9")
    assert shown.exit_code == 0, shown.output
    assert "Cost: " in shown.stdout
    # What is open has no number in JSON.
    found = json.loads(run(*line, "--json").stdout, parse_constant=pytest.fail)
    several = found.get("estimates") or found.get("coefficients") or [found]
    assert all(one["lower"] is None or one["lower"] <= one["estimate"] for one in several)
    assert run(*line[:4], "--delta", "1e-6", "--epsilon", "0.2", "--explain").exit_code == 0
    assert spent() == Fraction(1, 5)


@pytest.mark.parametrize(
    "question",
    [
        "logrank_test(cost, region = 'north', region, bins=4)",
        "f_oneway(cost, region, equal_var=no)",
    ],
)
def test_tests_of_a_cohort_study(run, question: str) -> None:
    """A p-value, and what it tests."""
    found = json.loads(run("infer", question, *ANA, "--json").stdout)
    assert 0 < found["pvalue"] <= 1
    assert found["null"]
    assert run("infer", question, *ANA, "--preview").exit_code == 0


def test_a_quantile_at_another_confidence(run) -> None:
    """The summary, and the interval that was asked for, of one charge."""
    found = run("infer", "quantile(cost, 0.75)", *ANA, "--confidence", "0.8")
    assert found.exit_code == 0, found.output
    assert "0.75-quantile of cost" in found.stdout
    assert "At 80 %: " in found.stdout
    preview = run("infer", "median(cost)", *ANA, "--preview", "--sizes", "9")
    assert "9 people are too few" in preview.stdout
    assert spent() == Fraction(1, 5)


def test_a_formula_is_a_regression(run) -> None:
    """Coefficients with their intervals, on the screen and as JSON, for one charge."""
    line = ("infer", "cost ~ C(region)", *ANA, "--token", "monday", "--confidence", "0.9")
    shown = run(*line)
    assert shown.exit_code == 0, shown.output
    assert "linear regression cost ~ C(region)" in shown.stdout
    assert "At 90 %:\n  Intercept: " in shown.stdout
    found = json.loads(run(*line, "--json").stdout)
    assert found["coefficients"][0]["name"] == "Intercept"
    assert all(0 < c["pvalue"] <= 1 for c in found["coefficients"])
    assert "pvalue" not in found
    assert run(*line[:2], *ANA, "--preview").exit_code == 0
    assert spent() == Fraction(1, 5)


def test_previews_and_plans_are_free(run, folder: Path) -> None:
    """As text, as JSON and as a picture."""
    line = ("infer", "mean(cost)", *ANA, "--where", "region = 'north'")
    found = run(*line, "--preview", "--sizes", "5,5000", "--plot", "p.png")
    assert "5 people are too few" in found.stdout
    assert "Nothing is spent" in found.stdout
    assert (folder / "p.png").exists()
    body = json.loads(run(*line, "--preview", "--json").stdout)
    assert [size["enough"] for size in body["sizes"]] == [True] * 3
    assert "region = 'north'" in run(*line, "--explain").stdout
    assert json.loads(run(*line, "--explain", "--json").stdout)
    assert spent() == 0


@pytest.mark.parametrize(
    ("line", "code", "said"),
    [
        (("cost",), 2, "QUESTION must be"),
        (("mode(cost)",), 2, "QUESTION must be"),
        (("quantile(cost, most)",), 2, "a number and a share"),
        (("quantile(cost, 2)",), 4, "between 0 and 1"),
        (("mean()",), 2, "takes 1 expression"),
        (("rate(cost)",), 2, "takes 2 or 3 expressions"),
        (("describe(region,)",), 2, "describe takes"),
        (("rate(cost, cost, per=much)",), 2, "per must be a number"),
        (("rate(cost, cost, per=0)",), 4, "per"),
        (("f_oneway(cost, region, equal_var=2)",), 2, "equal_var must be yes or no"),
        (("rate_ratio(cost, cost, region, bins=3)",), 2, "takes family, null, and not bins"),
        (("proportion(bins = 3)",), 4, "unknown column 'bins'"),
        (("standardised_rate(cost, cost, region)",), 2, "must have weights="),
        (("standardised_rate(cost, cost, region, weights=3)",), 2, "'level: number, ...'"),
        (("standardised_rate(cost, cost, region, weights='north: 1')",), 4, "each stratum"),
        (("difference(cost)",), 2, "takes 2 expressions"),
        (("mean(costs)",), 4, "did you mean 'cost'"),
        (("mean(region)",), 4, "not a number"),
        (("cost ~ nothing",), 4, "unknown column 'nothing'"),
        (("cost ~ center(cost)",), 4, "looks at the data"),
        (("mean(cost)", "--table", "visit"), 4, "did you mean 'visits'"),
        (("mean(cost)", "--preview", "--explain"), 2, "not both"),
        (("mean(cost)", "--sizes", "5"), 2, "--preview"),
        (("mean(cost)", "--preview", "--token", "x"), 2, "a release"),
        (("mean(cost)", "--plot", "a.txt"), 2, "--plot"),
        (("mean(cost)", "--epsilon", "0.9"), 5, "fits with epsilon"),
    ],
)
def test_what_is_wrong_is_refused_and_free(run, line, code: int, said: str) -> None:
    """By name, with the exit code that it has everywhere."""
    found = run("infer", *ANA, *line)
    assert found.exit_code == code
    assert said in " ".join(found.stderr.split())
    assert spent() == 0


def test_the_table_is_named_where_there_are_several(run, folder: Path) -> None:
    """Both are offered."""
    text = (
        (folder / "dither.toml").read_text()
        + """
[tables.stays]
source = "stays.parquet"
"""
    )
    (folder / "stays.parquet").write_bytes((folder / "visits.parquet").read_bytes())
    (folder / "dither.toml").write_text(text)
    found = run("infer", *ANA, "mean(cost)")
    assert found.exit_code == 2
    assert "stays, visits" in found.stderr
    assert run("infer", *ANA, "mean(cost)", "--table", "visits").exit_code == 0
