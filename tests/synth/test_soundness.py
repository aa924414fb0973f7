"""What a synthesis may lose, on tables small enough to count everything: the whole run against its
claim, step by step and path by path; and mistakes that are planted in it.
"""

from __future__ import annotations

import math
from collections import Counter
from fractions import Fraction as F
from itertools import product

import numpy as np
import pytest

from dither.accounting import delta_of_rho
from dither.errors import ArgumentError
from dither.synth import _spending
from dither.synth._spending import LATTICE, Candidate, MeasuredTable, ZCDPBudget, root_below
from dither.synth.model import _plans
from dither.synth.model._plans import measured_by

SIZES = (2, 3, 2)
ROWS = np.array([[0, 0, 0], [0, 1, 1], [1, 2, 0], [1, 2, 1], [0, 0, 0], [1, 1, 1], [0, 2, 1]])
NEW = np.array([[1, 0, 1]])


def oracle(rows, sizes=SIZES):
    """Exact tables of some rows."""

    def counts(cliques):
        found = {}
        for clique in cliques:
            table = np.zeros([sizes[v] for v in clique], dtype=np.int64)
            np.add.at(table, tuple(rows[:, v] for v in clique), 1)
            found[clique] = table
        return found

    return counts


def choices(spending, candidates, rho):
    """The law of a choice, from the text of `Exponential` and not from its code."""
    epsilon = math.sqrt(8 * float(rho))
    scores = [spending._score(c) for c in candidates]
    rate = epsilon / (2 * max(c.weight for c in candidates) * LATTICE * spending.l1)
    weights = np.exp(rate * (np.array(scores, dtype=float) - max(scores)))
    return weights / weights.sum()


def renyi(p, q, order):
    """Of two laws on a few outcomes."""
    return math.log(float((p**order * q ** (1 - order)).sum())) / (order - 1)


class Pair(ZCDPBudget):
    """A run on one table, beside which each step is held against the same step on a neighbour."""

    def __init__(self, rows, other, rho, sizes=SIZES):
        super().__init__(oracle(rows, sizes), rho, 1, 1)
        self.other = ZCDPBudget(oracle(other, sizes), rho, 1, 1)
        self.steps = []

    def merge(self, maps):
        super().merge(maps)
        self.other.merge(maps)

    def measure(self, clique, rho):
        before = self.spent
        found = super().measure(clique, rho)
        self.other.read([clique])
        moved = self._held[clique] - self.other._held[clique]
        lost = float((moved * moved).sum()) / (2 * float(found.sigma2))
        self.steps.append(("measure", lost, self.spent - before))
        return found

    def choose(self, candidates, rho):
        before = self.spent
        picked = super().choose(candidates, rho)
        self.other.read([c.clique for c in candidates])
        ours, theirs = (choices(s, candidates, rho) for s in (self, self.other))
        for order in (1.01, 2.0, 8.0, 64.0):
            for p, q in ((ours, theirs), (theirs, ours)):
                self.steps.append(("choose", renyi(p, q, order) / order, self.spent - before))
        return picked


@pytest.mark.parametrize("method", ["auto", "aim", "mst", "independent"])
@pytest.mark.parametrize("rho", [F(1, 50), F(2)])
def test_no_step_loses_more_than_it_is_charged(method, rho):
    """On every path: each step's divergence between neighbours is at most what it counts, and all
    together are counted at most the budget; both ways, and wherever the run goes.
    """
    kinds = Counter()
    for rows, other in ((ROWS, np.concatenate([ROWS, NEW])), (ROWS, ROWS[1:]), (ROWS[:0], NEW)):
        for _ in range(3):
            pair = Pair(rows, other, rho)
            workload = {(0, 1, 2): 1, (1,): 3}
            measured_by(method, SIZES, pair, workload=workload, max_cells=1000)
            for kind, lost, charged in pair.steps:
                kinds[kind] += 1
                assert lost <= float(charged) * (1 + 1e-9) + 1e-12
            assert pair.spent <= rho
            assert pair.spent >= rho * F(99, 100)
    assert kinds["measure"]
    if method != "auto":
        assert bool(kinds["choose"]) == (method != "independent")


REACH = 3


class Scripted(ZCDPBudget):
    """A run whose every outcome is given, and the probability of it."""

    def __init__(self, rows, rho, sizes, script):
        super().__init__(oracle(rows, sizes), rho, 1, 1)
        self.script, self.wanted, self.chance = list(script), None, 1.0

    def measure(self, clique, rho):
        self._spend(rho)
        self.read([clique])
        table, sigma2 = self._held[clique], F(self.l2_squared) / (2 * rho)
        if not self.script:
            self.wanted = ("values", table.shape)
            raise StopIteration
        values = np.array(self.script.pop(0)).reshape(table.shape)
        grid = np.arange(-60, 61)
        law = np.exp(-(grid.astype(float) ** 2) / (2 * float(sigma2)))
        off = values - table
        self.chance *= float(np.prod((law / law.sum())[off + 60]))
        return MeasuredTable(clique, values, sigma2)

    def choose(self, candidates, rho):
        epsilon = root_below(8 * rho)
        self._spend(epsilon * epsilon / 8)
        self.read([c.clique for c in candidates])
        if not self.script:
            self.wanted = ("choice", len(candidates))
            raise StopIteration
        picked = self.script.pop(0)
        self.chance *= float(choices(self, candidates, rho)[picked])
        return picked


def paths(rows, other, rho, sizes, workload, most=2):
    """Every outcome of a run up to so many measurements, with its probability on both tables."""
    found, left = [], [()]
    while left:
        script = left.pop()
        runs = [Scripted(table, rho, sizes, script) for table in (rows, other)]
        for run in runs:
            try:
                measured_by("aim", sizes, run, workload=workload, max_cells=1000)
                run.wanted = None
            except StopIteration:
                pass
        ours, theirs = runs
        assert ours.wanted == theirs.wanted, "what is asked for depends on the data"
        done = sum(isinstance(step, tuple) for step in script)
        if ours.wanted is None or (ours.wanted[0] == "values" and done == most):
            found.append((ours.chance, theirs.chance))
        elif ours.wanted[0] == "choice":
            left += [(*script, i) for i in range(ours.wanted[1])]
        else:
            cells = math.prod(ours.wanted[1])
            left += [(*script, v) for v in product(range(-REACH, REACH + 1), repeat=cells)]
    return np.array(found)


@pytest.mark.heavy("test_no_step_loses_more_than_it_is_charged")
def test_the_law_of_a_whole_run_is_within_its_claim(monkeypatch):
    """Every outcome of an adaptive run counted: two columns, the choice of a table among three."""
    monkeypatch.setattr(_plans, "STEPS", 3)
    monkeypatch.setattr(_plans, "ROUNDS", 1)
    rho, sizes = F(9), (1, 2)
    rows, other = np.array([[0, 0]]), np.array([[0, 0], [0, 1]])
    law = paths(rows, other, rho, sizes, {(0, 1): 1})
    assert len(law) > 500
    for p, q in (law.T, law.T[::-1]):
        assert 0.98 < p.sum() <= 1 + 1e-9
        for epsilon in (2.0, 8.0, 14.0, 20.0):
            reached = float(np.maximum(p - math.exp(epsilon) * q, 0).sum())
            assert reached <= float(delta_of_rho(rho, F(epsilon)))
        # Of a divergence that is no more than rho, not much less either: the test could see it.
        kept = (p > 0) & (q > 0)
        assert float((p[kept] * np.log(p[kept] / q[kept])).sum()) <= float(rho)


# --- mistakes that are planted ------------------------------------------------------------------


def gap_of_choices(times=4000):
    """How far the frequencies of `ZCDPBudget.choose` are from their law, in deviations."""
    spending = ZCDPBudget(oracle(ROWS), F(10**6), 1, 1)
    expected = np.full((2,), 3.0)
    offers = [
        Candidate((0,), expected, 2),
        Candidate((1,), np.full((3,), 2.0), 3),
        Candidate((2,), expected, 1, 0.5),
    ]
    rho = F(9)
    spending.read([c.clique for c in offers])
    law = choices(spending, offers, rho)
    seen = Counter(spending.choose(offers, rho) for _ in range(times))
    found = np.array([seen[i] for i in range(3)])
    assert law.min() > 0.02
    return float((((found - times * law) ** 2) / (times * law)).sum())


def test_choices_have_their_law():
    """Chi-square of two degrees of freedom; above 27.6 once in a million runs."""
    assert gap_of_choices() < 27.6


def _halved(rate):
    return classmethod(
        lambda cls, epsilon, *, sensitivity, monotone=False: cls(rate * epsilon / (2 * sensitivity))
    )


@pytest.mark.parametrize(
    "mutant",
    [
        ("for_loss", _halved(2)),
        ("draw", lambda self, scores: int(np.argmax(scores))),
    ],
    ids=["sensitivity halved", "no noise"],
)
def test_mistakes_in_the_choice_are_seen(monkeypatch, mutant):
    """Half the sensitivity, or no noise at all."""
    monkeypatch.setattr(_spending.Exponential, *mutant)
    assert gap_of_choices() > 27.6


@pytest.mark.parametrize(("rows", "chosen"), [(30, "independent"), (30_000, "aim")])
def test_auto_goes_by_how_many_rows_there_are(rows, chosen):
    """Few rows: the columns have all of the budget, and nothing else is measured. Many: pairs."""
    spending = ZCDPBudget(oracle(np.repeat(ROWS, rows // len(ROWS) + 1, axis=0)), F(1, 60), 1, 1)
    found = measured_by("auto", SIZES, spending, workload={(0, 1, 2): 1}, max_cells=1000)
    assert found.method == chosen
    assert any(len(m.clique) > 1 for m in found.measured) == (chosen == "aim")
    assert spending.spent >= F(99, 100) * spending.rho


def noises(method="aim"):
    """The noise of every measurement of a run."""
    spending = ZCDPBudget(oracle(ROWS), F(1, 10), 1, 1)
    found = measured_by(method, SIZES, spending, workload={(0, 1, 2): 1}, max_cells=1000)
    exact = oracle(ROWS)
    return [m.values - exact([m.clique])[m.clique] for m in found.measured]


def repeated(found):
    """Whether some noise begins as another does."""
    starts = [tuple(n.ravel()[:2].tolist()) for n in found]
    return len(set(starts)) < len(starts) - 1


def test_noise_is_drawn_anew(monkeypatch):
    """No two measurements begin with the same noise; where it is used again, that is seen."""
    assert not all(repeated(noises()) for _ in range(3))
    once = _spending.DiscreteGaussian.draw
    kept = {}

    def again(self, shape):
        size = math.prod(shape)
        if "noise" not in kept:
            kept["noise"] = once(self, 100)
        return np.resize(kept["noise"], size).reshape(shape)

    monkeypatch.setattr(_spending.DiscreteGaussian, "draw", again)
    assert repeated(noises())


def test_more_than_the_budget_is_refused():
    """Whatever a method asks for, the sum stays within the budget."""
    spending = ZCDPBudget(oracle(ROWS), F(1), 1, 1)
    spending.measure((0,), F(1, 2))
    with pytest.raises(ArgumentError, match="more than is left"):
        spending.measure((0,), F(2, 3))
    with pytest.raises(ArgumentError, match="more than is left"):
        spending.choose([Candidate((0,), np.zeros(2))], F(2, 3))
    assert spending.spent == F(1, 2)
    spending.measure((1,), F(1, 2))
    assert spending.left == 0


def test_merged_cells_are_sums():
    """What was merged is summed before noise, so that it costs no more."""
    spending = ZCDPBudget(oracle(ROWS), F(10**12), 1, 1)
    spending.merge({1: np.array([0, 1, 1])})
    exact = oracle(ROWS)([(0, 1)])[0, 1]
    values = spending.measure((0, 1), F(10**11)).values
    assert values.tolist() == np.stack([exact[:, 0], exact[:, 1:].sum(axis=1)], axis=1).tolist()
