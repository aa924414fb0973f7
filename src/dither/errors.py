"""Every error that dither raises on purpose.

::

    DitherError
    ├── ArgumentError            an argument is out of range (also a ValueError)
    │   └── NotFittedError       a model is asked before its fit (also an AttributeError)
    ├── PolicyError              the policy is missing, contradictory or incomplete
    ├── QueryError               the question cannot be asked as written
    │   ├── UnknownNameError     no such table, column or function
    │   ├── UnsupportedError     understood, and not offered
    │   └── BoundsError          a bound is missing or cannot be derived
    ├── BudgetError              the account cannot bear the charge
    ├── LedgerError              the ledger cannot be used
    │   ├── LedgerLockedError    another process holds it for too long
    │   ├── LedgerVersionError   it was written by an older or newer version
    │   ├── LedgerCorruptError   it is truncated, or its chain does not hold
    │   ├── CheckpointError      it lacks what a signed checkpoint says that it held
    │   ├── AmendmentError       a signed amendment does not fit: stale, another's, or not signed
    │   ├── PromiseError         a charge is stated for another unit, or for other neighbours
    │   └── TokenError           a request token was used for something else
    ├── RoundError               too few clients came for a round of federated learning
    ├── MissingLibraryError      a library of an extra is not installed (also an ImportError)
    ├── CertificateError         a certificate does not agree with the ledger, its key or its answer
    └── EngineError              the engine failed; what was charged stays charged

A message names the argument or the part of the query, says what was expected and the nearest
thing that would work. No message holds a value of the data: names, types and declared facts only.
"""

from __future__ import annotations

import difflib
from collections.abc import Iterable

__all__ = [
    "AmendmentError",
    "ArgumentError",
    "BoundsError",
    "BudgetError",
    "CertificateError",
    "CheckpointError",
    "DitherError",
    "EngineError",
    "KeyFileError",
    "LedgerCorruptError",
    "LedgerError",
    "LedgerLockedError",
    "LedgerVersionError",
    "MissingLibraryError",
    "NotFittedError",
    "PolicyError",
    "PromiseError",
    "QueryError",
    "RoundError",
    "TokenError",
    "UnknownNameError",
    "UnsupportedError",
    "nearest",
]


class DitherError(Exception):
    """The root of every error that dither raises on purpose."""


class ArgumentError(DitherError, ValueError):
    """An argument is out of range: the message names it, what was wanted and the fix."""


class NotFittedError(ArgumentError, AttributeError):
    """A model is asked for what only a fit gives: call ``fit`` first.

    What `dither.learn` raises is scikit-learn's error of that name as well, where it is installed.
    """


class PolicyError(DitherError):
    """The policy is missing, contradictory or incomplete."""


class QueryError(DitherError):
    """The question cannot be asked as written; nothing was spent."""


class UnknownNameError(QueryError):
    """No table, column or function of that name; the nearest is offered."""


class UnsupportedError(QueryError):
    """The construct was understood and is not offered."""


class BoundsError(QueryError):
    """A bound is missing, cannot be derived, or would not rule out an overflow."""


class BudgetError(DitherError):
    """The account cannot bear the charge: says what remains and the cheapest change that fits."""


class LedgerError(DitherError):
    """The ledger cannot be used."""


class LedgerLockedError(LedgerError):
    """Another process has held the ledger for too long; nothing was charged."""


class LedgerVersionError(LedgerError):
    """The ledger was written in a format that this version of dither does not keep."""


class LedgerCorruptError(LedgerError):
    """The ledger is truncated, or its chain of hashes does not hold."""


class CheckpointError(LedgerError):
    """A ledger is older than a checkpoint of it, forks from it, or is another; nothing was charged.

    Or the checkpoint itself is not one that the owner signed.
    """


class AmendmentError(LedgerError):
    """A signed amendment of caps is not the owner's, or of another state; nothing was changed."""


class PromiseError(LedgerError):
    """A charge is stated for another unit or other neighbours than the account; nothing was spent.

    Losses of different promises cannot be added. The message names both.
    """


class TokenError(LedgerError):
    """A request token was used before, for another request or without a stored answer."""


class RoundError(DitherError):
    """Too few clients came for a round: its sum was not opened, and the round is spent."""


class MissingLibraryError(DitherError, ImportError):
    """Something needs a library that is not installed: names the extra that brings it."""


class KeyFileError(DitherError):
    """An owner's key cannot be read or written, or is not the one that is needed."""


class CertificateError(DitherError):
    """A certificate does not agree with the ledger, the owner's key, or the answer."""


class EngineError(DitherError):
    """The engine failed on the data.

    The message is always the same, so that it tells nothing of the data.
    What was charged stays charged.
    """


def nearest(name: str, known: Iterable[str]) -> str:
    """Offer the nearest known name as the end of an error message.

    Parameters
    ----------
    name : str
        What was asked for.
    known : iterable of str
        Public names only.

    Returns
    -------
    str
        ``"; did you mean 'age'?"``, or the list of what exists, or ``""`` where there is nothing.

    Examples
    --------
    >>> nearest("ages", ["age", "cost"])
    "; did you mean 'age'?"
    >>> nearest("zzz", ["age", "cost"])
    "; known: 'age', 'cost'"
    """
    options = list(dict.fromkeys(known))
    close = difflib.get_close_matches(name.lower(), [o.lower() for o in options], n=1, cutoff=0.6)
    if close:
        match = next(o for o in options if o.lower() == close[0])
        return f"; did you mean {match!r}?"
    if not options:
        return ""
    shown = ", ".join(repr(o) for o in options[:8])
    return f"; known: {shown}" + (", ..." if len(options) > 8 else "")
