"""Blind signatures against the test vectors of RFC 9474, and what a signer refuses."""

from __future__ import annotations

import math
import secrets

import pytest
from cryptography.hazmat.primitives.asymmetric import rsa

from dither.errors import ArgumentError
from dither.service.collect._blind import blind, blind_sign, finalize, prepare, signed

P = int(
    "e1f4d7a34802e27c7392a3cea32a262a34dc3691bd87f3f310dc75673488930559c120fd0410194fb8a0da55bd0b81"
    "227e843fdca6692ae80e5a5d414116d4803fca7d8c30eaaae57e44a1816ebb5c5b0606c536246c7f11985d731684150"
    "b63c9a3ad9e41b04c0b5b27cb188a692c84696b742a80d3cd00ab891f2457443dadfeba6d6daf108602be26d7071803"
    "c67105a5426838e6889d77e8474b29244cefaf418e381b312048b457d73419213063c60ee7b0d81820165864fef9352"
    "3c9635c22210956e53a8d96322493ffc58d845368e2416e078e5bcb5d2fd68ae6acfa54f9627c42e84a9d3f2774017e"
    "32ebca06308a12ecc290c7cd1156dcccfb2311",
    16,
)
Q = int(
    "c601a9caea66dc3835827b539db9df6f6f5ae77244692780cd334a006ab353c806426b60718c05245650821d39445d3"
    "ab591ed10a7339f15d83fe13f6a3dfb20b9452c6a9b42eaa62a68c970df3cadb2139f804ad8223d56108dfde30ba7d3"
    "67e9b0a7a80c4fdba2fd9dde6661fc73fc2947569d2029f2870fc02d8325acf28c9afa19ecf962daa7916e21afad09e"
    "b62fe9f1cf91b77dc879b7974b490d3ebd2e95426057f35d0a3c9f45f79ac727ab81a519a8b9285932d9b2e5ccd347e"
    "59f3f32ad9ca359115e7da008ab7406707bd0e8e185a5ed8758b5ba266e8828f8d863ae133846304a2936ad7bc7c980"
    "3879d2fc4a28e69291d73dbd799f8bc238385",
    16,
)
INVERSE = int(
    "80682c48982407b489d53d1261b19ec8627d02b8cda5336750b8cee332ae260de57b02d72609c1e0e9f28e2040fc65b"
    "6f02d56dbd6aa9af8fde656f70495dfb723ba01173d4707a12fddac628ca29f3e32340bd8f7ddb557cf819f6b01e445"
    "ad96f874ba235584ee71f6581f62d4f43bf03f910f6510deb85e8ef06c7f09d9794a008be7ff2529f0ebb69decef646"
    "387dc767b74939265fec0223aa6d84d2a8a1cc912d5ca25b4e144ab8f6ba054b54910176d5737a2cff011da431bd5f2"
    "a0d2d66b9e70b39f4b050e45c0d9c16f02deda9ddf2d00f3e4b01037d7029cd49c2d46a8e1fc2c0c17520af1f4b5e25"
    "ba396afc4cd60c494a4c426448b35b49635b337cfb08e7c22a39b256dd032c00adddafb51a627f99a0e1704170ac1f1"
    "912e49d9db10ec04c19c58f420212973e0cb329524223a6aa56c7937c5dffdb5d966b6cd4cbc26f3201dd25c80960a1"
    "a111b32947bb78973d269fac7f5186530930ed19f68507540eed9e1bab8b00f00d8ca09b3f099aae46180e04e3584bd"
    "7ca054df18a1504b89d1d1675d0966c4ae1407be325cdf623cf13ff13e4a28b594d59e3eadbadf6136eee7a59d6a444"
    "c9eb4e2198e8a974f27a39eb63af2c9af3870488b8adaad444674f512133ad80b9220e09158521614f1faadfe8505ef"
    "57b7df6813048603f0dd04f4280177a11380fbfc861dbcbd7418d62155248dad5fdec0991f",
    16,
)
MESSAGE = bytes.fromhex(
    "8f3dc6fb8c4a02f4d6352edf0907822c1210a9b32f9bdda4c45a698c80023aa6b59f8cfec5fdbb36331372ebefedae7d"
)
SALT = bytes.fromhex(
    "051722b35f458781397c3a671a7d3bd3096503940e4c4f1aaa269d60300ce449555cd7340100df9d46944c5356825abf"
)
# By variant: the prefix, and how the blinded message, its signature and the token's begin and end.
VECTORS = {
    "PSS-Deterministic": (
        "",
        (
            "10c166c6a711e81c46f45b18e5873cc4f494f003180dd7f115585d871a289302",
            "acf30533d8e0594ace7c442",
        ),
        (
            "364f6a40dbfbc3bbb257943337eeff791a0f290898a6791283bba581d9eac90a",
            "1e6bc5c0dc851e1509de1a",
        ),
        ("6fef8bf9bc182cd8cf7ce45c7dcf0e6f3e518ae48f06f3c670c649ac737a8b81", "2ed59029c706195d52"),
    ),
    "PSS-Randomized": (
        "8417e699b219d583fb6216ae0c53ca0e9723442d02f1d1a34295527e7d929e8b",
        ("aa3ee045138d874669685ffaef962c7694a9450aa9b4fd6465db9b3b75a522bb", "3039a7a92fe7efdd95d"),
        ("3f4a79eacd4445fca628a310d41e12fcd813c4d43aa4ef2b81226953248d6d00", "185969f70b1adf46"),
        ("191e941c57510e22d29afad257de5ca436d2316221fe870c7cb75205a6c071c2", "795bbdfcdfad5e0f2"),
    ),
}


def key_of(p: int, q: int, e: int = 65537) -> rsa.RSAPrivateKey:
    """The key of two primes."""
    d = pow(e, -1, math.lcm(p - 1, q - 1))
    numbers = rsa.RSAPrivateNumbers(
        *(p, q, d, rsa.rsa_crt_dmp1(d, p), rsa.rsa_crt_dmq1(d, q), rsa.rsa_crt_iqmp(p, q)),
        rsa.RSAPublicNumbers(e, p * q),
    )
    return numbers.private_key()


@pytest.fixture(scope="module")
def key() -> rsa.RSAPrivateKey:
    """The key of the RFC."""
    return key_of(P, Q)


@pytest.mark.parametrize("variant", VECTORS)
def test_vectors_of_the_rfc(key: rsa.RSAPrivateKey, variant: str) -> None:
    """Appendix A, of both variants with a salt: every step gives what stands there."""
    prefix, *expected = VECTORS[variant]
    message = bytes.fromhex(prefix) + MESSAGE
    public = key.public_key()
    factor = pow(INVERSE, -1, P * Q)
    blinded = blind(public, message, salt=SALT, factor=lambda _: factor)
    signature = blind_sign(key, blinded.message)
    token = finalize(public, message, signature, blinded.inverse)
    assert blinded.inverse == INVERSE
    for found, (first, last) in zip((blinded.message, signature, token), expected, strict=True):
        assert found.hex().startswith(first)
        assert found.hex().endswith(last)
    assert signed(public, message, token)


def test_round_trip(survey) -> None:
    """A key of 2048 bits: what was blinded twice is signed to two tokens of one message."""
    public = survey.key.public_key()
    message = prepare(b"a token")
    tokens, asked = set(), set()
    for _ in range(2):
        blinded = blind(public, message)
        asked.add(blinded.message)
        tokens.add(
            finalize(public, message, blind_sign(survey.key, blinded.message), blinded.inverse)
        )
    assert len(tokens) == len(asked) == 2
    assert all(signed(public, message, token) for token in tokens)
    assert not signed(public, message + b"x", tokens.pop())


def test_refusals(survey) -> None:
    """A signer signs numbers below its modulus alone, and a device takes no false answer."""
    public = survey.key.public_key()
    n = public.public_numbers().n
    for wrong in (b"", b"\x01" * 255, n.to_bytes(256, "big"), b"\xff" * 256):
        with pytest.raises(ArgumentError, match="below the modulus"):
            blind_sign(survey.key, wrong)
    blinded = blind(public, b"m" * 32)
    for wrong in (blinded.message, b"", secrets.token_bytes(256)):
        with pytest.raises(ArgumentError, match="no signature"):
            finalize(public, b"m" * 32, wrong, blinded.inverse)


def test_a_fault_gives_nothing_away(survey, monkeypatch) -> None:
    """Where half of a signature is computed wrong, nothing is handed out."""
    right = survey.key.private_numbers()

    class Faulty:
        def public_key(self):
            return survey.key.public_key()

        def private_numbers(self):
            return rsa.RSAPrivateNumbers(
                *(right.p, right.q, right.d, right.dmp1 + 2, right.dmq1, right.iqmp),
                right.public_numbers,
            )

    with pytest.raises(ArithmeticError, match="does not hold"):
        blind_sign(Faulty(), blind(survey.key.public_key(), b"m").message)
