"""What results are in a notebook, without one."""

from __future__ import annotations

import importlib
import inspect
import pkgutil
from pathlib import Path

import duckdb
import pytest

import dither
from dither._notebook import Shown
from dither.engines.duckdb.connection import second
from dither.errors import MissingLibraryError
from dither.learn._estimator import Estimator


@pytest.mark.extras
def test_every_result_shows_its_text() -> None:
    """What has a summary is neither bare nor a page of digits where it is the last of a cell.

    Estimators have theirs after they are fitted; before, they are what they were made with.
    """
    found = set()
    for name in (m.name for m in pkgutil.walk_packages(dither.__path__, "dither.")):
        if name.endswith("__main__"):
            continue
        try:
            module = importlib.import_module(name)
        except ImportError:
            continue  # of an extra that is not installed
        for thing in vars(module).values():
            if inspect.isclass(thing) and hasattr(thing, "summary"):
                found.add(thing)
    assert len(found) > 50
    shown = [thing for thing in found if not issubclass(thing, Estimator)]
    assert [t for t in shown if not hasattr(t, "_repr_html_")] == []
    assert [t for t in shown if "create_fn" in t.__repr__.__qualname__] == []
    assert [t for t in shown if t.__repr__ is object.__repr__] == []


PACKAGES = [
    "dither",
    *(
        m.name
        for m in pkgutil.walk_packages(dither.__path__, "dither.")
        # Engines stay behind a session.
        if m.ispkg and "._" not in m.name and not m.name.startswith("dither.engines")
    ),
]
HANDED_OUT = {
    "dither.inference.tables._table": "Inference",
    "dither.learn.deep._optimizer": "PrivateOptimizer",
    "dither.learn.federated._server": "Server Round",
    "dither.learn.secure._secure_sum": "SecureSum RunningSum",
    "dither.learn.secure._shared_sum": "ShareServer",
    "dither.learn.votes._teachers": "Poll",
    "dither.mechanisms.counts.binary_tree": "RunningCount",
}
"""What people are given without importing it."""
HELD_BACK = {"KeyedWords", "SecureWords", "SimulatedWords"}
"""Sources of randomness, which show nothing of themselves."""


@pytest.mark.extras
def test_nothing_that_people_hold_is_an_address_in_memory() -> None:
    """What a package offers and hands out says what it is; what can be drawn is a picture."""
    made: set[type] = set()
    for name in [*PACKAGES, *HANDED_OUT]:
        try:
            module = importlib.import_module(name)
        except ImportError as error:
            if (error.name or "").startswith("dither"):
                raise
            continue  # of an extra that is not installed
        wanted = HANDED_OUT.get(name, "").split() or [n for n in vars(module) if n[0] != "_"]
        things = [vars(module)[n] for n in wanted]
        made |= {
            thing
            for thing in things
            if inspect.isclass(thing)
            and thing.__module__.startswith("dither.")
            and not inspect.isabstract(thing)
            and not getattr(thing, "_is_protocol", False)
            and not issubclass(thing, BaseException)
        }
    assert len(made) > 150
    bare = {thing.__name__ for thing in made if thing.__repr__ is object.__repr__}
    assert bare == HELD_BACK & bare
    drawn = [thing for thing in made if hasattr(thing, "plot")]
    silent = [t for t in drawn if "create_fn" in t.__repr__.__qualname__]
    assert silent == []
    shows = ("_repr_html_", "_repr_png_")
    unseen = [t.__name__ for t in drawn if not any(hasattr(t, name) for name in shows)]
    assert unseen == ["Loss"]  # a line says it


def test_text_is_escaped() -> None:
    """A name of the data is no markup."""

    class Name(Shown):
        def __str__(self) -> str:
            return "<b>&"

    assert Name()._repr_html_() == "<pre>&lt;b&gt;&amp;</pre>"


@pytest.mark.extras
def test_a_picture_is_one_in_a_notebook() -> None:
    """Sharp, at the size that it has on paper."""
    pytest.importorskip("matplotlib")
    from dither.plots._canvas import DOTS, new_figure

    content, size = new_figure(4.0, 2.0)._repr_png_()
    assert content.startswith(b"\x89PNG")
    assert size == {"width": 400, "height": 200}
    width = int.from_bytes(content[16:20], "big")
    assert width == 4 * DOTS


class Kernel:
    """A connection in a notebook without ipywidgets, where DuckDB takes no setting of a bar."""

    def __init__(self) -> None:
        self.taken: list[str] = []

    def cursor(self) -> Kernel:
        return self

    def execute(self, sql: str) -> None:
        if "progress_bar" in sql:
            raise duckdb.InvalidInputException("required package 'ipywidgets' is missing")
        self.taken.append(sql)


def test_a_session_opens_where_duckdb_cannot_show_progress() -> None:
    """And the setting that answers rest on, the time zone, is made."""
    assert second(Kernel()).taken == ["SET TimeZone = 'UTC'"]


def test_a_missing_library_is_named_with_its_extra(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As an error of dither and of imports; what fails inside a library is shown as it is."""
    from dither._extras import check_library, extra_library

    with pytest.raises(MissingLibraryError, match=r"tea needs pot, .* 'dither\[kitchen\]'") as told:
        extra_library("pot.lid", "kitchen", "tea needs")
    assert isinstance(told.value, ImportError)
    assert told.value.name == "pot"
    with pytest.raises(MissingLibraryError):
        check_library("pot.lid", "kitchen", "tea needs")
    (tmp_path / "kettle_of_tests.py").write_text("import no_such_library")
    monkeypatch.syspath_prepend(tmp_path)
    with pytest.raises(ModuleNotFoundError, match="no_such_library") as other:
        extra_library("kettle_of_tests", "kitchen", "tea needs")
    assert not isinstance(other.value, MissingLibraryError)
