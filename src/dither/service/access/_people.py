"""People and their keys.

A key is 32 random bytes behind a prefix that tells what it is where it is found; the database has
its BLAKE2b hash alone. There are no passwords: what is random needs no slow hash, which would let
anybody keep the server busy.
"""

from __future__ import annotations

import base64
import hashlib
import re
import secrets
import time
from dataclasses import dataclass

import sqlalchemy as sa

from dither.errors import ArgumentError
from dither.service._database import Database
from dither.service._tables import jobs, keys, people, sessions
from dither.service._tables import log as log_table
from dither.service.access._roles import Role

__all__ = ["Identity", "NewKey", "People", "SignedIn", "hashed_key"]

PREFIX = "dither_"
_KEY = re.compile(r"dither_[A-Za-z0-9_-]{43}")
NAME = re.compile(r"[^\W_][\w.@+-]{0,99}")
LONGEST_NAME = 2000
"""Of those that a provider says, too."""

UNNAMED = "name must begin with a letter or digit, and be of these and . _ @ + - alone, at most 100"

SESSION_SECONDS = 12 * 3600


def hashed_key(key: str) -> bytes:
    """What the database has of a key, or of another secret text."""
    return hashlib.blake2b(key.encode("utf-8", "replace"), digest_size=32).digest()


@dataclass(frozen=True, slots=True)
class Identity:
    """Who makes a request.

    Parameters
    ----------
    name : str
        Empty for whoever has no key.
    role : Role
    csrf : bytes, optional
        Of a browser's session: the hash of what each change must bring along.
    """

    name: str
    role: Role
    csrf: bytes | None = None


@dataclass(frozen=True, slots=True)
class NewKey:
    """A key, shown this once."""

    id: str
    person: str
    key: str
    expires: float | None


@dataclass(frozen=True, slots=True)
class SignedIn:
    """A browser's session, whose secrets are shown this once."""

    cookie: str
    csrf: str
    expires: float


class People:
    """Who there is, and with which keys.

    Parameters
    ----------
    database : Database
    """

    def __init__(self, database: Database) -> None:
        self._database = database
        self._latest = 0.0

    def _now(self) -> float:
        """The time, which does not go back: what expired once stays so."""
        self._latest = max(self._latest, time.time())
        return self._latest

    def add(self, name: str, role: Role, by: str = "the owner") -> None:
        """Add somebody, or give them another role.

        Raises
        ------
        ArgumentError
            The name is none, or the role is that of nobody in particular.
        """
        if role is Role.PUBLIC:
            raise ArgumentError("role must be owner, analyst or auditor")
        if not isinstance(name, str) or not name.isprintable() or len(name) > LONGEST_NAME:
            raise ArgumentError(UNNAMED)
        with self._database.writing() as connection:
            known = connection.execute(
                sa.select(people.c.role).where(people.c.name == name)
            ).scalar_one_or_none()
            # Who came by a provider has another name, and is let in again by it.
            if known is None and not NAME.fullmatch(name):
                raise ArgumentError(UNNAMED)
            values = {"role": role.value, "disabled": False}
            if known is None:
                made = people.insert().values(name=name, created=time.time(), **values)
                connection.execute(made)
            else:
                connection.execute(people.update().where(people.c.name == name).values(**values))
                connection.execute(sessions.delete().where(sessions.c.person == name))
            _log(connection, by, "person added" if known is None else "role changed", name)

    def disable(self, name: str, by: str = "the owner") -> None:
        """Take every key and session from somebody; what they were charged for stays.

        Raises
        ------
        ArgumentError
            There is nobody of that name.
        """
        with self._database.writing() as connection:
            self._must_know(connection, name)
            connection.execute(people.update().where(people.c.name == name).values(disabled=True))
            connection.execute(keys.update().where(keys.c.person == name).values(revoked=True))
            connection.execute(sessions.delete().where(sessions.c.person == name))
            # What they asked and nobody began is not charged any more.
            begun = sa.or_(jobs.c.entry.is_not(None), jobs.c.attempts > 0)
            connection.execute(
                jobs.update()
                .where(jobs.c.person == name, jobs.c.state.in_(("waiting", "queued")), ~begun)
                .values(state="cancelled")
            )
            _log(connection, by, "person disabled", name)

    def come(self, name: str, role: Role | None) -> bool:
        """Somebody came by a provider, which says what they are now.

        Parameters
        ----------
        name : str
            As `dither.service.access._oidc.name_of` makes it.
        role : Role or None
            None of somebody who is nothing any more: their sessions and keys end.

        Returns
        -------
        bool
            Whether they are let in: not without a role, and not whom an owner disabled.
        """
        with self._database.writing() as connection:
            found = sa.select(people.c.role, people.c.disabled).where(people.c.name == name)
            known = connection.execute(found).one_or_none()
            if role is None:
                if known is not None:
                    connection.execute(
                        keys.update().where(keys.c.person == name).values(revoked=True)
                    )
                    connection.execute(sessions.delete().where(sessions.c.person == name))
                    _log(connection, "the provider", "has no role any more", name)
                return False
            if known is not None and known.disabled:
                return False
            if known is None:
                connection.execute(
                    people.insert().values(
                        name=name, role=role.value, disabled=False, created=time.time()
                    )
                )
            elif known.role != role.value:
                changed = people.update().where(people.c.name == name).values(role=role.value)
                connection.execute(changed)
            if known is None or known.role != role.value:
                _log(connection, "the provider", f"is {role.value}", name)
        return True

    def new_key(self, name: str, days: float | None = 90, by: str = "the owner") -> NewKey:
        """Make a key for somebody.

        Parameters
        ----------
        name : str
        days : number or None
            How long it lasts; None for ever.

        Raises
        ------
        ArgumentError
            There is nobody of that name, or days is not above 0.
        """
        if days is not None and not 0 < days <= 36_500:
            raise ArgumentError("days must be above 0 and at most 36,500, or None")
        text = PREFIX + base64.urlsafe_b64encode(secrets.token_bytes(32)).decode().rstrip("=")
        made = NewKey(
            secrets.token_hex(8), name, text, None if days is None else time.time() + 86_400 * days
        )
        with self._database.writing() as connection:
            self._must_know(connection, name)
            connection.execute(
                keys.insert().values(
                    id=made.id,
                    person=name,
                    hash=hashed_key(text),
                    created=time.time(),
                    expires=made.expires,
                    revoked=False,
                )
            )
            _log(connection, by, "key made", f"{name} {made.id}")
        return made

    def revoke(self, key_id: str, by: str = "the owner") -> None:
        """End a key, and the sessions that began with it.

        Raises
        ------
        ArgumentError
            There is none.
        """
        with self._database.writing() as connection:
            found = connection.execute(
                keys.update().where(keys.c.id == key_id).values(revoked=True)
            )
            if not found.rowcount:
                raise ArgumentError("there is no such key")
            connection.execute(sessions.delete().where(sessions.c.key == key_id))
            _log(connection, by, "key revoked", key_id)

    def listed(self) -> list[dict[str, object]]:
        """Everybody, with their keys as far as they may be shown."""
        with self._database.reading() as connection:
            rows = connection.execute(sa.select(people).order_by(people.c.name)).mappings().all()
            held = connection.execute(sa.select(keys).order_by(keys.c.created)).mappings().all()
        return [
            {
                "name": row["name"],
                "role": row["role"],
                "disabled": bool(row["disabled"]),
                "keys": [
                    {"id": k["id"], "expires": k["expires"], "revoked": bool(k["revoked"])}
                    for k in held
                    if k["person"] == row["name"]
                ],
            }
            for row in rows
        ]

    def role(self, name: str) -> Role | None:
        """What somebody is; None of nobody."""
        with self._database.reading() as connection:
            found = connection.execute(
                sa.select(people.c.role).where(people.c.name == name)
            ).scalar_one_or_none()
        return None if found is None else Role(found)

    def by_key(self, key: str) -> tuple[Identity, str] | None:
        """Whose key this is, and its id; None of one that is unknown, expired or revoked.

        The time that it takes tells nothing of other keys: what is looked up is a hash.
        """
        if not _KEY.fullmatch(key):
            return None
        with self._database.reading() as connection:
            row = connection.execute(
                sa.select(keys.c.id, keys.c.expires, people.c.name, people.c.role)
                .join(people, people.c.name == keys.c.person)
                .where(
                    keys.c.hash == hashed_key(key),
                    keys.c.revoked.is_(False),
                    people.c.disabled.is_(False),
                )
            ).one_or_none()
        if row is None or (row.expires is not None and row.expires <= self._now()):
            return None
        return Identity(row.name, Role(row.role)), row.id

    def sign_in(self, who: Identity, key: str | None = None) -> SignedIn:
        """Begin a browser's session; ``key`` is the id of the key that it began with."""
        cookie, csrf = secrets.token_urlsafe(32), secrets.token_urlsafe(32)
        expires = time.time() + SESSION_SECONDS
        with self._database.writing() as connection:
            connection.execute(sessions.delete().where(sessions.c.expires <= time.time()))
            connection.execute(
                sessions.insert().values(
                    hash=hashed_key(cookie),
                    person=who.name,
                    role=who.role.value,
                    csrf=hashed_key(csrf),
                    key=key,
                    expires=expires,
                )
            )
            _log(connection, who.name, "signed in", who.name)
        return SignedIn(cookie, csrf, expires)

    def by_cookie(self, cookie: str) -> Identity | None:
        """Whose session this is; None of one that is unknown, ended or expired."""
        with self._database.reading() as connection:
            row = connection.execute(
                sa.select(sessions).where(
                    sessions.c.hash == hashed_key(cookie), sessions.c.expires > self._now()
                )
            ).one_or_none()
            if row is None or (row.key is not None and not self._holds(connection, row.key)):
                return None
            known = connection.execute(
                sa.select(people.c.role, people.c.disabled).where(people.c.name == row.person)
            ).one_or_none()
        if known is not None and known.disabled:
            return None
        role = Role(row.role) if known is None else Role(known.role)
        return Identity(row.person, role, row.csrf)

    def _holds(self, connection: sa.Connection, key_id: str) -> bool:
        """Whether a key has neither expired nor been revoked; a session ends with its key."""
        row = connection.execute(
            sa.select(keys.c.expires, keys.c.revoked).where(keys.c.id == key_id)
        ).one_or_none()
        if row is None or row.revoked:
            return False
        return row.expires is None or row.expires > self._now()

    def sign_out(self, cookie: str) -> None:
        """End a session."""
        with self._database.writing() as connection:
            connection.execute(sessions.delete().where(sessions.c.hash == hashed_key(cookie)))

    def log(self, last: int = 200) -> list[dict[str, object]]:
        """What was decided, newest first."""
        with self._database.reading() as connection:
            found = sa.select(log_table).order_by(log_table.c.number.desc()).limit(last)
            return [dict(row) for row in connection.execute(found).mappings()]

    def note(self, by: str, what: str, about: str) -> None:
        """Write down what was decided."""
        with self._database.writing() as connection:
            _log(connection, by, what, about)

    def asked(self, name: str) -> bool:
        """Whether somebody ever asked anything."""
        with self._database.reading() as connection:
            found = sa.select(jobs.c.id).where(jobs.c.person == name).limit(1)
            return connection.execute(found).first() is not None

    @staticmethod
    def _must_know(connection: sa.Connection, name: str) -> None:
        found = connection.execute(sa.select(people.c.name).where(people.c.name == name)).first()
        if found is None:
            raise ArgumentError("name: there is nobody of that name; add them first")


def _log(connection: sa.Connection, by: str, what: str, about: str) -> None:
    connection.execute(log_table.insert().values(time=time.time(), by=by, what=what, about=about))
