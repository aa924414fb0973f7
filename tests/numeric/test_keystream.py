"""Random words: a cipher's keystream, served once, rekeyed in children, one source a thread."""

import hashlib
import os
import subprocess
import sys
import threading
from itertools import count, repeat

import numpy as np
import pytest
from cryptography.hazmat.primitives.ciphers import Cipher, algorithms, modes

from dither.errors import ArgumentError
from dither.numeric import KeyedWords, SecureWords, SimulatedWords, Words, secure_words
from dither.numeric import _keystream as keystream

pytestmark = pytest.mark.fresh


class Counted(SimulatedWords):
    """Words whose top k bits, those that `bits(k)` keeps, count down to 0."""

    def __init__(self, k: int) -> None:
        super().__init__(0)
        self.k, self.next = k, 1 << k

    def words(self, n):
        assert n == 1
        self.next -= 1
        return np.array([self.next << (64 - self.k)], dtype=np.uint64)


class Fixed:
    """A hash whose digest is known."""

    def __init__(self, seed: bytes) -> None:
        self.seed = seed

    def update(self, _: bytes) -> None:
        """Take no notice."""

    def digest(self) -> bytes:
        return self.seed


def keystream_of(key: bytes, start: bytes, count: int) -> np.ndarray:
    """The first words of AES-256 in counter mode."""
    cipher = Cipher(algorithms.AES(key), modes.CTR(start)).encryptor()
    return np.frombuffer(cipher.update(bytes(8 * count)), dtype=np.uint64)


def test_words_are_the_keystream_each_once(monkeypatch):
    """Calls of any size, across chunks, serve consecutive parts of one AES-256-CTR keystream."""
    seed = bytes(range(48))
    monkeypatch.setattr(keystream.hashlib, "blake2b", lambda **_: Fixed(seed))
    monkeypatch.setattr(keystream.time, "time_ns", lambda: 10**18)
    source = SecureWords()
    sizes = [1, 0, 3, keystream._CHUNK + 5, 2]
    served = np.concatenate([source.words(n) for n in sizes])
    assert np.array_equal(served, keystream_of(seed[:32], seed[32:], sum(sizes)))


def test_a_key_is_replaced_after_its_share(monkeypatch):
    """When a key has served its share, fresh bytes are drawn from the system."""
    drawn = []
    monkeypatch.setattr(keystream, "_WORDS_PER_KEY", 100)
    monkeypatch.setattr(os, "urandom", lambda n: drawn.append(n) or bytes([len(drawn)] * n))
    monkeypatch.setattr(keystream.time, "time_ns", lambda: 10**18)
    source = SecureWords()
    parts = [source.words(60) for _ in range(3)]
    assert drawn == [64] * 3
    assert len({part.tobytes() for part in parts}) == 3


def test_no_word_comes_twice():
    """A million words are distinct (false alarm: 2**40 / 2**65 < 1e-7)."""
    source = secure_words()
    served = np.concatenate([source.words(n) for n in (500_000, 1, 500_000)])
    assert np.unique(served).size == served.size


def test_arrays_belong_to_the_caller():
    """An earlier array is untouched by later calls and by writing to them."""
    source = SecureWords()
    first = source.words(1000)
    kept = first.copy()
    second = source.words(1000)
    second[:] = 0
    assert np.array_equal(first, kept)
    assert first.base is not second.base


def test_each_thread_has_its_own_source():
    """Two threads hold two sources, with unrelated words."""
    seen = []
    thread = threading.Thread(target=lambda: seen.append((secure_words(), secure_words().words(4))))
    thread.start()
    thread.join()
    other, words = seen[0]
    assert other is not secure_words()
    assert not np.array_equal(words, secure_words().words(4))


FORK = """
import os, sys, time
from dither.numeric import secure_words
time.time_ns = lambda: 10**18
source = secure_words()
source.words(8)
if sys.argv[1] == "hidden":
    pid = os.getpid()
    os.getpid = lambda: pid
read, write = os.pipe()
if os.fork() == 0:
    os.write(write, source.words(4).tobytes() + secure_words().words(4).tobytes())
    os._exit(0)
os.wait()
child = os.read(read, 64)
parts = source.words(4).tobytes(), source.words(4).tobytes(), child[:32], child[32:]
print(*(part.hex() for part in parts))
"""


def fork(process_number: str) -> list[str]:
    """Twice four words of a parent, four of its source in a child, four of the child's own."""
    command = [sys.executable, "-W", "ignore", "-c", FORK, process_number]
    return subprocess.run(command, capture_output=True, text=True, check=True).stdout.split()


@pytest.mark.skipif(not hasattr(os, "fork"), reason="the system has no fork")
def test_a_forked_child_draws_other_words():
    """Neither the inherited source nor the child's own serves the parent's next words."""
    assert len(set(fork("seen"))) == 4


@pytest.mark.skipif(not hasattr(os, "fork"), reason="the system has no fork")
def test_the_fork_test_catches_a_source_that_does_not_look():
    """With the process number hidden, the inherited source repeats the parent; its own does not."""
    parent, later, inherited, own = fork("hidden")
    assert parent == inherited
    assert own not in (parent, later)


def drawn(*fresh: bytes) -> bytes:
    """Four words under a new key."""
    source = SecureWords()
    source.renew(*fresh)
    return source.words(4).tobytes()


@pytest.fixture
def restored(monkeypatch):
    """A machine that was restored from one snapshot again and again: everything repeats itself."""
    monkeypatch.setattr(keystream.os, "urandom", lambda n: bytes(n))
    monkeypatch.setattr(keystream.time, "time_ns", lambda: 10**18)
    monkeypatch.setattr(keystream.time, "monotonic_ns", lambda: 10**12)
    monkeypatch.setattr(keystream, "_renewals", repeat(0))
    monkeypatch.setattr(keystream, "_boot", lambda: b"boot")


def test_a_machine_that_repeats_everything_repeats_its_words(restored):
    """The control: with nothing fresh left, the words are the same."""
    assert drawn(b"entry") == drawn(b"entry")


@pytest.mark.parametrize(
    ("where", "name", "value"),
    [
        (keystream.os, "urandom", os.urandom),
        (keystream.os, "getpid", lambda: 4),
        (keystream.time, "time_ns", lambda: 10**18 + 1),
        (keystream.time, "monotonic_ns", lambda: 10**12 + 1),
        (keystream.threading, "get_ident", lambda: 5),
        (keystream, "_renewals", count(1)),
        (keystream, "_boot", lambda: b"another boot"),
    ],
    ids=lambda value: value if isinstance(value, str) else "",
)
def test_any_one_fresh_thing_makes_other_words(restored, monkeypatch, where, name, value):
    """New randomness of the system alone is enough, and so is each of the others without it."""
    before = drawn(b"entry")
    monkeypatch.setattr(where, name, value)
    assert drawn(b"entry") != before


def test_what_the_caller_adds_makes_other_words(restored):
    """Another entry of the ledger, or the same bytes cut otherwise."""
    keys = [drawn(b"entry"), drawn(b"other"), drawn(b"ent", b"ry"), drawn()]
    assert len(set(keys)) == 4


def test_what_the_caller_added_stays_in_later_keys(restored, monkeypatch):
    """A release that outlives its key is still told from every other question."""
    one, two = SecureWords(), SecureWords()
    one.renew(b"one")
    two.renew(b"two")
    monkeypatch.setattr(keystream.time, "time_ns", lambda: 2 * 10**18)
    assert one.words(4).tobytes() != two.words(4).tobytes()


def test_the_key_is_the_hash_that_the_docstring_names(restored, monkeypatch):
    """Written again from the documentation, without the library's own code."""
    monkeypatch.setattr(keystream.os, "getpid", lambda: 7)
    monkeypatch.setattr(keystream.threading, "get_ident", lambda: 9)
    parts = [b"1000000000000000000", b"1000000000000", b"7", b"9", b"0", b"boot", b"entry"]
    text = b"".join(len(p).to_bytes(8, "little") + p for p in parts)
    seed = hashlib.blake2b(text, key=bytes(64), digest_size=48, person=b"dither keystream").digest()
    stream = Cipher(algorithms.AES(seed[:32]), modes.CTR(seed[32:])).encryptor()
    assert drawn(b"entry") == stream.update(bytes(32))


@pytest.mark.parametrize("later", [10**9, -1])
def test_a_key_grows_old(monkeypatch, later):
    """After a second, or where the clock went back, the next word comes under a new key."""
    monkeypatch.setattr(keystream.time, "time_ns", lambda: 10**18)
    source = SecureWords()
    epoch = source.epoch()
    source.words(4)
    assert source.epoch() is epoch
    monkeypatch.setattr(keystream.time, "time_ns", lambda: 10**18 + later)
    assert source.epoch() is not epoch


@pytest.mark.parametrize("k", [1, 3, 8])
def test_bits_are_uniform(k):
    """Every integer of k bits comes from equally many words."""
    source = Counted(k)
    assert sorted(source.bits(k) for _ in range(1 << k)) == list(range(1 << k))


@pytest.mark.parametrize("n", [1, 5, 6, 8, 200])
def test_below_is_uniform(n):
    """Over all words of the least bits that hold n − 1, each value below n comes once."""
    k = (n - 1).bit_length()
    source = Counted(k) if k else SimulatedWords(0)
    assert sorted(source.below(n) for _ in range(n)) == list(range(n))


def test_large_integers():
    """Widths and bounds beyond a word are served in full."""
    source = SimulatedWords(3)
    assert max(source.bits(200) for _ in range(64)).bit_length() > 190
    assert all(0 <= source.below(10**40) < 10**40 for _ in range(64))
    assert source.bits(0) == 0
    assert len({source.bits(65) & 1 for _ in range(64)}) == 2


def test_simulation_is_another_type():
    """Both serve words; neither is the other, and a simulation repeats itself."""
    assert isinstance(SecureWords(), Words)
    assert isinstance(SimulatedWords(1), Words)
    assert not issubclass(SimulatedWords, SecureWords)
    assert not issubclass(SecureWords, SimulatedWords)
    assert np.array_equal(SimulatedWords(5).words(9), SimulatedWords(5).words(9))
    assert not np.array_equal(SimulatedWords(5).words(9), SimulatedWords(6).words(9))


@pytest.mark.parametrize("source", [SecureWords(), SimulatedWords(0)], ids=["secure", "simulated"])
def test_arguments(source):
    """Negative sizes and empty ranges are refused by name."""
    with pytest.raises(ArgumentError, match=r"^n must"):
        source.words(-1)
    with pytest.raises(ArgumentError, match=r"^n must"):
        source.below(0)
    with pytest.raises(ArgumentError, match=r"^k must"):
        source.bits(-1)
    with pytest.raises(ArgumentError, match=r"^seed must"):
        SimulatedWords(-1)


def test_bytes_of_secure_words_are_uniform():
    """Chi-square of 8 million bytes over 256 values (false alarm 1e-9)."""
    counts = np.bincount(secure_words().words(1_000_000).view(np.uint8), minlength=256)
    statistic = float(((counts - counts.sum() / 256) ** 2).sum() / (counts.sum() / 256))
    assert statistic < 415  # exceeded with probability 1e-9 at 255 degrees of freedom


def test_keyed_words_are_a_function_of_key_and_path():
    """In one call or many, across a cipher call's length; another key or path gives others."""
    key = bytes(range(32))
    whole = KeyedWords(key, "noise", 3).words((1 << 17) + 9)
    again = KeyedWords(key, "noise", 3)
    assert np.array_equal(whole, np.concatenate([again.words(1 << 17), again.words(9)]))
    assert len(set(whole.tolist())) == len(whole)
    others = [
        ("noise", 4),
        ("noise", "3"),
        ("noise3",),
        ("noise", 3, 0),
        ("batch", 3),
        (b"noise", 3),
    ]
    served = [KeyedWords(key, *path).words(4).tolist() for path in others]
    served += [KeyedWords(bytes(32), "noise", 3).words(4).tolist(), whole[:4].tolist()]
    assert len({tuple(words) for words in served}) == len(served)


def test_keyed_words_are_those_that_the_docstring_names():
    """AES-256 in counter mode under BLAKE2b of the path, computed once more."""
    key = bytes(range(32))
    state = hashlib.blake2b(key=key, digest_size=48, person=b"dither path")
    for kind, text in ((b"str", b"noise"), (b"int", b"7")):
        state.update(kind + len(text).to_bytes(8, "little") + text)
    seed = state.digest()
    stream = Cipher(algorithms.AES(seed[:32]), modes.CTR(seed[32:])).encryptor()
    expected = np.frombuffer(stream.update(bytes(80)), dtype=np.uint64)
    assert np.array_equal(KeyedWords(key, "noise", 7).words(10), expected)
    with pytest.raises(ArgumentError, match=r"^key must"):
        KeyedWords(b"short")
    with pytest.raises(ArgumentError, match=r"^n must"):
        KeyedWords(key).words(-1)
