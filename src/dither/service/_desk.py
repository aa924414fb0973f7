"""One policy at a service: opened once, asked for many, and run elsewhere.

What is free (explaining, previews, prices, balances) is answered here, over one engine and one
ledger. What is released becomes a job.
"""

from __future__ import annotations

import json
import threading
import time
from collections.abc import Callable, Collection, Mapping
from fractions import Fraction
from functools import partial
from itertools import islice
from pathlib import Path
from typing import Any

from dither._files import file_stamp
from dither.errors import ArgumentError, LedgerError, PolicyError
from dither.ledger import Entry
from dither.policy._canonical import AROUND
from dither.policy._policy import PolicyText
from dither.policy._publishing import EVERYBODY
from dither.service._database import Database
from dither.service._settings import ServiceSettings, read_settings
from dither.service._shared import public_document
from dither.service._tables import SERVICE
from dither.service.access._oidc import Provider
from dither.service.access._people import Identity, People
from dither.service.access._roles import Role
from dither.service.work._drafts import DRAFTS, answers_named, asked_of, question_made
from dither.service.work._jobs import Draft, Jobs, ReleaseJob
from dither.service.work._pool import Order
from dither.session._session import Session, open_for_all

__all__ = ["Desk"]

MOST_ANSWERS = 8
"""Earlier answers that one question may name."""

UNSEEN = "the ledger has no such answer that you may see: name one that you were given"


class Desk:
    """A policy that is served.

    Parameters
    ----------
    policy : path
        Its file. Sources are those that it names.
    name : str, optional
        What stands in addresses, where the policy says nothing.

    Raises
    ------
    PolicyError, LedgerError
        As `dither.open`.
    """

    def __init__(self, policy: str | Path, name: str | None = None) -> None:
        self._named = Path(policy).absolute()
        self._given = name
        self.session, self.text, self.document, self._seen = self._read()
        try:
            self.settings = self._settings(self.session)
            self.provider = self._provided(self.settings, None)
            self.database = Database(self.settings.database, SERVICE)
        except BaseException:
            self.session.close()
            raise
        self.people = People(self.database)
        self.jobs = Jobs(self.database)
        self._lock = threading.Lock()
        self._before: list[tuple[float, Session]] = []

    def _settings(self, session: Session) -> ServiceSettings:
        stem = "".join(c if c.isascii() and c.isalnum() else "-" for c in self.path.stem.lower())
        return read_settings(session.policy, self._given or stem.strip("-")[:40])

    @staticmethod
    def _provided(settings: ServiceSettings, before: Provider | None) -> Provider | None:
        """Where people sign in, if the policy names a provider: one while it names the same."""
        if before is not None and before.settings == settings.oidc:
            return before
        return None if settings.oidc is None else Provider(settings.oidc, settings.name)

    @property
    def path(self) -> Path:
        """Its file: what a link leads to now, since a new policy may come by another link."""
        return self._named.resolve()

    @property
    def name(self) -> str:
        """What stands in addresses."""
        return self.settings.name

    # --- the policy's file ------------------------------------------------------------------------

    def _read(
        self, path: Path | None = None
    ) -> tuple[Session, PolicyText, Any, tuple[Path, int, int, int] | None]:
        """The policy, opened, with its text and what is public of it, of one state of its file."""
        stamp = self._stamp(path)
        text = PolicyText.read(path or self.path)
        session = open_for_all(text)
        try:
            document = public_document(text, leave_out=AROUND)
            if self._stamp(path) != stamp:
                raise ArgumentError("the policy's file changed while it was read: read it again")
        except BaseException:
            session.close()
            raise
        return session, text, document, stamp

    def _stamp(self, path: Path | None = None) -> tuple[Path, int, int, int] | None:
        try:
            place = path or self.path
            return place, *file_stamp(place)
        except (OSError, RuntimeError):  # or links that lead in a circle
            return None

    def take_up(self, changed_only: bool = False) -> bool:
        """Read the policy's file again, and take all of it or nothing.

        Parameters
        ----------
        changed_only : bool
            Look at the file's time first.

        Returns
        -------
        bool
            Whether another policy is served now.

        Raises
        ------
        DitherError
            The new one cannot be opened: the one before is served on.
        """
        stamp = self._stamp()
        if changed_only and stamp == self._seen:
            return False
        self._seen = stamp
        fresh, text, document, self._seen = self._read()
        try:
            settings, provider = self._fitting(fresh)
        except BaseException:
            fresh.close()
            raise
        with self._lock:
            before, self.session, self.settings = self.session, fresh, settings
            self.text, self.document = text, document
            self.provider = provider
            self._before.append((time.monotonic(), before))
        return before.policy.digest != fresh.policy.digest

    def try_out(self, path: Path) -> None:
        """See that another file could be taken up in place of this one; nothing is.

        Raises
        ------
        DitherError
            As of `take_up`.
        """
        fresh, *_ = self._read(path)
        try:
            self._fitting(fresh)
        finally:
            fresh.close()

    def _fitting(self, fresh: Session) -> tuple[ServiceSettings, Provider | None]:
        """The settings of a policy that is to be served in place of this one."""
        settings = self._settings(fresh)
        fixed = ("name", "database", "body", "memory", "workers")
        if any(getattr(settings, one) != getattr(self.settings, one) for one in fixed):
            raise ArgumentError(
                "name, database, body, memory and workers of [service] cannot change while it "
                "runs: start it again"
            )
        return settings, self._provided(settings, self.provider)

    def tidy(self, after: float = 60.0) -> None:
        """Close policies that were served before, once nobody can be at them any more."""
        now = time.monotonic()
        with self._lock:
            old = [one for when, one in self._before if now - when >= after]
            self._before = [(when, one) for when, one in self._before if now - when < after]
        for session in old:
            session.close()

    def close(self) -> None:
        """Give back the engine, the ledger and the database."""
        self.tidy(0)
        self.session.close()
        self.database.close()

    # --- asking -----------------------------------------------------------------------------------

    def session_of(self, who: Identity, purpose: str | None = None) -> Session:
        """The session of somebody, over the engine and the ledger of all.

        Raises
        ------
        DitherError
            They have no quota under this policy.
        """
        known = self.session.policy.quotas.known
        if known and who.name not in known and who.role is not Role.OWNER:
            # Who else has one is nobody's business.
            raise PolicyError(
                "you have no quota under this policy, and cannot ask: its owner can give you one"
            )
        # Made anew, in some microseconds: under the role that they have now, with what the ledger
        # knows now.
        found = self.session.asked_by(who.name, purpose, owner=who.role is Role.OWNER)
        # Those with one account are told apart here alone.
        found._opened.shown = partial(self.jobs.answered_to, person=who.name)
        return found

    def question(self, who: Identity, body: Mapping[str, Any]) -> tuple[Any, Session]:
        """The question that a request's body asks, of a session of its own.

        Raises
        ------
        DitherError
            It cannot be asked.
        """
        session = self.session_of(who, body.get("purpose"))
        return question_made(session, body), session

    def worked_out(self, what: str, who: Identity, body: Mapping[str, Any]) -> dict[str, Any]:
        """A draft's explanation, preview, price or what a job keeps of it, found here.

        Raises
        ------
        DitherError
            It cannot be asked, or has no price.
        """
        return DRAFTS[what](self.session_of(who, body.get("purpose")), body)

    def check_answers(self, who: Identity, body: Mapping[str, Any]) -> None:
        """Refuse what rests on an answer that somebody may not see.

        Raises
        ------
        ArgumentError
            It is another's, or there is none.
        """
        named = list(islice(answers_named(asked_of(body)), MOST_ANSWERS + 1))
        if len(named) > MOST_ANSWERS:
            raise ArgumentError(f"ask: a question rests on at most {MOST_ANSWERS} earlier answers")
        for request, entry in named:
            if entry not in {one.hash for one, _ in self._published(who, request)}:
                raise ArgumentError(UNSEEN)

    def ask(self, who: Identity, body: Mapping[str, Any]) -> ReleaseJob:
        """Take a request for a release, as a job.

        Raises
        ------
        DitherError
            It cannot be asked, a table is paused, or the token was used for something else.
        """
        return self.take(who, body, self.worked_out("draft", who, body))

    def take(self, who: Identity, body: Mapping[str, Any], found: Mapping[str, Any]) -> ReleaseJob:
        """Take a request, as a job, once it is worked out what it asks for.

        Raises
        ------
        DitherError
            As `ask`.
        """
        if body.get("digest") not in (None, found["digest"]):
            raise ArgumentError(
                "the service understands this question otherwise than the program that asks: see "
                "that both have one version of dither, and connect again"
            )
        self.check_pauses(found["tables"])
        reuse, token = body.get("reuse"), body.get("token")
        if reuse is None:
            reuse = token is None and self.session.policy.releases.reuse
        if reuse and token is not None:
            raise ArgumentError(
                "give a token or reuse, not both: a token names an answer of its own"
            )
        earlier = self._published(who, found["digest"]) if reuse else []
        named = {} if found["priced"] else body
        draft = Draft(
            ask=asked_of(body),
            title=found["title"],
            requested={
                "epsilon": named.get("epsilon"),
                "delta": named.get("delta"),
                "confidence": named.get("confidence") or 0.95,
            },
            digest=found["digest"],
            tables=tuple(found["tables"]),
            price=found["price"],
        )
        return self.jobs.add(
            who.name,
            token,
            draft,
            purpose=body.get("purpose"),
            reservation=body.get("reservation"),
            waits=self.waits(who, found["price"]),
            # Looked for here: the ledger alone does not tell who of those with one account asked.
            answered=earlier[-1][0].number if earlier else None,
        )

    def waits(self, who: Identity, price: Mapping[str, Any]) -> bool:
        """Whether a question of this price waits for an owner."""
        limit = self.settings.approve_above
        if limit is None or who.role is Role.OWNER:
            return False
        return price["epsilon"] is None or Fraction(price["epsilon"]) > limit

    def check_pauses(self, tables: Collection[str]) -> None:
        """Refuse what reads a table that is paused.

        Raises
        ------
        ArgumentError
            Nothing is spent.
        """
        for table, reason in self.jobs.paused().items():
            if table in tables:
                raise ArgumentError(f"table {table!r} is paused by the data owner: {reason}")

    def order(self, job: ReleaseJob) -> Order:
        """A job as a process runs it."""
        role = self.role_of(job.person)
        timeout = self.settings.timeouts.get(role, min(self.settings.timeouts.values()))
        text, digest = self.served()
        return Order(job, text, digest, timeout, role is Role.OWNER)

    def served(self) -> tuple[PolicyText, str]:
        """The policy that is served, as text, and its digest."""
        with self._lock:
            return self.text, self.session.policy.digest

    def role_of(self, person: str) -> Role:
        """What somebody is; an analyst where nobody knows them any more."""
        return self.people.role(person) or Role.ANALYST

    # --- answers ----------------------------------------------------------------------------------

    def answer(self, job: ReleaseJob) -> dict[str, Any] | None:
        """The answer of a job that is done, as the ledger has it."""
        return None if job.entry is None else self.answer_of(job.draft.digest, job.entry)

    def answer_of(self, digest: str, number: int) -> dict[str, Any] | None:
        """The answer of an entry to a request."""
        entry, answer = self.session.ledger.answer(number) or (None, "")
        if entry is None or entry.request != digest:
            return None
        return {"content": json.loads(answer), "time": entry.time.isoformat()}

    def published(self, who: Identity, digest: str) -> list[dict[str, Any]]:
        """Earlier answers to a request that somebody may see, oldest first."""
        return [
            {
                "content": json.loads(answer),
                "time": entry.time.isoformat(),
                "entry": entry.number,
                "hash": entry.hash,
            }
            for entry, answer in self._published(who, digest)
        ]

    def _published(self, who: Identity, digest: str) -> list[tuple[Entry, str]]:
        everybody = self.session.policy.releases.audience == EVERYBODY
        mine = None if everybody else self.jobs.answered_to(digest, who.name)
        return [
            (entry, answer)
            for entry, answer in self.session.ledger.answers_to(digest)
            if entry.note.get("policy") == self.session.policy.digest
            and (mine is None or entry.number in mine)
        ]

    def shown(self, who: Identity) -> Callable[[ReleaseJob], bool]:
        """Which answers somebody may see: their own, and those of others as the owner says."""
        if self.settings.public or who.role is Role.OWNER:
            return lambda _: True
        told: set[int] = set()
        if self.session.policy.releases.audience == EVERYBODY:
            opened = self.session._opened
            told = {entry.number for one in opened.promises for entry, _ in opened.seen(one)}
        return lambda job: job.person == who.name or job.entry in told

    def healthy(self) -> bool:
        """Whether the ledger and the database can be read."""
        try:
            self.session.ledger.accounts()
            self.jobs.paused()
        except LedgerError:
            return False
        return True
