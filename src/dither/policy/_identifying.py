"""Columns whose names look as if they said whose a row is.

A name proves nothing, and none that looks otherwise is safe. But a table with a ``patient_id`` in
which each row is protected by itself is mostly a mistake, and one that the ledger then keeps.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from itertools import pairwise

from dither.plan.schema import Kind

__all__ = ["person_keys"]

_PEOPLE = """
account beneficiary borrower buyer cardholder citizen client consumer contact customer donor
driver employee guest household individual insured kunde kunden learner member mitarbeiter owner
parent participant passenger patient patienten people person personnel physician player policyholder
provider pupil resident respondent rider seller student subject subscriber taxpayer teacher tenant
user visitor voter worker
"""
_KEYS = (
    "code guid hash id ident identifier identity key no nr num number pseudonym ref token uid uuid"
)
_ALONE = """
aadhaar cpf curp dni email emailaddress imei imsi mrn msisdn nhs nhsnumber nif nino personnummer
phone phonenumber pid sin ssn uid username
"""

PEOPLE, KEYS = frozenset(_PEOPLE.split()), frozenset(_KEYS.split())
"""What people are called, and what names their keys beside it."""

ALONE = frozenset(_ALONE.split())
"""Names that are a person's key by themselves."""


def person_keys(columns: Mapping[str, Kind | None]) -> list[str]:
    """The columns, of numbers or text, whose names look like a person's key.

    Examples
    --------
    >>> kinds = dict.fromkeys(["patient_id", "UserID", "cost", "id", "patients"], Kind.INTEGER)
    >>> person_keys(kinds)
    ['patient_id', 'UserID']
    """
    held = (Kind.INTEGER, Kind.TEXT, None)
    return [name for name, kind in columns.items() if kind in held and _looks_so(name)]


def _looks_so(name: str) -> bool:
    split = re.sub(r"([a-z0-9])([A-Z])", r"\1 \2", name)
    words = [word.lower() for word in re.split(r"[\W_]+", split) if word]
    if "".join(words) in ALONE | PEOPLE:
        return True
    pairs = pairwise(words)
    if any(first in PEOPLE and second in KEYS for first, second in pairs):
        return True
    if len(words) == 2 and words[0] in KEYS and words[1] in PEOPLE:
        return True
    return any(
        word.startswith(person) and word.removeprefix(person) in KEYS
        for word in words
        for person in PEOPLE
    )
