"""Running the service: where it listens, and what must hold before it does."""

from __future__ import annotations

import errno
import fcntl
import logging
import signal
import socket
import sys
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
from dither.service.web._tls import RenewedContext, tls_context

__all__ = ["Listening", "serve"]


PATIENCE = 30
"""Seconds for connections to end, and as many for questions that run."""

BACKLOG = 2048
"""Connections that may wait for the server to take them."""

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
            tls_context(self.certificate, self.key)
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


def _loopback(host: str) -> bool:
    return host == "localhost" or is_near(host)


def serve(
    desks: Sequence[Desk],
    at: Listening,
    *,
    workers: int | None = None,
    ready: Callable[[int], None] | None = None,
) -> None:
    """Serve some policies until the process is told to end, by SIGTERM or SIGINT.

    Then it takes no new connections and begins no question, waits half a minute for what runs, and
    leaves what is not done by then to the next start, on the record.

    A policy or a certificate whose file changes is taken up within seconds, and at once on SIGHUP;
    what cannot be used is said in the log, and what was there before is served on. Where it was
    started at a terminal, SIGHUP says that this is gone, and ends it as SIGTERM does.

    Parameters
    ----------
    desks : sequence of Desk
    at : Listening
    workers : int, optional
        How many questions run at a time.
    ready : callable, optional
        Is told the port, once nobody else can have it any more.

    Raises
    ------
    ArgumentError
        The address is taken, or is none of this machine.
    LedgerError
        Another process serves one of the policies, or the service's database cannot be used.
    """
    check_library("uvicorn", "service", "a service needs")
    import uvicorn

    from dither.service.web._patience import PatientProtocol

    app = application(desks, secure=at.secure, workers=workers, hosts=at.hosts, metrics=at.metrics)
    config = uvicorn.Config(
        app,
        http=PatientProtocol,
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
    config.load()
    hall: Hall = app.app.state.hall
    if at.certificate is not None and at.key is not None:
        config.ssl = hall.renewed["certificate"] = RenewedContext(at.certificate, at.key)
    server = uvicorn.Server(config)
    handled = server.handle_exit

    def told(sig: int, frame: FrameType | None) -> None:
        hall.leave()
        handled(sig, frame)

    server.handle_exit = told  # type: ignore[method-assign]
    with _alone(desks), _listening(at) as listening, _told(told, hall.look_again):
        write_lines()
        if ready is not None:
            ready(listening.getsockname()[1])
        log.info("serving", extra={"said": {"policies": sorted(hall.desks), "secure": at.secure}})
        try:
            server.run(sockets=[listening])
            begun = not server.lifespan.startup_failed
        except SystemExit:
            # So newer versions of uvicorn say it.
            begun = False
    log.info("ended")
    if not begun:
        raise LedgerError("the service could not begin: the lines above say what failed")


Handler = Callable[[int, FrameType | None], None]


@contextmanager
def _told(end: Handler, again: Callable[[], None]) -> Iterator[None]:
    """Let a signal end the server, and not the process behind it.

    Once it has ended as it was told to, uvicorn raises the signal again, as if nobody had.
    """
    if threading.current_thread() is not threading.main_thread():
        # Signals are for the main thread alone.
        yield
        return
    does: dict[int, Handler] = {signal.SIGINT: end, signal.SIGTERM: end}
    does[signal.SIGHUP] = end if _at_terminal() else lambda *_: again()
    kept = {number: signal.getsignal(number) for number in does}
    try:
        for number, handler in does.items():
            signal.signal(number, handler)
        yield
    finally:
        for number, before in kept.items():
            signal.signal(number, before)


def _at_terminal() -> bool:
    """Whether SIGHUP would say that the terminal is gone; after nohup, it would not."""
    ignored = signal.getsignal(signal.SIGHUP) is signal.SIG_IGN
    return not ignored and sys.stdin is not None and sys.stdin.isatty()


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
    """A socket that listens already: to bind one is not enough, for two can be bound to a port."""
    family = socket.AF_INET6 if ":" in at.host else socket.AF_INET
    found = socket.socket(family, socket.SOCK_STREAM)
    found.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    try:
        found.bind((at.host, at.port))
        found.listen(BACKLOG)
    except OSError as error:
        found.close()
        raise ArgumentError(_unbound(at, error)) from None
    return found


def _unbound(at: Listening, error: OSError) -> str:
    if error.errno == errno.EADDRINUSE:
        return f"port {at.port} is taken: another program listens on it; end it, or take another"
    if error.errno in (errno.EACCES, errno.EPERM):
        return f"port {at.port} is not for the user that runs this: take one above 1023"
    if isinstance(error, socket.gaierror) or error.errno == errno.EADDRNOTAVAIL:
        return f"host is no address of this machine, so that port {at.port} is not listened on"
    return (
        f"port {at.port} cannot be listened on: {errno.errorcode.get(error.errno or 0, 'OSError')}"
    )
