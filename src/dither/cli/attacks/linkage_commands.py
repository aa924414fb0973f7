"""The command ``dither attack linkage``: people found in rows, and answers read from classes."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from dither.cli._files import check_targets, read_table
from dither.cli._options import FILE, LocalPath, names_in, plot, refuse_given, seed
from dither.cli._terminal import waiting

if TYPE_CHECKING:
    import polars as pl

__all__ = ["groups_of", "linkage"]

TABLE = LocalPath(dir_okay=False, exists=True, allow_dash=True, path_type=Path)

_OF_PUBLIC = ("same_order", "truth", "meanings", "inexact", "tolerances")
_OF_SENSITIVE = ("value", "groups", "within", "before")
_OF_RELEASE = ("keys", "sensitive", *_OF_SENSITIVE, *_OF_PUBLIC)


@click.command(
    short_help="Find people in released rows.",
    epilog="""\b
Examples:
  dither attack linkage               a real survey, raw and 10-anonymous
  dither attack linkage release.csv voters.csv --keys age,zip,sex
  dither attack linkage ratings.csv known.csv --keys film1,film2 --inexact
  dither attack linkage release.csv --keys age,zip --sensitive illness
  dither attack linkage june.csv --before may.csv --keys age --sensitive ill
  dither anonymize people.csv --quasi age,zip --mondrian --out - \\
      | dither attack linkage - people.csv --keys age,zip
""",
)
@click.argument("release", type=TABLE, required=False)
@click.argument("public", type=TABLE, required=False)
@click.option("--keys", default="", help="The columns that the attacker knows, with commas.")
@click.option("--sensitive", help="The column of RELEASE that the attacker wants.")
@click.option("--value", help="The answer of --sensitive that nobody wants known.")
@click.option("--groups", type=FILE,
              help="A hierarchy of answers, as dither anonymize --hierarchy takes it: which mean "
              "the same, by its first level.")  # fmt: skip
@click.option("--within", type=click.FloatRange(0, min_open=True),
              help="In place of --groups, for numbers: how far apart alike ones are.")  # fmt: skip
@click.option("--before", type=FILE,
              help="The release before RELEASE: read who came or left from both.")  # fmt: skip
@click.option("--inexact", is_flag=True, help="What PUBLIC says may be off: score rows by it.")
@click.option("--tolerance", "tolerances", multiple=True, metavar="COLUMN=NUMBER",
              help="With --inexact: by how much a number may be off; may be repeated.")  # fmt: skip
@click.option(
    "--same-order", is_flag=True, help="Row i of both files is one person: score the attack."
)
@click.option("--truth", type=FILE,
              help="What dither anonymize --rows wrote for PUBLIC: score the attack.")  # fmt: skip
@click.option("--covers", "meanings", multiple=True, metavar="COLUMN=FILE",
              help="What labels stand for: a hierarchy, as dither anonymize --hierarchy takes it, "
              "or JSON, {label: [values]}; may be repeated.")  # fmt: skip
@seed("guesses")
@plot("what is found")
def linkage(
    release: Path | None,
    public: Path | None,
    keys: str,
    sensitive: str | None,
    value: str | None,
    groups: Path | None,
    within: float | None,
    before: Path | None,
    inexact: bool,
    tolerances: tuple[str, ...],
    same_order: bool,
    truth: Path | None,
    meanings: tuple[str, ...],
    seed: int,
    picture: Path | None,
) -> None:
    """Look the people of a PUBLIC table up in a RELEASE, and read the answers of their classes.

    Labels such as [20, 30), 20-29, <30, 130**, {a, b}, 1984-Q2 and * are understood; others need
    --covers. RELEASE may be - for CSV from standard input. With --inexact, NULL in PUBLIC is what
    is not known. Without files, it attacks a survey of 6,366 women: how many of them does a
    neighbour find, before and after the survey is made 10-anonymous?
    """
    check_targets(picture=picture)
    if release is None:
        refuse_given(_OF_RELEASE, "RELEASE")
        from dither.examples.survey_attacks import show_linkage

        show_linkage(seed, picture)
        return
    known = names_in(keys)
    if not known:
        raise click.UsageError("--keys must name what the attacker knows, such as age,zip")
    if public is None and sensitive is None:
        raise click.UsageError("give PUBLIC, to find people; or --sensitive, to read classes")
    if sensitive is None:
        refuse_given(_OF_SENSITIVE, "--sensitive")
    if public is None:
        refuse_given(_OF_PUBLIC, "PUBLIC")
    if groups is not None and within is not None:
        raise click.UsageError("--within is in place of --groups: give one of them")
    if tolerances and not inexact:
        raise click.UsageError("--tolerance goes with --inexact")
    near = dict(map(_tolerance, tolerances)) or None
    from dither import attack

    if same_order and truth is not None:
        raise click.UsageError("--truth says whose row is whose: leave out --same-order")
    covers = _covers(meanings)
    rows = read_table(release)
    results: list[Any] = []
    if public is not None:
        people = read_table(public)
        real = _truth(truth, same_order, people.height)
        options: dict[str, Any] = {"covers": covers, "truth": real, "seed": seed}
        with waiting("looking people up"):
            results.append(
                attack.inexact_linkage(rows, people, known, tolerance=near, **options)
                if inexact
                else attack.linkage(rows, people, known, **options)
            )
    if sensitive is not None:
        with waiting("reading classes"):
            results.append(attack.homogeneity(rows, known, sensitive, seed=seed))
            results.append(attack.background(rows, known, sensitive, seed=seed))
            if value is not None:
                typed = _typed(rows, sensitive, value)
                results.append(attack.skewness(rows, known, sensitive, value=typed, seed=seed))
            if groups is not None or within is not None:
                alike = None if groups is None else groups_of(groups, rows, sensitive)
                results.append(
                    attack.similarity(
                        rows, known, sensitive, groups=alike, within=within, seed=seed
                    )
                )
            if before is not None:
                results.append(
                    attack.snapshots(read_table(before), rows, known, sensitive, seed=seed)
                )
    click.echo("\n\n".join(one.summary() for one in results))
    if picture is not None:
        results[0].plot(picture)
        click.echo(f"picture: {picture}")


def _tolerance(text: str) -> tuple[str, float]:
    """A column and by how much its numbers may be off."""
    name, _, number = text.rpartition("=")
    try:
        return (name or number, float(number))
    except ValueError:
        raise click.UsageError("--tolerance must be COLUMN=NUMBER, such as rating=1") from None


def groups_of(path: Path, rows: pl.DataFrame, sensitive: str) -> dict[Any, Any]:
    """From each answer to what it means, by the first level of a hierarchy."""
    from dither.lab.anonymize import hierarchy

    levels = hierarchy(path).frame
    if levels.width < 2:
        raise click.UsageError("--groups must have a column of answers and one of groups")
    pairs = levels.select(levels.columns[:2]).iter_rows()
    return {_typed(rows, sensitive, value): group for value, group in pairs}


def _covers(asked: tuple[str, ...]) -> dict[str, dict[str, list[Any]]] | None:
    """By column, the values under each label: of hierarchies as --hierarchy takes them, or JSON."""
    found: dict[str, dict[str, list[Any]]] = {}
    for text in asked:
        name, sign, file = text.partition("=")
        path = Path(file)
        if not sign or not path.is_file():
            raise click.UsageError(f"--covers {name}=...: there is no such file")
        if path.suffix == ".json":
            found[name] = _listed(path)
            continue
        from dither.lab.anonymize import hierarchy

        under = found.setdefault(name, {})
        for value, *labels in hierarchy(path).frame.iter_rows():
            for label in labels:
                if label is not None:
                    under.setdefault(label, []).append(value)
    return found or None


def _listed(path: Path) -> dict[str, list[Any]]:
    try:
        stored = json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError) as error:
        raise click.UsageError(f"--covers: {str(path)!r} cannot be read as JSON") from error
    if not isinstance(stored, dict) or not all(isinstance(v, list) for v in stored.values()):
        raise click.UsageError('--covers: JSON must be {"label": [values], ...}')
    return stored


def _truth(path: Path | None, same_order: bool, people: int) -> Any:
    """Of each person the row of the release: from what ``dither anonymize --rows`` wrote."""
    import numpy as np

    if path is None:
        return "position" if same_order else None
    rows = read_table(path)
    if rows.columns != ["row"] or not rows["row"].dtype.is_integer():
        raise click.UsageError("--truth must be a file that dither anonymize --rows wrote")
    source = rows["row"].to_numpy()
    if source.size and not 0 <= source.min() <= source.max() < people:
        raise click.UsageError("--truth is of another table: PUBLIC has fewer rows")
    found = np.full(people, -1, dtype=np.int64)
    found[source] = np.arange(source.size)
    return found


def _typed(rows: pl.DataFrame, column: str, text: str) -> Any:
    """A value as the column would hold it."""
    import polars as pl

    if column not in rows.columns:
        return text
    try:
        return pl.Series([text]).cast(rows[column].dtype)[0]
    except pl.exceptions.PolarsError:
        return text
