"""``dither synth``: a synthetic table in a file."""

from __future__ import annotations

import json
import sys
from collections.abc import Callable, Sequence
from fractions import Fraction
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from dither._files import written
from dither._format import count_text, percent
from dither.cli._files import as_file, check_targets
from dither.cli._options import (
    FILE,
    PAID,
    WholeNumbers,
    analyst_option,
    delta,
    epsilon,
    names_in,
    paid_options,
    policy,
    purpose_option,
    refuse_given,
)
from dither.cli._terminal import say_saved, waiting
from dither.cli.questions._request import (
    answered,
    check_free,
    keep_sources,
    save_certificate,
    writing,
)

if TYPE_CHECKING:
    from dither.query.tables._domain import CellDomain
    from dither.synth import SyntheticModel, SynthProgress

__all__ = ["rules_in", "synth", "teller"]


@click.command(
    short_help="A synthetic table that may be handed out.",
    epilog="""\b
Examples:
  dither synth visits --epsilon 1 --explain
  dither synth visits --epsilon 1 --out visits.csv
  dither synth visits --epsilon 1 --method mst --rows 10000 --out made.parquet
  dither synth visits --epsilon 1 --workload 2 --model visits.model
  dither synth visits --epsilon 1 --rule "left >= came" --out visits.csv
  dither synth --from visits.model --rows 500 --out more.csv
  dither synth --from visits.model --given sex=f --out women.csv
""",
)
@click.argument("name", metavar="TABLE", required=False)
@policy
@analyst_option
@purpose_option
@click.option("--where", help="Rows that count: a condition, as after WHERE.")
@epsilon(required=False)
@delta
@click.option(
    "--method",
    type=click.Choice(("auto", "aim", "mst", "independent")),
    default="auto",
    help="How the tables to measure are chosen.  [default: auto, which is aim where there are rows "
    "enough]",
)
@click.option("--columns", help="Names with commas between; all of them where left out.")
@click.option(
    "--workload",
    type=click.IntRange(1),
    help="Tables of so many columns are to be right.  [default: 3, of many columns 2]",
)
@click.option(
    "--inside",
    type=click.Choice(("uniform", "tree")),
    default="uniform",
    help="Numbers inside their bins: anywhere, or by a private tree.  [default: uniform]",
)
@click.option(
    "--rule",
    "rules",
    multiple=True,
    help='What every row keeps, as "end >= start"; may be given again.',
)
@click.option(
    "--rules", "ruled", type=FILE, help="More of them, and mappings: a .json file with a list."
)
@click.option("--explain", is_flag=True, help="What is measured, and at which price.")
@click.option("--preview", is_flag=True, help="What the noise does to tables. Nothing is spent.")
@click.option(
    "--sizes",
    type=WholeNumbers(),
    default=(1_000, 10_000, 100_000),
    help="Numbers of rows to preview.  [default: 1000,10000,100000]",
)
@click.option("--rows", type=click.IntRange(0, 2**31), help="How many; about as many as there are.")
@click.option("--seed", type=click.IntRange(0), help="The same one gives the same rows.")
@click.option(
    "--given",
    multiple=True,
    metavar="COLUMN=VALUE",
    help="Rows of such people alone, as the model says; may be given again.",
)
@click.option(
    "--token", help="A name for the request: asked again by it, the same model comes back, free."
)
@paid_options
@click.option("--from", "source", type=FILE, help="A model that was saved: nothing is charged.")
@click.option("--out", "table", type=FILE, help="Write rows: .csv, .json or .parquet.")
@click.option("--model", "kept", type=FILE, help="Write the model, for --from.")
@click.option("--certificate", type=FILE, help="Write the certificate, for `dither verify`.")
def synth(
    name: str | None,
    policy: Path,
    analyst: str | None,
    purpose: str | None,
    where: str | None,
    epsilon: Fraction | None,
    delta: Fraction | None,
    method: str,
    columns: str | None,
    workload: int | None,
    inside: str,
    rules: tuple[str, ...],
    ruled: Path | None,
    explain: bool,
    preview: bool,
    sizes: tuple[int, ...],
    rows: int | None,
    seed: int | None,
    given: tuple[str, ...],
    token: str | None,
    source: Path | None,
    table: Path | None,
    kept: Path | None,
    certificate: Path | None,
) -> None:
    """Make a synthetic table of TABLE, charge the ledger once, and write rows to a file.

    Columns, their values and bounds come from the policy. Files appear once they are whole: where
    the command is cut off, what was charged stays charged, and no part of a file is left.
    """
    import dither as dt

    free = check_free(explain, preview)
    if not preview:
        refuse_given(("sizes",), "--preview")
    if free:
        refuse_given(
            ("rows", "seed", "given", "token", *PAID, "table", "kept", "certificate"), "a release"
        )
    elif table is None and kept is None:
        raise click.UsageError("give --out FILE, --model FILE, or --explain")
    check_targets(table=table, other=kept, option="--model")
    check_targets(table=table, other=certificate)
    if kept is not None and certificate is not None and kept.resolve() == certificate.resolve():
        raise click.UsageError("--model and --certificate must be different files")
    if source is not None:
        asked = (
            "name",
            "analyst",
            "purpose",
            "where",
            "epsilon",
            "delta",
            "method",
            "columns",
            "workload",
            "inside",
            "rules",
            "ruled",
        )
        refuse_given(
            (*asked, "explain", "preview", "token", *PAID), "a policy's table, without --from"
        )
        read = dt.synth.load(source)
        if not isinstance(read, dt.synth.SyntheticModel):
            raise click.UsageError(
                "--from: a model of linked tables is for `dither synth-linked --from`"
            )
        _write(read, rows, seed, given, table, kept, certificate)
        return
    if name is None:
        raise click.UsageError("name the TABLE")
    if epsilon is None:
        raise click.UsageError("--epsilon is missing")
    with dt.open(policy, analyst=analyst, purpose=purpose) as session:
        keep_sources(session, policy, table, kept, certificate)
        found = session.table(name)
        asked_for = (found.filter(where) if where else found).synthesis(
            epsilon,
            delta,
            method=method,
            workload=workload,
            columns=None if columns is None else names_in(columns),
            inside=inside,
            rules=[*rules, *rules_in(ruled)],
        )
        # What cannot be drawn is said before it is paid for.
        if held := _given(asked_for.domain, given):
            asked_for.check_given(held)
        model = answered(
            asked_for,
            session,
            explain=explain,
            preview=partial(asked_for.preview, sizes) if preview else None,
            token=token,
            progress=teller(),
        )
    if model is None:
        return
    _write(model, rows, seed, given, table, kept, certificate)


def rules_in(file: Path | None) -> list[Any]:
    """The rules of a file."""
    if file is None:
        return []
    try:
        found = json.loads(file.read_text(encoding="utf-8"))
    except (OSError, ValueError):
        raise click.UsageError(f"--rules {file}: not a file of JSON") from None
    if not isinstance(found, list):
        raise click.UsageError(f"--rules {file}: must hold a list of rules")
    return found


def _given(domain: CellDomain, texts: Sequence[str]) -> dict[str, Any] | None:
    """Values by column, read as the model's cells have them."""
    found: dict[str, Any] = {}
    for text in texts:
        name, sign, value = text.partition("=")
        if not sign or name in found:
            raise click.UsageError("--given: write COLUMN=VALUE, each column once")
        found[name] = domain[name].read(value)
    return found or None


def teller() -> Callable[[SynthProgress], None] | None:
    """One line on a terminal that says how far it is."""
    if not sys.stderr.isatty():
        return None

    def tell(progress: SynthProgress) -> None:
        left = "" if progress.remaining is None else f", about {progress.remaining:.0f} s left"
        line = progress.stage
        if progress.round:
            tables = count_text(progress.round, "table")
            line += f": {tables}, {percent(progress.share, 0)} of the budget"
        end = "\n" if progress.share >= 1 else ""
        click.echo(f"\r\x1b[K{line}{left if not end else ''}{end}", err=True, nl=False)

    return tell


def _write(
    model: SyntheticModel,
    rows: int | None,
    seed: int | None,
    given: Sequence[str],
    table: Path | None,
    kept: Path | None,
    certificate: Path | None,
) -> None:
    """Files under their names once all of each is on the disk; the model first, which was paid."""
    with writing():
        if kept is not None:
            say_saved(model.save(kept))
        save_certificate(certificate, model.certificate)
        if table is not None:
            with waiting("drawing rows"):
                held = _given(model.domain, given)
                body = as_file(model.sample(rows, seed=seed, given=held), table.suffix.lower())
            written(table, body)
            say_saved(table)
    click.echo(model.summary())
