"""Facts of text: a short list of values stays one under any change of its letters."""

from __future__ import annotations

from dither.errors import QueryError
from dither.plan import expressions as ex
from dither.plan.facts.common import FactsOf
from dither.plan.facts.values import Facts
from dither.plan.kinds import Kind, Value
from dither.plan.text import show

__all__ = ["letters"]

Letters = ex.Lower | ex.Upper | ex.Substring


def letters(node: Letters, of: FactsOf) -> Facts:
    """``LOWER``, ``UPPER`` and ``SUBSTRING``."""
    facts = of(node.operand)
    if facts.kind not in (Kind.TEXT, None):
        raise QueryError(f"{show(node)}: {show(node.operand)} is not text")
    if isinstance(node, ex.Substring) and (node.start < 1 or node.length < 0):
        raise QueryError(f"{show(node)}: positions start at 1 and a length is at least 0")
    domain: tuple[Value, ...] | None = None
    # Only ASCII is sure to change case alike here and in every engine.
    if facts.domain is not None and all(str(v).isascii() for v in facts.domain):
        domain = tuple(dict.fromkeys(_reshape(node, str(v)) for v in facts.domain))
    return Facts(Kind.TEXT, domain=domain, nullable=facts.nullable)


def _reshape(node: Letters, text: str) -> str:
    match node:
        case ex.Lower():
            return text.lower()
        case ex.Upper():
            return text.upper()
    return text[node.start - 1 : node.start - 1 + node.length]
