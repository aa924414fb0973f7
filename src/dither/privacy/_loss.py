"""The privacy loss: one frozen value that composes symbolically and answers in every dialect."""

from __future__ import annotations

from dataclasses import dataclass, replace
from fractions import Fraction
from pathlib import Path
from textwrap import shorten
from typing import Any, ClassVar

from dither import _checks as check
from dither._checks import Number
from dither.errors import ArgumentError
from dither.numeric import float_up
from dither.privacy._answers import Answers
from dither.privacy._charge import Charge
from dither.privacy._promise import Neighbours, Promise, as_table_neighbours
from dither.privacy.amplification._one_sample import described, excess, shared
from dither.privacy.laws.either import either_way
from dither.privacy.laws.gaussian import GaussianNoise
from dither.privacy.laws.part import Part
from dither.privacy.laws.sampled.allocation import MOST_STEPS, RandomAllocation
from dither.privacy.laws.sampled.mechanism import FixedSize, Poisson
from dither.privacy.laws.sampled.replaced import ReplacedGaussian, replaced

__all__ = ["Loss", "as_charge", "compose"]


_LARGEST_GROUP = 100


@dataclass(frozen=True, slots=True, repr=False)
class Loss(Answers):
    """What a sequence of mechanisms, fixed in advance, reveals about one unit.

    Make one with `dither.privacy.gaussian` and its kin; combine with ``+`` and ``k *``. Numbers are
    computed when asked for, and each is an interval that contains the truth
    (`Bound`: a float that is the sound end, with ``lower``, ``upper`` and ``method``).

    Parameters
    ----------
    parts : tuple of (Part, int)
        Mechanisms and how often each runs.
    neighbours : Neighbours
        The relation that every part is stated for. Losses of different relations never mix.
    slack : float
        A distance in total variation between the parts' pairs and the true ones, added to delta
        as slack·(1 + e^epsilon); above 0 only for truncated samples.
    unit : str, optional
        Who is protected. A mechanism knows only the sensitivities that it is given, so its loss
        names no unit until its caller writes ``loss.promising(...)``. No ledger takes a loss
        without one.
    charges : tuple of (Charge, int), optional
        Exact amounts, with how often each is charged, that are true of all the parts together;
        without them each part gives its own. Their sum is `charge`.

    Notes
    -----
    *Guarantee.* For neighbouring tables, with P and Q the laws of everything released, P(S) <=
    e^epsilon·Q(S) + delta for all S and both directions. The parts' parameters must not depend on
    earlier answers; for adaptive questions use a filter of `dither.accounting`.
    Post-processing changes nothing.

    Examples
    --------
    >>> from dither import privacy
    >>> step = privacy.gaussian(noise_multiplier=1.0).poisson(rate=0.01)
    >>> e = (10_000 * step).epsilon(delta=1e-5)
    >>> round(e, 6), e.upper - e.lower < 1e-8
    (6.187712, True)
    """

    parts: tuple[tuple[Part, int], ...] = ()
    neighbours: Neighbours = Neighbours.ADD_REMOVE
    slack: float = 0.0
    unit: str | None = None
    charges: tuple[tuple[Charge, int], ...] | None = None

    def __post_init__(self) -> None:
        """Where units are replaced, a mechanism may be run in either direction (`laws.either`)."""
        if self.neighbours is Neighbours.REPLACE:
            both = tuple((either_way(part), count) for part, count in self.parts)
            object.__setattr__(self, "parts", both)

    __array_ufunc__: ClassVar[None] = None
    """So that an array times a loss is refused by the loss, and not tried item by item."""

    def __repr__(self) -> str:
        """The expression that makes it, and whom it protects.

        Examples
        --------
        >>> from dither import privacy
        >>> 1000 * privacy.gaussian(1.0).poisson(0.01) + privacy.pure(0.5)
        <Loss 1000 * gaussian(1).poisson(0.01) + pure(0.5); neighbours 'add-remove'>
        """
        unit = "" if self.unit is None else f", unit {self.unit!r}"
        shown = shorten(self.describe(), 200, placeholder=" ...")
        return f"<Loss {shown}; neighbours {self.neighbours.value!r}{unit}>"

    @property
    def promise(self) -> Promise | None:
        """The unit and the neighbours; None while no unit is named."""
        return None if self.unit is None else Promise(self.unit, self.neighbours)

    @property
    def charge(self) -> Charge:
        """The amounts that ledgers and filters add up: exact, and true of this loss.

        Simple statements, proved with pen and paper: what each mechanism is charged, added up by
        basic composition, and by that of zCDP. Numeric composition, such as `epsilon` gives, is
        closer, but it needs parameters that are fixed in advance. An amount that is irrational is
        rounded up; one that nothing is known of is None, which is infinity.

        Examples
        --------
        >>> from dither import privacy
        >>> (3 * privacy.gaussian(10.0)).charge.rho, privacy.gaussian(10.0).charge.epsilon is None
        (Fraction(3, 200), True)
        """
        return replace(_total(self._charges()), promise=self.promise, neighbours=self.neighbours)

    @property
    def free(self) -> bool:
        """Whether nothing is charged; then the loss is true of every promise."""
        return self.charge.free

    def with_charge(self, charge: Charge) -> Loss:
        """The same loss with exact amounts that were proved of it, in place of its parts' own.

        Parameters
        ----------
        charge : Charge
            True of this loss, for its neighbours. Its unit, if it names one, is left out.

        Raises
        ------
        ArgumentError
            It is stated for other neighbours.
        """
        if not isinstance(charge, Charge):
            raise ArgumentError("charge must be a Charge, such as Charge.pure(epsilon)")
        if charge.neighbours not in (None, self.neighbours):
            raise ArgumentError("charge must be stated for the neighbours of the loss")
        return replace(self, charges=((charge.amounts, 1),))

    def promising(self, promise: Promise | str) -> Loss:
        """The same loss, stated for a unit.

        Parameters
        ----------
        promise : Promise or str
            The unit with its neighbours, which must be the loss's own; or the unit's name.

        Raises
        ------
        ArgumentError
            The loss is stated for another unit or other neighbours: that takes `to_replace` or
            `to_group`.

        Examples
        --------
        >>> from dither import privacy
        >>> privacy.pure(1.0).promising("patient").promise.describe()
        'one patient, added or removed'
        """
        wanted = Promise(promise, self.neighbours) if isinstance(promise, str) else promise
        if not isinstance(wanted, Promise):
            raise ArgumentError("promise must be a Promise, such as Promise('patient'), or a unit")
        if not self.free:
            if wanted.neighbours is not self.neighbours:
                raise ArgumentError(
                    f"this loss is stated for {self.neighbours.value!r} neighbours, and says "
                    f"nothing of {wanted.describe()}: where its sensitivities are for these, make "
                    f"it with neighbours={wanted.neighbours.value!r}; else convert it (to_replace)"
                )
            if self.unit not in (None, wanted.unit):
                raise ArgumentError(
                    f"this loss is stated for {_stated_for(self)}; it says nothing of "
                    f"{wanted.describe()} unless it is converted (to_group)"
                )
        return replace(self, unit=wanted.unit, neighbours=wanted.neighbours)

    def to_replace(self) -> Loss:
        """The loss where one unit is replaced: that of two units, one out and one in.

        Of a Gaussian on a sample it is that of the pair that is proved for units replaced
        (`poisson`), which is less.

        Raises
        ------
        ArgumentError
            It is not stated for a unit that is added or removed. Nothing follows the other way.

        Examples
        --------
        >>> from dither import privacy
        >>> both = privacy.pure(0.5).to_replace()
        >>> both.neighbours.value, both.charge.epsilon
        ('replace', Fraction(1, 1))
        """
        self._added("to_replace")
        if self.slack > 0:
            raise ArgumentError("to_replace of a truncated sample is not offered")
        found = [(replaced(part), count) for part, count in self.parts]
        return replace(
            self,
            parts=tuple((part, k * count) for (part, k), count in found),
            neighbours=Neighbours.REPLACE,
            charges=tuple((charge.grouped(2), count) for charge, count in self._charges()),
        )

    def to_group(self, unit: str, size: int) -> Loss:
        """The loss of a larger unit that is made of at most ``size`` of these.

        Parameters
        ----------
        unit : str
            The larger unit: a patient, where this loss is stated for a row.
        size : int
            The most that one of the larger units can hold, at least 1. That no one holds more is
            the caller's to know: it is part of what is promised.

        Raises
        ------
        ArgumentError
            The size is below 1; no group bound is known; or the loss is not stated for a unit that
            is added or removed: replacing rows cannot turn a unit of three rows into one of two.

        Examples
        --------
        >>> from dither import privacy
        >>> row = privacy.pure(0.5).promising("row of scans")
        >>> row.to_group("patient", 3).charge.epsilon
        Fraction(3, 2)
        """
        self._added("to_group")
        return replace(self.group(size), unit=Promise(unit).unit)

    def to_node(self, unit: str, degree: int) -> Loss:
        """The loss for a node with all its edges, where no node can have more than so many.

        Parameters
        ----------
        unit : str
            Who a node is: ``"person"``.
        degree : int
            The most edges that a node can have, at least 1: a public bound of every graph that
            there could be, and not what is seen in this one. It is the caller's to know, and part
            of what is promised.

        Raises
        ------
        ArgumentError
            The loss is not stated for edges, the bound is below 1, or no group bound is known.

        Notes
        -----
        Where the list of nodes is public, a node that has its edges or none differs by at most
        ``degree`` edges, one after another: a group of so many.

        Examples
        --------
        >>> from dither import privacy
        >>> friendship = privacy.pure(0.5, neighbours="edge").promising("friendship")
        >>> person = friendship.to_node("person", degree=5)
        >>> person.promise.describe(), person.charge.epsilon
        ('one person with all its edges, added or removed', Fraction(5, 2))
        """
        self._stated("to_node", Neighbours.EDGE, "one edge")
        most = check.count("degree", degree)
        return self._restated(self.group(most), Promise(unit, Neighbours.NODE))

    def to_edge(self, unit: str) -> Loss:
        """The loss for one edge of a loss for nodes: that of two steps, a node out and in again.

        Parameters
        ----------
        unit : str
            What an edge is: ``"friendship"``.

        Raises
        ------
        ArgumentError
            The loss is not stated for nodes, or no group bound is known.

        Examples
        --------
        >>> from dither import privacy
        >>> privacy.pure(0.5, neighbours="node").to_edge("friendship").charge.epsilon
        Fraction(1, 1)
        """
        self._stated("to_edge", Neighbours.NODE, "a node with all its edges")
        return self._restated(self.group(2), Promise(unit, Neighbours.EDGE))

    def __add__(self, other: Loss) -> Loss:
        """Both run on the same table."""
        if not isinstance(other, Loss):
            return NotImplemented
        return compose(self, other)

    def __radd__(self, other: object) -> Loss:
        """So that ``sum`` works."""
        if isinstance(other, int) and other == 0:
            return self
        return NotImplemented

    def __mul__(self, times: int) -> Loss:
        """``times`` independent runs."""
        k = check.count("the number of repetitions", times, 0)
        if k == 0:
            return Loss((), self.neighbours, unit=self.unit)
        return replace(
            self,
            parts=tuple((part, count * k) for part, count in self.parts),
            slack=float_up(Fraction(self.slack) * k),
            charges=self.charges and tuple((charge, count * k) for charge, count in self.charges),
        )

    __rmul__ = __mul__

    def poisson(
        self,
        rate: Number,
        *,
        truncate: int | None = None,
        population: int | None = None,
        neighbours: Neighbours | str = Neighbours.ADD_REMOVE,
    ) -> Loss:
        """The same on a sample that takes each unit with probability ``rate``, independently.

        Parameters
        ----------
        rate : number
            In (0, 1].
        truncate, population : int, optional
            Where a sample larger than ``truncate`` is cut to that size, out of a table of at most
            ``population`` units: costs delta·(1 + e^epsilon) for the chance that it is.
        neighbours : Neighbours or str
            Of the sampled loss. The mechanism's own loss is stated for a unit added or removed;
            with 'replace' the result is for a unit replaced. Of Gaussians both ends are known
            then, of others an upper end.

        Raises
        ------
        ArgumentError
            The rate is out of range, the mechanism's neighbours replace a unit, or several
            mechanisms share one sample whose common pair is not known.

        Notes
        -----
        Neighbours add or remove one unit. Theorem 11 of Zhu, Dong and Wang (2022). Truncation: both
        laws move by at most the chance of a cut in total variation (couple the samples).

        A unit replaced: with M_0, M_a, M_b the laws without the unit and with either one, a
        Gaussian's pair is M_0 mixed with means on opposite sides of it (`laws.replaced`). Of others
        advanced joint convexity, theorem 2 of Balle, Barthe and Gaboardi (2018), bounds delta at
        log(1 + g(e^epsilon - 1)) by g times a mean of the deltas of M_a against M_0 and against
        M_b; both are at most that of a group of two.

        Examples
        --------
        >>> from dither import privacy
        >>> privacy.pure(1.0).poisson(0.1).epsilon(delta=0)
        0.158...
        """
        g = check.number("rate", rate, above=0, most=1, rounding="up")
        if self.neighbours is not Neighbours.ADD_REMOVE:
            raise ArgumentError(
                "a Poisson sample starts from a mechanism's loss for a unit added or removed; "
                "state that, and poisson(rate, neighbours='replace') for units that are replaced; "
                "or use without_replacement(sample, population)"
            )
        relation = as_table_neighbours(neighbours)
        part = shared(self.parts, "poisson")
        replace_one = relation is Neighbours.REPLACE
        share = check.exact("rate", rate)
        charge = (self.charge.grouped(2) if replace_one else self.charge).sampled(share)
        slack = self.slack
        if (truncate is None) != (population is None):
            raise ArgumentError("truncate and population belong together: give both or neither")
        if truncate is not None and population is not None:
            most = check.count("truncate", truncate)
            cut = excess(check.count("population", population), g, most)
            slack = float_up(Fraction(slack) + Fraction(cut))
            charge = charge.moved(Fraction(cut))
        sampled: Part
        if replace_one and g < 1 and isinstance(part, GaussianNoise):
            sampled = ReplacedGaussian(part, g)
        elif replace_one:
            double = shared((part.group(2),), "poisson")
            sampled = double if g == 1 else FixedSize(double, g, 1, poisson=True)
        else:
            sampled = part if g == 1 else Poisson(part, g)
        return Loss(((sampled, 1),), relation, slack, self.unit, ((charge, 1),))

    def without_replacement(self, sample: int, population: int) -> Loss:
        """The same on a sample of fixed size, for the neighbours of the mechanism's own loss.

        Parameters
        ----------
        sample, population : int
            1 <= sample <= population, the number of units; where units are added or removed, the
            least number that a table may have.

        Raises
        ------
        ArgumentError
            A size is out of range.

        Notes
        -----
        Units replaced: Zhu, Dong and Wang (2022), Balle, Barthe and Gaboardi (2018). Units added or
        removed: of n + 1 units the new one is in the sample with chance m/(n + 1), in the place of
        another, and else all is as without it. So the pair is that of a Poisson sample at this
        rate, of the loss for a unit replaced, which is at most that of a group of two.

        Examples
        --------
        >>> from dither import privacy
        >>> privacy.pure(1.0, neighbours="replace").without_replacement(10, 100).delta(0.1) < 0.03
        True
        """
        n = check.count("population", population)
        m = check.count("sample", sample)
        if m > n:
            raise ArgumentError("sample must be at most population")
        if self.neighbours in Neighbours.of_graphs():
            raise ArgumentError("without_replacement samples units of a table, not of a graph")
        part = shared(self.parts, "without_replacement")
        if self.neighbours is Neighbours.ADD_REMOVE:
            double = shared((part.group(2),), "without_replacement")
            charge = self.charge.grouped(2).sampled(Fraction(m, n + 1))
            taken: Part = Poisson(double, float_up(Fraction(m, n + 1)), fixed=True)
        else:
            charge = self.charge.sampled(Fraction(m, n))
            taken = part if m == n else FixedSize(part, m, n)
        return replace(self, parts=((taken, 1),), charges=((charge, 1),))

    def random_allocation(self, steps: int) -> Loss:
        """The same in one of many steps, drawn at random for each unit, all released.

        Parameters
        ----------
        steps : int
            At least 1: how many there are. Each unit takes part in one of them, each with the same
            chance, whatever the others do.

        Raises
        ------
        ArgumentError
            The number is out of range; or the loss is not one of Gaussian noise, for units that are
            added or removed.

        Notes
        -----
        The loss is that of all steps together: for several epochs multiply it. Data that are
        shuffled and cut into batches are allocated so, but for batches of one size, of which
        nothing is claimed. The proof stands in `laws.allocation`: delta is at most that of the mean
        of as many normal laws, each moved in its own step; never more than without allocation. It
        is charged as one Gaussian. From below it is that of the largest output.

        References
        ----------
        Chua and others, "Balls-and-bins sampling for DP-SGD", AISTATS 2025; Feldman and Shenfeld,
        "Privacy amplification by random allocation", 2025.

        Examples
        --------
        >>> from dither import privacy
        >>> epoch = privacy.gaussian(1.0).random_allocation(steps=100)
        >>> 0.7 < epoch.epsilon(delta=1e-6) < 2.2 < privacy.gaussian(1.0).epsilon(delta=1e-6)
        True
        """
        t = check.count("steps", steps, 1, MOST_STEPS, instead="; fewer steps lose more")
        self._added("random_allocation")
        part = shared(self.parts, "random_allocation")
        if not isinstance(part, GaussianNoise) or self.slack > 0:
            raise ArgumentError("random_allocation takes Gaussian noise, one release or several")
        taken: Part = part if t == 1 else RandomAllocation(part, t)
        return replace(self, parts=((taken, 1),))

    def group(self, size: int) -> Loss:
        """The loss against groups of ``size`` units that change together.

        Raises
        ------
        ArgumentError
            The size is below 1, or no group bound of a part is known.

        Examples
        --------
        >>> from dither import privacy
        >>> privacy.pure(0.5).group(3).epsilon(delta=0)
        1.5...
        """
        m = check.count("size", size)
        if m > _LARGEST_GROUP and any(isinstance(part, Poisson) for part, _ in self.parts):
            raise ArgumentError(
                f"size must be at most {_LARGEST_GROUP:,} for a group on a Poisson sample; "
                "sampling hides so large a group little: take the group of the mechanism itself"
            )
        if m == 1:
            return self
        if self.slack > 0:
            raise ArgumentError("group of a truncated sample is not offered")
        found = [(part.group(m), count) for part, count in self.parts]
        return replace(
            self,
            parts=tuple((part, k * count) for (part, k), count in found),
            charges=tuple((charge.grouped(m), count) for charge, count in self._charges()),
        )

    def plot(self, path: str | Path | None = None) -> Any:
        """Draw the privacy profile, the trade-off curve and the law of the loss.

        Parameters
        ----------
        path : str or Path, optional
            Where to save the picture: .png, .svg or .pdf.

        Returns
        -------
        matplotlib.figure.Figure
        """
        from dither.plots._loss import draw_loss

        return draw_loss(self, path)

    def _charges(self) -> tuple[tuple[Charge, int], ...]:
        if self.charges is not None:
            return self.charges
        found = tuple((part.charge(), count) for part, count in self.parts)
        # The distance is one of the whole, so that it goes with the sum of all parts.
        return ((_total(found).moved(Fraction(self.slack)), 1),) if self.slack else found

    def _stated(self, what: str, relation: Neighbours, words: str) -> None:
        if self.neighbours is not relation:
            raise ArgumentError(
                f"{what} converts a loss that is stated for {words}, added or removed: "
                f"neighbours={relation.value!r}"
            )

    def _restated(self, loss: Loss, promise: Promise) -> Loss:
        return replace(loss, neighbours=promise.neighbours, unit=promise.unit)

    def _added(self, what: str) -> None:
        if self.neighbours is not Neighbours.ADD_REMOVE:
            raise ArgumentError(
                f"{what} converts a loss that is stated for a unit that is added or removed"
            )

    def describe(self) -> str:
        """The sum as it would be written."""
        return described(self.parts)


def compose(*losses: Loss) -> Loss:
    """The sum of many losses, without the cost of adding them one by one.

    Examples
    --------
    >>> from dither import privacy
    >>> privacy.compose(privacy.pure(0.5), privacy.pure(0.25)).epsilon(delta=0)
    0.75...
    """
    if not all(isinstance(loss, Loss) for loss in losses):
        raise ArgumentError("compose takes losses, one argument each: compose(*losses) for a list")
    if not losses:
        return Loss()
    first = losses[0]
    for loss in losses[1:]:
        if loss.neighbours is not first.neighbours or loss.unit != first.unit:
            first = _common(first, loss)
    parts = tuple(pair for loss in losses for pair in loss.parts)
    slack = sum((Fraction(loss.slack) for loss in losses if loss.slack), Fraction(0))
    charges = None
    if any(loss.charges is not None for loss in losses):
        charges = tuple(pair for loss in losses for pair in loss._charges())
    return Loss(parts, first.neighbours, float_up(slack), first.unit, charges)


def as_charge(given: Loss | Charge) -> Charge:
    """What an account adds up of a loss; a charge stands for itself.

    Raises
    ------
    ArgumentError
        It is neither.
    """
    if isinstance(given, Loss):
        return given.charge
    if isinstance(given, Charge):
        return given
    raise ArgumentError(
        "charge must be a Loss, such as mechanism.loss(...), or a Charge, such as "
        "Charge.pure(epsilon, promise)"
    )


def _common(a: Loss, b: Loss) -> Loss:
    """The one whose promise is that of the sum; one that is free promises nothing of its own."""
    if b.free:
        return b if a.free and a.unit is None else a
    if a.free:
        return b
    if a.neighbours is not b.neighbours:
        raise ArgumentError(
            f"losses for {a.neighbours.value!r} and {b.neighbours.value!r} neighbours "
            "cannot be added; state both for one relation" + _conversion(a, b)
        )
    raise ArgumentError(
        f"a loss stated for {_stated_for(a)} and one stated for {_stated_for(b)} cannot be added: "
        "state both for one unit (promising), or convert one (to_group)"
    )


def _conversion(a: Loss, b: Loss) -> str:
    if {a.neighbours, b.neighbours} == set(Neighbours.of_graphs()):
        return ": to_edge converts one for nodes, to_node one for edges where degrees are bounded"
    return ""


def _stated_for(loss: Loss) -> str:
    return loss.promise.describe() if loss.promise else "nobody in particular"


def _total(charges: tuple[tuple[Charge, int], ...]) -> Charge:
    """The sum, by halves: adding many fractions one by one costs the square of their number."""
    counts: dict[Charge, int] = {}
    for charge, count in charges:
        counts[charge] = counts.get(charge, 0) + count
    found = [count * charge for charge, count in counts.items()]
    while len(found) > 1:
        pairs = [found[i : i + 2] for i in range(0, len(found), 2)]
        found = [sum(pair[1:], pair[0]) for pair in pairs]
    return found[0] if found else Charge()
