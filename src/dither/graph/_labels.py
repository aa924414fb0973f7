"""Edges as people hand them in, read alike wherever they come from; no label decides a refusal.

A label is text, bytes, an integer or a finite float; numbers that are equal are one label, whatever
their type. Its key is a byte string: two labels are one if and only if their keys are. What is no
label (None, NaN, an object of somebody's own) ties nobody: its row counts for nothing.
"""

from __future__ import annotations

import hashlib
import math
from collections.abc import Iterable, Iterator
from itertools import islice
from typing import Any

import numpy as np

from dither._columns import array_of
from dither.errors import ArgumentError

__all__ = ["key_of", "pair_order", "read_nodes", "read_pairs"]

_MOST_NODES = 10**7


def key_of(label: Any) -> bytes | None:
    """The key of a label, or None of what is no label. Nothing is raised.

    Examples
    --------
    >>> key_of(1) == key_of(1.0) == key_of(True) != key_of("1")
    True
    >>> key_of(float("nan")), key_of(None), key_of(["a"])
    (None, None, None)
    """
    try:
        if isinstance(label, np.generic):
            label = label.item()
        # The methods of the base classes: a subclass of somebody's own may do anything.
        if isinstance(label, str):
            return b"t" + str.encode(label, "utf-8", "surrogatepass")
        if isinstance(label, bytes):
            return b"b" + bytes.__add__(label, b"")
        if isinstance(label, int):
            return b"n%x" % int.__add__(label, 0)
        if isinstance(label, float) and math.isfinite(label):
            plain = float.__add__(label, 0.0)
            whole = int(plain)
            return b"n%x" % whole if whole == plain else b"f" + plain.hex().encode()
    except Exception:
        # Whatever a type of somebody's own raises must tell nothing of a row.
        return None
    return None


def pair_order(one: bytes, two: bytes) -> bytes:
    """Where a pair of labels stands in the public order of all pairs: a hash of the two alone."""
    low, high = sorted((one, two))
    text = b"dither graph 1\n%d\n" % len(low) + low + high
    # Behind the hash the pair itself, so that no two pairs share a place.
    return hashlib.sha256(text).digest() + text


def read_nodes(nodes: Any) -> dict[bytes, Any]:
    """The public list of nodes, by their keys.

    Raises
    ------
    ArgumentError
        It is no list of distinct labels.
    """
    if isinstance(nodes, int | np.integer) and not isinstance(nodes, bool):
        if not 0 <= nodes <= _MOST_NODES:
            raise ArgumentError(f"nodes must be labels, or a number up to {_MOST_NODES:,}")
        nodes = range(int(nodes))
    try:
        listed = list(nodes) if isinstance(nodes, range) else list(array_of(nodes).tolist())
    except (TypeError, ValueError) as error:
        raise ArgumentError("nodes must be a list of labels, or how many there are") from error
    found: dict[bytes, Any] = {}
    for label in listed:
        key = key_of(label)
        if key is None:
            raise ArgumentError("nodes must be labels: text, bytes, integers or finite floats")
        found[key] = label
    if len(found) < len(listed):
        raise ArgumentError("nodes must be distinct: a label is listed twice")
    return found


def read_pairs(edges: Any) -> Iterator[tuple[Any, Any]]:
    """The pairs of labels of an edge list, of whatever kind; see `Graph`.

    Raises
    ------
    ArgumentError
        It is nothing that holds pairs. What its rows hold decides nothing.
    """
    if isinstance(edges, str | bytes | dict):
        raise ArgumentError(_EXPECTED)
    if hasattr(edges, "edges") and hasattr(edges, "nodes"):
        # A graph of networkx, directed or not; with several edges a pair comes several times.
        return _pairs(list(edges.edges()))
    # A tensor's rows are tensors again, whose numbers are no labels.
    holds = hasattr(edges, "detach") or hasattr(edges, "__array__")
    if holds and not hasattr(edges, "columns") and not isinstance(edges, np.ndarray):
        edges = array_of(edges)
    columns = _columns(edges)
    if columns is not None:
        return zip(*columns, strict=True)
    if not isinstance(edges, Iterable):
        raise ArgumentError(_EXPECTED)
    return _pairs(edges)


_EXPECTED = (
    "edges must be pairs of labels: an array or a frame of two columns, a list of pairs, or a "
    "graph of networkx"
)


def _columns(edges: Any) -> tuple[list[Any], list[Any]] | None:
    """The two columns of an array or a frame, None of what is neither."""
    if isinstance(edges, np.ndarray):
        if edges.ndim == 2 and edges.shape[1] == 2:
            ends = array_of(edges)
            return ends[:, 0].tolist(), ends[:, 1].tolist()
        if edges.size == 0:
            return [], []
        raise ArgumentError("edges must have two columns, one for each end")
    names = getattr(edges, "columns", None)
    if names is None or not hasattr(edges, "shape"):
        return None
    if len(names) != 2:
        raise ArgumentError("edges must have two columns, one for each end: select them")
    if hasattr(edges, "iloc"):
        first, second = edges.iloc[:, 0], edges.iloc[:, 1]
    elif hasattr(edges, "column_names"):
        return edges.column(0).to_pylist(), edges.column(1).to_pylist()
    else:
        first, second = edges.to_series(0), edges.to_series(1)
    return list(first), list(second)


def _pairs(rows: Iterable[Any]) -> Iterator[tuple[Any, Any]]:
    for row in rows:
        try:
            if isinstance(row, str | bytes):
                continue
            # Of a row without an end no more than three items are looked at.
            ends = list(islice(iter(row), 3))
        except Exception:
            continue
        if len(ends) == 2:
            yield ends[0], ends[1]
