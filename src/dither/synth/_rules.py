"""What is public of a table beside its columns: combinations that cannot be, and known counts.

They are taken as given and cost nothing, so they must not come from the data. What they contradict
is seen before anything is charged.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from fractions import Fraction
from itertools import combinations
from math import prod
from typing import Any

import numpy as np
import numpy.typing as npt

from dither import _checks as check
from dither.errors import ArgumentError
from dither.query.tables._domain import Attribute, CellDomain, Clique
from dither.synth.model._graph import GraphModel, NoisyMarginal
from dither.synth.model._junction import cells_of

__all__ = ["Rules", "rules_of"]

Masks = npt.NDArray[np.bool_]

FIRM = 0.05
"""The deviation, in rows, that a known count is fitted with before it is made exact."""


@dataclass(frozen=True, eq=False)
class Rules:
    """Public facts that a model keeps to.

    Parameters
    ----------
    forbidden : dict of Clique to array of bool
        Combinations that no row has.
    known : list of NoisyMarginal
        Tables of counts that are public.
    total : float, optional
        The number of rows, where it is public.
    """

    forbidden: dict[Clique, Masks] = field(default_factory=dict)
    known: list[NoisyMarginal] = field(default_factory=list)
    total: float | None = None

    def to_dict(self) -> dict[str, Any]:
        """The rules as plain data, numbers as text."""
        return {
            "forbidden": [
                {"clique": list(c), "cells": np.flatnonzero(mask).tolist()}
                for c, mask in self.forbidden.items()
            ],
            "known": [
                {"clique": list(m.clique), "counts": [str(Fraction(v)) for v in m.values.ravel()]}
                for m in self.known
            ],
            "total": None if self.total is None else str(Fraction(self.total)),
        }

    @classmethod
    def from_dict(cls, found: Mapping[str, Any], domain: CellDomain) -> Rules:
        """What ``to_dict`` wrote."""
        forbidden, known = {}, []
        for rule in found["forbidden"]:
            clique = tuple(rule["clique"])
            mask = np.zeros(domain.cells_in(clique), dtype=bool)
            mask[rule["cells"]] = True
            forbidden[clique] = mask.reshape(domain.shape(clique))
        for table in found["known"]:
            clique = tuple(table["clique"])
            counts = np.array([float(Fraction(v)) for v in table["counts"]])
            known.append(NoisyMarginal(clique, counts.reshape(domain.shape(clique)), FIRM))
        total = found["total"]
        return cls(forbidden, known, None if total is None else float(Fraction(total)))


def rules_of(
    domain: CellDomain,
    max_cells: int,
    *,
    zeros: Sequence[Mapping[str, Any]] = (),
    known: Mapping[Any, Mapping[Any, Any]] | None = None,
    total: Any = None,
    forbidden: Mapping[Clique, Masks] | None = None,
) -> Rules:
    """Read rules, and see that they can be kept.

    Parameters
    ----------
    domain : CellDomain
    max_cells : int
        What a model may have.
    zeros : sequence of mapping
        Each a combination that no row has: by column a value, a list of values, or of a column with
        bins the pair of a lower and an upper edge.
    known : mapping, optional
        By column, or tuple of columns: the count of each value, or tuple of values; what is left
        out is 0.
    total : number, optional
        Rows.
    forbidden : mapping of Clique to array of bool, optional
        More combinations that no row has, by what other rules say.

    Raises
    ------
    ArgumentError
        Where a rule names what is not there, or rules contradict one another.
    """
    ruled = bool(forbidden)
    forbidden = dict(forbidden or {})
    if isinstance(zeros, Mapping | str) or not isinstance(zeros, Sequence):
        raise ArgumentError('zeros must be a list of mappings, such as [{"sex": "m", "ill": True}]')
    for rule in zeros:
        if not isinstance(rule, Mapping) or not rule:
            raise ArgumentError("zeros: each must map columns to values")
        clique = domain.clique(list(rule), "zeros")
        if domain.cells_in(clique) > max_cells:
            raise ArgumentError("zeros: a rule of so many cells does not fit; name fewer columns")
        mask = np.ones(domain.shape(clique), dtype=bool)
        for axis, v in enumerate(clique):
            attribute = domain.attributes[v]
            inside = np.zeros(attribute.size, dtype=bool)
            inside[_cells(attribute, rule[attribute.name])] = True
            shape = [1] * len(clique)
            shape[axis] = -1
            mask &= inside.reshape(shape)
        forbidden[clique] = forbidden.get(clique, np.zeros_like(mask)) | mask
    tables = [_known(domain, names, counts, max_cells) for names, counts in (known or {}).items()]
    cliques = [m.clique for m in tables]
    if len(set(cliques)) < len(cliques):
        raise ArgumentError("known: a table stands twice")
    rows = None if total is None else float(check.positive("total", total))
    sums = [float(m.values.sum()) for m in tables]
    for found in sums:
        rows = found if rows is None else rows
        # Sums of doubles: of up to 10^6 cells in any order they differ by less than 10^-9 of them.
        if not math.isclose(found, rows, rel_tol=1e-9):
            raise ArgumentError(
                "known: tables of one number of rows are needed, which total must agree with; "
                f"there are {rows:g} and {found:g}"
            )
    for ours, theirs in combinations(tables, 2):
        shared = tuple(sorted(set(ours.clique) & set(theirs.clique)))
        pair = [
            m.values.sum(axis=tuple(i for i, v in enumerate(m.clique) if v not in shared))
            for m in (ours, theirs)
        ]
        # As for the whole; and counts that are no whole numbers may be off by what raking bears.
        if shared and not np.allclose(pair[0], pair[1], rtol=1e-9, atol=1e-6):
            names = ", ".join(domain.names[v] for v in shared)
            raise ArgumentError(f"known: two tables contradict one another in {names}")
    _check_possible(domain, max_cells, forbidden, tables, "zeros and rules" if ruled else "zeros")
    return Rules(forbidden, tables, rows)


def _check_possible(
    domain: CellDomain,
    max_cells: int,
    forbidden: dict[Clique, Masks],
    tables: list[NoisyMarginal],
    what: str,
) -> None:
    """Some row is allowed, and every known count is of rows that are."""
    cliques = [*forbidden, *(m.clique for m in tables)]
    if not cliques:
        return
    if cells_of(domain.sizes, cliques) > max_cells:
        raise ArgumentError(
            f"{what} and known: together they need more cells than max_bytes has room for"
        )
    model = GraphModel(domain.sizes, cliques, 1.0, forbidden)
    if not model.possible:
        raise ArgumentError(f"{what}: they leave no row at all")
    # The model is uniform: an allowed cell is below 1e-200 only where it alone fixes hundreds of
    # columns. What is forbidden is 0, or 1e-300 where a message had to take its logarithm.
    for m in tables:
        if ((model.marginal(m.clique) < 1e-200) & (m.values > 0)).any():
            names = ", ".join(domain.names[v] for v in m.clique)
            raise ArgumentError(f"known: a count of {names} is of rows that {what} forbid")


def _cells(attribute: Attribute, given: Any) -> list[int]:
    """The cells that a rule names."""
    if attribute.edges is not None and given is not None and not isinstance(given, str):
        if not isinstance(given, tuple | list) or len(given) != 2:
            raise ArgumentError(
                f"zeros: {attribute.name} has bins; write the pair of a lower and an upper edge"
            )
        ends = [check.exact(attribute.name, end) for end in given]
        if ends[0] >= ends[1] or not set(ends) <= set(attribute.edges):
            listed = [str(e) for e in attribute.edges]
            shown = ", ".join([*listed[:8], *(["..."] if len(listed) > 8 else [])])
            raise ArgumentError(
                f"zeros: {attribute.name} must go from one edge of its bins to another, of {shown}"
            )
        first, last = (attribute.edges.index(end) for end in ends)
        return list(range(first, last))
    several = isinstance(given, list | tuple | range | set | frozenset)
    return [attribute.place(value) for value in (given if several else [given])]


def _known(
    domain: CellDomain, names: Any, counts: Mapping[Any, Any], max_cells: int
) -> NoisyMarginal:
    listed = [names] if isinstance(names, str) else list(names)
    clique = domain.clique(listed, "known")
    places = [domain.clique([name], "known")[0] for name in listed]
    if not clique or not isinstance(counts, Mapping):
        raise ArgumentError('known must map columns to counts, such as {"sex": {"f": 51, "m": 49}}')
    if prod(domain.shape(clique)) > max_cells:
        raise ArgumentError("known: a table of so many cells does not fit in max_bytes")
    found = np.zeros(domain.shape(clique))
    for values, count in counts.items():
        row = values if len(listed) > 1 else (values,)
        if not isinstance(row, tuple) or len(row) != len(listed):
            raise ArgumentError(f"known: write one value for each of {', '.join(listed)}")
        cell = {v: domain.attributes[v].place(x) for v, x in zip(places, row, strict=True)}
        found[tuple(cell[v] for v in clique)] = check.number("known: a count", count, least=0)
    if found.sum() <= 0:
        raise ArgumentError("known: the counts of a table must not all be 0")
    return NoisyMarginal(clique, found, FIRM)
