"""The software bill of materials: ``python release/sbom.py FILE``, in CycloneDX 1.6.

Lists what a plain install brings, by the versions that this environment has, each with its licence
and what it needs in turn; extras are named by ``--extra NAME``. The same packages give the same
file, to the byte: it holds no time, and its number is made of what it says.
"""

from __future__ import annotations

import argparse
import json
import uuid
from importlib.metadata import Distribution, distribution
from pathlib import Path
from typing import Any

from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

NAME = "dither"


def needed(name: str, extras: frozenset[str]) -> list[Requirement]:
    """What a distribution needs here, with these of its extras."""
    found = map(Requirement, distribution(name).requires or ())
    asked = [{"extra": extra} for extra in ("", *sorted(extras))]
    return [r for r in found if r.marker is None or any(map(r.marker.evaluate, asked))]


def closure(extras: frozenset[str]) -> dict[str, list[str]]:
    """Everything that is installed, with what each needs."""
    graph: dict[str, set[str]] = {}
    waiting, seen = [(NAME, extras)], set()
    while waiting:
        name, asked = waiting.pop()
        if (name, asked) not in seen:
            seen.add((name, asked))
            needs = needed(name, asked)
            graph.setdefault(name, set()).update(canonicalize_name(r.name) for r in needs)
            waiting += [(canonicalize_name(r.name), frozenset(r.extras)) for r in needs]
    return {name: sorted(needs) for name, needs in sorted(graph.items())}


def licences(found: Distribution) -> list[dict[str, Any]]:
    """Its licence: an expression where it gives one, else what its classifiers or its text say."""
    meta = found.metadata
    if expression := meta.get("License-Expression"):
        return [{"expression": expression}]
    marks = [c for c in meta.get_all("Classifier") or () if c.startswith("License ::")]
    names = [c.rpartition(" :: ")[2] for c in marks]
    first = str(meta.get("License") or "").strip().splitlines()
    return [{"license": {"name": n}} for n in names or first[:1]]


def component(name: str) -> dict[str, Any]:
    """A package as the standard names it."""
    found = distribution(name)
    address = f"pkg:pypi/{name}@{found.version}"
    body: dict[str, Any] = {
        "type": "library",
        "bom-ref": address,
        "name": found.metadata["Name"],
        "version": found.version,
        "purl": address,
    }
    said = licences(found)
    return body | {"licenses": said} if said else body


def bill(extras: frozenset[str] = frozenset()) -> dict[str, Any]:
    """The whole bill."""
    graph = closure(extras)
    parts = {name: component(name) for name in graph}
    own = parts.pop(NAME)
    refs = {name: part["bom-ref"] for name, part in parts.items()} | {NAME: own["bom-ref"]}
    body = {
        "metadata": {"component": own},
        "components": list(parts.values()),
        "dependencies": [
            {"ref": refs[name], "dependsOn": [refs[n] for n in needs]}
            for name, needs in graph.items()
        ],
    }
    number = uuid.uuid5(uuid.NAMESPACE_URL, json.dumps(body, sort_keys=True))
    head = {"bomFormat": "CycloneDX", "specVersion": "1.6", "serialNumber": f"urn:uuid:{number}"}
    return {**head, "version": 1, **body}


def main() -> None:
    """Write it."""
    options = argparse.ArgumentParser(description="Write the software bill of materials.")
    options.add_argument("file", type=Path)
    options.add_argument("--extra", action="append", default=[], metavar="NAME")
    given = options.parse_args()
    given.file.parent.mkdir(parents=True, exist_ok=True)
    text = json.dumps(bill(frozenset(given.extra)), indent=2, ensure_ascii=False)
    given.file.write_text(text + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
