"""A coarser table by sums of a released finer one: exact, free, and of that answer alone."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from fractions import Fraction
from math import sqrt
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pytest

import dither as dt
from dither.errors import ArgumentError, BudgetError, CertificateError, DitherError, QueryError
from dither.ledger import OwnerKey
from dither.mechanisms import DiscreteLaplace, half_width
from dither.mechanisms._combination import SummedNoise
from dither.plan.lowering.recipes import Linear
from dither.query._finer import _released, _Sums
from dither.query._noise import add_noise
from dither.query._release import release_data

REGIONS = ["north", "south", "east"]
CITIES = ["a", "b", "c", "d"]
FINE = (
    "SELECT region, city, COUNT(*) AS n, SUM(cost) AS c, COUNT(cost) AS k FROM visits "
    "GROUP BY region, city"
)
BOTH = {"ana": {"epsilon": 1000}, "ben": {"epsilon": 1000}}


def visits() -> pl.DataFrame:
    """Each patient has one row in each of the cells that their number names."""
    rows = [(i, REGIONS[i % 3], CITIES[i * 7 % 4], float(i % 50)) for i in range(600)]
    return pl.DataFrame(rows, schema=["pid", "region", "city", "cost"], orient="row")


def policy(folder: Path, **changes: Any) -> dict[str, Any]:
    """Visits of patients, by two public keys."""
    columns: dict[str, Any] = {
        "region": {"values": REGIONS, "nullable": False},
        "city": {"values": CITIES, "nullable": False},
        "cost": {"bounds": [0, 50], "step": 1},
    }
    table = {"unit": "pid", "max_groups": 2, "max_rows": 3, "columns": columns}
    table |= changes.pop("visits", {})
    budget = {"epsilon": 1000, "delta": "1e-6", "ledger": str(folder / "v.ledger")}
    analysts = {"quotas": {"first_come": True}, "analysts": BOTH} if "releases" in changes else {}
    return {"budget": budget, "tables": {"visits": table}} | analysts | changes


@pytest.fixture
def opened(tmp_path: Path) -> Iterator[dt.Session]:
    """A session over them."""
    with dt.open(policy(tmp_path), sources={"visits": visits()}) as session:
        yield session


def spent(session: dt.Session) -> list[Any]:
    """By account."""
    return [account.spent for account in session.balance()]


def noises(release: dt.Release) -> list[DiscreteLaplace]:
    """Of its measurements, as the certificate says them."""
    held = release.certificate.content["measurements"]
    assert {one["mechanism"] for one in held} == {"discrete Laplace"}
    return [DiscreteLaplace(Fraction(one["scale"])) for one in held]


def test_sums_of_cells_for_nothing(opened: dt.Session) -> None:
    """Each is the sum of the cells that were released; nothing is charged or written."""
    finer = opened.sql(FINE).release(1)
    before, entries = spent(opened), len(opened.ledger.entries())
    for keys in (["region"], ["city"], [], ["city", "region"]):
        by = ", ".join(keys)
        text = f"SELECT {by + ', ' if by else ''}COUNT(*) AS n, SUM(cost) AS c FROM visits"
        made = opened.sql(text + (f" GROUP BY {by}" if by else "")).from_finer(finer)
        assert made.replayed
        assert made.keys == keys
        wanted = finer.frame.group_by(keys).agg(pl.sum("n", "c")) if keys else (
            finer.frame.select(pl.sum("n", "c"))
        )  # fmt: skip
        assert (
            made.frame.select(*keys, "n", "c")
            .sort(keys or "n")
            .equals(wanted.select(*keys, "n", "c").sort(keys or "n"))
        )
        assert made.certificate == finer.certificate
    assert spent(opened) == before
    assert len(opened.ledger.entries()) == entries


def test_the_interval_is_that_of_the_sum_of_the_noise(opened: dt.Session) -> None:
    """By the exact law of the noise: of a count computed, of a sum with what rounding adds."""
    finer = opened.sql(FINE).release(1)
    made = opened.sql("SELECT region, COUNT(*) AS n, SUM(cost) AS c FROM visits GROUP BY region")
    frame = made.from_finer(finer, confidence=0.8).frame
    count, total, _ = noises(finer)
    width = float((frame["n_upper"] - frame["n"]).filter(frame["n"] > 0).max())
    # Of four draws, by their law; values beyond 40 scales are left out of it.
    ends = np.arange(-2000, 2001)
    law = np.exp(-np.abs(ends) / float(count.scale))
    law /= law.sum()
    whole = law
    for _ in range(3):
        whole = np.convolve(whole, law)
    reach = np.abs(np.arange(len(whole)) - len(whole) // 2) <= width
    assert 0.8 <= whole[reach].sum() < 0.83
    recipe = opened.sql(FINE)._plan.recipes[1]
    assert isinstance(recipe, Linear)
    ((_, part),) = recipe.terms
    assert part.denominator > 1
    spread = float(half_width([(float(part), SummedNoise(total, ((1.0, 4),)))], 0.8))
    wide = float((frame["c_upper"] - frame["c"]).filter(frame["c"] > 0).max())
    # The four sums were each rounded to a whole number, and this interval outwards to one.
    assert spread + 2 <= wide <= spread + 3


def test_intervals_hold_the_truth_as_often_as_they_say(opened: dt.Session) -> None:
    """Of counts, sums, means and ratios over 150 answers; fails by chance once in 10^4 at most."""
    text = "SELECT region, COUNT(*) AS n, SUM(cost) AS c, AVG(cost) AS m, SUM(cost) / COUNT(*) AS q"
    question = opened.sql(text + " FROM visits GROUP BY region")
    true = visits().group_by("region").agg(
        n=pl.len(), c=pl.sum("cost"), m=pl.mean("cost"), q=pl.sum("cost") / pl.len()
    )  # fmt: skip
    fine = opened.sql(FINE)
    finer = _released(question, fine.release(3)._content["certificate"])
    assert finer is not None
    exact = opened._opened.engine.run(fine._plan.job, fine._plan.schema, bytes(32))
    held = dict.fromkeys(("n", "c", "m", "q"), 0)
    number = 150
    for _ in range(number):
        drawn = release_data(finer.noise_plan, add_noise(finer.noise_plan, exact, 0.95), 0.95)
        content = {**finer.content, "columns": drawn["columns"]}
        made = _Sums(question._plan, replace(finer, content=content)).release(0.7).frame
        both = made.join(true, on="region", suffix="_true")
        for name in held:
            inside = both[f"{name}_lower"] <= both[f"{name}_true"]
            held[name] += int((inside & (both[f"{name}_true"] <= both[f"{name}_upper"])).sum())
    draws = 3 * number
    least = 0.7 * draws - 3.8 * sqrt(draws * 0.21)
    assert all(count >= least for count in held.values()), held
    assert held["n"] < 0.85 * draws


def test_gaussian_noise_adds_up_by_variances(tmp_path: Path) -> None:
    """Four cells are twice as uncertain as one."""
    made = policy(tmp_path, visits={"max_groups": 12})
    with dt.open(made, sources={"visits": visits()}) as session:
        finer = session.sql(FINE).release("0.5")
        held = finer.certificate.content["measurements"]
        assert {one["mechanism"] for one in held} == {"discrete Gaussian"}
        sums = session.sql("SELECT region, COUNT(*) AS n FROM visits GROUP BY region")
        one, four = (
            # Below 0 an interval is moved, and wider than its noise.
            float((frame["n_upper"] - frame["n"]).filter(frame["n"] > 0).max())
            for frame in (finer.frame, sums.from_finer(finer).frame)
        )
        assert four == pytest.approx(2 * one, abs=2)


def test_what_follows_from_sums_follows(opened: dt.Session) -> None:
    """Multiples, calculations, HAVING and ORDER BY, of the finer table as well."""
    finer = opened.sql(FINE + " ORDER BY n DESC").release(10)
    made = opened.sql(
        "SELECT region, COUNT(*) / 2 + 3 AS h, ROUND(AVG(cost)) AS m FROM visits GROUP BY region "
        "HAVING COUNT(*) > 10 ORDER BY region DESC"
    ).from_finer(finer)
    n = finer.frame.group_by("region").agg(pl.sum("n")).sort("region", descending=True)
    assert made.frame["region"].to_list() == ["south", "north", "east"]
    assert made.frame["h"].to_list() == [one / 2 + 3 for one in n["n"].to_list()]
    by = finer.frame.group_by("region").agg(pl.sum("c", "k")).sort("region", descending=True)
    assert made.frame["m"].to_list() == (by["c"] / by["k"]).round().to_list()
    assert any("HAVING chooses" in note for note in made.notes)


def test_it_says_what_it_is_and_what_it_is_not(opened: dt.Session, tmp_path: Path) -> None:
    """Which entry and day, how many cells, whose limits; its certificate is of the finer table."""
    finer = opened.sql(FINE).release(1, token="monday")
    made = opened.sql("SELECT COUNT(*) AS n FROM visits").from_finer(finer)
    entry = finer.certificate.content["ledger"]["entry"]
    said = " ".join(made.notes)
    date = f"{opened.ledger.entry(entry).time:%Y-%m-%d}"
    assert (
        f"each the sum of 12 cells of the table of ledger entry {entry} (token 'monday') of {date}"
        in said
    )
    assert "over region, city" in said
    assert "counts in at most 2 of its cells, with at most 3 rows in each" in said
    assert "from the sources as they were then" in said
    assert "replayed: nothing charged now" in made.summary()
    with pytest.raises(CertificateError):
        made.certificate.save_answer(made, tmp_path / "a.json")
    with pytest.raises(ArgumentError):
        opened.sql("SELECT COUNT(*) AS n FROM visits").top_up(made, to_rho=1, same_data=True)


def test_limits_of_the_finer_table_bind(tmp_path: Path) -> None:
    """A patient of twelve cells counts in one, and so once in the sum; asked directly, thrice."""
    rows = [(0, r, c, 1.0) for r in REGIONS for c in CITIES]
    frame = pl.DataFrame(rows, schema=["pid", "region", "city", "cost"], orient="row")
    made = policy(tmp_path, visits={"max_groups": 1})
    with dt.open(made, sources={"visits": frame}) as session:
        finer = session.sql(FINE).release(500)
        whole = session.sql("SELECT COUNT(*) AS n FROM visits")
        assert whole.from_finer(finer).frame["n"].item() == 1
        assert whole.release(400).frame["n"].item() == 3


REFUSED = {
    "SELECT COUNT(DISTINCT pid) AS n FROM visits": "numbers of distinct people",
    "SELECT COUNT(DISTINCT cost) AS n FROM visits": "numbers of distinct people",
    "SELECT MEDIAN(cost) AS n FROM visits": "n: only counts, sums",
    "SELECT STDDEV(cost) AS n FROM visits": "n: only counts, sums",
    "SELECT AVG(cost + 1) AS n FROM visits": "n: a mean follows where both",
    "SELECT SUM(cost) / COUNT(DISTINCT pid) AS n FROM visits": "n: a ratio follows where",
    "SELECT SUM(cost * 2) AS n FROM visits": "no such count or sum",
    "SELECT COUNT(*) AS n FROM visits WHERE cost > 3": "of other rows",
    "SELECT FLOOR(cost) AS f, COUNT(*) AS n FROM visits GROUP BY f": "not grouped by f",
    "SELECT region, COUNT(*) AS n FROM visits GROUP BY ROLLUP(region)": "several sets of keys",
}


@pytest.fixture(scope="module")
def asked(tmp_path_factory: Any) -> Iterator[tuple[dt.Session, dt.Release]]:
    """A session, and a finer table of it."""
    folder = tmp_path_factory.mktemp("finer")
    with dt.open(policy(folder), sources={"visits": visits()}) as session:
        yield session, session.sql(FINE.replace("COUNT(cost) AS k", "AVG(cost) AS m")).release(1)


@pytest.mark.parametrize("text", REFUSED)
def test_what_does_not_follow_is_refused_by_name(text: str, asked: Any) -> None:
    """And says why; nothing is charged."""
    session, finer = asked
    before = spent(session)
    with pytest.raises(QueryError, match=REFUSED[text]):
        session.sql(text).from_finer(finer)
    assert spent(session) == before


def test_means_need_both_of_their_parts(asked: Any) -> None:
    """A mean that was released has its own sum and count, which nobody was told."""
    session, finer = asked
    with pytest.raises(QueryError, match="SUM\\(x\\) and COUNT\\(x\\); means of cells do not"):
        session.sql("SELECT AVG(cost) AS m FROM visits").from_finer(finer)


def test_other_limits_and_missing_cells_are_refused(opened: dt.Session) -> None:
    """Tables whose cells were chosen by their noise, and limits that left out other rows."""
    whole = opened.sql("SELECT COUNT(*) AS n FROM visits")
    fine = opened.sql(FINE)
    for made, said in {
        fine.having("n > 5"): "the finer table has HAVING",
        fine.limit(3): "LIMIT or OFFSET",
        fine.within(max_rows=1): "max_rows of the finer table is 1, and the policy's here",
        fine.within(max_groups=1): "max_groups of the finer table is 1",
        opened.sql(FINE, discover=True): "the finer table has keys that are discovered",
    }.items():
        with pytest.raises(QueryError, match=said):
            whole.from_finer(made.release(1))
    same = whole.within(max_rows=1).from_finer(fine.within(max_rows=1).release(1))
    assert same.frame["n"].len() == 1
    with pytest.raises(QueryError, match="not grouped by region"):
        opened.sql("SELECT region, COUNT(*) AS n FROM visits GROUP BY region").from_finer(
            whole.release(1)
        )


def test_weights_of_the_finer_table_are_read_back(opened: dt.Session) -> None:
    """They divided its budget, and so say how wide its noise is."""
    finer = opened.sql(FINE, weights={"n": 5}).release(1)
    made = opened.sql("SELECT COUNT(*) AS n FROM visits").from_finer(finer).frame
    width = float(half_width([(1.0, SummedNoise(noises(finer)[0], ((1.0, 12),)))], 0.95))
    assert (made["n_upper"] - made["n"]).item() == -(-width // 1)


def test_only_what_this_ledger_released_to_the_asker(tmp_path: Path) -> None:
    """Another's answer is none; nor is one that a caller made up, or of another policy."""
    sources = {"visits": visits()}
    whole = "SELECT COUNT(*) AS n FROM visits"
    for audience, shared in (("asker", False), ("everybody", True)):
        folder = tmp_path / audience
        folder.mkdir()
        made = policy(folder, releases={"audience": audience})
        with dt.open(made, sources=sources, analyst="ana") as ana:
            finer = ana.sql(FINE).release(1)
            mine = ana.sql(whole).from_finer(finer).frame
        with dt.open(made, sources=sources, analyst="ben") as ben:
            if shared:
                assert ben.sql(whole).from_finer(finer).frame.equals(mine)
                assert ben.sql(whole).release(1, reuse=True).frame.equals(mine)
                assert ben.balance()[1].spent.free
            else:
                with pytest.raises(ArgumentError, match="that you may see"):
                    ben.sql(whole).from_finer(finer)
                assert not ben.sql(whole).release(1, reuse=True).replayed
    with dt.open(policy(tmp_path), sources=sources) as other:
        with pytest.raises(ArgumentError, match="of this ledger"):
            other.sql(whole).from_finer(finer)
        with pytest.raises(ArgumentError, match="release must be"):
            other.sql(whole).from_finer(finer.frame)  # type: ignore[arg-type]


def test_what_a_caller_hands_over_is_not_what_counts(opened: dt.Session) -> None:
    """The cells are the ledger's, also where those of the release in hand were changed."""
    finer = opened.sql(FINE).release(1)
    whole = opened.sql("SELECT COUNT(*) AS n FROM visits")
    columns = [{**c, "values": [0] * 12} for c in finer._content["columns"]]
    forged = dt.Release({**finer._content, "columns": columns})
    assert whole.from_finer(forged).frame.equals(whole.from_finer(finer).frame)


def test_no_data_are_looked_at(opened: dt.Session, monkeypatch: Any) -> None:
    """Neither for the look-up nor for the sums: an engine that is touched would raise."""
    finer = opened.sql(FINE).release(1)
    whole = opened.sql("SELECT COUNT(*) AS n FROM visits")

    def touched(*_: Any, **__: Any) -> Any:
        raise AssertionError("the engine was asked")

    class Untouched:
        def __getattr__(self, name: str) -> Any:
            return touched

    monkeypatch.setattr(opened._opened, "engine", Untouched())
    first = whole.from_finer(finer)
    assert whole.release(1, reuse=True).frame.equals(first.frame)
    with pytest.raises(AssertionError, match="was asked"):
        whole.release(1)


def test_reuse_finds_the_finest_answer_of_fewest_cells(opened: dt.Session) -> None:
    """At the same price and confidence; the very same question goes before it."""
    whole = opened.sql("SELECT COUNT(*) AS n FROM visits")
    opened.sql(FINE).release(1)
    city = opened.sql("SELECT city, COUNT(*) AS n FROM visits GROUP BY city").release(1)
    opened.sql("SELECT city, COUNT(*) AS n FROM visits GROUP BY city").having("n > 5").release(1)
    before = spent(opened)
    made = whole.release(1, reuse=True)
    assert made.frame["n"].item() == city.frame["n"].sum()
    assert spent(opened) == before
    for question, given in (
        (whole, {"epsilon": 2}),
        (whole, {"epsilon": 1, "confidence": 0.9}),
        (whole, {"epsilon": 1, "max_rows": 2}),
        (opened.sql("SELECT COUNT(DISTINCT pid) AS n FROM visits"), {"epsilon": 1}),
    ):
        assert not question.release(reuse=True, **given).replayed
    own = whole.release(1)
    assert whole.release(1, reuse=True).frame.equals(own.frame)


def test_a_policys_rule_replays_the_same_question_alone(tmp_path: Path) -> None:
    """Sums are noisier than what was asked for, so that they are for who says reuse=True."""
    made = policy(tmp_path, releases={"reuse": True})
    with dt.open(made, sources={"visits": visits()}, analyst="ana") as session:
        session.sql(FINE).release(1)
        whole = session.sql("SELECT COUNT(*) AS n FROM visits")
        assert whole.release(1, reuse=True).replayed
        assert not whole.release(1).replayed


def test_other_data_are_another_table(tmp_path: Path) -> None:
    """Where the version of the data is known and moved, reuse asks anew; sums say their day."""
    key, file = OwnerKey.make(), tmp_path / "visits.parquet"
    visits().write_parquet(file)
    with dt.open(policy(tmp_path), sources={"visits": file}, key=key) as session:
        finer = session.sql(FINE).release(1)
        assert finer.certificate.content["data"]
        whole = session.sql("SELECT COUNT(*) AS n FROM visits")
        assert whole.release(1, reuse=True).replayed
    visits().head(500).write_parquet(file)
    with dt.open(policy(tmp_path), sources={"visits": file}, key=key) as session:
        whole = session.sql("SELECT COUNT(*) AS n FROM visits")
        assert whole.from_finer(finer).replayed
        assert not whole.release(1, reuse=True).replayed


def test_a_year_by_months(tmp_path: Path) -> None:
    """A table by months read these months alone: the whole says so, and is not found unasked."""
    import datetime

    days = [datetime.date(2024, 1 + i % 3, 1 + i % 28) for i in range(600)]
    frame = visits().with_columns(day=pl.Series(days))
    made = policy(tmp_path, visits={"block": {"column": "day", "every": "month"}})
    made["tables"]["visits"]["columns"]["day"] = {
        "type": "date",
        "bounds": ["2024-01-01", "2024-03-31"],
    }
    made["budget"] |= {"per": "block", "lifetime": {"epsilon": 2000, "delta": "1e-5"}}
    text = "SELECT DATE_TRUNC('month', day) AS month, COUNT(*) AS n FROM visits GROUP BY month"
    with dt.open(made, sources={"visits": frame}) as session:
        finer = session.sql(text).release(1)
        whole = session.sql("SELECT COUNT(*) AS n FROM visits")
        sums = whole.from_finer(finer)
        assert sums.frame["n"].item() == finer.frame["n"].sum()
        assert any("other blocks" in note for note in sums.notes)
        assert any("in at most 1 of each block of its cells" in note for note in sums.notes)
        assert not whole.release(1, reuse=True).replayed
        quarter = session.sql(
            "SELECT COUNT(*) AS n FROM visits WHERE day BETWEEN '2024-01-01' AND '2024-03-31'"
        )
        with pytest.raises(QueryError, match="of other rows"):
            quarter.from_finer(finer)
        where = " WHERE day BETWEEN '2024-01-01' AND '2024-03-31' GROUP"
        finer = session.sql(text.replace(" GROUP", where)).release(1)
        found = quarter.release(1, reuse=True)
        assert found.frame["n"].item() == finer.frame["n"].sum()
        assert not any("other blocks" in note for note in found.notes)


def test_topped_up_and_other_answers_are_refused(opened: dt.Session) -> None:
    """Another kind of answer has no cells of one noise."""
    whole = opened.sql("SELECT COUNT(*) AS n FROM visits")
    finer = opened.sql(FINE).release(1)
    body = {**finer._content["certificate"], "question": {"node": "top up"}}
    with pytest.raises(QueryError, match="topped up, or is of another kind"):
        whole.from_finer(dt.Release({**finer._content, "certificate": body}))
    for strange in ({}, {"question": {"node": "query"}}, {**body, "question": {"node": "query"}}):
        with pytest.raises(DitherError):
            whole.from_finer(dt.Release({**finer._content, "certificate": strange}))


def test_nothing_is_left_to_pay_with(tmp_path: Path) -> None:
    """Sums are free, also where the budget is spent."""
    made = policy(tmp_path)
    made["budget"]["epsilon"] = 1
    with dt.open(made, sources={"visits": visits()}) as session:
        session.sql(FINE).release(1)
        whole = session.sql("SELECT COUNT(*) AS n FROM visits")
        with pytest.raises(BudgetError):
            whole.release(1)
        assert whole.release(1, reuse=True).replayed
