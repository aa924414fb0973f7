"""The story of ``dither demo``: the main job on real data, step by step."""

from __future__ import annotations

import math
import os
import textwrap
from collections.abc import Mapping, Sequence
from fractions import Fraction
from pathlib import Path
from typing import TYPE_CHECKING, Any

from dither._format import half_width, interval, loss_text
from dither.cli._terminal import console, new_table, waiting
from dither.cli.policies.ledger_commands import show
from dither.errors import BudgetError, DitherError
from dither.examples.demo.attack import TwoCounts, attack, best_odds
from dither.examples.demo.data import RATINGS, at, clear, fill, survey

if TYPE_CHECKING:
    import polars as pl
    from rich.console import Console

    from dither import Preview, Release, Session

__all__ = ["run"]

MARRIAGES = """\
SELECT rate_marriage,
       COUNT(*) AS women,
       AVG(CASE WHEN affairs > 0 THEN 100 ELSE 0 END) AS affair_pct,
       AVG(age) AS age
FROM affairs
GROUP BY rate_marriage"""

OCCUPATIONS = """\
SELECT occupation, AVG(affairs) AS affairs
FROM affairs GROUP BY occupation"""

PYTHON = """\
women = session.table("affairs")
women.group_by("religious").agg(married=dt.median("yrs_married"))
women.histogram("age", [15, 20, 25, 30, 35, 40, 45])"""

PRICES = {"marriages": Fraction("0.6"), "median": Fraction("0.4"), "ages": Fraction("0.3")}
TOO_MUCH = Fraction(1)
PROBE = Fraction("0.1")


def run(folder: Path) -> None:
    """Tell the whole story, and leave its files in ``folder``.

    Raises
    ------
    DitherError
        Where the folder holds other files, or statsmodels or matplotlib is not installed.
    """
    clear(folder)
    story = Story(folder)
    with waiting("reading the survey"):
        rows = survey()
    story.data(rows)
    story.policy()
    import dither as dt

    with dt.open(folder / "dither.toml") as session:
        story.preview(session)
        story.answers(session, rows)
        story.ledger()
        story.refusal(session)
        story.attack(session, rows)
    story.end()


class Story:
    """The steps, each of which prints what it does."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.out: Console = console()
        self.step = 0

    def data(self, rows: pl.DataFrame) -> None:
        """Write the survey as Parquet."""
        self.head("The data")
        rows.write_parquet(self.folder / "affairs.parquet")
        self.say(
            f"In 1974 a magazine asked its readers about their marriages. {rows.height:,} women "
            "answered, also on affairs. One row is one woman; nobody should learn her answers."
        )

    def policy(self) -> None:
        """Draft the policy from the schema, and fill it in."""
        import dither as dt

        self.head("What is public, and what may be spent")
        here = Path.cwd()
        try:
            os.chdir(self.folder)
            text = fill(dt.draft_policy("affairs.parquet"))
        finally:
            os.chdir(here)
        (self.folder / "dither.toml").write_text(text, encoding="utf-8")
        self.say(
            "`dither init` drafts a policy from column names and types, never from values. The "
            "owner fills in a budget, and for each column what the codebook makes public:"
        )
        self.code(at(text, "[budget]"))
        self.code(at(text, "[tables.affairs.columns]"))

    def preview(self, session: Session) -> None:
        """Say how accurate the answers will be, free of charge."""
        self.head("Error bars before spending")
        question = session.sql(MARRIAGES)
        self.say("A question, in SQL:")
        self.code(MARRIAGES)
        found = question.preview(PRICES["marriages"], sizes=(100, 300, 1_000, 3_000))
        self.draw(
            found, "preview", f"Error bars before spending, at ε = {loss_text(PRICES['marriages'])}"
        )
        self.say(
            f"What would ε = {loss_text(PRICES['marriages'])} buy? The half-widths of the 95 % "
            "intervals, from public facts alone:"
        )
        table = new_table()
        table.add_column("women in a group", justify="right")
        for name in found.widths:
            table.add_column(name, justify="right")
        for i, size in enumerate(found.sizes):
            table.add_row(
                f"{size:,}", *(f"± {half_width(widths[i])}" for widths in found.widths.values())
            )
        self.show(table)
        enough = question.budget_for({"affair_pct": 1}, size=1_000)
        self.say(
            f"And the other way round: ±1 on affair_pct among 1,000 women takes "
            f"ε = {loss_text(enough)}."
        )

    def answers(self, session: Session, rows: pl.DataFrame) -> None:
        """Release three questions, and hold them against the truth."""
        import polars as pl

        import dither as dt

        self.head("The answers, beside the truth")
        self.say(
            "Each release is charged first, then computed, then given noise. The survey is "
            "public, so this demo may print the truth (in grey); a release never does."
        )
        release = session.sql(MARRIAGES).release(PRICES["marriages"])
        truth = rows.group_by(rate_marriage=pl.col("rate_marriage").cast(int)).agg(
            women=pl.len(),
            affair_pct=(pl.col("affairs") > 0).mean() * 100,
            age=pl.col("age").mean(),
        )
        labels = {rating: f"{rating} {name}" for rating, name in RATINGS.items()}
        held = self.beside(release, truth, "her marriage", labels)
        self.keep(release, "marriages", "How she rates her marriage, from 1, very poor, to 5")
        release.certificate.save(self.folder / "marriages.cert.json")

        self.say("The same from Python: the median years of marriage, and a histogram.")
        self.code(PYTHON)
        table = session.table("affairs")
        release = (
            table.group_by("religious")
            .agg(married=dt.median("yrs_married"))
            .release(PRICES["median"])
        )
        truth = rows.group_by(religious=pl.col("religious").cast(int)).agg(
            married=pl.col("yrs_married").median()
        )
        faith = {1: "1 not", 2: "2 mildly", 3: "3 fairly", 4: "4 strongly"}
        held += self.beside(release, truth, "how religious she is", faith)
        self.keep(release, "median", "Years married, by how religious")

        release = table.histogram("age", [15, 20, 25, 30, 35, 40, 45]).release(PRICES["ages"])
        cut = rows.select(low=(pl.col("age") // 5 * 5).cast(int))
        truth = (
            cut.group_by("low")
            .agg(count=pl.len())
            .select(
                pl.format(
                    "[{}, {}{}",
                    "low",
                    pl.col("low") + 5,
                    pl.when(pl.col("low") < 40).then(pl.lit(")")).otherwise(pl.lit("]")),
                ).alias(release.keys[0]),
                "count",
            )
        )
        held += self.beside(release, truth, "age in years", {})
        self.keep(release, "ages", "Age, in years")
        self.say(
            f"{sum(held)} of {len(held)} intervals hold the truth; 95 in 100 do. The pictures "
            "are beside the data."
        )

    def ledger(self) -> None:
        """Show what was spent, and verify a certificate."""
        import dither as dt

        self.head("What was spent")
        self.code(f"dither ledger show {self.folder / 'demo.ledger'}")
        # As from the command line, with the defaults of whatever is not given.
        show.main([str(self.folder / "demo.ledger"), "--limit", "10"], standalone_mode=False)
        self.out.print()
        found = dt.verify(self.folder / "marriages.cert.json", self.folder / "demo.ledger")
        self.say(f"The certificate of the first release can be checked by anyone: {found.text}.")

    def refusal(self, session: Session) -> None:
        """Ask one question too many."""
        self.head("One question too many")
        self.code(f"{OCCUPATIONS}   -- at ε = {loss_text(TOO_MUCH)}")
        try:
            session.sql(OCCUPATIONS).release(TOO_MUCH)
        except BudgetError as error:
            self.say(f"Refused: {error}", style="yellow")
        else:
            raise DitherError("the demo's last question should have been refused")

    def attack(self, session: Session, rows: pl.DataFrame) -> None:
        """Point two counts at one woman."""
        self.head("The attack that this stops")
        found = attack(session, rows, PROBE)
        self.say("A neighbour knows one woman of the survey well. Only she fits this:")
        traits = found.her.split(" AND ")
        self.code(" AND ".join(traits[:4]) + "\nAND " + " AND ".join(traits[4:]))
        self.say("He wants what she told nobody: did she have an affair? He asks for two counts.")
        self.show(_evidence(found))
        apart, half = found.difference
        secret = found.exact[0] - found.exact[1]
        self.say(
            f"From exact answers he has her secret: {secret}, so she did. No single count named "
            "her, and hiding small groups would not have helped: both are large."
        )
        odds = math.ceil(100 * best_odds(found.epsilon, found.delta))
        self.say(
            f"From the releases he has {_signed(apart)} ± {half_width(half)}, and the truth is 0 "
            f"or 1. Whatever else he knows and however he computes, these two answers (ε = "
            f"{loss_text(found.epsilon)} in all) let him call it right at most {odds} times in "
            "100. A coin gets 50."
        )

    def end(self) -> None:
        """Say where everything is, and what to type next."""
        self.head("Yours to try")
        names = sorted(path.name for path in self.folder.iterdir() if ".ledger-" not in path.name)
        self.say(f"In {self.folder}: " + ", ".join(names) + ".")
        policy = f"--policy {self.folder / 'dither.toml'}"
        ask = '"SELECT AVG(educ) AS educ FROM affairs"'
        self.code(
            f"dither explain {ask} --epsilon 0.1 \\\n    {policy}\n"
            f"dither release {ask} --epsilon 0.1 \\\n    {policy}\n"
            f"dither ledger verify {self.folder / 'demo.ledger'}"
        )

    def beside(
        self, release: Release, truth: pl.DataFrame, heading: str, labels: Mapping[Any, str]
    ) -> list[bool]:
        """Print a release beside the truth; tell for each interval whether it holds it."""
        (key,) = release.keys
        known = {row[key]: row for row in truth.iter_rows(named=True)}
        table, held = new_table(), []
        table.add_column(heading, style="cyan")
        for name in release.outputs:
            table.add_column(name, justify="right")
            table.add_column("truth", justify="right", style="dim", header_style="dim")
        for row in release.frame.iter_rows(named=True):
            cells = [labels.get(row[key], str(row[key]))]
            for name in release.outputs:
                value, low, high = (row[name + end] for end in ("", "_lower", "_upper"))
                true = known[row[key]][name]
                held.append(low <= true <= high)
                cells += [interval(value, low, high), _like(true, value, low, high)]
            table.add_row(*cells)
        self.show(table)
        return held

    def keep(self, release: Release, name: str, title: str) -> None:
        """Write a release's answers and picture."""
        release.frame.write_csv(self.folder / f"{name}.csv")
        self.draw(release, name, title)

    def draw(self, result: Release | Preview, name: str, title: str) -> None:
        """Draw a result under a title."""
        result.plot(str(self.folder / f"{name}.png"), title=title)

    def head(self, title: str) -> None:
        """Begin a step."""
        self.step += 1
        self.out.print(f"\n{self.step}  {title}\n", style="bold")

    def say(self, text: str, style: str | None = None) -> None:
        """A paragraph, at a width that reads well."""
        text = text.replace("ε = ", "ε\u00a0=\u00a0")
        for line in textwrap.wrap(text, min(self.out.width, 80) - 3, break_on_hyphens=False):
            self.out.print("   " + line.replace("\u00a0", " "), style=style)
        self.out.print()

    def code(self, text: str) -> None:
        """Something that could be typed."""
        for line in text.splitlines():
            self.out.print("     " + line, style="cyan", soft_wrap=True)
        self.out.print()

    def show(self, table: Any) -> None:
        """A table, set in a little."""
        from rich.padding import Padding

        self.out.print(Padding(table, (0, 0, 0, 3), expand=False))
        self.out.print()


def _evidence(found: TwoCounts) -> Any:
    table = new_table()
    for name in ("", "exact", "released"):
        table.add_column(name, justify="right" if name else "left")
    (first, wide), (second, narrow) = found.released
    apart, half = found.difference
    rows: Sequence[tuple[str, int, str]] = (
        ("women who had an affair", found.exact[0], f"{first:,} ± {half_width(wide)}"),
        ("the same, leaving her out", found.exact[1], f"{second:,} ± {half_width(narrow)}"),
    )
    for label, exact, released in rows:
        table.add_row(label, f"{exact:,}", released)
    table.add_section()
    table.add_row(
        "difference", str(found.exact[0] - found.exact[1]), f"{_signed(apart)} ± {half_width(half)}"
    )
    return table


def _signed(value: int) -> str:
    return f"{value:,}".replace("-", "\N{MINUS SIGN}")


def _like(true: float, value: float, low: float, high: float) -> str:
    """The truth, to the digits of the released answer."""
    if isinstance(value, int):
        return f"{round(true):,}"
    half = (high - low) / 2
    return interval(true, true - half, true + half).split(" ±")[0]
