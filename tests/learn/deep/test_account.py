"""Runs on an account: charged in full before anything is drawn, and once, however often resumed."""

from __future__ import annotations

from collections.abc import Iterator
from fractions import Fraction
from pathlib import Path
from typing import Any

import pytest

torch = pytest.importorskip("torch", reason="torch is not installed")

from dither.accounting import BudgetFilter  # noqa: E402
from dither.errors import (  # noqa: E402
    ArgumentError,
    BudgetError,
    LedgerError,
    PromiseError,
    TokenError,
)
from dither.learn.deep import FixedOrder, PrivateOptimizer, _optimizer, _sampling, train, trained  # noqa: E402
from dither.learn.deep.noise import _noise  # noqa: E402
from dither.ledger import Ledger  # noqa: E402
from dither.privacy import Promise  # noqa: E402

X = torch.rand(50, 3, generator=torch.Generator().manual_seed(1))
Y = torch.arange(50) % 2
DELTA = Fraction(1, 10**5)


class Stopped(Exception):
    """What stands for a kill."""


@pytest.fixture
def book(tmp_path: Path) -> Iterator[Ledger]:
    """A ledger with room for two runs of epsilon 2."""
    with Ledger.open(tmp_path / "a.ledger") as found:
        found.ensure_account("all", BudgetFilter(Fraction(5), 8 * DELTA), Promise("patient"))
        yield found


def one_run(book: Ledger, **more: Any) -> Any:
    """A short run on that account."""
    torch.manual_seed(2)
    model = more.pop("model", None) or torch.nn.Linear(3, 2)
    given: dict[str, Any] = {
        "epsilon": 2, "delta": DELTA, "steps": 6, "rate": 0.3, "population": 50, "every": 1,
        "ledger": book, "accounts": "all", "unit": "patient", "progress": False,
    } | more  # fmt: skip
    return train(model, (X, Y), **given)


def spent(book: Ledger) -> Fraction:
    """The epsilon that the account has spent."""
    found = book.balance("all").spent.epsilon
    assert found is not None
    return found


def charges(book: Ledger) -> int:
    """How many there are."""
    return sum(entry.kind == "charge" for entry in book.entries("all"))


def stop_at(step: int) -> Any:
    """Progress that ends the process, so to speak."""

    def told(now: Any) -> None:
        if now.step >= step:
            raise Stopped

    return told


@pytest.mark.parametrize("kept", [False, True], ids=["plain", "checkpoint"])
def test_it_is_charged_before_anything_is_drawn(
    book: Ledger, monkeypatch: pytest.MonkeyPatch, tmp_path: Path, kept: bool
) -> None:
    """The count of rows and every sample find the whole run on the ledger."""
    seen: list[Fraction] = []
    coins, count = _sampling.places_of, _noise.noisy_count

    def sampled(*given: Any) -> Any:
        seen.append(spent(book))
        return coins(*given)

    def counted(*given: Any) -> int:
        seen.append(spent(book))
        return count(*given)

    monkeypatch.setattr(_sampling, "places_of", sampled)
    monkeypatch.setattr(_optimizer, "noisy_count", counted)
    fit = one_run(book, population=None, checkpoint=tmp_path / "run" if kept else None)
    assert seen == [Fraction(2)] * 7
    entry = book.entry(fit.optimizer.entry)
    assert entry.charge is not None
    assert (entry.charge.epsilon, entry.charge.delta) == (Fraction(2), DELTA)
    assert entry.charge.promise == Promise("patient")
    assert fit.loss.charge.epsilon == 2
    assert f"entry {entry.number} of the ledger" in fit.summary()


def test_stopping_early_costs_as_much(book: Ledger) -> None:
    """After the first step, by ``stop`` and by an error."""
    fit = one_run(book, stop=lambda now: True)
    assert fit.steps == 1
    assert spent(book) == 2
    with pytest.raises(Stopped):
        one_run(book, progress=stop_at(1))
    assert spent(book) == 4


REFUSED: dict[str, tuple[type[Exception], dict[str, Any]]] = {
    "too little is left": (BudgetError, {"epsilon": 6}),
    "another unit": (PromiseError, {"unit": "visit"}),
    "other neighbours": (PromiseError, {"neighbours": "replace", "population": None}),
    "no such account": (LedgerError, {"accounts": "none"}),
    "no account": (ArgumentError, {"accounts": ()}),
    "no unit": (ArgumentError, {"unit": None}),
    "no ledger": (ArgumentError, {"ledger": None}),
    "not a ledger": (ArgumentError, {"ledger": "a.ledger"}),
    "no token": (ArgumentError, {"token": "x" * 81}),
    "no progress": (ArgumentError, {"progress": "loud"}),
    "no average": (ArgumentError, {"average": "mean"}),
    "a step that never comes": (ArgumentError, {"every": 0, "checkpoint": "run"}),
}


@pytest.mark.parametrize(("error", "how"), REFUSED.values(), ids=REFUSED.keys())
def test_what_is_refused_reads_nothing(
    book: Ledger,
    monkeypatch: pytest.MonkeyPatch,
    tmp_path: Path,
    error: type[Exception],
    how: dict[str, Any],
) -> None:
    """No charge, no draw, no step; and a right call may follow."""
    monkeypatch.chdir(tmp_path)
    drawn: list[int] = []
    real = _sampling.places_of

    def drawing(*given: Any) -> Any:
        drawn.append(1)
        return real(*given)

    monkeypatch.setattr(_sampling, "places_of", drawing)
    with pytest.raises(error):
        one_run(book, **how)
    assert not drawn
    assert charges(book) == 0
    one_run(book, **({"checkpoint": "run"} if "checkpoint" in how else {}))
    assert charges(book) == 1


@pytest.mark.parametrize("token", [None, "model 1"])
@pytest.mark.parametrize("order", [None, FixedOrder(10, 2)], ids=["sampled", "ordered"])
def test_going_on_is_charged_once(
    book: Ledger, tmp_path: Path, token: str | None, order: FixedOrder | None
) -> None:
    """Stopped twice: one charge; its end is not trained again, nor is its token good for more."""
    how: dict[str, Any] = {"token": token}
    if order is not None:
        how |= {"order": order, "steps": None, "rate": None, "population": None}
    place = tmp_path / "run"
    for step in (1, 3):
        with pytest.raises(Stopped):
            one_run(book, checkpoint=place, progress=stop_at(step), **how)
        assert charges(book) == 1
    if token is not None:
        with pytest.raises(TokenError):
            one_run(book, checkpoint=tmp_path / "other", **how)
        assert not (tmp_path / "other").exists()
        with pytest.raises(TokenError):
            one_run(book, **how)
    fit = one_run(book, checkpoint=place, **how)
    assert fit.optimizer.taken == fit.optimizer.planned
    assert charges(book) == 1
    assert spent(book) == 2
    with pytest.raises(ArgumentError, match="has ended"):
        one_run(book, checkpoint=place, **how)
    assert charges(book) == 1
    assert trained(torch.nn.Linear(3, 2), place).weight.shape == (2, 3)
    if token is not None:
        with pytest.raises(TokenError):
            one_run(book, checkpoint=tmp_path / "other", **how)
        one_run(book, checkpoint=tmp_path / "other", **how | {"token": "model 2"})
        assert spent(book) == 4


def test_a_run_is_charged_where_it_was_not(book: Ledger, tmp_path: Path) -> None:
    """Killed between its checkpoint and its charge, or begun on no ledger."""
    place = tmp_path / "run"
    nowhere = {"ledger": None, "accounts": (), "unit": None}
    with pytest.raises(Stopped):
        one_run(book, checkpoint=place, progress=stop_at(2), **nowhere)
    assert charges(book) == 0
    one_run(book, checkpoint=place)
    assert spent(book) == 2


def test_a_run_of_other_rows_is_not_charged(book: Ledger, tmp_path: Path) -> None:
    """A checkpoint that does not fit is refused before its charge is looked for."""
    place = tmp_path / "run"
    with pytest.raises(Stopped):
        one_run(book, checkpoint=place, progress=stop_at(2))
    for other in ({"epsilon": 1}, {"rate": 0.5}, {"population": 60}):
        with pytest.raises(ArgumentError, match="checkpoint is of a run with"):
            one_run(book, checkpoint=place, **other)
    assert charges(book) == 1
    one_run(book, checkpoint=place)


def test_a_refused_run_leaves_no_checkpoint(book: Ledger, tmp_path: Path) -> None:
    """With a smaller epsilon the same path will do."""
    place = tmp_path / "run"
    with pytest.raises(BudgetError):
        one_run(book, checkpoint=place, epsilon=6)
    assert not place.exists()
    one_run(book, checkpoint=place, epsilon=5)
    assert spent(book) == 5


def test_tables_and_several_accounts(book: Ledger) -> None:
    """Each account bears the whole, and the ledger knows which table was read."""
    book.ensure_account("other", BudgetFilter(Fraction(9), 2 * DELTA), Promise("patient"))
    tables = {"visits": "column patient_id"}
    fit = one_run(book, accounts=["all", "other"], tables=tables)
    assert book.entry(fit.optimizer.entry).accounts == ("all", "other")
    assert book.tables()["visits"] == (Promise("patient"), "column patient_id")
    assert book.balance("other").spent.epsilon == 2
    with pytest.raises(BudgetError):
        one_run(book, accounts=["all", "other"], tables=tables)
    assert spent(book) == 2


def test_a_noise_multiplier_is_charged_at_delta(book: Ledger) -> None:
    """By the least epsilon that the whole loss is proved to have there."""
    fit = one_run(book, epsilon=None, noise_multiplier=2)
    found = spent(book)
    assert found >= Fraction(fit.loss.epsilon(float(DELTA)).upper)
    assert found - Fraction(fit.loss.epsilon(float(DELTA)).upper) < Fraction(1, 10**9)


def test_ones_own_loop_is_charged_as_it_is_made(book: Ledger) -> None:
    """All planned steps; without a plan there is nothing to charge beforehand."""
    model = torch.nn.Linear(3, 2)

    def made(**more: Any) -> PrivateOptimizer:
        sgd = torch.optim.SGD(model.parameters(), lr=0.1)
        return PrivateOptimizer(
            sgd, model, (X, Y), rate=0.3, ledger=book, accounts="all", unit="patient", **more
        )

    private = made(epsilon=2, delta=DELTA, steps=3, token="mine")
    assert private.entry is not None
    assert spent(book) == 2
    for x, y in private.batches():
        private.backward(x, y)
    private.step()
    assert spent(book) == 2
    with pytest.raises(TokenError):
        made(epsilon=2, delta=DELTA, steps=3, token="mine")
    with pytest.raises(ArgumentError, match="steps must be planned"):
        made(noise_multiplier=2)
    assert charges(book) == 1
