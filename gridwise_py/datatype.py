"""Datatypes that kernels compute with, and their names in numpy and in WGSL."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from .errors import DatatypeError

__all__ = ["DATATYPES", "MATMUL_DATATYPES", "STORAGE_DATATYPES", "VALUE_DATATYPES", "Datatype", "as_datatype"]


@dataclass(frozen=True)
class Datatype:
    """A type of items: its names in numpy and in WGSL, its size and its range.

    Attributes
    ----------
    name : str
        ``"u32"``, ``"i32"``, ``"f32"``, ``"u64"``, ``"i64"``, ``"f64"``, ``"f16"``.
    numpy_name : str
        Name of the numpy dtype, ``"uint32"`` and so on.
    wgsl : str
        The WGSL type that kernels compute with; for 8 bytes that of the two words as which they move them. f16 is
        computed with as f32.
    feature : str or None
        The wgpu feature that a device must have, if any.
    """

    name: str
    numpy_name: str
    wgsl: str
    feature: str | None = None

    @property
    def dtype(self) -> np.dtype:
        """The numpy dtype."""
        return np.dtype(self.numpy_name)

    @property
    def itemsize_bytes(self) -> int:
        """Size of one item in bytes."""
        return self.dtype.itemsize

    @property
    def lowest(self) -> Any:
        """The value that is the identity of max: −inf for floats."""
        return -np.inf if self.dtype.kind == "f" else int(np.iinfo(self.dtype).min)

    @property
    def highest(self) -> Any:
        """The value that is the identity of min: +inf for floats."""
        return np.inf if self.dtype.kind == "f" else int(np.iinfo(self.dtype).max)

    def bits(self, value: Any) -> int:
        """Return the 32 bits of `value` in this datatype, as an unsigned integer.

        Raises
        ------
        DatatypeError
            If `value` is not a number of this datatype.
        """
        try:
            return int(np.array(value, dtype=self.dtype).reshape(()).view(np.uint32))
        except (OverflowError, ValueError, TypeError) as error:
            raise DatatypeError(f"{value!r} is not a value of datatype {self.name}: {error}") from error

    def __str__(self) -> str:
        return self.name


DATATYPES: dict[str, Datatype] = {
    d.name: d
    for d in (
        Datatype("u32", "uint32", "u32"),
        Datatype("i32", "int32", "i32"),
        Datatype("f32", "float32", "f32"),
    )
}
#: What sorts move along with keys: the datatypes that kernels compute with, and those of 8 bytes.
VALUE_DATATYPES: dict[str, Datatype] = DATATYPES | {
    d.name: d
    for d in (
        Datatype("u64", "uint64", "vec2<u32>"),
        Datatype("i64", "int64", "vec2<u32>"),
        Datatype("f64", "float64", "vec2<u32>"),
    )
}
_F16 = Datatype("f16", "float16", "f32")
#: What matrix products take.
MATMUL_DATATYPES: dict[str, Datatype] = {d.name: d for d in (DATATYPES["f32"], _F16)}
#: What arrays can hold, and sorts take as keys: all of these.
STORAGE_DATATYPES: dict[str, Datatype] = VALUE_DATATYPES | {_F16.name: _F16}


def as_datatype(value: Any, known: Mapping[str, Datatype] = DATATYPES) -> Datatype:
    """Return the `Datatype` for its name, a numpy dtype, or a Datatype.

    Parameters
    ----------
    value : str, numpy dtype or Datatype
    known : mapping from str to Datatype
        What is supported where it is wanted.

    Raises
    ------
    DatatypeError
        If there is no kernel datatype for it; the message lists what there is.
    """
    asked = value
    if isinstance(value, str):
        value = STORAGE_DATATYPES.get(value, value)
    if isinstance(value, Datatype):
        if value.name in known:
            return value
        dtype = value.dtype
    else:
        try:
            dtype = np.dtype(value) if value is not None else None
        except TypeError:
            dtype = None
    for datatype in known.values():
        if dtype is not None and datatype.dtype == dtype:
            return datatype
    # A text is shown as it came: numpy takes "f16" for 16 bytes.
    shown = asked if isinstance(asked, str) else getattr(value if isinstance(value, Datatype) else dtype, "name", value)
    names = ", ".join(f"{d.name} (numpy {d.numpy_name})" for d in known.values())
    nearest = None if dtype is None else _nearest(dtype)
    remedy = "" if nearest is None else f" Convert first, for example with x.astype(numpy.{nearest})."
    raise DatatypeError(f"datatype {shown!r} is not supported here; supported are {names}.{remedy}")


def _nearest(dtype: np.dtype) -> str | None:
    """Return what items of a dtype can be converted to; None for what is no real number, as complex and records."""
    return {"f": "float32", "u": "uint32", "b": "uint32", "i": "int32"}.get(dtype.kind)
