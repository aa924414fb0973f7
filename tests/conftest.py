"""What holds for every test, and the fixtures that every folder may ask for."""

import gc
import os
import signal
from collections.abc import Generator

import pytest
from hypothesis import HealthCheck, settings

from postgres_server import postgres, postgres_server

__all__ = ["postgres", "postgres_server"]

# What a shell starts in the background ignores Ctrl-C, and tests of Ctrl-C would wait for ever.
if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
    signal.signal(signal.SIGINT, signal.default_int_handler)

# No test measures time: a busy machine must not fail one. The examples are the same in each run,
# but where DITHER_EXAMPLES is set.
settings.register_profile(
    "untimed",
    deadline=None,
    derandomize="DITHER_EXAMPLES" not in os.environ,
    database=None,
    suppress_health_check=[HealthCheck.too_slow],
)
settings.load_profile("untimed")


@pytest.hookimpl(trylast=True)
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Tests on Spark first, side by side, then those of the house.

    Where several processes share the tests, each begins with a part of this list, and others take
    from its end: so the first one runs all of these. One Java is started instead of one each, and
    one process parses all files.
    """
    items.sort(
        key=lambda item: (
            item.get_closest_marker("spark") is None,
            not item.nodeid.startswith("tests/house/"),
        )
    )


@pytest.hookimpl(wrapper=True)
def pytest_collection() -> Generator[None, object, object]:
    """Nothing that is made while tests are collected is garbage, and all of it stays.

    It is a million objects, which would be searched again and again, then and while tests run.
    """
    gc.disable()
    try:
        return (yield)
    finally:
        gc.freeze()
        gc.enable()
