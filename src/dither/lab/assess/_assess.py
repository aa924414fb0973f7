"""``assess``: what a release gives away of the people in it, by the three criteria of European law.

*Singling out*, *linkability* and *inference* are what the opinion of the Article 29 Working Party
asks of anonymisation (05/2014), and what its successors ask of synthetic data. Each is tried by
several attackers, on people who were in the table and on as many who were not: what is true of both
is learned of anybody, and only the difference is a matter of having been in. Each attacker is also
set on the table itself, as if that had been released; one that fails there has shown nothing.

Nothing that fails shows that a release is anonymous. A guarantee bounds attacks that nobody has
thought of; an assessment tries those that somebody has.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import polars as pl

from dither._checks import confidence as check_confidence
from dither._checks import whole
from dither._format import count_text
from dither._stats import clopper_pearson
from dither.errors import ArgumentError, nearest
from dither.lab._simulation import SimulatedWorld
from dither.lab.assess._claim import HeldClaim, read_claim
from dither.lab.assess._fresh import ControlCheck, checked, rows_of
from dither.lab.assess._judged import (
    Judged,
    Said,
    Tally,
    TriedAttack,
    chance_of_lot,
    count_hits,
    fewest,
    told,
)
from dither.lab.assess._people import AttackedPeople, Given, drawn_pool, read_tables
from dither.lab.assess._result import Assessment
from dither.lab.assess._words import (
    CRITERIA,
    INFERRING,
    LINKING,
    SHARES,
    SINGLING,
    attacker_words,
)
from dither.lab.assess._world import Mask, World
from dither.lab.assess.attackers._found import Found
from dither.lab.assess.attackers._inferring import (
    can_be_secret,
    differencing_versions,
    inferring,
)
from dither.lab.assess.attackers._linking import linking
from dither.lab.assess.attackers._membership import membership_scores
from dither.lab.assess.attackers._singling import singling

__all__ = ["assess"]

_ROWS = 20_000
"""Rows of the release that are searched, at most; of more, so many by lot."""
_BARE_ROWS = 8_000
_BARE_PEOPLE = 200
"""People of either kind by whom it is seen whether an attack works on the table itself."""
_SECRETS = 5
"""Columns that are guessed where nobody names them, at most."""
_WORKS = 0.01
"""The chance that an attack that does not work on the table itself is taken for one that does."""


def assess(
    original: object,
    release: object,
    *,
    control: object | None = None,
    epsilon: Any = None,
    delta: Any = 0,
    neighbours: Any = "add-remove",
    certificate: Any = None,
    ledger: Any = None,
    key: Any = None,
    answer: Any = None,
    unit: str | None = None,
    before: object | None = None,
    known: Sequence[str] | None = None,
    secrets: Sequence[str] | None = None,
    groups: Mapping[str, Mapping[Any, Any]] | None = None,
    columns: Sequence[str] | None = None,
    people: int = 1_000,
    seed: int | np.random.Generator = 0,
    confidence: float = 0.95,
) -> Assessment:
    """Attack an anonymised or synthetic table by the criteria of singling out, linking, inferring.

    It reads the original table without noise. What it gives holds names of columns and counts of
    hits, and no value; but counts are exact, and protected by nothing: it is for the owner of the
    table, and for whom they show it to.

    Parameters
    ----------
    original, release : frame
        The table, and what is to be published of it: Polars, pandas or pyarrow, or an object that
        has a ``frame``. Columns that only one has are not used. The release may hold labels such
        as ``[20, 30)``, ``130**`` and ``*`` in place of values.
    control : frame, optional
        People who were *not* in the original and could have been as well: held back by lot before
        the release was made. Without them, nothing can be concluded, and what is said says so.
    epsilon, delta, neighbours : number, number, {'add-remove', 'replace'}
        What the release is said to promise.
    certificate, ledger, key, answer : optional
        Who vouches for it, as of `dither.verify`. ``answer`` is the file of a synthetic model, of
        which the released rows were drawn.
    unit : str, optional
        A column that says whose row it is; without it each row is a person. Up to five rows of a
        person are attacked, and any of them may give the person away.
    before : frame, optional
        An earlier version of the release.
    known : sequence of str, optional
        For linkability: the columns that one source has; others are those of the other source. By
        default the columns are divided by turns.
    secrets : sequence of str, optional
        Columns that are guessed; by default five at most, whose values differ most.
    groups : mapping, optional
        By secret column: from a value to its group, as a level of a hierarchy says. Answers of one
        group are as good as equal to the attacker called *similarity*.
    columns : sequence of str, optional
        Which to use; by default all that both have.
    people : int
        How many people of either kind are attacked, at least 1, at most.
    seed : int or numpy.random.Generator
        Of all lots.
    confidence : float
        In (0, 1), of all that is said together: a release of which nothing tells who was in is
        accused with probability at most ``1 - confidence``, where the control was drawn by lot and
        a row is a person, or ``unit`` says whose it is.

    Returns
    -------
    Assessment
        ``html()`` is the page, ``to_dict()`` and ``to_json()`` the data, ``str()`` the text.

    Raises
    ------
    ArgumentError
        For tables that are empty or share no column, arguments that do not fit, or a control that
        has no people of its own.
    CertificateError
        The certificate does not hold.

    References
    ----------
    Article 29 Data Protection Working Party, Opinion 05/2014 on Anonymisation Techniques; Giomi,
    Boenisch, Wehmeyer and Tasnádi, "A unified framework for quantifying privacy risk in synthetic
    data", 2023, from which the three attacks with a control are.

    Examples
    --------
    >>> import numpy as np
    >>> import polars as pl
    >>> rng = np.random.default_rng(1)
    >>> def people(n):
    ...     return pl.DataFrame({"age": rng.integers(18, 90, n), "pay": rng.integers(1, 9999, n)})
    >>> table, held, fresh = people(60), people(60), people(60)
    >>> assess(table, table, control=held).said["singling out"]
    <Said.FOUND: 'found'>
    >>> assess(table, fresh, control=held).said["singling out"]
    <Said.NOT_SEEN: 'not seen'>
    """
    level = 1.0 - check_confidence(confidence)
    most = whole("people", people, 1)
    rng = SimulatedWorld.of(seed)
    claim = read_claim(
        epsilon, delta, neighbours, certificate, ledger, key, answer,
        getattr(release, "frame", release),
    )  # fmt: skip
    given = read_tables(original, release, control, before, unit, columns)
    if control is not None and not given.control.height:
        raise ArgumentError(
            "control must have people who are not in original: by the unit's column it has none"
        )
    _known_ones(known, given)
    asked, meant = _secrets(secrets, given), _groups(groups, given)
    attacked = drawn_pool(given, most, rng)
    world = World(attacked.frame, rows_of(given.release, _ROWS, rng), given.covers)
    plan = _Plan(given, tuple(known or ()), asked or _most_spread(world), meant)
    tried = list(_tried(plan, world, attacked, rng, plan.given.before))
    bare = _on_the_table(plan, attacked, rng)
    check = None if control is None else checked(given, attacked, rng)
    findings = _judged(tried, bare, attacked, claim, check, level, rng)
    return Assessment(
        tuple(findings),
        claim,
        check,
        columns=given.columns,
        left_out=world.left_out,
        only_original=given.only_original,
        only_release=given.only_release,
        rows=(
            len(given.owners), given.release.height, len(given.control_owners),
            None if given.before is None else given.before.height,
        ),
        people=(given.people, given.control_people, int(attacked.member.sum())),
        searched=world.table.height,
        shared_people=given.shared_people,
        unit=given.unit,
        unit_released=given.unit_released,
        with_control=control is not None,
        with_before=before is not None,
        seed=None if isinstance(seed, np.random.Generator) else seed,
        confidence=1.0 - level,
    )  # fmt: skip


# --- what was asked -------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True, eq=False)
class _Plan:
    """What is tried."""

    given: Given
    known: tuple[str, ...]
    secrets: tuple[str, ...]
    groups: Mapping[str, Mapping[Any, Any]]


def _columns(argument: str, asked: object, there: Sequence[str]) -> tuple[str, ...]:
    if isinstance(asked, str) or not isinstance(asked, Sequence) or not asked:
        raise ArgumentError(f"{argument} must be a list of column names")
    for name in asked:
        if name not in there:
            close = nearest(name, there) if isinstance(name, str) else ""
            raise ArgumentError(
                f"{argument} has a column {name!r} that original and release do not share{close}"
            )
    if len(set(asked)) < len(asked):
        raise ArgumentError(f"{argument} names a column twice")
    return tuple(asked)


def _known_ones(known: object, given: Given) -> None:
    if known is None:
        return
    if len(_columns("known", known, given.columns)) == len(given.columns):
        raise ArgumentError("known must leave a column for the other source")


def _secrets(secrets: object, given: Given) -> tuple[str, ...] | None:
    return None if secrets is None else _columns("secrets", secrets, given.columns)


def _groups(groups: object, given: Given) -> Mapping[str, Mapping[Any, Any]]:
    if groups is None:
        return {}
    if not isinstance(groups, Mapping) or not all(isinstance(g, Mapping) for g in groups.values()):
        raise ArgumentError('groups must be a mapping, such as {"illness": {"ulcer": "stomach"}}')
    _columns("groups", list(groups), given.columns)
    return groups


# --- attacks --------------------------------------------------------------------------------------

Key = tuple[str, str, str, float | None]
"""Criterion, attacker, secret, and of one who scores to what share of people it says yes."""


def _most_spread(world: World) -> tuple[str, ...]:
    """The columns whose values differ most among people."""
    people = world.persons
    spread = {}
    for c in world.columns:
        if can_be_secret(c):
            share = np.bincount(c.cells[people]) / len(people)
            spread[c.name] = -float((share[share > 0] * np.log(share[share > 0])).sum())
    return tuple(sorted(spread, key=lambda n: (-spread[n], n))[:_SECRETS])


def _tried(
    plan: _Plan,
    world: World,
    people: AttackedPeople,
    rng: np.random.Generator,
    earlier: pl.DataFrame | None,
) -> Iterator[tuple[Key, Mask | None]]:
    """Of each attack, whether each person was hit; None where that takes a control."""
    if not world.columns or not world.table.height:
        return
    for criterion, found in _said(plan, world, rng, earlier):
        if found.hits is not None:
            hits = (
                found.hits[people.first] if criterion == INFERRING else people.any_row(found.hits)
            )
            yield (criterion, found.attacker, found.secret, None), hits
            continue
        assert found.scores is not None
        scores = people.best_row(np.nan_to_num(found.scores, nan=-np.inf))
        for share in SHARES:
            key: Key = (criterion, found.attacker, found.secret, share)
            if people.member.all():
                yield key, None
                continue
            # All who tie with the last of them are said yes to as well.
            last = np.sort(scores)[::-1][max(1, int(share * len(scores))) - 1]
            hits = scores >= last
            # Where all tie, it has nobody to say yes to.
            yield key, hits & ~hits.all()


def _said(
    plan: _Plan, world: World, rng: np.random.Generator, earlier: pl.DataFrame | None
) -> Iterator[tuple[str, Found]]:
    yield from ((SINGLING, one) for one in singling(world, rng))
    yield from ((SINGLING, one) for one in membership_scores(world, rng))
    yield from ((LINKING, one) for one in linking(world, plan.known, rng))
    for secret in plan.secrets:
        yield from ((INFERRING, one) for one in inferring(world, secret, plan.groups, rng))
    if earlier is None or not earlier.height:
        return
    before = World(world.people, rows_of(earlier, _ROWS, rng), plan.given.covers)
    for secret in plan.secrets:
        yield from ((INFERRING, one) for one in differencing_versions(world, before, secret))


def _on_the_table(
    plan: _Plan, people: AttackedPeople, rng: np.random.Generator
) -> dict[Key, Tally]:
    """What each attack hits where the table itself is the release, on some of the people."""
    if people.member.all():
        return {}
    chosen = np.concatenate(
        [
            rng.permutation(np.flatnonzero(side))[:_BARE_PEOPLE]
            for side in (people.member, ~people.member)
        ]
    )
    some = people.of(rng.permutation(chosen))
    own = some.source[some.source >= 0]
    rest = np.setdiff1d(np.arange(plan.given.original.height), own)
    others = rng.permutation(rest)[: max(0, _BARE_ROWS - len(own))]
    # In no order: ties go to the first row, which must not be that of somebody who is attacked.
    rows = rng.permutation(np.concatenate([own, others]))
    table = plan.given.original[rows]
    # Two versions of the table differ by one person in ten of those who are attacked.
    gone = own[: max(1, len(own) // 10)]
    earlier = None if plan.given.before is None else table.filter(~np.isin(rows, gone))
    return {
        key: count_hits(hits, some.member)
        for key, hits in _tried(plan, World(some.frame, table), some, rng, earlier)
        if hits is not None
    }


# --- verdicts -------------------------------------------------------------------------------------


def _judged(
    tried: Sequence[tuple[Key, Mask | None]],
    bare: Mapping[Key, Tally],
    people: AttackedPeople,
    claim: HeldClaim | None,
    check: ControlCheck | None,
    level: float,
    rng: np.random.Generator,
) -> Iterator[TriedAttack]:
    # Half of the level is for accusing, half for holding claims against what was seen.
    tests = max(1, len(tried))
    parts = 1 if claim is None else 2
    each = level / (tests * parts)
    order = {name: i for i, name in enumerate(CRITERIA)}
    for key, hits in sorted(tried, key=lambda one: order[one[0][0]]):
        yield _judge(key, hits, bare.get(key), people, claim, check, each, rng)


def _judge(
    key: Key,
    hits: Mask | None,
    bare: Tally | None,
    people: AttackedPeople,
    claim: HeldClaim | None,
    check: ControlCheck | None,
    level: float,
    rng: np.random.Generator,
) -> TriedAttack:
    criterion, attacker, secret, share = key
    name, about = attacker_words(criterion, attacker, share)
    many = int(people.member.sum())
    found = TriedAttack(criterion, name, about, secret, Said.CANNOT_SAY, "", people=many)
    if hits is None:
        return replace(found, why="Without a control there is no line between near and far.")
    if people.member.all():
        hit = int(hits.sum())
        low, high = clopper_pearson(hit, many, 1.0 - level)
        return replace(
            found, hits=hit, share=hit / many, low_share=low, high_share=high,
            why="Without a control nobody knows how often it says yes to people who were not in "
            "the table.",
        )  # fmt: skip
    tally = count_hits(hits, people.member)
    seen, needed = told(tally, level), fewest(level)
    said, why = _decided(tally, seen, bare, check, needed)
    near = (seen.ends[0], seen.control[1])
    if said is Said.FOUND and claim is not None and claim.broken(tally, level, rng):
        said = Said.BEYOND
        why = "No release of the claimed loss lets people be told apart so well."
    slack = 0.0 if claim is None else claim.delta
    odds = (near[0] - slack) / near[1] if near[1] > 0 else 0.0
    return replace(
        found,
        said=said,
        why=why,
        hits=tally.hits,
        control_hits=tally.control_hits,
        share=tally.share,
        low_share=seen.ends[0],
        high_share=seen.ends[1],
        control=tally.control,
        low_control=seen.control[0],
        high_control=seen.control[1],
        more=tally.more,
        low=seen.low,
        high=seen.high,
        chance=seen.chance,
        allowed=None if claim is None else claim.allowed(near[1]),
        epsilon=math.log(odds) if odds > 1.0 else 0.0,
        works=None if bare is None else _works(bare),
        bare=None if bare is None else bare.share,
        bare_control=None if bare is None else bare.control,
    )


def _works(bare: Tally) -> bool:
    return chance_of_lot(bare.hits, bare.control_hits, bare.people) <= _WORKS


def _decided(
    tally: Tally,
    seen: Judged,
    bare: Tally | None,
    check: ControlCheck | None,
    needed: int,
) -> tuple[Said, str]:
    """What is said, and why."""
    unlike = check is not None and not check.alike
    if seen.found and unlike:
        return Said.CANNOT_SAY, (
            "People of the table are hit more often, but the control is not like the table: the "
            "difference may have been there before anything was released."
        )
    if seen.found:
        return Said.FOUND, "People of the table are hit more often than others, beyond luck."
    if tally.people < needed:
        return Said.CANNOT_SAY, (
            f"Of {count_text(tally.people, 'person', 'people')} of either kind nothing could be "
            f"told from luck: it takes {needed:,}."
        )
    if unlike:
        return Said.CANNOT_SAY, "The control is not like the table."
    if check is not None and not check.fresh:
        return Said.CANNOT_SAY, (
            "The control holds people of the table, which hides what is given away of them."
        )
    if bare is None or not _works(bare):
        return Said.CANNOT_SAY, (
            "On the table itself the attack does no better for people who are in it, so its "
            "failure on the release says nothing."
        )
    return Said.NOT_SEEN, (
        "No difference is told from luck: of 100 people of the table it may hit at most "
        f"{math.ceil(100 * seen.high):,} more."
    )
