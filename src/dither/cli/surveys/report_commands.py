"""The commands ``dither local privatize``, ``aggregate`` and ``estimate``: a survey by files."""

from __future__ import annotations

import csv
import io
import json
import sys
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from dither._format import count_text
from dither.cli._files import check_targets
from dither.cli._options import LocalPath, confidence, plot

if TYPE_CHECKING:
    from dither.local import Aggregate, Channel, Domain, PartCounts, Structure

__all__ = ["COMMANDS", "FILE", "OUT"]

FILE = LocalPath(exists=True, dir_okay=False, path_type=Path)
OUT = LocalPath(dir_okay=False, path_type=Path)
_MAGIC = b"DITHERLR"


@click.command(
    short_help="Randomise values, one person a line.",
    epilog="""\b
Examples:
  dither local privatize channel.json values.txt --out my.reports
  echo yes | dither local privatize channel.json - --out my.reports
""",
)
@click.argument("channel", type=FILE)
@click.argument("values", type=LocalPath(exists=True, dir_okay=False, allow_dash=True))
@click.option("--out", type=OUT, required=True, help="The file of reports to write.")
def privatize(channel: Path, values: str, out: Path) -> None:
    """Randomise VALUES, one person a line, through CHANNEL, a JSON file.

    VALUES may be - for standard input. CHANNEL is what `dither local best --out` wrote, or what
    `to_dict()` of a channel, a structure or an offer of channels gives. Only the file of reports
    may leave the device. A value that is missing or not in the domain is refused, and no report is
    written.

    \b
    What a line of VALUES holds depends on CHANNEL:
      a channel, heavy hitters    the value
      attributes, marginals       a row of CSV; the first line names the columns
      an offer of channels        a row of CSV, with the columns choice and value
      item sets, keys and values  JSON: ["bread", "milk"], or {"film": 4}

    A quoted field of CSV may hold line breaks.
    """
    from dither.local import Channel, write_reports

    check_targets(file=out)
    made = _carrier(channel)
    people, records = _records(made, _text(values))
    nothing: Any = [] if isinstance(made, Channel) else {}
    write_reports(out, made, made.privatize(*records) if people else nothing)
    whose = f"reports of {count_text(people, 'person', 'people')}"
    if isinstance(made, Channel):
        whose = count_text(people, "report")
    click.echo(f"{whose} by {made.kind} {made.hash[:8]}: {out}")
    click.echo(f"each promises: {made.guarantee}")


@click.command(
    short_help="Count files of reports.",
    epilog="Example: dither local aggregate channel.json *.reports --out counts.json",
)
@click.argument("channel", type=FILE)
@click.argument("files", type=FILE, nargs=-1, required=True)
@click.option("--out", type=OUT, required=True, help="The file of counts to write, as JSON.")
def aggregate(channel: Path, files: tuple[Path, ...], out: Path) -> None:
    """Count the reports in FILES, which must all be of CHANNEL.

    Each of FILES is a file of reports, or counts that this command wrote; none may be named twice.
    Reports that the channel could not have produced are left out, and the command says how many.
    """
    check_targets(file=out)
    _once(files)
    made, found, missing = _carrier(channel), None, 0
    for path in files:
        with _naming(path):
            one, lost = _counted(path, made)
            missing += lost
            found = one if found is None else found + one
    assert found is not None
    _write(out, found)
    click.echo(
        f"{count_text(found.n, 'report')} counted, {found.rejected:,} impossible and left out, "
        f"{missing:,} missing"
    )
    click.echo(f"counts: {out}")


@click.command(
    short_help="Estimate shares, or a mean, from counts.",
    epilog="""\b
Examples:
  dither local estimate counts.json
  dither local estimate counts.json --postprocess norm_sub --plot shares.png
""",
)
@click.argument("counts", type=FILE)
@click.option(
    "--postprocess",
    default="none",
    show_default=True,
    help="For shares: none, clip, norm_sub, base_cut, project, increasing or decreasing.",
)
@click.option(
    "--method",
    help="How to estimate: likelihood; for BloomRAPPOR, selection; for an offer of channels, "
    "weights, plugin, population or likelihood.",
)
@confidence
@click.option("--top", type=click.IntRange(1), help="For heavy hitters: how many texts at most.")
@click.option(
    "--candidates", type=FILE, help="For sketches: a file of values to look up, one a line."
)
@click.option("--out", type=OUT, help="Write the whole table as CSV.")
@plot("the estimate")
def estimate(
    counts: Path,
    postprocess: str,
    method: str | None,
    confidence: float,
    top: int | None,
    candidates: Path | None,
    out: Path | None,
    picture: Path | None,
) -> None:
    """Estimate from COUNTS: shares of values, means of numbers, by attribute or by key."""
    check_targets(file=out, picture=picture)
    with _naming(counts):
        read = _counts(counts)
    given: dict[str, Any] = {
        "method": method,
        "k": top,
        "candidates": None if candidates is None else _lines(_text(str(candidates))),
    }
    options = {name: value for name, value in given.items() if value is not None}
    found = read.estimate(postprocess, confidence=confidence, **options)
    click.echo(found.summary())
    if out is not None:
        found.frame.write_csv(out)
        click.echo(f"table: {out}")
    if picture is not None:
        found.plot(picture)
        click.echo(f"picture: {picture}")


COMMANDS = (privatize, aggregate, estimate)


def _once(files: tuple[Path, ...]) -> None:
    """Refuse a file that is named twice, by whatever path: its people would count twice."""
    seen: dict[tuple[int, int], Path] = {}
    for path in files:
        about = path.stat()
        place = (about.st_dev, about.st_ino)
        if place in seen:
            raise click.UsageError(
                f"{path} and {seen[place]} are one file, whose reports would count twice"
                if path != seen[place]
                else f"{path} is named twice, and its reports would count twice"
            )
        seen[place] = path


@contextmanager
def _naming(path: Path) -> Iterator[None]:
    """Errors that say which of the files they are about."""
    from dither.errors import ArgumentError

    try:
        yield
    except OSError:
        raise ArgumentError(f"{path}: cannot be read") from None
    except ArgumentError as error:
        raise ArgumentError(f"{path}: {error}") from None


_NEEDED = {
    "channel": "a channel as JSON, as `dither local best --out` writes it",
    "counts": "counts as JSON, as `dither local aggregate` writes them",
}


def _read(path: Path, wanted: str) -> Any:
    """The JSON of a channel or of counts; where the file is of another kind, the error says so.

    Raises
    ------
    ArgumentError
        It is not what is wanted.
    """
    from dither.errors import ArgumentError

    data = path.read_bytes()
    found, held = None, "something else"
    if data.startswith(_MAGIC):
        held = "reports"
    else:
        with suppress(ValueError, RecursionError):
            found = json.loads(data.decode("utf-8-sig"))
        if isinstance(found, dict):
            held = "counts" if "hash" in found else "a channel" if wanted == "counts" else "channel"
    if held != wanted:
        hint = "; are the arguments in the wrong order?" if held != "something else" else ""
        raise ArgumentError(f"must hold {_NEEDED[wanted]}, and holds {held}{hint}")
    return found


def _carrier(path: Path) -> Channel | Structure:
    from dither.local.wire import carrier_from_dict

    with _naming(path):
        return carrier_from_dict(_read(path, "channel"))


def _counts(path: Path) -> Aggregate | PartCounts:
    from dither.local.wire import counts_from_dict

    return counts_from_dict(_read(path, "counts"))


def _counted(path: Path, carrier: Channel | Structure) -> tuple[Any, int]:
    """The counts of a file, which must be of the carrier, and how many reports are missing."""
    from dither.errors import ArgumentError
    from dither.local import Aggregate, aggregate_file

    with path.open("rb") as file:
        if file.read(len(_MAGIC)) == _MAGIC:
            return aggregate_file(path, carrier)
    found = _counts(path)
    of = found.channel if isinstance(found, Aggregate) else found.structure
    if of.hash != carrier.hash:
        raise ArgumentError(
            f"the counts are of {of.kind} {of.hash[:8]}, not of {carrier.kind} {carrier.hash[:8]}"
        )
    return found, 0


def _write(out: Path, found: Aggregate | PartCounts) -> None:
    from dither.errors import ArgumentError

    try:
        out.write_text(json.dumps(found.to_dict()) + "\n", encoding="utf-8")
    except OSError:
        raise ArgumentError(f"{out.name} cannot be written") from None


def _text(source: str) -> str:
    from dither.errors import ArgumentError

    data = sys.stdin.buffer.read() if source == "-" else Path(source).read_bytes()
    try:
        return data.decode("utf-8-sig")
    except UnicodeDecodeError:
        raise ArgumentError("values must be lines of text in UTF-8") from None


def _lines(text: str) -> list[str]:
    """The lines without their ends; an empty line is an empty text.

    Only LF and CRLF end a line, or CR in a text without LF. What else `str.splitlines` splits at
    may stand in a value, and would make several reports of one person.
    """
    end = "\n" if "\n" in text else "\r"
    *lines, last = text.replace("\r\n", "\n").split(end)
    return [*lines, last] if last else lines


def _records(carrier: Channel | Structure, text: str) -> tuple[int, tuple[Any, ...]]:
    """How many people there are, and what `privatize` takes of them."""
    from dither.local import Channel, HeavyHitters, ItemSets, KeyValue, Personal

    lines = _lines(text)
    if isinstance(carrier, Channel):
        return len(lines), (_typed(carrier, lines),)
    if isinstance(carrier, HeavyHitters):
        return len(lines), (lines,)
    if isinstance(carrier, ItemSets):
        sets = _objects(lines, list, "a list of items")
        return len(sets), ([_as_domain(carrier.items, items) for items in sets],)
    if isinstance(carrier, KeyValue):
        pairs = _objects(lines, dict, "an object from key to value")
        return len(pairs), (
            [dict(zip(_as_domain(carrier.keys, list(p)), p.values(), strict=True)) for p in pairs],
        )
    if isinstance(carrier, Personal):
        table = _table(text, ["choice", "value"])
        values = _typed(carrier.channels[0], table["value"])
        return len(values), (values, _choices(carrier, table["choice"]))
    domains = _domains(carrier)
    table = _table(text, list(domains))
    columns = {name: _as_domain(domain, table[name]) for name, domain in domains.items()}
    return len(next(iter(columns.values()))), (columns,)


def _domains(carrier: Structure) -> dict[str, Domain]:
    from dither.local import Marginals

    if isinstance(carrier, Marginals):
        return carrier.domains
    return {str(name): part.domain for name, part in carrier.parts.items()}


def _choices(carrier: Any, column: list[str]) -> list[Any]:
    from dither.errors import ArgumentError

    if carrier.names is not None:
        return column
    try:
        return [int(choice) for choice in column]
    except ValueError:
        raise ArgumentError("choice must be a whole number: a place in the offer") from None


def _table(text: str, wanted: list[str]) -> dict[str, list[str]]:
    """The columns of a CSV that are wanted, which its first line names."""
    from dither.errors import ArgumentError

    # As in `_lines`; a CR that is neither quoted nor the end of a line is refused.
    file = io.StringIO(text, newline="\n" if "\n" in text else "")
    try:
        rows = list(csv.reader(file, strict=True))
    except csv.Error:
        raise ArgumentError("values must be rows of CSV, in which each quote is closed") from None
    if not rows:
        return {name: [] for name in wanted}
    names, *people = rows
    missing = [name for name in wanted if names.count(name) != 1]
    if missing:
        raise ArgumentError(
            f"values must be CSV whose first line names each column once: {', '.join(missing)}"
        )
    if any(len(row) != len(names) for row in people):
        bad = next(i for i, row in enumerate(people, start=2) if len(row) != len(names))
        raise ArgumentError(f"values must have as many columns in row {bad} as in the first")
    return {name: [row[names.index(name)] for row in people] for name in wanted}


def _objects(lines: list[str], kind: type, what: str) -> list[Any]:
    from dither.errors import ArgumentError

    found = []
    for i, line in enumerate(lines, start=1):
        try:
            record = json.loads(line)
        except (ValueError, RecursionError):
            record = None
        if not isinstance(record, kind):
            raise ArgumentError(f"values must hold {what} in each line, as JSON; line {i} does not")
        found.append(record)
    return found


def _typed(channel: Channel, lines: list[str]) -> list[Any]:
    """Lines as the channel has its values: those of its domain, or numbers."""
    return lines if hasattr(channel, "interval") else _as_domain(channel.domain, lines)


def _as_domain(domain: Domain, given: list[Any]) -> list[Any]:
    """Texts as the domain has its values: texts, whole numbers, true and false."""
    known: dict[str, Any] = {}
    for value in domain.values:
        text = str(value).lower() if isinstance(value, bool) else str(value)
        # A text and a number that are written alike: the text, as lines are.
        if text not in known or isinstance(value, str):
            known[text] = value
    return [known.get(one, one) if isinstance(one, str) else one for one in given]
