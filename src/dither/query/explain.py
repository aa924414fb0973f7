"""The plan as a tree for people: who is protected, by how much a unit counts, what it costs."""

from __future__ import annotations

import html
from dataclasses import dataclass, field
from fractions import Fraction
from math import sqrt
from typing import Any

from dither.plan import job as jb
from dither.plan import relations as rel
from dither.plan.expressions import Bin
from dither.plan.facts import Facts, Scope, infer
from dither.plan.lower import Plan
from dither.plan.recipes import (
    Linear,
    MeanRecipe,
    QuantileRecipe,
    RatioRecipe,
    Recipe,
    VarianceRecipe,
)
from dither.plan.text import number, show, show_value
from dither.query.pricing import Priced
from dither.query.tables import paragraph
from dither.sql.keys import default_name

__all__ = ["Explanation", "Node", "explain", "measurement_text", "protects"]

UNACCOUNTED = (
    "intervals are about the noise: not about values moved to their bounds, nor about rows and "
    "groups left out so that one unit counts within its limits"
)


@dataclass(frozen=True, slots=True)
class Node:
    """One line of an explanation: what it is, its facts by name, and what it rests on."""

    title: str
    facts: tuple[tuple[str, str], ...] = ()
    children: tuple[Node, ...] = field(default=())

    def to_dict(self) -> dict[str, Any]:
        """The node as plain data."""
        return {
            "title": self.title,
            "facts": dict(self.facts),
            "children": [child.to_dict() for child in self.children],
        }


@dataclass(frozen=True, slots=True)
class Explanation:
    """A plan explained. ``str()`` draws the tree for a terminal; notebooks show HTML."""

    root: Node

    def to_dict(self) -> dict[str, Any]:
        """The tree as plain data."""
        return self.root.to_dict()

    def __str__(self) -> str:
        lines = [self.root.title, *_facts_text(self.root, "│  " if self.root.children else "   ")]
        _draw(self.root, "", lines)
        return "\n".join(lines)

    def __repr__(self) -> str:
        return str(self)

    def _repr_html_(self) -> str:
        style = (
            "font-family:ui-monospace,Menlo,Consolas,monospace;font-size:13px;line-height:1.45;"
            "max-width:60em"
        )
        return f'<div class="dither-plan" style="{style}">{_html(self.root, top=True)}</div>'


def explain(plan: Plan, priced: Priced | None = None) -> Explanation:
    """Explain a plan, with its noise and cost where it is priced."""
    children = [
        Node("protects " + protects(plan)),
        Node("rows", children=(_relation(plan.query.relation, plan),)),
        _groups(plan),
        *(_measurement(i, plan, priced) for i in range(len(plan.job.measurements))),
        _outputs(plan),
    ]
    if priced is not None and priced.allocation is not None:
        if priced.allocation.keys is not None:
            children.append(_threshold(priced))
        children.append(_cost(priced))
    children.append(Node("not accounted for", (("intervals", UNACCOUNTED),)))
    if plan.notes:
        children.append(Node("notes", tuple(("", note) for note in plan.notes)))
    names = ", ".join(o.name for o in plan.query.outputs)
    return Explanation(Node(f"release of {names}", children=tuple(children)))


def protects(plan: Plan) -> str:
    """Who is protected, and which tables count as neighbours."""
    if plan.table.unit is None:
        who, rows = f"one row of {plan.table.name}", "one row"
    else:
        tables = [s.table for s in rel.scans(plan.query.relation)]
        private = [t for t in tables if plan.schema.table(t).private]
        who = f"one {plan.table.unit}, with all its rows of {' and '.join(private)}"
        rows = f"all rows of one {plan.table.unit}"
    if plan.schema.replace_one:
        return f"{who}; neighbours replace {rows} by any other (the number of units is public)"
    return f"{who}; neighbours add or remove {rows}"


def measurement_text(measurement: jb.Measurement, unit: str | None) -> str:
    """A measurement in a few words."""
    match measurement:
        case jb.Rows():
            return "count of rows"
        case jb.Units():
            return f"count of distinct {unit}"
        case jb.Values(operand=x):
            return f"count of rows where {show(x)} is not NULL"
        case jb.Total(operand=x, square=square):
            what = f"({show(x)} - {number(measurement.centre * measurement.step)})"
            plain = show(x) if measurement.centre == 0 else what
            return f"sum of {what}²" if square else f"sum of {plain}"
        case jb.Leaves(operand=x, bins=bins):
            return f"histogram of {show(x)} in {bins:,} bins, as a tree"
    raise TypeError(type(measurement).__name__)


def _relation(relation: rel.Relation, plan: Plan) -> Node:
    own = "one unit changes its own rows only"
    match relation:
        case rel.Scan(table=table):
            kind = "private table" if plan.schema.table(table).private else "public table"
            return Node(f"{kind} {table}", (("stability", own),))
        case rel.Filter(source=source, predicate=predicate):
            title = f"where {show(predicate)}"
            return Node(
                title,
                (("stability", "1: each row stays or goes by itself"),),
                (_relation(source, plan),),
            )
        case rel.PublicJoin(source=source, public=public, on=on, keep_all=keep_all):
            pairs = " and ".join(f"{show(a)} = {public.alias}.{b.name}" for a, b in on)
            title = f"{'left ' if keep_all else ''}join public {public.table} on {pairs}"
            fact = "1: its key is unique, so a row meets at most one"
            return Node(title, (("stability", fact),), (_relation(source, plan),))
        case rel.UnitJoin(left=left, right=right, left_unit=key):
            caps = [
                f"{plan.schema.table(s.table).max_join_rows} of {s.table}"
                for s in (*rel.scans(left), right)
                if plan.schema.table(s.table).private
            ]
            fact = f"one {key.name} joins its own rows only, at most {' and '.join(caps)}"
            title = f"join private {right.table} on {key.name}"
            return Node(
                title, (("stability", fact),), (_relation(left, plan), _relation(right, plan))
            )
    raise TypeError(type(relation).__name__)


def _groups(plan: Plan) -> Node:
    facts = [(key.name, _key_text(key)) for key in plan.job.keys]
    if plan.table.unit is not None:
        groups = f"{plan.job.max_groups} groups" if plan.job.max_groups > 1 else "1 group"
        rows = f"{plan.job.max_rows} rows" if plan.job.max_rows > 1 else "1 row"
        each = " in each" if plan.job.max_groups > 1 else ""
        facts.append((f"one {plan.table.unit}", f"counts in at most {groups}, with {rows}{each}"))
    if not plan.job.keys:
        return Node("one group of all rows", tuple(facts))
    if plan.public_keys is None:
        return Node("groups, discovered", tuple(facts))
    shown = f"{plan.public_keys:,} public keys" if plan.public_keys > 1 else "1 public key"
    return Node(f"groups, {shown}: all appear, empty ones too", tuple(facts))


def _key_text(key: jb.GroupKey) -> str:
    if isinstance(key.expression, Bin):
        return (
            f"{show(key.expression.operand)} cut at {', '.join(map(number, key.expression.edges))}"
        )
    if key.values is None:
        return f"{show(key.expression)}, whichever values enough units have"
    listed = [show_value(v) for v in key.values]
    text = ", ".join(listed[:6]) + (f", ... {listed[-1]}" if len(listed) > 6 else "")
    return f"{show(key.expression)} in {text}"


def _measurement(i: int, plan: Plan, priced: Priced | None) -> Node:
    measurement, bound = plan.job.measurements[i], plan.sensitivities[i]
    facts: list[tuple[str, str]] = []
    unit = Fraction(1)
    if isinstance(measurement, jb.Total | jb.Leaves):
        scope = Scope.of(plan.query.relation, plan.schema)
        facts.append(("bounds", _bounds(infer(measurement.operand, scope), measurement.step)))
    if isinstance(measurement, jb.Total):
        unit = measurement.step**2 if measurement.square else measurement.step
    if plan.public_size and isinstance(measurement, jb.Rows):
        facts.append(("public", "no noise, no cost"))
        return Node(f"measurement {i + 1}: count of rows", tuple(facts))
    per_group = f"{number(bound.per_group * unit)} in a group"
    if bound.l1 == bound.per_group:
        facts.append(("sensitivity", per_group))
    else:
        norms = f"‖Δ‖₁ = {_short(bound.l1 * unit)}, ‖Δ‖₂ = {_short(sqrt(bound.l2_squared) * unit)}"
        facts.append(("sensitivity", f"{per_group}; over all groups {norms}"))
    facts.append(("share", f"{_percent(plan.weights[i])} of the budget"))
    if priced is not None and priced.allocation is not None:
        share = priced.allocation[str(i)]
        scale = sqrt(share.mechanism.variance)
        tree = priced.trees.get(i)
        if tree is not None:
            shape = f"{tree.levels} levels, each node split in {tree.branching}"
            facts.append(("tree", f"{shape}; every level is paid for"))
        facts.append(("mechanism", share.reason))
        law = share.mechanism.parameters()["mechanism"]
        facts.append(("noise", f"{law}; standard deviation {_short(scale * unit)}"))
        cost = share.loss
        if cost.epsilon is not None:
            facts.append(("cost", f"ε = {_short(cost.epsilon)}"))
        else:
            assert cost.rho is not None
            facts.append(("cost", f"ρ = {_short(cost.rho)} (zCDP)"))
    name = measurement_text(measurement, plan.table.unit)
    return Node(f"measurement {i + 1}: {name}", tuple(facts))


def _bounds(facts: Facts, step: Fraction) -> str:
    assert facts.range is not None
    low, high = facts.range
    return f"[{number(low)}, {number(high)}] on multiples of {number(step)}"


def _outputs(plan: Plan) -> Node:
    facts = [
        (output.name, f"{default_name(output.aggregate)}, from {_sources(recipe)}")
        for output, recipe in zip(plan.query.outputs, plan.recipes, strict=True)
    ]
    return Node("outputs", tuple(facts))


def _sources(recipe: Recipe) -> str:
    match recipe:
        case Linear(terms=terms):
            used = [i for i, _ in terms]
        case MeanRecipe(total=total, count=count):
            used = [total, count]
        case VarianceRecipe(total=total, square=square, count=count):
            used = [total, square, count]
        case QuantileRecipe(leaves=leaves):
            used = [leaves]
        case RatioRecipe(numerator=top, denominator=bottom):
            used = [i for i, _ in (*top.terms, *bottom.terms)]
        case _:
            raise TypeError(type(recipe).__name__)
    numbers = " and ".join(str(i + 1) for i in dict.fromkeys(used))
    return f"measurement{'s' if len(set(used)) > 1 else ''} {numbers}"


def _threshold(priced: Priced) -> Node:
    assert priced.allocation is not None
    rule = priced.allocation.keys
    assert rule is not None
    half, rare = rule.n_for(0.5), rule.n_for(0.05)
    who = priced.plan.table.unit or "row"
    return Node(
        "keys shown where the noisy count of units is high enough",
        (
            ("threshold", f"{rule.tau} units"),
            (
                "missed",
                f"a key with {half} units (distinct {who}) half the time, "
                f"with {rare} in 5 % of releases",
            ),
            ("cost", f"δ = {_short(rule.delta_keys)}: a key of one unit is shown no likelier"),
        ),
    )


def _cost(priced: Priced) -> Node:
    charge = priced.charge
    assert charge.epsilon is not None
    facts = [("guarantee", f"(ε, δ) = ({_short(charge.epsilon)}, {_short(charge.delta)})")]
    if charge.rho is not None:
        facts.append(
            (
                "and",
                f"ρ = {_short(charge.rho)} zCDP"
                + (f" but for δ = {_short(charge.rho_delta)}" if charge.rho_delta else ""),
            )
        )
    return Node("cost", tuple(facts))


def _short(value: Fraction | float) -> str:
    return f"{float(value):.4g}"


def _percent(value: Fraction) -> str:
    return f"{100 * float(value):.3g} %"


def _facts_text(node: Node, indent: str) -> list[str]:
    width = max((len(name) for name, _ in node.facts), default=0)
    lines = []
    for name, text in node.facts:
        blank = indent + " " * (width + 2 if width else 0)
        lines += paragraph(text, blank, first=f"{indent}{name:<{width}}  " if width else blank)
    return lines


def _draw(node: Node, indent: str, lines: list[str]) -> None:
    for i, child in enumerate(node.children):
        last = i == len(node.children) - 1
        lines.append(f"{indent}{'└─ ' if last else '├─ '}{child.title}")
        below = indent + ("   " if last else "│  ")
        bar = "│  " if child.children else "   "
        lines.extend(_facts_text(child, below + bar))
        _draw(child, below, lines)


def _html(node: Node, *, top: bool = False) -> str:
    facts = "".join(
        f'<tr><td style="color:#666;padding:0 1em 0 0;vertical-align:top;text-align:left">'
        f"{html.escape(name)}</td>"
        f'<td style="text-align:left">{html.escape(text)}</td></tr>'
        for name, text in node.facts
    )
    table = f'<table style="border:0;margin:0 0 .3em 1.2em">{facts}</table>' if facts else ""
    inner = "".join(_html(child) for child in node.children)
    block = f'<div style="margin-left:1.2em">{inner}</div>' if inner else ""
    title = html.escape(node.title)
    if not (table or block):
        return f'<div style="margin-left:1.05em">{title}</div>'
    weight = "font-weight:600" if top else ""
    return f'<details open><summary style="{weight}">{title}</summary>{table}{block}</details>'
