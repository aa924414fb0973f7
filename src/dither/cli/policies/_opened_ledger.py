"""A ledger as commands name it: by a file, a server's schema, or a policy; and its owner's key."""

from __future__ import annotations

import tomllib
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from dither.cli._options import FILE

if TYPE_CHECKING:
    from dither.ledger import Ledger, OwnerKey
    from dither.ledger._place import LedgerSchema

__all__ = ["key_options", "opened_ledger", "owner_key", "revealed"]


def key_options(function: Callable[..., Any]) -> Callable[..., Any]:
    """The options that name an owner's key."""
    password = click.option(
        "--password", help="env:NAME, the variable that holds the key's password, if it has one."
    )
    key = click.option("--key", type=FILE, help="The owner's key, where the ledger has an owner.")
    return key(password(function))


def owner_key(file: Path | None, password: str | None) -> OwnerKey | None:
    """The key in a file; ``None`` where none is named."""
    from dither.ledger import OwnerKey

    if file is None:
        if password is not None:
            raise click.UsageError("--password belongs to a --key")
        return None
    return OwnerKey.read(file, revealed(password))


def revealed(password: str | None) -> str | None:
    """The password that an option names by a variable of the environment."""
    from dither._environment import PREFIX, secret

    if password is None:
        return None
    if not password.startswith(PREFIX):
        raise click.UsageError(
            "--password names a variable, as in env:OWNER_PASSWORD: a password on a command line "
            "is seen by others and kept in its history"
        )
    return secret(password, "--password").reveal()


@contextmanager
def opened_ledger(path: Path | None, policy: Path | None) -> Iterator[Ledger]:
    """The ledger of a path, or that of a policy; of ``dither.toml`` where neither is given."""
    from dither.ledger import Ledger

    if path is not None and policy is not None:
        raise click.UsageError("give LEDGER or --policy, which names one; not both")
    with Ledger.open(path or _named_by(policy), create=False) as book:
        yield book


def _named_by(policy: Path | None) -> Path | LedgerSchema:
    """The ledger that a policy names; a file starts from the policy's own place."""
    from dither.ledger._place import read_place

    file = policy or Path("dither.toml")
    try:
        text = file.read_text(encoding="utf-8")
        place = read_place(tomllib.loads(text)["budget"]["ledger"], "budget.ledger")
        return file.parent / place if isinstance(place, Path) else place
    except FileNotFoundError as error:
        what = f"there is no policy {str(file)!r}"
        raise click.UsageError(f"{what}; name a LEDGER or a --policy") from error
    except (OSError, UnicodeDecodeError, tomllib.TOMLDecodeError, KeyError, TypeError) as error:
        raise click.UsageError(
            f"{str(file)!r} names no ledger: under [budget], write ledger = 'FILE', or "
            "ledger = { postgres = 'env:NAME' }"
        ) from error
