"""Surveys for tests, and devices that report to them."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from cryptography.hazmat.primitives import hashes
from cryptography.hazmat.primitives.asymmetric import padding, rsa

from dither import local
from dither.ledger import OwnerKey
from dither.local._reports.records import Carrier
from dither.service.collect import Collector, new_survey, read_collect
from dither.service.collect._bodies import Post
from dither.service.collect._survey import SurveyConfiguration, read_token_key
from postgres_server import Database

CHANNEL = local.GRR(["flu", "cold", "none"], epsilon=1)
PSS = padding.PSS(padding.MGF1(hashes.SHA384()), 48)


@dataclass
class Surveyed:
    """A survey that was made, with the files of it, and a device's half of its tokens."""

    folder: Path
    owner: OwnerKey
    configuration: SurveyConfiguration
    key: rsa.RSAPrivateKey

    def token(self) -> tuple[bytes, bytes]:
        """A token as its device holds it: an ordinary signature, whichever way it was made."""
        prefix = os.urandom(32)
        message = prefix + self.configuration.digest
        return prefix, self.key.sign(message, PSS, hashes.SHA384())

    def posts(self, *reports: int) -> list[Post]:
        """Posts of one report each."""
        return [(*self.token(), bytes([report])) for report in reports]


def surveyed(
    folder: Path, name: str = "flu", channel: Carrier = CHANNEL, owner: Any = None, **named: Any
) -> Surveyed:
    """Make a survey in a folder."""
    key = owner or OwnerKey.make()
    made = new_survey(name, channel, key, folder, **named)
    return Surveyed(folder, key, made, read_token_key(folder / f"{name}.token.pem", made))


@pytest.fixture(scope="module")
def survey(tmp_path_factory: pytest.TempPathFactory) -> Surveyed:
    """One survey for all tests of a file: its key takes a moment to make."""
    return surveyed(tmp_path_factory.mktemp("survey"))


Made = Callable[..., Collector]


@pytest.fixture(params=["sqlite", "postgres"])
def state(request: pytest.FixtureRequest, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Any:
    """Where a collector's state is, of either kind."""
    if request.param == "sqlite":
        return str(tmp_path / "collect.db")
    database: Database = request.getfixturevalue("postgres")
    monkeypatch.setenv("COLLECT_DSN", database.owner)
    return {"postgres": "env:COLLECT_DSN"}


@pytest.fixture
def collector(survey: Surveyed, tmp_path: Path) -> Iterator[Made]:
    """Makes collectors of the survey, and closes them."""
    made = []

    def one(state: Any = None, flu: Any = None, **named: Any) -> Collector:
        section = {
            "state": state or str(tmp_path / "collect.db"),
            **{name: named.pop(name) for name in list(named) if name != "today"},
            "flu": {"configuration": "flu.config.json", "tokens": "flu.token.pem", **(flu or {})},
        }
        settings = read_collect(section, survey.folder, survey.owner.public)
        made.append(Collector(settings, **named))
        return made[-1]

    yield one
    for each in made:
        each.close()
