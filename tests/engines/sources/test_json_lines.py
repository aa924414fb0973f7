"""JSON lines: one line is one row, and columns and types are those that the policy declares."""

from __future__ import annotations

import gzip
import json

import pyarrow as pa
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import dither as dt
from dither.engines.duckdb import FileSource
from dither.errors import PolicyError
from dither.plan.schema import ColumnFacts, Kind
from engines.sources.test_sources import groups

TEXT = ColumnFacts("b", Kind.TEXT)


def lines(folder, content: bytes, name: str = "t.jsonl", unit=None, **columns) -> FileSource:
    """A file as a source with a column ``b``."""
    path = folder / name
    if name.endswith(".zst"):
        with pa.CompressedOutputStream(str(path), "zstd") as out:
            out.write(content)
    else:
        path.write_bytes(gzip.compress(content) if name.endswith(".gz") else content)
    return FileSource(path, "jsonl", unit=unit, columns={"b": None, **columns})


def test_members_of_objects(tmp_path):
    """Texts, numbers and truth values as they print; all else is NULL."""
    content = (
        b'{"b": "x"}\n{"b": 1.50}\r\n{"b": 12345678901234567890123}\n{"b": true}\n{"b": null}\n{}\n'
        b'{"b": [1]}\n{"b": {"b": "x"}}\n{"b": ""}\n{"b": "null"}\n{"b": "1.50"}\n{"B": "y"}\n\n'
        b'  {"a": 1, "b" : "x"}  \n{"b": "\\u00e9"}\n{"b": "first", "b": "second"}\n'
    )
    expected = {
        **{
            "x": 2,
            "1.5": 1,
            "1.50": 1,
            "12345678901234567890123": 1,
            "true": 1,
            "": 1,
            "null": 1,
            "é": 1,
        },
        **{"first": 1},
    }
    for name in ("t.jsonl", "t.ndjson", "t.jsonl.gz", "t.ndjson.zst"):
        found = groups(lines(tmp_path, content, name), TEXT)
        nothing = found.pop(None)
        assert found == expected
        assert nothing in (5, 6)


def test_names_of_members_are_taken_as_they_are(tmp_path):
    """Slashes, tildes, quotes, dots and dollars: no name is a path into an object."""
    for name in ("a/b", "a~b", "a~1b", 'a"b', "a.b", "$.b", "it's", "[0]", "0", "😀"):
        path = tmp_path / "t.jsonl"
        path.write_text(json.dumps({name: "x", "a": {"b": "y"}, "b": "z"}) + '\n["x"]\n')
        source = FileSource(path, "jsonl", columns={name: None})
        assert groups(source, ColumnFacts(name, Kind.TEXT)) == {"x": 1, None: 1}


HOSTILE = [
    b"", b"{", b'{"b": ', b"nonsense", b"[1, 2]", b"7", b'"b"', b"null", b'{"b": "open',
    b'{"b": "\\ud800"}', b'{"b": "\\x"}', b'{"b": 1e999999}', b'{"b": NaN}', b"\xff\xfe",
    b'{"b": "a\x00c"}', b"[" * 100_000, b'{"b":' * 20_000, b'{"b": ' + b"9" * 10_000 + b"}",
    b'{"c": "' + b"x" * 3_000_000 + b'"}', b"\x02\x03,;\"'", b'{"b": 1} {"b": 2}', b"{'b': 1}",
]  # fmt: skip


@pytest.mark.parametrize("hostile", range(len(HOSTILE)))
def test_a_malformed_line_fails_nothing_and_changes_no_other(tmp_path, hostile):
    """Whatever stands between them, twenty thousand other rows count as before."""
    rows = b'{"b": "x"}\n' * 10_000
    found = groups(lines(tmp_path, rows + HOSTILE[hostile] + b"\n" + rows), TEXT)
    assert found.pop("x") == 20_000
    assert sum(found.values()) <= 1


@settings(
    max_examples=15, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture]
)
@given(
    st.lists(st.binary(max_size=8).filter(lambda b: b"\n" not in b and b"\r" not in b), max_size=4)
)
def test_any_bytes_are_a_line(tmp_path, between):
    """Lines of any bytes leave those around them alone."""
    plain = b'{"b": "x"}'
    mixed = b"\n".join([plain, *(line for b in between for line in (b, plain)), b""])
    assert groups(lines(tmp_path, mixed), TEXT)["x"] == len(between) + 1


UNITS = b"""\
{"b": 7}
{"b": "7"}
{"b": 7.0}
{"b": 7e0}
{"b": "07"}
{"b": "7.0"}
{"b": 7.5}
{"b": -0}
{"b": 0.0}
{"b": 70000000000000000000}
{"b": 18446744073709551615}
{"b": 1e20}
{"b": 1e400}
{"b": true}
{"b": null}
{"b": [7]}
{"b": {"b": 7}}
{"b": ""}
{"b": -12}
7
not JSON
"""


def test_a_unit_is_its_text_or_its_digits(tmp_path):
    """A whole number is one person however it is written; what is no identifier is nobody."""
    expected = {
        **{"7": 4, "07": 1, "7.0": 1, "0": 2, "": 1, "-12": 1},
        **{"70000000000000000000": 1, "18446744073709551615": 1},
    }
    for kind in (Kind.TEXT, None):
        found = groups(lines(tmp_path, UNITS, unit="b", b=kind), TEXT)
        assert found.pop(None) == UNITS.count(b"\n") - sum(expected.values())
        assert found == expected


@pytest.mark.parametrize("kind", sorted({*Kind} - {Kind.TEXT}, key=str))
def test_a_unit_of_another_type_is_refused_when_the_policy_is_opened(tmp_path, kind):
    """Declared a number, whoever is written as a text would be nobody, and no count would say so;
    the other way about the same."""
    for row in ('{"u": "p7", "b": "x"}\n', '{"u": 7, "b": "x"}\n'):
        (tmp_path / "t.jsonl").write_text(row * 50)
        table = {"source": str(tmp_path / "t.jsonl"), "unit": "u", "max_groups": 1, "max_rows": 50}
        budget = {"epsilon": 10**6, "ledger": str(tmp_path / "t.ledger")}
        columns = {"b": {"values": ["x"]}, "u": {"type": kind.value}}
        policy = {"budget": budget, "tables": {"t": table | {"columns": columns}}}
        with pytest.raises(PolicyError, match='declare type = "text" of it, or no type'):
            dt.open(policy)
        (found,) = (f for f in dt.check(policy).findings if f.level == "error")
        assert "one unit" in found.text
        for declared in ({"type": "text"}, {}):
            columns["u"] = declared
            with dt.open(policy) as session:
                release = session.sql("SELECT COUNT(*) AS n FROM t").release(10**5)
                assert release.frame["n"].to_list() == [50]
