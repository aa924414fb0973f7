"""What holds for doctests, too: one thread, files in memory, repeatable noise, what is run."""

import os

# Before numpy is imported, and for every program that a test starts. Matrices here are small: two
# processes whose threads wait for one another on the same cores take ten times as long. And the
# last digits of a sum no longer hang on how many cores there are.
os.environ.setdefault("OMP_NUM_THREADS", "1")

from repeatable import pytest_fixture_setup, pytest_runtest_protocol
from scratch import write_in_memory
from selected import (
    pytest_addoption,
    pytest_collection_modifyitems,
    pytest_configure,
    pytest_ignore_collect,
    pytest_runtest_call,
    pytest_runtest_logreport,
    pytest_sessionfinish,
    pytest_terminal_summary,
    pytest_testnodedown,
)

# Also for whatever asked for a temporary file before.
write_in_memory()

__all__ = [
    "pytest_addoption",
    "pytest_collection_modifyitems",
    "pytest_configure",
    "pytest_fixture_setup",
    "pytest_ignore_collect",
    "pytest_runtest_call",
    "pytest_runtest_logreport",
    "pytest_runtest_protocol",
    "pytest_sessionfinish",
    "pytest_terminal_summary",
    "pytest_testnodedown",
]
