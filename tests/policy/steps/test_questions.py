"""The questions of a policy: words in each language, answers that are read, and what follows."""

from __future__ import annotations

from datetime import date
from decimal import Decimal
from string import Formatter

import pytest

from dither.errors import ArgumentError, PolicyError
from dither.plan.schema import Kind
from dither.policy._policy import read_policy
from dither.policy.steps import QUESTIONS, STEPS, TomlText, answered, asked
from dither.policy.steps._questions import ROW, words

POLICY = """
[budget]
epsilon = 1
ledger = "l"
[tables.visits]
source = "v.parquet"
[tables.visits.columns]
cost = {}
day = {}
"""


@pytest.mark.parametrize("language", ["en", "zh"])
def test_every_question_has_its_words(language: str) -> None:
    """What it asks, what its answer means, what happens if it is left out; with the same values."""
    found, english = words(language), words("en")
    assert found.keys() == {*QUESTIONS, *(f"step_{step}" for step in STEPS)}
    for key, said in found.items():
        wanted = {"title", "about"} if key.startswith("step_") else {
            "question", "meaning", "left_out"}  # fmt: skip
        assert said.keys() == wanted
        for field, text in said.items():
            assert text.strip()
            values = {name for _, name, _, _ in Formatter().parse(text) if name}
            assert values == {n for _, n, _, _ in Formatter().parse(english[key][field]) if n}


@pytest.mark.parametrize(
    ("key", "text", "kind", "value"),
    [
        ("bounds", "0, 100", Kind.INTEGER, [0, 100]),
        ("bounds", "[0, 2.50]", Kind.REAL, [0, Decimal("2.50")]),
        ("bounds", "2024-01-01, 2024-12-31", Kind.DATE, [date(2024, 1, 1), date(2024, 12, 31)]),
        ("bounds", "learned", Kind.REAL, "learned"),
        ("values", 'north, "a, b"\nsouth', Kind.TEXT, ["north", "a, b", "south"]),
        ("values", "1,2", Kind.INTEGER, [1, 2]),
        ("epsilon", "1e-3", None, Decimal("0.001")),
        ("max_rows", "7", None, 7),
        ("nullable", "false", None, False),
        ("measure", " EUR ", None, "EUR"),
        ("epsilon", "  ", None, None),
    ],
)
def test_answers_are_read(key: str, text: str, kind: Kind | None, value: object) -> None:
    """As exact values of the column's kind."""
    assert QUESTIONS[key].read(text, kind) == value


@pytest.mark.parametrize(
    ("key", "text", "kind"),
    [
        ("bounds", "1", Kind.REAL),
        ("bounds", "a, b", Kind.REAL),
        ("bounds", "0-100", Kind.INTEGER),
        ("bounds", "100, 0", Kind.INTEGER),
        ("bounds", "2024-01-01, 2024-01-01", Kind.DATE),
        ("bounds", "2024-01-01, 2024-01-01T10:00", Kind.TIMESTAMP),
        ("values", "1, 1", Kind.INTEGER),
        ("epsilon", "0", None),
        ("quota", "-1", None),
        ("delta", "1", None),
        ("step", "0", None),
        ("bounds", "today, tomorrow", Kind.DATE),
        ("epsilon", "NaN", None),
        ("epsilon", "1e999999", None),
        ("max_rows", "-1", None),
        ("max_rows", "1.5", None),
        ("block_every", "fortnight", None),
        ("nullable", "no", None),
    ],
)
def test_what_is_no_answer_is_refused(key: str, text: str, kind: Kind | None) -> None:
    """Naming the question and what would be one."""
    with pytest.raises(ArgumentError, match=key):
        QUESTIONS[key].read(text, kind)


def test_what_must_change_with_an_answer_does() -> None:
    """Limits with a unit, the budget with blocks, values with bounds; and back again."""
    held = answered(TomlText(POLICY), "unit", "patient", "visits")
    assert held.get(("tables", "visits", "max_rows")) == 1
    held = answered(held, "max_rows", "5", "visits")
    assert answered(held, "max_rows", "", "visits").get(("tables", "visits", "max_rows")) == 1
    held = answered(held, "block_column", "day", "visits")
    held = answered(held, "block_every", "week", "visits")
    held = answered(held, "lifetime", "3")
    read = read_policy(held.document)
    assert read.per_block
    assert read.lifetime is not None
    assert asked(held, "block_every", "visits") == "week"
    held = answered(held, "block_column", "", "visits")
    assert not read_policy(held.document).per_block
    held = answered(held, "bounds", "0, 5", "visits", "cost", kind=Kind.REAL)
    held = answered(held, "values", "1, 2", "visits", "cost", kind=Kind.INTEGER)
    assert held.get(("tables", "visits", "columns", "cost")) == {"values": [1, 2]}
    held = answered(held, "unit", ROW, "visits")
    assert asked(held, "unit", "visits") == ROW
    assert read_policy(held.document).units["visits"].declared
    held = answered(held, "unit", "", "visits")
    assert asked(held, "unit", "visits") == ""
    assert "max_rows" not in held.text
    held = answered(held, "quota", "0.5", "ann")
    assert asked(held, "quota", "ann") == "0.5"
    assert "quotas" not in answered(held, "quota", "", "ann").document.get("quotas", {})


def test_a_unit_of_several_tables_stays_theirs() -> None:
    """An answer about one table changes what is said of the other by nothing."""
    text = POLICY + '[tables.labs]\nsource = "l.parquet"\n[units.patient]\n'
    held = TomlText(text + 'columns = { visits = "pid", labs = "pid" }\n')
    assert asked(held, "unit", "visits") == "pid"
    other = answered(held, "unit", "person", "visits")
    assert other.get(("units", "patient", "columns")) == {"visits": "person", "labs": "pid"}
    with pytest.raises(PolicyError, match="first"):
        answered(held, "block_every", "month", "visits")
