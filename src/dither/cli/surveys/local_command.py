"""The command ``dither local``: choose a channel, run a survey, redo the experiments of SDLDP."""

from __future__ import annotations

import json
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from dither._extras import check_library
from dither._format import count_text
from dither.cli._endings import INTERRUPTED
from dither.cli._files import check_targets
from dither.cli._options import Group, LocalPath
from dither.cli._terminal import waiting
from dither.cli.surveys.report_commands import COMMANDS, FILE, OUT

if TYPE_CHECKING:
    from dither.examples.paper import PaperClaim, PaperDiagram, PaperFigure

__all__ = ["local"]

KEPT = "surveys.jsonl"
"""Simulated surveys of means, a line each."""


@click.group(
    cls=Group,
    short_help="Local privacy: noise on the device.",
    epilog="""\b
Examples:
  dither local best 100 --epsilon 1 --people 10000 --out channel.json
  dither local privatize channel.json values.txt --out my.reports
  dither local aggregate channel.json *.reports --out counts.json
  dither local estimate counts.json
""",
)
def local() -> None:
    """Local privacy: noise on the device, counts on the server."""


@local.command(
    short_help="Choose the channel for the shares of a list of values.",
    epilog="""\b
Examples:
  dither local best 100 --epsilon 1 --people 10000
  dither local best 100 --epsilon 1 --people 10000 --out channel.json
""",
)
@click.argument("size", type=int)
@click.option("--epsilon", required=True, help="Epsilon of one report.", metavar="NUMBER")
@click.option(
    "--people", type=click.IntRange(1), required=True, help="How many people will report."
)
@click.option(
    "--bytes", "most", type=click.IntRange(1), help="The largest report allowed, in bytes."
)
@click.option("--seconds", type=float, help="The longest that counting may take on one core.")
@click.option(
    "--error",
    type=click.Choice(["mean", "worst"]),
    default="mean",
    show_default=True,
    help="Which standard error of a share is to be small.",
)
@click.option("--out", type=OUT, help="Write the channel as JSON.")
def best(
    size: int,
    epsilon: str,
    people: int,
    most: int | None,
    seconds: float | None,
    error: str,
    out: Path | None,
) -> None:
    """Choose the channel for the shares of SIZE values, and compare it with the others.

    Nothing is asked of anybody: errors are computed from each channel's law. The mean error is of
    even shares; the worst is of any value, whatever the shares.
    """
    from dither.cli._terminal import print_paragraphs
    from dither.local import best as choose

    check_targets(file=out)
    choice = choose(size, epsilon, people, bytes=most, seconds=seconds, error=error)
    reason, *table = str(choice).splitlines()
    print_paragraphs(f"{reason}.")
    click.echo("\n".join(table))
    if out is not None:
        out.write_text(json.dumps(choice.channel.to_dict()) + "\n", encoding="utf-8")
        click.echo(f"channel: {out}")


for command in COMMANDS:
    local.add_command(command)


@local.command(
    short_help="Redo the experiments of SDLDP.",
    epilog="""\b
Examples:
  dither local reproduce                           figures 1 to 6 and 9
  dither local reproduce --data height_weight.csv  figures 7 and 8 as well
""",
)
@click.option("--data", type=FILE, help="Heights and weights of the SOCR survey, as CSV.")
@click.option(
    "--out",
    type=LocalPath(file_okay=False, path_type=Path),
    default=Path("sdldp"),
    show_default=True,
    help="The folder for the pictures and claims.json.",
)
@click.option(
    "--runs",
    type=click.IntRange(1, 1000),
    default=10,
    show_default=True,
    help="Simulated surveys for each point.",
)
@click.option(
    "--seed",
    type=click.IntRange(0),
    default=1,
    show_default=True,
    help="The same seed draws the same surveys.",
)
def reproduce(data: Path | None, out: Path, runs: int, seed: int) -> None:
    """Redo the experiments of SDLDP (Chen, Ye, Zhang and Shu, 2025).

    Draws figures 1 to 9 beside the corrected theory and the baselines that the paper lacks, and
    says of each of its claims whether it holds. What rests on simulated surveys is judged by
    intervals over them, and is undecided where there are too few; one survey decides nothing.

    Figures 7 and 8 need --data; ten runs take about five minutes. Each survey is kept in the
    folder as it is drawn: a command that was stopped goes on from there, and so does one with more
    runs.
    """
    from dither.examples import paper
    from dither.numeric import SimulatedWords

    # Before surveys are drawn, which takes minutes.
    check_library("matplotlib", "plots", "pictures need")
    if data is not None:
        check_library("scipy", "inference", "what the paper claims needs")
    rng = SimulatedWords(seed).generator()
    survey = paper.read_survey(data) if data is not None else None
    out.mkdir(parents=True, exist_ok=True)
    with waiting("shares of values: GRR, URR, SDGRR"):
        diagrams = [paper.framework_figure(), paper.densities_figure()]
        figures = [paper.variance_figure(), *paper.frequency_figures(runs, rng)]
        figures.append(paper.adversary_figure(runs, rng))
    _draw([*diagrams, *figures], out)
    if survey is not None:
        figures += _means(survey, out, runs, seed)
        _draw(figures[-2:], out)
    found = paper.claims(figures)
    (out / "claims.json").write_text(json.dumps([_plain(c) for c in found], indent=2) + "\n")
    _show(found)
    click.echo(f"\n{len(diagrams) + len(figures)} figures and claims.json are in {out}")
    if survey is None:
        click.echo("Figures 7 and 8 need the heights and weights: --data FILE")


def _means(survey: dict[str, Any], out: Path, runs: int, seed: int) -> list[PaperFigure]:
    """Figures 7 and 8; each survey is kept, so that stopping loses none."""
    from dither.examples import paper
    from dither.numeric import SimulatedWords

    kept = paper.KeptSurveys(out / KEPT)
    there = len(kept)
    try:
        with waiting("means: PM, SDPM, on two columns, centred and not") as told:
            return paper.mean_figures(
                survey, runs, SimulatedWords(seed).generator(), kept=kept, told=told
            )
    except KeyboardInterrupt:
        click.echo(
            f"stopped: {count_text(len(kept), 'survey')}, {len(kept) - there:,} of them new, are "
            f"kept in {out / KEPT}; the same command goes on from there",
            err=True,
        )
        sys.exit(INTERRUPTED)


def _draw(figures: Sequence[PaperFigure | PaperDiagram], out: Path) -> None:
    for figure in figures:
        figure.plot(out / f"figure_{figure.number}.png")


def _plain(claim: PaperClaim) -> dict[str, Any]:
    return {
        "where": claim.where,
        "claim": claim.text,
        "verdict": claim.verdict,
        "evidence": claim.evidence,
    }


def _show(found: list[PaperClaim]) -> None:
    from rich.console import Console
    from rich.table import Table

    colours = {"holds": "green", "true as printed": "green", "does not hold": "red"}
    table = Table(box=None, pad_edge=False, padding=(0, 2, 0, 0))
    for name, width in (("in the paper", 16), ("claim", 34), ("verdict", 14), ("seen", 0)):
        table.add_column(name, header_style="dim", max_width=width or None, overflow="fold")
    for claim in found:
        verdict = f"[{colours.get(claim.verdict, 'yellow')}]{claim.verdict}[/]"
        table.add_row(claim.where, claim.text, verdict, claim.evidence)
        table.add_row()
    console = Console(highlight=False)
    if console.width < 100 and not console.is_terminal:
        console = Console(highlight=False, width=110)
    console.print(table)
