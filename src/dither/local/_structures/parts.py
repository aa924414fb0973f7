"""Several channels side by side: reports and counts by part.

A structure sends each report to a named part, publicly; each part is a channel of its own. Counts
of a structure are the counts of its parts, so they merge as those do.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from fractions import Fraction
from typing import Any, ClassVar

import numpy as np

from dither import _checks
from dither._format import loss_text, remaining
from dither.errors import ArgumentError, nearest
from dither.local._audited import Audited
from dither.local._channel import PART_BYTES, Channel, Codes
from dither.local._domain import Domain, bind, brief, collection, repr_of
from dither.local._estimates.results import Result
from dither.local._guarantee import Guarantee
from dither.local._limits import described
from dither.local._registry import channel_from_dict, check_digest, digest_of
from dither.local._reports.aggregate import Aggregate
from dither.numeric import Words, secure_words
from dither.numeric import _directed as directed
from dither.privacy import Loss

Maker = Callable[[Domain, Fraction], Channel]
"""What makes a part: a channel class such as GRR, OUE or OLH."""

Reports = dict[str, Any]
"""Reports by the name of their part."""


_OTHER_HASH = "the counts' hash is not that of their structure"

_KINDS: dict[str, type[Structure]] = {}


class Structure(Audited, ABC):
    """People's structured values, each reported through one or more named channels."""

    kind: ClassVar[str]
    version: ClassVar[int] = 1

    def __init_subclass__(cls, **kwargs: Any) -> None:
        super().__init_subclass__(**kwargs)
        # A dataclass keeps the one that stands in the class itself.
        cls.__repr__ = Structure.__repr__  # type: ignore[method-assign]
        if "kind" in cls.__dict__:
            _KINDS[cls.kind] = cls

    def __repr__(self) -> str:
        return repr_of(self)

    @property
    @abstractmethod
    def parts(self) -> dict[Any, Channel]:
        """The channels by name, in public order."""

    epsilon: Fraction

    @property
    def guarantee(self) -> Guarantee:
        """What all that one person sends promises: by default epsilon for any two records."""
        return Guarantee.uniform(self.epsilon)

    def loss(self, *, accept_delta: bool = False) -> Loss:
        """What all that one person sends loses; see `Guarantee.loss`."""
        return self.guarantee.loss(accept_delta=accept_delta)

    @abstractmethod
    def draw(self, records: Any, words: Words) -> Reports:
        """Reports of records, by the given source of randomness."""

    @abstractmethod
    def read(
        self, counts: PartCounts, rule: str, confidence: float, options: dict[str, Any]
    ) -> Result:
        """What counts of this structure say; see `PartCounts.estimate`."""

    def settings(self) -> dict[str, Any]:
        """What makes this structure besides its parts, in a form that JSON holds."""
        return {}

    @classmethod
    def from_settings(cls, settings: dict[str, Any], parts: dict[str, Channel]) -> Structure:
        """The structure of these settings, whose channels are these."""
        raise ArgumentError(f"a structure of kind {cls.kind!r} cannot be read")

    @classmethod
    def from_dict(cls, found: Mapping[str, Any]) -> Structure:
        """The structure of this kind that `to_dict` wrote; see `structure_from_dict`."""
        version = found.get("version")
        if type(version) is not int or version != cls.version:
            raise ArgumentError(
                f"structure {cls.kind!r} must be of version {cls.version}, which this dither knows"
            )
        with described(f"the settings of structure {cls.kind!r} are incomplete or unknown"):
            settings = dict(found["settings"])
            parts = {name: channel_from_dict(part) for name, part in found["parts"]}
            structure = cls.from_settings(settings, parts)
        if structure.to_dict() != dict(found):
            raise ArgumentError(f"the parts of {cls.kind!r} are not those of its settings")
        return structure

    def to_dict(self) -> dict[str, Any]:
        """The structure as a dictionary that JSON holds; `structure_from_dict` reads it."""
        return {
            "structure": self.kind,
            "version": self.version,
            "settings": self.settings(),
            "parts": [[name, part.to_dict()] for name, part in self.parts.items()],
        }

    def counts_to_dict(self, counts: PartCounts) -> dict[str, Any]:
        """Counts with this structure and its hash, in a form that JSON holds."""
        return {
            "structure": self.to_dict(),
            "hash": self.hash,
            "parts": {name: part.to_dict() for name, part in counts.parts.items()},
        }

    def counts_from_dict(self, found: Mapping[str, Any]) -> PartCounts:
        """The counts that `counts_to_dict` wrote."""
        parts = {name: Aggregate.from_dict(part) for name, part in found["parts"].items()}
        return PartCounts(self, parts)

    @property
    def hash(self) -> str:
        """SHA-256 of the canonical JSON of `to_dict`, 64 hexadecimal digits."""
        return digest_of(self.to_dict())

    @property
    def report_bytes(self) -> int:
        """Two bytes of the part's number, and the widest report of any part."""
        return PART_BYTES + max(part.report_bytes for part in self.parts.values())

    def privatize(self, records: Any) -> Reports:
        """Randomise on the device, with the operating system's randomness.

        Parameters
        ----------
        records : as the structure's docstring says

        Returns
        -------
        dict from part name to a column of reports
        """
        return self.draw(records, secure_words())

    def aggregate(self, reports: Mapping[str, Any], *, strict: bool = False) -> PartCounts:
        """Count reports by part.

        Raises
        ------
        ArgumentError
            A part is unknown; with `strict`, some report could not have come from its channel.
        """
        _checks.flag("strict", strict)
        if not isinstance(reports, Mapping):
            raise ArgumentError("reports must be a dictionary from part to a column of reports")
        unknown = set(reports) - set(self.parts)
        if unknown:
            raise ArgumentError(
                f"reports must be by part: {len(unknown)} of their names are not parts of this "
                f"{self.kind}"
            )
        return PartCounts(
            self,
            {
                name: part.aggregate(reports.get(name, []), strict=strict)
                if name in reports
                else Aggregate(part, np.zeros(part.features, dtype=np.int64), 0)
                for name, part in self.parts.items()
            },
        )


@dataclass(frozen=True, slots=True, repr=False)
class PartCounts:
    """The counts of a structure: one aggregate per part.

    Parameters
    ----------
    structure : Structure
    parts : dict from name to Aggregate
        Of every part of the structure, and of its channel.
    lost : int
        Reports dropped that are of none of the parts.

    Raises
    ------
    ArgumentError
        A part is missing, is not one of the structure's, or was counted by another channel.

    Examples
    --------
    >>> from dither import local
    >>> survey = local.Attributes({"smokes": 2, "region": 4}, epsilon=1)
    >>> counts = survey.aggregate({"smokes": [0, 1], "region": [3]})
    >>> PartCounts.from_dict(counts.to_dict()).n
    3
    """

    structure: Structure
    parts: dict[Any, Aggregate]
    lost: int = 0

    __hash__ = None  # type: ignore[assignment]

    def __repr__(self) -> str:
        reports = {name: part.n for name, part in self.parts.items()}
        rejected = f", rejected={self.rejected}" if self.rejected else ""
        return f"PartCounts({self.structure!r}, n={self.n}{rejected}, reports={brief(reports)})"

    def __post_init__(self) -> None:
        if not isinstance(self.structure, Structure) or not isinstance(self.parts, Mapping):
            raise ArgumentError("counts must be of a structure: an aggregate for each of its parts")
        wanted = self.structure.parts
        if set(self.parts) != set(wanted):
            missing, other = set(wanted) - set(self.parts), set(self.parts) - set(wanted)
            raise ArgumentError(
                f"counts must hold every part of this {self.structure.kind} and no other: "
                f"{len(missing)} of {len(wanted)} are missing, {len(other)} are not its parts"
            )
        for name, part in self.parts.items():
            if not isinstance(part, Aggregate) or part.channel.hash != wanted[name].hash:
                raise ArgumentError("counts must be of the structure's own channels")
        _checks.whole("lost", self.lost)
        # In the structure's order, whatever order they were written in.
        bind(self, parts={name: self.parts[name] for name in wanted})

    def estimate(
        self, postprocess: str = "none", *, confidence: float = 0.95, **options: Any
    ) -> Any:
        """Read the counts.

        Parameters
        ----------
        postprocess : str
            Of shares that sum to 1: none (unbiased), clip, norm_sub, base_cut, project, increasing
            or decreasing.
        confidence : float
            Of the intervals, strictly between 0 and 1; of `HeavyHitters` also that no text of share
            0 is kept at a level, by Bonferroni over the candidates.
        **options
            Of `Marginals`: `consistent`, whether marginals that share attributes are made to agree
            on them; True. Of `HeavyHitters`: `k`, at most how many texts; 10. Of `Personal`:
            `method`, one of weights, population and likelihood, and what a likelihood takes.

        Returns
        -------
        Estimates (by attribute), Estimate (of items, texts, or values), KeyEstimate (of pairs)
            Each has `frame`, `summary` and `plot`. Of `Personal` also what a channel's counts give.

        Raises
        ------
        ArgumentError
            A part has no reports, or an argument is unknown or out of range.
        """
        level = _checks.confidence(confidence)
        return self.structure.read(self, postprocess, level, options)

    @property
    def hash(self) -> str:
        """The structure's."""
        return self.structure.hash

    @property
    def n(self) -> int:
        """Reports counted, over all parts."""
        return sum(part.n for part in self.parts.values())

    @property
    def rejected(self) -> int:
        """Reports dropped as impossible, over all parts."""
        return self.lost + sum(part.rejected for part in self.parts.values())

    def __getitem__(self, name: str) -> Aggregate:
        """The aggregate of one part."""
        return self.parts[name]

    def __add__(self, other: PartCounts) -> PartCounts:
        """Merge the counts of the same structure."""
        if not isinstance(other, PartCounts):
            return NotImplemented
        if self.hash != other.hash:
            raise ArgumentError("aggregates must be of the same structure to be added")
        parts = {k: a + other.parts[k] for k, a in self.parts.items()}
        return PartCounts(self.structure, parts, self.lost + other.lost)

    def __radd__(self, other: object) -> PartCounts:
        """Let ``sum`` begin from its 0."""
        if isinstance(other, int) and other == 0:
            return self
        return NotImplemented

    def to_dict(self) -> dict[str, Any]:
        """The counts with their structure and its hash, in a form that JSON holds."""
        return self.structure.counts_to_dict(self)

    @classmethod
    def from_dict(cls, found: dict[str, Any]) -> PartCounts:
        """The counts that `to_dict` wrote.

        Raises
        ------
        ArgumentError
            A part is missing, or something is not of the structure that is described.
        """
        if not isinstance(found, Mapping):
            raise ArgumentError("the counts must be a dictionary, as to_dict writes it")
        with described("the counts are truncated or were not written by to_dict"):
            of = [found[k] for k in ("structure", "personal", "channel") if k in found]
            check_digest(of[0], found["hash"], _OTHER_HASH)
            structure = structure_from_dict(of[0])
            if found["hash"] != structure.hash:
                raise ArgumentError(_OTHER_HASH)
            return structure.counts_from_dict(found)


def structure_from_dict(found: dict[str, Any]) -> Structure:
    """The structure, or the offer of channels, that its `to_dict` wrote.

    Every part is checked as if it had just been made: a description cannot promise more than its
    channels do.

    Parameters
    ----------
    found : dict
        What `to_dict` gave, or JSON of it.

    Returns
    -------
    Structure
        With the same hash as the one that was written.

    Raises
    ------
    ArgumentError
        The kind is unknown, the version is newer, a setting is missing or out of range, or a part
        is not what the settings ask for.

    Examples
    --------
    >>> from dither import local
    >>> sets = local.ItemSets(["bread", "milk"], epsilon=1, padding=2)
    >>> local.structure_from_dict(sets.to_dict()).hash == sets.hash
    True
    """
    if not isinstance(found, Mapping):
        raise ArgumentError("a structure must be described by a dictionary, as to_dict writes it")
    kind, channel = found.get("structure"), found.get("channel")
    if "offer" in found or (isinstance(channel, str) and channel == "personalised"):
        kind = "personal"
    if not isinstance(kind, str) or kind not in _KINDS:
        raise ArgumentError(f"unknown structure {str(kind)[:40]!r}{nearest(str(kind), _KINDS)}")
    return _KINDS[kind].from_dict(found)


def given(parts: Mapping[str, Channel]) -> Maker:
    """A maker that gives channels that were read, in order; `made_part` checks each."""
    left = iter(parts.values())

    def make(domain: Domain, epsilon: Fraction) -> Channel:
        for part in left:
            return part
        raise ArgumentError("a structure must have all of its parts")

    return make


def made_part(make: Maker, domain: Domain, epsilon: Fraction) -> Channel:
    """A structure's part, which promises no less than it was handed.

    A structure states one epsilon for all that a person sends, and it rests on its parts. What
    `make` gives may be anything: a channel that protects some pairs of values less than others, one
    whose epsilon is for a unit of distance, or one that a user wrote. Whatever is not a channel of
    this domain that promises plain local DP at this epsilon or less, for every two values, is
    refused.
    """
    if not callable(make):
        raise ArgumentError("channel must be a channel's class, such as GRR, or make a channel")
    try:
        part = make(domain, epsilon)
    except TypeError:
        raise ArgumentError(
            "channel must make a channel from a domain and an epsilon, as GRR does"
        ) from None
    if not isinstance(part, Channel):
        raise ArgumentError("channel must make a Channel, such as GRR, OUE or OLH")
    if part.domain != domain:
        raise ArgumentError("channel must make a channel of the domain that it is given")
    promise = part.guarantee
    most: Fraction | None = promise.epsilon
    # Where delta is 0 the epsilon is exact; a ratio beyond it, by more than the two roundings up
    # that a ratio may have had, shows that the matrix says something else.
    limit = directed.float_up(epsilon) * (1 + 2.0**-51)
    if promise.graded or any(not pair.ratio <= limit for pair in promise.pairs.values()):
        worst = max(pair.ratio for pair in promise.pairs.values())
        most = Fraction(worst) if worst < float("inf") and not promise.graded else None
    if most is None or most > epsilon:
        why = (
            "some pairs of values have no epsilon at all"
            if most is None
            else f"its worst pair of values has {loss_text(most, 6)}"
        )
        raise ArgumentError(
            f"channel must promise epsilon = {remaining(epsilon, 6)} or less between any two "
            "values: "
            f"{why}; use a channel such as GRR, OUE or OLH, or make this one with a smaller "
            "epsilon"
        )
    return part


def encoded(records: Any, domains: Mapping[str, Domain]) -> tuple[dict[str, Codes], int]:
    """Codes of each named column of a mapping or a data frame, and how many people there are.

    Every value is read, whichever of them is then reported, so that a bad one is always refused.

    Raises
    ------
    ArgumentError
        A column is missing, the lengths differ, or a value is outside its domain.
    """
    names = list(domains)
    try:
        columns = {name: records[name] for name in names}
    except Exception:  # a data frame's own error for a missing column, whatever its class
        raise ArgumentError(
            "records must hold a column for each of: " + ", ".join(map(repr, names))
        ) from None
    if not all(hasattr(c, "__len__") and collection(c) for c in columns.values()):
        raise ArgumentError("records must hold columns; give one person's values as lists of one")
    if len({len(column) for column in columns.values()}) > 1:
        raise ArgumentError("records must have columns of one length")
    codes = {name: domains[name].encode(columns[name]) for name in names}
    return codes, len(codes[names[0]])
