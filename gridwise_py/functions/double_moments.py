"""Means and variances in float64, of items on the GPU, where the device computes with it."""

from __future__ import annotations

from collections.abc import Mapping
from functools import cached_property
from math import prod
from typing import Any

from ..primitives import Reduce, ReduceAxis
from ..primitives.doubles import Doubles, words_of_double
from ..runtime.array import Array
from ..types.expression import as_node, gather, u32, u64
from ..types.expression_functions import StructExpression, struct
from ..types.operators import Add, BinOp, Min
from ..types.struct_operators import SPREADS
from .arguments import keep_primitive

#: Of all results: their place among the one count.
_ONE_PLACE = 2**32 - 1


def _beside_first(words: int) -> StructExpression:
    """Return the words of an item beside those of the item that distances are from, two of each."""
    if words == 2:
        item = u64("words")
        low, high = (gather(each, 0) for each in u32("origin", components=2))
        return struct(a=u32(item), b=u32(item >> 32), c=low, d=high)
    return struct(a=u32("words"), b=as_node(0, "u32"), c=gather(u32("origin"), 0), d=as_node(0, "u32"))


_BESIDE_FIRST = {4 * words: _beside_first(words) for words in (1, 2)}


def computed(form: str, items: Array, *key: str, words: Mapping[str, Any] | None = None, **given: Any) -> Array:
    """Return what `Doubles` computes, given its arguments and its options."""
    arrays = {name: each for name, each in given.items() if isinstance(each, Array)}
    options = {name: each for name, each in given.items() if name not in arrays and each is not None}
    primitive = keep_primitive(Doubles, items.device, form, items.datatype, *key, more=tuple(arrays), **options)
    return primitive.run_once(items=items, **arrays, **(words or {}))["output"]


def computed_with(form: str, items: Array, number: float, correction: float, least: float, **given: Any) -> Array:
    """Return what `Doubles` computes with numbers, given further arguments and options."""
    numbers = {"number": number, "correction": correction, "least": least}
    words = {name: words_of_double(value) for name, value in numbers.items()}
    return computed(form, items, words=words, **given)


class DoubleMoments:
    """Items along axes, or all, and their means and variances in float64.

    Parameters
    ----------
    array : Array
        Of numbers, C-contiguous.
    shape : tuple of int
        In which the items lie.
    combined : tuple of int
        Neighbouring axes, in order.
    mask : Array, optional
        Which items count, of bool.
    deterministic : bool, default False
    """

    def __init__(
        self, array: Array, shape: tuple[int, ...], combined: tuple[int, ...], mask: Array | None = None,
        deterministic: bool = False,
    ):  # fmt: skip
        computed = array.datatype.computed
        items = array.viewed_as((array.size,))
        self._items: Array = items if array.datatype == computed else items.astype(computed)
        self._shape, self._combined = shape, combined
        #: What says which items count, where not all do.
        self._chosen: dict[str, Any] = {} if array.count is None else {"limit": array.count}
        if mask is not None:
            self._chosen["mask"] = mask.viewed_as((mask.size,))
        self._options: dict[str, Any] = {"deterministic": True} if deterministic else {}
        step = prod(shape[combined[-1] + 1 :]) if combined else 1
        self._number = prod(shape[k] for k in combined)
        self._places: dict[str, Any] = {"length": max(step * self._number, 1), "step": step}

    @property
    def _is_all(self) -> bool:
        return len(self._combined) == len(self._shape)

    def _combine(self, items: Array, op: BinOp = Add, result: str = "f64", **options: Any) -> Array:
        if self._is_all:
            primitive: Any = keep_primitive(Reduce, items.device, items.datatype, op, result_dtype=result, **options)
        else:
            primitive = keep_primitive(
                ReduceAxis, items.device, items.datatype, op, shape=self._shape, axis=self._combined,
                result_dtype=result, **options,
            )  # fmt: skip
        return primitive.run_once(input=items)["output"].ravel()

    def _divided(self, form: str, sums: Array, correction: float = 0.0, least: float = 0.0, **options: Any) -> Array:
        """Return sums divided by the numbers of their items, less the correction."""
        return computed_with(form, sums, self._number, correction, least, **self._counts, **options)

    @cached_property
    def _counts(self) -> dict[str, Any]:
        """How many items each result is of, where not all count, and the places of these numbers."""
        mask, limit = self._chosen.get("mask"), self._chosen.get("limit")
        if mask is not None:
            return {"counts": self._combine(mask if limit is None else mask.counted_by(limit), result="u32")}
        return {"counts": limit, "length": _ONE_PLACE} if limit is not None else {}

    def means(self) -> Array:
        """Return the means, flat."""
        items = computed("numbers", self._items, **self._chosen) if self._chosen else self._items
        return self._divided("quotients", self._combine(items, **self._options))

    def spreads(self, correction: float, least: float, takes_root: bool) -> Array:
        """Return the variances, or their square roots, flat.

        Of all items each is read once; else all are made floats, whose means come first. Integers are never rounded
        before they are distances.

        Parameters
        ----------
        correction : float
            What the divisor is less than the number of items.
        least : float
            The divisor where this is not positive.
        takes_root : bool
        """
        how: dict[str, Any] = {"correction": correction, "least": least, "takes_root": takes_root}
        items, width = self._items, self._items.datatype.itemsize_bytes
        if self._is_all and not self._chosen and items.size:
            op = SPREADS[items.datatype.name]
            primitive = keep_primitive(Reduce, items.device, _BESIDE_FIRST[width], op, **self._options)
            view: Any = f"u{8 * width}"
            words = {"words": items.view(view), "origin": items[:1].view("u32")}
            return self._divided("moments", primitive.run_once(**words)["output"].view("f64"), **how)
        floats = items if items.datatype.name == "f64" and not self._chosen else self.floats("f64")
        centre = self._divided("quotients", self._combine(floats, **self._options))
        squares = computed("distances", floats, origin=centre, **self._chosen, **self._places)
        return self._divided("quotients", self._combine(squares, **self._options), **how)

    def floats(self, result: str, from_least: bool = True) -> Array:
        """Return the items as floats; integers of 8 bytes as distances from the least, exact before they round."""
        kind, least = self._items.datatype, None
        if from_least and kind.itemsize_bytes == 8 and kind.dtype.kind != "f" and self._items.size:
            least = self._combine(self._items, Min, kind.name)
        return computed("numbers", self._items, result, origin=least, **self._chosen, **self._places)
