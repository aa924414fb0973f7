"""Singling out: is there a row of the release that is this person's, and no other's?

Of a person all is known that the release has columns for. *Exact linkage* claims the person where
exactly one row fits; the others score by how much the best row stands out: *weighted* linkage, in
which rare values say most, *inexact* linkage, which also takes numbers that are nearly right, the
*nearest record* by Gower's distance, and the same against how near other people lie, so that
somebody in a crowd is not accused for it.
"""

from __future__ import annotations

import numpy as np

from dither.lab._nearest import nearest_rows
from dither.lab.assess._world import Floats, Mask, SeenColumn, World
from dither.lab.assess.attackers._found import Found
from dither.lab.attack.disclosure._inexact import inexact_linkage
from dither.lab.attack.disclosure._linkage import linkage

__all__ = ["NEAR", "best_rows", "fitting", "singling"]

NEAR = 0.02
"""By how much of its range a number may be off and be alike to 1/e, in inexact linkage."""
_TINY = 1e-3
"""What a distance of 0 counts as: nothing rests on it."""


def fitting(
    world: World, columns: tuple[SeenColumn, ...], rng: np.random.Generator
) -> tuple[Floats, np.ndarray[tuple[int, ...], np.dtype[np.int64]]]:
    """Of each person, how many rows of the table fit, and one of them; -1 where none does."""
    sides = world.for_linkage(columns)
    if sides is None:
        nobody = np.zeros(world.people.height)
        return nobody, np.full(world.people.height, -1)
    table, people = sides
    found = linkage(table, people, table.columns, covers=_meant(world, columns), seed=rng)
    return found.candidates.astype(np.float64), found.guesses


def best_rows(
    world: World, columns: tuple[SeenColumn, ...], roughly: bool, rng: np.random.Generator
) -> tuple[np.ndarray[tuple[int, ...], np.dtype[np.int64]], Floats]:
    """Of each person the row that is most like, and by how much it leads the next."""
    table, people = world.for_inexact(columns, roughly)
    near = {n: NEAR for n in table.columns if table[n].dtype.is_numeric()}
    found = inexact_linkage(
        table,
        people,
        table.columns,
        tolerance=near or None,
        covers=_meant(world, columns),
        seed=rng,
    )
    return found.guesses, found.leads


def _meant(world: World, columns: tuple[SeenColumn, ...]) -> dict[str, dict[object, list[object]]]:
    """What labels stand for, of the columns that have some."""
    given = world.covers if isinstance(world.covers, dict) else {}
    return {c.name: given[c.name] for c in columns if c.kind == "label" and c.name in given}


def nearness(world: World) -> tuple[Floats, Floats]:
    """Of each person the distance to the nearest row of the table, and to another person."""
    near = nearest_rows(world.distances(world.columns), world.persons, world.rows)
    if world.people.height < 2:
        return near, np.ones(len(near))
    others = nearest_rows(
        world.distances(world.columns, people=True), world.persons, world.persons, but_itself=True
    )
    return near, others


def singling(world: World, rng: np.random.Generator) -> list[Found]:
    """What each attacker says."""
    candidates, _ = fitting(world, world.columns, rng)
    alone: Mask = candidates == 1
    _, weighted = best_rows(world, world.columns, False, rng)
    _, inexact = best_rows(world, world.columns, True, rng)
    near, others = nearness(world)
    return [
        Found("exact", hits=alone),
        Found("weighted", scores=weighted),
        Found("inexact", scores=inexact),
        Found("nearest", scores=-near),
        Found("crowd", scores=np.log(others + _TINY) - np.log(near + _TINY)),
    ]
