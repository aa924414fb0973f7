"""How guarantees combine: named theorems, calibration, shuffling, and adaptive spending.

What a composed loss *is*, to the last digit, is asked of `dither.privacy.Loss`; here are the ways
to bound it by name, to invert it, to amplify it by a shuffler and to spend it when the next
question depends on the last answer.
"""

from dither.privacy import theorems
from dither.privacy._calibration import calibrate
from dither.privacy._conversion import delta_of_rho as delta_of_rho
from dither.privacy._conversion import epsilon_of_rho, rho_of_epsilon
from dither.privacy._expressions import loss_from_expression
from dither.privacy._expressions import loss_from_toml as loss_from_toml
from dither.privacy._expressions import mix_from_expression as mix_from_expression
from dither.privacy.accounts._account import PrivacyFilter as PrivacyFilter
from dither.privacy.accounts._budget import BudgetFilter
from dither.privacy.accounts._budget import Remaining as Remaining
from dither.privacy.accounts._filters import (
    GdpFilter,
    Odometer,
    PureFilter,
    RenyiFilter,
    SqrtFilter,
    ZcdpFilter,
)
from dither.privacy.accounts._game import GameResult as GameResult
from dither.privacy.accounts._game import Move as Move
from dither.privacy.accounts._game import game
from dither.privacy.amplification._clones import shuffle_clones_2021 as shuffle_clones_2021
from dither.privacy.amplification._clones import shuffle_clones_2023 as shuffle_clones_2023
from dither.privacy.amplification._shuffling import Shuffled as Shuffled
from dither.privacy.amplification._shuffling import shuffle
from dither.privacy.division._division import Division as Division
from dither.privacy.division._division import divide
from dither.privacy.division._every_division import Component as Component
from dither.privacy.division._every_division import EveryDivision as EveryDivision
from dither.privacy.division._every_division import Share as Share
from dither.privacy.division._every_division import Shares as Shares
from dither.privacy.division._every_division import divide_by_every_theorem
from dither.privacy.division._every_theorem import EveryTheorem as EveryTheorem
from dither.privacy.division._every_theorem import Row as Row
from dither.privacy.division._every_theorem import by_every_theorem, shares_by_every_theorem
from dither.privacy.division._noise_division import Split as Split
from dither.privacy.division._noise_division import split
from dither.privacy.theorems import Parallel as Parallel

__all__ = [
    "BudgetFilter",
    "GdpFilter",
    "Odometer",
    "PureFilter",
    "RenyiFilter",
    "SqrtFilter",
    "ZcdpFilter",
    "by_every_theorem",
    "calibrate",
    "divide",
    "divide_by_every_theorem",
    "epsilon_of_rho",
    "game",
    "loss_from_expression",
    "rho_of_epsilon",
    "shares_by_every_theorem",
    "shuffle",
    "split",
    "theorems",
]
