"""Where in a text of SQL a refusal belongs."""

from __future__ import annotations

import re
from typing import Any

__all__ = ["places_of"]

PLACE = re.compile(r"\(line (\d+)(?:, column (\d+))?\)")

QUOTED = re.compile(r"'((?:[^'\\]|\\.)+)'")

NAMED = re.compile(r"^(?:[A-Z_]+ of )([^:\s]+)|^([A-Z_]{2,})\b")


def places_of(message: str, sql: str) -> list[dict[str, Any]]:
    """The stretch of a text that a refusal is about; none where that is not known.

    Parameters
    ----------
    message : str
        What the library says: the line and column of what cannot be read, or the name at fault.
    sql : str

    Returns
    -------
    list of dict
        ``from`` and ``to``, counted as browsers count (in UTF-16), and ``message``.

    Examples
    --------
    >>> places_of("unknown column 'costs'; did you mean 'cost'?", "SELECT AVG(costs) FROM visits")
    [{'from': 11, 'to': 16, 'message': "unknown column 'costs'; did you mean 'cost'?"}]
    >>> found = places_of("expected ) at 'FROM' (line 1, column 16)", "SELECT COUNT(* FROM v")
    >>> found[0]["from"], found[0]["to"]
    (15, 19)
    """
    found = _by_line(message, sql) or _by_name(message, sql)
    if found is None:
        return []
    first, last = (len(sql[:at].encode("utf-16-le")) // 2 for at in found)
    return [{"from": first, "to": last, "message": message}]


def _by_line(message: str, sql: str) -> tuple[int, int] | None:
    said = PLACE.search(message)
    if said is None:
        return None
    lines = sql.split("\n")
    line = int(said[1])
    if not 1 <= line <= len(lines):
        return None
    before = sum(len(one) + 1 for one in lines[: line - 1])
    if said[2] is None:
        return before, before + max(len(lines[line - 1]), 1)
    first = before + max(int(said[2]) - 1, 0)
    quoted = QUOTED.search(message)
    length = len(quoted[1]) if quoted else 1
    return first, first + length


def _by_name(message: str, sql: str) -> tuple[int, int] | None:
    """The first name of the message that stands in the text as a whole word."""
    # What is offered in its place comes behind, and must not be taken for it.
    told = re.split(r"; (?:did you mean|known:)", message)[0]
    named = NAMED.search(told)
    names = list(QUOTED.findall(told))
    names += [one for one in (named.groups() if named else ()) if one]
    for name in names:
        where = re.search(rf"(?<!\w){re.escape(name)}(?!\w)", sql, re.IGNORECASE)
        if where is not None:
            return where.span()
    return None
