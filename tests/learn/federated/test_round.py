"""Rounds of clients: what is bounded, what goes wrong, and what a simulation learns."""

from __future__ import annotations

import math
from dataclasses import asdict
from fractions import Fraction
from typing import Any

import numpy as np
import pytest

from dither.errors import ArgumentError, RoundError
from dither.learn.federated import (
    ClientData,
    DistributedNoise,
    FedAvg,
    LocalSGD,
    Network,
    Server,
    train,
)
from dither.learn.federated._encoding import UpdateEncoding
from dither.learn.federated._noise import NoiseShare
from dither.numeric import SimulatedWords

QUIET: dict[str, Any] = {"clients": 4, "rate": 1, "noise_multiplier": 0.001}
SUMMED = DistributedNoise("skellam", survivors=3, most=4, units=4000)


@pytest.fixture
def silent(monkeypatch: pytest.MonkeyPatch) -> None:
    """Without noise, so that what a round computes is seen."""
    monkeypatch.setattr(
        NoiseShare, "draw", lambda self, shape, words=None: np.zeros(shape, dtype=np.int64)
    )


def _counted(server: Server) -> dict[str, int]:
    return {name: count for name, count in asdict(server.faults).items() if count}


def test_updates_are_cut_then_divided_by_a_fixed_number(silent: None) -> None:
    """One client of four answers, four times too long: its cut update over q·N, and momentum."""
    plan = FedAvg(2, rounds=2, momentum=0.5, server_rate=2.0, **QUIET)
    server = Server(plan, [1.0, 1.0])
    opened = server.open()
    assert opened.receive(0, [0.0, 4.0])
    assert np.allclose(opened.close(), [1.0, 1.0 + 2 * 1 / 4], atol=1e-5)
    opened = server.open()
    assert opened.receive(3, [0.0, -0.5])
    assert np.allclose(opened.close(), [1.0, 1.5 + 2 * (0.5 / 4 - 0.5 / 4)], atol=1e-5)
    assert server.rounds == 2
    with pytest.raises(ArgumentError, match="all 2 rounds"):
        server.open()


def _largest_change(plan: FedAvg, mistake: Any = None) -> float:
    """The most that one client's answer moves the published step, in lengths of what is charged."""
    found = []
    for others in ([], [[0.2, 0.1]], [[0.3, 0.3], [-1.0, 2.0]]):
        for update in ([9.0, 0.0], [-3.0, 4.0], [0.1, 0.0]):
            steps = []
            for there in (False, True):
                server = Server(plan, [0.0, 0.0])
                opened = server.open()
                for client, row in enumerate(others):
                    opened.receive(client + 1, row)
                if there:
                    opened.receive(0, update)
                before = server.parameters
                after = opened.close()
                step = after - before
                steps.append(mistake(step, opened.received) if mistake else step)
            found.append(float(np.linalg.norm(steps[1] - steps[0])))
    return max(found) * plan.clients * float(plan.rate) / float(plan.clip)


def test_one_client_moves_a_step_by_its_cut_alone(
    silent: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    """And planted mistakes are seen: the number that came as divisor, cutting the sum instead."""
    plan = FedAvg(2, rounds=1, clip=0.5, **QUIET)
    assert _largest_change(plan) <= 1 + 1e-6

    def by_number(step: Any, came: int) -> Any:
        return step * plan.clients / max(came, 1)

    assert _largest_change(plan, by_number) > 1.5
    encode = UpdateEncoding.encode
    # Cut at ten times the length, and the mean cut afterwards, as if the step were what counts.
    monkeypatch.setattr(
        UpdateEncoding,
        "encode",
        lambda self, rows, clip, signs, words: 10 * encode(self, rows / 10, clip, signs, words),
    )

    def cut_late(step: Any, came: int) -> Any:
        return step * min(1.0, 0.5 / max(float(np.linalg.norm(step)), 1e-12))

    assert _largest_change(plan, cut_late) > 1.5


@pytest.mark.parametrize("distributed", [None, SUMMED])
def test_faults_stop_nobody(silent: None, distributed: DistributedNoise | None) -> None:
    """Dropped out, NaN, too large, twice, out of turn: each handled, counted, and nothing lost."""
    plan = FedAvg(2, rounds=2, distributed=distributed, **QUIET)
    server = Server(plan, [0.0, 0.0])
    opened = server.open()

    def sent(update: Any) -> Any:
        return opened.task.contribution(update) if distributed else update

    assert opened.receive(0, sent([0.25, 0.5]))
    assert not opened.receive(0, sent([0.25, 0.5]))
    assert opened.receive(1, sent([math.nan, 1.0]))
    assert not opened.receive(7, sent([1.0, 1.0]))
    assert not opened.receive(2, sent([1.0, 1.0]), number=5)
    assert not opened.receive(2, "nonsense")
    assert not opened.receive(2, [1.0, 2.0, 3.0])
    assert opened.receive(2, sent([1e300, 0.0]), number=0)
    moved = opened.close()
    assert np.allclose(moved, [(0.25 + 1.0) / 4, 0.5 / 4], atol=1e-3)
    assert not opened.receive(3, [0.0, 0.0])
    wanted = {"missing": 1, "misshapen": 2, "twice": 1, "out_of_turn": 3}
    # Where the sum alone is seen, so is what is in it.
    assert _counted(server) == wanted | ({} if distributed else {"not_finite": 1})
    with pytest.raises(ArgumentError, match="closed"):
        opened.close()


def test_too_few_are_refused_before_anything_is_opened(monkeypatch: pytest.MonkeyPatch) -> None:
    """The model stays, no noise is drawn, the round is spent, and the next one goes on."""
    plan = FedAvg(2, rounds=2, distributed=SUMMED, **QUIET)
    server = Server(plan, [0.0, 0.5])
    opened = server.open()
    for client in (0, 2):
        opened.receive(client, opened.task.contribution([1.0, 1.0]))
    monkeypatch.setattr(NoiseShare, "draw", lambda *_: pytest.fail("the sum was opened"))
    with pytest.raises(RoundError, match="fewer than 3 clients"):
        opened.close()
    monkeypatch.undo()
    assert server.parameters.tolist() == [0.0, 0.5]
    assert server.faults.missing == 2
    server.open()
    with pytest.raises(ArgumentError, match="close the open round"):
        server.open()


def test_a_secure_sum_is_all_the_server_needs() -> None:
    """Vectors summed elsewhere, modulo 2^bits, give the model that they give one by one."""
    plan = FedAvg(5, rounds=1, distributed=SUMMED, **QUIET)
    server, updates = Server(plan, np.zeros(5)), np.eye(5)[:4] / 2
    opened = server.open()
    vectors = [opened.task.contribution(row) for row in updates]
    assert all(int(v.min()) >= 0 and int(v.max()) < 1 << plan.bits for v in vectors)
    total = np.sum(vectors, axis=0) % (1 << plan.bits)
    with pytest.raises(ArgumentError, match="whole numbers below"):
        opened.receive_sum(total - (1 << plan.bits), 4)
    with pytest.raises(ArgumentError, match="at most as many clients"):
        opened.receive_sum(total, 5)
    opened.receive_sum(total, 4)
    with pytest.raises(ArgumentError, match="one sum"):
        opened.receive_sum(total, 4)
    assert np.allclose(opened.close(), [0.125] * 4 + [0], atol=0.01)
    alone = Server(FedAvg(5, rounds=1, **QUIET), np.zeros(5)).open()
    with pytest.raises(ArgumentError, match="distributed"):
        alone.receive_sum(total, 4)


def test_one_vector_tells_nothing_without_its_noise() -> None:
    """A contribution of zeros and of an update are alike where a share is as wide as the modulus.

    200 coordinates, chi-squared; false alarms below 1e-6.
    """
    wide = DistributedNoise("skellam", survivors=1, most=1, units=40, wrap=0.5)
    plan = FedAvg(256, clients=1, rate=1, rounds=1, noise_multiplier=50, distributed=wide)
    task = Server(plan, np.zeros(256)).open().task
    words = SimulatedWords(4)
    sent = np.array([task.contribution(np.zeros(256), words) for _ in range(40)])
    centre = np.where(sent >= 1 << (task.bits - 1), sent - (1 << task.bits), sent)
    assert float(centre.var()) == pytest.approx(float(plan.share().variance), rel=0.1)


def test_clip_follows_the_quantile() -> None:
    """Half of the updates are 1 long and half 3: the clip for the quarter ends near 1, not near 3.

    Lengths are private: the noisy count alone moves it.
    """
    plan = FedAvg(
        3,
        clients=400,
        rate=0.5,
        rounds=14,
        noise_multiplier=1,
        clip=8.0,
        quantile=0.25,
        clip_rate=1,
    )

    def updates(parameters: Any, which: Any) -> Any:
        return np.eye(3)[0] * np.where(which % 2, 3.0, 1.0)[:, None]

    fit = train(None, updates, plan, words=SimulatedWords(6))
    assert fit.clips[0] == 8.0
    assert 0.7 < fit.clips[-1] < 1.5
    assert "clip: from 8" in fit.summary()


def _data(clients: int = 300, seed: int = 0) -> tuple[ClientData, Any, Any]:
    generator = np.random.default_rng(seed)
    client = np.repeat(np.arange(clients), 6)
    y = generator.integers(0, 3, len(client))
    X = np.eye(3)[y] @ np.array([[2, 0, 0, 1], [0, 2, 0, -1], [0, 0, 2, 0]])
    return ClientData(X + generator.normal(size=X.shape), y, client), X, y


@pytest.mark.parametrize(
    "distributed", [None, DistributedNoise("skellam", survivors=20), "gaussian"]
)
@pytest.mark.parametrize("hidden", [(), (8,)])
def test_training_learns(distributed: Any, hidden: tuple[int, ...]) -> None:
    """Three clouds of four features, with noise that is the server's or the clients'."""
    if distributed == "gaussian":
        distributed = DistributedNoise("discrete gaussian", survivors=20)
    data, X, y = _data()
    model = Network(4, 3, hidden)
    plan = FedAvg(
        model.size, clients=300, rate=0.5, rounds=15, noise_multiplier=1, distributed=distributed
    )
    local = LocalSGD(steps=4, rate=0.5, batch=4)
    fit = train(model, data, plan, local=local, words=SimulatedWords(9))
    assert (fit.predict(X) == y).mean() > 0.9
    assert fit.refused == 0
    assert fit.loss is plan.loss


def test_steps_are_gradient_steps() -> None:
    """Stacked steps are those of each client by itself, by finite differences of its mean loss."""
    data, _, _ = _data(5)
    model = Network(4, 3, (5,))
    words = SimulatedWords(1)
    at = model.start(words) + 0.1
    which = np.array([3, 1])
    found = model.updates(at, data, which, LocalSGD(1, 0.5), words) / -0.5

    def mean_loss(parameters: Any, client: int) -> float:
        rows = slice(data.starts[client], data.starts[client + 1])
        chances = model.predict_proba(parameters, data.X[rows])
        return -float(np.log(chances[np.arange(len(chances)), data.y[rows]]).mean())

    for row, client in zip(found, which, strict=True):
        for i in range(0, model.size, 7):
            step = np.zeros(model.size)
            step[i] = 1e-2
            slope = (mean_loss(at + step, client) - mean_loss(at - step, client)) / 2e-2
            assert row[i] == pytest.approx(slope, abs=2e-3)


def test_clients_without_rows_and_of_different_sizes() -> None:
    """Padding counts for nothing, and nobody's rows are another's."""
    X = np.array([[1.0], [2.0], [3.0]])
    data = ClientData(X, np.array([0, 1, 0]), np.array([2, 0, 2]), clients=4)
    words = SimulatedWords(1)
    for batch in (None, 2):
        taken, _, weights = data.taken(np.arange(4), batch, words)
        assert weights.sum(axis=1).tolist() == [1, 0, 1, 0]
        assert set(taken[2, weights[2] > 0].ravel()) <= {1.0, 3.0}
        assert set(taken[0, weights[0] > 0].ravel()) == {2.0}
    moved = Network(1, 2).updates(np.zeros(4), data, np.arange(4), LocalSGD(2, 0.1), words)
    assert not moved[[1, 3]].any()
    assert moved[[0, 2]].any()
    assert repr(data) == "<ClientData of 4 clients, 3 rows of 1 features>"


def test_local_updates_of_ones_own() -> None:
    """A function trains as it likes; what is not floats of the right shape is refused."""
    plan = FedAvg(2, clients=50, rate=1, rounds=1, noise_multiplier=0.001, clip=10)

    def updates(parameters: Any, which: Any) -> Any:
        found = np.tile([1.0, 2.0], (len(which), 1))
        found[0] = np.nan
        return found

    fit = train(None, updates, plan)
    assert np.allclose(fit.parameters, [49 / 50, 98 / 50], atol=0.01)
    assert fit.faults.not_finite == 1
    with pytest.raises(ArgumentError, match="shape"):
        train(None, lambda parameters, which: np.zeros((1, 2)), plan)
    with pytest.raises(ArgumentError, match="predictions need a model"):
        fit.predict([[1.0]])


def test_torch_modules_train_alike() -> None:
    """A linear module moves as the network of the same weights does."""
    torch = pytest.importorskip("torch", reason="torch is not installed")
    torch.set_num_threads(1)
    from dither.learn.federated._torch import TorchModel

    data, X, y = _data(60)
    module = torch.nn.Linear(4, 3, dtype=torch.float64)
    ours, words = Network(4, 3), SimulatedWords(3)
    theirs = TorchModel(module)
    assert theirs.size == ours.size
    start = theirs.start()
    turned = np.concatenate([start[:12].reshape(3, 4).T.ravel(), start[12:]])
    local = LocalSGD(3, 0.2)
    moved = theirs.updates(start, data, np.arange(10), local, words)
    wanted = ours.updates(turned, data, np.arange(10), local, words)
    alike = np.concatenate(
        [moved[:, :12].reshape(10, 3, 4).transpose(0, 2, 1).reshape(10, 12), moved[:, 12:]], axis=1
    )
    assert np.allclose(alike, wanted, atol=1e-4)
    plan = FedAvg(15, clients=60, rate=1, rounds=6, noise_multiplier=0.3)
    fit = train(module, data, plan, local=LocalSGD(4, 0.5, 4), words=words)
    assert (fit.predict(X) == y).mean() > 0.8
    with pytest.raises(ArgumentError, match="batch normalisation"):
        train(torch.nn.Sequential(torch.nn.BatchNorm1d(4)), data, plan)


BAD: list[tuple[dict[str, Any], str]] = [
    ({"dimension": 0}, "dimension"),
    ({"clients": 0}, "clients"),
    ({"rate": 0}, "rate"),
    ({"rate": 1.5}, "rate"),
    ({"rounds": 0}, "rounds"),
    ({"clip": math.nan}, "clip"),
    ({"clip": 0}, "clip"),
    ({"momentum": 1}, "momentum"),
    ({"quantile": 1}, "quantile"),
    ({"epsilon": 1}, "not both"),
    ({"noise_multiplier": None, "epsilon": 1}, "delta must be given"),
    ({"noise_multiplier": None}, "not both"),
    ({"noise_multiplier": math.inf}, "noise_multiplier"),
    ({"distributed": "skellam"}, "DistributedNoise"),
    ({"neighbours": "swap"}, "neighbours"),
]


@pytest.mark.parametrize(("wrong", "words"), BAD)
def test_plans_refuse(wrong: dict[str, Any], words: str) -> None:
    """Each by its argument's name."""
    good = {"dimension": 3, "clients": 10, "rate": 0.5, "rounds": 2, "noise_multiplier": 1}
    with pytest.raises(ArgumentError, match=words):
        FedAvg(**(good | wrong))


def test_other_arguments_refuse() -> None:
    """Of data, noise, training and server."""
    with pytest.raises(ArgumentError, match="survivors"):
        DistributedNoise("skellam", survivors=0)
    with pytest.raises(ArgumentError, match="law"):
        DistributedNoise("laplace")
    with pytest.raises(ArgumentError, match="honest"):
        DistributedNoise("skellam", survivors=2, honest="1/10")
    with pytest.raises(ArgumentError, match="most"):
        DistributedNoise("skellam", survivors=5, most=4)
    with pytest.raises(ArgumentError, match="one label"):
        ClientData(np.zeros((2, 1)), np.zeros(3, int), np.zeros(2, int))
    with pytest.raises(ArgumentError, match="y must be whole"):
        ClientData(np.zeros((2, 1)), np.zeros(2), np.zeros(2, int))
    few = DistributedNoise("skellam", survivors=2, most=3)
    with pytest.raises(ArgumentError, match="at least clients"):
        FedAvg(3, clients=4, rate=1, rounds=1, noise_multiplier=1, distributed=few)
    with pytest.raises(ArgumentError, match="most"):
        FedAvg(3, clients=40, rate=0.9, rounds=1, noise_multiplier=1, distributed=few)
    plan = FedAvg(3, clients=2, rate=1, rounds=1, noise_multiplier=1)
    with pytest.raises(ArgumentError, match="3 finite numbers"):
        Server(plan, [0.0, 1.0, math.inf])
    data = ClientData(np.zeros((2, 1)), np.zeros(2, int), np.arange(2))
    with pytest.raises(ArgumentError, match="4 parameters, and the plan is for 3"):
        train(Network(1, 2), data, plan)
    with pytest.raises(ArgumentError, match="sees each update"):
        plan.server_loss()
    with pytest.raises(ArgumentError, match="model must be"):
        train("model", data, plan)


@pytest.mark.parametrize("hidden", ["X", "y", "client"])
def test_arrays_with_a_mask_are_refused(hidden: str) -> None:
    """What lies under a mask would be trained on, or be another client's row."""
    given: dict[str, Any] = {"X": np.ones((2, 1)), "y": np.zeros(2, int), "client": np.arange(2)}
    given[hidden] = np.ma.array(given[hidden], mask=False)
    with pytest.raises(ArgumentError, match="leave masked rows out"):
        ClientData(**given)


def test_nobody_is_sampled_above_the_rate_that_is_charged(monkeypatch: pytest.MonkeyPatch) -> None:
    """The double 0.8 lies above 4/5, which is what is charged; the coin between them is tails."""
    between = math.floor(0.8 * 2**53) - 1
    assert Fraction(4, 5) * 2**53 < between + 1

    class Coins:
        def words(self, size: int) -> Any:
            return np.full(size, between << 11, dtype=np.uint64)

    monkeypatch.setattr(Server, "_source", property(lambda self: Coins()))
    server = Server(FedAvg(2, clients=4, rate=0.8, rounds=1, noise_multiplier=1), [0.0, 0.0])
    opened = server.open()
    assert not any(opened.receive(client, [0.0, 0.0]) for client in range(4))
