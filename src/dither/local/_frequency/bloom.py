"""RAPPOR over an open list of texts: Bloom filters, cohorts, and a regression on candidates."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import lru_cache
from typing import Any, ClassVar

import numpy as np
import numpy.typing as npt

from dither import _checks
from dither._stats import normal_quantile
from dither._subjects import Subject
from dither.errors import ArgumentError
from dither.local._audited import AuditCase, Coins, bits_of
from dither.local._channel import Codes, Counts, DomainLike, Shares, Tally
from dither.local._coins import pick
from dither.local._domain import Domain, Value, bind, column
from dither.local._estimates.postprocess import no_rule, nonnegative, project
from dither.local._estimates.results import Estimate, Result, checked_options, estimated, reported
from dither.local._frequency.filters import Regression, set_bits
from dither.local._frequency.rappor import Layers, Remembered, promises
from dither.local._limits import sums_to
from dither.local._reports.aggregate import Aggregate
from dither.local._reports.bits import count_columns, packed_rows, row_bytes
from dither.local._reports.hashing import text_bytes
from dither.local._reports.memory import Memory, checked_memory, checked_question, checked_users
from dither.numeric import Words, secure_words

# Bytes that hold the number of a cohort, of which there are 2^16 at most.
_HEADER = 2
_CHUNK = 1 << 14
_MOST = 256


@dataclass(frozen=True, init=False)
class BloomRAPPOR(Remembered):
    """Full RAPPOR.

    Parameters
    ----------
    domain : Domain, int or list
        The candidates whose shares are estimated. Devices do not need them: any text, integer or
        boolean is reported, and reports do not depend on the candidates.
    epsilon : number
        Of any number of reports of one value.
    once : number, optional
        Of one report; below epsilon. Left out, the permanent bits are reported as they are.
    bits : int
        m, from 2 to 4,096.
    hashes : int
        H, from 1 to 16.
    cohorts : int
        C, a power of two up to 65,536.
    seed : int
        Of the public hash functions, from 0 to 2**32 - 1.
    question : str, optional
        What is asked; reports from a device's memory need it.

    Raises
    ------
    ArgumentError
        An argument is out of range, or `once` is not below `epsilon`.

    Notes
    -----
    Law. A person is in one of C public cohorts, at random. In cohort c the value sets the bits
    h_c1(value), ..., h_cH(value) of m, and both layers of noise of `RAPPOR` go over the m bits. The
    i-th hash of cohort c, i = 0, ..., H-1, is the 64-bit hash of the value's bytes by the seed
    2**32·seed + c·H + i, its high half mapped to m bits. A report is two bytes of the cohort, the
    low one first, and packed bits.

    Guarantee, between two values of one person, listed or not: `guarantee` for one report (`once`),
    `lasting` for any number of reports of a value that does not change, made with one device's
    `Memory` to one `question` (`epsilon`). Their bits differ in at most 2H places, and the cohort
    is independent of the value. When a value changed is not hidden.

    Error. Let s_cj be the share of ones among the reports of cohort c, y_cj = (s_cj - p*)/(q* - p*)
    and d = 1 - (1 - 1/m)**H how full a filter is on average. Then E[y_c] = sum over v of f_v·X_cv,
    and::

        y - d = sum over candidates v of f_v·(X_v - d) + (what unlisted values add, 0 on average)

    is solved by least squares: unbiased where every value is a candidate; unlisted values add
    noise, not bias, on average over hashes. The covariance counts coins and cohorts. A selection
    says which candidates are there: by tests on this regression, or, where there are more
    candidates than the bits can distinguish, by choosing on half of the cohorts (non-negative least
    squares) and testing on the other half, so that having chosen does not make a test too easy.

    References
    ----------
    Erlingsson, Pihur and Korolova, "RAPPOR", CCS 2014, sections 2 to 4 (where the lasso selects and
    the same data test).

    Examples
    --------
    >>> channel = BloomRAPPOR(["ham", "spam"], epsilon=4, bits=32, cohorts=8)
    >>> reports = channel.privatize(["spam"] * 3000 + ["eggs"] * 1000)
    >>> reports.shape
    (4000, 6)
    >>> channel.aggregate(reports).estimate(method="selection").found
    ('spam',)
    """

    kind: ClassVar[str] = "bloom-rappor"
    audit_cases: ClassVar[tuple[AuditCase, ...]] = (
        AuditCase({"domain": ["flu", "cold"], "epsilon": 2, "once": 1, "bits": 16, "cohorts": 2}),
    )
    audit_view: ClassVar[str] = "odds"

    once: Fraction | None
    bits: int
    hashes: int
    cohorts: int
    seed: int
    question: str | None
    layers: Layers

    def __init__(
        self,
        domain: DomainLike,
        epsilon: Any,
        *,
        once: Any = None,
        bits: int = 128,
        hashes: int = 2,
        cohorts: int = 32,
        seed: int = 0,
        question: str | None = None,
    ) -> None:
        bind(
            self,
            bits=_checks.whole("bits", bits, 2, 1 << 12),
            hashes=_checks.whole("hashes", hashes, 1, 16),
            cohorts=_checks.whole("cohorts", cohorts, 1, 1 << 16),
            seed=_checks.whole("seed", seed, 0, (1 << 32) - 1),
            question=checked_question(question),
        )
        if cohorts & (cohorts - 1):
            raise ArgumentError("cohorts must be a power of two")
        forever, single = promises(epsilon, once)
        bind(self, domain=Domain(domain), epsilon=forever, once=single)
        bind(self, layers=Layers.of(forever, single, 2 * hashes))
        # In floating point, in which shares are estimated.
        high_star, low_star = (float(chance) for chance in self.layers.star)
        if high_star <= low_star:
            raise ArgumentError(
                "epsilon must be larger: its coins cannot be distinguished from fair ones"
            )

    @property
    def device(self) -> str:
        """SHA-256 of all that a device needs to know; the candidates make no difference to it."""
        wire = self.to_dict()
        del wire["domain"]
        return hashlib.sha256(json.dumps(wire, sort_keys=True).encode()).hexdigest()

    def of_candidates(self, candidates: DomainLike) -> BloomRAPPOR:
        """The same reports, read for other candidates."""
        return BloomRAPPOR(**{**self.settings(), "domain": candidates})

    def exact(self, x: int, cohort: int, bits: tuple[int, ...]) -> Fraction:
        """Pr[report of this cohort and these bits | code x], exactly as drawn."""
        high, low = self.layers.star
        found = Fraction(1, self.cohorts)
        for true, bit in zip(self._filters[cohort, x].tolist(), bits, strict=True):
            one = high if true else low
            found *= one if bit else 1 - one
        return found

    # On the device

    def privatize(self, values: Any) -> Any:
        """Both layers afresh, for any texts, integers or booleans, candidates or not."""
        one = isinstance(values, str | int | bool)
        listed = _texts([values] if one else values)
        words = secure_words()
        cohorts = pick(self.cohorts, len(listed), words)
        permanent = self.layers.permanent(self._true(listed, cohorts), self.bits, words)
        rows = self._rows(cohorts, self.layers.report(permanent, self.bits, words))
        return rows[0] if one else rows

    def report(
        self, values: Any, users: Sequence[Any], memory: Memory, *, words: Words | None = None
    ) -> npt.NDArray[np.uint8]:
        """Report again and again: cohort and permanent bits from memory, a fresh second layer.

        Parameters
        ----------
        values : column of str, int or bool, shape (n,)
        users : sequence of str or int, length n
            The person each value belongs to.
        memory : Memory
        words : Words, optional
            Another source of the second layer's randomness, for simulation only.

        Raises
        ------
        ArgumentError
            There are not as many users as values, or the channel has no question, or one that the
            device has answered under other settings than these; candidates make no difference.
        """
        listed = _texts(values)
        named = checked_users(users, len(listed))
        none = [None] * len(named)
        label = checked_memory(memory).label(self.question, {"device": self.device})
        cohorts = memory.words(label, named, none, 1)[:, 0] % np.uint64(self.cohorts)
        codes = cohorts.astype(np.int64)
        permanent = self._true(listed, codes)
        for start in range(0, len(listed), _CHUNK):
            part = slice(start, start + _CHUNK)
            own = memory.words(label, named[part], listed[part], self.bits)
            permanent[part] = self.layers.remembered(permanent[part], own)
        sent = self.layers.report(permanent, self.bits, words or secure_words())
        return self._rows(codes, sent)

    def draw(self, codes: Codes, words: Words) -> npt.NDArray[np.uint8]:
        """A cohort, two bytes, and the noisy bits of the candidate's filter."""
        cohorts = pick(self.cohorts, codes.size, words)
        true = np.packbits(self._filters, axis=2)[cohorts, codes]
        permanent = self.layers.permanent(true, self.bits, words)
        return self._rows(cohorts, self.layers.report(permanent, self.bits, words))

    # On the server

    @property
    def report_bytes(self) -> int:
        """Two bytes of the cohort, and one bit for each bit of the filter."""
        return _HEADER + row_bytes(self.bits)

    @property
    def features(self) -> int:
        """For each cohort how often each bit was 1, and how many reports it sent."""
        return self.cohorts * (self.bits + 1)

    def tally(self, reports: Any) -> Tally:
        """Ones by cohort and bit, and reports by cohort."""
        rows, bad = packed_rows(reports, 8 * _HEADER + self.bits)
        cohorts = rows[:, 0].astype(np.int64) + 256 * rows[:, 1].astype(np.int64)
        good = cohorts < self.cohorts
        rows, cohorts = rows[good], cohorts[good]
        sizes = np.bincount(cohorts, minlength=self.cohorts)
        ordered = rows[np.argsort(cohorts, kind="stable"), _HEADER:]
        counts = np.zeros((self.cohorts, self.bits + 1), dtype=np.int64)
        counts[:, -1] = sizes
        ends = np.cumsum(sizes)
        for c in np.flatnonzero(sizes).tolist():
            counts[c, :-1] = count_columns(ordered[ends[c] - sizes[c] : ends[c]], self.bits)
        return counts.ravel(), rows.shape[0], bad + int((~good).sum())

    def possible(self, counts: Counts, n: int) -> bool:
        """Every report is of one cohort, and each of its bits is on at most once."""
        table = counts.reshape(self.cohorts, self.bits + 1)
        each = table[:, -1]
        return sums_to(each, n) and bool((table.max(axis=1) <= each).all())

    def decode(self, counts: Counts, n: int) -> Shares:
        """Least squares of the bits on the candidates; cohorts without reports are left out."""
        table = counts.reshape(self.cohorts, self.bits + 1)
        return self._regression(table[:, -1] > 0).solve(table)

    def noise_covariance(self, frequencies: Shares) -> Shares:
        """Of coins and of cohorts, when all cohorts are of about one size."""
        return self._regression(np.ones(self.cohorts, dtype=np.bool_)).covariance(frequencies)

    def simulate(self, histogram: Counts, rng: np.random.Generator) -> Counts:
        """Cohorts of the holders of each candidate, then two binomial draws per bit and cohort."""
        high, low = (float(c) for c in self.layers.star)
        even = np.full(self.cohorts, 1 / self.cohorts)
        people = rng.multinomial(histogram, even).T
        true = np.einsum("cv,cvj->cj", people, self._filters.astype(np.int64))
        sizes = people.sum(axis=1)
        ones = rng.binomial(true, high) + rng.binomial(sizes[:, None] - true, low)
        return np.concatenate([ones, sizes[:, None]], axis=1).ravel().astype(np.int64)

    def likelihoods(self, reports: npt.NDArray[np.uint8]) -> Shares:
        """The odds of each bit that the candidate sets in the report's cohort, multiplied."""
        high, low = (float(c) for c in self.layers.star)
        cohorts = reports[:, 0].astype(np.int64) + 256 * reports[:, 1].astype(np.int64)
        bits = np.unpackbits(reports[:, _HEADER:], axis=1)[:, : self.bits]
        logs = np.where(bits, np.log(high / low), np.log((1 - high) / (1 - low)))
        found = np.empty((reports.shape[0], len(self.domain)))
        for c in np.unique(cohorts).tolist():
            mine = cohorts == c
            found[mine] = logs[mine] @ self._filters[c].T
        return np.asarray(np.exp(found - found.max(axis=1, keepdims=True)))

    def read(
        self,
        counted: Aggregate,
        rule: str,
        method: str | None,
        confidence: float,
        options: dict[str, Any],
    ) -> Result:
        """Shares of the candidates, or which of them are there; see `Aggregate.estimate`."""
        candidates = options.pop("candidates", None)
        if candidates is not None:
            other = self.of_candidates(candidates)
            again = Aggregate(other, counted.counts, counted.n, counted.rejected)
            return other.read(again, rule, method, confidence, options)
        if method is None:
            return super().read(counted, rule, method, confidence, options)
        _checks.choice("method", method, ("selection",))
        checked_options(options, ("alpha",), "a selection")
        no_rule(rule, "a selection, whose shares are at least 0")
        reported(counted.n)
        alpha = _checks.number("alpha", options.get("alpha", 0.05), above=0, below=1)
        return self._selected(counted, alpha, confidence)

    def _selected(self, counted: Aggregate, alpha: float, confidence: float) -> Estimate:
        """Which candidates are among the values, beyond a chance alpha over all of them.

        Tests are normal and one-sided, by Bonferroni's bound. Shares are by non-negative least
        squares: 0 for candidates that were not regressed on, biased upwards near 0; what is missing
        to 1 is held by values that are not candidates, or noise.
        """
        table = counted.counts.reshape(self.cohorts, self.bits + 1)
        present = table[:, -1] > 0
        chosen = np.arange(len(self.domain))
        whole = self._regression(present)
        selected = not whole.determined
        if selected:
            # Half of the cohorts choose, the other half test: so the choice costs no confidence.
            half = present & (np.cumsum(present) % 2 == 1)
            present = present & ~half
            first = self._regression(half)
            most = min(_MOST, max(1, int(present.sum()) * self.bits // 4))
            likely = nonnegative(first.gram, first.moments(table), most)
            chosen = np.flatnonzero(likely > 0)
            whole = self._regression(present, chosen)
        # Bonferroni: the chances of all that are tested add up to alpha.
        z = -normal_quantile(alpha / max(1, chosen.size))
        shares, errors = np.zeros(len(self.domain)), np.full(len(self.domain), np.nan)
        raw, found = np.full(len(self.domain), np.nan), chosen[:0]
        if chosen.size and present.any() and whole.determined:
            raw[chosen] = whole.solve(table)
            at = raw[chosen].clip(0)
            at = at if at.sum() <= 1 else project(raw[chosen])
            n = int(table[present, -1].sum())
            errors[chosen] = np.sqrt(np.diag(whole.covariance(at)).clip(0) / n)
            shares[chosen] = nonnegative(whole.gram, whole.moments(table))
            found = chosen[raw[chosen] > z * errors[chosen]]
        values = self.domain.values
        halves = "half of the cohorts chose them, the other half tested them; " if selected else ""
        return estimated(
            counted,
            f"{self.kind}, selected",
            values,
            raw,
            errors,
            confidence,
            shares=shares,
            plausible=shares,
            unbiased=False,
            postprocess="nonnegative",
            notes=(
                f"Candidates: {halves}one that nobody holds is found by chance {alpha:g} at most.",
            ),
            found=tuple(values[i] for i in found.tolist()),
        )

    @property
    def _filters(self) -> npt.NDArray[np.bool_]:
        return _filters(self.domain.values, self.bits, self.hashes, self.cohorts, self.seed)

    def _regression(
        self, present: npt.NDArray[np.bool_], chosen: npt.NDArray[np.int64] | None = None
    ) -> Regression:
        filters = self._filters[present]
        high, low = (float(c) for c in self.layers.star)
        filters = filters if chosen is None else filters[:, chosen]
        return Regression(filters, present, 1 - (1 - 1 / self.bits) ** self.hashes, high, low)

    def _true(self, listed: list[bytes], cohorts: Codes) -> npt.NDArray[np.uint8]:
        """The packed filters of values, each in its cohort."""
        rows = np.empty((len(listed), row_bytes(self.bits)), dtype=np.uint8)
        for start in range(0, len(listed), _CHUNK):
            part = listed[start : start + _CHUNK]
            rows[start : start + _CHUNK] = set_bits(
                part, cohorts[start : start + _CHUNK], self.bits, self.hashes, self.seed
            )
        return rows

    def _rows(self, cohorts: Codes, bits: npt.NDArray[np.uint8]) -> npt.NDArray[np.uint8]:
        header = np.stack([cohorts & 255, cohorts >> 8], axis=1).astype(np.uint8)
        return np.concatenate([header, bits], axis=1)

    @classmethod
    def audit_lasting(cls, coins: Coins) -> Iterator[Subject]:
        """How often each bit was 1 in two reports of one text, in one cohort."""
        channel = cls(["flu", "cold"], 2, once=1, bits=8, cohorts=1, question="audit")

        def sums(value: str, size: int) -> npt.NDArray[np.int64]:
            memory, users, found = coins.memory(), list(range(size)), np.zeros((size, 8), np.int64)
            for _ in range(2):
                rows = channel.report([value] * size, users, memory, words=coins.words)
                found += bits_of(rows[:, 2:], 8)
            return found

        epsilon = channel.lasting.epsilon
        yield Subject("local bloom-rappor, two reports", sums, "flu", "cold", epsilon)


def _texts(values: Any) -> list[bytes]:
    listed = column(values).tolist()
    if not all(isinstance(v, str | int) for v in listed):
        raise ArgumentError("values must be texts, whole numbers or booleans, none missing")
    return [text_bytes(v) for v in listed]


@lru_cache(maxsize=8)
def _filters(
    values: tuple[Value, ...], bits: int, hashes: int, cohorts: int, seed: int
) -> npt.NDArray[np.bool_]:
    """Which bits each candidate sets in each cohort, shape (cohorts, k, bits)."""
    if cohorts * len(values) * bits > 1 << 28:
        raise ArgumentError("candidates times bits times cohorts must be at most 2**28")
    listed = [text_bytes(v) for v in values]
    found = np.empty((cohorts, len(values), bits), dtype=np.bool_)
    for c in range(cohorts):
        packed = set_bits(listed, np.full(len(listed), c), bits, hashes, seed)
        found[c] = np.unpackbits(packed, axis=1)[:, :bits]
    found.setflags(write=False)
    return found
