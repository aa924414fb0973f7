"""Tests that means are alike, or are what they are said to be, from draws of what they may be.

Each reading of means gives draws of how far each estimate may be off, `_free_means` or
`_normal_mean`; a test compares with them how far estimates are from what the null says.

* One number, of a mean less ``popmean`` or of a difference: its place among the draws.
* Several means: with e_g the errors and w_g = 1/spread(e_g)², the same for data and draws,

      Q = Σ w_g·(m_g - m)²,    m = Σ w_g·m_g/Σ w_g

  of the estimates among those of the errors, as Welch's statistic of several means. A spread is
  half of what lies between the 16 % and 84 % points: of few rows errors have tails without end.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from dither.inference.engine._errors import SimulatedErrors, as_alternative, monte_carlo
from dither.inference.engine._group_sums import GroupSumsRelease
from dither.inference.engine._inputs import Bounds, Floats, Target
from dither.inference.engine._result import MEASURED, PrivateTest, share_of_noise, too_few_rows
from dither.inference.estimates._difference import DifferenceRelease
from dither.inference.estimates._free_means import FreeMeans
from dither.inference.estimates._mean import Shape, normal_notes, of_clamped, of_normal
from dither.privacy import Loss

__all__ = ["equal_means", "errors_of_groups", "on_rows", "several", "test_of_errors"]

_SPREAD = (0.15866, 0.84134)


def test_of_errors(
    title: str,
    null: str,
    loss: Loss,
    errors: SimulatedErrors,
    expected: float,
    alternative: str,
    assumptions: Sequence[str],
    notes: Sequence[str],
    rows: float,
) -> PrivateTest:
    """A test of one number, from the errors of its estimate.

    Parameters
    ----------
    errors : SimulatedErrors
        Of one number.
    expected : float
        What the null says it is.
    alternative : {"two-sided", "less", "greater"}
    rows : float
        n, as far as it is known.
    """
    draws = errors.draws[:, 0]
    scale = max(_spread_of(draws[:, None])[0], 1e-300)
    found = (float(errors.estimate[0]) - expected) / scale
    pvalue = monte_carlo(found, draws / scale, as_alternative(alternative))
    return _result(
        title, null, loss, found, pvalue, draws / scale, errors, assumptions, notes, rows
    )


def equal_means(
    title: str,
    loss: Loss,
    errors: SimulatedErrors,
    assumptions: Sequence[str],
    notes: Sequence[str],
    rows: float,
) -> PrivateTest:
    """Welch's test that several means are one, from the errors of their estimates."""
    statistic, drawn = several(errors.estimate, errors.draws)
    scale = max(float(np.median(drawn)), 1e-300)
    found, drawn = float(statistic) / scale, drawn / scale
    null, pvalue = "all groups have one mean", monte_carlo(found, drawn)
    return _result(title, null, loss, found, pvalue, drawn, errors, assumptions, notes, rows)


def several(estimates: Floats, errors: Floats) -> tuple[Floats, Floats]:
    """Q of estimates and of draws of their errors, of one release or of a batch.

    Parameters
    ----------
    estimates : array of float, shape (..., k)
    errors : array of float, shape (..., B, k)

    Examples
    --------
    >>> draws = np.random.default_rng(1).normal(0, 1, (5000, 3))
    >>> found, drawn = several(np.array([0.0, 3.0, -3.0]), draws)
    >>> bool(16 < found < 20), bool(abs(drawn.mean() - 2) < 0.1)
    (True, True)
    """
    weights = 1.0 / np.maximum(_spread_of(errors), 1e-300) ** 2
    shares = weights / weights.sum(axis=-1, keepdims=True)

    def statistic(means: Floats, weights: Floats, shares: Floats) -> Floats:
        off = means - (means * shares).sum(axis=-1, keepdims=True)
        return np.asarray((off**2 * weights).sum(axis=-1))

    drawn = statistic(errors, weights[..., None, :], shares[..., None, :])
    return statistic(estimates, weights, shares), drawn


def errors_of_groups(
    groups: Sequence[Floats],
    bounds: Bounds,
    asked: Target,
    shape: Shape,
    pooled: bool,
    rng: np.random.Generator,
    draws: int,
) -> tuple[SimulatedErrors, Loss, str, tuple[str, ...], float]:
    """Release what the means of groups are told from; who is in which group is private.

    Returns
    -------
    SimulatedErrors
        Of each mean.
    Loss
    str
        What is assumed of values.
    tuple of str
        Notes.
    float
        n in all, as far as it is known.
    """
    if shape == "normal":
        release = DifferenceRelease(bounds, asked, asked.replace, len(groups))
        models, loss = release.models(groups)
        parts = [model.errors(rng, draws) for model in models]
        errors = SimulatedErrors(
            np.concatenate([part.estimate for part in parts]),
            np.concatenate([part.draws for part in parts], axis=1),
            np.concatenate([part.sampling for part in parts], axis=1),
        )
        read = dict.fromkeys(of_normal(model) for model in models)
        n = float(sum(model.n for model in models))
        return errors, loss, "; ".join(read), normal_notes(models), n
    design = GroupSumsRelease(bounds, asked, len(groups), moves=asked.replace)
    released = design.release(groups)
    sums = design.moments(released.values, None)
    free = FreeMeans(sums, design.drawn, pooled)
    read_free = of_clamped(bounds, "means are those")
    if pooled:
        read_free += ", of one variance in all groups"
    n = float(sum(map(len, groups)) if asked.replace else free.n.sum())
    return free.errors(rng, draws, bounds, within=False), released.loss, read_free, (), n


def on_rows(asked: Target) -> str:
    """What is known of the number of rows."""
    return "n is public" if asked.replace else MEASURED


def _spread_of(draws: Floats) -> Floats:
    low, high = np.quantile(draws, _SPREAD, axis=-2)
    return np.asarray((high - low) / 2.0)


def _result(
    title: str,
    null: str,
    loss: Loss,
    statistic: float,
    pvalue: float,
    simulated: Floats,
    errors: SimulatedErrors,
    assumptions: Sequence[str],
    notes: Sequence[str],
    rows: float,
) -> PrivateTest:
    whole, alone = (
        float(np.sqrt(np.sum(_spread_of(d) ** 2))) for d in (errors.draws, errors.sampling)
    )
    noise = float(np.sqrt(max(whole**2 - alone**2, 0.0))) if np.isfinite(alone) else whole
    noisy: tuple[str, ...] = ()
    if not noise <= alone:
        # Noise falls as 1/n, chance as 1/√n.
        least = max(alone, 1e-3 * whole)
        noisy = (too_few_rows("noise exceeds what chance gives", rows * (noise / least) ** 2),)
    return PrivateTest(
        title,
        loss,
        tuple(assumptions),
        (*notes, *(note for note in noisy if not notes)),
        null,
        statistic,
        pvalue,
        simulated,
        noise_share=share_of_noise(noise, alone if np.isfinite(alone) else 0.0),
    )
