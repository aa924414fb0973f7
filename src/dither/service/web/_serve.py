"""Running the service: where it listens, and what must hold before it does."""

from __future__ import annotations

import fcntl
import logging
import signal
import socket
import ssl
import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path
from types import FrameType

from dither._extras import check_library
from dither._files import looked_at
from dither.errors import ArgumentError, LedgerError
from dither.service._callers import is_near
from dither.service._desk import Desk
from dither.service._hall import Hall
from dither.service.web._app import application
from dither.service.web._lines import OWN, write_lines
from dither.service.web._metrics import Metering

__all__ = ["Listening", "serve"]


PATIENCE = 30
"""Seconds for connections to end, and as many for questions that run."""

log = logging.getLogger(OWN)


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
    open_metrics : bool
        Whoever reaches it may read ``/metrics``; without it, programs of this machine alone, and
        nobody where a proxy stands in front, behind which all seem to be of this machine.

    Raises
    ------
    ArgumentError
        Others could reach it, and anybody on the way would read keys and answers; or certificate
        and key are none that TLS can be spoken with.
    """

    host: str = "127.0.0.1"
    port: int = 8765
    certificate: Path | None = None
    key: Path | None = None
    behind_proxy: bool = False
    hosts: Sequence[str] = ()
    open_metrics: bool = False

    def __post_init__(self) -> None:
        if (self.certificate is None) != (self.key is None):
            raise ArgumentError("certificate and key of TLS go together: give both, or neither")
        for name, path in (("certificate", self.certificate), ("key", self.key)):
            if path is None:
                continue
            with looked_at(path):
                there = path.is_file()
            if not there:
                raise ArgumentError(f"{name}: there is no such file")
        if self.certificate is not None and self.key is not None:
            _check_pair(self.certificate, self.key)
        if not (_loopback(self.host) or self.secure):
            raise ArgumentError(
                "host can be reached from other machines, and whoever is on the way would read "
                "keys and answers: give the certificate and key of TLS; or say that a proxy stands "
                "in front (behind_proxy), which speaks TLS and alone can reach it"
            )

    @property
    def metrics(self) -> Metering:
        """Who may read the counts."""
        if self.open_metrics:
            return Metering.ALL
        return Metering.NOBODY if self.behind_proxy else Metering.NEAR

    @property
    def secure(self) -> bool:
        """Whether whoever comes does so over TLS."""
        return self.certificate is not None or self.behind_proxy


def _check_pair(certificate: Path, key: Path) -> None:
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    try:
        # Without a word, a key under a password would have the start wait at the terminal for one.
        context.load_cert_chain(certificate, key, password=lambda: b"")
    except PermissionError:
        raise ArgumentError(
            "certificate or key of TLS cannot be read: see that the user that runs this may read "
            "both"
        ) from None
    except (OSError, ValueError):
        raise ArgumentError(
            "certificate and key of TLS cannot be used: both must be PEM, the first the "
            "certificate (and those behind it), the second its own key, without a password"
        ) from None


def _loopback(host: str) -> bool:
    return host == "localhost" or is_near(host)


def serve(desks: Sequence[Desk], at: Listening, *, workers: int | None = None) -> None:
    """Serve some policies until the process is told to end, by SIGTERM or SIGINT.

    Then it takes no new connections and begins no question, waits half a minute for what runs, and
    leaves what is not done by then to the next start, on the record.

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

    from dither.service.web._patience import PatientProtocol

    app = application(desks, secure=at.secure, workers=workers, hosts=at.hosts, metrics=at.metrics)
    write_lines()
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
        timeout_graceful_shutdown=PATIENCE,
        limit_concurrency=1000,
        lifespan="on",
        ws="none",
    )
    hall: Hall = app.app.state.hall
    server = uvicorn.Server(config)
    handled = server.handle_exit

    def told(sig: int, frame: FrameType | None) -> None:
        hall.leave()
        handled(sig, frame)

    server.handle_exit = told  # type: ignore[method-assign]
    with _alone(desks), _ended_by(told):
        log.info("serving", extra={"said": {"policies": sorted(hall.desks), "secure": at.secure}})
        server.run(sockets=[listening])
    log.info("ended")


@contextmanager
def _ended_by(told: Callable[[int, FrameType | None], None]) -> Iterator[None]:
    """Let a signal end the server, and not the process behind it.

    Once it has ended as it was told to, uvicorn raises the signal again, as if nobody had.
    """
    if threading.current_thread() is not threading.main_thread():
        # Signals are for the main thread alone.
        yield
        return
    kept = {number: signal.getsignal(number) for number in (signal.SIGINT, signal.SIGTERM)}
    try:
        for number in kept:
            signal.signal(number, told)
        yield
    finally:
        for number, before in kept.items():
            signal.signal(number, before)


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
