"""The functions of a row's values: each declared once, with its kinds, facts, meaning and words.

A query holds one as ``expressions.Call``. An engine has a form of it in SQL, a method of its
dialect (``engines/writer/functions.py``), and ``sql/functions.py`` says how it is read.
"""

from __future__ import annotations

from collections.abc import Mapping

from dither.plan.functions._signature import Option, Signature, mapped
from dither.plan.functions.casts import CASTS
from dither.plan.functions.dates import DATES, part_of
from dither.plan.functions.numbers import NUMBERS
from dither.plan.functions.texts import TEXTS

__all__ = ["FUNCTIONS", "Option", "Signature", "mapped", "part_of"]

FUNCTIONS: Mapping[str, Signature] = {
    signature.name: signature for signature in (*NUMBERS, *TEXTS, *DATES, *CASTS)
}
"""By name."""
