"""A proxy on loopback that cuts connections to PostgreSQL around their commits."""

from __future__ import annotations

import socket
import threading
import time
from contextlib import suppress
from typing import Self

COMMIT = b"COMMIT\x00"


class CuttingProxy:
    """Passes on what client and server say, until it is told to cut.

    Parameters
    ----------
    port : int
        The server's, on loopback.

    Attributes
    ----------
    cut : str or None
        What the next commit meets: ``"before"``: it never reaches the server; ``"after"``: its
        answer never reaches the client; ``"late"``: the client is cut off at once, and the server
        gets it a while later. Once it happened it is ``None`` again.
    closed : bool
        Nobody is let in.
    """

    def __init__(self, port: int) -> None:
        self._server = port
        self.cut: str | None = None
        self.closed = False
        self._listener = socket.create_server(("127.0.0.1", 0))
        self.port = self._listener.getsockname()[1]
        threading.Thread(target=self._accept, daemon=True).start()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.closed = True
        # Closing a socket wakes nobody who waits in it.
        with suppress(OSError):
            self._listener.shutdown(socket.SHUT_RDWR)
        self._listener.close()

    def _accept(self) -> None:
        while True:
            try:
                client, _ = self._listener.accept()
            except OSError:
                return
            if self.closed:
                client.close()
                continue
            server = socket.create_connection(("127.0.0.1", self._server))
            answers = _Answers(server, client)
            answers.start()
            threading.Thread(
                target=self._from_client, args=(client, server, answers), daemon=True
            ).start()

    def _from_client(self, client: socket.socket, server: socket.socket, answers: _Answers) -> None:
        with suppress(OSError):
            while said := client.recv(65536):
                if self.cut is None or not said.endswith(COMMIT):
                    server.sendall(said)
                    continue
                how, self.cut = self.cut, None
                if how == "before":
                    break
                # From here on the client hears nothing more.
                answers.kept.set()
                if how == "late":
                    _end(client)
                    time.sleep(0.4)
                server.sendall(said)
                # A busy server may take long to commit; its answer says that it has.
                answers.heard.wait(30)
                break
        _end(client)
        _end(server)


class _Answers(threading.Thread):
    """Passes on what the server says, until it is to be kept from the client."""

    def __init__(self, server: socket.socket, client: socket.socket) -> None:
        super().__init__(daemon=True)
        self._server, self._client = server, client
        self.kept, self.heard = threading.Event(), threading.Event()

    def run(self) -> None:
        with suppress(OSError):
            while said := self._server.recv(65536):
                if self.kept.is_set():
                    self.heard.set()
                else:
                    self._client.sendall(said)
        self.heard.set()
        _end(self._client)
        _end(self._server)


def _end(one: socket.socket) -> None:
    with suppress(OSError):
        one.shutdown(socket.SHUT_RDWR)
    one.close()
