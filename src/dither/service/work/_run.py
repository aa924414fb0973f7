"""One question, run in a process that runs nothing else meanwhile.

It speaks lines of JSON: what to run comes in, and what became of it goes out. Nothing of an answer
does: that is in the ledger, from which the service reads it.
"""

from __future__ import annotations

import json
import os
import shutil
import sys
import tempfile
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

from dither._depth import deep
from dither.errors import DitherError, EngineError, PolicyError, TokenError
from dither.policy._policy import PolicyText
from dither.service.work._drafts import DRAFTS
from dither.session._opened import UNSTORED
from dither.session._recipe import QuestionRecipe
from dither.session._request import Request, request_of
from dither.session._session import Session, open_for_all

__all__ = ["Runner", "main", "released"]

CHANGED = (
    "the question is no longer the one that was asked: the policy, or what it learned, changed "
    "meanwhile. Nothing was charged; ask again"
)

UNOPENED = (
    "the policy cannot be opened by the process that runs questions: the data owner finds out why "
    "with `dither check`"
)

Tell = Callable[[str, Any], None]


def released(request: Request, token: str, tell: Tell) -> tuple[int, bool]:
    """Pass the steps of a release, so that its answer is in the ledger when this returns.

    Parameters
    ----------
    request : Request
    token : str
    tell : callable
        Is told the number of the charge's entry, once there is one.

    Returns
    -------
    (int, bool)
        The number of the entry, and whether it was there before.

    Raises
    ------
    DitherError
        As `Request.release`; or the answer could not be stored, and is lost.
    """
    try:
        earlier = request.replay(token)
        if earlier is not None:
            return _entry(earlier.content), True
        certificate = request.rehearse()
        charged = request.charge(token)
        tell("charged", charged.entry)
        if charged.replayed:
            return charged.entry, True
        answered = request.store(charged, request.answer(charged, certificate))
    except TokenError:
        # Charged, and cut off before it was answered.
        answered = request.resume(token)
    if not answered.stored:
        raise EngineError(UNSTORED)
    return _entry(answered.content), False


def _entry(content: Any) -> int:
    return int(content["certificate"]["ledger"]["entry"])


class Runner:
    """Sessions by policy, opened when they are first needed, and what is run in them.

    Parameters
    ----------
    tell : callable
        Is told what becomes of a job: a word, and what goes with it.
    seconds : int
        Of a processor's time for each draft, after which the process ends.
    """

    def __init__(self, tell: Tell, seconds: int = 0) -> None:
        self._tell, self._seconds = tell, seconds
        self._opened: dict[Path, tuple[PolicyText, Session]] = {}
        self._last = -1.0

    def run(self, job: dict[str, Any]) -> None:
        """Run a job, and tell how it ended; whatever is raised is told by its kind alone."""
        if "think" in job:
            self._think(job)
            return
        charged: list[int] = []

        def tell(what: str, value: Any) -> None:
            if what == "charged":
                charged.append(value)
            self._tell(what, value)

        try:
            with deep():
                entry, before = self._run(job, tell)
        except DitherError as error:
            self._tell("failed", {"kind": type(error).__name__, "message": str(error)})
        except MemoryError:
            self._tell("failed", _FAILED)
        except Exception:
            # Its words may hold data.
            self._tell("failed", _FAILED if charged else _BROKEN)
        else:
            self._tell("done", {"entry": entry, "replayed": before})

    def _think(self, job: dict[str, Any]) -> None:
        """Work a draft out, and tell it whole."""
        body = job["body"]
        try:
            text = PolicyText(Path(job["policy"]), job["policy_text"])
            whole = self._session(text, job["policy_digest"])
            session = whole.asked_by(job["person"], body.get("purpose"), owner=job["owner"])
            _limit_time(self._seconds)
            found = DRAFTS[job["think"]](session, body)
            self._tell("thought", found)
        except DitherError as error:
            self._tell("failed", {"kind": type(error).__name__, "message": str(error)})
        except MemoryError:
            self._tell("failed", {"kind": MemoryError.__name__, "message": ""})
        except Exception:
            self._tell("failed", _BROKEN)

    def _run(self, job: dict[str, Any], tell: Tell) -> tuple[int, bool]:
        text = PolicyText(Path(job["policy"]), job["policy_text"])
        whole = self._session(text, job["policy_digest"])
        # Anew for each job, in some microseconds: what a role, a quota or a fact is now, holds.
        session = whole.asked_by(job["person"], job["purpose"], owner=job["owner"])
        session._opened.reservation = job["reservation"]
        asked, requested = QuestionRecipe.from_list(job["ask"]).made(session), job["requested"]
        request = request_of(
            asked,
            session._opened,
            requested["epsilon"],
            requested["delta"],
            requested["confidence"],
            self._progress,
        )
        if request.data.digest != job["digest"]:
            raise PolicyError(CHANGED)
        return released(request, job["token"], tell)

    def _session(self, text: PolicyText, digest: str) -> Session:
        """The session of a policy as the service has taken it up; its file may hold another."""
        before, found = self._opened.get(text.path, (None, None))
        if found is None or before != text:
            if found is not None:
                del self._opened[text.path]
                found.close()
            try:
                found = open_for_all(text, progress=self._progress)
            except DitherError:
                # What it says may name files and servers, which are nobody's business.
                raise PolicyError(UNOPENED) from None
            self._opened[text.path] = text, found
        if found.policy.digest != digest:
            raise PolicyError(CHANGED)
        return found

    def _progress(self, share: Any) -> None:
        done = share if isinstance(share, float | int) else getattr(share, "share", None)
        if isinstance(done, float | int) and abs(done - self._last) >= 0.01:
            self._last = float(done)
            self._tell("progress", round(float(done), 3))

    def close(self) -> None:
        """Close every session."""
        for _, session in self._opened.values():
            session.close()


_FAILED = {"kind": "EngineError", "message": "the question failed; what was charged stays charged"}
_BROKEN = {"kind": "EngineError", "message": "the question failed before it was charged"}


def main() -> None:
    """Run the jobs that come in, one after the other, until no more come.

    The first line says what this process may take, and the environment of whoever started it.
    """
    # What libraries print must not stand among the lines that the service reads.
    out = os.fdopen(os.dup(1), "w", encoding="utf-8")
    os.dup2(2, 1)
    warnings.simplefilter("ignore")
    first = sys.stdin.readline()
    if not first:
        return
    seconds = _begin(json.loads(first))

    def tell(what: str, value: Any) -> None:
        out.write(json.dumps([what, value]) + "\n")
        out.flush()

    runner = Runner(tell, seconds)
    try:
        for line in sys.stdin:
            runner._last = -1.0
            runner.run(json.loads(line))
    except (BrokenPipeError, ConnectionResetError):
        pass  # the service is gone, and what was asked is in the ledger
    finally:
        runner.close()
        shutil.rmtree(os.environ.get("TMPDIR", ""), ignore_errors=True)


def _begin(said: dict[str, Any]) -> int:
    """Be as whoever started this process says; seconds that a draft may take."""
    os.environ.clear()
    os.environ.update(said["environment"])
    tempfile.tempdir = None  # it is looked for again
    if said["folder"] is not None:
        os.chdir(said["folder"])
    if said["memory"]:
        _limit_memory(said["memory"])
    if said["seconds"]:
        os.nice(5)
    seconds: int = said["seconds"]
    return seconds


def _limit_time(seconds: int) -> None:
    """End this process once it has used so much more of a processor's time."""
    import resource

    used = resource.getrusage(resource.RUSAGE_SELF)
    until = int(used.ru_utime + used.ru_stime) + 1 + seconds
    _, most = resource.getrlimit(resource.RLIMIT_CPU)
    resource.setrlimit(resource.RLIMIT_CPU, (until, most))


def _limit_memory(most: int) -> None:
    import resource

    resource.setrlimit(resource.RLIMIT_AS, (most, most))


if __name__ == "__main__":
    main()
