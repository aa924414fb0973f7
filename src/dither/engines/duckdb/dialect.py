"""DuckDB's SQL: what it spells in its own way, and forms that cannot fail."""

from __future__ import annotations

from collections.abc import Sequence

from sqlglot import exp

from dither.engines.duckdb.types import DuckDBTypes
from dither.engines.writer.dialect import Seeds
from dither.engines.writer.forms import binary, call, named, selected
from dither.plan.kinds import Kind

__all__ = ["DUCKDB", "DuckDBDialect"]


class DuckDBDialect(DuckDBTypes):
    """DuckDB's SQL. Text compares by its bytes, and sums of integers have 128 bits, by themselves.

    Examples
    --------
    >>> DUCKDB.sql(DUCKDB.real(0.1))
    'CAST(0.1e0 AS DOUBLE)'
    >>> DUCKDB.kind_of_type("DECIMAL(18,2)"), DUCKDB.kind_of_type("STRUCT(a INTEGER)")
    (<Kind.REAL: 'real'>, None)
    >>> DUCKDB.one_to_one("BIGINT", Kind.REAL), DUCKDB.one_to_one("DECIMAL(38,0)", Kind.TEXT)
    (False, True)
    >>> DUCKDB.stored_alike("INTEGER", "UBIGINT"), DUCKDB.stored_alike("BIGINT", "VARCHAR")
    (True, False)
    >>> DUCKDB.largest("TINYINT", Kind.INTEGER)
    Fraction(128, 1)
    """

    name = "duckdb"

    def narrowed(self, value: exp.Expression) -> exp.Expression:
        return self.tried(value, "BIGINT")

    def is_number(self, value: exp.Expression) -> exp.Expression:
        """Not by ``ISNAN``, which the optimizer answers from a file's statistics where these leave
        NaN out."""
        return binary("OR", call("ISFINITE", value.copy()), call("ISINF", value.copy()))

    def whole_type(self, largest: int) -> str:
        # Half as wide is a quarter faster; sums of either have 128 bits.
        return "INTEGER" if largest < 2**31 else "BIGINT"

    def nearest(self, value: exp.Expression, name: str) -> exp.Expression:
        # DuckDB's cast rounds halves to even.
        return self.tried(value, name)

    def date_part(self, part: str, value: exp.Expression) -> exp.Expression:
        name = {"dayofweek": "dow"}.get(part, part)
        return self.cast_to(call("DATE_PART", exp.Literal.string(name), value), "BIGINT")

    def date_truncate(self, part: str, value: exp.Expression) -> exp.Expression:
        return self.cast_to(call("DATE_TRUNC", exp.Literal.string(part), value), "DATE")

    def keyed_hash(self, seeds: Seeds, parts: Sequence[exp.Expression]) -> exp.Expression:
        """The engine's own hash, twice: its combination of values is close to linear, and alone
        would favour some groups."""
        first, second = (self._unsigned(seed) for seed in (seeds.first, seeds.second))
        inner = call("HASH", first, *(p.copy() for p in parts))
        return call("HASH", call("XOR", inner, second))

    def _unsigned(self, value: int) -> exp.Expression:
        return self.cast_to(exp.Literal(this=str(value), is_string=False), "UBIGINT")

    def ranked(
        self,
        columns: Sequence[exp.Expression],
        source: exp.Expression,
        rank: exp.Expression,
        most: int,
        name: str,
    ) -> exp.Select:
        found = selected(columns, source)
        limit = exp.LTE(this=rank, expression=self.integer(most))
        found.set("qualify", exp.Qualify(this=limit))
        return found

    def listed(self, values: Sequence[tuple[int, exp.Expression]], kind: Kind) -> exp.Select:
        held = self._list([value.copy() for _, value in values], self.types[kind])
        places = self._list([exp.Literal.number(place) for place, _ in values], "INTEGER")
        return exp.select(
            named(call("UNNEST", held), "value"), named(call("UNNEST", places), "position")
        )

    def _list(self, nodes: list[exp.Expression], name: str) -> exp.Expression:
        return self.cast_to(exp.Array(expressions=nodes), f"{name}[]")


DUCKDB = DuckDBDialect()
