"""The columns of a group-by: what the caller gave, made into keys and into items that kernels combine."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from math import prod
from typing import Any, cast

import numpy as np
import wgpu

from ..errors import ArgumentError, DatatypeError
from ..primitives.fusion import EXPRESSIONS, flat_of
from ..primitives.group_spec import AGGREGATES, OPERATORS
from ..runtime.array import Array, asarray
from ..runtime.context import capabilities
from ..runtime.host_items import cast_items, extremes, filled, integers_and_nulls, with_missing
from ..types.datatype import STORAGE_DATATYPES, conversion
from ..types.expression import LEAF_DATATYPES
from ..types.expression_functions import isnan
from ..types.options import integer
from ..types.shapes import check_one_shape
from .arguments import (
    argument_array,
    argument_datatype,
    check_not_chunked,
    check_one_length,
    device_of,
    shape_of,
    stored_if_wide,
    without_doubles,
)
from .double_moments import DoubleMoments
from .labels import Labels, labels_of, numbered
from .summaries import minmax
from .table_arguments import CALL

_WIDE = 8
#: Of fewer, a GPU's answer takes longer than to look at them on the host.
_LEAST_BYTES_ON_GPU = 8 << 20
_SAMPLE = 1 << 12
_OF_LABELS = ("first", "last", "min", "max", "count", "size", "nunique")
_OF_DATES = (*_OF_LABELS, "mean", "std", "median", "quantile")
#: What columns may be of: what expressions read, and numbers of 8 bytes.
_COLUMNS = {
    name: datatype
    for name, datatype in STORAGE_DATATYPES.items()
    if name in LEAF_DATATYPES or datatype.itemsize_bytes == _WIDE
}


def _numbers(name: str, value: Any) -> np.ndarray:
    """Return a column as numpy makes it; what is missing in a nullable column of pandas is NaN."""
    dtype: Any = getattr(value, "dtype", None)
    if isinstance(dtype, np.dtype) or getattr(dtype, "kind", "") not in tuple("bf") or not value.isna().any():
        return argument_array(CALL, name, value)
    return value.to_numpy(dtype=np.float32 if dtype.itemsize == 4 else np.float64, na_value=np.nan)


def _least_bytes_on_gpu(device: wgpu.GPUDevice) -> float:
    """Of how many bytes the ends are found on the GPU: no CPU adapter is faster than the host."""
    return np.inf if capabilities(device).is_cpu else _LEAST_BYTES_ON_GPU


def _ends_on_host(items: np.ndarray) -> tuple[int, int]:
    least, most = extremes(items) if items.size else (0, 0)
    return int(least), int(most)


@dataclass(eq=False)
class Column:
    """A column: what is found out about it, and made of it, once.

    Attributes
    ----------
    columns : Columns
        All of the call.
    items : numpy.ndarray, Array or Expression
    value : object
        What the caller gave.
    labels : Labels, optional
        Of what is no number; the items are their codes.
    missing : numpy.ndarray, optional
        Which labels, dates or integers of a nullable column are missing.
    dates : numpy.dtype, optional
        Of dates or durations, which are integers here.
    """

    columns: Columns
    items: Any
    value: Any = None
    labels: Labels | None = None
    missing: np.ndarray | None = None
    dates: np.dtype[Any] | None = None

    def __post_init__(self) -> None:
        if self.missing is not None and not self.missing.any():
            self.missing = None

    @property
    def dtype(self) -> np.dtype[Any]:
        """That of what the caller gave: of labels, dates or the items."""
        return self.dates or (self.items.dtype if self.labels is None else self.labels.labels.dtype)

    @property
    def kind(self) -> str:
        """That of the items' dtype; "s" of structs."""
        return getattr(self.items, "type", "s")[0] if isinstance(self.items, EXPRESSIONS) else self.items.dtype.kind

    @property
    def is_wide(self) -> bool:
        """Whether the items have 8 bytes, which no expression reads."""
        return not isinstance(self.items, EXPRESSIONS) and self.items.dtype.itemsize == _WIDE

    @property
    def aggregates(self) -> tuple[str, ...]:
        """What can be computed of them, where that is not all."""
        if self.labels is not None:
            return _OF_LABELS
        return AGGREGATES if self.dates is None else _OF_DATES if self.dates.kind == "M" else (*_OF_DATES, "sum")

    def show(self, items: np.ndarray) -> np.ndarray:
        """Return some of the items, or other codes or integers, as the caller knows them."""
        if self.labels is not None:
            return self.labels.of(items)
        return items.astype(self.items.dtype, copy=False) if self.dates is None else items.view(self.dates)

    def lacks(self, items: np.ndarray) -> np.ndarray:
        """Return which items, or other codes, are missing."""
        return items != items if self.labels is None else self.labels.missing(items)

    def show_rows(self, rows: np.ndarray) -> np.ndarray:
        """Return the items of some rows as the caller knows them; of one that is none any item."""
        found = self.show(self.items.take(rows, mode="clip"))
        return found if self.missing is None else with_missing(found, self.missing.take(rows, mode="clip"))

    @cached_property
    def array(self) -> Array:
        """The items on the GPU."""
        return self.items if isinstance(self.items, Array) else asarray(self.items, self.columns.device)

    @cached_property
    def expression(self) -> Any:
        """The items as kernels read them: one expression for all aggregates."""
        return self.items if isinstance(self.items, EXPRESSIONS) else self.array.as_expression()

    @cached_property
    def ends(self) -> tuple[int, int]:
        """The least and the largest of integers of the host; 0 and 0 of none.

        Many items of 4 bytes are uploaded as they are in any case, and a GPU reads them sooner than the host does.
        Calls whose results stay on the GPU do not wait for it.
        """
        is_small = self.items.nbytes <= _least_bytes_on_gpu(self.columns.device)
        if is_small or self.columns.on_gpu or self.items.dtype.itemsize != 4:
            return _ends_on_host(self.items)
        least, most = minmax(self.array)
        return int(least.item()), int(most.item())

    def floats(self, from_least: bool) -> Array:
        """Return the items on the GPU in float64; integers of 8 bytes may be their distances from the least."""
        if self.missing is not None:
            return asarray(np.where(self.missing, np.nan, self.items), self.columns.device)
        if self.array.dtype == np.float64:
            return self.array
        return DoubleMoments(self.array, (self.array.size,), (0,)).floats("f64", from_least)

    def sortable(self) -> Array:
        """Return the items on the GPU as 4 or 8 bytes, which are sorted."""
        kind, size = self.array.dtype.kind, max(self.array.dtype.itemsize, 4)
        return self.array.astype(np.dtype(f"{'u' if kind == 'b' else kind}{size}"), copy=False)

    def made(self, items: Any) -> Column:
        """Return other items, made of these."""
        return Column(self.columns, items)

    def without(self, present: Column | None, number: Any) -> Column:
        """Return the items, but a number in place of each that is not present."""
        if present is None:
            return self
        return self.made(np.where(present.items, self.items, self.items.dtype.type(number)))

    @cached_property
    def summable(self) -> Column:
        """Numbers whose sums do not wrap where numpy's do not: integers are of 8 bytes only where they must be."""
        items = self.items
        if self.is_wide or self.kind == "b" or not items.size:
            return self
        bound = 2**32 if self.kind == "u" else 2**31

        def fit(least: int, most: int) -> bool:
            return max(-least, most) * items.size < bound

        # Some may tell that they are not to be uploaded as they are.
        if fit(*_ends_on_host(items[:_SAMPLE])) and fit(*self.ends):
            return self
        if "expression" not in self.__dict__:
            self.__dict__.pop("array", None)  # was there for the ends alone
        return self.totals

    @property
    def totals(self) -> Column:
        """Integers or bools in numpy's dtype of their sums."""
        return self.made(cast_items(self.items, total_dtype(self.items.dtype)))

    @cached_property
    def present(self) -> Column | None:
        """Which items are neither NaN nor null; None where all are, or kernels find out themselves."""
        if self.missing is not None:
            return self.made(~self.missing)
        if self.kind != "f" or not self.is_wide:
            return None
        if isinstance(self.items, Array):
            return self.made(asarray(~isnan(self.items)))
        found = ~np.isnan(self.items)
        return None if found.all() else self.made(found)

    def as_key(self, *, is_alone: bool) -> tuple[Column, int | None]:
        """Return keys of the host in 4 bytes where they fit, and the bits of integers of which none is negative.

        Bits of the only column are rounded up to whole digits of the sort, since others would take no less time.
        """
        key = self
        if self.kind == "f" and self.is_wide:
            key = self.made(np.where(np.isnan(self.items), np.nan, self.items))  # all NaNs are one group
        elif self.kind in "iu":
            least, most = self.ends
            if least >= 0 and most < 1 << 32:
                bits = max(most.bit_length(), 1)
                key = self.made(cast_items(self.items, np.uint32)) if self.is_wide else self
                return key, -(-bits // 8) * 8 if is_alone else bits
            if self.is_wide and least >= -(1 << 31) and most < 1 << 31:
                key = self.made(cast_items(self.items, np.int32))
        if key.is_wide and not is_alone and not self.columns.on_gpu:
            # A code has no room for such a key, but for its place among the others.
            labels = numbered(self.items)
            return Column(self.columns, labels.codes, labels=labels).as_key(is_alone=False)
        return key, None


class Columns:
    """The columns of one call: one that is given twice is checked and uploaded once.

    Parameters
    ----------
    keys : mapping from str to object
    aggregates : mapping from str to tuple
        By name a column, or None for the number of rows, what is computed, and an option.
    device : wgpu.GPUDevice or None
    dropna, observed : bool

    Attributes
    ----------
    keys, values : dict from str to Column
    on_gpu : bool
        Whether any is there, so that the results stay there.
    wide : dict from str to Column
        Arguments of 8 bytes.
    """

    def __init__(
        self, keys: Mapping[str, Any], aggregates: Mapping[str, Any], device: wgpu.GPUDevice | None, dropna: bool,
        observed: bool,
    ):  # fmt: skip
        #: By the identity of what the caller gave, but for keys that are labels.
        self._taken: dict[int, Column] = {}
        self.wide: dict[str, Column] = {}
        self.keys = {name: self._take(name, value, is_key=True) for name, value in keys.items()}
        self.values = {
            name: self._take(name, value, is_key=False)
            for name, (value, _, _) in aggregates.items()
            if value is not None
        }
        self._check_shapes()
        columns = [column.items for column in self._taken.values()]
        self.on_gpu: bool = any(isinstance(each, (Array, *EXPRESSIONS)) for each in columns)
        self._check_aggregates(aggregates)
        if self.on_gpu:
            self._check_results(dropna, observed)
        bound = [array for each in columns if isinstance(each, EXPRESSIONS) for _, array in flat_of(each).arrays]
        self.device: wgpu.GPUDevice = device_of(*bound, *columns, device=device)
        for column in self._taken.values():
            if isinstance(column.items, np.ndarray):
                column.items = without_doubles(column.value, column.items, self.device)

    def _take(self, name: str, value: Any, *, is_key: bool) -> Column:
        """Take a column, and return it."""
        items: Any = stored_if_wide(value)
        if isinstance(items, EXPRESSIONS):
            return self._taken.setdefault(id(value), Column(self, value))
        check_not_chunked(CALL, name, value)
        if isinstance(items, Array):
            column = Column(self, items, value)
        else:
            column = self._take_from_host(name, value, is_key=is_key)
        items = column.items
        if items.ndim != 1:
            raise ArgumentError(f"{CALL}: {name} has shape {items.shape}, but columns have one dimension")
        argument_datatype(CALL, name, value, items.dtype, _COLUMNS)
        if isinstance(items, np.ndarray):  # in this machine's order of bytes
            column.items = items.astype(items.dtype.newbyteorder("="), copy=False)
        return column if is_key and column.labels is not None else self._taken.setdefault(id(value), column)

    def _take_from_host(self, name: str, value: Any, *, is_key: bool) -> Column:
        labels = labels_of(CALL, name, value) if is_key else None
        nullable = None if is_key else integers_and_nulls(value)
        if labels is None and nullable is not None:
            return Column(self, nullable[0], value, missing=nullable[1])
        items = labels.codes if labels is not None else _numbers(name, value)
        if items.dtype.kind in "Mm":
            items = items.astype(items.dtype.newbyteorder("="), copy=False)
            missing = np.isnat(items)
            return Column(self, filled(items.view(np.int64), missing), value, missing=missing, dates=items.dtype)
        if labels is None and items.dtype.kind in "USO" and items.ndim == 1:
            labels = labels_of(CALL, name, value)
        if labels is None:
            return Column(self, items, value)
        missing = None if is_key else labels.missing(labels.codes)
        return Column(self, labels.codes, value, labels, missing)

    def _check_shapes(self) -> None:
        """Raise where lengths or shapes differ."""
        taken = self.keys | self.values
        stored = {name: column.items for name, column in taken.items() if not isinstance(column.items, EXPRESSIONS)}
        check_one_length(CALL, {name: items.size for name, items in stored.items()}, "rows")
        shapes = {name: shape_of(column.items) for name, column in taken.items()}
        check_one_shape(CALL, {name: shape for name, shape in shapes.items() if shape is not None and prod(shape) != 1})

    def _check_aggregates(self, aggregates: Mapping[str, Any]) -> None:
        """Raise where there is no such aggregate of a column."""
        for name, column in self.values.items():
            if column.labels is None and column.dates is None:
                continue
            how = aggregates[name][1]
            shown = next((key for key, op in OPERATORS.items() if op is how), how)
            if shown not in column.aggregates:
                raise DatatypeError(
                    f"{CALL}: {name} is the {shown} of {column.dtype}, of which there are "
                    f"{', '.join(column.aggregates)}; {conversion(column.dtype, _COLUMNS)}, or make it a key"
                )

    def _check_results(self, dropna: bool, observed: bool) -> None:
        """Raise where results that stay on the GPU could not be what is asked for."""
        for name, column in self.keys.items():
            if column.labels is not None:
                raise DatatypeError(
                    f"{CALL}: {name} is of {column.dtype}, which no Array holds, but another column is on the GPU, so "
                    f"the results stay there; give numbers instead: labels, codes = np.unique({name}, "
                    f"return_inverse=True), and after the call labels[groups.keys.to_numpy()]"
                )
        for column in self._taken.values():
            if column.labels is not None or column.dates is not None:
                raise DatatypeError(
                    f"{CALL}: a column is of {column.dtype}, which no Array holds, but another one is on the GPU, so "
                    f"the results stay there; give that one with to_numpy()"
                )
            if column.missing is not None:
                raise DatatypeError(f"{CALL}: a column has nulls, but another one is on the GPU; fill the nulls first")
        if not observed:
            raise ArgumentError(f"{CALL}: observed=False is for categories, which are on the host")
        if dropna:
            raise ArgumentError(
                f"{CALL}: dropna=True is for arrays on the host; on the GPU leave rows out before, with "
                f"gw.compress(~gw.isnan(key), …)"
            )

    def argument(self, name: str, column: Column) -> Any:
        """Return a column as the primitive takes it: one of 8 bytes by its dtype, and under a name."""
        if not column.is_wide:
            return column.expression
        self.wide[name] = column
        return column.items.dtype

    def take_keys(self, key_bits: Any) -> tuple[list[Any], list[int | None]]:
        """Return the columns of keys as the primitive takes them, and the bits that each needs, where that is known."""
        bits: list[Any] = [None] * len(self.keys) if key_bits is None else [key_bits]
        if isinstance(key_bits, (tuple, list)):
            bits = list(cast(Sequence[Any], key_bits))
        if len(bits) != len(self.keys):
            raise ArgumentError(
                f"{CALL}: key_bits has {len(bits)} numbers, but there are {len(self.keys)} columns of keys"
            )
        for (name, column), asked in zip(self.keys.items(), bits, strict=True):
            is_host = isinstance(column.items, np.ndarray) and column.labels is None
            if asked is not None and is_host and column.kind in "iu":
                # On the host, as no check may come after a submission.
                column.ends = _ends_on_host(column.items)
                _check_bits(name, column.ends, integer("key_bits", asked, 1))
        given: list[Any] = []
        for place, (name, column) in enumerate(self.keys.items()):
            key, needed = column, None
            if isinstance(column.items, np.ndarray):
                key, needed = column.as_key(is_alone=len(bits) == 1)
            if key.labels is not None:
                self.keys[name] = key  # the column itself may also be a value
            bits[place] = needed if bits[place] is None else bits[place]
            given.append(self.argument("keys", key))
        return given, bits


def total_dtype(dtype: np.dtype[Any]) -> np.dtype[Any]:
    """Return numpy's dtype of sums of integers or bools."""
    return np.dtype(np.uint64 if dtype.kind == "u" else np.int64)


def _check_bits(name: str, ends: tuple[int, int], key_bits: int) -> None:
    """Raise where a key has more bits than it is said to have."""
    least, most = ends
    if least < 0 or most >> key_bits:
        wrong = least if least < 0 else most
        raise ArgumentError(
            f"{CALL}: {name} has the key {wrong}, but key_bits={key_bits} says that keys are from 0 to "
            f"{2**key_bits - 1}; leave key_bits out, and the call finds the bits itself"
        )
