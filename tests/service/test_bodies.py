"""Hostile bodies, addresses, headers and SQL: each is refused as JSON, and nothing leaves by it."""

from __future__ import annotations

import json
from typing import Any

import pytest

from dither.service.web._guard import HEADERS
from service.hospital import COUNT, SECRET, Served

AS_JSON = {"content-type": "application/json"}

SCRIPT = "<script>alert(1)</script>"


def refused(found: Any, *statuses: int) -> str:
    """The message of a refusal, seen to be JSON with every header, and to hold no data."""
    assert found.status_code in statuses, (found.status_code, found.text[:300])
    assert found.headers["content-type"] == "application/json"
    assert HEADERS.items() <= dict(found.headers).items()
    error = found.json()["error"]
    assert error.keys() == {"kind", "message"}
    assert SECRET not in found.text
    assert len(found.content) < 10_000
    return str(error["message"])


@pytest.mark.parametrize(
    "raw",
    [
        b"",
        b"{",
        b"null",
        b"[]",
        b'"text"',
        b"\xff\xfe{\x00}\x00",
        b"[" * 500_000,
        b'{"sql":' + b"[" * 900 + b"]" * 900 + b"}",
        b'{"ask":' + b'[["x",' * 5000,
        b'{"sql": NaN}',
        b'{"epsilon": Infinity, "sql": "SELECT 1"}',
        b'{"epsilon": 1e999, "sql": "SELECT 1"}',
        b'{"epsilon": ' + b"9" * 5000 + b"}",
        b'{"sql": "a", "sql": "b"}',
        b'{"sql": "\\ud800"}',
        b'{"sql": "a\\u0000b"}',
        b'{"\\ud800": 1}',
        b'{"sql": "SELECT 1"} x',
        b"sql=SELECT+1",
    ],
)
def test_bodies_that_are_no_json_that_can_be_read(unchanged: Served, raw: bytes) -> None:
    """Deep, huge, ambiguous or not Unicode: refused, and nothing of them is quoted."""
    for path in ("/explain", "/preview", "/price", "/releases"):
        found = unchanged.call("ann", "POST", path, content=raw, headers=AS_JSON)
        message = refused(found, 400)
        assert message in (
            "the body is not JSON that can be read",
            "the body must be a JSON object",
            "give sql, a question in SQL, or ask, the calls that make one",
        )


def test_a_body_too_large_is_refused_before_it_is_read(hospital: Served) -> None:
    """100 MB that say so, and 100 MB that do not: neither is taken in."""
    sent = 0

    def without_end() -> Any:
        nonlocal sent
        for _ in range(1600):
            sent += 65_536
            yield b"x" * 65_536

    declared = AS_JSON | {"content-length": "104857600"}
    for headers in (declared, AS_JSON | {"content-length": "9" * 5000}):
        found = hospital.call("ann", "POST", "/preview", content=b"{}", headers=headers)
        assert refused(found, 413) == "a body may have 1,048,576 bytes"
    found = hospital.call("ann", "POST", "/preview", content=without_end(), headers=AS_JSON)
    assert refused(found, 413) == "a body may have 1,048,576 bytes"


def test_fields_are_what_they_should_be(unchanged: Served) -> None:
    """Unknown, missing and of another kind: named, and their values are not quoted."""
    bodies: list[tuple[dict[str, Any], str]] = [
        ({"sql": COUNT, SCRIPT: SCRIPT}, "a field that is not known"),
        ({"sql": [SCRIPT], "epsilon": 1}, "sql must be a text"),
        ({"sql": " ", "epsilon": 1}, "sql must be a text"),
        ({"sql": "x" * 100_001, "epsilon": 1}, "sql must be a text"),
        ({"sql": COUNT, "epsilon": SCRIPT}, "epsilon must be a number"),
        ({"sql": COUNT, "epsilon": True}, "epsilon must be a number"),
        ({"sql": COUNT, "epsilon": "1e9999"}, "epsilon must be a number"),
        ({"sql": COUNT, "epsilon": "-1"}, "epsilon must be a number"),
        ({"sql": COUNT, "epsilon": "1/0"}, "epsilon must be"),
        ({"sql": COUNT, "epsilon": 0}, "epsilon must be"),
        ({"sql": COUNT, "epsilon": 1, "confidence": "1/0"}, "confidence must be"),
        ({"sql": COUNT, "epsilon": 1, "confidence": 1}, "confidence must be"),
        ({"sql": COUNT, "epsilon": 1, "sizes": [10**4000]}, ""),
        ({"sql": COUNT, "epsilon": 1, "sizes": [SCRIPT]}, "sizes: "),
        ({"sql": COUNT, "ask": [], "epsilon": 1}, "give sql"),
    ]
    for body, words in bodies:
        message = refused(unchanged.post("ann", "/preview", body), 400)
        assert words in message
        assert SCRIPT not in message
    for query in ({"last": "²"}, {"last": "-1"}, {"last": "1e3"}, {"all": "yes"}, {SCRIPT: "1"}):
        refused(unchanged.get("ann", "/jobs", **query), 400)


@pytest.mark.parametrize(
    "path",
    [
        "/../../etc/passwd",
        "/jobs/../people",
        "/jobs/%2e%2e/people",
        "/jobs/%2e%2e%2fpeople",
        "/jobs/..%5cpeople",
        "//people",
        "/people/",
        "/me;/people",
        "/jobs/%00",
        "/jobs/%ff%fe",
        "/jobs/%F0%9F%92%A9",
        "/jobs/%3Cscript%3E",
        "/jobs/x%0d%0aset-cookie:a=b",
        "/answers/%27%20OR%201=1",
    ],
)
def test_no_address_leads_elsewhere(unchanged: Served, path: str) -> None:
    """Dots, slashes and bytes in a path name nothing, and lead nobody to another host."""
    found = unchanged.call("ann", "GET", path, headers={"host": "evil.example"})
    refused(found, 404, 405, 403)
    assert "location" not in found.headers
    assert "set-cookie" not in found.headers
    assert "evil.example" not in found.text


def test_what_headers_hold_is_nowhere_in_answers(hospital: Served) -> None:
    """Line ends and scripts in keys, hosts and cookies."""
    for name, value in {
        "authorization": f"Bearer x\r\nset-cookie: a=b{SCRIPT}",
        "cookie": f"dither_visits={SCRIPT}",
        "host": f"evil.example{SCRIPT}",
        "x-forwarded-host": "evil.example",
        "x-csrf-token": "\xff\xfe",
    }.items():
        found = hospital.http.get("/v1/visits/me", headers={name: value.encode("latin-1")})
        refused(found, 401)
        assert "set-cookie" not in found.headers
        assert "evil.example" not in found.text + str(found.headers)


HOSTILE_SQL = [
    "SELECT COUNT(*) AS n FROM read_csv('/etc/passwd')",
    "SELECT COUNT(*) AS n FROM read_parquet('visits.parquet')",
    "SELECT COUNT(*) AS n FROM read_text('/proc/self/environ')",
    "SELECT COUNT(*) AS n FROM glob('/tmp/dither-work-*/*')",
    "SELECT COUNT(*) AS n FROM '/etc/passwd'",
    "SELECT COUNT(*) AS n FROM pg_read_file('/etc/passwd')",
    "SELECT COUNT(*) AS n FROM duckdb_settings()",
    "SELECT COUNT(*) AS n FROM information_schema.tables",
    "SELECT COUNT(*) AS n FROM sqlite_master",
    "COPY visits TO '/tmp/loot.csv'",
    "ATTACH '/tmp/loot.db' AS loot",
    "INSTALL httpfs",
    "SET enable_external_access = true",
    "PRAGMA database_list",
    "CALL pragma_version()",
    "SELECT COUNT(*) AS n FROM visits; DROP TABLE visits",
    "SELECT COUNT(*) AS n FROM visits UNION SELECT note FROM visits",
    "SELECT note FROM visits",
    "SELECT * FROM visits",
    "SELECT MAX(note) AS n FROM visits",
    "SELECT STRING_AGG(note, ',') AS n FROM visits",
    "SELECT LIST(note) AS n FROM visits",
    "SELECT COUNT(*) AS n FROM visits WHERE cost > (SELECT MAX(cost) FROM visits)",
    "SELECT COUNT(*) AS n FROM visits WHERE getenv('HOME') = 'x'",
    "SELECT COUNT(*) AS n FROM visits WHERE error(note)",
    "SELECT COUNT(*) AS n FROM visits WHERE CAST(note AS INTEGER) / 0 = 1 AND pg_sleep(10)",
    "SELECT COUNT(*) AS n FROM visits WHERE cost > 1e9999999",
    "SELECT COUNT(*) AS n FROM visits WHERE " + "(" * 9000 + "1" + ")" * 9000,
    "SELECT COUNT(*) AS n FROM visits WHERE " + "NOT " * 20_000 + "TRUE",
    "WITH RECURSIVE t AS (SELECT 1 UNION ALL SELECT 1 FROM t) SELECT COUNT(*) AS n FROM t",
    f'SELECT COUNT(*) AS n FROM "{SCRIPT}"',
    f'SELECT COUNT(*) AS n FROM visits WHERE "{SCRIPT}" = 1',
    'SELECT COUNT(*) AS n FROM "' + "q" * 90_000 + '"',
]


@pytest.mark.parametrize("sql", HOSTILE_SQL, ids=lambda sql: sql[:40])
def test_sql_does_not_leave_the_allow_list(unchanged: Served, sql: str) -> None:
    """By no way that takes SQL: refused before anything is charged, with no value of the data."""
    for path in ("/explain", "/preview", "/price", "/releases"):
        refused(unchanged.post("ann", path, {"sql": sql, "epsilon": 1}), 400)
    assert unchanged.get("ann", "/jobs").json() == {"jobs": []}


def test_scripts_in_texts_of_people_come_back_as_json_alone(hospital: Served) -> None:
    """In labels, reasons, purposes, names and certificates: never as a page."""
    label = f'SELECT COUNT(*) AS "{SCRIPT}" FROM visits'
    found = hospital.post("ann", "/explain", {"sql": label, "epsilon": 1})
    assert found.status_code == 200
    answers = [
        found,
        hospital.post("ann", "/preview", {"sql": label, "epsilon": 1}),
        hospital.post("olga", "/pauses", {"table": "visits", "paused": True, "reason": SCRIPT}),
        hospital.post("ann", "/releases", {"sql": COUNT, "epsilon": 1}),
        hospital.post("olga", "/pauses", {"table": "visits", "paused": False}),
        hospital.post("olga", "/people", {"name": SCRIPT, "role": "analyst"}),
        hospital.post("olga", "/people", {"name": "zoe", "role": SCRIPT}),
        hospital.post("olga", "/people/%3Cscript%3E/keys", {}),
        hospital.post("aude", "/verify", {"certificate": {"ledger": SCRIPT, SCRIPT: [SCRIPT]}}),
        hospital.get("aude", "/ledger", account=SCRIPT),
    ]
    for one in answers:
        assert one.headers["content-type"] == "application/json"
        assert one.headers["x-content-type-options"] == "nosniff"
        json.loads(one.content)
    assert SCRIPT in answers[3].json()["error"]["message"], "the owner's reason is told"
    assert SCRIPT not in answers[5].text


@pytest.mark.parametrize(
    "certificate",
    [
        {},
        {"ledger": None},
        {"ledger": {"entry": -1}},
        {"ledger": {"entry": 10**30, "hash": []}},
        {"request": [[[]]], "measurements": {"a": 1}},
        {"version": "9" * 1000},
        {str(i): [None] for i in range(3000)},
    ],
)
def test_certificates_of_anybody_are_held_against_the_ledger(
    unchanged: Served, certificate: dict[str, Any]
) -> None:
    """Whatever is in them: a verdict or a refusal."""
    found = unchanged.post("aude", "/verify", {"certificate": certificate})
    assert found.status_code in (200, 400, 422), found.text
    if found.status_code == 200:
        assert found.json()["ok"] is False


HOSTILE_CALLS: list[Any] = [
    [],
    [[]],
    [["table"]],
    [["table", ["visits"], {}]] * 65,
    [["_engine", [], {}]],
    [["__class__", [], {}]],
    [["close", [], {}]],
    [["ledger", [], {}]],
    [["reserve", [1], {}]],
    [["asked_by", ["olga"], {"owner": True}]],
    [["table", ["visits"], {}], ["__getattribute__", ["_opened"], {}]],
    [["table", ["visits"], {}], ["_session", [], {}]],
    [["table", ["visits"], {}], ["release", [1], {}]],
    [["table", ["visits"], {}], ["synthesize", [1], {}]],
    [["sql", [COUNT], {}], ["release", [1], {}]],
    [["table", ["visits"], {}], ["filter", [{"rows": [["table", ["visits"], {}]]}], {}]],
    [["table", ["visits"], {}], ["filter", ["cost > 1"] * 500, {}]],
    [["table", ["visits"], {}], ["filter", [10**4000], {}]],
    [["table", ["visits"], {}], ["group_by", [[["region"]]], {}]],
    [["table", ["visits"], {}], ["agg", [], {"n": {"aggregate": ["__import__", "os"]}}]],
    [["table", ["visits"], {}], ["agg", [], {"n": {"aggregate": []}}]],
    [["table", ["visits"], {}], ["agg", [], {"n": "COUNT(*); DROP TABLE visits"}]],
    [["table", ["visits"], {}], ["marginals", [], {"epsilon": [], "x": 1}]],
    [["table", ["visits"], {}], ["infer", [], {"epsilon": {"number": "1e999999999"}}]],
    [["table", ["visits"], {}], ["infer", [], {"epsilon": {"decimal": "1e999999999"}}]],
    [["table", ["visits"], {}], ["infer", [], {"epsilon": {"number": "9" * 401}}]],
    [["table", ["visits"], {}], ["infer", [], {"epsilon": {"date": "0000-00-00"}}]],
    [["table", ["visits"], {}], ["infer", [], {"epsilon": {"mapping": [[[], 1]]}}]],
    [["table", ["visits"], {}], ["infer", [], {"epsilon": {"pickle": "gASV"}}]],
    [["table", ["visits"], {}], ["infer", [], {"epsilon": {"number": "1", "date": "1"}}]],
    [["table", ["visits"], {}], ["infer", [], {"epsilon": {"bins": ["x", [{"number": "1"}]]}}]],
    [["table", [{"tuple": [[[[[[[[[[[[[[1]]]]]]]]]]]]]]}], {}]],
    [["table", [{"mapping": [["a", "b"]]}], {}]],
    [["table", [None], {}]],
    [["table", ["visits"], {"self": 1}]],
    [[{"a": 1}, [], {}]],
    "table",
    [1, 2, 3],
]


@pytest.mark.parametrize("ask", HOSTILE_CALLS, ids=lambda ask: str(ask)[:60])
def test_calls_reach_nothing_but_questions(unchanged: Served, ask: Any) -> None:
    """Private names, methods that charge, and arguments that are no data: refused, and named."""
    for path in ("/explain", "/preview", "/releases"):
        refused(unchanged.post("ann", path, {"ask": ask, "epsilon": 1}), 400)
    assert unchanged.get("ann", "/jobs").json() == {"jobs": []}
    assert unchanged.desk.session._opened.closed is False


def test_a_query_says_each_field_once_and_a_table_has_one_of_three_forms(hospital: Served) -> None:
    """Another reader might take the other one; and a form that is unknown is not taken for one."""
    done = hospital.released("olga")
    assert done["state"] == "done", done
    found = hospital.call("olga", "GET", "/jobs?last=1&last=100")
    assert (found.status_code, "names a field twice" in found.text) == (400, True)
    at = f"/jobs/{done['id']}/table"
    for form in ("arrow", "parquet", "csv"):
        assert hospital.get("olga", at, form=form).status_code == 200
    for form in ("CSV", "xlsx", "a\u0301"):
        found = hospital.get("olga", at, form=form)
        assert found.status_code == 400
        assert found.json()["error"]["message"] == "form must be arrow, parquet or csv"


@pytest.mark.parametrize(
    "ask",
    [
        [["table", [5], {}], ["infer", [], {"epsilon": 1}], ["mean", ["cost"], {}]],
        [["table", [["visits"]], {}], ["infer", [], {"epsilon": 1}], ["mean", ["cost"], {}]],
        [["table", ["visits"], {}], ["join", [None, "region"], {}], ["filter", ["TRUE"], {}]],
        [["table", ["visits"], {}], ["join", ["places", 5], {}], ["filter", ["TRUE"], {}]],
        [
            ["table", ["visits"], {}],
            ["infer", [], {"epsilon": 1}],
            ["difference", ["cost", "region"], {"levels": 5}],
        ],
        [["sql", [COUNT], {}], ["order_by", [None], {}]],
    ],
)
def test_calls_with_arguments_of_another_kind_are_refused(unchanged: Served, ask: Any) -> None:
    """By an error that says so, and not by one that nothing caught."""
    found = unchanged.post("ann", "/explain", {"ask": ask})
    assert found.status_code == 400, found.text
