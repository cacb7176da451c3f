"""Try the package that is installed for this interpreter, as a user would, in an empty folder.

Usage: python -P scripts/smoke_wheel.py core VERSION     (the package without its extras)
       python -P scripts/smoke_wheel.py bench VERSION    (the package with the extra `bench`)

Needs an adapter; a software one will do. Anything that is not as it should be ends with an error.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import sysconfig
import tempfile
from pathlib import Path

COMMAND = Path(sysconfig.get_path("scripts")) / ("gridwise.exe" if sys.platform == "win32" else "gridwise")


def require(condition: bool, text: object) -> None:
    """End with a text unless a condition holds; unlike assert, under -O too."""
    if not condition:
        sys.exit(f"smoke test: {text}")


def gridwise(*arguments: str) -> subprocess.CompletedProcess[str]:
    """Run the command that was installed."""
    return subprocess.run([COMMAND, *arguments], capture_output=True, text=True, encoding="utf-8", timeout=300)


def check_package(version: str) -> None:
    """Import the package; compute something on the GPU."""
    import numpy as np

    import gridwise_py as gw

    installed = Path(sysconfig.get_path("purelib")).resolve()
    require(Path(gw.__file__).resolve().is_relative_to(installed), f"{gw.__file__} is not in {installed}")
    require(gw.__version__ == version, f"version {gw.__version__}, expected {version}")
    items = np.arange(100_003, dtype=np.uint32) % 97
    require(bool(np.array_equal(gw.cumsum(items), np.cumsum(items))), "cumsum differs from numpy")
    require(bool(np.array_equal(gw.sort(items), np.sort(items))), "sort differs from numpy")


def check_core(version: str) -> None:
    """The package alone: it works, and the command names the extra that it needs."""
    check_package(version)
    done = gridwise("info")
    require(done.returncode != 0, "gridwise info works without the extra `bench`")
    require("gridwise-py[bench]" in done.stderr, f"gridwise does not name the extra it needs: {done.stderr}")


def check_bench(version: str) -> None:
    """The package with `bench`: the command measures, and its results are right."""
    check_package(version)
    done = gridwise("--version")
    require(version in done.stdout, f"gridwise --version says {done.stdout!r}")
    for arguments in (["info"], ["bench", "scan", "--n", "2^16", "--json", "out.json"]):
        done = gridwise(*arguments)
        require(done.returncode == 0, f"gridwise {' '.join(arguments)}: {done.returncode}: {done.stdout}{done.stderr}")
    results = json.loads(Path("out.json").read_text(encoding="utf-8"))["results"]
    require(bool(results) and all(result["correct"] for result in results), results)


def main() -> None:
    """Check what the first argument names, in an empty folder."""
    part, version = sys.argv[1:]
    before = Path.cwd()
    with tempfile.TemporaryDirectory() as folder:
        os.chdir(folder)
        try:
            {"core": check_core, "bench": check_bench}[part](version)
        finally:
            os.chdir(before)  # Windows removes no folder that a process is in
    print(f"smoke test of {part} on Python {sys.version.partition(' ')[0]}: passed")


if __name__ == "__main__":
    main()
