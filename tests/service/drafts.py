"""Requests as jobs keep them."""

from __future__ import annotations

from dither.service.work._jobs import Draft

__all__ = ["draft"]


def draft(digest: str = "ab" * 32, tables: tuple[str, ...] = ("visits",)) -> Draft:
    """A request for a count."""
    sql = "SELECT COUNT(*) AS n FROM visits"
    requested = {"epsilon": "0.5", "delta": None, "confidence": 0.95, "reuse": False}
    return Draft([["sql", [sql], {}]], sql, requested, digest, tables, {"epsilon": "1/2"})
