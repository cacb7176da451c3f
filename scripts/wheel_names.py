"""Which public names a wheel has, and whether documentation has the same.

Usage: python scripts/wheel_names.py WHEEL [--docs FILE]...

Without --docs it prints the names, one a line. With --docs it compares them with those that a file documents: an
``objects.inv`` of Sphinx, or a page of the reference before Sphinx reads it (scripts/make_api_reference.py). The exit
code is 1 if they differ.

`names_of_wheel` and `differences` are for the build of the site, too.
"""

from __future__ import annotations

import argparse
import json
import os
import re
import subprocess
import sys
import tempfile
import zipfile
import zlib
from collections.abc import Iterable
from pathlib import Path

__all__ = ["differences", "documented_names", "names_of_wheel"]

PACKAGE = "gridwise_py"
# In a process of its own: the package of the wheel, not the one that this process may have imported.
_ASK = (
    f"import json, {PACKAGE} as gw\n"
    "print(json.dumps([gw.__file__, [name for name in gw.__all__ if hasattr(gw, name)],\n"
    "                  [name for name in gw.__all__ if not hasattr(gw, name)]]))"
)


def names_of_wheel(wheel: Path) -> set[str]:
    """Return ``gridwise_py.__all__`` of a wheel, read from the wheel's own files.

    Parameters
    ----------
    wheel : Path
        Its dependencies must be importable here.

    Raises
    ------
    RuntimeError
        If the package in the wheel cannot be imported, or lacks a name that it lists.
    """
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name).resolve()
        with zipfile.ZipFile(wheel) as archive:
            archive.extractall(folder)
        # -P, and the folder first: neither this checkout nor what is installed comes before the wheel.
        environment = {**os.environ, "PYTHONPATH": str(folder), "PYTHONDONTWRITEBYTECODE": "1"}
        done = subprocess.run(
            [sys.executable, "-P", "-c", _ASK], cwd=folder, env=environment, capture_output=True, text=True
        )
        if done.returncode:
            raise RuntimeError(f"{wheel.name} cannot be imported: {done.stderr.strip()[-500:]}")
        file, present, missing = json.loads(done.stdout)
        if not Path(file).resolve().is_relative_to(folder):
            raise RuntimeError(f"{PACKAGE} was imported from {file}, not from {wheel.name}")
    if missing:
        raise RuntimeError(f"{wheel.name} lists names that it lacks: {', '.join(missing)}")
    return set(present)


def documented_names(path: Path) -> set[str]:
    """Return the public names that a file documents.

    Parameters
    ----------
    path : Path
        Sphinx's ``objects.inv``, or reStructuredText with a directive such as ``autoclass`` for each name.
    """
    if path.suffix == ".inv":
        return _inventory_names(path.read_bytes())
    return set(re.findall(r"^\.\. (?:auto\w+|py:data):: (\w+)$", path.read_text(encoding="utf-8"), re.MULTILINE))


def _inventory_names(content: bytes) -> set[str]:
    """Return what lies directly in the package, by an inventory of version 2: four lines, then zlib."""
    head = content.split(b"\n", 4)
    if len(head) < 5 or not head[0].endswith(b"version 2"):
        raise ValueError("this is no inventory of Sphinx, version 2")
    names = set()
    for line in zlib.decompress(head[4]).decode("utf-8").splitlines():
        name, role = line.split()[:2]
        module, _, last = name.rpartition(".")
        if role.startswith("py:") and role != "py:module" and module == PACKAGE:
            names.add(last)
    return names


def differences(wheel_names: Iterable[str], documented: Iterable[str]) -> list[str]:
    """Return a sentence for each kind of difference; none if both have the same names."""
    of_wheel, of_docs = set(wheel_names), set(documented)
    found = []
    if of_wheel - of_docs:
        found.append(f"in the wheel, not in the documentation: {', '.join(sorted(of_wheel - of_docs))}")
    if of_docs - of_wheel:
        found.append(f"in the documentation, not in the wheel: {', '.join(sorted(of_docs - of_wheel))}")
    return found


def main() -> int:
    """Print the names, or compare them."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("wheel", type=Path)
    parser.add_argument("--docs", type=Path, action="append", default=[])
    given = parser.parse_args()
    names = names_of_wheel(given.wheel)
    if not given.docs:
        print("\n".join(sorted(names)))
        return 0
    found = differences(names, set().union(*(documented_names(path) for path in given.docs)))
    print("\n".join(found) if found else f"{len(names)} names, the same in the wheel and in the documentation")
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main())
