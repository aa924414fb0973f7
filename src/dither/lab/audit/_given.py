"""Scores that the caller gives: what to look at, where somebody knows what may be wrong."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import numpy.typing as npt

from dither._checks import number, whole
from dither.errors import ArgumentError
from dither.lab._calls import attempted
from dither.lab.audit._flattening import Raised
from dither.lab.audit._outcomes import Floats
from dither.lab.audit._sampling import Draws, Outputs
from dither.lab.audit._scores import EventScore

__all__ = ["given_score", "grid_score"]


def given_score(score: Callable[[Any], Any], draws: Draws, *, vectorised: bool) -> EventScore:
    """The caller's number of each outcome of both datasets.

    Raises
    ------
    ArgumentError
        It fails, or gives other than one number each; says nothing of an outcome.
    """
    # One dataset after the other: places in one array would tell which is which.
    both = [_numbers(score, outputs, vectorised) for outputs in (draws.here, draws.there)]
    return EventScore("the given score", "given", np.concatenate(both))


def _numbers(score: Callable[[Any], Any], outputs: Outputs, vectorised: bool) -> Floats:
    found, error = attempted(_asked, score, outputs, vectorised)
    if error is not None:
        raise ArgumentError(
            f"score failed on what mechanism returns ({type(error).__name__}); it takes "
            + ("all outputs of a call at once" if vectorised else "one output")
            + ", and returns one number each, NaN for none"
        ) from None
    if found.shape != (len(outputs),):
        raise ArgumentError(
            f"score must return one number for each output: {len(outputs):,} numbers, and its "
            f"shape was {found.shape}"
        )
    return found  # type: ignore[no-any-return]


def _asked(score: Callable[[Any], Any], outputs: Outputs, vectorised: bool) -> Floats:
    if vectorised:
        return np.array(score(outputs), dtype=np.float64)
    # A call that failed has no output, and an exception of the score's own is a mistake in it.
    return np.array(
        [np.nan if isinstance(one, Raised) else float(score(one)) for one in outputs],
        dtype=np.float64,
    )


def grid_score(centre: float, scale: float, bits: int = 24) -> Callable[[Any], Floats]:
    """How near the uniform behind a noisy number lies to its grid, as a `score` for `audit`.

    Laplace noise that is drawn in floating point is ``-sign(v)·scale·log(1 - 2|v|)``, for a v of so
    many bits. From an output that the noise was added to ``centre`` for, v can be computed back and
    lies on that grid; from one of a neighbour it lies anywhere. A cast to 32 bits or a rounding
    hides the low-order bits of the output, and not this, where it errs by less than the grid.

    Parameters
    ----------
    centre : float
        The answer on d0 or on d1, without noise.
    scale : float
        Of the noise, above 0.
    bits : int
        From 8 to 52: 24 for a uniform of single precision, 32 for one of an integer's bits.

    Returns
    -------
    callable
        Of one output, or of an array: from 0, on the grid or half way between, to 1/4. Grids with
        and without an offset by a half are the same to it.

    Raises
    ------
    ArgumentError
        An argument is out of range.

    References
    ----------
    Mironov, "On significance of the least significant bits for differential privacy", CCS 2012,
    section 4.

    Examples
    --------
    >>> score = grid_score(0.0, 1.0, bits=8)
    >>> noise = -np.log1p(-2 * 30 / 256)
    >>> bool(score(noise) < 1e-9), bool(score(noise + 0.001) > 0.05)
    (True, True)
    """
    centre = number("centre", centre)
    scale = number("scale", scale, above=0)
    bits = whole("bits", bits, least=8, most=52)

    def score(outputs: Any) -> npt.NDArray[np.float64]:
        with np.errstate(all="ignore"):
            off = np.abs(np.asarray(outputs, dtype=np.float64) - centre) / scale
            places = -np.expm1(-off) * 2.0**bits  # of 2v·2^bits, the half steps
            found = np.abs(places / 2 - np.round(places) / 2)
            return np.where(np.isfinite(off), found, np.nan)

    return score
