"""Closed forms of the continuous mechanisms on [-1, 1], the limits of those on finer lattices.

s = e^{epsilon/2}, C = (s + 1)/(s - 1), e = e^epsilon. Variances are of one report given the value.
"""

from __future__ import annotations

import math

import numpy as np
import numpy.typing as npt

Array = npt.NDArray[np.float64]


def pm_density(epsilon: float) -> float:
    """p = (e - s)/(2s + 2): PM's density within the window; p/e outside."""
    s = math.exp(epsilon / 2)
    return s * math.expm1(epsilon / 2) / (2 * s + 2)


def pm_variance(x: Array | float, epsilon: float) -> Array:
    """x²/(s - 1) + (s + 3)/(3(s - 1)²): PM, equation (5) of SDLDP."""
    s, less = math.exp(epsilon / 2), math.expm1(epsilon / 2)
    return np.asarray(np.square(x) / less + (s + 3) / (3 * less**2))


def sdpm_truth(epsilon: float, low: float, high: float) -> float:
    """p' = 1 - 1/s + (high - low)·p/e: how often a low value is reported as it is."""
    return -math.expm1(-epsilon / 2) + (high - low) * pm_density(epsilon) * math.exp(-epsilon)


def sdpm_low_variance(x: Array | float, epsilon: float, c: float) -> Array:
    """SDPM's variance of a low x of the low range [-c, c], theorem 4 put right.

    p'(1 - p')x² + (s + 2 + 1/s)/(3(s - 1)²) - (s - 1)c³/(3s(s + 1)). The expectation is p'x.
    """
    truth = sdpm_truth(epsilon, -c, c)
    return np.asarray(truth * (1 - truth) * np.square(x) + sdpm_low_variance_printed(epsilon, c))


def sdpm_low_variance_printed(epsilon: float, c: float) -> float:
    """Equation (15) of SDLDP as printed: it lacks the term in x, and is right for x = 0 alone."""
    s, less = math.exp(epsilon / 2), math.expm1(epsilon / 2)
    return (s + 2 + 1 / s) / (3 * less**2) - less * c**3 / (3 * s * (s + 1))


def midpoint_error(mean: float, low: float = -1.0, high: float = 1.0) -> float:
    """The squared error of answering the middle of the interval and asking nobody.

    The baseline that any estimate of a mean must beat to have learned something.
    """
    return (mean - (low + high) / 2) ** 2


def paper_tolerance(epsilon: float) -> float:
    """The stop rule of SDLDP's algorithm 1, read per report: a gain below e^epsilon/1000.

    For PM at small epsilon no first round gains so much: the estimate is then the uniform
    distribution, whose mean is the middle of the interval whatever the data.
    """
    return 1e-3 * math.exp(epsilon)
