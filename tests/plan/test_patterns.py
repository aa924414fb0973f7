"""Patterns: what LIKE means, letter by letter, and the form that no matcher goes back in."""

from __future__ import annotations

import re

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from dither.plan import expressions as ex
from dither.plan.functions.matchers import in_python, one_pass, ways
from dither.plan.functions.patterns import Pattern, of_like, of_regexp

LETTERS = st.text(st.sampled_from("ab%_\\\n😀"), max_size=9)
PATTERNS = st.lists(
    st.sampled_from(["%", "_", "a", "b", "ab", "\\%", "\\_", "\\\\", "\n", "😀", "%%"]), max_size=7
).map("".join)


def like(text: str, pattern: str) -> bool:
    """LIKE by its definition: every way to split the text, tried one after the other."""
    if not pattern:
        return not text
    first, rest = pattern[0], pattern[1:]
    if first == "%":
        return any(like(text[i:], rest) for i in range(len(text) + 1))
    if first == "\\":
        first, rest = rest[0], rest[1:]
    elif first == "_":
        return bool(text) and like(text[1:], rest)
    return text[:1] == first and like(text[1:], rest)


def passed(pattern: Pattern, text: str) -> bool:
    """What the form for Java finds: Python's grammar differs in how code points are written."""
    form = one_pass(pattern)
    assert form is not None
    form = form.replace(r"\z", r"\Z")
    form = re.sub(r"\\x\{([0-9a-f]+)\}", lambda found: f"\\U{int(found[1], 16):08x}", form)
    return re.search(form, text) is not None


@settings(max_examples=600, deadline=None)
@given(LETTERS, PATTERNS)
def test_like_is_what_it_says(text: str, pattern: str) -> None:
    """As it is run for declared values, and in the form that Spark runs."""
    wanted = like(text, pattern)
    assert (in_python(of_like(pattern)).search(text) is not None) == wanted
    assert passed(of_like(pattern), text) == wanted


@settings(max_examples=600, deadline=None)
@given(LETTERS, st.data())
def test_regular_expressions_are_those_of_python(text: str, data: st.DataObject) -> None:
    """What is offered means what it means in Python, but for ``$`` before a last line's end."""
    atoms = ["a", "b", ".", "[ab]", "[^a]", "(?:a|b)", "(a|bb)", "\\d", "\\W", "\\n", "%", "\\\\"]
    signs = ["", "", "", "*", "+", "?", "{2}", "{1,2}", "{1,}"]
    parts = st.tuples(st.sampled_from(atoms), st.sampled_from(signs)).map("".join)
    body = data.draw(st.lists(parts, min_size=1, max_size=4).map("".join))
    pattern = data.draw(st.sampled_from(["", "^"])) + body + data.draw(st.sampled_from(["", "$"]))
    wanted = re.search(pattern.replace("$", r"\Z"), text, re.ASCII) is not None
    assert (in_python(of_regexp(pattern)).search(text) is not None) == wanted
    if one_pass(of_regexp(pattern)) is not None:
        assert passed(of_regexp(pattern), text) == wanted


@pytest.mark.parametrize(
    "pattern",
    ["(a+)+$", "(a|a)*b", "a*a*b", "(?:a|b|ab)+c", "x.*y", "(a|aa){30}", "(?:a{0,20}){0,20}"],
)
def test_what_could_run_for_ever_has_no_such_form(pattern: str) -> None:
    """Repetitions without end, and those of many ways, are for linear matchers alone."""
    assert one_pass(of_regexp(pattern)) is None


@pytest.mark.parametrize(
    "pattern", ["^C5[0-9]", "(a|b){1,3}x", "[0-9]{1,30}$", "^a", "\\d{4}-\\d{2}"]
)
def test_what_is_short_has_one(pattern: str) -> None:
    """Classes of fixed length, and a few ways."""
    assert one_pass(of_regexp(pattern)) is not None
    assert ways(of_regexp(pattern)) <= 10_000


def test_a_gap_is_not_entered_again() -> None:
    """Each run of letters stands with the gap before it in a group that keeps what it took."""
    assert one_pass(of_like("%a_%b")) == r"\A(?>[\s\S]*?a[\s\S])(?>[\s\S]*?b\z)"


def test_text_at_the_limit_of_what_is_joined() -> None:
    """One letter more is NULL, also of what replaces."""
    joined = ex.FUNCTIONS["concat"].meaning
    assert len(joined("a" * 65_535, "b")) == 65_536  # type: ignore[arg-type]
    assert joined("a" * 65_536, "b") is None
    replaced = ex.FUNCTIONS["replace"].meaning
    assert replaced("a" * 32_769, "a", "bb") is None
    assert replaced("a" * 99_999, "a", "b") == "b" * 99_999
