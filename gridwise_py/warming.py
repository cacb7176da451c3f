"""`warm_up`: what a first call would do apart from its work, done ahead and side by side."""

from __future__ import annotations

import threading
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Literal, TypeAlias, get_args

import numpy as np
import wgpu

from .call_errors import explained, nearest
from .errors import ArgumentError
from .functions import arithmetic, arrays, reductions, scans, segments, selections, sorts, summaries
from .planning.layout import COUNT
from .planning.signature import Product
from .primitives.base import Primitive
from .primitives.custom_kernel import Kernel
from .runtime.array import Array, asarray
from .runtime.compile_threads import compile_threads
from .runtime.context import context_of
from .runtime.device import default_device
from .types.datatype import ITEM_DATATYPES, Datatype, as_datatype
from .types.options import integer

#: The one-shot functions that always run the same kernels; `gw.scan` and `gw.reduce` depend on their operator.
FunctionName: TypeAlias = Literal[
    "add", "all", "any", "argmax", "argmin", "argsort", "compress", "count_nonzero", "cumprod", "cumsum", "find",
    "flatnonzero", "matmul", "max", "mean", "min", "minmax", "partition_by", "prod", "reduce", "reduce_by_key",
    "repeat", "run_length_encode", "scan", "scan_by_key", "searchsorted", "segmented_reduce", "segmented_scan", "sort",
    "sort_pairs", "std", "sum", "unique", "unique_all", "unique_counts", "unique_inverse", "unique_values", "var"
]  # fmt: skip
#: Where the functions are.
_MODULES = (arithmetic, arrays, reductions, scans, sorts, selections, segments, summaries)
#: The arguments of functions that take others than one array of items: keys of u32 and flags, one for each item, or
#: numbers of u32.
_ARGUMENTS: Mapping[str, tuple[Literal["items", "keys", "flags", "numbers"], ...]] = {
    "add": ("items", "items"),
    "compress": ("flags", "items"),
    "matmul": ("items", "items"),
    "partition_by": ("items", "flags"),
    "reduce_by_key": ("keys", "items"),
    "repeat": ("items", "keys"),
    "scan_by_key": ("keys", "items"),
    "searchsorted": ("items", "items"),
    "segmented_reduce": ("items", "numbers"),
    "segmented_scan": ("items", "numbers"),
    "sort_pairs": ("items", "items"),
}
#: Those that take no array of which only the GPU knows how many items count.
_UNCOUNTED = ("matmul", "searchsorted")
_N = 4096  # where the caller names no length


@explained()
def warm_up(
    device: wgpu.GPUDevice | None = None,
    *what: FunctionName | Primitive,
    dtype: str | Datatype | np.dtype[Any] | type | Sequence[str] | None = None,
    n: int | None = None,
    counted: bool = False,
) -> int:
    """Compile ahead what the first calls would wait for.

    Each runs once on zeros. Later calls of this process compile nothing, whatever their length. Without names only the
    device is measured.

    Parameters
    ----------
    device : wgpu.GPUDevice, optional
        The default is `default_device()`.
    *what : str or Primitive
        Names of functions (``"sort"`` stands for `gw.sort` without options; ``"reduce"``, ``"scan"`` and those by key
        and by segments add), or primitives on this device.
    dtype : str, Datatype, numpy dtype, or sequence of str, optional
        Of the items of functions; by default u32, and f32 for ``"matmul"``.
    n : int, optional
        The length to run with. What other lengths need compiles in the background.
    counted : bool, default False
        Whether also for Arrays that carry a count.

    Returns
    -------
    int
        How many pipelines were compiled.

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
    forms = (False, True) if counted else (False,)
    runs = [run for item in what for form in forms for run in _runs(item, device, _datatypes(dtype), length, form)]
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
    item: Any, device: wgpu.GPUDevice, datatypes: Sequence[Datatype | None], n: int, counted: bool
) -> list[Callable[[], object]]:
    """Return calls, one for each datatype, that make something ready; none where counts are not taken."""
    if isinstance(item, Primitive):
        if item.device is not device:
            raise ArgumentError(f"gw.warm_up(): this {item.name} is on another device; give that device")
        if counted and not item.takes_count:
            return []
        inputs = _inputs(item, n)
        return [lambda: item.bind(**_uploaded(inputs, device, n, counted)).execute()]
    names = get_args(FunctionName)
    if not isinstance(item, str) or item not in names:
        raise ArgumentError(
            f"gw.warm_up(): {item!r} is no one-shot function or primitive{nearest(str(item), names) or '.'} Functions "
            f"are {', '.join(names)}"
        )
    if counted and item in _UNCOUNTED:
        return []
    return [_function_run(item, device, datatype, n, counted) for datatype in datatypes]


def _uploaded(inputs: Mapping[str, Any], device: wgpu.GPUDevice, n: int, counted: bool) -> dict[str, Any]:
    """Return a primitive's arguments, with the number of items that count as one on the GPU if asked."""
    arrays = {name: asarray(x, device) if isinstance(x, np.ndarray) else x for name, x in inputs.items()}
    return {**arrays, COUNT: _on_gpu(n, device)} if counted else arrays


def _on_gpu(n: int, device: wgpu.GPUDevice) -> Array:
    return asarray(np.array([n], dtype=np.uint32), device)


def _function_run(
    name: str, device: wgpu.GPUDevice, datatype: Datatype | None, n: int, counted: bool
) -> Callable[[], object]:
    dtype = datatype.dtype if datatype is not None else np.dtype(np.float32 if name == "matmul" else np.uint32)
    side = max(1, round(n**0.5))
    shape = (side, side) if name == "matmul" else (n,)
    dtypes = {"items": dtype, "keys": np.uint32, "flags": np.bool_, "numbers": np.uint32}
    kinds = _ARGUMENTS.get(name, ("items",))
    zeros = [np.zeros(shape, dtypes[kind]) for kind in kinds]
    # Without it, the sum of all counts is 0 items.
    options = {"size": n} if name == "repeat" else {}
    function = next(getattr(module, name) for module in _MODULES if hasattr(module, name))

    def run() -> object:
        if not counted:
            return function(*zeros, device=device, **options)
        number = _on_gpu(n, device)
        arrays = [asarray(each, device) for each in zeros]
        pairs = zip(arrays, kinds, strict=True)
        return function(*(x if kind == "numbers" else x.counted_by(number) for x, kind in pairs), **options)

    return run


def _inputs(primitive: Primitive, n: int) -> dict[str, Any]:
    """Return zeros for a primitive's inputs, of n items where its lengths are free, and for its numbers."""
    signature = primitive.signature
    if isinstance(primitive, Kernel):
        raise ArgumentError(
            f"gw.warm_up(): {primitive.name} is a gw.Kernel, which was compiled when it was made; call it once with "
            f"your arguments, if its first call must be short"
        )
    inputs: dict[str, Any] = dict.fromkeys(signature.values, 0)
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
