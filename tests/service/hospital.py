"""A hospital's policy that is served: its file, its people, and calls in this process."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import polars as pl
from starlette.testclient import TestClient

from dither.service._desk import Desk
from dither.service.access._roles import Role
from dither.service.web._app import application

__all__ = ["COUNT", "PEOPLE", "SECRET", "Served", "served", "written"]

PEOPLE = {
    "olga": Role.OWNER,
    "ann": Role.ANALYST,
    "bob": Role.ANALYST,
    "aude": Role.AUDITOR,
}

SECRET = "Quixotic-Zebra-77"
"""A value of the data that no policy declares: search answers for it."""

COUNT = "SELECT COUNT(*) AS n FROM visits"

TABLES = """
[tables.visits]
source = "visits.parquet"
unit = "person"
max_rows = 3
max_groups = 2

[tables.visits.columns]
cost = { bounds = [0, 100] }
region = { values = ["north", "south"] }
beds = { type = "integer", values = [1, 2] }
ill = { type = "integer", values = [0, 1] }

[tables.places]
source = "places.parquet"
public = true
unique = ["region"]
"""


def written(
    folder: Path,
    *,
    name: str = "visits",
    ledger: str = '"visits.ledger"',
    epsilon: float | str = 1000,
    service: str = "",
    more: str = "",
    rows: int = 40,
) -> Path:
    """Write a policy's file and its sources.

    Parameters
    ----------
    folder : Path
    name : str
        In addresses.
    ledger : str
        As TOML.
    epsilon : number
    service : str
        Lines of the section ``[service]``.
    more : str
        Further sections.
    rows : int
    """
    people = [i // 2 for i in range(rows)]
    pl.DataFrame(
        {
            "person": people,
            "cost": [float(i % 100) for i in range(rows)],
            "region": [("north", "south")[i % 2] for i in range(rows)],
            "beds": [1 + i % 2 for i in range(rows)],
            "ill": [i % 2 for i in range(rows)],
            "note": [SECRET] * rows,
        }
    ).write_parquet(folder / "visits.parquet")
    pl.DataFrame({"region": ["north", "south"], "beds": [1, 2]}).write_parquet(
        folder / "places.parquet"
    )
    file = folder / f"{name}.toml"
    file.write_text(
        f"[budget]\nepsilon = {epsilon}\ndelta = 1e-6\nledger = {ledger}\n"
        f'[service]\nname = "{name}"\n{service}\n{more}\n{TABLES}'
    )
    return file


class Served:
    """A service in this process, and a key of each person.

    Parameters
    ----------
    desk : Desk
    http : TestClient
    """

    def __init__(self, desk: Desk, http: TestClient) -> None:
        self.desk, self.http = desk, http
        self.keys: dict[str, str] = {}
        for name, role in PEOPLE.items():
            desk.people.add(name, role)
            self.keys[name] = desk.people.new_key(name, 1).key

    def call(self, who: str | None, method: str, path: str, body: Any = None, **more: Any) -> Any:
        """The answer to one call of somebody, or of nobody."""
        headers = dict(more.pop("headers", {}))
        if who is not None:
            headers["authorization"] = f"Bearer {self.keys.get(who, who)}"
        if body is not None:
            more["json"] = body
        address = path if path.startswith("/v1/") else f"/v1/{self.desk.name}{path}"
        return self.http.request(method, address, headers=headers, **more)

    def get(self, who: str | None, path: str, **query: Any) -> Any:
        """What somebody reads."""
        return self.call(who, "GET", path, params=query)

    def post(self, who: str | None, path: str, body: Mapping[str, Any] | None = None) -> Any:
        """What somebody is answered."""
        return self.call(who, "POST", path, {} if body is None else body)

    def released(self, who: str, **body: Any) -> dict[str, Any]:
        """A release of somebody, waited for."""
        job = self.post(who, "/releases", {"sql": COUNT, "epsilon": "0.5"} | body).json()
        assert "id" in job, job
        found: dict[str, Any] = self.get(who, f"/jobs/{job['id']}", wait=60).json()
        return found


@contextmanager
def served(policies: Path | Sequence[Path], **options: Any) -> Iterator[Served]:
    """Serve a policy; the first of several is whom calls go to."""
    desks = [Desk(one) for one in ([policies] if isinstance(policies, Path) else policies)]
    app = application(desks, **options)
    with TestClient(app, raise_server_exceptions=False, follow_redirects=False) as http:
        yield Served(desks[0], http)
