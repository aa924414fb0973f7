"""Each engine in turn."""

import pytest

from conformance.engines import ENGINES, Tried


@pytest.fixture(
    scope="session", params=[pytest.param(name, marks=e.marks) for name, e in ENGINES.items()]
)
def engine(request: pytest.FixtureRequest):
    """An engine whose rows can be exchanged; where it is missing, the test is skipped."""
    for bench in ENGINES[request.param].opened(request):
        yield Tried(request.param, bench)
