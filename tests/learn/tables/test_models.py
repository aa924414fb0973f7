"""Models of a session's table: charged once, replayed, kept, refused; and what a unit can move."""

from __future__ import annotations

import datetime as day
import json
import math
import random
from contextlib import contextmanager
from fractions import Fraction as F
from types import SimpleNamespace
from typing import Any

import numpy as np
import polars as pl
import pytest

import dither as dt
from dither import learn, noise
from dither.engines.writer import cells as written_cells
from dither.errors import ArgumentError, BoundsError, BudgetError, EngineError, UnknownNameError
from dither.learn._noise import TableSensitivity
from dither.learn.tables._additive import AdditiveQuestion
from dither.learn.tabular._boosting import UNIT, Boosting
from dither.learn.tabular.trees import _trees
from dither.learn.tabular.trees._plans import ForestPlanner
from dither.learn.tabular.trees._trees import Trees
from dither.plan.job import ListedCells
from dither.privacy import Neighbours
from learn.watched import gaps as differ
from learn.watched import watched

COLUMNS = {
    "age": {"bounds": [0, 110]},
    "cost": {"bounds": [0, 5000], "step": "0.01"},
    "region": {"values": ["north", "south", "east"]},
    "band": {"bins": [0, 10, 20, 50], "type": "real"},
    "seen": {"bounds": ["2024-01-01", "2024-12-31"]},
    "rate": {"values": [1, 2, 5]},
}
EASY = "readmitted ~ age + cost + region"


def rows(n: int, seed: int = 1) -> pl.DataFrame:
    """Visits, some of them of one person, whose chance of a readmission rises with age."""
    rng = np.random.default_rng(seed)
    age, region = rng.integers(0, 90, n), rng.choice(["north", "south", "east"], n)
    chance = 1 / (1 + np.exp(-((age - 45) / 8 + (region == "south"))))
    return pl.DataFrame(
        {
            "pid": rng.integers(0, n, n),
            "age": age,
            "cost": np.minimum(50.0 * age, 5000) + rng.normal(0, 100, n),
            "region": region,
            "band": rng.uniform(-5, 60, n),
            "seen": [day.date(2024, 1, 1) + day.timedelta(int(d)) for d in rng.integers(0, 366, n)],
            "rate": rng.choice([1, 2, 5], n),
            "readmitted": rng.random(n) < chance,
        },
        schema_overrides={"seen": pl.Date},
    )


@contextmanager
def opened(folder: Any, frame: pl.DataFrame, unit: bool = True, **budget: Any) -> Any:
    """A session on these rows."""
    table = {"columns": COLUMNS} | ({"unit": "pid", "max_groups": 2, "max_rows": 2} if unit else {})
    made = {
        "budget": {"epsilon": 1000, "delta": "1e-3", "ledger": str(folder / "l.ledger")}
        | {"release_delta": "1e-6"}
        | budget,
        "tables": {"visits": table},
    }
    with dt.open(made, sources={"visits": frame}) as session:
        yield session


# --- what a unit can move -------------------------------------------------------------------------


class WatchedObjects(Boosting):
    """Keeps what would leave, exactly, and gives numbers that are the same in every run: so the
    whole of two runs compares, at the same released numbers."""

    def _said(self, exact: Any, scale: int) -> Any:
        kept = self.__dict__.setdefault("kept", [])
        rng = random.Random(str((self.__dict__["script"], len(kept), exact.shape)))
        kept.append(exact)
        made = [rng.randint(-40, 200) for _ in range(exact.size)]
        return np.array(made, dtype=float).reshape(exact.shape) * UNIT / scale

    def counted(self, places: Any, cells: int, kept: Any) -> Any:
        exact = self.weight * np.bincount(places, kept, cells).astype(np.int64)
        return self._said(exact, self.weight)

    def summed(self, places: Any, cells: int, residuals: Any) -> Any:
        parts = [np.bincount(places, part, cells) for part in residuals.T.astype(np.float64)]
        return self._said(np.stack(parts, axis=1).astype(np.int64), UNIT)


class Scripted:
    """Takes the place of a run's noise: keeps what would leave, and gives numbers that are the same
    in every run."""

    def __init__(self, run: Any, script: int) -> None:
        self.kept: list[Any] = []
        self.script, self.deviation = script, run.noisy.deviation

    def leave(self, exact: Any) -> Any:
        exact = np.asarray(exact)
        rng = random.Random(str((self.script, len(self.kept), exact.shape)))
        self.kept.append(exact)
        made = [rng.uniform(-20, 100) for _ in range(exact.size)]
        return np.array(made, dtype=float).reshape(exact.shape) * self.deviation


@contextmanager
def scripted(run: Any, script: int) -> Any:
    """A run whose noise is scripted, and whose chance is that of every such run."""
    rng = np.random.default_rng(script)
    if isinstance(run, Trees):
        # An odd script says that there are few rows.
        kept = watched(run, script, 1 if script % 2 else 10**6).__dict__["tables"]
    else:
        noisy = Scripted(run, script)
        object.__setattr__(run, "noisy", noisy)
        kept = noisy.kept
    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(noise, "below", lambda end, size: rng.integers(0, end, size))
        patched.setattr(noise, "permutation", rng.permutation)
        yield kept


def left(question: Any, script: int) -> list[Any]:
    """All that a run lets leave, without noise; every row through the engine."""
    run = question._run
    if not isinstance(run, Boosting):
        exact = SimpleNamespace(
            rows=lambda: question._question._list(b"the same secret for two runs")
        )
        with scripted(run, script) as kept:
            question._measure(exact, lambda _: None)
        return kept
    object.__setattr__(run, "__class__", WatchedObjects)
    run.__dict__["kept"] = []
    run.__dict__["script"] = script
    asked = question._question

    class Exact:
        @staticmethod
        def rows() -> Any:
            return asked._list(b"the same secret for two runs")

    question._measure(Exact, lambda _: None)  # type: ignore[arg-type]
    return run.__dict__["kept"]


HOSTILE = {
    "age": [None, -5, 0, 1, 55, 109, 110, 111, 2**62],
    "cost": [None, math.nan, math.inf, -math.inf, -1e308, 0.0, 5000.0, 2500.0, 1e300],
    "region": [None, "north", "south", "east", "nowhere", "", "o'b"],
    "band": [None, math.nan, -1e9, 0.0, 10.0, 50.0, 50.1, math.inf],
    "seen": [None, day.date(1, 1, 1), day.date(2024, 2, 29), day.date(9999, 12, 31)],
    "rate": [None, 1, 5, 7, -(2**62)],
    "readmitted": [None, False, True],
}
KINDS = {
    "pid": pl.Int64, "age": pl.Int64, "cost": pl.Float64, "region": pl.String, "band": pl.Float64,
    "seen": pl.Date, "rate": pl.Int64, "readmitted": pl.Boolean,
}  # fmt: skip


def hostile(rng: random.Random, pid: int | None, number: int) -> list[dict[str, Any]]:
    """Rows of one unit: extremes, what is missing and what was not declared; often all alike."""
    alike = rng.random() < 0.4
    made = [{"pid": pid} | {n: rng.choice(v) for n, v in HOSTILE.items()} for _ in range(number)]
    return [made[0]] * number if alike and made else made


def pair_of(seed: int, replaced: bool, unit: bool) -> tuple[pl.DataFrame, pl.DataFrame]:
    """Two tables that differ by one unit, of many rows; by one row where a row is the unit."""
    rng = random.Random(seed)
    others = [r for pid in range(6) for r in hostile(rng, pid, rng.randint(0, 4))]
    others += hostile(rng, None, 2) if unit else []
    most = 12 if unit else 1
    one, two = (hostile(rng, pid, rng.randint(1, most)) for pid in (77, 78))
    tables = (others + one, others + two if replaced else others)
    return tuple(  # type: ignore[return-value]
        pl.DataFrame(t, schema=KINDS, strict=False, orient="row") for t in tables
    )


FORMULAS = ("readmitted ~ age + region + seen", "region ~ cost + band", "age ~ rate + region")
ASKED = {
    **{
        formula: lambda learning, formula=formula: learning.additive(formula, rounds=2, bins=3)
        for formula in FORMULAS
    },
    **{
        f"forest {formula}": lambda learning, formula=formula: learning.forest(
            formula, n_estimators=2, max_depth=3, max_features=2
        )
        for formula in FORMULAS
    },
    **{
        f"forest by chance {formula}": lambda learning, formula=formula: learning.forest(
            formula, n_estimators=2, max_depth=3, splits="drawn"
        )
        for formula in FORMULAS[1:]
    },
    **{
        f"naive Bayes {formula}": lambda learning, formula=formula: learning.naive_bayes(formula)
        for formula in FORMULAS[:2]
    },
}


def claimed(run: Any) -> tuple[float, int]:
    """By how much a unit moves all that leaves: in absolute value, and squared."""
    if isinstance(run, Boosting):
        return math.inf, run.l2_squared
    if isinstance(run, Trees):
        claim = run.moved(len(run.__dict__["tables"]))
        return claim.l1, claim.l2_squared
    return run.moved.l1, run.moved.l2_squared


def moved(
    folder: Any, seed: int, neighbours: str, unit: bool, formulas: Any = tuple(ASKED)
) -> list[tuple[int, int]]:
    """By how much all that leaves differs between two neighbours, and the claim: in absolute value
    and squared."""
    found: dict[str, list[Any]] = {formula: [] for formula in formulas}
    runs: dict[str, list[Any]] = {formula: [] for formula in formulas}
    claims = {}
    for side, frame in enumerate(pair_of(seed, neighbours == "replace_one", unit)):
        here = folder / f"{seed}-{side}"
        here.mkdir(parents=True)
        with opened(here, frame, unit, neighbours=neighbours) as session:
            for formula in formulas:
                question = ASKED[formula](session.table("visits").learn(1))
                found[formula].append(left(question, seed))
                runs[formula].append(question._run)
                claims[formula] = claimed(question._run)
    for ours, theirs in found.values():
        assert [a.shape for a in ours] == [b.shape for b in theirs]
    pairs = []
    for formula, pair in found.items():
        gaps = [a - b for a, b in zip(*pair, strict=True)]
        one, square = claims[formula]
        pairs.append((sum(int(np.abs(gap).sum()) for gap in gaps), one))
        pairs.append((sum(int((gap**2).sum()) for gap in gaps), square))
    for both in runs.values():
        if isinstance(both[0], Trees):
            pairs += differ(*both).pairs(both[0], both[0].trees * both[0].depth)
    return pairs


@pytest.mark.parametrize("neighbours", ["add_remove", "replace_one"])
@pytest.mark.parametrize("unit", [True, False])
def test_no_unit_moves_more_than_is_charged(tmp_path, neighbours, unit):
    """Every count and every sum of whole runs, through the engine, over hostile rows."""
    for seed in range(2):
        for there, claim in moved(tmp_path, seed, neighbours, unit):
            assert 0 <= there <= claim


def _uncut(query: Any) -> Any:
    return query._places(range(len(query._job.keys)))


def _recut(self: Any, exact: Any, tell: Any) -> Any:
    """Cells from the values that occur, which is to say bounds from the data."""
    found = exact.rows()
    ranked = [np.unique(p, return_inverse=True)[1] for p in found.places[:, :-1].T]
    places = np.column_stack([*ranked, found.places[:, -1]])

    class Exact:
        @staticmethod
        def rows() -> Any:
            return type(found)(places, found.counts)

    return TRAIN(self, Exact, tell)


TRAIN = AdditiveQuestion._measure


@pytest.mark.parametrize("bug", ["rows of a unit are not cut", "bounds from the data"])
def test_planted_mistakes_are_seen(tmp_path, monkeypatch, bug):
    """A unit whose rows all count; cells that follow the values of all rows."""
    if bug == "bounds from the data":
        monkeypatch.setattr(AdditiveQuestion, "_measure", _recut)
    else:
        monkeypatch.setattr(written_cells.CellsQuery, "_kept", _uncut)
    tried = (moved(tmp_path, seed, "add_remove", True, FORMULAS[:1]) for seed in range(12))
    assert any(there > claim for found in tried for there, claim in found)


@pytest.mark.parametrize("kind", ["forest", "naive Bayes"])
def test_a_claim_for_one_row_is_seen(tmp_path, monkeypatch, kind):
    """Were a unit of two rows charged as one of one, its rows would move more than that."""
    monkeypatch.setattr(TableSensitivity, "of_unit", lambda self, rows: self)
    monkeypatch.setattr(
        _trees, "ForestPlanner", lambda table, units, *more: ForestPlanner(table, 1, *more)
    )
    asked = [formula for formula in ASKED if formula.startswith(kind)][:1]
    tried = (moved(tmp_path, seed, "add_remove", True, asked) for seed in range(12))
    assert any(there > claim for found in tried for there, claim in found)


def test_units_of_alike_rows_use_the_whole_claim(tmp_path):
    """Nothing is charged that no unit can move: of as many rows as count, all alike."""
    row = {"pid": 7, "age": 110, "cost": 5000.0, "region": "south", "band": 20.0, "rate": 5}
    row |= {"seen": day.date(2024, 5, 1), "readmitted": True}
    frames = [pl.DataFrame([row] * 2, KINDS), pl.DataFrame(schema=KINDS)]
    for formula in (f"forest {FORMULAS[0]}", f"naive Bayes {FORMULAS[1]}"):
        sides = []
        for side, frame in enumerate(frames):
            here = tmp_path / f"{formula.split()[0]}-{side}"
            here.mkdir()
            with opened(here, frame) as session:
                question = ASKED[formula](session.table("visits").learn(1))
                sides.append(left(question, 0))
                one, square = claimed(question._run)
        gaps = [a - b for a, b in zip(*sides, strict=True)]
        assert sum(int(np.abs(gap).sum()) for gap in gaps) == pytest.approx(one, rel=0.02)
        assert sum(int((gap**2).sum()) for gap in gaps) == pytest.approx(square, rel=0.02)


def test_a_run_in_memory_lets_the_same_leave(tmp_path):
    """Where a row is the unit: the same counts and sums as the estimator's, to the last digit."""
    frame = rows(400)
    with opened(tmp_path, frame, unit=False) as session:
        question = session.table("visits").learn(1).additive(EASY, rounds=2)
        asked = left(question, 3)
        run = question._run
        run.__dict__["kept"] = []
        model = learn.AdditiveClassifier(epsilon=1, delta=1e-6, classes=[False, True], rounds=2)
        places = [c.places(frame[c.name]) for c in run.columns]
        residuals = question._residuals(frame["readmitted"].to_numpy().astype(int), True)
        run.run(places, np.ones(len(frame), np.int64), residuals)
        for ours, theirs in zip(asked, run.__dict__["kept"], strict=True):
            assert np.array_equal(ours, theirs)
        assert model.get_params()["rounds"] == run.rounds


def test_rows_are_listed_exactly(tmp_path):
    """The cells in use, each with its rows, as plain Python counts them."""
    frame = rows(200)
    with opened(tmp_path, frame, unit=False) as session:
        asked = session.table("visits").learn(1).additive("readmitted ~ age + rate + region")
        found = asked._question._list(b"0" * 16).tolist()
        assert asked._question._whole.measurements == (
            ListedCells.of(asked._question._job.keys, range(4)),
        )
    known = {"north": 0, "south": 1, "east": 2}, {1: 0, 2: 1, 5: 2}
    plain: dict[Any, int] = {}
    for row in frame.iter_rows(named=True):
        cell = row["age"], known[1][row["rate"]], known[0][row["region"]], int(row["readmitted"])
        plain[cell] = plain.get(cell, 0) + 1
    assert found == sorted(plain.items())


def test_more_cells_than_there_are_whole_numbers(tmp_path):
    """Fourteen columns of 65 cells."""
    rng = np.random.default_rng(2)
    frame = pl.DataFrame(
        {f"x{k}": rng.integers(0, 64, 50) for k in range(14)} | {"y": rng.random(50) < 0.5}
    )
    policy = {
        "budget": {"epsilon": 9, "delta": "1e-3", "ledger": str(tmp_path / "w.ledger")},
        "tables": {"t": {"columns": {f"x{k}": {"bounds": [0, 63]} for k in range(14)}}},
    }
    with dt.open(policy, sources={"t": frame}) as session:
        asked = session.table("t").learn(1, "1e-6").additive("y ~ .", rounds=1)
        assert asked._question._whole.measurements[0].bins > 2**63
        assert len(asked.release().model.terms_) == 14


def test_a_server_lists_what_the_embedded_engine_does(tmp_path, postgres, monkeypatch):
    """PostgreSQL and DuckDB, to the last row; of units with several as many of each."""
    frame = rows(300)
    kept = frame.select("pid", "age", "region", "readmitted")
    values = ", ".join(
        f"({pid}, {age}, '{region}', {yes})" for pid, age, region, yes in kept.iter_rows()
    )
    postgres.execute(
        "CREATE TABLE visits (pid bigint, age int, region text, readmitted boolean); "
        f"INSERT INTO visits VALUES {values}"
    )
    monkeypatch.setenv("TEST_DSN", postgres.reader)
    found = []
    for unit, most in (("pid", 300), ("pid", 1), (None, 0)):
        source = {"postgres": "env:TEST_DSN", "table": "public.visits"}
        columns = {name: COLUMNS[name] for name in ("age", "region")}
        table: dict[str, Any] = {"columns": columns}
        table |= {"unit": unit, "max_groups": 1, "max_rows": most} if unit else {}
        for here in (table | {"source": source}, table):
            ledger = tmp_path / f"{len(found)}.ledger"
            policy = {
                "budget": {"epsilon": 10, "delta": "1e-5", "ledger": str(ledger)},
                "tables": {"visits": here},
            }
            given = {} if "source" in here else {"sources": {"visits": kept}}
            with dt.open(policy, **given) as session:
                question = (
                    session.table("visits").learn(1, "1e-6").additive("readmitted ~ age + region")
                )
                found.append(question._question._list(b"1" * 16))
                if unit is None:
                    assert len(question.release().model.terms_) == 2
                    assert session.balance()[0].spent.epsilon == 1
    for served, embedded in zip(found[::2], found[1::2], strict=True):
        assert served.counts.sum() == embedded.counts.sum()
    assert found[2].counts.sum() == kept["pid"].n_unique()
    assert found[0].tolist() == found[1].tolist()
    assert found[4].tolist() == found[5].tolist()


# --- what people see ------------------------------------------------------------------------------


@pytest.fixture
def session(tmp_path):
    """A few thousand visits."""
    with opened(tmp_path, rows(4000)) as made:
        yield made


QUESTIONS = {
    "additive": lambda s: s.table("visits").learn(50).additive(EASY),
    "forest": lambda s: s.table("visits").learn(50).forest(EASY, n_estimators=4),
    "naive_bayes": lambda s: s.table("visits").learn(50).naive_bayes(EASY),
    "logistic": lambda s: s.table("visits").learn(50).logistic("readmitted ~ age + C(region)"),
    "linear": lambda s: s.table("visits").learn(50).linear("cost ~ age + C(region)"),
}


@pytest.mark.parametrize("kind", QUESTIONS)
def test_a_model_is_charged_once_and_kept(session, tmp_path, kind):
    """Explained and previewed free; charged; replayed free; verified; saved, and the same again."""
    question = QUESTIONS[kind](session)
    assert "protects one pid" in str(question.explain())
    assert "10,000" in str(question.preview(sizes=(10_000,)))
    assert session.balance()[0].spent.free
    with pytest.raises(AttributeError, match="nothing has been released"):
        _ = question.predict
    found = question.release(token="one")
    spent = session.balance()[0].spent
    assert spent.epsilon == 50 == found.loss.charge.epsilon == question.loss.charge.epsilon
    assert found.loss.promise == question.loss.promise
    assert not found.replayed
    again = question.release(token="one")
    assert again.replayed
    assert session.balance()[0].spent == spent
    assert dt.verify(found.certificate, session.ledger).ok
    path = found.save(tmp_path / "model.json")
    read = learn.load(path)
    new = rows(50, seed=9)
    assert read.summary() == found.summary()
    assert np.array_equal(read.predict(new), again.predict(new))
    assert "cost: ε = 50" in found.summary()
    found.plot(tmp_path / "model.png")
    if kind == "linear":
        assert read.model.params["age"] == pytest.approx(50, abs=25)
        with pytest.raises(ArgumentError, match="a number, and no prob"):
            read.predict_proba(new)
    else:
        assert np.mean(found.predict(new) == new["readmitted"].to_numpy()) > 0.75
        assert found.predict_proba(new.to_dict(as_series=False)).shape == (50, 2)
    with pytest.raises(ArgumentError, match="no column 'age'"):
        found.predict(new.drop("age"))


@pytest.mark.heavy("test_a_model_is_charged_once_and_kept")
def test_numbers_classes_and_dates(session):
    """A number, three classes, a target of 0 and 1; bins, dates, listed numbers; all columns."""
    table = session.table("visits")
    number = table.learn(50).additive("cost ~ age + seen + band").release()
    assert number.model.score(rows(300)[["age", "seen", "band"]], rows(300)["cost"]) > 0.5
    labels = [label for term in number.model.terms_ for label in term.labels()]
    assert any(label.startswith("2024-01-01 to") for label in labels)
    assert number.predict(rows(3)).shape == (3,)
    three = table.learn(50).additive("region ~ .").release()
    assert three.predict_proba(rows(3)).shape == (3, 3)
    assert set(three.predict(rows(9))) <= {"north", "south", "east"}
    trees = table.learn(50).forest("cost ~ age + seen + band", n_estimators=4).release()
    assert trees.model.score(rows(300)[["age", "seen", "band"]], rows(300)["cost"]) > 0.5
    for kind in ("forest", "naive_bayes"):
        found = getattr(table.learn(50), kind)("region ~ .").release()
        assert found.predict_proba(rows(3)).shape == (3, 3)
        assert set(found.predict(rows(9))) <= {"north", "south", "east"}
        # Of a value that nobody declared, and of none, there is a prediction too.
        odd = rows(3).with_columns(band=pl.lit(None, pl.Float64), rate=pl.lit(99), age=pl.lit(-5))
        assert np.isfinite(found.predict_proba(odd)).all()
    listed = table.learn(50).additive("rate ~ age").release()
    assert set(listed.predict(rows(9)).tolist()) <= {1, 2, 5}


def test_a_file_that_was_changed_is_refused(session, tmp_path):
    """Damage of every part; what is no model; another format."""
    path = QUESTIONS["additive"](session).release().save(tmp_path / "m.json")
    whole = path.read_text()
    body = json.loads(whole)
    body["model"]["terms"][0]["scores"][0][0] += 0.5
    changed = [whole[: len(whole) // 2], whole.replace('"age"', '"agf"', 1), "[]", "", "\0"]
    changed += [json.dumps(body), whole.replace("additive", "addictive")]
    for text in changed:
        path.write_text(text)
        with pytest.raises(ArgumentError, match="not a model, or is damaged"):
            learn.load(path)
    path.write_text(json.dumps(json.loads(whole) | {"format": 99}))
    with pytest.raises(ArgumentError, match="a format that this version lacks"):
        learn.load(path)
    with pytest.raises(ArgumentError, match="no model at"):
        learn.load(tmp_path / "nowhere.json")


def test_a_file_that_somebody_made_up_is_refused(session, tmp_path):
    """Whose digest is right: trees that lead nowhere or in a ring, other shapes, laws that are
    none."""
    forest = QUESTIONS["forest"](session).release()._content
    bayes = QUESTIONS["naive_bayes"](session).release()._content
    tree = forest["trees"][0]
    size = len(tree["column"])
    ring = tree | {"column": [0] + [-1] * (size - 1), "left": [0] * size}
    changes: list[dict[str, Any]] = [
        forest | {"trees": []},
        forest | {"trees": [ring]},
        forest | {"trees": [ring | {"left": [size] + [0] * (size - 1)}]},
        forest | {"trees": [ring | {"column": [99] + [-1] * (size - 1), "left": [1] * size}]},
        forest | {"trees": [tree | {"code": []}]},
        forest | {"trees": [tree | {"values": [[math.nan] * 2] * size}]},
        forest | {"orders": forest["orders"][:1]},
        forest | {"orders": [order[1:] for order in forest["orders"]]},
        bayes | {"rows": [0.0, 1.0]},
        bayes | {"rows": [1.0]},
        bayes | {"mean": [[0.0]]},
        bayes | {"variance": [[0.0] * len(row) for row in bayes["variance"]]},
        bayes | {"shares": None},
    ]
    for content in changes:
        path = learn.LearnedModel(content, lambda _: None).save(tmp_path / "made.json")
        with pytest.raises(ArgumentError, match="not a model, or is damaged"):
            learn.load(path)


@pytest.mark.parametrize(
    ("ask", "error", "says"),
    [
        (lambda t: t.learn(1).additive("age"), ArgumentError, "formula must be"),
        (lambda t: t.learn(1).additive(7), ArgumentError, "formula must be a text"),
        (lambda t: t.learn(1).additive("region ~ age:cost"), ArgumentError, "not the name"),
        (lambda t: t.learn(1).additive("region ~ age + age"), ArgumentError, "twice"),
        (lambda t: t.learn(1).additive("region ~ region"), ArgumentError, "itself"),
        (lambda t: t.learn(1).additive("region ~ ages"), UnknownNameError, "age"),
        (lambda t: t.learn(1).additive("region ~ pid"), ArgumentError, "formula: pid says who"),
        (lambda t: t.learn(1).additive("band ~ age"), ArgumentError, "cannot be predicted"),
        (lambda t: t.learn(1).additive("seen ~ age"), ArgumentError, "cannot be predicted"),
        (lambda t: t.learn(1).additive(EASY, bins=1), ArgumentError, "bins"),
        (lambda t: t.learn(1).additive(EASY, rounds=0), ArgumentError, "rounds"),
        (lambda t: t.learn(1).forest(EASY, n_estimators=0), ArgumentError, "n_estimators"),
        (lambda t: t.learn(1).forest(EASY, max_depth=17), ArgumentError, "max_depth"),
        (lambda t: t.learn(1).forest(EASY, max_features=0), ArgumentError, "max_features"),
        (lambda t: t.learn(1).forest(EASY, splits="best"), ArgumentError, "splits"),
        (lambda t: t.learn(1).forest("region ~ age:cost"), ArgumentError, "not the name"),
        (lambda t: t.learn(1).naive_bayes("cost ~ age"), ArgumentError, "cost is a number"),
        (lambda t: t.learn(1).naive_bayes("region ~ ages"), UnknownNameError, "age"),
        (lambda t: t.learn(5000).forest(EASY).release(), BudgetError, "fits with epsilon"),
        (lambda t: t.learn(5000).naive_bayes(EASY).release(), BudgetError, "fits with epsilon"),
        (lambda t: t.learn(0), ArgumentError, "epsilon"),
        (lambda t: t.learn(1, 0).additive(EASY), ArgumentError, "delta must be above 0"),
        (lambda t: t.learn(1, max_rows=0), ArgumentError, "max_rows"),
        (lambda t: t.learn(1, max_rows=2).linear("cost ~ age"), ArgumentError, "max_rows"),
        (lambda t: t.learn(1).logistic("cost ~ age"), ArgumentError, "a boolean"),
        (lambda t: t.learn(1).logistic("readmitted ~ C(age)"), ArgumentError, "declared levels"),
        (lambda t: t.group_by("region").learn(1), dt.errors.QueryError, "before group_by"),
        (lambda t: t.learn(5000).additive(EASY).release(), BudgetError, "fits with epsilon"),
    ],
)
def test_bad_input_is_refused_before_the_charge(session, ask, error, says):
    """By name, and nothing is spent."""
    with pytest.raises(error, match=says):
        ask(session.table("visits"))
    assert session.balance()[0].spent.free


def test_what_has_no_public_domain_is_refused(tmp_path):
    """With what to declare."""
    frame = rows(30).with_columns(name=pl.lit("somebody"))
    with opened(tmp_path, frame) as session:
        with pytest.raises(BoundsError, match=r"name: .* declare values"):
            session.table("visits").learn(1).additive("readmitted ~ age + name")
        with pytest.raises(BoundsError, match="name"):
            session.table("visits").learn(1).additive("readmitted ~ .")
        # What a formula leaves out need not be declared.
        session.table("visits").learn(1).additive("readmitted ~ age + region")


@pytest.mark.parametrize("kind", ["additive", "forest", "naive_bayes", "logistic"])
def test_what_fails_after_the_charge_says_nothing(session, monkeypatch, kind):
    """One generic message, the charge stays, and no row was read before it."""
    question, runs = QUESTIONS[kind](session), []
    engine = session._engine

    def run(*_: Any) -> Any:
        runs.append(session.balance()[0].spent.epsilon)
        raise ValueError("a value of somebody's")

    monkeypatch.setattr(engine, "run", run)
    with pytest.raises(EngineError) as caught:
        question.release()
    assert "somebody" not in str(caught.value)
    assert caught.value.__cause__ is None
    assert runs == [F(50)]


def test_a_row_is_said_to_be_known_as_it_is(session):
    """By the part of its bounds, the declared bin or the period; or by its value, of which nothing
    is said."""
    asked = (
        session.table("visits").learn(1).additive("readmitted ~ age + cost + band + seen + rate")
    )
    known = [note for note in asked._notes() if "a row is known by" in note]
    assert known == [
        "of cost a row is known by the part of the bounds that its value lies in",
        "of band a row is known by the bin that its value lies in",
        "of seen a row is known by the week that its value lies in",
    ]
    assert all(note in str(asked.explain()).replace("\n      ", " ") for note in known)


def test_progress_that_raises_does_not_end_a_run(session):
    """It is told each round, and no more once it has raised."""
    told: list[int] = []
    question = session.table("visits").learn(50).additive(EASY, rounds=3)
    question.release(progress=told.append)
    assert told == [1, 2, 3]
    forest = session.table("visits").learn(50).forest(EASY, n_estimators=2)
    forest.release(progress=told.append)
    # Few rows have fewer trees.
    assert told[:3] == [1, 2, 3]
    assert told[3:] in ([1, 2], [2])
    with pytest.warns(UserWarning, match="progress raised"):
        question.release(progress=lambda _: 1 / 0)
    with pytest.raises(ArgumentError, match="progress"):
        question.release(progress=3)


@pytest.mark.parametrize(
    "frame", [rows(0), rows(1), pl.DataFrame([dict.fromkeys(KINDS)] * 9, KINDS)]
)
def test_hardly_any_rows(tmp_path, frame):
    """No rows, one, and rows of nothing: a model all the same."""
    with opened(tmp_path, frame) as session:
        for kind in set(QUESTIONS) - {"linear"}:
            assert len(QUESTIONS[kind](session).release().predict(rows(3))) == 3


@pytest.mark.parametrize("neighbours", ["add_remove", "replace_one"])
@pytest.mark.parametrize("unit", [True, False])
def test_the_charge_is_what_was_asked_for(tmp_path, neighbours, unit):
    """For the policy's unit and neighbours, though a unit has two rows; never above it."""
    with opened(tmp_path, rows(10), unit, neighbours=neighbours) as session:
        for kind in set(QUESTIONS) - {"linear"}:
            question = QUESTIONS[kind](session)
            charge = question.loss.charge
            assert charge.epsilon == 50
            # At so large an epsilon Laplace noise of few sums is less, and spends no delta.
            pure = kind == "naive_bayes"
            assert charge.delta == 0 if pure else F(1, 2 * 10**6) < charge.delta <= F(1, 10**6)
            assert (question.loss.neighbours is Neighbours.REPLACE) == (neighbours != "add_remove")
            # Of a sum of squares, and of one of two ways, the loss is what composes.
            if kind not in ("logistic", "forest"):
                assert float(question.loss.delta(50).upper) <= 1.01e-6


@pytest.mark.parametrize("kind", ["forest", "naive_bayes"])
@pytest.mark.parametrize("epsilon", ["1/10", 3])
def test_a_pure_budget_spends_no_delta(tmp_path, kind, epsilon):
    """Asked for delta = 0, and said of the explanation and the certificate too."""
    with opened(tmp_path, rows(300)) as session:
        question = getattr(session.table("visits").learn(epsilon, 0), kind)(EASY)
        assert "δ" not in str(question.explain())
        assert "δ" not in str(question.preview(sizes=(300,)))
        found = question.release()
        spent = session.balance()[0].spent
        assert (spent.epsilon, spent.delta) == (F(epsilon), 0)
        laws = {m["mechanism"] for m in found.certificate.to_dict()["measurements"]}
        chosen = {"exponential mechanism"} if kind == "forest" else set()
        assert laws == {"discrete Laplace"} | chosen
