"""The commands that run the examples: ``dither demo`` and ``dither attack tour``."""

from __future__ import annotations

from pathlib import Path

import click

from dither.cli._options import LocalPath, seed
from dither.errors import ArgumentError

__all__ = ["demo", "tour"]


@click.command(
    short_help="See it all on a real survey, with the attack it stops.",
    epilog="""\b
Examples:
  dither demo
  dither demo --dir /tmp/affairs
""",
)
@click.option(
    "--dir",
    "folder",
    type=LocalPath(file_okay=False, path_type=Path),
    default=Path("out/demo"),
    show_default=True,
    help="Where its files go.",
)
def demo(folder: Path) -> None:
    """Run the main job on a real survey of 6,366 women, and an attack that it stops.

    Writes the data, a policy, answers, pictures, a certificate and a ledger. Takes some seconds
    and needs no network.
    """
    from dither.examples.demo.run import run

    run(folder)


@click.command(
    short_help="From masking to a guarantee, each step attacked.",
    epilog="""\b
Examples:
  dither attack tour
  dither attack tour --out report.html
""",
)
@click.option(
    "--out",
    type=LocalPath(dir_okay=False, path_type=Path),
    default=Path("attack-tour.html"),
    show_default=True,
    help="The page to write: one file, with its pictures.",
)
@click.option("--force", is_flag=True, help="Write over an existing file.")
@seed("targets and simulations, not of the noise that protects")
def tour(out: Path, force: bool, seed: int) -> None:
    """Release a survey masked, k-anonymous, as exact statistics and privately, and attack each.

    Writes one HTML page, which needs no network. Takes about two minutes.
    """
    from dither.examples.tour import take_tour

    if out.suffix not in (".html", ".htm"):
        raise click.UsageError("--out must end in .html")
    if out.exists() and not force:
        raise click.UsageError(f"--out: {str(out)!r} exists; write over it with --force")
    if not out.resolve().parent.is_dir():
        raise click.UsageError(f"--out: there is no folder {str(out.parent)!r}; make it first")
    page = take_tour(seed, click.echo)
    try:
        out.write_text(page.html(), encoding="utf-8")
    except OSError as error:
        raise ArgumentError(f"--out cannot be written: {error.strerror}") from error
    click.echo(f"\npage: {out} ({out.stat().st_size / 1e6:.1f} MB)")
