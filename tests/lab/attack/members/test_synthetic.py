"""Who was in the table that synthetic rows were made of: by shadows and by the closest record."""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np
import polars as pl
import pytest

from dither import privacy
from dither.errors import ArgumentError
from dither.lab import attack
from dither.lab.attack import Outcome, closest_record, drawn_again, pairs_kept, rarest
from dither.lab.attack._roc import Roc, certified
from dither.lab.attack.members._synthetic import _likeness

RNG = np.random.default_rng


def clinic(rows: int = 60) -> pl.DataFrame:
    """Patients of a few kinds, the last of whom is alone with what she has."""
    rng = RNG(7)
    kind = rng.integers(0, 3, rows - 1)
    return pl.DataFrame(
        {
            "ward": [*kind.tolist(), 0],
            "ill": [*(kind == 2).tolist(), True],
            "sex": [*rng.choice(["f", "m"], rows - 1).tolist(), "f"],
        }
    )


def counted(noise: Callable[[int], object]) -> Callable[[pl.DataFrame], pl.DataFrame]:
    """Rows drawn from the counts of all cells, each with noise: add or remove a row, and one count
    changes by 1."""
    cells = clinic().select("ward", "ill").unique().sort("ward", "ill")
    rng = RNG(5)

    def generate(rows: pl.DataFrame) -> pl.DataFrame:
        there = cells.join(
            rows.group_by("ward", "ill").len(),
            on=["ward", "ill"],
            how="left",
            maintain_order="left",
        )
        counts = there["len"].fill_null(0).to_numpy() + np.asarray(noise(cells.height))
        shares = np.maximum(counts, 0) + 1e-9
        made = cells[rng.choice(cells.height, 400, p=shares / shares.sum())]
        return made.with_columns(sex=pl.lit("f"))

    return generate


def geometric(epsilon: float, seed: int = 9) -> Callable[[int], object]:
    """Simulated discrete Laplace noise of an epsilon."""
    rng, p = RNG(seed), 1 - math.exp(-epsilon)
    return lambda size: rng.geometric(p, size) - rng.geometric(p, size)


def no_noise(size: int) -> object:
    """None."""
    return np.zeros(size)


@pytest.mark.heavy("test_the_closest_record_finds_copies")
def test_what_is_made_without_noise_gives_its_rows_away() -> None:
    """Pairs that are kept exactly: the patient who is alone is seen in nearly every table.

    Her pair is drawn with probability 1/60 if she is in, and never if not: of 400 rows she is
    missed in one of 800 tables.
    """
    found = attack.synthetic(pairs_kept(400), clinic(), plays=200)
    assert found.auc.low > 0.95
    assert found.certified() > 2
    assert found.verdict.outcome is Outcome.CONSISTENT  # nothing was promised
    assert "certified" in found.summary()
    assert "promises nothing" in " ".join(found.summary().split())


@pytest.mark.heavy("test_an_honest_claim_is_not_refuted_by_the_closest_record")
def test_what_is_made_with_noise_meets_its_bound() -> None:
    """The same table by private counts: certified below the claim, while the control succeeds."""
    loss = privacy.pure(1.0)
    found = attack.synthetic(
        counted(geometric(1.0)), clinic(), loss=loss, undefended=counted(no_noise), plays=400
    )
    assert found.verdict.outcome is Outcome.CONSISTENT
    assert found.certified() <= 1.0
    control = found.verdict.control
    assert control is not None
    assert control.share > 0.9


@pytest.mark.heavy("test_a_claim_is_held_against_the_closest_record")
def test_a_false_claim_is_refuted() -> None:
    """Noise of epsilon 6 that is sold as 0.1: violated, and certified above the claim."""
    found = attack.synthetic(counted(geometric(6.0)), clinic(), loss=privacy.pure(0.1), plays=400)
    assert found.verdict.outcome is Outcome.VIOLATED
    assert found.certified() > 0.1


def test_nobody_is_told_from_strangers_coins() -> None:
    """The null control does not beat a coin."""
    null = attack.synthetic(drawn_again(), clinic(), plays=200).verdict.null
    assert null is not None
    assert 0.35 < null.share < 0.65


def test_the_statistic_counts_rows_that_agree() -> None:
    """In each set of columns, and how many rows there are; NULL agrees with NULL."""
    table = pl.DataFrame({"a": [1, 1, None], "b": ["x", "y", None]})
    assert _likeness(table, 0, 2)(table, "g").tolist() == [3, 2, 1, 1]
    assert _likeness(table, 2, 2)(table, "g").tolist() == [3, 1, 1, 1]
    assert _likeness(table, 2, 1)(table[:0], "g").tolist() == [0, 0, 0]


def test_the_rarest_row_is_attacked() -> None:
    """The patient who is alone with her pair."""
    assert rarest(clinic()) == 59


@pytest.mark.parametrize("delta", [0.0, 0.01])
def test_certified_is_below_the_truth(delta: float) -> None:
    """Randomised response of a known epsilon: certified above it in at most 1 of 100 runs.

    Of 200 runs at 99 % confidence at most 9 may be above, but with probability 0.001.
    """
    epsilon = 1.5
    p, q = (1 / (1 + math.exp(-s * epsilon)) for s in (1, -1))
    rng, above = RNG(11), 0
    for _ in range(200):
        members, others = (rng.random(600) < x for x in (p, q))
        found = certified(Roc(members * 1.0, others * 1.0), np.array([0.5]), 0.01, delta)
        above += found > epsilon
    assert above <= 9
    assert certified(Roc(np.ones(9), np.ones(9)), np.array([0.5]), 0.01) == 0.0


def test_models_are_not_certified() -> None:
    """A result that has no thresholds says so."""
    found = closest_record(clinic(), clinic(), clinic())
    with pytest.raises(ArgumentError, match="of a statistic"):
        found.certified()


def test_pairs_are_kept_and_nothing_else() -> None:
    """Each column, and the pair that share most: others are drawn given those.

    40,000 rows: shares err by 0.01 less than once in 10,000 draws.
    """
    rng = RNG(2)
    a = rng.integers(0, 3, 40_000)
    b = np.where(rng.random(40_000) < 0.8, a, rng.integers(0, 3, 40_000))
    c = np.where(rng.random(40_000) < 0.8, b, rng.integers(0, 3, 40_000))
    table = pl.DataFrame({"a": a, "b": b, "c": c})
    made = pairs_kept(seed=3)(table)
    assert made.height == table.height
    assert made.schema == table.schema
    for names in (["a"], ["c"], ["a", "b"], ["b", "c"], ["a", "c"]):
        real, drawn = (t.group_by(names).len().sort(names)["len"] / 40_000 for t in (table, made))
        assert float((real - drawn).abs().max()) < 0.012  # type: ignore[arg-type]
    assert pairs_kept(7)(table).height == 7
    assert drawn_again(7)(table).height == 7


def people_by_lot(n: int, seed: int) -> tuple[pl.DataFrame, pl.DataFrame]:
    """n rows that are in and n that are not, by lot; no two of them alike."""
    rows = np.random.default_rng(seed).permutation(2 * n)
    both = pl.DataFrame({"age": rows % 97, "cost": 17 * rows})
    return both[:n], both[n:]


def test_a_claim_is_held_against_the_closest_record() -> None:
    """Copies refute an epsilon of 1, and one that allows them not; the claim is in the words."""
    ours, others = people_by_lot(100, 1)
    found = closest_record(ours, ours, others, loss=privacy.approximate(1, "1e-6"))
    assert found.verdict.outcome is Outcome.VIOLATED
    words = " ".join(found.summary().split())
    assert "promises nothing" not in words
    assert "lets no attack exceed" in words
    large = closest_record(ours, ours, others, loss=privacy.pure(20))
    assert large.verdict.outcome is Outcome.CONSISTENT
    with pytest.raises(ArgumentError, match="loss must be a Loss"):
        closest_record(ours, ours, others, loss=1.0)  # type: ignore[arg-type]


def test_an_honest_claim_is_not_refuted_by_the_closest_record() -> None:
    """Each person is named with probability e/(1 + e) where they are in, 1/(1 + e) where not.

    That is an epsilon of 1 to the last bit, used in full: in 60 lots none is accused at 99 %, and
    that of three times as much is.
    """
    accused = {1: 0, 3: 0}
    for seed in range(60):
        ours, others = people_by_lot(60, seed)
        rng = np.random.default_rng(seed)
        for epsilon in accused if seed < 20 else (1,):
            chance = 1 / (1 + np.exp(-epsilon))
            named = [
                rows.filter(rng.random(60) < p)
                for rows, p in ((ours, chance), (others, 1 - chance))
            ]
            found = closest_record(pl.concat(named), ours, others, loss=privacy.pure(1), seed=seed)
            accused[epsilon] += found.verdict.outcome is Outcome.VIOLATED
    assert accused[1] == 0
    assert accused[3] >= 10


def test_the_closest_record_finds_copies() -> None:
    """All members of a table that was published; and nobody where the rows are strangers'."""
    rng = RNG(4)
    ours, others, strangers = (
        pl.DataFrame({"x": rng.random(300), "y": rng.integers(0, 9, 300)}) for _ in range(3)
    )
    assert closest_record(ours, ours, others).auc.value == 1.0
    blind = closest_record(strangers, ours, others)
    assert blind.auc.low < 0.5 < blind.auc.high
    assert blind.verdict.outcome is Outcome.CONSISTENT
    assert blind.verdict.prior == 0.5


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"generator": 3}, "generator must be a function"),
        ({"undefended": 3}, "undefended must be a function"),
        ({"target": 60}, "target"),
        ({"together": 4}, "together"),
        ({"plays": 10}, "plays"),
        ({"loss": 1.0}, "loss must be a Loss"),
        ({"data": clinic()[:0]}, "data is empty"),
        ({"generator": lambda rows: 3}, "what generator returns must be a Polars"),
        ({"generator": lambda rows: rows.drop("ill")}, "have a column 'ill'"),
    ],
)
def test_bad_input_is_refused(arguments: dict[str, object], message: str) -> None:
    """The argument is named."""
    given = {"generator": drawn_again(), "data": clinic(), "plays": 100} | arguments
    with pytest.raises(ArgumentError, match=message):
        attack.synthetic(**given)  # type: ignore[arg-type]


def test_a_generator_that_ends_the_program_is_named() -> None:
    """An exit is not let through."""

    def leaves(rows: object) -> object:
        raise SystemExit(0)

    with pytest.raises(ArgumentError, match="would end the program"):
        attack.synthetic(leaves, clinic(), plays=100)


def test_few_rows_are_refused() -> None:
    """The closest record needs some to set its threshold and some to be scored."""
    with pytest.raises(ArgumentError, match="four rows each"):
        closest_record(clinic(), clinic()[:3], clinic())
