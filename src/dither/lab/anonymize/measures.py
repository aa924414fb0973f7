"""Which definitions a table meets, and how far: the result of ``measure``."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from types import MappingProxyType
from typing import TYPE_CHECKING

from dither.lab.anonymize import diversity, likeness
from dither.lab.anonymize.pairs import Pairs, pair
from dither.lab.anonymize.requirements import closeness
from dither.lab.anonymize.risk import Risk, of_classes
from dither.lab.anonymize.sensitive import Column
from dither.lab.anonymize.tally import Classes, Ints
from dither.lab.anonymize.wording import unprotected

if TYPE_CHECKING:
    from matplotlib.figure import Figure

__all__ = ["Measures", "Sensitive", "from_classes", "of_column"]


@dataclass(frozen=True, slots=True)
class Sensitive:
    """What classes tell about one sensitive column; the worst class decides.

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
        Rows in classes where all have the same value: whoever finds the class knows it.
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
class Measures:
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
            f"{self.rows:,} rows in {self.classes:,} classes of {', '.join(self.quasi)}",
            f"k = {self.k:,}; {self.risk.unique:,} rows are alone in their class",
            f"prosecutor   highest {self.risk.prosecutor.highest:.4g}, average "
            f"{self.risk.prosecutor.average:.4g}, {self.risk.prosecutor.exposed:.1%} of rows above "
            f"{self.risk.threshold:g}",
        ]
        if self.risk.journalist is not None:
            lines.append(
                f"journalist   highest {self.risk.journalist.highest:.4g}, average "
                f"{self.risk.journalist.average:.4g}, {self.risk.journalist.exposed:.1%} of rows "
                f"above {self.risk.threshold:g}"
            )
        lines.append(f"marketer     {self.risk.marketer:.4g} of rows linked rightly")
        for name, found in self.sensitive.items():
            lines += [f"{name}:", *(f"  {line}" for line in _lines(found))]
        lines.append(
            f"discernibility {self.discernibility:,}, "
            f"average class {self.average_class:.4g} times k"
        )
        return "\n".join([*lines, self.unprotected])

    def __str__(self) -> str:
        return self.summary()

    def plot(self, path: str | Path | None = None) -> Figure:
        """Draw who is in how large a class, and what each attacker finds.

        Parameters
        ----------
        path : str or Path, optional
            Where to save it: .png, .svg or .pdf.
        """
        from dither.plots.anonymize import draw_measures

        return draw_measures(self, path)


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
        f"{found.disclosed:,} rows are in classes that share one value",
    ]


def of_column(pairs: Pairs, column: Column, distance: str | None) -> Sensitive:
    """Measure one sensitive column.

    Parameters
    ----------
    pairs : Pairs
        With the table's own distribution as the whole.
    column : Column
    distance : str, optional
    """
    distinct = diversity.distinct(pairs)
    fewest = int(distinct.min())
    t = None
    if distance is not None:
        t = float(closeness(pairs, distance, column.context).max())
    return Sensitive(
        distinct_l=fewest,
        entropy_l=float(diversity.effective(pairs).min()),
        recursive_c=MappingProxyType(
            {n: float(diversity.recursive(pairs, n).max()) for n in range(2, min(fewest, 8) + 1)}
        ),
        alpha=float(diversity.alpha(pairs).max()),
        distance=distance,
        t=t,
        delta=float(likeness.delta(pairs).max()),
        delta_present=float(likeness.delta_of_present(pairs).max()),
        beta=float(likeness.beta(pairs).max()),
        enhanced_beta=float(likeness.enhanced_beta(pairs).max()),
        disclosed=int(pairs.sizes[distinct == 1].sum()),
    )


def from_classes(
    quasi: Sequence[str],
    classes: Classes,
    columns: Sequence[Column],
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
        c.name: of_column(pair(classes.of, sizes, c.codes, c.size), c, distances.get(c.name))
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
        unprotected=unprotected(quasi, (), diverse) if blind is None else blind,
    )
