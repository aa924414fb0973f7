"""Updates as vectors of integers whose length is known: what one client adds to a sum.

Length. An update is cut to an L2 length of ``clip`` and written in units of clip/``units``. Plain,
each coordinate is rounded towards 0, so that no vector becomes longer than ``units``. Rotated, the
vector is turned by a public random rotation, which spreads it over all coordinates, and each is
rounded up or down at random, with a mean that is the number itself; that may make it longer, so it
is drawn again until its squared length is at most ``squared``. In both cases the bound that the
account rests on is checked on the integers, in integers: a vector beyond it is replaced by zeros.
So no rounding of a double, here or in the clipping, can break it.

Sizes. Where ``weight`` is above 0, one more coordinate holds +weight if the update was at most
``clip`` long, else -weight: from their noisy sum the next clip is chosen.

Source. Kairouz, Liu and Steinke, "The distributed discrete Gaussian mechanism for federated
learning with secure aggregation", ICML 2021: the rotation, and rounding with a bound on the length,
of which ``squared`` takes the beta of exp(-1/2).
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from typing import Any, cast

import numpy as np
import numpy.typing as npt

from dither.numeric import Words

__all__ = ["UpdateEncoding", "hadamard", "uniform"]

Floats = npt.NDArray[np.float64]
Integers = npt.NDArray[np.int64]

_TRIES = 64
"""Of roundings; each is short enough with a chance above 0.39."""


@dataclass(frozen=True, slots=True)
class UpdateEncoding:
    """How the updates of one round are written.

    Parameters
    ----------
    dimension : int
        Parameters of the model.
    units : int
        Of the lattice, in a length of ``clip``.
    rotated : bool
    weight : int
        Of the coordinate that counts short updates; 0 leaves it out.

    Attributes
    ----------
    width : int
        Coordinates of the update: ``dimension``, rotated the next power of 2.
    squared : int
        The most that the squared length of an update's integers is.
    """

    dimension: int
    units: int
    rotated: bool = False
    weight: int = 0
    width: int = field(init=False)
    squared: int = field(init=False)

    def __post_init__(self) -> None:
        width = 1 << (self.dimension - 1).bit_length() if self.rotated else self.dimension
        square = self.units**2
        if self.rotated:
            # √width, rounded up: what rounding every coordinate by less than 1 adds to a length, at
            # most.
            root = math.isqrt(width - 1) + 1
            longest = (self.units + root) ** 2
            # Theirs has √(2·log(1/beta)) before units and root, which is 1; each term is rounded
            # up.
            likely = square + -(-width // 4) + self.units + -(-root // 2)
            square = min(longest, likely)
        object.__setattr__(self, "width", width)
        object.__setattr__(self, "squared", square)

    @property
    def coordinates(self) -> int:
        """Of a vector."""
        return self.width + (self.weight > 0)

    @property
    def l2_squared(self) -> int:
        """The squared L2 length of any vector that `encode` gives."""
        return self.squared + self.weight**2

    def encode(
        self, updates: npt.NDArray[np.floating], clip: float, signs: Integers, words: Words
    ) -> Integers:
        """Write updates as integers, one a row.

        Parameters
        ----------
        updates : array of float, shape (m, dimension)
            A row that is not finite becomes zeros.
        clip : float
        signs : array of int, shape (width,)
            Of the round's rotation; read if ``rotated``.
        words : Words

        Returns
        -------
        array of int64, shape (m, coordinates)
        """
        with np.errstate(all="ignore"):  # a warning would tell of a client
            return self._encoded(updates, clip, signs, words)

    def _encoded(
        self, updates: npt.NDArray[np.floating], clip: float, signs: Integers, words: Words
    ) -> Integers:
        # In one order whatever comes: each row is added up by itself, as it would be alone.
        rows = np.array(updates, np.float64, order="C")
        wild = ~np.isfinite(rows).all(axis=1)
        rows[wild] = 0.0
        # Through the largest coordinate, so that no square overflows.
        peaks = np.maximum(np.abs(rows).max(axis=1), 1e-300)
        rows /= peaks[:, None]
        lengths = np.sqrt(np.square(rows).sum(axis=1))
        short = ~wild & (peaks * lengths <= clip)
        # A hair below 1, so that rounded products do not cross the bound, which is checked.
        shrink = (1 - 2**-40) * np.minimum(peaks, clip / np.maximum(lengths, 1.0))
        rows *= (shrink * (self.units / clip))[:, None]
        found = np.zeros((len(rows), self.coordinates), np.int64)
        if self.rotated:
            turned = np.zeros((len(rows), self.width))
            turned[:, : self.dimension] = rows
            turned *= signs
            found[:, : self.width] = self._rounded(hadamard(turned), words)
        else:
            found[:, : self.width] = np.trunc(rows)
        vectors = found[:, : self.width]
        vectors[self._too_long(vectors)] = 0
        if self.weight:
            found[:, -1] = np.where(short, self.weight, -self.weight)
        return found

    def _rounded(self, rows: Floats, words: Words) -> Integers:
        down = np.floor(rows)
        part = rows - down
        found = down.astype(np.int64) + (uniform(words, rows.shape) < part)
        for _ in range(_TRIES):
            long = np.flatnonzero(self._too_long(found))
            if not long.size:
                return found
            again = uniform(words, (long.size, self.width)) < part[long]
            found[long] = down[long].astype(np.int64) + again
        long = np.flatnonzero(self._too_long(found))
        # Towards 0 no coordinate grows, so that the vector is as short as before it was rounded.
        found[long] = np.trunc(rows[long]).astype(np.int64)
        return found

    def _too_long(self, vectors: Integers) -> npt.NDArray[np.bool_]:
        """By integers: no coordinate may be so large that its square or their sum overflows."""
        most = math.isqrt(self.squared)
        # Of the least integer, which doubles without a value become, there is no positive one.
        large = ((vectors > most) | (vectors < -most)).any(axis=1)
        squares = np.einsum("ij,ij->i", vectors, vectors)
        return np.asarray(large | (squares > self.squared))

    def decode(self, total: Integers, clip: float, signs: Integers) -> Floats:
        """The sum of updates that a sum of vectors stands for."""
        numbers = total[: self.width].astype(np.float64)
        if self.rotated:
            numbers = hadamard(numbers[None, :])[0] * signs
        return np.asarray(numbers[: self.dimension] * (clip / self.units))


def hadamard(rows: Floats) -> Floats:
    """Each row times the Hadamard matrix over the root of its size: its own inverse."""
    count, width = rows.shape
    found, step = rows, 1
    while step < width:
        pairs = found.reshape(count, width // (2 * step), 2, step)
        found = np.stack((pairs[:, :, 0] + pairs[:, :, 1], pairs[:, :, 0] - pairs[:, :, 1]), axis=2)
        step *= 2
    return np.asarray(cast(Any, found).reshape(count, width) / math.sqrt(width), np.float64)


def uniform(words: Words, shape: tuple[int, ...]) -> Floats:
    """Numbers in [0, 1) of 53 random bits."""
    drawn = words.words(math.prod(shape)) >> np.uint64(11)
    return drawn.reshape(shape).astype(np.float64) * 2.0**-53
