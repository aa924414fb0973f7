"""How guarantees combine: named theorems, calibration, shuffling, and adaptive spending.

What a composed loss *is*, to the last digit, is asked of `dither.privacy.Loss`; here are the ways
to bound it by name, to invert it, to amplify it by a shuffler and to spend it when the next
question depends on the last answer.
"""

from dither.accounting.calibrate import calibrate
from dither.accounting.comparing import (
    EveryTheorem,
    Row,
    by_every_theorem,
    shares_by_every_theorem,
)
from dither.accounting.dividing import Division, divide
from dither.accounting.filters import BudgetFilter, Remaining
from dither.accounting.game import GameResult, Move, game
from dither.accounting.mixing import (
    EveryDivision,
    Part,
    Share,
    Shares,
    divide_by_every_theorem,
)
from dither.accounting.reading import loss_from_expression, loss_from_toml, mix_from_expression
from dither.accounting.shuffling import (
    Shuffled,
    shuffle,
    shuffle_clones_2021,
    shuffle_clones_2023,
)
from dither.accounting.spending import (
    Filter,
    GdpFilter,
    Odometer,
    PureFilter,
    RenyiFilter,
    SqrtFilter,
    ZcdpFilter,
)
from dither.accounting.splitting import Split, split
from dither.accounting.theorems import (
    Parallel,
    advanced,
    advanced_heterogeneous,
    basic,
    corollary_share,
    group,
    heterogeneous,
    optimal,
    parallel,
    share,
    zcdp_composition,
)
from dither.accounting.zcdp import delta_of_rho, epsilon_of_rho, rho_of_epsilon

__all__ = [
    "BudgetFilter",
    "Division",
    "EveryDivision",
    "EveryTheorem",
    "Filter",
    "GameResult",
    "GdpFilter",
    "Move",
    "Odometer",
    "Parallel",
    "Part",
    "PureFilter",
    "Remaining",
    "RenyiFilter",
    "Row",
    "Share",
    "Shares",
    "Shuffled",
    "Split",
    "SqrtFilter",
    "ZcdpFilter",
    "advanced",
    "advanced_heterogeneous",
    "basic",
    "by_every_theorem",
    "calibrate",
    "corollary_share",
    "delta_of_rho",
    "divide",
    "divide_by_every_theorem",
    "epsilon_of_rho",
    "game",
    "group",
    "heterogeneous",
    "loss_from_expression",
    "loss_from_toml",
    "mix_from_expression",
    "optimal",
    "parallel",
    "rho_of_epsilon",
    "share",
    "shares_by_every_theorem",
    "shuffle",
    "shuffle_clones_2021",
    "shuffle_clones_2023",
    "split",
    "zcdp_composition",
]
