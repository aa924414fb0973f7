"""Mechanisms that end the program, or whose outputs do, end no audit."""

import sys

import numpy as np
import pytest

from dither.errors import ArgumentError
from dither.lab.audit import Outcome, audit


class Ending(BaseException):
    """What would end the program, and is neither an exit nor an interrupt."""


ENDS = [
    SystemExit(0),
    SystemExit(None),
    GeneratorExit(),
    Ending(),
    BaseExceptionGroup("", [Ending()]),
]


@pytest.mark.parametrize("end", ENDS, ids=lambda e: type(e).__name__)
def test_ending_the_program_is_an_outcome(end):
    """An exit on one dataset is seen as what it is; on both, nothing was audited."""
    rng = np.random.default_rng(31)

    def ends_on_ann(data):
        if data:
            raise end
        return rng.random()

    found = audit(ends_on_ann, 0, 1, 1, samples=500)
    assert found.verdict is Outcome.VIOLATED
    assert type(end).__name__ in found.summary()

    def always(data):
        raise end

    idle = audit(always, 0, 1, 1, samples=500)
    assert idle.verdict is Outcome.INCONCLUSIVE
    assert "every call failed" in idle.summary()


def test_the_code_of_an_exit_is_seen():
    """What a mechanism leaves with is looked at as an output is."""
    rng = np.random.default_rng(32)
    found = audit(lambda d: sys.exit(int(rng.random() < 0.9) ^ d), 0, 1, 1, samples=600)
    assert found.verdict is Outcome.VIOLATED


def ending_late(_):
    """A generator that exits after it gave something."""
    yield 1
    sys.exit(0)


class EndingText:
    """An output whose every method exits."""

    def __repr__(self):
        sys.exit(0)

    __hash__ = __eq__ = to_dict = to_list = __repr__


class EndingError(Exception):
    """An exception whose text exits."""

    def __str__(self):
        sys.exit(0)


def raise_ending(_):
    """Fail by it."""
    raise EndingError


@pytest.mark.parametrize(
    "mechanism",
    [
        ending_late,
        raise_ending,
        lambda d: EndingText(),
        lambda d: {EndingText.to_dict: [EndingText()]},
    ],
)
def test_outputs_that_end_the_program_are_borne(mechanism):
    """Reading an output exits: nothing leaves the audit."""
    assert audit(mechanism, 0, 1, 1, samples=400).verdict is Outcome.INCONCLUSIVE


@pytest.mark.parametrize(
    "sampler",
    [
        lambda data, size: sys.exit(0),
        lambda data, size: (sys.exit(0) if i else 1 for i in range(size)),
        lambda data, size: [1 / 0 for _ in range(size)],
        lambda data, size: (1 / i for i in range(size)),
    ],
)
def test_samplers_that_end_are_refused(sampler):
    """A sampler of many outputs that fails or exits has no outcomes: an error says so."""
    with pytest.raises(ArgumentError, match="failed as a vectorised sampler"):
        audit(sampler, 0, 1, 1, samples=500)
