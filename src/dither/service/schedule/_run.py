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
import threading
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from dither import _checks as check
from dither._notebook import Shown
from dither.errors import (
    ArgumentError,
    BudgetError,
    DitherError,
    LedgerError,
    PolicyError,
    TokenError,
)
from dither.service.publish._publish import check_audience, publish_content, publish_total
from dither.service.publish._settings import DeclaredPublish, read_publish
from dither.service.schedule._ahead import open_reservation, reserve
from dither.service.schedule._asking import (
    AskedPeriod,
    asked,
    earlier,
    released,
    stored,
    token_of,
)
from dither.service.schedule._limit import time_limit
from dither.service.schedule._periods import TreeNode, ending_at
from dither.service.schedule._settings import DeclaredSchedule, read_schedules
from dither.service.schedule._state import ScheduleState
from dither.service.schedule._totals import total_of

if TYPE_CHECKING:
    from dither.session._session import Session

__all__ = ["ScheduledOutcome", "Timetable", "run_due"]

BLOCK = "block"
"""The column of published tables that says of which block a row is: its first day."""


@dataclass(frozen=True, slots=True)
class ScheduledOutcome(Shown):
    """What became of one block.

    Parameters
    ----------
    schedule, block : str
    status : str
        ``"released"`` now, ``"done"`` before, ``"reserved"`` for when it closes, ``"waiting"``
        without a reservation, ``"failed"``, which is tried again, or ``"lost"``: charged, without
        an answer, for good.
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
        return (
            found
            + (", published" if self.published else "")
            + (f"; {self.why}" if self.why else "")
        )


def run_due(
    session: Session,
    schedules: Sequence[DeclaredSchedule] | None = None,
    now: dt.datetime | None = None,
    *,
    to: Any = None,
    timeout: float | None = None,
) -> list[ScheduledOutcome]:
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
    timeout : float, optional
        Seconds that each question may run; then it is ended and has failed, and the next one runs.
        It takes the main thread, and signals: ``dither schedule run`` gives what ``[service]
        timeout`` has for an owner.

    Returns
    -------
    list of ScheduledOutcome
        One for each block that was not done before, and for that which is open.

    Raises
    ------
    PolicyError
        A section is wrong, or answers would be published that are for whoever asked.
    LedgerError
        The ledger cannot be read.
    ArgumentError
        ``now`` is no moment; or ``timeout`` is not above 0, or given in another thread.

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
    return Timetable(session, schedules, to, timeout).run(now)


class Timetable:
    """The schedules of a session, with what they keep beside the ledger.

    Parameters
    ----------
    session, schedules, to, timeout
        As of `run_due`.
    """

    def __init__(
        self,
        session: Session,
        schedules: Sequence[DeclaredSchedule] | None = None,
        to: Any = None,
        timeout: float | None = None,
    ) -> None:
        if timeout is not None:
            check.positive("timeout", timeout)
            if threading.current_thread() is not threading.main_thread():
                raise ArgumentError("timeout must be left out but in the main thread")
        self._timeout = timeout
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

    def __repr__(self) -> str:
        return f"<timetable of {', '.join(one.name for one in self.schedules) or 'nothing'}>"

    def run(self, now: dt.datetime | None = None) -> list[ScheduledOutcome]:
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
            raise ArgumentError(
                "now must be a moment with a time zone, as datetime(..., tzinfo=UTC)"
            )
        return min(now, clock)

    def _run(
        self, schedule: DeclaredSchedule, now: dt.datetime, state: ScheduleState
    ) -> Iterator[ScheduledOutcome]:
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
            yield self._ahead(schedule, ended + 1, state)

    # --- a block that has closed ------------------------------------------------------------------

    def _block(
        self, schedule: DeclaredSchedule, number: int, state: ScheduleState
    ) -> ScheduledOutcome:
        label = schedule.periods.label(number)
        nodes = ending_at(number) if schedule.running else [TreeNode(number, number)]
        contents: dict[TreeNode, Mapping[str, Any]] = {}
        entries: list[int] = []
        status, why = "done", ""
        for node in nodes:
            try:
                with time_limit(self._timeout):
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
        return ScheduledOutcome(schedule.name, label, status, tuple(entries), why, published)

    def _released(
        self, schedule: DeclaredSchedule, node: TreeNode, state: ScheduleState
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
        node: TreeNode,
        one: AskedPeriod,
        token: str,
        state: ScheduleState,
    ) -> Mapping[str, Any] | None:
        known = open_reservation(self.session, schedule, node, state)
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
        contents: Mapping[TreeNode, Mapping[str, Any]],
    ) -> None:
        beside = {BLOCK: schedule.periods.first(number)}
        if not schedule.running:
            (content,) = contents.values()
            publish_content(content, schedule.name, self._to, history=True, beside=beside)
            return
        frame, parts = total_of(self.session, schedule, number)
        publish_total(frame, parts, schedule.name, self._to, beside)

    # --- a block that is open ---------------------------------------------------------------------

    def _ahead(
        self, schedule: DeclaredSchedule, number: int, state: ScheduleState
    ) -> ScheduledOutcome:
        """Reserve what the open block will cost when it closes."""
        label, why = schedule.periods.label(number), ""
        nodes = ending_at(number) if schedule.running else [TreeNode(number, number)]
        for node in nodes:
            try:
                reserve(self.session, schedule, node, state)
            except DitherError as error:
                why = str(error)
            except Exception as error:
                why = type(error).__name__
        return ScheduledOutcome(schedule.name, label, "waiting" if why else "reserved", why=why)
