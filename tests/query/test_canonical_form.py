"""What is hashed is data: a fixed form, whole, and blind to the words of any explanation."""

from __future__ import annotations

import datetime as dt_
import hashlib
import inspect
import json
from dataclasses import fields, is_dataclass
from fractions import Fraction as F

import pytest

import dither as dt
from dither.errors import TokenError
from dither.ledger import Charged
from dither.plan import aggregates as ag
from dither.plan import expressions as ex
from dither.plan import job as jb
from dither.plan import relations as rel
from dither.plan import released as rv
from dither.policy._canonical import CONSTANTS, NODES, form, hashed, policy_digest, request_digest
from dither.query import _certificate as certificate
from dither.query import _explain as explain
from dither.session._certificate import certificate_data, certified
from dither.session._certificate import digest_of as _digest
from query.query_data import leaves, policy

TEXT = "SELECT region, COUNT(*) AS n, AVG(cost) AS m FROM visits WHERE age >= 18 GROUP BY region"

GOLDEN = {
    "node": "query",
    "relation": {
        "node": "filter",
        "source": {"node": "scan", "table": "visits", "alias": "visits"},
        "predicate": {
            "node": "compare",
            "op": ">=",
            "left": {"node": "column", "table": "visits", "name": "age"},
            "right": {"node": "literal", "value": {"integer": "18"}},
        },
    },
    "keys": [
        {
            "node": "key",
            "name": "region",
            "expression": {"node": "column", "table": "visits", "name": "region"},
            "values": None,
        }
    ],
    "outputs": [
        {"node": "output", "name": "n", "aggregate": {"node": "count"}, "weight": "1"},
        {
            "node": "output",
            "name": "m",
            "aggregate": {
                "node": "mean",
                "operand": {"node": "column", "table": "visits", "name": "cost"},
            },
            "weight": "1",
        },
    ],
    "order": [],
    "limit": None,
    "discover": False,
}
PARAMETERS = {
    "requested": {"epsilon": "1/2", "delta": "0", "confidence": "19/20"},
    "promise": {"unit": "patient", "neighbours": "add-remove"},
    "policy": "ab" * 32,
}
DIGEST = "591fca6c4e3e8fe3d14872db1082f6a84480ab902962a70b93b9f630326e2d16"


def test_the_form_of_a_question(session):
    """Every node and every number of one question, written out by hand."""
    assert form(session.sql(TEXT)._plan.query) == GOLDEN


def test_the_digest_of_a_request():
    """The hash of that form: a change of it breaks every token, and takes a new version."""
    assert request_digest(GOLDEN, **PARAMETERS) == DIGEST
    body = {"form": 1, "question": GOLDEN, **PARAMETERS}
    text = json.dumps(body, sort_keys=True, separators=(",", ":"))
    assert hashlib.sha256(b"dither request 1\n" + text.encode()).hexdigest() == DIGEST


@pytest.mark.parametrize(
    ("value", "written"),
    [
        (None, None),
        (True, {"boolean": True}),
        (1, {"integer": "1"}),
        (2**70, {"integer": "1180591620717411303424"}),
        (F(1, 3), {"number": "1/3"}),
        (F(1), {"number": "1"}),
        ("1", {"text": "1"}),
        ("é\ud800", {"text": "é\ud800"}),
        (dt_.date(2024, 1, 31), {"date": "2024-01-31"}),
        (dt_.datetime(2024, 1, 31, 12), {"timestamp": "2024-01-31T12:00:00"}),
    ],
)
def test_constants_keep_their_type(value, written):
    """What equals in Python is told apart, and every text can be hashed."""
    found = form(ex.Literal(value))
    assert found == {"node": "literal", "value": written}
    assert len(hashed("request", {"x": found})) == 64


EXPRESSIONS = {
    "column": ("table", "name"),
    "literal": ("value",),
    "arithmetic": ("op", "left", "right"),
    "compare": ("op", "left", "right"),
    "between": ("operand", "low", "high"),
    "in": ("operand", "values"),
    "is null": ("operand",),
    "and": ("operands",),
    "or": ("operands",),
    "not": ("operand",),
    "case": ("branches", "otherwise"),
    "coalesce": ("operands",),
    "absolute": ("operand",),
    "floor": ("operand",),
    "ceil": ("operand",),
    "least": ("operands",),
    "greatest": ("operands",),
    "clamp": ("operand", "lower", "upper"),
    "bin": ("operand", "edges"),
    "date part": ("part", "operand"),
    "date truncate": ("part", "operand"),
    "lower case": ("operand",),
    "upper case": ("operand",),
    "substring": ("operand", "start", "length"),
}
"""Names and fields that were hashed once, and so stay."""


def nodes(module, *roots):
    """The kinds of node that a module of the plan has."""
    found = {kind for _, kind in inspect.getmembers(module, inspect.isclass) if is_dataclass(kind)}
    return {kind for kind in found if kind.__module__ == module.__name__} - set(roots)


def seen(kind):
    """The fields of a node: what equality does not see is not part of what is asked."""
    return tuple(field.name for field in fields(kind) if field.compare)


def test_every_node_and_every_field_has_its_place():
    """A class or a field that is added to plans must be added to the form, or nothing passes."""
    tables = nodes(rel, rel.Relation) | nodes(ag, ag.AggregateFunction, ag.Released) | nodes(rv)
    other = (jb.GroupKey, jb.History, jb.Job)
    assert tables | nodes(jb, jb.Measurement, *other) == set(NODES)
    for kind, (name, written) in NODES.items():
        assert seen(kind) == written, name
    expressions = nodes(ex, ex.Expression, ex.Function)
    assert {kind.form: seen(kind) for kind in expressions}.items() >= EXPRESSIONS.items()
    names = [name for name, _ in NODES.values()] + [kind.form for kind in expressions]
    assert len(set(names)) == len(names)
    assert {name for name, _ in CONSTANTS} <= set(names)


def test_what_has_no_form_is_not_hashed():
    """A float would be written differently elsewhere; it is refused, and so is anything strange."""
    for strange in (0.5, b"x", object(), {1}, [1]):
        with pytest.raises(TypeError, match="canonical form"):
            form(strange)
    with pytest.raises(TypeError, match="canonical form"):
        form(ex.Literal(0.5))


def test_every_part_of_a_request_is_in_its_digest():
    """Each leaf of the question and each parameter, changed by itself."""
    body = {"question": GOLDEN, **PARAMETERS}
    paths = list(leaves(body))
    assert len(paths) > 30
    seen = {DIGEST}
    for path in paths:
        changed = json.loads(json.dumps(body))
        at = changed
        for step in path[:-1]:
            at = at[step]
        at[path[-1]] = "changed"
        seen.add(request_digest(changed.pop("question"), **changed))
    assert len(seen) == len(paths) + 1


ASKED = [
    (TEXT, {"epsilon": "0.5"}),
    (TEXT, {"epsilon": "0.6"}),
    (TEXT, {"epsilon": "0.5", "delta": "1e-9"}),
    (TEXT, {"epsilon": "0.5", "confidence": 0.9}),
    (TEXT.replace("18", "19"), {"epsilon": "0.5"}),
    (TEXT.replace(">=", ">"), {"epsilon": "0.5"}),
    (TEXT.replace("AS m", "AS mean"), {"epsilon": "0.5"}),
    (TEXT.replace("AVG", "SUM"), {"epsilon": "0.5"}),
    (TEXT + " ORDER BY n", {"epsilon": "0.5"}),
    (TEXT + " LIMIT 3", {"epsilon": "0.5"}),
    (TEXT.replace("age >= 18", "age IN (18, 19)"), {"epsilon": "0.5"}),
    (TEXT.replace("age >= 18", "city = '18'"), {"epsilon": "0.5"}),
]


def request_of(session, text, *, epsilon, delta=None, confidence=0.95, **options):
    """The digest that a release would be charged under."""
    return session.sql(text, **options)._request(epsilon, delta, confidence).data.digest


def test_every_parameter_of_a_release_matters(session, tmp_path, frames):
    """Questions, budgets, confidence, weights, discovery, policies and promises: all distinct."""
    found = [request_of(session, text, **asked) for text, asked in ASKED]
    found.append(request_of(session, TEXT, epsilon="0.5", weights={"n": 2}))
    found.append(request_of(session, TEXT, epsilon="0.5", discover=True))
    options = (f" OPTIONS (max_{what}_contributed = 5)" for what in ("rows", "groups"))
    found += [request_of(session, TEXT + option, epsilon="0.5") for option in options]
    for change in ({"max_rows": 6}, {"max_groups": 2}):
        with dt.open(policy(tmp_path, visits=change), sources=frames) as other:
            found.append(request_of(other, TEXT, epsilon="0.5"))
    units = {"units": {"patient": {"columns": {"visits": "pid"}}}}
    with dt.open(policy(tmp_path, **units), sources=frames) as other:
        found.append(request_of(other, TEXT, epsilon="0.5"))
    with dt.open(policy(tmp_path, budget={"neighbours": "replace_one"}), sources=frames) as other:
        found.append(request_of(other, TEXT, epsilon="0.5"))
    assert len(set(found)) == len(found)


def test_the_same_question_has_one_digest(session):
    """However it is written: in other letters and blanks, in Python, with numbers as text."""
    text = "select region, count( * ) n, avg(cost) m from visits where (age) >= 18 group by region"
    built = (
        session.table("visits")
        .filter("age >= 18")
        .group_by("region")
        .agg(n=dt.count(), m=dt.mean("cost"))
    )
    digests = {
        request_of(session, TEXT, epsilon="0.5"),
        request_of(session, text, epsilon=0.5),
        built._request(F(1, 2), None, 0.95).data.digest,
    }
    assert len(digests) == 1


def reworded(monkeypatch):
    """Every sentence that a plan is explained in, said otherwise."""
    monkeypatch.setattr(certificate, "UNACCOUNTED", "something else")
    monkeypatch.setattr(explain, "UNACCOUNTED", "something else")
    monkeypatch.setattr(certificate, "protects", lambda plan: "somebody")
    monkeypatch.setattr(explain, "measurement_text", lambda *_: "a measurement")
    monkeypatch.setattr(explain, "aggregate_text", lambda *_: "an aggregate")
    monkeypatch.setattr(explain, "protected", lambda _: ("somebody", "in some way"))
    monkeypatch.setattr(explain, "percent", lambda _: "much")


def certificate_now(session):
    """A certificate of the question, as of some entry."""
    request = session.sql(TEXT)._request("0.5", None, 0.95)
    data = certificate_data(
        request.data,
        request.record(),
        charge=request.price,
        tables={"visits": "column pid"},
        accounts=("dataset:pid of visits",),
    )
    return certified(data, Charged(3, "cd" * 32, False, None, "ab" * 16))


def test_rewording_an_explanation_changes_no_hash(session, monkeypatch):
    """Neither the certificate's digest nor the token's: the words are beside the data."""
    before = certificate_now(session)
    first = session.sql(TEXT).release("0.5", token="t")
    with monkeypatch.context() as patch:
        reworded(patch)
        after = certificate_now(session)
        assert after["text"] != before["text"]
        assert after["digest"] == before["digest"] == _digest(after)
        again = session.sql(TEXT).release("0.5", token="t")
        assert again.replayed
        assert again.frame.equals(first.frame)
        assert dt.verify(first.certificate, session.ledger).ok


def test_a_token_is_bound_to_its_parameters(session):
    """Another confidence or epsilon under the same token is another request."""
    session.sql(TEXT).release("0.5", token="t")
    for change in ({"confidence": 0.9}, {"delta": "1e-9"}):
        with pytest.raises(TokenError, match="another request"):
            session.sql(TEXT).release("0.5", token="t", **change)


def test_a_certificate_holds_no_float(session):
    """Two programs may write the same double differently; what is hashed has none."""
    body = session.sql(TEXT).release("0.5").certificate.to_dict()
    body.pop("text")
    for path in leaves(body):
        at = body
        for step in path:
            at = at[step]
        assert not isinstance(at, float), path


def test_a_certificate_is_of_the_question_that_was_charged(session):
    """A forged question with its digest made anew is told by the request alone."""
    body = session.sql(TEXT).release("0.5").certificate.to_dict()
    body["question"]["outputs"][0]["name"] = "other"
    body["digest"] = _digest(body)
    with pytest.raises(dt.errors.CertificateError, match="not the one that was charged"):
        dt.verify(body, session.ledger)


def test_policies_are_told_apart():
    """By every value and its type, and not by the order of sections or how a number is written."""
    base = {"a": {"values": [1, 2]}, "b": {"bounds": [dt_.date(2024, 1, 1)]}}
    same = [
        {"b": {"bounds": [dt_.date(2024, 1, 1)]}, "a": {"values": [1.0, F(2)]}},
    ]
    others = [
        {"a": {"values": ["1", 2]}, "b": base["b"]},
        {"a": {"values": [True, 2]}, "b": base["b"]},
        {"a": {"values": [2, 1]}, "b": base["b"]},
        {"a": base["a"], "b": {"bounds": ["2024-01-01"]}},
        {"a": base["a"], "b": {"bounds": [dt_.datetime(2024, 1, 1)]}},
        {"a": base["a"]},
    ]
    assert {policy_digest(p) for p in same} == {policy_digest(base)}
    assert len({policy_digest(p) for p in [base, *others]}) == len(others) + 1
