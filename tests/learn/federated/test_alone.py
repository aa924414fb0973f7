"""What one client sends follows from its own rows: nobody else in the round moves a digit of it.

The account rests on one client's vector in a sum. Were the vectors of others to move with it, by a
row that they share or by the order in which a stack is added up, the sum would move by more.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from dither.errors import ArgumentError, EngineError
from dither.learn.federated import ClientData, FedAvg, LocalSGD, Network, Server, train
from dither.learn.federated._encoding import UpdateEncoding
from dither.learn.federated._noise import NoiseShare
from dither.learn.federated._server import Round
from dither.numeric import SimulatedWords, secure_words

CLIENTS, FEATURES, CLASSES = 7, 5, 3
HOSTILE = (0.3, np.nan, np.inf, -np.inf, 3e38)


def _rows(first: float, rows: int) -> ClientData:
    """The same clients but the first, who has so many rows of one number."""
    rng = np.random.default_rng(5)
    held = np.array([0, 2, 3, 5, 2, 0, 11])
    others = rng.normal(size=(held.sum(), FEATURES))
    X = np.concatenate([np.full((rows, FEATURES), first), others])
    y = np.concatenate([np.zeros(rows, int), rng.integers(0, CLASSES, held.sum())])
    client = np.concatenate([np.zeros(rows, int), np.repeat(np.arange(CLIENTS), held)])
    return ClientData(X, y, client, CLIENTS)


def _made(kind: str) -> Any:
    if kind != "torch":
        return Network(FEATURES, CLASSES, (6,) if kind == "network" else ())
    torch = pytest.importorskip("torch", reason="torch is not installed")
    torch.set_num_threads(1)
    from dither.learn.federated._torch import TorchModel

    layers = (torch.nn.Linear(FEATURES, 6), torch.nn.Tanh(), torch.nn.Linear(6, CLASSES))
    return TorchModel(torch.nn.Sequential(*layers))


@pytest.mark.parametrize("kind", ["linear", "network", "torch"])
def test_updates_are_those_of_each_client_alone(kind: str) -> None:
    """To the last bit, whatever the first client holds, and whoever is trained beside it."""
    model = _made(kind)
    at = model.start(SimulatedWords(2)) + 0.25
    for batch in (None, 4):
        local = LocalSGD(3, 0.5, batch)
        found = [
            model.updates(at, _rows(first, rows), np.arange(CLIENTS), local, SimulatedWords(1))
            for first in HOSTILE
            for rows in (1, 2, 40)
        ]
        assert any(np.isnan(moved[0]).any() for moved in found)
        for moved in found:
            np.testing.assert_array_equal(moved[1:], found[0][1:])
        if batch is None:
            for which in ([3], [1, 4], [6, 3, 2], [5], [0, 1, 2, 3]):
                alone = model.updates(at, _rows(0.3, 1), np.array(which), local, SimulatedWords(1))
                np.testing.assert_array_equal(alone, found[0][which])


@pytest.mark.parametrize("rotated", [False, True])
def test_rows_are_encoded_alone(rotated: bool) -> None:
    """In whatever order their numbers lie, and whatever is beside them."""
    rng = np.random.default_rng(3)
    encoding = UpdateEncoding(37, 1000, rotated, weight=9)
    rows = rng.normal(size=(12, 37)) * rng.geometric(0.2, (12, 1))
    signs = rng.choice([-1, 1], encoding.width)
    for given in (rows, np.asfortranarray(rows), rows.astype(np.float32).T.copy().T):
        whole = encoding.encode(given, 4.0, signs, _Halves())
        for i in range(len(rows)):
            for part in (given[i : i + 1], given[i:], np.insert(given, 0, np.nan, axis=0)[i + 1 :]):
                one = encoding.encode(part, 4.0, signs, _Halves())
                np.testing.assert_array_equal(one[0], whole[i])


@pytest.mark.parametrize("rotated", [False, True])
def test_no_clip_makes_a_vector_longer_than_is_charged(rotated: bool) -> None:
    """Where units over the clip are beyond doubles, numbers become the least integer, or nothing.

    A clip that follows a quantile gets there by itself in some thousand rounds of short updates.
    """
    encoding, signs = UpdateEncoding(5, 1 << 20, rotated), np.ones(8, np.int64)
    rows = np.array([[1.0, 2.0, 0.0, -3.0, 4.0], [1e-320, 0, 0, 0, 0], [1e308, -1e308, 0, 0, 0]])
    for clip in (1e-200, 1e-302, 1e-303, 1e-310, 5e-324, 1e100):
        for row in encoding.encode(rows, clip, signs[: encoding.width], SimulatedWords(1)):
            assert sum(int(v) ** 2 for v in row) <= encoding.squared


def test_a_clip_that_follows_a_quantile_stays_within_doubles() -> None:
    """Round after round in which every update is short, or every one is cut."""
    for clip, update in ((1e-289, [0.0, 0.0]), (1e99, [1e308, 0.0])):
        plan = FedAvg(
            2, clients=3, rate=1, rounds=40, clip=clip, quantile=0.5, clip_rate=9,
            count_share=0.5, noise_multiplier=0.001,
        )  # fmt: skip
        server = Server(plan, [0.0, 0.0], words=SimulatedWords(3))
        for _ in range(plan.rounds):
            opened = server.open()
            for client in opened.clients.tolist():
                assert opened.receive(client, update)
            opened.close()
        assert 1e-290 <= min(server.clips) <= max(server.clips) <= 1e100
        assert server.clips[-1] in {1e-290, 1e100}


class _Halves(SimulatedWords):
    """Words that are all alike, so that what is rounded is rounded alike wherever it stands."""

    def __init__(self) -> None:
        super().__init__(0)

    def words(self, count: int) -> Any:
        return np.full(count, 1 << 63, np.uint64)


def _sums(plan: FedAvg, monkeypatch: pytest.MonkeyPatch, **way: Any) -> list[Any]:
    """What a round adds up before its noise, for each of the first client's rows; last, without."""
    found: list[Any] = []
    close = Round.close

    def closed(self: Round) -> Any:
        found.append(self._total.copy())
        return close(self)

    with monkeypatch.context() as patched:
        patched.setattr(Round, "close", closed)
        patched.setattr(NoiseShare, "draw", lambda self, shape, words=None: np.zeros(shape, int))
        for first in HOSTILE:
            for rows in (1, 40):
                train(
                    Network(FEATURES, CLASSES, (6,)), _rows(first, rows), plan,
                    local=LocalSGD(3, 0.5), words=SimulatedWords(4), **way,
                )  # fmt: skip
    return found


def _moved(sums: list[Any], plan: FedAvg) -> float:
    """The largest squared change by one client, in what is charged for a client replaced."""
    most = max(int(((a - b) ** 2).sum()) for a in sums for b in sums)
    return most / (4 * plan.encoding.l2_squared)


def _shared_row(self: ClientData, which: Any, batch: Any, words: Any) -> Any:
    """The planted mistake: what fills a client up is somebody's row, with a weight of 0."""
    held = self.held(which)
    places = np.broadcast_to(np.arange(64), (len(which), 64))
    there = places < held[:, None]
    rows = np.where(there, self.starts[which][:, None] + places, 0)
    weights = there / np.maximum(there.sum(axis=1, keepdims=True), 1)
    return self.X[rows], self.y[rows], weights.astype(np.float32)


def test_a_client_moves_a_sum_by_its_own_vector_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    """Of a whole round of training; and a row that clients share is seen to move it by more."""
    plan = FedAvg(
        Network(FEATURES, CLASSES, (6,)).size, clients=CLIENTS, rate=1, rounds=1, clip=0.1,
        noise_multiplier=0.001, quantile=0.5, neighbours="replace",
    )  # fmt: skip
    assert 0.1 < _moved(_sums(plan, monkeypatch), plan) <= 1
    taken: Callable[..., Any] = _shared_row
    monkeypatch.setattr(ClientData, "taken", taken)
    assert _moved(_sums(plan, monkeypatch), plan) > 1


def test_a_function_cannot_write_into_what_others_read() -> None:
    """Parameters and clients are copies: the next stack of clients begins where all begin."""
    plan = FedAvg(3, clients=5, rate=1, rounds=1, noise_multiplier=0.001, clip=1)
    seen = []

    def update(parameters: Any, which: Any) -> Any:
        seen.append((parameters.tolist(), which.tolist()))
        found = np.zeros((len(which), 3))
        parameters += 1
        which[:] = 0
        return found

    with pytest.MonkeyPatch.context() as patched:
        patched.setattr("dither.learn.federated._simulate._AT_ONCE", 6)
        fit = train(None, update, plan)
    assert seen == [([0.0] * 3, part) for part in ([0, 1], [2, 3], [4])]
    assert fit.faults.missing == 0


def _torch_module(between: Any) -> Any:
    torch = pytest.importorskip("torch", reason="torch is not installed")
    torch.set_num_threads(1)

    class Module(torch.nn.Module):  # type: ignore[misc,name-defined]
        def __init__(self) -> None:
            super().__init__()
            self.first, self.last = torch.nn.Linear(FEATURES, 6), torch.nn.Linear(6, CLASSES)
            self.register_buffer("most", torch.full((), 10.0))
            self.notes: list[Any] = []

        def forward(self, x: Any) -> Any:
            return self.last(between(self, self.first(x)))

    return Module()


def test_a_client_draws_for_itself_and_not_from_a_known_seed() -> None:
    """Dropout of a module is of the round's words: the script's seed neither tells nor moves."""
    torch = pytest.importorskip("torch", reason="torch is not installed")
    from dither.learn.federated._torch import TorchModel

    model = TorchModel(_torch_module(lambda m, h: torch.nn.functional.dropout(h, 0.5)))
    at, local, found = model.start(), LocalSGD(2, 0.5), []
    for _ in range(2):
        torch.manual_seed(7)
        before = torch.get_rng_state()
        found.append(model.updates(at, _rows(0.3, 2), np.arange(CLIENTS), local, secure_words()))
        assert torch.equal(torch.get_rng_state(), before)
    assert not np.array_equal(*found)
    again = [
        model.updates(at, _rows(first, 2), np.arange(CLIENTS), local, SimulatedWords(1))
        for first in HOSTILE
    ]
    for other in again:
        np.testing.assert_array_equal(other[1:], again[0][1:])


def test_a_module_that_keeps_what_it_saw_of_a_client_is_refused() -> None:
    """On made-up rows where they show it, and else at once, with nothing given out."""
    pytest.importorskip("torch", reason="torch is not installed")
    from dither.learn.federated._torch import TorchModel

    def noting(m: Any, h: Any) -> Any:
        m.notes.append(1)
        return h

    writes = _torch_module(noting)
    local, words = LocalSGD(1, 0.5), SimulatedWords(1)
    model = TorchModel(writes)
    with pytest.raises(ArgumentError, match="running the model changes"):
        model.updates(model.start(), _rows(1, 2), np.arange(CLIENTS), local, words)
    assert writes.notes == []
    rarely = _torch_module(lambda m, h: h)
    model = TorchModel(rarely)
    held = ClientData(np.ones((12, FEATURES)), np.zeros(12, int), np.zeros(12, int), 1)
    rarely.first.register_forward_pre_hook(
        lambda m, given: rarely.notes.append(1) if given[0].shape[-2] == 12 else None
    )
    with pytest.raises(EngineError, match="put back"):
        model.updates(model.start(), held, np.arange(1), local, words)
    assert rarely.notes == []


def test_modules_of_any_layers_are_trained_or_refused_before_a_round() -> None:
    """A recurrent one moves as by a step of torch; one that cannot be trained is named so."""
    torch = pytest.importorskip("torch", reason="torch is not installed")
    from dither.learn.federated._torch import TorchModel

    class Recurrent(torch.nn.Module):  # type: ignore[misc,name-defined]
        def __init__(self) -> None:
            super().__init__()
            self.layer = torch.nn.GRU(1, 4, batch_first=True)
            self.out = torch.nn.Linear(4, CLASSES)

        def forward(self, x: Any) -> Any:
            return self.out(self.layer(x.reshape(len(x), FEATURES, 1))[0][:, -1])

    module, data = Recurrent(), _rows(0.3, 3)
    model, local = TorchModel(module), LocalSGD(1, 0.5)
    found = model.updates(model.start(), data, np.arange(CLIENTS), local, SimulatedWords(1))
    for client in (0, 3, 6):
        X, y = data.X[data.starts[client] :][: data.held(np.array([client]))[0]], data.y
        y = y[data.starts[client] :][: len(X)]
        loss = torch.nn.functional.cross_entropy(
            module(torch.from_numpy(np.array(X))), torch.from_numpy(np.array(y))
        )
        true = torch.autograd.grad(loss, list(module.parameters()))
        moved = -0.5 * torch.cat([g.flatten() for g in true]).numpy()
        np.testing.assert_allclose(found[client], moved, rtol=1e-3, atol=1e-6)
    np.testing.assert_array_equal(found[5], 0)  # It has no row.
    for wrong in (torch.nn.Linear(FEATURES + 1, CLASSES), torch.nn.GRU(FEATURES, CLASSES)):
        model = TorchModel(wrong)
        with pytest.raises(ArgumentError, match=f"fails on made-up rows of {FEATURES} features"):
            model.updates(model.start(), data, np.arange(CLIENTS), local, SimulatedWords(1))
