"""``mondrian``: classes as small as k allows, each with a range of its own in every column."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from types import MappingProxyType
from typing import Any

import numpy as np
import polars as pl
from numpy.typing import NDArray

from dither.errors import ArgumentError
from dither.lab.anonymize.asking import Require, check_k, check_seconds, demanded, hierarchies_of
from dither.lab.anonymize.frames import Coded, as_given, encode, read, secret_order, texts
from dither.lab.anonymize.hierarchy import ANY, fit
from dither.lab.anonymize.measures import from_classes
from dither.lab.anonymize.measuring import columns_apart
from dither.lab.anonymize.mondrian import cut
from dither.lab.anonymize.pairs import Floats
from dither.lab.anonymize.recoding import as_it_is
from dither.lab.anonymize.result import Anonymized, Covers
from dither.lab.anonymize.sensitive import Column, chosen_distances
from dither.lab.anonymize.table import Demand
from dither.lab.anonymize.tally import Classes, Ints, combine, label
from dither.lab.anonymize.wording import unprotected

__all__ = ["mondrian"]

Ranges = tuple[pl.Series, pl.Series, NDArray[np.int32], NDArray[np.int32]]
_LISTED = 6
"""Values that a set names one by one, where the rest can be told from its ends."""
_ODD = re.compile(r'[,"{}…\r\n]|^\s|\s$|^NULL$|^$')


def _written(text: str | None) -> str:
    """A member of a set, in quotes where it could be misread."""
    if text is None:
        return "NULL"
    return '"' + text.replace('"', '""') + '"' if _ODD.search(text) else text


class _Side:
    """One quasi-identifier in order: where each code stands, and how a range of places reads."""

    def __init__(self, name: str, coded: Coded, source: object | None) -> None:
        values = coded.values
        self.size = coded.size
        self.number = False
        self.sorted = source is None
        if source is not None:
            weight = np.bincount(coded.codes, minlength=coded.size)
            maps = fit(name, source, values, weight).maps
            # From the top, so that values which share an ancestor stand together.
            order = np.lexsort(maps)
            self.positions: Floats = np.arange(self.size, dtype=np.float64)
        else:
            sortable = values if values.dtype.is_numeric() or values.dtype.is_temporal() else None
            if sortable is None:
                sortable = values if values.dtype == pl.Boolean else texts(values)
            rows = sortable.to_frame("v").with_row_index("row")
            order = rows.sort("v", nulls_last=True)["row"].to_numpy().astype(np.int64)
            self.positions = self._widths(values, order)
        self.place = np.empty(self.size, dtype=np.int32)
        self.place[order] = np.arange(self.size)
        self.values = values.gather(order)

    def _widths(self, values: pl.Series, order: Ints) -> Floats:
        """Numbers and dates as far apart as they are; all else, and what is missing, by rank."""
        if values.dtype.is_numeric() or values.dtype.is_temporal():
            self.number = not values.has_nulls()
            if self.number:
                physical = values.to_physical() if values.dtype.is_temporal() else values
                found = physical.cast(pl.Float64).to_numpy()[order]
                with np.errstate(over="ignore"):
                    if np.isfinite(found).all() and np.isfinite(found[-1] - found[0]):
                        return found
        return np.arange(self.size, dtype=np.float64)

    def labels(self, low: NDArray[np.int32], high: NDArray[np.int32]) -> pl.Series:
        """The text of each part's range."""
        key, size = combine([(low, self.size), (high, self.size)], len(low))
        classes = label(key, size)
        said = [_written(t) for t in texts(self.values).to_list()]
        alone = ["NULL" if t is None else t for t in texts(self.values).to_list()]
        written = [
            alone[low[one]]
            if low[one] == high[one]
            else self._say(said, int(low[one]), int(high[one]))
            for one in classes.first.tolist()
        ]
        return pl.Series(written, dtype=pl.String).gather(classes.of)

    def _say(self, said: list[str], low: int, high: int) -> str:
        if high - low + 1 == self.size and not self.number:
            return ANY
        if self.number:
            return f"[{said[low]}, {said[high]}]"
        if high - low < _LISTED or not self.sorted:
            return "{" + ", ".join(dict.fromkeys(said[low : high + 1])) + "}"
        return f"{{{said[low]} … {said[high]}: {high - low + 1}}}"


def mondrian(
    frame: object,
    quasi: Sequence[str],
    k: int = 10,
    *,
    hierarchies: Mapping[str, object] | None = None,
    sensitive: str | Sequence[str] = (),
    require: Require = (),
    distance: str | Mapping[str, str] | None = None,
    order: Mapping[str, Sequence[object]] | None = None,
    seconds: float | None = None,
    progress: Callable[[int, int], object] | None = None,
) -> Anonymized:
    """Cut the data into boxes that hold k rows or more, and release each row's box.

    Keeps far more detail than `generalize` and leaves no row out. In return the same value reads
    differently in different classes, which many tools cannot work with. Greedy, not optimal.

    Parameters
    ----------
    frame : Polars or pandas DataFrame, or pyarrow Table
    quasi : list of str
        Numbers and dates are cut along their values; other columns, and those with missing values,
        along an order: that of their hierarchy where one is given, else the alphabet, NULL last.
    k : int
        The least size of a class.
    hierarchies : mapping of str, optional
        For the order of columns of categories.
    sensitive, require, distance, order
        As in `generalize`. No row is left out, so the release's distribution is the data's.
    seconds : float, optional
        After this long parts stay as they are, with ``complete`` false. So after an interrupt.
    progress : callable, optional
        Called with the rows settled and the number of parts, once a depth.

    Returns
    -------
    Anonymized
        Generalised columns are texts: ``[30, 34]``, ``{a, b}``, ``{a … k: 9}`` for nine values in
        order, ``*``. Rows are in a secret order. Its ``unprotected`` says
        what it does not protect.

    Raises
    ------
    ArgumentError
        For unknown columns, an empty frame, k above the number of rows, or a requirement that not
        even the whole table meets.

    Examples
    --------
    >>> people = pl.DataFrame({"age": [31, 34, 38, 52, 55, 57]})
    >>> mondrian(people, ["age"], k=3).frame["age"].unique().sort().to_list()
    ['[31, 38]', '[52, 57]']
    """
    table = read(frame)
    known, wanted = columns_apart(table, quasi, sensitive)
    k = check_k(k, table.height)
    seconds = check_seconds(seconds)
    sources = hierarchies_of(hierarchies or {}, table, known, all_of=False)
    demand, columns, chosen = demanded(
        table, k, wanted, require, chosen_distances(distance, wanted), order, sources
    )
    coded = [encode(table[name]) for name in known]
    sides = [_Side(name, one, sources.get(name)) for name, one in zip(known, coded, strict=True)]
    parts = [(c.codes, c.size) for c in coded] + [(c.codes, c.size) for c in demand.columns]
    base = label(*combine(parts, table.height))
    sensitive_codes = [c.codes[base.first] for c in demand.columns]
    _check_whole(demand, sensitive_codes, base.weight)
    rank = np.stack([side.place[c.codes[base.first]] for side, c in zip(sides, coded, strict=True)])
    found = cut(
        rank,
        [side.positions for side in sides],
        base.weight,
        sensitive_codes,
        demand,
        seconds=seconds,
        progress=progress,
    )
    class_of = found.of[base.of]
    sizes = np.bincount(found.of, base.weight, found.count).astype(np.int64)
    starts = np.searchsorted(
        found.of[(by := np.argsort(found.of, kind="stable"))], range(found.count)
    )
    new, loss = [], 0.0
    ranges: dict[str, Ranges] = {}
    for i, (name, side) in enumerate(zip(known, sides, strict=True)):
        low = np.minimum.reduceat(rank[i][by], starts)
        high = np.maximum.reduceat(rank[i][by], starts)
        span = float(side.positions[-1] - side.positions[0])
        if span > 0:
            wide = (side.positions[high] - side.positions[low]) / span
            loss += float(wide @ sizes) / table.height / len(known)
        same = bool((low == high).all())
        if same:
            new.append(as_it_is(table[name], coded[i]))
        else:
            labels = side.labels(low, high)
            ranges[name] = (side.values, labels, low, high)
            new.append(labels.gather(class_of).alias(name))
    # In the order of the data row i would be person i.
    dealt = secret_order(table.height)
    class_of = class_of[dealt]
    columns = [Column(c.name, c.codes[dealt], c.size, c.context) for c in columns]
    first = np.empty(found.count, dtype=np.int64)
    first[class_of] = np.arange(table.height)
    requirements = [r for _, r in demand.requirements]
    measures = from_classes(
        known,
        Classes(first, sizes, class_of),
        columns,
        chosen,
        blind=unprotected(known, requirements, False) if requirements else None,
    )
    return Anonymized(
        frame=as_given(table.with_columns(new)[dealt], frame),
        quasi=tuple(known),
        sensitive=tuple(wanted),
        k=k,
        required=tuple(dict.fromkeys(str(r) for r in requirements)),
        method="mondrian",
        levels=MappingProxyType({}),
        heights=MappingProxyType({}),
        suppressed=0,
        rows=dealt,
        measures=measures,
        loss=loss,
        precision=None,
        complete=found.complete,
        tried=found.count,
        nodes=0,
        meaning=partial(_covers, ranges),
    )


def _covers(ranges: Mapping[str, Ranges]) -> Covers:
    """The values under each label of the columns that are generalised."""
    found: dict[str, dict[str | None, tuple[Any, ...]]] = {}
    for name, (values, labels, low, high) in ranges.items():
        listed, under = values.to_list(), found.setdefault(name, {})
        for label_of, first, last in set(
            zip(labels.to_list(), low.tolist(), high.tolist(), strict=True)
        ):
            under[label_of] = under.get(label_of, ()) + tuple(listed[first : last + 1])
    return found


def _check_whole(demand: Demand, sensitive: Sequence[NDArray[np.int32]], weight: Ints) -> None:
    """Whether one class of everything meets what is required."""
    from dither.lab.anonymize.pairs import pair

    rows = len(weight)
    sizes = np.array([weight.sum()])
    for i, requirement in demand.requirements:
        column = demand.columns[i]
        whole = pair(np.zeros(rows, dtype=np.int64), sizes, sensitive[i], column.size, weight)
        if not requirement.met(whole, column.context).all():
            raise ArgumentError(
                f"require asks for {requirement!s} of {column.name!r}, which not even the whole "
                "table meets; ask for less"
            )
