"""Public keys as a small table of the engine: a value, and its position in the list."""

from __future__ import annotations

from sqlglot import exp

from dither.engines.writer import forms
from dither.engines.writer.forms import call, identifier
from dither.plan.kinds import Kind

__all__ = ["looked_up"]


def looked_up(
    found: exp.Select,
    value: exp.Expression,
    name: str,
    listed: list[tuple[int, exp.Expression]],
    kind: Kind,
) -> tuple[exp.Select, exp.Expression]:
    """Joined with a public list on the value, and the value's position in it."""
    table = f"{name}_public"
    joined = found.join(
        _public_list(listed, kind).subquery(table, copy=False),
        on=exp.EQ(this=value, expression=identifier("value", table)),
        copy=False,
    )
    return joined, identifier("position", table)


def _public_list(listed: list[tuple[int, exp.Expression]], kind: Kind) -> exp.Select:
    values = forms.list_of([constant.copy() for _, constant in listed], forms.TYPES[kind])
    places = forms.list_of([exp.Literal.number(place) for place, _ in listed], "INTEGER")
    return exp.select(
        forms.named(call("UNNEST", values), "value"),
        forms.named(call("UNNEST", places), "position"),
    )
