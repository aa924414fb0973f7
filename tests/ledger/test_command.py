"""The command `dither ledger`: readable at 80 columns, exact as JSON, honest exit codes."""

from __future__ import annotations

import json
from fractions import Fraction
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from dither._format import loss_text, remaining
from dither.accounting import BudgetFilter
from dither.blocks._calendar import Calendar
from dither.blocks._sets import BlockSet
from dither.cli import main
from dither.errors import BudgetError, PromiseError
from dither.ledger import BlockBudget, Ledger, _witness
from dither.ledger._place import LedgerSchema
from dither.privacy import Charge, Promise
from ledger.earlier import earlier
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
    promising, _, rest = text.partition("quotas: they limit who asks, and promise")
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


MONTHS = BlockBudget(
    Calendar(every="month"), BudgetFilter(Fraction(1, 2)), BudgetFilter(Fraction(8))
)


def test_sixty_blocks_fit_on_a_screen(tmp_path: Path) -> None:
    """Each month with a bar; nothing wider than 80 columns, nor longer than 50 lines."""
    first = 2021 * 12
    with Ledger.open(tmp_path / "visits.ledger") as book:
        caps = {"dataset:patient": MONTHS, "analyst:ann:patient": PURE}
        for number, blocks in enumerate(
            [BlockSet.of_range(first, first + 59) | BlockSet.of_names("null")]
            + [BlockSet.of_range(first + i, first + i + 2) for i in range(0, 40, 7)]
        ):
            tenth = Charge.pure(Fraction(1, 10), PATIENT)
            book.charge(
                caps,
                tenth,
                token=str(number),
                request="ab" * 32,
                note={"query": "q"},
                blocks=blocks,
            )
    result = run("show", tmp_path / "visits.ledger")
    lines = result.output.splitlines()
    assert result.exit_code == 0
    assert max(map(len, lines)) <= 80
    assert len(lines) <= 50
    assert "ε 0.5 a month, at most 0.5·m for someone in m months, 8 in all" in result.output
    assert "2021-01 ██░░ 40%" in result.output
    assert "2025-12 █░░░ 20%" in result.output
    assert "NULL    █░░░ 20%" in result.output
    body = json.loads(run("show", tmp_path / "visits.ledger", "--json").output)
    dataset = body["accounts"][1]
    assert dataset["caps"]["each"] == {"delta": "0", "epsilon": "1/2"}
    assert dataset["blocks"]["named"]["null"]["epsilon"] == "1/10"
    assert body["entries"][-1]["blocks"] == {"ranges": [[first + 35, first + 37]], "named": []}


def test_many_blocks_are_shown_by_stretch(tmp_path: Path) -> None:
    """Of more than fit, stretches that have spent the same, and those without an end."""
    with Ledger.open(tmp_path / "visits.ledger") as book:
        tenth = Charge.pure(Fraction(1, 10), PATIENT)
        for number, blocks in enumerate(
            [BlockSet.of_range(None, 24_000), BlockSet.of_range(23_000, None)]
        ):
            book.charge(
                {"d": MONTHS}, tenth, token=str(number), request="ab" * 32, note={}, blocks=blocks
            )
    output = run("show", tmp_path / "visits.ledger").output
    for said in ("all up to 1916-08 █░░░ 20%", "1916-09 to 2000-01 ██░░ 40%", "2000-02 and later"):
        assert said in " ".join(output.split()), output


@pytest.fixture
def keys(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> dict[str, Path]:
    """Two owners' keys, the second under a password."""
    monkeypatch.setenv("OWNER_PASSWORD", "s3cr3t")
    made = {name: tmp_path / f"{name}.key" for name in ("old", "new")}
    runner = CliRunner()
    for name, file in made.items():
        more = ["--password", "env:OWNER_PASSWORD"] if name == "new" else []
        result = runner.invoke(main, ["owner", "key", str(file), *more])
        assert result.exit_code == 0, result.output
        assert file.with_suffix(".pub").read_text().strip() in result.output
        assert file.stat().st_mode & 0o77 == 0
    return made


def test_a_key_is_never_written_over(keys: dict[str, Path], tmp_path: Path) -> None:
    """Nor its public half; a password stands on no command line."""
    before = keys["old"].read_bytes()
    for given in (["old.key"], ["other.pub"], ["x.key", "--password", "s3cr3t"]):
        arguments = ["owner", "key", str(tmp_path / given[0]), *given[1:]]
        assert CliRunner().invoke(main, arguments).exit_code != 0
    assert keys["old"].read_bytes() == before
    assert not (tmp_path / "x.key").exists()


def test_an_owner_amends_hands_over_and_recovers(full: Ledger, keys: dict[str, Path]) -> None:
    """By commands; whoever has no key is told which one it takes."""
    place = full.place
    change = ["amend", place, "--account", "visits", "--epsilon", "3", "--reason", "more"]
    assert "no owner" in run("owner", place).output
    assert run("owner", place, "--key", keys["old"]).exit_code == 0
    refused = run(*change)
    assert refused.exit_code == 7
    assert "--key OWNER.key" in refused.output
    assert run(*change, "--key", keys["old"]).output.startswith("visits: ε 1, δ 0 -> ε 3, δ 0")
    public = keys["new"].with_suffix(".pub")
    assert run("owner", place, "--key", keys["old"], "--to", public).exit_code == 0
    assert run(*change, "--key", keys["old"]).exit_code == 7
    signed = ["--key", keys["new"], "--password", "env:OWNER_PASSWORD"]
    assert run(*change, *signed).exit_code == 0
    assert run(*change, "--key", keys["new"]).exit_code != 0
    assert "owner: key" in run("show", place).output
    lost = run("owner", place, "--key", keys["old"], "--recovered", "the card is lost")
    assert "RECOVERED WITHOUT THE OLD KEY" in lost.output
    assert "the card is lost" in " ".join(run("show", place).output.split())
    assert "the card is lost" in run("verify", place).output
    assert json.loads(run("show", place, "--json").output)["recovered"] == "the card is lost"
    assert run("owner", place, "--to", public).exit_code == 2


POLICY = """
[budget]
epsilon = {epsilon}
ledger = "people.ledger"

[analysts.ana]
epsilon = 0.25

[tables.people]
source = "people.csv"
"""


def test_a_policy_is_opened_and_amended_by_its_owner(
    keys: dict[str, Path], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Every account once; then each gets the caps that the policy says, where they differ."""
    monkeypatch.chdir(tmp_path)
    policy = tmp_path / "dither.toml"
    policy.write_text(POLICY.format(epsilon=1), encoding="utf-8")
    opened = run("open", policy, "--key", keys["old"])
    assert opened.exit_code == 0, opened.output
    assert "dataset:row of people: one row of people, added or removed: ε 1 in all" in opened.output
    assert "analyst:ana:row of people" in opened.output
    assert run("open", policy).output == ""
    policy.write_text(POLICY.format(epsilon=2), encoding="utf-8")
    change = ["amend", "people.ledger", "--policy", policy, "--reason", "more"]
    assert run(*change).exit_code == 7
    result = run(*change, "--key", keys["old"])
    assert result.output == "dataset:row of people: ε 1, δ 0 -> ε 2, δ 0; remains ε 2\n"
    assert "already" in run(*change, "--key", keys["old"]).output
    assert run("amend", "people.ledger", "--reason", "x").exit_code == 2


def test_amend_of_blocks(tmp_path: Path) -> None:
    """Epsilon of each block, and that of all; what is not said stays."""
    with Ledger.open(tmp_path / "l") as book:
        book.ensure_account("d", MONTHS, PATIENT)
        change = ["amend", book.path, "--account", "d", "--reason", "x", "--epsilon"]
        result = run(*change, "0.25", "--lifetime", "6")
        assert result.exit_code == 0, result.output
        said = "d: ε 0.5, δ 0 a month, ε 8, δ 0 in all -> ε 0.25, δ 0 a month, ε 6, δ 0 in all"
        assert result.output.startswith(said)
        caps = book.balance("d").caps
        assert isinstance(caps, BlockBudget)
        assert (caps.each.epsilon, caps.lifetime) == (Fraction(1, 4), BudgetFilter(Fraction(6)))
        book.ensure_account("flat", PURE, PATIENT)
        flat = ["amend", book.path, "--account", "flat", "--reason", "x", "--epsilon", "1"]
        assert run(*flat, "--lifetime", "6").exit_code == 2


def test_upgrade_by_a_command(place: Path | LedgerSchema, monkeypatch: pytest.MonkeyPatch) -> None:
    """Once; the second time there is nothing to do. A charge before says which command it takes."""
    monkeypatch.setattr(_witness, "_process", {})
    earlier(place)
    assert run("show", place).exit_code == 0
    assert "upgraded; 11 entries, chain whole" in run("upgrade", place).output
    assert "in this format already; 11 entries" in run("upgrade", place).output
