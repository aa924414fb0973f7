"""One row moves a step's sum by one clip at most, whatever a model does with a batch.

Each test plants what a model may do to let a row reach others, or to keep what it saw: draws from a
seed that everybody knows, state that is written in ``forward``, hooks and functions that look at a
whole batch. The guarantee is then that of `dither.learn.deep.rows._gradients`, `_guard` and
`_draws`.
"""

# ruff: noqa: E402  what needs torch comes after the test whether it is there

from __future__ import annotations

import contextlib
import gc
import sys
from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest

torch = pytest.importorskip("torch", reason="torch is not installed")

from torch import nn

from dither.errors import ArgumentError, EngineError
from dither.learn.deep import PrivateOptimizer
from dither.learn.deep.rows._clipping import Flat
from dither.learn.deep.rows._gradients import ByLayers, ByRows, ByVmap, cross_entropy
from dither.learn.deep.rows._model import made_up_rows
from dither.learn.deep.rows._plain import ByBatch
from dither.learn.deep.rows._rehearsal import engine_for
from dither.learn.deep.rows._sums import UNIT, ClippedSums
from dither.learn.deep.state import _guard
from dither.learn.deep.state._state import WatchedObjects

ROWS = 2 * torch.randn(7, 6, generator=torch.Generator().manual_seed(3))
ROWS[2, 3:], ROWS[4, 1:], ROWS[5] = 0.0, 0.0, 3e4
LABELS = torch.tensor([0, 1, 1, 0, 1, 0, 1])


def engine(model: nn.Module, loss: Any = cross_entropy, rows: Any = ROWS) -> Any:
    """How the rows of a model are run, after the rehearsal."""
    return engine_for(model, loss, None, made_up_rows(rows), LABELS[:2] * 0)


def one_step(optimizer: PrivateOptimizer) -> None:
    """As a loop of torch has it."""
    for rows in optimizer.batches():
        optimizer.backward(*rows)
    optimizer.step()


def total(made: Any, places: list[int], rows: Any = ROWS, labels: Any = LABELS) -> Any:
    """The exact sum of clipped gradients, in units of the clip."""
    sums = ClippedSums(made, Flat(1.0), exact=True)
    sums.add(rows[places], labels[places])
    return sums.total / UNIT


class Layers(nn.Module):
    """Two layers, and what a test does between them."""

    def __init__(self, between: Any = None) -> None:
        super().__init__()
        self.first, self.last = nn.Linear(6, 8), nn.Linear(8, 2)
        self.between = between

    def forward(self, x: Any) -> Any:
        """Shape (b, 2)."""
        h = torch.tanh(self.first(x))
        return self.last(h if self.between is None else self.between(h))


class LargestOfAll(torch.autograd.Function):  # type: ignore[misc]
    """Leaves what comes in, and divides gradients by the largest of the batch."""

    @staticmethod
    def forward(ctx: Any, h: Any) -> Any:
        """As it is."""
        return h.clone()

    @staticmethod
    def backward(ctx: Any, g: Any) -> Any:
        """Less where one row's is large."""
        return g / g.abs().max()


def hooked(h: Any) -> Any:
    """A tensor hook does the same."""
    if h.requires_grad:
        h.register_hook(lambda g: g / g.abs().max())
    return h


class ByLength(nn.Module):
    """Puts rows in the order of their lengths, and does not put them back in it."""

    def __init__(self) -> None:
        super().__init__()
        self.first, self.last = nn.Linear(6, 8), nn.Linear(8, 2)

    def forward(self, x: Any) -> Any:
        """Shape (b, 2)."""
        order = (x != 0).sum(1).argsort(descending=True, stable=True)
        sorted_ = self.first(x[order])
        return self.last(torch.tanh(sorted_))[order.argsort(stable=True)]


class Flipped(nn.Module):
    """Turns the batch round between two layers, and back again."""

    def __init__(self) -> None:
        super().__init__()
        self.first, self.last = nn.Linear(6, 8), nn.Linear(8, 2)

    def forward(self, x: Any) -> Any:
        """Shape (b, 2)."""
        return self.last(torch.tanh(self.first(x.flip(0)))).flip(0)


class Siamese(nn.Module):
    """Two views of a row go through one layer as two rows of a batch."""

    def __init__(self) -> None:
        super().__init__()
        self.view, self.out = nn.Linear(3, 8), nn.Linear(16, 2)

    def forward(self, x: Any) -> Any:
        """Shape (b, 2)."""
        return self.out(torch.tanh(self.view(x.reshape(-1, 3))).reshape(len(x), -1))


def with_full_backward_hook() -> nn.Module:
    """A hook of a layer that divides by the largest gradient of the batch."""
    model = Layers()
    model.last.register_full_backward_hook(
        lambda m, given, out: tuple(g / g.abs().max() for g in given)
    )
    return model


MODELS: dict[str, Any] = {
    "tensor hook": lambda: Layers(hooked),
    "own backward": lambda: Layers(LargestOfAll.apply),
    "backward hook": with_full_backward_hook,
    "by length": ByLength,
    "flipped": Flipped,
    "siamese": Siamese,
    "plain": lambda: nn.Sequential(nn.Linear(6, 8), nn.Tanh(), nn.Linear(8, 2)),
}


@pytest.mark.parametrize("name", MODELS)
def test_one_row_moves_a_sum_by_a_clip(name: str) -> None:
    """With and without each row, backward included: exact sums differ by one clip at most.

    And each row's gradient is that of the row by itself.
    """
    torch.manual_seed(0)
    model = MODELS[name]()
    made, everybody = engine(model), list(range(7))
    whole = total(made, everybody)
    for i in everybody:
        others = [k for k in everybody if k != i]
        assert float((whole - total(made, others)).norm()) <= 1 + 1e-6
    alone = sum(total(ByRows(model, cross_entropy), [i]) for i in everybody)
    torch.testing.assert_close(whole, alone, rtol=1e-3, atol=1e-3)
    wanted = {"plain": ByBatch, "siamese": ByLayers, "own backward": ByRows, "flipped": ByLayers}
    assert type(made) is wanted.get(name, type(made))


def test_a_rows_views_are_clipped_together_and_learn() -> None:
    """Of two views of one row the gradient is one, as torch finds it, and not two."""
    model = Siamese()
    (view, *_), parameters = engine(model).parts(ROWS, LABELS), list(model.view.parameters())
    for i in range(7):
        each = cross_entropy(model(ROWS[i : i + 1]), LABELS[i : i + 1])
        wanted = torch.autograd.grad(each.sum(), parameters)
        for found, true in zip(view.gradients(), wanted, strict=True):
            torch.testing.assert_close(found[i], true, rtol=1e-3, atol=1e-4)


@pytest.mark.parametrize(
    "images", [nn.Conv2d(1, 2, 2), nn.Sequential(nn.GroupNorm(1, 1), nn.Conv2d(1, 2, 2))]
)
def test_several_images_of_a_row(images: nn.Module) -> None:
    """A convolution and a normalisation see them as a batch, and the row has one gradient."""

    class Both(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.images, self.out = images, nn.Linear(8, 2)

        def forward(self, x: Any) -> Any:
            return self.out(self.images(x.reshape(-1, 1, 3, 2)[:, :, :, :]).reshape(len(x), -1))

    model, rows = Both(), torch.randn(5, 12, generator=torch.Generator().manual_seed(1))
    made, by_rows = engine(model, rows=rows), ByRows(model, cross_entropy)
    assert type(made) is ByLayers
    for part, true in zip(
        made.parts(rows, LABELS[:5]), by_rows.parts(rows, LABELS[:5]), strict=True
    ):
        for found, wanted in zip(part.gradients(), true.gradients(), strict=True):
            torch.testing.assert_close(found, wanted, rtol=1e-3, atol=1e-5)


# Draws.


class Noisy(nn.Module):
    """Adds noise to what is between two layers, as an autoencoder that draws does."""

    def __init__(self) -> None:
        super().__init__()
        self.first, self.last = nn.Linear(6, 8), nn.Linear(4, 2)

    def forward(self, x: Any) -> Any:
        """Shape (b, 2)."""
        mean, spread = self.first(x).chunk(2, 1)
        return self.last(mean + torch.randn_like(mean) * spread)


def transformer() -> nn.Module:
    """The layer of torch, with its own dropout."""
    inner = nn.TransformerEncoderLayer(6, 2, 8, batch_first=True)
    return nn.Sequential(nn.Unflatten(1, (1, 6)), inner, nn.Flatten(), nn.Linear(6, 2))


DRAWING: dict[str, Any] = {
    "dropout": lambda: nn.Sequential(nn.Linear(6, 16), nn.Dropout(0.5), nn.Linear(16, 2)),
    "transformer": transformer,
    "autoencoder": Noisy,
}


def games(model: nn.Module, plays: int) -> float:
    """How often one is right who knows the seed and all rows, and sees the noisy sum of a step.

    Noise has twice the deviation of a clip, so that the row alone tells right .6 of the time.
    """
    made, noise, right = engine(model), torch.Generator().manual_seed(5), 0
    rows = 3 * torch.randn(60, 6, generator=torch.Generator().manual_seed(9))
    labels = (rows[:, 0] > 0).long()
    with_, without = list(range(60)), list(range(1, 60))
    for play in range(plays):
        torch.manual_seed(7)
        seen = total(made, without if play % 2 else with_, rows, labels)
        seen = seen + 2 * torch.randn(seen.shape, generator=noise)
        guesses = []
        for places in (with_, without):
            torch.manual_seed(7)
            guesses.append(float((seen - total(made, places, rows, labels)).norm()))
        right += (guesses[0] > guesses[1]) == bool(play % 2)
    return right / plays


@pytest.mark.parametrize("name", DRAWING)
def test_a_seed_that_everybody_knows_tells_nothing(name: str) -> None:
    """The seed of a script does not reach the draws; a step leaves that generator as it was."""
    torch.manual_seed(0)
    made = engine(DRAWING[name]())
    torch.manual_seed(7)
    before = torch.get_rng_state()
    first = total(made, [0, 1, 3])
    assert torch.equal(torch.get_rng_state(), before)
    assert not torch.equal(total(made, [0, 1, 3]), first)


def test_the_attack_of_the_known_seed_fails(monkeypatch: pytest.MonkeyPatch) -> None:
    """Of 120 plays .6 are right by what a clip tells: more than .78 has a chance below 1e-4.

    Where draws are of the script's seed, as they were, it is nearly always right.
    """
    torch.manual_seed(0)
    model = DRAWING["dropout"]()
    assert games(model, 120) <= 0.78

    @contextlib.contextmanager
    def of_the_script(self: Any, words: Any) -> Iterator[None]:
        yield

    made_up = engine(model)
    monkeypatch.setattr(_guard.Sources, "seeded", of_the_script)
    monkeypatch.setattr(sys.modules[__name__], "engine", lambda model: made_up)
    assert games(model, 40) >= 0.85


def test_each_row_has_draws_of_its_own() -> None:
    """Two rows that are alike drop out other numbers, whichever way they run."""
    rows = ROWS[[0, 0]]
    model = DRAWING["dropout"]()
    for kind in (ByBatch, ByLayers, ByVmap, ByRows):
        parts = kind(model, cross_entropy).parts(rows, LABELS[[0, 0]])
        one, other = parts[-1].gradients()[0]
        assert not torch.equal(one, other)


def test_a_torch_generator_takes_all_of_its_state_from_the_words() -> None:
    """624 words of 32 bits, and not the 32 that a seed is cut to: numpy's twister says the same."""
    from dither.learn.deep.state._draws import Sources
    from dither.numeric import SimulatedWords

    own = torch.Generator()
    Sources(torch.device("cpu"), [own]).seed(SimulatedWords(3))
    source = SimulatedWords(3)
    source.words(624)
    key = (source.words(624) >> np.uint64(32)).astype(np.uint32)
    other = np.random.RandomState()
    other.set_state(("MT19937", key, 624))
    found = torch.randint(0, 2**20, (700,), generator=own, dtype=torch.int64)
    assert found.tolist() == [int(n) % 2**20 for n in other.randint(0, 2**32, 700, dtype=np.uint32)]


class OwnDraws(nn.Module):
    """Draws from a source that is none of torch's own."""

    def __init__(self, draw: Any) -> None:
        super().__init__()
        self.first, self.last, self.draw = nn.Linear(6, 8), nn.Linear(8, 2), draw

    def forward(self, x: Any) -> Any:
        """Shape (b, 2)."""
        return self.last(self.first(x) * self.draw(8))


def of_a_seed(size: int) -> Any:
    """The same numbers for a batch of one size, at any time."""
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(4)
        return torch.rand(size)


@pytest.mark.parametrize("source", ["numpy", "python", "generator", "numpy generator", "seed"])
def test_sources_that_draw_for_a_whole_batch_run_rows_one_by_one(source: str) -> None:
    """Each row then draws anew, of secret words, and the sources are as they were."""
    import random

    old = np.random
    own, array = torch.Generator().manual_seed(1), np.random.default_rng(1)
    draw = {
        "numpy": lambda n: torch.from_numpy(old.rand(n)).float(),
        "python": lambda n: torch.tensor([random.random() for _ in range(n)]),
        "generator": lambda n: torch.rand(n, generator=own),
        "numpy generator": lambda n: torch.from_numpy(array.random(n)).float(),
        "seed": of_a_seed,
    }[source]
    old.seed(3)
    random.seed(3)

    def states() -> list[Any]:
        return [
            str(old.get_state()[1].tolist()), random.getstate(), own.get_state().tolist(),
            str(array.bit_generator.state),
        ]  # fmt: skip

    before = states()
    model = OwnDraws(draw)
    optimizer = PrivateOptimizer(
        torch.optim.SGD(model.parameters(), lr=1), model, (ROWS, LABELS), rate=1,
        noise_multiplier=1,
    )  # fmt: skip
    made = optimizer._sums.engine
    assert type(made) is ByRows
    parts = made.parts(ROWS[[0, 0]], LABELS[[0, 0]])
    assert states() == before
    one, other = parts[0].gradients()[0]
    assert torch.equal(one, other) == (source == "seed")


def test_a_rule_for_batches_of_somebodys_own_runs_rows_one_by_one() -> None:
    """Under vmap it would be asked for all rows at once, and may mix them."""

    def model() -> nn.Module:
        class Mixing(torch.autograd.Function):  # type: ignore[misc]
            @staticmethod
            def forward(h: Any) -> Any:
                return h.clone()

            @staticmethod
            def setup_context(ctx: Any, inputs: Any, output: Any) -> None:
                pass

            @staticmethod
            def backward(ctx: Any, g: Any) -> Any:
                return g

            @staticmethod
            def vmap(info: Any, in_dims: Any, h: Any) -> Any:
                return h - h.mean(in_dims[0], keepdim=True), in_dims[0]

        return Layers(Mixing.apply)

    assert type(engine(model())) is ByRows
    gc.collect()  # For other tests, in which nobody has such a rule.


# State.


class Keeps(nn.Module):
    """Calls a function of what it saw."""

    def __init__(self, keep: Any) -> None:
        super().__init__()
        self.inner, self.keep = nn.Linear(6, 2), keep
        self.notes: list[Any] = []
        self.register_buffer("seen", torch.zeros(6))
        self.frozen = nn.Parameter(torch.zeros(6), requires_grad=False)

    def forward(self, x: Any) -> Any:
        """Shape (b, 2)."""
        self.keep(self, x.detach())
        return self.inner(x)


GLOBAL: list[Any] = []
COUNT = 0


def counted(model: Any, x: Any) -> None:
    """A global number is a place, too."""
    global COUNT
    COUNT += 1


def by_class(model: Any, x: Any) -> None:
    """And so is a class."""
    type(model).last = x.mean()


def by_numpy(model: Any, x: Any) -> None:
    """What changes a tensor behind its back."""
    model.frozen.numpy()[:] = x.mean(0).numpy()


WRITERS: dict[str, Any] = {
    "buffer": lambda m, x: m.seen.copy_(x.mean(0)),
    "frozen parameter": lambda m, x: m.frozen.data.lerp_(x.mean(0), 0.1),
    "numpy": by_numpy,
    "weights": lambda m, x: m.inner.weight.data.add_(x.mean()),
    "list": lambda m, x: m.notes.append(x.mean()),
    "attribute": lambda m, x: setattr(m, "last", float(x.mean())),
    "new buffer": lambda m, x: m.register_buffer("late", x.mean(0)),
    "storage": lambda m, x: setattr(m.frozen, "data", x.mean(0)),
    "global list": lambda m, x: GLOBAL.append(x.mean()),
    "global number": counted,
    "class": by_class,
    "hook": lambda m, x: m.inner.register_forward_hook(lambda *given: None),
}


@pytest.mark.parametrize("name", WRITERS)
def test_what_keeps_what_it_saw_is_refused_before_any_charge(name: str) -> None:
    """On made-up rows, by name, with nothing of them left."""
    model = Keeps(WRITERS[name])
    with pytest.raises(ArgumentError, match="running the model changes"):
        PrivateOptimizer(
            torch.optim.SGD(model.inner.parameters(), lr=1), model, (ROWS, LABELS), rate=1,
            noise_multiplier=1,
        )  # fmt: skip
    assert model.seen.tolist() == model.frozen.tolist() == [0.0] * 6
    assert [name for name, _ in model.named_buffers()] == ["seen"]
    assert model.notes == []


@pytest.mark.parametrize("name", WRITERS)
def test_what_keeps_a_rare_row_ends_the_run_and_gives_nothing_out(name: str) -> None:
    """Only a row that nobody could make up is written down: it is put back, and not shown."""

    def rarely(model: Any, x: Any) -> None:
        if bool((x == 12345.5).any()):
            WRITERS[name](model, x)

    rows = ROWS.clone()
    rows[3] = 12345.5
    model = Keeps(rarely)
    GLOBAL.clear()
    Keeps.last, count = 0.0, COUNT
    optimizer = PrivateOptimizer(
        torch.optim.SGD(model.inner.parameters(), lr=1), model, (rows, LABELS), rate=1,
        noise_multiplier=1, population=7,
    )  # fmt: skip
    before = {k: v.clone() for k, v in model.state_dict().items()}
    held = set(vars(model))
    with pytest.raises(EngineError, match="it is put back") as found:
        one_step(optimizer)
    assert "12345" not in str(found.value)
    assert model.state_dict().keys() == before.keys()
    for key, value in model.state_dict().items():
        assert torch.equal(value, before[key])
    assert (model.notes, GLOBAL, COUNT, Keeps.last) == ([], [], count, 0.0)
    assert set(vars(model)) == held
    assert not model.inner._forward_hooks
    with pytest.raises(ArgumentError, match="no further step"):
        optimizer.step()


def test_an_observer_of_ranges_is_refused() -> None:
    """It was calibrated on public numbers, and would publish the largest raw one."""
    from torch.ao.quantization import MinMaxObserver

    observer = MinMaxObserver()
    observer(torch.tensor([-10.0, 10.0]))
    model = nn.Sequential(observer, nn.Linear(6, 2))
    with pytest.raises(ArgumentError, match=r"running the model changes model\S*_val"):
        PrivateOptimizer(
            torch.optim.SGD(model.parameters(), lr=1), model, (ROWS, LABELS), rate=1,
            noise_multiplier=1,
        )  # fmt: skip
    assert (float(observer.min_val), float(observer.max_val)) == (-10.0, 10.0)


def test_what_is_made_once_may_stay() -> None:
    """A mask that is made when it is first needed, or anew each time, keeps nothing."""

    class Masked(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.inner, self.mask = nn.Linear(6, 2), None

        def forward(self, x: Any) -> Any:
            if self.mask is None:
                self.mask = torch.ones(6)
            self.again = torch.ones(6)
            return self.inner(x * self.mask * self.again)

    model = Masked()
    optimizer = PrivateOptimizer(
        torch.optim.SGD(model.parameters(), lr=1), model, (ROWS, LABELS), rate=1,
        noise_multiplier=1, population=7, steps=2,
    )  # fmt: skip
    for _ in range(2):
        one_step(optimizer)
    assert optimizer.taken == 2


def test_a_hook_that_comes_later_is_rehearsed() -> None:
    """Between two steps a model may change; how its rows are run is then found out anew."""
    model = nn.Sequential(nn.Linear(6, 8), nn.Tanh(), nn.Linear(8, 2))
    optimizer = PrivateOptimizer(
        torch.optim.SGD(model.parameters(), lr=0.1), model, (ROWS, LABELS), rate=1,
        noise_multiplier=1, population=7, physical=7,
    )  # fmt: skip
    assert type(optimizer._sums.engine) is ByBatch
    model[1].register_forward_hook(lambda m, given, out: LargestOfAll.apply(out))
    for batch in optimizer.batches():
        optimizer.backward(*batch)
    assert type(optimizer._sums.engine) is ByRows
    model[1].register_forward_hook(lambda m, given, out: GLOBAL.append(out.mean()))
    optimizer.step()
    with pytest.raises(ArgumentError, match="running the model changes"):
        one_step(optimizer)


def test_large_tensors_are_compared_by_a_checksum(monkeypatch: pytest.MonkeyPatch) -> None:
    """No copy of them is held: one that was changed is set to 0, in whichever place it was."""
    from dither.learn.deep.state import _places

    monkeypatch.setattr(_places, "_LARGE", 100)
    for place in (0, 65_535, 65_536, 2_000_000):
        held = torch.ones(2_000_001)
        watched = WatchedObjects(held=[held])
        watched.remember()
        assert watched.changed() == []
        held.numpy()[place] += 1e-6
        assert watched.changed() == ["held"]
        watched.restore()
        assert float(held.abs().sum()) == 0.0


def test_places_where_state_hides() -> None:
    """Closures, defaults, slots, sets, arrays, queues, iterators and objects are looked into."""
    import collections
    import itertools

    class Slotted:
        __slots__ = ("own",)

    class Plain:
        shared: list[int] = []  # noqa: RUF012

    slotted, plain, counter = Slotted(), Plain(), itertools.count()
    slotted.own = 1
    cell, default, number = [1], [2], 0
    array, queue, some = np.zeros(3), collections.deque([1]), {1}

    def function(x: int, into: Any = default) -> Any:
        nonlocal number
        number += x
        return cell

    roots = [slotted, plain, function, counter, array, queue, some, iter([1, 2]), (i for i in "ab")]
    watched = WatchedObjects(roots=roots)
    changes: list[Any] = [
        lambda: setattr(slotted, "own", 2), lambda: plain.__dict__.update(a=1),
        lambda: Plain.shared.append(1), lambda: cell.append(2), lambda: default.append(3),
        lambda: function(1), lambda: array.__setitem__(0, np.nan), lambda: queue.append(2),
        lambda: some.add(2), lambda: next(counter), lambda: next(roots[7]), lambda: next(roots[8]),
    ]  # fmt: skip
    for number_, change in enumerate(changes):
        watched.remember()
        assert watched.changed() == []
        change()
        assert watched.changed(), number_
        watched.restore()
        if number_ < 9:
            assert watched.changed() == [], number_
