"""Fine-tuning: what is trained, and that nothing else is clipped, noised or moved."""

from __future__ import annotations

import pytest

torch = pytest.importorskip("torch", reason="torch is not installed")
from torch import nn  # noqa: E402

from dither.errors import ArgumentError  # noqa: E402
from dither.learn.deep import add_adapters, freeze, merge_adapters, train  # noqa: E402
from dither.learn.deep._adapters import LowRank  # noqa: E402
from dither.learn.deep.rows._clipping import Flat  # noqa: E402
from dither.learn.deep.rows._gradients import cross_entropy  # noqa: E402
from dither.learn.deep.rows._rehearsal import engine_for  # noqa: E402
from dither.learn.deep.rows._sums import ClippedSums  # noqa: E402

torch.set_num_threads(1)


def network() -> nn.Sequential:
    """Two layers and a block."""
    torch.manual_seed(2)
    return nn.Sequential(
        nn.Linear(6, 8), nn.ReLU(), nn.Sequential(nn.Linear(8, 8), nn.Tanh()), nn.Linear(8, 3)
    )


ROWS = torch.rand(40, 6, generator=torch.Generator().manual_seed(4))
LABELS = torch.arange(40) % 3


def trained(model: nn.Module) -> list[str]:
    """Names of what is trained."""
    return [name for name, p in model.named_parameters() if p.requires_grad]


def test_the_last_layer_alone() -> None:
    """Or those that are named; the others keep every bit."""
    assert trained(freeze(network())) == ["3.weight", "3.bias"]
    assert trained(freeze(network(), but=["0", "2"])) == [
        "0.weight",
        "0.bias",
        "2.0.weight",
        "2.0.bias",
    ]
    model = freeze(network())
    before = {name: value.clone() for name, value in model.state_dict().items()}
    fit = train(model, (ROWS, LABELS), noise_multiplier=1, steps=4, population=40)
    for name, value in model.state_dict().items():
        assert torch.equal(value, before[name]) == (not name.startswith("3."))
    assert "27 numbers" in fit.summary()


def test_adapters_change_nothing_at_first_and_are_merged_at_last() -> None:
    """The same outputs before training, and after merging; only adapters and heads are trained."""
    model, rows = network(), ROWS
    before, shape = model(rows), {k: v.shape for k, v in model.state_dict().items()}
    frozen = model[0].weight.detach().clone()
    add_adapters(model, 2, train="3")
    assert torch.equal(model(rows), before)
    assert trained(model) == [
        "0.down.weight", "0.up.weight", "2.0.down.weight", "2.0.up.weight", "3.weight", "3.bias",
    ]  # fmt: skip
    train(model, (ROWS, LABELS), noise_multiplier=1, steps=5, population=40)
    assert torch.equal(model[0].layer.weight, frozen)
    assert float(model[0].up.weight.detach().abs().max()) > 0
    after = model(rows)
    assert not torch.allclose(after, before)
    assert torch.allclose(merge_adapters(model)(rows), after, atol=1e-5)
    assert {k: v.shape for k, v in model.state_dict().items()} == shape


def test_gradients_of_adapters_are_those_of_each_row() -> None:
    """Read off the layers: the sum of a row's own gradients, clipped, by autograd."""
    model = add_adapters(network(), 2)
    with torch.no_grad():
        for layer in model.modules():
            if isinstance(layer, LowRank):
                layer.up.weight.normal_()
    engine = engine_for(model, cross_entropy, None, ROWS[:2], LABELS[:2])
    sums = ClippedSums(engine, Flat(0.4), exact=False)
    sums.add(ROWS, LABELS)
    expected = torch.zeros(sums.size)
    own = [p for p in model.parameters() if p.requires_grad]
    for x, y in zip(ROWS, LABELS, strict=True):
        loss = nn.functional.cross_entropy(model(x[None]), y[None])
        one = torch.cat([g.flatten() for g in torch.autograd.grad(loss, own)])
        expected += one * min(1.0, 0.4 / float(one.norm()))
    assert torch.allclose(sums.total, expected, atol=1e-4)
    assert sums.size == sum(p.numel() for p in own)


def test_what_cannot_be_adapted_is_refused() -> None:
    """By its name, with the nearest that there is; nothing is changed."""
    for call in (
        lambda m: freeze(m, but="4"),
        lambda m: freeze(m, but="1"),
        lambda m: add_adapters(m, layers=["2.1"]),
        lambda m: add_adapters(m, layers=["7"]),
        lambda m: add_adapters(m, train="7"),
        lambda m: add_adapters(m, 0),
        lambda m: add_adapters(m, scale=0),
        lambda m: add_adapters(nn.Sequential(nn.Tanh())),
        lambda m: freeze(nn.Sequential(nn.Tanh())),
        lambda m: freeze("model"),  # type: ignore[type-var]
    ):
        model = network()
        with pytest.raises(ArgumentError):
            call(model)
        assert len(trained(model)) == 6
