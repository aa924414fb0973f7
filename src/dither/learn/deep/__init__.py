"""Deep models trained by private gradients, on torch (``pip install 'dither[learn]'``).

`train` is the whole run, `PrivateOptimizer` the step of one's own loop. Both take the gradient of
each example by itself, clip it, add the clipped gradients up, add noise to the sum once, and divide
by a number that is public. What one example can change is then bounded by the clip, whatever the
model is, and the noise hides that much.

The files, in the order of a step: `_sampling` who takes part, `_gradients`, `_plain` and `_layers`
the gradient of each, with `_rehearsal` in which of the ways, and `_guard`, `_draws`, `_state` and
`_places` that no row reaches another nor stays behind; `_clipping` how long it may be, `_sums` what
is added up, `_noise` what hides it, `_steps` what an optimiser may make of it. `_charge` says what
all steps cost together. `_order` and `_factorization` are for rows in a fixed order, `_adapters`
for models that were trained before, `_checkpoint` for runs that go on, `_centre` for a first layer
that finds the rows' mean. Names are imported when they are first used: the arithmetic of noise
(`_factorization`) needs no torch.
"""

from importlib import import_module
from typing import TYPE_CHECKING

from dither._extras import missing

if TYPE_CHECKING:
    from dither.learn.deep._adapters import LowRank as LowRank
    from dither.learn.deep._adapters import add_adapters, freeze, merge_adapters
    from dither.learn.deep._centre import Centre
    from dither.learn.deep._checkpoint import trained
    from dither.learn.deep._clipping import Adaptive, Automatic, Flat, PerLayer
    from dither.learn.deep._optimizer import PrivateOptimizer
    from dither.learn.deep._order import FixedOrder
    from dither.learn.deep._steps import CorrectedAdam
    from dither.learn.deep._train import train
    from dither.learn.deep._training import Progress as Progress
    from dither.learn.deep._training import Training as Training

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
    "Adaptive": "_clipping",
    "Automatic": "_clipping",
    "Centre": "_centre",
    "CorrectedAdam": "_steps",
    "FixedOrder": "_order",
    "Flat": "_clipping",
    "LowRank": "_adapters",
    "PerLayer": "_clipping",
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
