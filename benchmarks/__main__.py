"""Every headline figure, each beside its peer: ``python -m benchmarks``, a quarter of an hour."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path


def main() -> int:
    """Run every benchmark of this folder in a process of its own."""
    here = Path(__file__).parent
    # And what another starts, or what needs Spark.
    helpers = {
        "__init__",
        "__main__",
        "side_by_side",
        "tumult_side",
        "spark_stages",
        "learn_opacus",
    }
    names = sorted(p.stem for p in here.glob("*.py") if p.stem not in helpers)
    failed = []
    for name in names:
        print(f"\n--- {name} ---", flush=True)
        if subprocess.run([sys.executable, "-m", f"benchmarks.{name}"], check=False).returncode:
            failed.append(name)
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
