"""Graphs: who is tied to whom, with noise that protects an edge, or a person with all edges.

::

    from dither import graph

    ties = graph.Graph(edges, nodes=people, edge="friendship", node="person")
    print(graph.count_triangles(ties, epsilon=1))

Edge and node privacy are relations of their own (`dither.privacy.Neighbours`), whose losses are
never added: an account is bound to one of them.

``_graph`` reads edge lists; ``_statistics`` has counts and their exact local sensitivities,
``_ladder`` the noise on them; ``_projection`` bounds degrees for node privacy. ``_local`` is for
graphs that nobody holds.
"""

from dither.graph._counted import GraphCount as GraphCount
from dither.graph._counted import count_edges, count_stars, count_triangles
from dither.graph._degrees import DegreeDistribution as DegreeDistribution
from dither.graph._degrees import degrees
from dither.graph._graph import Graph
from dither.graph._ladder import Ladder
from dither.graph._local import LocalCount as LocalCount
from dither.graph._local import LocalTies, local_count
from dither.graph._model import BlockModel as BlockModel
from dither.graph._model import block_model
from dither.graph._projection import ProjectionBias as ProjectionBias
from dither.graph._projection import projection_bias
from dither.graph._sums import NeighbourSums as NeighbourSums
from dither.graph._sums import neighbour_sums

__all__ = [
    "Graph",
    "LocalTies",
    "block_model",
    "count_edges",
    "count_stars",
    "count_triangles",
    "degrees",
    "local_count",
    "neighbour_sums",
    "projection_bias",
]

AUDITED = (DegreeDistribution, GraphCount, BlockModel, Ladder, LocalTies, NeighbourSums)
"""What touches data here, each with the neighbours that an audit calls it on."""
