"""A value of a TOML text is changed, and nothing else of the text is."""

from __future__ import annotations

import tomllib
from decimal import Decimal

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dither.errors import PolicyError
from dither.policy.steps import TomlText
from dither.policy.steps._editing import toml_value

TEXT = """\
# Written by hand.
[budget]   # of all
epsilon = 1  # once
ledger = "a # b.ledger"

[tables.visits]
source = 'v.parquet'
names = [  # many
  "a", # one
  "]",
]
long = \"\"\"x
[budget]
epsilon = 3\"\"\"

[tables.visits.columns]
cost = { bounds = [0, 1.50], unit = "EUR" }   # euros
"say \\"hi\\"" = {}
a.b = 1

[quotas.analysts.ann]
epsilon = 1
"""


@pytest.mark.parametrize(
    ("path", "value", "line"),
    [
        (("budget", "epsilon"), Decimal("0.5"), "epsilon = 0.5  # once"),
        (("budget", "delta"), 0, "delta = 0"),
        (("budget", "ledger"), 'q"\n', 'ledger = "q\\"\\u000a"'),
        (
            ("tables", "visits", "columns", "cost", "bounds"),
            [0, 9],
            'cost = { bounds = [0, 9], unit = "EUR" }   # euros',
        ),
        (
            ("tables", "visits", "columns", 'say "hi"', "values"),
            ["x"],
            '"say \\"hi\\"" = { values = ["x"] }',
        ),
        (("tables", "visits", "columns", "new", "type"), "date", 'new = { type = "date" }'),
        (("tables", "visits", "max_rows"), 3, "max_rows = 3"),
        (("quotas", "analysts", "bob", "epsilon"), 2, "[quotas.analysts.bob]"),
        (("tables", "visits", "names"), ["z"], 'names = ["z"]'),
        (("tables", "visits", "long"), "y", 'long = "y"'),
    ],
)
def test_one_value_is_changed(path: tuple[str, ...], value: object, line: str) -> None:
    """Its line is what it should be; comments and all other lines stay."""
    held = TomlText(TEXT)
    found = held.with_value(path, value)
    assert found.get(path) == value
    assert line in found.text.split("\n")
    gone = [one for one in TEXT.split("\n") if one not in found.text.split("\n")]
    assert len(gone) <= (4 if path[-1] in ("names", "long") else 1)
    assert found.with_value(path, value) is found


def test_a_value_is_left_out() -> None:
    """Of a section its line goes, of a table in one line its part."""
    held = TomlText(TEXT).with_value(("budget", "epsilon"), None)
    assert "epsilon" not in held.document["budget"]
    held = held.with_value(("tables", "visits", "columns", "cost", "bounds"), None)
    assert 'cost = { unit = "EUR" }   # euros' in held.text
    assert held.with_value(("nothing", "here"), None) is held
    assert "ann" not in held.without_section(("quotas", "analysts", "ann")).text


def test_what_is_not_foreseen_is_refused() -> None:
    """A list of tables, and keys with dots: the text is not broken."""
    for text in ("[[tables]]\nx = 1\n", "tables = 3\n", "tables.visits.unit = 1\n"):
        with pytest.raises(PolicyError, match="by hand"):
            TomlText(text).with_value(("tables", "visits", "source"), "a")


def test_lines_are_found() -> None:
    """Of a field, else of what is around it."""
    held = TomlText(TEXT)
    assert held.line_of(("budget", "epsilon")) == 3
    assert held.line_of(("tables", "visits", "columns", "cost", "bounds")) == 17
    assert held.line_of(("tables", "visits", "max_rows")) == 6
    assert held.line_of(("nothing",)) is None


VALUES = st.recursive(
    st.booleans() | st.integers(-(2**62), 2**62) | st.text(max_size=20)
    | st.decimals(allow_nan=False, allow_infinity=False, places=3, min_value=-(10**6),
                  max_value=10**6),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(max_size=8), inner,
                                                                 max_size=3),
    max_leaves=8,
)  # fmt: skip


@given(VALUES)
def test_values_are_read_back(value: object) -> None:
    """Whatever is written is what TOML reads."""
    found = tomllib.loads(f"x = {toml_value(value)}", parse_float=Decimal)["x"]
    assert found == value


@given(st.text(max_size=12), st.text(max_size=12))
def test_any_name_of_a_column_stays_a_name(name: str, value: str) -> None:
    """Quotes, newlines, dots and brackets in it are no TOML."""
    held = TomlText(TEXT).with_value(("tables", "visits", "columns", name, "unit"), value)
    assert held.get(("tables", "visits", "columns", name)) == {"unit": value}
    assert held.get(("budget",)) == TomlText(TEXT).get(("budget",))
