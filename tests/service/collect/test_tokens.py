"""Tokens: so many a device a day, over all surveys, and nothing that tells whose one was."""

from __future__ import annotations

import datetime as dt
from pathlib import Path
from typing import Any

import pytest
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey

from dither import local
from dither.errors import ArgumentError
from dither.service.collect import Collector, read_collect
from dither.service.collect._blind import Blinded, blind, finalize, prepare, signed
from dither.service.collect._issuing import TokenRefused, TokenRequest, asked_text
from dither.service.collect._survey import SurveyConfiguration
from service.collect.conftest import Made, Surveyed, surveyed

DAY = dt.date(2024, 5, 1)


class Device:
    """A phone with a key of its own."""

    def __init__(self) -> None:
        self.key = Ed25519PrivateKey.generate()

    def asks(
        self, survey: SurveyConfiguration, number: int = 1, day: dt.date = DAY
    ) -> tuple[TokenRequest, list[tuple[bytes, Blinded]]]:
        """A request for so many tokens, and what stays on the phone."""
        messages = [prepare(survey.digest) for _ in range(number)]
        kept = [(message, blind(survey.token_key, message)) for message in messages]
        blinded = [one.message for _, one in kept]
        text = asked_text(survey.digest, day.isoformat(), blinded)
        public = self.key.public_key().public_bytes_raw()
        return TokenRequest(public, day.isoformat(), blinded, self.key.sign(text)), kept


@pytest.fixture
def clock() -> list[dt.date]:
    """The day, which tests may change."""
    return [DAY]


def test_a_token_is_given_and_spent(
    survey: Surveyed, collector: Made, state: Any, clock: list[dt.date]
) -> None:
    """What the issuer saw is not in what the collector is sent, on either store."""
    found = collector(state, today=lambda: clock[0])
    asked, ((message, blinded),) = Device().asks(survey.configuration)
    (answer,) = found.issuer.issue("flu", asked)
    key = survey.configuration.token_key
    signature = finalize(key, message, answer, blinded.inverse)
    assert signed(key, message, signature)
    assert found.holds("flu", [(message[:32], signature, b"\x00")])
    assert found.take("flu", [(message[:32], signature, b"\x00")]).result().counted == 1
    seen = asked.blinded[0] + answer
    assert message[:32] not in seen
    assert signature[:16] not in seen


def test_so_many_a_day(survey: Surveyed, collector: Made, state: Any, clock: list[dt.date]) -> None:
    """One a day, or as the survey says; another device, and another day, have their own."""
    found = collector(state, flu={"daily": 2}, today=lambda: clock[0])
    device = Device()
    found.issuer.issue("flu", device.asks(survey.configuration)[0])
    with pytest.raises(TokenRefused, match="at most 2 tokens"):
        found.issuer.issue("flu", device.asks(survey.configuration, 2)[0])
    found.issuer.issue("flu", device.asks(survey.configuration)[0])
    with pytest.raises(TokenRefused, match="at most 2 tokens"):
        found.issuer.issue("flu", device.asks(survey.configuration)[0])
    found.issuer.issue("flu", Device().asks(survey.configuration)[0])
    clock[0] += dt.timedelta(days=1)
    found.issuer.issue("flu", device.asks(survey.configuration, day=clock[0])[0])
    with found.store.reading() as connection:
        assert len(connection.exec_driver_sql(_devices(found)).all()) == 1


def _devices(found: Collector) -> str:
    schema = getattr(found.settings.state, "schema", None)
    return f"SELECT device FROM {'' if schema is None else schema + '.'}collect_issued"


def test_the_same_request_counts_once(
    survey: Surveyed, collector: Made, clock: list[dt.date]
) -> None:
    """A phone whose answer was lost asks again, and has the same signatures."""
    found = collector(today=lambda: clock[0])
    asked, _ = Device().asks(survey.configuration)
    assert found.issuer.issue("flu", asked) == found.issuer.issue("flu", asked)


def test_a_clock_that_is_set_back_opens_no_day_again(
    survey: Surveyed, collector: Made, clock: list[dt.date]
) -> None:
    """A device that had its tokens of two days gets none of the first one again."""
    found = collector(today=lambda: clock[0])
    device = Device()
    found.issuer.issue("flu", device.asks(survey.configuration)[0])
    clock[0] += dt.timedelta(days=1)
    found.issuer.issue("flu", device.asks(survey.configuration, day=clock[0])[0])
    clock[0] -= dt.timedelta(days=1)
    with pytest.raises(TokenRefused, match="clock"):
        found.issuer.issue("flu", device.asks(survey.configuration)[0])


def test_surveys_share_a_days_epsilon(tmp_path: Path) -> None:
    """What all tokens of a day lose is summed, exactly, over surveys of several epsilons."""
    one = surveyed(tmp_path, "one", local.GRR(3, epsilon="0.1"))
    two = surveyed(tmp_path, "two", local.GRR(3, epsilon="0.1"), one.owner, reports=2)
    section: dict[str, Any] = {
        name: {"configuration": f"{name}.config.json", "tokens": f"{name}.token.pem", "daily": 9}
        for name in ("one", "two")
    }
    settings = read_collect({**section, "daily_epsilon": "0.5"}, tmp_path, one.owner.public)
    found = Collector(settings, lambda: DAY)
    device = Device()
    found.issuer.issue("two", device.asks(two.configuration)[0])
    found.issuer.issue("one", device.asks(one.configuration, 3)[0])
    for survey, name in ((one, "one"), (two, "two")):
        with pytest.raises(TokenRefused, match=r"epsilon 0\.5 together"):
            found.issuer.issue(name, device.asks(survey.configuration)[0])
    found.issuer.issue("two", Device().asks(two.configuration, 2)[0])
    found.close()


def test_requests_that_are_refused(survey: Surveyed, collector: Made, clock: list[dt.date]) -> None:
    """Another signature, another day, an unknown device, no blinded token: nothing is counted."""
    known = Device()
    (survey.folder / "known.txt").write_text(known.key.public_key().public_bytes_raw().hex())
    found = collector(devices="known.txt", today=lambda: clock[0])
    asked, _ = known.asks(survey.configuration)
    other, _ = Device().asks(survey.configuration)
    yesterday, _ = known.asks(survey.configuration, day=DAY - dt.timedelta(days=1))
    for wrong, told in (
        (TokenRequest(asked.device, asked.day, other.blinded, asked.signature), "not signed"),
        (TokenRequest(b"\xff" * 32, asked.day, asked.blinded, asked.signature), "not signed"),
        (yesterday, "another day; it is 2024-05-01"),
        (other, "not one that tokens are given to"),
    ):
        with pytest.raises(TokenRefused, match=told):
            found.issuer.issue("flu", wrong)
    text = asked_text(survey.configuration.digest, asked.day, [b"\xff" * 256])
    wrong = TokenRequest(asked.device, asked.day, [b"\xff" * 256], known.key.sign(text))
    with pytest.raises(ArgumentError, match="below the survey's modulus"):
        found.issuer.issue("flu", wrong)
    found.issuer.issue("flu", asked)


@pytest.mark.parametrize(
    "body",
    [
        None,
        {},
        {"device": "AA==", "day": "2024-05-01", "blinded": ["AA=="], "signature": "AA=="},
        {"device": "A" * 43 + "=", "day": 5, "blinded": ["AA=="], "signature": "AA=="},
        {"device": "A" * 43 + "=", "day": "x", "blinded": [], "signature": "AA=="},
        {"device": "A" * 43 + "=", "day": "x", "blinded": ["AA=="] * 65, "signature": "AA=="},
        {"device": "A" * 43 + "=", "day": "x", "blinded": ["!"], "signature": "AA=="},
        {"device": "A" * 43 + "=", "day": "x", "blinded": "AA==", "signature": "AA=="},
    ],
)
def test_bodies_that_ask_for_nothing(body: Any) -> None:
    """Each is refused by its form."""
    with pytest.raises(ArgumentError):
        TokenRequest.read(body)
