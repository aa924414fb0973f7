"""Signing in at a provider: whoever it knows comes in, as what its groups say, and nobody else.

The provider runs in the test, over the service's own client, and each attack is a provider or a
browser that does one thing wrong. The policy is served in this process.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import polars as pl
import pytest

pytest.importorskip("starlette")
pytest.importorskip("authlib")

from httpx import Response
from starlette.testclient import TestClient

from dither.errors import PolicyError
from dither.service._desk import Desk
from dither.service._tables import keys, log, people, sessions
from dither.service.access import _oidc
from dither.service.access._oidc import Provider, name_of
from dither.service.access._roles import Role
from dither.service.web._app import application
from service.access.provider import ISSUER, SECRET, SimulatedProvider, query

ANN = "login.example.org/realms/hospital#ann"

POLICY = f"""
[budget]
epsilon = 10
ledger = "visits.ledger"
[quotas.analysts."{ANN}"]
epsilon = 1
[tables.visits]
source = "visits.parquet"
unit = "p"
max_rows = 1
max_groups = 1
[service]
name = "visits"
[service.oidc]
issuer = "{ISSUER}"
client_id = "dither"
client_secret = "env:DITHER_TEST_SECRET"
address = "https://dither.example.org/"
roles = {{ analysts = "analyst", admins = "owner", watchers = "auditor" }}
"""


@pytest.fixture
def provider() -> SimulatedProvider:
    return SimulatedProvider()


@pytest.fixture(scope="module")
def opened(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Desk]:
    folder = tmp_path_factory.mktemp("oidc")
    pl.DataFrame({"p": [1, 2, 3]}).write_parquet(folder / "visits.parquet")
    (folder / "dither.toml").write_text(POLICY)
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("DITHER_TEST_SECRET", SECRET)
        found = Desk(folder / "dither.toml")
    yield found
    found.close()


@pytest.fixture
def desk(opened: Desk, monkeypatch: pytest.MonkeyPatch, provider: SimulatedProvider) -> Desk:
    """One that knows nobody."""
    monkeypatch.setenv("DITHER_TEST_SECRET", SECRET)
    with opened.database.writing() as connection:
        for table in (people, keys, sessions, log):
            connection.execute(table.delete())
    assert opened.settings.oidc is not None
    opened.provider = Provider(opened.settings.oidc, opened.name, provider)
    return opened


@pytest.fixture
def browser(desk: Desk) -> TestClient:
    """One that follows nothing by itself."""
    app = application([desk], secure=True)
    return TestClient(app, base_url="https://dither.example.org", follow_redirects=False)


def back(browser: TestClient, provider: SimulatedProvider, begun: str = "") -> str:
    """Begin, sign in at the provider, and say where it sends the browser."""
    response = browser.get(f"/v1/visits/oidc/begin{begun}")
    assert response.status_code == 303, response.text
    return provider.visit(response.headers["location"])


def signed_in(browser: TestClient, provider: SimulatedProvider) -> Response:
    return browser.get(back(browser, provider))


def me(browser: TestClient) -> Any:
    found = browser.get("/v1/visits/me")
    return found.json() if found.status_code == 200 else found.status_code


def test_whoever_has_a_group_comes_in(browser: TestClient, provider: SimulatedProvider) -> None:
    """With the role of it, under a name of their own, by cookies with all flags."""
    response = signed_in(browser, provider)
    assert response.status_code == 200
    assert me(browser) == {"name": ANN, "role": "analyst"}
    cookies = {c.partition("=")[0]: c for c in response.headers.get_list("set-cookie")}
    session, page, away = (cookies[f"__Host-dither_visits{end}"] for end in ("", "_csrf", "_oidc"))
    for cookie in (session, page):
        assert "SameSite=strict" in cookie
        assert "Secure" in cookie
        assert "Path=/;" in cookie
    assert "HttpOnly" in session
    assert "HttpOnly" not in page
    assert "Max-Age=0" in away


def test_its_page_may_change_things(browser: TestClient, provider: SimulatedProvider) -> None:
    """The session's own word for that is where its pages can read it, and others' is refused."""
    signed_in(browser, provider)
    word = browser.cookies["__Host-dither_visits_csrf"]
    for given, status in (("", 403), (word[::-1], 403), (word, 200)):
        response = browser.post("/v1/visits/sign-out", headers={"x-csrf-token": given})
        assert response.status_code == status
    assert me(browser) == 401
    assert not [name for name in browser.cookies if name.startswith("__Host-dither_visits")]


def test_what_is_sent_to_the_provider(browser: TestClient, desk: Desk) -> None:
    """A code is asked for, under a state, a nonce and the hash of a verifier, each used once."""
    sent = []
    for _ in range(2):
        response = browser.get("/v1/visits/oidc/begin")
        sent.append(query(response.headers["location"]))
        cookie = response.headers["set-cookie"]
        assert "SameSite=lax" in cookie
        assert "HttpOnly" in cookie
        assert "Secure" in cookie
        assert "Max-Age=600" in cookie
    first, second = sent
    assert first["response_type"] == "code"
    assert first["code_challenge_method"] == "S256"
    assert SECRET not in str(sent)
    assert all(first[name] != second[name] for name in ("state", "nonce", "code_challenge"))


@pytest.mark.parametrize(
    ("groups", "role"),
    [
        (["analysts"], "analyst"),
        ("analysts", "analyst"),
        (["watchers", "analysts", "admins", "else"], "owner"),
        (["watchers", "analysts"], "analyst"),
        (["watchers"], "auditor"),
        (["owner", "else"], None),
        ([], None),
        (None, None),
        ({"analysts": True}, None),
        ([["analysts"], 7, None], None),
    ],
)
def test_groups_are_roles(
    browser: TestClient, provider: SimulatedProvider, groups: Any, role: str | None
) -> None:
    """The most powerful of the roles counts, and without a group that has one nobody comes in."""
    provider.claims["groups"] = groups
    response = signed_in(browser, provider)
    assert (response.status_code == 200) == (role is not None)
    assert me(browser) == (401 if role is None else {"name": ANN, "role": role})


def test_roles_are_those_of_now(
    browser: TestClient, provider: SimulatedProvider, desk: Desk
) -> None:
    """Each sign-in says what somebody is; who lost every group loses sessions and keys."""
    provider.claims["groups"] = ["admins"]
    signed_in(browser, provider)
    key = desk.people.new_key(ANN).key
    assert desk.role_of(ANN) is Role.OWNER
    other = TestClient(browser.app, base_url="https://dither.example.org", follow_redirects=False)
    provider.claims["groups"] = ["watchers"]
    signed_in(other, provider)
    assert me(other) == me(browser) == {"name": ANN, "role": "auditor"}
    assert desk.people.by_key(key) is not None
    provider.claims["groups"] = []
    assert signed_in(other, provider).status_code == 401
    assert me(browser) == 401
    assert desk.people.by_key(key) is None
    provider.claims["groups"] = ["analysts"]
    signed_in(browser, provider)
    assert me(browser) == {"name": ANN, "role": "analyst"}
    said = [(row["what"], row["about"]) for row in desk.people.log()]
    assert ("is owner", ANN) in said
    assert ("has no role any more", ANN) in said


def test_an_owner_disables_them(
    browser: TestClient, provider: SimulatedProvider, desk: Desk
) -> None:
    """Whatever the provider says afterwards, until the owner lets them in again."""
    signed_in(browser, provider)
    desk.people.add("olga", Role.OWNER)
    header = {"authorization": f"Bearer {desk.people.new_key('olga').key}"}
    plain = TestClient(browser.app, base_url="https://dither.example.org")
    assert plain.delete(f"/v1/visits/people/{ANN.replace('#', '%23')}", headers=header).is_success
    assert me(browser) == 401
    assert signed_in(browser, provider).status_code == 401
    desk.people.add(ANN, Role.ANALYST)
    assert signed_in(browser, provider).status_code == 200


def test_names_are_nobody_elses(
    browser: TestClient, provider: SimulatedProvider, desk: Desk
) -> None:
    """A provider's ann is not the owner's ann, nor another provider's; and none can be added."""
    desk.people.add("ann", Role.OWNER)
    signed_in(browser, provider)
    assert {row["name"]: row["role"] for row in desk.people.listed()} == {
        "ann": "owner",
        ANN: "analyst",
    }
    issuers = [ISSUER, ISSUER + "/", "https://login.example.org", "http://127.0.0.1:80"]
    assert len({name_of(issuer, "ann") for issuer in issuers}) == len(issuers)
    with pytest.raises(Exception, match="name must begin"):
        desk.people.add("login.example.org/realms/hospital#bob", Role.OWNER)


def test_their_quota_holds(browser: TestClient, provider: SimulatedProvider) -> None:
    """They ask within the quota under their name, and without one they do not ask."""
    body = {"sql": "SELECT COUNT(*) FROM visits", "epsilon": 1}
    for subject, status in (("ann", 200), ("bob", 400)):
        provider.claims["sub"] = subject
        signed_in(browser, provider)
        word = {"x-csrf-token": browser.cookies["__Host-dither_visits_csrf"]}
        found = browser.post("/v1/visits/price", json=body, headers=word)
        assert found.status_code == status, found.text


# --- attacks --------------------------------------------------------------------------------------

NOW = int(time.time())


@pytest.mark.parametrize(
    "more",
    [
        {"nonce": "another"},
        {"nonce": None},
        {"nonce": 7},
        {"aud": "another"},
        {"aud": None},
        {"aud": ["another"]},
        {"aud": ["dither", "another"]},
        {"aud": ["dither", "another"], "azp": "another"},
        {"azp": "another"},
        {"iss": "https://evil.example.org"},
        {"iss": ISSUER + "/"},
        {"iss": None},
        {"exp": NOW - 3600},
        {"exp": None},
        {"exp": "never"},
        {"exp": True},
        {"iat": NOW + 3600},
        {"iat": None},
        {"nbf": NOW + 3600},
        {"sub": None},
        {"sub": ""},
        {"sub": 7},
        {"sub": "a b"},
        {"sub": "a\r\nset-cookie: b=c"},
        {"sub": "<script>" * 100},
    ],
    # Not by what they are: the hours are another in every process that collects them.
    ids=lambda more: "-".join([*more, *(type(value).__name__ for value in more.values())]),
)
def test_a_token_of_something_else(
    browser: TestClient, provider: SimulatedProvider, more: dict[str, Any]
) -> None:
    """A token for another nonce, client, issuer or time lets nobody in, though it is signed."""
    provider.more = more
    assert signed_in(browser, provider).status_code == 401
    assert me(browser) == 401


def test_a_token_for_several(browser: TestClient, provider: SimulatedProvider) -> None:
    """One that names this client as the party that asked, among others that hear, is one."""
    provider.more = {"aud": ["dither", "another"], "azp": "dither"}
    assert signed_in(browser, provider).status_code == 200


@pytest.mark.parametrize("how", ["sign_shared", "sign_not", "sign_by_another", "change"])
def test_a_token_that_is_not_signed(
    browser: TestClient, provider: SimulatedProvider, how: str
) -> None:
    """By no key, the public one taken for a shared one, somebody else's, or before a change."""
    provider.signed = getattr(provider, how)
    assert signed_in(browser, provider).status_code == 401
    assert me(browser) == 401


def test_shared_keys_of_the_provider_are_left_aside(
    browser: TestClient, provider: SimulatedProvider
) -> None:
    """Nor does a shared key that it publishes sign anything."""
    from joserfc import jwt
    from joserfc.jwk import OctKey

    shared = OctKey.import_key("k" * 32, {"kid": "shared"})
    provider.published = [shared.as_dict(private=True)]
    provider.signed = lambda claims: jwt.encode({"alg": "HS256", "kid": "shared"}, claims, shared)
    assert signed_in(browser, provider).status_code == 401


def test_new_keys_are_taken_up(
    browser: TestClient, provider: SimulatedProvider, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A provider that changed its keys is believed again, and not asked for them at each try."""
    from joserfc.jwk import RSAKey

    assert signed_in(browser, provider).status_code == 200
    provider.key = RSAKey.generate_key(2048, {"kid": "two", "use": "sig"})
    provider.signed = lambda claims: provider.sign_as("two", claims)
    for _ in range(3):
        assert signed_in(browser, provider).status_code == 401
    assert provider.calls.count("/realms/hospital/keys") == 1
    monkeypatch.setattr(_oidc, "AGAIN", 0.0)
    assert signed_in(browser, provider).status_code == 200
    assert provider.calls.count("/realms/hospital/keys") == 2


Bend = Callable[[str], str]


@pytest.mark.parametrize(
    "bend",
    [
        lambda a: a.replace("state=", "state=x"),
        lambda a: a.replace("state=", "other="),
        lambda a: a.replace("code=", "other="),
        lambda a: a + "&error=access_denied",
        lambda a: a + "&iss=https://evil.example.org",
        lambda a: a.replace("code=code-", "code=guess-"),
        lambda a: a + "&state=" + "x" * 10_000,
    ],
    ids=["state", "no state", "no code", "error", "issuer", "code", "long state"],
)
def test_an_address_that_was_changed(
    browser: TestClient, provider: SimulatedProvider, bend: Bend
) -> None:
    """What comes back otherwise than it was sent lets nobody in, and is not quoted."""
    response = browser.get(bend(back(browser, provider)))
    assert response.status_code in (400, 401)
    assert me(browser) == 401
    assert "evil" not in response.text


def test_a_code_is_used_once(browser: TestClient, provider: SimulatedProvider) -> None:
    """Not by the same browser with its cookie kept, and not by another without it."""
    address = back(browser, provider)
    kept = dict(browser.cookies)
    thief = TestClient(browser.app, base_url="https://dither.example.org")
    assert thief.get(address).status_code == 401
    assert browser.get(address).status_code == 200
    again = TestClient(browser.app, base_url="https://dither.example.org", cookies=kept)
    called = len(provider.calls)
    assert again.get(address).status_code == 401
    assert len(provider.calls) == called
    assert me(again) == 401


def test_somebody_elses_sign_in(browser: TestClient, provider: SimulatedProvider) -> None:
    """An attacker's code in a victim's browser, which began a sign-in of its own, is refused."""
    attacker = TestClient(
        browser.app, base_url="https://dither.example.org", follow_redirects=False
    )
    address = back(attacker, provider)
    back(browser, provider)
    assert browser.get(address).status_code == 401
    assert me(browser) == 401


def test_a_cookie_that_was_made_up(
    browser: TestClient, provider: SimulatedProvider, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What a browser keeps is sealed, lasts ten minutes, and is of this policy's provider."""
    name = "__Host-dither_visits_oidc"
    address = back(browser, provider)
    sealed = browser.cookies[name]
    for cookie in ("", ".", sealed[:-1], "x" + sealed, sealed.replace(".", "..")):
        fresh = TestClient(
            browser.app, base_url="https://dither.example.org", cookies={name: cookie}
        )
        assert fresh.get(address).status_code == 401
    header = {"cookie": f"{name}={sealed}"}
    plain, now = TestClient(browser.app, base_url="https://dither.example.org"), time.time()
    with monkeypatch.context() as later:
        later.setattr(time, "time", lambda: now + 601)
        assert "too long" in plain.get(address, headers=header).text
    assert plain.get(address, headers=header).status_code == 200


@pytest.mark.parametrize("name", ["next", "redirect", "redirect_uri", "return_to", "url"])
def test_nobody_says_where_to_go(
    browser: TestClient, provider: SimulatedProvider, name: str
) -> None:
    """No address of somebody else's is led to, whatever the query or the host's name is."""
    evil = f"?{name}=https://evil.example.org"
    response = browser.get(f"/v1/visits/oidc/begin{evil}", headers={"host": "evil.example.org"})
    assert query(response.headers["location"])["redirect_uri"].startswith("https://dither.")
    address = back(browser, provider, evil) + evil.replace("?", "&")
    response = browser.get(address, headers={"host": "dither.example.org"})
    assert response.status_code == 200
    assert "location" not in response.headers
    assert "evil" not in response.text


def test_the_provider_is_down(browser: TestClient, provider: SimulatedProvider) -> None:
    """People are told so, it is not asked again at once, and keys go on as before."""
    provider.down = True
    for _ in range(3):
        response = browser.get("/v1/visits/oidc/begin")
        assert response.status_code == 503
        assert response.json()["error"]["kind"] == "ProviderError"
    assert len(provider.calls) == 1


def test_the_provider_goes_down_meanwhile(browser: TestClient, provider: SimulatedProvider) -> None:
    """Between the two steps, too."""
    address = back(browser, provider)
    provider.down = True
    assert browser.get(address).status_code == 503
    assert me(browser) == 401


@pytest.mark.parametrize("status", [500, 404, 302])
def test_the_provider_is_broken(
    browser: TestClient, provider: SimulatedProvider, status: int
) -> None:
    """What is no answer is none."""
    address = back(browser, provider)
    provider.status = status
    assert browser.get(address).status_code in (401, 503)
    assert me(browser) == 401


@pytest.mark.parametrize(
    "document",
    [
        {"issuer": "https://evil.example.org"},
        {"issuer": ISSUER + "/"},
        {"token_endpoint": "http://login.example.org/token"},
        {"authorization_endpoint": "javascript:alert(1)"},
        {"jwks_uri": None},
        {"jwks_uri": 7},
    ],
    ids=str,
)
def test_a_provider_that_says_what_none_should(
    browser: TestClient, provider: SimulatedProvider, document: dict[str, Any]
) -> None:
    """Another issuer, or places that anybody on the way can speak for, are not believed."""
    provider.document = document
    assert browser.get("/v1/visits/oidc/begin").status_code == 503


def test_the_answer_must_name_its_issuer(browser: TestClient, provider: SimulatedProvider) -> None:
    """Where the provider says that it does, so that two providers cannot be mixed up."""
    provider.document = {"authorization_response_iss_parameter_supported": True}
    assert signed_in(browser, provider).status_code == 401
    provider.answer = {"iss": ISSUER}
    assert signed_in(browser, provider).status_code == 200


def test_a_session_that_ended_begins_again(
    browser: TestClient, provider: SimulatedProvider, desk: Desk
) -> None:
    """A browser that still has the cookie of a session that was ended is not locked out."""
    signed_in(browser, provider)
    desk.people.sign_out(browser.cookies["__Host-dither_visits"])
    assert me(browser) == 401
    assert signed_in(browser, provider).status_code == 200


def test_a_policy_without_a_provider(browser: TestClient, desk: Desk) -> None:
    """There is nothing to begin."""
    desk.provider = None
    assert browser.get("/v1/visits/oidc/begin").status_code == 404


@pytest.mark.parametrize(
    ("field", "value"),
    [
        ("issuer", '"http://login.example.org"'),
        ("issuer", '"https://login.example.org?x=1"'),
        ("issuer", '"https://a@login.example.org"'),
        ("issuer", '"login.example.org"'),
        ("address", '"http://dither.example.org"'),
        ("address", '"https://[x"'),
        ("client_secret", '"plain text"'),
        ("client_secret", '"env:NOT_SET_ANYWHERE"'),
        ("roles", '{ all = "public" }'),
        ("scope", '"groups"'),
    ],
)
def test_fields_that_are_wrong(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, field: str, value: str
) -> None:
    """The service does not start, and says which field is wrong and not what it is."""
    monkeypatch.setenv("DITHER_TEST_SECRET", SECRET)
    pl.DataFrame({"p": [1, 2, 3]}).write_parquet(tmp_path / "visits.parquet")
    lines = [line for line in POLICY.splitlines() if not line.startswith(f"{field} =")]
    (tmp_path / "dither.toml").write_text("\n".join([*lines, f"{field} = {value}"]))
    with pytest.raises(PolicyError, match=rf"service\.oidc\.{field}") as caught:
        Desk(tmp_path / "dither.toml")
    assert "plain text" not in str(caught.value)
