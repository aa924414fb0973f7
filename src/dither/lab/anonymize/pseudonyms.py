"""Keyed pseudonyms: the same value gets the same name, and nobody without the key can try values.

A plain hash of a name hides nothing, since anybody can hash all names. HMAC-SHA-256 under a secret
key cannot be tried without it.
"""

from __future__ import annotations

import hmac
import os

import polars as pl

from dither.errors import ArgumentError
from dither.lab.anonymize.frames import encode, one_column, texts
from dither.lab.anonymize.masks import check_key, coded_back

__all__ = ["new_key", "pseudonymize"]

_SHORTEST, _LONGEST = 16, 64


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
    if (
        isinstance(digits, bool)
        or not isinstance(digits, int)
        or not _SHORTEST <= digits <= _LONGEST
    ):
        raise ArgumentError(f"digits must be a whole number from {_SHORTEST} to {_LONGEST}")
    secret = new_key() if key is None else check_key(key)
    about = str(purpose).encode("utf-8", "surrogatepass")
    # The length keeps purpose and value apart, whatever either holds.
    head = len(about).to_bytes(8, "big") + about
    coded = encode(one_column(column))
    names = [
        None
        if text is None
        else hmac.digest(secret, head + text.encode("utf-8", "surrogatepass"), "sha256").hex()[
            :digits
        ]
        for text in texts(coded.values).to_list()
    ]
    return coded_back(coded, names)
