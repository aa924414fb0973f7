"""Calling a mechanism many times on two datasets.

Single calls are in random order: what tells only when a call was made, such as a serial number or a
clock, then tells nothing of the dataset. A vectorised sampler is called on both in turn.

An exception is an outcome too, and so are the warnings of a call. Batches of a vectorised sampler
have no warnings of their own outcomes; whether one dataset alone gives some is kept.
"""

from __future__ import annotations

import inspect
import time
import warnings
from collections.abc import Callable, Hashable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from itertools import islice
from typing import Any

import numpy as np
import numpy.typing as npt

from dither._columns import is_masked
from dither.errors import ArgumentError
from dither.lab._calls import attempted
from dither.lab.audit._contents import written
from dither.lab.audit._flattening import raised
from dither.numeric import SimulatedWords

__all__ = ["Draws", "draw_both", "draw_mixed", "is_vectorised", "joined"]

Outputs = Sequence[Any] | npt.NDArray[Any]
Progress = Callable[[int, int], None]
Called = tuple[Any, tuple[tuple[str, str], ...]]

_CALLS = 500
"""Single calls on each dataset that are shuffled together."""

_BATCHES = 8
_LONGEST = 10_000
"""Items of a generator that are read."""

_TWICE = 256


@dataclass(frozen=True, slots=True)
class Draws:
    """As many outcomes of each dataset, in the order of the calls.

    ``times`` are the places of single calls among all, of both datasets one after the other.
    ``warned`` are the warnings of each call, of both datasets one after the other, empty for a
    vectorised sampler; ``warns`` says of each dataset which kinds of warnings were seen. ``again``
    are the outcomes of two equal calls of a vectorised sampler, if there was one; ``stopped`` says
    that time or the user ended it early.
    """

    here: Outputs
    there: Outputs
    again: tuple[Outputs, Outputs] | None = None
    stopped: bool = False
    warned: tuple[Hashable, ...] = ()
    warns: tuple[frozenset[str], frozenset[str]] = (frozenset(), frozenset())
    times: npt.NDArray[np.int64] | None = None


@dataclass(slots=True)
class _Clock:
    """When to stop, and how many outcomes may be drawn before looking at it again."""

    limit: float | None
    start: float = field(default_factory=lambda: time.monotonic())

    @property
    def over(self) -> bool:
        """Whether time has run out."""
        return self.limit is not None and time.monotonic() - self.start > self.limit

    def step(self, done: int, usual: int, least: int) -> int:
        """So many of each dataset as take a fortieth of the time, by the speed so far."""
        if self.limit is None:
            return usual
        spent = max(time.monotonic() - self.start, 1e-6)
        return max(least, min(usual, int(done / spent * self.limit / 40.0)))


@dataclass(slots=True)
class _Side:
    """What was drawn of one dataset."""

    data: Any
    parts: list[Outputs] = field(default_factory=list)
    warned: list[Hashable] = field(default_factory=list)
    kinds: set[str] = field(default_factory=set)
    times: list[int] = field(default_factory=list)


def is_vectorised(mechanism: Callable[..., Any], stated: bool | None) -> bool:
    """Whether a mechanism takes (data, size): as stated, or if its second argument is ``size``, and
    whatever comes after it has a default."""
    if stated is not None:
        return stated
    try:
        found = list(inspect.signature(mechanism).parameters.values())
    except (TypeError, ValueError):
        return False
    named = len(found) > 1 and found[1].name == "size"
    return named and all(p.default is not p.empty for p in found[2:])


def draw_both(
    mechanism: Callable[..., Any],
    d0: Any,
    d1: Any,
    samples: int,
    *,
    vectorised: bool,
    time_limit: float | None,
    progress: Progress | None = None,
    words: SimulatedWords | None = None,
) -> Draws:
    """Draw outcomes of both datasets, a batch of each in turn, or by single calls in random order.

    Where time runs out or the user interrupts, what was drawn so far is returned. ``words`` shuffle
    the calls; no noise may be drawn from them.
    """
    words = words or SimulatedWords(0)
    clock = _Clock(time_limit)
    usual = max(1, -(-samples // _BATCHES)) if vectorised else _CALLS
    sides = (_Side(d0), _Side(d1))
    again = None
    done, stopped = 0, False
    try:
        if vectorised:
            size = min(_TWICE, samples)
            again = (_batch(mechanism, d0, size), _batch(mechanism, d0, size))
        while done < samples and not stopped:
            size = min(clock.step(done, usual, _TWICE if vectorised else 1), samples - done)
            if vectorised:
                for side in sides:
                    batch, kinds = _stretch(mechanism, side.data, size)
                    side.parts.append(batch)
                    side.kinds |= kinds
            else:
                size = _singles(mechanism, sides, size, words, clock)
            done += size
            if progress is not None:
                progress(done, samples)
            stopped = clock.over and done < samples
    except KeyboardInterrupt:
        if not done:
            raise
        stopped = True
    here, there = (joined(side.parts) for side in sides)
    return Draws(
        here[:done],
        there[:done],
        again,
        stopped,
        (*sides[0].warned[:done], *sides[1].warned[:done]),
        (frozenset(sides[0].kinds), frozenset(sides[1].kinds)),
        None
        if vectorised
        else np.array([t for s in sides for t in s.times[:done]], dtype=np.int64),
    )


def _singles(
    mechanism: Callable[..., Any],
    sides: tuple[_Side, _Side],
    size: int,
    words: SimulatedWords,
    clock: _Clock,
) -> int:
    """So many single calls of each dataset, shuffled together; how many of each were made."""
    order = np.argsort(words.words(2 * size), kind="stable") < size
    found: tuple[list[Any], list[Any]] = ([], [])
    start = sum(len(side.times) for side in sides)
    places = np.where(order, 0, 1).tolist()
    calls = _each(mechanism, (sides[place].data for place in places), clock)
    for turn, (place, (output, warned)) in enumerate(zip(places, calls, strict=False)):
        side = sides[place]
        found[place].append(output)
        side.warned.append(warned)
        side.kinds.update(kind for kind, _ in warned)
        side.times.append(start + turn)
    made = min(len(outputs) for outputs in found)
    for side, outputs in zip(sides, found, strict=True):
        over = len(outputs) - made
        side.parts.append(outputs[:made])
        if over:
            del side.warned[-over:], side.times[-over:]
    return made


def draw_mixed(
    mechanism: Callable[..., Any],
    datasets: Sequence[Any],
    order: npt.NDArray[np.int64],
    first: int,
    *,
    vectorised: bool,
) -> Outputs:
    """An outcome of each dataset that ``order`` names, in that order; warnings are not kept.

    A vectorised sampler is called in rounds, once for each dataset in each round, so that all of
    them have outcomes of all times; the first so many are of rounds of their own.
    """
    if not vectorised:
        calls = _each(mechanism, (datasets[place] for place in order.tolist()), _Clock(None))
        return [output for output, _ in calls]
    out: npt.NDArray[Any] | list[Any] | None = None
    for start, end in ((0, first), (first, order.size)):
        for some in np.array_split(np.arange(start, end), _BATCHES):
            # By their first place, which is by chance.
            named, where = np.unique(order[some], return_index=True)
            for place in named[np.argsort(where)].tolist():
                at = some[order[some] == place]
                batch, _ = _stretch(mechanism, datasets[place], at.size)
                out = _placed(out, batch, at, order.size)
    return [] if out is None else out


def _placed(
    out: npt.NDArray[Any] | list[Any] | None, batch: Outputs, at: npt.NDArray[np.int64], size: int
) -> npt.NDArray[Any] | list[Any]:
    """Outcomes put where they belong, in an array for as long as all batches are alike."""
    if out is None:
        if isinstance(batch, np.ndarray):
            out = np.empty((size, *batch.shape[1:]), dtype=batch.dtype)
        else:
            out = [None] * size
    if isinstance(out, np.ndarray):
        alike = isinstance(batch, np.ndarray) and batch.dtype == out.dtype
        if alike and batch.shape[1:] == out.shape[1:]:  # type: ignore[union-attr]
            out[at] = batch
            return out
        out = list(out)
    for place, one in zip(at.tolist(), batch, strict=True):
        out[place] = one
    return out


def _stretch(mechanism: Callable[..., Any], data: Any, size: int) -> tuple[Outputs, set[str]]:
    """Outcomes of one call of a vectorised sampler, and the kinds of its warnings."""
    with warnings.catch_warnings(record=True) as caught:
        # Whatever filters say: who looks at the process sees them all.
        warnings.simplefilter("always")
        return _batch(mechanism, data, size), {w.category.__name__ for w in caught}


def _each(mechanism: Callable[[Any], Any], datasets: Iterable[Any], clock: _Clock) -> list[Called]:
    """Of one call for each dataset in turn: the outcome, and the kinds and texts of its warnings.

    No call is begun once time has run out.
    """
    found: list[Called] = []
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        for data in datasets:
            output, error = attempted(_called, mechanism, data)
            said = tuple((w.category.__name__, written(w.message, str)) for w in caught)
            if said:
                caught.clear()
            # Failing may depend on the data, and so may an exit: both are outcomes.
            found.append((output if error is None else raised(error), said))
            if clock.over:
                break
    return found


def _called(mechanism: Callable[[Any], Any], data: Any) -> Any:
    return _read(mechanism(data))


def _read(output: Any) -> Any:
    """An output, with what a generator gives in its place: it can be read only once, now."""
    return tuple(islice(output, _LONGEST)) if isinstance(output, Iterator) else output


def _batch(mechanism: Callable[[Any, int], Any], data: Any, size: int) -> Outputs:
    outputs, error = attempted(_outputs, mechanism, data, size)
    if isinstance(error, ArgumentError):
        raise error
    if error is not None:
        raise ArgumentError(
            f"mechanism failed as a vectorised sampler ({type(error).__name__}); pass one of a "
            "single output, of which failing is an outcome, or check its arguments (data, size)"
        ) from error
    if len(outputs) != size:
        raise ArgumentError(
            f"mechanism must return size outputs for each call; {size:,} were asked of it and "
            f"{len(outputs):,} came"
        )
    return outputs  # type: ignore[no-any-return]


def _outputs(mechanism: Callable[[Any, int], Any], data: Any, size: int) -> Outputs:
    batch = mechanism(data, size)
    if is_masked(batch):
        batch = batch.tolist()  # what is masked is None, and not what lies below
    if isinstance(batch, np.ndarray):
        return batch
    if not isinstance(batch, Iterable):
        raise ArgumentError(
            "mechanism must return an array or a list of size outputs, as it is vectorised"
        )
    return [_read(output) for output in batch]


def joined(parts: Sequence[Outputs]) -> Outputs:
    """Stretches of outcomes one after the other, as one array where they are arrays alike."""
    arrays = [p for p in parts if isinstance(p, np.ndarray)]
    alike = len({(a.dtype, a.shape[1:]) for a in arrays}) == 1
    if len(arrays) == len(parts) and alike:
        return np.concatenate(arrays)
    out: list[Any] = []
    for part in parts:
        out += list(part)
    return out
