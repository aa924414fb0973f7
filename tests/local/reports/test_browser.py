"""The client for browsers, under Node: the same hash, thresholds and law, read by this side."""

from __future__ import annotations

import hashlib
import json
import shutil
import subprocess
from importlib.resources import files
from itertools import combinations
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from dither.local import (
    BLH,
    FLH,
    GRR,
    LOLOHA,
    OLH,
    OUE,
    PM,
    RAPPOR,
    SDGRR,
    SDPM,
    SUE,
    SW,
    URR,
    BloomRAPPOR,
    Domain,
    Duchi,
    FiniteChannel,
    Hadamard,
    Hybrid,
    Interval,
    LatticeLaplace,
    Memory,
    SubsetSelection,
    read_reports,
)
from dither.local._reports.hashing import bucket, words_of
from dither.local.wire import unpack
from local.laws import chi_square_passes

CLIENT = Path(__file__).parents[3] / "clients" / "javascript" / "dither-local.mjs"
VECTORS = Path(str(files("dither.local") / "vectors.json"))
NODE = shutil.which("node")
N = 200_000

NAMES = ["grippe", "rhume", "santé", 7, True]
CHANNELS: list[Any] = [
    GRR(NAMES, 1),
    SDGRR(NAMES, {"santé", 7}, "1/3"),
    URR(NAMES, {"santé", 7}, "1/2"),
    URR(NAMES, {7}, 2),
    SUE(NAMES, 1),
    OUE(NAMES, 1),
    BLH(300, 1),
    OLH(300, 1),
    OLH(300, 6),
    FLH(5, 1, seeds=40),
    Hadamard(5, 1),
    Hadamard(9, 4),
    SubsetSelection(6, 1),
    SubsetSelection(9, "2"),
]

needs_node = pytest.mark.skipif(
    NODE is None or not CLIENT.exists(), reason="Node, or the client's source, is not here"
)


def node(script: str, *arguments: str) -> Any:
    """Run a script that has the client as `client` and arguments as `given`; its JSON."""
    whole = (
        f"import * as client from {json.dumps(CLIENT.as_uri())};\n"
        "import * as fs from 'node:fs';\n"
        "const given = process.argv.slice(1);\n" + script
    )
    run = subprocess.run(
        [str(NODE), "--input-type=module", "-e", whole, *arguments],
        check=False,
        capture_output=True,
        text=True,
        timeout=120,
    )
    assert run.returncode == 0, run.stderr[-2000:]
    return json.loads(run.stdout)


def text_of(channel: Any) -> str:
    """The canonical text that a device is told."""
    return json.dumps(channel.to_dict(), sort_keys=True, separators=(",", ":"), ensure_ascii=True)


def thresholds(channel: Any) -> list[int]:
    """What the coins of a channel are compared with, in the client's order."""
    if isinstance(channel, SUE | OUE):
        own, others = channel.ones
        return [own[0], others[0]]
    if isinstance(channel, SDGRR | URR):
        return list(channel.truths)
    return [channel.truth]


@needs_node
def test_hash_vectors() -> None:
    """The client's hash gives the published values."""
    found = node(
        """
        const v = JSON.parse(fs.readFileSync(given[0], "utf8"));
        const hex = (t) => Uint8Array.from(Buffer.from(t, "hex"));
        const two = (t) => [parseInt(t.slice(0, 8), 16), parseInt(t.slice(8), 16)];
        const out = ([a, b]) => [a, b].map((x) => x.toString(16).padStart(8, "0")).join("");
        console.log(JSON.stringify({
          mix32: v.mix32.map(([x]) => [x, client.mix32(x)]),
          cell: v.cell.map(([s, i]) => [s, i, client.cell(s, i)]),
          word: v.word.map(([s, c]) => {
            const w = client.wordOf(s, c);
            return [s, c, w, ...[2, 3, 4, 21, 1000].map((g) => client.bucket(w, g))];
          }),
          hash64: v.hash64.map(([d, s]) => [d, s, out(client.hash64(hex(d), two(s)))]),
          again: v.again.map(([d, s]) => [d, s, client.again(two(d), s)]),
          text_bytes: v.text_bytes.map(
            ([t]) => [t, Buffer.from(client.textBytes(t)).toString("hex")]),
        }));
        """,
        str(VECTORS),
    )
    published = json.loads(VECTORS.read_text(encoding="utf-8"))
    for name, rows in found.items():
        assert rows == published[name]


@needs_node
def test_thresholds_are_the_same_integers(tmp_path: Path) -> None:
    """Whatever the channel and epsilon, the client's coins have this side's probabilities."""
    many = [*CHANNELS]
    for epsilon in ("1/1000", "0.1", "0.7", 3, 10, "79/2", 40):
        many += [GRR(1000, epsilon), SDGRR(30, range(9), epsilon), URR(30, range(9), epsilon)]
        many += [SUE(9, epsilon), OUE(9, epsilon), OLH(100, epsilon), BLH(9, epsilon)]
        many += [Hadamard(1000, epsilon), SubsetSelection(30, epsilon), FLH(9, epsilon)]
    told = tmp_path / "told.json"
    told.write_text(json.dumps([[text_of(c), c.hash] for c in many]))
    found = node(
        """
        const told = JSON.parse(fs.readFileSync(given[0], "utf8"));
        const out = [];
        for (const [text, hash] of told) {
          const c = await client.loadChannel(text, hash);
          out.push([c.recordBytes, c.size, ...c.thresholds.map(String)]);
        }
        console.log(JSON.stringify(out));
        """,
        str(told),
    )
    assert len(found) == len(many)
    for channel, (size, k, *ts) in zip(many, found, strict=True):
        assert (size, k) == (channel.report_bytes, len(channel.domain))
        assert [int(t) for t in ts] == thresholds(channel)


@pytest.fixture(scope="module")
def browser(tmp_path_factory: pytest.TempPathFactory) -> Any:
    """Files of 200,000 reports of one value, by the client, one a channel."""
    folder = tmp_path_factory.mktemp("browser")
    value = [c.domain.values[2] for c in CHANNELS]
    (folder / "told.json").write_text(
        json.dumps(
            [[text_of(c), c.hash, v] for c, v in zip(CHANNELS, value, strict=True)],
        )
    )
    node(
        """
        const told = JSON.parse(fs.readFileSync(given[0] + "/told.json", "utf8"));
        for (const [i, [text, hash, value]] of told.entries()) {
          const c = await client.loadChannel(text, hash);
          const records = Array.from({ length: Number(given[1]) }, () => c.report(value));
          fs.writeFileSync(`${given[0]}/${i}.reports`, c.file(records));
        }
        console.log("0");
        """,
        str(folder),
        str(N),
    )
    return folder


def law(channel: Any, reports: Any, x: int) -> tuple[Any, Any]:
    """Cells of reports and their exact chances for code x."""
    if isinstance(channel, FiniteChannel):
        return np.bincount(reports, minlength=channel.outputs), channel.matrix[x]
    if isinstance(channel, OLH):
        g = channel.buckets
        b = bucket(words_of(reports[:, 0], np.full(N, x)), g)
        p, q0 = (float(c) for c in channel._chances)
        chances = np.full((g, g), q0)
        np.fill_diagonal(chances, p)
        quarter = reports[:, 0] >> 30
        chances = np.broadcast_to(channel._sizes[:, None] * chances / 4, (4, g, g))
        cell = (quarter * g + b) * g + reports[:, 1]
        return np.bincount(cell, minlength=4 * g * g), chances
    k = len(channel.domain)
    cell = np.unpackbits(reports, axis=1)[:, :k] @ (1 << np.arange(k))
    if isinstance(channel, SubsetSelection):
        sets = list(combinations(range(k), channel.size))
        chances = np.zeros(1 << k)
        chances[[sum(1 << c for c in s) for s in sets]] = [
            float(channel.exact(x, frozenset(s))) for s in sets
        ]
    else:
        rows = [tuple(mask >> j & 1 for j in range(k)) for mask in range(1 << k)]
        chances = np.array([float(channel.exact(x, row)) for row in rows])
    return np.bincount(cell, minlength=1 << k), chances


@needs_node
@pytest.mark.parametrize("i", range(len(CHANNELS)), ids=[c.kind for c in CHANNELS])
def test_reports_of_the_browser(i: int, browser: Path) -> None:
    """200,000 of the client's reports are read whole and have the exact law.

    Chi-square with a false alarm of 1e-7 a channel; the coins are the system's.
    """
    channel = CHANNELS[i]
    found = read_reports(browser / f"{i}.reports")
    assert found.channel == channel
    assert not found.truncated
    counted = channel.aggregate(found.reports, strict=True)
    assert counted.n == N
    seen, chances = law(channel, found.reports, 2)
    assert abs(chances.sum() - 1) < 1e-9
    assert chi_square_passes(seen, N * np.asarray(chances))
    # Another value's law does not fit: the check has teeth.
    wrong = law(channel, found.reports, 3)
    same = isinstance(channel, SDGRR | URR) and not channel.high[2] and not channel.high[3]
    assert same or not chi_square_passes(wrong[0], N * np.asarray(wrong[1]))


@needs_node
def test_what_the_client_refuses() -> None:
    """A changed text, an unknown channel or version, a value outside; `other` takes the last."""
    plain, open_ = GRR(["a", "b"], 1), GRR(Domain(["a", "b"], other="b"), 1)
    newer = text_of(plain).replace('"version":1', '"version":2')
    found = node(
        """
        const [plain, hash, newer, open, openHash] = given;
        const tried = async (work) => {
          try { return await work(); } catch (error) { return String(error.message); }
        };
        const sha = async (t) => Buffer.from(
          await crypto.subtle.digest("SHA-256", new TextEncoder().encode(t))).toString("hex");
        const load = async (t) => client.loadChannel(t, await sha(t));
        const c = await client.loadChannel(plain, hash);
        const o = await client.loadChannel(open, openHash);
        console.log(JSON.stringify([
          await tried(() => client.loadChannel(plain.replace('"1"', '"9"'), hash)),
          await tried(() => load(newer)),
          await tried(() => load(plain.replace('"grr"', '"constructor"'))),
          await tried(() => load(plain.replace('"1"', '"0"'))),
          await tried(() => load(plain.replace('"1"', '"1e3"'))),
          await tried(() => c.report("secret")),
          await tried(() => c.report(null)),
          await tried(() => c.report(0.5)),
          o.code("secret"),
        ]));
        """,
        text_of(plain),
        plain.hash,
        newer,
        text_of(open_),
        open_.hash,
    )
    assert found[-1] == 1
    for message, part in zip(
        found,
        ("hash", "version", "not know", "epsilon", "epsilon", "not in", "must be", "must be"),
        strict=False,
    ):
        assert part in message
        assert "secret" not in message


HALF = SDPM(Interval(0, 1, steps=4), (0, "1/2"), 1)


@needs_node
@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("null", "does not know"),
        ('{"channel":"grr","epsilon":"1","version":1}', "domain"),
        (text_of(PM(Interval(0, 1, steps=4), 1)).replace('"low":"0"', '"low":"1"'), "low"),
        (
            text_of(SDPM(Interval(0, 1, steps=4), (0, "1/2"), 1)).replace('["0","1/2"]', "null"),
            "low_",
        ),
    ],
)
def test_a_description_may_say_anything(text: str, message: str) -> None:
    """A text with the right hash that describes nothing is refused by name."""
    found = node(
        """
        try { await client.loadChannel(given[0], given[1]); console.log('"taken"'); }
        catch (error) { console.log(JSON.stringify(String(error.message))); }
        """,
        text,
        hashlib.sha256(text.encode()).hexdigest(),
    )
    assert message in found


@needs_node
@pytest.mark.parametrize(
    ("right", "wrong"),
    [("Number(a < high)", "Number(a > high)"), ("x + 1 + below(k - 1)", "x + below(k - 1)")],
)
def test_a_wrong_client_is_caught(right: str, wrong: str, tmp_path: Path) -> None:
    """A coin compared the wrong way, or a move that may stay, fails the same check."""
    source = CLIENT.read_text(encoding="utf-8").replace(right, wrong)
    assert source != CLIENT.read_text(encoding="utf-8")
    mutant = tmp_path / "mutant.mjs"
    mutant.write_text(source, encoding="utf-8")
    channel = GRR(5, 1)
    node(
        """
        const mutant = await import(given[0]);
        const c = await mutant.loadChannel(given[1], given[2]);
        const records = Array.from({ length: Number(given[3]) }, () => c.report(2));
        fs.writeFileSync(given[4], c.file(records));
        console.log("0");
        """,
        mutant.as_uri(),
        text_of(channel),
        channel.hash,
        str(N),
        str(tmp_path / "r"),
    )
    seen, chances = law(channel, read_reports(tmp_path / "r").reports, 2)
    assert not chi_square_passes(seen, N * np.asarray(chances))


@pytest.mark.skipif(not CLIENT.exists(), reason="the client's source is not here")
def test_no_other_randomness() -> None:
    """The client's source draws from crypto.getRandomValues, and imports nothing."""
    source = CLIENT.read_text(encoding="utf-8")
    assert "crypto.getRandomValues" in source
    assert "Math.random" not in source
    assert "import " not in source


KEY = bytes(range(32))
LASTING: list[Any] = [
    RAPPOR(NAMES, 2, once=1, question="illness"),
    RAPPOR(5, 3, question="santé \x7f"),
    RAPPOR(3, noise=("0.5", "0.5", "0.75"), question="q"),
    RAPPOR(Domain(["a", "b", "rest"], other="rest"), 1, question="q"),
    LOLOHA(300, 1, 2, buckets=2, question="steps"),
    LOLOHA(300, "0.5", 3, buckets=300, question="steps"),
    BloomRAPPOR(NAMES, 4, once=1, bits=24, hashes=3, cohorts=8, seed=77, question="santé"),
    BloomRAPPOR(["a", "b", "c"], "5/2", bits=16, cohorts=1, question="q"),
]
UNIT = Interval(-2, "1/3", steps=12)
NUMBERS: list[Any] = [
    made(UNIT, epsilon)
    for made in (Duchi, PM, SW, Hybrid, LatticeLaplace)
    for epsilon in ("0.1", 1, "5/2", 12)
] + [
    SDPM(UNIT, low, epsilon)
    for low, epsilon in (
        ((-1, "-1/3"), 1),
        ((-2, "-4/9"), "1/3"),
        (("-1/4", 0), "5/2"),
        (("-1/4", "-1/4"), 2),
        ((-1, 1), 6),
    )
]


def coins_of(channel: Any) -> list[int]:
    """Thresholds of channels that remember, and of those for numbers."""
    if isinstance(channel, RAPPOR | BloomRAPPOR):
        return [channel.layers.flip, channel.layers.low, channel.layers.high]
    if isinstance(channel, LOLOHA):
        return list(channel.thresholds)
    if isinstance(channel, Hybrid) and channel.outputs > 2:
        law: Any = channel.law
        return [law.arm, int(law.window.inside * 2**64), law.ends.truth]
    if isinstance(channel, Duchi | Hybrid):
        return [channel.law.truth]  # type: ignore[union-attr]
    if isinstance(channel, LatticeLaplace):
        return [channel.law.reach]
    if isinstance(channel, SDPM):
        window, truth = channel.law.window, channel.law.truth
        return [window.outputs, window.width, truth.numerator, truth.denominator]
    return [int(channel.law.inside * 2**64)]


@needs_node
def test_thresholds_of_numbers_and_of_what_lasts() -> None:
    """The client's coins for RAPPOR, LOLOHA and numbers are this side's integers."""
    wide = Interval(0, 1)
    many = [*LASTING, *NUMBERS, *(SW(wide, e) for e in ("1/1000", 3, 40))]
    many += [
        made(wide, e) for made in (Hybrid, LatticeLaplace) for e in ("61/100", "611/1000", 3, 40)
    ]
    many += [SDPM(wide, ("0.2", "0.7"), e) for e in ("1/7", 1, "9/2", 20)]
    found = node(
        """
        const out = [];
        for (const [text, hash] of JSON.parse(given[0])) {
          const c = await client.loadChannel(text, hash);
          out.push([c.recordBytes, c.size, ...c.thresholds.map(String)]);
        }
        console.log(JSON.stringify(out));
        """,
        json.dumps([[text_of(c), c.hash] for c in many]),
    )
    for channel, (size, k, *ts) in zip(many, found, strict=True):
        assert (size, k) == (channel.report_bytes, len(channel.domain))
        assert [int(t) for t in ts] == coins_of(channel)


@needs_node
@pytest.mark.parametrize("channel", LASTING, ids=lambda c: c.kind)
def test_permanent_coins_are_the_same(channel: Any) -> None:
    """From one key both sides derive the same permanent answers, whatever is tossed on top.

    Each side's mean over 300 reports of each of 4 people tells the permanent answer: two
    means of one chance are 0.25 apart with a chance of 1e-9 a bit.
    """
    values, users = [channel.domain.values[i % 3] for i in range(4)], [f"ü{i}" for i in range(4)]
    found = node(
        """
        const [text, hash, key, values, users] = given;
        const c = await client.loadChannel(text, hash);
        const memory = new client.Memory(Uint8Array.from(Buffer.from(key, "hex")));
        const out = [];
        for (const [i, value] of JSON.parse(values).entries()) {
          const rounds = [];
          for (let r = 0; r < 300; r++) {
            const record = await c.remember(value, JSON.parse(users)[i], memory);
            rounds.push(Array.from(record));
          }
          out.push(rounds);
        }
        console.log(JSON.stringify([out, memory.asked]));
        """,
        text_of(channel),
        channel.hash,
        KEY.hex(),
        json.dumps(values),
        json.dumps(users),
    )
    rounds, asked = found
    memory = Memory(KEY)
    mine = [channel.report(values, users, memory) for _ in range(300)]
    assert asked == memory.asked
    for i in range(4):
        theirs = unpack(channel, np.array(rounds[i], dtype=np.uint8).tobytes())
        ours = np.array([round_[i] for round_ in mine])
        if isinstance(channel, LOLOHA):
            assert set(theirs[:, 0]) == set(ours[:, 0])
            if channel.buckets == 2:
                assert abs(theirs[:, 1].mean() - ours[:, 1].mean()) < 0.3
            continue
        if isinstance(channel, BloomRAPPOR):
            # The cohort is permanent too.
            assert (theirs[:, :2] == theirs[0, :2]).all()
            assert (theirs[0, :2] == ours[0, :2]).all()
            theirs, ours = theirs[:, 2:], ours[:, 2:]
        k = channel.bits if isinstance(channel, BloomRAPPOR) else len(channel.domain)
        a, b = (
            np.unpackbits(rows.astype(np.uint8), axis=1)[:, :k].mean(axis=0)
            for rows in (theirs, ours)
        )
        assert np.abs(a - b).max() < 0.25


@needs_node
@pytest.mark.parametrize(
    "channel", [*LASTING[:5], *LASTING[6:], *NUMBERS], ids=lambda c: f"{c.kind} {c.epsilon}"
)
def test_single_reports_have_the_law(channel: Any) -> None:
    """20,000 of the client's reports against this side's law (false alarm 1e-7 a channel)."""
    number = hasattr(channel, "interval")
    value = "-5/12" if number else channel.domain.values[2]
    found = node(
        """
        const [text, hash, value] = given;
        const c = await client.loadChannel(text, hash);
        const out = [];
        for (let i = 0; i < 20000; i++) out.push(...c.report(JSON.parse(value)));
        console.log(JSON.stringify(out));
        """,
        text_of(channel),
        channel.hash,
        json.dumps(value),
    )
    reports = unpack(channel, np.array(found, dtype=np.uint8).tobytes())
    counted = channel.aggregate(reports, strict=True)
    assert counted.n == 20_000
    if number:
        # -5/12 lies 8 + 1/7 steps from the low end: 6 in 7 go to point 8, where none is of a class
        # that the number is not in.
        shares = np.zeros(13)
        shares[[8, 9]] = 6 / 7, 1 / 7
        if channel.apart is not None and channel.apart[1] == 8:
            shares[[8, 9]] = 0, 1
        if channel.apart is not None and channel.apart[0] == 9:
            shares[[8, 9]] = 1, 0
        law = channel.law.forward(shares)
        assert chi_square_passes(counted.counts, 20_000 * law)
        return
    shares = np.eye(len(channel.domain))[2]
    error = np.sqrt(channel.variance(shares, 20_000))
    got = channel.decode(counted.counts, counted.n)
    assert np.all(np.abs(got - shares) < 6.5 * error)


@needs_node
def test_what_memory_and_numbers_refuse() -> None:
    """Another form of a question, no question, a number outside, and what is not a number."""
    first, other = RAPPOR(3, 1, question="q"), RAPPOR(3, 2, question="q")
    none, number = RAPPOR(3, 1), PM(Interval(0, 1), 1)
    found = node(
        """
        const tried = async (work) => {
          try { await work(); return "taken"; } catch (error) { return String(error.message); }
        };
        const load = async (i) => client.loadChannel(given[2 * i], given[2 * i + 1]);
        const memory = new client.Memory(new Uint8Array(32));
        const [first, other] = [await load(0), await load(1)];
        const [none, number] = [await load(2), await load(3)];
        console.log(JSON.stringify([
          await tried(() => first.remember(0, "anna", memory)),
          await tried(() => other.remember(0, "anna", memory)),
          await tried(() => other.remember(0, "anna", new client.Memory(memory.key, memory.asked))),
          await tried(() => none.remember(0, "anna", memory)),
          await tried(() => number.remember(0, "anna", memory)),
          await tried(() => number.report(1.5)),
          await tried(() => number.report(NaN)),
          await tried(() => number.report("x")),
          await tried(() => number.report(0.25)),
          await tried(() => new client.Memory(new Uint8Array(3))),
        ]));
        """,
        *(text for c in (first, other, none, number) for text in (text_of(c), c.hash)),
    )
    assert [f == "taken" for f in found] == [True] + [False] * 7 + [True, False]


@needs_node
def test_texts_that_nobody_lists() -> None:
    """A Bloom filter takes any text, listed or not; candidates asked for later find it."""
    channel = BloomRAPPOR(["a", "b"], 12, bits=64, cohorts=4)
    found = node(
        """
        const c = await client.loadChannel(given[0], given[1]);
        const out = [];
        for (let i = 0; i < 2000; i++) out.push(...c.report(i % 4 ? "żółć" : 7));
        let refused = "";
        try { c.report(null); } catch (error) { refused = String(error.message); }
        console.log(JSON.stringify([out, refused]));
        """,
        text_of(channel),
        channel.hash,
    )
    records, refused = found
    counted = channel.aggregate(unpack(channel, np.array(records, dtype=np.uint8).tobytes()))
    told = counted.estimate(method="selection", alpha=1e-6, candidates=["a", "żółć", 7, "7"])
    assert set(told.found) == {"żółć", 7}
    assert abs(told["żółć"] - 0.75) < 0.1
    assert "must be" in refused
