"""The command ``dither attack differencing``: one person's answer from two counts."""

from __future__ import annotations

from fractions import Fraction
from pathlib import Path

import click

from dither._format import loss_text
from dither.cli._files import check_targets
from dither.cli._options import FILE, Amount
from dither.cli._terminal import leave_by, waiting

__all__ = ["differencing"]


@click.command(
    short_help="Learn one answer from two counts.",
    epilog="""\b
Examples:
  dither attack differencing                      a real survey, exact and private
  dither attack differencing --epsilon 0.1 --repeats 10
  dither attack differencing --policy dither.toml --target "id = 7" --secret "ill = 1" --epsilon 1
""",
)
@click.option("--epsilon", "epsilons", type=Amount(), multiple=True,
              help="Of each count; may be repeated.  [default: 0.1, 0.5, 1, 3]")  # fmt: skip
@click.option("--targets", "many", type=click.IntRange(4), default=60, show_default=True)
@click.option("--repeats", type=click.IntRange(1), default=1, show_default=True,
              help="How often both counts are asked.")  # fmt: skip
@click.option("--policy", type=click.Path(dir_okay=False, exists=True, path_type=Path),
              help="Attack this policy's table; its ledger is charged.")  # fmt: skip
@click.option("--table", help="Of the policy, where it has several.")
@click.option("--target", help="A condition that one person meets.")
@click.option("--secret", help="A condition to learn of that person.")
@click.option("--seed", type=click.IntRange(0), default=0, show_default=True,
              help="Of the choice of targets, not of the noise.")  # fmt: skip
@click.option("--plot", "picture", type=FILE, help="Draw the success: .png, .svg, .pdf.")
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
    """Ask how many people meet a condition, then how many besides one person; subtract.

    Without a policy it attacks a survey of 6,366 women: whether some of them, whom nobody shares
    all traits with, had an affair.
    """
    check_targets(picture=picture)
    if policy is not None:
        if target is None or secret is None or len(epsilons) != 1 or picture is not None:
            raise click.UsageError("--policy needs --target, --secret and one --epsilon, no --plot")
        _one(policy, table, target, secret, epsilons[0], repeats)
        return
    if target is not None or secret is not None or table is not None:
        raise click.UsageError("--target, --secret and --table go with --policy")
    _survey(
        epsilons or tuple(map(Fraction, ("0.1", "0.5", "1", "3"))), many, repeats, seed, picture
    )


def _one(
    policy: Path, table: str | None, target: str, secret: str, epsilon: Fraction, repeats: int
) -> None:
    import dither as dt

    with dt.open(policy) as session, waiting("asking"):
        found = dt.attack.differencing(
            session, target, secret, table=table, epsilon=epsilon, repeats=repeats
        )
    assert found.loss is not None
    best = 100 * (1 - float(found.loss.bayes_risk(0.5).lower))
    click.echo(
        f"difference {found.differences[0]:g}: the attacker says "
        f"{'yes' if found.guesses[0] else 'no'}.\n"
        f"At even odds nobody is right more often than {best:.1f} %, by what the answers that the "
        f"target is in lose.\nCharged: ε = {loss_text(found.spent, 6)}."
    )


def _survey(
    epsilons: tuple[Fraction, ...], many: int, repeats: int, seed: int, picture: Path | None
) -> None:
    from dither.cli._terminal import console, new_table, print_paragraphs
    from dither.examples.survey import SECRET, asked, exact_counts, targets, women
    from dither.lab.attack import differencing as attack

    with waiting("asking for exact counts"):
        rows = women()
        chosen, truth = targets(rows, many, seed)
        results = [
            attack(exact_counts(rows, least=50), chosen, SECRET, truth=truth, name="exact counts")
        ]
    with asked(rows, sum(epsilons, Fraction(0)) * 2 * len(chosen) * repeats + 1) as session:
        for epsilon in epsilons:
            with waiting(f"asking at ε = {loss_text(epsilon, 6)}"):
                results.append(
                    attack(session, chosen, SECRET, epsilon=epsilon, repeats=repeats, truth=truth)
                )
    verdicts = [one.verdict for one in results if one.verdict is not None]
    shown = new_table()
    shown.add_column("release", overflow="fold")
    for name in ("guessed right", "interval", "theory", "allowed"):
        shown.add_column(name, justify="right")
    shown.add_column("verdict", overflow="fold")
    for v in verdicts:
        shown.add_row(
            v.release,
            f"{100 * v.success:.1f} %",
            f"{100 * v.low:.1f} to {100 * v.high:.1f} %",
            "" if v.predicted is None else f"{100 * v.predicted:.1f} %",
            f"{100 * v.bound:.1f} %" if v.bounded else "all",
            str(v.outcome),
        )
    console().print(shown)
    print_paragraphs(
        "",
        f"{len(truth)} women whom nobody shares all traits with, half of whom had an affair; "
        "blindly 50 %. Exact counts below 50 were refused; it did not help. Each target is in "
        "one of the two counts only, so that one's ε bounds what is allowed. Theory: the rule of "
        "subtracting, from the law of the noise.",
    )
    if picture is not None:
        from dither.lab.attack import plot_verdicts

        plot_verdicts(verdicts[1:], picture)
        click.echo(f"picture: {picture}")
    leave_by(verdicts)
