"""Which input an output speaks for: what guesses about a channel are made by.

Most channels for frequencies report their input, or a bit or number for each input, so that two of
the scores need no learning: whether the output is the input, and the output's coordinate of it. The
others are fitted to a scan of all inputs, where it has outputs enough of each: the likelihood of
the output among those seen before, and of its coordinates one by one, of which only those that
clearly depend on the input are believed to.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from dither._stats import wilson
from dither.errors import ArgumentError
from dither.lab._calls import attempted
from dither.lab.audit._flattening import Raised, read
from dither.lab.audit._outcomes import Floats, Outcomes
from dither.lab.audit._sampling import Outputs

__all__ = ["Evidence", "every_evidence", "suspects"]

Rows = npt.NDArray[np.int64]
Mask = npt.NDArray[np.bool_]

_OF_EACH = 50
"""Outputs of each input that a likelihood takes."""

_CODES, _BINS, _WIDEST = 2_000, 64, 512
_SURE = 4.0
"""Deviations by which a rate must differ from that of all inputs."""

_PRIOR = 20.0
_SCORED = 100_000_000


@dataclass(frozen=True, slots=True)
class Evidence:
    """How much an output speaks for an input: ``of(rows, inputs)``, each of shape (n, s).

    ``rows`` are places of outputs, ``inputs`` those of inputs. ``fitted`` says that labels of the
    scan's first part had a part in it. Where each output speaks for one input at most, ``own`` is
    its place, or -1, and nothing else is asked.
    """

    name: str
    fitted: bool
    of: Callable[[Rows, Rows], Floats]
    own: Rows | None = None


def every_evidence(
    outputs: Outputs,
    outcomes: Outcomes,
    inputs: Sequence[Any],
    truth: Rows,
    fit: Mask,
    score: Callable[[Any, Any], Any] | None,
    *,
    vectorised: bool,
) -> Iterator[Evidence]:
    """All evidence that outputs give of inputs; ``truth``, each one's input, is read in ``fit``.

    Raises
    ------
    ArgumentError
        score fails, or gives other than one number each.
    """
    if score is not None:
        table = _scored(outputs, inputs, score, vectorised)
        yield Evidence("the given score", False, lambda rows, of: _at(table, of, rows))
        return
    own = _own(outputs, outcomes, inputs)
    if np.any(own >= 0):
        yield Evidence(
            "the output is the input", False, lambda rows, of: (own[rows, None] == of) * 1.0, own
        )
    k = len(inputs)
    wide = outcomes.wide
    if k > 2 and wide.shape[1] == k:
        held = np.where(np.isnan(wide), -np.inf, wide)
        yield Evidence(
            "the output's coordinate of the input", False, lambda rows, of: held[rows[:, None], of]
        )
    each = np.bincount(truth[fit], minlength=k)
    if each.min(initial=0) < _OF_EACH:
        return
    codes = _codes(outcomes, fit)
    if codes is not None:
        likely = _of_codes(codes, truth, fit, each)
        yield Evidence(
            "the output's likelihood", True, lambda rows, of: likely[of, codes[rows, None]]
        )
    if 1 < wide.shape[1] <= _WIDEST:
        bits = _bits(wide, fit)
        base, weight = _of_bits(bits, truth, fit, each)

        def by_bits(rows: Rows, of: Rows) -> Floats:
            known = bits[rows] @ weight + base
            return np.asarray(np.take_along_axis(known, of, axis=1), dtype=np.float64)

        yield Evidence("the likelihood of the output's coordinates", True, by_bits)


def suspects(outcomes: Outcomes, truth: Rows, scan: Mask, k: int) -> tuple[int, int]:
    """The two inputs of which one event promises to be likelier on the first than on the second.

    Of each event and input the rate is bounded by some deviations; against the least rate of any
    other input, or that of all, which is better known.
    """
    each = np.bincount(truth[scan], minlength=k).astype(np.float64)
    tables = [_hits(_bits(outcomes.wide, scan), truth, scan, k)] if outcomes.wide.size else []
    codes = _codes(outcomes, scan)
    if codes is not None:
        size = int(codes.max()) + 1
        found = np.bincount(truth[scan] * size + codes[scan], minlength=k * size)
        tables.append(found.reshape(k, size).astype(np.float64))
    best, pair = -np.inf, (0, 1)
    low = np.full(k, -np.inf)
    for table in tables:
        for hits in (table, each[:, None] - table):
            with np.errstate(all="ignore"):
                n = np.maximum(each, 1.0)[:, None]
                least = np.maximum(wilson(hits / n, n, -_SURE), 0.0)
                most = np.minimum(wilson((hits + 1) / n, n, _SURE), 1.0)
                all_of, rate = each.sum(), hits.sum(axis=0) / each.sum()
                over = np.minimum(wilson(rate + 1 / all_of, all_of, _SURE), 1.0)
                under = np.maximum(wilson(rate, all_of, -_SURE), 0.0)
                least[each == 0] = 0.0
                most[each == 0] = 1.0
                low = np.maximum(low, np.log(under / most).max(axis=1))
                by_all = np.log(least / over)
                by_two = np.log(least.max(axis=0) / most.min(axis=0))
            for promised, first, second in (
                (by_all.max(axis=0), by_all.argmax(axis=0), None),
                (by_two, least.argmax(axis=0), most.argmin(axis=0)),
            ):
                column = int(np.nan_to_num(promised, nan=-np.inf).argmax())
                if promised[column] > best and (second is None or first[column] != second[column]):
                    best = float(promised[column])
                    pair = int(first[column]), -1 if second is None else int(second[column])
    if pair[1] < 0:
        low[pair[0]] = -np.inf
        other = int(np.nan_to_num(low, nan=-np.inf).argmax())
        pair = pair[0], other if other != pair[0] else (pair[0] + 1) % k
    return pair


def _scored(
    outputs: Outputs, inputs: Sequence[Any], score: Callable[[Any, Any], Any], vectorised: bool
) -> npt.NDArray[np.float32]:
    if len(inputs) * len(outputs) > _SCORED:
        raise ArgumentError(
            f"inputs are too many for a score of each output: {len(inputs):,} of "
            f"{len(outputs):,} outputs; give fewer, or fewer samples"
        )
    table = np.empty((len(inputs), len(outputs)), dtype=np.float32)
    for place, value in enumerate(inputs):
        found, error = attempted(_asked, score, outputs, value, vectorised)
        if error is not None or found.shape != (len(outputs),):
            what = type(error).__name__ if error is not None else f"its shape was {found.shape}"
            raise ArgumentError(
                f"score must return one number for each output ({what}); it takes "
                + ("all outputs of a call at once" if vectorised else "one output")
                + " and an input, and returns how much the one speaks for the other"
            ) from None
        table[place] = np.where(np.isnan(found), -np.inf, found)
    return table


def _at(table: npt.NDArray[np.float32], inputs: Rows, rows: Rows) -> Floats:
    return np.asarray(table[inputs, rows[:, None]], dtype=np.float64)


def _asked(
    score: Callable[[Any, Any], Any], outputs: Outputs, value: Any, vectorised: bool
) -> Floats:
    if vectorised:
        return np.asarray(score(outputs, value), dtype=np.float64)
    return np.array(
        [np.nan if isinstance(one, Raised) else float(score(one, value)) for one in outputs]
    )


def _own(outputs: Outputs, outcomes: Outcomes, inputs: Sequence[Any]) -> Rows:
    """Of each output the place of the input that it is, or -1."""
    numbers = _as_numbers(inputs)
    if isinstance(outputs, np.ndarray) and outputs.ndim == 1 and numbers is not None:
        order = np.argsort(numbers, kind="stable")
        values = outcomes.raw[:, 0]
        at = np.minimum(np.searchsorted(numbers[order], values), len(inputs) - 1)
        return np.where(numbers[order][at] == values, order[at], -1).astype(np.int64)
    if isinstance(outputs, np.ndarray) and outputs.ndim > 1:
        return np.full(len(outputs), -1, dtype=np.int64)
    place = {_key(value): i for i, value in enumerate(inputs)}
    return np.array([place.get(_key(output), -1) for output in outputs], dtype=np.int64)


def _as_numbers(inputs: Sequence[Any]) -> Floats | None:
    if all(isinstance(v, int | float | np.number) and not isinstance(v, bool) for v in inputs):
        return np.array([float(v) for v in inputs], dtype=np.float64)
    return None


def _key(value: Any) -> Any:
    plain = value.item() if isinstance(value, np.generic) else value
    return read(plain)[0]


def _codes(outcomes: Outcomes, seen: Mask) -> Rows | None:
    """A small number of kinds of outputs: as they are, or of one number in bins."""
    codes = outcomes.atoms[0].codes
    if np.unique(codes[seen]).size <= _CODES:
        kept = np.unique(codes[seen])
        at = np.minimum(np.searchsorted(kept, codes), kept.size - 1)
        return np.where(kept[at] == codes, at, kept.size).astype(np.int64)
    if outcomes.wide.shape[1] != 1:
        return None
    values = outcomes.wide[:, 0]
    known = values[seen & np.isfinite(values)]
    if not known.size:
        return None
    edges = np.unique(np.quantile(known, np.linspace(0, 1, _BINS + 1)[1:-1]))
    found = np.searchsorted(edges, values, side="right") + 1
    return np.where(np.isnan(values), 0, found).astype(np.int64)


def _of_codes(codes: Rows, truth: Rows, fit: Mask, each: Rows) -> Floats:
    size = int(codes.max()) + 1
    hits = np.bincount(truth[fit] * size + codes[fit], minlength=len(each) * size)
    hits = hits.reshape(len(each), size)
    share = (hits.sum(axis=0) + 0.5) / (hits.sum() + 0.5 * size)
    return np.asarray(np.log((hits + _PRIOR * share) / (each[:, None] + _PRIOR)))


def _bits(wide: Floats, seen: Mask) -> npt.NDArray[np.float32]:
    """Whether each coordinate is above its middle among those seen, or the middle of two values."""
    known = np.where(np.isfinite(wide[seen]), wide[seen], np.nan)
    alive = np.isfinite(known).any(axis=0)
    middle = np.full(wide.shape[1], np.inf)
    if alive.any():
        low, high = np.nanmin(known[:, alive], axis=0), np.nanmax(known[:, alive], axis=0)
        half = np.nanmedian(known[:, alive], axis=0)
        middle[alive] = np.where((half == low) | (half == high), (low + high) / 2, half)
    return (wide > middle).astype(np.float32)


def _hits(bits: npt.NDArray[np.float32], truth: Rows, part: Mask, k: int) -> Floats:
    return np.stack([bits[part & (truth == v)].sum(axis=0, dtype=np.float64) for v in range(k)])


def _of_bits(
    bits: npt.NDArray[np.float32], truth: Rows, fit: Mask, each: Rows
) -> tuple[npt.NDArray[np.float32], npt.NDArray[np.float32]]:
    """Of each input a sum of weights of bits that are set; rates that clearly differ count."""
    hits = _hits(bits, truth, fit, len(each))
    common = (hits.sum(axis=0) + 0.5) / (each.sum() + 1.0)
    n = each[:, None]
    off = (hits - n * common) / np.sqrt(n * common * (1 - common))
    rates = np.where(np.abs(off) > _SURE, (hits + 0.5) / (n + 1.0), common)
    base = np.log((1 - rates) / (1 - common)).sum(axis=1)
    weight = np.log(rates / common) - np.log((1 - rates) / (1 - common))
    return base.astype(np.float32), weight.T.astype(np.float32)
