"""A question as a program asks it: what a person copies to go on in Python."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from decimal import Decimal
from fractions import Fraction
from typing import Any

__all__ = ["code", "decimal", "expression"]

WIDEST = 80
"""Characters of a line."""


def code(
    address: str,
    ask: Sequence[Any],
    price: Mapping[str, Any],
    *,
    purpose: str | None = None,
    token: str | None = None,
) -> str:
    """A program that asks the same of the same service.

    Parameters
    ----------
    address : str
        Of the policy at the service.
    ask : list
        The calls that make the question.
    price : mapping
        ``epsilon``, ``delta`` and ``confidence``, where the question has none of its own.
    purpose, token : str, optional

    Examples
    --------
    >>> print(code("https://h/v", [["sql", ["SELECT 1"], {}]], {"epsilon": "0.5"}, token="ab"))
    import dither as dt
    <BLANKLINE>
    session = dt.connect("https://h/v", key="env:DITHER_KEY")
    question = session.sql("SELECT 1")
    release = question.release(epsilon="0.5", token="ab")
    print(release.summary())
    """
    connected = [text(address), 'key="env:DITHER_KEY"']
    connected += [] if purpose is None else [f"purpose={text(purpose)}"]
    named = {name: decimal(price.get(name)) for name in ("epsilon", "delta", "confidence")}
    if named["epsilon"] is None:
        named = {}
    if named.get("confidence") in (None, "0.95"):
        named.pop("confidence", None)
    given = [f"{name}={_value(value)}" for name, value in (named | {"token": token}).items()]
    told = [one for one in given if not one.endswith("=None")]
    imports = ["import datetime", ""] if _has(ask, ("date", "time")) else []
    asking = f"release = question.release({', '.join(told)})"
    if len(asking) > WIDEST:
        asking = "release = question.release(\n    " + ",\n    ".join(told) + ",\n)"
    shown = "print(release.summary())" if _is_query(ask) else "print(release)"
    return "\n".join(
        [
            *imports,
            "import dither as dt",
            "",
            f"session = dt.connect({', '.join(connected)})",
            f"question = session{expression(ask)}",
            asking,
            shown,
        ]
    )


def expression(ask: Sequence[Any]) -> str:
    """The calls, as they follow ``session``.

    Examples
    --------
    >>> expression([["table", ["visits"], {}], ["filter", ["age > 4"], {}]])
    '.table("visits").filter("age > 4")'
    """
    made = []
    for name, args, named in ask:
        given = [_value(one) for one in args]
        given += [f"{key}={_value(one)}" for key, one in named.items() if one is not None]
        made.append(f".{name}({', '.join(given)})")
    return "".join(made)


def decimal(value: Any) -> str | None:
    """A number as people write it: its decimals where it has an end, else as it was sent.

    Examples
    --------
    >>> decimal("1/20"), decimal("1/3"), decimal("0.50"), decimal(0.95), decimal(None)
    ('0.05', '1/3', '0.5', '0.95', None)
    """
    if value is None:
        return None
    exact = Fraction(str(value))
    if 10**30 % exact.denominator or abs(exact) >= 10**15:
        return str(value)
    return f"{Decimal(exact.numerator) / Decimal(exact.denominator):f}"


def _is_query(ask: Sequence[Any]) -> bool:
    return any(name in ("sql", "agg") for name, _, _ in ask)


def text(value: str) -> str:
    """A text as a Python literal; one of several lines stands as it is."""
    tripled = value.replace("\\", "\\\\").replace('"""', '\\"\\"\\"')
    if "\n" in value and value.replace("\n", "").isprintable() and not value.endswith('"'):
        return f'"""{tripled}"""'
    escaped = repr(value)
    if escaped.startswith("'") and '"' not in value:
        return f'"{escaped[1:-1]}"'
    return escaped


def _value(value: Any) -> str:
    """An argument as it was sent, as a program writes it."""
    if isinstance(value, str):
        return text(value)
    if isinstance(value, list):
        return f"[{', '.join(map(_value, value))}]"
    if not isinstance(value, Mapping):
        return repr(value)
    ((tag, held),) = value.items()
    if tag in ("number", "decimal"):
        return text(str(held))
    if tag in ("date", "time"):
        return f"datetime.{'datetime' if tag == 'time' else 'date'}.fromisoformat({text(held)})"
    if tag == "tuple":
        return f"({', '.join(map(_value, held))}{',' if len(held) == 1 else ''})"
    if tag == "mapping":
        return "{" + ", ".join(f"{_value(k)}: {_value(v)}" for k, v in held) + "}"
    if tag == "rows":
        return f"session{expression(held)}"
    if tag == "bins":
        return f"dt.bins({_value(held[0])}, {_value(list(held[1]))})"
    name, operand, *condition = held
    where = f".where({_value(condition[0])})" if condition else ""
    return f"dt.{name}({_value(operand) if operand else ''}){where}"


def _has(value: Any, tags: Sequence[str]) -> bool:
    if isinstance(value, list):
        return any(_has(one, tags) for one in value)
    if isinstance(value, Mapping):
        return any(key in tags or _has(one, tags) for key, one in value.items())
    return False
