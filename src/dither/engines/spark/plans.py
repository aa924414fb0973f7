"""Which tables, views and frames of Spark are read: by their analysed plans, and an allow-list.

A view or a frame may hide what no sensitivity accounts for: a LIMIT, a window or a sample makes one
person's row decide which rows of others are there; a union or a join may show one row twice; a
random number is another one when a task is repeated; a cast that fails on one value makes the
whole release fail; a function in Python may do anything. So one is read only where its plan shows
that each of its rows comes from one row of one table, by expressions that cannot fail.

The plan is read as Spark has resolved it, node by node, so that names say what they are and nothing
rests on text. Spark Connect does not show it: there, tables and paths are read, and nothing else.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

from dither.errors import PolicyError

__all__ = ["Read", "read_plan"]

DEEPEST = 200
"""Nodes above a table, at most."""

FILE_FORMATS = {"ParquetFileFormat", "OrcFileFormat", "DeltaParquetFileFormat"}
"""Files that carry their schema, and whose values can be read whatever they are."""

TABLES = ("org.apache.iceberg.spark.source.",)
"""Tables of other catalogs."""

TOTAL = {
    *("AttributeReference", "Literal", "Alias", "And", "Or", "Not", "IsNull", "IsNotNull"),
    *("EqualTo", "EqualNullSafe", "LessThan", "LessThanOrEqual"),
    *("GreaterThan", "GreaterThanOrEqual", "In", "Coalesce", "CaseWhen", "If", "IsNaN"),
}
"""Expressions that fail on no value, and say the same each time."""

PARTS = {
    "Aggregate": "an aggregate or DISTINCT",
    "Distinct": "DISTINCT",
    "Deduplicate": "DISTINCT",
    "GlobalLimit": "LIMIT",
    "LocalLimit": "LIMIT",
    "Tail": "LIMIT",
    "Offset": "OFFSET",
    "Sort": "ORDER BY",
    "Join": "a join",
    "LateralJoin": "a join",
    "Union": "a union",
    "Intersect": "INTERSECT",
    "Except": "EXCEPT",
    "Window": "a window",
    "Sample": "a sample",
    "Generate": "EXPLODE",
    "Expand": "GROUPING SETS",
    "LogicalRDD": "rows from this program, which Spark would make anew where a task is repeated",
    "Range": "numbers and no table",
    "HiveTableRelation": "a Hive table of another format than Parquet and ORC",
}


@dataclass(slots=True)
class Read:
    """What a plan reads.

    Parameters
    ----------
    roots : tuple of str
        The folders and files below it.
    places : set of str
        What is one for all names of the same rows.
    computed : set of int
        The numbers of columns that do not hold what is stored.
    """

    roots: tuple[str, ...] = ()
    places: set[str] = field(default_factory=set)
    computed: set[int] = field(default_factory=set)


def read_plan(plan: Any, jvm: Any, shown: str) -> Read:
    """What an analysed plan reads.

    Parameters
    ----------
    plan : LogicalPlan
        Of the virtual machine.
    jvm : JVMView
    shown : str
        What messages call it.

    Raises
    ------
    PolicyError
        Where it does not take each row by itself: names the part that is in the way.
    """
    reader = _PlanReader(jvm, shown)
    try:
        reader.node(plan, 0)
    except PolicyError:
        raise
    except Exception:
        raise reader.refusal("its plan is not understood") from None
    return reader.read


class _PlanReader:
    def __init__(self, jvm: Any, shown: str) -> None:
        self._jvm = jvm
        self._shown = shown
        self.read = Read()

    def refusal(self, why: str) -> PolicyError:
        return PolicyError(
            f"{self._shown} cannot be protected: it has {why}. What is read must take each row of "
            "one table by itself, by plain columns and conditions that cannot fail; name the table "
            "or its files, and put the rest into the query, or write the result to a table first"
        )

    def node(self, plan: Any, depth: int) -> None:
        if depth > DEEPEST:
            raise self.refusal(f"more than {DEEPEST} steps")
        name = plan.getClass().getSimpleName()
        if name in ("SubqueryAlias", "View"):
            return self.node(_only(plan.children()), depth + 1)
        if name == "Project":
            self.node(_only(plan.children()), depth + 1)
            for column in _each(plan.projectList()):
                self._column(column)
            return None
        if name == "Filter":
            self._total(plan.condition())
            return self.node(_only(plan.children()), depth + 1)
        if name == "LogicalRelation":
            return self._files(plan.relation())
        if name == "DataSourceV2Relation":
            return self._table(plan)
        if name == "LocalRelation":
            return None
        raise self.refusal(PARTS.get(name, f"a step called {name}"))

    def _files(self, relation: Any) -> None:
        kind = relation.getClass().getSimpleName()
        if kind != "HadoopFsRelation":
            raise self.refusal(f"rows that another system hands over ({kind})")
        form = relation.fileFormat().getClass().getSimpleName()
        if form not in FILE_FORMATS:
            raise self.refusal(
                f"files of {form.removesuffix('FileFormat')}, where a malformed row can fail or "
                "go missing; write them to Parquet first"
            )
        roots = tuple(relation.location().rootPaths().mkString("\n").splitlines())
        self.read.roots = roots if form != "DeltaParquetFileFormat" else ()
        self.read.places.update(roots)

    def _table(self, plan: Any) -> None:
        table = plan.table()
        if not str(table.getClass().getName()).startswith(TABLES):
            raise self.refusal(f"a table of a kind that is not known ({table.name()})")
        self.read.places.add(str(table.name()))

    def _column(self, column: Any) -> None:
        if column.getClass().getSimpleName() == "AttributeReference":
            return
        self._total(column)
        if not self._is_plain(column.child()):
            self.read.computed.add(int(column.exprId().id()))

    def _is_plain(self, node: Any) -> bool:
        """Whether a column is another as it is stored."""
        match node.getClass().getSimpleName():
            case "AttributeReference":
                return int(node.exprId().id()) not in self.read.computed
            case "Cast":
                return bool(_same_type(node)) and self._is_plain(node.child())
            case "StaticInvoke":
                return self._is_plain(_first(node.children()))
        return False

    def _total(self, node: Any) -> None:
        name = node.getClass().getSimpleName()
        allowed = name in TOTAL or (name == "Cast" and self._cannot_fail(node))
        # A CHAR is read with its blanks.
        allowed = allowed or (
            name == "StaticInvoke"
            and node.functionName() == "readSidePadding"
            and "CharVarcharCodegenUtils" in node.staticObject().getName()
        )
        if not allowed:
            raise self.refusal(f"an expression that may fail, or that is not known ({name})")
        for child in _each(node.children()):
            self._total(child)

    def _cannot_fail(self, cast: Any) -> bool:
        if _same_type(cast) or str(cast.evalMode()) == "TRY":
            return True
        source, goal = cast.child().dataType(), cast.dataType()
        # A far date is beyond all timestamps.
        dated = source.simpleString() == "date" and goal.simpleString().startswith("timestamp")
        rule = self._jvm.org.apache.spark.sql.catalyst.expressions.Cast.canUpCast
        return not dated and bool(rule(source, goal))


def _same_type(cast: Any) -> bool:
    return bool(cast.child().dataType().equals(cast.dataType()))


def _each(found: Any) -> Iterator[Any]:
    iterator = found.iterator()
    while iterator.hasNext():
        yield iterator.next()


def _first(found: Any) -> Any:
    return next(_each(found))


def _only(found: Any) -> Any:
    (one,) = _each(found)
    return one
