"""Signing in at an OpenID Connect provider: the authorization code flow, with PKCE.

A browser is sent to the provider with a state, a nonce and the hash of a verifier, and keeps the
three in a cookie that lasts ten minutes. When it comes back with a code, the state must be that of
its cookie, the code is exchanged under the verifier, and what comes is believed only as far as its
signature, issuer, audience, time and nonce hold. Nothing else that a browser says is.

The rules are those of OpenID Connect Core 1.0 (section 3.1.3.7), RFC 7636, RFC 9207 and RFC 9700.
"""

from __future__ import annotations

import base64
import hashlib
import hmac
import json
import re
import secrets
import threading
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import astuple, dataclass
from typing import Any
from urllib.parse import quote_plus

from dither._environment import secret
from dither.errors import ArgumentError
from dither.service._settings import OpenIdProvider
from dither.service.access._roles import Role

__all__ = ["ATTEMPT_SECONDS", "Provider", "ProviderError", "SignInError"]

ATTEMPT_SECONDS = 600
"""How long somebody may take at the provider."""

KEPT = 3600.0
"""Seconds that what the provider says of itself is kept."""

AGAIN = 10.0
"""Seconds between two tries at a provider that does not answer, and two looks for new keys."""

PATIENCE = 5.0
"""Seconds that it may take to answer."""

AT_ONCE = 4
"""Calls of the provider at a time, so that a slow one does not keep every thread of the service."""

SKEW = 60
"""Seconds by which two clocks may differ."""

ALGORITHMS = ["RS256", "RS384", "RS512", "PS256", "PS384", "PS512", "ES256", "ES384", "ES512"]
"""Signatures by a key that the provider alone has. No ``none``, and no ``HS256``: with that anybody
who knows the public key could sign, where it is taken for a shared one."""

POWER = (Role.OWNER, Role.ANALYST, Role.AUDITOR)
"""The most powerful first."""

MOST_BYTES = 2**20
"""Of an answer of the provider."""

SILENT = "the provider that you sign in at does not answer: try again in a minute"
WRONG = "the provider that you sign in at does not say what it must"

SUBJECT = re.compile(r"[!-~]{1,255}")


class SignInError(ArgumentError):
    """Somebody is not let in; nothing of what was sent is quoted."""


class ProviderError(ArgumentError):
    """The provider does not answer, or says what no provider should."""


@dataclass(frozen=True, slots=True)
class SignInAttempt:
    """What a browser keeps while somebody is at the provider.

    Parameters
    ----------
    state, nonce, verifier : str
    until : int
        In seconds since 1970.
    """

    state: str
    nonce: str
    verifier: str
    until: int


class Provider:
    """The provider of one policy.

    Parameters
    ----------
    settings : OpenIdProvider
    policy : str
        The policy's name at the service.
    transport : httpx transport, optional
        Another way to the provider.

    Raises
    ------
    PolicyError
        The variable of its secret is not set.
    """

    def __init__(self, settings: OpenIdProvider, policy: str, transport: Any = None) -> None:
        self.settings, self._transport = settings, transport
        self._secret = secret(settings.client_secret, "service.oidc.client_secret")
        known = json.dumps([policy, settings.issuer, settings.client_id, self._secret.reveal()])
        self._key = hashlib.blake2b(known.encode(), person=b"dither sign in").digest()
        self.redirect = f"{settings.address}/v1/{policy}/oidc/callback"
        self._lock, self._calls = threading.Lock(), threading.BoundedSemaphore(AT_ONCE)
        self._said: tuple[float, Mapping[str, Any]] | None = None
        self._keys: tuple[float, Any] | None = None
        self._silent = -AGAIN
        self._spent: dict[str, int] = {}

    # --- there ------------------------------------------------------------------------------------

    def begin(self) -> tuple[str, str]:
        """Where a browser goes, and the cookie that it takes along.

        Raises
        ------
        ProviderError
            The provider does not answer.
        """
        said = self._document()
        attempt = SignInAttempt(
            secrets.token_urlsafe(32),
            secrets.token_urlsafe(32),
            secrets.token_urlsafe(48),
            int(time.time()) + ATTEMPT_SECONDS,
        )
        return self._address(said["authorization_endpoint"], attempt), self._sealed(attempt)

    def _address(self, endpoint: str, attempt: SignInAttempt) -> str:
        from authlib.common.urls import add_params_to_uri
        from authlib.oauth2.rfc7636 import create_s256_code_challenge

        asked = {
            "response_type": "code",
            "client_id": self.settings.client_id,
            "redirect_uri": self.redirect,
            "scope": self.settings.scope,
            "state": attempt.state,
            "nonce": attempt.nonce,
            "code_challenge": create_s256_code_challenge(attempt.verifier),
            "code_challenge_method": "S256",
        }
        return str(add_params_to_uri(endpoint, list(asked.items())))

    def _sealed(self, attempt: SignInAttempt) -> str:
        text = base64.urlsafe_b64encode(json.dumps(astuple(attempt)).encode()).decode()
        return f"{text}.{self._seal(text)}"

    def _seal(self, text: str) -> str:
        return hashlib.blake2b(text.encode(), key=self._key, digest_size=32).hexdigest()

    def _opened(self, cookie: str | None) -> SignInAttempt:
        text, _, seal = (cookie or "").partition(".")
        if not hmac.compare_digest(self._seal(text).encode(), seal.encode()):
            raise SignInError("the sign-in was not begun in this browser: begin it again")
        attempt = SignInAttempt(*json.loads(base64.urlsafe_b64decode(text)))
        if attempt.until <= time.time():
            raise SignInError("the sign-in took too long: begin it again")
        return attempt

    # --- and back ---------------------------------------------------------------------------------

    def finish(self, cookie: str | None, given: Mapping[str, Any]) -> tuple[str, Role | None]:
        """Who came back, and what they are: None of somebody without a group that has a role.

        Parameters
        ----------
        cookie : str or None
        given : mapping
            ``state``, ``code``, ``error`` and ``iss`` of the address.

        Raises
        ------
        SignInError
            Something does not hold.
        ProviderError
            The provider does not answer.
        """
        attempt = self._opened(cookie)
        if not hmac.compare_digest(str(given.get("state", "")).encode(), attempt.state.encode()):
            raise SignInError("the sign-in that came back is not the one that was begun")
        self._spend(attempt)
        said = self._document()
        issuer = self.settings.issuer
        must = bool(said.get("authorization_response_iss_parameter_supported"))
        if given.get("iss", None if must else issuer) != issuer:
            raise SignInError("the sign-in comes from another provider than it went to")
        if given.get("error") is not None or given.get("code") is None:
            raise SignInError("the provider did not let you in")
        claims = self._claims(self._exchanged(said, str(given["code"]), attempt), attempt.nonce)
        return name_of(issuer, claims["sub"]), self._role(claims)

    def _spend(self, attempt: SignInAttempt) -> None:
        now = time.time()
        with self._lock:
            if attempt.state in self._spent:
                raise SignInError("this sign-in was used already: begin it again")
            self._spent = {state: until for state, until in self._spent.items() if until > now}
            self._spent[attempt.state] = attempt.until

    def _exchanged(self, said: Mapping[str, Any], code: str, attempt: SignInAttempt) -> str:
        us, word = self.settings.client_id, self._secret.reveal()
        body = {
            "grant_type": "authorization_code",
            "code": code,
            "redirect_uri": self.redirect,
            "code_verifier": attempt.verifier,
        }
        methods = said.get("token_endpoint_auth_methods_supported")
        if isinstance(methods, list) and "client_secret_basic" not in methods:
            given: dict[str, Any] = {"data": body | {"client_id": us, "client_secret": word}}
        else:
            given = {"data": body, "auth": (quote_plus(us), quote_plus(word))}
        status, tokens = self._asked("POST", said["token_endpoint"], **given)
        if status in (400, 401):
            raise SignInError("the provider does not know this sign-in: begin it again")
        found = tokens.get("id_token")
        if status != 200 or not isinstance(found, str):
            raise ProviderError("the provider does not say who signed in")
        return found

    def _claims(self, token: str, nonce: str) -> dict[str, Any]:
        claims = self._verified(token)
        us, now = self.settings.client_id, time.time()
        audience = claims.get("aud")
        whom = audience if isinstance(audience, list) else [audience]
        party = claims.get("azp", us if len(whom) == 1 else None)
        times = [claims.get("exp"), claims.get("iat"), claims.get("nbf", 0)]
        well = all(isinstance(t, int | float) and not isinstance(t, bool) for t in times)
        given = claims.get("nonce")
        if (
            claims.get("iss") != self.settings.issuer
            or us not in whom
            or party != us
            or not well
            or not times[0] > now - SKEW
            or not max(times[1:]) < now + SKEW
            or not isinstance(given, str)
            or not hmac.compare_digest(given.encode("utf-8", "replace"), nonce.encode())
        ):
            raise SignInError("the provider's word is for somebody else, or of another time")
        subject = claims.get("sub")
        if not isinstance(subject, str) or not SUBJECT.fullmatch(subject):
            raise SignInError("the provider's name for you is none that can be kept")
        return claims

    def _verified(self, token: str) -> dict[str, Any]:
        """The claims of a token, if the provider signed it."""
        from joserfc import jwt
        from joserfc.errors import JoseError

        for fresh in (False, True):
            try:
                found = jwt.decode(token, self._key_set(fresh), algorithms=ALGORITHMS)
            except (JoseError, ValueError, TypeError):
                # Keys change: a signature by one that is not known yet is looked at once more.
                continue
            if isinstance(found.claims, dict):
                return found.claims
        raise SignInError("the provider's signature does not hold")

    def _role(self, claims: Mapping[str, Any]) -> Role | None:
        groups = claims.get(self.settings.groups_claim)
        held = groups if isinstance(groups, list) else [groups]
        known = {self.settings.roles.get(one) for one in held if isinstance(one, str)}
        return next((role for role in POWER if role in known), None)

    # --- what the provider says of itself ---------------------------------------------------------

    def _document(self) -> Mapping[str, Any]:
        with self._lock:
            held = self._said
        if held is not None and time.monotonic() - held[0] < KEPT:
            return held[1]
        issuer = self.settings.issuer
        found = self._read(issuer.rstrip("/") + "/.well-known/openid-configuration")
        if found.get("issuer") != issuer:
            raise ProviderError("the provider says another issuer than service.oidc.issuer")
        for name in ("authorization_endpoint", "token_endpoint", "jwks_uri"):
            value = found.get(name)
            if not isinstance(value, str) or not value.startswith(issuer.split("//")[0] + "//"):
                raise ProviderError(f"the provider says no {name} that can be trusted")
        with self._lock:
            self._said = time.monotonic(), found
        return found

    def _key_set(self, fresh: bool) -> Any:
        from joserfc.errors import JoseError
        from joserfc.jwk import KeySet

        with self._lock:
            held = self._keys
        age = None if held is None else time.monotonic() - held[0]
        if held is not None and age is not None and age < (AGAIN if fresh else KEPT):
            return held[1]
        listed = self._read(self._document()["jwks_uri"]).get("keys")
        if not isinstance(listed, list):
            raise ProviderError("the provider says no keys")
        # Neither shared keys, nor keys for something else than signatures.
        kept = [
            one
            for one in listed
            if isinstance(one, dict)
            and one.get("kty") in ("RSA", "EC")
            and one.get("use", "sig") == "sig"
        ]
        try:
            found = KeySet.import_key_set({"keys": kept})
        except (JoseError, ValueError, TypeError, KeyError):
            raise ProviderError("the provider says keys that cannot be read") from None
        with self._lock:
            self._keys = time.monotonic(), found
        return found

    def _read(self, address: str) -> dict[str, Any]:
        status, found = self._asked("GET", address)
        if status != 200:
            raise ProviderError(SILENT)
        return found

    def _asked(self, method: str, address: str, **given: Any) -> tuple[int, dict[str, Any]]:
        """What the provider answers: a status, and an object."""
        import httpx

        with self._calling(), httpx.Client(transport=self._transport, timeout=PATIENCE) as client:
            headers = {"accept": "application/json"}
            with client.stream(method, address, headers=headers, **given) as answer:
                read = b""
                for part in answer.iter_bytes():
                    read += part
                    if len(read) > MOST_BYTES:
                        raise ProviderError(WRONG)
                if answer.status_code >= 500:
                    raise httpx.ReadError("it fails")
                found = json.loads(read)
        if not isinstance(found, dict):
            raise ProviderError(WRONG)
        return answer.status_code, found

    @contextmanager
    def _calling(self) -> Iterator[None]:
        """A call of the provider, whose failures are all of one kind."""
        import httpx

        if time.monotonic() - self._silent < AGAIN or not self._calls.acquire(timeout=1):
            raise ProviderError(SILENT)
        try:
            yield
        except httpx.TransportError:
            self._silent = time.monotonic()
            raise ProviderError(SILENT) from None
        except (httpx.HTTPError, httpx.InvalidURL, ValueError, RecursionError):
            raise ProviderError(WRONG) from None
        finally:
            self._calls.release()


def name_of(issuer: str, subject: str) -> str:
    """The name of somebody who comes by a provider.

    It has a ``#``, which no name has that an owner gives, and no issuer; so it is that of nobody
    else, neither here nor at a provider that is named tomorrow. Of what a provider says of people
    the subject alone is theirs for good: addresses and nicknames change hands.
    """
    return f"{issuer.removeprefix('https://')}#{subject}"
