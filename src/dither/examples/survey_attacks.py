"""Attacks on the survey, as the commands show them: each prints a table and gives its verdicts."""

from __future__ import annotations

import math
from collections.abc import Sequence
from fractions import Fraction
from pathlib import Path
from typing import Any

import click

from dither._extras import check_library
from dither._format import at_least, at_most, level, loss_text, percent
from dither.accounting import rho_of_epsilon
from dither.cli._terminal import console, new_table, print_paragraphs, print_verdicts, waiting
from dither.examples.survey import (
    COVERS,
    KNOWN,
    QUASI,
    SECRET,
    TRAITS,
    anonymous,
    asked,
    boxes,
    exact_counts,
    noisy_years,
    private_rows,
    targets,
    total_years,
    women,
)
from dither.lab import attack as lab

__all__ = ["show_differencing", "show_linkage", "show_membership", "show_synthetic"]


def show_linkage(seed: int, picture: Path | None) -> None:
    """How many are found, and what they give away, before and after 10-anonymity."""
    with waiting("attacking the survey"):
        rows = women()
        alone = lab.uniqueness(rows, TRAITS)
        releases = {
            "as answered": rows.drop("affairs"),
            "10-anonymous, columns": anonymous(rows),
            "10-anonymous, boxes": boxes(rows),
        }
        found = {
            name: (
                lab.linkage(
                    table,
                    rows,
                    QUASI,
                    covers=COVERS if "columns" in name else None,
                    truth="position" if name == "as answered" else None,
                    seed=seed,
                ),
                lab.homogeneity(table, QUASI, "affair", seed=seed),
                lab.skewness(table, QUASI, "affair", value="yes", seed=seed),
                lab.background(table, QUASI, "affair", companions=[12], seed=seed).known[0],
            )
            for name, table in releases.items()
        }
    click.echo(alone.summary())
    shown = new_table()
    shown.add_column("release")
    for name in ("alone", "linked", "given away", "doubled", "told apart", "certain, 12 known"):
        shown.add_column(name, justify="right")
    for name, (linked, pure, skew, known) in found.items():
        assert linked.verdict is not None
        shown.add_row(
            name,
            f"{linked.alone:,}",
            percent(linked.verdict.success),
            f"{pure.given_away:,}",
            f"{skew.raised(2):,}",
            percent(skew.auc),
            percent(known.certain),
        )
    console().print()
    console().print(shown)
    print_paragraphs(
        "",
        f"A neighbour knows {', '.join(QUASI)}. Alone: women whom one row fits. Linked: rows "
        "guessed rightly. Given away: all of the class gave one answer on affairs. Doubled: "
        "probability of an affair at least twice everybody's. Told apart: of a woman who had an "
        "affair and one who had none, which is which (blindly 50 %). Certain: where the answers "
        "of 12 others of the class are known.",
        "None of these releases promises anything that could be broken.",
    )
    if picture is not None:
        alone.plot(picture)
        click.echo(f"picture: {picture}")


def show_differencing(
    epsilons: Sequence[Fraction], many: int, repeats: int, seed: int, picture: Path | None
) -> list[lab.Verdict]:
    """One answer of each target from two counts, exact and at every epsilon."""
    with waiting("asking for exact counts"):
        rows = women()
        chosen, truth = targets(rows, many, seed)
        results = [
            lab.differencing(
                exact_counts(rows, least=50), chosen, SECRET, truth=truth, name="exact counts"
            )
        ]
    with asked(rows, sum(epsilons, Fraction(0)) * 2 * len(chosen) * repeats + 1) as session:
        for epsilon in epsilons:
            with waiting(f"asking at ε = {loss_text(epsilon, 6)}"):
                results.append(
                    lab.differencing(
                        session, chosen, SECRET, epsilon=epsilon, repeats=repeats, truth=truth
                    )
                )
    verdicts = [one.verdict for one in results if one.verdict is not None]
    print_verdicts(verdicts)
    print_paragraphs(
        "",
        f"{len(truth)} women whom nobody shares all traits with, half of whom had an affair; "
        "blindly 50 %. Exact counts below 50 were refused; it did not help. Each target is in "
        "one of the two counts only, so that one's ε bounds what is allowed. Theory: the rule of "
        "subtracting, from the law of the noise.",
    )
    if picture is not None:
        lab.plot_verdicts(verdicts[1:], picture)
        click.echo(f"picture: {picture}")
    return verdicts


def show_membership(
    models: Sequence[str],
    mus: Sequence[float],
    method: str,
    records: int,
    shadows: int,
    confidence: float,
    seed: int,
    picture: Path | None,
) -> list[lab.Verdict]:
    """Members told from others, by models of the survey and by private sums of it."""
    rows = women()
    common: dict[str, Any] = {"seed": seed, "confidence": confidence}
    results: list[tuple[str, lab.Membership]] = []
    some = rows.sample(records, seed=seed)
    data = (some.drop("affairs", "affair").to_numpy(), some["affair"].to_numpy())
    for name in models:
        with waiting(f"training {shadows} models: {name}"):
            found = lab.membership(_model(name), data, method, models=shadows, name=name, **common)
        results.append((name, found))
    for mu in mus:
        release, loss, years = noisy_years(rows, mu)
        with waiting(f"releasing sums at μ = {mu:g}"):
            name = f"private sum, μ = {mu:g}"
            found = lab.membership(
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
            f"{area.value:.3f} [{at_least(area.low)}, {at_most(area.high)}]",
            "" if allowed is None else at_most(allowed.area),
            f"{percent(caught.value)} [{percent(caught.low)}, {percent(caught.high)}]",
            "" if allowed is None else percent(float(allowed.tpr(0.01)), turn=math.ceil),
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
        from dither.plots.lab._alarms import draw_membership

        draw_membership([f for _, f in results], picture, labels=[n for n, _ in results])
        click.echo(f"picture: {picture}")
    return [found.verdict for _, found in results]


def show_synthetic(
    epsilons: Sequence[Fraction],
    many: int,
    plays: int,
    confidence: float,
    seed: int,
    picture: Path | None,
) -> list[lab.Verdict]:
    """One woman told from synthetic rows: drawn again, of exact pairs, and of private ones."""
    table = women().select(KNOWN).sample(many, seed=3)
    n, target = 10 * many, lab.rarest(table)
    common: dict[str, Any] = {
        "target": target, "plays": plays, "confidence": confidence, "seed": seed,
    }  # fmt: skip
    bare = lab.pairs_kept(n, seed=seed)
    results: list[tuple[str, lab.Membership]] = []
    for name, maker in (("rows drawn again", lab.drawn_again(n, seed=seed)), ("exact pairs", bare)):
        with waiting(f"playing {name}"):
            results.append((name, lab.synthetic(maker, table, name=name, **common)))
    for epsilon in epsilons:
        rho = rho_of_epsilon(epsilon, _DELTA)
        generate, loss = private_rows(table, rho, n)
        name = f"private, ε = {loss_text(epsilon)}"
        with waiting(f"playing {name}"):
            found = lab.synthetic(generate, table, loss=loss, undefended=bare, name=name, **common)
        results.append((name, found))
    shown = new_table()
    shown.add_column("synthetic rows")
    for name in ("area", "allowed", "found at 1 % accused", "certified ε", "claimed ε"):
        shown.add_column(name, justify="right")
    shown.add_column("verdict", overflow="fold")
    for (name, found), claimed in zip(results, (None, None, *epsilons), strict=True):
        area, caught, allowed = found.auc, found.tpr(), found.allowed
        delta = 0.0 if claimed is None else float(_DELTA)
        shown.add_row(
            name,
            f"{area.value:.3f} [{at_least(area.low)}, {at_most(area.high)}]",
            "" if allowed is None else at_most(allowed.area),
            f"{percent(caught.value)} [{percent(caught.low)}, {percent(caught.high)}]",
            at_least(found.certified(delta), 2),
            "" if claimed is None else loss_text(claimed),
            str(found.verdict.outcome),
        )
    console().print(shown)
    print_paragraphs(
        "",
        f"Of {many:,} women one, the rarest, is in or not; the adversary knows all others and the "
        f"generator, and sees {n:,} synthetic rows. Certified: the ε that these {plays:,} plays "
        f"prove to be lost, at δ = {loss_text(_DELTA)} where one is claimed, at "
        f"{level(confidence)}. Rows drawn again and exact pairs promise nothing.",
    )
    if picture is not None:
        from dither.plots.lab._alarms import draw_membership

        draw_membership(
            [found for _, found in results], picture, labels=[name for name, _ in results],
            title="Synthetic rows: who was in the table?",
        )  # fmt: skip
        click.echo(f"picture: {picture}")
    return [found.verdict for _, found in results]


_DELTA = Fraction(1, 10**6)


def _model(name: str) -> Any:
    check_library("sklearn", "attack", "models need")
    from sklearn.ensemble import RandomForestClassifier
    from sklearn.linear_model import LogisticRegression
    from sklearn.pipeline import make_pipeline
    from sklearn.preprocessing import StandardScaler
    from sklearn.tree import DecisionTreeClassifier

    if name == "forest":
        return RandomForestClassifier(20)
    if name == "tree":
        return DecisionTreeClassifier()
    return make_pipeline(StandardScaler(), LogisticRegression())
