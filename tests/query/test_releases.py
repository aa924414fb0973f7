"""Releases: schema, order, intervals, replays, and what happens when something fails."""

from __future__ import annotations

import json
import multiprocessing
import os
import threading
import warnings
from fractions import Fraction

import polars as pl
import pytest

import dither as dt
from dither.errors import (
    ArgumentError,
    BudgetError,
    DitherError,
    EngineError,
    LedgerError,
    LedgerLockedError,
    TokenError,
)
from dither.ledger import Ledger
from query.query_data import REGIONS, policy, regions, rows_policy, visits

ALL = (
    "SELECT region, COUNT(*) AS n, SUM(age) AS s, AVG(cost) AS m, MEDIAN(age) AS q, "
    "STDDEV(age) AS d, VAR_POP(cost) AS v, SUM(cost) / COUNT(DISTINCT pid) AS r "
    "FROM visits GROUP BY region"
)
OUTPUTS = ["n", "s", "m", "q", "d", "v", "r"]
WHOLE = {"n", "s"}


def test_the_frame_has_keys_then_values_with_intervals(session):
    """Names, order and types are the same for every release of a question."""
    release = session.sql(ALL).release(4)
    frame = release.frame
    assert frame.columns == [
        "region",
        *(f"{o}{end}" for o in OUTPUTS for end in ("", "_lower", "_upper")),
    ]
    assert frame["region"].to_list() == REGIONS
    for output in OUTPUTS:
        kind = pl.Int64 if output in WHOLE else pl.Float64
        ends = [frame[output + end] for end in ("_lower", "", "_upper")]
        assert [e.dtype for e in ends] == [kind] * 3
        assert (ends[0] <= ends[1]).all()
        assert (ends[1] <= ends[2]).all()
    assert release.keys == ["region"]
    assert release.outputs == OUTPUTS
    assert release.units == {
        "region": None,
        "n": None,
        "s": "years",
        "m": "EUR",
        "q": "years",
        "d": "years",
        "v": "EUR²",
        "r": None,
    }
    assert not release.replayed


def test_intervals_hold_the_truth(tmp_path):
    """With bounding that cuts nothing, answers lie within their intervals.

    One release at confidence 1 - 1e-9 of 7 outputs in 4 groups: a false alarm has odds below 3e-8.
    """
    frame = visits(3000, 3000, seed=3)
    limits = {"max_groups": 4, "max_rows": 20}
    with dt.open(
        policy(tmp_path, visits=limits), sources={"visits": frame, "regions": regions()}
    ) as s:
        found = s.sql(ALL).release(8, confidence=1 - 1e-9).frame
    clamped = frame.with_columns(pl.col("cost").clip(0, 5000))
    truth = clamped.group_by("region").agg(
        n=pl.len(),
        s=pl.col("age").sum(),
        m=pl.col("cost").mean(),
        q=pl.col("age").quantile(0.5, "lower"),
        d=pl.col("age").std(),
        v=pl.col("cost").var(ddof=0),
        r=pl.col("cost").sum() / pl.col("pid").n_unique(),
    )
    both = found.join(truth, on="region", suffix="_true")
    for output in OUTPUTS:
        slack = {"m": 0.05, "v": 10.0, "d": 0.01, "r": 0.05}.get(output, 0)  # rounding to lattices
        for low, value, high in both.select(
            f"{output}_lower", f"{output}_true", f"{output}_upper"
        ).iter_rows():
            assert low - slack <= value <= high + slack, output


def test_order_and_limit_act_on_what_is_released(session):
    """Noisy values are sorted; ranges by number, not by their text."""
    found = session.sql(
        "SELECT region, COUNT(*) AS n FROM visits GROUP BY region ORDER BY n DESC LIMIT 3"
    ).release(1)
    counts = found.frame["n"].to_list()
    assert len(counts) == 3
    assert counts == sorted(counts, reverse=True)
    table = session.table("visits")
    text = table.group_by(dt.bins("age", [0, 5, 18, 100, 110])).agg(n=dt.count()).sql
    ranges = session.sql(f"{text} ORDER BY 1").release(0.5).frame.to_series(0).to_list()
    assert ranges == ["[0, 5)", "[5, 18)", "[18, 100)", "[100, 110]"]


def test_text_keys_of_any_spelling_are_ordered(tmp_path):
    """Keys that look like numbers are text all the same."""
    words = ["inf", "-inf", "nan", "", "1e5", "NULL"]
    frame = pl.DataFrame({"w": words * 400})
    made = {
        "budget": {"epsilon": 9, "delta": 1e-3, "ledger": str(tmp_path / "l")},
        "tables": {"t": {}},
    }
    with dt.open(made, sources={"t": frame}) as opened:
        found = opened.sql("SELECT w, COUNT(*) AS n FROM t GROUP BY w ORDER BY w DESC").release(2)
        assert found.frame["w"].to_list() == sorted(words, reverse=True)
        assert "inf" in found.summary()


def test_null_is_a_discovered_key(tmp_path):
    """NULL is a key like any other, and comes last."""
    frame = pl.DataFrame({"w": [None] * 500 + ["a"] * 500 + ["rare"]})
    made = {
        "budget": {"epsilon": 9, "delta": 1e-3, "ledger": str(tmp_path / "l")},
        "tables": {"t": {}},
    }
    with dt.open(made, sources={"t": frame}) as opened:
        found = opened.sql("SELECT w, COUNT(*) AS n FROM t GROUP BY w").release(2).frame
        assert found["w"].to_list() == ["a", None]


def test_no_key_at_all_is_an_empty_frame(tmp_path):
    """An empty table with discovered keys: no rows, the same columns, every aggregate."""
    frame = pl.DataFrame({"w": [], "x": []}, schema={"w": pl.String, "x": pl.Int64})
    made = {
        "budget": {"epsilon": 9, "delta": 1e-3, "ledger": str(tmp_path / "l")},
        "tables": {"t": {"columns": {"x": {"bounds": [0, 9]}}}},
    }
    text = (
        "SELECT w, COUNT(*) AS n, AVG(x) AS m, MEDIAN(x) AS q, STDDEV(x) AS d, "
        "SUM(x) / COUNT(*) AS r FROM t GROUP BY w"
    )
    with dt.open(made, sources={"t": frame}) as opened:
        release = opened.sql(text).release(2)
        assert release.frame.shape == (0, 16)
        assert release.frame["n"].dtype == pl.Int64
        assert "ledger entry" in release.summary()


def test_sums_beyond_64_bits_are_reals(tmp_path):
    """A sum that no integer column can hold is still answered."""
    frame = pl.DataFrame({"x": [2**61] * 2000})
    made = {
        "budget": {"epsilon": 9, "ledger": str(tmp_path / "l")},
        "tables": {"t": {"columns": {"x": {"bounds": [0, 2**61]}}}},
    }
    with dt.open(made, sources={"t": frame}) as opened:
        found = opened.sql("SELECT SUM(x) AS s FROM t").release(5).frame
        assert found["s"].dtype == pl.Float64
        assert abs(found["s"][0] / (2000 * 2**61) - 1) < 0.1


def test_a_public_count_stands_in_any_ratio(tmp_path, frames):
    """Under replace-one the table's size is exact, wherever it stands."""
    made = rows_policy(tmp_path, neighbours="replace_one")
    with dt.open(made, sources=frames) as opened:
        text = (
            "SELECT COUNT(*) AS n, AVG(age) AS m, COUNT(*) / COUNT(smoker) AS r, "
            "STDDEV(age) AS d FROM visits"
        )
        found = opened.sql(text).release(4).frame
        assert found["n"][0] == found["n_lower"][0] == found["n_upper"][0] == 4000
        assert found["r_lower"][0] < 1.0 < found["r_upper"][0]
        question = opened.sql("SELECT COUNT(*) AS n FROM visits")
        before = opened.balance()[0].spent
        assert question.preview(1).widths == {"n": (0.0, 0.0, 0.0)}
        assert question.release(1).frame["n"].to_list() == [4000]
        assert opened.balance()[0].spent == before
        assert "no noise, no cost" in str(question.explain(1))


def test_the_summary_says_what_it_must(session):
    """Values with intervals, cost, entry, who is protected, what is not accounted for, notes."""
    release = session.sql(
        "SELECT region, AVG(cost) AS cost, MEDIAN(age) AS age FROM visits GROUP BY region"
    ).release(2)
    text = release.summary()
    for words in (
        "cost (EUR)", "age (years)", "north", "at 95 %", "cost: ε = 2", "ledger entry",
        "protects one pid, with all its rows of visits", "neighbours add or remove",
        "about the noise",
    ):  # fmt: skip
        assert words in text
    assert repr(release) == text
    assert all(len(line) < 80 for line in text.splitlines())
    assert "<table" in release._repr_html_()


# --- tokens -----------------------------------------------------------------------------------


def test_a_token_replays_the_stored_answer(session):
    """The same answer, for nothing; another request under the token is refused."""
    question = session.sql(ALL)
    first = question.release(1, token="monday")
    spent = session.balance()[0].spent
    again = question.release(1, token="monday")
    assert again.replayed
    assert again.frame.equals(first.frame)
    assert again.certificate.to_dict() == first.certificate.to_dict()
    assert "nothing charged now" in again.summary()
    assert session.balance()[0].spent == spent
    for other in (
        lambda: question.release(2, token="monday"),
        lambda: question.release(1, confidence=0.9, token="monday"),
    ):
        with pytest.raises(TokenError, match="another request"):
            other()
    with pytest.raises(ArgumentError, match="token"):
        question.release(1, token="")


def test_without_a_token_answers_are_fresh(session):
    """Two releases of one question are two draws, and two charges."""
    question = session.sql("SELECT SUM(cost) AS s FROM visits")
    values = {question.release(0.5).frame["s"][0] for _ in range(3)}
    assert len(values) == 3  # equal draws have odds below 1e-6: the deviation is above 1e6 steps
    assert session.balance()[0].spent.epsilon == Fraction(3, 2)


# --- failures ---------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "error", [RuntimeError("row 17 holds 42"), MemoryError(), ValueError("42")]
)
def test_a_failure_after_the_charge_stays_charged(session, monkeypatch, error):
    """One generic message, whatever went wrong; no value, no cause is shown."""

    def fail(*_):
        raise error

    monkeypatch.setattr(session._engine, "run", fail)
    question = session.sql("SELECT COUNT(*) AS n FROM visits")
    with pytest.raises(EngineError, match="what was charged stays charged") as caught:
        question.release(1, token="t")
    assert "42" not in str(caught.value)
    assert caught.value.__cause__ is None
    assert caught.value.__suppress_context__
    assert session.balance()[0].spent.epsilon == 1
    monkeypatch.undo()
    with pytest.raises(TokenError, match="never stored"):
        question.release(1, token="t")
    assert question.release(1).frame.height == 1


def test_an_interrupt_after_the_charge_stays_charged(session, monkeypatch):
    """Ctrl-C passes through, the charge stays, and the session goes on."""

    def interrupt(*_):
        raise KeyboardInterrupt

    monkeypatch.setattr(session._engine, "run", interrupt)
    question = session.sql("SELECT COUNT(*) AS n FROM visits")
    with pytest.raises(KeyboardInterrupt):
        question.release(1)
    monkeypatch.undo()
    assert session.balance()[0].spent.epsilon == 1
    assert question.release(1).frame.height == 1


def test_an_answer_that_cannot_be_stored_is_handed_over(session, monkeypatch):
    """It is paid for; a warning and the summary say that it cannot be replayed."""

    def fail(*_):
        raise LedgerLockedError("locked")

    monkeypatch.setattr(session.ledger, "store_answer", fail)
    with pytest.warns(UserWarning, match="keep this copy"):
        release = session.sql("SELECT COUNT(*) AS n FROM visits").release(1)
    assert release.frame.height == 1
    assert "keep this copy" in " ".join(release.summary().split())


def test_a_locked_ledger_charges_nothing(session, monkeypatch):
    """And the engine does not start."""

    def fail(*_, **__):
        raise LedgerLockedError("another process holds it")

    monkeypatch.setattr(session.ledger, "charge", fail)
    monkeypatch.setattr(session._engine, "run", lambda *_: pytest.fail("the engine ran"))
    with pytest.raises(LedgerLockedError):
        session.sql("SELECT COUNT(*) AS n FROM visits").release(1)


def test_a_closed_session_says_so(tmp_path, frames):
    """Explaining goes on; spending and balances do not. Closing twice is harmless."""
    with dt.open(policy(tmp_path), sources=frames) as session:
        question = session.sql("SELECT COUNT(*) AS n FROM visits")
    session.close()
    assert "protects" in str(question.explain(1))
    for use in (lambda: question.release(1), session.balance):
        with pytest.raises(
            ArgumentError, match=r"this session is closed; open another with dither.open"
        ):
            use()
    with Ledger.open(tmp_path / "visits.ledger") as book:
        assert not [entry for entry in book.entries() if entry.kind == "charge"]


@pytest.mark.skipif(not hasattr(os, "fork"), reason="needs fork")
def test_a_forked_session_refuses_before_it_charges(session):
    """The engine's threads do not outlive a fork; the child is told to open its own."""
    question = session.sql("SELECT COUNT(*) AS n FROM visits")
    context = multiprocessing.get_context("fork")
    receiver, sender = context.Pipe()

    def child():
        try:
            question.release(1)
        except DitherError as error:
            sender.send(str(error))

    with warnings.catch_warnings():
        warnings.simplefilter(
            "ignore", DeprecationWarning
        )  # newer Pythons warn of fork and threads
        process = context.Process(target=child)
        process.start()
    process.join(60)
    assert "opened in another process" in receiver.recv()
    assert session.balance()[0].spent.epsilon == 0
    assert question.release(1).frame.height == 1


def test_two_sessions_share_one_ledger(tmp_path, frames):
    """Asked at once from two sessions and four threads, the budget is never overspent."""
    made = policy(tmp_path, budget={"epsilon": 2})
    sessions = [dt.open(made, sources=frames) for _ in range(2)]
    done: list[str] = []

    def ask(session):
        for _ in range(3):
            try:
                session.sql("SELECT COUNT(*) AS n FROM visits").release("0.3", 0)
                done.append("released")
            except BudgetError:
                done.append("refused")

    threads = [threading.Thread(target=ask, args=(s,)) for s in sessions * 2]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    spent = sessions[0].balance()[0].spent
    assert len(done) == 12
    assert spent.epsilon == done.count("released") * Fraction(3, 10)
    assert sessions[0].balance()[0].caps.admits(spent)
    for session in sessions:
        session.close()


def test_a_ledger_that_is_gone_is_an_error(session, tmp_path):
    """Never a new and empty one."""
    (tmp_path / "visits.ledger").unlink()
    with pytest.raises(LedgerError):
        session.sql("SELECT COUNT(*) AS n FROM visits").release(1)


# --- frames -----------------------------------------------------------------------------------


@pytest.mark.parametrize("form", ["polars", "lazy", "pandas", "arrow"])
def test_frames_of_every_make(tmp_path, frames, form):
    """Polars (lazy too), pandas and Arrow give one answer: with ε huge, the truth."""
    frame = frames["visits"]
    made = {
        "polars": frame,
        "lazy": frame.lazy(),
        "pandas": frame.to_pandas(),
        "arrow": frame.to_arrow(),
    }
    with dt.open(
        rows_policy(tmp_path, epsilon=10**6), sources={**frames, "visits": made[form]}
    ) as opened:
        found = (
            opened.sql("SELECT region, COUNT(*) AS n FROM visits GROUP BY region")
            .release(10**5)
            .frame
        )
    truth = frame.group_by("region").agg(n=pl.len())
    assert dict(found.select("region", "n").iter_rows()) == dict(truth.iter_rows())


@pytest.mark.parametrize("ending", ["parquet", "csv", "duckdb"])
def test_files_of_every_make(tmp_path, frames, ending):
    """Parquet, CSV and DuckDB files give one answer too."""
    import duckdb

    frame, path = frames["visits"], tmp_path / f"visits.{ending}"
    match ending:
        case "parquet":
            frame.write_parquet(path)
        case "csv":
            frame.write_csv(path)
        case "duckdb":
            with duckdb.connect(str(path)) as connection:
                connection.execute("CREATE TABLE visits AS SELECT * FROM frame")
    made = rows_policy(tmp_path, epsilon=10**6)
    made["tables"]["visits"]["source"] = str(path)
    for column, kind in (("age", "integer"), ("cost", "real")):
        made["tables"]["visits"]["columns"][column]["type"] = kind
    with dt.open(made, sources={"regions": regions()}) as opened:
        found = (
            opened.sql("SELECT region, SUM(age) AS s FROM visits GROUP BY region")
            .release(10**5)
            .frame
        )
    truth = frame.group_by("region").agg(s=pl.col("age").sum())
    assert dict(found.select("region", "s").iter_rows()) == dict(truth.iter_rows())


def test_units_that_are_null_protect_nobody_and_count_nowhere(tmp_path):
    """Rows without a unit are left out, and the plan says so."""
    frame = pl.DataFrame({"pid": [1, 2, None, None], "age": [10, 20, 30, 40]})
    made = {
        "budget": {"epsilon": 10**6, "ledger": str(tmp_path / "l")},
        "tables": {
            "t": {
                "unit": "pid",
                "max_groups": 1,
                "max_rows": 2,
                "columns": {"age": {"bounds": [0, 99]}},
            }
        },
    }
    with dt.open(made, sources={"t": frame}) as opened:
        question = opened.sql(
            "SELECT COUNT(*) AS n, COUNT(DISTINCT pid) AS u, SUM(age) AS s FROM t"
        )
        assert "rows whose pid is NULL" in str(question.explain())
        assert question.release(10**5).frame.select("n", "u", "s").row(0) == (2, 2, 30)


def test_what_is_stored_is_what_is_shown(session):
    """The ledger's copy is plain JSON without NaN or infinity."""
    session.sql(ALL).release("0.001", token="t")
    entry = next(e for e in session.ledger.entries() if e.answer)

    def no_constants(name):
        raise AssertionError(name)

    assert json.loads(entry.answer, parse_constant=no_constants)["outputs"] == OUTPUTS


def test_a_key_carries_the_unit_of_its_column(session):
    """Also where the column is cut into bins, so that axes can say it."""
    release = session.table("visits").histogram("age", [0, 50, 110]).release(1)
    assert release.units == {"age": "years", "count": None}


def test_the_size_is_public_only_where_every_row_is_read(tmp_path, frames):
    """Under replace-one a count of all rows is exact, but a broken line of a CSV is not counted."""
    path = tmp_path / "visits.csv"
    frames["visits"].write_csv(path)
    asked = "SELECT COUNT(*) AS n FROM visits"
    for source, exact in ((frames["visits"], True), (path, False)):
        declared = rows_policy(tmp_path, neighbours="replace_one")
        for name, kind in (("pid", "integer"), ("age", "integer"), ("cost", "real")):
            declared["tables"]["visits"]["columns"].setdefault(name, {}).setdefault("type", kind)
        with dt.open(declared, sources={**frames, "visits": source}) as opened:
            release = opened.sql(asked).release(1)
        assert ("public" in str(release.notes)) is exact
        row = release.frame.row(0, named=True)
        assert (row["n_lower"] == row["n_upper"]) is exact


@pytest.mark.parametrize("direction", ["ASC", "DESC"])
def test_null_stands_last_in_either_direction(tmp_path, direction):
    """As in DuckDB, whose SQL the questions are in."""
    frame = pl.DataFrame({"k": [None] * 500 + ["a"] * 600 + ["b"] * 700})
    made = {
        "budget": {"epsilon": 100, "delta": 1e-6, "ledger": str(tmp_path / "l")},
        "tables": {"t": {}},
    }
    with dt.open(made, sources={"t": frame}) as opened:
        text = f"SELECT k, COUNT(*) AS n FROM t GROUP BY k ORDER BY k {direction}"
        keys = opened.sql(text).release(epsilon=50).frame["k"].to_list()
    assert keys == (["a", "b", None] if direction == "ASC" else ["b", "a", None])


def test_a_key_that_steers_a_terminal_is_shown_as_text(tmp_path):
    """What somebody typed into a table neither colours, nor breaks, nor widens a summary."""
    odd = ["\x1b[31mred", "two\nlines", "x" * 300, "$\\frac{$"]
    made = {
        "budget": {"epsilon": 100, "delta": 1e-6, "ledger": str(tmp_path / "l")},
        "tables": {"t": {}},
    }
    with dt.open(made, sources={"t": pl.DataFrame({"k": odd * 500})}) as opened:
        release = opened.sql("SELECT k, COUNT(*) AS n FROM t GROUP BY k").release(epsilon=50)
    assert set(release.frame["k"]) == set(odd)
    lines = release.summary().splitlines()
    assert "\x1b" not in "".join(lines)
    assert max(map(len, lines)) <= 80
    assert len(lines[2:6]) == len([line for line in lines[:6] if "500" in line]) == 4
    release.plot(str(tmp_path / "odd.png"))


def test_extremes_say_that_they_are_quantiles(session):
    """MIN and MAX of people would be somebody's value; what comes out is said with it."""
    release = session.sql("SELECT MIN(age) AS lo, MAX(age) AS hi FROM visits").release(1)
    assert "MIN of age is its 0.5 % quantile" in release.notes[0]
    assert "MAX of age is its 99.5 % quantile" in " ".join(release.summary().split())


def test_whoever_opens_is_told_how_far_an_engine_is(tmp_path, monkeypatch):
    """A function of one argument gets shares; what is no function is refused at once."""
    monkeypatch.setattr("dither.engines.duckdb.engine.TICK", 0.001)
    told = []
    asked = {
        "budget": {"epsilon": 10**6, "delta": 1e-6, "ledger": str(tmp_path / "people.ledger")},
        "tables": {"people": {"columns": {"age": {"bounds": [0, 110]}}}},
    }
    rows = {"people": pl.DataFrame({"age": range(10**6)})}
    with dt.open(asked, sources=rows, progress=told.append) as session:
        while not told:
            session.sql("SELECT AVG(age) AS a FROM people").release(1)
    assert all(0 <= share <= 1 for share in told)
    with pytest.raises(ArgumentError, match="progress must be a function"):
        dt.open(asked, sources=rows, progress=0.5)
