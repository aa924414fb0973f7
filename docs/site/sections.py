"""The order of the pages: sections of at most nine, which the sidebar folds and unfolds."""

from __future__ import annotations

MOST = 9
"""Entries of a section, and sections: what a reader takes in at a glance."""

SECTIONS = {
    "Start": [
        "tutorial",
        "install",
        "coming-from",
        "learn/coming-from-opacus",
        "commands",
        "glossary",
        "contributing",
        "decisions/index",
        "changelog",
    ],
    "Data and policies": [
        "policy",
        "bounds",
        "ledger",
        "time",
        "engines/choosing",
        "engines/files",
        "csv",
        "engines/postgres",
        "engines/spark",
    ],
    "Services and devices": [
        "service",
        "page",
        "published",
        "deploy",
        "collect",
        "local/survey",
        "local/choosing",
        "local/sdldp",
        "local/wire",
    ],
    "Queries and tables": [
        "sql",
        "marginals",
        "hierarchy",
        "synth",
        "synth-linked",
        "graph",
        "anonymize",
        "assess",
        "ideas/mechanisms",
    ],
    "Estimates and tests": [
        "inference/difference",
        "inference/median",
        "inference/regression",
        "inference/tests",
        "inference/survival",
        "inference/paper",
        "inference/sample-size",
        "inference/naive",
    ],
    "Machine learning": [
        "learn/classifier",
        "learn/forest",
        "learn/deep",
        "learn/running",
        "learn/federated",
        "learn/votes",
        "learn/search",
        "learn/epsilon",
        "attacks/training",
    ],
    "By field": [
        "fields/rare-disease",
        "fields/fraud",
        "fields/images",
        "series",
        "places",
        "fields/recommender",
        "fields/response-times",
    ],
    "Attacks and audits": [
        "attacks/tour",
        "attacks/linkage",
        "attacks/differencing",
        "attacks/reconstruction",
        "attacks/subset-sums",
        "attacks/membership",
        "attacks/synthetic",
        "attacks/gradients",
        "attacks/audit",
    ],
    "Guarantee and theory": [
        "guarantee",
        "regulators",
        "threats",
        "certificates",
        "ideas/attacker",
        "ideas/composition",
        "ideas/filters",
        "ideas/amplification",
        "sources",
    ],
}
"""Every page of the guide, each in one section. The reference has a link of its own."""


BUILT = ("ideas/road", "ideas/inference", "decisions/")
"""How the pages begin that one page lists: how the library is built, and why so."""


def section_of(page: str) -> str:
    """The section in which a page stands; pages of the reference and those in `BUILT`, too."""
    if page.startswith("reference/"):
        return "API reference"
    page = "decisions/index" if page.startswith(BUILT) else page
    return next((caption for caption, pages in SECTIONS.items() if page in pages), "")


def order(pages: set[str]) -> str:
    """The hidden tables of contents of the first page.

    Raises
    ------
    SystemExit
        Where a page has no section: nobody would find it.
    """
    astray = sorted(page for page in pages if page != "index" and not section_of(page))
    if astray:
        raise SystemExit(f"pages without a place in SECTIONS: {', '.join(astray)}")
    listed = {caption: [p for p in names if p in pages] for caption, names in SECTIONS.items()}
    listed["API reference"] = sorted(pages & {"reference/index"})
    return "\n".join(
        f"```{{toctree}}\n:hidden:\n:caption: {caption}\n\n" + "\n".join(names) + "\n```\n"
        for caption, names in listed.items()
        if names
    )
