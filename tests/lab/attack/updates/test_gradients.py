"""Records and labels from clients' updates: rebuilt without noise, and bounded with it."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from click.testing import CliRunner

from dither import privacy
from dither.cli import main
from dither.errors import ArgumentError
from dither.lab import attack
from dither.lab.attack import Outcome, SimulatedClient

RNG = np.random.default_rng
IMAGES = RNG(3).random((12, 16))
LABELS = RNG(4).integers(0, 4, 12)


def clients(multiplier: float, hidden: int = 24) -> SimulatedClient:
    """A client of a small network."""
    return SimulatedClient.of(16, 4, hidden, clip=1.0, noise_multiplier=multiplier)


def test_the_gradient_of_a_batch_is_the_mean() -> None:
    """Of both layers; the clip is of the mean."""
    client = SimulatedClient.of(16, 4, 6)
    each = [client.gradients(x, y) for x, y in zip(IMAGES, LABELS, strict=True)]
    for layer, (weights, biases) in enumerate(client.gradients(IMAGES, LABELS)):
        assert np.allclose(weights, np.mean([one[layer][0] for one in each], axis=0))
        assert np.allclose(biases, np.mean([one[layer][1] for one in each], axis=0))
    short = SimulatedClient.of(16, 4, 6, clip=0.01).gradients(IMAGES, LABELS)
    assert sum((a**2).sum() + (b**2).sum() for a, b in short) == pytest.approx(1e-4)


@pytest.mark.parametrize(("batch", "hidden", "least"), [(2, 128, 12), (4, 512, 12), (6, 16, 0)])
def test_batches_are_rebuilt_by_wide_networks(batch: int, hidden: int, least: int) -> None:
    """Wherever two units are active at one record alone; few units tell fewer."""
    client = SimulatedClient.of(16, 4, hidden)
    found = attack.gradient_inversion(
        client.first, IMAGES - 0.5, LABELS, batch=batch, undefended=client.bare.first, plays=100
    )
    exact = np.abs(found.rebuilt - IMAGES + 0.5).max(axis=1) < 1e-6
    assert exact.sum() >= least
    assert (found.found < 12) == (least < 12)
    assert found.batch == batch
    assert found.which.auc.value == 1.0


def test_noise_stops_batches() -> None:
    """The bound is of one record of a batch that is replaced; too little noise is caught."""
    client, weak = clients(1.0, 64), clients(0.03, 64)
    images, told = IMAGES - 0.5, {"batch": 4, "loss": client.loss}
    seen = attack.gradient_inversion(
        client.first, images, LABELS, undefended=client.bare.first, **told
    )
    assert seen.bare_likeness is not None
    assert seen.found < (seen.bare_likeness >= 0.9).sum()
    assert seen.verdict.outcome is Outcome.CONSISTENT
    assert seen.certified(1e-5) < float(client.loss.epsilon(1e-5))
    caught = attack.gradient_inversion(
        weak.first, images, LABELS, undefended=weak.bare.first, **told
    )
    assert caught.verdict.outcome is Outcome.VIOLATED


@pytest.mark.parametrize("batch", [0, 5, 12, 1.5])
def test_batches_that_do_not_fit(batch: Any) -> None:
    """They divide the records, into two at least."""
    with pytest.raises(ArgumentError, match="batch must"):
        attack.gradient_inversion(clients(1.0).first, IMAGES, LABELS, batch=batch)


@pytest.mark.parametrize("hidden", [0, 6])
def test_gradients_are_those_of_finite_differences(hidden: int) -> None:
    """Of every weight and bias, of both layers."""
    client = SimulatedClient.of(5, 3, hidden)
    x, label, step = RNG(1).random(5), 1, 1e-6

    def loss() -> float:
        seen = x
        for i, (w, b) in enumerate(zip(client.weights, client.biases, strict=True)):
            seen = w @ seen + b
            if i + 1 < len(client.weights):
                seen = np.maximum(seen, 0)
        return float(np.log(np.exp(seen).sum()) - seen[label])

    for (weights, biases), w, b in zip(
        client.gradients(x, label), client.weights, client.biases, strict=True
    ):
        for found, parameter in ((weights, w), (biases, b)):
            for place in np.ndindex(parameter.shape):
                kept = parameter[place]
                parameter[place] = kept + step
                above = loss()
                parameter[place] = kept - step
                assert found[place] == pytest.approx((above - loss()) / (2 * step), abs=1e-7)
                parameter[place] = kept


@pytest.mark.parametrize("hidden", [0, 24])
def test_updates_without_noise_hold_the_record_and_the_label(hidden: int) -> None:
    """All of them, to rounding; clipping, which scales an update, changes nothing."""
    for clip in (None, 0.1):
        client = SimulatedClient.of(16, 4, hidden, clip=clip)
        found = attack.gradient_inversion(client.first, IMAGES, LABELS, plays=100)
        assert np.allclose(found.rebuilt, IMAGES)
        assert found.found == 12
        read = attack.label_leak(client.last, IMAGES, LABELS, plays=100)
        assert read.guessed.tolist() == LABELS.tolist()
        assert read.right == 1.0 > read.blind
        assert found.which.auc.value == read.which.auc.value == 1.0
        assert found.verdict.outcome is Outcome.CONSISTENT
        assert "promises nothing" in " ".join(read.summary().split())


def test_noise_stops_both_and_certifies_less_than_was_claimed() -> None:
    """At mu = 1: few labels, no image; the control succeeds and the bound holds."""
    client = clients(1.0)
    assert client.loss.neighbours is privacy.Neighbours.REPLACE
    claimed = float(client.loss.epsilon(1e-5))
    seen = attack.gradient_inversion(
        client.first, IMAGES, LABELS, loss=client.loss, undefended=client.bare.first
    )
    read = attack.label_leak(
        client.last, IMAGES, LABELS, loss=client.loss, undefended=client.bare.last
    )
    assert seen.found == 0
    assert seen.bare_likeness is not None
    assert seen.bare_likeness.min() > 0.999
    assert read.right < 0.8
    assert read.bare is not None
    assert read.bare.tolist() == LABELS.tolist()
    for found in (seen, read):
        assert found.certified(1e-5) < claimed
        assert found.verdict.outcome is Outcome.CONSISTENT
        assert found.verdict.control is not None
        assert found.verdict.control.share > 0.95
        assert "without noise" in found.summary()


def test_the_strongest_pair_nearly_uses_the_claim() -> None:
    """Two labels, so that the gradients of one record are opposite: mu is met within 10 %.

    The area of a Gaussian curve of mu = 2 is 0.921; that of 1.8 is 0.898.
    """
    client = SimulatedClient.of(16, 2, clip=0.01, noise_multiplier=0.5)
    read = attack.label_leak(
        client.last, IMAGES, LABELS % 2, loss=client.loss, undefended=client.bare.last, plays=4000
    )
    assert read.which.auc.low > 0.898
    assert read.verdict.outcome is Outcome.CONSISTENT
    assert 1.0 < read.certified(1e-5) < float(client.loss.epsilon(1e-5))


@pytest.mark.parametrize("of", ["first", "last"])
def test_too_little_noise_is_caught(of: str) -> None:
    """A tenth of the noise, and noise that is added to half of the layers: violated."""
    weak, claim = clients(0.1), clients(1.0).loss

    def half(record: Any, label: int, size: int) -> Any:
        weights, biases = getattr(clients(1.0), of)(record, label, size)
        return weights, np.broadcast_to(getattr(weak.bare, of)(record, label, 1)[1], biases.shape)

    play = attack.gradient_inversion if of == "first" else attack.label_leak
    for client in (getattr(weak, of), half):
        found = play(client, IMAGES, LABELS, loss=claim, undefended=getattr(weak.bare, of))
        assert found.verdict.outcome is Outcome.VIOLATED


def test_a_client_that_gives_one_update_at_a_time() -> None:
    """The same results as one that gives many; without a control the game is played on means."""
    client = clients(0.5)

    def one(record: Any, label: int) -> Any:
        weights, biases = client.first(record, label, 1)
        return weights[0], biases[0]

    found = attack.gradient_inversion(one, IMAGES, LABELS, plays=200, loss=client.loss)
    assert found.bare is None
    assert "means of" in found.verdict.bare


def test_pictures(tmp_path: Path) -> None:
    """Square records as images, others as lines; labels as bars."""
    client = clients(1.0)
    given: dict[str, Any] = {"plays": 100, "loss": client.loss}
    seen = attack.gradient_inversion(
        client.first, IMAGES, LABELS, undefended=client.bare.first, **given
    )
    seen.plot(tmp_path / "a.png")
    attack.label_leak(client.last, IMAGES, LABELS, **given).plot(tmp_path / "b.svg")
    short = SimulatedClient.of(5, 3)
    lines = attack.gradient_inversion(short.first, IMAGES[:, :5], LABELS % 3, plays=100)
    lines.plot(tmp_path / "c.png")
    assert {file.name for file in tmp_path.iterdir()} == {"a.png", "b.svg", "c.png"}


def test_the_command(tmp_path: Path) -> None:
    """Digits, without noise and at one ε, with a picture."""
    pytest.importorskip("sklearn")
    picture = tmp_path / "digits.png"
    words = ["--epsilon", "2", "--records", "10", "--plays", "200", "--plot", str(picture)]
    done = CliRunner().invoke(main, ["attack", "gradients", *words])
    assert done.exit_code == 0, done.output
    assert "10 of 10" in done.output
    assert "0 of 10" in done.output
    assert "consistent" in done.output
    assert picture.is_file()


def test_the_command_on_batches() -> None:
    """Two images a client; the last that is over is left out."""
    pytest.importorskip("sklearn")
    words = ["attack", "gradients", "--epsilon", "2", "--plays", "200", "--batch", "2"]
    done = CliRunner().invoke(main, [*words, "--records", "11"])
    assert done.exit_code == 0, done.output
    assert "10 of 10" in done.output
    assert "5 clients has 2 images" in " ".join(done.output.split())
    refused = CliRunner().invoke(main, [*words[:-1], "6", "--records", "11"])
    assert refused.exit_code == 2
    assert "--records" in refused.output


def nothing(record: Any, label: int) -> None:
    """A client that gives nothing."""


def other(record: Any, label: int) -> Any:
    """A client whose parts do not fit."""
    return np.ones((3, 16)), np.ones(4)


@pytest.mark.parametrize(
    ("given", "said"),
    [
        ({"client": 1}, "client must be a function"),
        ({"client": nothing}, "client must return"),
        ({"client": other}, "client must return finite gradients"),
        ({"undefended": 1}, "undefended must be a function"),
        ({"loss": 1.0}, "loss must be a Loss"),
        ({"records": IMAGES[:1], "labels": LABELS[:1]}, "at least two"),
        ({"records": "abc"}, "records must be numbers"),
        ({"labels": LABELS[:3]}, "labels must be integers"),
        ({"labels": LABELS * 0.5}, "labels must be integers"),
        ({"pair": (1, 1)}, "two different"),
        ({"plays": 10}, "plays must"),
    ],
)
def test_arguments(given: dict[str, Any], said: str) -> None:
    """Each is refused by its name."""
    told: dict[str, Any] = {"client": clients(1.0).first, "records": IMAGES, "labels": LABELS}
    told |= given
    client, records, labels = (told.pop(name) for name in ("client", "records", "labels"))
    for play in (attack.gradient_inversion, attack.label_leak):
        with pytest.raises(ArgumentError, match=said):
            play(client, records, labels, **told)


def test_labels_and_clients_that_do_not_fit() -> None:
    """One label alone has nothing to be told from; noise needs a clip."""
    with pytest.raises(ArgumentError, match="at least two different"):
        attack.label_leak(clients(1.0).last, IMAGES, LABELS * 0)
    with pytest.raises(ArgumentError, match="needs a clip"):
        SimulatedClient.of(4, 2, noise_multiplier=1.0)
    with pytest.raises(ArgumentError, match="nothing bounds"):
        _ = SimulatedClient.of(4, 2).loss
