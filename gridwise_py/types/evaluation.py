"""The value of a program in numpy: what the kernels that are written from it are compared with."""

from __future__ import annotations

from collections.abc import Mapping
from math import prod
from typing import Any, cast

import numpy as np

from ..errors import ArgumentError, LengthError
from .datatype import Struct
from .operations import NUMPY_TYPES, OPERATIONS
from .program import Flat, Spread, Step
from .shapes import check_one_shape

#: The items that are computed; other domains are those of a gather, by its number.
_ROOT = -1


def value_of(flat: Flat, arrays: Mapping[str, Any], size: int | None = None) -> np.ndarray:
    """Return the value of an expression in numpy.

    Parameters
    ----------
    flat : Flat
    arrays : mapping from str to numpy.ndarray or number
        By the names of leaves and scalars; arrays that are part of the expression are copied from the GPU.
    size : int, optional
        The number of items, where no leaf says it.

    Raises
    ------
    ArgumentError
        If a leaf is missing, or there is none of that name.
    LengthError
        If leaves differ in length.
    """
    own = dict(flat.arrays)
    known = [*flat.names, *(name for name, _ in flat.scalars)]
    unknown = [name for name in arrays if name not in known]
    missing = [name for name in known if name not in arrays and name not in own]
    if unknown or missing:
        wrong = f"has no leaf {unknown[0]!r}" if unknown else f"needs {missing[0]}="
        raise ArgumentError(f"the expression {wrong}; its leaves are {', '.join(known) or 'none'}")
    leaves: list[np.ndarray] = []
    for name, datatype in zip(flat.names, flat.datatypes, strict=True):
        items = np.asarray(arrays[name] if name in arrays else own[name].to_numpy())
        if items.dtype.newbyteorder("=") != datatype.dtype:
            raise ArgumentError(
                f"the leaf {name!r} is of {datatype}, but was given {items.dtype}; convert it with "
                f"{name}.astype(np.{datatype.numpy_name})"
            )
        leaves.append(items)
    scalars = flat.scalar_words(
        {
            name: tuple(np.array([arrays[name]], NUMPY_TYPES[kind]).view(np.uint32).tolist())
            for name, kind in flat.scalars
        }
    )
    return _Evaluation(flat, leaves, scalars, size).result()


class _Evaluation:
    """The values of a program's steps in each domain: arrays of one dimension, or numbers."""

    def __init__(self, flat: Flat, leaves: list[np.ndarray], scalars: tuple[int, ...], size: int | None):
        self._flat = flat
        self._program = flat.program
        self._leaves = [leaf.reshape(-1) for leaf in leaves]
        self._scalars = scalars
        self._values: dict[tuple[int, int], Any] = {}
        self._sizes = {_ROOT: self._length(self._program.aligned)}
        for number, step in enumerate(self._program.steps):
            if step.kind in ("gather", "spread"):
                size_apart = self._length(self._program.domain(step))
                self._sizes[number] = size_apart if step.last is None else flat.numbers[step.last] + 1
        own = [k for k in self._program.aligned if self._program.leaves[k].components == 1]
        check_one_shape("the expression", {flat.names[k]: leaves[k].shape for k in own}, broadcasts=True)
        if self._sizes[_ROOT] is None:
            self._sizes[_ROOT] = size
        self._shape = leaves[own[0]].shape if own else (self._sizes[_ROOT] or 0,)
        if flat.wide is not None:
            self._shape, self._sizes[_ROOT] = flat.wide.shape, prod(flat.wide.shape)
        if self._sizes[_ROOT] is None:
            self._shape = ()

    def _length(self, leaves: tuple[int, ...]) -> int | None:
        lengths: dict[str, int] = {}
        for k in leaves:
            components = self._program.leaves[k].components
            if self._leaves[k].size % components:
                raise LengthError(
                    f"the leaf {self._flat.names[k]!r} of {components} components has {self._leaves[k].size} items, "
                    f"which is no multiple of {components}"
                )
            lengths[self._flat.names[k]] = self._leaves[k].size // components
        if len(set(lengths.values())) > 1:
            described = ", ".join(f"{name} has {n} items" for name, n in lengths.items())
            raise LengthError(f"the leaves of an expression have one length, but {described}; slice them to one length")
        return next(iter(lengths.values()), None)

    def result(self) -> np.ndarray:
        """Return the value, of the shape of the leaves."""
        with np.errstate(all="ignore"):
            columns = [self._column(k) for k in self._program.results]
        if not self._flat.fields:
            return columns[0]
        datatype = self._flat.datatype
        assert isinstance(datatype, Struct)
        return datatype.array(**dict(zip(self._flat.fields, columns, strict=True)))

    def _column(self, k: int) -> np.ndarray:
        value = np.asarray(self._at(k, _ROOT), NUMPY_TYPES[self._program.steps[k].type])
        size = self._sizes[_ROOT]
        if value.ndim == 0 and size is not None:
            value = np.full(size, value)
        return value.reshape(self._shape)

    def _at(self, root: int, domain: int) -> Any:
        """Return the value of a step in a domain."""
        for k in self._program.within([root], ("previous", "next", "flip")):
            if (k, domain) not in self._values:
                self._values[k, domain] = self._step(k, self._program.steps[k], domain)
        return self._values[root, domain]

    def _step(self, number: int, step: Step, domain: int) -> Any:
        kind, dtype = step.kind, NUMPY_TYPES[step.type]
        if kind == "leaf":
            return self._leaves[step.number].astype(dtype, copy=False)
        if kind == "component":
            leaf, place = step.number, step.component
            return self._leaves[leaf][place :: self._program.leaves[leaf].components].astype(dtype, copy=False)
        if kind == "index":
            return self._indices(domain)
        if kind == "number":
            return np.bool_(step.value) if step.type == "bool" else self._flat.number(step).view(dtype)[0]
        if kind == "scalar":
            words = self._scalars[step.number : step.number + dtype.itemsize // 4]
            return np.array(words, np.uint32).view(dtype)[0]
        if kind == "gather":
            return self._gathered(number, step, self._values[step.args[1], domain])
        if kind == "spread":
            return self._repeated(number, step, domain)
        args = [self._values[k, domain] for k in step.args]
        if kind in ("previous", "next", "flip"):
            return _moved(kind, args[0])
        if kind == "select":
            condition: np.ndarray = args[0]
            return np.asarray(np.where(condition, args[1], args[2]), dtype)[()]
        if kind == "cast":
            items: np.ndarray = np.asarray(args[0])
            return items.astype(dtype)[()]
        if kind == "bitcast":
            bits: np.ndarray = np.ascontiguousarray(args[0]).view(dtype)
            return bits.reshape(np.shape(args[0]))[()]
        if kind == "function":
            function: Any = step.value
            return function.twin(*args)
        return np.asarray(OPERATIONS[kind].numpy(*args)).astype(dtype, copy=False)[()]

    def _indices(self, domain: int) -> np.ndarray:
        size = self._sizes[domain]
        if size is None:
            raise LengthError("no leaf says how many items the expression has; give size=")
        return np.arange(size, dtype=np.uint32)

    def _gathered(self, number: int, step: Step, indices: Any) -> Any:
        size = self._sizes[number]
        if size is None:  # of what has no length: numbers, and arrays of one item
            return self._at(step.args[0], number)
        values = self._at(step.args[0], number)
        if not np.size(values) and np.size(indices):
            raise LengthError("the items of an empty array are gathered")
        if np.ndim(values) == 0:
            return values
        return values[np.clip(np.asarray(indices).astype(np.int64), 0, max(size - 1, 0))]

    def _repeated(self, number: int, step: Step, domain: int) -> Any:
        values, spread, size = self._at(step.args[0], number), cast(Spread, step.value), self._sizes[domain]
        if np.ndim(values) == 0 or not values.size:  # of an empty operand the result is empty
            return values
        if not spread.axes or size is None:
            return values[0]
        rest, stride = np.arange(size), 1
        at = np.zeros_like(rest)
        for is_kept, number_of_length in zip(spread.axes[:0:-1], spread.lengths[::-1], strict=True):
            length = self._flat.numbers[number_of_length]
            if is_kept:
                at, stride = at + stride * (rest % length), stride * length
            rest = rest // length
        return values[at + stride * rest if spread.axes[0] else at]


def _moved(kind: str, values: Any) -> Any:
    if np.ndim(values) == 0:
        return values
    if kind == "flip":
        return values[::-1]
    if kind == "previous":
        return np.concatenate([values[:1], values[:-1]])
    return np.concatenate([values[1:], values[-1:]])
