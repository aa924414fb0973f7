"""A served policy's file, written anew whole or not at all, and what was before it."""

from __future__ import annotations

import hashlib
import tempfile
import threading
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING

from dither._files import written
from dither.errors import ArgumentError, DitherError, PolicyError
from dither.service.policies._draft import PolicyDraft

if TYPE_CHECKING:
    from dither.service._desk import Desk

__all__ = ["before", "mark_of", "save", "text_of", "undo"]

_one_at_a_time = threading.Lock()

CHANGED = (
    "the policy's file was changed at the server, or by somebody else, since this was begun: load "
    "it again, and make your changes to what is there now"
)


def text_of(desk: Desk) -> str:
    """The text of the served policy's file."""
    return desk.path.read_text(encoding="utf-8-sig")


def mark_of(text: str) -> str:
    """What tells one text from another."""
    return hashlib.sha256(text.replace("\r\n", "\n").encode("utf-8", "replace")).hexdigest()


def _kept(desk: Desk) -> Path:
    return desk.path.with_name(f"{desk.path.name}.before")


def before(desk: Desk) -> str | None:
    """The text that was served before the last change from here.

    None where there was none, and where the file was changed at the server since: what was taken
    out there does not come back from here.
    """
    try:
        mark, _, text = _kept(desk).read_text(encoding="utf-8").partition("\n")
        held = mark == _heading(text_of(desk))
    except (OSError, UnicodeDecodeError):
        return None
    return text if held else None


def _heading(saved: str) -> str:
    return f"# What was served before the text whose SHA-256 is {mark_of(saved)}"


def save(desk: Desk, text: str, base: str, by: str) -> bool:
    """Write a policy's file and take it up; or change nothing.

    Parameters
    ----------
    desk : Desk
    text : str
    base : str
        `mark_of` the text that the change began with.
    by : str
        Who does it.

    Returns
    -------
    bool
        Whether another policy is served now.

    Raises
    ------
    DitherError
        It cannot be served, or may not be changed from here: the file is as it was.
    """
    with _one_at_a_time:
        old = text_of(desk)
        if mark_of(old) != base:
            raise ArgumentError(CHANGED)
        draft = PolicyDraft(desk, text, before(desk))
        if draft.errors:
            raise PolicyError(draft.errors[0].text)
        _tried(desk, draft.text)
        kept, mode = _kept(desk), desk.path.stat().st_mode & 0o777
        earlier = kept.read_bytes() if kept.is_file() else None
        try:
            _write(kept, f"{_heading(draft.text)}\n{old}", mode)
            _write(desk.path, draft.text, mode)
            changed = desk.take_up()
        except BaseException:
            _write(desk.path, old, mode)
            if earlier is None:
                kept.unlink(missing_ok=True)
            else:
                written(kept, earlier)
            with suppress(DitherError):
                desk.take_up()
            raise
        desk.people.note(by, "policy saved", desk.session.policy.digest)
        return changed


def undo(desk: Desk, base: str, by: str) -> bool:
    """Serve again what was served before the last change; what is served now is kept in its place.

    Raises
    ------
    DitherError
        There is nothing before, or it cannot be served any more: nothing is changed.
    """
    old = before(desk)
    if old is None:
        raise ArgumentError("there is no earlier text of this policy")
    return save(desk, old, base, by)


def _tried(desk: Desk, text: str) -> None:
    """Open what would be served, beside the file, so that a refusal never had it in its place."""
    with tempfile.NamedTemporaryFile(
        dir=desk.path.parent, prefix=f".{desk.path.stem}.", suffix=".toml"
    ) as file:
        file.write(text.encode("utf-8"))
        file.flush()
        desk.try_out(Path(file.name))


def _write(path: Path, text: str, mode: int) -> None:
    written(path, text.encode("utf-8"))
    path.chmod(mode)
