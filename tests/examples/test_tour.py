"""The tour of attacks, and the page that it writes."""

from __future__ import annotations

import re
from fractions import Fraction
from html.parser import HTMLParser
from pathlib import Path

import pytest
from click.testing import CliRunner

from dither.cli import main
from dither.examples import tour
from dither.examples.page import Attempt, Chapter, Page

pytest.importorskip("statsmodels")


def run(*words: str, code: int = 0) -> str:
    """What the command prints."""
    done = CliRunner().invoke(main, ["attack", *words])
    assert done.exit_code == code, done.output
    return done.output


class Parts(HTMLParser):
    """Tags that are opened and closed, and what they refer to."""

    def __init__(self) -> None:
        super().__init__()
        self.open: list[str] = []
        self.sources: list[str] = []
        self.ids: set[str] = set()
        self.alts = 0

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        found = dict(attrs)
        self.sources += [found[k] or "" for k in ("src", "href") if k in found]
        self.ids |= {found["id"] or ""} if "id" in found else set()
        self.alts += tag == "img" and bool(found.get("alt"))
        if tag not in ("meta", "img", "br"):
            self.open.append(tag)

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag


def read(text: str) -> Parts:
    """The page, with every tag closed."""
    parts = Parts()
    parts.feed(text)
    assert parts.open == []
    return parts


@pytest.mark.heavy("attacks on public rows, each with tests of its own")
def test_the_tour_is_one_page(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """All four steps run, three are broken, and the page needs nothing from outside."""
    monkeypatch.setattr(tour, "TARGETS", 8)
    monkeypatch.setattr(tour, "EPSILONS", (Fraction(1, 10), Fraction(1)))
    monkeypatch.setattr(tour, "PEOPLE", 60)
    monkeypatch.setattr(tour, "ASKED", 480)
    out = tmp_path / "tour.html"
    told = run("tour", "--out", str(out))
    assert told.count("broken") == 3
    assert "bounded" in told
    text = out.read_text(encoding="utf-8")
    page = read(text)
    pictures = [s for s in page.sources if s.startswith("data:image/png;base64,")]
    assert len(pictures) == page.alts == 5
    assert {s for s in page.sources if not s.startswith("data:")} == {
        f"#step{i}" for i in range(1, 5)
    }
    assert {f"step{i}" for i in range(1, 5)} <= page.ids
    assert not re.search(r"https?://|@import|url\(", text)
    assert "1,097 women" in text
    assert "exists; write over it" in run("tour", "--out", str(out), code=2)


def test_a_page_escapes_what_it_is_told() -> None:
    """Nothing that is said becomes markup."""
    step = Chapter("a < b", "x & y", broken=False)
    step.say("`<script>` & <b>")
    step.code("<i>")
    step.table(["<u>"], [["<s>"]])
    step.try_out(Attempt("<em>", 0.5, 0.5, False, "<q>", 0.6))
    text = Page("<t>", "<l>", [step], "<f>").html()
    read(text)
    for tag in ("<script>", "<b>", "<i>", "<u>", "<s>", "<em>", "<q>", "<t>", "<l>", "<f>"):
        assert tag not in text


def test_bars_say_their_numbers() -> None:
    """A success, a blind guess and a bound are all on the bar."""
    step = Chapter("one", "fine", broken=False)
    step.try_out(Attempt("guess", 0.25, 0.125, False, "", 0.75))
    (bar,) = step.body
    for mark in ("width:25.0%", "left:12.5%", "left:75.0%", "25.0 %"):
        assert mark in bar
    assert "no attack exceeds 75.0 % on average" in Page("t", "l", [step], "f").html()
