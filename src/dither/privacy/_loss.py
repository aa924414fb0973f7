"""The privacy loss: one frozen value that composes symbolically and answers in every dialect."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from fractions import Fraction
from pathlib import Path
from textwrap import shorten
from typing import TYPE_CHECKING, Any, ClassVar

from dither import _checks as check
from dither.errors import ArgumentError
from dither.numeric import float_down, float_up, sqrt_lower
from dither.numeric._balls import precision, up
from dither.privacy._bound import Bound
from dither.privacy._charge import Charge
from dither.privacy._promise import Neighbours, Promise, as_neighbours
from dither.privacy.laws.gaussian import GaussianNoise
from dither.privacy.laws.laplace import LaplaceNoise
from dither.privacy.laws.part import AtMost, Part
from dither.privacy.laws.rationals import printed
from dither.privacy.laws.sampled import FixedSize, Poisson

if TYPE_CHECKING:
    from collections.abc import Sequence

    import numpy as np
    import numpy.typing as npt

__all__ = ["Loss", "as_charge", "compose"]


_LARGEST_GROUP = 100


@dataclass(frozen=True, slots=True, repr=False)
class Loss:
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
        names nobody until its caller says ``loss.promising(...)``. No ledger takes a loss without.
    charges : tuple of (Charge, int), optional
        Exact amounts, with how often each is charged, that are true of all the parts together;
        without them each part says its own. Their sum is `charge`.

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
        return replace(_total(self._charges()), promise=self.promise)

    @property
    def free(self) -> bool:
        """Whether nothing is charged; then the loss is true of every promise."""
        return self.charge.free

    def with_charge(self, charge: Charge) -> Loss:
        """The same loss with exact amounts that were proved of it, in place of its parts' own.

        Parameters
        ----------
        charge : Charge
            True of this loss, for its neighbours; its own promise, if it has one, is left out.
        """
        if not isinstance(charge, Charge):
            raise ArgumentError("charge must be a Charge, such as Charge.pure(epsilon)")
        return replace(self, charges=((replace(charge, promise=None), 1),))

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
                    f"this loss is stated for {_said(self)}; it says nothing of "
                    f"{wanted.describe()} unless it is converted (to_group)"
                )
        return replace(self, unit=wanted.unit, neighbours=wanted.neighbours)

    def to_replace(self) -> Loss:
        """The loss where one unit is replaced: that of two units, one out and one in.

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
        return replace(self.group(2), neighbours=Neighbours.REPLACE)

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

    @property
    def one_sided(self) -> bool:
        """Whether only an upper end of the loss is known to be near the truth."""
        return any(part.one_sided for part, _ in self.parts)

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
        rate: float,
        *,
        truncate: int | None = None,
        population: int | None = None,
        neighbours: Neighbours | str = Neighbours.ADD_REMOVE,
    ) -> Loss:
        """The same on a sample that takes each unit with probability ``rate``, independently.

        Parameters
        ----------
        rate : float
            In (0, 1].
        truncate, population : int, optional
            Where a sample larger than ``truncate`` is cut to that size, out of a table of at most
            ``population`` units: costs delta·(1 + e^epsilon) for the chance that it is.
        neighbours : Neighbours or str
            Of the sampled loss. The mechanism's own loss is stated for a unit added or removed;
            with 'replace' the result is for a unit replaced, and only an upper end is known.

        Raises
        ------
        ArgumentError
            The rate is out of range, the mechanism's neighbours replace a unit, or several
            mechanisms share one sample whose common pair is not known.

        Notes
        -----
        Neighbours add or remove one unit. Theorem 11 of Zhu, Dong and Wang (2022). Truncation: both
        laws move by at most the chance of a cut in total variation (couple the samples).

        A unit replaced: with M_0, M_a, M_b the laws without the unit and with either one, the
        advanced joint convexity of Balle, Barthe and Gaboardi (2018), theorem 2, bounds delta at
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
        relation = as_neighbours(neighbours)
        part = self._single("poisson")
        replaced = relation is Neighbours.REPLACE
        share = check.exact("rate", rate)
        charge = (self.charge.grouped(2) if replaced else self.charge).sampled(share)
        slack = self.slack
        if (truncate is None) != (population is None):
            raise ArgumentError("truncate and population belong together: give both or neither")
        if truncate is not None and population is not None:
            most = check.count("truncate", truncate)
            cut = _excess(check.count("population", population), g, most)
            slack = float_up(Fraction(slack) + Fraction(cut))
            charge = charge.moved(Fraction(cut))
        sampled: Part
        if replaced:
            double = Loss(((part, 1),)).group(2)._single("poisson")
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
        part = self._single("without_replacement")
        if self.neighbours is Neighbours.ADD_REMOVE:
            double = Loss(((part, 1),)).group(2)._single("without_replacement")
            charge = self.charge.grouped(2).sampled(Fraction(m, n + 1))
            taken: Part = Poisson(double, float_up(Fraction(m, n + 1)))
        else:
            charge = self.charge.sampled(Fraction(m, n))
            taken = part if m == n else FixedSize(part, m, n)
        return replace(self, parts=((taken, 1),), charges=((charge, 1),))

    def _single(self, what: str) -> Part:
        parts = self.parts
        if any(isinstance(part, Poisson | FixedSize) for part, _ in parts):
            raise ArgumentError(f"{what} of what is already a sample: sample once, with one rate")
        if parts and all(isinstance(part, GaussianNoise) for part, _ in parts):
            if len(parts) == 1 and parts[0][1] == 1:
                return parts[0][0]
            square = sum((count * part.tail() for part, count in parts), Fraction(0))
            return GaussianNoise.of(sqrt_lower(1 / square))
        if len(parts) != 1 or parts[0][1] != 1:
            return self._together(what)
        part = parts[0][0].for_sampling()
        if part is None:
            raise ArgumentError(
                f"{what} needs a mechanism whose pair is known, not only {parts[0][0].describe()}"
            )
        return part

    def _together(self, what: str) -> Part:
        from dither.privacy._one_sample import Together
        from dither.privacy._side import merged
        from dither.privacy.laws.atoms import AtomTerm

        starts = tuple((part.for_sampling(), count) for part, count in merged(self.parts))
        stronger = tuple((part and part.dominating(), count) for part, count in starts)
        known = tuple((part, count) for part, count in stronger if part is not None)
        smooth = tuple(pair for pair in known if isinstance(pair[0], GaussianNoise | LaplaceNoise))
        rest = tuple(pair for pair in known if pair not in smooth)
        finite = all(isinstance(part.term(True, 1), AtomTerm) for part, _ in rest)
        if not known or len(known) < len(stronger) or not finite:
            raise ArgumentError(
                f"{what} takes one mechanism, or several that are Gaussian, Laplace or have "
                "finitely many outcomes (randomized_response, discrete_laplace, pure, approximate, "
                "pair): only then is the pair of all that share the sample known. Where each "
                "mechanism draws a sample of its own, sample each by itself and add"
            )
        if smooth:
            from dither.privacy._one_sample import blended

            words = f"({self.describe()})"
            law: Part = blended(smooth, words)
            if rest:
                law = Together(((law, 1), *rest))
                law.term(True, 1)
            return AtMost(law, words)
        Together(known).term(True, 1)
        return Together(merged(self.parts))

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

    def epsilon(self, delta: float) -> Bound:
        """The least epsilon such that the whole is (epsilon, delta)-DP.

        Parameters
        ----------
        delta : float
            In [0, 1); 0 where every part is pure.

        Returns
        -------
        Bound
            The upper end as a float.

        Raises
        ------
        ArgumentError
            delta is out of range, or no finite epsilon exists at it.
        """
        from dither.privacy import _views as views

        return views.epsilon(self, check.number("delta", delta, least=0, below=1))

    def delta(self, epsilon: float) -> Bound:
        """The least delta such that the whole is (epsilon, delta)-DP, epsilon >= 0."""
        from dither.privacy import _views as views

        return views.delta(self, check.number("epsilon", epsilon, least=0))

    def profile(self, epsilons: Sequence[float]) -> tuple[Bound, ...]:
        """The least delta at each of many epsilons, at less cost than one by one.

        Parameters
        ----------
        epsilons : sequence of float
            Of at least 0, in any order.

        Returns
        -------
        tuple of Bound
            One for each, in their order, and as sound as `delta` gives it. Where the pairs of laws
            are known, as tight too, to six digits.

        Examples
        --------
        >>> from dither import privacy
        >>> [round(d, 6) for d in privacy.gaussian(1.0).profile([0.0, 1.0, 2.0])]
        [0.382925, 0.126937, 0.020924]
        """
        from dither.privacy import _views as views

        given = [check.number("epsilons", e, least=0) for e in epsilons]
        return views.profile(self, given)

    def tradeoff(self, fpr: float) -> Bound:
        """The least rate of misses of any attacker whose rate of false alarms is ``fpr``.

        The value is the lower end: what the attacker cannot go below.

        Examples
        --------
        >>> from dither import privacy
        >>> round(privacy.gdp(1.0).tradeoff(0.05), 4)
        0.7405
        """
        caught = self.tpr(fpr)
        return Bound(
            float_down(1 - Fraction(caught.upper)),
            float_up(1 - Fraction(caught.lower)),
            caught.method,
            safe="lower",
            one_sided=caught.one_sided,
        )

    def tpr(self, fpr: float) -> Bound:
        """The largest rate of true alarms of any attacker with false alarms at most ``fpr``."""
        from dither.privacy import _views as views

        return views.tpr(self, check.number("fpr", fpr, least=0, most=1))

    def advantage(self) -> Bound:
        """max(true alarms - false alarms), the total variation: delta at epsilon = 0."""
        from dither.privacy import _views as views

        return views.advantage(self)

    def bayes_risk(self, prior: float) -> Bound:
        """The least chance to err of an attacker with this prior that the unit is in.

        The lower end as a float; at most min(prior, 1 - prior). For either direction,
        prior·(1 - delta(log((1 - prior)/prior))).
        """
        from dither.privacy import _views as views

        pi = check.number("prior", prior, above=0, below=1)
        at = math.log1p(-pi) - math.log(pi)
        ends = [views.one_delta(self, s, at) for s in views.sides(self)]
        high = max(e[1] for e in ends)
        low = max(e[0] for e in ends)
        most, least = (Fraction(pi) * (1 - Fraction(x)) for x in (low, high))
        return Bound(
            float_down(least),
            float_up(most),
            ends[0][2],
            safe="lower",
            one_sided=self.one_sided,
        )

    def reconstruction(self, prior: float) -> Bound:
        """The largest chance to reconstruct, for an attacker whose best blind guess has ``prior``.

        Hayes, Mahloujifar and Balle, "Bounding training data reconstruction in DP-SGD", 2023: the
        blow-up function, the true-alarm rate at a false-alarm rate of ``prior``.
        """
        return self.tpr(check.number("prior", prior, least=0, most=1))

    def renyi(self, order: float) -> Bound:
        """The Rényi divergence of an order above 1, in the worse direction."""
        from dither.privacy import _views as views

        return views.renyi(self, check.number("order", order, above=1, below=1e6))

    def zcdp(self) -> Bound:
        """A rho such that the whole is rho-zCDP."""
        from dither.privacy import _views as views

        return views.zcdp(self)

    def gdp(self) -> Bound:
        """A mu such that the whole is mu-GDP."""
        from dither.privacy import _views as views

        return views.gdp(self)

    def mean(self) -> float:
        """E[L], the KL divergence, in the worse direction; a plain float, not an interval."""
        from dither.privacy import _views as views

        return views.mean(self)

    def loss_distribution(
        self, *, removal: bool = True
    ) -> tuple[npt.NDArray[np.float64], npt.NDArray[np.float64]]:
        """Points and masses of a discretised loss under P, for pictures and not for guarantees."""
        from dither.privacy._views import distribution

        return distribution(self, removal=removal)

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

    def _added(self, what: str) -> None:
        if self.neighbours is not Neighbours.ADD_REMOVE:
            raise ArgumentError(
                f"{what} converts a loss that is stated for a unit that is added or removed"
            )

    def describe(self) -> str:
        """The sum as it would be written."""
        from dither.privacy._side import merged

        words = [
            part.describe() if count == 1 else f"{count} * {part.describe()}"
            for part, count in merged(self.parts)
        ]
        return " + ".join(words) or "nothing"


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
    """The one whose promise is that of the sum; one that is free says nothing."""
    if b.free:
        return b if a.free and a.unit is None else a
    if a.free:
        return b
    if a.neighbours is not b.neighbours:
        raise ArgumentError(
            f"losses for {a.neighbours.value!r} and {b.neighbours.value!r} neighbours "
            "cannot be added; state both for one relation"
        )
    raise ArgumentError(
        f"a loss stated for {_said(a)} and one stated for {_said(b)} cannot be added: state both "
        "for one unit (promising), or convert one (to_group)"
    )


def _said(loss: Loss) -> str:
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


def _excess(population: int, rate: float, most: int) -> float:
    """An upper bound of Pr[Bin(population, rate) > most]: its first term, and a geometric series.

    In balls: the logarithms of a large population's factorials agree in more digits than a double
    has.
    """
    if most >= population:
        return 0.0
    first, g = most + 1, max(printed(rate), Fraction(rate))
    if g >= 1:
        return 1.0
    # Later terms fall at least as fast as this ratio.
    ratio = (population - first) * g / ((first + 1) * (1 - g))
    if ratio >= 1:
        return 1.0
    with precision(128 + 2 * population.bit_length()) as flint:
        n, k, x, y = (
            flint.arb(flint.fmpq(part.numerator, part.denominator))
            for part in (Fraction(population), Fraction(first), g, 1 / (1 - ratio))
        )
        log_one = (n + 1).lgamma() - (k + 1).lgamma() - (n - k + 1).lgamma()
        log_one += k * x.log() + (n - k) * (1 - x).log()
        return min(1.0, up(log_one.exp() * y))
