"""Gradients of each example: by vmap, layer by layer, and by torch for one row after the other."""

# ruff: noqa: E402  what needs torch comes after the test whether it is there

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

torch = pytest.importorskip("torch", reason="torch is not installed")

from torch import nn

from dither.errors import ArgumentError
from dither.learn.deep.rows._clipping import Flat
from dither.learn.deep.rows._gradients import ByLayers, ByRows, ByVmap, cross_entropy
from dither.learn.deep.rows._layers import EmbeddingPart, FullGradient
from dither.learn.deep.rows._model import check_model, check_rows_alone, trainable
from dither.learn.deep.rows._rehearsal import engine_for
from dither.learn.deep.rows._sums import UNIT, ClippedSums, _of_entries, _of_gradients

IMAGES = torch.linspace(-1, 1, 4 * 2 * 6 * 6).reshape(4, 2, 6, 6).sin()
WORDS = torch.tensor([[1, 2, 2, 0], [3, 3, 3, 3], [4, 0, 1, 2], [0, 0, 1, 4]])


class Attention(nn.Module):
    """A layer of attention made of linear layers, on embedded words."""

    def __init__(self) -> None:
        super().__init__()
        self.table, self.norm = nn.Embedding(5, 6, padding_idx=0), nn.LayerNorm(6)
        self.mixed, self.out = nn.Linear(6, 18), nn.Linear(6, 3)

    def forward(self, words: Any) -> Any:
        rows = self.norm(self.table(words))
        query, key, value = self.mixed(rows).chunk(3, -1)
        weights = (query @ key.mT).softmax(-1)
        return self.out((rows + weights @ value).mean(1))


class Tied(nn.Module):
    """The table of an embedding is used a second time, not through its layer."""

    def __init__(self) -> None:
        super().__init__()
        self.table = nn.Embedding(5, 6)

    def forward(self, words: Any) -> Any:
        return self.table(words).mean(1) @ self.table.weight.T


MODELS: dict[str, tuple[Any, Any]] = {
    "linear": (nn.Linear(36, 3), IMAGES[:, 0].flatten(1)),
    "layers": (
        nn.Sequential(nn.Linear(36, 5, bias=False), nn.ReLU(inplace=True), nn.Linear(5, 3)),
        IMAGES[:, 0].flatten(1),
    ),
    "convolution": (
        nn.Sequential(
            nn.Conv2d(2, 4, 3, stride=2, padding=1),
            nn.GroupNorm(2, 4),
            nn.Tanh(),
            nn.Conv2d(4, 3, (1, 2), dilation=2, bias=False),
            nn.Flatten(),
            nn.LazyLinear(3),
        ),
        IMAGES,
    ),
    "one dimension": (
        nn.Sequential(nn.Conv1d(2, 3, 3, padding=1), nn.Flatten(), nn.LazyLinear(3)),
        IMAGES.flatten(2)[:, :, :7],
    ),
    "attention": (Attention(), WORDS),
    "frozen": (
        nn.Sequential(nn.Linear(36, 5).requires_grad_(False), nn.Linear(5, 3)),
        IMAGES[:, 0].flatten(1),
    ),
}


def one_by_one(model: Any, x: Any, y: Any) -> list[dict[str, Any]]:
    """Each row's gradients, as torch finds them."""
    parameters = trainable(model)
    return [
        dict(
            zip(
                parameters,
                torch.autograd.grad(
                    cross_entropy(model(x[i : i + 1]), y[i : i + 1])[0], list(parameters.values())
                ),
                strict=True,
            )
        )
        for i in range(len(x))
    ]


@pytest.mark.parametrize("kind", [ByRows, ByVmap, ByLayers])
@pytest.mark.parametrize("name", MODELS)
def test_gradients_are_those_of_torch(kind: Any, name: str) -> None:
    """Gradients, lengths and weighted sums agree with those of one row after the other."""
    model, x = MODELS[name]
    model(x)
    y = torch.tensor([0, 2, 1, 2])
    wanted = one_by_one(model, x, y)
    factors = torch.tensor([1.0, -0.5, 2.0, 0.25])
    seen = set()
    for part in kind(model, cross_entropy).parts(x, y):
        lengths = torch.zeros(4)
        for i, own in enumerate(part.names):
            seen.add(own)
            true = torch.stack([row[own] for row in wanted])
            torch.testing.assert_close(part.gradients()[i], true, rtol=1e-4, atol=1e-5)
            torch.testing.assert_close(
                part.gradients(slice(1, 3))[i], true[1:3], rtol=1e-4, atol=1e-5
            )
            total = torch.einsum("b,b...->...", factors, true)
            torch.testing.assert_close(part.summed(factors)[i], total, rtol=1e-4, atol=1e-5)
            lengths += true.flatten(1).square().sum(1)
        torch.testing.assert_close(part.squares(), lengths, rtol=1e-3, atol=1e-6)
    assert seen == set(trainable(model))


@pytest.mark.parametrize("name", MODELS)
def test_exact_sums_are_the_clipped_ones(name: str) -> None:
    """Integers add up to the sum of clipped gradients, within a 4096th and the cut."""
    model, x = MODELS[name]
    model(x)
    y = torch.tensor([0, 2, 1, 2])
    clipped = torch.zeros(sum(p.numel() for p in trainable(model).values()))
    for row in one_by_one(model, x, y):
        flat = torch.cat([g.flatten() for g in row.values()])
        clipped += flat / flat.norm().clamp(min=0.1) * 0.1
    for kind in (ByVmap, ByLayers):
        sums = ClippedSums(kind(model, cross_entropy), Flat(0.1), exact=True)
        sums.add(x[:3], y[:3])
        sums.add(x[3:], y[3:])
        torch.testing.assert_close(sums.total, sums.total.round(), rtol=0, atol=0)
        found = (sums.total * 0.1 / UNIT).float()
        assert float((found - clipped).norm()) < 4 * 0.1 * 1e-3
        floats = ClippedSums(kind(model, cross_entropy), Flat(0.1), exact=False)
        floats.add(x, y)
        torch.testing.assert_close(floats.total, clipped, rtol=1e-4, atol=1e-6)


@settings(max_examples=60)
@given(
    st.lists(st.floats(allow_nan=True, allow_infinity=True, width=32), min_size=1, max_size=6),
    st.floats(0, 1e9),
    st.floats(0, 1),
)
def test_no_gradient_is_longer_than_it_may_be(
    values: list[float], scale: float, share: float
) -> None:
    """Whatever floats a gradient and its factor are, its integer vector is as short as allowed."""
    most = int(share * UNIT**2)
    part = FullGradient(("w",), "", [torch.tensor([values])])
    (v,) = _of_gradients(
        part,
        torch.tensor([scale], dtype=torch.float64),
        torch.tensor([most], dtype=torch.float64),
    )
    numbers = [int(x) for x in v.tolist()]
    assert sum(x * x for x in numbers) <= most


@settings(max_examples=60)
@given(
    st.lists(st.tuples(st.integers(0, 3), st.integers(-9, 9)), min_size=1, max_size=6),
    st.floats(0, 1e9),
    st.floats(0, 2),
)
def test_words_that_come_again_count_together(
    read: list[tuple[int, int]], scale: float, share: float
) -> None:
    """Entries that were read are those of the whole table, and together as short as allowed."""
    table = nn.Embedding(4, 2, padding_idx=0)
    words = torch.tensor([[word for word, _ in read]])
    out = torch.tensor([[[float(e), -2.0 * e] for _, e in read]])
    part = EmbeddingPart(("weight",), "", table, words, out)
    (whole,) = part.gradients()
    _, entries = part.entries()
    assert torch.equal(entries.square().sum(), whole.square().sum())
    factor = torch.tensor([scale], dtype=torch.float64)
    square = float((whole.double() * scale).trunc().square().sum())
    most = torch.tensor([float(int(share * min(square, UNIT**2)))], dtype=torch.float64)
    (found,), (wanted,) = _of_entries(part, factor, most), _of_gradients(part, factor, most)
    assert torch.equal(found.flatten(), wanted)
    assert sum(int(v) ** 2 for v in found.flatten().tolist()) <= int(most)


def test_a_length_that_is_wrong_leaves_the_example_out() -> None:
    """Where lengths were found too short, what would be too long counts as nothing."""
    model = nn.Linear(2, 2)
    for part_kind in (ByVmap, ByLayers):
        sums = ClippedSums(part_kind(model, cross_entropy), Flat(1.0), exact=True)
        parts = sums.engine.parts(torch.full((1, 2), 3.0), torch.tensor([0]))
        sums._add_integers(parts, torch.full((1, 1), 1e-3), torch.ones(1, 1))
        assert float(sums.total.abs().sum()) == 0.0
        sums._add_integers(parts, parts[0].squares().sqrt()[:, None], torch.full((1, 1), 1e-3))
        assert float(sums.total.abs().sum()) > 0.0


def test_order_of_rows_changes_no_integer() -> None:
    """One by one, in any order, the sums of integers are the same to the last digit."""
    model, x, y = nn.Linear(36, 3), IMAGES[:, 0].flatten(1), torch.tensor([0, 2, 1, 2])
    found = []
    for order in ([0, 1, 2, 3], [3, 1, 0, 2]):
        sums = ClippedSums(ByLayers(model, cross_entropy), Flat(0.1), exact=True)
        for i in order:
            sums.add(x[i : i + 1], y[i : i + 1])
        found.append(sums.total.clone())
    assert torch.equal(*found)


def test_layers_are_used_where_they_tell_all() -> None:
    """Elsewhere vmap takes their place, or an error says why not."""
    rows = torch.zeros(2, 4, dtype=torch.int64), torch.zeros(2, dtype=torch.int64)
    assert isinstance(engine_for(Attention(), cross_entropy, None, *rows), ByLayers)
    assert isinstance(engine_for(Attention(), cross_entropy, False, *rows), ByVmap)
    assert isinstance(engine_for(Tied(), cross_entropy, None, *rows), ByVmap)
    with pytest.raises(ArgumentError, match="used once"):
        engine_for(Tied(), cross_entropy, True, *rows)
    odd = nn.Sequential(nn.Bilinear(1, 1, 1))
    with pytest.raises(ArgumentError, match="layers whose gradients are known"):
        ByLayers(odd, cross_entropy)


def test_labels_that_are_no_class_count_as_nothing() -> None:
    """An error would tell of them."""
    output = torch.zeros(3, 2, requires_grad=True)
    found = cross_entropy(output, torch.tensor([1, 2, -1]))
    assert found.tolist() == pytest.approx([np.log(2), 0.0, 0.0])
    (g,) = torch.autograd.grad(found.sum(), output)
    assert g[1:].abs().sum() == 0.0


class Centred(nn.Module):
    """Takes the mean of the batch away, in no layer that has a name."""

    def __init__(self) -> None:
        super().__init__()
        self.inner = nn.Linear(3, 2)

    def forward(self, x: Any) -> Any:
        return self.inner(x - x.mean(0))


class Remembers(nn.Module):
    """Keeps the mean of what it saw."""

    def __init__(self) -> None:
        super().__init__()
        self.inner = nn.Linear(3, 2)
        self.register_buffer("seen", torch.zeros(3))

    def forward(self, x: Any) -> Any:
        self.seen += x.mean(0)
        return self.inner(x)


@pytest.mark.parametrize(
    ("layer", "wanted"),
    [
        (nn.BatchNorm1d(48), r"GroupNorm\(16, 48\)"),
        (nn.BatchNorm2d(3, track_running_stats=False).eval(), "GroupNorm"),
        (nn.InstanceNorm2d(3, track_running_stats=True), "track_running_stats=False"),
        (nn.LSTM(3, 4), "batch_first=True"),
        (nn.MultiheadAttention(4, 2), "batch_first=True"),
        (nn.utils.parametrizations.spectral_norm(nn.Linear(3, 3)), "spectral_norm"),
    ],
)
def test_layers_that_mix_rows_are_refused(layer: Any, wanted: str) -> None:
    """The message names the layer and what to take instead."""
    with pytest.raises(ArgumentError, match=wanted):
        check_model(nn.Sequential(nn.Linear(3, 3), layer))


def test_frozen_batch_normalisation_may_stay() -> None:
    """In eval mode it uses fixed numbers."""
    check_model(nn.Sequential(nn.BatchNorm1d(3).eval(), nn.Linear(3, 2)))


def test_mixing_is_seen_where_no_layer_is_named() -> None:
    """Made-up rows show what a model does with a batch; a model that keeps what it saw as well."""
    with pytest.raises(ArgumentError, match="mixes the rows"):
        check_rows_alone(Centred(), torch.zeros(5, 3))
    kept = Remembers()
    with pytest.raises(ArgumentError, match="running the model changes"):
        check_rows_alone(kept, torch.zeros(5, 3))
    assert kept.seen.tolist() == [0.0, 0.0, 0.0]
    with pytest.raises(ArgumentError, match="fails on rows of the shape"):
        check_rows_alone(nn.Linear(4, 2), torch.zeros(5, 3))
    check_rows_alone(nn.Sequential(nn.Linear(3, 3), nn.Dropout(0.5)), torch.zeros(5, 3))


def test_models_without_parameters_are_refused() -> None:
    """There is nothing to train, or nothing that may be."""
    for model in (nn.ReLU(), nn.Linear(2, 2).requires_grad_(False)):
        with pytest.raises(ArgumentError, match="parameters to train"):
            trainable(model)
    with pytest.raises(ArgumentError, match="float32"):
        trainable(nn.Linear(2, 2).double())
