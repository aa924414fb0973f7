"""Estimates, intervals and tests that count both sources of error: who was sampled, and the noise.

``inference.mean(x, bounds=(0, 9), epsilon=1).interval(0.95)`` is an interval for the mean of the
people that the rows were sampled from, not of the rows. Each function has three layers, and each
number comes from one simulator.

1. *Release* touches the data, once: exact statistics of known sensitivity leave with the exact
   noise of `dither.mechanisms`, and cost the `dither.privacy.Loss` that the result carries.
2. *Model* simulates the whole mechanism, sampling, clamping and noise, from a parameter.
3. *Infer* finds the parameter whose expectation was released, and how far it may be off.

Standard errors, intervals at any confidence and p-values then are post-processing and cost nothing.
"""

from dither.inference._ball import BallRelease
from dither.inference._covariance import CovarianceEstimate as CovarianceEstimate
from dither.inference._covariance import CovarianceRelease, covariance
from dither.inference._mean import MeanRelease, mean
from dither.inference._means import BoxRelease, means
from dither.inference._printed import truncated_mean_as_printed
from dither.inference._proportion import CanonicalNoise, proportion
from dither.inference._result import PrivateEstimate as PrivateEstimate
from dither.inference._result import PrivateResult as PrivateResult
from dither.inference._result import PrivateTest as PrivateTest
from dither.inference._sparse import SparseEstimate as SparseEstimate
from dither.inference._sparse import SparseRelease, sparse_mean

__all__ = ["covariance", "mean", "means", "proportion", "sparse_mean", "truncated_mean_as_printed"]

AUDITED = (
    BallRelease,
    BoxRelease,
    CanonicalNoise,
    CovarianceRelease,
    MeanRelease,
    SparseRelease,
)
"""What touches data here, each with the neighbours that an audit calls it on."""
