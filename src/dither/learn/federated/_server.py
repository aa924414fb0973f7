"""One run of federated averaging: rounds that are opened, filled and closed, and what goes wrong.

The server opens a round, which samples its clients and says what they need to know (`Task`). What
they send is taken in any order, once each. Closing adds the noise and moves the model.

Faults. A client that drops out adds nothing, and the divisor is what it was. An update that is not
finite counts as zeros, one that is too long is cut as every long one, a vector that is not one of
this round's is left out, and so is what comes twice, from a client that was not asked, or for
another round. None raises: data of one client cannot stop the others. How often each happened is
counted, without saying to whom. These counts are for the operator; no noise is in them.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

import numpy as np

from dither._format import count_text
from dither.errors import ArgumentError, RoundError
from dither.learn.federated._encoding import Floats, Integers, UpdateEncoding, uniform
from dither.learn.federated._fedavg import FedAvg
from dither.learn.federated._noise import NoiseShare
from dither.numeric import Words, secure_words

__all__ = ["Faults", "Round", "Server", "Task"]

_SHORTEST, _LONGEST = 1e-290, 1e100
"""Between them a clip that follows a quantile stays: units over it are doubles, too."""


@dataclass(slots=True)
class Faults:
    """How often something was wrong with what clients sent; no client is named.

    Parameters
    ----------
    missing : int
        Asked, and nothing came before the round was closed.
    not_finite : int
        Updates with NaN or infinite numbers, counted as zeros.
    misshapen : int
        Of another size or kind, or beyond the modulus; left out.
    twice : int
        A second one of the same client and round; left out.
    out_of_turn : int
        From one who was not asked, or for another round; left out.
    """

    missing: int = 0
    not_finite: int = 0
    misshapen: int = 0
    twice: int = 0
    out_of_turn: int = 0


@dataclass(frozen=True, eq=False)
class Task:
    """What a client is told of a round: enough to make its vector, and nothing of other clients.

    Parameters
    ----------
    number : int
        Of the round.
    parameters : array of float, shape (dimension,)
    clip : float
    encoding : UpdateEncoding
    signs : array of int, shape (width,)
        Of the public rotation.
    share : NoiseShare, optional
        The noise that the client adds; None where the server adds it.
    bits : int
        Of the modulus; 0 where the noise is the server's.
    """

    number: int
    parameters: Floats
    clip: float
    encoding: UpdateEncoding
    signs: Integers
    share: NoiseShare | None
    bits: int

    @classmethod
    def of(
        cls, plan: FedAvg, number: int, parameters: Floats, clip: float, signs: Integers
    ) -> Task:
        """The task of a plan's round: noise, lattice and modulus are the plan's."""
        distributed = plan.distributed is not None
        share, bits = (plan.share(), plan.bits) if distributed else (None, 0)
        return cls(number, parameters, clip, plan.encoding, signs, share, bits)

    def contribution(self, update: Any, words: Words | None = None) -> Integers:
        """A client's vector: its update in integers, with its share of noise, modulo 2^bits.

        An update that is not finite, or of another size, is sent as zeros with their noise.

        Parameters
        ----------
        update : array of float, shape (dimension,)
        words : Words, optional
            Another source of randomness, for simulation only.
        """
        source = words or secure_words()
        row = _row(update, self.encoding.dimension)
        if row is None:
            row = np.full(self.encoding.dimension, np.nan)
        vector = self.encoding.encode(row[None, :], self.clip, self.signs, source)[0]
        if self.share is None:
            return np.asarray(vector)
        return reduced(vector + self.share.draw(vector.shape, source), self.bits)


class Server:
    """The server's side of a run, round by round.

    Parameters
    ----------
    plan : FedAvg
        Charge its loss first.
    parameters : array of float, shape (dimension,)
        Of the model to begin with; public.
    words : Words, optional
        Another source of randomness, for simulation only.

    Attributes
    ----------
    parameters : array of float, shape (dimension,)
    clip : float
        Of the next round.
    clips : list of float
        Of the rounds so far.
    faults : Faults
    refused : int
        Rounds that too few clients came to.

    Examples
    --------
    >>> plan = FedAvg(2, clients=3, rate=1, rounds=1, noise_multiplier=0.001)
    >>> server = Server(plan, [0.0, 0.0])
    >>> opened = server.open()
    >>> for client in opened.clients:
    ...     taken = opened.receive(client, [0.2, 0.5])
    >>> opened.close().round(1)
    array([0.2, 0.5])
    """

    def __init__(self, plan: FedAvg, parameters: Any, *, words: Words | None = None) -> None:
        if not isinstance(plan, FedAvg):
            raise ArgumentError("plan must be a FedAvg")
        row = _row(parameters, plan.dimension)
        if row is None or not np.isfinite(row).all():
            raise ArgumentError(
                f"parameters must be {plan.dimension} finite numbers, as many as the plan says"
            )
        self.plan, self.parameters = plan, row
        self.clip = float(plan.clip)
        self.clips: list[float] = []
        self.faults, self.refused = Faults(), 0
        self._words = words
        self._velocity = np.zeros(plan.dimension)
        self._open: Round | None = None

    def __repr__(self) -> str:
        return (
            f"<Server: {self.rounds} of {self.plan.rounds} rounds, "
            f"{count_text(self.plan.dimension, 'parameter')}>"
        )

    @property
    def rounds(self) -> int:
        """How many were opened."""
        return len(self.clips)

    def open(self) -> Round:
        """Sample the clients of the next round.

        Raises
        ------
        ArgumentError
            The last one is not closed; or all that were charged are done.
        """
        if self._open is not None:
            raise ArgumentError("close the open round before the next one is opened")
        if self.rounds == self.plan.rounds:
            raise ArgumentError(f"all {self.plan.rounds} rounds that were charged are done")
        words, plan = self._source, self.plan
        # Of 53 bits; the chance is the rate rounded down, and the charge is for the rate as it
        # prints: the double itself may lie above that by a last digit.
        drawn = words.words(plan.clients) >> np.uint64(11)
        chance = math.floor(Fraction(repr(float(plan.rate))) * 2**53)
        sampled = np.flatnonzero(drawn < np.uint64(chance))
        signs = np.ones(plan.encoding.width, np.int64)
        if plan.distributed is not None:
            signs -= 2 * (uniform(words, signs.shape) < 0.5)
        task = Task.of(plan, self.rounds, self.parameters.copy(), self.clip, signs)
        self.clips.append(self.clip)
        self._open = Round(self, task, sampled)
        return self._open

    @property
    def _source(self) -> Words:
        return self._words or secure_words()

    def _closed(self, total: Integers, task: Task) -> Floats:
        """Move the model by a noisy sum."""
        plan, encoding = self.plan, self.plan.encoding
        # By the expected number of clients, which is public: how many came is not.
        mean = encoding.decode(total, task.clip, task.signs) / (float(plan.rate) * plan.clients)
        self._velocity = float(plan.momentum) * self._velocity + mean
        self.parameters = self.parameters + float(plan.server_rate) * self._velocity
        if plan.quantile is not None:
            count = float(total[-1]) / (encoding.weight * float(plan.rate) * plan.clients)
            moved = float(plan.clip_rate) * (0.5 + count / 2 - float(plan.quantile))
            # A noisy count of few clients may be far off; a step by more than e says no more.
            moved = self.clip * math.exp(-min(max(moved, -1.0), 1.0))
            self.clip = min(max(moved, _SHORTEST), _LONGEST)
        return self.parameters


class Round:
    """A round that is open: what it takes, once from each client that was asked.

    Parameters
    ----------
    server : Server
    task : Task
    clients : array of int
        Who was sampled. That is known to the server alone.
    """

    def __init__(self, server: Server, task: Task, clients: Integers) -> None:
        self.task, self.clients = task, clients
        self._server, self._missing = server, set(clients.tolist())
        self._asked = frozenset(self._missing)
        self._total = np.zeros(task.encoding.coordinates, np.int64)
        self._closed = False
        self._summed = False

    def __repr__(self) -> str:
        state = "closed" if self._closed else "open"
        return f"<Round, {state}: {self.received} of {len(self.clients)} clients>"

    @property
    def received(self) -> int:
        """From how many clients something was taken."""
        return len(self._asked) - len(self._missing)

    def receive(self, client: int, update: Any, *, number: int | None = None) -> bool:
        """Take what one client sends; says whether it counts.

        Parameters
        ----------
        client : int
        update : array
            How its parameters changed, shape (dimension,); where the noise is distributed the
            vector of `Task.contribution`. Vectors are added at once, and none is kept: who must
            not see them at all gives `receive_sum` what a secure aggregation leaves.
        number : int, optional
            Of the round that it is for.
        """
        faults = self._server.faults
        late = self._closed or (number is not None and number != self.task.number)
        if late or client not in self._asked:
            faults.out_of_turn += 1
            return False
        if client not in self._missing:
            faults.twice += 1
            return False
        vector = self._vector(update)
        if vector is None:
            faults.misshapen += 1
            return False
        self._missing.discard(client)
        self._total = reduced(self._total + vector, self.task.bits)
        return True

    def _vector(self, update: Any) -> Integers | None:
        task, encoding = self.task, self.task.encoding
        if task.share is None:
            row = _row(update, encoding.dimension)
            if row is None:
                return None
            if not np.isfinite(row).all():
                self._server.faults.not_finite += 1
            source = self._server._source
            return np.asarray(encoding.encode(row[None, :], task.clip, task.signs, source)[0])
        return _vector(update, encoding.coordinates, task.bits)

    def receive_sum(self, total: Any, survivors: int) -> None:
        """Take the sum of all vectors that came, modulo 2^bits, from a secure aggregation.

        Parameters
        ----------
        total : array of int, shape (coordinates,)
        survivors : int
            From how many clients.

        Raises
        ------
        ArgumentError
            The noise is not distributed, something was taken already, or the sum is not one.
        """
        vector = _vector(total, self.task.encoding.coordinates, self.task.bits)
        if self.task.share is None:
            raise ArgumentError("sums are taken where clients add the noise: give distributed=")
        if vector is None or not 0 <= survivors <= len(self._asked):
            raise ArgumentError(
                f"total must be {self.task.encoding.coordinates} whole numbers below "
                f"2^{self.task.bits}, of at most as many clients as were asked"
            )
        if self._closed or self._summed or self.received:
            raise ArgumentError("this round has taken vectors already: it takes one sum, or none")
        self._summed = True
        self._missing = set(sorted(self._asked)[survivors:])
        self._total = vector

    def _add(self, vectors: Integers, clients: Integers) -> None:
        """What a simulation adds, without noise: many vectors at once."""
        self._missing.difference_update(clients.tolist())
        self._total = self._total + vectors.sum(axis=0)

    def _add_shares(self, words: Words) -> None:
        """The noise of all that a simulation added, as one draw."""
        share = self.task.share
        if share is not None and self.received:
            self._total = self._total + share.times(self.received).draw(self._total.shape, words)
            self._total = reduced(self._total, self.task.bits)

    def close(self) -> Floats:
        """Add what noise is the server's, and move the model.

        Returns
        -------
        array of float, shape (dimension,)
            The parameters from now on.

        Raises
        ------
        RoundError
            Too few clients came for the noise that is counted on: nothing is opened, the model
            stays, and the round is spent.
        ArgumentError
            The round is closed.
        """
        if self._closed:
            raise ArgumentError("this round is closed")
        server, plan = self._server, self._server.plan
        self._closed, server._open = True, None
        server.faults.missing += len(self._missing)
        given, came, share = plan.distributed, self.received, plan.share()
        total, self._total = self._total, np.zeros(0, np.int64)
        if given is not None:
            if came < given.survivors:
                server.refused += 1
                raise RoundError(
                    f"fewer than {given.survivors} clients sent their vectors: the sum was not "
                    "opened, and the model stays as it was; open the next round"
                )
            if came < plan.most:
                total = total + share.times(plan.most - came).draw(total.shape, server._source)
            total = centred(total, self.task.bits)
        else:
            total = total + share.draw(total.shape, server._source)
        return server._closed(total, self.task)


def reduced(vector: Integers, bits: int) -> Integers:
    """Modulo 2^bits; as it is where that is 0."""
    return np.asarray(vector & ((1 << bits) - 1)) if bits else vector


def centred(vector: Integers, bits: int) -> Integers:
    """The residues modulo 2^bits that are nearest to 0."""
    half = 1 << (bits - 1)
    return reduced(vector + half, bits) - half


def _row(given: Any, size: int) -> Floats | None:
    """As many numbers, or None for anything else."""
    try:
        row = np.array(given, np.float64)
    except (TypeError, ValueError, OverflowError):
        return None
    return row if row.shape == (size,) else None


def _vector(given: Any, size: int, bits: int) -> Integers | None:
    vector = np.asarray(given)
    if vector.shape != (size,) or vector.dtype.kind not in "iu":
        return None
    if vector.size and (int(vector.min()) < 0 or int(vector.max()) >> bits):
        return None
    found: Integers = vector.astype(np.int64)
    return found
