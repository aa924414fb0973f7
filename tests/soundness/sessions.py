"""Sessions over small hostile tables, and a watch on what their engine does."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import polars as pl

import dither as dt

MEASURES: Mapping[str, Any] = {
    "g": {"values": ["a", "b", "c", "é"]},
    "i": {"bounds": [0, 110]},
    "j": {"bounds": [-(2**62), 2**62]},
    "x": {"bounds": [-10, 1000], "step": "0.01", "unit": "EUR"},
    "y": {"bounds": [-1, 1]},
    "z": {"bounds": [1, 5], "step": "0.1", "nullable": False},
}


def policy_in(folder: Path, **budget: Any) -> dict[str, Any]:
    """A policy over ``visits`` (units) and ``people`` (rows); ``budget`` overrides."""
    spending = {"epsilon": 1000, "delta": "1e-3", "ledger": str(folder / "soundness.ledger")}
    return {
        "budget": spending | budget,
        "tables": {
            "visits": {"unit": "u", "max_groups": 2, "max_rows": 3, "columns": dict(MEASURES)},
            "people": {"columns": dict(MEASURES)},
        },
    }


def opened(folder: Path, sources: Mapping[str, Any], **budget: Any) -> dt.Session:
    """A session; a table that is not given is empty."""
    empty = pl.DataFrame(
        schema={
            **{"u": pl.Int64, "g": pl.String, "w": pl.String, "n": pl.Int64, "i": pl.Int64},
            **{"j": pl.Int64, "x": pl.Float64, "y": pl.Float64, "z": pl.Float64},
        }
    )
    whole = {"visits": empty, "people": empty.drop("u")} | dict(sources)
    return dt.open(policy_in(folder, **budget), sources=whole)


class Watch:
    """Counts the runs of a session's engine, and everything else it is asked to execute."""

    def __init__(self, session: dt.Session, monkeypatch: Any) -> None:
        self.runs = self.executed = 0
        engine = session._engine
        run, execute = engine.run, engine._execute

        def watched_run(*arguments: Any) -> Any:
            self.runs += 1
            return run(*arguments)

        def watched_execute(*arguments: Any) -> Any:
            self.executed += 1
            return execute(*arguments)

        monkeypatch.setattr(engine, "run", watched_run)
        monkeypatch.setattr(engine, "_execute", watched_execute)


def spent(session: dt.Session) -> list[Any]:
    """What every account that is open has spent so far; all of the policy's before one is."""
    known = session.ledger.accounts()
    return [b.spent for b in session.balance() if b.name in known or not known]
