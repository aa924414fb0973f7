"""``dither learn``: a model of a protected table, in a file that predicts."""

from __future__ import annotations

import sys
from collections.abc import Callable
from fractions import Fraction
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from dither._files import written
from dither.cli._files import as_file, check_targets, read_table
from dither.cli._options import (
    FILE,
    PAID,
    WholeNumbers,
    analyst_option,
    delta,
    epsilon,
    paid_options,
    plot,
    policy,
    private_table,
    purpose_option,
    refuse_given,
)
from dither.cli._terminal import say_saved
from dither.cli.questions._request import answered, check_free, keep_sources, save_certificate

if TYPE_CHECKING:
    import polars as pl

    from dither.learn import LearnedModel

__all__ = ["learn"]

MODELS = ("additive", "forest", "naive-bayes", "logistic", "linear")


@click.command(
    short_help="A model of a protected table, and its predictions.",
    epilog="""\b
Examples:
  dither learn "readmitted ~ age + cost + region" --epsilon 1 --explain
  dither learn "readmitted ~ age + cost + region" --epsilon 1 --preview
  dither learn "readmitted ~ ." --epsilon 1 --out model.json --plot model.png
  dither learn "readmitted ~ ." --model forest --trees 8 --epsilon 1 \\
      --out forest.json
  dither learn "cost ~ age + C(region)" --model linear --epsilon 1 \\
      --out cost.json
  dither learn --from model.json --predict new.csv --out told.csv
""",
)
@click.argument("formula", required=False)
@policy
@analyst_option
@purpose_option
@click.option("--table", "name", help="The table; needed where several are private.")
@click.option("--where", help="Rows that count: a condition, as after WHERE.")
@epsilon(required=False)
@delta
@click.option(
    "--model",
    "kind",
    type=click.Choice(MODELS),
    default="additive",
    help="A sum of curves, trees, laws of each class, or a regression.  [default: additive]",
)
@click.option(
    "--max-rows",
    type=click.IntRange(1),
    help="Rows of one unit that count, in place of the policy's limit.",
)
@click.option("--bins", type=click.IntRange(2, 1024), help="Ranges of a number.  [default: 32]")
@click.option(
    "--rounds",
    type=click.IntRange(1, 1000),
    help="How often each column is fitted.  [default: 10]",
)
@click.option("--trees", type=click.IntRange(1, 1000), help="Of a forest.  [default: 16]")
@click.option(
    "--depth", type=click.IntRange(1, 16), help="Questions that a tree asks.  [default: 5]"
)
@click.option("--explain", is_flag=True, help="What is measured, and at which price.")
@click.option("--preview", is_flag=True, help="What it would tell. Nothing is spent.")
@click.option(
    "--sizes",
    type=WholeNumbers(),
    default=(1_000, 10_000, 100_000),
    help="Numbers of rows to preview.  [default: 1000,10000,100000]",
)
@click.option(
    "--token", help="A name for the request: asked again by it, the same model comes back, free."
)
@paid_options
@click.option("--from", "source", type=FILE, help="A model that was saved: nothing is charged.")
@click.option("--predict", "rows", type=FILE, help="Rows to predict: .csv or .parquet.")
@click.option("--out", type=FILE, help="Write the model; with --predict the rows.")
@plot("what the model says")
@click.option("--certificate", type=FILE, help="Write the certificate, for `dither verify`.")
def learn(
    formula: str | None,
    policy: Path,
    analyst: str | None,
    purpose: str | None,
    name: str | None,
    where: str | None,
    epsilon: Fraction | None,
    delta: Fraction | None,
    kind: str,
    max_rows: int | None,
    bins: int | None,
    rounds: int | None,
    trees: int | None,
    depth: int | None,
    explain: bool,
    preview: bool,
    sizes: tuple[int, ...],
    token: str | None,
    source: Path | None,
    rows: Path | None,
    out: Path | None,
    picture: Path | None,
    certificate: Path | None,
) -> None:
    """Learn from a table what a column follows from, charge the ledger once, and keep the model.

    FORMULA names the column that is predicted and those that it is predicted from, as in
    "readmitted ~ age + cost". Their values and bounds come from the policy. The model may be handed
    out; what it is asked later costs nothing. Files appear once they are whole: where the command
    is cut off, what was charged stays charged, and no part of a file is left.
    """
    import dither as dt

    free = check_free(explain, preview)
    if not preview:
        refuse_given(("sizes",), "--preview")
    if free:
        refuse_given(("token", *PAID, "out", "picture", "certificate"), "a release")
    if rows is not None and source is None:
        raise click.UsageError("--predict goes with --from MODEL: learn first, with --out")
    check_targets(
        table=out if rows is not None else None,
        file=out if rows is None else None,
        picture=picture,
        other=certificate,
    )
    if source is not None:
        asked_for = (
            "formula",
            "analyst",
            "purpose",
            "name",
            "where",
            "epsilon",
            "delta",
            "kind",
            "max_rows",
        )
        refuse_given(
            (*asked_for, "bins", "rounds", "trees", "depth", "explain", "preview", "token", *PAID),
            "a policy's table, without --from",
        )
        if (rows is None) != (out is None):
            raise click.UsageError("--predict FILE and --out FILE go together, with --from")
        _tell(dt.learn.load(source), rows, out, picture, certificate)
        return
    if formula is None:
        raise click.UsageError('give a FORMULA, such as "readmitted ~ age + cost"')
    if epsilon is None:
        raise click.UsageError("--epsilon is missing")
    if not free and out is None:
        raise click.UsageError("give --out FILE for the model, --explain or --preview")
    if kind != "additive":
        refuse_given(("bins", "rounds"), "--model additive")
    if kind != "forest":
        refuse_given(("trees", "depth"), "--model forest")
    given = {"bins": bins, "rounds": rounds, "n_estimators": trees, "max_depth": depth}
    with dt.open(policy, analyst=analyst, purpose=purpose) as session:
        keep_sources(session, policy, out, picture, certificate)
        table = session.table(private_table(session, name))
        learning = (table.filter(where) if where else table).learn(
            epsilon, delta, max_rows=max_rows
        )
        asked: Any = getattr(learning, kind.replace("-", "_"))(
            formula, **{name: value for name, value in given.items() if value is not None}
        )
        steps = {"additive": (rounds or 10, "rounds"), "forest": (trees or 16, "trees")}
        told: dict[str, Any] = {"progress": _teller(*steps[kind])} if kind in steps else {}
        model = answered(
            asked,
            session,
            explain=explain,
            preview=partial(asked.preview, sizes) if preview else None,
            waits="charging, then learning",
            token=token,
            **told,
        )
    if model is not None:
        _tell(model, None, out, picture, certificate)


def _teller(steps: int, word: str) -> Callable[[int], None] | None:
    """One line on a terminal that says how far it is."""
    if not sys.stderr.isatty():
        return None

    def tell(done: int) -> None:
        end = "\n" if done == steps else ""
        click.echo(f"\r\x1b[K{done} of {steps} {word}{end}", err=True, nl=False)

    return tell


def _tell(
    model: LearnedModel,
    rows: Path | None,
    out: Path | None,
    picture: Path | None,
    certificate: Path | None,
) -> None:
    """Files under their names once all of each is on the disk; the model first, which was paid."""
    if rows is not None:
        assert out is not None
        found = _predicted(model, read_table(rows, model.texts))
        written(out, as_file(found, out.suffix.lower()))
        say_saved(out)
    elif out is not None:
        say_saved(model.save(out))
    save_certificate(certificate, model.certificate)
    if picture is not None:
        model.plot(picture)
        say_saved(picture)
    click.echo(model.summary())


def _predicted(model: LearnedModel, frame: pl.DataFrame) -> pl.DataFrame:
    """The rows with what is predicted of them beside."""
    import polars as pl

    told: dict[str, Any] = {f"{model.target}_predicted": model.predict(frame).tolist()}
    if model.classes is not None:
        chances = model.predict_proba(frame)
        told |= {
            f"{model.target}_chance_of_{label}": chances[:, k].tolist()
            for k, label in enumerate(model.classes)
        }
    twice = [column for column in told if column in frame.columns]
    if twice:
        raise click.UsageError(f"--predict: the rows have a column {twice[0]!r} already")
    return frame.with_columns(pl.Series(column, values) for column, values in told.items())
