"""The command ``dither release``: charge the ledger, answer with noise, write what is asked."""

from __future__ import annotations

import json
import math
from fractions import Fraction
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from dither.cli.files import check_targets, write_table
from dither.cli.options import FILE, ask, asking, confidence, delta, epsilon
from dither.cli.waiting import waiting

if TYPE_CHECKING:
    from collections.abc import Callable

    from dither import Release

__all__ = ["release"]


@click.command(
    short_help="Answer a question, and charge the ledger for it.",
    epilog="""\b
Examples:
  dither release "SELECT COUNT(*) AS n FROM visits WHERE age < 18" --epsilon 0.5
  dither release "SELECT AVG(cost) AS cost FROM visits" --epsilon 1/4 --analyst ana
  dither release "SELECT region, AVG(cost) AS cost FROM visits GROUP BY region" \\
      --epsilon 0.5 --out cost.csv --plot cost.png --certificate cost.cert.json
  dither release - --epsilon 0.5 --token monday --json < question.sql
""",
)
@asking
@epsilon(required=True)
@delta
@confidence
@click.option("--token", help="Names the request: asked again, the same answer comes back, free.")
@click.option("--out", type=FILE, help="Write the answers: CSV, Parquet or JSON.")
@click.option("--plot", type=FILE, help="Draw the answers: PNG, SVG or PDF.")
@click.option("--certificate", type=FILE, help="Write the certificate, for `dither verify`.")
@click.option("--json", "as_json", is_flag=True, help="Answers and certificate, for programs.")
def release(
    question: str,
    policy: Path,
    analyst: str | None,
    epsilon: Fraction,
    delta: Fraction | None,
    confidence: float,
    token: str | None,
    out: Path | None,
    plot: Path | None,
    certificate: Path | None,
    as_json: bool,
) -> None:
    """Answer QUESTION, an SQL text or - for standard input, and charge the ledger for it.

    The charge is on the disk before the data is read. Where the budget does not suffice, nothing
    is spent, and the message says what would fit.
    """
    import dither as dt
    from dither.cli.showing import print_release

    check_targets(table=out, picture=plot, other=certificate)
    with waiting("charging, then answering"), dt.open(policy, analyst=analyst) as session:
        asked = ask(session, question)
        found = asked.release(epsilon, delta, confidence=confidence, token=token)
    if as_json:
        click.echo(json.dumps(_as_json(found), indent=2, ensure_ascii=False))
    else:
        print_release(found)
    _save(out, lambda path: write_table(found.frame, path))
    _save(plot, lambda path: found.plot(str(path)))
    _save(certificate, found.certificate.save)


def _save(path: Path | None, write: Callable[[Path], Any]) -> None:
    """Write one file; by now the answer is printed, so a full disk loses nothing."""
    if path is None:
        return
    try:
        write(path)
    except OSError as error:
        raise click.ClickException(
            f"{str(path)!r} could not be written: {error.strerror}. The answer above is charged."
        ) from error
    click.echo(f"wrote {path}", err=True)


def _as_json(found: Release) -> dict[str, Any]:
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
