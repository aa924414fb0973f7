"""Masking by substitution, shuffling and truncation.

A mask hides the value that it replaces. It does not hide the person: the other columns stay.
"""

from __future__ import annotations

import hmac
from collections.abc import Sequence
from typing import Any

import polars as pl

from dither.errors import ArgumentError
from dither.lab.anonymize.frames import (
    as_given,
    encode,
    names,
    one_column,
    read,
    secret_order,
    texts,
)
from dither.lab.anonymize.masks import check_key, coded_back
from dither.lab.anonymize.pseudonyms import new_key

__all__ = ["shuffle", "substitute", "truncate"]


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
    secret = new_key() if key is None else check_key(key)
    coded = encode(one_column(column))
    new: list[str | None] = []
    for text in texts(coded.values).to_list():
        if text is None:
            new.append(None)
            continue
        digest = hmac.digest(secret, text.encode("utf-8", "surrogatepass"), "sha256")
        new.append(pool[int.from_bytes(digest, "big") % len(pool)])
    return coded_back(coded, new)


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
    the assumption on its cipher. Not protected: the values themselves. Whoever recognises a value
    as somebody's has found it, and a person with rare values stays rare.

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
        Characters, at least 0. A text that is no longer stays as it is.
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
    telephone number often tell it to whoever knows the person.

    Examples
    --------
    >>> truncate(["02139", "021"], 3).to_list(), truncate(["555-1234"], 4, side="end").to_list()
    (['021*', '021'], ['*1234'])
    """
    if isinstance(keep, bool) or not isinstance(keep, int) or keep < 0:
        raise ArgumentError("keep must be a whole number of at least 0")
    if side not in ("start", "end"):
        raise ArgumentError("side must be 'start' or 'end'")
    coded = encode(one_column(column))
    new = []
    for text in texts(coded.values).to_list():
        if text is None or len(text) <= keep:
            new.append(text)
        elif side == "start":
            new.append(f"{text[:keep]}{fill}")
        else:
            new.append(f"{fill}{text[len(text) - keep :]}")
    return coded_back(coded, new)
