"""The sums of a job as SQL: each unit's contribution bounded as ``dither.plan.job`` says.

Four steps, each one query inside the next: ``rows`` gives every row's unit, group and integers;
``raw`` sums them by unit and group; ``parts`` brings each of these down to ``max_rows`` rows; the
last keeps at most ``max_groups`` parts of a unit, and sums by group. Without a unit the two in the
middle fall away.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction

from sqlglot import exp

from dither.engines.writer.dialect import LARGEST, TOO_LARGE, Dialect
from dither.engines.writer.forms import binary, call, case, identifier, named, selected, subquery
from dither.engines.writer.grouped import UNIT, GroupedQuery
from dither.errors import BoundsError
from dither.plan import expressions as ex
from dither.plan.job import (
    Distinct,
    Leaves,
    Measurement,
    Rows,
    Total,
    UnitProducts,
    Units,
    UnitSizeHistogram,
    Values,
    read_by,
)
from dither.plan.schema import Kind

__all__ = ["SumsQuery", "check_overflow"]

ROWS = "n"


@dataclass(frozen=True, slots=True)
class _Lattice:
    """One operand on one lattice, shared by the measurements that read it.

    ``kind`` is the operand's, so that no column is shared by operands of different types.
    """

    operand: ex.Expression
    kind: Kind | None
    step: Fraction
    lower: int
    upper: int


class SumsQuery(GroupedQuery):
    """Writes the query of all measurements that are one integer per group."""

    def query(self) -> exp.Select:
        """Key columns, then one column for each measurement that is one integer per group."""
        # With histograms alone, the groups are still asked for: those in which a unit has a row.
        alone = (Distinct, Leaves, UnitSizeHistogram)
        wanted = [m for m in self._job.measurements if not isinstance(m, alone)]
        if self._job.unit is None or (not wanted and self.keys_are_listed):
            # Of public keys a group that every unit leaves out may be there, with counts of 0.
            return self._sums_of_rows(wanted or [Rows()])
        wanted = wanted or [Units()]
        shares = {f"s{i}": share for i, share in enumerate(self._shares(wanted))}
        sums = [
            self._dialect.summed_of_size(identifier(name), self._largest_share(m))
            for name, m in zip(shares, wanted, strict=True)
        ]
        found = selected(
            [*self._key_columns(), *sums],
            subquery(self._kept(self._parts(wanted, shares), list(shares)), "kept"),
        )
        return self._grouped(found)

    def _sums_of_rows(self, wanted: list[Measurement]) -> exp.Select:
        """Where each row is a unit: summed by the keys as they are, then held against the lists.

        Nothing is bounded across groups, so looking up each group once does what looking up each
        row would do.
        """
        made = [named(node, f"s{i}") for i, node in enumerate(self._row_sums(wanted))]
        if self._job.sets:
            rows = subquery(self._rows(wanted), "rows")
            return self._grouped(selected([*self._key_columns(), *made], rows))
        rows = subquery(self._rows(wanted, listed=False), "rows")
        found = self._grouped(selected([*self._key_columns(), *made], rows))
        if all(listed is None for listed in self._lists):
            return found
        outer = selected([], subquery(found, "sums"))
        keys = []
        for name, key, listed in zip(self._keys, self._job.keys, self._lists, strict=True):
            value = identifier(name, "sums")
            if listed is not None:
                outer, value = self._looked_up(outer, value, name, listed, key.kind)
            keys.append(named(value, name))
        sums = [identifier(f"s{i}", "sums") for i in range(len(made))]
        return outer.select(*keys, *sums, copy=False)

    def _rows(self, wanted: list[Measurement], *, listed: bool = True) -> exp.Select:
        """Each row's integers, clamped, and the values that are only counted."""
        emitter = self._source.emitter
        lattices, plain = self._lattices(wanted), self._plain(wanted)
        # A formula is computed once, below, however often the clamp names it.
        formulas: dict[tuple[ex.Expression, Kind | None, Fraction], list[tuple[int, int]]] = {}
        for k in lattices:
            formulas.setdefault((k.operand, k.kind, k.step), []).append((k.lower, k.upper))
        shared = {
            formula: emitter.shared(formula[0], formula[2], f"o{i}", ends)
            for i, (formula, ends) in enumerate(formulas.items())
        }
        values = [column.made for column in shared.values()]
        values += [named(emitter.value(x), name) for x, name in plain.items()]
        found = self._base(values, listed=listed)
        if not lattices:
            return found
        unit = [identifier(UNIT)] if self._job.unit is not None else []
        clamped = [
            named(
                emitter.lattice(
                    lattice.operand,
                    lattice.step,
                    lattice.lower,
                    lattice.upper,
                    shared[lattice.operand, lattice.kind, lattice.step],
                ),
                name,
            )
            for lattice, name in lattices.items()
        ]
        counted = [identifier(name) for name in plain.values()]
        columns = [*self._key_columns(), *unit, *clamped, *counted]
        return selected(columns, subquery(found, "values"))

    def _lattice(self, total: Total) -> _Lattice:
        kind = self._source.emitter.facts(total.operand).kind
        return _Lattice(total.operand, kind, total.step, total.lower, total.upper)

    def _lattices(self, wanted: Sequence[Measurement]) -> dict[_Lattice, str]:
        found = dict.fromkeys(self._lattice(m) for m in read_by(wanted) if isinstance(m, Total))
        return {lattice: f"v{i}" for i, lattice in enumerate(found)}

    def _plain(self, wanted: list[Measurement]) -> dict[ex.Expression, str]:
        """Operands that are only counted: a sum's lattice is NULL exactly where its operand is."""
        summed = {lattice.operand for lattice in self._lattices(wanted)}
        found = dict.fromkeys(
            m.operand for m in wanted if isinstance(m, Values) and m.operand not in summed
        )
        return {operand: f"x{i}" for i, operand in enumerate(found)}

    def _counted(self, operand: ex.Expression, wanted: list[Measurement]) -> str:
        for lattice, name in self._lattices(wanted).items():
            if lattice.operand == operand:
                return name
        return self._plain(wanted)[operand]

    def _name(self, total: Total, wanted: list[Measurement]) -> str:
        return self._lattices(wanted)[self._lattice(total)]

    def _row_sums(self, wanted: list[Measurement]) -> list[exp.Expression]:
        found: list[exp.Expression] = []
        for measurement in wanted:
            match measurement:
                case Values(operand=operand):
                    found.append(_count_of(self._counted(operand, wanted)))
                case Total():
                    name = self._name(measurement, wanted)
                    whole = _centred(
                        self._dialect,
                        measurement,
                        _sum_of(self._dialect, measurement, name, by_row=False),
                        _count_of(name),
                    )
                    found.append(self._times(whole, measurement.parts))
                case _:
                    found.append(exp.Count(this=exp.Star()))
        return found

    def _parts(self, wanted: list[Measurement], shares: dict[str, exp.Expression]) -> exp.Select:
        """By unit and group what the unit contributes, before any of its groups is left out.

        So what is ranked is narrow, and each raw count and sum is computed once.
        """
        columns: dict[str, exp.Expression] = {ROWS: exp.Count(this=exp.Star())}
        for measurement in read_by(wanted):
            if isinstance(measurement, Values):
                name = self._counted(measurement.operand, wanted)
                columns[f"count_{name}"] = _count_of(name)
            if isinstance(measurement, Total):
                name = self._name(measurement, wanted)
                if not _is_centred_by_row(measurement):
                    columns[f"count_{name}"] = _count_of(name)
                columns[_sum_name(measurement, name)] = _sum_of(self._dialect, measurement, name)
        by = [identifier(UNIT), *self._key_columns()]
        made = [named(node, name) for name, node in columns.items()]
        rows = self._rows(wanted)
        if self._chooses_groups:
            rows = self._dialect.brought_together(rows, [UNIT], self._job.max_rows)
        raw = selected([*by, *made], subquery(rows, "rows")).group_by(
            *(c.copy() for c in by), copy=False
        )
        shown = [named(share, name) for name, share in shares.items()]
        return selected([*(c.copy() for c in by), *shown], subquery(raw, "raw"))

    def _kept(self, parts: exp.Select, shares: Sequence[str]) -> exp.Select:
        return self._first_groups(parts, shares) if self._chooses_groups else parts

    def _shares(self, wanted: list[Measurement]) -> list[exp.Expression]:
        """What a unit contributes to each measurement in a group."""
        limit = self._dialect.integer(self._job.max_rows)
        found: list[exp.Expression] = []
        for measurement in wanted:
            match measurement:
                case Rows():
                    part = self._dialect.least(identifier(ROWS), limit.copy())
                case Units():
                    part = self._dialect.integer(1)
                case Values(operand=operand):
                    count = identifier(f"count_{self._counted(operand, wanted)}")
                    most = self._dialect.integer(1) if measurement.once else limit.copy()
                    part = self._dialect.least(count, most)
                case Total():
                    part = self._narrowed(self._scaled_down(measurement, wanted), measurement)
                case UnitProducts():
                    part = self._narrowed(self._product(measurement, wanted), measurement)
                case _:
                    raise TypeError(type(measurement).__name__)
            found.append(part)
        return found

    def _narrowed(self, share: exp.Expression, measurement: Measurement) -> exp.Expression:
        """In 64 bits, where public facts prove that these hold it: the cast needs no test."""
        fits = self._largest_share(measurement) <= LARGEST
        return self._dialect.cast(share, Kind.INTEGER) if fits else share

    def _largest_share(self, measurement: Measurement) -> int:
        """The largest size of what one unit contributes in one group."""
        most = self._job.max_rows
        match measurement:
            case Total():
                return measurement.magnitude * most
            case UnitProducts():
                return max(abs(end) for end in measurement.ends(most))
        return most

    def _scaled_down(self, total: Total, wanted: list[Measurement]) -> exp.Expression:
        name = self._name(total, wanted)
        count = identifier(f"count_{name}")
        contributing = identifier(ROWS) if total.null_as_centre else count
        few = binary("<=", contributing.copy(), self._dialect.integer(self._job.max_rows))
        divisor = self._dialect.greatest(contributing, self._dialect.integer(1))
        most = self._job.max_rows * total.parts
        if not self._few_fit(total):
            whole = self._wide_sum(total, name, count.copy())
            part_of_it = self._wide_quotient(whole.copy(), most, divisor)
            return case((few, self._times(whole, total.parts)), otherwise=part_of_it)
        # Almost every unit has few rows, and 64 bits are several times faster than wide types.
        short = self._short_sum(total, name, count.copy())
        all_of_it = self._in_parts(short.copy(), total.parts)
        if most * self._dialect.most_rows <= LARGEST:
            part_of_it = self._short_quotient(short, most, divisor)
        else:
            whole = self._wide_sum(total, name, count.copy())
            part_of_it = self._wide_quotient(whole, most, divisor)
            part_of_it = self._dialect.cast(part_of_it, Kind.INTEGER)
        return case((few, all_of_it), otherwise=part_of_it)

    def _wide_sum(self, total: Total, name: str, count: exp.Expression) -> exp.Expression:
        """What a unit's rows come to in a group, each less its centre."""
        raw = identifier(_sum_name(total, name))
        if _is_centred_by_row(total):
            return call("COALESCE", raw, self._dialect.wide_integer(0))
        return _centred(self._dialect, total, raw, count)

    def _wide_quotient(
        self, whole: exp.Expression, most: int, divisor: exp.Expression
    ) -> exp.Expression:
        """``whole * most`` by the number of rows, towards zero."""
        times = self._dialect.arithmetic("*", whole, self._dialect.wide_integer(most))
        return self._dialect.wide_quotient(times, divisor)

    def _few_fit(self, total: Total) -> bool:
        """Whether 64 bits hold the raw sum of any rows, less their centres and in parts, and what
        ``max_rows`` rows of it come to."""
        centre = total.square_centre if total.square else total.centre
        taken = 0 if _is_centred_by_row(total) else abs(centre)
        size = (_largest_raw(total) + taken) * total.parts
        return self._dialect.sums_in_64_bits(size) and size * self._job.max_rows <= LARGEST

    def _short_sum(self, total: Total, name: str, count: exp.Expression) -> exp.Expression:
        """As ``_wide_sum``, in 64 bits."""
        dialect = self._dialect
        whole = call("COALESCE", identifier(_sum_name(total, name)), dialect.integer(0))
        centre = total.square_centre if total.square else total.centre
        if not centre or _is_centred_by_row(total):
            return whole
        taken = dialect.arithmetic("*", count, dialect.integer(centre))
        return dialect.arithmetic("-", whole, taken)

    def _in_parts(self, whole: exp.Expression, parts: int) -> exp.Expression:
        """A 64-bit integer counted in parts, which 64 bits hold too."""
        if parts == 1:
            return whole
        return self._dialect.arithmetic("*", whole, self._dialect.integer(parts))

    def _short_quotient(
        self, whole: exp.Expression, most: int, divisor: exp.Expression
    ) -> exp.Expression:
        """As ``_wide_quotient``, without leaving 64 bits on the way.

        With whole = q n + r, where n is the number of rows and r has the sign of the whole or is 0,
        it is q most + r most / n, and what is cut off is a part of the latter alone. No row adds
        more than s to the whole, so q is at most s, and ``_few_fit`` says that s most fits; r is
        less than n, and so less than ``most_rows``, which ``most`` times fits too.
        """
        arithmetic, times = self._dialect.arithmetic, self._dialect.integer(most)
        full = arithmetic("*", arithmetic("//", whole.copy(), divisor.copy()), times.copy())
        rest = arithmetic("*", arithmetic("%", whole, divisor.copy()), times)
        return arithmetic("+", full, arithmetic("//", rest, divisor))

    def _product(self, products: UnitProducts, wanted: list[Measurement]) -> exp.Expression:
        arithmetic = self._dialect.arithmetic
        first, second = (
            self._dialect.widened(self._scaled_down(total, wanted))
            for total in (products.left, products.right)
        )
        centre = self._dialect.wide_integer(products.centre)
        return arithmetic("-", arithmetic("*", first, second), centre)

    def _grouped(self, found: exp.Select) -> exp.Select:
        if self._keys:
            return found.group_by(*self._key_columns(), copy=False)
        # Without keys there is one group, and it is absent where nobody has a row.
        nobody = exp.GT(this=exp.Count(this=exp.Star()), expression=self._dialect.integer(0))
        return found.having(nobody, copy=False)


def _count_of(name: str) -> exp.Expression:
    """How many values a column has."""
    return exp.Count(this=identifier(name))


def _is_centred_by_row(total: Total) -> bool:
    """Whether each row's centre is taken off before rows are added, so that nobody counts them."""
    centred = total.null_as_centre and not total.square and total.centre != 0
    # A row less its centre stays within 64 bits.
    return centred and _furthest(total) < 2**62


def _furthest(total: Total) -> int:
    """How far a row's integer can be from the centre."""
    return max(abs(total.lower - total.centre), abs(total.upper - total.centre))


def _sum_name(total: Total, name: str) -> str:
    """The name of a raw sum, the same for equal ones."""
    if _is_centred_by_row(total):
        return f"centred_{name}_{total.centre}"
    return f"square_{name}_{total.centre}" if total.square else f"sum_{name}"


def _sum_of(dialect: Dialect, total: Total, name: str, *, by_row: bool = True) -> exp.Expression:
    """The raw sum: of the lattice's integers, or of their squared distances to the centre."""
    value = identifier(name)
    if by_row and _is_centred_by_row(total):
        # In the lattice's own type where that holds the centre and every distance to it.
        kind = dialect.whole_type(max(abs(total.centre), _furthest(total)))
        centre = dialect.cast_to(dialect.integer(total.centre), kind)
        moved = dialect.arithmetic("-", value, centre)
        return dialect.summed_of_size(moved, _furthest(total))
    if not total.square:
        return dialect.summed_of_size(value, max(abs(total.lower), abs(total.upper)))
    distance = dialect.arithmetic("-", value, dialect.integer(total.centre))
    furthest = _furthest(total)
    # Up to there a square is at most 2^62, which 64 bits hold.
    if furthest > 2**31:
        distance = dialect.widened(distance)
    square = dialect.arithmetic("*", distance, distance.copy())
    return dialect.summed_of_size(square, furthest**2)


def _largest_raw(total: Total) -> int:
    """The largest size of what one row adds to a unit's raw sum."""
    if total.square:
        return _furthest(total) ** 2
    if _is_centred_by_row(total):
        return _furthest(total)
    return max(abs(total.lower), abs(total.upper))


def _centred(
    dialect: Dialect, total: Total, summed: exp.Expression, count: exp.Expression
) -> exp.Expression:
    """The sum of the rows' integers: each row's centre is taken off here, once for all."""
    whole = call("COALESCE", summed, dialect.wide_integer(0))
    centre = total.square_centre if total.square else total.centre
    if centre == 0:
        return whole
    taken = dialect.arithmetic("*", dialect.widened(count), dialect.wide_integer(centre))
    return dialect.arithmetic("-", whole, taken)


def check_overflow(dialect: Dialect, measurement: Measurement, max_rows: int) -> None:
    """Refuse what could leave the engine's widest integers, from public facts alone."""
    if isinstance(measurement, Leaves):
        cells = measurement.upper - measurement.lower + 1
        if measurement.width < 1 or measurement.bins * measurement.width < cells:
            raise BoundsError("the leaves of a histogram do not cover its bounds")
        if measurement.parts * dialect.most_rows * max_rows >= dialect.largest_sum:
            raise BoundsError("max_rows is too large for the engine's integers; lower it")
    if isinstance(measurement, UnitProducts):
        for total in (measurement.left, measurement.right):
            check_overflow(dialect, total, max_rows)
        most = max(abs(end) for end in measurement.ends(max_rows))
        if (most + abs(measurement.centre)) * dialect.most_rows >= dialect.largest_sum:
            raise BoundsError(TOO_LARGE)
    if not isinstance(measurement, Total):
        return
    ends = (measurement.lower, measurement.upper, measurement.centre)
    centre = measurement.square_centre
    # Two ends are at most twice the larger apart: a square is at most four times that of an end.
    largest = max(*(abs(e) for e in ends), 1) ** (2 if measurement.square else 1) * 4 + abs(centre)
    largest = max(largest, measurement.magnitude)
    rows = dialect.most_rows * max(max_rows, 1)
    if largest * rows >= dialect.largest_sum or max(abs(e) for e in ends) > 2**62:
        raise BoundsError(TOO_LARGE)
