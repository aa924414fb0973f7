"""Numbers inside bins: by a private tree of finer ones, where these say more than noise."""

from __future__ import annotations

from fractions import Fraction as F

import numpy as np
import polars as pl
import pytest

import dither as dt
from dither.errors import ArgumentError
from dither.plan.schema import Kind
from dither.query.tables._domain import Attribute, cut_finer
from dither.synth._spending import ZCDPBudget
from dither.synth.model._inside import finer_of, measured_inside

COLUMNS = {
    "age": {"bins": [0, 20, 40, 100], "nullable": False},
    "cost": {"bounds": [0, 1000], "step": 0.25},
    "sex": {"values": ["f", "m"], "nullable": False},
}


def people(n=5000):
    """Half of them students; costs lie near 0, and some are not known."""
    draw = np.random.default_rng(0)
    student = draw.random(n) < 0.5
    cost = np.round(np.minimum(draw.exponential(30, n), 999) * 4) / 4
    return pl.DataFrame(
        {
            "age": np.where(student, draw.integers(20, 25, n), draw.integers(0, 100, n)),
            "cost": pl.Series(np.where(draw.random(n) < 0.1, np.nan, cost)).fill_nan(None),
            "sex": draw.choice(["f", "m"], n),
        }
    )


@pytest.fixture
def session(tmp_path):
    """A session over them."""
    made = {
        "budget": {"epsilon": 10**4, "delta": "1e-5", "ledger": str(tmp_path / "l")},
        "tables": {"people": {"columns": COLUMNS}},
    }
    with dt.open(made, sources={"people": people()}) as opened:
        yield opened


def apart(one, two):
    """The largest distance of two distribution functions."""
    a, b = (np.sort(c.drop_nulls().to_numpy().astype(float)) for c in (one, two))
    at = np.concatenate([a, b])
    below = (np.searchsorted(x, at, "right") / len(x) for x in (a, b))
    return float(np.abs(next(below) - next(below)).max())


def test_numbers_lie_where_they_lie_and_are_the_policys(session, tmp_path):
    """Far nearer than anywhere in a bin; on the step, in bounds, and NULL as often."""
    table = session.table("people")
    made = {
        inside: table.synthesize(20, "1e-6", method="independent", cells=4, inside=inside)
        for inside in ("uniform", "tree")
    }
    rows = {inside: model.sample(5000, seed=1) for inside, model in made.items()}
    for column in ("age", "cost"):
        near, far = (apart(rows[i][column], people()[column]) for i in ("tree", "uniform"))
        assert far > 0.15
        # Two samples of 5,000 of one distribution are 0.039 apart once in a thousand times.
        assert near < 0.04
    found = rows["tree"]
    assert found.schema == people().schema
    assert ((found["cost"].drop_nulls() * 4) % 1 == 0).all()
    assert abs(found["cost"].null_count() - people()["cost"].null_count()) < 30
    kept = dt.synth.load(made["tree"].save(tmp_path / "m"))
    assert kept.sample(99, seed=2).equals(made["tree"].sample(99, seed=2))


def test_it_is_said_and_charged_as_asked(session):
    """The explanation and the notes name it; the price is the one that was asked for."""
    asked = session.table("people").synthesis(1, "1e-6", method="mst", inside="tree")
    before = session.balance()[0].spent
    model = asked.release()
    after = session.balance()[0].spent
    assert (after.epsilon - before.epsilon, after.delta - before.delta) == (1, F(1, 10**6))
    assert "finer bins" in str(asked.explain())
    assert any("private tree" in note for note in model.notes)
    content = model._content
    assert F(content["spent"]) <= F(content["rho"])
    assert F(content["spent"]) > F(content["rho"]) * F(9, 10)
    assert dt.verify(model.certificate, session.ledger).ok


def test_trees_cost_what_they_are_given_and_no_more(monkeypatch):
    """Each level of each tree moves by what is charged for it, and all of them by all."""
    bins = Attribute("x", Kind.REAL, edges=(F(0), F(1), F(2)), missing=True)
    finer = finer_of([bins])
    leaves = np.arange(finer[0].size, dtype=np.int64)
    more = leaves.copy()
    more[7] += 1
    lost = []
    real = ZCDPBudget.measure

    def beside(self, clique, rho):
        found = real(self, clique, rho)
        other = ZCDPBudget(lambda cliques: dict.fromkeys(cliques, more), rho, 1, 1)
        other.merge(self._maps)
        other.read([clique])
        moved = other._held[clique] - self._held[clique]
        lost.append(F(int((moved * moved).sum())) / (2 * found.sigma2))
        return found

    monkeypatch.setattr(ZCDPBudget, "measure", beside)
    oracle = lambda cliques: dict.fromkeys(cliques, leaves)  # noqa: E731
    found = measured_inside(oracle, F(1, 7), (1, 1), [bins], finer, {0: 0})
    assert sum(lost) == F(1, 7)
    assert len(lost) > 1
    sums = np.add.reduceat(found[0].shares, found[0].first[:-1])
    assert sums == pytest.approx([1, 1])


def test_where_noise_is_all_there_is_numbers_lie_anywhere():
    """No part is clear of the noise, so every finer bin has what its width says."""
    bins = Attribute("n", Kind.INTEGER, edges=(F(0), F(3), F(100)), missing=False)
    finer = finer_of([bins])
    empty = np.zeros(finer[0].size, dtype=np.int64)
    found = measured_inside(
        lambda cliques: dict.fromkeys(cliques, empty), F(1, 10**6), (1, 1), [bins], finer, {0: 0}
    )[0]
    whole = np.array([float(e) for e in found.attribute.edges])
    for low, high in zip(found.first[:-1], found.first[1:], strict=True):
        wanted = np.diff(whole)[low:high] / (whole[high] - whole[low])
        assert found.shares[low:high] == pytest.approx(wanted)


def test_bins_are_cut_by_public_facts():
    """Whole numbers and multiples of a step are never cut apart; what is one is left."""
    ages = Attribute("age", Kind.INTEGER, edges=(F(0), F(1), F(5)), missing=False)
    assert cut_finer(ages, 8).edges == tuple(map(F, range(6)))
    cost = Attribute("cost", Kind.REAL, edges=(F(0), F(1)), step=F(1, 2))
    assert cut_finer(cost, 8).edges == (0, F(1, 2), 1)
    assert finer_of([Attribute("sex", Kind.TEXT, ("f", "m"))]) == {}


def test_what_has_no_bins_is_refused_before_the_charge(session):
    """So is a word that is none of the two."""
    table = session.table("people")
    with pytest.raises(ArgumentError, match="no column has bins"):
        table.synthesis(1, "1e-6", columns=["sex"], inside="tree")
    with pytest.raises(ArgumentError, match="unknown inside"):
        table.synthesis(1, "1e-6", inside="trees")
