"""The survey of the demo: its rows, what its codebook makes public, and the truth."""

from __future__ import annotations

import re
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING

from dither._extras import extra_library
from dither.errors import DitherError

if TYPE_CHECKING:
    import polars as pl

__all__ = ["BUDGET", "FACTS", "MARK", "RATINGS", "fill", "survey"]

MARK = "# Written by `dither demo`.\n"

RATINGS = {1: "very poor", 2: "poor", 3: "fair", 4: "good", 5: "very good"}

BUDGET = {"epsilon": "2.0", "delta": "1e-6", "ledger": '"demo.ledger"'}

FACTS: Mapping[str, str] = {
    "rate_marriage": 'type = "integer", bounds = [1, 5]',
    "age": 'bounds = [17.5, 42], step = 0.5, unit = "years"',
    "yrs_married": "bounds = [0, 23], step = 0.5",
    "children": "bounds = [0, 5.5], step = 0.5",
    "religious": 'type = "integer", values = [1, 2, 3, 4]',
    "educ": 'type = "integer", bounds = [9, 20]',
    "occupation": 'type = "integer", bounds = [1, 6]',
    "occupation_husb": 'type = "integer", bounds = [1, 6]',
    "affairs": "bounds = [0, 60], step = 0.01",
}
"""The codebook and the form leave no other answers; the bound on affairs is a generous guess."""


def survey() -> pl.DataFrame:
    """The 6,366 answers, from the copy that statsmodels carries.

    Raises
    ------
    MissingLibraryError
        Where statsmodels is not installed.
    """
    import polars as pl

    datasets = extra_library("statsmodels.datasets", "demo", "the demo's survey comes with")
    return pl.DataFrame(
        {name: column.to_numpy() for name, column in datasets.fair.load_pandas().data.items()}
    )


def fill(draft: str) -> str:
    """A drafted policy with the owner's facts and budget filled in."""
    for name, value in BUDGET.items():
        draft, found = re.subn(rf"(?m)^{name} = .*$", f"{name} = {value}", draft, count=1)
        assert found, name
    for name, facts in FACTS.items():
        filled = f"{name} = {{ {facts}, nullable = false }}"
        draft, found = re.subn(rf"(?m)^{name} = \{{\}}.*$", filled, draft, count=1)
        assert found, name
    return MARK + draft


def at(policy: str, heading: str) -> str:
    """One section of a policy, without comments."""
    body = policy.split(heading, 1)[1].split("\n[", 1)[0]
    kept = [line for line in body.splitlines() if line and not line.startswith("#")]
    return "\n".join([heading, *kept])


def clear(folder: Path) -> None:
    """Make room for a run: remove what an earlier demo left, and nothing else.

    Raises
    ------
    DitherError
        Where the folder holds something else.
    """
    folder.mkdir(parents=True, exist_ok=True)
    policy = folder / "dither.toml"
    ours = policy.is_file() and policy.read_text(encoding="utf-8").startswith(MARK)
    if any(folder.iterdir()) and not ours:
        raise DitherError(f"{str(folder)!r} holds other files; name an empty folder with --dir")
    for path in folder.glob("demo.ledger*"):
        path.unlink()
