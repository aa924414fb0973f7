"""The sessions that questions are tested on."""

from query.conftest import frames, people, session

__all__ = ["frames", "people", "session"]
