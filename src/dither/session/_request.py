"""The life of a request, once for every kind of question.

It is *explained*, *previewed* and *priced* free of charge, from public facts. Released, it passes
these steps, in this order, whatever is asked:

1. *replayed*: asked again under its token, the stored answer comes back, and nothing else happens;
2. *rehearsed*: the engine runs its jobs over empty tables, and its certificate is written down, so
   that what cannot be done or written is found before anything is charged;
3. *charged*: every account or none, on the disk; a refusal says what would fit;
4. *run*: the engine counts and noise is added. From here on nothing is refunded, and whatever fails
   becomes the one error that says nothing;
5. *certified*: the entry of the ledger is bound to what was asked and measured;
6. *stored*: beside its charge, for the token and for `dither.verify`.

A `Request` holds one request as data and passes the steps. A kind of question describes itself by
deriving from `PricedQuestion`: what it explains, its loss, its request, and how its answer is read.
"""

from __future__ import annotations

import datetime as dt
import json
import sys
import warnings
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, fields, is_dataclass
from fractions import Fraction
from functools import cached_property
from types import FrameType
from typing import Any, ClassVar, Generic, TypeVar

from dither import _checks as check
from dither._depth import deep
from dither._display import Explanation
from dither._format import remaining
from dither.blocks._sets import BlockSet
from dither.errors import ArgumentError, DitherError, EngineError, QueryError, TokenError
from dither.ledger import Balance, Charged
from dither.numeric import secure_words
from dither.plan.job import Job
from dither.plan.schema import Schema
from dither.policy._facts import Fact
from dither.privacy import Charge, Loss, Promise
from dither.session._answer import answer_hash
from dither.session._certificate import (
    MeasurementRecord,
    RequestData,
    certificate_data,
    certified,
)
from dither.session._charged import UNCHARGED, charged_blocks, reads_within
from dither.session._opened import UNSTORED, OpenedPolicy, after_the_charge
from dither.session._pricing import Affordable, Price, affordable
from dither.session._recipe import QuestionRecipe
from dither.session._signer import same_versions
from dither.session.dummies._marked import marked

__all__ = [
    "AnsweredRequest",
    "PricedQuestion",
    "Request",
    "UnreleasedQuestion",
    "largest_that_fits",
    "listener",
    "price_of",
    "request_of",
    "sizes_of",
    "warn_caller",
]

Content = Mapping[str, Any]
"""What is released, as plain data."""

Progress = Callable[[Any], None]

Released = TypeVar("Released")

MOST_SIZE = 10**15
"""Of rows or units, where a preview says no other limit: no table has more."""

REHEARSED = Charged(0, "0" * 64, False, None, "0" * 32)
"""A charge that was never made, for a certificate that is written to see that it can be."""


@dataclass(frozen=True, slots=True)
class AnsweredRequest:
    """What was released, as the ledger keeps it.

    Parameters
    ----------
    content : mapping
        What the request's run made, and ``certificate``.
    replayed : datetime, optional
        When it was charged, where it is an earlier answer.
    stored : bool
        Whether the ledger has it.
    """

    content: Content
    replayed: dt.datetime | None = None
    stored: bool = True


def _certificate_alone(certificate: Content) -> Content:
    return {"certificate": certificate}


@dataclass(frozen=True)
class Request:
    """One request, whole: all that its life needs to know of it, and no data.

    Parameters
    ----------
    opened : OpenedPolicy
    question : plain data
        What is asked, in the form that is hashed.
    requested : mapping of str to str
        Its parameters, which are hashed, too.
    loss : Loss
        Stated for ``promise``.
    promise : Promise
        Whom it protects: says which accounts are charged.
    note : callable
        What the ledger notes beside the charge, as plain data.
    tables : mapping of str to str
        The private tables that are read, each with what says whose a row is.
    record : callable
        What the certificate says of the measurements.
    run : callable
        From a secret key, of this charge alone, to plain data that may be published. It runs after
        the charge.
    fits : callable
        A sentence on what would fit, where the budget does not bear it.
    facts : sequence of Fact
        What was learned before and it rests on.
    jobs : callable, optional
        What the engine will be asked for, or the like of it, to be tried over empty tables.
    schema : Schema, optional
        Of the jobs.
    blocks : BlockSet, optional
        What is read of tables whose rows lie in blocks: each of them is charged.
    rehearsal : callable, optional
        From a certificate to an answer that holds it and nothing of data.
    unwritable : str
        What is said where that cannot be written down.
    """

    opened: OpenedPolicy
    question: Any
    requested: Mapping[str, str]
    loss: Loss
    promise: Promise
    note: Callable[[], Content]
    tables: Mapping[str, str]
    record: Callable[[], MeasurementRecord]
    run: Callable[[bytes], Content]
    fits: Callable[[], str]
    facts: Sequence[Fact] = ()
    jobs: Callable[[], Iterable[Job]] = tuple
    schema: Schema | None = None
    blocks: BlockSet | None = None
    rehearsal: Callable[[Content], Content] = _certificate_alone
    unwritable: str = "the names in this question cannot be written down"

    @cached_property
    def data(self) -> RequestData:
        """What was asked for, as data that is hashed."""
        learned = tuple(fact.to_dict() for fact in self.facts)
        promise, policy = self.promise.to_dict(), self.opened.policy.digest
        blocks = self.opened.blocks_data(self.promise.unit, self.blocks)
        return RequestData(self.question, self.requested, promise, policy, learned, blocks)

    @property
    def price(self) -> Charge:
        """What the ledger would be charged."""
        return self.loss.charge

    @property
    def priced(self) -> Price:
        """The same, with what bears it."""
        return Price(self.price, self.promise, self.blocks)

    def affordable(self, balances: Iterable[Balance] | None = None) -> Affordable:
        """How many more like this can be paid, by the accounts as they were read, or are now."""
        if balances is None:
            balances = self.opened.balances([self.promise])
        return affordable(self.priced, balances)

    def release(
        self,
        token: str | None = None,
        reuse: bool | None = None,
        recipe: Callable[[], QuestionRecipe | None] = lambda: None,
    ) -> AnsweredRequest:
        """Pass all steps, from the replay to the store.

        Parameters
        ----------
        token : str, optional
        reuse : bool, optional
            Whether an earlier answer to the same request will do; the policy's word where left out.
        recipe : callable, optional
            Gives how it was asked, for a policy that is opened elsewhere.

        Raises
        ------
        ArgumentError
            Where the session is closed.
        QueryError
            Where it cannot be run or written down; nothing is spent.
        BudgetError
            Where an account cannot bear it; nothing is spent.
        EngineError
            Where anything fails after the charge. The charge stays.
        """
        self.opened.check_open()
        elsewhere = self.opened.elsewhere
        if elsewhere is not None:
            away: AnsweredRequest = elsewhere(self, recipe(), token, self._reuses(token, reuse))
            return away
        earlier = self.replay(token)
        if earlier is not None:
            return earlier
        if self._reuses(token, reuse) and (found := self.published()):
            return found[-1]
        certificate = self.rehearse()
        charged = self.charge(token)
        if charged.replayed:
            # Another process was quicker under the same token.
            return self._replayed(charged)
        written = self.answer(charged, certificate)
        return self.store(charged, written)

    def resume(self, token: str) -> AnsweredRequest:
        """Run again what was charged under a token and never answered; nothing is charged.

        Noise is drawn anew. The run that was cut off told nobody anything but that it was cut off,
        and of two runs that both come to an end the ledger keeps the first one's answer alone: so
        whoever gives out nothing but what the ledger has gives one answer for one charge. Only a
        service does that (`dither.service`), and nobody else may call this.

        Raises
        ------
        TokenError
            Nothing was charged under it, or something else.
        EngineError
            Where anything fails.
        """
        opened = self.opened
        entry = opened.charged(self.promise, token)
        if entry is None or entry.request != self.data.digest:
            raise TokenError("nothing of this request was charged under this token")
        certificate = self.rehearse()
        charged = Charged(entry.number, entry.hash, False, None, opened.ledger.id)
        answered = self.store(charged, self.answer(charged, certificate))
        if answered.stored:
            return answered
        # Another run was quicker: its answer is the one.
        found = self.replay(token)
        if found is None:
            raise EngineError(UNSTORED)
        return found

    def replay(self, token: str | None) -> AnsweredRequest | None:
        """The stored answer of the same request under the same token, free of charge."""
        earlier = self.opened.replay(self.promise, token, self.data.digest)
        return None if earlier is None else self._replayed(earlier)

    def _reuses(self, token: str | None, reuse: bool | None) -> bool:
        if reuse is None:
            # A token names a request of its own: its answer is what the first one gave.
            return token is None and self.opened.policy.releases.reuse
        if not isinstance(reuse, bool):
            raise ArgumentError("reuse must be True or False")
        if reuse and token is not None:
            raise ArgumentError(
                "give a token or reuse=True, not both: a token names an answer of its own"
            )
        return reuse

    def published(self) -> list[AnsweredRequest]:
        """Earlier answers to the same request that the asker may see, oldest first; free."""
        found = self.opened.published(self.promise, self.data.digest)
        return [AnsweredRequest(json.loads(answer), entry.time) for entry, answer in found]

    def rehearse(self) -> dict[str, Any]:
        """What the certificate will say, once the jobs were tried and an answer was written.

        It is written as the ledger will hold the real one, so what cannot be written (a name, a
        label) is found here, before anything is charged.
        """
        for job in self.jobs():
            assert self.schema is not None
            if not reads_within(job, self.schema, self.blocks):
                raise EngineError(UNCHARGED)
            self.opened.engine.prepare(job, self.schema)
        try:
            certificate = certificate_data(
                self.data,
                self.record(),
                charge=self.price,
                tables=self.tables,
                accounts=self.opened.accounts(self.promise.unit),
                dummy=self.opened.dummy,
            )
            content = self.rehearsal(certified(certificate, REHEARSED))
            json.dumps(content, ensure_ascii=False).encode("utf-8")
        except DitherError:
            raise
        except Exception:
            raise QueryError(self.unwritable) from None
        return certificate

    def charge(self, token: str | None) -> Charged:
        """Charge every account, or none; on the disk when this returns."""
        return self.opened.charge(
            self.loss,
            self.promise,
            token=token,
            request=self.data.digest,
            note=self.note(),
            tables=self.tables,
            fits=self.fits,
            blocks=self.blocks,
        )

    def answer(self, charged: Charged, certificate: Content) -> str:
        """Run what was charged for, and certify it; the text is what the ledger keeps."""
        with after_the_charge(), charged_blocks(self.blocks):
            before = self._versions(charged)
            content = dict(self.run(_secret(charged)))
            versions = same_versions(before, self._versions(charged)) if before else {}
            found, signer = answer_hash(content), self.opened.signer
            content["certificate"] = certified(certificate, charged, found, versions, signer)
            return json.dumps(content)

    def _versions(self, charged: Charged) -> dict[str, str]:
        # What reads some blocks of a table must not tell whether others changed.
        return {} if self.blocks is not None else self.opened.versions(self.tables, charged.ledger)

    def store(self, charged: Charged, written: str) -> AnsweredRequest:
        """Keep the answer beside its charge; where the ledger cannot, whoever asked is warned."""
        stored = self.opened.stored(charged, written)
        if not stored:
            warn_caller(UNSTORED)
        return AnsweredRequest(json.loads(written), stored=stored)

    def _replayed(self, charged: Charged) -> AnsweredRequest:
        assert charged.answer is not None
        when = self.opened.ledger.entry(charged.entry).time
        return AnsweredRequest(json.loads(charged.answer), when)


def _secret(charged: Charged) -> bytes:
    """The key that says which rows of a unit are kept; the noise begins anew with it."""
    words = secure_words()
    # The entry's hash tells this question from every other one that was ever charged, so not
    # even a machine that repeats its randomness gives two questions the same noise.
    words.renew(bytes.fromhex(charged.hash))
    return words.words(4).tobytes()


def warn_caller(text: str) -> None:
    """A warning at the line from which the package was called, however many of its frames below."""
    level, frame = 1, sys._getframe()
    own = __name__.partition(".")[0], "contextlib"  # `deep` is a decorator of that one's
    found: FrameType | None = frame
    while found is not None and found.f_globals.get("__name__", "").partition(".")[0] in own:
        level, found = level + 1, found.f_back
    warnings.warn(text, stacklevel=level)


def largest_that_fits(
    opened: OpenedPolicy,
    promise: Promise,
    most: Fraction,
    ways: Iterable[tuple[Callable[[Fraction], Charge | None], str]],
    what: str = "question",
    blocks: BlockSet | None = None,
) -> str:
    """For a refusal: the cheapest change, the largest epsilon that every account would still bear.

    Parameters
    ----------
    opened : OpenedPolicy
    promise : Promise
    most : Fraction
        The epsilon that was refused.
    ways : iterable of (callable, str)
        The charge of an epsilon, None where it has no price, and what has to be said beside it; the
        first of them that fits is named.
    what : str
        What was asked.
    blocks : BlockSet, optional
        What it reads of rows that lie in blocks.
    """
    for charge, beside in ways:
        best = opened.largest_epsilon(promise, charge, most, blocks)
        if best is not None:
            return f"The same {what} fits with epsilon = {remaining(best, 6)}{beside}."
    return "Not even epsilon = 0.001 would fit; ask the data owner for a larger budget."


def listener(progress: Progress | None) -> Progress:
    """What is told of progress must not end a run that is paid for: what it raises is a warning.

    Raises
    ------
    ArgumentError
        It is not a function.
    """
    if progress is not None and not callable(progress):
        raise ArgumentError("progress must be a function of one argument")
    listening = progress is not None

    def tell(found: Any) -> None:
        nonlocal listening
        if listening and progress is not None:
            try:
                progress(found)
            except Exception as error:
                listening = False
                warnings.warn(
                    f"progress raised {type(error).__name__}, and is told no more", stacklevel=2
                )

    return tell


def sizes_of(sizes: Sequence[int], of: str = "rows", most: int | None = None) -> list[int]:
    """Public sizes that a preview is asked for.

    Raises
    ------
    ArgumentError
        One is not a whole number of at least 1, or there are none.
    """
    found = [check.whole("sizes", n, 1, most or MOST_SIZE) for n in sizes]
    if not found:
        raise ArgumentError(f"sizes must hold at least one number of {of}")
    return found


class UnreleasedQuestion(ABC):
    """A question before its release, which is explained where it is shown.

    Asked for something that only its result has, it says so.
    """

    _noun: ClassVar[str] = "question"
    """What it is, in a word or two."""

    _gives: ClassVar[Sequence[type]] = ()
    """What its release gives."""

    _recipe: QuestionRecipe | None = None
    """How it was asked, where that is known: for a policy that is opened elsewhere."""

    @abstractmethod
    def explain(self) -> Explanation:
        """The plan, node by node."""

    @property
    @abstractmethod
    def _about(self) -> str:
        """What tells it from others of its kind, in a line."""

    def __getattr__(self, name: str) -> Any:
        if not name.startswith("_") and any(name in _names(kind) for kind in type(self)._gives):
            raise AttributeError(
                "nothing has been released yet: call .release(), which charges the ledger, and ask "
                f"its result for {name!r}"
            )
        raise AttributeError(f"{type(self).__name__!r} has no attribute {name!r}")

    def __repr__(self) -> str:
        return f"<{self._noun}{self._over}, not released yet: {self._about}>"

    @property
    def _over(self) -> str:
        """What is said beside its noun where it is asked of dummy rows."""
        # It knows of what it is asked, or one of its parts does.
        held = (getattr(one, "_opened", None) for one in (self, *vars(self).values()))
        return " over dummy rows" if any(getattr(one, "dummy", False) for one in held) else ""

    def _repr_html_(self) -> str:
        return self.explain()._repr_html_()


def _names(kind: type) -> set[str]:
    """What a result can be asked for."""
    return {*dir(kind), *((f.name for f in fields(kind)) if is_dataclass(kind) else ())}


def request_of(
    question: Any,
    opened: OpenedPolicy,
    epsilon: Any = None,
    delta: Any = None,
    confidence: Any = 0.95,
    tell: Progress | None = None,
) -> Request:
    """What a release of a question would ask for.

    Parameters
    ----------
    question : Question or PricedQuestion
    opened : OpenedPolicy
        Of the session that it must be of.
    epsilon, delta, confidence : number, optional
        Of one that has no price of its own.
    tell : callable, optional
        Is told of progress.

    Raises
    ------
    ArgumentError
        It is no question, or of another session; or epsilon is missing.
    """
    if isinstance(question, PricedQuestion):
        request = question._request(listener(tell))
    elif isinstance(question, UnreleasedQuestion) and hasattr(question, "_asked_at"):
        if epsilon is None:
            raise ArgumentError("epsilon must be given: what each question may cost")
        request = question._asked_at(epsilon, delta, confidence)
    else:
        raise ArgumentError("questions must be questions of this session, not released yet")
    if request.opened is not opened:
        raise ArgumentError("questions must be of this session: another has other accounts")
    return request


def price_of(question: Any, opened: OpenedPolicy, epsilon: Any = None, delta: Any = None) -> Price:
    """What a question would be charged; errors are those of `request_of`."""
    return request_of(question, opened, epsilon, delta).priced


class PricedQuestion(UnreleasedQuestion, Generic[Released]):
    """A question whose price is set: explained and previewed free of charge, released at it.

    A kind of question says what it explains (`explain`), how far off answers will be (`preview`),
    what it loses (`loss`), what it asks for (`_request`) and how an answer is read (`_read`). The
    rest follows.
    """

    @property
    @abstractmethod
    def loss(self) -> Loss:
        """What a release would lose, with its promise."""

    @abstractmethod
    def preview(self, *args: Any, **named: Any) -> Any:
        """What its answer would tell, before anything is spent or read."""

    @abstractmethod
    def _request(self, tell: Progress) -> Request:
        """What is asked for.

        Parameters
        ----------
        tell : callable
            Is told of progress.
        """

    @abstractmethod
    def _read(self, answered: AnsweredRequest) -> Released:
        """What is handed over of what was released."""

    @property
    def price(self) -> Charge:
        """What the ledger would be charged."""
        return self.loss.charge

    def release(self, *, token: str | None = None, reuse: bool | None = None) -> Released:
        """Charge the ledger, measure with noise, and give what came out.

        Parameters
        ----------
        token : str, optional
            Names the request. Asked again with the same token, the stored answer comes back and
            nothing is charged.
        reuse : bool, optional
            Whether the newest of `published` will do, free of charge; what the policy says in
            ``[releases]`` where left out.

        Raises
        ------
        BudgetError
            Where an account cannot bear it; nothing is spent.
        EngineError
            Where anything fails after the charge. The charge stays.

        Notes
        -----
        (epsilon, delta)-differentially private for the unit and the neighbours that ``explain``
        names.
        """
        return self._released(token, reuse=reuse)

    def affordable(self) -> Affordable:
        """How many more like this can be paid: exact, by every account, block and quota.

        Nothing is charged.
        """
        request = self._request(listener(None))
        return request.affordable()

    def _released(
        self, token: str | None, progress: Progress | None = None, *, reuse: bool | None = None
    ) -> Released:
        tell = listener(progress)
        with deep():
            return self._handed_over(
                self._request(tell).release(token, reuse, lambda: self._recipe)
            )

    def published(self) -> list[Released]:
        """Earlier answers to this very question at this price, of this policy: oldest first, free.

        Returns
        -------
        list
            What releases gave, each marked as replayed. An analyst sees those that were released to
            them, or to everybody, as the policy says in ``[releases]``.
        """
        with deep():
            found = self._request(listener(None)).published()
            return [self._handed_over(one) for one in found]

    def _handed_over(self, answered: AnsweredRequest) -> Released:
        return marked(self._read(answered), answered.content["certificate"])
