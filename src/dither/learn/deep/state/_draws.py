"""What a model draws by chance: always of the run's secret words, whatever seed a script set.

Dropout and its like draw for all rows of a batch from one stream. Under a seed that is known, and
nearly every script sets one, a row that is added shifts what all rows behind it draw: it moves
their gradients, too. So before a model runs, the whole state of each generator that it may draw
from is taken from the secret words, and afterwards the generator is as the user had it.

*Guarantee.* Each row's draws are then of its own: independent of those of other rows, and of one
law, whoever else is in the batch. *Proof.* A row runs either by itself, after fresh words, or under
``vmap(randomness="different")``, which draws for each row numbers of its own out of one stream.
With and without some row all others have draws of the same joint law, independent of the row's; so
the two runs can be told as if the others had drawn the very same numbers, and then their sums
differ by one clipped gradient. A mixture over draws that do not depend on the row is no worse.

*What this rests on.* On a processor the stream is torch's Mersenne twister, from a state of 19,937
bits that the cipher draws anew for each batch, or for each row that runs by itself; on other
devices it is their own generator, from a secret seed of 63 bits. That such streams look like coins
to whoever sees the noisy sums is assumed.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any

import numpy as np
import torch

from dither.numeric import Words, secure_words

__all__ = ["Sources", "untouched"]

_STATE = 624
"""Words of 32 bits in a Mersenne twister."""

Source = tuple[Callable[[], Any], Callable[[Any], Any], Callable[[Words], None]]


class Sources:
    """The generators that a model may draw from.

    Parameters
    ----------
    device : torch.device
    own : sequence of object
        Generators that it holds by itself.
    everywhere : bool
        Whether Python's and numpy's own generators are among them. They draw once for a whole
        batch: only a model whose rows run one by one may use them.
    """

    def __init__(
        self, device: torch.device, own: Sequence[Any] = (), *, everywhere: bool = False
    ) -> None:
        self._sources = [_of_torch(torch.default_generator)]
        if device.type == "cuda":
            place = torch.cuda.current_device() if device.index is None else device.index
            self._sources.append(_of_torch(torch.cuda.default_generators[place]))
        elif device.type != "cpu" and hasattr(torch, device.type):
            self._sources.append(_of_device(getattr(torch, device.type)))
        self._sources += [source for one in own if (source := _of(one)) is not None]
        if everywhere:
            self._sources += [_of_module(module) for module in _modules()]

    def seed(self, words: Words | None) -> None:
        """Take the state of each from secret words."""
        for *_, seed in self._sources:
            seed(words or secure_words())

    @contextmanager
    def seeded(self, words: Words | None) -> Iterator[None]:
        """Secret states inside, and afterwards those from before."""
        with self.kept():
            self.seed(words)
            yield

    @contextmanager
    def kept(self) -> Iterator[None]:
        """Whatever is drawn inside, afterwards all are as before."""
        before = [get() for get, *_ in self._sources]
        try:
            yield
        finally:
            for (_, put, _), state in zip(self._sources, before, strict=True):
                put(state)


@contextmanager
def untouched() -> Iterator[Callable[[], bool]]:
    """Whether nobody drew from Python's or numpy's own generator; they are put back."""
    sources = [_of_module(module) for module in _modules()]
    before = [get() for get, *_ in sources]
    try:
        yield lambda: all(
            _told(get()) == _told(state) for (get, *_), state in zip(sources, before, strict=True)
        )
    finally:
        for (_, put, _), state in zip(sources, before, strict=True):
            put(state)


def _told(state: Any) -> Any:
    return [one.tolist() if isinstance(one, np.ndarray) else one for one in state]


def _twister(words: Words) -> Any:
    """A state of full length."""
    return words.words(_STATE) >> np.uint64(32)


_FRESH = torch.Generator().manual_seed(0).get_state()


def _of_torch(generator: torch.Generator) -> Source:
    def seed(words: Words) -> None:
        if generator.device.type != "cpu":
            generator.manual_seed(int(words.words(1)[0] >> np.uint64(1)))
            return
        # A seed would be cut to 32 bits. The state begins behind three numbers of 64 bits.
        state = _FRESH.clone()
        state[24 : 24 + 8 * _STATE] = torch.from_numpy(_twister(words).view(np.uint8))
        generator.set_state(state)

    return generator.get_state, generator.set_state, seed


def _of_device(module: Any) -> Source:
    """Of a kind of device that has one generator."""
    return (
        module.get_rng_state,
        module.set_rng_state,
        lambda words: module.manual_seed(int(words.words(1)[0] >> np.uint64(1))),
    )


def _of(one: Any) -> Source | None:
    """Of a generator that a model holds; None of one that has no state to be set."""
    if isinstance(one, torch.Generator):
        return _of_torch(one)
    bits = getattr(one, "bit_generator", None) or getattr(one, "_bit_generator", None)
    if bits is not None:

        def put(state: Any) -> None:
            bits.state = state

        def seed(words: Words) -> None:
            put(type(bits)([int(word) for word in words.words(4)]).state)

        return lambda: bits.state, put, seed
    try:
        one.getstate()
    except NotImplementedError:
        return None
    return one.getstate, one.setstate, lambda words: one.setstate(_for_python(words))


def _modules() -> list[Any]:
    """Python's and numpy's modules of chance, where anybody has imported them.

    Nothing is drawn from them here: they are named because a user's model may draw from them.
    """
    names = ("random", "numpy.random")
    return [sys.modules[name] for name in names if name in sys.modules]


def _of_module(module: Any) -> Source:
    if hasattr(module, "getstate"):
        return (
            module.getstate,
            module.setstate,
            lambda words: module.setstate(_for_python(words)),
        )
    return (
        module.get_state,
        module.set_state,
        lambda words: module.set_state(("MT19937", _twister(words).astype(np.uint32), _STATE)),
    )


def _for_python(words: Words) -> Any:
    return 3, (*_twister(words).tolist(), _STATE), None
