"""What holds for every test, and the fixtures that every folder may ask for."""

import os

import pytest
from hypothesis import HealthCheck, settings

from postgres_server import ABSENT, postgres, postgres_server

__all__ = ["postgres", "postgres_server"]

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

ENGINES = {"PostgreSQL": ABSENT, "Spark": "Spark is not installed"}
"""What tests say that are skipped because an engine is not on this machine."""


@pytest.hookimpl(trylast=True)
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Tests on Spark first, side by side.

    Where several processes share the tests, each begins with a part of this list, and others take
    from its end: so the first one runs all of these, and one Java is started instead of one each.
    """
    items.sort(key=lambda item: item.get_closest_marker("spark") is None)


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    """Say in the end which engines were not tested."""
    skipped = [str(report.longrepr) for report in terminalreporter.stats.get("skipped", ())]
    for engine, reason in ENGINES.items():
        if number := sum(reason in why for why in skipped):
            terminalreporter.write_line(
                f"{engine} was not tested: {number} tests skipped", bold=True
            )
