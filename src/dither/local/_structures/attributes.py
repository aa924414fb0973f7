"""Several attributes of each person: split the budget, or sample one attribute."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import Any, ClassVar

from dither import _checks
from dither.errors import ArgumentError
from dither.local._audited import AuditCase
from dither.local._channel import Channel, DomainLike
from dither.local._coins import pick
from dither.local._domain import Domain, bind
from dither.local._estimates.results import checked_options, reported, sampled, shares_of
from dither.local._frequency.grr import GRR
from dither.local._limits import checked_epsilon
from dither.local._structures.parts import (
    Maker,
    PartCounts,
    Reports,
    Structure,
    encoded,
    given,
    made_part,
)
from dither.local._structures.results import Estimates
from dither.numeric import Words

_METHODS = ("sample", "split")


@dataclass(frozen=True, init=False)
class Attributes(Structure):
    """Frequencies of each of several attributes.

    Parameters
    ----------
    domains : mapping from name to domain
        At least one attribute.
    epsilon : number
        For a person's whole row; from 2**-32 to 40.
    method : {"sample", "split"}
    channel : callable
        Makes an attribute's channel from its domain and epsilon: GRR, OUE, OLH, ...

    Raises
    ------
    ArgumentError
        There is no attribute, `method` is unknown, `epsilon` is out of range, or `channel` makes
        what promises less than its part of epsilon for some two values.

    Notes
    -----
    "split" reports every attribute with epsilon/d. By "sample" each person picks one attribute at
    random, publicly, and reports it with the whole epsilon.

    Guarantee. epsilon-local DP for the whole row, all attributes at once: neighbours are any two
    rows of one person. The sum of the split parts is epsilon; a sampled pick says nothing of the
    values.

    Error. Splitting gives every attribute n reports of epsilon/d, sampling n/d reports of epsilon;
    as variances go like 1/epsilon² and 1/n, sampling wins (by about d at small epsilon). Sampled
    people stand for all by the public coin, which adds f(1-f)/n_j to the variance: `estimate`
    counts it in.

    References
    ----------
    Nguyên et al., "Collecting and analyzing data from smart device users with local differential
    privacy", 2016; Wang et al., ICDE 2019.

    Examples
    --------
    >>> import numpy as np
    >>> survey = Attributes({"smokes": ["no", "yes"], "region": 4}, epsilon=2)
    >>> reports = survey.privatize({"smokes": ["no", "yes"] * 500, "region": [0, 1, 2, 3] * 250})
    >>> counts = survey.aggregate(reports)
    >>> counts.n, sorted(counts.estimate())
    (1000, ['region', 'smokes'])
    """

    kind: ClassVar[str] = "attributes"
    audit_cases: ClassVar[tuple[AuditCase, ...]] = (
        AuditCase({"domains": {"a": 2, "b": 3}, "epsilon": 1}, {"a": 0, "b": 0}, {"a": 1, "b": 1}),
        AuditCase(
            {"domains": {"a": 2, "b": 3}, "epsilon": 1, "method": "split"},
            {"a": 0, "b": 0},
            {"a": 1, "b": 1},
        ),
    )

    epsilon: Fraction
    method: str
    channels: dict[str, Channel]

    def __init__(
        self,
        domains: Mapping[str, DomainLike],
        epsilon: Any,
        *,
        method: str = "sample",
        channel: Maker = GRR,
    ) -> None:
        _checks.choice("method", method, _METHODS)
        made, known = checked_epsilon(epsilon), domains_of(domains)
        each = made / len(known) if method == "split" else made
        parts = {k: made_part(channel, d, each) for k, d in known.items()}
        bind(self, epsilon=made, method=method, channels=parts)

    @property
    def parts(self) -> dict[str, Channel]:
        """One channel per attribute."""
        return self.channels

    def settings(self) -> dict[str, Any]:
        """The method: the same channels, sampled or not, are different promises."""
        return {
            "attributes": list(self.channels),
            "method": self.method,
            "epsilon": str(self.epsilon),
        }

    @classmethod
    def from_settings(cls, settings: dict[str, Any], parts: dict[str, Channel]) -> Structure:
        """The structure that `settings` and `parts` describe."""
        domains = {name: parts[name].domain for name in settings.pop("attributes")}
        return cls(domains, channel=given(parts), **settings)

    def draw(self, records: Any, words: Words) -> Reports:
        """Reports by attribute, of records given as a column for each."""
        codes, n = encoded(records, {k: c.domain for k, c in self.channels.items()})
        if self.method == "split":
            return {k: channel.draw(codes[k], words) for k, channel in self.channels.items()}
        chosen = pick(len(codes), n, words)
        mine = {k: codes[k][chosen == j] for j, k in enumerate(self.channels)}
        return {k: channel.draw(mine[k], words) for k, channel in self.channels.items()}

    def read(
        self, counts: PartCounts, rule: str, confidence: float, options: dict[str, Any]
    ) -> Estimates:
        """The shares of each attribute's values."""
        checked_options(options, (), "attributes")
        for name, part in counts.parts.items():
            reported(part.n, name)
        found = {name: shares_of(part, rule, confidence) for name, part in counts.parts.items()}
        if self.method == "sample":
            found = {name: sampled(one) for name, one in found.items()}
        return Estimates({name: replace(one, title=name) for name, one in found.items()})


def domains_of(domains: Mapping[str, DomainLike]) -> dict[str, Domain]:
    """Domains by attribute name, checked."""
    if not isinstance(domains, Mapping) or not domains:
        raise ArgumentError("domains must map at least one attribute's name to its values")
    if not all(isinstance(name, str) and name for name in domains):
        raise ArgumentError("domains must have texts as names")
    return {name: Domain(domain) for name, domain in domains.items()}
