"""The commands ``dither attack ...``: see an attack succeed, then see it fail.

A module an attack: those that need more than a screen of code have a module of their own, and are
added to the group at the end of this file.
"""

from __future__ import annotations

import math
import sys
from collections.abc import Callable
from fractions import Fraction
from pathlib import Path
from typing import TYPE_CHECKING

import click

from dither._format import count_text, level, percent
from dither.cli._files import check_targets
from dither.cli._options import FILE, Amount, Group, plot, seed
from dither.cli._terminal import PATIENCE, leave_by, waiting
from dither.cli.attacks.linkage_commands import linkage
from dither.cli.attacks.people_commands import (
    differencing,
    gradients,
    membership,
    synthetic,
    tracing,
)
from dither.cli.example_commands import tour

if TYPE_CHECKING:
    from dither.lab.attack import BlackBox, Reconstruction, Statistics, Verdict

__all__ = ["attack"]


@click.group(
    cls=Group,
    short_help="See an attack succeed, then see it fail.",
    epilog="""\b
Examples:
  dither attack census                  a table from its statistics
  dither attack subset-sums             everybody's bit from counts
  dither attack linkage                 names from quasi-identifiers
  dither attack tour                    all of it on one survey, as a page
""",
)
def attack() -> None:
    """Attack releases: exact ones, which give people away, and private ones, which do not."""


@attack.command(
    short_help="Rebuild a table from its statistics.",
    epilog="""\b
Examples:
  dither attack census                 a fictional block, as it was printed
  dither attack census --note --rows   what each published row is worth
  dither attack census --private 1     the same table, released privately
  dither attack census town.toml --plot town.png
""",
)
@click.argument("table", type=FILE, required=False)
@click.option("--note", is_flag=True, help="Add the note that married persons are 15 or over.")
@click.option("--rows", is_flag=True, help="Also leave out each row in turn.")
@click.option("--private", "epsilons", type=Amount(), multiple=True, metavar="EPSILON",
              help="Also release it privately at this epsilon; may be repeated.")  # fmt: skip
@click.option("--limit", type=click.IntRange(1), default=10_000, show_default=True,
              help="Stop after so many databases.")  # fmt: skip
@click.option("--seconds", type=float, default=60.0, show_default=True, help="Stop after so long.")
@plot("the databases")
def census(
    table: Path | None,
    note: bool,
    rows: bool,
    epsilons: tuple[Fraction, ...],
    limit: int,
    seconds: float,
    picture: Path | None,
) -> None:
    """Find all databases that agree with published statistics.

    TABLE is a TOML document of attributes, rules and statistics; without one it is the fictional
    census block that ships with dither. Ctrl-C stops a search and keeps what was found.
    """
    from dither.lab.attack import census as shipped
    from dither.lab.attack import read_statistics, reconstruct_table

    check_targets(picture=picture)
    if note and table is not None:
        raise click.UsageError("--note belongs to the shipped table; write [[rules]] into TABLE")
    statistics = shipped(note=note) if table is None else read_statistics(table)
    found = reconstruct_table(statistics, limit=limit, seconds=seconds, progress=_progress())
    _show_found(found)
    if picture is not None and found.solutions:
        found.plot(picture)
        click.echo(f"picture: {picture}")
    if rows:
        _show_rows(statistics, limit=min(limit, 1000))
    if epsilons:
        if not found.solutions:
            raise click.UsageError("--private needs a table that can be: no database agrees")
        _show_private(found, epsilons)


def _progress() -> Callable[[int, float], None] | None:
    if not sys.stderr.isatty():
        return None

    def show(found: int, seconds: float) -> None:
        if seconds > PATIENCE:
            click.echo(f"\r{found:,} databases, {seconds:.0f} s; Ctrl-C stops", nl=False, err=True)

    return show


def _show_found(found: Reconstruction) -> None:
    """The summary, the people of up to three solutions, and what would settle it."""
    from dither.cli._terminal import console, new_table, print_paragraphs

    click.echo(found.summary())
    certain = set(found.certain)
    for number, solution in enumerate(found.solutions[:3]):
        shown = new_table()
        shown.title = f"solution {number + 1}" if found.count > 1 else None
        shown.title_justify, shown.title_style = "left", "bold"
        for a in found.statistics.attributes:
            shown.add_column(a.name, justify="left" if a.labels else "right")
        shown.add_column("")
        for person in solution:
            differs = found.count > 1 and found.complete and person not in certain
            shown.add_row(*found.statistics.show(person).values(), "differs" if differs else "")
        console().print()
        console().print(shown)
    if found.count > 3:
        print_paragraphs("", f"... and {found.count - 3:,} more.")
    settling = [name for name, left in found.settled_by().items() if left == 1]
    if found.complete and settling:
        more = f"; and {len(settling) - 4} more" if len(settling) > 4 else ""
        names = "; ".join(settling[:4]) + more
        print_paragraphs("", f"One more published count would leave one database, any of: {names}.")


def _show_rows(statistics: Statistics, limit: int) -> None:
    from dither.cli._terminal import console, new_table
    from dither.lab.attack import without_each

    shown = new_table()
    shown.add_column("without")
    shown.add_column("databases that agree", justify="right")
    shown.add_column("about", overflow="fold")
    about = {x.name: x.about for x in statistics.rows} | {x.name: x.about for x in statistics.rules}
    with waiting("leaving out each row in turn"):
        for name, left in without_each(statistics, limit=limit).items():
            many = f"{left.count:,}" if left.complete else f"at least {left.count:,}"
            shown.add_row(name, many, about[name])
    console().print()
    console().print(shown)


def _show_private(found: Reconstruction, epsilons: tuple[Fraction, ...]) -> None:
    """Release counts and sums of the first solution with discrete Laplace noise, and count."""
    from dither.cli._terminal import console, new_table, print_paragraphs
    from dither.lab.attack import blurred, reconstruct_table, remaining, true_answers
    from dither.noise import discrete_laplace

    statistics = found.statistics
    truth = true_answers(statistics, found.solutions[0])
    spread = {
        f"{r.name}.{a.name}": max(a.high, 0) - min(a.low, 0)
        for r in statistics.rows
        for a in statistics.attributes
    }
    # Half of epsilon for all counts, half for all sums. Replacing a person, with how many there are
    # public, changes each count by at most 1 and each sum by at most the spread of its values.
    counts = [k for k in truth if k not in spread]
    sums = [k for k in truth if k in spread]
    moved = dict.fromkeys(counts, len(counts)) | dict.fromkeys(sums, sum(spread[k] for k in sums))
    shown = new_table()
    for name in ("ε", "counts within", "sums within", "databases that remain", "of all"):
        shown.add_column(name, justify="right")
    for epsilon in epsilons:
        scales = {k: Fraction(2 * moved[k]) / epsilon for k in truth}
        released = {k: truth[k] + int(discrete_laplace(scales[k], 1)[0]) for k in truth}
        # All answers together are within their margins with probability 95 %.
        far = math.log(2 * len(truth) / 0.05)
        within = {k: max(0, math.ceil(far * float(s)) - 1) for k, s in scales.items()}
        with waiting("drawing databases"):
            blur = blurred(statistics, released, within)
            left = remaining(blur)
            near = f"{left.estimate:.2g}"
            if not left.hits:
                listed = reconstruct_table(blur, limit=1000, seconds=5.0, explain=False)
                near = f"{listed.count:,}" if listed.complete else f"at least {listed.count:,}"
        shown.add_row(
            f"{float(epsilon):g}",
            f"±{max((within[k] for k in counts), default=0):,}",
            f"±{max((within[k] for k in sums), default=0):,}",
            near.replace("e+", "e"),
            f"{100 * left.share:.3g} %" if left.hits else f"< {100 * left.high / left.space:.1g} %",
        )
    console().print()
    console().print(shown)
    print_paragraphs(
        "",
        "Counts and sums released with discrete Laplace noise; databases whose true answers are "
        "within the margins, which hold together 95 % of the time. Replacing one person changes "
        "the chance of any release by a factor of at most e^ε.",
    )


_NOISES = ("exact", "bounded", "gaussian", "laplace", "rounded", "corrupted", "midpoint")


@attack.command(
    "subset-sums",
    short_help="Guess everybody's bit from counts.",
    epilog="""\b
Examples:
  dither attack subset-sums                            side by side
  dither attack subset-sums --people 1000 --queries 4000 --noise gaussian:10
  dither attack subset-sums --people 12 --noise midpoint:1   all subsets
  dither attack subset-sums --epsilon 1 --epsilon 10         private releases
""",
)
@click.option("--people", type=click.IntRange(2), default=200, show_default=True,
              help="How many people there are.")  # fmt: skip
@click.option("--queries", type=click.IntRange(1),
              help="Random groups to ask about.  [default: 8 for each person; for midpoint, of at "
              "most 20 people, all groups]")  # fmt: skip
@click.option(
    "--noise",
    "noises",
    multiple=True,
    metavar="KIND[:SIZE]",
    help=f"What is added to each count: {', '.join(_NOISES)}; may be repeated.",
)
@click.option(
    "--epsilon",
    "epsilons",
    type=Amount(),
    multiple=True,
    help="Also release all counts privately at this epsilon; may be repeated.",
)
@click.option("--method", type=click.Choice(["l1", "least squares", "box"]),
              help="The decoder.  [default: the better one for the noise]")  # fmt: skip
@click.option("--runs", type=click.IntRange(1), default=5, show_default=True,
              help="How often the game is played.")  # fmt: skip
@seed("secrets and simulated noise, not of private releases")
@plot("the success")
def subset_sums(
    people: int,
    queries: int | None,
    noises: tuple[str, ...],
    epsilons: tuple[Fraction, ...],
    method: str | None,
    runs: int,
    seed: int,
    picture: Path | None,
) -> None:
    """Ask how many people of a group have a 1, for many groups, and guess everybody's bit."""
    from dither.examples.survey import private_sums
    from dither.lab.attack import plot_verdicts
    from dither.lab.attack import subset_sums as game

    check_targets(picture=picture)
    if not noises and not epsilons:
        noises = ("exact", "rounded:10", "gaussian:4", "gaussian:16", "corrupted:0.1")
        epsilons = (Fraction(1), Fraction(10))
    asked = 8 * people if queries is None else queries
    exhaustive = queries is None and people <= 20
    tried: list[tuple[int | None, BlackBox]] = [
        (None if exhaustive and text.startswith("midpoint") else asked, _noise(text))
        for text in noises
    ]
    tried += [(asked, private_sums(epsilon, asked)) for epsilon in epsilons]
    verdicts = []
    for size, release in tried:
        played = game(people, size, release, method=method if size is not None else None)
        with waiting(f"attacking: {release.name}"):
            verdicts.append(played.run(runs, seed=seed))
    _show_verdicts(verdicts)
    if picture is not None:
        plot_verdicts(verdicts, picture)
        click.echo(f"picture: {picture}")
    leave_by(verdicts)


def _noise(text: str) -> BlackBox:
    from dither.errors import nearest
    from dither.lab.attack.releases import (
        bounded,
        corrupted,
        exact,
        gaussian,
        laplace,
        midpoint,
        rounded,
    )

    kind, sign, size = text.partition(":")
    makers: dict[str, Callable[[float], BlackBox]] = {
        "bounded": bounded,
        "gaussian": gaussian,
        "laplace": laplace,
        "rounded": rounded,
        "corrupted": corrupted,
        "midpoint": midpoint,
    }
    if kind == "exact" and not sign:
        return exact()
    if kind not in makers:
        raise click.UsageError(f"--noise: unknown {kind!r}{nearest(kind, _NOISES)}")
    try:
        amount = float(size)
    except ValueError:
        raise click.UsageError(f"--noise {kind} needs a size, such as {kind}:0.2") from None
    return makers[kind](amount)


def _show_verdicts(verdicts: list[Verdict]) -> None:
    from dither.cli._terminal import print_paragraphs, print_verdicts
    from dither.lab.attack import Outcome

    print_verdicts(verdicts)
    first = verdicts[0]
    lines = [
        "",
        f"{_attacks(verdicts)}; {count_text(len(first.score.hits), 'run')} of "
        f"{first.score.targets[0]:,} people, each with a bit to guess; blindly "
        f"{percent(first.prior)}. Intervals are nominal, at {level(first.confidence)}.",
    ]
    controls = [v.control.share for v in verdicts if v.control is not None]
    nulls = [v.null.share for v in verdicts if v.null is not None]
    if controls and nulls:
        lines.append(
            f"Controls: at least {percent(min(controls))} of the bare truth, at most "
            f"{percent(max(nulls))} from a stranger's release."
        )
    lines.append(Outcome.CONSISTENT.sentence)
    print_paragraphs(*lines)


def _attacks(verdicts: list[Verdict]) -> str:
    """Which decoder was tried on what: the noise chooses it."""
    by: dict[str, list[str]] = {}
    for verdict in verdicts:
        by.setdefault(verdict.attack, []).append(verdict.release)
    if len(by) == 1:
        return next(iter(by)).capitalize()
    parts = [f"{name} against {', '.join(releases)}" for name, releases in by.items()]
    sentence_of = "; ".join(parts)
    return sentence_of[:1].upper() + sentence_of[1:]


for command in (linkage, differencing, membership, tracing, synthetic, gradients, tour):
    attack.add_command(command)
