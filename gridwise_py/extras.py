"""What needs the extra ``bench``, and the answer where it is not installed."""

from __future__ import annotations

import importlib
import importlib.util
from typing import Any

__all__ = ["bench_is_installed", "check_bench_is_installed", "imported"]

# Charts need more packages of the extra. Their modules say so themselves, since tables work without them.
_PACKAGES = ("click", "rich", "jsonschema", "scipy")


def _missing_packages() -> list[str]:
    return [name for name in _PACKAGES if importlib.util.find_spec(name) is None]


def bench_is_installed() -> bool:
    """Whether the packages are there that the command and the benchmarks need; imports none of them."""
    return not _missing_packages()


def check_bench_is_installed(what: str) -> None:
    """Raise ImportError unless the extra ``bench`` is installed; `what` names the part that needs it."""
    missing = _missing_packages()
    if missing:
        raise ImportError(
            f"{what} needs the extra 'bench', of which {', '.join(missing)} "
            f"{'is' if len(missing) == 1 else 'are'} not installed: pip install 'gridwise-py[bench]'",
            name=missing[0],
        )


def imported(package: str, what: str) -> Any:
    """Return an optional package; raise ImportError that names `what` needs it where it is not installed."""
    try:
        return importlib.import_module(package)
    except ImportError as error:
        raise ImportError(
            f"{what} needs {package}, which cannot be imported ({error}): pip install {package}", name=package
        ) from error
