"""Learn from sensitive data without learning about any one person in it, and prove it.

::

    import dither as dt

    session = dt.open("dither.toml")
    question = session.sql("SELECT region, COUNT(*) AS n FROM visits GROUP BY region")
    print(question.explain(epsilon=0.5))
    print(question.preview(epsilon=0.5))
    release = question.release(epsilon=0.5)

Names are imported when they are first used, so that ``import dither`` stays fast.
"""

# ruff: noqa: A004 - dt.open, dt.sum, dt.min and dt.max are meant
from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING

__version__ = "0.1.0"

if TYPE_CHECKING:
    from dither.lab import anonymize as anonymize
    from dither.lab import attack as attack
    from dither.lab.audit._audit import audit
    from dither.query.builder import (
        bins,
        count,
        count_units,
        max,
        mean,
        median,
        min,
        quantile,
        ratio,
        std,
        sum,
        var,
    )
    from dither.query.certificate import Certificate, verify
    from dither.query.drafting import draft_policy
    from dither.query.explain import Explanation
    from dither.query.preview import Preview
    from dither.query.question import Question
    from dither.query.release import Release
    from dither.query.session import Session
    from dither.query.session import open_session as open

_HOMES = {
    **dict.fromkeys(
        (
            "bins",
            "count",
            "count_units",
            "max",
            "mean",
            "median",
            "min",
            "quantile",
            "ratio",
            "std",
            "sum",
            "var",
        ),
        ("query.builder", None),
    ),
    "audit": ("lab.audit", None),
    "Certificate": ("query.certificate", None),
    "verify": ("query.certificate", None),
    "draft_policy": ("query.drafting", None),
    "Explanation": ("query.explain", None),
    "Preview": ("query.preview", None),
    "Question": ("query.question", None),
    "Release": ("query.release", None),
    "Session": ("query.session", None),
    "open": ("query.session", "open_session"),
    "errors": ("errors", ""),
    "anonymize": ("lab.anonymize", ""),
    "attack": ("lab.attack", ""),
    "local": ("local", ""),
}

__all__ = [
    "Certificate",
    "Explanation",
    "Preview",
    "Question",
    "Release",
    "Session",
    "audit",
    "bins",
    "count",
    "count_units",
    "draft_policy",
    "max",
    "mean",
    "median",
    "min",
    "open",
    "quantile",
    "ratio",
    "std",
    "sum",
    "var",
    "verify",
]


def __getattr__(name: str) -> object:
    if name not in _HOMES:
        raise AttributeError(f"module 'dither' has no attribute {name!r}")
    home, inner = _HOMES[name]
    module = import_module(f"dither.{home}")
    found = module if inner == "" else getattr(module, inner or name)
    globals()[name] = found
    return found


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
