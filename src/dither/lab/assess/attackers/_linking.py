"""Linkability: who knows one half of somebody's columns, and elsewhere the other, joins the two.

Each half is looked up in the release by itself. The two are joined where they lead to the same row.
What columns say of one another is learned of anybody; a row that leads from one half of a person to
the other half of the same person says that their record is in it.
"""

from __future__ import annotations

import numpy as np

from dither.lab._nearest import nearest_place
from dither.lab.assess._world import SeenColumn, World
from dither.lab.assess.attackers._found import Found
from dither.lab.assess.attackers._singling import best_rows, fitting

__all__ = ["halves", "linking"]

Half = tuple[SeenColumn, ...]


def halves(world: World, known: tuple[str, ...]) -> tuple[Half, Half]:
    """The columns that one source has, and those of the other: by turns where nobody says."""
    if known:
        here = tuple(c for c in world.columns if c.name in known)
        return here, tuple(c for c in world.columns if c.name not in known)
    # By turns in the order of how many cells they have, so that both say about as much.
    order = sorted(world.columns, key=lambda c: (-len(np.unique(c.codes)), c.name))
    return tuple(order[::2]), tuple(order[1::2])


def linking(world: World, known: tuple[str, ...], rng: np.random.Generator) -> list[Found]:
    """What each attacker says; nothing where a half has no column."""
    one, other = halves(world, known)
    if not one or not other:
        return []
    (many, here), (few, there) = (fitting(world, half, rng) for half in (one, other))
    found = [Found("exact", hits=(many == 1) & (few == 1) & (here == there))]
    for name, roughly in (("weighted", False), ("inexact", True)):
        (first, _), (second, _) = (best_rows(world, half, roughly, rng) for half in (one, other))
        found.append(Found(name, hits=first == second))
    first, _ = nearest_place(world.distances(one), world.persons, world.rows)
    second, _ = nearest_place(world.distances(other), world.persons, world.rows)
    found.append(Found("nearest", hits=first == second))
    return found
