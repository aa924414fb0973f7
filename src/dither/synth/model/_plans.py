"""Which tables to measure, and how well: MST, AIM, and each column by itself.

Each is an adaptive mechanism that sees the table through a `ZCDPBudget` alone, whose text proves
what it costs. What they give is what was measured; the model of it comes after, and costs nothing.

Sources. McKenna, Miklau and Sheldon, "Winning the NIST contest", JPC 2021 (MST); McKenna, Mullins,
Sheldon and Miklau, "AIM: an adaptive and iterative mechanism for differentially private synthetic
data", VLDB 2022.
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from fractions import Fraction
from itertools import combinations
from math import prod

import numpy as np
import numpy.typing as npt

from dither._subjects import Subject
from dither.accounting import rho_of_epsilon
from dither.synth._spending import Candidate, MeasuredTable, ZCDPBudget
from dither.synth.model._graph import GraphModel, NoisyMarginal, pooled
from dither.synth.model._junction import Clique, cells_beside

__all__ = [
    "METHODS",
    "Measurements",
    "MethodRun",
    "SynthProgress",
    "candidates_of",
    "measured_by",
    "total_of",
]

Floats = npt.NDArray[np.float64]
Integers = npt.NDArray[np.int64]

METHODS = ("auto", "aim", "mst", "independent", "workload")

CERTAIN = 3.0
"""Tables of several columns keep a value apart whose noisy count is so many deviations above 0."""
OF_COLUMNS, OF_CHOICES = Fraction(1, 4), Fraction(1, 8)
"""What MST spends on columns and on choosing pairs; the pairs themselves have the rest."""
ROUNDS = 4
"""AIM starts as if it measured so many tables for each column, where rows are many."""
FEWEST = 6
"""Where they are few it starts as if it measured so many altogether."""
CHOOSING = Fraction(1, 10)
"""The share of a round of AIM that goes into choosing."""
STEPS = 25
"""Steps of the fit within a round of AIM; it goes on from where the last one ended."""
ROUGH = 0.1
"""The gap at which such a fit stops, in halves of the measured cells."""

TOLD = 0.14
"""A choice is to tell tables whose distances to the model differ by so large a share of rows."""
WORTH = 5.0
"""Where the budget has fewer of such choices, columns by themselves tell more."""
NEAR = 0.04
"""Columns have more of the budget where noise moves them by a larger share of rows, on average.

The three were set on four tables of 3,100 to 6,300 rows: doctors, wages, households, computers."""

_MEAN = math.sqrt(2 / math.pi)
"""The mean size of normal noise, in deviations."""


@dataclass(frozen=True)
class SynthProgress:
    """How far a run is.

    Parameters
    ----------
    stage : str
        What is being done.
    round : int
        Tables measured so far.
    share : float
        Of the budget that is spent, 0 to 1.
    seconds : float
        Since the start.
    """

    stage: str
    round: int
    share: float
    seconds: float

    @property
    def remaining(self) -> float | None:
        """Seconds left, where rounds go on as they did; ``None`` at the start."""
        if self.share < 0.05:
            return None
        return self.seconds * (1 - self.share) / self.share


Tell = Callable[[SynthProgress], None]


@dataclass
class Measurements:
    """What a run released.

    Parameters
    ----------
    measured : list of MeasuredTable
        In the order of measuring.
    merged : dict of int to array
        By attribute: the cell that each value was counted in, where some were counted together.
    shares : dict of int to array
        By attribute with merged values: the part of its cell that each value is taken to have.
    method : str
        The one that was run; of "auto" the one that it chose.
    """

    measured: list[MeasuredTable] = field(default_factory=list)
    merged: dict[int, Integers] = field(default_factory=dict)
    shares: dict[int, Floats] = field(default_factory=dict)
    method: str = ""


def candidates_of(workload: Mapping[Clique, int]) -> dict[Clique, int]:
    """Every table that tells something of the workload, with its weight.

    That is how many columns it has in common with each table of the workload, added up.
    """
    found: dict[Clique, int] = {}
    for table in workload:
        for size in range(1, len(table) + 1):
            for part in combinations(table, size):
                found[part] = 0
    for part in found:
        held = set(part)
        found[part] = sum(w * len(held & set(table)) for table, w in workload.items())
    return dict(sorted(found.items(), key=lambda item: (len(item[0]), item[0])))


def total_of(measured: Iterable[MeasuredTable]) -> tuple[float, float]:
    """The rows that measurements say there are, and the deviation of that."""
    # A table's sum has the noise of all of its cells.
    weights = [1 / (m.values.size * float(m.sigma2)) for m in measured]
    sums = [float(m.values.sum()) for m in measured]
    if not weights:
        return 0.0, math.inf
    return float(np.average(sums, weights=weights)), sum(weights) ** -0.5


def measured_by(
    method: str,
    sizes: Sequence[int],
    spending: ZCDPBudget,
    *,
    workload: Mapping[Clique, int],
    max_cells: int,
    known: Sequence[NoisyMarginal] = (),
    forbidden: Mapping[Clique, npt.NDArray[np.bool_]] | None = None,
    total: float | None = None,
    tell: Tell = lambda _: None,
) -> Measurements:
    """Measure by one of the methods.

    Parameters
    ----------
    method : {"auto", "aim", "mst", "independent", "workload"}
    sizes : sequence of int
        Cells of each attribute.
    spending : ZCDPBudget
    workload : mapping of Clique to int
        The tables to be right, with their weights; MST and "independent" have no use for it.
    max_cells : int
        Of the junction tree, all cliques together.
    known : sequence of NoisyMarginal
        Public tables.
    forbidden : mapping of Clique to array of bool
        Combinations that cannot be.
    total : float, optional
        The number of rows, where it is public.
    tell : callable
        Told how far it is.
    """
    run = MethodRun(tuple(sizes), spending, known, forbidden or {}, total, tell)
    run.found.method = method
    match method:
        case "auto":
            return run.auto(workload, max_cells)
        case "independent":
            return run.independent()
        case "mst":
            return run.mst(max_cells)
        case "aim":
            return run.aim(workload, max_cells)
        case "workload":
            return run.named(workload)
    raise ValueError(method)


class MethodRun:
    """One run of a method; parameters are those of `measured_by`."""

    def __init__(
        self,
        sizes: tuple[int, ...],
        spending: ZCDPBudget,
        known: Sequence[NoisyMarginal],
        forbidden: Mapping[Clique, npt.NDArray[np.bool_]],
        total: float | None,
        tell: Tell,
    ) -> None:
        self.sizes, self.spending, self.known, self.forbidden = sizes, spending, known, forbidden
        self.public, self._tell, self._started = total, tell, time.monotonic()
        self.found = Measurements()
        self.columns = [(v,) for v in range(len(sizes))]

    @classmethod
    def audit_subjects(cls) -> Iterator[Subject]:
        """What an audit calls: a whole synthesis, on neighbours that use the whole claim."""
        sizes, delta = (2, 2, 2), Fraction(1, 100)
        rho = rho_of_epsilon(Fraction(1), delta)
        pairs = list(combinations(range(3), 2))

        def run(rows: int) -> list[int]:
            def counts(cliques: Sequence[Clique]) -> dict[Clique, Integers]:
                found = {c: np.zeros([2] * len(c), dtype=np.int64) for c in cliques}
                for c, table in found.items():
                    table[(0,) * len(c)] = rows
                return found

            spending = ZCDPBudget(counts, rho, 1, 1)
            found = measured_by("mst", sizes, spending, workload={}, max_cells=64)
            # Of each pair also whether it was chosen.
            made = {m.clique: m.values.ravel().tolist() for m in found.measured}
            ones = [n for v in range(3) for n in made[v,]]
            return ones + [n for p in pairs for n in (p in made, *made.get(p, [0] * 4)[:4])]

        yield Subject("synthesis by MST", run, 0, 1, delta=delta)

    def tell(self, stage: str) -> None:
        share = float(self.spending.spent / self.spending.rho)
        seconds = time.monotonic() - self._started
        self._tell(SynthProgress(stage, len(self.found.measured), share, seconds))

    def _columns(self, rho: Fraction) -> None:
        """Every column by itself, with the same noise; those that are public are not measured."""
        public = {v for m in self.known for v in m.clique}
        wanted = [(v,) for (v,) in self.columns if v not in public]
        self.tell("columns")
        self.spending.read(wanted)
        for clique in wanted:
            self.found.measured.append(self.spending.measure(clique, rho / len(wanted)))
        self.tell("columns")

    @property
    def total(self) -> float:
        """Rows, at least 1."""
        found = self.public if self.public is not None else total_of(self.found.measured)[0]
        return max(found, 1.0)

    def named(self, workload: Mapping[Clique, int]) -> Measurements:
        """Each table of the workload, by its weight, and nothing is chosen.

        So an analysis that rests on them knows its noise, whatever the data are. Columns that are
        in none of them are measured by themselves.
        """
        held = {v for clique in workload for v in clique}
        wanted = dict(workload) | {(v,): 1 for v in range(len(self.sizes)) if v not in held}
        whole = sum(wanted.values())
        self.tell("tables")
        self.spending.read(list(wanted))
        for clique, weight in wanted.items():
            rho = self.spending.rho * Fraction(weight, whole)
            self.found.measured.append(self.spending.measure(clique, rho))
        self.tell("tables")
        return self.found

    def independent(self) -> Measurements:
        """Each column by itself."""
        self._columns(self.spending.rho)
        return self.found

    def auto(self, workload: Mapping[Clique, int], max_cells: int) -> Measurements:
        """AIM, where there are rows enough for pairs to say more than noise; else the columns.

        Either begins with the columns, and these tell how many rows there are. The choice follows
        from what was released, so it costs nothing.
        """
        self._columns(self._first(self.spending.rho))
        offers = candidates_of(workload)
        if len(self.sizes) > 1 and self._choices(offers) >= WORTH:
            self.found.method = "aim"
            return self._rounds(offers, max_cells)
        self.found.method = "independent"
        self._columns(self.spending.left)
        return self.found

    def _choices(self, offers: Mapping[Clique, int]) -> float:
        """How many choices the budget has that mean something.

        A table whose distance is larger by ``TOLD`` of the rows must be more likely by as large a
        factor as there are offers: else some other of them is chosen for no reason.
        """
        sure = TOLD * self.total / (self.spending.l1 * math.log(max(len(offers), 2)))
        return 2 * float(CHOOSING * self.spending.rho) * sure * sure

    # --- MST --------------------------------------------------------------------------------------

    def mst(self, max_cells: int) -> Measurements:
        """Each column; then a tree of pairs that tells most, chosen pair by pair; then the pairs.

        A quarter of the budget goes into columns, an eighth into choosing, the rest into pairs.
        Values that are rare beside the noise are counted together in
        all that follows the first step.
        """
        self._columns(self.spending.rho * OF_COLUMNS)
        self._merge()
        sizes = self._merged_sizes()
        total = self.total
        singles = {v: _shares(x, total) for v, x in self._merged_singles(sizes).items()}
        pairs = list(combinations(range(len(sizes)), 2))
        pairs = [(a, b) for a, b in pairs if sizes[a] * sizes[b] <= max_cells]
        chosen: list[Clique] = []
        if len(sizes) > 1 and pairs:
            self.spending.read(pairs)
            each = self.spending.rho * OF_CHOICES / (len(sizes) - 1)
            offers = {
                (a, b): Candidate((a, b), total * np.outer(singles[a], singles[b]))
                for a, b in pairs
            }
            joined, room = list(range(len(sizes))), max_cells
            while True:
                # A tree of pairs has the cells of its pairs.
                left = [p for p in pairs if joined[p[0]] != joined[p[1]]]
                left = [p for p in left if sizes[p[0]] * sizes[p[1]] <= room]
                if not left:
                    break
                new = left[self.spending.choose([offers[p] for p in left], each)]
                chosen.append(new)
                room -= sizes[new[0]] * sizes[new[1]]
                old, kept = joined[new[1]], joined[new[0]]
                joined = [kept if j == old else j for j in joined]
                self.tell("choosing pairs")
        # What choosing left, because squares are rounded down, goes into the pairs.
        for i, pair in enumerate(chosen):
            rho = self.spending.left / (len(chosen) - i)
            self.found.measured.append(self.spending.measure(pair, rho))
            self.tell("measuring pairs")
        return self.found

    def _singles(self) -> dict[int, tuple[Floats, float]]:
        """Of each measured column its noisy counts, all as one, and their deviation."""
        found: dict[int, tuple[Floats, float]] = {}
        for m in pooled(m.marginal for m in self.found.measured if len(m.clique) == 1):
            found[m.clique[0]] = m.values, float(m.deviation)
        return found

    def _merge(self) -> None:
        """Which values of each column are counted together from now on."""
        for v, (values, deviation) in self._singles().items():
            if any(v in clique for clique in self.forbidden):
                # A rule of values needs them apart.
                continue
            rare = values < CERTAIN * deviation
            if rare.sum() < 2:
                continue
            kept = int((~rare).sum())
            places = np.full(len(rare), kept, dtype=np.int64)
            places[~rare] = np.arange(kept)
            self.found.merged[v] = places
            self.found.shares[v] = _within(values, places, rare)
        for public in self.known:
            for v in public.clique:
                self.found.merged.pop(v, None)
                self.found.shares.pop(v, None)
        self.spending.merge(self.found.merged)

    def _merged_sizes(self) -> tuple[int, ...]:
        merged = self.found.merged
        return tuple(
            int(merged[v].max()) + 1 if v in merged else n for v, n in enumerate(self.sizes)
        )

    def _merged_singles(self, sizes: tuple[int, ...]) -> dict[int, Floats]:
        """Of each column its counts, noisy or public, those of merged values added up."""
        found: dict[int, Floats] = {}
        for v, (values, _) in self._singles().items():
            found[v] = values
            if v in self.found.merged:
                found[v] = np.zeros(sizes[v])
                np.add.at(found[v], self.found.merged[v], values)
        for public in self.known:
            for v in public.clique:
                others = tuple(i for i, u in enumerate(public.clique) if u != v)
                found.setdefault(v, public.values.sum(axis=others))
        return found

    # --- AIM --------------------------------------------------------------------------------------

    def aim(self, workload: Mapping[Clique, int], max_cells: int) -> Measurements:
        """Round by round the table of which the model so far knows least, beside its noise.

        Rounds are many and cheap at first where rows are many. Else they are as few as there are
        choices that mean something, and columns have up to half of the budget. Where a round
        changed the model by no more than its noise would, the next ones cost four times as much.
        The model may grow with what was spent. Values that are rare beside the noise of the columns
        are counted together in all that follows, as in MST: a table of many cells that hold next to
        nothing is mostly noise, and would not be chosen. They come apart as the noisy column says.
        """
        self._columns(self._first(self.spending.rho))
        return self._rounds(candidates_of(workload), max_cells)

    def _first(self, rho: Fraction) -> Fraction:
        """What AIM spends on the columns at first: a round for each, of the most rounds."""
        return min(rho * (1 - CHOOSING) / ROUNDS, rho / 2)

    def _near(self) -> Fraction:
        """What has the columns so near that noise moves one by ``NEAR`` of the rows, on average."""
        sigma = NEAR * 2 * self.total * len(self.sizes) / (_MEAN * sum(self.sizes))
        rho = len(self.sizes) * self.spending.l2_squared / (2 * sigma * sigma)
        # A rational near it will do: it follows from what was released.
        return Fraction(math.ceil(rho * 2**40), 2**40)

    def _rounds(self, offers: Mapping[Clique, int], max_cells: int) -> Measurements:
        """What follows the columns, whose rare values are counted together from now on."""
        rho, columns = self.spending.rho, len(self.sizes)
        most = Fraction(ROUNDS * columns)
        rounds = min(most, Fraction(max(FEWEST, round(self._choices(offers)))))
        cost = rho * (1 - CHOOSING) / rounds
        choosing = rho * CHOOSING / rounds
        # Fewer rounds are dearer ones, and columns have theirs.
        again = min(max(columns * cost, self._near()), rho / 2) - self.spending.spent
        if again > 0:
            self._columns(again)
        self._merge()
        model = self._model([*self.columns, *(m.clique for m in self.known)])
        guesses: dict[Clique, Floats] = {}
        stale: set[int] = set(range(len(self.sizes)))
        while True:
            left = self.spending.left
            # What would not do for one more round is spent in this one.
            last = left < 2 * (cost + choosing)
            if last:
                cost, choosing = left * (1 - CHOOSING), left * CHOOSING
            sigma = math.sqrt(self.spending.l2_squared / (2 * float(cost)))
            fit = self._fitting(offers, model, max_cells * float((rho - left) / rho), sigma)
            if not fit:
                break
            for clique in fit:
                if clique not in guesses or stale & set(clique):
                    guesses[clique] = model.marginal(clique)
            new = fit[
                self.spending.choose(
                    [
                        Candidate(c, guesses[c], offers[c], _MEAN * sigma * guesses[c].size)
                        for c in fit
                    ],
                    choosing,
                )
            ]
            before = model.marginal(new)
            amount = self.spending.left if last else cost
            self.found.measured.append(self.spending.measure(new, amount))
            model = model if _held(new, model) else model.widened(new)
            model.fit(self._marginals(), most=STEPS, tolerance=ROUGH)
            stale = set(new)
            guesses.pop(new, None)
            self.tell("rounds")
            if last:
                break
            if float(np.abs(model.marginal(new) - before).sum()) <= _MEAN * sigma * before.size:
                # The table was as the model had it, but for noise: from now on with half the
                # deviation.
                cost, choosing = 4 * cost, 4 * choosing
        return self.found

    def _marginals(self) -> list[NoisyMarginal]:
        sizes = self._merged_sizes()
        return [*(as_merged(m, self.found, sizes) for m in self.found.measured), *self.known]

    def _model(self, cliques: Iterable[Clique]) -> GraphModel:
        model = GraphModel(self._merged_sizes(), cliques, self.total, self.forbidden)
        return model.fit(self._marginals(), most=5 * STEPS, tolerance=ROUGH)

    def _fitting(
        self, offers: Mapping[Clique, int], model: GraphModel, max_cells: float, sigma: float
    ) -> list[Clique]:
        """The tables that the model has room for, and whose noise is not larger than any table."""
        # Two tables of as many rows lie twice their number apart at most; the noise of more cells
        # adds up to more.
        most = 2 * self.total / (_MEAN * sigma)
        sizes = model.tree.sizes
        small = [c for c in offers if prod(sizes[v] for v in c) <= most]
        small = small or [c for c in offers if len(c) == 1]
        cells = cells_beside(sizes, model.cliques)
        return [c for c in small if _held(c, model) or cells(c) <= max_cells]


def _held(clique: Clique, model: GraphModel) -> bool:
    """Whether a clique that was measured has these attributes."""
    return any(set(clique) <= set(c) for c in model.cliques)


def as_merged(m: MeasuredTable, found: Measurements, cells: tuple[int, ...]) -> NoisyMarginal:
    """A measurement over merged cells; of a single column cell by cell, since noise adds up."""
    if (
        len(m.clique) > 1
        or m.clique[0] not in found.merged
        or m.values.shape == (cells[m.clique[0]],)
    ):
        return m.marginal
    (v,) = m.clique
    places = found.merged[v]
    values, noise = np.zeros(cells[v]), np.zeros(cells[v])
    np.add.at(values, places, m.values.astype(np.float64))
    np.add.at(noise, places, float(m.sigma2))
    return NoisyMarginal(m.clique, values, np.sqrt(noise))


def _shares(values: Floats, total: float) -> Floats:
    """A noisy column as chances: the nearest that are of at least 0 and add up."""
    return projected(values, total) / total


def projected(values: Floats, total: float) -> Floats:
    """The nearest numbers of at least 0 that add up to a total above 0.

    Examples
    --------
    >>> projected(np.array([5.0, 1.0, -3.0]), 4.0).tolist()
    [4.0, 0.0, 0.0]
    """
    down = np.sort(values)[::-1]
    over = (np.cumsum(down) - total) / np.arange(1, len(down) + 1)
    # The largest number always is: it is compared with itself less the total, which is above 0.
    last = int(np.flatnonzero(down > over)[-1])
    found: Floats = np.maximum(values - over[last], 0.0)
    return found


def _within(values: Floats, places: Integers, rare: npt.NDArray[np.bool_]) -> Floats:
    """The part of its cell that each value is taken to have: of rare ones by their noisy counts."""
    found = np.ones(len(values))
    total = float(np.maximum(values[rare].sum(), 0.0))
    n = int(rare.sum())
    # Half by what was measured, half evenly: noise alone must not shut a value out.
    told = projected(values[rare], total) / total if total > 0 else np.full(n, 1 / n)
    found[rare] = (told + 1 / n) / 2
    return found
