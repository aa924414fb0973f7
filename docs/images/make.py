"""Draw the pictures of the pages: ``python docs/images/make.py [ideas]``.

Those of README and tutorial are of releases, so their noise differs every time. The other pages'
are computed: each draws its own in a hidden block, which the tests run too.
"""

from __future__ import annotations

import contextlib
import sys
import tempfile
from pathlib import Path

import polars as pl
from PIL import Image
from statsmodels.datasets import fair

import dither as dt

HERE = Path(__file__).parent
COLUMNS = {
    "rate_marriage": {"type": "integer", "values": [1, 2, 3, 4, 5], "nullable": False},
    "age": {"bounds": [15, 60], "nullable": False, "unit": "years"},
    "yrs_married": {"bounds": [0, 30], "step": 0.5, "nullable": False, "unit": "years"},
}


def ideas() -> None:
    """Run the pages of ideas and attacks and keep the pictures that they draw."""
    sys.path.insert(0, str(HERE.parents[1] / "tests" / "docs"))
    from test_code_blocks import run_page

    drawn_here = [
        p
        for at in ("ideas", "inference", "attacks", "local", "learn")
        for p in (HERE.parent / at).glob("*.md")
    ]
    for page in sorted([*drawn_here, HERE.parent / "anonymize.md"]):
        with tempfile.TemporaryDirectory() as folder, contextlib.chdir(folder):
            run_page(page.read_text(), page.name, lambda *_: None)
            for drawn in Path().glob(f"{page.stem}*.png"):
                with Image.open(drawn) as picture:
                    picture.convert("RGB").quantize(128).save(HERE / drawn.name, optimize=True)


def releases() -> None:
    """Release what the pages release, and draw it."""
    survey = pl.from_pandas(fair.load_pandas().data)
    with tempfile.TemporaryDirectory() as folder:
        policy = {
            "budget": {"epsilon": 1, "delta": "1e-6", "ledger": f"{folder}/survey.ledger"},
            "tables": {"survey": {"columns": COLUMNS}},
        }
        with dt.open(policy, sources={"survey": survey}) as session:
            rows = session.table("survey")
            counted = {"women": dt.count(), "married": dt.mean("yrs_married")}
            whole = rows.group_by("rate_marriage").agg(**counted)
            whole.release(epsilon=0.5).plot(str(HERE / "readme.png"))
            older = rows.filter("age >= 20").group_by("rate_marriage").agg(**counted)
            older.release(epsilon=0.3).plot(str(HERE / "tutorial.png"))


if __name__ == "__main__":
    ideas()
    if sys.argv[1:] != ["ideas"]:
        releases()
