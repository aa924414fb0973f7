"""The command ``dither audit``: try to refute what a mechanism claims."""

from __future__ import annotations

import importlib
import json
import sys
from collections.abc import Iterable, Iterator
from fractions import Fraction
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from dither._format import at_least, level
from dither.cli._children import guarded
from dither.cli._files import check_targets
from dither.cli._options import Amount, confidence_of, plot, refuse_given
from dither.cli._terminal import INCONCLUSIVE, VIOLATED, waiting
from dither.errors import nearest

if TYPE_CHECKING:
    from dither._subjects import Subject
    from dither.lab.audit import Audit, ChannelAudit

__all__ = ["audit"]

_OF_ALL = 20_000
_OF_ONE = 100_000
_OF_INPUTS = 200_000


@click.command(
    short_help="Try to refute what a mechanism claims.",
    epilog="""\b
Examples:
  dither audit --planted            the auditor on known mistakes
  dither audit --all                the auditor on all mechanisms of dither
  dither audit mine.py:noisy_count --epsilon 1 --d0 "[1, 2]" --d1 "[1, 2, 3]"
  dither audit mine:noisy_mean --epsilon 1 --d0 mine:ages --d1 mine:fewer
  dither audit mine:total --epsilon 0.1 --d0 "[]" --d1 mine:ten --distance 10
  dither audit mine:vector --d0 mine:a --d1 mine:b --score mine:suspicion
  dither audit mine:response --epsilon 1 --inputs "[0, 1, 2, 3]"
""",
)
@click.argument("target", metavar="[MODULE:FUNCTION]", required=False)
@click.option("--all", "everything", is_flag=True, help="Audit every mechanism of dither.")
@click.option("--planted", is_flag=True, help="Audit mechanisms with a known mistake.")
@click.option("--epsilon", type=Amount(zero=True), default="1", show_default=True,
              help="The claimed epsilon.")  # fmt: skip
@click.option("--delta", type=Amount(zero=True), default="0", show_default=True,
              help="The claimed delta.")  # fmt: skip
@click.option("--mu", type=float, help="The claimed mu of Gaussian privacy, in place of both.")
@click.option("--d0", metavar="JSON|MODULE:NAME", help="One dataset.")
@click.option("--d1", metavar="JSON|MODULE:NAME", help="Its neighbour.")
@click.option("--inputs", metavar="JSON|MODULE:NAME",
              help="All inputs of a local channel, in place of two datasets.")  # fmt: skip
@click.option("--distance", type=click.IntRange(1), default=1, show_default=True,
              help="How many neighbours apart the two are; with no --delta.")  # fmt: skip
@click.option("--score", metavar="MODULE:FUNCTION",
              help="What to look at: a number of each output; with --inputs, of an output and an "
              "input.")  # fmt: skip
@click.option(
    "--samples",
    type=click.IntRange(1),
    help="Outputs to draw from each dataset, or of all --inputs together.  [default: 100000; "
    "20000 with --all; 200000 with --inputs]",
)
@confidence_of(0.99, "The chance that no certified bound is wrong; verdicts are surer.")
@click.option(
    "--vectorised/--single",
    default=None,
    help="Whether FUNCTION takes (data, size).  [default: if its second argument is size]",
)
@click.option(
    "--time-limit", type=click.FloatRange(0), help="Seconds of sampling for each mechanism."
)
@plot("the events")
def audit(
    target: str | None,
    everything: bool,
    planted: bool,
    epsilon: Fraction,
    delta: Fraction,
    mu: float | None,
    d0: str | None,
    d1: str | None,
    inputs: str | None,
    distance: int,
    score: str | None,
    samples: int | None,
    confidence: float,
    vectorised: bool | None,
    time_limit: float | None,
    picture: Path | None,
) -> None:
    """Call a mechanism on two neighbouring datasets, and look for an event that refutes its claim.

    Of a local channel any two inputs are neighbours: with --inputs all are tried at once.

    Half of the outputs choose a few events, the other half bounds their probabilities. With
    --score, which takes one output, or all of them where FUNCTION takes size, a fifth chooses. The
    verdict is "violated" or "not refuted"; nothing is ever verified. Ctrl-C stops sampling and
    judges what was drawn.

    Exit code 1 if a claim is violated; with --planted, if a mistake is not caught. Exit code 2 if
    the command line is wrong, 4 if --samples are too few for any verdict. Exit code 3 if nothing
    was audited: every call failed, no difference was seen, nor between scores, both datasets are
    the same, or FUNCTION ended its process.
    """
    if sum((target is not None, everything, planted)) != 1:
        raise click.UsageError("give MODULE:FUNCTION, --all or --planted, one of them")
    options = {"confidence": confidence, "time_limit": time_limit}
    if target is None:
        refuse_given(
            (
                "epsilon",
                "delta",
                "mu",
                "d0",
                "d1",
                "inputs",
                "distance",
                "score",
                "vectorised",
                "picture",
            ),
            "MODULE:FUNCTION",
        )
        _table(_subjects(planted), samples or (_OF_ONE if planted else _OF_ALL), planted, options)
        return
    if mu is not None:
        refuse_given(("epsilon", "delta"), "a claim of epsilon and delta, not with --mu")
    check_targets(picture=picture)
    if inputs is not None:
        refuse_given(
            ("mu", "d0", "d1", "distance", "time_limit", "picture"), "two datasets, not --inputs"
        )
        given: dict[str, Any] = {"epsilon": epsilon, "delta": delta, "vectorised": vectorised}
        given |= {"samples": samples or _OF_INPUTS, "confidence": confidence}
        guarded(lambda: _channel(target, inputs, score, **given), target)
        return
    if d0 is None or d1 is None:
        raise click.UsageError("give both --d0 and --d1, as JSON or as MODULE:NAME")
    claim = {"epsilon": epsilon, "delta": delta, "mu": mu, "vectorised": vectorised}
    options |= {"samples": samples or _OF_ONE, "distance": distance}
    guarded(lambda: _one(target, d0, d1, score, picture, **claim, **options), target)


def _one(
    target: str, d0: str, d1: str, score: str | None, picture: Path | None, **options: Any
) -> None:
    """Audit a function of others, print what was found, and leave with the exit code."""
    from dither.lab.audit import audit as run

    mechanism, here, there = _function(target), _data("--d0", d0), _data("--d1", d1)
    options["score"] = _scorer(score)
    with waiting("sampling and certifying"):
        found = run(mechanism, here, there, **options)
    click.echo(found.summary())
    if picture is not None:
        found.plot(picture)
        click.echo(f"picture: {picture}")
    _leave(found)


def _channel(target: str, inputs: str, score: str | None, **options: Any) -> None:
    """The same for a local channel, over all of its inputs."""
    from dither.lab.audit import audit_channel

    channel, known = _function(target), _data("--inputs", inputs)
    options["score"] = _scorer(score)
    with waiting("sampling and certifying"):
        found = audit_channel(channel, known, **options)
    click.echo(found.summary())
    _leave(found)


def _function(target: str, option: str = "") -> Any:
    found = _named(target)
    if not callable(found):
        raise click.UsageError(f"{option}{target} is not a function")
    return found


def _scorer(score: str | None) -> Any:
    return None if score is None else _function(score, "--score ")


def _leave(found: Audit | ChannelAudit) -> None:
    from dither.lab.audit import Outcome

    if found.verdict is Outcome.VIOLATED:
        sys.exit(VIOLATED)
    if found.verdict is Outcome.INCONCLUSIVE:
        sys.exit(INCONCLUSIVE)


def _subjects(planted: bool) -> Iterator[Subject]:
    if planted:
        from dither.examples.planted import planted_bugs

        yield from planted_bugs()
        return
    from dither import graph, inference, learn, local, mechanisms, places, series, synth
    from dither._subjects import declared

    yield from declared(mechanisms, local, graph, inference, synth, learn, places, series)


def _table(
    subjects: Iterable[Subject],
    samples: int,
    planted: bool,
    options: dict[str, Any],
) -> None:
    """Audit one after the other, print them as a table, and leave with the exit code."""
    from dither.cli._terminal import console, new_table, print_paragraphs
    from dither.lab.audit import Outcome
    from dither.lab.audit import audit as run

    table = new_table()
    table.add_column("mechanism", no_wrap=True)
    if not planted:
        table.add_column("claimed", no_wrap=True)
    table.add_column("ε ≥", justify="right")
    table.add_column("verdict", overflow="fold", min_width=11)
    if planted:
        table.add_column("what is wrong", overflow="fold")
    else:
        table.add_column("seconds", justify="right")
    violated = idle = done = 0
    stopped = False
    for subject in subjects:
        try:
            with waiting(f"auditing {subject.name}"):
                found = run(
                    subject.mechanism,
                    subject.d0,
                    subject.d1,
                    subject.epsilon,
                    subject.delta,
                    samples=samples,
                    **options,
                )
        except KeyboardInterrupt:
            stopped = True
            break
        done += 1
        violated += found.verdict is Outcome.VIOLATED
        idle += found.verdict is Outcome.INCONCLUSIVE
        row = [at_least(found.lower), _verdict(found)]
        if planted:
            table.add_row(subject.name, *row, subject.about)
        else:
            table.add_row(subject.name, str(found.claimed), *row, f"{found.seconds:.1f}")
    console().print(table)
    console().print()
    print_paragraphs(
        f"{violated} of {done} violated, from {samples:,} outputs of each dataset. "
        f"ε ≥ is certified, at {level(options['confidence'])} confidence each."
        + (" Every one claims ε = 1." if planted else "")
        + (f" {idle} inconclusive: nothing of them was audited." if idle else "")
        + (" Stopped early." if stopped else "")
    )
    if violated < done:
        print_paragraphs(Outcome.NOT_REFUTED.sentence)
    if stopped or (violated < done if planted else violated > 0):
        sys.exit(VIOLATED)
    if idle or not done:
        sys.exit(INCONCLUSIVE)


def _verdict(found: Audit) -> str:
    return str(found.verdict) + (", reuse" if found.reuse else "")


def _named(text: str) -> Any:
    """What MODULE:NAME or FILE.py:NAME is."""
    where, sign, name = text.rpartition(":")
    if not sign or not where or not name.isidentifier():
        raise click.UsageError(f"{text} must be MODULE:NAME, such as mine:noisy_count")
    here = str(Path.cwd())
    if where.endswith(".py"):
        path = Path(where)
        here, where = str(path.resolve().parent), path.stem
    sys.path.insert(0, here)
    try:
        module = importlib.import_module(where)
    except ModuleNotFoundError as error:
        if error.name and where.split(".")[0] == error.name.split(".")[0]:
            raise click.UsageError(f"no module {where} here or installed") from None
        raise
    except SystemExit:
        raise click.UsageError(
            f"{where} ends the program when it is imported: keep what it does as a script under "
            'if __name__ == "__main__"'
        ) from None
    finally:
        sys.path.remove(here)
    if not hasattr(module, name):
        known = [n for n in vars(module) if not n.startswith("_")]
        raise click.UsageError(f"{where} has no {name!r}{nearest(name, known)}")
    return getattr(module, name)


def _data(option: str, text: str) -> Any:
    """A dataset: JSON, or what MODULE:NAME is."""
    try:
        return json.loads(text)
    except json.JSONDecodeError:
        if ":" in text and not text.lstrip().startswith(("[", "{", '"')):
            return _named(text)
        raise click.UsageError(f"{option} must be JSON, or MODULE:NAME") from None
