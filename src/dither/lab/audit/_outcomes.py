"""What a mechanism may return, as columns of numbers and atoms.

An outcome is a number, text, ``None``, an array, a tuple or mapping of these, a frame, an object by
its attributes or its hash, or an exception. It becomes

* numbers: its coordinates, its length, simple statistics of them, and the low-order bits of floats;
* atoms: itself, itself without its numbers (types, texts, which exception), the order of its keys,
  and the warnings of its call, as integer codes.

Bytes count one by one and as packed numbers, dates as days or microseconds, texts by the numbers in
them too. What is printed, written elsewhere, or shown by how long a call takes is not seen.

What the columns are is decided by those outcomes that may choose events; the others are only put
into them. Only of very many coordinates, those are looked at one by one that tell the datasets of
the outcomes apart that fit scores; nothing else of this looks at which dataset an outcome is of.
"""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from dataclasses import dataclass, replace
from itertools import chain, combinations
from typing import Any

import numpy as np
import numpy.typing as npt

from dither.lab.audit._flattening import Raised, read

__all__ = ["Atoms", "Feature", "Outcomes", "describe_outcomes", "varies"]

Floats = npt.NDArray[np.float64]
Codes = npt.NDArray[np.int64]

MOST = 48
"""Coordinates that are looked at one by one; statistics are of all."""

_WIDEST, _LARGEST = 512, 30_000_000
"""Coordinates that learned scores look at, and numbers in all of these."""

_BITS = 4
"""Coordinates whose low-order bits a classifier sees; those of others are looked at one by one."""

_UNITS, _KEPT = (100.0, 0.01, 1000.0, 0.001), 48
"""Changes of units that are tried, and the bits that are kept of a product."""

_EXACT = 2**53
"""Whole numbers below this are doubles."""

_AT_ONCE = 4_000_000
_SCREENED = 2_000
"""Outcomes of each dataset that say which of very many coordinates are looked at."""

Labels = tuple[npt.NDArray[np.bool_], npt.NDArray[np.bool_]] | None

_BITS_OF = {np.dtype(f"f{size}"): np.dtype(f"u{size}") for size in (2, 4, 8)}

_FEW, _SIMPLE, _PAIRS = 60, 4, 8
"""Of each dataset's outcomes, those that may show coordinates with one noise; values that their
difference may then have; and pairs of coordinates that are reported."""


@dataclass(frozen=True, slots=True)
class Feature:
    """A number of each outcome, NaN where it has none.

    ``binary`` says that a value is an exponent of two, which is shown as such. ``statements`` are
    what a truth value says where it is 0 and where it is 1.
    """

    name: str
    values: Floats
    binary: bool = False
    statements: tuple[str, str] | None = None


@dataclass(frozen=True, slots=True)
class Atoms:
    """A code for each outcome; equal codes are equal outcomes. ``labels`` may be shown."""

    name: str
    codes: Codes
    labels: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Outcomes:
    """Outcomes in order, each by its columns and atoms; ``raw`` are the coordinates, NaN padded.

    ``wide`` are more of them, for learned scores. ``blind`` are the types of what could not be
    looked into.
    """

    columns: tuple[Feature, ...]
    atoms: tuple[Atoms, ...]
    raw: Floats
    wide: Floats
    blind: tuple[str, ...] = ()

    @property
    def varies(self) -> bool:
        """Whether two outcomes differ in anything that is seen."""
        return bool(self.columns) or any(np.any(a.codes != a.codes[0]) for a in self.atoms)

    def __len__(self) -> int:
        return len(self.raw)


def describe_outcomes(
    outputs: Sequence[Any] | npt.NDArray[Any],
    seen: npt.NDArray[np.bool_],
    warned: Sequence[Hashable] = (),
    second: npt.NDArray[np.bool_] | None = None,
    fit: npt.NDArray[np.bool_] | None = None,
) -> Outcomes:
    """Columns and atoms of outcomes: one an entry, or a row of an array of two dimensions.

    Those ``seen`` may say which columns there are; the others are only put into them. ``warned``
    are the warnings of each outcome's call. Of very many coordinates those are looked at that tell
    the datasets apart in the part ``fit``, where ``second`` says which is the second's; by default
    the first ones.
    """
    labels = None if second is None or fit is None else (second, fit)
    found = _described(outputs, seen, labels)
    if any(w for w, one in zip(warned, seen, strict=False) if one):
        given = _coded("the warnings of the call", list(warned))
        found = replace(found, atoms=(*found.atoms, given))
    return found


def _described(
    outputs: Sequence[Any] | npt.NDArray[Any], seen: npt.NDArray[np.bool_], labels: Labels
) -> Outcomes:
    if not isinstance(outputs, np.ndarray):
        array, alike = _compact(outputs, seen)
        if array is not None:
            some = None if labels is None else (labels[0][alike], labels[1][alike])
            return _scattered(_of_array(array, seen[alike], some), alike)
    elif outputs.dtype.kind in "biuf" and outputs.size:
        return _of_array(outputs, seen, labels)
    return _of_objects(outputs, seen, labels)


def _screened(table: npt.NDArray[Any], labels: Labels) -> npt.NDArray[np.int64] | None:
    """Of very many coordinates, those in which two samples differ most, from the best on."""
    if labels is None or table.shape[1] <= _WIDEST:
        return None
    rows = [np.flatnonzero(labels[1] & (labels[0] == side))[:_SCREENED] for side in (False, True)]
    if min(map(len, rows)) < 2:
        return None
    worth = np.empty(table.shape[1])
    step = max(1, _AT_ONCE // (2 * _SCREENED))
    for i in range(0, table.shape[1], step):
        both = [np.asarray(table[r, i : i + step], dtype=np.float64) for r in rows]
        held = np.concatenate(both)
        held = np.where(np.isfinite(held), held, np.nan)
        empty = np.isnan(held).all(axis=0)
        held[:, empty] = 0.0
        low, middle, high = np.nanquantile(held, [0.02, 0.5, 0.98], axis=0)
        best = np.zeros(held.shape[1])
        for look in (
            lambda x: np.clip(np.where(np.isfinite(x), x, middle), low, high),  # noqa: B023
            lambda x: np.clip(np.abs(np.where(np.isfinite(x), x, middle) - middle), 0, high - low),  # noqa: B023
            lambda x: (x == middle) * 1.0,  # noqa: B023
            lambda x: np.isfinite(x) * 1.0,
        ):
            one, other = map(look, both)
            spread = one.var(axis=0) / len(one) + other.var(axis=0) / len(other)
            off = np.abs(one.mean(axis=0) - other.mean(axis=0))
            best = np.maximum(best, off / np.sqrt(np.maximum(spread, 1e-12 * (off**2 + 1e-300))))
        worth[i : i + step] = best
    return np.argsort(-worth, kind="stable").astype(np.int64)


def _compact(
    outputs: Sequence[Any], seen: npt.NDArray[np.bool_]
) -> tuple[npt.NDArray[Any] | None, npt.NDArray[np.bool_]]:
    """An array of the outcomes that are like those seen, where those are all alike; and which."""
    alike = np.ones(len(outputs), dtype=np.bool_)
    array = _stacked(outputs)
    if array is None:
        known = [output for output, one in zip(outputs, seen, strict=True) if one]
        if known and _stacked(known) is not None:
            form = _form(known[0])
            alike = np.fromiter((_form(o) == form for o in outputs), np.bool_, len(outputs))
            array = _stacked([output for output, one in zip(outputs, alike, strict=True) if one])
    return array, alike


def _stacked(outputs: Sequence[Any]) -> npt.NDArray[Any] | None:
    """An array where all outcomes are of one form: the same, and far quicker to read."""
    kinds = set(map(type, outputs))
    if kinds == {np.ndarray}:
        alike = len(set(map(_layout, outputs))) == 1
        return np.stack(outputs) if alike and outputs[0].dtype.kind in "biuf" else None
    if kinds in ({tuple}, {list}):
        if len(set(map(len, outputs))) > 1:
            return None
        kinds = set(map(type, chain.from_iterable(outputs)))
    if kinds == {float}:
        return np.array(outputs, dtype=np.float64)
    if kinds == {int}:
        try:
            found = np.array(outputs, dtype=np.int64)
        except OverflowError:
            return None
        return found if np.abs(found).max() < _EXACT else None
    return None


def _layout(array: npt.NDArray[Any]) -> tuple[Hashable, ...]:
    """What of an array is not its values, and can be seen."""
    metadata = None if array.dtype.metadata is None else repr(array.dtype.metadata)
    return array.shape, array.dtype, metadata, array.strides, array.flags.writeable


def _form(output: Any) -> Hashable:
    """What all of `_stacked` have in common: types, lengths, and that doubles hold them."""
    kind = type(output)
    if kind is np.ndarray:
        return kind, *_layout(output)
    parts = output if kind in (tuple, list) else (output,)
    inner = frozenset(map(type, parts))
    fits = inner != {int} or max(map(abs, parts)) < _EXACT
    return kind, len(parts), inner, fits


def _scattered(found: Outcomes, alike: npt.NDArray[np.bool_]) -> Outcomes:
    """The same among outcomes of other forms, which have no number and are one atom together."""
    if alike.all():
        return found
    rows = len(alike)

    def numbers(values: Floats) -> Floats:
        out = np.full((rows, *values.shape[1:]), np.nan)
        out[alike] = values
        return out

    def codes(known: Codes) -> Codes:
        out = np.full(rows, int(known.max()) + 1, dtype=np.int64)
        out[alike] = known
        return out

    return Outcomes(
        tuple(replace(c, values=numbers(c.values)) for c in found.columns),
        tuple(Atoms(a.name, codes(a.codes), a.labels) for a in found.atoms),
        numbers(found.raw),
        numbers(found.wide),
    )


def _of_array(
    array: npt.NDArray[Any], seen: npt.NDArray[np.bool_], labels: Labels = None
) -> Outcomes:
    table = array.reshape(len(array), -1)
    flat = np.ascontiguousarray(table)
    if flat.shape[1] == 1:
        keys = flat[:, 0]
        if keys.dtype in _BITS_OF:  # the two zeros are equal, and NaN has many forms
            keys = keys.view(_BITS_OF[keys.dtype])
    else:
        keys = flat.view(np.dtype((np.void, flat.dtype.itemsize * flat.shape[1])))[:, 0]
    codes = np.unique(keys, return_inverse=True)[1].reshape(-1).astype(np.int64)
    best = _screened(table, labels)
    wide = _wide(table, best)
    atoms = (Atoms("the output", codes),)
    return Outcomes(tuple(_columns(table, seen, best)), atoms, wide[:, :MOST], wide)


def _wide(table: npt.NDArray[Any], best: npt.NDArray[np.int64] | None) -> Floats:
    """As many coordinates as learned scores look at, and those looked at one by one at least."""
    width = max(MOST, min(_WIDEST, _LARGEST // max(1, len(table))))
    return np.asarray(table[:, :width] if best is None else table[:, best[:width]], np.float64)


def _of_objects(
    outputs: Sequence[Any] | npt.NDArray[Any],
    seen: npt.NDArray[np.bool_],
    labels: Labels = None,
) -> Outcomes:
    found: list[list[float]] = []
    whole: list[Hashable] = []
    frames: list[Hashable] = []
    kinds: list[str] = []
    orders: list[Hashable] = []
    blind: set[str] = set()
    for output in outputs:
        key, frame, parts = read(output)
        found.append(parts.numbers)
        orders.append(tuple(parts.orders))
        blind |= parts.blind
        whole.append(key)
        frames.append(frame)
        kinds.append(f"raises {output.kind}" if isinstance(output, Raised) else _kind(output))
    lengths = np.array([len(held) for held in found], dtype=np.float64)
    width = int(lengths[seen].max(initial=0.0))
    table = np.full((len(found), width), np.nan)
    for i, held in enumerate(found):
        table[i, : len(held)] = held[:width]
    best = _screened(table, labels)
    columns = _columns(table, seen, best)
    if len(set(lengths[seen].tolist())) > 1:
        columns.append(Feature("the number of numbers in the output", lengths))
    atoms = [_coded("the output", whole), _coded("the output without its numbers", frames)]
    if len({order for order, one in zip(orders, seen, strict=True) if one}) > 1:
        atoms.append(_coded("the order of the output's keys", orders))
    names = tuple(dict.fromkeys(kinds))
    place = {name: i for i, name in enumerate(names)}
    codes = np.array([place[kind] for kind in kinds], dtype=np.int64)
    atoms.append(Atoms("the kind of the output", codes, names))
    wide = _wide(table, best)
    unseen = tuple(sorted(blind))
    return Outcomes(tuple(columns), tuple(atoms), wide[:, :MOST], wide, unseen)


def _coded(name: str, keys: Sequence[Hashable]) -> Atoms:
    place: dict[Hashable, int] = {}
    codes = [place.setdefault(key, len(place)) for key in keys]
    return Atoms(name, np.array(codes, dtype=np.int64))


def _kind(value: Any) -> str:
    return "None" if value is None else type(value).__name__


def _columns(
    table: npt.NDArray[Any],
    seen: npt.NDArray[np.bool_],
    best: npt.NDArray[np.int64] | None = None,
) -> list[Feature]:
    width = table.shape[1]
    one = width == 1
    chosen = np.arange(min(width, MOST)) if best is None else best[:MOST]
    names = ["the output" if one else f"coordinate {i + 1}" for i in chosen]
    first = table[:, chosen].astype(np.float64)
    columns = [Feature(name, first[:, i]) for i, name in enumerate(names)]
    for i in range(min(width, _BITS)):
        columns += _bits(names[i], first[:, i], seen)
    if width:
        columns += _in_other_units(names[0], first[:, 0], seen)
    columns += _same_noise(first, seen)
    if width > 1:
        step = max(1, _AT_ONCE // width)
        parts = [
            _statistics(table[i : i + step].astype(np.float64)) for i in range(0, len(table), step)
        ]
        columns += [
            Feature(n, np.concatenate([part[n] for part in parts]), n in (_FINEST, _COARSEST))
            for n in parts[0]
        ]
    for i in range(_BITS, len(names)):
        columns += _bits(names[i], first[:, i], seen)
    return [c for c in columns if varies(c.values[seen])]


def _same_noise(table: Floats, seen: npt.NDArray[np.bool_]) -> list[Feature]:
    """Differences of coordinates that are far simpler than both: what noise they share is gone."""
    known = table[seen & np.isfinite(table).all(axis=1)]
    few = np.concatenate([known[:_FEW], known[-_FEW:]])
    if len(few) < 2 * _FEW or table.shape[1] < 2:
        return []
    many = [i for i in range(table.shape[1]) if np.unique(few[:, i]).size > _FEW // 2]
    found = []
    for j, i in combinations(many, 2):
        # Sums of floats are equal up to rounding only.
        unit = 2.0**-40 * max(np.abs(few[:, i]).max(), np.abs(few[:, j]).max())
        if np.unique(np.round((few[:, i] - few[:, j]) / unit)).size <= _SIMPLE:
            name = f"coordinate {i + 1} less coordinate {j + 1} (the same noise)"
            with np.errstate(all="ignore"):
                less = np.round((table[:, i] - table[:, j]) / unit) * unit
            found.append(Feature(name, less))
            if len(found) == _PAIRS:
                break
    return found


_FINEST = "the lowest bit of all coordinates"
_COARSEST = "the highest of the coordinates' lowest bits"


def varies(values: Floats) -> bool:
    """Whether a number is there of some outcomes and not of others, or two differ."""
    known = values[~np.isnan(values)]
    return bool(known.size and (known.size < values.size or np.any(known != known[0])))


def _statistics(table: Floats) -> dict[str, Floats]:
    lowest = _lowest(table)
    empty = np.isnan(table).all(axis=1)
    filled = np.where(np.isnan(table), 0.0, table)
    with np.errstate(all="ignore"):
        found = {
            "the sum of the coordinates": filled.sum(axis=1),
            "the largest coordinate": np.where(np.isnan(table), -np.inf, table).max(axis=1),
            "the smallest coordinate": np.where(np.isnan(table), np.inf, table).min(axis=1),
            "the place of the largest coordinate": np.where(np.isnan(table), -np.inf, table)
            .argmax(axis=1)
            .astype(np.float64),
            "the number of zeros": (table == 0).sum(axis=1).astype(np.float64),
            _FINEST: np.where(np.isnan(lowest), np.inf, lowest).min(axis=1),
            _COARSEST: np.where(np.isnan(lowest), -np.inf, lowest).max(axis=1),
        }
        for i in range(min(table.shape[1], 8) - 1):
            name = f"coordinate {i + 2} less coordinate {i + 1}"
            found[name] = table[:, i + 1] - table[:, i]
    return {name: np.where(empty, np.nan, values) for name, values in found.items()}


def _whole(values: Floats) -> npt.NDArray[np.int64]:
    """The 53 bits of finite floats, as whole numbers."""
    return np.asarray((np.abs(np.frexp(values)[0]) * 2.0**53).astype(np.int64))


def _lowest(values: Floats) -> Floats:
    """Of a float odd·2^e: e; NaN for zero and what is not finite."""
    none = ~np.isfinite(values) | (values == 0)
    safe = np.where(none, 0.0, values)
    whole = _whole(safe)
    bits = np.log2(np.maximum(whole & -whole, 1))
    return np.where(none, np.nan, np.frexp(safe)[1] - 53 + bits)


def _in_other_units(name: str, values: Floats, seen: npt.NDArray[np.bool_]) -> list[Feature]:
    """Lowest bits of fractions as they may have been before a change of units, which rounds them.

    Of a product 48 bits are kept, so that the five that two roundings may have changed are gone.
    """
    finite = np.where(np.isfinite(values), values, 0.0)
    if not np.any((finite != np.round(finite))[seen]):
        return []
    found = []
    for unit in _UNITS:
        with np.errstate(all="ignore"):
            share, power = np.frexp(values * unit)
            kept = np.ldexp(np.round(np.ldexp(share, _KEPT)), power - _KEPT)
        found.append(Feature(f"the lowest bit of {unit:g} times {name}", _lowest(kept), True))
    return found


def _bits(name: str, values: Floats, seen: npt.NDArray[np.bool_]) -> list[Feature]:
    """Of a float odd·2^e: e, the last three bits, whether 32 bits hold it; and the sign of zero."""
    finite = np.isfinite(values)
    safe = np.where(finite, values, 0.0)
    whole = _whole(safe)
    none = ~finite | (safe == 0)
    with np.errstate(all="ignore"):
        narrow = safe.astype(np.float32).astype(np.float64) == safe
    columns = [Feature(f"the lowest bit of {name}", _lowest(values), binary=True)]
    if np.any((safe != np.round(safe))[seen]):
        columns += [
            Feature(f"the last three bits of {name}", np.where(none, np.nan, whole & 7)),
            Feature(
                f"whether 32 bits hold {name}",
                np.where(finite, narrow, np.nan),
                statements=(f"32 bits do not hold {name}", f"32 bits hold {name}"),
            ),
        ]
    if np.any((finite & (values == 0) & np.signbit(values))[seen]):
        signed = np.where(values == 0, np.signbit(values), np.nan)
        columns.append(Feature(f"the sign of the zero that {name} is", signed))
    # Of a NaN, all bits but those of its exponent.
    bits = np.ascontiguousarray(values).view(np.uint64)
    rest = (bits & np.uint64(2**52 - 1)).astype(np.float64) + (bits >> np.uint64(63)) * 2.0**52
    if np.unique(rest[seen & np.isnan(values)]).size > 1:
        columns.append(
            Feature(f"the form of the NaN that {name} is", np.where(np.isnan(values), rest, np.nan))
        )
    return columns
