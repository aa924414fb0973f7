"""``dither synth-linked``: synthetic tables whose rows belong together, a file each."""

from __future__ import annotations

import os
import tomllib
from collections.abc import Mapping, Sequence
from fractions import Fraction
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from dither._files import written
from dither.cli._files import as_file, check_targets
from dither.cli._options import (
    FILE,
    PAID,
    LocalPath,
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
from dither.cli.questions.synth_command import rules_in, teller

if TYPE_CHECKING:
    from dither.synth.linked._model import LinkedModel

__all__ = ["synth_linked"]

FORMS = ("csv", "json", "parquet")


@click.command(
    "synth-linked",
    short_help="Synthetic tables whose rows belong together.",
    epilog="""\b
Examples:
  dither synth-linked persons --child 'visits = {most = 6, order = "day"}' \\
      --epsilon 2 --explain
  dither synth-linked persons --child 'visits = {most = 6, order = "day"}' \\
      --epsilon 2 --out made
  dither synth-linked households --below tables.toml --epsilon 2 --out made \\
      --form parquet
  dither synth-linked --from persons.model --units 500 --out more

\b
tables.toml says what lies below the TABLE, to any depth:
  [persons]
  key = "person"            # what rows below refer to
  most = 8                  # rows of one household, at most
  [persons.children.visits]
  most = 20
  order = "day"             # when: gaps and the row before are kept
  gaps = [0, 7, 28]         # where their cells begin
  rules = ["left >= day"]
""",
)
@click.argument("name", metavar="TABLE", required=False)
@policy
@analyst_option
@purpose_option
@click.option(
    "--below", type=FILE, help="The tables below TABLE: a .toml file with a part for each."
)
@click.option(
    "--child",
    "lines",
    multiple=True,
    metavar="TABLE = {...}",
    help="A table below TABLE, as a line of --below; may be given again.",
)
@epsilon(required=False)
@delta
@click.option("--columns", help="Of TABLE: names with commas between; all where left out.")
@click.option(
    "--cells",
    type=click.IntRange(1),
    default=32,
    help="Bins or periods that bounds are cut into at most, in all tables.  [default: 32]",
)
@click.option(
    "--rule",
    "rules",
    multiple=True,
    help='What every row of TABLE keeps, as "end >= start"; may be given again.',
)
@click.option(
    "--rules", "ruled", type=FILE, help="More of them, and mappings: a .json file with a list."
)
@click.option("--explain", is_flag=True, help="What is measured, and at which price.")
@click.option("--preview", is_flag=True, help="What the noise does to counts. Nothing is spent.")
@click.option(
    "--sizes",
    type=WholeNumbers(),
    default=(1_000, 10_000, 100_000),
    help="Numbers of units to preview.  [default: 1000,10000,100000]",
)
@click.option(
    "--units", type=click.IntRange(0, 2**31), help="How many; about as many as there are."
)
@click.option("--seed", type=click.IntRange(0), help="The same one gives the same rows.")
@click.option(
    "--token", help="A name for the request: asked again by it, the same model comes back, free."
)
@paid_options
@click.option("--from", "source", type=FILE, help="A model that was saved: nothing is charged.")
@click.option(
    "--out",
    "folder",
    type=LocalPath(file_okay=False, path_type=Path),
    help="A folder: write each table as a file of its name in it.",
)
@click.option(
    "--form",
    type=click.Choice(FORMS),
    default="csv",
    help="Of the files of --out.  [default: csv]",
)
@click.option("--model", "kept", type=FILE, help="Write the model, for --from.")
@click.option("--certificate", type=FILE, help="Write the certificate, for `dither verify`.")
def synth_linked(
    name: str | None,
    policy: Path,
    analyst: str | None,
    purpose: str | None,
    below: Path | None,
    lines: tuple[str, ...],
    epsilon: Fraction | None,
    delta: Fraction | None,
    columns: str | None,
    cells: int,
    rules: tuple[str, ...],
    ruled: Path | None,
    explain: bool,
    preview: bool,
    sizes: tuple[int, ...],
    units: int | None,
    seed: int | None,
    token: str | None,
    source: Path | None,
    folder: Path | None,
    form: str,
    kept: Path | None,
    certificate: Path | None,
) -> None:
    """Make synthetic rows of TABLE and of the tables below it, charge the ledger once, and write
    each table to a file.

    TABLE has one row for each unit; rows of the tables below belong to one of its rows, or to a row
    of a table between. What is protected is a whole unit with all of its rows in all tables. Units,
    columns and bounds come from the policy; --below and --child are public, and must not come from
    the data. No file is overwritten: where a table's file is in the folder already, nothing is
    charged.
    """
    import dither as dt

    free = check_free(explain, preview)
    if not preview:
        refuse_given(("sizes",), "--preview")
    if free:
        refuse_given(
            ("units", "seed", "token", *PAID, "folder", "form", "kept", "certificate"), "a release"
        )
    elif folder is None and kept is None:
        raise click.UsageError("give --out FOLDER, --model FILE, or --explain")
    if folder is None:
        refuse_given(("units", "seed", "form"), "--out")
    check_targets(file=kept, other=certificate)
    if source is not None:
        asked = ("name", "analyst", "purpose", "below", "lines", "epsilon", "delta", "columns")
        refuse_given(
            (*asked, "cells", "rules", "ruled", "explain", "preview", "token", *PAID),
            "a policy's tables, without --from",
        )
        read = dt.synth.load(source)
        if isinstance(read, dt.synth.SyntheticModel):
            raise click.UsageError("--from: a model of one table is for `dither synth --from`")
        _write(read, units, seed, _targets(folder, read.tables, form, kept, certificate), kept,
               certificate)  # fmt: skip
        return
    if name is None:
        raise click.UsageError("name the TABLE with one row for each unit")
    if epsilon is None:
        raise click.UsageError("--epsilon is missing")
    children = _children(below, lines)
    with dt.open(policy, analyst=analyst, purpose=purpose) as session:
        keep_sources(session, policy, kept, certificate)
        asked_for = session.table(name).linked_synthesis(
            children,
            epsilon,
            delta,
            columns=None if columns is None else names_in(columns),
            cells=cells,
            rules=[*rules, *rules_in(ruled)],
        )
        # Where a file could not be written, that is said before anything is paid for.
        tables = [level.name for level in asked_for.levels]
        targets = _targets(folder, tables, form, kept, certificate)
        model = answered(
            asked_for,
            session,
            explain=explain,
            preview=partial(asked_for.preview, sizes) if preview else None,
            token=token,
            progress=teller(),
        )
    if model is not None:
        _write(model, units, seed, targets, kept, certificate)


def _children(file: Path | None, lines: Sequence[str]) -> dict[str, Any]:
    """The tables below the first, of a file and of lines of such a file."""
    found: dict[str, Any] = {}
    if file is not None:
        try:
            found = tomllib.loads(file.read_text(encoding="utf-8"))
        except tomllib.TOMLDecodeError as error:
            raise click.UsageError(f"--below {file}: not TOML: {error}") from None
        except (OSError, UnicodeDecodeError):
            raise click.UsageError(f"--below {file}: cannot be read as text") from None
    for line in lines:
        try:
            more = tomllib.loads(line)
        except tomllib.TOMLDecodeError:
            more = {}
        if not more or not all(isinstance(one, Mapping) for one in more.values()):
            raise click.UsageError(
                "--child: write a table and what is said of it, as "
                "'visits = {most = 6, order = \"day\"}'"
            )
        for table in more:
            if table in found:
                raise click.UsageError(f"--child: {table} is named twice")
        found |= more
    if not found:
        raise click.UsageError("name the tables below by --below FILE or --child 'visits = {...}'")
    return found


def _targets(
    folder: Path | None,
    tables: Sequence[str],
    form: str,
    *others: Path | None,
) -> dict[str, Path]:
    """By table the file to write, where all of them can be.

    Raises
    ------
    UsageError
        Naming the option and the fix.
    """
    if folder is None:
        return {}
    nearest = folder if folder.is_dir() else folder.parent
    if not nearest.is_dir():
        raise click.UsageError(f"--out: there is no folder {str(nearest)!r}; make it first")
    if not os.access(nearest, os.W_OK | os.X_OK):
        raise click.UsageError(f"--out: {str(nearest)!r} cannot be written to")
    found: dict[str, Path] = {}
    taken = {path.resolve() for path in others if path is not None}
    if folder.resolve() in taken:
        raise click.UsageError("--out must not be what another option writes; name another folder")
    for table in tables:
        # A model that somebody sent may name its tables as it likes.
        plain = table.isprintable() and not set(table) & set("/\\:") and len(table.encode()) < 200
        if not plain or table[:1] in ("", "."):
            raise click.UsageError("--out: a table of this model has a name that no file may have")
        target = folder / f"{table}.{form}"
        if os.path.lexists(target):
            raise click.UsageError(
                f"--out: {str(target)!r} is there already, and may be a table's source; name a "
                "folder without it"
            )
        if target.resolve() in taken:
            raise click.UsageError(
                f"--out: another option writes {str(target)!r}, too; name another file there"
            )
        found[table] = target
    return found


def _write(
    model: LinkedModel,
    units: int | None,
    seed: int | None,
    targets: Mapping[str, Path],
    kept: Path | None,
    certificate: Path | None,
) -> None:
    """Files under their names once all of each is on the disk; the model first, which was paid."""
    with writing():
        if kept is not None:
            say_saved(model.save(kept))
        save_certificate(certificate, model.certificate)
        if targets:
            with waiting("drawing rows"):
                bodies = {
                    table: as_file(frame, targets[table].suffix)
                    for table, frame in model.sample(units, seed=seed).items()
                }
            for table, target in targets.items():
                target.parent.mkdir(exist_ok=True)
                written(target, bodies[table])
                say_saved(target)
    click.echo(model.summary())
