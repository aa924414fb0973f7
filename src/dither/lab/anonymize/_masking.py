"""Masking by pseudonyms, substitution, shuffling and truncation.

A mask hides the value that it replaces. It does not hide the person: the other columns stay. A
plain hash of a name hides nothing, since anybody can hash all names; HMAC-SHA-256 under a secret
key cannot be tried without it.
"""

from __future__ import annotations

import hmac
import os
from collections.abc import Callable, Sequence
from typing import Any

import polars as pl

from dither._checks import choice, whole
from dither.errors import ArgumentError
from dither.lab._frames import as_given, encode, names, one_column, read, secret_order, texts

__all__ = ["mapped", "new_key", "pseudonymize", "shuffle", "substitute", "truncate"]

_LEAST_KEY = 16


def new_key() -> bytes:
    """A key of 256 bits from the operating system. Keep it apart from the data.

    Returns
    -------
    bytes
        32 bytes, for `pseudonymize` and its kin. Who has it can undo or repeat them.

    Examples
    --------
    >>> len(new_key())
    32
    """
    return os.urandom(32)


def pseudonymize(
    column: object, key: bytes | None = None, *, purpose: str = "", digits: int = 32
) -> pl.Series:
    """Replace every value by a pseudonym: HMAC-SHA-256 of its text under a key, in hex.

    Parameters
    ----------
    column : Polars or pandas Series, or list
        NULL stays NULL, so that it is seen who has none.
    key : bytes, optional
        At least 16. The same key joins tables. Without one a fresh key is used and forgotten: then
        nobody, not even its maker, can link or undo the pseudonyms, unless by other columns.
    purpose : str
        Another purpose gives other pseudonyms under the same key.
    digits : int
        From 16 to 64, four bits each. Two of n values collide with probability below
        ``n**2 / 2**(4 digits + 1)``.

    Returns
    -------
    polars.Series
        Texts.

    Raises
    ------
    ArgumentError
        For a short key or digits out of range.

    Notes
    -----
    Not protected: how often a value occurs, and all other columns of its rows.

    Examples
    --------
    >>> found = pseudonymize(["ann", "bob", "ann", None], b"sixteen bytes or more")
    >>> found[0] == found[2] != found[1], found[3]
    (True, None)
    """
    digits = whole("digits", digits, 16, 64)
    digest = _digests(key)
    about = str(purpose).encode("utf-8", "surrogatepass")
    # The length keeps purpose and value apart, whatever either holds.
    head = len(about).to_bytes(8, "big") + about
    return mapped(column, lambda text: digest(head, text).hex()[:digits])


def substitute(column: object, choices: Sequence[str], key: bytes | None = None) -> pl.Series:
    """Replace every value by one of the choices, always the same under the same key.

    Parameters
    ----------
    column : Polars or pandas Series, or list
        NULL stays NULL.
    choices : sequence of str
        Made-up values of the same kind, such as first names; at least one. Where they are fewer
        than the values, several values share a choice.
    key : bytes, optional
        At least 16. Without one a fresh key is used and forgotten.

    Returns
    -------
    polars.Series
        Texts.

    Raises
    ------
    ArgumentError
        For no choices or a short key.

    Notes
    -----
    The choice is ``HMAC-SHA-256(key, value) mod len(choices)``, whose bias is below
    ``len(choices) / 2**256``. Not protected: how often a value occurs, and all other columns.

    Examples
    --------
    >>> found = substitute(["ann", "bob", "ann"], ["eve", "kim", "lou"], b"sixteen bytes or more")
    >>> found[0] == found[2], found.is_in(["eve", "kim", "lou"]).all()
    (True, True)
    """
    pool = list(choices)
    if not pool or not all(isinstance(one, str) for one in pool):
        raise ArgumentError("choices must be a list of texts, at least one")
    digest = _digests(key)
    return mapped(column, lambda text: pool[int.from_bytes(digest(b"", text), "big") % len(pool)])


def shuffle(frame: object, columns: str | Sequence[str]) -> Any:
    """Deal the values of some columns anew among the rows, in a secret order.

    Parameters
    ----------
    frame : Polars or pandas DataFrame, or pyarrow Table
    columns : str or list of str
        They move together, so that what holds among them still holds.

    Returns
    -------
    frame of the same kind
        Each column has the same values as often; how they go with the other columns is lost.

    Raises
    ------
    ArgumentError
        For an unknown column or an empty frame.

    Notes
    -----
    The order comes from the operating system's randomness and every order is equally likely, up to
    the assumption on its cipher. Not protected: the values themselves. Someone who recognises
    a value as somebody's has found it, and a person with rare values stays rare.

    Examples
    --------
    >>> found = shuffle(pl.DataFrame({"name": ["a", "b", "c"], "age": [1, 2, 3]}), "age")
    >>> found["name"].to_list(), found["age"].sort().to_list()
    (['a', 'b', 'c'], [1, 2, 3])
    """
    table = read(frame)
    moved = names("columns", columns, table)
    order = secret_order(table.height)
    return as_given(table.with_columns(table[name].gather(order) for name in moved), frame)


def truncate(column: object, keep: int, *, side: str = "start", fill: str = "*") -> pl.Series:
    """Keep a few characters of every text.

    Parameters
    ----------
    column : Polars or pandas Series, or list
        Numbers and dates are taken as text. NULL stays NULL.
    keep : int
        Characters, at least 0. A text that is not longer stays as it is.
    side : str
        Which to keep: ``"start"`` or ``"end"``.
    fill : str
        Stands for what was cut off, once, so that its length is hidden.

    Returns
    -------
    polars.Series
        Texts.

    Raises
    ------
    ArgumentError
        For a negative length or an unknown side.

    Notes
    -----
    Not protected: texts whose kept part is rare, and all other columns. The last four digits of a
    telephone number often tell it to anyone who knows the person.

    Examples
    --------
    >>> truncate(["02139", "021"], 3).to_list(), truncate(["555-1234"], 4, side="end").to_list()
    (['021*', '021'], ['*1234'])
    """
    keep, side = whole("keep", keep), choice("side", side, ("start", "end"))

    def cut(text: str) -> str:
        if len(text) <= keep:
            return text
        return f"{text[:keep]}{fill}" if side == "start" else f"{fill}{text[len(text) - keep :]}"

    return mapped(column, cut)


def mapped(column: object, change: Callable[[str], str]) -> pl.Series:
    """The column as texts, each distinct one changed once; NULL stays NULL."""
    coded = encode(one_column(column))
    new = [None if text is None else change(text) for text in texts(coded.values).to_list()]
    return pl.Series(coded.values.name, new, dtype=pl.String).gather(coded.codes)


def _digests(key: object) -> Callable[[bytes, str], bytes]:
    """HMAC-SHA-256 of a head and a text, under a key that is long enough to be secret."""
    if key is None:
        key = new_key()
    if not isinstance(key, bytes) or len(key) < _LEAST_KEY:
        raise ArgumentError(
            f"key must be at least {_LEAST_KEY} bytes: dt.anonymize.new_key() makes one"
        )
    return lambda head, text: hmac.digest(
        key, head + text.encode("utf-8", "surrogatepass"), "sha256"
    )
