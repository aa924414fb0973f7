"""Running the service: where it listens, and what must hold before it does."""

from __future__ import annotations

import fcntl
import ipaddress
import logging
import socket
import sys
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from dither._extras import check_library
from dither.errors import ArgumentError, LedgerError
from dither.service._app import application
from dither.service._desk import Desk

__all__ = ["Listening", "serve"]


@dataclass(frozen=True, slots=True)
class Listening:
    """Where a service listens.

    Parameters
    ----------
    host : str
        An address of this machine.
    port : int
    certificate, key : path, optional
        Of TLS, as PEM.
    behind_proxy : bool
        A proxy stands in front, which speaks TLS and is the only one that can reach this.
    hosts : sequence of str
        Names by which it may be called.

    Raises
    ------
    ArgumentError
        Others could reach it, and anybody on the way would read keys and answers.
    """

    host: str = "127.0.0.1"
    port: int = 8765
    certificate: Path | None = None
    key: Path | None = None
    behind_proxy: bool = False
    hosts: Sequence[str] = ()

    def __post_init__(self) -> None:
        if (self.certificate is None) != (self.key is None):
            raise ArgumentError("certificate and key of TLS go together: give both, or neither")
        for name, path in (("certificate", self.certificate), ("key", self.key)):
            if path is not None and not path.is_file():
                raise ArgumentError(f"{name}: there is no such file")
        if not (_loopback(self.host) or self.secure):
            raise ArgumentError(
                "host can be reached from other machines, and whoever is on the way would read "
                "keys and answers: give the certificate and key of TLS; or say that a proxy stands "
                "in front (behind_proxy), which speaks TLS and alone can reach it"
            )

    @property
    def secure(self) -> bool:
        """Whether whoever comes does so over TLS."""
        return self.certificate is not None or self.behind_proxy


def _loopback(host: str) -> bool:
    if host == "localhost":
        return True
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return False


def serve(desks: Sequence[Desk], at: Listening, *, workers: int | None = None) -> None:
    """Serve some policies until the process is told to end.

    Parameters
    ----------
    desks : sequence of Desk
    at : Listening
    workers : int, optional
        How many questions run at a time.

    Raises
    ------
    ArgumentError
        The address is taken.
    """
    check_library("uvicorn", "service", "a service needs")
    import uvicorn

    from dither.service._patience import PatientProtocol

    app = application(desks, secure=at.secure, workers=workers, hosts=at.hosts)
    _say_what_happens()
    listening = _listening(at)
    config = uvicorn.Config(
        app,
        http=PatientProtocol,
        ssl_certfile=at.certificate,
        ssl_keyfile=at.key,
        proxy_headers=at.behind_proxy,
        forwarded_allow_ips="*" if at.behind_proxy else None,
        server_header=False,
        date_header=True,
        # Its own lines have addresses and queries; what happens is written down without them.
        access_log=False,
        log_config=None,
        timeout_keep_alive=30,
        timeout_graceful_shutdown=30,
        limit_concurrency=1000,
        lifespan="on",
        ws="none",
    )
    # Once it has ended as it was told to, uvicorn raises the signal again, as if nobody had.
    with _alone(desks), suppress(KeyboardInterrupt):
        uvicorn.Server(config).run(sockets=[listening])


@contextmanager
def _alone(desks: Sequence[Desk]) -> Iterator[None]:
    """Keep other services from the files of people and jobs: each would take up the other's jobs.

    Raises
    ------
    LedgerError
        Another one serves them.
    """
    with ExitStack() as held:
        for desk in desks:
            place = desk.database.place
            if not isinstance(place, Path):
                continue  # a server keeps them apart
            # A file of its own: SQLite's locks end where this process closes that one once more.
            lock = held.enter_context(place.with_name(f"{place.name}.lock").open("w"))
            try:
                fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except OSError:
                raise LedgerError(
                    f"policy {desk.name} is served already, by another process on this machine"
                ) from None
        yield


def _listening(at: Listening) -> socket.socket:
    family = socket.AF_INET6 if ":" in at.host else socket.AF_INET
    found = socket.socket(family, socket.SOCK_STREAM)
    found.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    try:
        found.bind((at.host, at.port))
    except OSError:
        found.close()
        raise ArgumentError(
            f"port {at.port} cannot be listened on: another program does, or it is not for you"
        ) from None
    return found


class _AsJson(logging.Formatter):
    """A line of JSON for each thing that happens."""

    def format(self, record: logging.LogRecord) -> str:
        """The line."""
        import json

        body: dict[str, Any] = {
            "time": self.formatTime(record, "%Y-%m-%dT%H:%M:%SZ"),
            "level": record.levelname.lower(),
            "from": record.name,
            "message": record.getMessage() if record.name.startswith("dither") else "see status",
        }
        if not record.name.startswith("dither") and record.levelno < logging.ERROR:
            body["message"] = record.msg.split("%")[0]
        if record.exc_info and record.exc_info[0] is not None:
            body["error"] = record.exc_info[0].__name__
        return json.dumps(body)


def _say_what_happens() -> None:
    handler = logging.StreamHandler(sys.stderr)
    handler.setFormatter(_AsJson())
    for name in ("dither.service", "uvicorn.error"):
        logger = logging.getLogger(name)
        logger.handlers, logger.propagate = [handler], False
        logger.setLevel(logging.INFO)
