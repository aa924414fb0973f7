"""Places sent by devices: planar Laplace noise on a grid, its remap, and what repetition tells.

Noise. `planar_laplace` gives the `local.GridPrivacy` of a grid: noise whose chances fall as
exp(-epsilon·distance) in the plane, drawn exactly from integer weights on the grid, and held
against exp(epsilon·d) in exact arithmetic. Andrés, Bordenabe, Chatzikokolakis and Palamidessi
("Geo-indistinguishability", CCS 2013) draw it with real coordinates and round; what floats leave
out there is a correction of epsilon.

Remap. A report y is moved to the cell z of least expected distance from the sender, by a public
prior pi: argmin_z Σ_x pi(x)·Pr[y | x]·d(x, z). It follows from the report alone, so it costs
nothing, and no other function of the report has less expected distance under that prior
(Chatzikokolakis, ElSalamouny and Palamidessi, "Efficient utility improvement for location privacy",
PETS 2017).

Repetition. k reports of one place, with noise of their own, are together k·epsilon for each unit of
distance: that sum is what an account adds up, and there is no law of averages on the side of the
sender. `repeated_places` plays the attack: of all cells the one of greatest posterior.
"""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from typing import Any

import numpy as np

from dither import _checks as check
from dither._checks import Number
from dither._format import Printable, count_text, number_text, percent, wrapped
from dither._stats import clopper_pearson
from dither.errors import ArgumentError
from dither.local import GridPrivacy
from dither.places._paths import Floats, Integers, PlaceGrid, checked_grid

__all__ = ["RemappedReports", "RepeatedPlaces", "planar_laplace", "remap", "repeated_places"]


def planar_laplace(grid: PlaceGrid, epsilon: Number) -> GridPrivacy:
    """Noise for a place that is sent: near places look alike, far ones less so.

    Parameters
    ----------
    grid : PlaceGrid
        Of 2 rows and columns at least; at most 4,096 cells. Its codes are the channel's values:
        ``channel.privatize(grid.nearest(x, y))``.
    epsilon : number
        For each unit of distance: ln(4) for 200 metres is 0.00693 a metre. It is read exactly.

    Returns
    -------
    local.GridPrivacy

    Raises
    ------
    ArgumentError
        The grid is too small or too large, or epsilon is out of range.

    Notes
    -----
    *Guarantee.* Geo-indistinguishability for one report: between two cells whose middles are d
    units apart its law changes by a factor of at most exp(epsilon·d). Places far apart are told
    from each other, and k reports of one place cost k·epsilon (`repeated_places`).

    Examples
    --------
    >>> from dither import places
    >>> channel = places.planar_laplace(places.PlaceGrid(4, 4, cell="0.5", unit="km"), epsilon=2)
    >>> print(channel.guarantee)
    epsilon = 2 for each km between two values; 4.243 over all of them
    """
    found = checked_grid(grid)
    return GridPrivacy(found.rows, found.columns, found.cell, epsilon, unit=found.unit)


class RemappedReports(Printable):
    """Where each report is moved to, and what that does to its distance from the sender.

    Attributes
    ----------
    table : array of int, shape (cells,)
        The cell that a report of each cell is moved to.
    before, after : float
        Expected distance from the sender under the prior, without the remap and with it.
    """

    def __init__(self, table: Integers, before: float, after: float, unit: str) -> None:
        self.table, self.before, self.after, self.unit = table, before, after, unit

    def apply(self, reports: Any) -> Integers:
        """Reports moved; it follows from them alone, so that the guarantee stays.

        Raises
        ------
        ArgumentError
            A report is no cell of the grid.
        """
        try:
            codes = np.asarray(reports)
        except (TypeError, ValueError):
            codes = np.asarray(None)
        if codes.dtype.kind not in "iu" or (
            codes.size and not (codes.min() >= 0 and codes.max() < self.table.size)
        ):
            raise ArgumentError("reports must be codes of the grid's cells")
        return np.asarray(self.table[codes])

    def summary(self) -> str:
        """One line: the expected distance, before and after."""
        text = f"expected distance {self.before:.4g} {self.unit} without the remap, "
        return f"{text}{self.after:.4g} {self.unit} with it"


def remap(channel: GridPrivacy, prior: Any) -> RemappedReports:
    """The best reading of each report under a public prior.

    Parameters
    ----------
    channel : local.GridPrivacy
    prior : array of float, shape (cells,)
        Where people are, as far as is public: a census, or counts that left with noise. It need
        not add up to 1. A wrong one harms accuracy, never privacy.

    Returns
    -------
    RemappedReports

    Raises
    ------
    ArgumentError
        The prior is not one number of at least 0 for each cell, some above 0.

    Examples
    --------
    >>> from dither import places
    >>> channel = places.planar_laplace(places.PlaceGrid(2, 8, cell=1, unit="km"), epsilon="0.5")
    >>> print(places.remap(channel, [5, 1, 0, 0, 0, 0, 1, 5] * 2))
    expected distance 1.524 km without the remap, 1.377 km with it
    """
    known, away = _prior(channel, prior), _distances(channel)
    law = _checked(channel).matrix
    # Expected distances of every report y and every cell z that it may be moved to.
    joint = known[:, None] * law
    expected = joint.T @ away
    table = expected.argmin(axis=1)
    after = float(expected[np.arange(table.size), table].sum())
    return RemappedReports(table, float((joint * away).sum()), after, channel.unit)


@dataclass(frozen=True)
class RepeatedPlaces(Printable):
    """What k reports of one place tell who sees all of them.

    Parameters
    ----------
    reports : int
        k.
    epsilon : Fraction
        What they cost together, for each unit of distance.
    unit : str
    found : float
        How often the likeliest cell is the right one, over people who follow the prior.
    lower, upper : float
        The interval of ``found`` at 95 %, of the simulation.
    distance : float
        The mean distance of the likeliest cell from the right one.
    by_prior : float
        How often the likeliest cell of the prior, without a report, is the right one.
    runs : int
    """

    reports: int
    epsilon: Fraction
    unit: str
    found: float
    lower: float
    upper: float
    distance: float
    by_prior: float
    runs: int

    def summary(self) -> str:
        """A few lines for people."""
        found = percent(Fraction(self.found))
        return "\n".join(
            wrapped(
                f"{count_text(self.reports, 'report')} of one place: epsilon = "
                f"{number_text(self.epsilon)} for each {self.unit} in all; its cell is found in "
                f"{found} of {self.runs:,} attacks "
                f"({percent(Fraction(self.by_prior))} by the prior alone), "
                f"{self.distance:.3g} {self.unit} off in the mean"
            )
        )


def repeated_places(
    channel: GridPrivacy,
    reports: int,
    *,
    rng: np.random.Generator,
    prior: Any = None,
    runs: int = 2000,
) -> RepeatedPlaces:
    """Attack a home that was reported again and again.

    Parameters
    ----------
    channel : local.GridPrivacy
    reports : int
        k, how often the same place is sent, each time with noise of its own.
    rng : numpy.random.Generator
        For the simulation.
    prior : array of float, shape (cells,), optional
        Where people live; everywhere alike where left out.
    runs : int
        People attacked.

    Returns
    -------
    RepeatedPlaces

    Raises
    ------
    ArgumentError
        An argument is out of range.

    Notes
    -----
    The attacker knows the channel and the prior and guesses the cell of greatest posterior, which
    no other guess beats. Against it nothing helps but not to send the place again: a report that is
    remembered and sent once more costs nothing (`local.Memory`).

    Examples
    --------
    >>> import numpy as np
    >>> from dither import places
    >>> channel = places.planar_laplace(places.PlaceGrid(8, 8, cell=1, unit="km"), epsilon=1)
    >>> rng = np.random.default_rng(1)
    >>> once, month = (places.repeated_places(channel, k, rng=rng) for k in (1, 30))
    >>> once.found < 0.4, month.found > 0.9, month.epsilon
    (True, True, Fraction(30, 1))
    """
    k, n = check.whole("reports", reports, 1, 10**6), check.whole("runs", runs, 1, 10**6)
    check.generator("rng", rng)
    size = len(_checked(channel).domain)
    known = np.full(size, 1 / size) if prior is None else _prior(channel, prior)
    law, away = channel.matrix, _distances(channel)
    homes = rng.choice(size, size=n, p=known)
    with np.errstate(divide="ignore"):
        rows, belief = np.log(law), np.log(known)
    hits, distance = 0, 0.0
    for home in np.unique(homes):
        counts = rng.multinomial(k, law[home] / law[home].sum(), size=int((homes == home).sum()))
        # A report that a cell cannot make counts for nothing where nobody made it.
        score = counts @ np.where(np.isfinite(rows), rows, -1e300).T + belief
        guesses = score.argmax(axis=1)
        hits += int((guesses == home).sum())
        distance += float(away[home, guesses].sum())
    lower, upper = clopper_pearson(hits, n, 0.95)
    epsilon = k * channel.epsilon_per_unit
    prior_hit = float(known.max())
    return RepeatedPlaces(
        k, epsilon, channel.unit, hits / n, lower, upper, distance / n, prior_hit, n
    )


def _checked(channel: Any) -> GridPrivacy:
    if not isinstance(channel, GridPrivacy):
        raise ArgumentError("channel must be what planar_laplace(grid, epsilon) gives")
    return channel


def _distances(channel: GridPrivacy) -> Floats:
    return PlaceGrid(channel.rows, channel.columns, channel.cell).distances()


def _prior(channel: GridPrivacy, prior: Any) -> Floats:
    size = len(_checked(channel).domain)
    try:
        known = np.asarray(prior, dtype=np.float64)
    except (OverflowError, TypeError, ValueError):
        raise ArgumentError("prior must be numbers") from None
    if known.shape != (size,) or not (np.isfinite(known).all() and known.min() >= 0):
        raise ArgumentError(f"prior must be {size} numbers of at least 0, one for each cell")
    total = float(known.sum())
    if not 0 < total < float("inf"):
        raise ArgumentError("prior must hold a number above 0")
    return np.asarray(known / total)
