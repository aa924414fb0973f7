"""RS+FD: one attribute reported in truth, uniform fake data for the others, the pick secret."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import Any, ClassVar

import numpy as np

from dither import _checks
from dither._search import bisect
from dither.errors import ArgumentError
from dither.local._audited import AuditCase
from dither.local._channel import Channel, DomainLike
from dither.local._coins import exp_bounds, pick
from dither.local._domain import bind
from dither.local._estimates.postprocess import project
from dither.local._estimates.results import Estimate, checked_options, estimated, reported
from dither.local._frequency.grr import GRR
from dither.local._guarantee import Guarantee
from dither.local._limits import checked_epsilon
from dither.local._reports.aggregate import Aggregate
from dither.local._structures.attributes import domains_of
from dither.local._structures.parts import PartCounts, Reports, Structure, encoded, made_part
from dither.local._structures.results import Estimates
from dither.numeric import Words
from dither.numeric import _directed as directed

_PROTECTS = ("row", "attribute")
_STEPS = 60


@dataclass(frozen=True, init=False)
class FakeData(Structure):
    """Random sampling plus fake data, with GRR.

    Parameters
    ----------
    domains : mapping from name to domain
        At least two attributes.
    epsilon : number
        From 2**-32 to 40; of what `protects` names.
    protects : {"row", "attribute"}
        All attributes of a person at once, or any one of them while the others stay as they are.

    Raises
    ------
    ArgumentError
        There are fewer than two attributes, `protects` is unknown, or `epsilon` is out of
        range.

    Notes
    -----
    Law of a row y, for attributes j of k_j values, each channel GRR of p_j, q_j at epsilon'::

        Pr[y | x] = (1/d)·sum_j Pr_j[y_j | x_j]·prod over i != j of 1/k_i

    Guarantee. epsilon-local DP; neighbours are any two rows of one person ("row"), or two that
    differ in one attribute ("attribute"), which promises less. Dividing by the product of all 1/k_i
    leaves a mean of r_j in {k_j·p_j, k_j·q_j}. Two rows that differ everywhere have reports for
    which all r_j go from k_j·q_j to k_j·p_j, so for a person's whole row nothing is gained: epsilon
    = epsilon'. For rows that differ in attribute j alone::

        epsilon_j = log((k_j·p_j + S_j)/(k_j·q_j + S_j)),   S_j = sum over i != j of k_i·q_i

    The literature promises the second as if it were the first. epsilon' is the largest at which
    what `protects` names holds (for equal k_j by attribute, epsilon' = log(d(e^epsilon - 1) + 1)).

    Error. With w_j = p_j - q_j: the expected share of y_j = v is (f·w_j + q_j)/d + (1 - 1/d)/k_j,
    so f̂ = (d·share - q_j - (d-1)/k_j)/w_j, unbiased, of variance d²·s(1-s)/(n·w_j²) over users and
    coins, read at the nearest s that the law allows.

    References
    ----------
    Arcolezi, Couchot, Al Bouna and Xiao, CIKM 2021; the guarantee is put right here.

    Examples
    --------
    >>> domains = {"a": 4, "b": 4, "c": 4}
    >>> float(round(FakeData(domains, epsilon=1).inner, 4))
    1.0
    >>> float(round(FakeData(domains, epsilon=1, protects="attribute").inner, 4))
    1.8172
    """

    kind: ClassVar[str] = "fake-data"
    audit_cases: ClassVar[tuple[AuditCase, ...]] = (
        AuditCase({"domains": {"a": 2, "b": 3}, "epsilon": 1}, {"a": 0, "b": 0}, {"a": 1, "b": 1}),
    )

    epsilon: Fraction
    protects: str
    inner: Fraction
    """epsilon' of the attribute that is reported in truth."""
    channels: dict[str, Channel]

    def __init__(
        self, domains: Mapping[str, DomainLike], epsilon: Any, *, protects: str = "row"
    ) -> None:
        _checks.choice("protects", protects, _PROTECTS)
        made, known = checked_epsilon(epsilon), domains_of(domains)
        if len(known) < 2:
            raise ArgumentError("domains must hold at least two attributes; for one, use GRR")
        sizes = [len(domain) for domain in known.values()]
        inner = made if protects == "row" else _largest_inner(sizes, made)
        parts = {k: made_part(GRR, d, inner) for k, d in known.items()}
        bind(self, epsilon=made, protects=protects, inner=inner, channels=parts)

    @property
    def parts(self) -> dict[str, Channel]:
        """One channel per attribute."""
        return self.channels

    @property
    def guarantee(self) -> Guarantee:
        """epsilon for any two rows, or for each attribute in which they differ.

        Anyone who accounts for a whole person is charged epsilon', that of rows that differ
        everywhere: `Guarantee.loss` gives it.
        """
        if self.protects == "row":
            return Guarantee.uniform(self.epsilon)
        whole = Guarantee.uniform(self.inner)
        return replace(whole, per_unit=self.epsilon, unit="attribute")

    def settings(self) -> dict[str, Any]:
        """What is protected, and by how much."""
        return {
            "attributes": list(self.channels),
            "protects": self.protects,
            "epsilon": str(self.epsilon),
        }

    @classmethod
    def from_settings(cls, settings: dict[str, Any], parts: dict[str, Channel]) -> Structure:
        """The structure that `settings` and `parts` describe."""
        domains = {name: parts[name].domain for name in settings.pop("attributes")}
        return cls(domains, **settings)

    def draw(self, records: Any, words: Words) -> Reports:
        """Every attribute of every person: one in truth, the others made up at random."""
        codes, n = encoded(records, {k: c.domain for k, c in self.channels.items()})
        chosen = pick(len(codes), n, words)
        found: Reports = {}
        for j, (k, channel) in enumerate(self.channels.items()):
            honest = channel.draw(codes[k], words)
            made_up = pick(len(channel.domain), n, words)
            found[k] = np.where(chosen == j, honest, made_up)
        return found

    def read(
        self, counts: PartCounts, rule: str, confidence: float, options: dict[str, Any]
    ) -> Estimates:
        """Unbiased shares of each attribute's values."""
        checked_options(options, (), "fake data")
        return Estimates(
            {name: self._read(name, part, rule, confidence) for name, part in counts.parts.items()}
        )

    def _read(self, name: str, part: Aggregate, rule: str, confidence: float) -> Estimate:
        n, channel, d = reported(part.n, name), self.channels[name], len(self.channels)
        assert isinstance(channel, GRR)
        k, (p, q) = len(channel.domain), channel.support
        s = part.counts / n
        raw = (d * s - q - (d - 1) / k) / (p - q)
        # What any population gives: a report that nobody sent still had a chance.
        seen = np.clip(s, (q + (d - 1) / k) / d, (p + (d - 1) / k) / d)
        errors = d * np.sqrt(seen * (1 - seen) / n) / (p - q)
        more = {"plausible": project(raw), "steps": np.full(k, d / (p - q) / n)}
        return estimated(part, name, channel.domain.values, raw, errors, confidence, rule, **more)


def _attribute_epsilon(sizes: list[int], inner: Fraction) -> Fraction:
    """An upper bound of the largest epsilon_j at an epsilon'."""
    low, high = exp_bounds(inner)
    least = [k / (high + k - 1) for k in sizes]
    worst = Fraction(0)
    for j, k in enumerate(sizes):
        rest = sum(least[:j] + least[j + 1 :], Fraction(0))
        worst = max(worst, (k * high / (low + k - 1) + rest) / (least[j] + rest))
    return directed.log_upper(worst)


def _largest_inner(sizes: list[int], epsilon: Fraction) -> Fraction:
    """The largest epsilon', to 60 bisections, at which every attribute has epsilon or less."""
    high = epsilon + 8
    while _attribute_epsilon(sizes, high) <= epsilon:
        high *= 2
    low, _ = bisect(
        lambda inner: _attribute_epsilon(sizes, inner) > epsilon, Fraction(0), high, steps=_STEPS
    )
    # Fewer digits, downwards: the number is written on the wire.
    return Fraction(int(low * 2**40), 2**40)
