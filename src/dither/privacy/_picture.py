"""The law of the loss on a grid, for pictures."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from dither.errors import ArgumentError
from dither.privacy._loss import Loss
from dither.privacy._side import side
from dither.privacy.engines.grid import Grid

__all__ = ["distribution"]


def distribution(
    loss: Loss, *, removal: bool = True
) -> tuple[npt.NDArray[np.float64], npt.NDArray[np.float64]]:
    """Points and masses of the composed loss under P; none where it is always infinite."""
    if any(not part.exact for part, _ in loss.parts):
        raise ArgumentError("the law of the loss is known only where every part's pair is")
    this = side(loss.parts, removal)
    if not loss.parts:
        return np.zeros(1), np.ones(1)
    if this.infinite >= 1:
        return np.zeros(0), np.zeros(0)
    grid = Grid(
        this.lower_terms,
        log_delta=None,
        epsilon=0.0,
        points=1 << 13,
        tilt=1e-9,
    )
    losses, masses = grid.upper.law()
    kept = masses > 1e-14
    return losses[kept], masses[kept]
