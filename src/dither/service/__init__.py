"""A service: a wall between who asks and what is asked.

``dither serve dither.toml`` puts an HTTP service in front of a policy. Whoever asks has a key, and
never the data; what they ask passes the same steps as in Python, and ends in the same ledger.

- ``access``: people, keys, and who may do what.
- ``work``: questions that run in processes of their own, and survive this one.
- ``routes``: what is offered over HTTP, each a few calls of a session.
- ``web``: the application, and where it listens.
- ``client``: ``dither.connect``, which gives programs the same session as a local policy.
- ``dbapi``: the same as a database, for programs that speak to these.
- ``publish``: released answers as tables; ``schedule``: questions that are asked as time goes on.
- ``collect``: reports of the local room, from phones and browsers.
"""

from __future__ import annotations

__all__: list[str] = []
