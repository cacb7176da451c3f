"""What one-shot functions share: from a numpy array to a primitive that is kept with the device, and back."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Protocol, TypeAlias, TypeVar

import numpy as np
import wgpu

from ..errors import ArgumentError, BufferUsageError, DatatypeError
from ..runtime.array import asarray, host_array
from ..runtime.chunked_array import ChunkedArray, Items
from ..runtime.context import context_of
from ..runtime.device import default_device
from ..types.datatype import Datatype, as_datatype
from .base import Primitive

__all__ = ["REMEDIES", "HostItems", "argument_array", "argument_datatype", "one_shot"]

PrimitiveT = TypeVar("PrimitiveT", bound=Primitive)


class _SupportsArray(Protocol):
    """What numpy makes an array of without a copy of each item: a pandas Series, a torch tensor of the CPU."""

    def __array__(self) -> np.ndarray: ...


_Number: TypeAlias = float | np.number[Any] | np.bool_
#: One dimension or more on the host. A number is none.
HostItems: TypeAlias = np.ndarray | _SupportsArray | Sequence[_Number] | Sequence[Sequence[_Number]]

_ONE_DIMENSION = "it works along the one dimension of {x}"
_ROWS = "; for rows, call it once for each, or use numpy; for all items give {x}.ravel()"
_STABLE = "every sort here is stable; leave it out"
# What numpy's functions take and these do not.
REMEDIES = {
    "axis": _ONE_DIMENSION + _ROWS,
    "axes": _ONE_DIMENSION + _ROWS,
    "keepdims": _ONE_DIMENSION + "; leave it out",
    "dtype": "results are in the datatype of {x}; convert it first, for example with {x}.astype(np.float32)",
    "out": "make the primitive (gw.Reduce, gw.Scan, gw.Sort …) once, and call its execute(…, output=an_array)",
    "initial": "combine it with the result",
    "where": "choose the items first: {x}[mask]",
    "kind": _STABLE,
    "stable": _STABLE,
    "order": "it sorts numbers; for records, use gw.argsort of a field",
}


def _device_of(*values: Any, device: wgpu.GPUDevice | None = None) -> wgpu.GPUDevice:
    devices = {id(v.device): v.device for v in values if isinstance(v, Items)}
    if device is not None:
        devices[id(device)] = device
    if len(devices) > 1:
        names = ", ".join(d.adapter.info["device"] for d in devices.values())
        raise BufferUsageError(f"the arguments lie on different devices ({names}); copy them through numpy")
    return next(iter(devices.values()), None) or default_device()


def _primitive(cls: type[PrimitiveT], device: wgpu.GPUDevice, *key: Any, **options: Any) -> PrimitiveT:
    """Return a primitive that is kept with the device, so that a second call finds its pipelines."""
    context = context_of(device)
    with context.lock:
        kept = context.cached("one-shot functions", dict[tuple[Any, ...], Any])
        name = (cls, *key, *options.items())
        found = kept.get(name)
        if found is None:
            found = kept[name] = cls(device, *key, **options)
            if len(kept) > 64:
                kept.pop(next(iter(kept)))
        return found


def argument_array(call: str, name: str, value: Any) -> np.ndarray:
    """Return what numpy makes of an argument."""
    try:
        return host_array(value)
    except DatatypeError:
        raise  # it has masked items
    except ValueError as error:
        raise ArgumentError(
            f"{call}: numpy makes no array of {name} ({error}); give one array of one dimension"
        ) from error


def _check_dimension(call: str, name: str, items: np.ndarray, others: Mapping[str, Any]) -> None:
    """Raise where an argument is a single number, or has several dimensions."""
    if items.ndim == 1:
        return
    if items.ndim == 0:
        item = items.item()
        other, like = next(((o, value) for o, value in others.items() if np.ndim(value) == 1), ("", None))
        if like is None:
            remedy = "give an array of one dimension"
        elif isinstance(like, Items):
            remedy = f"nothing is broadcast here; give np.full({other}.size, {item!r}, {other}.dtype)"
        else:
            remedy = f"nothing is broadcast here; give np.full_like({other}, {item!r})"
        raise ArgumentError(f"{call}: {name} is a single item ({item!r}) and no array; {remedy}")
    raise ArgumentError(
        f"{call}: {name} has shape {items.shape}, but {call} works along one dimension, and has no axis= yet; for all "
        f"items give {name}.ravel(); for rows, call it once for each, or use numpy"
    )


def argument_datatype(call: str, name: str, value: Any, dtype: np.dtype, known: Mapping[str, Datatype]) -> Datatype:
    """Return an argument's datatype; raise with what its kind of data is converted with."""
    made = ""
    if isinstance(value, Items):
        convert = f"gw.asarray({name}.to_numpy().astype(np.{{}}))"
    elif hasattr(value, "astype"):
        convert = f"{name}.astype(np.{{}})"
    else:  # a list, a range, a tensor
        convert, made = f"np.asarray({name}, dtype=np.{{}})", f"numpy makes {dtype} of this {type(value).__name__}; "
    try:
        return as_datatype(dtype, known, convert=convert)
    except DatatypeError as error:
        raise DatatypeError(f"{call}: {name}: {made}{error}") from None


def one_shot(
    call: str,
    cls: type[Primitive],
    key: tuple[Any, ...],
    device: wgpu.GPUDevice | None,
    inputs: dict[str, Any],
    **options: Any,
) -> tuple[Any, ...]:
    """Return the outputs, as arrays of the inputs' kind."""
    given: dict[str, Any] = {}
    # Before anything is uploaded: what cannot be computed with raises here.
    for name, value in inputs.items():
        shown = "x" if name == "input" else name
        given[name] = value if isinstance(value, Items) else argument_array(call, shown, value)
        if not isinstance(value, Items):
            _check_dimension(call, shown, given[name], inputs)
    first = next(iter(inputs))
    shown = "x" if first == "input" else first
    datatype = argument_datatype(call, shown, inputs[first], given[first].dtype, cls.datatypes)
    device = _device_of(*inputs.values(), device=device)
    primitive = _primitive(cls, device, datatype.name, *key, **options)
    for name, items in given.items():
        wanted = primitive.signature.datatype(name)
        if not isinstance(items, Items) and wanted is not None and items.dtype != wanted.dtype:
            raise DatatypeError(
                f"{call}: {name} is of {items.dtype}, but {first} of {datatype} (numpy {datatype.numpy_name}); "
                f"convert one of the two, for example with np.asarray({name}, dtype=np.{wanted.numpy_name}) where that "
                f"loses nothing"
            )
    arrays = {name: v if isinstance(v, ChunkedArray) else asarray(v, device) for name, v in given.items()}
    # Bound, not executed: the primitive is kept, and must not keep the caller's arrays.
    outputs = tuple(primitive.bind(**arrays).execute().outputs.values())
    on_gpu = any(isinstance(value, Items) for value in inputs.values())
    return outputs if on_gpu else tuple(output.to_numpy() for output in outputs)
