"""The public list of values that people may hold, and how values become codes."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from dither.errors import ArgumentError

__all__ = ["Domain", "Value", "column"]

Value = str | int | bool

_HELP = "declare them, or an `other` bucket among the domain's values to hold them"


@dataclass(frozen=True, slots=True, init=False)
class Domain:
    """The values that a person may hold, in public order; a value's code is its place.

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

    values: tuple[Value, ...]
    other: Value | None
    counting: bool
    """Whether the values are 0, ..., k-1, so that a value is its own code."""

    def __init__(
        self, values: int | Domain | Iterable[Value], *, other: Value | None = None
    ) -> None:
        if isinstance(values, Domain):
            found, other = values.values, values.other if other is None else other
        else:
            found = _listed(values)
        if len(found) < 2:
            raise ArgumentError("domain must have at least two values")
        for value in found:
            if not isinstance(value, str | int | bool):
                raise ArgumentError("domain must hold texts, integers or booleans")
        # True and 1 are one value to Python, and so would be two codes of one value.
        if len(set(found)) != len(found):
            raise ArgumentError("domain must not hold a value twice (True equals 1, False 0)")
        if other is not None and other not in found:
            raise ArgumentError("other must be one of the domain's values")
        object.__setattr__(self, "values", found)
        object.__setattr__(self, "other", other)
        counting = all(type(v) is int and v == i for i, v in enumerate(found))
        object.__setattr__(self, "counting", counting)

    def __repr__(self) -> str:
        shown = ", ".join(map(repr, self.values[:5]))
        more = f", ... {len(self)} in all" if len(self) > 5 else ""
        return f"Domain({len(self)})" if self.counting else f"Domain([{shown}{more}])"

    def __len__(self) -> int:
        return len(self.values)

    def subset(self, chosen: Iterable[Value], name: str) -> npt.NDArray[np.bool_]:
        """Which codes are chosen, shape (k,), for an argument of that name.

        Raises
        ------
        ArgumentError
            A chosen value is not in the domain.
        """
        if isinstance(chosen, str):
            raise ArgumentError(f"{name} must be a collection of values, not one text")
        place = {value: i for i, value in enumerate(self.values)}
        mask = np.zeros(len(self), dtype=np.bool_)
        for value in chosen:
            if value not in place:
                raise ArgumentError(f"{name} must hold values of the domain only")
            mask[place[value]] = True
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
        else:
            place: dict[Any, int] = {value: i for i, value in enumerate(self.values)}
            if given.dtype.kind == "O":
                codes = np.fromiter((_place(place, v) for v in given), np.int64, given.size)
            else:
                distinct, inverse = np.unique(given, return_inverse=True)
                known = np.fromiter((_place(place, v) for v in distinct.tolist()), np.int64)
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
            codes[unknown] = self.values.index(self.other)
        return codes

    def to_dict(self) -> dict[str, Any]:
        """A form that JSON can hold; `from_dict` reads it."""
        found: dict[str, Any] = {"values": list(self.values)}
        if self.counting:
            found = {"size": len(self)}
        return found if self.other is None else {**found, "other": self.other}

    @classmethod
    def from_dict(cls, found: dict[str, Any]) -> Domain:
        """The domain that `to_dict` wrote."""
        return cls(found["size"] if "size" in found else found["values"], other=found.get("other"))

    def _counted(self, given: npt.NDArray[Any]) -> npt.NDArray[np.int64]:
        outside = (given < 0) | (given >= len(self))
        if not outside.any():
            return given.astype(np.int64)
        codes = np.where(outside, 0, given).astype(np.int64)
        codes[outside] = -1
        return codes


def column(values: Any) -> npt.NDArray[Any]:
    """A one-dimensional array of whatever column-like thing was given.

    Raises
    ------
    ArgumentError
        It is a single text, or has more than one dimension.
    """
    if isinstance(values, str | bytes):
        raise ArgumentError("values must be a column; give one value as a list of one")
    if isinstance(values, np.ndarray):
        found = values
    elif hasattr(values, "to_numpy"):
        found = _from_series(values)
    else:
        listed = list(values)
        kinds = {type(v) for v in listed}
        found = (
            np.array(listed)
            if len(kinds) == 1
            and kinds <= {int, bool}
            and all(-(2**63) <= v < 2**63 for v in listed)
            else np.fromiter(listed, dtype=object, count=len(listed))
        )
    if found.ndim != 1:
        raise ArgumentError("values must be one-dimensional")
    return found


def _from_series(values: Any) -> npt.NDArray[Any]:
    try:
        found = values.to_numpy()
    except Exception:  # an Arrow array with missing values has no numpy form without a copy
        found = values.to_numpy(zero_copy_only=False)
    return np.asarray(found)


def _place(place: dict[Any, int], value: Any) -> int:
    """The code of a value; -1 where unknown, -2 where missing."""
    try:
        return place[value]
    except (KeyError, TypeError):  # TypeError: unhashable, a list, say
        return -2 if _missing(value) else -1


def _missing(value: Any) -> bool:
    """None, NaN, NaT, and a library's own mark, which refuses to be compared."""
    try:
        return value is None or bool(value != value)
    except (TypeError, ValueError):
        return True


def _listed(values: int | Iterable[Value]) -> tuple[Value, ...]:
    if isinstance(values, bool | str):
        raise ArgumentError("domain must be a size or a list of values")
    if isinstance(values, int):
        if values > 1 << 24:
            raise ArgumentError("domain must have at most 2**24 values")
        return tuple(range(values))
    found = [v.item() if isinstance(v, np.generic) else v for v in values]
    if isinstance(values, Sequence) or not isinstance(values, set | frozenset):
        return tuple(found)
    return tuple(sorted(found, key=lambda v: (isinstance(v, str), v)))
