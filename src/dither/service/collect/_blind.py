"""Blind signatures of RSA, RFC 9474: who signs a token sees neither the token nor its signature.

RSABSSA-SHA384-PSS-Randomized and -Deterministic, exactly as the RFC has them. What is secret is
computed by OpenSSL or hidden before Python's integers see it: the signer multiplies what it signs
by a random number's power first, so that its time says nothing of the key, and looks at the result
before it gives it away, since a signature with a fault in it would give the key away.

A signature of a token is an ordinary RSASSA-PSS signature, which `cryptography` verifies.
"""

from __future__ import annotations

import hashlib
import math
import secrets
from dataclasses import dataclass
from typing import TYPE_CHECKING

from cryptography.exceptions import InvalidSignature
from cryptography.hazmat.primitives import hashes
from cryptography.hazmat.primitives.asymmetric import padding, rsa

from dither.errors import ArgumentError

if TYPE_CHECKING:
    from collections.abc import Callable

__all__ = ["PREFIX", "Blinded", "blind", "blind_sign", "finalize", "prepare", "signed"]

PREFIX = 32
"""Bytes of randomness before a message, in the randomized variant."""

_SALT = 48
_PADDING = padding.PSS(padding.MGF1(hashes.SHA384()), _SALT)


@dataclass(frozen=True)
class Blinded:
    """A message that was made unreadable for who signs it.

    Parameters
    ----------
    message : bytes
        For the signer.
    inverse : int
        Stays with who made it: turns the signer's answer into a signature.
    """

    message: bytes
    inverse: int


def prepare(message: bytes) -> bytes:
    """The message as the randomized variant signs it: 32 random bytes stand before it."""
    return secrets.token_bytes(PREFIX) + message


def blind(
    key: rsa.RSAPublicKey,
    message: bytes,
    *,
    salt: bytes | None = None,
    factor: Callable[[int], int] = secrets.randbelow,
) -> Blinded:
    """Blind a message that was prepared (RFC 9474, 4.2).

    Parameters
    ----------
    key : RSAPublicKey
    message : bytes
    salt : bytes, optional
        48 random ones where left out.
    factor : callable
        Gives a number below its argument, at random.

    Raises
    ------
    ArgumentError
        The message shares a factor with the modulus, which never happens with a key of two primes.
    """
    n, e = key.public_numbers().n, key.public_numbers().e
    encoded = _encoded(
        message, key.key_size - 1, secrets.token_bytes(_SALT) if salt is None else salt
    )
    whole = int.from_bytes(encoded, "big")
    if math.gcd(whole, n) != 1:
        raise ArgumentError("the key is not one of RSA: a message shares a factor with it")
    while True:
        r = factor(n)
        if r > 0 and math.gcd(r, n) == 1:
            break
    blinded = whole * pow(r, e, n) % n
    return Blinded(blinded.to_bytes(_size(key), "big"), pow(r, -1, n))


def blind_sign(key: rsa.RSAPrivateKey, blinded: bytes) -> bytes:
    """Sign what cannot be read (RFC 9474, 4.3).

    Raises
    ------
    ArgumentError
        It is not a number below the modulus, of its size.
    """
    public = key.public_key()
    n, e = public.public_numbers().n, public.public_numbers().e
    m = int.from_bytes(blinded, "big")
    if len(blinded) != _size(public) or m >= n:
        raise ArgumentError("a blinded token must be a number below the modulus of its key")
    numbers = key.private_numbers()
    hidden = secrets.randbelow(n - 2) + 2
    while math.gcd(hidden, n) != 1:
        hidden = secrets.randbelow(n - 2) + 2
    base = m * pow(hidden, e, n) % n
    p, q = numbers.p, numbers.q
    at_p, at_q = pow(base, numbers.dmp1, p), pow(base, numbers.dmq1, q)
    found = (at_q + (at_p - at_q) * numbers.iqmp % p * q) * pow(hidden, -1, n) % n
    if pow(found, e, n) != m:
        raise ArithmeticError("the signature of a token does not hold; nothing was signed")
    return found.to_bytes(_size(public), "big")


def finalize(key: rsa.RSAPublicKey, message: bytes, signature: bytes, inverse: int) -> bytes:
    """The signature of the prepared message itself (RFC 9474, 4.4).

    Raises
    ------
    ArgumentError
        Whoever answered did not sign it.
    """
    n = key.public_numbers().n
    found = (int.from_bytes(signature, "big") * inverse % n).to_bytes(_size(key), "big")
    if len(signature) != _size(key) or not signed(key, message, found):
        raise ArgumentError("the answer is no signature of the token by the survey's key")
    return found


def signed(key: rsa.RSAPublicKey, message: bytes, signature: bytes) -> bool:
    """Whether a prepared message is signed."""
    try:
        key.verify(signature, message, _PADDING, hashes.SHA384())
    except InvalidSignature:
        return False
    return True


def _size(key: rsa.RSAPublicKey) -> int:
    return (key.key_size + 7) // 8


def _encoded(message: bytes, bits: int, salt: bytes) -> bytes:
    """EMSA-PSS-ENCODE of RFC 8017, 9.1.1, with SHA-384."""
    size = (bits + 7) // 8
    hashed = hashlib.sha384(bytes(8) + hashlib.sha384(message).digest() + salt).digest()
    block = bytes(size - len(salt) - len(hashed) - 2) + b"\x01" + salt
    masked = bytearray(a ^ b for a, b in zip(block, _mask(hashed, len(block)), strict=True))
    masked[0] &= 0xFF >> (8 * size - bits)
    return bytes(masked) + hashed + b"\xbc"


def _mask(seed: bytes, length: int) -> bytes:
    blocks = range(-(-length // 48))
    made = b"".join(hashlib.sha384(seed + i.to_bytes(4, "big")).digest() for i in blocks)
    return made[:length]
