"""The command ``dither anonymize``: k-anonymity and its kin for a file, measured."""

from __future__ import annotations

import contextlib
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from dither._checks import exact
from dither.cli._files import check_targets, read_table
from dither.cli._options import FILE, names_in, plot, refuse_given
from dither.cli._terminal import PATIENCE, waiting
from dither.errors import ArgumentError

if TYPE_CHECKING:
    import polars as pl

    from dither.lab.anonymize import Anonymized, Measures, SearchProgress

__all__ = ["anonymize"]

DISTANCES = click.Choice(["equal", "ordered", "hierarchical"])


@click.command(
    short_help="Generalise a table to k-anonymity, or measure one.",
    epilog="""\b
Examples:
  dither anonymize people.csv --quasi age,zip --sensitive illness --measure
  dither anonymize people.csv --quasi age,zip --hierarchy age=5,10,20 \\
      --hierarchy zip=zip.csv --k 10 --out release.csv
  dither anonymize people.csv --quasi age,zip --mondrian --out release.csv
""",
)
@click.argument("source", type=FILE)
@click.option("--quasi", required=True, help="Columns that an attacker may know, with commas.")
@click.option("--sensitive", default="", help="Columns that an attacker wants, with commas.")
@click.option(
    "--hierarchy",
    "hierarchies",
    multiple=True,
    metavar="COLUMN=HOW",
    help="How a column becomes coarser: widths of intervals, such as 5,10,20; 'dates'; "
    "'suppress'; 'prefix:3,2,1'; or a CSV file with a line for each value, from fine to coarse, "
    "with ';' between. May be repeated.",
)
@click.option("--k", type=click.IntRange(1), default=10, show_default=True,
              help="The smallest class of rows that look alike.")  # fmt: skip
@click.option(
    "--suppress",
    help="The largest share of rows to leave out.  [default: 0.05; with --mondrian none]",
)
@click.option("--l", "diversity", type=click.IntRange(1), help="Require distinct l-diversity.")
@click.option("--t", "closeness", type=float, help="Require t-closeness; needs --distance.")
@click.option(
    "--distance", type=DISTANCES, help="The distance of t-closeness; there is no default."
)
@click.option(
    "--mondrian",
    is_flag=True,
    help="Cut the rows into boxes; hierarchies only give the order of values.",
)
@click.option("--measure", "only_measure", is_flag=True, help="Measure SOURCE as it stands.")
@click.option(
    "--seconds", type=click.FloatRange(0), help="Stop after so long, with the best release so far."
)
@click.option(
    "--out", type=FILE, help="The release to write: .csv or .parquet; - is CSV to standard output."
)
@click.option("--rows", "secret", type=FILE, help="Also write which row of SOURCE each released "
              "row was (.csv), to score an attack. Keep it secret.")  # fmt: skip
@plot("class sizes, and what attackers find")
@click.option("--force", is_flag=True, help="Write over an existing file.")
def anonymize(
    source: Path,
    quasi: str,
    sensitive: str,
    hierarchies: tuple[str, ...],
    k: int,
    suppress: str | None,
    diversity: int | None,
    closeness: float | None,
    distance: str | None,
    mondrian: bool,
    only_measure: bool,
    seconds: float | None,
    out: Path | None,
    secret: Path | None,
    picture: Path | None,
    force: bool,
) -> None:
    """Anonymise SOURCE, a Parquet or CSV file, as people did before differential privacy.

    Prints what was done, what it cost, and what it does not protect. Ctrl-C keeps the best release
    found so far. No ledger is charged: k-anonymity is not a guarantee that a ledger could hold.
    """
    import polars as pl

    from dither import anonymize as room
    from dither.cli._terminal import print_paragraphs

    piped = str(out) == "-"
    for path, option in ((out, "--out"), (picture, "--plot"), (secret, "--rows")):
        if path is not None and path.exists() and not force:
            raise click.UsageError(f"{option}: {str(path)!r} exists; write over it with --force")
    if out is not None and not piped and out.suffix not in (".csv", ".parquet"):
        raise click.UsageError("--out must end in .csv or .parquet, or be - for standard output")
    if only_measure:
        refuse_given(
            ("out", "secret", "k", "suppress", "diversity", "closeness", "mondrian", "seconds"),
            "a release, and --measure makes none",
        )
    if secret is not None and secret.suffix != ".csv":
        raise click.UsageError("--rows must end in .csv")
    if closeness is not None and distance is None:
        raise click.UsageError("--t needs --distance: the number means nothing without it")
    if mondrian:
        refuse_given(("suppress",), "hierarchies, and --mondrian leaves out no row")
    check_targets(table=None if piped else out, picture=picture, other=secret, option="--rows")
    known, wanted = names_in(quasi), names_in(sensitive)
    if not wanted and (diversity is not None or closeness is not None):
        raise click.UsageError("--l and --t are about a column: name it with --sensitive")
    with waiting("reading"):
        trees = _hierarchies(hierarchies)
        frame = read_table(source, [name for name, tree in trees.items() if _of_texts(tree)])
    bare = [name for name in known if name in frame.columns and name not in trees]
    if bare and set(trees) <= set(known) and not mondrian and not only_measure:
        raise click.UsageError(
            f"how may {bare[0]!r} become coarser? Say --hierarchy {bare[0]}=5,10,20 (numbers), "
            f"=dates, =prefix:3,2,1, =suppress or =FILE.csv; or cut into boxes with --mondrian"
        )
    found: Anonymized | Measures
    if only_measure:
        with waiting("measuring"):
            found = room.measure(frame, known, wanted, distance=distance, hierarchies=trees)
    else:
        require = [] if diversity is None else [room.l_diversity(diversity)]
        if closeness is not None and distance is not None:
            require.append(room.t_closeness(closeness, distance=distance))
        common: dict[str, Any] = {
            "sensitive": wanted,
            "require": require,
            "distance": distance,
            "seconds": seconds,
        }
        if mondrian:
            with waiting("cutting"):
                found = room.mondrian(frame, known, k, hierarchies=trees, **common)
        else:
            with _telling() as progress:
                found = room.generalize(
                    frame, known, trees, k, suppress or "0.05", progress=progress, **common
                )
        # Before the release, whose reader may wait for both.
        if secret is not None:
            _write(pl.DataFrame({"row": found.rows}), secret)
        if piped:
            sys.stdout.buffer.write(found.frame.write_csv().encode())
            sys.stdout.flush()
        elif out is not None:
            _write(found.frame, out)
    if piped:
        click.echo(found.summary(), err=True)
    else:
        print_paragraphs(*found.summary().splitlines())
        if out is not None:
            click.echo(f"release: {out}")
    if secret is not None:
        click.echo(f"secret: {secret} undoes the order of the rows; release it to nobody", err=True)
    if picture is not None:
        with waiting("drawing"):
            found.plot(picture)
        click.echo(f"picture: {picture}", err=piped)


def _hierarchies(asked: tuple[str, ...]) -> dict[str, object]:
    from dither import anonymize as room

    found: dict[str, object] = {}
    for text in asked:
        name, sign, how = text.partition("=")
        if not sign or not how:
            raise click.UsageError("--hierarchy takes COLUMN=HOW, such as age=5,10,20")
        kind, _, lengths = how.partition(":")
        if how == "dates":
            found[name] = room.dates()
        elif how == "suppress":
            found[name] = room.suppression()
        elif kind == "prefix":
            found[name] = room.prefixes([_whole(n) for n in lengths.split(",")])
        elif Path(how).is_file():
            found[name] = room.hierarchy(Path(how))
        else:
            try:
                widths = [exact("a width", n.strip(), above=0) for n in how.split(",")]
            except ArgumentError as error:
                raise click.UsageError(
                    f"--hierarchy {name}=...: there is no such file, and it is not a list of widths"
                ) from error
            found[name] = room.intervals(widths)
    return found


def _whole(text: str) -> int:
    try:
        return int(text)
    except ValueError as error:
        raise click.UsageError("--hierarchy COLUMN=prefix:N,N takes whole numbers") from error


def _of_texts(tree: object) -> bool:
    """Whether values are to be read as they are written: 02139 is not a number."""
    from dither.lab.anonymize._rules import of_numbers_or_dates

    return not of_numbers_or_dates(tree)


def _write(frame: pl.DataFrame, path: Path) -> None:
    try:
        if path.suffix == ".parquet":
            frame.write_parquet(path)
        else:
            frame.write_csv(path)
    except OSError as error:
        raise click.UsageError(f"{str(path)!r} cannot be written: {error.strerror}") from error


@contextlib.contextmanager
def _telling() -> Iterator[Callable[[SearchProgress], None] | None]:
    """On a terminal, one line that says how far the search is, from the third second on."""
    if not sys.stderr.isatty():
        yield None
        return
    shown = False

    def tell(progress: SearchProgress) -> None:
        nonlocal shown
        if progress.seconds < PATIENCE:
            return
        shown = True
        best = "none yet" if progress.loss is None else f"loss {progress.loss:.4f}"
        click.echo(
            f"\r{progress.settled:,} of {progress.nodes:,} settled, best: {best}; Ctrl-C keeps it ",
            nl=False,
            err=True,
        )

    try:
        yield tell
    finally:
        if shown:
            click.echo("\r\x1b[K", nl=False, err=True)
