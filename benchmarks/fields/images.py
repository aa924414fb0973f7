"""Simulated lesion images: a private head on fixed features, DP-SGD on pixels, and attacks.

Run with ``python -m benchmarks.fields.images [--side 64] [--only heads]``; ten minutes, of which
DP-SGD takes most. Figures are shares of 1,000 held-out images that are told right; one label in
twenty is wrong, so .95 is the most.
"""

from __future__ import annotations

import argparse
import time
import warnings
from functools import partial
from typing import Any

import numpy as np
import numpy.typing as npt

from dither import learn

Floats = npt.NDArray[np.float64]
DELTA = 1e-5


def lesions(n: int, side: int, rng: np.random.Generator) -> tuple[Floats, npt.NDArray[np.int64]]:
    """Dark spots on skin, shape (n, side, side), in 0 to 1; 1 where the border is ragged.

    Size, place, darkness, light and hairs vary alike in both kinds, and one label in twenty is
    wrong, as in practice.
    """

    def any_of(low: float, high: float) -> npt.NDArray[np.float32]:
        return rng.uniform(low, high, (n, 1, 1)).astype(np.float32)

    y, x = (np.mgrid[0:side, 0:side] / side - 0.5).astype(np.float32)
    ragged = rng.random(n) < 0.5
    dx, dy = x - any_of(-0.1, 0.1), y - any_of(-0.1, 0.1)
    radius = np.hypot(dx, dy * any_of(0.8, 1.25)) + 1e-6
    z = (dx + 1j * dy) / np.hypot(dx, dy + 1e-6)
    turned, border = z**4, np.ones_like(radius)
    for _ in range(5, 10):
        turned *= z
        height = np.where(ragged, 0.11, 0.03)[:, None, None] * rng.rayleigh(0.7, (n, 1, 1))
        phase = np.exp(2j * np.pi * rng.random((n, 1, 1)))
        border += (turned * (height * phase).astype(np.complex64)).real
    inside = 1 / (1 + np.exp((radius - any_of(0.16, 0.28) * border) * (side * 2 / 3)))
    image = 0.75 + any_of(-0.2, 0.2) * x + any_of(-0.2, 0.2) * y - any_of(0.2, 0.45) * inside
    for _ in range(2):  # hairs
        turn, there = any_of(0, np.pi), any_of(0, 1) < 0.5
        far = np.abs(np.cos(turn) * x + np.sin(turn) * y - any_of(-0.4, 0.4))
        image -= 0.25 * there * (far < 0.7 / side)
    image += 0.04 * rng.standard_normal(image.shape, dtype=np.float32)
    return np.clip(image, 0, 1), (ragged ^ (rng.random(n) < 0.05)).astype(np.int64)


def features(images: Floats) -> Floats:
    """What is fixed beforehand of each image by itself, shape (n, 51).

    The centre of what is dark; the light on 32 rays from it at twelve distances; how much of it
    turns 0, 1, ... 16 times in a round, in three bands of distance; logarithms, at about -1 to 1.
    """
    n, side = images.shape[:2]
    dark = np.clip(0.7 - images, 0, None) ** 2
    y, x = np.mgrid[0:side, 0:side]
    weight = dark.sum(axis=(1, 2)) + 1e-6
    across, down = ((dark * at).sum(axis=(1, 2)) / weight for at in (x, y))
    turn, far = 2 * np.pi * np.arange(32) / 32, (np.arange(12) + 0.5) * side / 25
    rays = [
        np.clip(np.rint(c[:, None, None] + far[:, None] * wave), 0, side - 1).astype(int)
        for c, wave in ((down, np.sin(turn)), (across, np.cos(turn)))
    ]
    light = images[np.arange(n)[:, None, None], rays[0], rays[1]]
    waves = np.abs(np.fft.rfft(light, axis=2)).reshape(n, 3, 4, 17) ** 2
    found: Floats = np.clip((np.log(waves.mean(axis=2) + 1e-3) + 1).reshape(n, -1) / 6, -1, 1)
    return found


def head(epsilon: float) -> learn.LogisticRegression:
    """A linear head on the features, whose bounds are those to which they are cut."""
    return learn.LogisticRegression(
        epsilon=epsilon, delta=DELTA, bounds=([-1] * 51, [1] * 51), classes=[0, 1]
    )


def network() -> Any:
    """A convolutional network of few numbers; its norms are of single images."""
    from torch import nn

    return nn.Sequential(
        nn.Conv2d(1, 4, 5, stride=2, padding=2),
        nn.GroupNorm(1, 4),
        nn.Tanh(),
        nn.Conv2d(4, 8, 5, stride=2, padding=2),
        nn.GroupNorm(1, 8),
        nn.Tanh(),
        nn.AdaptiveAvgPool2d(4),
        nn.Flatten(),
        nn.Linear(128, 2),
    )


HOW: dict[str, Any] = {
    "rate": 0.125,
    "learning_rate": 1.0,
    "momentum": 0.9,
    "clip": "automatic",
    "delta": DELTA,
}
"""Tried on images of another seed."""


def convolutions(side: int, rng: np.random.Generator, n: int = 2_000, rounds: int = 2) -> None:
    """The network, trained on pixels with DP-SGD and without; each round on images of its own."""
    import torch

    torch.set_num_threads(1)
    torch.manual_seed(2)
    print(f"network of {sum(p.numel() for p in network().parameters()):,} numbers, {n:,} images")

    def told(name: str, model: Any, begin: float, test: tuple[Any, Any]) -> None:
        with torch.no_grad():
            share = float((model(test[0]).argmax(1) == test[1]).float().mean())
        spent = time.process_time() - begin
        print(f"  {name}: {share:.3f}, {spent:.0f} s of processor", flush=True)

    for _ in range(rounds):
        X, y = lesions(n + 1000, side, rng)
        X = (X[:, None] - 0.6) * 3
        rows = torch.tensor(X[:n]), torch.tensor(y[:n])
        test = torch.tensor(X[n:]), torch.tensor(y[n:])
        model, begin = network(), time.process_time()
        optimizer = torch.optim.Adam(model.parameters(), lr=2e-3)
        for _ in range(40):
            for part in torch.randperm(n).split(64):
                optimizer.zero_grad()
                torch.nn.functional.cross_entropy(model(rows[0][part]), rows[1][part]).backward()
                optimizer.step()
        told("no privacy, 40 epochs of Adam", model, begin, test)
        model, begin = network(), time.process_time()
        learn.train(model, rows, noise_multiplier=0.01, steps=40, **HOW)
        told("hardly any noise, 40 steps", model, begin, test)
        for epsilon in (1, 3, 8):
            model, begin = network(), time.process_time()
            learn.train(model, rows, epsilon=epsilon, steps=400, **HOW)
            told(f"ε = {epsilon}, 400 steps", model, begin, test)


def heads(side: int, rng: np.random.Generator) -> None:
    """Accuracy of the private head, by images and epsilon; mean (deviation of a run) of five."""
    from sklearn.linear_model import LogisticRegression

    epsilons = (0.3, 1, 3, 8)
    print(f"head on fixed features, {side} × {side}")
    print(f"{'images':>8}" + "".join(f"{f'ε = {e}':>15}" for e in epsilons) + f"{'no privacy':>15}")
    for n in (500, 2_000):
        runs = []
        for _ in range(5):
            # Some at a time, so that memory holds them.
            parts = [lesions(500, side, rng) for _ in range(n // 500 + 2)]
            rows = np.concatenate([features(X) for X, _ in parts])
            y = np.concatenate([labels for _, labels in parts])
            kept, held = slice(n), slice(n, None)
            bare = LogisticRegression(max_iter=500).fit(rows[kept], y[kept])
            line = [head(e).fit(rows[kept], y[kept]).score(rows[held], y[held]) for e in epsilons]
            runs.append([*line, bare.score(rows[held], y[held])])
        mean, spread = np.mean(runs, axis=0), np.std(runs, axis=0)
        cells = [f"{a:.3f} ({b:.3f})" for a, b in zip(mean, spread, strict=True)]
        print(f"{n:>8,}" + "".join(f"{cell:>15}" for cell in cells), flush=True)


def canaries(side: int, rng: np.random.Generator, n: int = 500, plays: int = 200) -> None:
    """One image with the wrong label, in by a coin: told from the model's score of it?"""
    from sklearn.linear_model import LogisticRegression

    X, y = lesions(n + 1, side, rng)
    rows = features(X)
    bare = LogisticRegression(max_iter=500).fit(rows[1:], y[1:])
    odd = int(np.argmax(np.abs(bare.decision_function(rows))))
    rows[[0, odd]], y[[0, odd]] = rows[[odd, 0]], y[[odd, 0]]
    y[0] = 1 - bare.predict(rows[:1])[0]
    print(f"a mislabelled image among {n}: told right whether it was in, {plays} plays; the bound")
    models: dict[str, Any] = {f"ε = {e}": partial(head, e) for e in (1, 8)}
    models["no privacy"] = partial(LogisticRegression, C=100, max_iter=1000)
    for name, make in models.items():
        seen: list[list[float]] = [[], []]
        for play in range(plays):
            inside = play % 2
            # Of the others nine in ten, by chance: else a model without noise were one number.
            some = np.flatnonzero(rng.random(n) < 0.9) + 1
            who = np.append(some, 0) if inside else some
            model = make().fit(rows[who], y[who])
            seen[inside].append(float(model.predict_proba(rows[:1])[0, y[0]]))
        # The best threshold of the first half, scored on the second.
        half = plays // 4
        tried = np.array(seen[0][:half] + seen[1][:half])
        best = max(
            tried,
            key=lambda t: np.mean(seen[1][:half] >= t) + np.mean(np.array(seen[0][:half]) < t),
        )
        right = (np.mean(seen[1][half:] >= best) + np.mean(np.array(seen[0][half:]) < best)) / 2
        bound = ""
        if name != "no privacy":
            odds = np.exp(float(name.split()[-1]))
            bound = f"{(odds + DELTA) / (1 + odds):.1%}"
        print(f"  {name}: {right:.1%} {bound}", flush=True)


def main() -> None:
    """Print the tables."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--side", type=int, default=64)
    parser.add_argument("--only", choices=("heads", "canaries", "convolutions"))
    given = parser.parse_args()
    side = given.side
    warnings.simplefilter("ignore")
    for seed, part in ((1, heads), (2, canaries), (13, convolutions)):
        if given.only in (None, part.__name__):
            part(side, np.random.default_rng(seed))


if __name__ == "__main__":
    main()
