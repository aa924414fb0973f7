"""Changing a served policy: what a draft says, what it may not, and how it is taken up."""

from __future__ import annotations

from dither.service.policies._bias import LimitRow, biases, biases_of
from dither.service.policies._draft import DraftFinding, PolicyDraft
from dither.service.policies._places import files_of, inside
from dither.service.policies._saving import before, save, text_of, undo

__all__ = [
    "DraftFinding",
    "LimitRow",
    "PolicyDraft",
    "before",
    "biases",
    "biases_of",
    "files_of",
    "inside",
    "save",
    "text_of",
    "undo",
]
