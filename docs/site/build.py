"""Make the site: ``python docs/site/build.py [FOLDER]``, into ``out/site`` unless told otherwise.

Sphinx reads a copy of the pages, in FOLDER/source, to which the reference and the order of the
pages are added; nothing is written into ``docs``. Any warning is an error.
"""

from __future__ import annotations

import inspect
import os
import re
import shutil
import sys
from pathlib import Path
from types import ModuleType

from finding import write as write_search
from links import dead_links
from names import plain
from packages import LACKING, PUBLIC, Public, listed, of, others, packages
from sections import BUILT, order
from sphinx.cmd.build import main as sphinx

ROOT = Path(__file__).resolve().parents[2]
HERE = Path(__file__).resolve().parent
HIDDEN = re.compile(r"^<!-- *(?:setup|file|output varies|not run|needs)\b.*?-->\n", re.M | re.S)
LINK = re.compile(r"(\]\()((?!https?://|#|mailto:)[^)#\s]+)")


class Source:
    """The folder that Sphinx reads: files that did not change keep their time."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.kept: set[Path] = set()

    def write(self, name: str, content: bytes | str) -> None:
        """A file of this content."""
        path = self.folder / name
        data = content.encode() if isinstance(content, str) else content
        self.kept.add(path)
        if not path.exists() or path.read_bytes() != data:
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_bytes(data)

    def sweep(self) -> None:
        """Files of an earlier time go."""
        for path in self.folder.rglob("*"):
            if path.is_file() and path not in self.kept:
                path.unlink()


def place(path: Path) -> str | None:
    """Where a file of the repository stands in the site, if it is a page or a picture of it."""
    name = path.relative_to(ROOT).as_posix()
    if name in ("CONTRIBUTING.md", "CHANGELOG.md"):
        return name.lower()
    return name.removeprefix("docs/") if name.startswith("docs/") else None


def page(path: Path, source: Source) -> str:
    """A page as the site shows it: without notes for tests, with links that hold here."""
    here = place(path)
    assert here is not None

    def link(match: re.Match[str]) -> str:
        wanted = (path.parent / match[2]).resolve()
        at = place(wanted)
        if at is None:
            at = f"files/{wanted.name}"
            source.write(at, wanted.read_bytes())
        return match[1] + os.path.relpath(at, Path(here).parent)

    return LINK.sub(link, HIDDEN.sub("", path.read_text()))


def title(text: str, line: str = "=") -> str:
    """A heading of reStructuredText."""
    return f"{text}\n{line * len(text)}\n"


def package_page(package: ModuleType) -> str:
    """What a package is for, and its names."""
    name = package.__name__
    parts = [title(name), f".. automodule:: {name}\n   :no-members:\n   :no-index:\n"]
    here = {n: found for n in listed(package) if (found := of(getattr(package, n)))}
    kinds = {
        "Classes": "class",
        "Functions": "function",
        "Errors": "exception",
        "Constants": "data",
    }
    tables = {heading: [n for n in here if here[n].kind == kind] for heading, kind in kinds.items()}
    here |= {n: found for n in others(package) if (found := of(getattr(package, n)))}
    tables["Types and rarer functions"] = others(package)
    for n in listed(package):
        if isinstance(part := getattr(package, n), ModuleType):
            about = (inspect.getdoc(part) or "").split("\n")[0]
            parts.append(f":doc:`{name}.{n} </reference/{part.__name__}/index>`: {about}\n")
    for heading, names in tables.items():
        if not names:
            continue
        parts += [title(heading, "-"), ".. list-table::\n   :class: names\n   :widths: 30 70\n"]
        for n in sorted(names, key=str.lower):
            parts.append(f"   * - :doc:`{n} </{here[n].page}>`")
            parts.append("     - " + re.sub(r" \[\d+\]_|::?$", "", plain(here[n].summary)))
        parts.append("")
    return "\n".join(parts)


def name_page(public: Public) -> str:
    """All about one public name."""
    shared = sum(other.name == public.name for other in PUBLIC) > 1
    parts = [":orphan:\n", title(public.full if shared else public.name)]
    parts.append(f"*In* :doc:`{public.package} <index>`\n")
    parts.append(f".. auto{public.kind}:: {public.full}")
    own, above = public.members()
    if own:
        parts.append(f"   :members: {', '.join(own)}")
    parts.append("")
    if above:
        parts.append(title("Inherited", "-"))
    for base, members in above.items():
        links = ", ".join(f":py:obj:`{m} <{base.full}.{m}>`" for m in members)
        parts.append(f"From :py:obj:`{base.name} <{base.full}>`: {links}.\n")
    background = module_text(public)
    if background:
        parts += [
            title("Background", "-"),
            f".. automodule:: {background}\n   :no-members:\n   :no-index:\n",
        ]
    return "\n".join(parts)


def module_text(public: Public) -> str:
    """The module in whose docstring law and proof stand, where it says more than a line."""
    module = sys.modules.get(getattr(public.object, "__module__", ""))
    if module is None or public.kind == "data" or hasattr(module, "__path__"):
        return ""
    return module.__name__ if "\n\n" in (inspect.getdoc(module) or "") else ""


def reference_page() -> str:
    """All packages, each with what it is for."""
    parts = [
        title("API reference"),
        "Every public name, by the package that it is imported from.\n",
    ]
    parts.append(".. list-table::\n   :class: names\n   :widths: 30 70\n")
    for package in packages():
        about = (inspect.getdoc(package) or "").split("\n\n")[0]
        parts.append(f"   * - :doc:`{package.__name__} </reference/{package.__name__}/index>`")
        parts.append("     - " + " ".join(plain(about).split()))
    parts.append("\n.. toctree::\n   :hidden:\n")
    parts += [f"   {package.__name__}/index" for package in packages()]
    return "\n".join(parts)


def built_page(pages: dict[str, str]) -> str:
    """How the library is built: the way of a query, how to add to it, and records of decisions."""
    names = [name.removesuffix(".md") for name in pages if name.startswith(BUILT)]
    listed = "\n".join(f"/{name}" for name in sorted(names, key=lambda n: (n not in BUILT, n)))
    about = (
        "How a query becomes a release, how to add to the library, and short records of what a"
        " newcomer would question: what was decided, why, and at what cost."
    )
    return f"# How it is built\n\n{about}\n\n```{{toctree}}\n:maxdepth: 1\n\n{listed}\n```\n"


def stage(folder: Path) -> dict[str, str]:
    """Fill the folder that Sphinx reads; the text of its pages in Markdown, by their names."""
    source = Source(folder)
    pages = {}
    docs = sorted((ROOT / "docs").rglob("*.md"))
    for path in [*docs, ROOT / "CONTRIBUTING.md", ROOT / "CHANGELOG.md"]:
        name = place(path)
        assert name is not None
        pages[name] = page(path, source)
    prose = {name.removesuffix(".md"): text for name, text in pages.items()}
    pictures = ROOT / "docs" / "images"
    for path in pictures.rglob("*.png"):
        source.write(f"images/{path.relative_to(pictures).as_posix()}", path.read_bytes())
    pages["decisions/index.md"] = built_page(pages)
    pages["reference/index.rst"] = reference_page()
    for package in packages():
        pages[f"reference/{package.__name__}/index.rst"] = package_page(package)
    for public in PUBLIC:
        pages[f"{public.page}.rst"] = name_page(public)
    named = {public.page for public in PUBLIC}
    pages["index.md"] += "\n" + order({name.rpartition(".")[0] for name in pages} - named)
    for name, text in pages.items():
        source.write(name, text)
    source.sweep()
    return prose


def main(folder: str = "out/site", *arguments: str) -> int:
    """Make the site and follow its links; the exit code of Sphinx, or 1 where a link is dead."""
    out = Path(folder).resolve()
    pages = stage(out / "source")
    # Pages are written anew, since each shows the list of all; what was read of them is kept.
    shutil.rmtree(out / "html", ignore_errors=True)
    paths = [str(out / "source"), str(out / "html")]
    options = ["-c", str(HERE), "-d", str(out / "read"), "-j", "auto", "-W", "--keep-going", "-q"]
    done = sphinx([*options, *arguments, *paths])
    for library, names in LACKING.items():
        print(
            f"{library} is not installed: the reference lacks {len(set(names))} names that need it",
            file=sys.stderr,
        )
    write_search(out / "html" / "_static" / "search-index.js", pages)
    dead = dead_links(out / "html")
    for link in dead:
        print(f"dead link: {link}", file=sys.stderr)
    if done == 0 and not dead:
        print(f"{len(PUBLIC)} names in the reference; open {out / 'html' / 'index.html'}")
    return done or bool(dead)


if __name__ == "__main__":
    raise SystemExit(main(*sys.argv[1:]))
