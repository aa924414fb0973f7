"""The same rounds on Flower: its SecAgg+ sums exactly, and no server can ask for less noise."""

from __future__ import annotations

import copy
import io
from collections.abc import Iterator
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

pytest.importorskip("flwr", reason="flwr is not installed")

from flwr.common import Context, RecordDict
from flwr.common.secure_aggregation.secaggplus_constants import RECORD_KEY_CONFIGS
from flwr.supercore.task_identity import TaskIdentity

from dither.errors import ArgumentError
from dither.learn import federated
from dither.learn.federated import DistributedNoise, FedAvg
from dither.learn.federated._noise import NoiseShare

pytestmark = pytest.mark.filterwarnings("ignore")


@pytest.fixture(autouse=True)
def _task(monkeypatch: pytest.MonkeyPatch) -> None:
    """What a process of Flower's knows of itself."""
    for name in ("_task_id", "_run_id", "_node_id"):
        monkeypatch.setattr(TaskIdentity, name, 1)


class Nodes:
    """Flower's grid with its nodes in this process: messages are handled where they are sent."""

    def __init__(self, app: Any, count: int, absent: Any = ()) -> None:
        self._app, self._absent = app, set(absent)
        self._contexts = {
            100 + i: Context(1, 100 + i, {"partition-id": i}, RecordDict(), {})
            for i in range(count)
        }
        self.run = SimpleNamespace(run_id=1)
        self.seen: list[Any] = []

    def get_node_ids(self) -> Any:
        return list(self._contexts)

    def send_and_receive(self, messages: Any, *, timeout: Any = None) -> Any:
        return list(self._answers(messages))

    def _answers(self, messages: Any) -> Iterator[Any]:
        for message in messages:
            node = message.metadata.dst_node_id
            config = message.content.config_records.get(RECORD_KEY_CONFIGS, {})
            if (node - 100, config.get("stage")) in self._absent:
                continue
            try:
                # On the wire each has a copy of its own.
                answer = self._app(copy.deepcopy(message), self._contexts[node])
            except Exception as error:
                self.seen.append(error)
                continue
            answer.metadata.__dict__["_src_node_id"] = node
            self.seen.append(answer)
            yield answer


def _run(plan: FedAvg, updates: Any, absent: Any = ()) -> tuple[Any, Nodes]:
    def update(parameters: Any, context: Any) -> Any:
        return updates[context.node_config["partition-id"]]

    found: list[Any] = []
    app = federated.server_app(
        plan, np.zeros(plan.dimension), seen=lambda done, at: found.append(at)
    )
    nodes = Nodes(federated.client_app(plan, update), plan.clients, absent)
    app(nodes, Context(1, 0, {}, RecordDict(), {}))
    return found, nodes


SUMMED = DistributedNoise("skellam", survivors=3, most=4, units=4000)


@pytest.mark.parametrize("distributed", [None, SUMMED])
def test_rounds_are_those_of_the_plan(distributed: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    """Without noise, two rounds on four clients: the mean of their updates, twice."""
    monkeypatch.setattr(
        NoiseShare, "draw", lambda self, shape, words=None: np.zeros(shape, dtype=np.int64)
    )
    plan = FedAvg(5, clients=4, rate=1, rounds=2, noise_multiplier=0.001, distributed=distributed)
    updates = np.eye(5)[:4] / 2 - 0.1
    found, nodes = _run(plan, updates)
    assert [error for error in nodes.seen if isinstance(error, Exception)] == []
    assert len(found) == 2
    for done, at in enumerate(found, 1):
        assert np.allclose(at, done * updates.mean(axis=0), atol=2e-3)


def test_a_client_that_drops_out_is_unmasked_from_the_sum() -> None:
    """One of four is gone when vectors are collected: three shares of noise, and three updates."""
    plan = FedAvg(5, clients=4, rate=1, rounds=1, noise_multiplier=0.01, distributed=SUMMED)
    updates = np.eye(5)[:4] / 2
    found, _ = _run(plan, updates, absent=[(2, "collect_masked_vectors")])
    assert np.allclose(found[0], updates[[0, 1, 3]].sum(axis=0) / 4, atol=0.05)


def test_too_few_are_never_unmasked() -> None:
    """Two of four are gone: SecAgg+ stops, the model stays, and the next round goes on."""
    plan = FedAvg(5, clients=4, rate=1, rounds=1, noise_multiplier=0.01, distributed=SUMMED)
    gone = [(i, "collect_masked_vectors") for i in (0, 2)]
    found, nodes = _run(plan, np.eye(5)[:4], absent=gone)
    assert not found[0].any()
    assert not any("unmask" in str(getattr(m, "content", "")) for m in nodes.seen)


def test_the_server_sees_masked_vectors_alone() -> None:
    """What a client sends is uniform over the modulus, though its update is zeros."""
    plan = FedAvg(2000, clients=3, rate=1, rounds=1, noise_multiplier=0.01, distributed=SUMMED)
    _, nodes = _run(plan, np.zeros((4, 2000)))
    sent = [
        np.load(io.BytesIO(m.content.config_records[RECORD_KEY_CONFIGS]["masked_params"][1]))
        for m in nodes.seen
        if "masked_params" in m.content.config_records.get(RECORD_KEY_CONFIGS, {})
    ]
    assert len(sent) == 3
    for vector in sent:
        share = np.asarray(vector).ravel() / (1 << plan.bits)
        # 2048 uniform numbers; false alarms below 1e-9.
        assert abs(float(share.mean()) - 0.5) < 6.2 * 0.2887 / 2048**0.5


def test_a_server_cannot_ask_twice_or_for_more_rounds() -> None:
    """The client counts for itself."""
    plan = FedAvg(2, clients=2, rate=1, rounds=2, noise_multiplier=1)
    made = _client(plan)
    signs = np.packbits(np.zeros(2, bool)).tobytes()
    asked = {"number": 0, "clip": 1.0, "signs": signs}
    assert made.fit([np.zeros(2)], asked)[1] == 1
    for number in (0, 2):
        with pytest.raises(ArgumentError, match="not the next"):
            made.fit([np.zeros(2)], asked | {"number": number})
    assert made.fit([np.zeros(2)], asked | {"number": 1})[1] == 1


def _client(plan: FedAvg) -> Any:
    """A client's own object, without Flower around it."""
    app = federated.client_app(plan, lambda parameters, context: parameters + 1)
    context = Context(1, 7, {}, RecordDict(), {})
    made = app._call.__closure__
    for cell in made or ():
        function = cell.cell_contents
        for inner in getattr(function, "__closure__", None) or ():
            if callable(inner.cell_contents) and inner.cell_contents.__name__ == "made":
                return inner.cell_contents(context).numpy_client
        if getattr(function, "__name__", "") == "made":
            return function(context).numpy_client
    raise AssertionError("Flower keeps its client function elsewhere")
