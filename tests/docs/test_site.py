"""The site: every public name has a page, names become links where they are certain, links hold,
pages stand in few sections, and searching finds them.
"""

from __future__ import annotations

import importlib
import inspect
import json
import pkgutil
import re
import shutil
import subprocess
from pathlib import Path
from typing import Any

import build
import finding
import pytest
from jinja2 import Environment, FileSystemLoader
from links import dead_links
from names import plain, prose, target
from packages import PUBLIC, packages
from packages import listed as packages_listed
from sections import BUILT, MOST, SECTIONS, section_of

import dither
from dither.privacy import Loss

pytestmark = pytest.mark.extras


SITE = Path(build.__file__).parent


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, dict[str, str]]:
    """What Sphinx reads, and the text of its pages."""
    folder = tmp_path_factory.mktemp("site")
    return folder, build.stage(folder)


@pytest.fixture(scope="module")
def staged(site: tuple[Path, dict[str, str]]) -> Path:
    """What Sphinx reads."""
    return site[0]


@pytest.fixture(scope="module")
def searched(site: tuple[Path, dict[str, str]]) -> Path:
    """The index in which pages are searched."""
    path = site[0] / "search-index.js"
    finding.write(path, site[1])
    return path


def test_every_public_name_has_a_page(staged: Path) -> None:
    """Each name of a package's ``__all__`` is listed by its package, and has a page of its own."""
    names = [m.name for m in pkgutil.iter_modules(dither.__path__, "dither.") if m.ispkg]
    faces = [importlib.import_module(name) for name in names if "._" not in name]
    assert {package.__name__ for package in faces if getattr(package, "__all__", ())} <= {
        package.__name__ for package in packages()
    }
    pages = {public.page for public in PUBLIC}
    assert len(pages) == len(PUBLIC)
    for package in packages():
        listed = (staged / "reference" / package.__name__ / "index.rst").read_text()
        names = [n for n in packages_listed(package) if not inspect.ismodule(getattr(package, n))]
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


def test_sections_are_small(site: tuple[Path, dict[str, str]]) -> None:
    """A section, and the list of sections, is taken in at a glance; each page stands in one."""
    assert len(SECTIONS) <= MOST
    assert all(len(pages) <= MOST for pages in SECTIONS.values())
    listed = [page for pages in SECTIONS.values() for page in pages]
    assert len(listed) == len(set(listed))
    prose = set(site[1]) - {"index"}
    built = {page for page in prose if page.startswith(BUILT)}
    assert set(listed) == prose - built | {"decisions/index"}
    assert {section_of(page) for page in built} == {section_of("decisions/index")}


def test_the_first_page_leads_each_role_to_its_tasks(site: tuple[Path, dict[str, str]]) -> None:
    """Three or four links a role, and every page further below."""
    text = site[1]["index"]
    parts = dict(re.findall(r"^## ([^\n]*)\n(.*?)(?=^## |\Z)", text, re.MULTILINE | re.DOTALL))
    for role in ("Data owner", "Analyst", "Auditor", "Device developer", "Teacher"):
        assert 3 <= len(re.findall(r"\]\([^)]*\.md", parts[role])) <= 4
    linked = {name.removesuffix(".md") for name in re.findall(r"\]\(([^)#]*)", parts["All pages"])}
    assert linked == set(site[1]) - {"index", "contributing", "changelog"}


@pytest.mark.parametrize("page", ["learn/deep", "decisions/0003-two-rules", "reference/dither/sum"])
def test_the_sidebar_opens_one_section(page: str) -> None:
    """That of the page; a page of the reference opens none, and has its link."""
    templates = Environment(loader=FileSystemLoader(SITE / "templates"), autoescape=False)
    shown = templates.get_template("sidebar/navigation.html").render(
        sections=[(caption, [(p, p) for p in pages]) for caption, pages in SECTIONS.items()],
        section=section_of(page),
        in_reference=page.startswith("reference/"),
        pagename=page,
        pathto=lambda name: f"{name}.html",
    )
    opened = re.findall(r"<details name=\"tasks\" open>\s*<summary>(.*?)</summary>", shown)
    assert opened == ([] if page.startswith("reference/") else [section_of(page)])
    assert shown.count('<details name="tasks"') == len(SECTIONS)
    assert 'href="reference/index.html"' in shown
    assert shown.count('aria-current="page"') == sum(page in pages for pages in SECTIONS.values())


FOUND_FIRST = {
    "learn/deep.html": ["dp-sgd", "DP-SGD", "dpsgd", "DpSgd", "DP_SGD"],
    "anonymize.html": ["k-anonymity", "K-Anonymity", "kanonymity", "K‑ANONYMITY"],
    "ideas/composition.html": ["zCDP", "zcdp", "ZCDP", "z-CDP"],
    "ideas/attacker.html": ["ε", "epsilon"],
    "learn/votes.html": ["PATE"],
}
"""What people may write, by the page that they look for."""


def _index(path: Path) -> dict[str, Any]:
    made = path.read_text().removeprefix("const INDEX = ").removesuffix(";\n")
    return dict(json.loads(made))


def test_searching_finds_the_page_first(searched: Path) -> None:
    """In small letters or large, with a hyphen or without."""
    index = _index(searched)
    places = dict(index["words"])
    for page, ways in FOUND_FIRST.items():
        for word in ways:
            pairs = places[finding.joined(word)]
            place = max(zip(pairs[1::2], pairs[::2], strict=True))[1]
            assert index["entries"][place][0] == page, word
    assert finding.joined("neighbors") == finding.joined("Neighbour")
    assert finding.joined("randomized") == finding.joined("randomised")


def test_the_browser_finds_it_too(searched: Path) -> None:
    """The script of the site, run on the index; words may be apart, and others beside them."""
    node = shutil.which("node")
    if node is None:
        pytest.skip("node is not installed")
    asked = {word: page for page, ways in FOUND_FIRST.items() for word in ways}
    asked |= {"dp sgd": "learn/deep.html", "K anonymity": "anonymize.html"}
    asked |= {"how do i train a random forest": "learn/forest.html", "nosuchword": None}
    asked |= {"nosuchword zCDP": "ideas/composition.html"}
    script = searched.read_text() + (SITE / "static" / "search.js").read_text()
    script += (
        f"console.log(JSON.stringify({json.dumps(list(asked))}.map(w => search(w, INDEX)[0])));"
    )
    done = subprocess.run([node, "-"], input=script, capture_output=True, text=True, timeout=60)
    assert done.returncode == 0, done.stderr
    found = [entry and entry[0] for entry in json.loads(done.stdout)]
    assert dict(zip(asked, found, strict=True)) == asked


def test_dead_links_of_the_search_are_found(tmp_path: Path) -> None:
    """What can be found is there."""
    (tmp_path / "_static").mkdir()
    (tmp_path / "there.html").write_text('<p id="here">')
    (tmp_path / "search.html").write_text("")
    entries = [[address, "", "", ""] for address in ("there.html#here", "there.html#gone")]
    made = json.dumps({"entries": entries, "words": []})
    (tmp_path / "_static" / "search-index.js").write_text(f"const INDEX = {made};\n")
    assert dead_links(tmp_path) == ["search.html: there.html#gone"]


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
    """One object is linked; a word, a parameter and a name that two packages share are not."""
    loss = ("reference/dither.privacy/Loss", "dither.privacy.Loss")
    assert target("Loss") == target("dt.privacy.Loss") == target("dither.privacy.Loss") == loss
    assert target("Loss.epsilon()") == (loss[0], f"{loss[1]}.epsilon")
    assert target("calibrate") is None
    assert target("calibrate", package="dither.accounting") is not None
    assert target("nothing") is None
    assert target("gaussian") is None
    assert target("gaussian", package="dither.privacy") == (
        "reference/dither.privacy/gaussian",
        "dither.privacy.gaussian",
    )


def test_a_parameter_is_never_a_link() -> None:
    """Where a function has a parameter named like another function, the parameter is meant."""

    def ask(compose: Loss) -> Loss:
        return compose

    assert target("compose", package="dither.privacy", owner=ask) is None
    assert target("compose", package="dither.privacy") is not None


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
