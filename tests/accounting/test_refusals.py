"""What accounting refuses, provoked through the public doors: each names the argument."""

import numpy as np
import pytest

from dither import privacy
from dither.errors import ArgumentError


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: privacy.gaussian(np.bool_(True)), "noise_multiplier must be"),
        (lambda: np.bool_(True) * privacy.pure(1.0), "repetitions must be"),
        (lambda: 10**400 * privacy.pure(1.0), "repetitions must be at most"),
        (lambda: privacy.gaussian(1.0).group(10**400), "size must be at most"),
        (lambda: privacy.randomized_response(1.0, 10**400), "k must be at most"),
        (lambda: privacy.gaussian(1e-300), "noise_multiplier must be"),
        (lambda: privacy.gaussian(1e300), "noise_multiplier must be"),
        (lambda: privacy.zcdp(1e300), "rho must be"),
        (lambda: privacy.renyi({2.0: 0.1}).renyi(3.0), "order 3 is known"),
    ],
)
def test_odd_numbers_are_refused(make, message):
    """Truth values of numpy, integers beyond doubles, scales whose squares overflow, no order."""
    with pytest.raises(ArgumentError, match=message):
        make()
