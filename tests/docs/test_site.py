"""The site: every public name has a page, names become links where they are certain, links hold."""

from __future__ import annotations

import importlib
import inspect
import pkgutil
import re
from pathlib import Path

import build
import pytest
from links import dead_links
from names import plain, prose, target
from rooms import PUBLIC, rooms
from rooms import listed as rooms_listed

import dither
from dither.privacy import Loss

pytestmark = pytest.mark.extras


@pytest.fixture(scope="module")
def staged(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """What Sphinx reads."""
    folder = tmp_path_factory.mktemp("site")
    build.stage(folder)
    return folder


def test_every_public_name_has_a_page(staged: Path) -> None:
    """Each name of each room's ``__all__`` is listed by its room, and has one page of its own."""
    names = [m.name for m in pkgutil.iter_modules(dither.__path__, "dither.") if m.ispkg]
    faces = [importlib.import_module(name) for name in names if "._" not in name]
    assert {room.__name__ for room in faces if getattr(room, "__all__", ())} <= {
        room.__name__ for room in rooms()
    }
    pages = {public.page for public in PUBLIC}
    assert len(pages) == len(PUBLIC)
    for room in rooms():
        listed = (staged / "reference" / room.__name__ / "index.rst").read_text()
        names = [n for n in rooms_listed(room) if not inspect.ismodule(getattr(room, n))]
        assert [name for name in names if f":doc:`{name} <" not in listed] == []
    assert [page for page in pages if not (staged / f"{page}.rst").exists()] == []


def test_pages_are_shown_without_notes_for_tests(staged: Path) -> None:
    """Hidden code stays hidden, and the repository's own pages come along."""
    shown = "".join(path.read_text() for path in staged.rglob("*.md"))
    assert re.search(r"^<!--", shown, re.MULTILINE) is None
    assert (staged / "contributing.md").exists()
    assert (staged / "changelog.md").exists()


def test_a_page_without_a_place_is_refused() -> None:
    """A new page that no caption takes would be found by nobody."""
    with pytest.raises(SystemExit, match="astray"):
        build.order({"index", "tutorial", "astray"})
    assert "tutorial" in build.order({"index", "tutorial"})


def test_sources_that_went_are_swept(tmp_path: Path) -> None:
    """A name that is no longer public leaves no page behind, and what stays keeps its time."""
    for names in (["a.rst", "b.rst"], ["a.rst"]):
        source = build.Source(tmp_path)
        for name in names:
            source.write(name, "same")
        before = (tmp_path / "a.rst").stat().st_mtime_ns
        source.write("a.rst", "same")
        source.sweep()
        assert (tmp_path / "a.rst").stat().st_mtime_ns == before
    assert [path.name for path in tmp_path.iterdir()] == ["a.rst"]


@pytest.mark.parametrize(
    ("page", "dead"),
    [
        ('<a href="there.html">', []),
        ('<a href="there.html#here">', []),
        ('<a href="#top"><p id="top">', []),
        ('<a href="https://example.org/none">', []),
        ('<a href="gone.html">', ["page.html: gone.html"]),
        ('<a href="there.html#gone">', ["page.html: there.html#gone"]),
        ('<a href="#gone">', ["page.html: #gone"]),
        ('<img src="gone.png">', ["page.html: gone.png"]),
        ('<a href="folder">', ["page.html: folder"]),
    ],
)
def test_dead_links_are_found(page: str, dead: list[str], tmp_path: Path) -> None:
    """A link to a file, a picture or a place that is not there is seen; one that holds is not."""
    (tmp_path / "folder").mkdir()
    (tmp_path / "there.html").write_text('<p id="here">')
    (tmp_path / "page.html").write_text(page)
    assert dead_links(tmp_path) == dead


def test_a_name_is_a_link_where_it_is_certain() -> None:
    """One object is linked; a word, a parameter and a name that two rooms share are not."""
    loss = ("reference/dither.privacy/Loss", "dither.privacy.Loss")
    assert target("Loss") == target("dt.privacy.Loss") == target("dither.privacy.Loss") == loss
    assert target("Loss.epsilon()") == (loss[0], f"{loss[1]}.epsilon")
    assert target("calibrate") is None
    assert target("calibrate", room="dither.accounting") is not None
    assert target("nothing") is None
    assert target("gaussian") is None
    assert target("gaussian", room="dither.privacy") == (
        "reference/dither.privacy/gaussian",
        "dither.privacy.gaussian",
    )


def test_a_parameter_is_never_a_link() -> None:
    """Where a function has a parameter named like another function, the parameter is meant."""

    def ask(compose: Loss) -> Loss:
        return compose

    assert target("compose", room="dither.privacy", owner=ask) is None
    assert target("compose", room="dither.privacy") is not None


def test_plain_text_keeps_its_signs() -> None:
    """Bars and trailing underscores are no markup; code, examples and formulas stay untouched."""
    assert plain("|Z| and x_ in `a|b_`") == r"\|Z\| and x\_ in `a|b_`"
    text = ["so |x|::", "", "    |y|", "", "and |z|", "", ">>> f(1)", "|1|", "", "|w|"]
    assert prose(text) == [
        r"so \|x\|::",
        "",
        "    |y|",
        "",
        r"and \|z\|",
        "",
        ">>> f(1)",
        "|1|",
        "",
        r"\|w\|",
    ]
