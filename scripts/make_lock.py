"""Makes requirements-ci.lock: the versions of constraints.txt with the hashes of all their files, by uv.

Usage: python scripts/make_lock.py [PATH-OF-UV]
"""

from __future__ import annotations

import subprocess
import sys
import tempfile
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
HEAD = """\
# The versions of constraints.txt with the hashes of all their files, for Python 3.11 and newer, on every system:
# what CI installs (.ci/run), and nothing else. Made by `make lock`.
"""
#: Beside what pyproject.toml names: what installs and builds.
SET_UP = ("pip", "hatchling", "editables")


def main() -> int:
    """Write it."""
    uv = sys.argv[1] if len(sys.argv) > 1 else "uv"
    with tempfile.TemporaryDirectory() as folder:
        extra, lock = Path(folder) / "set-up.in", Path(folder) / "lock"
        extra.write_text("\n".join(SET_UP) + "\n", encoding="utf-8")
        command = [
            uv, "pip", "compile", "pyproject.toml", str(extra), "--group", "dev", "--extra", "bench", "--extra",
            "nvidia", "-c", "constraints.txt", "--universal", "--python-version", "3.11", "--generate-hashes",
            "--no-annotate", "--no-header", "--no-emit-index-url", "--quiet", "-o", str(lock),
        ]  # fmt: skip
        subprocess.run(command, cwd=ROOT, check=True, stdout=subprocess.DEVNULL)
        (ROOT / "requirements-ci.lock").write_text(HEAD + lock.read_text(encoding="utf-8"), encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main())
