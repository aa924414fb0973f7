"""What an owner is asked for a policy, in six steps: one description for a page and a terminal.

A question says where its answer stands in the policy, what kind of answer it takes, what is taken
where there is none, and, in each language's file beside this one, what it asks, what the answer
means and what happens if it is left out. Nothing is suggested from the data: a suggestion that was
made of rows would tell of them.
"""

from __future__ import annotations

import tomllib
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

from dither.blocks._calendar import EVERY
from dither.errors import ArgumentError, PolicyError
from dither.plan.schema import Kind
from dither.policy.steps._editing import TomlText
from dither.policy.steps._reading import listed, number, pair, whole

__all__ = ["QUESTIONS", "ROW", "STEPS", "PolicyQuestion", "answered", "asked", "kinds_for", "words"]

STEPS = ("schema", "unit", "columns", "limits", "budget", "people")

ROW = "(row)"
"""The answer where each row is another person. No column has a name in brackets by chance."""

KINDS = ("integer", "real", "text", "boolean", "date", "timestamp")


@dataclass(frozen=True, slots=True)
class PolicyQuestion:
    """One question.

    Parameters
    ----------
    key : str
        Of its words.
    step : str
        One of `STEPS`.
    of : str
        What is asked about: ``"policy"``, ``"table"``, ``"column"`` or ``"analyst"``.
    place : tuple of str
        Where the answer stands; ``"*"`` for the table, then for the column, or for the analyst.
    kind : str
        ``"text"``, ``"whole"``, ``"number"``, ``"choice"``, ``"pair"``, ``"list"`` or ``"flag"``.
    options : tuple of str
        Of a choice.
    default : str
        What is taken where it is left out, as it would be written.
    kinds : tuple of str
        Kinds of columns that it is asked of; of all where empty.
    """

    key: str
    step: str
    of: str
    place: tuple[str, ...]
    kind: str
    options: tuple[str, ...] = ()
    default: str = ""
    kinds: tuple[str, ...] = ()

    def path(self, *named: str) -> tuple[str, ...]:
        """Where the answer stands, of a table and its column, or of an analyst."""
        left = list(named)
        return tuple(left.pop(0) if part == "*" else part for part in self.place)

    def read(self, text: str, kind: Kind | None = None) -> Any:
        """The answer that a text gives; None of an empty one.

        Parameters
        ----------
        text : str
        kind : Kind, optional
            Of the column that is asked about.

        Raises
        ------
        ArgumentError
            It is none; says what would be.
        """
        text = text.strip()
        if not text:
            return None
        match self.kind:
            case "whole":
                return whole(self.key, text)
            case "number":
                return number(self.key, text)
            case "choice" if self.options and text not in self.options:
                raise ArgumentError(f"{self.key} must be one of {', '.join(self.options)}")
            case "flag":
                if text not in ("true", "false"):
                    raise ArgumentError(f"{self.key} must be true or false")
                return text == "true"
            case "pair":
                return pair(self.key, text, kind)
            case "list":
                return listed(self.key, text, kind)
        return text


ORDERED = ("integer", "real", "date", "timestamp")
LISTED = ("integer", "text", "date")

_ALL = [
    PolicyQuestion("source", "schema", "table", ("tables", "*", "source"), "text"),
    PolicyQuestion("type", "schema", "column", ("tables", "*", "columns", "*", "type"), "choice",
                   KINDS),
    PolicyQuestion("unit", "unit", "table", ("tables", "*", "unit"), "choice"),
    PolicyQuestion("units_at_least", "unit", "table", ("tables", "*", "units_at_least"), "whole"),
    PolicyQuestion("bounds", "columns", "column", ("tables", "*", "columns", "*", "bounds"),
                   "pair", kinds=ORDERED),
    PolicyQuestion("values", "columns", "column", ("tables", "*", "columns", "*", "values"),
                   "list", kinds=LISTED),
    PolicyQuestion("step", "columns", "column", ("tables", "*", "columns", "*", "step"),
                   "number", kinds=("real",)),
    PolicyQuestion("measure", "columns", "column", ("tables", "*", "columns", "*", "unit"),
                   "text", kinds=("integer", "real")),
    PolicyQuestion("nullable", "columns", "column", ("tables", "*", "columns", "*", "nullable"),
                   "flag", ("true", "false"), "true"),
    PolicyQuestion("max_rows", "limits", "table", ("tables", "*", "max_rows"), "whole",
                   default="1"),
    PolicyQuestion("max_groups", "limits", "table", ("tables", "*", "max_groups"), "whole",
                   default="1"),
    PolicyQuestion("epsilon", "budget", "policy", ("budget", "epsilon"), "number", default="1"),
    PolicyQuestion("delta", "budget", "policy", ("budget", "delta"), "number", default="0"),
    PolicyQuestion("block_column", "budget", "table", ("tables", "*", "block", "column"),
                   "choice"),
    PolicyQuestion("block_every", "budget", "table", ("tables", "*", "block", "every"), "choice",
                   EVERY, "month"),
    PolicyQuestion("lifetime", "budget", "policy", ("budget", "lifetime", "epsilon"), "number"),
    PolicyQuestion("quota", "people", "analyst", ("quotas", "analysts", "*", "epsilon"), "number"),
]  # fmt: skip

QUESTIONS: Mapping[str, PolicyQuestion] = {one.key: one for one in _ALL}
"""Every question by its key, in the order of the steps."""


@cache
def words(language: str = "en") -> Mapping[str, Mapping[str, str]]:
    """By question, and by step as ``step_KEY``: its words in a language.

    ``question``, ``meaning`` and ``left_out`` of a question; ``title`` and ``about`` of a step.
    """
    text = Path(__file__).with_name(f"{language}.toml").read_text(encoding="utf-8")
    found: Mapping[str, Mapping[str, str]] = tomllib.loads(text)
    return found


def kinds_for(held: TomlText, table: str, stored: Mapping[str, Kind | None]) -> dict[str, Kind]:
    """By column: the kind that it is read as, of those that are read."""
    found: dict[str, Kind] = {}
    columns = held.get(("tables", table, "columns"))
    declared = columns if isinstance(columns, Mapping) else {}
    for name in (*stored, *(one for one in declared if one not in stored)):
        body = declared.get(name)
        said = body.get("type") if isinstance(body, Mapping) else None
        kind = Kind(said) if said in KINDS else stored.get(name)
        if kind is not None:
            found[name] = kind
    return found


def _declared_unit(held: TomlText, table: str) -> tuple[str, str] | None:
    """The unit that names a table in ``[units]``: its name, and ``columns`` or ``rows``."""
    units = held.get(("units",))
    for name, body in units.items() if isinstance(units, Mapping) else ():
        for field in ("columns", "rows"):
            inner = body.get(field) if isinstance(body, Mapping) else None
            if isinstance(inner, Mapping) and table in inner:
                return name, field
    return None


def asked(held: TomlText, key: str, *named: str) -> str:
    """The answer that a policy has to a question, as it would be typed; empty where it has none."""
    question = QUESTIONS[key]
    if key == "unit":
        unit = _declared_unit(held, named[0])
        if unit is not None:
            value = held.get(("units", unit[0], unit[1], named[0]))
            return ROW if unit[1] == "rows" else _shown(value)
    if key == "quota" and held.get(question.path(*named)) is None:
        return _shown(held.get(("analysts", named[0], "epsilon")))
    return _shown(held.get(question.path(*named)))


def _shown(value: Any) -> str:
    if value is None or isinstance(value, Mapping):
        return ""
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, list):
        return ", ".join(map(_in_list, value))
    return str(value)


def _in_list(value: Any) -> str:
    text = _shown(value)
    return '"' + text.replace('"', '""') + '"' if set(text) & set('",') else text


def answered(
    held: TomlText, key: str, text: str, *named: str, kind: Kind | None = None
) -> TomlText:
    """The policy with an answer in it, and with what else must change where it does.

    Parameters
    ----------
    held : TomlText
    key : str
    text : str
        As somebody typed it; empty to leave it out.
    *named : str
        The table and the column, or the analyst.
    kind : Kind, optional
        Of the column.

    Raises
    ------
    ArgumentError
        It is no answer to this question.
    PolicyError
        The text of the policy must be changed by hand.
    """
    question = QUESTIONS[key]
    value = question.read(text, kind)
    if question.of != "policy" and len(named) < question.place.count("*"):
        raise ArgumentError("say of which table, column or person")
    match key:
        case "unit":
            return _with_unit(held, named[0], value)
        case "bounds" | "values" if value is not None:
            table = ("tables", named[0], "columns", named[1])
            for other in ("values", "bins") if key == "bounds" else ("bounds", "bins", "step"):
                if other != "bins" or key == "values":
                    held = held.with_value((*table, other), None)
        case "block_column" | "block_every":
            return _with_block(held, named[0], key, value)
        case "lifetime" if value is None:
            return held.with_value(("budget", "lifetime"), None)
        case "quota":
            return _with_quota(held, named[0], value)
        case "max_rows" | "max_groups" if value is None:
            # Where rows are somebody's, a policy has to say it.
            value = 1 if asked(held, "unit", *named) not in ("", ROW) else None
    return held.with_value(question.path(*named), value)


def _with_unit(held: TomlText, table: str, value: str | None) -> TomlText:
    unit, place = _declared_unit(held, table), ("tables", table)
    if unit is not None and unit[1] == "columns" and value not in (None, ROW):
        return held.with_value(("units", unit[0], "columns", table), value)
    if unit is not None:
        body: Any = held.get(("units", unit[0]))
        alone = len(body.get(unit[1])) == 1 and not (set(body) - {unit[1], "units_at_least"})
        if alone:
            held = held.without_section(("units", unit[0]))
        else:
            held = held.with_value(("units", unit[0], unit[1], table), None)
    if value is None or value == ROW:
        for field in ("unit", "max_groups", "max_rows", "max_join_rows", "max_groups_cap",
                      "max_rows_cap"):  # fmt: skip
            held = held.with_value((*place, field), None)
        if value == ROW:
            name = "person" if held.get(("units", "person")) is None else f"person of {table}"
            held = held.with_value(("units", name, "rows"), {table: 1})
        return held
    held = held.with_value((*place, "unit"), value)
    for field in ("max_groups", "max_rows"):
        if held.get((*place, field)) is None:
            held = held.with_value((*place, field), 1)
    return held


def _with_block(held: TomlText, table: str, key: str, value: str | None) -> TomlText:
    place = ("tables", table, "block")
    block = held.get(place)
    now = dict(block) if isinstance(block, Mapping) else {}
    if key == "block_every":
        if "column" not in now:
            raise PolicyError("name the column that says in which block a row is first")
        kept = {"column": now["column"], "every": value or QUESTIONS[key].default}
        return held.with_value(place, kept)
    if value is not None:
        kept = {k: v for k, v in now.items() if k != "column"} or {"every": "month"}
        held = held.with_value(place, {"column": value, **kept})
        return held.with_value(("budget", "per"), "block")
    held = held.with_value(place, None)
    tables = held.get(("tables",)) or {}
    if not any(isinstance(b, Mapping) and "block" in b for b in tables.values()):
        held = held.with_value(("budget", "per"), None)
        if held.get(("budget", "lifetime")) is not None:
            held = held.with_value(("budget", "lifetime"), None)
    return held


def _with_quota(held: TomlText, name: str, value: Any) -> TomlText:
    short = held.get(("analysts", name)) is not None
    place = ("analysts", name) if short else ("quotas", "analysts", name)
    if value is not None:
        return held.with_value((*place, "epsilon"), value)
    return held if held.get(place) is None else held.without_section(place)
