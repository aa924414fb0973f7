"""Linkage by what is known roughly: weighted, inexact scores in place of rows that fit.

Exact linkage fails as soon as one fact is off by one. Most of what anybody knows of others is off
somewhere, and it identifies all the same: of many facts nearly all are right, and the rare ones say
much. Each row is scored by ::

    score(row) = Σ over what is known of  w · s(known, row's value)

s is 1 where the value (or the label that it is published under) agrees, the exponential of
-|difference|/tolerance where both are numbers, and 0 elsewhere, as where the row has no value. The
weight of a fact is the information of it, w = -log(mean of s over all rows): what nearly everybody
shares weighs nothing, and what few have weighs most.

The best row is claimed to be the person's where it stands out: where it leads the next by at least
``eccentricity`` standard deviations of all scores. Else the person may not be in the release at
all, and nothing is claimed.

The game is that of `linkage`. Controls: the same attack with every fact right, and the rows of
strangers.

Source. Narayanan and Shmatikov, "Robust de-anonymization of large sparse datasets", 2008, section
5, whose weights 1/log(how many have the film) are those of one kind of data.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt
import polars as pl

from dither import _checks as check
from dither._checks import confidence as check_confidence
from dither._format import Printable, count_text, number_text
from dither.errors import ArgumentError, nearest
from dither.lab._frames import columns_of, names, released, sorted_codes
from dither.lab._grouping import Ints
from dither.lab._simulation import SimulatedWorld
from dither.lab._verdicts import paragraph, some_names
from dither.lab.attack._verdict import Score, Verdict, judge
from dither.lab.attack.disclosure._labels import coverage
from dither.lab.attack.disclosure._linkage import covers_of, named, rows_of_people

if TYPE_CHECKING:
    from matplotlib.figure import Figure

__all__ = ["InexactLinkage", "inexact_linkage"]

Covers = Mapping[str, Mapping[Any, Iterable[Any]]]
Floats = npt.NDArray[np.float64]

_CELLS = 4_000_000
"""Scores that are held at once."""


@dataclass(frozen=True, slots=True, eq=False)
class InexactLinkage(Printable):
    """The result of `inexact_linkage`.

    Attributes
    ----------
    keys : tuple of str
    people, rows : int
        Of the public table, and of the release.
    guesses : array of int64
        Of each person: the row with the largest score; one of them at random where several have it.
    leads : array of float64
        By how many standard deviations of all scores that row leads the next.
    eccentricity : float
        The lead from which on a row is claimed.
    claimed : int
        People whose row is claimed.
    right : int or None
        Such claims that are right; None where the truth was not given.
    verdict : Verdict or None
        On the guesses of everybody; None where the truth was not given.
    """

    keys: tuple[str, ...]
    people: int
    rows: int
    guesses: Ints = field(repr=False)
    leads: Floats = field(repr=False)
    eccentricity: float
    claimed: int
    right: int | None
    verdict: Verdict | None

    def summary(self) -> str:
        """What was found, and the verdict."""
        lines = [
            f"{count_text(self.people, 'person', 'people')} looked up in "
            f"{count_text(self.rows, 'row')} by what is roughly known of {some_names(self.keys)}.",
            f"A row stands out for {self.claimed:,}, by {number_text(self.eccentricity, 3)} "
            "deviations of all scores at least"
            + ("." if self.right is None else f"; it is the right one for {self.right:,}."),
        ]
        shown = paragraph(lines)
        return shown if self.verdict is None else f"{shown}\n{self.verdict.summary()}"

    def plot(self, path: str | Path | None = None) -> Figure:
        """Draw by how much rows stand out, and the success beside its controls.

        Saved to ``path`` (.png, .svg or .pdf) where one is given.
        """
        from dither.plots.lab._attack_tables import draw_inexact_linkage

        return draw_inexact_linkage(self, path)


def inexact_linkage(
    release: object,
    public: object,
    keys: Sequence[str] | None = None,
    *,
    tolerance: Mapping[str, float] | None = None,
    eccentricity: float = 1.5,
    truth: Sequence[int] | npt.NDArray[np.integer[Any]] | str | None = None,
    covers: Mapping[str, Mapping[Any, Iterable[Any]]] | None = None,
    name: str | None = None,
    seed: int | np.random.Generator = 0,
    confidence: float = 0.99,
) -> InexactLinkage:
    """Look up people of whom something is known roughly in a release.

    Parameters
    ----------
    release, public, keys, truth, covers, name, seed, confidence
        As of `linkage`; but NULL in ``public`` is what is not known of a person, and NULL in
        ``release`` is like no value.
    tolerance : mapping of str to float, optional
        By column of numbers: the difference at which two values are alike to 1/e, above 0. By
        default the standard deviation of the column in the release.
    eccentricity : float
        By how many standard deviations of all scores the best row must lead the next to be claimed,
        at least 0.

    Returns
    -------
    InexactLinkage

    Raises
    ------
    ArgumentError
        For unknown columns, a tolerance of a column without numbers, or a truth that does not fit.

    Examples
    --------
    >>> import polars as pl
    >>> films = pl.DataFrame({"a": [5, 1, 3], "b": [4, 4, 1], "c": [None, 2, 2]})
    >>> known = pl.DataFrame({"a": [4, 1], "b": [4, 5], "c": [None, 2]})  # a rating off by one each
    >>> inexact_linkage(films, known, truth=[0, 1], keys=["a", "b", "c"]).guesses.tolist()
    [0, 1]
    """
    there, known = released(release, "release"), released(public, "public")
    by = columns_of("keys", keys, there, release)
    names("keys", by, known)
    level = check_confidence(confidence)
    least = check.number("eccentricity", eccentricity, least=0)
    reach = _tolerances(tolerance, by, there)
    meant = covers_of(covers, release)
    generator = SimulatedWorld.of(seed)
    real = rows_of_people(truth, release, there.height, known.height)
    guesses, leads = _best(there, known, by, reach, meant, generator)
    claims = leads >= least if there.height > 1 else np.ones(known.height, dtype=bool)
    verdict = right = None
    if real is not None:
        here = real >= 0
        right = int((guesses[claims] == real[claims]).sum())
        bare = _facts_right(there[real[here]], known[np.flatnonzero(here)], by)
        stranger = generator.integers(0, there.height, int(here.sum()))
        verdict = judge(
            game=f"whose row is whose, by {len(by)} columns roughly",
            release=name or named(release),
            attack="inexact linkage",
            bare="the same with every fact right",
            score=Score.of_guesses(guesses[here], real[here]),
            control=Score.of_guesses(_best(there, bare, by, reach, {}, generator)[0], real[here]),
            null=Score.of_guesses(guesses[here], stranger),
            prior=1.0 / there.height,
            confidence=level,
        )
    return InexactLinkage(
        tuple(by), known.height, there.height, guesses, leads, least, int(claims.sum()), right,
        verdict,
    )  # fmt: skip


def _facts_right(there: pl.DataFrame, known: pl.DataFrame, by: Sequence[str]) -> pl.DataFrame:
    """The people's own rows, less what is not known of them: every fact is right."""
    return pl.DataFrame(
        [
            pl.select(
                pl.when(known[n].is_not_null()).then(there[n]).otherwise(None).alias(n)
            ).to_series()
            for n in by
        ]
    )


def _tolerances(
    given: Mapping[str, float] | None, by: Sequence[str], there: pl.DataFrame
) -> dict[str, float]:
    """Of each column with numbers."""
    if given is not None and not isinstance(given, Mapping):
        raise ArgumentError('tolerance must be a mapping, such as {"rating": 1}')
    numeric = [n for n in by if there[n].dtype.is_numeric()]
    for n in given or {}:
        if n not in by:
            raise ArgumentError(f"tolerance has {n!r}, which is no key{nearest(str(n), by)}")
        if n not in numeric:
            raise ArgumentError(f"tolerance: the column {n!r} of the release holds no numbers")
    found = {}
    for n in numeric:
        values = there[n].cast(pl.Float64).fill_null(float("nan")).to_numpy()
        values = values[np.isfinite(values)]
        found[n] = float(values.std()) if len(values) else 0.0
    return found | {
        n: check.number(f"tolerance[{n!r}]", value, above=0) for n, value in (given or {}).items()
    }


@dataclass(frozen=True, slots=True)
class _Column:
    """How like each value that is known is to each row: weights included; NULL is like none."""

    rows: Ints
    people: Ints
    likeness: npt.NDArray[np.float32]
    """Of shape (known values, labels)."""
    known: npt.NDArray[np.bool_]
    """Of each person, whether anything is known."""


def _column(
    there: pl.Series, known: pl.Series, reach: float, covers: Mapping[Any, Iterable[Any]] | None
) -> _Column:
    (row_codes, labels), (person_codes, values) = sorted_codes(there), sorted_codes(known)
    alike = coverage(labels, values, covers).T.astype(np.float64)
    if reach > 0:
        x, y = _numbers(values)[:, None], _numbers(labels)[None, :]
        with np.errstate(over="ignore", invalid="ignore"):
            near = np.exp(-np.abs(x - y) / reach)
        alike = np.maximum(alike, np.nan_to_num(near, nan=0.0))
    nothing = np.array([_missing(v) for v in labels], dtype=bool)
    alike[:, nothing] = 0.0
    share = alike @ (np.bincount(row_codes, minlength=len(labels)) / len(row_codes))
    # What no row is like, and what all are like, says nothing of which row it is.
    informs = (share > 0) & (share < 1)
    weight = np.where(informs, -np.log(np.where(informs, share, 1.0)), 0.0)
    unknown = np.array([_missing(v) for v in values], dtype=bool)
    return _Column(
        row_codes,
        person_codes,
        (alike * weight[:, None]).astype(np.float32),
        ~unknown[person_codes],
    )


def _missing(value: Any) -> bool:
    return value is None or (isinstance(value, float) and np.isnan(value))


def _numbers(values: Sequence[Any]) -> Floats:
    """Values as numbers; NaN where they are none."""
    kinds = (int, float)
    return np.array(
        [float(v) if isinstance(v, kinds) and not isinstance(v, bool) else np.nan for v in values],
        dtype=np.float64,
    )


def _best(
    there: pl.DataFrame,
    known: pl.DataFrame,
    by: Sequence[str],
    reach: Mapping[str, float],
    covers: Covers,
    generator: np.random.Generator,
) -> tuple[Ints, Floats]:
    """Of each person the best row, one at random where several are, and by how much it leads."""
    columns = [_column(there[n], known[n], reach.get(n, 0.0), covers.get(n)) for n in by]
    rows, people = there.height, known.height
    guesses, leads = np.zeros(people, dtype=np.int64), np.zeros(people)
    step = max(1, _CELLS // rows)
    for low in range(0, people, step):
        some = np.arange(low, min(low + step, people))
        scores = np.zeros((len(some), rows), dtype=np.float32)
        for column in columns:
            place = np.flatnonzero(column.known[some])
            if len(place):
                alike = column.likeness[column.people[some[place]]]
                scores[place] += alike[:, column.rows]
        best = scores.max(axis=1)
        ties = scores == best[:, None]
        drawn = np.argmax(np.where(ties, generator.random(scores.shape, dtype=np.float32), -1), 1)
        guesses[some] = drawn
        scores[np.arange(len(some)), drawn] = -np.inf
        second = scores.max(axis=1) if rows > 1 else best
        scores[np.arange(len(some)), drawn] = best
        spread = scores.std(axis=1, dtype=np.float64)
        leads[some] = np.where(spread > 0, (best - second) / np.where(spread > 0, spread, 1), 0.0)
    return guesses, leads
