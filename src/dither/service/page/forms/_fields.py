"""The fields of a form, read off the method that it calls: its signature and its docstring.

So a form cannot ask for what the method does not take, nor have another default, and a parameter
that is new in Python is new on the page.
"""

from __future__ import annotations

import inspect
import math
import re
from collections.abc import Callable, Collection, Iterator, Mapping
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

from dither.errors import ArgumentError

__all__ = ["FormField", "fields_of", "read_fields", "written"]


@dataclass(frozen=True, slots=True)
class FormField:
    """One parameter, as a form asks for it.

    Parameters
    ----------
    name : str
        As in Python.
    kind : str
        ``"column"``, ``"columns"``, ``"text"``, ``"number"``, ``"numbers"``, ``"whole"``,
        ``"choice"``, ``"flag"``, ``"levels"``, ``"rules"``, ``"shares"`` or ``"tables"``.
    default : str
        What the field holds at first; empty where it may be left out.
    required : bool
    choices : tuple of str
        Of a choice.
    """

    name: str
    kind: str
    default: str = ""
    required: bool = False
    choices: tuple[str, ...] = ()


_TYPES: tuple[tuple[str, str], ...] = (
    (r"\{.*\}.*", "choice"),
    (r"(list|sequence) of str(, optional)?", "columns"),
    (r"list of str or mapping(, optional)?", "rules"),
    (r"sequence of float", "numbers"),
    (r"bool", "flag"),
    (r"\(first, second\), optional", "levels"),
    (r"mapping of level to number(, optional)?", "shares"),
    (r"(list of lists of str, or int|int, list of lists of str, or mapping .*)", "tables"),
    (r"int or mapping of str to int", "whole"),
    (r"int(, optional)?", "whole"),
    (r"(float|number)(, optional)?", "number"),
    (r"str(, optional)?", "text"),
)
"""What a docstring says of a parameter's type, and how a form asks for one."""

FLAGS = ("no", "yes")

COLUMNS = frozenset({"x", "y", "by", "time", "strata", "weights"})
"""Texts that name a column."""


def fields_of(method: Callable[..., Any], leave_out: Collection[str] = ()) -> tuple[FormField, ...]:
    """The fields of a form for a method.

    Parameters
    ----------
    method : callable
        With a numpydoc docstring.
    leave_out : collection of str
        Parameters that are asked for elsewhere, or in Python alone.

    Raises
    ------
    LookupError
        A parameter is of a type that no field asks for.

    Examples
    --------
    >>> from dither.inference.tables._table import Inference
    >>> [(field.name, field.kind, field.default) for field in fields_of(Inference.mean)]
    [('x', 'column', ''), ('shape', 'choice', 'any'), ('null', 'number', '0')]
    """
    said = dict(_said(method))
    found = []
    for name, parameter in inspect.signature(method).parameters.items():
        if name == "self" or name in leave_out:
            continue
        kind = next((k for form, k in _TYPES if re.fullmatch(form, said[name])), None)
        if kind is None:
            raise LookupError(f"{method.__name__}: no field asks for {name} ({said[name]})")
        if kind == "text" and name in COLUMNS:
            kind = "column"
        choices = tuple(re.findall(r'"([^"]+)"', said[name])) if kind == "choice" else ()
        choices = FLAGS if kind == "flag" else choices
        required = parameter.default is parameter.empty
        default = "" if required else _shown(parameter.default)
        found.append(FormField(name, kind, default, required, choices))
    return tuple(found)


def _said(method: Callable[..., Any]) -> Iterator[tuple[str, str]]:
    """Each parameter's type, as the docstring has it."""
    text = inspect.getdoc(method) or ""
    _, _, rest = text.partition("Parameters\n----------\n")
    for line in rest.partition("\n\n")[0].splitlines():
        if line and not line.startswith(" "):
            names, _, kind = line.partition(" : ")
            yield from ((name.strip(), kind) for name in names.split(","))


def _shown(default: Any) -> str:
    if default is None or default == ():
        return ""
    if isinstance(default, bool):
        return FLAGS[default]
    if isinstance(default, tuple | list):
        return ", ".join(str(one) for one in default)
    if isinstance(default, float) and default.is_integer():
        return str(int(default))
    return str(float(default)) if isinstance(default, Fraction) else str(default)


def read_fields(fields: tuple[FormField, ...], given: Mapping[str, Any]) -> dict[str, Any]:
    """The arguments of a form that was filled in; what is as it was is left to the method.

    Parameters
    ----------
    fields : tuple of FormField
    given : mapping of str to str

    Returns
    -------
    dict
        Plain data, as a question's recipe takes it.

    Raises
    ------
    ArgumentError
        A field is missing, or holds something else; none of what was written is quoted.
    """
    found: dict[str, Any] = {}
    for field in fields:
        text = given.get(field.name, "").strip()
        if not text and field.required:
            raise ArgumentError(f"{field.name} is missing")
        if text and text != field.default:
            found[field.name] = _READ[field.kind](field, text)
    return found


def _text(field: FormField, text: str) -> str:
    return text


def _choice(field: FormField, text: str) -> str:
    if text not in field.choices:
        raise ArgumentError(f"{field.name} must be one of {', '.join(field.choices)}")
    return text


def _flag(field: FormField, text: str) -> bool:
    return _choice(field, text) == FLAGS[True]


def _whole(field: FormField, text: str) -> int:
    if not re.fullmatch(r"-?[0-9]{1,9}", text):
        raise ArgumentError(f"{field.name} must be a whole number")
    return int(text)


def _number(field: FormField, text: str) -> float:
    return _float(field.name, text)


def _float(name: str, text: str) -> float:
    text = text.strip().replace("−", "-")
    if not _NUMBER.fullmatch(text) or not math.isfinite(float(text)):
        raise ArgumentError(f"{name} must be a number")
    return float(text)


_NUMBER = re.compile(r"[+-]?([0-9]{1,40}(\.[0-9]{0,40})?|\.[0-9]{1,40})([eE][+-]?[0-9]{1,3})?")


def _numbers(field: FormField, text: str) -> list[float]:
    return [_float(field.name, one) for one in _pieces(text)]


def _columns(field: FormField, text: str) -> list[str]:
    return _pieces(text)


def _levels(field: FormField, text: str) -> Any:
    pieces = _pieces(text)
    if len(pieces) != 2:
        raise ArgumentError(f"{field.name} must be two levels with a comma between them")
    return {"tuple": [_level(one) for one in pieces]}


def _shares(field: FormField, text: str) -> Any:
    pairs = [one.rpartition("=") for one in _pieces(text)]
    if not all(mark for _, mark, _ in pairs):
        raise ArgumentError(f"{field.name} must be levels with shares, such as a = 0.5, b = 0.5")
    return {"mapping": [[_level(a.strip()), _float(field.name, b)] for a, _, b in pairs]}


def _tables(field: FormField, text: str) -> Any:
    if re.fullmatch(r"[0-9]{1,3}", text):
        return int(text)
    return [_pieces(one) for one in text.split(";") if one.strip()]


def _rules(field: FormField, text: str) -> list[str]:
    return [one.strip() for one in re.split("[;；]", text) if one.strip()]


def _pieces(text: str) -> list[str]:
    return [one.strip() for one in re.split("[,，、]", text) if one.strip()]


def _level(text: str) -> str | int:
    """A level as columns hold it: whole numbers are numbers, unless they are quoted."""
    if len(text) > 1 and text[0] == text[-1] == '"':
        return text[1:-1]
    return int(text) if re.fullmatch(r"-?[0-9]{1,15}", text) else text


_READ: Mapping[str, Callable[[FormField, str], Any]] = {
    "text": _text,
    "column": _text,
    "choice": _choice,
    "flag": _flag,
    "whole": _whole,
    "number": _number,
    "numbers": _numbers,
    "columns": _columns,
    "levels": _levels,
    "rules": _rules,
    "shares": _shares,
    "tables": _tables,
}


def written(field: FormField, value: Any) -> str | None:
    """An argument as somebody would have typed it; None where no text is read as it.

    Examples
    --------
    >>> written(FormField("levels", "levels"), {"tuple": ["a", "1"]})
    'a, "1"'
    >>> written(FormField("x", "column"), ["a"]) is None
    True
    """
    try:
        text = FLAGS[value] if field.kind == "flag" else _written(value)
        if field.kind == "tables" and isinstance(value, list):
            text = "; ".join(", ".join(one) for one in value)
        if field.kind == "rules":
            text = "; ".join(value)
        same = text == field.default or _alike(_READ[field.kind](field, text), value)
    except (ArgumentError, TypeError, ValueError, ArithmeticError):
        return None
    return text if same else None


def _written(value: Any) -> str:
    match value:
        case {"tuple": list(inner)} | list(inner):
            return ", ".join(map(_level_text, inner))
        case {"mapping": list(pairs)}:
            return ", ".join(f"{_level_text(level)} = {_written(share)}" for level, share in pairs)
        case {"number": str(text)}:
            return text
        case float() if value.is_integer():
            return str(int(value))
    return str(value)


def _level_text(value: Any) -> str:
    # A level that is a text and looks like a number stands in quotes.
    quoted = isinstance(value, str) and re.fullmatch(r"-?[0-9]{1,15}", value)
    return f'"{value}"' if quoted else _written(value)


def _alike(read: Any, value: Any) -> bool:
    """Whether two arguments say the same, however each was sent."""
    match read, value:
        case (_, {"number": str(text)}):
            return _alike(read, Fraction(text))
        case ({"tuple": list(a)} | list(a), {"tuple": list(b)} | list(b)):
            return len(a) == len(b) and all(map(_alike, a, b))
        case ({"mapping": list(a)}, {"mapping": list(b)}):
            return _alike(a, b)
        case (bool(), _) | (_, bool()):
            return read is value
        case (int() | float(), int() | float() | Fraction()):
            return Fraction(str(read)) == Fraction(str(value))
    return type(read) is type(value) and read == value
