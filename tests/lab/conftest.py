"""What tests of attacks and of audits share."""

from __future__ import annotations

import signal
from collections.abc import Iterator

import pytest


@pytest.fixture
def hears_interrupts() -> Iterator[None]:
    """Ctrl-C is heard here and in children, which what starts the tests may have switched off."""
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    yield
    signal.signal(signal.SIGINT, before)
