"""Local privacy: noise on the device, counts on the server, estimates with honest errors.

A `Channel` is the public agreement between the two: `Channel.privatize` on the device,
`Channel.aggregate` and `Aggregate.estimate` on the server.
"""

from dither.local.adversary import Attack, ClassGame, simulate_attack
from dither.local.aggregate import Aggregate
from dither.local.best import Choice, best
from dither.local.channel import Channel, channel_from_dict
from dither.local.domain import Domain
from dither.local.estimate import Estimate
from dither.local.finite import FiniteChannel
from dither.local.frequency.bloom import BloomFindings, BloomRAPPOR
from dither.local.frequency.grr import GRR
from dither.local.frequency.hadamard import Hadamard
from dither.local.frequency.histogram import SHE, THE
from dither.local.frequency.local_hash import BLH, FLH, OLH
from dither.local.frequency.loloha import LOLOHA
from dither.local.frequency.metric import GridPrivacy, TruncatedGeometric
from dither.local.frequency.min_id import MinIDLDP
from dither.local.frequency.personal import Personal, PersonalAggregate, PersonalEstimate
from dither.local.frequency.rappor import RAPPOR
from dither.local.frequency.sdgrr import SDGRR
from dither.local.frequency.sketch import CMS, HCMS
from dither.local.frequency.subset import SubsetSelection
from dither.local.frequency.unary import OUE, SUE
from dither.local.frequency.urr import URR
from dither.local.guarantee import ClassPair, Guarantee
from dither.local.means.distribution import Distribution
from dither.local.means.duchi import Duchi
from dither.local.means.em import em, pooled_em
from dither.local.means.hybrid import Hybrid
from dither.local.means.interval import Interval
from dither.local.means.laplace import Laplace
from dither.local.means.mean import MeanEstimate, mean
from dither.local.means.personalised import Personalised
from dither.local.means.piecewise import PM
from dither.local.means.sdpm import SDPM
from dither.local.means.square_wave import SW
from dither.local.means.weighted import Weighted
from dither.local.memory import Memory
from dither.local.shuffling import ShuffledReports
from dither.local.simulate import simulate
from dither.local.streams import BadChunk, StreamCount, aggregate_stream
from dither.local.structures.attributes import Attributes
from dither.local.structures.fake_data import FakeData
from dither.local.structures.heavy_hitters import HeavyHitters
from dither.local.structures.item_sets import ItemSets
from dither.local.structures.key_value import KeyValue
from dither.local.structures.marginals import Marginals
from dither.local.structures.parts import PartCounts, Structure, structure_from_dict
from dither.local.tables import aggregate_table, reports_table
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
    "BloomFindings",
    "BloomRAPPOR",
    "Channel",
    "Choice",
    "ClassGame",
    "ClassPair",
    "Distribution",
    "Domain",
    "Duchi",
    "Estimate",
    "FakeData",
    "FiniteChannel",
    "GridPrivacy",
    "Guarantee",
    "Hadamard",
    "HeavyHitters",
    "Hybrid",
    "Interval",
    "ItemSets",
    "KeyValue",
    "Laplace",
    "Marginals",
    "MeanEstimate",
    "Memory",
    "MinIDLDP",
    "PartCounts",
    "Personal",
    "PersonalAggregate",
    "PersonalEstimate",
    "Personalised",
    "ReportFile",
    "ShuffledReports",
    "StreamCount",
    "Structure",
    "SubsetSelection",
    "TruncatedGeometric",
    "Weighted",
    "aggregate_file",
    "aggregate_stream",
    "aggregate_table",
    "best",
    "channel_from_dict",
    "em",
    "mean",
    "pooled_em",
    "read_reports",
    "reports_table",
    "simulate",
    "simulate_attack",
    "structure_from_dict",
    "write_reports",
]
