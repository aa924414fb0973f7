"""What was released, of whatever kind, as tables: keys, values, and beside each value its interval.

Columns are named ``NAME``, ``NAME_low`` and ``NAME_high``. Rows that a model of the data drew have
no interval, and a column that says that they are synthetic.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import numpy as np

from dither.errors import ArgumentError
from dither.session._answer import read_answer

if TYPE_CHECKING:
    import polars as pl

    from dither.query._release import Release

__all__ = ["MadeTable", "form_of", "from_content", "made_of", "plain"]

LOW, HIGH = "_low", "_high"

KINDS = (
    "SQL and Python questions, estimates, tests and descriptions, marginals, hierarchies, ranges, "
    "comparisons, synthetic data, linked tables too, and linear and logistic regressions"
)


@dataclass(frozen=True, eq=False)
class MadeTable:
    """A release as tables.

    Parameters
    ----------
    tables : mapping of str to frame
        By what is added to the name: empty for the only one.
    form : mapping
        How they were made, as plain data: what checks them needs it.
    answer : mapping or None
        The plain data that the certificate has the hash of, where it is not the table itself.
    """

    tables: Mapping[str, pl.DataFrame]
    form: Mapping[str, Any]
    answer: Mapping[str, Any] | None = field(default=None, repr=False)


def made_of(release: Any, rows: int | None = None) -> MadeTable:
    """A release as tables.

    Parameters
    ----------
    release : what a release gave
    rows : int, optional
        Of synthetic data: how many, of linked tables how many units; about as many as the table
        has where left out.

    Raises
    ------
    ArgumentError
        It is nothing that was released, or nothing that is a table.
    """
    kinds = {one.__name__ for one in type(release).__mro__ if _ours(one)}
    if rows is not None and not kinds & set(_DRAWN):
        raise ArgumentError("rows is for synthetic data alone: leave it out")
    for name, make in _MAKERS.items():
        if name in kinds:
            return _DRAWN[name](release, rows) if name in _DRAWN else make(release)
    if "UnreleasedQuestion" in kinds:
        raise ArgumentError("release: it was not released yet: publish what .release() gives")
    if any(_ours(one) for one in type(release).__mro__):
        what = type(release).__name__
        raise ArgumentError(f"release: a {what} is no table; published are {KINDS}")
    raise ArgumentError("release must be what a release gave")


def form_of(name: str, content: Mapping[str, Any]) -> Any:
    """What a release gave, again, from what the ledger keeps of it.

    Raises
    ------
    ArgumentError
        The ledger does not keep all that it is read with.
    """
    asked = content["certificate"]["question"]
    asked = asked.get("asked") if isinstance(asked, Mapping) else None
    what = asked.get("what") if isinstance(asked, Mapping) else None
    found = from_content(content, what)
    if found is None:
        raise ArgumentError(
            f"the ledger has the answer of {name} without the public facts that it is read with; "
            "ask the question again with its token, or reuse=True, and publish what comes back"
        )
    return found


def from_content(content: Mapping[str, Any], what: Any = None) -> Any:
    """The same; None where more is needed."""
    if isinstance(content.get("columns"), list) and "outputs" in content:
        from dither.query._release import Release

        return Release(content)
    if "residuals" in content:
        from dither.synth.marginals._marginals import ReleasedMarginals

        return ReleasedMarginals(content)
    if "apart" in content:
        from dither.synth._compared import MeasuredDistances

        return MeasuredDistances.read(content)
    if content.get("kind") in ("linear", "logistic") and "estimate" in content:
        from dither.learn.tables._model import LearnedModel
        from dither.learn.tables._regression import regression_from

        return LearnedModel(content, regression_from)
    if what == "synthetic data":
        from dither.synth.model._result import SyntheticModel

        return SyntheticModel(content)
    if what == "linked synthetic data":
        from dither.synth.linked._model import LinkedModel

        return LinkedModel(content)
    if "formula" in content and "kind" in content:
        raise ArgumentError(
            f"a model of kind {str(content['kind'])[:40]!r} is no table; published are {KINDS}"
        )
    return None


def _ours(one: type) -> bool:
    return one.__module__.partition(".")[0] == "dither"


def _table(release: Release) -> MadeTable:
    """An SQL question's; its certificate has the hash of the table itself."""
    content = release._content
    ends: dict[str, str] = {}
    for output in content["outputs"]:
        ends |= {f"{output}_lower": output + LOW, f"{output}_upper": output + HIGH}
    columns = [[ends.get(c["name"], c["name"]), c["name"], c["kind"]] for c in content["columns"]]
    # Positions and not names: a key may be called as the end of another output's interval is.
    frame = release.frame
    named = [frame.to_series(i).alias(columns[i][0]) for i in range(frame.width)]
    return MadeTable({"": _framed(named)}, {"kind": "table", "columns": columns})


def _estimate(found: Any) -> MadeTable:
    names = ["estimate"] if found.names is None else list(found.names)
    # Of one number a pair, of several a row each.
    low, high = np.reshape(found.interval(), (-1, 2)).astype(float).T
    columns = {
        "quantity": names,
        "estimate": np.reshape(found.estimate, -1).astype(float),
        "estimate" + LOW: low,
        "estimate" + HIGH: high,
        "standard_error": np.reshape(found.se, -1).astype(float),
        "standard_error_sampling": np.reshape(found.se_sampling, -1).astype(float),
        "standard_error_privacy": np.reshape(found.se_privacy, -1).astype(float),
    }
    return _inferred(found, columns)


def _test(found: Any) -> MadeTable:
    columns = {
        "hypothesis": [found.null],
        "statistic": [float(found.statistic)],
        "pvalue": [float(found.pvalue)],
        "noise_share": [float(found.noise_share)],
    }
    return _inferred(found, columns)


def _description(found: Any) -> MadeTable:
    if found.certificate is None:
        raise ArgumentError(
            "release: this description is of a frame and not of a policy's table, so no "
            "certificate says what it promises; ask a session"
        )
    frame = found.to_frame()
    frame.columns = [*frame.columns[:-2], "estimate" + LOW, "estimate" + HIGH]
    return MadeTable({"": frame}, {"kind": "description"}, _answer(found))


def _inferred(found: Any, columns: Mapping[str, Any]) -> MadeTable:
    if found.released is None:
        raise ArgumentError(
            "release: this estimate is of a frame and not of a policy's table, so no certificate "
            "says what it promises; ask a session"
        )
    if isinstance(found.released, Mapping):
        form = {"kind": "scores", "title": found.title}
        return MadeTable({"": _frame(columns)}, form, _answer(found))
    sums = {"rows": [{k: plain(v) for k, v in row.items()} for row in found.released.to_dicts()]}
    return MadeTable({"": _frame(columns)}, {"kind": "inference", "title": found.title}, sums)


def _marginals(found: Any) -> MadeTable:
    tables = {}
    for place, (names, frame) in enumerate(found.frames.items()):
        named = dict.fromkeys(frame.columns)
        ends = {"count_lower": "count" + LOW, "count_upper": "count" + HIGH}
        # The numbers stand last; a column of the table may have one of their names.
        columns = [c if i < len(names) else ends.get(c, c) for i, c in enumerate(named)]
        frame.columns = columns
        tables[f"_{place + 1}" if len(found.tables) > 1 else ""] = frame
    return MadeTable(tables, {"kind": "marginals"}, _answer(found))


def _hierarchy(found: Any) -> MadeTable:
    tables = {}
    for place, level in enumerate(found.levels):
        frame = found.frame(level)
        frame.columns = [
            *frame.columns[:-6],
            "count",
            "count" + LOW,
            "count" + HIGH,
            "estimate",
            "estimate" + LOW,
            "estimate" + HIGH,
        ]
        tables[f"_{place + 1}{_word(level)}"] = frame
    return MadeTable(tables, {"kind": "hierarchy"}, _answer(found))


def _ranges(found: Any) -> MadeTable:
    frame = found.frame
    ends = [f"{name}{end}" for name in ("estimate", "below") for end in ("", LOW, HIGH)]
    frame.columns = [*frame.columns[:-6], *ends]
    return MadeTable({"": frame}, {"kind": "ranges"}, _answer(found))


def _distances(found: Any) -> MadeTable:
    frame = found.intervals()
    names = [", ".join(names) for names in frame["columns"].to_list()]
    columns: dict[str, Any] = {"columns": names, "distance": frame["distance"].to_list()}
    columns |= {"distance" + LOW: frame["lower"].to_list()}
    columns |= {"distance" + HIGH: frame["upper"].to_list()}
    return MadeTable({"": _frame(columns)}, {"kind": "comparison"}, _answer(found))


def _synthetic(found: Any, rows: int | None) -> MadeTable:
    import polars as pl

    # One seed, so that whoever checks the table draws the same rows of the model.
    frame = found.sample(rows, seed=0).with_columns(pl.lit(value=True).alias("synthetic"))
    return MadeTable({"": frame}, {"kind": "synthetic", "rows": frame.height}, _answer(found))


def _linked(found: Any, units: int | None) -> MadeTable:
    import polars as pl

    drawn = found.sample(units, seed=0)
    tables = {
        f"_{place + 1}{_word(name)}": frame.with_columns(pl.lit(value=True).alias("synthetic"))
        for place, (name, frame) in enumerate(drawn.items())
    }
    first = next(iter(drawn.values())).height
    return MadeTable(tables, {"kind": "linked", "rows": first}, _answer(found))


def _word(name: str) -> str:
    """What of a name may end that of a table."""
    word = re.sub(r"[^a-z0-9]+", "_", name.lower()).strip("_")[:8]
    return f"_{word}".rstrip("_")


def _model(found: Any) -> MadeTable:
    if found.kind not in ("linear", "logistic"):
        raise ArgumentError(
            f"release: a model of kind {found.kind!r} is no table; save it with .save(), and hand "
            "out the file"
        )
    model = found.model
    low, high = np.asarray(model.ends, dtype=float).T
    columns = {
        "term": list(model.names),
        "coefficient": [float(v) for v in model.params.values()],
        "coefficient" + LOW: low,
        "coefficient" + HIGH: high,
    }
    # A linear one is read from sums: its certificate is of these, and the model has them no more.
    of_sums = found.certificate.content.get("answer", {}).get("kind") == "table"
    return MadeTable({"": _frame(columns)}, {"kind": "model"}, None if of_sums else _answer(found))


_MAKERS: Mapping[str, Callable[..., MadeTable]] = {
    "Release": _table,
    "PrivateEstimate": _estimate,
    "PrivateTest": _test,
    "PrivateDescription": _description,
    "ReleasedMarginals": _marginals,
    "HierarchyCounts": _hierarchy,
    "RangeCounts": _ranges,
    "MeasuredDistances": _distances,
    "SyntheticModel": _synthetic,
    "LinkedModel": _linked,
    "LearnedModel": _model,
}


_DRAWN: Mapping[str, Callable[..., MadeTable]] = {
    "SyntheticModel": _synthetic,
    "LinkedModel": _linked,
}
"""Of which rows are drawn, as many as are asked for."""


def _answer(found: Any) -> dict[str, Any]:
    """The plain data that the certificate is of."""
    content: Mapping[str, Any] = read_answer(found)
    return {name: part for name, part in content.items() if name != "certificate"}


def plain(value: Any) -> Any:
    """A value as JSON has it."""
    if value is None or isinstance(value, bool | int | str):
        return value
    if isinstance(value, float):
        return value if np.isfinite(value) else None
    return value.isoformat() if hasattr(value, "isoformat") else str(value)


def _frame(columns: Mapping[str, Any]) -> pl.DataFrame:
    import polars as pl

    return pl.DataFrame(dict(columns))


def _framed(columns: Iterable[pl.Series]) -> pl.DataFrame:
    import polars as pl

    found: Sequence[pl.Series] = list(columns)
    names = [one.name for one in found]
    if len(set(names)) < len(names):
        raise ArgumentError(
            "two columns of the table would have one name: the ends of NAME's interval are called "
            "NAME_low and NAME_high; give outputs and keys other names (AS)"
        )
    return pl.DataFrame(found)


def answered(form: str, answer: str | None) -> Any:
    """What was kept beside a certificate, read back."""
    return json.loads(form), None if answer is None else json.loads(answer)
