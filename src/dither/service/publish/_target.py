"""What a place for tables does: it takes all tables of one release, or none of them.

A name is written in quotes by each place, and is checked before: it is lower-case letters, digits
and ``_``. What a column is called is the question's, and may be any text.

No place replaces a table that was not published: ``certificates`` lists those that were.
"""

from __future__ import annotations

import re
from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from dither.errors import ArgumentError

if TYPE_CHECKING:
    import polars as pl

__all__ = [
    "CERTIFICATES",
    "PublishTarget",
    "PublishedTable",
    "added",
    "check_name",
    "check_ours",
    "same_columns",
]

CERTIFICATES = "certificates"
"""The table of certificates."""

LONGEST = 48
"""Of a name, so that one of several tables of a release fits in the 63 bytes of PostgreSQL."""

_NAME = re.compile(r"[a-z][a-z0-9_]*")


@dataclass(frozen=True, eq=False)
class PublishedTable:
    """A table to be published.

    Parameters
    ----------
    name : str
        As `check_name` lets pass.
    frame : polars.DataFrame
        Of texts, whole and real numbers, truth values, dates and moments alone.
    """

    name: str
    frame: pl.DataFrame


def check_name(name: object, what: str = "name", longest: int = LONGEST) -> str:
    """A name that a table may have.

    Raises
    ------
    ArgumentError
        It is another text.

    Examples
    --------
    >>> check_name("visits_by_day")
    'visits_by_day'
    >>> check_name('visits"; DROP TABLE x; --')
    Traceback (most recent call last):
    dither.errors.ArgumentError: name must begin with a letter and be at most 48 of a to z, 0 to...
    """
    if not isinstance(name, str) or not _NAME.fullmatch(name) or len(name) > longest:
        raise ArgumentError(
            f"{what} must begin with a letter and be at most {longest} of a to z, 0 to 9 and _"
        )
    if name == CERTIFICATES:
        raise ArgumentError(f"{what} must not be {CERTIFICATES!r}, which has the certificates")
    return name


class PublishTarget(ABC):
    """A place for tables, and for the certificates of what is in them."""

    @abstractmethod
    def write(
        self, tables: Sequence[PublishedTable], record: pl.DataFrame, *, history: bool
    ) -> bool:
        """Write the tables of one release and its certificate.

        Parameters
        ----------
        tables : sequence of PublishedTable
        record : polars.DataFrame
            One row for each table, of the table of certificates.
        history : bool
            Add the rows to those that are there, unless they are there already; else replace them.

        Returns
        -------
        bool
            Whether anything was written.

        Raises
        ------
        ArgumentError
            It cannot be written. What was there is as it was.
        """

    @abstractmethod
    def read(self, name: str) -> pl.DataFrame:
        """A table as it stands there, ``certificates`` too.

        Raises
        ------
        ArgumentError
            There is none.
        """


def check_ours(name: str, known: Sequence[str]) -> None:
    """Refuse to touch a table that is there and was not published.

    Raises
    ------
    ArgumentError
        It is not among those that were.
    """
    if name not in known:
        raise ArgumentError(
            f"there is a table {name!r} that was not published, and it stays as it is: publish "
            "under another name, or to another place"
        )


def same_columns(name: str, there: Sequence[Any], new: Sequence[Any]) -> None:
    """Rows can be added to a table whose columns are theirs.

    Raises
    ------
    ArgumentError
        It has others.
    """
    if list(there) != list(new):
        raise ArgumentError(
            f"the table {name!r} has other columns than this release, so its rows are not added "
            "there: publish under another name"
        )


def added(known: pl.DataFrame, record: pl.DataFrame) -> pl.DataFrame:
    """The certificates with those of a release, each once for a table."""
    import polars as pl

    same_columns(CERTIFICATES, known.columns, record.columns)
    fresh = record.join(known, on=["id", "name"], how="anti")
    return pl.concat([known, fresh], how="vertical")
