"""The tables that policies are tested on."""

from query.conftest import frames

__all__ = ["frames"]
