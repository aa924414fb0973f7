"""The questions of a policy's six steps, asked in a terminal, and written into its draft."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

import click

from dither.errors import DitherError
from dither.plan.schema import Kind
from dither.policy.steps import QUESTIONS, STEPS, PolicyQuestion, TomlText, answered, asked
from dither.policy.steps._questions import ROW, kinds_for, words

__all__ = ["ask_steps"]

DATED = {Kind.DATE, Kind.TIMESTAMP}


def ask_steps(text: str, stored: Mapping[str, Kind | None], *, whose: bool) -> str:
    """Ask what a draft leaves open, step by step.

    Parameters
    ----------
    text : str
        The draft, of one table.
    stored : mapping of str to Kind or None
        Its columns and their kinds.
    whose : bool
        Whether it is still to be said whose a row is.

    Returns
    -------
    str
        The draft with what was answered. Whoever ends the input leaves the rest as it was drafted.
    """
    _say(
        "Enter leaves a question out, Ctrl-D all that follow. No value of the data is read or "
        "suggested."
    )
    asking = _Asking(TomlText(text), stored)
    try:
        for step in STEPS:
            asking.step(step, whose=whose)
    except click.Abort as abort:
        if not isinstance(abort.__context__, EOFError):
            raise
        click.echo(err=True)
    return asking.held.text


class _Asking:
    """A draft of one table while its questions are asked."""

    def __init__(self, held: TomlText, stored: Mapping[str, Kind | None]) -> None:
        self.held, self.stored = held, stored
        (self.table,) = held.document["tables"]
        self._begun = ""

    @property
    def kinds(self) -> dict[str, Kind]:
        """By column: as what it is read."""
        return kinds_for(self.held, self.table, self.stored)

    def said(self, *path: str) -> bool:
        """Whether the draft says something of its table."""
        return self.held.get(("tables", self.table, *path)) is not None

    def step(self, step: str, *, whose: bool) -> None:
        """Ask what a step asks."""
        for one in QUESTIONS.values():
            if one.step != step or one.key == "source" or (one.key == "unit" and not whose):
                continue
            if one.of == "policy" and (one.key != "lifetime" or self.said("block")):
                self.ask(one)
            elif one.of == "table" and self._fits(one):
                self.ask(one, self.table)
            elif one.of == "analyst":
                self._analysts(one)
        for column in list(self.kinds):
            if column != self.held.get(("tables", self.table, "unit")):
                for one in self._of_column(step, column):
                    self.ask(one, self.table, column)

    def _fits(self, one: PolicyQuestion) -> bool:
        """Whether a question has a meaning after what was answered."""
        match one.key:
            case "max_rows" | "max_groups":
                return self.said("unit")
            case "block_column":
                return bool(DATED & set(self.kinds.values()))
            case "block_every":
                return self.said("block")
        return True

    def _of_column(self, step: str, column: str) -> Iterator[PolicyQuestion]:
        """The questions of a step about a column, each after what was answered before."""
        untyped = set(self.stored.values()) <= {Kind.TEXT, None}
        for one in QUESTIONS.values():
            if one.step != step or one.of != "column":
                continue
            # A source that knows types says them itself.
            fits = untyped if one.key == "type" else True
            fits = fits and (not one.kinds or self.kinds[column].value in one.kinds)
            bounded = self.held.get(QUESTIONS["bounds"].path(self.table, column)) is not None
            if fits and not (one.key == "values" and bounded):
                yield one

    def _analysts(self, one: PolicyQuestion) -> None:
        """Who may ask, until nobody is named any more."""
        self._head(one.step)
        click.echo(err=True)
        while name := _typed("Who may ask? (a name; Enter: nobody else)"):
            self.ask(one, name)
            click.echo(err=True)

    def _head(self, step: str) -> None:
        if self._begun == step:
            return
        self._begun, said = step, words()[f"step_{step}"]
        click.echo(err=True)
        click.secho(f"{STEPS.index(step) + 1}. {said['title']}", bold=True, err=True)
        _say(said["about"])

    def ask(self, one: PolicyQuestion, *named: str) -> None:
        """Ask one question until it is answered or left out."""
        self._head(one.step)
        said = words()[one.key]
        of = dict(zip(("table", "column"), named, strict=False))
        of = {"analyst": named[0]} if one.of == "analyst" else of
        now = asked(self.held, one.key, *named)
        click.echo(err=True)
        click.echo(said["question"].format(**of) if of else said["question"], err=True)
        _say(said["meaning"])
        _say(f"Enter: {now}" if now else f"Left out: {said['left_out']}")
        columns = ", ".join(self.stored)
        if one.key == "unit":
            _say(f"One of {columns}; or the word row, where each is another person.")
        kind = self.kinds.get(named[1]) if one.of == "column" else None
        while typed := _typed(">"):
            if one.key == "unit" and typed == "row" and typed not in self.stored:
                typed = ROW
            elif one.key in ("unit", "block_column") and self.stored and typed not in self.stored:
                _say(f"There is no such column. There are: {columns}.")
                continue
            try:
                self.held = answered(self.held, one.key, typed, *named, kind=kind)
                return
            except DitherError as error:
                _say(f"{error}.")


def _typed(prompt: str) -> str:
    found: str = click.prompt(prompt, default="", show_default=False, prompt_suffix=" ", err=True)
    return found.strip()


def _say(text: str) -> None:
    click.echo(click.wrap_text(text, 80, "   ", "   "), err=True)
