"""Caps over HTTP: the owner signs where their key is, and nobody else changes any."""

from __future__ import annotations

import base64
import datetime as dt
import json
from collections.abc import Iterator
from fractions import Fraction
from pathlib import Path
from typing import Any

import httpx
import pytest
from cryptography.hazmat.primitives import serialization as form

import dither
from dither.accounting import BudgetFilter
from dither.errors import AmendmentError, ArgumentError, BudgetError, LedgerError
from dither.ledger import OwnerKey
from dither.ledger.amendments import SignedAmendment, base_of
from dither.service._desk import Desk
from dither.service.client._http import UnreachableServiceError
from dither.service.client._remote import RemoteSession
from dither.session._opened import accounts_of
from service.hospital import COUNT, Served, served, written

KEY, THIEF = OwnerKey.make(), OwnerKey.make()
ACCOUNT = "dataset:person of visits"
THREE = BudgetFilter(Fraction(3), Fraction(1, 10**6))


@pytest.fixture
def house(tmp_path: Path, ledger: str) -> Iterator[Served]:
    """A service whose ledger has an owner, with little to spend."""
    with served(written(tmp_path, ledger=ledger, epsilon=1)) as found:
        owned(found.desk)
        yield found


def owned(desk: Desk) -> None:
    """Make the ledger KEY's, with its accounts open."""
    desk.session.ledger.set_owner(KEY)
    for promise, accounts in accounts_of(desk.session.policy).items():
        desk.session.ledger.open_accounts(accounts, promise, key=KEY)


class Sent(httpx.BaseTransport):
    """The way to a service in this process, which writes down what is sent."""

    def __init__(self, house: Served) -> None:
        self.house, self.bodies = house, list[bytes]()

    def handle_request(self, request: httpx.Request) -> httpx.Response:
        """Hand it over."""
        self.bodies.append(
            request.read() + str(request.url).encode() + str(request.headers).encode()
        )
        found = self.house.http.request(
            request.method,
            request.url.raw_path.decode(),
            content=request.read(),
            headers=dict(request.headers),
        )
        return httpx.Response(found.status_code, headers=dict(found.headers), content=found.content)


def connected(house: Served, who: str = "olga", sent: Sent | None = None) -> RemoteSession:
    """A session of somebody."""
    return dither.connect(
        "http://testserver/visits", key=house.keys[who], transport=sent or Sent(house)
    )


def body(house: Served, **more: Any) -> dict[str, Any]:
    """What an owner's program sends."""
    session = house.desk.session
    budget, key = more.pop("budget", THREE), more.pop("key", KEY)
    base = base_of(session.ledger, ACCOUNT)
    return SignedAmendment.made(base, budget, "why", session.policy.digest, key).to_dict() | more


def test_an_owner_signs_and_the_policy_is_served_on(house: Served, tmp_path: Path) -> None:
    """What did not fit fits, in processes that ran before, too; nothing of the key was sent."""
    assert house.released("ann", epsilon="0.75", token="a")["state"] == "done"
    assert house.released("ann", epsilon="0.75", token="b")["failure"]["kind"] == "BudgetError"
    sent = Sent(house)
    with connected(house, sent=sent) as session:
        assert ACCOUNT in session.ledger.accounts()
        assert session.ledger.balance(ACCOUNT).caps.epsilon == 1  # type: ignore[union-attr]
        session.ledger.amend(ACCOUNT, THREE, "second year", key=KEY)
        assert session.ledger.balance(ACCOUNT).caps == THREE
        assert session.balance()[0].caps == THREE
        question = session.sql(COUNT)
        assert question.release("0.75").certificate is not None
    assert house.released("ann", epsilon="0.75", token="c")["state"] == "done"
    raw = KEY._key.private_bytes(form.Encoding.Raw, form.PrivateFormat.Raw, form.NoEncryption())
    whole = b"".join(sent.bodies)
    assert not any(one in whole for one in (raw, base64.b64encode(raw), raw.hex().encode()))
    ledger = house.desk.session.ledger
    assert ledger.verify().ok
    assert house.desk.session.ledger.owner.key == KEY.public  # type: ignore[union-attr]
    assert house.get("aude", "/log").json()["log"][0]["what"] == "caps amended"


def test_it_holds_after_a_restart_until_the_file_says_otherwise(tmp_path: Path) -> None:
    """The file as it was is served under the new caps; one that changed must have them itself."""
    file = written(tmp_path, epsilon=1)
    with served(file) as house:
        owned(house.desk)
        with connected(house) as session:
            session.ledger.amend(ACCOUNT, THREE, "more", key=KEY)
    with served(file) as house:
        assert house.released("ann", epsilon="2.5")["state"] == "done"
        text = file.read_text()
        file.write_text(text.replace("max_rows = 3", "max_rows = 2"))
        found = house.post("olga", "/policy/reload")
        assert found.status_code != 200
        assert "write its caps into the policy" in found.json()["error"]["message"]
        file.write_text(text.replace("epsilon = 1\n", "epsilon = 3\n"))
        assert house.post("olga", "/policy/reload").json()["changed"]
        assert house.released("ann", epsilon="0.25")["state"] == "done"


def test_a_file_that_was_written_first_is_taken_up(tmp_path: Path) -> None:
    """Caps in the file that the ledger does not have wait for the signature."""
    file = written(tmp_path, epsilon=1)
    with served(file) as house:
        owned(house.desk)
        before = house.desk.session.policy.digest
        file.write_text(file.read_text().replace("epsilon = 1\n", "epsilon = 3\n"))
        assert house.post("olga", "/policy/reload").status_code != 200
        assert house.released("ann", epsilon="2")["failure"]["kind"] == "BudgetError"
        with connected(house) as session:
            session.ledger.amend(ACCOUNT, THREE, "more", key=KEY)
        assert house.desk.session.policy.digest != before
        assert house.released("ann", epsilon="2")["state"] == "done"


def test_others_are_refused(house: Served) -> None:
    """Analysts, auditors, whoever has no key to the service; and a key that is not the owner's."""
    before = house.desk.session.ledger.entries()
    for who in ("ann", "aude"):
        assert house.post(who, "/amendments", body(house)).status_code == 403
        assert house.get(who, "/amendments", account=ACCOUNT).status_code == 403
    assert house.post(None, "/amendments", body(house)).status_code == 401
    with (
        connected(house, "ann") as session,
        pytest.raises(UnreachableServiceError, match="analyst"),
    ):
        session.ledger.amend(ACCOUNT, THREE, "x", key=KEY)
    with connected(house) as session:
        with pytest.raises(LedgerError, match="another owner"):
            session.ledger.amend(ACCOUNT, THREE, "x", key=THIEF)
        with pytest.raises(LedgerError, match="give the owner's key"):
            session.ledger.amend(ACCOUNT, THREE, "x")
        with pytest.raises(AmendmentError, match="no account of this name"):
            session.ledger.amend("dataset:nobody", THREE, "x", key=KEY)
        with pytest.raises(ArgumentError, match="read_until"):
            session.ledger.amend(ACCOUNT, THREE, "x", key=KEY, read_until=dt.date(2026, 1, 1))
    assert house.desk.session.ledger.entries() == before


@pytest.mark.parametrize(
    ("change", "status"),
    [
        ({"caps": {"epsilon": "1000", "delta": "0"}}, 409),
        ({"reason": "<script>alert(1)</script>"}, 409),
        ({"policy": "ab" * 32}, 409),
        ({"signature": "x"}, 409),
        ({"number": 10**15}, 409),
        ({"number": -1}, 400),
        ({"previous": "0" * 64}, 409),
        ({"time": "1970-01-01"}, 409),
        ({"account": "dataset:person of places"}, 409),
        ({"account": "<script>alert(1)</script>"}, 409),
        ({"caps": {"epsilon": "1e999999999", "delta": "0"}}, 400),
        ({"caps": json.loads('{"a":' * 60 + "1" + "}" * 60)}, 409),
        ({"reason": "x" * 10_001}, 400),
        ({"extra": 1}, 400),
        ({"signature": "x" * 2_000_000}, 413),
    ],
)
def test_forged_bodies_change_nothing(
    hospital: Served, change: dict[str, Any], status: int
) -> None:
    """Each field replaced: refused, nothing is written, and nothing that was sent comes back."""
    owned(hospital.desk)
    before = hospital.desk.session.ledger.entries()
    found = hospital.post("olga", "/amendments", body(hospital) | change)
    assert found.status_code == status, found.text
    assert hospital.desk.session.ledger.entries() == before
    assert "<script" not in found.text


def test_a_replay_and_another_policys_are_refused(house: Served, tmp_path: Path) -> None:
    """What was heard on the way is worth nothing: neither again, nor at another ledger."""
    heard = body(house)
    assert house.post("olga", "/amendments", heard).status_code == 201
    assert house.post("olga", "/amendments", heard).status_code == 409
    (tmp_path / "other").mkdir()
    with served(written(tmp_path / "other", epsilon=1)) as other:
        owned(other.desk)
        theirs = body(other)
    assert house.post("olga", "/amendments", theirs).status_code == 409


def test_it_is_signed_anew_where_others_charge_meanwhile(house: Served) -> None:
    """The ledger went on between base and signature: once more; not where the caps changed."""
    ledger, moves = house.desk.session.ledger, iter(range(100))

    class Busy(Sent):
        def handle_request(self, request: httpx.Request) -> httpx.Response:
            if request.method == "POST" and request.url.path.endswith("/amendments"):
                turn = next(moves)
                if turn < 3:
                    house.desk.session.sql(COUNT).release("0.01", token=f"{turn}")
                if turn == 4:
                    ledger.amend(ACCOUNT, BudgetFilter(Fraction(2)), "elsewhere", key=KEY)
            return super().handle_request(request)

    with connected(house, sent=Busy(house)) as session:
        session.ledger.amend(ACCOUNT, THREE, "busy", key=KEY)
        assert ledger.balance(ACCOUNT).caps == THREE
        with pytest.raises(AmendmentError, match="changed since you decided"):
            session.ledger.amend(ACCOUNT, BudgetFilter(Fraction(9)), "late", key=KEY)
    assert ledger.balance(ACCOUNT).caps == BudgetFilter(Fraction(2))
    assert ledger.verify().ok


def test_a_ledger_without_an_owner_is_amended_by_nobody_from_elsewhere(
    tmp_path: Path, ledger: str
) -> None:
    """Nobody's signature would say anything."""
    with served(written(tmp_path, epsilon=1, ledger=ledger)) as free:
        free.released("ann", epsilon="0.5")
        with connected(free) as session, pytest.raises(LedgerError, match="has no owner"):
            session.ledger.amend(ACCOUNT, THREE, "x", key=KEY)


def test_the_command_takes_an_address(
    house: Served, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """`dither ledger amend https://…`: as of a ledger that is a file."""
    from click.testing import CliRunner

    from dither.cli import main

    KEY.write(tmp_path / "owner.key")
    monkeypatch.setenv("OLGA", house.keys["olga"])
    session = connected(house)
    monkeypatch.setattr(dither, "connect", lambda place, key: session)
    asked = ["ledger", "amend", "https://data.example.org/visits", "--account", ACCOUNT]
    asked += ["--epsilon", "3", "--reason", "x", "--key", str(tmp_path / "owner.key")]
    refused = CliRunner().invoke(main, asked)
    assert refused.exit_code == 2
    assert "--access" in refused.output
    done = CliRunner().invoke(main, [*asked, "--access", "env:OLGA"])
    assert done.exit_code == 0, done.output
    assert "ε 1, δ 1e-6 -> ε 3, δ 1e-6" in done.output
    assert house.desk.session.ledger.balance(ACCOUNT).caps == THREE
    local = CliRunner().invoke(
        main, [*asked[:2], str(tmp_path / "x.ledger"), *asked[3:], "--access", "env:OLGA"]
    )
    assert local.exit_code == 2


def test_a_refused_question_says_what_is_left(house: Served) -> None:
    """Over HTTP the new caps are those that previews and prices speak of."""
    with connected(house) as session:
        session.ledger.amend(ACCOUNT, BudgetFilter(Fraction(1, 2)), "less", key=KEY)
        with pytest.raises(BudgetError):
            session.sql(COUNT).release("0.75")
    assert (
        house.post("ann", "/price", {"sql": COUNT, "epsilon": "0.1"}).json()["affordable"][0] == "5"
    )
