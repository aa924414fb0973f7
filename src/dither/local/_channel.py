"""The interface that every channel has: a coin on the device, counts on the server.

::

    values --privatize--> reports --aggregate--> counts --estimate--> shares and their errors
    (device, secret)      (sent)                 (server, mergeable)

A channel is a public, frozen value. It is written as a dictionary that JSON holds (`to_dict`), and
its `hash` is that of this dictionary, so two parties that have the same hash have the same channel.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from fractions import Fraction
from inspect import signature
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np
import numpy.typing as npt

from dither import _checks
from dither.errors import ArgumentError
from dither.local._audited import AuditCase, Audited
from dither.local._domain import Domain, Value, bind, collection, repr_of
from dither.local._guarantee import Guarantee
from dither.local._limits import MOST, checked_epsilon, checked_shares
from dither.local._registry import KINDS, digest_of
from dither.numeric import Words, secure_words

if TYPE_CHECKING:
    from dither.local._attack import Attack
    from dither.local._estimates.results import Result
    from dither.local._reports.aggregate import Aggregate
    from dither.local._shuffling import ShuffledReports
    from dither.privacy import Loss


DomainLike = int | Domain | list[Any] | tuple[Any, ...] | range | set[Any] | frozenset[Any]
Codes = npt.NDArray[np.int64]
Counts = npt.NDArray[np.int64]
Shares = npt.NDArray[np.float64]
Tally = tuple[Counts, int, int]
"""Counts of the features, reports counted, reports that no channel could have produced."""

PART_BYTES = 2
"""On the wire, of the number of a part or choice before its report."""


@dataclass(frozen=True, init=False)
class Channel(Audited, ABC):
    """A local randomiser with its estimator, bound to one exact law.

    A subclass is a frozen value. It states what it is (`settings`), how one code is randomised
    (`draw`), how reports are counted (`tally`), and how counts are read (`decode`,
    `noise_covariance`, `noise_variance`).
    """

    kind: ClassVar[str]
    """Name on the wire; its meaning never changes. A changed law is a new kind or version."""
    version: ClassVar[int] = 1
    readers: ClassVar[dict[str, Callable[[Any], Any]]] = {"domain": Domain.from_dict}
    """What reads the settings that are written as dictionaries."""
    unbiased: ClassVar[bool] = True
    finite: ClassVar[bool] = False
    """Whether it is a `FiniteChannel`: its chances are a matrix."""
    numeric: ClassVar[bool] = False
    """Whether it is for numbers of an interval."""

    audit_cases: ClassVar[tuple[AuditCase, ...]] = (AuditCase({"domain": 4, "epsilon": 1}),)
    audit_view: ClassVar[str] = "reports"
    """What a server reads: the ``reports``, or of two values their ``likelihoods`` or ``odds``."""

    domain: Domain
    epsilon: Fraction

    def __init__(self, domain: DomainLike, epsilon: Any) -> None:
        bind(self, domain=Domain(domain), epsilon=checked_epsilon(epsilon))

    def __init_subclass__(cls, **kwargs: Any) -> None:
        super().__init_subclass__(**kwargs)
        # A dataclass keeps the one that stands in the class itself.
        cls.__repr__ = Channel.__repr__  # type: ignore[method-assign]
        if "kind" in cls.__dict__:
            KINDS[cls.kind] = cls

    def __repr__(self) -> str:
        return repr_of(self)

    # What it is

    def settings(self) -> dict[str, Any]:
        """The arguments that make this channel, in a form that JSON holds.

        By default each argument of the class, read from the attribute of its name.
        """
        found = {name: _written(getattr(self, name)) for name in signature(type(self)).parameters}
        # A question is written where there is one.
        return {name: v for name, v in found.items() if v is not None or name != "question"}

    @classmethod
    def from_settings(cls, settings: dict[str, Any]) -> Channel:
        """The channel that `settings` describes."""
        read = cls.readers
        return cls(**{name: read[name](v) if name in read else v for name, v in settings.items()})

    def to_dict(self) -> dict[str, Any]:
        """The channel as a dictionary that JSON holds; `channel_from_dict` reads it."""
        return {"channel": self.kind, "version": self.version, **self.settings()}

    @property
    def hash(self) -> str:
        """SHA-256 of the canonical JSON of `to_dict`, 64 hexadecimal digits."""
        return digest_of(self.to_dict())

    @property
    def guarantee(self) -> Guarantee:
        """What one report promises, computed from the exact law; by default epsilon-local DP."""
        return Guarantee.uniform(self.epsilon)

    def loss(self, *, accept_delta: bool = False) -> Loss:
        """What one report loses, for accounts and ledgers; see `Guarantee.loss`.

        Examples
        --------
        >>> from dither import local
        >>> loss = local.GRR(5, epsilon="1/3").loss()
        >>> loss.charge.epsilon, round(float((2 * loss).epsilon(0)), 9)
        (Fraction(1, 3), 0.666666667)
        """
        return self.guarantee.loss(accept_delta=accept_delta)

    # On the device

    def privatize(self, values: Any) -> Any:
        """Randomise on the device, with the operating system's randomness.

        Parameters
        ----------
        values : one value of the domain, or a column of them, shape (n,)

        Returns
        -------
        The report of one value, or the reports of a column: one integer or row per person.

        Raises
        ------
        ArgumentError
            A value is missing or outside the domain. The message shows no value.
        """
        if _scalar(values):
            return _one(self.draw(self.domain.encode([values]), secure_words()))
        return self.draw(self.domain.encode(values), secure_words())

    @abstractmethod
    def draw(self, codes: Codes, words: Words) -> npt.NDArray[Any]:
        """Reports of codes that are known to be valid, by the given source of randomness."""

    @property
    def report_bytes(self) -> int:
        """The size of one report on the wire.

        Raises
        ------
        ArgumentError
            Reports of this channel have no fixed size.
        """
        raise ArgumentError(f"reports of channel {self.kind!r} have no fixed size")

    # On the server

    def aggregate(self, reports: Any, *, strict: bool = False) -> Aggregate:
        """Count reports.

        Parameters
        ----------
        reports : a column of reports, as `privatize` gives them
        strict : bool
            Refuse all of them if one is not a report of this channel, instead of dropping it.

        Returns
        -------
        Aggregate
            It adds to others of the same channel, and says how many reports were dropped.

        Raises
        ------
        ArgumentError
            With `strict`: some report could not have come from this channel.
        """
        from dither.local._reports.aggregate import Aggregate

        if not collection(reports) and not hasattr(reports, "to_numpy"):
            raise ArgumentError("reports must be a column; give one report as a list of one")
        _checks.flag("strict", strict)
        counts, good, bad = self.tally(reports)
        if strict and bad:
            raise ArgumentError(
                f"reports must come from this channel: {bad} of {good + bad} could not have; "
                "drop strict=True to count the others"
            )
        return Aggregate(self, counts, good, bad)

    @property
    @abstractmethod
    def features(self) -> int:
        """The length of the counts."""

    @abstractmethod
    def tally(self, reports: Any) -> Tally:
        """Counts of the features in reports, how many were counted, how many dropped."""

    @property
    def largest_step(self) -> Shares:
        """How far one report moves n times each estimated share, shape (k,); 0 where unknown.

        A share whose n·(standard error) is a few times this is a sum of many small parts, and its
        normal interval is valid; see `Estimate.trusted`.
        """
        return np.zeros(len(self.domain))

    def possible(self, counts: Counts, n: int) -> bool:
        """Whether n reports can have these counts, which are at least 0; a cheap check.

        A channel that leaves it out takes any counts, and would turn counts that a hostile server
        made up into absurd shares.
        """
        return True

    @abstractmethod
    def decode(self, counts: Counts, n: int) -> Shares:
        """Estimated shares of the domain's values, shape (k,), from counts of n reports."""

    @abstractmethod
    def noise_covariance(self, frequencies: Shares) -> Shares:
        """n times the covariance of the estimates given the users' values, shape (k, k)."""

    def noise_variance(self, frequencies: Shares) -> Shares:
        """The diagonal of `noise_covariance`, shape (k,)."""
        return np.diag(self.noise_covariance(frequencies)).copy()

    def variance_from(self, counts: Counts, n: int, plausible: Shares) -> Shares:
        """`noise_variance` at plausible shares, or from the counts where these say more.

        Many noisy shares, moved to be at least 0, are plausible one by one and not in their sums;
        a channel whose variance depends on sums reads these from the counts themselves.
        """
        return self.noise_variance(plausible)

    def read(
        self,
        counted: Aggregate,
        rule: str,
        method: str | None,
        confidence: float,
        options: dict[str, Any],
    ) -> Result:
        """What counts of this channel say; see `Aggregate.estimate`."""
        from dither.local._estimates.results import checked_options, shares_of

        if method is None:
            checked_options(options, (), f"an estimate by {self.kind}")
            return shares_of(counted, rule, confidence)
        from dither.local._estimates.postprocess import no_rule
        from dither.local._numbers.em import em

        _checks.choice("method", method, ("likelihood",))
        no_rule(rule, "a likelihood, whose shares are at least 0 and sum to 1")
        known = ("bins", "outputs", "tolerance", "max_iterations", "smooth")
        checked_options(options, known, "a likelihood")
        return em([counted], **options)

    def variance(self, frequencies: Any, n: int, *, population: bool = False) -> Shares:
        """The variance of each value's estimated share.

        Parameters
        ----------
        frequencies : array of float, shape (k,)
            True shares, non-negative, summing to 1 (within 1e-6).
        n : int
            Reports, at least 1.
        population : bool
            Add the chance by which the n users were sampled from a population with these shares;
            without, the users' values are given and only the protocol's own noise counts.

        Returns
        -------
        array of float, shape (k,)
        """
        f = checked_shares(frequencies, len(self.domain))
        people = _checks.whole("n", n, 1, MOST)
        variance = self.noise_variance(f) + (f * (1 - f) if population else 0.0)
        return np.asarray(variance / people)

    # What a report gives away

    def attack(
        self, prior: Any = None, *, high: Iterable[Value] | None = None, bins: int | None = None
    ) -> Attack:
        """Success of the Bayesian adversary who sees one report, in closed form.

        Parameters
        ----------
        prior : array of float, shape (k,), optional
            What the adversary knows of the population's shares. Without, the guess is the value
            that makes the report likeliest, and `success` is given for uniform shares.
        high : collection of values, optional
            Also give success by class, and how well a report shows that a value is one of these;
            a graded channel's own high values by default.
        bins : int, optional
            Of channels for numbers: the guess is one of so many even bins of the interval's
            points, instead of a point.

        Raises
        ------
        ArgumentError
            The prior is not a distribution, or the reports have too many forms for a closed form
            (`simulate_attack` plays the game instead).
        """
        from dither.local._attack import attack

        return attack(self, prior, high=high, bins=bins)

    def likelihoods(self, reports: npt.NDArray[Any]) -> Shares:
        """Pr[report | value] up to a factor of each report's own, shape (n, k)."""
        raise ArgumentError(f"channel {self.kind!r} states no likelihoods")

    def guessed(self, prior: Shares | None) -> Shares:
        """Success of the best guess on the holders of each value, shape (k,), in closed form."""
        raise ArgumentError(
            f"a {self.kind} report has too many forms for a closed form; use simulate_attack"
        )

    def class_laws(self, h: int) -> tuple[Shares, Shares] | None:
        """Laws that decide which of two classes, of h and k - h values alike, a report is of.

        Under a value of the first class, and of the second; None where no closed form is known.
        """
        return None

    @property
    def blanket(self) -> tuple[int, int] | None:
        """For a randomised response: its answers, and how many of these everybody gives.

        These hide one value among others once the reports are shuffled; None for other channels.
        """
        return None

    def shuffled(self, n: int) -> ShuffledReports:
        """The central guarantee of n reports whose order is forgotten.

        Parameters
        ----------
        n : int
            Reports, at least 1.

        Raises
        ------
        ArgumentError
            n is below 1, or no two values are amplified.
        """
        from dither.local._shuffling import shuffled

        return shuffled(self, n)

    # For planning

    def simulate(self, histogram: Counts, rng: np.random.Generator) -> Counts:
        """Counts as reports of these many holders of each code would give; see `simulate`."""
        from dither.numeric import SimulatedWords

        words = SimulatedWords(int(rng.integers(1 << 62)))
        counts = np.zeros(self.features, dtype=np.int64)
        codes = np.repeat(np.arange(len(self.domain)), histogram)
        for start in range(0, codes.size, 1 << 20):
            counts += self.tally(self.draw(codes[start : start + (1 << 20)], words))[0]
        return counts


def _written(value: Any) -> Any:
    """An argument in a form that JSON holds."""
    if isinstance(value, tuple):
        return [_written(v) for v in value]
    if isinstance(value, Fraction):
        return str(value)
    return value.to_dict() if hasattr(value, "to_dict") else value


def _scalar(values: Any) -> bool:
    return isinstance(values, str | int | float | bool | np.generic) or values is None


def _one(reports: npt.NDArray[Any]) -> Any:
    return reports[0].item() if reports.ndim == 1 else reports[0]
