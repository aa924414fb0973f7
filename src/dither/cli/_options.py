"""Options that several commands share, and how their texts are read."""

from __future__ import annotations

import sys
from collections.abc import Callable, Collection, Iterator
from contextlib import contextmanager, nullcontext
from fractions import Fraction
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

import click
from click.core import ParameterSource

from dither._checks import exact
from dither._files import named
from dither.errors import ArgumentError

if TYPE_CHECKING:
    from dither import Question, Session

__all__ = [
    "FILE",
    "PAID",
    "RESERVATION",
    "Amount",
    "Group",
    "LocalPath",
    "WholeNumbers",
    "analyst_option",
    "ask",
    "charged_to",
    "confidence",
    "confidence_of",
    "delta",
    "epsilon",
    "names_in",
    "paid_options",
    "plot",
    "policy",
    "private_table",
    "purpose_option",
    "question_options",
    "refuse_given",
    "seed",
]


class LocalPath(click.Path[Any]):
    """A path of this machine: ``~`` is the own folder, and no address is taken for a file."""

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:
        """Refuse what lies elsewhere, then what `click.Path` refuses."""
        try:
            value = value if str(value) == "-" else str(named(value))
        except ArgumentError as error:
            self.fail(str(error), param, ctx)
        return super().convert(value, param, ctx)


FILE = LocalPath(dir_okay=False, path_type=Path)
Function = TypeVar("Function", bound=Callable[..., Any])


class Group(click.Group):
    """A group that lists its commands in the order of use, not of the alphabet."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        """As they were added."""
        return list(self.commands)


class Amount(click.ParamType[Fraction]):
    """An exact number: ``0.5``, ``1/2`` or ``1e-6``."""

    name = "number"

    def __init__(self, *, zero: bool = False) -> None:
        self.zero = zero

    def convert(
        self, value: Any, param: click.Parameter | None, ctx: click.Context | None
    ) -> Fraction:
        """Read the text exactly, as 0.1 is one tenth."""
        try:
            amount = exact("it", value)
        except ArgumentError:
            self.fail("give a number such as 0.5, 1/2 or 1e-6", param, ctx)
        if amount < 0 or (amount == 0 and not self.zero):
            self.fail("must be " + ("at least 0" if self.zero else "above 0"), param, ctx)
        return amount


class WholeNumbers(click.ParamType[tuple[int, ...]]):
    """Whole numbers with commas between."""

    name = "n,n,..."

    def convert(
        self, value: Any, param: click.Parameter | None, ctx: click.Context | None
    ) -> tuple[int, ...]:
        """Read the list."""
        if isinstance(value, tuple):
            return value
        try:
            sizes = tuple(int(part) for part in str(value).split(","))
        except ValueError:
            self.fail("give whole numbers, such as 100,1000,10000", param, ctx)
        if any(size < 1 for size in sizes):
            self.fail("sizes must be at least 1", param, ctx)
        return sizes


def names_in(text: str) -> list[str]:
    """Names with commas between; nothing between two of them names nothing.

    Examples
    --------
    >>> names_in("age, zip,,")
    ['age', 'zip']
    """
    return [name for part in text.split(",") if (name := part.strip())]


def refuse_given(names: Collection[str], needs: str) -> None:
    """Refuse options that were given where they would say nothing.

    Parameters
    ----------
    names : collection of str
        Of the command's parameters.
    needs : str
        What they go with.

    Raises
    ------
    click.UsageError
        Naming those that were given.
    """
    ctx = click.get_current_context()
    given = [
        param.opts[0]
        for param in ctx.command.params
        if param.name in names
        and ctx.get_parameter_source(param.name) is not ParameterSource.DEFAULT
    ]
    if given:
        go = "go" if len(given) > 1 else "goes"
        raise click.UsageError(f"{', '.join(given)} {go} with {needs}")


def _question(ctx: click.Context, param: click.Parameter, value: str) -> str:
    text = sys.stdin.read() if value == "-" else value
    if not text.strip():
        raise click.BadParameter("is empty; write a SELECT", ctx, param)
    return text


def _remember(ctx: click.Context, param: click.Parameter, value: Any) -> Any:
    ctx.meta[f"dither.{param.name}"] = value


def ask(session: Session, question: str) -> Question:
    """The question, with the weights and the way of finding keys that the options of it say."""
    meta = click.get_current_context().meta
    weights = {}
    for text in meta.get("dither.weights", ()):
        name, sign, number = text.rpartition("=")
        if not sign:
            raise click.UsageError("--weight takes NAME=NUMBER, such as n=2")
        weights[name] = number
    found = session.sql(question, weights=weights, discover=bool(meta.get("dither.discover")))
    limits = {name: meta.get(f"dither.{name}") for name in ("max_groups", "max_rows")}
    return found.within(**limits)


def private_table(session: Session, name: str | None) -> str:
    """The table that is asked: the only private one, or the one that is named."""
    private = [table.name for table in session.tables.values() if table.private]
    if name is not None:
        return name
    if len(private) == 1:
        return private[0]
    raise click.UsageError(f"--table must name one of {', '.join(sorted(private))}")


def question_options(function: Function) -> Function:
    """What every question needs: SQL, policy, who asks, and how keys and budget are used."""
    for decorate in (
        click.option(
            "--discover",
            is_flag=True,
            expose_value=False,
            callback=_remember,
            help="Find out which keys occur, at a cost in delta.",
        ),
        click.option(
            "--weight",
            "weights",
            multiple=True,
            metavar="NAME=NUMBER",
            expose_value=False,
            callback=_remember,
            help="The weight of an output when the budget is divided, where others have 1; may be "
            "repeated.",
        ),
        *(
            click.option(
                f"--max-{what}",
                type=click.IntRange(1),
                expose_value=False,
                callback=_remember,
                help=f"{meaning} of one unit that count, in place of the policy's limit.",
            )
            for what, meaning in (("rows", "Rows in a group"), ("groups", "Groups"))
        ),
        purpose_option,
        analyst_option,
        policy,
        click.argument("question", callback=_question),
    ):
        function = decorate(function)
    return function


analyst_option = click.option("--analyst", help="Who asks, where the policy caps analysts.")
purpose_option = click.option("--purpose", help="What for, where the policy caps purposes.")
policy = click.option(
    "--policy",
    type=FILE,
    default=Path("dither.toml"),
    show_default=True,
    help="The policy of the data's owner.",
)
delta = click.option(
    "--delta",
    type=Amount(zero=True),
    help="How much delta it may cost.  [default: the policy's release_delta]",
)


PAID = ("reservation", "reuse")
"""The names of the options of `paid_options`."""

RESERVATION = click.option(
    "--reservation",
    metavar="ID",
    expose_value=False,
    callback=_remember,
    help="Charge it to what was reserved under this id.",
)


def paid_options(function: Function) -> Function:
    """What a release may be charged to, and whether it has to be made: see `charged_to`."""
    reuse = click.option(
        "--reuse",
        is_flag=True,
        expose_value=False,
        callback=_remember,
        help="An earlier answer to the same request will do, free of charge.",
    )
    return RESERVATION(reuse(function))


@contextmanager
def charged_to(session: Session) -> Iterator[dict[str, Any]]:
    """Within, the session charges what ``--reservation`` says; gives what ``--reuse`` says."""
    meta = click.get_current_context().meta
    known = meta.get("dither.reservation")
    # Left out, the policy says it.
    given = {"reuse": True} if meta.get("dither.reuse") else {}
    with nullcontext() if known is None else session.using(known):
        yield given


def confidence_of(default: float, what: str) -> Callable[[Function], Function]:
    """The option ``--confidence``: of what, and how much where it is left out."""
    return click.option(
        "--confidence",
        type=click.FloatRange(0, 1, min_open=True, max_open=True),
        default=default,
        show_default=True,
        help=what,
    )


confidence = confidence_of(0.95, "Confidence of the intervals.")


def seed(what: str) -> Callable[[Function], Function]:
    """The option ``--seed``, of what is drawn and protects nobody."""
    return click.option(
        "--seed", type=click.IntRange(0), default=0, show_default=True, help=f"Seed of {what}."
    )


def epsilon(*, required: bool) -> Callable[[Function], Function]:
    """The option ``--epsilon``."""
    return click.option(
        "--epsilon",
        type=Amount(),
        required=required,
        help="How much epsilon it may cost, such as 0.5 or 1/2.",
    )


def plot(what: str) -> Callable[[Function], Function]:
    """The option ``--plot``: where to draw what is said here."""
    return click.option("--plot", "picture", type=FILE, help=f"Draw {what}: .png, .svg or .pdf.")
