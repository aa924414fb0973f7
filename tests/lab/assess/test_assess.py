"""Assessments: copies light up, fresh rows do not, and words hold where there is little to say."""

from __future__ import annotations

import datetime as dt
import json
import warnings
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pytest

import dither
from dither.errors import ArgumentError
from dither.lab.anonymize import mondrian
from dither.lab.assess import Said, assess
from dither.lab.assess._world import World
from dither.lab.assess.attackers._inferring import differencing_versions, inferring
from dither.lab.assess.attackers._linking import linking
from dither.lab.assess.attackers._membership import membership_scores
from dither.lab.assess.attackers._singling import singling
from lab.assess.conftest import Drawn, noisy, people

ALL = {"singling out", "linkability", "inference"}


@pytest.mark.parametrize("kind", ["a copy", "shuffled", "1 % noise"])
def test_what_gives_everything_away_lights_up(drawn: Drawn, kind: str) -> None:
    """All three criteria, on a copy, a shuffled one, and one with a little noise."""
    table, held = drawn(250), drawn(250)
    rng = np.random.default_rng(2)
    release = {
        "a copy": table,
        "shuffled": table[rng.permutation(table.height)],
        "1 % noise": noisy(table, rng),
    }[kind]
    found = assess(table, release, control=held, secrets=["region", "ill"])
    assert set(found.said.values()) == {Said.FOUND}
    by = {t.attacker: t for t in found.tried if t.criterion == "singling out"}
    assert by["nearest record (top half)"].said is Said.FOUND
    assert by["shadow-trained attack (top half)"].said is Said.FOUND
    assert found.found
    assert "gives away something" in found.conclusion


def test_fresh_rows_do_not(drawn: Drawn) -> None:
    """Nothing is found, the attacks are seen to work on the table, and it is called no proof."""
    found = assess(drawn(250), drawn(250), control=drawn(250), secrets=["region"])
    assert set(found.said.values()) == {Said.NOT_SEEN}
    assert "not a proof" in found.conclusion
    seen = [t for t in found.tried if t.said is Said.NOT_SEEN]
    assert all(t.works and t.low is not None and t.low <= 0 <= (t.high or 0) for t in seen)


def _accused(runs: int, rows: int, **given: Any) -> int:
    found = 0
    for seed in range(runs):
        rng = np.random.default_rng(seed)
        table, release, held = (people(rng, rows) for _ in range(3))
        found += assess(table, release, control=held, seed=seed, **given).found
    return found


def test_false_alarms_are_few() -> None:
    """Of 10 harmless releases at 50 %: all of them are accused in 1 of 1,000 cases at most."""
    assert _accused(10, 24, secrets=["ill"], confidence=0.5) < 10


@pytest.mark.heavy("test_false_alarms_are_few")
def test_false_alarms_are_held_at_the_stated_rate() -> None:
    """Of 100 harmless releases at 80 %: more than 35 are 1 in 5,000 at a rate of 20 %."""
    assert _accused(100, 60, secrets=["region", "ill"], confidence=0.8) <= 35


def test_an_anonymised_release_is_read_by_its_labels(drawn: Drawn) -> None:
    """Boxes of five rows, with pay as it was: everybody is found by it."""
    table, held = drawn(200), drawn(200)
    release = mondrian(table, ["age", "region"], k=5, sensitive=["ill"])
    found = assess(table, release, control=held, secrets=["ill"])
    assert found.said["singling out"] is Said.FOUND
    assert found.left_out == ()


def test_the_claim_stands_beside(drawn: Drawn) -> None:
    """A copy is beyond any small epsilon; a large one allows it; each attack shows what is."""
    table, held = drawn(150), drawn(150)
    small, large = (
        assess(table, table, control=held, epsilon=e, secrets=["ill"]) for e in (0.5, 40)
    )
    assert small.said["singling out"] is Said.BEYOND
    assert "claimed allows (ε = 0.5, for one person added or removed): " in small.conclusion
    assert "With 95 % confidence that is at least" in small.criteria[0].answer
    assert "and each row is of another person." in small.html()
    assert large.said["singling out"] is Said.FOUND
    for found in (small, large):
        assert all(t.allowed is not None and t.allowed > (t.control or 0) for t in found.tried)
    assert "No certificate" in small.summary()
    nearest = next(t for t in small.tried if t.attacker == "nearest record (top half)")
    assert nearest.epsilon is not None
    assert nearest.epsilon > 1


def test_without_a_control_nothing_is_concluded(drawn: Drawn) -> None:
    """Even a copy: shares are shown, and what they are worth is said."""
    table = drawn(60)
    found = assess(table, table, secrets=["ill"])
    assert set(found.said.values()) == {Said.CANNOT_SAY}
    assert "nobody knows" in found.criteria[0].answer
    assert all(t.control is None and t.more is None for t in found.tried)


def test_few_people_cannot_decide(drawn: Drawn) -> None:
    """Of two people nothing is told from luck, whatever they hit."""
    table, held = drawn(2), drawn(2)
    found = assess(table, table, control=held)
    assert set(found.said.values()) == {Said.CANNOT_SAY}
    assert any("it takes" in t.why for t in found.tried)


def test_a_control_of_other_people_is_seen(drawn: Drawn) -> None:
    """People who differ before anything is released: no verdict, and it says why."""
    table, release = drawn(300), drawn(300)
    other = drawn(300).with_columns(pl.col("age") + 30, region=pl.lit("h"))
    found = assess(table, release, control=other, secrets=["ill"])
    assert found.check is not None
    assert not found.check.alike
    assert set(found.said.values()) == {Said.CANNOT_SAY}
    assert any("not like the table" in text for text in found.limits)


def test_a_control_out_of_the_table_is_seen(drawn: Drawn) -> None:
    """It hides a copy, so nothing that is not seen counts."""
    table = drawn(300)
    found = assess(table, table, control=table[100:], secrets=["ill"])
    assert found.check is not None
    assert not found.check.fresh
    assert Said.NOT_SEEN not in found.said.values()


def test_people_with_several_rows_are_people(drawn: Drawn) -> None:
    """As many people are attacked, any row gives its person away, and shared ones are left out."""
    rows = drawn(300).with_columns(who=pl.Series(np.arange(300) // 3))
    held = drawn(300).with_columns(who=pl.Series(90 + np.arange(300) // 3))
    found = assess(rows, rows.drop("who"), control=held, unit="who", secrets=["ill"])
    assert found.people == (100, 90, 90)
    assert found.shared_people == 10
    assert {t.people for t in found.tried} == {90}
    assert found.said["singling out"] is Said.FOUND
    assert not found.unit_released
    assert assess(rows, rows, control=held, unit="who", secrets=["ill"]).unit_released
    with pytest.raises(ArgumentError, match="control must have people"):
        assess(rows, rows, control=rows, unit="who")


def test_the_same_seed_gives_the_same(drawn: Drawn) -> None:
    """And nothing of it rests on the order in which people stand."""
    table, held = drawn(80), drawn(80)
    first, again = (assess(table, table, control=held, secrets=["ill"]) for _ in range(2))
    assert first.to_json() == again.to_json()
    turned = assess(table[::-1], table, control=held[::-1], secrets=["ill"])
    assert turned.said == first.said


def _world(table: pl.DataFrame, release: pl.DataFrame, held: pl.DataFrame) -> World:
    return World(pl.concat([table, held]), release)


def test_each_attacker_finds_a_copy(drawn: Drawn) -> None:
    """By itself, with no verdict between: members are hit or score more than others."""
    table, held = drawn(120), drawn(120)
    rng = np.random.default_rng(3)
    world = _world(table, table, held)
    tried = [
        *singling(world, rng),
        *membership_scores(world, rng),
        *linking(world, ("age", "region"), rng),
        *inferring(world, "region", {}, rng),
        *inferring(world, "pay", {}, rng),
    ]
    names = {one.attacker for one in tried}
    assert names == {
        "exact", "weighted", "inexact", "nearest", "crowd", "shadow", "tracing", "model",
        "homogeneity", "similarity",
    }  # fmt: skip
    weak = []
    for one in tried:
        values = one.scores if one.hits is None else one.hits.astype(float)
        assert values is not None
        inside, outside = values[:120].mean(), values[120:].mean()
        if not inside > outside:
            weak.append((one.attacker, one.secret))
    assert weak == []


def test_groups_are_as_good_as_answers() -> None:
    """Of two illnesses of the stomach the class says the stomach; without groups, nothing."""
    ill = ["ulcer", "gastritis"] * 2 + ["flu", "ulcer"] * 2
    table = pl.DataFrame({"zip": ["a"] * 4 + ["b"] * 4, "ill": ill})
    world = World(table, table)
    groups = {"ill": {"ulcer": "stomach", "gastritis": "stomach"}}
    hits = {t.attacker: t.hits for t in inferring(world, "ill", groups, np.random.default_rng(1))}
    assert hits["homogeneity"] is not None
    assert hits["similarity"] is not None
    assert hits["homogeneity"].sum() == 0
    assert hits["similarity"].tolist() == [True] * 4 + [False] * 4


def test_two_versions_give_away_who_came() -> None:
    """One person came to a class of five: her answer is what changed."""
    before = pl.DataFrame({"zip": ["a"] * 4 + ["b"] * 4, "ill": ["flu", "cold"] * 4})
    after = before.vstack(pl.DataFrame({"zip": ["a"], "ill": ["hiv"]}))
    people_here = pl.DataFrame({"zip": ["a", "b", "a"], "ill": ["hiv", "flu", "flu"]})
    world, earlier = World(people_here, after), World(people_here, before)
    (found,) = differencing_versions(world, earlier, "ill")
    assert found.hits is not None
    assert found.hits.tolist() == [True, False, False]


def test_an_earlier_version_is_attacked(drawn: Drawn) -> None:
    """The attacker is named where there are two versions, and its absence is said elsewhere."""
    table, held = drawn(60), drawn(60)
    found = assess(table, table, control=held, before=table[30:], secrets=["ill"])
    assert "differencing of two versions" in {t.attacker for t in found.tried}
    assert not any("several versions" in text for text in found.limits)


def test_what_it_gives_holds_no_value() -> None:
    """Not the page, the text, the data: names of columns and counts alone."""
    secret = "Xanthippe Quux"
    table = pl.DataFrame({"name": [f"{secret} {i}" for i in range(30)], "n": range(30)})
    held = pl.DataFrame({"name": [f"{secret} {i}" for i in range(50, 80)], "n": range(30)})
    found = assess(table, table, control=held)
    for text in (found.html(), str(found), found.to_json(), found._repr_html_(), repr(found)):
        assert secret not in text


def test_the_page_asks_for_nothing(drawn: Drawn, tmp_path: Path) -> None:
    """No script, no address, one file; names are escaped; and it is what was saved."""
    table = drawn(40).rename({"ill": "<script>alert(1)</script>"})
    found = assess(table, table, control=table.clear().vstack(table[:20]), epsilon=1)
    page = found.html()
    for forbidden in ("<script", "http:", "https:", "src=", "@import", "url(", "<link"):
        assert forbidden not in page.replace("&lt;script", "")
    assert "&lt;script&gt;alert(1)&lt;/script&gt;" in page
    assert "prefers-color-scheme: dark" in page
    saved = found.save(tmp_path / "page.html")
    assert saved.read_text(encoding="utf-8") == page.rstrip() + "\n"
    assert json.loads(found.save(tmp_path / "a.json").read_text(encoding="utf-8")) == json.loads(
        found.to_json()
    )
    with pytest.raises(ArgumentError, match=r"path must end in \.html"):
        found.save(tmp_path / "page.pdf")


def _odd(n: int) -> pl.DataFrame:
    rng = np.random.default_rng(n)
    return pl.DataFrame(
        {
            "floats": rng.choice([np.inf, -np.inf, np.nan, 0.0, 1e308, -1e308, 5e-324], n),
            "none": pl.Series([None] * n),
            "text": rng.choice(["", "*", "[1, 2)", "{a, b}", "\x00", "a\nb", "130**", "NULL"], n),
            "big": pl.Series([2**62 if x else -(2**62) for x in rng.integers(0, 2, n)]),
            "date": pl.Series([dt.date(1, 1, 1) if x else None for x in rng.integers(0, 2, n)]),
            "span": pl.Series([dt.timedelta(days=int(x)) for x in rng.integers(0, 3, n)]),
            "list": pl.Series([[int(x)] for x in rng.integers(0, 3, n)]),
            "struct": pl.Series([{"a": int(x)} for x in rng.integers(0, 3, n)]),
            "bytes": pl.Series([b"\xff"] * n),
            "kind": pl.Series(rng.choice(["x", "y"], n)).cast(pl.Categorical),
            "same": pl.Series([1] * n),
        }
    )


@pytest.mark.parametrize("rows", [(30, 30, 30), (1, 1, 1), (2, 3, 1), (20, 20, 3)])
def test_hostile_data_raise_nothing(rows: tuple[int, int, int]) -> None:
    """Infinities, NULLs alone, lists, structs, labels as values; and no warning either."""
    n, m, r = rows
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        found = assess(
            _odd(n), _odd(r), control=_odd(m), before=_odd(5), epsilon=1, secrets=["floats", "kind"]
        )
        assert found.html()
        assert str(found)
    for name, other in (("floats", "text"), ("text", "big"), ("date", "list"), ("kind", "bytes")):
        table, held = (_odd(k).select(x=name, y="big") for k in (n, m))
        assert assess(table, _odd(r).select(x=other, y="big"), control=held).criteria


def test_a_small_table_beside_a_large_release() -> None:
    """Fewer people than numbers are cut into, and more numbers in the release: no failure."""
    rng = np.random.default_rng(4)
    small, held, release = (
        pl.DataFrame({"pay": rng.lognormal(size=n), "age": rng.integers(18, 90, n)})
        for n in (5, 5, 400)
    )
    found = assess(small, release, control=held)
    assert set(found.said.values()) == {Said.CANNOT_SAY}


def test_a_release_of_nothing_says_why() -> None:
    """All columns are there and empty: nothing could be tried, and the page says what it takes."""
    table, held = (pl.DataFrame({"a": range(n, n + 50), "b": range(50)}) for n in (0, 50))
    empty = table.with_columns(pl.lit(None).alias(name) for name in table.columns)
    found = assess(table, empty, control=held)
    assert set(found.said.values()) == {Said.CANNOT_SAY}
    assert "hold values in both" in " ".join(str(found).split())


def test_bad_arguments_are_refused_by_name(drawn: Drawn) -> None:
    """Each names the argument; nothing of the data is shown."""
    table = drawn(20)
    bad: list[tuple[dict[str, Any], str]] = [
        ({"original": 3}, "original must be"),
        ({"release": table.clear()}, "release is empty"),
        ({"release": table.rename({n: n + "!" for n in table.columns})}, "release must share"),
        ({"control": table.drop("age")}, "control has no column 'age'"),
        ({"control": table.with_columns(age=pl.lit("x"))}, "holds numbers in original and texts"),
        ({"control": table.clear()}, "control is empty"),
        ({"unit": "nobody"}, "unit has an unknown column"),
        ({"unit": 3}, "unit must be"),
        ({"columns": ["agee"]}, "did you mean 'age'"),
        ({"columns": []}, "columns must name"),
        ({"secrets": "age"}, "secrets must be a list"),
        ({"secrets": ["agee"]}, "did you mean 'age'"),
        ({"known": [*table.columns]}, "known must leave"),
        ({"groups": {"ill": 3}}, "groups must be a mapping"),
        ({"before": table.drop("ill")}, "before has no column"),
        ({"people": 0}, "people must be"),
        ({"confidence": 95}, "confidence must be"),
        ({"epsilon": -1}, "epsilon must be"),
        ({"delta": 0.1}, "delta goes with"),
        ({"epsilon": "1e-3", "delta": 0.5}, "delta must be smaller"),
        ({"neighbours": "other"}, "neighbours must be"),
        ({"key": "owner.pub"}, "key goes with a certificate"),
        ({"seed": -1}, "seed must be"),
    ]
    for given, message in bad:
        with pytest.raises(ArgumentError) as caught:
            assess(**({"original": table, "release": table, "control": table} | given))
        assert message in str(caught.value), given


def test_a_certificate_vouches(tmp_path: Path) -> None:
    """Its epsilon is held against the rows; of other rows it says so; a smaller one is refused."""
    ledger = tmp_path / "visits.ledger"
    policy = {
        "budget": {"epsilon": 1, "ledger": str(ledger)},
        "tables": {"visits": {"source": "visits.parquet"}},
    }
    table = pl.DataFrame({"n": range(16), "age": range(16)})
    held = table.with_columns(pl.col("n") + 1000)
    with dither.open(policy, sources={"visits": table}) as session:
        release = session.sql("SELECT COUNT(*) AS n FROM visits").release(0.5)
    own = assess(table, release.frame, control=held, certificate=release.certificate, ledger=ledger)
    assert own.claim is not None
    assert (own.claim.epsilon, own.claim.of_these_rows) == (0.5, True)
    assert "was verified" in " ".join(own.summary().split())
    other = assess(table, table, control=held, certificate=release.certificate, ledger=ledger)
    assert other.claim is not None
    assert not other.claim.of_these_rows
    assert "nobody verified" in " ".join(other.summary().split())
    assert other.said["singling out"] is Said.BEYOND
    with pytest.raises(ArgumentError, match="epsilon must be at least what the certificate"):
        assess(table, table, epsilon=0.1, certificate=release.certificate, ledger=ledger)
    changed = release.certificate.to_dict() | {"loss": {"epsilon": "1/10"}}
    with pytest.raises(dither.errors.CertificateError):
        assess(table, table, certificate=changed, ledger=ledger)


def test_a_copy_gives_away_what_the_table_itself_does() -> None:
    """Attacks are held against the table in no order: of many equals, none comes first."""
    rng = np.random.default_rng(3)
    table, held = (pl.DataFrame({c: rng.integers(0, 6, n) for c in "abcd"}) for n in (600, 100))
    copy = table.sample(fraction=1, shuffle=True, seed=4)
    found = assess(table, copy, control=held, secrets=["a"], people=100)
    for one in found.tried:
        assert one.bare is not None
        assert one.share is not None
        assert abs(one.bare - one.share) < 0.15


def test_the_precision_of_a_file_tells_nobody_apart() -> None:
    """A table in single precision beside a control in double: of a fresh release nothing is found.

    Tenths differ in the ninth digit, so that the table's alone would be those of the release.
    """
    rng = np.random.default_rng(4)
    table, held, fresh = (pl.DataFrame({"x": rng.integers(1, 90, 60) / 10}) for _ in range(3))
    short = pl.col("x").cast(pl.Float32)
    found = assess(table.with_columns(short), fresh.with_columns(short), control=held)
    assert found.check is not None
    assert found.check.alike
    assert not found.found
    own = table.with_columns(short)
    assert assess(own, own, control=held).said["singling out"] is Said.FOUND


def test_a_control_that_was_rounded_otherwise_is_unlike() -> None:
    """Of a fresh release nothing is found, as a model sees the decimals of the control."""
    rng = np.random.default_rng(6)
    table, held, fresh = (pl.DataFrame({"x": rng.integers(1, 900, 80) / 10}) for _ in range(3))
    finer = held + pl.DataFrame({"x": rng.random(80) / 20})
    found = assess(table, fresh, control=finer)
    assert found.check is not None
    assert not found.check.alike
    assert not found.found


def test_moments_with_a_zone_beside_some_without_are_refused() -> None:
    """They would lie hours apart for that alone."""
    days = [dt.datetime(2020, 1, 1) + dt.timedelta(days=i) for i in range(30)]
    table = pl.DataFrame({"seen": days})
    zoned = table.with_columns(pl.col("seen").dt.replace_time_zone("Europe/Berlin"))
    with pytest.raises(ArgumentError, match="time zone in one of original and control"):
        assess(zoned, table, control=table)


def test_the_root_has_it() -> None:
    """`dt.assess` is the function."""
    assert dither.assess is assess
