"""The command ``dither attack linkage``: who is found in released rows, and what they give away."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from dither.cli._files import check_targets, read_table
from dither.cli._options import FILE
from dither.cli._terminal import waiting

if TYPE_CHECKING:
    import polars as pl

__all__ = ["linkage"]

TABLE = click.Path(dir_okay=False, exists=True, allow_dash=True, path_type=Path)


@click.command(
    short_help="Find people in released rows.",
    epilog="""\b
Examples:
  dither attack linkage                                     a real survey, raw and 10-anonymous
  dither attack linkage release.csv voters.csv --keys age,zip,sex
  dither attack linkage release.csv --keys age,zip --sensitive illness
  dither anonymize people.csv --quasi age,zip --mondrian --out - \
    | dither attack linkage - people.csv --keys age,zip
""",
)
@click.argument("release", type=TABLE, required=False)
@click.argument("public", type=TABLE, required=False)
@click.option("--keys", default="", help="What the attacker knows: columns, with commas.")
@click.option("--sensitive", help="What the attacker wants: a column of RELEASE.")
@click.option("--value", help="The answer nobody wants known, for --sensitive.")
@click.option(
    "--same-order", is_flag=True, help="Row i of both files is one person: score the attack."
)
@click.option("--truth", type=FILE,
              help="What dither anonymize --rows wrote, of PUBLIC: score the attack.")  # fmt: skip
@click.option("--covers", "meanings", multiple=True, metavar="COLUMN=FILE",
              help="What labels stand for: a hierarchy, as --hierarchy of dither anonymize takes "
              "it, or JSON, {label: [values]}; may be repeated.")  # fmt: skip
@click.option("--seed", type=click.IntRange(0), default=0, show_default=True)
@click.option("--plot", "picture", type=FILE, help="Draw it: .png, .svg, .pdf.")
def linkage(
    release: Path | None,
    public: Path | None,
    keys: str,
    sensitive: str | None,
    value: str | None,
    same_order: bool,
    truth: Path | None,
    meanings: tuple[str, ...],
    seed: int,
    picture: Path | None,
) -> None:
    """Look people of a PUBLIC table up in a RELEASE, and read the answers of their classes.

    Labels such as [20, 30), 20-29, <30, 130**, {a, b}, 1984-Q2 and * are understood; others need
    --covers. RELEASE may be - for CSV from standard input. Without files it attacks a survey of
    6,366 women: how many are alone with what a neighbour knows, before and after the survey is made
    10-anonymous.
    """
    check_targets(picture=picture)
    if release is None:
        if keys or sensitive or same_order or truth or meanings:
            raise click.UsageError(
                "--keys, --sensitive, --same-order, --truth and --covers go with RELEASE"
            )
        _survey(seed, picture)
        return
    known = [name.strip() for name in keys.split(",") if name.strip()]
    if not known:
        raise click.UsageError("--keys must name what the attacker knows, such as age,zip")
    if public is None and sensitive is None:
        raise click.UsageError("give PUBLIC, to find people; or --sensitive, to read classes")
    from dither import attack

    if same_order and truth is not None:
        raise click.UsageError("--truth says whose row is whose: leave out --same-order")
    if truth is not None and public is None:
        raise click.UsageError("--truth scores who is found in PUBLIC: give it")
    covers = _covers(meanings)
    rows = read_table(release)
    results: list[Any] = []
    if public is not None:
        people = read_table(public)
        real = _truth(truth, same_order, people.height)
        with waiting("looking people up"):
            results.append(
                attack.linkage(rows, people, known, covers=covers, truth=real, seed=seed)
            )
    if sensitive is not None:
        with waiting("reading classes"):
            results.append(attack.homogeneity(rows, known, sensitive, seed=seed))
            results.append(attack.background(rows, known, sensitive, seed=seed))
            if value is not None:
                typed = _typed(rows, sensitive, value)
                results.append(attack.skewness(rows, known, sensitive, value=typed, seed=seed))
    click.echo("\n\n".join(one.summary() for one in results))
    if picture is not None:
        results[0].plot(picture)
        click.echo(f"picture: {picture}")


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
        told = json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError) as error:
        raise click.UsageError(f"--covers: {str(path)!r} cannot be read as JSON") from error
    if not isinstance(told, dict) or not all(isinstance(v, list) for v in told.values()):
        raise click.UsageError('--covers: JSON must be {"label": [values], ...}')
    return told


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


def _survey(seed: int, picture: Path | None) -> None:
    from dither import attack
    from dither.cli._terminal import console, new_table, print_paragraphs
    from dither.examples.survey import COVERS, QUASI, TRAITS, anonymous, boxes, women

    with waiting("attacking the survey"):
        rows = women()
        alone = attack.uniqueness(rows, TRAITS)
        releases = {
            "as answered": rows.drop("affairs"),
            "10-anonymous, columns": anonymous(rows),
            "10-anonymous, boxes": boxes(rows),
        }
        found = {
            name: (
                attack.linkage(
                    table,
                    rows,
                    QUASI,
                    covers=COVERS if "columns" in name else None,
                    truth="position" if name == "as answered" else None,
                    seed=seed,
                ),
                attack.homogeneity(table, QUASI, "affair", seed=seed),
                attack.skewness(table, QUASI, "affair", value="yes", seed=seed),
                attack.background(table, QUASI, "affair", companions=[12], seed=seed).known[0],
            )
            for name, table in releases.items()
        }
    click.echo(alone.summary())
    shown = new_table()
    shown.add_column("release")
    for name in ("alone", "linked", "given away", "doubled", "told apart", "certain, 12 known"):
        shown.add_column(name, justify="right")
    for name, (linked, pure, skew, known) in found.items():
        assert linked.verdict is not None
        shown.add_row(
            name,
            f"{linked.alone:,}",
            f"{100 * linked.verdict.success:.1f} %",
            f"{pure.given_away:,}",
            f"{skew.raised(2):,}",
            f"{100 * skew.auc:.1f} %",
            f"{100 * known.certain:.1f} %",
        )
    console().print()
    console().print(shown)
    print_paragraphs(
        "",
        f"A neighbour knows {', '.join(QUASI)}. Alone: women whom one row fits. Linked: rows "
        "guessed rightly. Given away: all of the class gave one answer on affairs. Doubled: "
        "probability of an affair at least twice everybody's. Told apart: of a woman who had an "
        "affair and one who had none, which is which (blindly 50 %). Certain: where the answers "
        "of 12 others of the class are known.",
        "None of these releases promises anything that could be broken.",
    )
    if picture is not None:
        alone.plot(picture)
        click.echo(f"picture: {picture}")
