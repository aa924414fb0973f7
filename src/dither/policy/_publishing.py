"""What a policy says of releases once they are made: who signs them, and who may see them."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from dither._environment import PREFIX
from dither.errors import ArgumentError, KeyFileError, PolicyError
from dither.ledger._signing import PublicKey
from dither.policy._fields import Reader

__all__ = ["EVERYBODY", "DeclaredOwner", "DeclaredReleases", "read_owner", "read_releases"]

EVERYBODY = "everybody"
AUDIENCES = ("asker", EVERYBODY)


@dataclass(frozen=True, slots=True)
class DeclaredOwner:
    """The section ``[owner]``, none of which changes an answer: it is outside of the digest.

    Parameters
    ----------
    key : str, optional
        Where the owner's secret key is: a file, or ``env:NAME``.
    password : str, optional
        Its password, as ``env:NAME``.
    public : PublicKey, optional
        What tells whether the owner signed.
    data_version : bool
        Whether certificates say the data's version.
    checkpoint : Path, optional
        A checkpoint that the ledger must hold; ``[budget] checkpoint``.
    """

    key: str | None = None
    password: str | None = None
    public: PublicKey | None = None
    data_version: bool = True
    checkpoint: Path | None = None


def read_owner(part: Reader, spending: Reader, folder: Path) -> DeclaredOwner:
    """The section, and the checkpoint that ``[budget]`` names.

    Raises
    ------
    PolicyError
        A field is wrong, a secret stands in the policy itself, or nothing says whose signature a
        checkpoint must have.
    """
    key, password = part.text("key"), part.text("password")
    if key is not None and key.lstrip().startswith("-----BEGIN"):
        raise PolicyError(
            "owner.key holds a secret key, which no policy should: name its file, or a variable "
            "of the environment as 'env:NAME'"
        )
    if key is not None and not key.startswith(PREFIX):
        key = str(folder / Path(key).expanduser())
    if password is not None and (key is None or not password.startswith(PREFIX)):
        raise PolicyError("owner.password must name a variable of the environment, as 'env:NAME'")
    public = _public(part.text("public"), folder)
    data_version = part.flag("data_version", True)
    part.finish()
    named = spending.text("checkpoint")
    if named is not None and public is None:
        raise PolicyError(
            "budget.checkpoint needs the owner's public key, which says whether it is theirs: "
            "[owner] public = 'owner.pub'"
        )
    checkpoint = None if named is None else folder / Path(named).expanduser()
    return DeclaredOwner(key, password, public, data_version, checkpoint)


def _public(given: str | None, folder: Path) -> PublicKey | None:
    if given is None:
        return None
    try:
        if given.startswith("dither-owner-"):
            return PublicKey(given)
        return PublicKey.read(folder / Path(given).expanduser())
    except (ArgumentError, KeyFileError) as error:
        raise PolicyError(f"owner.public: {error}") from None


@dataclass(frozen=True, slots=True)
class DeclaredReleases:
    """The section ``[releases]``.

    Parameters
    ----------
    audience : str
        ``"asker"``: an answer is for whoever asked for it. ``"everybody"``: for all analysts of the
        policy. Where a policy names no analysts, all who open it are one asker.
    reuse : bool
        Whether a question that was answered to its audience before is replayed, unless it says
        otherwise.
    """

    audience: str = "asker"
    reuse: bool = False


def read_releases(part: Reader) -> DeclaredReleases:
    """The section.

    Raises
    ------
    PolicyError
        A field is wrong.
    """
    audience, reuse = part.choice("audience", AUDIENCES, "asker"), part.flag("reuse", False)
    part.finish()
    return DeclaredReleases(audience, reuse)
