"""The same rounds on real clients, by Flower: an app for its server and one for its clients.

Where the plan's noise is distributed, vectors are summed by Flower's own SecAgg+ (``flwr``'s
``SecAggPlusWorkflow`` and ``secaggplus_mod``): each client's vector is masked so that the server
sees their sum modulo 2^bits, and refuses to be unmasked below the plan's fewest survivors. Else
each client sends its update as it is, and the server is trusted.

Integers through SecAgg+. It quantises floats in [-c, c] to whole numbers of [0, r] by adding c and
multiplying by r/(2c), and rounds at random. With r = 2^bits - 1 and c = r/2 the factor is 1, and
v - c for a whole v in [0, r] comes out as v, exactly, in doubles: nothing is clipped, and nothing
is rounded, which would take the noise out of the hands that are accounted for. The modulus is
2^bits. Each weight is 1. What it gives back, ((Σv mod 2^bits) - nc)·r/(2^bits - n), is turned back.

Who is trusted with what. A client takes the noise, the lattice and the number of rounds from its
own copy of the plan, never from the server, and answers each round once, in order: a server that
asks for less noise or twice gets an error. SecAgg+ holds against a server that follows its
protocol, which forwards keys between clients.

References
----------
Bell, Bonawitz, Gascón, Lepoint and Raykova, "Secure single-server aggregation with
(poly)logarithmic overhead", CCS 2020.
"""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress
from typing import Any

import numpy as np

from dither._extras import extra_library
from dither.errors import ArgumentError, RoundError
from dither.learn.federated._encoding import Floats, Integers
from dither.learn.federated._fedavg import FedAvg
from dither.learn.federated._server import Round, Server, Task

__all__ = ["client_app", "server_app"]

_MOST_BITS = 31
"""SecAgg+ has 32-bit integers with a sign."""
_STATE = "dither.federated"


def _flower(module: str) -> Any:
    """A module of ``flwr``, which is loaded when an app is asked for."""
    return extra_library(f"flwr.{module}", "federated", "the apps of a round need")


def _bits(plan: FedAvg) -> int:
    """Of a distributed sum; 0 where the server adds the noise."""
    if plan.distributed is None:
        return 0
    if plan.bits > _MOST_BITS:
        raise ArgumentError(f"Flower sums numbers of {_MOST_BITS} bits at most: give fewer units")
    return plan.bits


def client_app(plan: FedAvg, update: Callable[[Floats, Any], Any]) -> Any:
    """A client of a plan.

    Parameters
    ----------
    plan : FedAvg
        The client's own copy: what noise it adds is not the server's to say.
    update : callable
        From the parameters, shape (dimension,), and Flower's context of this client to how training
        moves them. Raising an error is dropping out of the round.

    Returns
    -------
    flwr.clientapp.ClientApp
    """
    bits, record = _bits(plan), _flower("common").ConfigRecord
    base = _flower("client").NumPyClient

    class Client(base):  # type: ignore[misc, valid-type]
        def __init__(self, context: Any) -> None:
            self._context = context

        def fit(self, parameters: Any, config: Any) -> Any:
            number, clip = int(config["number"]), float(config["clip"])
            self._answered(number)
            packed = np.frombuffer(config["signs"], np.uint8)
            signs = 1 - 2 * np.unpackbits(packed, count=plan.encoding.width).astype(np.int64)
            at = np.asarray(parameters[0], np.float64)
            task = Task.of(plan, number, at, clip, signs)
            moved = update(at.copy(), self._context)
            if not bits:
                return [np.asarray(moved, np.float64)], 1, {}
            vector = task.contribution(moved)
            return [vector.astype(np.float64) - ((1 << bits) - 1) / 2], 1, {}

        def _answered(self, number: int) -> None:
            """Each round once, in order, and no more than were charged."""
            records = self._context.state.config_records
            last = int(records[_STATE]["number"]) if _STATE in records else -1
            if not last < number < plan.rounds:
                raise ArgumentError("this round is not the next: it was answered, or not charged")
            records[_STATE] = record({"number": number})

    def made(context: Any) -> Any:
        return Client(context).to_client()

    mods = [_flower("client.mod").secaggplus_mod] if bits else []
    return _flower("clientapp").ClientApp(client_fn=made, mods=mods)


class _Rounds:
    """Rounds of a server, as Flower asks a strategy for them."""

    def __init__(
        self, server: Server, seen: Callable[[int, Floats], None] | None, timeout: float | None
    ) -> None:
        self._server, self._seen, self._timeout = server, seen, timeout
        self._open: Round | None = None
        self._common = _flower("common")

    def initialize_parameters(self, client_manager: Any) -> Any:
        """Those that the server begins with."""
        return self._parameters()

    def _parameters(self) -> Any:
        return self._common.ndarrays_to_parameters([self._server.parameters])

    def configure_fit(self, server_round: int, parameters: Any, client_manager: Any) -> Any:
        """Open the next round, and say whom to ask what."""
        self.finish()
        plan = self._server.plan
        # Asking who is there makes Flower look; waiting alone would not.
        if client_manager.num_available() < plan.clients:
            client_manager.wait_for(plan.clients, int(self._timeout or 86_400))
        known = client_manager.all()
        opened = self._open = self._server.open()
        task = opened.task
        config = {
            "number": task.number,
            "clip": task.clip,
            "signs": np.packbits(task.signs < 0).tobytes(),
        }
        # Nodes by their ids, so that a client keeps its number.
        names = sorted(known)[: plan.clients]
        asked = [known[names[i]] for i in opened.clients.tolist() if i < len(names)]
        self._numbers = {names[i]: i for i in opened.clients.tolist() if i < len(names)}
        return [(proxy, self._common.FitIns(self._parameters(), config)) for proxy in asked]

    def aggregate_fit(self, server_round: int, results: Any, failures: Any) -> Any:
        """Take what came, and close the round."""
        opened = self._open
        if opened is not None:
            bits = opened.task.bits
            if bits and results:
                found = self._common.parameters_to_ndarrays(results[0][1].parameters)[0]
                opened.receive_sum(_unscaled(found, len(results), bits), len(results))
            for proxy, result in () if bits else results:
                if result.status.code == self._common.Code.OK:
                    sent = self._common.parameters_to_ndarrays(result.parameters)
                    opened.receive(self._numbers[proxy.cid], sent[0] if sent else None)
        self.finish()
        return self._parameters(), {}

    def finish(self) -> None:
        """Close what is open; too few clients leave the model as it is."""
        opened, self._open = self._open, None
        if opened is None:
            return
        # Of too few clients it is refused, and the model stays as it is.
        with suppress(RoundError):
            opened.close()
        if self._seen is not None:
            self._seen(self._server.rounds, self._server.parameters)

    def configure_evaluate(self, server_round: int, parameters: Any, client_manager: Any) -> Any:
        """Nobody: what clients say of a model would be charged, too."""
        return []

    def aggregate_evaluate(self, server_round: int, results: Any, failures: Any) -> Any:
        """Nothing."""
        return None, {}

    def evaluate(self, server_round: int, parameters: Any) -> Any:
        """Nothing."""
        return None


def _unscaled(found: Any, clients: int, bits: int) -> Integers:
    """The sum modulo 2^bits that SecAgg+ has made a mean of: whole, so rounding is exact."""
    most = (1 << bits) - 1
    total = np.asarray(found, np.float64) * (((1 << bits) - clients) / most) + clients * most / 2
    return np.asarray(np.rint(total).astype(np.int64) & most)


def server_app(
    plan: FedAvg,
    start: Any,
    *,
    seen: Callable[[int, Floats], None] | None = None,
    timeout: float | None = None,
) -> Any:
    """The server of a plan.

    Parameters
    ----------
    plan : FedAvg
        For as many clients as Flower has nodes, or fewer; charge its loss first.
    start : array of float, shape (dimension,)
        Public parameters to begin with.
    seen : callable, optional
        Told, after each round, how many are done and the parameters, which are private by then.
    timeout : float, optional
        Seconds to wait for clients' answers; one that has not come by then dropped out.

    Returns
    -------
    flwr.serverapp.ServerApp
        Where the noise is distributed, its rounds go through SecAgg+.
    """
    bits = _bits(plan)
    app, flower = _flower("serverapp").ServerApp(), _flower("server")
    workflows = _flower("server.workflow")

    def main(grid: Any, context: Any) -> None:
        rounds = _Rounds(Server(plan, start), seen, timeout)
        legacy = flower.LegacyContext(
            context=context,
            config=flower.ServerConfig(num_rounds=plan.rounds, round_timeout=timeout),
            strategy=rounds,
        )
        workflow = None
        if bits and plan.distributed is not None:
            workflow = workflows.SecAggPlusWorkflow(
                num_shares=1.0,
                reconstruction_threshold=max(2, plan.distributed.survivors),
                max_weight=1.0,
                clipping_range=((1 << bits) - 1) / 2,
                quantization_range=(1 << bits) - 1,
                modulus_range=1 << bits,
                timeout=timeout,
            )
        workflows.DefaultWorkflow(fit_workflow=workflow)(grid, legacy)
        rounds.finish()

    app.main()(main)
    return app
