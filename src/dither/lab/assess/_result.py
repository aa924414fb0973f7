"""What an assessment found, in words and as data."""

from __future__ import annotations

import json
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

from dither import __version__
from dither._display import table
from dither._files import named
from dither._format import Printable, wrapped
from dither.errors import ArgumentError
from dither.lab.assess._claim import HeldClaim
from dither.lab.assess._fresh import ControlCheck
from dither.lab.assess._judged import Said, TriedAttack
from dither.lab.assess._page import cards, page
from dither.lab.assess._phrases import row_of
from dither.lab.assess._sayings import SHOWN, answered, claim_words, limits, notes
from dither.lab.assess._words import CRITERIA, QUESTIONS, listed

__all__ = ["Assessment", "Criterion"]


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
            said, answer = answered(tried, self.with_control, self.confidence)
            found.append(Criterion(name, QUESTIONS[name], said, answer, tried))
        return tuple(found)

    @property
    def said(self) -> dict[str, Said]:
        """What is said of each criterion."""
        return {c.name: c.said for c in self.criteria}

    @property
    def found(self) -> bool:
        """Whether anything was found."""
        return any(c.said in SHOWN for c in self.criteria)

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
            text = (
                "The release gives away more of the people in it than what is claimed allows "
                f"({self.claim.words if self.claim else ''}): {listed(by[Said.BEYOND])}."
            )
            return text + (
                f" Something was found of {listed(by[Said.FOUND])}, too." if by[Said.FOUND] else ""
            )
        if by[Said.FOUND]:
            return (
                "The release gives away something of the people in it, beyond what it tells of "
                f"anybody: {listed(by[Said.FOUND])}."
            )
        if by[Said.NOT_SEEN] and not by[Said.CANNOT_SAY]:
            return (
                "No attack that was tried found more, beyond luck, about people who were in the "
                "table than about people who were not. That is not a proof of anonymity."
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
        return tuple(limits(self))

    @property
    def notes(self) -> tuple[str, ...]:
        """What a statistician needs to check it, in sentences."""
        return tuple(notes(self))

    def summary(self) -> str:
        """The assessment for a terminal."""
        lines = [*wrapped(self.conclusion), ""]
        for c in self.criteria:
            lines += [f"{c.name.upper()}: {c.said}", *wrapped(c.answer)]
            if c.tried:
                heads = ["attack", "in", "not in", "points", ""]
                lines += ["", *table(heads, [row_of(t) for t in c.tried], left=1)]
            lines.append("")
        if self.claim is not None:
            lines += [*wrapped(claim_words(self.claim)), ""]
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
        return cards(self)


def _item(text: str) -> list[str]:
    return wrapped(text, "  ", first="- ")
