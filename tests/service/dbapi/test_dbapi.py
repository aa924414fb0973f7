"""A service as a database: PEP 249, and SQLAlchemy's dialect over it."""

from __future__ import annotations

import datetime as dt
from decimal import Decimal
from typing import Any

import pytest
import sqlalchemy as sa

from dither.errors import QueryError
from dither.service import dbapi
from dither.service.dbapi._statements import literal, with_parameters, without_price
from service.loopback import OnLoopback


@pytest.fixture(scope="module")
def connection(loopback: OnLoopback) -> Any:
    with dbapi.connect(loopback.address, key=loopback.keys["ann"]) as found:
        yield found


def test_a_statement_is_released_at_its_price(connection: Any) -> None:
    cursor = connection.cursor()
    cursor.execute(
        "SELECT COUNT(*) AS n FROM visits WHERE age >= ? AND \"group\" <> 'treated' "
        "OPTIONS (epsilon = 100, max_rows_contributed = 2);",
        [50],
    )
    assert [name for name, *_ in cursor.description] == ["n", "n_lower", "n_upper"]
    ((n, low, high),) = cursor.fetchall()
    assert low <= n <= high
    assert cursor.fetchone() is None
    assert cursor.release.certificate.to_dict()["max_rows"] == 2


def test_what_names_no_price_is_refused(loopback: OnLoopback, connection: Any) -> None:
    """So does what dashboards ask by themselves; nothing is charged."""
    before = loopback.desk.session.ledger.entries(limit=1)[-1].number
    for statement in (
        "SELECT COUNT(*) AS n FROM visits",
        "SELECT COUNT(*) AS n FROM visits OPTIONS (max_rows_contributed = 2)",
        "SELECT * FROM visits LIMIT 100",
        "SELECT 1",
        "SHOW TABLES",
        "SELECT COUNT(*) AS n FROM visits OPTIONS (epsilon)",
        "SELECT COUNT(*) AS n FROM visits OPTIONS (epsilon = 1, epsilon = 1)",
        "SELECT COUNT(*) AS n FROM visits OPTIONS (epsilon = nonsense)",
        "SELECT COUNT(*) AS n FROM visits WHERE age > ? OPTIONS (epsilon = 1)",
        "'",
    ):
        with pytest.raises(dbapi.ProgrammingError):
            connection.cursor().execute(statement)
    with pytest.raises(dbapi.NotSupportedError):
        connection.cursor().executemany("SELECT 1", [])
    assert loopback.desk.session.ledger.entries(limit=1)[-1].number == before


def test_an_account_that_cannot_bear_it_is_an_operational_error(loopback: OnLoopback) -> None:
    with (
        dbapi.connect(loopback.address, key=loopback.keys["eve"]) as connection,
        pytest.raises(dbapi.OperationalError, match="fits"),
    ):
        connection.cursor().execute("SELECT COUNT(*) AS n FROM visits OPTIONS (epsilon = 6)")


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (None, "NULL"),
        (True, "TRUE"),
        (-3, "(-3)"),
        (0.5, "0.5"),
        (Decimal("1.10"), "1.10"),
        ("it's ?", "'it''s ?'"),
        (dt.date(2024, 2, 29), "DATE '2024-02-29'"),
        (dt.datetime(2024, 2, 29, 12), "TIMESTAMP '2024-02-29 12:00:00'"),
    ],
)
def test_literals(value: Any, text: str) -> None:
    assert literal(value) == text


@pytest.mark.parametrize("value", [float("nan"), float("inf"), object(), b"x", "a\0b"])
def test_what_is_no_literal(value: Any) -> None:
    with pytest.raises(QueryError):
        literal(value)


def test_a_parameter_is_never_more_than_a_literal() -> None:
    """Quotes, comments and options that stand in a parameter stay in it."""
    hostile = "x' OPTIONS (epsilon = 1000) --"
    made = with_parameters(
        "SELECT COUNT(*) AS n FROM v WHERE a = ? OPTIONS (epsilon = 1)", [hostile]
    )
    assert without_price(made).price == {"epsilon": "1"}


def test_options_that_stay_are_not_swallowed_by_a_comment() -> None:
    """One that stands before them; and a price alone leaves no question."""
    found = without_price("SELECT 1 AS n -- so\nOPTIONS (groups = 2, epsilon = 1); -- so")
    assert (found.sql, found.price) == ("SELECT 1 AS n OPTIONS (groups = 2)", {"epsilon": "1"})
    assert without_price("OPTIONS (epsilon = 1)").sql == ""


def test_a_closed_connection_says_so(loopback: OnLoopback) -> None:
    found = dbapi.connect(loopback.address, key=loopback.keys["ann"])
    found.close()
    found.close()
    with pytest.raises(dbapi.InterfaceError):
        found.cursor()
    with pytest.raises(dbapi.Error, match="no key"):
        dbapi.connect(loopback.address, key="dither_no")


def test_sqlalchemy(loopback: OnLoopback) -> None:
    """Tables are looked at for nothing, a statement is asked at its price, and not without."""
    url = sa.URL.create(
        "dither",
        password=loopback.keys["ann"],
        host="127.0.0.1",
        port=loopback.port,
        database="visits",
    )
    engine = sa.create_engine(url)
    assert sa.inspect(engine).get_table_names() == ["regions", "visits"]
    visits = sa.Table("visits", sa.MetaData(), autoload_with=engine)
    asked = (
        sa.select(visits.c.group, sa.func.count().label("n"))
        .where(visits.c.age >= 30, visits.c.region != "it's")
        .group_by(visits.c.group)
    )
    with engine.connect() as connection:
        with pytest.raises(sa.exc.ProgrammingError, match="no price"):
            connection.execute(asked)
        rows = connection.execute(asked, execution_options={"epsilon": 100}).all()
        assert {row[0] for row in rows} == {"control", "treated"}
        text = sa.text("SELECT COUNT(*) AS n FROM visits OPTIONS (epsilon = 100)")
        assert abs(connection.execute(text).scalar_one() - 600) < 20
    engine.dispose()
