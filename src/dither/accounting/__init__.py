"""How guarantees combine: named theorems, calibration, shuffling, and adaptive spending.

What a composed loss *is*, to the last digit, is asked of `dither.privacy.Loss`; here are the ways
to bound it by name, to invert it, to amplify it by a shuffler and to spend it when the next
question depends on the last answer.
"""

from dither.accounting import theorems
from dither.accounting.calibrate import calibrate
from dither.accounting.comparing import EveryTheorem as EveryTheorem
from dither.accounting.comparing import Row as Row
from dither.accounting.comparing import by_every_theorem, shares_by_every_theorem
from dither.accounting.dividing import Division as Division
from dither.accounting.dividing import divide
from dither.accounting.filters import BudgetFilter
from dither.accounting.filters import Remaining as Remaining
from dither.accounting.game import GameResult as GameResult
from dither.accounting.game import Move, game
from dither.accounting.mixing import EveryDivision as EveryDivision
from dither.accounting.mixing import Part, divide_by_every_theorem
from dither.accounting.mixing import Share as Share
from dither.accounting.mixing import Shares as Shares
from dither.accounting.reading import loss_from_expression
from dither.accounting.reading import loss_from_toml as loss_from_toml
from dither.accounting.reading import mix_from_expression as mix_from_expression
from dither.accounting.shuffling import Shuffled as Shuffled
from dither.accounting.shuffling import shuffle
from dither.accounting.shuffling import shuffle_clones_2021 as shuffle_clones_2021
from dither.accounting.shuffling import shuffle_clones_2023 as shuffle_clones_2023
from dither.accounting.spending import Filter as Filter
from dither.accounting.spending import (
    GdpFilter,
    Odometer,
    PureFilter,
    RenyiFilter,
    SqrtFilter,
    ZcdpFilter,
)
from dither.accounting.splitting import Split as Split
from dither.accounting.splitting import split
from dither.accounting.theorems import Parallel as Parallel
from dither.accounting.zcdp import delta_of_rho as delta_of_rho
from dither.accounting.zcdp import epsilon_of_rho, rho_of_epsilon

__all__ = [
    "BudgetFilter",
    "GdpFilter",
    "Move",
    "Odometer",
    "Part",
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
