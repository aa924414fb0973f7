"""What a device sends: the body of a post, in bytes or in JSON.

In bytes, numbers low byte first, as everywhere in the wire format of local reports:

===========  =======================================================================
bytes
===========  =======================================================================
0-7          the text ``DITHERCP``
8-9          version of this form: 1
10-41        the digest of the survey's configuration
42-43        how many tokens follow
of each      32 random bytes and the signature, as long as the key; in two bytes how
             many records it pays for; and these
===========  =======================================================================
"""

from __future__ import annotations

import base64
import binascii
import json
import struct
from typing import Any

from dither.errors import ArgumentError
from dither.service.collect._blind import PREFIX
from dither.service.collect._survey import SurveyConfiguration

__all__ = ["BINARY", "JSON", "OtherConfiguration", "read_body", "write_body"]

BINARY = "application/vnd.dither.reports"
JSON = "application/json"
MAGIC = b"DITHERCP"
VERSION = 1
MOST_BRACKETS = 1 << 16
"""Objects, or lists, that a body of JSON may have."""

_HEAD = struct.Struct("<8sH32sH")
_COUNT = struct.Struct("<H")

Post = tuple[bytes, bytes, bytes]
"""A token's random half, its signature, and records."""


class OtherConfiguration(Exception):
    """Reports of another configuration than the survey has now."""


def read_body(body: bytes, kind: str, survey: SurveyConfiguration) -> list[Post]:
    """The posts in a body.

    Parameters
    ----------
    body : bytes
    kind : str
        ``BINARY`` or ``JSON``.
    survey : SurveyConfiguration

    Raises
    ------
    ArgumentError
        It is not whole, or of another form; the message quotes nothing of it.
    OtherConfiguration
        It names another configuration.
    """
    found = _of_json(body, survey) if kind == JSON else _of_bytes(body, survey)
    if not found:
        raise ArgumentError("the body holds no report")
    size, most = survey.carrier.report_bytes, survey.reports
    for token, signature, records in found:
        if len(token) != PREFIX or len(signature) * 8 != survey.token_key.key_size:
            raise ArgumentError("a token has another length than those of this survey")
        if len(records) % size or not 1 <= len(records) // size <= most:
            raise ArgumentError(
                f"a token of this survey pays for 1 to {most} records of {size} bytes each"
            )
    return found


def write_body(survey: SurveyConfiguration, posts: list[Post]) -> bytes:
    """The body of a post, in bytes."""
    size = survey.carrier.report_bytes
    made = [_HEAD.pack(MAGIC, VERSION, survey.digest, len(posts))]
    for token, signature, records in posts:
        made += [token, signature, _COUNT.pack(len(records) // size), records]
    return b"".join(made)


def _of_bytes(body: bytes, survey: SurveyConfiguration) -> list[Post]:
    if len(body) < _HEAD.size or not body.startswith(MAGIC):
        raise ArgumentError("the body is not a post of reports")
    _, version, digest, number = _HEAD.unpack_from(body)
    if version != VERSION:
        raise ArgumentError(f"the post must be of version {VERSION}")
    if digest != survey.digest:
        raise OtherConfiguration
    size, width = survey.carrier.report_bytes, survey.token_key.key_size // 8
    found: list[Post] = []
    at = _HEAD.size
    for _ in range(number):
        head = at + PREFIX + width
        if head + _COUNT.size > len(body):
            raise ArgumentError("the post ends before its last report")
        (records,) = _COUNT.unpack_from(body, head)
        first = head + _COUNT.size
        end = first + records * size
        if end > len(body):
            raise ArgumentError("the post ends before its last report")
        found.append((body[at : at + PREFIX], body[at + PREFIX : head], body[first:end]))
        at = end
    if at != len(body):
        raise ArgumentError("the post goes on after its last report")
    return found


def _of_json(body: bytes, survey: SurveyConfiguration) -> list[Post]:
    found = read_json(body)
    try:
        if found["configuration"] != survey.digest.hex():
            if isinstance(found["configuration"], str):
                raise OtherConfiguration
            raise ArgumentError("the configuration must be its digest, as text")
        posts = []
        for one in found["posts"]:
            token = decoded(one["token"])
            posts.append((token[:PREFIX], token[PREFIX:], decoded(one["records"])))
        return posts
    except (KeyError, TypeError, IndexError):
        raise ArgumentError(
            'the body must be {"configuration": digest, "posts": [{"token", "records"}, ...]}'
        ) from None


def read_json(body: bytes) -> Any:
    """JSON that is not nested deep, and has no number of many digits.

    Raises
    ------
    ArgumentError
        It is not JSON, or such.
    """
    # Before it is read: a post has no text in which brackets stand.
    if max(body.count(b"["), body.count(b"{")) > MOST_BRACKETS:
        raise ArgumentError("the body has more parts than a post may have")
    try:
        return json.loads(body, parse_int=_no_number, parse_float=_no_number)
    except (ValueError, RecursionError):
        raise ArgumentError("the body is not JSON of texts, lists and objects") from None


def _no_number(_: str) -> None:
    """A post holds no number: so none of a million digits is read."""
    raise ValueError


def decoded(text: Any) -> bytes:
    """Bytes out of base64.

    Raises
    ------
    ArgumentError
        It is none.
    """
    try:
        return base64.b64decode(text, validate=True)
    except (binascii.Error, TypeError, ValueError):
        raise ArgumentError("tokens and records must be in base64") from None
