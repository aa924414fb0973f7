"""Checkpoints: a run that was stopped goes on exactly, once, and is charged once.

A run with a checkpoint has a key of 32 bytes of the operating system. All that is random in step t
(who is in its sample, what the model draws, its noise) is a function of that key and t
(`dither.numeric.KeyedWords`). The file holds the key, what the parameters and the optimiser are
after some step, and a *binding*: a hash under the key of the rows, the model as it was at the
start, and every argument.

*It goes on exactly.* Steps after the one that was kept are those that the run would have taken: the
same samples, the same noise, the same parameters, bit for bit where the machine computes as before.

*Nothing is spent twice.* The whole run is charged before its first step, and going on is the same
run: there is no new charge, because there is nothing new to see. *Proof.* What all processes of a
run show is, where they compute alike, one function of the key and the rows, read several times:
steps that were lost with a killed process are repeated as they were, not drawn again. With another
key the noise of repeated steps could be averaged out; with other rows, or another clip, under the
same key, the difference of two models would have no noise at all. So:

*It refuses to be replayed.* A checkpoint that does not fit the rows, the model and the arguments by
its binding is refused. One is resumed once: before the first step of a resumed run, a line in the
file beside it (``.used``) says that this generation was taken, and the checkpoint is written anew
as the next one; a copy of an older one is refused, and so is a second process while one runs. When
the run ends, the key is erased from the file, and the file gives the trained model alone.

*What is not proved.* Who copies a checkpoint away *and* deletes or restores the file of used
generations can resume it again. On the same machine that shows nothing new, as above. On a machine
that computes the last digits of a gradient otherwise, what it shows differs in those digits by an
amount that has no noise. And the file is as secret as the rows while the run lasts: its key tells
the noise. It is written for its owner's eyes (mode 600), and none but its owner may write it.
"""

from __future__ import annotations

import contextlib
import fcntl
import hashlib
import io
import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import torch
from torch import nn

from dither.errors import ArgumentError, DitherError
from dither.learn.deep._centre import buffers_of
from dither.numeric import KeyedWords, Words

__all__ = ["RunCheckpoint", "bound", "trained"]

_MAGIC = b"dither run 1\n"


class RunCheckpoint:
    """The file of a run; see `opened`.

    Attributes
    ----------
    path : Path
    key : bytes
        Empty once the run has ended.
    generation : int
    binding : bytes
        Empty until the run's first step.
    state : dict or None
        What was kept last; None for a new run.
    ended : bool
    """

    def __init__(
        self, path: Path, key: bytes, generation: int, binding: bytes, state: Any, ended: bool
    ) -> None:
        self.path, self.key, self.generation = path, key, generation
        self.binding, self.state, self.ended = binding, state, ended

    @staticmethod
    @contextlib.contextmanager
    def opened(path: str | Path) -> Iterator[RunCheckpoint]:
        """A new run's, or that of a run to go on with; one process has it at a time.

        Raises
        ------
        ArgumentError
            path is in no folder, another process has it, or it was resumed before.
        DitherError
            The file is damaged.
        """
        place = Path(path)
        if not place.parent.is_dir():
            raise ArgumentError("checkpoint must be a file in a folder that exists")
        lock = os.open(_beside(place, ".lock"), os.O_RDWR | os.O_CREAT, 0o600)
        try:
            try:
                fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except OSError:
                raise ArgumentError("checkpoint is in use by another process") from None
            yield RunCheckpoint._found(place)
        finally:
            os.close(lock)

    @staticmethod
    def _found(path: Path) -> RunCheckpoint:
        used, waiting = _used(path), _beside(path, ".next")
        if waiting.exists():
            # A process died between its claim and the next generation, or before its claim.
            made = _read(waiting, partly=True)
            last = _read(path) if path.exists() else None
            if made is not None and last is not None and made._follows(last, used):
                _move(waiting, path)
            else:
                waiting.unlink()
        _beside(path, ".part").unlink(missing_ok=True)  # It has the key, and nobody needs it.
        if not path.exists():
            if used:
                raise ArgumentError(
                    "checkpoint is gone, but a run was kept there before: choose another path"
                )
            return RunCheckpoint(path, fresh_key(), 0, b"", None, False)
        found = _read(path)
        assert found is not None
        if found.ended:
            raise ArgumentError(
                "checkpoint is of a run that has ended: dither.learn.deep.trained(model, path) "
                "gives its model; choose another path for another run"
            )
        if _claim(found.key, found.generation) in used:
            raise ArgumentError(
                "checkpoint was resumed before, and the run went on from there: a copy of an older "
                "one is not resumed a second time"
            )
        return found

    def _follows(self, last: RunCheckpoint, used: set[bytes]) -> bool:
        """Whether this was written to be the next generation of one that was taken."""
        same = self.ended or self.key == last.key
        taken = _claim(last.key, last.generation) in used
        return same and taken and self.generation == last.generation + 1

    def words(self, purpose: str, step: int) -> Words:
        """The randomness of a step."""
        return KeyedWords(self.key, purpose, step)

    @property
    def run(self) -> str:
        """What stands for the run where it is charged; it does not tell the key."""
        return hashlib.blake2b(self.key, digest_size=16, person=b"dither account").hexdigest()

    def drop(self) -> None:
        """Forget a run that took no step, for it could not be charged."""
        self.path.unlink()
        _settled(self.path.parent)

    def claim(self, binding: bytes) -> None:
        """Take this generation: before the first step, and before anything of it is shown.

        Raises
        ------
        ArgumentError
            The run is another one; nothing is taken.
        """
        if self.state is None:
            self.binding = binding
            return
        if binding != self.binding:
            raise ArgumentError(
                "checkpoint is of a run with other rows, another model or other arguments: going "
                "on with it would use its noise twice"
            )
        self.generation += 1
        self._succeed(_claim(self.key, self.generation - 1))

    def keep(self, state: dict[str, Any]) -> None:
        """Replace what was kept, in one step that a kill cannot cut in two."""
        self.state = state
        self._put()

    def end(self, state: dict[str, Any]) -> None:
        """Keep the trained model, and erase the key."""
        taken = _claim(self.key, self.generation)
        # Nor is the binding left, which is a hash of the rows.
        self.key, self.binding, self.state, self.ended = b"", b"", state, True
        self.generation += 1
        self._succeed(taken)

    def _put(self) -> None:
        waiting = _beside(self.path, ".part")
        _write(waiting, self._bytes())
        _move(waiting, self.path)

    def _succeed(self, taken: bytes) -> None:
        """Take the place of the generation before, which is not resumed again.

        The next one is on the disk before the last is written down as taken: a process that dies at
        any place between leaves one that goes on, `_found`.
        """
        waiting = _beside(self.path, ".next")
        _write(waiting, self._bytes())
        with _beside(self.path, ".used").open("ab") as file:
            file.write(taken + b"\n")
            file.flush()
            os.fsync(file.fileno())
        _settled(self.path.parent)
        _move(waiting, self.path)

    def _bytes(self) -> bytes:
        held = io.BytesIO()
        torch.save(
            {
                "key": list(self.key),
                "generation": self.generation,
                "binding": list(self.binding),
                "state": self.state,
                "ended": self.ended,
            },
            held,
        )
        body = held.getvalue()
        return _MAGIC + hashlib.blake2b(body, digest_size=32).digest() + body


def fresh_key() -> bytes:
    """A key for a new run."""
    return os.urandom(32)


def trained(model: nn.Module, path: str | Path) -> nn.Module:
    """Give a model the parameters of a run that has ended, from its checkpoint.

    Parameters
    ----------
    model : torch.nn.Module
        Made as the one that was trained; changed in place.
    path : str or Path

    Returns
    -------
    torch.nn.Module
        The model. It costs nothing: it is what the run was charged for.

    Raises
    ------
    ArgumentError
        The run has not ended, or its model has other parameters.
    DitherError
        The file is damaged.
    """
    place = Path(path)
    if not place.is_file():
        raise ArgumentError("path must be a checkpoint, and there is none")
    found = _read(place)
    assert found is not None
    if not found.ended:
        raise ArgumentError("the run of this checkpoint has not ended: call train again as before")
    own = dict(model.named_parameters()) | buffers_of(model)
    state: dict[str, torch.Tensor] = found.state
    if any(name not in own or own[name].shape != value.shape for name, value in state.items()):
        raise ArgumentError("model must have the parameters of the one that was trained")
    with torch.no_grad():
        for name, value in state.items():
            own[name].copy_(value)
    return model


def bound(key: bytes, tensors: list[torch.Tensor], *said: object) -> bytes:
    """A hash under the key of tensors, their types and shapes, and of what is said in words."""
    state = hashlib.blake2b(key=key, digest_size=32, person=b"dither binding")
    for tensor in tensors:
        held = tensor.detach().cpu().contiguous()
        body = held.numpy().tobytes()
        head = f"{held.dtype} {tuple(held.shape)} {len(body)}".encode()
        state.update(len(head).to_bytes(8, "little") + head + body)
    for one in said:
        text = repr(one).encode()
        state.update(len(text).to_bytes(8, "little") + text)
    return state.digest()


def _beside(path: Path, ending: str) -> Path:
    return path.with_name(path.name + ending)


def _claim(key: bytes, generation: int) -> bytes:
    """What stands for a generation of a run in the file of used ones; it does not tell the key."""
    state = hashlib.blake2b(key=key, digest_size=16, person=b"dither claim")
    state.update(generation.to_bytes(8, "little"))
    return state.hexdigest().encode()


def _used(path: Path) -> set[bytes]:
    place = _beside(path, ".used")
    return set(place.read_bytes().splitlines()) if place.exists() else set()


def _read(path: Path, *, partly: bool = False) -> RunCheckpoint | None:
    """What a file holds; None for one that was not written to its end, where that may be."""
    body = path.read_bytes()
    head = len(_MAGIC) + 32
    digest = hashlib.blake2b(body[head:], digest_size=32).digest()
    if not body.startswith(_MAGIC) or body[len(_MAGIC) : head] != digest:
        if partly:
            return None
        raise DitherError(f"{path.name} is not a checkpoint of a run, or was damaged")
    held = torch.load(io.BytesIO(body[head:]), weights_only=True)
    return RunCheckpoint(
        path, bytes(held["key"]), held["generation"], bytes(held["binding"]), held["state"],
        held["ended"],
    )  # fmt: skip


def _write(path: Path, body: bytes) -> None:
    """Write a file that is on the disk when this returns, for its owner alone."""
    where = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600)
    with os.fdopen(where, "wb") as file:
        file.write(body)
        file.flush()
        os.fsync(file.fileno())


def _move(one: Path, other: Path) -> None:
    """Let a file take another's place, in one step, on the disk when this returns."""
    one.replace(other)
    _settled(other.parent)


def _settled(folder: Path) -> None:
    """Let the names of a folder be on the disk."""
    where = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(where)
    finally:
        os.close(where)
