"""Asks whether a vulnerability is known of a package in requirements-ci.lock, by pip-audit.

Usage: python scripts/audit.py [PATH-OF-PIP-AUDIT]

Exit: 1 if one is known. Where pip-audit or its database cannot be reached within a minute, it says so, and the exit
code is 0: that is no fault of what is built.
"""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

LOCK = Path(__file__).resolve().parent.parent / "requirements-ci.lock"
TIMEOUT_S = 60


def audit(program: str) -> tuple[int, str]:
    """Return an exit code, and what to say."""
    command = [program, "-r", str(LOCK), "--no-deps", "--disable-pip", "--format", "json", "--progress-spinner", "off"]
    try:
        done = subprocess.run(command, capture_output=True, text=True, timeout=TIMEOUT_S, check=False)
    except (OSError, subprocess.TimeoutExpired) as error:
        return (
            0,
            f"SKIPPED: {type(error).__name__}: no answer from pip-audit within {TIMEOUT_S} s. NOTHING WAS AUDITED.",
        )
    try:
        packages = json.loads(done.stdout)["dependencies"]
    except (ValueError, KeyError, TypeError):
        said = (done.stderr.strip().splitlines() or ["nothing"])[-1][:200]
        return 0, f"SKIPPED: pip-audit's database cannot be reached ({said}). NOTHING WAS AUDITED."
    known = [(p, v) for p in packages for v in p.get("vulns", ())]
    if known:
        lines = [
            f"  {p['name']} {p['version']}: {v['id']}, mended in {', '.join(v['fix_versions']) or 'no version'}"
            for p, v in known
        ]
        return 1, "\n".join(["vulnerabilities are known:", *lines])
    unknown = [p["name"] for p in packages if "skip_reason" in p]
    if len(unknown) == len(packages):
        return 0, "SKIPPED: pip-audit's database knows none of the packages. NOTHING WAS AUDITED."
    of = f", {len(unknown)} not found there: {', '.join(unknown)}" if unknown else ""
    return 0, f"no vulnerability is known of {len(packages) - len(unknown)} packages{of}"


def main() -> int:
    """Say it."""
    code, text = audit(sys.argv[1] if len(sys.argv) > 1 else "pip-audit")
    print(f"audit: {text}")
    return code


if __name__ == "__main__":
    sys.exit(main())
