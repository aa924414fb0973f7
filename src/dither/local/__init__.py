"""Local privacy: noise on the device, counts on the server, estimates with honest errors.

A `Channel` is the public agreement between the two: `Channel.privatize` on the device,
`Channel.aggregate` and `Aggregate.estimate` on the server.
"""

from dither.local._attack import Attack as Attack
from dither.local._attack import ClassGame as ClassGame
from dither.local._attack import simulate_attack as simulate_attack
from dither.local._channel import Channel as Channel
from dither.local._domain import Domain
from dither.local._estimates.results import Estimate as Estimate
from dither.local._frequency.bloom import BloomRAPPOR
from dither.local._frequency.graded import SDGRR, URR
from dither.local._frequency.grr import GRR
from dither.local._frequency.hadamard import Hadamard
from dither.local._frequency.histogram import SHE, THE
from dither.local._frequency.local_hash import BLH, FLH, OLH
from dither.local._frequency.loloha import LOLOHA
from dither.local._frequency.matrix import MatrixChannel, MetricChannel
from dither.local._frequency.metric import GridPrivacy, TruncatedGeometric
from dither.local._frequency.min_id import MinIDLDP
from dither.local._frequency.rappor import RAPPOR
from dither.local._frequency.sketch import CMS, HCMS
from dither.local._frequency.subset import SubsetSelection
from dither.local._frequency.unary import OUE, SUE
from dither.local._guarantee import ClassPair as ClassPair
from dither.local._guarantee import Guarantee as Guarantee
from dither.local._numbers.duchi import Duchi, Hybrid
from dither.local._numbers.interval import Interval
from dither.local._numbers.laplace import LatticeLaplace
from dither.local._numbers.results import Distribution as Distribution
from dither.local._numbers.results import MeanEstimate as MeanEstimate
from dither.local._numbers.sdpm import SDPM
from dither.local._numbers.window import PM, SW
from dither.local._oracles import FiniteChannel as FiniteChannel
from dither.local._personal import Personal
from dither.local._planning import ChosenChannel as ChosenChannel
from dither.local._planning import best, simulate
from dither.local._registry import channel_from_dict
from dither.local._reports.aggregate import Aggregate as Aggregate
from dither.local._reports.memory import Memory
from dither.local._reports.sources import BadChunk as BadChunk
from dither.local._reports.sources import StreamCount as StreamCount
from dither.local._reports.sources import aggregate_stream as aggregate_stream
from dither.local._reports.sources import aggregate_table as aggregate_table
from dither.local._reports.sources import reports_table as reports_table
from dither.local._shuffling import ShuffledReports as ShuffledReports
from dither.local._structures.attributes import Attributes
from dither.local._structures.candidates import CandidateCount, CandidateSets
from dither.local._structures.fake_data import FakeData
from dither.local._structures.heavy_hitters import HeavyHitters
from dither.local._structures.item_sets import ItemSets, KeyValue
from dither.local._structures.marginals import Marginals
from dither.local._structures.mining import FrequentItemSets, FrequentSets, MiningRound
from dither.local._structures.parts import PartCounts as PartCounts
from dither.local._structures.parts import Structure as Structure
from dither.local._structures.parts import structure_from_dict as structure_from_dict
from dither.local._structures.results import Estimates as Estimates
from dither.local._structures.results import KeyEstimate as KeyEstimate
from dither.local._structures.results import Marginal as Marginal
from dither.local.wire import ReportFile as ReportFile
from dither.local.wire import aggregate_file, write_reports
from dither.local.wire import read_reports as read_reports

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
    "Attributes",
    "BloomRAPPOR",
    "CandidateCount",
    "CandidateSets",
    "Domain",
    "Duchi",
    "FakeData",
    "FrequentItemSets",
    "FrequentSets",
    "GridPrivacy",
    "Hadamard",
    "HeavyHitters",
    "Hybrid",
    "Interval",
    "ItemSets",
    "KeyValue",
    "LatticeLaplace",
    "Marginals",
    "MatrixChannel",
    "Memory",
    "MetricChannel",
    "MinIDLDP",
    "MiningRound",
    "Personal",
    "SubsetSelection",
    "TruncatedGeometric",
    "aggregate_file",
    "best",
    "channel_from_dict",
    "simulate",
    "write_reports",
]
