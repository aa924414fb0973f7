"""What holds for doctests, too: their noise is repeatable, and some files need a library.

Files of a library that is not installed cannot be imported, so they are not collected.
"""

from importlib.util import find_spec

from repeatable import pytest_fixture_setup, pytest_runtest_protocol

__all__ = ["collect_ignore_glob", "pytest_fixture_setup", "pytest_runtest_protocol"]

collect_ignore_glob = [] if find_spec("torch") else ["src/dither/learn/deep/*"]
