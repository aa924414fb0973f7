"""``measure``: which definitions a table meets as it stands."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np
import polars as pl

from dither.errors import ArgumentError
from dither.lab.anonymize.frames import encode, names, read
from dither.lab.anonymize.measures import Measures, from_classes
from dither.lab.anonymize.risk import Risk, against_population
from dither.lab.anonymize.sensitive import chosen_distances, prepare
from dither.lab.anonymize.tally import Classes, combine, label

__all__ = ["classify", "columns_apart", "measure", "population_risk"]


def measure(
    frame: object,
    quasi: Sequence[str],
    sensitive: str | Sequence[str] = (),
    *,
    distance: str | Mapping[str, str] | None = None,
    order: Mapping[str, Sequence[object]] | None = None,
    hierarchies: Mapping[str, object] | None = None,
    population: object | None = None,
    threshold: float = 0.2,
) -> Measures:
    """Measure a table by every definition: k-anonymity and its kin, risk, utility.

    Parameters
    ----------
    frame : Polars or pandas DataFrame, or pyarrow Table
        As it would be released. NULL and NaN are values of their own.
    quasi : list of str
        The columns that an attacker may know.
    sensitive : str or list of str
        The columns that an attacker wants to know.
    distance : str or mapping of str to str, optional
        The ground distance of t-closeness, for all sensitive columns or for each: ``"equal"``,
        ``"ordered"`` or ``"hierarchical"``. Without a choice no t is given.
    order : mapping of str to list, optional
        Values of a column of texts from first to last, for ``"ordered"``.
    hierarchies : mapping of str, optional
        The sensitive column's hierarchy, for ``"hierarchical"``.
    population : frame, optional
        People with the same quasi columns, written as in ``frame``, for the journalist and the
        marketer. Everybody in ``frame`` must be in it.
    threshold : float
        In (0, 1]: a row whose risk is above it counts as exposed.

    Returns
    -------
    Measures
        Its ``unprotected`` says what the figures do not cover.

    Raises
    ------
    ArgumentError
        For an unknown column, one that is both quasi and sensitive, an empty frame, a missing order
        or hierarchy, or a population that lacks somebody.

    Examples
    --------
    >>> people = pl.DataFrame({"zip": ["02*", "02*", "03*", "03*"], "ill": ["a", "b", "a", "a"]})
    >>> found = measure(people, ["zip"], "ill", distance="equal")
    >>> found.k, found.sensitive["ill"].distinct_l, found.sensitive["ill"].t
    (2, 1, 0.25)
    """
    table = read(frame)
    known, wanted = columns_apart(table, quasi, sensitive)
    number = isinstance(threshold, int | float) and not isinstance(threshold, bool)
    if not number or not 0 < threshold <= 1:
        raise ArgumentError("threshold must be above 0 and at most 1")
    chosen = chosen_distances(distance, wanted)
    columns = [
        prepare(table, name, {chosen[name]} if name in chosen else (), order, hierarchies)
        for name in wanted
    ]
    classes = classify(table, known)
    risk = None
    if population is not None:
        risk = population_risk(table, classes, read(population, "population"), known, threshold)
    return from_classes(known, classes, columns, chosen, risk=risk, threshold=threshold)


def columns_apart(
    table: pl.DataFrame, quasi: Sequence[str], sensitive: str | Sequence[str]
) -> tuple[list[str], list[str]]:
    """The quasi-identifiers and the sensitive columns, checked."""
    known = names("quasi", quasi, table)
    wanted = names("sensitive", sensitive, table, some=False)
    both = [name for name in wanted if name in known]
    if both:
        listed = ", ".join(repr(name) for name in both)
        raise ArgumentError(
            f"quasi and sensitive must differ, and {listed} is in both: a column is either what "
            "the attacker knows or what they want to know"
        )
    return known, wanted


def classify(table: pl.DataFrame, quasi: Sequence[str]) -> Classes:
    """The classes of rows that agree on all quasi-identifiers."""
    coded = [encode(table[name]) for name in quasi]
    return label(*combine([(c.codes, c.size) for c in coded], table.height))


def population_risk(
    table: pl.DataFrame,
    classes: Classes,
    population: pl.DataFrame,
    quasi: Sequence[str],
    threshold: float,
) -> Risk:
    """Risk against a population table, whose classes are those of the release.

    Raises
    ------
    ArgumentError
        Where the population lacks a column, or has fewer people of a class than the release.
    """
    missing = [name for name in quasi if name not in population.columns]
    if missing:
        raise ArgumentError(f"population lacks the column {missing[0]!r}")
    first = table.select(quasi)[classes.first]
    try:
        both = pl.concat([first, population.select(quasi)], how="vertical_relaxed")
    except pl.exceptions.PolarsError:
        raise ArgumentError(
            "population must have quasi columns of the same types as frame"
        ) from None
    together = classify(both, quasi)
    people = np.bincount(together.of, minlength=len(together.first))
    people = people[together.of[: len(classes.first)]] - 1
    short = int((people < classes.weight).sum())
    if short:
        raise ArgumentError(
            f"population must hold everybody in frame: it has fewer people in {short:,} of "
            f"{len(people):,} classes. Are its columns generalised alike?"
        )
    return against_population(classes.weight, people, threshold)
