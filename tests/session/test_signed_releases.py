"""Certificates that the owner signs: checked without a ledger, and refused after any change."""

from __future__ import annotations

import copy
import json
import os
from pathlib import Path
from typing import Any

import polars as pl
import pytest

import dither as dt
from dither.errors import ArgumentError, CertificateError, KeyFileError, PolicyError
from dither.ledger import OwnerKey
from dither.session._certificate import digest_of
from dither.session._code import code_version, commit_of
from dither.session._signer import CHANGED, Signer
from query.query_data import leaves, policy

TEXT = "SELECT region, COUNT(*) AS n, AVG(cost) AS m FROM visits GROUP BY region"


@pytest.fixture
def key(tmp_path: Path) -> OwnerKey:
    """The owner's key, and the files of it."""
    made = OwnerKey.make()
    made.write(tmp_path / "owner.key")
    (tmp_path / "owner.pub").write_text(made.public.text + "\n")
    return made


@pytest.fixture
def signed(tmp_path: Path, frames: Any, key: OwnerKey) -> dt.Release:
    """A release from files, signed."""
    frames["visits"].write_parquet(tmp_path / "visits.parquet")
    given = policy(tmp_path, owner={"key": str(tmp_path / "owner.key")})
    sources = {"visits": tmp_path / "visits.parquet", "regions": frames["regions"]}
    with dt.open(given, sources=sources) as session:
        return session.sql(TEXT).release(1)


def test_the_public_key_alone_vouches(signed: dt.Release, key: OwnerKey, tmp_path: Path) -> None:
    """From a file, a text or the key; with the answer; also beside the ledger."""
    path = signed.certificate.save(tmp_path / "c.json")
    signed.frame.write_csv(tmp_path / "answer.csv")
    for public in (tmp_path / "owner.pub", key.public.text, key.public, key):
        found = dt.verify(path, key=public, answer=tmp_path / "answer.csv")
        assert found.ok
        assert found.text == (
            f"the certificate is signed by the owner's key {key.public.fingerprint}; the answer "
            "is the one that it was issued for"
        )
    found = dt.verify(path, tmp_path / "visits.ledger", key=key, answer=signed)
    assert "agrees with entry" in found.text
    body = signed.certificate.to_dict()
    assert body["signer"] == key.public.text
    assert len(bytes.fromhex(body["code"]["sources"])) == 32
    assert f"signer    {key.public.text}" in str(signed.certificate)


def test_any_change_of_a_signed_certificate_is_found(signed: dt.Release, key: OwnerKey) -> None:
    """Of each leaf, words too, with a digest made anew; and each field taken out or put in."""
    body = signed.certificate.to_dict()
    paths = [path for path in leaves(body) if path != ("digest",)]
    assert len(paths) > 60
    for path in paths:
        forged = copy.deepcopy(body)
        at = forged
        for step in path[:-1]:
            at = at[step]
        old = at[path[-1]]
        at[path[-1]] = old + 1 if isinstance(old, int | float) else "0" if old != "0" else "1"
        forged["digest"] = digest_of(forged)
        with pytest.raises(CertificateError):
            dt.verify(forged, key=key)
    for name in [*body, "extra"]:
        forged = {k: v for k, v in body.items() if k != name} if name in body else body | {name: 1}
        if name != "digest":
            forged["digest"] = digest_of(forged)
        with pytest.raises(CertificateError):
            dt.verify(forged, key=key)


def test_each_refusal_says_what_is_wrong(
    signed: dt.Release, key: OwnerKey, session: Any, tmp_path: Path
) -> None:
    """Another key, another answer, nobody's signature, another format, nothing to check against."""
    body = signed.certificate.to_dict()
    with pytest.raises(CertificateError, match="signed by another key than"):
        dt.verify(body, key=OwnerKey.make())
    with pytest.raises(CertificateError, match="its digest does not match"):
        dt.verify(body | {"rows": 2}, key=key)
    forged = body | {"rows": 2}
    forged["digest"] = digest_of(forged)
    with pytest.raises(CertificateError, match="the owner's signature is not of it"):
        dt.verify(forged, key=key)
    taken = body | {"signature": OwnerKey.make().sign("certificate", "x")}
    with pytest.raises(CertificateError, match="the owner's signature is not of it"):
        dt.verify(taken, key=key)
    unsigned = session.sql("SELECT COUNT(*) AS n FROM visits").release(1)
    with pytest.raises(CertificateError, match="signed by nobody"):
        dt.verify(unsigned.certificate, key=key)
    with pytest.raises(CertificateError, match="it has other columns"):
        dt.verify(body, key=key, answer=unsigned)
    with pytest.raises(CertificateError, match="format is not one"):
        dt.verify(body | {"format": 4}, key=key)
    with pytest.raises(ArgumentError, match=r"give the ledger, the owner's public key \(key=\)"):
        dt.verify(body)
    (tmp_path / "text.pub").write_text("no key")
    for wrong in (tmp_path / "none.pub", tmp_path / "text.pub"):
        with pytest.raises(KeyFileError, match=wrong.name):
            dt.verify(body, key=wrong)
    for none in (3, "dither-owner-12"):
        with pytest.raises(ArgumentError, match="public key"):
            dt.verify(body, key=none)  # type: ignore[arg-type]
    with pytest.raises(ArgumentError, match="answer: there is no file"):
        dt.verify(body, key=key, answer=tmp_path / "none.csv")


def test_a_replay_has_the_certificate_that_was_signed_first(
    tmp_path: Path, frames: Any, key: OwnerKey
) -> None:
    """Under a token; and the owner's section changes no request."""
    signing = policy(tmp_path, owner={"key": str(tmp_path / "owner.key")})
    with dt.open(policy(tmp_path), sources=frames) as session:
        first = session.sql(TEXT).release(1, token="a")
    with dt.open(signing, sources=frames) as session:
        second = session.sql(TEXT).release(1, token="b")
        assert session.sql(TEXT).release(1, token="a").certificate == first.certificate
        assert session.policy.digest == first.certificate.content["policy"]
    assert "signature" not in first.certificate.content
    assert dt.verify(second.certificate, tmp_path / "visits.ledger", key=key).ok
    with dt.open(policy(tmp_path), sources=frames, key=key) as session:
        assert "signature" in session.sql(TEXT).release(1, token="c").certificate.content


def test_a_certificate_of_an_earlier_format_is_read(session: Any, tmp_path: Path, key) -> None:
    """Of format 2: against its ledger, which has the answer; nobody signs it."""
    ledger = session.ledger
    released = session.sql(TEXT).release(1)
    body = released.certificate.to_dict()
    old = {k: v for k, v in body.items() if k not in ("answer", "data", "code")} | {"format": 2}
    old["digest"] = digest_of(old)
    with pytest.raises(CertificateError, match="'format' is not what was issued"):
        dt.verify(old, ledger)
    real = type(ledger).entries

    def earlier(book: Any, *given: Any) -> Any:
        found = real(book, *given)
        for entry in found:
            if entry.answer is not None:
                content = json.loads(entry.answer) | {"certificate": old}
                object.__setattr__(entry, "answer", json.dumps(content))
        return found

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(type(ledger), "entries", earlier)
        assert dt.verify(old, ledger).ok
        assert dt.verify(old, ledger, answer=released).ok
        with pytest.raises(CertificateError, match="not the one that the certificate was issued"):
            dt.verify(old, ledger, answer=released.frame.head(1))
    with pytest.raises(CertificateError, match="of format 2, which nobody signs"):
        dt.verify(old, key=key)


# --- the version of the data ----------------------------------------------------------------------


def versions(tmp_path: Path, source: Any, **owner: Any) -> str:
    """What a signed certificate says of the version of a table of rows."""
    made = {
        "budget": {"epsilon": 100, "ledger": str(tmp_path / "v.ledger")},
        "owner": {"key": str(tmp_path / "owner.key")} | owner,
        "tables": {"people": {"columns": {"age": {"type": "integer", "bounds": [0, 99]}}}},
    }
    with dt.open(made, sources={"people": source}) as session:
        body = session.sql("SELECT COUNT(*) AS n FROM people").release(1).certificate.to_dict()
    assert set(body["data"]) == {"people"}
    return str(body["data"]["people"])


def test_the_version_of_files_is_a_keyed_digest(tmp_path: Path, key: OwnerKey) -> None:
    """The same while the files stay, another once one changed; another for each ledger and key."""
    file = tmp_path / "rows" / "a.parquet"
    file.parent.mkdir()
    rows = pl.DataFrame({"age": [1, 2, 3]})
    rows.write_parquet(file)
    first = versions(tmp_path, file)
    assert len(bytes.fromhex(first)) == 32
    assert versions(tmp_path, file) == first
    os.utime(file, ns=(1, 1))
    moved = versions(tmp_path, file)
    pl.DataFrame({"age": list(range(90))}).write_parquet(file)
    os.utime(file, ns=(1, 1))
    larger = versions(tmp_path, file)
    assert len({first, moved, larger}) == 3
    folder = versions(tmp_path, file.parent)
    assert folder == versions(tmp_path, file.parent)
    rows.write_parquet(file.parent / "b.parquet")
    assert versions(tmp_path, file.parent) != folder
    listed = {"people": [f"file://{file}"]}
    signer, other = Signer(key), Signer(OwnerKey.make())
    assert signer.versions("a", listed) == signer.versions("a", listed)
    assert signer.versions("a", listed) != signer.versions("b", listed)
    assert signer.versions("a", listed) != other.versions("a", listed)


def test_what_has_no_version_is_unknown_or_withheld(tmp_path: Path, key: OwnerKey) -> None:
    """A frame, a table on a server, a file that is gone; and where the policy publishes none."""
    rows = pl.DataFrame({"age": [1, 2, 3]})
    assert versions(tmp_path, rows) == "unknown"
    rows.write_csv(tmp_path / "a.csv")
    assert versions(tmp_path, tmp_path / "a.csv", data_version=False) == "withheld"
    for text in ("postgres:7/1/public.a", "spark:default.a", "file:///none/here", "files:///none/"):
        assert Signer(key).versions("a", {"people": [text]}) == {"people": "unknown"}
    assert Signer(key).versions("a", {"people": []}) == {"people": "unknown"}


def test_files_that_change_while_they_are_read_have_no_version(
    tmp_path: Path, key: OwnerKey, monkeypatch: pytest.MonkeyPatch
) -> None:
    """No digest says what was read."""
    seen = iter([{"people": "1"}, {"people": "2"}])
    monkeypatch.setattr(Signer, "versions", lambda *_: next(seen))
    assert versions(tmp_path, pl.DataFrame({"age": [1]})) == CHANGED


# --- the owner's key, and the code ----------------------------------------------------------------


def test_the_key_of_a_policy(tmp_path: Path, frames: Any, monkeypatch, key: OwnerKey) -> None:
    """A file beside the policy, a variable with its path or itself, with a password; or refused."""
    key.write(tmp_path / "hidden.key", "swordfish")
    monkeypatch.setenv("OWNER_KEY", (tmp_path / "hidden.key").read_text())
    monkeypatch.setenv("OWNER_PATH", str(tmp_path / "owner.key"))
    monkeypatch.setenv("OWNER_PASSWORD", "swordfish")
    public = {"public": str(tmp_path / "owner.pub")}
    for owner in (
        {"key": "env:OWNER_KEY", "password": "env:OWNER_PASSWORD"} | public,
        {"key": "env:OWNER_PATH", "public": key.public.text},
    ):
        with dt.open(policy(tmp_path, owner=owner), sources=frames) as session:
            signer = session._opened.signer
            assert signer is not None
            assert signer.key.public == key.public
    OwnerKey.make().write(tmp_path / "other.key")
    refused: list[tuple[dict[str, Any], type[Exception], str]] = [
        ({"key": "env:NOBODY_SET"}, PolicyError, "no variable 'NOBODY_SET'"),
        ({"key": "env:OWNER_KEY"}, KeyFileError, "env:OWNER_KEY holds no key"),
        ({"key": str(tmp_path / "none.key")}, KeyFileError, "none.key"),
        ({"key": str(tmp_path / "other.key")} | public, KeyFileError, "two files of one key"),
        ({"key": "-----BEGIN PRIVATE KEY-----"}, PolicyError, "which no policy should"),
        ({"key": "env:OWNER_KEY", "password": "swordfish"}, PolicyError, "as 'env:NAME'"),
        ({"public": str(tmp_path / "none.pub")}, PolicyError, "owner.public"),
        ({"keys": "a"}, PolicyError, "owner"),
        ({"data_version": 1}, PolicyError, "true or false"),
    ]
    for owner, kind, words in refused:
        with pytest.raises(kind, match=words) as caught:
            dt.open(policy(tmp_path, owner=owner), sources=frames)
        assert "swordfish" not in str(caught.value)
    with pytest.raises(ArgumentError, match="key must be an owner's key"):
        dt.open(policy(tmp_path), sources=frames, key=3)  # type: ignore[arg-type]


def test_which_code_runs(tmp_path: Path) -> None:
    """A checkout's commit, its branch packed or in a second tree; a built one; else unknown."""
    first, second = "a" * 40, "b" * 40
    package = tmp_path / "src" / "dither"
    git = tmp_path / ".git"
    (git / "refs/heads").mkdir(parents=True)
    package.mkdir(parents=True)
    assert commit_of(package) == "unknown"
    (tmp_path / "pyproject.toml").write_text("")
    assert commit_of(package) == "unknown"
    (git / "HEAD").write_text("ref: refs/heads/main\n")
    assert commit_of.__wrapped__(package) == "unknown"
    (git / "packed-refs").write_text(f"# pack-refs\n{first} refs/heads/main\n")
    assert commit_of.__wrapped__(package) == first
    (git / "refs/heads/main").write_text(f"{second}\n")
    assert commit_of.__wrapped__(package) == second
    (git / "HEAD").write_text(f"{first}\n")
    assert commit_of.__wrapped__(package) == first
    tree = tmp_path / "tree"
    (tree / "src" / "dither").mkdir(parents=True)
    (tree / "pyproject.toml").write_text("")
    (git / "worktrees/tree").mkdir(parents=True)
    (git / "worktrees/tree/HEAD").write_text("ref: refs/heads/main\n")
    (git / "worktrees/tree/commondir").write_text("../..\n")
    (tree / ".git").write_text(f"gitdir: {git}/worktrees/tree\n")
    assert commit_of.__wrapped__(tree / "src" / "dither") == second
    (package / "_commit.txt").write_text(f"{second}\n")
    assert commit_of.__wrapped__(package) == second
    assert set(code_version(sources=False)) == {"commit"}
