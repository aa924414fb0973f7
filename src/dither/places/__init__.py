"""Places and paths: a unit's whole path is its record.

``places.Paths(unit, time, x, y)`` holds rows, ``places.PlaceGrid`` is a public map; what leaves is

- counts of cells by hour (`visits`), of trips from cell to cell (`origin_destination`), and of
  squares that noise lets be small (`quadtree`);
- a model of which paths may be drawn that are nobody's (`path_model`), held against the real ones
  without noise (`compare_paths`);
- from devices, single places with planar Laplace noise (`planar_laplace`), read as well as a public
  prior allows (`remap`), and what they tell when they are sent again (`repeated_places`).

``_paths`` has what is kept of a unit, ``_counts``, ``_quadtree`` and ``_model`` a release each,
with its proof, ``_reports`` what devices send.
"""

from dither.places._counts import PlaceCounts as PlaceCounts
from dither.places._counts import PlaceDesign as PlaceDesign
from dither.places._counts import origin_destination, visits
from dither.places._model import PathDesign as PathDesign
from dither.places._model import PathErrors as PathErrors
from dither.places._model import PathModel as PathModel
from dither.places._model import compare_paths, path_model
from dither.places._paths import Paths, PlaceGrid
from dither.places._quadtree import QuadtreeCounts as QuadtreeCounts
from dither.places._quadtree import QuadtreeDesign as QuadtreeDesign
from dither.places._quadtree import quadtree
from dither.places._reports import RemappedReports as RemappedReports
from dither.places._reports import RepeatedPlaces as RepeatedPlaces
from dither.places._reports import planar_laplace, remap, repeated_places

AUDITED = (PlaceDesign, QuadtreeDesign, PathDesign)
"""What ``dither audit --all`` reads beside what is listed."""

__all__ = [
    "Paths",
    "PlaceGrid",
    "compare_paths",
    "origin_destination",
    "path_model",
    "planar_laplace",
    "quadtree",
    "remap",
    "repeated_places",
    "visits",
]
