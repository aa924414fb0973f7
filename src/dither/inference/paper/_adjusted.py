"""Several tests at once: p-values that are adjusted for how many there were.

Whatever is done with released p-values is post-processing, and costs nothing. With p_(1) <= ... <=
p_(m) the adjusted ones are

* Bonferroni: min(1, m·p): no true null is rejected with probability 1 - level, whatever ties the
  tests together;
* Holm: max over j <= i of min(1, (m - j + 1)·p_(j)): the same, and never larger;
* Benjamini and Hochberg: min over j >= i of min(1, m·p_(j)/j): of what is rejected the expected
  share of true nulls is at most the level, where p-values are independent or positively dependent;
* Benjamini and Yekutieli: that, times 1 + 1/2 + ... + 1/m: whatever ties them together.

Each needs p-values that are at most u with probability at most u under their nulls, as those of
this package are meant to be. Tests of one release share its noise: they are not independent.

Source. Holm, Scandinavian Journal of Statistics 1979; Benjamini and Hochberg, JRSS B 1995;
Benjamini and Yekutieli, Annals of Statistics 2001.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from dither import _checks as check
from dither._display import table
from dither._format import Printable, display_text, wrapped
from dither.errors import ArgumentError
from dither.inference.engine._inputs import Floats
from dither.inference.engine._result import PrivateEstimate, PrivateTest, p_text
from dither.inference.engine._tabulated import Tabulated

if TYPE_CHECKING:
    import polars as pl

__all__ = ["AdjustedTests", "adjust_pvalues"]

METHODS = ("holm", "bonferroni", "benjamini-hochberg", "benjamini-yekutieli")

_HOLDS = {
    "holm": "no true null is rejected, with probability 1 - level, however tests depend",
    "bonferroni": "no true null is rejected, with probability 1 - level, however tests depend",
    "benjamini-hochberg": (
        "of rejected nulls at most a share of the level is true, on average, where tests are "
        "independent or positively dependent"
    ),
    "benjamini-yekutieli": (
        "of rejected nulls at most a share of the level is true, on average, however tests depend"
    ),
}


@dataclass(frozen=True, eq=False)
class AdjustedTests(Tabulated, Printable):
    """Tests that were made together, with adjusted p-values.

    Parameters
    ----------
    method : str
    names : tuple of str
    pvalues, adjusted : array of float, shape (m,)
    """

    method: str
    names: tuple[str, ...]
    pvalues: Floats
    adjusted: Floats

    def rejects(self, level: float = 0.05) -> dict[str, bool]:
        """Which nulls are rejected at a level, by name.

        Parameters
        ----------
        level : float
            In (0, 1): the chance of any false rejection, or the false discovery rate.
        """
        most = check.number("level", level, above=0, below=1)
        return {n: bool(p <= most) for n, p in zip(self.names, self.adjusted, strict=True)}

    @property
    def frame(self) -> pl.DataFrame:
        """A Polars frame: test, pvalue, adjusted."""
        import polars as pl

        columns = {"test": list(self.names), "pvalue": self.pvalues, "adjusted": self.adjusted}
        return pl.DataFrame(columns)

    def _caption(self) -> str:
        return f"p-values of {len(self.names)} tests, adjusted by {self.method}"

    def summary(self) -> str:
        """A line for each test, and what the adjusted p-values promise."""
        rows = [
            [display_text(n), p_text(p).removeprefix("= "), p_text(a).removeprefix("= ")]
            for n, p, a in zip(self.names, self.pvalues, self.adjusted, strict=True)
        ]
        lines = table(["", "p", f"adjusted, {self.method}"], rows, left=1)
        told = f"rejecting what is adjusted to at most a level: {_HOLDS[self.method]}"
        return "\n".join([*lines, *wrapped(told)])


def adjust_pvalues(tests: Any, *, method: str = "holm") -> AdjustedTests:
    """Adjust the p-values of tests that were made together: post-processing, free of charge.

    Parameters
    ----------
    tests : mapping of str to result or number, sequence of them, or PrivateEstimate of several
        Results, whose ``pvalue`` is taken (of an estimate that of its null), or p-values. A result
        of several numbers gives one test each.
    method : {"holm", "bonferroni", "benjamini-hochberg", "benjamini-yekutieli"}
        The first two bound the chance of any false rejection, the others the false discovery rate.

    Returns
    -------
    AdjustedTests

    Raises
    ------
    ArgumentError
        There is no test, or a p-value is not a number in [0, 1].

    Examples
    --------
    >>> from dither import inference
    >>> found = inference.adjust_pvalues({"age": 0.01, "cost": 0.04, "days": 0.03})
    >>> found.adjusted.round(3).tolist(), found.rejects(0.05)
    ([0.03, 0.06, 0.06], {'age': True, 'cost': False, 'days': False})
    >>> inference.adjust_pvalues([0.01, 0.04, 0.03], method="benjamini-hochberg").adjusted.round(3)
    array([0.03, 0.04, 0.04])
    """
    kind = check.choice("method", method, METHODS)
    read = list(_tests_in(tests))
    if not read:
        raise ArgumentError("tests must hold at least one result or p-value")
    names = tuple(name for name, _ in read)
    pvalues = np.array([check.number("tests", p, least=0, most=1) for _, p in read])
    m = pvalues.size
    order = np.argsort(pvalues, kind="stable")
    ranks = np.arange(1, m + 1)
    rising = pvalues[order]
    if kind == "bonferroni":
        found = m * rising
    elif kind == "holm":
        found = np.maximum.accumulate((m - ranks + 1) * rising)
    else:
        times = float(np.sum(1.0 / ranks)) if kind == "benjamini-yekutieli" else 1.0
        found = np.minimum.accumulate((times * m / ranks * rising)[::-1])[::-1]
    adjusted = np.empty(m)
    adjusted[order] = np.minimum(found, 1.0)
    return AdjustedTests(kind, names, pvalues, adjusted)


def _tests_in(tests: Any) -> Iterator[tuple[str, Any]]:
    """Each test's name and p-value."""
    if isinstance(tests, PrivateEstimate | PrivateTest):
        yield from _of("", tests)
    elif isinstance(tests, Mapping):
        for name, one in tests.items():
            yield from _of(str(name), one)
    elif isinstance(tests, np.ndarray) or (
        isinstance(tests, Sequence) and not isinstance(tests, str | bytes)
    ):
        for place, one in enumerate(tests, 1):
            yield from _of("" if hasattr(one, "title") else f"test {place}", one)
    else:
        raise ArgumentError("tests must be results or p-values: a mapping by name, or a sequence")


def _of(name: str, one: Any) -> Iterator[tuple[str, Any]]:
    if isinstance(one, PrivateEstimate):
        for part, p in zip(one.names or ("",), np.reshape(one.pvalue, -1), strict=True):
            told = ": ".join(text for text in (name, part) if text)
            yield told or one.title, float(p)
    elif isinstance(one, PrivateTest):
        yield name or one.title, one.pvalue
    elif isinstance(one, np.generic):
        yield name, one.item()
    else:
        yield name, one
