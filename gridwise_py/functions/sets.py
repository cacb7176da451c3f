"""One-shot functions that merge sorted arrays, or take arrays as sets: union, intersection, differences, membership.

With numpy arrays the results are numpy arrays. With an Array they are Arrays on the GPU, and nothing is read back: sets
carry their count, and so does a merge of counted Arrays.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Literal, NamedTuple, TypeAlias

import numpy as np
import wgpu

from ..call_errors import explained
from ..errors import ArgumentError, DatatypeError, LengthError
from ..primitives import Merge, RunLength, Sort, SortPairs, Unique
from ..primitives.engines.merge_order import Less
from ..primitives.fusion import EXPRESSIONS
from ..primitives.one_shot import (
    HostItems,
    argument_array,
    argument_datatype,
    check_not_chunked,
    device_of,
    kept_primitive,
    weak_items,
)
from ..primitives.search import SEARCHED_DATATYPES, IsIn
from ..runtime.array import Array, asarray, is_python
from ..runtime.chunked_array import ChunkedArray, Items
from ..types.datatype import (
    DATATYPES,
    ITEM_DATATYPES,
    STORAGE_DATATYPES,
    VALUE_DATATYPES,
    Datatype,
    as_datatype,
)
from ..types.options import one_of
from .arrays import arange, full
from .selections import compress, unique
from .sorts import sort

__all__ = ["MergedPairs", "intersect1d", "isin", "merge", "setdiff1d", "setxor1d", "union1d"]

#: What set functions take.
SetItems: TypeAlias = HostItems | Array


class MergedPairs(NamedTuple):
    """What `merge` returns with values."""

    keys: Any
    values: Any


def _given(call: str, name: str, value: Any) -> Any:
    """Return an argument as an Array, a ChunkedArray or a numpy array."""
    if isinstance(value, Items):
        return value
    if isinstance(value, EXPRESSIONS):
        raise ArgumentError(f"{call}: {name} is an expression, and its items are moved; give gw.asarray({name})")
    return argument_array(call, name, value)


def _count(items: Any) -> Array | None:
    """Return how many items count, where only the GPU knows."""
    return items.count if isinstance(items, Array) else None


def _of_one_kind(call: str, items: dict[str, Any], given: Sequence[Any]) -> dict[str, Any]:
    """Return two arguments, of which Python's numbers take the datatype of the other, if that holds them."""
    names, found = list(items), list(items.values())
    for k, value in enumerate(given):
        other = found[1 - k]
        if is_python(value) and not is_python(given[1 - k]):
            datatype = argument_datatype(call, names[1 - k], other, other.dtype, ITEM_DATATYPES)
            found[k] = weak_items(call, names[k], value, datatype)
        elif is_python(value) and not found[k].size:  # numpy makes floats of it
            found[k] = found[k].astype(other.dtype)
    return dict(zip(items, found, strict=True))


def _same_datatype(call: str, names: tuple[str, str], items: tuple[Any, Any], known: Any) -> Datatype:
    """Return the one datatype of two arguments."""
    first, second = (
        argument_datatype(call, name, each, each.dtype, known) for name, each in zip(names, items, strict=True)
    )
    if first != second:
        raise DatatypeError(
            f"{call}: {names[0]} is of {first}, but {names[1]} of {second}; convert one of the two, for example "
            f"{names[1]}.astype(np.{first.numpy_name})"
        )
    return first


def _promoted(call: str, given: dict[str, Any]) -> tuple[Datatype, dict[str, Any]]:
    """Return the datatype to which numpy promotes two arguments, and these converted to it."""
    for name, items in given.items():
        check_not_chunked(call, name, items)
        argument_datatype(call, name, items, items.dtype, STORAGE_DATATYPES)
    datatype = as_datatype(np.result_type(*(items.dtype for items in given.values())), STORAGE_DATATYPES)
    return datatype, {
        name: items if items.dtype.newbyteorder("=") == datatype.dtype else items.astype(datatype.dtype)
        for name, items in given.items()
    }


def _rounds(first: Any, second: Any) -> bool:
    """Whether integers of a numpy array are rounded where numpy promotes two arrays."""
    if isinstance(first, Items) or isinstance(second, Items):
        return False
    wide = first.dtype.kind in "iu" and first.dtype.itemsize == 8
    return wide and second.dtype.kind in "biuf" and np.result_type(first, second).kind == "f"


# ---- merges


@explained()
def merge(
    a: HostItems | Items,
    b: HostItems | Items,
    *,
    values: tuple[HostItems | Items, HostItems | Items] | None = None,
    descending: bool = False,
    less: Less | None = None,
    device: wgpu.GPUDevice | None = None,
) -> Any:
    """Merge two sorted arrays; of equal keys those of `a` come first.

    Parameters
    ----------
    a, b : numpy.ndarray or Array
        Shapes (k,) and (m,), of one datatype, both in the order that the result has; a list of Python's numbers takes
        the datatype of the other. The order is not checked; of others the result is in no particular order, but nothing
        outside the arrays is read or written.
    values : tuple of two numpy.ndarray or Array, optional
        Values, of 4 or 8 bytes, that move with the keys of `a` and `b`.
    descending : bool, default False
        Whether both descend.
    less : callable, optional
        The order, a function of two items, as in `Merge`.
    device : wgpu.GPUDevice, optional
        By default that of an Array among the arguments, else `default_device()`.

    Returns
    -------
    numpy.ndarray or Array, or MergedPairs of keys and values
        Shape (k + m,). Of counted Arrays it carries the sum of their counts.

    Examples
    --------
    >>> import numpy as np, gridwise_py as gw
    >>> gw.merge(np.array([1, 4, 4], dtype=np.uint32), np.array([2, 4, 9], dtype=np.uint32))
    array([1, 2, 4, 4, 4, 9], dtype=uint32)
    """
    call = "gw.merge()"
    keys = _of_one_kind(call, {name: _given(call, name, value) for name, value in (("a", a), ("b", b))}, (a, b))
    known = STORAGE_DATATYPES if less is None else ITEM_DATATYPES
    datatype = _same_datatype(call, ("a", "b"), (keys["a"], keys["b"]), known)
    moved: dict[str, Any] = {}
    value_datatype: Datatype | None = None
    if values is not None:
        if not isinstance(values, tuple) or len(values) != 2:
            raise ArgumentError(f"{call}: values must be a tuple of those of a and those of b")
        names = ("a_values", "b_values")
        moved = {name: _given(call, name, value) for name, value in zip(names, values, strict=True)}
        moved = _of_one_kind(call, moved, values)
        value_datatype = _same_datatype(call, names, (moved["a_values"], moved["b_values"]), VALUE_DATATYPES)
    for name, items in (keys | moved).items():
        if items.ndim != 1:
            raise ArgumentError(f"{call}: {name} has shape {items.shape}, but must have one dimension")
        if name in moved and items.size != keys[name[0]].size:
            raise LengthError(
                f"{call}: {name} has {items.size} items, but {name[0]} has {keys[name[0]].size}; every key needs one "
                f"value"
            )
    device = device_of(*keys.values(), *moved.values(), device=device)
    counted = any(isinstance(items, Array) and items.count is not None for items in keys.values())
    arrays: dict[str, Any] = {
        name: items if isinstance(items, Items) else asarray(items, device) for name, items in keys.items()
    }
    options: dict[str, Any] = {} if less is None else {"less": less}
    if counted:
        arrays |= {f"{name}_count": _count_of(call, name, arrays[name], device) for name in ("a", "b")}
        options["counted"] = True
    primitive = kept_primitive(Merge, device, datatype, value_datatype, descending=bool(descending), **options)
    arrays |= {name: items if isinstance(items, Items) else asarray(items, device) for name, items in moved.items()}
    outputs = primitive.bind(**arrays).execute().outputs
    on_gpu = any(isinstance(items, Items) for items in (*keys.values(), *moved.values()))
    found = [outputs[name] for name in ("output", "output_values") if name in outputs]
    results = found if on_gpu else [output.to_numpy() for output in found]
    return results[0] if value_datatype is None else MergedPairs(*results)


def _count_of(call: str, name: str, items: Any, device: wgpu.GPUDevice) -> Array:
    """Return how many items count, as an Array of one u32."""
    if isinstance(items, ChunkedArray):
        raise ArgumentError(
            f"{call}: {name} is a ChunkedArray, and the other array is counted on the GPU; trim that one"
        )
    return items.count if items.count is not None else full(1, items.size, "u32", device)


# ---- sets


class _Sets:
    """The arguments of a set function.

    Parameters
    ----------
    call : str
    ar1, ar2 : object
        As the caller gave them.
    device : wgpu.GPUDevice or None
    """

    def __init__(self, call: str, ar1: Any, ar2: Any, device: wgpu.GPUDevice | None):
        given = {name: _given(call, name, value) for name, value in (("ar1", ar1), ("ar2", ar2))}
        self.datatype, given = _promoted(call, given)
        self.on_gpu = any(isinstance(items, Array) for items in given.values())
        self.device = device_of(*given.values(), device=device)
        self._arrays = [asarray(items if items.ndim == 1 else items.ravel(), self.device) for items in given.values()]

    def sorted(self, number: int, *, unique: bool) -> Array:
        """Return an argument's items in order; if asked for each of them once, counted."""
        items = kept_primitive(Sort, self.device, self.datatype).bind(input=self._arrays[number]).execute().output
        if not unique:
            return items
        return kept_primitive(Unique, self.device, self.datatype).bind(keys=items).execute().outputs["output"]

    def merged(self, *, unique: bool, tags: bool = False) -> tuple[Array, Array | None]:
        """Return the items of both arguments in order, counted or not, and for each the argument that it is from."""
        first, second = (self.sorted(number, unique=unique) for number in (0, 1))
        if not tags:
            return merge(first, second), None
        numbers = (full(first.size, 0, "u32", self.device), full(second.size, 1, "u32", self.device))
        found = merge(first, second, values=numbers)
        return found.keys, found.values

    def runs(self, merged: Array) -> tuple[Array, Array]:
        """Return each item once, and how often it is there; every NaN is one of its own."""
        primitive = kept_primitive(
            RunLength, self.device, self.datatype, outputs=("values", "lengths"), equal_nan=False
        )
        outputs = primitive.bind(keys=merged).execute().outputs
        return outputs["values"], outputs["lengths"]

    def placed(self, number: int, *, unique: bool) -> tuple[Array, Array]:
        """Return an argument's items in order, and where each is; if asked for each of them once, counted."""
        items = self._arrays[number]
        order = arange(items.size, dtype="u32", device=self.device)
        sort = kept_primitive(SortPairs, self.device, self.datatype, "u32")
        found = sort.bind(keys=items, values=order).execute().outputs
        pairs = found["output_keys"], found["output_values"]
        return self.firsts(*pairs) if unique else pairs

    def firsts(self, keys: Array, values: Array) -> tuple[Array, Array]:
        """Return each key of sorted ones once, and the value of the first of its equals; both are counted."""
        primitive = kept_primitive(Unique, self.device, self.datatype, "u32", equal_nan=False)
        found = primitive.bind(keys=keys, values=values).execute().outputs
        return found["output_keys"], found["output_values"]

    def common(self, *, unique: bool) -> tuple[Any, Any, Any]:
        """Return the items that are in both arguments, and where each is first in the one and in the other."""
        placed = [self.placed(number, unique=unique) for number in (0, 1)]
        found: list[Array] = []
        for (keys, places), (others, others_places) in (placed, placed[::-1]):
            # Of equal items those of the first array come first in a merge.
            # The keys say how many count.
            moved = (places.viewed_as(places.shape), others_places.viewed_as(others_places.shape))
            merged = merge(keys, others, values=moved)
            items, lengths = self.runs(merged.keys)
            _, first = self.firsts(merged.keys, merged.values)
            assert lengths.count is not None, "there are as many runs as lengths"
            chosen = (items, first) if not found else (first,)
            found += [compress(lengths == 2, each.counted_by(lengths.count)) for each in chosen]
        items, *indices = found
        if self.on_gpu:
            return items, indices[0], indices[1]
        first, second = (each.to_numpy().astype(np.intp) for each in indices)
        return items.to_numpy(), first, second

    def result(self, items: Array) -> Any:
        """Return a result as the caller gets it."""
        return items if self.on_gpu else items.to_numpy()


@explained()
def union1d(ar1: SetItems, ar2: SetItems, *, device: wgpu.GPUDevice | None = None) -> Any:
    """Return the items that are in either of two arrays, each once and sorted, like numpy's union1d.

    To keep all items of both, however often they are there, sort both and `merge` them.

    Parameters
    ----------
    ar1, ar2 : numpy.ndarray or Array
        Of any shape; their datatypes are promoted as in numpy. −0 equals +0, and NaN equals NaN.
    device : wgpu.GPUDevice, optional
        By default that of an Array among the arguments, else `default_device()`.

    Returns
    -------
    numpy.ndarray or Array
        Of one dimension; an Array carries its count, and nothing is read back.

    Examples
    --------
    >>> import numpy as np, gridwise_py as gw
    >>> gw.union1d(np.array([3, 1, 3], dtype=np.uint32), np.array([2, 3], dtype=np.uint32))
    array([1, 2, 3], dtype=uint32)
    """
    sets = _Sets("gw.union1d()", ar1, ar2, device)
    merged, _ = sets.merged(unique=False)
    return sets.result(kept_primitive(Unique, sets.device, sets.datatype).bind(keys=merged).execute().outputs["output"])


@explained()
def intersect1d(
    ar1: SetItems,
    ar2: SetItems,
    assume_unique: bool = False,
    return_indices: bool = False,
    *,
    device: wgpu.GPUDevice | None = None,
) -> Any:
    """Return the items that are in both of two arrays, each once and sorted, like numpy's intersect1d.

    Parameters
    ----------
    ar1, ar2 : numpy.ndarray or Array
        Of any shape; their datatypes are promoted as in numpy. −0 equals +0; a NaN equals no other.
    assume_unique : bool, default False
        Whether no item is twice in the same array, which saves work and is not checked.
    return_indices : bool, default False
        Whether to also return where each item is first in `ar1`, and where in `ar2`: a join of unique keys.
    device : wgpu.GPUDevice, optional
        By default that of an Array among the arguments, else `default_device()`.

    Returns
    -------
    numpy.ndarray or Array, or tuple of three
        Of one dimension; an Array carries its count, and nothing is read back. Indices are of intp for numpy, of u32
        for Arrays.

    Examples
    --------
    >>> import numpy as np, gridwise_py as gw
    >>> gw.intersect1d(np.array([3, 1, 3], dtype=np.uint32), np.array([2, 3], dtype=np.uint32))
    array([3], dtype=uint32)
    """
    sets = _Sets("gw.intersect1d()", ar1, ar2, device)
    if return_indices:
        return sets.common(unique=not assume_unique)
    merged, _ = sets.merged(unique=not assume_unique)
    items, lengths = sets.runs(merged)
    return sets.result(compress(lengths == 2, items))


@explained()
def setxor1d(ar1: SetItems, ar2: SetItems, assume_unique: bool = False, *, device: wgpu.GPUDevice | None = None) -> Any:
    """Return the items that are in exactly one of two arrays, each once and sorted, like numpy's setxor1d.

    Parameters
    ----------
    ar1, ar2, assume_unique, device
        As for `intersect1d`.

    Returns
    -------
    numpy.ndarray or Array
        Of one dimension; an Array carries its count, and nothing is read back.

    Examples
    --------
    >>> import numpy as np, gridwise_py as gw
    >>> gw.setxor1d(np.array([3, 1, 3], dtype=np.uint32), np.array([2, 3], dtype=np.uint32))
    array([1, 2], dtype=uint32)
    """
    sets = _Sets("gw.setxor1d()", ar1, ar2, device)
    merged, _ = sets.merged(unique=not assume_unique)
    items, lengths = sets.runs(merged)
    return sets.result(compress(lengths == 1, items))


@explained()
def setdiff1d(
    ar1: SetItems, ar2: SetItems, assume_unique: bool = False, *, device: wgpu.GPUDevice | None = None
) -> Any:
    """Return the items of one array that are not in another, each once and sorted, like numpy's setdiff1d.

    Parameters
    ----------
    ar1, ar2, device
        As for `intersect1d`.
    assume_unique : bool, default False
        Whether no item is twice in the same array, which saves work and is not checked. The result is sorted in any
        case; numpy's then keeps the order of `ar1`.

    Returns
    -------
    numpy.ndarray or Array
        Of one dimension, of the dtype of `ar1`, or, where `ar2` is an Array that carries a count, of the common one. An
        Array carries its count, and nothing is read back.

    Examples
    --------
    >>> import numpy as np, gridwise_py as gw
    >>> gw.setdiff1d(np.array([3, 1, 3], dtype=np.uint32), np.array([2, 3], dtype=np.uint32))
    array([1], dtype=uint32)
    """
    call = "gw.setdiff1d()"
    first, second = _given(call, "ar1", ar1), _given(call, "ar2", ar2)
    if first.dtype.newbyteorder("=") != second.dtype.newbyteorder("=") and _count(second) is None:
        # The items of the result are those of ar1, not what they are compared as.
        for name, items in (("ar1", first), ("ar2", second)):
            check_not_chunked(call, name, items)
            argument_datatype(call, name, items, items.dtype, STORAGE_DATATYPES)
        if isinstance(second, Array):
            first = asarray(first, device_of(first, second, device=device))
        items = sort(first.ravel(), device=device) if assume_unique else unique(first, device=device)
        count = _count(items)
        # What has no count is searched for, with items of no meaning at its end.
        found = isin(items if count is None else items.viewed_as(items.shape), second, invert=True, device=device)
        return compress(found if count is None else found.counted_by(count), items, device=device)
    sets = _Sets(call, first, second, device)
    merged, numbers = sets.merged(unique=not assume_unique, tags=True)
    items, lengths = sets.runs(merged)
    # Of each item the first array that has it: in a merge those of ar1 come first.
    assert numbers is not None, "they are asked for"
    _, number = sets.firsts(merged, numbers)
    assert lengths.count is not None, "there are as many runs as lengths"
    number = number.counted_by(lengths.count)
    return sets.result(compress((lengths == 1) & (number == 0), items))


@explained()
def isin(
    element: SetItems,
    test_elements: SetItems,
    assume_unique: bool = False,
    invert: bool = False,
    *,
    kind: Literal["sort", "table"] | None = None,
    device: wgpu.GPUDevice | None = None,
) -> Any:
    """Return, item by item, whether it is among others, like numpy's isin.

    Parameters
    ----------
    element : numpy.ndarray or Array
        Of any shape.
    test_elements : numpy.ndarray or Array
        Of any shape. They are sorted, and searched for each item. The datatypes of both are promoted as in numpy. −0
        equals +0; a NaN equals no other.
    assume_unique : bool, default False
        As in numpy; it changes nothing here.
    invert : bool, default False
        Whether to say the opposite: not among them.
    kind : {"sort", "table"}, optional
        As in numpy; it changes nothing here.
    device : wgpu.GPUDevice, optional
        By default that of an Array among the arguments, else `default_device()`.

    Returns
    -------
    numpy.ndarray or Array
        Of bool, in the shape of `element`.

    Examples
    --------
    >>> import numpy as np, gridwise_py as gw
    >>> gw.isin(np.array([0, 3, 5], dtype=np.uint32), np.array([3, 4, 0], dtype=np.uint32))
    array([ True,  True, False])
    """
    call = "gw.isin()"
    if kind is not None:
        one_of(f"{call}: kind", kind, ("sort", "table"))
    given = {
        name: _given(call, name, value) for name, value in (("element", element), ("test_elements", test_elements))
    }
    negative = None
    first, second = given.values()
    if _rounds(first, second) or _rounds(second, first):
        if first.dtype.kind == "i" and second.dtype.kind == "u":  # numpy promotes them to float64, but compares exactly
            negative, given["element"] = first < 0, first.astype(np.uint64)
        elif first.dtype.kind == "u" and second.dtype.kind == "i":
            given["test_elements"] = second[second >= 0].astype(np.uint64)
    datatype, given = _promoted(call, given)
    device = device_of(*given.values(), device=device)
    if datatype.name not in SEARCHED_DATATYPES:
        datatype = as_datatype("i32" if datatype.dtype.kind == "i" else "u32", DATATYPES)
        given = {name: items.astype(datatype.dtype) for name, items in given.items()}
    arrays = {name: asarray(items, device) for name, items in given.items()}
    others = arrays["test_elements"].ravel()
    ordered = kept_primitive(Sort, device, datatype).bind(input=others).execute().output
    search = kept_primitive(IsIn, device, datatype)
    found = search.bind(sorted=ordered, queries=arrays["element"]).execute().output
    result = asarray(found == 0 if invert else found != 0)
    if any(isinstance(value, Array) for value in (element, test_elements)):
        return result
    items = result.to_numpy()
    if negative is not None:
        items[negative] = invert
    return items
