"""``dither ledger reserve``: budget that nobody else may spend until an hour."""

from __future__ import annotations

from fractions import Fraction
from pathlib import Path

import click

from dither.cli._options import Amount, analyst_option, policy, purpose_option

__all__ = ["reserve"]


@click.command(
    short_help="Keep budget for whoever holds the id that this prints.",
    epilog="""\b
Example:
  dither ledger reserve --epsilon 0.5 --until 2026-03-03 --analyst ana
""",
)
@policy
@analyst_option
@purpose_option
@click.option("--epsilon", type=Amount(), required=True, help="How much is kept, such as 0.5.")
@click.option("--delta", type=Amount(zero=True), default=Fraction(0), help="And of delta.")
@click.option(
    "--until",
    required=True,
    help="When it lapses, in UTC: 2026-03-03 or 2026-03-03T12:00; fixed for good.",
)
@click.option("--unit", help="Of whose accounts, where the policy has several units.")
def reserve(
    policy: Path,
    analyst: str | None,
    purpose: str | None,
    epsilon: Fraction,
    delta: Fraction,
    until: str,
    unit: str | None,
) -> None:
    """Keep budget of the accounts that bear what is asked here, until it lapses.

    Prints the id of the reservation: whoever knows it may use it, with
    `dither release ... --reservation ID`. The ledger keeps a hash of it.
    """
    import dither as dt

    with dt.open(policy, analyst=analyst, purpose=purpose) as session:
        made = session.reserve(epsilon, delta=delta, until=until, unit=unit)
    click.echo(made.describe(), err=True)
    click.echo(made.id)
