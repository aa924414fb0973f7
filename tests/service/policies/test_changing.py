"""A served policy is changed whole or not at all, and names nothing that its owner may not name."""

from __future__ import annotations

from itertools import pairwise
from pathlib import Path

import pytest

from dither.errors import ArgumentError, DitherError, PolicyError
from dither.service._desk import Desk
from dither.service.policies import (
    PolicyDraft,
    before,
    biases,
    files_of,
    inside,
    save,
    text_of,
    undo,
)
from dither.service.policies._saving import mark_of
from service.hospital import SECRET, Served, served, written


def saved(desk: Desk, text: str) -> bool:
    """Save a text that was begun with what is there."""
    return save(desk, text, mark_of(text_of(desk)), "olga")


def listed(folder: Path) -> dict[str, bytes]:
    """The files of a folder that a change could have touched, and what they hold."""
    return {p.name: p.read_bytes() for p in folder.iterdir() if ".toml" in p.name}


def test_a_change_is_saved_served_and_undone(hospital: Served) -> None:
    """Atomically; the text before is kept beside it, and comes back, and forth again."""
    desk = hospital.desk
    old = text_of(desk)
    desk.path.chmod(0o640)
    new = old.replace("[0, 100]", "[0, 50]")
    digest = hospital.get("ann", "/policy").json()["digest"]
    assert saved(desk, new)
    assert hospital.get("ann", "/policy").json()["digest"] != digest
    assert (text_of(desk), before(desk)) == (new, old)
    assert desk.path.stat().st_mode & 0o777 == 0o640
    assert undo(desk, mark_of(new), "olga")
    assert (text_of(desk), before(desk)) == (old, new)
    assert hospital.get("ann", "/policy").json()["digest"] == digest
    assert undo(desk, mark_of(old), "olga")
    said = [line["what"] for line in hospital.get("olga", "/log").json()["log"]]
    assert said[:3] == ["policy saved"] * 3


@pytest.mark.parametrize(
    ("here", "there", "words"),
    [
        ("max_rows = 3", "max_rows = -3", "tables.visits.max_rows"),
        ("max_rows = 3", "max_row = 3", "did you mean 'max_rows'"),
        ("[budget]", "[budget", "TOML"),
        ('"visits.ledger"', '"fresh.ledger"', "budget.ledger"),
        ('name = "visits"', 'name = "visits"\npublic = true', "service"),
        ("[tables.visits]\n", '[owner]\nkey = "k"\n[tables.visits]\n', "owner"),
        ('unit = "person"\nmax_rows = 3\nmax_groups = 2', "public = true", "public"),
        ('"visits.parquet"', '"/etc/passwd"', "data file in the folder"),
        ('"visits.parquet"', '"../x.csv"', "data file in the folder"),
        ('"visits.parquet"', '["visits.parquet"]', "one file"),
        ('"visits.parquet"', '"*.parquet"', "data file in the folder"),
        ('"visits.parquet"', '{ postgres = "env:HOME", table = "x" }', "one file"),
        ('"visits.parquet"', '"visits.toml"\nformat = "csv"', "format"),
        ("public = true\n", "public = true\nformat = 'csv'\n", "public"),
        ("cost = {", "cosst = {", "no such column"),
    ],
)
def test_what_is_refused_changes_nothing(tmp_path: Path, here: str, there: str, words: str) -> None:
    """Neither the file, nor what is served, nor what can be undone."""
    with served(written(tmp_path)) as hospital:
        desk = hospital.desk
        text = text_of(desk)
        assert here in text
        files, session = listed(tmp_path), desk.session
        with pytest.raises(PolicyError, match=words):
            saved(desk, text.replace(here, there, 1))
        assert listed(tmp_path) == files
        assert desk.session is session
        assert before(desk) is None


def test_a_public_table_cannot_be_made_of_protected_rows(hospital: Served) -> None:
    """Whatever it is called: its rows would be shown to whoever may ask."""
    desk = hospital.desk
    more = '\n[tables.all]\nsource = "visits.parquet"\npublic = true\n'
    with pytest.raises(PolicyError, match="public"):
        saved(desk, text_of(desk) + more)
    moved = text_of(desk).replace('"places.parquet"', '"visits.parquet"')
    with pytest.raises(PolicyError, match="public"):
        saved(desk, moved)


def test_caps_are_not_raised_by_a_file(hospital: Served) -> None:
    """Once the ledger has the account: the message names the amendment; nor by another name."""
    desk = hospital.desk
    text = text_of(desk)
    hospital.released("ann")
    raised = PolicyDraft(desk, text.replace("epsilon = 1000", "epsilon = 2000"))
    (found,) = raised.errors
    assert "dither ledger amend" in found.text
    assert found.line == text.split("\n").index("epsilon = 1000") + 1
    with pytest.raises(PolicyError, match="amend"):
        saved(desk, raised.text)
    renamed = text.replace("[tables.visits", "[tables.other")
    with pytest.raises(DitherError, match="charged"):
        saved(desk, renamed)
    assert text_of(desk) == text


def test_a_file_that_changed_meanwhile_is_not_written_over(hospital: Served) -> None:
    """Nor is what the server's own hand took out brought back by an undo."""
    desk = hospital.desk
    old = text_of(desk)
    saved(desk, old.replace("[0, 100]", "[0, 50]"))
    by_hand = old.replace("[0, 100]", "[0, 60]").split("[tables.places]")[0]
    desk.path.write_text(by_hand)
    with pytest.raises(ArgumentError, match="changed"):
        save(desk, old, mark_of(old), "olga")
    assert before(desk) is None
    with pytest.raises(ArgumentError, match="no earlier"):
        undo(desk, mark_of(by_hand), "olga")
    assert desk.path.read_text() == by_hand


def test_sources_are_files_of_the_folder(tmp_path: Path) -> None:
    """By no path out of it, by no link out of it, and no file that is no data."""
    home = tmp_path / "home"
    (home / "in").mkdir(parents=True)
    (home / "a.csv").write_text("x\n1\n")
    (home / "in" / "b.parquet").write_text("")
    (home / "key.txt").write_text(SECRET)
    (home / ".hidden.csv").write_text("x\n")
    (tmp_path / "out.csv").write_text(f"{SECRET}\n")
    (home / "link.csv").symlink_to(tmp_path / "out.csv")
    (home / "key.csv").symlink_to(home / "key.txt")
    (home / "up").symlink_to(tmp_path)
    assert files_of(home) == ["a.csv", "in/b.parquet"]
    assert inside(home, "in/../a.csv") == home / "a.csv"
    assert inside(home, str(home / "a.csv")) == home / "a.csv"
    for wrong in (
        *("../out.csv", "link.csv", "key.csv", "up/out.csv", "key.txt", ".hidden.csv", "in", ""),
        *("*.csv", "nothing.csv", str(tmp_path / "out.csv"), "a.csv\0", "x" * 2000 + ".csv"),
        *("s3://a/b.csv", "~/a.csv", "/proc/self/environ"),
    ):
        with pytest.raises(PolicyError) as refused:
            inside(home, wrong)
        assert str(refused.value).startswith("source must be a data file in the folder")


def test_nothing_is_opened_that_may_not_be_named(
    hospital: Served, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A draft that names a place elsewhere is refused before any source is looked at."""
    import dither.service.policies._draft as module

    def opened(*_: object) -> None:
        raise AssertionError("a source was opened")

    monkeypatch.setattr(module, "connect", opened)
    monkeypatch.setattr(module, "check_read", opened)
    text = text_of(hospital.desk).replace('"visits.parquet"', '"/etc/hostname.csv"')
    draft = PolicyDraft(hospital.desk, text)
    assert [one.level for one in draft.findings] == ["error"]
    assert draft.stored == {}


def test_a_new_table_must_say_whose_rows_it_has(tmp_path: Path) -> None:
    """Where a column looks like somebody's key; names of columns and tables stay names."""
    import polars as pl

    names = ["patient_id", 'say "hi"', "<script>", "two\nlines", "[tables.x]"]
    pl.DataFrame({name: ["1"] for name in names}).write_parquet(tmp_path / "visits.2.parquet")
    with served(written(tmp_path)) as hospital:
        desk = hospital.desk
        text = PolicyDraft(desk, text_of(desk)).with_source("visits.2.parquet")
        draft = PolicyDraft(desk, text)
        assert draft.tables == ["visits", "visits_2"]
        assert list(draft.stored["visits_2"]) == names
        assert [one.where for one in draft.errors] == ["tables.visits_2.unit"]
        assert SECRET not in text
        whole = text.replace(
            "[tables.visits_2]\n",
            '[tables.visits_2]\nunit = "patient_id"\nmax_rows = 1\nmax_groups = 1\n',
        )
        assert saved(desk, whole)
        assert (
            hospital.released("olga", sql="SELECT COUNT(*) AS n FROM visits_2")["state"] == "done"
        )
        assert "visits_2" not in PolicyDraft(desk, whole).without_table("visits_2")


def test_limits_are_shown_on_rows_that_nobody_has(hospital: Served) -> None:
    """More rows count with a wider limit, and the noise is wider; the data play no part."""
    desk = hospital.desk
    rows = biases(desk.session.policy, "visits")
    assert [one.max_rows for one in rows if one.chosen] == [3]
    assert all(a.counted <= b.counted for a, b in pairwise(rows))
    widths = [one.width or 0 for one in rows]
    assert widths == sorted(widths)
    assert rows[-1].missing == 0
    assert rows[0].missing > 0.3
    assert biases(desk.session.policy, "visits") == rows
    assert not any(one.spent.epsilon for one in desk.session.balance())
