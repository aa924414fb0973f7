"""The survey behind a service, with three people who have keys: ``dither serve --demo``."""

from __future__ import annotations

import os
import tempfile
from pathlib import Path

from dither.examples.demo.data import fill, survey

__all__ = ["PEOPLE", "served_policy"]

PEOPLE = {"olive": "owner", "ana": "analyst", "audrey": "auditor"}

SERVICE = """
[service]
name = "affairs"
approve_above = { epsilon = 1 }
"""


def served_policy() -> Path:
    """Write the survey and its policy into a new folder.

    Returns
    -------
    Path
        Of the policy.

    Raises
    ------
    MissingLibraryError
        Where statsmodels is not installed.
    """
    import dither as dt

    folder = Path(tempfile.mkdtemp(prefix="dither-serve-demo-"))
    survey().write_parquet(folder / "affairs.parquet")
    here = Path.cwd()
    try:
        os.chdir(folder)
        text = fill(dt.draft_policy("affairs.parquet"))
    finally:
        os.chdir(here)
    policy = folder / "dither.toml"
    policy.write_text(text + SERVICE, encoding="utf-8")
    return policy
