"""What every command that asks does with its question: explain it, preview it, or release it."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from contextlib import contextmanager, nullcontext
from fnmatch import fnmatch
from glob import glob
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

import click

from dither._files import written
from dither.cli._endings import Failed
from dither.cli._options import charged_to
from dither.cli._terminal import print_plan, say_saved, waiting
from dither.errors import ArgumentError

if TYPE_CHECKING:
    from dither import Session
    from dither._display import Explanation
    from dither.session._certificate import Certificate
    from dither.session._request import PricedQuestion

__all__ = [
    "answered",
    "check_free",
    "keep_sources",
    "print_explanation",
    "save_certificate",
    "writing",
]

Released = TypeVar("Released")


def check_free(explain: bool, preview: bool) -> bool:
    """Whether nothing will be spent.

    Raises
    ------
    UsageError
        Both were asked for.
    """
    if explain and preview:
        raise click.UsageError("give --preview or --explain, not both")
    return explain or preview


def _say(found: object) -> None:
    click.echo(f"{found}\nNothing is spent.")


def answered(
    asked: PricedQuestion[Released],
    session: Session,
    *,
    explain: bool = False,
    preview: Callable[[], Any] | None = None,
    show: Callable[[Any], None] = _say,
    as_json: bool = False,
    waits: str = "",
    **given: Any,
) -> Released | None:
    """Explain or preview a question, which spends nothing; else release it.

    Parameters
    ----------
    asked : PricedQuestion
    session : Session
        Of the question.
    explain : bool
    preview : callable, optional
        Gives the preview, where one was asked for.
    show : callable
        Prints it.
    as_json : bool
        Of the explanation.
    waits : str
        What is said while a release takes its time.
    **given
        Arguments of the release.

    Returns
    -------
    Released or None
        None where nothing was released.
    """
    if explain:
        print_explanation(asked.explain(), as_json)
        return None
    if preview is not None:
        show(preview())
        return None
    with waiting(waits) if waits else nullcontext(), charged_to(session) as paid:
        return asked.release(**given, **paid)


def keep_sources(session: Session, policy: Path, *targets: Path | None) -> None:
    """Refuse to write what a policy rests on: its file, its ledger, and its tables' files.

    Raises
    ------
    click.UsageError
        Before anything is spent.
    """
    held, patterns = session.policy, []
    kept = {policy.resolve()}
    if isinstance(held.ledger, Path):
        kept.add(held.ledger.resolve())
    for table in held.tables.values():
        for text in _texts(table.source.source):
            place = (held.folder / text).resolve()
            named = glob(str(place), recursive=True)  # noqa: PTH207 - as engines find files
            kept |= {place} | {Path(found).resolve() for found in named}
            patterns.append(str(place))
    for target in filter(None, targets):
        whole = target.resolve()
        # A new file where a table's files are would be read as rows of it the next time.
        if kept & {whole, *whole.parents} or any(fnmatch(str(whole), each) for each in patterns):
            raise click.UsageError(
                f"{str(target)!r} is what the policy rests on, or lies where a table's rows are "
                "read from; name another file"
            )


def _texts(source: str | tuple[str, ...] | None) -> tuple[str, ...]:
    return (source,) if isinstance(source, str) else source or ()


@contextmanager
def writing() -> Iterator[None]:
    """Within, files are written of what was charged before; where one cannot be, that is said.

    Raises
    ------
    Failed
        With what is left to do: the question itself was no mistake.
    """
    try:
        yield
    except (ArgumentError, OSError) as error:
        # The text of the system's own error may name what is none of the reader's.
        said = f"{error}. " if isinstance(error, ArgumentError) else "a file cannot be written. "
        raise Failed(
            f"{said}What was charged stays charged: a saved model gives its rows by --from, and "
            "the same command with --reuse gives the answer again, free"
        ) from error


def print_explanation(found: Explanation, as_json: bool = False) -> None:
    """The plan for people, or for programs."""
    if as_json:
        click.echo(json.dumps(found.to_dict(), indent=2, ensure_ascii=False))
    else:
        print_plan(found)


def save_certificate(path: Path | None, certificate: Certificate) -> None:
    """Under its name once all of it is on the disk."""
    if path is not None:
        written(path, (certificate.to_json() + "\n").encode("utf-8"))
        say_saved(path)
