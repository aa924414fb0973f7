"""The law of the loss on a grid, for pictures."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from dither.errors import ArgumentError
from dither.privacy.loss import Loss
from dither.privacy.profile.grid import Grid
from dither.privacy.side import side

__all__ = ["distribution"]


def distribution(
    loss: Loss, *, removal: bool = True
) -> tuple[npt.NDArray[np.float64], npt.NDArray[np.float64]]:
    """Points and masses of the composed loss under P."""
    if any(not part.exact for part, _ in loss.parts):
        raise ArgumentError("the law of the loss is known only where every part's pair is")
    if not loss.parts:
        return np.zeros(1), np.ones(1)
    grid = Grid(
        side(loss.parts, removal).lower_terms,
        log_delta=None,
        epsilon=0.0,
        points=1 << 13,
        tilt=1e-9,
    )
    losses, masses = grid.upper.law()
    kept = masses > 1e-14
    return losses[kept], masses[kept]
