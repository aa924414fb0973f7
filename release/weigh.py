"""What a plain install and each extra weigh here: ``python release/weigh.py``.

Counts the files of every package that is brought, as they lie in this environment, without what
Python compiles of them. An extra counts what a plain install does not have; one of which something
is not installed is left out.
"""

from __future__ import annotations

from importlib.metadata import PackageNotFoundError, distribution

from sbom import NAME, closure


def size(name: str) -> int:
    """Bytes of a package's files."""
    found = distribution(name)
    paths = {found.locate_file(file) for file in found.files or () if file.suffix != ".pyc"}
    return sum(path.stat().st_size for path in paths if path.is_file())  # type: ignore[attr-defined]


def weights() -> dict[str, tuple[int, list[str]]]:
    """Of a plain install, and of each extra beyond it: bytes, and the largest packages first."""
    plain = closure(frozenset()).keys() - {NAME}
    found = {"": plain}
    for extra in distribution(NAME).metadata.get_all("Provides-Extra") or ():
        try:
            found[extra] = closure(frozenset({extra})).keys() - plain - {NAME}
        except PackageNotFoundError:
            continue
    sizes = {name: size(name) for name in set().union(*found.values())}
    return {
        extra: (sum(sizes[n] for n in names), sorted(names, key=lambda n: -sizes[n]))
        for extra, names in found.items()
    }


def main() -> None:
    """Print a row of a table for each."""
    for extra, (total, names) in weights().items():
        named = f"`{extra}`" if extra else "none"
        print(f"| {named} | {total / 2**20:,.0f} | {', '.join(names[:4])} |")


if __name__ == "__main__":
    main()
