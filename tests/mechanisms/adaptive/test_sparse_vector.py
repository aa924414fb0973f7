"""The sparse vector technique: its law computed, its claim held, and the broken variants caught."""

import copy
import itertools
import os
import pickle
from fractions import Fraction as F

import mpmath
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from dither.errors import ArgumentError, BudgetError
from dither.mechanisms import AboveThreshold, DiscreteLaplace, SparseVector
from mechanisms.realised import MP, divergence, fraction, realised_law, refuted


def above(scale, t):
    """Pr[Z >= t] of the discrete Laplace law."""
    r = mpmath.exp(-1 / fraction(scale))
    return r**t / (1 + r) if t >= 1 else 1 - r ** (1 - t) / (1 + r)


def law(mechanism, queries, *, threshold_noise=True, cutoff=None, reuse=False):
    """The law of the answers (as a text of 0 and 1) at threshold 0, by summing over its noise.

    The keywords make the broken variants: no noise on the threshold, no cut-off, or one query
    noise for all queries.
    """
    cutoff = mechanism.cutoff if cutoff is None else cutoff
    scale = mechanism.threshold_scale
    r = mpmath.exp(-1 / fraction(scale))
    found = {}
    reach = 60
    bars = {z: (1 - r) / (1 + r) * r ** abs(z) for z in range(-reach, reach + 1)}
    if not threshold_noise:
        bars = {0: MP(1)}
    for bar, weight in bars.items():
        if reuse:
            levels = sorted({bar - q for q in queries})
            edges = [-(10**6), *levels, 10**6]
            paths = {}
            for low, high in itertools.pairwise(edges):
                mass = above(mechanism.query_scale, low) - above(mechanism.query_scale, high)
                paths[cut("".join("01"[low >= bar - q] for q in queries), cutoff)] = (
                    paths.get(cut("".join("01"[low >= bar - q] for q in queries), cutoff), 0) + mass
                )
        else:
            paths = {"": MP(1)}
            for q in queries:
                p, step = above(mechanism.query_scale, bar - q), {}
                for path, w in paths.items():
                    if path.count("1") >= cutoff:
                        step[path] = step.get(path, 0) + w
                    else:
                        step[path + "1"] = w * p
                        step[path + "0"] = w * (1 - p)
                paths = step
        for path, w in paths.items():
            found[path] = found.get(path, 0) + weight * w
    return found


def cut(path, cutoff):
    """A path up to its cut-off."""
    for i in range(len(path)):
        if path[: i + 1].count("1") >= cutoff:
            return path[: i + 1]
    return path


def answers(run, queries):
    """What a run says to queries, until it refuses."""
    said = ""
    for q in queries:
        if not run.left:
            break
        said += "01"[bool(run.ask(q))]
    return said


def test_realised_law_is_the_formula(monkeypatch):
    """Two queries, all noises enumerated: the run's law is the sum over the threshold's noise."""
    mechanism = SparseVector(F(1), F(3, 2), 1)
    realised, lost = realised_law(
        monkeypatch, lambda: answers(mechanism.start(0), (0, 1)), floor=1e-7, reach=9
    )
    expected = law(mechanism, (0, 1))
    assert lost < 0.01
    for path, p in expected.items():
        assert realised[path] <= p + 1e-12
        assert p <= realised[path] + lost + 1e-12


STREAMS = [
    ((0, 0, 0, 0, 0), (1, 1, 1, 1, 1)),
    ((0, 0, 0, 0, 0), (-1, -1, -1, -1, 1)),
    ((0, 0, 1, 0, 1), (1, 1, 0, 1, 0)),
    ((3, -2, 0, 1, 2), (2, -1, 1, 0, 3)),
]


@pytest.mark.parametrize("cutoff", [1, 2])
@pytest.mark.parametrize("epsilon", [F(1, 2), F(2)])
def test_loss_of_the_law(cutoff, epsilon):
    """Every answer sequence keeps epsilon on neighbouring streams, in both directions."""
    mechanism = SparseVector.for_loss(epsilon, sensitivity=1, cutoff=cutoff)
    assert mechanism.loss(sensitivity=1).charge.epsilon == epsilon
    for here, there in STREAMS:
        assert divergence(law(mechanism, here), law(mechanism, there), epsilon) < 1e-10
    monotone = SparseVector.for_loss(epsilon, sensitivity=1, cutoff=cutoff, monotone=True)
    here, there = STREAMS[0]
    assert divergence(law(monotone, here), law(monotone, there), epsilon) < 1e-10


@pytest.mark.heavy("test_loss_of_the_law")
def test_broken_variants_are_caught_by_the_law():
    """No threshold noise, no cut-off, reused query noise, half the scales: each breaks epsilon."""
    epsilon = F(1)
    honest = SparseVector.for_loss(epsilon, sensitivity=1)
    flat, up = (0,) * 12, (1,) * 12
    assert divergence(law(honest, flat), law(honest, up), epsilon) < 1e-10
    assert (
        divergence(
            law(honest, flat, threshold_noise=False),
            law(honest, up, threshold_noise=False),
            epsilon,
        )
        > 1e-3
    )
    wave, counter = (0, 1) * 5, (1, 0) * 5
    assert divergence(law(honest, wave), law(honest, counter), epsilon) < 1e-10
    assert divergence(law(honest, wave, cutoff=99), law(honest, counter, cutoff=99), epsilon) > 1e-3
    same, other = (law(honest, q, reuse=True, cutoff=99) for q in ((0, 1), (1, 0)))
    assert divergence(same, other, epsilon) > 1e-2

    half = SparseVector(honest.threshold_scale / 4, honest.query_scale / 4)
    assert divergence(law(half, (0, 0, 0)), law(half, (-1, -1, 1)), epsilon) > 1e-3


@pytest.mark.heavy("test_realised_law_is_the_formula")
def test_black_box_audit():
    """Runs on neighbours do not refute epsilon (false alarm 1e-7); mutants of the run do.

    The mutants: no cut-off; an eighth of the noise. (For a threshold without noise see below.)
    """
    epsilon = F(3, 2)
    honest = SparseVector.for_loss(epsilon, sensitivity=1)

    def said(mechanism, queries, times=700, **mutant):
        outcomes = []
        for _ in range(times):
            run = mechanism.start(0)
            run.left = mutant.get("left", run.left)
            outcomes.append(answers(run, queries))
        return outcomes

    def neighbours(mechanism, one, two, **mutant):
        return said(mechanism, one, **mutant), said(mechanism, two, **mutant)

    assert not refuted(*neighbours(honest, (0,) * 6, (1,) * 6), float(epsilon))
    assert not refuted(*neighbours(honest, (0, 1) * 3, (1, 0) * 3), float(epsilon))
    eager = neighbours(honest, (0, 1) * 150, (1, 0) * 150, times=800, left=999)
    even = [[s[::2].count("1") > s[1::2].count("1") for s in side] for side in eager]
    assert refuted(*even, float(epsilon))
    quarter = SparseVector(honest.threshold_scale / 8, honest.query_scale / 8)
    assert refuted(*neighbours(quarter, (0,), (-1,)), float(epsilon))


def test_missing_threshold_noise_is_caught_by_samples():
    """An audit of answers alone, with nothing known of how they are made.

    Neighbours: five queries of 0, and five of 1, all raised together, which `monotone` allows. The
    event: "below" five times. Each "below" is exp(-1/2) times as likely on the second table, and
    without noise on the threshold those five are independent: 0.093 against 0.008, a ratio of
    exp(2.5) where exp(1) is claimed. With the noise they share it, and the ratio stays below.
    15,000 runs on each table; a true claim is refuted with probability at most 1e-7.
    """
    mechanism = SparseVector.for_loss(F(1), sensitivity=1, monotone=True)

    def said(queries, *, mutant):
        outcomes = []
        for _ in range(15_000):
            run = mechanism.start(1)
            if mutant:
                run._bar = 1
            outcomes.append(answers(run, queries))
        return outcomes

    for mutant in (False, True):
        sides = (said((q,) * 5, mutant=mutant) for q in (0, 1))
        assert refuted(*sides, 1.0) == mutant


def test_values_audit():
    """Answers with values do not refute epsilon (1e-7); values of a fifth of the noise do."""
    honest = SparseVector.for_loss(F(2), sensitivity=1, monotone=True, value_share=F(1, 2))
    mutant = SparseVector(honest.threshold_scale, honest.query_scale, 1, honest.value_scale / 5)

    def said(mechanism, query):
        answers = [mechanism.start(0).ask(query) for _ in range(4000)]
        return [int(a.value >= 1) if a else -9 for a in answers]

    assert not refuted(said(honest, 0), said(honest, 1), 2.0)
    assert refuted(said(mutant, 0), said(mutant, 1), 2.0)


def test_values_have_their_own_noise(monkeypatch):
    """A value is the query plus fresh noise of the value's scale: its law, given "above"."""
    mechanism = SparseVector(F(1, 2), F(1, 2), 1, F(1))
    realised, lost = realised_law(
        monkeypatch, lambda: mechanism.start(0).ask(1).value, floor=1e-7, reach=10
    )
    assert lost < 1e-3
    up = 1 - realised[None]
    for z in (-3, 0, 2):
        p = above(F(1), z) - above(F(1), z + 1)
        assert realised[1 + z] == pytest.approx(float(p * up), abs=2e-3 * float(p) + float(lost))
    assert mechanism.loss(sensitivity=1).charge.epsilon == 2 + 4 + 1
    assert mechanism.half_width(0.95) == DiscreteLaplace(F(1)).half_width(0.95)


@settings(deadline=None, max_examples=50)
@given(
    st.fractions(F(1, 100), 10, max_denominator=100),
    st.integers(1, 30),
    st.integers(1, 5),
    st.booleans(),
    st.fractions(0, F(9, 10), max_denominator=10),
)
def test_calibration_is_exact(epsilon, cutoff, sensitivity, monotone, share):
    """The loss read back from the scales is the epsilon asked for, as a rational."""
    mechanism = SparseVector.for_loss(
        epsilon, sensitivity=sensitivity, cutoff=cutoff, monotone=monotone, value_share=share
    )
    assert mechanism.loss(sensitivity=sensitivity, monotone=monotone).charge.epsilon == epsilon
    assert (mechanism.value_scale is None) == (share == 0)


def test_margin():
    """A hundred answers beyond the margin are right as often as said; `for_margin` inverts it."""
    mechanism = SparseVector.for_margin(200, queries=100, confidence=0.95, sensitivity=1)
    width = mechanism.margin(100, 0.95)
    assert width <= 200
    tighter = SparseVector.for_loss(
        mechanism.loss(sensitivity=1).charge.epsilon * F(98, 100), sensitivity=1
    )
    assert tighter.margin(100, 0.95) > 200
    r = mpmath.exp(-1 / fraction(mechanism.threshold_scale))
    right = mpmath.fsum(
        (1 - r) / (1 + r) * r ** abs(z) * (1 - above(mechanism.query_scale, z + width + 1)) ** 100
        for z in range(-2000, 2000)
    )
    assert right >= 0.95


def test_a_run_refuses():
    """After the cut-off, in a copy, from a pickle and in a forked process, a run says nothing."""
    run = SparseVector(F(1, 100), F(1, 100), 2).start(0)
    assert isinstance(run, AboveThreshold)
    assert run.ask(50).above
    assert not run.ask(-50)
    for imitate in (copy.copy, copy.deepcopy, pickle.dumps):
        with pytest.raises(copy.Error):
            imitate(run)
    run._pid = os.getpid() + 1
    with pytest.raises(ArgumentError, match="process"):
        run.ask(0)
    run._pid = os.getpid()
    assert run.ask(50)
    assert run.left == 0
    for _ in range(2):
        with pytest.raises(BudgetError, match="cut-off"):
            run.ask(50)
    assert "_bar" not in repr(run)


def test_refusals():
    """Parameters and values that are not numbers or out of range are refused by name."""
    for scale in (0, -1, -0.5, None, float("inf")):
        with pytest.raises(ArgumentError, match="threshold_scale"):
            SparseVector(scale, F(1))
        with pytest.raises(ArgumentError, match="query_scale"):
            SparseVector(F(1), scale)
    with pytest.raises(ArgumentError, match="cutoff"):
        SparseVector(F(1), F(1), 0)
    with pytest.raises(ArgumentError, match="epsilon"):
        SparseVector.for_loss(F(0), sensitivity=1)
    with pytest.raises(ArgumentError, match="sensitivity"):
        SparseVector.for_loss(F(1), sensitivity=0)
    with pytest.raises(ArgumentError, match="value_share"):
        SparseVector.for_loss(F(1), sensitivity=1, value_share=F(1))
    with pytest.raises(ArgumentError, match="threshold"):
        SparseVector(F(1), F(1)).start(0.5)
    with pytest.raises(ArgumentError, match="value"):
        SparseVector(F(1), F(1)).start(0).ask(0.5)
    with pytest.raises(ArgumentError, match="value_scale"):
        SparseVector(F(1), F(1)).half_width(0.9)
