"""Which tests are run, and one line for each reason why some were not.

Tests marked ``slow`` are left out unless ``--slow`` is given, ``-m`` names them, or one is asked
for by its own name. ``slow.txt`` marks more of them, by what they were seen to take: a run with
``--slow --note-slow=tests/slow.txt`` writes it anew (``--note-times=FILE``: what each took). A file
that needs a library of an extra is not even imported without it. And where the same tests run in
two environments, the first notes what passed (``--note-passed FILE``) and the second leaves that
out (``--not-again FILE``): the packages of a test that passed are the same in both. Tests marked
``extras`` look at whatever is installed, and are run in both. With ``--turn=COMMIT`` heavy tests
wait for their turn (`turns.py`); what is marked ``heavy`` is slow, too.
"""

from __future__ import annotations

import json
import os
import re
from collections import Counter, defaultdict
from collections.abc import Generator, Iterator, Mapping
from contextlib import nullcontext
from fnmatch import fnmatch
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import pytest

from turns import OF_EXAMPLES, TURNS, few_examples, turns_of

__all__ = [
    "pytest_addoption",
    "pytest_collection_modifyitems",
    "pytest_configure",
    "pytest_ignore_collect",
    "pytest_runtest_call",
    "pytest_runtest_logreport",
    "pytest_sessionfinish",
    "pytest_terminal_summary",
    "pytest_testnodedown",
]

NEEDED = {
    "src/dither/examples/training_audit.py": "torch",
    "src/dither/learn/secure/_secure_sum.py": "tenseal",
    "src/dither/learn/secure/_shared_sum.py": "shamirs",
    "src/dither/learn/deep/*": "torch",
    "src/dither/learn/federated/_torch.py": "torch",
    "tests/crash/training_worker.py": "torch",
}
"""Files that cannot be imported, or whose examples cannot run, without a library."""

LISTED = Path(__file__).with_name("slow.txt")
"""Names of tests, a line each, that are marked ``slow`` for what they take."""
LONG = 0.2
"""Seconds of a processor from which a test is listed: the rest take below eight minutes of two."""
ONE_OF_SEVERAL = 0.05
"""The same of a function with several tests, but for the quickest of them."""
LONGEST = 1.5
"""Which stays among the quick ones, unless it takes so long."""

LEFT_OUT = pytest.StashKey[Counter[str]]()
PASSED = pytest.StashKey[set[str]]()
WHOLE = pytest.StashKey[dict[str, int]]()
"""Files of which no test is left out or may differ elsewhere, and how many tests each has."""
BEFORE = pytest.StashKey[dict[str, int]]()
"""Files that passed before, and how many tests each has."""
UNREAD = pytest.StashKey[set[str]]()
"""Those of them that were met."""
TOOK = pytest.StashKey[dict[str, float]]()
BRIEFLY = pytest.StashKey[set[str]]()

SLOW = "marked slow; `make test-all` runs them"
AGAIN = "passed already with the same packages"
LATE = f"not their turn (one in {TURNS} has it by --turn={{}})"
FEW = f"of examples all but one in {OF_EXAMPLES}, not their turn"
_running: list[pytest.Config] = []
_ABSENT = re.compile(r"could not import '([\w]+)[\w.]*':.*")


def pytest_addoption(parser: pytest.Parser) -> None:
    """The options of the module."""
    group = parser.getgroup("selection")
    group.addoption("--slow", action="store_true", help="run tests marked slow, too")
    group.addoption("--note-passed", metavar="FILE", help="write the names of tests that passed")
    group.addoption("--note-slow", metavar="FILE", help="write the names of tests that take long")
    group.addoption("--note-times", metavar="FILE", help="write what each test took, longest first")
    group.addoption("--turn", metavar="COMMIT", help="run of heavy tests those that it chooses")
    group.addoption("--not-again", metavar="FILE", help="leave out tests that a FILE names")


def pytest_configure(config: pytest.Config) -> None:
    """Nothing is left out yet, and nothing has passed."""
    config.stash[LEFT_OUT] = Counter()
    config.stash[PASSED], config.stash[WHOLE] = set(), {}
    config.stash[BEFORE], config.stash[UNREAD] = _noted(config)["files"], set()
    config.stash[TOOK] = {}
    config.stash[BRIEFLY] = set()
    _running[:] = [config]


def _noted(config: pytest.Config) -> dict[str, Any]:
    """What a run before this one noted: names of tests that passed, and files of nothing else."""
    before = config.option.not_again
    return json.loads(Path(before).read_text()) if before else {"tests": [], "files": {}}


def _file(name: str) -> str:
    """The file of a test."""
    return name.partition("::")[0]


def pytest_ignore_collect(collection_path: Path, config: pytest.Config) -> bool | None:
    """A file that needs a library which is not installed, or of which all tests passed before."""
    if collection_path.suffix != ".py":
        return None
    try:
        name = collection_path.relative_to(config.rootpath).as_posix()
    except ValueError:
        return None
    if name in config.stash[BEFORE]:
        config.stash[UNREAD].add(name)
        return True
    for pattern, library in NEEDED.items():
        if fnmatch(name, pattern) and find_spec(library) is None:
            config.stash[LEFT_OUT][f"{library} is not installed"] += 1
            return True
    return None


@pytest.hookimpl(trylast=True)
def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Leave out what is slow and what has passed before."""
    chosen = [argument for argument in config.args if "::" in argument]
    slow = config.option.slow or "slow" in config.option.markexpr
    passed = set(_noted(config)["tests"])
    listed = set(LISTED.read_text().splitlines()) if LISTED.exists() else set()
    for item in items:
        if item.nodeid in listed or item.get_closest_marker("heavy"):
            item.add_marker("slow")
    turn, late = config.option.turn, set[str]()
    if turn and slow:
        late, config.stash[BRIEFLY] = turns_of(items, turn, config.rootpath)
    unread = sum(config.stash[BEFORE][name] for name in config.stash[UNREAD])
    config.stash[LEFT_OUT] += Counter({AGAIN: unread})
    kept, left = [], []
    for item in items:
        reason = None
        if item.nodeid in passed and not item.get_closest_marker("extras"):
            reason = AGAIN
        elif item.nodeid in late:
            reason = LATE.format(turn)
        elif item.get_closest_marker("slow") and not slow:
            named = any(item.nodeid.startswith(argument) for argument in chosen)
            reason = None if named else SLOW
        elif item.nodeid in config.stash[BRIEFLY]:
            config.stash[LEFT_OUT][FEW] += 1
        if reason:
            config.stash[LEFT_OUT][reason] += 1
        (left if reason else kept).append(item)
    partial = {_file(i.nodeid) for i in left}
    partial |= {_file(i.nodeid) for i in kept if i.get_closest_marker("extras")}
    config.stash[WHOLE] = Counter(_file(i.nodeid) for i in kept if _file(i.nodeid) not in partial)
    if left:
        config.hook.pytest_deselected(items=left)
        items[:] = kept


def _seconds() -> float:
    """Of processors that this process and those that it started, and that ended, have taken."""
    return sum(os.times()[:4])


@pytest.hookimpl(wrapper=True)
def pytest_runtest_call(item: pytest.Item) -> Generator[None, object, object]:
    """Note what a test takes, however busy the machine is."""
    before = _seconds()
    try:
        with few_examples(item) if item.nodeid in item.config.stash[BRIEFLY] else nullcontext():
            return (yield)
    finally:
        item.user_properties.append(("seconds", round(_seconds() - before, 3)))


def listed_as_slow(took: Mapping[str, float]) -> list[str]:
    """The names of tests that take long, but for the quickest of a function with several.

    Examples
    --------
    >>> listed_as_slow({"f[1]": 1.0, "f[2]": 4.0, "g": 3.0, "h": 0.15, "i[1]": 0.1, "i[2]": 0.15})
    ['f[2]', 'g', 'i[2]']
    """
    by_function: defaultdict[str, list[str]] = defaultdict(list)
    for name in took:
        by_function[name.partition("[")[0]].append(name)
    found = []
    for names in by_function.values():
        quickest = min(names, key=lambda name: took[name])
        several = len(names) > 1
        stays = quickest if several and took[quickest] < LONGEST else None
        long = ONE_OF_SEVERAL if several else LONG
        found += [n for n in names if took[n] >= long and n != stays]
    return sorted(found)


def pytest_runtest_logreport(report: pytest.TestReport) -> None:
    """Note what passed, and what it took, in the process that hears of all."""
    for config in _running:
        if report.when == "call" and (seconds := dict(report.user_properties).get("seconds")):
            config.stash[TOOK][report.nodeid] = float(str(seconds))
        if report.when == "call" and report.passed:
            config.stash[PASSED].add(report.nodeid)
        elif report.failed:
            config.stash[PASSED].discard(report.nodeid)


def pytest_sessionfinish(session: pytest.Session) -> None:
    """A process among several tells the first one what it left out; that one writes what passed."""
    config = session.config
    if hasattr(config, "workeroutput"):
        config.workeroutput["left_out"] = dict(config.stash[LEFT_OUT])
        config.workeroutput["whole"] = dict(config.stash[WHOLE])
        return
    if into := config.option.note_passed:
        passed = config.stash[PASSED]
        good = Counter(map(_file, passed))
        files = {name: n for name, n in sorted(config.stash[WHOLE].items()) if good[name] == n}
        Path(into).write_text(json.dumps({"tests": sorted(passed), "files": files}))
    if into := config.option.note_slow:
        Path(into).write_text("".join(f"{n}\n" for n in listed_as_slow(config.stash[TOOK])))
    if into := config.option.note_times:
        longest = sorted(config.stash[TOOK].items(), key=lambda one: -one[1])
        Path(into).write_text("".join(f"{seconds:8.2f} {name}\n" for name, seconds in longest))


@pytest.hookimpl(optionalhook=True)
def pytest_testnodedown(node: Any, error: object) -> None:
    """All processes collect the same tests, so each leaves out the same."""
    said = getattr(node, "workeroutput", {})
    node.config.stash[LEFT_OUT] |= Counter(said.get("left_out", {}))
    node.config.stash[WHOLE] |= said.get("whole", {})


def reasons(reports: list[Any]) -> Iterator[tuple[str, int, int]]:
    """Each reason why tests were skipped: of how many tests, and of how many whole files."""
    found: defaultdict[str, list[int]] = defaultdict(lambda: [0, 0])
    for report in reports:
        said = report.longrepr[2] if isinstance(report.longrepr, tuple) else str(report.longrepr)
        # What a page adds below says where, and would make a reason of each place.
        first = said.removeprefix("Skipped: ").split("\n", 1)[0]
        reason = _ABSENT.sub(r"\1 is not installed", first)
        found[reason][isinstance(report, pytest.CollectReport)] += 1
    for reason, (tests, files) in sorted(found.items(), key=lambda one: (-sum(one[1]), one[0])):
        yield reason, tests, files


def pytest_terminal_summary(
    terminalreporter: pytest.TerminalReporter, config: pytest.Config
) -> None:
    """One line a reason."""
    left = Counter(config.stash[LEFT_OUT])
    lines = []
    for reason, tests, files in reasons(terminalreporter.stats.get("skipped", [])):
        parts = [f"{tests} tests"] * (tests > 0) + [f"{files} files of tests"] * (files > 0)
        if doctests := left.pop(reason, 0):
            parts.append(f"{doctests} files of examples")
        lines.append(f"skipped: {reason}: {', '.join(parts)}")
    for reason, number in sorted(left.items()):
        files = reason.endswith("is not installed")
        what = "files of examples" if files else "tests"
        lines.append(f"left out: {reason}: {number} {what}")
    for line in lines:
        terminalreporter.write_line(line)
