"""Units of a policy: who shares an account, who does not, and what a conversion costs."""

from __future__ import annotations

import copy
from fractions import Fraction as F

import polars as pl
import pytest

import dither as dt
from dither.errors import ArgumentError, LedgerError, PolicyError, PromiseError, QueryError
from dither.policy._policy import read_policy
from dither.privacy import Neighbours, Promise
from dither.privacy._charge import group_factor
from query.query_data import policy, rows_policy, visits

LABS = pl.DataFrame({"person": [i % 50 for i in range(300)], "value": [1, 2, 3] * 100})
PEOPLE = pl.DataFrame({"height": [150, 160, 170, 180] * 25})
LIMITS = {"max_groups": 1, "max_rows": 5, "max_join_rows": 2}
COUNT = "SELECT COUNT(*) AS n FROM {}"


def three(folder, units=None, **budget):
    """Visits and labs of people, and a table whose rows are people of their own."""
    made = policy(
        folder,
        budget=budget,
        visits={"max_join_rows": 2},
        tables={
            "labs": {"unit": "person", "columns": {"value": {"bounds": [0, 9]}}, **LIMITS},
            "people": {"columns": {"height": {"bounds": [100, 220]}}},
        },
    )
    return made if units is None else made | {"units": units}


@pytest.fixture
def sources(frames):
    return {**frames, "labs": LABS, "people": PEOPLE}


TOGETHER = {"patient": {"columns": {"visits": "pid", "labs": "person"}}}


def spent(session):
    return {b.name: b.spent.epsilon for b in session.balance()}


def test_undeclared_units_have_accounts_of_their_own(tmp_path, sources):
    """Three tables, three promises, three accounts under the same caps; nothing is added up."""
    with dt.open(three(tmp_path, epsilon=1, delta=0), sources=sources) as session:
        for table in ("visits", "labs", "people"):
            session.sql(COUNT.format(table)).release(1)
            with pytest.raises(dt.errors.BudgetError, match=r"one .* added or removed"):
                session.sql(COUNT.format(table)).release("0.1")
        assert spent(session) == {
            "dataset:pid of visits": 1,
            "dataset:person of labs": 1,
            "dataset:row of people": 1,
        }
        promises = [b.promise.describe() for b in session.balance()]
        assert promises == [
            "one pid of visits, added or removed",
            "one person of labs, added or removed",
            "one row of people, added or removed",
        ]
        assert session.ledger.verify().ok


def test_one_unit_has_one_account(tmp_path, sources):
    """Declared to be the same people, two tables spend one budget; the third keeps its own."""
    with dt.open(three(tmp_path, TOGETHER, epsilon=1, delta=0), sources=sources) as session:
        session.sql(COUNT.format("visits")).release("0.5")
        session.sql(COUNT.format("labs")).release("0.5")
        with pytest.raises(dt.errors.BudgetError, match="'dataset:patient'"):
            session.sql(COUNT.format("labs")).release("0.1")
        session.sql(COUNT.format("people")).release("0.9")
        assert spent(session) == {"dataset:patient": 1, "dataset:row of people": F(9, 10)}
        assert session.ledger.tables()["labs"] == (Promise("patient"), "column person")


def test_an_analyst_has_an_account_for_each_unit(tmp_path, sources):
    """Her cap holds for every unit by itself, as the whole one does."""
    made = three(tmp_path, TOGETHER, epsilon=2, delta=0) | {"analysts": {"ana": {"epsilon": 1}}}
    with dt.open(made, sources=sources, analyst="ana") as session:
        session.sql(COUNT.format("visits")).release(1)
        session.sql(COUNT.format("people")).release("0.5")
        assert spent(session) == {
            "dataset:patient": 1,
            "analyst:ana:patient": 1,
            "dataset:row of people": F(1, 2),
            "analyst:ana:row of people": F(1, 2),
        }
        with pytest.raises(dt.errors.BudgetError, match="'analyst:ana:patient'"):
            session.sql(COUNT.format("labs")).release("0.1")


def test_looking_binds_nothing(tmp_path, sources):
    """A balance that was only read leaves the owner free to declare units and caps."""
    with dt.open(three(tmp_path), sources=sources) as session:
        assert len(session.balance()) == 3
        assert session.ledger.accounts() == []
    with dt.open(three(tmp_path, TOGETHER, epsilon=3), sources=sources) as session:
        assert [b.caps.epsilon for b in session.balance()] == [3, 3]


@pytest.mark.parametrize(
    "change",
    [
        {"visits": {"unit": "age"}},
        {"visits": None},
        {"budget": {"neighbours": "replace_one"}},
        {"units": {"other": {"columns": {"visits": "pid"}}}},
    ],
    ids=["another column", "rows", "other neighbours", "another unit"],
)
def test_a_table_keeps_the_promise_it_was_charged_under(tmp_path, frames, change):
    """Editing the policy does not give a table a fresh account, nor other neighbours."""
    with dt.open(policy(tmp_path), sources=frames) as session:
        session.sql(COUNT.format("visits")).release("0.1")
    made = policy(tmp_path, budget=change.get("budget", {}), visits=change.get("visits") or {})
    if "visits" in change and change["visits"] is None:
        made = rows_policy(tmp_path)
    if "units" in change:
        made |= {"units": change["units"]}
    made["tables"]["visits"]["columns"].pop("age") if change.get("visits") else None
    with pytest.raises(PromiseError, match=r"begin a new ledger|protects one pid of visits"):
        dt.open(made, sources=frames)


def test_another_policy_on_the_same_ledger_is_held_to_it(tmp_path, frames):
    """The guarantee that was broken: three promises in one account of one file."""
    ledger = {"ledger": str(tmp_path / "one.ledger")}
    with dt.open(policy(tmp_path, budget=ledger), sources=frames) as session:
        session.sql(COUNT.format("visits")).release("0.1")
        open_already = dt.open(policy(tmp_path, budget=ledger), sources=frames)
    for made in (
        policy(tmp_path, budget={**ledger, "neighbours": "replace_one"}),
        rows_policy(tmp_path, **ledger),
    ):
        with pytest.raises(PromiseError):
            dt.open(made, sources=frames)
    # A table of another name has an account of its own, which is said where nobody knows whether
    # its rows are others.
    apart = rows_policy(tmp_path, **ledger)
    apart["tables"]["others"] = apart["tables"].pop("visits")
    given = {"others": visits(), "regions": frames["regions"]}
    with pytest.warns(UserWarning, match="'others'.*may hold the same rows as table 'visits'"):
        session = dt.open(apart, sources=given)
    with session:
        session.sql(COUNT.format("others")).release("0.1")
        assert set(session.ledger.accounts()) == {"dataset:pid of visits", "dataset:row of others"}
    with open_already:
        open_already.sql(COUNT.format("visits")).release("0.1")


def test_a_session_that_was_open_before_is_refused_at_the_charge(tmp_path, frames):
    """Two policies opened on a new ledger: the first charge decides, inside its transaction."""
    ledger = {"ledger": str(tmp_path / "one.ledger")}
    first = dt.open(policy(tmp_path, budget=ledger), sources=frames)
    others = [
        dt.open(policy(tmp_path, budget={**ledger, "neighbours": "replace_one"}), sources=frames),
        dt.open(rows_policy(tmp_path, **ledger), sources=frames),
    ]
    with first:
        first.sql(COUNT.format("visits")).release("0.1")
        for other in others:
            with other, pytest.raises(PromiseError):
                other.sql(COUNT.format("visits")).release("0.1", token="t")
        charges = [e for e in first.ledger.entries() if e.kind == "charge"]
        assert len(charges) == 1
        assert first.ledger.verify().ok


def test_two_private_tables_are_joined_where_their_unit_is_one(tmp_path, sources):
    """An undeclared unit is refused with the section to write; a declared one is charged once."""
    text = "SELECT COUNT(*) AS n FROM visits JOIN labs ON visits.pid = labs.person"
    with (
        dt.open(three(tmp_path), sources=sources) as session,
        pytest.raises(QueryError, match=r'units.NAME.*visits = "pid", labs = "person"'),
    ):
        session.sql(text)
    with dt.open(three(tmp_path, TOGETHER), sources=sources) as session:
        session.sql(text).release("0.5")
        assert spent(session)["dataset:patient"] == F(1, 2)
        assert set(session.ledger.tables()) == {"visits", "labs"}


ROWS = {"patient": {"columns": {"visits": "pid"}, "rows": {"people": 3}}}


@pytest.mark.parametrize("delta", ["0", "1e-7"])
def test_rows_of_a_unit_are_charged_for_all_of_them(tmp_path, sources, delta):
    """What one row loses, for three: ε is what was asked for, and the noise is three times as wide.

    The group's δ is charged too: the row's own, times 1 + e^ε + e^2ε of the row.
    """
    made = three(tmp_path, ROWS, epsilon=2, delta="1e-6")
    with dt.open(made, sources=sources) as session:
        question = session.sql("SELECT COUNT(*) AS n FROM people")
        body = question.release("0.6", delta).certificate.to_dict()
        (row,) = (m["loss"] for m in body["measurements"])
        assert body["promise"] == Promise("patient").to_dict()
        assert (body["tables"], body["rows"]) == ({"people": "at most 3 rows"}, 3)
        assert F(row["epsilon"]) <= F("0.2")
        assert F(body["loss"]["epsilon"]) == 3 * F(row["epsilon"])
        assert F(body["loss"]["rho"]) == 9 * F(row["rho"])
        assert spent(session)["dataset:patient"] == F("0.6")
        text = " ".join(str(question.explain("0.6")).split())
        assert "one patient, with at most 3 rows of people" in text
        assert "conversion" in text
        assert dt.verify(body, session.ledger).ok
    with dt.open(three(tmp_path / "..", epsilon=2), sources=sources) as alone:
        narrow = alone.sql("SELECT COUNT(*) AS n FROM people").preview("0.6").widths["n"][0]
    with dt.open(made, sources=sources) as session:
        wide = session.sql("SELECT COUNT(*) AS n FROM people").preview("0.6", "0").widths["n"][0]
    assert wide == pytest.approx(3 * narrow, rel=0.1)


def test_a_group_of_rows_with_discovered_keys_stays_within_what_was_asked(tmp_path, sources):
    """δ of the release is δ of the group: a row's is smaller by the factor of three rows."""
    with dt.open(three(tmp_path, ROWS, epsilon=2), sources=sources) as session:
        question = session.sql(
            "SELECT height, COUNT(*) AS n FROM people GROUP BY height", discover=True
        )
        priced = question._noise_plan("0.6", "1e-7")
        charge = priced.charge
        assert charge.epsilon <= F("0.6")
        assert F("0.9e-7") < charge.delta <= F("1e-7")
        inner = priced.allocation.charge
        assert charge.delta == inner.delta * group_factor(inner.epsilon, 3)
        assert question.loss("0.6", "1e-7").charge == charge
        question.release("0.6", "1e-7")
        assert session.ledger.verify().ok


def test_a_unit_of_one_row_is_a_row_under_another_name(tmp_path, sources):
    """Then tables share its account, and nothing is converted."""
    units = {"patient": {"columns": {"visits": "pid"}, "rows": {"people": 1}}}
    with dt.open(three(tmp_path, units), sources=sources) as session:
        session.sql(COUNT.format("people")).release("0.5")
        assert spent(session)["dataset:patient"] == F(1, 2)


@pytest.mark.parametrize(
    ("units", "message"),
    [
        ({"patient": {}}, r"units.patient names no table"),
        ({"patient": {"columns": {"visit": "pid"}}}, "no table 'visit'; did you mean 'visits'"),
        ({"patient": {"columns": {"regions": "region"}}}, "'regions' is public"),
        ({"patient": {"columns": {"visits": "age"}}}, "name two columns"),
        ({"patient": {"columns": {"visits": 3}}}, "must be a text"),
        ({"patient": {"column": {"visits": "pid"}}}, "unknown field 'column'"),
        ({"patient": {"rows": {"visits": 2}}}, "has a column that says whose a row is"),
        ({"patient": {"rows": {"people": 0}}}, "whole number"),
        ({" ": {"columns": {"visits": "pid"}}}, "printable text"),
        ({"a\nb": {"columns": {"visits": "pid"}}}, "printable text"),
        (
            {"a": {"columns": {"visits": "pid"}}, "b": {"columns": {"visits": "pid"}}},
            "which units.a names already",
        ),
        ({"row of people": {"columns": {"visits": "pid"}}}, "gives its own unit"),
    ],
)
def test_malformed_units_are_refused(tmp_path, units, message):
    """By the name of the field, before anything is opened."""
    with pytest.raises(PolicyError, match=message):
        read_policy(three(tmp_path, units))


def test_rows_cannot_be_replaced_into_a_unit(tmp_path):
    """A unit of three rows and one of two are not neighbours by replacing rows."""
    with pytest.raises(PolicyError, match=r'units.patient.rows needs neighbours = "add_remove"'):
        read_policy(three(tmp_path, ROWS, neighbours="replace_one"))


def test_the_unit_column_may_be_said_once(tmp_path, frames):
    """In [units] alone, or in both places alike."""
    made = policy(tmp_path)
    del made["tables"]["visits"]["unit"]
    with pytest.raises(PolicyError, match="max_groups has no meaning where a row is a person"):
        read_policy(made)
    made["units"] = {"patient": {"columns": {"visits": "pid"}}}
    assert read_policy(made).tables["visits"].unit == "pid"
    with dt.open(made, sources=frames) as session:
        assert "with all its rows of visits" in str(session.sql(COUNT.format("visits")).explain())


def test_the_same_rows_are_not_protected_twice(tmp_path):
    """Two tables that read one file under two units would each miss what the other spends."""
    made = three(tmp_path)
    made["tables"]["visits"]["source"] = "data/../visits.parquet"
    made["tables"]["people"]["source"] = "visits.parquet"
    with pytest.raises(PolicyError, match=r"tables.visits and tables.people read the same rows"):
        read_policy(made)
    shared = copy.deepcopy(made)
    shared["tables"]["people"] |= {"unit": "pid", "max_groups": 1, "max_rows": 1}
    shared["units"] = {"patient": {"columns": {"visits": "pid", "people": "pid"}}}
    assert read_policy(shared).units["people"].name == "patient"


def test_the_same_frame_is_not_protected_twice(tmp_path, frames):
    """Nor where frames or paths are given in place of files."""
    path, link = tmp_path / "all.parquet", tmp_path / "linked.parquet"
    visits().write_parquet(path)
    link.hardlink_to(path)
    made = three(tmp_path)
    made["tables"]["labs"] = {"columns": {"age": {"bounds": [0, 110]}}}
    made["tables"]["people"] = {"public": True}
    for one, other in ((frames["visits"], frames["visits"]), (path, path), (path, link)):
        with pytest.raises(PolicyError, match=r"tables.visits and tables.labs read the same rows"):
            dt.open(made, sources={**frames, "visits": one, "labs": other, "people": PEOPLE})


def test_an_analyst_has_no_colon(tmp_path):
    """Accounts are named by analyst and unit; a colon would let two of them share a name."""
    with pytest.raises(PolicyError, match="must not hold a colon"):
        read_policy(policy(tmp_path, analysts={"a:b": {"epsilon": 1}}))


def test_replaced_units_have_their_own_words(tmp_path, frames):
    """In balances, certificates and explanations."""
    made = policy(tmp_path, budget={"neighbours": "replace_one"})
    with dt.open(made, sources=frames) as session:
        body = session.sql(COUNT.format("visits")).release("0.1").certificate.to_dict()
        assert body["promise"]["neighbours"] == Neighbours.REPLACE.value
        assert session.sql(COUNT.format("visits")).loss("0.1").neighbours is Neighbours.REPLACE
        assert session.balance()[0].promise.describe() == "one pid of visits, replaced"


def test_too_much_of_a_group_is_refused(tmp_path, sources):
    """An epsilon that no exponential can hold says so, and spends nothing."""
    with dt.open(three(tmp_path, ROWS, epsilon=10**6), sources=sources) as session:
        with pytest.raises(ArgumentError, match="too large for a unit of several rows"):
            session.sql(COUNT.format("people")).release(200_000, "1e-8")
        assert session.ledger.accounts() == []


def test_an_unwritten_unit_is_a_ledger_error(tmp_path, frames):
    """`PromiseError` is one of the ledger's: anyone who handles those handles it."""
    assert issubclass(PromiseError, LedgerError)


@pytest.mark.parametrize("max_rows", [1, 4])
def test_a_share_is_not_rounded_away(tmp_path, max_rows):
    """One yes in six rows is a sixth, however few of the rows count.

    At ε = 10⁶ the noise is below 10⁻⁶ with certainty for all that matters; what is left is what
    scaling down cuts off, and that is below 10⁻³.
    """
    units, rows = 500, 6
    frame = pl.DataFrame(
        {
            "who": [u for u in range(units) for _ in range(rows)],
            "yes": [i == 0 for _ in range(units) for i in range(rows)],
        }
    )
    policy = {
        "budget": {"epsilon": 10**7, "ledger": str(tmp_path / "a.ledger")},
        "tables": {"t": {"unit": "who", "max_groups": 1, "max_rows": max_rows}},
    }
    yes = "CASE WHEN yes THEN 1 ELSE 0 END"
    with dt.open(policy, sources={"t": frame}) as session:
        question = session.sql(
            f"SELECT AVG({yes}) AS share, SUM({yes}) AS n, VAR_POP({yes}) AS v FROM t"
        )
        found = question.release(epsilon=10**6).frame
    assert found["n"].dtype == pl.Int64
    assert found["share"][0] == pytest.approx(1 / 6, abs=1e-3)
    assert found["n"][0] == pytest.approx(units * max_rows / 6, abs=1)
    assert found["v"][0] == pytest.approx(5 / 36, abs=1e-3)
