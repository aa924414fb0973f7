"""How Sphinx makes the site; `build.py` prepares what it reads."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).parent))

from sections import SECTIONS, section_of
from sphinx.application import Sphinx

from dither import __version__

project = "dither"
author = "the authors of dither"
release = __version__

extensions = ["myst_parser", "sphinx.ext.autodoc", "sphinx.ext.napoleon", "names"]
source_suffix = {".md": "markdown", ".rst": "restructuredtext"}
default_role = "name"
smartquotes = False
highlight_language = "none"
pygments_dark_style = "github-dark"

myst_heading_anchors = 4

autodoc_typehints = "signature"
autodoc_typehints_format = "short"
autodoc_member_order = "bysource"
autodoc_preserve_defaults = True
autodoc_class_signature = "mixed"
python_use_unqualified_type_names = True
maximum_signature_line_length = 88
add_module_names = False
toc_object_entries = False
napoleon_google_docstring = False
napoleon_use_ivar = True
napoleon_use_rtype = False
napoleon_use_admonition_for_notes = False

html_theme = "furo"
templates_path = [str(Path(__file__).parent / "templates")]
html_additional_pages = {"search": "search.html"}
html_use_index = False
html_title = f"dither {release}"
html_static_path = [str(Path(__file__).parent / "static")]
html_css_files = ["site.css"]
html_copy_source = False
html_show_sourcelink = False
html_show_copyright = False
html_show_sphinx = False
html_domain_indices = False
html_theme_options = {
    "light_css_variables": {
        "color-brand-primary": "#1f5f8b",
        "color-brand-content": "#1f5f8b",
        "font-stack--monospace": "ui-monospace, 'DejaVu Sans Mono', Menlo, Consolas, monospace",
    },
    "dark_css_variables": {
        "color-brand-primary": "#8cc4ea",
        "color-brand-content": "#8cc4ea",
    },
}


def _begun(app: Sphinx) -> None:
    """The pages are searched in the index of `finding.py`: that of Sphinx is not made."""
    app.builder.search = False


def _sidebar(app: Sphinx, pagename: str, _: str, context: dict[str, Any], __: Any) -> None:
    """The sections for the sidebar. The theme's tree of all pages, on every page, is not made."""
    titles = app.env.titles
    context["sections"] = [
        (caption, [(page, titles[page].astext()) for page in pages if page in titles])
        for caption, pages in SECTIONS.items()
    ]
    context["section"] = section_of(pagename) or next(iter(SECTIONS))
    context["in_reference"] = pagename.startswith("reference/")
    context["toctree"] = lambda **_: ""


def setup(app: Sphinx) -> None:
    """Called by Sphinx."""
    app.connect("builder-inited", _begun)
    app.connect("html-page-context", _sidebar, priority=400)
