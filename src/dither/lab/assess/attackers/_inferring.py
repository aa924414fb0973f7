"""Inference: who knows all but one column of somebody learns that one from the release.

The *nearest record* on what is known says what it has. A *model* is trained on the release. In
*homogeneous* classes all released rows that are like the person in what is known have one answer;
in *similar* ones all have answers that mean the same: of one group of a hierarchy, or numbers close
together. *Differencing* takes what changed from one version of a release to the next in the class
of the person, where all that changed has one answer.

Much of every answer is learned of anybody: that is what data are for. What counts is how much more
often the answers of people who were in the table are right.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
import polars as pl

from dither.lab._cells import kind_of, under_one_another
from dither.lab._frames import texts
from dither.lab._grouping import Ints, grouped
from dither.lab._nearest import nearest_place
from dither.lab.assess._world import Floats, Mask, SeenColumn, World
from dither.lab.assess.attackers._found import Found
from dither.lab.compare._trees import boosted

__all__ = ["Groups", "can_be_secret", "differencing_versions", "inferring"]

Groups = Mapping[str, Mapping[Any, Any]]

CLOSE = 0.05
"""How far apart numbers lie that are as good as equal, as a share of their range."""
_CLASSES = 24
"""Answers that a model is taught, at most."""
_TAUGHT = 4_000
"""Rows that a model is taught of, at most."""
_ROUNDS = 10


def can_be_secret(column: SeenColumn) -> bool:
    """Whether there is an answer to be right about: no label, and not the same for everybody."""
    return column.kind != "label" and bool((column.codes != column.codes[0]).any())


def inferring(world: World, secret: str, groups: Groups, rng: np.random.Generator) -> list[Found]:
    """What each attacker says of one column; nothing where it is not in the table or known."""
    wanted = next((c for c in world.columns if c.name == secret), None)
    known = tuple(c for c in world.columns if c.name != secret)
    if wanted is None or not can_be_secret(wanted) or not known:
        return []
    people, rows = world.persons, world.rows
    place, _ = nearest_place(world.distances(known), people, rows)
    found = [Found("nearest", secret, hits=_right(wanted, people, rows[place]))]
    if wanted.size <= _CLASSES:
        found.append(Found("model", secret, hits=_taught(world, known, wanted, rng)))
    of, classes = _classes(known, people, rows)
    answer, one = _only(wanted.codes[rows], of[rows], classes)
    hits = one[of[people]] & (answer[of[people]] == wanted.codes[people])
    found.append(Found("homogeneity", secret, hits=hits))
    alike = _similar(world, wanted, of, classes, groups.get(secret))
    if alike is not None:
        found.append(Found("similarity", secret, hits=alike))
    return found


def differencing_versions(world: World, before: World, secret: str) -> list[Found]:
    """What changed between two versions in the class of each person, where it has one answer."""
    now, then = ({c.name: c for c in w.columns} for w in (world, before))
    wanted = now.get(secret)
    names = [n for n in now if n in then and n != secret]
    if wanted is None or secret not in then or not can_be_secret(wanted) or not names:
        return []
    shared = [*names, secret]
    both = World(world.people.select(shared), _under(world, before, shared), world.covers)
    columns = {c.name: c for c in both.columns}
    if secret not in columns or not can_be_secret(columns[secret]):
        return []
    known = tuple(c for n, c in columns.items() if n != secret)
    if not known:
        return []
    answers = columns[secret].codes
    of, classes = _classes(known, both.persons, both.rows)
    width = int(answers.max()) + 1
    later, earlier = both.rows[: world.table.height], both.rows[world.table.height :]
    keys, change = np.unique(
        np.concatenate([of[rows] * width + answers[rows] for rows in (later, earlier)]),
        return_inverse=True,
    )
    sign = np.repeat([1, -1], [len(later), len(earlier)])
    moved = np.bincount(change, weights=sign, minlength=len(keys)) != 0
    kinds = np.bincount(keys[moved] // width, minlength=classes)
    said = np.full(classes, -1)
    said[keys[moved] // width] = keys[moved] % width
    mine = of[both.persons]
    hits = (kinds[mine] == 1) & (said[mine] == answers[both.persons])
    return [Found("differencing", secret, hits=hits)]


def _under(world: World, before: World, names: list[str]) -> pl.DataFrame:
    """Both versions, the later one first, in one kind of column."""
    found = []
    for n in names:
        parts = [world.table[n], before.table[n]]
        kinds = {kind_of(part.dtype) for part in parts}
        if len(kinds) > 1 or parts[0].dtype.is_nested() or parts[0].dtype == pl.Object:
            parts = [texts(part) for part in parts]
        elif kinds == {"text"}:
            parts = [part.cast(pl.String) for part in parts]
        found.append(under_one_another(parts).alias(n))
    return pl.DataFrame(found)


def _right(wanted: SeenColumn, people: Ints, guess: Ints) -> Mask:
    """Whether the guessed row has the person's answer; of numbers, one close to it."""
    same = wanted.codes[people] == wanted.codes[guess]
    if wanted.kind == "number" and wanted.places is not None:
        with np.errstate(invalid="ignore"):
            near = np.abs(wanted.places[people] - wanted.places[guess]) <= CLOSE
        return np.asarray(same | near)
    return np.asarray(same)


def _taught(
    world: World, known: tuple[SeenColumn, ...], wanted: SeenColumn, rng: np.random.Generator
) -> Mask:
    """Whether a model of boosted trees, taught on the release, has the person's answer."""
    rows = rng.permutation(world.rows)[:_TAUGHT]
    sizes = [c.size for c in known]
    model = boosted(
        [c.cells[rows] for c in known], sizes, wanted.cells[rows], wanted.size, rounds=_ROUNDS
    )
    guess = model.scores([c.cells[world.persons] for c in known]).argmax(axis=1)
    return np.asarray(guess == wanted.cells[world.persons])


def _classes(known: tuple[SeenColumn, ...], people: Ints, rows: Ints) -> tuple[Ints, int]:
    """The class of every row, people's and the table's: alike in all that is known."""
    of = grouped(c.cells for c in known)
    return of, int(of.max()) + 1


def _only(answers: Ints, of: Ints, classes: int) -> tuple[Ints, Mask]:
    """Of each class an answer of the table, and whether it is the only one."""
    low = np.full(classes, np.iinfo(np.int64).max)
    high = np.full(classes, -1)
    np.minimum.at(low, of, answers)
    np.maximum.at(high, of, answers)
    return high, (low == high)


def _similar(
    world: World, wanted: SeenColumn, of: Ints, classes: int, groups: Mapping[Any, Any] | None
) -> Mask | None:
    """Whether the class tells the group of the person's answer; None where there are no groups."""
    people, rows = world.persons, world.rows
    if groups is not None:
        group = _group_codes(world, wanted, groups)
        answer, one = _only(group[rows], of[rows], classes)
        return np.asarray(one[of[people]] & (answer[of[people]] == group[people]))
    if wanted.kind != "number" or wanted.places is None:
        return None
    places: Floats = np.where(np.isnan(wanted.places), np.inf, wanted.places)
    low, high = np.full(classes, np.inf), np.full(classes, -np.inf)
    np.minimum.at(low, of[rows], places[rows])
    np.maximum.at(high, of[rows], places[rows])
    mine = of[people]
    with np.errstate(invalid="ignore"):
        close = np.asarray((high - low <= CLOSE)[mine])
        within = np.abs(places[people] - (low[mine] + high[mine]) / 2.0) <= CLOSE
    return np.asarray(close & within)


def _group_codes(world: World, wanted: SeenColumn, groups: Mapping[Any, Any]) -> Ints:
    """The group of each answer; one that is not named is a group of its own."""
    values: dict[int, Any] = {}
    column = [*world.people[wanted.name].to_list(), *world.table[wanted.name].to_list()]
    for code, value in zip(wanted.codes.tolist(), column, strict=True):
        values.setdefault(code, value)
    places: dict[Any, int] = {}
    table = np.zeros(max(values) + 1, dtype=np.int64)
    for code, value in values.items():
        try:
            named = ("of", groups[value]) if value in groups else ("itself", code)
        except TypeError:
            named = ("itself", code)
        table[code] = places.setdefault(named, len(places))
    return np.asarray(table[wanted.codes])
