"""Table reconstruction: all databases that agree with published statistics.

A few exact statistics of a small group fix it: each is an equation in the same unknowns. What is
withheld ("(D)") still says that a count is small. The result is every database up to the order of
people, which is all that statistics without names can show.

Source. Garfinkel, Abowd and Martindale, "Understanding database reconstruction attacks on public
data", ACM Queue 2018.
"""

from __future__ import annotations

import itertools
import time
from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from dither._checks import number, whole
from dither._format import Printable, count_text
from dither.errors import ArgumentError
from dither.lab._simulation import library
from dither.lab._verdicts import paragraph
from dither.lab.attack.reconstruction._documents import read_statistics
from dither.lab.attack.reconstruction._solver import Progress, search
from dither.lab.attack.reconstruction._statistics import Condition, Person, Statistics, meets

if TYPE_CHECKING:
    from matplotlib.figure import Figure

__all__ = ["Reconstruction", "conflict", "reconstruct_table", "without_each"]

Table = tuple[Person, ...]


@dataclass(frozen=True, slots=True)
class Reconstruction(Printable):
    """The result of `reconstruct_table`.

    Attributes
    ----------
    statistics : Statistics
    solutions : tuple of tables
        Each a sorted tuple of people, each person a tuple of numbers; `people` shows them.
    complete : bool
        Whether there are no other solutions.
    stopped : str
        Why the search ended early: "limit", "time", "stopped", or "".
    conflict : tuple of str
        Where there is no solution: rows and rules that contradict each other, none of which can be
        spared. Empty otherwise.
    seconds : float
    """

    statistics: Statistics
    solutions: tuple[Table, ...]
    complete: bool
    stopped: str
    conflict: tuple[str, ...]
    seconds: float

    @property
    def count(self) -> int:
        """How many solutions were found."""
        return len(self.solutions)

    @property
    def certain(self) -> tuple[Person, ...]:
        """People who are, with all attributes, in every solution; empty where some are missing."""
        if not self.complete or not self.solutions:
            return ()
        shared = Counter(self.solutions[0])
        for table in self.solutions[1:]:
            shared &= Counter(table)
        return tuple(sorted(shared.elements()))

    def people(self, solution: int = 0) -> list[dict[str, str]]:
        """A solution as records for people.

        Parameters
        ----------
        solution : int
            Its number, from 0.

        Returns
        -------
        list of dict
            A value of each attribute.

        Raises
        ------
        ArgumentError
            There is no such solution.
        """
        number = whole("solution", solution, 0)
        if number >= self.count:
            raise ArgumentError(f"solution must be below {self.count}, the number that was found")
        return [dict(self.statistics.show(p)) for p in self.solutions[number]]

    def settled_by(self) -> dict[str, int]:
        """What else could be published to tell the solutions apart.

        Returns
        -------
        dict
            The counts of suppressed rows and of all groups by one or two attributes' values
            (numbers are left whole), by name; with each the most solutions that agree about it.
            Only those that rule some out, best first. 1 means that it removes all doubt.
        """
        tested: dict[str, tuple[Condition, ...]] = {
            f"{r.name} ({r.about})" if r.about else r.name: r.where
            for r in self.statistics.rows
            if r.suppressed
        }
        tested |= dict(_groups(self.statistics))
        left = {}
        for name, where in tested.items():
            answers = Counter(sum(meets(p, where) for p in t) for t in self.solutions)
            if len(answers) > 1:
                left[name] = max(answers.values())
        return dict(sorted(left.items(), key=lambda item: item[1]))

    def summary(self) -> str:
        """The result in a paragraph for people."""
        s = self.statistics
        lines = [
            f"{s.title}: {count_text(s.people, 'person', 'people')}, "
            f"{count_text(len(s.rows), 'row')}"
            + (f" and {count_text(len(s.rules), 'rule')}" if s.rules else "")
            + f"; {_large(s.space)} databases before any statistic."
        ]
        if self.count == 0 and self.complete:
            lines.append("No database agrees with all of it.")
            if self.conflict:
                lines.append(
                    f"These contradict each other, and any one less would not: "
                    f"{', '.join(self.conflict)}."
                )
        elif self.complete:
            plural = "s agree" if self.count > 1 else " agrees"
            lines.append(f"{self.count:,} database{plural} with all of it.")
            if self.count > 1:
                lines.append(
                    f"{len(self.certain)} of {s.people} people are the same in every one of them."
                )
        else:
            why = {"limit": "the limit was reached", "time": "time ran out"}
            lines.append(
                f"At least {self.count:,} databases agree with all of it; the search was not "
                f"finished, as {why.get(self.stopped, 'it was stopped')}. To finish it, publish "
                "more rows, narrow the bounds of attributes, or raise limit and seconds."
            )
        lines.append(f"{self.seconds:.2f} s.")
        return paragraph(lines)

    def plot(self, path: str | Path | None = None) -> Figure:
        """Draw the people of every solution that fits.

        Saved to ``path`` (.png, .svg or .pdf) where one is given.
        """
        from dither.plots.lab._attack import draw_reconstruction

        return draw_reconstruction(self, path)


def reconstruct_table(
    statistics: str | Path | Mapping[str, Any] | Statistics,
    *,
    limit: int = 10_000,
    seconds: float = 60.0,
    explain: bool = True,
    progress: Progress | None = None,
) -> Reconstruction:
    """Find all databases that agree with published statistics.

    Parameters
    ----------
    statistics : str, Path, mapping or Statistics
        A TOML document, as `read_statistics` reads it, or what was read of one.
    limit : int
        Stop at so many databases.
    seconds : float
        Stop after so long; what was found is kept, as it is with Ctrl-C.
    explain : bool
        Whether to look for the rows that contradict each other where no database agrees.
    progress : callable, optional
        Called twice a second with (databases found, seconds); False stops the search.

    Returns
    -------
    Reconstruction
        "No database agrees" is a result, too.

    Raises
    ------
    ArgumentError
        The statistics cannot be read, or the search is too large: its size and what to relax.
    MissingLibraryError
        OR-tools is not installed.

    Examples
    --------
    >>> from dither import attack
    >>> attack.reconstruct_table(attack.census()).count
    2
    >>> attack.reconstruct_table(attack.census(note=True)).count
    1
    """
    read = read_statistics(statistics)
    most = whole("limit", limit, 1)
    seconds = number("seconds", seconds, above=0)
    library("ortools.sat.python.cp_model", "table reconstruction")
    start = time.perf_counter()
    found = search(read, most, seconds, progress)
    culprits: tuple[str, ...] = ()
    if explain and found.complete and not found.found:
        culprits = conflict(read, seconds=seconds)
    return Reconstruction(
        read,
        found.found,
        found.complete,
        found.stopped,
        culprits,
        time.perf_counter() - start,
    )


def conflict(statistics: Statistics, *, seconds: float = 60.0) -> tuple[str, ...]:
    """Rows and rules that contradict each other: a smallest set of which none can be spared.

    Empty where the statistics do not contradict each other. There is a search for each row, of so
    many seconds; a row whose search does not end is kept.

    Examples
    --------
    >>> from dither import attack
    >>> table = attack.read_statistics({
    ...     "people": 2,
    ...     "attributes": {"age": [0, 9]},
    ...     "statistics": [
    ...         {"name": "mean", "count": 2, "mean": {"age": 3}},
    ...         {"name": "old", "where": {"age": {"above": 6}}, "count": 1},
    ...         {"name": "median", "count": 2, "median": {"age": 3}},
    ...     ],
    ... })
    >>> conflict(table)
    ('mean', 'old')
    """
    if not _contradictory(statistics, seconds):
        return ()
    kept = statistics
    # From the last: what a newcomer adds is likelier to be wrong, and is named if it can be.
    for name in reversed(statistics.names):
        fewer = kept.without(name)
        if _contradictory(fewer, seconds):
            kept = fewer
    return kept.names


def _contradictory(statistics: Statistics, seconds: float) -> bool:
    found = search(statistics, 1, seconds)
    return found.complete and not found.found


def without_each(
    statistics: Statistics, *, limit: int = 1000, seconds: float = 10.0
) -> dict[str, Reconstruction]:
    """What every row and rule is worth: the databases that agree with all of the others.

    Parameters
    ----------
    statistics : Statistics
    limit, seconds : int, float
        Of each search.

    Examples
    --------
    >>> from dither import attack
    >>> left = without_each(attack.census(note=True).without("3A", "5A", "5B", "5C"), limit=50)
    >>> left["note"].count, left["1A"].count
    (2, 1)
    """
    return {
        name: reconstruct_table(
            statistics.without(name), limit=limit, seconds=seconds, explain=False
        )
        for name in statistics.names
    }


def _groups(statistics: Statistics) -> Iterable[tuple[str, tuple[Condition, ...]]]:
    listed = [(i, a) for i, a in enumerate(statistics.attributes) if a.labels]
    single = [
        (f"{a.name} = {label}", Condition(i, frozenset({k})))
        for i, a in listed
        for k, label in enumerate(a.labels)
    ]
    for name, condition in single:
        yield name, (condition,)
    for (one, first), (two, second) in itertools.combinations(single, 2):
        if first.attribute != second.attribute:
            yield f"{one}, {two}", (first, second)


def _large(number: int) -> str:
    return f"{number:,}" if number < 10**9 else f"{number:.2g}".replace("e+", "e")
