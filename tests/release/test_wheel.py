"""What a user installs: the wheel, all that it brings, and what it does in a notebook."""

from __future__ import annotations

import base64
import json
import re
import subprocess
import sys
import tarfile
import venv
import zipfile
from pathlib import Path
from typing import Any

import pytest

ROOT = Path(__file__).parents[2]
NOTEBOOK = Path(__file__).with_name("notebook.py")
LARGEST = 450
"""Megabytes of a plain install, pip included."""


def run(*command: str | Path, **how: Any) -> str:
    """What a command prints."""
    done = subprocess.run(command, capture_output=True, text=True, timeout=900, **how)
    assert done.returncode == 0, done.stdout[-2000:] + done.stderr[-2000:]
    return done.stdout


@pytest.fixture(scope="module")
def built(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with the two archives, made as they are made for an index."""
    folder = tmp_path_factory.mktemp("dist")
    pytest.importorskip("build", reason="build is not installed")
    run(sys.executable, "-m", "build", "--no-isolation", "--outdir", folder, ROOT)
    return folder


@pytest.fixture(scope="module")
def plain(built: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The interpreter of an environment in which the wheel was installed, and nothing else."""
    folder = tmp_path_factory.mktemp("plain")
    venv.create(folder, with_pip=True)
    python = folder / "bin" / "python"
    if not python.exists():
        pytest.skip("an environment has another layout here")
    install(python, str(next(built.glob("*.whl"))))
    return python


def install(python: Path, *packages: str) -> None:
    """By pip; skips the test where pip reaches no index."""
    asked = [python, "-m", "pip", "install", "-q", "--no-compile", *packages]
    done = subprocess.run(asked, capture_output=True, text=True, timeout=900)
    if done.returncode and re.search("connection|resolve host|network", done.stderr, re.IGNORECASE):
        pytest.skip("no package index can be reached")
    assert done.returncode == 0, done.stderr[-2000:]


def size_of(folder: Path) -> float:
    """Megabytes (2^20 bytes) of all files."""
    return sum(p.stat().st_size for p in folder.rglob("*") if p.is_file()) / 2**20


def test_both_archives_hold_what_they_should(built: Path) -> None:
    """The wheel the package with its types and licence; the sdist what tests and docs need."""
    wheel = zipfile.ZipFile(next(built.glob("*.whl"))).namelist()
    assert {"dither/__init__.py", "dither/__init__.pyi", "dither/py.typed"} <= set(wheel)
    assert any(name.endswith("licenses/LICENSE") for name in wheel)
    source = {p.relative_to(ROOT / "src").as_posix() for p in (ROOT / "src/dither").rglob("*.py")}
    assert source == {name for name in wheel if name.endswith(".py")}
    with tarfile.open(next(built.glob("*.tar.gz"))) as archive:
        names = {name.partition("/")[2] for name in archive.getnames()}
    wanted = {"LICENSE", "README.md", "CHANGELOG.md", "Makefile", "docs/index.md", "conftest.py"}
    assert wanted <= names
    assert not any(name.startswith((".venv", "out/", "dist/")) for name in names)


@pytest.mark.heavy("what it brings stands in pyproject.toml; nothing here is about privacy")
def test_a_plain_install_is_small(plain: Path) -> None:
    """It brings no library that only extras need, and its size is what the docs say."""
    listed = json.loads(run(plain, "-m", "pip", "list", "--format", "json"))
    names = {one["name"].lower() for one in listed}
    assert names.isdisjoint({"pandas", "pyarrow", "scipy", "matplotlib", "torch"})
    assert size_of(plain.parents[1]) < LARGEST


@pytest.mark.heavy("how results look; tests/test_notebook.py has what each is")
def test_a_notebook_shows_everything_that_is_asked(
    built: Path, plain: Path, tmp_path: Path
) -> None:
    """Without ipywidgets; each cell shows one thing, which is neither bare nor an error."""
    install(plain, f"{next(built.glob('*.whl'))}[plots]", "nbclient", "ipykernel")
    assert "ipywidgets" not in run(plain, "-m", "pip", "list")
    shown = json.loads(run(plain, NOTEBOOK, tmp_path))
    for name, outputs in shown.items():
        assert [one["output_type"] for one in outputs] == ["execute_result"], (name, outputs)
        data = outputs[0]["data"]
        if name.startswith(("plot", "draw")):
            assert base64.b64decode(data["image/png"]).startswith(b"\x89PNG"), name
        else:
            assert len(re.sub("<[^>]*>", "", data["text/html"])) > 20, name
            assert "object at 0x" not in data["text/plain"]
    html = {name: "".join(out[0]["data"].get("text/html", "")) for name, out in shown.items()}
    assert "visits (protects who)" in html["open"]
    assert html["ask"] == html["explain"]
    assert "<table>" in html["preview"]
    assert "north" in html["release"]
    assert "epsilon 9" in html["balance"]
    assert "entry" in html["certificate"]
    assert "closed" in html["closed"]
