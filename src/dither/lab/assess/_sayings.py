"""What an assessment says of each criterion, what it cannot say, and what a statistician checks."""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import TYPE_CHECKING

from dither import __version__
from dither._format import count_text, level
from dither.lab.assess._claim import HeldClaim
from dither.lab.assess._fresh import LEVEL
from dither.lab.assess._judged import Said, TriedAttack
from dither.lab.assess._people import ROWS_EACH
from dither.lab.assess._phrases import at_start, of_hundred
from dither.lab.assess._words import listed
from dither.lab.assess._world import CELLS

if TYPE_CHECKING:
    from dither.lab.assess._result import Assessment

__all__ = ["SHOWN", "answered", "claim_words", "limits", "notes"]

SHOWN = (Said.FOUND, Said.BEYOND)
"""What is said where something was found."""


def answered(
    tried: tuple[TriedAttack, ...], with_control: bool, confidence: float
) -> tuple[Said, str]:
    """What is said of a criterion, and why."""
    shown = [t for t in tried if t.said in SHOWN]
    if shown:
        best = max(shown, key=lambda t: (t.said is Said.BEYOND, t.low or 0.0))
        share, control = best.share or 0.0, best.control or 0.0
        least = _more(best.low or 0.0)
        text = (
            f"{at_start(best)} hit {of_hundred(share)} of the people who were in the table, and "
            f"{of_hundred(control)} of those who were not. With {level(confidence)} confidence "
            f"{least}. "
            f"{len(shown):,} of {count_text(len(tried), 'attack')} found something."
        )
        said = Said.BEYOND if best.said is Said.BEYOND else Said.FOUND
        return said, text
    seen = [t for t in tried if t.said is Said.NOT_SEEN]
    if seen:
        most = max(t.high or 0.0 for t in seen)
        text = (
            f"{len(seen):,} of {count_text(len(tried), 'attack')} could have found something and "
            f"did not. With {level(confidence)} confidence none of them hits more than "
            f"{math.ceil(100 * most):,} of 100 more of the people who were in the table than of "
            "others."
        )
        return Said.NOT_SEEN, text
    if not tried:
        return Said.CANNOT_SAY, (
            "No attack of this kind could be tried: it takes columns that the release and the "
            "table share and that hold values in both, two of them to link or to guess; and a "
            "column that is guessed must have values in the release, not labels."
        )
    if not with_control:
        text = (
            "There is no control. Give people who were not in the table, held back by lot before "
            "the release was made."
        )
        known = [t for t in tried if t.share]
        if known:
            best = max(known, key=lambda t: t.share or 0.0)
            text += (
                f" {at_start(best)} hit {of_hundred(best.share or 0.0)} of the people of the "
                "table; how many others it would hit, nobody knows."
            )
        return Said.CANNOT_SAY, text
    reasons = list(dict.fromkeys(t.why for t in tried))
    return Said.CANNOT_SAY, " ".join(["Nothing that was tried could decide.", *reasons[:1]])


def _more(least: float) -> str:
    """How many more, in whole people of a hundred, rounded down."""
    whole = math.floor(100 * least)
    if whole <= 0:
        return "that is more, if perhaps by fewer than 1 of 100"
    return f"that is at least {whole} of 100 more"


def claim_words(claim: HeldClaim) -> str:
    """What is claimed, who vouches for it, and what it means here."""
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


def limits(of: Assessment) -> Iterator[str]:
    """What an assessment cannot say, in sentences."""
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
    elif of.claim.unit is not None and of.unit is None and not of.claim.unit.startswith("row"):
        yield (
            f"How far the claim holds for one {of.claim.unit}, whom it protects: here each row was "
            "taken for a person. Name the column that says whose row it is."
        )
    if of.searched < of.rows[1]:
        yield (
            f"What a search of all {of.rows[1]:,} released rows finds: {of.searched:,} of them, by "
            "lot, were searched. Somebody whose row is not among them was not found."
        )
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
        yield (
            "Anything of people who have several rows: each row was taken for a person. Where some "
            "have more than one, name the column that says whose row it is, or what is luck may be "
            "said to be found."
        )


def notes(of: Assessment) -> Iterator[str]:
    """What a statistician needs to check it, in sentences."""
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
            "have to do with one another, if the control was drawn by lot"
            f"{'' if of.unit else ' and each row is of another person'}."
        )
        yield (
            f"Intervals of all differences hold together at {level(of.confidence)}, and so do "
            "those of all shares: of shares Clopper and Pearson's; of differences Newcombe's with "
            "such ends on the side of 0, and on the other side at least an exact end, by Fisher's "
            "product of both tails. They take people as a sample of all, and hits as independent "
            "given the release. Where the test finds nothing, they are widened to hold 0."
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
            "and Jagielski, 2023), at the same level again, whatever hits have to do with one "
            "another."
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
