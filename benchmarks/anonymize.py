"""Anonymising Adult and a table of 3 million rows: ours, anjana and pycanon in the same run.

Run with ``python -m benchmarks.anonymize --data FOLDER``, a folder that holds ``adult_uci.csv``
(the 1994 census extract of the UCI repository) and ``adult_hierarchies/`` (one CSV file a column,
as the ARX project ships them). Without it, the statsmodels survey ``fair`` stands in. Every
figure is the best of several wall-clock timings, output included.
"""

from __future__ import annotations

import argparse
import contextlib
import io
import math
import time
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import polars as pl

from dither.lab.anonymize import generalize, hierarchy, intervals, measure, mondrian, suppression

QUASI = ["sex", "age", "race", "marital-status", "education", "native-country", "workclass"]
QUASI += ["occupation"]
SENSITIVE = "salary-class"


def best(work: Callable[[], Any], times: int) -> tuple[float, Any]:
    """The shortest of several timings, in seconds, and the last result."""
    taken, found = [], None
    for _ in range(times):
        start = time.perf_counter()
        found = work()
        taken.append(time.perf_counter() - start)
    return min(taken), found


def adult(folder: Path) -> tuple[pl.DataFrame, dict[str, Any]]:
    """The 30,162 complete rows, and a hierarchy for each quasi-identifier."""
    raw = pl.read_csv(folder / "adult_uci.csv")
    raw = raw.rename({name: name.strip() for name in raw.columns})
    raw = raw.with_columns(pl.col(pl.String).str.strip_chars()).rename({"Salary": SENSITIVE})
    complete = raw.filter(~pl.any_horizontal(pl.col(pl.String) == "?"))
    files = {q: folder / "adult_hierarchies" / f"adult_hierarchy_{q}.csv" for q in QUASI}
    frame = complete.select(*QUASI, SENSITIVE).drop_nulls()
    frame = frame.with_columns(pl.col("age").cast(pl.Int64))
    return frame, {name: hierarchy(path) for name, path in files.items()}


def survey() -> tuple[pl.DataFrame, dict[str, Any]]:
    """A stand-in that statsmodels ships."""
    from statsmodels.datasets import fair

    data = pl.from_pandas(fair.load_pandas().data)
    frame = data.drop("affairs").with_columns(
        pl.when(data["affairs"] > 0).then(pl.lit("yes")).otherwise(pl.lit("no")).alias(SENSITIVE)
    )
    names = [name for name in frame.columns if name != SENSITIVE]
    trees: dict[str, Any] = {name: suppression() for name in names}
    trees["age"] = trees["yrs_married"] = intervals([5, 10, 20])
    return frame, trees


def enlarged(frame: pl.DataFrame, rows: int) -> pl.DataFrame:
    """Rows drawn again, with 15 % of each column's cells from other rows: many distinct tuples."""
    draws = np.random.default_rng(0)
    base = draws.integers(0, frame.height, rows)
    columns = []
    for name in frame.columns:
        other = draws.integers(0, frame.height, rows)
        columns.append(frame[name].gather(np.where(draws.random(rows) < 0.15, other, base)))
    return pl.DataFrame(columns)


def quietly(work: Callable[[], Any]) -> Callable[[], Any]:
    """The work without its warnings and prints."""

    def run() -> Any:
        with warnings.catch_warnings(), contextlib.redirect_stdout(io.StringIO()):
            warnings.simplefilter("ignore")
            return work()

    return run


def line(what: str, seconds: float, note: str = "") -> None:
    """One figure."""
    print(f"{what:44} {seconds:9.3f} s  {note}", flush=True)


def ours(frame: pl.DataFrame, trees: dict[str, Any], k: int, times: int) -> Any:
    """Lattice, Mondrian and every check; the lattice's release."""
    quasi = list(trees)
    seconds, found = best(lambda: generalize(frame, quasi, trees, k, 0.05), times)
    note = f"loss {found.loss:.4f}, {found.tried:,} of {found.nodes:,} nodes tried"
    line("dither lattice, certain optimum", seconds, note)
    seconds, boxes = best(lambda: mondrian(frame, quasi, k), times)
    line("dither Mondrian", seconds, f"loss {boxes.loss:.4f}, {boxes.measures.classes:,} classes")
    release = found.frame.select(*quasi, SENSITIVE)
    seconds, _ = best(lambda: measure(release, quasi, SENSITIVE, distance="equal"), times)
    line("dither, all checks of the lattice's release", seconds)
    return release


def loss_of(rows: Any, total: int, trees: dict[str, Any]) -> float:
    """The same loss for a peer's release: leaves under each label, 1 for a row left out."""
    cost = float(total - len(rows))
    for name, tree in trees.items():
        table = tree.frame
        spread: dict[str, float] = {}
        for level in reversed(table.columns):
            for label, leaves in table.group_by(level).len().iter_rows():
                spread[str(label)] = (leaves - 1) / max(table.height - 1, 1)
        cost += sum(spread[str(value)] for value in rows[name]) / len(trees)
    return cost / total


def anjana(frame: pl.DataFrame, trees: dict[str, Any], k: int) -> None:
    """anjana's k-anonymity on the same rows and hierarchies."""
    try:
        from anjana.anonymity import k_anonymity
    except ImportError:
        print("anjana is not installed (make bench installs it): not measured")
        return
    quasi = list(trees)
    texts = frame.select(pl.col(quasi).cast(pl.String), SENSITIVE).to_pandas().astype(object)
    levels = {
        name: {i: tree.frame[str(i)].to_numpy().astype(object) for i in range(tree.frame.width)}
        for name, tree in trees.items()
        if hasattr(tree, "frame")
    }
    if len(levels) < len(quasi):
        print("anjana takes tables alone, not rules: not measured")
        return
    work = quietly(lambda: k_anonymity(texts, [], list(quasi), k, 5, levels))
    # It was written for a pandas whose texts are objects.
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        pd.set_option("future.infer_string", False)
        seconds, found = best(work, 3)
        pd.reset_option("future.infer_string")
    loss = f"loss {loss_of(found, frame.height, trees):.4f}"
    line("anjana, greedy", seconds, loss)


def pycanon(release: pl.DataFrame, quasi: list[str]) -> None:
    """pycanon's checks of the same release, and whether they agree."""
    try:
        from pycanon import anonymity as peer
    except ImportError:
        print("pycanon is not installed (make bench installs it): not measured")
        return
    table = release.to_pandas()
    found = measure(release, quasi, SENSITIVE, distance="equal")
    mine = found.sensitive[SENSITIVE]
    total = 0.0
    for name, check, value in (
        ("k", lambda: peer.k_anonymity(table, quasi), found.k),
        ("distinct l", lambda: peer.l_diversity(table, quasi, [SENSITIVE]), mine.distinct_l),
        ("alpha", lambda: peer.alpha_k_anonymity(table, quasi, [SENSITIVE])[0], mine.alpha),
        ("t, equal", lambda: peer.t_closeness(table, quasi, [SENSITIVE]), mine.t),
        ("basic beta", lambda: peer.basic_beta_likeness(table, quasi, [SENSITIVE]), mine.beta),
        ("delta", lambda: peer.delta_disclosure(table, quasi, [SENSITIVE]), mine.delta_present),
    ):
        seconds, said = best(quietly(check), 2)
        total += seconds
        same = "equal to ours" if math.isclose(said, value, abs_tol=1e-9) else f"{said} / {value}"
        line(f"pycanon, {name}", seconds, same)
    line("pycanon, these six", total)


def main() -> None:
    """Print every figure."""
    parser = argparse.ArgumentParser(description=__doc__)
    beside = Path(__file__).parents[2] / "shared" / "data"
    parser.add_argument("--data", type=Path, default=beside, help="where Adult lies")
    parser.add_argument("--rows", type=int, default=3_000_000)
    options = parser.parse_args()
    if (options.data / "adult_uci.csv").is_file():
        frame, trees = adult(options.data)
        name = "Adult"
    else:
        frame, trees = survey()
        name = "fair (Adult is not in --data)"
    print(f"{name}: {frame.height:,} rows, {len(trees)} quasi-identifiers, k = 5, 5 % left out")
    release = ours(frame, trees, 5, 7)
    anjana(frame, trees, 5)
    pycanon(release, list(trees))
    large = enlarged(frame, options.rows)
    print(f"\n{large.height:,} rows, k = 10")
    ours(large, trees, 10, 2)


if __name__ == "__main__":
    main()
