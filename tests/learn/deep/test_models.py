"""Models that people have: each works, held against a loop over rows, or is refused for free."""

# ruff: noqa: E402  what needs torch comes after the test whether it is there

from __future__ import annotations

import contextlib
import warnings
from collections.abc import Iterator
from fractions import Fraction
from pathlib import Path
from typing import Any

import pytest

torch = pytest.importorskip("torch", reason="torch is not installed")

from torch import nn
from torch.nn.utils import prune
from torch.nn.utils.rnn import pack_padded_sequence, pad_packed_sequence

from dither.accounting import BudgetFilter
from dither.errors import ArgumentError
from dither.learn.deep import FixedOrder, Flat, PerLayer, PrivateOptimizer, train
from dither.learn.deep.rows._gradients import ByLayers, ByRows, ByVmap, cross_entropy
from dither.ledger import Ledger
from dither.privacy import Promise

ROWS = torch.randn(24, 5, 3, generator=torch.Generator().manual_seed(1))
ROWS[3:9, 3:] = 0
WORDS = torch.randint(0, 7, (24, 5), generator=torch.Generator().manual_seed(2))
WORDS[:, 0] = 1 + WORDS[:, 0] % 6
Y = torch.arange(24) % 2


class Made(nn.Module):
    """Layers by name, and a function of them and of the rows."""

    def __init__(self, run: Any, **layers: nn.Module) -> None:
        super().__init__()
        self.run = run
        for name, layer in layers.items():
            setattr(self, name, layer)

    def forward(self, x: Any) -> Any:
        """What the function gives."""
        return self.run(self, x)


class Bert(nn.Module):
    """What a tiny BERT is made of, as its usual implementation writes it."""

    def __init__(self) -> None:
        super().__init__()
        self.words, self.places = nn.Embedding(7, 8, padding_idx=0), nn.Embedding(6, 8)
        self.kinds, self.norm, self.drop = nn.Embedding(2, 8), nn.LayerNorm(8), nn.Dropout(0.0)
        self.query, self.key, self.value = (nn.Linear(8, 8) for _ in range(3))
        self.dense, self.after = nn.Linear(8, 8), nn.LayerNorm(8)
        self.pooler, self.out = nn.Linear(8, 8), nn.Linear(8, 2)
        self.register_buffer("position_ids", torch.arange(6).expand((1, -1)))
        self.register_buffer("type_ids", torch.zeros((1, 6), dtype=torch.long))

    def _heads(self, rows: Any) -> Any:
        return rows.view(*rows.shape[:-1], 2, 4).transpose(1, 2)

    def forward(self, x: Any) -> Any:
        """Logits."""
        b, length = x.size()
        rows = self.words(x) + self.kinds(self.type_ids[:, :length].expand(b, length))
        rows = self.drop(self.norm(rows + self.places(self.position_ids[:, :length])))
        mask = (x > 0).float()[:, None, None, :]
        scores = self._heads(self.query(rows)) @ self._heads(self.key(rows)).transpose(-1, -2)
        weights = self.drop((scores / 2 + (1 - mask) * -1e9).softmax(-1))
        found = (weights @ self._heads(self.value(rows))).transpose(1, 2).reshape(b, length, 8)
        rows = self.after(rows + self.drop(self.dense(found)))
        return self.out(self.pooler(rows[:, 0]).tanh())


def last(kind: Any, wide: int, **more: Any) -> Any:
    """A recurrent layer, and a linear one on its last step."""
    layer = kind(3, 4, batch_first=True, **more)
    return Made(lambda m, x: m.out(m.layer(x)[0][:, -1]), layer=layer, out=nn.Linear(wide, 2))


def packed(kind: Any) -> Any:
    """On sequences as long as they have words."""

    def run(m: Any, x: Any) -> Any:
        lengths = (x != 0).sum(1).cpu()
        held = pack_padded_sequence(m.table(x), lengths, batch_first=True, enforce_sorted=False)
        out, _ = pad_packed_sequence(m.layer(held)[0], batch_first=True, total_length=x.shape[1])
        return m.out(out.sum(1))

    layer = kind(4, 4, batch_first=True)
    return Made(run, table=nn.Embedding(7, 4), layer=layer, out=nn.Linear(4, 2))


def cells(m: Any, x: Any) -> Any:
    """A loop over the steps."""
    held = x.new_zeros(len(x), 4)
    for step in x.unbind(1):
        held = m.layer(step, held)
    return m.out(held)


def places(m: Any, x: Any) -> Any:
    """Places that are counted when they are needed."""
    return m.out((m.table(x) + m.places(torch.arange(x.shape[1]))).mean(1))


def folded(m: Any, x: Any) -> Any:
    """All words of all rows as one batch, and apart again."""
    return m.out(m.layer(x.reshape(-1, 3)).relu()).reshape(len(x), -1, 2).mean(1)


def views(m: Any, x: Any) -> Any:
    """Two views of each row behind one another, as one batch."""
    one, other = m.layer(torch.cat([x[:, 0], x[:, 1]])).chunk(2)
    return m.out(torch.cat([one, other], -1))


def token(m: Any, x: Any) -> Any:
    """A first word that is learned, before each row's own."""
    first = m.first.weight[None].expand(len(x), -1, -1)
    return m.out(m.layer(torch.cat([first, x], 1)).relu().mean(1))


def two(m: Any, x: Any) -> Any:
    """Two layers."""
    return m.out(m.layer(x.flatten(1)).relu())


def rounded(m: Any, x: Any) -> Any:
    """The same, in bfloat16."""
    with torch.autocast("cpu", dtype=torch.bfloat16):
        return two(m, x)


def old_weight_norm(layer: Any) -> Any:
    """As it was before parametrizations."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return nn.utils.weight_norm(layer)


def scripted(layer: Any) -> Any:
    """In torch's own language, which is going out of use."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return torch.jit.script(layer)


def encoder(m: Any, x: Any) -> Any:
    """Torch's own, with padding."""
    return m.out(m.layer(m.table(x), src_key_padding_mask=(x == 0)).mean(1))


def layers(**first: Any) -> dict[str, Any]:
    """Those of `two`, or others in their place."""
    return {"layer": nn.Linear(15, 4), "out": nn.Linear(4, 2)} | first


def _encoder_layer() -> Any:
    return nn.TransformerEncoderLayer(4, 2, 6, dropout=0.0, batch_first=True)


MODELS: dict[str, tuple[Any, Any, type]] = {
    "GRU": (lambda: last(nn.GRU, 4), ROWS, ByRows),
    "two GRUs both ways": (
        lambda: last(nn.GRU, 8, num_layers=2, bidirectional=True), ROWS, ByRows
    ),
    "RNN": (lambda: last(nn.RNN, 4), ROWS, ByRows),
    "LSTM": (lambda: last(nn.LSTM, 4), ROWS, ByVmap),
    "LSTM with proj_size": (lambda: last(nn.LSTM, 2, proj_size=2), ROWS, ByRows),
    "GRUCell": (lambda: Made(cells, layer=nn.GRUCell(3, 4), out=nn.Linear(4, 2)), ROWS, ByVmap),
    "packed GRU": (lambda: packed(nn.GRU), WORDS, ByRows),
    "packed LSTM": (lambda: packed(nn.LSTM), WORDS, ByRows),
    "BERT": (Bert, WORDS, ByLayers),
    "places": (
        lambda: Made(
            places, table=nn.Embedding(7, 4), places=nn.Embedding(5, 4), out=nn.Linear(4, 2)
        ),
        WORDS,
        ByLayers,
    ),
    "folded": (lambda: Made(folded, layer=nn.Linear(3, 4), out=nn.Linear(4, 2)), ROWS, ByLayers),
    "views": (lambda: Made(views, layer=nn.Linear(3, 4), out=nn.Linear(8, 2)), ROWS, ByLayers),
    "token": (
        lambda: Made(token, first=nn.Embedding(1, 3), layer=nn.Linear(3, 4), out=nn.Linear(4, 2)),
        ROWS,
        ByVmap,
    ),
    "encoder": (
        lambda: Made(
            encoder,
            table=nn.Embedding(7, 4),
            layer=nn.TransformerEncoder(_encoder_layer(), 1, enable_nested_tensor=True),
            out=nn.Linear(4, 2),
        ),
        WORDS,
        ByVmap,
    ),
    "old weight_norm": (
        lambda: Made(two, **layers(layer=old_weight_norm(nn.Linear(15, 4)))), ROWS, ByVmap
    ),
    "new weight_norm": (
        lambda: Made(
            two, **layers(layer=nn.utils.parametrizations.weight_norm(nn.Linear(15, 4)))
        ),
        ROWS,
        ByVmap,
    ),
    "prune": (
        lambda: Made(
            two, **layers(layer=prune.l1_unstructured(nn.Linear(15, 4), "weight", amount=0.3))
        ),
        ROWS,
        ByVmap,
    ),
    "scripted": (lambda: scripted(nn.Sequential(nn.Flatten(), nn.Linear(15, 2))), ROWS, ByRows),
    "bfloat16": (lambda: Made(rounded, **layers()), ROWS, ByRows),
}  # fmt: skip


def made(name: str) -> tuple[Any, Any, type]:
    """A fresh model, its rows, and how they should be run."""
    torch.manual_seed(4)
    make, x, kind = MODELS[name]
    return make(), x, kind


def private(model: Any, x: Any, **more: Any) -> Any:
    """Steps that were not taken yet."""
    given: dict[str, Any] = {"noise_multiplier": 1, "rate": 0.5, "steps": 3, "population": 24}
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    return PrivateOptimizer(optimizer, model, (x, Y), **given | more)


@pytest.mark.parametrize("name", MODELS)
def test_gradients_are_those_of_a_loop_over_rows(name: str) -> None:
    """To the last digit where rows are run one by one, and within rounding elsewhere."""
    model, x, kind = made(name)
    engine = private(model, x)._sums.engine
    assert type(engine) is kind
    trained = {n: p for n, p in model.named_parameters() if p.requires_grad}
    found = {
        n: g
        for part in engine.parts(x[:6].clone(), Y[:6])
        for n, g in zip(part.names, part.gradients(), strict=True)
    }
    assert found.keys() == trained.keys()
    for i in range(6):
        total = cross_entropy(model(x[i : i + 1]), Y[i : i + 1])[0]
        true = torch.autograd.grad(total, list(trained.values()), allow_unused=True)
        assert any(g is not None and g.abs().max() > 0 for g in true)
        for (n, p), g in zip(trained.items(), true, strict=True):
            wanted = torch.zeros_like(p) if g is None else g
            same = torch.equal if kind is ByRows else torch.testing.assert_close
            assert same(found[n][i], wanted) in (True, None)


@pytest.fixture
def book(tmp_path: Path) -> Iterator[Ledger]:
    """A ledger with room for a run."""
    with Ledger.open(tmp_path / "a.ledger") as found:
        found.ensure_account("all", BudgetFilter(5, Fraction(1, 100)), Promise("person"))
        yield found


def spent(book: Ledger) -> Any:
    """What was charged."""
    return book.balance("all").spent.epsilon


def run(book: Ledger, model: Any, x: Any, **more: Any) -> Any:
    """A short run on its account."""
    given: dict[str, Any] = {
        "epsilon": 3, "delta": 1e-5, "steps": 2, "rate": 0.5, "population": 24, "progress": False,
        "ledger": book, "accounts": "all", "unit": "person",
    } | more  # fmt: skip
    return train(model, (x, Y), **given)


@pytest.mark.parametrize("name", MODELS)
def test_a_run_ends_at_what_it_cost(name: str, book: Ledger) -> None:
    """Trained, charged once, and with nothing in it that has no place in a model."""
    model, x, _ = made(name)
    before = {n: p.detach().clone() for n, p in model.named_parameters()}
    own = {n: set(vars(layer)) for n, layer in model.named_modules()}
    fit = run(book, model, x, watch=(x, Y))
    assert (fit.steps, spent(book)) == (2, 3)
    assert any(not torch.equal(before[n], p) for n, p in model.named_parameters())
    assert own == {n: set(vars(layer)) for n, layer in model.named_modules()}
    assert torch.isfinite(model(x)).all()
    assert fit.watched[-1].watched["loss"] > 0


@pytest.mark.slow
def test_a_compiled_model_is_trained(book: Ledger) -> None:
    """What torch's compiler notes of itself is not what a model saw."""
    fit = run(book, torch.compile(Made(two, **layers()), backend="eager"), ROWS)
    assert (fit.steps, spent(book)) == (2, 3)


def test_autocast_about_the_whole_run(draws: Any) -> None:
    """Weights are those of each step, not those that were rounded before the first."""
    found = {}
    for rounding in (False, True):
        torch.manual_seed(4)
        model = Made(two, **layers())
        first = model.layer.weight.detach().clone()
        with torch.autocast("cpu", dtype=torch.bfloat16, enabled=rounding):
            fit = train(
                model, (ROWS, Y), noise_multiplier=1, delta=1e-5, steps=8, rate=1, population=24,
                learning_rate=2, exact=False, progress=False,
            )  # fmt: skip
            with torch.no_grad():
                loss = float(cross_entropy(model(ROWS).float(), Y).mean())
        assert type(fit.optimizer._sums.engine) in ((ByRows,) if rounding else (ByLayers,))
        assert float((model.layer.weight.detach() - first).norm()) > 0.5
        found[rounding] = loss, model.layer.weight.detach()
    assert found[True][0] == pytest.approx(found[False][0], rel=0.03)
    torch.testing.assert_close(found[True][1], found[False][1], rtol=0.05, atol=0.02)


def test_clipped_sums_are_not_of_half_precision(monkeypatch: pytest.MonkeyPatch) -> None:
    """Lengths and sums are of float32, whatever a model computes in: a row is at most the clip."""
    seen = []
    factors = Flat.factors

    def watched(self: Any, lengths: Any) -> Any:
        seen.append((lengths.dtype, torch.is_autocast_enabled("cpu")))
        return factors(self, lengths)

    monkeypatch.setattr(Flat, "factors", watched)
    with torch.autocast("cpu", dtype=torch.bfloat16):
        sums = private(Made(two, **layers()), ROWS, clip=1e-3, exact=False)._sums
        sums.add(ROWS[:1], Y[:1])
    assert float(sums.total.norm()) == pytest.approx(1e-3, rel=1e-5)
    assert set(seen) == {(torch.float32, False)}


def test_autocast_that_comes_later_is_seen() -> None:
    """How rows are run is found out again."""
    optimizer = private(Made(two, **layers()), ROWS, rate=1)
    assert type(optimizer._sums.engine) is ByLayers
    with torch.autocast("cpu", dtype=torch.bfloat16):
        for rows in optimizer.batches():
            optimizer.backward(*rows)
    assert type(optimizer._sums.engine) is ByRows
    optimizer.step()
    for rows in optimizer.batches():
        optimizer.backward(*rows)
    assert type(optimizer._sums.engine) is ByLayers


class _Stuck(torch.autograd.Function):
    """Forwards well, and never backwards."""

    @staticmethod
    def forward(ctx: Any, x: Any) -> Any:
        return x.clone()

    @staticmethod
    def backward(ctx: Any, *grads: Any) -> Any:
        raise NotImplementedError("no way back")


def _linear(wide: int = 15) -> Any:
    return nn.Sequential(nn.Flatten(), nn.Linear(wide, 2))


def _sparse(parameters: Any) -> Any:
    return torch.optim.SparseAdam(parameters)


REFUSED: dict[str, tuple[Any, dict[str, Any], str]] = {
    "backward": (lambda: Made(lambda m, x: _Stuck.apply(m.own(x)), own=_linear()), {}, "no way"),
    "squeeze": (lambda: Made(lambda m, x: m.own(x).squeeze(), own=_linear()), {}, "squeeze"),
    "lazy": (lambda: nn.Sequential(nn.Flatten(), nn.LazyLinear(2)), {}, "no shape yet"),
    "half": (lambda: _linear().bfloat16(), {}, r"torch\.autocast"),
    "logits": (lambda: Made(lambda m, x: {"logits": m.own(x)}, own=_linear()), {}, "not a dict"),
    "old spectral_norm": (
        lambda: Made(two, **layers(layer=nn.utils.spectral_norm(nn.Linear(15, 4)))),
        {},
        r"'layer' \(Linear\) .*spectral_norm",
    ),
    "width": (lambda: _linear(14), {}, "fails on rows of the shape"),
    "shares": (_linear, {"clip": PerLayer(1, [1, 2, 3])}, "there are 1 with"),
    "SparseAdam": (_linear, {"optimizer": _sparse}, "optimizer cannot step"),
    "watch": (_linear, {"watch": (ROWS[:, :3], Y)}, r"watch: .* of the shape \(3, 3\)"),
    "watched targets": (_linear, {"watch": (ROWS, torch.zeros(24, 3))}, "watch: "),
    "ghost": (lambda: Made(rounded, **layers()), {"ghost": True}, "ghost=True needs float32"),
}


@pytest.mark.parametrize("name", REFUSED)
@pytest.mark.filterwarnings("ignore:.*spectral_norm.*:FutureWarning")
def test_what_cannot_be_trained_costs_nothing(name: str, book: Ledger) -> None:
    """It is seen on made-up rows, before the charge, and said by name."""
    make, more, wanted = REFUSED[name]
    with pytest.raises(ArgumentError, match=wanted):
        run(book, make(), ROWS, **more)
    assert spent(book) == 0
    if "watch" not in more and "optimizer" not in more:
        with pytest.raises(ArgumentError, match=wanted), contextlib.suppress(AttributeError):
            private(make(), ROWS, ledger=book, accounts="all", unit="person", **more)
        assert spent(book) == 0


def test_the_trial_leaves_optimisers_as_they_were() -> None:
    """A copy steps: neither the state, nor the parameters, nor hooks and schedules see it."""
    model = _linear()
    before = [p.detach().clone() for p in model.parameters()]
    optimizer = torch.optim.Adam(model.parameters(), lr=0.1, weight_decay=0.5)
    steps: list[int] = []
    optimizer.register_step_post_hook(lambda *_: steps.append(1))
    torch.optim.lr_scheduler.StepLR(optimizer, 1)
    made = PrivateOptimizer(
        optimizer, model, (ROWS, Y), noise_multiplier=1, rate=0.5, steps=3, population=24
    )
    assert not steps
    assert not optimizer.state
    assert all(torch.equal(p, q) for p, q in zip(before, model.parameters(), strict=True))
    assert all(p.grad is None for p in model.parameters())
    assert (made._sums.rows, float(made._sums.total.abs().sum())) == (0, 0.0)


def test_a_fixed_order_is_tried_too(book: Ledger) -> None:
    """Nothing is charged for what cannot be trained in order, either."""
    with pytest.raises(ArgumentError, match="no way back"):
        run(
            book, REFUSED["backward"][0](), ROWS, order=FixedOrder(8), steps=None, rate=None,
            population=None,
        )  # fmt: skip
    assert spent(book) == 0
