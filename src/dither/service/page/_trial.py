"""The differencing attack on rows that nobody has, against exact and against private answers."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import TYPE_CHECKING, Any

from dither._format import display_text, percent
from dither.errors import ArgumentError
from dither.plan.schema import ColumnFacts, Kind
from dither.privacy import pure
from dither.service.page._svg import Scale

if TYPE_CHECKING:
    import polars as pl

    from dither.session._session import Session

__all__ = ["TrialSecret", "TrialTable", "tables_for", "tried"]

ROWS = 200

SEED = 7
"""The same people in the form and in what is made of it."""

SHOWN = 10
"""People to choose from."""

TRIES = 400

CONFIDENCE = 0.95


@dataclass(frozen=True, slots=True)
class TrialSecret:
    """What an attacker wants to know of somebody: a condition on one column.

    Parameters
    ----------
    text : str
        As SQL says it.
    has : sequence of bool
        Of each person.
    """

    text: str
    has: Sequence[bool]


@dataclass(frozen=True, slots=True)
class TrialTable:
    """Dummy people of one table: each once, however many rows they have.

    Parameters
    ----------
    name : str
    people : sequence of str
        What is known of each of those who may be chosen.
    secrets : sequence of TrialSecret
    count : int
        How many people there are.
    """

    name: str
    people: Sequence[str]
    secrets: Sequence[TrialSecret]
    count: int


def tables_for(session: Session) -> list[TrialTable]:
    """The private tables whose policy declares something that could be a secret."""
    found = []
    for name, table in session.schema.tables.items():
        if not table.private:
            continue
        frame = session.dummy(name, ROWS, seed=SEED).frame
        if table.unit is not None and table.unit in frame.columns:
            frame = frame.unique(subset=[table.unit], keep="first", maintain_order=True)
        known = [fact for fact in table.columns.values() if fact.name in frame.columns]
        secrets = [one for fact in known for one in _secrets(frame, fact)]
        # Somebody must have it and somebody not.
        secrets = [one for one in secrets if 0 < sum(one.has) < len(one.has)]
        if secrets and frame.height > 1:
            said = [fact.name for fact in known if fact.lower is not None or fact.values][:4]
            people = [
                ", ".join(f"{name} {_said(row[name])}" for name in said)
                for row in frame.head(SHOWN).to_dicts()
            ]
            found.append(TrialTable(name, people, secrets[:8], frame.height))
    return found


def _said(value: Any) -> str:
    if isinstance(value, float):
        return f"{value:.4g}"
    return display_text(value, 20)


def _secrets(frame: pl.DataFrame, fact: ColumnFacts) -> Iterator[TrialSecret]:
    column = frame[fact.name].to_list()
    name = fact.name if fact.name.isidentifier() else '"' + fact.name.replace('"', '""') + '"'
    if fact.values:
        for value in fact.values[:2]:
            quoted = "'" + str(value).replace("'", "''") + "'"
            text = str(value) if isinstance(value, int | float | Fraction) else quoted
            yield TrialSecret(f"{name} = {text}", [one == value for one in column])
        return
    low, high = fact.lower, fact.upper
    numeric = fact.kind in (Kind.INTEGER, Kind.REAL)
    if numeric and isinstance(low, Fraction) and isinstance(high, Fraction):
        middle = (low + high) / 2
        cut = int(middle) if middle.denominator == 1 else float(middle)
        has = [isinstance(one, int | float) and one >= cut for one in column]
        yield TrialSecret(f"{name} >= {cut}", has)


def tried(table: TrialTable, secret: TrialSecret, target: int, epsilon: Fraction) -> dict[str, Any]:
    """One attack to look at, and many to count.

    Parameters
    ----------
    table : TrialTable
    secret : TrialSecret
    target : int
        Which of the people.
    epsilon : Fraction
        Of each private count.

    Raises
    ------
    ArgumentError
        There is no such person.
    """
    from dither.lab.attack import differencing
    from dither.mechanisms import DiscreteLaplace

    if not 0 <= target < len(table.people):
        raise ArgumentError("target must be one of the people that are listed")
    noise = DiscreteLaplace.for_loss(epsilon, l1=1)
    # Two counts for each try, and two to look at; a person has one row in each, so l1 is 1.
    drawn = iter(noise.draw(2 * TRIES + 2).tolist())
    everybody = sum(secret.has)
    besides = everybody - secret.has[target]
    looked = (everybody + next(drawn), besides + next(drawn))

    who = (
        [i for i, has in enumerate(secret.has) if has],
        [i for i, has in enumerate(secret.has) if not has],
    )
    half = TRIES // 2
    targets = [group[i % len(group)] for i in range(half) for group in who]
    conditions = [f"person {i}" for i in targets]
    left = {f"(secret) AND NOT (person {i})": everybody - has for i, has in enumerate(secret.has)}

    def answer(condition: str) -> float:
        return float(left.get(condition, everybody) + next(drawn))

    found = differencing(
        answer,
        conditions,
        "secret",
        loss=pure(epsilon),
        truth=[secret.has[i] for i in targets],
        confidence=CONFIDENCE,
    ).verdict
    assert found is not None
    up = Scale(0, 1, 40, 520)
    return {
        "has": secret.has[target],
        "exact": (everybody, besides, everybody - besides),
        "private": (*looked, looked[0] - looked[1]),
        "says": looked[0] - looked[1] > 0.5,
        "half": noise.half_width(CONFIDENCE),
        "tries": TRIES,
        "success": percent(found.success),
        "low": percent(found.low, turn=math.floor),
        "high": percent(found.high, turn=math.ceil),
        "bound": percent(found.bound, turn=math.ceil),
        "x": {
            "blind": up(0.5),
            "success": up(found.success),
            "low": up(found.low),
            "high": up(found.high),
            "bound": up(min(found.bound, 1.0)),
            "all": up(1.0),
            "none": up(0.0),
        },
    }
