"""One-shot functions that reduce to an index, a truth value, a count or a moment.

With numpy arrays the results are numbers of numpy. With an Array or an expression of Arrays they are Arrays of shape ()
on the GPU, which expressions take as numbers; nothing is read back.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import lru_cache
from math import prod
from typing import Any, NamedTuple, TypeAlias, cast

import numpy as np
import wgpu

from ..errors import ArgumentError, DatatypeError, LengthError
from ..primitives import FindIf, Map, Reduce, ReduceAxis
from ..primitives.fusion import EXPRESSIONS, flat_of
from ..primitives.reduce_axis import axes_of, one_axis
from ..runtime.array import Array, asarray
from ..runtime.chunked_array import ChunkedArray
from ..runtime.context import context_of
from ..types.datatype import DATATYPES, ITEM_DATATYPES, ItemDatatypeLike, as_datatype
from ..types.expression import (
    LEAF_DATATYPES,
    Expression,
    Later,
    Operators,
    as_node,
    deferred,
    f32,
    f64,
    index,
    leaf,
    scalar,
    stored,
    u32,
)
from ..types.expression_functions import StructExpression, bitcast, moments, result, sqrt, struct, truth, where
from ..types.operators import Add, And, BinOp, Max, Min, Or
from ..types.options import integer
from ..types.program import Flat
from ..types.shapes import check_one_shape
from ..types.struct_operators import ArgMax, ArgMin, ArgMinMax, ArgRank, MinMax, Moments, WideSum
from ..types.wide_text import WIDE_TYPES
from .arguments import (
    Call,
    HostItems,
    argument_array,
    deliver,
    device_of,
    keep_primitive,
    numpy_result,
    shape_of,
    stored_if_wide,
    stored_leaves,
    without_doubles,
)
from .arrays import full_like, take
from .bins import sums_may_wrap
from .double_moments import DoubleMoments
from .families import family
from .reductions import (
    Axes,
    Combination,
    Results,
    check_order,
    combine,
    mask_of,
    masked_items,
    narrow_numbers,
    numbers_and_mask,
    reduce,
    sum,
)  # fmt: skip
from .repeated_calls import one_shot
from .selections import count_selected
from .signatures import AxisLike, Where

#: What the functions take: an array of numpy or what numpy makes one of, an Array, or an expression of Arrays.
Reducible: TypeAlias = HostItems | Array | Expression
#: And several Arrays that act as one.
Findable: TypeAlias = Reducible | ChunkedArray

#: The fields of structs that were reduced along an axis, as words.
_FIELDS = "fields"
#: The two words of items of 8 bytes, which expressions do not read as they are.
_WORDS = "words"
_WIDE = 8
_LOW, _HIGH = u32(_WORDS, components=2)


def _variance_of(count: Any, m2: Any) -> Any:
    freedom = f32(count) - scalar("correction", "f32")
    return m2 / where(freedom > 0.0, freedom, scalar("least", "f32"))


def _mean_of(count: Any, total: Any) -> Any:
    return where(count == u32(0), scalar("empty", "f32"), total / f32(count))


def _float_of(low: Any, middle: Any, high: Any) -> Any:
    """Return the sum that the words of `WideSum` are, in f32."""
    is_negative = (high >> 31) != 0
    words: list[Any] = []
    carry = where(is_negative, u32(1), u32(0))
    for word in (low, middle, high):
        word = where(is_negative, ~word, word) + carry
        carry = where(word == 0, carry, u32(0))
        words.append(f32(word))
    total = words[0] + 2.0**32 * (words[1] + 2.0**32 * words[2])
    return where(is_negative, -total, total)


def _place_along(fields: int) -> Any:
    """Return an expression of the last of some fields, an index: its place along the axis."""
    return u32(_FIELDS, components=fields)[-1] // scalar("step", "u32") % scalar("length", "u32")


_OF_TWO, _OF_THREE, _OF_FOUR = (u32(_FIELDS, components=fields) for fields in (2, 3, 4))
# What is computed of the result of a reduction of all items, and of the fields of those along axes. Made once:
# primitives are kept by them.
_INDEX: Later = result.index
_PLACES = {fields: _place_along(fields) for fields in (2, 3)}
_DIVIDED: Any = result / scalar("divisor", "f32")
_MEANS = _mean_of(result.count, result.total), _mean_of(_OF_TWO[0], bitcast("f32", _OF_TWO[1]))
_EXACT_MEANS = (
    _mean_of(result.count, deferred(_float_of)(result.low, result.middle, result.high)),
    _mean_of(_OF_FOUR[0], _float_of(*_OF_FOUR[1:])),
)
#: Those of all items, of floats along axes, and of integers.
_VARIANCES = (
    _variance_of(result.count, result.m2),
    *(_variance_of(each[0], bitcast("f32", each[-1])) for each in (_OF_THREE, _OF_FOUR)),
)
_DEVIATIONS = tuple(sqrt(each) for each in _VARIANCES)


@lru_cache(maxsize=6)
def _rank(kind: str, largest: bool) -> tuple[Any, Any]:
    """Return the rank of an item of 8 bytes as two words: of the largest or the smallest item it is the greatest.

    −0 and +0 have one rank, and every NaN has the greatest. Source: M. Herf, "Radix tricks" (2001), for floats.
    """
    high, low = _HIGH, _LOW
    if kind == "i":
        high = high ^ 0x80000000
    elif kind == "f":
        is_below = ((high >> 31) != 0) & (((high << 1) | low) != 0)
        high, low = where(is_below, ~high, high | 0x80000000), where(is_below, ~low, low)
    if not largest:
        high, low = ~high, ~low
    if kind == "f":
        magnitude = _HIGH & 0x7FFFFFFF
        is_nan = (magnitude > 0x7FF00000) | ((magnitude == 0x7FF00000) & (_LOW != 0))
        high, low = (where(is_nan, u32(2**32 - 1), each) for each in (high, low))
    return high, low


class MinAndMax(NamedTuple):
    """What `minmax` returns."""

    min: Any
    max: Any


class ArgMinAndMax(NamedTuple):
    """What `argminmax` returns."""

    argmin: Any
    argmax: Any
    min: Any
    max: Any


class Reduction:
    """The items of a call as expressions, and how these are reduced: all, or those along axes.

    Parameters
    ----------
    call : str
        For messages.
    x : object
    device : wgpu.GPUDevice or None
    axis : int or tuple of int, optional
    keepdims : bool
    mask : numpy.ndarray, Array or Expression, optional
        Which items count, of bool.
    """

    def __init__(
        self, call: str, x: Any, device: wgpu.GPUDevice | None, axis: Any = None, keepdims: bool = False,
        mask: Any = None,
    ):  # fmt: skip
        if axis is not None and isinstance(x, (Expression, StructExpression, ChunkedArray)):
            raise ArgumentError(f"{call}: only an array has axes; store it with gw.asarray(x), or leave out axis=")
        if isinstance(x, (ChunkedArray, StructExpression)):
            raise ArgumentError(
                f"{call}: x is a {type(x).__name__}, but must be an array, an Array or an expression; give "
                f"{'its chunks one by one' if isinstance(x, ChunkedArray) else 'one of its fields'}"
            )
        given: Any = x if isinstance(x, Operators) else argument_array(call, "x", x)
        if mask is not None:
            given, mask = masked_items(call, given, mask, device)
        self._call = call
        self._device = device
        self.on_gpu: bool = isinstance(given, Operators)
        #: Of an array.
        self.dtype: np.dtype[Any] | None = None
        #: Whether they have 8 bytes.
        self.is_wide: bool = False
        is_array = not self.on_gpu or isinstance(given, Array)
        datatype = Call(call, device).hold("x", given, x) if is_array else None
        flat = None if is_array else flat_of(given.as_expression())
        shape = given.shape if flat is None else flat.shape
        if shape is None:
            shape = (0,) if flat is not None and flat.program.aligned else ()
        #: Along which items are reduced, and the shape of the result.
        self.axes: Axes = Axes.of(call, axis, shape, keepdims)
        self._combined, (given, mask) = self.axes.bring_together(given, mask)
        #: The shape in which the items lie.
        self.shape: tuple[int, ...] = given.shape if is_array else shape
        if not self.on_gpu:
            self._device = device_of(device=device)
            given, mask = (None if each is None else asarray(each.reshape(-1), self._device) for each in (given, mask))
        #: Which items count, of bool; None for all.
        self.mask: Expression | None = None if mask is None else mask.as_expression()
        if datatype is None:
            self.value: Expression = given.as_expression()
            return
        #: The items on the GPU.
        self.array: Array = given
        self.dtype = datatype.dtype
        if datatype.name in LEAF_DATATYPES:
            self.value = stored(given)
        else:
            self.is_wide = True

    @property
    def _words(self) -> dict[str, Array]:
        """Items of 8 bytes as words, by the name of the leaf that reads them; empty for others."""
        return {_WORDS: self.array.ravel().view("u32")} if self.is_wide else {}

    @property
    def truth(self) -> Expression:
        """Whether each is not 0."""
        if not self.is_wide:
            return truth(self.value)
        return (_LOW | (_HIGH << 1 if self._kind == "f" else _HIGH)) != 0

    @property
    def ordered(self) -> Expression:
        """The items as numbers that can be compared."""
        return where(self.value, u32(1), u32(0)) if self.value.type == "bool" else self.value

    @property
    def floats(self) -> Expression:
        """The items in f32."""
        return where(self.value, f32(1), f32(0)) if self.value.type == "bool" else f32(self.value)

    @property
    def _kind(self) -> str:
        assert self.dtype is not None
        return self.dtype.kind

    @property
    def size(self) -> int:
        """The number of items that there is room for."""
        return self.array.size if self.is_wide else flat_of(self.value).size

    @property
    def is_counted(self) -> bool:
        """Whether only the GPU knows how many items count."""
        return [each for each in self._arrays if each.count is not None] != []

    @property
    def _arrays(self) -> list[Array]:
        return [cast(Array, each) for _, each in flat_of(self.value).arrays]

    def rank(self, op: BinOp) -> tuple[Any, BinOp]:
        """Return structs that end with an index, and the operator that keeps the least or greatest, as `op` does."""
        if not self.is_wide:
            return struct(value=self.ordered, index=index), op
        high, low = _rank(self._kind, op == ArgMax)
        return struct(high=high, low=low, index=index), ArgRank

    def run(
        self, items: Any, op: BinOp, numbers: Mapping[str, Any] | None = None, *, of: Any = Reduce, **options: Any
    ) -> Array:
        """Return an Array with the one item of a reduction of an expression made of the items, or those along axes."""
        flat = flat_of(items)
        arrays: dict[str, Any] = (
            {**dict(flat.arrays), **self._words} if self.is_wide else stored_leaves(self._call, flat)
        )
        device = device_of(*arrays.values(), device=self._device)
        primitive = keep_primitive(of, device, flat.without_arrays(), op, **options)
        return primitive.run_once(**arrays, **(numbers or {}))["output"]

    def reduce(
        self, items: Any, op: BinOp, outputs: tuple[Any, Any] = (None, None),
        numbers: Mapping[str, Any] | None = None, **options: Any,
    ) -> Any:  # fmt: skip
        """Return reductions of an expression made of the items: of numpy arrays in numpy, else an Array.

        Parameters
        ----------
        items : Expression or StructExpression
        op : BinOp
        outputs : tuple of two expressions
            What is computed of the result of all items; and of the fields along axes, whose leaf is `_FIELDS`, as many
            words as the struct has.
        numbers : mapping from str to float, optional
            What these take.
        """
        if self.axes.is_all:
            output = self.run(items, op, numbers, output=outputs[0], **options)
            return self.axes.fit(output.viewed_as(()) if self.on_gpu else output.to_numpy()[0])
        fields = self.run(items, op, of=ReduceAxis, shape=self.shape, axis=self._combined, **options)
        if outputs[1] is not None:
            primitive = keep_primitive(Map, fields.device, outputs[1])
            fields = primitive.run_once(**{_FIELDS: fields.view(DATATYPES["u32"])}, **(numbers or {}))["output"]
        found = fields.reshape(self.axes.shape)
        return found if self.on_gpu else found.to_numpy()

    def places(self, op: BinOp) -> Any:
        """Return the indices of the least or greatest items."""
        ranked, op = self.rank(op)
        numbers: dict[str, int] = {}
        if not self.axes.is_all:
            # How many items make a result, and how many items further the next one of these lies.
            numbers = {
                "length": prod(self.shape[k] for k in self._combined),
                "step": prod(self.shape[self._combined[-1] + 1 :]) if self._combined else 1,
            }
        found = self.reduce(ranked, op, (_INDEX, _PLACES[len(ranked.fields)]), numbers)
        return found if self.on_gpu else found.astype(np.intp)

    def doubles(self, asked: Any, deterministic: bool = False) -> DoubleMoments | None:
        """Return what computes moments in float64; None where numpy's are of other floats, or the device has none."""
        has_halves = self.value.type == "f32" if self.dtype is None else self.dtype.kind == "f" and not self.is_wide
        device = device_of(*(self._arrays if self.dtype is None else [self.array]), device=self._device)
        if not context_of(device).has_float64:
            if asked == np.float64 or (self.is_wide and self._kind == "f"):
                raise _refuse_doubles(self._call, "the result is asked for in" if asked == np.float64 else "x is of")
            return None
        if has_halves and asked != np.float64:
            return None
        array = asarray(self.value, device) if self.dtype is None else self.array
        mask = None if self.mask is None else asarray(self.mask, device)
        return DoubleMoments(array, self.shape, self._combined, mask, deterministic)

    def delivered(self, found: Array) -> Any:
        """Return one result for each of the axes' in their shape: of numpy arrays in numpy."""
        found = found.reshape(self.axes.shape)
        return found if self.on_gpu else numpy_result(found.to_numpy())

    @property
    def is_exact(self) -> bool:
        """Whether they are added and subtracted as integers, since f32 does not hold these."""
        return self.value.type in ("i32", "u32") if self.dtype is None else _is_exact(self.dtype)

    def means(self) -> Any:
        """Return the means of the items that count."""
        empty = {"empty": np.nan}
        if not self.is_exact:  # a mean of the sum keeps infinities, which `Moments` does not
            return self._of_counted(struct(count=u32(1), total=self.floats), Add, _MEANS, empty)
        return self._of_counted(self._wide_numbers(), WideSum, _EXACT_MEANS, empty)

    def host_means(self) -> Any:
        """Return the means of integers of the host that count, in float64: their exact sums are divided there."""
        found = self._of_counted(self._wide_numbers(), WideSum, (None, None))
        whole = (found["high"].astype(np.int32).astype(np.int64) << 32) | found["middle"].astype(np.int64)
        with np.errstate(all="ignore"):
            means = (whole * 2.0**32 + found["low"]) / found["count"]
        return self.axes.fit(means) if self.axes.is_all else means

    def _wide_numbers(self) -> StructExpression:
        """Return integers as `WideSum` adds them."""
        low, middle = (_LOW, _HIGH) if self.is_wide else (u32(self.value), None)
        is_negative = (low if middle is None else middle) >> 31 != 0
        is_signed = self.value.type == "i32" if middle is None else self._kind == "i"
        sign = where(is_negative, u32(2**32 - 1), u32(0)) if is_signed else u32(0)
        return struct(count=u32(1), low=low, middle=sign if middle is None else middle, high=sign)

    def from_least(self) -> None:
        """Make integers of 8 bytes what float32 holds best of them: their distances from the least along the axes."""
        self.array = DoubleMoments(self.array, self.shape, self._combined).floats("f32").reshape(self.shape)
        self.is_wide, self.dtype, self.value = False, np.dtype(np.float32), stored(self.array)

    def spreads(self, outputs: tuple[Any, ...], numbers: Mapping[str, Any], **options: Any) -> Any:
        """Return what is computed of the moments of the items that count."""
        made = moments(self.value if self.is_exact else self.floats)
        return self._of_counted(made, Moments, (outputs[0], outputs[2 if self.is_exact else 1]), numbers, **options)

    def _of_counted(self, made: StructExpression, *rest: Any, **options: Any) -> Any:
        if self.mask is not None:
            none = StructExpression({name: as_node(0, each.type) for name, each in made.fields.items()})
            made = where(self.mask, made, none)
        return self.reduce(made, *rest, **options)


def _is_exact(dtype: np.dtype[Any]) -> bool:
    return dtype.kind in "iu" and dtype.itemsize > 2


@family()
def _truth(call: str, op: BinOp):
    def holds(
        x: Reducible,
        axis: AxisLike = None,
        out: Any = None,
        keepdims: bool = False,
        *,
        where: Where = True,
        device: wgpu.GPUDevice | None = None,
    ) -> Any:
        """Parameters
        ----------
        x : numpy.ndarray, Array or expression
            Of any shape and datatype.
        axis : int or tuple of int, optional
            By default all items, of any shape.
        out : numpy.ndarray or Array, optional
            Where to put the result, of its shape; an Array of bool.
        keepdims : bool, default False
            Whether these axes stay, with one item each.
        where : numpy.ndarray, Array or expression of bool, default True
            Which items count, of a shape that is broadcast to that of `x`.
        device : wgpu.GPUDevice, optional
            By default that of an Array among the arguments, else `default_device()`.

        Returns
        -------
        bool, numpy.ndarray or Array
            An Array of bool where `x` is on the GPU.
        """
        items = _truths(call, x, device, axis, keepdims, where)
        truth, mask = items.truth, items.mask
        if mask is not None:  # what does not count is the operator's identity
            truth = truth & mask if op is Or else truth | ~mask
        found = items.reduce(truth, op, result_dtype="bool")
        if isinstance(out, Array) and isinstance(found, Array) and items.axes.is_all:  # any of one item, as for sums
            found = found.reshape(())
        return deliver(call, found, out)

    return holds


def _truths(call: str, x: Any, device: Any, axis: Any, keepdims: bool, where: Any = True) -> Reduction:
    """Return the reduction of items of which only counts whether they are 0."""
    if axis is not None and not isinstance(x, (Operators, StructExpression, ChunkedArray)):
        x = argument_array(call, "x", x) != 0  # less to upload
    return Reduction(call, x, device, axis, keepdims, mask_of(call, where))


@_truth(Or)
def any() -> None:
    """Return whether an item is not 0.

    {parameters}

    Examples
    --------
    >>> import numpy as np, gridwise_py as gw
    >>> bool(gw.any(np.array([0, 3, 0], dtype=np.int32)))
    True
    """


@_truth(And)
def all() -> None:
    """Return whether no item is 0.

    {parameters}

    Examples
    --------
    >>> import numpy as np, gridwise_py as gw
    >>> bool(gw.all(np.array([0, 3, 0], dtype=np.int32)))
    False
    """


@family()
def _place(call: str, op: BinOp, skips_nan: bool = False):
    def place(
        x: Reducible,
        axis: int | None = None,
        out: Any = None,
        *,
        keepdims: bool = False,
        device: wgpu.GPUDevice | None = None,
    ) -> Any:
        """Parameters
        ----------
        x : numpy.ndarray, Array or expression
            Of any shape and datatype.
        axis : int, optional
            By default all items, in C order.
        out : numpy.ndarray or Array, optional
            Where to put the result, of its shape: of intp, or an Array of u32.
        keepdims : bool, default False
            Whether the result has as many dimensions as `x`.
        device : wgpu.GPUDevice, optional
            By default that of an Array among the arguments, else `default_device()`.

        Returns
        -------
        numpy.intp, numpy.ndarray or Array
            An Array of u32 where `x` is on the GPU.

        Raises
        ------
        EmptyReductionError
            If there are no items.
        """
        casting = "unsafe" if np.can_cast(getattr(out, "dtype", np.intp), np.intp) else "equiv"
        if skips_nan:
            x, axis = _behind_numbers(call, x, axis, -np.inf if op is ArgMax else np.inf, device)
        if axis is not None:
            integer(f"{call}: axis", axis)
        return deliver(call, Reduction(call, stored_if_wide(x), device, axis, keepdims).places(op), out, casting)

    return place


def _behind_numbers(call: str, x: Any, axis: Any, last: float, device: Any) -> tuple[Any, Any]:
    """Return items with a number in place of NaN that comes behind all others, and the axis."""
    items, mask = numbers_and_mask(call, x, True, device)
    if axis is not None and not isinstance(items, Expression) and items.ndim < 2:
        one_axis(call, axis, 1)
        axis = None
    if mask is True:
        return items, axis
    if isinstance(items, np.ndarray):
        check_order(call, items)
        if items.size and not np.any(mask, axis=None if axis is None else one_axis(call, axis, items.ndim)).all():
            raise ArgumentError(f"{call}: all items of a row are NaN, so there is no such index (numpy raises, too)")
        return np.where(mask, items, np.array(last, items.dtype)), axis
    chosen = where(mask, items.as_expression(), last)
    return asarray(chosen) if isinstance(items, Array) and items.ndim > 1 else chosen, axis


@_place(ArgMax)
def argmax() -> None:
    """Return the index of the largest item, of several the first.

    {parameters}

    Examples
    --------
    >>> import numpy as np, gridwise_py as gw
    >>> int(gw.argmax(np.array([3, 7, 7], dtype=np.float32)))
    1
    """


@_place(ArgMin)
def argmin() -> None:
    """Return the index of the smallest item, of several the first.

    {parameters}

    Examples
    --------
    >>> import numpy as np, gridwise_py as gw
    >>> int(gw.argmin(np.array([3, 1, 1], dtype=np.float32)))
    1
    """


@_place(ArgMax, skips_nan=True)
def nanargmax() -> None:
    """Return the index of the largest of the items that are not NaN.

    Of none numpy arrays raise, and Arrays give the first index. Integers have no NaN; of an Array that has, items have
    up to 4 bytes.

    {parameters}

    Examples
    --------
    >>> import numpy as np, gridwise_py as gw
    >>> gw.nanargmax(np.array([1, np.nan, 2], dtype=np.float32))
    np.int64(2)
    """


@_place(ArgMin, skips_nan=True)
def nanargmin() -> None:
    """Return the index of the smallest of the items that are not NaN; else as `nanargmax`.

    {parameters}
    """


@one_shot()
def minmax(x: Reducible, *, device: wgpu.GPUDevice | None = None) -> MinAndMax:
    """Return the smallest and largest item, read once; NaN propagates.

    Parameters
    ----------
    x : numpy.ndarray, Array or expression
        Of any shape and datatype.
    device : wgpu.GPUDevice, optional
        By default that of an Array among the arguments, else `default_device()`.

    Returns
    -------
    MinAndMax
        In Arrays of u32, i32 or f32, or of 8 bytes, which are read twice.

    Raises
    ------
    EmptyReductionError
        If there are no items.

    Examples
    --------
    >>> import numpy as np, gridwise_py as gw
    >>> low, high = gw.minmax(np.array([3, 1, 2], dtype=np.int32))
    >>> int(low), int(high)
    (1, 3)
    """
    items = Reduction("gw.minmax()", stored_if_wide(x), device)
    if items.is_wide:
        ends = [reduce(items.array, op, device=device) for op in (Min, Max)]
        return MinAndMax(*(ends if items.on_gpu else [end.to_numpy()[()] for end in ends]))
    value = items.ordered
    both = items.run(struct(min=value, max=value), MinMax).view(DATATYPES[value.type])
    if items.on_gpu:
        return MinAndMax(both[:1].viewed_as(()), both[1:].viewed_as(()))
    assert items.dtype is not None
    return MinAndMax(*both.to_numpy().astype(items.dtype))


@one_shot()
def argminmax(x: Reducible, *, device: wgpu.GPUDevice | None = None) -> ArgMinAndMax:
    """Return the indices of the smallest and the largest item, and these, read once.

    Parameters
    ----------
    x : numpy.ndarray, Array or expression
        Of any shape and datatype.
    device : wgpu.GPUDevice, optional
        By default that of an Array among the arguments, else `default_device()`.

    Returns
    -------
    ArgMinAndMax
        Indices count in C order.

    Raises
    ------
    EmptyReductionError
        If there are no items.

    Examples
    --------
    >>> import numpy as np, gridwise_py as gw
    >>> found = gw.argminmax(np.array([3, 1, 2], dtype=np.int32))
    >>> int(found.argmin), int(found.argmax), int(found.min), int(found.max)
    (1, 0, 1, 3)
    """
    items = Reduction("gw.argminmax()", stored_if_wide(x), device)
    if items.is_wide:
        places = [items.run(*items.rank(op), output=_INDEX) for op in (ArgMin, ArgMax)]
        values: list[Any] = [take(items.array.ravel(), place) for place in places]
    else:
        value = items.ordered
        both = items.run(struct(min=value, argmin=index, max=value, argmax=index), ArgMinMax).view("u32")
        places = [both[1:2], both[3:4]]
        values = [both[k : k + 1].view(DATATYPES[value.type]) for k in (0, 2)]
    if items.on_gpu:
        return ArgMinAndMax(*(each.viewed_as(()) for each in (*places, *values)))
    assert items.dtype is not None
    return ArgMinAndMax(
        *(np.intp(each.to_numpy()[0]) for each in places),
        *(each.to_numpy().astype(items.dtype)[0] for each in values),
    )


@one_shot()
def find(x: Findable, *, device: wgpu.GPUDevice | None = None) -> Any:
    """Return the index of the first item that is not 0; the number of items if there is none.

    Parameters
    ----------
    x : numpy.ndarray, Array, ChunkedArray or expression
        A condition, such as ``x > 3``.
    device : wgpu.GPUDevice, optional
        By default that of an Array among the arguments, else `default_device()`.

    Returns
    -------
    int or Array
        An Array of u32 where `x` is on the GPU.

    Notes
    -----
    Little behind the item that is found is read; see `FindIf`.

    Examples
    --------
    >>> import numpy as np, gridwise_py as gw
    >>> x = gw.asarray(np.array([3, 1, 2], dtype=np.int32))
    >>> int(gw.find(x < 3).item()), int(gw.find(x > 3).item())
    (1, 3)
    """
    call = Call("gw.find()", device)
    return _find_first(call, call.take("input", x, shape="flat", chunked=True))


@one_shot()
def find_if(x: Findable, predicate: Callable[[Any], Any] | Expression, *, device: wgpu.GPUDevice | None = None) -> Any:
    """Return the index of the first item for which a predicate holds; the number of items if there is none.

    Parameters
    ----------
    x : numpy.ndarray, Array, ChunkedArray or expression
    predicate : callable or expression
        ``lambda x: x > 3``, or an expression of a leaf, ``gw.f32("x") > 3``. It may use other Arrays, item by item.
    device : wgpu.GPUDevice, optional
        By default that of an Array among the arguments, else `default_device()`.

    Returns
    -------
    int or Array
        An Array of u32 where `x` is on the GPU.

    Raises
    ------
    DatatypeError
        If the leaf is of another datatype.

    Examples
    --------
    >>> import numpy as np, gridwise_py as gw
    >>> gw.find_if(np.array([3, 1, 4, 1, 5], dtype=np.float32), lambda x: gw.sqrt(x) == 2)
    2
    """
    call = Call("gw.find_if()", device)
    items = x if isinstance(x, EXPRESSIONS) else call.items("input", x, chunked=True)
    if isinstance(items, Expression):
        datatype, made = as_datatype(items.type, ITEM_DATATYPES), items
    else:
        items = narrow_numbers(x, items) if isinstance(items, np.ndarray) else items
        if items.ndim != 1:
            items = items.ravel()
        datatype = call.hold("input", items, x)
        made = leaf("input", datatype)
    if isinstance(predicate, Expression):
        flat = flat_of(predicate)
        free = [name for name in flat.names if name not in dict(flat.arrays)]
        if len(free) != 1 or isinstance(items, Expression):
            raise ArgumentError(
                f"{call}: predicate has the leaves {', '.join(free) or 'none'}, but must have one, in whose place the "
                f"items of x come" + ("; give a function where x is an expression" if len(free) == 1 else "")
            )
        of = flat.datatypes[flat.names.index(free[0])]
        if of != datatype:
            raise DatatypeError(f"{call}: predicate is of items of {of}, but x of {datatype}; give gw.{datatype}(x)")
        return _find_by(call, flat.renamed({free[0]: "input"}))
    if not callable(predicate):
        raise ArgumentError(f"{call}: predicate={predicate!r:.60} must be a function, such as lambda x: x > 3")
    return _find_by(call, flat_of(truth(as_node(predicate(made), "bool"))))


def _find_by(call: Call, flat: Flat) -> Any:
    """Return the first index for which a condition holds, whose leaf ``input`` is an argument that was taken."""
    if "input" in call.arrays and "input" not in flat.names:
        raise ArgumentError(f"{call}: predicate does not depend on the items of x; use its argument, lambda x: x > 3")
    others = dict(flat.arrays)
    call.arrays |= others
    call.on_gpu |= bool(others)
    return _find_first(call, flat.without_arrays())


def _find_first(call: Call, kind: Any) -> Any:
    found = call.run(call.primitive(FindIf, kind))["output"]
    return found.viewed_as(()) if call.on_gpu else int(found.to_numpy()[0])


@one_shot()
def count_nonzero(
    x: Reducible, axis: AxisLike = None, *, keepdims: bool = False, device: wgpu.GPUDevice | None = None
) -> Any:
    """Return how many items are not 0.

    Parameters
    ----------
    x : numpy.ndarray, Array or expression
        Of any shape and datatype.
    axis : int or tuple of int, optional
        By default all items, of any shape.
    keepdims : bool, default False
        Whether these axes stay, with one item each.
    device : wgpu.GPUDevice, optional
        By default that of an Array among the arguments, else `default_device()`.

    Returns
    -------
    numpy.intp, numpy.ndarray or Array
        An Array of u32 where `x` is on the GPU.

    Examples
    --------
    >>> import numpy as np, gridwise_py as gw
    >>> gw.count_nonzero(np.array([0, 3, 5]))
    np.int64(2)
    """
    call = "gw.count_nonzero()"
    given: Any = x if isinstance(x, (Operators, StructExpression, ChunkedArray)) else argument_array(call, "x", x)
    if axis is None and isinstance(given, (np.ndarray, Array)) and given.dtype.itemsize == 8:
        counted: Any = count_selected(call, given.ravel(), device)  # also of counted Arrays
        return Axes.of(call, None, given.shape, keepdims).fit(counted if isinstance(given, Array) else np.intp(counted))
    items = _truths(call, given, device, axis, keepdims)
    found = items.reduce(where(items.truth, u32(1), u32(0)), Add)
    return found if items.on_gpu else found.astype(np.intp)


#: What means and variances may be asked for.
_FLOATS = ("f16", "f32", "f64")


def _asked(call: str, dtype: Any) -> np.dtype[Any] | None:
    """Return the dtype that a caller asked for: of floats, since other means would be cut off."""
    if dtype is None:
        return None
    datatype = as_datatype(dtype, ITEM_DATATYPES)
    if datatype.name not in _FLOATS:
        raise DatatypeError(
            f"{call}: dtype is {datatype}, but the result is of floats: {', '.join(_FLOATS)}; convert it"
        )
    return datatype.dtype


def _refuse_doubles(call: str, what: str) -> DatatypeError:
    return DatatypeError(
        f"{call}: {what} float64, but the device lacks shader-f64 or shader-int64; convert x, x.astype(np.float32), "
        f"which has about 7 digits, or use numpy"
    )


def _as_asked(value: Any, asked: np.dtype[Any] | None, dtype: np.dtype[Any] | None) -> Any:
    """Return floats in the dtype that was asked for, or numpy's: of arrays of float16 it is float16."""
    is_half = dtype is not None and dtype.newbyteorder("=") == np.float16 and not isinstance(value, Array)
    wanted = asked if asked is not None else np.dtype(np.float16) if is_half else None
    return value if wanted is None or value.dtype == wanted else value.astype(wanted)


def _numbers_of_floats(call: str, x: Any, where: Any, out: Any, device: Any) -> tuple[Any, Any]:
    """Return what `numbers_and_mask` does, for means and variances; refuse integers as ``out=`` of floats, as numpy."""
    items, mask = numbers_and_mask(call, x, where, device)
    of = "f" if isinstance(items, Expression) else items.dtype.kind
    if of in "fc" and getattr(getattr(out, "dtype", None), "kind", "f") not in "fc":
        raise DatatypeError(f"{call}: out is of {out.dtype}, but the result is of floats; give such an array")
    return items, mask


@family()
def _averaging(call: str, skips_nan: bool = False):
    def mean(
        x: Reducible,
        axis: AxisLike = None,
        dtype: ItemDatatypeLike | None = None,
        out: Any = None,
        keepdims: bool = False,
        *,
        where: Where = True,
        device: wgpu.GPUDevice | None = None,
    ) -> Any:
        """Parameters
        ----------
        x : numpy.ndarray, Array or expression
            Of numbers; complex64 of numpy only.
        axis : int or tuple of int, optional
            By default all items, of any shape.
        dtype : {"f16", "f32", "f64"} or numpy dtype, optional
            Of the result. With float64 floats are converted as they are read.
        out : numpy.ndarray or Array, optional
            Where to put the result, of its shape; an Array of the result's datatype.
        keepdims : bool, default False
            Whether these axes stay, with one item each.
        where : numpy.ndarray, Array or expression of bool, default True
            Which items count, of a shape that is broadcast to that of `x`.
        device : wgpu.GPUDevice, optional
            By default that of an Array among the arguments, else `default_device()`.

        Returns
        -------
        numpy scalar, numpy.ndarray or Array
            Of the dtype of floats; of integers float64, and in an Array float32 where the device has no float64. Sums
            of numpy's integers are exact.

        Raises
        ------
        DatatypeError
            For float64 on a device that does not compute with it: give float32.
        """
        if skips_nan:
            x, where = _numbers_of_floats(call, x, where, out, device)
        return deliver(
            call, _mean(call, x, (axis, keepdims), _asked(call, dtype), mask_of(call, where), device), out, "unsafe"
        )

    return mean


def _taken(call: str, x: Any, asked: Any, device: Any) -> Any:
    """Return what moments are of; refuse float64 where the device does not compute with it."""
    if isinstance(x, (Operators, StructExpression, ChunkedArray)):
        return stored_if_wide(x)
    target = device_of(device=device)
    items = without_doubles(x, argument_array(call, "x", x), target)
    if not context_of(target).has_float64 and items.dtype.kind == "f" and np.float64 in (items.dtype, asked):
        raise _refuse_doubles(call, "x is of" if items.dtype.itemsize == _WIDE else "the result is asked for in")
    return items


def _mean(call: str, x: Any, along: tuple[AxisLike, bool], asked: np.dtype[Any] | None, mask: Any, device: Any) -> Any:
    """Return means along an axis, with ``keepdims``, or of all items."""
    x = _taken(call, x, asked, device)
    dtype: Any = x.dtype if isinstance(cast(object, x), (np.ndarray, Array)) else None
    if isinstance(cast(object, x), np.ndarray) and not isinstance(mask, (Array, Expression)):
        kind: str = dtype.kind
        found: Any = np.dtype(np.float64) if asked == np.float64 and kind == "f" else dtype.newbyteorder("=")
        if kind in "biu" or found in (np.float64, np.complex64):
            of = Combination(call, Add, Results(None if kind in "biu" else found, widens=True), device, *along)
            means = _divide(of, x, True if mask is None else mask)
            return _as_asked(means, None if kind == "c" else asked, None)
    if dtype is not None and dtype.kind in "fc" and dtype.itemsize != _WIDE and asked != np.float64 and mask is None:
        axes = Axes.of(call, along[0], x.shape, along[1])
        if not axes.is_all:
            sums = Combination(call, Add, Results(np.float32), device, *along).of(x)
            each = prod(x.shape[k] for k in axes.combined)
            if isinstance(sums, Array):
                sums = asarray(sums / float(each)) if sums.size else sums
            else:
                with np.errstate(all="ignore"):
                    sums = sums / np.float32(each)
            return _as_asked(sums, asked, dtype)
    items = Reduction(call, x, device, *along, mask)
    doubles = items.doubles(asked)
    if doubles is not None:
        found = items.delivered(doubles.means())
    elif mask is not None or items.is_exact or items.is_counted:
        found = items.means()
    else:
        found = items.reduce(items.floats, Add, (_DIVIDED, None), {"divisor": items.size}, compensated=True)
    return _as_asked(found, asked, items.dtype)


def _divide(of: Combination, items: np.ndarray, where: Any) -> Any:
    """Return means of integers, float64 or complex numbers, which the device adds; the host divides."""
    if items.dtype.itemsize == _WIDE and sums_may_wrap(items):
        mask = None if where is True else where
        return Reduction(of.call, items, of.device, of.axis, of.keepdims, mask).host_means()
    sums = combine(of, items, where=where)
    axes = axes_of(of.call, of.axis, items.ndim)
    if where is True:
        each: Any = prod(items.shape[k] for k in axes)
    else:
        each = np.broadcast_to(where, items.shape).sum(axis=axes, keepdims=of.keepdims)
    with np.errstate(all="ignore"):
        return np.divide(sums, np.asarray(each).astype(of.results.asked or np.float64))[()]


@_averaging()
def mean() -> None:
    """Return the arithmetic mean.

    Means of floats have their dtype, means of integers float64. Where the device has no float64, an Array of integers
    gives float32. `dtype` says otherwise, and ``where`` which items count.

    A mean of all items is compensated: it is as accurate for a billion items as for ten. With ``where``, or along an
    axis, the sum is a plain one.

    {parameters}

    Notes
    -----
    Of all items the sum is compensated: the mean is within 3·u·|mean| + 2·(h·u)²·mean(|x|) of the exact one, with the u
    and h of `Reduce`. Where only the GPU knows how many items count, with `where`, and along an axis a plain sum is
    divided.

    Examples
    --------
    >>> import numpy as np, gridwise_py as gw
    >>> x = np.array([1, 2, 6], dtype=np.float32)
    >>> gw.mean(x), gw.mean(x, where=x < 5)
    (np.float32(3.0), np.float32(1.5))
    >>> gw.mean([1, 2, 6], dtype=np.float32)
    np.float32(3.0)
    """


@_averaging(skips_nan=True)
def nanmean() -> None:
    """Return the mean of the items that are not NaN; NaN of none.

    Options are those of `mean`.

    {parameters}

    Examples
    --------
    >>> import numpy as np, gridwise_py as gw
    >>> gw.nanmean(np.array([1, np.nan, 2], dtype=np.float32))
    np.float32(1.5)
    """


@one_shot()
def average(
    x: Any,
    axis: AxisLike = None,
    weights: Any = None,
    returned: bool = False,
    *,
    keepdims: bool = False,
    device: wgpu.GPUDevice | None = None,
) -> Any:
    """Return the weighted mean, ``sum(x * weights) / sum(weights)``.

    Parameters
    ----------
    x : numpy.ndarray or Array
        An Array is read as f32.
    axis : int or tuple of int, optional
        By default all items, of any shape.
    weights : numpy.ndarray or Array, optional
        Of the shape of `x`; of numpy also of that along `axis`, in its order.
    returned : bool, default False
    keepdims : bool, default False
        Whether these axes stay, with one item each.
    device : wgpu.GPUDevice, optional
        By default that of an Array among the arguments, else `default_device()`.

    Returns
    -------
    numpy scalar, numpy.ndarray or Array, or a tuple of two
        Of numpy's dtype; an Array of f32.

    Raises
    ------
    ArgumentError
        If the weights of numpy arrays add up to 0, or have another shape.

    Examples
    --------
    >>> import numpy as np, gridwise_py as gw
    >>> float(gw.average(np.array([1, 2, 6], dtype=np.float32), weights=[1, 1, 2]))
    3.75
    """
    call = "gw.average()"
    if weights is None:
        found: Any = mean(x, axis, keepdims=keepdims, device=device)
        if not returned:
            return found
        each = float(prod([np.shape(x)[k] for k in axes_of(call, axis, np.ndim(x))]))
        return found, found * 0 + each if not isinstance(found, Array) else full_like(found, each)
    pair: list[Any] = [
        each if isinstance(each, (Array, Expression)) else argument_array(call, name, each)
        for name, each in (("x", x), ("weights", weights))
    ]
    if not {type(each) for each in pair} & {Expression}:
        pair[1] = weights_along(call, pair[1], pair[0].shape, axis)
    if {type(each) for each in pair} != {np.ndarray}:
        shapes = {name: shape_of(each) for name, each in zip(("x", "weights"), pair, strict=True)}
        check_one_shape(call, {name: shape for name, shape in shapes.items() if shape is not None})
        target = device_of(*(each for each in pair if isinstance(each, Array)), device=device)
        stored = [
            asarray(narrow_numbers(given, each), target) if isinstance(each, np.ndarray) else each
            for given, each in zip((x, weights), pair, strict=True)
        ]
        as_floats = f64 if {each.as_expression().type for each in stored} & set(WIDE_TYPES) else f32
        items, shares = (as_floats(each) for each in stored)
        products: Any = items * shares
        if axis is not None or keepdims:
            products, shares = asarray(products), asarray(shares)
        total, weight = (cast(Any, sum(each, axis, None, None, keepdims)) for each in (products, shares))
        found = asarray(total / weight)
        return (found, weight) if returned else found
    items, shares = pair
    kind = np.result_type(items.dtype, shares.dtype, *([np.float64] if items.dtype.kind in "biu" else []))
    with np.errstate(all="ignore"):
        products = np.multiply(items, shares, dtype=kind)
        total, weight = (
            cast(Any, sum)(each, axis, kind, None, keepdims, device=device)
            for each in (products, np.ascontiguousarray(shares))
        )
        if (np.asarray(weight) == 0).any():
            raise ArgumentError(
                f"{call}: the weights add up to 0, so that they cannot be normalised (numpy raises, too)"
            )
        found = np.divide(total, weight)
    return (found, weight) if returned else found


def weights_along(call: str, weights: Any, shape: tuple[int, ...], axis: AxisLike) -> Any:
    """Return weights of the shape of the items; those of fewer dimensions lie along axes."""
    if weights.shape == shape:
        return weights
    if isinstance(weights, Array):
        places = np.arange(weights.size, dtype=np.uint32).reshape(weights.shape)
        return take(weights.ravel(), weights_along(call, places, shape, axis))
    axes = axes_of(call, axis, len(shape))
    given = [int(each) % len(shape) for each in np.atleast_1d(axes if axis is None else axis)]
    if axis is not None and weights.shape == tuple(shape[k] for k in given):  # its dimensions are in the caller's order
        order = tuple(size if k in axes else 1 for k, size in enumerate(shape))
        return np.broadcast_to(weights.transpose(np.argsort(given)).reshape(order), shape)
    error = DatatypeError if axis is None else LengthError  # as numpy, which without axis= misses an argument
    raise error(
        f"{call}: weights has shape {weights.shape}, but x {shape}; give weights of that shape, or of that along axis="
    )


@family()
def _spreading(call: str, outputs: tuple[Any, ...], skips_nan: bool = False):
    def spread(
        x: Reducible,
        axis: AxisLike = None,
        dtype: ItemDatatypeLike | None = None,
        out: Any = None,
        ddof: float = 0.0,
        keepdims: bool = False,
        *,
        where: Where = True,
        correction: float | None = None,
        deterministic: bool = False,
        device: wgpu.GPUDevice | None = None,
    ) -> Any:
        """Parameters
        ----------
        x : numpy.ndarray, Array or expression
            Of numbers.
        axis : int or tuple of int, optional
            By default all items.
        dtype : {"f16", "f32", "f64"} or numpy dtype, optional
            Of the result.
        out : numpy.ndarray or Array, optional
            Where to put the result, of its shape; an Array of the result's datatype.
        ddof : float, default 0
        keepdims : bool, default False
            Whether the result has as many dimensions as `x`.
        where : numpy.ndarray, Array or expression of bool, default True
            Which items count, of a shape that is broadcast to that of `x`.
        correction : float, optional
        deterministic : bool, default False
            The same bits for every size of subgroups, and on every adapter whose divisions round to the nearest float;
            see `Reduce`.
        device : wgpu.GPUDevice, optional
            By default that of an Array among the arguments, else `default_device()`.

        Returns
        -------
        numpy scalar, numpy.ndarray or Array
            Of the dtype of floats; of integers float64, and float32 where the device has no float64.

        Raises
        ------
        DatatypeError
            For float64 on a device that does not compute with it: give float32.
        """
        least = 0.0  # what sums of squares are divided by where n - ddof is not positive
        if skips_nan:
            x, where = _numbers_of_floats(call, x, where, out, device)
            kind: str = x.type if isinstance(x, Expression) else cast(Any, x).dtype.kind
            if kind.startswith("f"):
                least = np.nan  # as numpy's, where it divides by 0
        for each in (ddof, 0 if correction is None else correction):
            if isinstance(each, bool) or not isinstance(each, (int, float, np.integer, np.floating)):
                raise DatatypeError(f"{call}: ddof={each!r:.60} must be a number, such as 1")
        if correction is not None and ddof != 0:
            raise ArgumentError(f"{call}: correction={correction!r} and ddof={ddof!r} are one number; give one of them")
        asked, mask = _asked(call, dtype), mask_of(call, where)
        items = Reduction(call, _taken(call, x, asked, device), device, axis, keepdims, mask)
        numbers = {"correction": float(ddof if correction is None else correction), "least": least}
        doubles = items.doubles(asked, deterministic)
        if doubles is not None:
            found = items.delivered(doubles.spreads(**numbers, takes_root=outputs is _DEVIATIONS))
        else:
            if items.is_wide:
                items.from_least()
            found = items.spreads(outputs, numbers, **({"deterministic": True} if deterministic else {}))
        casting = "same_kind" if outputs is _DEVIATIONS else "unsafe"
        return deliver(call, _as_asked(found, asked, items.dtype), out, casting)

    return spread


@_spreading(_VARIANCES)
def var() -> None:
    """Return the variance: the mean of the squared distances from the mean.

    The sum of squares is divided by n − `ddof`. numpy's default is 0, pandas' 1; `correction` is another name of it.
    Floats keep their dtype. Integers give float64, or float32 where the device has no float64. ``where`` says which
    items count.

    ``deterministic=True`` gives the same bits on every GPU that rounds by IEEE 754, for more time. Without an axis, a
    number that is added to all items costs no digits.

    {parameters}

    Notes
    -----
    Each item is read once. Of its items of a tile an invocation computes mean and squared distances in two passes over
    its registers, and these are combined by `Moments`. All means are relative to the first item, so their distance from
    0 costs no digits. The relative error is at most some h·(u + n·u²) with u = 2⁻²⁴, where h is the number of tiles of
    an invocation and of steps that combine invocations: some 200 at 2²⁸ items on a GPU. Along an axis means of floats
    are not relative to an item: there the error grows with the quotient of mean and standard deviation, as some h·u
    times it. Distances of integers are exact before they become floats.

    In float64 u is 2⁻⁵³. Of all items the distances from the first one are summed, and their squares: the error grows
    with the square of its distance from the mean, in standard deviations. With `where` and along an axis distances are
    from the mean, which is computed first.

    Examples
    --------
    >>> import numpy as np, gridwise_py as gw
    >>> x = np.array([1, 2, 6], dtype=np.float32)
    >>> gw.var(x, ddof=1), gw.var(x, where=x < 5)
    (np.float32(7.0), np.float32(0.25))
    >>> float(gw.var(np.array([100000000, 100000002])))
    1.0
    """


@_spreading(_DEVIATIONS)
def std() -> None:
    """Return the standard deviation, the square root of the variance.

    Arguments, dtypes and accuracy are those of `var`.

    {parameters}

    Examples
    --------
    >>> import numpy as np, gridwise_py as gw
    >>> x = np.array([2, 4, 6], dtype=np.float32)
    >>> gw.std(x, where=x < 5), gw.std(x, ddof=1, deterministic=True)
    (np.float32(1.0), np.float32(2.0))
    >>> gw.std([[1, 3], [2, 6]], axis=1).tolist()
    [1.0, 2.0]
    """


@_spreading(_VARIANCES, skips_nan=True)
def nanvar() -> None:
    """Return the variance of the items that are not NaN; NaN of none.

    Options are those of `var`.

    {parameters}

    Examples
    --------
    >>> import numpy as np, gridwise_py as gw
    >>> gw.nanvar(np.array([1, np.nan, 5], dtype=np.float32))
    np.float32(4.0)
    """


@_spreading(_DEVIATIONS, skips_nan=True)
def nanstd() -> None:
    """Return the standard deviation of the items that are not NaN; NaN of none.

    Options are those of `var`.

    {parameters}

    Examples
    --------
    >>> import numpy as np, gridwise_py as gw
    >>> gw.nanstd(np.array([1, np.nan, 5], dtype=np.float32))
    np.float32(2.0)
    """
