"""What a channel promises: one epsilon for all pairs of values, or a matrix of classes."""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction

from dither import _checks, privacy
from dither._format import Printable, loss_text
from dither.errors import ArgumentError
from dither.numeric import _directed as directed
from dither.privacy import Charge, Loss, Neighbours


@dataclass(frozen=True, slots=True)
class ClassPair:
    """How well a report distinguishes two different values, of the first class and of the second.

    Parameters
    ----------
    delta : float
        The least delta, rounded up, for which (epsilon, delta) holds at the guarantee's epsilon.
    ratio : float
        The least pure epsilon, rounded up: the largest log-ratio; infinite where a report
        excludes the second value.
    """

    delta: float
    ratio: float


@dataclass(frozen=True, slots=True)
class Guarantee(Printable):
    """The promise of one report, by classes of values.

    Neighbours are two values of one person: the guarantee compares the laws of that person's
    report. A graded channel protects some pairs of values less than others, so its guarantee is
    this matrix and no single epsilon.

    Parameters
    ----------
    epsilon : Fraction
        At which the deltas are stated.
    classes : tuple of str
        Names of the classes of values.
    pairs : dict from (class, class) to ClassPair
        Row against column, in both orders.
    assumes : str
        What the promise rests on, in one sentence; empty where nothing is assumed.
    per_unit : Fraction, optional
        Of a metric channel: epsilon for each `unit` of distance between two values.
    unit : str
        The unit's name.

    Examples
    --------
    >>> round(Guarantee.uniform(Fraction(1)).loss().epsilon(delta=0), 9)
    1.0
    """

    epsilon: Fraction
    classes: tuple[str, ...]
    pairs: dict[tuple[str, str], ClassPair]
    assumes: str = ""
    per_unit: Fraction | None = None
    unit: str = ""

    @classmethod
    def uniform(cls, epsilon: Fraction, *, assumes: str = "") -> Guarantee:
        """Plain epsilon-local DP: every two values alike."""
        pair = ClassPair(0.0, directed.float_up(epsilon))
        return cls(epsilon, ("all values",), {("all values", "all values"): pair}, assumes)

    @property
    def graded(self) -> bool:
        """Whether some pair of classes is without pure epsilon-DP at the guarantee's epsilon."""
        return any(pair.delta > 0 for pair in self.pairs.values())

    @property
    def delta(self) -> float:
        """The worst delta over all pairs; 0 for a channel that is epsilon-DP for all values."""
        return max(pair.delta for pair in self.pairs.values())

    def loss(self, *, accept_delta: bool = False) -> Loss:
        """The promise as a loss, which composes and whose charge is exact.

        It names nobody until its caller says whose report it is: ``loss().promising("person")``.

        Parameters
        ----------
        accept_delta : bool
            Accept, for a graded channel, the worst delta over all pairs of values.

        Raises
        ------
        ArgumentError
            The channel is graded and `accept_delta` is not set: its worst delta is far from
            negligible, so that most uses of an (epsilon, delta) would be wrong.
        """
        epsilon = directed.float_up(self.epsilon)
        if not self.graded:
            loss = privacy.pure(epsilon, neighbours=Neighbours.REPLACE)
            return loss.with_charge(Charge.pure(self.epsilon))
        if not _checks.flag("accept_delta", accept_delta):
            raise ArgumentError(
                "this channel's guarantee is a matrix of classes, not one (epsilon, delta): "
                f"its worst pair of values has delta = {loss_text(self.delta, 3)} at epsilon = "
                f"{loss_text(epsilon, 6)}; pass accept_delta=True to compose with that"
            )
        delta = min(self.delta, 1.0)
        loss = privacy.approximate(epsilon, delta, neighbours=Neighbours.REPLACE)
        return loss.with_charge(Charge.approximate(self.epsilon, Fraction(delta)))

    def summary(self) -> str:
        """The promise in a line, or as a matrix of classes."""
        assumes = f"\nAssumes: {self.assumes}" if self.assumes else ""
        if self.per_unit is not None:
            return (
                f"epsilon = {loss_text(self.per_unit, 6)} for each {self.unit} between two values; "
                f"{loss_text(self.epsilon)} over all of them{assumes}"
            )
        if not self.graded and len(self.classes) == 1:
            return f"epsilon = {loss_text(self.epsilon, 6)} between any two values{assumes}"
        width = max(len(name) for name in self.classes) + 2
        cells = [
            [_cell(self.pairs[row, column], self.graded) for column in self.classes]
            for row in self.classes
        ]
        wide = max(width, *(len(cell) + 2 for row in cells for cell in row))
        what = f"delta at epsilon = {loss_text(self.epsilon, 6)}," if self.graded else "epsilon"
        lines = [
            f"{what} of a value of the row against one of the column",
            " " * width + "".join(name.rjust(wide) for name in self.classes),
            *(
                name.ljust(width) + "".join(cell.rjust(wide) for cell in row)
                for name, row in zip(self.classes, cells, strict=True)
            ),
        ]
        return "\n".join(lines) + assumes


def _cell(pair: ClassPair, graded: bool) -> str:
    if not graded:
        return loss_text(pair.ratio, 3) if pair.ratio else "–"
    if pair.delta == 0:
        return "0"
    ratio = loss_text(pair.ratio, 3)
    return f"{loss_text(pair.delta, 3)} (pure: {ratio})"
