"""Where the repository, the tests and the kept results lie."""

import os
from pathlib import Path

TESTS = Path(__file__).resolve().parents[1]
#: The repository. A run on an installed wheel has no sources below it.
ROOT = TESTS.parent
RESULTS = ROOT / "benchmarks" / "results"


def with_helpers() -> dict[str, str]:
    """Return the environment for a process that runs a module of the helpers with ``python -m``."""
    paths = [str(TESTS), *filter(None, [os.environ.get("PYTHONPATH")])]
    return {**os.environ, "PYTHONPATH": os.pathsep.join(paths)}
