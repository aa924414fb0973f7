"""``dither hierarchy``: counts of places that add up, in a file."""

from __future__ import annotations

from fractions import Fraction
from pathlib import Path
from typing import TYPE_CHECKING

import click

from dither._files import written
from dither.cli._files import as_file, check_targets
from dither.cli._options import (
    FILE,
    PAID,
    analyst_option,
    delta,
    epsilon,
    names_in,
    paid_options,
    plot,
    policy,
    purpose_option,
    refuse_given,
)
from dither.cli._terminal import say_saved
from dither.cli.questions._request import answered, check_free, keep_sources, save_certificate
from dither.cli.questions.synth_command import teller

if TYPE_CHECKING:
    from dither.synth.hierarchy._counts import HierarchyCounts

__all__ = ["hierarchy"]


@click.command(
    short_help="Counts of places inside places, which add up.",
    epilog="""\b
Examples:
  dither hierarchy people --levels state,county --by sex --epsilon 1 --explain
  dither hierarchy people --levels state,county --epsilon 1 --out counts.csv
  dither hierarchy people --levels state,county --epsilon 1 \\
      --public state=population --level state --out states.csv
""",
)
@click.argument("name", metavar="TABLE")
@policy
@analyst_option
@purpose_option
@click.option("--where", help="Rows that count: a condition, as after WHERE.")
@epsilon(required=True)
@delta
@click.option(
    "--levels",
    required=True,
    help="Columns of a public table, the widest place first, with commas between.",
)
@click.option("--by", default="", help="Columns that each place is counted by, with commas.")
@click.option("--places", help="The public table, where several have these columns.")
@click.option(
    "--public",
    multiple=True,
    metavar="LEVEL=COLUMN",
    help="A public column that says how many each place has: exact, and not protected.",
)
@click.option("--explain", is_flag=True, help="How each level is counted, and at which price.")
@click.option("--preview", is_flag=True, help="How wide intervals will be. Nothing is spent.")
@click.option("--level", help="The level to write.  [default: the last]")
@click.option(
    "--token", help="A name for the request: asked again by it, the same counts come back, free."
)
@paid_options
@click.option("--out", "table", type=FILE, help="Write counts: .csv, .json or .parquet.")
@plot("counts and their intervals")
@click.option("--certificate", type=FILE, help="Write the certificate, for `dither verify`.")
def hierarchy(
    name: str,
    policy: Path,
    analyst: str | None,
    purpose: str | None,
    where: str | None,
    epsilon: Fraction,
    delta: Fraction | None,
    levels: str,
    by: str,
    places: str | None,
    public: tuple[str, ...],
    explain: bool,
    preview: bool,
    level: str | None,
    token: str | None,
    table: Path | None,
    picture: Path | None,
    certificate: Path | None,
) -> None:
    """Count every place of some levels in TABLE, charge the ledger once, and write the counts.

    Counts are whole numbers of at least 0 that add up at every level; beside them stand unbiased
    estimates with intervals. Where a place lies, a public table of the policy says.
    """
    import dither as dt

    free = check_free(explain, preview)
    named = names_in(levels)
    if free:
        refuse_given(("level", "token", *PAID, "table", "picture", "certificate"), "a release")
    elif table is None:
        raise click.UsageError("give --out FILE, --preview or --explain")
    if level is not None and level not in named:
        raise click.UsageError(f"--level must be one of {', '.join(named)}")
    check_targets(table=table, picture=picture, other=certificate)
    with dt.open(policy, analyst=analyst, purpose=purpose) as session:
        keep_sources(session, policy, table, picture, certificate)
        rows = session.table(name)
        asked = (rows.filter(where) if where else rows).hierarchy(
            named,
            names_in(by),
            epsilon=epsilon,
            delta=delta,
            places=places,
            invariants=dict(map(_pair, public)),
        )
        found = answered(
            asked,
            session,
            explain=explain,
            preview=asked.preview if preview else None,
            token=token,
            progress=teller(),
        )
    if found is not None:
        _write(found, level or named[-1], table, picture, certificate)


def _pair(text: str) -> tuple[str, str]:
    level, found, column = text.partition("=")
    if not found or not level or not column:
        raise click.UsageError("--public takes a level and a column, such as state=population")
    return level.strip(), column.strip()


def _write(
    found: HierarchyCounts,
    level: str,
    table: Path | None,
    picture: Path | None,
    certificate: Path | None,
) -> None:
    """Files under their names once all of each is on the disk."""
    if table is not None:
        written(table, as_file(found.frame(level), table.suffix.lower()))
        say_saved(table)
    save_certificate(certificate, found.certificate)
    if picture is not None:
        found.plot(picture)
        say_saved(picture)
    click.echo(found.summary())
