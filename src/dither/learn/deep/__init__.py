"""Deep models trained by private gradients, on torch (``pip install 'dither[learn]'``).

`train` is the whole run, `PrivateOptimizer` the step of one's own loop. Both take the gradient of
each example by itself, clip it, add the clipped gradients up, add noise to the sum once, and divide
by a number that is public. What one example can change is then bounded by the clip, whatever the
model is, and the noise hides that much.

In the order of a step: `_sampling` says who takes part; ``rows`` takes the gradient of each
(`rows._gradients`, `rows._plain`, `rows._layers`, in the way that `rows._rehearsal` chose), clips
it (`rows._clipping`) and adds up (`rows._sums`), while ``state`` holds that no row reaches another
nor stays behind; ``noise`` is what hides the sum, and what an optimiser may make of it. `_charge`
says what all steps cost together. `_order` is for rows in a fixed order, `_adapters` for models
that were trained before, `_checkpoint` for runs that go on, `_centre` for a first layer that
finds the rows' mean. Names are imported when they are first used: the arithmetic of noise
(`noise._factorization`) needs no torch.
"""

from importlib import import_module
from typing import TYPE_CHECKING

from dither._extras import missing

if TYPE_CHECKING:
    from dither.learn.deep._adapters import LowRank as LowRank
    from dither.learn.deep._adapters import add_adapters, freeze, merge_adapters
    from dither.learn.deep._centre import Centre
    from dither.learn.deep._checkpoint import trained
    from dither.learn.deep._optimizer import PrivateOptimizer
    from dither.learn.deep._order import FixedOrder
    from dither.learn.deep._train import train
    from dither.learn.deep._training import Progress as Progress
    from dither.learn.deep._training import Training as Training
    from dither.learn.deep.noise._steps import CorrectedAdam
    from dither.learn.deep.rows._clipping import Adaptive, Automatic, Flat, PerLayer

__all__ = [
    "Adaptive",
    "Automatic",
    "Centre",
    "CorrectedAdam",
    "FixedOrder",
    "Flat",
    "PerLayer",
    "PrivateOptimizer",
    "add_adapters",
    "freeze",
    "merge_adapters",
    "train",
    "trained",
]

_HOMES = {
    "Adaptive": "rows._clipping",
    "Automatic": "rows._clipping",
    "Centre": "_centre",
    "CorrectedAdam": "noise._steps",
    "FixedOrder": "_order",
    "Flat": "rows._clipping",
    "LowRank": "_adapters",
    "PerLayer": "rows._clipping",
    "PrivateOptimizer": "_optimizer",
    "Progress": "_training",
    "Training": "_training",
    "add_adapters": "_adapters",
    "freeze": "_adapters",
    "merge_adapters": "_adapters",
    "train": "_train",
    "trained": "_checkpoint",
}


def __getattr__(name: str) -> object:
    if name not in _HOMES:
        raise AttributeError(f"module 'dither.learn.deep' has no attribute {name!r}")
    try:
        found = getattr(import_module(f"dither.learn.deep.{_HOMES[name]}"), name)
    except ModuleNotFoundError as error:
        if error.name != "torch":
            raise
        raise missing("torch", "learn", "models trained by gradients need") from None
    globals()[name] = found
    return found
