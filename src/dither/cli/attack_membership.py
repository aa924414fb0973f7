"""The command ``dither attack membership``: who was in the data of a model, or of a statistic."""

from __future__ import annotations

from fractions import Fraction
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from dither._format import level
from dither.cli._files import check_targets
from dither.cli._options import FILE
from dither.cli._terminal import leave_by, waiting
from dither.errors import DitherError

if TYPE_CHECKING:
    import polars as pl

    from dither.lab.attack import Membership

__all__ = ["membership", "noisy_years", "total_years"]

MODELS = ("forest", "tree", "regression")
LONGEST = 46
"""Years of marriage are half-years up to 46: what one woman adds to the sum at most."""


@click.command(
    short_help="Tell who was in the data.",
    epilog="""\b
Examples:
  dither attack membership                        models and private sums, side by side
  dither attack membership --model forest --records 2000 --plot roc.png
  dither attack membership --mu 0.5 --mu 1        private sums alone
""",
)
@click.option("--model", "models", type=click.Choice(MODELS), multiple=True,
              help="Trained on the survey; may be repeated.")  # fmt: skip
@click.option("--mu", "mus", type=click.FloatRange(0.01, 20), multiple=True,
              help="A sum released with Gaussian noise; may be repeated.")  # fmt: skip
@click.option("--method", type=click.Choice(["lira", "loss"]), default="lira", show_default=True)
@click.option("--records", type=click.IntRange(50, 6366), default=1000, show_default=True,
              help="Of the survey, to train on.")  # fmt: skip
@click.option("--shadows", type=click.IntRange(4), default=32, show_default=True,
              help="Models of each kind.")  # fmt: skip
@click.option("--confidence", type=click.FloatRange(0, 1, min_open=True, max_open=True),
              default=0.999, show_default=True,
              help="Of intervals, and that an honest release is not accused.")  # fmt: skip
@click.option("--seed", type=click.IntRange(0), default=0, show_default=True,
              help="Of coins and models, not of noise.")  # fmt: skip
@click.option("--plot", "picture", type=FILE, help="Draw the ROC curves: .png, .svg, .pdf.")
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
    """Tell members from others, by a model's answers or a released sum.

    Models are trained on a survey of women to guess who had an affair; the sum is of their years
    of marriage, and the adversary knows every woman but one.

    Exit code 1 if a release loses more than it says, 3 if a release that promises something could
    not be judged.
    """
    from dither.cli._terminal import console, new_table, print_paragraphs
    from dither.examples.survey import women
    from dither.lab.attack import membership as attack

    check_targets(picture=picture)
    if not models and not mus:
        models, mus = MODELS, (0.5, 1.0, 2.0)
    rows = women()
    common: dict[str, Any] = {"seed": seed, "confidence": confidence}
    results: list[tuple[str, Membership]] = []
    some = rows.sample(records, seed=seed)
    data = (some.drop("affairs", "affair").to_numpy(), some["affair"].to_numpy())
    for name in models:
        with waiting(f"training {shadows} models: {name}"):
            found = attack(_model(name), data, method, models=shadows, name=name, **common)
        results.append((name, found))
    for mu in mus:
        release, loss, years = noisy_years(rows, mu)
        with waiting(f"releasing sums at μ = {mu:g}"):
            name = f"private sum, μ = {mu:g}"
            found = attack(
                release, years, method, loss=loss, undefended=total_years, name=name, **common
            )
        results.append((name, found))
    shown = new_table()
    shown.add_column("release")
    for name in ("area", "allowed", "found at 1 % accused", "allowed"):
        shown.add_column(name, justify="right")
    shown.add_column("verdict", overflow="fold")
    for name, found in results:
        area, caught, allowed = found.auc, found.tpr(), found.allowed
        shown.add_row(
            name,
            f"{area.value:.3f} [{area.low:.3f}, {area.high:.3f}]",
            "" if allowed is None else f"{allowed.area:.3f}",
            f"{100 * caught.value:.1f} % [{100 * caught.low:.1f}, {100 * caught.high:.1f}]",
            "" if allowed is None else f"{100 * float(allowed.tpr(0.01)):.1f} %",
            str(found.verdict.outcome),
        )
    console().print(shown)
    print_paragraphs(
        "",
        "Area under the ROC curve: how often a member is ranked above another (blindly 0.5). "
        "Found: the share of members accused while 1 % of others are. Intervals are nominal, at "
        f"{level(confidence)}. The adversary of a sum knows all others; that of a model has "
        "data like it. Guesses, area and curve are tested at once against what is allowed.",
    )
    if picture is not None:
        from dither.plots.alarms import draw_membership

        draw_membership([f for _, f in results], picture, labels=[n for n, _ in results])
        click.echo(f"picture: {picture}")
    leave_by([found.verdict for _, found in results])


def total_years(years: Any) -> int:
    """The sum without its noise."""
    return int(years.sum())


def noisy_years(rows: pl.DataFrame, mu: float) -> tuple[Any, Any, Any]:
    """A private sum of half-years of marriage, its loss, and the half-years."""
    import numpy as np

    from dither import privacy
    from dither.noise import discrete_gaussian

    years = np.clip(np.rint(2 * rows["yrs_married"].to_numpy()), 0, LONGEST).astype(np.int64)
    sigma = Fraction(LONGEST) / Fraction(mu)

    def release(data: Any, size: int) -> Any:
        return total_years(data) + discrete_gaussian(sigma**2, size)

    return release, privacy.discrete_gaussian(float(sigma), sensitivity=LONGEST), years[:, None]


def _model(name: str) -> Any:
    try:
        from sklearn.ensemble import RandomForestClassifier
        from sklearn.linear_model import LogisticRegression
        from sklearn.pipeline import make_pipeline
        from sklearn.preprocessing import StandardScaler
        from sklearn.tree import DecisionTreeClassifier
    except ImportError as error:
        raise DitherError(
            "models need scikit-learn, which is not installed: pip install 'dither[attack]'"
        ) from error
    if name == "forest":
        return RandomForestClassifier(20)
    if name == "tree":
        return DecisionTreeClassifier()
    return make_pipeline(StandardScaler(), LogisticRegression())
