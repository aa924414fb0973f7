"""Every headline figure, each beside its peer: ``python -m benchmarks``, a quarter of an hour."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path


def main() -> int:
    """Run every benchmark of this folder and those within in a process of its own."""
    here = Path(__file__).parent
    # And what another starts, or what needs Spark.
    helpers = {
        "__init__",
        "__main__",
        "assess.peers",
        "side_by_side",
        "tumult_side",
        "spark_stages",
        "learn.opacus",
        "learn.peers",
        "synth.peers",
    }
    found = (p.relative_to(here).with_suffix("") for p in here.rglob("*.py"))
    names = sorted({".".join(p.parts) for p in found if p.name != "__init__"} - helpers)
    failed = []
    for name in names:
        print(f"\n--- {name} ---", flush=True)
        if subprocess.run([sys.executable, "-m", f"benchmarks.{name}"], check=False).returncode:
            failed.append(name)
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
