"""How a policy says that texts are written, text by text on every engine."""

from __future__ import annotations

import datetime as dt
import random
from collections.abc import Sequence
from fractions import Fraction
from typing import Any

import pytest
from sqlglot import exp

from conformance.engines import FreshSQLite, Tried
from conformance.sqlite import SQLiteEngine
from dither.engines.writer import Dialect
from dither.engines.writer.forms import case, identifier, named, named_table, selected
from dither.errors import UnsupportedError
from dither.plan.readings import TextReading
from dither.plan.schema import ColumnFacts, Kind
from engines.hostile import SCHEMA

READINGS = (
    *((kind, TextReading(thousands=",")) for kind in (Kind.REAL, Kind.INTEGER)),
    (Kind.REAL, TextReading(decimal=",", thousands=".", trim="€EUR", null_values=("NA", "-99"))),
    (Kind.REAL, TextReading(decimal=",", thousands=" ")),
    (Kind.REAL, TextReading(thousands="'", parentheses=True)),
    (Kind.REAL, TextReading(trim="$%", parentheses=True, thousands=",")),
    (Kind.INTEGER, TextReading(trim="", thousands="_", parentheses=True)),
    (Kind.TEXT, TextReading(trim="")),
    (Kind.TEXT, TextReading(null_values=("NA", "", " x"))),
    (Kind.TEXT, TextReading(trim="€", null_values=("", "o'b", "NA"))),
    *(
        (kind, TextReading(date_format=form, null_values=("NA",)))
        for kind in (Kind.DATE, Kind.TIMESTAMP)
        for form in ("%d/%m/%Y", "%m-%d-%y", "%Y%m%d", "%d %b %Y", "%B %d, %Y", "%d.%m.%Y %H:%M:%S")
    ),
)

Readings = Sequence[tuple[Kind, TextReading]]

TEXTS = (
    *(
        "",
        " ",
        "NA",
        "-99",
        " NA ",
        "north",
        " x",
        "o'b",
        "é",
        "\\",
        "$1",
        "\u00a05\u202f",
        "\ufeff7",
    ),
    *("1,234.50", "1,234,567", "12,34", "1,2345", ",123", "1,,234", "1.234,50", "1.234.567,5"),
    *("1 234,5", "1\u00a0234,5", "1\u202f234", "1'234.5", "1’234.5", "1_000", "1_00", "1234,5"),
    *("($5.00)", "(1,234.50)", "$(5)", "( 5 )", "(-5)", "()", "(5", "$ -5", "-$ 5", "-$1,234.50"),
    *("12.5%", "€ 1.234,50", "1.234,50 EUR", "-€5", "\u22125", "+5", "--5", "+-5", "5-", "."),
    *(",", "5.", ".5", "1e2", "1E+10", "1e999", "1,000e2", "1e-99", "e5", "nan", "inf", "0x1F"),
    *("9223372036854775807", "9223372036854775808", "9,223,372,036,854,775,808", "0" * 100 + "7"),
    *("1" * 101, "1" * 100 + ".00", "7.00", "7.5", "7,00", "٣", "1\n", "5;", "1,234.50\x00"[:-1]),
    *("01/03/2024", "1/3/2024", "31/02/2024", "29/02/2023", "29/02/2024", "00/01/2024", "1/3/24"),
    *("13/13/2024", "01/03/0000", "01/03/9999", "3-1-24", "12-31-68", "12-31-69", "20240131"),
    *("2024131", "5 Mar 2024", "5 MAR 2024", "5 March 2024", "March 5, 2024", "may 31, 1999"),
    *("31 Sep 2024", "1.3.2024 4:05:06", "01.03.2024 24:00:00", "01.03.2024 23:59:59", "1/3/2024 "),
    *("\u0130an 5, 2024", "1//2024", "1/3/2024x", "2024-03-01", " 31 dec 2023\t"),
)


def meaning(reading: TextReading, text: str | None, kind: Kind) -> Any:
    """What ``TextReading`` says, and Python's own reading of the form that it gives."""
    plain = None if text is None else reading.plain(text, kind)
    if plain is None:
        return None
    if kind is Kind.TEXT:
        return plain
    if kind is Kind.REAL:
        return float(plain)
    if kind is Kind.INTEGER:
        return int(plain) if abs(int(plain)) < 2**63 else None
    try:
        return (dt.date if kind is Kind.DATE else dt.datetime).fromisoformat(plain)
    except ValueError:
        return None


def rows(texts: tuple[str | None, ...]) -> list[dict[str, Any]]:
    nothing = dict.fromkeys(SCHEMA.table("visits").columns)
    return [{**nothing, "h": number, "w": text} for number, text in enumerate(texts)]


def asked(dialect: Dialect, stored: Any, readings: Readings) -> exp.Select:
    """The number of each row, its text under every reading, and whether it says anything."""
    kind, made = stored.types["w"], [identifier("h")]
    for i, (goal, reading) in enumerate(readings):
        facts = ColumnFacts("w", goal, reading=reading)
        value = dialect.cleaned(dialect.read(identifier("w"), kind, facts), facts)
        made.append(named(value, f"r{i}"))
        held = dialect.held(identifier("w"), kind, facts)
        made.append(named(case((held, dialect.integer(1)), otherwise=dialect.integer(0)), f"h{i}"))
    return selected(made, named_table(stored.view))


def test_texts_are_read_alike_and_none_fails(engine):
    """Each engine gives what the reading means, and says what is there, on whatever text."""
    # Spark compiles each query for seconds.
    check(engine, READINGS[::4] if engine.name == "spark" else READINGS)


@pytest.mark.slow
def test_every_text_is_read_alike_on_every_engine(engine):
    """All readings, on Spark too."""
    check(engine, READINGS)


def check(engine: Tried, readings: Readings) -> None:
    bench = engine.bench
    if isinstance(bench, FreshSQLite):
        pytest.skip("the smallest engine reads texts as they are")
    source = random.Random(3)
    odd = "0123456789.,' ()-+%$€eE/NA\u00a0"
    made = tuple("".join(source.choices(odd, k=source.randint(1, 9))) for _ in range(300))
    texts: tuple[str | None, ...] = (None, *TEXTS, *made)
    bench.put({"visits": rows(texts), "doctors": [], "labs": []})
    dialect, stored = bench.engine.dialect, bench.engine._stored_tables()["visits"]
    found = bench.engine._execute(dialect.sql(asked(dialect, stored, readings)))
    assert len(found) == len(texts)
    wrong, read = [], 0
    for number, *values in found:
        text = texts[number]
        for (kind, reading), value, held in zip(readings, values[::2], values[1::2], strict=True):
            shown = None if value is None else dialect.value_of(value, kind)
            wanted = meaning(reading, text, kind)
            says = text is not None and reading.holds(text, kind)
            read += wanted is not None
            if shown != wanted or type(shown) is not type(wanted) or bool(held) != says:
                wrong.append((kind, reading, text, shown, wanted, held))
    assert not wrong[:5]
    assert read > 10 * len(readings)


def test_an_engine_without_patterns_refuses_by_name():
    """A dialect that has no form for it says so before anything is charged."""
    with SQLiteEngine({"visits": [], "doctors": [], "labs": []}, SCHEMA) as small:
        facts = ColumnFacts("w", Kind.REAL, reading=TextReading(thousands=","))
        with pytest.raises(UnsupportedError, match="thousands, decimal, date_format"):
            small.dialect.read(identifier("w"), "TEXT", facts)


@pytest.mark.parametrize("kind", list(Kind))
def test_nothing_said_changes_nothing(kind):
    """An empty reading leaves every text as it is."""
    assert all(TextReading().plain(text, kind) == text for text in TEXTS)


def test_the_owner_is_told_the_same_by_every_engine(engine):
    """What is there, what cannot be read, and what matches no key, counted exactly."""
    bench = engine.bench
    if isinstance(bench, FreshSQLite):
        pytest.skip("the smallest engine reads texts as they are")
    texts = (None, *TEXTS)
    bench.put({"visits": rows(texts), "doctors": [], "labs": []})
    reading = TextReading(thousands=",", null_values=("NA",))
    facts = [
        ColumnFacts("w", Kind.REAL, edges=(Fraction(0), Fraction(10)), reading=reading),
        ColumnFacts("w", Kind.TEXT, values=("north", "é"), reading=TextReading(trim="")),
    ]
    numbers, words = bench.engine.lost("visits", facts)
    said = [t for t in TEXTS if reading.holds(t, Kind.REAL)]
    values = [meaning(reading, t, Kind.REAL) for t in said]
    assert numbers.said == len(said)
    assert numbers.unread == sum(v is None for v in values)
    assert numbers.unlisted == sum(v is not None and not 0 <= v <= 10 for v in values)
    assert 0 < numbers.unlisted < numbers.unread < numbers.said
    assert (words.said, words.unread, words.unlisted) == (len(TEXTS), 0, len(TEXTS) - 2)
