"""A whole run: a model, the rows, and what it may cost."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

import torch
from torch import nn

from dither import _checks as check
from dither._checks import Number
from dither._format import cost_text, number_text
from dither.errors import ArgumentError, BudgetError, EngineError, PromiseError, TokenError
from dither.learn.deep._account import Billing, bill_of
from dither.learn.deep._centre import buffers_of
from dither.learn.deep._checkpoint import RunCheckpoint, bound
from dither.learn.deep._data import as_pair
from dither.learn.deep._optimizer import MEMORY, PrivateOptimizer, Source
from dither.learn.deep._order import FixedOrder
from dither.learn.deep._training import POINTS, Progress, Training
from dither.learn.deep.noise._steps import CorrectedAdam
from dither.learn.deep.rows._clipping import Clip
from dither.learn.deep.rows._gradients import PerExampleLoss, cross_entropy
from dither.learn.deep.rows._model import (
    check_rows_alone,
    evaluating,
    made_up_rows,
    modes_of,
    trainable,
)
from dither.learn.deep.state._guard import Guard, StateChanged
from dither.privacy import Neighbours

if TYPE_CHECKING:
    from dither.ledger import Ledger

__all__ = ["train"]


def train(
    model: nn.Module,
    data: Any,
    *,
    epsilon: Number | None = None,
    delta: Number | None = None,
    noise_multiplier: Number | None = None,
    steps: int | None = None,
    rate: Number | None = None,
    order: FixedOrder | None = None,
    learning_rate: float | None = None,
    momentum: float = 0.0,
    optimizer: str | Callable[[Any], torch.optim.Optimizer] = "sgd",
    average: bool = True,
    clip: Clip | Number | str = 1.0,
    loss: PerExampleLoss | None = None,
    population: Number | None = None,
    neighbours: Neighbours | str = Neighbours.ADD_REMOVE,
    exact: bool | None = None,
    physical: int | None = None,
    memory: int = MEMORY,
    ghost: bool | None = None,
    watch: Any = None,
    stop: Callable[[Progress], bool] | None = None,
    progress: bool | Callable[[Progress], None] | None = None,
    words: Source | None = None,
    checkpoint: str | Path | None = None,
    every: int = 10,
    ledger: Ledger | None = None,
    accounts: str | Sequence[str] = (),
    unit: str | None = None,
    token: str | None = None,
    tables: Mapping[str, str] | None = None,
) -> Training:
    """Train a model of torch under differential privacy.

    Parameters
    ----------
    model : torch.nn.Module
        It is trained in place, on the device and in the mode that it is in. What is to stay as it
        is has ``requires_grad=False``.
    data : pair (X, y)
        Arrays or tensors, one row for each example. X on a scale near 1 and about 0: what all rows
        share takes its part of each clipped gradient and of the noise. To shift and divide by what
        is possible (pixels to -1 to 1) is free, by what was seen is not: a first layer
        `dither.learn.deep.Centre` finds the mean with noise, as a part of what the run costs.
    epsilon, delta : number
        What the whole run costs; delta in (0, 1), far below one over the number of rows.
    noise_multiplier : number, optional
        Instead of epsilon: deviation of the noise over the clip.
    steps : int, optional
        How many steps are planned; all are charged. Without it, 100.
    rate : number, optional
        The chance of each example to be in a step's sample, in (0, 1]; without it, 0.4. The more
        are in it, the less noise there is for the same epsilon, and the longer it takes.
    order : FixedOrder, optional
        In the place of steps and rate: every row once an epoch, for where nothing can be sampled;
        see `dither.learn.deep.FixedOrder`.
    learning_rate : float, optional
        Without it, 4 for ``"sgd"``, which is made for a clip of 1 without momentum, and 0.01 for
        ``"adam"``.
    momentum : float
        Of ``"sgd"``, in [0, 1).
    optimizer : str or callable
        ``"sgd"``; ``"adam"``, with the noise taken out of its second moments; or a function from
        parameters to an optimiser of torch.
    average : bool
        Whether the model's parameters are in the end the means over the later half of the steps,
        which have less noise in them.
    clip, loss, population, neighbours, exact, physical, memory, ghost, words
        As of `PrivateOptimizer`.
    watch : pair (X, y), optional
        Rows, held out, whose loss and accuracy are measured as it goes, without noise: numbers that
        may be published only if those rows may be.
    stop : callable, optional
        Told where the run is, some twenty times; True ends it. What was planned stays charged: when
        a run ends may say something of the rows.
    progress : bool or callable, optional
        Whether to show a line of progress; without it, in a terminal. Or a function to be told.
    checkpoint : str or Path, optional
        A file that keeps the run. Where it exists already, the run goes on from there, exactly and
        once, at no new cost: call `train` again as before. It is as secret as the rows until the
        run ends; `dither.learn.deep._checkpoint` says what is proved.
    every : int
        After how many steps it is written.
    ledger : Ledger, optional
        Where the whole run is charged, before its first step.
    accounts : str or sequence of str
        The accounts of the ledger that bear it, each in full.
    unit : str
        Whom they protect: whose row it is.
    token : str, optional
        A name for this run: under it the account is charged once. A run that goes on from its
        checkpoint finds its charge again; any other run is refused under it.
    tables : mapping of str to str, optional
        The private tables that the rows are from, each with what says whose a row is, as of
        ``Ledger.charge``.

    Returns
    -------
    Training
        With ``model``, ``loss``, ``summary()`` and ``plot()``.

    Raises
    ------
    ArgumentError
        Before any row is read: an argument is out of range, the model mixes rows or has nothing to
        train, or epsilon cannot be reached in so many steps.
    EngineError
        The model or the loss failed on some row; the message is always the same.
    BudgetError, PromiseError, TokenError
        The ledger refuses: nothing was charged, and no row was read.

    Notes
    -----
    *Guarantee.* (epsilon, delta)-DP of the trained parameters for one row, of these neighbours;
    what it covers, and what not, stands with `PrivateOptimizer`. Two runs cost twice:
    ``first.loss + second.loss``; choosing learning rates on the rows costs a run for each choice.
    With a ledger all planned steps are charged, ``fit.loss``, on its disk before the first of them:
    a run that is killed or stopped early has cost as much (`dither.learn.deep._account`).

    Examples
    --------
    >>> import torch
    >>> from dither import learn
    >>> X = torch.rand(400, 2)
    >>> model = torch.nn.Linear(2, 2)
    >>> fit = learn.train(model, (X, X[:, 0] > X[:, 1]), epsilon=3, delta=1e-5, steps=30)
    >>> fit.loss.charge.epsilon, fit.steps
    (Fraction(3, 1), 30)
    """
    own = list(trainable(model).values())
    if stop is not None and not callable(stop):
        raise ArgumentError("stop must be a function of Progress")
    if not callable(progress) and progress is not None:
        check.flag("progress", progress)
    watched = None if watch is None else as_pair(watch, own[0].device)
    with _kept(checkpoint, words) as kept:
        bill = bill_of(ledger, accounts, unit, token, tables, None if kept is None else kept.run)
        private = PrivateOptimizer(
            _optimizer(optimizer, own, learning_rate, momentum),
            model,
            data,
            rate=_default(rate, order, 0.4),
            order=order,
            noise_multiplier=noise_multiplier,
            epsilon=epsilon,
            delta=delta,
            steps=_default(steps, order, 100),
            clip=clip,
            loss=loss,
            population=population,
            neighbours=neighbours,
            exact=exact,
            physical=physical,
            memory=memory,
            ghost=ghost,
            words=words if kept is None else kept.words,
        )
        run = _Run(private, check.flag("average", average), watched, loss or cross_entropy, stop)
        run.try_watch()
        if kept is not None:
            run.keep_in(kept, check.whole("every", every, 1), bill)
        elif bill is not None:
            private.entry = bill.charge(private.cost)
        with _shown(private, progress, delta) as told:
            run.go(told)
    return Training(
        model,
        private.loss,
        private.taken,
        private.noise_multiplier,
        None if delta is None else check.exact("delta", delta),
        tuple(run.clips),
        tuple(run.watched),
        private,
    )


def _default(given: Any, order: FixedOrder | None, value: float) -> Any:
    """What is meant where nothing is said and rows are sampled."""
    return value if given is None and order is None else given


@contextmanager
def _kept(path: str | Path | None, words: Source | None) -> Iterator[RunCheckpoint | None]:
    """The checkpoint of the run, if it has one."""
    if path is None:
        yield None
        return
    if words is not None:
        raise ArgumentError("words are those of the checkpoint's key: leave them out")
    with RunCheckpoint.opened(path) as found:
        yield found


class _Run:
    """The loop, with what it keeps between steps."""

    def __init__(
        self,
        private: PrivateOptimizer,
        average: bool,
        watch: tuple[torch.Tensor, torch.Tensor] | None,
        loss: PerExampleLoss,
        stop: Callable[[Progress], bool] | None,
    ) -> None:
        self.private, self.loss, self.stop = private, loss, stop
        self.parameters = trainable(private.model)
        self.watch = watch
        assert private.planned is not None
        self.steps = private.planned
        self.first = self.steps // 2 + 1 if average else self.steps + 1
        self.means: dict[str, torch.Tensor] = {}
        self.averaged = 0
        self.clips: list[float] = []
        self.watched: list[Progress] = []
        self.kept: RunCheckpoint | None = None
        self.every = 1

    def keep_in(self, kept: RunCheckpoint, every: int, bill: Billing | None) -> None:
        """Go on from a checkpoint, or begin one, and see the run charged: before the first step."""
        self.kept, self.every = kept, every
        kept.claim(self._binding(kept.key))
        known = kept.state
        if known is None:
            kept.keep(self._state())
        if bill is not None:
            try:
                self.private.entry = bill.charge(self.private.cost)
            except (BudgetError, PromiseError, TokenError):
                if known is None:
                    kept.drop()
                raise
        if known is not None:
            self._restore(known)

    def _binding(self, key: bytes) -> bytes:
        """All that steps depend on, but what the state holds: rows, frozen numbers, arguments."""
        private = self.private
        trained = set(self.parameters)
        held = [p for n, p in private.model.named_parameters() if n not in trained]
        held += [b for b in private.model.buffers() if b is not None]
        loss = f"{getattr(self.loss, '__module__', '')}.{getattr(self.loss, '__qualname__', '')}"
        groups = [
            {k: v for k, v in group.items() if k != "params"}
            for group in private.optimizer.param_groups
        ]
        return bound(
            key, [private._X, private._y, *held], repr(private.model), modes_of(private.model),
            sorted(trained), loss,
            type(private.optimizer).__qualname__, groups, private.clip, private.exact,
            private.physical, private.asked, private.cost, self.steps, self.first,
            type(private._sums.engine).__qualname__, torch.__version__,
        )  # fmt: skip

    def _state(self) -> dict[str, Any]:
        """All that goes on from here, between two steps."""
        return {
            "private": self.private.state(),
            "means": {name: mean.clone() for name, mean in self.means.items()},
            "averaged": self.averaged,
            "clips": list(self.clips),
            "watched": [(p.step, p.steps, p.watched) for p in self.watched],
            "probe": self._probe(),
        }

    def _restore(self, state: dict[str, Any]) -> None:
        self.private.restore(state["private"])
        self.means, self.averaged = state["means"], state["averaged"]
        self.clips = state["clips"]
        self.watched = [Progress(*one) for one in state["watched"]]
        if not torch.equal(self._probe(), state["probe"]):
            raise ArgumentError(
                "checkpoint is of a run with another model, or of a machine that computes its last "
                "digits otherwise: going on would use its noise on other gradients"
            )

    def _probe(self) -> torch.Tensor:
        """What model and loss give for rows that are made up, of whatever parameters it has."""
        found = check_rows_alone(self.private.model, self.private._X).detach()
        y = self.private._y
        with torch.no_grad():
            each = self.loss(found, y.new_zeros((2, *y.shape[1:])))
        return torch.cat([found.flatten(), each.flatten().to(found.dtype)])

    def go(self, told: Callable[[Progress], None]) -> None:
        """All steps, or as many as ``stop`` leaves."""
        points = {max(1, round(self.steps * k / POINTS)) for k in range(1, POINTS + 1)}
        while self.private.taken < self.steps:
            self.clips.append(self.private.clip.norm)
            for x, y in self.private.batches():
                self.private.backward(x, y)
            self.private.step()
            self._average()
            if self.kept is not None and self.private.taken % self.every == 0:
                self.kept.keep(self._state())
            if self.private.taken in points:
                seen = {} if self.watch is None else self._measured(*self.watch)
                now = Progress(self.private.taken, self.steps, seen)
                if now.watched:
                    self.watched.append(now)
                told(now)
                if self.stop is not None and self.stop(now):
                    break
        self._take_means()
        if self.kept is not None:
            made = self.parameters | buffers_of(self.private.model)
            self.kept.end({name: p.detach().clone() for name, p in made.items()})

    def _average(self) -> None:
        if self.private.taken < self.first:
            return
        self.averaged += 1
        with torch.no_grad():
            for name, parameter in self.parameters.items():
                if name not in self.means:
                    self.means[name] = parameter.detach().clone()
                else:
                    self.means[name].lerp_(parameter, 1 / self.averaged)

    def _take_means(self) -> None:
        with torch.no_grad():
            for name, mean in self.means.items():
                self.parameters[name].copy_(mean)
        torch.clear_autocast_cache()

    @contextmanager
    def _meant(self) -> Iterator[None]:
        """The model as it would be, were this the end."""
        own = {name: p.detach().clone() for name, p in self.parameters.items()}
        self._take_means()
        try:
            yield
        finally:
            with torch.no_grad():
                for name, value in own.items():
                    self.parameters[name].copy_(value)

    def try_watch(self) -> None:
        """Measure rows that are made up, as those to watch will be.

        Raises
        ------
        ArgumentError
            It fails.
        """
        if self.watch is None:
            return
        x, y = self.watch
        try:
            self._measured(made_up_rows(x), y.new_zeros((2, *y.shape[1:])))
        except Exception as error:
            raise ArgumentError(
                f"watch: model or loss fails on made-up rows of the shape {tuple(x.shape[1:])}, in "
                f"eval mode: {type(error).__name__}: {error}"
            ) from error

    def _measured(self, x: torch.Tensor, y: torch.Tensor) -> dict[str, float]:
        model = self.private.model
        guard = Guard(model=model, loss=self.loss)
        try:
            # A part that was in eval mode, as normalisation that is frozen, must be so again.
            with guard.around(x.device), self._meant(), evaluating(model), torch.no_grad():
                output = model(x)
                found = {"loss": float(self.loss(output, y).mean())}
                if y.dtype == torch.int64 and output.ndim == y.ndim + 1:
                    found["accuracy"] = float((output.argmax(-1) == y).float().mean())
        except StateChanged:
            raise EngineError(
                "the model changed what it can reach while it was watched in eval mode: it is put "
                "back, for it may hold what was seen of rows"
            ) from None
        return found


def _optimizer(
    given: str | Callable[[Any], torch.optim.Optimizer],
    parameters: list[nn.Parameter],
    learning_rate: float | None,
    momentum: float,
) -> torch.optim.Optimizer:
    if callable(given):
        return given(parameters)
    kind = check.choice("optimizer", given, ["sgd", "adam"])
    rate = {"sgd": 4.0, "adam": 0.01}[kind] if learning_rate is None else learning_rate
    rate = check.number("learning_rate", rate, above=0, below=1e6)
    if kind == "adam":
        return CorrectedAdam(parameters, lr=rate)
    inert = check.number("momentum", momentum, least=0, below=1)
    return torch.optim.SGD(parameters, lr=rate, momentum=inert)


@contextmanager
def _shown(
    private: PrivateOptimizer, progress: bool | Callable[[Progress], None] | None, delta: Any
) -> Iterator[Callable[[Progress], None]]:
    """What is told of progress: to a function, to a terminal, or to nobody."""
    if callable(progress):
        yield progress
        return
    wanted = sys.stderr.isatty() if progress is None else check.flag("progress", progress)
    if not wanted:
        yield lambda now: None
        return
    from rich.console import Console
    from rich.progress import BarColumn, MofNCompleteColumn, TextColumn, TimeRemainingColumn
    from rich.progress import Progress as Bar

    at = float(delta) if delta is not None else 1e-6
    columns = (
        BarColumn(),
        MofNCompleteColumn(),
        TextColumn("{task.description}"),
        TimeRemainingColumn(),
    )
    with Bar(*columns, console=Console(stderr=True), transient=True) as bar:
        task = bar.add_task("", total=private.planned)

        def tell(now: Progress) -> None:
            spent = private.cost.of(now.step).epsilon(at).upper
            said = [f"{name} {number_text(value, 3)}" for name, value in now.watched.items()]
            words = ", ".join([cost_text(spent), *said])
            bar.update(task, completed=now.step, description=words)

        yield tell
