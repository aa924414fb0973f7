"""Answers as people read them: values by their intervals, and pictures in the page's colours."""

from __future__ import annotations

import xml.etree.ElementTree as ET

import pytest

from dither import inference
from dither.service.page.asked._figures import plotted
from dither.service.page.asked._tables import ends_of, read_tables, remarks_of

FOUND = inference.proportion([True, False] * 200, null=0.4, epsilon=1)


def test_an_estimate_is_a_row_of_plain_words() -> None:
    """The value, its interval, the parts of its error, and what they rest on."""
    (table,) = read_tables(FOUND)
    words = ["estimate", "standard_error", "of_sampling", "of_noise", "pvalue"]
    assert [head["word"] for head in table["heads"]] == words
    (row,) = table["rows"]
    low, high = map(float, row[0]["ends"].split(" – "))
    assert low <= float(row[0]["text"]) <= high
    assert any("Assumes" in one for one in remarks_of(FOUND))


@pytest.mark.parametrize(
    ("text", "value", "ends"),
    [
        ("-2.7 ± 3.6", "−2.7", "−6.3 – 0.9"),
        ("1,234 ± 9", "1,234", "1,225 – 1,243"),
        ("0.7 [0.2, ∞]", "0.7", "0.2 – ∞"),
        ("-5 [-1,000, 3]", "−5", "−1,000 – 3"),
        ("unknown", "unknown", ""),
    ],
)
def test_intervals_stand_beside_their_values(text: str, value: str, ends: str) -> None:
    """Whichever way they are written, with signs that are as wide as digits."""
    assert ends_of(text) == {"text": value, "ends": ends}


def test_a_picture_has_the_pages_colours_and_nothing_that_is_forbidden() -> None:
    """No style, no script, no address; colours of the palette are classes, names are text."""
    pytest.importorskip("matplotlib")
    hostile = '<script>alert("1")</script>'
    found = plotted(FOUND, hostile)
    assert found is not None
    assert not found.wide
    root = ET.fromstring(str(found.svg))
    assert root.get("aria-label") == hostile
    names = {name for node in root.iter() for name in node.attrib}
    assert not {"style", "onload", "{http://www.w3.org/1999/xlink}href"} & names
    assert {node.tag for node in root.iter()} <= {
        *("svg", "g", "path", "text", "use", "defs", "clipPath", "rect"),
    }
    assert all(n.get("href", "#").startswith("#") for n in root.iter())
    classes = {c for node in root.iter() for c in node.get("class", "").split()}
    assert {"s-one", "s-two", "f-ink"} <= classes
    assert "#0072b2" not in str(found.svg).lower()
    assert "with noise" in {node.text for node in root.iter("text")}
    assert plotted(object(), "") is None
