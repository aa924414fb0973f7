"""Questions of inference as a terminal writes them: ``rate(falls, years, arm, per=1000)``."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import click

if TYPE_CHECKING:
    from dither.inference.tables._question import InferenceQuestion
    from dither.inference.tables._table import Inference

__all__ = ["read_written"]


@dataclass(frozen=True)
class WrittenForm:
    """How a question is written: expressions, then options as ``name=value``.

    Parameters
    ----------
    ask : callable
        Of an `Inference`, the expressions, and the options.
    least, most : int
        How many expressions.
    options : tuple of str
        Names of what may be said beside, as in Python.
    needed : str
        An option that must be given.
    """

    ask: Callable[..., Any]
    least: int
    most: int
    options: tuple[str, ...] = ()
    needed: str = ""


def _named(method: str, least: int, most: int, *options: str, needed: str = "") -> WrittenForm:
    """A form of the name that the method has in Python."""

    def ask(asked: Inference, *parts: str, **given: Any) -> Any:
        return getattr(asked, method)(*parts, **given)

    return WrittenForm(ask, least, most, options, needed)


def _standardised(asked: Inference, y: str, t: str, strata: str, *by: str, **given: Any) -> Any:
    weights = given.pop("weights")
    return asked.standardised_rate(y, t, strata, weights, *by, **given)


def _ratio(asked: Inference, y: str, t: str, strata: str, *by: str, **given: Any) -> Any:
    return asked.standardised_ratio(y, t, strata, by=by[0] if by else None, **given)


FORMS: dict[str, WrittenForm] = {
    "mean": WrittenForm(lambda asked, x: asked.mean(x), 1, 1),
    "proportion": WrittenForm(lambda asked, x: asked.proportion(x), 1, 1),
    "difference": WrittenForm(lambda asked, x, by: asked.difference(x, by=by), 2, 2),
    "independence": WrittenForm(lambda asked, x, y: asked.test_independence(x, y), 2, 2),
    "fit": WrittenForm(lambda asked, x: asked.goodness_of_fit(x), 1, 1),
    "median": WrittenForm(lambda asked, x: asked.median(x), 1, 1),
    "quantile": WrittenForm(lambda asked, x, q: asked.quantile(x, _share(q)), 2, 2),
    "kaplan_meier": _named("kaplan_meier", 2, 3, "bins", "censored", "null"),
    "logrank_test": _named("logrank_test", 3, 3, "bins", "censored"),
    "rate": _named("rate", 2, 3, "family", "per", "null"),
    "rate_ratio": _named("rate_ratio", 3, 3, "family", "null"),
    "standardised_rate": WrittenForm(
        _standardised, 3, 4, ("weights", "family", "per", "null"), needed="weights"
    ),
    "standardised_ratio": WrittenForm(_ratio, 3, 4, ("reference", "weights", "family", "null")),
    "mantel_haenszel": _named("mantel_haenszel", 3, 3, "measure", "null"),
    "f_oneway": _named("f_oneway", 2, 2, "equal_var"),
    "weighted_mean": _named("weighted_mean", 2, 2, "null"),
    "weighted_proportion": _named("weighted_proportion", 2, 2, "null"),
    "weighted_total": _named("weighted_total", 2, 2, "null"),
    "logistic_regression": _named("logistic_regression", 1, 1),
    "describe": WrittenForm(
        lambda asked, by=None, *columns, **given: asked.describe(by, columns, **given),
        0,
        99,
        ("bins",),
    ),
}
"""By name, as in Python where it is not written out."""

SHAPES = (
    "mean(x), median(x), quantile(x, 0.9), proportion(condition), difference(x, group), "
    "independence(x, y), fit(x), kaplan_meier(time, event, arm), logrank_test(time, event, arm), "
    "rate(events, time, group), rate_ratio(events, time, group), "
    "standardised_rate(events, time, stratum, weights='level: number, ...'), "
    "standardised_ratio(events, time, stratum, reference='level: number, ...'), "
    "mantel_haenszel(outcome, exposed, stratum), f_oneway(x, group), weighted_mean(x, weight), "
    "weighted_proportion(condition, weight), weighted_total(x, weight), describe(group), "
    "logistic_regression(y ~ x), or a formula y ~ x"
)

_NUMBERS = frozenset({"bins", "per", "null"})
_LEVELS = frozenset({"weights", "reference"})
_ANSWERS = {"yes": True, "true": True, "no": False, "false": False}
_OPTIONS = frozenset(option for form in FORMS.values() for option in form.options)


def read_written(text: str, asked: Inference) -> InferenceQuestion:
    """A question by its form."""
    found = re.fullmatch(r"\s*(\w+)\s*\((.*)\)\s*", text, re.DOTALL)
    if found is None or found[1] not in FORMS:
        if "~" in text:
            return asked.regression(text)
        raise click.UsageError(f"QUESTION must be {SHAPES}")
    form, name = FORMS[found[1]], found[1]
    parts, given = _apart(found[2]), {}
    while parts and (option := re.fullmatch(r"(\w+)\s*=\s*([^=].*)", parts[-1], re.DOTALL)):
        if option[1] not in form.options:
            # A condition, such as region = 'north'; or, where nothing is left to be one, an option
            # of another form.
            if option[1] not in _OPTIONS or len(parts) <= form.most:
                break
            known = ", ".join(form.options) or "no options"
            raise click.UsageError(f"{name} takes {known}, and not {option[1]}")
        given[option[1]] = _option(option[1], option[2].strip())
        parts.pop()
    if parts == [""] and not form.least:
        parts = []
    if not form.least <= len(parts) <= form.most or not all(parts):
        few = f"{form.least}" if form.least == form.most else f"{form.least} or {form.most}"
        few = few if form.most < 99 else "columns"
        plural = "" if few == "columns" else f" expression{'s' * (form.most > 1)}"
        raise click.UsageError(f"{name} takes {few}{plural}")
    if form.needed and form.needed not in given:
        raise click.UsageError(f"{name} must have {form.needed}='level: number, ...'")
    return form.ask(asked, *parts, **given)  # type: ignore[no-any-return]


def _option(name: str, text: str) -> Any:
    """A value as Python would have it."""
    if name in _NUMBERS:
        return _number(text, f"{name} must be a number", int if name == "bins" else float)
    bare = text.strip("'\"")
    if name == "equal_var":
        if bare.lower() not in _ANSWERS:
            raise click.UsageError(f"{name} must be yes or no")
        return _ANSWERS[bare.lower()]
    return _levels(name, bare) if name in _LEVELS else bare


def _levels(name: str, text: str) -> dict[str, float]:
    """A number for each level; a level may have commas, as ranges have.

    Examples
    --------
    >>> _levels("weights", "[0, 40): 3, [40, 90]: 1")
    {'[0, 40)': 3.0, '[40, 90]': 1.0}
    """
    found: dict[str, float] = {}
    at, wanted = 0, f"{name} must be written as 'level: number, ...'"
    for one in re.finditer(r"\s*(.+?)\s*:\s*([0-9.eE+-]+)\s*(?:,|$)", text):
        if one.start() != at:
            break
        found[one[1]], at = _number(one[2], wanted), one.end()
    if not found or at != len(text):
        raise click.UsageError(wanted)
    return found


def _share(text: str) -> float:
    share: float = _number(text, "quantile takes a number and a share, quantile(x, 0.9)")
    return share


def _number(text: str, wanted: str, kind: Callable[[str], Any] = float) -> Any:
    try:
        return kind(text)
    except ValueError:
        raise click.UsageError(wanted) from None


def _apart(text: str) -> list[str]:
    """What commas separate, but for those in parentheses and in quotes.

    Examples
    --------
    >>> _apart("cost, region IN ('a,b', 'c')")
    ['cost', "region IN ('a,b', 'c')"]
    """
    parts, depth, quote = [""], 0, ""
    for sign in text:
        if quote:
            quote = "" if sign == quote else quote
        elif sign in "'\"":
            quote = sign
        elif sign in "()":
            depth += 1 if sign == "(" else -1
        elif sign == "," and not depth:
            parts.append("")
            continue
        parts[-1] += sign
    return [part.strip() for part in parts]
