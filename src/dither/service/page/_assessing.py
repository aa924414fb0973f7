"""Assessments of files beside a policy, each in a process of its own, for its owner."""

from __future__ import annotations

import asyncio
import json
import secrets
import sys
import tempfile
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from dither.errors import ArgumentError
from dither.service._endpoints import NotFoundError

__all__ = ["AssessmentRun", "run_of", "runs_of", "start"]

SECONDS = 900
"""An assessment takes seconds; of large tables some minutes."""

KEPT = 20
"""Of all policies together; then the oldest go."""


@dataclass
class AssessmentRun:
    """One assessment.

    Parameters
    ----------
    policy : str
        The policy's file.
    title : str
        What is assessed.
    id : str
    state : str
        ``"running"``, ``"done"`` or ``"failed"``.
    found : mapping, optional
        As `Assessment.to_dict`.
    why : str
        Of a failure: what the library says, or how it ended.
    """

    policy: str
    title: str
    id: str = field(default_factory=lambda: secrets.token_hex(12))
    state: str = "running"
    found: Mapping[str, Any] | None = None
    why: str = ""


_RUNS: dict[str, AssessmentRun] = {}

_TASKS: set[asyncio.Task[None]] = set()


def runs_of(policy: str) -> list[AssessmentRun]:
    """Those of a policy, newest first."""
    return [one for one in reversed(_RUNS.values()) if one.policy == policy]


def run_of(policy: str, run_id: str) -> AssessmentRun:
    """One of them.

    Raises
    ------
    NotFoundError
        There is none of this policy.
    """
    found = _RUNS.get(run_id)
    if found is None or found.policy != policy:
        raise NotFoundError("no assessment of this id is kept")
    return found


def start(policy: str, title: str, arguments: Sequence[str]) -> AssessmentRun:
    """Begin one; in the loop.

    Parameters
    ----------
    policy : str
    title : str
    arguments : sequence of str
        Of ``dither assess``.

    Raises
    ------
    ArgumentError
        Another one of this policy runs.
    """
    if any(one.state == "running" for one in runs_of(policy)):
        raise ArgumentError("an assessment of this policy runs already: wait until it has ended")
    made = AssessmentRun(policy, title)
    _RUNS[made.id] = made
    for old in [one.id for one in _RUNS.values() if one.state != "running"][:-KEPT]:
        del _RUNS[old]
    task = asyncio.ensure_future(_run(made, list(arguments)))
    _TASKS.add(task)
    task.add_done_callback(_TASKS.discard)
    return made


async def _run(made: AssessmentRun, arguments: list[str]) -> None:
    with tempfile.TemporaryDirectory(prefix="dither-assess-") as folder:
        out = Path(folder) / "found.json"
        process = await asyncio.create_subprocess_exec(
            sys.executable,
            *("-m", "dither.cli", "assess", *arguments, "--out", str(out)),
            stdin=asyncio.subprocess.DEVNULL,
            stdout=asyncio.subprocess.DEVNULL,
            stderr=asyncio.subprocess.PIPE,
        )
        try:
            _, said = await asyncio.wait_for(process.communicate(), SECONDS)
            if out.exists():
                made.found = json.loads(out.read_text(encoding="utf-8"))
            else:
                # What the command says of bad input names columns and files, and no value.
                made.why = said.decode("utf-8", "replace").strip()[-2000:]
        except TimeoutError:
            made.why = f"it took longer than {SECONDS // 60} minutes, and was ended"
        finally:
            made.state = "failed" if made.found is None else "done"
            if process.returncode is None:
                with suppress(ProcessLookupError):
                    process.kill()
                await process.wait()
