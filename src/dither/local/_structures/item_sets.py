"""Sets of items, and of pairs of key and value: pad to one length, sample one slot, report it.

Item sets. A person with items S pads S with dummies to `padding` slots (or keeps a random `padding`
of them, if there are more), picks one slot at random and reports its item, or "a dummy", through
any frequency channel over items + 1 symbols.

Guarantee. epsilon for any two sets: whatever is picked, it is reported with epsilon.

Error. The share of people who hold item i is padding·f_i where nobody has more than `padding`
items; those who have more make every estimate too small, by at most the share of them: the result
says so and is flagged.

Source. Qin et al., CCS 2016; Wang, Li and Jha, S&P 2018 (padding and sampling).

Key-value pairs. A person's pairs are padded to `padding` slots and one slot is picked, as for item
sets; its value v in [-1, 1] becomes the sign +1 with chance (1 + v)/2, else -1; the pair (key,
sign), or "a dummy", goes through one frequency channel over 2·keys + 1 symbols. Key and sign are
reported together, so a value is never spent on a key that was made up.

Guarantee. epsilon for any two sets of pairs.

Error. With s+ and s- the shares of the two symbols of a key: the share of people who have the key
is padding·(s+ + s-), unbiased where nobody has more than `padding` pairs, and the mean of its
values is (s+ - s-)/(s+ + s-), a ratio: consistent, with its standard error by the delta method.

Source. Ye et al., "PrivKV", S&P 2019; Gu et al., "PCKV", USENIX Security 2020 (padding and
sampling, joint report).
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from fractions import Fraction
from typing import Any, ClassVar

import numpy as np
import numpy.typing as npt

from dither.errors import ArgumentError
from dither.local._channel import Channel, DomainLike, checked_epsilon
from dither.local._coins import pick
from dither.local._domain import Domain
from dither.local._frequency.grr import GRR
from dither.local._guarantee import Guarantee
from dither.local._structures.attributes import checked_counts
from dither.local._structures.parts import Maker, PartCounts, Reports, Structure, given, made_part
from dither.numeric import Words


@dataclass(frozen=True, slots=True, eq=False)
class ItemShares:
    """How many people hold each item.

    Parameters
    ----------
    items : tuple
    shares : array of float, shape (k,)
        Of people whose set holds the item; unbiased if no set is larger than `padding`.
    standard_errors : array of float, shape (k,)
    padding : int
    n : int
    """

    items: tuple[Any, ...]
    shares: npt.NDArray[np.float64]
    standard_errors: npt.NDArray[np.float64]
    padding: int
    n: int

    @property
    def note(self) -> str:
        """What the shares assume."""
        return f"too small where people have more than {self.padding} items"

    def top(self, k: int) -> list[tuple[Any, float]]:
        """The k most frequent items with their shares."""
        order = np.argsort(-self.shares, kind="stable")[:k]
        return [(self.items[i], float(self.shares[i])) for i in order.tolist()]


@dataclass(frozen=True, slots=True, init=False)
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
    Guarantee. epsilon-local DP: neighbours are any two sets of one person, of whatever sizes.

    References
    ----------
    Qin et al., CCS 2016; Wang, Li and Jha, S&P 2018.

    Examples
    --------
    >>> sets = ItemSets(["bread", "milk", "wine"], epsilon=4, padding=2)
    >>> counts = sets.aggregate(sets.privatize([{"bread"}, {"bread", "milk"}, set()] * 2000))
    >>> sets.estimate(counts).top(1)[0][0]
    'bread'
    """

    kind: ClassVar[str] = "item-sets"

    items: Domain
    epsilon: Fraction
    padding: int
    channel: Channel

    def __init__(
        self, items: DomainLike, epsilon: Any, *, padding: int, channel: Maker = GRR
    ) -> None:
        domain, made = Domain(items), checked_epsilon(epsilon)
        object.__setattr__(self, "items", domain)
        object.__setattr__(self, "epsilon", made)
        object.__setattr__(self, "padding", checked_padding(padding))
        # Codes 0..k-1 are items, k is a dummy.
        object.__setattr__(self, "channel", made_part(channel, Domain(len(domain) + 1), made))

    @property
    def parts(self) -> dict[str, Channel]:
        """One channel, over items and a dummy."""
        return {"item": self.channel}

    @property
    def guarantee(self) -> Guarantee:
        """epsilon for any two sets."""
        return Guarantee.uniform(self.epsilon)

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
        """One report a set, of a sequence of sets of items."""
        lengths, flat = flattened(records)
        codes = self.items.encode(flat) if len(flat) else np.zeros(0, dtype=np.int64)
        codes, lengths = without_repeats(codes, lengths, len(self.items))
        place, real = sampled_slots(lengths, self.padding, words)
        chosen = np.full(lengths.size, len(self.items), dtype=np.int64)
        chosen[real] = codes[place[real]]
        return {"item": self.channel.draw(chosen, words)}

    def estimate(self, counts: PartCounts) -> ItemShares:
        """Shares of people who hold each item."""
        checked_counts(self, counts)
        part = counts["item"]
        raw = part.estimate()
        f = raw.plausible
        # Which slot was picked is chance as well: f(1-f)/n over people and picks.
        errors = self.padding * np.sqrt(raw.standard_errors**2 + f * (1 - f) / part.n)
        return ItemShares(
            self.items.values, self.padding * raw.shares[:-1], errors[:-1], self.padding, part.n
        )


def checked_padding(padding: Any) -> int:
    """Slots: a whole number of at least 1."""
    if isinstance(padding, bool) or not isinstance(padding, int) or padding < 1:
        raise ArgumentError("padding must be a whole number of at least 1")
    return padding


def flattened(records: Any) -> tuple[npt.NDArray[np.int64], list[Any]]:
    """The lengths of the sets, and all their items in order."""
    if isinstance(records, str | bytes) or not isinstance(records, Iterable):
        raise ArgumentError("records must be a sequence of sets of items")
    lengths, flat = [], []
    for record in records:
        if isinstance(record, str | bytes) or not isinstance(record, Iterable):
            raise ArgumentError("records must be a sequence of sets of items, one a person")
        items = list(record)
        lengths.append(len(items))
        flat += items
    return np.array(lengths, dtype=np.int64), flat


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
    slots = np.maximum(lengths, padding)
    drawn = np.zeros(lengths.size, dtype=np.int64)
    for size in np.unique(slots).tolist():
        mine = slots == size
        drawn[mine] = pick(size, int(mine.sum()), words)
    return starts + np.minimum(drawn, np.maximum(lengths - 1, 0)), drawn < lengths


@dataclass(frozen=True, slots=True, eq=False)
class KeyMeans:
    """How many people have each key, and the mean of its values in the values' own units.

    Parameters
    ----------
    keys : tuple
    shares, share_errors : array of float, shape (k,)
        Of people who have the key, and their standard errors.
    means, mean_errors : array of float, shape (k,)
        Of the key's values; NaN where the estimated share is not positive.
    padding : int
    n : int
    """

    keys: tuple[Any, ...]
    shares: npt.NDArray[np.float64]
    share_errors: npt.NDArray[np.float64]
    means: npt.NDArray[np.float64]
    mean_errors: npt.NDArray[np.float64]
    padding: int
    n: int

    @property
    def note(self) -> str:
        """What the shares assume."""
        return (
            f"shares are too small where people have more than {self.padding} pairs; "
            "means of rare keys are ratios of noisy numbers: trust them where the share is many "
            "standard errors from 0"
        )


@dataclass(frozen=True, slots=True, init=False)
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
    Guarantee. epsilon-local DP: neighbours are any two sets of pairs of one person, of whatever
    sizes.

    References
    ----------
    Ye et al., "PrivKV", S&P 2019; Gu et al., "PCKV", USENIX Security 2020.

    Examples
    --------
    >>> ratings = KeyValue(["film", "book"], bounds=(0, 5), epsilon=5, padding=2)
    >>> counts = ratings.aggregate(ratings.privatize([{"film": 4}, {"film": 5, "book": 1}] * 5000))
    >>> bool(abs(ratings.estimate(counts).means[0] - 4.5) < 0.4)
    True
    """

    kind: ClassVar[str] = "key-value"

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
        except (TypeError, ValueError):
            raise ArgumentError("bounds must be two numbers, the least and the greatest") from None
        if not (np.isfinite([low, high, high - low]).all() and low < high):
            raise ArgumentError("bounds must be finite and the first below the second")
        object.__setattr__(self, "keys", domain)
        object.__setattr__(self, "bounds", (low, high))
        object.__setattr__(self, "epsilon", made)
        object.__setattr__(self, "padding", checked_padding(padding))
        # Codes 2i and 2i + 1 are key i with a low and a high sign; 2k is a dummy.
        object.__setattr__(self, "channel", made_part(channel, Domain(2 * len(domain) + 1), made))

    @property
    def parts(self) -> dict[str, Channel]:
        """One channel, over keys with signs and a dummy."""
        return {"pair": self.channel}

    @property
    def guarantee(self) -> Guarantee:
        """epsilon for any two sets of pairs."""
        return Guarantee.uniform(self.epsilon)

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
        """One report a person, of a sequence of mappings from key to value."""
        if isinstance(records, Mapping) or not isinstance(records, Iterable):
            raise ArgumentError("records must be a sequence of mappings from key to value")
        people = list(records)
        if not all(isinstance(pairs, Mapping) for pairs in people):
            raise ArgumentError("records must be mappings from key to value, one a person")
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
            raise ArgumentError("values must be numbers, one a key")
        if np.isnan(v).any():
            raise ArgumentError("values must not be missing")
        low, high = self.bounds
        part = (np.clip(v, low, high) - low) / (high - low)
        limit = np.round(part * 2.0**32).astype(np.uint64)
        return ((words.words(v.size) >> np.uint64(32)) < limit).astype(np.int64)

    def estimate(self, counts: PartCounts) -> KeyMeans:
        """Shares and means by key."""
        checked_counts(self, counts)
        part = counts["pair"]
        raw = part.estimate()
        f, n = raw.plausible, part.n
        over = np.diag(f) - np.outer(f, f)
        covariance = raw.covariance + over / n
        minus, plus = raw.shares[0:-1:2], raw.shares[1::2]
        i = np.arange(0, 2 * len(self.keys), 2)
        var_m, var_p, both = covariance[i, i], covariance[i + 1, i + 1], covariance[i, i + 1]
        total = plus + minus
        with np.errstate(divide="ignore", invalid="ignore"):
            ratio = np.where(total > 0, (plus - minus) / total, np.nan)
            # d ratio = ((1 - ratio)·d plus - (1 + ratio)·d minus)/total
            spread = (1 - ratio) ** 2 * var_p + (1 + ratio) ** 2 * var_m
            spread -= 2 * (1 - ratio**2) * both
            mean_errors = np.sqrt(np.maximum(spread, 0)) / total
        low, high = self.bounds
        return KeyMeans(
            self.keys.values,
            self.padding * total,
            self.padding * np.sqrt(np.maximum(var_m + var_p + 2 * both, 0)),
            low + (np.clip(ratio, -1, 1) + 1) / 2 * (high - low),
            mean_errors * (high - low) / 2,
            self.padding,
            n,
        )
