"""Sessions for the tests of this package."""

from __future__ import annotations

import pytest

import dither as dt
from query.query_data import policy, regions, rows_policy, visits


@pytest.fixture
def frames():
    """The tables in memory."""
    return {"visits": visits(), "regions": regions()}


@pytest.fixture
def session(tmp_path, frames):
    """A session whose units are patients."""
    with dt.open(policy(tmp_path), sources=frames) as opened:
        yield opened


@pytest.fixture
def people(tmp_path, frames):
    """A session in which every row is a person."""
    with dt.open(rows_policy(tmp_path), sources=frames) as opened:
        yield opened
