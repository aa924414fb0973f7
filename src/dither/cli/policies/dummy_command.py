"""The command ``dither dummy``: rows that nobody has, to write a program on before it is paid."""

from __future__ import annotations

from pathlib import Path

import click

from dither.cli._files import check_targets
from dither.cli._options import FILE, analyst_option, purpose_option

__all__ = ["dummy"]


@click.command(
    short_help="Make dummy rows of a table, from public facts alone.",
    epilog="""\b
Examples:
  dither dummy dither.toml visits --out visits.parquet
  dither dummy dither.toml visits --rows 100 --seed 1 --out visits.dummy.csv
""",
)
@click.argument("policy", type=FILE)
@click.argument("table")
@click.option(
    "--rows", type=int, default=1000, show_default=True, help="How many, up to 1,000,000."
)
@click.option(
    "--seed", type=click.IntRange(0), help="The same rows again.  [default: others each time]"
)
@click.option("--out", type=FILE, required=True, help="Where to write them: .parquet or .csv.")
@analyst_option
@purpose_option
def dummy(
    policy: Path,
    table: str,
    rows: int,
    seed: int | None,
    out: Path,
    analyst: str | None,
    purpose: str | None,
) -> None:
    """Make dummy rows of TABLE from what POLICY declares and the names and types of its source.

    No row is read, and nothing is charged. The file says that no row is real; one of CSV must say
    so in its name, such as visits.dummy.csv.
    """
    from dither.session._session import open as open_policy

    check_targets(file=out)
    with open_policy(policy, analyst=analyst, purpose=purpose) as session:
        found = session.dummy(table, rows, seed=seed)
        found.save(out)
    click.echo(f"{len(found):,} rows of {table} in {out} (seed {found.seed})\n{found.notice}")
