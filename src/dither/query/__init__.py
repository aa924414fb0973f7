"""Questions of tables in SQL and in Python: the only package where data meets noise.

- ``_builder``, ``_table_rows``, ``_aggregates``, ``_question``: what the analyst calls.
- ``_noise``, ``_explain``, ``_explained_rows``, ``_modes``, ``_preview``: what can be said before
  anything is spent or read.
- ``_release``, ``_certificate`` and ``estimates``: what happens after the charge.
- ``learning``: bounds, limits and keys that are learned.
- ``tables``: what other packages ask of a table.
"""
