"""Generated plans over every source and writer, with declared facts that are false.

``soundness.adversary`` says what the adversary controls. ``DITHER_EXAMPLES`` makes a long run.
"""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st

from dither.engines.duckdb import DuckDBEngine, FileSource, FrameSource, parquet
from dither.errors import DitherError, EngineError
from dither.plan.lowering.lower import Plan
from dither.plan.schema import Schema
from engines.hostile import KEY
from soundness.adversary import (
    LIES,
    ONLY_TEXT,
    UNITS,
    WRITERS,
    Units,
    drawn_files,
    lying,
    public,
    stored,
)
from soundness.queries import queries
from soundness.tables import MEASURED, Pair, Row, planned, schema_of, violations

EXAMPLES = int(os.environ.get("DITHER_EXAMPLES", "2"))
QUESTIONS = 6
"""Plans that are run over each pair of neighbours: opening files takes longer than asking."""

SETTINGS = settings(
    max_examples=EXAMPLES,
    deadline=None,
    derandomize="DITHER_EXAMPLES" not in os.environ,
    suppress_health_check=list(HealthCheck),
    # Shrinking would write hundreds of files: an example names its seeds, and can be cut by hand.
    phases=[Phase.explicit, Phase.reuse, Phase.generate],
)

limits = st.fixed_dictionaries(
    {
        "max_groups": st.sampled_from((1, 2, 50)),
        "max_rows": st.sampled_from((1, 3, 40)),
        "max_join_rows": st.sampled_from((1, 3)),
        "replace_one": st.booleans(),
    }
)


def opened(
    folder: Path, form: str, rows: dict[str, Sequence[Row]], units: Units, as_text: Any, group: int
) -> DuckDBEngine:
    """An engine over rows that are written as ``form`` says."""
    folder.mkdir(exist_ok=True)
    sources: dict[str, Any] = {}
    for name, content in rows.items():
        made = WRITERS[form](folder / name, stored(name, content, units, as_text), group)
        unit = "u" if name in ("visits", "labs") else None
        if isinstance(made, Path):
            made = FileSource(made, made.suffix[1:], unit=unit)
        sources[name] = made if isinstance(made, FileSource) else FrameSource(made, unit)
    return DuckDBEngine(sources, threads=1)


def plans(asked: Sequence[tuple[str, bool]], schema: Schema, engine: DuckDBEngine) -> list[Plan]:
    """The plans of what is offered; what is refused before the charge is not an example."""
    tables = {n: replace(t, complete=engine.complete(n)) for n, t in schema.tables.items()}
    found = []
    for sql, discover in asked:
        try:
            plan = planned(sql, replace(schema, tables=tables), discover=discover)
            engine.prepare(plan.job, plan.schema)
        except DitherError:
            continue
        found.append(plan)
    return found


def faults(
    folder: Path,
    form: str,
    pair: Pair,
    units: Units,
    schema: Schema,
    asked: Sequence[tuple[str, bool]],
    *,
    lies: Sequence[str] = (),
    group: int = 5,
) -> list[str]:
    """Every question whose answers move further than is claimed, or that fails."""
    as_text = [c.name for c in MEASURED if c.name in "nxdbt"] if "types" in lies else []
    as_text = [*as_text, "v"] if "types" in lies else as_text
    known = public(lies)
    sides = [
        opened(folder / side, form, {**rows, **known}, units, as_text, group)
        for side, rows in (("one", pair.first), ("other", pair.second))
    ]
    found = []
    try:
        for plan in plans(asked, schema, sides[0]):
            try:
                answers = [engine.run(plan.job, plan.schema, KEY) for engine in sides]
            except EngineError:
                found.append(f"{plan.query}: the engine failed on a value")
                continue
            found += [f"{plan.query}: {fault}" for fault in violations(plan, *answers)]
    finally:
        for engine in sides:
            engine.close()
    return found


@pytest.mark.parametrize("form", WRITERS)
@SETTINGS
@given(data=st.data())
def test_no_source_moves_an_answer_further_than_claimed(form, tmp_path, data):
    """All measurements of every plan, over every source, whatever is declared."""
    lies = data.draw(st.lists(st.sampled_from(LIES), max_size=3, unique=True), "lies")
    unit = "text" if form in ONLY_TEXT else data.draw(st.sampled_from(sorted(UNITS)), "unit")
    bounds = data.draw(limits, "limits")
    pair = drawn_files(
        data.draw(st.integers(0, 2**32), "seed"),
        UNITS[unit],
        replace_one=bounds["replace_one"],
        most=data.draw(st.sampled_from((1, 4, 60)), "most"),
        calm=data.draw(st.booleans(), "calm"),
    )
    schema = lying(schema_of(**bounds), UNITS[unit], lies)
    asked = data.draw(
        st.lists(
            st.tuples(queries(hostile=True), st.integers(0, 4).map(lambda n: n == 0)),
            min_size=QUESTIONS,
            max_size=QUESTIONS,
        ),
        "asked",
    )
    group = data.draw(st.sampled_from((1, 3, 1000)), "row group")
    assert faults(tmp_path, form, pair, UNITS[unit], schema, asked, lies=lies, group=group) == []


# --- faults that files alone have -----------------------------------------------------------------

NAN = float("nan")
FORMS = [form for form in WRITERS if form not in ONLY_TEXT]


def alone(row: dict[str, Any], others: Sequence[dict[str, Any]]) -> Pair:
    """Neighbours in ``people`` that differ in one row."""
    plain = dict.fromkeys((c.name for c in MEASURED), None)
    rest = [{**plain, **other} for other in others]
    empty: dict[str, list[Row]] = {"visits": [], "labs": []}
    return Pair({"people": [*rest, {**plain, **row}], **empty}, {"people": rest, **empty})


@pytest.mark.parametrize("form", FORMS)
def test_one_row_decides_nothing_about_rows_with_nan(tmp_path, form):
    """Where a file's statistics leave NaN out, no test of a value may be answered from them."""
    others = [{"x": NAN, "y": NAN, "r": NAN}] * 30 + [{"x": 0.5, "y": 0.5, "r": 0.5}]
    conditions = ("x <= 1", "r <= 1", "y BETWEEN 0 AND 1", "r IS NOT NULL", "x = x", "NOT r > 1")
    asked = [(f"SELECT COUNT(*) AS n FROM people WHERE {c}", False) for c in conditions]
    asked += [
        ("SELECT COUNT(x) AS x, COUNT(y) AS y, COUNT(r) AS r, SUM(y) AS s FROM people", False)
    ]
    pair = alone({"x": 5.0, "y": 5.0, "r": 5.0}, others)
    assert faults(tmp_path, form, pair, UNITS["integer"], schema_of(), asked, group=1000) == []


@pytest.mark.parametrize("form", FORMS)
def test_a_null_where_none_is_declared_moves_no_further(tmp_path, form):
    """``nullable = false`` chooses between forms that are all safe."""
    schema = lying(schema_of(), UNITS["integer"], ["nullable"])
    operands = ("LEAST(z, y)", "LEAST(z, CLAMP(n, -9, 9))", "GREATEST(z, x)", "COALESCE(z, j)")
    operands += tuple(
        f"CLAMP({raw}, -10, 10)" for raw in ("LEAST(z, r)", "GREATEST(z, r)", "COALESCE(z, n)")
    )
    operands += ("LEAST(i, CLAMP(n, -9, 10000000000))", "GREATEST(i, CLAMP(n, -10000000000, 9))")
    # All in one: each has a claim of its own, and asking is what takes long.
    sums = ", ".join(f"SUM({operand}) AS s{i}" for i, operand in enumerate(operands))
    asked = [(f"SELECT {sums} FROM people", False)]
    assert planned(asked[0][0], schema).job.measurements
    for own, whole in ((1e9, 10**9), (-1e308, -(10**9))):
        mine = {"z": None, "y": own, "r": own, "x": own, "n": whole}
        pair = alone(mine, [{"z": 2.0, "y": 0.5, "r": 1.0, "n": 1}] * 3)
        assert faults(tmp_path, form, pair, UNITS["integer"], schema, asked) == []


# --- a mutant: units read as what they are not --------------------------------------------------


def spelt(units: dict[str, str]) -> list[Row]:
    """Six rows of each unit, in the one group that is named beside it."""
    plain = dict.fromkeys((c.name for c in MEASURED), None)
    return [
        {"u": unit, **plain, "g": group, "x": 1000.0}
        for unit, group in units.items()
        for _ in range(6)
    ]


@pytest.mark.parametrize("form", ["CSV", "Parquet by Polars", "a DuckDB table"])
def test_units_that_are_merged_are_caught(form, tmp_path):
    """Were text units read as numbers, the rows of '7.4' would decide which of '7' are kept."""
    schema = schema_of(max_groups=1, max_rows=2)
    asked = [("SELECT g, SUM(x) AS s, COUNT(*) AS n FROM visits GROUP BY g", False)]
    found: dict[str, list[str]] = {"honest": [], "merged": []}
    # Whichever of the two groups the hash prefers, one of the pairs has it at the other unit.
    for mine, others in (("a", "b"), ("b", "a")):
        visits = spelt({"7": mine, "7.4": others})
        nobody: dict[str, list[Row]] = {"labs": [], "people": []}
        pair = Pair({"visits": visits, **nobody}, {"visits": visits[:6], **nobody})
        for name, read in (("honest", lying(schema, UNITS["text"], [])), ("merged", schema)):
            found[name] += faults(tmp_path, form, pair, UNITS["text"], read, asked)
    assert found["honest"] == []
    assert found["merged"]


def test_units_that_are_merged_by_replaced_bytes_are_caught(tmp_path, monkeypatch):
    """Were bytes of identifiers replaced as in other text, one person's rows would decide which of
    another's are kept."""
    form = "Parquet by pyarrow, of text that is not UTF-8"
    schema = lying(schema_of(max_groups=1, max_rows=2), UNITS["text"], [])
    asked = [("SELECT g, SUM(x) AS s, COUNT(*) AS n FROM visits GROUP BY g", False)]
    nobody: dict[str, list[Row]] = {"labs": [], "people": []}
    pairs = []
    for mine, others in (("a", "b"), ("b", "a")):
        visits = spelt({"7": mine, "7.4": others})
        pairs.append(Pair({"visits": visits, **nobody}, {"visits": visits[:6], **nobody}))
    honest = [faults(tmp_path, form, pair, UNITS["text"], schema, asked) for pair in pairs]
    assert honest == [[], []]

    def direct(path, unit=None, own=parquet.direct):
        return own(path)

    monkeypatch.setattr(parquet, "arrow_route", lambda *_: None)
    monkeypatch.setattr(parquet, "direct", direct)
    merged = [faults(tmp_path, form, pair, UNITS["text"], schema, asked) for pair in pairs]
    assert any(merged)
