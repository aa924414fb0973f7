"""A certificate that is renewed while it is served."""

from __future__ import annotations

import asyncio
import datetime as dt
import logging
import os
import ssl
from contextlib import suppress
from pathlib import Path

import pytest
from cryptography import x509
from cryptography.hazmat.primitives import hashes
from cryptography.hazmat.primitives import serialization as form
from cryptography.hazmat.primitives.asymmetric import ec

from dither.errors import ArgumentError
from dither.service._desk import Desk
from dither.service._hall import Hall
from dither.service.web._tls import RenewedContext
from service.hospital import written


def certified(folder: Path, name: str, at: int = 0) -> tuple[Path, Path]:
    """A certificate, and the file of its key."""
    key = ec.generate_private_key(ec.SECP256R1())
    called = x509.Name([x509.NameAttribute(x509.NameOID.COMMON_NAME, name)])
    day = dt.datetime.now(dt.UTC)
    made = x509.CertificateBuilder(called, called, key.public_key(), 1, day, day + dt.timedelta(1))
    crt, pem = folder / "tls.crt", folder / "tls.key"
    crt.write_bytes(made.sign(key, hashes.SHA256()).public_bytes(form.Encoding.PEM))
    plain = form.PrivateFormat.TraditionalOpenSSL, form.NoEncryption()
    pem.write_bytes(key.private_bytes(form.Encoding.PEM, *plain))
    if at:
        os.utime(crt, ns=(at, at))
        os.utime(pem, ns=(at, at))
    return crt, pem


def shown(context: ssl.SSLContext) -> str:
    """Whose certificate a connection is shown."""
    told, asked = ssl.MemoryBIO(), ssl.MemoryBIO()
    trusting = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    trusting.check_hostname, trusting.verify_mode = False, ssl.CERT_NONE
    here = context.wrap_bio(asked, told, server_side=True)
    there = trusting.wrap_bio(told, asked)
    for side in (there, here, there, here):
        with suppress(ssl.SSLWantReadError):
            side.do_handshake()
    seen = there.getpeercert(binary_form=True)
    assert seen is not None
    (name,) = x509.load_der_x509_certificate(seen).subject
    return str(name.value)


def test_a_renewed_certificate_is_shown_to_whoever_comes_next(tmp_path: Path) -> None:
    """Both files or neither: halves, rubbish, and files that are gone leave what is served."""
    crt, key = certified(tmp_path, "first", 1)
    context = RenewedContext(crt, key)
    assert shown(context) == "first"
    assert not context.take_up(changed_only=True)
    certified(tmp_path, "second", 2)
    assert shown(context) == "first"
    assert context.take_up(changed_only=True)
    assert shown(context) == "second"
    whole = key.read_bytes()
    for broken in (certified(tmp_path, "third")[0].read_bytes(), b"rubbish", b"", None):
        key.write_bytes(whole)
        if broken is None:
            key.unlink()
        else:
            key.write_bytes(broken)
        with pytest.raises(ArgumentError, match="cannot be used"):
            context.take_up(changed_only=True)
        # Said once, until somebody asks, or a file changes again.
        assert not context.take_up(changed_only=True)
        with pytest.raises(ArgumentError, match="cannot be used"):
            context.take_up()
        assert shown(context) == "second"
    certified(tmp_path, "fourth", 3)
    assert context.take_up(changed_only=True)
    assert shown(context) == "fourth"


def test_a_hall_takes_up_all_it_can_and_says_what_it_cannot(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    """Told to look again, it reads what did not change, too; and nothing that fails stops it."""
    policy = written(tmp_path)
    desk = Desk(policy)
    crt, key = certified(tmp_path, "first", 1)
    caplog.set_level(logging.INFO)

    async def told() -> None:
        hall = Hall([desk], 1)
        hall.look_again()  # no loop yet, and nothing to do
        hall.renewed["certificate"] = RenewedContext(crt, key)
        await hall.start()

        async def again(wanted: str) -> None:
            caplog.clear()
            hall.look_again()
            async with asyncio.timeout(30):
                while wanted not in caplog.text:
                    await asyncio.sleep(0.01)

        await again("certificate: taken up")
        key.write_text("rubbish")
        policy.write_text("rubbish")
        await again("certificate: ArgumentError; what was there before is served on")
        assert "policy visits: PolicyError; what was there before is served on" in caplog.text
        await hall.stop()
        hall.look_again()

    asyncio.run(told())
