"""``dither serve``: an HTTP service in front of policies."""

from __future__ import annotations

import shlex
from pathlib import Path

import click

from dither._extras import check_library
from dither.cli._options import FILE

__all__ = ["serve"]


@click.command(
    short_help="An HTTP service in front of policies.",
    epilog="""\b
Examples:
  dither serve dither.toml
  dither serve a.toml --host :: --tls-certificate tls.crt --tls-key tls.key
  dither serve visits.toml survey.toml --behind-proxy --host 10.0.0.5
""",
)
@click.argument("policies", nargs=-1, type=FILE)
@click.option("--host", default="127.0.0.1", show_default=True, help="An address of this machine.")
@click.option("--port", type=click.IntRange(0, 65535), default=8765, show_default=True)
@click.option("--tls-certificate", "certificate", type=FILE, help="Of TLS, as PEM.")
@click.option("--tls-key", "key", type=FILE, help="Its key, as PEM.")
@click.option(
    "--behind-proxy",
    is_flag=True,
    help="A proxy stands in front that speaks TLS, and alone can reach this.",
)
@click.option("--name", "hosts", multiple=True, help="A name by which it may be called; repeat it.")
@click.option("--workers", type=click.IntRange(1, 64), help="How many questions run at a time.")
@click.option(
    "--open-metrics",
    is_flag=True,
    help="Whoever reaches it may read /metrics, and not programs of this machine alone.",
)
@click.option("--demo", is_flag=True, help="A bundled survey with three people, to try it out.")
def serve(
    policies: tuple[Path, ...],
    host: str,
    port: int,
    certificate: Path | None,
    key: Path | None,
    behind_proxy: bool,
    hosts: tuple[str, ...],
    workers: int | None,
    open_metrics: bool,
    demo: bool,
) -> None:
    """Serve POLICIES over HTTP, each under its name, until it is interrupted.

    Whoever asks needs a key: see `dither people`. It listens on this machine alone, unless TLS is
    configured or a proxy stands in front.
    """
    check_library("starlette", "service", "a service needs")
    from dither.service._desk import Desk
    from dither.service.web._serve import Listening
    from dither.service.web._serve import serve as run

    if demo == bool(policies):
        raise click.UsageError("give at least one policy, or --demo")
    at = Listening(host, port, certificate, key, behind_proxy, hosts, open_metrics)
    if demo:
        from dither.examples.demo.served import PEOPLE, served_policy

        policies = (served_policy(),)
    desks = [Desk(policy) for policy in policies]

    def ready(bound: int) -> None:
        scheme = "https" if certificate else "http"
        named = f"[{host}]" if ":" in host else host
        for policy, desk in zip(policies, desks, strict=True):
            at_all = f"{scheme}://{named}:{bound}/{desk.name}"
            click.echo(f"serving {desk.path} at {at_all}, for browsers and programs", err=True)
            if demo:
                from dither.service.access._roles import Role

                for person, role in PEOPLE.items():
                    desk.people.add(person, Role(role))
                    made = desk.people.new_key(person, 1)
                    click.echo(f"  {person + ',':<7} {role:<8} {made.key}", err=True)
            elif not desk.people.listed():
                click.echo(
                    "nobody may ask yet: dither people add NAME --role owner "
                    f"--policy {shlex.quote(str(policy))}",
                    err=True,
                )

    try:
        run(desks, at, workers=workers, ready=ready)
    finally:
        for desk in desks:
            desk.close()
