"""An optimiser of torch whose steps are private.

It is long because what a step needs is checked, drawn and charged in one object, of which there may
be no second one.
"""

from __future__ import annotations

import copy
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from fractions import Fraction
from typing import TYPE_CHECKING, Any, NoReturn

import torch
from torch import nn

from dither import _checks as check
from dither import privacy
from dither._checks import Number
from dither.errors import ArgumentError
from dither.learn.deep._account import bill_of
from dither.learn.deep._centre import Centring
from dither.learn.deep._charge import Cost, cost_of, counting_noise, whole_run
from dither.learn.deep._data import as_pair
from dither.learn.deep._order import CorrelatedNoise, FixedOrder, OrderedSampling
from dither.learn.deep._sampling import PoissonSampling, one_step, parts
from dither.learn.deep.noise._noise import noisy, noisy_count, sigma2_of
from dither.learn.deep.noise._steps import CorrectedAdam
from dither.learn.deep.rows._clipping import Adaptive, Clip, as_clip
from dither.learn.deep.rows._gradients import GradientEngine, PerExampleLoss, cross_entropy
from dither.learn.deep.rows._model import (
    check_model,
    check_rows_alone,
    computed_in,
    made_up_rows,
    trainable,
)
from dither.learn.deep.rows._rehearsal import engine_for
from dither.learn.deep.rows._sums import UNIT, ClippedSums
from dither.learn.deep.rows._trial import check_optimizer, try_optimizer, try_sums
from dither.learn.deep.state._draws import Sources
from dither.learn.deep.state._state import WatchedObjects
from dither.numeric import Words
from dither.privacy import Loss, Neighbours
from dither.privacy._promise import as_table_neighbours

if TYPE_CHECKING:
    from dither.ledger import Ledger

__all__ = ["MEMORY", "PrivateOptimizer"]

Source = Callable[[str, int], Words | None]
"""From a purpose and a step to the randomness of that step."""

MEMORY = 1 << 28
_MOST_ROWS = 1 << 26


class PrivateOptimizer:
    """A torch optimiser that sees the rows through clipped gradients and noise alone.

    One step: draw a Poisson sample of the rows; take the gradient of each by itself, clipped to an
    L2 norm of ``clip``; add them up; add Gaussian noise of deviation noise_multiplier·clip, once;
    divide by rate·population; and let the wrapped optimiser step along that.

    Parameters
    ----------
    optimizer : torch.optim.Optimizer
        Over parameters of the model. What it does with gradients is its own affair.
    model : torch.nn.Module
        Which treats each row by itself. It is trained where it is, and in the mode that it is in.
    data : pair (X, y)
        Arrays or tensors, a row for each example.
    rate : number, optional
        The chance of each example to be in a step's sample, in (0, 1].
    order : FixedOrder, optional
        In the place of ``rate`` and ``steps``, where rows cannot be sampled: every row once an
        epoch, with noise that is correlated over steps. The number of rows is then public, and
        "add-remove" means that a row's place is left empty: see `dither.learn.deep._order`.
    noise_multiplier : number, optional
        Deviation of the noise over the clip; or name epsilon, delta and steps.
    epsilon, delta : number, optional
        What all ``steps`` together may cost.
    steps : int, optional
        How many will be taken, at most; then `step` refuses more.
    clip : number, str or kind of clipping
        The norm of a flat clip, or ``"automatic"``, ``"per-layer"``, ``"adaptive"``, or one of the
        classes of `dither.learn.deep`.
    loss : callable, optional
        ``loss(output, target)`` gives one number an example, shape (b,). Without it, the cross
        entropy of labels 0, 1, ...
    population : number, optional
        What is public about how many rows there are; see *Notes*.
    neighbours : Neighbours or str
        ``"add-remove"``, or ``"replace"`` where the number of rows is public.
    exact : bool, optional
        Whether sums are taken over integers, which is what the guarantee is proved for; without it,
        True on a processor and False on other devices.
    physical : int, optional
        Rows whose gradients are held at once; without it, as many as ``memory`` holds.
    memory : int
        Bytes, for the gradients of a physical batch.
    ghost : bool, optional
        Whether to read gradients off the layers; without it, where that is possible.
    words : callable, optional
        For simulation only: from a purpose and a step to another source of randomness.
    ledger, accounts, unit, token, tables : optional
        The account that is charged for all ``steps``, before anything is drawn: as of
        `dither.learn.train`.

    Attributes
    ----------
    noise_multiplier : Fraction
    each : Loss
        What one step costs.
    loss : Loss
        What all planned steps cost, taken or not; of those taken where none are planned, which is
        true if their number does not depend on what was seen.
    taken, planned : int
    clip : Clip
    entry : int or None
        The number of the ledger's entry that charged them.

    Raises
    ------
    ArgumentError
        An argument is out of range, or the model has no parameters to train or mixes rows. Nothing
        is drawn, and no value of the rows is looked at.
    BudgetError, PromiseError, TokenError
        The ledger refuses: the same holds, and nothing was charged.

    Notes
    -----
    *Guarantee.* The parameters after all steps are as private as `loss` says, for one row of these
    neighbours: ``steps * privacy.gaussian(noise_multiplier).poisson(rate)``, which is the
    expression that ``dither account`` reads. With ``exact`` the proof goes down to the integers
    that are added up; `dither.learn.deep.rows._sums` and ``_noise`` hold it, with the one thing
    that it rests on. Without it, sums of floats are taken, whose rounding no proof here covers.

    *The number of rows* is private where rows are added or removed. The denominator is then
    rate·population, for a number that you declare; without one the rows are counted once, with
    noise, and the count is charged: ``loss`` has one part more. Where rows are replaced, their
    number is public and is used.

    *A layer* `dither.learn.deep.Centre` in the model has its mean found, with noise, by the first
    call of `batches`: ``loss`` has one part more for it.

    *Rows.* Each is run as a batch of its own, on draws by chance of its own that do not follow from
    the script's seed, and nothing that model and loss can reach may change by it; what does ends
    the run, and is put back. `dither.learn.deep.rows._gradients`, ``_draws`` and ``_state`` say
    how.

    *What leaves.* The model's parameters, that mean, and of an adaptive clip the clips. Everything
    else that can be seen while it runs, such as how many rows were in a sample, how long a step
    took, or which error a row led to, is about the rows, and not protected.

    Source. Abadi and others, "Deep learning with differential privacy", CCS 2016; the sampled
    Gaussian mechanism as `dither.privacy.Loss.poisson` has it.

    Examples
    --------
    >>> import torch
    >>> from dither import learn
    >>> X, y = torch.rand(200, 3), torch.arange(200) % 2
    >>> model = torch.nn.Linear(3, 2)
    >>> optimizer = learn.PrivateOptimizer(
    ...     torch.optim.SGD(model.parameters(), lr=0.5), model, (X, y),
    ...     rate=0.1, noise_multiplier=2, steps=20, population=200)
    >>> for _ in range(20):
    ...     for rows in optimizer.batches():
    ...         optimizer.backward(*rows)
    ...     optimizer.step()
    >>> optimizer.loss
    <Loss 20 * gaussian(2).poisson(0.1); neighbours 'add-remove'>
    """

    def __reduce_ex__(self, protocol: object) -> NoReturn:
        # Two of them would take the steps of one charge twice, over rows that one holds.
        raise copy.Error(
            "a private optimiser holds the rows and the rest of its run, so that it cannot be "
            "copied or pickled: keep the model and the loss of a training"
        )

    def __init__(
        self,
        optimizer: torch.optim.Optimizer,
        model: nn.Module,
        data: Any,
        *,
        rate: Number | None = None,
        order: FixedOrder | None = None,
        noise_multiplier: Number | None = None,
        epsilon: Number | None = None,
        delta: Number | None = None,
        steps: int | None = None,
        clip: Clip | Number | str = 1.0,
        loss: PerExampleLoss | None = None,
        population: Number | None = None,
        neighbours: Neighbours | str = Neighbours.ADD_REMOVE,
        exact: bool | None = None,
        physical: int | None = None,
        memory: int = MEMORY,
        ghost: bool | None = None,
        words: Source | None = None,
        ledger: Ledger | None = None,
        accounts: str | Sequence[str] = (),
        unit: str | None = None,
        token: str | None = None,
        tables: Mapping[str, str] | None = None,
    ) -> None:
        bill = bill_of(ledger, accounts, unit, token, tables)
        parameters = trainable(model)
        check_model(model)
        check_optimizer(optimizer, list(parameters.values()))
        device = next(iter(parameters.values())).device
        self._X, self._y = as_pair(data, device)
        if len(self._X) > _MOST_ROWS:
            raise ArgumentError(f"data must have at most {_MOST_ROWS:,} rows")
        self.centring = Centring.of(model, self._X, epsilon, delta)
        self.clip = as_clip(clip)
        self.exact = device.type == "cpu" if exact is None else check.flag("exact", exact)
        relation = as_table_neighbours(neighbours)
        self._words: Source = words or (lambda purpose, step: None)
        self.optimizer, self.model, self.taken = optimizer, model, 0
        self._waiting: Iterator[torch.Tensor] | None = None
        self._drawn: Words | None = None
        self._given = 0
        self._done = self._failed = False
        self.correlated: CorrelatedNoise | None = None
        self.entry: int | None = None
        self._sampling: PoissonSampling | OrderedSampling | None = None
        if order is not None:
            _check_order(order, rate, steps, population, self.clip)
            self._keep_order(order, relation, epsilon, delta, noise_multiplier)
        else:
            self._keep_rate(rate, relation, population, epsilon, delta, noise_multiplier, steps)
        self._engine_for(model, loss, ghost, physical, memory)
        if bill is not None:
            self.entry = bill.charge(self.cost)

    def __repr__(self) -> str:
        planned = "" if self.planned is None else f" of {self.planned:,}"
        return f"<PrivateOptimizer: {self.taken:,}{planned} steps; {self.loss!r}>"

    def _keep_rate(
        self,
        rate: Number | None,
        relation: Neighbours,
        population: Number | None,
        epsilon: Any,
        delta: Any,
        noise: Any,
        steps: int | None,
    ) -> None:
        """Rows in samples, and what they cost."""
        if rate is None:
            raise ArgumentError("name the rate at which rows are sampled, or a fixed order")
        share = check.exact("rate", rate, above=0, most=1)
        planned = None if steps is None else check.count("steps", steps, 1, 10**7)
        counted = _counted(population, relation, len(self._X), epsilon, delta)
        once = self.centring.loss(relation)
        self.cost: Cost = cost_of(
            lambda z: one_step(z, share, relation),
            privacy.gaussian(counted) + once if counted else once,
            epsilon=epsilon,
            delta=delta,
            noise_multiplier=noise,
            steps=planned,
            rate=share,
        )
        if population is None:
            public = Fraction(max(1, len(self._X)))
        else:
            public = check.positive("population", population)
        self._asked = share, relation, counted, None if counted else public

    @property
    def sampling(self) -> PoissonSampling | OrderedSampling:
        """Who takes part in a step; rows that are to be counted are counted when it is first asked.

        By then what that costs was charged, where a ledger is.
        """
        if self._sampling is None:
            share, relation, counted, public = self._asked
            rows = len(self._X)
            if public is None:
                assert counted is not None
                public = Fraction(noisy_count(rows, counted, self._words("count", 0)))
            self._sampling = PoissonSampling(rows, share, public, relation)
        return self._sampling

    @property
    def asked(self) -> str:
        """How rows take part, before any are counted: for a checkpoint to hold."""
        return repr(self._asked if self.correlated is None else self._sampling)

    def _keep_order(
        self, order: FixedOrder, relation: Neighbours, epsilon: Any, delta: Any, noise: Any
    ) -> None:
        """Rows in a fixed order, and what that costs."""
        rows = len(self._X)
        made = order.factorization(rows, _momentum(self.optimizer))
        sampling = OrderedSampling(order, rows, relation, self._words("order", 0))
        self.cost = whole_run(
            cost_of(
                sampling.each, self.centring.loss(relation), epsilon=epsilon, delta=delta,
                noise_multiplier=noise, steps=1,
            ),
            made.participation.steps,
        )  # fmt: skip
        self._sampling, self.correlated = sampling, CorrelatedNoise(made, relation)

    def _engine_for(
        self,
        model: nn.Module,
        loss: PerExampleLoss | None,
        ghost: bool | None,
        physical: int | None,
        memory: int,
    ) -> None:
        if loss is not None and not callable(loss):
            raise ArgumentError("loss must be a function of outputs and targets")
        self._how = loss or cross_entropy, None if ghost is None else check.flag("ghost", ghost)
        engine = self._rehearsed()
        self._sums = ClippedSums(engine, self.clip, exact=self.exact)
        if physical is None:
            held = 4 * engine.held(*self._made_up())
            self.physical = max(1, check.whole("memory", memory, 1) // held)
        else:
            self.physical = check.whole("physical", physical, 1)
        x, y = (made[[0, 1, 0]] for made in self._made_up())
        try_sums(self._sums, x, y, self.physical)
        try_optimizer(self.optimizer, self._sums)

    def _made_up(self) -> tuple[torch.Tensor, torch.Tensor]:
        # Of zeros a gradient may be 0 whatever is read, and tell nothing.
        return made_up_rows(self._X), self._y.new_zeros((2, *self._y.shape[1:]))

    def _rehearsed(self) -> GradientEngine:
        """How rows are run, as the model is now: it is found out on made-up ones."""
        self._computed = computed_in(self._X.device)
        watched = WatchedObjects(model=self.model, loss=self._how[0])
        watched.remember()
        with Sources(self._X.device, watched.generators, everywhere=True).kept():
            check_rows_alone(self.model, self._X)
            return engine_for(self.model, *self._how, *self._made_up())

    @property
    def noise_multiplier(self) -> Fraction:
        """Deviation of the noise over the most that one row moves what leaves."""
        return self.cost.noise_multiplier

    @property
    def each(self) -> Loss:
        """What one step costs."""
        return self.cost.each

    @property
    def planned(self) -> int | None:
        """How many steps may be taken."""
        return self.cost.steps

    @property
    def loss(self) -> Loss:
        """What all planned steps cost, or those taken where none are planned."""
        return self.cost.of(self.taken) if self.planned is None else self.cost.planned

    def spent(self) -> Loss:
        """What the steps that were taken would have cost, had no more been planned."""
        return self.cost.of(self.taken)

    def batches(self) -> Iterator[tuple[torch.Tensor, torch.Tensor]]:
        """Draw the sample of the next step.

        Returns
        -------
        iterator of (X, y)
            Physical batches, none if the sample is empty. Each is to be given to `backward` before
            the next is taken; how many there are is private.

        Raises
        ------
        ArgumentError
            The sample before has not been used by a `step`, or all planned steps are taken.
        """
        if self._waiting is not None:
            raise ArgumentError("the sample that was drawn must be used first: call step()")
        if self.planned is not None and self.taken >= self.planned:
            raise ArgumentError(
                f"all {self.planned:,} steps that were planned are taken: what more would cost was "
                "not charged; plan more with another PrivateOptimizer"
            )
        self._check_whole()
        if self.centring.needed:
            # By now it was charged, where a ledger is.
            self.centring.know(
                self._X, float(self.sampling.population),
                exact=self.exact, physical=self.physical, words=self._words("mean", 0),
            )  # fmt: skip
        places = self.sampling.batch(self.taken, self._words("sample", self.taken))
        # A step that is repeated drops out the same numbers.
        self._drawn = self._words("model", self.taken)
        self._sums.clip = self.clip
        self._sums.start()
        self._waiting, self._done = parts(places.to(self._X.device), self.physical), False
        return self._handed_out(self._waiting)

    def _handed_out(
        self, waiting: Iterator[torch.Tensor]
    ) -> Iterator[tuple[torch.Tensor, torch.Tensor]]:
        sources = Sources(self._X.device)
        for places in waiting:
            self._check_used()
            self._given = len(places)
            # What is drawn to change rows, before they are given back, is secret, too.
            with sources.seeded(self._drawn):
                yield self._X[places], self._y[places]
        self._check_used()
        self._done = True

    def _check_used(self) -> None:
        if self._given:
            raise ArgumentError("backward(x, y) must be called on each physical batch")

    def backward(self, x: torch.Tensor, y: torch.Tensor) -> None:
        """Add the clipped gradients of a physical batch of the sample.

        Parameters
        ----------
        x, y : Tensor
            As `batches` gave them; each row may have been changed, by itself.

        Raises
        ------
        ArgumentError
            There is no such batch; or the model was put into another mode, in which it mixes rows
            or keeps what it saw.
        EngineError
            The model or the loss failed on a row, or changed what it can reach. No further step is
            taken then: it would lack other rows, too, because of that one.
        """
        if not self._given or len(x) != self._given or len(y) != self._given:
            raise ArgumentError(
                "backward takes the rows that batches() gave last, once, all of them"
            )
        self._check_same()
        self._given, self._failed = 0, True
        self._sums.engine.guard.words = self._drawn
        self._sums.add(x, y)
        self._failed = False

    def _check_same(self) -> None:
        """What was found of the model holds of it as it was: its modes, hooks and autocast."""
        same = self._sums.engine.guard.same()
        if not same or self._computed != computed_in(self._X.device):
            check_model(self.model)
            self._sums.engine = self._rehearsed()

    def _check_whole(self) -> None:
        if self._failed:
            raise ArgumentError(
                "the model or the loss failed within a sample: other rows of it are lacking, too, "
                "and the guarantee holds of no further step. What was charged stays charged"
            )

    def step(self) -> None:
        """Add the noise, divide, and let the optimiser step.

        Raises
        ------
        ArgumentError
            No sample was drawn since the last step, or not all of its gradients were taken; or a
            parameter has a gradient that is not from here.
        """
        self._check_whole()
        if self._waiting is None or not self._done or self._given:
            raise ArgumentError(
                "step needs fresh gradients of a whole sample: first "
                "'for x, y in optimizer.batches(): optimizer.backward(x, y)'"
            )
        self._check_gradients()
        self._waiting = None
        draw = noisy if self.correlated is None else self.correlated.noisy
        total, count = draw(self._sums, self.noise_multiplier, self._words("noise", self.taken))
        if isinstance(self.optimizer, CorrectedAdam):
            self._tell_noise(self.optimizer)
        # From here on the sum may be seen, whether or not the optimiser fails.
        self.taken += 1
        self._sums.set_gradients(total / self.sampling.denominator)
        self.optimizer.step()
        self.optimizer.zero_grad(set_to_none=True)
        # Within one ``with torch.autocast(...)`` rounded weights would stay those from before.
        torch.clear_autocast_cache()
        if isinstance(self.clip, Adaptive):
            self.clip = self.clip.moved((count / self.sampling.denominator + 1) / 2)

    def _check_gradients(self) -> None:
        """Other parameters, which were frozen or came later, must not move along raw gradients."""
        known = {id(p) for p in self._sums.engine.parameters.values()}
        held = [p for group in self.optimizer.param_groups for p in group["params"]]
        if any(p.grad is not None and id(p) not in known for p in held):
            raise ArgumentError(
                "optimizer has a gradient of a parameter that was frozen, or unknown, when the "
                "PrivateOptimizer was made: it would move without noise. Make another one"
            )

    def _tell_noise(self, optimizer: CorrectedAdam) -> None:
        unit = self.clip.norm / UNIT / self.sampling.denominator
        if self.correlated is None:
            sigma2 = float(sigma2_of(self.noise_multiplier, self.clip))
        else:
            sigma2 = self.correlated.variance(self.noise_multiplier, self.taken)
        for group in optimizer.param_groups:
            group["noise_variance"] = sigma2 * unit**2

    def state(self) -> dict[str, Any]:
        """All that the next step goes on from, between two steps. As secret as the rows."""
        return {
            "taken": self.taken,
            "clip": self.clip.norm,
            "parameters": {k: p.detach().clone() for k, p in trainable(self.model).items()},
            "optimizer": copy.deepcopy(self.optimizer.state_dict()),
            "noise": None if self.correlated is None else self.correlated.state(),
            "mean": self.centring.mean,
        }

    def restore(self, state: dict[str, Any]) -> None:
        """Go on from what `state` gave, of an optimiser that was made with the same arguments."""
        with torch.no_grad():
            for name, parameter in trainable(self.model).items():
                parameter.copy_(state["parameters"][name])
        self.optimizer.load_state_dict(state["optimizer"])
        self.taken = state["taken"]
        if isinstance(self.clip, Adaptive):
            self.clip = replace(self.clip, norm=state["clip"])
        if self.correlated is not None:
            self.correlated.restore(state["noise"])
        self.centring.restore(state["mean"])

    @property
    def rows_run(self) -> str:
        """How rows are run: "as one batch", "layer by layer", "by vmap" or "one by one"."""
        return self._sums.engine.way

    @property
    def unpublished(self) -> dict[str, int]:
        """Exact numbers about the rows of the last sample, which protect nobody.

        For whoever may see the rows: how many were in the sample, and of how many the gradient was
        not finite, and so counted as 0. Neither belongs in what is published.
        """
        return {"rows": self._sums.rows, "not finite": self._sums.nonfinite}


def _check_order(order: Any, rate: Any, steps: Any, population: Any, clip: Clip) -> None:
    if not isinstance(order, FixedOrder):
        raise ArgumentError("order must be a FixedOrder, such as FixedOrder(batch=100, epochs=5)")
    for name, value in (("rate", rate), ("steps", steps), ("population", population)):
        if value is not None:
            raise ArgumentError(
                f"{name} has no meaning where rows have a fixed order: leave it out"
            )
    if isinstance(clip, Adaptive):
        raise ArgumentError(
            "clip must stay the same where noise is correlated over steps: take a number"
        )


def _momentum(optimizer: torch.optim.Optimizer) -> float:
    """What the correlation of noise is fitted to; it has no part in what is charged."""
    if not isinstance(optimizer, torch.optim.SGD):
        return 0.0
    return float(optimizer.param_groups[0]["momentum"])


def _counted(
    population: Number | None, relation: Neighbours, rows: int, epsilon: Any, delta: Any
) -> Fraction | None:
    """The noise multiplier of the count of rows, where they are counted."""
    if relation is Neighbours.REPLACE:
        if population is not None and check.positive("population", population) != rows:
            raise ArgumentError(
                "population is the number of rows where rows are replaced: leave it out"
            )
        return None
    return counting_noise(epsilon, delta) if population is None else None
