"""Masks: published vectors, permutations, what stays the same and what cannot be undone."""

from __future__ import annotations

import hashlib
import hmac

import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st

from dither.errors import ArgumentError
from dither.lab.anonymize import (
    format_preserving,
    new_key,
    pseudonymize,
    shuffle,
    substitute,
    truncate,
)
from dither.lab.anonymize._format_preserving import ff1

KEY = bytes(range(32))
AES128 = "2B7E151628AED2A6ABF7158809CF4F3C"
AES256 = AES128 + "EF4359D8D580AA4F7F036D6F04FC6A94"
TWEAK, LETTERS = "39383736353433323130", "3737373770717273373737"


@pytest.mark.parametrize(
    ("key", "tweak", "radix", "plain", "hidden"),
    [
        (AES128, "", 10, "0123456789", "2433477484"),
        (AES128, TWEAK, 10, "0123456789", "6124200773"),
        (AES128, LETTERS, 36, "0123456789abcdefghi", "a9tv40mll9kdu509eum"),
        (AES256, "", 10, "0123456789", "6657667009"),
    ],
)
def test_ff1_gives_the_published_samples(key, tweak, radix, plain, hidden) -> None:
    """NIST's sample data for FF1, both ways."""
    turn = ff1(bytes.fromhex(key), bytes.fromhex(tweak), radix)
    assert turn(plain, False) == hidden
    assert turn(hidden, True) == plain


def test_ff1_permutes() -> None:
    """Distinct numbers stay distinct; a million is too many to list, so a radix of 10 to the 3."""
    turn = ff1(KEY, b"", 10)
    images = {turn(f"{i:03}", False) for i in range(1000)}
    assert len(images) == 1000
    assert all(turn(turn(f"{i:03}", False), True) == f"{i:03}" for i in range(0, 1000, 37))


@given(st.lists(st.one_of(st.none(), st.from_regex(r"[0-9]{6,30}", fullmatch=True))))
def test_formats_are_kept_and_come_back(values) -> None:
    """Digits for digits, lengths and NULLs kept, and the key undoes it."""
    column = pl.Series("card", values, dtype=pl.String)
    hidden = format_preserving(column, KEY, tweak=b"card")
    assert format_preserving(hidden, KEY, tweak=b"card", undo=True).equals(column)
    for a, b in zip(column, hidden, strict=True):
        assert (a is None) == (b is None)
        assert a is None or (len(a) == len(b) and b.isdigit())
    assert hidden.name == "card"


def test_tweaks_and_punctuation() -> None:
    """Another tweak, another permutation; what is not a digit stays in its place."""
    plain = ["+1 (555) 123-4567"]
    one, two = (format_preserving(plain, KEY, tweak=t)[0] for t in (b"a", b"b"))
    assert one != two
    assert [c for c in one if not c.isdigit()] == [c for c in plain[0] if not c.isdigit()]


def test_pseudonyms_are_hmac() -> None:
    """The construction, by hand; a purpose separates, and without a key nothing links."""
    head = len(b"names").to_bytes(8, "big") + b"names"
    wanted = hmac.new(KEY, head + b"ann", hashlib.sha256).hexdigest()[:32]
    found = pseudonymize(["ann", None, "ann", "bob"], KEY, purpose="names")
    assert found.to_list()[:3] == [wanted, None, wanted]
    assert found[3] != wanted
    assert pseudonymize(["ann"], KEY)[0] != wanted
    assert pseudonymize(["ann"])[0] != pseudonymize(["ann"])[0]
    assert len(pseudonymize(["ann"], KEY, digits=64)[0]) == 64
    assert len(new_key()) == 32
    assert new_key() != new_key()


@given(st.lists(st.one_of(st.none(), st.text(), st.integers(), st.floats())))
def test_masks_bear_anything(values) -> None:
    """Equal values get equal masks, NULL stays, nothing raises."""
    for mask in (
        lambda v: pseudonymize(v, KEY),
        lambda v: substitute(v, ["eve", "kim"], KEY),
        lambda v: truncate(v, 2),
    ):
        found = mask(values).to_list()
        assert [f is None for f in found] == [v is None for v in values]
        assert mask(values).to_list() == found


def test_substitutes_come_from_the_choices() -> None:
    """Every choice is used about equally; the same value gets the same one."""
    found = substitute(list(range(3000)), ["a", "b", "c"], KEY)
    # A fixed key: this cannot fail by chance, only by a change of the construction.
    assert {n for _, n in found.value_counts().rows() if not 900 < n < 1100} == set()
    assert substitute(["x", "x"], ["a", "b", "c"]).n_unique() == 1


def test_shuffling_moves_columns_together() -> None:
    """Same values, as often; what holds between moved columns still holds."""
    frame = pl.DataFrame({"i": range(1000), "a": range(1000), "b": range(1000)})
    found = shuffle(frame, ["a", "b"])
    assert found["i"].equals(frame["i"])
    assert found["a"].equals(found["b"].alias("a"))
    assert sorted(found["a"]) == list(range(1000))
    # The identity has probability 1/1000!.
    assert not found["a"].equals(frame["a"])


def test_shuffles_are_uniform() -> None:
    """All orders of three are as frequent. 2,000 draws; each of six counts fails below 1e-9."""
    frame = pl.DataFrame({"a": ["x", "y", "z"]})
    counts: dict[str, int] = {}
    for _ in range(2000):
        order = "".join(shuffle(frame, "a")["a"])
        counts[order] = counts.get(order, 0) + 1
    assert len(counts) == 6
    # Hoeffding: exp(-2 * 105**2 / 2000) * 2 is 3.3e-5; the binomial's own tail is below 1e-9.
    assert all(abs(n - 2000 / 6) < 105 for n in counts.values())


def test_truncation() -> None:
    """Either end; short texts stay; the cut's length is hidden."""
    assert truncate(["02139", "02", None], 3).to_list() == ["021*", "02", None]
    assert truncate(["5551234"], 4, side="end", fill="…").to_list() == ["…1234"]
    assert truncate([2139], 0).to_list() == ["*"]


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: pseudonymize(["a"], b"short"), "at least 16 bytes"),
        (lambda: pseudonymize(["a"], KEY, digits=8), "at least 16 and at most 64"),
        (lambda: substitute(["a"], []), "at least one"),
        (lambda: truncate(["a"], -1), "at least 0"),
        (lambda: truncate(["a"], 1, side="left"), "unknown side"),
        (lambda: shuffle(pl.DataFrame({"a": [1]}), "b"), "unknown column 'b'"),
        (lambda: format_preserving(["123456"], b"short"), "16, 24 or 32"),
        (lambda: format_preserving(["987"], KEY), "1 of 1 values with fewer than 6"),
        (lambda: format_preserving(["123456"], KEY, tweak="a"), "tweak must be bytes"),
        (lambda: format_preserving(["1" * 5000], KEY), "more than 4,096"),
        (lambda: truncate(7, 1), "Series or a list"),
    ],
)
def test_masks_are_checked(call, message) -> None:
    """Each refusal names the argument; none holds a value."""
    with pytest.raises(ArgumentError, match=message) as told:
        call()
    assert "987" not in str(told.value)
