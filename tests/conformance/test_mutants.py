"""A plausible mistake in the SQL of every function, each seen by the plan that holds it."""

from __future__ import annotations

from dataclasses import replace

import pytest
from sqlglot import exp

from conformance.engines import by_group, expected
from conformance.every_engine.test_every_plan import KEY, expressions
from conformance.plans import PLANS, job, rows, schema
from dither.engines.writer import functions
from dither.engines.writer.forms import binary, call, case
from dither.engines.writer.rows import RowSource
from dither.errors import EngineError
from dither.plan import expressions as ex
from dither.plan.relations import KeyFilter
from dither.plan.schema import Kind
from engines.hostile import Bench


def _text(value: str) -> exp.Expression:
    return exp.Literal.string(value)


def _real(value: float) -> exp.Expression:
    return exp.cast(exp.Literal.number(value), "DOUBLE")


MUTANTS = {
    # Halves to the even number, as a cast has it.
    "round": lambda d, xs, kinds, places: (
        call("ROUND_EVEN", exp.cast(xs[0], "DOUBLE"), exp.Literal.number(places))
        if places > 0
        else d.narrowed(call("TRUNC", exp.cast(xs[0], "DOUBLE")))
    ),
    # NaN of a negative number, which no sum of integers holds.
    "sqrt": lambda d, xs, kinds: call("SQRT", call("ABS", xs[0])),
    "ln": lambda d, xs, kinds: call("LN", call("ABS", xs[0])),
    "log": lambda d, xs, kinds, base: call("LN", case((binary(">", xs[0], _real(0)), xs[0]))),
    "exp": lambda d, xs, kinds: call("EXP", xs[0]),
    "power": lambda d, xs, kinds: call("POWER", *xs),
    # Bytes instead of code points.
    "length": lambda d, xs, kinds: exp.cast(call("STRLEN", xs[0]), "BIGINT"),
    "trim": lambda d, xs, kinds, side, letters: d.trimmed(xs[0], "leading", letters),
    "replace": lambda d, xs, kinds, old, new: d.replaced(xs[0], new, old),
    # As CONCAT has it, and not ||.
    "concat": lambda d, xs, kinds: call("CONCAT", *xs),
    "contains": lambda d, xs, kinds: call("CONTAINS", *reversed(xs)),
    "starts with": lambda d, xs, kinds: d.ends_with(*xs),
    "ends with": lambda d, xs, kinds: call("CONTAINS", *xs),
    "position": lambda d, xs, kinds: d.arithmetic("-", d.position(*xs), d.integer(1)),
    "like": lambda d, xs, kinds, pattern: d.like(xs[0], pattern.replace("_", "%")),
    "regular expression": lambda d, xs, kinds, pattern: d.matches(
        xs[0], functions.of_regexp(pattern.replace("$", ""))
    ),
    # So many whole weeks, instead of the Mondays between.
    "date difference": lambda d, xs, kinds, part: d.arithmetic(
        "//", d.arithmetic("-", d.day_number(xs[1]), d.day_number(xs[0])), d.integer(7)
    ),
    # Beyond the year 9999, where Python has no date to read it as.
    "interval": lambda d, xs, kinds, amount, unit: d.shifted(xs[0], amount, unit, kinds[0]),
    "format of time": lambda d, xs, kinds, pattern: call(
        "STRFTIME", xs[0], _text(pattern.replace("%M", "%m"))
    ),
    # Fails on what does not fit.
    "cast": lambda d, xs, kinds, target: d.cast_to(xs[0], d.types[Kind(target)]),
}


def _plans_of(function: str) -> list[str]:
    return [
        plan
        for plan in PLANS
        if any(isinstance(n, ex.Call) and n.function == function for n in expressions(plan))
    ]


@pytest.fixture(scope="module")
def bench():
    """The embedded engine, over rows that are exchanged."""
    found = Bench()
    yield found
    found.close()


@pytest.mark.parametrize("function", ex.FUNCTIONS)
def test_a_mistake_in_a_function_is_seen(function, bench, monkeypatch):
    """Some plan of the list gives another answer, or none."""
    monkeypatch.setitem(functions.FORMS, function, MUTANTS[function])  # type: ignore[arg-type]
    seen = []
    for plan in _plans_of(function):
        try:
            found = by_group(bench.run(job(plan), schema(plan), rows(), KEY))
        except (EngineError, OverflowError, ValueError):
            seen.append(plan)
        else:
            if found != expected(job(plan), schema(plan), rows()):
                seen.append(plan)
    assert seen


def _lax(self: RowSource, among: KeyFilter) -> exp.Select:
    """``NOT IN`` of all for which ``IN`` is not true, NULL among them."""
    found = KEPT(self, replace(among, negated=False))
    if among.negated:
        inside = exp.Coalesce(this=found.args["where"].this, expressions=[exp.false()])
        found.set("where", exp.Where(this=exp.Not(this=inside)))
    return found


def _joined(self: RowSource, among: KeyFilter) -> exp.Select:
    """A join with the list, in which a key that occurs twice gives a row twice."""
    found = KEPT(self, among)
    test = found.args["where"].this
    keys = exp.Subquery(this=test.args["query"].this, alias=exp.to_identifier("keys"))
    same = exp.EQ(this=test.this, expression=exp.column("key", "keys"))
    found.set("where", None)
    return exp.select("f.*").from_(found.args["from_"].this).join(keys, on=same)


KEPT = RowSource._among


@pytest.mark.parametrize("mutant", [None, _lax, _joined])
def test_a_mistake_in_a_list_of_keys_is_seen(bench, monkeypatch, mutant):
    """NULL as SQL has it, and no row twice; the engine's own answers are right."""
    if mutant is not None:
        monkeypatch.setattr(RowSource, "_among", mutant)
    plans = {
        _lax: ["not among public keys"],
        _joined: ["among public keys"],
        None: ["not among public keys", "among public keys"],
    }
    tables = {**rows(), "doctors": rows()["doctors"] * 2}
    for plan in plans[mutant]:
        found = by_group(bench.run(job(plan), schema(plan), tables, KEY))
        right = found == expected(job(plan), schema(plan), tables)
        assert right is (mutant is None)
