"""Single backticks in docstrings: a link where they name one public object, otherwise code."""

from __future__ import annotations

import inspect
import re
from collections import defaultdict
from types import FunctionType
from typing import Any

from docutils import nodes
from packages import PUBLIC
from sphinx import addnodes
from sphinx.application import Sphinx
from sphinx.ext.napoleon import NumpyDocstring
from sphinx.transforms.post_transforms import SphinxPostTransform
from sphinx.util.docutils import SphinxRole
from sphinx.util.nodes import find_pending_xref_condition

Target = tuple[str, str]
"""A page and an anchor on it."""


def _targets() -> dict[str, set[Target]]:
    """What every way of writing a public name may mean."""
    found: defaultdict[str, set[Target]] = defaultdict(set)
    for public in PUBLIC:
        page, full = public.page, public.full
        inner = f"{public.object.__module__}.{public.name}" if public.kind != "data" else full
        names = {public.name, full, inner, f"dt{full.removeprefix('dither')}"}
        names |= {full.removeprefix("dither.")}
        own, above = public.members()
        places = dict.fromkeys(own, public)
        places |= {member: base for base, members in above.items() for member in members}
        for name in names:
            found[name].add((page, full))
            for member, place in places.items():
                if _explained_member(public.object, member):
                    found[f"{name}.{member}"].add((place.page, f"{place.full}.{member}"))
    return found


def _explained_member(cls: type, member: str) -> bool:
    """Whether it has a place on its page: values of fields may be anything."""
    thing = inspect.getattr_static(cls, member, None)
    kinds = FunctionType | property | classmethod | staticmethod
    return isinstance(thing, kinds) and bool(thing.__doc__)


TARGETS = _targets()


def target(written: str, *, package: str = "", owner: Any = None) -> Target | None:
    """The one object that the text means, as far as that is certain.

    Where packages share a name, the one of this package is meant. A word in small letters may be a
    parameter or just a word: it is a link only to a function of the same package, and never where
    the object that is explained has such a parameter.
    """
    name = written.removesuffix("()")
    found = TARGETS.get(name, set())
    here = {t for t in found if t[0].startswith(f"reference/{package}/")}
    found = here or found
    if len(found) != 1 or (name.islower() and "." not in name and not here):
        return None
    return None if name in _parameters(owner) else next(iter(found))


def _parameters(thing: Any) -> set[str]:
    try:
        return set(inspect.signature(thing).parameters)
    except (TypeError, ValueError):
        return set()


class NameRole(SphinxRole):
    """The default role."""

    def run(self) -> tuple[list[nodes.Node], list[nodes.system_message]]:
        """Code, marked for `Link`."""
        return [nodes.literal(self.rawtext, self.text, classes=["name"])], []


class Link(SphinxPostTransform):
    """Makes links of what names one public object: of types, and of code in prose.

    It comes before Sphinx resolves references to Python objects, which would guess where a name
    has several meanings, and searches all names for each.
    """

    default_priority = 5

    def run(self, **kwargs: Any) -> None:
        """Every name of the page; on pages of prose only those that are written in full."""
        self.here = self.env.current_document.docname
        self.package = self.here.split("/")[1] if self.here.startswith("reference/") else ""
        for type_ in list(self.document.findall(addnodes.pending_xref)):
            if type_.get("refdomain") == "py":
                short = find_pending_xref_condition(type_, "resolved")
                content = short.children if short else type_.children
                self.link(type_, target(type_["reftarget"], package=self.package), content)
        for text_node in list(self.document.findall(nodes.Text)):
            if text_node == " -- ":
                text_node.parent.replace(text_node, nodes.Text(" – "))
        for type_ in self.document.findall(addnodes.desc_annotation):
            short = ARRAY.sub(r"NDArray[\1]", type_.astext())
            if short != type_.astext():
                type_.children = [nodes.Text(short)]
        for code in list(self.document.findall(nodes.literal)):
            if isinstance(code.parent, nodes.reference | addnodes.pending_xref):
                continue
            text = code.astext()
            if (self.package and "name" in code["classes"]) or re.match(r"(dt|dither)\.", text):
                found = target(text, package=self.package, owner=_explained(code))
                self.link(code, found, [code.deepcopy()])

    def link(self, node: nodes.Node, found: Target | None, content: list[nodes.Node]) -> None:
        """Put the content in the place of the node: as a link where something was found."""
        if found is None or found[0] == self.here:
            node.replace_self(content)
            return
        page, anchor = found
        uri = self.app.builder.get_relative_uri(self.here, page) + f"#{anchor}"
        node.replace_self(nodes.reference("", "", *content, internal=True, refuri=uri))


def _explained(node: nodes.Node) -> Any:
    """The object in whose description a node stands."""
    while node is not None:
        if isinstance(node, addnodes.desc):
            signature = node[0]
            full = ".".join(filter(None, (signature.get("module"), signature.get("fullname"))))
            for public in PUBLIC:
                if full == public.full:
                    return public.object
                if full.startswith(f"{public.full}."):
                    return getattr(public.object, full.removeprefix(f"{public.full}."), None)
        node = node.parent
    return None


ARRAY = re.compile(
    r"(?:~numpy\.)?ndarray\[tuple\[(?:~typing\.)?Any, \.\.\.\], (?:~numpy\.)?dtype\[([^\]]*)\]\]"
)
FOOTNOTE = re.compile(r"\[\d+\]_|^ *\.\. \[\d+\] ")
MARKUP = re.compile(r"``.*?``|`[^`]*`")


def plain(line: str) -> str:
    """A line of prose in which bars and underscores are only what they look like."""
    pieces = MARKUP.split(line)
    kept = [*MARKUP.findall(line), ""]
    cleaned = (re.sub(r"(?<!\\)\||(?<=\w)_(?!\w)", r"\\\g<0>", piece) for piece in pieces)
    return "".join(a + b for a, b in zip(cleaned, kept, strict=True))


def prose(lines: list[str]) -> list[str]:
    """Docstring lines ready for docutils: literal blocks and examples stay as they are."""
    done: list[str] = []
    literal: int | None = None
    last = ""
    for line in lines:
        indent = len(line) - len(line.lstrip())
        if literal is not None and line.strip() and indent <= literal:
            literal = None
        example = line.lstrip().startswith((">>>", "...")) or (last and literal is None)
        done.append(line if literal is not None or example else plain(line))
        if literal is None and line.rstrip().endswith("::"):
            literal = indent
        # What an example prints goes on to the next empty line.
        last = line if example and line.strip() else ""
    return done


ORIGINAL: dict[str, list[str]] = {}


def before(app: Sphinx, what: str, name: str, obj: Any, options: Any, lines: list[str]) -> None:
    """Keep what describes an attribute: napoleon takes words before a colon for a type."""
    ORIGINAL[name] = list(lines)


def after(app: Sphinx, what: str, name: str, obj: Any, options: Any, lines: list[str]) -> None:
    """Make a docstring ready; its name distinguishes footnotes."""
    if what in ("attribute", "property", "data") and name in ORIGINAL:
        kept = ORIGINAL.pop(name)
        first = next(
            (i - 1 for i, line in enumerate(kept) if re.fullmatch(r"-{3,}", line)), len(kept)
        )
        # Its sections are read as those of a function: napoleon reads none of an attribute's.
        sections = NumpyDocstring(kept[first:], app.config, app, "function", name, obj, options)
        lines[:] = kept[:first] + (sections.lines() if kept[first:] else [])
    label = re.sub(r"\W", "-", name)
    lines[:] = [
        re.sub(r"\[(\d+)\](?=_|$| )", rf"[#{label}-\1]", x) if FOOTNOTE.search(x) else x
        for x in prose(lines)
    ]


def signature(
    app: Sphinx,
    what: str,
    name: str,
    obj: Any,
    options: Any,
    arguments: str | None,
    returns: str | None,
) -> tuple[str | None, str | None] | None:
    """Types of arrays as people write them."""
    if arguments is None:
        return None
    return ARRAY.sub(r"NDArray[\1]", arguments), returns and ARRAY.sub(r"NDArray[\1]", returns)


def setup(app: Sphinx) -> dict[str, bool]:
    """Called by Sphinx."""
    app.add_role("name", NameRole())
    app.add_post_transform(Link)
    app.connect("autodoc-process-docstring", before, priority=400)
    app.connect("autodoc-process-docstring", after, priority=600)
    app.connect("autodoc-process-signature", signature)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
