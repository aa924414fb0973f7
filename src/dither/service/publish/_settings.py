"""The section ``[publish]``: where released answers go, for whom, and whether they pile up."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from dither._environment import PREFIX
from dither.errors import ArgumentError, PolicyError
from dither.policy._fields import Reader
from dither.policy._publishing import EVERYBODY
from dither.service.publish._target import PublishTarget

__all__ = ["DeclaredPublish", "opened_target", "read_publish"]

SCHEMA = "released"
"""The schema of a database, where none is named."""

_SCHEMA_NAME = re.compile(r"[a-z][a-z0-9_]{0,62}")


@dataclass(frozen=True, slots=True)
class ServerSchema:
    """A schema of a PostgreSQL database.

    Parameters
    ----------
    dsn : str
        ``env:NAME``.
    schema : str
    """

    dsn: str
    schema: str = SCHEMA


@dataclass(frozen=True, slots=True)
class DeclaredPublish:
    """The section ``[publish]``, which changes no answer: it is outside of the policy's digest.

    Parameters
    ----------
    to : Path or ServerSchema
        A DuckDB file, a folder of Parquet, or a schema of a PostgreSQL database.
    everybody : bool
        Whether the owner says here that answers are for everybody who can read that place.
    history : bool
        Whether a publication under a name that is there adds its rows, and replaces nothing.
    """

    to: Path | ServerSchema
    everybody: bool = False
    history: bool = False


def read_publish(section: Mapping[str, Any], folder: Path) -> DeclaredPublish | None:
    """The section; None where there is none.

    Parameters
    ----------
    section : mapping
        As it stands in the policy's file.
    folder : Path
        What paths start from.

    Raises
    ------
    PolicyError
        A field is missing or wrong.

    Examples
    --------
    >>> found = read_publish({"to": "released.duckdb", "history": True}, Path("/data"))
    >>> found.to.name, found.everybody, found.history
    ('released.duckdb', False, True)
    """
    if not section:
        return None
    part = Reader(section, "publish")
    given = part.take("to")
    if given is None:
        raise PolicyError(
            "publish.to is missing: name a DuckDB file, a folder, or "
            '{ postgres = "env:NAME", schema = "released" }'
        )
    to = read_target(given, folder, "publish.to")
    audience = part.choice("audience", ("asker", EVERYBODY), "asker")
    history = part.flag("history", False)
    part.finish()
    return DeclaredPublish(to, audience == EVERYBODY, history)


def read_target(given: Any, folder: Path, where: str) -> Path | ServerSchema:
    """Where tables go: a path, or a mapping that names a server's schema.

    Raises
    ------
    PolicyError
        It is something else, or holds a connection string itself; none of it is quoted.
    """
    if isinstance(given, Mapping):
        part = Reader(given, where)
        dsn, schema = part.required_text("postgres"), part.text("schema") or SCHEMA
        part.finish()
        if not dsn.startswith(PREFIX):
            raise PolicyError(
                f"{where}.postgres must name a variable of the environment, as 'env:NAME': a "
                "connection string holds a password"
            )
        if not _SCHEMA_NAME.fullmatch(schema) or schema.startswith("pg_"):
            raise PolicyError(
                f"{where}.schema must be a letter and at most 62 more of a to z, 0 to 9 and _"
            )
        return ServerSchema(dsn, schema)
    if not isinstance(given, str | Path) or not str(given):
        raise PolicyError(f"{where} must be a path, or name a schema of PostgreSQL")
    if "://" in str(given):
        raise PolicyError(f"{where} must be a path of this machine, or name a schema of PostgreSQL")
    return folder / Path(given).expanduser()


def opened_target(to: Any) -> PublishTarget:
    """What writes to a place.

    Parameters
    ----------
    to : path, mapping, or what a section says
        A file whose name ends in ``.duckdb``; a folder, which is made where there is none; or
        ``{"postgres": "env:NAME", "schema": ...}``.

    Raises
    ------
    ArgumentError
        It is none of these.
    """
    if isinstance(to, DeclaredPublish):
        to = to.to
    if not isinstance(to, ServerSchema):
        try:
            to = read_target(to, Path(), "to")
        except PolicyError as error:
            raise ArgumentError(str(error)) from None
    if isinstance(to, ServerSchema):
        from dither.service.publish._server import ServerTarget

        return ServerTarget(to.dsn, to.schema)
    if to.suffix == ".duckdb":
        from dither.service.publish._duckdb import DuckDBTarget

        return DuckDBTarget(to)
    if to.suffix and not to.is_dir():
        raise ArgumentError(
            f"to: {to.name!r} is no place for tables: name a file that ends in .duckdb, or a folder"
        )
    from dither.service.publish._folder import FolderTarget

    return FolderTarget(to)
