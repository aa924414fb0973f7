"""An entry for the public registry: what is public is in it, and the rest is listed."""

from __future__ import annotations

import json
from fractions import Fraction
from pathlib import Path
from typing import Any

import pytest

import dither as dt
from dither.errors import ArgumentError, CertificateError
from query.query_data import policy

TEXT = "SELECT region, COUNT(*) AS n, AVG(age) AS m FROM visits GROUP BY region"

SECTIONS = {
    "basic": [
        "name",
        "data_curators",
        "intended_use",
        "data_product_type",
        "data_product_region",
        "description",
        "publication_date",
        "data_product_sector",
    ],
    "dp_variant": ["variant_name", "data_domain", "unprotected_quantities"],
    "privacy_loss": [
        "privacy_unit",
        "privacy_unit_details",
        "privacy_parameters",
        "privacy_parameters_details",
    ],
    "deployment_model": [
        "model_name",
        "model_name_details",
        "actors",
        "release_type",
        "release_type_details",
        "data_source_type",
        "data_source_type_details",
        "access_type",
        "access_type_details",
    ],
    "accounting": ["post_processing", "composition"],
    "implementation": [
        "preprocessing_and_hyperparameter_tuning",
        "mechanisms",
        "justification",
    ],
    "administrative": ["sources", "registry_authors", "notes"],
}
"""The fields of the registry's records."""


@pytest.fixture
def asked(tmp_path: Path, frames: Any) -> Any:
    """A policy, its ledger, and two releases."""
    made = policy(tmp_path, analysts={"ana": {"epsilon": 8}})
    with dt.open(made, sources=frames, analyst="ana") as session:
        first = session.sql(TEXT, discover=True).release("1/3")
        second = session.sql("SELECT COUNT(*) AS n FROM visits").release("1/2", 0)
    return made, tmp_path / "visits.ledger", first, second


def test_an_entry_has_the_fields_of_the_registry(asked: Any) -> None:
    """All of them and no other; what is not known is null, and listed by name."""
    made, ledger, first, second = asked
    certificates = [first.certificate, second.certificate]
    found = dt.registry_entry(certificates, policy=made, ledger=ledger)
    body = json.loads(found.to_json())
    assert list(body) == ["url_slug", "status", "tier", "deployment"]
    deployment = body["deployment"]
    assert {name: list(part) for name, part in deployment.items()} == SECTIONS
    empty = [
        f"{section}.{name}"
        for section, names in SECTIONS.items()
        for name in names
        if deployment[section][name] is None
    ]
    assert list(found.missing) == ["url_slug", *empty]
    assert "basic.intended_use" in found.missing
    assert "privacy_loss.privacy_unit" not in found.missing
    assert (body["status"], body["tier"]) == ("Draft", 1)
    assert deployment["basic"]["publication_date"] is not None
    assert deployment["deployment_model"]["access_type"] == "Interactive"
    assert "to be filled in: url_slug, basic.name" in str(found)


def test_parameters_are_those_in_all_and_of_each_release(asked: Any) -> None:
    """Rounded so that no less is claimed; the cap and what was spent beside them."""
    made, ledger, first, second = asked
    losses = [one.certificate.content["loss"] for one in (first, second)]
    found = dt.registry_entry(
        [first.certificate, second.certificate], policy=made, ledger=ledger
    ).content["deployment"]
    parameters = found["privacy_loss"]["privacy_parameters"]
    for name in ("epsilon", "delta"):
        exact = sum(Fraction(loss[name]) for loss in losses)
        assert 0 <= Fraction(parameters[name]) - exact < Fraction(1, 10**15)
    details = found["privacy_loss"]["privacy_parameters_details"]
    assert "SELECT COUNT(*) AS n FROM visits: epsilon 0.5" in details
    assert "cap of the account: epsilon 8, delta 1e-6" in details
    assert "'dataset:pid of visits' has spent" in details
    assert found["dp_variant"]["variant_name"] == "Approximate DP"
    alone = dt.registry_entry(second.certificate).content["deployment"]
    assert alone["dp_variant"]["variant_name"] == "Pure DP"
    assert alone["privacy_loss"]["privacy_parameters"]["epsilon"] == 0.5
    assert "one pid of visits, added or removed" in alone["privacy_loss"]["privacy_unit_details"]
    assert "discrete Laplace scale" in alone["implementation"]["mechanisms"]
    assert alone["basic"]["publication_date"] is None
    assert alone["deployment_model"]["release_type"] is None


def test_it_holds_no_answer_and_no_place(asked: Any, tmp_path: Path) -> None:
    """Public facts alone: no released value, no path, nothing of the policy's sources."""
    made, ledger, first, _ = asked
    assert first.frame.height > 0
    text = dt.registry_entry([first.certificate], policy=made, ledger=ledger).to_json()
    values = [str(value) for value in first.frame["m"]]
    assert not any(value in text for value in values if len(value) > 6)
    assert str(tmp_path) not in text
    assert "visits.ledger" not in text


def test_what_is_not_known_can_be_said(asked: Any, tmp_path: Path) -> None:
    """By name; a record with all of it is complete; a field that is none is refused."""
    made, ledger, first, _ = asked
    missing = dt.registry_entry(first.certificate, policy=made, ledger=ledger).missing
    said = dict.fromkeys(missing, "known")
    found = dt.registry_entry(first.certificate, policy=made, ledger=ledger, fields=said)
    assert (found.missing, found.content["tier"]) == ((), 3)
    assert found.content["url_slug"] == "known"
    assert json.loads(found.save(tmp_path / "e.yaml").read_text()) == found.content
    with pytest.raises(ArgumentError, match=r"no field 'basic.intended_us'.*basic.intended_use"):
        dt.registry_entry(first.certificate, fields={"basic.intended_us": "x"})


def test_the_kind_of_a_product(session: Any) -> None:
    """In the registry's words."""
    some = session.table("visits").select("region", "age")
    made = some.synthesize(epsilon="0.2")
    table = session.table("visits")
    model = table.learn(epsilon="0.2").naive_bayes("smoker ~ age + region").release()
    marginals = some.marginals([["region"]], epsilon="0.2").release()
    for one, kind in (
        (made, "Synthetic data"),
        (model, "Machine learning model"),
        (marginals, "Summary statistics"),
    ):
        body = dt.registry_entry(one.certificate).content
        assert body["deployment"]["basic"]["data_product_type"] == kind


def test_certificates_that_do_not_belong_together_are_refused(
    asked: Any, tmp_path: Path, frames: Any
) -> None:
    """Changed, of another policy, another ledger or another unit, or none at all."""
    made, _, first, _ = asked
    body = first.certificate.to_dict()
    with pytest.raises(CertificateError, match="digest does not match"):
        dt.registry_entry(body | {"rows": 2})
    with pytest.raises(CertificateError, match="of another policy"):
        dt.registry_entry(body, policy=made | {"releases": {"reuse": True}})
    with pytest.raises(ArgumentError, match="at least one"):
        dt.registry_entry([])
    for wrong in ({}, {"digest": 1}, {"ledger": {}}):
        with pytest.raises(CertificateError):
            dt.registry_entry(wrong)
    other = policy(tmp_path, budget={"ledger": str(tmp_path / "o.ledger")})
    del other["tables"]["visits"]["unit"]
    for field in ("max_groups", "max_rows"):
        del other["tables"]["visits"][field]
    with dt.open(other, sources=frames) as session:
        row = session.sql("SELECT COUNT(*) AS n FROM visits").release(1)
    with pytest.raises(ArgumentError, match="protect different units"):
        dt.registry_entry([first.certificate, row.certificate])
    with pytest.raises(CertificateError, match="another ledger"):
        dt.registry_entry(first.certificate, ledger=tmp_path / "o.ledger")
