"""The command `dither ledger`: readable at 80 columns, exact as JSON, honest exit codes."""

from __future__ import annotations

import json
from fractions import Fraction
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from dither._format import loss_text, remaining
from dither.accounting import BudgetFilter
from dither.cli import main
from dither.errors import BudgetError, PromiseError
from dither.ledger import Ledger
from dither.privacy import Charge, Promise
from ledger.stores import tamper

PATIENT = Promise("patient")
PURE = BudgetFilter(Fraction(1), Fraction(0))


def run(*arguments: object, columns: int = 80) -> Result:
    """Run the command in a terminal of some width."""
    return CliRunner().invoke(main, ["ledger", *map(str, arguments)], env={"COLUMNS": str(columns)})


def test_show_fits_80_columns_and_says_everything(full: Ledger) -> None:
    """Each account with caps, spending and remainder; each entry; nothing wider than 80."""
    query = "SELECT region, COUNT(*) AS n,\n AVG(cost) AS cost FROM visits GROUP BY region, sex"
    gaussian = Charge(None, Fraction(0), Fraction(1, 1000), Fraction(1, 10**8), PATIENT)
    full.ensure_account("[bold]zcdp[/bold]", BudgetFilter(Fraction(2), Fraction(1, 10**6)), PATIENT)
    full.charge(
        ["[bold]zcdp[/bold]"], gaussian, token="z", request="ee" * 32, note={"query": query, "n": 1}
    )
    result = run("show", full.place)
    assert result.exit_code == 0, result.output
    lines = result.output.splitlines()
    assert max(map(len, lines)) <= 80
    text = " ".join(result.output.split())
    assert "visits ε 1, δ 0 ε 0.3 ███░░░░░ 30% ε 0.7" in text
    assert "ann ε 2, δ 0 ε 0.2 █░░░░░░░ 10% ε 1.8" in text
    assert "[bold]zcdp[/bold]" in text
    assert "ρ 0.001, δ 1e-8" in text
    assert "charge ε 0.1 ann, visits one" in text
    assert "SELECT region, COUNT(*) AS n, AVG(cost) AS cost FROM visits GROUP BY" in text
    assert "amend ε 2, δ 0 ann agreed" in text


def test_show_can_be_narrowed(full: Ledger) -> None:
    """To one account, and to the newest entries; the rest is counted."""
    only = run("show", full.place, "--account", "ann").output
    assert "ann" in only
    assert "two" not in only
    newest = run("show", full.place, "--limit", 2).output
    assert "7 older entries" in newest
    assert "three" in newest
    assert "two" not in newest


def test_json_is_exact(full: Ledger) -> None:
    """Fractions as text, hashes, requests: everything that another program needs."""
    shown = json.loads(run("show", full.place, "--json").output)
    assert shown["id"] == full.id
    visits = shown["accounts"][1]
    assert visits["name"] == "visits"
    assert visits["caps"] == {"epsilon": "1", "delta": "0"}
    assert visits["spent"]["epsilon"] == "3/10"
    assert visits["remaining"]["epsilon"] == "7/10"
    assert [entry["hash"] for entry in shown["entries"]] == [e.hash for e in full.entries()]
    assert shown["entries"][3]["charge"]["rho"] == "1/200"
    assert shown["entries"][5]["answers"] == 3


def test_verify_says_one_line_and_an_exit_code(full: Ledger) -> None:
    """0 where the chain is whole; 1 with the first bad entry where it is not."""
    good = run("verify", full.place)
    assert good.exit_code == 0
    assert good.stdout.startswith(f"{full.name}: 9 entries, chain whole")
    assert len(good.stdout.splitlines()) == 1
    tamper(full, "UPDATE entries SET note = '{}' WHERE number = 4")
    bad = run("verify", full.place)
    assert bad.exit_code == 1
    assert bad.stdout == f"{full.name}: entry 4: changed (4 entries before it are good)\n"
    if isinstance(full.place, Path):
        full.path.write_bytes(b"nothing of the kind")
    else:
        tamper(full, "DELETE FROM ledger")
    broken = run("verify", full.place)
    assert broken.exit_code == 1
    assert "no ledger" in broken.output


def test_amend_keeps_the_delta_that_it_is_not_told(tmp_path: Path) -> None:
    """A larger epsilon alone does not take the delta away."""
    with Ledger.open(tmp_path / "l") as book:
        book.ensure_account("dataset", BudgetFilter(Fraction(1), Fraction(1, 10**6)), PATIENT)
        run("amend", book.path, "--account", "dataset", "--epsilon", "2", "--reason", "more")
        caps = book.balance("dataset").caps
        assert caps == BudgetFilter(Fraction(2), Fraction(1, 10**6))


def test_amend_changes_caps_and_keeps_the_reason(full: Ledger) -> None:
    """Exact decimals in, what changed out; a wrong number or name is refused."""
    arguments = ["amend", full.place, "--account", "visits", "--reason", "board decision"]
    result = run(*arguments, "--epsilon", "2.5", "--delta", "1e-6")
    assert result.exit_code == 0
    assert result.output.startswith("visits: ε 1, δ 0 -> ε 2.5, δ 1e-6; remains ε 2.2, δ 5e-7")
    assert full.balance("visits").caps == BudgetFilter(Fraction(5, 2), Fraction(1, 10**6))
    assert full.entries()[-1].note == {"reason": "board decision"}
    for epsilon in ("much", "1/0", "-1", "0", "nan"):
        assert run(*arguments, "--epsilon", epsilon).exit_code != 0
    wrong = run("amend", full.place, "--account", "visit", "--epsilon", "1", "--reason", "x")
    assert wrong.exit_code == 7
    assert "did you mean 'visits'" in wrong.output


def test_a_policy_names_the_ledger(
    full: Ledger, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """By --policy, or by dither.toml in this directory; relative to the policy."""
    policy = tmp_path / "dither.toml"
    place = full.place
    named = (
        '"visits.ledger"'
        if isinstance(place, Path)
        else f'{{ postgres = "{place.dsn}", schema = "{place.schema}" }}'
    )
    policy.write_text(f"[budget]\nledger = {named}\n", encoding="utf-8")
    assert run("show", "--policy", policy).exit_code == 0
    monkeypatch.chdir(policy.parent)
    assert run("verify").exit_code == 0
    policy.write_text("[budget]\n", encoding="utf-8")
    assert "under [budget], write ledger" in run("show").output
    policy.unlink()
    missing = run("show")
    assert missing.exit_code == 2
    assert "name a LEDGER or a --policy" in missing.output


def test_a_missing_ledger_is_not_made(tmp_path: Path) -> None:
    """Looking never creates."""
    result = run("show", tmp_path / "no.ledger")
    assert result.exit_code == 7
    assert "there is no ledger" in result.output
    assert list(tmp_path.iterdir()) == []


def test_an_empty_ledger_shows(tmp_path: Path) -> None:
    """No account yet, one entry."""
    book = Ledger.open(tmp_path / "x.ledger")
    result = run("show", book.path)
    assert "No account yet" in result.output
    assert "genesis" in result.output


@pytest.mark.parametrize(
    ("amount", "up", "down"),
    [
        (Fraction(1, 3), "0.3334", "0.3333"),
        (Fraction(0), "0", "0"),
        (Fraction(12), "12", "12"),
        (Fraction(1, 10**6), "1e-6", "1e-6"),
        (Fraction(123456), "123,500", "123,400"),
        (Fraction(10**9), "1,000,000,000", "1,000,000,000"),
        (None, "∞", "∞"),
    ],
)
def test_amounts_are_never_flattered(amount: Fraction | None, up: str, down: str) -> None:
    """What is spent is rounded up and what remains down."""
    assert (loss_text(amount), remaining(amount)) == (up, down)


def test_quotas_of_analysts_promise_nothing(tmp_path: Path) -> None:
    """They stand apart from accounts that promise: as text, as JSON, in messages and balances."""
    row = Promise("row of visits")
    caps = {"dataset:row of visits": PURE, "analyst:ana:row of visits": PURE}
    with Ledger.open(tmp_path / "visits.ledger") as book:
        charge = Charge.pure(Fraction(3, 4), row)
        book.charge(caps, charge, token="t", request="ab" * 32, note={})
        ana, dataset = (book.balance(name) for name in sorted(caps))
        assert (ana.quota, dataset.quota) == (True, False)
        assert str(ana).startswith("analyst:ana:row of visits (a quota): spent epsilon 0.75")
        with pytest.raises(BudgetError) as refused:
            book.charge(sorted(caps), charge, token="u", request="ab" * 32, note={})
        assert "(an analyst's quota) cannot bear this charge" in str(refused.value)
        assert "added or removed" not in str(refused.value)
        with pytest.raises(PromiseError, match="'analyst:ana:row of visits' adds up losses for"):
            book.charge(sorted(caps), charge.to_replace(), token="u", request="ab" * 32, note={})
    text = run("show", tmp_path / "visits.ledger").stdout
    promising, _, rest = text.partition("quotas of analysts: they limit who asks, and promise")
    assert "protects one row of visits" in promising
    assert "analyst:" not in promising
    listed, _, entries = rest.partition("genesis")
    assert "analyst:ana:row of visits" in listed
    assert "protects" not in listed
    assert entries.count("protects one row of visits") == 1
    assert entries.count("a quota") == 1
    body = json.loads(run("show", tmp_path / "visits.ledger", "--json").stdout)
    promised = {a["name"]: a["promise"] is not None for a in body["accounts"]}
    assert promised == {"dataset:row of visits": True, "analyst:ana:row of visits": False}
    opened = {e["accounts"][0]: e["promise"] for e in body["entries"] if e["kind"] == "account"}
    assert opened["analyst:ana:row of visits"] is None
