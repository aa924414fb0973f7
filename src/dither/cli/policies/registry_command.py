"""``dither registry``: releases in the form of the public registry of deployments."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import click

from dither.cli._files import check_targets
from dither.cli._options import FILE
from dither.cli._terminal import say_saved, waiting

__all__ = ["registry"]


@click.command(
    short_help="An entry for the public registry of deployments.",
    epilog="""\b
Examples:
  dither registry release.json
  dither registry n.cert.json --policy dither.toml --out entry.yaml
  dither registry n.cert.json --set basic.intended_use="Plan clinics"
""",
)
@click.argument("certificates", metavar="CERT...", type=FILE, nargs=-1, required=True)
@click.option("--policy", type=FILE, help="The policy: its declared facts and caps.")
@click.option("--ledger", type=FILE, help="The ledger: dates, and what the account has spent.")
@click.option(
    "--set",
    "given",
    multiple=True,
    metavar="FIELD=VALUE",
    help="What dither cannot know, as text or JSON; may be repeated.",
)
@click.option("--out", type=FILE, help="Write it: JSON, which is YAML as well.")
def registry(
    certificates: tuple[Path, ...],
    policy: Path | None,
    ledger: Path | None,
    given: tuple[str, ...],
    out: Path | None,
) -> None:
    """Describe the releases of certificates CERT in the schema of the public registry.

    From certificates, policy and ledger: public facts alone, and no data is read. What dither
    cannot know is null, and listed on standard error.
    """
    import dither as dt

    check_targets(other=out, option="--out")
    fields: dict[str, Any] = {}
    for text in given:
        name, sign, value = text.partition("=")
        if not sign:
            raise click.UsageError(f"--set takes FIELD=VALUE, and {text!r} has no '='")
        fields[name.strip()] = _value(value)
    with waiting("checking the chain"):
        found = dt.registry_entry(list(certificates), policy=policy, ledger=ledger, fields=fields)
    if out is None:
        click.echo(found.to_json())
    else:
        found.save(out)
        say_saved(out)
    if found.missing:
        click.echo(f"To be filled in: {', '.join(found.missing)}", err=True)


def _value(text: str) -> Any:
    """A list or a mapping as JSON; anything else is text."""
    if text[:1] not in ("[", "{"):
        return text
    try:
        return json.loads(text)
    except ValueError:
        return text
