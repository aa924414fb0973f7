"""PLDP: every person chooses one of a public list of channels, such as an epsilon of their own.

Guarantee. A report carries the choice, which is public, and keeps the promise of the channel that
was chosen. So the choice itself must not depend on the value: whoever chooses a small epsilon
because of what they have to hide has told so, and biases the estimate as well.

Estimates. With n_c reports of class c, f̂_c its unbiased estimate and s_c²/n_c its variance:

- weights: f̂ = sum of w_c·f̂_c, w_c proportional to n_c/s_c² for each value. s_c² is taken at uniform
  shares, so that the weights do not depend on the reports and f̂ stays unbiased;
- population: w_c = n_c/n. The only one that is right for all users where the classes differ;
- likelihood: the shares that make all reports together likeliest. Channels with a matrix are pooled
  in one expectation maximisation; others through the normal law of their estimates,
  minimising the sum of n_c·(f̂_c - f)' S_c^-1 (f̂_c - f) over the simplex. Biased, but nearer.

Source. Chen et al., "SDLDP", 2025, section 5 and equation (19), whose weights are n_c/s_c² as
meant; Nie et al., IEEE TKDE 2019; Shen, Xia and Yu, IEEE TIFS 2021 (PLDP frequencies).
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from statistics import NormalDist
from typing import Any

import numpy as np
import numpy.typing as npt

from dither._format import level
from dither.errors import ArgumentError
from dither.local._aggregate import Aggregate
from dither.local._arguments import checked_number, one_of
from dither.local._channel import (
    PART_BYTES,
    Channel,
    DomainLike,
    canonical,
    channel_from_dict,
)
from dither.local._domain import Domain, Value, column
from dither.local._guarantee import Guarantee
from dither.local._oracles import FiniteChannel
from dither.local._postprocess import nonnegative, project
from dither.local._postprocess import postprocess as apply_rule
from dither.local._results import MANY, Estimate
from dither.numeric import check_confidence

Array = npt.NDArray[np.float64]

METHODS = ("weights", "population", "likelihood")
_ALARM = 1e-3
_MAX_VALUES = 1 << 10
_INDEPENDENT = (
    "classes are combined as if what people chose did not depend on their values; if it does, "
    "the choice itself tells of the value, and the estimate is biased"
)


@dataclass(frozen=True, slots=True)
class Personal:
    """A public list of channels of one domain, of which every person chooses one.

    Parameters
    ----------
    channels : tuple of Channel
        At least one, all of the same domain. A person's choice is a place in this list.

    Raises
    ------
    ArgumentError
        `channels` is empty, or they are not all of one domain.

    Notes
    -----
    Guarantee. A report keeps the promise of the channel that was chosen, between any two values
    of one person. The choice is public, so it must not depend on the value.

    References
    ----------
    Nie et al., IEEE TKDE 2019; Shen, Xia and Yu, IEEE TIFS 2021.

    Examples
    --------
    >>> from dither import local
    >>> offer = Personal.of(local.OUE, ["no", "yes"], epsilons=[0.5, 2])
    >>> reports = offer.privatize(["yes"] * 900 + ["no"] * 100, choices=[0, 1] * 500)
    >>> found = offer.aggregate(reports).estimate()
    >>> found.n, abs(found["yes"] - 0.9) < 0.5
    (1000, True)
    """

    channels: tuple[Channel, ...]

    def __post_init__(self) -> None:
        listed = isinstance(self.channels, Iterable) and not isinstance(self.channels, str | bytes)
        channels = tuple(self.channels) if listed else ()
        if not channels or not all(isinstance(c, Channel) for c in channels):
            raise ArgumentError("channels must be a list of at least one channel")
        if any(c.domain != channels[0].domain for c in channels):
            raise ArgumentError("channels must all have the same domain")
        object.__setattr__(self, "channels", channels)

    @classmethod
    def of(
        cls,
        make: Callable[..., Channel],
        domain: DomainLike,
        epsilons: Sequence[Any],
        **options: Any,
    ) -> Personal:
        """One kind of channel at each epsilon of a public list.

        Parameters
        ----------
        make : callable
            A channel's class, such as `GRR` or `OUE`.
        domain : Domain, int or list
        epsilons : sequence of numbers
        **options
            Further arguments of the channel.
        """
        if not callable(make):
            raise ArgumentError("make must be a channel's class, such as GRR or OUE")
        if not isinstance(epsilons, Iterable) or isinstance(epsilons, str | bytes):
            raise ArgumentError("epsilons must be a list of numbers")
        try:
            channels = [make(domain, epsilon=e, **options) for e in epsilons]
        except TypeError:
            raise ArgumentError(
                "make must make a channel from a domain, epsilon=... and the other options"
            ) from None
        return cls(tuple(channels))

    @property
    def domain(self) -> Domain:
        """Of every channel."""
        return self.channels[0].domain

    @property
    def hash(self) -> str:
        """SHA-256 of the canonical JSON of `to_dict`, 64 hexadecimal digits."""
        return hashlib.sha256(canonical(self.to_dict())).hexdigest()

    @property
    def report_bytes(self) -> int:
        """Two bytes of the choice, and the widest report of any channel."""
        return PART_BYTES + max(channel.report_bytes for channel in self.channels)

    def to_dict(self) -> dict[str, Any]:
        """The offer as a dictionary that JSON holds; `from_dict` reads it."""
        return {
            "offer": "personal",
            "version": 1,
            "channels": [channel.to_dict() for channel in self.channels],
        }

    @classmethod
    def from_dict(cls, found: dict[str, Any]) -> Personal:
        """The offer that `to_dict` wrote."""
        if not isinstance(found, Mapping) or not isinstance(found.get("channels"), list):
            raise ArgumentError("an offer must be described by a dictionary, as to_dict writes it")
        if found.get("offer") != "personal" or found.get("version") != 1:
            raise ArgumentError("an offer must be of version 1, which this dither knows")
        return cls(tuple(channel_from_dict(channel) for channel in found["channels"]))

    def guarantee(self, choice: int) -> Guarantee:
        """What a report with this choice promises."""
        found: Guarantee = self.channels[self._choices([choice])[0]].guarantee
        assumes = "the choice, which is public, does not depend on the value"
        both = f"{found.assumes}; {assumes}" if found.assumes else assumes
        return replace(found, assumes=both)

    def privatize(self, values: Any, choices: Any) -> dict[int, npt.NDArray[Any]]:
        """Randomise each value by the channel that its holder chose.

        Parameters
        ----------
        values : column of values, shape (n,)
        choices : column of int, shape (n,)
            Places in `channels`.

        Returns
        -------
        dict from choice to reports

        Raises
        ------
        ArgumentError
            A value is outside the domain, a choice outside the list, or their numbers differ.
        """
        codes, chosen = self.domain.encode(values), self._choices(choices)
        if codes.size != chosen.size:
            raise ArgumentError("choices must be as many as values")
        from dither.numeric import secure_words

        return {
            c: self.channels[c].draw(codes[chosen == c], secure_words())
            for c in np.unique(chosen).tolist()
        }

    def aggregate(self, reports: Mapping[int, Any], *, strict: bool = False) -> PersonalAggregate:
        """Count the reports of each choice; those of a choice that is not offered are dropped."""
        if not isinstance(reports, Mapping):
            raise ArgumentError("reports must be a dictionary from choice to a column of reports")
        parts, lost = [], 0
        for c, channel in enumerate(self.channels):
            parts.append(channel.aggregate(reports.get(c, []), strict=strict))
        for c, unknown in reports.items():
            if isinstance(c, bool) or c not in range(len(self.channels)):
                lost += len(unknown) if hasattr(unknown, "__len__") else 1
        if strict and lost:
            raise ArgumentError(f"reports must be of a choice that is offered: {lost} are not")
        return PersonalAggregate(self, tuple(parts), lost)

    def _choices(self, choices: Any) -> npt.NDArray[np.int64]:
        given = column(choices)
        if given.dtype.kind not in "iu" and given.size:
            raise ArgumentError("choices must be whole numbers, places in channels")
        if given.size and not (given.min() >= 0 and given.max() < len(self.channels)):
            raise ArgumentError(f"choices must be from 0 to {len(self.channels) - 1}")
        return given.astype(np.int64)


@dataclass(frozen=True, slots=True)
class PersonalAggregate:
    """Counts of each choice's reports; they merge like any aggregate.

    Parameters
    ----------
    personal : Personal
    parts : tuple of Aggregate
        One for each channel, in order.
    lost : int
        Reports of choices that are not offered.
    """

    personal: Personal
    parts: tuple[Aggregate, ...]
    lost: int = 0

    __hash__ = None  # type: ignore[assignment]

    def __post_init__(self) -> None:
        offered = [channel.hash for channel in self.personal.channels]
        if [part.channel.hash for part in self.parts] != offered:
            raise ArgumentError("parts must be one aggregate for each channel that is offered")
        checked_number(self.lost, "lost", low=0)

    def __add__(self, other: PersonalAggregate) -> PersonalAggregate:
        if not isinstance(other, PersonalAggregate):
            return NotImplemented
        if self.personal.hash != other.personal.hash:
            raise ArgumentError("aggregates must offer the same channels to be added")
        parts = tuple(a + b for a, b in zip(self.parts, other.parts, strict=True))
        return PersonalAggregate(self.personal, parts, self.lost + other.lost)

    @property
    def n(self) -> int:
        """Reports counted."""
        return sum(part.n for part in self.parts)

    @property
    def rejected(self) -> int:
        """Reports dropped."""
        return self.lost + sum(part.rejected for part in self.parts)

    def to_dict(self) -> dict[str, Any]:
        """The aggregates of the classes and what was offered, in a form that JSON holds."""
        return {
            "personal": self.personal.to_dict(),
            "hash": self.personal.hash,
            "parts": [part.to_dict() for part in self.parts],
            "lost": self.lost,
        }

    @classmethod
    def from_dict(cls, found: dict[str, Any]) -> PersonalAggregate:
        """The aggregate that `to_dict` wrote.

        Raises
        ------
        ArgumentError
            A class is missing, or something is not of the offer that is described.
        """
        if not isinstance(found, Mapping):
            raise ArgumentError("the aggregate must be a dictionary, as to_dict writes it")
        try:
            parts = tuple(Aggregate.from_dict(part) for part in found["parts"])
            personal, lost = Personal.from_dict(found["personal"]), found["lost"]
            hashed = found["hash"]
        except (KeyError, TypeError, ValueError) as error:
            if isinstance(error, ArgumentError):
                raise
            raise ArgumentError("the aggregate is truncated or not one of to_dict") from None
        if hashed != personal.hash:
            raise ArgumentError("the aggregate's hash is not that of what was offered")
        return cls(personal, parts, lost)

    def estimate(
        self, method: str = "weights", *, postprocess: str = "none", confidence: float = 0.95
    ) -> PersonalEstimate:
        """Estimate the shares from all classes together.

        Parameters
        ----------
        method : str
            weights, population or likelihood; see the module.
        postprocess : str
            A rule of `postprocess`.
        confidence : float
            Of the intervals, strictly between 0 and 1.

        Raises
        ------
        ArgumentError
            There are no reports, or an argument is out of range.
        """
        one_of(method, METHODS, "method")
        level = check_confidence(confidence)
        full = [part for part in self.parts if part.n]
        if not full:
            raise ArgumentError("there are no reports to estimate from")
        by_class = tuple(part.estimate(confidence=confidence) for part in full)
        raw = np.array([e.raw for e in by_class])
        n = np.array([e.n for e in by_class], dtype=np.float64)
        k = raw.shape[1]
        spread = [part.channel.noise_variance(np.full(k, 1 / k)) for part in full]
        precise = n[:, None] / np.array(spread) if method != "population" else n[:, None] + 0 * raw
        weights = precise / precise.sum(axis=0)
        found = (weights * raw).sum(axis=0)
        plausible = project(found)
        own = np.array([part.channel.noise_variance(plausible) for part in full]) / n[:, None]
        errors = np.sqrt((weights**2 * own).sum(axis=0))
        if method == "likelihood":
            found, errors = _likely(full, raw, plausible), np.full(k, np.nan)
        unbiased = all(part.channel.unbiased for part in full)
        notes = (_INDEPENDENT, *_differing(self, full, raw, own, plausible, n))
        return PersonalEstimate(
            values=self.personal.domain.values,
            shares=apply_rule(postprocess, found, errors),
            standard_errors=errors,
            raw=found,
            n=self.n,
            rejected=self.rejected,
            method=method,
            postprocess=postprocess,
            biased=method == "likelihood" or postprocess != "none" or not unbiased,
            confidence=level,
            weights=weights,
            by_class=by_class,
            notes=notes,
        )


@dataclass(frozen=True, slots=True, eq=False)
class PersonalEstimate:
    """Shares estimated from people with different channels.

    Parameters
    ----------
    values : tuple
    shares, standard_errors : array of float, shape (k,)
        After `postprocess`; errors are those of the raw shares, NaN for a likelihood.
    n, rejected : int
    method, postprocess : str
    biased : bool
        Whether the method, the rule or a channel takes unbiasedness away.
    confidence : float
    weights : array of float, shape (classes with reports, k)
    by_class : tuple of Estimate
        Of each class that reported.
    notes : tuple of str
        What the estimate rests on, and what speaks against it.
    raw : array of float, shape (k,)

    Examples
    --------
    >>> from dither import local
    >>> offer = Personal.of(local.GRR, ["no", "yes"], epsilons=[1, 2])
    >>> counts = offer.aggregate(offer.privatize(["yes"] * 30, choices=[0, 1, 1] * 10))
    >>> print(counts.estimate().summary().splitlines()[0])
    personal, by weights: 30 reports (10 + 20)
    """

    values: tuple[Value, ...]
    shares: Array
    standard_errors: Array
    n: int
    rejected: int
    method: str
    postprocess: str
    biased: bool
    confidence: float
    weights: Array
    by_class: tuple[Estimate, ...]
    notes: tuple[str, ...]
    raw: Array = field(repr=False)

    def __getitem__(self, value: Value) -> float:
        """The estimated share of one value."""
        if not isinstance(value, Value) or value not in self.values:
            raise ArgumentError("value must be in the domain")
        return float(self.shares[self.values.index(value)])

    def __str__(self) -> str:
        return self.summary()

    def summary(self) -> str:
        """A few lines for people: the shares, how well they are known, and what they rest on."""
        dropped = f", {self.rejected:,} dropped as impossible" if self.rejected else ""
        sizes = " + ".join(f"{e.n:,}" for e in self.by_class)
        lines = [
            f"personal, by {self.method}: {self.n:,} reports ({sizes}){dropped}",
            f"{'value':<20}{'share':>9}{f'± {level(self.confidence)}':>12}",
        ]
        z = NormalDist().inv_cdf((1 + self.confidence) / 2)
        half_widths = np.where(self.trusted, z * self.standard_errors, np.nan)
        for i in np.argsort(-self.shares, kind="stable")[:12].tolist():
            half = half_widths[i]
            told = f"{half:>12.4f}" if np.isfinite(half) else f"{'unknown':>12}"
            lines.append(f"{str(self.values[i])[:19]:<20}{self.shares[i]:>9.4f}{told}")
        if len(self.values) > 12:
            lines.append(f"... and {len(self.values) - 12:,} more values")
        if self.biased:
            lines.append("Shares are biased; a ± is that of the raw estimates.")
        return "\n".join([*lines, *self.notes])

    @property
    def trusted(self) -> npt.NDArray[np.bool_]:
        """Of which values the interval may be trusted, shape (k,); see `Estimate.trusted`.

        The report that weighs most, of any class, is what the error is compared with.
        """
        pairs = zip(self.weights, self.by_class, strict=True)
        steps = [w * found.channel.largest_step / found.n for w, found in pairs]
        return np.asarray(self.standard_errors >= MANY * np.max(steps, axis=0))

    @property
    def intervals(self) -> Array:
        """Normal intervals of the raw shares, shape (k, 2); NaN where they are not `trusted`.

        Raises
        ------
        ArgumentError
            The estimate is biased.
        """
        if self.method == "likelihood" or not all(e.channel.unbiased for e in self.by_class):
            raise ArgumentError("intervals are not valid for a biased estimate; use weights")
        z = NormalDist().inv_cdf((1 + self.confidence) / 2)
        half = np.where(self.trusted, z * self.standard_errors, np.nan)
        return np.stack([self.raw - half, self.raw + half], axis=1)


def _likely(parts: list[Aggregate], raw: Array, plausible: Array) -> Array:
    if all(isinstance(part.channel, FiniteChannel) for part in parts):
        from dither.local._numbers.em import pooled_em

        return np.asarray(pooled_em(parts).shares)
    k = plausible.size
    if k > _MAX_VALUES:
        raise ArgumentError(f"likelihood needs at most {_MAX_VALUES} values; use weights")
    gram, moments = np.zeros((k, k)), np.zeros(k)
    for part, shares in zip(parts, raw, strict=True):
        inverse = part.n * np.linalg.pinv(part.channel.noise_covariance(plausible), hermitian=True)
        gram += inverse
        moments += inverse @ shares
    # A row far heavier than the others holds the sum at 1.
    heavy = 1e4 * float(np.diag(gram).max())
    scale = 1 / heavy
    found = nonnegative((gram + heavy) * scale, (moments + heavy) * scale)
    return np.asarray(found / found.sum())


def _differing(
    counted: PersonalAggregate,
    parts: list[Aggregate],
    raw: Array,
    own: Array,
    plausible: Array,
    n: Array,
) -> tuple[str, ...]:
    """A note for each class whose shares differ from the others' by more than chance allows."""
    if len(parts) < 2:
        return ()
    spread = own + plausible * (1 - plausible) / n[:, None]
    notes = []
    tests = raw.size
    for i, part in enumerate(parts):
        rest = np.delete(1 / spread, i, axis=0)
        others = (rest * np.delete(raw, i, axis=0)).sum(axis=0) / rest.sum(axis=0)
        z = np.abs(raw[i] - others) / np.sqrt(spread[i] + 1 / rest.sum(axis=0))
        chance = 2 * NormalDist().cdf(-float(z.max())) * tests
        if chance < _ALARM:
            place = next(c for c, p in enumerate(counted.parts) if p is part)
            notes.append(
                f"the shares of choice {place} differ from those of the others (chance below "
                f"{_ALARM:g}): what people chose may depend on their values; only method "
                "population estimates the shares of all of them"
            )
    return tuple(notes)
