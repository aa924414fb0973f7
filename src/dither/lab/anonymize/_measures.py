"""``measure``: which definitions a table meets as it stands, and how far."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, fields
from pathlib import Path
from types import MappingProxyType
from typing import TYPE_CHECKING, Any

from dither._checks import number
from dither._format import Printable, count_text, percent, wrapped
from dither.lab._frames import read
from dither.lab._grouping import Classes, Ints
from dither.lab.anonymize import _definitions as of
from dither.lab.anonymize._definitions import Pairs, pair
from dither.lab.anonymize._demands import (
    SensitiveColumn,
    chosen_distances,
    columns_apart,
    prepare,
    unprotected,
)
from dither.lab.anonymize._risk import Risk, classify, of_classes, population_risk

if TYPE_CHECKING:
    from matplotlib.figure import Figure

__all__ = ["Measures", "Sensitive", "from_classes", "measure"]


class Copied:
    """What can be copied and pickled, although its mappings cannot be written to."""

    __slots__ = ()

    def __reduce__(self) -> tuple[Any, ...]:
        held = {f.name: getattr(self, f.name) for f in fields(self)}  # type: ignore[arg-type]
        read_only = [name for name, value in held.items() if isinstance(value, MappingProxyType)]
        return _again, (
            type(self),
            held | {name: dict(held[name]) for name in read_only},
            read_only,
        )


def _again(kind: type, held: dict[str, Any], read_only: Sequence[str]) -> Any:
    return kind(**held | {name: MappingProxyType(held[name]) for name in read_only})


@dataclass(frozen=True, slots=True)
class Sensitive(Copied):
    """What classes reveal about one sensitive column; the worst class decides.

    Attributes
    ----------
    distinct_l : int
        Fewest values in a class.
    entropy_l : float
        Least ``exp(entropy)``; the table has entropy l-diversity for l up to it.
    recursive_c : mapping of int to float
        For l from 2 to ``min(distinct_l, 8)``: the table has recursive (c,l)-diversity for every c
        above it.
    alpha : float
        Largest share of a value in a class.
    distance : str or None
        The ground distance that was chosen.
    t : float or None
        Largest earth mover's distance of a class from the table; None where none was chosen.
    delta : float
        δ-disclosure privacy holds for every δ above it; infinite where a class lacks a value.
    delta_present : float
        The same over the values that classes have. It bounds no more than that.
    beta, enhanced_beta : float
        β-likeness holds from it on; the enhanced one may hold for no β, and is infinite then.
    disclosed : int
        Rows in classes where all have the same value: anyone who finds the class knows it.
    """

    distinct_l: int
    entropy_l: float
    recursive_c: Mapping[int, float]
    alpha: float
    distance: str | None
    t: float | None
    delta: float
    delta_present: float
    beta: float
    enhanced_beta: float
    disclosed: int


@dataclass(frozen=True, slots=True, eq=False)
class Measures(Copied, Printable):
    """Classes of a table, and what they reveal.

    Attributes
    ----------
    rows, k, classes : int
        Rows, smallest class, number of classes.
    quasi : tuple of str
    sizes : array of int64, shape (classes,)
        Rows of each class.
    class_of : array of int64, shape (rows,)
        The class of each row.
    sensitive : mapping of str to Sensitive
    risk : Risk
    discernibility : int
        Sum of squared class sizes; a row left out counts as all rows.
    average_class : float
        Rows / (classes k): 1 where every class is as small as k.
    unprotected : str
        What all of this does not protect.
    """

    rows: int
    k: int
    classes: int
    quasi: tuple[str, ...]
    sizes: Ints = field(repr=False)
    class_of: Ints = field(repr=False)
    sensitive: Mapping[str, Sensitive]
    risk: Risk
    discernibility: int
    average_class: float
    unprotected: str

    def summary(self) -> str:
        """Everything in a few lines."""
        lines = [
            f"{count_text(self.rows, 'row')} in {count_text(self.classes, 'class', 'classes')} of "
            f"{', '.join(self.quasi)}",
            f"k = {self.k:,}; rows alone in their class: {self.risk.unique:,}",
            f"prosecutor   highest {self.risk.prosecutor.highest:.4g}, average "
            f"{self.risk.prosecutor.average:.4g}, {percent(self.risk.prosecutor.exposed)} of rows "
            f"above {self.risk.threshold:g}",
        ]
        if self.risk.journalist is not None:
            lines.append(
                f"journalist   highest {self.risk.journalist.highest:.4g}, average "
                f"{self.risk.journalist.average:.4g}, {percent(self.risk.journalist.exposed)} "
                f"of rows above {self.risk.threshold:g}"
            )
        lines.append(f"marketer     {self.risk.marketer:.4g} of rows linked rightly")
        for name, found in self.sensitive.items():
            lines += [f"{name}:", *(f"  {line}" for line in _lines(found))]
        lines.append(
            f"discernibility {self.discernibility:,}, "
            f"average class {self.average_class:.4g} times k"
        )
        return "\n".join(part for line in (*lines, self.unprotected) for part in wrapped(line))

    def plot(self, path: str | Path | None = None) -> Figure:
        """Draw who is in how large a class, and what each attacker finds.

        Saved to ``path`` (.png, .svg or .pdf) where one is given.
        """
        from dither.plots.lab._anonymize import draw_measures

        return draw_measures(self, path)


def measure(
    frame: object,
    quasi: Sequence[str],
    sensitive: str | Sequence[str] = (),
    *,
    distance: str | Mapping[str, str] | None = None,
    order: Mapping[str, Sequence[object]] | None = None,
    hierarchies: Mapping[str, object] | None = None,
    population: object | None = None,
    threshold: float = 0.2,
) -> Measures:
    """Measure a table by every definition: k-anonymity and its kin, risk, utility.

    Parameters
    ----------
    frame : Polars or pandas DataFrame, or pyarrow Table
        As it would be released. NULL and NaN are values of their own.
    quasi : list of str
        The columns that an attacker may know.
    sensitive : str or list of str
        The columns that an attacker wants to know.
    distance : str or mapping of str to str, optional
        The ground distance of t-closeness, for all sensitive columns or for each: ``"equal"``,
        ``"ordered"`` or ``"hierarchical"``. Without a choice no t is given.
    order : mapping of str to list, optional
        Values of a column of texts from first to last, for ``"ordered"``.
    hierarchies : mapping of str, optional
        The sensitive column's hierarchy, for ``"hierarchical"``.
    population : frame, optional
        People with the same quasi columns, written as in ``frame``, for the journalist and the
        marketer. Everybody in ``frame`` must be in it.
    threshold : float
        In (0, 1]: a row whose risk is above it counts as exposed.

    Returns
    -------
    Measures
        Its ``unprotected`` says what the figures do not cover.

    Raises
    ------
    ArgumentError
        For an unknown column, one that is both quasi and sensitive, an empty frame, a missing order
        or hierarchy, or a population that lacks somebody.

    Examples
    --------
    >>> import polars as pl
    >>> people = pl.DataFrame({"zip": ["02*", "02*", "03*", "03*"], "ill": ["a", "b", "a", "a"]})
    >>> found = measure(people, ["zip"], "ill", distance="equal")
    >>> found.k, found.sensitive["ill"].distinct_l, found.sensitive["ill"].t
    (2, 1, 0.25)
    """
    table = read(frame)
    known, wanted = columns_apart(table, quasi, sensitive)
    threshold = number("threshold", threshold, above=0, most=1)
    chosen = chosen_distances(distance, wanted)
    columns = [
        prepare(table, name, {chosen[name]} if name in chosen else (), order, hierarchies)
        for name in wanted
    ]
    classes = classify(table, known)
    risk = None
    if population is not None:
        risk = population_risk(table, classes, read(population, "population"), known, threshold)
    return from_classes(known, classes, columns, chosen, risk=risk, threshold=threshold)


def _lines(found: Sensitive) -> list[str]:
    recursive = ", ".join(f"l = {v}: c > {c:.4g}" for v, c in found.recursive_c.items())
    t = (
        "for a chosen distance only"
        if found.t is None
        else f"{found.t:.4g} ({found.distance} distance)"
    )
    return [
        f"l-diversity  distinct {found.distinct_l}, entropy {found.entropy_l:.4g}"
        + (f", recursive {recursive}" if recursive else ""),
        f"t-closeness  {t}",
        f"alpha {found.alpha:.4g}, delta {found.delta:.4g}, beta {found.beta:.4g}, enhanced beta "
        f"{found.enhanced_beta:.4g}",
        f"rows in classes that share one value: {found.disclosed:,}",
    ]


def _of_column(pairs: Pairs, column: SensitiveColumn, distance: str | None) -> Sensitive:
    """Measure one sensitive column, held against the table's own distribution."""
    distinct = of.distinct(pairs)
    fewest = int(distinct.min())
    t = None
    if distance is not None:
        t = float(of.closeness(pairs, distance, column.context).max())
    return Sensitive(
        distinct_l=fewest,
        entropy_l=float(of.effective(pairs).min()),
        recursive_c=MappingProxyType(
            {n: float(of.recursive(pairs, n).max()) for n in range(2, min(fewest, 8) + 1)}
        ),
        alpha=float(of.alpha(pairs).max()),
        distance=distance,
        t=t,
        delta=float(of.delta(pairs).max()),
        delta_present=float(of.delta_of_present(pairs).max()),
        beta=float(of.beta(pairs).max()),
        enhanced_beta=float(of.enhanced_beta(pairs).max()),
        disclosed=int(pairs.sizes[distinct == 1].sum()),
    )


def from_classes(
    quasi: Sequence[str],
    classes: Classes,
    columns: Sequence[SensitiveColumn],
    distances: Mapping[str, str],
    *,
    risk: Risk | None = None,
    threshold: float = 0.2,
    suppressed: int = 0,
    blind: str | None = None,
) -> Measures:
    """Measure classes that are known."""
    sizes = classes.weight
    rows = int(sizes.sum())
    k = int(sizes.min())
    found = {
        c.name: _of_column(pair(classes.of, sizes, c.codes, c.size), c, distances.get(c.name))
        for c in columns
    }
    diverse = bool(found) and all(one.distinct_l > 1 for one in found.values())
    return Measures(
        rows=rows,
        k=k,
        classes=len(sizes),
        quasi=tuple(quasi),
        sizes=sizes,
        class_of=classes.of,
        sensitive=MappingProxyType(found),
        risk=of_classes(sizes, threshold) if risk is None else risk,
        # Squares of fewer than 2**31 rows stay within 64 bits.
        discernibility=int((sizes**2).sum()) + suppressed * (rows + suppressed),
        average_class=rows / (len(sizes) * k),
        unprotected=unprotected((), diverse=diverse) if blind is None else blind,
    )
