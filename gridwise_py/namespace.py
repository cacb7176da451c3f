"""What the package answers to names that it does not have, or that are modules of its own."""

from __future__ import annotations

import sys
from difflib import get_close_matches
from types import ModuleType
from typing import Any, NoReturn

from .errors import ArgumentError

__all__ = ["INSTEAD", "answer_calls", "no_such_name"]

_UPLOAD = "make it with numpy and upload it: gw.asarray(np.{name}(…, dtype=np.float32))"
_OWN = "write it as a gw.Kernel (docs/numpy-and-cupy.md), or use numpy"
_NOT_HERE = "not here (docs/numpy-and-cupy.md): use numpy on x.to_numpy()"
#: What takes the place of a name of numpy that is missing here; ``{name}`` is that name.
INSTEAD: dict[str, str] = {
    "array": "gw.asarray(data) uploads data, gw.empty(n) makes an Array of n items",
    **dict.fromkeys(("zeros", "ones", "full", "arange", "linspace"), _UPLOAD),
    **dict.fromkeys(("subtract", "multiply", "divide", "negative", "abs", "exp", "sqrt", "where"), _OWN),
    **dict.fromkeys(("unique", "histogram", "bincount", "nonzero", "searchsorted", "take", "flatnonzero"), _NOT_HERE),
    "mean": "gw.sum(x) / x.size",
    "average": "gw.sum(x) / x.size",
    "amin": "gw.min",
    "amax": "gw.max",
    "argmin": "gw.argsort(x)[0]",
    "argmax": "gw.argsort(x, descending=True)[0]",
    "cumprod": "gw.scan(x, 'multiply')",
    "dot": "gw.matmul",
    "concatenate": "gw.ChunkedArray([a, b]) takes Arrays as one",
    "ndarray": "gw.Array",
    "asnumpy": "x.to_numpy()",
}


def no_such_name(package: str, name: str) -> AttributeError:
    """Return what to raise for a name that the package does not have; Python itself finds similar names."""
    remedy = f": {INSTEAD[name].format(name=name)}" if name in INSTEAD else ""
    return AttributeError(f"module {package!r} has no attribute {name!r}{remedy}")


class _Module(ModuleType):
    """A module that says what to call where it is called."""

    def __call__(self, *_args: Any, **_kwargs: Any) -> NoReturn:
        package, _, name = self.__name__.rpartition(".")
        public = sys.modules[package].__all__
        same = [word for word in public if word.casefold() == name]
        near = same or get_close_matches(name, public, 1)
        meant = INSTEAD.get(name) or (f"did you mean gw.{near[0]}?" if near else "dir(gw) has the public names")
        raise ArgumentError(f"{self.__name__} is an internal module and no function; {meant}")


def answer_calls(package: str) -> None:
    """Make the modules of a package answer a call with the function that was meant.

    A module of another class is documented Python ("customizing module attribute access"); importing it, and all that
    is in it, stays as it was.
    """
    for name, module in list(sys.modules.items()):
        if name.rpartition(".")[0] == package and type(module) is ModuleType:
            module.__class__ = _Module
