"""Games: who plays for what, what is released, and who guesses.

An experiment is a `Game` (the secret, its prior, the neighbour relation, what the adversary knows),
a `BlackBox` (what is published of the secret) and an `Adversary`, who sees what is public and what
was released, and never the secret. Every run plays three times on secrets of its own: against the
release, against the bare truth (the *undefended control*, which must succeed) and against a release
of somebody else's secret (the *null control*, which must do no better than a blind guess).
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from dither._checks import confidence as check_confidence
from dither._checks import whole
from dither.lab._calls import answered
from dither.lab._simulation import SimulatedWorld
from dither.lab.attack._verdict import (
    Score,
    Verdict,
    judge,
    most_certain,
    most_right,
    pure_epsilon,
)
from dither.privacy import Loss

__all__ = ["Adversary", "BlackBox", "Experiment", "Game"]


@dataclass(frozen=True, slots=True)
class Game:
    """What the attacker tries to guess.

    Parameters
    ----------
    name : str
    secret : str
        In words: what the adversary tries to learn.
    prior : float
        In [0.5, 1): the chance of the best blind guess of one target, which has two values. Targets
        are drawn independently: the bound is of one of them, given all others.
    neighbours : str
        In words: what flipping one target does to the table, so which loss bounds the game.
    knows : str
        In words: all that the adversary has besides the release.
    draw : callable
        ``draw(generator)`` gives (secret, public).
    score : callable
        ``score(secret, guess)`` gives (hits, targets).
    """

    name: str
    secret: str
    prior: float
    neighbours: str
    knows: str
    draw: Callable[[np.random.Generator], tuple[Any, Any]]
    score: Callable[[Any, Any], tuple[int, int]]


@dataclass(frozen=True, slots=True)
class BlackBox:
    """What is published of a secret: a black box, and what its owner says of it.

    Parameters
    ----------
    name : str
    publish : callable
        ``publish(secret, public, generator)`` gives what everybody sees.
    loss : Loss, optional
        What the whole release loses about one target: flipping it is one step between neighbours.
        None where nothing is promised.
    sigma : float, optional
        The standard deviation of an answer's noise, where it is known.
    error : float, optional
        The largest error of any answer, where it is known.
    outliers : bool
        Whether some answers err far more than most, as under Laplace noise or corruption. Who knows
        how answers are made chooses the attack by it.
    """

    name: str
    publish: Callable[[Any, Any, np.random.Generator], Any]
    loss: Loss | None = None
    sigma: float | None = None
    error: float | None = None
    outliers: bool = False

    @property
    def epsilon(self) -> float | None:
        """The pure epsilon of its loss; None where it has none."""
        return pure_epsilon(self.loss)


@dataclass(frozen=True, slots=True)
class Adversary:
    """Who guesses.

    Parameters
    ----------
    name : str
    guess : callable
        ``guess(public, released)`` gives the guess; it is never handed the secret.
    """

    name: str
    guess: Callable[[Any, Any], Any]


@dataclass(frozen=True, slots=True)
class Experiment:
    """A game, a release and an attack, ready to run.

    Parameters
    ----------
    game : Game
    release : BlackBox
    adversary : Adversary
    undefended : BlackBox
        What the attack must succeed against.
    predicted : float, optional
        The success that theory predicts.
    promised : float, optional
        The success that a theorem promises the attacker, at the least.
    """

    game: Game
    release: BlackBox
    adversary: Adversary
    undefended: BlackBox
    predicted: float | None = None
    promised: float | None = None

    def run(
        self,
        runs: int = 1,
        *,
        seed: int | np.random.Generator = 0,
        confidence: float = 0.99,
        controls: bool = True,
    ) -> Verdict:
        """Play, and judge.

        Parameters
        ----------
        runs : int
            Independent plays, at least 1.
        seed : int or numpy.random.Generator
            Of secrets and simulated noise. A release may draw noise of its own besides.
        confidence : float
            In (0, 1).
        controls : bool
            Whether to play the two controls; without them the verdict is *inconclusive*.
        """
        plays = whole("runs", runs, 1)
        confidence = check_confidence(confidence)
        rng = SimulatedWorld.of(seed)
        defended = [self._play(self.release, rng) for _ in range(plays)]
        control = null = None
        if controls:
            control = Score.of(self._play(self.undefended, rng) for _ in range(plays))
            null = Score.of(self._play(self.release, rng, other=True) for _ in range(plays))
        return judge(
            game=self.game.name,
            release=self.release.name,
            attack=self.adversary.name,
            score=Score.of(defended),
            control=control,
            null=null,
            prior=self.game.prior,
            bound=most_right(self.release.loss, 1.0 - self.game.prior),
            pure=self._pure(),
            epsilon=self.release.epsilon,
            predicted=self.predicted,
            promised=self.promised,
            confidence=confidence,
        )

    def _play(
        self, release: BlackBox, rng: np.random.Generator, *, other: bool = False
    ) -> tuple[int, int]:
        secret, public = self.game.draw(rng)
        published = self.game.draw(rng)[0] if other else secret
        shown = answered(f"the release {release.name!r}", release.publish, published, public, rng)
        guess = answered(f"the attack {self.adversary.name!r}", self.adversary.guess, public, shown)
        return self.game.score(secret, guess)

    def _pure(self) -> float | None:
        """What a pure loss lets a guess reach, given all other targets: of posterior odds."""
        epsilon = self.release.epsilon
        return None if epsilon is None else most_certain(epsilon, self.game.prior)
