"""Callables of others that end the program: no door of the lab lets them."""

import os
import sys

import numpy as np
import pytest

from dither import privacy
from dither.errors import ArgumentError
from dither.lab import attack
from dither.lab._calls import answered, attempted
from dither.lab.attack import releases

ROWS = np.random.default_rng(1).normal(size=(20, 2))


class Model:
    """A classifier that exits while it is fitted, or when it is asked."""

    def __init__(self, fits):
        self.fits = fits

    def get_params(self):
        """None."""
        return {}

    def set_params(self):
        """None."""

    def fit(self, features, labels):
        """Fit, or exit."""
        if not self.fits:
            sys.exit(0)

    def predict_proba(self, features):
        """Exit."""
        sys.exit(0)


def exits(*arguments):
    """Leave with success."""
    sys.exit(0)


DOORS = {
    "statistic": lambda: attack.membership(exits, ROWS, plays=100),
    "statistic of many": lambda: attack.membership(lambda rows, size: exits(), ROWS, plays=100),
    "undefended": lambda: attack.membership(
        lambda rows: rows.sum(), ROWS, plays=100, undefended=exits
    ),
    "fit": lambda: attack.membership(Model(False), (ROWS, np.arange(20) % 2), models=4),
    "predict_proba": lambda: attack.membership(Model(True), (ROWS, np.arange(20) % 2), models=4),
    "session": lambda: attack.differencing(exits, "age > 1", "age > 2"),
    "release": lambda: attack.subset_sums(8, 8, releases.private(exits, privacy.pure(1.0))).run(),
}


@pytest.mark.parametrize("door", DOORS)
def test_an_exit_is_refused(door):
    """The data do not choose by it how the program ends."""
    with pytest.raises(ArgumentError, match="SystemExit, which would end the program"):
        DOORS[door]()


def test_exceptions_are_passed_on():
    """The caller sees them as they are; an interrupt interrupts."""

    def fails():
        raise KeyError("x")

    def interrupts():
        raise KeyboardInterrupt

    with pytest.raises(KeyError):
        answered("it", fails)
    for call in (attempted, lambda call: answered("it", call)):
        with pytest.raises(KeyboardInterrupt):
            call(interrupts)


def test_a_child_process_may_end():
    """What a callable forks leaves as it means to, and does not go on in its parent's place."""

    def forks():
        child = os.fork()
        if not child:
            sys.exit(7)
        return os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])

    home = os.getpid()
    try:
        found, error = attempted(forks)
    except SystemExit as leaving:
        assert os.getpid() != home
        os._exit(leaving.code)
    finally:
        if os.getpid() != home:
            os._exit(1)
    assert (found, error) == (7, None)
