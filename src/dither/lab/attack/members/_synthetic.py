"""Synthetic data is not private because it is synthetic: who was in the table that it was made of?

*By shadows.* The strong adversary knows every row but the target's, and the generator. Tables made
with and without the target are told apart by how many synthetic rows agree with the target in each
set of at most ``together`` columns: a generator that keeps marginals keeps the target's
combinations too, the rarer the more plainly. Those counts are a statistic of the table, so all that
holds of `membership` holds here: the fit, the controls, what refutes a loss.

*By the closest record.* Somebody who has the released rows alone says of a candidate that she was
in if a released row is near her. Candidates are rows that were in and rows held out, of which there
must be some; without them there is nothing to compare a distance with. The control attacks a table
that was published as it is.

Source. Stadler, Oprisanu and Troncoso, "Synthetic data: anonymisation groundhog day", 2022;
Houssiau et al., "TAPAS: a toolbox for adversarial privacy auditing of synthetic data", 2022.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt
import polars as pl

from dither._checks import confidence as check_confidence
from dither._checks import whole
from dither.errors import ArgumentError
from dither.lab._cells import alike, coded, distances_of
from dither.lab._frames import encode, read
from dither.lab._nearest import nearest_rows
from dither.lab._simulation import SimulatedWorld
from dither.lab.attack.members._membership import Membership, membership, of_scores
from dither.privacy import Loss

__all__ = ["closest_record", "rarest", "synthetic"]

Generator = Callable[[Any], Any]
Floats = npt.NDArray[np.float64]
Ints = npt.NDArray[np.int64]


def synthetic(
    generator: Generator,
    data: object,
    *,
    loss: Loss | None = None,
    target: int | None = None,
    undefended: Generator | None = None,
    together: int = 2,
    plays: int = 500,
    name: str | None = None,
    seed: int | np.random.Generator = 0,
    confidence: float = 0.99,
) -> Membership:
    """Tell from synthetic rows who was in the table that they were made of.

    Parameters
    ----------
    generator : callable
        ``generator(rows)`` gives synthetic rows of a table: a frame, or something that has one as
        ``frame``, with the same columns. It draws its own noise, and is called ``3·plays`` times.
    data : DataFrame
        The table; Polars, pandas or pyarrow.
    loss : Loss, optional
        What the generator is said to lose under adding or removing one row.
    target : int, optional
        The row that is in or out; by default the one whose values, alone and in pairs, are rarest.
    undefended : callable, optional
        The same generator without its noise, for the control.
    together : int
        Columns of a set that are looked at together, at most.
    plays : int
        Fresh synthetic tables that are scored, at least 100; and as many shadows with the target
        and without.
    name : str, optional
        What the generator is called in the verdict.
    seed : int or numpy.random.Generator
        Of coins.
    confidence : float
        In (0, 1).

    Returns
    -------
    Membership
        Its ``certified`` epsilon is a lower bound of what the generator reveals.

    Raises
    ------
    ArgumentError
        For arguments that do not fit each other, or a generator whose rows lack a column.

    Examples
    --------
    >>> import numpy as np
    >>> import polars as pl
    >>> table = pl.DataFrame({"sex": [0, 1] * 40, "ill": [0] * 79 + [1]})
    >>> rng = np.random.default_rng(1)
    >>> def drawn_again(rows):  # each row as likely as any: a table of the same distribution
    ...     return rows[rng.integers(0, rows.height, rows.height)]
    >>> found = synthetic(drawn_again, table)
    >>> found.auc.low > 0.7, found.certified() > 1
    (True, True)
    """
    rows = read(data, "data")
    together = whole("together", together, 1, rows.width)
    if not callable(generator):
        raise ArgumentError("generator must be a function from rows to synthetic rows")
    if undefended is not None and not callable(undefended):
        raise ArgumentError("undefended must be a function from rows to synthetic rows")
    chosen = rarest(rows) if target is None else whole("target", target, 0, rows.height - 1)
    likeness = _likeness(rows, chosen, together)

    def statistic(of: Generator, argument: str) -> Callable[[Any], Floats]:
        return lambda places: likeness(of(rows[places[:, 0].astype(np.int64)]), argument)

    return membership(
        statistic(generator, "generator"),
        np.arange(rows.height, dtype=np.float64)[:, None],
        loss=loss,
        target=chosen,
        undefended=None if undefended is None else statistic(undefended, "undefended"),
        plays=plays,
        name=name or "synthetic rows",
        seed=seed,
        confidence=confidence,
    )


def _likeness(rows: pl.DataFrame, target: int, together: int) -> Callable[[object, str], Floats]:
    """How many rows a table has, and how many agree with the target in each set of columns."""
    sets = [
        list(chosen)
        for k in range(1, together + 1)
        for chosen in itertools.combinations(range(rows.width), k)
    ]
    values = rows.row(target)

    def of(made: object, argument: str) -> Floats:
        found = getattr(made, "frame", made)
        if isinstance(found, pl.DataFrame) and not found.height:
            return np.zeros(len(sets) + 1)
        table = read(found, f"what {argument} returns")
        missing = [name for name in rows.columns if name not in table.columns]
        if missing:
            raise ArgumentError(f"{argument} must return rows that have a column {missing[0]!r}")
        try:
            same = [
                table[name].eq_missing(pl.Series([value], dtype=rows.schema[name])).to_numpy()
                for name, value in zip(rows.columns, values, strict=True)
            ]
        except pl.exceptions.PolarsError as error:
            raise ArgumentError(
                f"{argument} must return rows whose columns hold what those of data hold"
            ) from error
        agree = np.stack(same)
        counted = [agree[chosen].all(axis=0).sum() for chosen in sets]
        return np.array([table.height, *counted], dtype=np.float64)

    return of


def rarest(rows: pl.DataFrame) -> int:
    """The row whose values, alone and in pairs, are rarest: by the sum of their log-frequencies.

    Examples
    --------
    >>> rarest(pl.DataFrame({"a": [1, 1, 2, 1], "b": [0, 0, 0, 1]})) in (2, 3)
    True
    """
    coded = [encode(rows[name]) for name in rows.columns]
    codes = [c.codes.astype(np.int64) for c in coded]
    common = np.zeros(rows.height)
    for k in (1, 2):
        for chosen in itertools.combinations(range(rows.width), k):
            key = np.zeros(rows.height, dtype=np.int64)
            for i in chosen:
                key = key * coded[i].size + codes[i]
            _, of, many = np.unique(key, return_inverse=True, return_counts=True)
            common += np.log(many[of])
    return int(common.argmin())


def closest_record(
    released: object,
    members: object,
    others: object,
    *,
    loss: Loss | None = None,
    name: str = "synthetic rows",
    seed: int | np.random.Generator = 0,
    confidence: float = 0.99,
) -> Membership:
    """Tell members from others by how near a released row lies to them.

    Parameters
    ----------
    released : DataFrame
        The synthetic rows.
    members, others : DataFrame
        Rows that they were made of, and rows that they were not made of; four of each at least. Of
        the longer one as many are drawn as the other has.
    loss : Loss, optional
        What the rows are said to lose under adding or removing one row, such as
        ``privacy.approximate(1, 1e-6)``. It is held against the guesses where it was decided by lot
        who of these people was held out, as a holdout is drawn; else people differ from one another
        before anything is released, and no loss says how well they are told apart.
    name : str
    seed : int or numpy.random.Generator
        Of what is drawn, and of strangers' coins.
    confidence : float
        In (0, 1).

    Returns
    -------
    Membership
        Half of the rows set the threshold, the other half are scored. With a loss, *violated*
        where so many guesses, by the threshold or by the highest and lowest scores alone, were
        right that no release of that loss lets them be, but with probability ``1 - confidence``.

    Raises
    ------
    ArgumentError
        For empty tables, other columns, or a loss that is none.

    Examples
    --------
    >>> people = pl.DataFrame({"age": range(80)})
    >>> found = closest_record(people[::2], people[::2], people[1::2])
    >>> found.auc.value
    1.0
    """
    if loss is not None and not isinstance(loss, Loss):
        raise ArgumentError("loss must be a Loss, such as privacy.approximate(1, 1e-6)")
    confidence = check_confidence(confidence)
    generator = SimulatedWorld.of(seed)
    frames = alike({"released": released, "members": members, "others": others})
    columns = distances_of(coded(frames, None))
    ends = np.cumsum([0, *(frame.height for frame in frames)])
    release, inside, outside = (np.arange(low, high) for low, high in itertools.pairwise(ends))
    many = min(len(inside), len(outside)) // 2 * 2
    if many < 4:
        raise ArgumentError("members and others must have four rows each, at least")
    inside, outside = (generator.permutation(x)[:many] for x in (inside, outside))
    member = np.arange(2 * many) < many
    near = -nearest_rows(columns, np.concatenate([inside, outside]), release)
    # As published: a member finds herself, and others the nearest member.
    bare = np.concatenate([np.zeros(many), -nearest_rows(columns, outside, inside)])
    half = np.arange(2 * many) % 2 == 0

    def played(scores: Floats, of: npt.NDArray[np.bool_]) -> Any:
        level = _level(scores[half], of[half])
        kept = ~half
        return scores[kept], of[kept], scores[kept] > level

    stranger = member ^ (generator.random(many) < 0.5).repeat(2)
    return of_scores(
        played(near, member),
        played(bare, member),
        played(near, stranger),
        attack="closest record",
        name=name,
        bare="the real rows themselves",
        loss=loss,
        confidence=confidence,
    )


def _level(scores: Floats, member: npt.NDArray[np.bool_]) -> float:
    """The threshold above which most are guessed rightly."""
    tried: Sequence[float] = np.unique(np.append(scores, -np.inf)).tolist()
    right = [int(((scores > level) == member).sum()) for level in tried]
    return float(tried[int(np.argmax(right))])
