"""Every function of rows with operands and constants of any sort, for the tests that draw plans."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from fractions import Fraction

from hypothesis import strategies as st

from dither.plan import expressions as ex
from dither.plan.functions.dates import PERIODS
from dither.plan.schema import Kind

PATTERNS = ("%", "a%", "%a", "_", "%_%a", "a\\%%", "", "%é_", "\\\\%", "%'%", "😀z", "%a%B%")
EXPRESSIONS = (
    *("^a", "a$", "a|B", "[^a]", "^[A-Z]", "[0-9]{2}", "(?:a|é)+$", "^.?$", "^$", "\\\\", "😀"),
    *("\\d", "\\W\\s*", "a{2,}", "[a-zé]z"),
)
FORMATS = ("%Y-%m-%d", "%Y-%m", "%H:%M", "%j", "%G-W%V", "at %F %T, 100%%", "%u%w", "%S")
TYPES = tuple(kind.value for kind in Kind)
BASES = (Fraction(2), Fraction(10), Fraction(1, 2))

OPTIONS: Mapping[str, st.SearchStrategy[tuple[object, ...]]] = {
    "round": st.sampled_from([0, 1, 2, 15, -1, -2, -15]).map(lambda n: (n,)),
    "log": st.sampled_from(BASES).map(lambda base: (base,)),
    "trim": st.tuples(
        st.sampled_from(["both", "leading", "trailing"]), st.sampled_from([" ", "a", "é 'B"])
    ),
    "replace": st.tuples(
        st.sampled_from(["a", "é", "aB", " ", "'"]), st.sampled_from(["", "B", "aa", "a\\1$"])
    ),
    "like": st.sampled_from(PATTERNS).map(lambda p: (p,)),
    "regular expression": st.sampled_from(EXPRESSIONS).map(lambda p: (p,)),
    "date difference": st.sampled_from(PERIODS).map(lambda p: (p,)),
    "interval": st.tuples(
        st.sampled_from([0, 1, -1, 30, -31, 400, -5000, 10**5]),
        st.sampled_from(["day", "month", "second"]),
    ),
    "format of time": st.sampled_from(FORMATS).map(lambda f: (f,)),
    "cast": st.sampled_from(TYPES).map(lambda t: (t,)),
}
"""The constants of the functions that have some."""

NUMBERS = ("round", "sqrt", "ln", "log", "exp", "power", "length", "position", "date difference")
TEXTS = ("trim", "replace", "concat", "format of time")
TRUTHS = ("contains", "starts with", "ends with", "like", "regular expression")
DAYS = ("interval",)
"""The functions by what they give, but for ``cast``, which gives anything."""

Operands = Mapping[str, st.SearchStrategy[ex.Expression]]


def operands(
    numbers: st.SearchStrategy[ex.Expression],
    texts: st.SearchStrategy[ex.Expression],
    days: st.SearchStrategy[ex.Expression],
) -> Operands:
    """What a function's operands are drawn from, by what it takes."""
    return {
        "number": numbers,
        "real": numbers,
        "text": texts,
        "date": days,
        "any": st.one_of(numbers, texts, days),
    }


def calls(names: tuple[str, ...], drawn: Operands) -> st.SearchStrategy[ex.Expression]:
    """A call of one of these functions."""
    return st.one_of([_call(name, drawn) for name in names])


def casts(target: Kind, drawn: Operands) -> st.SearchStrategy[ex.Expression]:
    """Anything as a kind."""
    return st.builds(lambda x: ex.Call("cast", (x,), (target.value,)), drawn["any"])


def _call(name: str, drawn: Operands) -> st.SearchStrategy[ex.Expression]:
    takes = ex.FUNCTIONS[name].takes
    make: Callable[..., ex.Expression] = lambda xs, options: ex.Call(name, xs, options)  # noqa: E731
    given = st.tuples(*(drawn[kind] for kind in takes))
    if name == "concat":
        # What is joined of what is joined is read as one.
        part = drawn["text"].filter(lambda x: not (isinstance(x, ex.Call) and x.function == name))
        given = st.lists(part, min_size=2, max_size=3).map(tuple)
    return st.builds(make, given, OPTIONS.get(name, st.just(())))
