"""Throw-away PostgreSQL servers for tests: one a process, on loopback, gone with the process.

The fixture ``postgres`` gives each test a database of its own (`Database`): the DSN of its owner
and of a role that may only SELECT. The first test that asks starts the server, as another user
where the tests run as root. Where PostgreSQL or psycopg is missing, those tests are skipped.
A test that harms its server makes one of its own: ``with Server() as server``.

The server's own settings are those that a careless program stumbles over: a time zone with odd
minutes, dates written day first, floats rounded, texts sorted as people do.
"""

from __future__ import annotations

import itertools
import os
import re
import shutil
import signal
import socket
import subprocess
import tempfile
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any, Self
from urllib.parse import quote

import pytest

from scratch import in_memory

ABSENT = "PostgreSQL is not installed"
OLDEST = 14

PASSWORD = "s3cr3t %40/?#:'\"\\ p"
"""Of every role. It needs escaping everywhere, and stands nowhere else: search messages for it."""

SETTINGS = {
    # Durable where a transaction asks for it (synchronous_commit), and quick elsewhere.
    "fsync": "on",
    "synchronous_commit": "off",
    "full_page_writes": "off",
    "shared_buffers": "64MB",
    "max_wal_size": "256MB",
    "checkpoint_timeout": "1h",
    "autovacuum": "off",
    "jit": "off",
    "TimeZone": "Pacific/Chatham",
    "DateStyle": "German, DMY",
    "IntervalStyle": "sql_standard",
    "bytea_output": "escape",
    "extra_float_digits": "0",
    "lc_messages": "C",
    "log_min_messages": "warning",
}

# What stops the server when its pipe is closed, however the tests came to their end.
WATCHDOG = """
read -r _
"$1/pg_ctl" stop -D "$2/data" -m immediate -s >/dev/null 2>&1
rm -rf "$2"
"""


@cache
def binaries() -> Path | None:
    """The folder of the newest PostgreSQL that is installed, if it is new enough."""
    found: dict[Path, int] = {}
    for folder in _folders():
        if all((folder / name).exists() for name in ("initdb", "pg_ctl", "postgres")):
            said = subprocess.run(
                [folder / "postgres", "--version"], capture_output=True, text=True, check=False
            ).stdout
            version = re.search(r"(\d+)", said)
            found[folder] = int(version[1]) if version else 0
    best = max(found, key=lambda folder: found[folder], default=None)
    return best if best is not None and found[best] >= OLDEST else None


def _folders() -> Iterator[Path]:
    if config := shutil.which("pg_config"):
        said = subprocess.run([config, "--bindir"], capture_output=True, text=True, check=False)
        yield Path(said.stdout.strip())
    if initdb := shutil.which("initdb"):
        yield Path(initdb).parent
    for root, pattern in [
        ("/usr/lib/postgresql", "*/bin"),
        ("/usr", "pgsql-*/bin"),
        ("/usr/local", "pgsql/bin"),
        ("/opt/homebrew/opt", "postgresql@*/bin"),
        ("/usr/local/opt", "postgresql@*/bin"),
    ]:
        yield from sorted(Path(root).glob(pattern))


def missing() -> str | None:
    """Why there can be no server here, or ``None``."""
    if os.name != "posix":
        return f"{ABSENT} where it could be started: the system is not POSIX"
    if binaries() is None:
        return ABSENT
    try:
        import psycopg  # noqa: F401
    except ImportError:
        return f"{ABSENT} with its client: pip install psycopg[binary]"
    return None


def _user() -> dict[str, Any]:
    """Arguments of Popen: PostgreSQL refuses to run as root."""
    if os.geteuid() != 0:
        return {}
    import pwd

    for name in ("postgres", "nobody"):
        try:
            entry = pwd.getpwnam(name)
        except KeyError:
            continue
        return {"user": entry.pw_uid, "group": entry.pw_gid, "extra_groups": []}
    return {"user": 65534, "group": 65534, "extra_groups": []}


class Server:
    """A PostgreSQL server in a folder of its own, which ends with this process at the latest.

    Roles: ``admin`` may everything, ``owner`` owns the databases, ``reader`` may only SELECT.
    Everyone has the same `PASSWORD`.

    Parameters
    ----------
    **settings : str
        Of its configuration, beside or instead of `SETTINGS`.
    """

    def __init__(self, **settings: str) -> None:
        folder = binaries()
        if (reason := missing()) or folder is None:
            pytest.skip(reason or ABSENT)
        self.binaries = folder
        self.port = 0
        self._numbers = itertools.count()
        self._as = _user()
        # Not pytest's folder: another user cannot enter it, and a socket's path must be short.
        self.folder = Path(tempfile.mkdtemp(prefix="dither-pg-", dir=in_memory()))
        if self._as:
            os.chown(self.folder, self._as["user"], self._as["group"])
        self._watchdog = subprocess.Popen(
            ["/bin/sh", "-c", WATCHDOG, "watchdog", self.binaries, self.folder],
            stdin=subprocess.PIPE,
            cwd="/",
            start_new_session=True,
            **self._as,
        )
        try:
            self._make({**SETTINGS, **settings})
        except BaseException:
            self.remove()
            raise

    def _make(self, settings: Mapping[str, str]) -> None:
        password = self.folder / "password"
        password.write_text(PASSWORD)
        password.chmod(0o644)
        initdb = ["initdb", "-D", str(self.data), "-U", "admin", "-E", "UTF8", "--no-sync"]
        initdb += ["-A", "scram-sha-256", f"--pwfile={password}", "--wal-segsize=4", "--locale=C"]
        try:
            self._run(*initdb, "--locale-provider=icu", "--icu-locale=en-US")
        except RuntimeError:  # before 15, or built without ICU
            shutil.rmtree(self.data, ignore_errors=True)
            self._run(*initdb)
        written = {
            **settings,
            "listen_addresses": "127.0.0.1",
            "unix_socket_directories": str(self.folder),
        }
        with (self.data / "postgresql.conf").open("a") as file:
            file.writelines(f"{name} = '{value}'\n" for name, value in written.items())
        self.start()
        with self.connect("postgres") as connection:
            for role in ("owner", "reader"):
                connection.execute(f"CREATE ROLE {role} LOGIN PASSWORD {literal(PASSWORD)}")
            connection.execute("REVOKE ALL ON DATABASE postgres, template1 FROM PUBLIC")
        with self.connect("template1") as connection:
            connection.execute("REVOKE ALL ON SCHEMA public FROM PUBLIC")
            connection.execute("GRANT ALL ON SCHEMA public TO owner")
            connection.execute("GRANT USAGE ON SCHEMA public TO reader")
            connection.execute(
                "ALTER DEFAULT PRIVILEGES FOR ROLE owner GRANT SELECT ON TABLES TO reader"
            )

    @property
    def data(self) -> Path:
        """The folder of its data."""
        return self.folder / "data"

    def start(self) -> None:
        """Start it, also after `kill`; on the same port as before."""
        for _ in range(5):
            port = self.port or _free_port()
            try:
                self._run(
                    *["pg_ctl", "start", "-D", str(self.data), "-w", "-s", "-t", "60"],
                    *["-l", str(self.folder / "log"), "-o", f"-p {port}"],
                )
            except RuntimeError:
                continue  # somebody took the port in between
            self.port = port
            return
        raise RuntimeError(f"the server does not start: {self.log()}")

    def stop(self, mode: str = "fast") -> None:
        """Stop it: ``fast`` ends connections, ``immediate`` crashes in good order."""
        self._run("pg_ctl", "stop", "-D", str(self.data), "-m", mode, "-w", "-s")

    def kill(self) -> None:
        """Kill every process of it at once, and wait until all are dead."""
        lock = self.data / "postmaster.pid"
        first = int(lock.read_text().split()[0])
        os.kill(first, signal.SIGSTOP)  # it starts no other one meanwhile
        for pid in (pids := [*_children(first), first]):
            os.kill(pid, signal.SIGKILL)
        while any(_alive(pid) for pid in pids):
            time.sleep(0.005)
        # Where nobody reaps the dead, their numbers would look like those of a running server.
        for file in (lock, *self.folder.glob(".s.PGSQL.*.lock")):
            file.unlink()

    @contextmanager
    def standby(self) -> Iterator[int]:
        """The port of a second server that follows this one, for as long as the block lasts."""
        data, port = self.folder / "standby", _free_port()
        whence = self.dsn("postgres", "admin")
        self._run("pg_basebackup", "-D", str(data), "-R", "-c", "fast", "-d", whence)
        log = str(self.folder / "standby.log")
        self._run("pg_ctl", "start", "-D", str(data), "-w", "-s", "-l", log, "-o", f"-p {port}")
        try:
            yield port
        finally:
            self._run("pg_ctl", "stop", "-D", str(data), "-m", "immediate", "-w", "-s")

    def log(self) -> str:
        """The end of what it logged."""
        file = self.folder / "log"
        return file.read_text(errors="replace")[-2000:] if file.exists() else ""

    def dsn(self, database: str, role: str = "owner") -> str:
        """Where a role finds a database, over TCP on loopback, with its password."""
        return f"postgresql://{role}:{quote(PASSWORD, safe='')}@127.0.0.1:{self.port}/{database}"

    def connect(self, database: str, role: str = "admin") -> Any:
        """A connection of psycopg on which each statement commits by itself."""
        import psycopg

        return psycopg.connect(self.dsn(database, role), autocommit=True)

    def database(self) -> Database:
        """A new and empty database."""
        name = f"test_{next(self._numbers)}"
        with self.connect("postgres") as connection:
            connection.execute(f"CREATE DATABASE {name} OWNER owner")
            connection.execute(f"REVOKE ALL ON DATABASE {name} FROM PUBLIC")
            connection.execute(f"GRANT CONNECT ON DATABASE {name} TO reader")
        return Database(self, name)

    def remove(self) -> None:
        """Stop it and remove its folder."""
        assert self._watchdog.stdin is not None
        self._watchdog.stdin.close()
        self._watchdog.wait()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.remove()

    def _run(self, program: str, *arguments: str) -> None:
        done = subprocess.run(
            [self.binaries / program, *arguments],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.PIPE,
            text=True,
            cwd="/",
            env={"PATH": os.environ.get("PATH", os.defpath), "LC_ALL": "C"},
            check=False,
            **self._as,
        )
        if done.returncode:
            raise RuntimeError(f"{program} failed: {done.stderr}")


@dataclass(frozen=True)
class Database:
    """A database of one test; it goes with its server.

    Parameters
    ----------
    server : Server
        Where it is.
    name : str
        Its name.
    """

    server: Server
    name: str

    @property
    def owner(self) -> str:
        """The DSN of the role that owns it."""
        return self.server.dsn(self.name)

    @property
    def reader(self) -> str:
        """The DSN of a role that may only SELECT, from every table that ``owner`` makes."""
        return self.server.dsn(self.name, "reader")

    def execute(self, *statements: str) -> list[tuple[Any, ...]]:
        """Run statements as its owner; the rows of the last one."""
        with self.server.connect(self.name, "owner") as connection:
            for statement in statements:
                last = connection.execute(statement.encode())
            return last.fetchall() if last.description else []


def literal(text: str) -> str:
    """A text as a constant of SQL, whatever ``standard_conforming_strings`` is."""
    doubled = text.replace("\\", "\\\\").replace("'", "''")
    return f"E'{doubled}'"


def _children(pid: int) -> list[int]:
    said = subprocess.run(["ps", "-A", "-o", "ppid=,pid="], capture_output=True, check=True).stdout
    pairs = (map(int, line.split()) for line in said.splitlines())
    return [child for parent, child in pairs if parent == pid]


def _alive(pid: int) -> bool:
    said = subprocess.run(["ps", "-o", "stat=", "-p", str(pid)], capture_output=True, check=False)
    return said.stdout.strip()[:1] not in (b"", b"Z")


def _free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


@pytest.fixture(scope="session")
def postgres_server() -> Iterator[Server]:
    """The server of this process, started when the first test asks for it."""
    with Server() as server:
        yield server


@pytest.fixture
def postgres(postgres_server: Server) -> Database:
    """A new and empty database on the server of this process."""
    return postgres_server.database()
