"""Sets of items, and of pairs of key and value: pad to one length, sample one slot, report it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import Any, ClassVar

import numpy as np
import numpy.typing as npt

from dither import _checks
from dither._stats import clopper_pearson, two_sided
from dither.errors import ArgumentError
from dither.local._audited import AuditCase
from dither.local._channel import Channel, DomainLike
from dither.local._coins import pick
from dither.local._domain import Domain, bind, collection
from dither.local._estimates.postprocess import no_rule
from dither.local._estimates.results import Estimate, checked_options, sampled, shares_of
from dither.local._frequency.grr import GRR
from dither.local._frequency.local_hash import FLH
from dither.local._limits import checked_epsilon
from dither.local._oracles import PureChannel
from dither.local._reports.aggregate import Aggregate
from dither.local._structures.parts import (
    Maker,
    PartCounts,
    Reports,
    Structure,
    given,
    made_part,
)
from dither.local._structures.results import KeyEstimate
from dither.numeric import Words

Array = npt.NDArray[np.float64]

_FAR = 10.0
"""How many standard errors a key's share must be above 0 for a normal interval of its mean."""


@dataclass(frozen=True, init=False)
class ItemSets(Structure):
    """Frequencies of items in people's sets.

    Parameters
    ----------
    items : Domain, int or list
        All items there are.
    epsilon : number
        For a person's whole set; from 2**-32 to 40.
    padding : int
        Slots, at least 1: about the size that nine sets in ten do not exceed.
    channel : callable
        Makes the channel from its domain and epsilon: GRR, OUE, OLH, ...

    Raises
    ------
    ArgumentError
        An argument is out of range, or `channel` makes what promises less than epsilon for some
        two values.

    Notes
    -----
    A person with items S pads S with dummies to `padding` slots (or keeps a random `padding` of
    them, if there are more), picks one slot at random and reports its item, or "a dummy", through a
    frequency channel over items + 1 symbols.

    Guarantee. epsilon-local DP: neighbours are any two sets of one person, of whatever sizes.
    Whatever is picked, it is reported with epsilon.

    Error. The share of people who hold item i is padding·f_i where nobody has more than `padding`
    items; those who have more make every estimate too small, by at most the share of them: the
    result says so.

    References
    ----------
    Qin et al., CCS 2016; Wang, Li and Jha, S&P 2018 (padding and sampling).

    Examples
    --------
    >>> sets = ItemSets(["bread", "milk", "wine"], epsilon=4, padding=2)
    >>> counts = sets.aggregate(sets.privatize([{"bread"}, {"bread", "milk"}, set()] * 2000))
    >>> counts.estimate().top(1)[0][0]
    'bread'
    """

    kind: ClassVar[str] = "item-sets"
    audit_cases: ClassVar[tuple[AuditCase, ...]] = (
        AuditCase({"items": 4, "epsilon": 1, "padding": 2}, {0, 1}, {2, 3}),
    )

    items: Domain
    epsilon: Fraction
    padding: int
    channel: Channel

    def __init__(
        self, items: DomainLike, epsilon: Any, *, padding: int, channel: Maker = GRR
    ) -> None:
        domain, made = Domain(items), checked_epsilon(epsilon)
        bind(self, items=domain, epsilon=made, padding=_checks.whole("padding", padding, 1))
        # Codes 0..k-1 are items, k is a dummy.
        bind(self, channel=made_part(channel, Domain(len(domain) + 1), made))

    @property
    def parts(self) -> dict[str, Channel]:
        """One channel, over items and a dummy."""
        return {"item": self.channel}

    def settings(self) -> dict[str, Any]:
        """Items, slots and epsilon."""
        return {
            "items": self.items.to_dict(),
            "padding": self.padding,
            "epsilon": str(self.epsilon),
        }

    @classmethod
    def from_settings(cls, settings: dict[str, Any], parts: dict[str, Channel]) -> Structure:
        """The structure that `settings` and `parts` describe."""
        settings["items"] = Domain.from_dict(settings["items"])
        return cls(channel=given(parts), **settings)

    def draw(self, records: Any, words: Words) -> Reports:
        """One report per set, of a sequence of sets of items."""
        codes, lengths = item_codes(self.items, records)
        place, real = sampled_slots(lengths, self.padding, words)
        chosen = np.full(lengths.size, len(self.items), dtype=np.int64)
        chosen[real] = codes[place[real]]
        return {"item": self.channel.draw(chosen, words)}

    def read(
        self, counts: PartCounts, rule: str, confidence: float, options: dict[str, Any]
    ) -> Estimate:
        """Shares of people who hold each item."""
        checked_options(options, (), "item sets")
        no_rule(rule, "item sets, whose shares need not sum to 1")
        note = f"Shares are too small where people have more than {self.padding} items."
        return of_slots(
            counts["item"], self.padding, self.items.values, self.kind, note, confidence
        )


def of_slots(
    counted: Aggregate,
    padding: int,
    values: tuple[Any, ...],
    title: str,
    note: str,
    confidence: float,
) -> Estimate:
    """Shares of people, of reports of one slot of each person's padded set."""
    # Which slot was picked is chance as well: f(1-f)/n over people and picks.
    one = sampled(shares_of(counted, "none", confidence))
    return scaled(one, padding, values, title, note)


def scaled(
    found: Estimate, factor: int, values: tuple[Any, ...], title: str, note: str
) -> Estimate:
    """Shares of people, of the shares of slots; a last symbol, the dummy, is left out."""
    kept = slice(0, len(values))
    return replace(
        found,
        title=title,
        values=values,
        shares=factor * found.shares[kept],
        raw=factor * found.raw[kept],
        plausible=factor * found.plausible[kept],
        standard_errors=factor * found.standard_errors[kept],
        steps=factor * found.steps[kept],
        notes=(note,),
        channel=None,
    )


def flattened(records: Any) -> tuple[npt.NDArray[np.int64], list[Any]]:
    """The lengths of the sets, and all their items in order."""
    if not collection(records):
        raise ArgumentError("records must be a sequence of sets of items")
    lengths, flat = [], []
    for record in records:
        if not collection(record):
            raise ArgumentError("records must be a sequence of sets of items, one per person")
        items = list(record)
        lengths.append(len(items))
        flat += items
    return np.array(lengths, dtype=np.int64), flat


def item_codes(items: Domain, records: Any) -> tuple[npt.NDArray[np.int64], npt.NDArray[np.int64]]:
    """The codes of all sets' items, each person's in turn and once each, and how many they are."""
    lengths, flat = flattened(records)
    codes = items.encode(flat) if len(flat) else np.zeros(0, dtype=np.int64)
    return without_repeats(codes, lengths, len(items))


def without_repeats(
    codes: npt.NDArray[np.int64], lengths: npt.NDArray[np.int64], k: int
) -> tuple[npt.NDArray[np.int64], npt.NDArray[np.int64]]:
    """Each person's items once each, and the new lengths."""
    owner = np.repeat(np.arange(lengths.size), lengths)
    once = np.unique(owner * k + codes)
    return once % k, np.bincount(once // k, minlength=lengths.size).astype(np.int64)


def sampled_slots(
    lengths: npt.NDArray[np.int64], padding: int, words: Words
) -> tuple[npt.NDArray[np.int64], npt.NDArray[np.bool_]]:
    """A slot of each person's padded set: its place among all items, and whether it is an item.

    Of a set of at most `padding` items each has chance 1/padding; of a larger one each has
    1/length, as a random choice of `padding` of them and then of one does.
    """
    starts = np.concatenate([[0], np.cumsum(lengths)[:-1]]) if lengths.size else lengths
    drawn = drawn_slots(lengths, padding, words)
    return starts + np.minimum(drawn, np.maximum(lengths - 1, 0)), drawn < lengths


def drawn_slots(
    lengths: npt.NDArray[np.int64], padding: int, words: Words
) -> npt.NDArray[np.int64]:
    """The number of a slot of each person's padded set: a dummy's from the set's length on."""
    slots = np.maximum(lengths, padding)
    drawn = np.zeros(lengths.size, dtype=np.int64)
    for size in np.unique(slots).tolist():
        mine = slots == size
        drawn[mine] = pick(size, int(mine.sum()), words)
    return drawn


@dataclass(frozen=True, init=False)
class KeyValue(Structure):
    """Frequencies of keys and means of their values.

    Parameters
    ----------
    keys : Domain, int or list
    bounds : tuple of two numbers
        Least and greatest value; values beyond are clamped.
    epsilon : number
        For a person's whole set of pairs; from 2**-32 to 40.
    padding : int
        Slots, at least 1.
    channel : callable
        Makes the channel from its domain and epsilon: GRR, OUE, OLH, ...

    Raises
    ------
    ArgumentError
        An argument is out of range, or `channel` makes what promises less than epsilon for some
        two values.

    Notes
    -----
    A person's pairs are padded to `padding` slots and one slot is picked, as for `ItemSets`; its
    value v, scaled to [-1, 1], becomes the sign +1 with chance (1 + v)/2, else -1; the pair (key,
    sign), or "a dummy", goes through one frequency channel over 2·keys + 1 symbols. Key and sign
    are reported together, so a value is never spent on a key that was made up.

    Guarantee. epsilon-local DP: neighbours are any two sets of pairs of one person, of whatever
    sizes.

    Error. With s+ and s- the shares of the two symbols of a key: the share of people who have the
    key is padding·(s+ + s-), unbiased where nobody has more than `padding` pairs, and the mean of
    its values is (s+ - s-)/(s+ + s-), a ratio: consistent, with its standard error by the delta
    method.

    References
    ----------
    Ye et al., "PrivKV", S&P 2019; Gu et al., "PCKV", USENIX Security 2020 (padding and sampling,
    joint report).

    Examples
    --------
    >>> ratings = KeyValue(["film", "book"], bounds=(0, 5), epsilon=5, padding=2)
    >>> counts = ratings.aggregate(ratings.privatize([{"film": 4}, {"film": 5, "book": 1}] * 5000))
    >>> bool(abs(counts.estimate().means[0] - 4.5) < 0.4)
    True
    """

    kind: ClassVar[str] = "key-value"
    audit_cases: ClassVar[tuple[AuditCase, ...]] = (
        AuditCase({"keys": 2, "bounds": (-1, 1), "epsilon": 1, "padding": 1}, {0: 1}, {1: -1}),
    )

    keys: Domain
    bounds: tuple[float, float]
    epsilon: Fraction
    padding: int
    channel: Channel

    def __init__(
        self,
        keys: DomainLike,
        bounds: tuple[float, float],
        epsilon: Any,
        *,
        padding: int,
        channel: Maker = GRR,
    ) -> None:
        domain, made = Domain(keys), checked_epsilon(epsilon)
        try:
            low, high = (float(b) for b in bounds)
        except (TypeError, ValueError, OverflowError):
            raise ArgumentError("bounds must be two numbers, the least and the greatest") from None
        if not (np.isfinite([low, high, high - low]).all() and low < high):
            raise ArgumentError("bounds must be finite and the first below the second")
        bind(self, keys=domain, bounds=(low, high), epsilon=made)
        bind(self, padding=_checks.whole("padding", padding, 1))
        # Codes 2i and 2i + 1 are key i with a low and a high sign; 2k is a dummy.
        bind(self, channel=made_part(channel, Domain(2 * len(domain) + 1), made))

    @property
    def parts(self) -> dict[str, Channel]:
        """One channel, over keys with signs and a dummy."""
        return {"pair": self.channel}

    def settings(self) -> dict[str, Any]:
        """Keys, bounds, slots and epsilon."""
        return {
            "keys": self.keys.to_dict(),
            "bounds": list(self.bounds),
            "padding": self.padding,
            "epsilon": str(self.epsilon),
        }

    @classmethod
    def from_settings(cls, settings: dict[str, Any], parts: dict[str, Channel]) -> Structure:
        """The structure that `settings` and `parts` describe."""
        settings["keys"] = Domain.from_dict(settings["keys"])
        return cls(channel=given(parts), **settings)

    def draw(self, records: Any, words: Words) -> Reports:
        """One report per person, of a sequence of mappings from key to value."""
        if isinstance(records, Mapping) or not collection(records):
            raise ArgumentError("records must be a sequence of mappings from key to value")
        people = list(records)
        if not all(isinstance(pairs, Mapping) for pairs in people):
            raise ArgumentError("records must be mappings from key to value, one per person")
        lengths = np.array([len(pairs) for pairs in people], dtype=np.int64)
        codes = self.keys.encode([key for pairs in people for key in pairs])
        signs = self._signs([v for pairs in people for v in pairs.values()], words)
        place, real = sampled_slots(lengths, self.padding, words)
        chosen = np.full(lengths.size, 2 * len(self.keys), dtype=np.int64)
        chosen[real] = 2 * codes[place[real]] + signs[place[real]]
        return {"pair": self.channel.draw(chosen, words)}

    def _signs(self, values: list[Any], words: Words) -> npt.NDArray[np.int64]:
        """1 with chance (1 + v)/2 of the scaled value, to 2**-32; else 0."""
        try:
            v = np.array(values, dtype=np.float64)
        except (TypeError, ValueError, OverflowError):
            raise ArgumentError("values must be numbers") from None
        if v.ndim != 1:
            raise ArgumentError("values must be numbers, one per key")
        if np.isnan(v).any():
            raise ArgumentError("values must not be missing")
        low, high = self.bounds
        part = (np.clip(v, low, high) - low) / (high - low)
        limit = np.round(part * 2.0**32).astype(np.uint64)
        return ((words.words(v.size) >> np.uint64(32)) < limit).astype(np.int64)

    def read(
        self, counts: PartCounts, rule: str, confidence: float, options: dict[str, Any]
    ) -> KeyEstimate:
        """Shares and means by key."""
        checked_options(options, (), "pairs of key and value")
        no_rule(rule, "pairs of key and value, whose shares need not sum to 1")
        part = counts["pair"]
        raw = shares_of(part, "none", confidence)
        f, n = raw.plausible, part.n
        covariance = raw.covariance + (np.diag(f) - np.outer(f, f)) / n
        minus, plus = raw.shares[0:-1:2], raw.shares[1::2]
        i = np.arange(0, 2 * len(self.keys), 2)
        var_m, var_p, both = covariance[i, i], covariance[i + 1, i + 1], covariance[i, i + 1]
        total, total_errors = plus + minus, np.sqrt(np.maximum(var_m + var_p + 2 * both, 0))
        with np.errstate(divide="ignore", invalid="ignore"):
            ratio = np.where(total > 0, (plus - minus) / total, np.nan)
            # d ratio = ((1 - ratio)·d plus - (1 + ratio)·d minus)/total
            spread = (1 - ratio) ** 2 * var_p + (1 + ratio) ** 2 * var_m
            spread -= 2 * (1 - ratio**2) * both
            errors = np.sqrt(np.maximum(spread, 0)) / total
        # Both signs have a trusted error, and the ratio is all but linear within it.
        known = raw.trusted[:-1].reshape(-1, 2).all(axis=1)
        trusted = known & raw.unbiased & (total >= _FAR * total_errors)
        half = two_sided(confidence) * errors
        ends = np.clip(np.stack([ratio - half, ratio + half], axis=1), -1, 1)
        ends[~trusted] = _ratio_limits(raw, part, confidence)[~trusted]
        low, high = self.bounds
        note = (
            f"Shares are too small where people have more than {self.padding} pairs; means of rare "
            "keys are ratios of noisy numbers."
        )
        keys = replace(
            scaled(raw, self.padding, self.keys.values, self.kind, note),
            shares=self.padding * total,
            raw=self.padding * total,
            plausible=self.padding * (f[0:-1:2] + f[1::2]),
            standard_errors=self.padding * total_errors,
            steps=self.padding * (raw.steps[0:-1:2] + raw.steps[1::2]),
        )

        def of_values(ratios: Array) -> Array:
            return np.asarray(low + (np.clip(ratios, -1, 1) + 1) / 2 * (high - low))

        means, scale = of_values(ratio), (high - low) / 2
        return KeyEstimate(
            keys, (low, high), means, errors * scale, of_values(ends), np.asarray(trusted)
        )


def _ratio_limits(raw: Estimate, part: Aggregate, confidence: float) -> Array:
    """Limits of (plus - minus)/(plus + minus) of each key that hold however few reports decide.

    Each symbol's share has limits that hold, at half the chance to miss; the ratio grows with the
    one and falls with the other. Of a channel that counts supports, these are coins, p of holders
    and q of others: Clopper and Pearson's limits of their mean chance, which hold for unlike people
    as well (Hoeffding, Annals of Mathematical Statistics 1956). Else a report moves a share by its
    largest step at most: Hoeffding's inequality (JASA 1963).
    """
    channel, n, missed = part.channel, part.n, (1 - confidence) / 2
    step = channel.largest_step
    if isinstance(channel, PureChannel) and not isinstance(channel, FLH):
        p, q = (np.broadcast_to(chance, step.shape) for chance in channel.support)
        seen = [clopper_pearson(int(c), n, 1 - missed) for c in part.counts.tolist()]
        limits = (np.array(seen) - q[:, None]) / (p - q)[:, None]
    else:
        reach = step * np.sqrt(np.log(2 / missed) / (2 * n))
        # A step of 0 is unknown; the collisions of a biased channel have no limit.
        reach = np.where((step > 0) & channel.unbiased, reach, np.inf)
        limits = np.stack([raw.raw - reach, raw.raw + reach], axis=1)
    limits = np.clip(limits[:-1], 0.0, 1.0).reshape(-1, 2, 2)
    (least_m, most_m), (least_p, most_p) = limits.transpose(1, 2, 0)
    with np.errstate(divide="ignore", invalid="ignore"):
        lower = (least_p - most_m) / (least_p + most_m)
        upper = (most_p - least_m) / (most_p + least_m)
    # Where a sign may have no share at all the ratio may be anything.
    return np.stack([np.nan_to_num(lower, nan=-1.0), np.nan_to_num(upper, nan=1.0)], axis=1)
