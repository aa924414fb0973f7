"""What peers say of releases that `benchmarks.assess` wrote: run by the interpreter that has them.

``python peers.py FOLDER`` prints a line of JSON for each world of the folder: by peer, a
number that is the larger, the more it finds. It needs pandas, pyarrow and the peers, no dither.
"""

from __future__ import annotations

import contextlib
import importlib
import io
import json
import sys
import time
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

ATTACKS = 150


def anonymeter(original: Any, release: Any, control: Any) -> float:
    """The largest risk of its three evaluators, each less that of the control."""
    from anonymeter.evaluators import (
        InferenceEvaluator,
        LinkabilityEvaluator,
        SinglingOutEvaluator,
    )

    columns = list(original.columns)
    many = min(ATTACKS, len(control))
    risks = []
    for mode in ("univariate", "multivariate"):
        with contextlib.suppress(Exception):  # it raises where it finds too few predicates
            one = SinglingOutEvaluator(
                ori=original, syn=release, control=control, n_attacks=many, n_cols=3,
                max_attempts=20_000, seed=1,
            )  # fmt: skip
            one.evaluate(mode=mode)
            risks.append(one.risk().value)
    half = (columns[::2], columns[1::2])
    link = LinkabilityEvaluator(
        ori=original, syn=release, control=control, aux_cols=half, n_attacks=many
    )
    link.evaluate(n_jobs=1)
    risks.append(link.risk().value)
    for secret in columns:
        infer = InferenceEvaluator(
            ori=original, syn=release, control=control, secret=secret, n_attacks=many,
            aux_cols=[c for c in columns if c != secret],
            regression=original[secret].dtype.kind == "f",
        )  # fmt: skip
        infer.evaluate(n_jobs=1)
        risks.append(infer.risk().value)
    return float(max(risks))


def pycanon(original: Any, release: Any, control: Any) -> float:
    """One over k, of all columns but the last."""
    from pycanon.anonymity import k_anonymity

    return 1.0 / float(k_anonymity(release, list(release.columns)[:-1]))


def anjana(original: Any, release: Any, control: Any) -> float:
    """One over the largest k that it takes the rows for without leaving any out."""
    from anjana.anonymity import k_anonymity

    quasi, held = list(release.columns)[:-1], 1
    for k in range(2, 31):
        with contextlib.suppress(KeyError):  # of a hierarchy that it would need, and has not
            if len(k_anonymity(release, [], quasi, k, 0, {})) == len(release):
                held = k
                continue
        break
    return 1.0 / held


PEERS: dict[str, Callable[[Any, Any, Any], float]] = {
    "anonymeter": anonymeter,
    "pycanon": pycanon,
    "anjana": anjana,
}


def main(folder: str) -> None:
    """Every world, by every peer that is installed."""
    import pandas as pd

    warnings.simplefilter("ignore")
    there = {}
    for name, peer in PEERS.items():
        with contextlib.suppress(ImportError):
            importlib.import_module(name)
            there[name] = peer
    for world in sorted(Path(folder).iterdir()):
        tables = [pd.read_parquet(world / f"{n}.parquet") for n in ("table", "release", "control")]
        said: dict[str, float | str] = {}
        seconds: dict[str, float] = {}
        for name, peer in there.items():
            start = time.process_time()
            try:
                with contextlib.redirect_stdout(io.StringIO()):
                    said[name] = peer(*tables)
            except Exception as error:
                said[name] = f"{type(error).__name__}: {str(error)[:80]}"
            seconds[name] = time.process_time() - start
        print(json.dumps({"world": world.name, "said": said, "seconds": seconds}), flush=True)


if __name__ == "__main__":
    main(sys.argv[1])
