"""Every function of rows, with every sort of constant, value by value on every engine."""

from __future__ import annotations

import datetime as dt
import random
from collections.abc import Iterator
from fractions import Fraction
from itertools import product
from typing import Any

from sqlglot import exp

from conformance.engines import FreshSQLite
from conformance.sqlite import SQLiteEngine
from dither.engines.writer import Dialect
from dither.engines.writer.expressions import Emitter
from dither.engines.writer.forms import identifier, named, named_table, selected, subquery
from dither.errors import QueryError, UnsupportedError
from dither.plan import expressions as ex
from dither.plan.facts.values import infer
from dither.plan.functions.dates import PERIODS
from dither.plan.schema import Kind
from engines.hostile import SCHEMA, SCOPE, column
from engines.reference import Evaluator
from plan import calls

AT_ONCE = 60
"""Functions in one query."""

WORDS = (
    *("", "a", "aB", "Ba", "é", "😀z", "o'b", "\\", "%", "_", "a%", " a ", "a\nb", "ab" * 9, "Éa"),
    *(" 7 ", "+7", "-0", "7.", ".5", "7e2", "-1.5E-3", "1e999", "9223372036854775807", "nan"),
    *("9223372036854775808", "1" * 30, "2" * 31, "infinity", "0x7f", "TRUE", "no", "t", "on"),
    *("2020-02-29", "2021-02-29", "1900-02-29", "0000-01-01", "0001-01-01", "9999-12-31", "1 2"),
    *("2020-02-30", "2020-13-01", "2020-02-29 24:00", "2020-02-29T23:59:59.123456", "2020-1-1"),
    *("2020-04-31 00:00", "1999-12-31 10:30", "2020-02-29 10:30:00.1234567", "now", "epoch"),
    *(
        "2020-01-01 1:00",
        "x" * 40,
        "0.30000000000000004",
        "9007199254740993",
        "123456789012.345678",
    ),
    *(
        "1" * 30 + "." + "2" * 30 + "e-99",
        "9" * 30 + "e99",
        "." + "0" * 29 + "1e-99",
        "1." + "1" * 31,
    ),
)
REALS = (
    *(0.0, -0.0, 0.5, -0.5, 2.5, -2.5, 1.0, -1.0, 0.49999999999999994, 2.675, 1000.0, 1e15 + 0.5),
    *(5e-324, -5e-324, 1e-300, 1e300, 1e308, -1e308, 2.0**52 + 1, 2.0**63, -(2.0**63), 9.2e18),
    *(float("inf"), float("-inf"), float("nan"), 690.0, 690.1, -690.0, -746.0, 709.0, 1e-9, 99.995),
)
WHOLE = (0, 1, -1, 4, 5, -5, 15, 449, 450, 2**53 + 1, 2**63 - 1, -(2**63), 10**15, 110, -2)
DAYS = (
    *(dt.date(1, 1, 1), dt.date(9999, 12, 31), dt.date(2020, 2, 29), dt.date(2021, 1, 3)),
    *(dt.date(1969, 12, 31), dt.date(2020, 1, 31), dt.date(2024, 12, 30), dt.date(1600, 2, 29)),
)
STAMPS = (
    *(dt.datetime(1, 1, 1), dt.datetime(9999, 12, 31, 23, 59, 59, 999999)),
    *(dt.datetime(1969, 12, 31, 23, 59, 59, 999999), dt.datetime(2020, 2, 29, 12, 34, 56, 789012)),
    *(dt.datetime(2016, 1, 31, 10), dt.datetime(1582, 10, 10, 1, 2, 3)),
)


def rows() -> list[dict[str, Any]]:
    """Every value at least once, beside others by chance; ``h`` is the number of the row."""
    source = random.Random(7)
    sides = {"w": WORDS, "y": REALS, "i": WHOLE, "d": DAYS, "t": STAMPS, "b": (True, False)}
    longest = max(map(len, sides.values()))
    made: list[dict[str, Any]] = []
    for number in range(longest + 6):
        row: dict[str, Any] = dict.fromkeys(SCHEMA.table("visits").columns)
        for name, values in sides.items():
            known = values[number] if number < len(values) else source.choice(values)
            row[name] = known if number < longest else source.choice((known, None))
        made.append(row | {"h": number, "x": source.choice(REALS), "e": source.choice(DAYS)})
    # One operand alone is NULL, whatever the other is.
    nothing = dict.fromkeys(SCHEMA.table("visits").columns)
    made += [{**nothing, "x": x} for x in REALS]
    made += [{**nothing, "y": 1.5, "i": i, "w": "a", "b": True} for i in WHOLE]
    return [row | {"h": number} for number, row in enumerate(made)]


def _options(name: str) -> list[tuple[Any, ...]]:
    sides = ("both", "leading", "trailing")
    return {
        "round": [(n,) for n in (0, 1, 2, 15, -1, -3, -15)],
        "log": [(base,) for base in calls.BASES],
        "trim": list(product(sides, (" ", "a", "é 'B"))),
        "replace": list(product(("a", "é", " ", "'"), ("", "B", "aa", "a\\1$"))),
        "like": [(p,) for p in calls.PATTERNS],
        "regular expression": [(p,) for p in calls.EXPRESSIONS],
        "date difference": [(p,) for p in PERIODS],
        "interval": list(product((1, -1, 30, -5000, 10**5), ("day", "month", "second"))),
        "format of time": [(f,) for f in calls.FORMATS],
        "cast": [(t,) for t in calls.TYPES],
    }.get(name, [()])


def every_call() -> Iterator[ex.Expression]:
    """Each function on columns of each kind that it takes, and every part of a date."""
    columns = {
        "number": [column("y"), column("i")],
        "real": [column("y"), column("i")],
        "text": [column("w")],
        "date": [column("d"), column("t")],
        "any": [column(n) for n in "ywidtb"],
    }
    for name, signature in ex.FUNCTIONS.items():
        for taken in product(*(columns[kind] for kind in signature.takes)):
            operands = taken
            if name == "power":
                operands = (taken[0], ex.Clamp(column("x"), Fraction(-3), Fraction(3)))
            elif len(taken) == 2 and signature.takes[0] == "text":
                # A text in itself says little.
                operands = (taken[0], ex.Substring(column("w"), 1, 1))
            for options in _options(name):
                node = ex.Call(name, operands, options)
                try:
                    infer(node, SCOPE)
                except QueryError:
                    continue
                yield node
    for name in "dt":
        for part in ex.PARTS:
            if name == "t" or part not in ex.TIMES:
                yield ex.DatePart(part, column(name))
        for part in ex.TRUNCATIONS:
            if name == "t" or part not in ex.TIMES:
                yield ex.DateTruncate(part, column(name))


def asked(dialect: Dialect, stored: Any, nodes: list[ex.Expression]) -> exp.Select:
    """The number of each row, and the nodes on it; columns are read as a query reads them."""
    facts = SCHEMA.table("visits").columns
    names = "hywidtbx"
    typed = [
        named(dialect.typed(identifier(n), stored.types[n] or "", facts[n].kind), n) for n in names
    ]
    inner = subquery(selected(typed, named_table(stored.view)), "s")
    cleaned = [named(dialect.cleaned(identifier(n), facts[n]), n) for n in names]
    emitter = Emitter(dialect, SCOPE, lambda found: identifier(found.name))
    values = [named(emitter.value(node), f"e{i}") for i, node in enumerate(nodes)]
    read = subquery(selected(cleaned, inner), "c")
    return selected([identifier("h"), *values], read)


def _near(found: Any, wanted: Any, node: ex.Expression) -> bool:
    """Whether two values are one; logarithms and powers up to their last of 44 bits."""
    if isinstance(found, float) and isinstance(wanted, float):
        loose = isinstance(node, ex.Call) and node.function in ("ln", "log", "exp", "power")
        return found == wanted or (loose and abs(found - wanted) <= 2.0**-43 * abs(wanted))
    return type(found) is type(wanted) and bool(found == wanted)


def disagreements(
    engine: Any, table: list[dict[str, Any]], nodes: list[ex.Expression]
) -> tuple[list[Any], list[ex.Expression]]:
    """Where an engine gives something else than a function says of itself, and what it refuses."""
    bench = engine.bench
    every = {"visits": table, "doctors": [], "labs": []}
    if isinstance(bench, FreshSQLite):
        running: Any = SQLiteEngine(every, SCHEMA)
    else:
        bench.put(every)
        running = bench.engine
    dialect, stored = running.dialect, running._stored_tables()["visits"]
    evaluate = Evaluator(SCOPE)
    read = [{column(n): None if v != v else v for n, v in row.items()} for row in table]
    refused = []
    tried = []
    for node in nodes:
        try:
            Emitter(dialect, SCOPE, lambda found: identifier(found.name)).value(node)
        except UnsupportedError:
            refused.append(node)
        else:
            tried.append(node)
    wrong = []
    for start in range(0, len(tried), AT_ONCE):
        some = tried[start : start + AT_ONCE]
        found = running._execute(dialect.sql(asked(dialect, stored, some)))
        assert len(found) == len(table)
        for number, *values in found:
            for node, value in zip(some, values, strict=True):
                kind = infer(node, SCOPE).kind
                wanted = evaluate(node, read[number], kind)
                shown = None if value is None else dialect.value_of(value, kind)
                if not _near(shown, wanted, node):
                    wrong.append((node, number, shown, wanted))
    return wrong, refused


def test_every_function_means_the_same_on_every_value(engine):
    """No call fails, and each value is the one that the function says of itself."""
    wrong, refused = disagreements(engine, rows(), list(every_call()))
    assert not wrong[:5]
    # Regular expressions that only a linear matcher may be given.
    assert {n.function for n in refused} <= {"regular expression"}
    assert len(refused) <= 4


def test_what_is_looked_for_is_short(engine):
    """An engine tries each place of a text anew: of more than a thousand letters it finds NULL."""
    w = column("w")
    parts = [w, ex.Call("concat", (w, w)), ex.Substring(w, 1, 1000)]
    made: list[ex.Expression] = [ex.Call("contains", (w, part)) for part in parts]
    made += [ex.Call("position", (part, w)) for part in parts]
    words = [
        "",
        "é",
        "ab" * 250,
        "x" * 500,
        "x" * 501,
        "😀" * 1000,
        "😀" * 1001,
        "a" * 40_000,
        None,
    ]
    nothing = dict.fromkeys(SCHEMA.table("visits").columns)
    given = [nothing | {"h": number, "w": word} for number, word in enumerate(words)]
    assert disagreements(engine, given, made) == ([], [])
    answers = [Evaluator(SCOPE)(made[0], {w: word}, Kind.BOOLEAN) for word in words]
    assert answers == [True] * 6 + [None] * 3
