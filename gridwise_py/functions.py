"""One-shot functions: numpy in, numpy out; or Array in, Array out."""

from __future__ import annotations

from typing import Any, TypeVar

import wgpu

from .array import Array, asarray
from .binop import Add, BinOp, Max, Min, Multiply, as_binop
from .context import context_of
from .device import default_device
from .errors import BufferUsageError
from .primitive import Primitive
from .primitives import Reduce, Scan, VectorAdd

__all__ = ["add", "cumsum", "max", "min", "prod", "reduce", "scan", "sum"]

P = TypeVar("P", bound=Primitive)


def _device_of(*values: Any, device: wgpu.GPUDevice | None = None) -> wgpu.GPUDevice:
    devices = {id(v.device): v.device for v in values if isinstance(v, Array)}
    if device is not None:
        devices[id(device)] = device
    if len(devices) > 1:
        names = ", ".join(d.adapter.info["device"] for d in devices.values())
        raise BufferUsageError(f"the arguments lie on different devices ({names}); copy them through numpy")
    return next(iter(devices.values()), None) or default_device()


def _primitive(cls: type[P], device: wgpu.GPUDevice, *key: Any) -> P:
    """Return a primitive that is kept with the device, so that a second call finds its pipelines."""
    context = context_of(device)
    with context.lock:
        kept = context.__dict__.setdefault("_functions", {})
        found = kept.get((cls, *key))
        if found is None:
            found = kept[(cls, *key)] = cls(device, *key)
            if len(kept) > 64:
                kept.pop(next(iter(kept)))
        return found


def _run(cls: type[P], key: tuple, device: wgpu.GPUDevice | None, inputs: dict[str, Any]) -> Any:
    device = _device_of(*inputs.values(), device=device)
    arrays = {name: asarray(value, device) for name, value in inputs.items()}
    primitive = _primitive(cls, device, next(iter(arrays.values())).datatype.name, *key)
    with context_of(device).lock:
        output = primitive.execute(**arrays).output
        primitive.release()
    return output if any(isinstance(value, Array) for value in inputs.values()) else output.to_numpy()


def add(a: Any, b: Any, *, device: wgpu.GPUDevice | None = None) -> Any:
    """Return ``a + b``; integers wrap.

    Parameters
    ----------
    a, b : numpy.ndarray or Array
        Shape (n,), of one datatype (u32, i32, f32).
    device : wgpu.GPUDevice, optional
        By default that of an Array among the arguments, else `default_device()`.

    Returns
    -------
    numpy.ndarray or Array
        Shape (n,); an Array where an argument is one.
    """
    return _run(VectorAdd, (), device, {"a": a, "b": b})


def reduce(x: Any, op: BinOp | str = Add, *, device: wgpu.GPUDevice | None = None) -> Any:
    """Combine all items of `x`.

    Parameters
    ----------
    x : numpy.ndarray or Array
        Shape (n,).
    op : BinOp or str, default Add
    device : wgpu.GPUDevice, optional

    Returns
    -------
    numpy scalar or Array
        A scalar of the dtype of `x` for numpy, an Array of shape (1,) for an Array.

    Raises
    ------
    EmptyReductionError
        For an empty minimum or maximum.
    """
    result = _run(Reduce, (as_binop(op),), device, {"input": x})
    return result if isinstance(result, Array) else result[0]


def sum(x: Any, *, device: wgpu.GPUDevice | None = None) -> Any:
    """Return the sum of `x` in its own datatype (integers wrap, unlike `numpy.sum`); 0 for no items."""
    return reduce(x, Add, device=device)


def prod(x: Any, *, device: wgpu.GPUDevice | None = None) -> Any:
    """Return the product of `x` in its own datatype; 1 for no items."""
    return reduce(x, Multiply, device=device)


def min(x: Any, *, device: wgpu.GPUDevice | None = None) -> Any:
    """Return the smallest item of `x`; NaN if there is one; raises for no items."""
    return reduce(x, Min, device=device)


def max(x: Any, *, device: wgpu.GPUDevice | None = None) -> Any:
    """Return the largest item of `x`; NaN if there is one; raises for no items."""
    return reduce(x, Max, device=device)


def scan(x: Any, op: BinOp | str = Add, kind: str = "inclusive", *, device: wgpu.GPUDevice | None = None) -> Any:
    """Return all prefix sums of `x` under `op`.

    Parameters
    ----------
    x : numpy.ndarray or Array
        Shape (n,).
    op : BinOp or str, default Add
    kind : {"inclusive", "exclusive"}
    device : wgpu.GPUDevice, optional

    Returns
    -------
    numpy.ndarray or Array
        Shape (n,), in the datatype of `x`.
    """
    return _run(Scan, (as_binop(op), kind), device, {"input": x})


def cumsum(x: Any, *, device: wgpu.GPUDevice | None = None) -> Any:
    """Return the inclusive prefix sums of `x` in its own datatype (integers wrap, unlike `numpy.cumsum`)."""
    return scan(x, Add, "inclusive", device=device)
