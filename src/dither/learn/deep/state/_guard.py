"""How a model is run on rows: with secret draws, and so that it keeps nothing of what it saw."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import torch

from dither.learn.deep.state._draws import Sources
from dither.learn.deep.state._state import WatchedObjects, quiet
from dither.numeric import Words

__all__ = ["Guard", "StateChanged"]


class StateChanged(Exception):
    """Something was changed by running a model; it is put back by then. ``names`` say what."""

    def __init__(self, names: list[str]) -> None:
        super().__init__("state")
        self.names = names


@contextmanager
def _uncached() -> Iterator[None]:
    """Weights as they are: autocast keeps those that it rounded, over steps and without gradients.

    It does so within one ``with torch.autocast(...)``, which may be around a whole run.
    """
    before = torch.is_autocast_cache_enabled()
    torch.set_autocast_cache_enabled(False)
    try:
        yield
    finally:
        torch.set_autocast_cache_enabled(before)


class Guard:
    """The watch over a model and its loss.

    Parameters
    ----------
    roots : object
        What is run, by name.

    Attributes
    ----------
    watched : WatchedObjects
    words : Words or None
        Where draws come from; None for this thread's secure words.
    everywhere : bool
        Whether Python's and numpy's own generators are seeded, too.
    generators : list
        Further ones that the model was seen to draw from.
    """

    def __init__(self, **roots: Any) -> None:
        self.watched = WatchedObjects(**roots)
        self.words: Words | None = None
        self.everywhere = False
        self.generators: list[torch.Generator] = []
        self._sources: Sources | None = None
        self._seen = False

    def same(self) -> bool:
        """Whether nothing but numbers was changed since the last run; for the run that follows."""
        self._seen = self.watched.same()
        return self._seen

    @contextmanager
    def around(self, device: torch.device) -> Iterator[None]:
        """One run of rows none of which can see another, or of the first of several.

        Raises
        ------
        Changed
            The run changed something; it is put back.
        """
        self.watched.remember(same=self._seen)
        self._seen = False
        own = [*self.watched.generators, *self.generators]
        self._sources = Sources(device, own, everywhere=self.everywhere)
        try:
            with self._sources.seeded(self.words), _uncached(), quiet():
                yield
        finally:
            self._check()

    def next_row(self) -> None:
        """Within `around`: the row before left nothing behind, and the next draws its own."""
        self._check()
        assert self._sources is not None
        self._sources.seed(self.words)

    def _check(self) -> None:
        found = self.watched.changed()
        if found:
            self.watched.restore()
            raise StateChanged(found)
