"""Values and intervals that are calculated from released ones.

A calculation rests on k aggregates, each with an interval of its own. At confidence c every one of
them is taken at 1 - (1 - c)/k (Bonferroni), so that with probability c or more the box of all k
holds all k true answers at once. What the calculation makes of the box then holds the true result:

- a monotone function maps the ends of an interval, and a single aggregate (k = 1) loses nothing;
- sums, differences, products and quotients follow interval arithmetic, with ends rounded outwards;
  a divisor that may be 0 leaves everything possible, from -∞ to ∞;
- a comparison is true, false, or either; ``CASE`` and ``COALESCE`` are all that they can choose;
- a mode may be any of its public values in truth;
- a rank is compared with those of all other groups, so that the intervals of all of them have to
  hold at once, and the error allowed is shared among them.

Of two columns' sums a covariance, a slope or a correlation has one interval (`PairRecipe`): that
from intervals of its parts would be half as wide again. Where a sum or difference is of counts and
sums alone, or a quotient of two such, it is not calculated here: ``dither.plan.lowering.recipes``
makes one recipe of it, whose interval is the exact one.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from fractions import Fraction
from typing import Any

import numpy as np
import numpy.typing as npt

from dither.plan.lowering.recipes import (
    Applied,
    KeyRead,
    KeysLeftOut,
    Known,
    Linear,
    MeanRecipe,
    ModeRecipe,
    PairRecipe,
    Ranked,
    RatioRecipe,
    Recipe,
    claims,
    pair_of,
)
from dither.plan.schema import Kind
from dither.query.estimates._operations import (
    Floats,
    PostProcessed,
    Truths,
    applied,
    as_listed,
    missing,
    objects,
    places,
    possible_places,
    surely,
)
from dither.query.estimates._values import GroupEstimates, encoded

__all__ = ["Calculation", "post_columns"]

Leaf = Callable[[Recipe, float], GroupEstimates]


@dataclass(frozen=True)
class Calculation:
    """What is calculated from, in every group.

    Parameters
    ----------
    groups : int
    keys : sequence of sequence
        By key: its released value in every group; none where they are not known yet.
    leaf : callable
        The estimate of a recipe that is measured, at a confidence.
    rows : array of int
        The groups that are kept, among which ranks are counted.
    sets : sequence of sequence of int
        By group: the places of the keys that it is grouped by, where there are several sets of
        them; none where they are not known yet.
    """

    groups: int
    keys: Sequence[Sequence[Any]]
    leaf: Leaf
    rows: npt.NDArray[np.int64]
    sets: Sequence[Sequence[int]] = ()
    _made: dict[tuple[Recipe, float], PostProcessed] = field(default_factory=dict, repr=False)

    def __call__(self, recipe: Recipe, confidence: float) -> PostProcessed:
        """A released value at the confidence of its interval."""
        several = max(len(claims(recipe)), 1)
        return self._read(recipe, 1 - (1 - confidence) / several)

    def _read(self, recipe: Recipe, each: float) -> PostProcessed:
        if (recipe, each) not in self._made:
            self._made[recipe, each] = self._calculated(recipe, each)
        return self._made[recipe, each]

    def _calculated(self, recipe: Recipe, each: float) -> PostProcessed:
        match recipe:
            case Known(constant=constant):
                return self._constant(constant.value)
            case KeyRead(place=place):
                return self._key(place)
            case KeysLeftOut():
                return self._left_out(recipe)
            case Applied(op=op, operands=operands):
                with np.errstate(all="ignore"):
                    made = applied(op, [self._read(x, each) for x in operands])
                pair = pair_of(recipe)
                return made if pair is None else self._paired(pair, made, each)
            case Ranked():
                return self._ranked(recipe, each)
        found = self.leaf(recipe, each)
        if isinstance(recipe, ModeRecipe):
            return self._chosen(recipe, found.value.astype(np.int64).tolist())
        value, lower, upper = (
            np.broadcast_to(part, (self.groups,)).astype(float)
            for part in (found.value, found.lower, found.upper)
        )
        lower = np.nan_to_num(lower, nan=-np.inf, posinf=np.inf, neginf=-np.inf)
        upper = np.nan_to_num(upper, nan=np.inf, posinf=np.inf, neginf=-np.inf)
        return PostProcessed(value, lower, upper, _may_be_null(recipe, lower, upper))

    def _paired(self, pair: PairRecipe, found: PostProcessed, each: float) -> PostProcessed:
        """What two columns' sums give: as it is calculated, with the one interval of the whole."""
        ends = self.leaf(pair, each)
        value = np.asarray(found.value, dtype=float)
        lower, upper = (
            np.where(found.null & np.isnan(value), end, np.broadcast_to(other, value.shape))
            for end, other in ((found.lower, ends.lower), (found.upper, ends.upper))
        )
        return replace(found, lower=np.fmin(lower, value), upper=np.fmax(upper, value))

    def _constant(self, value: Any) -> PostProcessed:
        never = np.zeros(self.groups, dtype=bool)
        if value is None:
            return missing(self.groups)
        if not isinstance(value, int | Fraction):
            return objects([value] * self.groups)
        found = np.full(self.groups, float(value))
        return PostProcessed(found, found, found, never)

    def _key(self, place: int) -> PostProcessed:
        if not self.keys:
            everything = np.full(self.groups, np.inf)
            always = np.ones(self.groups, dtype=bool)
            return PostProcessed(np.full(self.groups, np.nan), -everything, everything, always)
        values = self.keys[place]
        if any(isinstance(v, str) or hasattr(v, "isoformat") for v in values):
            return objects(values)
        found = np.array([np.nan if v is None else float(v) for v in values], dtype=float)
        null = np.isnan(found)
        return PostProcessed(
            found, np.where(null, np.inf, found), np.where(null, -np.inf, found), null
        )

    def _left_out(self, recipe: KeysLeftOut) -> PostProcessed:
        never = np.zeros(self.groups, dtype=bool)
        if not self.sets:
            lower, upper = np.zeros(self.groups), np.full(self.groups, float(recipe.of(())))
            return PostProcessed(upper, lower, upper, never)
        found = np.array([recipe.of(one) for one in self.sets], dtype=float)
        return PostProcessed(found, found, found, never)

    def _chosen(self, mode: ModeRecipe, places: Sequence[int]) -> PostProcessed:
        """A value that was chosen; the one that most rows have may be any, or none."""
        values = [mode.values[place] for place in places]
        null = np.ones(self.groups, dtype=bool)
        if not mode.kind.numeric and mode.kind is not Kind.BOOLEAN:
            return replace(objects(values), null=null, certain=~null)
        numbers = np.array(mode.values, dtype=np.float64)
        found = numbers[np.array(places, dtype=np.int64)]
        least, most = (np.full(self.groups, end(numbers)) for end in (np.min, np.max))
        return PostProcessed(found, least, most, null)

    def _ranked(self, ranked: Ranked, each: float) -> PostProcessed:
        """A rank among the kept groups of the same keys; NULL elsewhere."""
        inner = {one for x, _ in ranked.order for one in claims(x)}
        # All groups, and not the kept ones alone: which are kept depends on the noise.
        each = 1 - (1 - each) / max(len(inner) * self.groups, 1)
        order = [(self._read(x, each), down) for x, down in ranked.order]
        value = np.full(self.groups, np.nan)
        lower, upper = np.full(self.groups, np.inf), np.full(self.groups, -np.inf)
        parts: dict[tuple[Any, ...], list[int]] = {}
        for row in self.rows.tolist():
            parts.setdefault(tuple(self.keys[k][row] for k in ranked.by), []).append(row)
        for rows in parts.values():
            at = np.array(rows)
            value[at] = places(ranked.word, [(-x.value if d else x.value)[at] for x, d in order])
            first, down = order[0]
            ends = (-first.upper, -first.lower) if down else (first.lower, first.upper)
            tied = len(order) > 1 or ranked.word == "ROW_NUMBER"
            lower[at], upper[at] = possible_places(
                ranked.word, ends[0][at], ends[1][at], first.null[at], tied
            )
        return PostProcessed(value, lower, upper, np.isnan(value))


def _may_be_null(recipe: Recipe, lower: Floats, upper: Floats) -> Truths:
    """Where a group may be empty, so that a mean, a quantile and the like of it are NULL.

    Counts and sums are never. Where a group is empty, the interval of a mean or a ratio is bounded
    only if noise takes its divisor beyond the divisor's own half-width, which is as rare as the
    confidence says; so a bounded interval says that it is not.
    """
    if isinstance(recipe, Linear):
        return np.zeros(lower.shape, dtype=bool)
    if isinstance(recipe, MeanRecipe | RatioRecipe):
        low = -np.inf if recipe.lower is None else float(recipe.lower)
        high = np.inf if recipe.upper is None else float(recipe.upper)
        return np.asarray((lower <= low) & (upper >= high))
    return np.ones(lower.shape, dtype=bool)


# --- as columns of a release --------------------------------------------------------------------


def post_columns(
    titles: Sequence[str], post: PostProcessed, kind: Kind | None
) -> list[dict[str, Any]]:
    """The value and the ends of what it can be, as the columns of a release hold them."""
    if kind is Kind.BOOLEAN:
        parts = [[None if math.isnan(v) else v == 1 for v in post.value.tolist()]]
        parts += [end.tolist() for end in (surely(post), post.upper == 1)]
        shown = "boolean"
    elif post.certain is not None:
        listed = [v.isoformat() if hasattr(v, "isoformat") else v for v in as_listed(post.value)]
        certain = [v if s else None for v, s in zip(listed, post.certain.tolist(), strict=True)]
        dated = kind in (Kind.DATE, Kind.TIMESTAMP)
        parts, shown = [listed, certain, certain], kind.value if kind and dated else "text"
    elif kind is not None and not kind.numeric:
        # Where there is no group at all.
        parts, shown = [as_listed(post.value)] * 3, kind.value
    else:
        gone = post.lower > post.upper
        ends = (np.where(gone, np.nan, end) for end in (post.lower, post.upper))
        numbers = [post.value, *ends]
        whole = kind is Kind.INTEGER and all(
            bool(np.all(np.isnan(x) | (np.abs(x) < 2.0**63))) for x in numbers
        )
        parts = [[encoded(v) for v in x.tolist()] for x in numbers]
        if whole:
            parts = [[None if v is None else round(float(v)) for v in part] for part in parts]
        shown = "integer" if whole else "real"
    return [
        {"name": title, "kind": shown, "values": values}
        for title, values in zip(titles, parts, strict=True)
    ]
