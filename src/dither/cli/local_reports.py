"""The commands ``dither local privatize``, ``aggregate`` and ``estimate``: a survey by files."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from dither.cli._options import FILE

if TYPE_CHECKING:
    from dither.local import Aggregate, Channel

__all__ = ["COMMANDS"]

OUT = click.Path(dir_okay=False, path_type=Path)


@click.command(short_help="Randomise values: one a line.")
@click.argument("channel", type=FILE)
@click.argument("values", type=click.Path(exists=True, dir_okay=False, allow_dash=True))
@click.option("--out", type=OUT, required=True, help="The file of reports to write.")
def privatize(channel: Path, values: str, out: Path) -> None:
    """Randomise the VALUES, one a line, through the CHANNEL, a JSON file; - reads from the pipe.

    CHANNEL is what `channel.to_dict()` or `dither local best --out` wrote. Only the file of reports
    may leave the device. A value that is missing or not in the domain is refused, and no report is
    written.
    """
    from dither.local import write_reports

    made = _channel(channel)
    listed = _lines(values)
    reports = made.privatize(_typed(made, listed)) if listed else []
    write_reports(out, made, reports)
    click.echo(f"{len(listed):,} reports of {made.kind} {made.hash[:8]} are in {out}")
    click.echo(f"each: {made.guarantee}")


@click.command(short_help="Count files of reports.")
@click.argument("channel", type=FILE)
@click.argument("files", type=FILE, nargs=-1, required=True)
@click.option("--out", type=OUT, required=True, help="The file of counts to write, as JSON.")
def aggregate(channel: Path, files: tuple[Path, ...], out: Path) -> None:
    """Count the FILES of reports of the CHANNEL; a file of another channel is refused.

    FILES are files of reports, or counts that this command wrote. Reports that the channel could
    not have produced are dropped, and told.
    """
    from dither.local import Aggregate

    made, found, missing = _channel(channel), None, 0
    for path in files:
        if path.suffix == ".json":
            counted, lost = Aggregate.from_dict(_json(path)), 0
        else:
            counted, lost = _counted(path, made)
        missing += lost
        found = counted if found is None else found + counted
    assert found is not None
    _write(out, found)
    click.echo(f"{found.n:,} reports counted, {found.rejected:,} dropped, {missing:,} missing")
    click.echo(f"the counts are in {out}")


@click.command(short_help="Estimate shares, or a mean, from counts.")
@click.argument("counts", type=FILE)
@click.option(
    "--postprocess",
    default="none",
    show_default=True,
    help="none, clip, norm_sub, base_cut, project, increasing or decreasing.",
)
@click.option("--confidence", type=float, default=0.95, show_default=True, help="Of the intervals.")
@click.option("--out", type=OUT, help="Write the whole table as CSV.")
def estimate(counts: Path, postprocess: str, confidence: float, out: Path | None) -> None:
    """Estimate from the COUNTS: the shares of the values, or the mean of numbers."""
    from dither.local import Aggregate
    from dither.local._numbers.numeric import NumericChannel

    counted = Aggregate.from_dict(_json(counts))
    found: Any = (
        counted.mean(confidence=confidence)
        if isinstance(counted.channel, NumericChannel)
        else counted.estimate(postprocess, confidence=confidence)
    )
    click.echo(found.summary())
    if out is not None:
        found.frame.write_csv(out)
        click.echo(f"the table is in {out}")


COMMANDS = (privatize, aggregate, estimate)


def _json(path: Path) -> Any:
    from dither.errors import ArgumentError

    try:
        return json.loads(path.read_text(encoding="utf-8"))
    except OSError:
        raise ArgumentError(f"{path.name} cannot be read") from None
    except (ValueError, RecursionError):
        raise ArgumentError(f"{path.name} must hold JSON, as this command writes it") from None


def _channel(path: Path) -> Channel:
    from dither.local import channel_from_dict

    return channel_from_dict(_json(path))


def _counted(path: Path, channel: Channel) -> tuple[Aggregate, int]:
    from dither.errors import ArgumentError
    from dither.local import aggregate_file

    try:
        return aggregate_file(path, channel)
    except OSError:
        raise ArgumentError(f"{path.name} cannot be read") from None


def _write(out: Path, found: Aggregate) -> None:
    from dither.errors import ArgumentError

    try:
        out.write_text(json.dumps(found.to_dict()) + "\n", encoding="utf-8")
    except OSError:
        raise ArgumentError(f"{out.name} cannot be written") from None


def _lines(source: str) -> list[str]:
    """The lines without their ends; an empty line is an empty text."""
    from dither.errors import ArgumentError

    data = sys.stdin.buffer.read() if source == "-" else Path(source).read_bytes()
    try:
        return data.decode("utf-8").splitlines()
    except UnicodeDecodeError:
        raise ArgumentError("values must be lines of text in UTF-8") from None


def _typed(channel: Channel, lines: list[str]) -> list[Any]:
    """Lines as the domain has its values: texts, whole numbers, true and false; or numbers."""
    from dither.local._numbers.numeric import NumericChannel

    if isinstance(channel, NumericChannel):
        return lines
    known: dict[str, Any] = {}
    for value in channel.domain.values:
        text = str(value).lower() if isinstance(value, bool) else str(value)
        # A text and a number that are written alike: the text, as lines are.
        if text not in known or isinstance(value, str):
            known[text] = value
    return [known.get(line, line) for line in lines]
