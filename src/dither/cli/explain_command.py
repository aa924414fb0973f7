"""The command ``dither explain``: what a question would protect, touch and cost."""

from __future__ import annotations

import json
from fractions import Fraction
from pathlib import Path

import click

from dither.cli.options import ask, asking, delta, epsilon
from dither.cli.waiting import waiting

__all__ = ["explain"]


@click.command(
    short_help="Who is protected, what is measured, what it would cost.",
    epilog="""\b
Examples:
  dither explain "SELECT region, AVG(cost) AS cost FROM visits GROUP BY region"
  dither explain "SELECT COUNT(*) AS n FROM visits" --epsilon 0.5 --json
  dither explain - --epsilon 0.5 < question.sql
""",
)
@asking
@epsilon(required=False)
@delta
@click.option("--json", "as_json", is_flag=True, help="The tree as JSON.")
def explain(
    question: str,
    policy: Path,
    analyst: str | None,
    epsilon: Fraction | None,
    delta: Fraction | None,
    as_json: bool,
) -> None:
    """Explain QUESTION, an SQL text or - for standard input, and spend nothing.

    Shows who is protected, how far one unit can change each measurement, and, with --epsilon, the
    noise and the cost. No private value is read.
    """
    import dither as dt
    from dither.cli.showing import print_plan

    if delta is not None and epsilon is None:
        raise click.UsageError("--delta needs --epsilon")
    with waiting("reading the schema"), dt.open(policy, analyst=analyst) as session:
        found = ask(session, question).explain(epsilon, delta)
    if as_json:
        click.echo(json.dumps(found.to_dict(), indent=2, ensure_ascii=False))
    else:
        print_plan(found)
