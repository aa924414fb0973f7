"""One service for the quick tests of a process: a running one is dear."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

pytest.importorskip("starlette")
pytest.importorskip("uvicorn")
pytest.importorskip("httpx")

from tests.service.served import Served, serving, write


@pytest.fixture(scope="session")
def served(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Served]:
    with serving(write(tmp_path_factory.mktemp("served"))) as found:
        yield found
