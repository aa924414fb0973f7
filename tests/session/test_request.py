"""The life of a request: a toy kind of question passes every step, and so do the commands."""

from __future__ import annotations

import ast
import inspect
from dataclasses import dataclass
from fractions import Fraction
from functools import partial
from pathlib import Path
from typing import Any

import click
import pytest
from click.testing import CliRunner, Result

import dither as dt
from dither import privacy
from dither._display import Explanation, Node
from dither.cli import Commands
from dither.cli.questions._request import answered, check_free
from dither.errors import ArgumentError, BudgetError, EngineError, LedgerError, QueryError
from dither.mechanisms import DiscreteLaplace
from dither.plan.aggregates import Count, Output, Query
from dither.plan.lowering.lower import lower
from dither.session import _request
from dither.session._certificate import Certificate, MeasurementRecord
from dither.session._opened import UNSTORED, OpenedPolicy
from dither.session._request import (
    AnsweredRequest,
    PricedQuestion,
    Progress,
    Request,
    largest_that_fits,
    listener,
)
from dither.sql.rows.sources import start
from query.query_data import visits

MOST_LINES = 60


@dataclass(frozen=True)
class ToyAnswer:
    """What the toy gives."""

    number: int
    certificate: Certificate
    replayed: Any


class ToyCount(PricedQuestion[ToyAnswer]):
    """How many rows a table has, in which every row is a person."""

    _noun, _gives = "toy count", (ToyAnswer,)

    def __init__(self, session: Any, table: str, epsilon: Any) -> None:
        query = Query(start(table, None, session.schema), (), (Output("n", Count()),))
        self.plan, self.opened = lower(query, session.schema), session._opened
        self.noise = DiscreteLaplace.for_loss(Fraction(epsilon), l1=1)
        self.promise = self.opened.promises[0]

    @property
    def _about(self) -> str:
        return self.plan.table.name

    @property
    def loss(self) -> privacy.Loss:
        return self.noise.loss(l1=1).promising(self.promise)

    def explain(self) -> Explanation:
        return Explanation(Node(f"rows of {self._about}", (("noise", self.noise.title),)))

    def preview(self) -> str:
        return f"off by {self.noise.variance**0.5:.1f}"

    def _request(self, tell: Progress) -> Request:
        return Request(
            self.opened,
            {"node": "toy count", "table": self._about},
            {"epsilon": str(self.price.epsilon)},
            self.loss,
            self.promise,
            note=lambda: {"query": repr(self)},
            tables={self._about: self.opened.policy.units[self._about].by},
            record=lambda: MeasurementRecord([self.noise.parameters()], {"sql": repr(self)}),
            run=self._run,
            fits=self._fits,
            jobs=lambda: [self.plan.job],
            schema=self.plan.schema,
        )

    def _run(self, secret: bytes) -> dict[str, Any]:
        counted = self.opened.engine.run(self.plan.job, self.plan.schema, secret).values[0]
        return {"number": int(counted.sum() + self.noise.draw(1)[0])}

    def _fits(self) -> str:
        ways = [(lambda epsilon: privacy.Charge.pure(epsilon, self.promise), "")]
        most = Fraction(self.price.epsilon or 0)
        return largest_that_fits(self.opened, self.promise, most, ways)

    def _read(self, answered: AnsweredRequest) -> ToyAnswer:
        content = answered.content
        return ToyAnswer(content["number"], Certificate(content["certificate"]), answered.replayed)


def spent(session: Any) -> Any:
    """What the account of the only unit has spent."""
    return session.balance()[0].spent.epsilon


def test_the_toy_is_small() -> None:
    """A kind of question is its description: all else comes with the base."""
    lines = inspect.getsource(ToyCount).splitlines()
    assert len(lines) <= MOST_LINES


# --- before it is paid for ------------------------------------------------------------------------


def test_a_kind_is_explained_previewed_and_priced_for_nothing(people) -> None:
    """In text and in a notebook; what only its result has is refused by name."""
    toy = ToyCount(people, "visits", "1/2")
    assert str(toy.explain()) == "rows of visits\n   noise  discrete Laplace"
    assert "rows of visits" in toy._repr_html_()
    assert toy.preview() == "off by 2.8"
    assert toy.price.epsilon == Fraction(1, 2)
    assert repr(toy) == "<toy count, not released yet: visits>"
    for name in ("number", "certificate"):
        with pytest.raises(AttributeError, match=rf"call \.release\(\).*'{name}'"):
            getattr(toy, name)
    with pytest.raises(AttributeError, match="has no attribute 'numbers'"):
        _ = toy.numbers
    assert spent(people) == 0


# --- its release ----------------------------------------------------------------------------------


def test_a_kind_is_charged_run_stored_certified_and_replayed(people) -> None:
    """One charge, an answer whose certificate holds, and the same again under its token."""
    toy = ToyCount(people, "visits", 4)
    first = toy.release(token="monday")
    assert abs(first.number - visits().height) < 40  # beyond e^-150
    assert spent(people) == 4
    body = first.certificate.to_dict()
    assert dt.verify(body, people.ledger).ok
    assert body["question"] == {"node": "toy count", "table": "visits"}
    assert body["loss"]["epsilon"] == "4"
    assert body["measurements"][0]["mechanism"] == DiscreteLaplace(1).parameters()["mechanism"]
    with pytest.raises(dt.errors.CertificateError):
        dt.verify(body | {"max_rows": 2}, people.ledger)
    again = toy.release(token="monday")
    assert (again.number, again.certificate) == (first.number, first.certificate)
    assert again.replayed is not None
    assert first.replayed is None
    assert spent(people) == 4
    with pytest.raises(LedgerError):
        ToyCount(people, "visits", 2).release(token="monday")
    entry = people.ledger.entry(body["ledger"]["entry"])
    assert entry.note["query"] == repr(toy)


def test_a_spent_budget_says_what_would_fit(people) -> None:
    """Refused before anything runs; the sentence is true."""
    ToyCount(people, "visits", 6).release()
    with pytest.raises(BudgetError, match=r"The same question fits with epsilon = 2\."):
        ToyCount(people, "visits", 3).release()
    assert spent(people) == 6
    ToyCount(people, "visits", 2).release()
    with pytest.raises(BudgetError, match=r"Not even epsilon = 0\.001 would fit"):
        ToyCount(people, "visits", 1).release()


def test_what_fails_after_the_charge_says_nothing(people, monkeypatch) -> None:
    """Whatever is raised, in the run or in writing it down; the charge stays."""
    toy = ToyCount(people, "visits", 1)
    for run in (lambda _: {}["secret"], lambda _: {"number": object()}):
        monkeypatch.setattr(toy, "_run", run)
        with pytest.raises(EngineError) as caught:
            toy.release()
        assert str(caught.value).startswith("the engine could not compute the answer")
        assert "secret" not in str(caught.value)
        assert caught.value.__cause__ is None
    assert spent(people) == 2


STEPS = ["replay", "rehearse", "charge", "answer", "store"]


def test_the_steps_come_in_their_order(people, monkeypatch) -> None:
    """Nothing is tried before the replay, and no row is read before the charge."""
    passed: list[str] = []

    def watched(name: str, real: Any, *given: Any) -> Any:
        passed.append(name)
        return real(*given)

    for name in STEPS:
        real = getattr(Request, name)
        monkeypatch.setattr(
            Request, name, lambda *given, n=name, r=real: watched(n, r, *given), raising=True
        )
    engine = people._engine
    for name in ("prepare", "run"):
        monkeypatch.setattr(engine, name, partial(watched, name, getattr(engine, name)))
    toy = ToyCount(people, "visits", 1)
    toy.release(token="t")
    assert passed == ["replay", "rehearse", "prepare", "charge", "answer", "run", "store"]
    passed.clear()
    toy.release(token="t")
    assert passed == ["replay"]


def test_what_cannot_be_written_costs_nothing(people, monkeypatch) -> None:
    """It is found in the rehearsal, as is what the engine does not run."""
    toy = ToyCount(people, "visits", 1)
    with monkeypatch.context() as patch:
        patch.setattr(toy.noise.__class__, "parameters", lambda self: {"caf\udce9": "1"})
        with pytest.raises(QueryError, match="cannot be written down"):
            toy.release()

    def refuse(*_: Any) -> None:
        raise QueryError("it is not run")

    monkeypatch.setattr(people._engine, "prepare", refuse)
    with pytest.raises(QueryError, match="it is not run"):
        toy.release()
    monkeypatch.undo()
    assert spent(people) == 0
    people.close()
    with pytest.raises(ArgumentError, match="session is closed"):
        toy.release()


# --- for whoever called ---------------------------------------------------------------------------

KINDS: dict[str, Any] = {
    "a toy": lambda s: ToyCount(s, "visits", 1).release(),
    "a query": lambda s: s.sql("SELECT COUNT(*) AS n FROM visits").release(1),
    "a query with limits": lambda s: s.table("visits").agg(n=dt.count()).release(1),
    "an inference": lambda s: s.table("visits").infer(1).mean("cost").release(),
    "tables": lambda s: s.table("visits").marginals([["region"]], 1, "1e-7").release(),
    "ranges": lambda s: s.table("visits").ranges("age", epsilon=1, bins=8).release(),
}


@pytest.mark.parametrize("name", KINDS)
def test_an_answer_that_is_not_stored_is_given_with_a_warning(people, monkeypatch, name) -> None:
    """At the caller's own line, however many frames of the package lie between."""
    monkeypatch.setattr(OpenedPolicy, "stored", lambda *_: False)
    with pytest.warns(UserWarning, match="could not be stored") as caught:
        found = KINDS[name](people)
    (warning,) = [w for w in caught if str(w.message) == UNSTORED]
    assert Path(warning.filename) == Path(__file__)
    (line,) = [
        value.lineno
        for node in ast.walk(ast.parse(Path(__file__).read_text(encoding="utf-8")))
        if isinstance(node, ast.Dict)
        for key, value in zip(node.keys, node.values, strict=True)
        if isinstance(key, ast.Constant) and key.value == name and isinstance(value, ast.Lambda)
    ]
    assert warning.lineno == line
    assert found.certificate.to_dict()["ledger"]["entry"] >= 1


def test_a_listener_that_raises_is_told_no_more() -> None:
    """It ends no run; what is no function is refused."""
    told: list[int] = []

    def tell(step: int) -> None:
        told.append(step)
        if step == 2:
            raise ValueError("enough")

    listening = listener(tell)
    listening(1)
    with pytest.warns(UserWarning, match="progress raised ValueError"):
        listening(2)
    listening(3)
    assert told == [1, 2]
    listener(None)(1)
    with pytest.raises(ArgumentError, match="function of one argument"):
        listener(3)  # type: ignore[arg-type]


@pytest.mark.parametrize("sizes", [[], [0], [1.5], [True]])
def test_sizes_are_whole_numbers(sizes) -> None:
    """At least one, each at least 1."""
    with pytest.raises(ArgumentError, match="sizes"):
        _request.sizes_of(sizes)
    assert _request.sizes_of((3, 4)) == [3, 4]


# --- on the command line --------------------------------------------------------------------------


@pytest.fixture
def command(people):
    """``toy count visits``: a command of the toy, made by what all commands use."""

    @click.group(cls=Commands)
    def toy() -> None:
        """Commands."""

    @toy.command()
    @click.argument("table")
    @click.option("--epsilon", type=Fraction)
    @click.option("--explain", is_flag=True)
    @click.option("--preview", is_flag=True)
    @click.option("--json", "as_json", is_flag=True)
    def count(table: str, epsilon: Fraction, explain: bool, preview: bool, as_json: bool) -> None:
        """Count rows."""
        check_free(explain, preview)
        asked = ToyCount(people, table, epsilon)
        shown = asked.preview if preview else None
        found = answered(asked, people, explain=explain, preview=shown, as_json=as_json, token="t")
        if found is not None:
            click.echo(f"{found.number} rows")

    def run(*line: str) -> Result:
        return CliRunner().invoke(toy, ["count", "visits", "--epsilon", *line])

    return run


def test_a_command_explains_previews_and_releases_any_kind(people, command) -> None:
    """The first two spend nothing; a refusal is a message and a code."""
    assert command("1", "--explain").output.startswith("rows of visits")
    assert '"title": "rows of visits"' in command("1", "--explain", "--json").output
    assert command("1", "--preview").output == "off by 1.4\nNothing is spent.\n"
    both = command("1", "--preview", "--explain")
    assert both.exit_code == 2
    assert "not both" in both.output
    assert spent(people) == 0
    first = command("4")
    assert first.exit_code == 0
    assert first.output.endswith("rows\n")
    assert command("4").output == first.output
    assert spent(people) == 4
    dear = command("9")
    assert dear.exit_code != 0
    assert spent(people) == 4
