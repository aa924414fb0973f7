"""``dither schedule``: questions that are released when their block closes."""

from __future__ import annotations

import sys
import time
from pathlib import Path
from typing import TYPE_CHECKING

import click

from dither.cli._options import FILE, Group
from dither.errors import LedgerLockedError

if TYPE_CHECKING:
    from dither.session._session import Session

__all__ = ["schedule"]

PAUSE = 300
"""Seconds between two looks. Ledgers keep hours, so that more often would find no more."""


@click.group(
    cls=Group,
    epilog="""\b
Examples:
  dither schedule show
  dither schedule run dither.toml
""",
)
def schedule() -> None:
    """Questions that are released once, when their block closes."""


@schedule.command(
    short_help="Release what is due.",
    epilog="""\b
Example:
  dither schedule run dither.toml --once     for a timer of the system
""",
)
@click.argument("policy", type=FILE, default=Path("dither.toml"))
@click.option("--once", is_flag=True, help="Look once, and end; 1 where anything failed.")
@click.option("--served", is_flag=True, hidden=True, help="Take the policy's text from the input.")
def run(policy: Path, once: bool, served: bool) -> None:
    """Release what is due by POLICY's sections [schedule.NAME], and reserve what comes next.

    What was missed is released in order, and nothing twice, however it was ended before. A question
    may run as long as [service] timeout gives an owner's.
    """
    from dither.policy._policy import PolicyText
    from dither.service import schedule as room
    from dither.session._session import open_for_all

    text = PolicyText(policy.resolve(), sys.stdin.buffer.read().decode()) if served else policy
    while True:
        failed = False
        try:
            with open_for_all(text) as session:
                for found in room.run_due(session, timeout=_limit(session, served)):
                    click.echo(str(found))
                    failed = failed or found.status in ("failed", "lost", "waiting")
                    failed = failed or bool(found.why)
        except LedgerLockedError:
            if once:
                raise
        if once and failed:
            sys.exit(1)
        if once:
            return
        time.sleep(PAUSE)


def _limit(session: Session, served: bool) -> float | None:
    """Seconds that the service's policy gives a question of an owner's, whose schedules are."""
    if not (served or session.policy.around.get("service")):
        return None
    from dither.service._settings import read_settings
    from dither.service.access._roles import Role

    return read_settings(session.policy, "policy").timeouts[Role.OWNER]


@schedule.command(
    short_help="Show what is scheduled, and what each block costs.",
    epilog="""\b
Example:
  dither schedule show dither.toml
""",
)
@click.argument("policy", type=FILE, default=Path("dither.toml"))
def show(policy: Path) -> None:
    """What POLICY's sections [schedule.NAME] say, and what each block costs."""
    from dither._format import loss_text
    from dither.policy._policy import read_policy
    from dither.service import schedule as room

    found = room.read_schedules(read_policy(policy).around.get("schedule", {}))
    if not found:
        click.echo("the policy has no [schedule.NAME]")
    for one in found:
        click.echo(f"{one.name}: every {one.every} from {one.begin.isoformat()}")
        click.echo(f"  asks     {' '.join(one.sql.split())}")
        cost = f"epsilon {loss_text(one.epsilon)}, delta {loss_text(one.delta)}"
        if one.running:
            many = f"{one.horizon:,} blocks, {one.levels} numbers for each at most"
            cost += f" a block in all: {many}, epsilon {loss_text(one.each)} each"
        else:
            cost += " a block"
        click.echo(f"  costs    {cost}")
        click.echo(f"  closes   {one.delay} hours after the end of the block")
        click.echo(f"  gives    {'published tables' if one.publish else 'answers in the ledger'}")
