"""Opacus on the same models and rows, in an interpreter of its own; and those models and rows.

``benchmarks.learn.deep`` runs this file by the interpreter that ``OPACUS_PYTHON`` names, of an
environment with torch, scikit-learn and opacus. It prints a line of JSON a run.
"""

from __future__ import annotations

import json
import resource
import sys
import time
import warnings
from collections.abc import Callable
from typing import Any

import torch
from torch import nn

EPSILON, DELTA = 3.0, 1e-5
STEPS, RATE = 100, 0.4
LEARNING_RATES = {"linear": (2.0, 4.0), "mlp": (1.0, 2.0), "cnn": (1.0, 2.0)}


def digits() -> tuple[Any, Any, Any, Any]:
    """Rows to train on and to test with; a pixel of 0 to 16 is centred by what is public."""
    from sklearn.datasets import load_digits
    from sklearn.model_selection import train_test_split

    X, y = load_digits(return_X_y=True)
    parts = train_test_split((X - 6) / 8, y, test_size=0.25, random_state=0, stratify=y)
    made = [torch.tensor(part) for part in parts]
    return made[0].float(), made[1].float(), made[2], made[3]


def convolutions() -> nn.Module:
    """Two of them, for images of 8 times 8.

    Maxima of four are above 0 on average, and what is not centred takes its part of each gradient's
    length and of the noise: the first biases begin below 0, so that the second layer gets about as
    much of both signs. The second layer's outputs stay where they are: a maximum of them would
    leave a fourth of the numbers to learn from.
    """
    model = nn.Sequential(
        nn.Unflatten(1, (1, 8, 8)),
        nn.Conv2d(1, 16, 3, padding=1),
        nn.Tanh(),
        nn.MaxPool2d(2),
        nn.Conv2d(16, 16, 3, padding=1),
        nn.Tanh(),
        nn.Flatten(),
        nn.Linear(256, 10),
    )
    for layer, bias in ((model[1], -1.0), (model[4], 0.0)):
        nn.init.orthogonal_(layer.weight)
        nn.init.constant_(layer.bias, bias)
    nn.init.zeros_(model[7].bias)
    return model


MODELS: dict[str, Callable[[], nn.Module]] = {
    "linear": lambda: nn.Sequential(nn.Linear(64, 10)),
    "mlp": lambda: nn.Sequential(nn.Linear(64, 64), nn.Tanh(), nn.Linear(64, 10)),
    "cnn": convolutions,
}


class Block(nn.Module):
    """Attention and two linear layers, each with what comes in added."""

    def __init__(self, width: int, heads: int) -> None:
        super().__init__()
        self.heads = heads
        self.first, self.second = nn.LayerNorm(width), nn.LayerNorm(width)
        self.mixed, self.out = nn.Linear(width, 3 * width), nn.Linear(width, width)
        self.wide, self.narrow = nn.Linear(width, 4 * width), nn.Linear(4 * width, width)

    def forward(self, rows: Any) -> Any:
        """From rows to rows, shape (b, positions, width)."""
        b, t, width = rows.shape
        parts = self.mixed(self.first(rows)).view(b, t, 3, self.heads, -1).permute(2, 0, 3, 1, 4)
        query, key, value = parts.unbind(0)
        seen = ((query @ key.mT) / (width / self.heads) ** 0.5).softmax(-1) @ value
        rows = rows + self.out(seen.transpose(1, 2).reshape(b, t, width))
        return rows + self.narrow(torch.relu(self.wide(self.second(rows))))


class Transformer(nn.Module):
    """Two blocks over 32 words out of 1,000."""

    def __init__(self, width: int = 64, heads: int = 4) -> None:
        super().__init__()
        self.words = nn.Embedding(1000, width)
        self.blocks = nn.Sequential(Block(width, heads), Block(width, heads))
        self.out = nn.Linear(width, 2)

    def forward(self, words: Any) -> Any:
        """From words, shape (b, 32), to two scores."""
        return self.out(self.blocks(self.words(words)).mean(1))


def large(kind: str, rows: int) -> tuple[nn.Module, Any, Any]:
    """A model and made-up rows to measure speed with."""
    generator = torch.Generator().manual_seed(0)
    if kind == "transformer":
        words = torch.randint(0, 1000, (rows, 32), generator=generator)
        return Transformer(), words, torch.arange(rows) % 2
    model = nn.Sequential(
        nn.Conv2d(1, 16, 8, 2, padding=3),
        nn.ReLU(),
        nn.MaxPool2d(2, 1),
        nn.Conv2d(16, 32, 4, 2),
        nn.ReLU(),
        nn.MaxPool2d(2, 1),
        nn.Flatten(),
        nn.Linear(32 * 4 * 4, 32),
        nn.ReLU(),
        nn.Linear(32, 10),
    )
    return model, torch.rand(rows, 1, 28, 28, generator=generator), torch.arange(rows) % 10


def peak() -> float:
    """Megabytes of this process at most, until now."""
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024


def main() -> None:
    """``digits MODEL SEED RATE`` or ``throughput MODEL ROWS BATCH``, as Opacus does it."""
    warnings.simplefilter("ignore")
    torch.set_num_threads(1)
    from opacus import PrivacyEngine
    from opacus.accountants.utils import get_noise_multiplier
    from torch.utils.data import DataLoader, TensorDataset

    what, kind, number, other = sys.argv[1:]
    before = peak()
    if what == "digits":
        X, held, y, labels = digits()
        torch.manual_seed(int(number))
        model, rate, steps = MODELS[kind](), float(other), STEPS
        size = round(RATE * len(X))
        noise = get_noise_multiplier(
            target_epsilon=EPSILON,
            target_delta=DELTA,
            sample_rate=RATE,
            steps=STEPS,
            accountant="prv",
        )
    else:
        model, X, y = large(kind, int(number))
        size, rate, noise, steps = int(other), 0.1, 1.0, len(X) // int(other)
    start = time.process_time()
    model, optimizer, loader = PrivacyEngine().make_private(
        module=model,
        optimizer=torch.optim.SGD(model.parameters(), lr=rate),
        data_loader=DataLoader(TensorDataset(X, y), batch_size=size),
        noise_multiplier=noise,
        max_grad_norm=1.0,
    )
    done = 0
    while done < steps:
        for rows, wanted in loader:
            optimizer.zero_grad()
            nn.functional.cross_entropy(model(rows), wanted).backward()
            optimizer.step()
            done += 1
            if done == steps:
                break
    found = {"seconds": time.process_time() - start, "megabytes": peak() - before}
    if what == "digits":
        found["right"] = float((model(held).argmax(1) == labels).float().mean())
    print(json.dumps(found))


if __name__ == "__main__":
    main()
