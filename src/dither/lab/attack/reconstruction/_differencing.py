"""Differencing: two counts that differ in one person.

The game: the secret is whether a target meets a condition, and a blind guess says what most targets
do. The attacker asks how many people meet it, then how many meet it besides the target, and guesses
from the difference. Exact answers give 0 or 1: certainty, however large both counts are.

*The bound.* The target is in one of the two answers only: whatever she did, she is not in the
second. So of what both cost, only the first answer tells anything of her, and its own loss bounds
the guess: at (epsilon, 0) and even odds nobody is right more often than e^epsilon/(1 + e^epsilon).
An attacker who knows everybody else needs no second answer and reaches that bound against
discrete Laplace noise; the difference of two noisy answers falls short of it, and how far is
computed here from the law of the noise. Asking r times puts the target in r answers.

Controls: the same rule on differences without noise, and on those of strangers.

Source. Denning, Denning and Schwartz, "The tracker", 1979; Kairouz, Oh and Viswanath, 2015.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from fractions import Fraction
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from dither._checks import confidence as check_confidence
from dither._checks import whole
from dither._format import Printable, count_text, loss_text
from dither.errors import ArgumentError
from dither.lab._calls import answered
from dither.lab._simulation import SimulatedWorld
from dither.lab._verdicts import paragraph
from dither.lab.attack._roc import Floats, Mask
from dither.lab.attack._verdict import Score, Verdict, judge, most_right, pure_epsilon
from dither.privacy import Loss, approximate, compose

if TYPE_CHECKING:
    from matplotlib.figure import Figure

__all__ = ["Differencing", "differencing", "predicted_difference"]

Answer = Callable[[str], "float | None"]


@dataclass(frozen=True, slots=True, eq=False)
class Differencing(Printable):
    """The result of `differencing`.

    Attributes
    ----------
    targets : int
    differences : array of float64
        Of each target, the mean over repeats; NaN where an answer was refused.
    guesses : array of bool
        Whether the target meets the secret condition, as the attacker says.
    loss : Loss or None
        What the answers that a target is in lose about that target; None where nothing is
        promised.
    spent : Fraction
        Epsilon that the session charged for all answers about all targets.
    verdict : Verdict or None
        None where the truth was not given.
    """

    targets: int
    differences: Floats = field(repr=False)
    guesses: Mask = field(repr=False)
    loss: Loss | None
    spent: Fraction
    verdict: Verdict | None

    def summary(self) -> str:
        """What was found, and the verdict."""
        says = int(self.guesses.sum())
        targets = count_text(self.targets, "target")
        text = f"{targets}: the attacker says that {says:,} meet the secret."
        if self.spent:
            text += f" The session charged ε = {loss_text(self.spent, 6)} in all."
        shown = paragraph([text])
        return shown if self.verdict is None else f"{shown}\n{self.verdict.summary()}"

    def plot(self, path: str | Path | None = None) -> Figure:
        """Draw the differences of those who meet the secret and of those who do not.

        Saved to ``path`` (.png, .svg or .pdf) where one is given.

        Raises
        ------
        ArgumentError
            Where the truth was not given.
        """
        if self.verdict is None:
            raise ArgumentError("truth was not given: there is nothing to draw the guesses against")
        return self.verdict.plot(path)


def differencing(
    session: Any,
    target: str | Sequence[str],
    secret: str,
    *,
    table: str | None = None,
    epsilon: float | str | Fraction | None = None,
    loss: Loss | None = None,
    repeats: int = 1,
    others: int | Sequence[int] | None = None,
    truth: bool | Sequence[bool] | None = None,
    name: str | None = None,
    seed: int | np.random.Generator = 0,
    confidence: float = 0.99,
) -> Differencing:
    """Learn one person's answer from two counts.

    Parameters
    ----------
    session : session, or callable
        A session of `dither`, whose ledger is charged; or ``session(condition)``, which gives the
        count of rows that meet a condition in SQL, or None where it refuses.
    target : str or sequence of str
        Conditions that only the target meets: ``"age = 32 AND children = 3"``.
    secret : str
        The condition that the attacker wants to know of the target.
    table : str, optional
        Of the session; not needed where it has one.
    epsilon : number, optional
        Of each release of the session.
    loss : Loss, optional
        What one answer of a callable loses; None promises nothing. A session says it itself.
    repeats : int
        How often both counts are asked.
    others : int or sequence of int, optional
        How many besides the target meet the secret, where the attacker knows that; the second count
        is then not asked.
    truth : bool or sequence of bool, optional
        Whether each target meets the secret. To score the attack, which never sees it. Choose
        targets at random, half of them with the secret, for even odds.
    name : str, optional
        What the release is called in the verdict.
    seed : int or numpy.random.Generator
        Of the null control.
    confidence : float
        In (0, 1).

    Raises
    ------
    ArgumentError
        For arguments that do not fit each other.

    Examples
    --------
    >>> people = [("Ann", 1), ("Bob", 0), ("Cid", 1)]
    >>> def exact(condition):
    ...     left_out = condition.split("'")[1] if "NOT" in condition else ""
    ...     return sum(ill for name, ill in people if name != left_out)
    >>> targets = ["name = 'Ann'", "name = 'Bob'"]
    >>> differencing(exact, targets, "ill = 1").guesses.tolist()
    [True, False]
    """
    chosen = [target] if isinstance(target, str) else list(target)
    if not chosen or not all(isinstance(one, str) and one.strip() for one in chosen):
        raise ArgumentError("target must be a condition in SQL, or a list of them")
    rounds = whole("repeats", repeats, 1)
    real = _truth(truth, len(chosen))
    known = _others(others, len(chosen))
    level = check_confidence(confidence)
    counts = _Counts.of(session, table, epsilon, loss)
    differences = np.empty(len(chosen))
    first: list[Loss] = []
    for i, condition in enumerate(chosen):
        seen = []
        for _ in range(rounds):
            with_target, lost = counts.ask(secret)
            if i == 0 and lost is not None:
                first.append(lost)
            rest = (
                known[i]
                if known
                else counts.ask(f"({_part(secret)}) AND NOT ({_part(condition)})")[0]
            )
            seen.append(with_target - rest)
        differences[i] = float(np.mean(seen))
    guesses = _guess(differences)
    total = compose(*first) if first else None
    verdict = None
    if real is not None:
        verdict = _verdict(
            guesses,
            real,
            total,
            _predicted(counts.scale, rounds, known is not None),
            name or counts.name(rounds),
            SimulatedWorld.of(seed),
            level,
        )
    return Differencing(len(chosen), differences, guesses, total, counts.spent, verdict)


def predicted_difference(scale: float, repeats: int = 1, *, alone: bool = False) -> float:
    """The chance to be right with discrete Laplace noise of this scale on each count, at even odds.

    Parameters
    ----------
    scale : float
        Above 0: noise k has probability in proportion to exp(-|k|/scale).
    repeats : int
        How often each count is asked; the differences are averaged.
    alone : bool
        Whether the second count is known, and so has no noise.

    Examples
    --------
    >>> round(predicted_difference(1.0, alone=True), 4), round(predicted_difference(1.0), 4)
    (0.7311, 0.6402)
    """
    draws = repeats * (1 if alone else 2)
    reach = math.ceil(scale * (40 + 6 * math.sqrt(draws)))
    # So long that what wraps around is nothing, and a power of two for the transform.
    size = 1 << (2 * reach * max(2, math.isqrt(draws) + 1)).bit_length()
    k = np.arange(size)
    law = np.exp(-np.minimum(k, size - k) / scale)
    total = np.fft.irfft(np.fft.rfft(law / law.sum()) ** draws, size)
    noise = np.where(k <= size // 2, k, k - size)
    # Who has the secret shifts the sum by ``repeats``; the rule is a mean above a half.
    return float((total[2 * noise > -repeats].sum() + total[2 * noise <= repeats].sum()) / 2.0)


@dataclass(slots=True)
class _Counts:
    """Where counts are asked; it keeps what they cost."""

    answer: Callable[[str], tuple[float, Loss | None]]
    spent: Fraction = Fraction(0)
    scale: float | None = None
    each: Fraction | None = None

    def ask(self, condition: str) -> tuple[float, Loss | None]:
        """A count, NaN where it is refused, and what it loses."""
        return self.answer(condition)

    def name(self, repeats: int) -> str:
        """What to call the release."""
        times = f", {repeats} times" if repeats > 1 else ""
        if self.each is None:
            return f"the answers given{times}"
        return f"counts at ε = {loss_text(self.each, 6)} each{times}"

    @staticmethod
    def of(session: Any, table: str | None, epsilon: Any, loss: Loss | None) -> _Counts:
        if hasattr(session, "sql") and hasattr(session, "tables"):
            if loss is not None:
                raise ArgumentError("loss is for callables: a session says itself what it loses")
            return _Counts._of_session(session, table, epsilon)
        if not callable(session):
            raise ArgumentError("session must be a session of dither, or a function of a condition")
        if epsilon is not None or table is not None:
            raise ArgumentError("epsilon and table are for sessions: give loss= to a callable")

        def answer(condition: str) -> tuple[float, Loss | None]:
            found = answered("session", session, condition)
            try:
                return (math.nan if found is None else float(found)), loss
            except (TypeError, ValueError):
                pass
            raise ArgumentError("session must answer a condition with a number, or None to refuse")

        return _Counts(answer)

    @staticmethod
    def _of_session(session: Any, table: str | None, epsilon: Any) -> _Counts:
        names = list(session.tables)
        if table is None and len(names) != 1:
            raise ArgumentError(f"table must be one of {', '.join(map(repr, names))}")
        if epsilon is None:
            raise ArgumentError("epsilon must say what each release of the session may cost")
        counts = _Counts(lambda _: (math.nan, None))

        def answer(condition: str) -> tuple[float, Loss | None]:
            text = f"SELECT COUNT(*) AS n FROM {table or names[0]} WHERE {condition}"
            release = session.sql(text).release(epsilon)
            body = release.certificate.to_dict()
            lost = body["loss"]
            counts.each = Fraction(lost["epsilon"])
            counts.spent += counts.each
            kinds = [m for m in body["measurements"] if m["mechanism"] == "discrete Laplace"]
            counts.scale = float(Fraction(kinds[0]["scale"])) if len(kinds) == 1 else None
            return float(release.frame["n"][0]), approximate(
                float(counts.each), float(Fraction(lost["delta"]))
            )

        counts.answer = answer
        return counts


def _part(condition: str) -> str:
    """A condition as a part of a longer one, whatever it ends in."""
    found = condition.rstrip().rstrip(";").rstrip()
    return f"{found}\n" if "--" in found else found


def _guess(differences: Floats) -> Mask:
    """The attacker's rule; of a refused answer it says no."""
    return np.asarray(np.nan_to_num(differences, nan=0.0) > 0.5)


def _truth(given: bool | Sequence[bool] | None, targets: int) -> Mask | None:
    if given is None:
        return None
    found = np.atleast_1d(np.asarray(given))
    if found.shape != (targets,) or found.dtype != bool:
        raise ArgumentError("truth must be True or False for each target")
    if targets < 2 or found.all() or not found.any():
        raise ArgumentError("truth must have targets with the secret and targets without")
    return found


def _others(given: int | Sequence[int] | None, targets: int) -> list[int] | None:
    if given is None:
        return None
    found = [given] * targets if isinstance(given, int) else [int(n) for n in given]
    if len(found) != targets:
        raise ArgumentError("others must be a number, or one for each target")
    return found


def _predicted(scale: float | None, repeats: int, alone: bool) -> float | None:
    return None if scale is None else predicted_difference(scale, repeats, alone=alone)


def _verdict(
    guesses: Mask,
    real: Mask,
    total: Loss | None,
    predicted: float | None,
    name: str,
    generator: np.random.Generator,
    confidence: float,
) -> Verdict:
    share = float(real.mean())
    prior = max(share, 1.0 - share)
    bound = most_right(total, prior)
    return judge(
        game="does the target meet the secret",
        release=name,
        attack="differencing",
        score=Score.of_guesses(guesses, real),
        control=Score.of_guesses(_guess(real.astype(np.float64)), real),
        null=Score.of_guesses(guesses, generator.permutation(real)),
        prior=prior,
        bound=bound,
        # Right guesses about targets with and without the secret, drawn by pairs of their own, are
        # sums of independent trials of mean at most the bound; beyond their mean such sums have
        # no heavier tail than a binomial (Hoeffding, 1956).
        pure=None if total is None else bound,
        epsilon=pure_epsilon(total),
        predicted=predicted if prior == 0.5 else None,
        confidence=confidence,
    )
