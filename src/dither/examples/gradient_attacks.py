"""Attacks on what clients of federated learning send, as the command shows them."""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction
from pathlib import Path
from typing import Any

import click
import numpy as np
import numpy.typing as npt

from dither._extras import extra_library
from dither._format import at_least, level, loss_text, percent
from dither.accounting import calibrate
from dither.cli._terminal import console, new_table, print_paragraphs, waiting
from dither.lab import attack as lab
from dither.lab._simulation import SimulatedWorld
from dither.privacy import gaussian

__all__ = ["digits", "noisy_client", "show_gradients"]

DELTA = Fraction(1, 10**5)


def digits(count: int, seed: int = 0) -> tuple[npt.NDArray[np.float64], npt.NDArray[np.int64]]:
    """Images of handwritten digits, 8 by 8, in [0, 1], and which digits they are.

    Raises
    ------
    MissingLibraryError
        scikit-learn, which has them, is not installed.
    """
    datasets = extra_library("sklearn.datasets", "attack", "the digits need")
    images, labels = datasets.load_digits(return_X_y=True)
    chosen = SimulatedWorld.of(seed).permutation(len(labels))[:count]
    return images[chosen] / 16.0, labels[chosen].astype(np.int64)


def noisy_client(epsilon: Fraction, seed: int = 0, hidden: int = 32) -> lab.SimulatedClient:
    """A client whose every update is (epsilon, 1e-5)-DP for replacing one of its records."""
    z = calibrate(
        lambda sigma: gaussian(sigma, neighbours="replace"),
        epsilon=float(epsilon),
        delta=float(DELTA),
    )
    return lab.SimulatedClient.of(64, 10, hidden, clip=1.0, noise_multiplier=float(z), seed=seed)


def show_gradients(
    epsilons: Sequence[Fraction],
    records: int,
    plays: int,
    confidence: float,
    seed: int,
    picture: Path | None,
    batch: int = 1,
) -> list[lab.Verdict]:
    """Digits and labels from one update each, without noise and at every epsilon."""
    records -= records % batch
    images, labels = digits(records, seed)
    # Of several records only units tell that one of them alone makes active: it takes more units.
    hidden = 32 if batch == 1 else 64 * batch
    common: dict[str, Any] = {"plays": plays, "confidence": confidence, "seed": seed}
    delta = float(DELTA)
    shown = new_table()
    shown.add_column("update")
    for name in ("rebuilt", "correlation", "labels read", "certified ε", "claimed ε"):
        shown.add_column(name, justify="right")
    shown.add_column("verdict", overflow="fold")
    drawn: list[lab.Inversion] = []
    read: list[lab.LabelLeak] = []
    for epsilon in epsilons:
        client = noisy_client(epsilon, seed, hidden)
        common["loss"] = client.loss
        name = f"ε = {loss_text(epsilon)}"
        with waiting(f"attacking updates at {name}"):
            seen = lab.gradient_inversion(
                client.first, images, labels, undefended=client.bare.first, name=name,
                batch=batch, **common,
            )  # fmt: skip
            told = lab.label_leak(
                client.last, images, labels, undefended=client.bare.last, name=name, **common
            )
        if not drawn and seen.bare_likeness is not None and told.bare is not None:
            shown.add_row(
                "no noise", f"{int((seen.bare_likeness >= 0.9).sum())} of {records}",
                f"{seen.bare_likeness.mean():.2f}", percent(float((told.bare == labels).mean())),
                "", "", "",
            )  # fmt: skip
        drawn.append(seen)
        read.append(told)
        certified = max(seen.certified(delta), told.certified(delta))
        outcomes = [seen.verdict.outcome, told.verdict.outcome]
        worst = next((o for o in outcomes if o is not lab.Outcome.CONSISTENT), outcomes[0])
        shown.add_row(
            name, f"{seen.found} of {records}", f"{seen.likeness.mean():.2f}",
            percent(told.right), at_least(certified, 2), loss_text(epsilon), str(worst),
        )  # fmt: skip
    console().print(shown)
    has, how = "one image of a digit and its label", "the image by division"
    if batch > 1:
        has, how = f"{batch} images of digits and their labels", "images where divisions agree,"
    print_paragraphs(
        "",
        f"Each of {records // batch} clients has {has}, and sends one gradient of a network of "
        f"{hidden} hidden units. Rebuilt: {how} of the first layer's gradients, with a correlation "
        "of at least 0.9; labels from the last layer's, of clients with one image, blindly "
        f"{percent(read[0].blind)}. Certified: the ε that {plays:,} plays of telling two images "
        f"apart, or as many of two labels, prove to be lost at δ = {loss_text(DELTA)}, each at "
        f"{level(confidence)}. Claimed: of one update, for replacing the client's record.",
    )
    if picture is not None:
        from dither.plots.lab._gradients import draw_inversions

        draw_inversions(drawn, picture, delta=delta)
        click.echo(f"picture: {picture}")
    return [*(one.verdict for one in drawn), *(one.verdict for one in read)]
