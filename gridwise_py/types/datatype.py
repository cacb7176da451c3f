"""Datatypes that kernels compute with, and their names in numpy and in WGSL."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Literal, TypeAlias

import numpy as np

from ..errors import DatatypeError

__all__ = [
    "DATATYPES", "KEY_DATATYPES", "MATMUL_DATATYPES", "STORAGE_DATATYPES", "VALUE_DATATYPES", "ComputeDatatypeLike",
    "Datatype", "ItemDatatypeLike", "KeyDatatypeLike", "MatMulDatatypeLike", "ValueDatatypeLike", "as_datatype",
]  # fmt: skip


@dataclass(frozen=True)
class Datatype:
    """A type of items: its names in numpy and in WGSL, its size and its range.

    Attributes
    ----------
    name : str
        ``"u32"``, ``"i32"``, ``"f32"``, ``"u64"``, ``"i64"``, ``"f64"``, ``"f16"``, ``"u16"``, ``"i16"``, ``"u8"``,
        ``"i8"``, ``"bool"``.
    numpy_name : str
        Name of the numpy dtype, ``"uint32"`` and so on.
    wgsl : str
        The WGSL type that kernels compute with; for 8 bytes that of two words, the low one first. Items of less than
        4 bytes are computed with in the type of 4 bytes of their kind.
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
        if self.dtype.kind == "b":
            return 0
        return -np.inf if self.dtype.kind == "f" else int(np.iinfo(self.dtype).min)

    @property
    def highest(self) -> Any:
        """The value that is the identity of min: +inf for floats."""
        if self.dtype.kind == "b":
            return 1
        return np.inf if self.dtype.kind == "f" else int(np.iinfo(self.dtype).max)

    @property
    def computed_as(self) -> str:
        """The name of the datatype that kernels compute with: of 4 or 8 bytes."""
        return self.name if self.itemsize_bytes >= 4 else {"f": "f32", "i": "i32"}.get(self.dtype.kind, "u32")

    def words(self, value: Any) -> tuple[int, ...]:
        """Return the 32-bit words of `value` as kernels compute with it: one or two, the low one first.

        Raises
        ------
        DatatypeError
            If `value` is not a number of this datatype.
        """
        try:
            item = np.array(value, dtype=self.dtype).reshape(1)
            wide = item.astype(np.dtype(STORAGE_DATATYPES[self.computed_as].numpy_name))
            return tuple(wide.view(np.uint32).tolist())
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
#: What sorts take as keys.
KEY_DATATYPES: dict[str, Datatype] = VALUE_DATATYPES | {_F16.name: _F16}
#: What arrays can hold, and reductions and scans take: all of these.
STORAGE_DATATYPES: dict[str, Datatype] = KEY_DATATYPES | {
    d.name: d
    for d in (
        Datatype("u16", "uint16", "u32"),
        Datatype("i16", "int16", "i32"),
        Datatype("u8", "uint8", "u32"),
        Datatype("i8", "int8", "i32"),
        Datatype("bool", "bool", "u32"),
    )
}

# What callers may write for a datatype. Literal names let a type checker find the wrong ones.
_ComputeName: TypeAlias = Literal["u32", "i32", "f32", "uint32", "int32", "float32"]
_ValueName: TypeAlias = _ComputeName | Literal["u64", "i64", "f64", "uint64", "int64", "float64"]
_ComputeScalar: TypeAlias = type[np.uint32] | type[np.int32] | type[np.float32]
_ValueScalar: TypeAlias = _ComputeScalar | type[np.uint64] | type[np.int64] | type[np.float64]
#: What vector add, maps and copies take.
ComputeDatatypeLike: TypeAlias = Datatype | np.dtype[Any] | _ComputeName | _ComputeScalar
#: What sorts move along with keys.
ValueDatatypeLike: TypeAlias = Datatype | np.dtype[Any] | _ValueName | _ValueScalar
#: What sorts take as keys.
KeyDatatypeLike: TypeAlias = ValueDatatypeLike | Literal["f16", "float16"] | type[np.float16]
#: What arrays hold, and reductions and scans take.
ItemDatatypeLike: TypeAlias = (
    KeyDatatypeLike
    | Literal["u16", "i16", "u8", "i8", "bool", "uint16", "int16", "uint8", "int8"]
    | type[np.uint16] | type[np.int16] | type[np.uint8] | type[np.int8] | type[np.bool_] | type[bool]
)  # fmt: skip
#: What matrix products take.
MatMulDatatypeLike: TypeAlias = (
    Datatype | np.dtype[Any] | Literal["f32", "f16", "float32", "float16"] | type[np.float32] | type[np.float16]
)


def as_datatype(value: Any, known: Mapping[str, Datatype] = DATATYPES, *, convert: str = "x.astype(np.{})") -> Datatype:
    """Return the `Datatype` for its name, a numpy dtype, or a Datatype.

    Parameters
    ----------
    value : str, numpy dtype or Datatype
    known : mapping from str to Datatype
        What is supported where it is wanted.
    convert : str
        How the caller converts the data, for the message: an expression with braces for the name of a numpy dtype.

    Raises
    ------
    DatatypeError
        If there is no kernel datatype for it; the message lists what there is, and says what a conversion costs.
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
    # A text is shown as it came: numpy takes "f16" for 16 bytes. What differs by its byte order alone is shown with it.
    if isinstance(asked, str):
        shown = asked
    elif dtype is not None and dtype != dtype.newbyteorder("="):
        shown = dtype.str
    else:
        shown = getattr(value if isinstance(value, Datatype) else dtype, "name", value)
    names = ", ".join(f"{d.name} (numpy {d.numpy_name})" for d in known.values())
    message = f"datatype {shown!r} is not supported here; supported are {names}."
    raise DatatypeError(message if dtype is None else f"{message} {_remedy(dtype, known, convert)}")


# By the kind of a numpy dtype: items that no cast turns into numbers without losing what they say.
_NO_CAST = {
    "c": "A complex number is two: give the real and the imaginary part by themselves, x.real and x.imag.",
    "m": "Give a number of units, for example (x / np.timedelta64(1, 's')).astype(np.float32).",
    "M": "Give the time since a start, for example ((x - x.min()) / np.timedelta64(1, 's')).astype(np.float32).",
    "O": "The items are Python objects; make numbers of them first, for example np.array(x, dtype=np.float32), which "
    "rounds to about 7 digits.",
    "S": "Text is no number; number the texts in their order: np.unique(x, return_inverse=True)[1].astype(np.{}).",
    "V": "The items are bytes without a meaning; say what they are, for example with x.view(np.{}).",
}
_NO_CAST["U"] = _NO_CAST["T"] = _NO_CAST["S"]


def _remedy(dtype: np.dtype, known: Mapping[str, Datatype], convert: str) -> str:
    """Return a sentence or two: how to convert, and what may be lost by it."""
    names = [datatype.numpy_name for datatype in known.values()]
    native = dtype.newbyteorder("=")
    if dtype.names is not None:
        return f"Give one field of it, for example x[{dtype.names[0]!r}]."
    if native != dtype and native.name in names:
        return (
            f"It is {native.name} in another byte order than this machine's; convert the order alone, which loses "
            f"nothing: x.astype(x.dtype.newbyteorder('='))."
        )
    if dtype.kind in "mM" and "int64" in names:
        return "x.view(np.int64) has the same order (NaT is the smallest)."
    if dtype.kind not in "biuf":
        number = "uint32" if "uint32" in names else "float32"
        return _NO_CAST.get(dtype.kind, _NO_CAST["O"]).format(number)
    # What has 16 bits takes small numbers, but computing with them rounds: only for those who ask for it.
    lossless = [name for name in names if np.can_cast(native, name, "safe") and np.dtype(name).itemsize > 2]
    if lossless:
        nearest = min(lossless, key=lambda name: (np.dtype(name).kind == "f", np.dtype(name).itemsize))
        return f"Convert first, with {convert.format(nearest)}, which loses nothing."
    floats = [np.dtype(name) for name in names if np.dtype(name).kind == "f"]
    found = [_loss(native, np.dtype(name)) for name in names] + [
        _rounding(native, max(floats, key=lambda d: d.itemsize))
    ]
    options = [f"{convert.format(name)} {loss}" for name, loss in filter(None, found)]
    return f"Convert first, with {', or with '.join(options)}."


def _loss(dtype: np.dtype, target: np.dtype) -> tuple[str, str] | None:
    """Return the name of a smaller integer type, and for which items it will do."""
    if target.kind == "f" or target.kind != dtype.kind:
        return None
    bits = 8 * target.itemsize
    low, high = ("0", f"2**{bits} - 1") if target.kind == "u" else (f"-2**{bits - 1}", f"2**{bits - 1} - 1")
    return target.name, f"if all items lie within {low} to {high} (others would wrap)"


def _rounding(dtype: np.dtype, target: np.dtype) -> tuple[str, str]:
    """Return the name of a float type, and what it rounds."""
    found = np.finfo(target)
    if dtype.kind == "f":
        return target.name, f"(rounds to about {found.precision + 1} digits; infinite beyond {found.max:.1e})"
    return target.name, f"(exact to 2**{found.nmant + 1}, rounds beyond)"
