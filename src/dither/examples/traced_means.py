"""Who is in many published means: the tracing attack, on simulated people or a table of bits."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from fractions import Fraction
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click
import numpy as np
import numpy.typing as npt

from dither._format import at_least, at_most, level, loss_text, percent
from dither.accounting import rho_of_epsilon
from dither.cli._terminal import console, new_table, print_paragraphs, waiting
from dither.errors import ArgumentError
from dither.lab import attack as lab
from dither.lab._simulation import SimulatedWorld
from dither.mechanisms import DiscreteGaussian
from dither.privacy import approximate

if TYPE_CHECKING:
    import polars as pl

__all__ = ["bits_of", "private_means", "show_tracing", "simulated_bits"]

Bits = npt.NDArray[np.int64]
Means = Callable[[Any], Any]

DELTA = Fraction(1, 10**6)


def simulated_bits(people: int, columns: int, seed: int) -> Bits:
    """Zeros and ones, each column with a share of its own, as variants of genes have."""
    generator = SimulatedWorld.of(seed)
    return (generator.random((people, columns)) < generator.uniform(0.1, 0.9, columns)).astype(int)


def bits_of(table: pl.DataFrame) -> Bits:
    """A table of zeros and ones, or of truth values.

    Raises
    ------
    ArgumentError
        Where it holds anything else.
    """
    import polars as pl

    try:
        found = table.cast(pl.Int64, strict=True).to_numpy()
    except pl.exceptions.PolarsError:
        found = np.array([2])
    if not np.isin(found, (0, 1)).all():
        raise ArgumentError("DATA must hold zeros and ones alone, a person a row")
    return np.asarray(found, dtype=np.int64)


def private_means(columns: int, epsilon: Fraction) -> Means:
    """Sums of bits and the number of people with Gaussian noise, divided: one charge for all.

    A person moves the sums and the number by 1 each, so all together by √(columns + 1).
    """
    noise = DiscreteGaussian.for_loss(rho_of_epsilon(epsilon, DELTA), l2_squared=columns + 1)

    def means(rows: Any) -> Any:
        drawn = np.asarray(noise.draw(columns + 1), dtype=np.float64)
        return (rows.sum(axis=0) + drawn[1:]) / max(len(rows) + drawn[0], 1.0)

    return means


def show_tracing(
    bits: Bits,
    digits: int,
    epsilons: Sequence[Fraction],
    plays: int,
    confidence: float,
    seed: int,
    picture: Path | None,
) -> list[lab.Verdict]:
    """Members told from others by means: exact, rounded, and private."""
    releases: list[tuple[str, Means, Any]] = [
        ("exact means", lambda rows: rows.mean(axis=0), None),
        (f"rounded to {digits} digits", lambda rows: rows.mean(axis=0).round(digits), None),
    ]
    for epsilon in epsilons:
        name = f"private means, ε = {loss_text(epsilon)}"
        means = private_means(bits.shape[1], epsilon)
        releases.append((name, means, approximate(epsilon, DELTA)))
    shown = new_table()
    shown.add_column("release")
    for name in ("area", "found at 1 % accused", "guessed right"):
        shown.add_column(name, justify="right")
    shown.add_column("verdict", overflow="fold")
    found = []
    for name, means, loss in releases:
        with waiting(f"tracing {name}"):
            one = lab.tracing(
                means, bits, loss=loss, plays=plays, name=name, seed=seed, confidence=confidence
            )
        found.append((name, one))
        area, caught = one.auc, one.tpr()
        shown.add_row(
            name,
            f"{area.value:.3f} [{at_least(area.low)}, {at_most(area.high)}]",
            f"{percent(caught.value)} [{percent(caught.low)}, {percent(caught.high)}]",
            percent(one.verdict.success),
            str(one.verdict.outcome),
        )
    console().print(shown)
    people, columns = bits.shape
    print_paragraphs(
        "",
        f"{people:,} people, about half of whom are in each time, and the means of {columns:,} "
        f"columns. Area: how often a member scores above another (blindly 0.5). Intervals are "
        f"nominal, at {level(confidence)}. Private means spend their ε once, for all columns "
        "together.",
    )
    if picture is not None:
        from dither.plots.lab._alarms import draw_membership

        draw_membership([f for _, f in found], picture, labels=[n for n, _ in found])
        click.echo(f"picture: {picture}")
    return [one.verdict for _, one in found]
