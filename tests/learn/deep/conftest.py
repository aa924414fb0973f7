"""What tests of deep models share: one thread, and a seam that takes the noise away."""

from __future__ import annotations

from collections.abc import Iterator
from fractions import Fraction

import numpy as np
import pytest

Draws = list[tuple[Fraction, int]]


@pytest.fixture(autouse=True)
def _one_thread() -> Iterator[None]:
    torch = pytest.importorskip("torch", reason="torch is not installed")
    threads = torch.get_num_threads()
    torch.set_num_threads(1)
    torch.manual_seed(0)
    yield
    torch.set_num_threads(threads)


@pytest.fixture
def draws(monkeypatch: pytest.MonkeyPatch) -> Draws:
    """No noise at all; the list gets sigma2 and how many numbers of each draw there would be."""
    from dither.learn.deep.noise import _noise

    found: Draws = []

    def draw(sigma2: Fraction, size: int, words: object = None) -> np.ndarray:
        found.append((sigma2, size))
        return np.zeros(size, np.int64)

    monkeypatch.setattr(_noise, "draw", draw)
    return found
