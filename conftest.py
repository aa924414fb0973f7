"""What holds for doctests, too: matrices on one thread, noise that is repeatable, libraries.

Files of a library that is not installed cannot be imported, so they are not collected.
"""

import os
from importlib.util import find_spec

# Before numpy is imported, and for every program that a test starts. Matrices here are small: two
# processes whose threads wait for one another on the same cores take ten times as long. And the
# last digits of a sum no longer hang on how many cores there are.
os.environ.setdefault("OMP_NUM_THREADS", "1")

from repeatable import pytest_fixture_setup, pytest_runtest_protocol

__all__ = ["collect_ignore_glob", "pytest_fixture_setup", "pytest_runtest_protocol"]

collect_ignore_glob = [] if find_spec("torch") else ["src/dither/learn/deep/*"]
