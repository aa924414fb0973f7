"""All that a synthesis lets out passes its noisy steps: where these say the same, neighbours'
models are the same. Mistakes that let anything else through are planted, and seen.
"""

from __future__ import annotations

import json
from dataclasses import replace
from fractions import Fraction as F

import numpy as np
import polars as pl
import pytest

import dither as dt
from dither.lab.audit import Outcome, audit
from dither.mechanisms import DiscreteGaussian, DiscreteLaplace
from dither.query.tables._counts import TablesQuestion
from dither.synth import _spending
from dither.synth._audited import AuditedLinks, AuditedMarginals
from dither.synth._spending import MeasuredTable, ZCDPBudget
from dither.synth.hierarchy._hierarchy import HierarchyPlan
from dither.synth.model._plans import MethodRun
from dither.synth.ranges._plan import RangePlan
from dither.synth.tables import _synthesis as _asked

COLUMNS = {
    "sex": {"values": ["f", "m"], "nullable": False},
    "age": {"bins": [0, 20, 40, 60], "nullable": False},
    "ill": {"nullable": False},
}
PEOPLE = pl.DataFrame(
    {"sex": ["f", "m", "f", "m", "m"], "age": [3, 25, 33, 8, 21], "ill": [True, False] * 2 + [True]}
)
ONE_MORE = PEOPLE.vstack(pl.DataFrame({"sex": ["f"], "age": [59], "ill": [False]}))
METHODS = ("auto", "aim", "mst", "independent")


def scripted(monkeypatch, asked):
    """Steps whose answers do not depend on the data; what they were asked is noted."""

    def measure(self, clique, rho):
        self._spend(rho)
        self.read([clique])
        shape = self._held[clique].shape
        sigma2 = F(self.l2_squared) / (2 * rho)
        asked.append(("measure", clique, shape, rho))
        values = np.random.default_rng(len(asked)).integers(0, 9, shape)
        return MeasuredTable(clique, values, sigma2)

    def choose(self, candidates, rho):
        self._spend(_spending.root_below(8 * rho) ** 2 / 8)
        offers = [(c.clique, c.weight, c.offset, c.expected.tolist()) for c in candidates]
        asked.append(("choose", offers, rho))
        return len(asked) % len(candidates)

    monkeypatch.setattr(ZCDPBudget, "measure", measure)
    monkeypatch.setattr(ZCDPBudget, "choose", choose)


def runs(folder, monkeypatch, method, inside="uniform", frames=(PEOPLE, ONE_MORE)):
    """By table: what the steps were asked, and all that was released but the ledger's own."""
    found = []
    for i, frame in enumerate(frames):
        asked = []
        scripted(monkeypatch, asked)
        policy = {
            "budget": {"epsilon": 9, "delta": "1e-5", "ledger": str(folder / f"{method}{i}.db")},
            "tables": {"people": {"columns": COLUMNS}},
        }
        with dt.open(policy, sources={"people": frame}) as session:
            question = session.table("people").synthesis(1, "1e-6", method=method, inside=inside)
            said = str(question.explain()) + question.preview()
            content = dict(question.release()._content)
        content.pop("certificate")
        found.append((asked, json.dumps(content), said))
    return found


@pytest.mark.parametrize("inside", ["uniform", "tree"])
@pytest.mark.parametrize("method", METHODS)
def test_nothing_but_noisy_steps_tells_neighbours_apart(tmp_path, monkeypatch, method, inside):
    """Questions, order, budgets, expectations, model and explanation are the same."""
    ours, theirs = runs(tmp_path, monkeypatch, method, inside)
    assert ours == theirs
    assert len(ours[0]) > 2


def _counted_rows(monkeypatch):
    """The number of rows as it is, for expectations."""
    exact = property(lambda self: max(float(self.spending._counts([(0,)])[(0,)].sum()), 1.0))
    monkeypatch.setattr(MethodRun, "total", exact)


def _released_rows(monkeypatch):
    """The number of rows as it is, in the model."""
    monkeypatch.setattr(TablesQuestion, "public_size", property(lambda self: True))


def _seen_values(monkeypatch):
    """Bins that are empty in the data are left out."""
    real, frames = _asked.domain_of, iter((PEOPLE, ONE_MORE))

    def seen(rows, *given):
        found, frame = real(rows, *given), next(frames)
        cut = tuple(
            a
            if a.edges is None
            else replace(a, edges=tuple(e for e in a.edges if e <= frame[a.name].max() + 20))
            for a in found.attributes
        )
        return replace(found, attributes=cut)

    monkeypatch.setattr(_asked, "domain_of", seen)


@pytest.mark.parametrize("mutant", [_counted_rows, _released_rows, _seen_values])
def test_what_is_taken_from_the_data_is_seen(tmp_path, monkeypatch, mutant):
    """The number of rows, or the values that occur."""
    mutant(monkeypatch)
    if mutant is _seen_values:
        # The engine still counts by what is declared; only the model's cells follow the data.
        monkeypatch.setattr(
            TablesQuestion,
            "_count",
            lambda self, cliques, secret: {
                c: np.ones(self.domain.shape(c), dtype=np.int64) for c in cliques
            },
        )
    ours, theirs = runs(tmp_path, monkeypatch, "mst")
    assert ours != theirs


# --- from outside -------------------------------------------------------------------------------


def audited(samples=1500):
    """A whole synthesis by MST as a black box of tiny tables, held to its claim."""
    (subject,) = MethodRun.audit_subjects()
    claim = subject.epsilon, subject.delta
    return audit(subject.mechanism, subject.d0, subject.d1, *claim, samples=samples)


@pytest.mark.heavy("test_nothing_but_noisy_steps_tells_neighbours_apart")
def test_a_whole_synthesis_withstands_the_auditor():
    """A claim that holds is refuted once in a hundred runs, by the auditor's own confidence."""
    assert audited().verdict is Outcome.NOT_REFUTED


@pytest.mark.heavy("test_tables_withstand_the_auditor_and_are_refuted_without_their_noise")
def test_a_synthesis_with_noise_of_the_wrong_size_is_refuted(monkeypatch):
    """Noise of parameter 1, whatever the budget says."""
    real = DiscreteGaussian.draw
    monkeypatch.setattr(
        _spending.DiscreteGaussian, "draw", lambda self, shape: real(DiscreteGaussian(F(1)), shape)
    )
    assert audited().verdict is Outcome.VIOLATED


@pytest.mark.parametrize("made", [AuditedMarginals, AuditedLinks, RangePlan, HierarchyPlan])
def test_tables_withstand_the_auditor_and_are_refuted_without_their_noise(made, monkeypatch):
    """Marginals, ranges and levels: as they are, and with noise a fifth as wide."""
    (subject,) = made.audit_subjects()
    claim = subject.epsilon, subject.delta
    found = audit(subject.mechanism, subject.d0, subject.d1, *claim, samples=2000)
    assert found.verdict is Outcome.NOT_REFUTED
    for law in (DiscreteGaussian, DiscreteLaplace):
        monkeypatch.setattr(law, "draw", lambda self, shape, real=law.draw: real(self, shape) // 5)
    found = audit(subject.mechanism, subject.d0, subject.d1, *claim, samples=2000)
    assert found.verdict is Outcome.VIOLATED
