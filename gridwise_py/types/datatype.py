"""Datatypes that kernels compute with, and their names in numpy and in WGSL."""

from __future__ import annotations

import functools
import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Literal, NoReturn, TypeAlias, cast

import numpy as np
from numpy.typing import ArrayLike

from ..errors import ArgumentError, DatatypeError
from .wgsl_words import RESERVED_WORDS

#: The most words of an item that kernels combine: those of a vec4.
MOST_STRUCT_WORDS = 4


@dataclass(frozen=True)
class Datatype:
    """A type of items: names, size and range.

    Attributes
    ----------
    name : str
        As in `STORAGE_DATATYPES`.
    numpy_name : str
    wgsl : str
        The WGSL type that kernels compute with, of 4 bytes; for 8 bytes that of two words, the low one first.
    feature : str or None
        What a device must have, if anything.
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
        """"""
        return self.dtype.itemsize

    @functools.cached_property
    def key(self) -> str:
        """A text that no other datatype has: the name; of a `Struct` its fields."""
        return self.name

    @property
    def is_several(self) -> bool:
        """Whether an item is several numbers, each of a word: a complex number, or a `Struct`."""
        return self.dtype.kind in "cV"

    @property
    def element_bytes(self) -> int:
        """Size of what layouts and kernels count: an item, or one of the words of an item that is several numbers."""
        return 4 if self.is_several else self.itemsize_bytes

    @property
    def elements(self) -> int:
        """How many of these an item has."""
        return self.itemsize_bytes // self.element_bytes

    @property
    def rounds(self) -> bool:
        """Whether it holds floats, so that the order in which items are added or multiplied changes the result."""
        return self.dtype.kind in "fc"

    @property
    def computed(self) -> Datatype:
        """The datatype that kernels compute with: itself, or that of 4 bytes of its kind."""
        return self if self.itemsize_bytes >= 4 else STORAGE_DATATYPES[self.computed_as]

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
        """Return the 32-bit words of `value`, the low one first.

        Raises
        ------
        DatatypeError
            If `value` is not a number of this datatype.
        """
        try:
            item = np.array(value, dtype=self.dtype).reshape(1)
            wide = item.astype(self.computed.dtype)
            return tuple(wide.view(np.uint32).tolist())
        except (OverflowError, ValueError, TypeError) as error:
            raise DatatypeError(f"{value!r} is not a value of datatype {self.name}: {error}") from error

    def __str__(self) -> str:
        return self.name


class Struct(Datatype):
    """A type of items that are several numbers.

    As a numpy structured dtype without gaps, which will do wherever a datatype is expected. WGSL of an operator sees
    each item as a struct ``T`` with these fields.

    Parameters
    ----------
    name : str
    **fields : str, numpy dtype or Datatype
        One to four, each of u32, i32 or f32, in the order of memory.

    Attributes
    ----------
    fields : tuple of (str, Datatype)

    Raises
    ------
    DatatypeError
        If a field is of another size or kind, there are more than four, or WGSL does not allow a name.

    See Also
    --------
    BinOp : operators, also on structs.

    Examples
    --------
    >>> import numpy as np, gridwise_py as gw
    >>> CountSum = gw.Struct("CountSum", count="u32", sum="f32")
    >>> CountSum.array(count=1, sum=np.array([0.5, 2.5], dtype=np.float32))
    array([(1, 0.5), (1, 2.5)], dtype=[('count', '<u4'), ('sum', '<f4')])
    """

    fields: tuple[tuple[str, Datatype], ...]
    _dtype: np.dtype[Any]

    def __init__(self, name: str, /, **fields: Any):
        if not isinstance(name, str):
            raise ArgumentError(f"the name of a Struct is a str, not {name!r}; give gw.Struct('ValueIndex', …)")
        found = tuple((field, _field(name, field, value)) for field, value in fields.items())
        if not found:
            raise DatatypeError(f"Struct {name!r} has no fields; give some, gw.Struct({name!r}, value='f32', …)")
        if len(found) > MOST_STRUCT_WORDS:
            raise DatatypeError(
                f"Struct {name!r} has {len(found)} fields ({', '.join(fields)}), which are {len(found)} words, but "
                f"kernels combine at most {MOST_STRUCT_WORDS}; split it into two structs, and combine each by itself"
            )
        dtype = np.dtype([(field, datatype.dtype) for field, datatype in found])
        super().__init__(name, f"dtype({dtype.descr!r})", "T")
        object.__setattr__(self, "fields", found)
        object.__setattr__(self, "_dtype", dtype)

    @classmethod
    def from_dtype(cls, dtype: Any, name: str = "struct") -> Struct:
        """Return the struct of a numpy structured dtype.

        Raises
        ------
        DatatypeError
            If a field is not of u32, i32 or f32, there are more than four, or there are gaps between them.
        """
        dtype = np.dtype(dtype)
        if dtype.names is None or dtype.fields is None:
            raise DatatypeError(
                f"{dtype} has no fields; a struct is of a dtype such as [('value', 'f4'), ('index', 'u4')]"
            )
        made = cls(name, **{field: dtype.fields[field][0] for field in dtype.names})
        if made.dtype == dtype.newbyteorder("=") != dtype:
            raise DatatypeError(
                f"{dtype} is in another byte order than this machine's; convert the order alone, which loses nothing: "
                f"x.astype(x.dtype.newbyteorder('='))"
            )
        if made.dtype != dtype:
            places = ", ".join(f"{field} at byte {dtype.fields[field][1]}" for field in dtype.names)
            raise DatatypeError(
                f"the fields of {dtype} do not follow each other without gaps ({places}, {dtype.itemsize} bytes in "
                f"all); pack the items first, with numpy.lib.recfunctions.repack_fields(x)"
            )
        return made

    @property
    def dtype(self) -> np.dtype[Any]:
        """The numpy dtype."""
        return self._dtype

    @functools.cached_property
    def key(self) -> str:
        """A text that no other datatype has."""
        return ",".join(f"{field}:{datatype.name}" for field, datatype in self.fields)

    @property
    def is_several(self) -> bool:
        """Whether an item is several words, or one that operators see as a struct: yes."""
        return True

    @property
    def rounds(self) -> bool:
        """Whether it has fields of f32."""
        return any(datatype.rounds for _, datatype in self.fields)

    def array(self, **columns: ArrayLike) -> np.ndarray:
        """Return a numpy array of such items.

        Parameters
        ----------
        **columns : array_like
            By field; numbers are repeated.

        Raises
        ------
        ArgumentError
            If a field is missing or unknown.
        """
        self._check_names(columns, "array()")
        found = np.empty(np.broadcast_shapes(*(np.shape(column) for column in columns.values())), self._dtype)
        for field, column in columns.items():
            found[field] = column
        return found

    def values_of(self, item: Any, what: str) -> dict[str, Any]:
        """Return an item's value for each field; `item` is a tuple, a mapping from names, or an item of numpy.

        Raises
        ------
        DatatypeError, ArgumentError
            If it is no item of this struct; `what` names it in the message.
        """
        if isinstance(item, Mapping):
            by_name = {str(field): value for field, value in cast(Mapping[Any, Any], item).items()}
            self._check_names(by_name, what)
            return {field: by_name[field] for field, _ in self.fields}
        if isinstance(item, (np.void, np.ndarray)) and item.dtype == self._dtype and item.shape == ():
            item = item.item()
        if not isinstance(item, (tuple, list)) or len(cast("tuple[Any, ...]", item)) != len(self.fields):
            names = ", ".join(field for field, _ in self.fields)
            raise DatatypeError(
                f"{what} is {item!r:.60}, but an item of {self} has {len(self.fields)} fields; give a tuple ({names}) "
                f"or a dict with these names"
            )
        return dict(zip((field for field, _ in self.fields), cast("tuple[Any, ...]", item), strict=True))

    def _check_names(self, given: Mapping[str, Any], what: str) -> None:
        names = [field for field, _ in self.fields]
        unknown = [field for field in given if field not in names]
        missing = [field for field in names if field not in given]
        if unknown or missing:
            wrong = f"has the unknown field {unknown[0]!r}" if unknown else f"lacks the field {missing[0]!r}"
            raise ArgumentError(f"{what} {wrong}: {self} has {', '.join(names)}; give each of them once")

    def __eq__(self, other: object) -> bool:
        return self.fields == other.fields if isinstance(other, Struct) else NotImplemented

    def __hash__(self) -> int:
        return hash(self.fields)

    def __repr__(self) -> str:
        return f"Struct({self.name!r}, {', '.join(f'{field}={of.name!r}' for field, of in self.fields)})"


_FIELD_NAME = re.compile(r"(?!_$|__)[A-Za-z_][A-Za-z0-9_]*")


def _field(struct: str, name: str, value: Any) -> Datatype:
    """Return the datatype of a field; refuse what is not one word, or a name that WGSL does not allow."""

    def refuse(why: str) -> NoReturn:
        raise DatatypeError(f"field {name!r} of Struct {struct!r} {why}")

    if not _FIELD_NAME.fullmatch(name):
        refuse("is no name in WGSL: letters of ASCII, digits and '_'; rename it")
    if name in RESERVED_WORDS:
        refuse(f"has a name that WGSL reserves; rename it, for example {name}_")
    if isinstance(value, Struct):
        refuse(f"is itself a struct, {value!r}; give its fields one by one")
    if isinstance(value, Datatype):
        dtype = value.dtype
    elif isinstance(value, str) and value in {**STORAGE_DATATYPES, COMPLEX.name: COMPLEX}:
        dtype = as_datatype(value, ITEM_DATATYPES).dtype
    else:
        try:
            dtype = np.dtype(value)
        except TypeError:
            refuse(f"is of {value!r}, which is no datatype; a field is of u32, i32 or f32")
    if dtype.shape:
        refuse(f"is an array of shape {dtype.shape}; give a field for each of its items: {name}0, {name}1, …")
    for datatype in DATATYPES.values():
        if dtype.newbyteorder("=") == datatype.dtype:
            return datatype
    word = {"i": "i32", "f": "f32"}.get(dtype.kind, "u32")
    if dtype.kind not in "biuf":
        remedy = "give each number of it a field"
    elif dtype.itemsize < 4:
        remedy = f"give it 4 bytes, {name}={word!r}, which loses nothing"
    elif dtype.kind == "f":
        remedy = f"give {name}='f32', which rounds to about 7 digits"
    else:
        high = "i32" if dtype.kind == "i" else "u32"
        remedy = f"give {name}={word!r} if all values fit, or two fields, {name}_low='u32' and {name}_high={high!r}"
    refuse(f"is of {dtype}, {dtype.itemsize} bytes, but a field is one word of 4 bytes: u32, i32 or f32; {remedy}")


def numpy_text(dtype: np.dtype[Any]) -> str:
    """Return how a dtype is written in Python behind ``np.``."""
    return dtype.name if dtype.kind in "biufc" else f"dtype({(dtype.descr if dtype.names else dtype.str)!r})"


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
#: Pairs of floats, the real part first.
COMPLEX = Datatype("c64", "complex64", "vec2<f32>")
#: What arrays can hold, and reductions, scans and keys of sorts take: all of these. The first two also take what
#: `ITEM_DATATYPES` stands for.
STORAGE_DATATYPES: dict[str, Datatype] = VALUE_DATATYPES | {
    d.name: d
    for d in (
        _F16,
        Datatype("u16", "uint16", "u32"),
        Datatype("i16", "int16", "i32"),
        Datatype("u8", "uint8", "u32"),
        Datatype("i8", "int8", "i32"),
        Datatype("bool", "bool", "u32"),
    )
}

#: The same names; `as_datatype` also admits items of several numbers with it: `COMPLEX`, and each `Struct`.
ITEM_DATATYPES: dict[str, Datatype] = dict(STORAGE_DATATYPES)

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
KeyDatatypeLike: TypeAlias = (
    ValueDatatypeLike
    | Literal["f16", "u16", "i16", "u8", "i8", "bool", "float16", "uint16", "int16", "uint8", "int8"]
    | type[np.float16] | type[np.uint16] | type[np.int16] | type[np.uint8] | type[np.int8] | type[np.bool_] | type[bool]
)  # fmt: skip
#: What arrays hold, and reductions and scans take.
ItemDatatypeLike: TypeAlias = KeyDatatypeLike | Literal["c64", "complex64"] | type[np.complex64]
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
        What is supported where it is wanted. `ITEM_DATATYPES` also admits `COMPLEX`, and structs.
    convert : str
        How the caller converts the data, for the message: an expression with braces for the name of a numpy dtype.

    Raises
    ------
    DatatypeError
        If there is no kernel datatype for it; the message lists what there is, and says what a conversion costs.
    """
    asked = value
    if known is ITEM_DATATYPES and (several := _several(value)) is not None:
        return several
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
    elif dtype is not None and dtype != in_own_order(dtype):
        shown = dtype.str
    else:
        shown = getattr(value if isinstance(value, Datatype) else dtype, "name", value)
    remedy = "" if dtype is None else f"; {conversion(dtype, known, convert)}"
    names = ", ".join([*known, COMPLEX.name] if known is ITEM_DATATYPES else known)
    raise DatatypeError(f"datatype {shown!r} is not supported here{remedy}; supported are {names}")


def in_own_order(dtype: np.dtype[Any]) -> np.dtype[Any]:
    """Return a dtype in this machine's order of bytes; numpy's texts of any length have none."""
    return dtype if dtype.kind == "T" else dtype.newbyteorder("=")


def value_words(value: Any, datatype: Datatype, what: str) -> tuple[int, int]:
    """Return a number as the words of an item, the second one 0 for items of up to 4 bytes.

    Raises
    ------
    DatatypeError
        If it is no number, or a Python integer that the datatype does not hold.
    """
    try:
        item = np.asarray(value)
        if item.ndim or item.dtype.kind not in "biufO":
            raise TypeError(f"{value!r} is not a number")
        with np.errstate(all="ignore"):
            item = np.array(value, dtype=datatype.dtype) if type(value) is int else item.astype(datatype.dtype)
    except (OverflowError, TypeError, ValueError) as error:
        raise DatatypeError(f"{what}: the items are of {datatype}, which does not hold {value!r}: {error}") from error
    low, high = np.frombuffer(item.tobytes().ljust(8, b"\0"), np.uint32).tolist()
    return (low, high)


def _several(value: Any) -> Datatype | None:
    """Return the datatype of items that are several numbers; None for all other datatypes.

    Raises
    ------
    DatatypeError
        For a structured dtype that is no `Struct`.
    """
    if isinstance(value, Datatype):
        return value if value.is_several else None
    if isinstance(value, str):
        return COMPLEX if value in (COMPLEX.name, COMPLEX.numpy_name) else None
    try:
        dtype = np.dtype(value) if value is not None else None
    except TypeError:
        return None
    if dtype is None:
        return None
    if dtype.names is not None:
        return Struct.from_dtype(dtype)
    return COMPLEX if dtype == COMPLEX.dtype else None


# By the kind of a numpy dtype: items that no cast turns into numbers without losing what they say.
_NO_CAST = {
    "c": "a complex number is two: give x.real and x.imag by themselves",
    "m": "give (x / np.timedelta64(1, 's')).astype(np.float32), a number of units",
    "M": "give ((x - np.nanmin(x)) / np.timedelta64(1, 's')).astype(np.float32), the time since a start",
    "O": "the items are Python objects: give np.array(x, dtype=np.{1}) of numbers, np.asarray(x) == True of a mask "
    "with nulls, and of what has an order its ranks, np.unique(x, return_inverse=True)[1]",
    "S": "text is no number: give the texts' ranks, np.unique(x, return_inverse=True)[1].astype(np.{0})",
    "V": "the items are bytes without a meaning: give x.view(np.{0}), say",
}
_NO_CAST["U"] = _NO_CAST["T"] = _NO_CAST["S"]


def conversion(dtype: np.dtype, known: Mapping[str, Datatype], convert: str = "x.astype(np.{})") -> str:
    """Return how to convert, and what may be lost by it; what is code stands behind "give"."""
    names = [datatype.numpy_name for datatype in known.values()]
    native = in_own_order(dtype)
    if native != dtype and (native.name in names or (known is ITEM_DATATYPES and native == COMPLEX.dtype)):
        return f"give x.astype(x.dtype.newbyteorder('=')), which is {native.name} in this machine's byte order"
    if dtype.kind == "c" and known is ITEM_DATATYPES:
        return f"give {convert.format(COMPLEX.numpy_name)} {_lost(np.dtype(float), np.dtype('f4'))}"
    if dtype.names == ():
        return "it has no field"
    if dtype.names is not None:
        return f"give one field of it, x[{dtype.names[0]!r}]"
    if dtype.kind in "mM" and "int64" in names:
        return f"give {convert.format('int64')}, or x[~np.isnat(x)].astype(np.int64) where an item is NaT"
    if dtype.kind not in "biuf":
        number = "uint32" if "uint32" in names else "float32"
        real = "float64" if "float64" in names else "float32"
        return _NO_CAST.get(dtype.kind, _NO_CAST["O"]).format(number, real)
    # What has 16 bits takes small numbers, but computing with them rounds: only for those who ask for it.
    lossless = [name for name in names if np.can_cast(native, name, "safe") and np.dtype(name).itemsize > 2]
    if lossless:
        nearest = min(lossless, key=lambda name: (np.dtype(name).kind == "f", np.dtype(name).itemsize))
        return f"give {convert.format(nearest)}, which loses nothing"
    widest = {np.dtype(name).kind: np.dtype(name) for name in sorted(names, key=lambda name: np.dtype(name).itemsize)}
    targets = [widest[kind] for kind in dict.fromkeys((native.kind, "f")) if kind in widest]
    options = [f"{convert.format(target.name)} {_lost(native, target)}" for target in targets]
    return f"give {', or '.join(options or [f'{convert.format(names[0])} (what it does not hold is cut or wraps)'])}"


def _lost(dtype: np.dtype, target: np.dtype) -> str:
    """Return what a conversion loses, or for which items it will do."""
    if target.kind != "f":
        bits = 8 * target.itemsize
        low, high = ("0", f"2**{bits} - 1") if target.kind == "u" else (f"-2**{bits - 1}", f"2**{bits - 1} - 1")
        return f"if all items lie within {low} to {high} (others would wrap)"
    found = np.finfo(target)
    if dtype.kind == "f":
        return f"(rounds to about {found.precision + 1} digits; infinite beyond {found.max:.1e})"
    return f"(exact to 2**{found.nmant + 1}, rounds beyond)"
