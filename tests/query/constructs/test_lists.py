"""Columns of lists: from policy and source to a release, and what is refused before."""

from __future__ import annotations

import datetime as dates
import re

import polars as pl
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import dither as dt
from dither.errors import PolicyError, QueryError, UnknownNameError, UnsupportedError

LARGE = 10**5
ROWS = pl.DataFrame(
    {
        "pid": ["a", "a", "b", "c", "d", "e"],
        "region": ["north", "south", "north", "north", "south", "south"],
        "tags": [["x", "y"], ["x", None, "odd"], [], None, ["y"] * 10, ["x"]],
        "marks": [[1, 2], [3], [], [None, 9], None, [100]],
        "at": [[dates.datetime(2024, 1, 1)]] * 6,
    }
)


def policy(folder, **changes):
    """Units are people; declarations of lists are about their elements."""
    columns = {
        "region": {"values": ["north", "south"]},
        "tags": {"values": ["x", "y", "z"]},
        "marks": {"bounds": [0, 10]},
    }
    table = {"unit": "pid", "max_groups": 2, "max_rows": 3, "columns": columns} | changes
    ledger = str(folder / "lists.ledger")
    return {
        "budget": {"epsilon": 10**6, "delta": "1e-3", "ledger": ledger},
        "tables": {"t": {key: value for key, value in table.items() if value is not None}},
    }


@pytest.fixture(params=["frame", "fixed", "parquet", "integers", "duckdb", "arrow"])
def session(request, tmp_path):
    """The same rows from each source; with people named by text, by Arrow's reader."""
    rows, declared = ROWS, policy(tmp_path)
    source = rows
    match request.param:
        case "integers":
            rows = rows.with_columns(pid=pl.col("pid").rank("dense").cast(pl.Int64))
            rows.write_parquet(tmp_path / "t.parquet")
            source = tmp_path / "t.parquet"
        case "parquet":
            rows.write_parquet(tmp_path / "t.parquet")
            source = tmp_path / "t.parquet"
        case "fixed":
            # Lists of one length are a type of their own.
            marks = pl.Series("marks", [[1, 2], [3, None], None, [None, 9], None, [100, None]])
            source = rows.with_columns(marks.cast(pl.Array(pl.Int64, 2)))
        case "arrow":
            rows.write_ipc(tmp_path / "t.arrow")
            source = tmp_path / "t.arrow"
        case "duckdb":
            import duckdb

            with duckdb.connect(str(tmp_path / "t.duckdb")) as made:
                made.register("rows", rows.to_arrow())
                made.execute("CREATE TABLE t AS SELECT * FROM rows")
            declared["tables"]["t"]["source"] = {"duckdb": "t.duckdb", "table": "t"}
            declared["tables"]["t"]["source"]["duckdb"] = str(tmp_path / "t.duckdb")
            source = None
    with dt.open(declared, sources={} if source is None else {"t": source}) as opened:
        yield opened


def test_elements_are_counted_within_limits(session):
    """Ten elements of one person count three times in a group; other values are NULL."""
    found = session.sql("SELECT tag, COUNT(*) AS n FROM t, UNNEST(tags) AS u(tag) GROUP BY tag")
    assert found.release(LARGE).frame["n"].to_list() == [3, 4, 0]
    more = found.release(LARGE, max_rows=10).frame["n"].to_list()
    assert more == [3, 11, 0]
    (row,) = session.sql(
        "SELECT COUNT(*) AS n, COUNT(x) AS k, COUNT(DISTINCT pid) AS p FROM t, UNNEST(tags) AS x"
    ).release(LARGE, max_rows=20).frame.rows(named=True)  # fmt: skip
    assert (row["n"], row["k"], row["p"]) == (16, 14, 3)


def test_elements_are_numbers_within_bounds(session):
    """Sums clamp them, conditions see them as they are, and groups within people count them."""
    (row,) = session.sql(
        "SELECT SUM(m) AS s, COUNT_IF(m > 10) AS k FROM t, UNNEST(t.marks) AS u(m)"
    ).release(LARGE).frame.rows(named=True)  # fmt: skip
    assert (round(row["s"]), row["k"]) == (1 + 2 + 3 + 9 + 10, 1)
    (row,) = session.sql(
        "SELECT AVG(CLAMP(n, 0, 20)) AS m FROM (SELECT pid, COUNT(tag) AS n FROM t, UNNEST(tags) "
        "AS u(tag) GROUP BY pid)"
    ).release(LARGE).frame.rows(named=True)  # fmt: skip
    assert row["m"] == pytest.approx((3 + 10 + 1) / 3, abs=0.01)


def test_both_doors_make_one_question(session):
    """In Python, and written back as SQL."""
    asked = session.sql("SELECT tag, COUNT(*) AS n FROM t, UNNEST(tags) AS tag GROUP BY tag")
    built = session.table("t").unnest("tags", "tag").group_by("tag").agg(n=dt.count())
    assert built._plan.query == asked._plan.query
    assert session.sql(asked.sql)._plan.query == asked._plan.query
    assert "CROSS JOIN UNNEST(t.tags) AS tag(tag)" in asked.sql
    text = str(asked.explain(1))
    assert "a row for each element of t.tags" in text
    assert "count of rows" in text


LONG = {"pid": pl.lit("z"), "tags": pl.lit(["y"] * 3000), "region": pl.lit("x")}
HOSTILE = pl.concat([ROWS, ROWS[-1:].with_columns(**LONG)])
"""One more person, whose list has 3,000 elements: four beside one another would be 10^14 rows."""


@pytest.mark.parametrize("lists", [1, 2, 3, 4])
def test_one_row_decides_nothing_but_its_own_part(tmp_path, lists):
    """However many lists stand beside one another: of a row so many elements count."""
    listed = ", ".join(f"UNNEST(tags) t{i}(x{i})" for i in range(lists))
    ask = f"SELECT COUNT(*) AS n, MEDIAN(a) AS m FROM (SELECT pid, 1 AS a FROM t, {listed}) AS q"
    with dt.open(policy(tmp_path, max_rows=10_000), sources={"t": HOSTILE}) as session:
        (row,) = session.sql(ask).release(LARGE).frame.rows(named=True)
    most = {1: 3000, 2: 100, 3: 21, 4: 10}[lists]
    assert row["n"] == sum(n**lists for n in (2, 3, 10, 1, min(most, 3000)))


def test_what_a_condition_leaves_out_is_not_unnested(tmp_path):
    """The row that WHERE leaves out has twelve times two elements, and takes no part."""
    columns = {"tags": {"values": ["x", "y", "z"], "max_items": 2}}
    listed = ", ".join(f"UNNEST(tags) t{i}(x{i})" for i in range(13))
    ask = f"SELECT COUNT(*) AS n FROM t, {listed} WHERE region = 'north'"
    with dt.open(policy(tmp_path, columns=columns, max_rows=10_000), sources={"t": HOSTILE}) as s:
        question = s.sql(ask)
        assert question.release(LARGE).frame["n"].to_list() == [2**13]
        shown = str(question.explain(1))
    assert shown.index("a row for each of the first 2 elements") < shown.index("where region")


def test_what_counts_of_lists_is_explained(tmp_path):
    """Elements of each list and rows of each person, as declared or by themselves."""
    with dt.open(policy(tmp_path), sources={"t": ROWS}) as session:
        asked = session.sql("SELECT COUNT(*) AS n FROM t, UNNEST(tags) AS u(x), UNNEST(marks) v(y)")
        shown = re.sub(r"\W+", " ", str(asked.explain(1)))
    assert shown.count("at most 100 elements of a list its first ones at most 10 000 rows of") == 2
    columns = {"tags": {"max_items": 7}}
    declared = policy(tmp_path, columns=columns, max_unnest_rows=50)
    declared["budget"]["ledger"] = str(tmp_path / "other.ledger")
    with dt.open(declared, sources={"t": ROWS}) as session:
        shown = str(session.sql("SELECT COUNT(*) AS n FROM t, UNNEST(tags) AS u(x)").explain(1))
    assert "at most 7 elements of a list, its first ones; at most 50 rows of one pid" in re.sub(
        r"[\s│]+", " ", shown
    )


@pytest.mark.parametrize("most", [0, 10**6 + 1, "many", True])
def test_a_policy_says_how_many_rows_lists_may_give(tmp_path, most):
    """A whole number up to a million, and nothing where a row is a person."""
    with pytest.raises(
        PolicyError, match="max_unnest_rows must be a whole number from 1 to 1000000"
    ):
        dt.open(policy(tmp_path, max_unnest_rows=most), sources={"t": ROWS})
    alone = policy(tmp_path, unit=None, max_groups=None, max_rows=None, max_unnest_rows=5)
    with pytest.raises(PolicyError, match="max_unnest_rows has no meaning where a row is a person"):
        dt.open(alone, sources={"t": ROWS})


@pytest.mark.parametrize(
    ("sql", "kind", "said"),
    [
        (
            "SELECT COUNT(*) FROM t, UNNEST(tags) a, UNNEST(tags) b, UNNEST(tags) c, "
            "UNNEST(tags) d, UNNEST(tags) e",
            QueryError,
            "UNNEST of 5 lists beside one another",
        ),
        ("SELECT tags, COUNT(*) FROM t GROUP BY tags", UnknownNameError, r"is a list; .* UNNEST"),
        ("SELECT COUNT(tags) FROM t", UnknownNameError, "is a list"),
        ("SELECT COUNT(*) FROM t, UNNEST(region) AS u(x)", QueryError, "not a list"),
        ("SELECT COUNT(*) FROM t, UNNEST(tag) AS u(x)", UnknownNameError, "unknown column 'tag'"),
        ("SELECT COUNT(*) FROM t, UNNEST(at) AS u(x)", QueryError, "."),
        ("SELECT COUNT(*) FROM t, UNNEST(tags)", QueryError, "needs a name"),
        ("SELECT COUNT(*) FROM t, UNNEST(tags) AS u(x, y)", QueryError, "one column"),
        ("SELECT COUNT(*) FROM t, UNNEST(tags, marks) AS u(x)", UnsupportedError, "several lists"),
        ("SELECT COUNT(*) FROM t, UNNEST([1, 2]) AS u(x)", UnsupportedError, "takes a column"),
        ("SELECT COUNT(*) FROM t, UNNEST(tags) AS t(x)", QueryError, "two tables go by"),
        ("SELECT COUNT(*) FROM t LEFT JOIN UNNEST(tags) AS u(x) ON TRUE", UnsupportedError, "left"),
        ("SELECT COUNT(*) FROM t, UNNEST(tags) WITH ORDINALITY AS u(x)", UnsupportedError, "."),
        ("SELECT UNNEST(tags), COUNT(*) FROM t GROUP BY 1", UnsupportedError, "name y"),
        ("SELECT COUNT(*) FROM t, UNNEST(tags) AS u(x) JOIN t AS s USING (pid)", QueryError, "cut"),
    ],
)
def test_what_cannot_be_unnested_is_named(tmp_path, sql, kind, said):
    """Before anything is charged."""
    with (
        dt.open(policy(tmp_path, max_join_rows=2), sources={"t": ROWS}) as session,
        pytest.raises(kind, match=said),
    ):
        session.sql(sql)


def test_a_row_that_is_a_person_has_no_elements(tmp_path):
    """It would be several people; the refusal says what to declare."""
    declared = policy(tmp_path, unit=None, max_groups=None, max_rows=None)
    with (
        dt.open(declared, sources={"t": ROWS}) as session,
        pytest.raises(QueryError, match=r"UNNEST\(tags\): a row of 't' is a person"),
    ):
        session.sql("SELECT COUNT(*) FROM t, UNNEST(tags) AS u(x)")


def test_a_row_that_is_a_person_counts_with_so_many_elements(tmp_path):
    """The first ones; noise is for one of them, and the charge for all that may count."""
    declared = policy(tmp_path, unit=None, max_groups=None, max_rows=None)
    declared["tables"]["t"]["columns"]["tags"]["max_items"] = 3
    with dt.open(declared, sources={"t": ROWS}) as session:
        question = session.sql(
            "SELECT tag, COUNT(*) AS n FROM t, UNNEST(tags) AS tag(tag) GROUP BY 1"
        )
        built = session.table("t").unnest("tags", "tag").group_by("tag").agg(n=dt.count())
        assert session.sql(question.sql)._plan == question._plan == built._plan
        text = re.sub(r"\W+", " ", str(question.explain(epsilon=3)))
        assert "of the first 3 elements of t tags stability 3 the elements of a row" in text
        assert "charged for 3 elements the most that one row of t has" in text
        release = question.release(LARGE, 0)
        assert dict(release.frame.select("tag", "n").iter_rows()) == {"x": 3, "y": 4, "z": 0}
        assert release.certificate.to_dict()["loss"]["epsilon"] == str(LARGE)
        assert question.loss(3, 0).epsilon(0).upper == pytest.approx(3)
        alone = session.sql("SELECT region, COUNT(*) AS n FROM t GROUP BY region")
        thrice = [q.preview(e, 0).frame["n"][0] for q, e in ((question, 3), (alone, 1))]
        assert thrice[0] == thrice[1]
        with pytest.raises(QueryError, match="UNNEST"):
            session.table("t").unnest("tags", "tag").infer(epsilon=1).mean("1")


@pytest.mark.parametrize(
    ("columns", "said"),
    [
        ({"marks": {"values": ["x"]}}, "marks"),
        ({"region": {"values": ["north"], "max_items": 2}}, "for columns that hold lists"),
        ({"tags": {"bounds": [0, 1]}}, "tags"),
        ({"at": {"values": ["x"]}}, "at"),
        (
            {"tags": {"type": "date", "bounds": [dates.date(2024, 1, 1), dates.date(2024, 2, 1)]}},
            "",
        ),
    ],
)
def test_what_is_declared_is_of_elements(tmp_path, columns, said):
    """One of another kind is refused as the policy is opened; texts may be read as days."""
    if said:
        with pytest.raises(PolicyError, match=said):
            dt.open(policy(tmp_path, columns=columns), sources={"t": ROWS})
        return
    with dt.open(policy(tmp_path, columns=columns), sources={"t": ROWS}) as session:
        asked = session.sql("SELECT COUNT(x) AS n FROM t, UNNEST(tags) AS u(x)")
        assert asked.release(LARGE).frame["n"].to_list() == [0]


@pytest.mark.parametrize("unit", ["text", "integer"])
def test_text_that_is_not_valid_fails_nothing(tmp_path, unit):
    """In a list of a file its bytes become question marks, whoever reads the file."""
    raw = pa.array([[b"x", b"\xff\xfe"], [b"\xc3("], None], pa.list_(pa.binary()))
    words = _unchecked(raw)
    people = pa.array(["a", "b", "c"] if unit == "text" else [1, 2, 3])
    pq.write_table(pa.table({"pid": people, "tags": words}), tmp_path / "t.parquet")
    declared = policy(tmp_path, columns={})
    with dt.open(declared, sources={"t": tmp_path / "t.parquet"}) as session:
        (row,) = session.sql(
            "SELECT COUNT(w) AS n, COUNT_IF(w = 'x') AS x, COUNT_IF(w LIKE '?%') AS odd "
            "FROM t, UNNEST(tags) AS u(w)"
        ).release(LARGE).frame.rows(named=True)  # fmt: skip
    assert (row["n"], row["x"], row["odd"]) == (3, 1, 2)


def test_text_that_is_not_valid_in_a_frame_is_null(tmp_path):
    """As in a column of texts."""
    words = _unchecked(pa.array([[b"x", b"\xff"], None, []], pa.list_(pa.binary())))
    table = pa.table({"pid": pa.array(["a", "b", "c"]), "tags": words})
    with dt.open(policy(tmp_path, columns={}), sources={"t": table}) as session:
        (row,) = session.sql(
            "SELECT COUNT(*) AS n, COUNT(w) AS k FROM t, UNNEST(tags) AS u(w)"
        ).release(LARGE).frame.rows(named=True)  # fmt: skip
    assert (row["n"], row["k"]) == (2, 1)


def _unchecked(raw: pa.ListArray) -> pa.ListArray:
    """Bytes as text, whatever they are."""
    inner = raw.values
    text = pa.Array.from_buffers(pa.string(), len(inner), inner.buffers(), inner.null_count)
    return pa.ListArray.from_arrays(raw.offsets, text, mask=raw.is_null())
