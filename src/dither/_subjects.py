"""What an audit calls, declared by each mechanism and channel itself.

A class that makes noise has a class method ``audit_subjects`` that gives, for each way to use it, a
small instance, two neighbours that use the whole claim or nearly, and the claim. ``dither audit
--all`` reads them from the rooms, so that a new mechanism is audited where it is written.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from fractions import Fraction
from types import ModuleType
from typing import Any

__all__ = ["Subject", "declared", "declaring"]


@dataclass(frozen=True, slots=True)
class Subject:
    """What is audited: a mechanism, two neighbours, the claim, and a word on what it is.

    Parameters
    ----------
    name : str
    mechanism : callable
        Of a dataset, or of a dataset and a ``size`` that asks for so many outputs at once.
    d0, d1 : any
        Neighbours.
    epsilon, delta : number
        Claimed.
    about : str
    """

    name: str
    mechanism: Callable[..., Any]
    d0: Any
    d1: Any
    epsilon: Fraction | int = 1
    delta: Fraction = Fraction(0)
    about: str = ""


def declaring(room: ModuleType) -> Iterator[type[Any]]:
    """The classes of a room that declare what to audit of them, by name.

    They are in its list, or in ``AUDITED`` where people call functions that use them.
    """
    # A dictionary, as a class may have two names.
    found = dict.fromkeys(getattr(room, name) for name in sorted(room.__all__))
    found |= dict.fromkeys(getattr(room, "AUDITED", ()))
    for made in found:
        if hasattr(made, "audit_subjects") and not inspect.isabstract(made):
            yield made


def declared(*rooms: ModuleType) -> Iterator[Subject]:
    """All that the classes of some rooms declare; each is made when its turn comes."""
    for room in rooms:
        for made in declaring(room):
            yield from made.audit_subjects()
