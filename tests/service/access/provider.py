"""A provider of OpenID Connect that runs in tests, and does wrong where it is told to."""

from __future__ import annotations

import base64
import hashlib
import hmac
import time
from collections.abc import Callable
from typing import Any
from urllib.parse import parse_qs, urlencode, urlsplit

import httpx
from joserfc import jwt
from joserfc.jwk import RSAKey
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import JSONResponse, RedirectResponse, Response
from starlette.routing import Route
from starlette.testclient import TestClient

ISSUER = "https://login.example.org/realms/hospital"
CLIENT = "dither"
SECRET = "between two services"
BACK = "https://dither.example.org/v1/visits/oidc/callback"


KEY = RSAKey.generate_key(2048, {"kid": "one", "use": "sig", "alg": "RS256"})
"""Dear to make."""


class SimulatedProvider(httpx.BaseTransport):
    """It knows one person, whose claims tests set, and is the way to itself, too."""

    def __init__(self) -> None:
        self.key = KEY
        self.claims: dict[str, Any] = {"sub": "ann", "groups": ["analysts"]}
        self.more: dict[str, Any] = {}
        """What tokens say otherwise than they should; None leaves a claim out."""
        self.document: dict[str, Any] = {}
        self.answer: dict[str, str] = {}
        """What the address of coming back has otherwise."""
        self.published: list[Any] = []
        """Other keys that it says are its own."""
        self.signed: Callable[[dict[str, Any]], str] = self.sign
        self.down = False
        self.status = 200
        self.calls: list[str] = []
        self._codes: dict[str, dict[str, str]] = {}
        self._client = TestClient(
            Starlette(
                routes=[
                    Route("/realms/hospital/.well-known/openid-configuration", self._document),
                    Route("/realms/hospital/keys", self._keys),
                    Route("/realms/hospital/authorize", self._authorize),
                    Route("/realms/hospital/token", self._token, methods=["POST"]),
                ]
            ),
            base_url="https://login.example.org",
            follow_redirects=False,
        )

    def handle_request(self, request: httpx.Request) -> httpx.Response:
        """As a transport of the service's own client."""
        self.calls.append(request.url.path)
        if self.down:
            raise httpx.ConnectError("no route")
        headers = {k: v for k, v in request.headers.items() if k != "host"}
        found = self._client.request(
            request.method, str(request.url), content=request.read(), headers=headers
        )
        return httpx.Response(found.status_code, headers=found.headers, content=found.content)

    def visit(self, address: str) -> str:
        """What a browser does there: it is sent back, to this address."""
        found = self._client.get(address)
        assert found.status_code == 302, found.text
        return found.headers["location"]

    def sign(self, claims: dict[str, Any]) -> str:
        """A token as it should be."""
        return self.sign_as("one", claims)

    def sign_as(self, name: str, claims: dict[str, Any]) -> str:
        """A token by the key of this name."""
        return jwt.encode({"alg": "RS256", "kid": name}, claims, self.key)

    def sign_shared(self, claims: dict[str, Any]) -> str:
        """A token whose shared key is the text of the public one."""
        shared = self.key.as_pem(private=False)
        head = base64.urlsafe_b64encode(b'{"alg":"HS256","kid":"one"}').decode().rstrip("=")
        text = f"{head}.{self.sign(claims).split('.')[1]}"
        seal = hmac.digest(shared, text.encode(), "sha256")
        return f"{text}.{base64.urlsafe_b64encode(seal).decode().rstrip('=')}"

    def sign_not(self, claims: dict[str, Any]) -> str:
        """A token of the algorithm ``none``."""
        _, body, _ = self.sign(claims).split(".")
        head = base64.urlsafe_b64encode(b'{"alg":"none"}').decode().rstrip("=")
        return f"{head}.{body}."

    def sign_by_another(self, claims: dict[str, Any]) -> str:
        """A token of somebody else's key, under the name of this one."""
        other = RSAKey.generate_key(2048)
        return jwt.encode({"alg": "RS256", "kid": "one"}, claims, other)

    def change(self, claims: dict[str, Any]) -> str:
        """A token that was changed on the way."""
        head, _, seal = self.sign(claims).split(".")
        _, body, _ = self.sign(claims | {"groups": ["admins"]}).split(".")
        return f"{head}.{body}.{seal}"

    # --- what it serves ---------------------------------------------------------------------------

    def _document(self, _: Request) -> Response:
        said = {
            "issuer": ISSUER,
            "authorization_endpoint": f"{ISSUER}/authorize",
            "token_endpoint": f"{ISSUER}/token",
            "jwks_uri": f"{ISSUER}/keys",
        }
        return JSONResponse(said | self.document, self.status)

    def _keys(self, _: Request) -> Response:
        return JSONResponse({"keys": [*self.published, self.key.as_dict(private=False)]})

    def _authorize(self, request: Request) -> Response:
        asked = dict(request.query_params)
        assert asked["response_type"] == "code"
        assert (asked["client_id"], asked["redirect_uri"]) == (CLIENT, BACK)
        assert asked["code_challenge_method"] == "S256"
        code = f"code-{len(self._codes)}"
        self._codes[code] = asked
        back = {"code": code, "state": asked["state"], "session_state": "of its own"}
        return RedirectResponse(f"{BACK}?{urlencode(back | self.answer)}", 302)

    async def _token(self, request: Request) -> Response:
        kind, _, given = request.headers.get("authorization", "").partition(" ")
        body = parse_qs((await request.body()).decode())
        if self.status != 200:
            return Response("<html>no", self.status)
        if kind != "Basic" or base64.b64decode(given).decode().partition(":")[0] != CLIENT:
            return JSONResponse({"error": "invalid_client"}, 401)
        asked = self._codes.pop(body["code"][0], None)
        digest = hashlib.sha256(body.get("code_verifier", [""])[0].encode()).digest()
        challenge = base64.urlsafe_b64encode(digest).decode().rstrip("=")
        if asked is None or challenge != asked["code_challenge"]:
            return JSONResponse({"error": "invalid_grant"}, 400)
        now = int(time.time())
        claims = {
            "iss": ISSUER,
            "aud": CLIENT,
            "exp": now + 300,
            "iat": now,
            "nonce": asked["nonce"],
            **self.claims,
            **self.more,
        }
        token = self.signed({name: v for name, v in claims.items() if v is not None})
        return JSONResponse({"access_token": "x", "token_type": "Bearer", "id_token": token})


def query(address: str) -> dict[str, str]:
    """The query of an address."""
    return {name: values[0] for name, values in parse_qs(urlsplit(address).query).items()}
