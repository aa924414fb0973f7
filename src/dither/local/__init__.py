"""Local privacy: noise on the device, counts on the server, estimates with honest errors.

A `Channel` is the public agreement between the two: `Channel.privatize` on the device,
`Channel.aggregate` and `Aggregate.estimate` on the server.
"""

from dither.local.adversary import Attack, ClassGame, simulate_attack
from dither.local.aggregate import Aggregate
from dither.local.channel import Channel, channel_from_dict
from dither.local.domain import Domain
from dither.local.estimate import Estimate
from dither.local.finite import FiniteChannel
from dither.local.frequency.grr import GRR
from dither.local.frequency.local_hash import BLH, FLH, OLH
from dither.local.frequency.sdgrr import SDGRR
from dither.local.frequency.urr import URR
from dither.local.guarantee import ClassPair, Guarantee
from dither.local.shuffling import ShuffledReports
from dither.local.simulate import simulate

__all__ = [
    "BLH",
    "FLH",
    "GRR",
    "OLH",
    "SDGRR",
    "URR",
    "Aggregate",
    "Attack",
    "Channel",
    "ClassGame",
    "ClassPair",
    "Domain",
    "Estimate",
    "FiniteChannel",
    "Guarantee",
    "ShuffledReports",
    "channel_from_dict",
    "simulate",
    "simulate_attack",
]
