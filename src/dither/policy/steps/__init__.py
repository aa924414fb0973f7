"""From a source to a policy in six steps: the questions, in words that all who ask them share."""

from __future__ import annotations

from dither.policy.steps._editing import TomlText
from dither.policy.steps._questions import QUESTIONS, STEPS, PolicyQuestion, answered, asked

__all__ = ["QUESTIONS", "STEPS", "PolicyQuestion", "TomlText", "answered", "asked"]
