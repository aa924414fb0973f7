"""The survey that attacks are shown on: its rows, what neighbours know, and releases of it."""

from __future__ import annotations

import math
import tempfile
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from fractions import Fraction
from typing import TYPE_CHECKING, Any

import numpy as np

from dither._format import loss_text
from dither.examples.demo.data import survey

if TYPE_CHECKING:
    import polars as pl

    from dither import Session
    from dither.lab.anonymize import Anonymized
    from dither.lab.attack import BlackBox
    from dither.privacy import Loss

__all__ = [
    "COVERS",
    "KNOWN",
    "QUASI",
    "SECRET",
    "TRAITS",
    "anonymous",
    "asked",
    "boxes",
    "exact_counts",
    "noisy_years",
    "private_rows",
    "private_sums",
    "targets",
    "total_years",
    "women",
]

QUASI = ["age", "yrs_married", "children", "religious", "educ", "occupation"]
"""What a neighbour knows; the columns that releases make coarser."""

TRAITS = [*QUASI, "occupation_husb", "rate_marriage"]
"""And what a friend knows."""

SECRET = "affairs > 0"

KNOWN = ["age", "children", "religious", "educ", "affair"]
"""The columns of the synthetic rows that are attacked."""

LONGEST = 46
"""Years of marriage are half-years up to 46: what one woman adds to the sum at most."""

COVERS: Mapping[str, Mapping[Any, list[Any]]] = {
    "religious": {"little": [1, 2], "much": [3, 4]},
    "educ": {"school": [9, 12], "college": [14, 16], "degree": [17, 20]},
}
"""Labels of the release that do not say themselves what they cover."""


def women() -> pl.DataFrame:
    """The survey, with whether each had an affair as yes or no."""
    import polars as pl

    answer = pl.when(pl.col("affairs") > 0).then(pl.lit("yes")).otherwise(pl.lit("no"))
    return survey().with_columns(affair=answer)


def anonymous(rows: pl.DataFrame, k: int = 10, **options: Any) -> Anonymized:
    """The survey made k-anonymous, whole columns at a time."""
    from dither import anonymize as an

    trees = {
        name: an.hierarchy({v: [label] for label, under in labels.items() for v in under})
        for name, labels in COVERS.items()
    }
    hierarchies: dict[str, Any] = {
        "age": an.intervals([10, 20]),
        "yrs_married": an.intervals([5, 10, 20]),
        "children": an.intervals([2, 4]),
        "occupation": an.suppression(),
        **trees,
    }
    known = rows.select(*QUASI, "affair")
    return an.generalize(
        known, QUASI, hierarchies, k=k, suppress=0.05, sensitive="affair", **options
    )


def boxes(rows: pl.DataFrame, k: int = 10) -> Anonymized:
    """The survey made k-anonymous, cut into boxes."""
    from dither import anonymize as an

    return an.mondrian(rows.select(*QUASI, "affair"), QUASI, k=k, sensitive="affair")


def targets(rows: pl.DataFrame, many: int, seed: int = 0) -> tuple[list[str], list[bool]]:
    """Women whom nobody shares all traits with, half with the secret; and the truth of each."""
    import polars as pl

    from dither.lab._simulation import SimulatedWorld

    rng = SimulatedWorld.of(seed)
    alone = rows.filter(pl.struct(TRAITS).is_unique())
    chosen = []
    for has in (True, False):
        side = alone.filter((pl.col("affairs") > 0) == has)
        picked = rng.choice(side.height, many // 2, replace=False)
        chosen += [(row, has) for row in side[np.sort(picked)].iter_rows(named=True)]
    conditions = [" AND ".join(f"{n} = {row[n]:g}" for n in TRAITS) for row, _ in chosen]
    return conditions, [has for _, has in chosen]


def exact_counts(rows: pl.DataFrame, least: int = 0) -> Callable[[str], float | None]:
    """Exact answers to counts; None where fewer than ``least`` are counted."""

    def answer(condition: str) -> float | None:
        count = int(rows.sql(f"SELECT COUNT(*) AS n FROM self WHERE {condition}").item())
        return None if count < least else float(count)

    return answer


def private_sums(epsilon: Fraction, queries: int) -> BlackBox:
    """Subset sums with discrete Laplace noise, each at its share of epsilon."""
    from dither import privacy
    from dither.lab.attack.releases import private
    from dither.noise import discrete_laplace

    scale = Fraction(queries) / epsilon
    return private(
        lambda answers: answers + discrete_laplace(scale, len(answers)),
        queries * privacy.discrete_laplace(float(scale)),
        name=f"private, ε = {loss_text(epsilon, 6)}",
        sigma=math.sqrt(2.0) * float(scale),
        outliers=True,
    )


@contextmanager
def asked(rows: pl.DataFrame, budget: Fraction) -> Iterator[Session]:
    """A session on the survey whose ledger is thrown away."""
    import dither as dt

    facts: Mapping[str, Any] = {
        "rate_marriage": {"type": "integer", "values": [1, 2, 3, 4, 5], "nullable": False},
        "age": {"bounds": [15, 60]},
        "yrs_married": {"bounds": [0, 23], "step": 0.5},
        "children": {"bounds": [0, 6], "step": 0.5},
        "religious": {"bounds": [1, 4]},
        "educ": {"bounds": [9, 20]},
        "occupation": {"bounds": [1, 6]},
        "occupation_husb": {"bounds": [1, 6]},
        "affairs": {"bounds": [0, 60], "step": 0.01},
    }
    with tempfile.TemporaryDirectory() as folder:
        policy = {
            "budget": {"epsilon": str(budget), "ledger": f"{folder}/survey.ledger"},
            "tables": {"survey": {"columns": facts}},
        }
        with dt.open(policy, sources={"survey": rows.drop("affair")}) as session:
            yield session


def total_years(years: Any) -> int:
    """The sum without its noise."""
    return int(years.sum())


def noisy_years(rows: pl.DataFrame, mu: float) -> tuple[Any, Any, Any]:
    """A private sum of half-years of marriage, its loss, and the half-years."""
    import numpy as np

    from dither import privacy
    from dither.noise import discrete_gaussian

    years = np.clip(np.rint(2 * rows["yrs_married"].to_numpy()), 0, LONGEST).astype(np.int64)
    sigma = Fraction(LONGEST) / Fraction(mu)

    def release(data: Any, size: int) -> Any:
        return total_years(data) + discrete_gaussian(sigma**2, size)

    return release, privacy.discrete_gaussian(float(sigma), sensitivity=LONGEST), years[:, None]


def private_rows(
    table: pl.DataFrame, rho: Fraction, n: int, *, method: str = "mst"
) -> tuple[Callable[[Any], pl.DataFrame], Loss]:
    """A generator of private rows, and its loss: what ``synthesize`` runs, without a ledger.

    Parameters
    ----------
    table : DataFrame
        Whose values are taken to be public.
    rho : Fraction
        Of zCDP, for rows that are added or removed.
    n : int
        Rows of each synthetic table; public, so that how many it was made of is not told.
    method : {"mst", "independent"}
    """
    import polars as pl

    from dither import privacy
    from dither.lab._simulation import SimulatedWorld
    from dither.synth._spending import ZCDPBudget
    from dither.synth.model._model import FittedModel
    from dither.synth.model._plans import measured_by

    values = {name: table[name].unique().sort() for name in table.columns}
    places = {
        name: pl.DataFrame({name: found, "place": range(len(found))})
        for name, found in values.items()
    }
    sizes = [len(found) for found in values.values()]
    drawn = SimulatedWorld.of(0)

    def generate(rows: pl.DataFrame) -> pl.DataFrame:
        codes = [
            rows.select(name)
            .join(places[name], on=name, how="left", maintain_order="left")["place"]
            .to_numpy()
            for name in rows.columns
        ]

        def counts(cliques: Sequence[tuple[int, ...]]) -> dict[tuple[int, ...], Any]:
            found = {}
            for clique in cliques:
                shape = tuple(sizes[v] for v in clique)
                key = np.ravel_multi_index(tuple(codes[v] for v in clique), shape)
                found[clique] = np.bincount(key, minlength=math.prod(shape)).reshape(shape)
            return found

        spending = ZCDPBudget(counts, rho, 1, 1)
        found = measured_by(method, sizes, spending, workload={}, max_cells=2**20)
        made = FittedModel.of(sizes, found).rows(n, drawn)
        return pl.DataFrame(
            {name: values[name].gather(made[:, v]) for v, name in enumerate(rows.columns)}
        )

    return generate, privacy.zcdp(rho)
