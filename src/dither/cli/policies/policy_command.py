"""The command ``dither policy``: what is made of a policy alone, such as a sheet to hand out."""

from __future__ import annotations

from pathlib import Path

import click

from dither.cli._files import check_targets
from dither.cli._options import FILE, Group
from dither.cli._terminal import say_saved

__all__ = ["policy_group"]


@click.group(
    "policy",
    cls=Group,
    short_help="What is made of a policy alone, such as a sheet to hand out.",
    epilog="""\b
Examples:
  dither policy sheet dither.toml
  dither policy sheet dither.toml --language zh --out sheet.html
""",
)
def policy_group() -> None:
    """Make what a policy's text alone is needed for: no data is read, and nothing is charged."""


@policy_group.command(
    short_help="Tell participants what happens to their answers.",
    epilog="""\b
Examples:
  dither policy sheet dither.toml
  dither policy sheet dither.toml --language zh --out sheet.html
""",
)
@click.argument("policy", type=FILE)
@click.option(
    "--language",
    type=click.Choice(["en", "zh"]),
    default="en",
    show_default=True,
    help="English or Chinese.",
)
@click.option("--name", help="What the policy is called.  [default: the file's name]")
@click.option("--out", type=FILE, help="Write it: .md as it is printed, or .html to print.")
def sheet(policy: Path, language: str, name: str | None, out: Path | None) -> None:
    """Write the sheet that the people in the data of POLICY read: what happens to an answer.

    In plain words, with the policy's own limits as guesses of a hundred: how often somebody who
    knows everything else guesses right, for each unit that is protected. Neither the data nor the
    ledger is read. Hand it out before answers are given, with who is responsible filled in.
    """
    from dither.policy._policy import read_policy
    from dither.service.page._participants import sheet as sheet_of
    from dither.service.page._participants import sheet_html, sheet_markdown

    check_targets(other=out, option="--out")
    if out is not None and out.suffix not in (".md", ".html"):
        raise click.BadParameter("name a file that ends in .md or .html", param_hint="--out")
    parts = sheet_of(read_policy(policy), language, name or policy.stem)
    if out is None:
        click.echo(sheet_markdown(parts), nl=False)
        return
    found = sheet_html(parts, language) if out.suffix == ".html" else sheet_markdown(parts)
    out.write_text(found, encoding="utf-8")
    say_saved(out)
