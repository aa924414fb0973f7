"""Calling code of others on rows, so that nothing it prints, warns of or logs is shown."""

from __future__ import annotations

import contextlib
import io
import logging
import warnings
from collections.abc import Iterator

import numpy as np

__all__ = ["silence"]


@contextlib.contextmanager
def silence() -> Iterator[None]:
    """Nothing that is printed, warned of or logged on the way is shown: it may tell of a row.

    What calls others many times is silent around all of the calls, too: then each is cheaper.

    Examples
    --------
    >>> with silence():
    ...     print("the largest income is 412,000")
    """
    before = logging.root.manager.disable
    with (
        warnings.catch_warnings(),
        contextlib.redirect_stdout(io.StringIO()),
        contextlib.redirect_stderr(io.StringIO()),
        np.errstate(all="ignore"),
    ):
        warnings.simplefilter("ignore")
        _disable(logging.CRITICAL)
        try:
            yield
        finally:
            _disable(before)


def _disable(level: int) -> None:
    """What logging does, unless it is so: each time the memory of each logger is cleared."""
    if logging.root.manager.disable != level:
        logging.disable(level)
