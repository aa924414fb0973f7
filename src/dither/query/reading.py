"""Reading fields of a policy, one by one, with errors that name the field."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from fractions import Fraction
from typing import Any, overload

from dither.errors import ArgumentError, PolicyError, nearest
from dither.numeric.rational import exact

__all__ = ["Reader"]


class Reader:
    """Takes fields out of one section of a policy; ``finish`` refuses what nobody took."""

    def __init__(self, body: Any, where: str) -> None:
        if not isinstance(body, Mapping):
            raise PolicyError(f"{where} must be a table of fields, [{where}]")
        if not all(isinstance(field, str) for field in body):
            raise PolicyError(f"{where}: the names of fields must be texts")
        self.where = where
        self._body = dict(body)
        self._known: list[str] = []

    def take(self, field: str) -> Any:
        """The raw value of a field, or ``None``."""
        self._known.append(field)
        return self._body.get(field)

    def name(self, field: str) -> str:
        """The field's full name, for messages."""
        return field if self.where == "the policy" else f"{self.where}.{field}"

    def section(self, field: str, *, required: bool = False) -> Mapping[str, Any]:
        """A section below this one."""
        body = self.take(field)
        if body is None:
            if required:
                raise PolicyError(f"the policy has no [{self.name(field)}]")
            return {}
        if not isinstance(body, Mapping):
            raise PolicyError(f"{self.name(field)} must be a section, [{self.name(field)}]")
        return body

    def required_text(self, field: str) -> str:
        """A text that must be there."""
        value = self.text(field)
        if value is None:
            raise PolicyError(f"{self.name(field)} is missing")
        return value

    def text(self, field: str) -> str | None:
        """A text that is not empty."""
        value = self.take(field)
        if value is not None and (not isinstance(value, str) or not value.strip()):
            raise PolicyError(f"{self.name(field)} must be a text that is not empty")
        return value

    def choice(self, field: str, options: Sequence[str], default: str) -> str:
        """One of a few words."""
        value = self.text(field) or default
        if value not in options:
            raise PolicyError(
                f"{self.name(field)} has no option {value!r}" + nearest(value, options)
            )
        return value

    def flag(self, field: str, default: bool) -> bool:
        """True or false."""
        value = self.take(field)
        if value is None:
            return default
        if not isinstance(value, bool):
            raise PolicyError(f"{self.name(field)} must be true or false")
        return value

    def whole(self, field: str, most: int = 2**31) -> int | None:
        """A whole number from 1 to ``most``."""
        value = self.take(field)
        if value is None:
            return None
        if isinstance(value, bool) or not isinstance(value, int) or not 1 <= value <= most:
            shown = "2^31" if most == 2**31 else str(most)
            raise PolicyError(f"{self.name(field)} must be a whole number from 1 to {shown}")
        return value

    @overload
    def number(self, field: str, default: Fraction) -> Fraction: ...
    @overload
    def number(self, field: str, default: None = None) -> Fraction | None: ...
    def number(self, field: str, default: Fraction | None = None) -> Fraction | None:
        """A finite number, exact."""
        value = self.take(field)
        if value is None:
            return default
        return self.exact(value, field)

    def exact(self, value: Any, field: str) -> Fraction:
        """Turn a declared number into a rational."""
        try:
            return exact(value, self.name(field))
        except ArgumentError:
            raise PolicyError(f"{self.name(field)} must be a finite number") from None

    def names(self, field: str) -> tuple[str, ...]:
        """A list of texts, none twice."""
        return tuple(self.listed(field, str) or ())

    def listed(self, field: str, kind: type | None = None) -> list[Any] | None:
        """A list that is not empty, no element twice."""
        value = self.take(field)
        if value is None:
            return None
        if not isinstance(value, list | tuple) or not value:
            raise PolicyError(f"{self.name(field)} must be a list that is not empty")
        if kind is not None and not all(isinstance(v, kind) for v in value):
            raise PolicyError(f"{self.name(field)} must be a list of texts")
        if any(isinstance(v, list | tuple | Mapping) for v in value):
            raise PolicyError(
                f"{self.name(field)} must be a list of plain values, none in it a list"
            )
        # True equals 1 in Python, so kinds are compared too.
        if len({(type(v), v) for v in value}) < len(value):
            raise PolicyError(f"{self.name(field)} names a value twice")
        return list(value)

    def finish(self) -> None:
        """Refuse fields that mean nothing here.

        Raises
        ------
        PolicyError
            Naming the first one and the nearest field that exists.
        """
        for field in self._body:
            if field not in self._known:
                raise PolicyError(
                    f"{self.where} has an unknown field {field!r}" + nearest(field, self._known)
                )
