"""The command ``dither verify``: does a certificate agree with the ledger."""

from __future__ import annotations

from pathlib import Path

import click

from dither.cli.options import FILE, policy
from dither.cli.waiting import waiting

__all__ = ["verify"]


@click.command(
    short_help="Hold a certificate against the ledger.",
    epilog="""\b
Examples:
  dither verify cost.cert.json
  dither verify cost.cert.json --ledger visits.ledger
""",
)
@click.argument("certificate", metavar="CERT", type=FILE)
@click.option("--ledger", type=FILE, help="The ledger's file  [default: the policy's]")
@policy
def verify(certificate: Path, ledger: Path | None, policy: Path) -> None:
    """Hold the certificate CERT against the ledger; exit with 1 where they disagree.

    Checks that the certificate is unchanged, that the ledger's chain is whole, and that its entry
    charged what the certificate says.
    """
    import dither as dt

    if ledger is None:
        if not policy.is_file():
            raise click.UsageError(f"there is no policy {str(policy)!r}: name the --ledger")
        from dither.query.policy import read_policy

        ledger = read_policy(policy).ledger
    with waiting("checking the chain"):
        found = dt.verify(certificate, ledger)
    click.echo(found.text)
    if not found.ok:
        raise click.exceptions.Exit(1)
