"""What an attacker says of all people."""

from __future__ import annotations

from dataclasses import dataclass, field

from dither.lab.assess._world import Floats, Mask

__all__ = ["Found"]


@dataclass(frozen=True, slots=True, eq=False)
class Found:
    """What one attacker says.

    Attributes
    ----------
    attacker : str
        One of the names of `dither.lab.assess._words`.
    secret : str
        The column that was guessed; empty where none was.
    hits : array of bool or None
        Of each row of people, or of each person where ``whole``, whether it was hit.
    scores : array of float64 or None
        In place of hits: the larger, the more like somebody who was in the table.
    whole : bool
        Whether there is one for each person, not for each row.
    """

    attacker: str
    secret: str = ""
    hits: Mask | None = field(default=None, repr=False)
    scores: Floats | None = field(default=None, repr=False)
    whole: bool = False
