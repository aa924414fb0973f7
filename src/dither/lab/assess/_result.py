"""What an assessment found, in words and as data."""

from __future__ import annotations

import json
import math
from collections.abc import Callable, Iterator
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

from dither import __version__
from dither._display import table
from dither._files import named
from dither._format import Printable, count_text, level, percent, wrapped
from dither.errors import ArgumentError
from dither.lab.assess._claim import HeldClaim
from dither.lab.assess._fresh import LEVEL, ControlCheck
from dither.lab.assess._judged import Said, TriedAttack
from dither.lab.assess._people import ROWS_EACH
from dither.lab.assess._words import CRITERIA, QUESTIONS, listed
from dither.lab.assess._world import CELLS

__all__ = ["Assessment", "Criterion", "of_hundred"]

_SHOWN = (Said.FOUND, Said.BEYOND)


@dataclass(frozen=True, slots=True)
class Criterion:
    """One of the three questions, and its answer.

    Attributes
    ----------
    name, question : str
    said : Said
    answer : str
        In a sentence or two.
    tried : tuple of TriedAttack
    """

    name: str
    question: str
    said: Said
    answer: str
    tried: tuple[TriedAttack, ...] = field(repr=False)


@dataclass(frozen=True, slots=True, eq=False)
class Assessment(Printable):
    """The result of `assess`. It holds names of columns and counts, and no value of a table.

    Attributes
    ----------
    tried : tuple of TriedAttack
        Each attack, with its hits, its intervals and what may be said of it.
    claim : HeldClaim or None
        The epsilon that is claimed, and what was verified of it.
    check : ControlCheck or None
        Whether the control is fit to be one.
    columns, left_out : tuple of str
        Columns that were used; and those of them in which nothing of the release fits any value.
    only_original, only_release : tuple of str
        Columns that were not used.
    rows : tuple of int and None
        Of the original, the release, the control, and the earlier version, if there is one.
    people : tuple of int
        In the original, in the control, and attacked of either.
    searched : int
        Rows of the release that were searched.
    shared_people : int
        People of the control who were left out, as they are in the original.
    unit : str or None
    unit_released : bool
        Whether the release has the unit's column.
    with_control, with_before : bool
    seed : int or None
    confidence : float
    """

    tried: tuple[TriedAttack, ...] = field(repr=False)
    claim: HeldClaim | None
    check: ControlCheck | None
    columns: tuple[str, ...]
    left_out: tuple[str, ...]
    only_original: tuple[str, ...]
    only_release: tuple[str, ...]
    rows: tuple[int, int, int, int | None]
    people: tuple[int, int, int]
    searched: int
    shared_people: int
    unit: str | None
    unit_released: bool
    with_control: bool
    with_before: bool
    seed: int | None
    confidence: float

    @property
    def criteria(self) -> tuple[Criterion, ...]:
        """The three questions with their answers."""
        found = []
        for name in CRITERIA:
            tried = tuple(t for t in self.tried if t.criterion == name)
            said, answer = _answered(tried, self)
            found.append(Criterion(name, QUESTIONS[name], said, answer, tried))
        return tuple(found)

    @property
    def said(self) -> dict[str, Said]:
        """What is said of each criterion."""
        return {c.name: c.said for c in self.criteria}

    @property
    def found(self) -> bool:
        """Whether anything was found."""
        return any(c.said in _SHOWN for c in self.criteria)

    @property
    def level(self) -> float:
        """At which each attack was tested."""
        parts = 1 if self.claim is None else 2
        return (1.0 - self.confidence) / (max(1, len(self.tried)) * parts)

    @property
    def conclusion(self) -> str:
        """The answer in a sentence."""
        by = {said: [c.name for c in self.criteria if c.said is said] for said in Said}
        if by[Said.BEYOND]:
            return (
                f"The release gives away more of the people in it than the claimed "
                f"{self.claim.words if self.claim else ''} allows: {listed(by[Said.BEYOND])}."
            )
        if by[Said.FOUND]:
            return (
                "The release gives away something of the people in it, beyond what it tells of "
                f"anybody: {listed(by[Said.FOUND])}."
            )
        if by[Said.NOT_SEEN] and not by[Said.CANNOT_SAY]:
            return (
                "No attack that was tried found more about people who were in the table than about "
                "people who were not. That is not a proof of anonymity."
            )
        if by[Said.NOT_SEEN]:
            return (
                f"Of {listed(by[Said.NOT_SEEN])} nothing was seen; of "
                f"{listed(by[Said.CANNOT_SAY])} nothing can be said."
            )
        return "Nothing can be said: " + (
            "nothing that was tried could have decided."
            if self.with_control
            else "without people who were not in the table, nothing that is learned of those who "
            "were can be told from what is learned of anybody."
        )

    @property
    def limits(self) -> tuple[str, ...]:
        """What the assessment cannot say, in sentences."""
        return tuple(_limits(self))

    @property
    def notes(self) -> tuple[str, ...]:
        """What a statistician needs to check it, in sentences."""
        return tuple(_notes(self))

    def summary(self) -> str:
        """The assessment for a terminal."""
        lines = [*wrapped(self.conclusion), ""]
        for c in self.criteria:
            lines += [f"{c.name.upper()}: {c.said}", *wrapped(c.answer)]
            if c.tried:
                heads = ["attack", "in", "not in", "points", ""]
                lines += ["", *table(heads, [_row(t) for t in c.tried], left=1)]
            lines.append("")
        if self.claim is not None:
            lines += [*wrapped(claim_words(self)), ""]
        lines += ["What this cannot say", *(part for s in self.limits for part in _item(s))]
        return "\n".join(lines)

    def to_dict(self) -> dict[str, Any]:
        """The assessment as plain data."""
        check = self.check
        return {
            "format": 1,
            "dither": __version__,
            "conclusion": self.conclusion,
            "criteria": [
                {
                    "name": c.name,
                    "said": str(c.said),
                    "answer": c.answer,
                    "attacks": [asdict(t) | {"said": str(t.said)} for t in c.tried],
                }
                for c in self.criteria
            ],
            "claim": None
            if self.claim is None
            else {
                "epsilon": self.claim.epsilon,
                "delta": self.claim.delta,
                "neighbours": self.claim.neighbours.value,
                "unit": self.claim.unit,
                "verified": self.claim.verified,
                "of_these_rows": self.claim.of_these_rows,
            },
            "control": None
            if check is None
            else {"alike": check.alike, "fresh": check.fresh} | asdict(check),
            "columns": list(self.columns),
            "left_out": list(self.left_out),
            "only_original": list(self.only_original),
            "only_release": list(self.only_release),
            "rows": dict(zip(("original", "release", "control", "before"), self.rows, strict=True)),
            "people": dict(zip(("original", "control", "attacked"), self.people, strict=True)),
            "searched": self.searched,
            "unit": self.unit,
            "unit_released": self.unit_released,
            "shared_people": self.shared_people,
            "seed": self.seed,
            "confidence": self.confidence,
            "level": self.level,
            "limits": list(self.limits),
            "notes": list(self.notes),
        }

    def to_json(self) -> str:
        """The same as JSON."""
        return json.dumps(self.to_dict(), indent=2, ensure_ascii=False)

    def html(self, title: str = "What a release gives away") -> str:
        """The page: one file of HTML that asks for nothing from outside and runs no script."""
        from dither.lab.assess._page import page

        return page(self, title)

    def save(self, path: str | Path) -> Path:
        """Write it to a file: the page as .html, the data as .json, the text as .txt.

        Raises
        ------
        ArgumentError
            For another ending.
        """
        target = named(path)
        made = {".html": self.html, ".json": self.to_json, ".txt": self.summary}
        if target.suffix.lower() not in made:
            raise ArgumentError("path must end in .html, .json or .txt")
        target.write_text(made[target.suffix.lower()]().rstrip() + "\n", encoding="utf-8")
        return target

    def _repr_html_(self) -> str:
        from dither.lab.assess._page import cards

        return cards(self)


def of_hundred(share: float) -> str:
    """A share as people in a hundred.

    Examples
    --------
    >>> of_hundred(0.5), of_hundred(0.004), of_hundred(0.0), of_hundred(0.996), of_hundred(1.0)
    ('50 of 100', 'fewer than 1 of 100', 'none', 'more than 99 of 100', 'all')
    """
    if share <= 0:
        return "none"
    if share >= 1:
        return "all"
    whole = round(100 * share)
    if whole == 0:
        return "fewer than 1 of 100"
    return "more than 99 of 100" if whole == 100 else f"{whole} of 100"


def attack_name(one: TriedAttack) -> str:
    """An attack, with what it guesses."""
    return f"{one.secret}, by {one.attacker}" if one.secret else one.attacker


def difference_text(one: TriedAttack) -> str:
    """The difference in points of a hundred, with its interval rounded outwards."""
    if one.more is None or one.low is None or one.high is None:
        return "–"
    low, high = _outwards(one.low, math.floor), _outwards(one.high, math.ceil)
    return f"{_signed(100 * one.more)} [{_signed(low)}, {_signed(high)}]"


def _outwards(share: float, turn: Callable[[float], int]) -> float:
    """An end of an interval in points, rounded outwards; what is not 0 stays so."""
    found = turn(1000 * share) / 10
    return found if found or not share else turn(1e6 * share) / 1e4


def _signed(points: float) -> str:
    shown = f"{points:+.1f}"
    if float(shown) == 0.0:
        shown = f"{points:+.1g}" if points else "0"
    return shown.replace("-", "−")


def _row(one: TriedAttack) -> list[str]:
    shares = ["–" if s is None else percent(s) for s in (one.share, one.control)]
    return [attack_name(one), *shares, difference_text(one), str(one.said)]


def _item(text: str) -> list[str]:
    return wrapped(text, "  ", first="- ")


def _answered(tried: tuple[TriedAttack, ...], of: Assessment) -> tuple[Said, str]:
    shown = [t for t in tried if t.said in _SHOWN]
    if shown:
        best = max(shown, key=lambda t: (t.said is Said.BEYOND, t.low or 0.0))
        share, control = best.share or 0.0, best.control or 0.0
        least = _more(best.low or 0.0)
        text = (
            f"{_start(best)} hit {of_hundred(share)} of the people who were in the table, and "
            f"{of_hundred(control)} of those who were not. With confidence {least}. "
            f"{len(shown):,} of {count_text(len(tried), 'attack')} found something."
        )
        said = Said.BEYOND if best.said is Said.BEYOND else Said.FOUND
        return said, text
    seen = [t for t in tried if t.said is Said.NOT_SEEN]
    if seen:
        most = max(t.high or 0.0 for t in seen)
        text = (
            f"{count_text(len(seen), 'attack')} of {len(tried):,} could have found something and "
            "did not: each may have hit people of the table more often than others by at most "
            f"{math.ceil(100 * most):,} of 100."
        )
        return Said.NOT_SEEN, text
    if not tried:
        return Said.CANNOT_SAY, (
            "No attack of this kind could be tried: it takes at least two columns that the release "
            "and the table share, or one where a person is singled out."
        )
    if not of.with_control:
        text = (
            "There is no control. Give people who were not in the table, held back by lot before "
            "the release was made."
        )
        known = [t for t in tried if t.share]
        if known:
            best = max(known, key=lambda t: t.share or 0.0)
            text += (
                f" {_start(best)} hit {of_hundred(best.share or 0.0)} of the people of the table; "
                "how many others it would hit, nobody knows."
            )
        return Said.CANNOT_SAY, text
    reasons = list(dict.fromkeys(t.why for t in tried))
    return Said.CANNOT_SAY, " ".join(["Nothing that was tried could decide.", *reasons[:1]])


def _start(one: TriedAttack) -> str:
    """An attack, at the start of a sentence."""
    if one.secret:
        return f"Guesses of {one.secret} by {one.attacker}"
    return one.attacker[0].upper() + one.attacker[1:]


def _more(least: float) -> str:
    """How many more, in whole people of a hundred, rounded down."""
    whole = math.floor(100 * least)
    if not whole:
        return "that is more, if perhaps by fewer than 1 of 100"
    return f"that is at least {whole} of 100 more"


def claim_words(of: Assessment) -> str:
    """What is claimed, who vouches for it, and what it means here."""
    claim = of.claim
    assert claim is not None
    if not claim.verified:
        vouched = "No certificate vouches for it: what it allows is shown as if it were true."
    elif claim.of_these_rows:
        vouched = f"Its certificate was verified: {claim.verified}."
    else:
        vouched = (
            f"Its certificate was verified: {claim.verified}. That these rows were made from what "
            "it is of, nobody verified."
        )
    return f"Claimed: {claim.words}. {vouched}"


def _limits(of: Assessment) -> Iterator[str]:
    yield (
        "That the release is anonymous. Attacks were tried that somebody has thought of; others "
        "may find more. Only a guarantee bounds those too."
    )
    if not of.with_control:
        yield (
            "How much is due to having been in the table: there is no control. What an attack "
            "learns of people who were never in a table, it owes to nobody's row."
        )
    elif of.check is not None and not of.check.alike:
        yield (
            "What is due to the release: the control is not like the table, as a model tells its "
            "rows from those of the table. Hold people back by lot, before the release is made."
        )
    else:
        yield (
            "Anything, if the control was not drawn by lot from the same people as the table. That "
            "it could have been was checked; that it was, only its owner knows."
        )
    if of.check is not None and not of.check.fresh:
        yield (
            "What is not seen: more people of the control equal somebody of the table than should. "
            "It seems to hold people of the table."
        )
    yield (
        "What becomes of the one person who is most at risk. Shares are of all people attacked; a "
        "few who are given away among thousands stay below what is told from luck."
    )
    if not of.with_before:
        yield "What several versions give away together: only one was given."
    if of.claim is None:
        yield "What attacks are ruled out: no epsilon is claimed, so nothing bounds them."
    if of.left_out:
        yield (
            f"What {listed(of.left_out)} gives away: nothing of it in the release fits any value "
            "of the table, so it was left out."
        )
    if of.only_release:
        yield (
            f"What {listed(of.only_release)} gives away: the release has it and the original has "
            "not."
        )
    if of.unit is not None:
        yield (
            f"What all rows of a person give away together: at most {ROWS_EACH} rows of each were "
            "attacked, one by one."
        )
        if of.unit_released:
            yield (
                f"What {of.unit} gives away: the release has the column that says whose row it is, "
                "or what stands in its place. Rows of one person can be joined by it."
            )
    else:
        yield "Anything of people who have several rows: each row was taken for a person."


def _notes(of: Assessment) -> Iterator[str]:
    tests, people = len(of.tried), of.people[2]
    if of.with_control:
        yield (
            f"{count_text(people, 'person', 'people')} of the table and as many of the control "
            "were drawn by lot and mixed; no attack is told who is who, and thresholds are of all "
            "of them together."
        )
        yield (
            f"{count_text(tests, 'test')}, each Fisher's exact one-sided test of the hits of "
            f"either kind at level {of.level:.2g}: by Bonferroni's bound all that is said to be "
            f"found is wrong with probability at most {1.0 - of.confidence:.2g}, whatever hits "
            "have to do with one another, if the control was drawn by lot."
        )
        yield (
            f"Intervals hold together at {level(of.confidence)}: of shares Clopper and Pearson's, "
            "of differences Newcombe's with these ends. They take people as a sample of all, and "
            "hits as independent given the release. Where the test finds nothing, they are widened "
            "to hold 0."
        )
        yield (
            "On the table itself: the same attack where the table is published as it is, on 200 "
            "people of either kind at most. An attack works if it tells them apart there at level "
            "0.01; if it does not, its failure on the release counts for nothing."
        )
    if of.check is not None:
        c = of.check
        yield (
            f"The control, at level {LEVEL:g} in all. A model took {c.told.hits:,} of "
            f"{c.told.people:,} rows of the table for such, and {c.told.control_hits:,} of as many "
            f"of the control (chance {c.told_chance:.2g}). Of {c.copies.people:,} people of the "
            f"control {c.copies.hits:,} have an equal in the table, of as many of the table "
            f"{c.copies.control_hits:,} have another (chance {c.copies_chance:.2g})."
        )
    if of.claim is not None:
        yield (
            "Allowed is the largest share of hits that the claim lets any attack have, where of "
            "others the upper end of their interval is hit; a claim of adding or removing one "
            "counts twice, as somebody of the table and somebody of the control change places. "
            "Beyond the claim is said by the bound of one run with many canaries (Steinke, Nasr "
            "and Jagielski, 2023), at the same level again."
        )
    rows = [f"{n:,}" for n in of.rows[:3]]
    part = "" if of.searched == of.rows[1] else f", of which {of.searched:,} by lot were searched"
    yield (
        f"Rows: original {rows[0]}, release {rows[1]}{part}, control {rows[2]}. People: original "
        f"{of.people[0]:,}, control {of.people[1]:,}. Columns: {listed(of.columns)}."
    )
    if of.shared_people:
        yield (
            f"{count_text(of.shared_people, 'person', 'people')} of the control are in the "
            "original too, by the unit's column, and were left out."
        )
    yield (
        f"Where a column is a condition or an answer of a model, numbers are in {CELLS} parts of "
        "equal size. Numbers that lie within 5 % of their range are as good as equal."
    )
    seed = "a generator of the caller" if of.seed is None else f"seed {of.seed}"
    yield f"dither {__version__}, {seed}: the same tables and seed give the same page."
