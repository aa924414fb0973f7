"""Can the control be one? Its people must be like those of the table, and not be in it.

*Alike.* A model learns to tell rows of the table from rows of the control on one half of each, and
guesses the other half. If it is right more often than luck, people differ before anything is
released, and no difference of hits can be blamed on the release. It sees how many decimals numbers
have, too, as files are rounded differently when they are written.

*Fresh.* Some people equal others in all columns. Of those of the control as many should have an
equal in the table as of those of the table have another. If more have one, the control holds people
of the table, and hides what is given away of them.

Both are Fisher's exact test; each is made at half of `LEVEL`.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import polars as pl

from dither.lab._grouping import Ints, grouped
from dither.lab.assess._judged import Tally, chance_of_lot
from dither.lab.assess._people import AttackedPeople, Given
from dither.lab.assess._world import World
from dither.lab.compare._trees import boosted

__all__ = ["LEVEL", "ControlCheck", "checked", "rows_of"]

LEVEL = 0.002
"""The chance that a control is called unfit that was drawn by lot: small, as nothing is said of a
release, not even of a copy, whose control is."""
_LEARNED = 4_000
_ROUNDS = 20
_DECIMALS = 6
"""Of a number, at most."""


@dataclass(frozen=True, slots=True)
class ControlCheck:
    """Whether the control is fit.

    Attributes
    ----------
    told : Tally
        Rows that a model took for rows of the table: of the table's, and of the control's.
    told_chance : float
        Of so many by luck.
    copies : Tally
        People of the control, and of the table, who have an equal in the table besides themselves.
    copies_chance : float
    """

    told: Tally
    told_chance: float
    copies: Tally
    copies_chance: float

    @property
    def alike(self) -> bool:
        """Whether nothing shows that people differ."""
        return self.told_chance > LEVEL / 2.0

    @property
    def fresh(self) -> bool:
        """Whether nothing shows that people of the table are in the control."""
        return self.copies_chance > LEVEL / 2.0


def checked(given: Given, people: AttackedPeople, rng: np.random.Generator) -> ControlCheck | None:
    """The check; None where there are too few people to divide."""
    if people.people < 4 or not (~people.member).any():
        return None
    told = _told_apart(given, rng)
    copies = _copies(given, people)
    return ControlCheck(
        told,
        chance_of_lot(told.hits, told.control_hits, told.people),
        copies,
        chance_of_lot(copies.hits, copies.control_hits, copies.people),
    )


def _one_each(owners: Ints, rng: np.random.Generator) -> Ints:
    """A row of each person."""
    mixed = rng.permutation(len(owners))
    return np.asarray(mixed[np.unique(owners[mixed], return_index=True)[1]])


def _told_apart(given: Given, rng: np.random.Generator) -> Tally:
    ours, theirs = _one_each(given.owners, rng), _one_each(given.control_owners, rng)
    many = min(len(ours), len(theirs), 2 * _LEARNED) // 2 * 2
    ours, theirs = rng.permutation(ours)[:many], rng.permutation(theirs)[:many]
    world = World(given.original[ours], given.control[theirs])
    digits = _decimals(given.original[ours], given.control[theirs])
    cells = [*(c.cells for c in world.columns), *digits]
    sizes = [*(c.size for c in world.columns), *(_DECIMALS + 1 for _ in digits)]
    half = many // 2
    if not cells or not half:
        return Tally(0, 0, max(1, half))
    table = np.arange(2 * many) < many
    learn = np.arange(2 * many) % 2 == 0
    model = boosted(
        [c[learn] for c in cells], sizes, table[learn].astype(np.int64), 2, rounds=_ROUNDS
    )
    scores = model.scores([c[~learn] for c in cells])[:, 1]
    guess, truth = scores > np.median(scores), table[~learn]
    return Tally(int(guess[truth].sum()), int(guess[~truth].sum()), int(truth.sum()))


def _decimals(ours: pl.DataFrame, theirs: pl.DataFrame) -> list[Ints]:
    """Of each column of floats, how many decimals each number has, where not all have as many.

    Where one of both was rounded when it was written, equal values of the other are not equal.
    """
    found = []
    for name, dtype in ours.schema.items():
        if not dtype.is_float() or not theirs.schema[name].is_numeric():
            continue
        both = [t[name].cast(pl.Float64).to_numpy() for t in (ours, theirs)]
        values = np.nan_to_num(np.concatenate(both), nan=0.0, posinf=0.0, neginf=0.0)
        many = np.full(len(values), _DECIMALS)
        for k in reversed(range(_DECIMALS)):
            with np.errstate(over="ignore", invalid="ignore"):
                many[np.abs(values - np.round(values, k)) <= 1e-6 * np.abs(values)] = k
        if (many != many[0]).any():
            found.append(many)
    return found


def _copies(given: Given, people: AttackedPeople) -> Tally:
    """Of the control, and of the table, those with an equal among other people of the table."""
    frame = people.frame[people.first]
    world = World(frame, given.original)
    if not world.columns:
        return Tally(0, 0, max(1, len(frame) // 2))
    of = grouped(c.codes for c in world.columns)
    mine, theirs = of[: frame.height], of[frame.height :]
    pairs = np.unique(np.column_stack([theirs, given.owners]), axis=0)
    others = np.bincount(pairs[:, 0], minlength=int(of.max()) + 1)[mine]
    others = others - people.member
    return Tally(
        int((others[~people.member] > 0).sum()),
        int((others[people.member] > 0).sum()),
        int(people.member.sum()),
    )


def rows_of(frame: pl.DataFrame, most: int, rng: np.random.Generator) -> pl.DataFrame:
    """A frame, or so many rows of it by lot."""
    return frame if frame.height <= most else frame[rng.permutation(frame.height)[:most]]
