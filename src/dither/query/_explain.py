"""The plan as a tree for people: who is protected, by how much a unit counts, what it costs.

It is long because every node, measurement and aggregate of a plan has its words here, once.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from fractions import Fraction
from math import sqrt
from typing import Any

from dither._display import Explanation, Node
from dither._format import cost_text, count_text, loss_text, number_text, percent
from dither.mechanisms import Exponential
from dither.mechanisms.quantiles.refined_quantiles import OPEN
from dither.plan import aggregates as ag
from dither.plan import job as jb
from dither.plan import relations as rel
from dither.plan.expressions import Bin, Column
from dither.plan.facts.blocks import reading
from dither.plan.facts.scopes import scope_of
from dither.plan.facts.values import Facts, infer
from dither.plan.lowering.lower import Plan
from dither.plan.lowering.magnitudes import gridded
from dither.plan.lowering.recipes import (
    CellsRecipe,
    Linear,
    MeanRecipe,
    ModeRecipe,
    QuantileRecipe,
    Ranked,
    RanksRecipe,
    RatioRecipe,
    Recipe,
    VarianceRecipe,
    claims,
    sources,
)
from dither.plan.lowering.sensitivity import MeasurementSensitivity
from dither.plan.schema import Value
from dither.plan.text import brief, number, show, show_value
from dither.policy._units import OF_BLOCKS
from dither.query._explained_rows import explained_rows
from dither.query._noise import NoisePlan, promise_of, row_of

__all__ = [
    "UNACCOUNTED",
    "UNCOUNTED",
    "Explanation",
    "aggregate_text",
    "blocks_text",
    "charged_text",
    "exact_text",
    "explain",
    "in_blocks",
    "limits_text",
    "measurement_text",
    "protected",
    "protects",
]


def explain(
    plan: Plan, noise_plan: NoisePlan | None = None, learned: Sequence[str] = ()
) -> Explanation:
    """Explain a plan; with its noise, also what each measurement gets and what all of it costs.

    ``learned`` says what it rests on that was learned before.
    """
    children = [
        _protection(plan),
        Node("reads", children=(explained_rows(plan.query.relation, plan.schema),)),
        *([Node("rests on", tuple(("learned", text) for text in learned))] if learned else []),
        _groups(plan),
        *(_measurement(i, plan, noise_plan) for i in range(len(plan.job.measurements))),
        _outputs(plan),
    ]
    if noise_plan is not None and noise_plan.allocation is not None:
        if noise_plan.allocation.keys is not None:
            children.append(_threshold(noise_plan))
        children.append(_cost(noise_plan))
    children.append(Node(UNCOUNTED, (("intervals", UNACCOUNTED),)))
    if plan.notes:
        children.append(Node("notes", tuple(("", note) for note in plan.notes)))
    names = ", ".join(o.name for o in plan.query.outputs)
    return Explanation(Node(f"release of {names}", children=tuple(children)))


def _protection(plan: Plan) -> Node:
    who, neighbours = protected(plan)
    facts = [("neighbours", neighbours), ("account", promise_of(plan).unit), *in_blocks(plan)]
    if (rows := plan.unit_rows) > 1:
        own, whose = row_of(plan), plan.table.unit_name or f"row of {plan.table.name}"
        what = own.partition(" ")[0]
        facts.append(
            (
                "conversion",
                f"the noise protects one {own}; the cost is charged for {rows} {what}s, the most "
                f"that one {whose} has: {rows} times the ε of one {what}",
            )
        )
    return Node(f"protects {who}", tuple(facts))


def _groups(plan: Plan) -> Node:
    facts = [(key.name, _key_text(key)) for key in plan.job.keys]
    if plan.table.unit is not None:
        groups = count_text(plan.job.each or plan.job.max_groups, "group")
        rows = count_text(plan.job.max_rows, "row")
        each = " in each" if plan.job.max_groups > 1 else ""
        counts = f"counts in at most {groups}, with {rows}{each}"
        if plan.job.block_key is not None:
            counts = f"counts in at most {groups} of each block, with {rows}{each}"
        if plan.job.sets:
            counts = (
                f"counts in at most {groups} of each set, with {rows} in each: in "
                f"{plan.job.max_groups} in all, which the noise of every group allows for"
            )
        if plan.levels is not None:
            counts = (
                f"counts in at most {groups} of all keys, with {rows} in each, and in what they "
                "add up to; the noise of every group allows for all sets"
            )
        if isinstance(plan.query, ag.QueryOfUnits):
            counts = f"counts once{', in one group' if plan.job.keys else ''}"
        facts.append((f"one {plan.table.unit}", counts))
    if not plan.job.keys:
        return Node("one group of all rows", tuple(facts))
    names = [key.name for key in plan.job.keys]
    sets = ["(" + ", ".join(names[i] for i in one) + ")" for one in plan.query.sets]
    groups = f"groups by {', '.join(sets)}" if sets else "groups"
    if plan.public_keys is None:
        return Node(f"{groups}: discovered, each shown where enough units have it", tuple(facts))
    keys = count_text(plan.public_keys, "public key")
    return Node(f"{groups}: {keys}; all appear, empty ones too", tuple(facts))


def _key_text(key: jb.GroupKey) -> str:
    if isinstance(key.expression, Bin):
        return (
            f"{show(key.expression.operand)} cut at {', '.join(map(number, key.expression.edges))}"
        )
    if key.values is None:
        return "any value that occurs" if show(key.expression) == key.name else show(key.expression)
    text = _listed(key.values)
    what = "" if show(key.expression) == key.name else f"{show(key.expression)} in "
    return what + text


def _listed(values: Sequence[Value]) -> str:
    listed = [show_value(v) for v in values]
    return ", ".join(listed[:6]) + (f", ... {listed[-1]}" if len(listed) > 6 else "")


def _measurement(i: int, plan: Plan, noise_plan: NoisePlan | None) -> Node:
    measurement, bound = plan.job.measurements[i], plan.sensitivities[i]
    facts: list[tuple[str, str]] = []
    scale, named = Fraction(1), ""
    if isinstance(measurement, jb.UnitProducts):
        for total in (measurement.left, measurement.right):
            scale *= total.step / total.parts
    along = isinstance(measurement, jb.Leaves) and gridded(measurement.operand) is not None
    chosen = isinstance(measurement, jb.VoteHistogram)
    if chosen:
        facts.append(("among", _candidates(i, plan)))
    if isinstance(measurement, jb.Total | jb.Leaves) and not along and not chosen:
        scope = scope_of(plan.query.relation, plan.schema)
        operand = measurement.operand
        unit = scope.column(operand).unit if isinstance(operand, Column) else None
        spaced = f" {unit}" if unit else ""
        facts.append(("bounds", _bounds(infer(operand, scope), measurement.step) + spaced))
        if isinstance(measurement, jb.Total):
            scale = measurement.step**2 if measurement.square else measurement.step
            named = spaced + "²" if spaced and measurement.square else spaced
    if isinstance(measurement, jb.Total | jb.Leaves):
        scale /= measurement.parts
    if isinstance(measurement, jb.Sides) and isinstance(measurement.of, jb.Leaves):
        scale /= measurement.of.parts
    if plan.public_size and isinstance(measurement, jb.Rows):
        facts.append(("public", "no noise, no cost"))
        return Node(f"measurement {i + 1}: count of rows", tuple(facts))
    facts.append(("sensitivity", _sensitivity(bound, scale, named, ranges=chosen)))
    facts.append(("share", f"{percent(plan.weights[i])} of the budget"))
    if noise_plan is not None and noise_plan.allocation is not None:
        share = noise_plan.allocation[str(i)]
        tree = noise_plan.trees.get(i)
        if tree is not None and tree.levels > 1:
            shape = count_text(tree.levels, "level")
            facts.append(
                ("tree", f"{shape}, each node split in {tree.branching}; each is paid for")
            )
            if isinstance(measurement, jb.Leaves) and measurement.within:
                facts.append(
                    (
                        "read",
                        f"only the at most {OPEN} trees in which the coarser histogram, measured "
                        "first, leaves a quantile; all are paid for",
                    )
                )
        law = share.mechanism.parameters()["mechanism"]
        cells = tree is not None and tree.levels == 1
        each = " in every group" if plan.job.keys else ""
        if tree is not None:
            each = " in every cell" if cells else " in every node"
        facts.append(("mechanism", f"{law}: {share.reason}"))
        if isinstance(share.mechanism, Exponential):
            rate = number_text(float(share.mechanism.rate / scale))
            facts.append(("rate", f"a row fewer is exp({rate}) times less likely{each}"))
        else:
            spread = f"{number_text(sqrt(share.mechanism.variance) * scale)}{named}"
            facts.append(("scale", f"standard deviation {spread}{each}"))
        cost = share.charge
        if cost.epsilon is not None:
            facts.append(("cost", f"ε = {loss_text(cost.epsilon)}"))
        else:
            assert cost.rho is not None
            facts.append(("cost", f"ρ = {loss_text(cost.rho)} (zCDP)"))
    name = measurement_text(measurement, plan.table.unit)
    return Node(f"measurement {i + 1}: {name}", tuple(facts))


def _candidates(place: int, plan: Plan) -> str:
    """The public values that a mode is chosen among."""
    modes = (one for one in plan.measured if isinstance(one, ModeRecipe))
    values = next(mode.values for mode in modes if mode.votes == place)
    return f"{count_text(len(values), 'public value')}: {_listed(values)}"


def _sensitivity(
    bound: MeasurementSensitivity, scale: Fraction, unit: str, *, ranges: bool = False
) -> str:
    """What one unit changes at most, in the unit of the column."""
    per_group = f"{exact_text(bound.per_group * scale)}{unit} in a group"
    if bound.l1 == bound.per_group:
        return per_group
    if ranges:
        return f"{per_group}; over all groups ranges of {exact_text(bound.l1 * scale)} in all"
    l1, l2 = exact_text(bound.l1 * scale), number_text(sqrt(bound.l2_squared) * scale)
    return f"{per_group}; over all groups {l1} (‖Δ‖₁), {l2} (‖Δ‖₂)"


def _bounds(facts: Facts, step: Fraction) -> str:
    assert facts.range is not None
    low, high = facts.range
    return f"[{brief(low)}, {brief(high)}] on multiples of {brief(step)}"


def _outputs(plan: Plan) -> Node:
    facts = [
        (output.name, f"{aggregate_text(output.aggregate)}, {_from(recipe)}")
        for output, recipe in zip(plan.query.outputs, plan.recipes, strict=True)
    ]
    if plan.having is not None and plan.query.having is not None:
        text = f"{aggregate_text(plan.query.having)}, {_from(plan.having).partition(';')[0]}"
        facts.append(("shown where", text))
    return Node("outputs", tuple(facts))


def _from(recipe: Recipe) -> str:
    """What a released value is made from, and how many intervals its own is made from."""
    read = [place for one in sources(recipe) for place in _measured(one)]
    if not read:
        return "public"
    *most, last = [str(i + 1) for i in sorted(set(read))]
    text = f"from measurements {', '.join(most)} and {last}" if most else f"from measurement {last}"
    inside = claims(recipe)
    if any(isinstance(one, Ranked) for one in inside):
        return f"{text}; its interval from those of all groups at once (Bonferroni)"
    if len(inside) > 1:
        return f"{text}; its interval from {len(inside)} that hold at once (Bonferroni)"
    return text


def _measured(recipe: Recipe) -> list[int]:
    match recipe:
        case Linear(terms=terms):
            return [i for i, _ in terms]
        case MeanRecipe(total=total, count=count):
            return [total, count]
        case VarianceRecipe(total=total, square=square, count=count):
            return [total, square, count]
        case QuantileRecipe(leaves=leaves, below=below):
            return [leaves] if below is None else [leaves, below]
        case ModeRecipe(votes=votes):
            return [votes]
        case RanksRecipe(leaves=leaves):
            return [leaves]
        case CellsRecipe(cells=cells, sides=sides):
            return [cells, sides]
        case RatioRecipe(numerator=top, denominator=bottom):
            return [i for i, _ in (*top.terms, *bottom.terms)]
    raise TypeError(type(recipe).__name__)


def _threshold(noise_plan: NoisePlan) -> Node:
    assert noise_plan.allocation is not None
    rule = noise_plan.allocation.keys
    assert rule is not None
    half, rare = rule.n_for(0.5), rule.n_for(0.05)
    who = noise_plan.plan.table.unit or "row"
    return Node(
        "keys shown where the noisy count of units is high enough",
        (
            ("threshold", f"{rule.tau} units"),
            (
                "missed",
                f"a key with {half} units (distinct {who}) half the time, "
                f"with {rare} in 5 % of releases",
            ),
            (
                "cost",
                f"δ = {loss_text(rule.delta_keys)}: likelier no key of a single unit is shown",
            ),
        ),
    )


def _cost(noise_plan: NoisePlan) -> Node:
    charge = noise_plan.charge
    assert charge.epsilon is not None
    facts = []
    if noise_plan.steps > 1:
        each = cost_text(noise_plan.epsilon, noise_plan.delta)
        facts.append(("of each block", f"at most {each}; below, of all {noise_plan.steps:,}"))
    facts += [("guarantee", f"(ε, δ) = ({loss_text(charge.epsilon)}, {loss_text(charge.delta)})")]
    if charge.rho is not None:
        facts.append(
            (
                "and",
                f"ρ = {loss_text(charge.rho)} zCDP"
                + (f" but for δ = {loss_text(charge.rho_delta)}" if charge.rho_delta else ""),
            )
        )
    return Node("cost", tuple(facts))


UNCOUNTED = "not accounted for"
UNACCOUNTED = (
    "intervals are about the noise: not about values moved to their bounds, nor about rows and "
    "groups left out so that one unit counts within its limits"
)


def protects(plan: Plan) -> str:
    """Who is protected, and which tables count as neighbours."""
    who, neighbours = protected(plan)
    return "; ".join([f"{who}; neighbours {neighbours}", *(text for _, text in in_blocks(plan))])


def blocks_text(plan: Plan) -> dict[str, str]:
    """The same, as words of a certificate."""
    found = "; ".join(text for _, text in in_blocks(plan))
    return {"blocks": found} if found else {}


def in_blocks(plan: Plan) -> list[tuple[str, str]]:
    """Which blocks are read, and what is promised of each; nothing where there are none."""
    if plan.blocks is None:
        return []
    told = plan.schema.promised.get(plan.table.unit_name or "", "")
    found = [("blocks", reading(plan.job.relation, plan.blocks, plan.schema))]
    return found + ([("promise", told)] if told else [])


def protected(plan: Plan) -> tuple[str, str]:
    """Who is protected; what the neighbours of a table differ by."""
    if plan.table.unit_rows > 1:
        rows = f"at most {plan.table.unit_rows} rows"
        who = f"one {plan.table.unit_name}, with {rows} of {plan.table.name}"
        rows += f" of one {plan.table.unit_name}"
    elif plan.table.unit is None:
        who, rows = f"one row of {plan.table.name}", "one row"
    else:
        tables = list(dict.fromkeys(s.table for s in rel.scans(plan.query.relation)))
        private = [t for t in tables if plan.schema.table(t).private]
        who = f"one {plan.table.unit}, with all its rows of {' and '.join(private)}"
        rows = f"all rows of one {plan.table.unit}"
    if plan.schema.replace_one:
        return who, f"replace {rows} by any other (the number of units is public)"
    return who, f"add or remove {rows}"


def measurement_text(measurement: jb.Measurement, unit: str | None) -> str:
    """A measurement in a few words."""
    match measurement:
        case jb.Rows():
            return "count of rows"
        case jb.Units():
            return f"count of distinct {unit}"
        case jb.Values(operand=x, once=True):
            return f"count of distinct {unit} with a row where {show(x)} is not NULL"
        case jb.Distinct(operands=parts):
            return f"count of distinct values of {', '.join(map(show, parts))}"
        case jb.Values(operand=x):
            return f"count of rows where {show(x)} is not NULL"
        case jb.Total(operand=x, square=square):
            what = f"({show(x)} - {number(measurement.centre * measurement.step)})"
            plain = show(x) if measurement.centre == 0 else what
            return f"sum of {what}²" if square else f"sum of {plain}"
        case jb.UnitProducts(left=left, right=right) if left == right:
            return f"sum of squares of each {unit}'s mean of {show(left.operand)}"
        case jb.UnitProducts(left=left, right=right):
            each = f"each {unit}'s means of {show(left.operand)} and {show(right.operand)}"
            return f"sum of products of {each}"
        case jb.VoteHistogram(choice=x):
            return f"votes of rows for values of {show(x)}"
        case jb.Leaves(bins=bins) if (grid := gridded(measurement.operand)) is not None:
            about = "" if grid[1] is None else f" of days about {grid[1]}"
            return f"histogram of {show(grid[0])} in {bins:,} cells of a public grid{about}"
        case jb.Sides():
            lost = ", and of what cannot be read" if measurement.unreadable else ""
            return f"count of what lies outside of the ends that are found, and within{lost}"
        case jb.UnitSizeHistogram(by=by, groups=groups):
            of = f"groups by {', '.join(map(show, by))}" if by else "rows"
            largest = f"rows in its largest of the {of}" if by else of
            return f"histogram of each {unit}'s {of if groups else largest}, on a public grid"
        case jb.Leaves(operand=x, bins=bins, within=0):
            return f"histogram of {show(x)} in {bins:,} bins, as a tree"
        case jb.Leaves(operand=x, bins=bins, within=within):
            return (
                f"histogram of {show(x)} in {bins:,} bins, as a tree over each {within:,} of them"
            )
    raise TypeError(type(measurement).__name__)


def limits_text(certificate: Mapping[str, Any]) -> str | None:
    """How much one unit can count in a release; nothing where a row is the unit."""
    columns = [by for by in certificate["tables"].values() if by.startswith("column ")]
    if not columns:
        return None
    groups, rows = certificate["max_groups"], certificate["max_rows"]
    in_groups, of_rows = count_text(groups, "group"), count_text(rows, "row")
    each = " in each" if groups > 1 else ""
    if of_each := certificate.get("max_groups_of_each_set"):
        in_groups = f"{count_text(of_each, 'group')} of each set"
    if certificate.get("steps", 1) > 1:
        in_groups = f"{in_groups} of each block"
    unit = columns[0].removeprefix("column ").partition(OF_BLOCKS)[0]
    return (
        f"one {unit} counts in at most {in_groups}, with {of_rows}{each}: where it has more, "
        "counts and sums are too low, and its rows weigh less in means and quantiles"
    )


def charged_text(certificate: Mapping[str, Any]) -> str:
    """What a release cost; where blocks were read in parallel, also what each of them bears."""
    exact = (certificate["loss"][name] for name in ("epsilon", "delta"))
    amounts = [None if amount is None else Fraction(amount) for amount in exact]
    whole, steps = cost_text(*amounts), certificate.get("steps", 1)
    if steps == 1:
        return whole
    each = cost_text(*(None if amount is None else amount / steps for amount in amounts))
    return f"{each} in each of {steps:,} blocks, {whole} in all"


def aggregate_text(aggregate: ag.AggregateFunction) -> str:
    """An aggregate, close to how SQL writes it."""
    return ag.sql_of(aggregate, show, "count of units", _quantile)


def _quantile(quantile: ag.Quantile) -> str:
    share = f"{number(100 * quantile.q)} % quantile"
    if quantile.label == "disc":
        return f"{share} of {show(quantile.operand)}, a value that can occur"
    if quantile.label == "quantile":
        return f"{share} of {show(quantile.operand)}"
    stands = f", as the {share}" if quantile.label in ("min", "max") else ""
    return f"{quantile.label.upper()}({show(quantile.operand)}){stands}"


def exact_text(value: Fraction | int) -> str:
    """A public number in full.

    Examples
    --------
    >>> exact_text(15625000), exact_text(Fraction(1, 8))
    ('15,625,000', '0.125')
    """
    exact = Fraction(value)
    return f"{exact.numerator:,}" if exact.denominator == 1 else number(exact)
