"""The public list of values that people may hold, and how values become codes."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, fields
from fractions import Fraction
from itertools import islice
from typing import Any

import numpy as np
import numpy.typing as npt

from dither._columns import array_of
from dither.errors import ArgumentError

Value = str | int | bool


def bind(value: object, **fields: Any) -> None:
    """Set the fields of a frozen value, as it is made."""
    for name, found in fields.items():
        object.__setattr__(value, name, found)


def repr_of(value: Any) -> str:
    """What makes a channel or a structure, by its fields; of what is long, only its beginning."""
    named = (f"{f.name}={brief(getattr(value, f.name))}" for f in fields(value) if f.repr)
    return f"{type(value).__name__}({', '.join(named)})"


_BRIEF = 4


def brief(value: Any) -> str:
    """A field for a prompt: whole numbers and fractions as they are written, few of many."""
    if isinstance(value, Fraction):
        return str(value)
    if isinstance(value, tuple | list | np.ndarray):
        shown = [brief(one) for one in value[:_BRIEF]]
        more = [f"... {len(value):,} in all"] if len(value) > _BRIEF else []
        return f"[{', '.join([*shown, *more])}]"
    if isinstance(value, Mapping):
        shown = [f"{k!r}: {brief(v)}" for k, v in islice(value.items(), _BRIEF)]
        more = [f"... {len(value):,} in all"] if len(value) > _BRIEF else []
        return f"{{{', '.join([*shown, *more])}}}"
    return repr(value.item() if isinstance(value, np.generic) else value)


_HELP = "declare them, or an `other` bucket among the domain's values to hold them"


_MOST = 1 << 24


@dataclass(frozen=True, slots=True, init=False, eq=False, repr=False)
class Domain:
    """The values that a person may hold, in public order; a value's code is its place in the list.

    Parameters
    ----------
    values : int, Domain, or iterable of str, int or bool
        The values, all different, at least two. An integer k stands for 0, ..., k-1. A set is
        sorted, so that its order says nothing.
    other : str, int or bool, optional
        One of the values, which stands for every value that is not in the list.

    Raises
    ------
    ArgumentError
        Fewer than two values, a value twice, a value of another type, or an `other` that is not
        among the values.

    Examples
    --------
    >>> Domain(["flu", "HIV", "something else"], other="something else").encode(["HIV", "gout"])
    array([1, 2])
    """

    size: int
    other: Value | None
    counting: bool
    """Whether the values are 0, ..., k-1, so that a value is its own code."""
    _values: tuple[Value, ...] | None = field(repr=False)
    _places: dict[Any, int] | None = field(repr=False)

    def __init__(
        self, values: int | Domain | Iterable[Value], *, other: Value | None = None
    ) -> None:
        found: tuple[Value, ...] | None
        if isinstance(values, Domain):
            size, found, counting = values.size, values._values, values.counting
            places, other = values._places, values.other if other is None else other
        else:
            size, found, places = _listed(values)
            counting = found is None
        bind(self, size=size, counting=counting, _values=found, _places=places, other=other)
        if other is not None and (not isinstance(other, Value) or self._place(other) < 0):
            raise ArgumentError("other must be one of the domain's values")

    @property
    def values(self) -> tuple[Value, ...]:
        """The values in order; those of a size are listed when they are first asked for."""
        found = self._values
        if found is None:
            found = tuple(range(self.size))
            bind(self, _values=found)
        return found

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Domain):
            return NotImplemented
        return (self.size, self.counting, self.other) == (
            other.size,
            other.counting,
            other.other,
        ) and (self.counting or self.values == other.values)

    def __hash__(self) -> int:
        return hash((self.size, self.other, None if self.counting else self.values))

    def __repr__(self) -> str:
        if self.counting:
            return f"Domain({self.size})"
        shown = ", ".join(map(repr, self.values[:5]))
        more = f", ... {self.size} in all" if self.size > 5 else ""
        return f"Domain([{shown}{more}])"

    def __len__(self) -> int:
        return self.size

    def subset(self, chosen: Iterable[Value], name: str) -> npt.NDArray[np.bool_]:
        """Which codes are chosen, shape (k,), for an argument of that name.

        Raises
        ------
        ArgumentError
            It is not a collection, or a chosen value is not in the domain.
        """
        if not collection(chosen):
            raise ArgumentError(f"{name} must be a collection of values of the domain")
        mask = np.zeros(len(self), dtype=np.bool_)
        for value in chosen:
            place = self._place(value)
            if place < 0:
                raise ArgumentError(f"{name} must hold values of the domain only")
            mask[place] = True
        return mask

    def encode(self, values: Any) -> npt.NDArray[np.int64]:
        """Codes of a column of values.

        Parameters
        ----------
        values : sequence, numpy array, or a series of Polars, pandas or Arrow; shape (n,)

        Returns
        -------
        array of int64, shape (n,)

        Raises
        ------
        ArgumentError
            A value is missing (None, NaN), or outside the domain while no `other` is declared.
            Nothing is encoded, and no value is shown.
        """
        given = column(values)
        if given.dtype.kind in "iu" and self.counting:
            codes = self._counted(given)
        elif given.dtype.kind == "O":
            codes = np.fromiter((self._place(v) for v in given), np.int64, given.size)
        else:
            distinct, inverse = np.unique(given, return_inverse=True)
            known = np.fromiter((self._place(v) for v in distinct.tolist()), np.int64)
            codes = known[inverse]
        missing, unknown = int((codes == -2).sum()), codes == -1
        if missing:
            raise ArgumentError(
                f"values must not be missing: {missing} of {codes.size} are None or NaN; "
                "drop them, or give people with no answer a value of their own"
            )
        if unknown.any():
            if self.other is None:
                raise ArgumentError(
                    f"values must be in the domain: {int(unknown.sum())} of {codes.size} are not; "
                    + _HELP
                )
            codes[unknown] = self._place(self.other)
        return codes

    def to_dict(self) -> dict[str, Any]:
        """A form that JSON can hold; `from_dict` reads it."""
        found: dict[str, Any] = {"size": self.size}
        if not self.counting:
            found = {"values": list(self.values)}
        return found if self.other is None else {**found, "other": self.other}

    @classmethod
    def from_dict(cls, found: dict[str, Any]) -> Domain:
        """The domain that `to_dict` wrote."""
        given = found.get("size", found.get("values"))
        if not isinstance(given, int if "size" in found else list):
            raise ArgumentError("domain must be written as a size or a list of values")
        return cls(given, other=found.get("other"))

    def _place(self, value: Any) -> int:
        """The code of a value; -1 where unknown, -2 where missing."""
        try:
            if self._places is not None:
                return self._places[value]
            if type(value) is int:
                return value if 0 <= value < self.size else -1
            hash(value)
            code = int(value)
            if code == value and 0 <= code < self.size:
                return code
        # TypeError: unhashable, a list, say; the others: no number, or one without an integer.
        except (KeyError, TypeError, ValueError, OverflowError):
            pass
        return -2 if _missing(value) else -1

    def _counted(self, given: npt.NDArray[Any]) -> npt.NDArray[np.int64]:
        outside = (given < 0) | (given >= len(self))
        if not outside.any():
            return given.astype(np.int64)
        codes = np.where(outside, 0, given).astype(np.int64)
        codes[outside] = -1
        return codes


def collection(values: Any) -> bool:
    """Whether it can be iterated over: a list, a set, a column, but not a text or one number."""
    one = isinstance(values, str | bytes) or getattr(values, "ndim", 1) == 0
    return isinstance(values, Iterable) and not one


def column(values: Any) -> npt.NDArray[Any]:
    """A one-dimensional array of whatever column-like thing was given; a single text is refused."""
    try:
        found = array_of(values)
    except TypeError:
        raise ArgumentError("values must be a column; give one value as a list of one") from None
    if found.ndim != 1:
        raise ArgumentError("values must be one-dimensional")
    return found


def _missing(value: Any) -> bool:
    """None, NaN, NaT, and a library's own mark, which refuses to be compared."""
    try:
        return value is None or bool(value != value)
    except (TypeError, ValueError):
        return True


def _listed(
    values: int | Iterable[Value],
) -> tuple[int, tuple[Value, ...] | None, dict[Any, int] | None]:
    """How many values, and, unless they are 0, 1, ..., the values and their codes."""
    if isinstance(values, bool | str | bytes):
        raise ArgumentError("domain must be a size or a list of values")
    if isinstance(values, int | np.integer):
        _check_size(int(values))
        return int(values), None, None
    if not collection(values):
        raise ArgumentError("domain must be a size, which is a whole number, or a list of values")
    listed = tuple(v.item() if isinstance(v, np.generic) else v for v in values)
    if any(not isinstance(value, Value) for value in listed):
        raise ArgumentError("domain must hold texts, integers or booleans")
    if isinstance(values, set | frozenset):
        listed = tuple(sorted(listed, key=lambda v: (isinstance(v, str), v)))
    _check_size(len(listed))
    if all(type(v) is int and v == i for i, v in enumerate(listed)):
        return len(listed), None, None
    places: dict[Any, int] = {value: i for i, value in enumerate(listed)}
    # True and 1 are one value to Python, and so would be two codes of one value.
    if len(places) != len(listed):
        raise ArgumentError("domain must not hold a value twice (True equals 1, False 0)")
    return len(listed), listed, places


def _check_size(size: int) -> None:
    if size < 2:
        raise ArgumentError("domain must have at least two values")
    if size > _MOST:
        raise ArgumentError("domain must have at most 2**24 values")
