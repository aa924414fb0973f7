"""Released answers as tables, which every program reads with the driver that it has.

- ``_settings``: the section ``[publish]``.
- ``_forms``: what was released, of whatever kind, as tables with intervals.
- ``_duckdb``, ``_folder``, ``_server``: where they are written, whole or not at all.
- ``_publish``: publishing, from a session or from the ledger's stored answers.
- ``_rows``: what stands in the tables; ``_checking``: whether they hold.
"""

from __future__ import annotations

from dither.service.publish._checking import verify_published
from dither.service.publish._publish import Publication, publish, publish_entry
from dither.service.publish._settings import DeclaredPublish, read_publish

__all__ = [
    "DeclaredPublish",
    "Publication",
    "publish",
    "publish_entry",
    "read_publish",
    "verify_published",
]
