"""Questions by forms: the fields are the method's own, and what they make is the same question."""

from __future__ import annotations

import html
import inspect
import json
import re
from typing import Any

import pytest

pytest.importorskip("jinja2")

from dither.errors import ArgumentError
from dither.service.page.forms import KINDS
from dither.service.page.forms._fields import FormField, read_fields
from dither.service.page.forms._kinds import IN_PYTHON_ALONE, PRICE
from dither.service.page.views.forms import FIELDS
from dither.service.routes import asking
from service.hospital import Served


@pytest.fixture(autouse=True)
def _drafts_are_worked_out_here(monkeypatch: pytest.MonkeyPatch) -> None:
    """Not in a process for each test's service: `service.work.test_thinking` is about these."""
    monkeypatch.setattr(asking, "is_short", lambda _: True)


FILLED: dict[str, dict[str, str]] = {
    "mean": {"x": "cost"},
    "proportion": {"condition": "ill = 1", "null": "0.1"},
    "median": {"x": "cost", "bins": "64"},
    "quantile": {"x": "cost", "probability": "0.9"},
    "quantiles": {"x": "cost", "probabilities": "0.1, 0.9"},
    "difference": {"x": "cost", "by": "region", "levels": "south, north"},
    "test_independence": {"x": "region", "y": "ill", "draws": "200"},
    "goodness_of_fit": {"x": "ill", "probabilities": "0 = 0.4, 1 = 0.6", "draws": "200"},
    "regression": {"formula": "cost ~ C(region)"},
    "marginals": {"tables": "region, ill; beds", "delta": "1e-9"},
    "hierarchy": {"levels": "beds, region", "delta": "0"},
    "ranges": {"x": "cost", "bins": "16"},
    "synthesis": {"columns": "region, ill, beds", "workload": "2"},
    "additive": {"formula": "ill ~ cost + region"},
    "forest": {"formula": "ill ~ cost", "n_estimators": "4"},
    "naive_bayes": {"formula": "ill ~ cost"},
    "linear": {"formula": "cost ~ C(region)"},
    "logistic": {"formula": "ill ~ C(region)"},
}


@pytest.mark.parametrize("kind", KINDS.values(), ids=KINDS)
def test_a_form_asks_for_all_that_its_method_takes(kind: Any) -> None:
    """Every parameter is a field, is the price, or is said to be for Python alone."""
    asked = {one.name for one in kind.fields}
    elsewhere = {*PRICE, *IN_PYTHON_ALONE.get(kind.name, ())}
    assert asked | elsewhere >= inspect.signature(kind.method).parameters.keys() - {"self"}
    assert not asked & elsewhere
    assert asked <= set(FIELDS)


def test_no_field_is_known_that_no_form_asks_for() -> None:
    """What the views take is what the forms have."""
    assert set(FIELDS) == {field.name for kind in KINDS.values() for field in kind.fields}


def drafted(house: Served, kind: str, **fields: str) -> str:
    """What stands beside a form that is filled in so."""
    found = house.http.post(
        f"/p/visits/ask/forms/{kind}/draft",
        data={"table": "visits", "epsilon": "0.5"} | fields,
        headers={"authorization": f"Bearer {house.keys['ann']}", "hx-request": "true"},
    )
    assert found.status_code == 200, found.text
    return html.unescape(found.text)


@pytest.mark.parametrize("kind", FILLED)
def test_every_form_makes_a_question_that_is_explained_and_priced(
    hospital: Served, kind: str
) -> None:
    """And the calls that it makes are asked for a release as they stand."""
    text = drafted(hospital, kind, **FILLED[kind])
    asked = re.search(r'name="calls" value="(.*)">', text)
    assert asked is not None, text
    price = hospital.post("ann", "/price", {"ask": json.loads(asked[1])}).json()
    assert "price" in price, price


def test_half_a_form_says_what_is_missing(hospital: Served) -> None:
    """Nothing is asked before it is whole, and the words are the library's."""
    assert "x is missing" in drafted(hospital, "mean")
    assert "unknown column" in drafted(hospital, "mean", x="nowhere")


def test_nothing_that_is_written_leaves_its_field(hospital: Served) -> None:
    """Script in a field is text, and calls cannot be written into one."""
    for field, text in (
        ("x", '<img src="x">'),
        ("x", '"]]],["sql",["SELECT 1'),
        ("where", "1 = 1); DROP TABLE visits"),
    ):
        shown = hospital.http.post(
            "/p/visits/ask/forms/mean/draft",
            data={"table": "visits", "epsilon": "0.5", "x": "cost", field: text},
            headers={"authorization": f"Bearer {hospital.keys['ann']}"},
        ).text
        assert 'name="calls"' not in shown
        assert text not in shown


@pytest.mark.parametrize(
    ("kind", "text", "read"),
    [
        ("whole", "12", 12),
        ("number", "−1.5", -1.5),
        ("numbers", "0.1，0.9", [0.1, 0.9]),
        ("columns", " a, b ,", ["a", "b"]),
        ("levels", 'a, "1"', {"tuple": ["a", "1"]}),
        ("levels", "0, 1", {"tuple": [0, 1]}),
        ("shares", "a = 0.5, b=c = .5", {"mapping": [["a", 0.5], ["b=c", 0.5]]}),
        ("tables", "2", 2),
        ("tables", "a, b; c", [["a", "b"], ["c"]]),
    ],
)
def test_fields_are_read_as_people_write(kind: str, text: str, read: Any) -> None:
    """Commas of two languages, spaces, and levels that look like numbers."""
    assert read_fields((FormField("f", kind),), {"f": text}) == {"f": read}


@pytest.mark.parametrize(
    ("kind", "text"),
    [
        ("whole", "1.5"),
        ("whole", "9" * 20),
        ("number", "nan"),
        ("number", "1e999"),
        ("number", "1" * 60),
        ("numbers", "a, b"),
        ("levels", "one"),
        ("shares", "a, b"),
        ("choice", "other"),
    ],
)
def test_other_things_are_refused_by_the_fields_name(kind: str, text: str) -> None:
    """And not quoted."""
    with pytest.raises(ArgumentError, match=r"^f must be") as caught:
        read_fields((FormField("f", kind, choices=("any",)),), {"f": text})
    assert text not in str(caught.value)
