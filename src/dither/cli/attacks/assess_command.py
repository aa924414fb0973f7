"""The command ``dither assess``: what a release gives away of the people in it, as a page."""

from __future__ import annotations

import sys
from fractions import Fraction
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from dither.cli._files import check_targets, read_table
from dither.cli._options import FILE, Amount, LocalPath, confidence_of, names_in, refuse_given, seed
from dither.cli._terminal import INCONCLUSIVE, VIOLATED, say_saved, waiting

if TYPE_CHECKING:
    import polars as pl

__all__ = ["assess"]

TABLE = LocalPath(dir_okay=False, exists=True, allow_dash=True, path_type=Path)
ENDINGS = (".html", ".json", ".txt")


@click.command(
    short_help="See what a release gives away of the people in it.",
    epilog="""\b
Examples:
  dither assess people.csv release.csv --control held.csv --out page.html
  dither assess people.parquet synthetic.csv --control held.parquet \\
      --epsilon 1 --unit patient_id --out page.html
  dither assess people.csv synthetic.csv --control held.csv \\
      --certificate cert.json --key owner.pub --answer model.json
""",
)
@click.argument("original", type=TABLE)
@click.argument("release", type=TABLE)
@click.option("--control", metavar="HELD", type=FILE,
              help="People who were not in ORIGINAL, held back by lot beforehand.")  # fmt: skip
@click.option("--epsilon", type=Amount(), help="The epsilon that RELEASE is said to have.")
@click.option("--delta", type=Amount(zero=True), help="And its delta.  [default: 0]")
@click.option("--replace", is_flag=True,
              help="It is said of replacing one person, not of adding or removing.")  # fmt: skip
@click.option("--certificate", metavar="CERT", type=FILE, help="The certificate of it.")
@click.option("--ledger", type=FILE, help="The ledger that vouches for CERT.")
@click.option("--key", metavar="FILE", help="The owner's public key, which vouches for CERT.")
@click.option("--answer", type=FILE,
              help="The synthetic model that RELEASE was drawn from.")  # fmt: skip
@click.option("--unit", metavar="COLUMN", help="Whose row it is.  [default: a row is a person]")
@click.option("--before", type=FILE, help="An earlier version of RELEASE.")
@click.option("--known", metavar="COLUMN,...",
              help="What one source has where two are joined; the other has the rest.")  # fmt: skip
@click.option("--secret", metavar="COLUMN,...",
              help="What is guessed.  [default: the five whose values differ most]")  # fmt: skip
@click.option("--groups", "hierarchies", multiple=True, metavar="COLUMN=FILE",
              help="A hierarchy of a secret's values, as dither anonymize --hierarchy takes "
              "it: its first level says which mean the same. May be repeated.")  # fmt: skip
@click.option("--columns", metavar="COLUMN,...", help="Use these only.")
@click.option("--people", type=click.IntRange(1), default=1_000, show_default=True,
              help="How many of either kind are attacked, at most.")  # fmt: skip
@confidence_of(0.95, "Of all that is said together.")
@seed("all lots")
@click.option("--json", "as_json", is_flag=True, help="Print JSON.")
@click.option("--out", type=FILE, help="Write it: a page (.html), data (.json) or text (.txt).")
@click.option("--force", is_flag=True, help="Write over an existing file.")
def assess(
    original: Path,
    release: Path,
    control: Path | None,
    epsilon: Fraction | None,
    delta: Fraction | None,
    replace: bool,
    certificate: Path | None,
    ledger: Path | None,
    key: str | None,
    answer: Path | None,
    unit: str | None,
    before: Path | None,
    known: str | None,
    secret: str | None,
    hierarchies: tuple[str, ...],
    columns: str | None,
    people: int,
    confidence: float,
    seed: int,
    as_json: bool,
    out: Path | None,
    force: bool,
) -> None:
    """Attack RELEASE, made of ORIGINAL, by singling out, linkability and inference.

    Each is tried by several attackers, on people who were in ORIGINAL and on as many of HELD, who
    were not: what is learned of both is learned of anybody. All are Parquet or CSV files, a row a
    person, or several by --unit. It reads ORIGINAL without noise, and what it prints holds names of
    columns and exact counts: it is for the owner, and for whom they show it to.

    Exit code 1 if more was found than the claimed epsilon allows, 3 if nothing can be said.
    """
    import dither as dt
    from dither.lab.assess import Said

    if out is not None:
        if out.suffix.lower() not in ENDINGS:
            raise click.UsageError(f"--out must end in {', '.join(ENDINGS)}")
        if out.exists() and not force:
            raise click.UsageError(f"--out: {str(out)!r} exists; write over it with --force")
    check_targets(file=out)
    if certificate is None:
        refuse_given(("ledger", "key", "answer"), "--certificate")
        if epsilon is None:
            refuse_given(("delta", "replace"), "--epsilon")
    else:
        refuse_given(("delta", "replace"), "no --certificate: it says them itself")
        if ledger is None and key is None:
            raise click.UsageError("--certificate needs --ledger or --key: who vouches for it?")
    given: dict[str, Any] = {
        name: names_in(text) for name, text in (("known", known), ("columns", columns)) if text
    }
    with waiting("reading"):
        # What the original holds as texts, such as postcodes, stays so in the others.
        real = read_table(original)
        texts = [name for name, dtype in real.schema.items() if str(dtype) == "String"]
        made = read_table(release, texts)
        held = None if control is None else read_table(control, texts)
        earlier = None if before is None else read_table(before, texts)
    groups = dict(_grouped(text, real) for text in hierarchies) or None
    with waiting("attacking"):
        found = dt.assess(
            real,
            made,
            control=held,
            epsilon=epsilon,
            delta=delta or 0,
            neighbours="replace" if replace else "add-remove",
            certificate=certificate,
            ledger=ledger,
            key=key,
            answer=answer,
            unit=unit,
            before=earlier,
            secrets=None if secret is None else names_in(secret),
            groups=groups,
            people=people,
            confidence=confidence,
            seed=seed,
            **given,
        )
    click.echo(found.to_json() if as_json else found.summary())
    if out is not None:
        found.save(out)
        say_saved(out)
    said = set(found.said.values())
    if Said.BEYOND in said:
        sys.exit(VIOLATED)
    if said == {Said.CANNOT_SAY}:
        sys.exit(INCONCLUSIVE)


def _grouped(text: str, real: pl.DataFrame) -> tuple[str, dict[Any, Any]]:
    """A column, and from each of its values to its group, by the first level of a hierarchy."""
    from dither.cli.attacks.linkage_commands import groups_of

    name, sign, file = text.partition("=")
    if not sign or not Path(file).is_file():
        raise click.UsageError(f"--groups {name}=...: there is no such file")
    return name, groups_of(Path(file), real, name)
