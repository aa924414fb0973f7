"""The commands ``dither bounds`` and ``dither check``: what policies declare."""

from __future__ import annotations

import json
from datetime import datetime
from fractions import Fraction
from pathlib import Path

import click

from dither.cli._options import (
    RESERVATION,
    analyst_option,
    charged_to,
    confidence,
    delta,
    epsilon,
    policy,
    purpose_option,
)
from dither.cli._terminal import waiting

__all__ = ["bounds", "check"]


@click.command(
    short_help="Learn bounds, limits or keys from the data, at a price.",
    epilog="""\b
Examples:
  dither bounds visits cost --epsilon 0.1
  dither bounds visits --by region --epsilon 0.1      max_rows, max_groups
  dither bounds visits region --kind keys --epsilon 0.2
""",
)
@click.argument("table")
@click.argument("column", required=False)
@policy
@analyst_option
@purpose_option
@epsilon(required=True)
@delta
@click.option(
    "--kind",
    type=click.Choice(["bounds", "limits", "keys"]),
    help="What to learn.  [default: bounds of a COLUMN, limits without one]",
)
@click.option("--by", multiple=True, help="Of limits: what will be grouped by; may be repeated.")
@click.option(
    "--origin",
    type=click.DateTime(["%Y-%m-%d"]),
    help="Of bounds of dates and times: a public day near which they are finest.  "
    "[default: 2000-01-01]",
)
@confidence
@click.option(
    "--token", help="A name for the request: asked again by it, the same comes back, free."
)
@RESERVATION
@click.option("--json", "as_json", is_flag=True, help="Print JSON: what was learned, certified.")
def bounds(
    table: str,
    column: str | None,
    policy: Path,
    analyst: str | None,
    purpose: str | None,
    epsilon: Fraction,
    delta: Fraction | None,
    kind: str | None,
    by: tuple[str, ...],
    origin: datetime | None,
    confidence: float,
    token: str | None,
    as_json: bool,
) -> None:
    """Learn bounds of COLUMN of TABLE, and charge the ledger for it.

    What is learned is public from then on: a policy that says bounds = "learned" uses the newest
    that its ledger holds.
    """
    import dither as dt

    with (
        waiting("charging, then learning"),
        dt.open(policy, analyst=analyst, purpose=purpose) as session,
        charged_to(session),
    ):
        found = session.learn(
            table,
            column,
            epsilon=epsilon,
            delta=delta,
            kind=kind,
            by=list(by),
            origin=None if origin is None else origin.date(),
            confidence=confidence,
            token=token,
        )
    if as_json:
        body = {"learned": dict(found.content), "certificate": found.certificate.to_dict()}
        click.echo(json.dumps(body, indent=2, ensure_ascii=False))
    else:
        click.echo(found.summary())


@click.command(
    short_help="Hold a policy against the names and types of its sources.",
    epilog="""\b
Examples:
  dither check
  dither check --policy policies/visits.toml --strict
""",
)
@policy
@click.option("--strict", is_flag=True, help="Fail on warnings too.")
@click.option("--json", "as_json", is_flag=True, help="Print JSON.")
def check(policy: Path, strict: bool, as_json: bool) -> None:
    """Check a policy without reading a row: columns, types, spellings. Nothing is spent.

    Exit code 0 where the policy can be opened, 1 where it cannot, or has warnings and --strict.
    """
    import dither as dt

    with waiting("reading the schema"):
        found = dt.check(policy)
    if as_json:
        click.echo(json.dumps(found.to_dict(), indent=2, ensure_ascii=False))
    else:
        click.echo(found.summary())
    warned = any(f.level == "warning" for f in found.findings)
    if not found.ok or (strict and warned):
        raise click.exceptions.Exit(1)
