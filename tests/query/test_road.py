"""The page that walks a question to its answer names the files and functions that it passes."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

import polars as pl
import pytest

import dither as dt
from query.road import passed

PAGE = Path(__file__).parents[2] / "docs" / "ideas" / "road.md"
PACKAGES = {"query", "session", "policy", "plan", "sql", "ledger"}
"""Packages of which the page names the files; the others stand there by their own names."""

Road = dict[tuple[str, str], int]


@pytest.fixture(scope="module")
def roads(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Road]:
    """What the page's own question passes, once everything is imported."""
    folder = tmp_path_factory.mktemp("road")
    frame = pl.DataFrame({"region": ["north", "south"] * 50, "cost": [1.5, 9.0] * 50})
    frame.with_columns(age=pl.lit(40)).write_parquet(folder / "visits.parquet")
    (text,) = re.findall(r"```sql\n(.*?)```", PAGE.read_text(encoding="utf-8"), re.DOTALL)
    (policy,) = re.findall(r"```toml\n(.*?)```", PAGE.read_text(encoding="utf-8"), re.DOTALL)
    (folder / "dither.toml").write_text(policy, encoding="utf-8")
    with dt.open(folder / "dither.toml") as session:
        session.sql(text).release(epsilon=0.1)
        question, asked = passed(lambda: session.sql(text))
        _, released = passed(lambda: question.release(epsilon=0.5))
    return {"session.sql": asked, "release": released}


def steps(name: str) -> Iterator[tuple[str, list[str]]]:
    """By row of the table under a heading: the file, and the functions named beside it."""
    _, _, rest = PAGE.read_text(encoding="utf-8").partition(f"## What `{name}` passes\n")
    for row in re.findall(r"^\| `(\S+\.py)` \|(.*?)\|", rest.partition("\n## ")[0], re.MULTILINE):
        yield row[0], re.findall(r"`([\w.]+)`", row[1])


@pytest.mark.parametrize("name", ["session.sql", "release"])
def test_the_page_names_every_file(roads: dict[str, Road], name: str) -> None:
    """Of these packages each file that is passed, and no other; and says how many there are."""
    files = {file for file, _ in roads[name] if file.partition("/")[0] in PACKAGES}
    assert {file for file, _ in steps(name)} == files
    assert f"`{name}` passes {len(files)} files" in PAGE.read_text(encoding="utf-8")


@pytest.mark.parametrize("name", ["session.sql", "release"])
def test_the_page_names_functions_in_their_order(roads: dict[str, Road], name: str) -> None:
    """Each function ran, where the page says, and first ran in the page's order."""
    places = [(file, function) for file, functions in steps(name) for function in functions]
    assert len(places) == len(set(places)) > 15
    order = list(roads[name])
    assert [place for place in places if place not in order] == []
    assert places == sorted(places, key=order.index)


def test_the_page_names_the_other_packages(roads: dict[str, Road]) -> None:
    """A question of one table asks no engine; a release passes what the page lists."""
    packages = {name: {file.partition("/")[0] for file, _ in road} for name, road in roads.items()}
    text = PAGE.read_text(encoding="utf-8")
    (said,) = re.findall(
        r"^Beside these, a release passes (.*?)\.$", text, re.MULTILINE | re.DOTALL
    )
    listed = {name for name in packages["release"] - PACKAGES if not name.endswith(".py")}
    assert set(re.findall(r"`(\w+)/`", said)) == listed
    assert {n for n in packages["session.sql"] - PACKAGES if not n.endswith(".py")} <= {"numeric"}


def test_nothing_is_said_twice_before_the_charge(roads: dict[str, Road]) -> None:
    """The explanation, the certificate's data and the canonical text are made once."""
    for place in (
        ("query/_explain.py", "explain"),
        ("query/_certificate.py", "measurement_record"),
        ("session/_certificate.py", "certificate_data"),
        ("sql/write.py", "to_sql"),
        ("query/_noise.py", "plan_noise"),
    ):
        assert roads["release"][place] == 1, place


def test_another_road_is_found() -> None:
    """The tracer sees what runs and nothing else."""
    result, road = passed(lambda: dt.errors.nearest("ages", ["age"]))
    assert result == "; did you mean 'age'?"
    assert ("errors.py", "nearest") in road
    assert {file for file, _ in road} == {"errors.py"}
