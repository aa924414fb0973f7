"""The commands that ask: ``dither explain``, ``dither preview`` and ``dither release``."""

from __future__ import annotations

import json
import math
from collections.abc import Callable, Mapping
from contextlib import nullcontext
from fractions import Fraction
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from dither._format import level, loss_text
from dither.cli._endings import Failed
from dither.cli._files import check_targets, write_table
from dither.cli._options import (
    FILE,
    Amount,
    WholeNumbers,
    ask,
    confidence,
    delta,
    epsilon,
    plot,
    question_options,
    refuse_given,
)
from dither.cli._terminal import print_preview, print_release, say_saved, waiting
from dither.cli.questions._request import keep_sources, print_explanation

if TYPE_CHECKING:
    from dither import Preview, Release

__all__ = ["explain", "preview", "release"]


@click.command(
    short_help="Who is protected, what is measured, what it would cost.",
    epilog="""\b
Examples:
  dither explain "SELECT region, COUNT(*) AS n FROM visits GROUP BY region"
  dither explain "SELECT COUNT(*) AS n FROM visits" --epsilon 0.5 --json
  dither explain - --epsilon 0.5 < question.sql
""",
)
@question_options
@epsilon(required=False)
@delta
@click.option("--json", "as_json", is_flag=True, help="Print JSON.")
def explain(
    question: str,
    policy: Path,
    analyst: str | None,
    purpose: str | None,
    epsilon: Fraction | None,
    delta: Fraction | None,
    as_json: bool,
) -> None:
    """Explain QUESTION, an SQL text, or - for standard input. Nothing is spent.

    Shows who is protected, how far one unit can change each measurement, and, with --epsilon, the
    noise and the cost. No private value is read.
    """
    import dither as dt

    if delta is not None and epsilon is None:
        raise click.UsageError("--delta needs --epsilon")
    with (
        waiting("reading the schema"),
        dt.open(policy, analyst=analyst, purpose=purpose) as session,
    ):
        found = ask(session, question).explain(epsilon, delta)
    print_explanation(found, as_json)


@click.command(
    short_help="Error bars before spending, or the budget that reaches them.",
    epilog="""\b
Examples:
  dither preview "SELECT AVG(cost) AS cost FROM visits" --epsilon 0.5
  dither preview "SELECT AVG(cost) AS cost FROM visits" --half-width 5
  dither preview "SELECT COUNT(*) AS n FROM visits" --epsilon 0.5 \\
      --sizes 50,500,5000
  dither preview "SELECT COUNT(*) AS n, AVG(cost) AS cost FROM visits" \\
      --half-width n=20 --half-width cost=5 --size 1000
""",
)
@question_options
@epsilon(required=False)
@delta
@confidence
@click.option(
    "--sizes",
    type=WholeNumbers(),
    default=(100, 1_000, 10_000),
    help="Group sizes, in rows; public ones.  [default: 100,1000,10000]",
)
@click.option(
    "--half-width",
    "half_widths",
    multiple=True,
    metavar="[NAME=]W",
    help="Find the smallest epsilon that reaches ±W, for all outputs or for one; may be repeated.",
)
@click.option(
    "--size", type=click.IntRange(1), help="Group size for --half-width.  [default: 1000]"
)
@plot("half-width against size")
@click.option("--json", "as_json", is_flag=True, help="Print JSON.")
def preview(
    question: str,
    policy: Path,
    analyst: str | None,
    purpose: str | None,
    epsilon: Fraction | None,
    delta: Fraction | None,
    confidence: float,
    sizes: tuple[int, ...],
    half_widths: tuple[str, ...],
    size: int | None,
    picture: Path | None,
    as_json: bool,
) -> None:
    """Say how wide the intervals of QUESTION will be, before anything is spent.

    Public facts only: no private value is read. Give --epsilon to see the half-widths, or
    --half-width to see the epsilon that it takes.
    """
    import dither as dt

    if (epsilon is None) == (not half_widths):
        raise click.UsageError("give --epsilon, or --half-width to find the epsilon")
    if half_widths:
        refuse_given(("sizes", "picture"), "--epsilon")
    else:
        refuse_given(("size",), "--half-width")
    check_targets(picture=picture)
    wanted = _wanted(half_widths)
    with (
        waiting("reading the schema"),
        dt.open(policy, analyst=analyst, purpose=purpose) as session,
    ):
        asked = ask(session, question)
        if epsilon is None:
            rows = size or 1_000
            best = asked.budget_for(wanted, size=rows, delta=delta, confidence=confidence)
            _print_budget(best, wanted, rows, confidence, as_json)
            return
        found = asked.preview(epsilon, delta, sizes=sizes, confidence=confidence)
        if picture is not None:
            found.plot(str(picture))
    if as_json:
        click.echo(json.dumps(_preview_json(found), indent=2))
        return
    print_preview(found)
    if picture is not None:
        say_saved(picture)


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


def _preview_json(found: Preview) -> dict[str, object]:
    def plain(width: float) -> float | None:
        return width if math.isfinite(width) else None

    def each(widths: Mapping[str, tuple[float, ...]]) -> dict[str, list[float | None]]:
        return {name: [*map(plain, one)] for name, one in widths.items()}

    by_set = {keys: each(one) for keys, one in found.by_set.items()}
    return {
        "epsilon": str(found.epsilon),
        "delta": str(found.delta),
        "confidence": found.confidence,
        "sizes": list(found.sizes),
        "half_widths": each(found.widths),
        **({"half_widths_by_set": by_set} if by_set else {}),
        "missed": None if found.missed is None else list(found.missed),
    }


@click.command(
    short_help="Answer a question, and charge the ledger for it.",
    epilog="""\b
Examples:
  dither release "SELECT COUNT(*) AS n FROM visits" --epsilon 0.5
  dither release "SELECT AVG(cost) AS cost FROM visits" --epsilon 1/4 \\
      --analyst ana
  dither release "SELECT region, COUNT(*) AS n FROM visits GROUP BY region" \\
      --epsilon 0.5 --out n.csv --plot n.png --certificate n.cert.json
  dither release - --epsilon 0.5 --token monday --json < question.sql
""",
)
@question_options
@epsilon(required=True)
@delta
@confidence
@click.option(
    "--token", help="A name for the request: asked again by it, the same answer comes back, free."
)
@click.option("--reservation", metavar="ID", help="Charge it to what was reserved under this id.")
@click.option(
    "--reuse",
    is_flag=True,
    help="An earlier answer to the same request will do, or sums of a finer table; free of charge.",
)
@click.option("--out", type=FILE, help="Write the answers: CSV, Parquet or JSON.")
@plot("the answers")
@click.option("--certificate", type=FILE, help="Write the certificate, for `dither verify`.")
@click.option(
    "--json", "as_json", is_flag=True, help="Print JSON: the answers and the certificate."
)
def release(
    question: str,
    policy: Path,
    analyst: str | None,
    purpose: str | None,
    epsilon: Fraction,
    delta: Fraction | None,
    confidence: float,
    token: str | None,
    reservation: str | None,
    reuse: bool,
    out: Path | None,
    picture: Path | None,
    certificate: Path | None,
    as_json: bool,
) -> None:
    """Answer QUESTION, an SQL text, or - for standard input. The ledger is charged for it.

    The charge is on the disk before the data is read. Where the budget does not suffice, nothing
    is spent, and the message says what would fit.
    """
    import dither as dt

    check_targets(table=out, picture=picture, other=certificate)
    with (
        waiting("charging, then answering") as tell,
        dt.open(policy, analyst=analyst, purpose=purpose, progress=tell) as session,
    ):
        keep_sources(session, policy, out, picture, certificate)
        asked = ask(session, question)
        with nullcontext() if reservation is None else session.using(reservation):
            found = asked.release(
                epsilon, delta, confidence=confidence, token=token, reuse=reuse or None
            )
    if as_json:
        click.echo(json.dumps(_release_json(found), indent=2, ensure_ascii=False))
    else:
        print_release(found)
    _save(out, lambda path: write_table(found.frame, path))
    _save(picture, lambda path: found.plot(str(path)))
    _save(certificate, found.certificate.save)


def _save(path: Path | None, write: Callable[[Path], Any]) -> None:
    """Write one file; by now the answer is printed, so a full disk loses nothing."""
    if path is None:
        return
    try:
        write(path)
    except OSError as error:
        raise Failed(
            f"{str(path)!r} could not be written: {error.strerror}. The answer above is charged."
        ) from error
    say_saved(path)


def _release_json(found: Release) -> dict[str, Any]:
    return {
        "keys": found.keys,
        "outputs": found.outputs,
        "units": found.units,
        "confidence": found.confidence,
        "replayed": found.replayed,
        "rows": [{k: _plain(v) for k, v in row.items()} for row in found.frame.to_dicts()],
        "certificate": found.certificate.to_dict(),
    }


def _plain(value: Any) -> Any:
    """JSON knows no infinity and no date."""
    if isinstance(value, float) and not math.isfinite(value):
        return None
    return value if value is None or isinstance(value, bool | int | float | str) else str(value)
