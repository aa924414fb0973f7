"""The command ``dither preview``: error bars before spending, or the budget that reaches them."""

from __future__ import annotations

import json
import math
from fractions import Fraction
from pathlib import Path
from typing import TYPE_CHECKING

import click

from dither._format import level, loss_text
from dither.cli.files import check_targets
from dither.cli.options import FILE, Amount, Sizes, ask, asking, confidence, delta, epsilon
from dither.cli.waiting import waiting

if TYPE_CHECKING:
    from dither import Preview

__all__ = ["preview"]


@click.command(
    short_help="Error bars before spending, or the budget that reaches them.",
    epilog="""\b
Examples:
  dither preview "SELECT AVG(cost) AS cost FROM visits" --epsilon 0.5
  dither preview "SELECT COUNT(*) AS n FROM visits" --epsilon 0.5 --sizes 50,500,5000
  dither preview "SELECT AVG(cost) AS cost FROM visits" --half-width 5 --size 1000
  dither preview "SELECT COUNT(*) AS n, AVG(cost) AS cost FROM visits" \\
      --half-width n=20 --half-width cost=5 --size 1000
""",
)
@asking
@epsilon(required=False)
@delta
@confidence
@click.option(
    "--sizes",
    type=Sizes(),
    default=(100, 1_000, 10_000),
    show_default="100,1000,10000",
    help="Public group sizes, in rows.",
)
@click.option(
    "--half-width",
    "half_widths",
    multiple=True,
    metavar="[NAME=]W",
    help="The other way round: the smallest epsilon that reaches ±W, for all outputs or for one.",
)
@click.option("--size", type=click.IntRange(1), help="Group size for --half-width  [default: 1000]")
@click.option("--plot", type=FILE, help="Draw half-width against size: PNG, SVG or PDF.")
@click.option("--json", "as_json", is_flag=True, help="For programs.")
def preview(
    question: str,
    policy: Path,
    analyst: str | None,
    epsilon: Fraction | None,
    delta: Fraction | None,
    confidence: float,
    sizes: tuple[int, ...],
    half_widths: tuple[str, ...],
    size: int | None,
    plot: Path | None,
    as_json: bool,
) -> None:
    """Say how wide the intervals of QUESTION will be, before anything is spent.

    Public facts only: no private value is read. Give --epsilon to see the half-widths, or
    --half-width to see the epsilon that it takes.
    """
    import dither as dt

    if (epsilon is None) == (not half_widths):
        raise click.UsageError("give --epsilon, or --half-width to find the epsilon")
    if size is not None and not half_widths:
        raise click.UsageError("--size goes with --half-width; with --epsilon, give --sizes")
    if plot is not None and half_widths:
        raise click.UsageError("--plot goes with --epsilon")
    check_targets(picture=plot)
    wanted = _wanted(half_widths)
    with waiting("reading the schema"), dt.open(policy, analyst=analyst) as session:
        asked = ask(session, question)
        if epsilon is None:
            rows = size or 1_000
            best = asked.budget_for(wanted, size=rows, delta=delta, confidence=confidence)
            _print_budget(best, wanted, rows, confidence, as_json)
            return
        found = asked.preview(epsilon, delta, sizes=sizes, confidence=confidence)
        if plot is not None:
            found.plot(str(plot))
    if as_json:
        click.echo(json.dumps(_as_json(found), indent=2))
        return
    from dither.cli.showing import print_preview

    print_preview(found)
    if plot is not None:
        click.echo(f"drawn to {plot}", err=True)


def _wanted(texts: tuple[str, ...]) -> Fraction | dict[str, Fraction]:
    """``5`` for all outputs, or ``cost=5`` for one of them."""
    named: dict[str, Fraction] = {}
    for text in texts:
        name, is_named, amount = text.rpartition("=")
        width = Amount().convert(amount.strip(), _HALF_WIDTH, None)
        if not is_named:
            if len(texts) > 1:
                raise click.UsageError("give one --half-width for all outputs, or NAME=W for each")
            return width
        named[name.strip()] = width
    return named


_HALF_WIDTH = click.Option(["--half-width"])


def _print_budget(
    best: Fraction,
    wanted: Fraction | dict[str, Fraction],
    size: int,
    confidence: float,
    as_json: bool,
) -> None:
    if as_json:
        click.echo(json.dumps({"epsilon": str(float(best)), "size": size}))
        return
    if isinstance(wanted, Fraction):
        each = f"every output within ±{float(wanted):g}"
    else:
        each = " and ".join(f"{name} within ±{float(w):g}" for name, w in wanted.items())
    click.echo(
        f"epsilon = {loss_text(best, 6)} brings {each}\n"
        f"at {level(confidence)} confidence, in groups of {size:,} rows; "
        "intervals cover noise only"
    )


def _as_json(found: Preview) -> dict[str, object]:
    def plain(width: float) -> float | None:
        return width if math.isfinite(width) else None

    return {
        "epsilon": str(found.epsilon),
        "delta": str(found.delta),
        "confidence": found.confidence,
        "sizes": list(found.sizes),
        "half_widths": {name: [*map(plain, widths)] for name, widths in found.widths.items()},
        "missed": None if found.missed is None else list(found.missed),
    }
