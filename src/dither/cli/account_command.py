"""The command ``dither account``: what mechanisms cost together, and what each may have."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING

import click

from dither._format import argument_text
from dither.cli._endings import Ended
from dither.cli._files import check_targets
from dither.cli._options import Group, plot
from dither.cli._terminal import say_saved

if TYPE_CHECKING:
    from dither.privacy import Loss

__all__ = ["account"]


class Defaulted(Group):
    """A group in which a word that is not a command is an argument of the first command."""

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        """Put the first command's name before an expression."""
        known = {*self.commands, *ctx.help_option_names}
        if args and args[0] not in known:
            args = [next(iter(self.commands)), *args]
        return super().parse_args(ctx, args)


@click.group(
    cls=Defaulted,
    short_help="What mechanisms cost together, and what each may have.",
    epilog="""\b
Examples:
  dither account "10000 * gaussian(1.0).poisson(0.01)" --delta 1e-5
  dither account divide "laplace + 3 * gaussian" --epsilon 1 --delta 1e-6
  dither account shares 10000 --epsilon 1 --delta 1e-9
""",
)
def account() -> None:
    """Add up or divide the cost of mechanisms that are fixed in advance.

    No data is read, and nothing is charged.

    `dither account EXPRESSION` is short for `dither account compose EXPRESSION`.
    """


@account.command(
    short_help="What a sum of mechanisms costs, by every method.",
    epilog="""\b
Examples:
  dither account "10000 * gaussian(1.0).poisson(0.01)" --delta 1e-5
  dither account "500 * laplace(30) + zcdp(0.01)" --plot loss.png
  dither account mechanisms.toml --epsilon 2

\b
Mechanisms:
  gaussian(noise_multiplier), laplace(noise_multiplier), pure(epsilon),
  approximate(epsilon, delta), zcdp(rho), gdp(mu), renyi({order: value}),
  exponential(epsilon), randomized_response(epsilon, k),
  discrete_gaussian(sigma), discrete_laplace(scale), pair([...], [...]),
  tree_aggregation(noise_multiplier, steps), noisy_votes(sigma),
  repeat_and_select(LOSS, mean=...)
\b
Each takes .poisson(rate), .without_replacement(sample, population) and
.group(size).
""",
)
@click.argument("what", metavar="EXPRESSION|FILE.toml|-")
@click.option("--delta", type=float, help="Print epsilon at this delta.  [default: 1e-6]")
@click.option("--epsilon", type=float, help="Print delta at this epsilon.")
@plot("every method, the profile, the trade-off and the loss")
def compose(what: str, delta: float | None, epsilon: float | None, picture: Path | None) -> None:
    """Compose mechanisms that are fixed in advance, and say what they cost together.

    EXPRESSION adds mechanisms with + and repeats them with *, as in Python.
    """
    from dither.accounting import by_every_theorem

    check_targets(picture=picture)
    loss = _read(what)
    table = None
    if epsilon is not None:
        bound = loss.delta(epsilon)
        click.echo(f"delta of {loss.describe()} at epsilon {epsilon:g}")
        click.echo(f"  {argument_text(bound.upper, 15)}  ({bound.describe()})")
    if epsilon is None or delta is not None:
        table = by_every_theorem(loss, 1e-6 if delta is None else delta)
        click.echo(str(table))
        known = [row for row in table.rows if row.value is not None]
        if known and table.best().theorem != "numeric":
            click.echo(f"  least: {table.best().theorem}")
        if not known:
            raise Ended(table.rows[0].note)
    if picture is not None:
        from dither.plots._loss import draw_loss

        draw_loss(loss, picture, table=table)
        say_saved(picture)


@account.command(
    short_help="The noise of least total error that keeps a promise.",
    epilog="""\b
Examples:
  dither account divide "laplace + 3 * gaussian" --epsilon 1 --delta 1e-6
  dither account divide "2 * laplace(sensitivity=5) + laplace(weight=9)" \\
      --epsilon 0.5
""",
)
@click.argument("mix", metavar="MIX|-")
@click.option("--epsilon", type=float, required=True, help="Epsilon of all together.")
@click.option("--delta", type=float, default=0.0, help="Delta of all together.  [default: 0]")
@plot("errors and noise")
def divide(mix: str, epsilon: float, delta: float, picture: Path | None) -> None:
    """Divide a promise among mechanisms so that their variances add up to the least.

    MIX names kinds (laplace, gaussian, randomized_response), joined by + and repeated with *, each
    with (sensitivity=..., weight=...) if wanted. The answer is each one's noise and, by the
    theorems that divide promises, its epsilon and delta.
    """
    from dither.accounting import divide_by_every_theorem, mix_from_expression

    check_targets(picture=picture)
    parts = mix_from_expression(sys.stdin.read() if mix == "-" else mix)
    table = divide_by_every_theorem(parts, epsilon=epsilon, delta=delta)
    click.echo(str(table))
    if picture is not None:
        table.plot(picture)
        say_saved(picture)


@account.command(
    short_help="What each of K mechanisms may have of a lifetime budget.",
    epilog="""\b
Example:
  dither account shares 10000 --epsilon 1 --delta 1e-9 --plot shares.png
""",
)
@click.argument("k", type=int)
@click.option("--epsilon", type=float, required=True, help="Epsilon of all K together.")
@click.option("--delta", type=float, required=True, help="Delta of all K together.")
@click.option(
    "--each-delta", type=float, default=0.0, help="Delta of each by itself.  [default: 0]"
)
@plot("the shares")
def shares(k: int, epsilon: float, delta: float, each_delta: float, picture: Path | None) -> None:
    """Say how much epsilon each of K mechanisms may have, by every theorem.

    The mechanisms may be K databases that each hold a record of the same person and know nothing
    of one another.
    """
    from dither.accounting import shares_by_every_theorem

    check_targets(picture=picture)
    table = shares_by_every_theorem(epsilon, k, delta, each_delta=each_delta)
    click.echo(str(table))
    if picture is not None:
        table.plot(picture)
        say_saved(picture)


def _read(what: str) -> Loss:
    from dither.accounting import loss_from_expression, loss_from_toml

    if what == "-":
        return loss_from_expression(sys.stdin.read())
    if what.endswith(".toml"):
        try:
            return loss_from_toml(Path(what).read_text(encoding="utf-8"))
        except (OSError, UnicodeDecodeError) as error:
            raise Ended(f"{what} cannot be read as text") from error
    return loss_from_expression(what)
