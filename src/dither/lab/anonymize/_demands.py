"""What is asked of an anonymiser: which columns are what, and what every class must meet."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction

import numpy as np
import polars as pl
from numpy.typing import NDArray

from dither._checks import exact, number, whole
from dither.errors import ArgumentError, nearest
from dither.lab._frames import Coded, encode, names, read, texts
from dither.lab._grouping import Classes, Ints, combine, label
from dither.lab.anonymize._definitions import Context, Pairs, Truths
from dither.lab.anonymize._hierarchy import fit
from dither.lab.anonymize._requirements import Requirement, check_distance

__all__ = [
    "Demand",
    "PreparedTable",
    "Require",
    "SensitiveColumn",
    "allowance",
    "check_seconds",
    "chosen_distances",
    "columns_apart",
    "hierarchies_of",
    "prepare",
    "unprotected",
]

Require = Requirement | Sequence[Requirement] | Mapping[str, Requirement | Sequence[Requirement]]
"""For all sensitive columns, or for each."""


@dataclass(frozen=True, slots=True, eq=False)
class SensitiveColumn:
    """A sensitive column."""

    name: str
    codes: NDArray[np.int32]
    size: int
    context: Context


def prepare(
    frame: pl.DataFrame,
    name: str,
    distances: Collection[str],
    order: Mapping[str, Sequence[object]] | None,
    hierarchies: Mapping[str, object] | None,
) -> SensitiveColumn:
    """Encode a column, and rank or nest its values where a distance needs that.

    Raises
    ------
    ArgumentError
        Where the ordered distance has no order, or the hierarchical one no hierarchy.
    """
    coded = encode(frame[name])
    rank = maps = None
    if "ordered" in distances:
        rank = _rank(frame[name], coded, (order or {}).get(name))
    if "hierarchical" in distances:
        if name not in (hierarchies or {}):
            raise ArgumentError(
                f"hierarchies must have one for {name!r}, as its distance is 'hierarchical'"
            )
        maps = fit(name, (hierarchies or {})[name], coded).maps
    return SensitiveColumn(name, coded.codes, coded.size, Context(rank, maps))


def chosen_distances(
    distance: str | Mapping[str, str] | None, sensitive: Sequence[str]
) -> dict[str, str]:
    """The distance of each column, from one for all or one a column.

    Raises
    ------
    ArgumentError
        For an unknown distance or column.
    """
    if distance is None:
        return {}
    found = dict.fromkeys(sensitive, distance) if isinstance(distance, str) else dict(distance)
    for name, ground in found.items():
        if name not in sensitive:
            raise ArgumentError(
                f"distance names {name!r}, which is not sensitive{nearest(str(name), sensitive)}"
            )
        check_distance(ground)
    return found


@dataclass(frozen=True, slots=True, eq=False)
class Demand:
    """What every class must meet.

    Attributes
    ----------
    k : int
        Rows.
    columns : tuple of SensitiveColumn
        Sensitive columns that something is required of.
    requirements : tuple of (int, Requirement)
        The column's place in ``columns``, and what is required.
    """

    k: int
    columns: tuple[SensitiveColumn, ...] = ()
    requirements: tuple[tuple[int, Requirement], ...] = ()

    @property
    def monotone(self) -> tuple[tuple[int, Requirement], ...]:
        """Requirements that merging never breaks."""
        return tuple((i, r) for i, r in self.requirements if r.monotone)

    @property
    def relative(self) -> bool:
        """Whether something depends on which other classes are released."""
        return any(r.relative for _, r in self.requirements)

    def met(self, sizes: Ints, pairs: Sequence[Pairs], enough: int = 0) -> tuple[Truths, Truths]:
        """Which classes meet the monotone part, and which meet everything.

        A class that does not is left out. Where the release's own distribution counts, leaving
        classes out moves it, so the rest is held against it again until nothing changes, or fewer
        rows than ``enough`` are left.
        """
        safe: Truths = sizes >= self.k
        for i, requirement in self.monotone:
            safe = safe & requirement.met(pairs[i], self.columns[i].context)
        kept = safe
        others = [(i, r) for i, r in self.requirements if not r.monotone]
        while others and int(sizes[kept].sum()) >= max(enough, 1):
            fine = np.ones(int(kept.sum()), dtype=np.bool_)
            for i, requirement in others:
                fine &= requirement.met(pairs[i].only(kept), self.columns[i].context)
            if fine.all():
                break
            kept = kept.copy()
            kept[kept] = fine
            if not self.relative:
                break
        return safe, kept


def columns_apart(
    table: pl.DataFrame, quasi: Sequence[str], sensitive: str | Sequence[str]
) -> tuple[list[str], list[str]]:
    """The quasi-identifiers and the sensitive columns, checked."""
    known = names("quasi", quasi, table)
    wanted = names("sensitive", sensitive, table, some=False)
    both = [name for name in wanted if name in known]
    if both:
        listed = ", ".join(repr(name) for name in both)
        raise ArgumentError(
            f"quasi and sensitive must differ, and {listed} is in both: a column is either what "
            "the attacker knows or what they want to know"
        )
    return known, wanted


def check_seconds(seconds: object) -> float | None:
    """How long a search may take."""
    if seconds is None:
        return None
    return number("seconds", seconds, least=0)


def allowance(suppress: object, rows: int) -> int:
    """How many rows may be left out."""
    share = exact("suppress", suppress, least=0, most=1)
    return int(Fraction(rows) * share)


def hierarchies_of(
    hierarchies: object, table: pl.DataFrame, quasi: Sequence[str], *, all_of: bool
) -> dict[str, object]:
    """A hierarchy for each column.

    Raises
    ------
    ArgumentError
        Where a name is unknown, or a quasi-identifier has none.
    """
    if not isinstance(hierarchies, Mapping):
        raise ArgumentError(
            "hierarchies must be a mapping from column to hierarchy, such as "
            "{'age': dt.anonymize.intervals([5, 10, 20])}"
        )
    for name in hierarchies:
        if name not in table.columns:
            raise ArgumentError(
                f"hierarchies has an unknown column {name!r}{nearest(str(name), table.columns)}"
            )
    missing = [name for name in quasi if name not in hierarchies]
    if missing and all_of:
        raise ArgumentError(
            f"hierarchies must have one for {missing[0]!r}: a table, intervals(), dates(), "
            "prefixes(), or suppression() to keep or drop its values"
        )
    return dict(hierarchies)


@dataclass(frozen=True, slots=True, eq=False)
class PreparedTable:
    """What an anonymiser is asked, checked, and the distinct rows that it works on.

    Attributes
    ----------
    given : frame
        As it came; ``table`` is the same as Polars.
    quasi : list of str
    demand : Demand
    columns : list of SensitiveColumn
        The sensitive ones.
    distances : mapping of str to str
        By which t is reported.
    hierarchies : mapping of str
    coded : list of Coded
        One for each quasi-identifier.
    base : Classes
        Rows that agree on the quasi-identifiers, and on the columns of the demand.
    """

    given: object
    table: pl.DataFrame
    quasi: list[str]
    demand: Demand
    columns: list[SensitiveColumn]
    distances: Mapping[str, str]
    hierarchies: Mapping[str, object]
    coded: list[Coded]
    base: Classes

    @staticmethod
    def of(
        frame: object,
        quasi: Sequence[str],
        k: int,
        hierarchies: object,
        sensitive: str | Sequence[str],
        require: Require,
        distance: str | Mapping[str, str] | None,
        order: Mapping[str, Sequence[object]] | None,
        *,
        all_of: bool,
    ) -> PreparedTable:
        """Check and encode; ``all_of`` says whether every quasi-identifier needs a hierarchy.

        Raises
        ------
        ArgumentError
            Naming the argument that does not fit.
        """
        table = read(frame)
        known, wanted = columns_apart(table, quasi, sensitive)
        k = _check_k(k, table.height)
        sources = hierarchies_of(hierarchies, table, known, all_of=all_of)
        chosen = chosen_distances(distance, wanted)
        demand, columns = _demanded(table, k, wanted, require, chosen, order, sources)
        coded = [encode(table[name]) for name in known]
        parts = [(c.codes, c.size) for c in coded] + [(c.codes, c.size) for c in demand.columns]
        base = label(*combine(parts, table.height))
        return PreparedTable(frame, table, known, demand, columns, chosen, sources, coded, base)

    @property
    def quasi_codes(self) -> tuple[NDArray[np.int32], ...]:
        """The quasi-identifiers of the distinct rows."""
        return tuple(c.codes[self.base.first] for c in self.coded)

    @property
    def sensitive_codes(self) -> tuple[NDArray[np.int32], ...]:
        """The columns of the demand, of the distinct rows."""
        return tuple(c.codes[self.base.first] for c in self.demand.columns)


def _check_k(k: object, rows: int) -> int:
    """k, which no table of fewer rows can have."""
    k = whole("k", k, 1)
    if k > rows:
        raise ArgumentError(
            f"k is {k:,} and the frame has only {rows:,} rows: no class can be that large; lower k"
        )
    return k


def _demanded(
    table: pl.DataFrame,
    k: int,
    sensitive: Sequence[str],
    require: Require,
    chosen: dict[str, str],
    order: Mapping[str, Sequence[object]] | None,
    hierarchies: Mapping[str, object],
) -> tuple[Demand, list[SensitiveColumn]]:
    """What every class must meet, and the sensitive columns; adds to the distances chosen."""
    wanted = _by_column(require, sensitive)
    columns = []
    for name in sensitive:
        grounds = {r.distance for r in wanted[name] if r.distance is not None}
        for ground in sorted(grounds):
            chosen.setdefault(name, ground)
        grounds |= {chosen[name]} if name in chosen else set()
        columns.append(prepare(table, name, grounds, order, hierarchies))
    used = [column for column in columns if wanted[column.name]]
    required = [(i, r) for i, column in enumerate(used) for r in wanted[column.name]]
    return Demand(k, tuple(used), tuple(required)), columns


def _by_column(require: Require, sensitive: Sequence[str]) -> dict[str, tuple[Requirement, ...]]:
    if isinstance(require, Mapping):
        for name in require:
            if name not in sensitive:
                raise ArgumentError(
                    f"require names {name!r}, which is not sensitive{nearest(name, sensitive)}"
                )
        return {name: _several(require.get(name, ())) for name in sensitive}
    found = _several(require)
    if found and not sensitive:
        raise ArgumentError(
            f"require asks for {found[0]!s}, so sensitive must name the columns that it is about"
        )
    return dict.fromkeys(sensitive, found)


def _several(require: object) -> tuple[Requirement, ...]:
    found = tuple(require) if isinstance(require, Sequence) else (require,)
    for one in found:
        if not isinstance(one, Requirement):
            raise ArgumentError(
                "require must hold requirements, such as dt.anonymize.l_diversity(3) or "
                "dt.anonymize.t_closeness(0.2, distance='equal')"
            )
    return found


def _rank(column: pl.Series, coded: Coded, order: Sequence[object] | None) -> NDArray[np.int64]:
    """The place of each value; a missing one comes last."""
    values = coded.values
    if order is not None:
        said = pl.Series([None if v is None else str(v) for v in order], dtype=pl.String)
        places = {text: i for i, text in reversed(list(enumerate(said.to_list())))}
        found = [places.get(text, -1) for text in texts(values).to_list()]
        missing = values.is_null().to_list()
        lost = sum(place < 0 and not gone for place, gone in zip(found, missing, strict=True))
        if lost:
            raise ArgumentError(
                f"order[{column.name!r}] lacks {lost} of the column's {len(values)} values; "
                "list every value from first to last"
            )
        return np.array([len(places) if p < 0 else p for p in found], dtype=np.int64)
    dtype = column.dtype
    if isinstance(dtype, pl.Enum):
        values = values.cast(dtype).to_physical()
    elif not (dtype.is_numeric() or dtype.is_temporal() or dtype in (pl.Boolean, pl.Null)):
        raise ArgumentError(
            f"order must list the values of {column.name!r} from first to last, as the "
            "alphabet is not an order of texts"
        )
    if values.dtype == pl.Null:
        return np.zeros(len(values), dtype=np.int64)
    sort = values.to_frame("v").with_row_index("row").sort("v", nulls_last=True)["row"].to_numpy()
    rank = np.empty(len(values), dtype=np.int64)
    rank[sort] = np.arange(len(values))
    return rank


_ALWAYS = "a column left out of quasi, another release on the same people, or anyone who knows more"


def unprotected(requirements: Sequence[Requirement], *, diverse: bool) -> str:
    """One line on what a k-anonymous release does not protect.

    ``requirements`` hold besides k-anonymity; ``diverse`` says whether every class was seen to have
    at least two values of each sensitive column.
    """
    if requirements:
        first = "; ".join(dict.fromkeys(r.blind for r in requirements))
    elif diverse:
        first = "values that are likely in a class, though no class has only one"
    else:
        first = "a sensitive value that all of a class share"
    return f"Not protected: {first}; and {_ALWAYS}."
