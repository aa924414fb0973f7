"""The hash of an answer: one for all its formats, for every kind, and another after a change."""

from __future__ import annotations

import csv
import datetime as day
import io
import json
from pathlib import Path
from typing import Any

import polars as pl
import pytest

import dither as dt
from dither.errors import ArgumentError, CertificateError
from dither.session._answer import answer_hash, check_answer, read_answer

TEXT = """SELECT region, COUNT(*) AS n, AVG(cost) AS m, COUNT(*) > 200 AS many
FROM visits GROUP BY region ORDER BY n DESC"""

COLUMNS: list[dict[str, Any]] = [
    {"name": "who", "kind": "text", "values": ["a,b", 'say "hi"\nthere', None, "", "é\u2028x"]},
    {"name": "n", "kind": "integer", "values": [3, -5, None, 2**62, 0]},
    {"name": "m", "kind": "real", "values": [0.1, "inf", None, -0.0, 1e300]},
    {"name": "on", "kind": "boolean", "values": [True, False, None, True, False]},
    {"name": "day", "kind": "date", "values": ["2024-01-31", "0999-12-31", None, None, None]},
    {
        "name": "at",
        "kind": "timestamp",
        "values": ["2024-01-31T12:00:00", "2024-01-31T12:00:00.000001", None, None, None],
    },
]
CONTENT = {"columns": COLUMNS, "outputs": ["n", "m"], "notes": ["x"]}


def frame() -> pl.DataFrame:
    """The same as a release shows it."""
    return dt.Release(CONTENT | {"keys": ["who"]}).frame


def files(folder: Path, found: pl.DataFrame) -> list[Path]:
    """A frame in every format that people write it in."""
    found.write_csv(folder / "a.csv")
    found.write_parquet(folder / "a.parquet")
    found.write_json(folder / "a.json")
    return [folder / name for name in ("a.csv", "a.parquet", "a.json")]


def test_all_formats_of_a_table_have_one_hash(tmp_path: Path) -> None:
    """Of every kind of column, with what each format writes otherwise or not at all."""
    expected = answer_hash(CONTENT)
    table = frame()
    for given in (*files(tmp_path, table), table, table.to_arrow(), CONTENT, table.to_dicts()):
        check_answer(expected, read_answer(given))
    pandas = pytest.importorskip("pandas")
    table.write_csv(tmp_path / "b.csv")
    again = pandas.read_csv(tmp_path / "a.csv")
    again.to_csv(tmp_path / "b.csv", index=False)
    check_answer(expected, read_answer(table.to_pandas()))
    # 2^62 has another text once pandas read it beside a missing value.
    short = {**CONTENT, "columns": [c for c in COLUMNS if c["name"] != "n"]}
    again.drop(columns="n").to_csv(tmp_path / "b.csv", index=False)
    check_answer(answer_hash(short), read_answer(tmp_path / "b.csv"))


@pytest.mark.parametrize("ending", ["csv", "parquet", "json"])
def test_any_change_of_a_table_is_found(tmp_path: Path, ending: str) -> None:
    """A cell, a row more or less, two rows changed for one another, a column's name."""
    expected, table = answer_hash(CONTENT), frame()
    other = {
        "who": "z",
        "n": 4,
        "m": 0.2,
        "on": None,
        "day": day.date(2024, 1, 30),
        "at": day.datetime(2024, 1, 31, 12, 0, 1),
    }
    changed = [
        table.with_row_index("i")
        .with_columns(pl.when(pl.col("i") == 0).then(pl.lit(v)).otherwise(pl.col(c)).alias(c))
        .drop("i")
        .cast(table.schema)  # type: ignore[arg-type]
        for c, v in other.items()
    ]
    changed += [table.head(4), table.vstack(table.tail(1)), table.reverse()]
    changed += [table.rename({"n": "k"}), table.drop("n"), table.with_columns(k=pl.lit(1))]
    for one in changed:
        path = next(p for p in files(tmp_path, one) if p.suffix == f".{ending}")
        with pytest.raises(CertificateError, match="not the one that the certificate was issued"):
            check_answer(expected, read_answer(path))
    # The order of columns says nothing.
    turned = table.select(reversed(table.columns))
    check_answer(expected, read_answer(files(tmp_path, turned)[0]))


def test_a_table_without_rows_and_one_without_a_column(tmp_path: Path) -> None:
    """Headers alone; JSON has not even these."""
    nobody = {**CONTENT, "columns": [{**c, "values": []} for c in COLUMNS]}
    empty = frame().clear()
    for path in files(tmp_path, empty):
        check_answer(answer_hash(nobody), read_answer(path))
    with pytest.raises(CertificateError, match="it has 0 rows, and 5 were released"):
        check_answer(answer_hash(CONTENT), read_answer(tmp_path / "a.csv"))
    alone = {**CONTENT, "columns": COLUMNS[1:2]}
    for path in files(tmp_path, frame().select("n")):
        check_answer(answer_hash(alone), read_answer(path))


def test_how_a_number_is_written_says_nothing() -> None:
    """Other programs write another text for the same number, and no other for another."""
    expected = answer_hash({"columns": COLUMNS[1:4], "outputs": ["n"]})

    def written(rows: list[list[str]]) -> Any:
        into = io.StringIO()
        csv.writer(into).writerows([["n", "m", "on"], *rows])
        return {"rows": list(csv.DictReader(io.StringIO(into.getvalue())))}

    rows = [
        ["3.0", "1e-1", "True"],
        ["-5", "inf", "FALSE"],
        ["", "", ""],
        [str(2**62), "0", "true"],
        ["+0", "1e+300", "false"],
    ]
    check_answer(expected, read_answer(written(rows)))
    for place, text in ((0, "3.1"), (0, "three"), (1, "0.1000000001"), (2, "1")):
        other = [list(row) for row in rows]
        other[0][place] = text
        with pytest.raises(CertificateError):
            check_answer(expected, read_answer(written(other)))


def test_what_is_no_answer_is_refused(tmp_path: Path) -> None:
    """By name, and nothing of it is shown."""
    (tmp_path / "bad.csv").write_text('a,b\n1\n"')
    (tmp_path / "bad.parquet").write_bytes(b"PAR1")
    (tmp_path / "bad.json").write_text("{")
    for name in ("bad.csv", "bad.parquet", "bad.json"):
        with pytest.raises(ArgumentError, match="cannot be read as CSV, Parquet or JSON"):
            read_answer(tmp_path / name)
    with pytest.raises(ArgumentError, match="there is no file"):
        read_answer(tmp_path / "none.csv")
    with pytest.raises(ArgumentError, match="answer must be"):
        read_answer(3)
    (tmp_path / "text.json").write_text('"hello"')
    with pytest.raises(CertificateError, match="of a table, and the answer is none"):
        check_answer(answer_hash(CONTENT), read_answer(tmp_path / "text.json"))
    with pytest.raises(CertificateError, match="not of a table"):
        check_answer(answer_hash({"sums": [1]}), frame().to_dict(as_series=False) and CONTENT)


def test_data_have_one_hash_whatever_writes_their_numbers() -> None:
    """1 and 1.0 are one, and not the text; another value or another name is another."""
    first = answer_hash({"sums": [1, 2.5, True, None], "certificate": 3})
    assert first == answer_hash({"sums": [1.0, 2.5, True, None]})
    for other in ({"sums": ["1", 2.5, True, None]}, {"sums": [1, 2.5, 1, None]}, {"sum": []}):
        assert answer_hash(other) != first


def test_every_kind_of_release_agrees_with_its_certificate(session, tmp_path) -> None:
    """Asked of the object and of its files, with the ledger; and no other one does."""
    table = session.table("visits")
    released = session.sql(TEXT).release("0.5")
    some = table.select("region", "age", "cost")
    found = [
        released,
        session.learn("visits", "cost", epsilon="0.1"),
        table.infer(epsilon="0.5").mean("cost").release(),
        some.synthesize(epsilon="0.5"),
        some.marginals([["region"]], epsilon="0.5").release(),
        table.learn(epsilon="0.5").naive_bayes("smoker ~ age + region").release(),
    ]
    ledger = tmp_path / "visits.ledger"
    for one in found:
        assert dt.verify(one.certificate, ledger, answer=one).ok
    for path in files(tmp_path, released.frame):
        assert dt.verify(released.certificate, ledger, answer=path).ok
    found[3].save(tmp_path / "made.model")
    found[5].save(tmp_path / "bayes.json")
    found[4].certificate.save_answer(found[4], tmp_path / "marginals.json")
    for at, name in ((3, "made.model"), (4, "marginals.json"), (5, "bayes.json")):
        assert dt.verify(found[at].certificate, ledger, answer=tmp_path / name).ok
        with pytest.raises(CertificateError):
            dt.verify(found[at].certificate, ledger, answer=released)
        with pytest.raises(CertificateError):
            dt.verify(released.certificate, ledger, answer=tmp_path / name)
    assert session.sql(TEXT).release("0.5", token="a").certificate.content["answer"]["rows"] > 0
    with pytest.raises(CertificateError, match="a value differs"):
        dt.verify(released.certificate, ledger, answer=session.sql(TEXT).release("0.5"))
    with pytest.raises(ArgumentError, match="what a release gave"):
        released.certificate.save_answer(3, tmp_path / "x.json")
    with pytest.raises(CertificateError, match="not of a table"):
        found[4].certificate.save_answer(released, tmp_path / "x.json")
    assert not (tmp_path / "x.json").exists()


def test_a_ledger_whose_answer_was_exchanged_does_not_agree(session, tmp_path, monkeypatch) -> None:
    """The certificate holds it, whatever the ledger's own hashes say."""
    ledger = session.ledger
    released = session.sql("SELECT COUNT(*) AS n FROM visits").release(1)
    real = type(ledger).entries

    def exchanged(book: Any, *given: Any) -> Any:
        found = real(book, *given)
        for entry in found:
            if entry.answer is not None:
                content = json.loads(entry.answer)
                content["columns"][0]["values"][0] += 1
                object.__setattr__(entry, "answer", json.dumps(content))
        return found

    assert dt.verify(released.certificate, ledger).ok
    monkeypatch.setattr(type(ledger), "entries", exchanged)
    with pytest.raises(CertificateError, match="ledger's answer is not the one"):
        dt.verify(released.certificate, ledger)
