"""Tables of one policy on several engines, and sources that hold a password."""

from __future__ import annotations

import traceback
from dataclasses import replace

import pytest

import dither as dt
from conformance.sqlite import AVAILABLE, SQLiteEngine
from dither import engines
from dither._environment import Secret
from dither.engines import Backend, Format
from dither.engines.several import SeveralEngines
from dither.errors import ArgumentError, PolicyError, UnsupportedError
from dither.plan.schema import ColumnFacts, Kind, Schema, Table
from query.query_data import policy, visits

pytestmark = pytest.mark.skipif(not AVAILABLE, reason="SQLite before 3.39 lacks HAVING alone")

COLUMNS = {"u": ColumnFacts("u", Kind.INTEGER), "age": ColumnFacts("age", Kind.INTEGER)}
ROWS = [{"u": i, "age": i % 90} for i in range(300)]
PASSWORD = "swordfish-71"


class Toy(SQLiteEngine):
    """One that says where its rows are, and remembers that it was closed."""

    closed = 0

    def places(self, table):
        return frozenset({("toy", "the only rows")})

    def close(self):
        Toy.closed += 1
        super().close()


@pytest.fixture
def toys(monkeypatch):
    """An engine ``toy`` whose sources may hold passwords; what it was opened with."""
    opened = []

    def connect(tables, options):
        opened.append((tables, options))
        return Toy(dict.fromkeys(tables, ROWS), Schema({n: Table(n, COLUMNS) for n in tables}))

    def speed(where, value):
        if value not in ("slow", "fast"):
            raise PolicyError(f"{where} must be 'slow' or 'fast'")
        return value.upper()

    form = Format(
        ("",),
        is_file=False,
        holds_tables=True,
        secret=True,
        fault=lambda text: "holds a password; name it as env:NAME" if "=" in text else None,
    )
    monkeypatch.setattr(engines, "_REGISTERED", {})
    engines.register(Backend("toy", connect, {"toy": form}, {"speed": speed}))
    monkeypatch.setenv("TOY_DSN", f"host=db password={PASSWORD}")
    return opened


def both(folder, source=None):
    """The policy of files, with a table of the toy beside them."""
    made = policy(folder)
    visits().write_parquet(folder / "visits.parquet")
    made["tables"] = {"visits": {**made["tables"]["visits"], "source": "visits.parquet"}}
    made["tables"]["visits"]["source"] = str(folder / "visits.parquet")
    made["tables"]["people"] = {
        "source": source or {"toy": "env:TOY_DSN", "table": "public.people"},
        "unit": "u",
        "max_groups": 1,
        "max_rows": 1,
        "columns": {"age": {"bounds": [0, 100]}},
    }
    return made


def test_a_question_runs_where_its_tables_are(tmp_path, toys):
    """Two engines, one policy: each question is answered by its own."""
    with dt.open(both(tmp_path)) as session:
        assert isinstance(session._engine, SeveralEngines)
        ((tables, options),) = toys
        assert list(tables) == ["people"]
        assert tables["people"].table == "public.people"
        assert tables["people"].source.reveal() == f"host=db password={PASSWORD}"
        assert "speed" not in options
        people = session.sql("SELECT COUNT(*) AS n FROM people").release(epsilon=1)
        visits = session.sql("SELECT COUNT(*) AS n FROM visits").release(epsilon=1)
        assert people.frame["n"][0] == pytest.approx(300, abs=60)
        assert visits.frame["n"][0] != people.frame["n"][0]
    assert Toy.closed


def test_a_join_across_engines_is_refused_when_it_is_asked(tmp_path, toys):
    """Before it is explained, and before anything is charged."""
    made = both(tmp_path)
    made["units"] = {"person": {"columns": {"visits": "pid", "people": "u"}}}
    for name in ("visits", "people"):
        made["tables"][name]["max_join_rows"] = 2
    with dt.open(made) as session:
        with pytest.raises(
            UnsupportedError, match="'visits' is on duckdb and table 'people' on to"
        ):
            session.sql("SELECT COUNT(*) AS n FROM visits JOIN people ON visits.pid = people.u")
        assert all(not balance.spent.epsilon for balance in session.balance())


def test_the_engine_refuses_what_the_session_would_have_refused(tmp_path, toys):
    """A plan that reached the engines all the same is not run on the first of them."""
    with dt.open(both(tmp_path)) as session:
        with pytest.raises(UnsupportedError, match="rows do not leave the engine"):
            session._engine.check_together(("people", "visits"))
        with pytest.raises(PolicyError, match="no source for table 'peeple'; did you mean"):
            session._engine.describe("peeple")


def test_what_is_open_is_closed_where_another_engine_cannot_be(tmp_path, toys):
    """No engine is left behind by a policy that does not open."""
    made, before = both(tmp_path), Toy.closed
    made["tables"] = dict(reversed(made["tables"].items()))
    made["tables"]["visits"]["source"] = {"duckdb": "visits.parquet"}
    (tmp_path / "visits.parquet").write_bytes(b"not a Parquet file")
    made["engine"] = {"temp": str(tmp_path)}
    with pytest.raises(PolicyError):
        dt.open(made, sources={"visits": tmp_path / "visits.parquet"})
    assert Toy.closed == before + 1


def test_an_engine_has_fields_of_its_own(tmp_path, toys):
    """They are read by it, and refused by it; what no engine knows is refused as ever."""
    made = both(tmp_path)
    made["engine"] = {"speed": "slow"}
    dt.open(made).close()
    assert toys[0][1]["speed"] == "SLOW"
    made["engine"] = {"speed": "medium"}
    with pytest.raises(PolicyError, match=r"engine.speed must be 'slow' or 'fast'"):
        dt.open(made)
    made["engine"] = {"sped": "slow"}
    with pytest.raises(PolicyError, match="unknown field 'sped'; did you mean 'speed'"):
        dt.open(made)


@pytest.mark.parametrize(
    ("source", "message"),
    [
        ({"toy": "env:NO_SUCH_DSN"}, "people.source.toy: .* has no variable 'NO_SUCH_DSN'; set it"),
        ({"toy": "env:"}, "source.toy: name a variable of the environment after 'env:'"),
        ({"toy": "a", "duckdb": "b"}, "source names two engines"),
        ({"toy": "x", "table": "t", "delimiter": ";"}, "delimiter is for CSV files"),
        ({"duckdb": "x.db", "format": "parket"}, "people.format has no option 'parket'; did you"),
        ({"duckdb": "no.db", "table": "t"}, "tables.people.source: no file 'no.db'"),
        ({"toy": f"password={PASSWORD}"}, "people.source.toy holds a password; name it as env:"),
        ({"toy": f"password={PASSWORD}\0"}, "the policy's text in source holds the character NUL"),
    ],
)
def test_a_source_that_cannot_be_is_refused_by_its_field(tmp_path, toys, source, message):
    """By name, and without the password."""
    with pytest.raises(PolicyError, match=message) as refused:
        dt.open(both(tmp_path, source))
    assert PASSWORD not in "".join(traceback.format_exception(refused.value))
    assert not toys


def test_fields_stand_inside_of_a_source_or_beside_it_and_not_twice(tmp_path, toys):
    """Either place will do."""
    made = both(tmp_path, {"toy": "env:TOY_DSN"})
    made["tables"]["people"]["table"] = "public.beside"
    dt.open(made).close()
    assert toys[0][0]["people"].table == "public.beside"
    made["tables"]["people"]["source"]["table"] = "public.inside"
    with pytest.raises(PolicyError, match=r"source.table and tables.people.table say the same"):
        dt.open(made)


def test_the_caller_may_name_an_engine_too(tmp_path, toys):
    """What a policy could say stands for what it says."""
    made = both(tmp_path, "people.parquet")
    with dt.open(made, sources={"people": {"toy": "env:TOY_DSN"}}) as session:
        assert session.sql("SELECT COUNT(*) AS n FROM people").release(epsilon=1)
    with pytest.raises(PolicyError, match=r"sources.people.source names no engine"):
        dt.open(made, sources={"people": {"toi": "env:TOY_DSN"}})
    with pytest.raises(ArgumentError, match="no table 'peple'"):
        dt.open(made, sources={"peple": {"toy": "env:TOY_DSN"}})


def test_rows_under_two_names_are_one_unit_s(tmp_path, toys, monkeypatch):
    """Whether the names are alike, or only the engine knows that the rows are."""
    made = both(tmp_path)
    made["tables"]["again"] = {**made["tables"]["people"], "unit": "age", "columns": {}}
    with pytest.raises(PolicyError, match=r"people and tables.again read the same rows for two"):
        dt.open(made)
    monkeypatch.setenv("OTHER_DSN", "host=other")
    made["tables"]["again"]["source"] = {"toy": "env:OTHER_DSN", "table": "elsewhere"}
    with pytest.raises(PolicyError, match=r"people and tables.again read the same rows for two"):
        dt.open(made)


def test_a_secret_is_shown_by_its_name(tmp_path, toys, capsys):
    """No digest, explanation, certificate or ``repr`` rests on the password, or holds it."""
    with dt.open(both(tmp_path)) as session:
        digest = session.policy.digest
        question = session.sql("SELECT AVG(age) AS a FROM people")
        release = question.release(epsilon=1)
        shown = [session, session.policy, question, question.explain(1), release, toys]
        texts = [f"{one!r}{one}" for one in shown]
        texts += [str(release.certificate), release.summary(), session._repr_html_()]
    texts.append((tmp_path / "visits.ledger").read_bytes().decode("latin1"))
    assert "env:TOY_DSN" in repr(session.policy)
    assert not any(PASSWORD in text for text in texts)
    with pytest.MonkeyPatch.context() as patched:
        patched.setenv("TOY_DSN", "host=db password=another")
        with dt.open(both(tmp_path)) as session:
            assert session.policy.digest == digest


def test_a_secret_is_not_pickled():
    """What is written down is not secret."""
    import pickle

    with pytest.raises(TypeError, match="not written down"):
        pickle.dumps(Secret(PASSWORD, "env:X"))


def test_a_draft_names_the_engine(tmp_path, toys, monkeypatch):
    """It opens as it stands, and holds the variable's name alone."""
    monkeypatch.chdir(tmp_path)
    text = dt.draft_policy({"toy": "env:TOY_DSN", "table": "public.people"}, unit="u")
    assert 'source = { toy = "env:TOY_DSN", table = "public.people" }' in text
    assert "[tables.people]" in text
    assert PASSWORD not in text
    (tmp_path / "dither.toml").write_text(text)
    dt.open(tmp_path / "dither.toml").close()
    with pytest.raises(PolicyError, match=r"public.people has no column 'v'"):
        dt.draft_policy({"toy": "env:TOY_DSN", "table": "public.people"}, unit="v")
    with pytest.raises(PolicyError, match=r"SOURCE.table is missing"):
        dt.draft_policy({"toy": "env:TOY_DSN"})


def test_each_engine_checks_its_own_tables_alone(toys):
    """A schema is cut to what an engine has."""
    first, second = (
        SQLiteEngine({name: ROWS}, Schema({name: Table(name, COLUMNS)})) for name in ("a", "b")
    )
    schema = Schema({n: Table(n, COLUMNS) for n in "ab"})
    with SeveralEngines({"x": first, "y": second}, {"a": "x", "b": "y"}) as engine:
        engine.check(schema)
        missing = replace(schema.table("b"), columns={"w": ColumnFacts("w", Kind.TEXT)})
        with pytest.raises(PolicyError, match="'b' has no column 'w'"):
            engine.check(replace(schema, tables={**schema.tables, "b": missing}))
        assert engine.complete("a")
        assert not engine.unread("b")
