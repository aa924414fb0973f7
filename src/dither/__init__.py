"""Learn from sensitive data without learning about any one person in it, and prove it.

::

    import dither as dt

    session = dt.open("dither.toml")
    question = session.sql("SELECT region, COUNT(*) AS n FROM visits GROUP BY region")
    print(question.explain(epsilon=0.5))
    print(question.preview(epsilon=0.5))
    release = question.release(epsilon=0.5)

Names are listed in the stub beside this file, and imported when they are first used, so that
``import dither`` stays fast. Subpackages are there too, as ``dt.privacy``, ``dt.local`` and
``dt.attack``.
"""

from __future__ import annotations

import re
from importlib import import_module
from pathlib import Path

__version__ = "0.1.0"

_HOMES = {
    name: home
    for home, name in re.findall(
        r"^from (\S+) import (\w+) as \2$",
        Path(__file__).with_suffix(".pyi").read_text(encoding="utf-8"),
        re.MULTILINE,
    )
}
_PACKAGES = {name for name, home in _HOMES.items() if home in ("dither", "dither.lab")}

__all__ = sorted(_HOMES.keys() - _PACKAGES)


def __getattr__(name: str) -> object:
    if name not in _HOMES:
        raise AttributeError(f"module 'dither' has no attribute {name!r}")
    home = _HOMES[name]
    package = name in _PACKAGES
    found = import_module(f"{home}.{name}") if package else getattr(import_module(home), name)
    globals()[name] = found
    return found


def __dir__() -> list[str]:
    return sorted({*_HOMES, *(name for name in globals() if name.startswith("__"))})
