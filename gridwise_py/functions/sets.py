"""One-shot functions that merge sorted arrays, or take arrays as sets: union, intersection, differences, membership.

With numpy arrays the results are numpy arrays. With an Array they are Arrays on the GPU, and nothing is read back: sets
carry their count, and so does a merge of counted Arrays.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Literal, NamedTuple, TypeAlias

import numpy as np
import wgpu

from ..errors import ArgumentError, DatatypeError
from ..primitives import Merge, RunLength, Sort, SortPairs, Unique
from ..primitives.engines.merge_order import Less
from ..primitives.search import SEARCHED_DATATYPES, IsIn
from ..runtime.array import Array, asarray, is_python
from ..runtime.chunked_array import ChunkedArray, Items
from ..runtime.host_items import float64_holds, integers_and_nulls
from ..types.datatype import DATATYPES, ITEM_DATATYPES, STORAGE_DATATYPES, VALUE_DATATYPES, Datatype, as_datatype
from ..types.expression import Expression
from ..types.options import one_of
from .arguments import Call, HostItems, argument_datatype, is_beyond, is_mixed, same_bits, weak_items
from .arrays import arange, full
from .repeated_calls import one_shot
from .selections import compress, unique
from .sorts import sort

#: What set functions take.
SetItems: TypeAlias = HostItems | Array


class MergedPairs(NamedTuple):
    """What `merge` returns with values."""

    keys: Any
    values: Any


def _count(items: Any) -> Array | None:
    """Return how many items count, where only the GPU knows."""
    return items.count if isinstance(items, Array) else None


def _take_pair(call: Call, given: Mapping[str, Any], known: Mapping[str, Datatype]) -> Datatype:
    """Take two inputs of one datatype; Python's numbers take that of the other, if it holds them."""
    items = {name: call.items(name, value, chunked=True) for name, value in given.items()}
    first, second = given
    for name, other in ((first, second), (second, first)):
        if is_python(given[name]) and not is_python(given[other]):
            datatype = argument_datatype(call.name, other, items[other], items[other].dtype, ITEM_DATATYPES)
            items[name] = weak_items(call.name, name, given[name], datatype)
        elif is_python(given[name]) and not items[name].size:  # numpy makes floats of it
            items[name] = items[name].astype(items[other].dtype)
        call.check_dimension(name, items[name])
    datatype = call.hold(first, items[first], given[first], known)
    call.hold(second, items[second], given[second], known)
    call.check_one_datatype(second, first)
    return datatype


# ---- merges


@one_shot()
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
        Of one datatype, both sorted; if not, the result is in no particular order, but nothing else is touched.
    values : tuple of two numpy.ndarray or Array, optional
        Of 4 or 8 bytes, to move with the keys.
    descending : bool, default False
        Whether both descend.
    less : callable, optional
        The order, a function of two items, as in `Merge`.
    device : wgpu.GPUDevice, optional
        By default that of an Array among the arguments, else `default_device()`.

    Returns
    -------
    numpy.ndarray or Array, or MergedPairs of keys and values
        Of counted Arrays it carries the sum of their counts.

    Examples
    --------
    >>> import numpy as np, gridwise_py as gw
    >>> gw.merge(np.array([1, 4, 4], dtype=np.uint32), np.array([2, 4, 9], dtype=np.uint32))
    array([1, 2, 4, 4, 4, 9], dtype=uint32)
    """
    call = Call("gw.merge()", device)
    datatype = _take_pair(call, {"a": a, "b": b}, STORAGE_DATATYPES if less is None else ITEM_DATATYPES)
    options: dict[str, Any] = {} if less is None else {"less": less}
    counts: dict[str, Array] = {}
    if any(_count(items) is not None for items in call.arrays.values()):
        counts = {f"{name}_count": _count_of(call, name) for name in ("a", "b")}
        options["counted"] = True
    value_datatype: Datatype | None = None
    if values is not None:
        if not isinstance(values, tuple) or len(values) != 2:
            raise ArgumentError(f"{call}: values must be a tuple of those of a and those of b")
        value_datatype = _take_pair(call, {"a_values": values[0], "b_values": values[1]}, VALUE_DATATYPES)
        for name in ("a", "b"):
            call.check_lengths(name, f"{name}_values")
    primitive = call.primitive(Merge, datatype, value_datatype, descending=bool(descending), **options)
    outputs = call.results(primitive, **counts)
    return outputs["output"] if value_datatype is None else MergedPairs(outputs["output"], outputs["output_values"])


def _count_of(call: Call, name: str) -> Array:
    """Return how many items of an argument count, as an Array of one u32."""
    items = call.arrays[name]
    if isinstance(items, ChunkedArray):
        raise ArgumentError(
            f"{call}: {name} is a ChunkedArray, and the other array is counted on the GPU; trim that one"
        )
    count = _count(items)
    return full(1, items.size, "u32", call.device) if count is None else count


# ---- sets


class _Sets:
    """The arguments of a set function, of any shape and in the one datatype that numpy promotes them to.

    Parameters
    ----------
    call : str
    ar1, ar2 : object
        As the caller gave them.
    device : wgpu.GPUDevice or None
    """

    def __init__(self, call: str, ar1: Any, ar2: Any, device: wgpu.GPUDevice | None, *, takes_mixed: bool = False):
        self.call: Call = Call(call, device)
        # As arrays of numpy: beside others, numbers have a datatype of their own here.
        given = {name: self.call.items(name, value) for name, value in (("ar1", ar1), ("ar2", ar2))}
        #: Whether they are taken as their bits, since float64 would round them.
        self.is_mixed: bool = is_mixed(*given.values()) and not all(
            isinstance(each, np.ndarray) and float64_holds(each) for each in given.values()
        )
        if self.is_mixed:
            if not takes_mixed:
                kinds = " and ".join(f"{name} of {each.dtype}" for name, each in given.items())
                signed = next(name for name, each in given.items() if each.dtype.kind == "i")
                remedy = f"{signed}.astype(np.uint64)" if isinstance(given[signed], Array) else f"np.uint64({signed})"
                raise DatatypeError(
                    f"{call}: {kinds} have no integers that hold both; where nothing is negative, give {remedy}"
                )
            given = {name: same_bits(each) for name, each in given.items()}
        self.datatype: Datatype = self.call.promote(given, computes=False)
        self.device: wgpu.GPUDevice = self.call.device
        self._arrays: list[Array] = [
            asarray(self.call.convert(name, self.datatype).ravel(), self.device) for name in given
        ]

    def sort(self, number: int, *, unique: bool) -> Array:
        """Return an argument's items in order; if asked for each of them once, counted."""
        items = self.call.primitive(Sort, self.datatype).run_once(input=self._arrays[number])["output"]
        if not unique:
            return items
        return self.call.primitive(Unique, self.datatype).run_once(keys=items)["output"]

    def merge(self, *, unique: bool, tags: bool = False) -> tuple[Array, Array | None]:
        """Return the items of both arguments in order, counted or not, and for each the argument that it is from."""
        first, second = (self.sort(number, unique=unique) for number in (0, 1))
        if not tags:
            return merge(first, second), None
        numbers = (full(first.size, 0, "u32", self.device), full(second.size, 1, "u32", self.device))
        found = merge(first, second, values=numbers)
        return found.keys, found.values

    def runs(self, merged: Array) -> tuple[Array, Array]:
        """Return each item once, and how often it is there; every NaN is one of its own."""
        primitive = self.call.primitive(RunLength, self.datatype, outputs=("values", "lengths"), equal_nan=False)
        outputs = primitive.run_once(keys=merged)
        return outputs["values"], outputs["lengths"]

    def place(self, number: int, *, unique: bool) -> tuple[Array, Array]:
        """Return an argument's items in order, and where each is; if asked for each of them once, counted."""
        items = self._arrays[number]
        order = arange(items.size, dtype="u32", device=self.device)
        sort = self.call.primitive(SortPairs, self.datatype, "u32")
        found = sort.run_once(keys=items, values=order)
        pairs = found["output_keys"], found["output_values"]
        return self.firsts(*pairs) if unique else pairs

    def firsts(self, keys: Array, values: Array) -> tuple[Array, Array]:
        """Return each key of sorted ones once, and the value of the first of its equals; both are counted."""
        primitive = self.call.primitive(Unique, self.datatype, "u32", equal_nan=False)
        found = primitive.run_once(keys=keys, values=values)
        return found["output_keys"], found["output_values"]

    def both(self, items: Array, lengths: Array) -> Expression:
        """Return which items are in both arguments, of each of which they are once."""
        if not self.is_mixed:
            return lengths == 2
        assert lengths.count is not None, "there are as many runs as lengths"
        return (lengths == 2) & ~asarray(is_beyond(items.viewed_as(items.shape))).counted_by(lengths.count)

    def common(self, *, unique: bool) -> tuple[Any, Any, Any]:
        """Return the items that are in both arguments, and where each is first in the one and in the other."""
        placed = [self.place(number, unique=unique) for number in (0, 1)]
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
            found += [compress(self.both(items, lengths), each.counted_by(lengths.count)) for each in chosen]
        items, *indices = found
        first, second = (self.call.result(each, np.intp) for each in indices)
        return self.call.result(items), first, second


@one_shot()
def union1d(ar1: SetItems, ar2: SetItems, *, device: wgpu.GPUDevice | None = None) -> Any:
    """Return the items that are in either of two arrays, each once and sorted.

    `merge` keeps all items of both.

    Parameters
    ----------
    ar1, ar2 : numpy.ndarray or Array
        NaN equals NaN.
    device : wgpu.GPUDevice, optional
        By default that of an Array among the arguments, else `default_device()`.

    Returns
    -------
    numpy.ndarray or Array
        Of one dimension; an Array carries its count, and nothing is read back.

    Raises
    ------
    DatatypeError
        For int64 and uint64, unless they are of numpy and float64 holds them.

    Examples
    --------
    >>> import numpy as np, gridwise_py as gw
    >>> gw.union1d(np.array([3, 1, 3], dtype=np.uint32), np.array([2, 3], dtype=np.uint32))
    array([1, 2, 3], dtype=uint32)
    """
    sets = _Sets("gw.union1d()", ar1, ar2, device)
    merged, _ = sets.merge(unique=False)
    return sets.call.result(sets.call.primitive(Unique, sets.datatype).run_once(keys=merged)["output"])


@one_shot()
def intersect1d(
    ar1: SetItems,
    ar2: SetItems,
    assume_unique: bool = False,
    return_indices: bool = False,
    *,
    device: wgpu.GPUDevice | None = None,
) -> Any:
    """Return the items that are in both of two arrays, each once and sorted.

    Parameters
    ----------
    ar1, ar2 : numpy.ndarray or Array
        NaN equals no other.
    assume_unique : bool, default False
        Saves work, and is not checked.
    return_indices : bool, default False
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
    sets = _Sets("gw.intersect1d()", ar1, ar2, device, takes_mixed=True)
    if return_indices:
        return sets.common(unique=not assume_unique)
    merged, _ = sets.merge(unique=not assume_unique)
    items, lengths = sets.runs(merged)
    return sets.call.result(compress(sets.both(items, lengths), items))


@one_shot()
def setxor1d(ar1: SetItems, ar2: SetItems, assume_unique: bool = False, *, device: wgpu.GPUDevice | None = None) -> Any:
    """Return the items that are in exactly one of two arrays, each once and sorted.

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
    merged, _ = sets.merge(unique=not assume_unique)
    items, lengths = sets.runs(merged)
    return sets.call.result(compress(lengths == 1, items))


@one_shot()
def setdiff1d(
    ar1: SetItems, ar2: SetItems, assume_unique: bool = False, *, device: wgpu.GPUDevice | None = None
) -> Any:
    """Return the items of one array that are not in another, each once and sorted.

    Parameters
    ----------
    ar1, ar2, device
        As for `intersect1d`.
    assume_unique : bool, default False
        As for `intersect1d`; the result is sorted in any case.

    Returns
    -------
    numpy.ndarray or Array
        Of the dtype of `ar1`, or of the common one where `ar2` carries a count.

    Examples
    --------
    >>> import numpy as np, gridwise_py as gw
    >>> gw.setdiff1d(np.array([3, 1, 3], dtype=np.uint32), np.array([2, 3], dtype=np.uint32))
    array([1], dtype=uint32)
    """
    call = Call("gw.setdiff1d()", device)
    first, second = call.items("ar1", ar1), call.items("ar2", ar2)
    if first.dtype.newbyteorder("=") != second.dtype.newbyteorder("=") and _count(second) is None:
        # The items of the result are those of ar1, not what they are compared as.
        call.take("ar1", first, shape="any")
        call.take("ar2", second, shape="any")
        if isinstance(second, Array):
            first = asarray(first, call.device)
        items = sort(first.ravel(), device=device) if assume_unique else unique(first, device=device)
        count = _count(items)
        # What has no count is searched for, with items of no meaning at its end.
        found = isin(items if count is None else items.viewed_as(items.shape), second, invert=True, device=device)
        return compress(found if count is None else found.counted_by(count), items, device=device)
    sets = _Sets(call.name, first, second, device)
    merged, numbers = sets.merge(unique=not assume_unique, tags=True)
    items, lengths = sets.runs(merged)
    # Of each item the first array that has it: in a merge those of ar1 come first.
    assert numbers is not None, "they are asked for"
    _, number = sets.firsts(merged, numbers)
    assert lengths.count is not None, "there are as many runs as lengths"
    number = number.counted_by(lengths.count)
    return sets.call.result(compress((lengths == 1) & (number == 0), items))


@one_shot()
def isin(
    element: SetItems,
    test_elements: SetItems,
    assume_unique: bool = False,
    invert: bool = False,
    *,
    kind: Literal["sort", "table"] | None = None,
    device: wgpu.GPUDevice | None = None,
) -> Any:
    """Return whether each item is among others.

    Parameters
    ----------
    element : numpy.ndarray or Array
    test_elements : numpy.ndarray or Array
        NaN equals no other.
    assume_unique : bool, default False
        Not used.
    invert : bool, default False
    kind : {"sort", "table"}, optional
        Not used.
    device : wgpu.GPUDevice, optional
        By default that of an Array among the arguments, else `default_device()`.

    Returns
    -------
    numpy.ndarray or Array

    Examples
    --------
    >>> import numpy as np, gridwise_py as gw
    >>> gw.isin(np.array([0, 3, 5], dtype=np.uint32), np.array([3, 4, 0], dtype=np.uint32))
    array([ True,  True, False])
    """
    call = Call("gw.isin()", device)
    if kind is not None:
        one_of(f"{call}: kind", kind, ("sort", "table"))
    missing = None
    for each in (element, test_elements):
        nullable = None if isinstance(each, Items) else integers_and_nulls(each)
        if nullable is not None and each is element:
            element, missing = nullable
        elif nullable is not None:
            test_elements = nullable[0][~nullable[1]]
    first, second = call.items("element", element), call.items("test_elements", test_elements)
    mixed = is_mixed(first, second)
    if mixed:
        first, second = same_bits(first), same_bits(second)
    datatype = call.promote({"element": first, "test_elements": second}, computes=False)
    if datatype.name not in SEARCHED_DATATYPES:
        datatype = as_datatype("i32" if datatype.dtype.kind == "i" else "u32", DATATYPES)
    queries, others = (asarray(call.convert(name, datatype), call.device) for name in ("element", "test_elements"))
    ordered = call.primitive(Sort, datatype).run_once(input=others.ravel())["output"]
    found = call.primitive(IsIn, datatype).run_once(sorted=ordered, queries=queries)["output"]
    among = (found != 0) & ~is_beyond(queries) if mixed else found != 0
    items = call.result(asarray(~among if invert else among).reshape(found.shape))
    if missing is not None:  # a null equals no other, like a NaN
        items[missing] = invert
    return items
