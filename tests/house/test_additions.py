"""Adding stays cheap: a new mechanism, channel or SQL function needs its own file and few others.

A toy of each is made here through what the real ones use, and the real ones are counted: a file
that names most of a kind is a place that the next one has to be added to. A new engine is made in
``tests/conformance/every_engine/test_new_engine.py``.
"""

from __future__ import annotations

import inspect
import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from fractions import Fraction
from pathlib import Path
from types import ModuleType
from typing import Any, ClassVar

import numpy as np
import polars as pl
import pytest
from sqlglot import exp

import dither as dt
from dither import local, mechanisms, privacy
from dither._subjects import Subject, declared
from dither.accounting import BudgetFilter
from dither.engines.writer import expressions as writer
from dither.lab.audit import Outcome
from dither.noise import discrete_laplace
from dither.numeric import Words
from dither.plan import expressions as ex
from dither.plan.facts.values import Facts
from dither.sql import expressions as rules
from dither.sql.allow_list import FUNCTION_NAMES, Place, take

ROOT = Path(dt.__file__).parents[2]
MOST = 3
"""Files outside its own that anything new may touch."""


def _places(names: Iterable[str]) -> set[str]:
    """Files of the package and of the guide that name at least half of these."""
    wanted = set(names)
    pages = set((ROOT / "docs").rglob("*.md")) - {
        ROOT / "docs/sources.md"
    }  # lists what others wrote
    files = [*(ROOT / "src").rglob("*.py"), *pages]
    return {
        path.relative_to(ROOT).as_posix()
        for path in files
        if 2 * len(wanted & set(re.findall(r"[\w-]+", path.read_text()))) >= len(wanted)
    }


def _classes(package: ModuleType, attribute: str) -> list[type[Any]]:
    found = (getattr(package, name) for name in package.__all__)
    return [one for one in found if inspect.isclass(one) and hasattr(one, attribute)]


def test_a_mechanism_is_listed_by_its_package_and_its_page() -> None:
    """No other file lists mechanisms: audits read them from the package."""
    kinds = _classes(mechanisms, "audit_subjects")
    assert len(kinds) >= 19
    found = _places(kind.__name__ for kind in kinds)
    assert found == {"src/dither/mechanisms/__init__.py", "docs/ideas/mechanisms.md"}


def test_a_channel_is_listed_by_its_package_and_two_pages() -> None:
    """Its package, the page that helps to choose, and the page of the wire format."""
    kinds = [kind for kind in _classes(local, "kind") if issubclass(kind, local.Channel)]
    assert len(kinds) >= 26
    found = _places(kind.__name__ for kind in kinds) | _places(kind.kind for kind in kinds)
    assert found == {"src/dither/local/__init__.py", "docs/local/choosing.md", "docs/local/wire.md"}
    assert len(found) <= MOST


def test_a_function_is_listed_beside_its_rule_and_on_its_page() -> None:
    """With its rule stands its name for suggestions; the page says what can be asked."""
    found = _places(FUNCTION_NAMES)
    assert found == {"src/dither/sql/functions.py", "docs/sql.md"}


def test_a_node_is_listed_by_the_plan_and_the_writer() -> None:
    """A new expression says its own words, bounds and hashed form; the rest is its SQL."""
    functions = ("Absolute", "Floor", "Ceil", "Lower", "Upper")
    assert {kind.__name__ for kind in ex.Function.__subclasses__()} >= set(functions)
    found = {place for place in _places(functions) if place.startswith("src/")}
    # Where a size is known a test is saved; of other nodes every result is tested.
    found.discard("src/dither/engines/writer/sizes.py")
    own = "src/dither/sql/functions.py"
    assert found == {
        "src/dither/plan/expressions.py",
        "src/dither/engines/writer/expressions.py",
        own,
    }
    assert len(found - {own} | {"docs/sql.md"}) <= MOST


def test_a_function_of_rows_is_declared_once() -> None:
    """Kinds, facts, meaning and words stand in one place; beside it how it is read, and its SQL."""
    places = {
        path.relative_to(ROOT).as_posix()
        for path in (ROOT / "src").rglob("*.py")
        if 2 * sum(f'"{name}"' in path.read_text() for name in ex.FUNCTIONS) >= len(ex.FUNCTIONS)
    }
    assert places == {"src/dither/engines/writer/functions.py", "src/dither/sql/functions.py"}


def test_places_are_found(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A catalogue of names is seen, and a file that uses one of them is not."""
    (tmp_path / "src").mkdir()
    (tmp_path / "src" / "catalogue.py").write_text("A, B, C")
    (tmp_path / "src" / "user.py").write_text("A(1)")
    monkeypatch.setitem(globals(), "ROOT", tmp_path)
    assert _places(["A", "B", "C", "D"]) == {"src/catalogue.py"}


# --- a toy of each ----------------------------------------------------------------------------


@dataclass(frozen=True)
class ToyCount:
    """A count with noise: epsilon-DP where one unit changes it by 1."""

    epsilon: Fraction

    def draw(self, size: int) -> Any:
        """Noise."""
        return discrete_laplace(1 / self.epsilon, size)

    def loss(self) -> privacy.Loss:
        """What an answer loses."""
        return privacy.discrete_laplace(1 / self.epsilon)

    @classmethod
    def audit_subjects(cls) -> Iterator[Subject]:
        """Two counts that differ by 1."""
        toy = cls(Fraction(1))
        yield Subject("toy count", lambda count, size: count + toy.draw(size), 0, 1)


def test_a_toy_mechanism_is_composed_charged_and_audited() -> None:
    """Its own file and a line in the package are enough for accounts and for the auditor."""
    loss = 2 * ToyCount(Fraction(1, 4)).loss()
    assert float(loss.epsilon(0)) == pytest.approx(0.5)
    budget = BudgetFilter(Fraction(1), Fraction(0))
    assert budget.admits(loss.charge)
    assert not budget.admits((3 * loss).charge)
    package = ModuleType("toys")
    package.__dict__.update(ToyCount=ToyCount, __all__=["ToyCount"])
    (subject,) = declared(package)
    found = dt.audit(subject.mechanism, subject.d0, subject.d1, subject.epsilon, samples=20_000)
    # At 99 % confidence a true claim is called violated once in a hundred runs.
    assert found.verdict is Outcome.NOT_REFUTED or found.lower < 1.2


@dataclass(frozen=True)
class ToyResponse(local.FiniteChannel):
    """The truth with probability 3/4, else one of the other values; three values, so e^ε = 6."""

    kind: ClassVar[str] = "toy-response"

    domain: local.Domain
    epsilon: Fraction = Fraction("1.7918")  # above log 6

    @property
    def outputs(self) -> int:
        """A report is a code."""
        return len(self.domain)

    def settings(self) -> dict[str, Any]:
        """The domain alone."""
        return {"domain": self.domain.to_dict()}

    def exact(self, x: int, y: int) -> Fraction:
        """The law."""
        return Fraction(3, 4) if x == y else Fraction(1, 8)

    def draw(self, codes: Any, words: Words) -> Any:
        """By three bits: 6 in 8 the truth, and 1 in 8 each of the others."""
        bits = (words.words(codes.size) >> np.uint64(61)).astype(np.int64)
        return (codes + np.where(bits < 6, 0, bits - 5)) % 3


def test_a_toy_channel_works_from_the_device_to_the_estimate() -> None:
    """Its law and its sampler are enough: description, reports, counts, estimate, attack, loss."""
    channel = ToyResponse(local.Domain(["a", "b", "c"]))
    try:
        assert local.channel_from_dict(channel.to_dict()) == channel
        reports = channel.privatize(["a"] * 4000 + ["b"] * 2000)
        found = channel.aggregate(reports).estimate()
        # Five deviations; each is at most sqrt(1/4/6000)/(5/8).
        assert np.abs(found.shares - [2 / 3, 1 / 3, 0]).max() < 5 * 0.0104
        assert channel.attack().success == pytest.approx(0.75)
        assert float(channel.loss().epsilon(0)) == pytest.approx(1.7918, abs=1e-3)
    finally:
        from dither.local._registry import KINDS

        del KINDS[ToyResponse.kind]


def _sign(node: exp.Sign, place: Place) -> ex.Expression:
    """SIGN(x), in expressions that every engine knows."""
    (this,) = take(node, place.where, "this")
    value, zero = place.read(this), ex.Literal(0)
    positive = place.make(ex.Compare, ">", value, zero)
    negative = place.make(ex.Compare, "<", value, zero)
    arms = ((positive, ex.Literal(1)), (negative, ex.Literal(-1)))
    null = ex.Case(((ex.Compare("=", value, zero), zero),), ex.Literal(None))
    return ex.Case(arms, null)


@dataclass(frozen=True, slots=True)
class Negated(ex.Function):
    """The number on the other side of 0."""

    form = "negated"
    word = "NEGATED"
    takes = "number"

    def facts(self, operand: Facts) -> Facts:
        """The ends change sides."""
        low, high = operand.range or (None, None)
        ends = None if low is None or high is None else (-high, -low)
        return replace(operand, lower=ends and ends[0], upper=ends and ends[1], domain=None)


def test_a_toy_node_is_read_bounded_hashed_and_run(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """A class of the plan and its SQL are enough: no other file knows of it."""

    def rule(node: exp.Sign, place: Place) -> ex.Expression:
        (this,) = take(node, place.where, "this")
        return Negated(place.read(this))

    def written(emitter: writer.Emitter, node: Negated) -> exp.Expression:
        return exp.Neg(this=exp.Paren(this=emitter.value(node.operand)))

    monkeypatch.setitem(rules.RULES, exp.Sign, rule)
    monkeypatch.setitem(writer._EMIT, Negated, written)
    policy = {
        "budget": {"epsilon": 10**6, "ledger": str(tmp_path / "toy.ledger")},
        "tables": {"t": {"columns": {"x": {"type": "integer", "bounds": [-9, 5]}}}},
    }
    with dt.open(policy, sources={"t": pl.DataFrame({"x": [-5, -1, 0, 3]})}) as session:
        question = session.sql("SELECT SUM(SIGN(x)) AS s FROM t")
        assert "SUM(NEGATED(x))" in question.sql
        assert "[-5, 9]" in str(question.explain())
        release = question.release(10**5)
        assert release.frame["s"].to_list() == [3]
        assert '"node": "negated"' in release.certificate.to_json()


def test_a_toy_function_is_read_bounded_and_run(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """One rule is enough where the plan has words for it: bounds, SQL and the answer follow."""
    policy = {
        "budget": {"epsilon": 10**6, "ledger": str(tmp_path / "toy.ledger")},
        "tables": {"t": {"columns": {"x": {"type": "integer", "bounds": [-9, 9]}}}},
    }
    frame = pl.DataFrame({"x": [-5, -1, 0, 3, 4, 5]})
    with dt.open(policy, sources={"t": frame}) as session:
        with pytest.raises(dt.errors.UnsupportedError, match="SIGN"):
            session.sql("SELECT SUM(SIGN(x)) AS s FROM t")
        monkeypatch.setitem(rules.RULES, exp.Sign, _sign)
        question = session.sql("SELECT SUM(SIGN(x)) AS s FROM t")
        assert "[-1, 1]" in str(question.explain())
        assert question.release(10**5).frame["s"].to_list() == [1]
