"""Which of the slow tests have their turn: all, or a share that the id of a commit chooses.

`.ci/run` gives ``--turn=COMMIT``. Of the slow tests that something stands in for, one in ``TURNS``
is run then; by chance, so that none waits for ever, and by the commit alone, so that the same
command runs the same again. Up to a half of these are tests of rooms in which the last ``RECENT``
commits changed a file, and changed pages come first of all. What runs Spark or a browser counts as
slow, since its seconds are those of another program. What stands in for a test:

- Another case of the same function: of each function at least one case is run.
- Of Hypothesis's examples the first: where it is not their turn, one in ``OF_EXAMPLES`` is made.
- A test that ``@pytest.mark.heavy("test_NAME")`` names, which is in the same file and waits for
  no turn; or, where nothing about privacy is held, the reason that the mark gives instead.

Every other test is run always, and without ``--turn`` all are.
"""

from __future__ import annotations

import subprocess
from collections import Counter
from collections.abc import Collection, Iterable, Iterator
from contextlib import contextmanager
from hashlib import blake2b
from pathlib import Path
from typing import Any

import pytest
from hypothesis import settings

TURNS = 24
"""One in so many tests has its turn."""
OF_EXAMPLES = 12
"""One in so many examples of Hypothesis's is made where it is not their turn."""
RECENT = 20
"""Commits whose rooms come first."""

_SETTINGS = "_hypothesis_internal_use_settings"
"""Where Hypothesis keeps a test's settings, and its own plugin for pytest reads them."""


def changed(commit: str, root: Path) -> set[str]:
    """Files that the last commits changed; none where their history is not there."""
    names = ["git", "diff", "--name-only", f"{commit}~{RECENT}", commit, "--"]
    try:
        done = subprocess.run(names, cwd=root, capture_output=True, text=True, check=False)
    except OSError:
        return set()
    return set(done.stdout.splitlines()) if done.returncode == 0 else set()


def room(path: str) -> str:
    """The package that a file or a test is about.

    Examples
    --------
    >>> room("src/dither/ledger/_chain.py"), room("tests/ledger/test_blocks.py::test_x[1]")
    ('ledger', 'ledger')
    >>> room("docs/ledger.md")
    'docs'
    """
    return path.removeprefix("src/dither/").removeprefix("tests/").partition("/")[0]


def function(name: str) -> str:
    """A test's name without that of its case."""
    return name.partition("[")[0]


def in_turn(
    waiting: Collection[str], always: Collection[str], commit: str, recent: Collection[str]
) -> set[str]:
    """Which of the tests that may wait are run.

    Parameters
    ----------
    waiting
        Names of tests that something may stand in for.
    always
        Names of tests that are run anyway, or whose function something else stands in for.
    commit
        What chooses.
    recent
        Files that were changed: their rooms have up to half of the turns, their pages all.

    Examples
    --------
    One case of each function at least, and one in twenty-four:

    >>> names = [f"tests/ledger/test_x.py::test_y[{i}]" for i in range(48)]
    >>> len(in_turn(names, [], "abc", [])), len(in_turn(names, [names[0]], "abc", []))
    (2, 2)
    >>> in_turn(names[:2], [], "abc", []) < set(names[:2])
    True
    """
    order = sorted(waiting, key=lambda name: blake2b(f"{commit} {name}".encode()).digest())
    rooms = {room(path) for path in recent} - {"docs"}
    pages = {path for path in recent if path.endswith(".md")}
    turns = -(-len(order) // TURNS)
    found = {name for name in order if name.partition("[")[2].removesuffix("]") in pages}
    for candidates, until in (([n for n in order if room(n) in rooms], turns // 2), (order, turns)):
        left = [name for name in candidates if name not in found]
        found.update(left[: max(0, until - len(found))])
    seen = {function(name) for name in (*always, *found)}
    for name in order:
        if function(name) not in seen:
            seen.add(function(name))
            found.add(name)
    return found


def examples_of(item: pytest.Item) -> Any:
    """The settings of a test of Hypothesis; None of another."""
    return getattr(getattr(item, "function", None), _SETTINGS, None)


def turns_of(items: Iterable[pytest.Item], commit: str, root: Path) -> tuple[set[str], set[str]]:
    """The names of tests that wait for their turn, and of those that make few examples."""
    names, slow, drawn, marked = set[str](), set[str](), set[str](), set[str]()
    for item in items:
        names.add(item.nodeid)
        elsewhere = item.get_closest_marker("spark") or "browser" in getattr(
            item, "fixturenames", ()
        )
        if elsewhere or item.get_closest_marker("slow"):
            slow.add(item.nodeid)
            if examples_of(item) is not None:
                drawn.add(item.nodeid)
            elif item.get_closest_marker("heavy"):
                marked.add(item.nodeid)
    cases = Counter(map(function, names))
    waiting = {n for n in slow if n in drawn or n in marked or cases[function(n)] > 1}
    always = (names - waiting) | drawn | marked
    late = waiting - in_turn(waiting, always, commit, changed(commit, root))
    return late - drawn, late & drawn


@contextmanager
def few_examples(item: pytest.Item) -> Iterator[None]:
    """The first of the examples that its settings ask for."""
    asked = examples_of(item)
    few = settings(asked, max_examples=max(1, asked.max_examples // OF_EXAMPLES))
    setattr(item.function, _SETTINGS, few)  # type: ignore[attr-defined]
    try:
        yield
    finally:
        setattr(item.function, _SETTINGS, asked)  # type: ignore[attr-defined]
