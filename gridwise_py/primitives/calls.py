"""Base classes that only say which arrays a primitive's calls take: `ScanCalls` those of "Scan" in `CALLS`.

Type checkers see ``calls.pyi``, where each declares `bind`, `record`, `execute` and `execute_async`.
"""

from .call_signatures import CALLS, arrays_of


def __getattr__(name: str) -> type:
    family = name.removesuffix("Calls")
    if family not in CALLS or family == name:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return type(name, (), {"call_arrays": arrays_of(family, "Items"), "__slots__": ()})
