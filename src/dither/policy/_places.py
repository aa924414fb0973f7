"""Where a policy says that the rows of a table are: a file, or a table of a named engine."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from dither._environment import PREFIX
from dither._files import named
from dither.engines import Backend, Engine, backend, engine_names
from dither.engines.deadline import LONGEST
from dither.errors import ArgumentError, PolicyError, nearest
from dither.policy._fields import Reader
from dither.policy._units import TableUnit

if TYPE_CHECKING:
    from dither.policy._policy import DeclaredTable

__all__ = [
    "DeclaredSource",
    "as_path",
    "check_places",
    "check_sources",
    "of_files",
    "read_engine",
    "read_source",
]

MOST_THREADS = 1024


@dataclass(frozen=True, slots=True)
class DeclaredSource:
    """The fields of a policy that say where one table's rows are.

    Parameters
    ----------
    engine : str
    source : str or tuple of str, optional
        As the engine has it, or a list of files; ``None`` where a frame is to be given.
    format, table, delimiter : str, optional
    where : str
        The full name of the field that holds the source.
    """

    engine: str
    source: str | tuple[str, ...] | None
    format: str | None
    table: str | None
    delimiter: str | None
    where: str


def read_source(body: Reader, default: str) -> DeclaredSource:
    """Read ``source``, and what stands beside it or inside of it.

    Parameters
    ----------
    body : Reader
        Of ``[tables.NAME]``.
    default : str
        The engine of a source that is a text.

    Raises
    ------
    PolicyError
        Where the source names no engine, or two, or a field stands twice.
    """
    where = body.name("source")
    beside = {field: body.text(field) for field in ("format", "table")}
    delimiter = _delimiter(body)
    given = body.take("source")
    if not isinstance(given, Mapping):
        text = _texts(body, "source")
        return _checked(
            DeclaredSource(default, text, beside["format"], beside["table"], delimiter, where)
        )
    inner = Reader(given, where)
    known = [name for name in engine_names() if inner.take(name) is not None]
    if len(known) != 1:
        offered = " or ".join(f'{{ {name} = "…" }}' for name in engine_names())
        other = next((name for name in given if name not in engine_names()), "")
        raise PolicyError(
            f"{where} names {'two engines' if known else 'no engine'}; write a file's name, or one "
            f"of {offered}" + ("" if known or not other else nearest(other, engine_names()))
        )
    fields: dict[str, str | None] = {}
    for field, outside in (*beside.items(), ("delimiter", delimiter)):
        inside = _delimiter(inner) if field == "delimiter" else inner.text(field)
        if inside is not None and outside is not None:
            raise PolicyError(
                f"{inner.name(field)} and {body.name(field)} say the same; keep the first"
            )
        fields[field] = outside if inside is None else inside
    source = _texts(inner, known[0])
    inner.finish()
    return _checked(DeclaredSource(known[0], source, **fields, where=inner.name(known[0])))


def _texts(body: Reader, field: str) -> str | tuple[str, ...] | None:
    """A text, or a list of some."""
    value = body.take(field)
    if not isinstance(value, list):
        return body.text(field)
    if not value or not all(isinstance(name, str) and name.strip() for name in value):
        raise PolicyError(f"{body.name(field)} must be the name of a file, or a list of some")
    return tuple(value)


def as_path(source: str | Path, where: str) -> Path:
    """The file, pattern or folder of this machine that a source names.

    Raises
    ------
    PolicyError
        Where it is the address of something elsewhere.
    """
    try:
        return named(source)
    except ArgumentError as error:
        raise PolicyError(f"{where} {error}") from None


def of_files(engine: Backend) -> bool:
    """Whether what an engine reads are files that dither opens."""
    return any(form.is_file for form in engine.formats.values())


def _checked(declared: DeclaredSource) -> DeclaredSource:
    """Refuse a text that its engine knows to be wrong where it stands, such as a password."""
    if of_files(backend(declared.engine)):
        source = declared.source
        if isinstance(source, str):
            source = str(as_path(source, declared.where))
        elif source is not None:
            source = tuple(str(as_path(one, declared.where)) for one in source)
        declared = replace(declared, source=source)
    if isinstance(declared.source, str) and not declared.source.startswith(PREFIX):
        for form in backend(declared.engine).formats.values():
            fault = form.fault(declared.source) if form.fault else None
            if fault is not None:
                raise PolicyError(f"{declared.where} {fault}")
    return declared


def _delimiter(body: Reader) -> str | None:
    given = body.take("delimiter")
    if given is None:
        return None
    if not isinstance(given, str) or len(given) != 1 or given in '"\r\n\\':
        raise PolicyError(
            f"{body.name('delimiter')} must be one character, such as ';' or a tab, not a quote"
        )
    return given


def read_engine(body: Reader, folder: Path) -> dict[str, Any]:
    """Read ``[engine]``: what all engines know, and each engine's own fields.

    Raises
    ------
    PolicyError
        For a field that no engine has, or a value that an engine does not take.
    """
    options: dict[str, Any] = {
        "name": body.text("name") or "duckdb",
        "memory": body.text("memory"),
        "threads": body.whole("threads", MOST_THREADS),
        "temp": body.text("temp"),
        "timeout": _seconds(body, "timeout"),
    }
    if options["temp"] is not None:
        options["temp"] = str(folder / as_path(str(options["temp"]), body.name("temp")))
    backend(str(options["name"]))
    # The packages of engines that nobody names stay unread, unless a field is left over.
    for name in engine_names() if body.left() else ():
        for field, read in backend(name).options.items():
            value = body.take(field)
            options[field] = None if value is None else read(body.name(field), value)
    body.finish()
    return options


def _seconds(body: Reader, field: str) -> int | None:
    value = body.take(field)
    if value is None:
        return None
    if isinstance(value, bool) or not isinstance(value, int) or not 1 <= value <= LONGEST:
        raise PolicyError(f"{body.name(field)} must be whole seconds, from 1 to {LONGEST:,}")
    return value


def check_sources(
    tables: Mapping[str, DeclaredTable],
    units: Mapping[str, TableUnit],
    folder: Path,
    given: Mapping[str, Any] | None = None,
) -> None:
    """Rows under two names are the same rows: what protects them is said once.

    Raises
    ------
    PolicyError
        Two private tables read one file, one table of a database or one frame for two units.
    """
    seen: dict[Any, str] = {}
    for name, table in tables.items():
        place = _place(table, (given or {}).get(name), folder)
        if place is None or not table.private:
            continue
        _check_unit(seen.setdefault(place, name), name, units)


def check_places(
    tables: Mapping[str, DeclaredTable], units: Mapping[str, TableUnit], engine: Engine
) -> None:
    """As ``check_sources``, once the engines know what their sources are.

    Raises
    ------
    PolicyError
        Two private tables share rows, and name two units.
    """
    seen: dict[Any, str] = {}
    for name, table in tables.items():
        for place in engine.places(name) if table.private else ():
            _check_unit(seen.setdefault(place, name), name, units)


def _check_unit(first: str, name: str, units: Mapping[str, TableUnit]) -> None:
    if units[first].name != units[name].name or units[first].by != units[name].by:
        raise PolicyError(
            f"tables.{first} and tables.{name} read the same rows for two units "
            f"({units[first].name!r}, {units[name].name!r}), and neither account would know "
            "what the other spends: declare one unit for both, or leave one table out"
        )


def _place(table: DeclaredTable, given: Any, folder: Path) -> Any:
    """What two tables have in common that read one source; ``None`` where there is none."""
    declared = table.source
    if given is not None and not isinstance(given, str | Path | Mapping):
        return id(given), None
    if isinstance(given, Mapping):
        declared = read_source(Reader({"source": given}, f"sources.{table.name}"), declared.engine)
    source = declared.source if given is None or isinstance(given, Mapping) else given
    # Which files several are, the engine finds, and ``check_places`` compares.
    if not isinstance(source, str | Path):
        return None
    if given is not None and of_files(backend(declared.engine)):
        source = as_path(source, f"sources.{table.name}")
    engine = backend(declared.engine)
    form = _form(declared, source, engine)
    inner = declared.table or (table.name if form is not None and form.holds_tables else None)
    if form is not None and not form.is_file:
        return declared.engine, str(source), inner
    return _file(Path(source) if given is not None else folder / source), inner


def _form(declared: DeclaredSource, source: str | Path, engine: Backend) -> Any:
    """The form of a source, where that is known already."""
    if declared.format is not None and declared.format in engine.formats:
        return engine.formats[declared.format]
    name = str(source).lower()
    return next((f for f in engine.formats.values() if name.endswith(f.endings or "\x00")), None)


def _file(path: Path) -> Any:
    """What is one for all names and links of one file."""
    try:
        found = path.stat()
    except OSError:
        return path.resolve()
    return found.st_dev, found.st_ino
