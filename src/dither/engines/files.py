"""The files of one table: one, a list, a pattern, or a folder whose parts are named by a key.

Which files there are, and what their folders are called, is found before any is read, so that what
cannot be read is refused when a source is opened:

- a list or pattern without files, and a file that is named twice, by a link too: its rows would
  count twice;
- what lies outside of the folder that was named, which a link could lead to;
- folders such as ``year=2024`` whose keys are not the same for all files, or are written twice.

Values of keys are text, as the fields of a CSV file are: a type that was guessed from them would
depend on somebody's row. They and the names of files that a pattern finds may tell of people, so no
message shows them.
"""

from __future__ import annotations

import glob
import os
import re
from collections.abc import Callable, Hashable, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from urllib.parse import unquote_to_bytes

from dither.errors import PolicyError
from dither.plan.text import unwritable

__all__ = [
    "MOST_FILES",
    "OWNER",
    "Files",
    "Named",
    "find_files",
    "fixed_part",
    "is_many",
    "sample_names",
    "shown_name",
]

MOST_FILES = 10_000

OWNER = "'dither owner bias'"
"""What names to the owner of the data the files that no message may name."""

NO_VALUE = "__HIVE_DEFAULT_PARTITION__"
"""What Hive and Spark call the folder of rows whose key is NULL."""

Named = str | Path | Sequence[str | Path]
"""What a policy names: a file, a pattern, a folder, or a list of them."""

Wanted = Callable[[str | None], bool]
"""Which texts of a key are asked for; ``None`` is NULL."""


@dataclass(frozen=True, slots=True)
class Files:
    """What was found.

    Parameters
    ----------
    paths : tuple of Path
        Without links, in the order of their names.
    keys : tuple of str
        Columns that the names of folders give.
    values : tuple of tuple
        For each file the text of each key, ``None`` where it is NULL.
    """

    paths: tuple[Path, ...]
    keys: tuple[str, ...] = ()
    values: tuple[tuple[str | None, ...], ...] = ()

    def only(self, places: Sequence[int]) -> Files:
        """Some of them, by their places."""
        values = tuple(self.values[i] for i in places) if self.keys else ()
        return Files(tuple(self.paths[i] for i in places), self.keys, values)

    def key(self, name: str) -> tuple[str | None, ...]:
        """For each file the text of one key."""
        place = self.keys.index(name)
        return tuple(row[place] for row in self.values)

    def places(self) -> frozenset[Hashable]:
        """What is one for all names and links of each file."""
        return frozenset(_place(path) for path in self.paths)


def is_many(named: Named) -> bool:
    """Whether more than one file can be meant."""
    return not isinstance(named, str | Path) or (
        not Path(named).is_file() and (Path(named).is_dir() or glob.has_magic(str(named)))
    )


def shown_name(named: Named) -> str:
    """How messages call a source.

    Examples
    --------
    >>> shown_name("visits/*.parquet"), shown_name(["a.parquet", "b.parquet"])
    ("'visits/*.parquet'", 'the list of 2 files')
    """
    if isinstance(named, str | Path):
        return repr(str(named))
    return f"the list of {len(named)} files"


def sample_names(named: Named) -> list[str]:
    """Names by whose endings the format shows: what is named, or some files of a folder."""
    if not isinstance(named, str | Path):
        return [name for one in named for name in sample_names(one)]
    if not Path(named).is_dir():
        return [str(named)]
    found: list[str] = []
    for _, folders, files in os.walk(named):
        folders[:] = sorted(name for name in folders if name[0] not in "._")
        found += [name for name in files if name[0] not in "._"]
        if found:
            break
    return found


def find_files(
    named: Named, endings: tuple[str, ...], wanted: tuple[str, Wanted] | None = None
) -> Files:
    """The files that are named.

    Parameters
    ----------
    named : path or sequence of paths
    endings : tuple of str
        How the names of files of a folder must end.
    wanted : tuple of (str, callable), optional
        A key, and which texts of it are asked for: of folders that have another one nothing is
        looked at but their names. There may then be no file.

    Raises
    ------
    PolicyError
        Where there are none, too many, or some that cannot be read together.
    """
    shown = shown_name(named)
    found: list[tuple[Path, tuple[tuple[str, str], ...]]] = []
    passed = None if wanted is None else partial(_is_wanted, *wanted)
    for one in [named] if isinstance(named, str | Path) else named:
        found += _one(Path(one), endings, shown, passed)
        if len(found) > MOST_FILES:
            raise PolicyError(
                f"{shown} has more than {MOST_FILES:,} files; write them together into fewer"
            )
    if not found and wanted is not None:
        return Files(())
    if not found:
        raise PolicyError(f"{shown} names no file; see that the files are there, and are readable")
    found.sort(key=lambda file: str(file[0]))
    paths = tuple(path for path, _ in found)
    if len({_place(path) for path in paths}) < len(paths):
        raise PolicyError(
            f"{shown} names a file twice, by its name or by a link to it, so that its rows would "
            "count twice; name each once"
        )
    for number, path in enumerate(paths, start=1):
        if not os.access(path, os.R_OK):
            which = f"file {number:,} of {len(paths):,}, by name, of " if len(paths) > 1 else ""
            raise PolicyError(f"{which}{shown} cannot be read; see who may read it")
    keys, values = _keys([parts for _, parts in found], shown)
    return Files(paths, keys, values)


def _is_wanted(key: str, wanted: Wanted, folder: str) -> bool:
    """Whether what is in a folder is asked for, by its name."""
    own, is_key, value = folder.partition("=")
    if not is_key or own != key:
        return True
    try:
        return wanted(_decoded(key, value, ""))
    except PolicyError:
        return False


def _place(path: Path) -> Hashable:
    try:
        found = path.stat()
    except OSError:
        return path
    return found.st_dev, found.st_ino


def _one(
    path: Path, endings: tuple[str, ...], shown: str, passed: Callable[[str], bool] | None = None
) -> list[tuple[Path, tuple[tuple[str, str], ...]]]:
    if path.is_file():
        # By its name, whatever characters that holds.
        return [(path.resolve(), ())]
    if path.is_dir():
        root, names = path, _inside(path, endings, shown, passed)
    elif glob.has_magic(str(path)):
        root = fixed_part(path)
        pattern = str(path.relative_to(root)) if root != Path() else str(path)
        # Unlike pathlib's, this pattern finds no hidden file unless it says so.
        names = glob.glob(pattern, root_dir=str(root), recursive=True)  # noqa: PTH207
        if passed is not None:
            names = [name for name in names if all(map(passed, Path(name).parts))]
        held = [name for name in names if not (root / name).is_dir()]
        if names and not held:
            raise PolicyError(f"{shown} names folders and no file; write '/*' after it")
        names = held
    else:
        raise PolicyError(f"no file {str(path)!r}")
    home = root.resolve()
    found = []
    for name in names:
        real = (root / name).resolve()
        if not real.is_file():
            raise PolicyError(f"{shown} names something that is not a file, or a broken link")
        if not real.is_relative_to(home):
            raise PolicyError(
                f"{shown} holds a link that leads out of {str(root)!r}; name what it leads to"
            )
        parts = Path(name).parts[:-1]
        pairs = tuple(
            (key, value) for key, is_key, value in (p.partition("=") for p in parts) if is_key
        )
        if pairs and len(pairs) < len(parts):
            raise PolicyError(
                f"{shown}: some of the folders above a file are named key=value, and some are not; "
                "name all of them so, or start from the first that is"
            )
        found.append((real, pairs))
    return found


def fixed_part(path: Path) -> Path:
    """The folders before the first with a pattern in its name."""
    fixed = []
    for part in path.parts:
        if glob.has_magic(part):
            break
        fixed.append(part)
    return Path(*fixed)


def _inside(
    folder: Path,
    endings: tuple[str, ...],
    shown: str,
    passed: Callable[[str], bool] | None = None,
) -> list[str]:
    """Every file below a folder. What begins with a dot or an underscore is a writer's own note."""
    found: list[str] = []

    def failed(_: OSError) -> None:
        raise PolicyError(f"{shown}: a folder below it cannot be read; see who may read it")

    for above, folders, files in os.walk(folder, onerror=failed):
        folders[:] = sorted(name for name in folders if name[0] not in "._")
        if passed is not None:
            folders[:] = filter(passed, folders)
        if any((Path(above) / name).is_symlink() for name in folders):
            raise PolicyError(f"{shown} holds a link to another folder; name that folder itself")
        for name in files:
            if name[0] in "._":
                continue
            if not name.lower().endswith(endings):
                raise PolicyError(
                    f"{shown} also holds files whose names do not end in "
                    f"{' or '.join(endings)}; name a pattern, such as "
                    f"{str(folder / '**' / ('*' + endings[0]))!r}"
                )
            found.append(str((Path(above) / name).relative_to(folder)))
    return found


def _keys(
    found: Sequence[tuple[tuple[str, str], ...]], shown: str
) -> tuple[tuple[str, ...], tuple[tuple[str | None, ...], ...]]:
    names = {tuple(key for key, _ in pairs) for pairs in found}
    if len(names) > 1:
        raise PolicyError(
            f"{shown}: the folders of its files do not all have the same keys, in one order"
        )
    (keys,) = names
    for key in keys:
        fault = "is empty" if not key.strip() else unwritable(key)
        if fault is not None:
            raise PolicyError(f"{shown}: the key of a folder named key=value {fault}")
    if len({key.casefold() for key in keys}) < len(keys):
        raise PolicyError(f"{shown}: a key stands twice in the folders above one file")
    values = tuple(tuple(_decoded(key, value, shown) for key, value in pairs) for pairs in found)
    spellings: dict[tuple[str, str | None], set[str]] = {}
    for pairs, row in zip(found, values, strict=True):
        for (key, spelled), value in zip(pairs, row, strict=True):
            spellings.setdefault((key, value), set()).add(spelled)
    for (key, _), written in spellings.items():
        if len(written) > 1:
            raise PolicyError(
                f"{shown}: two folders stand for one value of {key!r}, which is written in two "
                "ways; move their files into one"
            )
    return keys, values if keys else ()


def _decoded(key: str, value: str, shown: str) -> str | None:
    """The text of a folder's key, in which bytes may be written as %2F."""
    if value == NO_VALUE:
        return None
    malformed = re.search(r"%(?![0-9A-Fa-f]{2})", value)
    try:
        text = unquote_to_bytes(value.encode("utf-8")).decode("utf-8")
    except UnicodeError:
        text = ""
    if malformed or not text or unwritable(text) is not None:
        raise PolicyError(
            f"{shown}: a folder of the key {key!r} is not named key=value, with % only before two "
            f"hexadecimal digits and {NO_VALUE} for no value"
        )
    return text
