"""Questions by forms: each made of one description, which the signature in Python gives."""

from __future__ import annotations

from dither.service.page.forms._kinds import KINDS, FormKind, form_of, kind_of

__all__ = ["KINDS", "FormKind", "form_of", "kind_of"]
