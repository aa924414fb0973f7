"""An assessment of a file on the page: what may be chosen, how it goes, and who may."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pytest

pytest.importorskip("playwright", reason="the browser extra is not installed")

from dither.service.page._assessing import runs_of
from service.hospital import Served
from service.loopback import OnLoopback, serving, write
from service.page.visitor import Visitor


def people(n: int, seed: int) -> pl.DataFrame:
    """Rows of people whom a copy would give away."""
    rng = np.random.default_rng(seed)
    return pl.DataFrame(
        {
            "age": rng.integers(18, 90, n),
            "zip": rng.integers(1000, 9999, n),
            "income": rng.normal(50, 15, n).round(2),
            "<b>ill</b>": rng.integers(0, 2, n),
        }
    )


@pytest.fixture
def clinic(tmp_path: Path) -> Any:
    """A service beside whose policy files lie that are to be published."""
    people(300, 1).write_csv(tmp_path / "people.csv")
    people(300, 1).sample(fraction=1, shuffle=True, seed=3).write_csv(tmp_path / "copy.csv")
    people(300, 2).write_csv(tmp_path / "held.csv")
    with serving(write(tmp_path)) as found:
        yield found


def test_an_owner_sees_what_a_file_gives_away(
    visit: Callable[..., Visitor], clinic: OnLoopback, picture: Callable[..., Any]
) -> None:
    """A shuffled copy lights up; the report stays, and names in it are text."""
    page = visit("olive", service=clinic).go("attack")
    for name, file in (("original", "people"), ("release", "copy"), ("control", "held")):
        page.select_option(f"#{name}", f"{file}.csv")
    page.get_by_role("button", name="Attack it").click()
    page.wait_for_selector("article.card", timeout=300_000)
    assert "gives away" in page.locator("article .note").inner_text()
    assert page.locator("article b", has_text="ill").count() == 0
    picture(page, "attack")
    page.reload()
    page.get_by_role("link", name="copy.csv ← people.csv").click()
    page.wait_for_selector("article.card")


def test_what_cannot_be_assessed_is_said(visit: Callable[..., Visitor], clinic: OnLoopback) -> None:
    """The same file twice, and an epsilon that is none."""
    visitor = visit("olive", service=clinic)
    visitor.expected.add("400")
    page = visitor.go("attack")
    page.select_option("#original", "people.csv")
    page.select_option("#release", "people.csv")
    page.get_by_role("button", name="Attack it").click()
    page.wait_for_selector("#run .refusal")
    assert "different files" in page.locator("#run .refusal").inner_text()


def test_files_elsewhere_cannot_be_named(hospital: Served) -> None:
    """Paths that lead out, options in place of names, and what is no data."""
    outside = hospital.desk.path.parent.parent / "outside.csv"
    outside.write_text("a\n1\n")
    for name in ("../outside.csv", str(outside), "--help", "visits.toml", "/etc/passwd", "*.csv"):
        found = hospital.http.post(
            "/p/visits/attack",
            data={"original": "visits.parquet", "release": name},
            headers={"authorization": f"Bearer {hospital.keys['olga']}"},
        )
        assert found.status_code == 400, name
        assert "source must be a data file" in found.text
    assert not runs_of(str(hospital.desk.path))
