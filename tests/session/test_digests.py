"""What a token stands for, of every kind of question: a change breaks the tokens of old ledgers."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import polars as pl
import pytest

from dither.session._request import PricedQuestion, Request

SYNTHETIC = pl.DataFrame({"region": ["north", "south", "north"]})

KINDS: dict[str, Any] = {
    "query": lambda s: s.sql("SELECT region, AVG(cost) AS c FROM visits GROUP BY region"),
    "inference": lambda s: s.table("visits").infer(1, "1e-7").mean("cost"),
    "regression": lambda s: s.table("visits").infer(1, "1e-7").regression("cost ~ age"),
    "marginals": lambda s: s.table("visits").marginals([["region"], ["age"]], 1, "1e-7"),
    "comparison": lambda s: s.table("visits").compare(SYNTHETIC, [["region"]], 1, "1e-7"),
    "ranges": lambda s: s.table("visits").ranges("age", epsilon=1, delta=0, bins=8),
    "synthesis": lambda s: s.table("visits").synthesis(1, "1e-7", columns=["region", "age"]),
    "additive": lambda s: s.table("visits").learn(1, "1e-7").additive("region ~ age"),
    "forest": lambda s: s.table("visits").learn(1, "1e-7").forest("region ~ age"),
    "naive Bayes": lambda s: s.table("visits").learn(1, "1e-7").naive_bayes("region ~ age"),
    "linear": lambda s: s.table("visits").learn(1, "1e-7").linear("cost ~ age"),
}

DIGESTS = {
    "query": "f79582d415deeb0d",
    "inference": "752495c6c28e90c6",
    "regression": "550d8d25e8254cab",
    "marginals": "84030677593e2500",
    "comparison": "de9667cd5c88442e",
    "ranges": "a5e0bc24b61f7668",
    "synthesis": "c8b4d13fcd6b709a",
    "additive": "f0e80e27b4e4183d",
    "forest": "dd580c15741014bb",
    "naive Bayes": "57e6941391d0a7f2",
    "linear": "550d8d25e8254cab",
}


def request_of(session: Any, name: str) -> Request:
    """What a release would ask for."""
    if name in ("inference", "regression", "linear"):
        pytest.importorskip("scipy")
    asked = KINDS[name](session)
    if isinstance(asked, PricedQuestion):
        return asked._request(lambda _: None)
    return asked._request(1, "1e-7", 0.95)


@pytest.mark.parametrize("name", KINDS)
def test_the_digest_of_a_request(people, name) -> None:
    """Under a policy that is named: where its ledger is, is a part of the policy's own digest."""
    data = replace(request_of(people, name).data, policy="0" * 64)
    assert data.digest[:16] == DIGESTS[name]
