"""Formulas such as ``cost ~ age + C(region)``: columns whose bounds and levels are public.

A formula is read by formulaic (pip install 'dither[inference]'), as statsmodels reads it; only its
grammar is used. What a column is worth is computed here, row by row, from values that
are clamped to their declared bounds first: no row can raise anything, no row depends on another,
and the bounds of every column follow from the declared ones by interval arithmetic. What looks at
the data (``center``, ``scale``, ``poly``, splines) is refused.

Coding. Factors have the levels that are declared, the first as reference. As in R, a factor within
a term is coded without its reference where the rest of the term stands in the formula too.
"""

from __future__ import annotations

import ast
import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from itertools import product
from typing import Any

import numpy as np
import numpy.typing as npt

from dither._extras import check_library
from dither.errors import ArgumentError
from dither.inference.engine._inputs import Bounds, Floats, bounds_of, column
from dither.inference.hypothesis._contingency import codes
from dither.inference.regression._terms import (
    function_of,
    names_of,
    range_of,
    times,
    tree_of,
    values_of,
)

__all__ = [
    "MISSING",
    "DesignColumn",
    "FormulaDesign",
    "named_factor",
    "parsed",
    "read_design",
]

MISSING = -1 - Bounds.steps
"""What the points of a row are that misses something."""

_UNIT = Bounds(Fraction(-1), Fraction(1))
_EXAMPLE = "write it as 'cost ~ age + C(region)', with names of columns"


@dataclass(frozen=True)
class DesignColumn:
    """One column of the regressors: a product of expressions, 0 where factors have other levels.

    Parameters
    ----------
    label : str
    parts : tuple of str
        Expressions whose product it is.
    where : tuple of (str, int)
        Factors, with the place of the level that each must have.
    bounds : Bounds
        Of its values; around 0 where there are factors.
    """

    label: str
    parts: tuple[str, ...]
    where: tuple[tuple[str, int], ...]
    bounds: Bounds

    def excludes(self, other: DesignColumn) -> bool:
        """Whether no row has both: a factor would need two levels."""
        mine = dict(self.where)
        return any(mine.get(name, level) != level for name, level in other.where)


@dataclass(frozen=True)
class FormulaDesign:
    """A formula with what is public about its columns.

    Parameters
    ----------
    formula : str
    answer : str
        The response, an expression.
    bounds : mapping
        From a name to its ends.
    levels : mapping
        From a factor to its levels, the first as reference.
    binary : bool
        Whether the response is a yes or a no: then it is -1 or 1.
    response : Bounds
    terms : tuple of tuple of DesignColumn
        The intercept is not among them.
    """

    formula: str
    answer: str
    bounds: Mapping[str, Bounds]
    levels: Mapping[str, tuple[Any, ...]]
    binary: bool
    response: Bounds
    terms: tuple[tuple[DesignColumn, ...], ...]

    @property
    def columns(self) -> tuple[DesignColumn, ...]:
        """Of all terms."""
        return tuple(c for term in self.terms for c in term)

    @property
    def names(self) -> tuple[str, ...]:
        """Of the coefficients."""
        return ("Intercept", *(c.label for c in self.columns))

    @property
    def factors(self) -> int:
        """Terms in which factors take part."""
        return sum(bool(term[0].where) for term in self.terms)

    def points(self, frame: Any) -> npt.NDArray[np.int64]:
        """Regressors on the lattice, shape (n, d); `MISSING` throughout where a row misses one."""
        points, whole = self._points(frame, self._raw(frame, ()))
        points[~whole] = MISSING
        return points

    def rows(self, frame: Any) -> npt.NDArray[np.int64]:
        """Regressors and then the response on the lattice, shape (n, d + 1)."""
        raw = self._raw(frame, tuple(names_of(self.answer)))
        points, whole = self._points(frame, raw)
        if self.binary:
            values = raw[self.answer]
            answer = np.where(values != 0, Bounds.steps, -Bounds.steps)
        else:
            values = values_of(self.answer, raw, len(points))
            answer = self.response.lattice(np.nan_to_num(values))
        found = np.column_stack([points, answer])
        found[~(whole & ~np.isnan(values))] = MISSING
        return found

    def _points(
        self, frame: Any, raw: Mapping[str, Floats]
    ) -> tuple[npt.NDArray[np.int64], npt.NDArray[np.bool_]]:
        n = len(next(iter(raw.values()))) if raw else _length(frame)
        points = np.zeros((n, len(self.columns)), dtype=np.int64)
        whole = np.ones(n, dtype=np.bool_)
        for j, c in enumerate(self.columns):
            values, held = np.ones(n), np.ones(n, dtype=np.bool_)
            for part in c.parts:
                values = values * values_of(part, raw, n)
            for name, level in c.where:
                whole &= raw[name] >= 0
                held &= raw[name] == level
            whole &= ~np.isnan(values)
            points[:, j] = c.bounds.lattice(np.where(held, np.nan_to_num(values), 0.0))
        return points, whole

    def _raw(self, frame: Any, more: Sequence[str]) -> dict[str, Floats]:
        """Columns by name: numbers clamped to their bounds, factors as the places of levels."""
        there = _columns_of(frame)
        needed = dict.fromkeys(more)
        for c in self.columns:
            needed.update((name, None) for name, _ in c.where)
            needed.update((name, None) for part in c.parts for name in names_of(part))
        found: dict[str, Floats] = {}
        for name in needed:
            if name not in there:
                raise ArgumentError(f"formula names {name!r}, which is not a column of frame")
            if name in self.levels:
                where = codes(f"column {name!r} of frame", frame[name], self.levels[name])
                found[name] = where.astype(np.float64)
                continue
            values = column(f"column {name!r} of frame", frame[name])
            ends = self.bounds.get(name)
            if ends is not None:
                values = np.clip(values, float(ends.lower), float(ends.upper))
            found[name] = values
        if len({len(values) for values in found.values()}) > 1:
            raise ArgumentError("frame must have columns of one length")
        return found


def read_design(
    formula: Any, bounds: Any, levels: Any = None, *, binary: bool = False
) -> FormulaDesign:
    """Read a formula with one response and an intercept, and what is public of its columns.

    Parameters
    ----------
    formula : str
    bounds : mapping
        From the name of a column to (lower, upper).
    levels : mapping, optional
        From the name of a factor to its values, the first as reference.
    binary : bool
        Whether the response is a yes or a no; then it needs no bounds.

    Raises
    ------
    ArgumentError
        It cannot be read, a column has neither bounds nor levels, or a transformation is not one of
        single values.

    Examples
    --------
    >>> read = read_design(
    ...     "log(cost) ~ age * C(region)",
    ...     bounds={"cost": (1, 1000), "age": (0, 100)},
    ...     levels={"region": ["north", "south"]})
    >>> read.names
    ('Intercept', 'age', 'C(region)[T.south]', 'age:C(region)[T.south]')
    >>> float(read.response.lower), round(float(read.response.upper), 3)
    (0.0, 6.908)
    """
    answer, terms = parsed(formula)
    ends = {n: bounds_of(f"bounds[{n!r}]", pair) for n, pair in _mapping("bounds", bounds).items()}
    known = {n: _levels(n, given) for n, given in _mapping("levels", levels).items()}
    both = sorted(set(ends) & set(known))
    if both:
        raise ArgumentError(f"{both[0]!r} has bounds and levels: it is a number or a factor")
    if binary:
        if not answer.isidentifier():
            raise ArgumentError("the response must be the name of a column of yes and no")
        response = _UNIT
    else:
        response = _ends((answer,), ends)
    standing: set[frozenset[str]] = {frozenset(term) for term in terms} | {frozenset()}
    made = tuple(tuple(_columns(term, standing, ends, known)) for term in terms)
    return FormulaDesign(formula.strip(), answer, ends, known, binary, response, made)


def parsed(formula: Any) -> tuple[str, list[tuple[str, ...]]]:
    """The response, and of each term the expressions whose product it is."""
    if not isinstance(formula, str):
        raise ArgumentError(f"formula must be a text: {_EXAMPLE}")
    check_library("formulaic", "inference", "formulas need")
    from formulaic.errors import FormulaParsingError
    from formulaic.parser import DefaultFormulaParser

    try:
        read = DefaultFormulaParser().get_terms(formula)
    except (FormulaParsingError, SyntaxError, ValueError):
        raise ArgumentError(f"formula cannot be read: {_EXAMPLE}") from None
    left, right = list(getattr(read, "lhs", ())), getattr(read, "rhs", None)
    if right is None or isinstance(right, tuple) or len(left) != 1 or len(left[0].factors) != 1:
        raise ArgumentError(f"formula must have one response and terms: {_EXAMPLE}")
    terms = [tuple(f.expr for f in term.factors) for term in right]
    if ("1",) not in terms:
        raise ArgumentError("formula must have an intercept: leave out '- 1' and '0'")
    return left[0].factors[0].expr, [term for term in terms if term != ("1",)]


def _columns(
    term: tuple[str, ...],
    standing: set[frozenset[str]],
    bounds: Mapping[str, Bounds],
    levels: Mapping[str, tuple[Any, ...]],
) -> Iterator[DesignColumn]:
    """The columns of a term: one, or one for each combination of the levels of its factors."""
    factors = {e: name for e in term if (name := _factor(e, levels)) is not None}
    parts = tuple(e for e in term if e not in factors)
    ends = _ends(parts, bounds)
    if factors:
        reach = max(abs(ends.lower), abs(ends.upper))
        ends = Bounds(-reach, reach)
    choices = []
    for e, name in factors.items():
        reduced = frozenset(term) - {e} in standing
        places = range(1 if reduced else 0, len(levels[name]))
        choices.append([(e, name, k, f"{e}[{'T.' * reduced}{levels[name][k]}]") for k in places])
    for chosen in product(*choices):
        shown = {e: text for e, _, _, text in chosen}
        where = tuple((name, k) for _, name, k, _ in chosen)
        yield DesignColumn(":".join(shown.get(e, e) for e in term), parts, where, ends)


def named_factor(expression: str) -> str | None:
    """The name within ``C(name)``, or None."""
    tree = tree_of(expression)
    if not (isinstance(tree, ast.Call) and function_of(tree) == "C"):
        return None
    if len(tree.args) != 1 or tree.keywords or not isinstance(tree.args[0], ast.Name):
        raise ArgumentError(
            "C(...) takes the name of a column alone; levels says its values, the reference first"
        )
    return tree.args[0].id


def _factor(expression: str, levels: Mapping[str, Any]) -> str | None:
    """The factor that an expression names, or None where it is a number."""
    tree = tree_of(expression)
    name = named_factor(expression)
    if name is not None and name not in levels:
        raise ArgumentError(
            f"levels must declare the values of {name!r}, as in levels={{{name!r}: [...]}}: "
            "they may not come from the data"
        )
    if name is None and isinstance(tree, ast.Name):
        name = tree.id
    return name if name in levels else None


def _ends(parts: Sequence[str], bounds: Mapping[str, Bounds]) -> Bounds:
    """The ends of a product of expressions."""
    low, high = 1.0, 1.0
    for part in parts:
        ranges = {}
        for name in names_of(part):
            if name not in bounds:
                raise ArgumentError(
                    f"bounds must declare {name!r}, as in bounds={{{name!r}: (lower, upper)}}, or "
                    "levels its values where it is a factor: they may not come from the data"
                )
            ranges[name] = (float(bounds[name].lower), float(bounds[name].upper))
        low, high = times((low, high), range_of(tree_of(part), ranges, part))
    if not parts:
        return _UNIT
    if not (math.isfinite(low) and math.isfinite(high)):
        raise ArgumentError(f"{':'.join(parts)} has no finite bounds: its columns need others")
    if low == high:
        return Bounds(Fraction(low) - 1, Fraction(high) + 1)
    return bounds_of(":".join(parts), (low, high))


def _mapping(name: str, given: Any) -> Mapping[str, Any]:
    if given is None and name == "levels":
        return {}
    if not isinstance(given, Mapping) or not all(isinstance(n, str) for n in given):
        raise ArgumentError(
            f"{name} must be a mapping from names of columns to "
            f"{'(lower, upper)' if name == 'bounds' else 'their values'}"
        )
    return given


def _levels(name: str, given: Any) -> tuple[Any, ...]:
    wanted = f"levels[{name!r}] must be a list of at least two different values"
    if isinstance(given, str | bytes):
        raise ArgumentError(wanted)
    try:
        found = tuple(given)
        different = len(set(found))
    except TypeError:
        raise ArgumentError(wanted) from None
    if different < max(2, len(found)):
        raise ArgumentError(wanted)
    return found


def _columns_of(frame: Any) -> set[str]:
    if isinstance(frame, Mapping):
        return set(frame)
    if hasattr(frame, "columns") and hasattr(frame, "__getitem__"):
        return set(getattr(frame, "column_names", None) or frame.columns)
    raise ArgumentError("frame must be a frame, or a mapping from names to columns")


def _length(frame: Any) -> int:
    first = frame[next(iter(sorted(_columns_of(frame))))]
    return len(first)
