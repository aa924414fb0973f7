"""Secrets, which a policy names and never holds: ``"env:NAME"`` is read from the environment."""

from __future__ import annotations

import os

from dither.errors import PolicyError

__all__ = ["PREFIX", "Secret", "secret"]

PREFIX = "env:"
"""A text that begins so names a variable of the environment."""


class Secret:
    """A text that is shown by the name of where it came from.

    Neither ``repr`` nor ``str`` gives the text, so that no message and no traceback that shows
    variables holds it. ``reveal`` does, for the one call that needs it. Two of one text are equal.

    Examples
    --------
    >>> found = Secret("host=db password=swordfish", "env:HOSPITAL_DSN")
    >>> found, str(found)
    (<env:HOSPITAL_DSN>, '<env:HOSPITAL_DSN>')
    """

    __slots__ = ("_text", "shown")

    def __init__(self, text: str, shown: str) -> None:
        self._text = text
        self.shown = shown

    def reveal(self) -> str:
        """The text itself."""
        return self._text

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Secret) and other._text == self._text

    def __hash__(self) -> int:
        return hash(self._text)

    def __repr__(self) -> str:
        return f"<{self.shown}>"

    def __reduce__(self) -> str | tuple[object, ...]:
        raise TypeError("a secret is not written down")


def secret(text: str, where: str) -> Secret:
    """What a text stands for: ``env:NAME`` for the variable's content, any other for itself.

    Parameters
    ----------
    text : str
    where : str
        How messages call the field.

    Raises
    ------
    PolicyError
        Where the environment has no such variable; names the variable.
    """
    if not text.startswith(PREFIX):
        return Secret(text, "a secret")
    name = text.removeprefix(PREFIX)
    if not name:
        raise PolicyError(f"{where}: name a variable of the environment after 'env:'")
    found = os.environ.get(name, "")
    if not found.strip():
        raise PolicyError(
            f"{where}: the environment has no variable {name!r}; set it before the policy is opened"
        )
    return Secret(found, text)
