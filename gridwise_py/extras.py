"""What needs the extras ``bench`` and ``dask``, and the answer where they are not installed."""

from __future__ import annotations

import importlib
import importlib.util
from typing import Any

# Charts need more packages of the extra. Their modules say so themselves, since tables work without them.
_PACKAGES = ("click", "rich", "scipy")


_PACKAGES_OF_DASK = ("dask", "distributed")


def _missing(packages: tuple[str, ...]) -> list[str]:
    return [name for name in packages if importlib.util.find_spec(name) is None]


def bench_is_installed() -> bool:
    """Whether the packages are there that the command and the benchmarks need; imports none of them."""
    return not _missing(_PACKAGES)


def check_bench_is_installed(what: str) -> None:
    """Raise ImportError unless the extra ``bench`` is installed; `what` names the part that needs it."""
    _check(what, "bench", _PACKAGES)


def check_dask_is_installed(what: str) -> None:
    """Raise ImportError unless the extra ``dask`` is installed; `what` names the part that needs it."""
    _check(what, "dask", _PACKAGES_OF_DASK)


def _check(what: str, extra: str, packages: tuple[str, ...]) -> None:
    missing = _missing(packages)
    if missing:
        raise ImportError(
            f"{what} needs the extra {extra!r}, of which {', '.join(missing)} "
            f"{'is' if len(missing) == 1 else 'are'} not installed: pip install 'gridwise-py[{extra}]'",
            name=missing[0],
        )


def imported(package: str, what: str) -> Any:
    """Return an optional package; raise ImportError that names `what` needs it where they are not installed."""
    try:
        return importlib.import_module(package)
    except ImportError as error:
        raise ImportError(
            f"{what} needs {package}, which cannot be imported ({error}): pip install {package}", name=package
        ) from error
