"""What rests on an earlier answer, over HTTP: sums of a finer table, and more precision."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from fractions import Fraction
from pathlib import Path
from typing import Any

import polars as pl
import pytest

import dither as dt
from dither.errors import ArgumentError, BudgetError
from dither.ledger import OwnerKey
from service.client.test_same_questions import through
from service.hospital import Served, served, written

KEYS = [f"k{i:02}" for i in range(24)]
FINE = "SELECT place, month, COUNT(*) AS n FROM stays GROUP BY place, month"
COARSE = "SELECT month, COUNT(*) AS n FROM stays GROUP BY month"
TEXT = "SELECT place, COUNT(*) AS n, SUM(age) AS t FROM stays GROUP BY place"

MONTH = "SELECT COUNT(*) AS n FROM tests WHERE day"

STAYS = f"""
[tables.stays]
source = "stays.parquet"
unit = "person"
max_groups = 24
max_rows = 2
[tables.stays.columns]
place = {{ values = {KEYS}, nullable = false }}
month = {{ values = ["may", "june"], nullable = false }}
age = {{ bounds = [0, 100] }}
"""


def stays(folder: Path, rows: int = 600) -> None:
    """People who may count in many groups, so that Gaussian noise is chosen."""
    pl.DataFrame(
        {
            "person": [i // 2 for i in range(rows)],
            "place": [KEYS[i % 24] for i in range(rows)],
            "month": [("may", "june")[i % 2] for i in range(rows)],
            "age": [30 + i % 20 for i in range(rows)],
        }
    ).write_parquet(folder / "stays.parquet")


@pytest.fixture
def house(tmp_path: Path, ledger: str) -> Iterator[Served]:
    """A service over them; everybody has one account."""
    stays(tmp_path)
    with served(written(tmp_path, ledger=ledger, more=STAYS, epsilon=50)) as found:
        yield found


def connected(house: Served, who: str = "ann") -> Any:
    """A session of somebody."""
    return dt.connect("http://here/visits", key=house.keys[who], transport=through(house))


def test_sums_of_a_finer_table_are_those_of_a_local_session(house: Served) -> None:
    """Free of charge, of one's own answers; of nobody else's."""
    with connected(house) as ann, connected(house, "bob") as bob:
        finer = ann.sql(FINE).release(1)
        spent = ann.balance()[0].spent
        sums = ann.sql(COARSE).from_finer(finer)
        assert sums.frame["n"].sum() == finer.frame["n"].sum()
        assert ann.balance()[0].spent == spent
        local = house.desk.session.sql(COARSE).from_finer(finer)
        assert sums.frame.equals(local.frame)
        with pytest.raises(ArgumentError, match="that you may see"):
            bob.sql(COARSE).from_finer(finer)


def test_an_answer_is_topped_up_for_the_difference(house: Served) -> None:
    """As exact as one answer at the whole rho, at a service that makes the same request."""
    with connected(house) as ann:
        question = ann.sql(TEXT)
        first = question.release("0.5")
        rho = Fraction(first.certificate.content["loss"]["rho"])
        with pytest.raises(ArgumentError, match="say same_data=True"):
            question.top_up(first, to_rho=4 * rho)
        asked = question.topping_up(first, to_rho=4 * rho, same_data=True)
        assert asked.price.rho == 3 * rho
        assert "averaged with the answer of ledger entry" in str(asked.explain())
        assert asked.preview().frame.height == question.preview("0.5").frame.height
        before = ann.balance()[0].spent.rho
        made = question.top_up(first, to_rho=4 * rho, same_data=True, token="more")
        assert ann.balance()[0].spent.rho - before < 3 * rho + Fraction(1, 10**17)
        again = question.top_up(first, to_rho=4 * rho, same_data=True, token="more")
        assert again.frame.equals(made.frame)
        assert dt.verify(made.certificate, house.desk.session.ledger).ok
        width = (made.frame["n_upper"] - made.frame["n_lower"]).max()
        assert width < (first.frame["n_upper"] - first.frame["n_lower"]).max()
        with pytest.raises(ArgumentError, match="topped up already"):
            question.top_up(made, to_rho=9 * rho, same_data=True)
        with pytest.raises(BudgetError):
            question.top_up(first, to_rho=10**4, same_data=True)


def test_where_certificates_have_the_data_version_the_service_tells(tmp_path: Path) -> None:
    """Nobody has to say that the data are as they were; where they are not, it is refused."""
    stays(tmp_path)
    OwnerKey.make().write(tmp_path / "owner.key")
    more = '[owner]\nkey = "owner.key"\n' + STAYS
    with served(written(tmp_path, more=more, epsilon=50)) as house, connected(house) as ann:
        question = ann.sql(TEXT)
        first = question.release("0.5")
        assert question.top_up(first, epsilon=1).frame.height == 24
        stays(tmp_path, 500)
        with pytest.raises(ArgumentError, match="changed since the answer was released"):
            question.top_up(first, epsilon=1)


def test_nobody_tops_up_what_is_anothers(house: Served) -> None:
    """Over the client, and by the address of the answer: with one account for all, too."""
    with connected(house) as ann, connected(house, "bob") as bob:
        first = ann.sql(TEXT).release("0.5")
        with pytest.raises(ArgumentError, match="that you may see"):
            bob.sql(TEXT).top_up(first, epsilon=1, same_data=True)
        content = first.certificate.content
        named = [content["request"], content["ledger"]["hash"]]
        call = ["topping_up", [{"answer": named}], {"epsilon": "1", "same_data": True}]
        body = {"ask": [["sql", [TEXT], {}], call]}
        for path in ("/explain", "/preview", "/price", "/releases"):
            refused = house.post("bob", path, body)
            assert refused.status_code == 400, refused.text
            assert "that you may see" in refused.json()["error"]["message"]
        assert house.post("bob", "/published", {"digest": named[0]}).json() == {"answers": []}
        assert house.post("ann", "/explain", body).status_code == 200


@pytest.mark.parametrize(
    "held",
    [
        ["x", "y"],
        ["0" * 64, "0" * 64],
        ["0" * 64],
        "0" * 64,
        ["<script>" + "0" * 56, "0" * 64],
        {"a": 1},
        None,
    ],
)
def test_an_answer_that_is_none_is_refused(hospital: Served, held: Any) -> None:
    """Nothing of what was sent comes back."""
    call = ["topping_up", [{"answer": held}], {"epsilon": "1"}]
    found = hospital.post(
        "ann",
        "/price",
        {
            "ask": [
                ["sql", [COARSE.replace("stays", "visits").replace("month", "region")], {}],
                call,
            ]
        },
    )
    assert found.status_code == 400
    assert "script" not in found.text


def test_a_reservation_is_of_the_blocks_that_a_question_reads(tmp_path: Path) -> None:
    """As of a local session: no other block is kept back."""
    days = [datetime(2026, 1, 1, tzinfo=UTC).date() + timedelta(days=7 * i) for i in range(40)]
    pl.DataFrame({"person": range(40), "day": days}).write_parquet(tmp_path / "tests.parquet")
    file = tmp_path / "visits.toml"
    file.write_text(
        """
[budget]
epsilon = 1
delta = 1e-6
per = "block"
ledger = "visits.ledger"
[service]
name = "visits"
[tables.tests]
source = "tests.parquet"
unit = "person"
block = { column = "day", every = "month" }
max_rows = 1
max_groups = 1
[tables.tests.columns]
day = { bounds = ["2026-01-01", "2026-12-31"] }
"""
    )
    until = datetime.now(UTC) + timedelta(days=30)
    march = f"{MONTH} >= DATE '2026-03-01' AND day < DATE '2026-04-01'"
    may = march.replace("03-01", "05-01").replace("04-01", "06-01")
    with served(file) as house, connected(house) as ann:
        kept = ann.reserve("0.75", until=until, question=ann.sql(march))
        with pytest.raises(BudgetError):
            ann.sql(march).release("0.5")
        assert ann.sql(may).release("0.5") is not None
        with ann.using(kept):
            assert ann.sql(march).release("0.5") is not None
        ann.reserve("0.2", until=until)
        refused = house.post(
            "ann", "/reservations", {"epsilon": "0.1", "until": "2030", "sql": "x"}
        )
        assert refused.status_code == 400
