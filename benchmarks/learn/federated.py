"""Rounds of federated averaging beside Flower's simulation, and secure sums of counts.

Run with ``python -m benchmarks.learn.federated [--peer-rounds N] [--sums]``. 10,000 clients with
eight rows each of the 64 pixels of scikit-learn's digits (drawn with replacement), 50 rounds of 100
clients on average; each client takes five steps of gradient descent on softmax regression. Both
train by the same plan, epsilon = 8 at delta = 1e-5. Flower runs rounds of as many clients, sampled
from fewer (``--peer-clients``), on its Ray backend: its seconds are for one round, less the start
of its processes, times 50. Accuracies after those few rounds are of the same clients. Read the
ratio.

With ``--sums`` also `learn.secure_sum` and `learn.shared_sum` of 1,000 clients with 10,000 counters
each, and Paillier of ``phe`` on the same counters, packed, for one client, times 1,000.
"""

from __future__ import annotations

import argparse
import logging
import os
import time
from typing import Any

import numpy as np

from dither import learn
from dither.learn import federated

CLIENTS, ROUNDS, ROWS = 10_000, 50, 8
LOCAL = federated.LocalSGD(steps=5, rate=0.5, batch=8)


def digits() -> tuple[federated.ClientData, Any, Any]:
    """Clients' rows of two thirds of the digits, and the rest to test."""
    from sklearn.datasets import load_digits

    X, y = load_digits(return_X_y=True)
    X = X / 16
    world = np.random.default_rng(0)
    order = world.permutation(len(X))
    train, test = order[:1200], order[1200:]
    taken = world.choice(train, CLIENTS * ROWS)
    owner = np.repeat(np.arange(CLIENTS), ROWS)
    return federated.ClientData(X[taken], y[taken], owner), X[test], y[test]


def plan(rounds: int, clients: int = CLIENTS) -> federated.FedAvg:
    """The same clients and noise a round, however many are run, and of however many clients."""
    whole = federated.FedAvg(
        650,
        clients=CLIENTS,
        rate=100 / CLIENTS,
        rounds=ROUNDS,
        epsilon=8,
        delta=1e-5,
        clip=1,
        momentum=0.5,
    )
    if rounds == ROUNDS:
        return whole
    return federated.FedAvg(
        650,
        clients=clients,
        rate=100 / clients,
        rounds=rounds,
        noise_multiplier=whole.noise_multiplier,
        clip=1,
        momentum=0.5,
    )


def flower(data: federated.ClientData, rounds: int, clients: int) -> tuple[list[float], Any]:
    """When each round was done on Flower's simulation, and the parameters after the last."""
    os.environ["FLWR_TELEMETRY_ENABLED"] = "0"
    from flwr.simulation import run_simulation

    logging.getLogger("flwr").setLevel(logging.ERROR)
    model, done, last = federated.Network(64, 10), [time.perf_counter()], [np.zeros(650)]
    held = {"X": data.X, "y": data.y}

    def update(parameters: Any, context: Any) -> Any:
        from dither.numeric import secure_words

        i = int(context.node_config["partition-id"])
        rows = slice(i * ROWS, (i + 1) * ROWS)
        own = federated.ClientData(held["X"][rows], held["y"][rows], np.zeros(ROWS, int))
        return model.updates(parameters, own, np.zeros(1, int), LOCAL, secure_words())[0]

    def seen(number: int, parameters: Any) -> None:
        done.append(time.perf_counter())
        last[0] = parameters

    made = plan(rounds, clients)
    run_simulation(
        federated.server_app(made, np.zeros(650), seen=seen),
        federated.client_app(made, update),
        num_supernodes=clients,
        backend_config={"client_resources": {"num_cpus": 1, "num_gpus": 0.0}},
    )
    return done, last[0]


def rounds_of(peer_rounds: int, peer_clients: int) -> None:
    """Print seconds and accuracies."""
    data, X, y = digits()
    model = federated.Network(64, 10)
    made = plan(ROUNDS)
    accuracies, seconds = [], []
    for _ in range(3):
        start = time.perf_counter()
        fit = federated.train(model, data, made, local=LOCAL)
        seconds.append(time.perf_counter() - start)
        accuracies.append((fit.predict(X) == y).mean())
    print(
        f"dither          {ROUNDS} rounds {np.median(seconds):7.2f} s  accuracy "
        f"{np.median(accuracies):.3f}  epsilon {float(made.loss.epsilon(1e-5)):.3f}"
    )
    rows = peer_clients * ROWS
    few = federated.ClientData(data.X[:rows], data.y[:rows], data.client[:rows])
    early = federated.train(model, few, plan(peer_rounds, peer_clients), local=LOCAL)
    accuracy = (early.predict(X) == y).mean()
    print(f"dither          accuracy after {peer_rounds} rounds: {accuracy:.3f}", flush=True)
    try:
        done, last = flower(few, peer_rounds, peer_clients)
    except ImportError:
        print("flwr[simulation] is not installed: pip install 'flwr[simulation]'")
        return
    # The first round starts Ray's workers.
    each = float(np.median(np.diff(done)[1:]))
    accuracy = (model.predict_proba(last, X).argmax(axis=1) == y).mean()
    print(f"flwr simulation {ROUNDS} rounds {each * ROUNDS:7.2f} s  ({each:.2f} s a round)")
    print(f"flwr simulation accuracy after {peer_rounds} rounds: {accuracy:.3f}")
    print(f"flwr / dither: {each * ROUNDS / np.median(seconds):.0f}  (reach: 20)")


def shared_sums(clients: int, size: int) -> None:
    """Print seconds and bytes of the same sum in shares of three servers, of which two open it."""
    world = np.random.default_rng(1)
    plan = learn.shared_sum(size, largest=clients, servers=3, needed=2)
    servers = [plan.server(i) for i in (1, 2, 3)]
    total, spent, added, sent = np.zeros(size, int), 0.0, 0.0, 0
    for client in range(clients):
        counts = world.integers(0, 2, size)
        total += counts
        start = time.perf_counter()
        shares = plan.split(counts)
        between = time.perf_counter()
        servers[0].add(shares[0], str(client))
        added += time.perf_counter() - between
        spent += between - start
        for server, share in zip(servers[1:], shares[1:], strict=True):
            server.add(share, str(client))
        sent = sum(map(len, shares))
    start = time.perf_counter()
    totals = [server.total() for server in servers[:2]]
    between = time.perf_counter()
    assert np.array_equal(plan.open(totals), total)
    opened = time.perf_counter() - between
    added += (between - start) / 2
    print(
        f"in shares, 3 servers: {sent:,} bytes a client; client {1000 * spent / clients:.0f} ms, "
        f"each server {added:.1f} s, opening {1000 * opened:.0f} ms"
    )


def sums(clients: int = 1000, size: int = 10_000) -> None:
    """Print seconds and bytes of a secure sum."""
    world = np.random.default_rng(1)
    holder = learn.secure_sum(size, largest=clients)
    server, spent, added, sent = holder.public.server(), 0.0, 0.0, 0
    total = np.zeros(size, int)
    for _ in range(clients):
        counts = world.integers(0, 2, size)
        total += counts
        start = time.perf_counter()
        message = holder.public.encrypt(counts)
        between = time.perf_counter()
        server.add(message)
        added += time.perf_counter() - between
        spent += between - start
        sent = sum(map(len, message))
    start = time.perf_counter()
    assert np.array_equal(holder.open(server.total()), total)
    opened = time.perf_counter() - start
    print(
        f"secure sum, {clients:,} clients of {size:,} counters: {sent:,} bytes a client; client "
        f"{1000 * spent / clients:.0f} ms, server {added:.1f} s, opening {1000 * opened:.0f} ms"
    )
    shared_sums(clients, size)
    try:
        from phe import generate_paillier_keypair
    except ImportError:
        return
    public, secret = generate_paillier_keypair(n_length=3072)
    packed = 3071 // clients.bit_length()
    start = time.perf_counter()
    one = public.raw_encrypt(1)
    each = time.perf_counter() - start
    number = -(-size // packed)
    start = time.perf_counter()
    secret.raw_decrypt(one)
    print(
        f"Paillier of phe, {number} ciphertexts: {number * 768:,} bytes a client; client "
        f"{each * number:.1f} s, opening {(time.perf_counter() - start) * number:.1f} s"
    )


def main() -> None:
    """Print the figures."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--peer-rounds", type=int, default=3)
    parser.add_argument("--sums", action="store_true")
    parser.add_argument("--peer-clients", type=int, default=400)
    given = parser.parse_args()
    rounds_of(given.peer_rounds, given.peer_clients)
    if given.sums:
        sums()


if __name__ == "__main__":
    main()
