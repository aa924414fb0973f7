"""Where a service listens, what ends it, and connections that say nothing."""

from __future__ import annotations

import asyncio
import datetime as dt
import inspect
import signal
import socket
import subprocess
import sys
from pathlib import Path
from types import SimpleNamespace

import pytest
import uvicorn
from click.testing import CliRunner
from cryptography import x509
from cryptography.hazmat.primitives import hashes
from cryptography.hazmat.primitives import serialization as form
from cryptography.hazmat.primitives.asymmetric import ec
from starlette.applications import Starlette
from starlette.responses import PlainTextResponse
from starlette.routing import Route
from uvicorn.server import ServerState

from dither.cli import main
from dither.errors import ArgumentError, LedgerError
from dither.service._desk import Desk
from dither.service._hall import Hall
from dither.service.web import _patience, _serve
from dither.service.web._app import ENDPOINTS
from dither.service.web._patience import PatientProtocol
from dither.service.web._serve import Listening, _alone, _listening, _told
from service.hospital import written

WHOLE = b"GET / HTTP/1.1\r\nhost: x\r\nconnection: close\r\n\r\n"


async def said(*parts: bytes) -> bytes:
    """All that a connection is answered which sends this, part by part, and then waits."""
    app = Starlette(routes=[Route("/", lambda _: PlainTextResponse("well"))])
    config = uvicorn.Config(app, http=PatientProtocol, ws="none", log_config=None)
    config.load()
    loop, state = asyncio.get_running_loop(), ServerState()
    server = await loop.create_server(
        lambda: PatientProtocol(config=config, server_state=state, app_state={}), "127.0.0.1", 0
    )
    reader, writer = await asyncio.open_connection(*server.sockets[0].getsockname())
    for part in parts:
        writer.write(part)
        await asyncio.sleep(0.1)
    found = await asyncio.wait_for(reader.read(), 30)
    writer.close()
    server.close()
    return found


def test_a_connection_that_says_nothing_whole_is_ended(monkeypatch: pytest.MonkeyPatch) -> None:
    """Neither silence nor a header now and then holds a place; a whole request is answered."""
    monkeypatch.setattr(_patience, "HEADER_SECONDS", 0.3)
    assert asyncio.run(said()) == b""
    assert asyncio.run(said(*(b"GET / HTTP/1.1\r\n", *[b"x: y\r\n"] * 3))) == b""
    assert asyncio.run(said(WHOLE[:20], WHOLE[20:])).endswith(b"well")


class Peer(asyncio.Transport):
    """A connection from an address, of which nobody reads anything."""

    def __init__(self, host: str) -> None:
        super().__init__({"peername": (host, 7), "sockname": ("192.0.2.1", 8443)})
        self.ended = False

    def abort(self) -> None:
        """End it."""
        self.ended = True

    def close(self) -> None:
        """It is gone already."""


def test_no_address_has_all_connections(monkeypatch: pytest.MonkeyPatch) -> None:
    """However slowly it reads; another is let in, and so is it once one of its own is gone."""
    monkeypatch.setattr(_patience, "MOST_OF_ONE", 2)

    async def tried() -> None:
        config = uvicorn.Config(Starlette(), http=PatientProtocol, ws="none", log_config=None)
        config.load()

        def come(host: str) -> tuple[PatientProtocol, bool]:
            found = PatientProtocol(config=config, server_state=ServerState(), app_state={})
            peer = Peer(host)
            found.connection_made(peer)
            return found, not peer.ended

        of_one = [come(f"2001:db8::{i}") for i in range(3)]
        assert [in_ for _, in_ in of_one] == [True, True, False]
        others = [come(host) for host in ("2001:db8:0:1::1", "192.0.2.7", *["127.0.0.1"] * 4)]
        assert all(in_ for _, in_ in others)
        for one, _ in (of_one[2], of_one[0]):
            one.connection_lost(None)
        again, in_ = come("2001:db8::9")
        assert in_
        for one, _ in (of_one[1], *others, (again, in_)):
            one.connection_lost(None)
        assert not PatientProtocol._held

    asyncio.run(tried())


def test_one_service_has_a_policys_files(tmp_path: Path) -> None:
    """Another would take up its jobs as those of one that is gone."""
    desk = Desk(written(tmp_path))
    with _alone([desk]), pytest.raises(LedgerError, match="served already"), _alone([desk]):
        raise AssertionError
    with _alone([desk]):
        desk.close()


def test_nobody_listens_to_the_world_in_the_clear() -> None:
    """Loopback alone, or TLS, or a proxy that the owner names."""
    for host in ("127.0.0.1", "::1", "localhost", "127.8.9.1"):
        assert not Listening(host).secure
    for host in ("0.0.0.0", "::", "10.0.0.5", "data.example.org", "localhost.evil.example"):
        with pytest.raises(ArgumentError, match="whoever is on the way"):
            Listening(host)
        assert Listening(host, behind_proxy=True).secure


def test_certificates_that_cannot_be_used_are_refused_before_anything_is_opened(
    tmp_path: Path,
) -> None:
    """And none has the start wait at a terminal, which a service has not got, for a password."""
    key, other = (ec.generate_private_key(ec.SECP256R1()) for _ in range(2))
    name = x509.Name([x509.NameAttribute(x509.NameOID.COMMON_NAME, "localhost")])
    day = dt.datetime.now(dt.UTC)
    made = x509.CertificateBuilder(name, name, key.public_key(), 1, day, day + dt.timedelta(1))
    crt = tmp_path / "tls.crt"
    crt.write_bytes(made.sign(key, hashes.SHA256()).public_bytes(form.Encoding.PEM))

    def pem(one: ec.EllipticCurvePrivateKey, locked: bool = False) -> Path:
        lock = form.BestAvailableEncryption(b"word") if locked else form.NoEncryption()
        path = tmp_path / f"{id(one)}{locked}.key"
        path.write_bytes(
            one.private_bytes(form.Encoding.PEM, form.PrivateFormat.TraditionalOpenSSL, lock)
        )
        return path

    assert Listening("0.0.0.0", certificate=crt, key=pem(key)).secure
    for wrong in ((crt, pem(other)), (crt, pem(key, True)), (pem(key), crt), (crt, crt)):
        with pytest.raises(ArgumentError, match="without a password"):
            Listening("0.0.0.0", certificate=wrong[0], key=wrong[1])
    with pytest.raises(ArgumentError, match="there is no such file"):
        Listening("0.0.0.0", certificate=tmp_path / "none", key=pem(key))


@pytest.mark.parametrize("host", ["127.0.0.1", "::1"])
def test_a_port_that_is_taken_is_said_before_anything_is_served(tmp_path: Path, host: str) -> None:
    """By its number; also where whoever has it is bound, and does not listen yet."""
    policy = written(tmp_path)
    with socket.socket(socket.AF_INET6 if ":" in host else socket.AF_INET) as other:
        other.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            other.bind((host, 0))
        except OSError:
            pytest.skip("no such address on this machine")
        port = other.getsockname()[1]
        other.listen()
        given = ["serve", str(policy), "--host", host, "--port", str(port)]
        found = CliRunner().invoke(main, given)
        assert found.exit_code
        assert f"port {port} is taken" in found.output
        assert "serving" not in found.output


@pytest.mark.parametrize(
    ("host", "port", "said"),
    [
        ("198.51.100.7", 1, "host is no address of this machine"),
        ("no.such.host.invalid", 1, "host is no address of this machine"),
    ],
)
def test_why_nothing_listens(host: str, port: int, said: str) -> None:
    """An address that another machine has, and a name that nobody has."""
    with pytest.raises(ArgumentError, match=said):
        _listening(Listening(host, port, behind_proxy=True))


def test_two_that_begin_at_once_never_have_one_port(tmp_path: Path) -> None:
    """Two sockets can be bound to one port, as long as neither listens."""
    with _listening(Listening(port=0)) as first, pytest.raises(ArgumentError, match="is taken"):
        _listening(Listening(port=first.getsockname()[1]))


def test_a_service_that_cannot_begin_is_an_error(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """And no end like another: what started it sees that it does not run."""

    async def failing(self: Hall, _: object) -> None:
        raise LedgerError("no disk")

    monkeypatch.setattr(Hall, "start", failing)
    monkeypatch.setattr(_serve, "write_lines", lambda: None)
    ports: list[int] = []
    with pytest.raises(LedgerError, match="could not begin"):
        _serve.serve([Desk(written(tmp_path))], Listening(port=0), ready=ports.append)
    assert ports
    assert ports[0] > 0


@pytest.mark.parametrize(("terminal", "ignored"), [(True, False), (True, True), (False, False)])
def test_a_hang_up_ends_what_is_at_a_terminal_and_else_has_files_read_again(
    monkeypatch: pytest.MonkeyPatch, terminal: bool, ignored: bool
) -> None:
    """After nohup it is no terminal's. What was there before comes back."""
    monkeypatch.setattr("sys.stdin", SimpleNamespace(isatty=lambda: terminal))
    told: list[str] = []
    before = signal.getsignal(signal.SIGHUP)
    try:
        signal.signal(signal.SIGHUP, signal.SIG_IGN if ignored else signal.SIG_DFL)
        own = signal.getsignal(signal.SIGHUP)
        with _told(lambda *_: told.append("end"), lambda: told.append("again")):
            signal.raise_signal(signal.SIGHUP)
        assert signal.getsignal(signal.SIGHUP) is own
    finally:
        signal.signal(signal.SIGHUP, before)
    assert told == ["end" if terminal and not ignored else "again"]


def test_whoever_waits_holds_no_thread() -> None:
    """Else a few who wait for their answers would keep everybody else from asking."""
    (waits,) = [one for one in ENDPOINTS if (one.method, one.path) == ("GET", "/jobs/{id}")]
    assert inspect.iscoroutinefunction(waits.does)


def test_it_starts_without_what_questions_and_surveys_need(tmp_path: Path) -> None:
    """A service answers within two seconds, since what it needs later loads later."""
    code = (
        "import sys\nfrom dither.service._desk import Desk\n"
        "from dither.service.web import _serve\n"
        f"desk = Desk({str(written(tmp_path))!r})\n_serve.application([desk])\n"
        "later = ['polars', 'scipy', 'pyarrow', 'authlib', 'mpmath', 'dither.local',\n"
        "    'sqlalchemy.dialects.postgresql', 'dither.query', 'dither.mechanisms',\n"
        "    *(f'dither.service.{name}' for name in ('collect', 'schedule', 'publish'))]\n"
        "sys.exit(', '.join(name for name in later if name in sys.modules) or 0)"
    )
    found = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=60)
    assert found.returncode == 0, found.stderr
