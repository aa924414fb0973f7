"""Columns that look like a person's key: drafts ask whose a row is, and a check warns."""

from __future__ import annotations

import tomllib
from contextlib import nullcontext

import polars as pl
import pytest

import dither as dt
from dither.errors import PolicyError
from dither.plan.schema import Kind
from dither.policy._drafting import UnitMissing
from dither.policy._identifying import person_keys

KEYS = ("patient_id", "UserID", "customer number", "userid", "person", "SSN", "id_client", "MRN",
        "patientNr", "Email", "subject_code", "kunden_nr", "hashed_user_id")  # fmt: skip
OTHERS = ("id", "cost", "patients", "number_of_users", "region", "age_of_patient", "member_since",
          "idea", "key", "userland", "", "personal_best")  # fmt: skip


def test_names_of_keys_and_others():
    """Whatever the spelling; what counts people or describes them is none."""
    assert person_keys(dict.fromkeys(KEYS, Kind.TEXT)) == list(KEYS)
    assert person_keys(dict.fromkeys(OTHERS, Kind.INTEGER)) == []
    assert person_keys({"patient": Kind.BOOLEAN, "user": Kind.DATE}) == []


@pytest.fixture
def visits(tmp_path):
    path = tmp_path / "visits.parquet"
    pl.DataFrame({"patient_id": [1, 1, 2], "cost": [1.0, 2.0, 3.0]}).write_parquet(path)
    return path


def test_no_draft_protects_rows_without_a_word(visits, tmp_path):
    """Refused by name; with a unit, or where rows are said to be people, drafted and opened."""
    with pytest.raises(UnitMissing, match="'patient_id', which may say whose a row is") as refused:
        dt.draft_policy(visits)
    assert refused.value.columns == ("patient_id",)
    with pytest.raises(PolicyError, match="contradict"):
        dt.draft_policy(visits, unit="patient_id", by_row=True)
    for asked in ({"unit": "patient_id"}, {"by_row": True}):
        text = dt.draft_policy(visits, **asked)
        (tmp_path / "p.toml").write_text(text)
        # The first one's ledger is gone, and this process says so.
        again = "by_row" in asked
        said = pytest.warns(UserWarning, match="another ledger") if again else nullcontext()
        with said, dt.open(tmp_path / "p.toml") as session:
            assert session.sql("SELECT COUNT(*) AS n FROM visits").release(0.1).frame.height == 1
        assert not any(f.level == "warning" for f in dt.check(tmp_path / "p.toml").findings)
        (tmp_path / "visits.ledger").unlink()
    assert tomllib.loads(text)["units"]["person"]["rows"] == {"visits": 1}


def test_a_check_warns_where_rows_are_protected(visits, tmp_path):
    """By the column's name; not of a public table, nor where a unit is declared."""

    def warned(**table):
        table = {"source": str(visits), **table}
        given = {
            "budget": {"epsilon": 1, "ledger": str(tmp_path / "l")},
            "tables": {"visits": table, "t": {"unit": "u", "max_groups": 1, "max_rows": 1}},
        }
        found = dt.check(given, sources={"t": pl.DataFrame({"u": [1]})}).findings
        return [f.where for f in found if f.level == "warning" and "patient_id" in f.text]

    assert warned() == ["tables.visits.unit"]
    assert warned(public=True) == []
    assert warned(unit="patient_id", max_groups=1, max_rows=1) == []


@pytest.mark.parametrize(
    ("delta", "at_least", "warns"),
    [(1e-6, 1000, False), (1e-3, 1000, True), (1e-3, 999, False), (1e-2, None, True),
     (1e-3, None, False), (0, 10**9, False), (1e-9, 10**9, True)],
)  # fmt: skip
@pytest.mark.parametrize("shared", [False, True])
def test_a_delta_of_one_over_the_people_does_not_open_in_silence(
    tmp_path, delta, at_least, warns, shared
):
    """By what the policy says there are at least; where it says nothing, only what is absurd."""
    given: dict = {
        "budget": {"epsilon": 1, "delta": delta, "ledger": str(tmp_path / "l")},
        "tables": {"t": {"unit": "u", "max_groups": 1, "max_rows": 1}},
    }
    if shared:
        given["units"] = {"person": {"columns": {"t": "u"}}}
    if at_least is not None:
        (given["units"]["person"] if shared else given["tables"]["t"])["units_at_least"] = at_least
    sources = {"t": pl.DataFrame({"u": [1]})}
    found = [f for f in dt.check(given, sources=sources).findings if f.where == "budget.delta"]
    assert [f.level for f in found] == ["warning"] * warns
    if warns and at_least is not None:
        with pytest.warns(UserWarning, match=r"budget\.delta"):
            dt.open(given, sources=sources).close()
    else:
        dt.open(given, sources=sources).close()


def test_how_many_units_there_are_is_of_private_tables(tmp_path):
    """A public table has none, and a number is a whole one."""
    table = {"public": True, "units_at_least": 5, "source": "x.csv"}
    given = {"budget": {"epsilon": 1, "ledger": "l"}, "tables": {"t": table, "p": {}}}
    with pytest.raises(PolicyError, match=r"tables\.t\.units_at_least contradicts public"):
        dt.open(given)
    given["tables"]["t"] = {"units_at_least": 0}
    with pytest.raises(PolicyError, match=r"units_at_least must be a whole number from 1"):
        dt.open(given)
