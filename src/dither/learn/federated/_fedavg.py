"""Federated averaging under differential privacy, one client the unit: the numbers and the charge.

A round samples each client with probability q, independently. Each that answers trains the model a
little on its own rows and sends how its parameters changed, cut to an L2 length of ``clip``. The
server adds the changes and noise, divides by q·N, which is fixed, whoever came, and moves the
model by that with momentum. What a client changes in the sum is bounded by the cut of its own
update, before momentum and before anything is divided by how many came.

Integers. Updates are vectors of integers of bounded length (`_encoding`), so the sum is exact and
its noise is drawn on the integers. Where ``clip`` is chosen by a quantile, one more coordinate
counts the updates that were at most so long, and the length of vector and count together is what
the account reads: the split of noise between the two that Andrew et al. solve for is a matter of
the units of either coordinate.

Guarantee. All that leaves a run, the model after each round among it, is a function of ``rounds``
sums, each of which a client changes by a vector of that length in the rounds it is sampled for;
later rounds depend on earlier answers, but their bound does not.

Sources. McMahan, Ramage, Talwar and Zhang, "Learning differentially private recurrent language
models", ICLR 2018; Andrew, Thakkar, McMahan and Ramaswamy, "Differentially private learning with
adaptive clipping", NeurIPS 2021.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from fractions import Fraction
from typing import Any

from dither import _checks as check
from dither import privacy
from dither._checks import Number
from dither._format import Printable, loss_text, number_text
from dither.accounting import calibrate
from dither.errors import ArgumentError
from dither.learn.federated._encoding import UpdateEncoding
from dither.learn.federated._noise import DistributedNoise, NoiseShare, fewest_bits, gaussian_loss
from dither.numeric import float_down
from dither.privacy import Charge, Loss, Neighbours
from dither.privacy._promise import as_table_neighbours
from dither.privacy.amplification._one_sample import excess

__all__ = ["FedAvg"]

_FINE = 1 << 20
"""Units of a length of the clip where the server adds the noise: rounding is lost in it."""
_LEAST_SHARE = {"skellam": 1, "discrete gaussian": 4}
"""The variance of one client's noise that lattices are chosen for: rounding adds 1/4 at most."""
_UNREACHED = (
    "epsilon cannot be reached in so many rounds at this rate and delta: fewer rounds, a lower "
    "rate or a larger epsilon may be"
)
_LARGEST_DIMENSION = 1 << 26
# Two residues of so many bits add up within 64.
_BITS = 60


@dataclass(frozen=True, eq=False, repr=False)
class FedAvg(Printable):
    """Rounds of federated averaging with a guarantee for each client, fixed before any is asked.

    Parameters
    ----------
    dimension : int
        How many numbers the model has.
    clients : int
        N, how many there are; public.
    rate : number
        q, with which each client is sampled for a round, independently; in (0, 1].
    rounds : int
        How many rounds are charged; fewer may be run.
    epsilon, delta : number, optional
        What all rounds together may lose; or give ``noise_multiplier``.
    noise_multiplier : number, optional
        The noise's deviation over the L2 length of all that one client adds to a sum.
    clip : number
        The length that updates are cut to; with ``quantile`` in the first round.
    quantile : number, optional
        In (0, 1): the clip is moved towards the length that this share of updates does not pass.
    count_share : number
        The share of the squared length that the count for the quantile has.
    clip_rate : number
        How fast the clip moves, by a factor of exp(-clip_rate·(share - quantile)) a round.
    server_rate, momentum : number
        The server's step, above 0, and how much of the step before it keeps, in [0, 1).
    distributed : DistributedNoise, optional
        Clients add the noise, and the server sees their sum alone. Left out, the server adds it and
        sees each update: it is trusted.
    neighbours : Neighbours or str
        A client is added or removed, with all its rows, or replaced.

    Attributes
    ----------
    loss : Loss
        Of all that is published, for one client.
    encoding : UpdateEncoding
    sigma2 : Fraction
        Of the noise that is published with a sum, in squared units.

    Raises
    ------
    ArgumentError
        An argument is out of range; or no lattice serves.

    Notes
    -----
    *Guarantee.* ``loss`` is that of one client against whoever sees every model, but not who was
    asked. It is stated for runs in which no round is refused. Who is the server knows the clients
    of a round, so that no sampling helps: `server_loss` is what it learns where the noise is
    distributed, and without that it is trusted.

    Examples
    --------
    >>> plan = FedAvg(650, clients=10_000, rate=0.01, rounds=50, noise_multiplier=1, clip=0.5)
    >>> round(plan.loss.epsilon(delta=1e-5), 4)
    0.5829
    >>> FedAvg(650, clients=10_000, rate=0.01, rounds=50, epsilon=2, delta=1e-5).noise_multiplier
    0.7...
    """

    dimension: int
    clients: int = field(kw_only=True)
    rate: Number = field(kw_only=True)
    rounds: int = field(kw_only=True)
    epsilon: Number | None = field(default=None, kw_only=True)
    delta: Number | None = field(default=None, kw_only=True)
    noise_multiplier: Number | None = field(default=None, kw_only=True)
    clip: Number = field(default=1.0, kw_only=True)
    quantile: Number | None = field(default=None, kw_only=True)
    count_share: Number = field(default=0.02, kw_only=True)
    clip_rate: Number = field(default=0.2, kw_only=True)
    server_rate: Number = field(default=1.0, kw_only=True)
    momentum: Number = field(default=0.0, kw_only=True)
    distributed: DistributedNoise | None = field(default=None, kw_only=True)
    neighbours: Neighbours | str = field(default=Neighbours.ADD_REMOVE, kw_only=True)
    encoding: UpdateEncoding = field(init=False)
    sigma2: Fraction = field(init=False)
    loss: Loss = field(init=False)
    most: int = field(init=False)

    def __post_init__(self) -> None:
        check.count("dimension", self.dimension, 1, _LARGEST_DIMENSION)
        check.count("clients", self.clients, 1)
        check.count("rounds", self.rounds, 1)
        rate = check.number("rate", self.rate, above=0, most=1, rounding="up")
        for name in ("clip", "server_rate", "clip_rate"):
            self._set(name, check.number(name, getattr(self, name), above=0, below=1e100))
        self._set("momentum", check.number("momentum", self.momentum, least=0, below=1))
        if self.quantile is not None:
            self._set("quantile", check.number("quantile", self.quantile, above=0, below=1))
            check.number("count_share", self.count_share, above=0, below=1)
        if self.distributed is not None and not isinstance(self.distributed, DistributedNoise):
            raise ArgumentError("distributed must be a DistributedNoise, or left out")
        self._set("rate", rate)
        self._set("neighbours", as_table_neighbours(self.neighbours))
        self._set("most", self._most())
        multiplier = self._given()
        self._set("encoding", self._encoded(multiplier))
        target = self.epsilon is not None
        if target:
            multiplier = self._reaching(multiplier)
        self._set("noise_multiplier", multiplier)
        self._set("sigma2", self._sigma2(multiplier))
        self._set("loss", self._charged(self.rounds * self.round_loss(multiplier)))

    def _charged(self, loss: Loss) -> Loss:
        """With what was asked for as its charge, where that was said."""
        if self.epsilon is None:
            return loss
        epsilon, known = check.exact("epsilon", self.epsilon), loss.charge
        spent = check.exact("delta", loss.delta(float_down(epsilon)).upper)
        return loss.with_charge(Charge(epsilon, spent, known.rho, known.rho_delta))

    def _set(self, name: str, value: Any) -> None:
        object.__setattr__(self, name, value)

    def _given(self) -> Number:
        """The multiplier that was given, or one to start from."""
        if (self.noise_multiplier is None) == (self.epsilon is None):
            raise ArgumentError("give epsilon and delta, or noise_multiplier, not both")
        if self.noise_multiplier is not None:
            check.exact(
                "noise_multiplier", self.noise_multiplier, least=Fraction(1, 1000), most=10**6
            )
            return self.noise_multiplier
        if self.delta is None:
            raise ArgumentError("delta must be given with epsilon, such as 1e-6")
        check.exact("epsilon", self.epsilon, above=0)
        check.exact("delta", self.delta, above=0, below=1)

        epsilon, delta = float(self.epsilon), float(self.delta)  # type: ignore[arg-type]
        replaced = 2 if self._relation is Neighbours.REPLACE else 1
        try:
            found = calibrate(
                lambda m: self.rounds * privacy.gaussian(m).poisson(self._rate),
                epsilon=epsilon,
                delta=delta,
            )
        except ArgumentError as error:
            raise ArgumentError(f"{_UNREACHED}: {error}") from None
        return replaced * float(found)

    def _reaching(self, start: Number) -> float:
        """The least multiplier found whose own loss is within epsilon and delta."""
        target, delta = float(check.exact("epsilon", self.epsilon)), float(self.delta or 0)

        def within(multiplier: float) -> bool:
            return (self.rounds * self.round_loss(multiplier)).epsilon(delta) <= target

        # Nearly always a little more than Gaussian noise on the reals, if at all.
        low, high, step = float(start), float(start) * (1 + 2**-20), 1 + 2**-8
        if not within(high):
            while not within(high := low * step):
                low, step = high, step**2
                if step > 1e6:
                    raise ArgumentError(_UNREACHED)
        while high / low > 1 + 2**-7:
            middle = math.sqrt(low * high)
            low, high = (low, middle) if within(middle) else (middle, high)
        return high

    @property
    def _rate(self) -> float:
        return float(self.rate)

    @property
    def _relation(self) -> Neighbours:
        return as_table_neighbours(self.neighbours)

    def _most(self) -> int:
        """Shares that are published with a sum; 1 where the server adds the noise."""
        given = self.distributed
        if given is None:
            return 1
        if given.most is not None:
            if self._rate == 1 and given.most < self.clients:
                # Every sum would have a share more where one client more takes part.
                raise ArgumentError("most must be at least clients where rate is 1")
            return given.most
        mean = self.clients * self._rate
        # Eight deviations: that more come costs next to no delta, and what it costs is charged.
        most = math.ceil(mean + 8 * math.sqrt(mean) + 8)
        return max(given.survivors, min(self.clients, most))

    @property
    def _published(self) -> int:
        """Shares of what is published that are surely noise."""
        given = self.distributed
        if given is None:
            return 1
        # Who is not honest adds no noise; rounded up, how many those are.
        return max(1, self.most - math.ceil((1 - Fraction(given.honest)) * self.most))

    def _encoded(self, multiplier: Number) -> UpdateEncoding:
        given = self.distributed
        units = _FINE
        if given is not None:
            units = given.units or self._units(float(multiplier), given.law)
        weight = 0
        if self.quantile is not None:
            share = float(self.count_share)
            weight = max(1, round(units * math.sqrt(share / (1 - share))))
        return UpdateEncoding(self.dimension, units, given is not None, weight)

    def _units(self, multiplier: float, law: str) -> int:
        """So many that rounding adds little to the length, and to the noise."""
        width = 1 << (self.dimension - 1).bit_length()
        noisy = math.sqrt(_LEAST_SHARE[law] * self._published) / multiplier
        # Samples of discrete Gaussian noise are charged as of a variance that is less by 96.
        coarse = 160 / multiplier if law == "discrete gaussian" else 0
        return math.ceil(max(4 * math.sqrt(width), noisy, coarse))

    def _sigma2(self, multiplier: Number) -> Fraction:
        exact = check.exact("noise_multiplier", multiplier)
        # Of all shares, so that the part that is surely noise has this multiplier alone.
        return exact**2 * self.encoding.l2_squared * Fraction(self.most, self._published)

    def share(self, multiplier: Number | None = None) -> NoiseShare:
        """The noise that one client adds; without distributed noise, what the server adds."""
        law = "discrete gaussian" if self.distributed is None else self.distributed.law
        chosen = self.noise_multiplier if multiplier is None else multiplier
        assert chosen is not None
        return NoiseShare(law, self._sigma2(chosen) / self.most)

    def round_loss(self, multiplier: Number | None = None) -> Loss:
        """What one round's published sum loses of one client, sampled as it is."""
        encoding, given = self.encoding, self.distributed
        share = self.share(multiplier)
        square, coordinates = encoding.l2_squared, encoding.coordinates
        if given is None:
            return gaussian_loss(share.variance, square, coordinates, self._rate, self._relation)
        loss = share.loss(
            self._published,
            l2_squared=square,
            coordinates=coordinates,
            rate=self._rate,
            filled=True,
            neighbours=self._relation,
        )
        # With more clients than shares a sum's noise would say how many came. Others than the
        # client itself are as many with a chance that does not depend on it.
        over = excess(self.clients, self._rate, self.most - 1) if self._rate < 1 else 0.0
        if over >= 1:
            raise ArgumentError(
                "most must be larger: more clients than that are sampled in many rounds. Leave it "
                "out, or give twice clients times rate"
            )
        if over:
            loss = loss + privacy.approximate(0, over, neighbours=self._relation)
        return loss

    def server_loss(self, rounds: int | None = None) -> Loss:
        """What the server learns of a client in so many rounds of its own, from the sums alone.

        The server knows who takes part, so that nothing is sampled; the noise is that of the
        honest ones of the fewest survivors. Neighbours: the client's update is in the sums, or
        zeros are in its place (add-remove), or another update is (replace).

        Parameters
        ----------
        rounds : int, optional
            In which the client takes part; left out, all of them.

        Raises
        ------
        ArgumentError
            The noise is not distributed: then the server sees each update.
        """
        given = self.distributed
        if given is None:
            raise ArgumentError(
                "without distributed noise the server sees each update: give distributed="
            )
        taken = self.rounds if rounds is None else check.count("rounds", rounds, 1, self.rounds)
        return taken * self.share().loss(
            given.counted(given.survivors),
            l2_squared=self.encoding.l2_squared,
            coordinates=self.encoding.coordinates,
            neighbours=self._relation,
        )

    @property
    def bits(self) -> int:
        """Of the modulus of a distributed sum."""
        given = self.distributed
        if given is None:
            raise ArgumentError("only a distributed sum has a modulus")
        bits = fewest_bits(
            self.share(),
            self.most,
            vectors=self.most,
            units=self.encoding.units,
            width=self.encoding.width,
            weight=self.encoding.weight,
            wrap=given.wrap,
        )
        if bits > _BITS:
            raise ArgumentError(f"units must be fewer: sums would need {bits} bits, of {_BITS}")
        return bits

    def summary(self) -> str:
        """The rounds, their noise, and what they lose."""
        delta = 1e-6 if self.delta is None else float(self.delta)
        spent = loss_text(float(self.loss.epsilon(delta)))
        lines = [
            f"{self.rounds} rounds, each of {self.clients:,} clients with probability "
            f"{number_text(self._rate)}; {self.dimension:,} parameters",
            f"noise multiplier {number_text(float(self.noise_multiplier or 0))}: epsilon = {spent} "
            f"at delta = {delta:g}, for one client ({self._relation.value})",
        ]
        given = self.distributed
        if given is None:
            lines.append("the server adds the noise, and sees each update")
        else:
            seen = loss_text(float(self.server_loss(1).epsilon(delta)))
            lines.append(
                f"clients add {given.law} noise, {self.bits} bits a number; from one round's sum "
                f"the server learns epsilon = {seen} of a client in it"
            )
        return "\n".join(lines)
