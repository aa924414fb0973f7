"""Peers of synthetic tables, each in an interpreter of its own: they need other versions.

``benchmarks.synth.tables`` runs this file by the interpreters of the environments that the folder
``SYNTH_PEERS`` holds: ``mbi``, ``dpmm`` and ``smartnoise-synth``, into each of which the package
of that name is installed (mbi==2.0, dpmm==0.1.9, smartnoise-synth==1.0.8). It reads a table of
codes and its domain, writes as many synthetic rows, and prints a line of JSON: seconds, and
megabytes of the process and its children.

mbi brings inference and no mechanism of its own, so MST is written on it here, as its authors
describe it: three parts of rho for columns, for the choice of a tree of pairs, and for those pairs;
cells below three deviations of a column are held as one.
"""

from __future__ import annotations

import itertools
import json
import multiprocessing
import os
import resource
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

Table = dict[str, Any]
"""Columns of codes."""
Made = Callable[[Table, dict[str, int], float, float], Table]


def mst_of_mbi(table: Table, domain: dict[str, int], epsilon: float, delta: float) -> Table:
    """MST on mbi's mirror descent."""
    import jax

    jax.config.update("jax_enable_x64", True)
    from mbi import Dataset, Domain, LinearMeasurement
    from mbi.estimation import MirrorDescent

    rng = np.random.default_rng()
    rho, names = _rho(epsilon, delta), list(domain)
    sigma = (3 / (2 * rho)) ** 0.5
    wide = sigma * len(names) ** 0.5
    kept, columns, sizes, measured = {}, {}, {}, []
    for name in names:
        y = np.bincount(table[name], minlength=domain[name]) + rng.normal(0, wide, domain[name])
        often = y >= 3 * wide
        if often.sum() < 2:
            often[:] = True
        place = np.full(domain[name], int(often.sum()))
        place[often] = np.arange(int(often.sum()))
        kept[name] = (np.flatnonzero(often), np.flatnonzero(~often))
        columns[name] = place[table[name]]
        rest = y[~often]
        sizes[name] = int(often.sum()) + bool(len(rest))
        values = np.append(y[often], rest.sum()) if len(rest) else y
        measured.append(LinearMeasurement(values, (name,), stddev=wide))
    shape = Domain(names, [sizes[name] for name in names])
    data = Dataset(columns, shape)
    rows = len(table[names[0]])
    total = float(rows)
    first = MirrorDescent().estimate(shape, measured, known_total=total, iters=1000)
    off = {
        (a, b): np.abs(
            np.asarray(data.project((a, b)).datavector())
            - np.asarray(first.project((a, b)).datavector())
        ).sum()
        for a, b in itertools.combinations(names, 2)
    }
    step = (8 * (rho / 3) / (len(names) - 1)) ** 0.5
    part = {name: name for name in names}
    pairs = []
    while len(pairs) < len(names) - 1:
        open_ = [p for p in off if part[p[0]] != part[p[1]]]
        scores = 0.5 * step * np.array([off[p] for p in open_])
        chance = np.exp(scores - scores.max())
        a, b = open_[rng.choice(len(open_), p=chance / chance.sum())]
        pairs.append((a, b))
        old, new = part[b], part[a]
        part = {name: new if of == old else of for name, of in part.items()}
    deep = sigma * len(pairs) ** 0.5
    for pair in pairs:
        x = np.asarray(data.project(pair).datavector())
        measured.append(LinearMeasurement(x + rng.normal(0, deep, x.size), pair, stddev=deep))
    model = MirrorDescent().estimate(shape, measured, known_total=total, iters=5000)
    made = model.synthetic_data(rows=rows).to_dict()
    found = {}
    for name in names:
        often, rest = kept[name]
        codes = np.asarray(made[name])
        values = np.append(often, -1)[codes]
        fresh = values < 0
        if fresh.any():
            values[fresh] = rng.choice(rest, int(fresh.sum()))
        found[name] = values
    return found


def of_dpmm(kind: str) -> Made:
    """MST or AIM of dpmm, on the codes as they are; AIM chooses of all triples."""

    def made(table: Table, domain: dict[str, int], epsilon: float, delta: float) -> Table:
        import pandas as pd

        if kind == "aim":
            from dpmm.models.aim import AIMGM as Model

            model = Model(epsilon=epsilon, delta=delta, degree=3, n_jobs=1)
        else:
            from dpmm.models.mst import MSTGM as Model

            model = Model(epsilon=epsilon, delta=delta, n_jobs=1)
        model.set_domain(domain)
        model.set_random_state(np.random.RandomState())
        frame = pd.DataFrame(table)
        model.fit(frame)
        return {name: c.to_numpy() for name, c in model.generate(n_records=len(frame)).items()}

    return made


def of_smartnoise(kind: str) -> Made:
    """MST or AIM of smartnoise-synth; its transformer learns the values that each column has."""

    def made(table: Table, domain: dict[str, int], epsilon: float, delta: float) -> Table:
        import pandas as pd
        from snsynth import Synthesizer

        model = Synthesizer.create(kind, epsilon=epsilon, delta=delta)
        found = model.fit_sample(
            pd.DataFrame(table), categorical_columns=list(domain), preprocessor_eps=0.0
        )
        return {name: found[name].to_numpy().astype(int) for name in domain}

    return made


def _rho(epsilon: float, delta: float) -> float:
    """The largest rho whose zCDP, by its tightest bound of Rényi orders, is (epsilon, delta)."""
    low, high = 0.0, epsilon + 1.0
    orders = 1 + np.geomspace(1e-4, 1e6, 4000)
    for _ in range(60):
        rho = (low + high) / 2
        logs = (orders - 1) * (orders * rho - epsilon) + orders * np.log1p(-1 / orders)
        small = np.exp(logs - np.log(orders - 1)).min() <= delta
        low, high = (rho, high) if small else (low, rho)
    return low


SIDES: dict[str, Made] = {
    "mbi-mst": mst_of_mbi,
    "dpmm-mst": of_dpmm("mst"),
    "dpmm-aim": of_dpmm("aim"),
    "smartnoise-mst": of_smartnoise("mst"),
    "smartnoise-aim": of_smartnoise("aim"),
}


def main() -> None:
    """Arguments: side, table, domain, epsilon, delta, where to write."""
    side, source, shape, epsilon, delta, out = sys.argv[1:]
    domain = json.loads(Path(shape).read_text())
    lines = Path(source).read_text().splitlines()
    cells = np.array([line.split(",") for line in lines[1:]], dtype=np.int64)
    named = dict(zip(lines[0].split(","), cells.T, strict=True))
    table = {name: named[name] for name in domain}
    start = time.perf_counter()
    made = SIDES[side](table, domain, float(epsilon), float(delta))
    seconds = time.perf_counter() - start
    rows = zip(*(made[name].tolist() for name in domain), strict=True)
    text = "\n".join([",".join(domain), *(",".join(map(str, row)) for row in rows)])
    Path(out).write_text(f"{text}\n")
    most = sum(
        resource.getrusage(who).ru_maxrss
        for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN)
    )
    print(json.dumps({"seconds": seconds, "megabytes": most / 2**10}))


if __name__ == "__main__":
    os.environ.setdefault("TQDM_DISABLE", "1")
    multiprocessing.freeze_support()
    main()
