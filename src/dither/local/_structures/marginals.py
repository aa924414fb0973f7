"""Joint frequencies of chosen groups of attributes, made to agree where the groups overlap."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, fields, replace
from fractions import Fraction
from itertools import combinations, product
from typing import Any, ClassVar

import numpy as np
import numpy.typing as npt

from dither import _checks
from dither.errors import ArgumentError
from dither.local._audited import AuditCase
from dither.local._channel import Channel, DomainLike
from dither.local._coins import pick
from dither.local._domain import Domain, bind, collection
from dither.local._estimates.postprocess import RULES
from dither.local._estimates.results import checked_options, reported, sampled, shares_of
from dither.local._frequency.grr import GRR
from dither.local._limits import checked_epsilon
from dither.local._structures.attributes import domains_of
from dither.local._structures.parts import (
    Maker,
    PartCounts,
    Reports,
    Structure,
    encoded,
    given,
    made_part,
)
from dither.local._structures.results import Estimates, Marginal
from dither.numeric import Words

_MAX_CELLS = 1 << 20
_SWEEPS = 3


@dataclass(frozen=True, init=False)
class Marginals(Structure):
    """Joint frequencies of several groups of attributes.

    Parameters
    ----------
    domains : mapping from name to domain
    of : int or collection of tuples of names
        The groups; an integer w stands for all groups of w attributes.
    epsilon : number
        For a person's whole row; from 2**-32 to 40.
    channel : callable
        Makes a marginal's channel from its cells and epsilon: GRR, OUE, OLH, ...

    Raises
    ------
    ArgumentError
        A group names something that is not an attribute, an argument is out of range, or `channel`
        makes what promises less than epsilon for some two values.

    Notes
    -----
    Each person picks one of the groups at random, publicly, and reports the cell of their row in it
    with the whole epsilon.

    Guarantee. epsilon-local DP for the whole row: neighbours are any two rows of one person. Which
    group a person reports is public and says nothing of the values.

    Consistency. Two marginals that share attributes estimate the shared part twice. The shared part
    is averaged by inverse variance and the difference spread evenly over the cells, attribute set
    by attribute set from the smallest up, as CALM does. It is post-processing.

    References
    ----------
    Cormode, Kulkarni and Srivastava, SIGMOD 2018; Zhang et al., "CALM", CCS 2018.

    Examples
    --------
    >>> survey = Marginals({"smokes": 2, "region": 3, "sex": 2}, of=2, epsilon=2)
    >>> list(survey.parts)
    ['smokes × region', 'smokes × sex', 'region × sex']
    """

    kind: ClassVar[str] = "marginals"
    audit_cases: ClassVar[tuple[AuditCase, ...]] = (
        AuditCase(
            {"domains": {"a": 2, "b": 3}, "of": 2, "epsilon": 1}, {"a": 0, "b": 0}, {"a": 1, "b": 1}
        ),
    )

    epsilon: Fraction
    domains: dict[str, Domain]
    groups: tuple[tuple[str, ...], ...]
    channels: dict[str, Channel]

    def __init__(
        self,
        domains: Mapping[str, DomainLike],
        of: int | Iterable[Iterable[str]],
        epsilon: Any,
        *,
        channel: Maker = GRR,
    ) -> None:
        made, known = checked_epsilon(epsilon), domains_of(domains)
        groups = _groups(of, list(known))
        sizes = [int(np.prod([len(known[a]) for a in group])) for group in groups]
        if max(sizes) > _MAX_CELLS:
            raise ArgumentError(
                f"of must name groups of at most {_MAX_CELLS:,} cells; one has {max(sizes):,}: "
                "take fewer attributes together, or coarser domains"
            )
        bind(self, epsilon=made, domains=known, groups=groups)
        parts = {
            " × ".join(group): made_part(channel, Domain(size), made)
            for group, size in zip(groups, sizes, strict=True)
        }
        bind(self, channels=parts)

    @property
    def parts(self) -> dict[str, Channel]:
        """One channel per marginal, over its cells."""
        return self.channels

    def settings(self) -> dict[str, Any]:
        """The domains and groups in order."""
        return {
            "domains": {k: d.to_dict() for k, d in self.domains.items()},
            "groups": [list(group) for group in self.groups],
            "epsilon": str(self.epsilon),
        }

    @classmethod
    def from_settings(cls, settings: dict[str, Any], parts: dict[str, Channel]) -> Structure:
        """The structure that `settings` and `parts` describe."""
        domains = {k: Domain.from_dict(d) for k, d in settings.pop("domains").items()}
        return cls(domains, settings.pop("groups"), channel=given(parts), **settings)

    def draw(self, records: Any, words: Words) -> Reports:
        """Reports by marginal, of records given as a column for each attribute."""
        codes, n = encoded(records, self.domains)
        chosen = pick(len(self.groups), n, words)
        found: Reports = {}
        for j, (group, name) in enumerate(zip(self.groups, self.channels, strict=True)):
            mine = chosen == j
            cells = np.ravel_multi_index(
                tuple(codes[a][mine] for a in group), tuple(len(self.domains[a]) for a in group)
            )
            found[name] = self.channels[name].draw(np.asarray(cells, dtype=np.int64), words)
        return found

    def read(
        self, counts: PartCounts, rule: str, confidence: float, options: dict[str, Any]
    ) -> Estimates:
        """Joint shares of each group, by the name of its part."""
        checked_options(options, ("consistent",), "marginals")
        consistent = _checks.flag("consistent", options.get("consistent", True))
        if consistent and _checks.choice("postprocess", rule, RULES) != "none":
            raise ArgumentError("postprocess needs consistent=False: either changes the shares")
        found = {}
        for group, (name, part) in zip(self.groups, counts.parts.items(), strict=True):
            reported(part.n, name)
            one = sampled(shares_of(part, rule, confidence))
            given = {f.name: getattr(one, f.name) for f in fields(one)}
            given["title"] = name
            given["values"] = tuple(product(*(self.domains[a].values for a in group)))
            shape = tuple(len(self.domains[a]) for a in group)
            found[name] = Marginal(**given, attributes=group, shape=shape)
        return Estimates(dict(_agreed(found) if consistent else found))


def _groups(of: Any, names: list[str]) -> tuple[tuple[str, ...], ...]:
    if isinstance(of, int) and not isinstance(of, bool):
        if not 1 <= of <= len(names):
            raise ArgumentError("of must be between 1 and the number of attributes")
        return tuple(combinations(names, of))
    if isinstance(of, bool) or not collection(of):
        raise ArgumentError("of must be an integer or a collection of tuples of names")
    of = list(of)
    if not all(collection(group) and all(isinstance(name, str) for name in group) for group in of):
        raise ArgumentError("of must be an integer or a collection of tuples of names")
    groups = tuple(tuple(group) for group in of)
    if not groups or not all(groups):
        raise ArgumentError("of must hold at least one group of at least one name")
    if any(len(set(group)) < len(group) or not set(group) <= set(names) for group in groups):
        raise ArgumentError("of must hold groups of different names of the domains")
    if len({frozenset(group) for group in groups}) < len(groups):
        raise ArgumentError("of must not hold a group twice")
    return groups


def _agreed(found: dict[str, Marginal]) -> dict[str, Marginal]:
    """Average what marginals share, smallest shared sets first, a few sweeps over all."""
    shares = {name: m.table.copy() for name, m in found.items()}
    variances = {name: (m.standard_errors**2).reshape(m.shape) for name, m in found.items()}
    shared = {
        frozenset(set(a.attributes) & set(b.attributes)) for a, b in combinations(found.values(), 2)
    } - {frozenset()}
    for _ in range(_SWEEPS):
        for names in sorted(shared, key=lambda s: (len(s), sorted(s))):
            holders = [name for name, m in found.items() if names <= set(m.attributes)]
            axes = {
                name: tuple(i for i, a in enumerate(found[name].attributes) if a not in names)
                for name in holders
            }
            order = sorted(names)
            sums = {name: _shared(found[name], shares[name], axes[name], order) for name in holders}
            # Summed cells of a marginal: their variance grows with how many are summed.
            weights = {name: 1 / variances[name].sum(axis=axes[name]).mean() for name in holders}
            total = sum(weights.values())
            mean = sum(weights[name] * sums[name] for name in holders) / total
            for name in holders:
                m, summed = found[name], axes[name]
                gap = mean - sums[name]
                kept = [a for a in m.attributes if a in names]
                back = np.transpose(gap, [order.index(a) for a in kept])
                cells = int(np.prod([m.shape[i] for i in summed])) if summed else 1
                shares[name] += np.expand_dims(back, summed) / cells
    return {
        name: replace(m, shares=shares[name].ravel(), postprocess="consistent")
        for name, m in found.items()
    }


def _shared(
    m: Marginal, shares: npt.NDArray[np.float64], gone: tuple[int, ...], order: list[str]
) -> npt.NDArray[np.float64]:
    kept = [a for a in m.attributes if a in order]
    return np.transpose(shares.sum(axis=gone), [kept.index(a) for a in order])
