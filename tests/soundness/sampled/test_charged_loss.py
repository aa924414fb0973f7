"""What the ledger is charged, against the loss computed anew from the certificate's parameters.

The certificate is read as text; the sensitivities are computed from its limits and bounds by the
formulas of the house's mathematics, written here a second time.
"""

from __future__ import annotations

from fractions import Fraction as F
from typing import Any

import polars as pl
import pytest

from dither.accounting import delta_of_rho
from dither.errors import (
    ArgumentError,
    BoundsError,
    BudgetError,
    DitherError,
    PolicyError,
    QueryError,
    UnknownNameError,
    UnsupportedError,
)
from soundness.sessions import Watch, opened, policy_in, spent

VISITS = pl.DataFrame(
    {
        "u": [i // 4 for i in range(240)],
        "g": ["a", "b", "c", "é"] * 60,
        "w": ["one", "two"] * 120,
        "n": [1] * 240,
        "i": [7, 80, 11, None] * 60,
        "j": [2**62, -5, 0, None] * 60,
        "x": [1.0, 999.0, -9.0, None] * 60,
        "y": [0.5, -0.5, None, 1.0] * 60,
        "z": [1.0, 2.0, 4.0, 5.0] * 60,
    }
)
SOURCES = {"visits": VISITS, "people": VISITS.drop("u")}

QUERIES = (
    "SELECT COUNT(*) AS n FROM people",
    "SELECT COUNT(*) AS n, AVG(z) AS m FROM people",
    "SELECT g, COUNT(*) AS n, AVG(x) AS m, STDDEV(z) AS s, MEDIAN(i) AS q FROM visits GROUP BY g",
    "SELECT i AS k, COUNT(*) AS n, SUM(y) AS s FROM visits GROUP BY i",
    "SELECT w, COUNT(*) AS n, SUM(x) AS s FROM visits GROUP BY w",
    "SELECT SUM(j) / COUNT(*) AS r, COUNT(DISTINCT u) AS us FROM visits",
    "SELECT w, i AS k, MEDIAN(x) AS q, MAX(x) AS p FROM visits GROUP BY w, i",
    "SELECT g, MODE(i) AS m, COUNT(*) AS n FROM visits GROUP BY g",
    "SELECT MODE(g) AS m, MODE(i) AS k FROM people",
    "SELECT w, MODE(g) AS m FROM visits GROUP BY w",
)


def row_reach(entry: dict[str, Any]) -> tuple[int, int]:
    """The least and the greatest integer that a row can add to a measurement."""
    measures = entry["measures"]
    if "centre" not in measures:
        return 0, 1
    ends = [int(measures[end]) - int(measures["centre"]) for end in ("lower", "upper")]
    if measures["square"]:
        far = max(e * e for e in ends)
        near = 0 if ends[0] <= 0 <= ends[1] else min(e * e for e in ends)
        return near - int(measures["square_centre"]), far - int(measures["square_centre"])
    return ends[0], ends[1]


def sensitivities(entry: dict[str, Any], body: dict[str, Any]) -> tuple[int, int]:
    """l1 and squared l2 of a measurement, from the certificate's public facts alone."""
    low, high = row_reach(entry)
    groups = body["max_groups"]
    rows = 1 if entry["measures"]["node"] == "units" else body["max_rows"]
    most = rows * max(abs(low), abs(high))
    if entry["measures"]["node"] == "votes":
        # Of ranges.
        most *= int(entry["measures"]["parts"]) * (
            2 if body["promise"]["neighbours"] == "replace" else 1
        )
        return groups * most, groups * most * most
    l1, l2 = groups * most, groups * most * most
    if body["promise"]["neighbours"] == "replace":
        # No test here has a single group of one sign other than by its public size.
        width = rows * (max(high, 0) - min(low, 0))
        l1, l2 = 2 * l1, groups * max(width * width, 2 * most * most)
        if groups == 1 and "GROUP BY" not in body["text"]["sql"] and entry["levels"] == 1:
            l1, l2 = width, width * width
    return entry["levels"] * l1, entry["levels"] * l2


def implied(body: dict[str, Any]) -> tuple[F, F, list[F]]:
    """Sum of Laplace epsilons, sum of all rho, and the rhos of Gaussian measurements."""
    epsilon = rho = F(0)
    gaussian = []
    for entry in body["measurements"]:
        if entry["mechanism"].startswith("none"):
            continue
        l1, l2 = sensitivities(entry, body)
        if entry["mechanism"] == "discrete Laplace":
            loss = F(l1) / F(entry["scale"])
            epsilon += loss
            rho += loss * loss / 2
        elif entry["mechanism"] == "exponential mechanism":
            # Beside Laplace noise it has an epsilon of its own, else a rho alone.
            lost = F(entry["rate"]) ** 2 * l2 / 8
            if entry["loss"]["epsilon"] is None:
                gaussian.append(lost)
            else:
                epsilon += F(entry["rate"]) * l1
                rho += lost
        else:
            assert entry["mechanism"] == "discrete Gaussian"
            gaussian.append(F(l2) / (2 * F(entry["sigma2"])))
    return epsilon, rho + sum(gaussian, F(0)), gaussian


@pytest.mark.parametrize("neighbours", ["add_remove", "replace_one"])
@pytest.mark.parametrize("delta", ["0", "1e-4"])
@pytest.mark.parametrize("sql", QUERIES)
def test_the_charge_covers_what_the_parameters_imply(tmp_path, sql, delta, neighbours):
    """Basic and zCDP composition of the sampled noises stay within certificate and ledger."""
    if delta == "0" and "w," in sql:
        delta = "1e-9"
    with opened(tmp_path, SOURCES, neighbours=neighbours) as session:
        body = session.sql(sql).release("0.7", delta).certificate.to_dict()
        (charged,) = spent(session)
    loss = {name: F(value) for name, value in body["loss"].items()}
    laplace, rho, gaussian = implied(body)
    conversion = F(0)
    if gaussian:
        # What rho costs beside the Laplace epsilons, at the epsilon that is left for it.
        conversion = delta_of_rho(sum(gaussian, F(0)), loss["epsilon"] - laplace)
    keys = F(0)
    if body["keys"] is not None:
        keys = F(body["keys"]["delta"])
    assert laplace <= loss["epsilon"] <= F("0.7")
    assert conversion + keys <= loss["delta"] <= F(delta)
    assert rho <= loss["rho"]
    assert keys <= loss["rho_delta"]
    for name, amount in loss.items():
        assert amount <= getattr(charged, name) <= amount + F(1, 10**9)


def test_a_public_size_costs_nothing(tmp_path):
    """The count of all rows under replace-one is not a loss, and the ledger takes none."""
    with opened(tmp_path, SOURCES, neighbours="replace_one") as session:
        release = session.sql("SELECT COUNT(*) AS n FROM people").release(1)
        assert release.frame["n"][0] == VISITS.height
        assert spent(session)[0].epsilon == 0


def test_an_analyst_is_charged_beside_the_dataset(tmp_path):
    """Both accounts bear the whole charge, or neither does."""
    import dither as dt

    policy = policy_in(tmp_path, epsilon=2)
    policy["analysts"] = {"ana": {"epsilon": "0.5"}, "bo": {"epsilon": "1.5"}}
    with dt.open(policy, analyst="ana", sources=SOURCES) as session:
        question = session.sql("SELECT COUNT(*) AS n FROM people")
        question.release("0.4", 0)
        with pytest.raises(BudgetError):
            question.release("0.2", 0)
        assert [charge.epsilon for charge in spent(session)] == [F(2, 5)] * 2


# --- errors spend nothing ------------------------------------------------------------------------

COUNT = "SELECT COUNT(*) AS n FROM visits"
REFUSED = (
    ("SELECT COUNT(*) FROM nowhere", {}, UnknownNameError),
    ("SELECT SUM(nothing) FROM visits", {}, UnknownNameError),
    ("SELECT FOO(x) FROM visits", {}, UnknownNameError),
    ("SELECT SINH(x) FROM visits", {}, UnsupportedError),
    ("SELECT SUM(n) FROM visits", {}, BoundsError),
    ("SELECT x FROM visits", {}, QueryError),
    ("SELECT SUM(j * j) FROM visits", {}, BoundsError),
    ("SELECT COUNT(*) FROM (SELECT g FROM visits GROUP BY g)", {}, QueryError),
    ("DROP TABLE visits", {}, QueryError),
    ("SELECT COUNT(*) OVER () FROM visits", {}, QueryError),
    (COUNT, {"epsilon": 0}, ArgumentError),
    (COUNT, {"epsilon": -1}, ArgumentError),
    (COUNT, {"epsilon": float("nan")}, ArgumentError),
    (COUNT, {"epsilon": float("inf")}, ArgumentError),
    (COUNT, {"epsilon": "much"}, ArgumentError),
    (COUNT, {"epsilon": True}, ArgumentError),
    (COUNT, {"epsilon": 1, "delta": 1}, ArgumentError),
    (COUNT, {"epsilon": 1, "delta": -1}, ArgumentError),
    (COUNT, {"epsilon": 1, "delta": float("nan")}, ArgumentError),
    (COUNT, {"epsilon": 1, "confidence": 1}, ArgumentError),
    (COUNT, {"epsilon": 1, "confidence": 0}, ArgumentError),
    (COUNT, {"epsilon": 1, "confidence": float("nan")}, ArgumentError),
    (COUNT, {"epsilon": 1001}, BudgetError),
    ("SELECT w, COUNT(*) FROM visits GROUP BY w", {"epsilon": 1, "delta": "0.5"}, BudgetError),
    (COUNT, {"epsilon": "1e-30"}, DitherError),
    ("SELECT SUM(j) AS s FROM visits", {"epsilon": "1e-9"}, DitherError),
    ("SELECT w, COUNT(*) FROM visits GROUP BY w", {"epsilon": 1, "delta": 0}, ArgumentError),
    ("SELECT i, i % 99, i // 2, MEDIAN(x) FROM visits GROUP BY 1, 2, 3", {}, QueryError),
)


@pytest.mark.parametrize(("sql", "arguments", "error"), REFUSED)
def test_what_is_refused_spends_nothing_and_reads_nothing(
    tmp_path, monkeypatch, sql, arguments, error
):
    """The error is of its kind, the ledger is as it was, and the engine was not asked."""
    with opened(tmp_path, SOURCES) as session:
        session.sql("SELECT COUNT(*) AS n FROM people").release(1)
        watch, before = Watch(session, monkeypatch), spent(session)
        entries = len(session.ledger.entries())
        with pytest.raises(error) as caught:
            session.sql(sql).release(**({"epsilon": 1} | arguments))
        assert (watch.runs, watch.executed) == (0, 0)
        assert spent(session) == before
        assert len(session.ledger.entries()) == entries
        assert not any(str(v) in str(caught.value) for v in (999.0, "'one'", "'two'"))


def test_what_the_engine_could_not_run_is_refused_before_the_charge(tmp_path, monkeypatch):
    """An expression that only the engine finds too deep: found out before anything is spent."""
    nested = "z"
    for _ in range(18):
        nested = f"1 / (1 + {nested})"
    with opened(tmp_path, SOURCES) as session:
        watch = Watch(session, monkeypatch)
        question = session.sql(f"SELECT SUM({nested}) AS s FROM visits")
        with pytest.raises(UnsupportedError, match="deep"):
            question.release(1)
        assert (watch.runs, watch.executed, spent(session)[0].epsilon) == (0, 0, 0)


def test_the_largest_epsilon_that_fits_is_told_for_wide_sums_too(tmp_path):
    """Where small epsilons want noise too wide to draw, the refusal still says what fits."""
    with opened(tmp_path, SOURCES, epsilon=40) as session:
        question = session.sql("SELECT SUM(j) AS s FROM visits")
        with pytest.raises(BudgetError, match="fits with epsilon = 40"):
            question.release(50, 0)


def test_a_pure_budget_takes_no_delta(tmp_path):
    """Where delta is 0 in all, no release may use any, and Laplace noise is all there is."""
    with opened(tmp_path, SOURCES, delta=0) as session:
        question = session.sql("SELECT i AS k, COUNT(*) AS n FROM visits GROUP BY i")
        with pytest.raises(ArgumentError):
            question.release(1, "1e-9")
        with pytest.raises(ArgumentError):
            session.sql("SELECT w, COUNT(*) AS n FROM visits GROUP BY w").release(1)
        body = question.release(1).certificate.to_dict()
        assert {e["mechanism"] for e in body["measurements"]} == {"discrete Laplace"}
        assert (spent(session)[0].epsilon, spent(session)[0].delta) == (1, 0)


# --- units that are one person -------------------------------------------------------------------


def test_a_unit_is_never_read_so_that_two_people_are_one(tmp_path):
    """Integers read as doubles would merge people: refused."""
    import dither as dt

    policy = policy_in(tmp_path)
    policy["tables"]["visits"]["columns"]["u"] = {"type": "real"}
    with pytest.raises(PolicyError, match="'u'"):
        dt.open(policy, sources=SOURCES)


def test_units_of_unlike_types_are_not_joined(tmp_path):
    """2^53 + 1 and 2^53 are one double: a person's rows would join another's."""
    import dither as dt

    policy = policy_in(tmp_path)
    policy["tables"]["visits"]["max_join_rows"] = 2
    policy["tables"]["labs"] = {"max_groups": 1, "max_rows": 1, "max_join_rows": 2}
    policy["units"] = {"person": {"columns": {"visits": "u", "labs": "u"}}}
    labs = pl.DataFrame({"u": [1.0, 2.0]})
    joined = "SELECT COUNT(*) AS n FROM visits JOIN labs ON visits.u = labs.u"
    with (
        dt.open(policy, sources=SOURCES | {"labs": labs}) as session,
        pytest.raises(QueryError, match="'u'"),
    ):
        session.sql(joined)
