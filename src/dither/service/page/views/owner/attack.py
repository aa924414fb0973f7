"""An assessment of a file before it is published: what it gives away of the people in it."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from anyio import to_thread

from dither.errors import ArgumentError, DitherError
from dither.service._endpoints import OWNER, Asked, Endpoint, Field, roles
from dither.service.page._assessing import AssessmentRun, run_of, runs_of, start
from dither.service.page._shown import PageView
from dither.service.policies._places import files_of, inside

__all__ = ["VIEWS"]

ONLY = roles(OWNER)

ENDINGS = (".csv", ".parquet")

MARKS = {"beyond the claim": "bad", "found": "bad", "not seen": "good", "cannot be said": "warn"}
"""By what is said of a criterion: how it is shown."""


def _folder(asked: Asked) -> Path:
    return asked.desk.path.parent


def _values(asked: Asked, run: AssessmentRun | None = None) -> dict[str, Any]:
    files = [one for one in files_of(_folder(asked)) if one.lower().endswith(ENDINGS)]
    sources = [table.source.source for table in asked.desk.session.policy.tables.values()]
    own = {Path(one).name for one in sources if isinstance(one, str)}
    return {
        "files": files,
        "own": next((one for one in files if one in own), ""),
        "runs": runs_of(str(asked.desk.path)),
        **_run(run),
    }


def _run(run: AssessmentRun | None, refusal: str | None = None) -> dict[str, Any]:
    """What the part shows that says how an assessment goes."""
    return {"run": run, "refusal": refusal, "marks": MARKS}


def show(asked: Asked) -> PageView:
    """The form, and what was assessed before."""
    return PageView("attack/attack.html", _values(asked))


async def begin(asked: Asked) -> PageView:
    """Begin an assessment."""
    try:
        # Files are looked at in a thread: the loop, which begins the process, is everybody's.
        title, arguments = await to_thread.run_sync(_arguments, _folder(asked), asked.body)
        made = start(str(asked.desk.path), title, arguments)
    except DitherError as error:
        return PageView("attack/_run.html", _run(None, str(error)), 400)
    return PageView("attack/_run.html", _run(made))


def _arguments(folder: Path, given: Mapping[str, Any]) -> tuple[str, list[str]]:
    """What is assessed in words, and the arguments of the command."""
    files = {}
    for name in ("original", "release", "control"):
        if name in given:
            files[name] = inside(folder, given[name])
            if files[name].suffix.lower() not in ENDINGS:
                raise ArgumentError(f"{name} must be a CSV or Parquet file")
        elif name != "control":
            raise ArgumentError(f"{name} is missing")
    if len(set(files.values())) < len(files):
        raise ArgumentError("original, release and control must be different files")
    found = [str(files["original"]), str(files["release"])]
    found += ["--control", str(files["control"])] if "control" in files else []
    for name in ("epsilon", "unit"):
        found += [f"--{name}={given[name]}"] if name in given else []
    return f"{given['release']} ← {given['original']}", found


def progress(asked: Asked) -> PageView:
    """How one goes, and what it found."""
    run = run_of(str(asked.desk.path), asked.path["id"])
    if "hx-request" in asked.http.headers:
        return PageView("attack/_run.html", _run(run))
    return PageView("attack/attack.html", _values(asked, run))


FILE = Field("text", "a data file in the policy's folder", most=1000)

VIEWS = [
    Endpoint("GET", "/attack", ONLY, show, "Assess a file before it is published."),
    Endpoint(
        "POST",
        "/attack",
        ONLY,
        begin,
        "Begin an assessment.",
        {
            "original": FILE,
            "release": FILE,
            "control": FILE,
            "epsilon": Field("number", "what the release is said to have cost"),
            "unit": Field("text", "the column that says whose a row is", most=200),
        },
    ),
    Endpoint("GET", "/attack/{id}", ONLY, progress, "How an assessment goes, and its report."),
]
