"""What one-shot functions share: from what a caller gives to a primitive that is kept with the device, and back.

`Call` is the one way. Every check comes before anything is uploaded.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Literal, Protocol, TypeAlias, TypeVar, cast

import numpy as np
import wgpu

from ..errors import ArgumentError, BoundsError, BufferUsageError, DatatypeError, LengthError, OverlapError
from ..primitives.base import Primitive
from ..primitives.engines.merge_order import MergeOrder
from ..primitives.fusion import EXPRESSIONS, flat_of
from ..runtime.array import Array, asarray, check_numpy_out, default_float, host_array, is_python, without_complex128
from ..runtime.chunked_array import ChunkedArray, Items
from ..runtime.context import check_device, context_of
from ..runtime.device import default_device
from ..runtime.host_items import cast_items
from ..types.datatype import (
    DATATYPES,
    ITEM_DATATYPES,
    STORAGE_DATATYPES,
    Datatype,
    as_datatype,
    in_own_order,
    value_words,
)
from ..types.expression import Expression, stored_field
from ..types.operators import TracedOp
from ..types.options import MOST_U32, integer
from ..types.program import Flat
from ..types.shapes import check_one_shape
from ..types.wide_text import WIDE_TYPES

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
#: What functions call their first argument.
_SHOWN = {"input": "x", "items": "x"}
# What numpy's functions take and these do not.
REMEDIES = {
    "axis": _ONE_DIMENSION + _ROWS,
    "axes": _ONE_DIMENSION + _ROWS,
    "keepdims": _ONE_DIMENSION + "; leave it out",
    "dtype": "the result is in the datatype of {x}; convert it first, for example with {x}.astype(np.float32)",
    "initial": "combine it with the result",
    "where": "choose the items first: {x}[mask]",
    "kind": _STABLE,
    "stable": _STABLE,
    "order": "it sorts numbers; for records, use gw.argsort of a field",
}


def stored_if_wide(value: Any) -> Any:
    """Return an expression of 8 bytes as an Array, for what combines items word by word; all else as it is."""
    return asarray(value) if isinstance(value, Expression) and value.type in WIDE_TYPES else value


def device_of(*values: Any, device: wgpu.GPUDevice | None = None) -> wgpu.GPUDevice:
    """Return the one device of the arguments, or the default one; raise BufferUsageError if there are several."""
    devices = {id(v.device): v.device for v in values if isinstance(v, Items)}
    if device is not None:
        check_device(device)
        devices[id(device)] = device
    if len(devices) > 1:
        names = ", ".join(d.adapter.info["device"] for d in devices.values())
        raise BufferUsageError(
            f"the arguments lie on different devices ({names}); copy them to one with gw.asarray(x, device=…)"
        )
    return next(iter(devices.values())) if devices else default_device()


def keep_primitive(cls: type[PrimitiveT], device: wgpu.GPUDevice, *key: Any, **options: Any) -> PrimitiveT:
    """Return a primitive that is kept with the device, so that a second call finds its pipelines.

    Of those of one class, the oldest go when there are many: some classes have one for each shape of the arrays.
    What a Python function does now stands in for it, so that one is found by that, and keeps nothing of the caller's.
    """
    context = context_of(device)
    for k, part in enumerate(key):
        if isinstance(part, TracedOp) and key[k - 1] is not None:
            of = options.get("result_dtype") or getattr(key[k - 1], "datatype", key[k - 1])
            key = (*key[:k], part.on(as_datatype(of, ITEM_DATATYPES)), *key[k + 1 :])
    if "less" in options:
        options["less"] = MergeOrder(cls.__name__, key[0], options["descending"], options["less"]).less
    with context.lock:
        kept = context.cached(("one-shot functions", cls), dict[tuple[Any, ...], Any])
        name = (*key, *options.items())
        try:
            found = kept.get(name)
        except TypeError:  # of a list as an option, say, about which the constructor has a message
            return cls(device, *key, **options)
        if found is None:
            found = kept[name] = cls(device, *key, **options)
            if len(kept) > 64:
                kept.pop(next(iter(kept)))
        return found


def argument_array(call: str, name: str, value: Any) -> np.ndarray:
    """Return what numpy makes of an argument."""
    try:
        return without_complex128(value, host_array(value))
    except DatatypeError:
        raise  # it has masked items
    except ArgumentError as error:
        raise ArgumentError(
            f"{call}: numpy makes no array of {name} ({error.__cause__}); give one array of one dimension"
        ) from error


def index_array(call: str, name: str, value: Any) -> Any:
    """Return indices, counts or offsets: an Array as it is, all else as numpy makes an array of it.

    Bools are 0 and 1, as in numpy, and an empty list, of which numpy makes floats, has no integers.

    Raises
    ------
    DatatypeError
        If they are no integers.
    """
    items = value if isinstance(value, Array) else argument_array(call, name, value)
    if items.dtype.kind == "b":
        return items.astype(np.uint32)
    if not items.size and is_python(value):
        return items.astype(np.int64)
    if items.dtype.kind not in "iu":
        remedy = _conversion_of(name, value).format("int64")
        raise DatatypeError(f"{call}: {name} is of {items.dtype}, but must be integers; give {remedy}")
    return items


def _conversion_of(name: str, value: Any) -> str:
    """Return how an argument is converted, with braces in place of numpy's name of a dtype."""
    if isinstance(value, ChunkedArray):
        return f"gw.ChunkedArray([each.astype(np.{{}}) for each in {name}.chunks])"
    return f"{name}.astype(np.{{}})" if hasattr(value, "astype") else f"np.asarray({name}, dtype=np.{{}})"


def index_words(call: str, name: str, value: Any) -> Any:
    """Return indices, counts or offsets as `index_array`, those on the GPU in u32; an expression as it is."""
    if isinstance(value, (ChunkedArray, *EXPRESSIONS)):
        return value  # taken or refused by others
    items = index_array(call, name, value)
    return items.astype(np.uint32) if isinstance(items, Array) and items.datatype.name != "u32" else items


def check_not_chunked(call: str, name: str, value: Any) -> None:
    """Raise ArgumentError where an argument is a `ChunkedArray`, but must lie in one buffer."""
    if isinstance(value, ChunkedArray):
        raise ArgumentError(f"{call}: {name} is {value!r}, but must be one Array; work on its chunks one by one")


def check_range(call: str, ends: Iterable[Any], length: int, remedy: str = "") -> None:
    """Raise BoundsError where the smallest or the largest index is out of range."""
    for index in map(int, ends):
        if not -length <= index < length:
            raise BoundsError(f"{call}: index {index} is out of bounds for a dimension of length {length}{remedy}")


def check_not_counted(call: str, items: Any) -> None:
    """Raise ArgumentError where only the GPU knows how many items an Array has."""
    if items.count is not None:
        raise ArgumentError(f"{call}: only the GPU knows how many items {items!r} has; give x.trim(), which reads it")


def check_one_length(call: str, sizes: Mapping[str, int], items: str = "items") -> None:
    """Raise LengthError unless all arguments have the same number of items, or of what these are called."""
    if len(set(sizes.values())) > 1:
        described = ", ".join(f"{name} has {size} {items}" for name, size in sizes.items())
        raise LengthError(f"{call}: lengths differ: {described}; slice them to one length")


def argument_datatype(call: str, name: str, value: Any, dtype: np.dtype, known: Mapping[str, Datatype]) -> Datatype:
    """Return an argument's datatype; raise with what its kind of data is converted with."""
    dtype = in_own_order(dtype)  # bytes are brought into this machine's order on the way
    try:
        return as_datatype(dtype, known, convert=_conversion_of(name, value))
    except DatatypeError as error:
        if getattr(getattr(value, "dtype", None), "tz", None) is not None:
            remedy = f"{name}{'.dt' if hasattr(value, 'dt') else ''}.tz_convert(None)"
            raise DatatypeError(f"{call}: {name} has a time zone, which no dtype of numpy has; give {remedy}") from None
        is_made = not hasattr(value, "dtype")  # of a list, a range
        made = f"numpy makes {dtype} of this {type(value).__name__}: " if is_made else ""
        raise DatatypeError(f"{call}: {name}: {made}{error}") from None


def _out_dtype(out: Any, dtype: np.dtype[Any], casting: Any) -> np.dtype[Any]:
    """Return the dtype that `out` may have: its own, where numpy casts results of a dtype to it."""
    own = getattr(out, "dtype", None)
    if not isinstance(own, np.dtype) or own.kind not in "biufc" or (dtype.kind == "c" and own.kind != "c"):
        return dtype
    fits = np.can_cast(own, dtype) if casting == "back" else np.can_cast(dtype, own, casting)
    return own if fits else dtype


def is_weak(value: Any) -> bool:
    """Whether a number takes the datatype of the other arguments: Python's do; numpy's float64 has its own."""
    return isinstance(value, (bool, int, float)) and not isinstance(value, np.generic)


def numpy_result(items: np.ndarray) -> Any:
    """Return an array as numpy's functions do: a scalar if it has no dimensions."""
    return items if items.ndim else items[()]


def _read_into(out: np.ndarray, result: Any) -> np.ndarray:
    """Copy the items of an array on the GPU into a checked numpy array: of any strides, and of another dtype."""
    if out.dtype == result.dtype and out.flags.c_contiguous:
        result.ravel().to_numpy(out=out.reshape(-1))  # a view
    else:  # in another order, or of another dtype
        _cast_into(out, result.to_numpy().reshape(out.shape))
    return out


def _cast_into(out: np.ndarray, items: np.ndarray) -> None:
    with np.errstate(all="ignore"):
        np.copyto(out, items, casting="unsafe")


def deliver(call: str, result: Any, out: Any, casting: Any = "same_kind") -> Any:
    """Return a result, or what the caller gave as ``out=`` with the result in it.

    For functions whose last kernel does not write there itself. It is checked here, so nothing was written before.

    Parameters
    ----------
    result : numpy.ndarray, numpy scalar or Array
    out : numpy.ndarray, Array or None
        Of any dtype that numpy casts the result to, of its shape; on the host of any strides.
    casting : {"same_kind", "unsafe", "equiv", "back"}
        How: functions of items cast within a kind, numpy's reductions also floats to integers. Those that take items
        ask whether the dtype of `out` fits into that of the result ("back"), as numpy, which reads it.

    Raises
    ------
    DatatypeError
        Also ArgumentError, LengthError: if it does not fit.
    """
    if out is None:
        return result
    if isinstance(result, Array):
        check_gpu_out(call, out, result.shape, result.datatype, result.device, casting)
        _copy_on_gpu(out, result)
        return out
    items = np.asarray(result)
    check_host_out(call, out, items.shape, items.dtype, casting)
    _cast_into(out, items)
    return out


def _copy_on_gpu(out: Any, result: Array) -> None:
    """Copy results into a checked Array, which may be of another datatype."""
    items = result if out.datatype == result.datatype else result.astype(out.datatype)
    out.reshape(items.shape).copy_from(items)


def without_doubles(value: Any, items: Any, device: wgpu.GPUDevice) -> Any:
    """Return Python's floats in float32 where the device does not compute with float64."""
    if is_python(value) and items.dtype == np.float64 and not context_of(device).has_float64:
        return items.astype(np.float32)
    return items


def weak_items(call: str, name: str, value: Any, datatype: Datatype) -> np.ndarray:
    """Return an array of Python's numbers, in the datatype of other items; floats keep theirs beside integers.

    Raises
    ------
    DatatypeError
        If one is an integer that the datatype does not hold.
    """
    items = argument_array(call, name, value)
    argument_datatype(call, name, value, items.dtype, ITEM_DATATYPES)
    if not items.size:
        return items.astype(datatype.dtype)  # of no numbers numpy makes floats
    if items.dtype.kind == "f" and datatype.dtype.kind in "iu":
        whole = np.array(value, dtype=object)
        if all(isinstance(each, int) for each in whole.flat):  # of which numpy makes floats where int64 ends
            for end in (whole.min(), whole.max()):
                value_words(int(end), datatype, f"{call}: {name}")
            return whole.astype(datatype.dtype)
    if items.dtype.kind in "iu" and datatype.dtype.kind in "iu":
        for end in (items.min(), items.max()):
            value_words(int(end), datatype, f"{call}: {name}")
    takes = datatype.dtype.kind == "f" or (items.dtype.kind in "biu" and datatype.dtype.kind in "iu")
    with np.errstate(all="ignore"):
        return items.astype(datatype.dtype) if takes else items


def in_datatype(call: str, name: str, items: Any, datatype: Datatype) -> Any:
    """Return the items of an argument in a datatype, converted where they are; chunks cannot be."""
    if items.dtype.newbyteorder("=") == datatype.dtype:
        return items
    if isinstance(items, ChunkedArray):
        raise DatatypeError(
            f"{call}: {name} is a ChunkedArray of {items.datatype}, but is read as {datatype}; convert its chunks, or "
            f"the other argument"
        )
    return items.astype(datatype.dtype)


def is_mixed(first: Any, second: Any) -> bool:
    """Whether numpy compares integers of two arrays as float64, since no integers hold both."""
    kinds = {first.dtype.kind, second.dtype.kind}
    return kinds == {"i", "u"} and np.result_type(first.dtype, second.dtype).kind == "f"


def same_bits(items: Any, dtype: Any = np.uint64) -> Any:
    """Return integers as others of 8 bytes with the same bits: as the same numbers, unless `is_beyond`."""
    return items.astype(np.dtype(f"{items.dtype.kind}8"), copy=False).view(dtype)  # in this machine's order of bytes


def is_beyond(bits: Array) -> Expression:
    """Return whether integers of 8 bytes are negative, or 2**63 and more: other numbers with and without a sign."""
    words = [(name, DATATYPES["u32"]) for name in ("low", "high")]
    return stored_field((bits if bits.shape else bits.ravel()).view("u32"), words, "high") >= 2**31


def stored_leaves(call: str, flat: Flat) -> dict[str, Any]:
    """Return the Arrays of an expression by the names of its leaves.

    Raises
    ------
    ArgumentError
        If a leaf is no Array.
    """
    arrays = dict(flat.arrays)
    free = [name for name in (*flat.names, *(name for name, _ in flat.scalars)) if name not in arrays]
    if free:
        raise ArgumentError(
            f"{call}: the expression has the leaves {', '.join(free)}, which are no Arrays; use Arrays in their place, "
            f"or make a primitive of the expression, and give execute({free[0]}=…)"
        )
    return arrays


def shape_of(value: Any) -> tuple[int, ...] | None:
    """Return the shape of an array, or of an expression; None where no Array says it."""
    return flat_of(value).shape if isinstance(value, EXPRESSIONS) else value.shape


def check_one_dimension(call: str, flat: Flat) -> None:
    """Raise ArgumentError where an expression of Arrays has several dimensions."""
    if len(flat.shape or ()) > 1:
        raise ArgumentError(
            f"{call}: the expression has shape {flat.shape}, but {call} works along one dimension of it; store it with "
            f"gw.asarray(x), or for all items make it of x.ravel()"
        )


def _named_outs(call: str, names: Sequence[str], out: Any) -> dict[str, Any]:
    """Return what a caller gave as `out`, by the names of the outputs."""
    if out is None:
        return {}
    if len(names) == 1:
        return {names[0]: out}
    outs = cast(tuple[Any, ...], out) if isinstance(out, tuple) else ()
    if len(outs) != len(names):
        raise ArgumentError(f"{call}: out must be a tuple of {len(names)} arrays ({', '.join(names)})")
    return dict(zip(names, outs, strict=True))


def check_host_out(call: str, out: Any, shape: tuple[int, ...], dtype: np.dtype[Any], casting: str = "equiv") -> None:
    """Raise unless a numpy array of any strides takes the result; see `check_gpu_out`."""
    check_numpy_out(out, shape, _out_dtype(out, dtype, casting), "the result", call, strided=True)


def check_gpu_out(
    call: str, out: Any, shape: tuple[int, ...], datatype: Datatype, device: wgpu.GPUDevice, casting: str = "equiv"
) -> None:
    """Raise unless an array on the GPU takes the result; a result of shape () fits into any one item.

    With another `casting` it may be of what numpy casts the result to so.
    """
    name = f"np.{datatype.numpy_name}" if datatype.dtype.names else repr(datatype.name)
    make = f"give gw.empty({shape[0] if len(shape) == 1 else shape}, {name}, device)"
    if not isinstance(out, Items):
        raise ArgumentError(
            f"{call}: out is {type(out).__name__}, but the result stays on the GPU, as an input is there; {make}, or "
            f"call to_numpy(out=…) of the result"
        )
    if out.device is not device:
        raise BufferUsageError(f"{call}: out lies on another device than the input; {make}")
    several = isinstance(out, ChunkedArray) or datatype.is_several or out.datatype.is_several
    if out.datatype != datatype and (several or _out_dtype(out, datatype.dtype, casting) != out.dtype):
        raise DatatypeError(f"{call}: out is of {out.datatype}, but the result of {datatype}; {make}")
    if out.shape != shape and (shape or out.size != 1):
        if len(shape) == len(out.shape) == 1:
            raise LengthError(f"{call}: out has {out.size} items, but the result has {shape[0]}; {make}, or a slice")
        raise LengthError(f"{call}: out has shape {out.shape}, but the result has {shape}; {make}")


# ---- a call


class Call:
    """A call of a one-shot function: its arguments, where they lie, and how its results become the caller's.

    Functions go the same way, and upload nothing before all is checked::

        call = Call("gw.square()", device)
        kind = call.take("input", x, Square.datatypes)
        return call.results(call.primitive(Square, kind))["output"]

    1. `take` each input by the name that the primitive has for it. It returns what the primitive's constructor takes
       for it: a datatype, or the program of an expression. A function that looks at the items before takes them in two
       halves: `items` returns what is on the GPU as it is, and all else as numpy makes an array of it; `hold` takes
       what became of them. `promote` takes several that numpy brings to one datatype, `upload` one whose items are
       only moved.
    2. Compare and bound: `check_lengths`, `check_one_datatype`; `integer` for every number that a kernel gets.
    3. `primitive` returns one that is kept with the device: that of the Arrays among the arguments, or the caller's;
       two are refused.
    4. `take_out` checks what the caller gave as ``out=``.
    5. `results` uploads, computes, and returns the outputs by their names as the caller gets them: in numpy where all
       inputs came from the host, else as Arrays, of which nothing is read back; in ``out=`` where there is one. `run`
       returns them on the GPU, for functions that go on with them. `result` and `deliver` hand over what these made.

    Messages begin with the function's name, which ``str()`` of a call is, and call arguments as the caller does.

    Parameters
    ----------
    name : str
        ``"gw.sum()"``.
    device : wgpu.GPUDevice, optional
        The caller's.
    shown : mapping from str to str, optional
        What messages call arguments, where the function has other names than the primitive.
    """

    def __init__(self, name: str, device: wgpu.GPUDevice | None = None, shown: Mapping[str, str] | None = None):
        self.name = name
        #: By the names of the primitive's arguments; those of an expression by its argument's name and their own.
        self.arrays: dict[str, Any] = {}
        #: Whether an input is on the GPU, so that results stay there.
        self.on_gpu: bool = False
        self._shown: Mapping[str, str] = _SHOWN if shown is None else shown
        #: Python's numbers, by the names of arguments; see `promote`.
        self.numbers: dict[str, Any] = {}
        #: Of arrays, and of what is promoted.
        self.datatypes: dict[str, Datatype] = {}
        self._asked = device
        self._device: wgpu.GPUDevice | None = None
        #: Of arrays, how many items they have; not of expressions, which have as many as their Arrays.
        self.sizes: dict[str, int] = {}
        self._shapes: dict[str, tuple[int, ...]] = {}
        self._places: dict[tuple[Any, ...], str] = {}
        self._outs: dict[str, Any] = {}

    def __str__(self) -> str:
        return self.name

    @property
    def device(self) -> wgpu.GPUDevice:
        """The device of the call, as far as its arguments are taken."""
        if self._device is None:
            self._device = device_of(*self.arrays.values(), device=self._asked)
        return self._device

    # ---- inputs

    def items(
        self, name: str, value: Any, *, computes: bool = False, fuses: bool = False, chunked: bool = False
    ) -> Any:
        """Return what is on the GPU as it is, and all else as numpy makes an array of it; see `take`.

        Raises
        ------
        ArgumentError
            If it is an expression without `fuses`, a `ChunkedArray` without `chunked`, or nothing that numpy makes an
            array of.
        """
        if isinstance(value, Items):
            if not chunked:
                check_not_chunked(self.name, self.shown(name), value)
            return value
        if isinstance(value, EXPRESSIONS):
            if fuses:
                return value
            shown = self.shown(name)
            raise ArgumentError(f"{self}: {shown} is an expression; store it first, with gw.asarray({shown})")
        items = argument_array(self.name, self.shown(name), value)
        if computes and items.dtype == np.float64 and is_python(value):
            return without_doubles(value, items, self.device)
        return items

    def take(
        self, name: str, value: Any, known: Mapping[str, Datatype] = STORAGE_DATATYPES, *,
        shape: Literal["one", "flat", "any"] = "one", computes: bool = False, fuses: bool = True,
        chunked: bool = False, shares: bool = False,
    ) -> Any:  # fmt: skip
        """Take an input; return its datatype, or the program of an expression.

        Parameters
        ----------
        known : mapping from str to Datatype
            What its items may be.
        shape : {"one", "flat", "any"}
            Several dimensions are refused, taken as all items in C order, or taken as they are.
        computes : bool
            Whether the kernel computes with items, and not only moves or compares them: then Python's floats are
            float32 where the device does not compute with float64.
        fuses : bool
            Whether it may be an expression.
        chunked : bool
            Whether it may be a `ChunkedArray`.
        shares : bool
            Whether an Array that an expression reads is bound as the input that shows the same items. For primitives
            that read these once.
        """
        if fuses and isinstance(value, EXPRESSIONS):
            return self.take_expression(name, value, flat=shape == "flat", shares=shares)
        items = self.items(name, value, computes=computes, chunked=chunked)
        self._shapes[name] = items.shape
        if items.ndim != 1:
            if shape == "flat":
                items = items.ravel()
            elif shape == "one":
                self.check_dimension(name, items)
        if shares and isinstance(items, Array):
            self._places[items.place] = name
        return self.hold(name, items, value, known)

    def ravel(self, name: str, value: Any) -> Any:
        """Return all items of an array of several dimensions in C order, as numpy takes them without an axis.

        An expression of several is stored; other arguments are returned as they are.
        """
        items = self.items(name, value, chunked=True, fuses=True)
        if isinstance(items, EXPRESSIONS):
            return asarray(items).ravel() if len(flat_of(items).shape or ()) > 1 else value
        return value if items.ndim == 1 else items.ravel()

    def hold(self, name: str, items: Any, value: Any, known: Mapping[str, Datatype] = STORAGE_DATATYPES) -> Datatype:
        """Take the items that were made of what a caller gave; return their datatype, one of the known ones."""
        datatype = items.datatype if isinstance(items, Items) else None
        self.on_gpu |= datatype is not None
        if datatype is None or known.get(datatype.name) is not datatype:
            datatype = argument_datatype(self.name, self.shown(name), value, items.dtype, known)
        self.arrays[name], self.sizes[name], self.datatypes[name] = items, items.size, datatype
        self._device = None
        return datatype

    def take_expression(self, name: str, value: Any, *, flat: bool = False, shares: bool = False) -> Flat:
        """Take an argument that is an expression of Arrays; return its program.

        Raises
        ------
        ArgumentError
            If a leaf is no Array, or has several dimensions, unless these are taken as all items.
        """
        program = flat_of(value)
        arrays = stored_leaves(self.name, program)
        self.on_gpu = True
        if program.shape is not None:
            self._shapes[name] = program.shape
        if flat:
            arrays = {leaf: array.ravel() for leaf, array in arrays.items()}
        else:
            check_one_dimension(self.name, program)
        if name != "input" or shares:
            names = {leaf: leaf if name == "input" else f"{name}_{leaf}" for leaf in arrays}
            if shares:
                names = {leaf: self._places.setdefault(array.place, names[leaf]) for leaf, array in arrays.items()}
            arrays = {names[leaf]: array for leaf, array in arrays.items()}
            program = program.renamed(names)
        self.arrays |= arrays
        self._device = None
        return program.without_arrays()

    def upload(self, name: str, value: Any) -> Array:
        """Take an array of any shape and datatype, whose items are moved; return it on the GPU."""
        self.take(name, value, ITEM_DATATYPES, shape="any", fuses=False)
        items = self.arrays[name]
        if isinstance(items, Array):
            device_of(items, device=self._asked)  # raises where they are two
            check_not_counted(self.name, items)
        return asarray(items, self.device)

    def promote(
        self, given: Mapping[str, Any], known: Mapping[str, Datatype] = STORAGE_DATATYPES, *, computes: bool = True
    ) -> Datatype:
        """Take inputs of any shape; return the one datatype that numpy promotes them to.

        Python's numbers are weak, as in NumPy 2, and go to `numbers`.

        Parameters
        ----------
        given : mapping from str to object
            Arrays of any kind and numbers, by the names of arguments.
        known : mapping from str to Datatype
            What the items, and the promoted ones, may be.
        computes : bool
            As for `take`; a kernel that only compares takes float64 on any device.
        """
        self.numbers = {name: value for name, value in given.items() if is_weak(value)}
        arrays = {name: value for name, value in given.items() if name not in self.numbers}
        for name in sorted(arrays, key=lambda name: not isinstance(arrays[name], Items)):  # those that say where first
            self.take(name, arrays[name], known, shape="any", computes=computes, fuses=False, chunked=True)
        found = np.result_type(*(self.datatypes[name].dtype for name in arrays)) if arrays else np.dtype(np.bool_)
        for value in self.numbers.values():
            kind = "b" if isinstance(value, bool) else "i" if isinstance(value, int) else "f"
            if "biufc".index(found.kind) < "biufc".index(kind):
                double = default_float(context_of(self.device)).dtype if computes else np.dtype(np.float64)
                found = double if kind == "f" else np.dtype(np.int64)
        return as_datatype(found, known)

    def convert(self, name: str, datatype: Datatype) -> Any:
        """Return an argument that was promoted in a datatype, a number as an array of shape ().

        Raises
        ------
        DatatypeError
            If the datatype does not hold a number.
        """
        if name not in self.numbers:
            return in_datatype(self.name, self.shown(name), self.arrays[name], datatype)
        value_words(self.numbers[name], datatype, self.name)
        with np.errstate(all="ignore"):
            return np.array(self.numbers[name], dtype=datatype.dtype)

    def shown(self, name: str) -> str:
        """Return what messages call an argument."""
        return self._shown.get(name, name)

    def check_dimension(self, name: str, items: Any) -> None:
        """Raise ArgumentError where an argument is a single number, or has several dimensions."""
        if items.ndim == 1:
            return
        shown = self.shown(name)
        if items.ndim:
            raise ArgumentError(
                f"{self}: {shown} has shape {items.shape}, but {self} works along one dimension; for all items give "
                f"{shown}.ravel(), and for rows call it once for each"
            )
        if isinstance(items, Items):
            raise ArgumentError(f"{self}: {shown} is an Array of shape (), one item; give {shown}.reshape(1)")
        raise ArgumentError(
            f"{self}: {shown} is a single item ({items.item()!r}) and no array, and nothing is broadcast here; give an "
            f"array of one dimension, such as np.full(n, {items.item()!r})"
        )

    def check_lengths(self, *names: str, of: str = "items") -> None:
        """Raise LengthError where inputs have different lengths or shapes: those of some arguments, or all."""
        given = [name for name in names or self.sizes if name in self.sizes]
        check_one_length(self.name, {self.shown(name): self.sizes[name] for name in given}, of)
        shapes = {name: shape for name, shape in self._shapes.items() if not names or name in names}
        check_one_shape(self.name, {self.shown(name): shape for name, shape in shapes.items()})

    def check_one_datatype(self, name: str, like: str) -> None:
        """Raise DatatypeError where an input is of another datatype than a second one."""
        own, wanted = self.datatypes[name], self.datatypes[like]
        if own == wanted:
            return
        shown = self.shown(name)
        raise DatatypeError(
            f"{self}: {shown} is of {own} (numpy {own.numpy_name}), but {self.shown(like)} of {wanted} (numpy "
            f"{wanted.numpy_name}); convert one of the two, for example with "
            f"{_conversion_of(shown, self.arrays[name]).format(wanted.numpy_name)} where that loses nothing"
        )

    def integer(self, name: str, value: Any, least: int | None = None, most: int | None = MOST_U32) -> int:
        """Return a number as an int, which a kernel gets as a u32; raise where it is none, or out of bounds."""
        return integer(f"{self}: {name}", value, least, most)

    # ---- computing

    def primitive(self, cls: type[PrimitiveT], *key: Any, **options: Any) -> PrimitiveT:
        """Return a primitive that is kept with the device of the call."""
        return keep_primitive(cls, self.device, *key, **options)

    def take_out(
        self, primitive: Primitive, out: Any, shape: tuple[int, ...] | None = None, *,
        dtype: np.dtype[Any] | None = None, casting: str = "equiv",
    ) -> None:  # fmt: skip
        """Check what the caller gave as ``out=``, before anything is uploaded: results go there.

        Parameters
        ----------
        out : numpy.ndarray, Array, ChunkedArray, tuple of them or None
            A tuple where the primitive has several outputs.
        shape, dtype : optional
            Of results, where they are not those of the primitive's output.
        casting : {"equiv", "same_kind", "unsafe", "back"}
            See `deliver`. Counted and chunked results are of one datatype.
        """
        if out is None and self.sizes:
            return
        signature, lengths = primitive.signature, {name: int(items.size) for name, items in self.arrays.items()}
        if out is None:
            if any(signature.output_length(name, lengths) is None for name in signature.outputs):
                raise ArgumentError(
                    f"{self}: no leaf of the expression says how many items it has; give out=, or store it with "
                    f"gw.asarray(x, size=…)"
                )
            return
        if any(isinstance(x, ChunkedArray) or getattr(x, "count", None) is not None for x in self.arrays.values()):
            casting = "equiv"
        for name, value in _named_outs(self.name, signature.outputs, out).items():
            length, datatype = signature.output_length(name, lengths), signature.datatype(name)
            assert datatype is not None, "the outputs of one-shot functions have a datatype"
            own = shape if shape is not None else (value.size if length is None else length,)
            if self.on_gpu:
                check_gpu_out(self.name, value, own, datatype, primitive.device, casting)
            else:
                check_host_out(self.name, value, own, datatype.dtype if dtype is None else dtype, casting)
            self._outs[name] = value
        if not self.on_gpu and len(self._outs) > 1 and np.may_share_memory(*self._outs.values()):
            raise OverlapError(f"{self}: the arrays of out= share memory; give separate ones")

    def run(self, primitive: Primitive, **more: Any) -> dict[str, Any]:
        """Upload what is not on the GPU, compute, and return the outputs there by their names."""
        device = primitive.device
        arrays = {n: v if isinstance(v, Items) else asarray(v, device) for n, v in self.arrays.items()}
        # The primitive is kept, and must not keep the caller's arrays.
        return primitive.run_once(**arrays, **more)

    def results(self, primitive: Primitive, **more: Any) -> dict[str, Any]:
        """Compute, and return the outputs by their names as the caller gets them."""
        if not self._outs:
            return {name: self.result(output) for name, output in self.run(primitive, **more).items()}
        if not self.on_gpu:
            found = self.run(primitive, **more)
            return {name: _read_into(self._outs[name], output) for name, output in found.items()}
        of = primitive.signature.datatype
        written = {name: out for name, out in self._outs.items() if out.datatype == of(name)}
        found = self.run(primitive, **written, **more)
        for name, out in self._outs.items():
            if name not in written:
                _copy_on_gpu(out, found[name].reshape(out.shape))
        # What is counted is a view of the caller's array, which itself stays as it is.
        return {
            name: output if isinstance(output, Array) and output.count is not None else self._outs[name]
            for name, output in found.items()
        }

    def result(self, output: Any, dtype: Any = None) -> Any:
        """Return an output as the caller gets it: in numpy, there also of another dtype, or as it is."""
        if self.on_gpu:
            return output
        items = output.to_numpy()
        return items if dtype is None else cast_items(items, dtype)
