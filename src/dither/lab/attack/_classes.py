"""Attacks on classes: what those in whom a person hides give away of the answer.

k-anonymity counts rows and not answers, so it bounds none of these. What they measure is what a
release tells about people *in* it. Some of that is true of everybody like them, and would be
learned without them; certainty is not.

*Homogeneity*: where all of a class gave one answer, each of them gave it. The secret is a person's
answer, and a blind guess says the commonest one; the attacker knows the class and says the answer
that is commonest there. Where there is no other, the attacker is certain. Controls: every row a
class of its own, and answers of strangers.

*Skewness*: a class that is certain of nothing can still say much. The attacker starts from what is
known of everybody, the *prior* share of a value, and ends with the share in the person's class, the
*posterior*. Their ratio is what the release did to that person's odds, and it may be large while
every class has all values (l-diversity holds). The game: of two people, one who has the value and
one who does not, say which is which; a blind guess is right half of the time, and ranked by
posterior the success is the area under the ROC curve. Controls: the bare truth, and the classes of
strangers.

*Background knowledge*: the attacker knows the answers of j others of the class, or answers that the
person did not give. Both are struck from the class; where one answer is left, it is the person's.
With c of n in a class sharing the person's answer, striking j others drawn at random leaves it
certain if all n - c who differ are among them, so with probability

    C(c - 1, j - (n - c)) / C(n - 1, j)

which is exact here. At j = n - 1 everybody is given away: against the adversary of differential
privacy, who knows everybody else, a k-anonymous release protects nobody. Controls: all others
known, and answers of strangers.

Source. Machanavajjhala, Kifer, Gehrke and Venkitasubramaniam, "l-diversity", 2007; Li, Li and
Venkatasubramanian, "t-closeness", 2007; Martin, Kifer, Machanavajjhala, Gehrke and Halpern,
"Worst-case background knowledge", 2007. In one file because all three share classes and verdicts.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from dither._checks import confidence as check_confidence
from dither._checks import whole
from dither.errors import ArgumentError
from dither.lab._frames import columns_of, released, sorted_codes
from dither.lab._grouping import Ints, grouped
from dither.lab._simulation import simulated
from dither.lab._verdicts import Summarised, paragraph
from dither.lab.attack._roc import Floats, Mask, placed
from dither.lab.attack._verdict import Score, Verdict, judge

if TYPE_CHECKING:
    from matplotlib.figure import Figure

__all__ = [
    "Background",
    "ClassCounts",
    "Homogeneity",
    "Known",
    "Skewness",
    "background",
    "homogeneity",
    "skewness",
]

DUELS = 20_000
"""Pairs of people that are told apart, to score."""


@dataclass(frozen=True, slots=True, eq=False)
class ClassCounts:
    """A release's rows by class and by sensitive value.

    Attributes
    ----------
    of, answers : array of int64, shape (people,)
        The class and the sensitive value of each row, as numbers.
    values : list
        The sensitive values.
    counts : array of int64, shape (classes, values)
    quasi : tuple of str
    sensitive : str
    name : str
        What the release is called.
    """

    of: Ints
    answers: Ints
    values: list[Any]
    counts: Ints
    quasi: tuple[str, ...]
    sensitive: str
    name: str

    @property
    def sizes(self) -> Ints:
        """Rows of each class."""
        found: Ints = self.counts.sum(axis=1)
        return found

    @property
    def overall(self) -> Ints:
        """Rows of each sensitive value."""
        found: Ints = self.counts.sum(axis=0)
        return found

    @property
    def people(self) -> int:
        """Rows."""
        return len(self.of)

    @property
    def prior(self) -> float:
        """How often the commonest answer is right for somebody of whom nothing is known."""
        return float(self.overall.max() / self.people)


@dataclass(frozen=True, slots=True, eq=False)
class Homogeneity(Summarised):
    """The result of `homogeneity`.

    Attributes
    ----------
    classes : ClassCounts
        Not for release where the table is not.
    given_away : int
        People whose answer is certain, as all of their class share it.
    in_groups : int
        Of these, those who are not alone in their class.
    largest : int
        Rows of the largest class that shares one answer; 0 where none does.
    verdict : Verdict
    """

    classes: ClassCounts
    given_away: int
    in_groups: int
    largest: int
    verdict: Verdict

    @property
    def share(self) -> float:
        """Of all people, those given away."""
        return self.given_away / self.classes.people

    def summary(self) -> str:
        """What was found, and the verdict."""
        c = self.classes
        text = (
            f"{self.given_away:,} of {c.people:,} people are given away: all of their class share "
            f"one {c.sensitive}. {self.in_groups:,} of them are not alone in their class; the "
            f"largest such class has {self.largest:,}."
        )
        return f"{paragraph([text])}\n{self.verdict.summary()}"

    def plot(self, path: str | Path | None = None) -> Figure:
        """Draw classes by size and by how much of them gave the same answer.

        Saved to ``path`` (.png, .svg or .pdf) where one is given.
        """
        from dither.plots._attack_tables import draw_classes

        return draw_classes(self.classes, self.verdict, path)


def homogeneity(
    table: object,
    quasi: Sequence[str] | None = None,
    sensitive: str | None = None,
    *,
    name: str | None = None,
    seed: int | np.random.Generator = 0,
    confidence: float = 0.99,
) -> Homogeneity:
    """Whose answer is certain, because all of their class gave it.

    Parameters
    ----------
    table : frame, or a release of `dither.lab.anonymize`
        What was published: a row a person.
    quasi : sequence of str
        What the attacker knows of people; by default those that the release names.
    sensitive : str
        What the attacker wants; by default the one that the release names.
    name : str, optional
        What the release is called in the verdict.
    seed : int or numpy.random.Generator
        Of the null control.
    confidence : float
        In (0, 1).

    Raises
    ------
    ArgumentError
        For unknown columns, or more than one sensitive column.

    Examples
    --------
    >>> import polars as pl
    >>> wards = pl.DataFrame({"zip": ["130**"] * 3 + ["148**"] * 3, "illness": [*"ccc", *"cfh"]})
    >>> found = homogeneity(wards, ["zip"], "illness")
    >>> found.given_away, found.largest
    (3, 3)
    """
    confidence = check_confidence(confidence)
    found = _in_classes(table, quasi, sensitive, name)
    generator = simulated(seed)
    certain = (found.counts > 0).sum(axis=1) == 1
    sizes = found.sizes
    given_away = int(sizes[certain].sum())
    alone = int((sizes == 1).sum())
    guesses = found.counts.argmax(axis=1)[found.of]
    return Homogeneity(
        found,
        given_away,
        given_away - alone,
        int(sizes[certain].max(initial=0)),
        # The bare truth, every row a class of its own, gives each answer away.
        _commonest(found, "", "the class", guesses, found.answers, generator, confidence),
    )


@dataclass(frozen=True, slots=True, eq=False)
class Skewness(Summarised):
    """The result of `skewness`.

    Attributes
    ----------
    classes : ClassCounts
    prior : float
        The share of people who have the value.
    posterior : array of float64
        Of each person: the share in the class.
    gain : float
        The largest posterior over the prior.
    variation : float
        The largest distance of a class from everybody, as total variation over all values; the t
        of t-closeness for equal distances.
    auc : float
        The area under the ROC curve of the ranking, exactly.
    verdict : Verdict
    """

    classes: ClassCounts
    prior: float
    posterior: Floats = field(repr=False)
    gain: float
    variation: float
    auc: float
    verdict: Verdict

    def raised(self, factor: float) -> int:
        """People whose probability rose to ``factor`` times the prior or more."""
        return int((self.posterior >= factor * self.prior * (1.0 - 1e-12)).sum())

    def sure(self, above: float) -> int:
        """People whose probability is now ``above`` or more."""
        return int((self.posterior >= above * (1.0 - 1e-12)).sum())

    def summary(self) -> str:
        """What was found, and the verdict."""
        text = (
            f"The prior is {100 * self.prior:.1f} %. It becomes {100 * self.posterior.max():.1f} % "
            f"for the worst class ({self.gain:.2f} times); {self.raised(2):,} people at least "
            f"double, {self.sure(0.9):,} reach 90 %. Farthest class from everybody: total "
            f"variation {self.variation:.3f}."
        )
        return f"{paragraph([text])}\n{self.verdict.summary()}"

    def plot(self, path: str | Path | None = None) -> Figure:
        """Draw how many people end at which probability, beside the prior.

        Saved to ``path`` (.png, .svg or .pdf) where one is given.
        """
        from dither.plots._attack_tables import draw_skewness

        return draw_skewness(self, path)


def skewness(
    table: object,
    quasi: Sequence[str] | None = None,
    sensitive: str | None = None,
    *,
    value: Any,
    name: str | None = None,
    seed: int | np.random.Generator = 0,
    confidence: float = 0.99,
) -> Skewness:
    """How far a class moves what is believed of a person.

    Parameters
    ----------
    table, quasi, sensitive, name, seed, confidence
        As of `homogeneity`.
    value : object
        The answer that people would rather not have known.

    Raises
    ------
    ArgumentError
        For unknown columns, or a value that nobody or everybody has.

    Examples
    --------
    >>> import polars as pl
    >>> wards = pl.DataFrame({"zip": [1] * 4 + [2] * 4, "ill": [*"yyyn", *"nnny"]})
    >>> found = skewness(wards, ["zip"], "ill", value="y")
    >>> found.prior, found.gain, found.auc
    (0.5, 1.5, 0.75)
    """
    confidence = check_confidence(confidence)
    found = _in_classes(table, quasi, sensitive, name)
    which = _hidden(found.values, value, "value")
    if len(found.values) < 2:
        raise ArgumentError("value must be one that not everybody has: there is nothing to learn")
    generator = simulated(seed)
    shares = found.counts / found.sizes[:, None]
    everybody = found.overall / found.people
    posterior = shares[found.of, which]
    has = found.answers == which
    auc = float(placed(posterior[has], posterior[~has]).mean())
    targets = (DUELS,)
    verdict = judge(
        game=f"which of two has this {found.sensitive}",
        release=found.name,
        attack="rank by the share in the class",
        score=Score((_duels(posterior, has, generator),), targets),
        control=Score((_duels(has.astype(np.float64), has, generator),), targets),
        null=Score((_duels(posterior, has, generator, strangers=True),), targets),
        prior=0.5,
        predicted=auc,
        confidence=confidence,
    )
    return Skewness(
        found,
        float(everybody[which]),
        posterior,
        float(posterior.max() / everybody[which]),
        float(np.abs(shares - everybody).sum(axis=1).max() / 2.0),
        auc,
        verdict,
    )


@dataclass(frozen=True, slots=True)
class Known:
    """What is given away where so much is known.

    Attributes
    ----------
    companions : int
        Others of the class whose answers are known; all of them where there are fewer.
    certain : float
        The expected share of people whose answer is certain, exactly.
    verdict : Verdict
        Of the guess that is commonest among those left.
    """

    companions: int
    certain: float
    verdict: Verdict


@dataclass(frozen=True, slots=True, eq=False)
class Background(Summarised):
    """The result of `background`.

    Attributes
    ----------
    classes : ClassCounts
    known : tuple of Known
        One for each number of companions.
    excluded : tuple
        Answers that the person is known not to have given.
    ruled_out : int or None
        People who gave none of ``excluded``, and whose class has one answer besides; None where
        nothing is excluded.
    concerned : int or None
        People who gave none of ``excluded``.
    """

    classes: ClassCounts
    known: tuple[Known, ...]
    excluded: tuple[Any, ...]
    ruled_out: int | None
    concerned: int | None

    def summary(self) -> str:
        """A line for each amount of knowledge."""
        c = self.classes
        lines = [f"{c.people:,} people in {len(c.counts):,} classes; their {c.sensitive}:"]
        lines += [
            f"{one.companions:>3} others known: {100 * one.certain:5.1f} % certain; guessed "
            f"right {100 * one.verdict.success:.1f} % (blindly {100 * c.prior:.1f} %)"
            for one in self.known
        ]
        if self.ruled_out is not None:
            lines.append(
                f"{len(self.excluded)} answers ruled out: {self.ruled_out:,} of "
                f"{self.concerned:,} people who gave none of them are given away"
            )
        return paragraph(lines)

    def plot(self, path: str | Path | None = None) -> Figure:
        """Draw what is certain, and what is guessed right, against what is known.

        Saved to ``path`` (.png, .svg or .pdf) where one is given.
        """
        from dither.plots._attack_tables import draw_background

        return draw_background(self, path)


def background(
    table: object,
    quasi: Sequence[str] | None = None,
    sensitive: str | None = None,
    *,
    companions: Iterable[int] = (0, 1, 2, 4, 8),
    excluded: Iterable[Any] = (),
    name: str | None = None,
    seed: int | np.random.Generator = 0,
    confidence: float = 0.99,
) -> Background:
    """Whose answer is certain to somebody who knows a few others, or rules answers out.

    Parameters
    ----------
    table, quasi, sensitive, name, seed, confidence
        As of `homogeneity`.
    companions : iterable of int
        Numbers of others of the class whose answers are known, drawn at random.
    excluded : iterable
        Answers that the attacker knows a person did not give. It concerns those who did not.

    Raises
    ------
    ArgumentError
        For unknown columns, a value that the sensitive column lacks, or numbers below 0.

    Examples
    --------
    >>> import polars as pl
    >>> wards = pl.DataFrame({"zip": [1] * 4, "illness": ["heart", "heart", "flu", "flu"]})
    >>> found = background(wards, ["zip"], "illness", companions=[1, 2, 3], excluded=["heart"])
    >>> [round(one.certain, 3) for one in found.known], found.ruled_out
    ([0.0, 0.333, 1.0], 2)
    """
    confidence = check_confidence(confidence)
    found = _in_classes(table, quasi, sensitive, name)
    if not isinstance(companions, Iterable) or isinstance(excluded, str):
        raise ArgumentError("companions and excluded must be lists: [0, 4, 8], ['flu']")
    amounts = sorted({whole("companions", j, 0) for j in companions})
    barred = [_hidden(found.values, value, "excluded") for value in excluded]
    if len(barred) >= len(found.values):
        raise ArgumentError("excluded must leave at least one value")
    generator = simulated(seed)
    ruled_out = concerned = None
    if barred:
        left = np.delete(found.counts, barred, axis=1)
        concerned = int(left.sum())
        ruled_out = int(left[(left > 0).sum(axis=1) == 1].sum())
    known = tuple(
        Known(j, _certain(found, j), _of_those_left(found, j, generator, confidence))
        for j in amounts
    )
    return Background(found, known, tuple(found.values[i] for i in barred), ruled_out, concerned)


def _in_classes(
    table: object,
    quasi: Sequence[str] | None,
    sensitive: str | None,
    name: str | None,
) -> ClassCounts:
    """The classes of a release: rows with equal values of ``quasi``."""
    frame = released(table, "table")
    known = columns_of("quasi", quasi, frame, table)
    wanted = columns_of("sensitive", sensitive, frame, table)
    if len(wanted) != 1:
        raise ArgumentError("sensitive must name one column: attack one after the other")
    if wanted[0] in known:
        raise ArgumentError("sensitive must not be in quasi: who knows it needs no attack")
    of = grouped(sorted_codes(frame[c])[0] for c in known)
    answers, values = sorted_codes(frame[wanted[0]])
    width = len(values)
    if len(of) and (int(of.max()) + 1) * width > 50_000_000:
        raise ArgumentError(
            "sensitive has too many values for a table of classes by values: round it first"
        )
    counts = np.bincount(of * width + answers, minlength=(int(of.max()) + 1) * width)
    k = getattr(table, "k", None)
    said = f"a {k}-anonymous release" if isinstance(k, int) else "the released rows"
    return ClassCounts(
        of,
        answers,
        values,
        counts.reshape(-1, width).astype(np.int64),
        tuple(known),
        wanted[0],
        name or said,
    )


def _hidden(values: Sequence[Any], asked: Any, argument: str) -> int:
    """The number of a sensitive value; the message where no row has it tells none of the data."""
    for i, value in enumerate(values):
        if value == asked and isinstance(value, bool) == isinstance(asked, bool):
            return i
    raise ArgumentError(f"{argument} must be a value that the sensitive column has")


def _commonest(
    found: ClassCounts,
    game: str,
    attack: str,
    guesses: Ints,
    bare: Ints,
    generator: np.random.Generator,
    confidence: float,
) -> Verdict:
    """The verdict on guesses of answers, and on those of the bare truth."""
    return judge(
        game=f"what {found.sensitive} is, by class{game}",
        release=found.name,
        attack=f"the commonest answer of {attack}",
        score=Score.of_guesses(guesses, found.answers),
        control=Score.of_guesses(bare, found.answers),
        null=Score.of_guesses(guesses, generator.permutation(found.answers)),
        prior=found.prior,
        confidence=confidence,
    )


def _duels(
    score: Floats,
    has: Mask,
    generator: np.random.Generator,
    *,
    strangers: bool = False,
) -> int:
    """Of so many pairs, how many are told apart rightly; a tie is a coin.

    By strangers' scores no pair of them says anything: each is dealt anew for every duel.
    """
    first = generator.choice(score if strangers else score[has], DUELS)
    second = generator.choice(score if strangers else score[~has], DUELS)
    coin = generator.random(DUELS) < 0.5
    return int(np.where(first == second, coin, first > second).sum())


def _certain(found: ClassCounts, j: int) -> float:
    """The expected share of people who are certain, over the companions that are known."""
    total = 0.0
    pairs, weights = np.unique(
        np.stack([np.repeat(found.sizes, found.counts.shape[1]), found.counts.ravel()]),
        axis=1,
        return_counts=True,
    )
    for (n, c), many in zip(pairs.T.tolist(), weights.tolist(), strict=True):
        if c:
            struck = min(j, n - 1)
            others = n - c
            if struck >= others:
                chance = math.comb(c - 1, struck - others) / math.comb(n - 1, struck)
                total += many * c * chance
    return total / found.people


def _left(found: ClassCounts, j: int, generator: np.random.Generator) -> Ints:
    """Of each person: the counts of the class without j random others."""
    counts = found.counts[found.of].copy()
    others = counts.copy()
    others[np.arange(found.people), found.answers] -= 1
    rest = others.sum(axis=1)
    draw = np.minimum(j, rest)
    for value in range(counts.shape[1]):
        rest = rest - others[:, value]
        struck = generator.hypergeometric(others[:, value], rest, draw)
        counts[:, value] -= struck
        draw = draw - struck
    return counts


def _of_those_left(
    found: ClassCounts, j: int, generator: np.random.Generator, confidence: float
) -> Verdict:
    guesses, bare = (
        _left(found, many, generator).argmax(axis=1) for many in (j, int(found.sizes.max()))
    )
    return _commonest(found, f" and {j} others", "those left", guesses, bare, generator, confidence)
