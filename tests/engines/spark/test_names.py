"""Spark: columns of any name, from a file or a table to what is released, and over none."""

from __future__ import annotations

import polars as pl
import pytest

import dither as dt
from dither.errors import PolicyError, UnknownNameError
from spark_session import needs_spark, spark_session

pytestmark = [*needs_spark]

UNIT = "who's `it`?"
KEY = 'a "region"; DROP TABLE people -- 🏥'
PLAIN = ["a.b", "$spark.app.id}", "ä b\tc", "select", "a\\n", "u*", "%s{x}?:y$1", " ", "\u202ex/*"]
"""Beside the unit's and the key's; the last ones are no words at all."""

ROWS = 60


def frame(names: list[str]) -> pl.DataFrame:
    """Thirty people with two rows each; every other column holds its place and the row's number."""
    content: dict[str, list[object]] = {
        UNIT: [i // 2 for i in range(ROWS)],
        KEY: ["no'rth" if i % 3 else "so`uth" for i in range(ROWS)],
    }
    content |= {name: [10 * place + i % 2 for i in range(ROWS)] for place, name in enumerate(names)}
    return pl.DataFrame(content)


def quoted(name: str) -> str:
    """A name as SQL writes it."""
    return '"' + name.replace('"', '""') + '"'


def policy(tmp_path, source, names):
    """A policy that declares every column."""
    columns = {KEY: {"values": ["no'rth", "so`uth"]}, UNIT: {}}
    columns |= {name: {"bounds": [0, 200]} for name in names}
    table = {"unit": UNIT, "max_groups": 2, "max_rows": 2, "columns": columns}
    return {
        "budget": {"epsilon": 10**7, "delta": "1e-6", "ledger": str(tmp_path / "l.ledger")},
        "tables": {"people": table | ({"source": {"spark": source}} if source else {})},
    }


def stored(form: str, tmp_path, names) -> tuple[str | None, dict[str, object]]:
    """The rows as a file, as a table of the catalog or as Spark's frame: a source, or its frame."""
    path = tmp_path / "people.parquet"
    frame(names).write_parquet(path)
    if form == "file":
        return str(path), {"engines": {"spark": spark_session()}}
    made = spark_session().read.parquet(str(path))
    if form == "frame":
        return None, {"sources": {"people": made.where("1 = 1")}}
    made.write.mode("overwrite").format("parquet").saveAsTable("odd_people")
    return "odd_people", {"engines": {"spark": spark_session()}}


@pytest.mark.parametrize("form", ["file", "table", "frame"])
def test_columns_of_any_name(tmp_path, form):
    """As a unit, a key, in a condition, within units and summed: in SQL and in Python alike."""
    source, given = stored(form, tmp_path, PLAIN)
    sums = ", ".join(f"AVG({quoted(n)}) AS m{i}" for i, n in enumerate(PLAIN))
    by = f"{quoted(KEY)} AS k"
    with dt.open(policy(tmp_path, source, PLAIN), **given) as session:
        assert set(session.tables["people"].columns) == {UNIT, KEY, *PLAIN}
        some = f"FROM people WHERE {quoted(PLAIN[0])} < 9 GROUP BY k"
        release = session.sql(f"SELECT {by}, COUNT(*) AS n, {sums} {some}").release(10**6)
        found = {row["k"]: row for row in release.frame.to_dicts()}
        assert {k: row["n"] for k, row in found.items()} == {"no'rth": 40, "so`uth": 20}
        for place in range(len(PLAIN)):
            for row in found.values():
                assert row[f"m{place}"] == pytest.approx(10 * place + 0.5, abs=0.01)
        assert KEY in str(release.certificate.to_dict())
        built = session.table("people").group_by(KEY).agg(n=dt.count())
        assert sorted(built.release(10**5).frame["n"]) == [20, 40]
        within = (
            f"SELECT AVG(n) AS n FROM (SELECT {quoted(UNIT)}, COUNT(*) AS n FROM people"
            f" GROUP BY {quoted(UNIT)}) AS q"
        )
        assert session.sql(within).release(10**5).frame["n"][0] == pytest.approx(2, abs=0.01)
        with pytest.raises(UnknownNameError, match="unknown column"):
            session.sql('SELECT COUNT("a.c") AS n FROM people')
    if form == "table":
        spark_session().sql("DROP TABLE odd_people")


def test_names_that_readers_take_for_a_setting_are_left_out(tmp_path):
    """Spark would read NULL, or another column: refused as a unit above all, by name."""
    names = ["${user.name}", "x${y", "cost"]
    frame(names).write_parquet(tmp_path / "people.parquet")
    source, given = str(tmp_path / "people.parquet"), {"engines": {"spark": spark_session()}}
    for name in names[:2]:
        with pytest.raises(PolicyError, match="would read another column, or none; rename it"):
            dt.open(policy(tmp_path, source, [name]), **given)
        made = policy(tmp_path, source, [])
        made["tables"]["people"]["unit"] = name
        with pytest.raises(PolicyError, match="rename it"):
            dt.open(made, **given)
    with dt.open(policy(tmp_path, source, ["cost"]), **given) as session:
        found = session.sql("SELECT AVG(cost) AS c FROM people").release(10**6).frame["c"][0]
    assert found == pytest.approx(20.5, abs=0.01)


@pytest.mark.parametrize("form", ["file", "frame"])
def test_names_that_differ_in_case_alone_are_refused(tmp_path, form):
    """Spark takes them for one, and its readers fail: told when the policy is opened, whatever it
    declares, of a frame of a session that tells them apart too."""
    frame(["Age", "age", "cost"]).write_parquet(tmp_path / "people.parquet")
    source: str | None = str(tmp_path / "people.parquet")
    given: dict[str, object] = {"engines": {"spark": spark_session()}}
    if form == "frame":
        own = spark_session().newSession()
        own.conf.set("spark.sql.caseSensitive", "true")
        given, source = {"sources": {"people": own.read.parquet(source)}}, None
    for names in (["Age"], ["cost"]):
        with pytest.raises(PolicyError, match="two of its columns have one name but for upper"):
            dt.open(policy(tmp_path, source, names), **given)
