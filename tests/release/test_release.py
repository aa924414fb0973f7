"""What is handed out beside the code: front page, addresses, bill of materials, citation."""

from __future__ import annotations

import json
import re
import subprocess
import sys
import tomllib
from importlib.util import find_spec
from pathlib import Path

import pytest

import dither

ROOT = Path(__file__).parents[2]
README = (ROOT / "README.md").read_text(encoding="utf-8")
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))
ADDRESS = "https://example.org/dither"
LINK = re.compile(r"\]\(([^)]*)\)")

pytestmark = pytest.mark.skipif(
    find_spec("hatchling") is None or find_spec("packaging") is None,
    reason="hatchling is not installed",
)


def test_a_front_page_without_an_address_has_no_link_that_breaks() -> None:
    """No address is made up: what was a link is its words and where the page is."""
    from metadata import addresses, front_page

    page = front_page(README, "")
    assert [to for to in LINK.findall(page) if not to.startswith("http")] == []
    assert "![" not in page
    assert "<!--" not in page
    assert "ten-minute tutorial (docs/tutorial.md)" in page.replace("\n", " ")
    assert page.startswith("# dither\n")
    assert page.count("```") == README.count("```")
    assert addresses("") == {}


def test_a_front_page_leads_to_the_repository() -> None:
    """Where one is named, every link and the picture lead to it, and each file is there."""
    from metadata import addresses, front_page

    page = front_page(README, ADDRESS)
    links = LINK.findall(page)
    assert len(links) == len(LINK.findall(README)) > 15
    assert f"{ADDRESS}/raw/HEAD/docs/images/readme.png" in links
    for link in [*links, *addresses(ADDRESS).values()]:
        assert link.startswith(ADDRESS)
        path = re.sub(r"^/(blob|raw)/HEAD/|^/issues$|#.*", "", link.removeprefix(ADDRESS))
        assert (ROOT / path).exists(), link


@pytest.mark.parametrize(
    ("remote", "address"),
    [
        ("git@example.org:team/dither.git", "https://example.org/team/dither"),
        ("https://me:secret@example.org/team/dither.git/", "https://example.org/team/dither"),
        ("ssh://git@code.example.org:2222/a/b/c.git", "https://code.example.org/a/b/c"),
        ("/srv/git/dither", ""),
        ("file:///srv/git/dither", ""),
        ("http://localhost:3000/team/dither", ""),
        ("https://10.0.0.1/team/dither", ""),
        ("https://example.org/", ""),
        ("", ""),
    ],
)
def test_the_address_is_where_a_checkout_was_cloned_from(
    tmp_path: Path, remote: str, address: str
) -> None:
    """Where that is on the web, without names and passwords; a source archive keeps it."""
    from metadata import addresses, cloned_from, web_address

    assert web_address(remote) == address
    assert cloned_from(tmp_path) == ""
    git = ["git", "-C", str(tmp_path)]
    subprocess.run([*git, "init", "-q"], check=True)
    assert cloned_from(tmp_path) == ""
    subprocess.run([*git, "remote", "add", "origin", remote or "."], check=True)
    assert cloned_from(tmp_path) == address
    urls = "".join(f"Project-URL: {name}, {at}\n" for name, at in addresses(address).items())
    (tmp_path / "PKG-INFO").write_text(f"Metadata-Version: 2.4\nName: dither\n{urls}\n# dither\n")
    assert cloned_from(tmp_path) == address


def test_the_bill_names_everything_that_is_installed(tmp_path: Path) -> None:
    """Each package that a plain install brings, with version, licence and what it needs."""
    for name in ("a.json", "b.json"):
        command = [sys.executable, str(ROOT / "release/sbom.py"), str(tmp_path / name)]
        subprocess.run(command, check=True, timeout=120)
    text = (tmp_path / "a.json").read_text(encoding="utf-8")
    assert text == (tmp_path / "b.json").read_text(encoding="utf-8")
    bill = json.loads(text)
    assert (bill["bomFormat"], bill["specVersion"]) == ("CycloneDX", "1.6")
    assert bill["metadata"]["component"]["version"] == dither.__version__
    parts = {part["bom-ref"]: part for part in bill["components"]}
    names = {part["name"].lower().replace("_", "-") for part in parts.values()}
    wanted = {re.split(r"[^\w-]", one)[0] for one in PROJECT["project"]["dependencies"]}
    assert wanted <= names
    assert names.isdisjoint({"scipy", "pyarrow", "pandas", "pytest"})
    assert all(part["version"] in part["purl"] and part["licenses"] for part in parts.values())
    own = bill["metadata"]["component"]["bom-ref"]
    graph = {one["ref"]: one["dependsOn"] for one in bill["dependencies"]}
    assert graph.keys() == parts.keys() | {own}
    assert {ref for needs in graph.values() for ref in needs} == set(parts)


def test_the_citation_is_of_this_version() -> None:
    """And of this licence and name."""
    found = (ROOT / "CITATION.cff").read_text(encoding="utf-8")
    for line in ("cff-version: 1.2.0", f"version: {dither.__version__}", "license: Apache-2.0"):
        assert line in found.splitlines()
    assert PROJECT["project"]["version"] == dither.__version__
    assert PROJECT["project"]["authors"] == [{"name": "The authors of dither"}]
    assert "name: The authors of dither" in found


@pytest.mark.parametrize("packed", [False, True])
def test_a_build_without_git_knows_its_commit(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, packed: bool
) -> None:
    """An image that builds the package has git's files, and not the program."""
    from commit import commit_of

    reader = tmp_path / "src" / "dither" / "session" / "_code.py"
    reader.parent.mkdir(parents=True)
    reader.write_text((ROOT / "src/dither/session/_code.py").read_text(encoding="utf-8"))
    (tmp_path / "pyproject.toml").write_text("")
    monkeypatch.setenv("PATH", str(tmp_path))
    assert commit_of(tmp_path) is None
    commit = "ab" * 20
    (tmp_path / ".git" / "refs" / "heads").mkdir(parents=True)
    (tmp_path / ".git" / "HEAD").write_text("ref: refs/heads/main\n")
    assert commit_of(tmp_path) is None
    if packed:
        (tmp_path / ".git" / "packed-refs").write_text(f"# pack-refs\n{commit} refs/heads/main\n")
    else:
        (tmp_path / ".git" / "refs" / "heads" / "main").write_text(f"{commit}\n")
    assert commit_of(tmp_path) == commit


def test_an_image_is_built_from_the_package_alone() -> None:
    """A checkout may hold policies, keys, data and ledgers: what is not named is left out."""
    lines = (ROOT / ".dockerignore").read_text(encoding="utf-8").splitlines()
    first, *others = [line for line in lines if line and not line.startswith("#")]
    assert first == "*"
    let_in = {line[1:] for line in others if line.startswith("!")}
    wanted = {"src/dither", "release/*.py", "pyproject.toml", "README.md", "LICENSE"}
    assert let_in == wanted | {".git/HEAD", ".git/packed-refs", ".git/refs"}
    assert all(any(ROOT.glob(name)) for name in wanted)
