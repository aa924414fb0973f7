"""Table reconstruction: counts of databases against a plain enumerator, and what is refused."""

from __future__ import annotations

import itertools
import math
from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from dither import attack
from dither.errors import ArgumentError, DitherError
from dither.lab.attack import blurred, remaining, true_answers
from dither.lab.attack.reconstruction._solver import search
from dither.lab.attack.reconstruction._statistics import Statistics


def enumerate_all(statistics: Statistics) -> list[tuple[tuple[int, ...], ...]]:
    """Every database up to order that the definitions of rows and rules accept, one by one."""
    kinds = itertools.product(*(range(a.low, a.high + 1) for a in statistics.attributes))
    tables = itertools.combinations_with_replacement(sorted(kinds), statistics.people)
    return [t for t in tables if statistics.holds(t)]


SMALL: dict[str, Any] = {
    "people": 4,
    "attributes": {"age": [0, 6], "sex": ["f", "m"]},
    "rounding": {"mean": 0.5},
    "suppression": {"mark": "(D)", "fewer_than": 2},
}


def small(**changes: Any) -> Statistics:
    """A little table, some parts of it changed."""
    return attack.read_statistics({**SMALL, **changes})


def test_census_table_as_printed_has_two_solutions() -> None:
    """As printed two databases agree, and differ in one child's status."""
    found = attack.reconstruct_table(attack.census())
    assert (found.count, found.complete, len(found.certain)) == (2, True, 6)
    first, second = (found.people(i) for i in range(2))
    differing = [x for x in first if x not in second] + [x for x in second if x not in first]
    assert {x["status"] for x in differing} == {"single", "married"}
    assert {x["age"] for x in differing} == {"8"}


def test_census_table_with_its_note_has_one_solution() -> None:
    """The note removes the ambiguity, and the table is the one that its statistics describe."""
    found = attack.reconstruct_table(attack.census(note=True))
    assert found.count == 1
    assert found.statistics.holds(found.solutions[0])
    ages = sorted(int(p["age"]) for p in found.people())
    assert ages == [8, 18, 24, 30, 36, 66, 84]


@pytest.mark.parametrize(("low", "solutions", "tried"), [(0, 31, 341_376), (1, 30, 333_375)])
def test_one_row_alone(low: int, solutions: int, tried: int) -> None:
    """Row 2B leaves 31 triples of ages from 0 and 30 from 1, of all multisets of three."""
    body = {
        "attributes": {"age": [low, 125]},
        "statistics": [{"name": "2B", "count": 3, "median": {"age": 30}, "mean": {"age": 44}}],
    }
    found = attack.reconstruct_table(body)
    assert (found.count, found.statistics.space) == (solutions, tried)
    assert [(a, b) for (a,), (b,), _ in found.solutions] == [(a, 30) for a in range(low, 31)]


def test_what_a_row_is_worth() -> None:
    """Without row 3B or 4A, or without the note, doubt is back; no other row is needed."""
    left = attack.without_each(attack.census(note=True))
    assert {k: v.count for k, v in left.items() if v.count > 1} == {"3B": 22, "4A": 2, "note": 2}
    assert all(v.complete for v in left.values())


def test_suppressed_means_zero_too() -> None:
    """Reading "(D)" as one or two makes the census table impossible: nobody is under 5."""
    table = attack.census()
    rows = tuple(replace(r, count=(1, 2)) if r.suppressed else r for r in table.rows)
    found = attack.reconstruct_table(replace(table, rows=rows))
    assert found.count == 0
    assert "5A" in found.conflict


def test_no_printed_group_settles_the_census() -> None:
    """What is suppressed would not settle it; the count of single or married persons would."""
    settling = attack.reconstruct_table(attack.census()).settled_by()
    assert settling["status = married"] == 1
    assert not any(name.startswith(("3A", "4", "5")) for name in settling)


conditions = st.sampled_from(
    [{}, {"sex": "f"}, {"age": {"at_least": 3}}, {"sex": "m", "age": {"below": 5}}, {"age": [1, 6]}]
)


@st.composite
def published(draw: st.DrawFn) -> Statistics:
    """Statistics of a database that exists, or with a number changed, of perhaps none."""
    kinds = list(itertools.product(range(7), range(2)))
    people = draw(st.lists(st.sampled_from(kinds), min_size=2, max_size=4))
    rows = []
    for i, where in enumerate(draw(st.lists(conditions, min_size=1, max_size=3))):
        probe = small(people=len(people), statistics=[{"name": "x", "where": where}]).rows[0]
        group = sorted(p[0] for p in people if all(p[c.attribute] in c.values for c in probe.where))
        row: dict[str, Any] = {"name": str(i), "where": where}
        if len(group) < 2 and draw(st.booleans()) and where:
            row["count"] = "(D)"
        else:
            row["count"] = len(group)
        if group and row["count"] != "(D)":
            middle = group[(len(group) - 1) // 2] + group[len(group) // 2]
            if draw(st.booleans()):
                row["median"] = {"age": middle / 2}
            if draw(st.booleans()):
                row["mean"] = {"age": round(2 * sum(group) / len(group)) / 2}
        if draw(st.booleans()):
            total = sum(group) + draw(st.integers(-1, 1))
            row["sum"] = {"age": [total, total + draw(st.integers(0, 2))]}
        rows.append(row)
    rules = draw(
        st.sampled_from([[], [{"name": "r", "when": {"sex": "m"}, "then": {"age": {"above": 1}}}]])
    )
    return small(people=len(people), statistics=rows, rules=rules)


@settings(max_examples=60, deadline=None)
@given(published())
def test_solver_counts_as_the_enumerator(statistics: Statistics) -> None:
    """CP-SAT finds exactly the databases that the definitions accept."""
    found = search(statistics, 10**6, 60.0)
    assert found.complete
    assert list(found.found) == enumerate_all(statistics)


@pytest.mark.parametrize("people", [1, 2, 3, 4])
@pytest.mark.parametrize("median", [0, 2, 2.5, 6])
def test_medians_of_even_and_odd_groups(people: int, median: float) -> None:
    """A median is the middle value, or the mean of the two middle ones; ties count once."""
    table = small(
        people=people,
        statistics=[{"name": "all", "count": people, "median": {"age": median}}],
        attributes={"age": [0, 6]},
    )
    assert list(search(table, 10**6, 60.0).found) == enumerate_all(table)


def test_several_numbers_some_below_zero() -> None:
    """Two numbers, one with negative values, rounded, and groups that nobody can be in."""
    table = attack.read_statistics(
        {
            "people": 3,
            "attributes": {"x": [-3, 2], "y": [0, 3], "k": ["only"]},
            "rounding": {"median": 1, "mean": 1},
            "statistics": [
                {
                    "name": "a",
                    "where": {"y": {"at_least": 2}},
                    "count": 2,
                    "mean": {"x": -1},
                    "median": {"x": -1, "y": 2},
                },
                {"name": "nobody", "where": {"x": {"below": -9}}, "count": 0},
                {"name": "all", "where": {"x": {"above": -9}}, "sum": {"x": [-4, 2]}},
            ],
        }
    )
    found = list(search(table, 10**6, 60.0).found)
    assert found == enumerate_all(table)
    assert len(found) == 236


@pytest.mark.parametrize(
    ("how", "sums"),
    [
        ("nearest", [3, 4, 5]),
        ("half-up", [3, 4]),
        ("half-even", [3, 4, 5]),
        ("down", [4, 5]),
        ("up", [3, 4]),
    ],
)
def test_rounding_says_which_sums_it_can_stand_for(how: str, sums: list[int]) -> None:
    """Of two people a mean of 2, to the unit, is a sum of 4 or, by rule, a neighbour."""
    table = small(
        people=2,
        rounding={"mean": 1, "how": how},
        statistics=[{"name": "all", "count": 2, "mean": {"age": 2}}],
    )
    ((_, low, high),) = table.rows[0].total
    assert list(range(low, high + 1)) == sums


def test_a_mean_is_exact_unless_rounding_is_stated() -> None:
    """36.7 of three people stands for no sum, and alone contradicts itself."""
    body = {
        "attributes": {"age": [0, 125]},
        "statistics": [{"name": "4A", "count": 3, "mean": {"age": 36.7}}],
    }
    assert attack.reconstruct_table(body).conflict == ("4A",)
    rounded = attack.read_statistics({**body, "rounding": {"mean": 0.1}})
    assert rounded.rows[0].total == ((0, 110, 110),)


def test_conflicts_are_minimal() -> None:
    """The named rows contradict each other; without any one of them there is a solution."""
    table = attack.census()
    (black_men,) = (r for r in table.rows if r.name == "4B")
    wrong = replace(black_men, name="extra", count=(3, 3), suppressed=False)
    found = attack.reconstruct_table(table.adding(wrong))
    assert (found.count, found.complete) == (0, True)
    assert "extra" in found.conflict
    kept = found.statistics.only(*found.conflict)
    assert attack.reconstruct_table(kept).count == 0
    for name in found.conflict:
        assert attack.reconstruct_table(kept.without(name), limit=1).count == 1
    assert ", ".join(found.conflict) in found.summary()


def test_a_limit_keeps_what_was_found() -> None:
    """Stopped at a limit, the result says so, and what it holds agrees."""
    found = attack.reconstruct_table(attack.census().only("2B"), limit=20)
    assert (found.count, found.complete, found.stopped) == (20, False, "limit")
    assert all(found.statistics.holds(t) for t in found.solutions)
    assert "At least 20" in found.summary()
    assert found.certain == ()


def test_time_that_runs_out_keeps_what_was_found() -> None:
    """After its seconds a search ends with what it has."""
    found = attack.reconstruct_table(attack.census().only("2B"), limit=10**8, seconds=1.0)
    assert (found.complete, found.stopped) == (False, "time")
    assert all(found.statistics.holds(t) for t in found.solutions)


def test_progress_can_stop_a_search() -> None:
    """A long search calls back and stops when told to, with what it found."""
    seen = []

    def stop(found: int, seconds: float) -> bool:
        seen.append((found, seconds))
        return False

    found = attack.reconstruct_table(attack.census().only("2B"), limit=10**7, progress=stop)
    assert (found.complete, found.stopped) == (False, "stopped")
    assert seen
    assert found.count >= seen[0][0]


def test_too_large_says_its_size() -> None:
    """A search beyond reason is refused, with its size and what to relax."""
    body = {"people": 300_000, "attributes": {"age": [0, 125]}, "statistics": []}
    with pytest.raises(ArgumentError, match=r"300,000 people.*leave out rows"):
        attack.reconstruct_table(body)
    body = {"people": 3, "attributes": {f"a{i}": [0, 10**6] for i in range(4)}, "statistics": []}
    with pytest.raises(ArgumentError, match="narrow the bounds"):
        attack.reconstruct_table(body)


@pytest.mark.parametrize(
    ("change", "said"),
    [
        ({"atributes": {}}, "did you mean 'attributes'"),
        ({"attributes": {}}, "attributes must name at least one"),
        ({"attributes": {"age": [5, 1]}}, "first bound is above"),
        ({"attributes": {"age": "old"}}, "attributes.age"),
        ({"statistics": [{"name": "a", "where": {"sx": "f"}}]}, "did you mean 'sex'"),
        ({"statistics": [{"name": "a", "where": {"sex": "x"}}]}, "sex has no value"),
        ({"statistics": [{"name": "a", "where": {"sex": {"above": 1}}}]}, "have no order"),
        ({"statistics": [{"name": "a", "where": {"sex": "f"}, "mean": {"age": 1}}]}, "needs a co"),
        ({"statistics": [{"name": "a", "count": 4, "mean": {"sex": 1}}]}, "sex is not a number"),
        ({"statistics": [{"name": "a"}, {"name": "a"}]}, "names must differ"),
        ({"rounding": {"mean": 0}}, "above 0"),
        ({"rounding": {"how": "half-down"}}, "unknown 'half-down'"),
        ({"rules": [{"name": "r", "when": {"sex": "f"}}]}, "then must say"),
    ],
)
def test_what_cannot_be_read_is_named(change: dict[str, Any], said: str) -> None:
    """A document that cannot be read is refused with the part and the nearest that would work."""
    with pytest.raises(ArgumentError, match=said):
        small(**change)


def test_broken_toml_is_refused() -> None:
    """What is not TOML says so, and what is not a file too."""
    with pytest.raises(ArgumentError, match="must be TOML"):
        attack.read_statistics("people = \n")
    with pytest.raises(ArgumentError, match="readable file"):
        attack.read_statistics("nowhere.toml")


def test_people_may_come_from_a_count() -> None:
    """The number of people is a count without where, or it must be given."""
    body = {**SMALL, "statistics": [{"name": "all", "count": 3}]}
    del body["people"]
    assert attack.read_statistics(body).people == 3
    with pytest.raises(ArgumentError, match="people must be given"):
        attack.read_statistics({**body, "statistics": []})


def test_remaining_estimates_the_enumerated_count() -> None:
    """Drawing databases evenly estimates their number (false alarms: below 1e-6)."""
    table = small(
        people=3,
        statistics=[
            {"name": "f", "where": {"sex": "f"}, "count": [1, 2], "sum": {"age": [2, 9]}},
            {"name": "all", "count": 3, "median": {"age": 3}},
        ],
        rules=[{"name": "r", "when": {"sex": "m"}, "then": {"age": {"above": 0}}}],
    )
    exact = len(enumerate_all(table))
    left = remaining(table, draws=40_000, seed=3)
    share = exact / table.space
    assert left.space == table.space == math.comb(14 + 2, 3)
    assert abs(left.share - share) < 5.2 * math.sqrt(share * (1 - share) / left.draws)
    assert left.low < exact < left.high


def test_databases_are_drawn_evenly() -> None:
    """Of two values for three people, each of the four multisets is a quarter (below 1e-6)."""
    body = {"people": 3, "attributes": {"x": [0, 1]}}
    for total in range(4):
        table = attack.read_statistics({**body, "statistics": [{"name": "s", "sum": {"x": total}}]})
        share = remaining(table, draws=20_000, seed=total).share
        assert abs(share - 0.25) < 5.2 * math.sqrt(0.25 * 0.75 / 20_000)


def test_blurred_statistics_keep_the_truth() -> None:
    """Within its margins a noisy release leaves the true database, and widening leaves more."""
    found = attack.reconstruct_table(attack.census(note=True))
    truth = true_answers(found.statistics, found.solutions[0])
    counts = []
    for margin in (0, 2):
        blur = blurred(found.statistics, truth, dict.fromkeys(truth, margin))
        assert blur.holds(found.solutions[0])
        counts.append(attack.reconstruct_table(blur, limit=40).count)
    assert 1 <= counts[0] <= counts[1]
    assert counts[1] == 40
    with pytest.raises(ArgumentError, match="unknown answer"):
        blurred(found.statistics, {"9Z": 1}, {"9Z": 1})


def test_missing_solver_says_how_to_get_it(monkeypatch: pytest.MonkeyPatch) -> None:
    """Without OR-tools the error is one line that says what to install."""
    from dither import _extras

    def absent(name: str) -> None:
        raise ImportError(name, name=name)

    monkeypatch.setattr(_extras, "import_module", absent)
    with pytest.raises(DitherError, match=r"OR-tools.*pip install 'dither\[attack\]'"):
        attack.reconstruct_table({"people": 1, "attributes": {"a": [0, 1]}, "statistics": []})
