"""Randomised response of high and low values: SDGRR and URR, which share the draw."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Iterable
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from typing import Any, ClassVar

import numpy as np
import numpy.typing as npt

from dither.errors import ArgumentError
from dither.local._audited import AuditCase
from dither.local._channel import Codes, Counts, DomainLike, Shares
from dither.local._coins import ONE, coins, exp_bounds, pick, threshold
from dither.local._domain import Value, bind
from dither.local._guarantee import Guarantee
from dither.local._guessing import guessed_from
from dither.local._limits import checked_cells, checked_pairs
from dither.local._oracles import FiniteChannel, worst_pair
from dither.numeric import Words


@dataclass(frozen=True, init=False)
class GradedResponse(FiniteChannel):
    """Randomised response with high and low values; a report is the code of a value."""

    high: tuple[bool, ...]

    def __init__(self, domain: DomainLike, high: Iterable[Value], epsilon: Any) -> None:
        super().__init__(domain, epsilon)
        mask = self.domain.subset(high, "high")
        if not mask.any() or mask.all():
            raise ArgumentError(
                "high must hold at least one value of the domain and not all of them; "
                "where all are sensitive, use GRR"
            )
        bind(self, high=tuple(mask.tolist()))

    @cached_property
    def truths(self) -> tuple[int, int]:
        """Out of 2**64: how often a high value reports itself, and how often a low one.

        Both are rounded down: then no high value is likelier than e times any other's chance of it.
        """
        e, _ = exp_bounds(self.epsilon)
        high, low = self._truths(e, len(self.domain), sum(self.high))
        return threshold(high), threshold(low)

    @staticmethod
    @abstractmethod
    def _truths(e: Fraction, k: int, h: int) -> tuple[Fraction, Fraction]:
        """How often a high and a low value report themselves, of h high among k values."""

    def settings(self) -> dict[str, Any]:
        """Domain, epsilon, and the high values in the domain's order."""
        values, epsilon = self.domain.values, str(self.epsilon)
        chosen = [values[code] for code in np.flatnonzero(self.high).tolist()]
        return {"domain": self.domain.to_dict(), "high": chosen, "epsilon": epsilon}

    @property
    def outputs(self) -> int:
        """A report is the code of a value."""
        return len(self.domain)

    @property
    def _truth(self) -> tuple[Fraction, Fraction]:
        high, low = self.truths
        return Fraction(high, ONE), Fraction(low, ONE)

    @property
    @abstractmethod
    def _onto_low(self) -> Fraction:
        """How often a high value is reported as each low one."""

    @property
    @abstractmethod
    def _chances(self) -> tuple[Fraction, Fraction, Fraction, Fraction]:
        """(c1, c2 of a high value, c2 of a low one, c3), exactly as drawn."""

    @property
    def matrix(self) -> Shares:
        """The law in floating point, shape (k, k)."""
        k = len(self.domain)
        checked_cells(k, k)
        c1, c2, c2_low, c3 = (float(c) for c in self._chances)
        mask = np.array(self.high)
        onto_low = np.where(mask, float(self._onto_low), 0.0)
        found = np.where(mask[None, :], np.where(mask, c2, c2_low)[:, None], onto_low[:, None])
        np.fill_diagonal(found, np.where(mask, c1, c3))
        return found

    def forward(self, frequencies: Shares) -> Shares:
        """Shares of the reports, class by class."""
        c1, c2, c2_low, c3 = (float(c) for c in self._chances)
        mask, f = np.array(self.high), frequencies
        high, low = float(f[mask].sum()), float(f[~mask].sum())
        on_high = f * c1 + (high - f) * c2 + low * c2_low
        return np.where(mask, on_high, f * c3 + high * float(self._onto_low))

    def guessed(self, prior: Shares | None) -> Shares:
        """In closed form, from high reports and from low ones."""
        c1, c2, c2_low, c3 = (float(c) for c in self._chances)
        mask = np.array(self.high)
        pi = np.ones(mask.size) if prior is None else prior
        high = guessed_from(mask, c1, np.where(mask, c2, c2_low), pi)
        return high + guessed_from(~mask, c3, np.where(mask, float(self._onto_low), 0.0), pi)

    @property
    def guarantee(self) -> Guarantee:
        """The class matrix: values of a class are alike, so one pair of codes stands for all.

        So does one more report of each class for all that are neither code of the pair.
        """
        mask = np.array(self.high)
        of_class = {"high": np.flatnonzero(mask), "low": np.flatnonzero(~mask)}
        codes = {name: found[:2] for name, found in of_class.items()}
        reports = {int(y): 1 for pair in codes.values() for y in pair}
        reports |= {int(found[2]): found.size - 2 for found in of_class.values() if found.size > 2}
        pairs = {
            (a, b): worst_pair(self, codes[a], codes[b], self.epsilon, reports)
            for a in codes
            for b in codes
        }
        return Guarantee(self.epsilon, ("high", "low"), pairs)

    def draw(self, codes: Codes, words: Words) -> npt.NDArray[np.int64]:
        """The code itself, or another: a high one for a low, what `_elsewhere` says for a high."""
        mask = np.array(self.high)
        highs = np.flatnonzero(mask)
        # Every person draws both, so that the time taken says nothing of the value.
        from_high = self._elsewhere(codes, words)
        from_low = highs[pick(highs.size, codes.size, words)]
        kept_high, kept_low = (coins(t, codes.size, words) for t in self.truths)
        is_high = mask[codes]
        moved = np.where(is_high, from_high, from_low)
        return np.where(np.where(is_high, kept_high, kept_low), codes, moved)

    @abstractmethod
    def _elsewhere(self, codes: Codes, words: Words) -> Codes:
        """Another report for each high code; anything for low ones."""


@dataclass(frozen=True, init=False)
class SDGRR(GradedResponse):
    """Sensitivity-graded randomised response.

    Parameters
    ----------
    domain : Domain, int or list
        The k values that people may hold.
    high : collection of values
        The highly sensitive ones: at least one, and not all.
    epsilon : number
        From 2**-32 to 40; read exactly.

    Raises
    ------
    ArgumentError
        `domain` has fewer than two values or repeats one, or `epsilon` is out of range; or
        `high` is empty, all of the domain, or holds other values.

    Notes
    -----
    Law, for k values of which h are high and m = k - h low, e = e^epsilon, D = k + e - 1::

        high x:  x with c1 = e/D,            each other value with c2 = 1/D
        low x:   x with c3 = (m + e - 1)/D,  each high value with c2,  never another low value

    Guarantee, between two values of one person, by classes (delta at the same epsilon): two high
    values (epsilon, 0); a high and a low value delta = (m-1)/D, and a low report excludes every
    other low value, so the pure ratio from high to low is infinite where m > 1; two low values
    delta = (m + e - 1)/D: a low value that reports itself shows itself. No single epsilon is true
    of this channel.

    Error. With a = 1/(e-1), q_i = Pr[y = i], Q = Pr[y high]: a high value's estimate is that of
    GRR; a low one's is f̂_i = (share_i - c2·F̂)/c3, where F̂ is the estimated total share of high
    values, and n·Var f̂_i = [q_i(1-q_i) + a²Q(1-Q) + 2a·q_i·Q]/c3² over users and coins; given the
    users' values it is f_i(1-f_i) less.

    References
    ----------
    Chen, Ye, Zhang and Shu, "SDLDP", Journal of Cyber Security 2025, section 4.2. Put right here:
    its definition 3 lacks Pr[F(x_H) = y] > 0 on low outputs, without which the non-private URR
    satisfies it; its constants print "e" for e^epsilon; its theorem 2 takes the total F̂ as known,
    which understates the variance more than a thousandfold at small epsilon.

    Examples
    --------
    >>> channel = SDGRR(["flu", "cold", "asthma", "HIV"], high={"HIV"}, epsilon=0.5)
    >>> print(channel.guarantee)
    delta at epsilon = 0.5, of a value of the row against one of the column
                         high                low
    high                    0    0.431 (pure: ∞)
    low     0.431 (pure: 1.3)    0.785 (pure: ∞)
    """

    kind: ClassVar[str] = "sdgrr"
    audit_cases: ClassVar[tuple[AuditCase, ...]] = (
        AuditCase({"domain": 5, "high": {0, 1}, "epsilon": 1}, 0, 1, ("high", "high")),
        AuditCase({"domain": 5, "high": {0, 1}, "epsilon": 1}, 0, 2, ("high", "low")),
        AuditCase({"domain": 5, "high": {0, 1}, "epsilon": 1}, 2, 3, ("low", "low")),
    )

    @staticmethod
    def _truths(e: Fraction, k: int, h: int) -> tuple[Fraction, Fraction]:
        return e / (k + e - 1), (k - h + e - 1) / (k + e - 1)

    @property
    def _chances(self) -> tuple[Fraction, Fraction, Fraction, Fraction]:
        c1, c3 = self._truth
        return c1, (1 - c1) / (len(self.high) - 1), (1 - c3) / sum(self.high), c3

    def exact(self, x: int, y: int) -> Fraction:
        """The law above, with the sampler's own rational chances."""
        c1, c2, c2_low, c3 = self._chances
        if self.high[x]:
            return c1 if x == y else c2
        if x == y:
            return c3
        return c2_low if self.high[y] else Fraction(0)

    @property
    def _onto_low(self) -> Fraction:
        return self._chances[1]

    @property
    def blanket(self) -> tuple[int, int]:
        """Everybody gives the high answers."""
        return len(self.domain), sum(self.high)

    def _elsewhere(self, codes: Codes, words: Words) -> Codes:
        k = len(self.domain)
        others = codes + 1 + pick(k - 1, codes.size, words)
        return np.asarray(others - k * (others >= k))

    def decode(self, counts: Counts, n: int) -> Shares:
        """High: (share - c2)/(c1 - c2); low: (share - c2·F̂)/c3, F̂ the sum over high values."""
        c1, c2, c2_low, c3 = (float(c) for c in self._chances)
        mask, h, shares = np.array(self.high), sum(self.high), counts / n
        total = (shares[mask].sum() - h * c2_low) / (c1 + (h - 1) * c2 - h * c2_low)
        found = np.empty(len(self.high))
        found[mask] = (shares[mask] - c2 * total - c2_low * (1 - total)) / (c1 - c2)
        found[~mask] = (shares[~mask] - c2 * total) / c3
        return found

    @property
    def largest_step(self) -> Shares:
        """1/(c1 - c2) of high values; of low ones (1 + a)/c3, as a high report takes away a/c3."""
        c1, c2, _, c3 = (float(c) for c in self._chances)
        return np.where(self.high, 1 / (c1 - c2), (1 + c2 / (c1 - c2)) / c3)

    def noise_variance(self, frequencies: Shares) -> Shares:
        """The closed forms of the class's notes, less f(1-f), for one report."""
        c1, c2, _, c3 = (float(c) for c in self._chances)
        mask, f = np.array(self.high), frequencies
        q = self.forward(f)
        total = q[mask].sum()
        a = c2 / (c1 - c2)
        high = (f * c1 * (1 - c1) + (1 - f) * c2 * (1 - c2)) / (c1 - c2) ** 2
        low = (q * (1 - q) + a**2 * total * (1 - total) + 2 * a * q * total) / c3**2 - f * (1 - f)
        return np.where(mask, high, low)


@dataclass(frozen=True, init=False)
class URR(GradedResponse):
    """Utility-optimised randomised response: sensitive values alone are protected.

    Parameters
    ----------
    domain : Domain, int or list
        The k values that people may hold.
    high : collection of values
        The sensitive ones: at least one, and not all.
    epsilon : number
        From 2**-32 to 40; read exactly.

    Raises
    ------
    ArgumentError
        `domain` has fewer than two values or repeats one, or `epsilon` is out of range; or
        `high` is empty, all of the domain, or holds other values.

    Notes
    -----
    Law, for s sensitive values of k, e = e^epsilon::

        sensitive x:  x with e/(s + e - 1),  each other sensitive value with c2 = 1/(s + e - 1)
        other x:      each sensitive value with c2, else x itself with c3 = (e - 1)/(s + e - 1)

    Guarantee (utility-optimised local DP), between two values of one person: (epsilon, 0) for two
    high ones. A low value may be reported as it is, and then it is known to everyone, and known not
    to be sensitive: no single epsilon is true of this channel.

    Error. Sensitive: (share - c2)/(c1 - c2). Other: share/c3, as nobody else reports it. In the
    rationals drawn, c2 of a sensitive value and c2' of another differ by rounding, and wholly where
    there is one sensitive value; with b = (c2 - c2')/c3 a sensitive value's estimate adds b for
    each low report. Given the users' values, with F their total share of low values and g = c1 -
    c2::

        n·Var f̂_i = [f_i·c1(1-c1) + (1 - F - f_i)·c2(1-c2) + F·(c2' + b²c3 - (c2' + b·c3)²)]/g²
        n·Var f̂_j = f_j·(1 - c3)/c3                                          (j low)

    References
    ----------
    Murakami and Kawamoto, USENIX Security 2019, definition 3 and section 4.1.

    Examples
    --------
    >>> URR(["flu", "cold", "HIV"], high={"HIV"}, epsilon=1).matrix.round(3)
    array([[0.632, 0.   , 0.368],
           [0.   , 0.632, 0.368],
           [0.   , 0.   , 1.   ]])
    """

    kind: ClassVar[str] = "urr"
    audit_cases: ClassVar[tuple[AuditCase, ...]] = (
        AuditCase({"domain": 5, "high": {0, 1}, "epsilon": 1}, 0, 1, ("high", "high")),
    )

    @staticmethod
    def _truths(e: Fraction, k: int, h: int) -> tuple[Fraction, Fraction]:
        return e / (h + e - 1), (e - 1) / (h + e - 1)

    @property
    def _chances(self) -> tuple[Fraction, Fraction, Fraction, Fraction]:
        s, (c1, c3) = sum(self.high), self._truth
        return c1, (1 - c1) / (s - 1) if s > 1 else Fraction(0), (1 - c3) / s, c3

    def exact(self, x: int, y: int) -> Fraction:
        """The law above, with the sampler's own rational chances."""
        c1, c2, c2_low, c3 = self._chances
        if self.high[x]:
            return c1 if x == y else c2 if self.high[y] else Fraction(0)
        return c3 if x == y else c2_low if self.high[y] else Fraction(0)

    @property
    def _onto_low(self) -> Fraction:
        return Fraction(0)

    @property
    def blanket(self) -> tuple[int, int]:
        """The high answers alone are noisy, and everybody gives them."""
        return sum(self.high), sum(self.high)

    def _elsewhere(self, codes: Codes, words: Words) -> Codes:
        mask = np.array(self.high)
        highs, place = np.flatnonzero(mask), np.cumsum(mask) - 1
        step = 1 + pick(max(1, highs.size - 1), codes.size, words)
        return np.asarray(highs[(place[codes] + step) % highs.size])

    @property
    def largest_step(self) -> Shares:
        """1/(c1 - c2) of high values, 1/c3 of low ones: by a report of the value itself."""
        c1, c2, _, c3 = (float(c) for c in self._chances)
        return np.where(self.high, 1 / (c1 - c2), 1 / c3)

    def decode(self, counts: Counts, n: int) -> Shares:
        """Sensitive: (share - c2)/(c1 - c2); other: share/c3."""
        c1, c2, c2_low, c3 = (float(c) for c in self._chances)
        mask, shares = np.array(self.high), counts / n
        found = np.empty(len(self.high))
        found[~mask] = shares[~mask] / c3
        rest = found[~mask].sum()
        found[mask] = (shares[mask] - c2 * (1 - rest) - c2_low * rest) / (c1 - c2)
        return found

    def noise_variance(self, frequencies: Shares) -> Shares:
        """The closed forms of the class's notes, for one report."""
        c1, c2, c2_low, c3 = (float(c) for c in self._chances)
        mask, f, b = np.array(self.high), frequencies, (c2 - c2_low) / c3
        low = float(f[~mask].sum())
        high = f * c1 * (1 - c1) + (f[mask].sum() - f) * c2 * (1 - c2)
        high += low * (c2_low + b**2 * c3 - (c2_low + b * c3) ** 2)
        return np.where(mask, high / (c1 - c2) ** 2, f * (1 - c3) / c3)

    def noise_covariance(self, frequencies: Shares) -> Shares:
        """Two low values have none; the others by who sends which pair of reports."""
        checked_pairs(frequencies.size)
        c1, c2, c2_low, c3 = (float(c) for c in self._chances)
        mask, f, b = np.array(self.high), frequencies, (c2 - c2_low) / c3
        total, low = float(f[mask].sum()), float(f[~mask].sum())
        pairs = f[:, None] + f[None, :]
        both = -pairs * c1 * c2 - (total - pairs) * c2**2
        both += low * (b**2 * c3 - (c2_low + b * c3) ** 2)
        one = np.where(mask, 0.0, f) * (b - c2_low - b * c3) / (c1 - c2)
        found = np.where(
            mask[:, None] & mask[None, :],
            both / (c1 - c2) ** 2,
            np.where(mask[:, None], one[None, :], np.where(mask[None, :], one[:, None], 0.0)),
        )
        np.fill_diagonal(found, self.noise_variance(f))
        return found
