"""Run the numeric tests as other processors would.

Numpy, the C library and OpenBLAS each choose their code by the processor, and their last digits
hang on it. A promise must not. ``python tests/processors.py`` runs the tests of exact and certified
numbers twice more: as on a processor with the instructions of 2013, and as on one of 2009. What can
be switched off is found at run time, since numpy refuses to switch off what is not there; that the
settings took effect is shown, and checked by digests of some functions' values.
"""

from __future__ import annotations

import ctypes
import hashlib
import json
import math
import os
import platform
import subprocess
import sys
from pathlib import Path

TESTS = [
    "tests/numeric",
    "tests/privacy/test_answers.py",
    "tests/privacy/engines/test_responses.py",
    "tests/privacy/engines/test_balls.py",
    "tests/privacy/accounts/test_budget.py",
    "tests/privacy/test_calibration.py",
    "tests/privacy/test_charge.py",
    "tests/privacy/engines/test_concentration.py",
    "tests/privacy/division/test_division.py",
    "tests/privacy/accounts/test_filters.py",
    "tests/privacy/engines/test_grid.py",
    "tests/privacy/loss/test_algebra.py",
    "tests/privacy/test_rounding.py",
    "tests/privacy/amplification/test_samples.py",
    "tests/privacy/test_theorems.py",
    "tests/noise/test_cells.py",
    "tests/noise/test_staircase.py",
    "tests/mechanisms/test_allocation.py",
    "tests/mechanisms/test_for_error.py",
    "tests/mechanisms/test_inversion.py",
    "tests/mechanisms/test_ratio.py",
]

WIDE = ("AVX512F", "AVX512VL", "AVX512BW", "AVX512DQ", "AVX512CD")
"""What the C library may be told not to use, newest first."""

FUSED = ("AVX2", "FMA", "FMA4")


def seen() -> dict[str, str | list[str]]:
    """What this process computes with: numpy's features, OpenBLAS's core, and three digests."""
    import numpy as np
    from numpy._core._multiarray_umath import __cpu_dispatch__, __cpu_features__

    x = np.linspace(0.001, 30, 20_001)
    functions = (math.exp, math.log, math.erfc, math.sin, math.expm1, math.lgamma)
    plain = np.array([[f(v) for f in functions] for v in x.tolist()])
    arrays = [np.exp(-x), np.log(x), np.expm1(-x), np.log1p(x), np.tanh(x)]
    matrix = np.sin(np.arange(90_000.0)).reshape(300, 300)
    return {
        "features": [name for name in __cpu_dispatch__ if __cpu_features__.get(name)],
        "core": _core(Path(np.__file__).parent),
        "libm": _digest(plain),
        "numpy": _digest(np.concatenate(arrays)),
        "blas": _digest(matrix @ matrix.T),
    }


def _digest(values: object) -> str:
    return hashlib.sha256(values.tobytes()).hexdigest()[:8]  # type: ignore[attr-defined]


def _core(folder: Path) -> str:
    """The name that OpenBLAS gives to the code that it chose."""
    for path in sorted((folder.parent / "numpy.libs").glob("libscipy_openblas*")):
        library = ctypes.CDLL(str(path))
        for name in ("scipy_openblas_get_corename64_", "scipy_openblas_get_corename"):
            if hasattr(library, name):
                function = getattr(library, name)
                function.restype = ctypes.c_char_p
                return function().decode()
    return "another BLAS"


def told(settings: dict[str, str]) -> dict[str, str | list[str]]:
    """What a fresh process sees under these settings."""
    command = [sys.executable, "-W", "error", __file__, "--seen"]
    done = subprocess.run(
        command, env={**os.environ, **settings}, capture_output=True, text=True, check=True
    )
    found: dict[str, str | list[str]] = json.loads(done.stdout)
    return found


def variants(here: dict[str, str | list[str]]) -> list[tuple[str, dict[str, str]]]:
    """Names and settings; none where the processor or the libraries offer no choice."""
    if platform.machine().lower() not in ("x86_64", "amd64"):
        return []
    features = here["features"]
    assert isinstance(features, list)
    wide = [name for name in features if name != "X86_V3" and not name.startswith(("AVX2", "FMA"))]
    glibc = platform.libc_ver()[0] == "glibc"
    found = []
    for name, off, hardware, core in (
        ("2013", wide, WIDE, "Haswell"),
        ("2009", features, (*WIDE, *FUSED), "Nehalem"),
    ):
        settings = {"OPENBLAS_CORETYPE": core}
        if off:
            settings["NPY_DISABLE_CPU_FEATURES"] = " ".join(off)
        if glibc:
            off_there = ",".join(f"-{feature}" for feature in hardware)
            settings["GLIBC_TUNABLES"] = f"glibc.cpu.hwcaps={off_there}"
        if name == "2009" or wide:
            found.append((name, settings))
    return found


def failures(
    name: str,
    settings: dict[str, str],
    here: dict[str, str | list[str]],
    there: dict[str, str | list[str]],
) -> list[str]:
    """Settings that did nothing."""
    wrong = []
    off = settings.get("NPY_DISABLE_CPU_FEATURES", "").split()
    if set(off) & set(there["features"]):
        wrong.append("numpy still uses what it was told not to")
    if there["core"] not in ("another BLAS", settings["OPENBLAS_CORETYPE"]):
        wrong.append(f"OpenBLAS runs as {there['core']}")
    fused = "fma" in Path("/proc/cpuinfo").read_text() if Path("/proc/cpuinfo").exists() else False
    if name == "2009" and fused and "GLIBC_TUNABLES" in settings and there["libm"] == here["libm"]:
        wrong.append("the C library computes as before")
    return wrong


def main(arguments: list[str]) -> int:
    """Run every variant; 1 where a test failed or a setting did nothing."""
    here = told({})
    print("as it is ", json.dumps(here))
    chosen = variants(here)
    if not chosen:
        print(f"nothing can be switched off on {platform.machine()}")
    status = 0
    # Side by side, so that what each imports is imported by few processes.
    workers = (os.cpu_count() or 1) // max(1, len(chosen))
    many = ["-n", str(workers), "--dist", "worksteal"] if workers > 1 else []
    command = [sys.executable, "-m", "pytest", "-q", *many, *TESTS, *arguments]
    running = [
        subprocess.Popen(
            command, env={**os.environ, **s}, stdout=subprocess.PIPE, stderr=subprocess.STDOUT
        )
        for _, s in chosen
    ]
    for (name, settings), process in zip(chosen, running, strict=True):
        there = told(settings)
        print(f"\nas in {name}", json.dumps(there))
        print("          ", " ".join(f"{key}='{value}'" for key, value in settings.items()))
        for wrong in failures(name, settings, here, there):
            print(f"           FAILED: {wrong}")
            status = 1
        print(process.communicate()[0].decode(), end="", flush=True)
        status |= process.returncode
    return min(status, 1)


if __name__ == "__main__":
    if sys.argv[1:] == ["--seen"]:
        print(json.dumps(seen()))
    else:
        sys.exit(main(sys.argv[1:]))
