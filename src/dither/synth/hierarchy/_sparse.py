"""Sums by place: what matrices that are mostly 0 are needed for, without a library of them."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

__all__ = ["Adder", "SparseMatrix"]

Floats = npt.NDArray[np.float64]
Places = npt.NDArray[np.int64]


@dataclass(frozen=True, eq=False, slots=True)
class SparseMatrix:
    """A matrix by its entries that are not 0.

    Parameters
    ----------
    rows, columns : array of int, shape (k,)
    values : array of float, shape (k,)
    shape : (int, int)

    Examples
    --------
    >>> places = np.array([0, 1, 1]), np.array([2, 0, 2])
    >>> matrix = SparseMatrix(*places, np.array([1.0, 2.0, 3.0]), (2, 3))
    >>> matrix.times(np.ones(3)), matrix.times_turned(np.ones(2))
    (array([1., 5.]), array([2., 0., 4.]))
    """

    rows: Places
    columns: Places
    values: Floats
    shape: tuple[int, int]

    def times(self, vector: Floats) -> Floats:
        """The product with a vector of as many numbers as there are columns."""
        each = self.values * vector[self.columns]
        found = np.bincount(self.rows, each, minlength=self.shape[0])
        return found.astype(np.float64, copy=False)

    def times_turned(self, vector: Floats) -> Floats:
        """The product of the transposed matrix with a vector."""
        each = self.values * vector[self.rows]
        return np.bincount(self.columns, each, minlength=self.shape[1]).astype(
            np.float64, copy=False
        )

    def scaled(self, factors: Floats) -> SparseMatrix:
        """Each row times its own factor."""
        return SparseMatrix(self.rows, self.columns, self.values * factors[self.rows], self.shape)


class Adder:
    """Adds rows of an array to those places of another that are theirs; a place may have several.

    Parameters
    ----------
    at : array of int, shape (m,)

    Examples
    --------
    >>> into = np.zeros((3, 1))
    >>> Adder(np.array([2, 0, 2])).add(into, np.array([[1.0], [2.0], [4.0]]))
    >>> into.ravel()
    array([2., 0., 5.])
    """

    def __init__(self, at: Places) -> None:
        order = np.argsort(at, kind="stable")
        self._places, self._starts = np.unique(at[order], return_index=True)
        self._order = None if np.array_equal(order, np.arange(len(at))) else order

    def add(self, into: Floats, values: Floats) -> None:
        """Add ``values[i]`` to ``into[at[i]]``."""
        if not len(self._places):
            return
        sorted_values = values if self._order is None else values[self._order]
        if len(self._places) < len(values):
            sorted_values = np.add.reduceat(sorted_values, self._starts, axis=0)
        into[self._places] += sorted_values
