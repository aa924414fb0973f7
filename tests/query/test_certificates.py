"""Certificates: complete, free of values, and refused after any change."""

from __future__ import annotations

import copy
import json
import shutil
from fractions import Fraction

import pytest

import dither as dt
from dither.errors import CertificateError, LedgerError
from dither.ledger import Ledger
from dither.session._certificate import digest_of as _digest
from query.query_data import leaves, policy, rows_policy

TEXT = "SELECT city, COUNT(*) AS n, AVG(cost) AS m, MEDIAN(age) AS q FROM visits GROUP BY city"


@pytest.fixture
def issued(session, tmp_path):
    """A release, its certificate as data, and its ledger."""
    release = session.sql(TEXT).release(1)
    session.sql(TEXT).release(1)
    return release, release.certificate.to_dict(), tmp_path / "visits.ledger"


def test_a_certificate_agrees_with_its_ledger(issued, tmp_path):
    """From a file, a dictionary or the object; the text names the entry."""
    release, body, ledger = issued
    path = release.certificate.save(tmp_path / "c.json")
    for given in (path, str(path), body, release.certificate):
        found = dt.verify(given, ledger)
        assert found.ok
        assert found.entry == body["ledger"]["entry"]
        assert f"entry {found.entry} of the ledger" in str(found)
    with Ledger.open(ledger) as book:
        assert dt.verify(path, book).ok


def test_it_says_all_that_is_promised(issued):
    """Plan, unit, neighbours, mechanisms with exact parameters, loss, version, entry."""
    _, body, _ = issued
    assert body["dither"] == dt.__version__
    assert body["promise"] == {"unit": "pid of visits", "neighbours": "add-remove"}
    assert body["tables"] == {"visits": "column pid"}
    assert (body["max_groups"], body["max_rows"]) == (3, 5)
    assert body["text"]["plan"]["title"] == "release of n, m, q"
    assert len(body["measurements"]) >= 3
    for part in body["measurements"]:
        assert {"measures", "mechanism", "l1", "l2_squared", "loss"} <= set(part)
        exact = part.get("scale") or part.get("sigma2")
        assert Fraction(exact) > 0
    assert body["keys"]
    total = sum(Fraction(p["loss"]["rho"]) for p in body["measurements"])
    assert Fraction(body["loss"]["rho"]) >= total


def test_no_answer_is_in_it(issued):
    """No released value, no key: it can be published alone."""
    release, _, _ = issued
    text = release.certificate.to_json()
    assert release.frame.height > 0
    for city in release.frame["city"]:
        assert city not in text
    for name in ("m", "m_lower", "m_upper", "q"):
        # Numbers of few digits could stand there by chance.
        values = [str(v) for v in release.frame[name] if len(str(v)) > 6]
        assert all(v not in text for v in values)


@pytest.mark.heavy("test_fields_in_another_form_are_found")
def test_any_change_is_found(issued):
    """Every leaf changed by itself is refused, also with its digest made anew."""
    _, body, ledger = issued
    paths = list(leaves(body))
    assert len(paths) > 50
    # Each verification reads the ledger, so the digest is made anew for every fifth leaf only.
    for number, path in enumerate(paths):
        if path == ("digest",):
            continue
        forged = copy.deepcopy(body)
        at = forged
        for step in path[:-1]:
            at = at[step]
        old = at[path[-1]]
        at[path[-1]] = old + 1 if isinstance(old, int | float) else "0" if old != "0" else "1"
        with pytest.raises(CertificateError):
            dt.verify(forged, ledger)
        if number % 5 == 0 or len(path) < 3:
            forged["digest"] = _digest({k: v for k, v in forged.items() if k != "digest"})
            with pytest.raises(CertificateError):
                dt.verify(forged, ledger)


def test_missing_and_added_fields_are_found(issued):
    """Also with a new digest."""
    _, body, ledger = issued
    for field in [*body, "extra"]:
        forged = dict(body)
        if field in forged:
            del forged[field]
        else:
            forged[field] = 1
        if field != "digest":
            forged["digest"] = _digest({k: v for k, v in forged.items() if k != "digest"})
        with pytest.raises(CertificateError):
            dt.verify(forged, ledger)


@pytest.mark.parametrize("value", [None, 99, "x", [], {}, {"id": 3}])
def test_fields_in_another_form_are_found(issued, value):
    """No crash on a certificate made by hand."""
    _, body, ledger = issued
    for field in ("ledger", "loss", "request", "format"):
        forged = {**body, field: value}
        forged["digest"] = _digest({k: v for k, v in forged.items() if k != "digest"})
        with pytest.raises(CertificateError):
            dt.verify(forged, ledger)


def test_files_that_are_no_certificates(tmp_path, issued):
    """Missing, not JSON, not an object."""
    _, _, ledger = issued
    path = tmp_path / "c.json"
    with pytest.raises(CertificateError, match="no certificate at"):
        dt.verify(path, ledger)
    for content, words in (
        (b"{", "not valid JSON"),
        (b"\xff", "not valid JSON"),
        (b"[]", "not a JSON object"),
    ):
        path.write_bytes(content)
        with pytest.raises(CertificateError, match=words):
            dt.verify(path, ledger)


def test_another_ledger_does_not_agree(issued, tmp_path, frames):
    """A ledger of another policy, one that is not there, one without the entry."""
    _, body, _ = issued
    with pytest.raises(LedgerError, match="no ledger"):
        dt.verify(body, tmp_path / "none.ledger")
    made = policy(tmp_path, budget={"ledger": str(tmp_path / "other.ledger")})
    with dt.open(made, sources=frames) as other:
        other.sql(TEXT).release(1)
    with pytest.raises(CertificateError, match="another ledger"):
        dt.verify(body, tmp_path / "other.ledger")


def test_an_older_copy_of_the_ledger_lacks_the_entry(session, tmp_path):
    """What was charged after the copy was made is not in it."""
    session.sql(TEXT).release(1)
    copy_of = tmp_path / "copy.ledger"
    shutil.copy(tmp_path / "visits.ledger", copy_of)
    later = session.sql(TEXT).release(1).certificate
    with pytest.raises(CertificateError, match="no such entry"):
        dt.verify(later, copy_of)


def test_a_public_release_has_a_certificate_too(tmp_path, frames):
    """Nothing was charged, and the certificate says so."""
    with dt.open(rows_policy(tmp_path, neighbours="replace_one"), sources=frames) as opened:
        release = opened.sql("SELECT COUNT(*) AS n FROM visits").release(1)
    body = release.certificate.to_dict()
    assert body["measurements"][0]["mechanism"] == "none"
    assert Fraction(body["loss"]["epsilon"]) == 0
    assert dt.verify(body, tmp_path / "visits.ledger").ok
    assert json.loads(release.certificate.to_json()) == body
