"""The story of ``dither attack tour``: one survey, released in four ways, each attacked."""

from __future__ import annotations

import math
from collections.abc import Callable
from fractions import Fraction
from functools import partial
from typing import TYPE_CHECKING, Any

from dither._format import interval, loss_text, percent
from dither.cli._terminal import waiting
from dither.examples.page import Attempt, Chapter, Page
from dither.examples.survey import (
    COVERS,
    QUASI,
    SECRET,
    TRAITS,
    anonymous,
    asked,
    boxes,
    exact_counts,
    noisy_years,
    private_sums,
    targets,
    total_years,
    women,
)

if TYPE_CHECKING:
    import polars as pl

    from dither.lab.attack import Verdict

__all__ = ["take_tour"]

Tell = Callable[[str], Any]

LEAD = (
    "In 1974 a magazine asked its readers about their marriages. {n:,} women answered, also on "
    "affairs. Below, their answers are published in four ways, and each is attacked. Every attack "
    "was really run, just now, and every figure is its result."
)
FOOT = (
    "The survey is R. C. Fair's, as statsmodels carries it, and has long been public; here it "
    "stands for data that is not. The dark mark on a bar is a blind guess, the dashed one what no "
    "attack exceeds on average; what is seen scatters around its mean. Every attack was also run "
    "against the bare truth, where it must succeed, and against a stranger's release, where it "
    "must fail. That an attack fails does not show a release safe; the bound does."
)

PEOPLE, ASKED = 200, 1600
EPSILONS = tuple(map(Fraction, ("0.1", "1", "3")))
TARGETS = 100
SURE = 0.999
"""Of intervals, and that no control fails by bad luck."""


def take_tour(seed: int, tell: Tell) -> Page:
    """Run everything and write it down.

    Parameters
    ----------
    seed : int
        Of targets and simulations.
    tell : callable
        Is called with each step, as a line.
    """
    rows = women()
    chapters = []
    for step in (_masking, _classes, _statistics, _private):
        chapter = step(rows, seed)
        chapters.append(chapter)
        tell(f"{len(chapters)}  {chapter.title}: {chapter.verdict}")
        for one in chapter.attempts:
            most = (
                "" if one.allowed is None else f", at most {percent(one.allowed, turn=math.ceil)}"
            )
            rates = f"{percent(one.success)}, blindly {percent(one.blindly)}{most}"
            tell(f"     {one.name}: {rates}")
    return Page(
        "Four ways to publish, and what an attacker gets",
        LEAD.format(n=rows.height),
        chapters,
        FOOT,
    )


def _masking(rows: pl.DataFrame, seed: int) -> Chapter:
    """Names replaced by pseudonyms; everything else as answered."""
    from dither import attack
    from dither.lab.anonymize import new_key, pseudonymize

    step = Chapter("Masking: take the names away", "broken", broken=True)
    with waiting("masking"):
        names = [f"reader {i + 1}" for i in range(rows.height)]
        masked = rows.drop("affairs").with_columns(name=pseudonymize(names, new_key()))
        alone = attack.uniqueness(rows, TRAITS)
        found = attack.linkage(masked, rows, QUASI, truth="position", name="masked rows", seed=seed)
        pure = attack.homogeneity(masked, QUASI, "affair", seed=seed)
    assert found.verdict is not None
    step.say(
        "Names are replaced by pseudonyms under a secret key, which nobody undoes. All other "
        "columns stay, since they are what the data is for (affairs are left out of this page):"
    )
    shown = ["name", *QUASI, "affair"]
    step.table(
        [*shown],
        [
            [f"{r['name'][:8]}…", *(f"{r[c]:g}" for c in QUASI), "?"]
            for r in masked.select(shown).head(4).iter_rows(named=True)
        ],
    )
    step.say(
        "The attacker is a neighbour, who knows six harmless things of a woman: her age, her years "
        "of marriage, her children, how religious she is, her education, her occupation. He looks "
        "for her row."
    )
    step.try_out(
        Attempt(
            "Find her row",
            found.verdict.success,
            found.verdict.prior,
            True,
            f"{found.alone:,} women are alone with their six answers; their rows are found with "
            "certainty.",
        ),
        Attempt(
            "Be certain of her answer",
            pure.share,
            0.0,
            True,
            f"{pure.given_away:,} women: either nobody is like them, or all who are gave the same "
            "answer on affairs.",
        ),
    )
    step.draw(alone, "Share of women alone with their answers, by number of columns known")
    step.say(
        f"No column is to blame. Of three columns, whichever they are, at most "
        f"{percent(alone.sizes[0].most)} of the women are alone with their values; with all "
        f"eight it is {percent(alone.sizes[-1].most, 0)}. The next step is to make the columns "
        "coarser."
    )
    return step


def _classes(rows: pl.DataFrame, seed: int) -> Chapter:
    """k-anonymity, and what classes give away."""
    import polars as pl

    from dither import attack

    step = Chapter("k-anonymity: hide among ten", "broken", broken=True)
    with waiting("making it 10-anonymous"):
        ten, box = anonymous(rows), boxes(rows)
        again = anonymous(rows, weights={"age": 5, "yrs_married": 5})
        found = attack.linkage(ten, rows, covers=COVERS, seed=seed)
        pure, boxed = (attack.homogeneity(t, seed=seed) for t in (ten, box))
        knows = attack.background(box, companions=[0, 2, 4, 6, 8, 12, 16, 20], seed=seed)
        skew = attack.skewness(box, value="yes", seed=seed)
    assert found.verdict is not None
    both = (
        pl.DataFrame({"row": ten.rows, "first": ten.classes})
        .join(pl.DataFrame({"row": again.rows, "second": again.classes}), on="row")
        .group_by("first", "second")
        .len()
    )
    sizes = both["len"].to_numpy()
    fewer, least = int(sizes[sizes < 10].sum()), int(sizes.min())
    step.say(
        "Ages become decades, years of marriage five-year steps, and so on, until anyone who looks "
        "for a woman by those six answers finds at least ten rows. `dt.anonymize.generalize` finds "
        f"the choice that loses least; {ten.suppressed} rows are left out. Cut into boxes instead "
        "(`dt.anonymize.mondrian`), the rows keep far more detail, and k is still ten."
    )
    step.head("What it promised, it does")
    step.try_out(
        Attempt(
            "Find her row",
            found.verdict.success,
            found.verdict.prior,
            False,
            f"At least {int(found.candidates[found.candidates > 0].min())} rows fit everybody: "
            "linkage is stopped.",
        )
    )
    step.head("But nobody needs her row")
    step.try_out(
        Attempt(
            "Be certain of her answer",
            boxed.share,
            0.0,
            True,
            f"{boxed.given_away} women in boxes whose ten or more all gave the same answer "
            f"({pure.given_away} where whole columns were made coarser).",
        ),
        Attempt(
            "Be certain, knowing 12 of her class",
            next(one.certain for one in knows.known if one.companions == 12),
            0.0,
            True,
            "Who knows a dozen of her class strikes them out; what is left is hers.",
        ),
        Attempt(
            "Of two women, who had the affair?",
            skew.verdict.success,
            0.5,
            True,
            f"Classes differ. For {skew.raised(2):,} women the probability at least doubles.",
        ),
    )
    step.draw(boxed, "Classes by size and by share of the commonest answer")
    step.draw(knows, "Women whose answer is certain, by how many others are known")
    left = "some alone again" if least == 1 else f"the loneliest with {least - 1} others"
    step.say(
        "And it does not add up. Released again with other columns kept fine, both times with ten "
        f"look-alikes, the two together leave {fewer} women with fewer than ten, {left}."
    )
    step.say("So publish no rows at all: only statistics.")
    return step


def _statistics(rows: pl.DataFrame, seed: int) -> Chapter:
    """Exact counts over large groups: subtracted, and solved."""
    from dither import attack

    step = Chapter("Exact statistics: only large numbers", "broken", broken=True)
    with waiting("asking for exact counts"):
        chosen, truth = targets(rows, TARGETS, seed)
        subtracted = attack.differencing(
            exact_counts(rows, least=50), chosen, SECRET, truth=truth, name="exact counts"
        )
    with waiting("solving for everybody"):
        whole, rounded = (
            attack.subset_sums(PEOPLE, ASKED, release).run(3, seed=seed)
            for release in (attack.releases.exact(), attack.releases.rounded(10.0))
        )
    assert subtracted.verdict is not None
    step.say(
        "The publisher answers questions with counts, each exact, and refuses any below 50. The "
        "attacker asks two harmless ones:"
    )
    step.code(
        f"SELECT COUNT(*) FROM survey WHERE {SECRET}\n"
        f"SELECT COUNT(*) FROM survey WHERE {SECRET}\n  AND NOT ({chosen[0]})"
    )
    step.say("Both counts are about 2,000. Only one woman fits the last line.")
    step.try_out(
        Attempt(
            "Subtract two counts",
            subtracted.verdict.success,
            subtracted.verdict.prior,
            True,
            f"{TARGETS} women of whom half had an affair; right about every one.",
        ),
        Attempt(
            "Solve for everybody at once",
            whole.success,
            whole.prior,
            True,
            f"{PEOPLE} people with a bit each, from {ASKED:,} counts over random halves.",
        ),
        Attempt(
            "Solve, counts rounded to tens",
            rounded.success,
            rounded.prior,
            rounded.success > 0.75,
            "Rounding is noise of a kind. More questions undo it.",
        ),
    )
    step.say(
        "Rules on the size of groups do not help, and auditing every combination of questions is "
        "beyond any office. Too many answers that are too exact give everybody away: this is a "
        "theorem (Dinur and Nissim, 2003)."
    )
    return step


def _private(rows: pl.DataFrame, seed: int) -> Chapter:
    """The same attacks on private answers, and what those are still good for."""
    from dither import attack
    from dither.lab.attack import plot_verdicts
    from dither.plots.lab._alarms import draw_membership

    step = Chapter("dither: noise that is accounted for", "bounded", broken=False)
    chosen, truth = targets(rows, TARGETS, seed)
    verdicts: list[Verdict] = []
    budget = sum(EPSILONS, Fraction(0)) * 2 * TARGETS + 1
    with asked(rows, budget) as session:
        for epsilon in EPSILONS:
            with waiting(f"asking at ε = {loss_text(epsilon, 6)}"):
                found = attack.differencing(
                    session, chosen, SECRET, epsilon=epsilon, truth=truth, confidence=SURE
                )
            assert found.verdict is not None
            verdicts.append(found.verdict)
        with waiting("asking what the survey is for"):
            released = session.sql(
                "SELECT rate_marriage, COUNT(*) AS women, "
                "AVG(CASE WHEN affairs > 0 THEN 100 ELSE 0 END) AS affair_pct "
                "FROM survey GROUP BY rate_marriage"
            ).release(1)
    with waiting("solving for everybody"):
        solved = attack.subset_sums(
            PEOPLE, ASKED, private_sums(Fraction(1), ASKED), method="least squares"
        )
        everybody = solved.run(10, seed=seed, confidence=SURE)
    members = []
    with waiting("looking for members"):
        for mu in (0.3, 1.0):
            release, loss, years = noisy_years(rows, mu)
            name = f"private sum, μ = {mu:g}"
            members.append(
                attack.membership(
                    release, years, loss=loss, undefended=total_years, name=name, seed=seed
                )
            )
    step.say(
        "Every answer gets exact random noise, sized by how much one woman can change it, and is "
        "charged to a budget before it leaves. Whatever the attacker knows and however clever, the "
        "chance to be right is bounded, by a proof that does not ask what the attack is."
    )
    small, one = verdicts[0], verdicts[EPSILONS.index(Fraction(1))]
    step.try_out(
        _bounded("Subtract two counts, ε = 0.1 each", small, "She is in one of the two only."),
        _bounded(
            "Subtract two counts, ε = 1 each",
            one,
            f"In theory this rule reaches {percent(one.predicted or 0)}.",
        ),
        _bounded(
            "Solve for everybody, ε = 1 in all",
            everybody,
            f"The same {ASKED:,} counts; more would not help, as they share the budget.",
        ),
        _bounded(
            "Was she in the survey? (μ = 0.3)",
            members[0].verdict,
            "By an attacker who knows all other 6,365 answers.",
        ),
    )
    step.draw(
        partial(plot_verdicts, verdicts, title="Subtracting private counts, against ε"),
        "Success of differencing against epsilon, with its bound",
    )
    step.draw(
        partial(draw_membership, members),
        "ROC curves of membership inference, which meet what the loss allows and do not pass it",
    )
    step.say(
        "The curves meet their bounds: the attack is as strong as any can be, and what it may "
        "reach is known before anything is published. A larger ε allows more; that is the price, "
        "and it is written down."
    )
    step.head("What the answers are still good for")
    step.say("The question that the survey was made for, at ε = 1 for the whole table:")
    labels = {1: "very poor", 2: "poor", 3: "fair", 4: "good", 5: "very good"}
    step.table(
        ["her marriage", "women", "truth", "had an affair", "truth"],
        [_beside(rows, row, labels) for row in released.frame.iter_rows(named=True)],
    )
    step.say("What is true of women in general is there. What is true of one of them is not.")
    return step


def _bounded(name: str, verdict: Verdict, note: str) -> Attempt:
    """An attack that a loss bounds."""
    seen = f"Measured: {percent(verdict.low)} to {percent(verdict.high)}."
    most = f"No attack exceeds {percent(verdict.bound, turn=math.ceil)} on average."
    return Attempt(
        name, verdict.success, verdict.prior, False, f"{most} {seen} {note}", verdict.bound
    )


def _beside(rows: pl.DataFrame, row: dict[str, Any], labels: dict[int, str]) -> list[str]:
    """A released line beside the truth, which this page may show."""
    import polars as pl

    rating = int(row["rate_marriage"])
    real = rows.filter(pl.col("rate_marriage") == rating)
    share = int((real["affairs"] > 0).sum()) / real.height
    return [
        f"{rating} {labels[rating]}",
        interval(row["women"], row["women_lower"], row["women_upper"]),
        f"{real.height:,}",
        interval(row["affair_pct"], row["affair_pct_lower"], row["affair_pct_upper"], (0, 100))
        + " %",
        percent(share),
    ]
