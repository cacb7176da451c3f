"""`warm_up`: what a first call would do apart from its work, done ahead and side by side."""

from __future__ import annotations

import threading
from collections.abc import Callable, Sequence
from difflib import get_close_matches
from typing import Any, Literal, TypeAlias, get_args

import numpy as np
import wgpu

from . import functions
from .call_errors import explained
from .errors import ArgumentError
from .planning.signature import Product
from .primitives.base import Primitive
from .runtime.array import asarray
from .runtime.compile_threads import compile_threads
from .runtime.context import context_of
from .runtime.device import default_device
from .types.datatype import ITEM_DATATYPES, Datatype, as_datatype
from .types.options import integer

__all__ = ["FunctionName", "warm_up"]

#: The one-shot functions that always run the same kernels; `gw.scan` and `gw.reduce` depend on their operator.
FunctionName: TypeAlias = Literal[
    "add", "argsort", "cumprod", "cumsum", "matmul", "max", "min", "prod", "reduce", "scan", "sort", "sort_pairs", "sum"
]
_OF_TWO = ("add", "matmul", "sort_pairs")
_N = 4096  # where the caller names no length


@explained()
def warm_up(
    device: wgpu.GPUDevice | None = None,
    *what: FunctionName | Primitive,
    dtype: str | Datatype | np.dtype[Any] | type | Sequence[str] | None = None,
    n: int | None = None,
) -> int:
    """Compile ahead, side by side, what the first calls of functions and primitives would wait for.

    This measures the device, tests its look-back if that is needed, compiles, and runs each function or primitive once
    on zeros. Later calls of this process compile nothing, whatever their length. Without names, only the device is
    measured.

    Parameters
    ----------
    device : wgpu.GPUDevice, optional
        The default is `default_device()`.
    *what : str or Primitive
        Names of one-shot functions (``"sort"`` stands for `gw.sort` without options; ``"reduce"`` and ``"scan"`` add),
        or primitives on this device. A `gw.Kernel` is compiled when it is made.
    dtype : str, Datatype, numpy dtype, or sequence of str, optional
        For the functions; by default u32, and f32 for ``"matmul"``. Primitives have their own.
    n : int, optional
        The length to run with. Only what this length needs is waited for; the rest compiles in the background.

    Returns
    -------
    int
        How many pipelines were compiled; 0 if all of them were there.

    Raises
    ------
    ArgumentError
        If a name is unknown, or a primitive is on another device.
    DatatypeError
        If a function does not take the datatype.

    Examples
    --------
    >>> import gridwise_py as gw
    >>> compiled = gw.warm_up(None, "sum", "cumsum")
    >>> gw.warm_up(None, "sum", "cumsum")
    0
    """
    if isinstance(device, str | Primitive):
        raise ArgumentError(f"gw.warm_up() takes the device first; give None for the default one: (None, {device!r})")
    device = device if device is not None else default_device()
    pipelines = context_of(device).executor.pipelines
    length = _N if n is None else integer("gw.warm_up(): n", n, 1)
    runs = [run for item in what for run in _runs(item, device, _datatypes(dtype), length)]
    before = pipelines.compiled
    _ = context_of(device).capabilities  # measured before the threads ask for them
    _run_side_by_side(runs)
    if n is None:
        compile_threads().finish()
    return pipelines.compiled - before


def _datatypes(given: Any) -> list[Datatype | None]:
    if given is None:
        return [None]
    listed = list(given) if isinstance(given, Sequence) and not isinstance(given, str) else [given]
    return [as_datatype(item, ITEM_DATATYPES) for item in listed]


def _runs(
    item: Any, device: wgpu.GPUDevice, datatypes: Sequence[Datatype | None], n: int
) -> list[Callable[[], object]]:
    """Return calls, one for each datatype, that make something ready."""
    if isinstance(item, Primitive):
        if item.device is not device:
            raise ArgumentError(f"gw.warm_up(): this {item.name} is on another device; give that device")
        inputs = _inputs(item, n)
        return [lambda: item.bind(**{name: asarray(zeros, device) for name, zeros in inputs.items()}).execute()]
    names = get_args(FunctionName)
    if not isinstance(item, str) or item not in names:
        close = get_close_matches(str(item), names, 1)
        hint = f"; did you mean {close[0]!r}?" if close else "."
        raise ArgumentError(
            f"gw.warm_up(): {item!r} is no one-shot function or primitive{hint} Functions are {', '.join(names)}"
        )
    return [_function_run(item, device, datatype, n) for datatype in datatypes]


def _function_run(name: str, device: wgpu.GPUDevice, datatype: Datatype | None, n: int) -> Callable[[], object]:
    dtype = datatype.dtype if datatype is not None else np.dtype(np.float32 if name == "matmul" else np.uint32)
    if name == "matmul":
        side = max(1, round(n**0.5))
        zeros = np.zeros((side, side), dtype)
    else:
        zeros = np.zeros(n, dtype)
    inputs = [zeros, zeros] if name in _OF_TWO else [zeros]
    function = getattr(functions, name)
    return lambda: function(*inputs, device=device)


def _inputs(primitive: Primitive, n: int) -> dict[str, np.ndarray]:
    """Return zeros for a primitive's inputs, of n items where its lengths are free."""
    signature = primitive.signature
    if signature.values or any(argument.aligned for argument in signature.arguments.values()):
        raise ArgumentError(
            f"gw.warm_up(): {primitive.name} is a gw.Kernel, which was compiled when it was made; call it once with "
            f"your arguments, if its first call must be short"
        )
    inputs: dict[str, np.ndarray] = {}
    for name in signature.inputs:
        length, datatype = signature.arguments[name].length, signature.datatype(name)
        items = length.items if isinstance(length, Product) else length if isinstance(length, int) else n
        inputs[name] = np.zeros(items, np.uint32 if datatype is None else datatype.dtype)
    return inputs


def _run_side_by_side(runs: Sequence[Callable[[], object]]) -> None:
    """Call all of them in threads, and raise the first error in their order: each waits for its own pipelines."""
    errors: dict[int, Exception] = {}

    def call(number: int, run: Callable[[], object]) -> None:
        try:
            run()
        except Exception as error:
            errors[number] = error

    threads = [
        threading.Thread(target=call, args=(number, run), name="gridwise warm-up", daemon=True)
        for number, run in enumerate(runs)
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    if errors:
        raise errors[min(errors)]
