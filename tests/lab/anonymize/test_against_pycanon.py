"""Against pycanon 1.3.6: equal to 1e-9 where it is right; where it is not, the definition decides.

Skipped where pycanon is not installed; `make bench` installs it.
"""

from __future__ import annotations

import math

import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from dither.lab.anonymize import measure
from lab.anonymize import by_definition as law

theirs = pytest.importorskip("pycanon.anonymity")
metrics = pytest.importorskip("pycanon.metrics")

# It speaks to an older pandas.
pytestmark = pytest.mark.filterwarnings("ignore")

ROWS = st.lists(
    st.tuples(st.integers(0, 2), st.sampled_from("pq"), st.sampled_from("abcd"), st.integers(0, 5)),
    min_size=2,
    max_size=40,
)


def frame_of(rows):
    """Two quasi-identifiers, a text and a number."""
    return pd.DataFrame(rows, columns=["x", "y", "s", "n"])


@given(ROWS.filter(lambda rows: len({r[3] for r in rows}) > 1))
@settings(max_examples=40, deadline=None)
def test_equal_where_it_is_right(rows) -> None:
    """k, distinct l, alpha, t, basic beta, delta over present values, and utility."""
    frame = frame_of(rows)
    quasi = ["x", "y"]
    ours = measure(frame, quasi, ["s", "n"], distance={"s": "equal", "n": "ordered"})
    assert ours.k == theirs.k_anonymity(frame, quasi)
    for name in ("s", "n"):
        one = ours.sensitive[name]
        assert one.distinct_l == theirs.l_diversity(frame, quasi, [name])
        assert (one.alpha, ours.k) == pytest.approx(
            theirs.alpha_k_anonymity(frame, quasi, [name]), abs=1e-9
        )
        assert one.t == pytest.approx(theirs.t_closeness(frame, quasi, [name]), abs=1e-9)
        assert one.beta == pytest.approx(theirs.basic_beta_likeness(frame, quasi, [name]), abs=1e-9)
        assert one.delta_present == pytest.approx(
            theirs.delta_disclosure(frame, quasi, [name]), abs=1e-9
        )
        # They report whole numbers, cut off after rounding has lost up to one.
        assert theirs.entropy_l_diversity(frame, quasi, [name]) in {
            math.floor(one.entropy_l - 1e-9),
            math.floor(one.entropy_l + 1e-9),
        }
    assert ours.discernibility == metrics.discernability_metric(frame, frame, quasi)
    assert ours.average_class == pytest.approx(metrics.average_ecsize(frame, frame, quasi))
    assert ours.risk.prosecutor.highest == metrics.max_rir(frame, quasi)


def test_entropy_diversity_loses_one() -> None:
    """Two equally common values have entropy log 2, so l = 2; pycanon says 1."""
    frame = pd.DataFrame({"x": ["a"] * 2, "s": ["u", "v"]})
    assert law.entropy_l(frame.to_dict("records"), "s") == pytest.approx(2)
    assert theirs.entropy_l_diversity(frame, ["x"], ["s"]) == 1
    assert measure(frame, ["x"], "s").sensitive["s"].entropy_l == pytest.approx(2)


def test_recursive_diversity_sorts_the_wrong_way() -> None:
    """Counts 8, 1, 1 need c > 8 for l = 3; pycanon takes the rarest for r_1 and says c = 1."""
    frame = pd.DataFrame({"x": ["a"] * 10, "s": list("aaaaaaaabc")})
    said, values = theirs.recursive_c_l_diversity(frame, ["x"], ["s"])
    assert (said, values) == (1, 3)
    counts = sorted(frame["s"].value_counts(), reverse=True)
    assert not counts[0] < said * sum(counts[values - 1 :])
    assert law.recursive_c(frame.to_dict("records"), "s", 3) == 8
    assert measure(frame, ["x"], "s").sensitive["s"].recursive_c[3] == 8


def test_enhanced_likeness_is_claimed_where_no_beta_gives_it() -> None:
    """A value of share 1/5 that fills a class gains 4, above -log(1/5) = 1.61 whatever beta is."""
    frame = pd.DataFrame({"x": ["a"] * 2 + ["b"] * 8, "s": list("uu") + list("vvvvvvvv")})
    said = theirs.enhanced_beta_likeness(frame, ["x"], ["s"])
    assert said == pytest.approx(math.log(5))
    rows = frame.to_dict("records")
    q, p = law.shares(rows[:2], "s"), law.shares(rows, "s")
    assert not law.enhanced(q, p, said)
    assert not law.enhanced(q, p, math.inf)
    assert measure(frame, ["x"], "s").sensitive["s"].enhanced_beta == math.inf


def test_delta_disclosure_forgets_absent_values() -> None:
    """A class without a value tells that nobody in it has it: no finite delta; pycanon skips it."""
    frame = pd.DataFrame({"x": ["a"] * 2 + ["b"] * 8, "s": list("uu") + list("vvvvvvvv")})
    assert theirs.delta_disclosure(frame, ["x"], ["s"]) == pytest.approx(math.log(5))
    rows = frame.to_dict("records")
    assert law.delta(law.shares(rows[:2], "s"), law.shares(rows, "s")) == math.inf
    found = measure(frame, ["x"], "s").sensitive["s"]
    assert (found.delta, found.delta_present) == (math.inf, pytest.approx(math.log(5)))


def test_rows_without_a_quasi_identifier_are_forgotten() -> None:
    """A person alone with a missing value is alone: k = 1; pycanon drops the row and says 2."""
    frame = pd.DataFrame({"x": ["a", "a", None], "s": list("sst")})
    assert theirs.k_anonymity(frame, ["x"]) == 2
    assert measure(frame, ["x"], "s").k == 1


def test_labels_are_taken_for_places() -> None:
    """Classes {u, v} and {u, v}: l = 2 in any order of the index; pycanon says 1 after a sort."""
    frame = pd.DataFrame({"x": list("abab"), "s": list("uuvv")}, index=[0, 2, 1, 3])
    inside = law.classes(frame.to_dict("records"), ["x"]).values()
    assert {len(law.shares(c, "s")) for c in inside} == {2}
    assert theirs.l_diversity(frame, ["x"], ["s"]) == 1
    assert measure(frame, ["x"], "s").sensitive["s"].distinct_l == 2


def test_one_number_everywhere_is_zero_away() -> None:
    """A constant column is 0-close; pycanon divides by m - 1 = 0."""
    frame = pd.DataFrame({"x": ["a", "a", "b"], "n": [1, 1, 1]})
    with pytest.raises(ZeroDivisionError):
        theirs.t_closeness(frame, ["x"], ["n"])
    assert measure(frame, ["x"], "n", distance="ordered").sensitive["n"].t == 0
