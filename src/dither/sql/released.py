"""What is calculated from released values: sqlglot's tree to ``dither.plan.released``.

It is read in ``SELECT``, ``HAVING`` and ``ORDER BY``, where an aggregate stands. In it may stand
aggregates, keys of ``GROUP BY``, names of columns of the release, constants, and what is done with
them; rows of the table may not.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import reduce

from sqlglot import exp

from dither.errors import QueryError, UnknownNameError, UnsupportedError
from dither.plan import expressions as ex
from dither.plan.aggregates import AggregateFunction
from dither.plan.released import Constant, Grouping, Rank, ReleasedKey, apply
from dither.sql.aggregates import aggregate, aggregates_in, is_aggregate
from dither.sql.allow_list import Place, identifier, plain, refuse, take, title
from dither.sql.names import Names, find

__all__ = ["Columns", "ReleasedReader", "as_key", "bare_name", "is_column", "is_flag"]

Columns = Mapping[str, AggregateFunction | ex.Expression]
"""The released columns by name, and what each is."""

Rule = Callable[["ReleasedReader", exp.Expr], AggregateFunction]


def bare_name(node: exp.Expr, where: str) -> tuple[str, bool] | None:
    """The name in a node that is a name alone, and whether it is quoted."""
    if not isinstance(node, exp.Column) or not isinstance(node.this, exp.Identifier) or node.table:
        return None
    (this,) = take(node, where, "this")
    return identifier(this, where)


def is_column(name: str, exact: bool, names: Names) -> bool:
    """Whether a name is that of a column in scope."""
    try:
        names.column(name, exact=exact)
    except UnknownNameError:
        return False
    except QueryError:
        pass
    return True


def is_flag(node: exp.Expr) -> bool:
    """Whether a node is ``GROUPING(...)``, which says of which set a row is."""
    return isinstance(plain(node), exp.Grouping | exp.GroupingId)


def as_key(value: ex.Expression, names: Names) -> ex.Expression:
    """A bare column in the bins that a key of it would have."""
    edges = names.facts(value).edges if isinstance(value, ex.Column) else None
    return value if edges is None else ex.Bin(value, edges)


@dataclass(frozen=True, slots=True)
class ReleasedReader:
    """Reads one released value.

    Parameters
    ----------
    place : Place
        Reads constants, keys and what stands inside of aggregates.
    columns : mapping
        The released columns that it may name.
    grouped : sequence of Expression
        The keys.
    """

    place: Place
    columns: Columns
    grouped: Sequence[ex.Expression]

    def calculates(self, node: exp.Expr) -> bool:
        """Whether a node is about released values: aggregates, names of these, or keys alone."""
        columns = list(node.find_all(exp.Column))
        named = [self._named(column) for column in columns]
        if aggregates_in(node) or any(isinstance(meant, AggregateFunction) for meant in named):
            return True
        bare = isinstance(plain(node), exp.Column) or not columns
        return not bare and not self._is_key(node) and all(map(self._is_key, columns))

    def _is_key(self, node: exp.Expr) -> bool:
        try:
            return as_key(self.place.read(node), self.place.names) in self.grouped
        except QueryError:
            return False

    def read(self, node: exp.Expr) -> AggregateFunction:
        """Read a node and what is below it.

        Raises
        ------
        QueryError
            Naming the part that cannot be asked.
        """
        node = plain(node)
        if is_flag(node):
            return Grouping(self.flagged(node))
        if is_aggregate(node):
            return aggregate(node, self.place)
        if not aggregates_in(node):
            found = self._without_aggregates(node)
            if found is not None:
                return found
        rule = _RULES.get(type(node))
        if rule is None:
            if isinstance(node, exp.AggFunc | exp.Filter | exp.IgnoreNulls | exp.Subquery):
                return aggregate(node, self.place)
            raise UnsupportedError(
                f"{self.place.where}: {title(node)} of a released value is not offered; calculate "
                "it on the released frame, which is free"
            )
        return rule(self, node)

    def flagged(self, node: exp.Expr) -> tuple[ex.Expression, ...]:
        """The keys that a ``GROUPING(...)`` is about."""
        where = f"{self.place.where}, in GROUPING"
        (listed,) = take(plain(node), where, "expressions")
        reader = replace(self, place=replace(self.place, where=where))
        found = tuple(map(reader._key, listed or ()))
        keys = tuple(key for key in found if key in self.grouped)
        if not keys or keys != found:
            raise QueryError(f"{self.place.where}: GROUPING takes keys of GROUP BY")
        return keys

    def _key(self, node: exp.Expr) -> ex.Expression:
        meant = self._named(node)
        if isinstance(meant, ex.Expression):
            return meant
        return as_key(self.place.read(node), self.place.names)

    def _named(self, node: exp.Expr) -> AggregateFunction | ex.Expression | None:
        """What a bare name among the released columns stands for."""
        written = bare_name(node, self.place.where)
        if written is None:
            return None
        found = find(written[0], self.columns, exact=written[1])
        if len(found) != 1:
            return None
        meant = self.columns[found[0]]
        if isinstance(meant, AggregateFunction) and is_column(*written, self.place.names):
            # A column of the table goes before a name, as in SQL, unless it could not stand here.
            column = self.place.names.column(written[0], exact=written[1])
            if as_key(column, self.place.names) in self.grouped:
                return None
        return meant

    def _without_aggregates(self, node: exp.Expr) -> AggregateFunction | None:
        """A name, a key or a constant; ``None`` for what is made of these."""
        meant = self._named(node)
        if isinstance(meant, AggregateFunction):
            return meant
        if meant is not None:
            return ReleasedKey(meant)
        columns = list(node.find_all(exp.Column))
        if not columns:
            value = self.place.read(node)
            return Constant(value.value) if isinstance(value, ex.Literal) else None
        if any(self._named(column) is not None for column in columns):
            return None
        key = as_key(self.place.read(node), self.place.names)
        if key in self.grouped:
            return ReleasedKey(key)
        if isinstance(node, exp.Column) or type(node) not in _RULES:
            used = ", ".join(dict.fromkeys(repr(c.name) for c in ex.columns(key)))
            raise QueryError(
                f"{self.place.where}: raw columns cannot be released ({used}); put the expression "
                "into GROUP BY, or into an aggregate such as AVG"
            )
        return None

    def make(self, op: str, *operands: AggregateFunction) -> AggregateFunction:
        """An operation, refused with its place where it refuses itself."""
        return self.place.make(apply, op, *operands)


# --- rules --------------------------------------------------------------------------------------


def _operation(op: str) -> Rule:
    def rule(reader: ReleasedReader, node: exp.Expr) -> AggregateFunction:
        left, right = take(node, reader.place.where, "this", "expression")
        return reader.make(op, reader.read(left), reader.read(right))

    return rule


def _divide(reader: ReleasedReader, node: exp.Expr) -> AggregateFunction:
    top, bottom = take(node, reader.place.where, "this", "expression")
    guarded = plain(bottom)
    if isinstance(guarded, exp.Nullif):
        # SUM(x) / NULLIF(COUNT(*), 0): the guard is not needed here, and people are used to it.
        inner, guard = take(guarded, reader.place.where, "this", "expression")
        if not aggregates_in(guard) and reader.read(guard) in (Constant(0), Constant(0.0)):  # type: ignore[arg-type]
            bottom = inner
    return reader.make("/", reader.read(top), reader.read(bottom))


def _unary(op: str, *ignored: str) -> Rule:
    def rule(reader: ReleasedReader, node: exp.Expr) -> AggregateFunction:
        (this,) = take(node, reader.place.where, "this", ignored=ignored)
        return reader.make(op, reader.read(this))

    return rule


def _variadic(op: str, *ignored: str) -> Rule:
    def rule(reader: ReleasedReader, node: exp.Expr) -> AggregateFunction:
        this, rest = take(node, reader.place.where, "this", "expressions", ignored=ignored)
        return reader.make(op, *(reader.read(x) for x in (this, *(rest or ()))))

    return rule


def _negative(reader: ReleasedReader, node: exp.Expr) -> AggregateFunction:
    (this,) = take(node, reader.place.where, "this")
    return reader.make("*", Constant(-1), reader.read(this))


def _round(reader: ReleasedReader, node: exp.Expr) -> AggregateFunction:
    this, decimals = take(node, reader.place.where, "this", "decimals")
    digits = () if decimals is None else (reader.read(decimals),)
    return reader.make("ROUND", reader.read(this), *digits)


def _log(reader: ReleasedReader, node: exp.Expr) -> AggregateFunction:
    this, other = take(node, reader.place.where, "this", "expression")
    if other is None:
        return reader.make("LOG10", reader.read(this))
    base = reader.read(this)
    if base not in (Constant(2), Constant(10)):
        raise UnsupportedError(f"{reader.place.where}: LOG is offered to base 2 and 10, and LN")
    return reader.make("LOG2" if base == Constant(2) else "LOG10", reader.read(other))


def _cast(reader: ReleasedReader, node: exp.Expr) -> AggregateFunction:
    this, to = take(node, reader.place.where, "this", "to")
    take(to, reader.place.where, "this")
    name = to.this.name if isinstance(to, exp.DataType) else ""
    if name in ("INT", "BIGINT"):
        return reader.make("ROUND", reader.read(this))
    if name in ("DOUBLE", "FLOAT"):
        return reader.make("*", Constant(1), reader.read(this))
    raise UnsupportedError(
        f"{reader.place.where}: a released value is cast to INTEGER, BIGINT or DOUBLE alone; "
        "write ROUND(x, digits)"
    )


def _is(reader: ReleasedReader, node: exp.Expr) -> AggregateFunction:
    this, other = take(node, reader.place.where, "this", "expression")
    if not isinstance(other, exp.Null):
        raise UnsupportedError(f"{reader.place.where}: IS is offered with NULL; write x = TRUE")
    take(other, reader.place.where)
    return reader.make("IS NULL", reader.read(this))


def _between(reader: ReleasedReader, node: exp.Expr) -> AggregateFunction:
    this, low, high = (
        reader.read(x) for x in take(node, reader.place.where, "this", "low", "high")
    )
    return reader.make("AND", reader.make("<=", low, this), reader.make("<=", this, high))


def _in(reader: ReleasedReader, node: exp.Expr) -> AggregateFunction:
    this, listed = take(node, reader.place.where, "this", "expressions")
    value = reader.read(this)
    tests = [reader.make("=", value, reader.read(x)) for x in listed or ()]
    if not tests:
        refuse(node, reader.place.where)
    return reduce(lambda a, b: reader.make("OR", a, b), tests)


def _case(reader: ReleasedReader, node: exp.Expr) -> AggregateFunction:
    subject, arms, default = take(node, reader.place.where, "this", "ifs", "default")
    whole = None if subject is None else reader.read(subject)
    parts: list[AggregateFunction] = []
    for arm in arms or ():
        condition, value = (reader.read(x) for x in take(arm, reader.place.where, "this", "true"))
        parts += [condition if whole is None else reader.make("=", whole, condition), value]
    otherwise = Constant(None) if default is None else reader.read(default)
    return reader.make("CASE", *parts, otherwise)


def _if(reader: ReleasedReader, node: exp.Expr) -> AggregateFunction:
    this, true, false = take(node, reader.place.where, "this", "true", "false")
    otherwise = Constant(None) if false is None else reader.read(false)
    return reader.make("CASE", reader.read(this), reader.read(true), otherwise)


def _window(reader: ReleasedReader, node: exp.Expr) -> AggregateFunction:
    where = reader.place.where
    function = node.this
    word = _RANKS.get(type(function))
    if word is None:
        refuse(node, where, "RANK, DENSE_RANK and ROW_NUMBER are, over released values")
    take(function, where)
    _, by, order = take(node, where, "this", "partition_by", "order", ignored=("over",))
    keys = [reader.read(x) for x in by or ()]
    if not all(isinstance(key, ReleasedKey) for key in keys):
        raise UnsupportedError(f"{where}: PARTITION BY takes keys of GROUP BY")
    listed: list[tuple[AggregateFunction, bool]] = []
    for item in () if order is None else take(order, where, "expressions")[0]:
        this, falling = take(item, where, "this", "desc", ignored=("nulls_first",))
        listed.append((reader.read(this), bool(falling)))
    partition = tuple(key for key in keys if isinstance(key, ReleasedKey))
    return reader.place.make(Rank, word, tuple(listed), partition)


_RANKS: Mapping[type[exp.Expr], str] = {
    exp.Rank: "RANK",
    exp.DenseRank: "DENSE_RANK",
    exp.RowNumber: "ROW_NUMBER",
}

_RULES: Mapping[type[exp.Expr], Rule] = {
    exp.Add: _operation("+"),
    exp.Sub: _operation("-"),
    exp.Mul: _operation("*"),
    exp.Div: _divide,
    exp.Neg: _negative,
    exp.EQ: _operation("="),
    exp.NEQ: _operation("<>"),
    exp.LT: _operation("<"),
    exp.LTE: _operation("<="),
    exp.GT: _operation(">"),
    exp.GTE: _operation(">="),
    exp.And: _operation("AND"),
    exp.Or: _operation("OR"),
    exp.Not: _unary("NOT"),
    exp.Is: _is,
    exp.Between: _between,
    exp.In: _in,
    exp.Case: _case,
    exp.If: _if,
    exp.Coalesce: _variadic("COALESCE", "is_nvl", "is_null"),
    exp.Least: _variadic("LEAST", "ignore_nulls"),
    exp.Greatest: _variadic("GREATEST", "ignore_nulls"),
    exp.Nullif: _operation("NULLIF"),
    exp.Abs: _unary("ABS"),
    exp.Floor: _unary("FLOOR"),
    exp.Ceil: _unary("CEIL"),
    exp.Sqrt: _unary("SQRT"),
    exp.Ln: _unary("LN"),
    exp.Exp: _unary("EXP"),
    exp.Log: _log,
    exp.Round: _round,
    exp.Pow: _operation("POWER"),
    exp.Cast: _cast,
    exp.TryCast: _cast,
    exp.Window: _window,
}
