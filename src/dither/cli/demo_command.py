"""The command ``dither demo``: the main job on real data, with the attack it stops."""

from __future__ import annotations

from pathlib import Path

import click

__all__ = ["demo"]


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
    type=click.Path(file_okay=False, path_type=Path),
    default=Path("out/demo"),
    show_default=True,
    help="Where its files go.",
)
def demo(folder: Path) -> None:
    """Run the main job on a real survey of 6,366 women, and an attack that it stops.

    Writes the data, a policy, answers, pictures, a certificate and a ledger. Takes some seconds
    and needs no network.
    """
    from dither.examples.demo import run

    run(folder)
