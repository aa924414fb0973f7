"""``[quotas]``: whom it limits and by how much, and what cannot be one."""

from __future__ import annotations

from fractions import Fraction as F

import pytest

from dither.accounting import BudgetFilter
from dither.errors import ArgumentError, PolicyError
from dither.ledger.quotas._caps import QuestionQuota, UnlockedQuota, WindowQuota
from dither.policy._policy import read_policy
from query.query_data import policy

WEEK = {"every": "week", "epsilon": "0.05"}
WHOLE = {
    "most": {"epsilon": 1},
    "rate": WEEK,
    "unlock": {"every": "week", "parts": 52},
    "analysts": {
        "ana": {"epsilon": "0.5", "most": {"epsilon": ".1"}, "rate": WEEK},
        "ben": {"epsilon": 2, "delta": 0},
        "eve@hospital.org": {"epsilon": 1},
    },
    "groups": {"cardiology": {"members": ["ana", "ben"], "epsilon": 1, "rate": WEEK}},
    "purposes": {"audit": {"epsilon": "0.2"}},
}


def quotas(tmp_path, given, **budget):
    """What is read of a section, under a budget of 8 and 1e-6."""
    return read_policy(policy(tmp_path, quotas=given, budget=budget)).quotas


def test_who_asks_is_charged_to_what_limits_them(tmp_path):
    """Analyst, groups, purpose, each with what a question and a week may cost; and everybody's."""
    found = quotas(tmp_path, WHOLE)
    everybody = ["everybody@question", "everybody@week", "everybody@unlock"]
    cardiology = ["group:cardiology", "group:cardiology@week"]
    ana = ["analyst:ana", "analyst:ana@question", "analyst:ana@week"]
    assert list(found.asked_by("ana", "audit")) == [*everybody, *ana, *cardiology, "purpose:audit"]
    assert list(found.asked_by("ben", "audit")) == [
        *(*everybody, "analyst:ben", *cardiology, "purpose:audit")
    ]
    eve = found.asked_by("eve@hospital.org", "audit")
    assert list(eve) == [*everybody, "analyst:eve@hospital.org", "purpose:audit"]
    caps = found.caps
    assert caps["analyst:ben"] == BudgetFilter(2, 0)
    # Left out, delta is such a share as epsilon is, so that deltas add up as well.
    assert caps["analyst:ana"] == BudgetFilter(F(1, 2), F(1, 16 * 10**6))
    assert caps["analyst:ana@question"] == QuestionQuota(BudgetFilter(F(1, 10), F(1, 16 * 10**6)))
    assert isinstance(caps["group:cardiology@week"], WindowQuota)
    assert caps["everybody@unlock"] == UnlockedQuota(BudgetFilter(8, F(1, 10**6)), "week", 52)


def test_analysts_of_before_are_quotas(tmp_path):
    """``[analysts]`` is short for ``[quotas.analysts]``."""
    short = read_policy(policy(tmp_path, analysts=WHOLE["analysts"])).quotas
    assert short == quotas(tmp_path, {"analysts": WHOLE["analysts"]})
    with pytest.raises(PolicyError, match="write one of the two"):
        read_policy(policy(tmp_path, analysts={"a": {"epsilon": 1}}, quotas=WHOLE))


def test_members_may_ask_where_no_analyst_is_named(tmp_path):
    """A group names who they are, and nobody else opens the policy."""
    found = quotas(tmp_path, {"groups": {"g": {"members": ["ana", "ben"], "epsilon": 1}}})
    assert list(found.asked_by("ben", None)) == ["group:g"]
    with pytest.raises(PolicyError, match="unknown analyst 'bem'; did you mean 'ben'"):
        found.asked_by("bem", None)
    with pytest.raises(ArgumentError, match="caps no purposes"):
        found.asked_by("ben", "audit")
    with pytest.raises(ArgumentError, match=r"purpose must be given.*'audit'"):
        quotas(tmp_path, WHOLE).asked_by("ana", None)


ANA = {"epsilon": 1}
REFUSED = [
    ({"analysts": {"a": {"epsilon": 4}, "b": {"epsilon": "4.001"}}}, "analysts: epsilon adds up"),
    ({"groups": {g: {"members": ["a"], "epsilon": 5} for g in "ab"}}, "groups: epsilon adds up"),
    ({"purposes": {"a": {"epsilon": 8}, "b": {"epsilon": ".1"}}}, "purposes: epsilon adds up"),
    (
        {"analysts": {n: {"epsilon": 1, "delta": "6e-7"} for n in "ab"}},
        "analysts: delta adds up to 1.2e-6, above budget.delta = 1e-6",
    ),
    ({"analysts": {"a": {"epsilon": 0}}}, "quotas.analysts.a.epsilon must be above 0"),
    ({"analysts": {"a": {"epsilon": -1}}}, "quotas.analysts.a.epsilon must be above 0"),
    ({"analysts": {"a": {"epsilon": 10**30}}}, "quotas.analysts.a.epsilon must be .* at most"),
    ({"analysts": {"a": {"epsilon": 9}}}, "above the whole budget"),
    ({"analysts": {"a": {"epsilon": "nan"}}}, "must be a finite number"),
    ({"analysts": {"a:b": ANA}}, "must not hold a colon"),
    ({"analysts": {" ": ANA}}, "must not be empty"),
    ({"analysts": {"a@week": ANA}}, "must not end in @week"),
    ({"purposes": {"a@unlock": ANA}}, "a purpose must not end in @unlock"),
    ({"analysts": {"a": ANA | {"most": {"epsilon": 2}}}}, "a.most: above 1.*limit nothing"),
    ({"analysts": {"a": ANA | {"rate": {"epsilon": 1}}}}, "rate.every is missing"),
    ({"analysts": {"a": ANA | {"most": {}}}}, "most.epsilon is missing"),
    (
        {"analysts": {"a": ANA | {"rate": {"every": "hour", "epsilon": 1}}}},
        "rate.every has no option 'hour'",
    ),
    ({"analysts": {"a": ANA | {"rate": {"every": "week"}}}}, "rate.epsilon is missing"),
    ({"analysts": {"a": ANA | {"members": ["b"]}}}, "a has an unknown field 'members'"),
    ({"groups": {"g": {"epsilon": 1}}}, "must name at least one analyst: a quota for nobody"),
    ({"groups": {"g": {"epsilon": 1, "members": []}}}, "members must"),
    ({"groups": {"g": {"epsilon": 1, "members": "ana"}}}, "members must be a list"),
    (
        {"analysts": {"ana": ANA}, "groups": {"g": {"epsilon": 1, "members": ["anna"]}}},
        "no analyst 'anna' in the policy; did you mean 'ana'",
    ),
    ({"unlock": {"every": "week"}}, "unlock.parts is missing"),
    ({"unlock": {"parts": 3}}, "unlock.every is missing"),
    ({"unlock": {"every": "week", "parts": 0}}, "parts must be a whole number from 1 to 10000"),
    ({"unlock": {"every": "week", "parts": 10**9}}, "parts must be a whole number"),
    ({"first_come": 1}, "first_come must be true or false"),
    ({"analyst": {"a": ANA}}, "unknown field 'analyst'; did you mean 'analysts'"),
]


@pytest.mark.parametrize(("given", "words"), REFUSED)
def test_what_cannot_be_a_quota_is_refused(tmp_path, given, words):
    """By the full name of the field, with what would work."""
    with pytest.raises(PolicyError, match=words):
        quotas(tmp_path, given)


def test_first_come_lets_them_add_up_to_more(tmp_path):
    """Where the owner says so; and exactly the cap needs nobody's word."""
    both = {"a": {"epsilon": 5}, "b": {"epsilon": 5}}
    found = quotas(tmp_path, {"first_come": True, "analysts": both})
    assert set(found.caps) == {"analyst:a", "analyst:b"}
    quotas(tmp_path, {"analysts": {n: {"epsilon": "8/3"} for n in "abc"}})


def test_parts_are_for_a_budget_of_all_time(tmp_path):
    """Where each block has a budget there is a rate."""
    made = policy(
        tmp_path,
        budget={"per": "block"},
        visits={"block": {"column": "day", "every": "month"}},
        quotas={"unlock": {"every": "week", "parts": 3}},
    )
    with pytest.raises(PolicyError, match="each new block brings a budget of its own"):
        read_policy(made)
