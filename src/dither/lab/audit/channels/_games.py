"""The game of a channel: which of s inputs did a fair die choose, guessed from an output.

Game. A trial rolls a fair die among s inputs, draws an output of the channel on the one that it
shows, and guesses it from the output, or abstains.

Theorem. Under an epsilon of local privacy, of k guesses the right ones are dominated by a binomial
of k trials with a chance of ``e^epsilon/(e^epsilon + s - 1)`` each, given k.

Proof. Let E_v be the outputs for which v is guessed; they are apart. A trial is right with chance
R = (1/s)·Σ_v Pr[E_v | v] and wrong with W = (1/s)·Σ_v Σ_{w≠v} Pr[E_v | w]. For all w, Pr[E_v | v]
<= e^epsilon·Pr[E_v | w]; summed over the s - 1 others, (s - 1)·R <= e^epsilon·W. Trials are
independent, so that of the guesses each is right with chance R/(R + W), given how many there are.

With delta, (s - 1)·R <= e^epsilon·W + (s - 1)·delta: right guesses are of two parts, one of which
is a binomial of at most delta a trial, as in `dither.lab.audit._coins`, whose bound serves.

One bound of one chance, for any number of inputs: a guess of an input that is right twice as often
as the claim allows is seen in a few dozens of them, where s is large and e^epsilon is not; of two
inputs alone it would take s/2 times the outputs.

Inputs in groups of s, by a random order of them all, serve for smaller s: then the game is of the
group that the input is in. Two are best where each input has a bit of its own, all of them where
the output is one input.

Source. For s = 2: Steinke, Nasr and Jagielski, "Privacy auditing with one (1) training run",
NeurIPS 2023. Guesses of local channels by their supports: Arcolezi and Gambs, "Revealing the true
cost of locally differentially private protocols: an auditing perspective", PETS 2024.
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from dither._format import count_text
from dither.lab.audit._coins import odds_of
from dither.lab.audit._outcomes import Floats
from dither.lab.audit.channels._evidence import Evidence, Mask, Rows
from dither.numeric import SimulatedWords

__all__ = ["RULES", "GuessEvent", "certify_guesses", "choose_rules", "game_epsilon"]

RULES = 3
"""Rules that are certified."""

_CUTS = 48
_BLOCK = 4_000_000


@dataclass(frozen=True, slots=True)
class GuessEvent:
    """A certified rule of guessing inputs.

    Parameters
    ----------
    description : str
        By what is guessed; no value of an output.
    among : int
        Of how many inputs one is guessed.
    guesses, right, trials : int
        How many trials there were, in how many of them an input was guessed, and how often rightly.
    epsilon : float
        What it certifies, given the claimed delta: at least 0.
    refutes : bool
        Whether it contradicts the claim at the level of verdicts.
    """

    description: str
    among: int
    guesses: int
    right: int
    trials: int
    epsilon: float
    refutes: bool

    def __str__(self) -> str:
        return (
            f"guess one of {self.among:,} inputs, by {self.description}: {self.right:,} of "
            f"{count_text(self.guesses, 'guess', 'guesses')} right, in {self.trials:,} trials"
        )


@dataclass(frozen=True, slots=True)
class _Rule:
    """Guess where certainty is at least ``cut``, of inputs in these groups, shape (groups, s)."""

    evidence: Evidence
    groups: Rows
    cut: float
    worth: float


def game_epsilon(
    right: int, guesses: int, trials: int, among: int, level: float, delta: float = 0.0
) -> float:
    """The epsilon that guesses refute, or -inf where they say nothing.

    Examples
    --------
    >>> round(game_epsilon(40, 50, 10_000, 64, 1e-4), 2), game_epsilon(0, 50, 10_000, 64, 1e-4)
    (4.29, -inf)
    """
    odds = odds_of(right, guesses - right, trials, level, delta, both=True)
    # The logarithm errs by half a unit in its last place, and the sum by as much.
    return odds + math.log(among - 1) - 1e-12


def choose_rules(
    evidence: Iterable[Evidence],
    truth: Rows,
    scan: tuple[Mask, Mask],
    later: int,
    *,
    inputs: int,
    level: float,
    delta: float,
    words: SimulatedWords,
) -> list[_Rule]:
    """The few rules that promise to certify most in so many later trials.

    ``scan`` are the outputs that fitted evidence, and those that did not.
    """
    order = np.argsort(words.words(inputs), kind="stable")
    now: list[_Rule] = []
    hoped: list[_Rule] = []
    for one in evidence:
        part = scan[1] if one.fitted else scan[0] | scan[1]
        rows = np.flatnonzero(part)
        for size in _sizes(inputs):
            groups = order[: inputs // size * size].reshape(-1, size)
            right, certain = _guessed(one, groups, truth, rows)
            for pool, scale in ((now, 1.0), (hoped, later / max(1, rows.size))):
                best = _best(right, certain, scale, rows.size, size, level, delta)
                if best is not None:
                    pool.append(_Rule(one, groups, *best))
    chosen: list[_Rule] = []
    for pool, until in ((hoped, 1), (now, 2), (hoped, RULES)):
        for rule in sorted(pool, key=lambda r: -r.worth):
            if len(chosen) >= until:
                break
            if all(rule.groups is not c.groups or rule.cut != c.cut for c in chosen):
                chosen.append(rule)
    return chosen


def certify_guesses(
    rules: Iterable[_Rule],
    truth: Rows,
    trials: Mask,
    *,
    epsilon: float,
    delta: float,
    level: float,
    verdict: float,
) -> list[GuessEvent]:
    """Count chosen rules' guesses in trials that had no part in choosing, and bound their odds."""
    rows = np.flatnonzero(trials)
    found = []
    for rule in rules:
        size = rule.groups.shape[1]
        right, certain = _guessed(rule.evidence, rule.groups, truth, rows)
        made = certain >= rule.cut
        counts = int((right & made).sum()), int(made.sum()), int(rows.size), size
        certified = game_epsilon(*counts, level, delta)
        found.append(
            GuessEvent(
                rule.evidence.name,
                size,
                counts[1],
                counts[0],
                counts[2],
                max(0.0, certified),
                game_epsilon(*counts, verdict, delta) > epsilon,
            )
        )
    return sorted(found, key=lambda event: -event.epsilon)


def _sizes(inputs: int) -> list[int]:
    sizes = [2]
    while 4 * sizes[-1] < inputs:
        sizes.append(4 * sizes[-1])
    return sizes if sizes[-1] == inputs else [*sizes, inputs]


def _guessed(
    evidence: Evidence, groups: Rows, truth: Rows, rows: Rows
) -> tuple[npt.NDArray[np.bool_], Floats]:
    """Of each trial whether the guess is right, and how certain it is; NaN where none is made."""
    size = groups.shape[1]
    group = np.full(int(max(groups.max(), truth.max())) + 1, -1)
    group[groups] = np.arange(len(groups))[:, None]
    if evidence.own is not None:
        own = evidence.own[rows]
        made = (own >= 0) & (group[own] == group[truth[rows]]) & (group[own] >= 0)
        return made & (own == truth[rows]), np.where(made, 1.0, np.nan)
    right = np.zeros(rows.size, dtype=np.bool_)
    certain = np.full(rows.size, np.nan)
    step = max(1, _BLOCK // size)
    for i in range(0, rows.size, step):
        some = rows[i : i + step]
        held = group[truth[some]]
        members = groups[held]
        speaks = evidence.of(some, members)
        best = speaks.argmax(axis=1)
        guess = np.take_along_axis(members, best[:, None], axis=1)[:, 0]
        top = np.take_along_axis(speaks, best[:, None], axis=1)[:, 0]
        with np.errstate(all="ignore"):
            rest = np.exp(np.minimum(speaks - top[:, None], 0.0)).sum(axis=1) - 1.0
            sure = -np.log(np.maximum(rest, 1e-12))
        right[i : i + step] = guess == truth[some]
        certain[i : i + step] = np.where(np.isfinite(top) & (held >= 0), sure, np.nan)
    return right, certain


def _best(
    right: npt.NDArray[np.bool_],
    certain: Floats,
    scale: float,
    trials: int,
    among: int,
    level: float,
    delta: float,
) -> tuple[float, float] | None:
    """The cut that promises most, and what; as if all counts were so many times as large."""
    known = np.flatnonzero(~np.isnan(certain))
    if not known.size:
        return None
    order = known[np.argsort(-certain[known], kind="stable")]
    values, hits = certain[order], np.cumsum(right[order])
    ends = np.flatnonzero(np.append(values[1:] != values[:-1], True))
    if ends.size > _CUTS:
        places = np.geomspace(1, order.size, _CUTS).astype(np.int64) - 1
        ends = np.unique(ends[np.searchsorted(ends, places)])
    best: tuple[float, float] | None = None
    for end in ends.tolist():
        made, good = scale * (end + 1), scale * int(hits[end])
        if scale > 1:  # a wrong guess that was not seen yet is to be feared
            good = max(0.0, good - scale / 2)
        promised = game_epsilon(
            int(good), int(made), max(int(made), int(scale * trials)), among, level, delta
        )
        if promised > -math.inf and (best is None or promised > best[1]):
            best = float(values[end]), promised
    return best
