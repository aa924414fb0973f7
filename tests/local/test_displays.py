"""What results of local privacy look like at a prompt, in a notebook and on a terminal."""

from __future__ import annotations

import re

import numpy as np
import pytest

from dither import local
from dither.local import Aggregate

RNG = np.random.default_rng(7)
NUMBERS = local.PM(local.Interval(0, 10, steps=10), epsilon=1)


def test_results_print_as_their_summary() -> None:
    """An estimate's fields are pages of digits, so `repr` is the summary; notebooks show it too."""
    found = local.simulate(local.GRR(3, epsilon=2), [500, 300, 200], RNG).estimate()
    assert repr(found) == str(found) == found.summary()
    assert found._repr_html_() == f"<pre>{found.summary()}</pre>"
    mean = local.simulate(NUMBERS, np.bincount([3, 4], minlength=11) * 100, RNG).estimate()
    assert repr(mean) == mean.summary()


def test_what_is_made_prints_briefly() -> None:
    """Channels, structures and counts print what they are, of long parts only the beginning."""
    graded = local.SDGRR(5_000, high=set(range(9)), epsilon="1/3")
    assert "epsilon=1/3" in repr(graded)
    assert "5,000 in all" in repr(graded)
    counts = local.simulate(graded, np.full(5_000, 2), RNG)
    survey = local.Marginals(dict.fromkeys("abcdef", 2), of=2, epsilon=1)
    offer = local.Personal.of(local.OUE, 4, epsilons=[1, 2])
    for shown in (graded, counts, survey, offer, survey.aggregate({})):
        assert len(repr(shown)) < 500
        assert "Fraction" not in repr(shown)
    assert repr(local.GRR(2, 1).aggregate([0, 1])) == (
        "Aggregate(GRR(domain=Domain(2), epsilon=1), n=2, counts=[1, 1])"
    )


def test_control_codes_never_reach_a_terminal() -> None:
    """Values may hold escapes and NULs; a frame keeps them and a summary shows their codes."""
    values = ["\x1b[31mred\x1b[0m", "nul\x00", "two\nlines"]
    found = local.simulate(local.GRR(values, epsilon=2), [500, 300, 200], RNG).estimate()
    assert set(found.frame["value"]) == set(values)
    assert all(c.isprintable() or c == "\n" for c in found.summary())
    assert len(found.summary().splitlines()) == 5
    likely = local.simulate(local.GRR(values, epsilon=2), [500, 300, 200], RNG)
    assert "\x1b" not in likely.estimate(method="likelihood").summary()
    sets = local.ItemSets(values, epsilon=2, padding=1)
    assert "\x1b" not in sets.aggregate(sets.privatize([values[:1]] * 50)).estimate().summary()


def test_a_mean_is_shown_within_its_interval() -> None:
    """Noise may put the mean of few reports outside the bounds; the screen says so."""
    counts = np.zeros(NUMBERS.features, dtype=np.int64)
    counts[-1] = 12
    found = Aggregate(NUMBERS, counts, 12).estimate()
    lower, upper = found.interval
    assert found.mean > upper == 10
    assert found.possible_mean == 10
    assert found.summary().splitlines()[1].startswith("mean  10")
    assert "outside the interval" in found.summary()
    assert lower >= float(found.summary().splitlines()[1].split("(")[1].split()[0])


def test_what_is_shown_of_shares_can_be() -> None:
    """No share and no end of an interval on a screen, in a frame or in a picture leaves [0, 1]."""
    counts = Aggregate(local.GRR(3, epsilon=1), np.array([170, 72, 58]), 300)
    found = counts.estimate()
    assert found.raw.min() < 0 < found.raw.max() < 1
    said = found.summary()
    numbers = [float(n) for n in re.findall(r"-?\d+\.\d+", said.split("95 %")[1])]
    assert len(numbers) == 9
    assert min(numbers) == 0
    assert max(numbers) == 1
    assert "A share that noise put outside 0 to 1 is shown at the nearer" in " ".join(said.split())
    lower, upper = (found.frame[name].to_numpy() for name in ("lower", "upper"))
    assert ((lower >= 0) & (lower < upper) & (upper <= 1)).all()
    assert (lower <= found.possible).all()
    assert (found.possible <= upper).all()
    raw, half = found.raw, 1.96 * found.standard_errors
    assert (lower <= np.clip(raw - half, 0, 1) + 1e-3).all()
    assert (upper >= np.clip(raw + half, 0, 1) - 1e-3).all()
    figure = found.plot()
    (axes,) = figure.axes
    for line in axes.collections:
        for segment in line.get_segments():
            assert 0 <= segment[:, 0].min() <= segment[:, 0].max() <= 1
    assert "outside 0 to 1" in " ".join(figure._supxlabel.get_text().split())


def test_a_share_that_may_be_anything_has_no_point() -> None:
    """An interval from 0 to 1 is drawn dashed, and the foot says what it stands for."""
    counts = Aggregate(local.GRR(2, epsilon="0.1"), np.array([30, 30]), 60)
    found = counts.estimate()
    assert found.intervals.tolist() == [[0, 1], [0, 1]]
    figure = found.plot()
    (axes,) = figure.axes
    assert axes.lines[0].get_xdata().size == 0
    assert len(axes.collections[-1].get_segments()) == 2
    assert "every value is possible" in " ".join(figure._supxlabel.get_text().split())


def test_one_is_singular() -> None:
    """Nothing is written as "1 reports"."""
    found = local.GRR(2, epsilon=1).aggregate([1]).estimate()
    assert found.summary().startswith("grr: 1 report\n")
    assert "2 values" in found.summary()


def test_the_reason_for_a_channel_is_true() -> None:
    """What is said to be smaller is smaller, and nothing claims less work where there is more."""
    for size in (2, 3, 8, 100, 5_000):
        for epsilon in (0.5, 2, 6):
            choice = local.best(size, epsilon, 10_000)
            chosen = next(c for c in choice.candidates if c.channel is choice.channel)
            others = {type(c.channel).__name__: c for c in choice.candidates}
            _, _, named = choice.reason.partition("smaller report than ")
            for name in named.partition(";")[0].partition(", and simpler")[0].split(", "):
                for part in filter(None, name.split(" and ")):
                    assert others[part].report_bytes > chosen.report_bytes
            _, _, named = choice.reason.partition("simpler than ")
            for part in named.partition(", whose")[0].replace(" and ", ", ").split(", "):
                assert not part or others[part].report_bytes == chosen.report_bytes
            assert "less work" not in choice.reason


@pytest.mark.parametrize("people", [20, 1_000])
def test_classes_alike_are_rarely_called_different(people: int) -> None:
    """Classes of one population are called different once in a thousand surveys at most.

    Of these 200 surveys, more than 4 would be so with chance 1e-6. A normal tail called two of
    three different at 20 people, as a report of 200 values is far from normal.
    """
    offer = local.Personal.of(local.GRR, 200, epsilons=[1, 4])
    shares = np.full(200, 1 / 200)
    rings = 0
    for _ in range(200):
        held = np.stack([RNG.multinomial(people, shares) for _ in range(2)])
        notes = local.simulate(offer, held, RNG).estimate().notes
        rings += any("differ" in note for note in notes)
    assert rings <= 4


def test_classes_apart_are_called_different() -> None:
    """Half of one class and a tenth of the other hold a value."""
    offer = local.Personal.of(local.OUE, 2, epsilons=[1, 2])
    found = local.simulate(offer, np.array([[5_000, 5_000], [9_000, 1_000]]), RNG).estimate()
    assert any("differ" in note for note in found.notes)
