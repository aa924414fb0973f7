"""Local privacy: noise on the device, counts on the server, estimates with honest errors.

A `Channel` is the public agreement between the two: `Channel.privatize` on the device,
`Channel.aggregate` and `Aggregate.estimate` on the server.
"""

from dither.local._aggregate import Aggregate
from dither.local._attack import Attack, ClassGame, simulate_attack
from dither.local._channel import Channel, channel_from_dict
from dither.local._domain import Domain
from dither.local._frequency.bloom import BloomRAPPOR
from dither.local._frequency.graded import SDGRR, URR
from dither.local._frequency.grr import GRR
from dither.local._frequency.hadamard import Hadamard
from dither.local._frequency.histogram import SHE, THE
from dither.local._frequency.local_hash import BLH, FLH, OLH
from dither.local._frequency.loloha import LOLOHA
from dither.local._frequency.metric import GridPrivacy, TruncatedGeometric
from dither.local._frequency.min_id import MinIDLDP
from dither.local._frequency.rappor import RAPPOR
from dither.local._frequency.sketch import CMS, HCMS
from dither.local._frequency.subset import SubsetSelection
from dither.local._frequency.unary import OUE, SUE
from dither.local._guarantee import ClassPair, Guarantee
from dither.local._memory import Memory
from dither.local._numbers.duchi import Duchi
from dither.local._numbers.hybrid import Hybrid
from dither.local._numbers.interval import Interval
from dither.local._numbers.laplace import Laplace
from dither.local._numbers.results import Distribution, MeanEstimate
from dither.local._numbers.sdpm import SDPM
from dither.local._numbers.window import PM, SW
from dither.local._oracles import FiniteChannel
from dither.local._personal import Personal
from dither.local._planning import Choice, best, simulate
from dither.local._results import Estimate, Estimates, KeyEstimate, Marginal
from dither.local._shuffling import ShuffledReports
from dither.local._sources import (
    BadChunk,
    StreamCount,
    aggregate_stream,
    aggregate_table,
    reports_table,
)
from dither.local._structures.attributes import Attributes
from dither.local._structures.fake_data import FakeData
from dither.local._structures.heavy_hitters import HeavyHitters
from dither.local._structures.item_sets import ItemSets, KeyValue
from dither.local._structures.marginals import Marginals
from dither.local._structures.parts import PartCounts, Structure, structure_from_dict
from dither.local.wire import ReportFile, aggregate_file, read_reports, write_reports

__all__ = [
    "BLH",
    "CMS",
    "FLH",
    "GRR",
    "HCMS",
    "LOLOHA",
    "OLH",
    "OUE",
    "PM",
    "RAPPOR",
    "SDGRR",
    "SDPM",
    "SHE",
    "SUE",
    "SW",
    "THE",
    "URR",
    "Aggregate",
    "Attack",
    "Attributes",
    "BadChunk",
    "BloomRAPPOR",
    "Channel",
    "Choice",
    "ClassGame",
    "ClassPair",
    "Distribution",
    "Domain",
    "Duchi",
    "Estimate",
    "Estimates",
    "FakeData",
    "FiniteChannel",
    "GridPrivacy",
    "Guarantee",
    "Hadamard",
    "HeavyHitters",
    "Hybrid",
    "Interval",
    "ItemSets",
    "KeyEstimate",
    "KeyValue",
    "Laplace",
    "Marginal",
    "Marginals",
    "MeanEstimate",
    "Memory",
    "MinIDLDP",
    "PartCounts",
    "Personal",
    "ReportFile",
    "ShuffledReports",
    "StreamCount",
    "Structure",
    "SubsetSelection",
    "TruncatedGeometric",
    "aggregate_file",
    "aggregate_stream",
    "aggregate_table",
    "best",
    "channel_from_dict",
    "read_reports",
    "reports_table",
    "simulate",
    "simulate_attack",
    "structure_from_dict",
    "write_reports",
]
