"""Charges: never beyond a cap, all accounts or none, replayed by token, exact."""

from __future__ import annotations

import threading
from fractions import Fraction
from itertools import count
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from dither.accounting import BudgetFilter
from dither.errors import ArgumentError, BudgetError, LedgerError, TokenError
from dither.ledger import UNIT, Ledger
from dither.privacy import Charge, Promise

PATIENT = Promise("patient")

TENTH = Charge.pure(Fraction(1, 10), PATIENT)
REQUEST = "ab" * 32


def amounts() -> st.SearchStrategy[Fraction]:
    """Amounts around the cap and around the grain of the ledger."""
    return st.one_of(
        st.fractions(0, 1, max_denominator=50),
        st.integers(0, 5).map(lambda n: n * UNIT),
        st.just(UNIT / 3),
        st.just(Fraction(1) - UNIT),
    )


@settings(max_examples=30, deadline=None)
@given(st.lists(st.tuples(st.sets(st.sampled_from("ab"), min_size=1), amounts()), max_size=10))
def test_no_sequence_of_charges_exceeds_a_cap(steps: list[tuple[set[str], Fraction]]) -> None:
    """Every charge is taken if and only if an exact model of each account can bear it."""
    caps = {"a": Fraction(1), "b": Fraction(1, 2)}
    spent = dict.fromkeys(caps, Fraction(0))
    tokens = count()
    with TemporaryDirectory() as folder:
        ledger = Ledger.open(Path(folder) / "x.ledger")
        for name, cap in caps.items():
            ledger.ensure_account(name, BudgetFilter(cap, Fraction(0)), PATIENT)
        for names, epsilon in steps:
            up = -(-epsilon // UNIT) * UNIT
            fits = all(spent[name] + up <= caps[name] for name in names)
            try:
                ledger.charge(
                    sorted(names),
                    Charge(epsilon=epsilon, promise=PATIENT),
                    token=str(next(tokens)),
                    request=REQUEST,
                    note={},
                )
            except BudgetError:
                assert not fits
            else:
                assert fits
                for name in names:
                    spent[name] += up
            assert {name: ledger.balance(name).spent.epsilon for name in caps} == spent
        assert ledger.verify().ok


def test_a_cap_can_be_spent_to_the_last_unit_and_no_further(book: Ledger) -> None:
    """The remainder fits exactly; a billionth of a billionth more does not."""
    book.charge(
        ["visits"], Charge(epsilon=1 - UNIT, promise=PATIENT), token="a", request=REQUEST, note={}
    )
    with pytest.raises(BudgetError):
        book.charge(
            ["visits"],
            Charge(epsilon=2 * UNIT, promise=PATIENT),
            token="b",
            request=REQUEST,
            note={},
        )
    book.charge(
        ["visits"], Charge(epsilon=UNIT, promise=PATIENT), token="c", request=REQUEST, note={}
    )
    with pytest.raises(BudgetError, match=r"'visits'.*nothing was spent"):
        book.charge(
            ["visits"],
            Charge(epsilon=UNIT / 9, promise=PATIENT),
            token="d",
            request=REQUEST,
            note={},
        )
    assert book.balance("visits").spent.epsilon == 1


def test_a_third_is_rounded_up_each_time(book: Ledger) -> None:
    """Three thirds, each rounded up, are more than one: the third is refused."""
    third = Charge(epsilon=Fraction(1, 3), promise=PATIENT)
    for token in "ab":
        book.charge(["visits"], third, token=token, request=REQUEST, note={})
    with pytest.raises(BudgetError):
        book.charge(["visits"], third, token="c", request=REQUEST, note={})


def test_all_accounts_are_charged_or_none(book: Ledger) -> None:
    """One account that cannot bear it spares the other, and names itself."""
    book.charge(
        ["ann"], Charge(epsilon=Fraction(1), promise=PATIENT), token="a", request=REQUEST, note={}
    )
    before = len(book.entries())
    with pytest.raises(
        BudgetError,
        match=r"account 'ann' \(one patient, .*\) cannot bear.*What remains: epsilon 0 ",
    ):
        book.charge(["visits", "ann"], TENTH, token="b", request=REQUEST, note={})
    assert book.balance("visits").spent == Charge(promise=PATIENT)
    assert len(book.entries()) == before


def test_all_four_amounts_are_kept_exactly(book: Ledger) -> None:
    """Epsilon, delta, rho and its delta come back as whole units, however large."""
    book.ensure_account("zcdp", BudgetFilter(Fraction(10**30), Fraction(1, 2)), PATIENT)
    charge = Charge(
        Fraction(10**25), Fraction(1, 10**9), Fraction(1, 7), Fraction(3, 10**12), PATIENT
    )
    number = book.charge(["zcdp"], charge, token="a", request=REQUEST, note={}).entry
    assert book.balance("zcdp").spent == charge.rounded_up(UNIT)
    assert book.entry(number).charge == charge.rounded_up(UNIT)


def test_an_infinite_epsilon_stays_infinite(book: Ledger) -> None:
    """A charge that only zCDP bounds closes the basic rule for good, and a pure account."""
    gaussian = Charge(None, Fraction(0), Fraction(1, 1000), Fraction(0), PATIENT)
    book.ensure_account("zcdp", BudgetFilter(Fraction(1), Fraction(1, 10**6)), PATIENT)
    book.charge(["zcdp"], gaussian, token="a", request=REQUEST, note={})
    assert book.balance("zcdp").spent.epsilon is None
    with pytest.raises(BudgetError):
        book.charge(["visits"], gaussian, token="b", request=REQUEST, note={})
    assert book.verify().ok


def test_a_repeated_request_replays_its_answer_for_free(book: Ledger) -> None:
    """Same token, same request, answer stored: the answer, and nothing is spent."""
    first = book.charge(["visits"], TENTH, token="a", request=REQUEST, note={"n": 1})
    book.store_answer(first.entry, '{"n": 12}')
    again = book.charge(["visits"], TENTH, token="a", request=REQUEST, note={"n": 2})
    assert (again.replayed, again.answer) == (True, '{"n": 12}')
    assert (again.entry, again.hash) == (first.entry, first.hash)
    assert (first.replayed, first.answer) == (False, None)
    assert book.balance("visits").spent.epsilon == Fraction(1, 10)


def test_a_replay_charges_nothing(book: Ledger) -> None:
    """What was answered comes back; what was not asked is None, and what is another's refused."""
    first = book.charge(["visits"], TENTH, token="monday", request=REQUEST, note={})
    with pytest.raises(TokenError, match="never stored"):
        book.replay(["visits"], token="monday", request=REQUEST)
    book.store_answer(first.entry, '{"n": 12}')
    count = len(book.entries())
    again = book.replay(["visits"], token="monday", request=REQUEST)
    assert again is not None
    assert (again.entry, again.replayed, again.answer) == (first.entry, True, '{"n": 12}')
    assert book.replay(["visits"], token="tuesday", request=REQUEST) is None
    with pytest.raises(TokenError, match="another request"):
        book.replay(["visits"], token="monday", request=REQUEST[::-1] + "00")
    assert len(book.entries()) == count


def test_a_replay_is_free_when_nothing_is_left(book: Ledger) -> None:
    """An exhausted account may still read what it paid for."""
    whole = Charge(epsilon=Fraction(1), promise=PATIENT)
    first = book.charge(["visits"], whole, token="a", request=REQUEST, note={})
    book.store_answer(first.entry, "x")
    assert book.charge(["visits"], whole, token="a", request=REQUEST, note={}).replayed


@pytest.mark.parametrize(
    ("accounts", "request_digest"), [(["visits"], "cd" * 32), (["ann"], REQUEST)]
)
def test_a_token_serves_one_request(book: Ledger, accounts: list[str], request_digest: str) -> None:
    """The same token for another request, or for somebody else's account, is refused."""
    entry = book.charge(["visits"], TENTH, token="a", request=REQUEST, note={}).entry
    book.store_answer(entry, "x")
    with pytest.raises(TokenError, match="another request"):
        book.charge(accounts, TENTH, token="a", request=request_digest, note={})
    assert book.balance("ann").spent == Charge(promise=PATIENT)


def test_a_charge_is_found_by_its_token(full: Ledger) -> None:
    """The entry of the charge, whether or not it was answered; nothing for another token."""
    found = {token: full.charged(token) for token in "abcd"}
    numbers = {token: None if entry is None else entry.number for token, entry in found.items()}
    assert numbers == {"a": 3, "b": 4, "c": 7, "d": None}
    assert found["a"] == full.entry(3)
    with pytest.raises(ArgumentError, match="token"):
        full.charged("")


def test_a_charge_without_its_answer_stays_charged(book: Ledger) -> None:
    """A crash between charge and answer costs the charge, and the message says so."""
    book.charge(["visits"], TENTH, token="a", request=REQUEST, note={})
    with pytest.raises(TokenError, match=r"stays charged; ask anew with a new token"):
        book.charge(["visits"], TENTH, token="a", request=REQUEST, note={})
    assert book.balance("visits").spent.epsilon == Fraction(1, 10)


def test_an_answer_is_stored_once_and_only_for_a_charge(book: Ledger) -> None:
    """Not twice, not for an account's entry, not for one that is not there, not as bytes."""
    entry = book.charge(["visits"], TENTH, token="a", request=REQUEST, note={}).entry
    book.store_answer(entry, "x")
    with pytest.raises(LedgerError, match="has its answer already"):
        book.store_answer(entry, "y")
    with pytest.raises(LedgerError, match="is not a charge"):
        book.store_answer(1, "y")
    for missing in (-1, 99, 2**80):
        with pytest.raises(LedgerError, match="there is no entry"):
            book.store_answer(missing, "y")
    for wrong in (b"x", "\ud800"):
        with pytest.raises(ArgumentError, match="answer must be text"):
            book.store_answer(entry, wrong)  # type: ignore[arg-type]


def test_an_account_opens_once_with_the_same_caps(book: Ledger) -> None:
    """Opening again with the same caps writes nothing; with others, it says how to amend."""
    before = len(book.entries())
    book.ensure_account("visits", BudgetFilter(Fraction(1), Fraction(0)), PATIENT)
    assert len(book.entries()) == before
    with pytest.raises(LedgerError, match=r"epsilon = 1\b.*epsilon = 2\b.*dither ledger amend"):
        book.ensure_account("visits", BudgetFilter(Fraction(2), Fraction(0)), PATIENT)


def test_after_an_amendment_old_caps_are_told_to_follow_the_ledger(book: Ledger) -> None:
    """Who still asks for the old caps is told to write the new ones, not to put the old back."""
    book.amend("visits", BudgetFilter(Fraction(2), Fraction(0)), "second year")
    with pytest.raises(
        LedgerError, match=r"epsilon = 2 in the ledger.*write its caps into"
    ) as told:
        book.ensure_account("visits", BudgetFilter(Fraction(1), Fraction(0)), PATIENT)
    assert "old caps" not in str(told.value)
    book.ensure_account("visits", BudgetFilter(Fraction(2), Fraction(0)), PATIENT)


def test_an_amendment_changes_caps_and_forgets_nothing(book: Ledger) -> None:
    """Raised caps admit more; lowered ones below what is spent admit nothing; both verify."""
    whole = Charge(epsilon=Fraction(1), promise=PATIENT)
    book.charge(["visits"], whole, token="a", request=REQUEST, note={})
    book.amend("visits", BudgetFilter(Fraction(2), Fraction(0)), "a second report")
    book.charge(["visits"], whole, token="b", request=REQUEST, note={})
    book.amend("visits", BudgetFilter(Fraction(1, 2), Fraction(0)), "closed")
    with pytest.raises(BudgetError, match="What remains: nothing"):
        book.charge(
            ["visits"], Charge(epsilon=UNIT, promise=PATIENT), token="c", request=REQUEST, note={}
        )
    assert book.balance("visits").spent.epsilon == 2
    assert [e.note for e in book.entries() if e.kind == "amend"] == [
        {"reason": "a second report"},
        {"reason": "closed"},
    ]
    assert book.verify().ok


def test_an_unknown_account_is_refused_with_the_nearest_name(book: Ledger) -> None:
    """Charging, reading and amending an account that nobody opened."""
    with pytest.raises(LedgerError, match="did you mean 'visits'"):
        book.charge(["visit"], TENTH, token="a", request=REQUEST, note={})
    with pytest.raises(LedgerError, match="no account 'annn'"):
        book.balance("annn")
    with pytest.raises(LedgerError, match="no account"):
        book.amend("bob", BudgetFilter(Fraction(2), Fraction(0)), "x")


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"accounts": []}, "at least one"),
        ({"accounts": "visits"}, "list"),
        ({"accounts": ["visits", "visits"]}, "each account once"),
        ({"token": ""}, "token must be text"),
        ({"token": "x" * 201}, "token must be text"),
        ({"token": "a\x00b"}, "printable"),
        ({"request": "no digest"}, "hexadecimal"),
        ({"note": {"scale": 0.5}}, r"note\['scale'\] is of type float"),
        ({"note": {"a": [1, {"b": b"x"}]}}, r"note\['a'\]\[1\]\['b'\] is of type bytes"),
        ({"note": {1: "x"}}, "every key in note must be text"),
    ],
)
def test_wrong_arguments_write_nothing(
    book: Ledger, change: dict[str, object], message: str
) -> None:
    """Each is refused by name before the ledger is touched."""
    arguments: dict[str, object] = {
        "accounts": ["visits"],
        "charge": TENTH,
        "token": "a",
        "request": REQUEST,
        "note": {},
        **change,
    }
    before = len(book.entries())
    with pytest.raises(ArgumentError, match=message):
        book.charge(**arguments)  # type: ignore[arg-type]
    assert len(book.entries()) == before


def test_entries_read_back_what_was_written(full: Ledger) -> None:
    """Kinds, notes, answers; the newest by limit; an account's own with their answers."""
    kinds = " ".join(entry.kind for entry in full.entries())
    assert kinds == "genesis account account charge charge answer amend charge answer"
    assert [entry.number for entry in full.entries(limit=2)] == [7, 8]
    assert full.entries(limit=0) == []
    assert [entry.number for entry in full.entries("ann")] == [2, 3, 5, 6, 7, 8]
    charge = full.entry(3)
    assert (charge.token, charge.accounts) == ("a", ("ann", "visits"))
    assert charge.note == {"query": "one"}
    assert charge.time.utcoffset().total_seconds() == 0  # type: ignore[union-attr]
    assert (full.entry(5).answers, full.entry(5).answer) == (3, "answer of three")
    assert full.accounts() == ["ann", "visits"]
    with pytest.raises(ArgumentError, match="limit"):
        full.entries(limit=-1)
    with pytest.raises(LedgerError, match="there is no entry 9; the last is 8"):
        full.entry(9)


def test_threads_share_one_object(book: Ledger) -> None:
    """Four threads spend one account to the last charge and not beyond."""
    taken: list[int] = []

    def spend(thread: int) -> None:
        for i in range(30):
            try:
                receipt = book.charge(
                    ["visits"],
                    Charge(epsilon=Fraction(1, 40), promise=PATIENT),
                    token=f"{thread}-{i}",
                    request=REQUEST,
                    note={},
                )
            except BudgetError:
                return
            taken.append(receipt.entry)

    threads = [threading.Thread(target=spend, args=(i,)) for i in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(set(taken)) == len(taken) == 40
    assert book.balance("visits").spent.epsilon == 1
    assert book.verify().ok
