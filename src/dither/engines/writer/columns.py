"""Which columns a job reads, and which of them as they are before they are cleaned."""

from __future__ import annotations

from dither.plan import expressions as ex
from dither.plan.job import GroupKey, Job, Leaves, Total, Values
from dither.plan.kinds import Kind
from dither.plan.relations import Filter, PublicJoin, Relation, Scan, UnitJoin, scans
from dither.plan.schema import ColumnFacts, Schema

__all__ = ["cleaned_columns", "facts_of", "is_raw_real", "read_columns", "reads_unchecked"]


def read_columns(job: Job) -> tuple[ex.Column, ...]:
    """Every column that a job reads, each once."""
    found: list[ex.Column] = [] if job.unit is None else [job.unit]
    for key in job.keys:
        found.extend(ex.columns(key.expression))
    for measurement in job.measurements:
        if isinstance(measurement, Values | Total | Leaves):
            found.extend(ex.columns(measurement.operand))
    found.extend(_columns_of(job.relation))
    return tuple(dict.fromkeys(found))


def cleaned_columns(job: Job, schema: Schema) -> frozenset[ex.Column]:
    """The columns that a job reads as ``Dialect.cleaned`` gives them; others it reads raw alone.

    What nobody asks for is not written, since an engine may compute it all the same. Joins read
    all of a table's columns, to tell its rows apart.
    """
    every = read_columns(job)
    if not isinstance(_without_filters(job.relation), Scan):
        return frozenset(every)
    totals = {m.operand for m in job.measurements if isinstance(m, Total)}
    found = [] if job.unit is None else [job.unit]
    found.extend(_columns_of(job.relation))
    for key in job.keys:
        if not reads_unchecked(key, job, schema):
            found.extend(ex.columns(key.expression))
    for measurement in job.measurements:
        match measurement:
            case Values(operand=operand) if operand not in totals:
                found.extend(ex.columns(operand))
            case Total(operand=operand) | Leaves(operand=operand):
                if not (isinstance(operand, ex.Column) and is_raw_real(operand, job, schema)):
                    found.extend(ex.columns(operand))
    return frozenset(found)


def reads_unchecked(key: GroupKey, job: Job, schema: Schema) -> bool:
    """Whether a key is a column of declared values whose public list is all that is asked of it.

    The join with the list is the test against the declared values too.
    """
    node = key.expression
    if not isinstance(node, ex.Column) or key.values is None:
        return False
    declared = facts_of(node, job, schema).values
    return declared is not None and set(key.values) <= set(declared)


def is_raw_real(column: ex.Column, job: Job, schema: Schema) -> bool:
    """Whether sums and histograms may read the column itself, and test for NaN as they clamp."""
    facts = facts_of(column, job, schema)
    return facts.kind is Kind.REAL and facts.values is None


def facts_of(column: ex.Column, job: Job, schema: Schema) -> ColumnFacts:
    """The public facts of a column that a job reads."""
    tables = {scan.alias: scan.table for scan in scans(job.relation)}
    return schema.table(tables[column.table]).column(column.name)


def _without_filters(relation: Relation) -> Relation:
    return _without_filters(relation.source) if isinstance(relation, Filter) else relation


def _columns_of(relation: Relation) -> list[ex.Column]:
    match relation:
        case Filter(source=source, predicate=predicate):
            return [*_columns_of(source), *ex.columns(predicate)]
        case PublicJoin(source=source, on=on):
            return [
                *_columns_of(source),
                *(c for left, right in on for c in (*ex.columns(left), right)),
            ]
        case UnitJoin(left=left, left_unit=left_unit, right_unit=right_unit):
            return [*_columns_of(left), left_unit, right_unit]
    return []
