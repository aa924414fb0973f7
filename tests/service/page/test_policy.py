"""The policy's steps and its text, in a browser."""

from __future__ import annotations

import tomllib
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

pytest.importorskip("playwright", reason="the browser extra is not installed")

import polars as pl
from axe_playwright_python.sync_playwright import Axe
from playwright.sync_api import Page, expect

from service.loopback import OnLoopback, serving, write
from service.page.visitor import Visitor

HOSTILE = [
    'say "hi"',
    "<script>alert(1)</script>",
    "two\nlines",
    "it's {0} [tables.x]",
    "</textarea>",
]

POLICY = """
# Written by hand, and kept.
[budget]
epsilon = 10
delta = 1e-6
ledger = "stays.ledger"   # where spending is kept

[service]
name = "stays"

[tables.visits]
source = "visits.parquet"
unit = "patient"
max_rows = 3
max_groups = 2
[tables.visits.columns]
age = { bounds = [0, 110] }
"""


@pytest.fixture
def stays(tmp_path: Path) -> Iterator[OnLoopback]:
    """A service whose policy's folder has one more file, with odd names of columns."""
    file = write(tmp_path, policy=POLICY)
    pl.DataFrame(
        {
            "patient_id": [str(i % 40) for i in range(120)],
            "days": [str(i % 9) for i in range(120)],
            "ward": ["ab"[i % 2] for i in range(120)],
            "day": [f"2024-0{1 + i % 6}-15" for i in range(120)],
        }
    ).write_csv(tmp_path / "stays.csv")
    pl.DataFrame({name: ["x"] for name in HOSTILE}).write_parquet(tmp_path / "odd.parquet")
    with serving(file) as found:
        yield found


def text(page: Page) -> str:
    """What the policy's text is now."""
    return page.input_value("#toml")


def step(page: Page, key: str) -> None:
    """Go to a step."""
    page.click(f"#step-{key}")
    expect(page.locator(f"#step-{key}")).to_have_attribute("aria-current", "step")


@contextmanager
def swapped(page: Page) -> Iterator[None]:
    """Wait until what is done here has changed the page."""
    page.evaluate(
        "document.documentElement.dataset.swapped = 'no'; document.addEventListener("
        "'htmx:after:swap', () => { document.documentElement.dataset.swapped = 'yes'; }, "
        "{once: true})"
    )
    yield
    expect(page.locator("html")).to_have_attribute("data-swapped", "yes")


def answer(page: Page, field: str, value: str) -> None:
    """Answer a question, and wait until the text has it."""
    with swapped(page):
        if page.locator(f"#{field}").evaluate("one => one.tagName") == "SELECT":
            page.select_option(f"#{field}", value)
        else:
            page.fill(f"#{field}", value)
            page.keyboard.press("Enter")


def add_table(page: Page, file: str) -> None:
    """Add a table of a file."""
    page.fill("#source", file)
    with swapped(page):
        page.click("#add-table")


Picture = Callable[[Page, str], Path]


@pytest.fixture
def picture(picture: Picture) -> Picture:
    """A picture from the head of the page on, wherever somebody was in it."""

    def taken(page: Page, name: str) -> Path:
        page.evaluate("scrollTo(0, 0)")
        return picture(page, name)

    return taken


def test_an_owner_goes_from_a_file_to_a_policy_that_is_asked(
    visit: Callable[..., Visitor], stays: OnLoopback, picture: Picture
) -> None:
    """Six steps, the text beside them, saved and served; and an analyst asks at once."""
    page = visit("olive", service=stays).go("policy")
    assert text(page) == POLICY
    expect(page.locator("#save")).to_be_disabled()
    add_table(page, "stays.csv")
    expect(page.locator("code", has_text="days").first).to_be_visible()
    answer(page, "type-1-1", "integer")
    answer(page, "type-1-3", "date")
    picture(page, "policy-1-tables")

    page.click("#step-on")
    expect(page.locator("#step-title")).to_be_focused()
    expect(page.locator(".is-error")).to_contain_text("say whose a row is")
    expect(page.locator("#save")).to_be_disabled()
    answer(page, "unit-1", "patient_id")
    expect(page.locator(".is-error")).to_have_count(0)
    expect(page.locator("fieldset").nth(1)).to_contain_text("one patient_id of stays")
    answer(page, "units_at_least-1", "40")
    expect(page.locator(".is-warning")).to_have_count(0)
    picture(page, "policy")

    step(page, "columns")
    expect(page.locator(".note").first).to_contain_text("No bounds and no values are suggested")
    answer(page, "bounds-1-0", "0, 30")
    answer(page, "measure-1-0", "days")
    expect(page.locator("fieldset.column").nth(4)).to_contain_text("above 30 days as 30 days")
    answer(page, "values-1-1", "a, b, c")
    picture(page, "policy-3-columns")

    step(page, "limits")
    answer(page, "max_rows-1", "4")
    chosen = page.locator("fieldset").nth(1).locator("tr.chosen")
    expect(chosen.locator("td").first).to_have_text("4")
    picture(page, "policy-4-limits")

    step(page, "budget")
    answer(page, "block_column-1", "day")
    answer(page, "lifetime", "30")
    expect(page.locator("#costs")).to_contain_text("A month costs one patient_id of stays at most")
    picture(page, "policy-5-budget")

    step(page, "people")
    page.fill("#quota-name", "ann")
    page.fill("#quota-amount", "5")
    with swapped(page):
        page.click("#add-quota")
    expect(page.locator("tr", has_text="bob")).to_contain_text("may not ask")
    picture(page, "policy-6-people")

    # What was written by hand is there as it was, and nothing is served before it is saved.
    assert POLICY.split("\n")[1] in text(page)
    assert "# where spending is kept" in text(page)
    assert stays.desk.path.read_text() == POLICY
    page.keyboard.press("Control+Enter")
    expect(page.locator("#policy-findings .fine")).to_contain_text("Saved")
    assert stays.desk.path.read_text() == text(page)
    with stays.connect("ann") as session:
        assert session.schema.table("stays").max_rows == 4
        counted = session.sql("SELECT ward, COUNT(*) AS n FROM stays GROUP BY ward")
        assert counted.release(1).frame["ward"].to_list() == ["a", "b", "c"]

    # Now the ledger has it: what no file changes is said with its command.
    step(page, "budget")
    expect(page.locator("pre.wrap").first).to_contain_text("dither ledger amend stays.ledger")
    answer(page, "epsilon", "20")
    expect(page.locator(".is-error").first).to_contain_text("dither ledger amend")
    expect(page.locator("#save")).to_be_disabled()
    page.click("text=Discard changes")
    page.click("#undo")
    expect(page.locator(".fine")).to_contain_text("Saved")
    assert stays.desk.path.read_text() == POLICY


def test_the_text_is_checked_as_it_is_written(
    visit: Callable[..., Visitor], stays: OnLoopback, picture: Picture
) -> None:
    """In the words of the library, at the line; fields follow, and a refusal changes nothing."""
    visitor = visit("olive", service=stays)
    page = visitor.go("policy?step=limits")
    page.fill("#toml", POLICY.replace("max_rows = 3", "max_rows = 7"))
    expect(page.locator("#max_rows-0")).to_have_value("7")
    page.fill("#toml", POLICY.replace("max_rows = 3", "max_row = 3"))
    found = page.locator(".is-error")
    expect(found).to_contain_text("did you mean 'max_rows'")
    picture(page, "policy-wrong")
    line = 1 + POLICY.split("\n").index("max_rows = 3")
    found.locator("button").click()
    assert page.evaluate("document.activeElement.id") == "toml"
    selected = page.evaluate("(({value, selectionStart: a, selectionEnd: b}) => value.slice(a, b))"
                             "(document.getElementById('toml'))")  # fmt: skip
    assert selected == "max_row = 3"
    expect(page.locator("#gutter b")).to_have_text(str(line))
    page.fill("#toml", POLICY + "[nothing")
    expect(page.locator(".empty")).to_contain_text("cannot be read")
    page.fill("#toml", POLICY.replace("visits.parquet", "/etc/passwd"))
    expect(page.locator(".is-error")).to_contain_text("in the folder of the policy")
    assert "root:" not in page.content()
    # An answer that is none is refused where it was given, and the text stays.
    visitor.expected.add("400")
    page.fill("#toml", POLICY)
    expect(page.locator("#max_rows-0")).to_have_value("3")
    answer(page, "max_rows-0", "many")
    expect(page.locator("#max_rows-0-wrong")).to_contain_text("whole number")
    assert text(page) == POLICY
    answer(page, "max_rows-0", "3")
    expect(page.locator(".wrong")).to_have_count(0)
    # Somebody else was faster: nothing of theirs is written over.
    page.fill("#toml", POLICY.replace("max_rows = 3", "max_rows = 5"))
    expect(page.locator("#save")).to_be_enabled()
    theirs = POLICY.replace("max_groups = 2", "max_groups = 1")
    stays.desk.path.write_text(theirs)
    page.click("#save")
    expect(page.locator("#policy-refusal")).to_contain_text("changed at the server")
    assert stays.desk.path.read_text() == theirs
    assert "max_rows = 5" in text(page)


def test_what_is_no_answer_stays_where_it_was_typed(
    visit: Callable[..., Visitor], stays: OnLoopback, picture: Picture
) -> None:
    """Marked, with what is wrong and how to mend it; through other answers and other steps."""
    visitor = visit("olive", service=stays)
    page = visitor.go("policy?step=columns")
    age, cost = page.locator("#bounds-0-0"), page.locator("#bounds-0-1")
    answer(page, "bounds-0-0", "0-110")
    expect(age).to_have_value("0-110")
    expect(age).to_have_attribute("aria-invalid", "true")
    assert "bounds-0-0-wrong" in (age.get_attribute("aria-describedby") or "")
    expect(page.locator("#bounds-0-0-wrong")).to_contain_text("such as 0, 100")
    assert text(page) == POLICY
    # Two answers, the second before the first is answered: each is written, nothing is lost.
    with swapped(page):
        page.evaluate(
            "for (const [id, value] of [['measure-0-0', 'years'], ['bounds-0-1', '100, 0']]) {"
            " const one = document.getElementById(id); one.value = value;"
            " one.dispatchEvent(new Event('change', {bubbles: true})); }"
        )
    expect(page.locator("#bounds-0-1-wrong")).to_contain_text("the lower value, then a higher one")
    expect(cost).to_have_value("100, 0")
    expect(age).to_have_value("0-110")
    assert 'unit = "years"' in text(page)
    expect(page.locator("#save")).to_be_disabled()
    picture(page, "policy-3-wrong")
    step(page, "limits")
    expect(page.locator("#policy-wrong li")).to_have_count(2)
    page.click("#policy-wrong li:nth-child(2) >> text=Take it back")
    expect(page.locator("#policy-wrong li")).to_have_count(1)
    page.click("#policy-wrong >> text=Columns")
    expect(cost).to_have_value("")
    expect(age).to_have_value("0-110")
    answer(page, "bounds-0-0", "0, 120")
    expect(page.locator("#policy-wrong")).to_have_count(0)
    expect(page.locator("#save")).to_be_enabled()
    assert tomllib.loads(text(page))["tables"]["visits"]["columns"]["age"]["bounds"] == [0, 120]


def test_what_is_not_saved_is_there_again(visit: Callable[..., Visitor], stays: OnLoopback) -> None:
    """After another place, in the same window; until it is discarded, and not once it is served."""
    visitor = visit("olive", service=stays)
    page = visitor.go("policy?step=limits")
    answer(page, "max_rows-0", "6")
    visitor.go("people")
    page = visitor.go("policy?step=limits")
    expect(page.locator("#max_rows-0")).to_have_value("6")
    page.click("#discard")
    expect(page.locator("#max_rows-0")).to_have_value("3")
    answer(page, "max_rows-0", "8")
    page.click("#save")
    expect(page.locator("#policy-findings .fine")).to_contain_text("Saved")
    page = visitor.go("policy?step=limits")
    expect(page.locator(".text-head .tag")).to_have_text("served now")
    assert "max_rows = 8" in text(page)


def test_names_of_columns_stay_text(visit: Callable[..., Visitor], stays: OnLoopback) -> None:
    """Script, quotes, newlines and braces in them: on the page, in the text, and in answers."""
    page = visit("olive", service=stays).go("policy")
    add_table(page, "odd.parquet")
    step(page, "columns")
    for at, name in enumerate(HOSTILE):
        legend = page.locator("fieldset.column legend code").nth(4 + at)
        assert legend.text_content() == name
        answer(page, f"values-1-{at}", f'x, "<b>{at}"')
    columns = tomllib.loads(text(page))["tables"]["odd"]["columns"]
    assert columns == {name: {"values": ["x", f"<b>{at}"]} for at, name in enumerate(HOSTILE)}
    page.click("#save")
    expect(page.locator("#policy-findings .fine")).to_contain_text("Saved")
    assert list(stays.desk.session.schema.table("odd").columns) == HOSTILE


def test_paths_out_of_the_folder_are_refused(
    visit: Callable[..., Visitor], stays: OnLoopback
) -> None:
    """As if there were nothing; the text stays as it was."""
    visitor = visit("olive", service=stays)
    visitor.expected.add("400")
    page = visitor.go("policy")
    for path in ("../../etc/passwd", "/etc/passwd", "stays.ledger", "nothing.csv", "../x.csv"):
        add_table(page, path)
        expect(page.locator("#source-wrong")).to_contain_text("source must be a data file")
        expect(page.locator("#source")).to_have_value(path)
        assert text(page) == POLICY


@pytest.mark.parametrize("who", ["ann", "audrey"])
def test_the_policy_is_changed_by_owners_alone(
    visit: Callable[..., Visitor], stays: OnLoopback, who: str
) -> None:
    """Others are told so, and no form is there for them."""
    visitor = visit(who, service=stays)
    visitor.expected.add("403")
    assert "this is not for" in visitor.go("policy").inner_text("main")
    assert "this is not for" in visitor.go("people").inner_text("main")


def test_the_steps_at_a_telephone_at_night(
    visit: Callable[..., Visitor], stays: OnLoopback, picture: Picture
) -> None:
    """In Chinese, dark, 390 wide: nothing is cut off; axe finds nothing serious."""
    visitor = visit("olive", width=390, theme="dark", language="zh", service=stays)
    visitor.expected.add("inline style")  # which axe applies
    page = visitor.go("policy")
    add_table(page, "stays.csv")
    for one in ("schema", "unit", "columns", "limits", "budget", "people"):
        step(page, one)
        assert page.evaluate("document.documentElement.scrollWidth") <= 390
        picture(page, f"policy-{one}-dark-zh")
        found = Axe().run(page)
        grave = [v for v in found.response["violations"] if v["impact"] in ("serious", "critical")]
        assert not grave, [(v["id"], v["nodes"][0]["html"]) for v in grave]
