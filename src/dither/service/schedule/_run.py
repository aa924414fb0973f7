"""What is due is released: each closed block once, in order, whatever was cut off before.

For each block these steps are passed, and each of them may be the last before a crash:

1. its price is *reserved* while the block is open, under an id that was written down before;
2. it is *charged*, under a token that names the schedule and the block, once the block has closed
   by the ledger's clock;
3. its answer is *stored* beside the charge. What was charged and not stored is run again, under the
   same charge; what is handed over is what the ledger has, which has one answer to a charge;
4. it is *published*, once for its certificate.
"""

from __future__ import annotations

import datetime as dt
import json
import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from dither._notebook import Shown
from dither.blocks._sets import BlockSet
from dither.errors import ArgumentError, BudgetError, DitherError, LedgerError, PolicyError, TokenError
from dither.ledger.quotas._reserved import new_id
from dither.privacy import Charge
from dither.query._running import total_width
from dither.service.publish._publish import check_audience, publish_content, publish_total
from dither.service.publish._settings import DeclaredPublish, read_publish
from dither.service.schedule._asking import (
    AskedPeriod,
    asked,
    earlier,
    released,
    restricted,
    stored,
    token_of,
)
from dither.service.schedule._periods import Node, ending_at, halves, parts_of
from dither.service.schedule._settings import DeclaredSchedule, read_schedules
from dither.service.schedule._state import ScheduleState

if TYPE_CHECKING:
    from dither.session._session import Session

__all__ = ["Outcome", "Timetable", "run_due"]

GRACE = dt.timedelta(days=7)
"""So long after a block has closed its reservation holds: whatever runs this may be down for days."""

LONGEST = dt.timedelta(days=366)

BLOCK = "block"
"""The column of published tables that says of which block a row is: its first day."""


@dataclass(frozen=True, slots=True)
class Outcome(Shown):
    """What became of one block.

    Parameters
    ----------
    schedule, block : str
    status : str
        ``"released"`` now, ``"done"`` before, ``"reserved"`` for when it closes, ``"waiting"``
        without a reservation, ``"failed"``, which is tried again, or ``"lost"``: charged, without an
        answer, for good.
    entries : tuple of int
        The charges of the ledger.
    why : str
        What did not succeed, without any value.
    published : bool
    """

    schedule: str
    block: str
    status: str
    entries: tuple[int, ...] = ()
    why: str = ""
    published: bool = False

    def __str__(self) -> str:
        found = f"{self.schedule} {self.block}: {self.status}"
        if self.entries:
            found += f", entries {', '.join(map(str, self.entries))}"
        return found + (", published" if self.published else "") + (f"; {self.why}" if self.why else "")


def run_due(
    session: Session,
    schedules: Sequence[DeclaredSchedule] | None = None,
    now: dt.datetime | None = None,
    *,
    to: Any = None,
) -> list[Outcome]:
    """Release what is due, and reserve what comes next.

    Parameters
    ----------
    session : Session
        The owner's.
    schedules : sequence of DeclaredSchedule, optional
        Those of the policy's sections ``[schedule.NAME]`` where left out.
    now : datetime, optional
        Up to which moment blocks count as closed, at most that of the ledger's clock.
    to : optional
        Where to publish, in place of what ``[publish]`` says.

    Returns
    -------
    list of Outcome
        One for each block that was not done before, and for that which is open.

    Raises
    ------
    PolicyError
        A section is wrong, or answers would be published that are for whoever asked.
    LedgerError
        The ledger cannot be read.

    Notes
    -----
    *Guarantee.* That of each release, which its certificate states: a block bears the price of its
    own releases, the lifetime all of them. Of a running count over T blocks at epsilon, each block
    bears at most epsilon: epsilon / L for each of at most L = floor(log2 T) + 1 numbers. Somebody
    with rows in m blocks loses at most m epsilon by it, in the policy's neighbours; the lifetime
    bears epsilon for each block whose numbers count each by itself.

    A failure of one block or one schedule stops no other. What failed before the charge is asked
    again the next time; what was charged is never charged again.
    """
    return Timetable(session, schedules, to).run(now)


class Timetable:
    """The schedules of a session, with what they keep beside the ledger.

    Parameters
    ----------
    session, schedules, to
        As of `run_due`.
    """

    def __init__(
        self,
        session: Session,
        schedules: Sequence[DeclaredSchedule] | None = None,
        to: Any = None,
    ) -> None:
        policy = session.policy
        if schedules is None:
            schedules = read_schedules(policy.around.get("schedule", {}))
        declared = read_publish(policy.around.get("publish", {}), policy.folder)
        if any(one.publish for one in schedules):
            check_audience(policy, declared is not None and declared.everybody)
            if to is None and declared is None:
                raise PolicyError("the policy has no [publish]: say to where, in publish.to")
        names = [one.name for one in schedules]
        if len(set(names)) < len(names):
            raise PolicyError("two schedules have one name, and one would stand for the other")
        self.session, self.schedules = session, list(schedules)
        self._to: Any = declared if to is None else to
        self._declared: DeclaredPublish | None = declared

    def run(self, now: dt.datetime | None = None) -> list[Outcome]:
        """As `run_due`."""
        moment = self._moment(now)
        state = ScheduleState(self.session.ledger.place)
        try:
            return [found for one in self.schedules for found in self._run(one, moment, state)]
        finally:
            state.close()

    def _moment(self, now: dt.datetime | None) -> dt.datetime:
        clock = self.session.ledger.now()
        if now is None:
            return clock
        if not isinstance(now, dt.datetime) or now.tzinfo is None:
            raise ArgumentError("now must be a moment with a time zone, as datetime(..., tzinfo=UTC)")
        return min(now, clock)

    def _run(
        self, schedule: DeclaredSchedule, now: dt.datetime, state: ScheduleState
    ) -> Iterator[Outcome]:
        ended = schedule.periods.ended(now, schedule.delay)
        last = min(ended, schedule.horizon) if schedule.running else ended
        what = "published" if schedule.publish else "released"
        mark = done = state.mark(schedule.name, what)
        whole = True
        for number in range(done + 1, last + 1):
            found = self._block(schedule, number, state)
            finished = found.status == "lost" or (
                found.status in ("released", "done") and found.published == schedule.publish
            )
            whole = whole and finished
            if whole:
                mark = number
            if found.status != "done" or found.why or found.published:
                yield found
        if mark > done:
            state.set_mark(schedule.name, what, mark)
        if not schedule.running or ended < schedule.horizon:
            yield self._ahead(schedule, ended + 1, now, state)

    # --- a block that has closed ------------------------------------------------------------------

    def _block(self, schedule: DeclaredSchedule, number: int, state: ScheduleState) -> Outcome:
        label = schedule.periods.label(number)
        nodes = ending_at(number) if schedule.running else [Node(number, number)]
        contents: dict[Node, Mapping[str, Any]] = {}
        entries: list[int] = []
        status, why = "done", ""
        for node in nodes:
            try:
                before = earlier(self.session, token_of(schedule, node))
                content = self._released(schedule, node, state)
            except TokenError as error:
                status, why = ("lost" if node.low == node.high else status), str(error)
                continue
            except DitherError as error:
                status, why = "failed", str(error)
                continue
            except Exception as error:
                # Its words may hold data.
                status, why = "failed", type(error).__name__
                continue
            contents[node] = content
            entries.append(int(content["certificate"]["ledger"]["entry"]))
            if before is None and status == "done":
                status = "released"
        published = False
        if schedule.publish and status in ("released", "done"):
            try:
                self._publish(schedule, number, contents)
                published = True
            except DitherError as error:
                why = f"not published: {error}"
            except Exception as error:
                why = f"not published: {type(error).__name__}"
        return Outcome(schedule.name, label, status, tuple(entries), why, published)

    def _released(
        self, schedule: DeclaredSchedule, node: Node, state: ScheduleState
    ) -> Mapping[str, Any]:
        token = token_of(schedule, node)
        before = earlier(self.session, token)
        if before is not None:
            found = stored(self.session, before)
            if found is not None:
                return found
        one = asked(self.session, schedule, node)
        content = self._charged(schedule, node, one, token, state)
        if content is None:
            raise LedgerError("the answer could not be stored in the ledger; it is run again")
        return content

    def _charged(
        self,
        schedule: DeclaredSchedule,
        node: Node,
        one: AskedPeriod,
        token: str,
        state: ScheduleState,
    ) -> Mapping[str, Any] | None:
        known = state.known(schedule.name, node.low, node.high)
        if known is not None:
            try:
                self.session.ledger.reserved(known)
            except LedgerError:
                # It has lapsed, or was never made.
                known = None
        if known is None:
            return released(self.session, one, token)
        try:
            with self.session.using(known):
                found = released(self.session, one, token)
        except (ArgumentError, BudgetError):
            # What was reserved was for another question or price: nothing was charged.
            found = released(self.session, one, token)
        state.forget(schedule.name, node.low, node.high)
        return found

    def _publish(
        self,
        schedule: DeclaredSchedule,
        number: int,
        contents: Mapping[Node, Mapping[str, Any]],
    ) -> None:
        beside = {BLOCK: schedule.periods.first(number)}
        if not schedule.running:
            (content,) = contents.values()
            publish_content(content, schedule.name, self._to, history=True, beside=beside)
            return
        frame, parts = self.total(schedule, number)
        publish_total(frame, parts, schedule.name, self._to, beside)

    # --- a running count --------------------------------------------------------------------------

    def total(
        self, schedule: DeclaredSchedule, number: int
    ) -> tuple[Any, list[Mapping[str, Any]]]:
        """The total of the first blocks, with its interval, and the releases that it is the sum of.

        Raises
        ------
        LedgerError
            A part was not released, or under another question, price or limits.
        """
        import polars as pl

        found = [part for node in parts_of(number) for part in self._parts(schedule, node)]
        value = sum(int(content["columns"][0]["values"][0]) for _, content in found)
        question = asked(self.session, schedule, found[-1][0]).question
        half = total_width(question, schedule.each, len(found), schedule.confidence)
        name = str(found[-1][1]["outputs"][0])
        frame = pl.DataFrame(
            {
                name: [value],
                f"{name}_low": [math.floor(value - half)],
                f"{name}_high": [math.ceil(value + half)],
            },
            schema=dict.fromkeys((name, f"{name}_low", f"{name}_high"), pl.Int64),
        )
        return frame, [content for _, content in found]

    def _parts(
        self, schedule: DeclaredSchedule, node: Node
    ) -> list[tuple[Node, Mapping[str, Any]]]:
        """A dyadic number; where it was never released, its halves."""
        entry = earlier(self.session, token_of(schedule, node))
        content = None if entry is None else stored(self.session, entry)
        if content is not None:
            self._check_same(schedule, node, content)
            return [(node, content)]
        smaller = halves(node)
        if not smaller:
            raise LedgerError(
                f"schedule.{schedule.name}: {schedule.periods.label(node.low)} was not released, so "
                "that this total is not known"
            )
        return [part for half in smaller for part in self._parts(schedule, half)]

    def _check_same(
        self, schedule: DeclaredSchedule, node: Node, content: Mapping[str, Any]
    ) -> None:
        request = asked(self.session, schedule, node).request
        body = content["certificate"]
        new = {
            "question": request.question,
            "requested": {n: request.requested[n] for n in ("epsilon", "delta")},
            "measurements": list(request.record().measurements),
        }
        old = {
            "question": body["question"],
            "requested": {n: body["requested"][n] for n in ("epsilon", "delta")},
            "measurements": body["measurements"],
        }
        if json.loads(json.dumps(new)) != old:
            raise LedgerError(
                f"schedule.{schedule.name} was changed since it began: its question, price, horizon "
                "or limits are others, and numbers before and after do not add up; give the new one "
                "another name"
            )

    # --- a block that is open ---------------------------------------------------------------------

    def _ahead(
        self, schedule: DeclaredSchedule, number: int, now: dt.datetime, state: ScheduleState
    ) -> Outcome:
        """Reserve what the open block will cost when it closes."""
        label, why = schedule.periods.label(number), ""
        nodes = ending_at(number) if schedule.running else [Node(number, number)]
        for node in nodes:
            try:
                self._reserve(schedule, node, now, state)
            except DitherError as error:
                why = str(error)
            except Exception as error:
                why = type(error).__name__
        return Outcome(schedule.name, label, "waiting" if why else "reserved", why=why)

    def _reserve(
        self, schedule: DeclaredSchedule, node: Node, now: dt.datetime, state: ScheduleState
    ) -> None:
        session, opened = self.session, self.session._opened
        known = state.known(schedule.name, node.low, node.high)
        if known is not None:
            try:
                session.ledger.reserved(known)
            except LedgerError:
                known = None
            else:
                return
        first = schedule.periods.first(node.low)
        after = schedule.periods.first(node.high + 1)
        plan = restricted(session, schedule, first, after)._plan
        (promise,) = (p for p in opened.promises if p.unit == plan.table.unit_name)
        calendar = opened.calendar(promise.unit)
        if calendar is None:
            return
        low, high = calendar.block_of(first), calendar.block_of(after)
        assert isinstance(low, int)
        assert isinstance(high, int)
        apart = high - low > 1 and (
            plan.job.unit is not None if schedule.running else plan.job.block_key is not None
        )
        blocks = BlockSet(((low, high - 1),), parallel=apart)
        each = schedule.each
        made = Charge.approximate(each, schedule.delta) if schedule.delta else Charge.pure(each)
        ends = dt.datetime.combine(after, dt.time(), dt.UTC) + dt.timedelta(hours=schedule.delay)
        clock = session.ledger.now()
        until = max(min(ends + GRACE, clock + LONGEST), clock + dt.timedelta(hours=2))
        # Written down first: after a crash it is found again, or was never made.
        known = state.keep(schedule.name, node.low, node.high, new_id())
        opened.reserve(made * blocks.steps, promise, until, blocks, known)
