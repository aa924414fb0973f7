"""Docstrings of tests are whole when they are read: shared parts are in, none is missing."""

from __future__ import annotations

import inspect
import re

import pytest

from dither import inference
from dither.inference.engine._documented import documented
from dither.inference.planning._designs import ALL

TESTS = sorted({*ALL, "identity_test", "test_of_tests"})


@pytest.mark.parametrize("name", TESTS)
def test_every_test_says_all_of_it(name: str) -> None:
    """Its parameters by name, what it raises, what it promises, and an example."""
    function = getattr(inference, name)
    told = inspect.getdoc(function) or ""
    for section in (
        "Parameters\n---",
        "Returns\n---",
        "Raises\n---",
        "Examples\n---",
        "*Guarantee.*",
    ):
        assert section in told
    for parameter in inspect.signature(function).parameters:
        assert re.search(rf"^[*\w, ]*\b{parameter}\b[\w, ]* : ", told, flags=re.M), parameter


def test_no_part_is_left_out() -> None:
    """A line in braces is a part, and one that there is."""
    for name in inference.__all__:
        assert not re.search(r"^\s*\{\w+\}$", inspect.getdoc(getattr(inference, name)) or "", re.M)

    def wrong() -> None:
        """Say nothing.

        {nothing}
        """

    with pytest.raises(KeyError):
        documented(wrong)
