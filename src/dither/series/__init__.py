"""Series as records: a unit's readings are one vector, as of a smart meter or a heart rate.

``readings`` are rows of numbers, one row a unit. What leaves is the sum of all of them over windows
of time (`window_sums`), by its slowest waves (`fourier`), or as wavelets whose sums over any
stretch are good (`haar`); quantiles over units of each window (`window_quantiles`);
and counts that go on for ever (`WEventStream`).

What is protected of a unit is named by ``level``: one reading ("event"), w of them in a row
("w-event"), or all ("user"). `promise` says it as accounts know it, ``prices`` of a result what
the same noise costs under each, and `charged_to` gives readings an account of a ledger.

``_promises`` has the three, ``_readings`` the lattice and what a unit may have, ``_linear``,
``_quantiles`` and ``_stream`` a release each, with its proof.
"""

from dither.series._linear import SeriesDesign as SeriesDesign
from dither.series._linear import SeriesSums as SeriesSums
from dither.series._linear import fourier, haar, window_sums
from dither.series._promises import promise
from dither.series._quantiles import QuantileDesign as QuantileDesign
from dither.series._quantiles import WindowQuantiles as WindowQuantiles
from dither.series._quantiles import window_quantiles
from dither.series._readings import charged_to
from dither.series._stream import WEventStream

AUDITED = (SeriesDesign, QuantileDesign)
"""What ``dither audit --all`` reads beside what is listed."""

__all__ = [
    "WEventStream",
    "charged_to",
    "fourier",
    "haar",
    "promise",
    "window_quantiles",
    "window_sums",
]
