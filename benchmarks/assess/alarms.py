"""How often an assessment accuses a release that knows nothing of who was in the table.

Run with ``python -m benchmarks.assess.alarms [--worlds N] [--first SEED] [--only WORD]``. Table,
release and control are drawn apart, of one law, so whatever is said to be found is a false alarm.
At 95 % confidence at most one page in twenty may have one; by how many do, with Clopper and
Pearson's upper end of 95 %, the statement is held. Each attack's own chance is held as well, before
it is divided among attacks: at most one in twenty is to be 0.05 or less.

Of kinds that make a true claim, what is counted is *beyond the claim*: their releases say who was
in as often as the claimed epsilon allows. The last kind has several rows a person and is assessed
as if each row were one, which the statement leaves out.
"""

from __future__ import annotations

import argparse
import datetime
from collections import defaultdict
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import polars as pl

from dither._stats import clopper_pearson
from dither.lab.anonymize import mondrian
from dither.lab.assess import Said, assess

Rng = np.random.Generator
Draw = Callable[[Rng, int], pl.DataFrame]


def mixed(rng: Rng, n: int) -> pl.DataFrame:
    """Whole numbers, amounts, a text and an answer."""
    age = rng.integers(18, 90, n)
    return pl.DataFrame(
        {
            "age": age,
            "pay": np.round(np.exp(rng.normal(8, 0.5, n)) * (1 + age / 200), 2),
            "region": rng.choice(list("abcdefgh"), n),
            "ill": rng.choice(["yes", "no"], n, p=[0.2, 0.8]),
        }
    )


def ties(rng: Rng, n: int) -> pl.DataFrame:
    """Eight kinds of people in all."""
    return pl.DataFrame({name: rng.integers(0, 2, n) for name in "abc"})


def one_column(rng: Rng, n: int) -> pl.DataFrame:
    """A number."""
    return pl.DataFrame({"x": rng.normal(size=n)})


def one_text(rng: Rng, n: int) -> pl.DataFrame:
    """A text of three letters, of few."""
    return pl.DataFrame({"word": ["".join(w) for w in rng.choice(list("abcd"), (n, 3))]})


def wide(rng: Rng, n: int) -> pl.DataFrame:
    """Sixty columns that a few things behind them move."""
    cause = rng.normal(size=(n, 4))
    found = cause[:, np.arange(60) % 4] + rng.normal(size=(n, 60))
    return pl.DataFrame(
        {f"c{i}": np.round(found[:, i], 1) if i % 2 else found[:, i] > 0 for i in range(60)}
    )


def texts(rng: Rng, n: int) -> pl.DataFrame:
    """Names that few share, and one that many do."""
    return pl.DataFrame(
        {
            "name": [f"n{int(x)}" for x in rng.zipf(1.4, n) % 10_000],
            "street": [f"{a}{b}" for a, b in rng.choice(list("abcdefgh"), (n, 2))],
            "town": rng.choice(["x", "y", "z"], n, p=[0.7, 0.2, 0.1]),
        }
    )


def dates(rng: Rng, n: int) -> pl.DataFrame:
    """Days, moments, spans."""
    born = datetime.date(1950, 1, 1)
    return pl.DataFrame(
        {
            "born": [born + datetime.timedelta(days=int(d)) for d in rng.integers(0, 20_000, n)],
            "seen": [
                datetime.datetime(2020, 1, 1) + datetime.timedelta(hours=int(h))
                for h in rng.integers(0, 9_000, n)
            ],
            "stay": [datetime.timedelta(days=int(d)) for d in rng.geometric(0.3, n)],
        }
    )


def missing(rng: Rng, n: int) -> pl.DataFrame:
    """The mixed people, of whom a third of all cells is not known."""
    full = mixed(rng, n)
    return full.with_columns(
        pl.when(pl.Series(rng.random(n) < 1 / 3)).then(None).otherwise(pl.col(c)).alias(c)
        for c in full.columns
    )


def heavy(rng: Rng, n: int) -> pl.DataFrame:
    """Numbers without a mean, some of them without an end."""
    wild = rng.standard_cauchy((n, 2))
    wild[rng.random((n, 2)) < 0.02] = np.inf
    return pl.DataFrame(
        {"a": wild[:, 0], "b": wild[:, 1], "c": np.exp(rng.standard_cauchy(n).clip(-90, 90))}
    )


def persons(rng: Rng, n: int) -> pl.DataFrame:
    """One to eight rows a person, which are much alike."""
    each = rng.integers(1, 9, n)
    who = np.repeat(rng.integers(0, 2**40, n), each)
    own = np.repeat(rng.normal(size=n), each)
    place = np.repeat(rng.integers(0, 30, n), each)
    return pl.DataFrame(
        {"who": who, "own": own, "place": place, "visit": rng.integers(0, 50, len(who))}
    )


@dataclass(frozen=True)
class Kind:
    """A kind of world: people, how many, and what is made of those of the release."""

    name: str
    draw: Draw
    sizes: tuple[int, int, int] = (40, 40, 40)
    made: Callable[[pl.DataFrame], pl.DataFrame] = lambda people: people
    options: dict[str, Any] = field(default_factory=dict)
    before: bool = False
    lot: bool = False
    """Whether table and control are one draw, divided by lot, some of whom may be in both."""
    claim: float = 0.0
    part: float = 1.0
    """Of the worlds that are asked for, where one takes long."""


def grouped(people: pl.DataFrame) -> pl.DataFrame:
    """Ages and regions of five at least, as labels."""
    return mondrian(people, ["age", "region"], k=5, sensitive=["ill"]).frame


KINDS = (
    Kind("mixed, 40 people", mixed),
    Kind("mixed, 9 people", mixed, (9, 9, 9)),
    Kind("mixed, 300 people", mixed, (300, 300, 300)),
    Kind("ties", ties),
    Kind("one column", one_column),
    Kind("one text column", one_text),
    Kind("texts", texts),
    Kind("dates", dates),
    Kind("missing values", missing),
    Kind("heavy tails", heavy),
    Kind("200 people, 25 held back", mixed, (200, 25, 60)),
    Kind("25 people, 200 held back", mixed, (25, 200, 60)),
    Kind("release of 3 rows", mixed, (40, 40, 3)),
    Kind("labels, 5-anonymous", mixed, (60, 60, 60), grouped),
    Kind("an earlier version", mixed, before=True),
    Kind("units", persons, options={"unit": "who"}),
    Kind("units, some in both", persons, (60, 60, 60), options={"unit": "who"}, lot=True),
    Kind("a false claim of ε = 0.1", mixed, options={"epsilon": 0.1}),
    Kind("true: ε = 0.5, add-remove", mixed, (150, 150, 0), options={"epsilon": 0.5}, claim=0.5),
    Kind("true: ε = 3, add-remove", mixed, (30, 30, 0), options={"epsilon": 3}, claim=3.0),
    Kind("true: ε = 1, replace", mixed, (150, 150, 0),
         options={"epsilon": 1, "neighbours": "replace"}, claim=0.5),
    Kind("60 columns", wide, (30, 30, 30), options={"secrets": ["c0"]}, part=0.2),
    Kind("units, not named", persons, options={"columns": ["own", "place", "visit"]}),
)  # fmt: skip
OUTSIDE = ("units, not named",)
NAMED = ("true: ",)


def world(kind: Kind, seed: list[int]) -> dict[str, Any]:
    """The tables of one world."""
    rng = np.random.default_rng(seed)
    table, held = (kind.draw(rng, n) for n in kind.sizes[:2])
    if kind.lot:
        both = pl.concat([table, held])
        who = rng.permutation(both["who"].unique(maintain_order=True).to_numpy())
        # A third of those held back were in the table, too.
        table = both.filter(pl.col("who").is_in(who[: len(who) // 2]))
        held = both.filter(pl.col("who").is_in(who[len(who) // 3 :]))
    if kind.claim:
        # Of everybody it is said whether they were in, by randomised response.
        right = np.exp(kind.claim) / (1 + np.exp(kind.claim))
        said = rng.random(sum(kind.sizes[:2])) < np.where(
            np.arange(sum(kind.sizes[:2])) < kind.sizes[0], right, 1 - right
        )
        # In no order, which would tell who was in.
        release = pl.concat([table, held]).filter(pl.Series(said))
        release = release[rng.permutation(release.height)]
    else:
        release = kind.made(kind.draw(rng, kind.sizes[2]))
    earlier = {"before": kind.draw(rng, kind.sizes[2])} if kind.before else {}
    return {"original": table, "release": release, "control": held} | earlier | kind.options


def main() -> int:
    """Print how often pages and attacks accuse; 1 where the statement is refuted."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--worlds", type=int, default=60, help="of each kind")
    parser.add_argument("--first", type=int, default=0, help="of their seeds")
    parser.add_argument("--only", default="", help="kinds whose name has this in it")
    parser.add_argument("--confidence", type=float, default=0.95)
    given = parser.parse_args()
    level = 1 - given.confidence
    by_attack: dict[str, list[float]] = defaultdict(list)
    found_by: dict[str, int] = defaultdict(int)
    pages = accused = bad = 0
    print("| kind | pages | accused | at most | chances ≤ 0.05 | control unfit |")
    print("| --- |" + " --- |" * 5, flush=True)
    for number, kind in enumerate(KINDS):
        if given.only not in kind.name:
            continue
        true = kind.name.startswith(NAMED)
        alarms = unfit = 0
        chances: list[float] = []
        many = max(1, round(kind.part * given.worlds))
        for k in range(many):
            # Lots by another stream than people: [k, 0] would be the same one as k.
            tables = world(kind, [given.first + k, number + 1])
            lots = np.random.default_rng([given.first + k, number + 1, 1])
            seen = assess(**tables, seed=lots, confidence=given.confidence)
            wrong = (Said.BEYOND,) if true else (Said.FOUND, Said.BEYOND)
            alarms += any(t.said in wrong for t in seen.tried)
            unfit += seen.check is not None and not (seen.check.alike and seen.check.fresh)
            if true or kind.name in OUTSIDE:
                continue
            for t in seen.tried:
                if t.chance is not None:
                    name = f"{t.criterion}: {t.attacker}"
                    by_attack[name].append(t.chance)
                    chances.append(t.chance)
                    found_by[name] += t.said in wrong
        low, high = clopper_pearson(alarms, many, 0.90)
        share = f"{np.mean(np.array(chances) <= 0.05):.1%}" if chances else ""
        print(
            f"| {kind.name} | {many:,} | {alarms} | {high:.1%} | {share} | {unfit} |",
            flush=True,
        )
        if kind.name not in OUTSIDE:
            bad += low > level
            pages += many
            accused += alarms
    if not pages:
        return 0
    low, high = clopper_pearson(accused, pages, 0.90)
    print(f"\n{accused} of {pages:,} pages accuse; at most {high:.2%}, where {level:.1%} may\n")
    print("| attack | tests | found | chances ≤ 0.05 | at most |")
    print("| --- |" + " --- |" * 4)
    for name, chances in sorted(by_attack.items()):
        below = int((np.array(chances) <= 0.05).sum())
        ends = clopper_pearson(below, len(chances), 0.90)
        bad += ends[0] > 0.05
        print(
            f"| {name} | {len(chances):,} | {found_by[name]} | {below / len(chances):.1%} | "
            f"{ends[1]:.1%} |"
        )
    return 1 if bad or low > level else 0


if __name__ == "__main__":
    raise SystemExit(main())
