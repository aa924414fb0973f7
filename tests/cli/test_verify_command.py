"""``dither verify`` with a key and an answer, checkpoints, and entries of the registry."""

from __future__ import annotations

import json
import shutil

import pytest

from cli.conftest import Run
from dither.ledger import OwnerKey

ASKED = "SELECT region, COUNT(*) AS n FROM visits GROUP BY region"


@pytest.fixture
def key(folder) -> OwnerKey:
    """The owner's key, which the policy names."""
    made = OwnerKey.make()
    made.write(folder / "owner.key")
    (folder / "owner.pub").write_text(made.public.text)
    policy = (folder / "dither.toml").read_text()
    (folder / "dither.toml").write_text(policy + '\n[owner]\nkey = "owner.key"\n')
    return made


def released(run: Run, *more: str) -> None:
    """An answer and its certificate."""
    done = run("release", ASKED, "--epsilon", "0.1", "--analyst", "ana", *more)
    assert done.exit_code == 0, done.output


def test_a_certificate_is_checked_without_a_ledger(run: Run, folder, key: OwnerKey) -> None:
    """In all formats of its answer; a wrong key and a wrong answer end with 1 and a sentence."""
    for ending in ("csv", "parquet", "json"):
        released(run, "--out", f"n.{ending}", "--certificate", f"{ending}.cert.json")
    (folder / "visits.ledger").unlink()
    (folder / "dither.toml").unlink()
    for ending in ("csv", "parquet", "json"):
        checked = ("verify", f"{ending}.cert.json", "--key", "owner.pub", "--answer")
        done = run(*checked, f"n.{ending}")
        assert done.exit_code == 0, done.output
        assert f"signed by the owner's key {key.public.fingerprint}" in done.output
        assert "the answer is the one that it was issued for" in done.output
        other = "csv" if ending == "json" else "json"
        done = run(*checked, f"n.{other}")
        assert done.exit_code == 1
        assert "not the one that the certificate was issued for" in done.output
    (folder / "other.pub").write_text(OwnerKey.make().public.text)
    done = run("verify", "csv.cert.json", "--key", "other.pub")
    assert (done.exit_code, "signed by another key" in done.output) == (1, True)
    done = run("verify", "csv.cert.json", "--key", "none.pub")
    assert done.exit_code == 4
    assert "no key can be read at none.pub" in done.output
    done = run("verify", "csv.cert.json", "--key", "owner.pub", "--policy", "dither.toml")
    assert done.exit_code == 2
    assert "--policy goes with no --key" in done.output


def test_the_json_of_a_release_is_certificate_and_answer(run: Run, folder, key: OwnerKey) -> None:
    """One file is both; and with a ledger all is checked."""
    done = run("release", ASKED, "--epsilon", "0.1", "--analyst", "ana", "--json")
    (folder / "r.json").write_text(done.stdout)
    done = run("verify", "r.json", "--key", "owner.pub", "--answer", "r.json")
    assert done.exit_code == 0, done.output
    found = ("--ledger", "visits.ledger", "--answer", "r.json")
    done = run("verify", "r.json", *found, "--key", "owner.pub")
    assert "agrees with entry 3" in done.output
    body = json.loads((folder / "r.json").read_text())
    body["rows"][0]["n"] += 1
    (folder / "r.json").write_text(json.dumps(body))
    assert run("verify", "r.json", *found).exit_code == 1


def test_a_checkpoint_is_signed_and_refuses_an_older_ledger(
    run: Run, folder, key: OwnerKey, monkeypatch: pytest.MonkeyPatch
) -> None:
    """By a command; a policy that names it opens no other; a wrong key or place is refused."""
    released(run)
    monkeypatch.setenv("OWNER_KEY", (folder / "owner.key").read_text())
    for given in ("owner.key", "env:OWNER_KEY"):
        done = run("ledger", "checkpoint", "visits.ledger", "--key", given, "--out", "c.json")
        assert done.exit_code == 0, done.output
        assert f"entry 4, signed by {key.public.fingerprint}" in done.output
    policy = (folder / "dither.toml").read_text()
    named = policy.replace("[budget]\n", '[budget]\ncheckpoint = "c.json"\n')
    (folder / "dither.toml").write_text(named + 'public = "owner.pub"\n')
    released(run)
    shutil.move(folder / "visits.ledger", folder / "kept.ledger")
    done = run("release", ASKED, "--epsilon", "0.1", "--analyst", "ana")
    assert done.exit_code == 7
    assert "there is no ledger" in done.output
    assert not (folder / "visits.ledger").exists()
    for options, code, words in (
        (("--key", "none.key", "--out", "d.json"), 4, "no key can be read at none.key"),
        (("--key", "owner.pub", "--out", "d.json"), 4, "owner.pub holds no key"),
        (("--key", "owner.key", "--out", "none/d.json"), 2, "there is no folder"),
        (("--key", "owner.key", "--password", "x", "--out", "d.json"), 2, "env:NAME"),
        (("--out", "d.json"), 2, "--key"),
    ):
        done = run("ledger", "checkpoint", "kept.ledger", *options)
        assert (done.exit_code, words in done.output) == (code, True), done.output
    assert not (folder / "d.json").exists()


def test_an_entry_of_the_registry(run: Run, folder) -> None:
    """Printed or written; what is to be filled in is said on standard error."""
    released(run, "--certificate", "n.cert.json")
    done = run("registry", "n.cert.json", "--set", "basic.intended_use=Plan clinics")
    assert done.exit_code == 0, done.output
    body = json.loads(done.stdout)
    assert body["deployment"]["basic"]["intended_use"] == "Plan clinics"
    assert "To be filled in: url_slug, basic.name" in done.stderr
    curators = 'basic.data_curators=[{"data_curator_name": "Clinic"}]'
    named = ("--policy", "dither.toml", "--ledger", "visits.ledger", "--out", "e.yaml")
    done = run("registry", "n.cert.json", *named, "--set", curators)
    assert done.exit_code == 0, done.output
    body = json.loads((folder / "e.yaml").read_text())
    assert body["deployment"]["basic"]["data_curators"] == [{"data_curator_name": "Clinic"}]
    for wrong, code in (("basic.intended_use", 2), ("basic.use=x", 4)):
        assert run("registry", "n.cert.json", "--set", wrong).exit_code == code
