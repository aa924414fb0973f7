"""Public rules of single rows: read, held against the domain and one another, and kept by rows.

A rule says of columns of one row what is always so: a comparison of sums (`_linear`), that one
column fixes another by a public mapping, or which combinations there are. They are taken as given
and cost nothing, so they must not come from the data; rows of the data that break one count in
cells that have none.

Cells that no row can have are structural zeros of the model: its cliques hold the columns of a rule
together, so that whatever was measured is divided among the cells that are left. Inside of its
cells a row's numbers are drawn so that they keep the rule (`_lattice`).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import combinations
from math import prod
from typing import Any

import numpy as np
import numpy.typing as npt

from dither import _checks as check
from dither.errors import ArgumentError, nearest
from dither.query.tables._domain import Attribute, CellDomain, Clique
from dither.synth._rows import rows_of
from dither.synth.constraints._lattice import RuleLattice
from dither.synth.constraints._linear import LinearRule, linear_rules, tokens
from dither.synth.model._graph import GraphModel
from dither.synth.model._inside import FinerBins
from dither.synth.model._junction import cells_of

__all__ = ["RowRules", "names_in", "row_rules"]

Integers = npt.NDArray[np.int64]
Masks = npt.NDArray[np.bool_]

MOST_RULES = 200
TOGETHER = 2**15
"""Columns whose cells make no more combinations are looked at together, others rule by rule."""
TRIED = 500
"""Rows that are drawn before anything is charged, to see that some keep all rules."""
ROUNDS = 50
"""How often rows that broke a rule are drawn again."""

_WRITE = (
    'rules: write "end >= start", {"if": "zip", "then": "state", "map": {"02139": "MA"}} or '
    '{"columns": ["a", "b"], "allowed": [["x", 1]]}'
)


@dataclass(frozen=True, eq=False)
class _Rule:
    """One rule as it was declared: comparisons, or combinations that no row has."""

    name: str
    linear: tuple[LinearRule, ...] = ()
    forbidden: dict[Clique, Masks] = field(default_factory=dict)

    @property
    def columns(self) -> set[int]:
        """The places of its columns."""
        found = {v for rule in self.linear for v in rule.columns}
        return found.union(*(set(c) for c in self.forbidden))


@dataclass(frozen=True, eq=False)
class RowRules:
    """Rules that every row keeps.

    Parameters
    ----------
    names : tuple of str
        As they were written.
    linear : tuple of LinearRule
    lattices : tuple of RuleLattice
        Columns whose numbers are drawn together, no column in two of them.
    forbidden : dict of Clique to array of bool
        Cells that no row has.
    """

    names: tuple[str, ...] = ()
    linear: tuple[LinearRule, ...] = ()
    lattices: tuple[RuleLattice, ...] = ()
    forbidden: dict[Clique, Masks] = field(default_factory=dict)

    @property
    def columns(self) -> set[int]:
        """Columns whose numbers are drawn here."""
        return {v for lattice in self.lattices for v in lattice.columns}

    def to_list(self) -> list[str]:
        """The comparisons as text; what combinations there are is among the zeros of the model."""
        return list(dict.fromkeys(rule.text for rule in self.linear))

    @classmethod
    def from_list(cls, texts: Sequence[str], domain: CellDomain) -> RowRules:
        """What ``to_list`` wrote."""
        linear = tuple(one for text in texts for one in linear_rules(text, domain))
        return cls(tuple(texts), linear, _lattices(linear, domain))

    def allowed(self, cells: Integers) -> Masks:
        """Which rows of cells are in no cell that is forbidden."""
        found = np.ones(len(cells), dtype=bool)
        for clique, mask in self.forbidden.items():
            found &= ~mask[tuple(cells[:, v] for v in clique)]
        return found

    def numbers(
        self,
        cells: Integers,
        rng: np.random.Generator,
        finer: Mapping[int, FinerBins] | None = None,
        held: Mapping[int, Integers] | None = None,
    ) -> tuple[list[tuple[RuleLattice, Integers, Masks]], Masks]:
        """Numbers of rows of cells, in units of each lattice, and which rows keep all rules.

        Parameters
        ----------
        cells : array of int, shape (n, columns)
        rng : numpy.random.Generator
        finer : mapping of int to FinerBins, optional
            Columns whose numbers lie inside their cells as a tree says, where rules let them.
        held : mapping of int to array of int, optional
            Columns that are given, in units.
        """
        good, found = np.ones(len(cells), dtype=bool), []
        for lattice in self.lattices:
            own = cells[:, list(lattice.columns)]
            low, high, null = lattice.ends(own)
            for i, v in enumerate(lattice.columns):
                if held is not None and v in held:
                    low[:, i] = high[:, i] = held[v]
            values, fits = np.zeros_like(low), np.zeros(len(low), dtype=bool)
            inside = [v for v in lattice.columns if v in (finer or {}) and v not in (held or {})]
            if inside and finer is not None:
                near, far = low.copy(), high.copy()
                for v in inside:
                    i = lattice.columns.index(v)
                    placed = finer[v].placed(own[:, i], rng)
                    ends = lattice.spans_of(v, finer[v].attribute)
                    at = np.where(null[:, i], 0, placed)
                    near[:, i], far[:, i] = ends[0][at], ends[1][at]
                values, fits = lattice.drawn(near, far, null, rng)
            if not fits.all():
                again = ~fits
                values[again], fits[again] = lattice.drawn(
                    low[again], high[again], null[again], rng
                )
            good &= fits
            found.append((lattice, values, null))
        return found, good

    def kept_by(
        self,
        draw: Callable[[int], Integers],
        cells: Integers,
        rng: np.random.Generator,
        **inside: Any,
    ) -> tuple[Integers, dict[int, tuple[RuleLattice, Integers, Masks]]]:
        """Rows of cells, of which those that broke a rule were drawn again, and their numbers.

        Parameters
        ----------
        draw : callable
            Gives so many rows of cells, by the model.
        cells : array of int, shape (n, columns)
            The first of them.
        **inside
            As of `numbers`.
        """
        cells = cells.copy()
        parts, good = self.numbers(cells, rng, **inside)
        good &= self.allowed(cells)
        for _ in range(ROUNDS):
            waiting = np.flatnonzero(~good)
            if not len(waiting):
                break
            # More than are needed, where most fail.
            new = draw(min(len(cells), max(4 * len(waiting), 64)))
            more, fits = self.numbers(new, rng, **inside)
            fits &= self.allowed(new)
            chosen = np.flatnonzero(fits)[: len(waiting)]
            to = waiting[: len(chosen)]
            cells[to], good[to] = new[chosen], True
            for (_, old, null), (_, values, other) in zip(parts, more, strict=True):
                old[to], null[to] = values[chosen], other[chosen]
        if not good.all():
            if not good.any():
                raise ArgumentError(f"rules: no row was found that keeps {_listed(self.names)}")
            bad = np.flatnonzero(~good)
            to = rng.choice(np.flatnonzero(good), len(bad))
            cells[bad] = cells[to]
            for _, old, null in parts:
                old[bad], null[bad] = old[to], null[to]
        found = {}
        for lattice, values, null in parts:
            for i, v in enumerate(lattice.columns):
                found[v] = lattice, values[:, i], null[:, i]
        return cells, found


def names_in(rule: Any) -> set[str]:
    """The columns that a rule names."""
    if isinstance(rule, str):
        return {value for kind, value in tokens(rule) if kind in ("name", "quoted")}
    named = rule.get("columns", [rule.get("if"), rule.get("then")])
    return {str(name) for name in named}


def row_rules(rules: Any, domain: CellDomain, max_cells: int) -> RowRules:
    """Read rules, and see that they can be kept.

    Parameters
    ----------
    rules : sequence of str or mapping
    domain : CellDomain
    max_cells : int
        What a model may have.

    Raises
    ------
    ArgumentError
        One cannot be read, or names what is not there; they contradict the domain or one another:
        says which.
    """
    if isinstance(rules, str | Mapping) or not isinstance(rules, Sequence):
        raise ArgumentError(_WRITE)
    if len(rules) > MOST_RULES:
        raise ArgumentError(f"rules: there are more than {MOST_RULES}")
    read = [_read(rule, domain, max_cells) for rule in rules]
    if not read:
        return RowRules()
    found = _together(read, domain, max_cells)
    if found is None:
        raise ArgumentError(_contradiction(read, domain, max_cells))
    return found


class SimulatedTrials:
    """Random numbers for rows that nobody has, which are drawn to see that rules can be kept."""

    @staticmethod
    def generator() -> np.random.Generator:
        """The same every time: whether rules are refused follows from them and the domain."""
        return np.random.Generator(np.random.PCG64DXSM(0))


def _together(read: Sequence[_Rule], domain: CellDomain, max_cells: int) -> RowRules | None:
    """All of some rules; None where no row keeps them."""
    linear = tuple(one for rule in read for one in rule.linear)
    lattices = _lattices(linear, domain)
    forbidden: dict[Clique, Masks] = {}

    def forbid(clique: Clique, mask: Masks) -> None:
        if mask.any():
            forbidden[clique] = forbidden.get(clique, np.zeros_like(mask)) | mask

    for rule in read:
        for clique, mask in rule.forbidden.items():
            forbid(clique, mask)
    for lattice in lattices:
        cliques = [lattice.columns]
        if domain.cells_in(lattice.columns) > min(TOGETHER, max_cells):
            cliques = list(dict.fromkeys(rule.columns for rule in lattice.rules))
        for clique in cliques:
            if domain.cells_in(clique) <= min(TOGETHER, max_cells):
                inside = [r for r in lattice.rules if set(r.columns) <= set(clique)]
                attributes = {v: domain.attributes[v] for v in clique}
                part = lattice if clique == lattice.columns else RuleLattice(attributes, inside)
                shape = domain.shape(clique)
                every = np.indices(shape).reshape(len(shape), -1).T
                forbid(clique, ~part.possible(every).reshape(shape))
    found = RowRules(tuple(rule.name for rule in read), linear, lattices, forbidden)
    if cells_of(domain.sizes, forbidden) > max_cells:
        names = _listed(found.names)
        raise ArgumentError(
            f"rules: {names} need more cells together than max_bytes has room for; raise it, or "
            "cut their columns into fewer cells"
        )
    # A rule that only NULL keeps says nothing of anybody.
    there = dict(forbidden)
    for v in {v for one in linear for v in one.columns}:
        attribute = domain.attributes[v]
        if attribute.missing:
            nobody = np.arange(attribute.size) >= attribute.inner
            there[v,] = there[v,] | nobody if (v,) in there else nobody
    model = GraphModel(domain.sizes, there, 1.0, there)
    if not model.possible:
        return None
    if not lattices:
        return found
    rng = SimulatedTrials.generator()
    _, good = found.numbers(rows_of(model, TRIED, rng), rng)
    if not good.any() and all(lattice.solved(rng) for lattice in lattices):
        # Somebody could keep them, and so few of the cells do that rows would be nobody's.
        raise ArgumentError(
            f"rules: of {TRIED} rows that were drawn none keeps {_listed(found.names)}: cut their "
            "columns into fewer cells (cells), inside of which numbers are drawn to keep them"
        )
    return found if good.any() else None


def _contradiction(read: Sequence[_Rule], domain: CellDomain, max_cells: int) -> str:
    """Which rules contradict the domain or one another: as few as there are."""

    def impossible(some: Sequence[_Rule]) -> bool:
        try:
            return _together(some, domain, max_cells) is None
        except ArgumentError:  # too few rows keep these, which is no contradiction
            return False

    for rule in read:
        if impossible([rule]):
            return f"rules: {rule.name} is true of no row of the public domain"
    for pair in combinations(read, 2):
        if pair[0].columns & pair[1].columns and impossible(pair):
            return f"rules: {_listed([r.name for r in pair])} contradict one another"
    few = list(read)
    for rule in read:
        fewer = [other for other in few if other is not rule]
        if fewer and impossible(fewer):
            few = fewer
    return f"rules: {_listed([r.name for r in few])} contradict one another"


def _lattices(linear: Sequence[LinearRule], domain: CellDomain) -> tuple[RuleLattice, ...]:
    """Columns that rules join, together."""
    groups: list[set[int]] = []
    for rule in linear:
        joined = set(rule.columns)
        for group in [g for g in groups if g & joined]:
            groups.remove(group)
            joined |= group
        groups.append(joined)
    return tuple(
        RuleLattice(
            {v: domain.attributes[v] for v in group},
            [rule for rule in linear if set(rule.columns) <= group],
        )
        for group in groups
    )


def _read(rule: Any, domain: CellDomain, max_cells: int) -> _Rule:
    if isinstance(rule, str):
        return _Rule(repr(rule), tuple(linear_rules(rule, domain)))
    if isinstance(rule, Mapping) and set(rule) == {"if", "then", "map"}:
        return _mapped(rule, domain, max_cells)
    if isinstance(rule, Mapping) and set(rule) == {"columns", "allowed"}:
        return _combined(rule, domain, max_cells)
    raise ArgumentError(_WRITE)


def _mapped(rule: Mapping[str, Any], domain: CellDomain, max_cells: int) -> _Rule:
    """One column fixes another: of what the mapping does not name, nothing is said."""
    first, second = (_listed_column(rule[k], domain) for k in ("if", "then"))
    if first == second or not isinstance(rule["map"], Mapping) or not rule["map"]:
        raise ArgumentError(_WRITE)
    clique = (min(first, second), max(first, second))
    one, two = domain.attributes[first], domain.attributes[second]
    name = f"{one.name} -> {two.name}"
    _check_room(name, clique, domain, max_cells)
    mask = np.zeros((one.size, two.size), dtype=bool)
    for value, others in rule["map"].items():
        row = np.ones(two.size, dtype=bool)
        several = isinstance(others, list | tuple | set | frozenset)
        row[[_place(two, other) for other in (others if several else [others])]] = False
        mask[_place(one, value)] = row
    return _Rule(name, (), {clique: mask if first < second else mask.T})


def _combined(rule: Mapping[str, Any], domain: CellDomain, max_cells: int) -> _Rule:
    """Some columns have these combinations and no others."""
    names = check.listed("rules: columns", rule["columns"], "columns")
    places = [_listed_column(name, domain) for name in names]
    clique = domain.clique(list(names), "rules: columns")
    name = f"allowed {', '.join(names)}"
    _check_room(name, clique, domain, max_cells)
    mask = np.ones(domain.shape(clique), dtype=bool)
    for row in check.listed("rules: allowed", rule["allowed"], "combinations"):
        if isinstance(row, str) or not isinstance(row, Sequence) or len(row) != len(places):
            raise ArgumentError(f"rules: {name}: write one value for each column")
        cell = {v: _place(domain.attributes[v], x) for v, x in zip(places, row, strict=True)}
        mask[tuple(cell[v] for v in clique)] = False
    return _Rule(name, (), {clique: mask})


def _listed_column(name: Any, domain: CellDomain) -> int:
    if name not in domain.names:
        raise ArgumentError(f"rules: no column {name!r}" + nearest(str(name), domain.names))
    v = domain.names.index(name)
    attribute = domain.attributes[v]
    if attribute.values is None or attribute.period is not None:
        raise ArgumentError(
            f"rules: {name} is cut into bins; combinations are of columns whose values are listed"
        )
    return v


def _place(attribute: Attribute, value: Any) -> int:
    """The cell of a value; of one that a file could only write as text, too."""
    if isinstance(value, str) and attribute.kind.value != "text":
        for i, label in enumerate(attribute.labels[: attribute.inner]):
            if label.casefold() == value.casefold():
                return i
    return attribute.place(value)


def _check_room(name: str, clique: Clique, domain: CellDomain, max_cells: int) -> None:
    if prod(domain.shape(clique)) > max_cells:
        raise ArgumentError(f"rules: {name} has more cells than max_bytes has room for; raise it")


def _listed(names: Sequence[str]) -> str:
    return " and ".join(names[:6]) + (" and others" if len(names) > 6 else "")
