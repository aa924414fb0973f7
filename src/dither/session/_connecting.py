"""A policy's ledger, read while its engine connects: neither needs the other, and an engine inside
this process takes its time."""

from __future__ import annotations

import threading
from collections.abc import Callable
from pathlib import Path

from dither._files import looked_at
from dither.errors import LedgerError
from dither.ledger import Checkpoint, Ledger
from dither.ledger._place import LedgerSchema

__all__ = ["LedgerAhead"]

TURN = 0.1
"""Seconds after which Python looks for signals."""


class LedgerAhead:
    """Opens a ledger that is there, and holds it against a policy, in a thread of its own.

    A file that is not there yet is begun by ``opened``, once it is known that the sources fit the
    policy. A ledger on a server is read there too: only a connection tells whether it is there.

    Parameters
    ----------
    place : Path or LedgerSchema
    check : callable
        Raises where a ledger does not agree with the policy.
    checkpoint : Checkpoint, optional
        What the ledger must hold.
    """

    def __init__(
        self,
        place: Path | LedgerSchema,
        check: Callable[[Ledger], None],
        checkpoint: Checkpoint | None = None,
    ) -> None:
        self._place, self._check, self._checkpoint = place, check, checkpoint
        self._found: Ledger | BaseException | None = None
        self._thread: threading.Thread | None = None
        if isinstance(place, Path) and _there(place):
            # Nobody waits for it where the sources are refused: it writes nothing, and holds no
            # file once it has read.
            thread = threading.Thread(target=self._read, name="dither-ledger", daemon=True)
            try:
                thread.start()
            except RuntimeError:
                # No more threads: it is read when it is asked for.
                return
            self._thread = thread

    def opened(self) -> Ledger:
        """The ledger, which agrees with the policy.

        Raises
        ------
        LedgerError
            As ``Ledger.open`` and the check do, whichever thread they ran in.
        """
        if self._thread is None:
            return self._open(create=True)
        while self._thread.is_alive():
            # By turns: where a library has a handler of its own, a signal ends no wait, and a
            # ledger that another process holds is waited for long.
            self._thread.join(TURN)
        if isinstance(self._found, Ledger):
            return self._found
        assert self._found is not None
        raise self._found

    def _read(self) -> None:
        try:
            self._found = self._open(create=False)
        except BaseException as error:
            self._found = error

    def _open(self, *, create: bool) -> Ledger:
        ledger = Ledger.open(self._place, create=create, checkpoint=self._checkpoint)
        try:
            self._check(ledger)
        except BaseException:
            ledger.close()
            raise
        return ledger


def _there(place: Path) -> bool:
    with looked_at(place, LedgerError):
        return place.exists()
