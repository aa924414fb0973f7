"""Words that a test writes itself."""

import numpy as np
import pytest

from dither.numeric import SimulatedWords


class Scripted(SimulatedWords):
    """Serves the given words in order, and fails when asked for more."""

    def __init__(self, *script: int) -> None:
        super().__init__(0)
        self.script = list(script)

    def words(self, n):
        assert n <= len(self.script), "more words were drawn than the script holds"
        served, self.script = self.script[:n], self.script[n:]
        return np.array(served, dtype=np.uint64)


@pytest.fixture
def scripted():
    """The class of scripted words."""
    return Scripted
