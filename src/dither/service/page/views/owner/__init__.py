"""What owners decide on the page: the policy and the people."""

from __future__ import annotations

from dither.service.page.views.owner import attack, people, policy

__all__ = ["VIEWS"]

VIEWS = [*policy.VIEWS, *people.VIEWS, *attack.VIEWS]
