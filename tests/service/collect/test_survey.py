"""Configurations that an owner signs, and the sections that name them."""

from __future__ import annotations

import json
import stat
from pathlib import Path
from typing import Any

import pytest

from dither import local
from dither.errors import ArgumentError, PolicyError
from dither.ledger import OwnerKey
from dither.service.collect import new_survey, read_collect
from dither.service.collect._survey import PURPOSE, SurveyConfiguration, read_token_key
from service.collect.conftest import CHANNEL, Surveyed, surveyed


def test_a_configuration_comes_back(survey: Surveyed) -> None:
    """What was saved is read again, under the owner's key alone."""
    path = survey.folder / "flu.config.json"
    found = SurveyConfiguration.read(path, survey.owner.public)
    assert found.digest == survey.configuration.digest
    assert found.carrier.hash == CHANNEL.hash
    with pytest.raises(ArgumentError, match="not signed by its owner"):
        SurveyConfiguration.read(path, OwnerKey.make().public)


def test_the_token_key_is_secret(survey: Surveyed) -> None:
    """Its file is for its owner's eyes, and the configuration holds its public half."""
    file = survey.folder / "flu.token.pem"
    assert stat.S_IMODE(file.stat().st_mode) == 0o600
    assert f"{survey.key.private_numbers().p:x}" not in survey.configuration.text


def test_forged_configurations_are_refused(survey: Surveyed) -> None:
    """Less noise, another key, another name, or a signature for another purpose."""
    body = json.loads(survey.configuration.text)
    louder = {**body, "channel": local.GRR(["flu", "cold", "none"], epsilon=9).to_dict()}
    renamed = {**body, "name": "other"}
    several = {**body, "reports": 5}
    for forged in (louder, renamed, several):
        text = json.dumps(forged, sort_keys=True, separators=(",", ":"))
        found = {"configuration": text, "signature": survey.configuration.signature}
        with pytest.raises(ArgumentError, match="not signed"):
            SurveyConfiguration.from_dict(found, survey.owner.public)
    text = survey.configuration.text
    found = {"configuration": text, "signature": survey.owner.sign("certificate", text)}
    with pytest.raises(ArgumentError, match="not signed"):
        SurveyConfiguration.from_dict(found, survey.owner.public)


@pytest.mark.parametrize(
    "change",
    [
        {"version": 2},
        {"channel": {"channel": "grr"}},
        {"token_key": {"e": 3, "n": "ff"}},
        {"token_key": {"e": 65537, "n": "ff"}},
        {"token_key": {"e": 65537, "n": "zz"}},
        {"token_key": 5},
        {"reports": 0},
        {"reports": True},
    ],
)
def test_signed_nonsense_is_refused(survey: Surveyed, change: dict[str, Any]) -> None:
    """A mistake of the owner's program raises what a caller can read."""
    body = {**json.loads(survey.configuration.text), **change}
    text = json.dumps(body, sort_keys=True, separators=(",", ":"))
    found = {"configuration": text, "signature": survey.owner.sign(PURPOSE, text)}
    with pytest.raises(ArgumentError):
        SurveyConfiguration.from_dict(found, survey.owner.public)
    for other in (None, [], {}, {"configuration": 5, "signature": 5}):
        with pytest.raises(ArgumentError):
            SurveyConfiguration.from_dict(other, survey.owner.public)


def test_new_surveys_overwrite_nothing(survey: Surveyed, tmp_path: Path) -> None:
    """A name that is taken or cannot stand in an address is refused."""
    with pytest.raises(ArgumentError, match="already"):
        new_survey("flu", CHANNEL, survey.owner, survey.folder)
    for name in ("", "a/b", "../x", "ä", "x" * 65, 5):
        with pytest.raises(ArgumentError, match="name"):
            new_survey(name, CHANNEL, survey.owner, tmp_path)  # type: ignore[arg-type]
    with pytest.raises(ArgumentError, match="reports"):
        new_survey("x", CHANNEL, survey.owner, tmp_path, reports=0)
    with pytest.raises(ArgumentError, match="cannot be written"):
        new_survey("x", CHANNEL, survey.owner, tmp_path / "nowhere")
    assert list(tmp_path.iterdir()) == []


def test_keys_of_two_surveys_are_two(survey: Surveyed, tmp_path: Path) -> None:
    """A token key belongs to one configuration."""
    other = surveyed(tmp_path, "other", owner=survey.owner)
    with pytest.raises(ArgumentError, match="not that of the configuration"):
        read_token_key(tmp_path / "other.token.pem", survey.configuration)
    assert other.configuration.digest != survey.configuration.digest


FLU = {"configuration": "flu.config.json", "tokens": "flu.token.pem"}


def test_a_section_is_read(survey: Surveyed) -> None:
    """Every field, with paths from the section's folder."""
    (survey.folder / "devices.txt").write_text("ab" * 32 + "\n" + "cd" * 32 + "\n")
    section = {
        "state": "counts.db",
        "daily_epsilon": "3/2",
        "devices": "devices.txt",
        "origins": ["https://app.example"],
        "body": 1000,
        "patience": 3,
        "rate": 7,
        "flu": {
            **FLU,
            "daily": 2,
            "shuffle": 10,
            "batches": "out",
            "every": "day",
            "estimates": "est",
            "postprocess": "norm_sub",
            "public": True,
        },
    }
    found = read_collect(section, survey.folder, survey.owner.public)
    assert found.state == survey.folder / "counts.db"
    assert (found.body, found.patience, found.rate) == (1000, 3, 7)
    assert found.devices == {bytes.fromhex("ab" * 32), bytes.fromhex("cd" * 32)}
    assert found.surveys["flu"].batches == survey.folder / "out"
    assert found.surveys["flu"].daily == 2


@pytest.mark.parametrize(
    ("section", "told"),
    [
        ({}, "no survey"),
        ({"flu": {}}, "configuration"),
        ({"flu": {"configuration": "no.json"}}, "no survey's configuration"),
        ({"flu": {**FLU, "tokens": "no.pem"}}, "no token key"),
        ({"flu": {**FLU, "shufle": 3}}, "unknown field 'shufle'; did you mean 'shuffle'"),
        ({"flu": {**FLU, "batches": "x"}}, "needs shuffle"),
        ({"flu": {**FLU, "every": "day"}}, "go together"),
        ({"flu": {**FLU, "every": "hour", "estimates": "x"}}, "every"),
        ({"flu": {**FLU, "daily": 0}}, "daily"),
        ({"other": FLU}, "another name"),
        ({"flu": FLU, "rate": 0}, "rate"),
        ({"flu": FLU, "daily_epsilon": 0}, "above 0"),
        ({"flu": FLU, "daily_epsilon": "0.5"}, "nobody could ever report"),
        ({"flu": FLU, "origins": ["*"]}, "origins"),
        ({"flu": FLU, "origins": ["https://a.example/"]}, "origins"),
        ({"flu": FLU, "origins": ["https://[a"]}, "origins"),
        ({"flu": FLU, "devices": "none.txt"}, "devices"),
        ({"flu": FLU, "state": "postgresql://u:p@h/d"}, "connection string"),
        ({"flu": FLU, "color": 1}, "unknown field"),
    ],
)
def test_sections_are_refused(survey: Surveyed, section: dict[str, Any], told: str) -> None:
    """With the field's name and the fix; a secret is not repeated."""
    with pytest.raises(PolicyError, match=told) as caught:
        read_collect(section, survey.folder, survey.owner.public)
    assert "u:p" not in str(caught.value)
