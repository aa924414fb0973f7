"""Libraries of extras: what a plain install goes without, loaded when it is asked for.

An extra is named for what it is for, as in ``pip install 'dither[plots]'``. Whoever asks for
something that needs one which is not there is told which, before anything is spent.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import wraps
from importlib import import_module
from importlib.util import find_spec
from typing import Any

from dither.errors import MissingLibraryError

__all__ = ["check_library", "extra_library", "missing", "refused_without"]

SHOWN = {
    "flwr": "Flower",
    "matplotlib": "Matplotlib",
    "ortools": "OR-tools",
    "scipy": "SciPy",
    "sklearn": "scikit-learn",
}
"""How libraries are called that are not called as they are imported."""


def missing(module: str, extra: str, need: str) -> MissingLibraryError:
    """The error that names a library and the extra that brings it.

    Parameters
    ----------
    module : str
        As it is imported; the part before the first point is the library.
    extra : str
        As in ``dither[extra]``.
    need : str
        What needs it, with its verb: ``"pictures need"``.

    Examples
    --------
    >>> print(missing("matplotlib.figure", "plots", "pictures need"))
    pictures need Matplotlib, which is not installed: pip install 'dither[plots]'
    """
    name = module.partition(".")[0]
    return MissingLibraryError(
        f"{need} {SHOWN.get(name, name)}, which is not installed: pip install 'dither[{extra}]'",
        name=name,
    )


def extra_library(module: str, extra: str, need: str) -> Any:
    """A module of a library of an extra.

    Parameters
    ----------
    module, extra, need : str
        As for `missing`.

    Raises
    ------
    MissingLibraryError
        Where it is not installed. What fails inside of an installed one is raised as it is.
    """
    try:
        return import_module(module)
    except ImportError as error:
        if (error.name or "").partition(".")[0] != module.partition(".")[0]:
            raise
        raise missing(module, extra, need) from None


def check_library(module: str, extra: str, need: str) -> None:
    """Raise as `extra_library` does, and load nothing: for what is needed after a charge.

    Raises
    ------
    MissingLibraryError
        Where it is not installed.
    """
    name = module.partition(".")[0]
    try:
        found = find_spec(name) is not None
    except ValueError:  # something stands under its name that was not imported
        found = True
    if not found:
        raise missing(module, extra, need)


def refused_without(
    module: str, extra: str, functions: Mapping[str, Callable[..., Any]]
) -> dict[str, Callable[..., Any]]:
    """The functions of a room by name; where a library is not installed, ones that say so.

    Parameters
    ----------
    module, extra : str
        As for `missing`.
    functions : mapping of str to callable
    """
    try:
        check_library(module, extra, "")
    except MissingLibraryError:
        return {name: _refusing(given, module, extra) for name, given in functions.items()}
    return dict(functions)


def _refusing(function: Callable[..., Any], module: str, extra: str) -> Callable[..., Any]:
    @wraps(function)
    def refusing(*_: Any, **__: Any) -> Any:
        raise missing(module, extra, f"{function.__name__} needs")

    return refusing
