"""The noise of a step: drawn once, from the keystream of a cipher, whatever the batches are.

What is drawn is always the exact discrete Gaussian law on the integers (`dither.noise`), of a
parameter sigma2 that is a rational number.

Exactly, on sums of integers in units of clip/UNIT (`_sums`): sigma2 = z²·L + 96 for a noise
multiplier z, L = UNIT² being the squared length of what an example adds. *Proof that a step is at
most a Gaussian mechanism of noise multiplier z.* The sum of integer vectors changes by a vector of
squared length at most L. Noise of parameter z²·L + 96 on each coordinate is continuous Gaussian
noise of variance z²·L, rounded at random by a rule that commutes with shifts by integers, but for a
distance in total variation below 1e-820 a coordinate (`dither.mechanisms._composable`): it is a
post-processing of the Gaussian mechanism with deviation z·√L at sensitivity √L. A sample of rows,
and the composition of steps, start from there. An adaptive clip adds one coordinate, its noisy
count, which moves by w: then L = UNIT² + w², and the same holds of all coordinates together.

In floats the same draws are multiplied by clip/UNIT, rounded to float32 and added to a sum of
floats. That the noise is Gaussian with deviation z times the clip is true to 24 bits; what is not
proved is that an example moves the sum of floats by no more than the clip (`_sums`).
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from fractions import Fraction

import numpy as np
import numpy.typing as npt
import torch

from dither._subjects import Subject
from dither.learn.deep.rows._clipping import Adaptive, Clip, Flat
from dither.learn.deep.rows._gradients import ByLayers
from dither.learn.deep.rows._sums import UNIT, ClippedSums
from dither.noise import discrete_gaussian
from dither.numeric import Words
from dither.privacy import gaussian

__all__ = ["SOFT", "GradientStep", "draw", "noisy", "noisy_count", "sigma2_of", "weight_of"]

SOFT = 96
"""What is added to sigma2, for the noise to be a post-processing of continuous noise."""


def draw(sigma2: Fraction, size: int, words: Words | None = None) -> npt.NDArray[np.int64]:
    """Draw exact discrete Gaussian noise; every number of noise of this room comes from here."""
    return discrete_gaussian(sigma2, size, words=words)


def weight_of(clip: Clip) -> int:
    """What an example within the clip adds to the adaptive clip's count, in units; else 0."""
    if not isinstance(clip, Adaptive):
        return 0
    # w² is then `part` of UNIT² + w², of which the noise is made.
    return max(1, math.floor(UNIT * math.sqrt(clip.part / (1 - clip.part))))


def sigma2_of(noise_multiplier: Fraction, clip: Clip) -> Fraction:
    """The parameter of the noise of each coordinate, in squared units."""
    return noise_multiplier**2 * (UNIT**2 + weight_of(clip) ** 2) + SOFT


def noisy(
    sums: ClippedSums, noise_multiplier: Fraction, words: Words | None = None
) -> tuple[torch.Tensor, float]:
    """The sums with the noise of one step, in the gradients' own scale.

    Parameters
    ----------
    sums : ClippedSums
    noise_multiplier : Fraction
        z: the deviation of the noise over the most that an example moves all that leaves.
    words : Words, optional
        Another source of randomness than this thread's secure words.

    Returns
    -------
    Tensor, shape (size,)
        Of float32.
    float
        Of an adaptive clip the noisy number of examples within it less that of those beyond;
        else 0.
    """
    weight = weight_of(sums.clip)
    drawn = draw(sigma2_of(noise_multiplier, sums.clip), sums.size + bool(weight), words)
    noise = torch.from_numpy(drawn[: sums.size]).to(sums.total.device)
    unit = sums.clip.norm / UNIT
    if sums.exact:
        # The sum of two integers; their rounding to doubles and floats comes after the noise.
        found = ((sums.total + noise) * unit).float()
    else:
        found = sums.total + (noise * unit).float()
    if not weight:
        return found, 0.0
    # Each row adds w or -w, so that one that comes or goes moves the count by w.
    count = weight * (2 * sums.within - sums.rows) + int(drawn[-1])
    return found, count / weight


def noisy_count(rows: int, noise_multiplier: Fraction, words: Words | None = None) -> int:
    """A number of rows with noise, at least 1: a Gaussian mechanism of this noise multiplier."""
    return max(1, rows + int(draw(noise_multiplier**2 + SOFT, 1, words)[0]))


class GradientStep:
    """The noisy sum of one step, for audits."""

    @classmethod
    def audit_subjects(cls) -> Iterator[Subject]:
        """What an audit calls: neighbours whose sums differ by a gradient as long as the clip."""
        multiplier = Fraction(2)
        delta = Fraction(gaussian(multiplier).delta(1).upper)

        def run(examples: int, size: int) -> npt.NDArray[np.float64]:
            model = torch.nn.Linear(1, 1, bias=False)
            engine = ByLayers(model, lambda found, wanted: 1000 * (found - wanted)[:, 0])
            sums = ClippedSums(engine, Flat(0.5), exact=True)
            sums.add(torch.ones(examples, 1), torch.zeros(examples, 1))
            return np.array([float(noisy(sums, multiplier)[0][0]) for _ in range(size)])

        yield Subject("step of private gradients", run, 1, 2, delta=delta)
