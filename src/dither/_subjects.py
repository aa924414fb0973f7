"""What an audit calls, declared by each mechanism and channel itself.

A class that makes noise has a class method ``audit_subjects`` that gives, for each way to use it, a
small instance, two neighbours that use the whole claim or nearly, and the claim. ``dither audit
--all`` reads them from the packages, so that a new mechanism is audited where it is written.
"""

from __future__ import annotations

import importlib
import inspect
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from fractions import Fraction
from functools import partial
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


def declaring(package: ModuleType) -> Iterator[type[Any]]:
    """The classes of a package that declare what to audit of them, by name.

    They are in its list, or in ``AUDITED`` where people call what uses them. A text there names one
    by its module, ``"dither.package._file:Class"``, that is imported now: a library that it needs
    may not be installed, and then it is left out, as is a name of the list.
    """
    # A dictionary, as a class may have two names.
    asked = [partial(getattr, package, name) for name in sorted(package.__all__)]
    asked += [partial(_named, one) for one in getattr(package, "AUDITED", ())]
    found = dict.fromkeys(made for one in asked if (made := _installed(one)) is not None)
    for made in found:
        if hasattr(made, "audit_subjects") and not inspect.isabstract(made):
            yield made


def _named(one: Any) -> Any:
    if not isinstance(one, str):
        return one
    module, _, name = one.partition(":")
    return getattr(importlib.import_module(module), name)


def _installed(make: Callable[[], Any]) -> Any:
    """What is made, or None where that needs a library which is not installed."""
    try:
        return make()
    except ImportError as error:
        if error.name is None or error.name.partition(".")[0] == "dither":
            raise
        return None


def declared(*packages: ModuleType) -> Iterator[Subject]:
    """All that the classes of some packages declare; each is made when its turn comes."""
    for package in packages:
        for made in declaring(package):
            yield from made.audit_subjects()
