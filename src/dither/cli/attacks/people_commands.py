"""The commands ``dither attack differencing``, ``membership``, ``tracing``, ``synthetic`` and
``gradients``.

Each attacks what it is given, or shows itself on public data where it is given nothing.
"""

from __future__ import annotations

import math
from fractions import Fraction
from pathlib import Path
from typing import TYPE_CHECKING

import click

from dither._format import loss_text, percent
from dither.cli._files import check_targets, read_table
from dither.cli._options import Amount, LocalPath, confidence_of, plot, refuse_given, seed
from dither.cli._terminal import leave_by, waiting

if TYPE_CHECKING:
    pass

__all__ = ["differencing", "gradients", "membership", "synthetic", "tracing"]

TABLE = LocalPath(dir_okay=False, exists=True, allow_dash=True, path_type=Path)
MODELS = ("forest", "tree", "regression")


@click.command(
    short_help="Learn one answer from two counts.",
    epilog="""\b
Examples:
  dither attack differencing          a real survey, exact and private
  dither attack differencing --epsilon 0.1 --repeats 10
  dither attack differencing --policy dither.toml --target "id = 7" \\
      --secret "ill = 1" --epsilon 1
""",
)
@click.option(
    "--epsilon",
    "epsilons",
    type=Amount(),
    multiple=True,
    help="Epsilon of each count; may be repeated.  [default: 0.1, 0.5, 1, 3]",
)
@click.option("--targets", "many", type=click.IntRange(4), default=60, show_default=True,
              help="How many women are attacked.")  # fmt: skip
@click.option("--repeats", type=click.IntRange(1), default=1, show_default=True,
              help="How often both counts are asked.")  # fmt: skip
@click.option("--policy", type=LocalPath(dir_okay=False, exists=True, path_type=Path),
              help="Attack this policy's table; its ledger is charged.")  # fmt: skip
@click.option("--table", help="The table to attack, where the policy has several.")
@click.option("--target", help="A condition that one person meets.")
@click.option("--secret", help="The condition to find out about that person.")
@seed("the choice of targets, not of the noise")
@plot("the success")
def differencing(
    epsilons: tuple[Fraction, ...],
    many: int,
    repeats: int,
    policy: Path | None,
    table: str | None,
    target: str | None,
    secret: str | None,
    seed: int,
    picture: Path | None,
) -> None:
    """Count the people who meet a condition, count them without one person, and subtract.

    Without --policy, it attacks a survey of 6,366 women: did some of them, each of whom is alone
    with her traits, have an affair?
    """
    check_targets(picture=picture)
    if policy is not None:
        refuse_given(("many", "seed", "picture"), "the survey, not with --policy")
        if target is None or secret is None or len(epsilons) != 1:
            raise click.UsageError("--policy needs --target, --secret and one --epsilon")
        _one(policy, table, target, secret, epsilons[0], repeats)
        return
    refuse_given(("target", "secret", "table"), "--policy")
    from dither.examples.survey_attacks import show_differencing

    chosen = epsilons or tuple(map(Fraction, ("0.1", "0.5", "1", "3")))
    leave_by(show_differencing(chosen, many, repeats, seed, picture))


@click.command(
    short_help="Tell who was in the data.",
    epilog="""\b
Examples:
  dither attack membership                   models and private sums
  dither attack membership --model forest --records 2000 --plot roc.png
  dither attack membership --mu 0.5 --mu 1   private sums alone
""",
)
@click.option("--model", "models", type=click.Choice(MODELS), multiple=True,
              help="A model trained on the survey; may be repeated.")  # fmt: skip
@click.option("--mu", "mus", type=click.FloatRange(0.01, 20), multiple=True,
              help="A sum released with Gaussian noise of this mu; may be repeated.")  # fmt: skip
@click.option("--method", type=click.Choice(["lira", "loss"]), default="lira", show_default=True,
              help="The attack.")  # fmt: skip
@click.option("--records", type=click.IntRange(50, 6366), default=1000, show_default=True,
              help="Records of the survey to train on.")  # fmt: skip
@click.option("--shadows", type=click.IntRange(4), default=32, show_default=True,
              help="How many models of each kind are trained.")  # fmt: skip
@confidence_of(0.999, "Confidence of the intervals, and that no honest release is accused.")
@seed("coins and models, not of the noise that protects")
@plot("the ROC curves")
def membership(
    models: tuple[str, ...],
    mus: tuple[float, ...],
    method: str,
    records: int,
    shadows: int,
    confidence: float,
    seed: int,
    picture: Path | None,
) -> None:
    """Tell who was in the data from a model's answers, or from a released sum.

    Models are trained on a survey of women to guess who had an affair; the sum is of their years
    of marriage, and the adversary knows every woman but one.

    Exit code 1 if a release reveals more than it promises; 3 if a release that promises something
    could not be judged.
    """
    from dither.examples.survey_attacks import show_membership

    check_targets(picture=picture)
    if not models and not mus:
        models, mus = MODELS, (0.5, 1.0, 2.0)
    leave_by(show_membership(models, mus, method, records, shadows, confidence, seed, picture))


@click.command(
    short_help="Tell who was in many published means.",
    epilog="""\b
Examples:
  dither attack tracing                          100 people, 2,000 columns
  dither attack tracing --columns 50 --epsilon 1
  dither attack tracing genes.parquet --digits 3
""",
)
@click.argument("data", type=TABLE, required=False)
@click.option("--people", type=click.IntRange(10, 100_000), default=100, show_default=True,
              help="Simulated people, of whom each is in by a coin.")  # fmt: skip
@click.option("--columns", type=click.IntRange(1, 1_000_000), default=2000, show_default=True,
              help="Of zeros and ones that are simulated.")  # fmt: skip
@click.option("--digits", type=click.IntRange(0, 12), default=2, show_default=True,
              help="To which means are rounded.")  # fmt: skip
@click.option(
    "--epsilon",
    "epsilons",
    type=Amount(),
    multiple=True,
    help="Epsilon of private means, at delta = 1e-6; may be repeated.  [default: 1]",
)
@click.option("--plays", type=click.IntRange(1, 10_000), default=20, show_default=True,
              help="How often means are published.")  # fmt: skip
@confidence_of(0.999, "Confidence of the intervals, and that no honest release is accused.")
@seed("coins and people, not of the noise that protects")
@plot("the ROC curves")
def tracing(
    data: Path | None,
    people: int,
    columns: int,
    digits: int,
    epsilons: tuple[Fraction, ...],
    plays: int,
    confidence: float,
    seed: int,
    picture: Path | None,
) -> None:
    """Tell who was in the data of which the mean of each column was published.

    DATA holds zeros and ones, a person a row; without it people are simulated. Means are published
    exactly, rounded, and with noise.

    Exit code 1 if a release reveals more than it promises; 3 if a release that promises something
    could not be judged.
    """
    check_targets(picture=picture)
    from dither.examples.traced_means import bits_of, show_tracing, simulated_bits

    if data is None:
        bits = simulated_bits(people, columns, seed)
    else:
        refuse_given(("people", "columns"), "simulated people, not with DATA")
        bits = bits_of(read_table(data))
    leave_by(
        show_tracing(bits, digits, epsilons or (Fraction(1),), plays, confidence, seed, picture)
    )


@click.command(
    short_help="Tell who synthetic rows were made of.",
    epilog="""\b
Examples:
  dither attack synthetic               a survey: copies, exact pairs, ours
  dither attack synthetic --epsilon 0.5 --epsilon 4 --plot roc.png
  dither attack synthetic made.csv real.csv held-out.csv
  dither attack synthetic made.csv real.csv held-out.csv --epsilon 1
""",
)
@click.argument("released", type=TABLE, required=False)
@click.argument("members", type=TABLE, required=False)
@click.argument("others", type=TABLE, required=False)
@click.option("--epsilon", "epsilons", type=Amount(), multiple=True,
              help="What RELEASED is said to lose; without files that of private rows, and may be "
              "repeated.  [default without files: 1]")  # fmt: skip
@click.option("--delta", type=Amount(), help="The delta of such a claim.  [default: 0]")
@click.option("--records", type=click.IntRange(50, 6366), default=300, show_default=True,
              help="Women of the survey.")  # fmt: skip
@click.option("--plays", type=click.IntRange(100), default=200, show_default=True,
              help="Synthetic tables that are scored; three times as many are made.")  # fmt: skip
@confidence_of(0.999, "Confidence of the intervals, and that no honest release is accused.")
@seed("coins, not of the noise that protects")
@plot("the ROC curves")
def synthetic(
    released: Path | None,
    members: Path | None,
    others: Path | None,
    epsilons: tuple[Fraction, ...],
    delta: Fraction | None,
    records: int,
    plays: int,
    confidence: float,
    seed: int,
    picture: Path | None,
) -> None:
    """Tell from synthetic rows who was in the table that they were made of.

    With files: RELEASED rows, rows that they were made of (MEMBERS) and rows that they were not
    made of (OTHERS); candidates are told apart by the closest released row. A claim, by --epsilon
    and --delta, is held against that; OTHERS must have been held out by lot. Without files, one
    woman of a survey by the strongest adversary, who knows the others and the generator.

    Exit code 1 if a release reveals more than it promises; 3 if a release that promises something
    could not be judged.
    """
    check_targets(picture=picture)
    if released is None:
        from dither.examples.survey_attacks import show_synthetic

        refuse_given(("delta",), "files")
        chosen = epsilons or (Fraction(1),)
        leave_by(show_synthetic(chosen, records, plays, confidence, seed, picture))
        return
    refuse_given(("records", "plays"), "the survey, not with files")
    if len(epsilons) > 1:
        raise click.UsageError("--epsilon: RELEASED has one claim; give it once")
    if delta is not None and not epsilons:
        raise click.UsageError("--delta goes with --epsilon")
    if members is None or others is None:
        raise click.UsageError(
            "give RELEASED, MEMBERS and OTHERS: rows that were not used are the control"
        )
    from dither.lab.attack import closest_record
    from dither.privacy import approximate

    loss = approximate(epsilons[0], delta or 0) if epsilons else None
    tables = [read_table(path) for path in (released, members, others)]
    with waiting("looking for the closest record"):
        found = closest_record(
            *tables, loss=loss, name=released.name, seed=seed, confidence=confidence
        )
    click.echo(found.summary())
    if picture is not None:
        found.plot(picture)
        click.echo(f"picture: {picture}")
    leave_by([found.verdict])


@click.command(
    short_help="Rebuild a client's record from its update.",
    epilog="""\b
Examples:
  dither attack gradients                 digits, without noise and with
  dither attack gradients --epsilon 1 --epsilon 1000 --plot digits.png
  dither attack gradients --batch 4       four images a client
""",
)
@click.option("--epsilon", "epsilons", type=Amount(), multiple=True,
              help="Epsilon of one update; may be repeated.  [default: 1, 8, 100]")  # fmt: skip
@click.option("--records", type=click.IntRange(10, 1797), default=40, show_default=True,
              help="Images, one a client.")  # fmt: skip
@click.option("--batch", type=click.IntRange(1, 64), default=1, show_default=True,
              help="Images that each client has.")  # fmt: skip
@click.option("--plays", type=click.IntRange(100), default=2000, show_default=True,
              help="Updates that are scored in each game.")  # fmt: skip
@click.option(
    "--confidence",
    type=click.FloatRange(0, 1, min_open=True, max_open=True),
    default=0.999,
    show_default=True,
    help="Confidence of the intervals, and that no honest update is accused.",
)
@click.option("--seed", type=click.IntRange(0), default=0, show_default=True,
              help="Seed of images, coins, the network and its noise.")  # fmt: skip
@plot("the images")
def gradients(
    epsilons: tuple[Fraction, ...],
    records: int,
    batch: int,
    plays: int,
    confidence: float,
    seed: int,
    picture: Path | None,
) -> None:
    """Rebuild images of digits, and read their labels, from what clients send in training.

    A client sends the gradient of a small network at its one image. Without noise the image is a
    quotient of two of its parts. Of several images each unit has a quotient of its own, and those
    that agree are images.

    Exit code 1 if an update reveals more than it promises; 3 if one that promises something could
    not be judged.
    """
    from dither.examples.gradient_attacks import show_gradients

    check_targets(picture=picture)
    if records < 2 * batch:
        raise click.BadParameter("each of two clients needs --batch images", param_hint="--records")
    chosen = epsilons or (Fraction(1), Fraction(8), Fraction(100))
    leave_by(show_gradients(chosen, records, plays, confidence, seed, picture, batch))


def _one(
    policy: Path, table: str | None, target: str, secret: str, epsilon: Fraction, repeats: int
) -> None:
    import dither as dt

    with dt.open(policy) as session, waiting("asking"):
        found = dt.attack.differencing(
            session, target, secret, table=table, epsilon=epsilon, repeats=repeats
        )
    assert found.loss is not None
    best = 1 - found.loss.bayes_risk(0.5).lower
    click.echo(
        f"difference {found.differences[0]:g}: the attacker says "
        f"{'yes' if found.guesses[0] else 'no'}.\n"
        f"At even odds nobody is right more often than {percent(best, 1, math.ceil)}, by what the "
        f"answers that the target is in lose.\nCharged: ε = {loss_text(found.spent, 6)}."
    )
