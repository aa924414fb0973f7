"""Files on Spark in folders that are named by the column of blocks: those of others are not opened.

Spark finds a folder's columns by opening its files, and types of folders' keys by looking at all of
their names. Here one file that can be read says which columns there are, and every key is text. So
a query opens the files of the blocks that it keeps, and no others; what these are is held against
what they were, with their columns, before each charge and around each run.
"""

from __future__ import annotations

import re
from collections.abc import Collection
from typing import Any
from urllib.parse import unquote

from dither.engines.files import NO_VALUE, Wanted

__all__ = ["Part", "kept", "key_of", "parts_of", "read_parted", "same_columns"]

Part = tuple[str, int, Any]
"""The path of a file, its size, and when it was written."""


def parts_of(session: Any, roots: Collection[str]) -> frozenset[Part]:
    """The files below, with their sizes and times; none is opened."""
    reader = session.read.format("binaryFile").option("recursiveFileLookup", "true")
    asked = reader.load(list(roots)).select("path", "length", "modificationTime")
    return frozenset((row[0], row[1], row[2]) for row in asked.collect())


def key_of(path: str, key: str) -> str | None:
    """The text of a key in the names of the folders above a file; ``None`` is NULL.

    Raises
    ------
    ValueError
        Where no folder has it.
    """
    found = re.findall(rf"(?<=/){re.escape(key)}=([^/]*)(?=/)", path)
    if not found:
        raise ValueError(key)
    text = unquote(unquote(found[-1]))
    return None if text == NO_VALUE else text


def read_parted(session: Any, path: str, form: str, key: str) -> Any:
    """The rows of files that are parted by a key, all keys text; ``None`` where they are not."""
    from pyspark.sql.types import StringType, StructField, StructType

    files = sorted(file for file, _, _ in parts_of(session, [path]))
    try:
        for file in files:
            key_of(file, key)
    except ValueError:
        return None
    for file in files:
        try:
            fields = session.read.format(form).option("basePath", path).load(file).schema.fields
        except Exception:
            continue
        keys = set(re.findall(r"(?<=/)([^/=]+)=[^/]*(?=/)", file))
        typed = [StructField(f.name, StringType()) if f.name in keys else f for f in fields]
        return session.read.format(form).schema(StructType(typed)).load(path)
    return None


def same_columns(
    session: Any, root: str, form: str, files: Collection[str], columns: dict[str, str], key: str
) -> bool:
    """Whether files have the columns that were found, of the same types; keys are left aside."""
    if not files:
        return True
    reader = session.read.format(form).option("mergeSchema", "true").option("basePath", root)
    found = {f.name: f.dataType.simpleString() for f in reader.load(sorted(files)).schema.fields}
    keys = set(re.findall(r"(?<=/)([^/=]+)=[^/]*(?=/)", next(iter(files)))) | {key}
    return {n: k for n, k in found.items() if n not in keys} == {
        n: k for n, k in columns.items() if n not in keys
    }


def kept(parts: Collection[Part], key: str, wanted: Wanted) -> frozenset[Part]:
    """Those of some texts of the key."""
    return frozenset(part for part in parts if wanted(key_of(part[0], key)))
