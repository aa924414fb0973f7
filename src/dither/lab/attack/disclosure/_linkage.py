"""Linkage: find people of a public table in a release, by the columns that both have.

The game: the secret is which row of the release is a person's, and a blind guess is right with
probability 1/rows. The attacker takes the rows that fit what is known of the person and guesses
one of them, so that m rows that fit are right with probability 1/m. k-anonymity keeps that below
1/k, for an attacker who knows the quasi-identifiers and nothing else; it says nothing of what the
rows that fit have in common (see `homogeneity`).

Controls: the same attack on the rows as they were before anything was made coarser, and on the
rows of strangers.

Source. Sweeney, "k-anonymity: a model for protecting privacy", 2002.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt
import polars as pl

from dither._checks import confidence as check_confidence
from dither._format import Printable, count_text
from dither.errors import ArgumentError
from dither.lab._frames import columns_of, names, released, sorted_codes
from dither.lab._grouping import Ints, grouped
from dither.lab._simulation import SimulatedWorld
from dither.lab._verdicts import paragraph, some_names
from dither.lab.attack._verdict import Score, Verdict, judge
from dither.lab.attack.disclosure._labels import Mask, coverage

if TYPE_CHECKING:
    from matplotlib.figure import Figure

__all__ = ["Linkage", "covers_of", "linkage", "named", "rows_of_people"]

_CELLS = 4_000_000


@dataclass(frozen=True, slots=True, eq=False)
class Linkage(Printable):
    """The result of `linkage`.

    Attributes
    ----------
    keys : tuple of str
    people, rows : int
        Of the public table, and of the release.
    candidates : array of int64
        Of each person: how many rows of the release fit.
    guesses : array of int64
        Of each person: the row that was guessed; -1 where none fits.
    alone : int
        People whom exactly one row fits: the attacker claims it.
    right : int or None
        Such claims that are right; None where the truth was not given.
    verdict : Verdict or None
        None where the truth was not given.
    """

    keys: tuple[str, ...]
    people: int
    rows: int
    candidates: Ints = field(repr=False)
    guesses: Ints = field(repr=False)
    alone: int
    right: int | None
    verdict: Verdict | None

    @property
    def found(self) -> int:
        """People whom at least one row fits."""
        return int((self.candidates > 0).sum())

    def summary(self) -> str:
        """What was found, and the verdict."""
        lines = [
            f"{count_text(self.people, 'person', 'people')} looked up in "
            f"{count_text(self.rows, 'row')} by {some_names(self.keys)}.",
            f"Some row fits {self.found:,}, exactly one row {self.alone:,}"
            + ("." if self.right is None else f"; it is the right one for {self.right:,}."),
        ]
        shown = paragraph(lines)
        return shown if self.verdict is None else f"{shown}\n{self.verdict.summary()}"

    def plot(self, path: str | Path | None = None) -> Figure:
        """Draw how many rows fit how many people, and the success beside its controls.

        Saved to ``path`` (.png, .svg or .pdf) where one is given.
        """
        from dither.plots.lab._attack_tables import draw_linkage

        return draw_linkage(self, path)


def linkage(
    release: object,
    public: object,
    keys: Sequence[str] | None = None,
    *,
    truth: Sequence[int] | npt.NDArray[np.integer[Any]] | str | None = None,
    covers: Mapping[str, Mapping[Any, Iterable[Any]]] | None = None,
    name: str | None = None,
    seed: int | np.random.Generator = 0,
    confidence: float = 0.99,
) -> Linkage:
    """Look up the people of a public table in a release.

    Parameters
    ----------
    release : frame, or a release of `dither.lab.anonymize`
        What was published. Labels such as ``[20, 30)``, ``20-29``, ``<30``, ``130**``, ``{a, b}``,
        ``{38 … 46: 9}``, ``1984-Q2`` and ``*`` are read.
    public : frame
        What the attacker knows, a row a person.
    keys : sequence of str
        Columns of both; by default the quasi-identifiers that the release names.
    truth : sequence of int, or "position", optional
        Of each person the row in the release, -1 where there is none; ``"position"`` where row i
        of both is one person. To score the attack, which never sees it. Known by itself where
        ``release`` is of `dither.lab.anonymize` and ``public`` is the table that it was made of.
    covers : mapping of str to mapping, optional
        By column: the values under each label whose text does not say them. By default those that
        the release says itself, as those of `dither.lab.anonymize` do.
    name : str, optional
        What the release is called in the verdict.
    seed : int or numpy.random.Generator
    confidence : float
        In (0, 1).

    Raises
    ------
    ArgumentError
        For unknown columns, a truth that does not fit, or a column whose labels fit no value.

    Examples
    --------
    >>> import polars as pl
    >>> voters = pl.DataFrame({"name": ["Ann", "Bob", "Cid"], "age": [31, 38, 44]})
    >>> wards = pl.DataFrame({"age": ["[30, 40)", "[30, 40)", "[40, 50)"]})
    >>> found = linkage(wards, voters, ["age"], truth="position")
    >>> found.candidates.tolist(), found.alone, found.right
    ([2, 2, 1], 1, 1)
    """
    there, known = released(release, "release"), released(public, "public")
    by = columns_of("keys", keys, there, release)
    names("keys", by, known)
    level = check_confidence(confidence)
    meant = covers_of(covers, release)
    generator = SimulatedWorld.of(seed)
    real = rows_of_people(truth, release, there.height, known.height)
    candidates, guesses = _looked_up(there, known, by, meant, generator)
    alone = candidates == 1
    verdict = right = None
    if real is not None:
        here = real >= 0
        right = int((guesses[alone] == real[alone]).sum())
        before = known[np.flatnonzero(here)]
        bare = _looked_up(before, before, by, {}, generator)[1]
        stranger = generator.integers(0, there.height, int(here.sum()))
        verdict = judge(
            game=f"whose row is whose, by {len(by)} columns",
            release=name or named(release),
            attack="linkage",
            score=Score.of_guesses(guesses[here], real[here]),
            control=Score.of_guesses(bare, np.arange(len(bare))),
            null=Score.of_guesses(guesses[here], stranger),
            prior=1.0 / there.height,
            predicted=_expected(candidates[here]),
            confidence=level,
        )
    return Linkage(
        tuple(by),
        known.height,
        there.height,
        candidates,
        guesses,
        int(alone.sum()),
        right,
        verdict,
    )


def covers_of(
    covers: Mapping[str, Mapping[Any, Iterable[Any]]] | None, release: object
) -> Mapping[str, Mapping[Any, Iterable[Any]]]:
    """What labels stand for, as given or as the release says itself, checked."""
    for label in (covers or {}).values():
        if not isinstance(label, Mapping) or not all(
            isinstance(under, Iterable) and not isinstance(under, str) for under in label.values()
        ):
            raise ArgumentError("covers must give, by column, a list of values for each label")
    return (getattr(release, "covers", None) if covers is None else covers) or {}


def named(release: object) -> str:
    """What a release is called where nobody names it."""
    k = getattr(release, "k", None)
    return f"rows of a {k}-anonymous release" if isinstance(k, int) else "the released rows"


def _expected(candidates: Ints) -> float:
    """The mean chance that a row drawn from those that fit is the right one, if it is there."""
    some = candidates > 0
    return float((1.0 / np.maximum(candidates, 1))[some].sum() / len(candidates))


def rows_of_people(given: Any, release: object, rows: int, people: int) -> Ints | None:
    """Of each person the row in the release, -1 where there is none; None where nobody knows."""
    if given is None:
        kept, left_out = getattr(release, "rows", None), getattr(release, "suppressed", None)
        if kept is None or left_out is None or len(kept) + left_out != people:
            return None
        found = np.full(people, -1, dtype=np.int64)
        found[np.asarray(kept)] = np.arange(rows)
        return found
    if isinstance(given, str):
        if given != "position" or rows != people:
            raise ArgumentError(
                'truth must be an array, or "position" where both tables have equally many rows'
            )
        return np.arange(people, dtype=np.int64)
    found = np.asarray(given)
    if found.shape != (people,) or found.dtype.kind not in "iu":
        raise ArgumentError("truth must be integers, one row of the release for each person")
    found = found.astype(np.int64)
    there = found[found >= 0]
    if not len(there) or int(there.max()) >= rows or len(np.unique(there)) < len(there):
        raise ArgumentError(
            f"truth must be rows of the release, from 0 to {rows - 1:,}, no row twice; -1 for none"
        )
    return found


def _looked_up(
    there: pl.DataFrame,
    known: pl.DataFrame,
    by: Sequence[str],
    covers: Mapping[str, Mapping[Any, Iterable[Any]]],
    generator: np.random.Generator,
) -> tuple[Ints, Ints]:
    """Of each person, how many rows fit, and one of them at random; -1 where none does."""
    sides: list[tuple[Ints, Ints, Mask]] = []
    for name in by:
        (row_codes, labels), (person_codes, values) = map(sorted_codes, (there[name], known[name]))
        fits = coverage(labels, values, covers.get(name))
        if not fits.any():
            raise ArgumentError(
                f"keys: no label of column {name!r} fits any value of the public table; say which "
                "values are under each label: covers=, or --covers on the command line"
            )
        sides.append((row_codes, person_codes, fits))
    if all(bool((fits.sum(axis=0) <= 1).all()) for *_, fits in sides):
        # Each value has one label at most, so people and rows meet by equal labels.
        return _by_label(sides, there.height, generator)
    return _by_cover(sides, generator)


def _by_label(
    sides: Sequence[tuple[Ints, Ints, Mask]], rows: int, generator: np.random.Generator
) -> tuple[Ints, Ints]:
    people, fitting, parts = len(sides[0][1]), np.ones(len(sides[0][1]), dtype=bool), []
    for row_codes, person_codes, fits in sides:
        label, some = fits.argmax(axis=0), np.asarray(fits.any(axis=0))
        fitting &= some[person_codes]
        parts.append(np.concatenate([row_codes, label[person_codes]]))
    of = grouped(parts)
    classes = int(of.max()) + 1
    sizes = np.bincount(of[:rows], minlength=classes)
    order = np.argsort(of[:rows], kind="stable")
    starts = np.cumsum(sizes) - sizes
    candidates = np.where(fitting, sizes[of[rows:]], 0)
    drawn = (generator.random(people) * np.maximum(candidates, 1)).astype(np.int64)
    place = np.minimum(starts[of[rows:]] + drawn, rows - 1)
    return candidates, np.where(candidates > 0, order[place], -1)


def _by_cover(
    sides: Sequence[tuple[Ints, Ints, Mask]], generator: np.random.Generator
) -> tuple[Ints, Ints]:
    rows_of, people_of = grouped(s[0] for s in sides), grouped(s[1] for s in sides)
    sizes = np.bincount(rows_of)
    order = np.argsort(rows_of, kind="stable")
    starts = np.cumsum(sizes) - sizes
    first_row = np.unique(rows_of, return_index=True)[1]
    candidates = np.zeros(len(people_of), dtype=np.int64)
    guesses = np.full(len(people_of), -1, dtype=np.int64)
    queue = np.argsort(people_of, kind="stable")
    kinds, firsts, counts = np.unique(people_of[queue], return_index=True, return_counts=True)
    step = max(1, _CELLS // len(sizes))
    for low in range(0, len(kinds), step):
        these = slice(low, low + step)
        someone = queue[firsts[these]]
        fit = np.ones((len(someone), len(sizes)), dtype=bool)
        for row_codes, person_codes, fits in sides:
            fit &= fits.T[np.ix_(person_codes[someone], row_codes[first_row])]
        within = np.cumsum(fit * sizes, axis=1)
        last = firsts[these][-1] + counts[these][-1]
        chunk = queue[firsts[these][0] : last]
        kind = np.repeat(np.arange(len(someone)), counts[these])
        total = within[kind, -1]
        drawn = (generator.random(len(chunk)) * np.maximum(total, 1)).astype(np.int64)
        drawn = np.minimum(drawn, np.maximum(total - 1, 0))
        chosen = np.array(
            [np.searchsorted(within[k], d, side="right") for k, d in zip(kind, drawn, strict=True)]
        )
        some = total > 0
        chosen = np.where(some, chosen, 0)
        before = within[kind, chosen] - (fit * sizes)[kind, chosen]
        candidates[chunk] = total
        guesses[chunk] = np.where(
            some, order[np.where(some, starts[chosen] + drawn - before, 0)], -1
        )
    return candidates, guesses
