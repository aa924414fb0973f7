"""The exceptions of PEP 249."""

from __future__ import annotations

__all__ = [
    "DataError",
    "DatabaseError",
    "Error",
    "IntegrityError",
    "InterfaceError",
    "InternalError",
    "NotSupportedError",
    "OperationalError",
    "ProgrammingError",
    "Warning",
]


class Warning(Exception):  # noqa: A001 - PEP 249 calls it so
    """Something that should be known."""


class Error(Exception):
    """The root of the others."""


class InterfaceError(Error):
    """The module is used in a way that it does not allow."""


class DatabaseError(Error):
    """Something of the service's."""


class DataError(DatabaseError):
    """Of data; never raised, since nothing that a row holds can make a question fail."""


class OperationalError(DatabaseError):
    """The budget, the engine or the connection."""


class IntegrityError(DatabaseError):
    """Never raised: nothing can be written."""


class InternalError(DatabaseError):
    """Never raised."""


class ProgrammingError(DatabaseError):
    """The statement cannot be asked as written."""


class NotSupportedError(DatabaseError):
    """What this module does not offer."""
