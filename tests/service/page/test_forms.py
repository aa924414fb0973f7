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
from dither.service.page.asked._python import decimal
from dither.service.page.forms import KINDS, form_of
from dither.service.page.forms._fields import FormField, read_fields
from dither.service.page.forms._kinds import IN_PYTHON_ALONE, PRICE
from dither.service.page.views.forms import FIELDS
from dither.service.routes import asking
from dither.service.work import _drafts
from dither.service.work._drafts import question_made
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
    "logistic_regression": {"formula": "ill ~ C(region)"},
    "kaplan_meier": {"time": "cost", "event": "ill = 1", "by": "region", "bins": "4"},
    "logrank_test": {"time": "cost", "event": "ill", "by": "region", "bins": "4", "draws": "200"},
    "rate": {"events": "ill = 1", "time": "cost", "per": "100"},
    "rate_ratio": {"events": "ill", "time": "cost", "by": "region", "levels": "south, north"},
    "standardised_rate": {
        "events": "ill",
        "time": "cost",
        "strata": "region",
        "weights": "north = 1, south = 2",
    },
    "standardised_ratio": {
        "events": "ill",
        "time": "cost",
        "strata": "region",
        "reference": "north = 0.1, south = 0.2",
    },
    "mantel_haenszel": {"outcome": "ill = 1", "exposed": "cost > 9", "strata": "region"},
    "f_oneway": {"x": "cost", "by": "region", "draws": "200", "equal_var": "no"},
    "weighted_mean": {"x": "cost", "weights": "beds"},
    "weighted_proportion": {"condition": "ill = 1", "weights": "beds"},
    "weighted_total": {"x": "cost", "weights": "beds"},
    "describe": {"by": "region", "columns": "cost, ill", "bins": "16"},
    "marginals": {"tables": "region, ill; beds", "delta": "1e-9"},
    "hierarchy": {"levels": "beds, region", "delta": "0"},
    "ranges": {"x": "cost", "bins": "16"},
    "synthesis": {"columns": "region, ill, beds", "workload": "2", "rules": "ill <= beds"},
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
    # What is left, and what would be, stands there as it does beside a question in SQL.
    assert 'class="accounts"' in text
    again = form_of(json.loads(asked[1]))
    filled = {"table": "visits", "epsilon": "0.5"} | FILLED[kind]
    assert again is not None
    assert again[0] is KINDS[kind]
    wanted = {n: decimal(v) if n in PRICE else v for n, v in filled.items()}
    assert again[1] == wanted


def test_a_draft_makes_its_question_once(hospital: Served, monkeypatch: pytest.MonkeyPatch) -> None:
    """For its explanation, its preview and its price."""
    made: list[Any] = []

    def counted(*args: Any) -> Any:
        made.append(question_made(*args))
        return made[-1]

    monkeypatch.setattr(_drafts, "question_made", counted)
    text = drafted(hospital, "mean", x="cost")
    assert "half-width" in text
    assert len(made) == 1


@pytest.mark.parametrize(
    ("last", "fields"),
    [
        (["quantiles", ["cost"], {"probabilities": {"tuple": [0.25, 0.75]}}],
         {"x": "cost", "probabilities": "0.25, 0.75"}),
        (["difference", ["cost"], {"by": "ill", "levels": {"tuple": [0, "1"]}, "null": 0}],
         {"x": "cost", "by": "ill", "levels": '0, "1"', "null": "0"}),
        (["goodness_of_fit", ["ill", {"mapping": [[0, {"number": "1/2"}], [1, 0.5]]}], {}], None),
        (["difference", ["cost"], {"by": "ill", "levels": ["a, b", "c"]}], None),
        (["mean", ["cost"], {"unheard": 1}], None),
        (["mean", ["cost", "any", 0, 1], {}], None),
        (["mean", [{"count": None}], {}], None),
    ],
)  # fmt: skip
def test_what_a_program_asked_fills_its_form_where_a_form_can_say_it(
    last: list[Any], fields: dict[str, str] | None
) -> None:
    """What no text in a field is read as is asked as it was, and not as something else."""
    paid = ["infer", [{"number": "1/4"}], {}]
    found = form_of([["table", ["visits"], {}], ["filter", ["cost > 4"], {}], paid, last])
    if fields is None:
        assert found is None
    else:
        assert found is not None
        filled = {"table": "visits", "where": "cost > 4", "epsilon": "0.25"} | fields
        assert (found[0].name, found[1]) == (last[0], filled)


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
