"""The command ``dither init``: draft a policy from a schema."""

from __future__ import annotations

import json
import os
import shlex
import sys
import tomllib
from pathlib import Path
from typing import TYPE_CHECKING

import click

from dither.cli._options import FILE
from dither.cli._terminal import waiting

if TYPE_CHECKING:
    from dither.plan.schema import Kind

__all__ = ["init"]


@click.command(
    short_help="Draft a policy from the schema of a table.",
    epilog="""\b
Examples:
  dither init visits.parquet
  dither init visits.csv --unit patient_id --out policies/visits.toml
  dither init patients.parquet --by-row
  dither init "visits/*.parquet" --table visits
  dither init hospital.duckdb --table visits --force
  dither init env:HOSPITAL_DSN --engine postgres --table public.visits
  dither init visits.csv --unit patient_id --no-ask
""",
)
@click.argument("source")
@click.option("--table", help="The table's name in questions; of a database, the table to read.")
@click.option(
    "--engine", help="The engine that SOURCE is one of, where it is not a file, such as postgres."
)
@click.option(
    "--unit", help="The column that says whose a row is. Without it, each row is a person."
)
@click.option(
    "--by-row", is_flag=True, help="Each row is another person, whatever its columns are called."
)
@click.option("--out", type=FILE, default=Path("dither.toml"), show_default=True,
              help="The policy to write.")  # fmt: skip
@click.option("--force", is_flag=True, help="Write over an existing policy.")
@click.option(
    "--ask/--no-ask",
    "asks",
    default=None,
    help="Ask step by step what the draft leaves open; on a terminal, unless --no-ask.",
)
def init(
    source: str,
    table: str | None,
    engine: str | None,
    unit: str | None,
    by_row: bool,
    out: Path,
    force: bool,
    asks: bool | None,
) -> None:
    """Draft a policy for SOURCE: a Parquet, CSV, JSON lines or Arrow file, a pattern or a folder of
    such files, a DuckDB database, or with --engine what that engine reads. A source that holds a
    password is named as env:NAME, after the variable of the environment that holds it.

    The draft comes from names and types alone, never from values. What is public about each column
    is yours to fill in, from what you know without looking.

    Where a column looks like a person's key, such as patient_id, and nothing says whose a row is,
    you are asked; where nobody can be, --unit or --by-row must say it.

    On a terminal six steps then ask what the draft leaves open, in the words of the page of a
    service: types, whose rows these are, bounds and values, limits, budget and blocks, people. Each
    question says what its answer means, and what happens if it is left out by Enter. Ctrl-D leaves
    out all that follow. In a pipe nothing is asked, and the draft is written as it is.
    """
    import dither as dt
    from dither.policy._drafting import UnitMissing

    if out.exists() and not force:
        raise click.UsageError(f"{str(out)!r} exists; write over it with --force")
    if not out.parent.is_dir():
        raise click.UsageError(f"--out: there is no folder {str(out.parent)!r}; make it first")
    if unit is not None and by_row:
        raise click.UsageError("--unit and --by-row contradict each other; leave one of them out")

    def drafted(unit: str | None, by_row: bool) -> str:
        with waiting("reading the schema"):
            if engine is None:
                return dt.draft_policy(source, table=table, unit=unit, by_row=by_row)
            held = {"table": table} if table else {}
            return dt.draft_policy({engine: source, **held}, unit=unit, by_row=by_row)

    try:
        text = drafted(unit, by_row)
    except UnitMissing as missing:
        unit, by_row = _asked_whose(missing.columns)
        text = drafted(unit, by_row)
    if _can_be_asked() if asks is None else asks:
        from dither.cli.policies._asking import ask_steps

        text = ask_steps(text, _kinds(text), whose=unit is None and not by_row)
    # A policy's paths start from its own folder, the draft's from the current one.
    here = f"source = {json.dumps(source, ensure_ascii=False)}"
    if here in text and not Path(source).is_absolute():
        there = Path(os.path.relpath(source, out.parent)).as_posix()
        text = text.replace(here, f"source = {json.dumps(there, ensure_ascii=False)}", 1)
    try:
        out.write_text(text, encoding="utf-8")
    except OSError as error:
        raise click.UsageError(f"--out cannot be written: {error.strerror}") from error
    _say_next(text, Path(source).name if engine is None else source, out)


def _kinds(draft: str) -> dict[str, Kind | None]:
    """The columns of a draft's table, and their kinds, from its source's schema."""
    from dither.errors import PolicyError
    from dither.policy._policy import read_policy
    from dither.policy._sources import connect

    read = read_policy(tomllib.loads(draft))
    (table,) = read.tables
    try:
        with waiting("reading the schema"):
            engine = connect(read, {}, {})
            try:
                return dict(engine.describe(table))
            finally:
                engine.close()
    except PolicyError:
        return {}  # such as of JSON lines, which carry no schema


ROW = "row"
"""What is answered where each row is another person."""


def _asked_whose(columns: tuple[str, ...]) -> tuple[str | None, bool]:
    """Whom a row belongs to: a column, or, where each is another person, none."""
    listed = " and ".join(map(repr, columns))
    if not _can_be_asked():
        raise click.UsageError(
            f"{listed} may say whose a row is, and without a unit each row is protected by itself, "
            f"not each person: say --unit {columns[0]}, or --by-row where no person has more than "
            "one row"
        )
    click.echo(
        f"{listed} may say whose a row is. A ledger stays bound to what it first protects.",
        err=True,
    )
    options = [*columns, ROW]
    answer = click.prompt(
        f"Who is protected: all rows with one {columns[0]}, or each {ROW} by itself?",
        type=click.Choice(options),
        err=True,
    )
    return (None, True) if answer == ROW else (answer, False)


def _can_be_asked() -> bool:
    return sys.stdin.isatty() and sys.stderr.isatty()


def _say_next(text: str, source: str, out: Path) -> None:
    """What was drafted, what is to be filled in, and the first question to ask."""
    from dither.cli._terminal import print_paragraphs

    name, body = next(iter(tomllib.loads(text)["tables"].items()))
    empty = [column for column, facts in body["columns"].items() if not facts]
    listed = ", ".join(empty[:12]) + (f" and {len(empty) - 12} more" if len(empty) > 12 else "")
    policy = "" if out == Path("dither.toml") else f" --policy {shlex.quote(str(out))}"
    lines = [
        f"Drafted {out} from the schema of {source}; no value was read.",
        "",
        "Fill in, from what is public without looking at the data:",
        "- [budget]: how much all releases together may cost;",
    ]
    if "unit" in body:
        lines.append(
            f"- max_groups and max_rows: how much of one {body['unit']} may count;",
        )
    elif "units" not in tomllib.loads(text):
        lines.append("- unit, if one person can have more than one row;")
    if empty:
        lines.append(f"- bounds, or values, of the columns you ask about: {listed}.")
    lines += [
        "",
        "Then, free of charge:",
    ]
    print_paragraphs(*lines)
    click.echo(f'  dither explain "SELECT COUNT(*) AS n FROM {name}" --epsilon 0.5{policy}')
