"""The command ``dither account``: what a sum of mechanisms costs, by every method."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING

import click

from dither.cli.options import FILE

if TYPE_CHECKING:
    from dither.privacy import Loss

__all__ = ["account"]


@click.command(
    short_help="What a sum of mechanisms costs, by every method.",
    epilog="""\b
Examples:
  dither account "10000 * gaussian(1.0).poisson(0.01)" --delta 1e-5
  dither account "500 * laplace(30) + zcdp(0.01)" --delta 1e-6 --plot loss.png
  dither account mechanisms.toml --epsilon 2
""",
)
@click.argument("what", metavar="EXPRESSION|FILE.toml|-")
@click.option("--delta", type=float, help="Print epsilon at this delta; 1e-6 unless told.")
@click.option("--epsilon", type=float, help="Print delta at this epsilon.")
@click.option(
    "--plot", "picture", type=FILE, help="Draw profile, trade-off and law: .png, .svg, .pdf."
)
def account(what: str, delta: float | None, epsilon: float | None, picture: Path | None) -> None:
    """Compose mechanisms that are fixed in advance, and say what they cost together.

    EXPRESSION adds mechanisms with + and repeats them with *, as in Python. No data is read and
    nothing is charged.
    """
    from dither.accounting import by_every_theorem

    loss = _read(what)
    if epsilon is not None:
        bound = loss.delta(epsilon)
        click.echo(f"delta of {loss.describe()} at epsilon {epsilon:g}")
        click.echo(f"  {bound.upper:.15g}  ({bound.method}; at least {bound.lower:.15g})")
    if epsilon is None or delta is not None:
        table = by_every_theorem(loss, 1e-6 if delta is None else delta)
        click.echo(str(table))
        if table.best().theorem != "numeric":
            click.echo(f"  least: {table.best().theorem}")
    if picture is not None:
        loss.plot(picture)
        click.echo(f"picture: {picture}")


def _read(what: str) -> Loss:
    from dither.accounting import loss_from_expression, loss_from_toml

    if what == "-":
        return loss_from_expression(sys.stdin.read())
    if what.endswith(".toml"):
        try:
            return loss_from_toml(Path(what).read_text(encoding="utf-8"))
        except (OSError, UnicodeDecodeError) as error:
            raise click.ClickException(f"{what} cannot be read as text") from error
    return loss_from_expression(what)
