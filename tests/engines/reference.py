"""What a job means, in plain Python, row by row: the engine is held against it.

Written from the docstrings of ``dither.plan.job`` and ``dither.plan.expressions`` alone. Values
are as they are until a measurement clamps them. It covers everything but the choice of groups by
keyed hash, so it is asked only where none has to be chosen.
"""

from __future__ import annotations

import datetime as dt
import math
from bisect import bisect_left
from collections import Counter, defaultdict
from fractions import Fraction
from itertools import pairwise, product

from dither.plan import expressions as ex
from dither.plan.facts.scopes import scope_of
from dither.plan.facts.units import column_names, unit_of
from dither.plan.facts.values import Scope, infer
from dither.plan.job import (
    LONGEST_KEY,
    Cells,
    Distinct,
    GroupKey,
    Job,
    Leaves,
    ListedCells,
    Rows,
    Total,
    UnitProducts,
    Units,
    UnitSizeHistogram,
    Values,
)
from dither.plan.relations import (
    UNIT,
    Derived,
    Filter,
    KeyFilter,
    PublicJoin,
    Scan,
    Union,
    UnitAggregate,
    UnitJoin,
    Unnest,
    visible,
)
from dither.plan.schema import ColumnFacts, Kind, Schema

FIRST, LAST = dt.date(1, 1, 1), dt.date(9999, 12, 31)


def clean(value, facts: ColumnFacts):
    """A value of a source as a column reads it; sources here hold the declared kind already."""
    if value is None or (isinstance(value, float) and math.isnan(value)):
        return None
    if facts.values is not None:
        known = {float(v) if facts.kind is Kind.REAL else v for v in facts.values}
        return value if value in known else None
    return value


def lost(value, facts: ColumnFacts):
    """Whether a value that is there is none once it is read; a text's blanks are text here."""
    return None if value is None else clean(value, facts) is None


class Evaluator:
    """Evaluates expressions on one row: a mapping of columns to cleaned values."""

    def __init__(self, scope: Scope) -> None:
        self.scope = scope

    def kind(self, node: ex.Expression) -> Kind | None:
        return infer(node, self.scope).kind

    def united(self, nodes) -> Kind | None:
        kinds = {self.kind(n) for n in nodes} - {None}
        if len(kinds) > 1:
            return Kind.REAL if Kind.REAL in kinds else Kind.TIMESTAMP
        return next(iter(kinds), None)

    def __call__(self, node: ex.Expression, row, kind: Kind | None = None):
        value = self._value(node, row)
        if value is None:
            return None
        if kind is Kind.REAL or (isinstance(value, Fraction) and kind is None):
            return float(value)
        if kind is Kind.TIMESTAMP and not isinstance(value, dt.datetime):
            return dt.datetime.combine(value, dt.time())
        return value

    def _value(self, node, row):
        match node:
            case ex.Column() | ex.Unreadable():
                return row[node]
            case ex.Literal(value=value):
                return value
            case ex.Arithmetic():
                return self._arithmetic(node, row)
            case ex.Compare(op=op, left=a, right=b):
                kind = self.united((a, b))
                x, y = self(a, row, kind), self(b, row, kind)
                if x is None or y is None:
                    return None
                return {
                    "=": x == y, "<>": x != y, "<": x < y, "<=": x <= y, ">": x > y, ">=": x >= y,
                }[op]  # fmt: skip
            case ex.Between(operand=x, low=a, high=b):
                kind = self.united((x, a, b))
                v, low, high = (self(n, row, kind) for n in (x, a, b))
                return _all([_not_below(v, low), _not_below(high, v)])
            case ex.InList(operand=x, values=values):
                kind = self.united((x, *(ex.Literal(v) for v in values)))
                v = self(x, row, kind)
                return None if v is None else v in [self(ex.Literal(w), row, kind) for w in values]
            case ex.IsNull(operand=x):
                return self(x, row) is None
            case ex.And(operands=xs):
                return _all([self(x, row) for x in xs])
            case ex.Or(operands=xs):
                found = _all([_negated(self(x, row)) for x in xs])
                return _negated(found)
            case ex.Not(operand=x):
                return _negated(self(x, row))
            case ex.Case(branches=branches, otherwise=other):
                kind = self.united((*(v for _, v in branches), other))
                for condition, value in branches:
                    if self(condition, row) is True:
                        return self(value, row, kind)
                return self(other, row, kind)
            case ex.Coalesce(operands=xs):
                kind = self.united(xs)
                return next((v for x in xs if (v := self(x, row, kind)) is not None), None)
            case ex.Least(operands=xs) | ex.Greatest(operands=xs):
                kind = self.united(xs)
                found = [v for x in xs if (v := self(x, row, kind)) is not None]
                turn = min if isinstance(node, ex.Least) else max
                return turn(found) if found else None
            case ex.Call():
                return self._call(node, row)
            case ex.Absolute(operand=x):
                v = self(x, row)
                return None if v is None else _held(abs(v))
            case ex.Floor(operand=x) | ex.Ceil(operand=x):
                v = self(x, row)
                whole = math.floor if isinstance(node, ex.Floor) else math.ceil
                return None if v is None or math.isinf(v) else _held(whole(v))
            case ex.Clamp(operand=x, lower=low, upper=high):
                v = self(x, row)
                if v is None:
                    return None
                real = isinstance(v, float)
                low, high = (float(b) if real else int(b) for b in (low, high))
                return low if v < low else high if v > high else v
            case ex.Bin(operand=x, edges=edges):
                v = self(x, row)
                edges = [float(e) for e in edges] if isinstance(v, float) else edges
                if v is None or not edges[0] <= v <= edges[-1]:
                    return None
                return sum(e <= v for e in edges[1:-1])
            case ex.DatePart(part=part, operand=x):
                v = self(x, row)
                return None if v is None else _part(v, part)
            case ex.DateTruncate(part=part, operand=x):
                v = self(x, row)
                return None if v is None else _truncate(v, part)
            case ex.Lower(operand=x):
                v = self(x, row)
                return None if v is None else v.lower()
            case ex.Upper(operand=x):
                v = self(x, row)
                return None if v is None else v.upper()
            case ex.Substring(operand=x, start=start, length=length):
                v = self(x, row)
                return None if v is None else v[start - 1 : start - 1 + length]
        raise TypeError(type(node).__name__)

    def _call(self, node, row):
        read = {"real": Kind.REAL}
        values = [
            self(x, row, read.get(takes))
            for x, takes in zip(node.operands, node.kinds, strict=True)
        ]
        return None if None in values else node.signature.meaning(*values, *node.options)

    def _arithmetic(self, node, row):
        kind = self.kind(node)
        a, b = self(node.left, row, kind), self(node.right, row, kind)
        if a is None or b is None or (b == 0 and node.op in ("/", "//", "%")):
            return None
        match node.op:
            case "+":
                return _held(a + b)
            case "-":
                return _held(a - b)
            case "*":
                return _held(a * b)
            case "//":
                return _held(int(Fraction(a, b)))
            case "%":
                return a - b * int(Fraction(a, b))
        return _held(a / b)


def _held(value):
    """What a number of the engine can be: 64 bits of an integer, a double that is not NaN."""
    if isinstance(value, float):
        return None if math.isnan(value) else value
    return value if -(2**63) <= value < 2**63 else None


def _negated(value):
    return None if value is None else not value


def _not_below(high, low):
    return None if high is None or low is None else high >= low


def _all(values):
    if any(v is False for v in values):
        return False
    return None if any(v is None for v in values) else True


def _part(value, part):
    week = value.isocalendar()
    found = {
        "quarter": (value.month + 2) // 3,
        "dayofweek": value.isoweekday() % 7,
        "isodow": week.weekday,
        "week": week.week,
        "isoyear": week.year,
        "dayofyear": value.toordinal() - dt.date(value.year, 1, 1).toordinal() + 1,
    }
    return found[part] if part in found else getattr(value, part)


def _truncate(value, part):
    if part in ex.TIMES:
        finer = ex.TIMES[ex.TIMES.index(part) + 1 :]
        return value.replace(microsecond=0, **dict.fromkeys(finer, 0))
    day = value.date() if isinstance(value, dt.datetime) else value
    match part:
        case "year":
            return day.replace(month=1, day=1)
        case "quarter":
            return day.replace(month=(day.month - 1) // 3 * 3 + 1, day=1)
        case "month":
            return day.replace(day=1)
        case "week":
            return day - dt.timedelta(days=day.weekday())
    return day


def _is_in(value, listed):
    """``value IN (listed)`` with the three truth values of SQL."""
    if not listed:
        return False
    if value is None:
        return None
    if value in [x for x in listed if x is not None]:
        return True
    return None if None in listed else False


def rows_of(relation, schema: Schema, tables, evaluate: Evaluator):
    """The rows of a relation: mappings of columns to cleaned values."""
    match relation:
        case Scan(table=table, alias=alias, blocks=blocks):
            facts, lists = schema.table(table).columns, schema.table(table).lists
            kept = tables[table]
            if blocks is not None:
                name, calendar = schema.table(table).block
                own = facts[name]
                kept = [r for r in kept if calendar.block_of(clean(r[name], own)) in blocks]
            return [
                {ex.Column(alias, n): clean(row[n], f) for n, f in facts.items()}
                | {ex.Unreadable(ex.Column(alias, n)): lost(row[n], f) for n, f in facts.items()}
                | {ex.Column(alias, n): row[n] for n in lists}
                for row in kept
            ]
        case Unnest(source=source, elements=one):
            facts = scope_of(relation, schema).column(ex.Column(one.alias, one.name))
            return [
                row | {ex.Column(one.alias, one.name): clean(value, facts)}
                for row in rows_of(source, schema, tables, evaluate)
                for value in (row[ex.Column(one.table, one.column)] or ())[: one.most]
            ]
        case Filter(source=source, predicate=predicate):
            rows = rows_of(source, schema, tables, evaluate)
            return [row for row in rows if evaluate(predicate, row) is True]
        case KeyFilter(source=source, operand=operand, keys=keys, column=column, negated=negated):
            inside = Evaluator(scope_of(keys, schema))
            listed = [inside(column, row) for row in rows_of(keys, schema, tables, inside)]
            return [
                row
                for row in rows_of(source, schema, tables, evaluate)
                if _is_in(evaluate(operand, row), listed) is (not negated)
            ]
        case PublicJoin(source=source, public=public, on=on, keep_all=keep_all):
            others = rows_of(public, schema, tables, evaluate)
            nothing = {ex.Column(public.alias, n): None for n in schema.table(public.table).columns}
            joined = []
            for row in rows_of(source, schema, tables, evaluate):
                key = [evaluate(left, row) for left, _ in on]
                match_ = [o for o in others if key == [o[r] for _, r in on] and None not in key]
                joined += [row | o for o in match_] or ([row | nothing] if keep_all else [])
            return joined
        case UnitJoin(left=left, right=right, left_unit=unit, keep_all=keep_all):
            others = rows_of(right, schema, tables, evaluate)
            names = [*column_names(right, schema), *([] if isinstance(right, Scan) else [UNIT])]
            nothing = {ex.Column(right.alias, n): None for n in names}
            joined = []
            for row in rows_of(left, schema, tables, evaluate):
                if row[unit] is None:
                    continue
                match_ = [o for o in others if _equal(relation, row | o, evaluate)]
                joined += [row | o for o in match_] or ([row | nothing] if keep_all else [])
            return joined
        case Derived(source=source, alias=alias, columns=columns):
            below, unit = _below(source, schema, tables)
            inside = Evaluator(scope_of(source, schema))
            return [
                {ex.Column(alias, name): inside(x, row) for name, x in columns}
                | {ex.Column(alias, UNIT): None if unit is None else row[unit]}
                for row in below
            ]
        case UnitAggregate(source=source, alias=alias, keys=keys, values=values):
            below, unit = _below(source, schema, tables)
            inside = Evaluator(scope_of(source, schema))
            groups = defaultdict(list)
            for row in below:
                if row[unit] is not None:
                    groups[row[unit], *(inside(x, row) for _, x in keys)].append(row)
            return [
                {ex.Column(alias, UNIT): found[0]}
                | {ex.Column(alias, n): v for (n, _), v in zip(keys, found[1:], strict=True)}
                | {ex.Column(alias, n): _of_unit(v, rows, inside) for n, v in values}
                for found, rows in groups.items()
            ]
        case Union(alias=alias, parts=parts):
            names, scope = column_names(relation, schema), scope_of(relation, schema)
            united = []
            for part in parts:
                (first,), own = visible(part), column_names(visible(part)[0], schema)
                unit = unit_of(part, schema)
                inside = Evaluator(scope_of(part, schema))
                for row in rows_of(part, schema, tables, inside):
                    made = {ex.Column(alias, UNIT): row[unit]}
                    for name, theirs in zip(names, own, strict=True):
                        column = ex.Column(alias, name)
                        kind = scope.column(column).kind
                        made[column] = inside(ex.Column(first.alias, theirs), row, kind)
                    united.append(made)
            return united
    raise TypeError(type(relation).__name__)


def _below(source, schema: Schema, tables):
    inside = Evaluator(scope_of(source, schema))
    return rows_of(source, schema, tables, inside), unit_of(source, schema)


def _equal(join: UnitJoin, row, evaluate: Evaluator) -> bool:
    """Whether all that a join sets equal is so; NULL equals nothing."""
    for left, right in join.equal:
        kind = evaluate.united((left, right))
        a, b = evaluate(left, row, kind), evaluate(right, row, kind)
        if a is None or a != b:
            return False
    return True


def _of_unit(value, rows, evaluate: Evaluator):
    """An aggregate within a unit, as ``UnitValue`` says."""
    if value.operand is None:
        return len(rows)
    found = [v for row in rows if (v := evaluate(value.operand, row)) is not None]
    match value.function:
        case "count":
            return len(found)
        case "count distinct":
            return len(set(found))
        case "min":
            return min(found, default=None)
        case "max":
            return max(found, default=None)
    if value.lower is not None:
        found = [lattice(v, value.step, value.lower, value.upper) for v in found]
    total = _held(sum(found)) if found else None
    if total is None:
        return None
    if value.function == "sum" and evaluate.kind(value.operand) is Kind.INTEGER:
        return total
    real = float(total) if value.function == "sum" else float(total) / float(len(found))
    if value.step.numerator == 1:
        return real / float(value.step.denominator)
    return real * float(value.step)


def lattice(value, step: Fraction, lower: int, upper: int) -> int:
    """``clamp(round(value / step), lower, upper)``, in doubles as the engine computes it."""
    if isinstance(value, int) and step == 1:
        return max(lower, min(upper, value))
    if step.numerator == 1:
        scaled = float(value) * float(step.denominator)
    else:
        scaled = float(value) / float(step)
    return max(lower, min(upper, round(max(float(lower), min(float(upper), scaled)))))


def _key(key: GroupKey, value):
    """A value as a key: a text too long to be one is NULL where keys are discovered."""
    long = key.values is None and key.kind is Kind.TEXT and len(value or "") > LONGEST_KEY
    return None if long else value


def answer(job: Job, schema: Schema, tables) -> dict:
    """The exact answer by group: a list with one entry for each measurement."""
    evaluate = Evaluator(scope_of(job.relation, schema))
    if any(isinstance(m, Cells) for m in job.measurements):
        return {(): [_table(m, job, schema, tables, evaluate) for m in job.measurements]}
    groups = defaultdict(lambda: defaultdict(list))
    for number, row in enumerate(rows_of(job.relation, schema, tables, evaluate)):
        unit = number if job.unit is None else row[job.unit]
        group = tuple(_key(k, evaluate(k.expression, row, k.kind)) for k in job.keys)
        public = [
            k.values is None or g in [float(v) if k.kind is Kind.REAL else v for v in k.values]
            for k, g in zip(job.keys, group, strict=True)
        ]
        if unit is not None and all(public) and not job.sets:
            groups[group][unit].append(row)
        for at, one in enumerate(job.sets):
            if unit is not None and all(public[i] for i in one):
                kept = (g if i in one else None for i, g in enumerate(group))
                groups[*kept, at][unit].append(row)
    return {
        group: [
            _combined([_share(m, rows, job.max_rows, evaluate) for rows in units.values()])
            for m in job.measurements
        ]
        for group, units in groups.items()
    }


def _table(table: Cells, job: Job, schema: Schema, tables, evaluate) -> list:
    """A table of counts, where no unit has more rows than count; or its cells in use."""
    places = Counter(_places(table, job, schema, tables, evaluate))
    if isinstance(table, ListedCells):
        return sorted(places.items())
    return [places[cell] for cell in product(*map(range, table.shape))]


def _placed_after(job: Job, rows, evaluate):
    """Of each row the places in every key, those among them that its history gives."""
    history, own = job.history, [i for i in range(len(job.keys)) if i not in job.history.given]

    def place(row, axis):
        key = job.keys[axis]
        value = evaluate(key.expression, row, key.kind)
        listed = [float(v) if key.kind is Kind.REAL else v for v in key.values]
        return listed.index(value) if value in listed else len(listed)

    histories = defaultdict(list)
    for row in rows:
        if row[job.unit] is not None:
            part = tuple(evaluate(node, row, None) for node in history.within)
            places = {axis: place(row, axis) for axis in own}
            order = evaluate(history.order, row, Kind.INTEGER)
            histories[row[job.unit], part].append((order, places))
    for listed in histories.values():
        listed.sort(key=lambda one: (one[0] is None, one[0] or 0, list(one[1].values())))
        before = None
        for number, (order, places) in enumerate(listed, 1):
            made = dict(places)
            made[history.number] = min(number, len(job.keys[history.number].values)) - 1
            for key, of in history.before:
                size = len(job.keys[key].values)
                made[key] = size if before is None else before[1][of]
            gap = None if before is None or None in (order, before[0]) else order - before[0]
            edges = history.edges
            made[history.gap] = (
                len(edges) if gap is None else max(i for i, e in enumerate(edges) if e <= gap)
            )
            before = order, places
            yield made


def _places(table: Cells, job: Job, schema: Schema, tables, evaluate):
    """Of each row the place in every key of a table."""
    if job.history is not None:
        rows = rows_of(job.relation, schema, tables, evaluate)
        for made in _placed_after(job, rows, evaluate):
            yield tuple(made[axis] for axis in table.axes)
        return
    for row in rows_of(job.relation, schema, tables, evaluate):
        if job.unit is not None and row[job.unit] is None:
            continue
        cell = []
        for axis, size in zip(table.axes, table.shape, strict=True):
            key = job.keys[axis]
            value = evaluate(key.expression, row, key.kind)
            listed = [float(v) if key.kind is Kind.REAL else v for v in key.values]
            cell.append(listed.index(value) if value in listed else size - 1)
        yield tuple(cell)


class Kept(frozenset):
    """What a unit's distinct values are kept from; ``most`` where not all of them are."""

    def __new__(cls, values, most=None):
        made = super().__new__(cls, values)
        made.most = most
        return made


class Among:
    """A number of which only the ends are known: it equals every number between."""

    def __init__(self, least, most):
        self.least, self.most = least, most

    def __eq__(self, other):
        return self.least <= other <= self.most

    __hash__ = None

    def __repr__(self):
        return f"{self.least} to {self.most}"


def _combined(shares):
    if isinstance(shares[0], Kept):
        if all(s.most is None for s in shares):
            return len(frozenset().union(*shares))
        # Which are kept is for the keyed hash to say; as many as these are, at the least and most.
        sure = frozenset().union(*(s for s in shares if s.most is None))
        least = max([len(sure), *(s.most for s in shares if s.most is not None)])
        every = len(frozenset().union(*shares))
        return Among(least, min(every, sum(s.most or len(s) for s in shares)))
    if isinstance(shares[0], list):
        return [sum(column) for column in zip(*shares, strict=True)]
    return sum(shares)


def _share(measurement, rows, max_rows: int, evaluate: Evaluator):
    match measurement:
        case Rows():
            return min(len(rows), max_rows)
        case Units():
            return 1
        case Values(operand=operand, once=once):
            found = sum(evaluate(operand, row) is not None for row in rows)
            return min(found, 1 if once else max_rows)
        case Distinct(operands=parts):
            values = {tuple(evaluate(part, row) for part in parts) for row in rows}
            values = {value for value in values if None not in value}
            return Kept(values) if len(values) <= max_rows else Kept(values, max_rows)
        case Total():
            return _total(measurement, rows, max_rows, evaluate)
        case UnitProducts(left=left, right=right, centre=centre):
            first, second = (_total(t, rows, max_rows, evaluate) for t in (left, right))
            return first * second - centre
        case Leaves():
            numbers = sorted(
                (
                    lattice(v, measurement.step, measurement.lower, measurement.upper)
                    - measurement.lower
                )
                // measurement.width
                for row in rows
                if (v := evaluate(measurement.operand, row)) is not None
            )
            r, parts = len(numbers), measurement.parts
            below = [bisect_left(numbers, i) for i in range(measurement.bins + 1)]
            if r > max_rows:
                below = [n * max_rows * parts // r for n in below]
                parts = 1
            return [parts * (b - a) for a, b in pairwise(below)]
        case UnitSizeHistogram(by=by, groups=groups, edges=edges):
            # 0 and -0 are one value in Python too; a truth value is not a number.
            found = Counter(
                tuple((type(v), v) for v in (evaluate(k, row) for k in by)) for row in rows
            )
            size = len(found) if groups else max(found.values())
            return [int(low <= size < high) for low, high in pairwise((*edges, math.inf))]
    raise TypeError(type(measurement).__name__)


def _total(total: Total, rows, max_rows: int, evaluate: Evaluator) -> int:
    contributions = []
    for row in rows:
        value = evaluate(total.operand, row)
        if value is None:
            contributions += [0] if total.null_as_centre else []
            continue
        number = lattice(value, total.step, total.lower, total.upper) - total.centre
        contributions.append(number * number - total.square_centre if total.square else number)
    r, s = len(contributions), sum(contributions)
    s *= total.parts
    return s if r <= max_rows else int(Fraction(s * max_rows, r))
