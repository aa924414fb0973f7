"""``generalize``: the full-domain generalisation of least loss; ``recode``: levels of your
choice."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from fractions import Fraction
from functools import partial
from typing import Any

import numpy as np
import polars as pl

from dither._checks import number, whole
from dither.errors import ArgumentError, nearest
from dither.lab._frames import Coded, as_given, as_it_is, encode, in_rows, names, read
from dither.lab.anonymize._definitions import Floats
from dither.lab.anonymize._demands import (
    Demand,
    PreparedTable,
    Require,
    allowance,
    check_seconds,
    hierarchies_of,
)
from dither.lab.anonymize._hierarchy import FittedHierarchy, fit
from dither.lab.anonymize._lattice import (
    GeneralisedRows,
    Optimum,
    SearchProgress,
    SearchTable,
    search,
)
from dither.lab.anonymize._result import Anonymized, Covers, released

__all__ = ["generalize", "recode"]

MOST_NODES = 10_000_000
"""A search keeps a number and two marks for each node: 100 MB."""


def generalize(
    frame: object,
    quasi: Sequence[str],
    hierarchies: Mapping[str, object],
    k: int = 10,
    suppress: float | Fraction | str = 0.05,
    *,
    sensitive: str | Sequence[str] = (),
    require: Require = (),
    distance: str | Mapping[str, str] | None = None,
    order: Mapping[str, Sequence[object]] | None = None,
    weights: Mapping[str, float] | None = None,
    limits: Mapping[str, int] | None = None,
    seconds: float | None = None,
    progress: Callable[[SearchProgress], object] | None = None,
) -> Anonymized:
    """Generalise every value of a column to one level, with the least loss that meets k-anonymity.

    Every combination of levels is considered, and the best is certain: the one of least `loss`
    among those whose classes all have k rows and meet what is required, after leaving out the rows
    of classes that do not, at most a share ``suppress`` of all. Columns that are not in ``quasi``
    are released as they are: drop names and numbers of people first.

    Parameters
    ----------
    frame : Polars or pandas DataFrame, or pyarrow Table
        NULL and NaN are values of their own; where a hierarchy does not list them they stay as they
        are up to ``*``.
    quasi : list of str
        The columns that an attacker may know.
    hierarchies : mapping of str
        For each of them a table (`hierarchy`), or `intervals`, `dates`, `prefixes`, `suppression`.
    k : int
        The least size of a class, from 1 to the rows of the frame.
    suppress : number
        The share of rows that may be left out.
    sensitive : str or list of str
        Columns that an attacker wants to know; they are measured, and ``require`` is about them.
    require : requirement, list of them, or mapping of str to either
        `l_diversity`, `t_closeness`, `alpha_k`, `delta_disclosure`, `beta_likeness`; for all
        sensitive columns or for each. Those that compare with the release's own distribution are
        held against what is left after leaving out; leaving out is repeated until that is stable.
    distance, order
        As in `measure`; a `t_closeness` that is required chooses its own.
    weights : mapping of str to float, optional
        What a column's loss counts, 1 where not given.
    limits : mapping of str to int, optional
        The coarsest level that a column may have.
    seconds : float, optional
        After this long the best so far is returned, with ``complete`` false, as it is after an
        interrupt from the keyboard.
    progress : callable, optional
        Called with a `SearchProgress` a few times a second.

    Returns
    -------
    Anonymized
        Rows are in a secret order. Its ``unprotected`` says in one line what it does not protect.

    Raises
    ------
    ArgumentError
        For unknown columns, an empty frame, k above the number of rows, a hierarchy that does not
        cover a value, more than 10 million combinations of levels, or where nothing meets what is
        asked.

    Notes
    -----
    Samarati and Sweeney's k-anonymity (1998). Where nothing is required but k and distinct
    diversity, or nothing may be left out, a failing node condemns all nodes below it; other
    requirements cost a try for every node whose loss is below the optimum.

    Examples
    --------
    >>> from dither.lab.anonymize import intervals
    >>> people = pl.DataFrame({"age": [31, 34, 38, 52, 55, 57], "ill": list("abacab")})
    >>> found = generalize(people, ["age"], {"age": intervals([5, 10])}, k=3, sensitive="ill")
    >>> found.levels["age"], found.frame["age"].unique().sort().to_list()
    (2, ['[30, 40)', '[50, 60)'])
    >>> found.measures.k, found.measures.sensitive["ill"].distinct_l
    (3, 2)
    """
    asked = PreparedTable.of(
        frame, quasi, k, hierarchies, sensitive, require, distance, order, all_of=True
    )
    known, rows = asked.quasi, asked.table.height
    allowed = allowance(suppress, rows)
    seconds = check_seconds(seconds)
    share = _shares(weights, known)
    both = list(zip(known, asked.coded, strict=True))
    whole = [fit(name, asked.hierarchies[name], one) for name, one in both]
    trees = tuple(_limited(one, name, limits) for name, one in zip(known, whole, strict=True))
    _check_nodes(known, trees, limits)
    base = GeneralisedRows(
        (0,) * len(known), asked.quasi_codes, asked.sensitive_codes, asked.base.weight
    )
    work = SearchTable(trees, base, asked.demand, share, allowed)
    found = search(work, seconds=seconds, progress=progress)
    if found.node is None or found.trial is None:
        raise ArgumentError(_nothing_fits(found, asked.demand, allowed, rows))
    own, kept = work.classes(found.node)
    heights = [one.height for one in whole]
    climbed = [level / height for level, height in zip(found.node, heights, strict=True) if height]
    parts = list(zip(known, asked.coded, trees, found.node, strict=True))
    return released(
        asked,
        {name: _raised(asked.table[name], one, tree, level) for name, one, tree, level in parts},
        np.where(kept, np.cumsum(kept) - 1, -1)[own.of][asked.base.of],
        method="lattice",
        levels=dict(zip(known, found.node, strict=True)),
        heights=dict(zip(known, heights, strict=True)),
        loss=found.trial.loss,
        precision=1 - sum(climbed) / len(climbed) if climbed else 1.0,
        complete=found.complete,
        tried=found.tried,
        nodes=found.nodes,
        meaning=partial(_covers, parts),
    )


def recode(frame: object, hierarchies: Mapping[str, object], levels: Mapping[str, int]) -> Any:
    """Generalise columns to levels of your choice.

    Parameters
    ----------
    frame : Polars or pandas DataFrame, or pyarrow Table
    hierarchies : mapping of str
        As in `generalize`.
    levels : mapping of str to int
        0 leaves the values as they are.

    Returns
    -------
    frame of the same kind
        To bring a population table to the levels of a release, for `measure`.

    Raises
    ------
    ArgumentError
        For an unknown column or a level that its hierarchy does not have.

    Examples
    --------
    >>> from dither.lab.anonymize import intervals
    >>> recode(pl.DataFrame({"age": [31]}), {"age": intervals([5, 10])}, {"age": 2}).item()
    '[30, 40)'
    """
    table = read(frame)
    asked = names("levels", list(levels), table)
    sources = hierarchies_of(hierarchies, table, asked, all_of=True)
    new = []
    for name in asked:
        one = encode(table[name])
        tree = fit(name, sources[name], one)
        level = whole(f"levels[{name!r}]", levels[name], 0, tree.height)
        new.append(in_rows(name, _raised(table[name], one, tree, level)))
    return as_given(table.with_columns(new), frame)


def _shares(weights: Mapping[str, float] | None, quasi: Sequence[str]) -> Floats:
    given = dict(weights or {})
    for name, weight in given.items():
        if name not in quasi:
            raise ArgumentError(f"weights names {name!r}, which is not in quasi")
        given[name] = number(f"weights[{name!r}]", weight, least=0)
    found = np.array([given.get(name, 1.0) for name in quasi])
    if not found.sum() > 0:
        raise ArgumentError("weights must leave at least one column a weight above 0")
    scaled: Floats = found / found.sum()
    return scaled


def _limited(
    fitted: FittedHierarchy, name: str, limits: Mapping[str, int] | None
) -> FittedHierarchy:
    if limits is None or name not in limits:
        return fitted
    stop = whole(f"limits[{name!r}]", limits[name], 0, fitted.height) + 1
    return FittedHierarchy(fitted.maps[:stop], fitted.labels[:stop], fitted.spread[:stop])


def _check_nodes(
    quasi: Sequence[str], fitted: Sequence[FittedHierarchy], limits: Mapping[str, int] | None
) -> None:
    for name in limits or {}:
        if name not in quasi:
            raise ArgumentError(
                f"limits names {name!r}, which is not in quasi{nearest(name, quasi)}"
            )
    nodes = math.prod(len(one.maps) for one in fitted)
    if nodes > MOST_NODES:
        tallest = max(zip(quasi, fitted, strict=True), key=lambda pair: len(pair[1].maps))
        raise ArgumentError(
            f"quasi spans {nodes:,} combinations of levels, above {MOST_NODES:,}: name fewer "
            f"columns, give hierarchies fewer levels ({tallest[0]!r} has {len(tallest[1].maps)}), "
            "or use dt.anonymize.mondrian, which needs none"
        )


def _nothing_fits(found: Optimum, demand: Demand, allowed: int, rows: int) -> str:
    asked = ", ".join([f"{demand.k}-anonymity", *(str(r) for _, r in demand.requirements)])
    if not found.complete:
        return f"seconds ran out before any release with {asked} was found; allow more"
    return (
        f"no generalisation gives {asked}: the closest leaves out at least {found.least:,} of "
        f"{rows:,} rows, and suppress allows {allowed:,}; raise suppress, lower k, or ask for less"
    )


def _raised(
    column: pl.Series, coded: Coded, tree: FittedHierarchy, level: int
) -> pl.Series | Coded:
    """The column at a level."""
    if level == 0:
        return as_it_is(column, coded)
    return Coded(tree.maps[level][coded.codes], tree.labels[level])


def _covers(parts: Sequence[tuple[str, Coded, FittedHierarchy, int]]) -> Covers:
    """The values under each label of the columns that are generalised."""
    found = {}
    for name, one, tree, level in parts:
        if level:
            under: list[list[Any]] = [[] for _ in range(tree.sizes[level])]
            for value, place in zip(one.values.to_list(), tree.maps[level].tolist(), strict=True):
                under[place].append(value)
            found[name] = dict(zip(tree.labels[level].to_list(), map(tuple, under), strict=True))
    return found
