"""The tight test of a ratio: which dataset a fair coin chose, guessed from an outcome.

Game. A trial flips a fair coin, draws an outcome of the dataset that it chose, and guesses the coin
where the outcome is in an event: one dataset where it is in A, and perhaps the other where it is in
B, apart from A. With r and w the chances that a trial ends in a right and in a wrong guess, an
epsilon alone gives r <= e^epsilon·w, whatever A and B are. So of k guesses the right ones are
binomial with a chance of at most e^epsilon/(1 + e^epsilon) each, given k: one bound of one chance,
where a bound of each of two probabilities pays for the errors of both.

With delta, r <= e^epsilon·w + d, with d = delta/2 for one event and delta for two: r is a sum of a
part r' <= e^epsilon·w and one of at most d, so that right guesses may be marked of which those of
the second part are a binomial of at most d. At most u of them are, up to a fifth of the level; if
so many are taken away, no more than the first part remains, and fewer right guesses only make a
claim likelier.

An audit has as many outcomes of each dataset, not as the coins fall. The number of trials is fixed
beforehand, a little below all outcomes; where the coins ask for more of a dataset than there are,
which they do 3 times in 1,000, nothing is certified. The coins are flipped before anything is
counted, and know no outcome: the statement holds for the game without an end, and is made there or
not at all.

Source. The game is that of Steinke, Nasr and Jagielski, "Privacy auditing with one (1) training
run", NeurIPS 2023, with one coin a run; the conditional test of two Poisson rates is Przyborowski
and Wilenski's, Biometrika 1940.
"""

from __future__ import annotations

import hashlib
import math
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from dither._search import least_integer
from dither._stats import binomial_tail_above, upper_bound
from dither.numeric import SimulatedWords

__all__ = ["PlayedCoins", "flip_coins", "odds_of", "own_words", "trials_of"]

_FOR_DELTA = 0.2
"""The share of a level that bounds what delta may have added."""


@dataclass(frozen=True, slots=True)
class PlayedCoins:
    """How many trials there are, and how many of them were of the second dataset.

    ``held`` says that there are outcomes enough of both.
    """

    trials: int
    heads: int
    held: bool

    def used(
        self, second: npt.NDArray[np.bool_], certifying: npt.NDArray[np.bool_]
    ) -> npt.NDArray[np.bool_]:
        """Which outcomes the trials take: so many of each dataset as the coins say."""
        taken = np.zeros(len(second), dtype=np.bool_)
        for side, count in ((False, self.trials - self.heads), (True, self.heads)):
            taken[np.flatnonzero(certifying & (second == side))[:count]] = True
        return taken


def trials_of(n: int) -> int:
    """How many trials n outcomes of each dataset serve, but for 3 times in 1,000.

    Examples
    --------
    >>> trials_of(100), trials_of(50_000)
    (157, 99051)
    """
    # Three deviations of the coins, of sqrt(2n)/2 each, are left of each dataset.
    return max(0, 2 * n - math.ceil(3.0 * math.sqrt(2 * n)))


def own_words(words: SimulatedWords) -> SimulatedWords:
    """A stream of the audit's own: of the given one a mechanism's noise may be drawn, too.

    Were outcomes split by the words that made them, those that certify would be others in law.
    """
    seed = hashlib.sha256(b"audit" + words.words(4).tobytes()).digest()
    return SimulatedWords(int.from_bytes(seed[:16], "big"))


def flip_coins(n: int, words: SimulatedWords) -> PlayedCoins:
    """Flip a coin for each trial that n outcomes of each dataset serve."""
    trials = trials_of(n)
    flipped = np.unpackbits(words.words(-(-trials // 64)).view(np.uint8))[:trials]
    heads = int(flipped.sum())
    return PlayedCoins(trials, heads, max(heads, trials - heads) <= n)


def odds_of(
    right: int, wrong: int, trials: int, level: float, delta: float = 0.0, *, both: bool = False
) -> float:
    """The epsilon that guesses refute, or -inf where they say nothing.

    Parameters
    ----------
    right, wrong : int
        Guesses.
    trials : int
        At least all of them.
    level : float
        In (0, 1): the probability that the bound is too high.
    delta : float
        At which epsilon is bounded.
    both : bool
        Whether both datasets are guessed, each on an event of its own.

    Examples
    --------
    >>> round(odds_of(25, 0, 99_051, 0.004), 2), round(odds_of(25, 5, 99_051, 0.004, 1e-5), 2)
    (1.4, 0.12)
    """
    if delta > 0:
        chance = delta if both else delta / 2
        rest = _FOR_DELTA * level
        over = lambda u: binomial_tail_above(trials, u + 1, chance) <= rest  # noqa: E731
        most = least_integer(over, 0, step=max(1, math.ceil(trials * chance)), most=trials)
        right -= trials if most is None else most
        level -= rest
    if right <= 0:
        return -math.inf
    share = upper_bound(wrong, right + wrong, level)
    # Of two logarithms, which are at most 745 and err by a unit in their last places, as in
    # `epsilon_of`.
    return math.log1p(-share) - math.log(share) - 1e-12 if share < 1.0 else -math.inf
